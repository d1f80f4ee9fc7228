//! A plane's own tables (`tcam`) and a copy of their contents, so that only rows that differ are written.

use crate::device::Device;
use crate::error::CardError;
use crate::plan::PlaneRows;
use crate::registers::Registers;
use crate::rows::Row;

/// A plane.
pub struct Plane {
    index: u32,
    /// Contents; `None`: unknown, as on a card that was just taken over.
    rows: Option<PlaneRows>,
}

impl Plane {
    /// A plane whose contents are unknown.
    pub fn new(index: u32) -> Self {
        Self { index, rows: None }
    }

    /// Whether `rows` differ from the plane's contents in next hops at most.
    pub fn differs_in_hops_only(&self, rows: &PlaneRows) -> bool {
        self.rows.as_ref().is_some_and(|held| held.routes == rows.routes && held.locals == rows.locals)
    }

    /// Makes the plane hold `rows`.
    pub fn write<R: Registers>(&mut self, device: &mut Device<R>, rows: PlaneRows) -> Result<(), CardError> {
        // If a write fails, the contents stay unknown.
        let held = self.rows.take();
        let held = held.as_ref();
        let description = device.description();
        let (hops, locals, routes) = (description.hop_rows, description.local_rows, description.route_rows);
        self.fill(device, hops, held.map(|held| &held.hops[..]), &rows.hops)?;
        self.fill(device, locals, held.map(|held| &held.locals[..]), &rows.locals)?;
        self.fill(device, routes, held.map(|held| &held.routes[..]), &rows.routes)?;
        self.rows = Some(rows);
        Ok(())
    }

    /// Writes `count` rows that differ; those beyond the list are empty.
    fn fill<R: Registers, T: Row + Copy + Default + PartialEq>(
        &self,
        device: &mut Device<R>,
        count: u32,
        held: Option<&[T]>,
        rows: &[T],
    ) -> Result<(), CardError> {
        for index in 0..count {
            let row = rows.get(index as usize).copied().unwrap_or_default();
            let same = held.is_some_and(|held| held.get(index as usize).copied().unwrap_or_default() == row);
            if !same {
                device.write_row(self.index * count + index, &row)?;
            }
        }
        Ok(())
    }
}
