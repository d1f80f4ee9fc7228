//! Networks of kind `rofl` as networks with routes, for a card, whose tables have longest prefix match only.
//!
//! Flow: labels and rows of next hops → **here** → routes, and in the card's driver their rows. A packet whose closest label this router
//! holds, and which is not the destination's, has the same outcome whichever label that is. So a card's rows are those of the program, and
//! one more behind them for all such packets ([`held_row`]). Source: ADR 0078.

use hue_planes::rofl::Settings;
use hue_planes::{Adjacency, AdjacencyKind};
use hue_tables::{NextHop, Prefix6, intervals};

/// Bytes of labels that a network on a card may have: with more, its routes would take long to compute, and no card has room for them.
pub const BYTES_MAX: usize = 1 << 15;

/// Bytes of so many labels.
#[must_use]
pub const fn bytes_of(labels: usize, settings: Settings) -> usize {
    labels * settings.label_bytes()
}

/// The row of packets whose closest label this router holds, and which is not the destination's.
#[must_use]
pub const fn held_row(hops: &[Adjacency]) -> usize {
    hops.len()
}

/// How many rows of next hops it has there.
#[must_use]
pub const fn hop_count(hops: &[Adjacency]) -> usize {
    held_row(hops) + 1
}

/// Whether packets of a network teach pointers, which those on a card do not.
#[must_use]
pub const fn caches(settings: &hue_planes::Settings) -> bool {
    matches!(settings, hue_planes::Settings::Rofl(settings) if settings.pointers_max() > 0)
}

/// The routes that give each label the row of its closest entry, or [`held_row`].
#[must_use]
pub fn routes(
    entries: &[(u128, NextHop)],
    hops: &[Adjacency],
    settings: Settings,
) -> Vec<(Prefix6, NextHop)> {
    // A program has fewer rows than there are words of next hops.
    let held = u16::try_from(held_row(hops)).ok().and_then(NextHop::new);
    let behind = |hop: NextHop| match hops.get(usize::from(hop.get())).map(Adjacency::kind) {
        Some(AdjacencyKind::Local | AdjacencyKind::Glean | AdjacencyKind::Port) => held.unwrap_or(hop),
        _ => hop,
    };
    intervals(entries, settings.label_bits(), behind)
}
