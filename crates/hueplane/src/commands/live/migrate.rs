//! `hueplane migrate`: moves a network between card and software, and reports what happened to its packets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hueplaned::api::{MigrateRequest, Migration, MigrationStep, PacketsSeen, SubstrateName};

use super::events::row;
use super::{Painter, client};
use crate::cli::{Connection, FailStep, Migrate, MigrateTo};
use crate::failure::Failure;
use crate::print::{DIM, GREEN, RED, YELLOW, result, styled};

/// Runs the command.
pub fn migrate(args: &Migrate, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let to = match args.to {
        MigrateTo::Card => SubstrateName::Card,
        MigrateTo::Soft => SubstrateName::Soft,
    };
    let request = MigrateRequest {
        load_image: args.load_image,
        watch_ms: args.look_ms,
        limit_ms: args.limit_ms,
        drain_ms: args.drain_ms,
        fail: args.fail.map(failing),
        ..MigrateRequest::new(to)
    };
    let over = Arc::new(AtomicBool::new(false));
    if args.watch {
        watch(&args.name, connection, &over)?;
    }
    let painter = Painter::ask(&client);
    let migration = client.migrate(&args.name, &request, args.turn.query());
    over.store(true, Ordering::Relaxed);
    let migration = migration?;
    result(args.output.format, &migration, || text(&migration, &painter))
}

/// A step that fails, in API terms.
pub fn failing(step: FailStep) -> MigrationStep {
    match step {
        FailStep::Prepare => MigrationStep::Prepare,
        FailStep::Aside => MigrationStep::Aside,
        FailStep::Switch => MigrationStep::Switch,
        FailStep::Drain => MigrationStep::Drain,
        FailStep::Card => MigrationStep::Card,
        FailStep::Packets => MigrationStep::Packets,
        FailStep::Doubled => MigrationStep::Doubled,
        FailStep::Reordered => MigrationStep::Reordered,
    }
}

/// Shows the network's events on standard error during the move.
fn watch(name: &str, connection: &Connection, over: &Arc<AtomicBool>) -> Result<(), Failure> {
    let client = client(connection)?;
    let last = client.events(0)?.last;
    let painter = Painter::ask(&client);
    let (name, over) = (name.to_owned(), Arc::clone(over));
    let follow = move || {
        // Errors while showing events do not stop the move.
        for event in client.follow_events(last).into_iter().flatten().map_while(Result::ok) {
            if event.network.as_deref() == Some(&name) {
                anstream::eprintln!("{}", row(&event, &painter));
            }
            if over.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    // The thread ends with the process.
    drop(std::thread::spawn(follow));
    Ok(())
}

fn text(migration: &Migration, painter: &Painter) -> String {
    let name = painter.paint(&migration.network);
    let mut out = format!("{name} moved from {} to {}\n", migration.from.name(), migration.to.name());
    let number = |count: u64, what| {
        let style = if count == 0 { GREEN } else { RED };
        styled(style, format!("{count} {what}"))
    };
    let mut counts = vec![
        number(migration.lost, "lost"),
        number(migration.doubled, "doubled"),
        number(migration.reordered, "reordered"),
    ];
    if migration.undecided > 0 {
        counts.push(styled(YELLOW, format!("{} undecided", migration.undecided)));
    }
    out.push_str(&format!("  {}\n", counts.join(", ")));
    if !migration.lost_by.is_empty() {
        out.push_str(&format!("  {} {}\n", styled(DIM, "lost by:"), list(&migration.lost_by)));
    }
    out.push_str(&format!(
        "  it took {}; longest gap between packets {}, {} without a move\n",
        time(migration.duration_us),
        time(migration.gap_us_max),
        time(migration.gap_us_max_control),
    ));
    let phases: Vec<String> =
        migration.phases.iter().map(|phase| format!("{} {}", phase.name, time(phase.us))).collect();
    out.push_str(&format!("  {} {}\n", styled(DIM, "steps:"), phases.join(", ")));
    let seen = |what: &str, seen: &PacketsSeen| {
        let (received, sent) = (seen.received, seen.sent);
        format!("  {} {received} in, {sent} out in {}\n", styled(DIM, what), time(seen.us))
    };
    out.push_str(&seen("before:", &migration.before));
    out.push_str(&seen("during:", &migration.during));
    out.push_str(&seen("after: ", &migration.after));
    if !migration.outcomes.is_empty() {
        let what = styled(DIM, "dropped or consumed by the network:");
        out.push_str(&format!("  {what} {}\n", list(&migration.outcomes)));
    }
    if let Some(hold) = &migration.hold {
        let kib = hold.bytes_max / 1024;
        out.push_str(&format!(
            "  {} up to {kib} KiB per port, {} did not fit\n",
            styled(DIM, "buffer for waiting packets:"),
            hold.dropped
        ));
    }
    if let Some(steering) = &migration.steering {
        let late = format!(
            "{} packets still arrived on the old path within {}",
            steering.late,
            time(steering.watched_us)
        );
        let sent = steering.overlap_us.map(|us| format!(", packets sent on it had left after {}", time(us)));
        out.push_str(&format!(
            "  {} {} told, {late}{}\n",
            styled(DIM, "neighbours:"),
            steering.neighbours,
            sent.unwrap_or_default(),
        ));
    }
    if let Some(image) = &migration.image {
        out.push_str(&format!("  image {image} was loaded for it\n"));
    }
    if let Some(trouble) = &migration.trouble {
        out.push_str(&format!("  {} {trouble}\n", styled(YELLOW, "problem:")));
    }
    out
}

fn list(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// A duration in microseconds as text.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}
