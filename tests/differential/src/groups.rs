//! Groups of next hops in a random world, for images that have them.

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Kind};
use hue_substrate::{Program, each_routes};
use hue_tables::NextHop;

use crate::Random;

/// Gives some networks with routes groups of next hops, to which some of their routes lead. Members forward, lack a neighbour,
/// or are the router itself.
pub fn group(random: &mut Random, programs: &mut [Program]) {
    let routes = |program: &&mut Program| {
        !matches!(program.kind(), Kind::L2 | Kind::Extract | Kind::Rofl | Kind::Mpls)
    };
    for program in programs.iter_mut().filter(routes) {
        if random.chance(30) {
            continue;
        }
        let mut groups = Vec::new();
        for _ in 0..1 + random.below(3) {
            let size = random.pick(&[1, 2, 4, 64, 64, 256]);
            groups.push((row(program.next_hops.len()), slots(random, program, size)));
            program.next_hops.push(Adjacency::group(0));
        }
        // Rows of groups are rows as others: one may be in front of its members.
        if random.chance(50) && program.kind() != Kind::Dual {
            let (own, slots) = groups.swap_remove(0);
            let other = row(random.below(usize::from(own.get())));
            let changed = |row: NextHop| if row == other { own } else { row };
            let slots = slots.renumbered(|row| Some(changed(row))).unwrap();
            groups.iter_mut().for_each(|(_, slots)| {
                *slots = slots.renumbered(|row| Some(changed(row))).unwrap();
            });
            groups.push((other, slots));
            program.next_hops.swap(usize::from(own.get()), usize::from(other.get()));
        }
        let named = |random: &mut Random, hop: NextHop| match random.chance(40) {
            true => random.pick(&groups.iter().map(|(row, _)| *row).collect::<Vec<_>>()),
            false => hop,
        };
        each_routes!(&mut program.entries, all => all.iter_mut().for_each(|(_, hop)| *hop = named(random, *hop)));
        program.groups = groups;
        program.check().unwrap();
    }
}

fn row(index: usize) -> NextHop {
    NextHop::new(index as u16).unwrap()
}

/// Random slots of a network: rows that are no groups.
pub(crate) fn slots(random: &mut Random, program: &Program, size: usize) -> Slots {
    let is_member = |hop: &Adjacency| !matches!(hop.kind(), AdjacencyKind::None | AdjacencyKind::Group);
    let rows = program.next_hops.iter().enumerate().filter(|(_, hop)| is_member(hop));
    let rows: Vec<_> = rows.map(|(index, _)| row(index)).collect();
    Slots::new((0..size).map(|_| random.pick(&rows)).collect::<Vec<_>>()).unwrap()
}

/// A change of a group that takes one write of the card: another member in one slot, another number of slots, or a group
/// where none was; `None` if the network has no groups, or no room in its rows.
pub(crate) fn changed(random: &mut Random, program: &Program) -> Option<(NextHop, Slots)> {
    let old = program.groups.get(random.below(program.groups.len().max(1)))?;
    let mut rows = old.1.rows().to_vec();
    let other = slots(random, program, 1).rows()[0];
    match random.below(4) {
        0 | 1 => {
            let slot = random.below(rows.len());
            rows[slot] = other;
        }
        2 => rows = [&rows[..], &rows[..]].concat().into_iter().take(512).collect(),
        _ => {
            // A row that is in no group, perhaps one more.
            let is_free = |at: usize| {
                at > 0
                    && !program
                        .groups
                        .iter()
                        .any(|(own, slots)| *own == row(at) || slots.rows().contains(&row(at)))
            };
            let free: Vec<usize> = (0..=program.next_hops.len()).filter(|at| is_free(*at)).collect();
            let own = row(random.pick(&free));
            let rows = rows.into_iter().map(|member| if member == own { other } else { member });
            let rows: Vec<_> = rows.map(|member| if member == own { row(0) } else { member }).collect();
            let is_sound = rows.iter().all(|member| {
                !matches!(
                    program.next_hops[usize::from(member.get())].kind(),
                    AdjacencyKind::None | AdjacencyKind::Group
                )
            });
            return (is_sound && own.get() < 40).then(|| (own, Slots::new(rows).unwrap()));
        }
    }
    Some((old.0, Slots::new(rows)?))
}
