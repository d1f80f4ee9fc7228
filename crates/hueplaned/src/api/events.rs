//! What happened. Events have sequence numbers from 1 that rise by one while a daemon lives; it keeps the last 10,000.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Timestamp;

/// What kind of thing happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The daemon runs.
    Started,
    /// The daemon goes down.
    Stopping,
    /// Desired state changed.
    Applied,
    /// A change of desired state was refused or failed.
    Refused,
    /// What an earlier daemon left was taken over.
    Adopted,
    /// What an earlier daemon left was removed.
    Cleaned,
    /// A network was set up.
    NetworkCreated,
    /// A network was changed.
    NetworkChanged,
    /// A network was removed.
    NetworkDeleted,
    /// Something of a network is not as desired.
    NetworkDegraded,
    /// A network is as desired again.
    NetworkRecovered,
    /// A physical port receives and sends.
    PortUp,
    /// A physical port went down.
    PortDown,
    /// A physical port is not driven as desired.
    PortFallback,
    /// Threads that forward packets do not compete for processors as desired.
    SchedulingFallback,
    /// A network moved to the card, or could not stay or go there.
    Placed,
    /// A network begins to move between card and software, as somebody asked for.
    MigrationStarted,
    /// It has moved.
    Migrated,
    /// It has not: it is where it was.
    MigrationFailed,
    /// Its neighbours are told to send to NICs, or to the card's ports.
    Steered,
    /// The card's image is to be changed.
    ImageLoading,
    /// The card runs another image.
    ImageLoaded,
    /// It does not: the one before runs on.
    ImageFailed,
    /// The card runs.
    CardUp,
    /// The card does not run as desired.
    CardDown,
    /// The store or another part of the daemon has trouble.
    Trouble,
    /// Events are missing here: they were overwritten before they could be sent. `sequence` is that of the last one
    /// that is missing.
    Gap,
}

impl EventKind {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopping => "stopping",
            Self::Applied => "applied",
            Self::Refused => "refused",
            Self::Adopted => "adopted",
            Self::Cleaned => "cleaned",
            Self::NetworkCreated => "network_created",
            Self::NetworkChanged => "network_changed",
            Self::NetworkDeleted => "network_deleted",
            Self::NetworkDegraded => "network_degraded",
            Self::NetworkRecovered => "network_recovered",
            Self::PortUp => "port_up",
            Self::PortDown => "port_down",
            Self::PortFallback => "port_fallback",
            Self::SchedulingFallback => "scheduling_fallback",
            Self::Placed => "placed",
            Self::MigrationStarted => "migration_started",
            Self::Migrated => "migrated",
            Self::MigrationFailed => "migration_failed",
            Self::Steered => "steered",
            Self::ImageLoading => "image_loading",
            Self::ImageLoaded => "image_loaded",
            Self::ImageFailed => "image_failed",
            Self::CardUp => "card_up",
            Self::CardDown => "card_down",
            Self::Trouble => "trouble",
            Self::Gap => "gap",
        }
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number.
    pub sequence: u64,
    /// When it happened.
    pub time: Timestamp,
    /// What kind of thing it was.
    pub kind: EventKind,
    /// The network it is about; a tenant sees only events with its own network here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The physical port it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// What happened, in words.
    pub message: String,
}

/// Events that are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// Sequence number of the oldest event kept, of whichever network; 0 when there was none yet.
    pub first: u64,
    /// Sequence number of the newest event, of whichever network; 0 when there was none yet.
    pub last: u64,
    /// Events, oldest first.
    pub events: Vec<Event>,
}
