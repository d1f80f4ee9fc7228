//! Results: JSON for machines, a markdown table for people, the same numbers in both.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value, json};

use crate::measure::Spread;

/// One table of a report.
pub struct Section {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    notes: Vec<String>,
}

impl Section {
    /// An empty table; the first column names the contestant.
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row, a value for each column; shows it on standard error so that long runs are seen to move.
    pub fn row(&mut self, values: Vec<Value>) {
        debug_assert_eq!(values.len(), self.columns.len());
        eprintln!("  {}", values.iter().map(text).collect::<Vec<_>>().join("  "));
        self.rows.push(values);
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n| {} |\n|", self.title, self.columns.join(" | "));
        out.push_str(&" --- |".repeat(self.columns.len()));
        out.push('\n');
        for row in &self.rows {
            let _ = writeln!(out, "| {} |", row.iter().map(text).collect::<Vec<_>>().join(" | "));
        }
        for note in &self.notes {
            let _ = write!(out, "\n{note}\n");
        }
        out
    }

    fn json(&self) -> Value {
        let object = |row: &Vec<Value>| -> Map<String, Value> {
            self.columns.iter().map(|column| (*column).to_owned()).zip(row.iter().cloned()).collect()
        };
        json!({"title": self.title, "rows": self.rows.iter().map(object).collect::<Vec<_>>(), "notes": self.notes})
    }
}

/// What one command measured.
pub struct Report {
    name: &'static str,
    facts: Value,
    sections: Vec<Section>,
}

impl Report {
    /// An empty report on a machine.
    pub fn new(name: &'static str, facts: Value) -> Self {
        Self { name, facts, sections: Vec::new() }
    }

    /// Adds a table.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The report for people.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.name);
        for (name, value) in self.facts.as_object().into_iter().flatten() {
            let _ = writeln!(out, "- {}: {}", name.replace('_', " "), text(value));
        }
        for section in &self.sections {
            let _ = write!(out, "\n{}", section.markdown());
        }
        out
    }

    /// Prints the markdown and writes `NAME.json` and `NAME.md` into `folder`.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn finish(&self, folder: &Path) -> io::Result<()> {
        let sections: Vec<Value> = self.sections.iter().map(Section::json).collect();
        let json = json!({"name": self.name, "machine": self.facts, "sections": sections});
        println!("{}", self.markdown());
        fs::create_dir_all(folder)?;
        fs::write(folder.join(format!("{}.json", self.name)), format!("{json:#}\n"))?;
        fs::write(folder.join(format!("{}.md", self.name)), self.markdown())
    }
}

/// Three values: median, slowest and fastest round, in millions a second, two decimals.
pub fn millions(spread: &Spread) -> [Value; 3] {
    [spread.median(), spread.min(), spread.max()].map(|rate| round(rate / 1e6, 2))
}

/// A number with that many decimals.
pub fn round(value: f64, decimals: i32) -> Value {
    let scale = 10f64.powi(decimals);
    json!((value * scale).round() / scale)
}

/// Bytes as MiB, two decimals.
pub fn mib(bytes: u64) -> Value {
    round(bytes as f64 / f64::from(1 << 20), 2)
}

/// A value as a cell.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_and_json_carry_the_same_row() {
        let mut section = Section::new("t", &["engine", "M/s"]);
        section.row(vec![json!("a"), round(1.006, 2)]);
        section.note("n");
        assert_eq!(section.markdown(), "## t\n\n| engine | M/s |\n| --- | --- |\n| a | 1.01 |\n\nn\n");
        assert_eq!(section.json()["rows"][0], json!({"engine": "a", "M/s": 1.01}));
    }
}
