//! Networks of kind `extract` in documents: keys, entries, and every mistake with its place.

use hue_intent::{EntryAction, Select, limits};
use hue_planes::extract::Settings;
use hue_tables::Pattern;
use serde_json::json;

use crate::common::{NODE, RED, errors, load};
use crate::evaluate::valid;

/// A network with this key and these entries, which begin in line 10.
fn bits(key: &str, entries: &[&str]) -> String {
    let entries: String = entries.iter().map(|entry| format!("    - {entry}\n")).collect();
    format!(
        "apiVersion: hueplane/v1
kind: Network
metadata: {{name: bits}}
spec:
  plane: {{kind: extract, key: {key}}}
  ports:
    - {{name: a, port: p0, mac: \"02:00:00:00:09:01\"}}
    - {{name: b, port: p1, mac: \"02:00:00:00:09:02\"}}
  entries:
{entries}"
    )
}

/// The EtherType, and half of the byte behind it.
const KEY: &str = "[{offset: 12, bytes: 2}, {offset: 14, mask: \"0xf0\"}]";

/// The only error of a network with this key.
fn bad_key(key: &str) -> String {
    only(&bits(key, &[]))
}

/// The only error of a network with these entries.
fn bad(entries: &[&str]) -> String {
    only(&bits(KEY, entries))
}

fn only(text: &str) -> String {
    let errors = errors(&[text]);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].clone()
}

#[test]
fn entries_become_patterns_and_actions() {
    let text = bits(
        KEY,
        &[
            "{match: \"0x080040\", port: b}",
            "{match: 0x080050, port: b, destination: \"33:33:00:00:00:01\", source: \"02:00:00:00:09:02\"}",
            "{match: \"0x080000/16\", action: drop}",
            "{match: \"0x000010\", mask: \"0x000010\", action: punt}",
            "{match: \"0x880000/9\", port: a, source: \"02:00:00:00:09:01\"}",
            "{match: any, port: a}",
        ],
    );
    let intent = load(&[&text]).unwrap();
    let spec = &intent.networks[0].spec;
    let key: Settings = spec.plane.key.unwrap();
    assert_eq!((key.bytes(), key.mask(), &spec.select), (3, 0x00ff_fff0 << 104, &Select::Port));
    let patterns: Vec<Pattern> = spec.entries.iter().map(|entry| entry.pattern(&key)).collect();
    let of = |value: u128, mask: u128| Pattern::new(value << 104, mask << 104);
    let wanted = [
        of(0x08_0040, 0xff_fff0),
        of(0x08_0050, 0xff_fff0),
        of(0x08_0000, 0xff_ff00),
        of(0x00_0010, 0x00_0010),
        of(0x88_0000, 0xff_8000),
        Pattern::ANY,
    ];
    assert_eq!(patterns, wanted);
    let texts: Vec<String> = patterns.iter().map(|pattern| key.pattern_text(pattern)).collect();
    let wanted = ["0x080040", "0x080050", "0x080000/16", "0x000010 mask 0x000010", "0x880000/9", "any"];
    assert_eq!(texts, wanted, "as written");
    assert_eq!(spec.entries[2].action, EntryAction::Drop);
    assert_eq!(spec.entries[3].action, EntryAction::Punt);
    let EntryAction::Forward { port, destination, source } = &spec.entries[1].action else { panic!() };
    assert_eq!(port.as_str(), "b");
    let macs = [destination, source].map(|mac| mac.unwrap().to_string());
    assert_eq!(macs, ["33:33:00:00:00:01", "02:00:00:00:09:02"]);
}

#[test]
fn a_document_that_is_written_is_read_again() {
    let keys = [
        KEY,
        "[{offset: 0, bytes: 8}]",
        "[{offset: 3, bytes: 3, mask: \"0xff0fff\"}, {offset: 0}, {offset: 1}]",
    ];
    let schema = hue_intent::schema();
    for key in keys {
        let bytes = load(&[&bits(key, &[])]).unwrap().networks[0].spec.plane.key.unwrap().bytes();
        let first = format!(
            "{{match: \"0x01{}\", mask: \"0x01{}\", action: punt}}",
            "00".repeat(bytes - 1),
            "00".repeat(bytes - 1)
        );
        let first = if key == KEY {
            first
        } else {
            "{match: any, port: a, destination: \"02:00:00:00:00:0a\"}".to_owned()
        };
        let network = load(&[&bits(key, &[&first])]).unwrap().networks[0].clone();
        let document = serde_json::to_value(&network).unwrap();
        assert!(valid(&schema, &schema, &document), "{document}");
        assert_eq!(load(&[&document.to_string()]).unwrap().networks[0], network, "{document}");
    }
    let written = serde_json::to_value(&load(&[&bits(keys[2], &[])]).unwrap().networks[0]).unwrap();
    let parts = json!([
        {"offset": 3}, {"offset": 4, "mask": "0x0f"}, {"offset": 5}, {"offset": 0, "bytes": 2}
    ]);
    assert_eq!(written["spec"]["plane"]["key"], parts);
}

#[test]
fn faulty_keys() {
    let missing = bits(KEY, &[]).replace(&format!(", key: {KEY}"), "");
    assert_eq!(
        only(&missing),
        "a.yaml:5:10: spec.plane.key: found nothing, expected a list of bytes of a frame, such as {offset: 12, bytes: 2}"
    );
    for (key, error) in [
        (
            "[]",
            "5:31: spec.plane.key: found no bytes, expected a list of bytes of a frame, such as {offset: 12, bytes: 2}",
        ),
        (
            "[{offset: 128}]",
            "5:41: spec.plane.key[0].offset: found 128, expected a whole number from 0 to 127",
        ),
        (
            "[{offset: 120, bytes: 9}]",
            "5:53: spec.plane.key[0].bytes: found bytes 120 to 128, expected bytes 0 to 127",
        ),
        (
            "[{offset: 0, bytes: 17}]",
            "5:51: spec.plane.key[0].bytes: found 17, expected a whole number from 1 to 16",
        ),
        (
            "[{offset: 0, bytes: 16}, {offset: 20}]",
            "5:31: spec.plane.key: found 17 bytes, expected at most 16, which are 128 bits",
        ),
        (
            "[{offset: 12, bytes: 2}, {offset: 13, mask: 0x0f}]",
            "5:65: spec.plane.key[1].offset: found byte 13 twice, expected each byte once (one mask can have all bits of a byte)",
        ),
        (
            "[{offset: 12, bytes: 2, mask: \"0xff00\"}]",
            "5:61: spec.plane.key[0].mask: found no bit of byte 13, expected a bit of each byte (leave the byte out: the parts of a key need not follow each other in the frame)",
        ),
        (
            "[{offset: 12, mask: \"0xfff\"}]",
            "5:51: spec.plane.key[0].mask: found \"0xfff\", expected 2 hexadecimal digits for 1 byte, such as 0xff",
        ),
        (
            "[{offset: 12, mask: 15}]",
            "5:51: spec.plane.key[0].mask: found 15, expected 2 hexadecimal digits for 1 byte, such as 0xff",
        ),
    ] {
        assert_eq!(bad_key(key), format!("a.yaml:{error}"), "{key}");
    }
    let longest = "[{offset: 112, bytes: 16}]";
    assert_eq!(errors(&[&bits(longest, &[])]), Vec::<String>::new());
    assert_eq!(
        only(&RED.replace("{kind: ipv4}", "{kind: ipv4, key: [{offset: 0}]}")),
        "a.yaml:6:28: spec.plane.key: found key with kind ipv4, expected none: only kind extract has this setting"
    );
}

#[test]
fn faulty_entries() {
    let forms = "expected any, or hexadecimal digits, two for each byte of plane.key, such as 0x0800; with /BITS for the first bits only";
    for (entry, error) in [
        ("{match: all, action: drop}", format!("10:15: spec.entries[0].match: found \"all\", {forms}")),
        ("{match: 7, action: drop}", format!("10:15: spec.entries[0].match: found 7, {forms}")),
        ("{match: \"0x0g\", action: drop}", format!("10:15: spec.entries[0].match: found \"0x0g\", {forms}")),
        (
            "{match: \"0x0800\", action: drop}",
            "10:15: spec.entries[0].match: found 4 digits, expected 6, as the key has (two for each byte of plane.key)".to_owned(),
        ),
        (
            "{match: \"0x080041\", action: drop}",
            "10:15: spec.entries[0].match: found 0x080041, expected zeros in the other bits, as in 0x080040 (the bits that are compared are 0xfffff0)".to_owned(),
        ),
        (
            "{match: \"0x080040/16\", action: drop}",
            "10:15: spec.entries[0].match: found 0x080040/16, expected zeros in the other bits, as in 0x080000/16 (the bits that are compared are 0xffff00)".to_owned(),
        ),
        (
            "{match: \"0x080000/25\", action: drop}",
            "10:15: spec.entries[0].match: found /25, expected /1 to /24, or any".to_owned(),
        ),
        (
            "{match: \"0x080000/0\", action: drop}",
            "10:15: spec.entries[0].match: found /0, expected /1 to /24, or any".to_owned(),
        ),
        (
            "{match: any, mask: \"0x000000\", action: drop}",
            "10:26: spec.entries[0].mask: found a mask with match: any, expected none, or a match of digits alone".to_owned(),
        ),
        (
            "{match: \"0x000000\", mask: \"0x000000\", action: drop}",
            "10:33: spec.entries[0].mask: found 0x000000, expected a mask with a bit, or match: any".to_owned(),
        ),
        (
            "{match: \"0x080000\", mask: \"0xffff0f\", action: drop}",
            "10:33: spec.entries[0].mask: found 0xffff0f, expected bits of the key: 0xfffff0 (0x00000f are not in it)".to_owned(),
        ),
        (
            "{match: \"0x080000\", mask: \"0xffff\", action: drop}",
            "10:33: spec.entries[0].mask: found \"0xffff\", expected 6 hexadecimal digits for 3 bytes, such as 0xffffff".to_owned(),
        ),
        (
            "{match: any}",
            "10:7: spec.entries[0]: found neither \"port\" nor \"action\", expected one of them".to_owned(),
        ),
        (
            "{match: any, port: a, action: drop}",
            "10:37: spec.entries[0].action: found both \"port\" and \"action\", expected one of them".to_owned(),
        ),
        (
            "{match: any, action: drop, source: \"02:00:00:00:00:01\"}",
            "10:42: spec.entries[0].source: found source with action drop, expected none, or port instead of action".to_owned(),
        ),
        (
            "{match: any, action: pass}",
            "10:28: spec.entries[0].action: found \"pass\", expected drop or punt".to_owned(),
        ),
        (
            "{match: any, port: c}",
            "10:26: spec.entries[0].port: found unknown virtual port \"c\", expected a or b".to_owned(),
        ),
        (
            "{match: any, port: a, source: \"01:00:00:00:00:01\"}",
            "10:37: spec.entries[0].source: found the multicast address 01:00:00:00:00:01, expected the MAC address of one station: an even first byte".to_owned(),
        ),
        (
            "{match: any, port: a, destination: \"00:00:00:00:00:00\"}",
            "10:42: spec.entries[0].destination: found \"00:00:00:00:00:00\", expected a MAC address that is not all zeros".to_owned(),
        ),
    ] {
        assert_eq!(bad(&[entry]), format!("a.yaml:{error}"), "{entry}");
    }
    let sparse = "[{offset: 0, mask: 0x0f}, {offset: 1}]";
    assert_eq!(
        only(&bits(sparse, &["{match: 0x0000/4, action: drop}"])),
        "a.yaml:10:15: spec.entries[0].match: found a length without a bit of the key, expected a longer one, or any (the bits of the key are 0x0fff)"
    );
}

#[test]
fn entries_that_no_frame_reaches() {
    assert_eq!(
        bad(&["{match: 0x080000/16, port: a}", "{match: 0x080040, action: drop}"]),
        "a.yaml:11:15: spec.entries[1].match: found 0x080040, which no frame reaches, expected an entry before those that contain it, or none (entries[0] in line 10 takes all of its frames; the first match counts)"
    );
    assert!(
        bad(&["{match: any, port: a}", "{match: any, port: b}"])
            .contains("found any, which no frame reaches")
    );
    let crossing = ["{match: 0x080000/16, port: a}", "{match: 0x000010, mask: 0x000010, port: b}"];
    assert_eq!(errors(&[&bits(KEY, &crossing)]), Vec::<String>::new());
}

#[test]
fn limits_are_reached_exactly() {
    let key = "[{offset: 0, bytes: 16}]";
    let lengths = |count: usize| -> Vec<String> {
        (1..=count)
            .rev()
            .map(|len| format!("{{match: \"0x{}/{len}\", action: drop}}", "00".repeat(16)))
            .collect()
    };
    let text = |entries: &[String]| bits(key, &entries.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(errors(&[&text(&lengths(limits::ENTRY_MASKS_MAX))]), Vec::<String>::new());
    assert_eq!(
        only(&text(&lengths(limits::ENTRY_MASKS_MAX + 1))),
        "a.yaml:26:15: spec.entries[16].match: found a mask beyond the 16 different ones before it, expected at most 16 (each costs every packet a search; a length such as /16 is a mask too)"
    );
    let exact = |count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{{match: \"0x{number:032x}\", port: a}}")).collect()
    };
    assert_eq!(errors(&[&text(&exact(limits::ENTRIES_MAX))]), Vec::<String>::new());
    assert_eq!(
        only(&text(&exact(limits::ENTRIES_MAX + 1))),
        "a.yaml:10:5: spec.entries: found 16385 entries, expected at most 16384"
    );
}

#[test]
fn what_the_kind_does_not_have() {
    let more = |text: &str| only(&(bits(KEY, &["{match: any, action: drop}"]) + text));
    assert_eq!(
        more("  routes: [{to: 10.0.0.0/8, via: 10.1.0.2}]\n"),
        "a.yaml:11:11: spec.routes: found routes with kind extract, expected none: this kind does not look at IP (see entries)"
    );
    assert_eq!(
        more("  static_macs: []\n"),
        "a.yaml:11:16: spec.static_macs: found static_macs with kind extract, expected none: only kind l2 has them (see entries)"
    );
    assert_eq!(
        more("  table: {quota: 1Mi}\n"),
        "a.yaml:11:10: spec.table: found table with kind extract, expected none: this kind has no routes (its entries have a table of their own, which they never exceed)"
    );
    assert_eq!(
        more("  select: {by: mac}\n"),
        "a.yaml:11:16: spec.select.by: found \"mac\" with kind extract, expected port, which is the default of this kind (such a network takes frames to all destinations, so each of its ports is its own)"
    );
    let addressed = bits(KEY, &[]).replace("09:01\"", "09:01\", addresses: [10.0.0.1/24]");
    assert!(only(&addressed).contains("this kind does not look at IP"));
    assert_eq!(
        only(&RED.replace("  weight", "  entries: []\n  weight")),
        "a.yaml:14:12: spec.entries: found entries with kind ipv4, expected none: only kind extract has them (see routes)"
    );
    let lan = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: lan}\nspec:\n  plane: {kind: l2}\n  ports: [{name: a, port: p0, mac: \"02:00:00:00:07:01\"}]\n  entries: []\n";
    assert!(only(lan).ends_with("only kind extract has them (see static_macs)"));
    // Different MTUs are no fault, as with a router.
    assert_eq!(errors(&[NODE, &bits(KEY, &[])]), Vec::<String>::new());
}

#[test]
fn tunnels_of_such_a_network_carry_frames() {
    let wan = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: wan}\nspec:\n  plane: {kind: ipv4}\n  ports: [{name: up, port: p3, mac: \"02:00:00:00:08:01\", addresses: [192.0.2.1/24]}]\n";
    let with = |tunnel: &str| {
        let port =
            format!("{{name: c, tunnel: {{{tunnel}, local: 192.0.2.1, remote: 192.0.2.2}}, over: wan}}");
        errors(&[&bits(KEY, &[]).replace("  entries:\n", &format!("    - {port}\n")), wan])
    };
    assert_eq!(with("type: vxlan, vni: 7"), Vec::<String>::new());
    let refused = with("type: ipip");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0]
            .contains("found ipip with kind extract, expected vxlan (it forwards frames, and type ipip")
    );
    let over = wan.replace("{name: wan}", "{name: up}").replace("ports: [", "ports: [{name: c, tunnel: {type: vxlan, vni: 7, local: 192.0.2.1, remote: 192.0.2.2}, over: bits, addresses: [10.0.0.1/24]}, ");
    let refused = errors(&[&bits(KEY, &[]), &over]);
    assert!(
        refused[1]
            .contains("found network \"bits\" of kind extract, expected a network that routes IP packets"),
        "{refused:?}"
    );
}
