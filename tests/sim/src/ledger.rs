//! What became of every frame: who was to get it, whether it came, and in which order.
//!
//! Flow: frames that are sent → **ledger** ← frames that left. Invariants checked at once: a frame leaves in its own
//! network's colour, by its own port, once, decided once, and behind those of its flow that came before it. Checked when
//! all is quiet: nothing is lost that the node promises not to lose.

use std::collections::{BTreeMap, BTreeSet};

use crate::frame::{Left, Tag, mac, neighbour_mac};
use crate::world::{NETS, World};

/// Flows of a network: in by `a` and out by `b`, back, one whose routes come and go, and what its control plane sends.
pub const FLOWS: u8 = 4;
/// The flow whose routes come and go.
pub const RESTLESS: u8 = 2;
/// What the control plane of a network sends, by its port `a`.
pub const CONTROL: u8 = 3;
/// TTL that frames are sent with.
pub const TTL: u8 = 64;

#[derive(Clone, Default)]
struct Flow {
    next: u32,
    /// Sent and not seen since, with what is promised of them.
    inside: BTreeMap<u32, bool>,
    /// One above the latest that left, by port.
    left: BTreeMap<u8, u32>,
    /// Those that left, while some before them may still come.
    seen: BTreeSet<u32>,
}

/// See the head of this file.
#[derive(Clone, Default)]
pub struct Ledger {
    flows: BTreeMap<(u8, u8, u8), Flow>,
    /// Networks of which nothing may be lost now.
    calm: [bool; NETS as usize + 1],
    /// Networks whose routes change: a packet without a route waits for the control plane, which may have one by then, and those
    /// that come later go by the table. So those of a restless flow may leave in any order.
    rerouted: [bool; NETS as usize + 1],
    /// Frames sent, and left.
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

    /// It was sent.
    pub fn sent(&mut self, tag: Tag) {
        self.sent += 1;
        let promised = self.calm[usize::from(tag.net)] && tag.flow != RESTLESS;
        let flow = self.flows.entry((tag.net, tag.age, tag.flow)).or_default();
        flow.next += 1;
        flow.inside.insert(tag.number, promised);
    }

    /// Frames of a network that are inside.
    #[must_use]
    pub fn inside(&self, net: u8) -> usize {
        let range = (net, 0, 0)..=(net, u8::MAX, u8::MAX);
        self.flows.range(range).map(|(_, flow)| flow.inside.len()).sum()
    }

    /// Something happens to a network that may cost it frames: until all is quiet nothing is promised.
    pub fn disturb(&mut self, net: u8) {
        self.calm[usize::from(net)] = false;
        for (_, flow) in self.flows.range_mut((net, 0, 0)..=(net, u8::MAX, u8::MAX)) {
            flow.inside.values_mut().for_each(|promised| *promised = false);
        }
    }

    /// A route of a network comes or goes.
    pub fn reroute(&mut self, net: u8) {
        self.rerouted[usize::from(net)] = true;
    }

    /// Whether nothing of a network may be lost.
    #[must_use]
    pub fn is_calm(&self, net: u8) -> bool {
        self.calm[usize::from(net)]
    }

    /// The same, to all of them.
    pub fn disturb_all(&mut self) {
        (1..=NETS).for_each(|net| self.disturb(net));
    }

    /// A frame left by a port.
    ///
    /// # Errors
    /// What it should not have done.
    pub fn left(&mut self, world: &World, port: u8, frame: &Left) -> Result<(), String> {
        let Left { tag, macs, ttl } = *frame;
        let words = || format!("frame {tag:?} at p{port}");
        self.left += 1;
        let [to, from] = macs;
        let control = tag.flow == CONTROL;
        // While its ports change, a kernel may still know a neighbour of before.
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
                0 => port == net.ports[1],
                RESTLESS => net.ports.contains(&port),
                _ => port == net.ports[0],
            };
            if !wanted {
                return Err(format!("{} left by the wrong port of {:?}", words(), net.ports));
            }
        }
        let flow = self.flows.entry((tag.net, tag.age, tag.flow)).or_default();
        if flow.inside.remove(&tag.number).is_none() {
            let what = if flow.seen.contains(&tag.number) { "left twice" } else { "was never sent" };
            return Err(format!("{} {what}", words()));
        }
        flow.seen.insert(tag.number);
        let latest = flow.left.entry(port).or_default();
        let in_order = tag.flow != RESTLESS || !self.rerouted[usize::from(tag.net)];
        if tag.number < *latest && in_order {
            return Err(format!("{} left behind number {} of its flow", words(), *latest - 1));
        }
        *latest = (*latest).max(tag.number + 1);
        Ok(())
    }

    /// All is quiet: what is inside is lost.
    ///
    /// # Errors
    /// A frame that should not be.
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
        }
        for net in 1..=NETS {
            self.calm[usize::from(net)] = quiet(net);
            self.rerouted[usize::from(net)] = false;
        }
        Ok(())
    }
}
