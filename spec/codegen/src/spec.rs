//! The types of `spec/kinds.toml` and the rules that it must follow.
//!
//! A file that parses here has codes 1, 2, 3 … in each table, unique names in snake case, and exactly one `forward`
//! outcome in each kind, which is the last one and always holds.

use std::collections::HashSet;

use serde::Deserialize;
use thiserror::Error;

/// An error in the specification; its author's fault.
#[derive(Debug, Error)]
pub enum SpecError {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("{table}: '{name}': {what}")]
    Row { table: String, name: String, what: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Forward,
    Punt,
    Drop,
}

impl Verdict {
    pub const ALL: [Self; 3] = [Self::Forward, Self::Punt, Self::Drop];

    /// Variant in Rust.
    pub fn variant(self) -> String {
        format!("{self:?}")
    }

    /// Word in docs and metrics.
    pub fn word(self) -> String {
        self.variant().to_lowercase()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub format: u32,
    pub frame_limits: FrameLimits,
    pub metric: Vec<Metric>,
    pub unclaimed: Vec<Unclaimed>,
    pub loss: Vec<Loss>,
    pub port_loss: Vec<PortLoss>,
    pub kind: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameLimits {
    pub bytes_min: u32,
    pub bytes_max: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    pub name: String,
    pub labels: Vec<String>,
    pub counts: Counts,
    pub doc: String,
}

/// The values of a metric's last label.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    Verdict,
    Drop,
    Punt,
    Unclaimed,
    Loss,
    NetworkBytes,
    PortVerdict,
    PortPackets,
    PortBytes,
    PortLoss,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unclaimed {
    pub name: String,
    pub code: u8,
    pub doc: String,
    pub when: String,
    pub source: String,
}

/// Stages at which a packet is lost outside its plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossStage {
    Arrival,
    Queue,
    Departure,
}

impl LossStage {
    /// Word in Rust and docs.
    pub fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    pub name: String,
    pub code: u8,
    pub stage: LossStage,
    pub doc: String,
    pub when: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortLoss {
    pub name: String,
    pub code: u8,
    pub doc: String,
    pub when: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    pub name: String,
    pub id: u8,
    pub key_bits: u32,
    pub runs_on: Vec<String>,
    pub doc: String,
    pub limits: Limits,
    pub outcome: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub next_hops_max: u32,
    pub mtu_bytes_min: u32,
    pub mtu_bytes_max: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub name: String,
    pub code: u8,
    pub verdict: Verdict,
    pub stage: String,
    pub doc: String,
    pub when: String,
    pub source: String,
}

/// `no_route` as `NoRoute`.
pub fn variant(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    name.split('_').map(capital).collect()
}

impl Spec {
    /// Reads and checks a specification.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let spec: Self = toml::from_str(text)?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.format != 1 {
            return Err(row("format", &self.format.to_string(), "expected 1"));
        }
        check_codes("unclaimed", self.unclaimed.iter().map(|one| (one.name.as_str(), one.code)))?;
        check_codes("loss", self.loss.iter().map(|one| (one.name.as_str(), one.code)))?;
        check_codes("port_loss", self.port_loss.iter().map(|one| (one.name.as_str(), one.code)))?;
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for kind in &self.kind {
            if !ids.insert(kind.id) || !names.insert(&kind.name) {
                return Err(row("kind", &kind.name, "name or id used twice"));
            }
            check_kind(kind)?;
        }
        Ok(())
    }
}

fn check_kind(kind: &Kind) -> Result<(), SpecError> {
    let table = format!("kind {}", kind.name);
    check_codes(&table, kind.outcome.iter().map(|one| (one.name.as_str(), one.code)))?;
    for (index, one) in kind.outcome.iter().enumerate() {
        let last = index + 1 == kind.outcome.len();
        if (one.verdict == Verdict::Forward) != last || (one.when == "true") != last {
            return Err(row(&table, &one.name, "exactly the last outcome must forward and always hold"));
        }
    }
    let place = |place: &String| matches!(place.as_str(), "soft" | "card");
    match kind.runs_on.iter().find(|name| !place(name)) {
        Some(name) => Err(row(&table, name, "no substrate: expected soft or card")),
        None => Ok(()),
    }
}

/// Outcomes have 5 bits in hardware; code 0 is no outcome.
const CODE_MAX: u8 = 31;

fn check_codes<'a>(table: &str, rows: impl Iterator<Item = (&'a str, u8)>) -> Result<(), SpecError> {
    let mut names = HashSet::new();
    for (index, (name, code)) in rows.enumerate() {
        let snake = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !snake {
            return Err(row(table, name, "expected a name in snake_case"));
        }
        if usize::from(code) != index + 1 {
            return Err(row(table, name, &format!("code {code}: expected {}", index + 1)));
        }
        if code > CODE_MAX {
            return Err(row(
                table,
                name,
                &format!("code {code}: expected at most {CODE_MAX}, the limit of the card's counters"),
            ));
        }
        if !names.insert(name) {
            return Err(row(table, name, "name used twice"));
        }
    }
    Ok(())
}

fn row(table: &str, name: &str, what: &str) -> SpecError {
    SpecError::Row { table: table.to_owned(), name: name.to_owned(), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../kinds.toml");

    fn error_of(from: &str, to: &str) -> String {
        let changed = TEXT.replacen(from, to, 1);
        assert_ne!(TEXT, changed, "'{from}' is not in the specification");
        Spec::parse(&changed).unwrap_err().to_string()
    }

    #[test]
    fn variants_are_camel_case() {
        assert_eq!(variant("no_route"), "NoRoute");
        assert_eq!(variant("ipv4"), "Ipv4");
    }

    #[test]
    fn broken_rules_are_named() {
        assert!(error_of("code = 4", "code = 5").contains("'arp_foreign': code 5: expected 4"));
        assert!(error_of("name = \"arp\"", "name = \"Arp\"").contains("snake_case"));
        assert!(error_of("name = \"arp\"", "name = \"rate_limited\"").contains("twice"));
        assert!(error_of("verdict = \"punt\"", "verdict = \"forward\"").contains("exactly the last"));
        assert!(error_of("[\"soft\", \"card\"]", "[\"moon\"]").contains("'moon'"));
        assert!(error_of("stage = \"queue\"", "stage = \"moon\"").contains("moon"));
        let row = "[[loss]]\nname = \"x\"\ncode = 0\nstage = \"queue\"\ndoc = \"\"\nwhen = \"\"\n\n";
        let many: String = (1..=32)
            .map(|code| {
                row.replace("\"x\"", &format!("\"x{code}\"")).replace("code = 0", &format!("code = {code}"))
            })
            .collect();
        let (before, after) = (TEXT.find("[[loss]]").unwrap(), TEXT.find("[[port_loss]]").unwrap());
        let text = format!("{}{many}{}", &TEXT[..before], &TEXT[after..]);
        assert!(Spec::parse(&text).unwrap_err().to_string().contains("'x32': code 32: expected at most 31"));
        assert!(error_of("format = 1", "format = 2").contains("expected 1"));
    }
}
