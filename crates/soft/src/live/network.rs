//! A worker's state of a network apart from its plane: queue, share, limits, TAPs, counters.
//!
//! Every worker has every network, so that each can count the frames it loses; only the home worker queues its frames.
//! Invariants: a network is in the worker's schedule exactly while its queue is not empty and it is not held.

use std::collections::VecDeque;
use std::sync::Arc;

use hue_demux::{Match, PortId};
use hue_planes::{FRAME_BYTES_MAX, Keys, Meter, Rate, RateLimit};
use hue_ports::Packet;
use hue_substrate::Program;
use hue_substrate::handover::RECORD_BYTES;
use hue_tables::Vid;
use hue_wire::Mac;

use super::block::Block;
use super::guard::Guard;
use super::totals::Ledger;

/// Most frames in a network's queue; fewer while packet memory is short.
pub(crate) const QUEUE_FRAMES_MAX: usize = 1024;
/// What the longest frame takes on the way to another thread, bytes.
const FRAME_COST_MAX: usize = RECORD_BYTES + FRAME_BYTES_MAX;
/// Additional places for fences. A moving network has one fence at a time, but it may be sent again.
const QUEUE_FENCES: usize = 8;
/// Allowance of a network of weight 1 in one turn, in the units of [`cost`].
const QUANTUM: u32 = 4096;
/// Cost of a frame in addition to its bytes: about as much work as copying this many bytes.
const FRAME_COST: u32 = 192;
/// Punt limit of a network until control sets one: packets a second, packets at once.
pub(crate) const PUNT_DEFAULT: (u64, u64) = (1_000, 200);
/// No TAP, in [`LiveNetwork::taps`].
pub(crate) const NO_TAP: u32 = u32::MAX;

/// Time that costs as much as copying a byte, nanoseconds: a plain frame of 64 bytes takes about a microsecond.
const NS_PER_BYTE: u64 = 4;

/// Cost of this much work for a network, in the units of [`cost`].
#[inline(always)]
pub(crate) fn cost_of_time(ns: u64) -> i64 {
    (ns / NS_PER_BYTE).min(i64::MAX as u64) as i64
}

/// Cost of a frame, charged to its network's share.
#[inline(always)]
pub(crate) fn cost(len: u32) -> i64 {
    i64::from(len) + i64::from(FRAME_COST)
}

/// An entry of a network's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// A frame that arrived.
    Frame,
    /// A frame from the network's control plane: it bypasses the plane.
    Control,
    /// A mark from the guest, which is returned to the guest when its turn comes.
    Fence,
}

/// An entry of a network's queue with its frame.
#[derive(Debug)]
pub(crate) struct Queued {
    pub packet: Packet,
    /// Port it arrived on; for a control frame, the port it leaves by.
    pub port: PortId,
    pub what: Waiting,
    pub vport: u16,
}

const _: () = assert!(size_of::<Queued>() <= 40);

/// A virtual port as a worker needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vport {
    pub name: String,
    pub port: PortId,
    pub mac: Mac,
}

/// See the head of this file.
pub(crate) struct LiveNetwork {
    pub vid: Vid,
    /// See [`hue_substrate::handover::Home`].
    pub generation: u16,
    /// Its home is another worker.
    pub remote: bool,
    pub queue: VecDeque<Queued>,
    /// Number of fences in `queue`.
    pub fences: u32,
    /// Remaining allowance in this turn. Negative after frames that went to several ports: each copy costs as much as a
    /// frame, and the network pays for them with its next turns.
    pub deficit: i64,
    pub quantum: i64,
    pub scheduled: bool,
    /// Whether its turn has begun.
    pub served: bool,
    pub held: bool,
    /// Whether it sends on the NICs beside its ports.
    pub on_nic: bool,
    /// Whether it has NICs beside its ports and keeps its MAC addresses: its frames are the same on both wires.
    pub on_two_wires: bool,
    /// Its home is here, and it takes frames from any wire. Kept beside what it follows from, because each frame asks for it.
    pub direct: bool,
    /// MAC addresses, with the virtual ports that they are behind, whose move to another wire is still to be announced.
    pub moved_macs: Vec<(Mac, u16)>,
    /// Frames that it accepted on its old wire, in all turns so far (networks that keep their MAC addresses).
    pub late_frames: u64,
    /// Whether some of the packets for itself may be those of tunnels.
    pub carries_tunnels: bool,
    /// Bytes that it can still hand to each other thread, if it carries tunnels: found for the batch `way_at`.
    pub way: usize,
    pub way_at: u64,
    /// Its packets in the queues of networks that carry its tunnels.
    pub aboard: u32,
    /// Whether its namespace may send in the name of any host: it forwards the packets of a network that takes all frames of
    /// its ports.
    pub speaks_for_hosts: bool,
    pub punt: PuntLimit,
    pub guard: Guard,
    pub vports: Vec<Vport>,
    /// Index into the worker's TAPs, by virtual port.
    pub taps: Vec<u32>,
    /// Virtual port by physical port; see [`LiveNetwork::egress`].
    egress: Box<[u8]>,
    /// Whether several virtual ports are on one physical port.
    ambiguous: bool,
    pub ledger: Ledger,
    pub block: Arc<Block>,
    /// Whether it has counts that are not published yet.
    pub dirty: bool,
}

/// Rate limit of a network's control plane. All packets pass one token bucket. Packets that are not for the router
/// itself (TTL, MTU, unknown neighbours, no route) first pass another bucket of half the size. A flood of those
/// exhausts only the small bucket; the other half remains for ARP, routing protocols and pings.
#[derive(Debug)]
pub(crate) struct PuntLimit {
    all: Meter,
    others: Meter,
}

impl PuntLimit {
    /// Full buckets for a rate in packets per second and a burst in packets; a bucket's rate and burst are at least 1.
    pub fn new((per_second, burst): (u64, u64)) -> Self {
        let clamp = |value: u64| value.clamp(1, Rate::MAX);
        let meter = |per_second, burst| {
            let packets = Rate::new(clamp(per_second), clamp(burst)).ok();
            Meter::new(RateLimit { packets, bits: None })
        };
        Self { all: meter(per_second, burst), others: meter(per_second / 2, burst / 2) }
    }

    /// Whether a packet may go to the control plane; charges the limit if so. `own` says that the packet is for the
    /// router itself.
    #[inline]
    pub fn conforms(&mut self, own: bool, now_ns: u64, frame_bytes: usize) -> bool {
        (own || self.others.conforms(now_ns, frame_bytes)) && self.all.conforms(now_ns, frame_bytes)
    }
}

impl LiveNetwork {
    /// A network without frames. Its queue takes memory at its home worker only.
    pub fn new(program: &Program, generation: u16, home: bool, block: Arc<Block>) -> Self {
        let mut network = Self {
            vid: program.vid,
            generation,
            remote: !home,
            queue: VecDeque::with_capacity(if home { QUEUE_FRAMES_MAX + QUEUE_FENCES } else { 0 }),
            fences: 0,
            deficit: 0,
            quantum: 0,
            scheduled: false,
            served: false,
            held: false,
            on_nic: false,
            on_two_wires: false,
            direct: home,
            moved_macs: Vec::new(),
            late_frames: 0,
            carries_tunnels: false,
            way: usize::MAX,
            way_at: 0,
            aboard: 0,
            speaks_for_hosts: false,
            punt: PuntLimit::new(PUNT_DEFAULT),
            guard: Guard::default(),
            vports: Vec::new(),
            taps: Vec::new(),
            egress: vec![0; PortId::COUNT].into_boxed_slice(),
            ambiguous: false,
            ledger: Ledger::default(),
            block: block.clone(),
            dirty: false,
        };
        let orphans = network.replace(program, block);
        debug_assert!(orphans.is_empty());
        network
    }

    /// Whether its frames are the same on both wires of a segment, which both bring them.
    pub fn set_on_two_wires(&mut self, on_two_wires: bool) {
        self.on_two_wires = on_two_wires;
        self.direct = !self.remote && !on_two_wires;
    }

    /// Adopts a new program and keeps the state that it does not replace. Returns the TAPs of removed virtual ports.
    pub fn replace(&mut self, program: &Program, block: Arc<Block>) -> Vec<u32> {
        let vport = |port: &hue_substrate::VirtualPort| Vport {
            name: port.name.clone(),
            port: port.port,
            mac: port.mac,
        };
        let vports: Vec<Vport> = program.ports.iter().map(vport).collect();
        let mut taps = vec![NO_TAP; vports.len()];
        let mut orphans = Vec::new();
        for (old, tap) in self.vports.iter().zip(&self.taps).filter(|(_, tap)| **tap != NO_TAP) {
            match vports.iter().position(|new| new.name == old.name) {
                Some(at) => taps[at] = *tap,
                None => orphans.push(*tap),
            }
        }
        self.egress.fill(0);
        self.ambiguous = false;
        for (at, vport) in vports.iter().enumerate().rev() {
            self.ambiguous |= vports[at + 1..].iter().any(|other| other.port == vport.port);
            self.egress[vport.port.index()] = at as u8; // PORTS_MAX is 256
        }
        let takes_all = program.rows.iter().all(|row| matches!(row.select, Match::Port(_)));
        self.speaks_for_hosts = program.kind().limits().keys == Keys::None && takes_all;
        self.quantum = i64::from(QUANTUM) * i64::from(program.weight.max(1));
        self.ledger.reserve_vports(vports.len());
        (self.vports, self.taps, self.block) = (vports, taps, block);
        orphans
    }

    /// The virtual port through which a frame leaves on a physical port, found by its source MAC if several virtual
    /// ports are on it.
    #[inline(always)]
    pub fn egress(&self, port: PortId, frame: &[u8]) -> u16 {
        if self.ambiguous {
            return self.egress_by_mac(port, frame);
        }
        u16::from(self.egress.get(port.index()).copied().unwrap_or_default())
    }

    #[cold]
    fn egress_by_mac(&self, port: PortId, frame: &[u8]) -> u16 {
        let source = frame.get(6..12).unwrap_or_default();
        let on_port = || self.vports.iter().zip(0u16..).filter(|(vport, _)| vport.port == port);
        let exact = on_port().find(|(vport, _)| vport.mac.0 == source);
        exact.or_else(|| on_port().next()).map_or(0, |(_, at)| at)
    }

    /// Appends to the queue of this network, whose slot is `slot`, and schedules the network.
    #[inline(always)]
    pub fn line_up(&mut self, queued: Queued, slot: usize, schedule: &mut VecDeque<u16>) {
        self.queue.push_back(queued);
        if !self.scheduled && !self.held {
            self.scheduled = true;
            schedule.push_back(slot as u16); // below NETWORKS_MAX
        }
    }

    /// Whether any frame may leave for another thread now: unless the network carries tunnels, always.
    #[inline(always)]
    pub fn has_way(&self) -> bool {
        !self.carries_tunnels || self.way >= FRAME_COST_MAX
    }

    /// Whether the queue accepts another frame while `slots_free` packet slots are free. Its length stays below half
    /// of them, so that neither one network nor several together use up the packet memory. What comes to a carrier of tunnels gets
    /// half of its queue only: the other half is for what leaves by the tunnels, which has cost work already.
    #[inline(always)]
    pub fn has_room(&self, slots_free: usize) -> bool {
        self.queue.len() < QUEUE_FRAMES_MAX.min(slots_free / 2) >> u32::from(self.carries_tunnels)
    }

    /// Whether the queue of this carrier of tunnels accepts another packet from a network that has `aboard` packets in it: at
    /// most half of the free places, so that no network takes the places of the others.
    pub fn has_room_aboard(&self, aboard: u32, slots_free: usize) -> bool {
        let free = QUEUE_FRAMES_MAX.min(slots_free / 2).saturating_sub(self.queue.len());
        (aboard as usize) < free / 2
    }

    /// Frames in the queue.
    pub fn frames_waiting(&self) -> u64 {
        self.queue.len() as u64 - u64::from(self.fences)
    }

    /// Whether a fence fits into the queue without growing it.
    pub fn has_room_for_fence(&self) -> bool {
        !self.remote && self.queue.len() < QUEUE_FRAMES_MAX + QUEUE_FENCES
    }
}

const _: () = assert!(hue_substrate::PORTS_MAX <= 256);

#[cfg(test)]
mod tests {
    use hue_planes::{Kind, Settings};
    use hue_substrate::{Entries, VirtualPort};

    use super::*;

    fn program(ports: &[(&str, u8, u8)]) -> Program {
        let ports = ports.iter().map(|(name, port, mac)| VirtualPort {
            name: (*name).to_owned(),
            port: PortId::new(*port),
            mac: Mac([2, 0, 0, 0, 0, *mac]),
            mtu_bytes: 1500,
            tunnel: None,
        });
        Program {
            vid: Vid::new(1).unwrap(),
            name: "red".to_owned(),
            settings: Settings::of(Kind::Ipv4),
            ports: ports.collect(),
            rows: Vec::new(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::Lpm32(Vec::new()),
            rate_limit: None,
            weight: 3,
            policies: None,
            gated: false,
        }
    }

    #[test]
    fn a_frame_leaves_by_the_virtual_port_of_its_source() {
        let plain = LiveNetwork::new(&program(&[("a", 4, 1), ("b", 7, 2)]), 0, true, Ledger::block(2));
        assert_eq!((plain.egress(PortId::new(4), &[]), plain.egress(PortId::new(7), &[])), (0, 1));
        let shared =
            LiveNetwork::new(&program(&[("a", 4, 1), ("b", 4, 2), ("c", 7, 2)]), 0, true, Ledger::block(3));
        let frame = |mac| [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, mac];
        let egress = |port, mac| shared.egress(PortId::new(port), &frame(mac));
        assert_eq!((egress(4, 1), egress(4, 2), egress(4, 9), egress(7, 2)), (0, 1, 0, 2));
        assert_eq!(shared.quantum, 3 * i64::from(QUANTUM));
    }

    #[test]
    fn no_network_takes_a_carriers_whole_queue() {
        let mut carrier = LiveNetwork::new(&program(&[("a", 1, 1)]), 0, true, Ledger::block(1));
        let mut pool = hue_ports::Pool::new(4096, 2048).unwrap();
        // Networks with packets in the queue, one after another until each has no room left.
        let mut aboard = [0u32; 3];
        for count in &mut aboard {
            while carrier.has_room_aboard(*count, pool.slots() as usize) {
                let packet = pool.copy_in(&[0; 60], 0).unwrap();
                let port = PortId::new(255);
                carrier.queue.push_back(Queued { packet, port, what: Waiting::Frame, vport: 0 });
                *count += 1;
            }
        }
        assert_eq!(aboard, [341, 228, 152]);
        assert!(!carrier.has_room_aboard(0, 10), "packet memory is short");
    }

    #[test]
    fn half_of_the_punt_limit_is_kept_for_the_router_itself() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut limit = PuntLimit::new((100, 10));
        let mut take = |own, now_ns, of: usize| (0..of).filter(|_| limit.conforms(own, now_ns, 60)).count();
        assert_eq!((take(false, 0, 1000), take(true, 0, 1000)), (5, 5), "bursts");
        // A flood of others for ten seconds, and 50 packets a second for the router: all of the latter get through.
        let (mut others, mut own) = (0, 0);
        for millisecond in 1..=10_000 {
            let now_ns = millisecond * (SECOND_NS / 1000);
            others += take(false, now_ns, 20);
            own += take(true, now_ns, usize::from(millisecond % 20 == 0));
        }
        assert_eq!((others, own), (500, 500));
        // The whole limit is available when there is nothing else.
        assert_eq!(take(true, 20 * SECOND_NS, 1000), 10);
        let mut least = PuntLimit::new((0, 0));
        assert!(least.conforms(false, 0, 60) && !least.conforms(true, 0, 60));
    }

    #[test]
    fn only_a_delegated_network_that_takes_all_frames_speaks_for_hosts() {
        let speaks = |kind: Kind, selects: &[Match]| {
            let rows = selects.iter().map(|select| hue_demux::Row {
                vid: Vid::new(1).unwrap(),
                vport: 0,
                select: *select,
            });
            let (settings, entries) = (Settings::of(kind), Entries::none(kind));
            let program = Program { settings, entries, rows: rows.collect(), ..program(&[("a", 1, 1)]) };
            LiveNetwork::new(&program, 0, true, Ledger::block(1)).speaks_for_hosts
        };
        let all = Match::Port(PortId::new(1));
        let own = Match::Mac { port: PortId::new(2), mac: Mac([2, 0, 0, 0, 0, 1]) };
        assert!(speaks(Kind::Process, &[all]) && speaks(Kind::Kernel, &[all]));
        assert!(!speaks(Kind::Process, &[all, own]) && !speaks(Kind::Kernel, &[own]));
        assert!(
            !speaks(Kind::Ipv4, &[all]) && !speaks(Kind::L2, &[all]),
            "their planes forward, not their namespaces"
        );
    }

    #[test]
    fn taps_follow_their_ports_by_name() {
        let mut network = LiveNetwork::new(&program(&[("a", 1, 1), ("b", 2, 2)]), 0, true, Ledger::block(2));
        network.taps = vec![10, 11];
        let orphans = network.replace(&program(&[("b", 2, 2), ("c", 3, 3)]), Ledger::block(2));
        assert_eq!((orphans, network.taps), (vec![10], vec![11, NO_TAP]));
    }
}
