//! Basic types of all tables: network ids, keys, prefixes, next-hop indices.
//!
//! Flow: routes (control) → `Prefix` + `NextHop` → store → table image. Units: prefix lengths in bits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Id of a virtual network on one node: 12 bits, 1 to 4095 (0 means "no network").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(transparent)]
#[serde(try_from = "u16", into = "u16")]
pub struct Vid(u16);

impl Vid {
    /// Largest id: 12 bits.
    pub const MAX: u16 = 4095;

    /// Returns `None` if `id` is 0 or above [`Vid::MAX`].
    #[must_use]
    pub const fn new(id: u16) -> Option<Self> {
        if id == 0 || id > Self::MAX { None } else { Some(Self(id)) }
    }

    /// The id as a number, 1 to 4095.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The id as an array index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<u16> for Vid {
    type Error = IdError;

    fn try_from(id: u16) -> Result<Self, IdError> {
        Self::new(id).ok_or(IdError(id))
    }
}

impl From<Vid> for u16 {
    fn from(vid: Vid) -> Self {
        vid.0
    }
}

/// A number that is no VID or no index of a next hop, in a message of another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{0} is reserved or too large")]
pub struct IdError(u16);

impl fmt::Display for Vid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Index into a network's next-hop table, 0 to [`NextHop::MAX`]. Each network defines its own table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct NextHop(u16);

impl NextHop {
    /// Largest index; the next 16-bit word means "no route" in table images.
    pub const MAX: u16 = u16::MAX - 1;
    /// The image word for "no route".
    pub const NONE_WORD: u16 = u16::MAX;

    /// Returns `None` if `index` is the reserved word 65535.
    #[must_use]
    pub const fn new(index: u16) -> Option<Self> {
        if index == Self::NONE_WORD { None } else { Some(Self(index)) }
    }

    /// The index as a number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The image word of an optional next hop.
    #[must_use]
    pub const fn word(hop: Option<Self>) -> u16 {
        match hop {
            Some(hop) => hop.0,
            None => Self::NONE_WORD,
        }
    }
}

impl TryFrom<u16> for NextHop {
    type Error = IdError;

    fn try_from(index: u16) -> Result<Self, IdError> {
        Self::new(index).ok_or(IdError(index))
    }
}

impl From<NextHop> for u16 {
    fn from(hop: NextHop) -> Self {
        hop.0
    }
}

/// One of a network's tables: the one with keys of a width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TableId {
    vid: Vid,
    /// [`Key::TABLE`].
    table: u8,
}

impl TableId {
    /// The network's table with these keys.
    #[must_use]
    pub const fn of<K: Key>(vid: Vid) -> Self {
        Self { vid, table: K::TABLE as u8 }
    }

    /// All tables that a network can have, short keys first.
    #[must_use]
    pub const fn all(vid: Vid) -> [Self; 2] {
        [Self::of::<u32>(vid), Self::of::<u128>(vid)]
    }

    /// Whose table it is.
    #[must_use]
    pub const fn vid(self) -> Vid {
        self.vid
    }

    /// The table of the width [`Key::TABLE`].
    pub(crate) const fn at(vid: Vid, table: usize) -> Self {
        Self { vid, table: table as u8 }
    }
}

/// A lookup key: an unsigned integer whose most significant bit is the first bit of the address.
pub trait Key: Copy + Eq + Ord + std::hash::Hash + fmt::Debug + Default + Send + Sync + 'static {
    /// Width in bits: 32 or 128.
    const BITS: u8;
    /// Which of a network's two tables has keys of this width: 0 or 1.
    const TABLE: usize;
    /// An address of this family.
    type Addr: Copy
        + Eq
        + Ord
        + std::hash::Hash
        + fmt::Debug
        + fmt::Display
        + Into<IpAddr>
        + Send
        + Sync
        + 'static;
    /// The 8 bits of the key that start at bit `depth`.
    fn byte_at(self, depth: u8) -> u8;
    /// The key with all bits from bit `len` on cleared.
    fn masked(self, len: u8) -> Self;
    /// The key with all bits from bit `len` on set.
    fn last(self, len: u8) -> Self;
    /// The key as an address of its family.
    fn to_addr(self) -> Self::Addr;
    /// The inverse of [`Key::to_addr`].
    fn from_addr(addr: Self::Addr) -> Self;
    /// The key as an address.
    fn to_ip(self) -> IpAddr;
    /// The address as a key; `None` for the other address family.
    fn from_ip(ip: IpAddr) -> Option<Self>;
    /// The next key; `None` after the last one.
    fn next(self) -> Option<Self>;
    /// The key as 128 bits, with its first bit most significant (IPv4 uses the upper 32).
    fn to_bits(self) -> u128;
    /// The inverse of [`Key::to_bits`].
    fn from_bits(bits: u128) -> Self;
}

macro_rules! key {
    ($int:ty, $addr:ty, $variant:ident, $bits:expr, $table:expr) => {
        impl Key for $int {
            const BITS: u8 = $bits;
            const TABLE: usize = $table;
            type Addr = $addr;
            #[inline(always)]
            fn byte_at(self, depth: u8) -> u8 {
                (self >> ($bits - 8 - u32::from(depth))) as u8
            }
            #[inline]
            fn masked(self, len: u8) -> Self {
                if len == 0 { 0 } else { self & (<$int>::MAX << ($bits - u32::from(len))) }
            }
            #[inline]
            fn last(self, len: u8) -> Self {
                if len == 0 { <$int>::MAX } else { self | !(<$int>::MAX << ($bits - u32::from(len))) }
            }
            fn to_addr(self) -> $addr {
                <$addr>::from_bits(self)
            }
            fn from_addr(addr: $addr) -> Self {
                addr.to_bits()
            }
            fn to_ip(self) -> IpAddr {
                IpAddr::$variant(self.to_addr())
            }
            fn from_ip(ip: IpAddr) -> Option<Self> {
                match ip {
                    IpAddr::$variant(ip) => Some(ip.to_bits()),
                    _ => None,
                }
            }
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn to_bits(self) -> u128 {
                u128::from(self) << (128 - $bits)
            }
            fn from_bits(bits: u128) -> Self {
                (bits >> (128 - $bits)) as $int
            }
        }
    };
}
key!(u32, Ipv4Addr, V4, 32, 0);
key!(u128, Ipv6Addr, V6, 128, 1);

/// The destination of a route: an address whose bits beyond `len` are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(
    try_from = "(K, u8)",
    into = "(K, u8)",
    bound(serialize = "K: Key + Serialize", deserialize = "K: Key + Deserialize<'de>")
)]
pub struct Prefix<K> {
    addr: K,
    len: u8,
}

/// IPv4 prefix.
pub type Prefix4 = Prefix<u32>;
/// IPv6 prefix.
pub type Prefix6 = Prefix<u128>;

/// Why a text or a pair of address and length is not a prefix (the caller's fault).
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PrefixError {
    /// The text has no `/`.
    #[error("'{0}' is not a prefix: expected ADDRESS/LENGTH")]
    Form(String),
    /// The address part is not an address of the families that are possible here.
    #[error("'{0}' is not an {1} address")]
    Address(String, &'static str),
    /// The length is not a number from 0 to the key width.
    #[error("prefix length '{0}' is not a number from 0 to {1}")]
    Length(String, u8),
    /// Bits beyond the length are set.
    #[error("{0} has bits set beyond its length: expected {1}")]
    HostBits(String, String),
}

impl<K: Key> TryFrom<(K, u8)> for Prefix<K> {
    type Error = PrefixError;

    fn try_from((addr, len): (K, u8)) -> Result<Self, PrefixError> {
        Self::new(addr, len)
    }
}

impl<K> From<Prefix<K>> for (K, u8) {
    fn from(prefix: Prefix<K>) -> Self {
        (prefix.addr, prefix.len)
    }
}

impl<K: Key> Prefix<K> {
    /// Creates a prefix; `addr` must have no bits set beyond `len`.
    ///
    /// # Errors
    /// `Length` if `len` exceeds the key width, `HostBits` if bits beyond it are set.
    pub fn new(addr: K, len: u8) -> Result<Self, PrefixError> {
        if len > K::BITS {
            return Err(PrefixError::Length(len.to_string(), K::BITS));
        }
        if addr.masked(len) != addr {
            return Err(PrefixError::HostBits(
                format!("{}/{len}", addr.to_ip()),
                Self { addr: addr.masked(len), len }.to_string(),
            ));
        }
        Ok(Self { addr, len })
    }

    /// The prefix of `len` bits that contains `addr`; `len` is limited to the key width.
    #[must_use]
    pub fn containing(addr: K, len: u8) -> Self {
        let len = len.min(K::BITS);
        Self { addr: addr.masked(len), len }
    }

    /// First address.
    #[must_use]
    pub const fn addr(self) -> K {
        self.addr
    }

    /// Length in bits.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a prefix is never empty
    pub const fn len(self) -> u8 {
        self.len
    }

    /// Last address.
    #[must_use]
    pub fn last(self) -> K {
        self.addr.last(self.len)
    }

    /// Whether the prefix contains `key`.
    #[must_use]
    pub fn contains(self, key: K) -> bool {
        key.masked(self.len) == self.addr
    }
}

impl<K: Key> fmt::Display for Prefix<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr.to_ip(), self.len)
    }
}

impl<K: Key> FromStr for Prefix<K> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (addr, len) = text.split_once('/').ok_or_else(|| PrefixError::Form(text.to_owned()))?;
        let addr = addr.parse::<IpAddr>().ok().and_then(K::from_ip).ok_or_else(|| {
            PrefixError::Address(addr.to_owned(), if K::BITS == 32 { "IPv4" } else { "IPv6" })
        })?;
        let bits = len
            .parse::<u8>()
            .ok()
            .filter(|bits| *bits <= K::BITS)
            .ok_or_else(|| PrefixError::Length(len.to_owned(), K::BITS))?;
        Self::new(addr, bits)
    }
}
