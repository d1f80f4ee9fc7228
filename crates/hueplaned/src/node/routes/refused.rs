//! Routes refused because of a network's quota or a full table: which they are, why, and when they are retried.
//!
//! Flow: pieces of a table → data plane → [`Refusals`] → **[`Refused`]** → condition of the network, events, counts;
//! and back: refused routes in pieces, once there is room. The namespace's kernel still reports the routes; this module
//! only records the prefixes that the table lacks.
//! Invariants: a prefix recorded here has no route in the data plane or on the card; a prefix that the kernel withdraws
//! is removed here. Retries cost one piece of [`RETRY_ROUTES`] when the network's own table has shrunk, and one each
//! [`RETRY_EACH`]; if any route of a piece fits, the next piece follows at once.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::{Duration, Instant};

use hue_routing::AnyRib;
use hue_substrate::{Changes, Refusals, SubstrateError};
use hue_tables::{Account, AnyPrefix, TableError};

/// Routes per piece of a network with refused routes: few, because each route may need a separate change.
pub const RETRY_ROUTES: usize = 256;
/// How often some are retried although the network's own table has not shrunk. It also limits the events about a
/// network whose routes come and go at the edge of its quota.
pub(super) const RETRY_EACH: Duration = Duration::from_secs(2);

/// The refused routes of a network.
#[derive(Default)]
pub struct Refused {
    routes: BTreeSet<AnyPrefix>,
    /// Announcements refused since the network was loaded.
    count: u64,
    /// Reason of the last refusal.
    why: Option<SubstrateError>,
    /// Message about them, if any.
    pub(super) reason: Option<String>,
    /// The last one tried.
    at: Option<AnyPrefix>,
    /// Bytes of the network's own table when nothing fitted.
    own_then: u64,
    /// Whether to retry some even if the table has not shrunk.
    again: bool,
    /// When some are retried or, if none are left, the recovery is reported.
    pub(super) due: Option<Instant>,
}

impl Refused {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether there are none, and no message about any.
    pub(super) fn is_quiet(&self) -> bool {
        self.routes.is_empty() && self.reason.is_none()
    }

    /// Number of refused routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Number of announcements refused since the network was loaded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether a prefix is refused.
    pub fn contains(&self, prefix: AnyPrefix) -> bool {
        self.routes.contains(&prefix)
    }

    /// Message about them.
    pub const fn reason(&self) -> Option<&String> {
        self.reason.as_ref()
    }

    /// When the next action is due.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// There may be room: retries some.
    pub const fn try_again(&mut self) {
        self.again = true;
    }

    /// The table will be filled again from the start: no route is refused yet.
    pub fn forget(&mut self) {
        self.routes.clear();
        (self.at, self.why, self.again) = (None, None, false);
    }

    /// Some routes to retry, as they were handed out, if there is reason to.
    pub fn next(&mut self, rib: &AnyRib, own: u64) -> Option<Changes> {
        if self.routes.is_empty() || !(self.again || own < self.own_then) {
            return None;
        }
        (self.again, self.own_then) = (false, own);
        let after = self.at.map_or(Bound::Unbounded, Bound::Excluded);
        let mut some: Vec<AnyPrefix> =
            self.routes.range((after, Bound::Unbounded)).take(RETRY_ROUTES).copied().collect();
        if some.is_empty() {
            some = self.routes.iter().take(RETRY_ROUTES).copied().collect();
        }
        self.at = some.last().copied();
        Some(rib.published_changes(&some))
    }

    /// Takes the result of a piece. Refused entries of `changes` become withdrawals, as in the table.
    pub fn take(&mut self, changes: &mut Changes, refusals: Refusals, own: u64) {
        if self.routes.is_empty() && refusals.at.is_empty() {
            return;
        }
        let mut at = refusals.at.iter().copied().peekable();
        let mut fitted = false;
        let mut place = 0;
        changes.for_each(|prefix, hop| {
            if at.next_if_eq(&place).is_some() {
                *hop = None;
                self.count += u64::from(self.routes.insert(prefix));
            } else {
                fitted |= self.routes.remove(&prefix) && hop.is_some();
            }
            place += 1;
        });
        if fitted {
            self.again = true;
        } else if refusals.error.is_some() {
            (self.again, self.own_then) = (false, own);
        }
        self.why = refusals.error.or(self.why.take());
    }

    /// Message about them, given the number of all routes.
    pub(super) fn words(&self, routes: usize, account: &Account) -> Option<String> {
        let (refused, own) = (self.routes.len(), account.bytes_own);
        let head = format!("{refused} of {routes} routes are refused");
        match &self.why {
            _ if refused == 0 => None,
            Some(SubstrateError::Table { error: TableError::Quota { bytes_needed, .. }, .. }) => {
                let quota = account.bytes_quota.unwrap_or(u64::MAX);
                Some(format!(
                    "{head}: the network's table has {own} bytes and would have {bytes_needed} with the next route, but \
                     its quota (table.quota) is {quota}"
                ))
            }
            Some(SubstrateError::Table { error: TableError::Full { bytes_max, .. }, .. }) => Some(format!(
                "{head}: the network's table has {own} bytes, and the memory of all tables, {bytes_max} bytes, is full"
            )),
            // No other error refuses a route.
            Some(_) | None => Some(head),
        }
    }
}

#[cfg(test)]
mod tests {
    use hue_planes::Keys;
    use hue_tables::{Change, NextHop, Prefix4, Vid};

    use super::*;

    fn prefix(n: usize) -> Prefix4 {
        Prefix4::containing((n as u32) << 8, 24)
    }

    fn change(n: usize) -> Change<u32> {
        (prefix(n), NextHop::new(1))
    }

    fn refusals(at: Vec<usize>) -> Refusals {
        let error = TableError::Full { vid: Vid::new(1).unwrap(), bytes_used: 9, bytes_max: 9 };
        let error = SubstrateError::Table { name: "red".to_owned(), error };
        Refusals { error: (!at.is_empty()).then_some(error), at }
    }

    #[test]
    fn what_is_refused_becomes_a_withdrawal_and_is_counted_once() {
        let mut refused = Refused::default();
        let mut changes = Changes::from(vec![change(1), change(2), (prefix(3), None)]);
        refused.take(&mut changes, refusals(vec![1]), 100);
        assert_eq!(changes.v4, [change(1), (prefix(2), None), (prefix(3), None)]);
        assert!(refused.contains(prefix(2).into()) && !refused.contains(prefix(1).into()));
        refused.take(&mut vec![change(2)].into(), refusals(vec![0]), 100);
        assert_eq!((refused.len(), refused.count()), (1, 1));
        // The kernel withdraws it.
        refused.take(&mut vec![(prefix(2), None)].into(), refusals(Vec::new()), 100);
        assert!(refused.is_empty() && refused.next(&AnyRib::new(Keys::V4, Vec::new()), 0).is_none());
    }

    #[test]
    fn all_are_tried_in_turn_and_only_when_there_is_reason_to() {
        let count = 2 * RETRY_ROUTES + 10;
        let rib = AnyRib::new(Keys::V4, Vec::new());
        let mut refused = Refused::default();
        let mut all = Changes::from((0..count).map(change).collect::<Vec<_>>());
        refused.take(&mut all, refusals((0..count).collect()), 1000);
        assert_eq!(refused.next(&rib, 1000), None, "nothing has become smaller");
        let mut tried = Vec::new();
        for own in [999, 998, 997] {
            let some = refused.next(&rib, own).unwrap();
            tried.extend(some.v4.iter().map(|(prefix, _)| *prefix));
            assert_eq!(refused.next(&rib, own), None);
        }
        assert_eq!(tried, (0..count).map(prefix).collect::<Vec<_>>());
        // Starts again with the first route; if one fits, the next piece follows.
        refused.try_again();
        let some = refused.next(&rib, 1000).unwrap();
        assert_eq!(some.v4[0].0, prefix(0));
        let mut some = some.slice(0..1);
        some.for_each(|_, hop| *hop = NextHop::new(1));
        refused.take(&mut some, refusals(Vec::new()), 1000);
        assert_eq!(refused.next(&rib, 1000).unwrap().v4[0].0, prefix(RETRY_ROUTES));
    }
}
