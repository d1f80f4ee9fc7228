//! Listening to one namespace: notices, snapshots, neighbours to keep alive.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use hue_host::netlink::{
    Dump, Groups, Incoming, Message, Neighbour, Notice, Object, Received, Socket, neighbour_state,
};
use hue_host::{HostError, Namespace, neighbours};
use hue_tables::Vid;
use nix::errno::Errno;

use super::BATCH_EVENTS_MAX;
use crate::event::{Change, Event, Session};

/// Notices the kernel keeps for us, bytes of its memory: some 60,000.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 64 << 20;
/// Reads of one socket before another one has its turn; each gives one notice, or some 500 items of a listing.
const READS_MAX: usize = 1024;
/// How long changes that make a snapshot necessary are waited for to become more.
const SETTLE: Duration = Duration::from_millis(50);
/// Longest pause between attempts at a snapshot.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Part of the time that snapshots may take, as a divisor.
const SNAPSHOT_SHARE: u32 = 4;
/// How often a snapshot that changes of interfaces disturbed is begun anew before it is taken as it is.
const DISTURBED_MAX: u32 = 8;
/// How often stale neighbours are looked at.
const KEEP_TICK: Duration = Duration::from_secs(1);
/// When a neighbour that stays stale is told again to be in use.
const KEEP_AGAIN: Duration = Duration::from_secs(20);
/// Neighbours told at one look.
const KEEP_MAX: usize = 256;

/// The message is part of an answer (`NLM_F_MULTI`).
const MULTI: u16 = 2;
/// It was disturbed (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;
/// The route replaced one (`NLM_F_REPLACE`).
const REPLACE: u16 = 0x100;
/// The route was put behind others (`NLM_F_APPEND`).
const APPEND: u16 = 0x800;
/// Notices of next-hop objects (`RTNLGRP_NEXTHOP`, group 32).
const GROUP_NEXT_HOP: Groups = Groups(1 << 31);
/// `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`.
const NEXT_HOPS: [u16; 2] = [104, 105];

/// What a snapshot lists, in this order: each explains what follows.
const LISTINGS: [Dump; 4] = [Dump::Links, Dump::Addresses4, Dump::Neighbours4, Dump::Routes4];

/// Opens the socket that listens to a namespace.
pub(super) fn open(namespace: &Namespace) -> Result<Socket, HostError> {
    let groups =
        Groups::LINK.and(Groups::NEIGHBOUR).and(Groups::ADDRESS4).and(Groups::ROUTE4).and(GROUP_NEXT_HOP);
    let socket = Socket::open_in(namespace, groups)?;
    socket.set_receive_buffer(RECEIVE_BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A snapshot that is being taken.
struct Snapshot {
    begun: Instant,
    /// Position in [`LISTINGS`].
    listing: usize,
    sequence: u32,
    /// It cannot be used.
    void: bool,
    disturbed: bool,
}

/// What of a link matters for whether routes may have changed in silence.
#[derive(Clone, PartialEq, Eq)]
struct LinkState {
    name: String,
    up: bool,
    carrier: bool,
}

/// One namespace.
pub(super) struct Feed {
    pub(super) vid: Vid,
    pub(super) session: Session,
    pub(super) socket: Socket,
    events: Vec<Event>,
    snapshot: Option<Snapshot>,
    /// When the next snapshot is to begin.
    snapshot_due: Option<Instant>,
    /// Not before.
    rest_until: Instant,
    pause: Duration,
    disturbed: u32,
    links: HashMap<u32, LinkState>,
    /// Neighbours to tell to be in use, and when.
    stale: HashMap<(u32, Ipv4Addr), Instant>,
    keep_due: Option<Instant>,
    /// Its last event was said.
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
            keep_due: None,
            closed: false,
        }
    }

    /// The events so far.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// When it wants [`Feed::tick`].
    pub(super) fn due(&self) -> Option<Instant> {
        let snapshot = self.snapshot_due.filter(|_| self.snapshot.is_none());
        let snapshot = snapshot.map(|due| due.max(self.rest_until));
        [snapshot, self.keep_due].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        let begin = self.snapshot.is_none() && self.snapshot_due.is_some_and(|due| due <= now);
        if begin && self.rest_until <= now {
            self.snapshot_due = None;
            // What is still there will be listed.
            self.links.clear();
            self.stale.clear();
            self.events.push(Event::Begin);
            self.list(0, now, now, false);
        }
        if self.keep_due.is_some_and(|due| due <= now) {
            self.keep(now);
        }
    }

    /// Asks for another snapshot, after what was under way.
    pub(super) fn resync(&mut self, now: Instant) {
        let due = now + SETTLE;
        self.snapshot_due = Some(self.snapshot_due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(super) fn close(&mut self, reason: String) {
        self.closed = true;
        self.events.push(Event::Closed(reason));
    }

    /// Reads what is there, up to a batch. Says whether that was all.
    pub(super) fn read(&mut self, now: Instant) -> bool {
        for _ in 0..READS_MAX {
            // A listing gives many items at once: leave room for them.
            if self.closed || self.events.len() > BATCH_EVENTS_MAX / 2 {
                return false;
            }
            let mut inbox = Inbox {
                sequence: self.snapshot.as_ref().map(|snapshot| snapshot.sequence),
                events: &mut self.events,
                links: &mut self.links,
                stale: &mut self.stale,
                now,
                silent: false,
                disturbed: false,
                ended: None,
            };
            let received = self.socket.receive(|incoming| inbox.take(incoming));
            let (silent, disturbed, ended) = (inbox.silent, inbox.disturbed, inbox.ended);
            match received {
                Ok(Received::Nothing) => return true,
                Ok(Received::Some) => {}
                Ok(Received::Overrun) => {
                    if let Some(snapshot) = &mut self.snapshot {
                        snapshot.void = true;
                    }
                    self.resync(now);
                }
                Err(error) => {
                    self.close(error.to_string());
                    return false;
                }
            }
            if silent {
                self.resync(now);
            }
            if let Some(snapshot) = &mut self.snapshot {
                snapshot.disturbed |= disturbed;
            }
            if !self.stale.is_empty() && self.keep_due.is_none() {
                self.keep_due = Some(now + KEEP_TICK);
            }
            if let Some(ended) = ended {
                self.listed(ended, Instant::now());
            }
        }
        false
    }

    /// Asks for a listing.
    fn list(&mut self, listing: usize, begun: Instant, now: Instant, disturbed: bool) {
        let Some(dump) = LISTINGS.get(listing) else { return };
        match self.socket.send_dump(*dump) {
            Ok(sequence) => {
                self.snapshot = Some(Snapshot { begun, listing, sequence, void: false, disturbed });
            }
            Err(error) => match error.errno() {
                Some(Errno::EBUSY | Errno::ENOBUFS | Errno::EAGAIN | Errno::ENOMEM | Errno::EINTR) => {
                    self.again(now);
                }
                _ => self.close(error.to_string()),
            },
        }
    }

    /// A listing has ended.
    fn listed(&mut self, ended: Result<(), Errno>, now: Instant) {
        let Some(snapshot) = self.snapshot.take() else { return };
        match ended {
            Ok(()) if snapshot.void => self.again(now),
            Ok(()) if snapshot.listing + 1 < LISTINGS.len() => {
                self.list(snapshot.listing + 1, snapshot.begun, now, snapshot.disturbed);
            }
            Ok(()) if snapshot.disturbed && self.disturbed < DISTURBED_MAX => {
                self.disturbed += 1;
                self.again(now);
            }
            Ok(()) => {
                self.disturbed = 0;
                self.pause = SETTLE;
                self.rest_until = now + (now - snapshot.begun) * SNAPSHOT_SHARE;
                self.events.push(Event::End);
            }
            Err(Errno::EBUSY | Errno::ENOBUFS | Errno::EAGAIN | Errno::ENOMEM | Errno::EINTR) => {
                self.again(now);
            }
            Err(errno) => self.close(format!("list what is in the namespace: {}", errno.desc())),
        }
    }

    /// Another attempt at the snapshot, later each time.
    fn again(&mut self, now: Instant) {
        self.snapshot = None;
        self.rest_until = now + self.pause;
        self.snapshot_due = Some(self.rest_until);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Lets the kernel ask for a station's MAC address.
    pub(super) fn probe(&mut self, interface: &str, address: Ipv4Addr) {
        let link = self.links.iter().find(|(_, link)| link.name == interface).map(|(index, _)| *index);
        if let Some(link) = link {
            // Refused when the link is down: then there is nobody to ask.
            self.socket.send(neighbours::probe(link, address)).ok();
        }
    }

    /// Tells neighbours that are stale to be in use.
    fn keep(&mut self, now: Instant) {
        let due = self.stale.iter_mut().filter(|(_, due)| **due <= now);
        let due: Vec<(u32, Ipv4Addr)> = due
            .take(KEEP_MAX)
            .map(|(key, due)| {
                *due = now + KEEP_AGAIN;
                *key
            })
            .collect();
        for (link, address) in due {
            // One that went this moment is made again, and goes again when it does not answer.
            self.socket.send(neighbours::probe(link, address)).ok();
        }
        self.keep_due = (!self.stale.is_empty()).then_some(now + KEEP_TICK);
    }
}

/// What one read is made into.
struct Inbox<'a> {
    sequence: Option<u32>,
    events: &'a mut Vec<Event>,
    links: &'a mut HashMap<u32, LinkState>,
    stale: &'a mut HashMap<(u32, Ipv4Addr), Instant>,
    now: Instant,
    /// Routes may have changed without a notice.
    silent: bool,
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
            // Answers about neighbours that went, and ends of listings that were given up.
            Incoming::Done { .. } | Incoming::Acknowledged { .. } | Incoming::Failed { .. } => {}
        }
    }

    fn message(&mut self, message: Message<'_>) {
        // Notices bear the sequence of whoever caused them, which may be any; only answers are in parts.
        let answer = message.flags & MULTI != 0;
        if answer {
            self.disturbed |= message.flags & INTERRUPTED != 0;
        } else if NEXT_HOPS.contains(&message.kind) {
            self.silent |= message.kind == NEXT_HOPS[1] || message.flags & REPLACE != 0;
        }
        let Some(Notice { gone, object }) = message.notice() else { return };
        let change = match (answer, gone) {
            (true, _) => Change::Listed,
            (false, true) => Change::Gone,
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
                self.silent |= !answer && (gone || before.is_none_or(|before| before != state));
                Event::Link(change, Box::new(link))
            }
            Object::Address(address) => {
                self.silent |= change == Change::Gone;
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
