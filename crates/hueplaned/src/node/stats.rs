//! What was counted, in the words of the API, read from the workers' counters without asking the node's thread.

use std::collections::BTreeMap;

use hue_demux::PortId;
use hue_planes::{Loss, Verdict};
use hue_soft::TotalsReader;

use super::view::{NetworkView, View};
use crate::api::{NetworkStats, PortStats, Stats, Timestamp, VirtualPortStats, WorkerStats};

/// Counters of everything, or of one network; none when there is no such network.
pub fn stats(view: &View, totals: &TotalsReader, only: Option<&str>) -> Option<Stats> {
    let mut stats = Stats { time: Timestamp::now(), ..Stats::default() };
    if let Some(name) = only {
        let found = view.network(name)?;
        stats.networks.push(network(found, totals));
        return Some(stats);
    }
    stats.networks = view.networks.iter().map(|one| network(one, totals)).collect();
    stats.ports = view.ports.iter().map(|one| port(totals, one.id, one.api.name.clone())).collect();
    let unclaimed = totals.unclaimed();
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

fn network(view: &NetworkView, totals: &TotalsReader) -> NetworkStats {
    // One that is not loaded yet counted nothing.
    let totals = totals.network(view.vid).unwrap_or_default();
    let of = |verdict: Verdict| -> BTreeMap<String, u64> {
        let all = totals.outcomes.iter();
        let some = all.filter(|(outcome, count)| outcome.verdict() == verdict && *count > 0);
        some.map(|(outcome, count)| (outcome.name().to_owned(), count)).collect()
    };
    let losses = totals.losses.iter().filter(|(_, count)| *count > 0);
    let drops = of(Verdict::Drop);
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
        received: totals.outcomes.received(),
        received_bytes: totals.received_bytes(),
        forwarded: totals.outcomes.forwarded(),
        punted: totals.outcomes.punted(),
        dropped: drops.values().sum(),
        sent: totals.sent_packets(),
        sent_bytes: totals.sent_bytes(),
        from_control: totals.from_control_packets,
        punts: of(Verdict::Punt),
        drops,
        losses: losses.map(|(reason, count): (Loss, u64)| (reason.name().to_owned(), count)).collect(),
        ports: ports.collect(),
    }
}

/// Counters of a physical port.
pub fn port(totals: &TotalsReader, id: PortId, port: String) -> PortStats {
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
    }
}
