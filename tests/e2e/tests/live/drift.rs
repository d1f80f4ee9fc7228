//! Drift: changes that others make in networks' namespaces against the documents are reported and repaired.

use std::os::unix::fs::MetadataExt;

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Pair, can_run, shell, two_networks, until, until_some};

/// State and reason of a network.
fn condition(daemon: &Daemon, network: &Pair) -> (String, String) {
    let json = daemon.cli.json(&["get", "networks", network.name()]);
    let text = |field: &str| json[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

/// Number of the newest event so far.
fn newest(daemon: &Daemon) -> u64 {
    daemon.cli.events().iter().filter_map(|event| event["sequence"].as_u64()).max().unwrap_or(0)
}

/// Waits for an event about a network that contains these words, after event number `since`.
fn told(daemon: &Daemon, network: &Pair, kind: &str, words: &str, since: u64) {
    until(&format!("event {kind}: {words}"), 40, || {
        daemon.cli.events().iter().any(|event| {
            event["sequence"].as_u64() > Some(since)
                && event["kind"] == kind
                && event["network"] == network.name()
                && event["message"].as_str().is_some_and(|text| text.contains(words))
        })
    });
}

fn ip(daemon: &Daemon, network: &Pair, line: &str) {
    let words: Vec<&str> = std::iter::once("ip").chain(line.split(' ')).collect();
    let _ = daemon.cli.exec(network.name(), &words).expect_ok();
}

/// Name of a network's namespace.
fn namespace(daemon: &Daemon, network: &Pair) -> String {
    let json = daemon.cli.json(&["get", "networks", network.name()]);
    json["namespace"].as_str().unwrap().to_owned()
}

fn host_ip(arguments: &[&str]) {
    let mut command = shell::command("ip");
    let _ = shell::run(command.args(arguments)).expect_ok();
}

#[test]
fn drift_in_a_namespace_is_reported_and_repaired() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, blue, daemon) = two_networks();
    let flow = Flow::start(&blue.left, &blue.right, 500, 100);
    let drifts = [
        ("address flush dev left", "port left lacks address 10.1.1.1/24"),
        ("link set right down", "port right is down"),
        ("link set left address 02:99:99:99:99:99", "port left has MAC address 02:99:99:99:99:99, not"),
        ("link set left mtu 1300", "port left has MTU 1300, not 1500"),
    ];
    for (line, words) in drifts {
        let since = newest(&daemon);
        ip(&daemon, &red, line);
        told(&daemon, &red, "drifted", words, since);
        told(&daemon, &red, "repaired", words, since);
        until("red runs again", 20, || condition(&daemon, &red).0 == "running");
        until("red forwards again", 30, || red.left.ping(red.right.address, 1) == 1);
    }
    // An owner's additions are not drift.
    let since = newest(&daemon);
    ip(&daemon, &red, "address add 10.60.0.1/24 dev right");
    ip(&daemon, &red, "route add 10.70.0.0/16 via 10.1.2.2");
    ip(&daemon, &red, "link add more0 type veth peer name more1");
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(condition(&daemon, &red).0, "running");
    let events = daemon.cli.events();
    assert!(
        !events.iter().any(|e| e["kind"] == "drifted" && e["sequence"].as_u64() > Some(since)),
        "{events:?}"
    );
    // A renamed interface is no longer the port's: the port gets a new one.
    ip(&daemon, &red, "link set right down");
    ip(&daemon, &red, "link set right name other");
    until("red forwards again", 60, || red.left.ping(red.right.address, 1) == 1);
    until("red runs again", 20, || condition(&daemon, &red).0 == "running");
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "the neighbour's flow: {report}");
    assert!(!daemon.cli.events().iter().any(|e| e["kind"] == "drifted" && e["network"] == blue.name()));
}

#[test]
fn a_drifted_network_reports_why_and_apply_repairs_it_at_once() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, daemon) = two_networks();
    let documents = all(&[lab.node_document(""), red.document.yaml(), blue.document.yaml()]);
    // Until the pause before the next repair is long enough to see the reason.
    let reason = until_some("a reason among the problems", 60, || {
        ip(&daemon, &red, "link set right down");
        let waits = hue_e2e::wait::Deadline::seconds(2);
        while !waits.over() {
            let (state, reason) = condition(&daemon, &red);
            if state == "degraded" {
                return Some(reason);
            }
        }
        None
    });
    assert!(reason.contains("port right is down"), "{reason}");
    until("red runs again", 30, || condition(&daemon, &red).0 == "running");
    // On a slow machine, the daemon may have repaired it before. It waits longer after each repair.
    until("apply repairs red", 60, || {
        ip(&daemon, &red, "address flush dev left");
        let applied = daemon.cli.apply(&documents, &[]);
        assert_eq!(applied["actions"].as_array().map(Vec::len), Some(0), "{applied}");
        let networks = applied["networks"].as_array().cloned().unwrap_or_default();
        assert!(networks.iter().all(|n| n["name"] != blue.name()), "{applied}");
        networks.iter().any(|n| n["name"] == red.name() && n["state"] == "running")
    });
    let addresses = daemon.cli.exec(red.name(), &["ip", "-o", "-4", "address", "show", "dev", "left"]);
    assert!(addresses.stdout.contains("10.1.1.1/24"), "{addresses}");
    until("red forwards again", 30, || red.left.ping(red.right.address, 1) == 1);
}

/// Deletes a network while a foreign namespace has its name, and applies it again. `own` is the network's own namespace, as the
/// kernel names it.
fn deleted_beside_a_foreign_namespace(daemon: &Daemon, red: &Pair, name: &str, own: &str) {
    let path = std::path::Path::new("/run/netns").join(name);
    let identity = || std::fs::metadata(&path).map(|found| found.ino()).ok();
    let foreign = identity();
    let documents = daemon.cli.run(&["get", "config", red.name()]).expect_ok().stdout;
    let delete = || {
        let since = newest(daemon);
        let done = daemon.cli.json(&["delete", "network", red.name()]);
        assert_eq!(done["networks"].as_array().map(Vec::len), Some(0), "it could not be removed: {done}");
        told(daemon, red, "network_deleted", "was removed", since);
        let there = daemon.cli.run(&["get", "networks", red.name()]);
        assert!(!there.ok(), "the network is still there: {there}");
        assert_eq!(identity(), foreign, "the foreign namespace lost its name");
        let links = shell::run(shell::command("ip").args(["-n", name, "-o", "link"])).expect_ok();
        assert_eq!(links.stdout.lines().count(), 1, "the foreign namespace was changed: {links}");
    };
    delete();
    assert_eq!(red.left.ping(red.right.address, 1), 0, "the deleted network forwards");
    until("the network's own namespace is closed", 20, || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).into_iter().flatten().flatten();
        !open
            .filter_map(|fd| std::fs::metadata(fd.path()).ok())
            .any(|fd| format!("net:[{}]", fd.ino()) == own)
    });
    // It cannot be set up now; what was never set up can be deleted, too.
    let again = || drop(daemon.cli.run_with(&["apply", "-f", "-"], &documents));
    again();
    until("the name is missed", 20, || condition(daemon, red).0 == "degraded");
    delete();
    again();
}

#[test]
fn a_namespace_keeps_its_name() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, blue, daemon) = two_networks();
    let flow = Flow::start(&blue.left, &blue.right, 500, 100);
    let name = namespace(&daemon, &red);
    let inside =
        |daemon: &Daemon| daemon.cli.exec(red.name(), &["readlink", "/proc/self/ns/net"]).expect_ok().stdout;
    let before = inside(&daemon);
    host_ip(&["netns", "delete", &name]);
    let since = 0;
    told(&daemon, &red, "drifted", &format!("namespace {name} was deleted"), since);
    told(&daemon, &red, "repaired", &format!("namespace {name} was deleted"), since);
    assert_eq!(inside(&daemon), before, "it is the same namespace");
    assert_eq!(red.left.ping(red.right.address, 3), 3);

    // Another namespace takes the name.
    host_ip(&["netns", "delete", &name]);
    host_ip(&["netns", "add", &name]);
    let refused = daemon.cli.exec(red.name(), &["true"]);
    assert!(!refused.ok() && refused.stderr.contains("another namespace has the name"), "{refused}");
    until("it is reported", 20, || {
        let (state, reason) = condition(&daemon, &red);
        state == "degraded" && reason.contains("another namespace has the name")
    });
    std::thread::sleep(std::time::Duration::from_secs(4));
    let mut links = shell::command("ip");
    let links = shell::run(links.args(["-n", &name, "-o", "link"])).expect_ok();
    assert_eq!(links.stdout.lines().count(), 1, "the other namespace was changed: {links}");
    assert_eq!(red.left.ping(red.right.address, 3), 3, "the network's own works on");
    deleted_beside_a_foreign_namespace(&daemon, &red, &name, before.trim());
    host_ip(&["netns", "delete", &name]);
    until("the network has its name again", 60, || condition(&daemon, &red).0 == "running");
    until("it forwards again", 30, || red.left.ping(red.right.address, 1) == 1);
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "the neighbour's flow: {report}");
}
