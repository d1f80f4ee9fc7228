//! As many networks as the card holds, each on all ports: every MAC address is found, and no other. And as many routes as its
//! trie must hold.

use std::collections::BTreeMap;

use hue_card::generated::{MacRow, SelectRow};
use hue_card::{Card, Twin};
use hue_demux::{Match, PortId, Row};
use hue_differential::{Frame, Random, card, compare_on, full, image};
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Settings};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::{Mac, checksum};

const PORTS: u8 = 4;
const NETWORKS: usize = 256;

/// A network on all ports: 10.P.0.0/16 leaves by port P.
fn program(k: usize, macs: &[Mac]) -> Program {
    let vid = Vid::new(k as u16 + 100).unwrap();
    let own = |port: u8| macs[k * usize::from(PORTS) + usize::from(port)];
    let port = |port| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: own(port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let row = |port| Row {
        vid,
        vport: u16::from(port),
        select: Match::Mac { port: PortId::new(port), mac: own(port) },
    };
    let hop = |port| {
        Adjacency::forward(PortId::new(port), own(port), Mac([2, 9, 0, k as u8, (k >> 8) as u8, port]), 1500)
    };
    let route = |to: u8| {
        (Prefix4::containing(10 << 24 | u32::from(to) << 16, 16), NextHop::new(u16::from(to)).unwrap())
    };
    Program {
        vid,
        name: format!("net{k}"),
        settings: Settings::of(Kind::Ipv4),
        ports: (0..PORTS).map(port).collect(),
        rows: (0..PORTS).map(row).collect(),
        next_hops: (0..PORTS).map(hop).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32((0..PORTS).map(route).collect()),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

fn frame(dst: Mac, port: u8, address: u32, time_ns: u64) -> Frame {
    let mut header = vec![0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1];
    header.extend(address.to_be_bytes());
    let sum = checksum::full(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut bytes = [&dst.0[..], &[2, 0, 0, 0, 0xee, 1, 8, 0], &header].concat();
    bytes.resize(64, 0);
    Frame { port: PortId::new(port), time_ns, bytes }
}

/// A packet to each address, and one to a similar address that belongs to no network.
fn frames(macs: &[Mac], random: &mut Random) -> Vec<Frame> {
    let mut all = Vec::new();
    for (n, mac) in macs.iter().enumerate() {
        let (port, to) = (n as u8 % PORTS, random.below(usize::from(PORTS)) as u8);
        let mut near = mac.0;
        near[1 + random.below(3)] ^= 1 << random.below(8);
        for dst in [*mac, Mac(near)] {
            all.push(frame(dst, port, 10 << 24 | u32::from(to) << 16 | 1, 1_000 * all.len() as u64));
        }
    }
    all
}

fn in_a_row() -> Vec<Mac> {
    (0..NETWORKS).flat_map(|k| (0..PORTS).map(move |port| Mac([2, 0, 0, 0, k as u8, port]))).collect()
}

fn anyhow(random: &mut Random) -> Vec<Mac> {
    let one = |random: &mut Random| {
        let [a, b, c, d, e, ..] = random.word().to_le_bytes();
        Mac([2, a, b, c, d, e])
    };
    (0..NETWORKS * usize::from(PORTS)).map(|_| one(random)).collect()
}

/// Rows in use in MAC and in SELECT.
fn used(card: &mut Card<Twin>) -> (usize, usize) {
    let (macs, rows) = (card.description().mac_rows, card.description().select_rows);
    let macs = (0..macs).filter(|row| card.device().read_row::<MacRow>(*row).unwrap().valid).count();
    (macs, (0..rows).filter(|row| card.device().read_row::<SelectRow>(*row).unwrap().valid).count())
}

#[test]
fn every_address_of_256_networks_is_found() {
    let image = image("default");
    let mut random = Random::new(11);
    for macs in [in_a_row(), anyhow(&mut random)] {
        let programs: Vec<_> = (0..NETWORKS).map(|k| program(k, &macs)).collect();
        let mut card = card(&image, &programs);
        let tally = compare_on(&mut card, &programs, &frames(&macs, &mut random)).unwrap();
        assert_eq!(tally.by_name.get(&(None, "no_network")), Some(&(macs.len() as u64)), "{tally:?}");
        assert_eq!(used(&mut card), (macs.len(), 0));
        // There is no room for one more network.
        let more: Vec<_> = (0..PORTS).map(|port| Mac([2, 0xff, 0, 0, 0, port])).collect();
        let one = Program { vid: Vid::new(4000).unwrap(), ..program(0, &more) };
        let rows = one.rows.iter().map(|row| Row { vid: one.vid, ..*row }).collect();
        let error = card.load(&[Program { rows, name: "more".to_owned(), ..one }]).unwrap_err();
        assert!(matches!(error, SubstrateError::ImageNetworks { count: 257, max: 256, .. }), "{error}");
        // Half of the networks are removed and loaded again with other addresses; the rest stay.
        let half: Vec<Vid> = programs.iter().step_by(2).map(|program| program.vid).collect();
        card.unload(&half).unwrap();
        assert_eq!(used(&mut card), (macs.len() / 2, 0));
        let others: Vec<Mac> =
            macs.iter().map(|mac| Mac([6, mac.0[1], mac.0[5], mac.0[3], mac.0[4], mac.0[2]])).collect();
        let back: Vec<_> = (0..NETWORKS).step_by(2).map(|k| program(k, &others)).collect();
        card.load(&back).unwrap();
        assert_eq!(used(&mut card), (macs.len(), 0));
    }
}

/// Addresses for which MAC has no free place are in ternary rows. If these are full, an error names the network and both tables.
#[test]
fn rows_beside_the_addresses_are_counted() {
    let image = image("default");
    let mut card = card(&image, &[]);
    let (macs, rows) = (card.description().mac_rows as usize, card.description().select_rows as usize);
    let vport = |select: &Match| match select {
        Match::Mac { port, .. } => u16::from(port.get()),
        _ => 0,
    };
    let with = |count: usize, inner: usize| {
        let vid = Vid::new(7).unwrap();
        let by_mac = |n: usize| Match::Mac {
            port: PortId::new(n as u8 % PORTS),
            mac: Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8]),
        };
        let by_inner =
            |n: usize| Match::Inner { port: None, prefix: Prefix4::containing((n as u32) << 8, 24) };
        let rows = (0..count).map(by_mac).chain((0..inner).map(by_inner));
        let rows = rows.map(|select| Row { vid, vport: vport(&select), select }).collect();
        Program { vid, name: "many".to_owned(), rows, ..program(0, &in_a_row()) }
    };
    card.load(&[with(100, rows)]).unwrap();
    assert_eq!(used(&mut card), (100, rows));
    let error = card.load(&[with(100, rows + 1)]).unwrap_err().to_string();
    assert_eq!(error, "network 'many' needs 65 ternary rows of design select: image default has 64");
    assert_eq!(used(&mut card), (100, rows));
    let error = card.load(&[with(macs + rows, 1)]).unwrap_err().to_string();
    assert_eq!(error, "network 'many' needs 2113 rows of design select: image default has 2112");
    // As full as possible: addresses without a place get ternary rows, and every address is found.
    let programs = [with(macs, 2)];
    card.load(&programs).unwrap();
    let (exact, ternary) = used(&mut card);
    assert!(exact + ternary == macs + 2 && exact > macs - 60, "{exact} and {ternary}");
}

/// A network with this number of routes, mostly with the prefix lengths of an Internet table, each to a next hop of its own port.
fn with_routes(k: usize, macs: &[Mac], count: usize, random: &mut Random) -> Program {
    let mut routes = BTreeMap::new();
    while routes.len() < count {
        let length = [8, 16, 19, 20, 22, 23, 24, 24, 24, 32][random.below(10)];
        let prefix = Prefix4::containing(random.word() as u32, length);
        routes.insert(prefix, NextHop::new(random.below(usize::from(PORTS)) as u16).unwrap());
    }
    Program { entries: Entries::Lpm32(routes.into_iter().collect()), ..program(k, macs) }
}

#[test]
fn routes_of_64_networks_4096_in_all_decide_as_in_software() {
    const NETWORKS: usize = 64;
    for name in ["default"].into_iter().chain(full().then_some("wide")) {
        let mut random = Random::new(64);
        let macs = in_a_row();
        let programs: Vec<_> =
            (0..NETWORKS).map(|k| with_routes(k, &macs, 4096 / NETWORKS, &mut random)).collect();
        let mut card = card(&image(name), &programs);
        // For an address inside a route and inside the neighbouring routes, of this network and of another.
        let mut frames = Vec::new();
        for (k, program) in programs.iter().enumerate() {
            for (prefix, _) in program.entries.lpm32() {
                let inside = prefix.addr() | random.word() as u32 & (prefix.last() - prefix.addr());
                let beside = inside ^ 1 << random.below(32);
                for (network, address) in [(k, inside), ((k + 1) % NETWORKS, inside), (k, beside)] {
                    let port = random.below(usize::from(PORTS));
                    let dst = macs[network * usize::from(PORTS) + port];
                    frames.push(frame(dst, port as u8, address, 1_000 * frames.len() as u64));
                }
            }
        }
        let tally = compare_on(&mut card, &programs, &frames).unwrap();
        // Most networks do not have their neighbour's route.
        let of = |name| tally.by_name.get(&(Some(Kind::Ipv4), name)).copied().unwrap_or(0);
        assert!(of("forward") >= 4096 && of("no_route") >= 4096, "{name}: {tally:?}");
    }
}
