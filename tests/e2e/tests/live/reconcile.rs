//! Desired and observed state: changes that are applied, networks that are not touched, documents that are refused.

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, can_run, daemon, two_networks};

/// Identifies a network's setup, to see whether it was touched: its namespace, its interfaces there, and its counters so far.
fn traces(daemon: &Daemon, network: &str) -> (String, String, u64) {
    let namespace = daemon.cli.exec(network, &["readlink", "/proc/self/ns/net"]).expect_ok().stdout;
    let links = daemon.cli.exec(network, &["ip", "-o", "link"]).expect_ok().stdout;
    let indices = links.lines().filter_map(|line| line.split(": ").next()).collect::<Vec<_>>().join(" ");
    let received = daemon.cli.stats(network)["received"].as_u64().unwrap_or(0);
    (namespace, indices, received)
}

#[test]
fn applying_twice_changes_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, daemon) = two_networks();
    let documents = all(&[lab.node_document(""), red.document.yaml(), blue.document.yaml()]);
    let before = [red.name(), blue.name()].map(|name| traces(&daemon, name));
    let generation = daemon.cli.json(&["get", "nodes"])[0]["status"]["generation"].clone();
    assert!(generation.is_u64(), "{generation}");
    let flow = Flow::start(&red.left, &red.right, 500, 100);
    for _ in 0..5 {
        let applied = daemon.cli.apply(&documents, &["--prune"]);
        assert_eq!(applied["actions"].as_array().map(Vec::len), Some(0), "{applied}");
        assert_eq!(applied["generation"], generation, "{applied}");
    }
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
    for (name, before) in [red.name(), blue.name()].iter().zip(before) {
        let after = traces(&daemon, name);
        assert_eq!((&after.0, &after.1), (&before.0, &before.1), "{name} was set up again");
        assert!(after.2 >= before.2, "{name}'s counters began anew");
    }
    let diff = daemon.cli.run_with(&["diff", "-f", "-", "--exit-code", "-o", "json"], &documents).expect_ok();
    assert_eq!(diff.json()["actions"].as_array().map(Vec::len), Some(0), "{diff}");
}

#[test]
fn changing_one_network_touches_only_that_one() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, daemon) = two_networks();
    // A program of blue's owner keeps running throughout.
    let mut owner = daemon.cli.command(&["exec", blue.name(), "--", "sleep", "600"]);
    let mut owner = owner.spawn().unwrap();
    let before = traces(&daemon, blue.name());
    let flow = Flow::start(&blue.left, &blue.right, 1000, 100);
    let addresses = "[10.1.2.1/24, 10.9.9.1/24]";
    let changes = [
        red.document.clone().with("routes", "[{to: 10.77.0.0/16, via: 10.1.2.2}]").yaml(),
        red.document.yaml().replace("[10.1.2.1/24]", addresses),
        red.document.clone().with("weight", "5").yaml(),
        red.document.clone().with("rate_limit", "{packets_per_second: 1000000, burst_packets: 1000}").yaml(),
        red.document.yaml().replace("addresses: [10.1.2.1/24]", "addresses: [10.1.2.1/24], mtu: 1400"),
        red.document
            .clone()
            .with("neighbours", "[{port: right, address: 10.1.2.9, mac: \"02:00:00:00:00:09\"}]")
            .yaml(),
        red.document.yaml(),
    ];
    for document in &changes {
        let dry = daemon.cli.apply(document, &["--dry-run"]);
        assert!(dry["actions"].as_array().is_some_and(|actions| !actions.is_empty()), "{dry}");
        let applied = daemon.cli.apply(document, &[]);
        let actions = applied["actions"].as_array().cloned().unwrap_or_default();
        assert!(
            !actions.is_empty() && actions.iter().all(|action| action["name"] == red.name()),
            "{applied}"
        );
        assert!(
            applied["networks"].as_array().is_some_and(|all| all.iter().all(|n| n["state"] == "running")),
            "{applied}"
        );
        hue_e2e::until("red still works", 10, || red.left.ping(red.right.address, 1) == 1);
    }
    // Red is removed and added again.
    let _ = daemon.cli.run(&["delete", "network", red.name()]).expect_ok();
    assert_eq!(red.left.ping(red.right.address, 1), 0);
    let networks = daemon.cli.json(&["get", "networks"]);
    assert_eq!(networks.as_array().map(Vec::len), Some(1), "{networks}");
    assert!(
        !daemon::namespaces(&lab).iter().any(|name| name.ends_with(red.name())),
        "red's namespace stayed"
    );
    assert!(
        daemon::cgroups(&lab).iter().all(|folder| !folder.ends_with(format!("net-{}", red.name()))),
        "red's cgroup stayed"
    );
    daemon.cli.apply(&red.document.yaml(), &[]);
    red.warm_up();

    let report = flow.stop();
    assert!(report.sent > 1000 && report.lost() == 0 && report.duplicated == 0, "blue's traffic: {report}");
    let after = traces(&daemon, blue.name());
    assert_eq!((&after.0, &after.1), (&before.0, &before.1), "blue was set up again");
    assert!(after.2 >= before.2 + report.sent, "blue's counters began anew");
    assert!(owner.try_wait().unwrap().is_none(), "a program of blue's owner was ended");
    owner.kill().unwrap();
    owner.wait().unwrap();
}

#[test]
fn a_bad_document_changes_nothing_at_all() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, _blue, daemon) = two_networks();
    let generation = |daemon: &Daemon| daemon.cli.json(&["get", "nodes"])[0]["status"]["generation"].clone();
    let before = generation(&daemon);
    let bad = lab.folder().join("bad.yaml");
    let text = red.document.yaml().replace("10.1.2.1/24", "10.1.2.300/24");
    daemon::write(&bad, &text);
    let output = daemon.cli.run(&["apply", "-f", &bad.to_string_lossy()]).expect_code(3);
    let place = text.lines().position(|line| line.contains("300")).unwrap() + 1;
    assert!(output.stderr.contains(&format!("bad.yaml:{place}:")), "{output}");
    // One valid document and one invalid one: neither is applied.
    let green = lab.pair_document("green", 3, 3, [0, 1]).yaml();
    let _ = daemon.cli.run_with(&["apply", "-f", "-"], &all(&[green, text])).expect_code(3);
    assert_eq!(daemon.cli.json(&["get", "networks"]).as_array().map(Vec::len), Some(2));
    // A port that the node does not have.
    let elsewhere = red.document.yaml().replace("port: p1", "port: p17");
    let output = daemon.cli.run_with(&["apply", "-f", "-"], &elsewhere).expect_code(3);
    assert!(output.stderr.contains("p17"), "{output}");
    assert_eq!(generation(&daemon), before);
    assert!(daemon.cli.happened("refused"), "refusals are among the events: {:?}", daemon.cli.events());
    assert_eq!(red.left.ping(red.right.address, 3), 3);
    // Names that do not exist are the caller's fault.
    let _ = daemon.cli.run(&["delete", "network", "nobody"]).expect_code(2);
    let _ = daemon.cli.run(&["stats", "nobody"]).expect_code(2);
    let _ = daemon.cli.run(&["exec", "nobody", "--", "true"]).expect_code(2);
}
