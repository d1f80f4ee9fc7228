//! Single packets: traces and captures.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Timestamp;

/// A frame to trace on the running state. It is not sent or counted, and uses no tokens of a meter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Physical port it arrives on.
    pub port: String,
    /// The frame, in hexadecimal.
    pub frame: String,
}

impl TraceRequest {
    /// Decodes the frame; blanks, `:` and `-` are allowed between bytes.
    ///
    /// # Errors
    /// Says what was found and where.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let text = self.frame.trim();
        let text = text.strip_prefix("0x").unwrap_or(text);
        let (mut bytes, mut high) = (Vec::with_capacity(text.len() / 2), None);
        for (at, c) in text.chars().enumerate() {
            match (c.to_digit(16), high) {
                (Some(digit), None) => high = Some(digit),
                (Some(digit), Some(first)) => {
                    bytes.push((first << 4 | digit) as u8);
                    high = None;
                }
                (None, None) if c.is_whitespace() || c == ':' || c == '-' => {}
                (None, half) => {
                    let what =
                        if half.is_some() { "the second digit of a byte" } else { "a hexadecimal digit" };
                    return Err(format!("found {c:?} at character {}, expected {what}", at + 1));
                }
            }
        }
        match high {
            Some(_) => Err("found half a byte at the end, expected two digits a byte".to_owned()),
            None => Ok(bytes),
        }
    }
}

/// Trace of one packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// Port it arrives on.
    pub in_port: String,
    /// Length, bytes.
    pub length: usize,
    /// The frame as received, in hexadecimal.
    pub bytes: String,
    /// Stages before the network is known.
    pub stages: Vec<Step>,
    /// Why the frame belongs to no network; tenants get the same for frames of other networks.
    pub unclaimed: Option<String>,
    /// The verdict; null unless the frame is unclaimed or exactly one network received it.
    pub verdict: Option<String>,
    /// Name of the outcome; null when `verdict` is.
    pub reason: Option<String>,
    /// What each receiving network does with the frame; several only for group addresses.
    pub networks: Vec<InNetwork>,
    /// What happens to it after each tunnel into or out of which it goes, in order; `in_port` is the virtual port at the tunnel's end.
    /// A packet that the tunnel loses has no network, and the loss as `reason`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub passages: Vec<Trace>,
}

/// One stage of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// Name.
    pub stage: String,
    /// What it found, as text.
    pub detail: String,
    /// The outcome, if this stage decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

/// What one network does with the packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct InNetwork {
    /// The network.
    pub network: String,
    /// Virtual port it arrives on.
    pub virtual_port: String,
    /// The design-select row that matched; null for group addresses.
    pub row: Option<String>,
    /// Its stages.
    pub stages: Vec<Step>,
    /// The route found by the lookup, if the packet got that far.
    pub route: Option<String>,
    /// The verdict: `forward`, `punt` or `drop`.
    pub verdict: String,
    /// Name of the outcome.
    pub reason: String,
    /// Explanation of the outcome.
    pub why: String,
    /// Physical port it leaves by, if forwarded.
    pub out_port: Option<String>,
    /// Fields that changed.
    pub changes: Vec<Change>,
    /// The frame afterwards, in hexadecimal.
    pub bytes: String,
}

/// A field changed by the network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Name of the field.
    pub field: String,
    /// Offset from the start of the frame, bytes.
    pub offset: usize,
    /// Old value.
    pub before: String,
    /// New value.
    pub after: String,
}

/// Which frames to capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CaptureFilter {
    /// Only frames of this network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Only frames on this physical port or, together with `network`, on its virtual port of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Number of frames after which the capture ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Maximum bytes of a frame; 0 or absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap: Option<u32>,
}

/// Direction of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Received from the port.
    In,
    /// Sent to the port.
    Out,
}

/// Outcome of a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkVerdict {
    /// `forward`, `punt`, `drop` or `lost`; `control` for frames sent by the control plane.
    pub verdict: &'static str,
    /// Name of the outcome.
    pub reason: &'static str,
}

/// A captured frame. Not JSON: the API sends pcapng.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedFrame {
    /// Time since 1970, nanoseconds.
    pub time_ns: u64,
    /// The network; `None` if the frame belongs to none.
    pub network: Option<String>,
    /// Its virtual port, or the physical port if there is no network.
    pub port: String,
    /// Direction.
    pub direction: Direction,
    /// Outcome, if known.
    pub verdict: Option<NetworkVerdict>,
    /// Length before truncation, bytes.
    pub length: u32,
    /// The frame, truncated to `snap`.
    pub bytes: Vec<u8>,
    /// Frames of the capture lost since the previous one because the reader was too slow.
    pub lost: u64,
}

impl CapturedFrame {
    /// Name of the capture interface: `network/port`.
    #[must_use]
    pub fn interface(&self) -> String {
        format!("{}/{}", self.network.as_deref().unwrap_or("-"), self.port)
    }

    /// The time, truncated to microseconds.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        Timestamp::from_us(self.time_ns / 1000)
    }
}
