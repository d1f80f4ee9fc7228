//! Programs as rows of the card's tables. Pure: the same programs give the same rows.
//!
//! Flow: program → **plan** → rows → device. Priorities that design select has by nature in software are an order of
//! rows here: destination MAC, then inner prefixes from the longest to the shortest, then whole ports.

use hue_demux::{Match, Row as Claim};
use hue_planes::{Adjacency, AdjacencyKind, RateLimit};
use hue_substrate::Program;
use hue_tables::Vid;

use crate::generated::{AttachHeadRow, AttachRow, HopRow, LocalRow, MeterRow, RouteRow, SelectRow};

/// A network's place on the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its index there.
    pub net: u8,
    /// Its plane.
    pub plane: u8,
}

/// A virtual port on a physical one, in the order in which copies of group frames come out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Attached {
    port: u8,
    vid: Vid,
    vport: u8,
    net: u8,
}

/// Rows of design select, the first to match first.
pub fn select<'a>(networks: impl Iterator<Item = (&'a Program, Place)>) -> Vec<SelectRow> {
    let mut rows: Vec<_> = networks
        .flat_map(|(program, place)| program.rows.iter().map(move |row| (rank(row), select_row(row, place))))
        .collect();
    // Rows of one rank never match the same frame, so that any order of them will do; this one is always the same.
    rows.sort_by_key(|(rank, row)| (*rank, row.port, row.mac, row.inner, row.net, row.vport));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn rank(row: &Claim) -> u8 {
    match row.select {
        Match::Mac { .. } => 0,
        Match::Inner { prefix, .. } => 1 + 32 - prefix.len(),
        Match::Port(_) => u8::MAX,
    }
}

fn select_row(row: &Claim, place: Place) -> SelectRow {
    // Virtual ports are at most 256, so that their indices fit.
    let mut out = SelectRow { valid: true, net: place.net, vport: row.vport as u8, ..SelectRow::default() };
    let port = match row.select {
        Match::Mac { port, mac } => {
            (out.mac_care, out.mac) = (true, mac.to_u64());
            Some(port)
        }
        Match::Inner { port, prefix } => {
            out.inner_care = true;
            (out.inner, out.inner_mask) = (prefix.addr(), mask(prefix.len()));
            port
        }
        Match::Port(port) => Some(port),
    };
    if let Some(port) = port {
        (out.port_care, out.port) = (true, port.get());
    }
    out
}

const fn mask(len: u8) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len as u32) }
}

/// Who gets group frames: the run of each of `ports` ports.
pub fn attach<'a>(networks: impl Iterator<Item = (&'a Program, Place)>, ports: usize) -> Vec<Vec<AttachRow>> {
    let mut all: Vec<Attached> = networks
        .flat_map(|(program, place)| {
            program.attachments().map(move |one| Attached {
                port: one.port.get(),
                vid: one.vid,
                vport: one.vport as u8,
                net: place.net,
            })
        })
        .collect();
    all.sort_unstable();
    let mut runs = vec![Vec::new(); ports];
    for one in all {
        if let Some(run) = runs.get_mut(usize::from(one.port)) {
            run.push(AttachRow { net: one.net, vport: one.vport });
        }
    }
    runs
}

/// Where runs are to lie when those of before must stay readable until the heads are changed: unchanged ones stay, the
/// others go to rows that no run of before takes. `None` when there is not enough room for that.
pub fn lay_out(
    before: &[(AttachHeadRow, Vec<AttachRow>)],
    runs: &[Vec<AttachRow>],
    rows: u32,
) -> Option<Vec<AttachHeadRow>> {
    let mut taken = vec![false; rows as usize];
    for (head, _) in before {
        let first = usize::from(head.start);
        taken.get_mut(first..first + usize::from(head.count))?.fill(true);
    }
    let mut heads = Vec::with_capacity(runs.len());
    for (index, run) in runs.iter().enumerate() {
        if let Some((head, _)) = before.get(index).filter(|(_, old)| old == run) {
            heads.push(*head);
            continue;
        }
        let start = (0..=taken.len().checked_sub(run.len())?)
            .find(|at| taken.get(*at..at + run.len()).is_some_and(|rows| rows.iter().all(|row| !row)))?;
        taken.get_mut(start..start + run.len())?.fill(true);
        heads
            .push(AttachHeadRow { start: u16::try_from(start).ok()?, count: u16::try_from(run.len()).ok()? });
    }
    Some(heads)
}

/// The same without regard to what was there.
pub fn lay_out_anew(runs: &[Vec<AttachRow>]) -> Option<Vec<AttachHeadRow>> {
    let mut start = 0u16;
    let mut heads = Vec::with_capacity(runs.len());
    for run in runs {
        let count = u16::try_from(run.len()).ok()?;
        heads.push(AttachHeadRow { start, count });
        start = start.checked_add(count)?;
    }
    Some(heads)
}

/// A next hop.
pub fn hop(row: &Adjacency) -> HopRow {
    HopRow {
        kind: row.kind() as u8,
        port: row.port().get(),
        mtu: row.mtu_bytes(),
        dst: row.dst().to_u64(),
        src: row.src().to_u64(),
    }
}

/// A rate limit.
pub fn meter(limit: Option<RateLimit>) -> MeterRow {
    let mut row = MeterRow::default();
    let limit = limit.unwrap_or_default();
    if let Some(rate) = limit.packets {
        (row.packets_on, row.packets_rate, row.packets_burst) = (true, rate.per_second(), rate.burst());
    }
    if let Some(rate) = limit.bits {
        (row.bits_on, row.bits_rate, row.bits_burst) = (true, rate.per_second(), rate.burst());
    }
    row
}

/// Routes as ternary rows, the longest prefix first, and local addresses, which need none.
pub fn ternary(program: &Program) -> (Vec<RouteRow>, Vec<LocalRow>) {
    let (mut routes, mut locals) = (Vec::new(), Vec::new());
    for (prefix, next) in &program.routes {
        let kind = program.next_hops.get(usize::from(next.get())).map(Adjacency::kind);
        if prefix.len() == 32 && kind == Some(AdjacencyKind::Local) {
            locals.push(LocalRow { valid: true, addr: prefix.addr() });
        } else {
            let row =
                RouteRow { valid: true, value: prefix.addr(), mask: mask(prefix.len()), hop: next.get() };
            routes.push((prefix.len(), row));
        }
    }
    routes.sort_by_key(|(len, row)| (u8::MAX - len, row.value));
    locals.sort_by_key(|row| row.addr);
    (routes.into_iter().map(|(_, row)| row).collect(), locals)
}

/// How rows of a list are changed one by one so that every frame meanwhile meets the order of before or of after, where
/// both lists have their common rows in the same order: first what goes is closed over from the top, then what comes is
/// made room for from the bottom. A write of `None` empties the row.
pub fn steps<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Vec<(u32, Option<T>)> {
    let middle: Vec<T> = before.iter().filter(|row| after.contains(row)).cloned().collect();
    let mut steps = Vec::new();
    for (index, row) in (0u32..).zip(&middle) {
        if before.get(index as usize) != Some(row) {
            steps.push((index, Some(row.clone())));
        }
    }
    for index in middle.len()..before.len() {
        steps.push((index as u32, None));
    }
    for (index, row) in after.iter().enumerate().rev() {
        if middle.get(index) != Some(row) {
            steps.push((index as u32, Some(row.clone())));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a list of rows answers: the first that matches. Rows are (rank, key); a row matches every key it divides.
    fn first(rows: &[Option<(u8, u8)>], key: u8) -> Option<(u8, u8)> {
        rows.iter().flatten().find(|(_, own)| key.is_multiple_of(*own)).copied()
    }

    proptest! {
        /// While rows are changed one by one, every key that both lists answer alike is answered so.
        #[test]
        fn steps_disturb_nobody(
            before in prop::collection::btree_set((0u8..4, 1u8..12), 0..12),
            after in prop::collection::btree_set((0u8..4, 1u8..12), 0..12),
        ) {
            let (before, after): (Vec<_>, Vec<_>) = (before.into_iter().collect(), after.into_iter().collect());
            let mut rows = vec![None; 24];
            let list = |rows: &[(u8, u8)]| rows.iter().copied().map(Some).collect::<Vec<_>>();
            rows[..before.len()].copy_from_slice(&list(&before));
            for (index, row) in steps(&before, &after) {
                rows[index as usize] = row;
                for key in 0..60u8 {
                    let (was, will) = (first(&list(&before), key), first(&list(&after), key));
                    if was == will {
                        prop_assert_eq!(first(&rows, key), was, "key {}", key);
                    }
                }
            }
            prop_assert_eq!(&rows[..after.len()], &list(&after)[..]);
            prop_assert!(rows[after.len()..].iter().all(Option::is_none));
        }
    }

    #[test]
    fn runs_move_only_to_free_rows() {
        let row = |net| AttachRow { net, vport: 0 };
        let head = |start, count| AttachHeadRow { start, count };
        let before = [(head(0, 2), vec![row(1), row(2)]), (head(2, 1), vec![row(1)])];
        let runs = [vec![row(1), row(2), row(3)], vec![row(1)]];
        assert_eq!(lay_out(&before, &runs, 6), Some(vec![head(3, 3), head(2, 1)]));
        assert_eq!(lay_out(&before, &runs, 5), None);
        assert_eq!(lay_out_anew(&runs), Some(vec![head(0, 3), head(3, 1)]));
        assert_eq!(lay_out(&[], &[vec![], vec![row(1)]], 1), Some(vec![head(0, 0), head(0, 1)]));
    }
}
