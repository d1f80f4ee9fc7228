//! Places: limits on concurrent streams, changes and connections, so that no caller can take all of them.
//!
//! Tenants have places of their own, and each tenant has a share of them: a tenant that uses all of its places shuts
//! out neither the node's operators nor other tenants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::Caller;
use super::{CHANGES_MAX, STREAMS_MAX, TENANT_CHANGES_MAX, TENANT_STREAMS_MAX};
use crate::api::{Problem, ProblemKind, TurnQuery};

/// Seconds that documents wait for a place: as long as a change waits for its turn.
pub const PLACE_SECONDS_MAX: u64 = 120;

/// Places for streams and changes.
pub(super) struct Places {
    streams: [Arc<Semaphore>; 2],
    tenant_streams: Arc<Quota>,
    changes: [Arc<Semaphore>; 2],
}

/// A place among the streams; dropping it gives it back.
pub(super) struct Place {
    _place: OwnedSemaphorePermit,
    _share: Option<Share>,
}

impl Default for Places {
    fn default() -> Self {
        let pair = |count: usize| [(); 2].map(|()| Arc::new(Semaphore::new(count)));
        Self {
            streams: pair(STREAMS_MAX),
            tenant_streams: Arc::new(Quota::new(TENANT_STREAMS_MAX)),
            changes: [CHANGES_MAX, TENANT_CHANGES_MAX].map(|count| Arc::new(Semaphore::new(count))),
        }
    }
}

impl Places {
    /// A place for a stream.
    ///
    /// # Errors
    /// `busy` if none is free.
    pub(super) fn stream(&self, caller: &Caller) -> Result<Place, Problem> {
        let share = match caller.only() {
            Some(tenant) => {
                let share = self.tenant_streams.take(tenant);
                Some(share.ok_or_else(|| busy("streams of a tenant", TENANT_STREAMS_MAX))?)
            }
            None => None,
        };
        let place = Arc::clone(pool(&self.streams, caller)).try_acquire_owned();
        let place = place.map_err(|_| busy("streams", STREAMS_MAX))?;
        Ok(Place { _place: place, _share: share })
    }

    /// Waits for a place to read documents, so that many at once do not fill the memory.
    ///
    /// # Errors
    /// `busy` if none becomes free in time.
    pub(super) async fn change(
        &self,
        caller: &Caller,
        turn: TurnQuery,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let pool = Arc::clone(pool(&self.changes, caller));
        let max = if caller.only().is_some() { TENANT_CHANGES_MAX } else { CHANGES_MAX };
        if turn.no_wait {
            return pool.try_acquire_owned().map_err(|_| busy("changes", max));
        }
        match tokio::time::timeout(Duration::from_secs(PLACE_SECONDS_MAX), pool.acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(busy("changes", max)),
        }
    }
}

/// The places of tenants, or those of all others.
fn pool<'p>(pools: &'p [Arc<Semaphore>; 2], caller: &Caller) -> &'p Arc<Semaphore> {
    let [others, tenants] = pools;
    if caller.only().is_some() { tenants } else { others }
}

/// The problem that no place is free.
pub(super) fn busy(what: &str, max: usize) -> Problem {
    let detail = format!("{what}: the limit of {max} is reached; try again later");
    Problem::new(ProblemKind::Busy, detail)
}

/// Places for each tenant.
pub(super) struct Quota {
    each_max: usize,
    used: Mutex<HashMap<String, usize>>,
}

/// A tenant's place; dropping it gives it back.
pub(super) struct Share {
    quota: Arc<Quota>,
    tenant: String,
}

impl Quota {
    pub(super) fn new(each_max: usize) -> Self {
        Self { each_max, used: Mutex::default() }
    }

    /// Another place for a tenant, if its share is not used up.
    pub(super) fn take(self: &Arc<Self>, tenant: &str) -> Option<Share> {
        let mut all = self.used();
        let used = all.entry(tenant.to_owned()).or_default();
        if *used >= self.each_max {
            return None;
        }
        *used += 1;
        Some(Share { quota: Arc::clone(self), tenant: tenant.to_owned() })
    }

    /// Only counts change under the lock, so they are consistent even after a panic.
    fn used(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut all = self.quota.used();
        if let Some(used) = all.get_mut(&self.tenant) {
            *used -= 1;
            if *used == 0 {
                all.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_its_share_and_gives_it_back() {
        let quota = Arc::new(Quota::new(2));
        let shares = [quota.take("red"), quota.take("red"), quota.take("blue")];
        assert!(shares.iter().all(Option::is_some) && quota.take("red").is_none());
        drop(shares);
        assert!(quota.used().is_empty() && quota.take("red").is_some());
    }
}
