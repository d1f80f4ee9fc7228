//! Applies changes of which some may be rejected for lack of room: keeps what fits and reports the rest.

use super::{Change, Dag};
use crate::limits::TableError;
use crate::types::{Key, Vid};

/// Parts into which rejected changes are split: each level of splitting costs about as much as one attempt.
const PARTS: usize = 16;

/// The rejected changes of a batch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    /// Indices of the rejected announcements in the list of changes, ascending.
    pub at: Vec<usize>,
    /// Why the last of them was rejected: `Full` or `Quota`.
    pub error: Option<TableError>,
}

impl Dag {
    /// As [`Dag::apply`], but omits announcements that do not fit. The prefix of an omitted announcement has
    /// no route afterwards, not even its previous one: after a replacement, the old next hop is no longer
    /// valid. If everything fits, readers see all changes at once; otherwise they see parts, in order.
    ///
    /// # Errors
    /// `UnknownNetwork`. `Full` if there is no room even for the nodes that a withdrawal writes while readers
    /// still access old ones; the changes before that withdrawal have been applied.
    pub fn apply_fitting<K: Key>(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<Refusals, TableError> {
        let mut refusals = Refusals::default();
        self.fit(vid, changes, 0, &mut refusals)?;
        Ok(refusals)
    }

    fn fit<K: Key>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        first: usize,
        refusals: &mut Refusals,
    ) -> Result<(), TableError> {
        let error = match self.apply(vid, changes) {
            Err(error @ (TableError::Full { .. } | TableError::Quota { .. })) => error,
            result => return result,
        };
        match changes {
            [] | [(_, None)] => return Err(error),
            [(prefix, Some(_))] => {
                if self.route(vid, *prefix).is_some() {
                    self.apply(vid, &[(*prefix, None)])?;
                }
                refusals.at.push(first);
                refusals.error = Some(error);
            }
            _ => {
                let size = changes.len().div_ceil(PARTS);
                for (part, at) in changes.chunks(size).zip((first..).step_by(size)) {
                    self.fit(vid, part, at, refusals)?;
                }
            }
        }
        Ok(())
    }
}
