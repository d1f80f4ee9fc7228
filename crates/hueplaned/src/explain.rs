//! Explains one frame in terms of the API: the engine's trace, with names in place of numbers.
//!
//! Flow: the engine's trace and a source of names ([`Words`]) → [`Trace`] → API, command line. Used for the running
//! system and for offline traces of configuration files.

use std::net::IpAddr;

use hue_demux::{Match, PortId, Row, inner_destination, own_destination};
use hue_planes::Stage;
use hue_planes::Verdict;
use hue_soft::{NetworkTrace, Passage, Trace as Explained};
use hue_substrate::Program;
use hue_tables::Vid;
use hue_wire::Mac;

use crate::api::{Change, InNetwork, Step, Trace};

/// Source of names for numbers.
pub trait Words {
    /// Name of a physical port.
    fn port(&self, id: PortId) -> Option<String>;
    /// The program of a network.
    fn program(&self, vid: Vid) -> Option<&Program>;
    /// A network's route to an address, as text.
    fn route(&self, vid: Vid, address: IpAddr) -> Option<String>;
}

/// Explains what happens to `frame`, which arrives on `port`.
pub fn explained(words: &impl Words, port: PortId, frame: &[u8], trace: Explained) -> Trace {
    let (verdict, reason) = match (trace.unclaimed, trace.networks.as_slice()) {
        (Some(reason), _) => (Some(Verdict::Drop.name()), Some(reason.name())),
        (None, [one]) => (Some(one.outcome.verdict().name()), Some(one.outcome.name())),
        (None, _) => (None, None),
    };
    let networks = trace.networks.into_iter().map(|network| in_network(words, port, frame, network));
    Trace {
        verdict: verdict.map(str::to_owned),
        reason: reason.map(str::to_owned),
        in_port: port_name(words, port),
        length: frame.len(),
        bytes: hex(frame),
        stages: steps(words, trace.stages),
        unclaimed: trace.unclaimed.map(|reason| reason.name().to_owned()),
        networks: networks.collect(),
        passages: Vec::new(),
    }
}

/// Explains what a tunnel does with a packet, and the network behind it. Returns what that network does, too.
pub fn explained_passage(words: &impl Words, passage: Passage) -> (Trace, Option<NetworkTrace>) {
    let Passage { end, port, stages, bytes, next } = passage;
    let networks = next.iter().cloned().collect();
    let mut trace = explained(words, port, &bytes, Explained { stages, unclaimed: None, networks });
    let end = words.program(end.vid).and_then(|program| program.ports.get(usize::from(end.vport)));
    trace.in_port = end.map_or_else(|| "?".to_owned(), |end| end.name.clone());
    if let Err(loss) = next {
        trace.verdict = Some(Verdict::Drop.name().to_owned());
        trace.reason = Some(loss.name().to_owned());
    }
    (trace, next.ok())
}

/// Names in a network, whose tunnels have ids of its own in place of a physical port's.
struct WordsIn<'w, W: Words> {
    words: &'w W,
    program: Option<&'w Program>,
}

impl<W: Words> Words for WordsIn<'_, W> {
    fn port(&self, id: PortId) -> Option<String> {
        if !id.is_tunnel() {
            return self.words.port(id);
        }
        let port = self.program?.ports.iter().find(|port| port.port == id)?;
        let tunnel = port.tunnel.as_ref()?;
        let over = self.words.program(tunnel.over).map_or("?", |program| program.name.as_str());
        Some(format!("{} ({tunnel} over {over})", port.name))
    }

    fn program(&self, vid: Vid) -> Option<&Program> {
        self.words.program(vid)
    }

    fn route(&self, vid: Vid, address: IpAddr) -> Option<String> {
        self.words.route(vid, address)
    }
}

fn port_name(words: &impl Words, port: PortId) -> String {
    words.port(port).unwrap_or_else(|| format!("port {port}"))
}

fn in_network(words: &impl Words, port: PortId, frame: &[u8], trace: NetworkTrace) -> InNetwork {
    let program = words.program(trace.vid);
    let words = &WordsIn { words, program };
    let virtual_port = program.and_then(|program| program.ports.get(usize::from(trace.vport)));
    let rows = program.map(|program| program.rows.as_slice()).unwrap_or_default();
    let row =
        rows.iter().filter(|row| row.vport == trace.vport && claims(row, port, frame)).max_by_key(|row| {
            match row.select {
                Match::Inner { prefix, .. } => prefix.len(),
                Match::Mac { .. } | Match::Port(_) => 0,
            }
        });
    InNetwork {
        virtual_port: virtual_port.map_or_else(|| "?".to_owned(), |port| port.name.clone()),
        row: row.map(|row| with_port_names(words, &row.select.to_string())),
        stages: steps(words, trace.stages),
        route: trace.key.and_then(|address| words.route(trace.vid, address)),
        verdict: trace.outcome.verdict().name().to_owned(),
        reason: trace.outcome.name().to_owned(),
        why: trace.outcome.row().doc.to_owned(),
        out_port: trace.egress.map(|egress| port_name(words, egress)),
        changes: changes(frame, &trace.bytes),
        bytes: hex(&trace.bytes),
        network: trace.name,
    }
}

/// Whether a row matches the frame; design select decides which row wins.
fn claims(row: &Row, port: PortId, frame: &[u8]) -> bool {
    match row.select {
        Match::Mac { port: on, mac } => on == port && frame.first_chunk::<6>() == Some(&mac.0),
        Match::Inner { port: on, prefix } => {
            // Of a frame that came out of a tunnel, the virtual destination address is its own one.
            let address = if port.is_tunnel() { own_destination(frame) } else { inner_destination(frame) };
            on.is_none_or(|on| on == port) && address.is_some_and(|address| prefix.contains(address))
        }
        Match::Port(on) => on == port,
    }
}

fn steps(words: &impl Words, stages: Vec<Stage>) -> Vec<Step> {
    let step = |stage: Stage| Step {
        stage: stage.name.to_owned(),
        detail: with_port_names(words, &stage.detail),
        decided: stage.outcome.map(str::to_owned),
    };
    stages.into_iter().map(step).collect()
}

/// Replaces port numbers of the engine (`port 0`) by names.
fn with_port_names(words: &impl Words, text: &str) -> String {
    const PORT: &str = "port ";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PORT) {
        let (before, after) = rest.split_at(at + PORT.len());
        out.push_str(before);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let number = after.get(..digits).and_then(|number| number.parse().ok());
        rest = match number.and_then(|number| words.port(PortId::new(number))) {
            Some(name) => {
                out.push_str(&name);
                after.get(digits..).unwrap_or_default()
            }
            None => after,
        };
    }
    out + rest
}

/// Known fields that differ after forwarding, then any other byte that differs.
fn changes(before: &[u8], after: &[u8]) -> Vec<Change> {
    let mac =
        |bytes: &[u8]| <[u8; 6]>::try_from(bytes).map_or_else(|_| hex(bytes), |mac| Mac(mac).to_string());
    let number = |bytes: &[u8]| bytes.first().map_or_else(String::new, ToString::to_string);
    let word = |bytes: &[u8]| format!("0x{}", hex(bytes));
    type Show<'a> = &'a dyn Fn(&[u8]) -> String;
    let mut fields: Vec<(&str, usize, usize, Show<'_>)> =
        vec![("destination MAC", 0, 6, &mac), ("source MAC", 6, 6, &mac)];
    match before.get(12..14) {
        Some([0x86, 0xdd]) => fields.push(("hop limit", 21, 1, &number)),
        _ => fields.extend([("TTL", 22, 1, &number as Show<'_>), ("header checksum", 24, 2, &word)]),
    }
    let mut list = Vec::new();
    let mut change = |field: &str, offset: usize, len: usize, show: Show<'_>| {
        if let (Some(old), Some(new)) = (before.get(offset..offset + len), after.get(offset..offset + len))
            && old != new
        {
            list.push(Change { field: field.to_owned(), offset, before: show(old), after: show(new) });
        }
    };
    fields.iter().for_each(|(field, offset, len, show)| change(field, *offset, *len, *show));
    let known = |at: usize| fields.iter().any(|(_, offset, len, _)| (*offset..offset + len).contains(&at));
    (0..before.len().min(after.len())).filter(|at| !known(*at)).for_each(|at| change("byte", at, 1, &word));
    list
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
