//! Networks on the card: its twin carries the traffic of real hosts.

use std::process::Stdio;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::frame::{self, Ends};
use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Flood, Lab, can_run, until};
use serde_json::Value;

/// The node's document with a card that has all its ports.
pub fn node(lab: &Lab, image: &str) -> String {
    let ports = lab.ports().join(", ");
    let nics = match lab.nics() {
        [] => String::new(),
        nics => format!(", nics: [{}]", nics.join(", ")),
    };
    format!("{}  card: {{twin: {{image: {image}}}, ports: [{ports}]{nics}}}\n", lab.node_document(""))
}

/// A daemon with these images.
pub fn start(lab: &Lab, names: &[&str], documents: &[String]) -> Daemon {
    start_as(&Cli::new(lab), lab, names, documents)
}

/// The same, started by this command line.
pub fn start_as(cli: &Cli, lab: &Lab, names: &[&str], documents: &[String]) -> Daemon {
    let cli = Cli { images: Some(hue_testdata::images(names)), ..cli.clone() };
    let daemon = Daemon::start_with(lab, &cli, &[]);
    daemon.cli.apply(&all(documents), &[]);
    daemon
}

/// A network, as the command line shows it.
pub fn network(daemon: &Daemon, name: &str) -> Value {
    daemon.cli.json(&["get", "networks", name])
}

/// Waits until a network runs there.
pub fn runs_on(daemon: &Daemon, name: &str, substrate: &str) {
    until(&format!("{name} runs on {substrate}"), 20, || {
        // A daemon that has just come back may not have it yet.
        let output = daemon.cli.run(&["get", "networks", name, "-o", "json"]);
        output.code == 0 && output.json()["substrate"] == substrate
    });
}

/// TCP from the left host to the right one and back: bytes that arrived each way.
fn iperf(pair: &Pair, size: &str) -> [u64; 2] {
    let mut server = hue_e2e::shell::command("iperf3");
    let server = pair.right.space.spawn(server.args(["-s", "-1"]).stdout(Stdio::null()));
    until("iperf3 listens", 10, || {
        pair.right.space.run("ss", &["-Hltn", "sport = :5201"]).stdout.contains("5201")
    });
    let client = ["-c", &pair.right.address.to_string(), "-n", size, "--bidir", "-J"];
    let json = pair.left.space.run("iperf3", &client).expect_ok().json();
    drop(server.wait_with_output());
    ["sum_received", "sum_received_bidir_reverse"].map(|sum| json["end"][sum]["bytes"].as_u64().unwrap_or(0))
}

#[test]
fn hosts_reach_each_other_through_the_card() {
    if !can_run(&["iperf3"]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    // On the same ports, but its plane runs in software: the card passes its frames to software.
    let soft = lab.pair("soft", 3, 3, [0, 1]);
    let in_software = soft.document.clone().with("placement", "soft");
    let documents = [node(&lab, "default"), red.document.yaml(), blue.document.yaml(), in_software.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    for (pair, substrate) in [(&red, "card"), (&blue, "card"), (&soft, "soft")] {
        runs_on(&daemon, pair.name(), substrate);
    }
    assert!(network(&daemon, soft.name())["why_soft"].as_str().unwrap_or("").contains("document"));
    // No document declares bandwidth, so a plan leaves everything where it is.
    let placement = |name: &str| daemon.cli.json(&["get", "placements", name]);
    assert_eq!(
        (&placement(red.name())["substrate"], &placement(soft.name())["substrate"]),
        (&"card".into(), &"soft".into())
    );
    assert_eq!(placement(soft.name())["why_not"], network(&daemon, soft.name())["why_soft"]);
    assert!(placement(red.name())["since"].as_str().is_some_and(|since| since.ends_with('Z')));
    let plan = daemon.cli.json(&["plan", "--scheduler", "exact"]);
    assert_eq!((&plan["scheduler"], &plan["moves"]), (&"exact".into(), &serde_json::json!([])), "{plan}");
    let uses = plan["uses"].as_array().into_iter().flatten();
    assert_eq!(
        uses.filter(|one| one["what"] == "card networks").map(|one| &one["used"]).next(),
        Some(&2.into()),
        "{plan}"
    );

    let card = &daemon.cli.json(&["get", "nodes"])[0]["card"];
    assert_eq!((&card["image"], &card["bus_bits"]), (&"default".into(), &256.into()), "{card}");

    let tables = daemon.cli.json(&["get", "tables"]);
    let (levels, shares) = (&tables["card"]["memories"], &tables["card"]["networks"]);
    assert_eq!((&tables["card"]["layout"], &tables["card"]["unit"]), (&"dag36".into(), &"words".into()));
    let count = |one: &Value, field: &str| one[field].as_u64().unwrap_or_default();
    for level in levels.as_array().unwrap() {
        assert_eq!(count(level, "used") + count(level, "free"), count(level, "max"), "{tables}");
    }
    let shares = shares.as_array().unwrap();
    assert!(shares.len() == 2 && shares.iter().all(|one| count(one, "own") > 0), "{tables}");
    let text = daemon.cli.run(&["get", "tables"]).expect_ok().stdout;
    assert!(text.contains("OWN WORDS") && text.contains("level0: "), "{text}");

    for pair in [&red, &blue, &soft] {
        daemon.cli.warm_up(&[pair]);
        assert_eq!(pair.left.ping(pair.right.address, 20), 20, "{}", pair.name());
        assert_eq!(pair.right.ping(pair.left.address, 5), 5, "{}", pair.name());
        // The router itself, on both sides, and a router's answer to a packet whose TTL expires.
        assert_eq!(pair.left.ping(pair.left.router, 3), 3, "{}", pair.name());
        assert_eq!(pair.left.ping(pair.right.router, 3), 3, "{}", pair.name());
        let expired = pair.left.ping_with(pair.right.address, 1, &["-t", "1"]).stdout;
        assert!(expired.contains("Time to live exceeded"), "{}: {expired}", pair.name());
    }

    // Packets that the card's planes forward never come to software.
    let before = daemon.cli.stats(red.name());
    let flow = Flow::start(&red.left, &red.right, 500, 200);
    until("a thousand packets", 20, || flow.received() >= 1_000);
    let report = flow.stop();
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
    let after = daemon.cli.stats(red.name());
    let grew = |field: &str| after[field].as_u64().unwrap_or(0) - before[field].as_u64().unwrap_or(0);
    assert!(grew("forwarded") >= report.sent, "{before} {after}");
    assert!(grew("received_bytes") >= 200 * report.sent && grew("sent_bytes") >= 200 * report.sent);
    let by_port = |stats: &Value| -> u64 {
        let ports = stats["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port["forwarded"].as_u64()).sum()
    };
    assert_eq!(by_port(&before), by_port(&after), "software forwarded nothing");
    for field in ["received", "forwarded", "punted", "dropped"] {
        assert!(after[field].is_u64(), "{after}");
    }
    let sum =
        ["forwarded", "punted", "dropped"].iter().filter_map(|field| after[*field].as_u64()).sum::<u64>();
    assert_eq!(after["received"].as_u64(), Some(sum), "{after}");

    for pair in [&red, &soft] {
        let bytes = iperf(pair, "4M");
        assert!(bytes.iter().all(|bytes| *bytes >= 1_000_000), "{}: {bytes:?}", pair.name());
    }
    let card = &daemon.cli.json(&["get", "nodes"])[0]["card"];
    let number = |field: &str| card[field].as_f64().unwrap_or(0.0);
    assert!(
        number("cycles") > 0.0 && number("simulated_seconds") > 0.0 && number("clocking_seconds") > 0.0,
        "{card}"
    );
    // Without frames its clock stops, until a frame comes.
    let cycles = || daemon.cli.json(&["get", "nodes"])[0]["card"]["cycles"].as_u64();
    until("the card sleeps", 20, || {
        let before = cycles();
        std::thread::sleep(Duration::from_millis(500));
        cycles() == before
    });
    let asleep = cycles();
    assert_eq!(red.left.ping(red.right.address, 1), 1);
    until("it is awake again", 5, || cycles() > asleep);
}

#[test]
fn routes_and_networks_of_the_card_change_while_it_runs() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    let daemon = start(&lab, &["default"], &[node(&lab, "default"), red.document.yaml()]);
    runs_on(&daemon, red.name(), "card");
    daemon.cli.warm_up(&[&red]);
    let flow = Flow::start(&red.left, &red.right, 500, 200);
    // One more route, from the network's own control plane: the card gets it, too.
    red.right.space.ip(&["address", "add", "10.77.0.1/32", "dev", "lo"]);
    let to = std::net::Ipv4Addr::new(10, 77, 0, 1);
    assert_eq!(red.left.ping(to, 1), 0);
    let via = red.right.address.to_string();
    let _ = daemon.cli.exec(red.name(), &["ip", "route", "add", "10.77.0.0/16", "via", &via]).expect_ok();
    // First in software, to which the card passes what it has no route for.
    daemon.cli.settle(&[red.name()], || red.left.ping(to, 1) == 1);
    let forwarded = |daemon: &Daemon| daemon.cli.stats(red.name())["ports"][0]["forwarded"].as_u64();
    let in_software = forwarded(&daemon);
    assert_eq!(red.left.ping(to, 3), 3);
    assert_eq!(forwarded(&daemon), in_software, "the card forwards by the new route");
    let _ = daemon.cli.exec(red.name(), &["ip", "route", "del", "10.77.0.0/16"]).expect_ok();
    until("the route is gone", 10, || red.left.ping(to, 1) == 0);

    // Another network is added and removed beside it.
    daemon.cli.apply(&all(&[node(&lab, "default"), red.document.yaml(), blue.document.yaml()]), &[]);
    runs_on(&daemon, blue.name(), "card");
    blue.warm_up();
    assert_eq!(blue.left.ping(blue.right.address, 5), 5);
    let _ = daemon.cli.run(&["delete", "network", blue.name()]).expect_ok();
    assert_eq!(blue.left.ping(blue.right.address, 1), 0);
    let report = flow.stop();
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");

    // Without a card, the same network continues in software; with a card again, on the card.
    daemon.cli.apply(&all(&[lab.node_document(""), red.document.yaml()]), &[]);
    runs_on(&daemon, red.name(), "soft");
    until("hosts reach each other in software", 10, || red.left.ping(red.right.address, 1) == 1);
    daemon.cli.apply(&all(&[node(&lab, "default"), red.document.yaml()]), &[]);
    runs_on(&daemon, red.name(), "card");
    until("hosts reach each other through the card", 10, || red.left.ping(red.right.address, 1) == 1);
}

#[test]
fn networks_that_do_not_fit_the_card_run_in_software() {
    if !can_run(&[]) {
        return;
    }
    // An image with three planes, and four networks, one of which has more routes than a plane has rows.
    let lab = Lab::new(2);
    let pairs: Vec<Pair> = (1..=4).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let many: Vec<String> = (0..40).map(|n| format!("{{to: 10.200.{n}.0/24, via: 10.1.2.2}}")).collect();
    let mut documents = vec![node(&lab, "tcam3")];
    documents.push(pairs[0].document.clone().with("routes", &format!("[{}]", many.join(", "))).yaml());
    documents.extend(pairs[1..].iter().map(|pair| pair.document.yaml()));
    let daemon = start(&lab, &["tcam3"], &documents);
    runs_on(&daemon, pairs[0].name(), "soft");
    for pair in &pairs[1..] {
        runs_on(&daemon, pair.name(), "card");
    }
    until("it says why", 10, || {
        network(&daemon, pairs[0].name())["why_soft"].as_str().is_some_and(|why| why.contains("tcam3"))
    });
    for pair in &pairs {
        pair.warm_up();
        assert_eq!(pair.left.ping(pair.right.address, 5), 5, "{}", pair.name());
    }
    // An image that does not exist: everything runs in software, and the status says why.
    documents[0] = node(&lab, "none");
    daemon.cli.apply(&all(&documents), &[]);
    for pair in &pairs {
        runs_on(&daemon, pair.name(), "soft");
        until("hosts reach each other", 10, || pair.left.ping(pair.right.address, 1) == 1);
    }
    let status = &daemon.cli.json(&["get", "nodes"])[0]["status"];
    assert!(status["problems"].to_string().contains("no image 'none'"), "{status}");
}

#[test]
fn a_flood_through_the_card_costs_its_own_network_only() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let bad = lab.pair("bad", 2, 2, [0, 1]);
    let limited = lab.pair("limited", 3, 3, [0, 1]);
    let limit = "{packets_per_second: 200, burst_packets: 50}";
    let documents = [
        node(&lab, "default"),
        red.document.yaml(),
        bad.document.yaml(),
        limited.document.clone().with("rate_limit", limit).yaml(),
    ];
    let daemon = start(&lab, &["default"], &documents);
    for pair in [&red, &bad, &limited] {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    // More frames than the card can take, as fast as the host can send: valid packets, and packets that software must answer.
    let router = mac(&bad.document.ports[0].mac);
    for ttl in [64, 1] {
        let ends =
            Ends { macs: [router, bad.left.mac], addresses: [bad.left.address, bad.right.address], ttl };
        let flood = Flood::start(&bad.left.space, vec![frame::udp(ends, [9, 9], &[0; 18])], 1_000_000);
        let flow = Flow::start(&red.left, &red.right, 200, 200);
        until("packets beside the flood", 30, || flow.received() >= 400);
        let (report, sent) = (flow.stop(), flood.stop());
        eprintln!("TTL {ttl}: a flood of {sent} packets, beside it {report}");
        assert!(sent > 10_000 && report.duplicated == 0 && report.reordered == 0, "{report}");
        assert!(report.delivered() >= 0.99, "{report}");
        assert_eq!(red.left.ping(red.left.router, 5), 5);
    }
    // A rate limit uses the host's time: of a thousand packets a second for two seconds, some hundreds pass.
    let flow = Flow::start(&limited.left, &limited.right, 1_000, 200);
    std::thread::sleep(Duration::from_secs(2));
    let report = flow.stop();
    assert!((50..=1_200).contains(&report.received) && report.lost() > 500, "{report}");
    let stats = daemon.cli.stats(limited.name());
    assert!(stats["drops"]["rate_limited"].as_u64().unwrap_or(0) >= report.lost() / 2, "{stats}");
}

/// A MAC address from a text.
pub fn mac(text: &str) -> [u8; 6] {
    let mut bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    std::array::from_fn(|_| bytes.next().unwrap())
}

#[test]
fn a_missing_card_is_reported_and_networks_run_in_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let card = "card: {pci: \"ffff:ff:1f.7\", ports: [p0, p1]}";
    let documents = [format!("{}  {card}\n", lab.node_document("")), red.document.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    red.warm_up();
    assert_eq!(network(&daemon, red.name())["substrate"], "soft");
    let events = daemon.cli.events();
    let down =
        events.iter().find(|event| event["kind"] == "card_down").and_then(|event| event["message"].as_str());
    assert!(down.is_some_and(|text| text.contains("PCI device ffff:ff:1f.7 does not exist")), "{down:?}");
    let refused = daemon.cli.run(&["migrate", red.name(), "--to", "card"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("PCI device ffff:ff:1f.7 does not exist"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_card_whose_process_dies_takes_nothing_with_it() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs = [lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1])];
    let with_card = [node(&lab, "tcam3"), pairs[0].document.yaml(), pairs[1].document.yaml()];
    let mut daemon = start(&lab, &["tcam3"], &with_card);
    let works = |daemon: &Daemon, substrate: &str| {
        for pair in &pairs {
            runs_on(daemon, pair.name(), substrate);
            until("hosts reach each other", 10, || pair.left.ping(pair.right.address, 1) == 1);
        }
    };
    works(&daemon, "card");
    let first = daemon.card_pid().expect("the card has a process");
    // As if the model had found itself in a state that it cannot be in.
    let killed = hue_e2e::shell::run(hue_e2e::shell::command("kill").args(["-ABRT", &first.to_string()]));
    let _ = killed.expect_ok();
    works(&daemon, "soft");
    assert!(daemon.cli.happened("card_down"), "{:?}", daemon.cli.events());
    let problems = daemon.cli.json(&["get", "nodes"])[0]["status"]["problems"].to_string();
    assert!(problems.contains("its process ended (signal: 6 (SIGABRT)"), "{problems}");
    assert_eq!(daemon.card_pid(), None, "it is not left as a zombie");

    // The card can be had again.
    let without = [lab.node_document(""), pairs[0].document.yaml(), pairs[1].document.yaml()];
    daemon.cli.apply(&all(&without), &[]);
    daemon.cli.apply(&all(&with_card), &[]);
    works(&daemon, "card");
    let second = daemon.card_pid().expect("the card has a process");

    // With nothing on the card, it does not outlive its daemon.
    for pair in &pairs {
        let _ = daemon.cli.json(&["migrate", pair.name(), "--to", "soft"]);
    }
    assert_eq!(daemon.card_pid(), Some(second));
    daemon.kill();
    until("the card's process has ended", 10, || daemon.card_pid().is_none());
}
