//! Desired state of hueplane: versioned YAML documents of kind `Node` and `Network`, validated together; and of kind `Topology`,
//! from which those of several nodes follow.
//!
//! Flow: files → **intent** → control → substrate. All errors are reported at once, each with file, line,
//! column, field, the value found and the value expected. The types of this crate define the format;
//! `docs/reference/schema.json` is derived from them.

mod address;
mod bits;
mod card;
mod decode;
mod document;
mod error;
mod extract;
pub mod limits;
mod links;
mod live;
mod load;
mod mpls;
mod needs;
mod policies;
mod rofl;
mod schema;
mod table;
pub mod topology;
mod tunnel;
mod types;
mod validate;
mod yaml;

pub use address::InterfaceAddress;
pub use card::{Card, PciAddress, PciAddressError, Placement, Twin};
pub use error::{Error, Errors, Finding, Place};
pub use extract::{Digits, Entry, EntryAction, Matching};
pub use hue_demux::tunnel::{Dscp, Encapsulation};
pub use links::{Link, Links};
pub use live::{
    Cores, InterfaceName, InterfaceNameError, Memory, MemoryError, PortDriver, PuntLimit, Resources,
};
pub use load::{Intent, STDIN, Source, load, parse, parse_accepted, parse_part};
pub use mpls::{LabelAction, LabelEntry};
pub use needs::{Bandwidth, BandwidthError, Latency, Needs, Scheduler, SchedulerKind, SoftCapacity};
pub use policies::policies;
pub use rofl::{FlatLabel, LabelPlace};
pub use schema::{schema, schema_text};
pub use table::{TableBytes, TableBytesError, TableLimit};
pub use tunnel::{Mtus, Tunnel};
pub use types::{
    ApiVersion, Bucket, Capability, Colour, ColourError, Martians, Metadata, Name, NameError, Neighbour,
    Network, NetworkPort, NetworkSpec, NetworkTag, Node, NodeLink, NodePort, NodeSpec, NodeTag, On, Plane,
    RateLimit, Route, RouteMember, Select, StaticMac, Target,
};
