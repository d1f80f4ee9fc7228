//! Counters of the card: by port, and by network.

use hue_card::generated::PortRow;
use hue_card::{Card, CardError, Twin};
use hue_planes::Counters;
use hue_tables::Vid;

/// Number of rows of a port in register block PORT, in the order below.
const PORT_ROWS: u32 = 8;

/// Frames and bytes of a port since the driver took over the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounts {
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames lost because the input queue was full.
    pub input_queue_full: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames lost because the network's share of the output queue was full.
    pub output_queue_full: u64,
    /// Broadcast and multicast frames that were received and then lost, because the memory for frames to be copied
    /// was full.
    pub flood_memory_full: u64,
}

/// Counters of a network's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkCounts {
    /// The network.
    pub vid: Vid,
    /// Packets by outcome.
    pub counters: Counters,
    /// Forwarded packets that were lost in a full output queue of a port.
    pub port_full: u64,
    /// Punted packets that were lost in a full output queue of the CPU.
    pub handover_full: u64,
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
    let vids: Vec<Vid> = card.programs().map(|program| program.vid).collect();
    let mut all = Vec::with_capacity(vids.len());
    for vid in vids {
        let (Some(counters), Some(net)) = (card.read_counters(vid)?, card.net(vid)) else { continue };
        let (port_full, handover_full) = card.read_out_drops_apart(net)?;
        all.push(NetworkCounts { vid, counters, port_full, handover_full });
    }
    Ok(all)
}
