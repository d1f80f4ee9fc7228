//! The contract between control and the places where planes run.
//!
//! Flow: intent → control → [`Program`], [`Update`] → **[`Substrate`]** → packets. A program describes one network
//! completely: how its frames are found, its next hops and routes, its limits. It names ports by index and next hops by
//! row, never by pointer, so that any substrate can load it. An update changes next hops and routes while it runs. Threads of substrates pass frames to each other
//! ([`handover`]), sleep ([`wake`]), share processors ([`scheduling`]), read the time from one [`clock`], and follow
//! the frames of a network that moves ([`follow`]).

mod addresses;
pub mod clock;
mod entries;
pub mod flat;
pub mod follow;
pub mod handover;
pub mod planted;
mod program;
pub mod scheduling;
mod together;
mod update;
pub mod wake;

use hue_demux::{DemuxError, PortId};
use hue_planes::{Counters, Kind, UnclaimedCounters};
use hue_tables::{RouteBy, TableError, Vid};
use thiserror::Error;

pub use addresses::{Addresses, SwitchCounts};
pub use entries::{Entries, RouteKey};
pub use program::{NAME_BYTES_MAX, PORTS_MAX, Program, ProgramError, VirtualPort, check_hop, keeps_macs};
pub use together::{Claims, check_programs, demux_of};
pub use update::{Changes, Checked, HopChanges, Mode, Refusals, Update};

/// Use and capacity of a substrate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Networks loaded.
    pub networks: usize,
    /// Largest number of networks.
    pub networks_max: usize,
    /// Table memory in use, bytes.
    pub table_bytes: u64,
    /// Size of the table memory, bytes.
    pub table_bytes_max: u64,
}

/// Why a substrate refused a request. Nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SubstrateError {
    /// A program contradicts itself (the caller's fault).
    #[error("network '{name}': {error}")]
    Program {
        /// Name of the network.
        name: String,
        /// What is wrong.
        error: ProgramError,
    },
    /// The substrate does not run this kind of plane.
    #[error("network '{name}': kind {} does not run on {substrate}", .kind.name())]
    Kind {
        /// Name of the network.
        name: String,
        /// Its kind.
        kind: Kind,
        /// Name of the substrate.
        substrate: &'static str,
    },
    /// The card's image does not have this kind of plane.
    #[error(
        "network '{name}': image {image} has no kind {kind}; choose an image that has it, or substrate soft",
        kind = kind.name()
    )]
    ImageKind {
        /// Name of the network.
        name: String,
        /// Its kind.
        kind: Kind,
        /// Name of the image.
        image: String,
    },
    /// The card's image has no tables for routes by source.
    #[error(
        "network '{name}': image {image} has no routes by source (route_by {by}); choose an image that has them, or substrate soft",
        by = by.name()
    )]
    ImageRouteBy {
        /// Name of the network.
        name: String,
        /// By what it chooses routes.
        by: RouteBy,
        /// Name of the image.
        image: String,
    },
    /// A running network cannot choose routes by other addresses (the caller's fault).
    #[error(
        "network '{name}' runs with route_by {now}: unload it before it is loaded with route_by {to}",
        now = now.name(), to = to.name()
    )]
    OtherRouteBy {
        /// Name of the network.
        name: String,
        /// By what it chooses routes.
        now: RouteBy,
        /// By what the program does.
        to: RouteBy,
    },
    /// A running network cannot become one of another kind (the caller's fault).
    #[error(
        "network '{name}' runs as kind {now}: unload it before it is loaded as kind {to}",
        now = now.name(), to = to.name()
    )]
    OtherKind {
        /// Name of the network.
        name: String,
        /// Its kind.
        now: Kind,
        /// Kind of the program.
        to: Kind,
    },
    /// Two networks have the same id, or the same name (the caller's fault).
    #[error("networks '{first}' and '{second}' have the same {what}")]
    Same {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// `id` or `name`.
        what: &'static str,
    },
    /// Two networks claim the same frames (the caller's fault).
    #[error("networks '{first}' and '{second}': {error}")]
    Claim {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// The frames that both claim.
        error: DemuxError,
    },
    /// Design select has no room for more rows, or does not accept this one.
    #[error(transparent)]
    Demux(DemuxError),
    /// More networks than [`Capacity::networks_max`].
    #[error("{count} networks: at most {max}")]
    Networks {
        /// Number of networks after the request.
        count: usize,
        /// Maximum number of networks.
        max: usize,
    },
    /// More networks than the image that the substrate runs can hold.
    #[error(
        "{count} networks: image {image} holds {max}; choose an image that holds more, or substrate soft"
    )]
    ImageNetworks {
        /// How many there would be.
        count: usize,
        /// Name of the image.
        image: String,
        /// How many there may be.
        max: usize,
    },
    /// The tables have no room, or cannot be created.
    #[error("network '{name}': {error}")]
    Table {
        /// Name of the network whose routes did not fit.
        name: String,
        /// The error of the table.
        error: TableError,
    },
    /// A route names a next hop that the network does not have (the caller's fault).
    #[error("network '{name}': route {prefix} names next hop {hop} of {count}")]
    Hop {
        /// Name of the network.
        name: String,
        /// The route.
        prefix: String,
        /// Its next hop.
        hop: u16,
        /// How many the network has.
        count: usize,
    },
    /// The substrate has too few rows of a table for the network.
    #[error("network '{name}' needs {needed} {what}: {substrate} has {max}")]
    Room {
        /// Name of the network.
        name: String,
        /// Name of the substrate, or of the image it runs.
        substrate: String,
        /// The table.
        what: &'static str,
        /// How many it needs.
        needed: usize,
        /// How many are available.
        max: usize,
    },
    /// A memory of the tables that networks share has too few words left for the network.
    #[error(
        "network '{name}' needs {needed} more route words in {place} of {substrate}: {free} of {max} are free"
    )]
    Words {
        /// Name of the network.
        name: String,
        /// Name of the substrate, or of the image it runs.
        substrate: String,
        /// The memory: a level, from 1, or the external one.
        place: &'static str,
        /// Words that the next node needs in one piece; there may be more to come.
        needed: u64,
        /// Words that are free, of all sizes.
        free: u64,
        /// Words of the memory.
        max: u64,
    },
    /// The network is on a port that the substrate does not have (the caller's fault).
    #[error("network '{name}' is on port {port}: {substrate} has ports 0 to {last}", last = count - 1)]
    Port {
        /// Name of the network.
        name: String,
        /// Name of the substrate, or of the image it runs.
        substrate: String,
        /// The port.
        port: PortId,
        /// How many there are.
        count: usize,
    },
    /// No such network is loaded (the caller's fault).
    #[error("network {0} is not loaded")]
    Unknown(Vid),
    /// The substrate itself no longer works (a bug of hueplane, or a device that failed).
    #[error("substrate {substrate}: {reason}")]
    Broken {
        /// Name of the substrate.
        substrate: &'static str,
        /// The error, and what to do.
        reason: String,
    },
}

impl SubstrateError {
    /// Whether there is no room for more routes or next hops, or the network's quota allows no more.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        match self {
            Self::Table { error, .. } => error.is_full(),
            Self::Room { .. } | Self::Words { .. } => true,
            _ => false,
        }
    }
}

/// A place where planes run.
pub trait Substrate {
    /// Its name in `spec/kinds.toml`, intent and output.
    fn name(&self) -> &'static str;

    /// Loads networks, all of them or none. A network that is already loaded switches to the new program in one step;
    /// it keeps its counters, and its meter unless the rate limit changed. Other networks are not affected.
    ///
    /// # Errors
    /// Any except `Unknown`; then nothing has changed.
    fn load(&mut self, programs: &[Program]) -> Result<(), SubstrateError>;

    /// Unloads networks, all of them or none; their frames then belong to no network.
    ///
    /// # Errors
    /// `Unknown`; then nothing has changed.
    fn unload(&mut self, vids: &[Vid]) -> Result<(), SubstrateError>;

    /// Changes next hops and then routes of a loaded network; see [`Update`] for their order. Returns the announcements
    /// that were left out, which only [`Mode::Fitting`] allows. A network whose kind the substrate does not run has no
    /// tables there, and does not change.
    ///
    /// # Errors
    /// `Unknown`; those of [`Update::check`]; `Table`, `Room` or `Words` if there is no room
    /// ([`SubstrateError::is_full`]): then nothing has changed, except that packets may have seen some of the changes for
    /// a moment. With [`Mode::Fitting`], if not even a withdrawal is possible, the next hops and the changes of routes
    /// before it have been made. `Broken`.
    fn update(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError>;

    /// Packet counters of a network since it was loaded; `None` if it is not loaded.
    fn counters(&self, vid: Vid) -> Option<Counters>;

    /// Frames that belong to no network.
    fn unclaimed(&self) -> UnclaimedCounters;

    /// Its use and capacity.
    fn capacity(&self) -> Capacity;
}
