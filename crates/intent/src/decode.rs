//! Decodes typed values from a tree, and reports every error with its place and path.
//!
//! Flow: tree → **cursor** (a value and its path in the document) → `document` builds the types. Invariant: a
//! function that returns `None` has reported why.

use std::fmt::Display;
use std::rc::Rc;
use std::str::FromStr;

use hue_planes::SettingRange;

use crate::error::{Error, Finding, Place, Report, did_you_mean, one_of, quoted};
use crate::yaml::{Data, Entry, Mark, Plain, Tree, Value, ValueId, join, plain_type};

/// A file being decoded.
pub(crate) struct File<'t> {
    pub(crate) name: &'t str,
    pub(crate) index: usize,
    pub(crate) tree: &'t Tree,
    pub(crate) report: &'t Report,
}

/// The path of a value in its document.
enum Path<'t> {
    Root,
    Key(Rc<Path<'t>>, &'t str),
    Index(Rc<Path<'t>>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => join(&parent.text(), key),
            Self::Index(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

/// A value and its path.
#[derive(Clone)]
pub(crate) struct Cursor<'t> {
    file: &'t File<'t>,
    value: ValueId,
    path: Rc<Path<'t>>,
}

impl<'t> Cursor<'t> {
    /// The cursor for an entire document.
    pub(crate) fn root(file: &'t File<'t>, value: ValueId) -> Self {
        Self { file, value, path: Rc::new(Path::Root) }
    }

    fn value(&self) -> &'t Value {
        self.file.tree.value(self.value)
    }

    /// Line of the value, counted from 1.
    pub(crate) fn line(&self) -> u32 {
        self.value().mark.line
    }

    /// The location of the value, for a message at `from`: the line, and the file if it is a different one.
    pub(crate) fn location_for(&self, from: &Self) -> String {
        if self.file.index == from.file.index {
            format!("line {}", self.line())
        } else {
            format!("{}:{}", self.file.name, self.line())
        }
    }

    /// A description of the value.
    pub(crate) fn description(&self) -> String {
        match &self.value().data {
            Data::Scalar { text, plain: true } => match plain_type(text) {
                Plain::Null => "nothing".to_owned(),
                Plain::Bool | Plain::Whole | Plain::Number => (**text).to_owned(),
                Plain::Text => quoted(text),
            },
            Data::Scalar { text, .. } => quoted(text),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a mapping".to_owned(),
        }
    }

    /// Reports that the value is not what was expected.
    pub(crate) fn unexpected(&self, expected: impl Into<String>) {
        self.fault(self.description(), expected, None);
    }

    /// Reports an error at the value.
    pub(crate) fn fault(&self, found: impl Into<String>, expected: impl Into<String>, hint: Option<String>) {
        self.fault_at(self.value().mark, self.path.text(), found.into(), expected.into(), hint);
    }

    fn fault_at(&self, mark: Mark, field: String, found: String, expected: String, hint: Option<String>) {
        let place =
            Place { file: self.file.name.to_owned(), line: mark.line as usize, column: mark.column as usize };
        let field = if field.is_empty() { "document".to_owned() } else { field };
        let finding = Finding { place, field, found, expected, hint };
        self.file.report.add(self.file.index, Error::Found(Box::new(finding)));
    }

    /// Number of errors reported so far, to detect whether decoding a part reported any.
    pub(crate) fn faults(&self) -> usize {
        self.file.report.count()
    }

    /// Whether the value is null: empty, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value().data, Data::Scalar { text, plain: true } if plain_type(text) == Plain::Null)
    }

    fn child(&self, entry: &'t Entry) -> Self {
        let path = Rc::new(Path::Key(Rc::clone(&self.path), &entry.key));
        Self { file: self.file, value: entry.value, path }
    }

    /// The cursor for a field, if it exists; for errors found later.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        match &self.value().data {
            Data::Map(entries) => {
                entries.iter().find(|entry| *entry.key == *name).map(|entry| self.child(entry))
            }
            _ => None,
        }
    }

    /// The cursor for a field; if it does not exist, for the mapping itself.
    pub(crate) fn field_or_self(&self, name: &str) -> Self {
        self.field(name).unwrap_or_else(|| self.clone())
    }

    /// The cursor for an entry of a list; if it does not exist, for the list itself.
    pub(crate) fn entry_or_self(&self, index: usize) -> Self {
        match &self.value().data {
            Data::List(values) => match values.get(index) {
                Some(value) => self.entry(index, *value),
                None => self.clone(),
            },
            _ => self.clone(),
        }
    }

    fn entry(&self, index: usize, value: ValueId) -> Self {
        Self { file: self.file, value, path: Rc::new(Path::Index(Rc::clone(&self.path), index)) }
    }

    /// Checks that the value is a mapping with no fields except `known`.
    pub(crate) fn mapping(&self, known: &[&str]) -> Option<()> {
        self.mapping_naming(known, known)
    }

    /// The same, but errors name only some of these fields. Whoever reads the others reports them.
    pub(crate) fn mapping_naming(&self, known: &[&str], named: &[&str]) -> Option<()> {
        let Data::Map(entries) = &self.value().data else {
            self.unexpected(format!("a mapping with {}", named.join(", ")));
            return None;
        };
        for entry in entries {
            if !known.contains(&&*entry.key) {
                let hint = match &*entry.key {
                    "<<" => Some("YAML 1.2 has no merge keys".to_owned()),
                    key => did_you_mean(key, named.iter().copied())
                        .or_else(|| did_you_mean(key, known.iter().copied())),
                };
                let field = join(&self.path.text(), &entry.key);
                let expected =
                    if named.is_empty() { "none".to_owned() } else { one_of(named.iter().copied()) };
                self.fault_at(entry.mark, field, "an unknown field".to_owned(), expected, hint);
            }
        }
        Some(())
    }

    /// The cursor for a required field.
    pub(crate) fn required(&self, name: &'static str, expected: &str) -> Option<Self> {
        let field = self.field(name);
        if field.is_none() {
            let path = join(&self.path.text(), name);
            self.fault_at(self.value().mark, path, "nothing".to_owned(), expected.to_owned(), None);
        }
        field
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value().data, Data::List(_))
    }

    /// The entries of a list with at most `max` of them; null is an empty list.
    pub(crate) fn list(&self, max: usize, expected: &str) -> Option<Vec<Self>> {
        match &self.value().data {
            Data::List(values) if values.len() > max => {
                self.fault(format!("{} entries", values.len()), format!("at most {max}"), None);
                None
            }
            Data::List(values) => {
                Some(values.iter().enumerate().map(|(index, value)| self.entry(index, *value)).collect())
            }
            _ if self.is_null() => Some(Vec::new()),
            _ => {
                self.unexpected(expected);
                None
            }
        }
    }

    /// The value as text. A number or `true` is an error, because its spelling would be lost.
    pub(crate) fn text(&self, expected: &str) -> Option<&'t str> {
        match &self.value().data {
            Data::Scalar { text, plain } if !plain || plain_type(text) == Plain::Text => Some(text),
            Data::Scalar { text, .. } if !self.is_null() => {
                let hint = format!("write {} to use it as text", quoted(text));
                self.fault(self.description(), expected, Some(hint));
                None
            }
            _ => {
                self.unexpected(expected);
                None
            }
        }
    }

    /// The text of a scalar as it is written, also if it is a number.
    pub(crate) fn spelling(&self) -> Option<&'t str> {
        match &self.value().data {
            Data::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The value as a type with a text form.
    pub(crate) fn parse<T: FromStr>(&self, expected: &str) -> Option<T> {
        let text = self.text(expected)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.unexpected(expected);
        }
        value
    }

    /// The value as a whole number from `min` to `max`.
    pub(crate) fn number<T>(&self, min: T, max: T, unit: &str) -> Option<T>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let value = match &self.value().data {
            Data::Scalar { text, plain: true } if plain_type(text) == Plain::Whole => whole(text),
            _ => None,
        };
        let value =
            value.and_then(|value| T::try_from(value).ok()).filter(|value| (&min..=&max).contains(&value));
        if value.is_none() {
            let quotes =
                matches!(&self.value().data, Data::Scalar { text, plain: false } if whole(text).is_some());
            let hint = quotes.then(|| "write it without quotes".to_owned());
            self.fault(self.description(), format!("a whole number from {min} to {max}{unit}"), hint);
        }
        value
    }

    /// The value as a number that a setting can have.
    pub(crate) fn range<T>(&self, values: SettingRange<T>, unit: &str) -> Option<T>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        self.number(values.min, values.max, unit)
    }

    /// The value as a whole number from 1 to `max`, or as text with a unit that `parse` understands.
    pub(crate) fn number_or_text(
        &self,
        max: u64,
        expected: &str,
        parse: impl Fn(&str) -> Option<u64>,
    ) -> Option<u64> {
        let value = match &self.value().data {
            Data::Scalar { text, plain: true } if plain_type(text) == Plain::Whole => whole(text),
            Data::Scalar { text, .. } => parse(text),
            _ => None,
        };
        let value = value.filter(|value| (1..=max).contains(value));
        if value.is_none() {
            self.unexpected(expected);
        }
        value
    }

    /// The value as a whole number from 0 to `max`, or `Some(None)` for `word`.
    pub(crate) fn number_or_word(&self, max: u64, word: &str) -> Option<Option<u64>> {
        let value = match &self.value().data {
            Data::Scalar { text, plain: true } if plain_type(text) == Plain::Whole => {
                whole(text).filter(|value| *value <= max).map(Some)
            }
            Data::Scalar { text, .. } => (**text == *word).then_some(None),
            _ => None,
        };
        if value.is_none() {
            self.unexpected(format!("{word}, or a whole number from 0 to {max}"));
        }
        value
    }

    /// The value as a number in thousandths. Returns `None`, without reporting it, if it is not a plain
    /// decimal number or has more than three decimals.
    pub(crate) fn thousandths(&self) -> Option<u32> {
        let Data::Scalar { text, plain: true } = &self.value().data else { return None };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if decimals.is_empty() || decimals.len() > 3 || !digits(decimals) || !digits(whole) {
            return None;
        }
        let decimals: u32 = format!("{decimals:0<3}").parse().ok()?;
        whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(decimals)
    }

    /// The value as a number with a sign, in thousandths; in other respects like [`Self::thousandths`].
    pub(crate) fn signed_thousandths(&self) -> Option<i32> {
        let Data::Scalar { text, plain: true } = &self.value().data else { return None };
        let (sign, text) = text.strip_prefix('-').map_or((1, &**text), |text| (-1, text));
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if decimals.len() > 3 || !digits(decimals) || !digits(whole) {
            return None;
        }
        let decimals: i32 = format!("{decimals:0<3}").parse().ok()?;
        Some(sign * whole.parse::<i32>().ok()?.checked_mul(1000)?.checked_add(decimals)?)
    }

    /// The value as a boolean.
    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.value().data {
            Data::Scalar { text, plain: true } if plain_type(text) == Plain::Bool => {
                Some(text.eq_ignore_ascii_case("true"))
            }
            _ => {
                self.unexpected("true or false");
                None
            }
        }
    }

    /// The value if it is one of these words. Reports nothing: whoever reads the field later does.
    pub(crate) fn known_word<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        let Data::Scalar { text, .. } = &self.value().data else { return None };
        known.iter().copied().find(|word| *word == &**text)
    }

    /// The value as one of a few words.
    pub(crate) fn word<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        let expected = one_of(known.iter().copied());
        let text = self.text(&expected)?;
        let word = known.iter().find(|word| **word == text).copied();
        if word.is_none() {
            self.fault(self.description(), expected, did_you_mean(text, known.iter().copied()));
        }
        word
    }

    /// The value as one of a few values, by its name.
    pub(crate) fn choice<T: Copy, const N: usize>(
        &self,
        values: [T; N],
        name: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let found = self.word(&values.map(&name))?;
        values.into_iter().find(|value| name(*value) == found)
    }
}

/// A whole number in a notation of YAML 1.2: decimal, `0x…` or `0o…`.
fn whole(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok();
    }
    text.parse().ok()
}
