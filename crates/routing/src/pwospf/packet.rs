//! The packets of PW-OSPF, as bytes and as values.
//!
//! Layout: the OSPFv2 header of 24 bytes (RFC 2328 §A.3.1: version, type, length, router id, area, checksum, kind of
//! authentication, 8 bytes of authentication), then
//! - hello: mask of the link u32, hello interval u16 in seconds, padding u16;
//! - LSU: sequence number u16, hops left u16, number of advertisements u32, then per advertisement subnet u32, mask u32 and
//!   router id u32, which is 0 on a link without routers.
//!
//! The checksum leaves out the authentication. The router id of an LSU is that of the router that originated it, also when
//! another router passes it on. Source: Stanford CS344, "Pee-Wee OSPF Protocol Details".

use std::fmt;
use std::net::Ipv4Addr;

use hue_tables::Prefix4;
use hue_wire::checksum::Sum;

use super::drops::Drop;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// Bytes of a hello.
pub const HELLO_BYTES: usize = HEADER_BYTES + 8;
/// Bytes of an LSU without advertisements.
pub const LSU_BYTES: usize = HEADER_BYTES + 8;
/// Bytes of an advertisement.
pub const ADVERTISEMENT_BYTES: usize = 12;
/// Most advertisements in an LSU: an update of this size is 12,320 bytes, which IP sends in fragments.
pub const ADVERTISEMENTS_MAX: usize = 1024;
/// The protocol's number in the IP header, that of OSPF.
pub const IP_PROTOCOL: u8 = 89;
/// Where hellos go: all routers of the link.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 5);

const VERSION: u8 = 2;
const HELLO: u8 = 1;
const LSU: u8 = 4;
/// Where the checksum is.
const CHECKSUM_AT: usize = 12;
/// Where the authentication is, which the checksum leaves out.
const AUTHENTICATION_AT: usize = 16;

/// The name of a router in its area: neither 0.0.0.0 nor 255.255.255.255.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouterId(Ipv4Addr);

impl RouterId {
    /// The id with this number; `None` for the two that are not valid.
    #[must_use]
    pub const fn new(id: Ipv4Addr) -> Option<Self> {
        if id.to_bits() == 0 || id.to_bits() == u32::MAX { None } else { Some(Self(id)) }
    }

    /// The id in the form of an address.
    #[must_use]
    pub const fn get(self) -> Ipv4Addr {
        self.0
    }
}

impl fmt::Display for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The router that originated it.
    pub router: RouterId,
    /// Its area.
    pub area: Ipv4Addr,
    /// What it says.
    pub body: Body,
}

/// What a packet says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// "I am here."
    Hello(Hello),
    /// "These are my links."
    Lsu(Lsu),
}

/// A hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The mask of the link, as it is: not checked to be one.
    pub mask: u32,
    /// Time between hellos, in seconds.
    pub interval_s: u16,
}

/// A link state update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lsu {
    /// Which of two updates of a router is newer; see [`is_newer`](super::database::is_newer).
    pub sequence: u16,
    /// Hops that it may still take.
    pub ttl: u16,
    /// The router's links.
    pub links: Vec<Advertisement>,
}

/// A link of a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Advertisement {
    /// Addresses on the link.
    pub prefix: Prefix4,
    /// A router on the link; `None` if there is none.
    pub router: Option<RouterId>,
}

/// The mask of `len` bits.
#[must_use]
pub const fn mask(len: u8) -> u32 {
    match u32::MAX.checked_shr(len as u32) {
        Some(hosts) => !hosts,
        None => u32::MAX,
    }
}

/// Whether packets can be routed to a subnet: not to this host, not to groups.
#[must_use]
pub fn is_routed(prefix: Prefix4) -> bool {
    let address = Ipv4Addr::from_bits(prefix.addr());
    let is_this_network = prefix.len() > 0 && address.octets()[0] == 0;
    !(is_this_network || address.is_loopback() || prefix.addr() >= 0xe000_0000)
}

/// The prefix of a subnet and its mask. Bits of hosts in the subnet are ignored.
fn prefix(subnet: u32, wire_mask: u32) -> Option<Prefix4> {
    let len = wire_mask.leading_ones() as u8;
    let prefix = Prefix4::containing(subnet, len);
    // The default route must say so in both fields.
    (mask(len) == wire_mask && is_routed(prefix) && (len > 0 || subnet == 0)).then_some(prefix)
}

impl Packet {
    /// Reads the payload of an IP packet. Area and interface are the receiver's matter.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn read(bytes: &[u8]) -> Result<Self, Drop> {
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Drop::Short)?;
        if header[0] != VERSION {
            return Err(Drop::Version);
        }
        if usize::from(u16::from_be_bytes([header[2], header[3]])) != bytes.len() {
            return Err(Drop::Length);
        }
        if header[14..16] != [0, 0] {
            return Err(Drop::Authentication);
        }
        let sum = Sum::new().bytes(&header[..AUTHENTICATION_AT]).bytes(body);
        if sum.folded() != u16::MAX {
            return Err(Drop::Checksum);
        }
        let body = match header[1] {
            HELLO => Body::Hello(Hello::read(body)?),
            LSU => Body::Lsu(Lsu::read(body)?),
            _ => return Err(Drop::Type),
        };
        let router = RouterId::new(word(header, 4)).ok_or(Drop::RouterId)?;
        Ok(Self { router, area: word(header, 8), body })
    }

    /// The packet's bytes. Advertisements beyond [`ADVERTISEMENTS_MAX`] are left out.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        let kind = match &self.body {
            Body::Hello(hello) => {
                out.extend(hello.mask.to_be_bytes());
                out.extend(hello.interval_s.to_be_bytes());
                out.extend([0; 2]);
                HELLO
            }
            Body::Lsu(lsu) => {
                let count = lsu.links.len().min(ADVERTISEMENTS_MAX);
                out.extend(lsu.sequence.to_be_bytes());
                out.extend(lsu.ttl.to_be_bytes());
                out.extend((count as u32).to_be_bytes());
                for link in lsu.links.iter().take(count) {
                    out.extend(link.prefix.addr().to_be_bytes());
                    out.extend(mask(link.prefix.len()).to_be_bytes());
                    out.extend(link.router.map_or([0; 4], |router| router.get().octets()));
                }
                LSU
            }
        };
        out[..2].copy_from_slice(&[VERSION, kind]);
        out[4..8].copy_from_slice(&self.router.get().octets());
        out[8..12].copy_from_slice(&self.area.octets());
        Self::sealed(&out)
    }

    /// The bytes with the length and the checksum that they should have, if they are long enough for a header.
    #[must_use]
    pub(super) fn sealed(bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let length = out.len() as u16;
        if let Some((header, rest)) = out.split_first_chunk_mut::<HEADER_BYTES>() {
            header[2..4].copy_from_slice(&length.to_be_bytes());
            header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
            let sum = Sum::new().bytes(&header[..AUTHENTICATION_AT]).bytes(rest).checksum();
            header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        out
    }
}

/// Four bytes of a header.
fn word(bytes: &[u8], at: usize) -> Ipv4Addr {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    Ipv4Addr::from(four.copied().unwrap_or_default())
}

impl Hello {
    fn read(body: &[u8]) -> Result<Self, Drop> {
        let [m0, m1, m2, m3, i0, i1, _, _] = *body.as_array::<8>().ok_or(Drop::Length)?;
        Ok(Self { mask: u32::from_be_bytes([m0, m1, m2, m3]), interval_s: u16::from_be_bytes([i0, i1]) })
    }
}

impl Lsu {
    fn read(body: &[u8]) -> Result<Self, Drop> {
        let ([s0, s1, t0, t1, c0, c1, c2, c3], rest) = body.split_first_chunk::<8>().ok_or(Drop::Length)?;
        let count = u32::from_be_bytes([*c0, *c1, *c2, *c3]);
        let (links, more) = rest.as_chunks::<ADVERTISEMENT_BYTES>();
        if !more.is_empty() || u32::try_from(links.len()) != Ok(count) {
            return Err(Drop::Count);
        }
        if links.len() > ADVERTISEMENTS_MAX {
            return Err(Drop::TooMany);
        }
        let links = links.iter().map(|link| {
            let prefix = prefix(word(link, 0).to_bits(), word(link, 4).to_bits()).ok_or(Drop::Subnet)?;
            let router = match word(link, 8) {
                Ipv4Addr::UNSPECIFIED => None,
                id => Some(RouterId::new(id).ok_or(Drop::RouterId)?),
            };
            Ok(Advertisement { prefix, router })
        });
        Ok(Self {
            sequence: u16::from_be_bytes([*s0, *s1]),
            ttl: u16::from_be_bytes([*t0, *t1]),
            links: links.collect::<Result<_, Drop>>()?,
        })
    }
}

/// An IPv4 packet as a raw socket gives it: its source, and what follows its header.
///
/// # Errors
/// [`Drop::Short`] if the header does not fit into the bytes.
pub fn datagram(bytes: &[u8]) -> Result<(Ipv4Addr, &[u8]), Drop> {
    let first = *bytes.first().ok_or(Drop::Short)?;
    let header = usize::from(first & 0xf) * 4;
    if header < 20 || first >> 4 != 4 {
        return Err(Drop::Short);
    }
    let payload = bytes.get(header..).ok_or(Drop::Short)?;
    Ok((word(bytes, 12), payload))
}
