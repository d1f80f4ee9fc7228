//! The JSON Schema: the published file is current, and schema and reader agree.

use std::collections::BTreeSet;

use hue_intent::{Capability, Martians};
use hue_planes::mpls::Ttl;
use hue_planes::{Kind, SettingValues, splice};
use hue_tables::RouteBy;

use crate::common::{RED, load};
use crate::evaluate::valid;
use serde_json::{Value, json};

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schema.json");

#[test]
fn the_published_schema_is_the_generated_one() {
    let published = std::fs::read_to_string(PUBLISHED).unwrap_or_default();
    let same = published == hue_intent::schema_text();
    assert!(same, "docs/reference/schema.json is stale: `hueplane schema > docs/reference/schema.json`");
}

/// The fields of `plane` are the settings in the specification of kinds; the reader takes its list from there.
#[test]
fn a_plane_has_the_settings_of_the_specification() {
    let schema = hue_intent::schema();
    let plane = schema["$defs"]["Plane"]["properties"].as_object().unwrap();
    let fields: BTreeSet<&str> = plane.keys().map(String::as_str).collect();
    let settings = Kind::OFFERED.into_iter().flat_map(Kind::settings).map(|setting| setting.name);
    assert_eq!(fields, settings.chain(["kind"]).collect());
    // The comment of a field names its kinds.
    for setting in fields.iter().filter(|field| **field != "kind") {
        let having = Kind::OFFERED.into_iter().filter(|kind| kind.setting(setting).is_some());
        let names: Vec<String> = having.map(|kind| format!("`{}`", kind.name())).collect();
        let kinds = if names.len() == 1 { "Kind" } else { "Kinds" };
        let text = plane[*setting]["description"].as_str().unwrap();
        let names = match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => names.concat(),
        };
        assert!(text.starts_with(&format!("{kinds} {names}: ")), "{setting}: {text}");
    }
}

/// The words of a setting, and which of them is the default, are the same in the specification and in the types.
#[test]
fn the_words_of_settings_are_those_of_the_specification() {
    fn words<T: Default + PartialEq + Copy, const N: usize>(
        values: [T; N],
        name: impl Fn(T) -> &'static str,
    ) -> Vec<&'static str> {
        assert!(values[0] == T::default());
        values.map(name).to_vec()
    }
    let capabilities = Capability::ALL.map(Capability::name).to_vec();
    let default = Capability::default_list();
    for setting in Kind::OFFERED.into_iter().flat_map(Kind::settings) {
        let of_types = match setting.name {
            "martians" => words(Martians::ALL, Martians::name),
            "route_by" => words(RouteBy::ALL, RouteBy::name),
            "bits" => words(splice::Bits::ALL, splice::Bits::name),
            "ttl" => words(Ttl::ALL, Ttl::name),
            _ => Vec::new(),
        };
        match setting.values {
            SettingValues::Choice(all) => assert_eq!(all, of_types, "{}", setting.name),
            SettingValues::List { words, default: of } => {
                let name = setting.name;
                assert_eq!((name, words), ("capabilities", &capabilities[..]));
                assert!(of.iter().copied().eq(default.iter().map(|one| one.name())));
            }
            SettingValues::Flag { default } => assert!(!default && ["sticky", "xdp"].contains(&setting.name)),
            SettingValues::Range(_) | SettingValues::Other => assert_eq!(of_types, Vec::<&str>::new()),
        }
    }
}

fn red() -> Value {
    serde_json::to_value(&load(&[RED]).unwrap().networks[0]).unwrap()
}

#[test]
fn examples_are_valid_by_the_schema() {
    let schema = hue_intent::schema();
    for file in ["hueplane.yaml", "select.yaml"] {
        let path = format!("{}/../../labs/basic/{file}", env!("CARGO_MANIFEST_DIR"));
        let intent = hue_intent::load([&path]).unwrap();
        assert!(valid(&schema, &schema, &serde_json::to_value(&intent.node).unwrap()));
        for network in &intent.networks {
            assert!(valid(&schema, &schema, &serde_json::to_value(network).unwrap()), "{}", network.name());
        }
    }
    assert!(valid(&schema, &schema, &red()));
}

/// Sets `value` at a place of [`RED`], or removes the place for `None`.
fn changed(pointer: &str, value: Option<Value>) -> Value {
    let mut document = red();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (document.pointer_mut(parent).unwrap(), value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(key.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(key).unwrap()),
        (Value::Array(values), Some(value)) => values[key.parse::<usize>().unwrap()] = value,
        other => panic!("{other:?}"),
    }
    document
}

/// Schema and reader agree on everything that a schema can express.
#[test]
fn schema_and_reader_agree() {
    let schema = hue_intent::schema();
    let both = |document: &Value, good: bool| {
        assert_eq!(valid(&schema, &schema, document), good, "schema: {document}");
        assert_eq!(load(&[&document.to_string()]).is_ok(), good, "reader: {document}");
    };
    for (pointer, value) in [
        ("/spec/weight", Some(json!(1000))),
        ("/spec/weight", None),
        ("/spec/vid", Some(json!(4095))),
        ("/spec/colour", None),
        ("/spec/rate_limit", None),
        ("/spec/rate_limit", Some(json!({"bits_per_second": 1, "burst_bits": 20_000}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "1bit/s", "burst_bits": "20kbit"}))),
        (
            "/spec/rate_limit",
            Some(json!({"bits_per_second": "1000000000000bit/s", "burst_bits": "1000Gbit"})),
        ),
        (
            "/spec/rate_limit",
            Some(json!({"bits_per_second": "1000000000kbit/s", "burst_bits": 1_000_000_000_000u64})),
        ),
        ("/spec/punt_limit", Some(json!({"packets_per_second": 1, "burst_packets": 10_000_000}))),
        ("/spec/table", Some(json!({"quota": "4Ki"}))),
        ("/spec/table", Some(json!({"quota": "64Gi"}))),
        ("/spec/resources", Some(json!({"cpu": 0.01}))),
        ("/spec/resources", Some(json!({"cpu": 1024, "memory": "4Mi", "processes": 1}))),
        ("/spec/resources", Some(json!({"memory": "1024Gi", "processes": 4_194_304}))),
        ("/spec/needs", Some(json!({"bandwidth": "1kbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": "1000Gbit/s", "latency": "low", "routes": 2_000_000}))),
        ("/spec/needs", Some(json!({"bandwidth": "1000000Mbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": "1000000000kbit/s"}))),
        ("/spec/needs", Some(json!({"latency": "normal"}))),
        ("/spec/routes", Some(json!(null))),
        ("/spec/routes/0", Some(json!({"to": "0.0.0.0/0", "port": "left"}))),
        ("/spec/routes/0/via", Some(json!([{"via": "10.2.0.2"}, {"via": "10.1.0.2", "weight": 256}]))),
        ("/spec/select", Some(json!({"by": "port"}))),
        ("/spec/select", Some(json!({"by": "inner", "prefixes": ["10.0.0.0/8"]}))),
        ("/spec/ports/0/mtu", Some(json!(68))),
        ("/spec/ports/0/addresses", Some(json!([]))),
        ("/spec/ports/0/mac", Some(json!("AE:00:00:00:01:01"))),
    ] {
        both(&changed(pointer, value), true);
    }
    for (pointer, value) in [
        ("/apiVersion", Some(json!("hueplane/v2"))),
        ("/apiVersion", None),
        ("/kind", Some(json!("Network "))),
        ("/kind", None),
        ("/metadata", None),
        ("/metadata/name", Some(json!(""))),
        ("/metadata/name", Some(json!("-a"))),
        ("/metadata/name", Some(json!(5))),
        ("/metadata/name", Some(json!("ä"))),
        ("/metadata/labels", Some(json!({}))),
        ("/spec", None),
        ("/spec/weight", Some(json!(0))),
        ("/spec/weight", Some(json!(1001))),
        ("/spec/weight", Some(json!("1"))),
        ("/spec/weight", Some(json!(1.5))),
        ("/spec/vid", Some(json!(0))),
        ("/spec/vid", Some(json!(4096))),
        ("/spec/colour", Some(json!("red"))),
        ("/spec/colour", Some(json!(null))),
        ("/spec/plane", None),
        ("/spec/plane/kind", Some(json!("ipv9"))),
        ("/spec/plane/more", Some(json!(1))),
        ("/spec/ports", None),
        ("/spec/ports", Some(json!({}))),
        ("/spec/ports/0", Some(json!("left"))),
        ("/spec/ports/0/name", None),
        ("/spec/ports/0/mac", None),
        ("/spec/ports/0/mac", Some(json!("03:00:00:00:01:01"))),
        ("/spec/ports/0/mac", Some(json!("02-00-00-00-01-01"))),
        ("/spec/ports/0/mtu", Some(json!(67))),
        ("/spec/ports/0/mtu", Some(json!(9203))),
        ("/spec/ports/0/addresses", Some(json!(["10.1.0.1"]))),
        ("/spec/ports/0/addresses", Some(json!(["10.1.0.1/0"]))),
        ("/spec/ports/0/addresses", Some(json!(["10.1.0.1/33"]))),
        ("/spec/ports/0/addresses", Some(json!(["10.1.0.256/24"]))),
        ("/spec/ports/0/addresses", Some(json!(["10.01.0.1/24"]))),
        ("/spec/routes/0", Some(json!({"to": "10.9.0.0/16"}))),
        ("/spec/routes/0/via", Some(json!([]))),
        ("/spec/routes/0/via", Some(json!([{"via": "10.2.0.2", "weight": 0}]))),
        ("/spec/routes/0/via", Some(json!([{"via": "10.2.0.2", "wait": 1}]))),
        ("/spec/routes/0", Some(json!({"to": "10.9.0.0/16", "via": "10.2.0.2", "port": "left"}))),
        ("/spec/routes/0/to", Some(json!("10.9.0.0"))),
        ("/spec/neighbours/0/mac", None),
        ("/spec/rate_limit/burst_packets", None),
        ("/spec/rate_limit", Some(json!({}))),
        ("/spec/rate_limit/packets_per_second", Some(json!(0))),
        ("/spec/rate_limit/packets_per_second", Some(json!("1bit/s"))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "10Mbit", "burst_bits": "20kbit"}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "10Mbit/s", "burst_bits": "20kbit/s"}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "1001Gbit/s", "burst_bits": "20kbit"}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "01Mbit/s", "burst_bits": "20kbit"}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "0bit/s", "burst_bits": "20kbit"}))),
        ("/spec/rate_limit", Some(json!({"bits_per_second": "1000000000001bit/s", "burst_bits": "20kbit"}))),
        ("/spec/rate_limit/packets_per_second", Some(json!(1_000_000_000_001u64))),
        ("/spec/punt_limit", Some(json!({"packets_per_second": 1}))),
        ("/spec/punt_limit", Some(json!({"packets_per_second": 1, "burst_packets": 10_000_001}))),
        ("/spec/punt_limit", Some(json!(null))),
        ("/spec/table", Some(json!({}))),
        ("/spec/table", Some(json!({"quota": 4096}))),
        ("/spec/table", Some(json!({"quota": "4K"}))),
        ("/spec/resources", Some(json!({}))),
        ("/spec/resources", Some(json!({"cpu": 0.009}))),
        ("/spec/resources", Some(json!({"cpu": 1024.1}))),
        ("/spec/resources", Some(json!({"cpu": "1"}))),
        ("/spec/resources", Some(json!({"memory": "256M"}))),
        ("/spec/resources", Some(json!({"memory": 268_435_456}))),
        ("/spec/resources", Some(json!({"processes": 0}))),
        ("/spec/resources", Some(json!({"disk": "1Gi"}))),
        ("/spec/needs", Some(json!({}))),
        ("/spec/needs", Some(json!(null))),
        ("/spec/needs", Some(json!({"bandwidth": "1001Gbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": "1000001Mbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": "1000000001kbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": "01Gbit/s"}))),
        ("/spec/needs", Some(json!({"bandwidth": 1_000_000}))),
        ("/spec/needs", Some(json!({"latency": "high"}))),
        ("/spec/needs", Some(json!({"routes": 0}))),
        ("/spec/select", Some(json!({"by": "inner"}))),
        ("/spec/select", Some(json!({"by": "inner", "prefixes": []}))),
        ("/spec/select", Some(json!({"by": "mac", "prefixes": ["10.0.0.0/8"]}))),
        ("/spec/select", Some(json!({"by": "vlan"}))),
        ("/spec/prots", Some(json!([]))),
    ] {
        both(&changed(pointer, value), false);
    }
}

#[test]
fn nodes_agree_too() {
    let schema = hue_intent::schema();
    let both = |port: Value, good: bool| {
        let ports = json!([port, {"name": "p9", "interface": "x", "driver": "tap"}]);
        let document = json!({"apiVersion": "hueplane/v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"ports": ports}});
        assert_eq!(valid(&schema, &schema, &document), good, "schema: {document}");
        assert_eq!(load(&[&document.to_string()]).is_ok(), good, "reader: {document}");
    };
    both(json!({"name": "p0"}), true);
    for driver in ["auto", "afxdp", "packet", "tap"] {
        both(json!({"name": "p0", "driver": driver}), true);
    }
    both(json!({"name": "p0", "driver": "AFXDP"}), false);
    both(json!({"name": "p0", "driver": null}), false);
    both(json!({"name": "p0", "mtu": 67}), false);
    for name in ["a", "ab", ".a", "a.", "..a", "123456789012345", "eth0.1@x~"] {
        both(json!({"name": "p0", "interface": name}), true);
    }
    for name in ["", ".", "..", "/", "a/", ":", "a:b", "a b", "ä", "1234567890123456"] {
        both(json!({"name": "p0", "interface": name}), false);
    }
    both(json!({"name": "p0", "interface": 5}), false);
    both(json!({"name": "p0", "bandwidth": "10Gbit/s"}), true);
    both(json!({"name": "p0", "bandwidth": "10Gb/s"}), false);
}

#[test]
fn schedulers_agree_too() {
    let schema = hue_intent::schema();
    let both = |scheduler: Value, good: bool| {
        let document = json!({"apiVersion": "hueplane/v1", "kind": "Node", "metadata": {"name": "n"},
            "spec": {"ports": [{"name": "p0"}], "scheduler": scheduler}});
        assert_eq!(valid(&schema, &schema, &document), good, "schema: {document}");
        assert_eq!(load(&[&document.to_string()]).is_ok(), good, "reader: {document}");
    };
    both(json!({}), true);
    both(json!({"kind": "exact", "move_cost": "1Mbit/s", "card_bandwidth": "20Gbit/s"}), true);
    both(json!({"kind": "greedy", "soft": {"cores": 256, "bandwidth": "1Gbit/s"}}), true);
    both(json!({"soft": {}}), true);
    both(json!(null), false);
    both(json!({"kind": "lazy"}), false);
    both(json!({"soft": {"cores": 0}}), false);
    both(json!({"soft": {"cores": 257}}), false);
    both(json!({"soft": {"cores": 1.5}}), false);
    both(json!({"move_cost": "0kbit/s"}), false);
    both(json!({"cores": 1}), false);
}
