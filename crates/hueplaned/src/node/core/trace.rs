//! Explains a frame on the running state.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hue_demux::PortId;
use hue_substrate::Program;
use hue_tables::Vid;

use super::Node;
use crate::api::{Problem, Trace};
use crate::explain::{Words, explained};

impl Node {
    /// Explains what would happen to a frame that arrives on a port now.
    pub(super) fn trace(&self, port: &str, frame: &[u8]) -> Result<Trace, Problem> {
        let id = self.ports.get(port).ok_or_else(|| Problem::no_port(port))?.id;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Ok(explained(self, id, frame, self.live.explain(id, frame, now_ns)))
    }
}

impl Words for Node {
    fn port(&self, id: PortId) -> Option<String> {
        self.ports.with_id(id).map(|(name, _)| name.clone())
    }

    fn program(&self, vid: Vid) -> Option<&Program> {
        let entry = self.networks.get(self.vids.get(&vid)?)?;
        entry.have.as_ref().map(|have| &have.program)
    }

    fn route(&self, vid: Vid, address: IpAddr) -> Option<String> {
        let route = self.routes_holding(self.vids.get(&vid)?, address).pop()?;
        let via = route.via.map_or_else(String::new, |via| format!(" via {via}"));
        let mac = route.mac.map_or_else(String::new, |mac| format!(" at {mac}"));
        let port = route.port.map_or_else(String::new, |port| format!(" dev {port}"));
        Some(format!("{}{via}{mac}{port} proto {}", route.prefix, route.protocol))
    }
}
