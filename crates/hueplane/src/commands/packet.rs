//! The explanation of one packet by `hueplane trace`, as data for JSON and text. The types are those of the
//! API, so that explanations from files and from the running daemon look the same.

use std::net::IpAddr;

use hue_demux::PortId;
use hue_soft::NetworkTrace;
use hue_substrate::Program;
use hue_tables::Vid;
use hueplaned::api::Trace;
use hueplaned::explain::{Words, explained};
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
    /// What happens to it after each link inside the node that it crosses, and each tunnel into or out of which it goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crossed: Vec<Trace>,
}

/// Explains a frame that arrives on `port`; returns what the networks do with it too.
pub fn explain(engine: &Engine, port: PortId, time_ns: u64, frame: &[u8]) -> (Trace, Vec<NetworkTrace>) {
    let trace = engine.soft.explain(port, time_ns, frame);
    let networks = trace.networks.clone();
    (explained(engine, port, frame, trace), networks)
}

impl Words for Engine {
    fn port(&self, id: PortId) -> Option<String> {
        self.names.ports.get(id.index()).map(|port| port.name.clone())
    }

    fn program(&self, vid: Vid) -> Option<&Program> {
        self.programs.iter().find(|program| program.vid == vid)
    }

    fn route(&self, vid: Vid, address: IpAddr) -> Option<String> {
        self.names.network(vid)?.explain(address)
    }
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
