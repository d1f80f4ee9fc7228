//! `lab run`: traffic has the exact rate, everything that leaves is counted, and runs are reproducible.

use hue_testdata::full;
use serde_json::{Value, json};

use crate::card::{images, wave_times};
use crate::support::{Done, RED, SIX, Scratch, checksum, ipv4, pcap};

/// Runs `lab run` with the network of `RED` without its rate limit.
fn lab(dir: &Scratch, arguments: &str) -> Done {
    let document = RED.lines().filter(|line| !line.contains("rate_limit")).collect::<Vec<_>>().join("\n");
    dir.write("red.yaml", document);
    dir.hueplane_env(&format!("lab run -f red.yaml {arguments}"), &[("HUEPLANE_IMAGES", images())])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn a_gigabit_of_shortest_frames_is_forwarded_and_timed() {
    let dir = Scratch::new();
    let line = "--image tcam3 --traffic p0=rate:1G,size:64,flows:5 --duration-us 1000 --line 1G --out out";
    let done = lab(&dir, &format!("{line} -o json")).ok();
    let report = done.json();
    // 84 byte times are 672 ns, which are 42 cycles of 16 ns: frames at 42, 84, … below 62,500.
    let offered = 62_499 / 42;
    assert_eq!(report["clock_khz"], 62_500);
    assert_eq!(report["ports"]["p0"]["offered"], offered);
    assert_eq!(report["ports"]["p1"]["sent"], offered);
    assert_eq!(report["networks"]["red"]["forward"], offered);
    assert_eq!(report["total"]["dropped"], 0);
    assert!((number(&report["total"]["offered_gbps"]) - 1.0).abs() < 0.001, "{report}");
    assert!((number(&report["total"]["received_mpps"]) - 1.488).abs() < 0.002, "{report}");
    let latency = &report["latency"];
    assert_eq!(latency["frames"], offered);
    let (cycles, ns) = (&latency["first_word"]["cycles"], &latency["first_word"]["ns"]);
    assert_eq!(number(&ns["median"]), number(&cycles["median"]) * 16.0);
    // Alone on the card, every frame takes the same time, except for an occasional cycle used by the
    // counters.
    let (min, max) = (number(&cycles["min"]), number(&cycles["max"]));
    assert!(min >= 8.0 && max - min <= 2.0, "{latency}");
    // Captured with the card's time: 42 cycles apart, and with the TTL of a forwarded packet.
    let packets = dir.packets("out/p1.pcap");
    assert_eq!(packets.len(), offered);
    assert_eq!(packets[0].0, 16 * (42 + min as u64));
    assert!(packets.iter().all(|(_, bytes)| bytes.len() == 60 && bytes[22] == 63));
    let apart: Vec<u64> = packets.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(apart.iter().all(|ns| ns.abs_diff(672) <= 32), "{apart:?}");
    let again = lab(&dir, &format!("{line} -o json")).ok();
    assert_eq!(again.stdout, done.stdout);
    let other = lab(&dir, &format!("{line},seed:2 -o json").replace("--out out,seed:2", "--out other"));
    assert_eq!(other.ok().json()["total"]["offered"], offered);
}

/// On a line of 2 Mbit/s, a frame takes longer than the limit after which an idle card counts as broken.
#[test]
fn a_slow_line_is_not_an_error() {
    let dir = Scratch::new();
    let line = "--image tcam3 --traffic p0=rate:1G,size:1518 --duration-us 40 --line 2M -o json";
    let report = lab(&dir, line).ok().json();
    assert_eq!((&report["ports"]["p0"]["offered"], &report["ports"]["p1"]["sent"]), (&json!(3), &json!(3)));
    // The first frame leaves at once; the line is free again 1,538 byte times later.
    assert!(number(&report["simulated_ns"]) > 2.0 * 1538.0 * 4000.0, "{report}");
}

#[test]
fn a_wave_shows_the_requested_cycles() {
    let dir = Scratch::new();
    let line = "--image tcam3 --traffic p0=rate:1G,size:64 --duration-us 10 -o json --wave w.fst";
    // Half a clock period in picoseconds.
    const HALF_PS: u64 = 8_000;
    let window = |cycles: &str| {
        let report = lab(&dir, &format!("{line} {cycles}")).ok().json();
        let (from, to) = wave_times(&dir.path("w.fst"));
        (from / HALF_PS, to / HALF_PS, report["cycles"].as_u64().unwrap())
    };
    let (begin, end, cycles) = window("");
    assert!((2 * cycles - 2..=2 * cycles).contains(&(end - begin)), "{begin} to {end}: {cycles} cycles");
    let (from, to, _) = window("--wave-cycles 42-142");
    assert_eq!((from - begin, to - from), (84, 199));
    lab(&dir, "--traffic p0=rate:1G --duration-us 1 --wave-cycles 1-2").fails(2, "--wave <FILE>");
    lab(&dir, "--traffic p0=rate:1G --duration-us 1 --wave no/such/w.fst")
        .fails(3, "the waveform cannot be written");
    lab(&dir, "--image tcam3 --traffic p0=rate:1G --duration-us 1 --wave w.vcd").fails(2, "ends in .fst");
    lab(&dir, "--image tcam3 --traffic p0=rate:1G --duration-us 1 --wave w.fst --wave-cycles 900000-900001")
        .fails(2, "--wave-cycles 900000-900001: the run ended after ");
}

#[test]
fn lines_and_queues_that_are_too_slow_drop_by_reason() {
    let dir = Scratch::new();
    // Two gigabits per second to a line of one, for longer than the output queue can buffer.
    let line = "--traffic p0=rate:2G,size:1518 --duration-us 3000 --line 1G -o json";
    let report = lab(&dir, line).ok().json();
    let full = report["ports"]["p1"]["drop"]["output_queue_full"].as_u64().unwrap();
    // The plane forwarded them: losses behind the plane do not count as its drops.
    let red = &report["networks"]["red"];
    assert_eq!((&red["drop"], &red["lost"]), (&json!({}), &json!({"port_full": full})));
    let sum = |network: &Value| {
        let drop = network["drop"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        network["forward"].as_u64().unwrap() + network["punt"].as_u64().unwrap() + drop
    };
    assert_eq!(red["received"], sum(red), "{red}");
    assert_eq!(report["total"]["dropped"], full);
    let (offered, sent) = (&report["total"]["offered"], &report["total"]["received"]);
    assert_eq!(offered.as_u64().unwrap(), sent.as_u64().unwrap() + full);
    assert!((number(&report["total"]["received_gbps"]) - 1.0).abs() < 0.01, "the line is full: {report}");
    // More than the narrow bus can carry from two ports: the input queues overflow.
    let two = "--image tcam3 --traffic p0=rate:3G,size:1518 --traffic p1=rate:3G,size:1518,to:10.1.0.0/24";
    let report = lab(&dir, &format!("{two} --duration-us 300 -o json")).ok().json();
    let full = |port: &str| report["ports"][port]["drop"]["input_queue_full"].as_u64().unwrap_or(0);
    assert!(full("p0") > 0 && full("p1") > 0, "{report}");
    let punt = report["networks"]["red"]["punt"].as_u64().unwrap();
    assert!(punt > 0, "no neighbour there: {report}");
    assert_eq!(report["networks"]["red"]["received"], sum(&report["networks"]["red"]), "{report}");
    let text = lab(&dir, &format!("{two} --duration-us 300")).ok().stdout;
    assert!(text.contains("LOST") && text.contains("input_queue_full") && !text.contains("NaN"), "{text}");
}

#[test]
fn a_card_with_back_pressure_is_as_fast_as_its_bus() {
    let dir = Scratch::new();
    for (image, limit) in [("tcam3", 8.0), ("default", 2.0)] {
        let line = format!("--image {image} --traffic p0=rate:max,size:64 --duration-us 100 -o json");
        let report = lab(&dir, &line).ok().json();
        let cycles = number(&report["total"]["cycles_per_packet"]);
        assert!(cycles >= limit && cycles < limit * 1.05, "{image}: {cycles} cycles per packet");
        assert_eq!((&report["latency"], &report["total"]["dropped"]), (&Value::Null, &json!(0)));
    }
}

/// As documented in `rtl/card/hue_card.sv`.
#[test]
fn latency_of_a_single_frame_is_as_documented() {
    let dir = Scratch::new();
    const STATED: [(&str, u64); 4] = [("tcam3", 87), ("default", 112), ("tcam1", 87), ("wide", 109)];
    for (image, clocks) in &STATED[..if full() { 4 } else { 2 }] {
        let line =
            format!("--image {image} --traffic p0=rate:50M,size:64 --line 1G --duration-us 100 -o json");
        let report = lab(&dir, &line).ok().json();
        let cycles = &report["latency"]["first_word"]["cycles"];
        assert_eq!((&cycles["min"], &cycles["max"]), (&json!(clocks), &json!(clocks)), "{image}: {report}");
    }
}

#[test]
fn captures_are_sent_once_or_repeatedly() {
    let dir = Scratch::new();
    let frame = |last: u8| (0, ipv4("02:00:00:00:01:01", 9, [10, 1, 0, 9], [10, 9, 0, last]));
    let stranger = (0, ipv4("02:00:00:00:09:09", 9, [10, 1, 0, 9], [10, 9, 0, 1]));
    dir.write("left.pcap", pcap(&[frame(1), frame(2), stranger]));
    let report = lab(&dir, "--traffic p0=left.pcap@100M --out out -o json").ok().json();
    assert_eq!(report["total"]["offered"], 3);
    assert_eq!(report["unclaimed"], json!({"no_network": 1}));
    let packets = dir.packets("out/p1.pcap");
    assert_eq!(packets.iter().map(|(_, bytes)| bytes[33]).collect::<Vec<_>>(), [1, 2]);
    // Frames of 42 bytes are padded to 60 on the wire, but not in the card: 84 byte times of 80 ns.
    assert_eq!((packets[1].0 - packets[0].0, packets[0].1.len()), (6720, 42));
    let report = lab(&dir, "--traffic p0=left.pcap@100M --duration-us 100 -o json").ok().json();
    assert_eq!(report["total"]["offered"], 99_999 / 6720);
}

#[test]
fn rate_limits_use_the_cards_clock() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    let line = "lab run -f red.yaml --traffic p0=rate:1G --duration-us 2000 -o json";
    let report = dir.hueplane_env(line, &[("HUEPLANE_IMAGES", images())]).ok().json();
    // A burst of 1,000, then 100,000 per second.
    let forward = report["networks"]["red"]["forward"].as_u64().unwrap();
    assert!((1199..=1201).contains(&forward), "{report}");
    let dropped = report["networks"]["red"]["drop"]["rate_limited"].as_u64().unwrap();
    assert_eq!(Value::from(forward + dropped), report["total"]["offered"]);
}

#[test]
fn invalid_experiments_are_reported() {
    let dir = Scratch::new();
    dir.write("empty.pcap", pcap(&[]));
    dir.write("damaged.pcap", b"no capture");
    let fails = |arguments: &str, code, text: &str| lab(&dir, arguments).fails(code, text);
    let us = "--duration-us 20";
    fails(us, 2, "--traffic");
    fails(
        &format!("--traffic p0=rate:1G,size:63 {us}"),
        2,
        "expected bytes with check sequence from 64 to 9220",
    );
    fails(&format!("--traffic p0=size:64 {us}"), 2, "no rate: add rate:1G");
    fails(&format!("--traffic p0 {us}"), 2, "expected PORT=TRAFFIC");
    fails(&format!("--traffic p9=rate:1G {us}"), 2, "--traffic: found port 'p9', expected one of: p0, p1");
    fails(&format!("--traffic p0=rate:max p0=rate:max {us}"), 2, "traffic of p0: it has two");
    fails(
        &format!("--traffic p0=rate:30G,size:1518 p0=rate:30G,size:1518 {us}"),
        2,
        "traffic of p0: the rates of its streams add up to more than it carries",
    );
    fails(&format!("--traffic p0=rate:1G --traffic p1=rate:max {us}"), 2, "rate:max makes ports wait");
    fails(
        &format!("--traffic p0=rate:1G,networks:blue {us}"),
        2,
        "found network 'blue', expected one of: red",
    );
    fails(&format!("--traffic p0=rate:1G,to:p7 {us}"), 2, "found to:p7, expected a prefix or one of: p0, p1");
    fails(
        &format!("--traffic p0=rate:1G,to:p0 {us}"),
        2,
        "'red' forwards nothing by p0 to a known neighbour",
    );
    fails("--traffic p0=rate:1G", 2, "set a duration");
    fails("--traffic p0=rate:1G --duration-us 0", 2, "expected a whole number from 1 to 60000000");
    fails(&format!("--traffic p0=rate:1G --line 0 {us}"), 2, "found rate '0'");
    let narrow = "--image tcam3 --duration-us 1000";
    fails(&format!("--traffic p0=rate:9G {narrow}"), 2, "traffic of p0: 9 Gbit/s exceeds the port's bus");
    fails("--traffic p0=absent.pcap@1G", 3, "absent.pcap");
    fails("--traffic p0=damaged.pcap@1G", 3, "damaged.pcap");
    fails("--traffic p0=empty.pcap@1G", 2, "traffic of p0: empty.pcap has no packets");
    fails(&format!("--traffic p0=rate:1G --image tcam9 {us}"), 3, "no image 'tcam9'");
    fails(&format!("--traffic p0=rate:1G --out red.yaml {us}"), 1, "red.yaml");
}

/// Frames of a network of kind `ipv6` are IPv6, long enough for their mark, and with a checksum. Software and the card
/// forward the same ones.
#[test]
fn networks_of_kind_ipv6_get_ipv6() {
    let dir = Scratch::new();
    dir.write("six.yaml", SIX);
    let line = |more: &str| format!("lab run -f six.yaml {more} --duration-us 50 -o json");
    let images = [("HUEPLANE_IMAGES", images())];
    let traffic = "--image sram --traffic p0=rate:1G,size:64-200,flows:5";
    let card = dir.hueplane_env(&line(&format!("{traffic} --out card")), &images).ok().json();
    let soft = dir.hueplane(&line(&format!("{traffic} --on soft --out soft"))).ok().json();
    let offered = soft["networks"]["six"]["received"].as_u64().unwrap();
    assert!(offered > 20, "{soft}");
    for report in [&card, &soft] {
        assert_eq!(report["networks"]["six"]["forward"], offered, "{report}");
        assert_eq!(report["ports"]["p1"]["sent"], offered, "{report}");
    }
    let packets = dir.packets("soft/p1.pcap");
    for (_, bytes) in &packets {
        assert!(bytes.len() >= 80 && bytes[12..14] == [0x86, 0xdd] && bytes[21] == 63, "{bytes:02x?}");
        // To a route's prefix, or to the neighbour itself.
        assert!(matches!(bytes[38..44], [0x20, 1, 0x0d, 0xb8, 0, 9 | 2]), "{bytes:02x?}");
        // The datagram and the pseudo header (RFC 8200 §8.1) add up to zero.
        let length = (bytes.len() - 54) as u16;
        let mut pseudo =
            [&bytes[22..54], &[0, 0], &length.to_be_bytes(), &[0, 0, 0, 17], &bytes[54..]].concat();
        pseudo.resize(pseudo.len().next_multiple_of(2), 0);
        assert_eq!(checksum(&pseudo), 0, "{bytes:02x?}");
    }
    let bytes =
        |packets: Vec<(u64, Vec<u8>)>| packets.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
    assert_eq!(bytes(dir.packets("card/p1.pcap")), bytes(packets));

    let on_soft = |traffic: &str| dir.hueplane(&line(&format!("--on soft --traffic p0=rate:1G,{traffic}")));
    for (traffic, verdict) in [
        ("sort:own", "punt"),
        ("sort:ttl1", "punt"),
        ("sort:multicast", "punt"),
        ("to:2001:db8:9::/64", "forward"),
    ] {
        let report = on_soft(traffic).ok().json();
        let six = &report["networks"]["six"];
        assert!(six["received"].as_u64().unwrap() > 0, "{traffic}: {report}");
        assert_eq!(six["received"], six[verdict], "{traffic}: {report}");
    }
    on_soft("to:10.0.0.0/8").fails(2, "network 'six' is of kind ipv6: add a prefix of its family to `to`");
}

/// Hosts behind the ports of a switch talk to each other: once all have sent, no frame goes to a third port.
#[test]
fn hosts_of_a_switch_talk_to_each_other() {
    let dir = Scratch::new();
    let head = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: lan}\nspec:\n  plane: {kind: l2}\n";
    let ports: String =
        (0..3).map(|n| format!("    - {{name: v{n}, port: p{n}, mac: \"02:00:00:00:07:0{n}\"}}\n")).collect();
    let fixed = "  static_macs:\n    - {mac: \"02:aa:00:00:00:01\", port: v2}\n";
    dir.write("lan.yaml", format!("{head}  ports:\n{ports}{fixed}"));
    let line = |traffic: &str| {
        dir.hueplane(&format!(
            "lab run -f lan.yaml --on soft --traffic {traffic} --duration-us 300 -o json --out out"
        ))
    };
    // Without an answer, a host behind p1 stays unknown: all frames go to both other ports.
    let one = line("p0=rate:1G,to:p1").ok().json();
    let offered = one["networks"]["lan"]["received"].as_u64().unwrap();
    assert!(offered > 300, "{one}");
    for port in ["p1", "p2"] {
        assert_eq!(dir.packets(&format!("out/{port}.pcap")).len() as u64, offered, "{one}");
    }
    let both = line("p0=rate:1G,to:p1 p1=rate:1G,to:p0").ok().json();
    assert_eq!(both["networks"]["lan"]["forward"], 2 * offered, "{both}");
    let strays = dir.packets("out/p2.pcap").len() as u64;
    assert!(strays < offered / 5, "{strays} of {offered}");
    assert!(dir.packets("out/p1.pcap").len() as u64 >= offered);
    // The static address is the only destination behind its port.
    line("p0=rate:1G,to:p2").ok();
    assert!(dir.packets("out/p2.pcap").iter().all(|(_, bytes)| bytes[..6] == [2, 0xaa, 0, 0, 0, 1]));
    assert_eq!(dir.packets("out/p1.pcap").len(), 0);

    line("p0=rate:1G,to:10.0.0.0/8").fails(2, "expected ports in `to`, not prefixes");
    line("p0=rate:1G,sort:own").fails(2, "network 'lan' has no address of its own");
    line("p0=rate:1G,sort:ttl1").fails(2, "kind l2, which does not look at a TTL");
}

/// `--live` reports errors before anything is sent; the tests with interfaces are in `tests/e2e`.
#[test]
fn live_traffic_needs_interfaces() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    let fails = |arguments: &str, code: i32, says: &str| {
        dir.hueplane(&format!("lab run -f red.yaml {arguments}")).fails(code, says);
    };
    let rest = "--traffic p0=rate:1M --duration-us 1000";
    fails(&format!("--live p0 {rest}"), 2, "expected PORT=INTERFACE");
    fails(&format!("--live p0= {rest}"), 2, "expected PORT=INTERFACE");
    fails(&format!("--live p7=lo {rest}"), 2, "--live: found port 'p7', expected one of: p0, p1");
    fails(&format!("--live p1=lo {rest}"), 2, "traffic of p0: no interface is cabled to it; name the one");
    fails(&format!("--live p0=lo p1=lo {rest}"), 3, "lo: it is already cabled to another port");
    fails(&format!("--live p0=lo p0=absent {rest}"), 3, "absent: its port already has an interface");
    fails(&format!("--live p0=absent {rest}"), 3, "absent: no interface here has this name");
    fails(
        &format!("--live p0=lo {rest}"),
        3,
        "lo: the loopback has no Ethernet segment; use one end of a veth pair",
    );
    fails("--live p0=absent --traffic p0=rate:1M", 2, "set a duration");
    fails("--live p0=absent --traffic p0=rate:10T --duration-us 60000000", 4, "use a shorter duration");
    for other in ["--on soft", "--on card", "--image tcam1", "--line 1G", "--wave x.fst"] {
        let says = format!("cannot be used with '{}", other.split(' ').next().unwrap());
        fails(&format!("--live p0=absent {other} {rest}"), 2, &says);
    }
    if !nix::unistd::geteuid().is_root() {
        fails(
            &format!("--live p0=lo {rest}"),
            3,
            "lo: no permission to send and receive on it (CAP_NET_RAW)",
        );
    }
    assert_eq!(dir.files("."), ["red.yaml"]);
}

/// A closed clock gate stops only its plane; without packets almost nothing switches.
#[test]
fn gated_planes_are_stopped() {
    let dir = Scratch::new();
    let labs = format!("{}/../../labs/power", env!("CARGO_MANIFEST_DIR"));
    let files: String =
        ["node", "red", "green", "blue"].map(|name| format!("-f {labs}/{name}.yaml ")).concat();
    let traffic = "--traffic p0=rate:1G,networks:red p1=rate:1G,networks:green p2=rate:1G,networks:blue";
    let line = format!("lab power {files} --image tcam3 {traffic} --cycles 3000");
    let images = [("HUEPLANE_IMAGES", images())];
    let report = dir.hueplane_env(&format!("{line} -o json"), &images).ok().json();
    let states = report["states"].as_array().unwrap();
    let [idle, at_work, gated @ ..] = states.as_slice() else { panic!("{report}") };
    assert_eq!((&idle["state"], &at_work["state"], gated.len()), (&json!("idle"), &json!("at work"), 3));
    assert_eq!(at_work["total"], 100.0);
    assert!(number(&idle["total"]) < 10.0, "{idle}");
    // All instances of the blocks exist.
    let blocks = at_work["blocks"].as_object().unwrap();
    assert!(blocks.len() >= 14 && number(&blocks["between blocks"]) < 30.0, "{at_work}");
    let mut stopped = Vec::new();
    for state in gated {
        assert!(number(&state["total"]) < 95.0, "{state}");
        for plane in ["plane 0", "plane 1", "plane 2"] {
            let (then, now) = (number(&blocks[plane]), number(&state["blocks"][plane]));
            assert!(then > 0.5, "{at_work}");
            if now < then / 5.0 {
                stopped.push((state["network"].clone(), plane));
            } else {
                assert!((now - then).abs() < then / 10.0, "{plane}: {state}");
            }
        }
    }
    // Each gate stops one plane, and each plane one gate.
    assert_eq!(stopped.len(), 3, "{stopped:?}");
    assert_eq!(stopped.iter().map(|(_, plane)| plane).collect::<std::collections::BTreeSet<_>>().len(), 3);
    let text = dir.hueplane_env(&line, &images).ok().stdout;
    assert!(text.contains("red gated") && text.contains("plane 2"), "{text}");
}

/// The card's lines are full at each size, and software forwards all of its frames, whatever the number of networks.
#[test]
fn a_sweep_fills_the_cards_lines() {
    let dir = Scratch::new();
    let line = "lab sweep --networks 3 5 --on-card 3 --sizes 64 1518 --duration-us 300 --frames 3000";
    let images = [("HUEPLANE_IMAGES", images())];
    let report = dir.hueplane_env(&format!("{line} -o json"), &images).ok().json();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let (card, rest, all) = (&row["card"], &row["rest"], &row["software_only"]);
        assert_eq!(
            (&card["image"], &card["networks"], &card["dropped"]),
            (&json!("tcam3"), &json!(3), &json!(0))
        );
        // Within one frame of those in 300 microseconds.
        assert!((number(&card["gbps_per_network"]) - 1.0).abs() < 0.05, "{row}");
        assert!(number(&card["first_word_ns_median"]) > 0.0, "{row}");
        let more = row["networks"].as_u64().unwrap() - 3;
        assert_eq!(rest.get("networks").and_then(Value::as_u64), (more > 0).then_some(more), "{row}");
        assert_eq!(all["networks"], row["networks"]);
        assert!(number(&all["mpps"]) > 0.0, "{row}");
    }
    let text = dir.hueplane_env(line, &images).ok().stdout;
    assert!(text.contains("the card's time") && text.contains("one core of this machine"), "{text}");
    assert_eq!(dir.hueplane_env("lab sweep --networks 16", &images).code, 2);
}
