//! Rust from the specification: constants, and one enum for each table. The text is formatted as rustfmt formats it.

use std::fmt::Write;

use crate::spec::{Class, Counts, IpFamily, Kind, Spec, Values, variant};

/// The text of `crates/planes/src/generated/kinds.rs`.
pub fn emit(spec: &Spec) -> String {
    let mut out = String::from(HEAD);
    let limits = &spec.frame_limits;
    let _ = write!(
        out,
        "
/// Shortest frame that a port accepts, bytes.
pub const FRAME_BYTES_MIN: usize = {};
/// Longest frame that a port accepts, bytes.
pub const FRAME_BYTES_MAX: usize = {};
",
        limits.bytes_min, limits.bytes_max
    );
    metrics(&mut out, spec);
    kinds(&mut out, spec);
    let rows: Vec<Row> = spec
        .unclaimed
        .iter()
        .map(|one| Row {
            name: &one.name,
            verdict: "Drop".to_owned(),
            class: None,
            family: None,
            stage: "demux",
            doc: &one.doc,
            when: &one.when,
            source: &one.source,
        })
        .collect();
    out.push_str("\n/// Reasons why a frame belongs to no network, in the order in which they are tried.");
    table(&mut out, "", "Unclaimed", &rows);
    losses(&mut out, spec);
    port_losses(&mut out, spec);
    for kind in &spec.kind {
        plane(&mut out, kind);
    }
    out
}

const HEAD: &str = "\
// Generated from spec/kinds.toml and spec/kinds/ by spec/codegen: edit those files, then `cargo run -p hue-spec-codegen`.
use crate::spec::{Class, Metric, OutcomeRow, SettingRow, Verdict};
";

/// Methods of every table's enum. `COUNT` is replaced by the number of its rows.
const METHODS: &str = "    ];

    /// Number in counters and in hardware: its place in the order, from 1.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=COUNT => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Its row of the specification.
    #[must_use]
    pub const fn row(self) -> &'static OutcomeRow {
        &Self::ROWS[self as usize - 1]
    }

    /// Name in output, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What is done with the packet.
    #[inline]
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        self.row().verdict
    }
}
";

/// As in rustfmt.toml.
const LINE_CHARS_MAX: usize = 110;

struct Row<'a> {
    name: &'a str,
    verdict: String,
    class: Option<Class>,
    family: Option<&'a str>,
    stage: &'a str,
    doc: &'a str,
    when: &'a str,
    source: &'a str,
}

fn metrics(out: &mut String, spec: &Spec) {
    for metric in &spec.metric {
        let name = match metric.counts {
            Counts::Verdict => "METRIC_VERDICTS",
            Counts::Drop => "METRIC_DROPS",
            Counts::Punt => "METRIC_PUNTS",
            Counts::Unclaimed => "METRIC_UNCLAIMED",
            Counts::Loss => "METRIC_LOSSES",
            Counts::NetworkBytes => "METRIC_NETWORK_BYTES",
            Counts::FamilyVerdict => "METRIC_NETWORK_FAMILY_VERDICTS",
            Counts::PortVerdict => "METRIC_NETWORK_PORT_VERDICTS",
            Counts::PortPackets => "METRIC_PORT_PACKETS",
            Counts::PortBytes => "METRIC_PORT_BYTES",
            Counts::PortLoss => "METRIC_PORT_LOSSES",
        };
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("{label:?}")).collect();
        let _ = write!(
            out,
            "
/// {doc}
pub const {name}: Metric = Metric {{
    name: {text:?},
    labels: &[{labels}],
    doc: {doc:?},
}};
",
            doc = metric.doc,
            text = metric.name,
            labels = labels.join(", ")
        );
    }
}

fn kinds(out: &mut String, spec: &Spec) {
    out.push_str(
        "
/// Kinds of plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Kind {
",
    );
    for kind in &spec.kind {
        let _ = writeln!(out, "    /// {}", kind.doc);
        gate(out, "    ", kind);
        let _ = writeln!(out, "    {} = {},", variant(&kind.name), kind.id);
    }
    let array = |name: &str, kinds: &[&Kind]| {
        array("", name, kinds.iter().map(|kind| format!("Self::{}", variant(&kind.name))).collect())
    };
    let (offered, every): (Vec<_>, Vec<_>) = (spec.offered().collect(), spec.kind.iter().collect());
    let _ = write!(
        out,
        "}}

impl Kind {{
    /// The kinds that a network of a document can be of.
{}
    /// All kinds: those that are offered and, with feature `test-kinds`, those that exist only in tests.
    #[cfg(not(feature = {TEST_KINDS:?}))]
    pub const ALL: [Self; {}] = Self::OFFERED;
    /// All kinds: those that are offered, and those that exist only in tests.
    #[cfg(feature = {TEST_KINDS:?})]
{}
    /// Name in kinds.toml, intent and output.
    #[must_use]
    pub const fn name(self) -> &'static str {{
        match self {{
",
        array("OFFERED", &offered),
        offered.len(),
        array("ALL", &every)
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => {:?},", variant(&kind.name), kind.name);
    }
    out.push_str(
        "        }
    }

    /// Substrates on which it runs.
    #[must_use]
    pub const fn runs_on(self) -> &'static [&'static str] {
        match self {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => &{:?},", variant(&kind.name), kind.runs_on);
    }
    out.push_str(
        "        }
    }

    /// What a network says about its plane: the fields of `plane` in its document besides `kind`.
    #[must_use]
    pub const fn settings(self) -> &'static [SettingRow] {
        match self {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => &{}::SETTINGS,", variant(&kind.name), kind.name);
    }
    out.push_str(
        "        }
    }

    /// The kind of an id: its number in files, images and hardware.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            {} => Some(Self::{}),", kind.id, variant(&kind.name));
    }
    out.push_str(
        "            _ => None,
        }
    }

    /// Its outcomes, in the order of their codes, from 1. Those from [`Kind::first_forward`] on forward.
    #[must_use]
    pub const fn outcomes(self) -> &'static [OutcomeRow] {
        match self {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => &{}::Outcome::ROWS,", variant(&kind.name), kind.name);
    }
    out.push_str(
        "        }
    }

    /// Code of its first outcome that forwards.
    #[inline(always)]
    #[must_use]
    pub const fn first_forward(self) -> u8 {
        match self {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => {},", variant(&kind.name), kind.first_forward());
    }
    out.push_str(
        "        }
    }

    /// Code of its outcome of class [`Class::Flood`]; 0 if it has none.
    #[inline(always)]
    #[must_use]
    pub const fn flood(self) -> u8 {
        match self {
",
    );
    for kind in &spec.kind {
        gate(out, "            ", kind);
        let _ = writeln!(out, "            Self::{} => {},", variant(&kind.name), kind.flood());
    }
    out.push_str("        }\n    }\n}\n");
    planes(out, spec);
    for (one, code) in spec.first.iter().zip(1u8..) {
        let name = one.name.to_uppercase();
        let _ =
            write!(out, "\n/// The code, in every kind: {}\npub const CODE_{name}: u8 = {code};\n", one.doc);
    }
}

/// The feature that has kinds which exist only in tests.
const TEST_KINDS: &str = "test-kinds";

/// What precedes an item of a kind.
fn gate(out: &mut String, pad: &str, kind: &Kind) {
    if kind.test_only {
        let _ = writeln!(out, "{pad}#[cfg(feature = {TEST_KINDS:?})]");
    }
}

/// Macros that select a kind's module, so that no other code has a list of kinds. The condition is outside of them: inside,
/// it would ask for features of the crate that uses them.
fn planes(out: &mut String, spec: &Spec) {
    let offered: Vec<_> = spec.offered().collect();
    let every: Vec<_> = spec.kind.iter().collect();
    for (condition, kinds) in
        [("not(feature = \"test-kinds\")", offered), ("feature = \"test-kinds\"", every)]
    {
        let _ = write!(
            out,
            "
/// Evaluates an expression with the type of a kind's plane: `with_plane!(kind, P => P::KIND)`.
#[cfg({condition})]
#[macro_export]
macro_rules! with_plane {{
    ($kind:expr, $plane:ident => $body:expr) => {{
        match $kind {{
"
        );
        for kind in &kinds {
            let _ = write!(
                out,
                "            $crate::Kind::{} => {{
                type $plane = $crate::{}::Plane;
                $body
            }}
",
                variant(&kind.name),
                kind.name
            );
        }
        let all: Vec<_> = kinds.iter().map(|kind| format!("{} {}", variant(&kind.name), kind.name)).collect();
        let _ = write!(
            out,
            "        }}
    }};
}}

/// Passes variant and module of every kind to a macro.
#[cfg({condition})]
#[macro_export]
macro_rules! for_each_plane {{
    ($macro:ident) => {{
        $macro! {{ {} }}
    }};
}}
",
            all.join(" ")
        );
    }
}

fn losses(out: &mut String, spec: &Spec) {
    let stages: Vec<String> = spec.loss.iter().map(|one| one.stage.word()).collect();
    let rows: Vec<Row> = spec
        .loss
        .iter()
        .zip(&stages)
        .map(|(one, stage)| Row {
            name: &one.name,
            verdict: "Drop".to_owned(),
            class: None,
            family: None,
            stage,
            doc: &one.doc,
            when: &one.when,
            source: "hueplane",
        })
        .collect();
    out.push_str("\n/// Reasons why a packet is lost outside its plane.");
    table(out, "", "Loss", &rows);
}

fn port_losses(out: &mut String, spec: &Spec) {
    let rows: Vec<Row> = spec
        .port_loss
        .iter()
        .map(|one| Row {
            name: &one.name,
            verdict: "Drop".to_owned(),
            class: None,
            family: None,
            stage: "port",
            doc: &one.doc,
            when: &one.when,
            source: "hueplane",
        })
        .collect();
    out.push_str("\n/// Reasons why a physical port loses a frame.");
    table(out, "", "PortLoss", &rows);
}

fn plane(out: &mut String, kind: &Kind) {
    let limits = &kind.limits;
    let _ = writeln!(out, "\n/// Outcomes and limits of the `{}` kind.", kind.name);
    gate(out, "", kind);
    let _ = write!(
        out,
        "pub mod {name} {{
    use super::{{{class}Kind, OutcomeRow, SettingRow, Verdict}};
    use crate::plane::{{Families, Keys}};
    use crate::reason::Reason;{imports}

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::{};
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families {{ v4: {}, v6: {} }};
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = {};
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = {};
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = {};
{settings}
    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.",
        kind.keys().variant(),
        kind.has_ip(IpFamily::Ipv4),
        kind.has_ip(IpFamily::Ipv6),
        limits.next_hops_max,
        limits.mtu_bytes_min,
        limits.mtu_bytes_max,
        class = if kind.outcome.iter().any(|one| one.class.is_some()) { "Class, " } else { "" },
        imports = setting_imports(kind),
        settings = settings(kind),
        name = kind.name,
    );
    let rows: Vec<Row> = kind
        .outcome
        .iter()
        .map(|one| Row {
            name: &one.name,
            verdict: one.verdict.variant(),
            class: one.class,
            family: one.family.as_deref(),
            stage: &one.stage,
            doc: &one.doc,
            when: &one.when,
            source: &one.source,
        })
        .collect();
    table(out, "    ", "Outcome", &rows);
    for family in &kind.family {
        let names = family.outcomes.iter().map(|name| format!("        Outcome::{},\n", variant(name)));
        let _ = write!(
            out,
            "
    /// For each outcome of kind `{kind}`, by its place in the order, which one of this kind it is.
    pub const OF_{upper}: [Outcome; super::{kind}::Outcome::COUNT] = [
{names}    ];
",
            kind = family.kind,
            upper = family.kind.to_uppercase(),
            names = names.collect::<String>()
        );
    }
    let _ = write!(
        out,
        "
    impl From<Outcome> for Reason {{
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {{
            Self::of(Kind::{name}, outcome.code())
        }}
    }}

    impl PartialEq<Outcome> for Reason {{
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {{
            *self == Self::of(Kind::{name}, outcome.code())
        }}
    }}
}}
",
        name = variant(&kind.name)
    );
}

/// The import of what a kind's settings are made of.
fn setting_imports(kind: &Kind) -> String {
    let mut variants: Vec<&str> = kind.setting.iter().map(|one| setting_variant(&one.values)).collect();
    variants.sort_unstable();
    variants.dedup();
    let range = if variants.contains(&"Range") { "\n    use crate::spec::SettingRange;" } else { "" };
    match &variants[..] {
        [] => String::new(),
        [one] => format!("{range}\n    use crate::spec::SettingValues::{one};"),
        _ => format!("{range}\n    use crate::spec::SettingValues::{{{}}};", variants.join(", ")),
    }
}

/// The variant of a setting's values in Rust.
fn setting_variant(values: &Values) -> &'static str {
    match values {
        Values::Number { .. } => "Range",
        Values::Flag { .. } => "Flag",
        Values::Choice(_) => "Choice",
        Values::List { .. } => "List",
        Values::Other { .. } => "Other",
    }
}

/// A constant for each setting that is a number, and one for all settings.
fn settings(kind: &Kind) -> String {
    let mut out = String::new();
    let mut rows = Vec::new();
    for one in &kind.setting {
        let values = match &one.values {
            Values::Number { min, max, multiple_of, default } => {
                let integer = integer(*max);
                let [min, max, multiple_of, default] =
                    [min, max, multiple_of, default].map(|number| grouped(*number));
                let range = format!(
                    "SettingRange {{ min: {min}, max: {max}, multiple_of: {multiple_of}, default: {default} }}"
                );
                let _ = writeln!(out, "    /// Values of setting `{}`.", one.name);
                let head = format!("    pub const {}: SettingRange<{integer}> =", one.name.to_uppercase());
                out.push_str(&assigned(&head, &range));
                format!("({range})")
            }
            Values::Flag { default } => format!(" {{ default: {default} }}"),
            Values::Choice(words) => format!("(&{words:?})"),
            Values::List { words, default } => {
                format!(" {{ words: &{words:?}, default: &{default:?} }}")
            }
            Values::Other { .. } => String::new(),
        };
        rows.push([
            format!("name: {:?}", one.name),
            format!("values: {}{values}", setting_variant(&one.values)),
        ]);
    }
    out.push_str("    /// What a network may say about its plane.\n");
    let head = format!("    pub const SETTINGS: [SettingRow; {}] =", rows.len());
    let line = |[name, values]: &[String; 2]| format!("SettingRow {{ {name}, {values} }}");
    let all = assigned(&head, &format!("[{}]", rows.iter().map(line).collect::<Vec<_>>().join(", ")));
    if all.lines().all(|line| line.len() <= LINE_CHARS_MAX) {
        out.push_str(&all);
    } else if let [[name, values]] = &rows[..] {
        let _ = writeln!(out, "{head} [SettingRow {{\n        {name},\n        {values},\n    }}];");
    } else {
        let _ = writeln!(out, "{head} [");
        for row in &rows {
            let one = format!("        {},\n", line(row));
            let [name, values] = row;
            let lines =
                format!("        SettingRow {{\n            {name},\n            {values},\n        }},\n");
            out.push_str(if one.trim_end().len() <= LINE_CHARS_MAX { &one } else { &lines });
        }
        out.push_str("    ];\n");
    }
    out
}

/// A constant's name and value on one line if they fit, otherwise on two.
fn assigned(head: &str, value: &str) -> String {
    let fits = head.len() + value.len() + 2 <= LINE_CHARS_MAX;
    format!("{head}{}{value};\n", if fits { " " } else { "\n        " })
}

/// The smallest type of whole numbers up to this one.
fn integer(max: u64) -> &'static str {
    match max {
        0..=0xff => "u8",
        0x100..=0xffff => "u16",
        0x1_0000..=0xffff_ffff => "u32",
        _ => "u64",
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join("_")
}

/// On one line if it fits, otherwise on two, as rustfmt formats it.
fn array_of_all(pad: &str, rows: &[Row]) -> String {
    array(pad, "ALL", rows.iter().map(|row| format!("Self::{}", variant(row.name))).collect())
}

fn array(pad: &str, name: &str, names: Vec<String>) -> String {
    let count = names.len();
    let head = format!("    pub const {name}: [Self; {count}] = [");
    let line = format!("{head}{}];\n", names.join(", "));
    if pad.len() + line.trim_end().len() <= LINE_CHARS_MAX {
        return line;
    }
    let line = format!("        [{}];\n", names.join(", "));
    if pad.len() + line.trim_end().len() <= LINE_CHARS_MAX {
        return format!("    pub const {name}: [Self; {count}] =\n{line}");
    }
    let names: String = names.iter().map(|name| format!("        {name},\n")).collect();
    format!("{head}\n{names}    ];\n")
}

fn table(out: &mut String, pad: &str, name: &str, rows: &[Row]) {
    let mut text = format!(
        "
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum {name} {{
"
    );
    for (index, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "    /// {}\n    {} = {},", row.doc, variant(row.name), index + 1);
    }
    let _ = write!(
        text,
        "}}

impl {name} {{
    /// Number of variants.
    pub const COUNT: usize = {count};

    /// All variants, in order.
{all}
    /// Their rows of the specification, in order.
    pub const ROWS: [OutcomeRow; {count}] = [
",
        all = array_of_all(pad, rows),
        count = rows.len()
    );
    for row in rows {
        let _ = write!(
            text,
            "        OutcomeRow {{
            name: {:?},
            verdict: Verdict::{},
            class: {},
            family: {:?},
            stage: {:?},
            doc: {:?},
            when: {:?},
            source: {:?},
        }},
",
            row.name,
            row.verdict,
            row.class.map_or_else(|| "None".to_owned(), |class| format!("Some(Class::{})", class.variant())),
            row.family,
            row.stage,
            row.doc,
            row.when,
            row.source
        );
    }
    text.push_str(METHODS);
    let text = text.replace("1..=COUNT", &format!("1..={}", rows.len()));
    for line in text.lines() {
        let pad = if line.is_empty() { "" } else { pad };
        let _ = writeln!(out, "{pad}{line}");
    }
}
