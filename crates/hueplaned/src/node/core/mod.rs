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
mod drift;
mod idle;
mod image;
mod lists;
mod moves;
mod networks;
mod plan;
mod ports;
mod routes;
mod run;
mod take_over;
mod trace;
mod troubles;
mod wires;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use hue_card::Images;
use hue_control::Compiled;
use hue_control::schedule::Side;
use hue_demux::PortId;
use hue_routing::Monitor;
use hue_soft::{Live, LiveConfig};
use hue_tables::Vid;
use tokio::sync::oneshot;

use crate::api::{Health, NetworkResult};
use crate::node::card::CardSide;
use crate::node::command::Deferred;
use crate::node::drift::Looks;
use crate::node::drive::Drive;
use crate::node::image::Loading;
use crate::node::jobs::Jobs;
use crate::node::message::Message;
use crate::node::networks::Entry;
use crate::node::ports::Ports;
use crate::node::routes::Routes;
use crate::node::shared::Shared;
use crate::node::take_over::TakeOver;
use crate::node::wires::Turn;
use crate::store::Desired;

/// A caller that waits until networks and ports have reached their desired state, or have failed to.
pub struct Waiter {
    pub(super) names: BTreeSet<String>,
    /// Interfaces that were being opened.
    pub(super) opening: BTreeSet<String>,
    pub(super) results: BTreeMap<String, NetworkResult>,
    pub(super) reply: oneshot::Sender<Vec<NetworkResult>>,
}

/// The node.
pub struct Node {
    pub(super) shared: Arc<Shared>,
    pub(super) live: Live,
    pub(super) card: Option<CardSide>,
    /// Why there is no card although one is desired.
    pub(super) card_problem: Option<String>,
    pub(super) images: Images,
    /// Where the scheduler places networks with `placement: auto`, and why; empty without a scheduler.
    pub(super) scheduled: Option<BTreeMap<String, (Side, String)>>,
    /// Whether the scheduler is running, and whether it must run again.
    pub(super) asking: Option<bool>,
    /// NICs beside ports: pairs of port and NIC.
    pub(super) nics: Vec<(PortId, PortId)>,
    /// Neighbours that were redirected.
    pub(super) turns: Vec<Turn>,
    /// Another image that is being loaded.
    pub(super) loading: Option<Loading>,
    /// The network for whose requested move the card is reserved. Until then the node moves no other network.
    pub(super) reserved: Option<String>,
    /// Whether moves of networks were deferred because of a reservation or an image load.
    pub(super) moves_deferred: bool,
    /// Work that waits until no network is moving.
    pub(super) deferred: Vec<Deferred>,
    pub(super) drive: Drive,
    pub(super) sender: Sender<Message>,
    pub(super) monitor: Monitor,
    pub(super) jobs: Jobs,
    pub(super) desired: Arc<Desired>,
    pub(super) compiled: Arc<Compiled>,
    pub(super) networks: BTreeMap<String, Entry>,
    pub(super) vids: HashMap<Vid, String>,
    pub(super) ports: Ports,
    pub(super) waiters: Vec<Waiter>,
    pub(super) routes: Routes,
    /// Names of networks whose remains must be removed at the start.
    pub(super) leftovers: BTreeSet<String>,
    /// Changes that the view does not have yet.
    pub(super) changed: bool,
    pub(super) health: Health,
    /// The daemon whose place this one takes.
    pub(super) take_over: Option<TakeOver>,
    pub(super) troubles: Vec<String>,
    /// The problem of the store of the desired state, if it has one.
    pub(super) store_problem: Option<String>,
    /// When networks were checked for drift.
    pub(super) looks: Looks,
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
            card_problem: None,
            images,
            scheduled: None,
            asking: None,
            nics: Vec::new(),
            turns: Vec::new(),
            loading: None,
            reserved: None,
            moves_deferred: false,
            deferred: Vec::new(),
            drive,
            monitor,
            jobs,
            desired: Arc::default(),
            compiled: Arc::new(Compiled::default()),
            networks: BTreeMap::new(),
            vids: HashMap::new(),
            ports: Ports::new(config.into()),
            waiters: Vec::new(),
            routes: Routes::default(),
            leftovers: BTreeSet::new(),
            changed: true,
            health: Health::Starting,
            troubles: Vec::new(),
            store_problem: None,
            take_over: None,
            looks: Looks::default(),
        }
    }
}
