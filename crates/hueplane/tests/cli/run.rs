//! `run`: its output and its order, and errors, which leave no files behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{RED, SIX, Scratch, ipv4, ipv6, pcap, pcap_of};

const LEFT: &str = "02:00:00:00:01:01";
const SECOND: u64 = 1_000_000_000;

fn scratch() -> Scratch {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    dir
}

fn good(ttl: u8) -> Vec<u8> {
    ipv4(LEFT, ttl, [10, 1, 0, 5], [10, 9, 1, 2])
}

#[test]
fn frames_reach_the_right_files() {
    let dir = scratch();
    let padded = [good(64), vec![0xee; 18]].concat();
    let packets = vec![
        (SECOND, padded.clone()),
        (2 * SECOND, ipv4(LEFT, 64, [127, 0, 0, 1], [8, 8, 8, 8])),
        (3 * SECOND, good(1)),
        (4 * SECOND, ipv4("02:00:00:00:05:05", 64, [10, 1, 0, 5], [10, 9, 1, 2])),
        (5 * SECOND, vec![1, 2, 3]),
    ];
    dir.write("in.pcap", pcap(&packets));
    let done = dir.hueplane("run -f red.yaml --in p0=in.pcap --out deep/out -o json").ok();
    assert_eq!(
        done.json(),
        json!({
            "networks": {"red": {"received": 3, "forward": 1, "punt": 1, "drop": {"martian_source": 1}}},
            "unclaimed": {"no_network": 1, "runt": 1},
        })
    );
    assert_eq!(dir.files("deep/out"), ["p0.pcap", "p1.pcap", "punt.pcap"]);
    let sent = dir.packets("deep/out/p1.pcap");
    let mut want = ipv4("02:00:00:00:0a:02", 63, [10, 1, 0, 5], [10, 9, 1, 2]);
    want[6..12].copy_from_slice(&[2, 0, 0, 0, 1, 2]);
    want.extend([0xee; 18]);
    assert_eq!(sent, [(SECOND, want)], "rewritten, padding and time kept");
    assert!(dir.packets("deep/out/p0.pcap").is_empty());
    assert_eq!(dir.packets("deep/out/punt.pcap"), [packets[2].clone()], "punted as received");
    let mode = fs::metadata(dir.path("deep/out/p0.pcap")).unwrap().permissions().mode();
    assert_eq!(mode & 0o400, 0o400);
    let table = dir.hueplane("run -f red.yaml --in p0=in.pcap --out out --on soft").ok().stdout;
    assert!(table.contains("martian_source 1") && table.contains("out/punt.pcap 1"), "{table}");
    let yaml = dir.hueplane("run -f red.yaml --in p0=in.pcap --out out -o yaml").ok().stdout;
    assert!(yaml.contains("networks:\n  red:\n    received: 3\n    forward: 1\n"), "{yaml}");
}

#[test]
fn networks_of_both_families_run_side_by_side() {
    let dir = scratch();
    dir.write("six.yaml", SIX);
    let six = |hop_limit, to| ipv6("02:00:00:00:06:01", hop_limit, "2001:db8:1::5", to);
    let packets = vec![
        (SECOND, six(64, "2001:db8:9::7")),
        (2 * SECOND, good(64)),
        (3 * SECOND, six(1, "2001:db8:9::7")),
        (4 * SECOND, six(64, "2001:db8:77::1")),
        (5 * SECOND, six(64, "2001:db8:1::")), // all routers of the link
        (6 * SECOND, ipv4("02:00:00:00:06:01", 64, [10, 1, 0, 5], [10, 9, 1, 2])),
        (7 * SECOND, ipv6(LEFT, 64, "2001:db8:1::5", "2001:db8:9::7")),
    ];
    dir.write("in.pcap", pcap(&packets));
    let done = dir.hueplane("run -f red.yaml -f six.yaml --in p0=in.pcap --out out -o json").ok();
    let networks = json!({
        "red": {"received": 2, "forward": 1, "punt": 0, "drop": {"ethertype": 1}},
        "six": {"received": 5, "forward": 1, "punt": 3, "drop": {"ethertype": 1}},
    });
    assert_eq!(done.json()["networks"], networks);
    let sent = dir.packets("out/p1.pcap");
    let mut want = ipv6("02:00:00:00:0a:02", 63, "2001:db8:1::5", "2001:db8:9::7");
    want[6..12].copy_from_slice(&[2, 0, 0, 0, 6, 2]);
    assert_eq!(sent[0], (SECOND, want));
    assert_eq!(sent.len(), 2);
    assert_eq!(dir.packets("out/punt.pcap").len(), 3);
}

#[test]
fn captures_are_merged_by_time_and_the_same_input_gives_the_same_bytes() {
    let dir = scratch();
    let right = "02:00:00:00:01:02";
    let at = |time, ttl| (time * SECOND, good(ttl));
    let from_right = |time: u64, ttl| (time * SECOND, ipv4(right, ttl, [10, 2, 0, 9], [10, 9, 1, 2]));
    dir.write("a.pcap", pcap(&[at(1, 101), at(3, 103), at(5, 105)]));
    dir.write("b.pcap", pcap(&[from_right(1, 111), from_right(2, 112), from_right(5, 115)]));
    dir.write("unsorted.pcap", pcap(&[at(4, 124), at(2, 122)]));
    let args = "run -f red.yaml --in p0=a.pcap --in p1=b.pcap --in p0=unsorted.pcap -o json --out";
    let first = dir.hueplane(&format!("{args} one")).ok().stdout;
    assert_eq!(dir.hueplane(&format!("{args} two")).ok().stdout, first);
    let order: Vec<(u64, u8)> =
        dir.packets("one/p1.pcap").into_iter().map(|(t, frame)| (t / SECOND, frame[22] + 1)).collect();
    assert_eq!(order, [(1, 101), (1, 111), (2, 112), (2, 122), (3, 103), (4, 124), (5, 105), (5, 115)]);
    for name in dir.files("one") {
        let bytes = |out: &str| fs::read(dir.path(&format!("{out}/{name}"))).unwrap();
        assert_eq!(bytes("one"), bytes("two"), "{name}");
    }
}

#[test]
fn nanoseconds_stay_nanoseconds() {
    let dir = scratch();
    dir.write("a.pcap", pcap_of(&[(SECOND + 123_456_789, good(9))], true, 1));
    dir.write("b.pcap", pcap(&[(SECOND + 5000, good(8))]));
    dir.hueplane("run -f red.yaml --in p0=a.pcap p0=b.pcap --out out").ok();
    let times: Vec<u64> = dir.packets("out/p1.pcap").iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [SECOND + 5000, SECOND + 123_456_789]);
}

#[test]
fn truncated_packets_are_processed_as_they_are() {
    let dir = scratch();
    let mut file = pcap(&[(SECOND, good(9))]);
    file[24 + 12..24 + 16].copy_from_slice(&1500u32.to_le_bytes());
    dir.write("cut.pcap", file);
    let done = dir.hueplane("run -f red.yaml --in p0=cut.pcap --out out -o json").ok();
    assert!(done.stderr.contains("cut.pcap: 1 packets are truncated in the capture"), "{}", done.stderr);
    assert_eq!(done.json()["networks"]["red"]["forward"], 1);
}

#[test]
fn the_rate_limit_runs_on_capture_time() {
    let dir = Scratch::new();
    dir.write(
        "red.yaml",
        RED.replace(
            "packets_per_second: 100000, burst_packets: 1000",
            "packets_per_second: 10, burst_packets: 2",
        ),
    );
    let packets: Vec<_> = (0..10u64).map(|i| (SECOND + i * 50_000_000, good(64))).collect();
    dir.write("in.pcap", pcap(&packets));
    let done = dir.hueplane("run -f red.yaml --in p0=in.pcap --out out -o json").ok();
    // Two at once, then one every 100 ms: at 0, 50, 100, 200, 300 and 400 ms.
    assert_eq!(
        done.json()["networks"]["red"],
        json!({"received": 10, "forward": 6, "punt": 0, "drop": {"rate_limited": 4}})
    );
}

#[test]
fn invalid_captures_leave_no_files() {
    let dir = scratch();
    let whole = pcap(&[(SECOND, good(9)), (2 * SECOND, good(9))]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            whole[..whole.len() - 3].to_vec(),
            "truncated capture: the file ends inside packet 2 at byte offset 82",
        ),
        (whole[..90].to_vec(), "truncated capture: the file ends inside packet 2"),
        (whole[..20].to_vec(), "truncated capture: the file ends inside the file header"),
        (Vec::new(), "found an empty file, expected a pcap or pcapng file"),
        (b"this is no capture at all".to_vec(), "found magic number"),
        (pcap_of(&[], false, 113), "wrong link type: found LINUX_SLL (113), expected ETHERNET (1)"),
    ];
    dir.write("good.pcap", &whole);
    for (bytes, want) in cases {
        dir.write("bad.pcap", bytes);
        dir.hueplane("run -f red.yaml --in p0=good.pcap --in p1=bad.pcap --out new/out").fails(3, want);
        assert!(!dir.path("new").exists(), "{want}");
    }
    dir.hueplane("run -f red.yaml --in p0=absent.pcap --out new").fails(3, "absent.pcap: cannot be read");
    assert!(!dir.path("new").exists());
    // An earlier result is unchanged.
    dir.hueplane("run -f red.yaml --in p0=good.pcap --out out").ok();
    let before = fs::read(dir.path("out/p1.pcap")).unwrap();
    dir.hueplane("run -f red.yaml --in p0=bad.pcap --out out").fails(3, "wrong link type");
    assert_eq!(fs::read(dir.path("out/p1.pcap")).unwrap(), before);
    assert_eq!(dir.files("out"), ["p0.pcap", "p1.pcap", "punt.pcap"]);
}

#[test]
fn wrong_arguments_and_unwritable_outputs() {
    let dir = scratch();
    dir.write("in.pcap", pcap(&[(SECOND, good(9))]));
    dir.hueplane("run -f red.yaml --in p7=in.pcap --out out")
        .fails(2, "found port 'p7', expected one of: p0, p1");
    assert_eq!(dir.hueplane("run -f red.yaml --in in.pcap --out out").code, 2);
    assert_eq!(dir.hueplane("run -f red.yaml --in p0=in.pcap --out out --on paper").code, 2);
    assert_eq!(dir.hueplane("run -f red.yaml --out out").code, 2);
    dir.hueplane("run -f red.yaml --in p0=in.pcap --out in.pcap").fails(1, "in.pcap: cannot be written");
    dir.hueplane("run -f red.yaml --in p0=in.pcap --out in.pcap/out").fails(1, "cannot be written");
    dir.hueplane("run -f red.yaml --in p0=in.pcap --out /proc/hueplane")
        .fails(1, "/proc/hueplane: cannot be written");
    fs::create_dir_all(dir.path("taken/p1.pcap")).unwrap();
    dir.hueplane("run -f red.yaml --in p0=in.pcap --out taken").fails(1, "p1.pcap: cannot be written");
    assert_eq!(dir.files("taken"), ["p1.pcap"]);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let dir = scratch();
    let packets: Vec<_> = (0..4000u64).map(|i| (i, good(9))).collect();
    dir.write("in.pcap", pcap(&packets));
    let mut child = Command::new(env!("CARGO_BIN_EXE_hueplane"))
        .args(["trace", "-f", "red.yaml", "--in-port", "p0", "--pcap", "in.pcap"])
        .current_dir(dir.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_node_document_defines_the_ports() {
    let dir = scratch();
    dir.write(
        "node.yaml",
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec:\n  ports:\n    - {name: p0}\n    - {name: p1}\n    - {name: p2}\n",
    );
    dir.write("in.pcap", pcap(&[(SECOND, good(9))]));
    dir.hueplane("run -f node.yaml -f red.yaml --in p2=in.pcap --out out").ok();
    assert_eq!(dir.files("out"), ["p0.pcap", "p1.pcap", "p2.pcap", "punt.pcap"]);
}

#[test]
fn address_space_is_reserved_for_the_routes_only() {
    let dir = scratch();
    dir.write("in.pcap", pcap(&[(SECOND, good(64))]));
    let args = "run -f red.yaml --in p0=in.pcap --out out -o json";
    // 256 MiB; a table for all possible routes would reserve 6 GiB.
    let done = dir.hueplane_within(256 << 10, args).ok();
    assert_eq!(done.json()["networks"]["red"]["forward"], 1, "{done:?}");
    let traced = dir.hueplane_within(256 << 10, "trace -f red.yaml --in-port p0 --pcap in.pcap").ok();
    assert!(traced.stdout.contains("red"), "{traced:?}");
    // 50,000 routes, one in each /24 with its own next hop: 24 MiB of table at most, 48 MiB reserved.
    let routes: String = (0..50_000)
        .map(|n| format!("    - {{to: 11.{}.{}.0/24, via: 10.2.0.{}}}\n", n / 256, n % 256, 2 + n % 250))
        .collect();
    dir.write("red.yaml", RED.replace("  neighbours:\n", &format!("{routes}  neighbours:\n")));
    let done = dir.hueplane_within(512 << 10, args).ok();
    assert_eq!(done.json()["networks"]["red"]["forward"], 1, "{done:?}");
    // Where routes are not known in advance, an error says what is needed.
    dir.write("red.txt", "10.0.0.0/8 core\n");
    let table = "table size --routes red=red.txt";
    dir.hueplane_within(1 << 20, table).fails(1, "raise the limit on it (`ulimit -v`)");
    let limited = dir.hueplane_within(1 << 20, &format!("{table} --limit 64MiB"));
    assert_eq!(limited.code, 0, "{limited:?}");
}

/// Frames of unknown hosts go to all other ports, those of known ones to one.
#[test]
fn a_switch_learns_where_its_hosts_are() {
    let dir = Scratch::new();
    let port = |n: u8| format!("    - {{name: v{n}, port: p{n}, mac: \"02:00:00:00:07:0{n}\"}}\n");
    let ports: String = (0..3).map(port).collect();
    let head = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: lan}\nspec:\n  plane: {kind: l2}\n  ports:\n";
    dir.write("lan.yaml", format!("{head}{ports}"));
    let frame = |to: u8, from: u8| {
        let mac = |n: u8| if n == 255 { [255; 6] } else { [2, 0xaa, 0, 0, 0, n] };
        [&mac(to)[..], &mac(from), &[0x12, 0x34], &[7; 46]].concat()
    };
    let (ask, answer, known) = (frame(255, 0), frame(0, 1), frame(1, 0));
    dir.write("p0.pcap", pcap(&[(SECOND, ask.clone()), (3 * SECOND, known.clone())]));
    dir.write("p1.pcap", pcap(&[(2 * SECOND, answer.clone())]));
    let words = "run -f lan.yaml --in p0=p0.pcap --in p1=p1.pcap --out out -o json";
    let done = dir.hueplane(words).ok();
    let networks = json!({"lan": {"received": 3, "forward": 3, "punt": 0, "drop": {}}});
    assert_eq!(done.json()["networks"], networks);
    assert_eq!(dir.packets("out/p0.pcap"), [(2 * SECOND, answer)]);
    assert_eq!(dir.packets("out/p1.pcap"), [(SECOND, ask.clone()), (3 * SECOND, known)]);
    assert_eq!(dir.packets("out/p2.pcap"), [(SECOND, ask)]);
}
