//! Changes while frames flow: each frame, and each copy of a group frame, must come out as in the software engine before or
//! after a change. Once one has come out as after the change, no later one may come out as before it. (With layout dir it
//! may, because a change there is many words, each for some addresses. If the new words have no room beside the old ones, a packet
//! may also find no route while the change is written.)

use std::collections::BTreeMap;

use hue_card::generated as regs;
use hue_card::{Card, Layout, Twin};
use hue_planes::group::Slots;
use hue_planes::{Adjacency, FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use hue_substrate::{Entries, Program, RouteKey, Substrate, SubstrateError, Update, each_routes};
use hue_tables::{Change, NextHop, Prefix, RowsByLength, Vid};

use crate::compare::{Departed, Difference, collect, offered, software};
use crate::world::{Frame, destination};
use crate::{Random, groups, policies, world6, world9};

/// Most records between the queues and the end of the stages: so many records before a change may still see it.
const INSIDE_MAX: usize = 160;

/// Outcome of a packet that finds no route. Images with layout dir have kind `ipv4` only.
const NO_ROUTE: u8 = hue_planes::ipv4::Outcome::NoRoute as u8;

/// A record in the stages: a frame, or its copy for a network's virtual port.
type Passing = (usize, Option<(Vid, u16)>);

/// The records that pass the stages, in order.
fn records(programs: &[Program], frames: &[Frame]) -> Vec<Passing> {
    let mut attached: Vec<_> = programs.iter().flat_map(Program::attachments).collect();
    attached.sort_unstable_by_key(|one| (one.port, one.vid, one.vport));
    let mut all = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let before = all.len();
        let whole = (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&frame.bytes.len());
        let group = whole && hue_wire::ethernet::is_group(&frame.bytes);
        if group {
            let own = attached.iter().filter(|one| one.port == frame.port);
            all.extend(own.map(|one| (index, Some((one.vid, one.vport)))));
        }
        if all.len() == before {
            all.push((index, None));
        }
    }
    all
}

/// The departures of a record.
fn left(all: &[Departed], (frame, copy): Passing) -> Vec<&Departed> {
    let from = all.partition_point(|one| one.frame < frame);
    let of = all.get(from..).unwrap_or_default().iter().take_while(|one| one.frame == frame);
    of.filter(|one| copy.is_none_or(|(vid, vport)| one.is_of(vid, vport))).collect()
}

/// A change of a running network.
#[derive(Clone, Debug)]
pub enum Step {
    /// Routes of 32-bit keys.
    Routes(Vid, Vec<Change<u32>>),
    /// Routes of 128-bit keys.
    Routes6(Vid, Vec<Change<u128>>),
    /// A next hop. Only one, because several would change one by one.
    Hop(Vid, NextHop, Adjacency),
    /// A row that is, or becomes, a group, with a change of its slots that takes one write.
    Group(Vid, NextHop, Slots),
    /// A whole program.
    Load(Box<Program>),
}

impl Step {
    /// A random change of one of these networks, which have at most `routes` routes each.
    #[must_use]
    pub fn random(random: &mut Random, programs: &[Program], routes: usize) -> Self {
        let program = &programs[random.below(programs.len())];
        let vid = program.vid;
        let hop = |random: &mut Random| NextHop::new(random.below(program.next_hops.len()) as u16).unwrap();
        if !program.groups.is_empty()
            && random.chance(30)
            && let Some((row, slots)) = groups::changed(random, program)
        {
            return Self::Group(vid, row, slots);
        }
        match random.below(8) {
            0 => {
                let mut program = program.clone();
                if program.policies.is_some() && random.chance(60) {
                    program.policies = Some(policies::changed(random, &program));
                    return Self::Load(Box::new(program));
                }
                each_routes!(&mut program.entries, all => {
                    all.reverse();
                    all.truncate(random.below(routes) + 1);
                });
                program.rows.reverse();
                Self::Load(Box::new(program))
            }
            1 | 2 => {
                // Sometimes one next hop more; a tcam plane holds 32.
                let more = program.next_hops.len() < 32 && random.chance(20);
                let index = if more { program.next_hops.len() as u16 } else { hop(random).get() };
                let index = NextHop::new(index).unwrap();
                // A packet's own row is asked twice where routes depend on sources: whether it is the router's, and at the end.
                let by_source = program.policies.is_some();
                // The same port, so that it stays a port of the network; also from and to the router itself.
                let last = program.next_hops.len() - 1;
                let to = match program.next_hops[usize::from(index.get()).min(last)] {
                    old if by_source && old == Adjacency::local() => old,
                    _ if !by_source && random.chance(15) => Adjacency::local(),
                    old if old.mtu_bytes() > 0 => {
                        let dst = hue_wire::Mac([2, 0xbb, 0, 0, 0, random.below(256) as u8]);
                        Adjacency::forward(old.port(), old.src(), dst, old.mtu_bytes())
                    }
                    _ => Adjacency::glean(program.ports[0].port),
                };
                Self::Hop(vid, index, to)
            }
            _ => match &program.entries {
                Entries::Sliced(_) => {
                    let lens = [8, 16, 24, 28, 32, 32, 36, 40];
                    let changes = changes(program, random, routes, (&lens, world9::destination));
                    Self::Routes6(vid, changes)
                }
                // Those of one family of a dual network: each changes by itself.
                entries @ (Entries::Lpm128(_) | Entries::Dual(..))
                    if matches!(entries, Entries::Lpm128(_)) || random.chance(50) =>
                {
                    let lens = [0, 16, 32, 48, 56, 64, 64, 100, 128];
                    Self::Routes6(vid, changes(program, random, routes, (&lens, world6::destination)))
                }
                _ => {
                    let lens = [0, 8, 16, 20, 24, 24, 28, 32];
                    Self::Routes(vid, changes(program, random, routes, (&lens, destination)))
                }
            },
        }
    }

    /// Makes the change on the card.
    ///
    /// # Errors
    /// The card's error.
    pub fn apply(&self, card: &mut Card<Twin>) -> Result<(), SubstrateError> {
        let done = match self {
            Self::Routes(vid, changes) => card.update(*vid, &Update::of_routes(changes)),
            Self::Routes6(vid, changes) => card.update(*vid, &Update::of_routes(changes)),
            Self::Hop(vid, index, hop) => card.update(*vid, &Update::of_hops(&[(*index, *hop)])),
            Self::Group(vid, row, slots) => {
                card.update(*vid, &Update::default().with_groups(&[(*row, slots.clone())]))
            }
            Self::Load(program) => return card.load(std::slice::from_ref(program)),
        };
        done.map(drop)
    }

    /// Whether there is a route to most addresses.
    fn is_short(&self) -> bool {
        match self {
            Self::Routes(_, changes) => changes.iter().any(|(prefix, _)| prefix.len() < 8),
            Self::Routes6(..) | Self::Hop(..) | Self::Group(..) | Self::Load(_) => false,
        }
    }

    /// Makes the change in the programs.
    pub fn follow(&self, programs: &mut [Program]) {
        let find =
            |programs: &mut [Program], vid: Vid| programs.iter().position(|program| program.vid == vid);
        match self {
            Self::Routes(vid, changes) => follow(&mut programs[find(programs, *vid).unwrap()], changes),
            Self::Routes6(vid, changes) => follow(&mut programs[find(programs, *vid).unwrap()], changes),
            Self::Hop(vid, index, hop) => {
                let program = &mut programs[find(programs, *vid).unwrap()];
                program.groups.retain(|(row, _)| row != index);
                let hops = &mut program.next_hops;
                hops.resize(hops.len().max(usize::from(index.get()) + 1), *hop);
                hops[usize::from(index.get())] = *hop;
            }
            Self::Group(vid, row, slots) => {
                let program = &mut programs[find(programs, *vid).unwrap()];
                program.groups.retain(|(group, _)| group != row);
                program.groups.push((*row, slots.clone()));
                let (index, hops) = (usize::from(row.get()), &mut program.next_hops);
                hops.resize(hops.len().max(index + 1), Adjacency::NONE);
                hops[index] = Adjacency::group(0);
            }
            Self::Load(new) => programs[find(programs, new.vid).unwrap()] = (**new).clone(),
        }
    }
}

/// Random changes of a network's routes: prefixes of these lengths, around addresses that `address` gives.
fn changes<K: RouteKey>(
    program: &Program,
    random: &mut Random,
    routes: usize,
    (lens, address): (&[u8], fn(&mut Random) -> K),
) -> Vec<Change<K>> {
    let own = K::routes(&program.entries);
    let by_source = program.policies.is_some();
    // Where routes depend on sources, packets are looked up twice. A change of one route is all that they meet as a whole.
    let count = if by_source { 1 } else { 1 + random.below(4) };
    let change = |_| {
        let full = own.len() + 8 > routes;
        if random.chance(if full { 90 } else { 40 }) && !own.is_empty() {
            (own[random.below(own.len())].0, None)
        } else {
            let len = random.pick(lens);
            let hop = NextHop::new(random.below(program.next_hops.len()) as u16).unwrap();
            let hop =
                if by_source { RowsByLength::<K>::row(RowsByLength::<K>::own(hop), len) } else { Some(hop) };
            (Prefix::containing(address(random), len), hop)
        }
    };
    (0..count).map(change).collect()
}

/// Makes changes of routes in a program.
fn follow<K: RouteKey>(program: &mut Program, changes: &[Change<K>]) {
    let mut routes: BTreeMap<_, _> = K::routes(&program.entries).iter().copied().collect();
    for (prefix, hop) in changes {
        match hop {
            Some(hop) => routes.insert(*prefix, *hop),
            None => routes.remove(prefix),
        };
    }
    *K::routes_mut(&mut program.entries) = routes.into_iter().collect();
}

/// Results of an experiment with changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Changes that were made while frames flowed.
    pub changes: usize,
    /// Frames whose result after the changes differs from that before the first one.
    pub changed: usize,
    /// Clocks that the longest change took, and all of them together.
    pub clocks_max: u64,
    /// See there.
    pub clocks: u64,
}

/// Makes random changes while frames flow, each as soon as the previous one is complete.
///
/// # Errors
/// The first difference.
pub fn compare_updates(
    card: &mut Card<Twin>,
    programs: &mut [Program],
    frames: &[Frame],
    random: &mut Random,
    routes: usize,
) -> Result<Seen, Difference> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let entered = |card: &mut Card<Twin>| card.device().read(regs::ACCEPTED).map_err(|error| text(&error));
    let in_order = card.description().layout != Layout::Dir;
    let mut versions = vec![software(programs, frames)];
    // For each change, the number of records that had passed when it began and when it was complete.
    let mut spans = Vec::new();
    // For each change, whether packets may have found no route.
    let mut interrupted = Vec::new();
    let mut seen = Seen::default();
    let start = entered(card)?;
    card.offer(&offered(frames)).map_err(|error| text(&error))?;
    // Only if frames keep their order is it known between which frames a change comes.
    card.twin().set_ordered(true);
    while !card.twin().idle() {
        card.twin().run(random.below(6000) as u64);
        let step = Step::random(random, programs, routes);
        // With layout dir, writing a default route takes as long as all frames of this experiment.
        if !in_order && step.is_short() {
            continue;
        }
        let begun = entered(card)?.wrapping_sub(start) as usize;
        let (clock, interruptions) = (card.twin().cycles(), card.interruptions());
        match step.apply(card) {
            Err(SubstrateError::Room { .. }) => continue,
            done => done.map_err(|error| format!("{step:?}: {error}"))?,
        }
        let clocks = card.twin().cycles() - clock;
        (seen.clocks_max, seen.clocks) = (seen.clocks_max.max(clocks), seen.clocks + clocks);
        spans.push((begun, entered(card)?.wrapping_sub(start) as usize));
        interrupted.push(card.interruptions() > interruptions);
        step.follow(programs);
        versions.push(software(programs, frames));
    }
    let (found, _) = collect(card, frames.len())?;
    seen.changes = spans.iter().filter(|(begun, _)| *begun < frames.len()).count();
    let mut version = 0;
    let mut met = 0;
    for (index, passing) in records(programs, frames).into_iter().enumerate() {
        let here = left(&found, passing);
        met += here.len();
        // A record must see every change that was complete before it entered.
        let least = spans.partition_point(|(_, made)| *made <= index).max(if in_order { version } else { 0 });
        let most = spans.partition_point(|(begun, _)| *begun <= index + INSIDE_MAX);
        let wants =
            (least..=most.max(least)).map(|version| (version, left(&versions[version].departed, passing)));
        match wants.clone().find(|(_, want)| *want == here) {
            Some((found, _)) => version = found,
            // A change that the packet may have met removed words first.
            None if interrupted.get(least..most).is_some_and(|changes| changes.contains(&true))
                && matches!(here.as_slice(), [one] if one.is_punted(NO_ROUTE, &frames[passing.0].bytes)) => {}
            None => {
                let wants = wants.collect::<Vec<_>>();
                let frame = &frames[passing.0];
                return Err(format!(
                    "frame {}, {passing:?}, {frame:02x?}\nsoftware {wants:02x?}\ncard     {here:02x?}",
                    passing.0
                ));
            }
        }
        seen.changed += usize::from(left(&versions[0].departed, passing) != here);
    }
    if met != found.len() {
        return Err(format!("{} frames left that nobody asked for", found.len() - met));
    }
    Ok(seen)
}
