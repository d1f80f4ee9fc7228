//! The entries of a network's tables, as its program has them.

use hue_planes::{Keys, Kind};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Change, Key, NextHop, Pattern, Prefix, Prefix4, Prefix6};
use hue_wire::Mac;
use serde::{Deserialize, Serialize};

use crate::update::Update;

/// The entries of a network, in the form of its kind's tables. Nothing occurs twice; only of patterns the order matters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Entries {
    /// Routes of 32-bit keys: longest prefix match.
    Lpm32(Vec<(Prefix4, NextHop)>),
    /// Routes of 128-bit keys: longest prefix match.
    Lpm128(Vec<(Prefix6, NextHop)>),
    /// Routes of keys of both widths, which name next hops of the same table.
    Dual(Vec<(Prefix4, NextHop)>, Vec<(Prefix6, NextHop)>),
    /// Routes of several slices: longest prefix match of 128-bit keys that begin with the number of the slice
    /// ([`hue_tables::slice`]).
    Sliced(Vec<(Prefix6, NextHop)>),
    /// Static MAC addresses.
    Exact(Vec<(Mac, NextHop)>),
    /// Patterns of 128-bit keys, of which the first one that matches counts.
    Ternary(Vec<(Pattern, NextHop)>),
    /// Flat labels, left-aligned: the closest one.
    Nearest(Vec<(u128, NextHop)>),
    /// None: there is no table.
    None,
}

/// Does `$work` with each list of routes of [`Entries`] as `$routes`: one, two, or none if the entries are no routes.
#[macro_export]
macro_rules! each_routes {
    ($entries:expr, $routes:ident => $work:expr) => {
        match $entries {
            $crate::Entries::Lpm32($routes) => $work,
            $crate::Entries::Lpm128($routes) | $crate::Entries::Sliced($routes) => $work,
            $crate::Entries::Dual(narrow, wide) => {
                {
                    let $routes = narrow;
                    $work
                }
                let $routes = wide;
                $work
            }
            $crate::Entries::Exact(_)
            | $crate::Entries::Ternary(_)
            | $crate::Entries::Nearest(_)
            | $crate::Entries::None => {}
        }
    };
}

impl Entries {
    /// No entries, in the form of a kind.
    #[must_use]
    pub const fn none(kind: Kind) -> Self {
        Self::empty(kind.limits().keys)
    }

    /// No entries with these keys.
    #[must_use]
    pub const fn empty(keys: Keys) -> Self {
        match keys {
            Keys::V4 => Self::Lpm32(Vec::new()),
            Keys::V6 => Self::Lpm128(Vec::new()),
            Keys::Dual => Self::Dual(Vec::new(), Vec::new()),
            Keys::Slices => Self::Sliced(Vec::new()),
            Keys::Mac => Self::Exact(Vec::new()),
            Keys::Bits => Self::Ternary(Vec::new()),
            Keys::Label => Self::Nearest(Vec::new()),
            Keys::None => Self::None,
        }
    }

    /// What they are keyed by.
    #[must_use]
    pub const fn keys(&self) -> Keys {
        match self {
            Self::Lpm32(_) => Keys::V4,
            Self::Lpm128(_) => Keys::V6,
            Self::Dual(..) => Keys::Dual,
            Self::Sliced(_) => Keys::Slices,
            Self::Exact(_) => Keys::Mac,
            Self::Ternary(_) => Keys::Bits,
            Self::Nearest(_) => Keys::Label,
            Self::None => Keys::None,
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Lpm32(routes) => routes.len(),
            Self::Lpm128(routes) | Self::Sliced(routes) => routes.len(),
            Self::Dual(narrow, wide) => narrow.len() + wide.len(),
            Self::Exact(macs) => macs.len(),
            Self::Ternary(patterns) => patterns.len(),
            Self::Nearest(labels) => labels.len(),
            Self::None => 0,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
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

    /// The routes of slices; entries of other forms have none.
    pub fn sliced(&self) -> impl Iterator<Item = (SlicedPrefix, NextHop)> + '_ {
        let routes = if let Self::Sliced(routes) = self { routes.as_slice() } else { &[] };
        routes.iter().filter_map(|(wide, hop)| Some((SlicedPrefix::of(*wide)?, *hop)))
    }

    /// The static MAC addresses; entries of other forms have none.
    #[must_use]
    pub fn macs(&self) -> &[(Mac, NextHop)] {
        match self {
            Self::Exact(macs) => macs,
            _ => &[],
        }
    }

    /// The patterns, in order; entries of other forms have none.
    #[must_use]
    pub fn patterns(&self) -> &[(Pattern, NextHop)] {
        match self {
            Self::Ternary(patterns) => patterns,
            _ => &[],
        }
    }

    /// The flat labels; entries of other forms have none.
    #[must_use]
    pub fn labels(&self) -> &[(u128, NextHop)] {
        match self {
            Self::Nearest(labels) => labels,
            _ => &[],
        }
    }
}

/// A width of keys that routes can have.
pub trait RouteKey: Key {
    /// The routes of this width; entries of another form have none.
    fn routes(entries: &Entries) -> &[(Prefix<Self>, NextHop)];
    /// The same, to change them. Entries of another form are replaced by none of this form.
    fn routes_mut(entries: &mut Entries) -> &mut Vec<(Prefix<Self>, NextHop)>;
    /// An update with these changes of routes.
    fn update(changes: &[Change<Self>]) -> Update<'_>;
}

macro_rules! route_key {
    ($key:ty, [$first:ident $($form:ident)*], $dual:pat => $list:ident, $changes:ident) => {
        impl RouteKey for $key {
            fn routes(entries: &Entries) -> &[(Prefix<Self>, NextHop)] {
                match entries {
                    Entries::$first(routes) $(| Entries::$form(routes))* => routes,
                    $dual => $list,
                    _ => &[],
                }
            }

            fn routes_mut(entries: &mut Entries) -> &mut Vec<(Prefix<Self>, NextHop)> {
                if !matches!(entries, Entries::$first(_) $(| Entries::$form(_))* | Entries::Dual(..)) {
                    *entries = Entries::$first(Vec::new());
                }
                match entries {
                    Entries::$first(routes) $(| Entries::$form(routes))* => routes,
                    $dual => $list,
                    _ => unreachable!("replaced above"),
                }
            }

            fn update(changes: &[Change<Self>]) -> Update<'_> {
                Update { $changes: changes, ..Update::default() }
            }
        }
    };
}

route_key!(u32, [Lpm32], Entries::Dual(narrow, _) => narrow, v4);
route_key!(u128, [Lpm128 Sliced], Entries::Dual(_, wide) => wide, v6);

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
