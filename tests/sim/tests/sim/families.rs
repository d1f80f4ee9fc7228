//! Networks of both address families on one card: their tables there are those of their namespaces.

use hue_differential::images_alone;
use hue_sim::hand::{self, settle};
use hue_substrate::planted::{Bug, plant};
use hue_tables::AnyPrefix;
use hueplaned::node::by_hand::ByHand;

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;

const DOCUMENTS: &str = r#"apiVersion: hueplane/v1
kind: Node
metadata: {name: sim}
spec:
  ports: [{name: p0}, {name: p1}]
  card: {twin: {image: sram}, ports: [p0, p1]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: four}
spec:
  plane: {kind: ipv4}
  placement: card
  ports:
    - {name: a, port: p0, mac: "02:00:00:00:04:00", addresses: [10.1.0.1/24]}
    - {name: b, port: p1, mac: "02:00:00:00:04:01", addresses: [10.2.0.1/24]}
  routes: [{to: 10.9.0.0/16, via: 10.2.0.2}]
  neighbours: [{port: b, address: 10.2.0.2, mac: "02:aa:00:00:00:04"}]
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: six}
spec:
  plane: {kind: ipv6}
  placement: card
  ports:
    - {name: a, port: p0, mac: "02:00:00:00:06:00", addresses: ["2001:db8:1::1/64"]}
    - {name: b, port: p1, mac: "02:00:00:00:06:01", addresses: ["2001:db8:2::1/64"]}
  routes: [{to: "2001:db8:9::/48", via: "2001:db8:2::2"}]
  neighbours: [{port: b, address: "2001:db8:2::2", mac: "02:aa:00:00:00:06"}]
"#;

/// Whether software decides a network's packets, its routes on the card, and whether its table there is right.
fn on_card(node: &ByHand, name: &str) -> (bool, usize, bool) {
    let look = node.look();
    let network = look.networks.iter().find(|one| one.name == name);
    let card =
        network.and_then(|network| network.card.as_ref()).unwrap_or_else(|| panic!("{name}: {look:?}"));
    (card.software, card.routes, card.same_table)
}

#[test]
fn the_card_has_the_routes_of_both_families() {
    // External and on-chip memory.
    for image in ["sram", "kinds"] {
        has_the_routes(image);
    }
}

fn has_the_routes(image: &str) {
    let mut node = hand::start(&images_alone(&[image])).unwrap();
    node.apply(&DOCUMENTS.replace("image: sram", &format!("image: {image}")), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    // The prefix behind that of the document's route: the checker asks the card for addresses at the ends of routes.
    for (name, prefix, via) in
        [("four", "10.10.0.0/16", "10.2.0.2"), ("six", "2001:db8:a::/48", "2001:db8:2::2")]
    {
        // Two addresses, two links, a neighbour and a route.
        assert_eq!(on_card(&node, name), (false, 6, true), "{name}");
        let prefix = AnyPrefix::parse(prefix).unwrap();
        let via = Some(via.parse().unwrap());
        assert!(node.route(name, prefix, via));
        settle(&mut node, IDLE_PASSES);
        assert_eq!(on_card(&node, name), (false, 7, true), "{name}");
        // A change that does not reach the card is seen.
        plant(Some(Bug::NoMirror));
        assert!(node.route(name, prefix, None));
        settle(&mut node, IDLE_PASSES);
        plant(None);
        assert!(!on_card(&node, name).2, "{name}");
    }
}
