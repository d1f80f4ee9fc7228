//! Revisions of the documents, and rollbacks to them.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Action, NetworkResult, ObjectKind, Timestamp, Verb};

/// Longest time in which a change can be confirmed, in seconds: a day.
pub const CONFIRM_SECONDS_MAX: u32 = 86_400;

/// Who made a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Author {
    /// Its role: `viewer`, `operator`, `admin` or `tenant`; `daemon` for the daemon itself.
    pub role: String,
    /// Common name of its certificate, or user of the Unix socket; for a tenant, absent unless it is the tenant itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Author {
    /// Role of a tenant.
    pub const TENANT: &str = "tenant";
}

/// Role and name, as in `operator alice`.
impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        self.name.iter().try_for_each(|name| write!(f, " {name}"))
    }
}

/// Kind of change that made a revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RevisionKind {
    /// Documents were applied.
    #[default]
    Apply,
    /// A network was deleted.
    Delete,
    /// A clock gate was closed or opened.
    Gate,
    /// A network was moved between card and software.
    Migrate,
    /// An image was loaded into the card.
    Image,
    /// The card was drained.
    Drain,
    /// The card is no longer drained.
    Undrain,
    /// The documents of an earlier revision were restored.
    Rollback,
    /// A change was not confirmed in time, so the daemon restored the documents before it.
    AutoRollback,
}

impl RevisionKind {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Gate => "gate",
            Self::Migrate => "migrate",
            Self::Image => "image",
            Self::Drain => "drain",
            Self::Undrain => "undrain",
            Self::Rollback => "rollback",
            Self::AutoRollback => "auto_rollback",
        }
    }
}

/// A document that a revision created, changed or deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DocumentChange {
    /// `create`, `change` or `delete`.
    pub verb: Verb,
    /// Kind of the document: `node` or `network`.
    pub object: ObjectKind,
    /// Its name.
    pub name: String,
}

/// A revision of the documents: an accepted change of the desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Revision {
    /// Its number: the generation of the desired state that it made.
    pub number: u64,
    /// When it was accepted.
    pub time: Timestamp,
    /// Who made it.
    pub by: Author,
    /// Kind of change that made it.
    pub kind: RevisionKind,
    /// The revision that a rollback restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// Documents that differ from the revision before, in the order of their names, the node first; a tenant gets
    /// its own.
    pub changes: Vec<DocumentChange>,
}

/// The revisions that are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// Generation of the desired state in force.
    pub generation: u64,
    /// Revisions, newest first. A tenant gets those that changed its network.
    pub revisions: Vec<Revision>,
    /// The change that waits for its confirmation, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// Why earlier revisions are missing, if not because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A change that the daemon undoes by itself unless it is confirmed in time. Meanwhile all other changes are refused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Pending {
    /// The revision that it made.
    pub revision: u64,
    /// The revision whose documents are restored without a confirmation.
    pub restores: u64,
    /// Who made it.
    pub by: Author,
    /// When it must be confirmed.
    pub deadline: Timestamp,
    /// Time left, in seconds.
    pub remaining_s: u64,
    /// Documents that it changed; a tenant gets its own.
    pub changes: Vec<DocumentChange>,
}

/// Which change to confirm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// Number of the revision that the change made; by default the one that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// A change is confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ConfirmResult {
    /// The revision that stays in force.
    pub revision: u64,
}

/// Which revision to go back to, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// Number of the revision; by default the one before the latest change, for a tenant the latest of its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Report the changes, but make none.
    #[serde(default)]
    pub dry_run: bool,
    /// Delete documents that the revision did not have. Otherwise they stay.
    #[serde(default)]
    pub prune: bool,
    /// Roll back only if the desired state has this generation; otherwise the call fails with `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
}

/// Result of a rollback.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RollbackResult {
    /// The revision whose documents are in force again.
    pub revision: u64,
    /// Generation of the desired state after the call.
    pub generation: u64,
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// Changes made, or in a dry run the changes that would be made; empty if nothing differed.
    pub actions: Vec<Action>,
    /// State of the networks concerned.
    pub networks: Vec<NetworkResult>,
    /// Networks that the revision did not have, and that stay without `prune`.
    pub kept: Vec<String>,
}
