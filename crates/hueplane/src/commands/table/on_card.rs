//! Tables on the card: written through its registers, and looked up with packets.
//!
//! Flow: networks and changes → driver → the twin's memories; an address → a frame through the entire card →
//! the next hop with which it left. Each network has a MAC address on the first port, and the MAC address of
//! each next hop contains its number, so outgoing frames show which next hop the card found. Only one frame
//! is inside at a time, so the words that the card counts are those of its lookup. IPv4 and IPv6 have a card each.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::Ipv4Addr;

use hue_card::{Card, CardKey, Layout, Offered, Twin, Way};
use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Class, Kind, Settings, ipv4};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, Update, VirtualPort};
use hue_tables::{Change, NextHop, Vid};
use hue_wire::ethernet::EtherType;
use hue_wire::ipv4::Header;
use hue_wire::{Mac, ip};
use zerocopy::IntoBytes;

use super::amount::Amount;
use super::stores::Refused;
use crate::cli::Tables;
use crate::failure::Failure;

/// The port through which frames enter and leave.
const PORT: PortId = PortId::new(0);
const MTU_BYTES: u16 = 1500;
/// First bytes of the MAC addresses of networks and of next hops; the last two are a number. Locally
/// administered.
const NETWORK: [u8; 4] = [0x02, 0x68, 0x75, 0x6e];
const HOP: [u8; 4] = [0x02, 0x68, 0x75, 0x68];

/// An address family whose addresses packets can ask the card for.
pub trait Family: CardKey {
    /// The EtherType of its packets.
    const ETHERTYPE: EtherType;

    /// What a network needs so that any address can be looked up.
    fn settings() -> Settings;

    /// Whether packets can be used to look up an address: routers treat some addresses differently.
    fn can_ask(self) -> bool;

    /// A packet without payload to this address.
    fn packet(self) -> Vec<u8>;
}

impl Family for u32 {
    const ETHERTYPE: EtherType = EtherType::IPV4;

    fn settings() -> Settings {
        Settings::Ipv4(ipv4::Settings { forward_martians: true })
    }

    fn can_ask(self) -> bool {
        self >> 28 != 0xe && self != Self::MAX
    }

    fn packet(self) -> Vec<u8> {
        let source = Ipv4Addr::new(192, 0, 2, 1); // RFC 5737
        let total_length = size_of::<Header>() as u16;
        Header::new(source, Ipv4Addr::from(self), ip::Protocol::UDP, 64, total_length).as_bytes().to_vec()
    }
}

impl Family for u128 {
    const ETHERTYPE: EtherType = EtherType::IPV6;

    fn settings() -> Settings {
        Settings::of(Kind::Ipv6)
    }

    /// Not multicast, link-local, unspecified or loopback addresses.
    fn can_ask(self) -> bool {
        self >> 120 != 0xff && self >> 118 != 0xfe80 >> 6 && self > 1
    }

    fn packet(self) -> Vec<u8> {
        let source: u128 = 0x2001_0db8 << 96 | 1; // RFC 3849
        // No payload and no next header, hop limit 64 (RFC 8200 §3).
        let fixed = [0x60, 0, 0, 0, 0, 0, 59, 64];
        [&fixed[..], &source.to_be_bytes(), &self.to_be_bytes()].concat()
    }
}

/// A card with tables.
pub struct OnCard<K> {
    card: Card<Twin>,
    /// Number of next hops that each network has on the card.
    hops: BTreeMap<Vid, usize>,
    external: bool,
    key: PhantomData<K>,
}

impl<K: Family> OnCard<K> {
    /// Creates a card with the requested image, without networks.
    pub fn new(tables: &Tables) -> Result<Self, Failure> {
        let mut card = Card::new(hueplaned::options::images().load(&tables.image)?.start()?)?;
        card.set_offline()?;
        let external = matches!(card.description().layout, Layout::Sram | Layout::Dir);
        Ok(Self { card, hops: BTreeMap::new(), external, key: PhantomData })
    }

    /// Adds a network with an empty table.
    pub fn add_network(&mut self, vid: Vid, name: &str) -> Result<(), Refused> {
        let mac = mac(NETWORK, vid.get());
        let program = Program {
            vid,
            ports: vec![VirtualPort {
                name: "port".to_owned(),
                port: PORT,
                mac,
                mtu_bytes: MTU_BYTES,
                tunnel: None,
            }],
            rows: vec![Row { vid, vport: 0, select: Match::Mac { port: PORT, mac } }],
            name: name.to_owned(),
            settings: K::settings(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::none(K::settings().kind()),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        };
        self.card.load(&[program]).map_err(refused)?;
        self.hops.insert(vid, 0);
        Ok(())
    }

    /// Changes routes of a network atomically.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<(), Refused> {
        let have = self.hops.get(&vid).copied().unwrap_or_default();
        let need = changes.iter().filter_map(|(_, hop)| Some(usize::from((*hop)?.get()) + 1)).max();
        let need = need.unwrap_or_default().max(have);
        let hop = |index: usize| {
            let number = u16::try_from(index).ok()?;
            let to = Adjacency::forward(PORT, mac(NETWORK, vid.get()), mac(HOP, number), MTU_BYTES);
            Some((NextHop::new(number)?, to))
        };
        let new: Vec<_> = (have..need).filter_map(hop).collect();
        self.card.update(vid, &Update::of_routes(changes).with_hops(&new)).map_err(refused)?;
        self.hops.insert(vid, need);
        Ok(())
    }

    /// Memory of all networks' routes.
    pub fn total(&self) -> Amount {
        Amount::bytes(self.card.capacity().table_bytes)
    }

    /// Looks up an address with a packet. Also returns the number of words read, if they are in external
    /// memory.
    pub fn lookup(&mut self, vid: Vid, key: K) -> Result<(u16, Option<u32>), Failure> {
        if !key.can_ask() {
            return Err(Failure::Input(format!(
                "{}: {} cannot be looked up on the card, because the router itself receives such packets; omit them",
                key.to_addr(),
                if K::BITS == 32 {
                    "multicast addresses"
                } else {
                    "multicast and link-local addresses, :: and ::1"
                },
            )));
        }
        let (to, from) = (mac(NETWORK, vid.get()).octets(), mac(HOP, 0).octets());
        let frame = [&to[..], &from, &K::ETHERTYPE.0.to_be_bytes(), &key.packet()].concat();
        let before = self.card.reads()?;
        let mut found = NextHop::NONE_WORD;
        let mut odd = None;
        self.card.run(&[Offered { port: PORT, time_ns: 0, bytes: &frame }], |sent| match sent.way {
            Way::Port(_) => match sent.bytes {
                [a, b, c, d, high, low, ..] if [*a, *b, *c, *d] == HOP => {
                    found = u16::from_be_bytes([*high, *low]);
                }
                _ => odd = Some("left with a MAC address that belongs to no next hop".to_owned()),
            },
            // A packet without a route goes to the control plane, which answers with ICMP.
            Way::Control { outcome, .. }
                if outcome.is_some_and(|reason| reason.class() == Some(Class::Unreachable)) => {}
            Way::Control { outcome, .. } => odd = Some(format!("went to the control plane: {outcome:?}")),
        })?;
        if let Some(why) = odd {
            let address = key.to_addr();
            return Err(Failure::Broken(format!("network {}: the packet to {address} {why}", vid.get())));
        }
        let after = self.card.reads()?;
        Ok((found, self.external.then(|| after.0.wrapping_sub(before.0))))
    }
}

fn mac([a, b, c, d]: [u8; 4], number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([a, b, c, d, high, low])
}

/// The limit that was reached. The caller adds the network's name.
fn refused(error: SubstrateError) -> Refused {
    let limit = match error {
        SubstrateError::Room { substrate, what, needed, max, .. } => {
            format!(
                "it needs {needed} {what}, and {substrate} has {max}; use fewer routes or another --image"
            )
        }
        SubstrateError::Words { substrate, place, needed, free, max, .. } => format!(
            "it needs {needed} more route words in {place} of {substrate}, and {free} of {max} are free; use fewer routes or \
             another --image"
        ),
        SubstrateError::ImageNetworks { count, image, max } => {
            format!(
                "it is network number {count}, but image {image} holds only {max} networks; use fewer, or another --image"
            )
        }
        SubstrateError::ImageKind { kind, image, .. } => {
            let text = format!(
                "there are {} routes, but image {image} has no such kind; use another --image",
                kind.name()
            );
            return Refused::Other(Failure::Input(text));
        }
        other => return Refused::Other(other.into()),
    };
    Refused::Full(limit)
}
