//! Networks of kind `extract`, seen from their hosts: frames that are not IP, forwarded by their first 64 bits.

use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::raw::{Flood, Raw, Sniffer, until_seen};
use hue_e2e::{Daemon, Lab, can_run, until};
use serde_json::json;

use crate::card::{node, runs_on, start};
use crate::l2;
use crate::migrate::move_to;

/// Local Experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// A network on the first three ports of the node, whose key is the first 64 bits of a frame.
fn document(lab: &Lab, entries: &[String]) -> String {
    let port = |at: usize| {
        let (name, mac) = (&lab.ports()[at], text([2, 0, 0, 0, 0x50, at as u8]));
        format!("    - {{name: v{at}, port: {name}, mac: \"{mac}\"}}\n")
    };
    let ports: String = (0..lab.ports().len()).map(port).collect();
    let entries: String = entries.iter().map(|entry| format!("    - {entry}\n")).collect();
    let name = lab.name("bits");
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  \
         plane: {{kind: extract, key: [{{offset: 0, bytes: 8}}]}}\n  ports:\n{ports}  entries:\n{entries}"
    )
}

/// The first 64 bits of what hosts send to this address: their own addresses begin with 02:bb.
fn to(host: [u8; 6]) -> String {
    let digits: String = host.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("match: \"0x{digits}02bb\"")
}

fn frame(destination: [u8; 6], source: [u8; 6], last: u8) -> Vec<u8> {
    let mut frame = [&destination[..], &source, &ETHERTYPE, &[last]].concat();
    frame.resize(60, 7);
    frame
}

fn is_ours(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHERTYPE)
}

/// An address that no host has.
const OLD: [u8; 6] = [2, 0xbb, 0, 0, 0, 0x99];
const PUNTED: [u8; 6] = [3, 0, 0, 0, 0, 0x77];
const NOBODY: [u8; 6] = [2, 0xbb, 0, 0, 0, 0x77];

#[test]
fn frames_are_forwarded_by_their_first_64_bits() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = l2::hosts(&lab, 3);
    let macs = [hosts[0].mac, hosts[1].mac, hosts[2].mac];
    let name = lab.name("bits");
    // A router has addresses on the same ports.
    let four = lab.pair("four", 2, 2, [0, 1]);
    let own = [2, 0, 0, 0, 0x50, 1];
    let entries = |second: usize| {
        vec![
            format!("{{{}, port: v0}}", to(macs[0])),
            format!("{{{}, port: v{second}}}", to(macs[1])),
            format!("{{{}, port: v2}}", to(macs[2])),
            format!(
                "{{{}, port: v1, destination: \"{}\", source: \"{}\"}}",
                to(OLD),
                text(macs[1]),
                text(own)
            ),
            format!("{{{}, action: punt}}", to(PUNTED)),
            "{match: \"0x02bb000000000000/40\", action: drop}".to_owned(),
        ]
    };
    let documents =
        |second: usize| all(&[lab.node_document(""), document(&lab, &entries(second)), four.document.yaml()]);
    let mut daemon = Daemon::start(&lab, &documents(1));
    runs_on(&daemon, &name, "soft");
    four.warm_up();

    // Exactly the host of the entry gets them, unchanged.
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let watch = |at: usize| Sniffer::start(&hosts[at].space, "eth0", is_ours);
    let (second, third) = (watch(1), watch(2));
    let sent: Vec<Vec<u8>> = (0..50).map(|number| frame(macs[1], macs[0], number)).collect();
    assert_eq!(socket.send(sent.iter().map(Vec::as_slice)), 50);
    let count = |of: &str, why: &str| daemon.cli.stats(&name)[of][why].as_u64().unwrap_or(0);
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    until("all are forwarded", 20, || forwarded() == 50);
    let seen = second.stop();
    assert_eq!((seen.wanted, &seen.frames), (50, &sent));
    assert_eq!(third.stop().wanted, 0, "the third host saw frames for the second");

    // Other actions.
    let second = watch(1);
    let others = [frame(OLD, macs[0], 1), frame(PUNTED, macs[0], 2), frame(NOBODY, macs[0], 3)];
    // Bytes 6 and 7 are the sender's: these two match no entry of their destination.
    let strange = [macs[1], PUNTED].map(|destination| frame(destination, [6, 0, 0, 0, 0, 1], 4));
    assert_eq!(socket.send(others.iter().chain(&strange).map(Vec::as_slice)), 5);
    until("each is counted", 20, || {
        count("punts", "punt_entry") == 1
            && count("drops", "drop_entry") == 2
            && count("drops", "no_entry") >= 1
    });
    let seen = second.stop();
    assert_eq!(seen.frames, [frame(macs[1], own, 1)], "with other MAC addresses");

    // What the user sees.
    let listed = daemon.cli.json(&["get", "entries", "-n", &name]);
    assert_eq!(listed.as_array().map(Vec::len), Some(6), "{listed}");
    let rewriting = json!({"network": name, "index": 3, "match": "0x02bb0000009902bb", "action": "forward",
        "port": "v1", "destination": text(macs[1]), "source": text(own)});
    assert_eq!(listed[3], rewriting);
    assert_eq!(
        listed[5],
        json!({"network": name, "index": 5, "match": "0x02bb000000000000/40", "action": "drop"})
    );
    assert_eq!(daemon.cli.json(&["get", "entries", "-n", four.name()]), json!([]));
    let table = daemon.cli.run(&["get", "entries"]).expect_ok();
    assert!(table.stdout.contains("0x02bb0000009902bb") && table.stdout.contains("punt"), "{table}");
    let hex: String = sent[0].iter().map(|byte| format!("{byte:02x}")).collect();
    let port = &lab.ports()[0];
    let trace = daemon.cli.run(&["trace", "--live", "--in-port", port, "--hex", &hex]).expect_ok();
    assert!(trace.stdout.contains("matches entries[1], 0x02bb0000000202bb"), "{trace}");

    // All entries change at once while frames flow, and none is lost.
    let (second, third) = (watch(1), watch(2));
    let flood = Flood::start(&hosts[0].space, vec![frame(macs[1], macs[0], 9)], 2_000);
    until("frames flow", 20, || flood.sent() > 500);
    let _ = daemon.cli.apply(&documents(2), &[]);
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 500);
    // A document with an error changes nothing.
    let wrong = documents(2).replace("action: punt", "action: pass");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(refused.code != 0 && refused.stderr.contains("entries[4].action: found \"pass\""), "{refused}");
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == 51 + sent);
    let (second, third) = (second.stop().wanted, third.stop().wanted);
    assert_eq!(second + third, sent);
    assert!(second >= 500 && third >= 500, "{second} {third}");
    assert_eq!(four.left.ping(four.right.address, 10), 10);

    // A daemon that comes back has them.
    daemon.kill();
    daemon.respawn(&lab);
    runs_on(&daemon, &name, "soft");
    until_seen(&mut socket, &frame(macs[1], macs[0], 11), || watch(2));
    until("it is counted", 20, || daemon.cli.stats(&name)["forwarded"].as_u64() >= Some(1));
}

#[test]
fn beside_a_card_such_a_network_runs_in_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let hosts = l2::hosts(&lab, 2);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let name = lab.name("bits");
    let entries: Vec<String> =
        hosts.iter().zip(0..).map(|(host, at)| format!("{{{}, port: v{at}}}", to(host.mac))).collect();
    let documents = [node(&lab, "default"), document(&lab, &entries), four.document.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, four.name(), "card");
    runs_on(&daemon, &name, "soft");
    let arrive = || {
        let watch = Sniffer::start(&hosts[1].space, "eth0", is_ours);
        let mut socket = Raw::open(&hosts[0].space, "eth0");
        let frames: Vec<Vec<u8>> = (0..20).map(|number| frame(hosts[1].mac, hosts[0].mac, number)).collect();
        let before = daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
        assert_eq!(socket.send(frames.iter().map(Vec::as_slice)), 20);
        until("all are forwarded", 20, || daemon.cli.stats(&name)["forwarded"].as_u64() == Some(before + 20));
        watch.stop().wanted
    };
    assert_eq!(arrive(), 20);
    let why = daemon.cli.json(&["get", "placements", &name]).to_string();
    assert!(why.contains("image default has no kind extract"), "{why}");
    let moved = daemon.cli.run(&["migrate", &name, "--to", "card"]);
    assert!(moved.code != 0 && moved.stderr.contains("kind extract"), "{moved}");
    for to in ["soft", "card"] {
        let _ = daemon.cli.run(&["migrate", four.name(), "--to", to]).expect_ok();
        assert_eq!(arrive(), 20);
    }
}

/// Moves between card and software, and other entries on the card, while frames flow: none is lost, and the user sees the same.
#[test]
fn such_a_network_moves_between_card_and_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let hosts = l2::hosts(&lab, 2);
    let name = lab.name("bits");
    let own = [2, 0, 0, 0, 0x50, 1];
    // The first entry decides; then as many as there may be, and one more.
    let entries = |rewrites: bool, count: usize| -> Vec<String> {
        let source = if rewrites { format!(", source: \"{}\"", text(own)) } else { String::new() };
        let first = format!("{{{}, port: v1{source}}}", to(hosts[1].mac));
        let others = (1..count).map(|at| format!("{{match: \"0x03{at:02x}000000000000\", action: punt}}"));
        [first].into_iter().chain(others).collect()
    };
    let documents =
        |rewrites: bool, count: usize| [node(&lab, "kinds"), document(&lab, &entries(rewrites, count))];
    let daemon = start(&lab, &["kinds"], &documents(false, 64));
    let moves = |to: &str| move_to(&daemon, &name, to);
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    runs_on(&daemon, &name, "card");
    let watch = Sniffer::start(&hosts[1].space, "eth0", is_ours);
    let rewritten =
        Sniffer::start(&hosts[1].space, "eth0", move |frame| is_ours(frame) && frame[6..12] == own);
    let flood = Flood::start(&hosts[0].space, vec![frame(hosts[1].mac, hosts[0].mac, 9)], 500);
    until("frames flow", 20, || flood.sent() > 100);
    moves("soft");
    moves("card");
    let _ = daemon.cli.apply(&all(&documents(true, 64)), &[]);
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 100);
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == sent);
    assert_eq!(watch.stop().wanted, sent);
    let rewritten = rewritten.stop().wanted;
    assert!(rewritten > 50 && rewritten < sent, "{rewritten} of {sent}");

    // One more entry than the card takes.
    let _ = daemon.cli.apply(&all(&documents(true, 65)), &[]);
    runs_on(&daemon, &name, "soft");
    let why = daemon.cli.json(&["get", "placements", &name]).to_string();
    assert!(why.contains("needs 65 entries of one network: image kinds has 64"), "{why}");
    let refused = daemon.cli.run(&["migrate", &name, "--to", "card"]);
    assert!(refused.code != 0, "{refused}");
}
