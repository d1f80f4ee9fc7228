//! Metrics in Prometheus's text format, made from the counters at the moment of the scrape.
//!
//! Flow: [`MetricsSnapshot`] → [`text`] → `GET /metrics`. This module has no state: the counters are in the workers.
//! Invariants: base units; every series of a network has the label `network`; a reason that did not occur is present
//! with value 0, so that its first occurrence is visible as an increase; for every network, `packets` by verdict is
//! the sum over its virtual ports, its verdict `drop` is the sum of `drops` by reason, and the same holds for `punt`.
//! Names of verdicts and reasons are those of `spec/kinds.toml` and `spec/kinds/`.
//! Source: Prometheus, exposition formats, text format 0.0.4. The well-known crates write OpenMetrics or keep their own
//! counters, so this module writes the format itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use hue_planes::{
    Loss, METRIC_DROPS, METRIC_LOSSES, METRIC_NETWORK_BYTES, METRIC_NETWORK_FAMILY_VERDICTS,
    METRIC_NETWORK_PORT_VERDICTS, METRIC_PORT_BYTES, METRIC_PORT_LOSSES, METRIC_PORT_PACKETS, METRIC_PUNTS,
    METRIC_UNCLAIMED, METRIC_VERDICTS, Metric, PortLoss, Reason, Unclaimed, Verdict,
};

use crate::api::{
    CardMemory, Health, MacStats, NetworkState, NetworkStats, PortState, PortStats, TableShare,
};
use crate::backend::MetricsSnapshot;

/// Media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Directions.
const RECEIVED: &str = "received";
const SENT: &str = "sent";

/// Type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
}

/// The text of one scrape.
struct Text {
    out: String,
    name: &'static str,
}

impl Text {
    /// Begins a metric; its samples follow.
    fn metric(&mut self, name: &'static str, kind: Kind, doc: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.name = name;
        let doc = doc.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.out, "# HELP {name} {doc}\n# TYPE {name} {kind}");
    }

    fn counter(&mut self, metric: &Metric) {
        self.metric(metric.name, Kind::Counter, metric.doc);
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.out.push_str(self.name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{before}{label}=\"");
            text.chars().for_each(|c| match c {
                '\\' => self.out.push_str("\\\\"),
                '"' => self.out.push_str("\\\""),
                '\n' => self.out.push_str("\\n"),
                _ => self.out.push(c),
            });
            self.out.push('"');
        }
        let _ = writeln!(self.out, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// The metrics of a snapshot.
#[must_use]
pub fn text(snapshot: &MetricsSnapshot) -> String {
    let mut text = Text { out: String::new(), name: "" };
    daemon(&mut text, snapshot);
    packets(&mut text, snapshot);
    network_bytes(&mut text, snapshot);
    virtual_ports(&mut text, snapshot);
    networks(&mut text, snapshot);
    tables(&mut text, snapshot);
    macs(&mut text, snapshot);
    ports(&mut text, snapshot);
    workers(&mut text, snapshot);
    text.out
}

fn daemon(text: &mut Text, snapshot: &MetricsSnapshot) {
    let status = &snapshot.status;
    text.metric("hueplane_build_info", Kind::Gauge, "Version of the daemon; always 1.");
    text.sample(&[("version", &status.version)], 1);
    text.metric("hueplane_start_time_seconds", Kind::Gauge, "When the daemon started, seconds since 1970.");
    text.sample(&[], status.started.us() as f64 / 1e6);
    text.metric("hueplane_up", Kind::Gauge, "Whether everything runs as desired, 1 or 0.");
    text.sample(&[], u8::from(status.health == Health::Running));
    text.metric("hueplane_generation", Kind::Gauge, "Number of the desired state in force.");
    text.sample(&[], status.generation);
    if let Some(card) = &status.card {
        let help = "Whether the card is drained, so that no network runs on it, 1 or 0.";
        text.metric("hueplane_card_drained", Kind::Gauge, help);
        text.sample(&[], u8::from(card.drained));
    }
}

fn packets(text: &mut Text, snapshot: &MetricsSnapshot) {
    let networks = &snapshot.stats.networks;
    text.metric(
        "hueplane_network_start_time_seconds",
        Kind::Gauge,
        "Since when the counters of a network count, seconds since 1970.",
    );
    for network in networks {
        text.sample(&[("network", &network.network)], network.since.us() as f64 / 1e6);
    }
    text.counter(&METRIC_VERDICTS);
    for network in networks {
        for (verdict, count) in by_verdict(network.forwarded, network.punted, network.dropped) {
            text.sample(&[("network", &network.network), ("verdict", verdict)], count);
        }
    }
    families(text, networks);
    text.counter(&METRIC_DROPS);
    reasons(text, networks, |network| outcomes(network, Verdict::Drop), |network| &network.drops);
    text.counter(&METRIC_PUNTS);
    reasons(text, networks, |network| outcomes(network, Verdict::Punt), |network| &network.punts);
    text.counter(&METRIC_LOSSES);
    reasons(text, networks, |_| Loss::ALL.map(Loss::name).into(), |network| &network.losses);
    if !snapshot.stats.workers.is_empty() || !snapshot.stats.unclaimed.is_empty() {
        text.counter(&METRIC_UNCLAIMED);
        for reason in Unclaimed::ALL.map(Unclaimed::name) {
            let count = snapshot.stats.unclaimed.get(reason).copied().unwrap_or(0);
            text.sample(&[("reason", reason)], count);
        }
    }
}

/// Counts by address family, if any network has several.
fn families(text: &mut Text, networks: &[NetworkStats]) {
    if networks.iter().all(|network| network.families.is_empty()) {
        return;
    }
    text.counter(&METRIC_NETWORK_FAMILY_VERDICTS);
    for network in networks {
        for (family, counts) in &network.families {
            for (verdict, count) in by_verdict(counts.forwarded, counts.punted, counts.dropped) {
                let labels = [("network", &*network.network), ("family", family), ("verdict", verdict)];
                text.sample(&labels, count);
            }
        }
    }
}

/// Names of the outcomes of a network's kind with this verdict.
fn outcomes(network: &NetworkStats, verdict: Verdict) -> Vec<&'static str> {
    let kind = hue_planes::Kind::ALL.into_iter().find(|kind| kind.name() == network.kind);
    let all = kind.into_iter().flat_map(Reason::all);
    all.filter(|reason| reason.verdict() == verdict).map(Reason::name).collect()
}

/// A sample for each reason that is known or has occurred.
fn reasons(
    text: &mut Text,
    networks: &[NetworkStats],
    known: impl Fn(&NetworkStats) -> Vec<&'static str>,
    counts: impl Fn(&NetworkStats) -> &BTreeMap<String, u64>,
) {
    for network in networks {
        let occurred = counts(network);
        let mut all: BTreeMap<&str, u64> = known(network).into_iter().map(|reason| (reason, 0)).collect();
        all.extend(occurred.iter().map(|(reason, count)| (reason.as_str(), *count)));
        for (reason, count) in all {
            text.sample(&[("network", &network.network), ("reason", reason)], count);
        }
    }
}

fn by_verdict(forwarded: u64, punted: u64, dropped: u64) -> [(&'static str, u64); 3] {
    [(Verdict::Forward.name(), forwarded), (Verdict::Punt.name(), punted), (Verdict::Drop.name(), dropped)]
}

fn network_bytes(text: &mut Text, snapshot: &MetricsSnapshot) {
    let networks = &snapshot.stats.networks;
    text.counter(&METRIC_NETWORK_BYTES);
    for network in networks {
        text.sample(&[("network", &network.network), ("direction", RECEIVED)], network.received_bytes);
        text.sample(&[("network", &network.network), ("direction", SENT)], network.sent_bytes);
    }
    text.metric(
        "hueplane_network_sent_packets_total",
        Kind::Counter,
        "Packets sent by the virtual ports of a network: those forwarded and those of its control plane.",
    );
    networks.iter().for_each(|network| text.sample(&[("network", &network.network)], network.sent));
    text.metric(
        "hueplane_network_control_packets_total",
        Kind::Counter,
        "Packets that the control plane of a network sent.",
    );
    networks.iter().for_each(|network| text.sample(&[("network", &network.network)], network.from_control));
    text.metric(
        "hueplane_network_to_tunnels_packets_total",
        Kind::Counter,
        "Punted packets of tunnels that a network carries, which went on to the networks in the tunnels.",
    );
    networks.iter().for_each(|network| text.sample(&[("network", &network.network)], network.to_tunnels));
}

fn virtual_ports(text: &mut Text, snapshot: &MetricsSnapshot) {
    let all = || {
        let networks = snapshot.stats.networks.iter();
        networks.flat_map(|network| network.ports.iter().map(move |port| (network.network.as_str(), port)))
    };
    text.counter(&METRIC_NETWORK_PORT_VERDICTS);
    for (network, port) in all() {
        for (verdict, count) in by_verdict(port.forwarded, port.punted, port.dropped) {
            text.sample(&[("network", network), ("port", &port.port), ("verdict", verdict)], count);
        }
    }
    text.metric("hueplane_network_port_sent_packets_total", Kind::Counter, "Packets sent by a virtual port.");
    all().for_each(|(network, port)| text.sample(&[("network", network), ("port", &port.port)], port.sent));
    text.metric("hueplane_network_port_bytes_total", Kind::Counter, "Bytes of frames of a virtual port.");
    for (network, port) in all() {
        let labels =
            |direction| [("network", network), ("port", port.port.as_str()), ("direction", direction)];
        text.sample(&labels(RECEIVED), port.received_bytes);
        text.sample(&labels(SENT), port.sent_bytes);
    }
}

fn networks(text: &mut Text, snapshot: &MetricsSnapshot) {
    let networks = &snapshot.networks;
    text.metric("hueplane_network_up", Kind::Gauge, "Whether a network runs as desired, 1 or 0.");
    for network in networks {
        text.sample(&[("network", &network.name)], u8::from(network.state == NetworkState::Running));
    }
    let help = "Whether a virtual port can receive and send, 1 or 0; the end of a tunnel: whether there is a route to the far end.";
    text.metric("hueplane_network_port_up", Kind::Gauge, help);
    for (network, port) in networks.iter().flat_map(|one| one.ports.iter().map(move |port| (&one.name, port)))
    {
        text.sample(&[("network", network), ("port", &port.name)], u8::from(port.up));
    }
    text.metric("hueplane_network_neighbours", Kind::Gauge, "Neighbours whose MAC address is known.");
    networks.iter().for_each(|network| text.sample(&[("network", &network.name)], network.neighbours));
    let usage =
        || networks.iter().filter_map(|network| Some((network.name.as_str(), network.usage.as_ref()?)));
    text.metric(
        "hueplane_network_cpu_seconds_total",
        Kind::Counter,
        "Processor time used by the processes of a network, in seconds.",
    );
    usage().for_each(|(network, usage)| text.sample(&[("network", network)], usage.cpu_seconds));
    text.metric("hueplane_network_memory_bytes", Kind::Gauge, "Memory used by the processes of a network.");
    usage().for_each(|(network, usage)| text.sample(&[("network", network)], usage.memory_bytes));
    text.metric("hueplane_network_processes", Kind::Gauge, "Processes and threads of a network.");
    usage().for_each(|(network, usage)| text.sample(&[("network", network)], usage.processes));
}

/// MAC addresses of networks whose kind learns them; other networks have no such series.
fn macs(text: &mut Text, snapshot: &MetricsSnapshot) {
    let shares = &snapshot.tables.networks;
    let mut gauge = |name, doc, of: fn(&TableShare) -> Option<u64>| {
        text.metric(name, Kind::Gauge, doc);
        let shares = shares.iter().filter_map(|share| Some((share, of(share)?)));
        shares.for_each(|(share, value)| text.sample(&[("network", &share.network)], value));
    };
    gauge(
        "hueplane_network_macs",
        "MAC addresses that a network has learnt and not forgotten; static ones are not among them.",
        |share| share.macs_learnt,
    );
    gauge("hueplane_network_macs_max", "Limit on the MAC addresses that a network learns.", |share| {
        share.macs_max
    });
    let learning = || snapshot.stats.networks.iter().filter_map(|network| Some((network, network.macs?)));
    let mut counter = |name, doc, of: fn(&NetworkStats, MacStats) -> u64| {
        text.metric(name, Kind::Counter, doc);
        let networks = learning();
        networks.for_each(|(network, macs)| text.sample(&[("network", &network.network)], of(network, macs)));
    };
    counter("hueplane_network_macs_learnt_total", "MAC addresses that a network learnt.", |_, macs| {
        macs.learnt
    });
    counter(
        "hueplane_network_macs_moved_total",
        "Learnt MAC addresses of a network that moved to another port.",
        |_, macs| macs.moved,
    );
    counter(
        "hueplane_network_macs_not_learnt_total",
        "Frames of a network whose source address was not learnt, because the limit was reached.",
        |_, macs| macs.not_learnt,
    );
    counter(
        "hueplane_network_copies_total",
        "Copies of frames that a network sent to all of its ports; such a frame counts once as forwarded.",
        |network, _| network.copies,
    );
}

fn tables(text: &mut Text, snapshot: &MetricsSnapshot) {
    let tables = &snapshot.tables;
    text.metric("hueplane_network_table_entries", Kind::Gauge, "Routes of a network in its table.");
    tables.networks.iter().for_each(|share| text.sample(&[("network", &share.network)], share.routes));
    text.metric("hueplane_network_next_hops", Kind::Gauge, "Rows of a network's next-hop table in use.");
    tables.networks.iter().for_each(|share| text.sample(&[("network", &share.network)], share.next_hops));
    text.metric(
        "hueplane_network_table_bytes",
        Kind::Gauge,
        "Table memory that lookups of a network can reach; networks share memory, so the sum can exceed the total.",
    );
    tables.networks.iter().for_each(|share| text.sample(&[("network", &share.network)], share.bytes_own));
    let mut each = |name, kind, doc, of: fn(&TableShare) -> Option<u64>| {
        text.metric(name, kind, doc);
        let shares = tables.networks.iter().filter_map(|share| Some((share, of(share)?)));
        shares.for_each(|(share, value)| text.sample(&[("network", &share.network)], value));
    };
    each(
        "hueplane_network_table_marginal_bytes",
        Kind::Gauge,
        "Table memory that would be freed if a network were removed.",
        |share| share.bytes_marginal,
    );
    each(
        "hueplane_network_table_quota_bytes",
        Kind::Gauge,
        "Limit on the table memory that lookups of a network can reach.",
        |share| share.bytes_quota,
    );
    each(
        "hueplane_network_routes_refused",
        Kind::Gauge,
        "Routes of a network that its table has no room for.",
        |share| Some(share.routes_refused),
    );
    each(
        "hueplane_network_route_refusals_total",
        Kind::Counter,
        "Announcements of a network that its table had no room for.",
        |share| Some(share.refusals),
    );
    if let Some(card) = tables.card.as_ref().filter(|card| !card.memories.is_empty()) {
        let mut each = |name, doc, of: fn(&CardMemory) -> u64| {
            text.metric(name, Kind::Gauge, doc);
            card.memories.iter().for_each(|memory| text.sample(&[("memory", &memory.name)], of(memory)));
        };
        each("hueplane_card_table_used", "Words or rows of a memory of the card in use.", |memory| {
            memory.used
        });
        each("hueplane_card_table_max", "Words or rows of a memory of the card.", |memory| memory.max);
    }
    if let Some(bytes) = tables.bytes_total {
        text.metric("hueplane_table_bytes", Kind::Gauge, "Table memory in use by all networks together.");
        text.sample(&[], bytes);
    }
    if let Some(bytes) = tables.bytes_max {
        text.metric(
            "hueplane_table_max_bytes",
            Kind::Gauge,
            "Limit on the table memory of all networks together.",
        );
        text.sample(&[], bytes);
    }
}

fn ports(text: &mut Text, snapshot: &MetricsSnapshot) {
    let (ports, stats) = (&snapshot.ports, &snapshot.stats.ports);
    if ports.is_empty() && stats.is_empty() {
        return;
    }
    text.metric("hueplane_port_up", Kind::Gauge, "Whether a physical port receives and sends, 1 or 0.");
    ports.iter().for_each(|port| text.sample(&[("port", &port.name)], u8::from(port.state == PortState::Up)));
    text.metric(
        "hueplane_port_start_time_seconds",
        Kind::Gauge,
        "Since when the counters of a physical port count, seconds since 1970; absent until it is opened.",
    );
    for (port, since) in stats.iter().filter_map(|port| Some((port, port.since?))) {
        text.sample(&[("port", &port.port)], since.us() as f64 / 1e6);
    }
    let mut each = |metric: &Metric, counts: fn(&PortStats) -> [u64; 2]| {
        text.counter(metric);
        for port in stats {
            for (direction, count) in [RECEIVED, SENT].into_iter().zip(counts(port)) {
                text.sample(&[("port", &port.port), ("direction", direction)], count);
            }
        }
    };
    each(&METRIC_PORT_PACKETS, |port| [port.received, port.sent]);
    each(&METRIC_PORT_BYTES, |port| [port.received_bytes, port.sent_bytes]);
    text.counter(&METRIC_PORT_LOSSES);
    for port in stats {
        for reason in PortLoss::ALL.map(PortLoss::name) {
            let count = port.losses.get(reason).copied().unwrap_or(0);
            text.sample(&[("port", &port.port), ("reason", reason)], count);
        }
    }
}

fn workers(text: &mut Text, snapshot: &MetricsSnapshot) {
    let workers = &snapshot.stats.workers;
    if workers.is_empty() {
        return;
    }
    let mut each = |name, doc, count: fn(&crate::api::WorkerStats) -> u64| {
        text.metric(name, Kind::Counter, doc);
        workers
            .iter()
            .for_each(|worker| text.sample(&[("worker", &worker.worker.to_string())], count(worker)));
    };
    each("hueplane_worker_packets_total", "Packets that a worker decided on.", |worker| worker.packets);
    each("hueplane_worker_batches_total", "Batches of packets that a worker processed.", |worker| {
        worker.batches
    });
    each("hueplane_worker_sleeps_total", "Times that a worker went to sleep.", |worker| worker.sleeps);
    each("hueplane_worker_handovers_total", "Frames that a worker passed to other workers.", |worker| {
        worker.handed_over
    });
}
