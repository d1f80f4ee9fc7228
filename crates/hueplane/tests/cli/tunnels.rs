//! Networks with tunnels, offline: captures, counters and explanations on both sides of a tunnel, and hostile outer headers.

use serde_json::{Value, json};

use crate::card::both;
use crate::support::{Scratch, checksum, hex, ipv4, mac, pcap};

const WAN_RIGHT: &str = "02:00:00:00:00:02";
const HOSTS: &str = "02:00:00:00:07:01";
/// The virtual port of `blue` at the end of its tunnel.
const BLUE: &str = "02:00:00:00:07:02";
const LOCAL: [u8; 4] = [198, 51, 100, 2];
/// The far end on the left, by p0.
const LEFT: [u8; 4] = [192, 0, 2, 1];
/// The far end on the right, by p1.
const RIGHT: [u8; 4] = [203, 0, 113, 3];

/// `red` is the papers' virtual hop: a router with tunnels on both sides. `blue` joins its hosts by VXLAN.
const DOCUMENTS: &str = r#"apiVersion: hueplane/v1
kind: Network
metadata: {name: wan}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: left, port: p0, mac: "02:00:00:00:00:01", addresses: [198.51.100.2/24]}
    - {name: right, port: p1, mac: "02:00:00:00:00:02", addresses: [198.51.101.2/24]}
  routes:
    - {to: 192.0.2.0/24, via: 198.51.100.1}
    - {to: 203.0.113.0/24, via: 198.51.101.1}
  neighbours:
    - {port: left, address: 198.51.100.1, mac: "02:00:00:00:0a:01"}
    - {port: right, address: 198.51.101.1, mac: "02:00:00:00:0a:02"}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: ipv4}
  ports:
    - name: to-left
      tunnel: {type: ipip, local: 198.51.100.2, remote: 192.0.2.1}
      over: wan
      addresses: [10.255.0.1/30]
    - name: to-right
      tunnel: {type: ipip, local: 198.51.100.2, remote: 203.0.113.3}
      over: wan
      addresses: [10.255.0.5/30]
  routes:
    - {to: 10.1.0.0/16, via: 10.255.0.2}
    - {to: 10.2.0.0/16, via: 10.255.0.6}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: blue}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: hosts, port: p2, mac: "02:00:00:00:07:01", addresses: [10.7.1.1/24]}
    - name: to-right
      mac: "02:00:00:00:07:02"
      tunnel: {type: vxlan, local: 198.51.100.2, remote: 203.0.113.3, vni: 7}
      over: wan
      addresses: [10.7.0.1/30]
  routes:
    - {to: 10.7.2.0/24, via: 10.7.0.2}
  neighbours:
    - {port: to-right, address: 10.7.0.2, mac: "02:00:00:00:0b:02"}
    - {port: hosts, address: 10.7.1.5, mac: "02:00:00:00:0b:05"}
"#;

/// A switch with a tunnel.
const SWITCH: &str = r#"---
apiVersion: hueplane/v1
kind: Network
metadata: {name: plum}
spec:
  plane: {kind: l2}
  ports:
    - {name: near, port: p3, mac: "02:00:00:00:09:01", mtu: 1450}
    - {name: far, tunnel: {type: vxlan, local: 198.51.100.2, remote: 203.0.113.3, vni: 9}, over: wan}
"#;

fn scratch() -> Scratch {
    let dir = Scratch::new();
    dir.write("all.yaml", DOCUMENTS);
    dir
}

/// The packets that left by each port and that were punted, and the report, after frames that arrived at one port. All is the same on a
/// card without tunnels, of whose packets software decides all that enter or leave one, and on one with tunnels.
fn run(dir: &Scratch, port: &str, frames: &[Vec<u8>]) -> ([Vec<Vec<u8>>; 4], Value) {
    let packets: Vec<_> = frames.iter().zip(1..).map(|(frame, at)| (at * 1000, frame.clone())).collect();
    dir.write("in.pcap", pcap(&packets));
    let arguments = format!("-f all.yaml --in {port}=in.pcap");
    let report = dir.hueplane(&format!("run {arguments} --out out -o json")).ok().json();
    for image in ["default", "kinds"] {
        both(dir, &arguments, image);
    }
    let left = ["p0", "p1", "p2", "punt"].map(|name| {
        let packets = dir.packets(&format!("out/{name}.pcap")).into_iter();
        packets.map(|(_, bytes)| bytes).collect()
    });
    (left, report)
}

/// An IPv4 packet to the carrier, as it arrives at p1, with a type of service.
fn outer(from: [u8; 4], protocol: u8, tos: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let mut frame = mac(WAN_RIGHT).to_vec();
    frame.extend([
        2, 0, 0, 0, 0x0a, 2, 8, 0, 0x45, tos, total[0], total[1], 0, 0, 0x40, 0, 60, protocol, 0, 0,
    ]);
    frame.extend(from);
    frame.extend(LOCAL);
    fix(&mut frame);
    frame.extend(payload);
    frame
}

/// Corrects the checksum of the outer header.
fn fix(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// A datagram of VXLAN.
fn vxlan(flags: u8, vni: u8, frame: &[u8]) -> Vec<u8> {
    let length = (16 + frame.len() as u16).to_be_bytes();
    let mut bytes = vec![0xc0, 1, 0x12, 0xb5, length[0], length[1], 0, 0, flags, 0, 0, 0, 0, 0, vni, 0];
    bytes.extend(frame);
    bytes
}

/// A packet of `red` that comes from the left and goes to the right.
fn hop() -> Vec<u8> {
    #[rustfmt::skip]
    let frame = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0x0a, 1, 8, 0,
        0x45, 0, 0, 48, 0, 0, 0x40, 0, 60, 4, 0x52, 0x93, 192, 0, 2, 1, 198, 51, 100, 2,
        0x45, 0, 0, 28, 0, 1, 0, 0, 9, 17, 0x9d, 0xc2, 10, 1, 0, 5, 10, 2, 0, 7,
        0, 7, 0, 9, 0, 8, 0, 0,
    ];
    frame.to_vec()
}

/// The same behind the hop: the papers' rewriting of outer source and destination, and one hop less inside.
fn hopped() -> Vec<u8> {
    #[rustfmt::skip]
    let frame = [
        2, 0, 0, 0, 0x0a, 2, 2, 0, 0, 0, 0, 2, 8, 0,
        0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 4, 0xd4, 0x90, 198, 51, 100, 2, 203, 0, 113, 3,
        0x45, 0, 0, 28, 0, 1, 0, 0, 8, 17, 0x9e, 0xc2, 10, 1, 0, 5, 10, 2, 0, 7,
        0, 7, 0, 9, 0, 8, 0, 0,
    ];
    frame.to_vec()
}

#[test]
fn a_router_with_tunnels_on_both_sides_rewrites_outer_source_and_destination() {
    let dir = scratch();
    let ([left, right, hosts, punt], report) = run(&dir, "p0", &[hop()]);
    assert_eq!(right, [hopped()]);
    assert_eq!((left.len(), hosts.len(), punt.len()), (0, 0, 0));
    assert_eq!(
        report,
        json!({
            "networks": {
                "blue": {"received": 0, "forward": 0, "punt": 0, "drop": {}},
                "red": {"received": 1, "forward": 1, "punt": 0, "drop": {}},
                "wan": {"received": 2, "forward": 1, "punt": 1, "drop": {}, "to_tunnels": 1},
            },
            "unclaimed": {},
        })
    );
    let text = dir.hueplane("run -f all.yaml --in p0=in.pcap --out out").ok().stdout;
    assert!(text.contains("punted into tunnels 1"), "{text}");
    // The packet passes both tunnels on the card; without tunnels there, software decides it twice.
    for (image, count) in [("kinds", 0), ("default", 1)] {
        let card = both(&dir, "-f all.yaml --in p0=in.pcap", image);
        assert_eq!(card["to_software"], count, "{image}");
    }
    dir.write("switch.yaml", format!("{DOCUMENTS}{SWITCH}"));
    dir.hueplane("run -f switch.yaml --in p0=in.pcap --out card --on card").fails(
        3,
        "network 'plum': port 'far' is a tunnel: the card cannot flood into one: use `--on soft`, or leave the port out",
    );
    dir.hueplane("run -f switch.yaml --in p0=in.pcap --out soft --on soft").ok();
    dir.hueplane("lab run -f all.yaml --on soft --traffic p0=rate:1G --duration-us 100").fails(
        3,
        "network 'blue': port 'to-right' is a tunnel: `hueplane lab` measures networks without them",
    );
}

#[test]
fn the_hop_is_explained_in_order() {
    let dir = scratch();
    let args = ["trace", "-f", "all.yaml", "--in-port", "p0", "--hex", &hex(&hop())];
    let json = dir.hueplane_with(&[&args[..], &["-o", "json"]].concat(), "").ok().json();
    assert_eq!((&json["verdict"], &json["reason"]), (&"punt".into(), &"local".into()));
    let crossed = json["crossed"].as_array().unwrap();
    let tunnels: Vec<_> = crossed.iter().map(|one| one["stages"][0]["detail"].as_str().unwrap()).collect();
    assert_eq!(
        tunnels,
        [
            "out of ipip 198.51.100.2 to 192.0.2.1 of red over wan",
            "into ipip 198.51.100.2 to 203.0.113.3 of red over wan",
        ]
    );
    let part = |at: usize| {
        let network = &crossed[at]["networks"][0];
        ["network", "virtual_port", "verdict", "route"].map(|field| network[field].as_str().unwrap_or("-"))
    };
    assert_eq!(part(0)[..3], ["red", "to-left", "forward"]);
    assert!(part(0)[3].starts_with("10.2.0.0/16 via 10.255.0.6"), "{:?}", part(0));
    assert_eq!(part(1)[..3], ["wan", "left", "forward"]);
    assert_eq!((&crossed[0]["in_port"], &crossed[1]["in_port"]), (&"to-left".into(), &"to-right".into()));
    assert_eq!(crossed[1]["networks"][0]["out_port"], "p1");
    assert_eq!(crossed[1]["networks"][0]["bytes"], hex(&hopped()));
    let text = dir.hueplane_with(&args, "").ok().stdout;
    assert_eq!(text.matches("through the tunnel: on to-").count(), 2, "{text}");
    // A stranger's packet is lost in between.
    let mut stranger = hop();
    stranger[29] = 9;
    fix(&mut stranger);
    let args = ["trace", "-f", "all.yaml", "--in-port", "p0", "--hex", &hex(&stranger)];
    let text = dir.hueplane_with(&args, "").ok().stdout;
    assert!(text.contains("verdict   drop tunnel_stranger"), "{text}");
}

#[test]
fn frames_go_out_and_come_in_by_vxlan() {
    let dir = scratch();
    let sent = ipv4(HOSTS, 64, [10, 7, 1, 5], [10, 7, 2, 9]);
    let ([_, right, _, punt], report) = run(&dir, "p2", &[sent]);
    assert_eq!((right.len(), punt.len()), (1, 0));
    let frame = &right[0];
    let mut inner = ipv4("02:00:00:00:0b:02", 63, [10, 7, 1, 5], [10, 7, 2, 9]);
    inner[6..12].copy_from_slice(&mac(BLUE));
    #[rustfmt::skip]
    let headers = [
        2, 0, 0, 0, 0x0a, 2, 2, 0, 0, 0, 0, 2, 8, 0,
        0x45, 0, 0, 78, 0, 0, 0x40, 0, 64, 17, 0xd4, 0x65, 198, 51, 100, 2, 203, 0, 113, 3,
    ];
    assert_eq!(frame[..34], headers);
    assert!(u16::from_be_bytes([frame[34], frame[35]]) >= 49_152, "RFC 7348: a dynamic port");
    assert_eq!(frame[36..50], [0x12, 0xb5, 0, 58, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
    assert_eq!(frame[50..], inner);
    assert_eq!(report["networks"]["wan"], json!({"received": 1, "forward": 1, "punt": 0, "drop": {}}));

    let back = ipv4(BLUE, 64, [10, 7, 2, 9], [10, 7, 1, 5]);
    let ([_, _, hosts, punt], report) = run(&dir, "p1", &[outer(RIGHT, 17, 0, &vxlan(8, 7, &back))]);
    let mut expected = ipv4("02:00:00:00:0b:05", 63, [10, 7, 2, 9], [10, 7, 1, 5]);
    expected[6..12].copy_from_slice(&mac(HOSTS));
    assert_eq!((hosts, punt.len()), (vec![expected], 0));
    let counts = json!({"received": 1, "forward": 0, "punt": 1, "drop": {}, "to_tunnels": 1});
    assert_eq!(report["networks"]["wan"], counts);
    assert_eq!(report["networks"]["blue"], json!({"received": 1, "forward": 1, "punt": 0, "drop": {}}));
}

#[test]
fn hostile_outer_headers_are_counted_and_reach_nobody() {
    let dir = scratch();
    let inner = ipv4(BLUE, 64, [10, 7, 2, 9], [10, 7, 1, 5]);
    let ip = &ipv4(BLUE, 64, [10, 2, 0, 7], [10, 1, 0, 5])[14..];
    let mut fragment = outer(RIGHT, 4, 0, ip);
    fragment[20] = 0x20;
    fix(&mut fragment);
    // Three options of no operation and the end of options.
    let mut options = outer(RIGHT, 4, 0, &[&[1, 1, 1, 0], ip].concat());
    options[14] = 0x46;
    options[24..26].fill(0);
    let sum = checksum(&options[14..38]);
    options[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut wrong_sum = vxlan(8, 7, &inner);
    wrong_sum[6..8].copy_from_slice(&[1, 2]);
    let mut long = ip.to_vec();
    long[3] += 1;
    let mut for_others = inner.clone();
    for_others[5] = 9;
    let hostile = [
        (outer([192, 0, 2, 9], 4, 0, ip), "tunnel_stranger"),
        (outer([192, 0, 2, 9], 17, 0, &vxlan(8, 7, &inner)), "tunnel_stranger"),
        (outer(LEFT, 17, 0, &vxlan(8, 7, &inner)), "tunnel_stranger"),
        (outer(RIGHT, 17, 0, &vxlan(8, 6, &inner)), "tunnel_stranger"),
        (outer(RIGHT, 17, 0, &vxlan(8, 7, &for_others)), "tunnel_stranger"),
        (outer(RIGHT, 17, 0, &vxlan(0, 7, &inner)), "tunnel_header"),
        (outer(RIGHT, 17, 0, &vxlan(8, 7, &inner[..13])), "tunnel_header"),
        (outer(RIGHT, 4, 0, &long), "tunnel_header"),
        (outer(RIGHT, 41, 0, ip), "tunnel_header"),
        (outer(RIGHT, 4, 0, &[]), "tunnel_header"),
        (outer(RIGHT, 4, 3, ip), "tunnel_ecn"),
        (outer(RIGHT, 17, 0, &wrong_sum), "tunnel_checksum"),
        (fragment, "tunnel_fragment"),
        (options, "tunnel_options"),
    ];
    let mut all = Vec::new();
    for (frame, reason) in hostile {
        let ([left, right, hosts, punt], report) = run(&dir, "p1", std::slice::from_ref(&frame));
        assert_eq!([left.len(), right.len(), hosts.len(), punt.len()], [0; 4], "{reason}");
        let counts = json!({"received": 1, "forward": 0, "punt": 1, "drop": {}, "losses": {reason: 1}});
        assert_eq!(report["networks"]["wan"], counts, "{reason}");
        all.push(frame);
    }
    // Together, with packets that are for the router itself and for a tunnel.
    let own = outer(RIGHT, 17, 0, &[0xc0, 1, 0, 53, 0, 8, 0, 0]);
    all.extend([own.clone(), outer(RIGHT, 4, 0, ip)]);
    let ([left, _, _, punt], report) = run(&dir, "p1", &all);
    assert_eq!(punt, [own]);
    assert_eq!((left.len(), left[0][33], left[0][42]), (1, 1, 63));
    let losses = json!({
        "tunnel_stranger": 5, "tunnel_fragment": 1, "tunnel_header": 5, "tunnel_ecn": 1, "tunnel_checksum": 1,
        "tunnel_options": 1,
    });
    let counts =
        json!({"received": 17, "forward": 1, "punt": 16, "drop": {}, "to_tunnels": 1, "losses": losses});
    assert_eq!(report["networks"]["wan"], counts);
    let networks = report["networks"].as_object().unwrap();
    assert_eq!((&networks["red"]["received"], &networks["blue"]["received"]), (&1.into(), &0.into()));
}

/// Two networks at the end of one tunnel: the destination of the packet inside says whose it is.
const SHARED: &str = r#"apiVersion: hueplane/v1
kind: Network
metadata: {name: wan}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: left, port: p0, mac: "02:00:00:00:00:01", addresses: [198.51.100.2/24]}
    - {name: right, port: p1, mac: "02:00:00:00:00:02", addresses: [198.51.101.2/24]}
  routes:
    - {to: 192.0.2.0/24, via: 198.51.100.1}
    - {to: 203.0.113.0/24, via: 198.51.101.1}
  neighbours:
    - {port: left, address: 198.51.100.1, mac: "02:00:00:00:0a:01"}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: ipv4}
  select: {by: inner, prefixes: [10.1.0.0/16, 10.11.0.0/16]}
  ports:
    - {name: far, tunnel: {type: ipip, local: 198.51.100.2, remote: 203.0.113.3}, over: wan, addresses: [10.255.0.1/30]}
    - {name: hosts, port: p2, mac: "02:00:00:00:07:01", addresses: [10.1.0.1/24]}
  routes:
    - {to: 10.11.0.0/16, via: 10.255.0.2}
  neighbours:
    - {port: hosts, address: 10.1.0.5, mac: "02:00:00:00:0b:01"}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: blue}
spec:
  plane: {kind: ipv4}
  select: {by: inner, prefixes: [10.2.0.0/16]}
  ports:
    - {name: far, tunnel: {type: ipip, local: 198.51.100.2, remote: 203.0.113.3}, over: wan, addresses: [10.255.0.5/30]}
    - {name: hosts, port: p2, mac: "02:00:00:00:07:02", addresses: [10.2.0.1/24]}
  neighbours:
    - {port: hosts, address: 10.2.0.5, mac: "02:00:00:00:0b:02"}
"#;

#[test]
fn packets_of_a_shared_tunnel_reach_the_network_of_their_destination() {
    let dir = Scratch::new();
    dir.write("all.yaml", SHARED);
    // UDP from the far end to a host of red or blue, and the same as the content of another tunnel.
    let to = |last: u8, protocol: u8, payload: &[u8]| {
        let mut packet = outer([10, 3, 0, 9], protocol, 0, payload);
        packet[30..34].copy_from_slice(&[10, last, 0, 5]);
        fix(&mut packet);
        packet[14..].to_vec()
    };
    const UDP: [u8; 8] = [0, 7, 0, 9, 0, 8, 0, 0];
    let blue = to(2, 17, &UDP);
    let nested = vxlan(8, 7, &[&[2; 12][..], &[8, 0], &blue].concat());
    for (packet, network) in [
        (to(1, 17, &UDP), "red"),
        (blue.clone(), "blue"),
        (to(1, 4, &blue), "red"),
        (to(1, 17, &nested), "red"),
        (to(9, 4, &blue), "nobody"),
        (to(9, 17, &nested), "nobody"),
    ] {
        let ([.., hosts, punt], report) = run(&dir, "p1", &[outer(RIGHT, 4, 0, &packet)]);
        let counts = ["red", "blue"].map(|name| report["networks"][name]["forward"].as_u64().unwrap());
        let want = ["red", "blue"].map(|name| u64::from(name == network));
        assert_eq!((counts, punt.len(), hosts.len() as u64), (want, 0, want[0] + want[1]), "{network}");
        if network == "nobody" {
            assert_eq!(report["networks"]["wan"]["losses"], json!({"tunnel_stranger": 1}));
        }
    }
}

/// The carrier has a route to the far end of the tunnel, but no neighbour there: it punts the outer packet, so that its kernel asks.
#[test]
fn a_far_end_without_a_neighbour_is_the_carriers_affair() {
    let dir = Scratch::new();
    dir.write("all.yaml", SHARED);
    let sent = ipv4("02:00:00:00:07:01", 64, [10, 1, 0, 5], [10, 11, 0, 9]);
    let ([_, right, _, punt], report) = run(&dir, "p2", std::slice::from_ref(&sent));
    assert_eq!((right.len(), punt.len()), (0, 1));
    assert_eq!((&punt[0][26..30], &punt[0][30..34]), (&LOCAL[..], &RIGHT[..]));
    assert_eq!(report["networks"]["red"]["forward"], 1);
    let counts = json!({"received": 1, "forward": 0, "punt": 1, "drop": {}});
    assert_eq!(report["networks"]["wan"], counts);
    // With a neighbour, it leaves.
    let known = SHARED.replace(
        "mac: \"02:00:00:00:0a:01\"}",
        "mac: \"02:00:00:00:0a:01\"}\n    - {port: right, address: 198.51.101.1, mac: \"02:00:00:00:0a:02\"}",
    );
    dir.write("all.yaml", known);
    let ([_, right, _, punt], _) = run(&dir, "p2", &[sent]);
    assert_eq!((right.len(), punt.len()), (1, 0));
}
