//! Explains a frame on the running state.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hue_demux::PortId;
use hue_substrate::Program;
use hue_tables::Vid;

use super::Node;
use crate::api::{Problem, Trace};
use crate::explain::{Words, explained, explained_passage};

/// Most passages of tunnels of which a trace is told.
const PASSAGES_MAX: usize = 255;

impl Node {
    /// Explains what would happen to a frame that arrives on a port now.
    pub(super) fn trace(&self, port: &str, frame: &[u8]) -> Result<Trace, Problem> {
        let id = self.ports.get(port).ok_or_else(|| Problem::no_port(port))?.id;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let explained_at_port = self.live.explain(id, frame, now_ns);
        let mut networks = VecDeque::from(explained_at_port.networks.clone());
        let mut trace = explained(self, id, frame, explained_at_port);
        while let Some(network) = networks.pop_front() {
            for passage in self.live.explain_tunnels(&network, now_ns) {
                if trace.passages.len() == PASSAGES_MAX {
                    return Ok(trace);
                }
                let (passage, network) = explained_passage(self, passage);
                trace.passages.push(passage);
                networks.extend(network);
            }
        }
        Ok(trace)
    }
}

impl Words for Node {
    fn port(&self, id: PortId) -> Option<String> {
        self.ports.with_id(id).map(|(name, _)| name.clone())
    }

    fn program(&self, vid: Vid) -> Option<&Program> {
        self.networks.with_vid(vid)?.program()
    }

    fn route(&self, vid: Vid, address: IpAddr) -> Option<String> {
        let route = self.routes_holding(self.networks.name_of(vid)?, address).pop()?;
        let via = route.via.map_or_else(String::new, |via| format!(" via {via}"));
        let mac = route.mac.map_or_else(String::new, |mac| format!(" at {mac}"));
        let port = route.port.map_or_else(String::new, |port| format!(" dev {port}"));
        let slice = route.slice.map_or_else(String::new, |slice| format!(" slice {slice}"));
        Some(format!("{}{via}{mac}{port} proto {}{slice}", route.prefix, route.protocol))
    }
}
