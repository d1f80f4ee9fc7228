//! Routes by source on a card: after every row that is written, packets must meet the policies before or after the change, and
//! records inside must meet those that were there since they entered.

use std::net::IpAddr;

use hue_card::generated::{PairRow, PolicyRow, RangeRow, RuleRow};
use hue_tables::{AnyPrefix, Key, Policy, RowsByLength};

use super::*;

/// An image with so many rows for policies, as powers of two.
fn image(ranges: u32, pairs: u32, rules: u32) -> Memory {
    let kinds = [Kind::Ipv4, Kind::Ipv6].iter().fold(0, |all, kind| all | 1 << *kind as u32);
    let memory = Memory::new(regs::LAYOUT_SRAM, 4, [0; 4], 1024);
    let memory = memory.with(regs::KINDS, kinds).with(regs::SRAM_WORDS, 4096);
    memory.with(regs::POLICY_ROWS, ranges | pairs << 8 | rules << 16)
}

/// The third network has addresses of 128 bits.
const fn is_v6(number: u16) -> bool {
    number == 3
}

fn address(v6: bool, [a, b]: [u8; 2]) -> IpAddr {
    match v6 {
        true => IpAddr::from([0x2000 | u16::from(a), u16::from(b), 0, 0, 0, 0, 0, 1]),
        false => IpAddr::from([10 + a, b, 0, 1]),
    }
}

/// One policy: source, half of a byte's number of bits, destination, likewise, gateway.
type Line = ([u8; 2], u8, [u8; 2], u8, u8);

fn policies(v6: bool, by: RouteBy, lines: &[Line]) -> Policies {
    let prefix = |of: [u8; 2], bytes: u8| {
        let each = if v6 { 16 } else { 8 };
        AnyPrefix::containing(address(v6, of), bytes * each)
    };
    let mut seen = BTreeSet::new();
    let list = lines.iter().map(|(from, from_len, to, to_len, via)| Policy {
        from: prefix(*from, 1 + from_len % 2),
        to: prefix(*to, if by == RouteBy::Source { 0 } else { to_len % 3 }),
        via: address(v6, [9, *via]),
    });
    let list = list.filter(|one| seen.insert((one.from.to_string(), one.to.to_string()))).collect();
    Policies { by, links: vec![prefix([7, 7], 2)], list }
}

/// A network with rows by length, none of which any route names.
fn by_source(number: u16, policies: Option<Policies>) -> Program {
    let (kind, each) = match is_v6(number) {
        true => (Kind::Ipv6, RowsByLength::<u128>::EACH),
        false => (Kind::Ipv4, RowsByLength::<u32>::EACH),
    };
    let bare = program(number, if policies.is_some() { each } else { 4 }, Vec::new());
    Program { settings: Settings::of(kind), entries: Entries::none(kind), policies, ..bare }
}

/// What policies do with some packets: the gateway's address in the highest bits, if one decides.
type Decisions = Vec<Option<u128>>;

/// Packets: source, destination, length of the route's prefix.
fn packets(v6: bool) -> impl Iterator<Item = (IpAddr, IpAddr, Option<u8>)> {
    let all = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [7, 7]].map(|of| address(v6, of));
    let routes = [None, Some(0), Some(16), Some(32)];
    all.into_iter()
        .flat_map(move |from| all.into_iter().flat_map(move |to| routes.map(|len| (from, to, len))))
}

/// By the definition in software.
fn wanted(program: &Program) -> Decisions {
    fn of<K: Key>(policies: &Policies, v6: bool) -> Decisions {
        let table = policies.table::<K>().unwrap();
        let key = |address| K::from_ip(address).unwrap();
        let decide = |(from, to, len)| table.decide(key(from), key(to), len).map(|rule| rule.via.to_bits());
        packets(v6).map(decide).collect()
    }
    let v6 = program.kind() == Kind::Ipv6;
    match (&program.policies, v6) {
        (None, _) => packets(v6).map(|_| None).collect(),
        (Some(policies), false) => of::<u32>(policies, v6),
        (Some(policies), true) => of::<u128>(policies, v6),
    }
}

/// By the rows, as the card searches them.
fn decisions(rows: &Rows, policy: Option<&PolicyRow>, v6: bool) -> Decisions {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_bits().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let search = |(first, count, steps): (u16, u16, u8), key: u128| {
        let range = |place: u32| get::<RangeRow>(rows, u32::from(first) + place);
        let mut place = 0;
        for step in (0..steps).rev() {
            let probe = place + (1 << step);
            if probe < u32::from(count) {
                let RangeRow { start_high, start_low, .. } = range(probe);
                place = if wide(start_high, start_low) <= key { probe } else { place };
            }
        }
        range(place).value
    };
    let decide = |(from, to, len): (IpAddr, IpAddr, Option<u8>)| {
        let policy = policy?;
        let source = search((policy.source_first, policy.source_count, policy.source_bits), bits(from));
        let destination = (policy.destination_first, policy.destination_count, policy.destination_bits);
        let pair = u32::from(source) + u32::from(search(destination, bits(to)));
        if pair >= u32::from(policy.pair_count) {
            return None;
        }
        let rule = get::<PairRow>(rows, u32::from(policy.pair_first) + pair).rule;
        if rule >= policy.rule_count {
            return None;
        }
        let RuleRow { via_high, via_low, both } = get(rows, u32::from(policy.rule_first) + u32::from(rule));
        len.is_none_or(|len| both > u16::from(len)).then(|| wide(via_high, via_low))
    };
    packets(v6).map(decide).collect()
}

/// What packets of an index on the card meet; `None` if software decides them.
fn met(rows: &Rows, net: u8) -> Option<Decisions> {
    let network: NetworkRow = get(rows, net.into());
    let policy: PolicyRow = get(rows, net.into());
    (network.valid && !network.software).then(|| {
        decisions(rows, Some(&policy).filter(|_| network.policies), network.kind == Kind::Ipv6 as u8)
    })
}

#[derive(Clone, Debug)]
enum Change {
    Load(u16, Option<(bool, Vec<Line>)>),
    InSoftware(u16, Option<(bool, Vec<Line>)>),
    Steer(u16, bool),
    /// Rows are reserved for a move that does not come.
    Prepare(u16),
    Unload(u16),
    Enter(u16),
    Slow(u32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let number = || 1u16..4;
    let at = || prop::array::uniform2(0u8..3);
    let line = (at(), 0u8..2, at(), 0u8..3, 0u8..9);
    let lines = || prop::option::weighted(0.8, (any::<bool>(), prop::collection::vec(line.clone(), 0..7)));
    let change = prop_oneof![
        4 => (number(), lines()).prop_map(|(number, lines)| Change::Load(number, lines)),
        2 => (number(), lines()).prop_map(|(number, lines)| Change::InSoftware(number, lines)),
        5 => (number(), prop::bool::weighted(0.4)).prop_map(|(number, software)| Change::Steer(number, software)),
        1 => number().prop_map(Change::Prepare),
        1 => number().prop_map(Change::Unload),
        5 => number().prop_map(Change::Enter),
        1 => (1u32..5).prop_map(Change::Slow),
    ];
    prop::collection::vec(change, 1..40)
}

/// A record inside, with the row of POLICY that it may have read, and what it may meet.
struct Record {
    number: u64,
    network: u16,
    net: u8,
    policy: Option<PolicyRow>,
    then: Decisions,
    allowed: Vec<Decisions>,
}

struct World {
    card: Card<Memory>,
    /// Each network, and whether the card decides its packets.
    want: BTreeMap<u16, (Program, bool)>,
    records: Vec<Record>,
    entered: u64,
}

impl World {
    fn new(memory: Memory) -> Self {
        let card = Card::new(memory).unwrap();
        Self { card, want: BTreeMap::new(), records: Vec::new(), entered: 0 }
    }

    fn memory(&mut self) -> &mut Memory {
        self.card.device().registers()
    }

    fn step(&mut self, step: &Change) -> Result<(), SubstrateError> {
        let program = |number: u16, lines: &Option<(bool, Vec<Line>)>| {
            let by = |both| if both { RouteBy::SourceDestination } else { RouteBy::Source };
            let of = |(both, lines): &(bool, Vec<Line>)| policies(is_v6(number), by(*both), lines);
            by_source(number, lines.as_ref().map(of))
        };
        let mut after = self.want.clone();
        match step {
            Change::Load(number, lines) => {
                let program = program(*number, lines);
                after.insert(*number, (program.clone(), true));
                self.change(after, |card| card.load(&[program]))
            }
            Change::InSoftware(number, lines) => {
                let program = program(*number, lines);
                after.insert(*number, (program.clone(), false));
                self.change(after, |card| card.load_in_software(&[program]))
            }
            Change::Steer(number, software) => {
                let Some((_, on_card)) = after.get_mut(number) else { return Ok(()) };
                *on_card = !software;
                self.change(after, |card| card.steer(vid(*number), *software))
            }
            Change::Prepare(number) if after.contains_key(number) => {
                self.change(after, |card| card.take_plane(vid(*number)))
            }
            Change::Unload(number) if after.remove(number).is_some() => {
                self.change(after, |card| card.unload(&[vid(*number)]))
            }
            Change::Prepare(_) | Change::Unload(_) => Ok(()),
            Change::Enter(number) => {
                self.enter(*number);
                Ok(())
            }
            Change::Slow(slow) => {
                self.memory().slow = Some(*slow);
                Ok(())
            }
        }
    }

    fn enter(&mut self, number: u16) {
        let Some((program, true)) = self.want.get(&number).cloned() else { return };
        let net = self.card.net(vid(number)).unwrap();
        let network: NetworkRow = get(self.memory().rows(), net.into());
        let policy = get(self.memory().rows(), net.into());
        let then = wanted(&program);
        self.records.push(Record {
            number: self.entered,
            network: number,
            net,
            policy: Some(policy).filter(|_| network.policies),
            allowed: vec![then.clone()],
            then,
        });
        self.entered += 1;
        self.memory().enter();
    }

    /// Makes a change and checks the state after each row that was written.
    fn change(
        &mut self,
        after: BTreeMap<u16, (Program, bool)>,
        change: impl FnOnce(&mut Card<Memory>) -> Result<(), SubstrateError>,
    ) -> Result<(), SubstrateError> {
        let mut rows = self.memory().rows().clone();
        let nets: Vec<_> = (1..4).filter_map(|number| Some((number, self.card.net(vid(number))?))).collect();
        let result = change(&mut self.card);
        let before = std::mem::replace(&mut self.want, after);
        if result.is_err() {
            self.want.clone_from(&before);
        }
        let of = |all: &BTreeMap<u16, (Program, bool)>, number: u16| {
            all.get(&number).filter(|(_, on_card)| *on_card).map(|(program, _)| wanted(program))
        };
        for record in &mut self.records {
            record.allowed.extend(of(&self.want, record.network));
        }
        for write in self.card.device().registers().take_journal() {
            rows.insert(write.row, write.words);
            self.records.retain(|record| record.number >= write.left);
            for record in &self.records {
                let v6 = is_v6(record.network);
                let found = decisions(&rows, record.policy.as_ref(), v6);
                assert_eq!(found, record.then, "a record of net{} that has the row", record.network);
                if record.policy.is_some() {
                    let late = decisions(&rows, Some(&get(&rows, record.net.into())), v6);
                    assert!(record.allowed.contains(&late), "a record of net{}", record.network);
                }
            }
            if write.held {
                continue;
            }
            for (number, net) in &nets {
                let Some(found) = met(&rows, *net) else { continue };
                let allowed = [of(&before, *number), of(&self.want, *number)];
                assert!(allowed.contains(&Some(found)), "net{number}: neither before nor after the change");
            }
        }
        assert_eq!(&rows, self.memory().rows());
        for number in 1..4 {
            let found = self.card.net(vid(number)).and_then(|net| met(&rows, net));
            assert_eq!(found, of(&self.want, number), "net{number} in the end");
        }
        result
    }

    /// Ranges, pairs and rules in use.
    fn used(&self) -> Vec<u64> {
        let banks = self.card.memory(&HashMap::new()).banks;
        banks.iter().filter(|bank| bank.name.contains("routes by source")).map(|bank| bank.used).collect()
    }
}

proptest! {
    #[test]
    fn packets_meet_the_old_or_the_new_policies(
        steps in changes(), (ranges, pairs, rules) in prop::sample::select(vec![(8, 10, 6), (5, 5, 4), (4, 4, 3)]),
    ) {
        let mut world = World::new(image(ranges, pairs, rules));
        for step in &steps {
            if let Err(error) = world.step(step) {
                prop_assert!(matches!(error, SubstrateError::Room { .. }), "{:?}: {}", step, error);
                prop_assert!(error.to_string().contains("by source"), "{}", error);
            }
        }
        // Nothing is lost.
        world.memory().slow = Some(1);
        for number in 1..4 {
            world.step(&Change::Unload(number)).unwrap();
        }
        world.step(&Change::Load(1, None)).unwrap();
        prop_assert_eq!(world.used(), [0, 0, 0]);
    }
}

/// A network in software has no rows, one that comes to the card gets them, also those that another had reserved.
#[test]
fn a_network_takes_rows_when_it_comes_to_the_card() {
    let line = |of: u8, via: u8| ([of, 0], 0, [0, 0], 0, via);
    let few = Some((true, vec![line(0, 1), line(1, 2)]));
    // Room for one of the two networks.
    let mut world = World::new(image(4, 3, 2));
    world.step(&Change::InSoftware(1, few.clone())).unwrap();
    world.step(&Change::InSoftware(2, few.clone())).unwrap();
    assert_eq!(world.used(), [0, 0, 0]);
    world.step(&Change::Prepare(1)).unwrap();
    assert!(world.used()[1] > 0);
    world.step(&Change::Steer(2, false)).unwrap();
    let error = world.step(&Change::Steer(1, false)).unwrap_err().to_string();
    assert!(error.starts_with("network 'net1' needs ") && error.ends_with("image memo has 8"), "{error}");
    world.step(&Change::Steer(2, true)).unwrap();
    world.step(&Change::Steer(1, false)).unwrap();
    // What no image of this size holds is said before anything changes.
    let many = Some((true, (0..9).map(|at| line(at, at)).collect()));
    let error = world.step(&Change::Load(2, many)).unwrap_err().to_string();
    assert!(error.contains("by source") && error.contains("image memo has "), "{error}");
}

/// A card that describes its rows for policies in an impossible way is refused.
#[test]
fn rows_for_policies_are_checked() {
    for word in [1, 1 << 24, 0x11_0101, 0x01_0011] {
        let memory = image(0, 0, 0).with(regs::POLICY_ROWS, word);
        let error = Card::new(memory).err().unwrap().to_string();
        assert!(error.contains("rows for policies") && error.contains(&format!("0x{word:08x}")), "{error}");
    }
    // Earlier layouts do not have the register.
    let old = image(4, 4, 4).with(regs::VERSION, regs::VERSION_RESET & regs::VERSION_MAJOR | 8);
    assert_eq!(Card::new(old).unwrap().description().policy_rows, hue_tables::PolicyRows::default());
}
