//! The explanation of one packet by `hueplane trace`, as data for JSON and text. The types are those of the
//! API, so that explanations from files and from the running daemon look the same.

use hue_demux::{Match, PortId, Row, inner_destination};
use hue_planes::Stage;
use hue_planes::Verdict;
use hue_soft::NetworkTrace;
use hue_wire::Mac;
use hueplaned::api::{Change, InNetwork, Step, Trace};
use serde::Serialize;

use super::engine::Engine;

/// The explanation of one packet.
#[derive(Serialize)]
pub struct Explained {
    /// Number of the packet in the capture, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<u64>,
    /// The explanation, in the format of the API.
    #[serde(flatten)]
    pub trace: Trace,
    /// What happens to it after each link inside the node that it crosses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crossed: Vec<Trace>,
}

/// Explains a frame that arrives on `port`.
pub fn explain(engine: &mut Engine, port: PortId, time_ns: u64, frame: &[u8]) -> Trace {
    let trace = engine.soft.explain(port, time_ns, frame);
    let (verdict, reason) = match (trace.unclaimed, trace.networks.as_slice()) {
        (Some(reason), _) => (Some(Verdict::Drop.name()), Some(reason.name())),
        (None, [one]) => (Some(one.outcome.verdict().name()), Some(one.outcome.name())),
        (None, _) => (None, None),
    };
    Trace {
        verdict: verdict.map(str::to_owned),
        reason: reason.map(str::to_owned),
        in_port: engine.port_name(port).to_owned(),
        length: frame.len(),
        bytes: hex(frame),
        stages: steps(engine, trace.stages),
        unclaimed: trace.unclaimed.map(|reason| reason.name().to_owned()),
        networks: trace
            .networks
            .into_iter()
            .map(|network| in_network(engine, port, frame, network))
            .collect(),
    }
}

fn in_network(engine: &Engine, port: PortId, frame: &[u8], trace: NetworkTrace) -> InNetwork {
    let program = engine.programs.iter().find(|program| program.vid == trace.vid);
    let names = engine.names.network(trace.vid);
    let virtual_port = program.and_then(|program| program.ports.get(usize::from(trace.vport)));
    let row = program.and_then(|program| {
        program
            .rows
            .iter()
            .filter(|row| row.vport == trace.vport)
            .filter(|row| matches(row, port, frame))
            .max_by_key(|row| match row.select {
                Match::Inner { prefix, .. } => prefix.len(),
                Match::Mac { .. } | Match::Port(_) => 0,
            })
    });
    let route = trace.key.and_then(|address| names.and_then(|names| names.explain(address)));
    InNetwork {
        virtual_port: virtual_port.map_or_else(|| "?".to_owned(), |port| port.name.clone()),
        row: row.map(|row| engine.with_port_names(&row.select.to_string())),
        stages: steps(engine, trace.stages),
        route,
        verdict: trace.outcome.verdict().name().to_owned(),
        reason: trace.outcome.name().to_owned(),
        why: trace.outcome.row().doc.to_owned(),
        out_port: trace.egress.map(|port| engine.port_name(port).to_owned()),
        changes: changes(frame, &trace.bytes),
        bytes: hex(&trace.bytes),
        network: trace.name,
    }
}

/// Whether a row matches the frame. Design select decides which matching row wins.
fn matches(row: &Row, port: PortId, frame: &[u8]) -> bool {
    match row.select {
        Match::Mac { port: on, mac } => on == port && frame.first_chunk::<6>() == Some(&mac.0),
        Match::Inner { port: on, prefix } => {
            on.is_none_or(|on| on == port)
                && inner_destination(frame).is_some_and(|address| prefix.contains(address))
        }
        Match::Port(on) => on == port,
    }
}

fn steps(engine: &Engine, stages: Vec<Stage>) -> Vec<Step> {
    let step = |stage: Stage| Step {
        stage: stage.name.to_owned(),
        detail: engine.with_port_names(&stage.detail),
        decided: stage.outcome.map(str::to_owned),
    };
    stages.into_iter().map(step).collect()
}

/// Fields of a forwarded frame that differ, then any other bytes that differ.
fn changes(before: &[u8], after: &[u8]) -> Vec<Change> {
    let mac =
        |bytes: &[u8]| <[u8; 6]>::try_from(bytes).map_or_else(|_| hex(bytes), |mac| Mac(mac).to_string());
    let number = |bytes: &[u8]| bytes.first().map_or_else(String::new, ToString::to_string);
    let word = |bytes: &[u8]| format!("0x{}", hex(bytes));
    type Show<'a> = &'a dyn Fn(&[u8]) -> String;
    let mut fields: Vec<(&'static str, usize, usize, Show<'_>)> =
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
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Parses hexadecimal digits; blanks, ':' and '-' may separate bytes.
///
/// # Errors
/// The invalid text and its position.
pub fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for (at, c) in text.chars().enumerate() {
        match (c.to_digit(16), high) {
            (Some(digit), None) => high = Some(digit as u8),
            (Some(digit), Some(first)) => {
                bytes.push(first << 4 | digit as u8);
                high = None;
            }
            (None, None) if c.is_whitespace() || c == ':' || c == '-' => {}
            (None, _) => {
                let what = if high.is_some() { "the second digit of a byte" } else { "a hexadecimal digit" };
                return Err(format!("found {c:?} at character {}, expected {what}", at + 1));
            }
        }
    }
    if high.is_some() {
        return Err("found half a byte at the end, expected two digits per byte".to_owned());
    }
    Ok(bytes)
}
