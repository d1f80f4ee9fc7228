//! Tunnels: beside Linux and Open vSwitch (VXLAN over IPv4 and IPv6), and between networks of one node (IP in IP), whose outer
//! packets cross a real wire.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;

use hue_e2e::document::all;
use hue_e2e::frame::{self, Ends, Mac};
use hue_e2e::lab::{Host, Pair, address6, text};
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Flood, Lab, Ovs, Raw, Sniffer, Space, can_run, ovs, shell, until};
use serde_json::Value;

use crate::card;
use crate::forwarding::transfer;
use crate::migrate::{is_clean, is_whole};

/// A network's document: `ports` are flow mappings without braces.
fn network(lab: &Lab, name: &str, kind: &str, ports: &[String], more: &str) -> String {
    let ports: String = ports.iter().map(|port| format!("    - {{{port}}}\n")).collect();
    let name = lab.name(name);
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: {kind}}}\n  ports:\n{ports}{more}"
    )
}

/// The MAC address of a network's router in these labs.
const fn router(last: u8) -> Mac {
    [2, 0x72, 0, 0, 0, last]
}

fn counter(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A node with a switch and a router, each with a tunnel to a Linux host. The node's port 0 leads there, and is shared.
struct Site {
    lab: Lab,
    /// The Linux host.
    linux: Host,
    /// A host at the switch.
    desk: Host,
    /// A host of the router.
    behind: Host,
    documents: [String; 3],
}

const LINUX: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The Linux host in the switched network.
const AT_SWITCH: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 9);
/// The Linux host at the other end of the router's tunnel.
const AT_ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn site() -> Site {
    let lab = Lab::new(4);
    let linux = lab.bare_host("linux", 0, [2, 0x68, 0, 0, 0, 2], &format!("{LINUX}/24"));
    linux.space.enable_ipv6();
    linux.space.ip_batch(&format!(
        "address add 2001:db8::2/64 dev eth0 nodad\n\
         link add vx7 type vxlan id 7 local {LINUX} remote 192.0.2.1 dstport 4789\n\
         address add {AT_SWITCH}/24 dev vx7\n\
         link set vx7 up\n\
         link add vx8 type vxlan id 8 local 2001:db8::2 remote 2001:db8::1 dstport 4789 udp6zerocsumrx\n\
         address add {AT_ROUTER}/30 dev vx8\n\
         link set vx8 up\n\
         route add 10.1.8.0/24 via 10.0.0.1\n"
    ));
    let desk = lab.bare_host("desk", 1, [2, 0x68, 7, 0, 0, 2], "10.7.0.2/24");
    desk.space.ip(&["link", "set", "eth0", "mtu", "1450"]);
    let behind = lab.host("behind", 2, [2, 0x68, 8, 0, 0, 2], "10.1.8.2/24", Ipv4Addr::new(10, 1, 8, 1));
    let documents = [carrier(&lab, ""), lan(&lab), red(&lab, "2001:db8::2")];
    Site { lab, linux, desk, behind, documents }
}

fn carrier(lab: &Lab, more: &str) -> String {
    let up = format!(
        "name: up, port: {}, mac: \"{}\", addresses: [192.0.2.1/24, \"2001:db8::1/64\"]",
        lab.ports()[0],
        text(router(1))
    );
    network(lab, "wan", "dual", &[up], more)
}

fn lan(lab: &Lab) -> String {
    let desk = format!("name: desk, port: {}, mac: \"{}\", mtu: 1450", lab.ports()[1], text(router(7)));
    let tunnel = format!(
        "name: to-linux, tunnel: {{type: vxlan, local: 192.0.2.1, remote: {LINUX}, vni: 7}}, over: {}",
        lab.name("wan")
    );
    network(lab, "lan", "l2", &[desk, tunnel], "")
}

fn red(lab: &Lab, remote: &str) -> String {
    let hosts = format!(
        "name: hosts, port: {}, mac: \"{}\", addresses: [10.1.8.1/24]",
        lab.ports()[2],
        text(router(8))
    );
    let tunnel = format!(
        "name: to-linux, tunnel: {{type: vxlan, local: \"2001:db8::1\", remote: \"{remote}\", vni: 8}}, over: {}, \
         addresses: [10.0.0.1/30]",
        lab.name("wan")
    );
    network(lab, "red", "ipv4", &[hosts, tunnel], "")
}

impl Site {
    /// Waits until the hosts of both tunnelled networks and the Linux host reach each other.
    #[track_caller]
    fn reach_each_other(&self, when: &str) {
        for (from, to) in [
            (&self.desk, AT_SWITCH),
            (&self.linux, self.desk.address),
            (&self.behind, AT_ROUTER),
            (&self.linux, self.behind.address),
        ] {
            until(&format!("{when}: {} reaches {to}", from.space.name()), 20, || from.ping(to, 1) == 1);
        }
    }

    /// The port of red's tunnel, as the command line shows it.
    fn tunnel(&self, daemon: &Daemon) -> Value {
        card::network(daemon, &self.lab.name("red"))["ports"][1].clone()
    }
}

/// What tshark says about all packets that `work` causes at an interface: the lines of `fields` for packets that pass
/// `filter`. Nothing may be malformed.
fn dissected(
    lab: &Lab,
    (space, interface): (&Space, &str),
    filter: &str,
    fields: &[&str],
    work: impl FnOnce(),
) -> Vec<Vec<String>> {
    let file = lab.folder().join("outer.pcapng");
    let path = file.to_string_lossy().into_owned();
    let mut command = shell::command("tshark");
    command.args(["-q", "-i", interface, "-w", &path]);
    let mut child = space.spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until("tshark captures", 20, || file.exists());
    work();
    // VXLAN over IPv6 may go without a UDP checksum (RFC 6935 §5, RFC 7348 §5), which tshark takes for an error unless told.
    let allowed = ["-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-r", &path];
    let read = |more: &[&str]| shell::run(shell::command("tshark").args(allowed).args(more)).stdout;
    until("tshark has packets", 20, || !read(&["-Y", filter]).trim().is_empty());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT)
        .unwrap();
    let _ = child.wait();
    let wrong = read(&["-Y", "_ws.malformed || _ws.expert.severity == error"]);
    assert!(wrong.trim().is_empty(), "{wrong}");
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "occurrence=f"];
    fields.iter().for_each(|field| arguments.extend(["-e", *field]));
    let lines = read(&arguments);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// What tshark shows of those of these frames that pass a filter. None of all may be malformed.
fn shows(lab: &Lab, frames: &[Vec<u8>], filter: &str) -> String {
    // The headers of a capture and of a packet in it, without times: version 2.4, Ethernet.
    let mut bytes: Vec<u8> = [0xa1b2_c3d4_u32, 2 << 16 | 4, 0, 0, 65_535, 1].map(u32::to_be_bytes).concat();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        bytes.extend([0, 0, length, length].map(u32::to_be_bytes).concat());
        bytes.extend(frame);
    }
    let file = lab.folder().join("frames.pcap");
    std::fs::write(&file, bytes).unwrap();
    let path = file.to_string_lossy().into_owned();
    let read = |filter: &str| shell::run(shell::command("tshark").args(["-r", &path, "-Y", filter])).stdout;
    let wrong = read("_ws.malformed || _ws.expert.severity == error");
    assert!(wrong.trim().is_empty(), "{wrong}");
    read(filter)
}

#[test]
fn a_switch_and_a_router_are_joined_to_linux_by_vxlan() {
    if !can_run(&["tshark"]) {
        return;
    }
    let site = site();
    let lab = &site.lab;
    let (wan_name, red_name) = (lab.name("wan"), lab.name("red"));
    let mut documents = vec![lab.node_document("")];
    documents.extend(site.documents.iter().cloned());
    let mut daemon = Daemon::start(lab, &all(&documents));
    site.reach_each_other("at the start");

    // The frames that it sends, as another program sees them.
    let fields = ["ip.ttl", "ip.flags.df", "udp.checksum", "udp.srcport", "vxlan.vni", "ip.dsfield.dscp"];
    let at = (&site.linux.space, "eth0");
    let seen = dissected(lab, at, "vxlan && ip.src == 192.0.2.1 && icmp", &fields, || {
        let _ = site.desk.ping_with(AT_SWITCH, 3, &["-Q", "0xb8"]);
    });
    for line in &seen {
        let [ttl, df, checksum, port, vni, dscp] = line.as_slice() else { panic!("{line:?}") };
        assert_eq!([ttl, vni, dscp], ["64", "7", "46"], "{line:?}");
        assert!(df == "1" || df == "True", "{line:?}");
        assert!(checksum == "0x0000" && port.parse::<u16>().unwrap() >= 49_152, "{line:?}");
    }

    // The MTU follows from the ports of the carrier, and senders learn it.
    let sized =
        |bytes: u32| site.behind.ping_with(AT_ROUTER, 1, &["-M", "do", "-s", &(bytes - 28).to_string()]);
    assert!(sized(1430).stdout.contains(" 1 received"), "a packet that just fits");
    let refused = sized(1431);
    let told = refused.stdout + &refused.stderr;
    assert!(told.contains("mtu = 1430") || told.contains("mtu=1430"), "{told}");

    let port = site.tunnel(&daemon);
    let tunnel = &port["tunnel"];
    assert_eq!(
        (&tunnel["type"], &tunnel["vni"], &tunnel["over"]),
        (&"vxlan".into(), &8.into(), &wan_name.as_str().into()),
        "{port}"
    );
    assert_eq!((&port["up"], &port["mtu"]), (&true.into(), &1430.into()), "{port}");
    let shown = daemon.cli.run(&["get", "networks", &red_name]).expect_ok().stdout;
    assert!(shown.contains(&format!("to-linux:vxlan@{wan_name}")), "{shown}");
    let attached = daemon.cli.run(&["attach", &format!("{red_name}/to-linux"), "--host", "h"]);
    assert!(attached.code != 0 && attached.stderr.contains("a tunnel to 2001:db8::2"), "{}", attached.stderr);

    // The interface has carrier while there is a way.
    let carrier = |on: bool| {
        until(&format!("carrier {on}"), 20, || {
            let shown = daemon.cli.exec(&red_name, &["ip", "link", "show", "to-linux"]).stdout;
            shown.contains("NO-CARRIER") != on && site.tunnel(&daemon)["up"] == on
        });
    };
    carrier(true);
    let route = |how: &[&str]| {
        let command: Vec<&str> = ["ip", "-6", "route"].iter().chain(how).copied().collect();
        let _ = daemon.cli.exec(&wan_name, &command).expect_ok();
    };
    route(&["del", "2001:db8::/64", "dev", "up"]);
    carrier(false);
    assert_eq!(site.behind.ping(AT_ROUTER, 1), 0);
    assert_eq!(site.desk.ping(AT_SWITCH, 2), 2, "the other tunnel has its way");
    route(&["add", "2001:db8::/64", "dev", "up"]);
    carrier(true);
    site.reach_each_other("when the way is back");

    bad_changes_leave_everything(&site, &daemon);

    daemon.kill();
    daemon.respawn(lab);
    site.reach_each_other("after a restart");
    carrier_leaves_and_returns(&site, &daemon);
}

/// One switched network of three switches: the node's, Linux's VXLAN interface, and Open vSwitch in user space. Frames between
/// the other two pass the node.
/// The same two networks, but a program switches and Linux routes.
#[test]
fn a_program_and_linux_forward_through_tunnels() {
    if !can_run(&["python3"]) {
        return;
    }
    let site = site();
    let lab = &site.lab;
    let [wan, lan, red] = &site.documents;
    let command = serde_json::to_string(&crate::process::switch()).unwrap();
    let program = lan.replace("{kind: l2}", &format!("{{kind: process, command: {command}}}"));
    let linux = red.replace("{kind: ipv4}", "{kind: kernel}");
    assert!(program != *lan && linux != *red);
    let node = lab.node_document("");
    let daemon = Daemon::start(lab, &all(&[node.clone(), wan.clone(), program, linux]));
    site.reach_each_other("at the start");
    assert_eq!((site.desk.ping(AT_SWITCH, 20), site.behind.ping(AT_ROUTER, 20)), (20, 20));
    // What does not fit into the tunnel is answered by the network's own Linux.
    let large = site.behind.ping_with(AT_ROUTER, 1, &["-M", "do", "-s", "1440"]);
    assert!(large.stdout.contains("mtu = 1430"), "{large}");
    assert_eq!(transfer(&site.desk, &site.linux, AT_SWITCH, 2 << 20), 2 << 20);
    assert_eq!(transfer(&site.behind, &site.linux, AT_ROUTER, 8 << 20), 8 << 20);
    for name in ["lan", "red"].map(|name| lab.name(name)) {
        let stats = daemon.cli.stats(&name);
        let sum = |field: &str| -> u64 {
            stats["ports"].as_array().unwrap().iter().map(|port| counter(&port[field])).sum()
        };
        assert_eq!(counter(&stats["punts"]["delegated"]), sum("received"), "{stats}");
        assert!(sum("sent") > 1_000, "{stats}");
    }
    // With planes of hueplane again, and hosts still reach each other.
    daemon.cli.apply(&all(&[node, wan.clone(), lan.clone(), red.clone()]), &[]);
    site.reach_each_other("with planes");
}

#[test]
fn a_switch_spans_linux_and_open_vswitch() {
    if !can_run(&[&["tshark"], &ovs::PROGRAMS[..]].concat()) {
        return;
    }
    let lab = Lab::new(2);
    let linux = lab.bare_host("linux", 0, [2, 0x68, 0, 0, 0, 2], &format!("{LINUX}/24"));
    linux.space.ip_batch(&format!(
        "link add vx7 type vxlan id 7 local {LINUX} remote 192.0.2.1 dstport 4789\n\
         address add {AT_SWITCH}/24 dev vx7\nlink set vx7 up\n"
    ));
    let address = Ipv4Addr::new(192, 0, 2, 3);
    let vswitch = lab.bare_host("ovs", 0, [2, 0x68, 0, 0, 0, 3], &format!("{address}/24"));
    let at_vswitch = Ipv4Addr::new(10, 7, 0, 3);
    let ovs = Ovs::new(&vswitch.space, &lab.folder().join("ovs"));
    ovs.start_switch(&vswitch.space, |command| command);
    ovs.reach_tunnels_by(&vswitch.space, "wan", ("eth0", "system"), (vswitch.mac, address));
    ovs.add_bridge(&vswitch.space, "br0");
    let tunnel = ["type=vxlan", "options:remote_ip=192.0.2.1", "options:local_ip=192.0.2.3", "options:key=7"];
    ovs.add_port(&vswitch.space, "br0", "vx7", &tunnel).unwrap();
    let mtu = ["set", "interface", "br0", "mtu_request=1450"];
    let _ = ovs.vsctl(&vswitch.space, &mtu).expect_ok();
    vswitch.space.ip_batch(&format!("address add {at_vswitch}/24 dev br0\nlink set br0 up\n"));
    let desk = lab.bare_host("desk", 1, [2, 0x68, 7, 0, 0, 2], "10.7.0.2/24");
    desk.space.ip(&["link", "set", "eth0", "mtu", "1450"]);

    let up = format!(
        "name: up, port: {}, mac: \"{}\", addresses: [192.0.2.1/24]",
        lab.ports()[0],
        text(router(1))
    );
    let mut ports =
        vec![format!("name: desk, port: {}, mac: \"{}\", mtu: 1450", lab.ports()[1], text(router(7)))];
    for (name, remote) in [("to-linux", LINUX), ("to-ovs", address)] {
        ports.push(format!(
            "name: {name}, tunnel: {{type: vxlan, local: 192.0.2.1, remote: {remote}, vni: 7}}, over: {}",
            lab.name("wan")
        ));
    }
    let documents = [
        lab.node_document(""),
        network(&lab, "wan", "ipv4", &[up], ""),
        network(&lab, "lan", "l2", &ports, ""),
    ];
    let daemon = Daemon::start(&lab, &all(&documents));

    let pairs = [
        (&desk, AT_SWITCH),
        (&desk, at_vswitch),
        (&linux, at_vswitch),
        (&vswitch, AT_SWITCH),
        (&vswitch, desk.address),
    ];
    // At the other end of the node's wire: all that it sends and receives.
    let fields = ["eth.src", "ip.src", "ip.dst", "vxlan.vni", "udp.checksum", "arp.opcode"];
    let at = (lab.switch(), "w0");
    let seen = dissected(&lab, at, "frame", &fields, || {
        for (from, to) in pairs {
            until(&format!("{} reaches {to}", from.space.name()), 20, || from.ping(to, 1) == 1);
            // As long as can be.
            let longest = from.ping_with(to, 2, &["-M", "do", "-s", "1422"]);
            assert!(longest.stdout.contains(" 2 received"), "{longest}");
        }
    });
    let mut sent_to = [0; 2];
    for line in seen.iter().filter(|line| line[0] == text(router(1))) {
        let [_, from, to, vni, checksum, arp] = line.as_slice() else { panic!("{line:?}") };
        if !arp.is_empty() && vni.is_empty() {
            continue; // of the carrier itself
        }
        assert_eq!([from, vni, checksum], ["192.0.2.1", "7", "0x0000"], "{line:?}");
        let remotes = [LINUX, address].map(|remote| remote.to_string());
        let at = remotes.iter().position(|remote| remote == to);
        sent_to[at.unwrap_or_else(|| panic!("{line:?}"))] += 1;
    }
    assert!(sent_to.iter().all(|sent| *sent >= 6), "{sent_to:?}");

    // The node knows behind which tunnel the others' hosts are.
    let known = daemon.cli.json(&["get", "macs", "-n", &lab.name("lan")]).to_string();
    let mac = |host: &Host, interface: &str| {
        let shown = host.space.run("ip", &["-j", "link", "show", interface]).expect_ok().json();
        shown[0]["address"].as_str().unwrap().to_owned()
    };
    for (mac, port) in [(mac(&linux, "vx7"), "to-linux"), (mac(&vswitch, "br0"), "to-ovs")] {
        let entry = known.split('{').find(|entry| entry.contains(&mac));
        assert!(entry.is_some_and(|entry| entry.contains(port)), "{mac} {port}: {known}");
    }
    let losses = daemon.cli.stats(&lab.name("wan"))["losses"].clone();
    let tunnels = losses.as_object().into_iter().flatten().filter(|(reason, _)| reason.starts_with("tunnel"));
    assert!(tunnels.map(|(_, count)| counter(count)).sum::<u64>() == 0, "{losses}");
}

fn bad_changes_leave_everything(site: &Site, daemon: &Daemon) {
    let (lab, cli) = (&site.lab, &daemon.cli);
    for (document, expected) in [
        (red(lab, "2001:db8::1"), "which is also the local end"),
        (red(lab, "192.0.2.2"), "expected an address of the family of 2001:db8::1"),
        (
            red(lab, "2001:db8::2").replace(&format!("over: {}", lab.name("wan")), "over: none"),
            "unknown network \"none\"",
        ),
        (lan(lab).replace("mtu: 1450", "mtu: 1400"), "expected the same MTU at all ports of a switch"),
        (carrier(lab, "").replace("192.0.2.1/24, ", ""), "expected an address of network"),
        (lan(lab) + "  placement: card\n", "found card for a switch with tunnels"),
    ] {
        let refused = cli.run_with(&["apply", "-f", "-"], &document).expect_code(3);
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.stderr);
    }
    let refused = cli.run(&["delete", "network", &lab.name("wan")]);
    let named = [lab.name("lan"), lab.name("red")].iter().all(|name| refused.stderr.contains(name));
    assert!(
        refused.code != 0 && refused.stderr.contains("carries tunnels of") && named,
        "{}",
        refused.stderr
    );
    assert_eq!(site.behind.ping(AT_ROUTER, 2) + site.desk.ping(AT_SWITCH, 2), 4);
}

/// Passengers first, then the carrier; and back in one change, and in the other order.
fn carrier_leaves_and_returns(site: &Site, daemon: &Daemon) {
    let (lab, cli) = (&site.lab, &daemon.cli);
    for name in ["red", "lan", "wan"] {
        let _ = cli.run(&["delete", "network", &lab.name(name)]).expect_ok();
    }
    // In one file, with the carrier last.
    let [wan, lan, red] = &site.documents;
    cli.apply(&all(&[red.clone(), lan.clone(), wan.clone()]), &[]);
    site.reach_each_other("when all have come back");
    // The carrier changes in place, and is replaced: other MAC address, other id.
    cli.apply(&wan.replace("spec:\n", "spec:\n  weight: 3\n"), &[]);
    assert_eq!(site.behind.ping(AT_ROUTER, 2), 2);
    cli.apply(&wan.replace("spec:\n", "spec:\n  vid: 77\n").replace(&text(router(1)), &text(router(2))), &[]);
    site.linux.space.ip(&["neigh", "flush", "dev", "eth0"]);
    site.reach_each_other("with the carrier replaced");
}

/// A VXLAN packet from the Linux host's wire to the node.
fn outer(from: Ipv4Addr, mac: Mac, vni: u8, flags: u8, inner: &[u8]) -> Vec<u8> {
    let mut payload = vec![flags, 0, 0, 0, 0, 0, vni, 0];
    payload.extend_from_slice(inner);
    let ends = Ends { macs: [router(1), mac], addresses: [from, Ipv4Addr::new(192, 0, 2, 1)], ttl: 64 };
    frame::udp(ends, [50_000, 4789], &payload)
}

/// Changes bytes of an IPv4 header, and sets its checksum.
fn with_header(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[14 + at..14 + at + bytes.len()].copy_from_slice(bytes);
    frame[24..26].fill(0);
    let checksum = frame::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

#[test]
fn strangers_and_bad_packets_are_counted_and_cost_a_neighbour_nothing() {
    if !can_run(&[]) {
        return;
    }
    let site = site();
    let lab = &site.lab;
    // On the port of the carrier.
    let calm = lab.pair("calm", 3, 3, [0, 3]).with_fixed_neighbours();
    let mut documents = vec![lab.node_document(""), calm.document.yaml()];
    documents.extend(site.documents.iter().cloned());
    let daemon = Daemon::start(lab, &all(&documents));
    site.reach_each_other("before");
    daemon.cli.warm_up(&[&calm]);

    let inner = frame::udp(
        Ends {
            macs: [site.desk.mac, [2, 9, 9, 9, 9, 9]],
            addresses: [AT_SWITCH, site.desk.address],
            ttl: 64,
        },
        [1, 2],
        &[0; 32],
    );
    let mac = site.linux.mac;
    let good = outer(LINUX, mac, 7, 8, &inner);
    let mut checked = good.clone();
    checked[40..42].copy_from_slice(&[0x12, 0x34]);
    let kinds: [(&str, Vec<u8>); 6] = [
        ("tunnel_stranger", outer(Ipv4Addr::new(192, 0, 2, 77), mac, 7, 8, &inner)),
        ("tunnel_stranger", outer(LINUX, mac, 9, 8, &inner)),
        ("tunnel_fragment", with_header(good.clone(), 6, &[0x20, 0])),
        ("tunnel_header", outer(LINUX, mac, 7, 0, &inner)),
        ("tunnel_header", outer(LINUX, mac, 7, 8, &inner[..8])),
        ("tunnel_checksum", checked),
    ];
    let losses = || {
        let stats = daemon.cli.stats(&lab.name("wan"));
        move |reason: &str| counter(&stats["losses"][reason])
    };
    let at_desk =
        Sniffer::start(&site.desk.space, "eth0", |frame| frame.get(6..12) == Some(&[2, 9, 9, 9, 9, 9]));
    let mut raw = Raw::open(&site.linux.space, "eth0");
    for (reason, frame) in &kinds {
        let before = losses()(reason);
        assert_eq!(raw.send([frame.as_slice(); 50]), 50);
        until(&format!("{reason} counts"), 10, || losses()(reason) == before + 50);
    }
    // The same packet without a fault arrives.
    assert_eq!(raw.send([good.as_slice(); 5]), 5);
    drop(raw);
    let flows =
        [Flow::start(&calm.left, &calm.right, 500, 200), Flow::start(&calm.right, &calm.left, 500, 200)];
    let flood = Flood::start(&site.linux.space, kinds.into_iter().map(|(_, frame)| frame).collect(), 4_000);
    until("a flood", 30, || flood.sent() > 8_000 && flows.iter().all(|flow| flow.received() > 500));
    let _ = flood.stop();
    flows.into_iter().for_each(is_whole);
    assert_eq!(at_desk.stop().wanted, 5, "only packets without a fault enter the network");
    site.reach_each_other("after a flood");
}

/// A far end with two tunnels over one carrier: `noisy`, and `calm`, each with a host at the node.
struct Shared {
    lab: Lab,
    far: Host,
    noisy: Host,
    calm: Host,
    daemon: Daemon,
}

/// The far end in the networks `noisy` and `calm`.
fn far_in(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, n, 2)
}

/// In software only, with packets of the ports by this driver.
fn two_tunnels_over_one_carrier(driver: &str, more_of_noisy: &str) -> Shared {
    let node = |lab: &Lab| lab.node_document(&format!("driver: {driver}"));
    share_a_carrier(node, &[], more_of_noisy)
}

fn share_a_carrier(node: impl Fn(&Lab) -> String, images: &[&str], more_of_noisy: &str) -> Shared {
    let lab = Lab::new(3);
    let far = lab.bare_host("far", 0, [2, 0x68, 0, 0, 0, 2], &format!("{LINUX}/24"));
    let (mut documents, mut hosts) = (vec![node(&lab)], Vec::new());
    let up = format!(
        "name: up, port: {}, mac: \"{}\", addresses: [192.0.2.1/24]",
        lab.ports()[0],
        text(router(1))
    );
    documents.push(network(&lab, "wan", "ipv4", &[up], ""));
    for (n, name, more) in [(1u8, "noisy", more_of_noisy), (2, "calm", "")] {
        // A host keeps to the tunnel's MTU by itself.
        far.space.ip_batch(&format!(
            "link add vx{n} type vxlan id {n} local {LINUX} remote 192.0.2.1 dstport 4789\n\
             address add {}/30 dev vx{n}\nlink set vx{n} up\nroute add 10.1.{n}.0/24 via 10.0.{n}.1\n",
            far_in(n)
        ));
        let router_of = Ipv4Addr::new(10, 1, n, 1);
        let mac = [2, 0x68, 1, 0, n, 2];
        hosts.push(lab.host(name, usize::from(n), mac, &format!("10.1.{n}.2/24"), router_of));
        let host = format!(
            "name: hosts, port: {}, mac: \"{}\", addresses: [{router_of}/24]",
            lab.ports()[usize::from(n)],
            text(router(10 + n))
        );
        let tunnel = format!(
            "name: far, tunnel: {{type: vxlan, local: 192.0.2.1, remote: {LINUX}, vni: {n}}}, over: {}, \
             addresses: [10.0.{n}.1/30]",
            lab.name("wan")
        );
        documents.push(network(&lab, name, "ipv4", &[host, tunnel], more));
    }
    let file = lab.folder().join("hueplane.yaml");
    hue_e2e::daemon::write(&file, &all(&documents));
    // One worker, which all of them share.
    let arguments = ["-f", &file.to_string_lossy(), "--workers", "1"];
    let images = Some(hue_testdata::images(images)).filter(|_| !images.is_empty());
    let daemon = Daemon::start_with(&lab, &Cli { images, ..Cli::new(&lab) }, &arguments);
    let calm = hosts.remove(1);
    let noisy = hosts.remove(0);
    for (host, n) in [(&noisy, 1), (&calm, 2)] {
        until("the far end answers", 20, || host.ping(far_in(n), 1) == 1);
        until("the far end asks", 20, || far.ping(host.address, 1) == 1);
    }
    Shared { lab, far, noisy, calm, daemon }
}

impl Shared {
    fn losses(&self, name: &str) -> Value {
        self.daemon.cli.stats(&self.lab.name(name))["losses"].clone()
    }
}

/// A network that sends into its tunnel faster than the carrier takes it fills its half of the carrier's queue, and loses what
/// comes on top. Another network with a tunnel over the same carrier loses nothing, in either direction.
#[test]
fn a_flood_into_a_tunnel_costs_only_its_network() {
    if !can_run(&[]) {
        return;
    }
    // Packet sockets keep what arrives while the worker does something else, so that the flood comes in bursts, and its weight
    // lets the network send all of a burst before the carrier's next turn.
    let shared = two_tunnels_over_one_carrier("packet", "  weight: 64\n");
    let ends =
        Ends { macs: [router(11), shared.noisy.mac], addresses: [shared.noisy.address, far_in(1)], ttl: 64 };
    let flows = [
        Flow::start_to(&shared.calm, &shared.far, far_in(2), 300, 200),
        Flow::start(&shared.far, &shared.calm, 300, 200),
    ];
    let flood = Flood::start(&shared.noisy.space, vec![frame::udp(ends, [9, 9], &[0; 32])], 2_000_000);
    let full = |losses: &Value| counter(&losses["port_full"]);
    until("the carrier's queue has no room for the flood", 30, || {
        full(&shared.losses("noisy")) > 1_000 && flows.iter().all(|flow| flow.received() > 600)
    });
    let sent = flood.stop();
    flows.into_iter().for_each(is_whole);
    let (noisy, calm) = (shared.losses("noisy"), shared.losses("calm"));
    assert!(sent > full(&noisy) && full(&calm) == 0, "{sent}: {noisy} {calm}");
    assert_eq!(counter(&calm["queue_full"]), 0, "{calm}");
}

/// The same with ports of a card, with all three networks on the card, and in software. On the card, what is for the tunnel passes the
/// card's queue to software, of which each network has its share. What the carrier sends waits until the card takes it.
#[test]
fn a_flood_into_a_tunnel_beside_a_card_costs_only_its_network() {
    if !can_run(&[]) {
        return;
    }
    let shared = share_a_carrier(|lab| card::node(lab, "default"), &["default"], "");
    let ends =
        Ends { macs: [router(11), shared.noisy.mac], addresses: [shared.noisy.address, far_in(1)], ttl: 64 };
    let lost = |name: &str| {
        let losses = shared.losses(name);
        let counts = losses.as_object().into_iter().flatten().map(|(_, count)| counter(count));
        (counts.sum::<u64>(), losses)
    };
    for side in ["card", "soft"] {
        for name in ["wan", "noisy", "calm"].map(|name| shared.lab.name(name)) {
            if side == "soft" {
                is_clean(&shared.daemon.cli.json(&["migrate", &name, "--to", side]));
            }
            card::runs_on(&shared.daemon, &name, side);
        }
        let flows = [
            Flow::start_to(&shared.calm, &shared.far, far_in(2), 300, 200),
            Flow::start(&shared.far, &shared.calm, 300, 200),
        ];
        let (before, _) = lost("noisy");
        let flood = Flood::start(&shared.noisy.space, vec![frame::udp(ends, [9, 9], &[0; 32])], 2_000_000);
        until("the flood is more than its share", 30, || {
            lost("noisy").0 > before + 1_000 && flows.iter().all(|flow| flow.received() > 600)
        });
        let _ = flood.stop();
        flows.into_iter().for_each(is_whole);
        for name in ["calm", "wan"] {
            let (lost, losses) = lost(name);
            assert_eq!(lost, 0, "{side}: {name}: {losses}");
        }
    }
}

/// What comes by a tunnel is limited as all that its network receives: the excess is that network's loss.
#[test]
fn a_flood_out_of_a_tunnel_costs_only_its_network() {
    if !can_run(&[]) {
        return;
    }
    let shared = two_tunnels_over_one_carrier(
        "afxdp",
        "  rate_limit: {packets_per_second: 1000, burst_packets: 100}\n",
    );
    let ends = Ends {
        macs: [router(11), [2, 9, 9, 9, 9, 9]],
        addresses: [far_in(1), shared.noisy.address],
        ttl: 64,
    };
    let tunnelled = outer(LINUX, shared.far.mac, 1, 8, &frame_to_tunnel(&shared, ends));
    let flows = [
        Flow::start_to(&shared.calm, &shared.far, far_in(2), 300, 200),
        Flow::start(&shared.far, &shared.calm, 300, 200),
    ];
    let flood = Flood::start(&shared.far.space, vec![tunnelled], 10_000);
    until("a flood", 30, || flood.sent() > 20_000 && flows.iter().all(|flow| flow.received() > 600));
    let _ = flood.stop();
    flows.into_iter().for_each(is_whole);
    let over = |name: &str| {
        let stats = shared.daemon.cli.stats(&shared.lab.name(name));
        (counter(&stats["drops"]["rate_limited"]), stats)
    };
    let ((noisy, stats), (calm, _)) = (over("noisy"), over("calm"));
    assert!(noisy > 5_000 && calm == 0, "{stats}");
}

/// A UDP packet in a frame to the end of `noisy`'s tunnel.
fn frame_to_tunnel(shared: &Shared, ends: Ends) -> Vec<u8> {
    let name = shared.lab.name("noisy");
    let shown = shared.daemon.cli.exec(&name, &["ip", "-j", "link", "show", "far"]).expect_ok().json();
    let macs = [card::mac(shown[0]["address"].as_str().unwrap()), ends.macs[1]];
    frame::udp(Ends { macs, ..ends }, [9, 9], &[0; 32])
}

/// Three routers in a row, joined by IP in IP: the one in the middle has tunnels on both sides, and rewrites the outer
/// addresses. The outer packets cross the wire between ports 0 and 1.
#[test]
fn a_virtual_hop_rewrites_the_outer_addresses() {
    if !can_run(&["tshark"]) {
        return;
    }
    let lab = Lab::new(4);
    // One segment with both ports.
    lab.switch().ip_batch(
        "link add x0 type veth peer name x1\nlink set x0 master br0 up\nlink set x1 master br1 up\n",
    );
    let pair = lab.pair_dual("red", 1, 1, [2, 3]);
    let carrier = |name: &str, n: usize, addresses: &str| {
        let (port, mac) = (&lab.ports()[n], text(router(n as u8 + 1)));
        network(
            &lab,
            name,
            "dual",
            &[format!("name: up, port: {port}, mac: \"{mac}\", addresses: [{addresses}]")],
            "",
        )
    };
    let tunnel = |name: &str, ends: [u8; 2], over: &str, addresses: &str| {
        let [local, remote] = ends.map(|last| format!("192.0.2.{last}"));
        format!(
            "name: {name}, tunnel: {{type: ipip, local: {local}, remote: {remote}, ttl: 9}}, over: {}, addresses: [{addresses}]",
            lab.name(over)
        )
    };
    let hosts = |side: usize| {
        let port = &pair.document.ports[side];
        let [four, six] = port.addresses.as_slice() else { panic!("{port:?}") };
        format!("name: hosts, port: {}, mac: \"{}\", addresses: [{four}, \"{six}\"]", port.port, port.mac)
    };
    let to = |side: u8, four: &str, six: &str| {
        format!("{{to: 10.1.{side}.0/24, via: {four}}}, {{to: \"2001:db8:1:{side}::/64\", via: \"{six}\"}}")
    };
    let routes = |routes: &[String]| format!("  routes: [{}]\n", routes.join(", "));
    let documents = [
        lab.node_document(""),
        carrier("west", 0, "192.0.2.1/24, 192.0.2.3/24"),
        carrier("east", 1, "192.0.2.2/24"),
        network(
            &lab,
            "left",
            "dual",
            &[hosts(0), tunnel("out", [1, 2], "west", "10.0.0.1/30, \"2001:db8:a::1/64\"")],
            &routes(&[to(2, "10.0.0.2", "2001:db8:a::2")]),
        ),
        network(
            &lab,
            "hop",
            "dual",
            &[
                tunnel("in", [2, 1], "east", "10.0.0.2/30, \"2001:db8:a::2/64\""),
                tunnel("on", [2, 3], "east", "10.0.0.5/30, \"2001:db8:b::1/64\""),
            ],
            &routes(&[to(1, "10.0.0.1", "2001:db8:a::1"), to(2, "10.0.0.6", "2001:db8:b::2")]),
        ),
        network(
            &lab,
            "right",
            "dual",
            &[tunnel("back", [3, 2], "west", "10.0.0.6/30, \"2001:db8:b::2/64\""), hosts(1)],
            &routes(&[to(1, "10.0.0.5", "2001:db8:b::1")]),
        ),
    ];
    let mut daemon = Daemon::start(&lab, &all(&documents));
    let far: [IpAddr; 2] = [pair.right.address.into(), address6(1, 2, 2).into()];
    for address in far {
        until(&format!("{address} answers"), 30, || pair.left.ping(address, 1) == 1);
    }
    // Three routers: the TTL of 64 is 61 at the end, and the outer TTL is as the document says.
    // A socket receives what comes in: at each end of the wire, one direction.
    let wires = ["x0", "x1"].map(|end| {
        Sniffer::start(lab.switch(), end, |frame| {
            frame.get(12..14) == Some(&[8, 0]) && matches!(frame.get(23), Some(4 | 41))
        })
    });
    let echoed = pair.left.ping_with(far[0], 1, &[]).stdout;
    assert!(echoed.contains("ttl=61"), "{echoed}");
    assert_eq!(pair.left.ping(far[1], 1), 1);
    let seen: Vec<Vec<u8>> = wires.into_iter().flat_map(|wire| wire.stop().frames).collect();
    let outer = |frame: &[u8]| (frame[22], frame[23], frame[29], frame[33]);
    for protocol in [4, 41] {
        for (from, to) in [(1, 2), (2, 3), (3, 2), (2, 1)] {
            let found = seen.iter().any(|frame| outer(frame) == (9, protocol, from, to));
            let all: Vec<_> = seen.iter().map(|frame| outer(frame)).collect();
            assert!(found, "no packet of protocol {protocol} from {from} to {to}: {all:?}");
        }
    }
    for filter in ["ip.proto == 4 && icmp", "ip.proto == 41 && icmpv6"] {
        assert!(shows(&lab, &seen, filter).lines().count() >= 4, "{filter}");
    }
    // No router asks for a neighbour in a tunnel.
    let shown = daemon.cli.exec(&lab.name("hop"), &["ip", "link", "show", "in"]).expect_ok().stdout;
    assert!(shown.contains("NOARP") && shown.contains("mtu 1480"), "{shown}");

    is_traced(&lab, &daemon, &pair);

    let flows = [
        Flow::start(&pair.left, &pair.right, 300, 200),
        Flow::start(&pair.right, &pair.left, 300, 1200),
        Flow::start_to(&pair.left, &pair.right, far[1], 300, 600),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 300));
    flows.into_iter().for_each(is_whole);

    daemon.kill();
    daemon.respawn(&lab);
    for address in far {
        until(&format!("{address} answers after a restart"), 20, || pair.left.ping(address, 1) == 1);
    }
}

/// `trace --live` follows a packet through tunnels: into the first one, and then, from the wire, out of it and into the next.
fn is_traced(lab: &Lab, daemon: &Daemon, pair: &Pair) {
    let trace = |port: usize, frame: &str| {
        let json = daemon.cli.json(&["trace", "--live", "--in-port", &lab.ports()[port], "--hex", frame]);
        let crossed = json["crossed"].as_array().cloned().unwrap_or_default();
        let part = |one: &Value| {
            let network = &one["networks"][0];
            let detail = one["stages"][0]["detail"].as_str().unwrap_or("?").to_owned();
            (detail, network["network"].clone(), network["verdict"].clone(), network["bytes"].clone())
        };
        crossed.iter().map(part).collect::<Vec<_>>()
    };
    let [west, east, left, hop] = ["west", "east", "left", "hop"].map(|name| lab.name(name));
    let ends = Ends {
        macs: [[2, 0x72, 1, 0, 1, 1], pair.left.mac],
        addresses: [pair.left.address, pair.right.address],
        ttl: 64,
    };
    let frame: String = frame::udp(ends, [7, 7], &[0; 20]).iter().map(|byte| format!("{byte:02x}")).collect();
    let first = trace(2, &frame);
    let [(into, over, verdict, outer)] = first.as_slice() else { panic!("{first:?}") };
    assert_eq!(*into, format!("into ipip 192.0.2.1 to 192.0.2.2 of {left} over {west}"));
    assert_eq!((over, verdict), (&west.clone().into(), &"forward".into()));
    let next = trace(1, outer.as_str().unwrap());
    let told: Vec<_> =
        next.iter().map(|(detail, network, verdict, _)| (detail.as_str(), network, verdict)).collect();
    let [out_of, into] = [
        format!("out of ipip 192.0.2.2 to 192.0.2.1 of {hop} over {east}"),
        format!("into ipip 192.0.2.2 to 192.0.2.3 of {hop} over {east}"),
    ];
    let (hop, east, forward) = (hop.into(), east.into(), "forward".into());
    assert_eq!(told, [(out_of.as_str(), &hop, &forward), (into.as_str(), &east, &forward)]);
}

/// A router with a tunnel, and the network that carries it, are placed and moved like any other network, each by itself. What enters
/// or leaves the tunnel passes software on every way, so no flow loses a packet or its order. A switch with a tunnel stays in
/// software, and the node says why.
#[test]
fn a_router_with_a_tunnel_and_its_carrier_move_under_traffic() {
    if !can_run(&[]) {
        return;
    }
    let site = site();
    let lab = &site.lab;
    let [wan, lan, red] = ["wan", "lan", "red"].map(|name| lab.name(name));
    let mut documents = vec![card::node(lab, "kinds")];
    documents.extend(site.documents.iter().cloned());
    let daemon = card::start(lab, &["kinds"], &documents);
    card::runs_on(&daemon, &wan, "card");
    card::runs_on(&daemon, &red, "card");
    site.reach_each_other("on the card");

    let why = "it is a switch with tunnels, into which the card cannot flood";
    assert_eq!(card::network(&daemon, &lan)["substrate"], "soft");
    assert_eq!(daemon.cli.json(&["get", "placements", &lan])["why_not"], why);
    let refused = daemon.cli.run(&["migrate", &lan, "--to", "card"]);
    assert!(refused.code != 0 && refused.stderr.contains(why), "{}", refused.stderr);

    // Through the tunnel of the router in both directions, past it, and through that of the switch.
    let flows = [
        Flow::start_to(&site.behind, &site.linux, AT_ROUTER, 150, 200),
        Flow::start(&site.linux, &site.behind, 150, 200),
        Flow::start(&site.linux, &site.desk, 150, 200),
        Flow::start_to(&site.desk, &site.linux, AT_SWITCH, 150, 200),
    ];
    for (name, to) in [
        (&red, "soft"),
        (&wan, "soft"),
        (&red, "card"),
        (&wan, "card"),
        (&wan, "soft"),
        (&red, "soft"),
        (&wan, "card"),
        (&red, "card"),
    ] {
        let report = daemon.cli.json(&["migrate", name, "--to", to]);
        is_clean(&report);
        let before: Vec<u64> = flows.iter().map(Flow::received).collect();
        until(&format!("all flows go on with {name} in {to}"), 20, || {
            flows.iter().zip(&before).all(|(flow, before)| flow.received() > before + 50)
        });
    }
    flows.into_iter().for_each(is_whole);

    // A limit counts what comes by ports and by tunnels together, so its network goes to software, and comes back without it.
    let limit = "  rate_limit: {packets_per_second: 10000, burst_packets: 1000}\n";
    for limited in [true, false] {
        let mut changed = documents.clone();
        changed[1] = carrier(lab, if limited { limit } else { "" });
        let _ = daemon.cli.apply(&all(&changed), &[]);
        card::runs_on(&daemon, &wan, if limited { "soft" } else { "card" });
        if limited {
            let why = daemon.cli.json(&["get", "placements", &wan])["why_not"].clone();
            assert!(why.as_str().unwrap().starts_with("its rate limit also counts"), "{why}");
        }
        site.reach_each_other("with and without a limit");
    }

    // Each packet counts once for its network, whatever decided it.
    let sums = |name: &str| {
        let stats = daemon.cli.stats(name);
        let of = |field: &str| counter(&stats[field]);
        (of("received"), of("forwarded") + of("punted") + of("dropped"), stats)
    };
    for name in [&wan, &red] {
        let (received, ended, stats) = sums(name);
        assert!(received == ended && received > 1_000, "{stats}");
    }
    let losses = daemon.cli.stats(&wan)["losses"].clone();
    let tunnels = losses.as_object().into_iter().flatten().filter(|(reason, _)| reason.starts_with("tunnel"));
    assert_eq!(tunnels.map(|(_, count)| counter(count)).sum::<u64>(), 0, "{losses}");

    // The longest packet that fits, and one that does not: the network's kernel tells the sender, as in software.
    let ping = |bytes: &str| site.behind.ping_with(AT_ROUTER, 2, &["-M", "do", "-s", bytes]);
    assert!(ping("1402").stdout.contains(" 2 received"), "{}", ping("1402"));
    let longer = ping("1403");
    assert!(longer.stdout.contains("mtu = 1430") || longer.stderr.contains("mtu=1430"), "{longer}");

    // A tunnel that comes and goes while its network is on the card.
    let without: String = documents[3]
        .lines()
        .filter(|line| !line.contains("tunnel:"))
        .fold(String::new(), |all, line| all + line + "\n");
    daemon.cli.apply(&without, &[]);
    until("the tunnel is gone", 20, || site.behind.ping(AT_ROUTER, 1) == 0);
    card::runs_on(&daemon, &red, "card");
    daemon.cli.apply(&documents[3], &[]);
    site.reach_each_other("with the tunnel again");
    card::runs_on(&daemon, &red, "card");
    card::runs_on(&daemon, &wan, "card");
}
