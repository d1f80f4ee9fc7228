//! `hueplane status`: one screen that says whether all is well, and an exit code that says it to scripts.

use hueplaned::api::{CardState, Health, LogPlace, LogTarget, Status, Summary};
use serde::Serialize;

use super::history::pending_text;
use super::{client, moment};
use crate::cli::{Connection, Status as Arguments};
use crate::failure::Failure;
use crate::print::{BOLD, GREEN, RED, YELLOW, count, result, styled};

/// What the command prints.
#[derive(Serialize)]
struct Overview {
    /// Whether all is well.
    well: bool,
    /// Seconds since the daemon started.
    uptime_s: u64,
    /// Why the forwarding threads do not have the desired scheduling.
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduling_note: Option<String>,
    #[serde(flatten)]
    status: Status,
}

/// Runs the command.
pub fn status(args: &Arguments, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let status = client.status()?;
    // A daemon that is starting does not answer this yet.
    let scheduling_note = client.node().ok().and_then(|node| node.scheduling_note);
    // Its clock and this one may differ.
    let uptime_s = status.time.seconds_since(status.started) as u64;
    let well = is_well(&status);
    let overview = Overview { well, uptime_s, scheduling_note, status };
    result(args.output.format, &overview, || text(&overview))?;
    if well {
        return Ok(());
    }
    let Status { health, troubles, .. } = &overview.status;
    Err(Failure::NotWell(match (health, troubles.len() as u64) {
        (Health::Starting | Health::Stopping, _) => format!("the daemon is {}", health.name()),
        (Health::Running | Health::Degraded, 0) => "not all ports and networks run yet".to_owned(),
        (Health::Running | Health::Degraded, problems) => count(problems, "problem"),
    }))
}

fn is_well(status: &Status) -> bool {
    let all = |summary: &Summary| summary.up == summary.total;
    status.health == Health::Running
        && status.troubles.is_empty()
        && all(&status.networks)
        && status.ports.as_ref().is_none_or(all)
}

fn text(overview: &Overview) -> String {
    let status = &overview.status;
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        out.push_str(&format!("{}{text}\n", styled(BOLD, format!("{name:<10}"))));
    };
    let well = match (overview.well, status.health) {
        (true, _) => styled(GREEN, "all is well"),
        (false, health @ (Health::Starting | Health::Stopping)) => styled(YELLOW, health.name()),
        (false, _) => styled(RED, "not well"),
    };
    line("status", well);
    let pid = status.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    line("daemon", format!("version {}{pid}", status.version));
    line("node", format!("{}, up {} since {}", status.node, time(overview.uptime_s), moment(status.started)));
    let applied = status.applied.map_or_else(String::new, |applied| format!(", applied {}", moment(applied)));
    line("config", format!("generation {}{applied}", status.generation));
    if let Some(store) = &status.store {
        let healthy = if store.healthy { styled(GREEN, "healthy") } else { styled(RED, "has a problem") };
        line("store", healthy);
    }
    // A tenant is not told whether there is a card.
    if status.store.is_some() {
        line("card", card(status));
    }
    if let Some(ports) = &status.ports {
        line("ports", summary(ports));
    }
    line("networks", summary(&status.networks));
    if let Some(log) = &status.log {
        line("log", place(log));
    }
    if let Some(pending) = &status.pending {
        out.push_str(&pending_text(pending));
        out.push_str(&format!("  its deadline is {}\n", moment(pending.deadline)));
    }
    if let Some(note) = &overview.scheduling_note {
        out.push_str(&format!(
            "{} threads that forward packets compete with other programs: {note}\n  to do: see `hueplane doctor`\n",
            styled(YELLOW, "note:")
        ));
    }
    for trouble in &status.troubles {
        out.push_str(&format!("{} {trouble}\n  to do: {}\n", styled(RED, "problem:"), trouble.remedy));
    }
    out
}

fn card(status: &Status) -> String {
    let Some(card) = &status.card else { return "none".to_owned() };
    let style = match card.state {
        CardState::Running => GREEN,
        CardState::Loading => YELLOW,
        CardState::Down => RED,
    };
    let what = match (&card.image, &card.pci) {
        (Some(image), _) => format!("image {image}, "),
        (None, Some(pci)) => format!("PCI {pci}, "),
        (None, None) => String::new(),
    };
    let drained = if card.drained {
        format!(", {} (`hueplane undrain card` ends that)", styled(YELLOW, "drained"))
    } else {
        String::new()
    };
    let networks = count(card.networks, "network");
    format!("{what}{}{drained}, {networks} on it", styled(style, card.state.name()))
}

/// `4: 3 up, 1 missing`.
fn summary(summary: &Summary) -> String {
    let style = if summary.up == summary.total { GREEN } else { RED };
    let states: Vec<String> =
        summary.states.iter().map(|(state, number)| format!("{number} {state}")).collect();
    if states.is_empty() {
        return summary.total.to_string();
    }
    format!("{}: {}", summary.total, styled(style, states.join(", ")))
}

fn place(log: &LogPlace) -> String {
    let name = match log.to {
        LogTarget::File => "",
        LogTarget::Journal => "the journal of systemd, unit ",
        LogTarget::Terminal => "the terminal ",
        LogTarget::Stderr => "standard error, ",
        LogTarget::None => "none",
    };
    let rest = log.path.as_deref().or(log.unit.as_deref()).unwrap_or_default();
    format!("{name}{rest}").trim_end_matches([',', ' ']).to_owned()
}

/// A duration in its two largest units.
fn time(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let at = units.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(3);
    let mut left = seconds;
    let parts: Vec<String> = units[at..]
        .iter()
        .take(2)
        .map(|(name, unit)| {
            let number = left / unit;
            left %= unit;
            format!("{number} {name}")
        })
        .collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let texts = [0, 59, 61, 3_600, 90_061].map(time);
        assert_eq!(texts, ["0 s", "59 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
    }
}
