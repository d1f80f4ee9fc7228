//! `validate` and `schema`, and the errors of configurations that the command line must report.

use crate::support::{RED, Scratch};

fn replaced(from: &str, to: &str) -> String {
    assert!(RED.contains(from), "{from}");
    RED.replacen(from, to, 1)
}

#[test]
fn a_valid_configuration_is_described() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    let done = dir.hueplane("validate -f red.yaml -o json").ok();
    let json = done.json();
    assert_eq!(json["valid"], true);
    assert_eq!(json["node"]["ports"], serde_json::json!(["p0", "p1"]));
    assert_eq!(json["networks"][0]["name"], "red");
    assert_eq!(json["networks"][0]["routes"], 1);
    let table = dir.hueplane("validate -f red.yaml").ok().stdout;
    assert!(table.starts_with("valid: node node") && table.contains("\nred "), "{table}");
    let yaml = dir.hueplane("validate -f red.yaml -o yaml").ok().stdout;
    assert!(yaml.starts_with("valid: true\nnode:\n  name: node\n"), "{yaml}");
    assert!(yaml.contains("\nnetworks:\n  - name: red\n    kind: ipv4\n    ports: 2\n"), "{yaml}");
}

/// Each error: its name, a document with it, and the expected parts of the message.
fn faults() -> Vec<(&'static str, String, Vec<&'static str>)> {
    let twice = format!("{RED}---\n{RED}");
    let other =
        |from: &str, to: &str| format!("{RED}---\n{}", replaced("name: red", "name: blue").replace(from, to));
    vec![
        (
            "malformed",
            replaced("metadata: {name: red}", "metadata: {name: red"),
            vec!["red.yaml:", "expected"],
        ),
        (
            "unknown field",
            replaced("weight: 1", "wieght: 1"),
            vec!["red.yaml:14:3: spec.wieght: found an unknown field", "did you mean \"weight\"?"],
        ),
        (
            "wrong type",
            replaced("weight: 1", "weight: heavy"),
            vec!["red.yaml:14:11: spec.weight: found", "expected"],
        ),
        (
            "bad address",
            replaced("10.1.0.1/24", "10.1.0.300/24"),
            vec!["red.yaml:8:", "spec.ports[0].addresses[0]", "10.1.0.300"],
        ),
        (
            "bad mac",
            replaced("02:00:00:00:01:01", "02:00:00:00:01"),
            vec!["red.yaml:8:", "spec.ports[0].mac"],
        ),
        ("duplicate network", twice, vec!["duplicate network \"red\"", "first used in"]),
        ("duplicate port", replaced("name: right", "name: left"), vec!["duplicate virtual port \"left\""]),
        (
            "same mac",
            other("addresses: [10.1.0.1/24]", "addresses: [10.1.0.9/24]"),
            vec!["duplicate MAC 02:00:00:00:01:01 on port \"p0\""],
        ),
        (
            "same address",
            other("02:00:00:00:01:0", "02:00:00:00:02:0"),
            vec!["duplicate address 10.1.0.1 on port \"p0\""],
        ),
        (
            "via off every link",
            replaced("via: 10.2.0.2", "via: 10.3.0.2"),
            vec!["red.yaml:11:", "spec.routes[0].via: found 10.3.0.2, which is not on any link"],
        ),
        (
            "prefix length",
            replaced("10.9.0.0/16", "10.9.0.0/33"),
            vec![
                "red.yaml:11:12: spec.routes[0].to: found \"10.9.0.0/33\"",
                "a prefix length is a number from 0 to 32, not \"33\"",
            ],
        ),
        (
            "prefix length of an address",
            replaced("10.1.0.1/24", "10.1.0.1/-1"),
            vec!["red.yaml:8:", "a prefix length is a number from 1 to 32, not \"-1\""],
        ),
        (
            "three numbers",
            replaced("10.9.0.0/16", "10.9.0/24"),
            vec!["red.yaml:11:12:", "an IPv4 address has 4 numbers, this one has 3"],
        ),
        (
            "host bits",
            replaced("10.9.0.0/16", "10.9.0.1/24"),
            vec!["red.yaml:11:12:", "expected 10.9.0.0/24 (bits beyond the length must be zero)"],
        ),
        (
            "the loopback",
            replaced("port: p0", "port: lo"),
            vec!["spec.ports[0].port: found interface \"lo\"", "use one end of a veth pair"],
        ),
        (
            "a rate without its unit of time",
            replaced(
                "packets_per_second: 100000, burst_packets: 1000",
                "bits_per_second: 10Mbit, burst_bits: 80kbit",
            ),
            vec!["red.yaml:15:33: spec.rate_limit.bits_per_second: found \"10Mbit\"", "such as 10Mbit/s"],
        ),
        ("missing field", replaced("  plane: {kind: ipv4}\n", ""), vec!["plane"]),
        ("unknown kind", replaced("kind: ipv4", "kind: ipv5"), vec!["spec.plane.kind"]),
    ]
}

#[test]
fn every_error_has_its_place() {
    let dir = Scratch::new();
    for (name, text, wants) in faults() {
        dir.write("red.yaml", text);
        let done = dir.hueplane("validate -f red.yaml");
        for want in wants {
            done.fails(3, want);
        }
        let json = dir.hueplane("validate -f red.yaml -o json");
        assert_eq!((json.code, json.json()["valid"].as_bool()), (3, Some(false)), "{name}");
        let json = json.json();
        let fault = &json["errors"][0];
        assert!(
            fault["line"].is_u64() && fault["found"].is_string() && fault["expected"].is_string(),
            "{name}: {fault}"
        );
        let run = dir.hueplane("run -f red.yaml --in p0=absent.pcap --out out");
        assert_eq!(run.code, 3, "{name}");
        assert!(dir.files("out").is_empty() && !dir.path("out").exists());
        assert_eq!(dir.hueplane("trace -f red.yaml --in-port p0 --hex 00").code, 3, "{name}");
    }
}

/// Written with a unit or without, a limit lets the same frames pass.
#[test]
fn rates_have_units() {
    use crate::support::{ipv4, pcap};
    let dir = Scratch::new();
    let frame = ipv4("02:00:00:00:01:01", 64, [10, 1, 0, 9], [10, 9, 0, 1]);
    let frames: Vec<_> = (0..200).map(|at| (at, frame.clone())).collect();
    dir.write("in.pcap", pcap(&frames));
    let mut passed = Vec::new();
    for (rate, burst) in [("1kbit/s", "13kbit"), ("1000", "13000"), ("\"1000bit/s\"", "13000bit")] {
        let limit = format!("bits_per_second: {rate}, burst_bits: {burst}");
        dir.write("red.yaml", replaced("packets_per_second: 100000, burst_packets: 1000", &limit));
        dir.hueplane("validate -f red.yaml").ok();
        dir.hueplane("run -f red.yaml --in p0=in.pcap --out out").ok();
        passed.push(dir.packets("out/p1.pcap").len());
    }
    assert!(
        passed[0] > 0 && passed[0] < frames.len() && passed.iter().all(|one| *one == passed[0]),
        "{passed:?}"
    );
}

#[test]
fn invalid_files_are_reported() {
    let dir = Scratch::new();
    dir.hueplane("validate -f absent.yaml").fails(3, "absent.yaml: cannot be read");
    dir.write("empty.yaml", "");
    dir.hueplane("validate -f empty.yaml").fails(3, "empty.yaml:1:1: document: found no document");
    dir.write("bytes.yaml", [0xff, 0xfe, 0x00, 0x01]);
    dir.hueplane("validate -f bytes.yaml").fails(3, "bytes.yaml:");
    assert_eq!(dir.hueplane("validate").code, 2);
    let stdin = dir.hueplane_with(&["validate", "-f", "-", "-o", "json"], RED).ok();
    assert_eq!(stdin.json()["networks"][0]["name"], "red");
}

#[test]
fn the_schema_is_printed_as_json_yaml_and_table() {
    let dir = Scratch::new();
    let schema = dir.hueplane("schema").ok().json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["$defs"]["Network"].is_object());
    assert!(dir.hueplane("schema -o yaml").ok().stdout.contains("\n  Network:\n"));
    let table = dir.hueplane("schema -o table").ok().stdout;
    assert!(table.contains("rate_limit"), "{table}");
}
