//! `hueplane card`: shows the card's networks, and opens or closes their clock gates.

use hueplaned::api::{ApplyResult, CardInfo, GateRequest, Network};
use serde::Serialize;

use super::{Painter, client};
use crate::cli::{CardCommand, CardGate, CardShow, Connection};
use crate::failure::Failure;
use crate::print::{Align, columns, grouped, result};

/// Runs the command.
pub fn card(command: &CardCommand, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    match command {
        CardCommand::Show(args) => show(args, &client),
        CardCommand::Gate(args) => gate(args, true, &client),
        CardCommand::Ungate(args) => gate(args, false, &client),
    }
}

/// The card and its networks.
#[derive(Serialize)]
struct Shown {
    card: CardInfo,
    networks: Vec<Gate>,
}

/// A network on the card.
#[derive(Serialize)]
struct Gate {
    network: String,
    /// Whether its clock gate is closed.
    gated: bool,
    /// Packets dropped by it since the network was loaded.
    dropped: u64,
}

fn show(args: &CardShow, client: &hueplaned::client::Client) -> Result<(), Failure> {
    let card = client.node()?.card;
    let card = card.ok_or_else(|| Failure::Usage("this node runs no card".to_owned()))?;
    let networks = client.networks()?;
    let stats = client.stats(None)?;
    let dropped = |name: &str| {
        let stats = stats.networks.iter().find(|stats| stats.network == name);
        stats.and_then(|stats| stats.drops.get("gated")).copied().unwrap_or_default()
    };
    let on_card = networks.iter().filter(|network| network.substrate == "card").map(|network| Gate {
        network: network.name.clone(),
        gated: network.gated,
        dropped: dropped(&network.name),
    });
    let shown = Shown { card, networks: on_card.collect() };
    let painter = Painter::of(&networks);
    result(args.output.format, &shown, || {
        let head = [("NETWORK", Align::Left), ("CLOCK GATE", Align::Left), ("GATED PACKETS", Align::Right)];
        let state = |gated: bool| if gated { "closed" } else { "open" };
        let row =
            |one: &Gate| vec![painter.paint(&one.network), state(one.gated).to_owned(), grouped(one.dropped)];
        let Shown { card, networks } = &shown;
        let (clock, ports) = (f64::from(card.clock_khz) / 1000.0, card.ports.join(" "));
        let drained = if card.drained { ", drained (`hueplane undrain card` ends that)" } else { "" };
        format!(
            "image {}, {} bits at {clock} MHz, {} of {} networks, ports {ports}{drained}\n{}",
            card.image,
            card.bus_bits,
            networks.len(),
            card.networks_max,
            columns(&head, &networks.iter().map(row).collect::<Vec<_>>())
        )
    })
}

/// The state of a network's gate after the command.
#[derive(Serialize)]
struct Gated {
    network: String,
    gated: bool,
    /// Whether the command changed it.
    changed: bool,
    substrate: String,
}

fn gate(args: &CardGate, gated: bool, client: &hueplaned::client::Client) -> Result<(), Failure> {
    // All names first: a wrong one changes nothing.
    let before =
        args.networks.iter().map(|name| client.network(name)).collect::<Result<Vec<Network>, _>>()?;
    let painter = Painter::of(&before);
    let mut done = Vec::with_capacity(before.len());
    for network in before {
        let ApplyResult { actions, .. } =
            client.gate_network(&network.name, GateRequest { gated }, args.turn.query())?;
        let changed = !actions.is_empty();
        done.push(Gated { network: network.name, gated, changed, substrate: network.substrate });
    }
    result(args.output.format, &done, || {
        let line = |one: &Gated| {
            let state = match (one.gated, one.changed) {
                (true, true) => "is gated: its packets are dropped",
                (true, false) => "was gated already",
                (false, true) => "is no longer gated",
                (false, false) => "was not gated",
            };
            let place = if one.substrate == "card" { "" } else { " (it runs in software)" };
            format!("{} {state}{place}\n", painter.paint(&one.network))
        };
        done.iter().map(line).collect()
    })
}
