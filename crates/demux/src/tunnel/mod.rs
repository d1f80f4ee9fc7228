//! Tunnels: virtual ports without a physical port, whose packets another network of the node, the carrier, carries.
//!
//! Flow, out: plane of the tunnelled network → **encapsulation** → queue of the carrier. In: plane of the carrier finds that
//! a packet is its own → **which end?** → **decapsulation** → queue of the tunnelled network. Everything here is a pure
//! function of bytes. Sources: RFC 2003, 4213 and 2473 (IP in IP), RFC 7348 (VXLAN), RFC 6040 (ECN), ADR 0059.

mod packet;
mod types;

pub use packet::{Encapsulated, Fault, NotIp, OVERHEAD_BYTES_MAX, Outer, Type};
pub use types::{Dscp, Encapsulation, IPIP_PEER, NESTED_MAX, Tunnel};
