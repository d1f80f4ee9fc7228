//! Quotas on a node that is stepped by hand: refused routes, routes accepted once there is room, and the effect on other networks.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use hue_card::Images;
use hue_soft::LiveConfig;
use hue_tables::Prefix4;
use hueplaned::api::{NetworkState, TableShare};
use hueplaned::node::by_hand::ByHand;

const VIA: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

fn document(name: &str, number: u8, table: &str) -> String {
    format!(
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  \
         ports:\n    - {{name: left, port: p0, mac: \"02:00:00:00:0{number}:01\", addresses: [10.1.0.{number}/24]}}\n  \
         neighbours:\n    - {{port: left, address: {VIA}, mac: \"02:00:00:00:0a:09\"}}\n{table}"
    )
}

struct World {
    node: ByHand,
    table: &'static str,
}

impl World {
    fn new(table: &'static str) -> Self {
        let config = LiveConfig { workers: 1, slots: 8192, ..LiveConfig::default() };
        let mut node = ByHand::start(config, Images::in_folders(Vec::new()), &["p0"]).unwrap();
        node.apply(&Self::documents(table), true).unwrap();
        let mut world = Self { node, table };
        world.settle();
        assert!(world.node.runs("red") && world.node.runs("blue"));
        world
    }

    fn documents(table: &str) -> String {
        let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0}]\n";
        format!("{node}{}{}", document("red", 1, table), document("blue", 2, ""))
    }

    fn settle(&mut self) {
        while self.node.step_job()
            | self.node.step_kernel()
            | self.node.step_node()
            | self.node.step_worker(0)
        {}
    }

    fn route(&mut self, network: &str, prefix: Prefix4, there: bool) {
        assert!(self.node.route(network, prefix.into(), there.then_some(VIA.into())));
    }

    fn share(&self, network: &str) -> TableShare {
        let tables = self.node.tables();
        tables.networks.into_iter().find(|share| share.network == network).unwrap()
    }

    fn condition(&mut self, network: &str) -> (NetworkState, Option<String>) {
        let look = self.node.look();
        let look = look.networks.into_iter().find(|one| one.name == network).unwrap();
        (look.state, look.reason)
    }
}

fn prefix(n: u32) -> Prefix4 {
    Prefix4::containing(0x1400_0000 | n.wrapping_mul(0x9e37_79b1) >> 8, 20 + (n % 13) as u8)
}

#[test]
fn what_does_not_fit_is_refused_and_taken_when_there_is_room() {
    for seed in 1..=6_u32 {
        let mut world = World::new("  table: {quota: 16Ki}\n");
        let own_routes = world.share("red").routes;
        let mut random = seed;
        let mut wanted = BTreeSet::new();
        for round in 0..60 {
            for _ in 0..20 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Many routes are announced, then many are withdrawn, and so on.
                let (n, there) =
                    ((random >> 8) % 700, (random >> 24) % 10 < if round / 20 % 2 == 0 { 8 } else { 2 });
                if there {
                    wanted.insert(prefix(n))
                } else {
                    wanted.remove(&prefix(n))
                };
                world.route("red", prefix(n), there);
            }
            world.settle();
            let share = world.share("red");
            assert_eq!(share.routes + share.routes_refused, own_routes + wanted.len() as u64, "seed {seed}");
            assert!(share.refusals >= share.routes_refused);
            let (state, reason) = world.condition("red");
            if share.routes_refused == 0 {
                assert_eq!((state, reason), (NetworkState::Running, None), "seed {seed}");
            } else {
                assert_eq!(state, NetworkState::Degraded);
                let head = format!(
                    "{} of {} routes are refused",
                    share.routes_refused,
                    share.routes + share.routes_refused
                );
                assert!(reason.as_ref().is_some_and(|reason| reason.starts_with(&head)), "{reason:?}");
            }
            let blue = world.share("blue");
            assert_eq!((blue.routes, blue.routes_refused, blue.bytes_quota), (own_routes, 0, None));
            assert_eq!(world.condition("blue"), (NetworkState::Running, None));
        }
        assert!(world.share("red").refusals > 0, "seed {seed}: something was refused");
        // As many routes as fit are accepted, without a request and in time.
        let gone: Vec<Prefix4> = wanted.iter().copied().collect();
        let (gone, kept) = gone.split_at(gone.len().saturating_sub(40));
        gone.iter().for_each(|prefix| world.route("red", *prefix, false));
        world.settle();
        for _ in 0..4 {
            world.node.retry();
            world.settle();
        }
        let share = world.share("red");
        assert_eq!((share.routes, share.routes_refused), (own_routes + kept.len() as u64, 0), "seed {seed}");
        assert!(share.bytes_own <= 16 << 10);
        assert_eq!(world.condition("red").0, NetworkState::Running);
    }
}

#[test]
fn a_larger_quota_takes_the_refused_and_a_smaller_one_takes_nothing_away() {
    let mut world = World::new("  table: {quota: 4Ki}\n");
    (0..700).for_each(|n| world.route("red", prefix(n), true));
    world.settle();
    let first = world.share("red");
    assert!(first.routes_refused > 600 && first.bytes_own <= 4 << 10, "{first:?}");
    let mut with = |table| {
        world.table = table;
        world.node.apply(&World::documents(world.table), true).unwrap();
        world.settle();
        world.share("red")
    };
    let some = with("  table: {quota: 16Ki}\n");
    assert!(some.routes > first.routes && some.routes_refused > 0 && some.bytes_own <= 16 << 10, "{some:?}");
    let all = with("");
    assert_eq!((all.routes_refused, all.bytes_quota), (0, None));
    let less = with("  table: {quota: 4Ki}\n");
    assert_eq!((less.routes, less.routes_refused), (all.routes, 0), "what is there stays");
    (700..720).for_each(|n| world.route("red", prefix(n), true));
    world.settle();
    let full = world.share("red");
    assert!(full.routes_refused > 0 && full.bytes_own <= all.bytes_own, "only what adds nothing: {full:?}");
}
