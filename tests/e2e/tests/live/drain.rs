//! The card is drained under traffic and networks return to it. The receiving hosts count packets that were lost,
//! duplicated or reordered.

use hue_e2e::document::all;
use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, can_run, until};
use serde_json::Value;

use crate::card::{network, node, runs_on, start};
use crate::migrate::{is_clean, is_whole};
use crate::upgrade::Running;

/// Names of networks in an answer, with their places.
fn places(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let networks = answer["networks"].as_array().unwrap().iter();
    networks.map(|one| (text(&one["network"]), text(&one["substrate"]))).collect()
}

fn all_on(pairs: &[&Pair], substrate: &str) -> Vec<(String, String)> {
    let mut places: Vec<_> =
        pairs.iter().map(|pair| (pair.name().to_owned(), substrate.to_owned())).collect();
    places.sort();
    places
}

fn card(daemon: &Daemon) -> Value {
    daemon.cli.json(&["get", "nodes"])[0]["card"].clone()
}

/// The part of a node's document that tests change.
fn with_drained(document: &str, drained: bool) -> String {
    document.replace("card: {", &format!("card: {{drained: {drained}, "))
}

/// Why a command fails.
fn refused(daemon: &Daemon, arguments: &[&str], code: i32) -> String {
    let output = daemon.cli.run(arguments);
    assert_eq!(output.code, code, "{output}");
    output.stderr
}

#[test]
fn the_card_is_drained_and_filled_again_and_hosts_see_nothing() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [red, blue, green] =
        [("red", 1), ("blue", 2), ("green", 3)].map(|(name, n)| lab.pair(name, n, n, [0, 1]));
    let kept = blue.document.clone().with("placement", "card");
    let soft = green.document.clone().with("placement", "soft");
    let own = node(&lab, "default");
    let documents = [own.clone(), red.document.yaml(), kept.yaml(), soft.yaml()];
    let mut daemon = start(&lab, &["default", "tcam3"], &documents);
    for (pair, substrate) in [(&red, "card"), (&blue, "card"), (&green, "soft")] {
        runs_on(&daemon, pair.name(), substrate);
        daemon.cli.warm_up(&[pair]);
    }
    let flows = || {
        let flows = vec![
            Flow::start(&red.left, &red.right, 1_000, 64),
            Flow::start(&red.right, &red.left, 300, 1_400),
            Flow::start(&blue.left, &blue.right, 500, 200),
            Flow::start(&green.left, &green.right, 200, 100),
        ];
        until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
        flows
    };
    let running = flows();
    for _ in 0..3 {
        let drained = daemon.cli.json(&["drain", "card"]);
        assert_eq!((&drained["drained"], &drained["changed"]), (&true.into(), &true.into()), "{drained}");
        assert_eq!(places(&drained), all_on(&[&red, &blue], "soft"), "{drained}");
        drained["networks"].as_array().unwrap().iter().for_each(|one| is_clean(&one["migration"]));
        assert_eq!(network(&daemon, red.name())["substrate"], "soft");
        let undrained = daemon.cli.json(&["undrain", "card"]);
        assert_eq!(
            (&undrained["drained"], &undrained["changed"]),
            (&false.into(), &true.into()),
            "{undrained}"
        );
        assert_eq!(places(&undrained), all_on(&[&red, &blue], "card"), "{undrained}");
    }
    let text = daemon.cli.run(&["drain", "card"]).expect_ok().stdout;
    assert!(text.starts_with("the card is drained: 2 networks moved to software\n"), "{text}");
    assert!(text.contains("0 lost, 0 doubled, 0 reordered"), "{text}");
    running.into_iter().for_each(is_whole);

    // A second time is no error and changes nothing.
    let generation = || daemon.cli.json(&["status"])["generation"].clone();
    let before = generation();
    let text = daemon.cli.run(&["drain", "card"]).expect_ok().stdout;
    assert!(text.starts_with("the card is already drained\n"), "{text}");
    assert_eq!(generation(), before);

    // It is visible, and who did it.
    let status = daemon.cli.run(&["status"]).expect_ok().stdout;
    let line = "image default, running, drained (`hueplane undrain card` ends that), 0 networks on it\n";
    assert!(status.contains(line), "{status}");
    assert_eq!(
        (&card(&daemon)["drained"], &daemon.cli.json(&["status"])["card"]["drained"]),
        (&true.into(), &true.into())
    );
    let nodes = daemon.cli.run(&["get", "nodes"]).expect_ok().stdout;
    assert!(nodes.contains("card default (drained)"), "{nodes}");
    let shown = daemon.cli.run(&["card", "show"]).expect_ok().stdout;
    assert!(shown.contains("0 of ") && shown.contains("drained (`hueplane undrain card`"), "{shown}");
    let why = |name: &str| network(&daemon, name)["why_soft"].as_str().unwrap_or_default().to_owned();
    for pair in [&red, &blue] {
        assert!(
            why(pair.name()).contains("the card is drained: `hueplane undrain card`"),
            "{}",
            why(pair.name())
        );
    }
    assert!(why(green.name()).contains("document"), "{}", why(green.name()));
    assert_eq!(daemon.cli.json(&["get", "placements", blue.name()])["why_not"], why(blue.name()));
    let plan = daemon.cli.json(&["plan"]);
    let planned = plan["networks"].as_array().unwrap();
    assert!(planned.iter().all(|one| one["substrate"] == "soft"), "{plan}");
    let latest = daemon.cli.json(&["history"])["revisions"][0].clone();
    assert_eq!((&latest["kind"], &latest["by"]["name"]), (&"drain".into(), &"root".into()), "{latest}");
    assert!(daemon.cli.happened("card_drained") && daemon.cli.happened("card_undrained"));

    // Nothing else brings a network to the card.
    let migrate = refused(&daemon, &["migrate", red.name(), "--to", "card"], 1);
    assert!(migrate.contains("the card is drained: `hueplane undrain card` ends that"), "{migrate}");
    let migrate = refused(&daemon, &["migrate", red.name(), "--to", "card", "--load-image"], 1);
    assert!(migrate.contains("the card is drained"), "{migrate}");
    daemon.cli.apply(&all(&[own.clone(), red.document.clone().with("placement", "card").yaml()]), &[]);
    let late = lab.pair("late", 4, 4, [0, 1]);
    daemon.cli.apply(&late.document.yaml(), &[]);
    daemon.cli.warm_up(&[&late]);
    let running = flows();
    let loaded = daemon.cli.run(&["image", "load", "tcam3"]).expect_ok().stdout;
    assert!(loaded.contains("the card is drained: networks run in software"), "{loaded}");
    assert_eq!(card(&daemon)["image"], "tcam3");
    running.into_iter().for_each(is_whole);
    let in_software = |daemon: &Daemon| {
        for pair in [&red, &blue, &green, &late] {
            assert_eq!(network(daemon, pair.name())["substrate"], "soft", "{}", pair.name());
        }
    };
    in_software(&daemon);

    // Also not a restart, a kill, or documents that do not say anything about it.
    let still = |daemon: &Daemon| {
        until("the card runs", 20, || card(daemon)["drained"] == true);
        daemon.cli.warm_up(&[&red, &blue, &green, &late]);
        in_software(daemon);
        assert!(daemon.cli.happened("card_drained"), "it is said at the start, too");
    };
    daemon.down(&["--keep"]);
    daemon.replace(&lab);
    still(&daemon);
    daemon.kill();
    daemon.replace(&lab);
    still(&daemon);
    let tcam = own.replace("image: default", "image: tcam3");
    assert_eq!(daemon.cli.apply(&tcam, &[])["actions"], serde_json::json!([]));
    daemon.cli.apply(&own, &[]);
    assert_eq!((&card(&daemon)["image"], &card(&daemon)["drained"]), (&"default".into(), &true.into()));
    in_software(&daemon);
    // A card that another document brings has closed the ports and opened them again.
    daemon.cli.warm_up(&[&red, &blue, &green, &late]);

    let running = flows();
    let undrained = daemon.cli.json(&["undrain", "card"]);
    assert_eq!(places(&undrained), all_on(&[&red, &blue, &late], "card"), "{undrained}");
    running.into_iter().for_each(is_whole);
    let text = daemon.cli.run(&["undrain", "card"]).expect_ok().stdout;
    assert!(text.starts_with("the card was not drained\n"), "{text}");
    assert_eq!(network(&daemon, green.name())["substrate"], "soft");

    // A document can say it, too.
    let running = flows();
    daemon.cli.apply(&with_drained(&own, true), &[]);
    [&red, &blue, &late].iter().for_each(|pair| runs_on(&daemon, pair.name(), "soft"));
    daemon.cli.apply(&with_drained(&own, false), &[]);
    [&red, &blue, &late].iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
    running.into_iter().for_each(is_whole);
}

#[test]
fn what_cannot_move_is_named_and_stays_whole() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [red, blue] = [("red", 1), ("blue", 2)].map(|(name, n)| lab.pair(name, n, n, [0, 1]));
    let needs = red.document.clone().with("needs", "{bandwidth: 900Mbit/s}");
    let own = node(&lab, "default") + "  scheduler: {kind: greedy, soft: {cores: 1, bandwidth: 500Mbit/s}}\n";
    let pinned = blue.document.clone().with("placement", "card");
    let daemon = start(&lab, &["default"], &[own.clone(), needs.yaml(), pinned.yaml()]);
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    let flows = [&red, &blue].map(|pair| Flow::start(&pair.left, &pair.right, 500, 100));
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    let generation = || daemon.cli.json(&["status"])["generation"].clone();
    let before = generation();
    for arguments in [&["drain", "card"][..], &["apply", "-f", "-"]] {
        let output = daemon.cli.run_with(arguments, &with_drained(&own, true));
        assert_eq!(output.code, 4, "{output}");
        let names = format!("network '{}': it needs 900 Mbit/s but would get 500 Mbit/s", red.name());
        let told = output.stderr.contains(&names) && output.stderr.contains("--force");
        assert!(told && !output.stderr.contains(blue.name()), "{output}");
    }
    assert_eq!(generation(), before);
    for pair in [&red, &blue] {
        assert_eq!(network(&daemon, pair.name())["substrate"], "card");
    }

    // A move that fails: its network runs on where it is, and the next attempt continues.
    let failed = daemon.cli.run(&["drain", "card", "--force", "--fail", "switch", "-o", "json"]);
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.stderr.contains("networks are still on the card: "), "{failed}");
    let answer = failed.json();
    assert_eq!(places(&answer), all_on(&[&red, &blue], "card"), "{answer}");
    let why = answer["networks"][0]["why"].as_str().unwrap();
    assert!(why.contains("switch"), "{why}");
    let again = daemon.cli.json(&["drain", "card"]);
    assert_eq!((&again["changed"], places(&again)), (&false.into(), all_on(&[&red, &blue], "soft")));
    let undrained = daemon.cli.json(&["undrain", "card"]);
    assert_eq!(
        places(&undrained),
        all_on(&[&red, &blue], "card"),
        "the scheduler brought red back: {undrained}"
    );
    flows.into_iter().for_each(is_whole);
}

#[test]
fn with_nics_the_drained_card_has_no_frames_of_networks() {
    if !can_run(&[]) {
        return;
    }
    let mut lab = Lab::new(2);
    lab.plug_nics();
    let red = lab.pair("red", 1, 1, [0, 1]);
    let daemon = start(&lab, &["default"], &[node(&lab, "default"), red.document.yaml()]);
    runs_on(&daemon, red.name(), "card");
    red.warm_up();
    let flow = Flow::start(&red.left, &red.right, 500, 200);
    until("traffic", 20, || flow.received() > 50);
    for on_nic in [true, false] {
        let command = if on_nic { "drain" } else { "undrain" };
        let answer = daemon.cli.json(&[command, "card"]);
        assert_eq!(places(&answer), all_on(&[&red], if on_nic { "soft" } else { "card" }), "{answer}");
        assert_eq!(network(&daemon, red.name())["on_nic"], on_nic);
        if on_nic {
            // Both wires are in use for a moment, and only their order is not kept.
            let proof = &answer["networks"][0]["migration"];
            assert_eq!((&proof["lost"], &proof["doubled"]), (&0.into(), &0.into()), "{proof}");
            assert_eq!(proof["steering"]["neighbours"], 2, "{proof}");
        }
        let before = flow.received();
        until("traffic", 20, || flow.received() > before + 200);
    }
    let report = flow.stop();
    assert!(report.lost() == 0 && report.duplicated == 0, "{report}");
}

#[test]
fn an_upgrade_keeps_the_card_drained() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let file = lab.folder().join("all.yaml");
    std::fs::write(&file, all(&[node(&lab, "default"), red.document.yaml()])).unwrap();
    let cli = Cli { images: Some(hue_testdata::images(&["default"])), ..Cli::new(&lab) };
    let inside = |arguments: &[&str]| lab.node().run_command(&mut cli.command(arguments)).expect_ok();
    let _ = inside(&["up", "--detach", "-f", &file.to_string_lossy()]);
    let _running = Running(&cli);
    let substrate = || cli.json(&["get", "networks", red.name()])["substrate"].clone();
    until("red is on the card", 20, || substrate() == "card");
    let pid = || cli.json(&["status"])["pid"].clone();
    let before = pid();
    let _ = inside(&["drain", "card"]);
    let _ = inside(&["upgrade"]);
    assert_ne!(pid(), before);
    red.warm_up();
    let drained = cli.json(&["status"])["card"]["drained"].clone();
    assert_eq!((substrate(), drained), ("soft".into(), true.into()));
    let undrained = cli.json(&["undrain", "card"]);
    assert_eq!(places(&undrained), all_on(&[&red], "card"), "{undrained}");
}
