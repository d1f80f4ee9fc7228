//! What documents say about networks of kind `extract`: the bytes of the key, and the entries.
//!
//! Flow: tree → **these readers** → typed values → `validate/extract.rs` compares entries with the key. Units: offsets and
//! bytes of a frame from its destination MAC address; values and masks as 128 bits of a key, the first byte highest.

use std::fmt;
use std::str::FromStr;

use hue_planes::extract::{LANES_MAX, Lane, OFFSET_MAX, Settings};
use hue_tables::Pattern;
use hue_wire::Mac;
use schemars::JsonSchema;
use serde::Serialize;

use crate::decode::Cursor;
use crate::document::{MAC, items, optional, unicast};
use crate::schema;
use crate::types::Name;

/// What is expected as a key.
pub(crate) const KEY: &str = "a list of bytes of a frame, such as {offset: 12, bytes: 2}";
const MATCH: &str = "any, or hexadecimal digits, two for each byte of plane.key, such as 0x0800; with /BITS for the first bits only";
const PORT: &str = "the name of a virtual port";

/// Hexadecimal digits of some bytes: the highest of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digits {
    /// The bits, the first byte highest.
    pub bits: u128,
    /// How many bytes.
    pub bytes: usize,
}

impl FromStr for Digits {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix("0x").ok_or(())?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes = digits.len() / 2;
        if !is_hex || digits.len() % 2 != 0 || !(1..=LANES_MAX).contains(&bytes) {
            return Err(());
        }
        let value = u128::from_str_radix(digits, 16).map_err(drop)?;
        Ok(Self { bits: value << (u128::BITS as usize - 4 * digits.len()), bytes })
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hue_planes::extract::digits(self.bits, self.bytes))
    }
}

/// Which frames an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matching {
    /// All.
    Any,
    /// Those whose key has this value.
    Value(Digits),
    /// Those whose key begins with this many bits of the value.
    First(Digits, u8),
    /// Those whose key has the value's bits where the mask has some.
    Masked(Digits, Digits),
}

/// What happens to the frames of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryAction {
    /// They are dropped.
    Drop,
    /// They go to the network's namespace.
    Punt,
    /// They are sent.
    Forward {
        /// By which virtual port.
        port: Name,
        /// With which destination MAC address, if not their own.
        destination: Option<Mac>,
        /// With which source MAC address, if not their own.
        source: Option<Mac>,
    },
}

/// An entry of a network of kind `extract`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "EntryText")]
#[schemars(with = "EntryText", rename = "Entry")]
pub struct Entry {
    /// Which frames it is for.
    pub matching: Matching,
    /// What happens to them.
    pub action: EntryAction,
}

impl Entry {
    /// Its pattern of keys.
    #[must_use]
    pub fn pattern(&self, key: &Settings) -> Pattern {
        match self.matching {
            Matching::Any => Pattern::ANY,
            Matching::Value(value) => Pattern::new(value.bits, key.mask()),
            Matching::First(value, len) => Pattern::new(value.bits, key.prefix_mask(len.into())),
            Matching::Masked(value, mask) => Pattern::new(value.bits, mask.bits & key.mask()),
        }
    }
}

/// An entry: which frames it is for, and either the virtual port by which they are sent (`port`) or another `action`.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Entry", transform = schema::port_or_action)]
pub(crate) struct EntryText {
    /// Value of the key: `any`, or hexadecimal digits, two for each byte of `plane.key`. With `/BITS`, only the first bits of
    /// the key are compared.
    #[serde(rename = "match")]
    #[schemars(schema_with = "schema::entry_match")]
    value: String,
    /// Which bits of the key are compared; by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::digits")]
    mask: Option<String>,
    /// Virtual port by which the frames are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
    /// With `port`: destination MAC address that the frames get; by default they keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mac")]
    destination: Option<String>,
    /// With `port`: source MAC address that the frames get; by default they keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mac")]
    source: Option<String>,
    /// What else happens to the frames: they are dropped, or go to the network's namespace (`punt`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::entry_action")]
    action: Option<&'static str>,
}

impl From<Entry> for EntryText {
    fn from(entry: Entry) -> Self {
        let (value, mask) = match entry.matching {
            Matching::Any => ("any".to_owned(), None),
            Matching::Value(value) => (value.to_string(), None),
            Matching::First(value, len) => (format!("{value}/{len}"), None),
            Matching::Masked(value, mask) => (value.to_string(), Some(mask.to_string())),
        };
        let text = Self { value, mask, port: None, destination: None, source: None, action: None };
        let mac = |mac: Option<Mac>| mac.map(|mac| mac.to_string());
        match entry.action {
            EntryAction::Drop => Self { action: Some(DROP), ..text },
            EntryAction::Punt => Self { action: Some(PUNT), ..text },
            EntryAction::Forward { port, destination, source } => {
                Self { port: Some(port), destination: mac(destination), source: mac(source), ..text }
            }
        }
    }
}

pub(crate) const DROP: &str = "drop";
pub(crate) const PUNT: &str = "punt";

/// Bytes of a frame that follow each other in the key, as documents have them.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "KeyPart")]
pub(crate) struct KeyPart {
    /// Which byte of the frame is the first one; the destination MAC address begins at 0.
    #[schemars(schema_with = "schema::key_offset")]
    offset: u8,
    /// How many bytes.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(default = "one", schema_with = "schema::key_bytes")]
    bytes: u8,
    /// Which of their bits, in hexadecimal digits, two for each byte; by default all. Each byte has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::digits")]
    mask: Option<String>,
}

const fn is_one(bytes: &u8) -> bool {
    *bytes == 1
}

const fn one() -> u8 {
    1
}

/// A key as documents have it: whole bytes that follow each other together, each byte with a mask by itself.
pub(crate) fn parts(key: &Settings) -> Vec<KeyPart> {
    let mut parts: Vec<KeyPart> = Vec::new();
    for Lane { offset, mask } in key.lanes() {
        let whole = mask == u8::MAX;
        match parts.last_mut() {
            Some(last) if whole && last.mask.is_none() && last.offset + last.bytes == offset => {
                last.bytes += 1
            }
            _ => parts.push(KeyPart { offset, bytes: 1, mask: (!whole).then(|| format!("0x{mask:02x}")) }),
        }
    }
    parts
}

/// Reads a key.
pub(crate) fn key(at: &Cursor<'_>) -> Option<Settings> {
    let parts = items(at.clone(), LANES_MAX, KEY, part).take()?;
    let lanes: Vec<Lane> = parts.iter().flatten().copied().collect();
    if lanes.is_empty() {
        at.fault("no bytes", KEY, None);
        return None;
    }
    if lanes.len() > LANES_MAX {
        let bits = u128::BITS;
        at.fault(
            format!("{} bytes", lanes.len()),
            format!("at most {LANES_MAX}, which are {bits} bits"),
            None,
        );
        return None;
    }
    let (mut seen, mut sound) = ([false; OFFSET_MAX as usize + 1], true);
    for (index, part) in parts.iter().enumerate() {
        for Lane { offset, .. } in part {
            let Some(seen) = seen.get_mut(usize::from(*offset)) else { continue };
            if std::mem::replace(seen, true) {
                let hint = "one mask can have all bits of a byte".to_owned();
                let place = at.entry_or_self(index).field_or_self("offset");
                place.fault(format!("byte {offset} twice"), "each byte once", Some(hint));
                sound = false;
            }
        }
    }
    Settings::new(&lanes).ok().filter(|_| sound)
}

/// Reads a part of a key.
fn part(at: &Cursor<'_>) -> Option<Vec<Lane>> {
    at.mapping(&["offset", "bytes", "mask"])?;
    let offset = at.required("offset", "the place of a byte in a frame");
    let offset = offset.and_then(|at| at.number(0, OFFSET_MAX, ""));
    let bytes = optional(at, "bytes", |at| at.number(1, LANES_MAX as u8, "")).map(|bytes| bytes.unwrap_or(1));
    let mask = optional(at, "mask", |at| digits(at, usize::from(bytes?)));
    let (first, bytes, mask) = (offset?, bytes?, mask?);
    let last = first + (bytes - 1);
    if last > OFFSET_MAX {
        let found = format!("bytes {first} to {last}");
        at.field_or_self("bytes").fault(found, format!("bytes 0 to {OFFSET_MAX}"), None);
        return None;
    }
    let masks = mask.map_or([u8::MAX; LANES_MAX], |mask| mask.bits.to_be_bytes());
    let lanes: Vec<Lane> = (first..=last).zip(masks).map(|(offset, mask)| Lane { offset, mask }).collect();
    if let Some(Lane { offset, .. }) = lanes.iter().find(|lane| lane.mask == 0) {
        let hint =
            "leave the byte out: the parts of a key need not follow each other in the frame".to_owned();
        let found = format!("no bit of byte {offset}");
        at.field_or_self("mask").fault(found, "a bit of each byte", Some(hint));
        return None;
    }
    Some(lanes)
}

/// Reads hexadecimal digits of so many bytes.
fn digits(at: &Cursor<'_>, bytes: usize) -> Option<Digits> {
    let found = at.spelling().and_then(|text| text.parse::<Digits>().ok()).filter(|one| one.bytes == bytes);
    if found.is_none() {
        let plural = if bytes == 1 { "" } else { "s" };
        let example = Digits { bits: u128::MAX, bytes };
        at.unexpected(format!(
            "{} hexadecimal digits for {bytes} byte{plural}, such as {example}",
            2 * bytes
        ));
    }
    found
}

/// Reads an entry.
pub(crate) fn entry(at: &Cursor<'_>) -> Option<Entry> {
    at.mapping(&["match", "mask", "port", "destination", "source", "action"])?;
    let matching = at.required("match", MATCH).and_then(|value| matching(&value, at.field("mask")));
    let action = action(at);
    Some(Entry { matching: matching?, action: action? })
}

fn matching(at: &Cursor<'_>, mask: Option<Cursor<'_>>) -> Option<Matching> {
    let unexpected = || {
        at.unexpected(MATCH);
        None
    };
    let Some(text) = at.spelling() else { return unexpected() };
    let (value, len) = match text.split_once('/') {
        Some((value, len)) => (value, Some(len)),
        None => (text, None),
    };
    if let (Some(mask), true) = (&mask, text == "any" || len.is_some()) {
        let found = format!("a mask with match: {text}");
        mask.fault(found, "none, or a match of digits alone", None);
        return None;
    }
    if text == "any" {
        return Some(Matching::Any);
    }
    let Ok(value) = value.parse::<Digits>() else { return unexpected() };
    match (len, mask) {
        (None, None) => Some(Matching::Value(value)),
        (None, Some(mask)) => Some(Matching::Masked(value, digits(&mask, value.bytes)?)),
        (Some(len), _) => match len.parse::<u8>() {
            Ok(len) if len > 0 && usize::from(len) <= 8 * value.bytes => Some(Matching::First(value, len)),
            _ => {
                let expected = format!("/1 to /{}, or any", 8 * value.bytes);
                at.fault(format!("/{len}"), expected, None);
                None
            }
        },
    }
}

fn action(at: &Cursor<'_>) -> Option<EntryAction> {
    match (at.field("port"), at.field("action")) {
        (Some(_), Some(action)) => {
            action.fault("both \"port\" and \"action\"", "one of them", None);
            None
        }
        (None, None) => {
            at.fault("neither \"port\" nor \"action\"", "one of them", None);
            None
        }
        (None, Some(action)) => {
            let word = action.word(&[DROP, PUNT])?;
            for name in ["destination", "source"] {
                if let Some(field) = at.field(name) {
                    field.fault(
                        format!("{name} with action {word}"),
                        "none, or port instead of action",
                        None,
                    );
                    return None;
                }
            }
            Some(if word == DROP { EntryAction::Drop } else { EntryAction::Punt })
        }
        (Some(port), None) => {
            let port = port.parse(PORT);
            let mac = |name| match at.field(name) {
                Some(field) if name == "destination" => field.parse::<Mac>(MAC).map(Some).filter(|mac| {
                    let zero = *mac == Some(Mac::ZERO);
                    if zero {
                        field.unexpected("a MAC address that is not all zeros");
                    }
                    !zero
                }),
                Some(field) => unicast(&field).map(Some),
                None => Some(None),
            };
            let (destination, source) = (mac("destination"), mac("source"));
            Some(EntryAction::Forward { port: port?, destination: destination?, source: source? })
        }
    }
}
