//! `hueplane stats`: shows counters, once or continuously.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

use hueplaned::api::{NetworkStats, Stats as Counted, VirtualPortStats};

use super::{Painter, client, moment, watch};
use crate::cli::{Connection, Format, Stats};
use crate::failure::Failure;
use crate::print::{Align, DIM, columns, grouped, result, styled};

/// Runs the command.
pub fn stats(args: &Stats, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let name = args.name.as_deref();
    if args.watch {
        if args.output.format != Format::Table {
            return Err(Failure::Usage("--watch: cannot be combined with -o".to_owned()));
        }
        // Control sequences of a screen would end up in the pipe or file.
        if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
            let text = "--watch: standard input and output must be a terminal; elsewhere, repeat `hueplane stats`, or \
                        `hueplane stats -o json` for programs";
            return Err(Failure::Usage(text.to_owned()));
        }
        return watch::watch(&client, name, args.interval_ms);
    }
    let counted = client.stats(name)?;
    let painter = Painter::ask(&client);
    result(args.output.format, &counted, || match (name, counted.networks.as_slice()) {
        (Some(_), [network]) => one(network, &painter),
        _ => all(&counted, &painter),
    })
}

fn all(counted: &Counted, painter: &Painter) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("RECEIVED", Align::Right),
        ("FORWARDED", Align::Right),
        ("PUNTED", Align::Right),
        ("DROPPED", Align::Right),
        ("LOST", Align::Right),
        ("SENT", Align::Right),
        ("SINCE", Align::Left),
        ("WHY", Align::Left),
    ];
    let row = |network: &NetworkStats| {
        let numbers = [
            network.received,
            network.forwarded,
            network.punted,
            network.dropped,
            network.lost(),
            network.sent,
        ];
        let why = reasons(network.drops.iter().chain(&network.losses));
        let cells = [painter.paint(&network.network)].into_iter().chain(numbers.map(grouped));
        cells.chain([moment(network.since), why]).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = counted.networks.iter().map(row).collect();
    if !counted.unclaimed.is_empty() {
        let total = grouped(counted.unclaimed.values().sum());
        let mut cells = vec![styled(DIM, "(no network)"), total.clone(), "0".into(), "0".into(), total];
        cells.extend(["0".into(), "0".into(), moment(counted.since), reasons(&counted.unclaimed)]);
        rows.push(cells);
    }
    let mut out = columns(&head, &rows);
    counted.networks.iter().for_each(|network| out.push_str(&card_since(network, painter)));
    if !counted.ports.is_empty() {
        out.push('\n');
        out.push_str(&ports(counted));
    }
    out
}

fn ports(counted: &Counted) -> String {
    let head = [
        ("PORT", Align::Left),
        ("RECEIVED", Align::Right),
        ("BYTES", Align::Right),
        ("SENT", Align::Right),
        ("BYTES", Align::Right),
        ("LOST", Align::Right),
        ("SINCE", Align::Left),
        ("WHY", Align::Left),
    ];
    let rows = counted.ports.iter().map(|port| {
        let numbers = [port.received, port.received_bytes, port.sent, port.sent_bytes, port.lost()];
        let cells = [port.port.clone()].into_iter().chain(numbers.map(grouped));
        let since = port.since.map_or_else(|| "-".to_owned(), moment);
        cells.chain([since, reasons(&port.losses)]).collect()
    });
    columns(&head, &rows.collect::<Vec<_>>())
}

/// A line about counters that were lost with a card, if there were any.
fn card_since(network: &NetworkStats, painter: &Painter) -> String {
    network.card_since.map_or_else(String::new, |since| {
        let name = painter.paint(&network.network);
        format!("{name}: counters of the card before {} were lost\n", moment(since))
    })
}

/// One network: its virtual ports and all reasons.
fn one(network: &NetworkStats, painter: &Painter) -> String {
    let head = [
        ("PORT", Align::Left),
        ("RECEIVED", Align::Right),
        ("BYTES", Align::Right),
        ("FORWARDED", Align::Right),
        ("PUNTED", Align::Right),
        ("DROPPED", Align::Right),
        ("SENT", Align::Right),
        ("BYTES", Align::Right),
    ];
    let row = |port: &VirtualPortStats| {
        let numbers = [
            port.received,
            port.received_bytes,
            port.forwarded,
            port.punted,
            port.dropped,
            port.sent,
            port.sent_bytes,
        ];
        [port.port.clone()].into_iter().chain(numbers.map(grouped)).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = network.ports.iter().map(row).collect();
    let total = VirtualPortStats {
        port: "total".to_owned(),
        received: network.received,
        received_bytes: network.received_bytes,
        forwarded: network.forwarded,
        punted: network.punted,
        dropped: network.dropped,
        sent: network.sent,
        sent_bytes: network.sent_bytes,
    };
    rows.push(row(&total));
    let mut out = format!("network {}\n{}", painter.paint(&network.network), columns(&head, &rows));
    for (family, counts) in &network.families {
        let [forwarded, punted, dropped] = [counts.forwarded, counts.punted, counts.dropped].map(grouped);
        out.push_str(&format!("{family}: forwarded {forwarded}, punted {punted}, dropped {dropped}\n"));
    }
    for (what, counts) in [("punted", &network.punts), ("dropped", &network.drops), ("lost", &network.losses)]
    {
        if !counts.is_empty() {
            out.push_str(&format!("{what}: {}\n", reasons(counts)));
        }
    }
    out.push_str(&format!("from its control plane: {}\n", grouped(network.from_control)));
    if network.to_tunnels > 0 {
        out.push_str(&format!("punted into tunnels: {}\n", grouped(network.to_tunnels)));
    }
    out.push_str(&format!("counted since: {}\n", moment(network.since)));
    out.push_str(&card_since(network, painter));
    out
}

/// `no_route 3, checksum 1`: reasons that occurred, most frequent first.
pub fn reasons<'a>(counts: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let counts: BTreeMap<&String, &u64> = counts.into_iter().filter(|(_, count)| **count > 0).collect();
    let mut list: Vec<_> = counts.into_iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let texts: Vec<String> =
        list.iter().map(|(name, count)| format!("{name} {}", grouped(**count))).collect();
    texts.join(", ")
}
