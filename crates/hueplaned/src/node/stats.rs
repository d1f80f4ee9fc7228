//! Counters in API terms, read from the workers' counters without asking the node's thread.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use hue_card::CardCounts;
use hue_card::CardTotals;
use hue_demux::PortId;
use hue_planes::{Loss, PortLoss, Reason, Settings, Unclaimed, UnclaimedCounters, Verdict};
use hue_ports::DriverCounters;
use hue_soft::{NetworkTotals, SwitchCounts, TotalsReader};
use hue_tables::Vid;

use super::view::{NetworkView, View};
use crate::api::{
    FamilyStats, MacStats, NetworkStats, PortStats, Stats, Timestamp, VirtualPortStats, WorkerStats,
};

/// The card's counters at one moment; empty without a card.
#[derive(Default)]
pub struct OnCard {
    /// Counters of networks that it knows.
    pub counts: BTreeMap<Vid, CardCounts>,
    /// Frames that belong to no network.
    pub unclaimed: UnclaimedCounters,
    /// Counters of its thread.
    pub totals: CardTotals,
    /// When it started.
    pub since: Option<Timestamp>,
}

/// Counters of everything, or of one network; `None` if there is no such network. `since` is when the daemon started.
pub fn stats(
    view: &View,
    totals: &TotalsReader,
    card: &OnCard,
    since: Timestamp,
    only: Option<&str>,
) -> Option<Stats> {
    let mut stats = Stats { time: Timestamp::now(), since, ..Stats::default() };
    if let Some(name) = only {
        let found = view.network(name)?;
        stats.networks.push(network(found, totals, card, since));
        return Some(stats);
    }
    stats.networks = view.networks.iter().map(|one| network(one, totals, card, since)).collect();
    stats.ports = view.ports.iter().map(|one| port(totals, card, one.id, one.api.name.clone())).collect();
    let unclaimed = unclaimed(totals, card);
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

fn network(view: &NetworkView, totals: &TotalsReader, card: &OnCard, started: Timestamp) -> NetworkStats {
    let since = totals.network_since(view.vid).map_or(started, Timestamp::from);
    let lost = Timestamp::from_us(view.counts.card_lost_us.load(Ordering::Relaxed));
    // A network that is not loaded yet has no counters.
    let totals = totals.network(view.vid).unwrap_or_else(|| NetworkTotals::new(view.kind));
    let of = |verdict: Verdict| -> BTreeMap<String, u64> {
        let all = totals.outcomes.iter();
        let some = all.filter(|(outcome, count)| outcome.verdict() == verdict && *count > 0);
        some.map(|(outcome, count)| (outcome.name().to_owned(), count)).collect()
    };
    let losses = totals.losses.iter().filter(|(_, count)| *count > 0);
    let mut losses: BTreeMap<String, u64> =
        losses.map(|(reason, count): (Loss, u64)| (reason.name().to_owned(), count)).collect();
    let mut drops = of(Verdict::Drop);
    // Packets that the card punts are decided again in software, and counted there.
    let counted = card.counts.get(&view.vid).copied().unwrap_or(CardCounts::new(view.kind));
    let crossed = card.totals.crossings.get(&view.vid).copied().unwrap_or_default();
    for (outcome, count) in counted.outcomes.iter() {
        if outcome.verdict() == Verdict::Drop && count > 0 {
            *drops.entry(outcome.name().to_owned()).or_default() += count;
        }
    }
    // Losses at the card's ports and queues, and in its thread: the reasons are the same as for workers and their ports.
    let departed = [
        (Loss::PortFull, counted.port_full + crossed.port_full),
        (Loss::PortDown, crossed.port_down),
        (Loss::HandoverSendFull, crossed.from_software_lost),
    ];
    let arrived = [
        (Loss::RingQuota, crossed.ring_quota),
        (Loss::RingFull, crossed.ring_full),
        (Loss::HandoverFull, counted.handover_full + crossed.to_software_lost),
    ];
    for (reason, count) in arrived.into_iter().chain(departed).filter(|(_, count)| *count > 0) {
        *losses.entry(reason.name().to_owned()).or_default() += count;
    }
    // Frames count as sent when a worker passes them to the card's thread, or when the card forwards them.
    let not_sent: u64 = departed.iter().map(|(_, count)| count).sum();
    let forwarded = totals.outcomes.forwarded() + counted.outcomes.forwarded();
    // Of those that the card sends to several ports, each copy is sent.
    let floods: u64 =
        counted.outcomes.iter().filter(|(outcome, _)| outcome.is_flood()).map(|(_, count)| count).sum();
    let sent_by_card = counted.outcomes.forwarded() - floods + counted.copies;
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
    let families = families(totals.outcomes.iter().chain(counted.outcomes.iter()));
    let learns = Settings::of(view.kind).learning().is_some();
    let SwitchCounts { learnt, moved, not_learnt } = totals.switch;
    NetworkStats {
        network: view.api.name.clone(),
        kind: view.kind.name().to_owned(),
        since,
        card_since: (lost > since).then_some(lost),
        received: forwarded + punted + dropped,
        received_bytes: totals.received_bytes()
            + counted.received_bytes.saturating_sub(crossed.to_software_bytes),
        forwarded,
        punted,
        dropped,
        sent: (totals.sent_packets() + sent_by_card).saturating_sub(not_sent),
        sent_bytes: totals.sent_bytes() + counted.sent_bytes.saturating_sub(crossed.from_software_bytes),
        from_control: totals.from_control_packets,
        to_tunnels: totals.to_tunnel_packets,
        punts: of(Verdict::Punt),
        drops,
        losses,
        families,
        copies: totals.copies + counted.copies,
        macs: learns.then_some(MacStats { learnt, moved, not_learnt }),
        ports: ports.collect(),
    }
}

/// Counts by address family, of a kind with several. Packets that the card punts are decided again in software, and counted
/// there.
fn families(outcomes: impl Iterator<Item = (Reason, u64)>) -> BTreeMap<String, FamilyStats> {
    let mut families: BTreeMap<String, FamilyStats> = BTreeMap::new();
    for (outcome, count) in outcomes {
        let Some(family) = outcome.family() else { continue };
        let family = families.entry(family.to_owned()).or_default();
        match outcome.verdict() {
            Verdict::Forward => family.forwarded += count,
            Verdict::Punt => family.punted += count,
            Verdict::Drop => family.dropped += count,
        }
    }
    families
}

/// Counters of a physical port.
pub fn port(totals: &TotalsReader, card: &OnCard, id: PortId, port: String) -> PortStats {
    let wire = card.totals.ports.values().find(|wire| wire.id == id);
    let counters = wire.map(|wire| wire.counters).or_else(|| totals.port(id)).unwrap_or_default();
    let flood_full = wire.map_or(0, |wire| wire.flood_full);
    let losses = PortLoss::ALL
        .into_iter()
        .map(|reason| (reason.name().to_owned(), lost(&counters, flood_full, reason)));
    let since = match wire {
        Some(_) => card.since,
        None => totals.port_since(id).map(Timestamp::from),
    };
    PortStats {
        port,
        since,
        received: counters.received_packets,
        received_bytes: counters.received_bytes,
        sent: counters.sent_packets,
        sent_bytes: counters.sent_bytes,
        losses: losses.filter(|(_, count)| *count > 0).collect(),
    }
}

/// Frames that a port lost for one reason.
fn lost(counters: &DriverCounters, flood_full: u64, reason: PortLoss) -> u64 {
    match reason {
        PortLoss::RingFull => counters.ring_full,
        PortLoss::RingQuota => counters.ring_quota,
        PortLoss::SharedQuota => counters.shared_quota,
        PortLoss::NoNetwork => counters.no_network,
        PortLoss::Runt => counters.runt,
        PortLoss::SendFailed => counters.send_failed,
        PortLoss::FloodFull => flood_full,
    }
}

/// Frames that belong to no network: at workers and before the rings of their ports, at the card and before the rings
/// of its ports.
fn unclaimed(totals: &TotalsReader, card: &OnCard) -> UnclaimedCounters {
    let mut sum = totals.unclaimed();
    card.unclaimed.iter().for_each(|(reason, count)| sum.add(reason, count));
    for wire in card.totals.ports.values() {
        hue_soft::add_unclaimed(&mut sum, &wire.counters);
    }
    sum.add(Unclaimed::NoNetwork, card.totals.unclaimed);
    sum
}
