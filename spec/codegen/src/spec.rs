//! The types of `spec/kinds.toml` and `spec/kinds/NAME.toml`, and the rules that they must follow.
//!
//! Files that parse here have codes 1, 2, 3 … in each table, and unique names in snake case. In each kind, the outcomes that
//! forward are the last ones, and the last one always holds. A kind has the name of its file.

use std::collections::HashSet;
use std::num::NonZeroU64;

use serde::Deserialize;
use thiserror::Error;

/// An error in the specification; its author's fault.
#[derive(Debug, Error)]
pub enum SpecError {
    #[error("{file}: {error}")]
    Toml { file: String, error: toml::de::Error },
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

/// What outcomes mean to other parts of hueplane; see `spec/kinds.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Own,
    GuardArp,
    GuardNd,
    Unreachable,
    Foreign,
    Flood,
    Storm,
    Delegated,
}

impl Class {
    /// Variant in Rust.
    pub fn variant(self) -> String {
        format!("{self:?}")
    }

    /// Word in the specification and in docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::GuardArp => "guard_arp",
            Self::GuardNd => "guard_nd",
            Self::Unreachable => "unreachable",
            Self::Foreign => "foreign",
            Self::Flood => "flood",
            Self::Storm => "storm",
            Self::Delegated => "delegated",
        }
    }

    /// The verdict of outcomes of this class.
    const fn verdict(self) -> Verdict {
        match self {
            Self::Own | Self::GuardArp | Self::GuardNd | Self::Unreachable | Self::Delegated => Verdict::Punt,
            Self::Foreign | Self::Storm => Verdict::Drop,
            Self::Flood => Verdict::Forward,
        }
    }
}

/// The whole specification.
#[derive(Debug)]
pub struct Spec {
    pub frame_limits: FrameLimits,
    pub metric: Vec<Metric>,
    pub unclaimed: Vec<Unclaimed>,
    pub loss: Vec<Loss>,
    pub port_loss: Vec<PortLoss>,
    /// The first outcomes of every kind.
    pub first: Vec<Outcome>,
    /// By id; each with all of its outcomes.
    pub kind: Vec<Kind>,
}

/// `spec/kinds.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    format: u32,
    frame_limits: FrameLimits,
    metric: Vec<Metric>,
    outcome: Vec<Outcome>,
    unclaimed: Vec<Unclaimed>,
    loss: Vec<Loss>,
    port_loss: Vec<PortLoss>,
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
    FamilyVerdict,
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

/// `spec/kinds/NAME.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    pub name: String,
    pub id: u8,
    pub runs_on: Vec<String>,
    /// Whether it exists only in tests: behind a feature in Rust, and nowhere else.
    #[serde(default)]
    pub test_only: bool,
    pub doc: String,
    pub limits: Limits,
    /// Address families of the kernel in its namespace, if the tables do not say them.
    #[serde(default)]
    pub kernel: Vec<IpFamily>,
    #[serde(default)]
    pub question: Vec<Question>,
    #[serde(default)]
    pub family: Vec<Family>,
    #[serde(default)]
    pub setting: Vec<Setting>,
    #[serde(default)]
    pub term: Vec<Term>,
    pub outcome: Vec<Outcome>,
}

impl Kind {
    /// Code of the first outcome that forwards; those behind it do too.
    pub fn first_forward(&self) -> usize {
        let others = self.outcome.iter().rposition(|one| one.verdict != Verdict::Forward);
        others.map_or(1, |last| last + 2)
    }

    /// Whether the kernel in its namespace has an address family.
    pub fn has_ip(&self, family: IpFamily) -> bool {
        let keys = self.keys();
        self.kernel.contains(&family)
            || keys == Keys::Dual
            || keys == Keys::Slices && family == IpFamily::Ipv4
            || keys == if family == IpFamily::Ipv4 { Keys::V4 } else { Keys::V6 }
    }

    /// What its tables are keyed by.
    pub fn keys(&self) -> Keys {
        if self.question.is_empty() {
            return Keys::None;
        }
        let asked = |by, bits| self.question.iter().any(|one| one.by == by && one.key_bits == bits);
        match (asked(Match::LongestPrefix, 32), asked(Match::LongestPrefix, 128)) {
            (true, true) => Keys::Dual,
            (true, false) => Keys::V4,
            (false, true) => Keys::V6,
            (false, false) if asked(Match::LongestPrefix, 40) => Keys::Slices,
            (false, false) if self.question.iter().any(|one| one.by == Match::Ternary) => Keys::Bits,
            (false, false) if self.question.iter().any(|one| one.by == Match::Nearest) => Keys::Label,
            (false, false) => Keys::Mac,
        }
    }

    /// Code of its outcome of class flood; 0 if it has none.
    pub fn flood(&self) -> usize {
        self.outcome.iter().position(|one| one.class == Some(Class::Flood)).map_or(0, |at| at + 1)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub next_hops_max: u32,
    pub mtu_bytes_min: u32,
    pub mtu_bytes_max: u32,
}

/// A family of packets in a kind that has those of several kinds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The kind whose outcomes its packets have.
    pub kind: String,
    /// Its name in docs.
    pub name: String,
    /// The EtherType of its packets.
    pub ethertype: String,
    /// For each outcome of that kind, in order, which outcome of this kind it is.
    #[serde(skip)]
    pub outcomes: Vec<String>,
}

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpFamily {
    Ipv4,
    Ipv6,
}

/// What the tables of a kind are keyed by, as `hue_planes::Keys`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    V4,
    V6,
    Dual,
    Slices,
    Mac,
    Bits,
    Label,
    None,
}

impl Keys {
    /// Variant in Rust.
    pub fn variant(self) -> String {
        format!("{self:?}")
    }
}

/// How a table compares its keys with a question's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    LongestPrefix,
    Exact,
    Ternary,
    Nearest,
}

impl Match {
    /// Words in docs.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LongestPrefix => "longest prefix",
            Self::Exact => "exact",
            Self::Ternary => "ternary",
            Self::Nearest => "nearest",
        }
    }
}

/// What the plane looks up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    #[serde(rename = "match")]
    pub by: Match,
    pub key_bits: u32,
    pub key: String,
}

/// What a network may say about its plane.
#[derive(Debug, Deserialize)]
#[serde(try_from = "SettingFields")]
pub struct Setting {
    pub name: String,
    pub values: Values,
    pub doc: String,
    pub source: String,
}

/// The values that a setting can have.
#[derive(Debug)]
pub enum Values {
    /// A whole number.
    Number { min: u64, max: u64, multiple_of: u64, default: u64 },
    /// True or false.
    Flag { default: bool },
    /// One of some words, of which the first is the default.
    Choice(Vec<String>),
    /// A list of some words.
    List { words: Vec<String>, default: Vec<String> },
    /// Anything else: a description, and one of what holds without it.
    Other { values: String, default: String },
}

/// A [`Setting`] as files have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingFields {
    name: String,
    /// A whole number: the least and the largest.
    range: Option<[u64; 2]>,
    /// What the number must be a multiple of.
    multiple_of: Option<NonZeroU64>,
    /// One of these words, of which the first is the default; several of them if the default is a list.
    choices: Option<Vec<String>>,
    /// Anything else: a description of it.
    values: Option<String>,
    default: toml::Value,
    doc: String,
    source: String,
}

impl TryFrom<SettingFields> for Setting {
    type Error = String;

    fn try_from(of: SettingFields) -> Result<Self, String> {
        use toml::Value::{Array, Boolean, Integer, String as Text};
        let values = match (of.range, of.multiple_of, of.choices, of.values, of.default) {
            (Some([min, max]), multiple_of, None, None, Integer(default)) => {
                let multiple_of = multiple_of.map_or(1, NonZeroU64::get);
                let fits = |number: &u64| (min..=max).contains(number) && number.is_multiple_of(multiple_of);
                u64::try_from(default)
                    .ok()
                    .filter(|default| [min, max, *default].iter().all(fits))
                    .map(|default| Values::Number { min, max, multiple_of, default })
            }
            (None, None, None, None, Boolean(default)) => Some(Values::Flag { default }),
            (None, None, Some(words), None, Text(default)) if words.first() == Some(&default) => {
                Some(Values::Choice(words))
            }
            (None, None, Some(words), None, Array(list)) => {
                let known =
                    |word: toml::Value| word.as_str().map(str::to_owned).filter(|word| words.contains(word));
                let default: Option<Vec<String>> = list.into_iter().map(known).collect();
                default.map(|default| Values::List { words, default })
            }
            (None, None, None, Some(values), Text(default)) => Some(Values::Other { values, default }),
            _ => None,
        };
        let wrong = format!(
            "'{}': expected one of range, choices and values, or none of them, and a default that is such a value (the \
             first of choices)",
            of.name
        );
        Ok(Self { name: of.name, values: values.ok_or(wrong)?, doc: of.doc, source: of.source })
    }
}

/// A term of conditions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub name: String,
    pub means: String,
    pub doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub name: String,
    /// The kind of the family that it belongs to, in a kind with several.
    pub family: Option<String>,
    pub verdict: Verdict,
    pub class: Option<Class>,
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
    /// The kinds that a network can be of.
    pub fn offered(&self) -> impl Iterator<Item = &Kind> {
        self.kind.iter().filter(|kind| !kind.test_only)
    }

    /// The kinds that the card's logic has.
    pub fn on_card(&self) -> impl Iterator<Item = &Kind> {
        self.offered().filter(|kind| kind.runs_on.iter().any(|place| place == "card"))
    }

    /// Reads and checks a specification: the text of `spec/kinds.toml`, and name and text of each kind's file.
    pub fn parse(common: &str, kinds: &[(String, String)]) -> Result<Self, SpecError> {
        let toml = |file: &str| {
            let file = file.to_owned();
            move |error| SpecError::Toml { file, error }
        };
        let common: Common = toml::from_str(common).map_err(toml("kinds.toml"))?;
        if common.format != 1 {
            return Err(row("format", &common.format.to_string(), "expected 1"));
        }
        let Common { frame_limits, metric, outcome: first, unclaimed, loss, port_loss, .. } = common;
        let mut all = Vec::new();
        for (name, text) in kinds {
            let mut kind: Kind = toml::from_str(text).map_err(toml(&format!("kinds/{name}.toml")))?;
            if kind.name != *name {
                return Err(row("kind", &kind.name, &format!("expected '{name}', the name of its file")));
            }
            kind.outcome.splice(0..0, first.iter().cloned());
            all.push(kind);
        }
        all.sort_by_key(|kind| kind.id);
        let bases: Vec<(String, Vec<Outcome>)> =
            all.iter().map(|kind| (kind.name.clone(), kind.outcome.clone())).collect();
        for kind in &mut all {
            add_families(kind, &bases)?;
        }
        let spec = Self { frame_limits, metric, unclaimed, loss, port_loss, first, kind: all };
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        check_codes("unclaimed", self.unclaimed.iter().map(|one| (one.name.as_str(), one.code)))?;
        check_codes("loss", self.loss.iter().map(|one| (one.name.as_str(), one.code)))?;
        check_codes("port_loss", self.port_loss.iter().map(|one| (one.name.as_str(), one.code)))?;
        let mut ids = HashSet::new();
        for kind in &self.kind {
            if kind.id == 0 || !ids.insert(kind.id) {
                return Err(row(
                    "kind",
                    &kind.name,
                    &format!("id {}: expected one of its own, not 0", kind.id),
                ));
            }
            check_kind(kind)?;
        }
        Ok(())
    }
}

/// Adds the outcomes of a kind's families, given those of all kinds: see `spec/kinds/dual.toml`.
fn add_families(kind: &mut Kind, bases: &[(String, Vec<Outcome>)]) -> Result<(), SpecError> {
    let mut forwards = Vec::new();
    for family in &mut kind.family {
        let Some((_, base)) = bases.iter().find(|(name, _)| *name == family.kind && *name != kind.name)
        else {
            return Err(row(
                &format!("kind {}", kind.name),
                &family.kind,
                "no other kind: expected one of a family",
            ));
        };
        for one in base {
            let name = format!("{}_{}", family.kind, one.name);
            let own = kind.outcome.iter().find(|own| own.name == one.name || own.name == name);
            if let Some(own) = own {
                if (own.verdict, own.class) != (one.verdict, one.class) {
                    let reason = "expected the verdict and class that it has in its families' kinds";
                    return Err(row(&format!("kind {}", kind.name), &own.name, reason));
                }
                family.outcomes.push(own.name.clone());
                continue;
            }
            family.outcomes.push(name.clone());
            let is = format!("be16(12) = {}", family.ethertype);
            let when = if one.when == "true" { is } else { format!("{is} and ({})", one.when) };
            let doc = format!("{}: {}", family.name, one.doc);
            let composed = Outcome { name, family: Some(family.kind.clone()), doc, when, ..one.clone() };
            let list = if one.verdict == Verdict::Forward { &mut forwards } else { &mut kind.outcome };
            list.push(composed);
        }
    }
    if let Some(last) = forwards.last_mut() {
        "true".clone_into(&mut last.when);
    }
    kind.outcome.append(&mut forwards);
    Ok(())
}

fn check_kind(kind: &Kind) -> Result<(), SpecError> {
    let table = format!("kind {}", kind.name);
    check_codes(&table, kind.outcome.iter().zip(1u8..).map(|(one, code)| (one.name.as_str(), code)))?;
    for (index, one) in kind.outcome.iter().enumerate() {
        let last = index + 1 == kind.outcome.len();
        if (one.when == "true") != last {
            return Err(row(&table, &one.name, "exactly the last outcome must always hold"));
        }
        if (one.verdict == Verdict::Forward) != (index + 1 >= kind.first_forward()) {
            return Err(row(&table, &one.name, "expected the outcomes that forward after all others"));
        }
        let forwards = one.verdict == Verdict::Forward && one.class.is_none();
        if last && !forwards && one.class != Some(Class::Delegated) {
            let what = "the last outcome must forward without a class, or be of class delegated";
            return Err(row(&table, &one.name, what));
        }
        if let Some(class) = one.class.filter(|class| class.verdict() != one.verdict) {
            let what = format!("class {}: expected verdict {}", class.word(), class.verdict().word());
            return Err(row(&table, &one.name, &what));
        }
    }
    for class in [Class::Foreign, Class::Flood, Class::Storm] {
        if kind.outcome.iter().filter(|one| one.class == Some(class)).count() > 1 {
            let what = format!("expected at most one outcome of class {}", class.word());
            return Err(row(&table, &kind.name, &what));
        }
    }
    let has = |class| kind.outcome.iter().any(|one| one.class == Some(class));
    if has(Class::Storm) && !has(Class::Flood) {
        return Err(row(&table, &kind.name, "an outcome of class storm, but none of class flood"));
    }
    if kind.question.is_empty() != has(Class::Delegated) || kind.question.len() > QUESTIONS_MAX {
        let what = format!(
            "{} questions: expected 1 to {QUESTIONS_MAX}, or none if an outcome is of class delegated",
            kind.question.len()
        );
        return Err(row(&table, &kind.name, &what));
    }
    let place = |place: &String| matches!(place.as_str(), "soft" | "card");
    match kind.runs_on.iter().find(|name| !place(name)) {
        Some(name) => Err(row(&table, name, "no substrate: expected soft or card")),
        None => Ok(()),
    }
}

/// Most questions of a packet.
const QUESTIONS_MAX: usize = 2;
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

    const COMMON: &str = include_str!("../../kinds.toml");
    const IPV4: &str = include_str!("../../kinds/ipv4.toml");

    fn parse(common: &str, kind: &str) -> Result<Spec, SpecError> {
        Spec::parse(common, &[("ipv4".to_owned(), kind.to_owned())])
    }

    fn error_of(from: &str, to: &str) -> String {
        let change = |text: &str| text.replacen(from, to, 1);
        let (common, kind) = (change(COMMON), change(IPV4));
        assert!(common != COMMON || kind != IPV4, "'{from}' is not in the specification");
        parse(&common, &kind).unwrap_err().to_string()
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
        assert!(
            error_of("verdict = \"punt\"", "verdict = \"forward\"").contains("that forward after all others")
        );
        assert!(error_of("[\"soft\", \"card\"]", "[\"moon\"]").contains("'moon'"));
        assert!(error_of("stage = \"queue\"", "stage = \"moon\"").contains("moon"));
        for (from, to) in [
            ("default = \"drop\"", "default = \"moon\""),
            ("default = \"drop\"", "default = [\"moon\"]"),
            ("default = \"drop\"", "default = 1"),
            ("default = \"drop\"", "default = \"drop\"\nmultiple_of = 8"),
            ("default = \"drop\"", "default = \"drop\"\nrange = [0, 1]"),
        ] {
            assert!(error_of(from, to).contains("'martians': expected one of range, choices"), "{to}");
        }
        assert!(
            error_of("name = \"ipv4\"", "name = \"ipv9\"").contains("expected 'ipv4', the name of its file")
        );
        assert!(error_of("id = 1", "id = 0").contains("id 0: expected one of its own"));
        assert!(
            error_of("class = \"own\"", "class = \"foreign\"")
                .contains("class foreign: expected verdict drop")
        );
        assert!(
            error_of("class = \"foreign\"", "class = \"own\"").contains("class own: expected verdict punt")
        );
        assert!(error_of("class = \"foreign\"", "class = \"moon\"").contains("kinds/ipv4.toml: "));
        assert!(error_of("[[question]]", "[[question]]\nkind = 1").contains("unknown field `kind`"));
        let row = "[[loss]]\nname = \"x\"\ncode = 0\nstage = \"queue\"\ndoc = \"\"\nwhen = \"\"\n\n";
        let many: String = (1..=32)
            .map(|code| {
                row.replace("\"x\"", &format!("\"x{code}\"")).replace("code = 0", &format!("code = {code}"))
            })
            .collect();
        let (before, after) = (COMMON.find("[[loss]]").unwrap(), COMMON.find("[[port_loss]]").unwrap());
        let text = format!("{}{many}{}", &COMMON[..before], &COMMON[after..]);
        let error = parse(&text, IPV4).unwrap_err().to_string();
        assert!(error.contains("'x32': code 32: expected at most 31"), "{error}");
        assert!(error_of("format = 1", "format = 2").contains("expected 1"));
    }

    #[test]
    fn a_kind_of_families_has_their_outcomes_under_their_names() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let dual = include_str!("../../kinds/dual.toml");
        let kinds = |dual: &str| {
            [file("ipv4", IPV4), file("ipv6", include_str!("../../kinds/ipv6.toml")), file("dual", dual)]
        };
        let spec = Spec::parse(COMMON, &kinds(dual)).unwrap();
        let [four, six, both] = &spec.kind[..] else { panic!("three kinds") };
        for (family, base) in both.family.iter().zip([four, six]) {
            assert_eq!(family.outcomes.len(), base.outcome.len());
            for (name, one) in family.outcomes.iter().zip(&base.outcome) {
                let other = both.outcome.iter().find(|other| other.name == *name).unwrap();
                assert_eq!((other.verdict, other.class, &other.stage), (one.verdict, one.class, &one.stage));
                let is_own = other.family.as_ref() == Some(&base.name);
                assert!(is_own || *name == one.name, "{name}");
            }
        }
        let last: Vec<_> = both.outcome.iter().rev().take(2).map(|one| (&*one.name, &*one.when)).collect();
        assert_eq!(last, [("ipv6_forward", "true"), ("ipv4_forward", "be16(12) = 0x0800")]);
        let error = Spec::parse(COMMON, &kinds(&dual.replacen("kind = \"ipv6\"", "kind = \"ipv9\"", 1)));
        assert!(error.unwrap_err().to_string().contains("'ipv9': no other kind"));
    }

    #[test]
    fn an_id_is_used_once() {
        let other = IPV4.replacen("\"ipv4\"", "\"ipv9\"", 1);
        let kinds = [("ipv4".to_owned(), IPV4.to_owned()), ("ipv9".to_owned(), other)];
        let error = Spec::parse(COMMON, &kinds).unwrap_err().to_string();
        assert!(error.contains("'ipv9': id 1: expected one of its own"), "{error}");
    }

    #[test]
    fn the_first_outcomes_of_a_kind_are_those_of_every_kind() {
        let spec = parse(COMMON, IPV4).unwrap();
        let names: Vec<&str> = spec.kind[0].outcome.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names[..3], ["gated", "rate_limited", "arp"]);
    }
}
