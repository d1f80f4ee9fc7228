//! Replays what a node was given: its requests and steps, in order, with their times and the frames that left.
//!
//! Flow: [`ByHand`] → **[`Journal`]** → another [`ByHand`], which must do the same. The requests are those of the API;
//! documents are not read again. Units: nanoseconds.

use std::cell::RefCell;
use std::net::Ipv4Addr;

use hue_tables::Prefix4;

use super::super::command::{Frame, Request};
use super::ByHand;

/// The inputs of a node, with the times at which it got them.
#[derive(Default, Debug)]
pub struct Journal(RefCell<Vec<(u64, Input)>>);

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
    Route(String, Prefix4, Option<Ipv4Addr>),
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

impl ByHand {
    /// Keeps a journal from now on. A journal that can be replayed begins with the node.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// The journal so far.
    pub fn take_journal(&mut self) -> Journal {
        self.journal.take().unwrap_or_default()
    }

    pub(super) fn note(&self, input: impl FnOnce() -> Input) {
        if let Some(journal) = &self.journal {
            journal.add(self.time.now_ns(), input());
        }
    }

    /// Gives this node, which is new, the inputs of another one.
    ///
    /// # Errors
    /// The first frame that left the other node, but not this one.
    pub fn replay(&mut self, journal: &Journal) -> Result<(), String> {
        for (at, (now_ns, input)) in journal.0.borrow().iter().enumerate() {
            self.time.pass(now_ns.saturating_sub(self.time.now_ns()));
            self.take(input).map_err(|what| format!("input {at}, at {now_ns} ns: {what}"))?;
        }
        Ok(())
    }

    fn take(&mut self, input: &Input) -> Result<(), String> {
        let same = |whose: &str, expected: &Frame, found: Option<Vec<u8>>| match found {
            Some(found) if found == expected.0 => Ok(()),
            Some(_) => Err(format!("another frame left by {whose}")),
            None => Err(format!("no frame left by {whose}")),
        };
        match input {
            Input::Request(request) => self.node.take_request(request.clone().anew()),
            Input::StepNode => drop(self.step_node()),
            Input::StepJob => drop(self.step_job()),
            Input::StepKernel => drop(self.step_kernel()),
            Input::StepCard => drop(self.step_card()),
            Input::StepWorker(worker) => drop(self.step_worker(*worker)),
            Input::Retry => self.retry(),
            Input::Route(network, prefix, via) => drop(self.route(network, *prefix, *via)),
            Input::Send(interface, frame) => drop(self.send(interface, &frame.0)),
            Input::SendControl(network, vport, frame) => drop(self.send_control(network, *vport, &frame.0)),
            Input::Received(interface, frame) => return same(interface, frame, self.receive(interface)),
            Input::ReceivedControl(network, vport, frame) => {
                return same(network, frame, self.receive_control(network, *vport));
            }
            Input::Cut(interface) => self.cut(interface),
            Input::Look => drop(self.look()),
            Input::Stats => drop(self.stats()),
        }
        Ok(())
    }
}
