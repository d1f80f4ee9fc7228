//! Checks namespaces for drift: those of the networks that a change names, and one before a command runs in it.

use std::collections::BTreeSet;

use hue_host::HostError;
use hue_host::netns::Standing;

use super::NodeHandle;
use crate::api::{ExecInfo, Problem, ProblemKind};
use crate::node::command::{Command, Query};
use crate::node::drift::look;

impl NodeHandle {
    /// Checks these networks, so that a change finds drift that nothing has reported yet.
    pub(super) async fn look_now(&self, names: BTreeSet<String>) -> Result<(), Problem> {
        let looks = self.ask(|reply| Command::BeginLook { names, reply }).await?;
        if looks.is_empty() {
            return Ok(());
        }
        let seen = tokio::task::spawn_blocking(move || look(looks)).await.map_err(Problem::internal)?;
        self.ask(|reply| Command::EndLook { seen, reply }).await
    }

    /// Namespace and control groups for commands in a network, if the name still belongs to its namespace.
    pub(super) async fn exec_info_now(&self, name: String) -> Result<ExecInfo, Problem> {
        let (info, control) = self.ask(|reply| Query::ExecInfo { name, reply }).await??;
        let standing = tokio::task::spawn_blocking(move || control.namespace.standing()).await;
        match standing.map_err(Problem::internal)?.map_err(Problem::internal)? {
            Standing::Own => Ok(info),
            Standing::Nothing => Err(Problem::unavailable(format!(
                "namespace {} was deleted; it gets its name back within seconds: try again",
                info.namespace
            ))),
            Standing::Other => Err(Problem::new(
                ProblemKind::Conflict,
                format!("commands cannot be run in the network: {}", HostError::Replaced(info.namespace)),
            )),
        }
    }
}
