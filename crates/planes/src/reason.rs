//! The outcome of a packet for everybody who does not know its kind: fates, captures, counters, the card and the API.

use std::fmt;

use crate::generated::{CODE_GATED, CODE_RATE_LIMITED, Kind};
use crate::spec::{Class, OutcomeRow, Verdict};

/// An outcome of a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    kind: Kind,
    /// From 1 to the number of the kind's outcomes.
    code: u8,
}

impl Reason {
    /// The outcome of a kind with this code, which the kind must have.
    #[inline(always)]
    pub(crate) const fn of(kind: Kind, code: u8) -> Self {
        Self { kind, code }
    }

    /// The outcome of a kind with this code; `None` if the kind has no such outcome.
    #[must_use]
    pub const fn new(kind: Kind, code: u8) -> Option<Self> {
        if code == 0 || code as usize > kind.outcomes().len() { None } else { Some(Self { kind, code }) }
    }

    /// The network's plane is stopped.
    #[must_use]
    pub const fn gated(kind: Kind) -> Self {
        Self { kind, code: CODE_GATED }
    }

    /// The packet exceeds the network's rate limit.
    #[must_use]
    pub const fn rate_limited(kind: Kind) -> Self {
        Self { kind, code: CODE_RATE_LIMITED }
    }

    /// The outcome of packets for which no other of the kind holds: unless the kind delegates its packets, they are forwarded.
    #[must_use]
    pub const fn last(kind: Kind) -> Self {
        Self { kind, code: kind.outcomes().len() as u8 }
    }

    /// The kind's outcome of a class of which a kind has at most one outcome: `Foreign`, `Flood`, `Storm`.
    #[must_use]
    pub fn of_class(kind: Kind, class: Class) -> Option<Self> {
        Self::all(kind).find(|one| one.class() == Some(class))
    }

    /// All outcomes of a kind, in order.
    pub fn all(kind: Kind) -> impl Iterator<Item = Self> {
        (1..=kind.outcomes().len() as u8).map(move |code| Self { kind, code })
    }

    /// The kind.
    #[inline(always)]
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.kind
    }

    /// Number in counters and in hardware: its place in the order of the kind's outcomes, from 1.
    #[inline(always)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Its row of the specification.
    #[must_use]
    pub const fn row(self) -> &'static OutcomeRow {
        &self.kind.outcomes()[self.code as usize - 1]
    }

    /// Name in output, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What is done with the packet.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        self.row().verdict
    }

    /// What other parts of hueplane need to know about it.
    #[must_use]
    pub const fn class(self) -> Option<Class> {
        self.row().class
    }

    /// Name of the family of packets that it belongs to, if its kind has several families: that of the family's kind.
    #[must_use]
    pub const fn family(self) -> Option<&'static str> {
        self.row().family
    }

    /// Whether the packet is forwarded.
    #[inline(always)]
    #[must_use]
    pub const fn is_forward(self) -> bool {
        self.code >= self.kind.first_forward()
    }

    /// Whether the packet is sent to all ports of its network but the one at which it arrived.
    #[inline(always)]
    #[must_use]
    pub const fn is_flood(self) -> bool {
        // Kinds without such an outcome have code 0, so that for them this is false when the code is compiled.
        self.kind.flood() != 0 && self.code == self.kind.flood()
    }

    /// Whether the packet is forwarded to one port.
    #[inline(always)]
    #[must_use]
    pub const fn has_one_egress(self) -> bool {
        self.is_forward() && !self.is_flood()
    }

    /// Whether the packet is for the router itself, so that it may use the whole punt limit.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self.class(), Some(Class::Own | Class::GuardArp | Class::GuardNd))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Outcome;

    #[test]
    fn a_reason_has_the_name_and_verdict_of_its_outcome() {
        for outcome in Outcome::ALL {
            let reason = Reason::from(outcome);
            assert_eq!(Reason::new(Kind::Ipv4, outcome.code()), Some(reason));
            let found = (reason.name(), reason.verdict(), reason.code(), reason.kind());
            assert_eq!(found, (outcome.name(), outcome.verdict(), outcome.code(), Kind::Ipv4));
            assert_eq!(reason.is_forward(), outcome.verdict() == Verdict::Forward);
        }
    }

    #[test]
    fn no_kind_has_a_reason_with_another_code() {
        for kind in Kind::ALL {
            let count = Reason::all(kind).count() as u8;
            assert_eq!(Reason::new(kind, 0), None);
            assert_eq!(Reason::new(kind, count + 1), None);
            assert_eq!(Reason::new(kind, u8::MAX), None);
            assert_eq!(Reason::new(kind, count), Some(Reason::last(kind)));
            assert_eq!(Kind::from_id(kind as u8), Some(kind));
        }
    }

    #[test]
    fn every_kind_has_the_outcomes_that_others_ask_for() {
        for kind in Kind::ALL {
            assert_eq!(Reason::gated(kind).name(), "gated");
            assert_eq!(Reason::rate_limited(kind).name(), "rate_limited");
            let last = Reason::last(kind);
            assert!(last.has_one_egress() != (last.class() == Some(Class::Delegated)), "{last:?}");
            for one in Reason::all(kind) {
                assert_eq!(one.is_forward(), one.verdict() == Verdict::Forward, "{one:?}");
                assert_eq!(one.is_flood(), one.class() == Some(Class::Flood), "{one:?}");
            }
        }
    }

    #[test]
    fn only_packets_for_the_router_itself_are_its_own() {
        let own = |kind| Reason::all(kind).filter(|one| one.is_own()).map(Reason::name).collect::<Vec<_>>();
        assert_eq!(own(Kind::Ipv4), ["arp", "local"]);
        assert_eq!(own(Kind::Ipv6), ["local"]);
        assert_eq!(own(Kind::L2), ["reserved"]);
        assert_eq!(own(Kind::Dual), ["ipv4_arp", "ipv4_local", "ipv6_local"]);
    }
}
