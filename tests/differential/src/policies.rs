//! Routes by source in a random world, for images that have them.

use std::collections::BTreeSet;

use hue_planes::group::Slots;
use hue_planes::{Kind, Settings};
use hue_substrate::{Program, RouteKey};
use hue_tables::{AnyPrefix, NextHop, Policies, Policy, Prefix, RouteBy, RowsByLength};

use crate::compare::software;
use crate::world::{self, Frame};
use crate::{Random, world6};

/// Most slots of a group in a network whose rows are there once for each length: 129 times as many have to fit.
const SLOTS_MAX: usize = 4;

/// A width of addresses in the world.
trait Width: RouteKey {
    /// Lengths of prefixes of sources, and of destinations.
    const LENS: [&'static [u8]; 2];
    /// A source as most packets have it.
    fn source(random: &mut Random) -> Self;
    /// A destination.
    fn destination(random: &mut Random) -> Self;
}

impl Width for u32 {
    const LENS: [&'static [u8]; 2] = [
        &[1, 7, 8, 14, 15, 16, 16, 24, 24, 25, 28, 31, 32],
        &[0, 0, 1, 8, 14, 16, 20, 24, 24, 28, 31, 32, 32],
    ];

    fn source(random: &mut Random) -> Self {
        10 << 24 | (random.below(3) as u32) << 16 | random.below(256) as u32
    }

    fn destination(random: &mut Random) -> Self {
        world::destination(random)
    }
}

impl Width for u128 {
    const LENS: [&'static [u8]; 2] = [
        &[1, 3, 16, 32, 48, 63, 64, 64, 64, 120, 124, 127, 128],
        &[0, 0, 1, 16, 32, 47, 48, 64, 64, 65, 96, 127, 128],
    ];

    fn source(random: &mut Random) -> Self {
        0x2001_0db8 << 96 | (random.below(3) as u128) << 64 | random.below(256) as u128
    }

    fn destination(random: &mut Random) -> Self {
        world6::destination(random)
    }
}

/// Makes some networks of kinds `ipv4` and `ipv6` route by source, or by both addresses, as far as there are this many rows of next
/// hops for all networks together.
pub fn route_by(random: &mut Random, programs: &mut [Program], rows_max: usize) {
    let mut used: usize = programs.iter().map(|program| program.next_hops.len()).sum();
    for program in programs.iter_mut() {
        let each = match program.kind() {
            Kind::Ipv4 => usize::from(RowsByLength::<u32>::EACH),
            Kind::Ipv6 => usize::from(RowsByLength::<u128>::EACH),
            _ => continue,
        };
        let more = (each - 1) * program.next_hops.len();
        if used + more > rows_max || random.chance(20) {
            continue;
        }
        used += more;
        match program.kind() {
            Kind::Ipv4 => turn::<u32>(random, program),
            _ => turn::<u128>(random, program),
        }
        program.check().unwrap();
    }
}

fn turn<K: Width>(random: &mut Random, program: &mut Program) {
    let row = |own: NextHop, len: u8| RowsByLength::<K>::row(own.get(), len);
    for (prefix, hop) in K::routes_mut(&mut program.entries) {
        *hop = row(*hop, prefix.len()).unwrap();
    }
    let mut groups = Vec::new();
    for (own, slots) in &program.groups {
        let few = Slots::new(slots.rows().iter().copied().take(SLOTS_MAX).collect::<Vec<_>>()).unwrap();
        let of = |len| (row(*own, len).unwrap(), few.renumbered(|member| row(member, len)).unwrap());
        groups.extend((0..=K::BITS).map(of));
    }
    program.groups = groups;
    let each = usize::from(RowsByLength::<K>::EACH);
    program.next_hops = program.next_hops.iter().flat_map(|hop| std::iter::repeat_n(*hop, each)).collect();
    program.policies = Some(policies::<K>(random, program));
}

/// Other policies for a network that has some.
#[must_use]
pub fn changed(random: &mut Random, program: &Program) -> Policies {
    match program.settings {
        Settings::Ipv6(_) => policies::<u128>(random, program),
        _ => policies::<u32>(random, program),
    }
}

fn policies<K: Width>(random: &mut Random, program: &Program) -> Policies {
    let by = random.pick(&[RouteBy::Source, RouteBy::SourceDestination, RouteBy::SourceDestination]);
    let [sources, destinations] = K::LENS;
    let routes = K::routes(&program.entries);
    let link = |random: &mut Random| {
        let len = random.pick(destinations).max(K::BITS / 4);
        AnyPrefix::from(Prefix::containing(K::destination(random), len))
    };
    let links = (0..random.below(4)).map(|_| link(random)).collect();
    let mut seen = BTreeSet::new();
    let mut list = Vec::new();
    for _ in 0..random.below(16) {
        let len = random.pick(sources);
        let from = Prefix::containing(K::source(random), len);
        let len = if by == RouteBy::Source { 0 } else { random.pick(destinations) };
        let to = Prefix::containing(K::destination(random), len);
        // Gateways that are neighbours, the router itself, groups, unknown, or without a route.
        let via = match random.below(4) {
            0 => K::destination(random),
            _ if routes.is_empty() => K::destination(random),
            _ => routes[random.below(routes.len())].0.addr(),
        };
        if seen.insert((from, to)) {
            list.push(Policy { from: from.into(), to: to.into(), via: via.to_ip() });
        }
    }
    Policies { by, links, list }
}

/// How many of what leaves in software would be something else without policies.
#[must_use]
pub fn decided(programs: &[Program], frames: &[Frame]) -> usize {
    let mut without = programs.to_vec();
    without
        .iter_mut()
        .filter_map(|program| program.policies.as_mut())
        .for_each(|policies| policies.list.clear());
    let [one, other] = [programs, &without].map(|programs| software(programs, frames).departed);
    one.iter().filter(|departed| !other.contains(departed)).count()
}
