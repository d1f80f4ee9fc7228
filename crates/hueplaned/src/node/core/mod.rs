//! The node's thread: it alone owns the data plane, the routing information bases and the ports.
//!
//! Flow: requests, links, results of jobs, failed ports ([`Message`]s) and routing events → **[`Node`]** → data
//! plane. Between two messages it takes at most one batch of routing events and applies at most one piece of a table,
//! so it answers within a few milliseconds, even while a full table is loading. Invariants: it never waits for
//! namespaces, files or the API; slow work is a [`Job`](crate::node::jobs::Job). It never panics on input from outside.

mod capture;
mod card;
mod change;
mod command;
mod drain;
mod idle;
mod image;
mod learnt;
mod lists;
mod moves;
mod networks;
mod plan;
mod ports;
mod programs;
mod routes;
mod run;
mod take_over;
mod trace;
mod troubles;
mod wires;

use std::sync::Arc;
use std::sync::mpsc::Sender;

use hue_card::Images;
use hue_control::Compiled;
use hue_routing::Monitor;
use hue_soft::{Live, LiveConfig};

use crate::api::Health;
use crate::node::card::CardSide;
use crate::node::card_state::CardState;
use crate::node::command::Deferred;
use crate::node::drive::Drive;
use crate::node::jobs::Jobs;
use crate::node::learnt::Labels;
use crate::node::loading::Loading;
use crate::node::message::Message;
use crate::node::moves::Moves;
use crate::node::networks::Networks;
use crate::node::plan::Scheduling;
use crate::node::ports::Ports;
use crate::node::programs::Programs;
use crate::node::routes::Routes;
use crate::node::shared::Shared;
use crate::node::take_over::TakeOver;
use crate::node::taps::Taps;
use crate::node::waiters::Waiters;
use crate::node::wires::Wires;
use crate::store::Desired;

/// The node.
pub struct Node {
    pub(super) shared: Arc<Shared>,
    pub(super) live: Live,
    pub(super) card: Option<CardSide>,
    /// Which card it is, and what is wrong.
    pub(super) card_state: CardState,
    pub(super) images: Images,
    /// What the scheduler was asked, and what it answered.
    pub(super) scheduling: Scheduling,
    /// NICs beside ports, and neighbours that were redirected.
    pub(super) wires: Wires,
    /// Another image that is being loaded.
    pub(super) loading: Loading,
    /// Which networks are on the card, and on their way.
    pub(super) moves: Moves,
    /// Work that waits until no network is moving.
    pub(super) deferred: Vec<Deferred>,
    pub(super) drive: Drive,
    pub(super) sender: Sender<Message>,
    pub(super) monitor: Monitor,
    pub(super) jobs: Jobs,
    pub(super) desired: Arc<Desired>,
    pub(super) compiled: Arc<Compiled>,
    pub(super) networks: Networks,
    pub(super) taps: Taps,
    /// Programs that forward for networks.
    pub(super) programs: Programs,
    /// Labels that routing daemons have learnt.
    pub(super) labels: Labels,
    pub(super) ports: Ports,
    pub(super) waiters: Waiters,
    pub(super) routes: Routes,
    /// Changes that the view does not have yet.
    pub(super) changed: bool,
    pub(super) health: Health,
    /// The daemon whose place this one takes.
    pub(super) take_over: Option<TakeOver>,
    pub(super) troubles: Vec<String>,
    /// The problem of the store of the desired state, if it has one.
    pub(super) store_problem: Option<String>,
}

impl Node {
    /// An empty node.
    pub(super) fn new(
        shared: Arc<Shared>,
        live: Live,
        images: Images,
        (monitor, jobs): (Monitor, Jobs),
        config: LiveConfig,
        drive: Drive,
    ) -> Self {
        Self {
            sender: shared.sender.clone(),
            shared,
            live,
            card: None,
            card_state: CardState::default(),
            images,
            scheduling: Scheduling::default(),
            wires: Wires::default(),
            loading: Loading::default(),
            moves: Moves::default(),
            deferred: Vec::new(),
            drive,
            monitor,
            jobs,
            desired: Arc::default(),
            compiled: Arc::new(Compiled::default()),
            networks: Networks::default(),
            taps: Taps::default(),
            programs: Programs::default(),
            labels: Labels::default(),
            ports: Ports::new(config.into(), config.slots_max),
            waiters: Waiters::default(),
            routes: Routes::default(),
            changed: true,
            health: Health::Starting,
            troubles: Vec::new(),
            store_problem: None,
            take_over: None,
        }
    }

    /// Gives a part an input, and applies its effects, each with all that follows from it before the next one. An effect may
    /// have another input follow. There may be thousands one after the other, so this is no recursion.
    fn apply_all<I, E>(
        &mut self,
        input: I,
        take: impl Fn(&mut Self, I) -> Vec<E>,
        apply: impl Fn(&mut Self, E) -> Option<I>,
    ) {
        let mut effects = vec![take(self, input).into_iter()];
        while let Some(next) = effects.last_mut() {
            let Some(effect) = next.next() else {
                effects.pop();
                continue;
            };
            if next.len() == 0 {
                effects.pop();
            }
            if let Some(input) = apply(self, effect) {
                effects.push(take(self, input).into_iter());
            }
        }
    }
}
