//! Events. Their sequence numbers start at 1 when a daemon starts, and rise by one. The daemon keeps the last 10,000.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Timestamp;

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The daemon runs.
    Started,
    /// The daemon is stopping.
    Stopping,
    /// Desired state changed.
    Applied,
    /// The documents of an earlier revision are in force again.
    RolledBack,
    /// A change was not confirmed in time: the documents before it are in force again.
    AutoRolledBack,
    /// A change was confirmed.
    Confirmed,
    /// A change of desired state was refused or failed.
    Refused,
    /// Namespaces of an earlier daemon were adopted.
    Adopted,
    /// Namespaces of an earlier daemon were removed.
    Cleaned,
    /// A network was set up.
    NetworkCreated,
    /// A network was changed.
    NetworkChanged,
    /// A network was removed.
    NetworkDeleted,
    /// Part of a network is not in the desired state.
    NetworkDegraded,
    /// A network is in the desired state again.
    NetworkRecovered,
    /// Something in a network's namespace was changed although its document says otherwise.
    Drifted,
    /// A network that drifted is in the desired state again.
    Repaired,
    /// The program that forwards a network's packets was started.
    ProgramStarted,
    /// The program wrote a line.
    ProgramOutput,
    /// The program ended or could not be started; it is started again.
    ProgramEnded,
    /// A physical port receives and sends.
    PortUp,
    /// A physical port went down.
    PortDown,
    /// A physical port does not have the desired driver.
    PortFallback,
    /// Threads that forward packets do not have the desired scheduling.
    SchedulingFallback,
    /// A network moved to the card, could not move there, or could not stay there.
    Placed,
    /// A requested move of a network between card and software begins.
    MigrationStarted,
    /// The network has moved.
    Migrated,
    /// The move failed: the network is in its previous place.
    MigrationFailed,
    /// The network's neighbours are redirected to NICs or to the card's ports.
    Steered,
    /// A change of the card's image begins.
    ImageLoading,
    /// The card runs another image.
    ImageLoaded,
    /// The image could not be changed: the card continues with the previous one.
    ImageFailed,
    /// The card is drained: no network runs on it from now on.
    CardDrained,
    /// The card is no longer drained.
    CardUndrained,
    /// The card runs.
    CardUp,
    /// The card does not run, or not as desired.
    CardDown,
    /// An error in the store or another part of the daemon.
    Trouble,
    /// Events are missing here: they were overwritten before they could be sent. `sequence` is that of the last
    /// missing event.
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
            Self::RolledBack => "rolled_back",
            Self::AutoRolledBack => "auto_rolled_back",
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Adopted => "adopted",
            Self::Cleaned => "cleaned",
            Self::NetworkCreated => "network_created",
            Self::NetworkChanged => "network_changed",
            Self::NetworkDeleted => "network_deleted",
            Self::NetworkDegraded => "network_degraded",
            Self::NetworkRecovered => "network_recovered",
            Self::Drifted => "drifted",
            Self::Repaired => "repaired",
            Self::ProgramStarted => "program_started",
            Self::ProgramOutput => "program_output",
            Self::ProgramEnded => "program_ended",
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
            Self::CardDrained => "card_drained",
            Self::CardUndrained => "card_undrained",
            Self::CardUp => "card_up",
            Self::CardDown => "card_down",
            Self::Trouble => "trouble",
            Self::Gap => "gap",
        }
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Sequence number.
    pub sequence: u64,
    /// Time of the event.
    pub time: Timestamp,
    /// Kind of the event.
    pub kind: EventKind,
    /// The network concerned; a tenant sees only events of its own network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The physical port concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Description of the event.
    pub message: String,
}

/// The events that the daemon keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// Sequence number of the oldest event kept, whatever its network; 0 if there was none yet.
    pub first: u64,
    /// Sequence number of the newest event, whatever its network; 0 if there was none yet.
    pub last: u64,
    /// Events, oldest first.
    pub events: Vec<Event>,
}
