//! Tracks every frame of the switch: by which ports it should leave, whether it did, and in which order.
//!
//! Flow: frames of its hosts → **hosts** ← frames that left. Invariants checked at once: a frame leaves as it was sent, never by the
//! port of its arrival, by each other port at most once and after earlier frames of its flow; if the switch knows the host that it is
//! for, only by that host's port. Nothing that happens to the node makes a switch forget a host, unless the switch itself goes.
//! Checked when the system is idle: no frame between known hosts is lost, and a flood has left by all other ports. A card that
//! is busy leaves out copies of floods and counts them, so as many may be missing as are counted.
//! A host is known once it has sent while the system was idle, until it moves to another port.

use std::collections::BTreeMap;

use hue_differential::Random;

use crate::frame::{Left, Tag};
use crate::ledger::TTL;
use crate::world::{SWITCH, SWITCH_PORTS};

/// Hosts of the switch.
pub const HOSTS: u8 = 6;
/// A host that does not exist.
pub const NOBODY: u8 = HOSTS;
/// All hosts.
pub const EVERYBODY: u8 = HOSTS + 1;
/// Hosts that a frame can be for.
const DESTINATIONS: u8 = HOSTS + 2;

/// Where a frame should leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// By this port, behind which its host is.
    Port(u8),
    /// By none: its host is behind the port of its arrival.
    Nowhere,
    /// By all other ports.
    All,
    /// By some other ports: whether the switch knows its host is not certain.
    Some,
}

#[derive(Clone, Debug)]
struct Sent {
    to: u8,
    way: Way,
    /// Whether it must not be lost.
    promised: bool,
    /// Sets of ports: by which it may leave, and by which it left.
    others: u8,
    left: u8,
}

/// A flow: between two hosts, from a port, in an incarnation of the switch.
type FlowId = (u8, u8);

/// See the head of this file.
#[derive(Clone, Default)]
pub struct Hosts {
    /// The ports that hosts are behind; `true`: the switch knows it.
    at: [(u8, bool); HOSTS as usize],
    /// Frames since the system was idle.
    sent: BTreeMap<(FlowId, u32), Sent>,
    next: BTreeMap<FlowId, u32>,
    /// One above the highest number that left, by flow and port.
    latest: BTreeMap<(FlowId, u8), u32>,
    /// Frames that are not its hosts', by their bytes: sets of ports by which they may leave if it gets them, and whose they are, if
    /// a router's.
    strays: BTreeMap<Vec<u8>, Vec<(u8, Option<u8>)>>,
    /// Since the system was idle: hosts that moved to another port, frames from known hosts to known hosts, and floods.
    pub counts: (u64, u64, u64),
}

fn bit(port: u8) -> u8 {
    1 << port
}

fn ports_but(port: u8) -> u8 {
    SWITCH_PORTS.into_iter().filter(|other| *other != port).map(bit).sum()
}

/// The MAC address of a host.
#[must_use]
pub fn host_mac(host: u8) -> [u8; 6] {
    if host == EVERYBODY { [0xff; 6] } else { [2, 0xbb, 0, 0, SWITCH, host] }
}

/// The flow of frames from a host behind a port to another host.
fn flow_of(from: u8, to: u8, port: u8) -> u8 {
    let port = SWITCH_PORTS.iter().position(|one| *one == port).unwrap_or_default() as u8;
    (port * HOSTS + from) * DESTINATIONS + to
}

/// The hosts of a flow.
fn ends(flow: u8) -> [u8; 2] {
    [flow / DESTINATIONS % HOSTS, flow % DESTINATIONS]
}

impl Hosts {
    /// Puts all hosts behind ports; the switch knows none.
    pub fn set_up(&mut self, random: &mut Random) {
        self.at = std::array::from_fn(|_| (random.pick(&SWITCH_PORTS), false));
        self.sent.values_mut().for_each(|sent| (sent.way, sent.promised) = (Way::Some, false));
    }

    /// The switch may have forgotten its hosts.
    pub fn doubt(&mut self) {
        self.at.iter_mut().for_each(|(_, known)| *known = false);
        self.sent.values_mut().filter(|sent| sent.to < HOSTS).for_each(|sent| sent.way = Way::Some);
    }

    /// A host moves to another port.
    pub fn relocate(&mut self, host: u8, port: u8) {
        self.at[usize::from(host)] = (port, false);
        self.counts.0 += 1;
        // Those on their way meet the old entry, or the new one.
        for sent in self.sent.values_mut().filter(|sent| sent.to == host) {
            (sent.way, sent.promised) = (Way::Some, false);
        }
    }

    /// Frames that are inside may be lost.
    pub fn disturb(&mut self) {
        self.sent.values_mut().for_each(|sent| sent.promised = false);
    }

    /// The tag, port and MAC addresses of a frame that a host is about to send.
    #[must_use]
    pub fn next(&self, age: u8, from: u8, to: u8) -> (Tag, u8, [[u8; 6]; 2]) {
        let (port, _) = self.at[usize::from(from)];
        let flow = flow_of(from, to, port);
        let number = self.next.get(&(age, flow)).copied().unwrap_or_default();
        (Tag { net: SWITCH, age, flow, number }, port, [host_mac(to), host_mac(from)])
    }

    /// Records that it was sent.
    pub fn sent(&mut self, tag: Tag, port: u8, calm: bool) {
        let [_, to] = ends(tag.flow);
        let way = match self.at.get(usize::from(to)) {
            None => Way::All,
            Some((_, false)) => Way::Some,
            Some((at, true)) if *at == port => Way::Nowhere,
            Some((at, true)) => Way::Port(*at),
        };
        match way {
            Way::Port(_) => self.counts.1 += 1,
            Way::All => self.counts.2 += 1,
            Way::Nowhere | Way::Some => {}
        }
        let id = (tag.age, tag.flow);
        self.next.insert(id, tag.number + 1);
        let sent = Sent { to, way, promised: calm, others: ports_but(port), left: 0 };
        self.sent.insert((id, tag.number), sent);
    }

    /// Number of frames that have not left where they should.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.sent.values().filter(|sent| sent.is_inside()).count()
    }

    /// Records a frame that left by a port.
    ///
    /// # Errors
    /// The invariant that it violates.
    pub fn left(&mut self, port: u8, frame: &Left) -> Result<(), String> {
        let Left { tag, macs, ttl } = *frame;
        let [from, to] = ends(tag.flow);
        let words = |what: &str| Err(format!("frame {tag:?} from host {from} to {to} at p{port} {what}"));
        if (macs, ttl) != ([host_mac(to), host_mac(from)], TTL) {
            return words(&format!("was changed: {macs:02x?}, TTL {ttl}"));
        }
        let id = (tag.age, tag.flow);
        let Some(sent) = self.sent.get_mut(&(id, tag.number)) else {
            return words("was never sent, or left after all was quiet");
        };
        if sent.others & bit(port) == 0 {
            return words("left by the port of its arrival, or by one that the switch does not have");
        }
        if sent.left & bit(port) != 0 {
            return words("left twice");
        }
        if matches!(sent.way, Way::Nowhere) || matches!(sent.way, Way::Port(at) if at != port) {
            return words(&format!("left by the wrong port: {:?}", sent.way));
        }
        sent.left |= bit(port);
        let latest = self.latest.entry((id, port)).or_default();
        if tag.number < *latest {
            return words(&format!("left behind number {} of its flow", *latest - 1));
        }
        *latest = tag.number + 1;
        Ok(())
    }

    /// Records a frame that arrives at a port and is not its hosts': of a router, or of nobody.
    pub fn stray(&mut self, port: u8, bytes: &[u8], router: Option<u8>) {
        if SWITCH_PORTS.contains(&port) {
            self.strays.entry(bytes.to_vec()).or_default().push((ports_but(port), router));
        }
    }

    /// Whether a frame that left by a port is such a one, which the switch forwarded. A router gets its own frames while it is there.
    pub fn takes_stray(&mut self, port: u8, bytes: &[u8], is_there: impl Fn(u8) -> bool) -> bool {
        let mut same = self.strays.get_mut(bytes).into_iter().flatten();
        let good = same.find(|(ports, router)| ports & bit(port) != 0 && !router.is_some_and(&is_there));
        good.map(|(ports, _)| *ports &= !bit(port)).is_some()
    }

    /// Hosts that the switch may not know.
    #[must_use]
    pub fn unknown(&self) -> Vec<u8> {
        (0..).zip(self.at).filter(|(_, (_, known))| !known).map(|(host, _)| host).collect()
    }

    /// The system is idle, and these hosts have sent since it was. At most `lost` copies were lost and counted.
    ///
    /// # Errors
    /// When a frame must not be lost, or a flood has not left by all ports.
    pub fn settle(&mut self, introduced: &[u8], lost: u64) -> Result<(), String> {
        let mut missing = 0;
        let mut first = None;
        for (((age, flow), number), sent) in self.sent.iter().filter(|(_, sent)| sent.promised) {
            let ([from, to], way) = (ends(*flow), sent.way);
            match way {
                Way::Port(_) if sent.left == 0 => {
                    return Err(format!(
                        "frame {number} from host {from} to {to} of n{SWITCH}({age}) is lost: {sent:?}"
                    ));
                }
                Way::All if sent.is_inside() => {
                    missing += u64::from((sent.others & !sent.left).count_ones());
                    first.get_or_insert((from, to, *number, sent.clone()));
                }
                _ => {}
            }
        }
        if missing > lost {
            return Err(format!(
                "{missing} copies of floods are missing, {lost} are counted, one is {first:?}"
            ));
        }
        self.sent.clear();
        self.strays.clear();
        introduced.iter().for_each(|host| self.at[usize::from(*host)].1 = true);
        self.counts = (0, 0, 0);
        Ok(())
    }
}

impl Sent {
    fn is_inside(&self) -> bool {
        match self.way {
            Way::Nowhere => false,
            Way::All => self.left != self.others,
            Way::Port(_) | Way::Some => self.left == 0,
        }
    }
}
