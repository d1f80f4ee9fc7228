//! Groups of next hops: flows to one destination take several ways.
//!
//! Flow: routing information base, or control → **[`Group`]** → [`Slots`] → substrates. A group is a table of slots, each of
//! which names a member: a row of the network's next hops. The hash of a packet ([`hue_wire::toeplitz`]) selects the slot.
//!
//! Groups are resilient. Slots stay with their members: when a member goes, only its slots move, and when one comes, it
//! takes its share and nothing else moves. A member's share of the slots is its share of the weights, within one slot for a
//! new group. There are at least 64 slots for the lightest member's part of the weight, up to [`SLOTS_MAX`], so up to 64
//! equal members are within 2 % of even. The table never shrinks; when it doubles, each flow keeps its member.
//! Pure functions: the same changes give the same slots. Source: ADR 0061.

use hue_tables::NextHop;
use serde::{Deserialize, Serialize};

/// Most members of a group.
pub const MEMBERS_MAX: usize = 256;
/// Largest weight of a member; the smallest is 1.
pub const WEIGHT_MAX: u16 = 256;
/// Most slots of a group.
pub const SLOTS_MAX: usize = 4096;
/// Most groups of a network.
pub const GROUPS_MAX: usize = 1024;

/// Slots for the lightest member, if [`SLOTS_MAX`] allows.
const SLOTS_EACH: u64 = 64;

/// The slots of a group: a power of two, at most [`SLOTS_MAX`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<NextHop>", into = "Vec<NextHop>")]
pub struct Slots(Box<[NextHop]>);

impl Slots {
    /// Slots that name these rows; `None` unless their number is a power of two, at most [`SLOTS_MAX`].
    #[must_use]
    pub fn new(rows: impl Into<Box<[NextHop]>>) -> Option<Self> {
        let rows = rows.into();
        (rows.len().is_power_of_two() && rows.len() <= SLOTS_MAX).then_some(Self(rows))
    }

    /// The slot of a packet with this hash.
    #[inline]
    #[must_use]
    pub const fn slot(&self, hash: u32) -> usize {
        hash as usize & (self.0.len() - 1)
    }

    /// The row that a packet with this hash takes.
    #[inline]
    #[must_use]
    pub fn row(&self, hash: u32) -> Option<NextHop> {
        self.0.get(self.slot(hash)).copied()
    }

    /// All slots.
    #[must_use]
    pub fn rows(&self) -> &[NextHop] {
        &self.0
    }

    /// How many there are; never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a slot")]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The rows that occur, sorted, with their numbers of slots.
    #[must_use]
    pub fn members(&self) -> Vec<(NextHop, usize)> {
        let mut rows = self.0.to_vec();
        rows.sort_unstable();
        rows.chunk_by(|one, other| one == other).filter_map(|run| Some((*run.first()?, run.len()))).collect()
    }

    /// The same slots with their rows renumbered; `None` if one has no number.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(NextHop) -> Option<NextHop>) -> Option<Self> {
        self.0.iter().map(|row| number(*row)).collect::<Option<Box<[_]>>>().map(Self)
    }
}

impl TryFrom<Vec<NextHop>> for Slots {
    type Error = &'static str;

    fn try_from(rows: Vec<NextHop>) -> Result<Self, Self::Error> {
        Self::new(rows).ok_or("slots of a group: expected a power of two, at most 4096")
    }
}

impl From<Slots> for Vec<NextHop> {
    fn from(slots: Slots) -> Self {
        slots.0.into_vec()
    }
}

/// A member of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// Row of the network's next hops.
    pub row: NextHop,
    /// Its part of the flows, relative to others; 1 to [`WEIGHT_MAX`].
    pub weight: u16,
}

/// A group with the history of its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    members: Vec<Member>,
    slots: Slots,
}

/// A member while slots are assigned.
struct Share {
    member: Member,
    held: u64,
    is_new: bool,
}

/// Sizes of an assignment: slots and the sum of the weights.
#[derive(Clone, Copy)]
struct Whole {
    slots: u64,
    weight: u64,
}

impl Share {
    /// Slots beyond its part, times the sum of the weights. A member without a slot lacks most.
    fn surplus(&self, whole: Whole) -> i64 {
        if self.held == 0 {
            return i64::MIN;
        }
        (self.held * whole.weight) as i64 - (whole.slots * u64::from(self.member.weight)) as i64
    }
}

impl Group {
    /// A group of these members; `None` unless there are 1 to [`MEMBERS_MAX`], all different, each with a weight from 1 to
    /// [`WEIGHT_MAX`].
    #[must_use]
    pub fn new(members: &[Member]) -> Option<Self> {
        Self::after(None, members)
    }

    /// The same group with these members instead; see [`Group::new`] for when there is none.
    #[must_use]
    pub fn changed(&self, members: &[Member]) -> Option<Self> {
        Self::after(Some(self), members)
    }

    /// The slots.
    #[must_use]
    pub const fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The members, in the order in which they were given.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    fn after(before: Option<&Self>, members: &[Member]) -> Option<Self> {
        check(members)?;
        let (old, old_slots) =
            before.map_or((&[][..], &[][..]), |group| (&group.members, group.slots.rows()));
        let whole = Whole {
            slots: size(members).max(old_slots.len()) as u64,
            weight: members.iter().map(|member| u64::from(member.weight)).sum(),
        };
        let mut shares: Vec<Share> = members
            .iter()
            .map(|member| Share {
                member: *member,
                held: 0,
                is_new: !old.iter().any(|one| one.row == member.row),
            })
            .collect();
        let holder = |shares: &[Share], row: NextHop| shares.iter().position(|share| share.member.row == row);
        // By slot: the place of its member in `shares`.
        let mut slots: Vec<Option<usize>> = match old_slots {
            [] => vec![None; whole.slots as usize],
            _ => {
                old_slots.iter().cycle().take(whole.slots as usize).map(|row| holder(&shares, *row)).collect()
            }
        };
        slots.iter().flatten().for_each(|place| shares[*place].held += 1);
        for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
            let place = poorest(&shares, whole, |_| true)?;
            shares[place].held += 1;
            *slot = Some(place);
        }
        let is_changed =
            |share: &Share| old.iter().any(|one| one.row == share.member.row && *one != share.member);
        let any = shares.iter().any(is_changed);
        move_slots(&mut shares, &mut slots, whole, any);
        let rows = slots.iter().map(|place| place.map(|place| shares[place].member.row));
        let slots = Slots::new(rows.collect::<Option<Vec<_>>>()?)?;
        Some(Self { members: members.to_vec(), slots })
    }
}

/// Moves slots to new members until they lack less than a slot; to any member if `any`.
fn move_slots(shares: &mut [Share], slots: &mut [Option<usize>], whole: Whole, any: bool) {
    let one = whole.weight as i64;
    // Each member's slots are taken from the end.
    let mut held: Vec<Vec<usize>> = vec![Vec::new(); shares.len()];
    for (slot, place) in slots.iter().enumerate() {
        if let Some(held) = place.and_then(|place| held.get_mut(place)) {
            held.push(slot);
        }
    }
    for _ in 0..slots.len() {
        let rich =
            (0..shares.len()).max_by_key(|place| (shares[*place].surplus(whole), std::cmp::Reverse(*place)));
        let poor = poorest(shares, whole, |share| any || share.is_new);
        let (Some(rich), Some(poor)) = (rich, poor) else { return };
        let (over, under) = (shares[rich].surplus(whole), shares[poor].surplus(whole));
        let must = under <= -one || any && over >= one;
        // A move that only exchanges their places is none, and no member loses its last slot.
        if !must || rich == poor || over <= 0 || shares[rich].held < 2 {
            return;
        }
        let Some(slot) = held[rich].pop() else { return };
        slots[slot] = Some(poor);
        held[poor].push(slot);
        shares[rich].held -= 1;
        shares[poor].held += 1;
    }
}

/// The first of the members that lack most, of those that may get slots.
fn poorest(shares: &[Share], whole: Whole, may: impl Fn(&Share) -> bool) -> Option<usize> {
    let all = shares.iter().enumerate().filter(|(_, share)| may(share));
    all.min_by_key(|(place, share)| (share.surplus(whole), *place)).map(|(place, _)| place)
}

fn check(members: &[Member]) -> Option<()> {
    let mut rows: Vec<NextHop> = members.iter().map(|member| member.row).collect();
    rows.sort_unstable();
    let is_once = rows.array_windows().all(|[one, other]| one != other);
    let weights = members.iter().all(|member| (1..=WEIGHT_MAX).contains(&member.weight));
    (is_once && weights && (1..=MEMBERS_MAX).contains(&members.len())).then_some(())
}

/// Slots for members.
fn size(members: &[Member]) -> usize {
    let weights = members.iter().map(|member| u64::from(member.weight));
    let (sum, least) = (weights.clone().sum::<u64>(), weights.min().unwrap_or(1).max(1));
    let wanted = (SLOTS_EACH * sum).div_ceil(least).next_power_of_two();
    wanted.min(SLOTS_MAX as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(number: u16) -> NextHop {
        NextHop::new(number).unwrap()
    }

    fn member(number: u16, weight: u16) -> Member {
        Member { row: row(number), weight }
    }

    fn equal(count: u16) -> Vec<Member> {
        (0..count).map(|number| member(number, 1)).collect()
    }

    fn held(group: &Group, number: u16) -> usize {
        group.slots.rows().iter().filter(|row| row.get() == number).count()
    }

    /// How many flows have another member, of as many as there are slots in the larger table; with the members that lost them.
    fn moved(before: &Group, after: &Group) -> (usize, Vec<u16>) {
        let pairs = (0..after.slots.len() as u32)
            .map(|hash| (before.slots.row(hash).unwrap(), after.slots.row(hash).unwrap()));
        let mut from: Vec<u16> =
            pairs.filter(|(one, other)| one != other).map(|(one, _)| one.get()).collect();
        let count = from.len();
        from.sort_unstable();
        from.dedup();
        (count, from)
    }

    /// How far the slots of the member that is farthest from its part are from it, in slots.
    fn deviation(group: &Group) -> f64 {
        let sum: f64 = group.members.iter().map(|member| f64::from(member.weight)).sum();
        let parts = group.members.iter().map(|member| {
            let part = group.slots.len() as f64 * f64::from(member.weight) / sum;
            (held(group, member.row.get()) as f64 - part).abs()
        });
        parts.fold(0.0, f64::max)
    }

    #[test]
    fn up_to_64_equal_members_are_within_2_percent_of_even() {
        for count in 1..=64 {
            let group = Group::new(&equal(count)).unwrap();
            let even = group.slots.len() as f64 / f64::from(count);
            assert!(deviation(&group) <= even * 0.02, "{count} members: {}", deviation(&group) / even);
        }
        assert_eq!(Group::new(&equal(64)).unwrap().slots.len(), 4096);
        assert_eq!(Group::new(&equal(4)).unwrap().slots.len(), 256);
    }

    /// Flows as hosts make them, with neighbouring addresses and ports: 200 hosts that each open 1,000 connections to one server.
    #[test]
    fn flows_of_many_hosts_are_within_2_percent_of_even() {
        let group = Group::new(&equal(64)).unwrap();
        let mut packet = [0; 28];
        (packet[0], packet[3], packet[9]) = (0x45, 28, 17);
        packet[16..20].copy_from_slice(&[10, 9, 0, 1]);
        packet[23] = 7;
        let mut flows = [0u32; 64];
        for host in 1..=200 {
            packet[12..16].copy_from_slice(&[10, 0, 0, host]);
            for port in 32_768..33_768u16 {
                packet[20..22].copy_from_slice(&port.to_be_bytes());
                let row = group.slots.row(hue_wire::toeplitz::ipv4(&packet)).unwrap();
                flows[usize::from(row.get())] += 1;
            }
        }
        let even = 200_000.0 / 64.0;
        let most = flows.iter().map(|count| (f64::from(*count) - even).abs() / even).fold(0.0, f64::max);
        assert!(most <= 0.02, "{most}: {flows:?}");
    }

    #[test]
    fn groups_that_are_none_are_refused() {
        assert_eq!(Group::new(&[]), None);
        assert_eq!(Group::new(&[member(1, 0)]), None);
        assert_eq!(Group::new(&[member(1, WEIGHT_MAX + 1)]), None);
        assert_eq!(Group::new(&[member(1, 1), member(2, 1), member(1, 2)]), None);
        assert_eq!(Group::new(&equal(MEMBERS_MAX as u16 + 1)), None);
        assert!(Group::new(&equal(MEMBERS_MAX as u16)).is_some());
        for len in [0, 3, 2 * SLOTS_MAX] {
            assert_eq!(Slots::new(vec![row(1); len]), None, "{len}");
        }
        assert_eq!(Slots::new(vec![row(7)]).unwrap().row(u32::MAX), Some(row(7)));
    }

    #[test]
    fn a_member_that_returns_takes_its_share_again() {
        let all = Group::new(&equal(4)).unwrap();
        let without = all.changed(&equal(3)).unwrap();
        assert_eq!(moved(&all, &without), (64, vec![3]));
        let again = without.changed(&equal(4)).unwrap();
        assert_eq!((moved(&without, &again).0, held(&again, 3)), (64, 64));
        assert!(deviation(&again) < 1.0);
    }

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let weight = prop_oneof![3 => Just(1u16), 1 => 1..=4u16, 1 => 1..=WEIGHT_MAX];
        prop::collection::btree_map(0..90u16, weight, 1..70)
            .prop_map(|all| all.into_iter().map(|(number, weight)| member(number, weight)).collect())
    }

    proptest! {
        #[test]
        fn a_new_group_meets_the_weights(members in members()) {
            let group = Group::new(&members).unwrap();
            prop_assert!(group.members.iter().all(|member| held(&group, member.row.get()) > 0));
            // A member whose part is less than a slot has one, at the cost of others.
            let sum: usize = members.iter().map(|member| usize::from(member.weight)).sum();
            let fits = members.iter().all(|one| usize::from(one.weight) * group.slots.len() >= sum);
            prop_assert!(!fits || deviation(&group) < 1.0, "{}", deviation(&group));
        }

        #[test]
        fn when_members_go_only_their_slots_move(members in members(), gone in prop::collection::vec(0..70usize, 1..5)) {
            let mut group = Group::new(&members).unwrap();
            for gone in gone {
                let mut left = group.members.clone();
                if left.len() < 2 {
                    break;
                }
                let gone = left.remove(gone % left.len());
                let after = group.changed(&left).unwrap();
                prop_assert_eq!(moved(&group, &after).1, vec![gone.row.get()]);
                group = after;
            }
        }

        #[test]
        fn a_member_that_comes_takes_its_share(members in members(), weight in 1..=WEIGHT_MAX) {
            let before = Group::new(&members).unwrap();
            let mut more = members;
            more.insert(0, member(100, weight));
            let after = before.changed(&more).unwrap();
            prop_assert_eq!(moved(&before, &after).0, held(&after, 100), "nothing else moves");
            let sum: f64 = more.iter().map(|member| f64::from(member.weight)).sum();
            let part = after.slots.len() as f64 * f64::from(weight) / sum;
            prop_assert!((held(&after, 100) as f64 - part).abs() <= 1.0);
        }

        #[test]
        fn changes_keep_what_they_can(steps in prop::collection::vec(members(), 2..6)) {
            let mut group = Group::new(&steps[0]).unwrap();
            for members in &steps[1..] {
                let after = group.changed(members).unwrap();
                let kept = |row: NextHop| members.iter().any(|member| member.row == row);
                prop_assert!(after.slots.rows().iter().all(|row| kept(*row)));
                prop_assert!(after.slots.len() >= group.slots.len());
                prop_assert!(members.iter().all(|member| held(&after, member.row.get()) > 0));
                prop_assert_eq!(&after.changed(members), &Some(after.clone()), "nothing moves without a change");
                group = after;
            }
        }

        #[test]
        fn a_changed_weight_is_met(members in members(), place in 0..70usize, weight in 1..=WEIGHT_MAX) {
            let group = Group::new(&members).unwrap();
            let mut other = members;
            let place = place % other.len();
            other[place].weight = weight;
            let after = group.changed(&other).unwrap();
            let sum: usize = other.iter().map(|member| usize::from(member.weight)).sum();
            let fits = other.iter().all(|one| usize::from(one.weight) * after.slots.len() >= sum);
            prop_assert!(!fits || deviation(&after) <= 1.0, "{}", deviation(&after));
        }
    }
}
