//! The handle of the node for all other threads.
//!
//! Flow: API → **[`NodeHandle`]** → [`Request`]s → node thread; views, counters and events are read without the thread.

mod backend;
mod drain;
mod drift;
mod pending;
mod plan;
mod rollback;

use std::sync::{Arc, PoisonError};

use tokio::sync::watch;

use crate::api::{DownOptions, Problem};
use crate::node::command::{Reply, Request};
use crate::node::events::EventLog;
use crate::node::message::Message;
use crate::node::shared::Shared;

/// Handle of the node for all other threads. It is the API's [`Backend`](crate::backend::Backend).
#[derive(Clone)]
pub struct NodeHandle {
    pub(super) shared: Arc<Shared>,
}

impl NodeHandle {
    /// Events.
    #[must_use]
    pub fn events(&self) -> &EventLog {
        &self.shared.events
    }

    /// Closes the store, for the next daemon. Nothing may be changed any more.
    pub fn close_store(&self) {
        self.shared.store.lock().unwrap_or_else(PoisonError::into_inner).close();
    }

    /// Becomes `Some` when the daemon is asked to stop.
    #[must_use]
    pub fn down_watch(&self) -> watch::Receiver<Option<DownOptions>> {
        self.shared.down.subscribe()
    }

    /// Asks the daemon to stop.
    pub fn go_down(&self, options: DownOptions) {
        self.shared.down.send_replace(Some(options));
    }

    /// Passes a request to the node's thread and waits for the reply.
    async fn ask<T, R: Into<Request>>(&self, request: impl FnOnce(Reply<T>) -> R) -> Result<T, Problem> {
        let (reply, answer) = Reply::channel();
        let gone = || Problem::unavailable("the daemon is stopping");
        self.shared.sender.send(Message::Ask(request(reply).into())).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}
