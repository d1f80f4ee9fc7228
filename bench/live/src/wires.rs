//! What every contestant stands between: a generator's wire into the node's `p0`, and from its `p1` a wire to the sink.
//!
//! Network *n* (from 1): left link 10.*n*.1.0/24 with the generator's host .2, right link 10.*n*.2.0/24 with two hosts: .2 is
//! the sink itself, .3 a MAC address that nobody has, so that the sink's kernel only counts what is for it and drops it.

use std::net::Ipv4Addr;

use hue_e2e::frame::{self, Ends, Mac};
use hue_e2e::lab::text;
use hue_e2e::{Document, Lab, Space, VirtualPort};

/// MAC address of the generator.
pub const GENERATOR: Mac = [2, 0x67, 0, 0, 0, 1];
/// MAC address of the sink.
pub const SINK: Mac = [2, 0x73, 0, 0, 0, 1];
/// A MAC address that nobody has.
pub const NOBODY: Mac = [2, 0x6e, 0, 0, 0, 1];

/// The wires of one contestant.
pub struct Wires {
    /// The node, without ports of its own.
    pub lab: Lab,
    /// Where traffic comes from, by `eth0`.
    pub generator: Space,
    /// Where it goes to, by `eth0`.
    pub sink: Space,
    /// Networks whose hosts there are.
    pub networks: u16,
}

impl Wires {
    /// Wires for so many networks.
    pub fn new(networks: u16) -> Self {
        let lab = Lab::new(0);
        let id = lab.name("b");
        let (generator, sink) = (Space::new(&id, "gen"), Space::new(&id, "sink"));
        for (space, mac, port) in [(&generator, GENERATOR, "p0"), (&sink, SINK, "p1")] {
            let node = lab.node().name().to_owned();
            space.ip_batch(&format!(
                "link add eth0 address {} type veth peer name {port} netns {node}\nlink set eth0 up\n",
                text(mac)
            ));
            // No card to leave sums to.
            let _ = space.run("ethtool", &["-K", "eth0", "tx", "off"]);
            lab.node().ip(&["link", "set", port, "up"]);
            let _ = lab.node().run("ethtool", &["-K", port, "tx", "off"]);
        }
        let addresses = (1..=networks).map(|n| format!("address add {}/24 dev eth0\n", right(n, 2)));
        sink.ip_batch(&addresses.collect::<String>());
        Self { lab, generator, sink, networks }
    }

    /// The document of network `n`.
    pub fn document(&self, n: u16) -> Document {
        let port = |name: &str, port: &str, side: u8, address: Ipv4Addr| VirtualPort {
            name: name.into(),
            port: port.into(),
            mac: text(router(n, side)),
            addresses: vec![format!("{address}/24")],
        };
        let document = Document {
            name: self.lab.name(&format!("n{n}")),
            ports: vec![port("left", "p0", 0, left(n, 1)), port("right", "p1", 1, right(n, 1))],
            more: Vec::new(),
        };
        let neighbour = |side: &str, address: Ipv4Addr, mac: Mac| {
            format!("{{port: {side}, address: {address}, mac: \"{}\"}}", text(mac))
        };
        let neighbours = [
            neighbour("left", left(n, 2), GENERATOR),
            neighbour("right", right(n, 2), SINK),
            neighbour("right", right(n, 3), NOBODY),
        ];
        document.with("neighbours", &format!("[{}]", neighbours.join(", ")))
    }

    /// A frame of so many bytes on the wire (check sequence included) from the generator to host `host` of network `n`.
    pub fn frame(n: u16, host: u8, bytes: usize, router: Mac) -> Vec<u8> {
        let ends = Ends { macs: [router, GENERATOR], addresses: [left(n, 2), right(n, host)], ttl: 64 };
        let headers = 14 + 20 + 8 + 4;
        frame::udp(ends, [PORT, PORT], &vec![0; bytes.saturating_sub(headers)])
    }
}

/// UDP port of all traffic.
pub const PORT: u16 = 9;
/// Where a frame's payload starts.
pub const PAYLOAD: usize = 42;

/// The router's MAC address in network `n`.
pub fn router(n: u16, side: u8) -> Mac {
    let [high, low] = n.to_be_bytes();
    [2, 0x72, 0, side, high, low]
}

/// An address on the left link of network `n`.
pub fn left(n: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, n as u8, 1, host)
}

/// An address on the right link of network `n`.
pub fn right(n: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, n as u8, 2, host)
}
