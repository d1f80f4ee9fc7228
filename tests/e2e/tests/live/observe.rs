//! Observability: counters that add up, captures that other programs can read, events, explanations.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use hue_e2e::frame::{self, Ends};
use hue_e2e::traffic::Flow;
use hue_e2e::{Pair, Raw, can_run, http, shell, two_networks, until};
use serde_json::Value;

/// Samples of a scrape: name, labels, value.
fn samples(text: &str) -> Vec<(String, BTreeMap<String, String>, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let sample = |line: &str| {
        let (head, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = head.split_once('{').unwrap_or((head, ""));
        let labels = labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once("=\""));
        let labels = labels.map(|(name, text)| (name.to_owned(), text.trim_end_matches('"').to_owned()));
        (name.to_owned(), labels.collect(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

/// Every kind of outcome: packets forwarded, punted and dropped for many reasons.
fn mixed_traffic(pair: &Pair, router: [u8; 6]) {
    let flow = Flow::start(&pair.left, &pair.right, 1000, 100);
    let mut raw = Raw::open(&pair.left.space, "eth0");
    let ends = |to: [u8; 4], ttl| Ends {
        macs: [router, pair.left.mac],
        addresses: [pair.left.address, to.into()],
        ttl,
    };
    let right = pair.right.address.octets();
    let mut broken = frame::udp(ends(right, 64), [1, 2], b"checksum");
    broken[24] ^= 0xff;
    let frames = [
        frame::udp(ends(right, 1), [1, 2], b"expires"),
        frame::udp(ends([203, 0, 113, 7], 64), [1, 2], b"no route"),
        frame::udp(
            Ends { addresses: [[127, 0, 0, 1].into(), right.into()], ..ends(right, 64) },
            [1, 2],
            b"martian",
        ),
        frame::udp(ends(pair.left.router.octets(), 64), [1, 2], b"local"),
        broken,
        frame::ethernet(router, pair.left.mac, 0x88b5).into_iter().chain([0; 46]).collect(),
        frame::udp(Ends { macs: [[2, 9, 9, 9, 9, 9], pair.left.mac], ..ends(right, 64) }, [1, 2], b"nobody"),
    ];
    for _ in 0..50 {
        raw.send(frames.iter().map(Vec::as_slice));
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
}

#[test]
fn plans_follow_measured_traffic() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, blue, daemon) = two_networks();
    // 8 Mbit/s of payload, and its headers.
    let flow = Flow::start(&red.left, &red.right, 1000, 1000);
    let plan = || daemon.cli.json(&["plan", "--from-traffic"]);
    // The daemon measures at its own times: a busy machine may not see it before the first.
    until("rates are known", 60, || {
        let note = plan()["note"].clone();
        assert!(
            note.is_null() || note.as_str().is_some_and(|note| note.contains("not measured yet")),
            "{note}"
        );
        note.is_null()
    });
    let needs = |name: &str| -> u64 {
        let plan = plan();
        let networks = plan["networks"].as_array().into_iter().flatten();
        let found = networks.filter(|network| network["network"] == name);
        found.filter_map(|network| network["needed_bps"].as_u64()).sum()
    };
    // The first measured time may be one before the flow.
    until("the flow's rate is known", 60, || (4_000_000..12_000_000).contains(&needs(red.name())));
    let idle = needs(blue.name());
    assert!(idle < 100_000, "{idle}");
    // The documents declare no bandwidth.
    assert_eq!(daemon.cli.json(&["plan"])["needed_bps"], 0);
    let report = flow.stop();
    assert!(report.lost() == 0, "{report}");
}

#[test]
fn counters_and_metrics_add_up() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, blue, daemon) = two_networks();
    mixed_traffic(&red, [2, 0x72, 1, 0, 1, 1]);
    // Its first packets went through its namespace, which resolved the neighbours.
    until("blue forwards", 20, || {
        blue.left.ping(blue.right.address, 1) == 1
            && daemon.cli.stats(blue.name())["forwarded"].as_u64() > Some(0)
    });
    for pair in [&red, &blue] {
        let stats = daemon.cli.stats(pair.name());
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let sum =
            |map: &Value| map.as_object().into_iter().flatten().map(|(_, count)| number(count)).sum::<u64>();
        let ports = |field: &str| {
            stats["ports"].as_array().into_iter().flatten().map(|p| number(&p[field])).sum::<u64>()
        };
        let [received, forwarded, punted, dropped, sent] =
            ["received", "forwarded", "punted", "dropped", "sent"].map(|field| number(&stats[field]));
        assert!(received > 0 && received == forwarded + punted + dropped, "{stats}");
        assert_eq!((punted, dropped), (sum(&stats["punts"]), sum(&stats["drops"])), "{stats}");
        for (field, total) in [
            ("received", received),
            ("forwarded", forwarded),
            ("punted", punted),
            ("dropped", dropped),
            ("sent", sent),
        ] {
            assert_eq!(ports(field), total, "{field}: {stats}");
        }
    }
    let red_drops = daemon.cli.stats(red.name())["drops"].clone();
    for reason in ["martian_source", "checksum", "ethertype"] {
        assert!(red_drops[reason].as_u64().unwrap_or(0) >= 50, "{reason}: {red_drops}");
    }
    let red_punts = daemon.cli.stats(red.name())["punts"].clone();
    assert!(red_punts["no_route"].as_u64().unwrap_or(0) >= 50, "{red_punts}");

    let answer = http::get(&daemon.cli.socket(), "/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    let samples = samples(&answer.body);
    let total = |name: &str, labels: &[(&str, &str)]| -> f64 {
        let wanted = samples.iter().filter(|(sample, has, _)| {
            sample == name
                && labels.iter().all(|(key, value)| has.get(*key).is_some_and(|text| text == value))
        });
        wanted.map(|(_, _, value)| value).sum()
    };
    for pair in [&red, &blue] {
        let network = ("network", pair.name());
        let packets = |verdict| total("hueplane_network_packets_total", &[network, ("verdict", verdict)]);
        assert!(packets("forward") > 0.0, "{}", answer.body);
        assert_eq!(packets("drop"), total("hueplane_network_drops_total", &[network]), "drops by reason");
        assert_eq!(packets("punt"), total("hueplane_network_punts_total", &[network]), "punts by reason");
        let by_port = total("hueplane_network_port_packets_total", &[network]);
        assert_eq!(total("hueplane_network_packets_total", &[network]), by_port, "packets by port");
    }
    // Every series of a network names the network.
    for (name, labels, _) in samples.iter().filter(|(name, ..)| name.starts_with("hueplane_network_")) {
        assert!(labels.contains_key("network"), "{name} {labels:?}");
    }
}

#[test]
fn captures_are_readable_by_other_programs() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, red, blue, daemon) = two_networks();
    let file = lab.folder().join("red.pcapng");
    let arguments = ["capture", "--network", red.name(), "--count", "40", "-w", &file.to_string_lossy()];
    let mut capture = daemon.cli.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
    // The capture starts some time after the command; traffic continues until it has enough packets.
    until("forty packets are captured", 30, || {
        let _ = red.left.ping(red.right.address, 2);
        let _ = red.left.ping_with(red.right.address, 1, &["-t", "1"]);
        let _ = blue.left.ping(blue.right.address, 1);
        capture.try_wait().unwrap().is_some()
    });
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.comment",
        "-e",
        "ip.src",
        "-e",
        "_ws.col.Protocol",
    ];
    let mut command = shell::command("tshark");
    let output = shell::run(command.arg("-r").arg(&file).args(fields)).expect_ok();
    let rows: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 40, "{output}");
    let interfaces: Vec<String> = ["left", "right"].map(|side| format!("{}/{side}", red.name())).to_vec();
    for side in &interfaces {
        assert!(rows.iter().any(|row| row[0] == side), "nothing of {side}: {output}");
    }
    assert!(
        rows.iter().all(|row| interfaces.iter().any(|name| row[0] == name)),
        "of another network: {output}"
    );
    assert!(rows.iter().all(|row| !row[1].is_empty()), "each has a verdict: {output}");
    for word in ["forward", "punt ttl", "control"] {
        assert!(rows.iter().any(|row| row[1].contains(word)), "no {word}: {output}");
    }
    // To standard output, of a physical port, truncated.
    let arguments = ["capture", "--port", "p0", "--count", "10", "--snap", "60", "-w", "-"];
    let capture =
        daemon.cli.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let reader = std::thread::spawn(move || capture.wait_with_output().unwrap());
    until("ten packets are captured", 30, || {
        let _ = blue.left.ping(blue.right.address, 2);
        reader.is_finished()
    });
    let piped = lab.folder().join("piped.pcapng");
    std::fs::write(&piped, reader.join().unwrap().stdout).unwrap();
    let lengths = ["-T", "fields", "-e", "frame.cap_len"];
    let output = shell::run(shell::command("tshark").arg("-r").arg(&piped).args(lengths)).expect_ok();
    assert_eq!(output.stdout.lines().count(), 10, "{output}");
    assert!(output.stdout.lines().all(|line| line.parse::<u32>().unwrap() <= 60), "{output}");
}

#[test]
fn a_slow_reader_of_a_capture_holds_up_nobody() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, _blue, daemon) = two_networks();
    let mut capture = daemon.cli.command(&["capture", "-w", "-"]).stdout(Stdio::piped()).spawn().unwrap();
    let flow = Flow::start(&red.left, &red.right, 5000, 1000);
    // Nobody reads.
    std::thread::sleep(Duration::from_secs(2));
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
    capture.kill().unwrap();
    capture.wait().unwrap();
    assert_eq!(red.left.ping(red.right.address, 3), 3);
}

#[test]
fn events_have_numbers_and_are_followed() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, _blue, daemon) = two_networks();
    let events = daemon.cli.events();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence"].as_u64()).collect();
    assert!(!numbers.is_empty() && numbers.windows(2).all(|pair| pair[0] < pair[1]), "{events:?}");
    let last = *numbers.last().unwrap();
    let since = last.to_string();
    let mut follow = daemon.cli.command(&["events", "--since", &since, "--follow", "-o", "json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    daemon.cli.apply(&red.document.clone().with("weight", "9").yaml(), &[]);
    lab.node().ip(&["link", "set", "p1", "down"]);
    let mut seen = Vec::new();
    until("changes are among the events", 20, || {
        seen.extend(receiver.try_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok()));
        ["applied", "network_changed", "port_down"]
            .iter()
            .all(|kind| seen.iter().any(|event| event["kind"] == *kind))
    });
    let numbers: Vec<u64> = seen.iter().filter_map(|event| event["sequence"].as_u64()).collect();
    assert_eq!(numbers[0], last + 1, "{seen:?}");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seen:?}");
    follow.kill().unwrap();
    follow.wait().unwrap();
    reader.join().unwrap();

    // The same as server-sent events: each has its number as id, so that a client can continue where it stopped.
    let request = format!(
        "GET /v1/events?since={last}&follow=true HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
    );
    let answer = http::raw(&daemon.cli.socket(), request.as_bytes(), Duration::from_secs(1));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.to_lowercase().contains("text/event-stream"), "{answer:?}");
    assert!(
        answer.body.contains(&format!("id: {}", last + 1))
            || answer.body.contains(&format!("id:{}", last + 1)),
        "{answer:?}"
    );
}

#[test]
fn every_command_shows_tables_json_and_yaml() {
    if !can_run(&[]) {
        return;
    }
    let (_lab, red, _blue, daemon) = two_networks();
    let name = red.name();
    for arguments in [
        vec!["get", "nodes"],
        vec!["get", "networks"],
        vec!["get", "networks", name],
        vec!["get", "ports"],
        vec!["get", "ports", "p0"],
        vec!["get", "routes"],
        vec!["get", "routes", "-n", name],
        vec!["get", "neighbours", "-n", name],
        vec!["get", "tables"],
        vec!["stats"],
        vec!["stats", name],
        vec!["events"],
    ] {
        let table = daemon.cli.run(&arguments).expect_ok();
        assert!(!table.stdout.trim().is_empty(), "{table}");
        assert!(!daemon.cli.json(&arguments).is_null());
        let mut yaml = arguments.clone();
        yaml.extend(["-o", "yaml"]);
        let yaml = daemon.cli.run(&yaml).expect_ok();
        assert!(yaml.stdout.contains(": "), "{yaml}");
    }
    let neighbours = daemon.cli.json(&["get", "neighbours", "-n", name]);
    let hosts: Vec<&Value> = neighbours.as_array().into_iter().flatten().map(|n| &n["address"]).collect();
    for host in [&red.left, &red.right] {
        assert!(hosts.iter().any(|address| **address == host.address.to_string()), "{neighbours}");
    }
    // A packet explained with the running state: the neighbour's MAC address was learned, not configured.
    let ends = Ends {
        macs: [[2, 0x72, 1, 0, 1, 1], red.left.mac],
        addresses: [red.left.address, red.right.address],
        ttl: 64,
    };
    let hex: String = frame::udp(ends, [1, 2], b"why").iter().map(|byte| format!("{byte:02x}")).collect();
    let trace =
        daemon.cli.run(&["trace", "--live", "--in-port", "p0", "--hex", &hex, "-o", "json"]).expect_ok();
    assert!(
        trace.stdout.contains("forward") && trace.stdout.contains(&hue_e2e::lab::text(red.right.mac)),
        "{trace}"
    );
    let doctor = daemon.cli.run(&["doctor", "-o", "json"]);
    assert!(doctor.json().is_array() || doctor.json().is_object(), "{doctor}");
}
