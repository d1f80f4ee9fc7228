//! Replays what a node was given: its requests and steps, in order, with their times and the frames that left.
//!
//! Flow: `ByHand` → **[`Journal`]** → another `ByHand`, which must do the same. The requests are those of the API;
//! documents are not read again. Units: nanoseconds.

use std::cell::RefCell;
use std::net::IpAddr;

use hue_tables::AnyPrefix;

use crate::node::command::{Frame, Request};

/// The inputs of a node, with the times at which it got them.
#[derive(Default, Debug)]
pub struct Journal(pub(super) RefCell<Vec<(u64, Input)>>);

/// An input of a node.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Request(Request),
    StepNode,
    StepJob,
    StepKernel,
    StepCard,
    StepWorker(usize),
    Retry,
    Route(String, AnyPrefix, Option<IpAddr>),
    Send(String, Frame),
    SendControl(String, usize, Frame),
    /// A frame that left.
    Received(String, Frame),
    ReceivedControl(String, usize, Frame),
    Cut(String),
    /// Reads the state, for which the card's clock advances.
    Look,
    Stats,
}

impl Journal {
    pub(super) fn add(&self, now_ns: u64, input: Input) {
        self.0.borrow_mut().push((now_ns, input));
    }

    /// Number of inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether there are no inputs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The requests, as the daemon logs them.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let request = |(_, input): &(u64, Input)| match input {
            Input::Request(request) => Some(format!("{request:?}")),
            _ => None,
        };
        self.0.borrow().iter().filter_map(request).collect()
    }

    /// Removes a request.
    pub fn remove_request(&mut self, at: usize) {
        let mut requests = 0;
        self.0.get_mut().retain(|(_, input)| {
            let is_request = matches!(input, Input::Request(_));
            requests += usize::from(is_request);
            !is_request || requests != at + 1
        });
    }
}
