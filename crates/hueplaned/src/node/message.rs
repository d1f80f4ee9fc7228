//! What the node's thread is told.
//!
//! Flow: API, jobs, interfaces, workers, card's thread → **[`Message`]** → node thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use hue_host::links::LinkEvent;
use hue_routing::Batch;
use hue_soft::PortEvent;

use super::card::CardNews;
use super::command::Request;
use super::jobs::Done;
use super::learnt;
use super::programs::Report;

/// Something for the node's thread to do.
pub enum Message {
    /// A request of the API.
    Ask(Request),
    /// A job has ended.
    Done(Done),
    /// Interfaces changed.
    Links(Vec<LinkEvent>),
    /// A port failed.
    Port(PortEvent),
    /// A message from the card's thread.
    Card(CardNews),
    /// Something happened to the program of a network.
    Program(Report),
    /// Something happened at a network's socket for labels.
    Labels(learnt::Report),
    /// Routing events are waiting.
    Wake,
    /// Stop.
    Stop,
}

/// Inputs of the thread.
pub struct Inbox {
    /// Messages.
    pub messages: Receiver<Message>,
    /// Routing events.
    pub batches: Receiver<Batch>,
    /// Set while a `Wake` is in `messages`.
    pub woken: Arc<AtomicBool>,
}
