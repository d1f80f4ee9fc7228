//! `hueplane doctor`: shows what this machine lacks, and the commands to fix it.

use hue_host::doctor::{Check, checks, runs};
use hueplaned::node::catalogue;
use hueplaned::options;
use serde::Serialize;

use crate::cli::Doctor;
use crate::failure::Failure;
use crate::print::{DIM, GREEN, RED, YELLOW, result, styled};

#[derive(Serialize)]
struct Report {
    /// Whether networks can run.
    ok: bool,
    checks: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    ok: bool,
    required: bool,
    found: String,
    why: &'static str,
    /// The command to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Runs the command.
pub fn doctor(args: &Doctor) -> Result<(), Failure> {
    let checks = checks();
    let ok = runs(&checks);
    let checks = checks.into_iter().map(row).chain([card_images()]).collect();
    let report = Report { ok, checks };
    result(args.output.format, &report, || table(&report))?;
    if ok {
        return Ok(());
    }
    let missing = report.checks.iter().filter(|check| check.required && !check.ok).map(|check| check.name);
    Err(Failure::Broken(format!(
        "doctor: networks cannot run here: {}",
        missing.collect::<Vec<_>>().join(", ")
    )))
}

fn row(check: Check) -> Row {
    let fix = check.fix.filter(|_| !check.ok);
    Row { name: check.name, ok: check.ok, required: check.required, found: check.found, why: check.why, fix }
}

/// The images of the card that are installed, and the kinds of plane that each has.
fn card_images() -> Row {
    let images = catalogue(&options::images(), None);
    let usable = images.iter().any(|image| image.problem.is_none());
    let found: Vec<String> = images
        .into_iter()
        .map(|image| match image.problem {
            None => format!("{}: {}", image.name, image.kinds.join(", ")),
            Some(problem) => format!("{}: {problem}", image.name),
        })
        .collect();
    Row {
        name: "card images",
        ok: usable,
        required: false,
        found: if found.is_empty() { "none".to_owned() } else { found.join("; ") },
        why: "networks on the simulated card need an image with their kind; without one, all run in software",
        fix: (!usable).then(|| "make images NAMES=\"default kinds\"".to_owned()),
    }
}

fn table(report: &Report) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for check in &report.checks {
        let (style, mark) = match (check.ok, check.required) {
            (true, _) => (GREEN, "ok     "),
            (false, true) => (RED, "missing"),
            (false, false) => (YELLOW, "lacking"),
        };
        out.push_str(&format!("{}  {:<width$}  {}\n", styled(style, mark), check.name, check.found));
        if let Some(fix) = &check.fix {
            out.push_str(&format!("{:9}{:<width$}  {}\n", "", "", styled(DIM, check.why)));
            out.push_str(&format!("{:9}{:<width$}  {fix}\n", "", ""));
        }
    }
    out
}
