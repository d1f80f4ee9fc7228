//! What the tests of several modules have in common.

use hue_demux::PortId;
use hue_wire::Mac;

use super::RibPort;

/// Two ports, `v0` and `v1`.
pub fn ports() -> Vec<RibPort> {
    let port = |number: u8| RibPort {
        interface: format!("v{number}"),
        port: PortId::new(number),
        mac: Mac([2, 0, 0, 0, 0, number]),
        mtu_bytes: 1500,
        peer: None,
    };
    vec![port(0), port(1)]
}
