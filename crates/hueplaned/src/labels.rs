//! What the daemon and the routing daemon of a network of kind `rofl` tell each other: lines of JSON over an abstract Unix
//! socket in the network's namespace.
//!
//! The socket belongs to the namespace, so whoever reaches it is in this network: it names no network, and changes no other
//! one. Source: ADR 0071.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::time::Duration;

use hue_intent::{Digits, FlatLabel, LabelPlace};
use serde::{Deserialize, Serialize};

/// How long labels stay after the routing daemon is gone without having taken them back.
pub const HOLD: Duration = Duration::from_secs(60);
/// Longest line: as many labels as a network may have.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Name of the abstract socket.
const SOCKET: &str = "hueplane-labels";

/// Address of the socket, in each namespace another one.
///
/// # Errors
/// Never, for this name.
pub fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(SOCKET)
}

/// A line of the daemon.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FromDaemon {
    /// The network, at first and when its document has changed.
    Network(Offer),
    /// The labels are entries.
    Applied {
        /// Entries of the network, those of its document included.
        entries: usize,
    },
    /// The labels were refused; those before stay.
    Refused {
        /// Why.
        error: String,
    },
}

/// What a routing daemon must know of its network.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Offer {
    /// Its name.
    pub network: String,
    /// Length of its labels.
    pub label_bits: u8,
    /// Its virtual ports.
    pub ports: Vec<OfferedPort>,
    /// The labels of its document.
    pub labels: Vec<LabelRow>,
}

/// A virtual port.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct OfferedPort {
    /// Its name.
    pub name: String,
    /// Its interface in the namespace.
    pub interface: String,
    /// Its MAC address.
    pub mac: String,
    /// Its MTU, bytes.
    pub mtu: u16,
}

/// All labels that the routing daemon has learnt: a line that replaces the one before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// The labels.
    pub labels: Vec<LabelRow>,
}

/// A label and its place, as in documents.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LabelRow {
    /// The label.
    pub label: String,
    /// The virtual port behind which it is, unless it is the router's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// With `port`: the MAC address there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<String>,
    /// With `port`: whether that is the host that has the label.
    #[serde(default)]
    pub resident: bool,
}

impl From<&FlatLabel> for LabelRow {
    fn from(entry: &FlatLabel) -> Self {
        let label = entry.label.to_string();
        match &entry.place {
            LabelPlace::Own => Self { label, port: None, neighbour: None, resident: false },
            LabelPlace::At { port, neighbour, resident } => Self {
                label,
                port: Some(port.to_string()),
                neighbour: Some(neighbour.to_string()),
                resident: *resident,
            },
        }
    }
}

impl LabelRow {
    /// The label and its place.
    ///
    /// # Errors
    /// What is wrong.
    pub fn entry(&self) -> Result<FlatLabel, String> {
        let label: Digits = self.label.parse().map_err(|()| {
            format!("label {:?}: expected hexadecimal digits, such as 0x0a000001", self.label)
        })?;
        let place = match (&self.port, &self.neighbour) {
            (None, None) if !self.resident => LabelPlace::Own,
            (Some(port), Some(neighbour)) => LabelPlace::At {
                port: port
                    .parse()
                    .map_err(|error| format!("label {}: port {port:?}: {error}", self.label))?,
                neighbour: neighbour.parse().ok().filter(|mac: &hue_wire::Mac| mac.is_unicast()).ok_or_else(
                    || {
                        format!(
                            "label {}: neighbour {neighbour:?}: expected the MAC address of one interface",
                            self.label
                        )
                    },
                )?,
                resident: self.resident,
            },
            _ => {
                return Err(format!(
                    "label {}: expected port and neighbour, or none of them and resident: false",
                    self.label
                ));
            }
        };
        Ok(FlatLabel { label, place })
    }
}
