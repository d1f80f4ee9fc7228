//! Handles of TAPs: of each, a second one to switch its carrier, and the first one while the daemon before reads it.
//!
//! Flow: a network's namespace is set up → TAPs → workers, and **[`Taps`]** → carriers, on behalf of
//! [`networks`](super::networks). Invariant: a TAP is read by this daemon's workers, by the daemon before, or by nobody.

use std::collections::BTreeMap;

use hue_ports::{PortError, Tap};

/// See the head of this file. Networks are named, and their TAPs are in the order of virtual ports.
#[derive(Default)]
pub struct Taps {
    carriers: BTreeMap<String, Vec<Tap>>,
    unread: BTreeMap<String, Vec<(u16, Tap)>>,
}

impl Taps {
    /// A network has no TAPs any more.
    pub fn remove(&mut self, network: &str) {
        self.carriers.remove(network);
        self.unread.remove(network);
    }

    /// Keeps a second handle of a network's next TAP.
    pub fn add(&mut self, network: &str, handle: Tap) {
        self.carriers.entry(network.to_owned()).or_default().push(handle);
    }

    /// Keeps a TAP that the daemon before reads.
    pub fn add_unread(&mut self, network: &str, vport: u16, tap: Tap) {
        self.unread.entry(network.to_owned()).or_default().push((vport, tap));
    }

    /// The TAPs that nobody reads any more.
    pub fn take_unread(&mut self) -> BTreeMap<String, Vec<(u16, Tap)>> {
        std::mem::take(&mut self.unread)
    }

    /// Number of a network's TAPs.
    pub fn count(&self, network: &str) -> usize {
        self.carriers.get(network).map_or(0, Vec::len)
    }

    /// Tells the kernel whether a network's TAP has a link. Returns whether there is such a TAP.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_carrier(&self, network: &str, vport: usize, on: bool) -> Result<bool, PortError> {
        match self.carriers.get(network).and_then(|taps| taps.get(vport)) {
            Some(tap) => tap.set_carrier(on).map(|()| true),
            None => Ok(false),
        }
    }
}
