//! The queue of changes to a node: one at a time, in the order of the requests.
//!
//! Flow: API call → **[`Queue::turn`]** → [`InTurn`] while the change is under way → the next change. A caller that
//! disconnects leaves the queue. Invariants: one change at a time; nobody waits longer than [`TURN_MAX`]; a caller that does not
//! want to wait gets an error that names the change under way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use crate::api::{Problem, ProblemKind, TurnQuery};

/// How long a change waits for earlier ones.
pub const TURN_MAX: Duration = Duration::from_secs(120);
/// Most changes that can wait at once.
pub const WAITING_MAX: usize = 64;

/// See the head of this file.
pub struct Queue {
    turns: Arc<Turns<()>>,
    at_most: Duration,
    waiting: AtomicUsize,
    /// Description of the change under way.
    doing: Mutex<String>,
}

/// Held by the change that is under way.
pub struct InTurn {
    _turn: OwnedMutexGuard<()>,
}

/// A change that waits.
struct Waits<'q>(&'q AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            turns: Arc::default(),
            at_most: TURN_MAX,
            waiting: AtomicUsize::new(0),
            doing: Mutex::default(),
        }
    }
}

impl Queue {
    /// Waits for the turn to do `what`. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// `conflict` if it would have to wait and `no_wait` is set; `busy` if it waited too long, or too many changes wait.
    pub async fn turn(&self, query: TurnQuery, what: String) -> Result<InTurn, Problem> {
        if let Ok(turn) = Arc::clone(&self.turns).try_lock_owned() {
            return Ok(self.taken(turn, what));
        }
        if query.no_wait {
            let detail = format!("another change is under way ({}): try again afterwards", self.doing());
            return Err(Problem::new(ProblemKind::Conflict, detail));
        }
        let waits = Waits(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            let detail = format!("{WAITING_MAX} changes are waiting, which is the limit; try again later");
            return Err(Problem::new(ProblemKind::Busy, detail));
        }
        let turn = Arc::clone(&self.turns).lock_owned();
        let turn = tokio::time::timeout(self.at_most, turn).await;
        drop(waits);
        turn.map(|turn| self.taken(turn, what)).map_err(|_| {
            let (doing, seconds) = (self.doing(), self.at_most.as_secs());
            let detail = format!(
                "nothing was changed: earlier changes took more than {seconds} s; under way now: {doing}"
            );
            Problem::new(ProblemKind::Busy, detail)
        })
    }

    fn taken(&self, turn: OwnedMutexGuard<()>, what: String) -> InTurn {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
        InTurn { _turn: turn }
    }

    fn doing(&self) -> String {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn turn(
        queue: &Arc<Queue>,
        no_wait: bool,
        what: &str,
    ) -> tokio::task::JoinHandle<Result<InTurn, Problem>> {
        let (queue, what) = (Arc::clone(queue), what.to_owned());
        tokio::spawn(async move { queue.turn(TurnQuery { no_wait }, what).await })
    }

    async fn until_waiting(queue: &Queue, count: usize) {
        while queue.waiting.load(Relaxed) != count {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn turns_come_in_order_and_who_goes_leaves_the_queue() {
        let queue = Arc::new(Queue::default());
        let first = queue.turn(TurnQuery::default(), "the first".to_owned()).await.ok().unwrap();
        let goes = turn(&queue, false, "the one that goes");
        until_waiting(&queue, 1).await;
        let second = turn(&queue, false, "the second");
        until_waiting(&queue, 2).await;
        let third = turn(&queue, false, "the third");
        until_waiting(&queue, 3).await;
        let at_once = turn(&queue, true, "nothing").await.unwrap().err().unwrap();
        assert_eq!(at_once.kind, ProblemKind::Conflict);
        assert!(at_once.detail.contains("(the first)"), "{at_once}");
        goes.abort();
        until_waiting(&queue, 2).await;
        drop(first);
        let second = second.await.unwrap().ok().unwrap();
        assert!(!third.is_finished() && queue.doing() == "the second");
        // A change that does not want to wait does not overtake those that wait.
        drop(second);
        let at_once = turn(&queue, true, "nothing").await.unwrap();
        assert!(at_once.is_err_and(|problem| problem.kind == ProblemKind::Conflict));
        drop(third.await.unwrap().ok().unwrap());
        assert!(turn(&queue, true, "the last").await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn not_too_many_wait() {
        let queue = Arc::new(Queue::default());
        let _first = queue.turn(TurnQuery::default(), "the first".to_owned()).await.ok().unwrap();
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| turn(&queue, false, "another")).collect();
        until_waiting(&queue, WAITING_MAX).await;
        let full = turn(&queue, false, "one too many").await.unwrap().err().unwrap();
        assert!(full.kind == ProblemKind::Busy && full.detail.contains("64 changes are waiting"), "{full}");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        until_waiting(&queue, 0).await;
    }

    #[tokio::test]
    async fn waiting_ends_after_the_limit() {
        let queue = Arc::new(Queue { at_most: Duration::from_millis(20), ..Queue::default() });
        let _first = queue.turn(TurnQuery::default(), "the first".to_owned()).await.ok().unwrap();
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| turn(&queue, false, "another")).collect();
        until_waiting(&queue, WAITING_MAX).await;
        for one in waiting {
            let late = one.await.unwrap().err().unwrap();
            assert!(
                late.kind == ProblemKind::Busy && late.detail.ends_with("under way now: the first"),
                "{late}"
            );
        }
        assert_eq!(queue.waiting.load(Relaxed), 0);
    }
}
