//! `hueplane events`: shows past events, and new ones as they happen.

use hueplaned::api::{Event, EventKind};

use super::{Painter, client};
use crate::cli::{Connection, Events};
use crate::failure::Failure;
use crate::print::{BOLD, DIM, GREEN, RED, YELLOW, line, list, styled};

/// Runs the command.
pub fn events(args: &Events, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let painter = Painter::ask(&client);
    let since = args.since.unwrap_or(0);
    let wanted = |event: &Event| {
        let of_network = |name: &String| event.network.as_ref() == Some(name);
        args.network.as_ref().is_none_or(of_network)
    };
    let format = args.output.format;
    if args.follow {
        for event in client.follow_events(since)? {
            let event = event?;
            if wanted(&event) {
                line(format, &event, |event| row(event, &painter))?;
            }
        }
        return Err(Failure::NoDaemon(format!("{}: the daemon has stopped", client.target())));
    }
    let page = client.events(since)?;
    if since > 0 && page.first > since.saturating_add(1) {
        eprintln!("hueplane: events {} to {} are no longer kept", since + 1, page.first - 1);
    }
    list(format, page.events.into_iter().filter(wanted), "", |event| row(event, &painter))
}

/// An event as a line of text.
pub fn row(event: &Event, painter: &Painter) -> String {
    let style = match event.kind {
        EventKind::Refused
        | EventKind::NetworkDegraded
        | EventKind::Drifted
        | EventKind::PortDown
        | EventKind::CardDown
        | EventKind::MigrationFailed
        | EventKind::ImageFailed
        | EventKind::AutoRolledBack
        | EventKind::Trouble => RED,
        EventKind::PortFallback
        | EventKind::ProgramEnded
        | EventKind::SchedulingFallback
        | EventKind::Gap
        | EventKind::CardDrained
        | EventKind::Stopping
        | EventKind::NetworkDeleted => YELLOW,
        EventKind::NetworkRecovered
        | EventKind::Repaired
        | EventKind::PortUp
        | EventKind::CardUndrained
        | EventKind::CardUp
        | EventKind::Migrated
        | EventKind::ImageLoaded
        | EventKind::Confirmed
        | EventKind::Started => GREEN,
        EventKind::Applied
        | EventKind::RolledBack
        | EventKind::Adopted
        | EventKind::Cleaned
        | EventKind::NetworkCreated
        | EventKind::Placed
        | EventKind::MigrationStarted
        | EventKind::Steered
        | EventKind::ImageLoading
        | EventKind::ProgramStarted
        | EventKind::ProgramOutput
        | EventKind::NetworkChanged => BOLD,
    };
    let network = event.network.as_deref().map(|name| format!("{} ", painter.paint(name)));
    let port = event.port.as_ref().map(|port| format!("{port} "));
    format!(
        "{:>6}  {}  {} {}{}{}",
        event.sequence,
        styled(DIM, event.time),
        styled(style, format!("{:<17}", event.kind.name())),
        network.unwrap_or_default(),
        port.unwrap_or_default(),
        event.message,
    )
}
