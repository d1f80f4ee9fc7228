//! Capturing packets of a running system: copies of frames with their fate.
//!
//! Flow: worker → bounded channel → [`CaptureStream`]. A worker never waits for a reader: a frame that does not fit is
//! lost to the capture and counted. Nothing is copied unless a capture wants the frame. Times are nanoseconds since the
//! Unix epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use hue_demux::PortId;
use hue_planes::{Loss, Reason, Unclaimed};
use hue_tables::Vid;

/// Most frames that a stream holds.
pub const CAPTURE_FRAMES_MAX: usize = 4096;

/// Which frames to capture; a field that is `None` matches every frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaptureFilter {
    /// Of this network.
    pub vid: Option<Vid>,
    /// Of this virtual port of it.
    pub vport: Option<u16>,
    /// Received from, or sent to, this physical port.
    pub port: Option<PortId>,
    /// Most bytes to copy of each frame.
    pub snap: u32,
}

impl Default for CaptureFilter {
    fn default() -> Self {
        Self { vid: None, vport: None, port: None, snap: u32::MAX }
    }
}

/// Direction of a frame, seen from the network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// It arrived on the wire.
    In,
    /// It leaves on the wire.
    Out,
    /// The network's control plane sent it (it then appears in the capture again, going `Out`).
    FromControl,
}

/// The fate of a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Captured {
    /// The plane decided; a frame that goes `Out` was forwarded.
    Outcome(Reason),
    /// No network claims it.
    Unclaimed(Unclaimed),
    /// Lost outside the plane.
    Lost(Loss),
    /// A frame of the network's control plane.
    Control,
}

impl Captured {
    /// Text for people: the verdict and the reason.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Outcome(outcome) if outcome.is_forward() => outcome.name().to_owned(),
            Self::Outcome(outcome) => format!("{} {}", outcome.verdict(), outcome.name()),
            Self::Unclaimed(reason) => format!("drop {}", reason.name()),
            Self::Lost(loss) => format!("lost {}", loss.name()),
            Self::Control => "control".to_owned(),
        }
    }
}

/// A captured frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedFrame {
    /// When it was received, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Its network.
    pub vid: Option<Vid>,
    /// The network's virtual port it goes through.
    pub vport: Option<u16>,
    /// The physical port it goes through.
    pub port: PortId,
    /// Its direction.
    pub direction: Direction,
    /// Its fate.
    pub fate: Captured,
    /// Length of the frame, bytes.
    pub len: u32,
    /// Its first bytes, as many as the filter asked for.
    pub bytes: Vec<u8>,
}

#[derive(Default, Debug)]
struct Shared {
    lost: AtomicU64,
    stopped: AtomicBool,
}

/// A stream of captured frames. Dropping it ends the capture.
#[derive(Debug)]
pub struct CaptureStream {
    frames: Receiver<CapturedFrame>,
    shared: Arc<Shared>,
}

impl CaptureStream {
    /// The next frame; waits at most `timeout` for it.
    #[must_use]
    pub fn next(&self, timeout: Duration) -> Option<CapturedFrame> {
        self.frames.recv_timeout(timeout).ok()
    }

    /// As [`CaptureStream::next`]; the error tells a timeout from the end of the captured system.
    ///
    /// # Errors
    /// `Timeout`, `Disconnected`.
    pub fn recv(&self, timeout: Duration) -> Result<CapturedFrame, RecvTimeoutError> {
        self.frames.recv_timeout(timeout)
    }

    /// The next frame, if there is one.
    #[must_use]
    pub fn try_next(&self) -> Option<CapturedFrame> {
        self.frames.try_recv().ok()
    }

    /// Frames that matched but did not fit into the stream.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }
}

/// A worker's end of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Tap {
    pub filter: CaptureFilter,
    frames: SyncSender<CapturedFrame>,
    shared: Arc<Shared>,
}

/// A capture's two ends.
pub(crate) fn capture(filter: CaptureFilter) -> (Tap, CaptureStream) {
    let (sender, frames) = sync_channel(CAPTURE_FRAMES_MAX);
    let shared = Arc::new(Shared::default());
    (Tap { filter, frames: sender, shared: shared.clone() }, CaptureStream { frames, shared })
}

impl Tap {
    /// Whether the reader has ended.
    pub fn stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Relaxed)
    }

    /// Whether the filter matches such a frame.
    pub fn wants(&self, vid: Option<Vid>, vport: Option<u16>, port: PortId) -> bool {
        let filter = &self.filter;
        filter.vid.is_none_or(|wanted| vid == Some(wanted))
            && filter.vport.is_none_or(|wanted| vport == Some(wanted))
            && filter.port.is_none_or(|wanted| port == wanted)
    }

    /// Passes a frame to the reader, or counts it as lost.
    pub fn push(&self, frame: CapturedFrame) {
        match self.frames.try_send(frame) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => self.shared.stopped.store(true, Ordering::Relaxed),
        }
    }
}
