//! The entries of a network's tables, as its program has them.

use hue_planes::Kind;
use hue_tables::{Key, NextHop, Prefix, Prefix4, Prefix6};
use hue_wire::Mac;

/// The entries of a network, in the form of its kind's match type. Routes have no prefix twice, and any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entries {
    /// Routes of 32-bit keys: longest prefix match.
    Lpm32(Vec<(Prefix4, NextHop)>),
    /// Routes of 128-bit keys: longest prefix match.
    Lpm128(Vec<(Prefix6, NextHop)>),
    /// Static MAC addresses.
    Exact(Vec<(Mac, NextHop)>),
}

/// Does `$work` with the routes of [`Entries`] of any width as `$routes`; `$other` with entries that are no routes.
#[macro_export]
macro_rules! with_routes {
    ($entries:expr, $routes:ident => $work:expr, else $other:expr) => {
        match $entries {
            $crate::Entries::Lpm32($routes) => $work,
            $crate::Entries::Lpm128($routes) => $work,
            $crate::Entries::Exact(_) => $other,
        }
    };
}

impl Entries {
    /// No entries, in the form of a kind.
    #[must_use]
    pub fn none(kind: Kind) -> Self {
        match kind.limits().key_bits {
            u32::BITS => Self::Lpm32(Vec::new()),
            u128::BITS => Self::Lpm128(Vec::new()),
            _ => Self::Exact(Vec::new()),
        }
    }

    /// Width of the keys, bits.
    #[must_use]
    pub const fn key_bits(&self) -> u32 {
        match self {
            Self::Lpm32(_) => u32::BITS,
            Self::Lpm128(_) => u128::BITS,
            Self::Exact(_) => MAC_BITS,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Lpm32(routes) => routes.len(),
            Self::Lpm128(routes) => routes.len(),
            Self::Exact(macs) => macs.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The routes of 32-bit keys; of other widths there are none.
    #[must_use]
    pub fn lpm32(&self) -> &[(Prefix4, NextHop)] {
        u32::routes(self)
    }

    /// The routes of 32-bit keys, to change them. Entries of another form are replaced by none of this form.
    pub fn lpm32_mut(&mut self) -> &mut Vec<(Prefix4, NextHop)> {
        u32::routes_mut(self)
    }

    /// The static MAC addresses; entries of other forms have none.
    #[must_use]
    pub fn macs(&self) -> &[(Mac, NextHop)] {
        match self {
            Self::Exact(macs) => macs,
            Self::Lpm32(_) | Self::Lpm128(_) => &[],
        }
    }
}

/// A width of keys that routes can have.
pub trait RouteKey: Key {
    /// The routes of this width; entries of another form have none.
    fn routes(entries: &Entries) -> &[(Prefix<Self>, NextHop)];
    /// The same, to change them. Entries of another form are replaced by none of this form.
    fn routes_mut(entries: &mut Entries) -> &mut Vec<(Prefix<Self>, NextHop)>;
}

macro_rules! route_key {
    ($key:ty, $form:ident) => {
        impl RouteKey for $key {
            fn routes(entries: &Entries) -> &[(Prefix<Self>, NextHop)] {
                match entries {
                    Entries::$form(routes) => routes,
                    _ => &[],
                }
            }

            fn routes_mut(entries: &mut Entries) -> &mut Vec<(Prefix<Self>, NextHop)> {
                if !matches!(entries, Entries::$form(_)) {
                    *entries = Entries::$form(Vec::new());
                }
                match entries {
                    Entries::$form(routes) => routes,
                    _ => unreachable!("replaced above"),
                }
            }
        }
    };
}

route_key!(u32, Lpm32);
route_key!(u128, Lpm128);

/// Width of a MAC address, bits.
const MAC_BITS: u32 = 48;

impl From<Vec<(Prefix4, NextHop)>> for Entries {
    fn from(routes: Vec<(Prefix4, NextHop)>) -> Self {
        Self::Lpm32(routes)
    }
}

impl From<Vec<(Prefix6, NextHop)>> for Entries {
    fn from(routes: Vec<(Prefix6, NextHop)>) -> Self {
        Self::Lpm128(routes)
    }
}
