//! `hueplane history`: what changed the configuration; `rollback`: the way back; `confirm`: no way back is needed.

use hueplaned::api::{
    ApplyResult, ConfirmRequest, DocumentChange, History, ObjectKind, Pending, Revision, RollbackRequest,
    Verb,
};

use super::change::{applied_text, warn};
use super::{Painter, client, moment};
use crate::cli::{Confirm, Connection, History as HistoryArgs, Rollback};
use crate::failure::Failure;
use crate::print::{Align, DIM, GREEN, RED, YELLOW, columns, result, styled};

/// Runs `hueplane history`.
pub fn history(args: &HistoryArgs, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let history = client.history()?;
    let painter = Painter::ask(&client);
    result(args.output.format, &history, || text(&history, &painter))
}

/// Runs `hueplane rollback`.
pub fn rollback(args: &Rollback, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let request = RollbackRequest {
        revision: args.revision,
        dry_run: args.dry_run,
        prune: args.prune,
        if_generation: None,
    };
    let painter = Painter::ask(&client);
    let done = client.rollback(&request, args.turn.query())?;
    // It is told as an apply, which is what it is.
    let applied = ApplyResult {
        generation: done.generation,
        dry_run: done.dry_run,
        actions: done.actions.clone(),
        networks: done.networks.clone(),
        pending: None,
    };
    result(args.output.format, &done, || {
        let mut out = applied_text(&applied, &painter);
        if !done.kept.is_empty() {
            let names: Vec<String> = done.kept.iter().map(|name| painter.paint(name)).collect();
            let (revision, names) = (done.revision, names.join(", "));
            out.push_str(&format!(
                "revision {revision} did not have {names}: kept; --prune deletes what it did not have\n"
            ));
        }
        out
    })?;
    warn(&applied);
    Ok(())
}

/// Runs `hueplane confirm`.
pub fn confirm(args: &Confirm, connection: &Connection) -> Result<(), Failure> {
    let confirmed = client(connection)?.confirm(&ConfirmRequest::default(), args.turn.query())?;
    result(args.output.format, &confirmed, || format!("revision {} is confirmed\n", confirmed.revision))
}

/// The change that waits for its confirmation, as a line of text.
pub fn pending_text(pending: &Pending) -> String {
    format!(
        "{} revision {} by {} goes back to {} in {} s: `hueplane confirm` keeps it\n",
        styled(YELLOW, "pending:"),
        pending.revision,
        pending.by,
        pending.restores,
        pending.remaining_s
    )
}

fn text(history: &History, painter: &Painter) -> String {
    let head = [
        ("REVISION", Align::Right),
        ("TIME", Align::Left),
        ("BY", Align::Left),
        ("WHAT", Align::Left),
        ("CHANGES", Align::Left),
    ];
    let rows: Vec<Vec<String>> =
        history.revisions.iter().map(|revision| row(revision, history.generation, painter)).collect();
    let mut out = if rows.is_empty() {
        format!("no revisions; desired state {} is in force\n", history.generation)
    } else {
        columns(&head, &rows)
    };
    if let Some(pending) = &history.pending {
        out.push_str(&pending_text(pending));
    }
    if let Some(problem) = &history.problem {
        out.push_str(&format!("{} {problem}\n", styled(YELLOW, "problem:")));
    }
    out
}

fn row(revision: &Revision, generation: u64, painter: &Painter) -> Vec<String> {
    let by = revision.by.to_string();
    let kind = revision.kind.name();
    let what = match revision.restored {
        Some(restored) => format!("{kind} to {restored}"),
        None => kind.to_owned(),
    };
    let changes: Vec<String> = revision.changes.iter().map(|change| sign(change, painter)).collect();
    let current = if revision.number == generation { styled(DIM, " (in force)") } else { String::new() };
    vec![
        revision.number.to_string(),
        // Seconds are enough in a table.
        moment(revision.time),
        by,
        what,
        changes.join(" ") + &current,
    ]
}

fn sign(change: &DocumentChange, painter: &Painter) -> String {
    let (style, sign) = match change.verb {
        Verb::Create => (GREEN, "+"),
        Verb::Change | Verb::Replace => (YELLOW, "~"),
        Verb::Delete => (RED, "-"),
    };
    let name = match change.object {
        ObjectKind::Network => painter.paint(&change.name),
        ObjectKind::Node | ObjectKind::Port => format!("{} {}", change.object.name(), change.name),
    };
    format!("{}{name}", styled(style, sign))
}
