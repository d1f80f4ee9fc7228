//! Changing what runs: apply, diff, down.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::NetworkState;

/// What to do if another change is under way.
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
    /// How findings call it.
    pub name: String,
    /// Its YAML documents.
    pub text: String,
}

/// Documents to bring into force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Files.
    pub sources: Vec<SourceText>,
    /// Say what would be done and do nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// The documents are all there should be: networks that are not among them are deleted. Without it they stay.
    #[serde(default)]
    pub prune: bool,
    /// Only if this is the number of the desired state in force; else the call fails with `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
}

/// Documents to compare with what is in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// Files.
    pub sources: Vec<SourceText>,
    /// As in an apply.
    #[serde(default)]
    pub prune: bool,
}

impl From<DiffRequest> for ApplyRequest {
    fn from(request: DiffRequest) -> Self {
        Self { sources: request.sources, dry_run: true, prune: request.prune, if_generation: None }
    }
}

/// What is done with a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It comes to be.
    Create,
    /// It is changed while it runs.
    Change,
    /// It is removed and set up anew.
    Replace,
    /// It goes.
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

/// What kind of thing is changed.
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
    /// What is in force; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// What is desired; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
}

/// A step from what is in force to what is desired.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Action {
    /// What is done.
    pub verb: Verb,
    /// With what kind of thing.
    pub object: ObjectKind,
    /// Its name.
    pub name: String,
    /// Fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

/// What an apply did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ApplyResult {
    /// Number of the desired state now in force.
    pub generation: u64,
    /// Whether nothing was done, only said.
    pub dry_run: bool,
    /// What was done, or would be; nothing when all was as desired before.
    pub actions: Vec<Action>,
    /// How the networks that were touched are now.
    pub networks: Vec<NetworkResult>,
}

/// How a network is after an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NetworkResult {
    /// The network.
    pub name: String,
    /// What it does.
    pub state: NetworkState,
    /// Why it is not as desired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an apply would do.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DiffResult {
    /// Number of the desired state in force.
    pub generation: u64,
    /// What would be done; nothing when all is as desired.
    pub actions: Vec<Action>,
}

/// How to go down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DownOptions {
    /// Leave namespaces and what runs in them, for the next daemon to adopt.
    #[serde(default)]
    pub keep: bool,
}

/// The daemon goes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DownResult {
    /// Its process, which ends soon.
    pub pid: u32,
    /// Networks that are removed, or kept.
    pub networks: u64,
}
