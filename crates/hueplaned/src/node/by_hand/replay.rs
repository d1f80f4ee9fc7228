//! Keeps a journal of a node, and gives its inputs to another one.

use super::hand::ByHand;
use super::journal::{Input, Journal};
use crate::node::command::Frame;

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
