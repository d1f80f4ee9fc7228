//! Networks move between card and software while real hosts communicate through them. The receiving hosts count packets that
//! were lost, duplicated or reordered, and the tests compare these counts with the command's report.

use std::process::Stdio;
use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, can_run, until};
use serde_json::Value;

use crate::card::{network, node, runs_on, start};

/// Moves a network and returns the proof that the command prints.
fn migrate(daemon: &Daemon, name: &str, to: &str) -> Value {
    daemon.cli.json(&["migrate", name, "--to", to])
}

/// The command's error when it does not move a network, and its exit code.
fn refused(daemon: &Daemon, arguments: &[&str]) -> (String, i32) {
    let output = daemon.cli.run(&[&["migrate"], arguments].concat());
    assert_ne!(output.code, 0, "{}", output.stdout);
    (output.stderr, output.code)
}

/// Checks that the proof reports no lost, duplicated or reordered packets.
pub fn is_clean(proof: &Value) {
    for field in ["lost", "doubled", "reordered", "undecided"] {
        assert_eq!(proof[field], 0, "{proof}");
    }
    assert!(proof["trouble"].is_null() && proof["cut"] == false, "{proof}");
}

/// Moves a network, which loses nothing.
pub fn move_to(daemon: &Daemon, network: &str, to: &str) {
    is_clean(&daemon.cli.json(&["migrate", network, "--to", to]));
    runs_on(daemon, network, to);
}

/// Checks that every packet of a flow arrived, once and in order.
pub fn is_whole(flow: Flow) {
    let report = flow.stop();
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
}

/// More routes than a plane of the papers' images has rows.
pub fn many_routes() -> String {
    let routes: Vec<String> = (0..40).map(|n| format!("{{to: 10.200.{n}.0/24, via: 10.1.2.2}}")).collect();
    format!("[{}]", routes.join(", "))
}

fn two(lab: &Lab) -> (Pair, Pair) {
    (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]))
}

/// Two networks that run on the card of a daemon, neighbours known.
pub fn two_on_card(lab: &Lab) -> (Pair, Pair, Daemon) {
    both_on_card(lab, two(lab))
}

/// As [`two_on_card`], but no kernel sends ARP: so hosts count every frame that a report covers.
pub fn two_on_card_without_arp(lab: &Lab) -> (Pair, Pair, Daemon) {
    let (red, blue) = two(lab);
    both_on_card(lab, (red.with_fixed_neighbours(), blue.with_fixed_neighbours()))
}

fn both_on_card(lab: &Lab, (red, blue): (Pair, Pair)) -> (Pair, Pair, Daemon) {
    let documents = [node(lab, "default"), red.document.yaml(), blue.document.yaml()];
    let daemon = start(lab, &["default"], &documents);
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    (red, blue, daemon)
}

/// A low rate and a large burst, so that a move that restarts the limit is noticed.
const LIMIT_RATE: u64 = 10;
const LIMIT_BURST: u64 = 300;
/// Packets beyond the limit that may pass in a move: those inside when it switches.
const INSIDE: u64 = 32;

#[test]
fn a_rate_limit_moves_with_its_network() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let limit = format!("{{packets_per_second: {LIMIT_RATE}, burst_packets: {LIMIT_BURST}}}");
    let documents = [
        node(&lab, "default"),
        red.document.clone().with("rate_limit", &limit).with("placement", "soft").yaml(),
    ];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, red.name(), "soft");
    let began = Instant::now();
    red.warm_up();
    let received = || daemon.cli.stats(red.name())["received"].as_u64().unwrap_or(0);
    let flow = Flow::start(&red.left, &red.right, 2_000, 64);
    let mut moves = 0;
    for to in ["card", "soft"].repeat(4) {
        // Long enough to see another burst, if there were one.
        let before = received();
        until("traffic", 20, || received() >= before + 2 * LIMIT_BURST);
        let proof = migrate(&daemon, red.name(), to);
        assert_eq!(proof["lost"], 0, "{proof}");
        moves += 1;
    }
    let report = flow.stop();
    let most = LIMIT_BURST + LIMIT_RATE * (began.elapsed().as_secs() + 1) + moves * INSIDE;
    let drops = daemon.cli.stats(red.name())["drops"].clone();
    eprintln!(
        "{} packets of {} passed in {moves} moves, {most} at most; {drops}",
        report.received, report.sent
    );
    // Some packets of the burst were spent in the first seconds, on learning the neighbours.
    assert!((LIMIT_BURST / 2..=most).contains(&report.received), "{report}, {most} at most");
    assert!(drops["rate_limited"].as_u64().unwrap_or(0) > 8 * LIMIT_BURST, "{drops}");
}

#[test]
fn a_network_moves_both_ways_and_its_hosts_see_nothing() {
    if !can_run(&["iperf3"]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, daemon) = two_on_card(&lab);
    let before = daemon.cli.stats(red.name());
    let flows = [
        Flow::start(&red.left, &red.right, 2_000, 64),
        Flow::start(&red.right, &red.left, 300, 1_400),
        Flow::start(&blue.left, &blue.right, 500, 200),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 100));
    let mut looked_at = 0;
    for round in 0..10 {
        for to in ["soft", "card"] {
            let proof = migrate(&daemon, red.name(), to);
            is_clean(&proof);
            let (from, us) = (if to == "card" { "soft" } else { "card" }, proof["duration_us"].as_u64());
            assert_eq!(
                (&proof["network"], &proof["from"], &proof["to"]),
                (&red.name().into(), &from.into(), &to.into())
            );
            assert!(us.is_some_and(|us| us > 0) && proof["gap_us_max"].is_u64(), "{proof}");
            let names: Vec<_> =
                proof["phases"].as_array().unwrap().iter().map(|phase| &phase["name"]).collect();
            let expected: &[&str] = if to == "card" {
                &["prepare", "aside", "switch", "drain", "join"]
            } else {
                &["switch", "drain"]
            };
            assert_eq!(names, expected, "{proof}");
            looked_at += proof["before"]["received"].as_u64().unwrap_or(0);
            assert_eq!(network(&daemon, red.name())["substrate"], to);
            if round == 0 {
                eprintln!("{proof}");
            }
        }
    }
    flows.into_iter().for_each(is_whole);
    // Its counters continued.
    let after = daemon.cli.stats(red.name());
    for field in ["received", "forwarded", "sent", "received_bytes", "sent_bytes"] {
        assert!(
            after[field].as_u64() > before[field].as_u64().map(|count| count + 1_000),
            "{field}: {before} {after}"
        );
    }
    for reason in ["handover_full", "queue_full", "port_full"] {
        assert_eq!(after["losses"][reason], before["losses"][reason], "{after}");
    }
    assert!(looked_at > 200, "{looked_at}");
    // Events are numbered, and say what happened in order.
    let events = daemon.cli.events();
    let kinds: Vec<&str> = events
        .iter()
        .filter(|event| event["network"] == red.name())
        .filter_map(|event| event["kind"].as_str().filter(|kind| kind.starts_with("migrat")))
        .collect();
    assert_eq!(kinds, ["migration_started", "migrated"].repeat(20));
    assert!(
        events
            .windows(2)
            .all(|pair| pair[1]["sequence"].as_u64() == pair[0]["sequence"].as_u64().map(|n| n + 1))
    );

    // TCP does not stall.
    let mut server = hue_e2e::shell::command("iperf3");
    let server = red.right.space.spawn(server.args(["-s", "-1"]).stdout(Stdio::null()));
    until("iperf3 listens", 10, || {
        red.right.space.run("ss", &["-Hltn", "sport = :5201"]).stdout.contains("5201")
    });
    let json = std::thread::scope(|scope| {
        let (space, address) = (&red.left.space, red.right.address.to_string());
        let client =
            scope.spawn(move || space.run("iperf3", &["-c", &address, "-t", "4", "-b", "20M", "-J"]));
        std::thread::sleep(Duration::from_millis(500));
        for to in ["soft", "card", "soft", "card"] {
            // TCP probes for the available rate, and loses packets in doing so.
            let proof = migrate(&daemon, red.name(), to);
            assert!(proof["doubled"] == 0 && proof["reordered"] == 0, "{proof}");
            std::thread::sleep(Duration::from_millis(300));
        }
        client.join().unwrap().expect_ok().json()
    });
    drop(server.wait_with_output());
    let received = json["end"]["sum_received"]["bytes"].as_u64();
    assert!(received > Some(4_000_000), "{received:?}");
}

#[test]
fn packets_wait_for_a_slow_drain_and_dropped_ones_are_reported() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, daemon) = two_on_card(&lab);
    let beside = Flow::start(&blue.left, &blue.right, 200, 200);
    // 130 ms of 500 packets a second fill a third of the queue: the rest is a margin for a slow machine.
    let flow = Flow::start(&red.left, &red.right, 500, 1_400);
    until("traffic", 20, || flow.received() > 100);
    is_clean(&migrate(&daemon, red.name(), "soft"));
    let slow = ["migrate", red.name(), "--to", "card", "--drain-ms", "130"];
    let proof = daemon.cli.json(&slow);
    is_clean(&proof);
    let drain = proof["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "drain").unwrap();
    assert!(drain["us"].as_u64() >= Some(130_000), "{proof}");
    assert_eq!(proof["hold"]["dropped"], 0, "{proof}");
    // The traffic had a gap but arrived. The gap is shorter than the drain if packets left software late.
    assert!(proof["gap_us_max"].as_u64() >= Some(40_000), "{proof}");
    is_whole(flow);

    // There is no room for half a second: the proof lists as many drops as the host misses, and the rest is in order.
    let flow = Flow::start(&red.left, &red.right, 1_000, 1_400);
    until("traffic", 20, || flow.received() > 100);
    is_clean(&migrate(&daemon, red.name(), "soft"));
    let proof = daemon.cli.json(&["migrate", red.name(), "--to", "card", "--drain-ms", "500"]);
    let report = flow.stop();
    let lost = proof["lost"].as_u64().unwrap();
    assert!(
        lost > 100 && proof["hold"]["dropped"] == lost && proof["lost_by"]["output_full"] == lost,
        "{proof}"
    );
    assert_eq!(proof["undecided"], 0, "{proof}");
    assert!(report.lost() == lost && report.duplicated == 0 && report.reordered == 0, "{report} {proof}");
    assert!(proof["doubled"] == 0 && proof["reordered"] == 0 && proof["cut"] == false, "{proof}");
    // The other network was not affected.
    is_whole(beside);
}

#[test]
fn a_move_that_fails_leaves_the_network_where_it_is() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = two(&lab);
    let documents = [node(&lab, "default"), red.document.yaml(), blue.document.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, red.name(), "card");
    daemon.cli.warm_up(&[&red]);
    let flow = Flow::start(&red.left, &red.right, 2_000, 100);
    until("traffic", 20, || flow.received() > 100);
    for (at, to, steps) in [
        ("card", "soft", &["switch", "drain"][..]),
        ("soft", "card", &["prepare", "aside", "switch", "drain"]),
    ] {
        for step in steps {
            let (text, _) = refused(&daemon, &[red.name(), "--to", to, "--fail", step]);
            assert!(text.contains(step) && text.contains("did not move"), "{text}");
            assert!(!text.contains("out of order"), "{text}");
            assert_eq!(network(&daemon, red.name())["substrate"], at, "{step}");
        }
        // Without the fault it moves.
        is_clean(&migrate(&daemon, red.name(), to));
    }
    assert!(daemon.cli.happened("migration_failed"));
    is_whole(flow);
    is_clean(&migrate(&daemon, red.name(), "soft"));
    is_clean(&migrate(&daemon, red.name(), "card"));

    // Invalid requests.
    let say = |arguments: &[&str], expected: &str| {
        let (text, _) = refused(&daemon, arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    };
    say(&["nobody", "--to", "soft"], "nobody");
    say(&[red.name(), "--to", "card"], "already");
    let (text, code) = refused(&daemon, &[red.name(), "--to", "moon"]);
    assert!(text.contains("card") && code == 2, "{text}");
    // Two at once: one moves the network, the other waits for it, and then reports that there is nothing to do.
    let answers = std::thread::scope(|scope| {
        let both = [1, 2].map(|_| {
            scope.spawn(|| daemon.cli.run(&["migrate", red.name(), "--to", "soft", "--look-ms", "300"]))
        });
        both.map(|thread| thread.join().unwrap())
    });
    let moved = answers.iter().filter(|answer| answer.code == 0).count();
    assert_eq!(moved, 1, "{} {}", answers[0].stderr, answers[1].stderr);
    assert!(
        answers.iter().any(|answer| answer.stderr.contains("on soft already")),
        "{}{}",
        answers[0].stderr,
        answers[1].stderr
    );
    assert_eq!(network(&daemon, red.name())["substrate"], "soft");
    // Without a card there is no destination.
    daemon.cli.apply(&all(&[lab.node_document(""), red.document.yaml(), blue.document.yaml()]), &[]);
    runs_on(&daemon, blue.name(), "soft");
    say(&[blue.name(), "--to", "card"], "no card");
}

#[test]
fn a_card_that_disappears_leaves_its_networks_to_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, daemon) = two_on_card(&lab);
    // Also in the middle of a move.
    let (text, _) = refused(&daemon, &[red.name(), "--to", "soft", "--fail", "card"]);
    assert!(text.contains("failed as requested"), "{text}");
    let began = Instant::now();
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "soft");
        until("hosts reach each other", 10, || pair.left.ping(pair.right.address, 1) == 1);
    }
    eprintln!("hosts reach each other {:?} after the card was gone", began.elapsed());
    assert!(daemon.cli.happened("card_down"));
    let status = &daemon.cli.json(&["get", "nodes"])[0]["status"];
    assert!(status["problems"].to_string().contains("failed as requested"), "{status}");
    let (text, _) = refused(&daemon, &[red.name(), "--to", "card"]);
    assert!(text.contains("no card"), "{text}");
}

#[test]
fn a_network_that_the_image_cannot_hold_stays_and_the_others_go_on() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=4).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let mut documents = vec![node(&lab, "tcam3")];
    let large = pairs[0].document.clone().with("routes", &many_routes());
    documents.push(large.with("placement", "soft").yaml());
    documents.extend(pairs[1..].iter().map(|pair| pair.document.yaml()));
    let daemon = start(&lab, &["tcam3"], &documents);
    for pair in &pairs {
        daemon.cli.warm_up(&[pair]);
    }
    for pair in &pairs[1..] {
        runs_on(&daemon, pair.name(), "card");
    }
    let flows: Vec<Flow> = pairs.iter().map(|pair| Flow::start(&pair.left, &pair.right, 500, 100)).collect();
    // All planes are in use.
    let (text, code) = refused(&daemon, &[pairs[0].name(), "--to", "card"]);
    assert!(text.contains("tcam3") && code == 4, "{code}: {text}");
    is_clean(&migrate(&daemon, pairs[3].name(), "soft"));
    // It has more routes than a plane has rows.
    let (text, _) = refused(&daemon, &[pairs[0].name(), "--to", "card"]);
    assert!(text.contains("route rows"), "{text}");
    is_clean(&migrate(&daemon, pairs[3].name(), "card"));
    flows.into_iter().for_each(is_whole);
}

#[test]
fn a_moved_network_stays_in_its_place_after_a_restart() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, mut daemon) = two_on_card(&lab);
    is_clean(&migrate(&daemon, red.name(), "soft"));
    // The daemon is killed at any moment of a move: the network is at the source or at the destination, and works.
    for wait_ms in [0, 15, 40, 80] {
        let mut child = daemon.cli.command(&["migrate", blue.name(), "--to", "soft", "--look-ms", "50"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        daemon.kill();
        drop(child.wait());
        daemon.replace(&lab);
        runs_on(&daemon, red.name(), "soft");
        let began = Instant::now();
        until("hosts reach each other", 30, || {
            [&red, &blue].iter().all(|pair| pair.left.ping(pair.right.address, 1) == 1)
        });
        eprintln!(
            "killed after {wait_ms} ms: hosts reach each other {:?} after it came back",
            began.elapsed()
        );
        if network(&daemon, blue.name())["substrate"] == "soft" {
            until("blue is where its document says", 20, || {
                let found = network(&daemon, blue.name());
                found["substrate"] == "card"
                    || found["why_soft"].as_str().is_some_and(|why| why.contains("document"))
            });
        }
        if network(&daemon, blue.name())["substrate"] == "soft" {
            is_clean(&migrate(&daemon, blue.name(), "card"));
        }
        runs_on(&daemon, blue.name(), "card");
    }
}

#[test]
fn another_image_is_loaded_while_networks_run() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=4).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let mut documents = vec![node(&lab, "default")];
    documents.extend(pairs.iter().map(|pair| pair.document.yaml()));
    // A folder of its own: an image is damaged below.
    let folder = lab.folder().join("images");
    std::fs::create_dir(&folder).unwrap();
    for name in ["default", "tcam3"] {
        for end in ["so", "json"] {
            let file = format!("{name}.{end}");
            std::fs::copy(hue_testdata::images(&[name]).join(&file), folder.join(&file)).unwrap();
        }
    }
    let mut cli = Cli::new(&lab);
    cli.images = Some(folder.clone());
    let daemon = Daemon::start_with(&lab, &cli, &[]);
    daemon.cli.apply(&all(&documents), &[]);
    for pair in &pairs {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    let list = daemon.cli.json(&["image", "list"]);
    let of =
        |name: &str| list.as_array().unwrap().iter().find(|image| image["name"] == name).unwrap().clone();
    assert_eq!((&of("default")["running"], &of("tcam3")["running"]), (&true.into(), &false.into()));
    assert_eq!((&of("tcam3")["planes"], &of("tcam3")["layout"]), (&3.into(), &"tcam".into()), "{list}");
    assert!(of("tcam3")["checksum"].as_str().is_some_and(|sum| sum.len() == 8), "{list}");

    let before: Vec<Value> = pairs.iter().map(|pair| daemon.cli.stats(pair.name())).collect();
    let flows: Vec<Flow> = pairs.iter().map(|pair| Flow::start(&pair.left, &pair.right, 400, 100)).collect();
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 100));
    // A smaller one: three of the four networks return to the card, once the modelled configuration time of an FPGA is over.
    let began = Instant::now();
    let loaded = daemon.cli.json(&["image", "load", "tcam3", "--reconfigure-time", "1s"]);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!((&loaded["image"], &loaded["before"]), (&"tcam3".into(), &"default".into()));
    let on_card = |loaded: &Value| {
        let networks = loaded["networks"].as_array().unwrap();
        networks.iter().filter(|network| network["substrate"] == "card").count()
    };
    assert_eq!(on_card(&loaded), 3, "{loaded}");
    // And the larger one again: the fourth network comes, too, before the answer.
    let loaded = daemon.cli.json(&["image", "load", "default"]);
    eprintln!("{loaded}");
    assert_eq!(on_card(&loaded), 4, "{loaded}");
    assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["card"]["image"], "default");
    flows.into_iter().for_each(is_whole);
    for (pair, before) in pairs.iter().zip(before) {
        let after = daemon.cli.stats(pair.name());
        assert!(
            after["forwarded"].as_u64() > before["forwarded"].as_u64().map(|count| count + 400),
            "{before} {after}"
        );
    }

    // A file that is not an image, or is damaged, changes nothing.
    let (text, _) = {
        let output = daemon.cli.run(&["image", "load", "none"]);
        (output.stderr, output.code)
    };
    assert!(text.contains("no image 'none'") && text.contains("tcam3"), "{text}");
    let whole = std::fs::read(folder.join("tcam3.so")).unwrap();
    std::fs::remove_file(folder.join("tcam3.so")).unwrap();
    std::fs::write(folder.join("tcam3.so"), &whole[..whole.len() / 2]).unwrap();
    let output = daemon.cli.run(&["image", "load", "tcam3"]);
    assert!(output.code != 0 && output.stderr.contains("damaged"), "{}", output.stderr);
    let list = daemon.cli.json(&["image", "list"]).to_string();
    assert!(list.contains("damaged"), "{list}");
    for pair in &pairs {
        assert_eq!(network(&daemon, pair.name())["substrate"], "card");
        assert_eq!(pair.left.ping(pair.right.address, 2), 2);
    }
}

#[test]
fn a_refusal_names_the_image_that_would_do_and_loads_it_if_asked() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = two(&lab);
    let large = red.document.clone().with("routes", &many_routes()).with("placement", "soft");
    let documents = [node(&lab, "tcam3"), large.yaml(), blue.document.yaml()];
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    runs_on(&daemon, blue.name(), "card");
    for pair in [&red, &blue] {
        daemon.cli.warm_up(&[pair]);
    }
    let flows = [&red, &blue].map(|pair| Flow::start(&pair.left, &pair.right, 500, 100));
    let (text, code) = refused(&daemon, &[red.name(), "--to", "card"]);
    assert!(
        text.contains("route rows") && text.contains("it would fit image 'default'") && code == 4,
        "{text}"
    );
    is_clean(&daemon.cli.json(&["migrate", red.name(), "--to", "card", "--load-image"]));
    for pair in [&red, &blue] {
        assert_eq!(network(&daemon, pair.name())["substrate"], "card");
    }
    assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["card"]["image"], "default");
    flows.into_iter().for_each(is_whole);
}

#[test]
fn networks_move_to_the_places_that_the_scheduler_chooses() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=3).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let with = |node: &str, needs: [&str; 3]| {
        let mut documents = vec![node.to_owned()];
        documents.extend(pairs.iter().zip(needs).map(|(pair, needs)| {
            pair.document.clone().with("needs", &format!("{{bandwidth: {needs}}}")).yaml()
        }));
        all(&documents)
    };
    // Software can forward 100 Mbit/s: the two small networks fit, the large one goes to the card.
    let plain = node(&lab, "default");
    let scheduled = format!("{plain}  scheduler: {{soft: {{cores: 1, bandwidth: 100Mbit/s}}}}\n");
    let documents = with(&scheduled, ["20Mbit/s", "30Mbit/s", "400Mbit/s"]);
    let daemon = start(&lab, &["default"], &[documents]);
    for (pair, on) in pairs.iter().zip(["soft", "soft", "card"]) {
        runs_on(&daemon, pair.name(), on);
        daemon.cli.warm_up(&[pair]);
    }
    let placements = daemon.cli.json(&["get", "placements"]).to_string();
    assert!(placements.contains("card") && placements.contains("soft"), "{placements}");
    // Software does not have the rate for it: the move is refused with figures, before anything changes.
    let (text, code) = refused(&daemon, &[pairs[2].name(), "--to", "soft"]);
    assert!(code == 4 && text.contains("needs 400 Mbit/s") && text.contains("100 Mbit/s"), "{code} {text}");
    let flows: Vec<Flow> = pairs.iter().map(|pair| Flow::start(&pair.left, &pair.right, 500, 100)).collect();
    // Their needs change: one moves while packets flow. The other has no reason to move.
    daemon.cli.apply(&with(&scheduled, ["600Mbit/s", "30Mbit/s", "10Mbit/s"]), &[]);
    for (pair, on) in pairs.iter().zip(["card", "soft", "card"]) {
        runs_on(&daemon, pair.name(), on);
    }
    // Without a scheduler the card gets all networks that fit.
    daemon.cli.apply(&with(&plain, ["600Mbit/s", "30Mbit/s", "10Mbit/s"]), &[]);
    for pair in &pairs {
        runs_on(&daemon, pair.name(), "card");
    }
    flows.into_iter().for_each(is_whole);
}
