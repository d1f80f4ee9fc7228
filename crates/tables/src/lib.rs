//! Forwarding tables: one trie for all networks, flat table images for its readers, and simple reference
//! models.
//!
//! Place in the flow: control writes routes to a [`Dag`]; planes look up addresses in its image through a
//! [`Reader`]. Other encodings of the same trie (the card's [`dag36`]) follow it through [`Delta`]s. No I/O,
//! threads or clock.

pub mod cuckoo;
pub mod dag;
pub mod dag36;
pub mod dag36_levels;
pub mod dir;
pub mod epoch;
mod intervals;
mod labels;
pub mod layout;
mod learnt;
mod limits;
mod mem;
pub mod oracle;
mod policy;
mod prefix;
mod reader;
pub mod slice;
mod source;
mod space;
pub mod tcam;
mod ternary;
mod types;

pub use cuckoo::Cuckoo;
pub use dag::{Change, Dag, Delta, Refusals, apply_fitting};
pub use dag36::Dag36;
pub use dag36_levels::Dag36Levels;
pub use dir::Dir;
pub use intervals::intervals;
pub use labels::{LabelTable, Pointer, Pointers, clockwise};
pub use learnt::{Found, Learnt, MacEntry, MacKey, MacTable};
pub use limits::{Account, Limits, TableError};
pub use oracle::Oracle;
pub use policy::{
    BEFORE_ALL, NO_RULE, PAIRS_MAX, POLICIES_MAX, Policies, Policy, PolicyError, PolicyRows, PolicyTable,
    RouteBy, RowsByLength, Rule,
};
pub use prefix::{AnyPrefix, PrefixMap};
pub use reader::{Guard, Reader};
pub use tcam::Tcam;
pub use ternary::{Pattern, TernaryFound, TernaryTable, unreachable};
pub use types::{Key, NextHop, Prefix, Prefix4, Prefix6, PrefixError, TableId, Vid};
