//! Changes of both tables of a network with keys of both widths: all of them or none.
//!
//! Both tables are compiled before either takes effect. Room and quota are checked for the sum, so that the order of
//! the widths does not matter, and a rejected change is undone without the need for any room.

use super::{Change, Dag, NoSpace, Refused, TOP, Undo, announces, prune_withdrawn, set_routes};
use crate::layout::Ref;
use crate::limits::TableError;
use crate::source::Source;
use crate::types::{NextHop, Vid};

/// A network's tables of both widths.
type Both<'a> = (&'a mut Source, &'a mut Source);

impl Dag {
    /// As [`Dag::apply`], for changes of routes of both widths. Each table changes atomically, the one with short keys
    /// first.
    ///
    /// # Errors
    /// As [`Dag::apply`]. Nothing has changed then, in either table.
    pub fn apply_both(
        &mut self,
        vid: Vid,
        narrow: &[Change<u32>],
        wide: &[Change<u128>],
    ) -> Result<(), TableError> {
        if wide.is_empty() {
            return self.apply(vid, narrow);
        }
        if narrow.is_empty() {
            return self.apply(vid, wide);
        }
        self.collect();
        let tables = self.networks.get_mut(&vid).ok_or(TableError::UnknownNetwork(vid))?;
        let mut sources = std::mem::take(&mut tables.sources);
        let result = match &mut sources {
            [Some(short), Some(long)] => self.change_both(vid, (short, long), narrow, wide),
            [short, _] => {
                let (bits, given) =
                    if short.is_some() { (u32::BITS, u128::BITS) } else { (u128::BITS, u32::BITS) };
                Err(Refused::By(TableError::Width { vid, bits: bits as u8, given: given as u8 }))
            }
        };
        if let Some(tables) = self.networks.get_mut(&vid) {
            tables.sources = sources;
        }
        self.finish(vid, result)
    }

    /// As [`Dag::change`], for both tables.
    fn change_both(
        &mut self,
        vid: Vid,
        (short, long): Both<'_>,
        narrow: &[Change<u32>],
        wide: &[Change<u128>],
    ) -> Result<Vec<Ref>, Refused<TableError>> {
        let ((before4, differs4), (before6, differs6)) = (set_routes(short, narrow), set_routes(long, wide));
        if !differs4 && !differs6 {
            return Ok(Vec::new());
        }
        let (mut undo4, mut undo6) = (Vec::new(), Vec::new());
        let size = self.size(vid);
        let compiled = self.compile_both(vid, (short, long), (&mut undo4, &mut undo6));
        let compiled = compiled.map_err(|NoSpace| Refused::NoSpace).and_then(|tops| {
            let undo = undo4.iter().chain(&undo6).map(|undo: &Undo| undo.before.compiled);
            let replaced: Vec<Ref> = undo.chain([short.compiled, long.compiled]).collect();
            let announces = announces(narrow) || announces(wide);
            match if announces { self.has_room(vid, &replaced, size) } else { Ok(()) } {
                Ok(()) => Ok((tops, replaced)),
                Err(refused) => {
                    tops.into_iter().for_each(|top| self.release(vid, top));
                    Err(refused)
                }
            }
        });
        match compiled {
            Ok((tops, replaced)) => {
                [short.compiled, long.compiled] = tops;
                self.publish::<u32>(vid, short.compiled);
                self.publish::<u128>(vid, long.compiled);
                prune_withdrawn(short, narrow);
                prune_withdrawn(long, wide);
                Ok(replaced)
            }
            Err(refused) => {
                self.restore(vid, long, undo6, &before6);
                self.restore(vid, short, undo4, &before4);
                Err(refused)
            }
        }
    }

    /// Compiles both sources; returns their top nodes.
    fn compile_both(
        &mut self,
        vid: Vid,
        (short, long): Both<'_>,
        (undo4, undo6): (&mut Vec<Undo>, &mut Vec<Undo>),
    ) -> Result<[Ref; 2], NoSpace> {
        let first = self.compile(vid, short, TOP, NextHop::NONE_WORD, undo4)?;
        match self.compile(vid, long, TOP, NextHop::NONE_WORD, undo6) {
            Ok(second) => Ok([first, second]),
            Err(NoSpace) => {
                self.release(vid, first);
                Err(NoSpace)
            }
        }
    }
}
