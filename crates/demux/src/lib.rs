//! Design select: finds the virtual network of a frame.
//!
//! Flow: port → wire → **demux** → plane. A [`Demux`] is built once from the [`Row`]s of all networks of a
//! node and is immutable; building it checks that no two rows claim the same frames. Selecting a frame
//! allocates nothing and usually reads one bucket of one hash table.
//!
//! Priority: a group destination MAC (broadcast or multicast) selects every network attached to the port.
//! Otherwise the destination MAC selects, otherwise the longest inner prefix, otherwise the port. Source:
//! Unnikrishnan §4.2 (design select by virtual destination address), RFC 2003 (IPIP), RFC 7348 §5 (VXLAN).

mod inner;
mod mac_table;
mod select;
pub mod tunnel;
mod types;

pub use inner::{inner_destination, own_destination};
pub use select::{Demux, Selection};
pub use types::{Attachment, By, DemuxError, Match, PortId, ROWS_MAX, Row, Target};
