//! Metrics: the text format is valid, and the counters add up.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::World;
use hueplaned::api::{FamilyStats, MacStats};
use hueplaned::backend::Backend;
use hueplaned::metrics;

type Labels = BTreeMap<String, String>;

/// Samples of a text by metric, as a scraper reads them; fails if the format is invalid.
fn parse(text: &str) -> BTreeMap<String, Vec<(Labels, f64)>> {
    assert!(text.ends_with('\n'));
    let mut all: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
    let (mut types, mut series) = (BTreeMap::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(types.insert(name.to_owned(), kind).is_none(), "{line}: twice");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        assert!(series.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line}: twice");
        let (name, labels, value) = sample(line);
        assert_eq!(types.keys().last().map(|_| types.contains_key(&name)), Some(true), "{line}: no type");
        all.entry(name).or_default().push((labels, value));
    }
    all
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let value = value.parse().unwrap();
    let Some((name, rest)) = series.split_once('{') else { return (series.to_owned(), Labels::new(), value) };
    let (mut labels, mut rest) = (Labels::new(), rest);
    while rest != "}" {
        let (label, quoted) = rest.split_once("=\"").unwrap();
        let (mut text, mut chars) = (String::new(), quoted.char_indices());
        let end = loop {
            match chars.next().unwrap() {
                (_, '\\') => text.push(chars.next().map(|(_, c)| if c == 'n' { '\n' } else { c }).unwrap()),
                (at, '"') => break at,
                (_, c) => text.push(c),
            }
        };
        labels.insert(label.trim_start_matches(',').to_owned(), text);
        rest = &quoted[end + 1..];
    }
    (name.to_owned(), labels, value)
}

fn sum(samples: &[(Labels, f64)], wanted: &[(&str, &str)]) -> f64 {
    let fits = |labels: &Labels| {
        wanted.iter().all(|(label, text)| labels.get(*label).is_some_and(|one| one == text))
    };
    samples.iter().filter(|(labels, _)| fits(labels)).map(|(_, value)| value).sum()
}

#[tokio::test]
async fn drops_by_reason_and_by_port_add_up() {
    let snapshot = World::new().metrics().await.unwrap();
    let all = parse(&metrics::text(&snapshot));
    let packets = &all["hueplane_network_packets_total"];
    let by_port = &all["hueplane_network_port_packets_total"];
    for network in ["red", "blue"] {
        let of = |verdict| sum(packets, &[("network", network), ("verdict", verdict)]);
        for verdict in ["forward", "punt", "drop"] {
            assert_eq!(of(verdict), sum(by_port, &[("network", network), ("verdict", verdict)]), "{verdict}");
        }
        assert_eq!(of("drop"), sum(&all["hueplane_network_drops_total"], &[("network", network)]));
        assert_eq!(of("punt"), sum(&all["hueplane_network_punts_total"], &[("network", network)]));
        assert!(of("drop") > 0.0 && of("punt") > 0.0, "something was counted");
    }
}

#[tokio::test]
async fn every_series_of_a_network_names_it_and_every_reason_exists() {
    let snapshot = World::new().metrics().await.unwrap();
    let all = parse(&metrics::text(&snapshot));
    for (name, samples) in all.iter().filter(|(name, _)| name.starts_with("hueplane_network_")) {
        for network in ["red", "blue"] {
            assert!(samples.iter().any(|(labels, _)| labels["network"] == network), "{name} of {network}");
        }
    }
    let reasons = |name: &str| all[name].iter().filter(|(labels, _)| labels["network"] == "red").count();
    assert_eq!(reasons("hueplane_network_drops_total"), 12);
    assert_eq!(reasons("hueplane_network_punts_total"), 7);
    assert_eq!(reasons("hueplane_network_losses_total"), hue_planes::Loss::COUNT);
    assert_eq!(all["hueplane_unclaimed_frames_total"].len(), 3);
    for row in [
        hue_planes::METRIC_VERDICTS,
        hue_planes::METRIC_DROPS,
        hue_planes::METRIC_PUNTS,
        hue_planes::METRIC_UNCLAIMED,
        hue_planes::METRIC_LOSSES,
        hue_planes::METRIC_NETWORK_BYTES,
        hue_planes::METRIC_NETWORK_PORT_VERDICTS,
        hue_planes::METRIC_PORT_PACKETS,
        hue_planes::METRIC_PORT_BYTES,
        hue_planes::METRIC_PORT_LOSSES,
    ] {
        for (labels, _) in &all[row.name] {
            let names: BTreeSet<&str> = labels.keys().map(String::as_str).collect();
            assert_eq!(names, row.labels.iter().copied().collect(), "{}", row.name);
        }
    }
}

#[tokio::test]
async fn networks_that_learn_say_how_full_their_table_is() {
    let mut snapshot = World::new().metrics().await.unwrap();
    let names = [
        "hueplane_network_macs",
        "hueplane_network_macs_max",
        "hueplane_network_macs_learnt_total",
        "hueplane_network_macs_moved_total",
        "hueplane_network_macs_not_learnt_total",
        "hueplane_network_copies_total",
    ];
    let routers = parse(&metrics::text(&snapshot));
    assert!(names.iter().all(|name| !routers.contains_key(*name)), "a router has no such series");
    let stats = snapshot.stats.networks.iter_mut().find(|stats| stats.network == "red").unwrap();
    stats.macs = Some(MacStats { learnt: 12, moved: 3, not_learnt: 4 });
    stats.copies = 50;
    let share = snapshot.tables.networks.iter_mut().find(|share| share.network == "red").unwrap();
    (share.macs_learnt, share.macs_max) = (Some(7), Some(1_000));
    let all = parse(&metrics::text(&snapshot));
    for (name, value) in names.into_iter().zip([7.0, 1_000.0, 12.0, 3.0, 4.0, 50.0]) {
        let red = Labels::from([("network".to_owned(), "red".to_owned())]);
        assert_eq!(all[name], [(red, value)], "{name}");
    }
}

#[tokio::test]
async fn networks_of_several_families_count_by_family() {
    let mut snapshot = World::new().metrics().await.unwrap();
    let name = hue_planes::METRIC_NETWORK_FAMILY_VERDICTS.name;
    assert!(!parse(&metrics::text(&snapshot)).contains_key(name), "no network has several");
    let stats = snapshot.stats.networks.iter_mut().find(|stats| stats.network == "red").unwrap();
    let counts = FamilyStats { forwarded: 7, punted: 2, dropped: 1 };
    stats.families = [("ipv4".to_owned(), counts), ("ipv6".to_owned(), FamilyStats::default())].into();
    let all = parse(&metrics::text(&snapshot));
    assert_eq!(all[name].len(), 6);
    let of =
        |family, verdict| sum(&all[name], &[("network", "red"), ("family", family), ("verdict", verdict)]);
    assert_eq!(["forward", "punt", "drop"].map(|verdict| of("ipv4", verdict)), [7.0, 2.0, 1.0]);
    assert_eq!(of("ipv6", "forward"), 0.0);
}

/// A number that begins again is no loss: the metrics say since when each counts.
#[tokio::test]
async fn counters_say_since_when_they_count() {
    let snapshot = World::new().metrics().await.unwrap();
    let all = parse(&metrics::text(&snapshot));
    for network in ["red", "blue"] {
        let since = sum(&all["hueplane_network_start_time_seconds"], &[("network", network)]);
        assert_eq!(since, 1_767_225_600.0, "{network}");
    }
    let ports = &snapshot.stats.ports;
    let known = ports.iter().filter(|port| port.since.is_some()).count();
    assert!(known > 0 && all["hueplane_port_start_time_seconds"].len() == known);
    assert!(all["hueplane_start_time_seconds"][0].1 > 0.0);
}

#[tokio::test]
async fn any_text_is_safe_in_a_label() {
    let mut snapshot = World::new().metrics().await.unwrap();
    let hostile = "a\"} 1\nhueplane_up 0\\";
    snapshot.stats.networks[0].network = hostile.to_owned();
    let all = parse(&metrics::text(&snapshot));
    assert_eq!(all["hueplane_up"].len(), 1);
    assert!(sum(&all["hueplane_network_packets_total"], &[("network", hostile)]) > 0.0);
}
