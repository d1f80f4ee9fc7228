//! Tables on the card: written through its registers, and looked up with packets.
//!
//! Flow: networks and changes → driver → the twin's memories; an address → a frame through the entire card →
//! the next hop with which it left. Each network has a MAC address on the first port, and the MAC address of
//! each next hop contains its number, so outgoing frames show which next hop the card found. Only one frame
//! is inside at a time, so the words that the card counts are those of its lookup.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hue_card::{Card, Layout, Offered, Twin, Way};
use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Class, Settings, ipv4};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, VirtualPort};
use hue_tables::{Change, NextHop, Vid};
use hue_wire::ipv4::Header;
use hue_wire::{Mac, ip};
use zerocopy::IntoBytes;

use super::amount::Amount;
use super::stores::Refused;
use crate::cli::Tables;
use crate::failure::Failure;

/// The port through which frames enter and leave.
const PORT: PortId = PortId::new(0);
/// Length of the Ethernet header and the IPv4 header.
const FRAME_BYTES: usize = 34;
const MTU_BYTES: u16 = 1500;
/// First bytes of the MAC addresses of networks and of next hops; the last two are a number. Locally
/// administered.
const NETWORK: [u8; 4] = [0x02, 0x68, 0x75, 0x6e];
const HOP: [u8; 4] = [0x02, 0x68, 0x75, 0x68];

/// A card with tables.
pub struct OnCard {
    card: Card<Twin>,
    /// Number of next hops that each network has on the card.
    hops: BTreeMap<Vid, usize>,
    external: bool,
}

impl OnCard {
    /// Creates a card with the requested image, without networks.
    pub fn new(tables: &Tables) -> Result<Self, Failure> {
        let mut card = Card::new(hueplaned::options::images().load(&tables.image)?.start()?)?;
        card.set_offline()?;
        let external = matches!(card.description().layout, Layout::Sram | Layout::Dir);
        Ok(Self { card, hops: BTreeMap::new(), external })
    }

    /// Adds a network with an empty table.
    pub fn add_network(&mut self, vid: Vid, name: &str) -> Result<(), Refused> {
        let mac = mac(NETWORK, vid.get());
        let program = Program {
            vid,
            ports: vec![VirtualPort { name: "port".to_owned(), port: PORT, mac, mtu_bytes: MTU_BYTES }],
            rows: vec![Row { vid, vport: 0, select: Match::Mac { port: PORT, mac } }],
            name: name.to_owned(),
            // Any address can be looked up.
            settings: Settings::Ipv4(ipv4::Settings { forward_martians: true }),
            next_hops: Vec::new(),
            entries: Entries::Lpm32(Vec::new()),
            rate_limit: None,
            weight: 1,
            gated: false,
        };
        self.card.load(&[program]).map_err(refused)?;
        self.hops.insert(vid, 0);
        Ok(())
    }

    /// Changes routes of a network atomically.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), Refused> {
        let have = self.hops.get(&vid).copied().unwrap_or_default();
        let need = changes.iter().filter_map(|(_, hop)| Some(usize::from((*hop)?.get()) + 1)).max();
        let need = need.unwrap_or_default().max(have);
        let hop = |index: usize| {
            let number = u16::try_from(index).ok()?;
            let to = Adjacency::forward(PORT, mac(NETWORK, vid.get()), mac(HOP, number), MTU_BYTES);
            Some((NextHop::new(number)?, to))
        };
        let new: Vec<_> = (have..need).filter_map(hop).collect();
        if !new.is_empty() {
            self.card.update_hops(vid, &new).map_err(refused)?;
            self.hops.insert(vid, need);
        }
        self.card.update_routes(vid, changes).map_err(refused)
    }

    /// Memory of all networks' routes.
    pub fn total(&self) -> Amount {
        Amount::bytes(self.card.capacity().table_bytes)
    }

    /// Whether packets can be used to look up an address: routers treat multicast addresses differently.
    pub const fn can_ask(address: u32) -> bool {
        address >> 28 != 0xe && address != u32::MAX
    }

    /// Looks up an address with a packet. Also returns the number of words read, if they are in external
    /// memory.
    pub fn lookup(&mut self, vid: Vid, address: u32) -> Result<(u16, Option<u32>), Failure> {
        if !Self::can_ask(address) {
            return Err(Failure::Input(format!(
                "{}: multicast addresses cannot be looked up on the card, because the router itself receives such packets; omit them",
                Ipv4Addr::from(address)
            )));
        }
        let mut frame = [0; FRAME_BYTES];
        let (ethernet, packet) = frame.split_at_mut(FRAME_BYTES - size_of::<Header>());
        ethernet[..6].copy_from_slice(&mac(NETWORK, vid.get()).octets());
        ethernet[6..12].copy_from_slice(&mac(HOP, 0).octets());
        ethernet[12..].copy_from_slice(&0x0800_u16.to_be_bytes());
        let source = Ipv4Addr::new(192, 0, 2, 1); // RFC 5737
        let total_length = size_of::<Header>() as u16;
        let header = Header::new(source, Ipv4Addr::from(address), ip::Protocol::UDP, 64, total_length);
        packet.copy_from_slice(header.as_bytes());
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
            let address = Ipv4Addr::from(address);
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
        other => return Refused::Other(other.into()),
    };
    Refused::Full(limit)
}
