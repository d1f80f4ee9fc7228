//! What the API needs of the daemon: the one thing between `http` and the node.
//!
//! `node::NodeHandle` is the real one; tests of the API have one of their own.
//! Rules: a call never blocks its thread; changes run one at a time, and one whose future is dropped while it waits is not
//! made; long lists come in pieces; nothing here knows of roles: `http` asks for what a caller may see, and removes the rest.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

use crate::api::{
    ApplyRequest, ApplyResult, CaptureFilter, CapturedFrame, Config, DiffResult, DownOptions, DownResult,
    EventPage, ExecInfo, GateRequest, ImageInfo, ImageLoaded, LoadImageRequest, MigrateRequest, Migration,
    Neighbour, NeighbourFilter, Network, Node, Placement, Plan, PlanQuery, Port, Problem, Route, RouteFilter,
    Stats, Status, Tables, Trace, TurnQuery,
};

/// Pieces of a long list, in order; the list ends with the stream, or with the first problem.
pub type Pieces<T> = BoxStream<'static, Result<Vec<T>, Problem>>;

/// What the metrics are made of, apart from what [`Stats`] has.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricsSnapshot {
    /// What was counted.
    pub stats: Stats,
    /// How the daemon is.
    pub status: Status,
    /// Networks as they run.
    pub networks: Vec<Network>,
    /// Physical ports.
    pub ports: Vec<Port>,
    /// Tables. Numbers that are costly to find may be a few seconds old.
    pub tables: Tables,
}

/// The daemon, as the API sees it.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// How the daemon is. Answered also while it starts or is busy.
    async fn status(&self) -> Result<Status, Problem>;
    /// The node.
    async fn node(&self) -> Result<Node, Problem>;
    /// The desired state in force.
    async fn config(&self) -> Result<Config, Problem>;
    /// All networks, in the order of names.
    async fn networks(&self) -> Result<Vec<Network>, Problem>;
    /// One network; `not_found` when there is none.
    async fn network(&self, name: &str) -> Result<Network, Problem>;
    /// Physical ports with what passed them, in the order of names.
    async fn ports(&self) -> Result<Vec<Port>, Problem>;
    /// Routes of the data plane, by network, then prefix; `not_found` when the filter's network is none.
    async fn routes(&self, filter: RouteFilter) -> Result<Pieces<Route>, Problem>;
    /// Neighbours, by network, then port and address; `not_found` as for routes.
    async fn neighbours(&self, filter: NeighbourFilter) -> Result<Pieces<Neighbour>, Problem>;
    /// Tables of the data plane.
    async fn tables(&self) -> Result<Tables, Problem>;
    /// What was counted: of everything, or of one network alone (then `ports`, `workers` and `unclaimed` are empty).
    async fn stats(&self, network: Option<&str>) -> Result<Stats, Problem>;
    /// Where networks run and why, in the order of names.
    async fn placements(&self) -> Result<Vec<Placement>, Problem>;
    /// Where a scheduler would have them run.
    async fn plan(&self, query: PlanQuery) -> Result<Plan, Problem>;
    /// All that metrics are made of.
    async fn metrics(&self) -> Result<MetricsSnapshot, Problem>;

    /// Brings documents into force, or says what it would do. Networks that fail are in the result, not an error.
    async fn apply(&self, request: ApplyRequest, turn: TurnQuery) -> Result<ApplyResult, Problem>;
    /// What an apply of these documents would do; `request.dry_run` is set.
    async fn diff(&self, request: ApplyRequest) -> Result<DiffResult, Problem>;
    /// Deletes a network, from desired state and from what runs.
    async fn delete_network(&self, name: &str, turn: TurnQuery) -> Result<ApplyResult, Problem>;
    /// Closes or opens a network's clock gate, in desired state and in what runs.
    async fn gate_network(
        &self,
        name: &str,
        request: GateRequest,
        turn: TurnQuery,
    ) -> Result<ApplyResult, Problem>;
    /// Moves a network between card and software. A move that fails leaves it where it is, and is an error.
    async fn migrate(
        &self,
        name: &str,
        request: MigrateRequest,
        turn: TurnQuery,
    ) -> Result<Migration, Problem>;
    /// The card's images, those that cannot be loaded among them.
    async fn images(&self) -> Result<Vec<ImageInfo>, Problem>;
    /// Loads an image into the card. When that fails the one before runs on, and it is an error.
    async fn load_image(
        &self,
        name: &str,
        request: LoadImageRequest,
        turn: TurnQuery,
    ) -> Result<ImageLoaded, Problem>;
    /// Starts to go down.
    async fn down(&self, options: DownOptions) -> Result<DownResult, Problem>;

    /// Events after number `since`, oldest first, `limit` at most.
    fn events_since(&self, since: u64, limit: usize) -> EventPage;
    /// Changes to the number of the newest event; closes when the daemon ends.
    fn events_watch(&self) -> watch::Receiver<u64>;

    /// Frames that pass from now on. Ends when dropped; never holds up a worker. `filter.count` is heeded by the caller.
    async fn capture(&self, filter: CaptureFilter) -> Result<BoxStream<'static, CapturedFrame>, Problem>;
    /// Explains a frame of at most 16,384 bytes that would arrive on a port now.
    async fn trace(&self, port: &str, frame: Vec<u8>) -> Result<Trace, Problem>;
    /// Where to run a command so that it is in a network.
    async fn exec_info(&self, name: &str) -> Result<ExecInfo, Problem>;
}
