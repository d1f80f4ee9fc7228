//! Applies changes of which some may be rejected for lack of room: keeps what fits and reports the rest.

use super::{Change, Dag};
use crate::limits::TableError;
use crate::types::{Key, Prefix, Vid};

/// Parts into which rejected changes are split: each level of splitting costs about as much as one attempt.
const PARTS: usize = 16;

/// The rejected changes of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusals<E = TableError> {
    /// Indices of the rejected announcements in the list of changes, ascending.
    pub at: Vec<usize>,
    /// Why the last of them was rejected: lack of room, or a quota.
    pub error: Option<E>,
}

impl<E> Default for Refusals<E> {
    fn default() -> Self {
        Self { at: Vec::new(), error: None }
    }
}

impl<E> Refusals<E> {
    /// These, of a list of `len` changes, and those of a list that follows it.
    #[must_use]
    pub fn and(mut self, len: usize, following: Self) -> Self {
        self.at.extend(following.at.iter().map(|at| len + at));
        self.error = following.error.or(self.error);
        self
    }
}

/// Applies changes by `apply`, but omits announcements that do not fit. The prefix of an omitted announcement has no
/// route afterwards, not even its previous one: after a replacement, the old next hop is no longer valid. `apply` must
/// apply all changes that it gets or none; `is_full` tells whether it rejected them for lack of room.
///
/// # Errors
/// Any other error of `apply`, or lack of room even for a withdrawal; the changes before it have been applied.
pub fn apply_fitting<K: Key, E>(
    changes: &[Change<K>],
    is_full: impl Fn(&E) -> bool,
    apply: impl FnMut(&[Change<K>]) -> Result<(), E>,
) -> Result<Refusals<E>, E> {
    let mut fitting = Fitting { is_full, apply, refusals: Refusals::default() };
    fitting.fit(changes, 0)?;
    Ok(fitting.refusals)
}

/// What the parts of a batch have in common.
struct Fitting<E, I, A> {
    is_full: I,
    apply: A,
    refusals: Refusals<E>,
}

impl<E, I: Fn(&E) -> bool, A> Fitting<E, I, A> {
    fn fit<K: Key>(&mut self, changes: &[Change<K>], first: usize) -> Result<(), E>
    where
        A: FnMut(&[Change<K>]) -> Result<(), E>,
    {
        let error = match (self.apply)(changes) {
            Err(error) if (self.is_full)(&error) => error,
            result => return result,
        };
        match changes {
            [] | [(_, None)] => return Err(error),
            [(prefix, Some(_))] => {
                let withdrawal: (Prefix<K>, _) = (*prefix, None);
                (self.apply)(&[withdrawal])?;
                self.refusals.at.push(first);
                self.refusals.error = Some(error);
            }
            _ => {
                let size = changes.len().div_ceil(PARTS);
                for (part, at) in changes.chunks(size).zip((first..).step_by(size)) {
                    self.fit(part, at)?;
                }
            }
        }
        Ok(())
    }
}

impl Dag {
    /// As [`Dag::apply`], but omits announcements that do not fit; see [`apply_fitting`]. If everything fits, readers
    /// see all changes at once; otherwise they see parts, in order.
    ///
    /// # Errors
    /// `UnknownNetwork`, `Width`. `Full` if there is no room even for the nodes that a withdrawal writes while readers
    /// still access old ones; the changes before that withdrawal have been applied.
    pub fn apply_fitting<K: Key>(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<Refusals, TableError> {
        apply_fitting(changes, TableError::is_full, |part| self.apply(vid, part))
    }

    /// The same for both tables of a network, one after the other. A table without changes need not exist. Indices of
    /// the second list follow those of the first.
    ///
    /// # Errors
    /// As [`Dag::apply_fitting`].
    pub fn apply_both_fitting(
        &mut self,
        vid: Vid,
        narrow: &[Change<u32>],
        wide: &[Change<u128>],
    ) -> Result<Refusals, TableError> {
        let first = if narrow.is_empty() { Refusals::default() } else { self.apply_fitting(vid, narrow)? };
        let second = if wide.is_empty() { Refusals::default() } else { self.apply_fitting(vid, wide)? };
        Ok(first.and(narrow.len(), second))
    }
}
