//! What documents say about networks of kind `mpls`: what happens to the packets of each label.
//!
//! Flow: tree → **these readers** → typed values → `validate/mpls.rs` compares them with each other and with the ports.

use hue_planes::LABELS_MAX;
use hue_wire::Mac;
use hue_wire::mpls::{IMPLICIT_NULL, IPV4_EXPLICIT_NULL, IPV6_EXPLICIT_NULL, LABEL_MAX, LABEL_MIN};
use schemars::JsonSchema;
use serde::Serialize;

use crate::decode::Cursor;
use crate::document::{MAC, items, optional, unicast};
use crate::extract::{DROP, PUNT};
use crate::schema;
use crate::types::{Name, is_false};

const PORT: &str = "the name of a virtual port";
const PUSH: &str = "a list of labels, the last one on top, such as [300]";

/// What happens to the packets of a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelAction {
    /// They are dropped.
    Drop,
    /// They go to the network's namespace.
    Punt,
    /// They are sent.
    Forward {
        /// By which virtual port.
        port: Name,
        /// To which neighbour there.
        neighbour: Mac,
        /// With which labels in place of theirs, from the lowest to the top; with none of them it is popped.
        labels: Vec<u32>,
    },
}

/// An entry of a network of kind `mpls`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "LabelText")]
#[schemars(with = "LabelText", rename = "LabelEntry")]
pub struct LabelEntry {
    /// The label on top of the stack.
    pub label: u32,
    /// What happens to its packets.
    pub action: LabelAction,
}

/// What happens to packets with a label: `swap`, `push` or `pop` with a neighbour at a virtual port, or another `action`.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "LabelEntry", transform = schema::label_action)]
pub(crate) struct LabelText {
    /// The label on top of the stack of a packet that arrives.
    #[schemars(schema_with = "schema::label")]
    label: u32,
    /// Label that replaces it. 0 and 2 are the explicit null labels of IPv4 and IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::label_out")]
    swap: Option<u32>,
    /// Labels that are pushed on top of it, after `swap`; the last one is on top.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::labels_pushed")]
    push: Vec<u32>,
    /// Whether it is removed. If it was the last one, the neighbour gets the IP packet.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pop: bool,
    /// Virtual port by which the packets are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
    /// With `port`: MAC address of the neighbour to which they are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mac")]
    neighbour: Option<String>,
    /// What else happens to the packets: they are dropped, or go to the network's namespace (`punt`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::entry_action")]
    action: Option<&'static str>,
}

impl From<LabelEntry> for LabelText {
    fn from(LabelEntry { label, action }: LabelEntry) -> Self {
        let text = Self {
            label,
            swap: None,
            push: Vec::new(),
            pop: false,
            port: None,
            neighbour: None,
            action: None,
        };
        match action {
            LabelAction::Drop => Self { action: Some(DROP), ..text },
            LabelAction::Punt => Self { action: Some(PUNT), ..text },
            LabelAction::Forward { port, neighbour, labels } => {
                let text = Self { port: Some(port), neighbour: Some(neighbour.to_string()), ..text };
                match labels.split_first() {
                    None => Self { pop: true, ..text },
                    Some((lowest, pushed)) => {
                        let stays = *lowest == label && !pushed.is_empty();
                        Self { swap: (!stays).then_some(*lowest), push: pushed.to_vec(), ..text }
                    }
                }
            }
        }
    }
}

/// Reads an entry.
pub(crate) fn entry(at: &Cursor<'_>) -> Option<LabelEntry> {
    at.mapping(&["label", "swap", "push", "pop", "port", "neighbour", "action"])?;
    let label =
        at.required("label", "a label, such as 100").and_then(|at| at.number(LABEL_MIN, LABEL_MAX, ""));
    let action = match (at.field("port"), at.field("action")) {
        (Some(_), Some(action)) => {
            action.fault("both \"port\" and \"action\"", "one of them", None);
            return None;
        }
        (None, None) => {
            at.fault("neither \"port\" nor \"action\"", "one of them", None);
            return None;
        }
        (None, Some(action)) => other_action(at, &action)?,
        (Some(port), None) => forward(at, &port, label)?,
    };
    Some(LabelEntry { label: label?, action })
}

/// An action that sends nothing.
fn other_action(at: &Cursor<'_>, action: &Cursor<'_>) -> Option<LabelAction> {
    let word = action.word(&[DROP, PUNT])?;
    for name in ["swap", "push", "pop", "neighbour"] {
        if let Some(field) = at.field(name) {
            let expected = "none, or port instead of action";
            field.fault(format!("{name} with action {word}"), expected, None);
            return None;
        }
    }
    Some(if word == DROP { LabelAction::Drop } else { LabelAction::Punt })
}

fn forward(at: &Cursor<'_>, port: &Cursor<'_>, label: Option<u32>) -> Option<LabelAction> {
    let port = port.parse(PORT);
    let neighbour = at.required("neighbour", MAC).and_then(|at| unicast(&at));
    let swap = optional(at, "swap", label_out);
    let push = optional(at, "push", |at| {
        let labels = items(at.clone(), LABELS_MAX - 1, PUSH, label_out).take()?;
        if labels.is_empty() {
            at.fault("no labels", PUSH, None);
            return None;
        }
        Some(labels)
    });
    let pop = optional(at, "pop", |at| at.flag());
    let (swap, push, pop) = (swap?, push?.unwrap_or_default(), pop?.unwrap_or_default());
    let labels = match (pop, swap, push.is_empty()) {
        (true, None, true) => Vec::new(),
        (true, ..) => {
            let at = at.field_or_self("pop");
            at.fault("pop with swap or push", "one of them", Some("a label is replaced by swap".to_owned()));
            return None;
        }
        (false, None, true) => {
            at.fault("none of swap, push and pop", "what happens to the label", None);
            return None;
        }
        (false, lowest, _) => [lowest.or(label)?].into_iter().chain(push).collect(),
    };
    Some(LabelAction::Forward { port: port?, neighbour: neighbour?, labels })
}

/// A label that packets can leave with.
fn label_out(at: &Cursor<'_>) -> Option<u32> {
    let label = at.number(0, LABEL_MAX, "")?;
    if label >= LABEL_MIN || label == IPV4_EXPLICIT_NULL || label == IPV6_EXPLICIT_NULL {
        return Some(label);
    }
    let hint = (label == IMPLICIT_NULL).then(|| "implicit null means pop: true".to_owned());
    let expected = format!("0 or 2 (explicit null), or {LABEL_MIN} to {LABEL_MAX}");
    at.fault(label.to_string(), expected, hint);
    None
}
