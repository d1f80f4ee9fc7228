//! Networks of kind `rofl` in documents: settings, labels, and every mistake with its place.

use hue_intent::{LabelPlace, Select, limits};
use serde_json::{Value, json};

use crate::common::{NODE, RED, errors, load};
use crate::evaluate::valid;

/// A network with these settings and labels, which begin in line 10.
fn flat(settings: &str, labels: &[&str]) -> String {
    let labels: String = labels.iter().map(|label| format!("    - {label}\n")).collect();
    format!(
        "apiVersion: hueplane/v1
kind: Network
metadata: {{name: flat}}
spec:
  plane: {{kind: rofl{settings}}}
  ports:
    - {{name: a, port: p0, mac: \"02:00:00:00:08:01\"}}
    - {{name: b, port: p1, mac: \"02:00:00:00:08:02\"}}
  flat_labels:
{labels}"
    )
}

const SHORT: &str = ", label_bits: 32";
const OWN: &str = "{label: \"0x10000000\", own: true}";
const HOST: &str = "{label: 0x20000000, port: a, neighbour: \"02:00:00:00:00:a1\", resident: true}";
const ROUTER: &str = "{label: \"0xffffffff\", port: b, neighbour: \"02:00:00:00:08:11\"}";

fn only(text: &str) -> String {
    let errors = errors(&[text]);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].clone()
}

#[test]
fn labels_have_places() {
    let text = flat(", label_bits: 32, pointers_max: 0, pointer_seconds: 5", &[OWN, HOST, ROUTER]);
    let spec = load(&[&text]).unwrap().networks[0].spec.clone();
    let plane = &spec.plane;
    assert_eq!((plane.label_bits, plane.pointers_max, plane.pointer_seconds), (Some(32), Some(0), Some(5)));
    assert_eq!(spec.select, Select::Port);
    let labels: Vec<u128> = spec.flat_labels.iter().map(|entry| entry.label.bits >> 96).collect();
    assert_eq!(labels, [0x1000_0000, 0x2000_0000, 0xffff_ffff]);
    assert_eq!(spec.flat_labels[0].place, LabelPlace::Own);
    let residents =
        spec.flat_labels.iter().filter(|entry| matches!(entry.place, LabelPlace::At { resident: true, .. }));
    assert_eq!(residents.count(), 1);
}

#[test]
fn a_document_that_is_written_is_read_again() {
    let schema = hue_intent::schema();
    let wide = format!("{{label: \"0x{}\", own: true}}", "0f".repeat(16));
    for text in [flat(SHORT, &[OWN, HOST, ROUTER]), flat("", &[&wide]), flat(", pointers_max: 1024", &[])] {
        let network = load(&[&text]).unwrap().networks[0].clone();
        let document = serde_json::to_value(&network).unwrap();
        assert!(valid(&schema, &schema, &document), "{document}");
        assert_eq!(load(&[&document.to_string()]).unwrap().networks[0], network, "{document}");
    }
    let with = |label: Value| {
        let mut document = serde_json::to_value(&load(&[&flat(SHORT, &[])]).unwrap().networks[0]).unwrap();
        document["spec"]["flat_labels"] = json!([label]);
        valid(&schema, &schema, &document)
    };
    assert!(with(json!({"label": "0x10000000", "own": true})));
    assert!(!with(json!({"label": "0x10000000"})), "nowhere");
    assert!(!with(
        json!({"label": "0x10000000", "own": true, "port": "a", "neighbour": "02:00:00:00:00:01"})
    ));
    assert!(!with(json!({"label": "0x100000", "own": true})), "24 bits");
}

#[test]
fn faulty_settings() {
    for (settings, error) in [
        (
            ", label_bits: 24",
            "5:35: spec.plane.label_bits: found 24, expected a whole number from 32 to 128 bits",
        ),
        (
            ", label_bits: 136",
            "5:35: spec.plane.label_bits: found 136, expected a whole number from 32 to 128 bits",
        ),
        (
            ", label_bits: 36",
            "5:35: spec.plane.label_bits: found 36 bits, expected a multiple of 8: labels are whole bytes",
        ),
        (
            ", pointers_max: 1025",
            "5:37: spec.plane.pointers_max: found 1025, expected a whole number from 0 to 1024",
        ),
        (
            ", pointer_seconds: 0",
            "5:40: spec.plane.pointer_seconds: found 0, expected a whole number from 1 to 86400 seconds",
        ),
        (
            ", sticky: true",
            "5:31: spec.plane.sticky: found sticky with kind rofl, expected none: only kind l2 has this setting",
        ),
    ] {
        assert_eq!(only(&flat(settings, &[])), format!("a.yaml:{error}"));
    }
    assert!(
        only(&RED.replace("{kind: ipv4}", "{kind: ipv4, label_bits: 32}"))
            .contains("only kind rofl has this setting")
    );
}

#[test]
fn faulty_labels() {
    let bad = |labels: &[&str]| only(&flat(SHORT, labels));
    for (label, error) in [
        (
            "{label: \"0x10000\", own: true}",
            "10:15: spec.flat_labels[0].label: found \"0x10000\", expected a label in hexadecimal digits, such as 0x0a000001",
        ),
        (
            "{label: \"0x1000000000\", own: true}",
            "10:15: spec.flat_labels[0].label: found 10 digits, expected 8, as all labels have (plane.label_bits is 32)",
        ),
        (
            "{label: \"0x10000000\"}",
            "10:7: spec.flat_labels[0].port: found nothing, expected the name of a virtual port",
        ),
        ("{label: \"0x10000000\", port: a}", "10:7: spec.flat_labels[0].neighbour: found nothing, expected"),
        (
            "{label: \"0x10000000\", own: true, port: a}",
            "10:46: spec.flat_labels[0].port: found port of an own label, expected none, or a label without own",
        ),
        (
            "{label: \"0x10000000\", port: c, neighbour: \"02:00:00:00:00:01\"}",
            "10:35: spec.flat_labels[0].port: found unknown virtual port \"c\"",
        ),
        (
            "{label: \"0x10000000\", port: a, neighbour: \"03:00:00:00:00:01\"}",
            "10:49: spec.flat_labels[0].neighbour: found",
        ),
        (
            "{label: \"0x10000000\", port: a, neighbour: \"02:00:00:00:00:01\", near: 1}",
            "10:70: spec.flat_labels[0].near: found an unknown field",
        ),
    ] {
        let found = if label.contains("\"0x10000000\"}") {
            errors(&[&flat(SHORT, &[label])])[0].clone()
        } else {
            bad(&[label])
        };
        assert!(found.starts_with(&format!("a.yaml:{error}")), "{label}: {found}");
    }
    let twice = bad(&[OWN, HOST, "{label: \"0x10000000\", port: a, neighbour: \"02:00:00:00:00:01\"}"]);
    assert!(
        twice.starts_with("a.yaml:12:15: spec.flat_labels[2].label: found duplicate label 0x10000000"),
        "{twice}"
    );
    let lan = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: lan}\nspec:\n  plane: {kind: l2}\n  ports: [{name: a, port: p0, mac: \"02:00:00:00:07:01\"}]
  flat_labels: []\n";
    assert!(only(lan).ends_with("found flat_labels with kind l2, expected none: only kind rofl has them"));
    let more = |field: &str| only(&format!("{}{field}", flat(SHORT, &[OWN])));
    assert!(more("  entries: []\n").ends_with("only kind extract has them (see flat_labels)"));
    assert!(more("  routes: []\n").ends_with("this kind does not look at IP (see flat_labels)"));
    assert!(more("  static_macs: []\n").ends_with("only kind l2 has them (see flat_labels)"));
    assert!(more("  table: {quota: 1Mi}\n").contains("this kind has no routes"));
    assert!(more("  select: {by: mac}\n").contains("expected port, which is the default of this kind"));
    let all: Vec<String> = (0..=limits::FLAT_LABELS_MAX)
        .map(|label| format!("{{label: \"0x{label:08x}\", own: true}}"))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert!(bad(&all).contains("found 16385 entries, expected at most 16384"));
    assert_eq!(errors(&[NODE, &flat(SHORT, &all[1..])]), Vec::<String>::new());
}
