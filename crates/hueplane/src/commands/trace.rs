//! `hueplane trace`: each stage that a packet passes, what matched, what changed, and the verdict with its
//! reason.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::path::Path;

use hue_demux::PortId;
use hue_planes::Verdict;
use hue_ports::CaptureReader;
use hue_soft::NetworkTrace;
use hueplaned::api::{InNetwork, Step, Trace, TraceRequest};
use hueplaned::client::Client;
use hueplaned::explain::explained_passage;

use super::engine::Engine;
use super::live;
use super::packet::{Explained, explain, hex, unhex};
use crate::cli::{self, Connection};
use crate::failure::Failure;
use crate::print::{self, BOLD, DIM, GREEN, List, RED, YELLOW, result, styled};

/// Bytes in a line of the hexadecimal dump.
const DUMP_BYTES: usize = 16;
/// Most links and passages of tunnels of which a trace is shown.
const CROSSINGS_MAX: usize = 255;

/// Source of explanations: the networks of files, or the running daemon.
enum Explainer<'a> {
    Files {
        engine: Box<Engine>,
        port: PortId,
    },
    Daemon {
        client: Client,
        port: &'a str,
        networks: Vec<hueplaned::api::Network>,
        /// The other ends of links, by name.
        peers: HashMap<String, String>,
    },
}

/// Where a packet goes on inside the node.
enum Onward {
    /// Over a link: the port at its other end, and the frame there.
    Link { port: String, frame: Vec<u8> },
    /// Into or out of a tunnel.
    Tunnel(Trace, Vec<NetworkTrace>),
}

impl<'a> Explainer<'a> {
    fn new(args: &'a cli::Trace, connection: &Connection) -> Result<Self, Failure> {
        if args.live {
            let client = live::client(connection)?;
            let networks = client.networks()?;
            let ports = client.ports()?.into_iter();
            let peers = ports.filter_map(|port| Some((port.name, port.peer?))).collect();
            return Ok(Self::Daemon { client, port: &args.in_port, networks, peers });
        }
        let engine = Engine::load(&args.files)?;
        let port = engine.port(&format!("--in-port {}", args.in_port), &args.in_port)?;
        Ok(Self::Files { engine: Box::new(engine), port })
    }

    /// Explains one frame; `packet` is its number in a capture, counted from 1.
    fn explain(&self, time_ns: u64, frame: &[u8], packet: Option<u64>) -> Result<Explained, Failure> {
        let (mut trace, networks) = self.on_port(None, time_ns, frame)?;
        let mut crossed = Vec::new();
        let mut next = VecDeque::from(self.onwards(&mut trace, &networks, time_ns));
        while let Some(onward) = next.pop_front().filter(|_| crossed.len() < CROSSINGS_MAX) {
            let (mut trace, networks) = match onward {
                Onward::Link { port, frame } => self.on_port(Some(&port), time_ns, &frame)?,
                Onward::Tunnel(trace, networks) => (trace, networks),
            };
            next.extend(self.onwards(&mut trace, &networks, time_ns));
            crossed.push(trace);
        }
        Ok(Explained { packet, trace, crossed })
    }

    /// Explains a frame that arrives on a port; by default the port that the user named.
    fn on_port(
        &self,
        port: Option<&str>,
        time_ns: u64,
        frame: &[u8],
    ) -> Result<(Trace, Vec<NetworkTrace>), Failure> {
        match self {
            Self::Files { engine, port: named } => {
                let port = port.map_or(Ok(*named), |port| engine.port(port, port))?;
                Ok(explain(engine, port, time_ns, frame))
            }
            Self::Daemon { client, port: named, .. } => {
                let request = TraceRequest { port: port.unwrap_or(named).to_owned(), frame: hex(frame) };
                Ok((client.trace(&request)?, Vec::new()))
            }
        }
    }

    /// Where the packets of a trace go on inside the node. The daemon tells of all tunnels at once.
    fn onwards(&self, trace: &mut Trace, networks: &[NetworkTrace], time_ns: u64) -> Vec<Onward> {
        let mut onwards = self.onto_links(trace);
        match self {
            Self::Files { engine, .. } => {
                for passage in networks.iter().flat_map(|one| engine.soft.explain_tunnels(one, time_ns)) {
                    let (trace, network) = explained_passage(&**engine, passage);
                    onwards.push(Onward::Tunnel(trace, network.into_iter().collect()));
                }
            }
            Self::Daemon { .. } => {
                let passages = std::mem::take(&mut trace.passages);
                onwards.extend(passages.into_iter().map(|passage| Onward::Tunnel(passage, Vec::new())));
            }
        }
        onwards
    }

    /// The frames that leave onto links inside the node.
    fn onto_links(&self, trace: &Trace) -> Vec<Onward> {
        let forwarded = trace.networks.iter().filter(|network| network.verdict == Verdict::Forward.name());
        let crossing = forwarded.filter_map(|network| {
            let out = network.out_port.as_deref()?;
            let peer = match self {
                Self::Files { engine, .. } => {
                    let port = engine.names.ports.iter().find(|port| port.name == out)?;
                    engine.port_name(port.peer?).to_owned()
                }
                Self::Daemon { peers, .. } => peers.get(out)?.clone(),
            };
            Some(Onward::Link { port: peer, frame: unhex(&network.bytes).ok()? })
        });
        crossing.collect()
    }

    /// A network's name in its colour.
    fn painted(&self, name: &str) -> String {
        match self {
            Self::Files { engine, .. } => {
                let program = engine.programs.iter().find(|program| program.name == name);
                program.map_or_else(|| name.to_owned(), |program| engine.painted(program.vid))
            }
            Self::Daemon { networks, .. } => {
                let network = networks.iter().find(|network| network.name == name);
                print::painted(name, network.and_then(|network| network.colour.as_deref()))
            }
        }
    }
}

/// Runs the command.
pub fn run(args: &cli::Trace, connection: &Connection) -> Result<(), Failure> {
    let explainer = Explainer::new(args, connection)?;
    let format = args.output.format;
    if let Some(hex) = &args.hex {
        let frame = unhex(hex).map_err(|fault| Failure::Usage(format!("--hex: {fault}")))?;
        let explained = explainer.explain(0, &frame, None)?;
        return result(format, &explained, || text(&explainer, &explained));
    }
    let Some(path) = &args.pcap else {
        return Err(Failure::Usage("expected --hex or --pcap".to_owned()));
    };
    match args.packet {
        Some(number) => {
            let explained = one(&explainer, path, number)?;
            result(format, &explained, || text(&explainer, &explained))
        }
        None => all(args, &explainer, path),
    }
}

/// Explains packet `number` (counted from 1) of a capture.
fn one(explainer: &Explainer<'_>, path: &Path, number: u64) -> Result<Explained, Failure> {
    let mut reader = CaptureReader::open(path)?;
    let mut explained = None;
    while reader.packets() < number {
        let is_it = reader.packets() + 1 == number;
        let more = reader.next_frame(|frame| {
            if is_it {
                explained = Some(explainer.explain(frame.time_ns, frame.bytes, Some(number)));
            }
        })?;
        if !more {
            break;
        }
    }
    explained.unwrap_or_else(|| {
        let packets = reader.packets();
        Err(Failure::Input(format!("{}: found {packets} packets, expected packet {number}", path.display())))
    })
}

/// Explains all packets of a capture, one after another.
fn all(args: &cli::Trace, explainer: &Explainer<'_>, path: &Path) -> Result<(), Failure> {
    hue_ports::scan(path)?; // detects damage before anything is printed
    let mut reader = CaptureReader::open(path)?;
    let mut list = List::begin(args.output.format, "")?;
    loop {
        let number = reader.packets() + 1;
        let mut explained = None;
        reader.next_frame(|frame| {
            explained = Some(explainer.explain(frame.time_ns, frame.bytes, Some(number)));
        })?;
        match explained.transpose()? {
            Some(explained) => list.push(&explained, |explained| text(explainer, explained))?,
            None => return list.end(),
        }
    }
}

/// The explanation of a packet as text.
fn text(explainer: &Explainer<'_>, explained: &Explained) -> String {
    let packet = explained.packet.map_or_else(|| "packet".to_owned(), |number| format!("packet {number}"));
    let mut out = String::new();
    part(&mut out, explainer, &packet, &explained.trace);
    for trace in &explained.crossed {
        let by_tunnel = trace.stages.first().is_some_and(|step| step.stage == "tunnel");
        let what = if by_tunnel { "through the tunnel:" } else { "over the link:" };
        part(&mut out, explainer, what, trace);
    }
    out
}

/// The explanation of a packet on one port.
fn part(out: &mut String, explainer: &Explainer<'_>, what: &str, explained: &Trace) {
    let title = format!("{what} on {}, {} bytes", explained.in_port, explained.length);
    let _ = writeln!(out, "{}", styled(BOLD, title));
    explained.stages.iter().for_each(|step| line(out, 2, step));
    let lost = explained.reason.as_ref().filter(|_| explained.networks.is_empty());
    if let Some(reason) = explained.unclaimed.as_ref().or(lost) {
        let _ = writeln!(out, "  {:<9} {}", "verdict", styled(RED, format!("drop {reason}")));
    }
    explained.networks.iter().for_each(|network| section(out, explainer, network));
    dump(out, "  before", &explained.bytes, &explained.bytes);
    for network in explained.networks.iter().filter(|network| !network.changes.is_empty()) {
        let title = if explained.networks.len() == 1 {
            "  after".to_owned()
        } else {
            format!("  after {}", network.network)
        };
        dump(out, &title, &network.bytes, &explained.bytes);
    }
}

fn line(out: &mut String, indent: usize, step: &Step) {
    let _ = writeln!(out, "{:indent$}{:<9} {}", "", step.stage, step.detail);
}

fn section(out: &mut String, explainer: &Explainer<'_>, network: &InNetwork) {
    let _ = writeln!(
        out,
        "  network   {} {}",
        explainer.painted(&network.network),
        styled(DIM, format!("port {}", network.virtual_port))
    );
    if let Some(row) = &network.row {
        let _ = writeln!(out, "    {:<9} {row}", "row");
    }
    for step in &network.stages {
        line(out, 4, step);
        if let Some(route) = network.route.as_ref().filter(|_| step.stage == "lookup") {
            let _ = writeln!(out, "    {:<9} {route}", "route");
        }
    }
    let style = match network.verdict.as_str() {
        "forward" => GREEN,
        "punt" => YELLOW,
        _ => RED,
    };
    let verdict = match &network.out_port {
        Some(port) => format!("{} to {port}", network.verdict),
        None => format!("{} {}", network.verdict, network.reason),
    };
    let _ = writeln!(out, "    {:<9} {}: {}", "verdict", styled(style, verdict), network.why);
}

/// A hexadecimal dump, with bytes that differ from `other` highlighted.
fn dump(out: &mut String, title: &str, digits: &str, other: &str) {
    let _ = writeln!(out, "{title}");
    let bytes: Vec<(&str, bool)> = (0..digits.len() / 2)
        .filter_map(|at| {
            let byte = digits.get(at * 2..at * 2 + 2)?;
            Some((byte, other.get(at * 2..at * 2 + 2) != Some(byte)))
        })
        .collect();
    for (row, chunk) in bytes.chunks(DUMP_BYTES).enumerate() {
        let _ = write!(out, "    {}", styled(DIM, format!("{:04x}", row * DUMP_BYTES)));
        for (byte, changed) in chunk {
            let _ = write!(out, " {}", if *changed { styled(YELLOW, byte) } else { (*byte).to_owned() });
        }
        out.push('\n');
    }
}
