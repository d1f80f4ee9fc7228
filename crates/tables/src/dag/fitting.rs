//! Changes of which a part may be refused for room: what fits is taken, and the rest told.

use super::{Change, Dag};
use crate::limits::TableError;
use crate::types::{Key, Vid};

/// Parts that refused changes are tried in: each level of parts costs about as much as the changes did together.
const PARTS: usize = 16;

/// What was not taken of some changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    /// Places of the refused announcements in the list of changes, rising.
    pub at: Vec<usize>,
    /// Why the last of them was refused: `Full` or `Quota`.
    pub error: Option<TableError>,
}

impl<K: Key> Dag<K> {
    /// [`Dag::apply`], but announcements that do not fit are left out. A prefix of such a one has no route afterwards, not
    /// the one that it had before: whoever replaces a route no longer stands for the old next hop. When all fit, readers see
    /// all at once; else in parts, in order.
    ///
    /// # Errors
    /// `UnknownNetwork`, or `Full` when not even a withdrawal finds room for the nodes that it makes while readers hold on
    /// to old ones; changes before that one have been made.
    pub fn apply_fitting(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<Refusals, TableError> {
        let mut refusals = Refusals::default();
        self.fit(vid, changes, 0, &mut refusals)?;
        Ok(refusals)
    }

    fn fit(
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
