//! `hueplane get`: shows objects of the daemon.
//!
//! Without a name, the result is an array. With a name, it is a single object; for routes and neighbours, the
//! name is a filter.

use std::net::IpAddr;

use hue_tables::{AnyPrefix, PrefixError};
use hueplaned::api::{
    CardShare, CardTables, MacAddress, Neighbour, Network, NetworkFilter, NetworkState, Node, Placement,
    Port, PortState, Problem, Route, RouteFilter, RouteKind, Status, TableEntry, TableShare,
};
use hueplaned::client::Client;
use serde::Serialize;

use super::history::pending_text;
use super::{Painter, client, moment};
use crate::cli::{Connection, Format, Get, Kind};
use crate::failure::Failure;
use crate::print::{Align, DIM, GREEN, List, RED, YELLOW, columns, grouped, result, styled, text, yaml};

/// Runs the command.
pub fn get(args: &Get, connection: &Connection) -> Result<(), Failure> {
    let format = args.output.format;
    let name = args.name.as_deref();
    // It has several daemons.
    if args.kind == Kind::Topology {
        return crate::topo::show(name, format);
    }
    let client = client(connection)?;
    match args.kind {
        Kind::Topology => Ok(()),
        Kind::Nodes => nodes(&client, format, name),
        Kind::Networks => networks(&client, format, name.or(args.network.as_deref())),
        Kind::Ports => ports(&client, format, name, args.network.as_deref()),
        Kind::Routes => routes(&client, format, name, args.network.as_deref()),
        Kind::Neighbours => neighbours(&client, format, name, args.network.as_deref()),
        Kind::Macs => macs(&client, format, name, args.network.as_deref()),
        Kind::Entries => entries(&client, format, name, args.network.as_deref()),
        Kind::Tables => tables(&client, format, name.or(args.network.as_deref())),
        Kind::Config => config(&client, format, name.or(args.network.as_deref())),
        Kind::Placements => placements(&client, format, name.or(args.network.as_deref())),
    }
}

/// Prints the desired state, or a network's document.
fn config(client: &Client, format: Format, name: Option<&str>) -> Result<(), Failure> {
    let mut config = client.config()?;
    if let Some(name) = name {
        config
            .documents
            .retain(|document| document["kind"] == "Network" && document["metadata"]["name"] == name);
    }
    let documents = &config.documents;
    match (format, name, documents.as_slice()) {
        (_, Some(name), []) => Err(Failure::Usage(Problem::no_network(name).to_string())),
        (Format::Json, Some(_), [one]) => result(format, one, String::new),
        (Format::Json, ..) => result(format, &config, String::new),
        (Format::Table | Format::Yaml, ..) => {
            let documents: Result<Vec<String>, Failure> = documents.iter().map(yaml).collect();
            text(&documents?.join("---\n"))
        }
    }
}

/// Prints a list, or its only element.
fn show<T: Serialize>(
    format: Format,
    list: &[T],
    only: bool,
    table: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure> {
    match list {
        [one] if only => result(format, one, || table(list)),
        _ => result(format, &list, || table(list)),
    }
}

#[derive(Serialize)]
struct NodeStatus {
    #[serde(flatten)]
    node: Node,
    status: Status,
}

fn nodes(client: &Client, format: Format, name: Option<&str>) -> Result<(), Failure> {
    let node = client.node()?;
    if let Some(name) = name.filter(|name| *name != node.name) {
        return Err(Failure::Usage(format!("node {name:?} does not exist; this one is {:?}", node.name)));
    }
    let status = client.status()?;
    show(format, &[NodeStatus { node, status }], name.is_some(), |nodes| {
        let head = [
            ("NODE", Align::Left),
            ("HEALTH", Align::Left),
            ("VERSION", Align::Left),
            ("SUBSTRATE", Align::Left),
            ("WORKERS", Align::Right),
            ("SCHEDULING", Align::Left),
            ("NETWORKS", Align::Right),
            ("PORTS", Align::Right),
            ("TABLE BYTES", Align::Right),
            ("GENERATION", Align::Right),
        ];
        let of = |part: u64, all: u64| format!("{part}/{all}");
        let row = |NodeStatus { node, status }: &NodeStatus| {
            vec![
                node.name.clone(),
                status.health.name().to_owned(),
                node.version.clone(),
                node.card.as_ref().map_or_else(
                    || node.substrate.clone(),
                    |card| {
                        let drained = if card.drained { " (drained)" } else { "" };
                        format!("{} + card {}{drained}", node.substrate, card.image)
                    },
                ),
                node.workers.to_string(),
                node.scheduling.clone(),
                of(status.networks.up, status.networks.total),
                status.ports.as_ref().map_or_else(String::new, |ports| of(ports.up, ports.total)),
                node.capacity.map_or_else(String::new, |capacity| grouped(capacity.table_bytes)),
                status.generation.to_string(),
            ]
        };
        let mut out = columns(&head, &nodes.iter().map(row).collect::<Vec<_>>());
        if let Some(pending) = nodes.iter().find_map(|node| node.status.pending.as_ref()) {
            out.push_str(&pending_text(pending));
        }
        for problem in nodes.iter().flat_map(|node| &node.status.problems) {
            out.push_str(&format!("{} {problem}\n", styled(YELLOW, "problem:")));
        }
        out
    })
}

fn networks(client: &Client, format: Format, name: Option<&str>) -> Result<(), Failure> {
    let list = match name {
        Some(name) => vec![client.network(name)?],
        None => client.networks()?,
    };
    show(format, &list, name.is_some(), |networks| {
        let head = [
            ("NETWORK", Align::Left),
            ("VID", Align::Right),
            ("KIND", Align::Left),
            ("STATE", Align::Left),
            ("SUBSTRATE", Align::Left),
            ("PORTS", Align::Left),
            ("ROUTES", Align::Right),
            ("NEIGHBOURS", Align::Right),
            ("NAMESPACE", Align::Left),
        ];
        let painter = Painter::of(networks);
        let row = |network: &Network| {
            let state = match network.state {
                NetworkState::Running => GREEN,
                NetworkState::Pending => YELLOW,
                NetworkState::Degraded => RED,
            };
            let ports = network.ports.iter().map(|port| {
                let text = format!("{}:{}", port.name, port.on());
                if port.up { text } else { styled(RED, format!("{text} (down)")) }
            });
            vec![
                painter.paint(&network.name),
                network.vid.to_string(),
                network.kind.clone(),
                styled(state, network.state.name()) + if network.gated { " (gated)" } else { "" },
                network.substrate.clone(),
                ports.collect::<Vec<_>>().join(" "),
                grouped(network.routes),
                grouped(network.neighbours),
                network.namespace.clone(),
            ]
        };
        let mut out = columns(&head, &networks.iter().map(row).collect::<Vec<_>>());
        for network in networks {
            if let Some(reason) = &network.reason {
                out.push_str(&format!("{}: {reason}\n", painter.paint(&network.name)));
            }
        }
        out
    })
}

fn ports(client: &Client, format: Format, name: Option<&str>, network: Option<&str>) -> Result<(), Failure> {
    if let Some(network) = network {
        client.network(network)?;
    }
    let mut list = client.ports()?;
    list.retain(|port| name.is_none_or(|name| port.name == name));
    list.retain(|port| network.is_none_or(|network| port.networks.iter().any(|name| name == network)));
    if let (Some(name), true) = (name, list.is_empty()) {
        return Err(Failure::Usage(Problem::no_port(name).to_string()));
    }
    show(format, &list, name.is_some(), |ports| {
        let head = [
            ("PORT", Align::Left),
            ("INTERFACE", Align::Left),
            ("STATE", Align::Left),
            ("DRIVER", Align::Left),
            ("MTU", Align::Right),
            ("NETWORKS", Align::Right),
            ("RECEIVED", Align::Right),
            ("SENT", Align::Right),
            ("SINCE", Align::Left),
            ("NOTE", Align::Left),
        ];
        let row = |port: &Port| {
            let state = if port.state == PortState::Up { GREEN } else { RED };
            let count = |of: fn(&hueplaned::api::PortStats) -> u64| {
                port.stats.as_ref().map_or_else(String::new, |stats| grouped(of(stats)))
            };
            let notes: Vec<&str> = port.error.iter().chain(&port.note).map(String::as_str).collect();
            vec![
                port.name.clone(),
                port.peer.as_ref().map_or_else(|| port.interface.clone(), |peer| format!("link to {peer}")),
                styled(state, port.state.name()),
                port.driver.clone().unwrap_or_else(|| "-".to_owned()),
                port.mtu.to_string(),
                port.networks.len().to_string(),
                count(|stats| stats.received),
                count(|stats| stats.sent),
                port.stats.as_ref().and_then(|stats| stats.since).map_or_else(|| "-".to_owned(), moment),
                notes.join("; "),
            ]
        };
        columns(&head, &ports.iter().map(row).collect::<Vec<_>>())
    })
}

fn routes(client: &Client, format: Format, name: Option<&str>, network: Option<&str>) -> Result<(), Failure> {
    let address = name.map(str::parse::<IpAddr>).and_then(Result::ok);
    if let Some(name) = name.filter(|_| address.is_none())
        && let Err(error) = name.parse::<AnyPrefix>()
    {
        let why = match error {
            PrefixError::Length(..) | PrefixError::HostBits(..) => format!(" ({error})"),
            PrefixError::Form(_) | PrefixError::Address(..) => String::new(),
        };
        return Err(Failure::Usage(format!(
            "found {name:?}, expected a prefix such as 10.1.0.0/16, or an address{why}"
        )));
    }
    let filter = RouteFilter { network: network.map(str::to_owned), address, limit: None };
    let painter = Painter::ask(client);
    let mut head = Some(format!(
        "{:<16}{:<20}{:<9}{:<17}{:<12}{:<19}{:<10}{}",
        "NETWORK", "PREFIX", "DOES", "VIA", "PORT", "MAC", "PROTOCOL", "METRIC"
    ));
    // The heading is printed with the first route, so that an earlier error leaves standard output empty.
    let (mut list, mut failed) = (None, None);
    client.routes_each(&filter, |route| {
        let wanted = address.is_some() || name.is_none_or(|prefix| route.prefix == prefix);
        if !wanted || failed.is_some() {
            return;
        }
        let pushed = match &mut list {
            Some(list) => List::push(list, &route, |route| route_row(route, &painter)),
            None => List::begin(format, &head.take().unwrap_or_default())
                .and_then(|begun| list.insert(begun).push(&route, |route| route_row(route, &painter))),
        };
        failed = pushed.err();
    })?;
    match (failed, list) {
        (Some(failure), _) => Err(failure),
        (None, Some(list)) => list.end(),
        (None, None) => List::begin(format, "no routes")?.end(),
    }
}

fn route_row(route: &Route, painter: &Painter) -> String {
    let (does, style) = match route.kind {
        _ if route.refused => ("refused", RED),
        RouteKind::Forward => (route.kind.name(), GREEN),
        RouteKind::Glean => (route.kind.name(), YELLOW),
        RouteKind::Local => (route.kind.name(), DIM),
    };
    let pad =
        |text: String, shown: usize, width: usize| text + &" ".repeat(width.saturating_sub(shown).max(1));
    let wide = |text: String, width: usize| {
        let shown = text.len();
        pad(text, shown, width)
    };
    let mut text = format!(
        "{}{}{}{}{:<12}{:<19}{:<10}{}",
        pad(painter.paint(&route.network), route.network.len(), 16),
        wide(route.prefix.clone(), 20),
        pad(styled(style, does), does.len(), 9),
        wide(route.via.map_or_else(|| "-".to_owned(), |via| via.to_string()), 17),
        route.port.as_deref().unwrap_or("-"),
        route.mac.as_deref().unwrap_or("-"),
        route.protocol,
        route.metric,
    );
    if let Some(slice) = route.slice {
        text += &format!(
            "{:width$}slice {slice}",
            "",
            width = 8_usize.saturating_sub(route.metric.to_string().len()).max(1)
        );
    }
    for way in &route.ways {
        let via = wide(way.via.map_or_else(|| "-".to_owned(), |via| via.to_string()), 17);
        let port = way.port.as_deref().unwrap_or("-");
        let dead = if way.dead { ", dead" } else { "" };
        text += &format!("\n{:45}{via}{port:<12}weight {}{dead}", "", way.weight);
    }
    text
}

fn neighbours(
    client: &Client,
    format: Format,
    name: Option<&str>,
    network: Option<&str>,
) -> Result<(), Failure> {
    let address: Option<IpAddr> = match name {
        Some(name) => Some(
            name.parse()
                .map_err(|_| Failure::Usage(format!("found {name:?}, expected an IPv4 or IPv6 address")))?,
        ),
        None => None,
    };
    let filter = NetworkFilter { network: network.map(str::to_owned), limit: None };
    let mut list = client.neighbours(&filter)?;
    list.retain(|neighbour| address.is_none_or(|address| neighbour.address == address));
    result(format, &list, || {
        let head = [
            ("NETWORK", Align::Left),
            ("PORT", Align::Left),
            ("ADDRESS", Align::Left),
            ("MAC", Align::Left),
            ("STATE", Align::Left),
        ];
        let painter = Painter::ask(client);
        let row = |neighbour: &Neighbour| {
            vec![
                painter.paint(&neighbour.network),
                neighbour.port.clone(),
                neighbour.address.to_string(),
                neighbour.mac.clone().unwrap_or_else(|| "-".to_owned()),
                neighbour.state.clone(),
            ]
        };
        columns(&head, &list.iter().map(row).collect::<Vec<_>>())
    })
}

fn macs(client: &Client, format: Format, name: Option<&str>, network: Option<&str>) -> Result<(), Failure> {
    let wrong = |name: &str| Failure::Usage(format!("found {name:?}, expected a MAC address"));
    let only: Option<hue_wire::Mac> = name.map(|name| name.parse().map_err(|_| wrong(name))).transpose()?;
    let filter = NetworkFilter { network: network.map(str::to_owned), limit: None };
    let mut list = client.macs(&filter)?;
    list.retain(|one| only.is_none_or(|only| one.mac == only.to_string()));
    result(format, &list, || {
        let head = [
            ("NETWORK", Align::Left),
            ("MAC", Align::Left),
            ("PORT", Align::Left),
            ("LAST SEEN", Align::Left),
        ];
        let painter = Painter::ask(client);
        let row = |one: &MacAddress| {
            let seen = one.age_seconds.map_or_else(|| "static".to_owned(), |age| format!("{age} s ago"));
            vec![painter.paint(&one.network), one.mac.clone(), one.port.clone(), seen]
        };
        columns(&head, &list.iter().map(row).collect::<Vec<_>>())
    })
}

fn entries(
    client: &Client,
    format: Format,
    name: Option<&str>,
    network: Option<&str>,
) -> Result<(), Failure> {
    let wrong = |name: &str| Failure::Usage(format!("found {name:?}, expected the number of an entry"));
    let only: Option<u64> = name.map(|name| name.parse().map_err(|_| wrong(name))).transpose()?;
    let filter = NetworkFilter { network: network.map(str::to_owned), limit: None };
    let mut list = client.entries(&filter)?;
    list.retain(|one| only.is_none_or(|only| one.index == only));
    result(format, &list, || {
        let head = [
            ("NETWORK", Align::Left),
            ("ENTRY", Align::Right),
            ("MATCH", Align::Left),
            ("ACTION", Align::Left),
            ("LABELS", Align::Left),
            ("PORT", Align::Left),
            ("DESTINATION", Align::Left),
            ("SOURCE", Align::Left),
            ("LAST SEEN", Align::Left),
        ];
        let painter = Painter::ask(client);
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let row = |one: &TableEntry| {
            vec![
                painter.paint(&one.network),
                one.index.to_string(),
                one.matches.clone(),
                one.action.name().to_owned(),
                labels(one.labels.as_deref()),
                text(&one.port),
                text(&one.destination),
                text(&one.source),
                one.age_seconds.map_or_else(|| "static".to_owned(), |age| format!("{age} s ago")),
            ]
        };
        columns(&head, &list.iter().map(row).collect::<Vec<_>>())
    })
}

/// The labels that an entry of kind `mpls` gives packets, the top first.
fn labels(labels: Option<&[u32]>) -> String {
    match labels {
        None => "-".to_owned(),
        Some([]) => "pop".to_owned(),
        Some(labels) => labels.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    }
}

fn tables(client: &Client, format: Format, name: Option<&str>) -> Result<(), Failure> {
    let tables = client.tables()?;
    let painter = Painter::ask(client);
    if let Some(name) = name {
        let share = tables.networks.iter().find(|share| share.network == name);
        let share = share.ok_or_else(|| Failure::Usage(Problem::no_network(name).to_string()))?;
        return result(format, share, || shares(std::slice::from_ref(share), &painter));
    }
    result(format, &tables, || {
        let mut out = shares(&tables.networks, &painter);
        if let (Some(total), Some(max), Some(free)) =
            (tables.bytes_total, tables.bytes_max, tables.bytes_free)
        {
            let (total, max, free) = (grouped(total), grouped(max), grouped(free));
            out.push_str(&format!(
                "software, layout {}: {total} of {max} bytes, {free} free\n",
                tables.layout
            ));
        }
        if let Some(card) = &tables.card {
            out.push('\n');
            out.push_str(&on_card(card, &painter));
        }
        out
    })
}

/// The networks' shares of the software table.
fn shares(shares: &[TableShare], painter: &Painter) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("ROUTES", Align::Right),
        ("REFUSED", Align::Right),
        ("NEXT HOPS", Align::Right),
        ("OWN BYTES", Align::Right),
        ("SHARED", Align::Right),
        ("MARGINAL", Align::Right),
        ("QUOTA", Align::Right),
    ];
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), grouped);
    let row = |share: &TableShare| {
        let refused = grouped(share.routes_refused);
        vec![
            painter.paint(&share.network),
            grouped(share.routes),
            if share.routes_refused > 0 { styled(RED, refused) } else { refused },
            grouped(share.next_hops),
            grouped(share.bytes_own),
            bytes(share.bytes_shared),
            bytes(share.bytes_marginal),
            bytes(share.bytes_quota),
        ]
    };
    columns(&head, &shares.iter().map(row).collect::<Vec<_>>())
}

/// The networks' shares of the card's tables, and their usage.
fn on_card(card: &CardTables, painter: &Painter) -> String {
    let own = format!("OWN {}", card.unit.to_uppercase());
    let head = [
        ("ON THE CARD", Align::Left),
        ("ROUTES", Align::Right),
        (own.as_str(), Align::Right),
        ("SHARED", Align::Right),
        ("MARGINAL", Align::Right),
    ];
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), grouped);
    let row = |share: &CardShare| {
        vec![
            painter.paint(&share.network),
            grouped(share.routes),
            grouped(share.own),
            number(share.shared),
            number(share.marginal),
        ]
    };
    let mut out = columns(&head, &card.networks.iter().map(row).collect::<Vec<_>>());
    for memory in &card.memories {
        let [used, max, free] = [memory.used, memory.max, memory.free].map(grouped);
        let each = memory.network_max.map_or_else(String::new, |max| format!(", {} a network", grouped(max)));
        out.push_str(&format!(
            "card {}, layout {}, {}: {used} of {max}, {free} free{each}\n",
            card.image, card.layout, memory.name
        ));
    }
    out
}

fn placements(client: &Client, format: Format, name: Option<&str>) -> Result<(), Failure> {
    let mut list = client.placements()?;
    list.retain(|placement| name.is_none_or(|name| placement.network == name));
    if let (Some(name), true) = (name, list.is_empty()) {
        return Err(Failure::Usage(Problem::no_network(name).to_string()));
    }
    show(format, &list, name.is_some(), |placements| {
        let head = [
            ("NETWORK", Align::Left),
            ("PLACEMENT", Align::Left),
            ("SUBSTRATE", Align::Left),
            ("SINCE", Align::Left),
            ("WHY", Align::Left),
            ("WHY NOT ELSEWHERE", Align::Left),
        ];
        let painter = Painter::ask(client);
        let row = |placement: &Placement| {
            let reason = |reason: &Option<String>| reason.clone().unwrap_or_else(|| "-".to_owned());
            vec![
                painter.paint(&placement.network),
                placement.placement.clone(),
                placement.substrate.clone(),
                placement.since.to_string(),
                reason(&placement.why),
                reason(&placement.why_not),
            ]
        };
        columns(&head, &placements.iter().map(row).collect::<Vec<_>>())
    })
}
