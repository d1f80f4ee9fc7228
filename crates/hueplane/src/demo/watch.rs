//! Watches hosts for frames that belong to other networks.
//!
//! Each host's namespace has a packet socket with a kernel filter. It passes only frames whose source MAC
//! address is neither the host's own nor its router's on that link. Every frame that passes is a leak;
//! without leaks, the watch costs nothing. Other interfaces than the host's link are ignored: their frames come from the host itself. So are reports of
//! multicast listeners (MLD, RFC 3810) of IPv6 networks' routers, and announcements of networks that have moved to another wire: they are
//! for everybody on the link.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_wire::Mac;
use hue_wire::ethernet::EtherType;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::failure::Failure;
use crate::local::space::HOST_INTERFACE;

/// Interval at which sockets are emptied.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// All protocols, of a packet socket.
const ETH_P_ALL: u16 = 3;
/// Number of sockets that one thread closes.
const CLOSED_BY_ONE: usize = 8;
/// Number of bytes examined: Ethernet header with both MAC addresses.
const HEADER: usize = 14;

/// Foreign frames received by one host, by source.
pub type Seen = BTreeMap<Mac, u64>;

/// Watches hosts until it is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Seen>>>,
}

/// A socket in a host's namespace that receives only foreign frames.
pub struct Watcher(Socket);

impl Watcher {
    /// Watches a namespace in which frames may only have these sources. Create it before frames are sent.
    pub fn new(namespace: &Namespace, own: &[Mac]) -> Result<Self, Failure> {
        let interface = Links::inside(namespace).and_then(|mut links| links.index_of(HOST_INTERFACE));
        let filter = filter(interface?, own);
        let open = || -> io::Result<Self> {
            let protocol = Protocol::from(i32::from(ETH_P_ALL.to_be()));
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
            socket.attach_filter(&filter)?;
            socket.set_nonblocking(true)?;
            let mut watcher = Self(socket);
            // Discard frames received before the filter was set.
            watcher.take(&mut Seen::new());
            Ok(watcher)
        };
        let opened = namespace.run(open).map_err(|error| Failure::Broken(error.to_string()))?;
        opened.map_err(|error| Failure::Broken(format!("watching {}: {error}", namespace.name())))
    }

    /// Counts the frames received since the last call.
    fn take(&mut self, seen: &mut Seen) {
        let mut frame = [0; HEADER];
        while let Ok(length) = self.0.read(&mut frame) {
            if let Some(source) = frame.get(..length).and_then(|frame| frame.get(6..)?.first_chunk::<6>()) {
                *seen.entry(Mac(*source)).or_default() += 1;
            }
        }
    }
}

impl Watch {
    /// Starts watching.
    pub fn start(mut watchers: Vec<Watcher>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = vec![Seen::new(); watchers.len()];
            loop {
                let last = asked.load(Ordering::SeqCst);
                watchers.iter_mut().zip(&mut seen).for_each(|(watcher, seen)| watcher.take(seen));
                if last {
                    close(watchers);
                    return seen;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        Self { stop, thread: Some(thread) }
    }

    /// Ends the watch. Returns the frames that each host received, in the order of the watchers.
    pub fn end(mut self) -> Result<Vec<Seen>, Failure> {
        self.stop.store(true, Ordering::SeqCst);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.ok_or_else(|| Failure::Broken("the watch over the hosts failed".to_owned()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Closes sockets in parallel: the kernel takes milliseconds for each, because it waits for all processors.
fn close(mut watchers: Vec<Watcher>) {
    std::thread::scope(|scope| {
        while !watchers.is_empty() {
            let part = watchers.split_off(watchers.len().saturating_sub(CLOSED_BY_ONE));
            scope.spawn(move || drop(part));
        }
    });
}

/// Passes frames of an interface with a source other than `own` (classic BPF).
fn filter(interface: u32, own: &[Mac]) -> Vec<SockFilter> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Offset at which the kernel provides the index of the interface.
    const INTERFACE: u32 = (-0x1000i32 + 8).cast_unsigned();
    let mut program = vec![
        SockFilter::new(LOAD_WORD, 0, 0, INTERFACE),
        SockFilter::new(JUMP_EQUAL, 1, 0, interface),
        SockFilter::new(RETURN, 0, 0, 0),
    ];
    // Frames for everybody from a MAC address of a network (02:68:01:… or its companion on a NIC): to ff:ff:ff:ff:…, RARP that tells
    // outside switches its wire (ADR 0066); and to 33:33:00:00:00:16.
    for (first_bytes, at, word) in [(0xffff_ffff, 12, EtherType::RARP.0), (0x3333_0000, 4, 0x0016)] {
        program.extend([
            SockFilter::new(LOAD_WORD, 0, 0, 0),
            SockFilter::new(JUMP_EQUAL, 0, 5, first_bytes),
            SockFilter::new(LOAD_HALF, 0, 0, at),
            SockFilter::new(JUMP_EQUAL, 0, 3, u32::from(word)),
            SockFilter::new(LOAD_HALF, 0, 0, 7),
            SockFilter::new(JUMP_EQUAL, 0, 1, 0x6801),
            SockFilter::new(RETURN, 0, 0, 0),
        ]);
    }
    for Mac([a, b, c, d, e, f]) in own {
        program.extend([
            SockFilter::new(LOAD_WORD, 0, 0, 6),
            SockFilter::new(JUMP_EQUAL, 0, 3, u32::from_be_bytes([*a, *b, *c, *d])),
            SockFilter::new(LOAD_HALF, 0, 0, 10),
            SockFilter::new(JUMP_EQUAL, 0, 1, u32::from(u16::from_be_bytes([*e, *f]))),
            SockFilter::new(RETURN, 0, 0, 0),
        ]);
    }
    program.push(SockFilter::new(RETURN, 0, 0, u32::MAX));
    program
}
