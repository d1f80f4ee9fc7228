//! Helpers for the tests of this crate.
#![allow(dead_code)] // each test binary uses some of them

use hue_intent::{Errors, Intent, Source, parse};

/// The document of the specification.
pub const RED: &str = r##"apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  colour: "#d62728"
  plane: {kind: ipv4}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24]}
    - {name: right, port: p1, mac: "02:00:00:00:01:02", addresses: [10.2.0.1/24]}
  routes:
    - {to: 10.9.0.0/16, via: 10.2.0.2}
  neighbours:
    - {port: right, address: 10.2.0.2, mac: "02:00:00:00:0a:02"}
  weight: 1
  rate_limit: {packets_per_second: 100000, burst_packets: 1000}
"##;

/// A `Node` with ports p0 and p1.
pub const NODE: &str = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0}, {name: p1, mtu: 1400}]\n";

/// Parses texts as files `a.yaml`, `b.yaml` …
pub fn load(texts: &[&str]) -> Result<Intent, Errors> {
    let names = ('a'..='z').map(|letter| format!("{letter}.yaml"));
    parse(
        texts
            .iter()
            .zip(names)
            .map(|(text, name)| Source { name, bytes: text.as_bytes().to_vec() })
            .collect(),
    )
}

/// The errors of texts, one in each line.
pub fn errors(texts: &[&str]) -> Vec<String> {
    match load(texts) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.list.iter().map(ToString::to_string).collect(),
    }
}

/// [`RED`] with a part of its text replaced; the part must be there.
pub fn red_with(part: &str, other: &str) -> String {
    assert!(RED.contains(part), "{part}");
    RED.replacen(part, other, 1)
}

/// A network with these ports, and more fields of its `spec`.
pub fn network(name: &str, ports: &[&str], more: &str) -> String {
    let ports: String = ports.iter().map(|port| format!("    - {port}\n")).collect();
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n{ports}{more}"
    )
}
