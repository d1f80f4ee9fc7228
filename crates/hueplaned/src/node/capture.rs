//! Captures: turns the copies that workers make into frames with names.
//!
//! Flow: workers → bounded channel → one thread per capture → reader. A reader that stops reading blocks its thread,
//! not a worker.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use hue_planes::Verdict;
use hue_soft::{CaptureStream, Captured, Direction as LiveDirection};
use tokio::sync::mpsc;

use super::view::View;
use crate::api::{CapturedFrame, Direction, NetworkVerdict, Problem};

/// Maximum frames between a capture's thread and its reader.
const WAITING_MAX: usize = 256;
/// How often a capture's thread checks whether anyone still reads.
const LOOK: Duration = Duration::from_millis(200);

/// Turns a capture into a stream of frames with names from `view`.
pub fn frames(
    capture: CaptureStream,
    view: impl Fn() -> Arc<View> + Send + 'static,
) -> Result<BoxStream<'static, CapturedFrame>, Problem> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let read = move || {
        let mut told = 0;
        while !sender.is_closed() {
            match capture.recv(LOOK) {
                Ok(frame) => {
                    let lost = capture.lost();
                    let frame = named(&view(), frame, lost - told);
                    told = lost;
                    if sender.blocking_send(frame).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new().name("hue-capture".to_owned()).spawn(read).map_err(Problem::internal)?;
    let next = |mut receiver: mpsc::Receiver<CapturedFrame>| async move {
        receiver.recv().await.map(|frame| (frame, receiver))
    };
    Ok(stream::unfold(receiver, next).boxed())
}

fn named(view: &View, frame: hue_soft::CapturedFrame, lost: u64) -> CapturedFrame {
    let network = frame.vid.and_then(|vid| view.networks.iter().find(|network| network.vid == vid));
    let vport =
        network.zip(frame.vport).and_then(|(network, vport)| network.api.ports.get(usize::from(vport)));
    let physical = || view.port_name(frame.port).unwrap_or("?").to_owned();
    let verdict = match frame.fate {
        Captured::Outcome(outcome) => {
            NetworkVerdict { verdict: outcome.verdict().name(), reason: outcome.name() }
        }
        Captured::Unclaimed(reason) => {
            NetworkVerdict { verdict: Verdict::Drop.name(), reason: reason.name() }
        }
        Captured::Lost(loss) => NetworkVerdict { verdict: "lost", reason: loss.name() },
        Captured::Control => NetworkVerdict { verdict: "control", reason: "control" },
    };
    CapturedFrame {
        time_ns: frame.time_ns,
        network: network.map(|network| network.api.name.clone()),
        port: vport.map_or_else(physical, |port| port.name.clone()),
        direction: match frame.direction {
            LiveDirection::In => Direction::In,
            LiveDirection::Out | LiveDirection::FromControl => Direction::Out,
        },
        verdict: Some(verdict),
        length: frame.len,
        bytes: frame.bytes,
        lost,
    }
}
