//! `hueplane drain` and `hueplane undrain`: move all networks off the card for maintenance, and let them return.

use hueplaned::api::{DrainRequest, DrainResult, NetworkDrained};

use super::migrate::{failing, time};
use super::{Painter, client};
use crate::cli::{Connection, Drain, DrainWhat, Undrain};
use crate::failure::Failure;
use crate::print::{GREEN, RED, YELLOW, count, result, styled};

/// Runs `hueplane drain`.
pub fn drain(args: &Drain, connection: &Connection) -> Result<(), Failure> {
    let DrainWhat::Card = args.what;
    let client = client(connection)?;
    let request = DrainRequest { drained: true, force: args.force, fail: args.fail.map(failing) };
    let drained = client.drain(&request, args.turn.query())?;
    let painter = Painter::ask(&client);
    result(args.output.format, &drained, || drained_text(&drained, &painter))?;
    let stay: Vec<&str> = drained
        .networks
        .iter()
        .filter(|network| stays(network))
        .map(|network| network.network.as_str())
        .collect();
    if stay.is_empty() {
        return Ok(());
    }
    Err(Failure::Broken(format!(
        "{} on the card: {}; `hueplane drain card` tries again",
        if stay.len() == 1 { "a network is still" } else { "networks are still" },
        stay.join(", ")
    )))
}

/// Runs `hueplane undrain`.
pub fn undrain(args: &Undrain, connection: &Connection) -> Result<(), Failure> {
    let DrainWhat::Card = args.what;
    let client = client(connection)?;
    let request = DrainRequest { drained: false, force: false, fail: None };
    let undrained = client.drain(&request, args.turn.query())?;
    let painter = Painter::ask(&client);
    result(args.output.format, &undrained, || undrained_text(&undrained, &painter))
}

/// Whether a network is still on the drained card.
fn stays(network: &NetworkDrained) -> bool {
    network.substrate == "card"
}

fn drained_text(drained: &DrainResult, painter: &Painter) -> String {
    let already = if drained.changed { "" } else { "already " };
    let left = drained.networks.iter().filter(|network| !stays(network)).count() as u64;
    let mut out = match left {
        0 => format!("the card is {already}drained\n"),
        _ => format!("the card is {already}drained: {} moved to software\n", count(left, "network")),
    };
    for network in &drained.networks {
        let name = painter.paint(&network.network);
        let why = network.why.as_deref().unwrap_or("the daemon gives no reason");
        out.push_str(&match &network.migration {
            _ if stays(network) => format!("  {name} {}: {why}\n", styled(RED, "stays on the card")),
            Some(moved) => {
                let style = if moved.is_clean() { GREEN } else { YELLOW };
                format!("  {name} {}, in {}\n", styled(style, moved.verdict()), time(moved.duration_us))
            }
            None => format!("  {name}\n"),
        });
    }
    out.push_str("no network runs on the card until `hueplane undrain card`\n");
    out
}

fn undrained_text(undrained: &DrainResult, painter: &Painter) -> String {
    let mut out = match undrained.changed {
        true => "the card is no longer drained\n".to_owned(),
        false => "the card was not drained\n".to_owned(),
    };
    for network in &undrained.networks {
        let why = network.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        out.push_str(&format!("  {} on {}{why}\n", painter.paint(&network.network), network.substrate));
    }
    out
}
