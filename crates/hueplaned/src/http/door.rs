//! Admission of TCP connections: limits on unauthenticated connections, and on those of each role.
//!
//! Flow: accepted → [`Unauthenticated::enter`] → TLS handshake → [`Authenticated::enter`] by role → answers.
//! Invariants: a peer without a certificate cannot keep out one that has one. Accepting never waits: when there are too
//! many unauthenticated connections, the one that is most likely idle is closed. An authenticated peer cannot keep out
//! administrators: the last places are reserved for them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::access::{Caller, Role};

/// Connections without an authenticated caller, or whose caller has no place.
pub(super) struct Unauthenticated {
    max: usize,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    next: u64,
    /// By number; a lower one came earlier.
    waiters: HashMap<u64, Waiter>,
}

struct Waiter {
    address: IpAddr,
    /// It has sent the beginning of a handshake.
    has_spoken: bool,
    leave: Arc<Notify>,
}

/// An unauthenticated connection; dropping it removes it from the list.
pub(super) struct Ticket {
    waiting: Arc<Unauthenticated>,
    number: u64,
    leave: Arc<Notify>,
}

impl Unauthenticated {
    pub(super) fn new(max: usize) -> Self {
        Self { max, list: Mutex::default() }
    }

    /// Adds a connection. If there are too many, one of the others is told to close: preferably one that has sent nothing,
    /// among these one from the address with the most connections, among these the oldest.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Ticket {
        let mut list = self.list();
        if list.waiters.len() >= self.max
            && let Some(number) = list.idlest()
            && let Some(waiter) = list.waiters.remove(&number)
        {
            waiter.leave.notify_one();
        }
        let (number, leave) = (list.next, Arc::new(Notify::new()));
        list.next += 1;
        list.waiters.insert(number, Waiter { address, has_spoken: false, leave: Arc::clone(&leave) });
        Ticket { waiting: Arc::clone(self), number, leave }
    }

    /// Each change leaves the list consistent, so a panic of another thread does no harm.
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    fn idlest(&self) -> Option<u64> {
        let mut from: HashMap<IpAddr, usize> = HashMap::new();
        for waiter in self.waiters.values() {
            *from.entry(waiter.address).or_default() += 1;
        }
        let rank =
            |waiter: &Waiter| (!waiter.has_spoken, from.get(&waiter.address).copied().unwrap_or_default());
        let (number, _) =
            self.waiters.iter().max_by_key(|(number, waiter)| (rank(waiter), u64::MAX - *number))?;
        Some(*number)
    }
}

impl Ticket {
    /// The peer has begun a handshake.
    pub(super) fn has_spoken(&self) {
        if let Some(waiter) = self.waiting.list().waiters.get_mut(&self.number) {
            waiter.has_spoken = true;
        }
    }

    /// Completes when the connection has to close, to make room for another.
    pub(super) async fn must_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiting.list().waiters.remove(&self.number);
    }
}

/// Connections of authenticated callers.
pub(super) struct Authenticated {
    max: usize,
    used: AtomicUsize,
}

/// A connection of an authenticated caller; dropping it gives its place back.
pub(super) struct Seat(Arc<Authenticated>);

impl Authenticated {
    pub(super) const fn new(max: usize) -> Self {
        Self { max, used: AtomicUsize::new(0) }
    }

    /// Most connections at which a caller of this role still gets another one. The last eighth is reserved for
    /// administrators; tenants cannot use the eighth before it either.
    pub(super) fn max_of(&self, caller: &Caller) -> usize {
        match caller.role {
            Role::Admin => self.max,
            Role::Viewer | Role::Operator => self.max - self.max / 8,
            Role::Tenant(_) => self.max - self.max / 4,
        }
    }

    /// A place, if one is left for the caller's role.
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller) -> Option<Seat> {
        let max = self.max_of(caller);
        let more = |used: usize| (used < max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Seat(Arc::clone(self)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(ticket: &Ticket) -> bool {
        !ticket.waiting.list().waiters.contains_key(&ticket.number)
    }

    #[test]
    fn the_silent_leave_first_then_those_that_are_many_then_the_oldest() {
        let waiting = Arc::new(Unauthenticated::new(5));
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let spoke: Vec<_> = [1, 1, 1].map(|last| waiting.enter(address(last))).into();
        spoke.iter().for_each(Ticket::has_spoken);
        let alone = waiting.enter(address(3));
        let silent = waiting.enter(address(2));
        // All places are taken. Of two silent connections, each the only one of its address, the older must close.
        let next = waiting.enter(address(2));
        assert!(left(&alone) && !left(&silent) && !left(&next));
        let last = waiting.enter(address(2));
        assert!(left(&silent) && !left(&next) && spoke.iter().all(|one| !left(one)));
        next.has_spoken();
        last.has_spoken();
        // All have sent something: one of the address with the most connections must close.
        let late = waiting.enter(address(4));
        assert!(left(&spoke[0]) && !left(&next) && !left(&last) && !left(&late));
        drop((spoke, alone, silent, next, last, late));
        assert!(waiting.list().waiters.is_empty());
    }

    #[test]
    fn the_last_places_are_for_administrators() {
        let inside = Arc::new(Authenticated::new(8));
        let caller = |role| Caller { role, called: None };
        let tenant = caller(Role::Tenant("red".into()));
        let mut seats: Vec<_> = (0..10).filter_map(|_| inside.enter(&tenant)).collect();
        assert_eq!(seats.len(), 6);
        seats.extend((0..10).filter_map(|_| inside.enter(&caller(Role::Viewer))));
        assert_eq!(seats.len(), 7);
        seats.extend((0..10).filter_map(|_| inside.enter(&caller(Role::Admin))));
        assert_eq!(seats.len(), 8);
        seats.truncate(3);
        assert!(inside.enter(&tenant).is_some());
    }
}
