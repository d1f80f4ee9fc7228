//! What documents say about networks of kind `rofl`: which labels are where.
//!
//! Flow: tree → **this reader** → typed values → `validate/rofl.rs` compares labels with the network's length of labels. Units:
//! labels as 128 bits, left-aligned.

use hue_wire::Mac;
use schemars::JsonSchema;
use serde::Serialize;

use crate::decode::Cursor;
use crate::document::{MAC, optional, unicast};
use crate::extract::Digits;
use crate::schema;
use crate::types::{Name, is_false};

const LABEL: &str = "a label in hexadecimal digits, such as 0x0a000001";
const PORT: &str = "the name of a virtual port";

/// Where a label is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelPlace {
    /// It is the router's own.
    Own,
    /// Behind a virtual port.
    At {
        /// Which one.
        port: Name,
        /// The MAC address there that takes its packets.
        neighbour: Mac,
        /// Whether the neighbour is the host that has the label; otherwise it is a router, which knows more.
        resident: bool,
    },
}

/// A label of a network of kind `rofl`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "FlatLabelText")]
#[schemars(with = "FlatLabelText", rename = "FlatLabel")]
pub struct FlatLabel {
    /// The label.
    pub label: Digits,
    /// Where it is.
    pub place: LabelPlace,
}

/// A label: behind a virtual port (`port` and `neighbour`), or the router's own (`own`).
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "FlatLabel", transform = schema::at_port_or_own)]
pub(crate) struct FlatLabelText {
    /// The label: hexadecimal digits, as many as the network's labels have.
    #[schemars(schema_with = "schema::flat_label")]
    label: String,
    /// Virtual port behind which it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
    /// With `port`: MAC address of the host or router there to which its packets are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mac")]
    neighbour: Option<String>,
    /// With `port`: whether the neighbour is the host that has the label, so that it takes no packets for other labels.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    resident: bool,
    /// Whether it is the router's own: its packets go to the network's namespace.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    own: bool,
}

impl From<FlatLabel> for FlatLabelText {
    fn from(entry: FlatLabel) -> Self {
        let label = entry.label.to_string();
        match entry.place {
            LabelPlace::Own => Self { label, port: None, neighbour: None, resident: false, own: true },
            LabelPlace::At { port, neighbour, resident } => {
                let neighbour = Some(neighbour.to_string());
                Self { label, port: Some(port), neighbour, resident, own: false }
            }
        }
    }
}

/// Reads a label and its place.
pub(crate) fn entry(at: &Cursor<'_>) -> Option<FlatLabel> {
    at.mapping(&["label", "port", "neighbour", "resident", "own"])?;
    let label = at.required("label", LABEL).and_then(|at| {
        let found = at.spelling().and_then(|text| text.parse::<Digits>().ok());
        if found.is_none() {
            at.unexpected(LABEL);
        }
        found
    });
    let place = place(at);
    Some(FlatLabel { label: label?, place: place? })
}

fn place(at: &Cursor<'_>) -> Option<LabelPlace> {
    let own = optional(at, "own", Cursor::flag)?.unwrap_or_default();
    if own {
        for name in ["port", "neighbour", "resident"] {
            if let Some(field) = at.field(name) {
                field.fault(format!("{name} of an own label"), "none, or a label without own", None);
                return None;
            }
        }
        return Some(LabelPlace::Own);
    }
    let port = at.required("port", PORT).and_then(|at| at.parse(PORT));
    let neighbour = at.required("neighbour", MAC).and_then(|at| unicast(&at));
    let resident = optional(at, "resident", Cursor::flag);
    Some(LabelPlace::At { port: port?, neighbour: neighbour?, resident: resident?.unwrap_or_default() })
}
