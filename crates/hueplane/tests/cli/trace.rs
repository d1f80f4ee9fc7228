//! `trace`: stages, matches, changes, verdict and reason, and errors.

use crate::support::{RED, SIX, Scratch, hex, ipv4, ipv6, pcap};

const LEFT: &str = "02:00:00:00:01:01";

fn scratch() -> Scratch {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    dir
}

#[test]
fn a_forwarded_ipv6_packet_is_explained() {
    let dir = scratch();
    dir.write("six.yaml", SIX);
    let traced = |to: &str| {
        let frame = ipv6("02:00:00:00:06:01", 64, "2001:db8:1::5", to);
        let args = [
            "trace",
            "-f",
            "red.yaml",
            "-f",
            "six.yaml",
            "--in-port",
            "p0",
            "--hex",
            &hex(&frame),
            "-o",
            "json",
        ];
        dir.hueplane_with(&args, "").ok().json()["networks"][0].clone()
    };
    let network = traced("2001:db8:9::7");
    assert_eq!(network["route"], "2001:db8:9::/48 via 2001:db8:2::2 at 02:00:00:00:0a:02 dev right");
    assert_eq!((&network["verdict"], &network["out_port"]), (&"forward".into(), &"p1".into()));
    let changes = network["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!((&changes[2]["field"], &changes[2]["after"]), (&"hop limit".into(), &"63".into()));
    assert_eq!(traced("2001:db8:2::")["route"], "anycast 2001:db8:2::/128 dev right");
    assert_eq!(traced("2001:db8:77::")["reason"], "no_route");
    // Not looked up.
    assert_eq!(
        (&traced("ff02::1")["reason"], &traced("ff02::1")["route"]),
        (&"local".into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_forwarded_packet_is_explained_stage_by_stage() {
    let dir = scratch();
    let frame = ipv4(LEFT, 64, [10, 1, 0, 5], [10, 9, 1, 2]);
    let args = ["trace", "-f", "red.yaml", "--in-port", "p0", "--hex", &hex(&frame), "-o", "json"];
    let json = dir.hueplane_with(&args, "").ok().json();
    let network = &json["networks"][0];
    let stages: Vec<&str> =
        network["stages"].as_array().unwrap().iter().map(|step| step["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["meter", "ethernet", "header", "lookup", "next_hop", "rewrite"]);
    assert_eq!(json["stages"][0]["stage"], "frame");
    assert_eq!(json["stages"][1]["stage"], "demux");
    assert_eq!(network["row"], "MAC 02:00:00:00:01:01 on port p0");
    assert_eq!(network["virtual_port"], "left");
    assert_eq!(network["route"], "10.9.0.0/16 via 10.2.0.2 at 02:00:00:00:0a:02 dev right");
    assert_eq!((&network["verdict"], &network["out_port"]), (&"forward".into(), &"p1".into()));
    assert_eq!((&json["verdict"], &json["reason"]), (&"forward".into(), &"forward".into()));
    let changes: Vec<(&str, &str, &str)> = network["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["field"].as_str().unwrap(), c["before"].as_str().unwrap(), c["after"].as_str().unwrap()))
        .collect();
    assert_eq!(changes[0], ("destination MAC", LEFT, "02:00:00:00:0a:02"));
    assert_eq!(changes[1], ("source MAC", "02:00:00:00:0b:01", "02:00:00:00:01:02"));
    assert_eq!(changes[2], ("TTL", "64", "63"));
    assert_eq!(changes[3].0, "header checksum");
    let mut want = ipv4("02:00:00:00:0a:02", 63, [10, 1, 0, 5], [10, 9, 1, 2]);
    want[6..12].copy_from_slice(&[2, 0, 0, 0, 1, 2]);
    assert_eq!(network["bytes"], hex(&want));
    let table = dir.hueplane_with(&args[..7], "").ok().stdout;
    for text in [
        "lookup    10.9.1.2: matches 10.9.0.0/16",
        "TTL 64 -> 63",
        "verdict   forward to p1",
        "before",
        "after",
    ] {
        assert!(table.contains(text), "{text} in {table}");
    }
    assert!(!table.contains('\u{1b}'), "no colours without a terminal");
}

/// Every result of a packet, by the name of its outcome.
#[test]
fn every_outcome_occurs() {
    let dir = scratch();
    let good = ipv4(LEFT, 64, [10, 1, 0, 5], [10, 9, 1, 2]);
    let changed = |at: usize, value: u8, fix: bool| {
        let mut frame = good.clone();
        frame[at] = value;
        if fix {
            frame[24..26].copy_from_slice(&[0, 0]);
            let sum = crate::support::checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        frame
    };
    let to = |dst| ipv4(LEFT, 64, [10, 1, 0, 5], dst);
    let mut options = good.clone();
    options[14] = 0x46;
    options.splice(34..34, [1, 1, 1, 1]);
    options[17] += 4;
    options[24..26].copy_from_slice(&[0, 0]);
    let sum = crate::support::checksum(&options[14..38]);
    options[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut long = good.clone();
    long.resize(14 + 1600, 0);
    long[16..18].copy_from_slice(&1600u16.to_be_bytes());
    long[24..26].copy_from_slice(&[0, 0]);
    let sum = crate::support::checksum(&long[14..34]);
    long[24..26].copy_from_slice(&sum.to_be_bytes());
    let cases: Vec<(&str, &str, Vec<u8>)> = vec![
        ("drop", "runt", good[..13].to_vec()),
        ("drop", "too_long", vec![0; 9217]),
        ("drop", "no_network", ipv4("02:00:00:00:09:09", 64, [1, 1, 1, 1], [2, 2, 2, 2])),
        ("punt", "arp", changed(13, 6, false)),
        ("drop", "ethertype", changed(12, 0x86, false)),
        ("drop", "truncated", good[..30].to_vec()),
        ("drop", "version", changed(14, 0x65, false)),
        ("drop", "header_length", changed(14, 0x44, false)),
        ("drop", "total_length", changed(17, 200, false)),
        ("drop", "checksum", changed(24, good[24] ^ 1, false)),
        ("punt", "local", to([10, 2, 0, 1])),
        ("punt", "local", to([224, 0, 0, 5])),
        ("punt", "local", to([10, 1, 0, 255])),
        ("punt", "ttl", changed(22, 1, true)),
        ("punt", "options", options),
        ("drop", "l2_group", changed(0, 3, false)),
        ("drop", "martian_source", ipv4(LEFT, 64, [127, 0, 0, 1], [10, 9, 1, 2])),
        ("drop", "martian_destination", to([127, 0, 0, 1])),
        ("punt", "no_route", to([8, 8, 8, 8])),
        ("punt", "no_neighbour", to([10, 1, 0, 77])),
        ("punt", "mtu", long),
        ("forward", "forward", good.clone()),
    ];
    for (verdict, reason, frame) in cases {
        let args = ["trace", "-f", "red.yaml", "--in-port", "p0", "--hex", &hex(&frame), "-o", "json"];
        let json = dir.hueplane_with(&args, "").ok().json();
        assert_eq!(
            (json["verdict"].as_str(), json["reason"].as_str()),
            (Some(verdict), Some(reason)),
            "{json}"
        );
    }
}

#[test]
fn packets_of_captures_count_from_one() {
    let dir = scratch();
    let packets: Vec<(u64, Vec<u8>)> =
        (1..=3u8).map(|i| (u64::from(i) * 1000, ipv4(LEFT, 60 + i, [10, 1, 0, 5], [10, 9, 0, i]))).collect();
    dir.write("in.pcap", pcap(&packets));
    let one = dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap --packet 2 -o json").ok().json();
    assert_eq!((&one["packet"], &one["bytes"]), (&2.into(), &hex(&packets[1].1).into()));
    let all = dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap -o json").ok().json();
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_eq!(all[1], one);
    let yaml = dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap -o yaml").ok().stdout;
    assert_eq!(yaml.matches("\n  verdict: forward\n").count(), 3, "{yaml}");
    let text = dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap").ok().stdout;
    assert_eq!(text.matches("verdict   forward to p1").count(), 3, "{text}");
    dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap --packet 4")
        .fails(3, "found 3 packets, expected packet 4");
    assert_eq!(dir.hueplane("trace -f red.yaml --in-port p0 --pcap in.pcap --packet 0").code, 2);
}

#[test]
fn a_group_frame_is_explained_for_every_network_on_the_port() {
    let dir = scratch();
    let blue = RED
        .replace("name: red", "name: blue")
        .replace("02:00:00:00:01", "02:00:00:00:02")
        .replace(".0.1/24", ".0.9/24");
    dir.write("blue.yaml", blue);
    let mut frame = ipv4("ff:ff:ff:ff:ff:ff", 64, [10, 1, 0, 5], [10, 9, 1, 2]);
    frame[13] = 6;
    let args =
        ["trace", "-f", "red.yaml", "blue.yaml", "--in-port", "p0", "--hex", &hex(&frame), "-o", "json"];
    let json = dir.hueplane_with(&args, "").ok().json();
    let names: Vec<_> =
        json["networks"].as_array().unwrap().iter().map(|n| n["network"].as_str().unwrap()).collect();
    assert_eq!(names, ["blue", "red"]);
    assert_eq!(json["networks"][0]["reason"], "arp");
    assert!(json["networks"][0]["row"].is_null());
}

#[test]
fn wrong_arguments_and_damaged_captures() {
    let dir = scratch();
    let run = |rest: &str| dir.hueplane(&format!("trace -f red.yaml {rest}"));
    run("--in-port p9 --hex 00").fails(2, "--in-port p9: found port 'p9', expected one of: p0, p1");
    run("--in-port p0 --hex 0g").fails(2, "found 'g' at character 2");
    run("--in-port p0 --hex 000").fails(2, "found half a byte at the end");
    assert_eq!(run("--in-port p0").code, 2);
    assert_eq!(run("--in-port p0 --hex 00 --pcap x").code, 2);
    run("--in-port p0 --pcap absent.pcap").fails(3, "absent.pcap: cannot be read");
    let whole = pcap(&[(1000, ipv4(LEFT, 64, [10, 1, 0, 5], [10, 9, 1, 2]))]);
    dir.write("cut.pcap", &whole[..whole.len() - 1]);
    run("--in-port p0 --pcap cut.pcap")
        .fails(3, "truncated capture: the file ends inside packet 1 at byte offset 24");
}
