//! Table memory: the networks' shares, quotas that refuse routes and accept them later, networks that do not fit the card.

use std::net::Ipv4Addr;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, Pair, can_run, http, until};
use serde_json::Value;

use crate::card::{network, node, runs_on, start};

/// Destinations far apart: each needs nodes of its own, on three levels.
fn destinations(count: u32) -> Vec<Ipv4Addr> {
    (0..count)
        .map(|n| Ipv4Addr::new(10, 64 + (n % 32) as u8, (n / 32) as u8, (n * 7 % 251) as u8 + 1))
        .collect()
}

/// Adds or deletes routes to these destinations via the right host, in the kernel of a network's namespace.
fn routes(daemon: &Daemon, pair: &Pair, verb: &str, to: &[Ipv4Addr]) {
    let lines: String =
        to.iter().map(|to| format!("route {verb} {to}/32 via {}\n", pair.right.address)).collect();
    let _ = daemon.cli.run_with(&["exec", pair.name(), "--", "ip", "-batch", "-"], &lines).expect_ok();
}

/// A network's share of the table.
fn share(daemon: &Daemon, pair: &Pair) -> Value {
    daemon.cli.json(&["get", "tables", pair.name()])
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_default()
}

fn metric(daemon: &Daemon, name: &str, pair: &Pair) -> f64 {
    let text = http::get(&daemon.cli.socket(), "/metrics").body;
    let head = format!("{name}{{network=\"{}\"}} ", pair.name());
    let line = text.lines().find_map(|line| line.strip_prefix(&head));
    line.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
}

#[test]
fn a_quota_refuses_what_is_beyond_it_and_touches_nobody_else() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let limited = |quota: &str| red.document.clone().with("table", &format!("{{quota: {quota}}}")).yaml();
    let documents = [lab.node_document(""), limited("16Ki"), blue.document.yaml()];
    let daemon = Daemon::start(&lab, &all(&documents));
    red.warm_up();
    blue.warm_up();
    let beside = Flow::start(&blue.left, &blue.right, 500, 200);

    // The same routes in both networks: blue has room for them, for red they are too many.
    let to = destinations(600);
    let before = number(&share(&daemon, &blue), "routes");
    routes(&daemon, &red, "add", &to);
    routes(&daemon, &blue, "add", &to);
    until("blue has all of its routes", 30, || number(&share(&daemon, &blue), "routes") == before + 600);
    until("red has what fits", 30, || {
        let red = share(&daemon, &red);
        number(&red, "routes_refused") > 0 && number(&red, "routes") + number(&red, "routes_refused") >= 600
    });
    until("nothing more fits, whichever is tried", 60, || {
        let before = share(&daemon, &red);
        // Longer than the interval between two tries.
        std::thread::sleep(Duration::from_secs(5));
        before == share(&daemon, &red)
    });
    let [of_red, of_blue] = [&red, &blue].map(|pair| share(&daemon, pair));
    let refused = number(&of_red, "routes_refused");
    assert_eq!(number(&of_red, "bytes_quota"), 16 << 10, "{of_red}");
    assert!((1..=16 << 10).contains(&number(&of_red, "bytes_own")), "{of_red}");
    assert!(number(&of_red, "bytes_own") > 12 << 10 && refused < 600, "most of it is used: {of_red}");
    assert!(number(&of_red, "refusals") >= refused, "{of_red}");
    assert_eq!((number(&of_blue, "routes_refused"), &of_blue["bytes_quota"]), (0, &Value::Null), "{of_blue}");
    for share in [&of_red, &of_blue] {
        let [own, shared, marginal] =
            ["bytes_own", "bytes_shared", "bytes_marginal"].map(|f| number(share, f));
        assert!(own == shared + marginal && shared > 0, "{share}");
    }

    // All views report it, with figures; and blue is unchanged.
    let condition = network(&daemon, red.name());
    let reason = condition["reason"].as_str().unwrap_or_default().to_owned();
    assert_eq!((&condition["state"], &condition["routes_refused"]), (&"degraded".into(), &refused.into()));
    assert!(
        reason.starts_with(&format!("{refused} of ")) && reason.contains("its quota (table.quota) is 16384"),
        "{reason}"
    );
    assert_eq!(network(&daemon, blue.name())["state"], "running");
    let told = |kind: &str, pair: &Pair| {
        let events = daemon.cli.events();
        events.iter().any(|event| event["kind"] == kind && event["network"] == pair.name())
    };
    assert!(told("network_degraded", &red) && !told("network_degraded", &blue));
    assert_eq!(metric(&daemon, "hueplane_network_routes_refused", &red) as u64, refused);
    assert_eq!(metric(&daemon, "hueplane_network_table_quota_bytes", &red) as u64, 16 << 10);
    assert_eq!(metric(&daemon, "hueplane_network_routes_refused", &blue) as u64, 0);
    let tables = daemon.cli.json(&["get", "tables"]);
    let [total, max, free] = ["bytes_total", "bytes_max", "bytes_free"].map(|field| number(&tables, field));
    assert!(total > 0 && total + free == max, "{tables}");
    let order: Vec<&Value> = tables["networks"].as_array().unwrap().iter().map(|s| &s["network"]).collect();
    assert_eq!(order, [blue.name(), red.name()], "the larger one is first: {tables}");
    let text = daemon.cli.run(&["get", "tables"]).expect_ok().stdout;
    assert!(text.contains("QUOTA") && text.contains("16,384") && text.contains(" free"), "{text}");

    // Refused routes are marked; the others, and blue's, are in the plane.
    let list = daemon.cli.json(&["get", "routes", "-n", red.name()]);
    let list: Vec<&Value> = list.as_array().unwrap().iter().collect();
    let address =
        |route: &&Value| -> Option<Ipv4Addr> { route["prefix"].as_str()?.strip_suffix("/32")?.parse().ok() };
    let (out, there): (Vec<&Value>, Vec<&Value>) = list.iter().partition(|route| route["refused"] == true);
    assert_eq!(out.len() as u64, refused);
    let far: Vec<Ipv4Addr> =
        there.iter().filter_map(address).filter(|to| destinations(600).contains(to)).collect();
    let (near, lost) = (far[0], out.iter().find_map(address).unwrap());
    for (pair, to) in [(&red, near), (&red, lost), (&blue, near), (&blue, lost)] {
        pair.right.space.ip(&["address", "replace", &format!("{to}/32"), "dev", "lo"]);
    }
    // The plane lacks the route, but the kernel has it: it gets such packets, within the punt limit, and forwards them.
    let no_route = |pair: &Pair| number(&daemon.cli.stats(pair.name())["punts"], "no_route");
    for (pair, to, without) in [(&red, near, 0), (&red, lost, 4), (&blue, near, 0), (&blue, lost, 0)] {
        let before = no_route(pair);
        assert_eq!(pair.left.ping(to, 4), 4, "{} to {to}", pair.name());
        assert_eq!(no_route(pair) - before, without, "{} to {to}", pair.name());
    }
    assert_eq!(red.left.ping(red.right.address, 5), 5);

    // Routes are withdrawn: refused routes are added until all are in the plane.
    routes(&daemon, &red, "del", &far);
    until("refused routes are taken", 30, || number(&share(&daemon, &red), "routes_refused") < refused);
    until("as many as fit", 30, || number(&share(&daemon, &red), "bytes_own") > 12 << 10);
    assert!(number(&share(&daemon, &red), "bytes_own") <= 16 << 10);
    // A larger quota has the same effect.
    daemon.cli.apply(&all(&[limited("1Mi")]), &[]);
    until("all are taken", 30, || number(&share(&daemon, &red), "routes_refused") == 0);
    let before = no_route(&red);
    assert_eq!((red.left.ping(lost, 4), no_route(&red)), (4, before));
    until("it is as desired again", 30, || {
        network(&daemon, red.name())["state"] == "running" && told("network_recovered", &red)
    });
    assert_eq!(share(&daemon, &blue), of_blue_now(&daemon, &of_blue, &blue), "blue was never touched");
    let report = beside.stop();
    assert!(report.sent > 0 && report.lost() == 0 && report.duplicated == 0, "{report}");
}

/// Blue's earlier share, with the present figure for shared memory, which depends on red.
fn of_blue_now(daemon: &Daemon, before: &Value, blue: &Pair) -> Value {
    let (mut expected, now) = (before.clone(), share(daemon, blue));
    for field in ["bytes_shared", "bytes_marginal"] {
        expected[field] = now[field].clone();
    }
    expected
}

#[test]
fn a_network_that_outgrows_the_card_comes_back_when_it_fits() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let pinned = red.document.clone().with("placement", "card");
    let documents = [node(&lab, "tcam3"), pinned.yaml(), blue.document.yaml()];
    let daemon = start(&lab, &["tcam3"], &documents);
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
        pair.warm_up();
    }
    let flow = Flow::start(&red.left, &red.right, 200, 200);
    // More than there are rows for addresses and routes.
    let to = destinations(80);
    routes(&daemon, &red, "add", &to);
    runs_on(&daemon, red.name(), "soft");
    until("it says why, with figures", 10, || {
        let network = network(&daemon, red.name());
        let why = network["why_soft"].as_str().unwrap_or_default().to_owned();
        // Its document says card; it still works.
        network["state"] == "running" && why.contains("route rows: image tcam3 has 32")
    });
    let tables = daemon.cli.json(&["get", "tables"]);
    let on_card = tables["card"]["networks"].as_array().unwrap();
    assert!(on_card.len() == 1 && on_card[0]["network"] == blue.name(), "{tables}");
    assert_eq!((&tables["card"]["layout"], &tables["card"]["unit"]), (&"tcam".into(), &"rows".into()));
    let memory = &tables["card"]["memories"][0];
    let [used, max, free] = ["used", "max", "free"].map(|field| number(memory, field));
    assert!(used > 0 && used + free == max && memory["network_max"] == 32, "{tables}");
    routes(&daemon, &red, "del", &to);
    runs_on(&daemon, red.name(), "card");
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
    assert_eq!(red.left.ping(red.right.address, 5), 5);
}

/// If the card has memory for many tables, the table of a network in software stays there and is kept up to date: a move copies
/// no routes.
#[test]
fn a_table_in_external_memory_stays_there_and_follows() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let documents = [node(&lab, "sram"), red.document.yaml(), blue.document.yaml()];
    let daemon = start(&lab, &["sram", "default"], &documents);
    for pair in [&red, &blue] {
        runs_on(&daemon, pair.name(), "card");
        daemon.cli.warm_up(&[pair]);
    }
    let to = destinations(2_000);
    routes(&daemon, &red, "add", &to);
    let on_card = |routes: u64| {
        until(&format!("the card has {routes} routes of red"), 60, || {
            let tables = daemon.cli.json(&["get", "tables"]);
            let shares = tables["card"]["networks"].as_array().cloned().unwrap_or_default();
            let red = shares.iter().find(|share| share["network"] == red.name());
            red.is_some_and(|share| number(share, "routes") == routes && number(share, "own") > 0)
        });
    };
    until("software has them", 30, || number(&share(&daemon, &red), "routes") >= 2_000);
    let count = number(&share(&daemon, &red), "routes");
    on_card(count);
    let beside = Flow::start(&blue.left, &blue.right, 500, 200);
    let through = Flow::start(&red.left, &red.right, 500, 200);
    for round in 0..4 {
        let proof = daemon.cli.json(&["migrate", red.name(), "--to", "soft"]);
        assert!(proof["lost"] == 0 && proof["doubled"] == 0 && proof["reordered"] == 0, "{proof}");
        // Its table changes while it is in software, and the card's copy with it.
        let some = &to[round * 100..round * 100 + 100];
        routes(&daemon, &red, "del", some);
        on_card(count - 100);
        let proof = daemon.cli.json(&["migrate", red.name(), "--to", "card"]);
        assert!(proof["lost"] == 0 && proof["doubled"] == 0 && proof["reordered"] == 0, "{proof}");
        eprintln!("{proof}");
        // Routes that were removed are also gone from the card, and the others are there.
        let no_route = || number(&daemon.cli.stats(red.name())["punts"], "no_route");
        let before = no_route();
        assert_eq!(red.left.ping(some[7], 2), 0);
        assert_eq!(no_route(), before + 2, "{}", some[7]);
        let _ = red.left.ping(to[1_000 + round], 2);
        assert_eq!(no_route(), before + 2, "{}", to[1_000 + round]);
        routes(&daemon, &red, "add", some);
        on_card(count);
    }
    for flow in [beside, through] {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
    }
    // Another image has room only for networks that run on it. Then the first image again.
    let _ = daemon.cli.json(&["migrate", red.name(), "--to", "soft"]);
    for (image, kept) in [("default", false), ("sram", true)] {
        let _ = daemon.cli.json(&["image", "load", image]);
        runs_on(&daemon, blue.name(), "card");
        let there = || {
            let tables = daemon.cli.json(&["get", "tables"]);
            let shares = tables["card"]["networks"].as_array().cloned().unwrap_or_default();
            shares.iter().any(|share| share["network"] == red.name() && number(share, "routes") == count)
        };
        if kept {
            until("the card keeps red's table", 60, there);
        } else {
            assert!(!there());
        }
    }
}
