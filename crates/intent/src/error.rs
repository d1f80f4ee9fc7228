//! Errors of desired state, always with their place: `FILE:LINE:COLUMN: field: found …, expected …`.
//!
//! Flow: reader, decoder and validator add errors to one [`Report`]; [`crate::load`] returns it sorted by
//! place. Lines and columns count from 1, columns in characters.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::limits::ERRORS_MAX;

/// A place in a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Place {
    /// File name as given; `<stdin>` for standard input.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A wrong value, and what was expected instead. The author of the file is at fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Place of the value.
    #[serde(flatten)]
    pub place: Place,
    /// Path of the field in its document, such as `spec.ports[0].mac`; `document` for the document as a
    /// whole.
    pub field: String,
    /// The value found.
    pub found: String,
    /// The expected value.
    pub expected: String,
    /// A likely correction, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: found {}, expected {}", self.place, self.field, self.found, self.expected)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// One error of desired state.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// A file could not be read (the fault of the file system or the caller).
    #[error("{file}: cannot be read: {reason}, expected a YAML file, or - for standard input")]
    Read {
        /// File as given.
        file: String,
        /// Message of the operating system.
        reason: String,
    },
    /// The text is not what was expected (the author's fault).
    #[error("{0}")]
    Found(Box<Finding>),
    /// A part is missing although no error was reported (a bug of this crate).
    #[error(
        "a part of the documents is missing although they have no errors: this is a bug, please report it"
    )]
    Incomplete,
}

impl Error {
    /// The finding, if the error has one.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Found(finding) => Some(finding),
            Self::Read { .. } | Self::Incomplete => None,
        }
    }
}

/// All errors of a load, sorted by file (in the order given) and place.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub struct Errors {
    /// At least one error and at most [`ERRORS_MAX`].
    pub list: Vec<Error>,
    /// Number of errors beyond those.
    pub more: usize,
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Collects errors during a load.
#[derive(Default)]
pub(crate) struct Report {
    list: RefCell<Vec<(usize, Error)>>,
    more: Cell<usize>,
}

impl Report {
    /// Adds an error in the file with this index.
    pub(crate) fn add(&self, file: usize, error: Error) {
        let mut list = self.list.borrow_mut();
        if list.len() < ERRORS_MAX {
            list.push((file, error));
        } else {
            self.more.set(self.more.get() + 1);
        }
    }

    /// Number of errors.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().len() + self.more.get()
    }

    /// The errors, sorted by place, or `Ok` if there are none.
    pub(crate) fn finish(self) -> Result<(), Errors> {
        let mut list = self.list.into_inner();
        if list.is_empty() {
            return Ok(());
        }
        list.sort_by_cached_key(|(file, error)| {
            (*file, error.finding().map(|finding| (finding.place.line, finding.place.column)))
        });
        Err(Errors { list: list.into_iter().map(|(_, error)| error).collect(), more: self.more.get() })
    }
}

/// Text made safe for printing: quoted, with control characters escaped, and cut to 64 characters.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    let mut shown = text.chars();
    let start: String = shown.by_ref().take(CHARS_MAX).collect();
    let more = if shown.next().is_some() { "…" } else { "" };
    format!("{start:?}{more}")
}

/// The entry of `known` that `text` most likely means.
fn nearest<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const LIKENESS_MIN: f64 = 0.75;
    if text.len() > crate::limits::NAME_CHARS_MAX {
        return None; // the distance is quadratic in the length
    }
    let lower = text.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&lower, &name.to_lowercase());
    let scored = known.into_iter().map(|name| (likeness(name), name));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

/// `did you mean "x"?` if `known` has a similar entry, and more than one entry.
pub(crate) fn did_you_mean<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    let name = if known.len() > 1 { nearest(text, known) } else { None };
    name.map(|name| format!("did you mean \"{name}\"?"))
}

/// `a, b or c`, with at most 16 entries.
pub(crate) fn one_of<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    const SHOWN_MAX: usize = 16;
    let known: Vec<&str> = known.into_iter().collect();
    match known.as_slice() {
        [] => "none".to_owned(),
        [only] => (*only).to_owned(),
        many if many.len() > SHOWN_MAX => {
            format!("one of {}, … ({} in all)", many[..SHOWN_MAX].join(", "), many.len())
        }
        [start @ .., last] => format!("{} or {last}", start.join(", ")),
    }
}
