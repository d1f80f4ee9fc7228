//! What the card counted: by port, and by network where queues are full.

use hue_card::generated::{OutDropsRow, PortRow};
use hue_card::{Card, CardError, Twin};
use hue_planes::Counters;
use hue_tables::Vid;

/// Rows of PORT a port, in their order.
const PORT_ROWS: u32 = 8;

/// Frames and bytes of a port since the card was taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounts {
    /// Frames taken in.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames lost: the input queue was full.
    pub input_queue_full: u64,
    /// Frames sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames lost: the network's share of the output queue was full.
    pub output_queue_full: u64,
    /// Broadcast and multicast frames taken in and lost: no room where they wait to be copied.
    pub flood_memory_full: u64,
}

/// What became of a network's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkCounts {
    /// The network.
    pub vid: Vid,
    /// By outcome.
    pub counters: Counters,
    /// Not seen by its plane, which stood still.
    pub gated: u64,
    /// Of those it forwarded or punted, lost in a full output queue.
    pub output_queue_full: u64,
}

/// Reads the counters of a port.
pub fn port(card: &mut Card<Twin>, port: u32) -> Result<PortCounts, CardError> {
    let mut rows = [0; 7];
    for (row, value) in (port * PORT_ROWS..).zip(&mut rows) {
        *value = card.device().read_row::<PortRow>(row)?.value;
    }
    let [received, received_bytes, input_queue_full, sent, sent_bytes, output_queue_full, flood_memory_full] =
        rows;
    Ok(PortCounts {
        received,
        received_bytes,
        input_queue_full,
        sent,
        sent_bytes,
        output_queue_full,
        flood_memory_full,
    })
}

/// Reads the counters of all networks.
pub fn networks(card: &mut Card<Twin>) -> Result<Vec<NetworkCounts>, CardError> {
    let ports = card.description().mac_ports + card.description().cpu_queues;
    let vids: Vec<Vid> = card.programs().map(|program| program.vid).collect();
    let mut all = Vec::with_capacity(vids.len());
    for vid in vids {
        let (Some(counters), Some(net)) = (card.read_counters(vid)?, card.net(vid)) else { continue };
        let gated = card.read_gated(vid)?.unwrap_or_default();
        let mut output_queue_full = 0;
        for port in 0..ports {
            let row = hue_card::out_drops_row(port, net);
            output_queue_full += card.device().read_row::<OutDropsRow>(row)?.value;
        }
        all.push(NetworkCounts { vid, counters, gated, output_queue_full });
    }
    Ok(all)
}
