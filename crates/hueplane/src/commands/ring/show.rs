//! What a running daemon says of itself: as JSON over its socket, and as text.

use std::collections::BTreeMap;
use std::time::Duration;

use hue_routing::ring::{Home, Hop, Next, Router};
use hue_wire::rofl::Label;
use serde::{Deserialize, Serialize};

use crate::print::{Align, BOLD, count, section, styled};

/// What the state machine does not know.
pub struct Extra<'a> {
    pub network: &'a str,
    pub now: Duration,
    pub send_failed: u64,
    /// Entries of the network, as hueplane has them.
    pub entries: usize,
    /// Why hueplane refused labels.
    pub refused: Option<&'a str>,
}

/// All of it.
#[derive(Serialize, Deserialize)]
pub struct Snapshot {
    version: String,
    pid: u32,
    network: String,
    /// The label by which others know this router.
    router: String,
    /// The smallest label of all routers that can be reached.
    zero: String,
    uptime_s: u64,
    interval_ms: u16,
    neighbours: Vec<NeighbourRow>,
    routers: Vec<RouterRow>,
    labels: Vec<LabelRow>,
    /// Labels of hosts elsewhere that are wanted from neighbours, and those of them that are entries.
    pointers_wanted: usize,
    pointers: usize,
    /// Entries of the network, those of its document included.
    entries: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    counters: CounterRows,
}

#[derive(Serialize, Deserialize)]
struct NeighbourRow {
    port: String,
    router: String,
    mac: String,
    /// Whether it hears this router.
    up: bool,
    /// Seconds since its last hello.
    heard_s: u64,
}

#[derive(Serialize, Deserialize)]
struct RouterRow {
    router: String,
    neighbours: Vec<String>,
    /// Links on the way there; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<u32>,
    /// Seconds since it said so.
    age_s: u64,
}

#[derive(Serialize, Deserialize)]
struct LabelRow {
    label: String,
    /// The port and address of its host; absent if it is the router's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Whether it has its place in the ring.
    joined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// `received = accepted + all drops`.
#[derive(Serialize, Deserialize)]
struct CounterRows {
    received: u64,
    accepted: u64,
    sent: u64,
    send_failed: u64,
    originated: u64,
    computations: u64,
    /// Frames dropped, by reason.
    drops: BTreeMap<String, u64>,
}

impl Snapshot {
    /// The state of a router.
    pub fn of(router: &Router, extra: &Extra<'_>) -> Self {
        let text = |label: Label| router.text(label);
        let names: BTreeMap<u16, &str> = router.ports().map(|port| (port.id, port.name.as_str())).collect();
        let name = |hop: &Hop| names.get(&hop.port).copied().unwrap_or_default().to_owned();
        let (config, counters) = (router.config(), router.counters());
        let neighbours = router.neighbours().iter().map(|(hop, one)| NeighbourRow {
            port: name(hop),
            router: text(one.router),
            mac: hop.mac.to_string(),
            up: one.hears,
            heard_s: extra.now.saturating_sub(one.heard).as_secs(),
        });
        let routers = router.database().iter().map(|(label, entry)| RouterRow {
            router: text(label),
            neighbours: entry.neighbours.iter().map(|one| text(*one)).collect(),
            links: router.routes().get(&label).map(|route| route.links),
            age_s: entry.age_at(extra.now).as_secs(),
        });
        let labels = router.locals().iter().map(|(label, local)| {
            let hop = match &local.home {
                Home::Own => None,
                Home::Host(hop) => Some(hop),
            };
            LabelRow {
                label: text(*label),
                port: hop.map(name),
                host: hop.map(|hop| hop.mac.to_string()),
                joined: local.joined,
                next: router.next(*label).map(Next::label).map(text),
                before: router.before(extra.now, *label).map(|(label, _)| text(label)),
            }
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            network: extra.network.to_owned(),
            router: text(config.router),
            zero: text(router.zero()),
            uptime_s: extra.now.as_secs(),
            interval_ms: config.interval_ms,
            neighbours: neighbours.collect(),
            routers: routers.collect(),
            labels: labels.collect(),
            pointers_wanted: router.pointers().asked(),
            pointers: router.pointers().up().len(),
            entries: extra.entries,
            refused: extra.refused.map(str::to_owned),
            counters: CounterRows {
                received: counters.received,
                accepted: counters.accepted,
                sent: counters.sent,
                send_failed: extra.send_failed,
                originated: counters.originated,
                computations: counters.computations,
                drops: counters
                    .drops
                    .iter()
                    .map(|(reason, count)| (reason.name().to_owned(), count))
                    .collect(),
            },
        }
    }

    /// As tables.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} {} of network {}, up {} s; hellos every {} ms; the smallest router of the ring is {}\n",
            styled(BOLD, "router"),
            self.router,
            self.network,
            self.uptime_s,
            self.interval_ms,
            self.zero,
        );
        let left = |name| (name, Align::Left);
        let right = |name| (name, Align::Right);
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let heads = [left("PORT"), left("NEIGHBOUR"), left("MAC"), left("STATE"), right("HEARD (s)")];
        let rows = self.neighbours.iter().map(|one| {
            let state = if one.up { "up" } else { "heard" };
            vec![
                one.port.clone(),
                one.router.clone(),
                one.mac.clone(),
                state.to_owned(),
                one.heard_s.to_string(),
            ]
        });
        section(&mut out, "neighbours", &heads, &rows.collect::<Vec<_>>());
        let heads = [left("ROUTER"), right("LINKS"), right("AGE (s)"), left("NEIGHBOURS")];
        let rows = self.routers.iter().map(|one| {
            let links = one.links.map_or_else(|| "-".to_owned(), |links| links.to_string());
            vec![one.router.clone(), links, one.age_s.to_string(), one.neighbours.join(", ")]
        });
        section(&mut out, "routers", &heads, &rows.collect::<Vec<_>>());
        let heads = [left("LABEL"), left("PORT"), left("HOST"), left("STATE"), left("BEFORE"), left("NEXT")];
        let rows = self.labels.iter().map(|one| {
            let state = if one.joined { "joined" } else { "joining" }.to_owned();
            vec![
                one.label.clone(),
                dash(&one.port),
                dash(&one.host),
                state,
                dash(&one.before),
                dash(&one.next),
            ]
        });
        section(&mut out, "labels", &heads, &rows.collect::<Vec<_>>());
        out.push('\n');
        out.push_str(&format!(
            "{} of {} to hosts elsewhere, {}\n",
            self.pointers,
            count(self.pointers_wanted as u64, "pointer"),
            if self.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", self.entries) },
        ));
        if let Some(error) = &self.refused {
            out.push_str(&format!("hueplane refuses the labels: {error}\n"));
        }
        out.push_str(&self.counters.text());
        out
    }
}

impl CounterRows {
    fn text(&self) -> String {
        let mut out = format!(
            "received {}: {} accepted, {}\nsent {}, {} failed; own links said {} times, {} of ways\n",
            self.received,
            self.accepted,
            count(self.drops.values().sum(), "drop"),
            self.sent,
            self.send_failed,
            self.originated,
            count(self.computations, "computation"),
        );
        let drops = self.drops.iter().filter(|(_, count)| **count > 0);
        let drops: Vec<String> = drops.map(|(reason, count)| format!("{reason} {count}")).collect();
        if !drops.is_empty() {
            out.push_str(&format!("drops: {}\n", drops.join(", ")));
        }
        out
    }
}
