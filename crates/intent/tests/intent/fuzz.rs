//! The reader never panics, hangs or uses much memory, whatever the bytes.

use crate::common::{NODE, RED};
use hue_intent::{Source, parse};
use proptest::prelude::*;

fn try_it(bytes: Vec<u8>) {
    match parse(vec![Source { name: "a.yaml".to_owned(), bytes }]) {
        Ok(intent) => {
            assert!(!intent.node.spec.ports.is_empty() || !intent.networks.is_empty() || intent.node_given)
        }
        Err(errors) => {
            assert!(!errors.list.is_empty());
            for error in errors.list {
                let finding = error.finding().expect("only findings come from bytes");
                assert!(finding.place.line >= 1 && finding.place.column >= 1);
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}

/// Fields that only a live node uses.
const LIVE: &str = "  punt_limit: {packets_per_second: 50, burst_packets: 5}\n  resources: {cpu: 0.25, memory: 64Mi}\n  table: {quota: 64Ki}\n  needs: {bandwidth: 5Mbit/s, routes: 9}\n";

/// A network with a key and entries.
const BITS: &str = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: bits}\nspec:\n  plane: {kind: extract, key: [{offset: 12, bytes: 2}, {offset: 127, mask: 0xf0}]}\n  ports: [{name: a, port: p4, mac: '02:00:00:00:05:01'}]\n  entries:\n    - {match: 0x080010, port: a, destination: '02:00:00:00:00:0a'}\n    - {match: 0x800000/1, action: punt}\n    - {match: 0x000000, mask: 0x00ff00, action: drop}\n    - {match: any, port: a}\n";

/// A network with labels.
const FLAT: &str = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: flat}\nspec:\n  plane: {kind: rofl, label_bits: 32, pointers_max: 9, pointer_seconds: 5}\n  ports: [{name: a, port: p5, mac: '02:00:00:00:08:01'}]
  flat_labels:\n    - {label: 0x10000000, own: true}\n    - {label: 0x20000000, port: a, neighbour: '02:00:00:00:00:0a', resident: true}\n";

/// Edits of a text: at a position, remove some bytes and insert others.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, Vec<u8>)>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(vec![
            "- ",
            ": ",
            "\n",
            "  ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "&a ",
            "*a",
            "!",
            "? ",
            "|",
            ">",
            "#",
            "---\n",
            "...\n",
            "%YAML 1.2\n",
            "\t",
            ",",
            "~",
            "\u{feff}",
            "\u{85}",
            "0x",
            "/33",
            "<<: *a",
            "\r",
            "ä",
            "null",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, piece), 1..12)
}

#[test]
fn the_documents_are_read_as_far_as_they_are_whole() {
    let node = NODE.replace("{name: p0}", "{name: p0}, {name: p4}, {name: p5}");
    let bytes = format!("{RED}{LIVE}---\n{BITS}---\n{FLAT}---\n{node}").into_bytes();
    assert_eq!(
        parse(vec![Source { name: "a.yaml".to_owned(), bytes }]).map(|intent| intent.networks.len()).ok(),
        Some(3)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        try_it(bytes);
    }

    #[test]
    fn any_punctuation(bytes in prop::collection::vec(prop::sample::select(b"-:?{}[],&*#|>'\"%@!~ \n\ta0./<\\".to_vec()), 0..200)) {
        try_it(bytes);
    }

    #[test]
    fn edited_documents(edits in edits()) {
        let mut text = format!("{RED}{LIVE}---\n{BITS}---\n{FLAT}---\n{NODE}").into_bytes();
        for (at, taken, put) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + taken).min(text.len());
            text.splice(start..end, put);
        }
        try_it(text);
    }
}
