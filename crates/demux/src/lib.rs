//! Design select: which virtual network a frame belongs to.
//!
//! Flow: port → wire → **demux** → plane. A [`Demux`] is built once from the [`Row`]s of all networks of a node and then
//! only read; building checks that no two rows claim the same frames. Per frame it allocates nothing and reads one
//! bucket of one hash table in the common case.
//!
//! Priority: a group destination MAC (broadcast or multicast) goes to everything attached to the port; else the
//! destination MAC; else the longest inner prefix; else the port. Source: Unnikrishnan §4.2 (design select by virtual
//! destination address), RFC 2003 (IPIP), RFC 7348 §5 (VXLAN).

mod inner;
mod mac_table;
mod select;
mod types;

pub use inner::inner_destination;
pub use select::{Demux, Selection};
pub use types::{Attachment, By, DemuxError, Match, PortId, ROWS_MAX, Row, Target};
