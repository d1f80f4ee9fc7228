//! Losses at the card's wires by network, with the same reasons and owners as at ports of workers.
//!
//! Flow: a wire's port drops frames before its ring by class, and a class is a network → [`Seen`] → [`Crossings`] of
//! the network. If a wire does not accept a frame from the card, the loss belongs to the network whose router address
//! is the frame's source. Invariants: each loss is counted once; losses from before a network was added do not count
//! for it.

use hue_ports::{ClassLosses, Port};
use hue_substrate::Program;
use hue_tables::Vid;

use super::totals::Crossings;

/// Losses of each network at a wire that have already been counted, by VID.
pub(super) struct Seen(Box<[ClassLosses]>);

impl Default for Seen {
    fn default() -> Self {
        Self(vec![ClassLosses::default(); usize::from(Vid::MAX) + 1].into_boxed_slice())
    }
}

impl Seen {
    /// Adds a network's losses at a port since the last call to its `crossings`.
    pub fn look(&mut self, port: &dyn Port, vid: Vid, crossings: &mut Crossings) {
        let Some(seen) = self.0.get_mut(vid.index()) else { return };
        let more = port.lost(vid.get()).since(seen);
        crossings.ring_quota += more.ring_quota;
        crossings.ring_full += more.ring_full;
    }
}

/// The network of a frame that leaves through a port of the card: the network whose router address on that port is
/// the frame's source.
pub(super) fn sender<'p>(
    mut programs: impl Iterator<Item = &'p Program>,
    number: usize,
    source: [u8; 6],
) -> Option<Vid> {
    let is = |program: &&Program| {
        program.ports.iter().any(|port| port.port.index() == number && port.mac.octets() == source)
    };
    programs.find(is).map(|program| program.vid)
}

#[cfg(test)]
mod tests {
    use hue_demux::PortId;
    use hue_planes::{Kind, Settings};
    use hue_ports::{Driver, DriverCounters, Packet, Pool, PortError};
    use hue_substrate::{Entries, VirtualPort};
    use hue_wire::Mac;

    use super::*;

    /// A port that has lost this many frames of every class.
    struct Lossy(u64);

    impl Port for Lossy {
        fn driver(&self) -> Driver {
            Driver::Memory
        }

        fn receive(
            &mut self,
            _: &mut Pool,
            _: u64,
            _: &mut Vec<Packet>,
            _: usize,
        ) -> Result<usize, PortError> {
            Ok(0)
        }

        fn send(&mut self, _: &mut Pool, packet: Packet) -> Result<(), Packet> {
            Err(packet)
        }

        fn flush(&mut self, _: &mut Pool) -> Result<(), PortError> {
            Ok(())
        }

        fn close(&mut self, _: &mut Pool) {}

        fn readiness(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            None
        }

        fn lost(&self, _: u16) -> ClassLosses {
            ClassLosses { ring_quota: self.0, ring_full: self.0 * 2 }
        }

        fn counters(&self) -> DriverCounters {
            DriverCounters::default()
        }
    }

    #[test]
    fn each_loss_is_counted_once() {
        let (mut seen, vid) = (Seen::default(), Vid::new(7).unwrap());
        let mut crossings = Crossings::default();
        for lost in [0, 5, 5, 12] {
            seen.look(&Lossy(lost), vid, &mut crossings);
        }
        assert_eq!((crossings.ring_quota, crossings.ring_full), (12, 24));
        let mut other = Crossings::default();
        seen.look(&Lossy(12), Vid::new(8).unwrap(), &mut other);
        assert_eq!(other.ring_quota, 12, "losses of another network count for that network");
    }

    #[test]
    fn a_frame_is_the_network_s_whose_router_sent_it() {
        let program = |id: u16, port: u8| Program {
            vid: Vid::new(id).unwrap(),
            name: format!("n{id}"),
            settings: Settings::of(Kind::Ipv4),
            ports: vec![VirtualPort {
                name: "left".into(),
                port: PortId::new(port),
                mac: Mac([2, 0, 0, 0, 0, id as u8]),
                mtu_bytes: 1500,
                tunnel: None,
            }],
            rows: Vec::new(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::Lpm32(Vec::new()),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        };
        let programs = [program(1, 0), program(2, 0), program(3, 1)];
        let whose = |number, last| sender(programs.iter(), number, [2, 0, 0, 0, 0, last]).map(Vid::get);
        assert_eq!((whose(0, 2), whose(1, 3)), (Some(2), Some(3)));
        assert_eq!((whose(1, 2), whose(0, 9)), (None, None), "the port matters, too");
    }
}
