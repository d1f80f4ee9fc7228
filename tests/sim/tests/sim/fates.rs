//! What may become of each frame of a history, and what became of it.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// See the head of this file. Frames have numbers that grow.
pub struct Fates<F> {
    /// Of the frames that have not ended: what may become of them.
    open: BTreeMap<u32, Vec<F>>,
    /// By port of departure and port of arrival: the latest frame.
    latest: BTreeMap<(usize, usize), u32>,
}

impl<F> Default for Fates<F> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), latest: BTreeMap::new() }
    }
}

impl<F: PartialEq + Debug> Fates<F> {
    /// One of these becomes of a frame.
    pub fn open(&mut self, number: u32, fates: Vec<F>) {
        self.open.insert(number, fates);
    }

    /// This became of a frame.
    pub fn end(&mut self, number: u32, fate: &F) -> Result<(), String> {
        let fates = self.open.remove(&number).ok_or(format!("{number} leaves twice"))?;
        if fates.contains(fate) { Ok(()) } else { Err(format!("{number}: {fate:02x?}, not {fates:02x?}")) }
    }

    /// A frame that arrived at one port left by another: behind those that took the same way before.
    pub fn left(&mut self, number: u32, from: usize, to: usize) -> Result<(), String> {
        let before = self.latest.insert((to, from), number).unwrap_or(0);
        if before < number { Ok(()) } else { Err(format!("{number} comes after {before}")) }
    }

    /// Everything has ended: what is open may be dropped.
    pub fn all_ended(&mut self, dropped: &F) -> Result<(), String> {
        let lost = self.open.iter().find(|(_, fates)| !fates.contains(dropped));
        if let Some((number, fates)) = lost {
            return Err(format!("{number} is lost: {fates:02x?}"));
        }
        self.open.clear();
        Ok(())
    }
}
