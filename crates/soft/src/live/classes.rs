//! The limits that a port enforces before its receive ring: the classes of design select and the share of each.
//!
//! The class of a network is its id. A share bounds a network's frames between the wire and the end of its queue.
//! Group frames have [`SHARE_GROUP`]; the rest of the ring is shared equally by the networks on the port, so that no
//! network can take another's part. If there are many networks, each gets [`SHARE_MIN`]; together this may exceed the
//! ring.
//!
//! Unicast frames that only the ARP rule of [`super::steering`] assigns to a network need a class too. On a port with
//! inner prefixes and no network that takes all frames, they share a class of their own ([`CLASS_OTHER`]). With the
//! network's class, anyone who sends to its MAC could use up its share.

use hue_demux::{Match, PortId};
use hue_ports::{CLASS_GROUP, CLASS_OTHER, ClassRule};

use crate::network::Network;

/// Packets of a receive ring, as ports are opened unless told otherwise.
const RING_PACKETS: u32 = 2048;
/// Packets of group frames.
const SHARE_GROUP: u32 = 256;
/// Least share of a network, packets.
const SHARE_MIN: u32 = 64;

/// Limits of a port: rules, and packets of each class that may be between its wire and the queues.
pub type Classes = (Vec<ClassRule>, Vec<(u16, u32)>);

/// Rules and shares of a port.
pub(crate) fn of_port(port: PortId, networks: &[Network]) -> Classes {
    let mut rules = Vec::new();
    let mut classes = Vec::new();
    let (mut inner, mut all) = (false, false);
    for network in networks {
        let class = network.vid.get();
        let before = rules.len();
        for row in &network.shape.rows {
            match row.select {
                Match::Mac { port: at, mac } if at == port => {
                    rules.push(ClassRule::Mac { mac: mac.0, class })
                }
                Match::Inner { port: at, prefix } if at.is_none_or(|at| at == port) => {
                    inner = true;
                    rules.push(ClassRule::Inner { addr: prefix.addr(), len: prefix.len(), class });
                }
                Match::Port(at) if at == port => {
                    all = true;
                    rules.push(ClassRule::Default { class });
                }
                _ => {}
            }
        }
        if rules.len() > before {
            classes.push(class);
        }
    }
    if inner && !all {
        rules.push(ClassRule::Default { class: CLASS_OTHER });
        classes.push(CLASS_OTHER);
    }
    let share = ((RING_PACKETS - SHARE_GROUP) / (classes.len() as u32).max(1)).max(SHARE_MIN);
    let networks = classes.into_iter().map(|class| (class, share));
    let quotas = networks.chain([(CLASS_GROUP, SHARE_GROUP)]).collect();
    (rules, quotas)
}

#[cfg(test)]
pub(super) mod tests {
    use hue_demux::Row;
    use hue_planes::{Kind, Settings};
    use hue_substrate::{Entries, Program};
    use hue_tables::Vid;
    use hue_wire::Mac;

    use super::*;

    /// A network of these rows.
    pub fn network(id: u16, selects: &[Match]) -> Network {
        network_of(Kind::Ipv4, id, selects)
    }

    /// The same, of a kind.
    pub fn network_of(kind: Kind, id: u16, selects: &[Match]) -> Network {
        let vid = Vid::new(id).unwrap();
        let rows = selects.iter().map(|select| Row { vid, vport: 0, select: *select }).collect();
        let program = Program {
            vid,
            name: format!("net{id}"),
            settings: Settings::of(kind),
            ports: Vec::new(),
            rows,
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::none(kind),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        };
        Network::new(&program, None)
    }

    #[test]
    fn rules_follow_design_select_and_shares_fit_the_ring() {
        let (p0, p1) = (PortId::new(0), PortId::new(1));
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let prefix = "10.0.0.0/8".parse().unwrap();
        let networks = [
            network(1, &[Match::Mac { port: p0, mac }, Match::Mac { port: p1, mac }]),
            network(3, &[Match::Inner { port: None, prefix }]),
            network(4, &[Match::Port(p1)]),
        ];
        let (rules, quotas) = of_port(p0, &networks);
        let inner = ClassRule::Inner { addr: 10 << 24, len: 8, class: 3 };
        let spare = ClassRule::Default { class: CLASS_OTHER };
        assert_eq!(rules, [ClassRule::Mac { mac: mac.0, class: 1 }, inner, spare]);
        assert_eq!(quotas, [(1, 597), (3, 597), (CLASS_OTHER, 597), (CLASS_GROUP, 256)]);
        let (rules, _) = of_port(p1, &networks);
        assert_eq!(rules, [ClassRule::Mac { mac: mac.0, class: 1 }, inner, ClassRule::Default { class: 4 }]);
        assert_eq!(of_port(p0, &[]), (vec![], vec![(CLASS_GROUP, SHARE_GROUP)]));
        let many: Vec<_> = (1..=200).map(|id| network(id, &[Match::Port(p0)])).collect();
        assert_eq!(of_port(p0, &many).1[0], (1, SHARE_MIN));
    }
}
