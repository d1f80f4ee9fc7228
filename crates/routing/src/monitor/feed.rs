//! Monitors one namespace: notifications, snapshots, and stale neighbours.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use hue_host::netlink::{
    Dump, Groups, Incoming, Message, Neighbour, Notice, Object, Received, Socket, neighbour_state,
};
use hue_host::{HostError, Namespace, neighbours};
use hue_tables::Vid;
use nix::errno::Errno;

use super::BATCH_EVENTS_MAX;
use crate::event::{Change, Event, Session};

/// Receive buffer of a socket, in bytes of kernel memory: about 60,000 notifications.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 64 << 20;
/// Most reads of one socket before the next socket; a read returns one notification, or about 500 items of a
/// listing.
const READS_MAX: usize = 1024;
/// Delay of a snapshot after the change that requires it, so that one snapshot covers several changes.
const SETTLE: Duration = Duration::from_millis(50);
/// Longest pause between two attempts at a snapshot.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Limits the time spent on snapshots: the pause after a snapshot is this many times its duration.
const SNAPSHOT_SHARE: u32 = 4;
/// Most restarts of a snapshot that changes of interfaces disturbed; then it is used as it is.
const DISTURBED_MAX: u32 = 8;
/// Interval of checks for stale neighbours.
const STALE_CHECK: Duration = Duration::from_secs(1);
/// Interval at which a neighbour that stays stale is refreshed again.
const STALE_AGAIN: Duration = Duration::from_secs(20);
/// Most neighbours refreshed in one check.
const STALE_MAX: usize = 256;

/// Flag: the message is part of a response (`NLM_F_MULTI`).
const MULTI: u16 = 2;
/// Flag: the listing was disturbed by changes (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;
/// Flag: the route replaced another (`NLM_F_REPLACE`).
const REPLACE: u16 = 0x100;
/// Flag: the route was appended after others (`NLM_F_APPEND`).
const APPEND: u16 = 0x800;
/// Multicast group for notifications of next-hop objects (`RTNLGRP_NEXTHOP`, group 32).
const GROUP_NEXT_HOP: Groups = Groups(1 << 31);
/// `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`.
const NEXT_HOPS: [u16; 2] = [104, 105];

/// The listings of a snapshot. The order matters: each listing refers only to items of earlier ones.
const LISTINGS: [Dump; 7] = [
    Dump::Links,
    Dump::Addresses4,
    Dump::Addresses6,
    Dump::Neighbours4,
    Dump::Neighbours6,
    Dump::Routes4,
    Dump::Routes6,
];

/// Opens a socket for notifications of a namespace.
pub(super) fn open(namespace: &Namespace) -> Result<Socket, HostError> {
    let groups = [
        Groups::NEIGHBOUR,
        Groups::ADDRESS4,
        Groups::ADDRESS6,
        Groups::ROUTE4,
        Groups::ROUTE6,
        GROUP_NEXT_HOP,
    ];
    let groups = groups.into_iter().fold(Groups::LINK, Groups::and);
    let socket = Socket::open_in(namespace, groups)?;
    socket.set_receive_buffer(RECEIVE_BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A snapshot in progress.
struct Snapshot {
    begun: Instant,
    /// Index in [`LISTINGS`].
    listing: usize,
    sequence: u32,
    /// Whether it must be discarded.
    invalid: bool,
    disturbed: bool,
}

/// State of a link. A change of it can change routes without a notification.
#[derive(Clone, PartialEq, Eq)]
struct LinkState {
    name: String,
    up: bool,
    carrier: bool,
}

/// The monitor of one namespace.
pub(super) struct Feed {
    pub(super) vid: Vid,
    pub(super) session: Session,
    pub(super) socket: Socket,
    events: Vec<Event>,
    snapshot: Option<Snapshot>,
    /// When the next snapshot begins.
    snapshot_due: Option<Instant>,
    /// No snapshot begins before this time.
    rest_until: Instant,
    pause: Duration,
    disturbed: u32,
    links: HashMap<u32, LinkState>,
    /// Stale neighbours, and when to refresh them.
    stale: HashMap<(u32, IpAddr), Instant>,
    stale_due: Option<Instant>,
    /// Whether the last event has been sent.
    pub(super) closed: bool,
}

impl Feed {
    pub(super) fn new(vid: Vid, session: Session, socket: Socket) -> Self {
        let now = Instant::now();
        Self {
            vid,
            session,
            socket,
            events: Vec::new(),
            snapshot: None,
            snapshot_due: Some(now),
            rest_until: now,
            pause: SETTLE,
            disturbed: 0,
            links: HashMap::new(),
            stale: HashMap::new(),
            stale_due: None,
            closed: false,
        }
    }

    /// Returns the events collected so far.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// When [`Feed::tick`] must be called next.
    pub(super) fn due(&self) -> Option<Instant> {
        let snapshot = self.snapshot_due.filter(|_| self.snapshot.is_none());
        let snapshot = snapshot.map(|due| due.max(self.rest_until));
        [snapshot, self.stale_due].into_iter().flatten().min()
    }

    /// Does everything that is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        let begin = self.snapshot.is_none() && self.snapshot_due.is_some_and(|due| due <= now);
        if begin && self.rest_until <= now {
            self.snapshot_due = None;
            // Items that still exist will be listed.
            self.links.clear();
            self.stale.clear();
            self.events.push(Event::Begin);
            self.list(0, now, now, false);
        }
        if self.stale_due.is_some_and(|due| due <= now) {
            self.refresh_stale(now);
        }
    }

    /// Requests another snapshot, after the current one.
    pub(super) fn resync(&mut self, now: Instant) {
        let due = now + SETTLE;
        self.snapshot_due = Some(self.snapshot_due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(super) fn close(&mut self, reason: String) {
        self.closed = true;
        self.events.push(Event::Closed(reason));
    }

    /// Reads available messages, at most one batch. Returns whether all have been read.
    pub(super) fn read(&mut self, now: Instant) -> bool {
        for _ in 0..READS_MAX {
            // A listing returns many items at once: leave room for them.
            if self.closed || self.events.len() > BATCH_EVENTS_MAX / 2 {
                return false;
            }
            let mut inbox = Inbox {
                sequence: self.snapshot.as_ref().map(|snapshot| snapshot.sequence),
                events: &mut self.events,
                links: &mut self.links,
                stale: &mut self.stale,
                now,
                maybe_missed: false,
                disturbed: false,
                ended: None,
            };
            let received = self.socket.receive(|incoming| inbox.take(incoming));
            let (maybe_missed, disturbed, ended) = (inbox.maybe_missed, inbox.disturbed, inbox.ended);
            match received {
                Ok(Received::Nothing) => return true,
                Ok(Received::Some) => {}
                Ok(Received::Overrun) => {
                    if let Some(snapshot) = &mut self.snapshot {
                        snapshot.invalid = true;
                    }
                    self.resync(now);
                }
                Err(error) => {
                    self.close(error.to_string());
                    return false;
                }
            }
            if maybe_missed {
                self.resync(now);
            }
            if let Some(snapshot) = &mut self.snapshot {
                snapshot.disturbed |= disturbed;
            }
            if !self.stale.is_empty() && self.stale_due.is_none() {
                self.stale_due = Some(now + STALE_CHECK);
            }
            if let Some(ended) = ended {
                self.listed(ended, Instant::now());
            }
        }
        false
    }

    /// Requests a listing.
    fn list(&mut self, listing: usize, begun: Instant, now: Instant, disturbed: bool) {
        let Some(dump) = LISTINGS.get(listing) else { return };
        match self.socket.send_dump(*dump) {
            Ok(sequence) => {
                self.snapshot = Some(Snapshot { begun, listing, sequence, invalid: false, disturbed });
            }
            Err(error) => match error.errno() {
                Some(Errno::EBUSY | Errno::ENOBUFS | Errno::EAGAIN | Errno::ENOMEM | Errno::EINTR) => {
                    self.retry(now);
                }
                _ => self.close(error.to_string()),
            },
        }
    }

    /// Handles the end of a listing.
    fn listed(&mut self, ended: Result<(), Errno>, now: Instant) {
        let Some(snapshot) = self.snapshot.take() else { return };
        match ended {
            Ok(()) if snapshot.invalid => self.retry(now),
            Ok(()) if snapshot.listing + 1 < LISTINGS.len() => {
                self.list(snapshot.listing + 1, snapshot.begun, now, snapshot.disturbed);
            }
            Ok(()) if snapshot.disturbed && self.disturbed < DISTURBED_MAX => {
                self.disturbed += 1;
                self.retry(now);
            }
            Ok(()) => {
                self.disturbed = 0;
                self.pause = SETTLE;
                self.rest_until = now + (now - snapshot.begun) * SNAPSHOT_SHARE;
                self.events.push(Event::End);
            }
            Err(Errno::EBUSY | Errno::ENOBUFS | Errno::EAGAIN | Errno::ENOMEM | Errno::EINTR) => {
                self.retry(now);
            }
            Err(errno) => self.close(format!("cannot list the contents of the namespace: {}", errno.desc())),
        }
    }

    /// Schedules another attempt at the snapshot, with an increasing delay.
    fn retry(&mut self, now: Instant) {
        self.snapshot = None;
        self.rest_until = now + self.pause;
        self.snapshot_due = Some(self.rest_until);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Makes the kernel resolve a host's MAC address.
    pub(super) fn probe(&mut self, interface: &str, address: IpAddr) {
        let link = self.links.iter().find(|(_, link)| link.name == interface).map(|(index, _)| *index);
        if let Some(link) = link {
            // The kernel rejects this if the link is down. Then nothing can be resolved.
            self.socket.send(neighbours::probe(link, address)).ok();
        }
    }

    /// Refreshes stale neighbours, so that the kernel checks whether they still answer.
    fn refresh_stale(&mut self, now: Instant) {
        let due = self.stale.iter_mut().filter(|(_, due)| **due <= now);
        let due: Vec<(u32, IpAddr)> = due
            .take(STALE_MAX)
            .map(|(key, due)| {
                *due = now + STALE_AGAIN;
                *key
            })
            .collect();
        for (link, address) in due {
            // If the kernel has just removed the neighbour, this adds it again; it is removed again if it
            // does not answer.
            self.socket.send(neighbours::probe(link, address)).ok();
        }
        self.stale_due = (!self.stale.is_empty()).then_some(now + STALE_CHECK);
    }
}

/// Collects the messages of one read.
struct Inbox<'a> {
    sequence: Option<u32>,
    events: &'a mut Vec<Event>,
    links: &'a mut HashMap<u32, LinkState>,
    stale: &'a mut HashMap<(u32, IpAddr), Instant>,
    now: Instant,
    /// Whether routes may have changed without a notification.
    maybe_missed: bool,
    disturbed: bool,
    ended: Option<Result<(), Errno>>,
}

impl Inbox<'_> {
    fn take(&mut self, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Message(message) => self.message(message),
            Incoming::Done { sequence, interrupted } if Some(sequence) == self.sequence => {
                self.disturbed |= interrupted;
                self.ended = Some(Ok(()));
            }
            Incoming::Failed { sequence, errno, .. } if Some(sequence) == self.sequence => {
                self.ended = Some(Err(errno));
            }
            // Responses for removed neighbours, and ends of abandoned listings.
            Incoming::Done { .. } | Incoming::Acknowledged { .. } | Incoming::Failed { .. } => {}
        }
    }

    fn message(&mut self, message: Message<'_>) {
        // A notification has the sequence number of the request that caused it, which can be any. Only
        // responses have the flag.
        let answer = message.flags & MULTI != 0;
        if answer {
            self.disturbed |= message.flags & INTERRUPTED != 0;
        } else if NEXT_HOPS.contains(&message.kind) {
            self.maybe_missed |= message.kind == NEXT_HOPS[1] || message.flags & REPLACE != 0;
        }
        let Some(Notice { gone, object }) = message.notice() else { return };
        let change = match (answer, gone) {
            (true, _) => Change::Listed,
            (false, true) => Change::Removed,
            (false, false) => Change::Added,
        };
        let event = match object {
            Object::Link(link) => {
                let state = LinkState { name: link.name.clone(), up: link.up, carrier: link.carrier };
                let before = if gone {
                    self.links.remove(&link.index)
                } else {
                    self.links.insert(link.index, state.clone())
                };
                self.maybe_missed |= !answer && (gone || before.is_none_or(|before| before != state));
                Event::Link(change, Box::new(link))
            }
            Object::Address(address) => {
                self.maybe_missed |= change == Change::Removed;
                Event::Address(change, address)
            }
            Object::Neighbour(neighbour) => {
                self.neighbour(gone, &neighbour);
                Event::Neighbour(change, neighbour)
            }
            Object::Route(route) => Event::Route(
                match change {
                    Change::Added if message.flags & REPLACE != 0 => Change::Replaced,
                    Change::Added if message.flags & APPEND != 0 => Change::Appended,
                    change => change,
                },
                route,
            ),
        };
        self.events.push(event);
    }

    fn neighbour(&mut self, gone: bool, neighbour: &Neighbour) {
        let key = (neighbour.link, neighbour.address);
        if !gone && neighbour.state & neighbour_state::STALE != 0 {
            self.stale.entry(key).or_insert(self.now);
        } else {
            self.stale.remove(&key);
        }
    }
}
