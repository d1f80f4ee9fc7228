//! Reads YAML 1.2 text into a tree of values with their places.
//!
//! Flow: bytes → `saphyr-parser` events → **tree** → decoder. An alias shares its value instead of copying
//! it, so aliases cannot make a file grow. Depth and number of values are limited. Never panics, whatever the
//! bytes. Lines and columns count from 1, columns in characters.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span};

use crate::error::{Error, Finding, Place, Report, quoted};
use crate::limits::{DEPTH_MAX, FILE_BYTES_MAX, KEYS_MAX, VALUES_MAX};

/// Line and column of a value, both counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl From<Marker> for Mark {
    fn from(marker: Marker) -> Self {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self { line: number(marker.line().max(1)), column: number(marker.col().saturating_add(1)) }
    }
}

/// Index of a value in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ValueId(u32);

/// A value of the tree.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) mark: Mark,
    pub(crate) data: Data,
}

/// The content of a value.
#[derive(Debug)]
pub(crate) enum Data {
    /// A scalar. It is `plain` if written without quotes, so that it can be a boolean, a number or null.
    Scalar { text: Box<str>, plain: bool },
    /// A list.
    List(Vec<ValueId>),
    /// A mapping with unique keys, in the order of the file.
    Map(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    pub(crate) mark: Mark,
    pub(crate) value: ValueId,
}

/// The documents of one file.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    values: Vec<Value>,
    pub(crate) documents: Vec<ValueId>,
}

impl Tree {
    /// The value with this id, which must be from this tree.
    pub(crate) fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }
}

/// The type of a plain scalar in YAML 1.2's core schema (§10.3.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Plain {
    Null,
    Bool,
    Whole,
    Number,
    Text,
}

/// The type of a plain scalar.
pub(crate) fn plain_type(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Plain::Bool,
        ".nan" | ".NaN" | ".NAN" => return Plain::Number,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let based = |prefix: &str, radix: u32| {
        text.strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|char| char.is_digit(radix)))
    };
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
        || based("0x", 16)
        || based("0o", 8)
    {
        return Plain::Whole;
    }
    let digits = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let number =
        digits && unsigned.contains(|char: char| char.is_ascii_digit()) && unsigned.parse::<f64>().is_ok();
    if number || matches!(unsigned, ".inf" | ".Inf" | ".INF") { Plain::Number } else { Plain::Text }
}

/// Reads the documents of a file. Errors go to `report`; documents before a syntax error are kept.
pub(crate) fn read(name: &str, index: usize, bytes: &[u8], report: &Report) -> Tree {
    read_some(name, index, bytes, report, VALUES_MAX)
}

/// As [`read`], with at most `values_max` values.
fn read_some(name: &str, index: usize, bytes: &[u8], report: &Report, values_max: usize) -> Tree {
    let mut builder = Builder::new(name, index, report, values_max);
    if bytes.len() > FILE_BYTES_MAX {
        builder.fault(
            START,
            "document",
            format!("{} bytes", bytes.len()),
            format!("at most {FILE_BYTES_MAX}"),
            None,
        );
        return builder.tree;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let bad = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            let mark = mark_after(&String::from_utf8_lossy(good));
            builder.fault(mark, "document", format!("the byte 0x{bad:02x}"), "UTF-8 text".to_owned(), None);
            return builder.tree;
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => {
                builder.syntax(&error, error.marker().index() >= text.chars().count());
                Err(Stop)
            }
        };
        if step.is_err() {
            builder.tree.documents.truncate(builder.finished);
            break;
        }
    }
    builder.tree
}

const START: Mark = Mark { line: 1, column: 1 };

/// The place right after `text`.
fn mark_after(text: &str) -> Mark {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count();
    Marker::new(0, lines + 1, column).into()
}

/// The rest of the file cannot be parsed.
struct Stop;

/// A list or mapping that is not complete.
struct Open {
    value: ValueId,
    anchor: usize,
    /// In a mapping: the key of the next value, or `Skip` if that key is invalid.
    key: Key,
}

enum Key {
    /// In a list, or in a mapping before a key.
    None,
    /// The next value belongs to this key.
    Some(Box<str>, Mark),
    /// The next value is discarded.
    Skip,
}

struct Builder<'r> {
    name: &'r str,
    index: usize,
    report: &'r Report,
    tree: Tree,
    open: Vec<Open>,
    anchors: HashMap<usize, ValueId>,
    /// Number of complete documents.
    finished: usize,
    values_max: usize,
}

impl<'r> Builder<'r> {
    fn new(name: &'r str, index: usize, report: &'r Report, values_max: usize) -> Self {
        let (tree, open, anchors) = (Tree::default(), Vec::new(), HashMap::new());
        Self { name, index, report, tree, open, anchors, finished: 0, values_max }
    }

    fn fault(&self, mark: Mark, field: &str, found: String, expected: String, hint: Option<String>) {
        let place =
            Place { file: self.name.to_owned(), line: mark.line as usize, column: mark.column as usize };
        let field = field.to_owned();
        self.report.add(self.index, Error::Found(Box::new(Finding { place, field, found, expected, hint })));
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let mark = Mark::from(span.start);
        match event {
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::DocumentEnd => self.finished = self.tree.documents.len(),
            Event::Alias(anchor) => self.alias(anchor, mark)?,
            Event::Scalar(text, style, anchor, tag) => {
                self.tag(tag.as_deref(), mark);
                let plain = style == ScalarStyle::Plain;
                self.scalar(&text, plain, anchor, mark)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), mark);
                self.start(Data::List(Vec::new()), anchor, mark)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), mark);
                self.start(Data::Map(Vec::new()), anchor, mark)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        Ok(())
    }

    fn tag(&self, tag: Option<&saphyr_parser::Tag>, mark: Mark) {
        if let Some(tag) = tag {
            let found = format!("the tag {}", quoted(&format!("{}{}", tag.handle, tag.suffix)));
            self.fault(mark, &self.field(), found, "a value without a tag".to_owned(), None);
        }
    }

    fn add(&mut self, data: Data, mark: Mark) -> Result<ValueId, Stop> {
        match u32::try_from(self.tree.values.len()) {
            Ok(id) if self.tree.values.len() < self.values_max => {
                self.tree.values.push(Value { mark, data });
                Ok(ValueId(id))
            }
            _ => {
                let expected = format!("at most {} values in a file", self.values_max);
                self.fault(mark, &self.field(), "another value".to_owned(), expected, None);
                Err(Stop)
            }
        }
    }

    /// Whether the next value is the key of a mapping.
    fn at_key(&self) -> bool {
        self.open.last().is_some_and(|open| {
            matches!(open.key, Key::None) && matches!(self.tree.value(open.value).data, Data::Map(_))
        })
    }

    fn scalar(&mut self, text: &str, plain: bool, anchor: usize, mark: Mark) -> Result<(), Stop> {
        if self.at_key() {
            return self.key(text, mark);
        }
        let value = self.add(Data::Scalar { text: text.into(), plain }, mark)?;
        if anchor > 0 {
            self.anchors.insert(anchor, value);
        }
        self.place(value);
        Ok(())
    }

    fn key(&mut self, text: &str, mark: Mark) -> Result<(), Stop> {
        let entries = match self.open.last().map(|open| &self.tree.value(open.value).data) {
            Some(Data::Map(entries)) => entries.as_slice(),
            _ => &[],
        };
        if entries.len() >= KEYS_MAX {
            let expected = format!("at most {KEYS_MAX} fields in a mapping");
            self.fault(mark, &self.field(), "another field".to_owned(), expected, None);
            return Err(Stop);
        }
        let first = entries.iter().find(|entry| *entry.key == *text).map(|entry| entry.mark);
        let key = match first {
            Some(first) => {
                let field = join(&self.field(), text);
                let expected = format!("it only once (first in line {})", first.line);
                self.fault(mark, &field, "a duplicate field".to_owned(), expected, None);
                Key::Skip
            }
            None => Key::Some(text.into(), mark),
        };
        if let Some(open) = self.open.last_mut() {
            open.key = key;
        }
        Ok(())
    }

    /// Reports a key that is not text; its value will be discarded.
    fn bad_key(&mut self, what: &str, mark: Mark) {
        self.fault(mark, &self.field(), format!("{what} as a key"), "the name of a field".to_owned(), None);
        if let Some(open) = self.open.last_mut() {
            open.key = Key::Skip;
        }
    }

    fn alias(&mut self, anchor: usize, mark: Mark) -> Result<(), Stop> {
        if self.at_key() {
            self.bad_key("an alias", mark);
            return Ok(());
        }
        match self.anchors.get(&anchor) {
            Some(value) => {
                let value = *value;
                self.place(value);
                Ok(())
            }
            None => {
                let expected = "an alias of a complete value".to_owned();
                self.fault(
                    mark,
                    &self.field(),
                    "an alias of a key, or of a value that contains it".to_owned(),
                    expected,
                    None,
                );
                Err(Stop)
            }
        }
    }

    fn start(&mut self, data: Data, anchor: usize, mark: Mark) -> Result<(), Stop> {
        if self.open.len() >= DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} levels");
            self.fault(mark, &self.field(), "deeper nesting".to_owned(), expected, None);
            return Err(Stop);
        }
        // A list or mapping used as a key is read, and then discarded by `end`.
        let value = self.add(data, mark)?;
        self.open.push(Open { value, anchor, key: Key::None });
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if self.at_key() {
            self.bad_key("a list or mapping", self.tree.value(open.value).mark);
            return;
        }
        if open.anchor > 0 {
            self.anchors.insert(open.anchor, open.value);
        }
        self.place(open.value);
    }

    /// Adds a complete value to its list, mapping or document.
    fn place(&mut self, value: ValueId) {
        let Some(open) = self.open.last_mut() else {
            self.tree.documents.push(value);
            return;
        };
        let key = std::mem::replace(&mut open.key, Key::None);
        match (&mut self.tree.values[open.value.0 as usize].data, key) {
            (Data::List(values), _) => values.push(value),
            (Data::Map(entries), Key::Some(key, mark)) => entries.push(Entry { key, mark, value }),
            (Data::Map(_) | Data::Scalar { .. }, _) => {}
        }
    }

    /// Path of the value being read.
    fn field(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match (&self.tree.value(open.value).data, &open.key) {
                (Data::List(values), _) => path.push_str(&format!("[{}]", values.len())),
                (_, Key::Some(key, _)) => path = join(&path, key),
                _ => {}
            }
        }
        if path.is_empty() { "document".to_owned() } else { path }
    }

    fn syntax(&self, error: &ScanError, at_end: bool) {
        let opened = self.open.last().map(|open| self.tree.value(open.value));
        let (found, expected) = explain(error.info(), opened);
        let found = if at_end { "the end of the file".to_owned() } else { found };
        self.fault((*error.marker()).into(), &self.field(), found, expected, None);
    }
}

/// `path.key`; the key is quoted if it is not a plain word.
pub(crate) fn join(path: &str, key: &str) -> String {
    let word = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let key = if !key.is_empty() && word(key) { key.to_owned() } else { quoted(key) };
    if path.is_empty() || path == "document" { key } else { format!("{path}.{key}") }
}

/// Translates a message of the YAML parser: what was found, and what was expected.
fn explain(info: &str, opened: Option<&Value>) -> (String, String) {
    let since = |what: &str| match opened {
        Some(value) => format!("{what} of line {}, column {}", value.mark.line, value.mark.column),
        None => what.to_owned(),
    };
    let (found, expected) = match info {
        _ if info.contains("flow mapping") => ("other text", since("',' or '}' to continue the mapping")),
        _ if info.contains("flow sequence") => ("other text", since("',' or ']' to continue the list")),
        _ if info.contains("block mapping") => ("other text", since("another key of the mapping")),
        _ if info.contains("block collection") => ("other text", since("'- ' and another entry of the list")),
        _ if info.contains("unprintable") => ("an unprintable character", "text".to_owned()),
        _ if info.contains("tab") => ("a tab", "spaces for indentation".to_owned()),
        _ if info.contains("mapping values are not allowed") => {
            ("a second ':'", "quotes around text that contains ': ', or the key on its own line".to_owned())
        }
        _ if info.contains("block sequence entries are not allowed") => {
            ("'- '", "the list on its own line".to_owned())
        }
        _ if info.contains("unknown anchor") => {
            ("an alias of an unknown anchor", "an anchor (&name) earlier in the document".to_owned())
        }
        _ if info.contains("end of stream") || info.contains("unexpected eof") => {
            ("text without an end", "a closing quote".to_owned())
        }
        _ if info.contains("simple key expect") => ("text without a value", "':' and a value".to_owned()),
        _ if info.contains("misplaced bracket") => {
            ("a closing bracket", "an opening bracket before it".to_owned())
        }
        _ => return (format!("malformed YAML: {info}"), "a mapping, list or value".to_owned()),
    };
    (found.to_owned(), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, values_max: usize) -> (Tree, Vec<String>) {
        let report = Report::default();
        let tree = read_some("a", 0, text.as_bytes(), &report, values_max);
        let errors = report.finish().err().map(|errors| errors.list).unwrap_or_default();
        (tree, errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn too_many_values_keep_the_earlier_ones() {
        let text = "a: 1\n---\n- x\n- y\n";
        let (tree, errors) = read_text(text, 5);
        assert_eq!((tree.documents.len(), errors), (2, Vec::new()));
        let (tree, errors) = read_text(text, 4);
        assert_eq!(tree.documents.len(), 1);
        assert_eq!(errors, ["a:4:3: [1]: found another value, expected at most 4 values in a file"]);
    }

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        for (text, plain) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("null", Plain::Null),
            ("nUll", Plain::Text),
            ("true", Plain::Bool),
            ("yes", Plain::Text),
            ("-12", Plain::Whole),
            ("0x1f", Plain::Whole),
            ("0o17", Plain::Whole),
            ("0o19", Plain::Text),
            ("0x", Plain::Text),
            ("1_000", Plain::Text),
            ("1.5", Plain::Number),
            (".5", Plain::Number),
            ("1e5", Plain::Number),
            ("-.inf", Plain::Number),
            ("inf", Plain::Text),
            (".", Plain::Text),
            ("10.1.0.1", Plain::Text),
            ("02:00:00:00:01:01", Plain::Text),
        ] {
            assert_eq!(plain_type(text), plain, "{text:?}");
        }
    }

    #[test]
    fn paths_quote_odd_keys() {
        assert_eq!(join("spec", "a-b"), "spec.a-b");
        assert_eq!(join("document", "a b"), "\"a b\"");
        assert_eq!(join("", "\u{1b}"), "\"\\u{1b}\"");
    }
}
