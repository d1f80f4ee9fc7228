//! Compares the interfaces and addresses of a namespace with the target state, without changing anything.
//!
//! Flow: [`Config`], interfaces and addresses of the namespace → **comparison** → [`Drift`]. Only items of the target
//! state are compared: additional addresses, routes and interfaces belong to the owner. Invariant: once its index is
//! known, an interface is recognised by it, so that another interface with the same name is not mistaken for it.

use std::fmt;
use std::net::IpAddr;

use hue_wire::Mac;

use super::{Config, ControlNamespace};
use crate::addresses::{self, Address, AddressState};
use crate::error::HostError;
use crate::links::{Link, Links};

/// How a virtual port differs from its target state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Its interface does not exist.
    Missing,
    /// Another interface has its name.
    Replaced,
    /// It is down.
    Down,
    /// It has another MAC address.
    Mac {
        /// The MAC address it has.
        found: Option<Mac>,
        /// The MAC address it should have.
        wanted: Mac,
    },
    /// It has another MTU, in bytes.
    Mtu {
        /// The MTU it has.
        found: u32,
        /// The MTU it should have.
        wanted: u32,
    },
    /// It resolves neighbours and should not, or the other way round.
    Arp {
        /// Whether it should resolve them.
        wanted: bool,
    },
    /// An address is missing.
    Address(IpAddr, u8),
    /// An address is not used, because duplicate address detection found another host with it.
    Duplicate(IpAddr, u8),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("has no interface"),
            Self::Replaced => f.write_str("has another interface under its name"),
            Self::Down => f.write_str("is down"),
            Self::Mac { found: Some(found), wanted } => write!(f, "has MAC address {found}, not {wanted}"),
            Self::Mac { found: None, wanted } => write!(f, "has no MAC address, not {wanted}"),
            Self::Mtu { found, wanted } => write!(f, "has MTU {found}, not {wanted}"),
            Self::Arp { wanted } => write!(f, "has ARP switched {}", if *wanted { "off" } else { "on" }),
            Self::Address(address, len) => write!(f, "lacks address {address}/{len}"),
            Self::Duplicate(address, len) => {
                write!(f, "does not use address {address}/{len}: another host has it (dadfailed)")
            }
        }
    }
}

/// Differences of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Drift {
    /// Index of the virtual port in [`Config::ports`], and how it differs.
    pub ports: Vec<(usize, Difference)>,
    /// Indices of the interfaces, in the order of the virtual ports; 0 if there is none.
    pub indices: Vec<u32>,
}

impl ControlNamespace {
    /// Compares the namespace with its target state. `known` are the interfaces' indices, in the order of the virtual
    /// ports; 0 or none if not yet known.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn look(&self, config: &Config, known: &[u32]) -> Result<Drift, HostError> {
        let mut links = Links::inside(&self.namespace)?;
        let there = links.list()?;
        Ok(differences(config, &there, &addresses::list(links.socket())?, known))
    }
}

/// See [`ControlNamespace::look`].
fn differences(config: &Config, links: &[Link], addresses: &[Address], known: &[u32]) -> Drift {
    let mut drift = Drift::default();
    for (at, port) in config.ports.iter().enumerate() {
        let link = links.iter().find(|link| link.name == port.interface);
        drift.indices.push(link.map_or(0, |link| link.index));
        let mut differs = |difference| drift.ports.push((at, difference));
        let Some(link) = link else {
            differs(Difference::Missing);
            continue;
        };
        if known.get(at).is_some_and(|known| *known != 0 && *known != link.index) {
            differs(Difference::Replaced);
            continue;
        }
        if !link.up {
            differs(Difference::Down);
        }
        if link.mac != Some(port.mac) {
            differs(Difference::Mac { found: link.mac, wanted: port.mac });
        }
        let mtu = u32::from(port.mtu_bytes);
        if link.mtu != mtu {
            differs(Difference::Mtu { found: link.mtu, wanted: mtu });
        }
        if link.no_arp != port.no_arp {
            differs(Difference::Arp { wanted: !port.no_arp });
        }
        for (address, len) in port.all_addresses(config.families) {
            let own = |one: &&Address| (one.link, one.address, one.len) == (link.index, address, len);
            match addresses.iter().find(own) {
                Some(one) if one.state == AddressState::Duplicate => {
                    differs(Difference::Duplicate(address, len));
                }
                // A tentative address will be usable.
                Some(_) => {}
                None => differs(Difference::Address(address, len)),
            }
        }
    }
    drift
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::{Families, PortConfig};
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));

    fn config() -> Config {
        let port = PortConfig {
            interface: "left".to_owned(),
            mac: MAC,
            mtu_bytes: 1500,
            no_arp: false,
            addresses: vec![(OWN, 24)],
        };
        Config { ports: vec![port], ..Config::default() }
    }

    fn link() -> Link {
        Link { index: 7, name: "left".to_owned(), mac: Some(MAC), mtu: 1500, up: true, ..Link::default() }
    }

    fn address(address: IpAddr, len: u8, link: u32) -> Address {
        let state = AddressState::Usable;
        Address { link, address, len, peer: address, broadcast: None, protocol: 0, state }
    }

    fn found(links: &[Link], addresses: &[Address], known: &[u32]) -> Vec<String> {
        let drift = differences(&config(), links, addresses, known);
        drift.ports.iter().map(|(_, difference)| difference.to_string()).collect()
    }

    #[test]
    fn what_the_target_state_says_is_compared_and_no_more() {
        let own = [address(OWN, 24, 7)];
        assert!(found(&[link()], &own, &[7]).is_empty());
        assert!(found(&[link()], &own, &[0]).is_empty());
        assert!(found(&[link()], &own, &[]).is_empty());
        // Additional interfaces and addresses belong to the owner.
        let more = Link { index: 9, name: "dummy0".to_owned(), ..Link::default() };
        let others = [own[0], address(Ipv4Addr::new(10, 60, 0, 1).into(), 24, 7)];
        assert!(found(&[link(), more], &others, &[7]).is_empty());
    }

    #[test]
    fn each_difference_is_named() {
        let own = [address(OWN, 24, 7)];
        let one = |link: Link, words: &str| assert_eq!(found(&[link], &own, &[7]), [words]);
        one(Link { up: false, ..link() }, "is down");
        let other = Some(Mac([2, 0, 0, 0, 0, 9]));
        one(Link { mac: other, ..link() }, "has MAC address 02:00:00:00:00:09, not 02:00:00:00:00:01");
        one(Link { mtu: 1400, ..link() }, "has MTU 1400, not 1500");
        one(Link { name: "other".to_owned(), ..link() }, "has no interface");
        one(Link { index: 8, ..link() }, "has another interface under its name");
        let missing = ["lacks address 10.1.0.1/24"];
        assert_eq!(found(&[link()], &[], &[7]), missing);
        assert_eq!(found(&[link()], &[address(OWN, 25, 7)], &[7]), missing, "another length");
        assert_eq!(found(&[link()], &[address(OWN, 24, 8)], &[7]), missing, "another interface");
        let both = found(&[Link { up: false, ..link() }], &[], &[7]);
        assert_eq!(both, ["is down", "lacks address 10.1.0.1/24"]);
    }

    #[test]
    fn ipv6_addresses_are_compared_with_their_state() {
        let mut config = config();
        config.families = Families::V6;
        let own: IpAddr = "2001:db8::1".parse().unwrap();
        config.ports[0].addresses = vec![(own, 64)];
        let found = |addresses: &[Address]| -> Vec<String> {
            let drift = differences(&config, &[link()], addresses, &[7]);
            drift.ports.iter().map(|(_, difference)| difference.to_string()).collect()
        };
        let local = address("fe80::ff:fe00:1".parse().unwrap(), 64, 7);
        let own = address(own, 64, 7);
        assert!(found(&[own, local]).is_empty());
        assert!(found(&[Address { state: AddressState::Tentative, ..own }, local]).is_empty());
        assert_eq!(found(&[own]), ["lacks address fe80::ff:fe00:1/64"]);
        let taken = Address { state: AddressState::Duplicate, ..own };
        assert_eq!(
            found(&[taken, local]),
            ["does not use address 2001:db8::1/64: another host has it (dadfailed)"]
        );
    }

    #[test]
    fn indices_are_in_the_order_of_the_ports() {
        assert_eq!(differences(&config(), &[link()], &[], &[]).indices, [7]);
        assert_eq!(differences(&config(), &[], &[], &[]).indices, [0]);
    }
}
