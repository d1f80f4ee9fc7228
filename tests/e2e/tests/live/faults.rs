//! Faults: interfaces that come and go, drivers that do not work, programs that take all resources.

use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, shell, until};
use serde_json::Value;

fn port(daemon: &Daemon, name: &str) -> Value {
    daemon.cli.json(&["get", "ports", name])
}

#[test]
fn an_interface_that_goes_comes_back() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 2]));
    let documents = [lab.node_document(""), red.document.yaml(), blue.document.yaml()];
    let mut daemon = Daemon::start(&lab, &all(&documents));
    red.warm_up();
    blue.warm_up();
    let steady = Flow::start(&blue.left, &blue.right, 5_000, 100);
    let cut = Flow::start(&red.left, &red.right, 500, 100);
    for _ in 0..2 {
        lab.unplug(1);
        until("the port is missing", 20, || port(&daemon, "p1")["state"] == "missing");
        assert_eq!(red.left.ping(red.right.address, 1), 0);
        lab.plug(1);
        until("the port is up again", 20, || port(&daemon, "p1")["state"] == "up");
        red.warm_up();
        lab.node().ip(&["link", "set", "p1", "down"]);
        until("the port is down", 20, || port(&daemon, "p1")["state"] == "down");
        lab.node().ip(&["link", "set", "p1", "up"]);
        until("the port is up again", 20, || port(&daemon, "p1")["state"] == "up");
        red.warm_up();
    }
    let received = cut.received();
    until("traffic that was cut goes on", 10, || cut.received() > received);
    let report = steady.stop();
    assert!(report.sent > 0 && report.lost() == 0, "a network on other ports: {report}");
    drop(cut.stop());
    assert!(daemon.cli.happened("port_down") && daemon.cli.happened("port_up"), "{:?}", daemon.cli.events());
    assert!(daemon.ended().is_none());
}

#[test]
fn a_port_that_is_not_there_does_not_stop_the_others() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let mut ports = lab.ports().to_vec();
    ports.push("nowhere0".into());
    let node = hue_e2e::document::node(&lab.name("node"), &ports, "");
    let mut blue = lab.pair_document("blue", 2, 2, [0, 1]);
    blue.ports[1].port = "nowhere0".into();
    let daemon = Daemon::start(&lab, &all(&[node, red.document.yaml(), blue.yaml()]));
    red.warm_up();
    assert_eq!(port(&daemon, "nowhere0")["state"], "missing");
    // The network runs on the existing port; the port's status and the node's name the missing one.
    let network = daemon.cli.json(&["get", "networks", &blue.name]);
    assert_eq!(
        (&network["ports"][0]["up"], &network["ports"][1]["up"]),
        (&true.into(), &false.into()),
        "{network}"
    );
    let status = daemon.cli.json(&["get", "nodes"])[0]["status"].clone();
    assert!(
        status["health"] == "degraded" && status["problems"].to_string().contains("nowhere0"),
        "{status}"
    );
    assert_eq!(daemon.cli.json(&["get", "networks", red.name()])["state"], "running");
}

#[test]
fn without_af_xdp_the_port_falls_back_and_reports_it() {
    if !can_run(&["clang"]) {
        return;
    }
    let lab = Lab::new(3);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let blue = lab.pair("blue", 2, 2, [0, 2]);
    // Another user's XDP program is on p1; p2 must use a packet socket.
    let source = lab.folder().join("pass.c");
    hue_e2e::daemon::write(&source, "__attribute__((section(\"xdp\"))) int pass(void *c) { return 2; }");
    let object = lab.folder().join("pass.o");
    let mut clang = shell::command("clang");
    let _ = shell::run(clang.args(["-target", "bpf", "-O2", "-c"]).arg(&source).arg("-o").arg(&object))
        .expect_ok();
    lab.node().ip(&["link", "set", "p1", "xdp", "obj", &object.to_string_lossy(), "sec", "xdp"]);
    let node = format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {}}}\nspec:\n  ports:\n    - {{name: p0}}\n    \
         - {{name: p1}}\n    - {{name: p2, driver: packet}}\n",
        lab.name("node")
    );
    let daemon = Daemon::start(&lab, &all(&[node, red.document.yaml(), blue.document.yaml()]));
    red.warm_up();
    blue.warm_up();
    assert_eq!(port(&daemon, "p0")["driver"], "afxdp");
    let fallen = port(&daemon, "p1");
    assert_eq!(fallen["driver"], "packet", "{fallen}");
    assert!(fallen["note"].as_str().is_some_and(|note| !note.is_empty()), "{fallen}");
    assert!(daemon.cli.happened("port_fallback"), "{:?}", daemon.cli.events());
    assert_eq!(port(&daemon, "p2")["driver"], "packet");
    let table = daemon.cli.run(&["get", "ports"]).expect_ok().stdout;
    assert!(table.contains("packet") && table.contains("afxdp"), "{table}");
    for pair in [&red, &blue] {
        let flow = Flow::start(&pair.left, &pair.right, 500, 1000);
        std::thread::sleep(Duration::from_millis(500));
        let report = flow.stop();
        assert!(report.sent > 0 && report.lost() == 0, "{report}");
    }
}

#[test]
fn a_tap_port_is_made_and_removed() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(1);
    let red = lab.pair_document("red", 1, 1, [0, 0]);
    let mut document = red;
    document.ports[1].port = "t0".into();
    let node = format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {}}}\nspec:\n  ports:\n    - {{name: p0}}\n    \
         - {{name: t0, driver: tap}}\n",
        lab.name("node")
    );
    let host = lab.host("left", 0, [2, 0x68, 1, 0, 1, 2], "10.1.1.2/24", [10, 1, 1, 1].into());
    let mut daemon = Daemon::start(&lab, &all(&[node, document.yaml()]));
    assert_eq!(port(&daemon, "t0")["driver"], "tap");
    // The node itself is the host behind it.
    lab.node().ip_batch("address add 10.1.2.2/24 dev t0\nroute add 10.1.1.0/24 via 10.1.2.1\n");
    until("the node's kernel is reached by the TAP", 20, || host.ping([10, 1, 2, 2], 1) == 1);
    daemon.down(&[]);
    let links = lab.node().run("ip", &["-o", "link"]).expect_ok().stdout;
    assert!(!links.contains("t0"), "{links}");
}

#[test]
fn programs_of_a_network_take_no_more_than_they_may() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let limited = red.document.clone().with("resources", "{cpu: 0.2, memory: 64Mi, processes: 24}");
    let documents = [lab.node_document(""), limited.yaml(), blue.document.yaml()];
    let mut daemon = Daemon::start(&lab, &all(&documents));
    red.warm_up();
    blue.warm_up();
    let flows = [&red, &blue].map(|pair| Flow::start(&pair.left, &pair.right, 1000, 100));

    // Memory: beyond its limit the program is ended, and no other program of the machine.
    let hog = "a = []\nwhile True: a.append(bytearray(1 << 20))";
    let output = daemon.cli.exec(red.name(), &["python3", "-c", hog]);
    assert!(!output.ok(), "it took all the memory it wanted: {output}");
    // Processes: beyond the limit no more can be started.
    let forks = "import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\n\
                 except OSError: pass\nprint(n)";
    let started = daemon.cli.exec(red.name(), &["python3", "-c", forks]).expect_ok().stdout;
    assert!(started.trim().parse::<u32>().unwrap() <= 24, "{started} processes");
    // Processor: four burners together get a fifth of a core.
    let burners: Vec<_> = (0..4)
        .map(|_| {
            daemon
                .cli
                .command(&["exec", red.name(), "--", "timeout", "4", "sh", "-c", "while :; do :; done"])
                .spawn()
        })
        .collect();
    let usage = |daemon: &Daemon| {
        let network = daemon.cli.json(&["get", "networks", red.name()]);
        network["usage"]["cpu_seconds"].as_f64().unwrap_or(0.0)
    };
    let before = (usage(&daemon), std::time::Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let took = (usage(&daemon) - before.0) / before.1.elapsed().as_secs_f64();
    assert!(took < 0.4, "burners took {took} cores");
    for burner in burners {
        let _ = burner.unwrap().wait();
    }
    for flow in flows {
        let report = flow.stop();
        assert!(report.sent > 0 && report.delivered() >= 0.9, "{report}");
    }
    assert!(daemon.ended().is_none());
    // Red's remaining programs are removed with it.
    let _ = daemon.cli.run(&["delete", "network", red.name()]).expect_ok();
    let left = shell::run(shell::command("ip").args(["netns", "pids", &format!("hue-{}", red.name())]));
    assert!(left.stdout.trim().is_empty(), "{left}");
}
