//! A report of tables with different columns: as JSON, for the terminal, and as Markdown pages in
//! `bench/results`.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::commands::counts::Counts;
use crate::failure::Failure;
use crate::print::{Align, BOLD, DIM, columns, grouped, styled};

/// The results of one command.
#[derive(Serialize)]
pub struct Findings {
    pub name: &'static str,
    pub facts: Counts<'static, Value>,
    pub sections: Vec<Section>,
}

/// One table of the results.
#[derive(Serialize)]
pub struct Section {
    title: String,
    rows: Vec<Counts<'static, Value>>,
    notes: Vec<String>,
    #[serde(skip)]
    columns: &'static [&'static str],
}

impl Section {
    /// Creates an empty table.
    pub fn new(title: impl Into<String>, columns: &'static [&'static str]) -> Self {
        Self { title: title.into(), rows: Vec::new(), notes: Vec::new(), columns }
    }

    /// Adds a row, with a value for each column in order.
    pub fn row(&mut self, values: impl IntoIterator<Item = Value>) {
        self.rows.push(Counts(self.columns.iter().copied().zip(values).collect()));
    }

    /// Adds a note below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn cells(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| row.0.iter().map(|(_, value)| cell(value)).collect()).collect()
    }
}

impl Findings {
    /// The table for the terminal.
    pub fn text(&self) -> String {
        let section = |section: &Section| {
            let numeric =
                |at: usize| section.rows.iter().any(|row| row.0.get(at).is_some_and(|(_, v)| v.is_number()));
            let head = section
                .columns
                .iter()
                .enumerate()
                .map(|(at, name)| (*name, if numeric(at) { Align::Right } else { Align::Left }));
            let table = columns(&head.collect::<Vec<_>>(), &section.cells());
            let notes: String = section.notes.iter().map(|note| format!("{}\n", styled(DIM, note))).collect();
            format!("{}\n{table}{notes}", styled(BOLD, &section.title))
        };
        self.sections.iter().map(section).collect::<Vec<_>>().join("\n")
    }

    fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.name);
        for (name, value) in &self.facts.0 {
            let _ = writeln!(out, "- {}: {}", name.replace('_', " "), cell(value));
        }
        for section in &self.sections {
            let _ = write!(out, "\n## {}\n\n| {} |\n|", section.title, section.columns.join(" | "));
            out.push_str(&" --- |".repeat(section.columns.len()));
            out.push('\n');
            for row in section.cells() {
                let _ = writeln!(out, "| {} |", row.join(" | "));
            }
            for note in &section.notes {
                let _ = write!(out, "\n{note}\n");
            }
        }
        out
    }

    /// Writes `NAME.json` and `NAME.md` to a directory, which is created if absent.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| Failure::Output { path, source }
        };
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let json = serde_json::to_string_pretty(self)? + "\n";
        for (extension, content) in [("json", json), ("md", self.markdown())] {
            let path = folder.join(format!("{}.{extension}", self.name));
            std::fs::write(&path, content).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// A number with this many decimals.
pub fn round(value: f64, decimals: i32) -> Value {
    let scale = 10_f64.powi(decimals);
    Value::from((value * scale).round() / scale)
}

/// A part in percent with one decimal; `null` if the whole is zero.
pub fn percent(part: usize, whole: usize) -> Value {
    if whole == 0 { Value::Null } else { round(part as f64 / whole as f64 * 100.0, 1) }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.as_u64().map_or_else(|| other.to_string(), grouped),
    }
}
