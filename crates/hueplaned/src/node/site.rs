//! Where a port is opened: in the packet memory of a thread of the daemon, or by a card in a process of its own.

use hue_ports::{OpenOptions, Opened, Region, open_on};

use super::apart::Opener;

/// See the head of this file.
#[derive(Clone)]
pub enum Site {
    /// In this memory.
    Memory(Region),
    /// In the card's process.
    Card(Opener),
}

impl Site {
    /// Opens a port of this site.
    ///
    /// # Errors
    /// Why it cannot be opened, as a text.
    pub fn open(&self, interface: &str, options: &OpenOptions) -> Result<Opened, String> {
        match self {
            Self::Memory(region) => open_on(interface, options, region).map_err(|error| error.to_string()),
            Self::Card(opener) => opener.open(interface, options.clone()),
        }
    }

    /// The memory, if it is the daemon's.
    pub fn memory(&self) -> Option<&Region> {
        match self {
            Self::Memory(region) => Some(region),
            Self::Card(_) => None,
        }
    }

    /// Whether a port that was opened at the other site can be used at this one.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Memory(one), Self::Memory(other)) => one.is(other),
            (Self::Card(one), Self::Card(other)) => one.is(other),
            _ => false,
        }
    }
}
