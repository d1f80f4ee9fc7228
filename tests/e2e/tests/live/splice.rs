//! Networks of kind `splice`, seen from their hosts: bits of each packet choose the way.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use hue_e2e::daemon::binary;
use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::raw::{Flood, Raw, Sniffer};
use hue_e2e::{Daemon, Host, Lab, can_run, shell, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::card::{node, runs_on, start};
use crate::migrate::move_to;

/// An address behind the second and the third host.
const SERVER: [u8; 4] = [10, 99, 0, 1];

fn own(port: usize) -> [u8; 6] {
    [2, 0x73, 7, port as u8, 7, 1]
}

/// A router with a host on each of three ports.
fn document(lab: &Lab, settings: &str, routes: &str) -> String {
    let port = |at: usize| {
        let (name, mac) = (&lab.ports()[at], text(own(at)));
        let address = format!("10.7.{}.1/24", at + 1);
        format!("    - {{name: v{at}, port: {name}, mac: \"{mac}\", addresses: [{address}]}}\n")
    };
    let ports: String = (0..3).map(port).collect();
    let name = lab.name("r0");
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  \
         plane: {{kind: splice, {settings}}}\n  ports:\n{ports}  routes: [{routes}]\n"
    )
}

/// A host on each port.
fn hosts(lab: &Lab) -> [Host; 3] {
    [0, 1, 2].map(|at: usize| {
        let link = at as u8 + 1;
        let mac = [2, 0xbb, 7, link, 7, 2];
        lab.host(&format!("h{link}"), at, mac, &format!("10.7.{link}.2/24"), Ipv4Addr::new(10, 7, link, 1))
    })
}

/// An IPv4 packet of the first host to [`SERVER`], with DF.
fn frame(host: &Host, identification: u16) -> Vec<u8> {
    let mut bytes = [&own(0)[..], &host.mac, &[8, 0, 0x45, 0, 0, 46]].concat();
    bytes.extend(identification.to_be_bytes());
    bytes.extend([0x40, 0, 64, 17, 0, 0, 10, 7, 1, 2]);
    bytes.extend(SERVER);
    let sum: u32 = bytes[14..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend([7; 26]);
    bytes
}

/// The identifications of packets to [`SERVER`].
fn identifications(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]])).collect()
}

fn is_ours(frame: &[u8]) -> bool {
    frame.get(30..34) == Some(&SERVER)
}

#[test]
fn bits_choose_the_way_and_slices_follow_tables_of_the_kernel() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab);
    let routes = "{to: 10.99.0.0/16, via: 10.7.2.2}, {to: 10.99.0.0/16, via: 10.7.3.2, slice: 1}";
    let documents = |settings: &str| all(&[lab.node_document(""), document(&lab, settings, routes)]);
    let daemon = Daemon::start(&lab, &documents("slices: 3"));
    let name = lab.name("r0");
    runs_on(&daemon, &name, "soft");
    for (at, host) in hosts.iter().enumerate() {
        let router = Ipv4Addr::new(10, 7, at as u8 + 1, 1);
        until("the router answers", 20, || host.ping(router, 1) == 1);
    }
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let mut send =
        |frames: &[Vec<u8>]| assert_eq!(socket.send(frames.iter().map(Vec::as_slice)), frames.len() as u64);
    let watch = |at: usize| Sniffer::start(&hosts[at].space, "eth0", is_ours);
    let count = |of: &str, why: &str| daemon.cli.stats(&name)[of][why].as_u64().unwrap_or(0);
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    let listed = || daemon.cli.json(&["get", "routes", "10.99.0.0/16", "-n", &name]);
    until("both slices have their route", 20, || {
        let routes = listed();
        let does = |route: &Value| route["kind"] == "forward";
        routes.as_array().is_some_and(|list| list.len() == 2 && list.iter().all(does))
    });

    // Two flows, two ways; each packet has the bits of the next hop. Slice 2 has no route, slice 3 does not exist.
    let (second, third) = (watch(1), watch(2));
    // A ping may have named slice 3 by chance: hosts that know nothing of slices set any identification.
    let (before, no_slice) = (forwarded(), count("drops", "no_slice"));
    send(&[
        frame(&hosts[0], 0x0008),
        frame(&hosts[0], 0x0009),
        frame(&hosts[0], 0x5555),
        frame(&hosts[0], 3),
    ]);
    until("each has its outcome", 20, || {
        forwarded() == before + 3 && count("drops", "no_slice") == no_slice + 1
    });
    assert_eq!(identifications(&second.stop().frames), [0x0002]);
    assert_eq!(identifications(&third.stop().frames), [0x0002, 0x5555]);
    send(&[frame(&hosts[0], 2)]);
    until("slice 2 has no route", 20, || count("punts", "no_route") >= 1);

    // A routing daemon would fill a table of the kernel; links and neighbours are there already.
    let ip =
        |arguments: &[&str]| daemon.cli.exec(&name, &[&["ip", "route"][..], arguments].concat()).expect_ok();
    let _ = ip(&["add", "10.99.0.0/16", "via", "10.7.3.2", "table", "102"]);
    until("slice 2 has a route", 20, || listed().as_array().map(Vec::len) == Some(3));
    let slices: Vec<u64> =
        listed().as_array().unwrap().iter().filter_map(|one| one["slice"].as_u64()).collect();
    assert_eq!(slices, [0, 1, 2]);
    let shown = daemon.cli.run(&["get", "routes", "10.99.0.1", "-n", &name]).expect_ok();
    assert!(shown.stdout.contains("slice 2"), "{shown}");
    let hex: String = frame(&hosts[0], 0x0e).iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = daemon.cli.run(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &hex]).expect_ok();
    for words in [
        "splicing bits 0x000e in ip_id, 2 a hop: slice 2 of 3",
        "10.99.0.1 in slice 2: matches 10.99.0.0/16 slice 2",
        "splicing bits 0x000e -> 0x0003",
    ] {
        assert!(trace.stdout.contains(words), "{words}: {trace}");
    }

    // Its route changes while packets flow, and none is lost; other slices keep theirs.
    let (second, third) = (watch(1), watch(2));
    let before = forwarded();
    let flood = Flood::start(&hosts[0].space, vec![frame(&hosts[0], 0xaaaa), frame(&hosts[0], 0)], 2_000);
    until("packets flow", 20, || flood.sent() > 500);
    let _ = ip(&["replace", "10.99.0.0/16", "via", "10.7.2.2", "table", "102"]);
    let at = flood.sent();
    until("more packets flow", 20, || flood.sent() > at + 500);
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == before + sent);
    let (second, third) = (second.stop(), third.stop());
    assert_eq!(second.wanted + third.wanted, sent);
    // Half of the packets are slice 0's, which never go there.
    let moved = second.wanted.saturating_sub(sent / 2);
    assert!(third.wanted >= 200 && moved >= 200, "{} {moved}", third.wanted);
    assert!(identifications(&third.frames).iter().all(|id| *id == 0xaaaa));

    // Another number of slices: the plane starts anew, with the routes of the tables that it has now.
    let _ = daemon.cli.apply(&documents("slices: 2"), &[]);
    until("two slices are left", 20, || listed().as_array().map(Vec::len) == Some(2));
    let second = watch(1);
    until("packets are forwarded by slice 0", 20, || {
        send(&[frame(&hosts[0], 0xff00)]);
        forwarded() >= 1
    });
    until("they arrive", 20, || hosts[1].space.counter("eth0", "rx_packets") > 0);
    let seen = identifications(&second.stop().frames);
    assert!(!seen.is_empty() && seen.iter().all(|id| *id == 0xff80), "{seen:?}");

    // A slice that the network does not have is refused in a document, and nothing changes.
    let wrong = documents("slices: 2").replace("slice: 1", "slice: 2");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(
        refused.code != 0 && refused.stderr.contains("found slice 2, expected a number from 0 to 1"),
        "{refused}"
    );
    assert_eq!(listed().as_array().map(Vec::len), Some(2));
}

/// Packets of two slices flow while the network moves: none is lost, each goes by its slice and has the bits of the next hop.
#[test]
fn such_a_network_moves_between_card_and_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab);
    let routes = "{to: 10.99.0.0/16, via: 10.7.2.2}, {to: 10.99.0.0/16, via: 10.7.3.2, slice: 1}";
    let documents = |image: &str| [node(&lab, image), document(&lab, "slices: 2", routes)];
    let daemon = start(&lab, &["kinds"], &documents("kinds"));
    let name = lab.name("r0");
    runs_on(&daemon, &name, "card");
    for (host, link) in hosts.iter().zip(1..) {
        until("the router answers", 20, || host.ping(Ipv4Addr::new(10, 7, link, 1), 1) == 1);
    }
    let routes = || daemon.cli.json(&["get", "routes", "10.99.0.0/16", "-n", &name]);
    let forwards = |route: &Value| route["kind"] == "forward";
    until("both slices have their route", 20, || {
        routes().as_array().is_some_and(|list| list.len() == 2 && list.iter().all(forwards))
    });
    let moves = |to: &str| move_to(&daemon, &name, to);
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    let watches = [1, 2].map(|at: usize| Sniffer::start(&hosts[at].space, "eth0", is_ours));
    let flood = Flood::start(&hosts[0].space, vec![frame(&hosts[0], 0x8008), frame(&hosts[0], 0x0009)], 500);
    until("frames flow", 20, || flood.sent() > 100);
    moves("soft");
    moves("card");
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 100);
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == sent);
    let [second, third] = watches.map(Sniffer::stop);
    assert_eq!([second.wanted, third.wanted], [sent.div_ceil(2), sent / 2]);
    assert!(identifications(&second.frames).iter().all(|id| *id == 0xc004));
    assert!(identifications(&third.frames).iter().all(|id| *id == 0x0004));
}

/// `hueplane splice-host` on a host, for two slices, with a message every 20 ms.
struct Splicer {
    child: Child,
    said: PathBuf,
}

impl Splicer {
    fn start(lab: &Lab, host: &Host, peer: Ipv4Addr) -> Self {
        let said = lab.folder().join(format!("splice-host-{peer}"));
        let mut command = shell::command(&binary().to_string_lossy());
        command.args(["splice-host", "--interface", "eth0", "--peer", &peer.to_string()]);
        command.args(["--slices", "2", "--interval", "20"]).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&said).unwrap());
        Self { child: host.space.spawn(&mut command), said }
    }

    fn has_said(&self, words: &str) -> bool {
        std::fs::read_to_string(&self.said).unwrap().contains(words)
    }

    fn end(mut self) -> Option<i32> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Splicer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two routers with two links between them, one for each slice, and no routing daemon. A link breaks without a sign: only the hosts
/// can notice, and they leave it by other bits.
#[test]
fn hosts_leave_a_broken_path_by_other_bits() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(6);
    let switch = lab.switch();
    for (wire, bridge) in [("w2", "br1"), ("w4", "br3")] {
        switch.ip(&["link", "set", wire, "master", bridge]);
    }
    // The host's port, then those of both links; this router's end of each link, and the other one's.
    let router = |name: &str, tag: u8, ports: [usize; 3], far: &str, [own, peer]: [u8; 2]| {
        let port = |at: usize, address: String| {
            let mac = text([2, 0x73, tag, ports[at] as u8, 8, 1]);
            format!("    - {{name: v{at}, port: p{}, mac: \"{mac}\", addresses: [{address}]}}\n", ports[at])
        };
        let links = [1, 2].map(|link| port(link, format!("10.0.{link}.{own}/30")));
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: splice, slices: 2}}\n  ports:\n{}{}  \
             routes: [{{to: {far}, via: 10.0.1.{peer}}}, {{to: {far}, via: 10.0.2.{peer}, slice: 1}}]\n",
            lab.name(name),
            port(0, format!("10.{tag}.0.1/24")),
            links.concat(),
        )
    };
    let documents = [
        lab.node_document(""),
        router("r1", 1, [0, 1, 3], "10.2.0.0/24", [1, 2]),
        router("r2", 2, [5, 2, 4], "10.1.0.0/24", [2, 1]),
    ];
    let host = |name: &str, port: usize, link: u8| {
        let mac = [2, 0xbb, 8, link, 8, 2];
        lab.host(name, port, mac, &format!("10.{link}.0.2/24"), Ipv4Addr::new(10, link, 0, 1))
    };
    let (src, dst) = (host("src", 0, 1), host("dst", 5, 2));
    let _daemon = Daemon::start(&lab, &all(&documents));
    until("src reaches dst", 20, || src.ping(dst.address, 1) == 1);
    let splicers = [Splicer::start(&lab, &src, dst.address), Splicer::start(&lab, &dst, src.address)];
    until("both hear each other", 20, || splicers.iter().all(|one| one.has_said("is heard")));
    let refused = Splicer::start(&lab, &src, Ipv4Addr::new(10, 2, 0, 9));
    until("a second one is refused", 20, || refused.has_said("another `hueplane splice-host` may run here"));
    drop(refused);

    // Frames on the first link vanish while packets flow.
    let mut ping = shell::command("ping");
    ping.args(["-n", "-i", "0.01", "-c", "150", "-W", "1", &dst.address.to_string()]).stdout(Stdio::piped());
    let ping = src.space.spawn(&mut ping);
    std::thread::sleep(Duration::from_millis(300));
    switch.ip(&["link", "set", "w2", "nomaster"]);
    let answers = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    let answered = answers.matches("bytes from").count();
    assert!(answers.contains("icmp_seq=150 ") && (75..150).contains(&answered), "{answers}");
    assert!(splicers.iter().all(|one| one.has_said("lane 0: bits 0x0000 -> 0xffff")));

    // The first link works again, and the second one does not: the hosts try other bits until some lead by the first.
    switch.ip(&["link", "set", "w2", "master", "br1"]);
    switch.ip(&["link", "set", "w4", "nomaster"]);
    until("they have left the second link", 20, || splicers.iter().all(|one| one.has_said("0xffff -> 0x")));
    until("src reaches dst", 20, || src.ping(dst.address, 1) == 1);

    // At its end, device and route go.
    assert_eq!(splicers.map(Splicer::end), [Some(0), Some(0)]);
    assert!(!src.space.run("ip", &["link", "show", "splice0"]).ok());
    assert!(!src.space.run("ip", &["route"]).stdout.contains("10.2.0.2"));
}
