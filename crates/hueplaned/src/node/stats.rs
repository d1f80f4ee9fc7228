//! What was counted, in the words of the API, read from the workers' counters without asking the node's thread.

use std::collections::BTreeMap;

use hue_card::CardTotals;
use hue_demux::PortId;
use hue_planes::{Loss, Verdict};
use hue_soft::TotalsReader;
use hue_tables::Vid;

use super::view::{NetworkView, View};
use crate::api::{NetworkStats, PortStats, Stats, Timestamp, VirtualPortStats, WorkerStats};
use hue_card::CardCounts;

/// What the card counted, at one moment; of nothing when there is none.
#[derive(Default)]
pub struct OnCard {
    /// Of networks that it knows.
    pub counts: BTreeMap<Vid, CardCounts>,
    /// Of its thread.
    pub totals: CardTotals,
}

/// Counters of everything, or of one network; none when there is no such network.
pub fn stats(view: &View, totals: &TotalsReader, card: &OnCard, only: Option<&str>) -> Option<Stats> {
    let mut stats = Stats { time: Timestamp::now(), ..Stats::default() };
    if let Some(name) = only {
        let found = view.network(name)?;
        stats.networks.push(network(found, totals, card));
        return Some(stats);
    }
    stats.networks = view.networks.iter().map(|one| network(one, totals, card)).collect();
    stats.ports = view.ports.iter().map(|one| port(totals, card, one.id, one.api.name.clone())).collect();
    let unclaimed = totals.unclaimed();
    // Of workers alone: frames that are nobody's on the card are counted there, and not read here.
    let unclaimed = unclaimed.iter().filter(|(_, count)| *count > 0);
    stats.unclaimed = unclaimed.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    let workers = totals.workers().into_iter().enumerate();
    stats.workers = workers
        .map(|(worker, totals)| WorkerStats {
            worker,
            packets: totals.packets,
            batches: totals.rounds,
            sleeps: totals.sleeps,
            handed_over: totals.handed_over,
        })
        .collect();
    Some(stats)
}

fn network(view: &NetworkView, totals: &TotalsReader, card: &OnCard) -> NetworkStats {
    // One that is not loaded yet counted nothing.
    let totals = totals.network(view.vid).unwrap_or_default();
    let of = |verdict: Verdict| -> BTreeMap<String, u64> {
        let all = totals.outcomes.iter();
        let some = all.filter(|(outcome, count)| outcome.verdict() == verdict && *count > 0);
        some.map(|(outcome, count)| (outcome.name().to_owned(), count)).collect()
    };
    let losses = totals.losses.iter().filter(|(_, count)| *count > 0);
    let mut losses: BTreeMap<String, u64> =
        losses.map(|(reason, count): (Loss, u64)| (reason.name().to_owned(), count)).collect();
    let mut drops = of(Verdict::Drop);
    // What the card punts is decided once more in software, and counted there.
    let counted = card.counts.get(&view.vid).copied().unwrap_or_default();
    let crossed = card.totals.crossings.get(&view.vid).copied().unwrap_or_default();
    for (outcome, count) in counted.outcomes.iter() {
        if outcome.verdict() == Verdict::Drop && count > 0 {
            *drops.entry(outcome.name().to_owned()).or_default() += count;
        }
    }
    if crossed.lost > 0 {
        *losses.entry(Loss::HandoverFull.name().to_owned()).or_default() += crossed.lost;
    }
    if counted.out_dropped > 0 {
        *losses.entry(Loss::PortFull.name().to_owned()).or_default() += counted.out_dropped;
    }
    let forwarded = totals.outcomes.forwarded() + counted.outcomes.forwarded();
    let (punted, dropped) = (totals.outcomes.punted(), drops.values().sum());
    let ports = view.api.ports.iter().enumerate().map(|(vport, port)| {
        let counted = totals.ports.get(vport).copied().unwrap_or_default();
        VirtualPortStats {
            port: port.name.clone(),
            received: counted.forwarded + counted.punted + counted.dropped,
            received_bytes: counted.received_bytes,
            forwarded: counted.forwarded,
            punted: counted.punted,
            dropped: counted.dropped,
            sent: counted.sent_packets,
            sent_bytes: counted.sent_bytes,
        }
    });
    NetworkStats {
        network: view.api.name.clone(),
        received: forwarded + punted + dropped,
        received_bytes: totals.received_bytes()
            + counted.received_bytes.saturating_sub(crossed.to_software_bytes),
        forwarded,
        punted,
        dropped,
        sent: totals.sent_packets() + counted.outcomes.forwarded(),
        sent_bytes: totals.sent_bytes() + counted.sent_bytes.saturating_sub(crossed.from_software_bytes),
        from_control: totals.from_control_packets,
        punts: of(Verdict::Punt),
        drops,
        losses,
        ports: ports.collect(),
    }
}

/// Counters of a physical port.
pub fn port(totals: &TotalsReader, card: &OnCard, id: PortId, port: String) -> PortStats {
    if let Some(wire) = card.totals.ports.values().find(|wire| wire.id == id) {
        let counters = wire.counters;
        return PortStats {
            port,
            received: counters.received_packets,
            received_bytes: counters.received_bytes,
            sent: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            receive_dropped: counters.receive_dropped,
            transmit_dropped: counters.transmit_dropped,
            policed: counters.policed,
            nobody: counters.nobody,
            flood_full: wire.flood_full,
        };
    }
    let totals = totals.port(id).unwrap_or_default();
    PortStats {
        port,
        received: totals.received_packets,
        received_bytes: totals.received_bytes,
        sent: totals.sent_packets,
        sent_bytes: totals.sent_bytes,
        receive_dropped: totals.receive_dropped,
        transmit_dropped: totals.transmit_dropped,
        policed: totals.policed,
        nobody: totals.nobody,
        // A frame is copied in software while it is taken in.
        flood_full: 0,
    }
}
