//! Requests that wait until no network is moving.
//!
//! Flow: `Node::when_idle` → the node's thread checks after each message → the work is done, in the order of the requests.
//! The node itself moves networks to where documents or the scheduler place them, and onto the card when there is room.
//! A move or an image load that somebody requests does not start until those moves have ended.
//! Invariants: no work waits longer than the limit, and the error then says why it waited; work whose caller has
//! disconnected is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long requested work waits for moves that the node makes itself.
pub const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Tells whether the caller is still connected.
#[derive(Clone, Default, Debug)]
pub struct Caller(Arc<AtomicBool>);

/// Held by the caller; marks it as gone when dropped.
pub struct CallerGuard(Caller);

impl Caller {
    /// The caller counts as connected until this is dropped.
    pub fn guard(&self) -> CallerGuard {
        CallerGuard(self.clone())
    }

    pub(super) fn has_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
