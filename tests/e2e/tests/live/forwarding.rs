//! Real hosts and their networks: the behaviour of a router, seen from the hosts.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use hue_e2e::document::all;
use hue_e2e::frame::{self, Mac};
use hue_e2e::lab::{Host, text};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, Sniffer, can_run};

#[test]
fn a_network_is_a_router_between_its_hosts() {
    if !can_run(&["traceroute"]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let document = red.document.clone().with("routes", "[{to: 10.77.0.0/16, via: 10.1.2.2}]");
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), document.yaml()]));
    let (left, right) = (&red.left, &red.right);
    red.warm_up();
    assert_eq!(left.ping(right.address, 20), 20);
    assert_eq!(right.ping(left.address, 20), 20);
    // The router itself, on both sides.
    assert_eq!(left.ping(left.router, 3), 3);
    assert_eq!(left.ping(right.router, 3), 3);
    // A full-sized packet that must not be fragmented.
    assert!(left.ping_with(right.address, 3, &["-s", "1472", "-M", "do"]).ok());

    // ARP: the host learned the router's address from the network's namespace.
    let neighbours = left.space.run("ip", &["neighbour", "show", &left.router.to_string()]).stdout;
    assert!(neighbours.contains(&red.document.ports[0].mac), "{neighbours}");

    let expired = left.ping_with(right.address, 2, &["-t", "1"]).stdout;
    assert!(expired.contains("From 10.1.1.1") && expired.contains("Time to live exceeded"), "{expired}");
    // The kernel sends about one such message a second to a host, and has just sent it another.
    let unreachable = left.ping_with(Ipv4Addr::new(10, 200, 0, 1), 3, &["-i", "1.1"]).stdout;
    assert!(
        unreachable.contains("From 10.1.1.1") && unreachable.contains("Net Unreachable"),
        "{unreachable}"
    );
    let nobody = left.ping_with(Ipv4Addr::new(10, 1, 2, 99), 2, &["-W", "8"]).stdout;
    assert!(nobody.contains("From 10.1.1.1") && nobody.contains("Host Unreachable"), "{nobody}");
    let hops = left.space.run("traceroute", &["-n", "-q", "1", "10.1.2.2"]).expect_ok().stdout;
    let hops: Vec<&str> = hops.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(hops, ["10.1.1.1", "10.1.2.2"]);

    // A static route of the document, to an address that the right host has.
    right.space.ip(&["address", "add", "10.77.0.1/32", "dev", "lo"]);
    assert!(left.ping(Ipv4Addr::new(10, 77, 0, 1), 3) == 3);

    // TCP each way: segments whose segmentation and checksum hosts offload arrive as real packets.
    for (from, to) in [(left, right), (right, left)] {
        assert_eq!(transfer(from, to, to.address, 60 << 20), 60 << 20);
    }

    let stats = daemon.cli.stats(red.name());
    assert!(stats["punts"]["ttl"].as_u64().unwrap_or(0) >= 3, "{stats}");
    assert!(stats["punts"]["no_route"].as_u64().unwrap_or(0) >= 2, "{stats}");
}

/// Sends `bytes` over TCP to an address of a host. Returns how many of them arrived as they were sent.
pub fn transfer(from: &Host, to: &Host, address: impl Into<IpAddr>, bytes: usize) -> usize {
    let at = SocketAddr::new(address.into(), 0);
    let listener = to.space.inside(|| TcpListener::bind(at).unwrap());
    let address = listener.local_addr().unwrap();
    let pattern: Vec<u8> = (0..1_usize << 16).map(|at| (at % 251) as u8).collect();
    let expected = pattern.clone();
    let receives = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let (mut buffer, mut arrived) = (vec![0; expected.len()], 0);
        while arrived < bytes {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == expected, "other bytes after {arrived}");
            arrived += buffer.len();
        }
        assert_eq!(stream.read(&mut buffer).unwrap(), 0, "bytes that nobody sent");
        arrived
    });
    from.space.inside(|| {
        let mut stream = TcpStream::connect(address).unwrap();
        (0..bytes / pattern.len()).for_each(|_| stream.write_all(&pattern).unwrap());
    });
    receives.join().unwrap()
}

/// Whether a frame is from one of these. Broadcast ARP requests of routers are excluded: on a shared wire, all hosts see them.
fn from_any(macs: Vec<Mac>) -> impl Fn(&[u8]) -> bool + Send + 'static {
    move |frame| {
        let asks = frame[..6] == frame::BROADCAST && frame[12..14] == [8, 6] && frame[7] == 0x72;
        !asks && macs.iter().any(|mac| frame[6..12] == *mac)
    }
}

#[test]
fn networks_with_the_same_addresses_do_not_know_of_each_other() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(4);
    let pairs = [
        lab.pair("red", 1, 1, [0, 1]),
        // The same addresses on other ports.
        lab.pair("blue", 1, 2, [2, 3]),
        // Other addresses on ports of both.
        lab.pair("green", 3, 3, [0, 2]),
    ];
    let mut documents = vec![lab.node_document("")];
    documents.extend(pairs.iter().map(|pair| pair.document.yaml()));
    let _daemon = Daemon::start(&lab, &all(&documents));

    // Each host watches for frames from hosts and routers that are not its network's.
    let macs = |tag: u8| {
        [(0x68, 2), (0x72, 1)].map(|(kind, host)| [0, 1].map(|side| [2, kind, tag, side, n(tag), host]))
    };
    let sniffers: Vec<Sniffer> = (1..=3u8)
        .flat_map(|tag| {
            let foreign: Vec<Mac> =
                (1..=3).filter(|other| *other != tag).flat_map(|other| macs(other).concat()).collect();
            let pair = &pairs[usize::from(tag) - 1];
            [&pair.left, &pair.right]
                .map(|host| Sniffer::start(&host.space, "eth0", from_any(foreign.clone())))
        })
        .collect();
    for pair in &pairs {
        pair.warm_up();
    }
    let flows: Vec<Flow> = pairs
        .iter()
        .flat_map(|pair| {
            [Flow::start(&pair.left, &pair.right, 300, 300), Flow::start(&pair.right, &pair.left, 300, 300)]
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_secs(2));
    for flow in flows {
        let report = flow.stop();
        assert!(
            report.sent > 0 && report.lost() == 0 && report.foreign == 0 && report.duplicated == 0,
            "{report}"
        );
    }
    // Another network's addresses are not reached by the router, and not past it.
    let (red, green) = (&pairs[0], &pairs[2]);
    assert_eq!(red.left.ping(green.right.address, 2), 0);
    red.left.space.ip(&["route", "add", "10.3.1.0/24", "dev", "eth0"]);
    assert_eq!(red.left.ping(green.left.address, 2), 0);
    for sniffer in sniffers {
        let seen = sniffer.stop();
        let sources: Vec<String> =
            seen.frames.iter().filter_map(|f| f[6..12].try_into().ok().map(text)).collect();
        assert!(seen.all > 0 && seen.wanted == 0, "frames of another network, from {sources:?}");
    }
}

/// The number of a tag's addresses in [`networks_with_the_same_addresses_do_not_know_of_each_other`].
fn n(tag: u8) -> u8 {
    if tag == 3 { 3 } else { 1 }
}

#[test]
fn packets_above_the_mtu_get_an_icmp_error() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let yaml = red.document.yaml().replace("addresses: [10.1.2.1/24]", "addresses: [10.1.2.1/24], mtu: 1300");
    let _daemon = Daemon::start(&lab, &all(&[lab.node_document(""), yaml]));
    red.warm_up();
    let output = red.left.ping_with(red.right.address, 2, &["-s", "1372", "-M", "do"]);
    assert!(output.stdout.contains("Frag needed") || output.stdout.contains("mtu = 1300"), "{output}");
    // Without the DF bit the network's own kernel fragments the host's packet.
    let cut = red.left.ping_with(red.right.address, 3, &["-s", "1372", "-M", "dont"]);
    assert!(cut.ok(), "{cut}");
}
