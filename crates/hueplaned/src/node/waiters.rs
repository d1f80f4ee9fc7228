//! Callers that wait until networks and ports have reached their desired state, or have failed to.
//!
//! Flow: change → **[`Waiters`]**, told of each network and interface that is done → [`Answer`]s of the callers that have
//! nothing left to wait for.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;

use crate::api::NetworkResult;

/// See the head of this file.
#[derive(Default)]
pub struct Waiters(Vec<Waiter>);

struct Waiter {
    names: BTreeSet<String>,
    /// Interfaces that were being opened.
    opening: BTreeSet<String>,
    results: BTreeMap<String, NetworkResult>,
    reply: oneshot::Sender<Vec<NetworkResult>>,
}

/// The answer to a caller.
pub struct Answer(Waiter);

impl Waiters {
    /// Adds a caller that waits for these networks, and for interfaces that are being opened.
    pub fn add(
        &mut self,
        names: BTreeSet<String>,
        opening: BTreeSet<String>,
    ) -> oneshot::Receiver<Vec<NetworkResult>> {
        let (reply, answer) = oneshot::channel();
        self.0.push(Waiter { names, opening, results: BTreeMap::new(), reply });
        answer
    }

    /// A network has reached its desired state or failed; or it is gone, without a result.
    pub fn network_done(&mut self, name: &str, result: Option<&NetworkResult>) {
        for waiter in &mut self.0 {
            if waiter.names.remove(name)
                && let Some(result) = result
            {
                waiter.results.insert(name.to_owned(), result.clone());
            }
        }
    }

    /// An interface is open, or cannot be opened.
    pub fn interface_done(&mut self, interface: &str) {
        for waiter in &mut self.0 {
            waiter.opening.remove(interface);
        }
    }

    /// The answers of callers that have nothing left to wait for.
    pub fn take_done(&mut self) -> Vec<Answer> {
        let done =
            self.0.extract_if(.., |waiter| waiter.names.is_empty() && waiter.opening.is_empty()).map(Answer);
        done.collect()
    }
}

impl Answer {
    /// Sends it. The caller may have disconnected.
    pub fn send(self) {
        let _ = self.0.reply.send(self.0.results.into_values().collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::NetworkState;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_caller_is_answered_when_all_is_done_and_not_before() {
        let mut waiters = Waiters::default();
        let mut both = waiters.add(set(&["a", "b"]), set(&["eth0"]));
        let mut none = waiters.add(set(&[]), set(&[]));
        let send = |waiters: &mut Waiters| waiters.take_done().into_iter().map(Answer::send).count();
        assert_eq!(send(&mut waiters), 1);
        assert_eq!(none.try_recv(), Ok(Vec::new()));
        let a = NetworkResult { name: "a".to_owned(), state: NetworkState::Running, reason: None };
        waiters.network_done("a", Some(&a));
        waiters.network_done("other", Some(&a));
        waiters.network_done("b", None);
        assert_eq!((send(&mut waiters), both.try_recv().is_err()), (0, true));
        waiters.interface_done("eth0");
        assert_eq!(send(&mut waiters), 1);
        assert_eq!(both.try_recv(), Ok(vec![a]));
    }
}
