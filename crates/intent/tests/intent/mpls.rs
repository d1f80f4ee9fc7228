//! Networks of kind `mpls` in documents: labels, and every mistake with its place.

use hue_intent::{LabelAction, Select};
use hue_planes::mpls::Ttl;

use crate::common::{errors, load};
use crate::evaluate::valid;

const PORTS: &str = "  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:05:01\"}
    - {name: b, port: p1, mac: \"02:00:00:00:05:02\"}
";
const TO: &str = "port: b, neighbour: \"02:00:00:00:00:0b\"";

/// A network with these labels and further fields.
fn network(labels: &str, more: &str) -> String {
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: red}}\nspec:\n  plane: {{kind: mpls}}\n{PORTS}  labels:\n{labels}{more}"
    )
}

fn entry(fields: &str) -> String {
    network(&format!("    - {{{fields}}}\n"), "")
}

fn only(text: &str) -> String {
    let errors = errors(&[text]);
    assert_eq!(errors.len(), 1, "{text}\n{errors:#?}");
    errors[0].clone()
}

#[test]
fn labels_are_swapped_pushed_and_popped() {
    let text = network(
        &format!(
            "    - {{label: 16, swap: 200, {TO}}}\n    - {{label: 1048575, push: [300, 0], {TO}}}\n    \
             - {{label: 17, swap: 2, push: [301], {TO}}}\n    - {{label: 18, pop: true, {TO}}}\n    \
             - {{label: 19, action: drop}}\n    - {{label: 20, action: punt}}\n"
        ),
        "",
    );
    let intent = load(&[&text]).unwrap();
    let spec = &intent.networks[0].spec;
    assert_eq!((spec.plane.ttl, &spec.select), (Ttl::Uniform, &Select::Mac));
    let labels = |at: usize| match &spec.labels[at].action {
        LabelAction::Forward { labels, .. } => labels.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        [labels(0), labels(1), labels(2), labels(3)],
        [vec![200], vec![1_048_575, 300, 0], vec![2, 301], vec![]]
    );
    assert_eq!([&spec.labels[4].action, &spec.labels[5].action], [&LabelAction::Drop, &LabelAction::Punt]);
    // What is written is read again as the same.
    let written = serde_json::to_string(&intent.networks[0]).unwrap();
    assert_eq!(load(&[&written]).unwrap().networks[0].spec, *spec, "{written}");
    let schema = hue_intent::schema();
    let fits = |text: &str| valid(&schema, &schema, &serde_json::from_str(text).unwrap());
    assert!(fits(&written));
    for (from, to) in [("\"swap\":200", "\"swap\":3"), ("\"pop\":true", "\"swap\":3"), ("\"swap\":200,", "")]
    {
        assert!(written.contains(from) && !fits(&written.replacen(from, to, 1)), "{from}");
    }
    assert!(written.contains("{\"label\":1048575,\"push\":[300,0],\"port\":\"b\""), "{written}");

    let pipe = text.replace("{kind: mpls}", "{kind: mpls, ttl: pipe}") + "  select: {by: port}\n";
    let spec = &load(&[&pipe]).unwrap().networks[0].spec;
    assert_eq!((spec.plane.ttl, &spec.select), (Ttl::Pipe, &Select::Port));
}

#[test]
fn mistakes_in_labels() {
    let at = "a.yaml:10:";
    for (fields, wanted) in [
        (format!("label: 15, swap: 20, {TO}"), "found 15, expected a whole number from 16 to 1048575"),
        (
            format!("label: 1048576, swap: 20, {TO}"),
            "found 1048576, expected a whole number from 16 to 1048575",
        ),
        (format!("label: x, swap: 20, {TO}"), "spec.labels[0].label: found \"x\""),
        (format!("swap: 20, {TO}"), "spec.labels[0].label: found nothing, expected a label, such as 100"),
        (
            format!("label: 20, swap: 3, {TO}"),
            "found 3, expected 0 or 2 (explicit null), or 16 to 1048575 (implicit null means pop: true)",
        ),
        (format!("label: 20, swap: 15, {TO}"), "found 15, expected 0 or 2 (explicit null), or 16 to 1048575"),
        (format!("label: 20, push: [1], {TO}"), "spec.labels[0].push[0]: found 1, expected 0 or 2"),
        (
            format!("label: 20, push: [16, 17, 18], {TO}"),
            "spec.labels[0].push: found 3 entries, expected at most 2",
        ),
        (
            format!("label: 20, push: [], {TO}"),
            "spec.labels[0].push: found no labels, expected a list of labels",
        ),
        (
            format!("label: 20, pop: true, swap: 21, {TO}"),
            "spec.labels[0].pop: found pop with swap or push, expected one of them",
        ),
        (
            format!("label: 20, {TO}"),
            "spec.labels[0]: found none of swap, push and pop, expected what happens to the label",
        ),
        (format!("label: 20, pop: false, {TO}"), "found none of swap, push and pop"),
        (
            "label: 20, pop: true".to_owned(),
            "spec.labels[0]: found neither \"port\" nor \"action\", expected one of them",
        ),
        (
            format!("label: 20, action: drop, {TO}"),
            "spec.labels[0].action: found both \"port\" and \"action\"",
        ),
        (
            "label: 20, action: drop, pop: true".to_owned(),
            "spec.labels[0].pop: found pop with action drop, expected none",
        ),
        (
            "label: 20, action: pass".to_owned(),
            "spec.labels[0].action: found \"pass\", expected drop or punt",
        ),
        ("label: 20, pop: true, port: b".to_owned(), "spec.labels[0].neighbour: found nothing"),
        (
            "label: 20, pop: true, port: b, neighbour: \"ff:ff:ff:ff:ff:ff\"".to_owned(),
            "found the broadcast address",
        ),
        (
            "label: 20, pop: true, port: c, neighbour: \"02:00:00:00:00:0b\"".to_owned(),
            "spec.labels[0].port: found unknown virtual port \"c\", expected a or b",
        ),
    ] {
        let found = only(&entry(&fields));
        assert!(found.contains(wanted) && found.starts_with(at), "{fields}: {found}");
    }
    let twice = network("    - {label: 20, action: drop}\n    - {label: 20, action: punt}\n", "");
    assert_eq!(
        only(&twice),
        "a.yaml:11:15: spec.labels[1].label: found duplicate label 20, expected a unique label (first used in line 10)"
    );
}

#[test]
fn fields_of_other_kinds() {
    let more = |field: &str| only(&network("    - {label: 20, action: drop}\n", field));
    for (field, wanted) in [
        (
            "  routes: []\n",
            "found routes with kind mpls, expected none: this kind does not look at IP (see labels)",
        ),
        (
            "  static_macs: []\n",
            "found static_macs with kind mpls, expected none: only kind l2 has them (see labels)",
        ),
        (
            "  entries: []\n",
            "found entries with kind mpls, expected none: only kind extract has them (see labels)",
        ),
        ("  table: {quota: 1Mi}\n", "found table with kind mpls, expected none"),
        (
            "  select: {by: inner, prefixes: [10.0.0.0/8]}\n",
            "found inner with kind mpls, expected mac or port",
        ),
    ] {
        let found = more(field);
        assert!(found.contains(wanted), "{found}");
    }
    let lan = format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: red}}\nspec:\n  plane: {{kind: l2}}\n{PORTS}  labels: []\n"
    );
    assert!(
        only(&lan).contains("spec.labels: found labels with kind l2, expected none: only kind mpls has them")
    );
    let ttl = entry("label: 20, action: drop").replace("{kind: mpls}", "{kind: mpls, ttl: both}");
    assert!(only(&ttl).contains("spec.plane.ttl: found \"both\", expected uniform or pipe"));
    let ttl = lan.replace("{kind: l2}", "{kind: l2, ttl: pipe}").replace("  labels: []\n", "");
    assert!(only(&ttl).contains("found ttl with kind l2, expected none: only kind mpls has this setting"));
    let over = entry("label: 20, action: drop")
        .replace("port: p1,", "tunnel: {type: ipip, local: 10.0.0.1, remote: 10.0.0.2}, over: red2,");
    assert!(errors(&[&over]).iter().any(|error| error.contains("found ipip with kind mpls, expected vxlan")));
}
