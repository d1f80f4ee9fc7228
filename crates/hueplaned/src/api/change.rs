//! Changes of the desired state: apply, diff, down.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{NetworkState, Pending};

/// Behaviour while another change is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TurnQuery {
    /// Fail with `conflict` instead of waiting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
}

/// The content of a configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceText {
    /// Its name in findings.
    pub name: String,
    /// Its YAML documents.
    pub text: String,
}

/// Documents to apply.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Files.
    pub sources: Vec<SourceText>,
    /// Report the changes, but make none.
    #[serde(default)]
    pub dry_run: bool,
    /// Delete networks that are not among the documents. Otherwise they stay.
    #[serde(default)]
    pub prune: bool,
    /// Apply only if the desired state has this generation; otherwise the call fails with `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
    /// Restore the previous documents unless the change is confirmed within this many seconds, 1 to 86,400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_s: Option<u32>,
}

/// Documents to compare with the desired state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// Files.
    pub sources: Vec<SourceText>,
    /// As for apply.
    #[serde(default)]
    pub prune: bool,
}

impl From<DiffRequest> for ApplyRequest {
    fn from(request: DiffRequest) -> Self {
        Self { sources: request.sources, dry_run: true, prune: request.prune, ..Self::default() }
    }
}

/// Change of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It is created.
    Create,
    /// It is changed while it runs.
    Change,
    /// It is removed and created again.
    Replace,
    /// It is removed.
    Delete,
}

impl Verb {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Delete => "delete",
        }
    }
}

/// Kind of a changed object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// The node.
    Node,
    /// A physical port.
    Port,
    /// A network.
    Network,
}

impl ObjectKind {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Port => "port",
            Self::Network => "network",
        }
    }
}

/// A field that differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its path in the document, such as `spec.routes[0].via`.
    pub field: String,
    /// Current value; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// Desired value; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
}

/// A step from the current to the desired state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Action {
    /// The change.
    pub verb: Verb,
    /// Kind of the object.
    pub object: ObjectKind,
    /// Name of the object.
    pub name: String,
    /// Fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

/// Result of an apply.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ApplyResult {
    /// Generation of the desired state after the call.
    pub generation: u64,
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
    /// Changes made, or in a dry run the changes that would be made; empty if nothing differed.
    pub actions: Vec<Action>,
    /// State of the networks concerned.
    pub networks: Vec<NetworkResult>,
    /// The confirmation that the change needs, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
}

/// State of a network after an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NetworkResult {
    /// The network.
    pub name: String,
    /// Its state.
    pub state: NetworkState,
    /// Why it is not in the desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Changes that an apply would make.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DiffResult {
    /// Generation of the desired state.
    pub generation: u64,
    /// Changes that would be made; empty if nothing differs.
    pub actions: Vec<Action>,
}

/// How to stop the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DownOptions {
    /// Leave the namespaces, with the programs in them, to the next daemon.
    #[serde(default)]
    pub keep: bool,
    /// With `keep`, for a daemon that takes this one's place: give up the run directory and the store at once, but forward
    /// until the process gets SIGTERM.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hand_over: bool,
}

/// The daemon is stopping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DownResult {
    /// Its process id. The process ends soon.
    pub pid: u32,
    /// Networks that are removed, or kept.
    pub networks: u64,
}
