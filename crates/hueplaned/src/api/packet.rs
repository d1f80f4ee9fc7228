//! Single packets: one explained, many captured.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Timestamp;

/// A frame to explain on the running state. It is not sent, not counted and charges no meter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Physical port that it arrives on.
    pub port: String,
    /// The frame, hexadecimal.
    pub frame: String,
}

impl TraceRequest {
    /// The frame; blanks, `:` and `-` may stand between bytes.
    ///
    /// # Errors
    /// What was found and where.
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

/// One packet explained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// Port it arrives on.
    pub in_port: String,
    /// Its length, bytes.
    pub length: usize,
    /// The frame as received, hexadecimal.
    pub bytes: String,
    /// Stages before a network is known.
    pub stages: Vec<Step>,
    /// Why the frame is nobody's; to a tenant, a frame of others is nobody's.
    pub unclaimed: Option<String>,
    /// What became of it; null when not exactly one network received it.
    pub verdict: Option<String>,
    /// Name of the outcome; null as above.
    pub reason: Option<String>,
    /// What each network that receives the frame does with it; several only for group addresses.
    pub networks: Vec<InNetwork>,
}

/// One stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// Its name.
    pub stage: String,
    /// What it saw, for people.
    pub detail: String,
    /// The outcome, when this stage decided it.
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
    /// The design-select row that matched; none for group addresses.
    pub row: Option<String>,
    /// Its stages.
    pub stages: Vec<Step>,
    /// The route that the lookup found, when the packet came that far.
    pub route: Option<String>,
    /// What becomes of it: `forward`, `punt` or `drop`.
    pub verdict: String,
    /// Name of the outcome.
    pub reason: String,
    /// The outcome, for people.
    pub why: String,
    /// Physical port it leaves by, if forwarded.
    pub out_port: Option<String>,
    /// Fields that differ afterwards.
    pub changes: Vec<Change>,
    /// The frame afterwards, hexadecimal.
    pub bytes: String,
}

/// A field that the network changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Its name.
    pub field: String,
    /// Bytes from the start of the frame.
    pub offset: usize,
    /// What it was.
    pub before: String,
    /// What it is.
    pub after: String,
}

/// Which frames to capture.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CaptureFilter {
    /// Of this network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// On this physical port, or, together with `network`, on its virtual port of this name, only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// So many frames, then the capture ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Bytes of a frame at most; 0 or nothing is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap: Option<u32>,
}

/// Which way a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the port to us.
    In,
    /// From us to the port.
    Out,
}

/// What became of a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkVerdict {
    /// `forward`, `punt` or `drop`; `control` for what the control plane sends.
    pub verdict: &'static str,
    /// Name of the outcome.
    pub reason: &'static str,
}

/// A frame that was captured. Not JSON: the API sends pcapng.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedFrame {
    /// When.
    pub time_ns: u64,
    /// The network; none for frames that are nobody's.
    pub network: Option<String>,
    /// Its virtual port, or the physical port of a frame that is nobody's.
    pub port: String,
    /// Which way.
    pub direction: Direction,
    /// What became of it, when known.
    pub verdict: Option<NetworkVerdict>,
    /// Its length before it was cut, bytes.
    pub length: u32,
    /// The frame, cut to `snap`.
    pub bytes: Vec<u8>,
    /// Frames lost on this network and port since the one before, as the reader was too slow.
    pub lost: u64,
}

impl CapturedFrame {
    /// Name of the capture's interface: `network/port`.
    #[must_use]
    pub fn interface(&self) -> String {
        format!("{}/{}", self.network.as_deref().unwrap_or("-"), self.port)
    }

    /// When, to the microsecond.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        Timestamp::from_us(self.time_ns / 1000)
    }
}
