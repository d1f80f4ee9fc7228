//! Prints results on standard output: JSON, YAML, or aligned columns.
//!
//! JSON and YAML use the same value, so they never differ; the order of fields is that of the type. Colours
//! depend on the terminal (and on `NO_COLOR`, `CLICOLOR_FORCE`).

use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write};

use anstyle::{AnsiColor, RgbColor, Style};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::cli::Format;
use crate::failure::Failure;

/// Emphasis of headings.
pub const BOLD: Style = Style::new().bold();
/// Less important text.
pub const DIM: Style = Style::new().dimmed();
/// Success.
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
/// Warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
/// Failures.
pub const RED: Style = AnsiColor::Red.on_default().bold();

/// Prints a result; `table` returns it as a table.
pub fn result<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match format {
        Format::Table => text(&table()),
        Format::Json => {
            let mut out = BufWriter::new(io::stdout().lock());
            serde_json::to_writer_pretty(&mut out, value)?;
            out.write_all(b"\n")?;
            Ok(out.flush()?)
        }
        Format::Yaml => text(&yaml(value)?),
    }
}

/// Prints a long list, one element in each line, without storing its text in memory.
pub fn list<T: Serialize>(
    format: Format,
    items: impl Iterator<Item = T>,
    header: &str,
    row: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let mut list = List::begin(format, header)?;
    for item in items {
        list.push(&item, &row)?;
    }
    list.end()
}

/// A long list that is printed element by element.
pub struct List {
    out: BufWriter<anstream::AutoStream<StdoutLock<'static>>>,
    format: Format,
    is_first: bool,
}

impl List {
    /// Starts a list, with a heading if there is one.
    pub fn begin(format: Format, header: &str) -> Result<Self, Failure> {
        let mut out = BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
        match format {
            Format::Json => out.write_all(b"[")?,
            Format::Table if !header.is_empty() => writeln!(out, "{}", styled(BOLD, header))?,
            Format::Table | Format::Yaml => {}
        }
        Ok(Self { out, format, is_first: true })
    }

    /// Prints an element.
    pub fn push<T: Serialize>(&mut self, item: &T, row: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        match self.format {
            Format::Table => writeln!(self.out, "{}", row(item))?,
            Format::Json => {
                self.out.write_all(if self.is_first { b"\n  " } else { b",\n  " })?;
                serde_json::to_writer(&mut self.out, item)?;
            }
            Format::Yaml => self.out.write_all(yaml(&[item])?.as_bytes())?,
        }
        self.is_first = false;
        Ok(())
    }

    /// Ends the list.
    pub fn end(mut self) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.out.write_all(if self.is_first { b"]\n" } else { b"\n]\n" })?,
            Format::Yaml if self.is_first => self.out.write_all(b"[]\n")?,
            _ => {}
        }
        Ok(self.out.flush()?)
    }
}

/// Prints one element of an endless list at once: a line of JSON, a YAML item, or a row.
pub fn line<T: Serialize>(format: Format, item: &T, row: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let mut line = match format {
        Format::Table => row(item),
        Format::Json => serde_json::to_string(item)?,
        Format::Yaml => return text(&yaml(&[item])?),
    };
    line.push('\n');
    text(&line)
}

/// Prints text, without colours if standard output is not a terminal.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Appends a table to a text, behind an empty line; a sentence if it has no rows.
pub fn section(out: &mut String, title: &str, names: &[(&str, Align)], rows: &[Vec<String>]) {
    out.push('\n');
    match rows {
        [] => out.push_str(&format!("no {title}\n")),
        rows => out.push_str(&columns(names, rows)),
    }
}

/// Says something to the operator of a program that runs until a signal.
pub fn note(program: &str, text: &str) {
    anstream::eprintln!("{} {text}", styled(DIM, format!("{program}:")));
}

/// `text` in a style.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A network's name in its colour (`#rrggbb`), or in bold without one.
pub fn painted(name: &str, colour: Option<&str>) -> String {
    let style = Style::new().bold();
    styled(
        colour.and_then(rgb).map_or(style, |[r, g, b]| style.fg_color(Some(RgbColor(r, g, b).into()))),
        name,
    )
}

/// The components of `#rrggbb`.
pub fn rgb(colour: &str) -> Option<[u8; 3]> {
    let digits = colour.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let [_, r, g, b] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([r, g, b])
}

/// A number with thousands separators.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 change`, `2 changes`.
pub fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Aligned columns below a bold heading; every row has as many cells as `columns`.
pub fn columns(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
            cells.fold(name.chars().count(), usize::max)
        })
        .collect();
    let mut out = String::new();
    let head: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lines = std::iter::once((&head, true)).chain(rows.iter().map(|row| (row, false)));
    for (cells, is_head) in lines {
        let mut line = String::new();
        for ((cell, (_, align)), width_max) in cells.iter().zip(columns).zip(&widths) {
            let pad = " ".repeat(width_max.saturating_sub(width(cell)));
            let gap = if line.is_empty() { "" } else { "  " };
            let _ = match align {
                Align::Left => write!(line, "{gap}{cell}{pad}"),
                Align::Right => write!(line, "{gap}{pad}{cell}"),
            };
        }
        let line = line.trim_end();
        out.push_str(&if is_head { styled(BOLD, line) } else { line.to_owned() });
        out.push('\n');
    }
    out
}

/// Number of characters in a cell, without escape sequences.
fn width(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).map(|part| part.chars().count()).sum()
}

/// A value as YAML (block style; strings that could be mistaken for other types are quoted as in JSON).
pub fn yaml<T: Serialize + ?Sized>(value: &T) -> Result<String, Failure> {
    let tree: Tree = serde_json::from_str(&serde_json::to_string(value)?)?;
    let mut out = String::new();
    tree.write(&mut out, 0, false);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(out.trim_start_matches('\n').to_owned())
}

/// A JSON value with ordered fields.
enum Tree {
    Scalar(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Writes the value after a `key:` (on a new line), or after a `- ` (`inline`, on the same line).
    fn write(&self, out: &mut String, depth: usize, inline: bool) {
        let pad = "  ".repeat(depth);
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::List(items) if items.is_empty() => out.push_str("[]"),
            Self::Map(fields) if fields.is_empty() => out.push_str("{}"),
            Self::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    if !(inline && at == 0) {
                        let _ = write!(out, "\n{pad}");
                    }
                    out.push_str("- ");
                    item.write(out, depth + 1, true);
                }
            }
            Self::Map(fields) => {
                for (at, (key, value)) in fields.iter().enumerate() {
                    if !(inline && at == 0) {
                        let _ = write!(out, "\n{pad}");
                    }
                    out.push_str(key);
                    out.push(':');
                    match value {
                        Self::List(items) if !items.is_empty() => value.write(out, depth + 1, false),
                        Self::Map(fields) if !fields.is_empty() => value.write(out, depth + 1, false),
                        _ => {
                            out.push(' ');
                            value.write(out, depth, false);
                        }
                    }
                }
            }
        }
    }
}

/// A string as a YAML scalar.
fn scalar(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(serde_json::Value::from(value).to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(scalar(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = fields.next_entry::<String, Tree>()? {
            map.push((scalar(&key), value));
        }
        Ok(Tree::Map(map))
    }
}
