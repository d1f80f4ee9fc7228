//! The node without threads, namespaces and sockets: the caller drives every step, to simulate whole histories.
//!
//! Flow: caller → **[`ByHand`]** → the node's messages, jobs and pieces of tables; rounds of workers and of the card,
//! one at a time, in the caller's thread. The node, the workers, the card's thread and the card's logic are those of
//! the daemon. The operating system is simulated: ports are queues in memory, a namespace contains what its document
//! says (`kernel` simulates the kernel), TAPs are queues, and nothing is stored on a disk.
//! Invariants: the caller sets the time, and also when failed work is retried; changes wait for each other as in the
//! daemon.

mod hand;
mod journal;
mod kernel;
mod look;
mod replay;

pub use hand::{Answer, ByHand};
pub use journal::Journal;
pub use look::{CardLook, Look, NetworkLook, Seated};
