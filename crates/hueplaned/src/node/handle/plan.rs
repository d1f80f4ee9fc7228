//! Measures the traffic of networks for the scheduler.

use std::sync::PoisonError;

use hue_control::schedule::traffic::Counted;

use super::NodeHandle;
use crate::backend::Backend;
use crate::node::command::Command;
use crate::node::plan::{MEASURE, OFFERED};

impl NodeHandle {
    /// Measures the traffic offered to networks, for as long as the daemon runs.
    pub async fn measure(&self) {
        loop {
            tokio::time::sleep(MEASURE).await;
            // On an error, the node is stopping or about to, and there is nothing to measure.
            let Ok(stats) = self.stats(None).await else { continue };
            let planning = &self.shared.planning;
            let now_ms = u64::try_from(planning.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            {
                let mut rates = planning.rates.lock().unwrap_or_else(PoisonError::into_inner);
                for network in &stats.networks {
                    let lost = OFFERED.iter().filter_map(|loss| network.losses.get(loss.name())).sum();
                    let counted = Counted { frames: network.received, bytes: network.received_bytes, lost };
                    rates.insert(&network.network, now_ms, counted);
                }
                rates.retain(|name| stats.networks.iter().any(|network| network.network == name));
            }
            // On an error, the node is stopping or about to.
            let _ = self.ask(|reply| Command::Measured { reply }).await;
        }
    }
}
