//! Tracks every frame: where it should leave, whether it did, and in which order.
//!
//! Flow: frames sent → **ledger** ← frames that left. Invariants checked at once: a frame leaves with its own network's
//! MAC addresses, by its own port, once, forwarded once, and after earlier frames of its flow. Checked when the system is
//! idle: no frame is lost that the node promises not to lose.

use std::collections::{BTreeMap, BTreeSet};

use crate::frame::{Left, Tag, mac, neighbour_mac};
use crate::hosts::Hosts;
use crate::limits::Limits;
use crate::world::{NETS, SWITCH, World};

/// Flows of a network: in by `a` and out by `b`, the reverse, one whose routes are added and removed, and its control plane's.
pub const FLOWS: u8 = 4;
/// The flow whose routes are added and removed.
pub const RESTLESS: u8 = 2;
/// The frames that a network's control plane sends, by its port `a`.
pub const CONTROL: u8 = 3;
/// The first of the flows to a group of next hops, each of which has one destination. They leave by either port, and stay with it.
pub const SHARED: u8 = 4;
/// Their number.
pub const SHARED_FLOWS: u8 = 8;
/// The first of the flows to routes by source, each of which has one source.
pub const SOURCED: u8 = SHARED + SHARED_FLOWS;
/// Their number.
pub const SOURCED_FLOWS: u8 = 4;
/// TTL of frames that are sent.
pub const TTL: u8 = 64;

#[derive(Clone, Default)]
struct Flow {
    next: u32,
    /// Frames that were sent and have not left; `true`: must not be lost.
    inside: BTreeMap<u32, bool>,
    /// Frames that were sent and have probably been dropped by a rate limit.
    forgone: BTreeSet<u32>,
    /// One above the highest number that left, by port.
    left: BTreeMap<u8, u32>,
    /// Frames that left.
    seen: BTreeSet<u32>,
    /// Of a flow to a group, since the system was idle: the port that it leaves by.
    way: Option<u8>,
}

/// See the head of this file.
#[derive(Clone, Default)]
pub struct Ledger {
    flows: BTreeMap<(u8, u8, u8), Flow>,
    /// Networks that must not lose frames now.
    calm: [bool; NETS as usize + 1],
    /// Networks whose routes change: a packet without a route goes to the control plane, which may have one by then, while
    /// later packets follow the table. So frames of a restless flow may leave in any order.
    rerouted: [bool; NETS as usize + 1],
    /// Networks that are being set up: all their routes are on the way, so that this holds for all flows but the control plane's.
    fresh: [bool; NETS as usize + 1],
    /// Frames of the switch.
    pub hosts: Hosts,
    /// Frames that networks with a rate limit passed.
    pub limits: Limits,
    /// Frames sent.
    pub sent: u64,
    /// Frames that left.
    pub left: u64,
}

impl Ledger {
    /// The tag of a frame that is about to be sent.
    pub fn next(&mut self, net: u8, age: u8, flow: u8) -> Tag {
        let number = self.flows.entry((net, age, flow)).or_default().next;
        Tag { net, age, flow, number }
    }

    /// Records that it was sent.
    pub fn sent(&mut self, tag: Tag) {
        self.sent += 1;
        // The route of a flow to a group, or by its source, may change too, but is there whenever the network is calm and keeps its routes.
        let restless = tag.flow == RESTLESS || tag.flow >= SHARED && self.rerouted[usize::from(tag.net)];
        let promised = self.calm[usize::from(tag.net)] && !restless;
        let flow = self.flows.entry((tag.net, tag.age, tag.flow)).or_default();
        flow.next += 1;
        flow.inside.insert(tag.number, promised);
    }

    /// The same, of a frame that a host of the switch sent to a port.
    pub fn switched(&mut self, tag: Tag, port: u8) {
        self.sent += 1;
        self.hosts.sent(tag, port, self.is_calm(SWITCH));
    }

    /// Whether a frame that left is one that the switch got although it is not its hosts'.
    pub fn takes_stray(&mut self, port: u8, bytes: &[u8]) -> bool {
        let calm = self.calm;
        self.hosts.takes_stray(port, bytes, |net| calm[usize::from(net)])
    }

    /// Number of a network's frames that have not left.
    #[must_use]
    pub fn inside(&self, net: u8) -> usize {
        let range = (net, 0, 0)..=(net, u8::MAX, u8::MAX);
        self.flows.range(range).map(|(_, flow)| flow.inside.len()).sum()
    }

    /// Regards the frames of a network that are inside as dropped by its rate limit; they may still leave.
    pub fn forgo(&mut self, net: u8) {
        for (_, flow) in self.flows.range_mut((net, 0, 0)..=(net, u8::MAX, u8::MAX)) {
            let inside = std::mem::take(&mut flow.inside);
            flow.forgone.extend(inside.into_keys());
        }
    }

    /// Records an event that may cost a network frames: until the system is idle, its frames may be lost.
    pub fn disturb(&mut self, net: u8) {
        self.calm[usize::from(net)] = false;
        if net == SWITCH {
            self.hosts.disturb();
        }
        self.limits.forget(net);
        for (_, flow) in self.flows.range_mut((net, 0, 0)..=(net, u8::MAX, u8::MAX)) {
            flow.inside.values_mut().for_each(|promised| *promised = false);
        }
    }

    /// Records that a route of a network was added or removed.
    pub fn reroute(&mut self, net: u8) {
        self.rerouted[usize::from(net)] = true;
        for (_, flow) in self.flows.range_mut((net, 0, 0)..=(net, u8::MAX, u8::MAX)) {
            flow.way = None;
        }
    }

    /// Records that a network's group of next hops comes, changes or goes: its frames may be lost.
    pub fn share(&mut self, net: u8) {
        self.reroute(net);
        let shared = |((_, _, flow), _): &(&(u8, u8, u8), &mut Flow)| *flow >= SHARED;
        let all = self.flows.range_mut((net, 0, 0)..=(net, u8::MAX, u8::MAX));
        for (_, flow) in all.filter(shared) {
            flow.inside.values_mut().for_each(|promised| *promised = false);
        }
    }

    /// Records that a network is set up, and disturbs it.
    pub fn set_up(&mut self, net: u8) {
        self.disturb(net);
        self.fresh[usize::from(net)] = true;
    }

    /// Whether a network must not lose frames now.
    #[must_use]
    pub fn is_calm(&self, net: u8) -> bool {
        self.calm[usize::from(net)]
    }

    /// As [`Ledger::disturb`], for all networks.
    pub fn disturb_all(&mut self) {
        (1..=NETS).for_each(|net| self.disturb(net));
    }

    /// Records that a frame left by a port.
    ///
    /// # Errors
    /// The invariant that it violates.
    pub fn left(&mut self, world: &World, port: u8, frame: &Left) -> Result<(), String> {
        let Left { tag, macs, ttl } = *frame;
        let words = || format!("frame {tag:?} at p{port}");
        self.left += 1;
        if tag.net == SWITCH {
            return self.hosts.left(port, frame);
        }
        let [to, from] = macs;
        let control = tag.flow == CONTROL;
        // While its ports change, a kernel may still know an old neighbour.
        let neighbour = |port| to == neighbour_mac(tag.net, port);
        let known = neighbour(port) || (!self.is_calm(tag.net) && (0..4).any(neighbour));
        if from != mac(tag.net, port) || !known {
            return Err(format!("{} left as another network's: to {to:02x?} from {from:02x?}", words()));
        }
        let ttl_right = if control { TTL } else { TTL - 1 };
        if ttl != ttl_right {
            return Err(format!("{} left with TTL {ttl}, not {ttl_right}", words()));
        }
        if let Some(net) = world.net(tag.net).filter(|net| net.age == tag.age) {
            let wanted = match tag.flow {
                0 | 1 => port == net.exit_of(tag.flow, tag.number),
                SOURCED.. if !self.rerouted[usize::from(tag.net)] => port == net.way_of(tag.flow),
                RESTLESS | SHARED.. => net.ports.contains(&port),
                _ => port == net.ports[0],
            };
            if !wanted {
                return Err(format!("{} left by the wrong port of {:?}", words(), net.ports));
            }
        }
        let flow = self.flows.entry((tag.net, tag.age, tag.flow)).or_default();
        if flow.inside.remove(&tag.number).is_none() && !flow.forgone.remove(&tag.number) {
            let what = if flow.seen.contains(&tag.number) { "left twice" } else { "was never sent" };
            return Err(format!("{} {what}", words()));
        }
        flow.seen.insert(tag.number);
        let latest = flow.left.entry(port).or_default();
        let net = usize::from(tag.net);
        let restless = matches!(tag.flow, RESTLESS | SHARED..) && self.rerouted[net];
        let in_order = control || !(self.fresh[net] || restless);
        if tag.flow >= SHARED && in_order && self.calm[net] && *flow.way.get_or_insert(port) != port {
            return Err(format!("{} left by another port than its flow before", words()));
        }
        if tag.number < *latest && in_order {
            return Err(format!("{} left behind number {} of its flow", words(), *latest - 1));
        }
        *latest = (*latest).max(tag.number + 1);
        Ok(())
    }

    /// The system is idle: frames that have not left are lost.
    ///
    /// # Errors
    /// When one of them must not be lost.
    pub fn settle(&mut self, quiet: impl Fn(u8) -> bool) -> Result<(), String> {
        for ((net, age, number), flow) in &mut self.flows {
            let lost: Vec<u32> =
                flow.inside.iter().filter(|(_, promised)| **promised).map(|(at, _)| *at).collect();
            if let Some(first) = lost.first() {
                let count = lost.len();
                return Err(format!(
                    "{count} frames of flow {number} of n{net}({age}) are lost, the first is {first}"
                ));
            }
            flow.inside.clear();
            flow.forgone.clear();
        }
        for net in 1..=NETS {
            self.calm[usize::from(net)] = quiet(net);
            (self.rerouted[usize::from(net)], self.fresh[usize::from(net)]) = (false, false);
        }
        Ok(())
    }
}
