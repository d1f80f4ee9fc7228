//! Desired state of placement: the node's card, and the substrate of each network.

use std::fmt::{self, Display};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::schema;
use crate::types::Name;

/// The card of a node: simulated, or a real card in a PCI slot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Card {
    /// The card is simulated: the daemon runs the card's own logic cycle by cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<Twin>,
    /// Instead of `twin`: the PCI address of a real card.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::pci_address")]
    pub pci: Option<PciAddress>,
    /// The node's ports that belong to the card; the first is its MAC port 0. Networks on other ports run in
    /// software.
    #[schemars(schema_with = "schema::card_ports")]
    pub ports: Vec<Name>,
    /// Ports of the node that are on the same segments as the card's ports, in the same order. Neighbours of
    /// networks in software send there (multi-receiver). By default all frames enter through the card
    /// (single-receiver).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::card_ports")]
    pub nics: Vec<Name>,
    /// `true`: no network runs on the card, for maintenance (`hueplane drain card`). `false` ends it. An applied
    /// document without this field leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<bool>")]
    pub drained: Option<bool>,
}

impl Card {
    /// Whether no network may run on it.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.drained == Some(true)
    }
}

/// Address of a PCI function as `lspci -D` shows it: domain, bus, device, function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PciAddress {
    domain: u16,
    bus: u8,
    device: u8,
    function: u8,
}

/// Description of the text form of a [`PciAddress`].
pub(crate) const PCI_ADDRESS: &str = "a PCI address such as \"0000:3b:00.0\"";

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        let hex = |text: &str, digits: usize| {
            let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            u16::from_str_radix(text, 16).ok().filter(|_| right)
        };
        let parse = || {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (device, function) = rest.split_once('.')?;
            let small = |number: u16, max: u8| u8::try_from(number).ok().filter(|number| *number <= max);
            Some(Self {
                domain: hex(domain, 4)?,
                bus: small(hex(bus, 2)?, u8::MAX)?,
                device: small(hex(device, 2)?, 31)?,
                function: small(hex(function, 1)?, 7)?,
            })
        };
        parse().ok_or(PciAddressError)
    }
}

/// The text is not a PCI address (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {PCI_ADDRESS}")]
pub struct PciAddressError;

impl Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A simulated card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Twin {
    /// Name of the image that it runs, such as `default` (`make images`).
    #[schemars(schema_with = "schema::of::<Name>")]
    pub image: Name,
}

/// Where a network runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Placement {
    /// On the card if the node has one and the network fits; otherwise in software.
    #[default]
    Auto,
    /// On the card.
    Card,
    /// In software.
    Soft,
}

impl Placement {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Card, Self::Soft];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Card => "card",
            Self::Soft => "soft",
        }
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Auto
    }
}
