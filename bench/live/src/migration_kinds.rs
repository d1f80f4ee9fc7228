//! Networks of other kinds than `ipv4` move under traffic: a router with 10,000 IPv6 routes, and a switch while it learns.

use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::raw::Flood;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Host, Lab, until};
use serde_json::json;

use crate::Settings;
use crate::measure::Spread;
use crate::migration::{check, migrate, number};
use crate::report::{Section, round};

/// The image that has these kinds.
const IMAGE: &str = "sram";
const ROUTES: u32 = 10_000;
/// Frames a second from hosts that the switch does not know.
const NEWCOMERS: u32 = 150;
/// Packets a second of each flow.
const RATE: u32 = 400;

/// Measures; what was lost, doubled or reordered is added to `wrong`.
pub fn section(settings: &Settings, wrong: &mut Vec<String>) -> Section {
    let mut section = Section::new(
        format!("other kinds, {} round trips, {RATE} packets/s in each direction", settings.moves),
        &[
            "network",
            "sent",
            "lost",
            "doubled",
            "reordered",
            "to soft ms median",
            "max",
            "to card ms median",
            "max",
        ],
    );
    let lab = Lab::new(4);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let hosts = [2, 3].map(|port| {
        lab.bare_host(
            &format!("lan{port}"),
            port,
            [2, 0xbb, 0, 0, 0, port as u8],
            &format!("10.77.0.{port}/24"),
        )
    });
    let routes: Vec<String> = (0..ROUTES)
        .map(|n| {
            format!("{{to: \"2001:db8:{:x}:{:x}::/64\", via: \"2001:db8:1:2::2\"}}", 0x100 + n / 256, n % 256)
        })
        .collect();
    let router = six.document.clone().with("routes", &format!("[{}]", routes.join(", ")));
    let (lan, ports) = (lab.name("lan"), lab.ports());
    let port = |at: usize| {
        format!(
            "    - {{name: v{at}, port: {}, mac: \"{}\"}}\n",
            ports[at],
            text([2, 0, 0, 0, 0x70, at as u8])
        )
    };
    let switch = format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {lan}}}\nspec:\n  plane: {{kind: l2}}\n  placement: card\n  ports:\n{}{}",
        port(2),
        port(3)
    );
    let card = format!("  card: {{twin: {{image: {IMAGE}}}, ports: [{}]}}\n", ports.join(", "));
    let node = format!("{}{card}", lab.node_document(""));
    let daemon = Daemon::start_with(&lab, &Cli::new(&lab), &[]);
    daemon.cli.apply(&all(&[node, router.with("placement", "card").yaml(), switch]), &[]);
    for name in [six.name(), &lan] {
        until("networks are on the card", 60, || {
            daemon.cli.json(&["get", "networks", name])["substrate"] == "card"
        });
    }
    six.warm_up();
    until("hosts of the switch reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    let both =
        |one: &Host, other: &Host| [Flow::start(one, other, RATE, 200), Flow::start(other, one, RATE, 200)];
    let mut measure = |what: String, name: &str, flows: [Flow; 2]| {
        until("traffic", 20, || flows.iter().all(|flow| flow.received() > u64::from(RATE) / 2));
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..settings.moves {
            for (to, times) in ["soft", "card"].into_iter().zip(&mut times) {
                times.push(number(&migrate(&daemon, name, to), "/duration_us") / 1e3);
            }
        }
        let (mut sent, mut counts) = (0, [0; 3]);
        for flow in flows {
            let traffic = flow.stop();
            check(&what, &traffic, wrong);
            sent += traffic.sent;
            let these = [traffic.lost(), traffic.duplicated, traffic.reordered];
            counts.iter_mut().zip(these).for_each(|(sum, count)| *sum += count);
        }
        let mut row = vec![json!(what), json!(sent)];
        row.extend(counts.map(|count| json!(count)));
        for times in times {
            let spread = Spread::new(times);
            row.extend([round(spread.median(), 2), round(spread.max(), 2)]);
        }
        section.row(row);
    };
    measure(format!("`ipv6`, {ROUTES} routes"), six.name(), both(&six.left, &six.right));
    // Every frame is from another sender, and to one that is known, so that only learning is measured.
    let frames = (0..4_000u16)
        .map(|n| [&hosts[0].mac[..], &[2, 0xcc, 0, 0], &n.to_be_bytes(), &[0x12, 0x36], &[7; 46]].concat());
    let news = Flood::start(&hosts[1].space, frames.collect(), NEWCOMERS);
    measure(format!("`l2`, which learns {NEWCOMERS} addresses/s"), &lan, both(&hosts[0], &hosts[1]));
    let _ = news.stop();
    section.note(format!(
        "Image {IMAGE}; both networks are on it at the start. Packets are counted by the hosts that receive them; a move's time is that of \
         all its steps, with the table's way to the card."
    ));
    section
}
