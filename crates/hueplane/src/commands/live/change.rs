//! `apply`, `diff`, `delete` and `down`: commands that change the daemon's state, or show what would change.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hueplaned::api::{
    Action, ApplyRequest, ApplyResult, CONFIRM_SECONDS_MAX, DiffRequest, DownOptions, DownResult,
    NetworkState, ObjectKind, Verb,
};
use hueplaned::client::{Client, ClientError};
use serde_json::Value;

use super::{Painter, client, own_sources};
use crate::cli::{Apply, Connection, Delete, DeleteWhat, Diff, Down};
use crate::failure::Failure;
use crate::print::{DIM, GREEN, RED, YELLOW, count, result, styled};

/// Longest time that a daemon may take to stop.
const END_MAX: Duration = Duration::from_secs(120);
/// The number of threads in `/proc/PID/stat`, counted from the state (proc_pid_stat(5)).
const THREADS_FIELD: usize = 17;
/// Interval of checks whether it has stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs `hueplane apply`.
pub fn apply(args: &Apply, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let request = ApplyRequest {
        sources: own_sources(&args.files.files, &args.node, &client)?,
        dry_run: args.dry_run,
        prune: args.prune,
        if_generation: None,
        confirm_within_s: args.confirm_within.map(seconds).transpose()?,
    };
    let applied = client.apply(&request, args.turn.query())?;
    let painter = Painter::ask(&client);
    result(args.output.format, &applied, || applied_text(&applied, &painter))?;
    warn(&applied);
    Ok(())
}

/// The time of `--confirm-within` in whole seconds.
fn seconds(time: Duration) -> Result<u32, Failure> {
    let whole = u32::try_from(time.as_secs()).ok().filter(|_| time.subsec_nanos() == 0);
    whole
        .filter(|seconds| (1..=CONFIRM_SECONDS_MAX).contains(seconds))
        .ok_or_else(|| Failure::Usage("--confirm-within: expected whole seconds, from 1s to 1day".to_owned()))
}

/// Runs `hueplane diff`.
pub fn diff(args: &Diff, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let request =
        DiffRequest { sources: own_sources(&args.files.files, &args.node, &client)?, prune: args.prune };
    let found = client.diff(&request)?;
    let painter = Painter::ask(&client);
    result(args.output.format, &found, || {
        if found.actions.is_empty() {
            "no differences\n".to_owned()
        } else {
            actions(&found.actions, &painter)
        }
    })?;
    if args.exit_code && !found.actions.is_empty() {
        return Err(Failure::Differences(count(found.actions.len() as u64, "difference")));
    }
    Ok(())
}

/// Runs `hueplane delete`.
pub fn delete(args: &Delete, connection: &Connection) -> Result<(), Failure> {
    let args = match &args.what {
        DeleteWhat::Network(args) => args,
        DeleteWhat::Node { .. } => {
            return Err(Failure::Usage(
                "the node's document cannot be deleted, because networks need its ports: change it with `hueplane apply`, \
                 delete all networks by applying the node's document alone with --prune, or stop the daemon with `hueplane down` \
                 and forget everything with `hueplane up --empty`"
                    .to_owned(),
            ));
        }
    };
    let client = client(connection)?;
    let painter = Painter::ask(&client);
    let deleted = client.delete_network(&args.name, args.turn.query())?;
    result(args.output.format, &deleted, || applied_text(&deleted, &painter))
}

/// Runs `hueplane down`: returns when the daemon has stopped.
pub fn down(args: &Down, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let going = stop(&client, args.keep)?;
    result(args.output.format, &going, || {
        let what = if args.keep { "left in place" } else { "removed" };
        let networks = count(going.networks, "network");
        format!("the daemon has stopped, process {}; {networks} {what}\n", going.pid)
    })
}

/// Stops the daemon, and waits until its process has ended.
fn stop(client: &Client, keep: bool) -> Result<DownResult, Failure> {
    let going = client.down(&DownOptions { keep, ..DownOptions::default() })?;
    let deadline = Instant::now() + END_MAX;
    while !matches!(client.status(), Err(ClientError::NotRunning { .. })) || is_running(going.pid) {
        if Instant::now() > deadline {
            let seconds = END_MAX.as_secs();
            return Err(Failure::Broken(format!("process {}: still running after {seconds} s", going.pid)));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(going)
}

/// Whether the daemon's process still exists: its API stops before it has cleaned up.
fn is_running(pid: u32) -> bool {
    let proc = Path::new("/proc").join(pid.to_string());
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    // The name distinguishes it from another process with the same id.
    stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).is_some_and(|(name, rest)| {
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let (state, threads) =
            (fields.first().copied().unwrap_or_default(), fields.get(THREADS_FIELD).copied());
        // Z is a process that has ended; while other threads of it end, they hold its files.
        name.starts_with("hueplane")
            && (!matches!(state, "Z" | "X")
                || threads.and_then(|count| count.parse().ok()).is_some_and(|count: u32| count > 1))
    })
}

/// The result of an apply as text.
pub fn applied_text(applied: &ApplyResult, painter: &Painter) -> String {
    let mut out = actions(&applied.actions, painter);
    let changes = count(applied.actions.len() as u64, "change");
    // No document changed, so these networks were not in the desired state.
    let running = applied.networks.iter().filter(|network| network.state == NetworkState::Running);
    let repaired: Vec<String> = running.map(|network| painter.paint(&network.name)).collect();
    out.push_str(&match (applied.dry_run, applied.actions.len()) {
        (false, 0) if !repaired.is_empty() => {
            format!(
                "no document changed, generation {}; repaired: {}\n",
                applied.generation,
                repaired.join(", ")
            )
        }
        (_, 0) => format!("nothing to change, generation {}\n", applied.generation),
        (true, _) => format!("{changes} not made: dry run\n"),
        (false, _) => format!("{changes} made, generation {}\n", applied.generation),
    });
    if let Some(pending) = &applied.pending {
        out.push_str(&format!("confirm within {}s: hueplane confirm\n", pending.remaining_s));
    }
    out
}

/// Reports degraded networks on standard error.
pub fn warn(applied: &ApplyResult) {
    for network in applied.networks.iter().filter(|network| network.state == NetworkState::Degraded) {
        let reason = network.reason.as_deref().unwrap_or("the daemon gives no reason");
        anstream::eprintln!("{} network {}: {reason}", styled(YELLOW, "hueplane: degraded:"), network.name);
    }
}

fn actions(actions: &[Action], painter: &Painter) -> String {
    let mut out = String::new();
    for action in actions {
        let style = match action.verb {
            Verb::Create => GREEN,
            Verb::Change | Verb::Replace => YELLOW,
            Verb::Delete => RED,
        };
        let name = match action.object {
            ObjectKind::Network => painter.paint(&action.name),
            ObjectKind::Node | ObjectKind::Port => action.name.clone(),
        };
        out.push_str(&format!("{} {} {name}\n", styled(style, action.verb.name()), action.object.name()));
        for change in &action.changes {
            let (before, after) = (value(change.before.as_ref()), value(change.after.as_ref()));
            out.push_str(&format!("    {}: {} -> {after}\n", change.field, styled(DIM, before)));
        }
    }
    out
}

fn value(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => short(text),
        Some(other) => other.to_string(),
    }
}

/// A text in a line: of a long one, such as a program, the beginning.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    let line = text.lines().next().unwrap_or_default();
    let end = line.char_indices().nth(CHARS_MAX).map_or(line.len(), |(at, _)| at);
    if end == text.trim_end().len() { line.to_owned() } else { format!("{} …", &line[..end]) }
}
