//! `attach` and `detach`: hosts of the user's own.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::lab::address6;
use hue_e2e::shell::{self, Output};
use hue_e2e::{Cli, Daemon, Lab, Machine, Space, can_run, until, until_some};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);

/// A node whose two ports have no interfaces, and the name of a network on them: 10.1.1.1/24 and 10.1.2.1/24.
fn start() -> (Lab, Daemon, String) {
    let lab = Lab::new(2);
    lab.unplug(0);
    lab.unplug(1);
    let documents = all(&[lab.node_document(""), lab.pair_document("red", 1, 1, [0, 1]).yaml()]);
    let daemon = Daemon::start(&lab, &documents);
    let red = lab.name("red");
    (lab, daemon, red)
}

/// A namespace's name that the next sweep removes if the test fails.
fn host(lab: &Lab, name: &str) -> String {
    lab.node().name().replace("-node", &format!("-{name}"))
}

fn run(lab: &Lab, cli: &Cli, arguments: &[&str]) -> Output {
    lab.node().run_command(&mut cli.command(arguments))
}

fn pings(from: &str, to: impl Into<IpAddr>) -> bool {
    let to = to.into().to_string();
    let mut command = shell::command("ip");
    shell::run(command.args(["netns", "exec", from, "ping", "-c", "1", "-W", "1", &to])).ok()
}

fn exists(name: &str) -> bool {
    shell::run(shell::command("ip").args(["netns", "list"]))
        .stdout
        .lines()
        .any(|line| line.split_whitespace().next() == Some(name))
}

fn has_link(lab: &Lab, name: &str) -> bool {
    lab.node().run("ip", &["link", "show", name]).ok()
}

/// Names of the interfaces of a namespace that have attach's mark.
fn marked(space: &Space) -> Vec<String> {
    let links = space.run("ip", &["-j", "link", "show"]).expect_ok().json();
    let ours = |link: &&serde_json::Value| {
        link["ifalias"].as_str().is_some_and(|alias| alias.starts_with("hueplane attach"))
    };
    links
        .as_array()
        .unwrap()
        .iter()
        .filter(ours)
        .map(|link| link["ifname"].as_str().unwrap().into())
        .collect()
}

/// Whether the node hears a host only if its bridge's settings are taken back.
fn the_node_is_deaf(lab: &Lab, from: &str) {
    let node = Ipv4Addr::new(192, 0, 2, 7);
    let inside = |arguments: &[&str]| {
        let _ = shell::run(shell::command("ip").args(["-n", from]).args(arguments)).expect_ok();
    };
    let set = |setting: &str, value: &str| {
        lab.node().inside(|| {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{setting}"), value).unwrap();
        });
    };
    lab.node().ip(&["address", "add", &format!("{node}/32"), "dev", "lo"]);
    lab.node().ip(&["route", "add", "10.1.1.0/24", "dev", "attach0"]);
    inside(&["route", "add", &format!("{node}/32"), "dev", "eth0"]);
    set("all/rp_filter", "0");
    assert!(!pings(from, node), "the node answers ARP");
    set("attach0/arp_ignore", "0");
    until("the node answers ARP after all", 10, || pings(from, node));
    lab.node().ip(&["route", "del", "10.1.1.0/24", "dev", "attach0"]);
    // The MAC address of the bridge is known now.
    let socket = lab.node().inside(|| UdpSocket::bind("0.0.0.0:4009")).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let file = std::fs::File::open(format!("/run/netns/{from}")).unwrap();
    let hears = || {
        let file = file.try_clone().unwrap();
        let sent = std::thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"hello", (node, 4009)).unwrap()
        });
        assert_eq!(sent.join().unwrap(), 5);
        socket.recv(&mut [0; 16]).is_ok()
    };
    assert!((0..3).all(|_| !hears()), "the node receives packets");
    set("attach0/rp_filter", "0");
    until("the node receives packets after all", 10, hears);
}

/// Address of a host, from the JSON of attach or of its list.
fn address_of(host: &serde_json::Value) -> Ipv4Addr {
    let text = host["addresses"][0].as_str().unwrap_or_else(|| panic!("no address: {host}"));
    text.split('/').next().unwrap().parse().unwrap()
}

fn mac_of(host: &serde_json::Value) -> [u8; 6] {
    let text = host["mac"].as_str().unwrap_or_else(|| panic!("no MAC address: {host}"));
    let bytes: Vec<u8> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

/// Starts an attach that waits for the daemon in vain, because the daemon is in another namespace, and waits until it has made
/// its interfaces.
fn hopeless(lab: &Lab, cli: &Cli, arguments: &[&str]) -> Child {
    let mut command = cli.command(arguments);
    let child = lab.switch().spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
    // The wire's ends, the bridge, and the interface of the host.
    until("the interfaces are made", 10, || marked(lab.switch()).len() == 4);
    child
}

#[test]
fn two_attached_hosts_ping_each_other_and_detach_leaves_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let right = format!("{red}/right");
    let (alice, bob) = (host(&lab, "alice"), host(&lab, "bob"));
    let first = run(&lab, cli, &["attach", red, "--host", &alice, "-o", "json"]).expect_ok().json();
    assert_eq!((&first["port"], &first["addresses"]), (&"left".into(), &json!(["10.1.1.2/24"])), "{first}");
    assert_eq!((&first["created_namespace"], &first["default_routes"]), (&true.into(), &json!(["10.1.1.1"])));
    let text = run(&lab, cli, &["attach", &right, "--host", &bob]).expect_ok().stdout;
    assert!(text.contains(&format!("ip netns exec {bob} ping 10.1.2.1")), "{text}");
    until("alice reaches bob", 20, || pings(&alice, Ipv4Addr::new(10, 1, 2, 2)));
    assert!(pings(&bob, Ipv4Addr::new(10, 1, 1, 2)));
    let list = run(&lab, cli, &["attach", "--list", "-o", "json"]).expect_ok().json();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");

    // A host with another interface keeps its namespace.
    let _ = shell::run(shell::command("ip").args(["-n", &bob, "link", "add", "own", "type", "bridge"]))
        .expect_ok();
    let _ = run(&lab, cli, &["detach", "--host", &alice]).expect_ok();
    assert!(!exists(&alice) && !has_link(&lab, "p0") && has_link(&lab, "p1"));
    let text = run(&lab, cli, &["detach", &right]).expect_ok().stdout;
    assert!(text.contains("its namespace stays: it has interface own"), "{text}");
    assert!(exists(&bob) && !has_link(&lab, "p1"));
    let refused = run(&lab, cli, &["detach", red]).expect_code(2);
    assert!(refused.stderr.contains("no such host"), "{}", refused.stderr);
    let _ = shell::run(shell::command("ip").args(["netns", "delete", &bob])).expect_ok();
}

#[test]
fn hosts_get_an_address_of_each_family_of_their_network() {
    if !can_run(&[]) {
        return;
    }
    for kind in ["ipv6", "dual"] {
        hosts_of(kind);
    }
}

fn hosts_of(kind: &'static str) {
    let lab = Lab::new(2);
    lab.unplug(0);
    lab.unplug(1);
    let mut six = lab.pair_document("six", 1, 1, [0, 1]);
    six.kind = kind;
    let is_dual = kind == "dual";
    for (side, port) in (1..).zip(&mut six.ports) {
        let wide = format!("{}/64", address6(1, side, 1));
        port.addresses = if is_dual { vec![format!("10.1.{side}.1/24"), wide] } else { vec![wide] };
    }
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), six.yaml()]));
    let cli = &daemon.cli;
    let hosts = ["left", "right"].map(|port| {
        let name = host(&lab, port);
        let at = format!("{}/{port}", six.name);
        let attached = run(&lab, cli, &["attach", &at, "--host", &name, "-o", "json"]).expect_ok().json();
        assert_eq!(attached["default_routes"], attached["routers"], "{attached}");
        (name, attached)
    });
    let [(left, _), (right, second)] = &hosts;
    let addresses = second["addresses"].as_array().unwrap();
    assert_eq!(
        (addresses.last().unwrap(), addresses.len()),
        (&json!("2001:db8:1:2::2/64"), 1 + usize::from(is_dual))
    );
    until("left reaches right", 20, || pings(left, address6(1, 2, 2)));
    assert!(pings(right, address6(1, 1, 2)));
    if is_dual {
        until("left reaches right by IPv4", 20, || pings(left, Ipv4Addr::new(10, 1, 2, 2)));
        assert!(pings(right, Ipv4Addr::new(10, 1, 1, 2)));
        let list = run(&lab, cli, &["attach", "--list"]).expect_ok().stdout;
        assert!(list.contains("10.1.2.2/24, 2001:db8:1:2::2/64"), "{list}");
    }
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(!exists(left) && !exists(right));
}

#[test]
fn an_existing_namespace_and_that_of_a_process_stay_after_detach() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let (left, right) = (format!("{red}/left"), format!("{red}/right"));
    let (named, other) = (Space::new("a", "named"), Space::new("a", "other"));
    let mut process = other.spawn(shell::command("sleep").arg("600"));
    let pid = process.id().to_string();
    let _ = run(&lab, cli, &["attach", &left, "--netns", named.name()]).expect_ok();
    let _ = run(&lab, cli, &["attach", &right, "--pid", &pid]).expect_ok();
    until("the process's namespace is reached", 20, || pings(named.name(), Ipv4Addr::new(10, 1, 2, 2)));
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(exists(named.name()) && exists(other.name()));
    assert!(!has_link(&lab, "p0") && !has_link(&lab, "p1"));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn what_is_refused_or_fails_leaves_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let (left, right) = (format!("{red}/left"), format!("{red}/right"));
    let name = host(&lab, "carol");
    let carol = name.as_str();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        let output = run(&lab, cli, arguments).expect_code(code);
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
        assert!(!exists(carol) && !has_link(&lab, "p1"), "{arguments:?}");
    };
    refused(&["attach", "nobody", "--host", carol], 2, "nobody");
    refused(&["attach", &format!("{red}/middle"), "--host", carol], 2, "has: left, right");
    refused(&["attach", red, "--netns", carol], 2, "does not exist");
    refused(&["attach", red, "--pid", "1", "--host", carol], 2, "cannot be used with");
    refused(&["attach", red, "--host", lab.node().name()], 2, "the network namespace of the node");
    // An interface that attach did not make is neither used nor removed.
    lab.node().ip(&["link", "add", "p0", "type", "bridge"]);
    refused(&["attach", &left, "--host", carol], 2, "not made by attach");
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(has_link(&lab, "p0"));
    // In another namespace than the daemon's, the daemon never sees the interface: everything is undone.
    let outside = lab.switch().run_command(&mut cli.command(&["attach", &right, "--host", carol]));
    let outside = outside.expect_code(1);
    assert!(outside.stderr.contains("in the daemon's network namespace"), "{}", outside.stderr);
    assert!(!exists(carol) && !lab.switch().run("ip", &["link", "show", "p1"]).ok());
}

#[test]
fn hosts_on_one_port_reach_each_other_and_the_router_and_come_and_go_alone() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, left) = (&daemon.cli, &format!("{red}/left"));
    let names = ["alice", "bob", "carol"].map(|name| host(&lab, name));
    // At the same time: addresses and interfaces must differ nevertheless.
    std::thread::scope(|scope| {
        for name in &names {
            let lab = &lab;
            scope.spawn(move || run(lab, cli, &["attach", left, "--host", name]).expect_ok().code);
        }
    });
    let list = run(&lab, cli, &["attach", "--list", "-o", "json"]).expect_ok().json();
    let hosts: Vec<(String, Ipv4Addr)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|host| (host["host"].as_str().unwrap().to_owned(), address_of(host)))
        .collect();
    let all = |values: &mut dyn Iterator<Item = String>| values.collect::<BTreeSet<_>>();
    assert_eq!(all(&mut hosts.iter().map(|host| host.0.clone())), all(&mut names.iter().cloned()), "{list}");
    let expected = (2..=4).map(|n| Ipv4Addr::new(10, 1, 1, n).to_string());
    assert_eq!(all(&mut hosts.iter().map(|host| host.1.to_string())), all(&mut expected.into_iter()));
    for (from, _) in &hosts {
        for to in hosts.iter().map(|host| host.1).chain([ROUTER, Ipv4Addr::new(10, 1, 2, 1)]) {
            until(&format!("{from} reaches {to}"), 10, || pings(from, to));
        }
    }
    let (alice, at_alice) = &hosts[0];
    the_node_is_deaf(&lab, alice);

    // Others come and go, and the first one loses nothing.
    let mut ping = shell::command("ip");
    ping.args(["netns", "exec", alice, "ping", "-n", "-i", "0.05", "-c", "60", "-W", "2", "10.1.1.1"]);
    let ping = ping.stdout(Stdio::piped()).spawn().unwrap();
    let _ = run(&lab, cli, &["detach", "--host", &hosts[1].0]).expect_ok();
    let dave = host(&lab, "dave");
    let again = run(&lab, cli, &["attach", left, "--host", &dave, "-o", "json"]).expect_ok().json();
    assert!(![hosts[0].1, hosts[2].1].contains(&address_of(&again)), "{again}");
    let ping = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    assert!(ping.contains("60 received"), "{ping}");
    let _ = run(&lab, cli, &["detach", "--host", &hosts[2].0]).expect_ok();
    until("dave reaches the first host", 10, || pings(&dave, *at_alice));
    let _ = run(&lab, cli, &["detach", "--host", alice]).expect_ok();
    until("dave reaches the router", 10, || pings(&dave, ROUTER));
    let _ = run(&lab, cli, &["detach", left]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
    assert!(!exists(&dave) && names.iter().all(|name| !exists(name)));
}

#[test]
fn a_port_of_two_networks_has_hosts_of_both_with_different_addresses() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(1);
    lab.unplug(0);
    let mut green = lab.pair_document("green", 1, 2, [0, 0]);
    // The same subnets. The router of one network has the address that the first host of the other would get.
    green.ports[0].addresses = vec!["10.1.1.2/24".into()];
    green.ports[1].addresses = vec!["10.1.2.2/24".into()];
    let red = lab.pair_document("red", 1, 1, [0, 0]);
    let documents = all(&[lab.node_document("mtu: 1700"), red.yaml(), green.yaml()]);
    let daemon = Daemon::start(&lab, &documents);
    let cli = &daemon.cli;
    let mut addresses = BTreeSet::from([ROUTER, Ipv4Addr::new(10, 1, 1, 2)]);
    for (network, name) in [("red", "r1"), ("green", "g1"), ("red", "r2")] {
        let (place, name) = (format!("{}/left", lab.name(network)), host(&lab, name));
        let made = run(&lab, cli, &["attach", &place, "--host", &name, "-o", "json"]).expect_ok().json();
        assert_eq!(made["bridge"], "attach0");
        assert!(addresses.insert(address_of(&made)), "{made}");
    }
    // A port's MTU is that of all that is on its bridge; a machine must be told.
    let text = run(&lab, cli, &["attach", &lab.name("red"), "--tap", "vm0"]).expect_ok().stdout;
    assert!(text.contains(",mac=52:54:00:01:01:06,host_mtu=1700\n"), "{text}");
    for name in ["p0", "attach0", "attach0w", "attach0h1", "vm0"] {
        let shown = lab.node().run("ip", &["-j", "link", "show", name]).expect_ok().json();
        assert_eq!(shown[0]["mtu"], 1700, "{name}");
    }
    let _ = run(&lab, cli, &["detach", &lab.name("red")]).expect_ok();
    let rest = run(&lab, cli, &["attach", "--list", "-o", "json"]).expect_ok().json();
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["network"]), (1, &lab.name("green").into()));
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
}

#[test]
fn a_program_that_opens_the_tap_device_is_a_host() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, left, right) = (&daemon.cli, &format!("{red}/left"), &format!("{red}/right"));
    let (near, far) = (Space::new("t", "near"), Space::new("t", "far"));
    let _ = run(&lab, cli, &["attach", right, "--netns", far.name()]).expect_ok();
    let made = run(&lab, cli, &["attach", left, "--tap", "vm0", "--user", "nobody", "-o", "json"]);
    let made = made.expect_ok().json();
    let (address, mac) = (address_of(&made), mac_of(&made));
    assert_eq!((&made["host"], &made["kind"]), (&"vm0".into(), &"tap".into()), "{made}");
    assert_eq!((address, &made["routers"]), (Ipv4Addr::new(10, 1, 1, 2), &json!(["10.1.1.1"])));
    let shown = lab.node().run("ip", &["-d", "-j", "link", "show", "vm0"]).expect_ok().json();
    let tap = &shown[0]["linkinfo"]["info_data"];
    assert_eq!(
        (&tap["type"], &tap["persist"], &tap["user"]),
        (&"tap".into(), &true.into(), &"nobody".into())
    );
    // The port works while no machine runs.
    let _ = run(&lab, cli, &["attach", left, "--netns", near.name()]).expect_ok();
    until("the hosts reach each other", 20, || pings(near.name(), Ipv4Addr::new(10, 1, 2, 2)));
    assert!(!pings(far.name(), address));

    for _ in 0..2 {
        // The device stays when the machine ends, and the next machine has it.
        let machine = Machine::start(lab.node(), "vm0", mac, address);
        for from in [&near, &far] {
            until("the machine answers", 20, || pings(from.name(), address));
        }
        let socket = far.inside(|| UdpSocket::bind("0.0.0.0:4007")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        machine.send(ROUTER, Ipv4Addr::new(10, 1, 2, 2), 4007, b"from the machine");
        let mut buffer = [0; 64];
        let (bytes, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (&buffer[..bytes], from.to_string()),
            (&b"from the machine"[..], format!("{address}:4007"))
        );
    }
    // The machine runs; the other hosts stay.
    let machine = Machine::start(lab.node(), "vm0", mac, address);
    let _ = run(&lab, cli, &["detach", "--host", "vm0"]).expect_code(2);
    let _ = run(&lab, cli, &["detach", "--tap", "vm0"]).expect_ok();
    assert!(!has_link(&lab, "vm0"));
    drop(machine);
    assert!(pings(near.name(), Ipv4Addr::new(10, 1, 2, 2)));

    // A host leaves checksums and segmentation to the interfaces behind it; the router gets complete frames.
    let listener = far.inside(|| TcpListener::bind("0.0.0.0:4008")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let limit = Duration::from_secs(20);
    let sent: Vec<u8> = (0..400_000_u32).map(|n| (n % 251) as u8).collect();
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stream = until_some("a connection", 20, || listener.accept().ok()).0;
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(limit)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        near.inside(|| {
            let mut stream = TcpStream::connect_timeout(&"10.1.2.2:4008".parse().unwrap(), limit).unwrap();
            stream.set_write_timeout(Some(limit)).unwrap();
            stream.write_all(&sent).unwrap();
        });
        reader.join().unwrap()
    });
    assert!(received == sent, "{} bytes arrived", received.len());
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
    assert!(exists(near.name()) && exists(far.name()));

    // The packet filter of this machine sees frames of bridges: attach says so.
    let file = "/proc/sys/net/bridge/bridge-nf-call-iptables";
    for (value, noted) in [("1", true), ("0", false)] {
        if lab.node().inside(|| std::fs::write(file, value)).is_ok() {
            let text = run(&lab, cli, &["attach", left, "--tap", "vm0"]).expect_ok().stdout;
            assert_eq!(text.contains("iptables -I FORWARD -i attach0 -o attach0 -j ACCEPT"), noted, "{text}");
            let _ = run(&lab, cli, &["detach", "--tap", "vm0"]).expect_ok();
        }
    }
}

#[test]
fn names_in_use_are_refused_or_avoided_and_never_touched() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, left) = (&daemon.cli, &format!("{red}/left"));
    let name = host(&lab, "carol");
    lab.node().ip_batch(
        "link add attach0 type bridge\ntuntap add vm0 mode tap\nlink add attach1w type bridge\n\
         link add attach2h1 type bridge\n",
    );
    let refused = |arguments: &[&str], expected: &str| {
        let output = run(&lab, cli, arguments).expect_code(2);
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
        assert_eq!(marked(lab.node()), [""; 0], "{arguments:?}");
    };
    refused(&["attach", left, "--tap", "vm0"], "exists already, not made by attach; use another name");
    refused(&["attach", left, "--tap", "p1"], "the interface of port p1");
    refused(&["attach", left, "--tap", "a/b"], "expected 1 to 15 bytes");
    refused(&["attach", left, "--tap", "vm1", "--user", "no body"], "no such user");
    refused(&["attach", left, "--host", &name, "--user", "nobody"], "cannot be used with");
    refused(&["attach", left, "--host", &name, "--tap", "vm1"], "cannot be used with");
    let made = run(&lab, cli, &["attach", left, "--host", &name, "-o", "json"]).expect_ok().json();
    assert_eq!((&made["bridge"], &made["wire"]), (&"attach2".into(), &"attach2h2".into()), "{made}");
    let _ = run(&lab, cli, &["attach", left, "--tap", "vm1"]).expect_ok();
    let again = run(&lab, cli, &["attach", left, "--tap", "vm1"]).expect_code(2);
    assert!(again.stderr.contains("exists already, made by attach"), "{}", again.stderr);
    // The user's own interface on the bridge: the bridge stays as long as it is there.
    lab.node().ip_batch("link add own type veth peer name other\nlink set own master attach2\n");
    let kept = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(kept.stderr.contains("bridge attach2 stays: attach did not make own on it"), "{}", kept.stderr);
    assert!(has_link(&lab, "own") && !has_link(&lab, "vm1") && !exists(&name));
    lab.node().ip(&["link", "del", "own"]);
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
    assert!(["attach0", "vm0", "attach1w", "attach2h1"].into_iter().all(|name| has_link(&lab, name)));
}

#[test]
fn an_attach_that_fails_half_way_is_undone_and_others_stay() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, left, right) = (&daemon.cli, &format!("{red}/left"), &format!("{red}/right"));
    // The router's address is this host's own, so the last step fails: the default route.
    let wrong = Space::new("f", "wrong");
    wrong.ip(&["address", "add", "10.1.1.1/32", "dev", "lo"]);
    let attempt = || {
        let failed = run(&lab, cli, &["attach", left, "--netns", wrong.name()]).expect_code(1);
        assert!(failed.stderr.contains("add route"), "{}", failed.stderr);
        assert!(!wrong.run("ip", &["link", "show", "eth0"]).ok());
    };
    attempt();
    assert_eq!(marked(lab.node()), [""; 0]);
    let alice = host(&lab, "alice");
    let _ = run(&lab, cli, &["attach", left, "--host", &alice]).expect_ok();
    let before = marked(lab.node());
    attempt();
    assert_eq!(marked(lab.node()), before);
    assert!(pings(&alice, ROUTER));

    // Ctrl-C, and `kill -9`: the latter leaves marks, by which `detach --all` and the next attach know what to remove.
    let bob = host(&lab, "bob");
    for arguments in [["attach", right, "--tap", "vm0"], ["attach", right, "--host", &bob]] {
        let mut child = hopeless(&lab, cli, &arguments);
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(marked(lab.switch()), [""; 0]);
        assert!(!exists(&bob));
        let mut child = hopeless(&lab, cli, &arguments);
        child.kill().unwrap();
        child.wait().unwrap();
        let all = lab.switch().run_command(&mut cli.command(&["detach", "--all"]));
        let _ = all.expect_ok();
        assert_eq!(marked(lab.switch()), [""; 0]);
        assert!(!exists(&bob));
    }
    // Parts of another daemon's port of the same name, in the wrong namespace.
    lab.switch().ip_batch(
        "link add attach0 up type bridge\nlink set attach0 alias \"hueplane attach segment p0\"\n\
         link add p0 up type veth peer name attach0w\nlink set p0 alias \"hueplane attach segment p0\"\n\
         link set attach0w up master attach0 alias \"hueplane attach segment p0\"\n",
    );
    let before = marked(lab.switch());
    let elsewhere = lab.switch().run_command(&mut cli.command(&["attach", left, "--tap", "vm0"]));
    let elsewhere = elsewhere.expect_code(2).stderr;
    assert!(elsewhere.contains("run the command in the daemon's"), "{elsewhere}");
    assert_eq!(marked(lab.switch()), before);
    // Parts without a host, as after a kill before the host was made.
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    lab.node().ip_batch(
        "link add attach5 type bridge\nlink set attach5 alias \"hueplane attach segment p0\"\n\
         link add p0 type veth peer name attach5w\nlink set p0 alias \"hueplane attach segment p0\"\n",
    );
    let made = run(&lab, cli, &["attach", left, "--host", &alice, "-o", "json"]).expect_ok().json();
    assert!(!has_link(&lab, "attach5") && !has_link(&lab, "attach5w"), "{made}");
    until("alice reaches the router", 10, || pings(&alice, ROUTER));
    // A segment that somebody damaged is reported.
    lab.node().ip(&["link", "set", "p0", "down"]);
    let damaged = run(&lab, cli, &["attach", left, "--tap", "vm0"]).expect_code(2);
    assert!(damaged.stderr.contains("is missing or down; `hueplane detach` them"), "{}", damaged.stderr);
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
}

#[test]
fn hosts_outlive_their_network_and_the_daemon() {
    if !can_run(&[]) {
        return;
    }
    let (lab, mut daemon, red) = start();
    let (cli, left) = (&daemon.cli.clone(), &format!("{red}/left"));
    let (alice, vm) = (host(&lab, "alice"), Ipv4Addr::new(10, 1, 1, 3));
    let _ = run(&lab, cli, &["attach", left, "--host", &alice]).expect_ok();
    let made = run(&lab, cli, &["attach", left, "--tap", "vm0", "-o", "json"]).expect_ok().json();
    assert_eq!(address_of(&made), vm);
    let machine = Machine::start(lab.node(), "vm0", mac_of(&made), vm);
    let works = |what: &str| {
        until(what, 20, || pings(&alice, vm) && pings(&alice, ROUTER));
    };
    works("everything is there");
    let before = marked(lab.node());
    let documents = std::fs::read_to_string(lab.folder().join("hueplane.yaml")).unwrap();
    let _ = cli.run(&["delete", "network", &red]).expect_ok();
    assert!(pings(&alice, vm) && !pings(&alice, ROUTER));
    let _ = cli.apply(&documents, &[]);
    works("the network is back");
    daemon.down(&[]);
    assert_eq!(marked(lab.node()), before);
    assert!(pings(&alice, vm) && !pings(&alice, ROUTER));
    daemon.replace(&lab);
    let _ = cli.apply(&documents, &[]);
    works("the daemon is back");
    daemon.down(&[]);
    // Without the daemon, too.
    let _ = run(&lab, cli, &["detach", &red]).expect_ok();
    assert_eq!(marked(lab.node()), [""; 0]);
    assert!(!exists(&alice));
    drop(machine);
}

/// The page's section: its documents, and its commands with the lines that it shows after each.
fn page() -> (String, Vec<(String, Vec<String>)>) {
    let text = include_str!("../../../../docs/guide/live.md");
    let section = text.split("\n## Your own hosts\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let (mut documents, mut commands): (String, Vec<(String, Vec<String>)>) = (String::new(), Vec::new());
    for line in section.lines().filter_map(|line| line.strip_prefix("    ")) {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line.to_owned()),
            (None, None) => documents.push_str(&format!("{line}\n")),
        }
    }
    (documents, commands)
}

/// A line without what differs from run to run: widths of columns, and times.
fn steady(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with("time=")).collect();
    words.join(" ")
}

#[test]
fn the_guide_shows_what_happens() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(0);
    lab.node().inside(|| {
        // The page is of a machine whose packet filter does not see frames of bridges.
        let _ = std::fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
    });
    // Networks and namespaces have names that are unique on the machine.
    let mut names: Vec<(&str, String)> = ["desk", "red"].map(|name| (name, lab.name(name))).into();
    names.extend(["alice", "bob", "carol"].map(|name| (name, host(&lab, name))));
    let unique = |text: &str| {
        let mut out = String::new();
        for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let plain = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            let name = names.iter().find(|(name, _)| *name == plain);
            out.push_str(&name.map_or(word.to_owned(), |(_, name)| word.replacen(plain, name, 1)));
        }
        out
    };
    let (documents, commands) = page();
    let mut daemon = None;
    for (command, shown) in commands {
        if command.starts_with("hueplane up ") {
            daemon = Some(Daemon::start(&lab, &unique(&documents)));
            continue;
        }
        let mut missing = String::new();
        until(&format!("{command} prints what the page shows"), 20, || {
            let line = unique(&command);
            let words: Vec<&str> = line.split(' ').collect();
            let output = match words[0] {
                "hueplane" => run(&lab, &daemon.as_ref().unwrap().cli, &words[1..]),
                program => lab.node().run(program, &words[1..]),
            };
            let mut text = output.clone().expect_ok().stdout;
            for (name, unique) in &names {
                text = text.replace(unique, name);
            }
            let printed: Vec<String> = text.lines().map(steady).collect();
            let mut rest = printed.iter();
            missing = shown.iter().filter(|line| !rest.any(|is| *is == steady(line))).cloned().collect();
            // The first packets may wait for ARP in vain.
            let again = words[0] == "ip" && !missing.is_empty();
            assert!(again || missing.is_empty(), "the page shows {missing:?}: {output}");
            !again
        });
    }
    assert_eq!(marked(lab.node()), [""; 0]);
}
