//! Weights of networks: they divide the output ports of a card.
//!
//! Flow: program → **weights** → rows of QUANTUM → `hue_queue_weights`. In each turn at an output port, the network's
//! quantum is added to its credit, so networks that always have frames waiting send bytes in proportion to their
//! quanta. Quanta depend on all weights together: they are as large as possible, so that there are few turns, but not
//! so large that other networks wait long for one turn (ADR 0023).

use hue_tables::Vid;

use crate::card::{Card, QUANTUM_USUAL as USUAL};
use crate::error::CardError;
use crate::generated::QuantumRow;
use crate::registers::Registers;
use crate::rows::Row;

/// Largest quantum in bytes; it is exceeded only where [`LEAST`] requires it. A turn of 16 KiB takes 131 us at 1
/// Gbit/s.
const MOST: u32 = 16_384;
/// Least quantum in bytes: the shortest frame, so that few turns send no frame.
const LEAST: u32 = 64;

/// The weight of a network, and the network's index on the card.
#[derive(Clone, Copy, Debug)]
struct Share {
    net: u8,
    weight: u16,
}

/// Quanta in proportion to weights, in bytes. Weights are at most 1,000, so the ratio of two quanta is that of the
/// weights to within one byte of the smaller quantum.
fn quanta(shares: &[Share]) -> impl Iterator<Item = (u8, u16)> {
    let weights = || shares.iter().map(|share| u32::from(share.weight.max(1)));
    let (least, most) = (weights().min().unwrap_or(1), weights().max().unwrap_or(1));
    // The scale is a fraction: bytes per unit of weight.
    let usual = (u32::from(USUAL), least);
    let bounded = (MOST, most);
    let scale = if usual.0 * bounded.1 < bounded.0 * usual.1 { usual } else { bounded };
    let scale = if scale.0 * least < LEAST * scale.1 { (LEAST, least) } else { scale };
    shares.iter().map(move |share| {
        let weight = u32::from(share.weight.max(1));
        let bytes = (scale.0 * weight + scale.1 / 2) / scale.1;
        (share.net, u16::try_from(bytes).unwrap_or(u16::MAX))
    })
}

impl<R: Registers> Card<R> {
    /// Writes the rows of QUANTUM that differ from the quanta of all loaded networks. An index without a network gets
    /// the default quantum. An image of an earlier version has no such rows: all its networks get equal shares.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub(crate) fn write_quanta(&mut self) -> Result<(), CardError> {
        let mut shares: Vec<Share> = self
            .networks
            .values()
            .map(|loaded| Share { net: loaded.place.net, weight: loaded.program().weight })
            .collect();
        // Frames with the lent index come from software and belong to the same network.
        if let Some((net, vid)) = self.lent
            && let Some(loaded) = self.networks.get(&vid)
        {
            shares.push(Share { net, weight: loaded.program().weight });
        }
        let mut want = vec![USUAL; self.quanta.len()];
        for (net, bytes) in quanta(&shares) {
            if let Some(row) = want.get_mut(usize::from(net)) {
                *row = bytes;
            }
        }
        let device = self.device.get_mut();
        for ((row, have), bytes) in (0..).zip(&mut self.quanta).zip(want) {
            if *have != Some(bytes) {
                // The contents are unknown until the write succeeds.
                *have = None;
                device.write_row(row, &QuantumRow { bytes })?;
                *have = Some(bytes);
            }
        }
        Ok(())
    }

    /// The quantum of a network on the card, in bytes; `None` if it is not loaded or the image has no weights.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_quantum(&mut self, vid: Vid) -> Result<Option<u16>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let device = self.device.get_mut();
        if device.description().rows(QuantumRow::TABLE) == 0 {
            return Ok(None);
        }
        Ok(Some(device.read_row::<QuantumRow>(u32::from(loaded.place.net))?.bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(weights: &[u16]) -> Vec<u16> {
        let shares: Vec<Share> =
            (0..).zip(weights).map(|(net, weight)| Share { net, weight: *weight }).collect();
        quanta(&shares).map(|(_, bytes)| bytes).collect()
    }

    #[test]
    fn equal_weights_keep_the_usual_quantum() {
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[1, 1, 1]), [2048; 3]);
        assert_eq!(of(&[1000, 1000]), [2048; 2]);
        assert_eq!(of(&[1, 3]), [2048, 6144]);
        assert_eq!(of(&[1, 16]), [1024, 16_384]);
        assert_eq!(of(&[1, 256]), [64, 16_384]);
        assert_eq!(of(&[1, 1000]), [64, 64_000]);
        assert_eq!(of(&[3, 1000]), [64, 21_333]);
    }

    proptest! {
        #[test]
        fn quanta_are_as_weights_are(weights in prop::collection::vec(1u16..=1000, 1..256)) {
            let quanta = of(&weights);
            let (least, most) = (*weights.iter().min().unwrap(), *weights.iter().max().unwrap());
            let scale = f64::from(quanta[weights.iter().position(|weight| *weight == most).unwrap()]) / f64::from(most);
            for (weight, bytes) in weights.iter().zip(&quanta) {
                prop_assert!((f64::from(*bytes) - scale * f64::from(*weight)).abs() <= 1.0, "{weight}: {bytes}");
                prop_assert!(u32::from(*bytes) >= LEAST && *bytes <= 64_000);
                prop_assert!(u32::from(*bytes) <= MOST || quanta[weights.iter().position(|weight| *weight == least).unwrap()] == 64);
            }
        }
    }
}
