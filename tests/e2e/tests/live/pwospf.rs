//! PW-OSPF in three networks of a node, whose ports are wired to each other in a triangle, with hosts at two corners.

use std::process::{Child, Stdio};

use hue_e2e::daemon::binary;
use hue_e2e::document::all;
use hue_e2e::traffic::{Flow, now_ns};
use hue_e2e::{Daemon, Document, Lab, VirtualPort, can_run, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::routing::routes;
use crate::topology::met_a_cut;

/// A network with ports on these ports of the node, each with its address.
fn network(lab: &Lab, name: &str, tag: u8, ports: &[(usize, &str)]) -> Document {
    let port = |(port, address): &(usize, &str)| VirtualPort {
        name: format!("p{port}"),
        port: format!("p{port}"),
        mac: format!("02:70:77:{tag:02x}:{port:02x}:01"),
        addresses: vec![(*address).to_owned()],
    };
    Document { name: lab.name(name), kind: "ipv4", ports: ports.iter().map(port).collect(), more: Vec::new() }
}

/// `hueplane pwospf` in a network.
struct Router<'d> {
    daemon: &'d Daemon,
    network: String,
    child: Child,
}

impl<'d> Router<'d> {
    fn start(daemon: &'d Daemon, network: &str) -> Self {
        let program = binary().to_string_lossy();
        let line =
            ["exec", network, "--", &program, "pwospf", "--hello-interval", "1", "--lsu-interval", "1"];
        let mut command = daemon.cli.command(&line);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { daemon, network: network.to_owned(), child }
    }

    fn show(&self) -> Option<Value> {
        let program = binary().to_string_lossy();
        let output = self.daemon.cli.exec(&self.network, &[&program, "pwospf", "--show", "-o", "json"]);
        output.ok().then(|| output.json())
    }

    fn end(&mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Router<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Packets a second of the flow that meets a cut.
const RATE: u32 = 200;

#[test]
fn networks_in_a_triangle_route_around_a_cut_and_through_a_kill() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(8);
    // red - blue, blue - green, red - green.
    for (wire, bridge) in [("w2", "br1"), ("w4", "br3"), ("w7", "br6")] {
        lab.switch().ip(&["link", "set", wire, "master", bridge]);
    }
    let red = network(&lab, "red", 1, &[(0, "10.1.0.1/24"), (1, "10.2.0.1/24"), (6, "10.4.0.1/24")]);
    let blue = network(&lab, "blue", 2, &[(2, "10.2.0.2/24"), (3, "10.3.0.1/24")]);
    let green = network(&lab, "green", 3, &[(4, "10.3.0.2/24"), (5, "10.5.0.1/24"), (7, "10.4.0.2/24")]);
    // On the wire between red and blue, and without a routing daemon.
    let grey = network(&lab, "grey", 4, &[(1, "10.2.0.9/24")]);
    let a = lab.host("a", 0, [2, 0x68, 0x70, 0, 0, 1], "10.1.0.2/24", [10, 1, 0, 1].into());
    let b = lab.host("b", 5, [2, 0x68, 0x70, 0, 0, 2], "10.5.0.2/24", [10, 5, 0, 1].into());
    let documents = [&red, &blue, &green, &grey].map(Document::yaml);
    let daemon = Daemon::start(&lab, &all(&[&[lab.node_document("")], &documents[..]].concat()));
    let mut routers = [&red, &blue, &green].map(|one| Router::start(&daemon, &one.name));

    let via = |network: &Document, prefix: &str| {
        let found =
            routes(&daemon, &network.name, "pwospf").into_iter().find(|route| route["prefix"] == prefix);
        found.map(|route| route.to_string()).unwrap_or_default()
    };
    let goes_by = |gateway: &str| via(&red, "10.5.0.0/24").contains(gateway);
    until("red's plane has the direct route", 30, || goes_by("10.4.0.2"));
    until("a reaches b", 20, || a.ping(b.address, 1) == 1);

    // Frames vanish, and no interface goes down: three hellos later the way is around.
    let flow = Flow::start_to(&a, &b, b.address, RATE, 100);
    until("traffic", 20, || flow.received() > 100);
    let since_ns = now_ns();
    lab.switch().ip(&["link", "set", "w6", "nomaster"]);
    until("red's plane has the route around", 20, || goes_by("10.2.0.2"));
    until("a reaches b around", 20, || a.ping(b.address, 1) == 1);
    met_a_cut("no interface goes down", flow, RATE, since_ns);
    lab.switch().ip(&["link", "set", "w6", "master", "br6"]);
    until("red's plane has the direct route again", 20, || goes_by("10.4.0.2"));
    daemon.cli.settle(&[&red.name, &green.name], || a.ping(b.address, 1) == 1);

    // Killed and started again: the routes stay meanwhile, and until it is known which are right.
    let flow = Flow::start_to(&a, &b, b.address, 200, 100);
    let pid = routers[0].show().map(|shown| shown["pid"].clone());
    assert_eq!(routers[0].end(Signal::SIGKILL), None);
    routers[0] = Router::start(&daemon, &red.name);
    until("the next one knows everything", 30, || {
        routers[0]
            .show()
            .is_some_and(|shown| shown["complete"] == true && Some(&shown["pid"]) != pid.as_ref())
    });
    let report = flow.stop();
    assert!(report.sent > 100 && report.lost() == 0, "{report}");

    // What they say of themselves agrees, and adds up.
    let shown: Vec<Value> = routers.iter().map(|router| router.show().unwrap()).collect();
    for one in &shown {
        assert_eq!(one["database"].as_array().map(Vec::len), Some(2), "{one}");
        let counters = &one["counters"];
        let number = |name: &str| counters[name].as_u64().unwrap();
        let drops: u64 = counters["drops"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(number("received"), number("hellos") + number("lsus") + drops, "{counters}");
        assert_eq!((number("send_failed"), number("routes_refused"), number("routes_inherited")), (0, 0, 0));
    }
    let program = binary().to_string_lossy();
    let other = daemon.cli.exec(&grey.name, &[&program, "pwospf", "--show"]);
    assert!(!other.ok() && other.stderr.contains("no `hueplane pwospf` answers"), "{other}");
    assert_eq!(routes(&daemon, &grey.name, "pwospf"), [Value::Null; 0]);
    let second = daemon.cli.exec(&red.name, &[&program, "pwospf"]);
    assert!(second.stderr.contains("another `hueplane pwospf` runs"), "{second}");

    // It ends: no route is left, and the others know at once.
    assert_eq!(routers[0].end(Signal::SIGTERM), Some(0));
    let kernel = daemon.cli.exec(&red.name, &["ip", "route", "show", "proto", "80"]);
    assert_eq!(kernel.expect_ok().stdout, "");
    until("red's plane has none of its routes", 10, || routes(&daemon, &red.name, "pwospf").is_empty());
    until("blue's plane has no route to red's host", 2, || via(&blue, "10.1.0.0/24").is_empty());
    assert!(!via(&blue, "10.5.0.0/24").is_empty());
}
