//! Packet counters of a network, one per outcome, and counters of frames that belong to no network.
//!
//! The counters of a network are written by one worker only. `received` is their sum, so it always adds up.

use serde::{Deserialize, Serialize};

use crate::generated::{Kind, Loss, Unclaimed};
use crate::reason::Reason;
use crate::spec::Verdict;

impl Loss {
    /// Whether the packet is dropped by a rule of the network (a guard, or a limit of the network), not for lack of
    /// room.
    #[must_use]
    pub const fn is_rule(self) -> bool {
        match self {
            Self::ArpForeign
            | Self::GroupForeign
            | Self::ForgedSource
            | Self::ArpForged
            | Self::PuntLimited
            | Self::ControlAbsent
            | Self::OtherWire
            | Self::TunnelNotIp
            | Self::TunnelNested
            | Self::TunnelStranger
            | Self::TunnelFragment
            | Self::TunnelHeader
            | Self::TunnelOptions
            | Self::TunnelEcn
            | Self::TunnelChecksum => true,
            Self::RingFull
            | Self::RingQuota
            | Self::HandoverFull
            | Self::QueueFull
            | Self::ControlFull
            | Self::PortFull
            | Self::PortDown
            | Self::HandoverSendFull
            | Self::CopyFull => false,
        }
    }
}

/// Counters of one network since it was loaded, packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Counters {
    /// By code, from code 1.
    by_code: [u64; OUTCOMES_MAX],
    kind: Kind,
}

// Whole cache lines, because a worker with many networks reads those of each.
const _: () = assert!(size_of::<Counters>() == 256);

/// Most outcomes of a kind.
pub const OUTCOMES_MAX: usize = 31;

const _: () = {
    let mut kinds = Kind::ALL.as_slice();
    while let [kind, rest @ ..] = kinds {
        assert!(kind.outcomes().len() <= OUTCOMES_MAX);
        kinds = rest;
    }
};

impl Counters {
    /// Counters of a network of this kind.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self { by_code: [0; OUTCOMES_MAX], kind }
    }

    /// The network's kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Counts one packet. The outcome must be of the network's kind.
    #[inline(always)]
    pub fn count(&mut self, reason: impl Into<Reason>) {
        self.add(reason, 1);
    }

    /// Counts several packets.
    #[inline(always)]
    pub fn add(&mut self, reason: impl Into<Reason>, packets: u64) {
        let reason = reason.into();
        debug_assert_eq!(reason.kind(), self.kind, "a packet of another kind");
        if let Some(count) = self.by_code.get_mut(usize::from(reason.code() - 1)) {
            *count += packets;
        }
    }

    /// Packets of one outcome; 0 for outcomes of another kind.
    #[must_use]
    pub fn get(&self, reason: impl Into<Reason>) -> u64 {
        let reason = reason.into();
        let count = self.by_code.get(usize::from(reason.code() - 1)).filter(|_| reason.kind() == self.kind);
        count.copied().unwrap_or(0)
    }

    /// Packets of each outcome, in order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::all(self.kind).zip(self.counts().iter().copied())
    }

    /// The numbers alone, in the order of the kind's outcomes.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        self.by_code.get(..self.kind.outcomes().len()).unwrap_or_default()
    }

    /// Packets of a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.iter().filter(|(reason, _)| reason.verdict() == verdict).map(|(_, count)| count).sum()
    }

    /// Packets forwarded.
    #[must_use]
    pub fn forwarded(&self) -> u64 {
        self.of(Verdict::Forward)
    }

    /// Packets that were sent to all ports of the network but the one at which they arrived.
    #[must_use]
    pub fn flooded(&self) -> u64 {
        self.iter().filter(|(reason, _)| reason.is_flood()).map(|(_, count)| count).sum()
    }

    /// Packets handed to the control plane.
    #[must_use]
    pub fn punted(&self) -> u64 {
        self.of(Verdict::Punt)
    }

    /// Packets dropped, by reason, without zeros.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.iter().filter(|(reason, count)| reason.verdict() == Verdict::Drop && *count > 0)
    }

    /// Packets that design select assigned to the network: the sum of all outcomes.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.by_code.iter().sum()
    }
}

/// Packets of one network that were lost outside its plane, one counter per reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    by_code: [u64; Loss::COUNT + 1],
}

impl Losses {
    /// Counts packets.
    #[inline]
    pub fn add(&mut self, reason: Loss, packets: u64) {
        self.by_code[usize::from(reason.code())] += packets;
    }

    /// Packets of one reason.
    #[must_use]
    pub const fn get(&self, reason: Loss) -> u64 {
        self.by_code[reason as usize]
    }

    /// Packets by reason, in order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        Loss::ALL.into_iter().map(|reason| (reason, self.get(reason)))
    }

    /// Packets lost at a stage of `spec/kinds.toml`: `arrival`, `queue` or `departure`.
    #[must_use]
    pub fn at(&self, stage: &str) -> u64 {
        self.iter().filter(|(reason, _)| reason.row().stage == stage).map(|(_, count)| count).sum()
    }

    /// Sum of all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_code.iter().sum()
    }
}

/// Counters of frames that belong to no network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UnclaimedCounters {
    by_code: [u64; Unclaimed::COUNT + 1],
}

impl UnclaimedCounters {
    /// Counts one frame.
    #[inline]
    pub fn count(&mut self, reason: Unclaimed) {
        self.by_code[usize::from(reason.code())] += 1;
    }

    /// Counts several frames.
    pub fn add(&mut self, reason: Unclaimed, frames: u64) {
        self.by_code[usize::from(reason.code())] += frames;
    }

    /// Frames of one reason.
    #[must_use]
    pub const fn get(&self, reason: Unclaimed) -> u64 {
        self.by_code[reason as usize]
    }

    /// Frames by reason, in order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Unclaimed, u64)> + '_ {
        Unclaimed::ALL.into_iter().map(|reason| (reason, self.get(reason)))
    }

    /// Sum of all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_code.iter().sum()
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut counters = *self;
        for (count, before) in counters.by_code.iter_mut().zip(before.by_code) {
            *count = count.saturating_sub(before);
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_is_forward_and_punts_and_drops() {
        for kind in Kind::ALL {
            let mut counters = Counters::new(kind);
            for (times, reason) in Reason::all(kind).enumerate() {
                (0..=times).for_each(|_| counters.count(reason));
            }
            let count = Reason::all(kind).count() as u64;
            let drops: u64 = counters.drops().map(|(_, count)| count).sum();
            let forward: u64 = (u64::from(kind.first_forward())..=count).sum();
            assert_eq!(counters.forwarded(), forward);
            assert_eq!(counters.flooded(), u64::from(kind.flood()));
            assert_eq!(counters.received(), counters.forwarded() + counters.punted() + drops);
            assert_eq!(counters.received(), (1..=count).sum());
        }
    }
}
