//! Desired state of where networks run: the node's card, and which substrate a network is to be on.

use schemars::JsonSchema;
use serde::Serialize;

use crate::schema;
use crate::types::Name;

/// The card of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Card {
    /// Its simulated twin: the card's own logic, run by the daemon cycle by cycle.
    pub twin: Twin,
    /// The node's ports that are the card's: the first is its MAC port 0. Networks on other ports run in software.
    #[schemars(schema_with = "schema::card_ports")]
    pub ports: Vec<Name>,
    /// Ports of the node that stand beside those, in their order, on the same segments: networks in software have their
    /// neighbours send there (multi-receiver). Left out, all frames enter by the card (single-receiver).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::card_ports")]
    pub nics: Vec<Name>,
}

/// A simulated card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Twin {
    /// Name of the image that it runs, such as `default` (`make images`).
    #[schemars(schema_with = "schema::of::<Name>")]
    pub image: Name,
}

/// Where a network is to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Placement {
    /// On the card if the node has one and the network fits, else in software.
    #[default]
    Auto,
    /// On the card.
    Card,
    /// In software.
    Soft,
}

impl Placement {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Card, Self::Soft];

    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Card => "card",
            Self::Soft => "soft",
        }
    }

    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Auto
    }
}
