//! Connects the scheduler with card descriptions and the API: for the daemon, and for offline plans.
//!
//! Flow: [`Description`] of an image → [`CardSite`] → `hue_control::schedule` → [`Schedule`] → [`Plan`].

use hue_card::{Description, Layout};
use hue_control::schedule::{CardSite, Schedule, Side, TableSite};
use hue_intent::{Name, SchedulerKind};

use crate::api::{CapacityUse, Plan, PlannedMove, PlannedNetwork, SchedulerName};

/// Resources of a card with this image and these ports of the node.
#[must_use]
pub fn card_site(description: &Description, ports: &[Name]) -> CardSite {
    let table = match description.layout {
        Layout::Tcam => TableSite::Each {
            routes: description.route_rows,
            locals: description.local_rows,
            neighbours: description.neighbour_rows() > 0,
            hops: description.hop_rows,
        },
        Layout::Dag36 | Layout::Sram => TableSite::Shared {
            words: description.level_words.into_iter().chain([description.sram_words]).map(u64::from).sum(),
            hops: description.hop_rows,
        },
        Layout::Dir => TableSite::Banks {
            sets: hue_tables::dir::SETS,
            cam_rows: description.cam_rows,
            hops: description.hop_rows,
        },
    };
    CardSite {
        image: description.name.clone(),
        kinds: description.kinds.clone(),
        ports: ports.iter().map(ToString::to_string).collect(),
        networks_max: description.networks_max(true),
        table,
        macs: description.stations_max(),
        slots: description.group_slots,
        entries: description.pattern_rows,
        entries_each: description.entries_max(),
        policies: description.policy_rows,
        // One beat per clock.
        bps: u64::from(description.bus_bytes) * 8 * u64::from(description.clock_khz) * 1_000,
        // The node's document says it (`Site::of`).
        drained: false,
    }
}

/// A schedule in API terms.
#[must_use]
pub fn plan(schedule: &Schedule, from_traffic: bool) -> Plan {
    let name = |side: Side| side.name().to_owned();
    let networks = schedule.networks.iter().map(|network| PlannedNetwork {
        network: network.name.clone(),
        placement: network.placement.name().to_owned(),
        latency: network.latency.name().to_owned(),
        now: network.now.map(name),
        substrate: name(network.side),
        core: network.core,
        needed_bps: network.needed_bps,
        served_bps: network.served_bps,
        why: network.why.clone(),
        why_not: network.why_not.clone(),
    });
    let moves = schedule.moves.iter().map(|one| PlannedMove {
        network: one.name.clone(),
        from: name(one.from),
        to: name(one.to),
        why: one.why.clone(),
    });
    let uses = schedule.uses.iter();
    let uses = uses.map(|one| CapacityUse { what: one.what.clone(), used: one.used, max: one.max });
    Plan {
        scheduler: schedule.scheduler.into(),
        note: schedule.note.clone(),
        from_traffic,
        move_cost_bps: schedule.move_cost_bps,
        needed_bps: schedule.needed_bps(),
        served_bps: schedule.served_bps(),
        networks: networks.collect(),
        moves: moves.collect(),
        uses: uses.collect(),
    }
}

impl From<SchedulerKind> for SchedulerName {
    fn from(kind: SchedulerKind) -> Self {
        match kind {
            SchedulerKind::Greedy => Self::Greedy,
            SchedulerKind::Exact => Self::Exact,
        }
    }
}

impl From<SchedulerName> for SchedulerKind {
    fn from(name: SchedulerName) -> Self {
        match name {
            SchedulerName::Greedy => Self::Greedy,
            SchedulerName::Exact => Self::Exact,
        }
    }
}
