//! Labels of this router: its own, and those of its hosts; each with its place in the ring.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use hue_tables::clockwise;
use hue_wire::rofl::Label;

use super::body::Located;
use super::links::Hop;

/// Successors that are known of a label, the nearest included.
pub const GROUP_MAX: usize = 4;

/// Where a label of this router is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// It is the router's own.
    Own,
    /// It is a host's.
    Host(Hop),
}

/// A label, and a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// The label.
    pub label: Label,
    /// Its router.
    pub router: Label,
    /// Until when, or since when.
    pub time: Duration,
}

/// A label of this router.
#[derive(Clone, Debug)]
pub struct Local {
    /// Where it is.
    pub home: Home,
    /// When it is forgotten unless its host repeats it; `None` if a document has it.
    pub ends: Option<Duration>,
    /// Whether it knows its place in the ring from the router of the label before it.
    pub placed: bool,
    /// Whether it has its place in the ring, so that packets are sent to it.
    pub joined: bool,
    /// Since when it is here.
    pub since: Duration,
    /// Labels behind it, at other routers, the nearest first.
    pub group: Vec<Located>,
    /// The label before it, at another router: the one that said so last, or a closer one.
    pub before: Option<Heard>,
    /// A label that may be closer than the group, and was asked.
    pub probe: Option<Heard>,
    /// The label behind it that was asked last, and how often in vain.
    pub asked: Option<Label>,
    /// Questions without an answer.
    pub unanswered: u32,
    /// The label behind it that knows of none between them.
    pub agreed: Option<Label>,
    /// Another router has the label: until when to wait.
    pub taken: Option<Duration>,
}

/// What is behind a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A label of this router.
    Here(Label),
    /// Another router's own.
    Router(Label),
    /// A host's, and its router.
    Host(Label, Label),
}

impl Next {
    /// The label.
    #[must_use]
    pub const fn label(self) -> Label {
        match self {
            Self::Here(label) | Self::Router(label) | Self::Host(label, _) => label,
        }
    }

    /// The label and its router, where `own` is this one.
    #[must_use]
    pub const fn located(self, own: Label) -> Located {
        match self {
            Self::Here(label) => (label, own),
            Self::Router(label) => (label, label),
            Self::Host(label, router) => (label, router),
        }
    }
}

impl Local {
    pub(super) fn new(now: Duration, home: Home, ends: Option<Duration>) -> Self {
        Self {
            home,
            ends,
            placed: false,
            joined: false,
            since: now,
            group: Vec::new(),
            before: None,
            probe: None,
            asked: None,
            unanswered: 0,
            agreed: None,
            taken: None,
        }
    }

    /// Replaces the labels behind `own` at other routers.
    pub(super) fn set_group(&mut self, own: Label, all: impl Iterator<Item = Located>) {
        let mut group: Vec<Located> = all.filter(|(label, _)| *label != own).collect();
        group.sort_by_key(|(label, _)| clockwise(own, *label));
        group.dedup_by_key(|(label, _)| *label);
        group.truncate(GROUP_MAX);
        self.group = group;
    }
}

/// The first label behind another one, on the ring of these labels, for which `counts`; the same one if there is no other.
pub(super) fn behind<T>(
    ring: &BTreeMap<Label, T>,
    label: Label,
    counts: impl Fn(&T) -> bool,
) -> Option<Label> {
    let higher = ring.range((Excluded(label), Unbounded)).chain(ring.range(..=label));
    higher.filter(|(_, one)| counts(one)).map(|(label, _)| *label).next()
}

/// The closest label before another one, or the same, on the ring of these labels, for which `counts`.
pub(super) fn before<T>(
    ring: &BTreeMap<Label, T>,
    label: Label,
    counts: impl Fn(Label, &T) -> bool,
) -> Option<Label> {
    let lower = ring.range(..=label).rev().chain(ring.range((Excluded(label), Unbounded)).rev());
    lower.filter(|(label, one)| counts(**label, one)).map(|(label, _)| *label).next()
}
