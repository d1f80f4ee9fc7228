//! The card goes on while its daemon is away, as hardware does: networks on it lose nothing. The receiving hosts count packets.

use hue_e2e::document::all;
use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Lab, can_run, daemon, until};

use crate::card::{node, runs_on, start};
use crate::migrate::is_whole;
use crate::upgrade::Running;

/// Flows both ways between the hosts of a network, with their first packets received.
fn flows(pair: &Pair) -> Vec<Flow> {
    let flows = vec![
        Flow::start(&pair.left, &pair.right, 1_000, 64),
        Flow::start(&pair.right, &pair.left, 200, 1_400),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    flows
}

/// Waits until the card was taken over and replaced.
fn is_taken_over(cli: &Cli) {
    until("the card is taken over", 30, || {
        cli.events().iter().any(|event| {
            event["kind"] == "adopted"
                && event["message"].as_str().unwrap_or_default().contains("the card of the daemon before")
        })
    });
}

#[test]
fn an_upgrade_costs_a_network_on_the_card_no_packet() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [red, blue] = [("red", 1), ("blue", 2)].map(|(name, n)| lab.pair(name, n, n, [0, 1]));
    let soft = blue.document.clone().with("placement", "soft");
    let file = lab.folder().join("first.yaml");
    std::fs::write(&file, all(&[node(&lab, "default"), red.document.yaml(), soft.yaml()])).unwrap();
    let cli = Cli { images: Some(hue_testdata::images(&["default"])), ..Cli::new(&lab) };
    let up = ["up", "--detach", "-f", &file.to_string_lossy()];
    let _ = lab.node().run_command(&mut cli.command(&up)).expect_ok();
    let _running = Running(&cli);
    let on = |name: &str, substrate: &str| {
        until(&format!("{name} is on {substrate}"), 20, || {
            cli.json(&["get", "networks", name])["substrate"] == substrate
        });
    };
    on(red.name(), "card");
    on(blue.name(), "soft");
    cli.warm_up(&[&red, &blue]);
    let process = cli.card_pid();
    assert!(process.is_some());
    for _ in 0..3 {
        let running = flows(&red);
        let _ = lab.node().run_command(&mut cli.command(&["upgrade"])).expect_ok();
        is_taken_over(&cli);
        on(red.name(), "card");
        running.into_iter().for_each(is_whole);
        assert_eq!(cli.card_pid(), process, "the card's process stays");
        // Software forwards again, behind the card.
        until("hosts reach each other", 20, || blue.left.ping(blue.right.address, 1) == 1);
        on(blue.name(), "soft");
        // Counters of the network begin with the daemon.
        let stats = cli.stats(red.name());
        assert!(stats["drops"].as_object().is_none_or(serde_json::Map::is_empty), "{stats}");
    }
    // What runs is the fresh card: it follows changes of routes and documents.
    cli.apply(&red.document.clone().with("weight", "3").yaml(), &[]);
    on(red.name(), "card");
    cli.warm_up(&[&red]);
    let _ = cli.run(&["down"]).expect_ok();
    until("nothing is left", 20, || daemon::namespaces(&lab).is_empty() && cli.card_pid().is_none());
}

#[test]
fn a_killed_daemon_costs_a_network_on_the_card_no_packet() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [red, blue] = [("red", 1), ("blue", 2)].map(|(name, n)| lab.pair(name, n, n, [0, 1]));
    let documents = [node(&lab, "kinds"), red.document.yaml(), blue.document.yaml()];
    let mut daemon = start(&lab, &["kinds", "default"], &documents);
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    let process = daemon.card_pid().expect("the card has a process");
    for _ in 0..2 {
        let running: Vec<Flow> = [&red, &blue].into_iter().flat_map(flows).collect();
        daemon.kill();
        let before: u64 = running.iter().map(Flow::received).sum();
        until("packets arrive without a daemon", 20, || {
            running.iter().map(Flow::received).sum::<u64>() > before + 2_000
        });
        daemon.replace(&lab);
        is_taken_over(&daemon.cli);
        [&red, &blue].into_iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
        running.into_iter().for_each(is_whole);
        assert_eq!(daemon.card_pid(), Some(process));
    }

    // Another card is wanted now: this one ends with the daemon, and nothing is in the way of the other one.
    daemon.cli.apply(&node(&lab, "default"), &[]);
    [&red, &blue].into_iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
    let second = daemon.card_pid().expect("the card has a process");
    assert_ne!(second, process);
    for pair in [&red, &blue] {
        until("hosts reach each other", 20, || pair.left.ping(pair.right.address, 1) == 1);
    }

    // It stays with the networks, and ends with them.
    daemon.down(&["--keep"]);
    assert_eq!(daemon.card_pid(), Some(second));
    assert_eq!(red.left.ping(red.right.address, 3), 3, "forwarded without a daemon");
    daemon.replace(&lab);
    is_taken_over(&daemon.cli);
    [&red, &blue].into_iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
    daemon.down(&[]);
    until("the card's process has ended", 10, || daemon.card_pid().is_none());
}

#[test]
fn a_card_without_a_daemon_ends_when_its_socket_is_gone() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let mut daemon = start(&lab, &["tcam3"], &[node(&lab, "tcam3"), red.document.yaml()]);
    runs_on(&daemon, red.name(), "card");
    red.warm_up();
    daemon.kill();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(daemon.card_pid().is_some());
    std::fs::remove_file(daemon.cli.state_dir.join("card.sock")).unwrap();
    until("the card's process has ended", 10, || daemon.card_pid().is_none());
    daemon.replace(&lab);
    runs_on(&daemon, red.name(), "card");
    until("hosts reach each other", 20, || red.left.ping(red.right.address, 1) == 1);
}
