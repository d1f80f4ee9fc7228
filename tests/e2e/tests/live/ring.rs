//! The routing daemon of networks of kind `rofl`: three of them in a triangle, with hosts at two corners. Nobody configures labels.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Child, Stdio};

use hue_e2e::daemon::binary;
use hue_e2e::document::all;
use hue_e2e::lab::{Host, text};
use hue_e2e::space::Space;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, can_run, shell, until};
use hue_testdata::figure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::rofl::{Endpoint, ping};
use crate::upgrade::Running;

const ALICE: &str = "0x20000000";
/// Behind alice on the ring, before all routers but red: red must know the way to it.
const BOB: &str = "0x30000000";

fn mac(network: u8, port: usize) -> String {
    text([2, 0x72, 0x66, network, port as u8, 1])
}

/// A network with whole ports of the node, and without any label.
fn network(lab: &Lab, name: &str, tag: u8, ports: &[usize]) -> String {
    let port =
        |port: &usize| format!("    - {{name: p{port}, port: p{port}, mac: \"{}\"}}\n", mac(tag, *port));
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: rofl, label_bits: 32, pointers_max: 0}}\n  \
         ports:\n{}",
        lab.name(name),
        ports.iter().map(port).collect::<String>()
    )
}

/// `hueplane rofl-ring` in a network.
struct Ring {
    cli: Cli,
    network: String,
    child: Child,
}

impl Ring {
    fn start(cli: &Cli, network: &str, label: &str) -> Self {
        let program = binary().to_string_lossy();
        let line = ["exec", network, "--", &program, "rofl-ring", "--interval", "100", "--label", label];
        let mut command = cli.command(&line);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { cli: cli.clone(), network: network.to_owned(), child }
    }

    fn show(&self) -> Value {
        let program = binary().to_string_lossy();
        let output = self.cli.exec(&self.network, &[&program, "rofl-ring", "--show", "-o", "json"]);
        if output.ok() { output.json() } else { Value::Null }
    }

    fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn labels_join_a_ring_that_falls_apart_and_heals() {
    triangle(false);
}

#[test]
#[ignore = "long: make test-full"]
fn the_same_with_tcp_and_a_restart_of_hueplane() {
    triangle(true);
}

/// What `hueplane upgrade` costs: labels are handed over, so packets find their way before the ring's daemons have come back. A daemon
/// that starts meanwhile waits, and the socket for labels is there afterwards.
#[test]
#[ignore = "long: make test-full"]
fn labels_stay_while_hueplane_is_upgraded() {
    if !can_run(&[]) {
        return;
    }
    // red - blue.
    let lab = Lab::new(4);
    lab.switch().ip(&["link", "set", "w2", "master", "br1"]);
    let hosts = [0_u8, 1].map(|at| {
        let mac = [2, 0xbb, 0, 0, 9, at];
        lab.bare_host(&format!("flat{at}"), [0, 3][usize::from(at)], mac, "192.0.2.1/32")
    });
    let documents =
        [lab.node_document(""), network(&lab, "red", 1, &[0, 1]), network(&lab, "blue", 2, &[2, 3])];
    let file = lab.folder().join("first.yaml");
    std::fs::write(&file, all(&documents)).unwrap();
    let cli = Cli::new(&lab);
    let up = ["up", "--detach", "--workers", "1", "-f", &file.to_string_lossy()];
    let _ = lab.node().run_command(&mut cli.command(&up)).expect_ok();
    let _running = Running(&cli);
    let names = ["red", "blue"].map(|name| lab.name(name));
    let labels = ["0x10000000", "0x90000000"];
    let mut rings = [0, 1].map(|at| Ring::start(&cli, &names[at], labels[at]));
    let alice = Endpoint::joining(&hosts[0], &mac(1, 0), 1, ALICE, BOB);
    let bob = Endpoint::joining(&hosts[1], &mac(2, 3), 2, BOB, ALICE);
    until("alice reaches bob", 30, || ping(&hosts[0], "10.8.0.2", 1, &["-W", "1"]));
    let learnt = |network: &str| {
        let list = cli.json(&["get", "entries", "-n", network]);
        list.as_array().unwrap().iter().map(|one| one["match"].clone()).collect::<Vec<_>>()
    };
    // Red's host is before the other one on the ring, so it must know it; blue's is before blue.
    let have = |name: &str| learnt(name).len();
    until("both have all labels that they need", 20, || (have(&names[0]), have(&names[1])) == (4, 3));
    let pid = || cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64().unwrap();
    let upgrade = || {
        let first = pid();
        let done = lab.node().run_command(&mut cli.command(&["upgrade", "-o", "json"])).expect_ok().json();
        assert_ne!(pid(), first);
        done["interrupted_ms"].as_u64().unwrap()
    };
    let before = names.each_ref().map(|name| learnt(name));
    let to = (&hosts[1].space, "10.8.0.2".parse().unwrap());
    let flow = Flow::between((&hosts[0].space, None), to, 500, 100);
    until("traffic", 20, || flow.received() > 100);
    let interrupted_ms = upgrade();
    assert_eq!(names.each_ref().map(|name| learnt(name)), before);
    let received = flow.received();
    until("traffic flows again", 20, || flow.received() > received + 100);
    let report = flow.stop();
    let lost_ms = report.lost() * 1000 / 500;
    figure(&format!(
        "upgrade of rofl networks: {lost_ms} ms of packets lost, interrupted for {interrupted_ms} ms"
    ));
    // The ring's daemons connect again after half a second.
    assert!(report.duplicated == 0 && lost_ms < interrupted_ms + 300, "{report}");
    until("the daemons are back", 20, || {
        rings.iter().map(Ring::show).zip([4, 3]).all(|(shown, entries)| shown["entries"] == entries)
    });
    // Without its daemon, a network has what was handed over.
    assert_eq!(rings[0].end(Signal::SIGKILL), None);
    until("blue is alone", 20, || learnt(&names[1]).len() == 2);
    let _ = upgrade();
    assert_eq!(learnt(&names[0]), before[0]);
    // A new daemon replaces what its network has kept.
    rings[0] = Ring::start(&cli, &names[0], "0x11000000");
    until("red has another label", 20, || {
        let all = learnt(&names[0]);
        all.len() == 4 && all.contains(&"0x11000000".into())
    });
    drop((alice.end(), bob.end()));
}

/// TCP from one host to the other, bounded by time.
fn tcp(from: &Host, to: &Host) {
    let mut server = shell::command("iperf3");
    server.args(["-s", "-1", "-B", "10.8.0.2"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = to.space.spawn(&mut server);
    let mut bytes = 0;
    until("iperf3 has sent", 20, || {
        let output = from.space.run("iperf3", &["-c", "10.8.0.2", "-t", "1", "-J"]);
        let sent = output.ok().then(|| output.json()["end"]["sum_received"]["bytes"].as_u64());
        bytes = sent.flatten().unwrap_or(0);
        bytes > 0
    });
    let _ = server.wait();
    println!("iperf3 over flat labels: {bytes} bytes in a second");
}

fn triangle(is_long: bool) {
    if !can_run(&["tshark", "iperf3"]) {
        return;
    }
    let lab = Lab::new(8);
    // red - blue, blue - green, red - green.
    for (wire, bridge) in [("w2", "br1"), ("w4", "br3"), ("w7", "br6")] {
        lab.switch().ip(&["link", "set", wire, "master", bridge]);
    }
    let hosts = [0_u8, 1].map(|at| {
        let mac = [2, 0xbb, 0, 0, 9, at];
        lab.bare_host(&format!("flat{at}"), [0, 5][usize::from(at)], mac, "192.0.2.1/32")
    });
    let documents = [
        network(&lab, "red", 1, &[0, 1, 6]),
        network(&lab, "blue", 2, &[2, 3]),
        network(&lab, "green", 3, &[4, 5, 7]),
    ];
    let mut daemon = Daemon::start(&lab, &all(&[&[lab.node_document("")], &documents[..]].concat()));
    let cli = daemon.cli.clone();
    let [red, blue, green] = ["red", "blue", "green"].map(|name| lab.name(name));
    let labels = [(&red, "0x10000000"), (&blue, "0x50000000"), (&green, "0x90000000")];
    let mut rings = labels.map(|(name, label)| Ring::start(&cli, name, label));
    let alice = Endpoint::joining(&hosts[0], &mac(1, 0), 1, ALICE, BOB);
    let bob = Endpoint::joining(&hosts[1], &mac(3, 5), 2, BOB, ALICE);
    let reach = || ping(&hosts[0], "10.8.0.2", 1, &["-W", "1"]);
    until("alice reaches bob", 30, reach);

    // What the user sees: learnt entries, and the ring.
    let entries = |name: &str| {
        let list = cli.json(&["get", "entries", "-n", name]);
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| one["match"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    until("red has all it needs", 20, || {
        entries(&red) == ["0x10000000", ALICE, BOB, "0x50000000", "0x90000000"]
    });
    let shown = rings[0].show();
    assert_eq!(shown["zero"], "0x10000000", "{shown}");
    let own = |shown: &Value, label: &str| {
        shown["labels"].as_array().and_then(|all| all.iter().find(|one| one["label"] == label).cloned())
    };
    let place = own(&shown, ALICE).unwrap();
    assert_eq!(
        (&place["joined"], &place["port"], &place["next"]),
        (&true.into(), &"p0".into(), &BOB.into()),
        "{shown}"
    );
    let counters = &shown["counters"];
    let drops: u64 = counters["drops"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(counters["received"].as_u64(), counters["accepted"].as_u64().map(|accepted| accepted + drops));

    if is_long {
        tcp(&hosts[0], &hosts[1]);
    }

    // The dissector knows every message on the wire.
    let lua = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../../labs/rofl/rofl.lua");
    let line = ["tshark", "-X", lua, "-i", "p6", "-c", "25", "-T", "fields", "-e", "rofl.ring.kind", "-e"];
    let seen = cli.exec(&red, &[&line[..], &["rofl.malformed", "-e", "rofl.ring.malformed"]].concat());
    let kinds: Vec<&str> = seen.stdout.lines().collect();
    assert!(kinds.len() == 25 && kinds.contains(&"1\t\t") && kinds.contains(&"8\t\t"), "{seen}");
    assert!(kinds.iter().all(|kind| kind.ends_with("\t\t") && kind.len() > 2), "{seen}");

    // Frames vanish, and no interface goes down: the way is around.
    lab.switch().ip(&["link", "set", "w6", "nomaster"]);
    until("alice reaches bob around", 20, reach);
    assert!(entries(&blue).contains(&BOB.to_owned()), "{:?}", entries(&blue));
    // The daemon between is killed: two rings.
    assert_eq!(rings[1].end(Signal::SIGKILL), None);
    until("red is alone", 20, || {
        rings[0].show()["routers"].as_array().is_some_and(|all| all.iter().all(|one| one["links"].is_null()))
    });
    until("green is alone", 20, || rings[2].show()["zero"] == "0x90000000");
    assert!(!reach());
    // They meet.
    lab.switch().ip(&["link", "set", "w6", "master", "br6"]);
    until("alice reaches bob again", 20, reach);
    assert_eq!(rings[2].show()["zero"], "0x10000000");
    // The killed one's network has kept its labels; the next daemon replaces them.
    assert!(entries(&blue).contains(&"0x50000000".to_owned()), "{:?}", entries(&blue));
    rings[1] = Ring::start(&cli, &blue, "0x51000000");
    until("blue has joined by another label", 20, || {
        let all = entries(&red);
        all.contains(&"0x51000000".to_owned()) && !entries(&blue).contains(&"0x50000000".to_owned())
    });
    assert!(reach());

    if is_long {
        // hueplane is killed and started again: the labels come back without a word of anybody.
        daemon.kill();
        daemon.respawn(&lab);
        until("alice reaches bob after a restart", 30, reach);
    }

    // Wrong use.
    let program = binary().to_string_lossy();
    let second = cli.exec(&red, &[&program, "rofl-ring"]);
    assert!(second.code == 5 && second.stderr.contains("another `hueplane rofl-ring` runs"), "{second}");
    let nowhere = hosts[0].space.run(&program, &["rofl-ring", "--show"]);
    assert!(nowhere.code == 5 && nowhere.stderr.contains("no `hueplane rofl-ring` answers"), "{nowhere}");

    // A host leaves, then a daemon: what they had is gone at once.
    drop(bob.end());
    until("red has forgotten bob", 20, || !entries(&red).contains(&BOB.to_owned()));
    assert_eq!(rings[0].end(Signal::SIGTERM), Some(0));
    until("red has no labels", 20, || entries(&red).is_empty());
    until("green has no way to red", 20, || !entries(&green).contains(&"0x10000000".to_owned()));
    drop(alice.end());

    // A routing daemon of one's own, in red: only whole sets of sound labels are taken, and only for red.
    let space = cli.json(&["get", "networks"]);
    let space =
        space.as_array().unwrap().iter().find(|one| one["name"] == red.as_str()).unwrap()["namespace"]
            .clone();
    let space = Space::of(space.as_str().unwrap().to_owned());
    let connect =
        || SocketAddr::from_abstract_name("hueplane-labels").and_then(|at| UnixStream::connect_addr(&at));
    assert!(hosts[0].space.inside(connect).is_err(), "no network is there");
    let stream = space.inside(connect).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |line: &str| {
        writeln!(&stream, "{line}").unwrap();
        lines.next().unwrap().unwrap()
    };
    let offer = ask(r#"{"labels":[{"label":"0x77"}]}"#);
    assert!(offer.contains(&format!("\"network\":\"{red}\"")), "{offer}");
    let refused = ask("[]");
    assert!(refused.contains("refused") && refused.contains("found 8 bits, expected 32"), "{refused}");
    let refused = ask(r#"{"labels":[{"label":"0x77000000","port":"p2","neighbour":"02:00:00:00:00:01"}]}"#);
    assert!(refused.contains("not a line with labels"), "{refused}");
    let refused = ask(r#"{"labels":[{"label":"0x77000000"}]}"#);
    assert!(refused.contains("the network has no port p2"), "blue's: {refused}");
    let applied = ask("");
    assert!(applied.contains("applied") && entries(&red) == ["0x77000000"], "{applied}");
    // It is gone; its label stays for a while.
    drop((lines, stream));
    assert_eq!(entries(&red), ["0x77000000"]);
    assert!(!entries(&blue).contains(&"0x77000000".to_owned()));
}
