//! The core, for captures.

use hue_soft::{CaptureFilter as LiveFilter, CaptureStream};

use super::Node;
use crate::api::{CaptureFilter, Problem};
use crate::node::networks::Entry;

impl Node {
    /// Starts a capture.
    pub(super) fn start_capture(&mut self, filter: &CaptureFilter) -> Result<CaptureStream, Problem> {
        let snap = filter.snap.filter(|snap| *snap > 0).unwrap_or(u32::MAX);
        let mut live = LiveFilter { snap, ..LiveFilter::default() };
        let mut vports = None;
        if let Some(name) = &filter.network {
            self.names_of(Some(name))?;
            let have = self.networks.get(name).and_then(Entry::have);
            let have = have.ok_or_else(|| Problem::unavailable(format!("network {name} is not set up")))?;
            live.vid = Some(have.program.vid);
            vports = Some(have.program.ports.as_slice());
        }
        if let Some(port) = &filter.port {
            let vport = vports.and_then(|ports| ports.iter().position(|one| one.name == *port));
            match (vport.and_then(|vport| u16::try_from(vport).ok()), self.ports.get(port)) {
                (Some(vport), _) => live.vport = Some(vport),
                (None, Some(physical)) => live.port = Some(physical.id),
                (None, None) => return Err(Problem::no_port(port)),
            }
        }
        Ok(self.live.capture(live))
    }
}
