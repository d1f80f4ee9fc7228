//! Interface between the API (`http`) and the node.
//!
//! `node::NodeHandle` implements it; tests of the API have their own implementation.
//! Rules: a call never blocks its thread; changes run one at a time, and a change whose future is dropped while it
//! waits is not made; long lists come in pieces. The backend knows no roles: `http` requests only what a caller may
//! see, and removes the rest from the answers.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

use crate::api::{
    ApplyRequest, ApplyResult, Author, CaptureFilter, CapturedFrame, Config, ConfirmRequest, ConfirmResult,
    DiffResult, DownOptions, DownResult, DrainRequest, DrainResult, EventPage, ExecInfo, GateRequest,
    History, ImageInfo, ImageLoaded, LoadImageRequest, MacAddress, MigrateRequest, Migration, Neighbour,
    Network, NetworkFilter, Node, Placement, Plan, PlanQuery, Port, Problem, RollbackRequest, RollbackResult,
    Route, RouteFilter, Stats, Status, TableEntry, Tables, Trace, TurnQuery,
};

/// Pieces of a long list, in order. The list ends with the stream, or with the first problem.
pub type Pieces<T> = BoxStream<'static, Result<Vec<T>, Problem>>;

/// Who requests a change, and how the change behaves while another one is under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// Behaviour while another change is under way.
    pub query: TurnQuery,
    /// The caller, for the history.
    pub by: Author,
}

/// Source of the metrics: [`Stats`] and other data.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricsSnapshot {
    /// Counters.
    pub stats: Stats,
    /// Status of the daemon.
    pub status: Status,
    /// Running networks.
    pub networks: Vec<Network>,
    /// Physical ports.
    pub ports: Vec<Port>,
    /// Tables. Numbers that are costly to compute may be a few seconds old.
    pub tables: Tables,
}

/// The daemon, as seen by the API.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Whether it knows its networks. Until it does, only the status is answered from the running state.
    fn is_ready(&self) -> bool {
        true
    }
    /// Status of the daemon. Available also while the daemon starts or is busy.
    async fn status(&self) -> Result<Status, Problem>;
    /// The node.
    async fn node(&self) -> Result<Node, Problem>;
    /// The desired state.
    async fn config(&self) -> Result<Config, Problem>;
    /// All networks, in the order of names.
    async fn networks(&self) -> Result<Vec<Network>, Problem>;
    /// One network; `not_found` if it does not exist.
    async fn network(&self, name: &str) -> Result<Network, Problem>;
    /// Physical ports with their counters, in the order of names.
    async fn ports(&self) -> Result<Vec<Port>, Problem>;
    /// Routes of the data plane, by network, then prefix; `not_found` if the filter's network does not exist.
    async fn routes(&self, filter: RouteFilter) -> Result<Pieces<Route>, Problem>;
    /// Neighbours, by network, then port and address; `not_found` as for routes.
    async fn neighbours(&self, filter: NetworkFilter) -> Result<Pieces<Neighbour>, Problem>;
    /// MAC addresses of networks whose kind learns them, by network, then address; `not_found` as for routes.
    async fn macs(&self, filter: NetworkFilter) -> Result<Pieces<MacAddress>, Problem>;
    /// Entries of networks whose kind compares bits of frames, by network, then in their order; `not_found` as for routes.
    async fn entries(&self, filter: NetworkFilter) -> Result<Pieces<TableEntry>, Problem>;
    /// Tables of the data plane.
    async fn tables(&self) -> Result<Tables, Problem>;
    /// Counters of everything, or of one network only (then `ports`, `workers` and `unclaimed` are empty).
    async fn stats(&self, network: Option<&str>) -> Result<Stats, Problem>;
    /// Where networks run and why, in the order of names.
    async fn placements(&self) -> Result<Vec<Placement>, Problem>;
    /// Where a scheduler would place them.
    async fn plan(&self, query: PlanQuery) -> Result<Plan, Problem>;
    /// The source of all metrics.
    async fn metrics(&self) -> Result<MetricsSnapshot, Problem>;

    /// Applies documents, or reports the changes that it would make. Networks that fail are listed in the result; the
    /// call itself succeeds.
    async fn apply(&self, request: ApplyRequest, turn: Turn) -> Result<ApplyResult, Problem>;
    /// The changes that applying these documents would make; `request.dry_run` is set.
    async fn diff(&self, request: ApplyRequest) -> Result<DiffResult, Problem>;
    /// The revisions that are kept.
    async fn history(&self) -> Result<History, Problem>;
    /// Restores the documents of a revision, of all networks or only of `only`; `not_found` if it is not kept.
    async fn rollback(
        &self,
        request: RollbackRequest,
        only: Option<String>,
        turn: Turn,
    ) -> Result<RollbackResult, Problem>;
    /// Confirms the change that waits for it; `conflict` if none does, or another one.
    async fn confirm(&self, request: ConfirmRequest, turn: Turn) -> Result<ConfirmResult, Problem>;
    /// Deletes a network from the desired state, and removes the running network.
    async fn delete_network(&self, name: &str, turn: Turn) -> Result<ApplyResult, Problem>;
    /// Closes or opens a network's clock gate, in the desired state and in the running network.
    async fn gate_network(
        &self,
        name: &str,
        request: GateRequest,
        turn: Turn,
    ) -> Result<ApplyResult, Problem>;
    /// Moves a network between card and software. A failed move is an error, and the network stays where it is.
    async fn migrate(&self, name: &str, request: MigrateRequest, turn: Turn) -> Result<Migration, Problem>;
    /// The card's images, including those that cannot be loaded.
    async fn images(&self) -> Result<Vec<ImageInfo>, Problem>;
    /// Loads an image into the card. If that fails, it is an error, and the card continues with the previous image.
    async fn load_image(
        &self,
        name: &str,
        request: LoadImageRequest,
        turn: Turn,
    ) -> Result<ImageLoaded, Problem>;
    /// Drains the card, or ends that. Networks that stay on a drained card are listed in the result; the call itself
    /// succeeds.
    async fn drain(&self, request: DrainRequest, turn: Turn) -> Result<DrainResult, Problem>;
    /// Begins to stop the daemon.
    async fn down(&self, options: DownOptions) -> Result<DownResult, Problem>;

    /// Events after number `since`, oldest first, at most `limit`.
    fn events_since(&self, since: u64, limit: usize) -> EventPage;
    /// Changes to the number of the newest event; closes when the daemon ends.
    fn events_watch(&self) -> watch::Receiver<u64>;

    /// Captures frames from now on, until dropped. Never delays a worker. The caller applies `filter.count`.
    async fn capture(&self, filter: CaptureFilter) -> Result<BoxStream<'static, CapturedFrame>, Problem>;
    /// Explains what would happen to a frame of at most 16,384 bytes that arrives on a port now.
    async fn trace(&self, port: &str, frame: Vec<u8>) -> Result<Trace, Problem>;
    /// Namespace and control groups of a network, to run a command in it.
    async fn exec_info(&self, name: &str) -> Result<ExecInfo, Problem>;
}
