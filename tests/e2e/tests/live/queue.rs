//! Changes wait for each other, and an answer means done: images that are loaded one after the other, moves that follow them,
//! callers that do not wait, and callers that disconnect.

use std::process::{Child, Stdio};

use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, until};
use serde_json::Value;

use crate::card::{network, node, runs_on, start};
use crate::migrate::{is_clean, is_whole, many_routes, two_on_card};

/// The places of networks in an answer to `image load`.
fn placed(loaded: &Value) -> Vec<(String, String)> {
    let networks = loaded["networks"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    networks.map(|one| (text(&one["network"]), text(&one["substrate"]))).collect()
}

/// The present places of networks.
fn are(daemon: &Daemon, pairs: &[Pair]) -> Vec<(String, String)> {
    let at = |pair: &Pair| network(daemon, pair.name())["substrate"].as_str().unwrap().to_owned();
    pairs.iter().map(|pair| (pair.name().to_owned(), at(pair))).collect()
}

/// The networks that are on the card.
fn on_card(places: &[(String, String)]) -> Vec<&str> {
    places.iter().filter(|(_, at)| at == "card").map(|(name, _)| name.as_str()).collect()
}

/// Starts a command, and waits until the daemon executes it.
fn begin(daemon: &Daemon, arguments: &[&str], event: &str) -> Child {
    let before = daemon.cli.events().iter().filter(|one| one["kind"] == event).count();
    let child = daemon.cli.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(event, 20, || daemon.cli.events().iter().filter(|one| one["kind"] == event).count() > before);
    child
}

#[test]
fn a_network_comes_with_its_image_also_when_its_document_wants_it_there() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    // Its document says card, but the image cannot hold it: it moves by itself once an image can.
    let large = red.document.clone().with("routes", &many_routes()).with("placement", "card");
    let documents = [node(&lab, "tcam3"), large.yaml(), blue.document.yaml()];
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    runs_on(&daemon, blue.name(), "card");
    until("red is known not to fit", 20, || {
        network(&daemon, red.name())["why_soft"].as_str().is_some_and(|why| why.contains("route rows"))
    });
    for pair in [&red, &blue] {
        daemon.cli.warm_up(&[pair]);
    }
    for _ in 0..3 {
        let flows = [&red, &blue].map(|pair| Flow::start(&pair.left, &pair.right, 100, 100));
        until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
        let proof = daemon.cli.json(&["migrate", red.name(), "--to", "card", "--load-image"]);
        is_clean(&proof);
        assert_eq!((&proof["to"], &proof["image"]), (&"card".into(), &"default".into()), "{proof}");
        for pair in [&red, &blue] {
            assert_eq!(network(&daemon, pair.name())["substrate"], "card");
        }
        assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["card"]["image"], "default");
        let loaded = daemon.cli.json(&["image", "load", "tcam3"]);
        assert_eq!(on_card(&placed(&loaded)), [blue.name()], "{loaded}");
        flows.into_iter().for_each(is_whole);
    }
    // A move that fails although the image is loaded: no network is left behind, and the document stays in force.
    let failed = daemon.cli.run(&["migrate", red.name(), "--to", "card", "--load-image", "--fail", "aside"]);
    assert!(failed.code != 0 && failed.stderr.contains("aside"), "{}", failed.stderr);
    assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["card"]["image"], "default");
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
    }
}

#[test]
fn an_answer_means_loaded_and_the_scheduler_chooses_the_networks() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=5).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let mut documents = vec![node(&lab, "default")];
    let documents_of = pairs.iter().zip(["auto", "auto", "auto", "card", "card"]);
    documents.extend(documents_of.map(|(pair, place)| pair.document.clone().with("placement", place).yaml()));
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    for pair in &pairs {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    let flows: Vec<Flow> = pairs.iter().map(|pair| Flow::start(&pair.left, &pair.right, 200, 100)).collect();
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for _ in 0..3 {
        let small = daemon.cli.json(&["image", "load", "tcam3"]);
        assert_eq!(placed(&small), are(&daemon, &pairs), "{small}");
        // The image holds three: the two whose documents name the card, and one of the others.
        let names: Vec<String> = pairs.iter().map(|pair| pair.name().to_owned()).collect();
        let on = on_card(&placed(&small)).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(on.len() == 3 && on.contains(&names[3]) && on.contains(&names[4]), "{small}");
        let large = daemon.cli.json(&["image", "load", "default"]);
        let places = placed(&large);
        assert_eq!(on_card(&places), names.iter().map(String::as_str).collect::<Vec<_>>(), "{large}");
        assert_eq!(places, are(&daemon, &pairs));
    }
    flows.into_iter().for_each(is_whole);
}

#[test]
fn needs_say_who_keeps_the_card() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=4).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    // Software can serve the first; each of the others needs more than one core can forward.
    let needs = ["10Mbit/s", "600Mbit/s", "600Mbit/s", "600Mbit/s"];
    let mut documents = vec![node(&lab, "default")];
    documents.extend(
        pairs.iter().zip(needs).map(|(pair, needs)| {
            pair.document.clone().with("needs", &format!("{{bandwidth: {needs}}}")).yaml()
        }),
    );
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    pairs.iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
    let loaded = daemon.cli.json(&["image", "load", "tcam3"]);
    let expected: Vec<&str> = pairs[1..].iter().map(Pair::name).collect();
    assert_eq!(on_card(&placed(&loaded)), expected, "{loaded}");
}

#[test]
fn changes_wait_for_their_turn_and_disconnected_callers_leave_the_queue() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, daemon) = two_on_card(&lab);
    let flows = [&red, &blue].map(|pair| Flow::start(&pair.left, &pair.right, 200, 100));
    let load = ["image", "load", "default", "--reconfigure-time", "4s"];
    let loading = begin(&daemon, &load, "image_loading");
    // With --no-wait the command reports at once which change is in progress.
    let file = lab.folder().join("blue.yaml");
    std::fs::write(&file, blue.document.clone().with("weight", "7").yaml()).unwrap();
    let file = file.display().to_string();
    for call in [
        &["migrate", red.name(), "--to", "soft", "--no-wait"][..],
        &["image", "load", "default", "--no-wait"],
        &["apply", "-f", &file, "--no-wait"],
        &["delete", "network", blue.name(), "--no-wait"],
    ] {
        let output = daemon.cli.run(call);
        assert!(
            output.code == 1 && output.stderr.contains("image 'default' is loaded"),
            "{call:?}: {}",
            output.stderr
        );
    }
    // One caller waits and disconnects; the one after it stays.
    let command = |arguments: &[&str]| {
        daemon.cli.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut goes = command(&["migrate", red.name(), "--to", "soft"]);
    let stays = command(&["migrate", blue.name(), "--to", "soft", "-o", "json"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    goes.kill().unwrap();
    goes.wait().unwrap();
    let stayed = stays.wait_with_output().unwrap();
    assert!(stayed.status.success(), "{}", String::from_utf8_lossy(&stayed.stderr));
    is_clean(&serde_json::from_slice(&stayed.stdout).unwrap());
    assert!(loading.wait_with_output().unwrap().status.success());
    let started: Vec<Value> =
        daemon.cli.events().into_iter().filter(|event| event["kind"] == "migration_started").collect();
    assert!(started.iter().all(|event| event["network"] == blue.name()), "{started:?}");
    assert_eq!(network(&daemon, red.name())["substrate"], "card");
    assert_eq!(network(&daemon, blue.name())["substrate"], "soft");
    // A change that conflicts with no other starts at once.
    is_clean(&daemon.cli.json(&["migrate", blue.name(), "--to", "card", "--no-wait"]));
    let _ = daemon.cli.run(&["apply", "-f", &file, "--no-wait"]).expect_ok();
    flows.into_iter().for_each(is_whole);
}
