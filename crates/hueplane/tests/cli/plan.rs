//! `plan` and `get placements`: for files, and for the daemon of the API tests.

use serde_json::Value;

use crate::card::images;
use crate::support::Scratch;

const NODE: &str = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec:\n  ports: [{name: p0}, {name: p1}, {name: n0}]\n";

/// A network on these two ports.
fn network(name: &str, number: u8, ports: [&str; 2], rest: &str) -> String {
    let [left, right] = ports;
    format!(
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n  \
         - {{name: left, port: {left}, mac: '02:00:00:00:{number:02x}:01', addresses: [10.{number}.1.1/24]}}\n  \
         - {{name: right, port: {right}, mac: '02:00:00:00:{number:02x}:02', addresses: [10.{number}.2.1/24]}}\n{rest}"
    )
}

fn documents(node: &str) -> String {
    let card = ["p0", "p1"];
    [
        node.to_owned(),
        network("big", 1, card, "  needs: {bandwidth: 900Mbit/s}\n"),
        network("fast", 2, card, "  needs: {latency: low}\n"),
        network("kept", 3, card, "  placement: soft\n  needs: {bandwidth: 100Mbit/s}\n"),
        network("small", 4, card, "  needs: {bandwidth: 50Mbit/s}\n"),
        network("wide", 5, ["p0", "n0"], "  needs: {bandwidth: 700Mbit/s}\n"),
    ]
    .concat()
}

/// The scheduled place of each network, and why it is not elsewhere.
fn places(plan: &Value) -> Vec<(&str, &str, &str)> {
    fn text<'a>(network: &'a Value, field: &str) -> &'a str {
        network[field]
            .as_str()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| panic!("{field}: {network}"))
    }
    let networks = plan["networks"].as_array().unwrap();
    assert!(networks.iter().all(|network| !text(network, "why").is_empty()));
    networks.iter().map(|one| (text(one, "network"), text(one, "substrate"), text(one, "why_not"))).collect()
}

#[test]
fn nothing_is_planned_for_a_drained_card() {
    let dir = Scratch::new();
    let node = format!("{NODE}  card: {{twin: {{image: default}}, ports: [p0, p1], drained: true}}\n");
    dir.write("all.yaml", documents(&node));
    let images = images();
    for scheduler in ["greedy", "exact"] {
        let command = format!("plan -f all.yaml --scheduler {scheduler} -o json");
        let plan = dir.hueplane_env(&command, &[("HUEPLANE_IMAGES", images)]).ok().json();
        let places = places(&plan);
        assert!(places.iter().all(|(_, substrate, _)| *substrate == "soft"), "{plan}");
        assert_eq!(places[2].2, "its document says soft");
        assert_eq!(places[0].2, "the card is drained: `hueplane undrain card` ends that");
        assert_eq!(places[4].2, "its port 'n0' is not a port of the card");
    }
}

#[test]
fn without_a_card_everything_runs_in_software() {
    let dir = Scratch::new();
    dir.write("all.yaml", documents(NODE));
    for scheduler in ["greedy", "exact"] {
        let plan = dir.hueplane(&format!("plan -f all.yaml --scheduler {scheduler} -o json")).ok().json();
        assert_eq!(plan["scheduler"], scheduler);
        let places = places(&plan);
        assert!(places.iter().all(|(_, substrate, _)| *substrate == "soft"), "{plan}");
        assert_eq!(places[0].2, "the node has no card");
        assert_eq!(places[2].2, "the node has no card");
        assert_eq!(
            (&plan["needed_bps"], &plan["served_bps"]),
            (&1_750_000_000u64.into(), &500_000_000.into())
        );
        assert_eq!(plan["moves"], serde_json::json!([]));
    }
    let text = dir.hueplane("plan -f all.yaml").ok().stdout;
    for part in ["WHY NOT ELSEWHERE", "auto, low latency", "serves 500 Mbit/s of 1.75 Gbit/s needed, 0 moves"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let yaml = dir.hueplane("plan -f all.yaml -o yaml").ok().stdout;
    assert!(yaml.contains("scheduler: greedy"), "{yaml}");
}

#[test]
fn the_card_in_the_document_is_used() {
    let dir = Scratch::new();
    let card = "  card: {twin: {image: default}, ports: [p0, p1]}\n";
    let node = |scheduler: &str| documents(&format!("{NODE}{card}{scheduler}"));
    dir.write("all.yaml", node("  scheduler: {kind: exact, soft: {cores: 2, bandwidth: 800Mbit/s}}\n"));
    let run = |args: &str| dir.hueplane_env(args, &[("HUEPLANE_IMAGES", images())]);
    let plan = run("plan -f all.yaml -o json").ok().json();
    assert_eq!((&plan["scheduler"], &plan["needed_bps"]), (&"exact".into(), &plan["served_bps"]));
    assert_eq!(plan["note"], Value::Null);
    let found = places(&plan);
    assert_eq!((found[0].0, found[0].1), ("big", "card"));
    assert_eq!(found[1], ("fast", "card", "it needs low latency"));
    assert_eq!(found[2], ("kept", "soft", "its document says soft"));
    assert_eq!(found[4], ("wide", "soft", "its port 'n0' is not a port of the card"));
    let uses = plan["uses"].to_string();
    assert!(uses.contains("card words") && uses.contains("core 1 bit/s"), "{uses}");
    // The scheduler in the document is only the default.
    assert_eq!(run("plan -f all.yaml --scheduler greedy -o json").ok().json()["scheduler"], "greedy");
    // A small image with three places, which the networks with low latency get.
    let low = |number| network(&format!("low{number}"), number, ["p0", "p1"], "  needs: {latency: low}\n");
    dir.write("small.yaml", node("").replace("image: default", "image: tcam3") + &low(6) + &low(7));
    let plan = run("plan -f small.yaml -o json").ok().json();
    let found = places(&plan);
    assert_eq!(found[0], ("big", "soft", "the card has no places for networks left (3 in total)"));
    assert!(found.iter().all(|one| (one.1 == "card") == (one.0 == "fast" || one.0.starts_with("low"))));
}

#[test]
fn errors_are_reported() {
    let dir = Scratch::new();
    dir.write("card.yaml", documents(&format!("{NODE}  card: {{twin: {{image: none}}, ports: [p0]}}\n")));
    dir.write("bad.yaml", documents(NODE).replace("900Mbit/s", "900Mb/s"));
    dir.hueplane("plan -f none.yaml").fails(3, "none.yaml: cannot be read");
    dir.hueplane("plan -f bad.yaml").fails(3, "bad.yaml:15:22: spec.needs.bandwidth: found \"900Mb/s\"");
    dir.hueplane_env("plan -f card.yaml", &[("HUEPLANE_IMAGES", "no/where")]).fails(3, "no image 'none'");
    dir.hueplane("plan -f bad.yaml --from-traffic").fails(2, "cannot be used with");
    dir.hueplane("plan --scheduler best").fails(2, "possible values: greedy, exact");
}
