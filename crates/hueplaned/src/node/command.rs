//! Requests: everything that other threads ask of the node's thread, as data, so that it can be logged and replayed.
//!
//! Flow: API → [`NodeHandle`](super::NodeHandle) → **[`Request`]** → log → `Node::take_request` →
//! [`Reply`]. Invariants: a [`Command`] may change the node, a [`Query`] only reads it; a copy of a request does the same
//! as the request, but nobody gets its reply.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_card::Images;
use hue_host::ControlNamespace;
use hue_soft::CaptureStream;
use hue_tables::Vid;
use tokio::sync::oneshot;

use super::card::CardAnswer;
use super::change::Prepared;
use super::drain::Place;
use super::drift::{Look, Seen};
use super::idle::{Caller, IDLE_WAIT_MAX};
use super::image::Trial;
use super::lists::{NeighbourList, RoutesAt};
use super::plan::Question;
use crate::api::{
    CaptureFilter, CardTables, DrainRequest, ExecInfo, ImageLoaded, MacAddress, MigrateRequest, Migration,
    NetworkResult, Problem, Route, TableEntry, Tables, Trace, TurnQuery,
};
use crate::store::Desired;

/// Receives the result of work that takes long.
pub type Answering<T> = oneshot::Receiver<Result<T, Problem>>;

/// Networks that leave the card, and the results of their moves.
pub type Leaving = Vec<(String, Answering<Migration>)>;

/// Where the answer to a request goes.
pub struct Reply<T>(Option<oneshot::Sender<T>>);

impl<T> Reply<T> {
    /// A reply, and its receiver.
    pub fn channel() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(sender)), receiver)
    }

    /// A reply that nobody gets.
    pub const fn to_nobody() -> Self {
        Self(None)
    }

    /// Sends the answer. The caller may have disconnected meanwhile.
    pub fn send(self, answer: T) {
        if let Some(sender) = self.0 {
            drop(sender.send(answer));
        }
    }
}

impl<T> Clone for Reply<T> {
    /// Nobody gets the reply of a copy.
    fn clone(&self) -> Self {
        Self::to_nobody()
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// Desired state in a request; its log entry is short.
#[derive(Clone)]
pub struct Target(pub Arc<Desired>);

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {}", self.0.generation)
    }
}

/// A frame in a request; its log entry is short.
#[derive(Clone)]
pub struct Frame(pub Vec<u8>);

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub enum Request {
    /// Changes the node.
    Command(Command),
    /// Reads the node.
    Query(Query),
    /// A request that waits until no network is moving.
    WhenIdle(Box<Deferred>),
}

impl Request {
    /// The same request, made now: what waits may wait as long as in the beginning.
    pub fn anew(self) -> Self {
        match self {
            Self::WhenIdle(deferred) => Self::WhenIdle(Box::new(deferred.anew())),
            other => other,
        }
    }

    /// Answers with a problem instead of doing the work. A request whose answer cannot be a problem is dropped, which
    /// its caller notices.
    pub fn refuse(self, problem: Problem) {
        match self {
            Self::Command(Command::Migrate { reply, .. }) => reply.send(Err(problem)),
            Self::Command(Command::LoadImage { reply, .. }) => reply.send(Err(problem)),
            Self::Query(Query::CanDrain { reply } | Query::Nothing { reply }) => reply.send(Err(problem)),
            Self::Query(Query::Places { reply }) => reply.send(Err(problem)),
            Self::Command(_) | Self::Query(_) | Self::WhenIdle(_) => {}
        }
    }
}

impl From<Command> for Request {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Query> for Request {
    fn from(query: Query) -> Self {
        Self::Query(query)
    }
}

/// A request that may change the node.
#[derive(Clone, Debug)]
pub enum Command {
    /// Apply a desired state. The receiver gets the results of the networks that it affects.
    Reconcile {
        /// The change.
        prepared: Box<Prepared>,
        /// The answer.
        reply: Reply<oneshot::Receiver<Vec<NetworkResult>>>,
    },
    /// Take over documents that say what is so already.
    Keep {
        /// The documents.
        desired: Target,
        /// Done.
        reply: Reply<()>,
    },
    /// Move a network.
    Migrate {
        /// The network.
        name: String,
        /// Where and how.
        request: MigrateRequest,
        /// The answer, when the move has begun.
        reply: Reply<Result<Answering<Migration>, Problem>>,
    },
    /// End the reservation of the card for a network that was moved.
    EndReservation {
        /// Done.
        reply: Reply<()>,
    },
    /// Load an image into the card.
    LoadImage {
        /// The image.
        name: String,
        /// Least time that the card is unavailable.
        away: Duration,
        /// The answer, when the load has begun.
        reply: Reply<Result<Answering<ImageLoaded>, Problem>>,
    },
    /// Move the networks of a drained card to software.
    Drain {
        /// Documents that say that the card is drained, if that is new.
        desired: Option<Target>,
        /// How.
        request: DrainRequest,
        /// The networks that leave.
        reply: Reply<Leaving>,
    },
    /// Let networks return to a card that is no longer drained.
    Undrain {
        /// Documents that say so.
        desired: Target,
        /// Done.
        reply: Reply<()>,
    },
    /// Record the state of the store.
    StoreProblem {
        /// Its problem, if it has one.
        problem: Option<String>,
    },
    /// Ask the scheduler again, if it uses measured rates.
    Measured {
        /// Done.
        reply: Reply<()>,
    },
    /// List those of these networks whose namespaces can be checked; they count as checked.
    BeginLook {
        /// Their names.
        names: BTreeSet<String>,
        /// The networks.
        reply: Reply<Vec<Look>>,
    },
    /// Take the results of a check.
    EndLook {
        /// The results.
        seen: Vec<Seen>,
        /// Done.
        reply: Reply<()>,
    },
    /// Begin a capture.
    Capture {
        /// Which frames.
        filter: CaptureFilter,
        /// The capture.
        reply: Reply<Result<CaptureStream, Problem>>,
    },
}

/// A request that reads the node.
#[derive(Clone, Debug)]
pub enum Query {
    /// Whether no network is moving, if the query waits for that.
    Nothing {
        /// Done.
        reply: Reply<Result<(), Problem>>,
    },
    /// Whether software can serve the networks of the card.
    CanDrain {
        /// Why not.
        reply: Reply<Result<(), Problem>>,
    },
    /// Where networks are.
    Places {
        /// Their places.
        reply: Reply<Result<BTreeMap<String, Place>, Problem>>,
    },
    /// Names of the networks that a list covers.
    Names {
        /// Only this one.
        only: Option<String>,
        /// The names.
        reply: Reply<Result<Vec<String>, Problem>>,
    },
    /// A piece of the routes of networks.
    Routes {
        /// Where to begin.
        at: RoutesAt,
        /// The piece, and where the list continues.
        reply: Reply<(Vec<Route>, Option<RoutesAt>)>,
    },
    /// The routes of a network that contain an address.
    RoutesHolding {
        /// The network.
        name: String,
        /// The address.
        address: IpAddr,
        /// The routes, the longest last.
        reply: Reply<Vec<Route>>,
    },
    /// What to read to list a network's neighbours.
    Neighbours {
        /// The network.
        name: String,
        /// The list; `None` while the network has no namespace.
        reply: Reply<Option<NeighbourList>>,
    },
    /// A network's table of MAC addresses.
    Macs {
        /// The network.
        name: String,
        /// The addresses, sorted; none if its kind does not learn.
        reply: Reply<Vec<MacAddress>>,
    },
    /// A network's entries that compare bits of frames.
    Entries {
        /// The network.
        name: String,
        /// The entries, in order; none if its kind has others.
        reply: Reply<Vec<TableEntry>>,
    },
    /// The networks' shares of software's tables, and of the card's.
    Tables {
        /// The tables.
        reply: Reply<(Tables, Option<oneshot::Receiver<CardTables>>)>,
    },
    /// The question to a scheduler at this moment.
    Question {
        /// With measured rates.
        from_traffic: bool,
        /// The question.
        reply: Reply<Question>,
    },
    /// Folder of the images, and the image that runs.
    Images {
        /// Both.
        reply: Reply<(Images, Option<String>)>,
    },
    /// What an image must hold so that a network can join those on the card.
    Trial {
        /// The network.
        name: String,
        /// The requirements; `None` if the card does not know the network.
        reply: Reply<Option<Trial>>,
    },
    /// Explain a frame.
    Trace {
        /// The port on which it arrives.
        port: String,
        /// The frame.
        frame: Frame,
        /// The explanation.
        reply: Reply<Result<Trace, Problem>>,
    },
    /// Namespace and control groups of a network.
    ExecInfo {
        /// The network.
        name: String,
        /// Both.
        reply: Reply<Result<(ExecInfo, Arc<ControlNamespace>), Problem>>,
    },
    /// The card's counters.
    CardCounts {
        /// Only of this network.
        only: Option<Vid>,
        /// The counters; `None` without a card.
        reply: Reply<Option<oneshot::Receiver<CardAnswer>>>,
    },
}

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// End of the wait.
    pub(super) until: Instant,
    /// A network that must also be set up.
    pub(super) name: Option<String>,
    pub(super) caller: Caller,
    /// Refused if the wait was too long.
    pub(super) request: Request,
}

impl Deferred {
    /// A request, which may choose not to wait.
    pub fn new(query: TurnQuery, name: Option<String>, caller: Caller, request: Request) -> Self {
        let until = Instant::now() + if query.no_wait { Duration::ZERO } else { IDLE_WAIT_MAX };
        Self { until, name, caller, request }
    }

    /// The same request, made now.
    pub fn anew(self) -> Self {
        Self { until: Instant::now() + IDLE_WAIT_MAX, ..self }
    }
}
