//! Runs every packet of every real capture through every command that reads packets, without a panic.

use std::fs;
use std::path::PathBuf;

use crate::support::Scratch;

/// Two networks that together claim every frame of p0, so that no packet stops at design select.
pub const ALL: &str = r#"
apiVersion: hueplane/v1
kind: Network
metadata: {name: everything}
spec:
  plane: {kind: ipv4}
  select: {by: port}
  ports:
    - {name: in, port: p0, mac: "02:00:00:00:01:01", addresses: [10.255.0.1/24]}
    - {name: out, port: p1, mac: "02:00:00:00:01:02", addresses: [10.254.0.1/24], mtu: 600}
  routes:
    - {to: 0.0.0.0/0, via: 10.254.0.2}
    - {to: 192.168.0.0/16, via: 10.254.0.3}
    - {to: 10.0.0.0/8, port: out}
  neighbours:
    - {port: out, address: 10.254.0.2, mac: "02:00:00:00:0a:02"}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: tunnels}
spec:
  plane: {kind: ipv4}
  select: {by: inner, prefixes: [192.168.0.0/16, 172.16.0.0/12]}
  ports:
    - {name: in, port: p0, mac: "02:00:00:00:02:01", addresses: [10.253.0.1/24]}
  rate_limit: {packets_per_second: 50, burst_packets: 20}
"#;

pub fn captures() -> Vec<PathBuf> {
    let Some(dir) = hue_testdata::path("pcap") else { return Vec::new() };
    let all = fs::read_dir(&dir).unwrap().chain(fs::read_dir(dir.join("ndpi")).unwrap());
    let mut files: Vec<PathBuf> =
        all.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

#[test]
fn real_captures_run_and_add_up() {
    let dir = Scratch::new();
    dir.write("all.yaml", ALL);
    let mut total = 0;
    for file in captures() {
        let name = file.display().to_string();
        let run = ["run", "-f", "all.yaml", "--in", &format!("p0={name}"), "--out", "out", "-o", "json"];
        let done = dir.hueplane_with(&run, "");
        let trace = ["trace", "-f", "all.yaml", "--in-port", "p0", "--pcap", &name, "-o", "json"];
        let traced = dir.hueplane_with(&trace, "");
        if name.ends_with("BGP_redist.pcap") {
            done.fails(3, "wrong link type: found C_HDLC (104), expected ETHERNET (1)");
            traced.fails(3, "wrong link type: found C_HDLC (104)");
            continue;
        }
        let report = done.ok().json();
        let traced = traced.ok().json();
        let count = |value: &serde_json::Value| value.as_u64().unwrap();
        let sum = |map: &serde_json::Value| map.as_object().unwrap().values().map(count).sum::<u64>();
        let mut received = sum(&report["unclaimed"]);
        let mut forward = 0;
        let mut punt = 0;
        for network in report["networks"].as_object().unwrap().values() {
            let drops = sum(&network["drop"]);
            assert_eq!(
                count(&network["received"]),
                count(&network["forward"]) + count(&network["punt"]) + drops
            );
            received += count(&network["received"]);
            forward += count(&network["forward"]);
            punt += count(&network["punt"]);
        }
        let packets = traced.as_array().unwrap();
        // A trace has full token buckets, and a group frame is received by both networks.
        assert!(received >= packets.len() as u64, "{name}");
        assert_eq!(dir.packets("out/punt.pcap").len() as u64, punt, "{name}");
        let sent = dir.packets("out/p0.pcap").len() + dir.packets("out/p1.pcap").len();
        assert_eq!(sent as u64, forward, "{name}");
        total += packets.len();
        dir.hueplane_with(&["trace", "-f", "all.yaml", "--in-port", "p0", "--pcap", &name], "").ok();
    }
    assert!(total > 4000 || captures().is_empty(), "{total}");
}

/// All captures at once, on both ports: one long run in order of time.
#[test]
fn real_captures_run_together_twice_with_equal_bytes() {
    let dir = Scratch::new();
    dir.write("all.yaml", ALL);
    let mut args: Vec<String> = ["run", "-f", "all.yaml", "-o", "json"].map(str::to_owned).to_vec();
    for (index, file) in captures().iter().filter(|path| !path.ends_with("BGP_redist.pcap")).enumerate() {
        args.extend(["--in".to_owned(), format!("p{}={}", index % 2, file.display())]);
    }
    if args.len() == 5 {
        return;
    }
    let mut runs = Vec::new();
    for out in ["one", "two"] {
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(["--out", out]);
        let stdout = dir.hueplane_with(&args, "").ok().stdout;
        let files: Vec<Vec<u8>> =
            dir.files(out).iter().map(|name| fs::read(dir.path(&format!("{out}/{name}"))).unwrap()).collect();
        assert_eq!(files.len(), 3);
        runs.push((stdout, files));
    }
    assert!(runs[0] == runs[1]);
}
