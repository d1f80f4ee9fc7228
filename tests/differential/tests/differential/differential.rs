//! Compares the twin with the software engine, image by image.

use std::collections::BTreeMap;

use hue_card::generated::{OutDropsRow, PortRow};
use hue_card::{Card, Description, Image, Layout, Twin, Way, out_drops_row};
use hue_differential::{
    IMAGES, Random, card, compare, compare_on, fails_with, first_seed, fit_banks, fits_banks, frames, full,
    golden_for_cards, group, image, mixed, mutated, offered, programs,
};
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Counters, Kind, Settings, Unclaimed};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, each_routes};
use hue_tables::dir::DirLimits;

/// What happened to a frame: an outcome of a kind, or without one a reason why it belongs to no network.
type Seen = (Option<Kind>, &'static str);

/// Frames of an experiment.
const FRAMES: usize = 400;

fn description(image: &Image) -> Description {
    Card::new(image.start().unwrap()).unwrap().description().clone()
}

/// Compares an image with networks that it can hold, and frames for them.
fn experiment(image: &Image, of: &Description, seed: u64, count: usize) -> BTreeMap<Seen, u64> {
    let mut random = Random::new(seed);
    let most = if of.route_rows > 0 { of.planes as usize } else { 12 };
    let networks = 1 + random.below(most);
    // Ternary tables store local addresses separately; the other routes must fit their rows.
    let routes = if of.route_rows > 0 { of.route_rows as usize } else { 60 };
    let mut programs = mixed(&mut random, &of.kinds, networks, routes);
    if of.group_slots > 0 {
        group(&mut random, &mut programs);
    }
    if of.layout == Layout::Dir {
        fit_banks(&mut programs, seed.is_multiple_of(6), DirLimits::default());
    }
    let frames = frames(&mut random, &programs, count);
    match compare(image, &programs, &frames, seed) {
        Ok(tally) => tally.by_name,
        Err(difference) => panic!("image {}, seed {seed}: {difference}", of.name),
    }
}

fn experiments(names: &[&str], seeds: u64, count: usize) {
    let images: Vec<Image> = names.iter().map(|name| image(name)).collect();
    let all: Vec<Description> = images.iter().map(description).collect();
    let mut seen: Vec<BTreeMap<Seen, u64>> = vec![BTreeMap::new(); images.len()];
    // The images take turns, so that a run that is cut short has covered each of them.
    for number in 0..seeds {
        for ((image, of), seen) in images.iter().zip(&all).zip(&mut seen) {
            for (outcome, count) in experiment(image, of, first_seed() + number, count) {
                *seen.entry(outcome).or_default() += count;
            }
        }
        if (number + 1).is_multiple_of(20) {
            println!("{} images agree over {} frames each", images.len(), (number + 1) * count as u64);
        }
    }
    if first_seed() != 0 {
        return; // the few experiments of other seeds need not see rare outcomes
    }
    for ((name, of), seen) in names.iter().zip(&all).zip(&seen) {
        let all = outcomes(&of.kinds).chain(Unclaimed::ALL.iter().map(|one| (None, one.name())));
        let missing: Vec<_> = all.filter(|outcome| !seen.contains_key(outcome)).collect();
        assert!(missing.is_empty(), "{name}: the experiments never saw {missing:?}");
    }
}

/// The outcomes that packets of networks of these kinds can have on a card.
fn outcomes(kinds: &[Kind]) -> impl Iterator<Item = Seen> {
    let of = |kind: &Kind| {
        let kind = *kind;
        kind.outcomes().iter().map(move |one| (Some(kind), one.name))
    };
    // Only entries that pop the last label have this one, and a card has none.
    kinds.iter().flat_map(of).filter(|outcome| *outcome != (Some(Kind::Mpls), "not_ip"))
}

#[test]
fn golden_cases_agree() {
    for name in IMAGES {
        let image = image(name);
        let of = description(&image);
        for mut case in golden_for_cards(&of.kinds) {
            // One case has a frame on a port without networks; a card has only four ports.
            case.frames.retain(|frame| u32::from(frame.port.get()) < of.mac_ports);
            if of.route_rows > 0 && case.programs.len() > of.planes as usize {
                continue;
            }
            if of.layout == Layout::Dir && !fits_banks(&case.programs) {
                continue;
            }
            for seed in 0..if full() { 6 } else { 2 } {
                if let Err(difference) = compare(&image, &case.programs, &case.frames, seed) {
                    panic!("image {name}, {}, seed {seed}: {difference}", case.name);
                }
            }
        }
    }
}

#[test]
fn random_networks_and_frames_agree() {
    experiments(&IMAGES, 10, FRAMES);
}

/// Kinds that few images have: their golden cases, and random networks.
#[test]
fn kinds_of_few_images_agree() {
    const KINDS: [Kind; 4] = [Kind::Extract, Kind::Rofl, Kind::Splice, Kind::Mpls];
    let image = image("kinds");
    let of = description(&image);
    for case in golden_for_cards(&KINDS) {
        if let Err(difference) = compare(&image, &case.programs, &case.frames, 0) {
            panic!("{}: {difference}", case.name);
        }
    }
    let mut seen: BTreeMap<Seen, u64> = BTreeMap::new();
    for kind in KINDS {
        // Mostly networks of this kind, between others that have its ports too.
        let of = Description { kinds: vec![Kind::Ipv4, Kind::L2, kind], ..of.clone() };
        // Half of a world's networks with routes are of kind `splice`, but few worlds have one of the others.
        let seeds = if kind == Kind::Splice { 6 } else { 13 };
        for seed in first_seed()..first_seed() + seeds {
            for (outcome, count) in experiment(&image, &of, seed, FRAMES / 2) {
                *seen.entry(outcome).or_default() += count;
            }
        }
    }
    let missing: Vec<_> = outcomes(&KINDS).filter(|outcome| !seen.contains_key(outcome)).collect();
    assert!(missing.is_empty() || first_seed() != 0, "the experiments never saw {missing:?}");
}

/// More than a million packets over all images; one test for each image, so that they run in parallel.
mod every_image_agrees {
    macro_rules! images {
        ($($name:ident),*) => {
            /// The images that have a test.
            const TESTED: &[&str] = &[$(stringify!($name)),*];
            $(#[test]
            #[ignore = "long: make test-full"]
            fn $name() {
                super::experiments(&[stringify!($name)], 260, super::FRAMES);
            })*
        };
    }
    images!(tcam1, tcam2, tcam3, tcam4, tcam5, default, wide, kinds, sram, dir);

    #[test]
    #[ignore = "long: make test-full"]
    fn images_for_an_fpga() {
        super::experiments(&hue_differential::TARGET_IMAGES, 180, super::FRAMES);
    }

    #[test]
    fn no_image_is_left_out() {
        assert_eq!(TESTED, hue_differential::ALL_IMAGES);
        let mut for_an_fpga = Vec::new();
        for image in TESTED {
            let file = hue_testdata::root().join(format!("rtl/images/{image}.toml"));
            let text = std::fs::read_to_string(file).unwrap();
            let targets = text.lines().filter_map(|line| line.strip_prefix("[target.")?.strip_suffix(']'));
            for_an_fpga.extend(targets.map(|target| format!("{image}.{target}")));
        }
        for_an_fpga.sort();
        assert_eq!(for_an_fpga, hue_differential::TARGET_IMAGES);
    }
}

/// A network changes while the card runs: its frames before and after, and the other networks' frames, are as in software.
#[test]
fn networks_come_change_and_go() {
    for name in ["tcam3", "default", "sram", "dir"] {
        let image = image(name);
        let mut random = Random::new(11);
        let of = description(&image);
        let mut all = mixed(&mut random, &of.kinds, 3, 28);
        if of.group_slots > 0 {
            group(&mut random, &mut all);
        }
        if name == "dir" {
            // The networks may be loaded in any order: of two that conflict, either may need rows.
            fit_banks(&mut all, false, DirLimits { cam_rows: 12, ..DirLimits::default() });
        }
        let mut card = card(&image, &all[..1]);
        // Networks are loaded in another order, reloaded with other routes, removed and loaded again.
        card.load(&all[2..]).unwrap();
        card.unload(&[all[0].vid]).unwrap();
        card.load(&all[1..2]).unwrap();
        let mut changed = all[1].clone();
        each_routes!(&mut changed.entries, routes => routes.truncate(routes.len() / 2));
        card.load(&[changed.clone()]).unwrap();
        // Also with other next hops.
        changed.next_hops.swap(0, 1);
        card.load(&[changed.clone()]).unwrap();
        card.load(&all[..1]).unwrap();
        let now = [all[0].clone(), changed, all[2].clone()];
        let frames = frames(&mut random, &now, FRAMES);
        if let Err(difference) = compare_on(&mut card, &now, &frames) {
            panic!("image {name}: {difference}");
        }
    }
}

/// A driver that takes over a card with networks on it does not know the tables: their old contents affect no packet.
#[test]
fn a_card_with_networks_is_taken_over() {
    for name in ["default", "dir"].into_iter().chain(if full() { vec!["tcam3", "sram"] } else { vec![] }) {
        let image = image(name);
        let mut random = Random::new(21);
        let of = description(&image);
        let mut all = mixed(&mut random, &of.kinds, 3, 28);
        if of.group_slots > 0 {
            group(&mut random, &mut all);
        }
        if name == "dir" {
            fit_banks(&mut all, true, DirLimits::default());
        }
        let mut before = card(&image, &all);
        let used = std::mem::replace(before.twin(), image.start().unwrap());
        let mut again = Card::new(used).unwrap();
        again.set_offline().unwrap();
        // The same networks with only a few of their routes.
        for program in &mut all {
            let mut number = 0;
            each_routes!(&mut program.entries, routes => routes.retain(|_| {
                number += 1;
                number % 4 == 0
            }));
        }
        again.load(&all).unwrap();
        let frames = frames(&mut random, &all, FRAMES);
        if let Err(difference) = compare_on(&mut again, &all, &frames) {
            panic!("image {name}: {difference}");
        }
    }
}

#[test]
fn networks_that_do_not_fit_are_refused_by_name_and_change_nothing() {
    let image = image("tcam3");
    let mut random = Random::new(6);
    let good = programs(&mut random, 3, 20);
    let mut card = card(&image, &good);
    let text = |result: Result<(), SubstrateError>| result.unwrap_err().to_string();
    let four = programs(&mut random, 4, 20);
    assert_eq!(
        text(card.load(&four[3..])),
        "4 networks: image tcam3 holds 3; choose an image that holds more, or substrate soft"
    );
    let with = |change: fn(&mut Program)| {
        let mut program = good[1].clone();
        change(&mut program);
        [program]
    };
    let many = with(|program| {
        let hop = program.entries.lpm32()[0].1;
        let rows = (0..33u32).map(|n| (hue_tables::Prefix4::containing(n << 20, 12), hop));
        program.entries = Entries::Lpm32(rows.collect());
    });
    assert_eq!(text(card.load(&many)), "network 'net1' needs 33 route rows: image tcam3 has 32");
    let hops = with(|program| program.next_hops.resize(33, Adjacency::local()));
    assert_eq!(text(card.load(&hops)), "network 'net1' needs 33 next hops: image tcam3 has 32");
    let port = with(|program| {
        program.ports.push(hue_substrate::VirtualPort {
            name: "far".to_owned(),
            port: hue_demux::PortId::new(4),
            mac: hue_wire::Mac([2, 0, 0, 0, 0, 77]),
            mtu_bytes: 1500,
            tunnel: None,
        });
    });
    assert_eq!(text(card.load(&port)), "network 'net1' is on port 4: image tcam3 has ports 0 to 3");
    let frames = frames(&mut random, &good, FRAMES);
    if let Err(difference) = compare_on(&mut card, &good, &frames) {
        panic!("{difference}");
    }
}

/// Addresses of switches are set aside, so that no network takes those of another. What does not fit is refused by name.
#[test]
fn switches_share_the_rows_for_addresses() {
    let image = image("sram");
    let mut random = Random::new(2);
    let all = mixed(&mut random, &[Kind::Ipv4, Kind::L2], 6, 20);
    let mut switch = all.into_iter().find(|program| program.kind() == Kind::L2).unwrap();
    let mut card = card(&image, &[switch.clone()]);
    let Settings::L2(settings) = switch.settings else { panic!() };
    switch.settings = Settings::L2(hue_planes::l2::Settings { macs_max: 7400, ..settings });
    let count = 7400 + switch.entries.len();
    let error = card.load(&[switch.clone()]).unwrap_err().to_string();
    let name = &switch.name;
    assert_eq!(
        error,
        format!("network '{name}' needs {count} MAC addresses, static and learnt ones: image sram has 7372")
    );
    let frames = frames(&mut random, std::slice::from_ref(&switch), FRAMES);
    switch.settings = Settings::L2(settings);
    if let Err(difference) = compare_on(&mut card, &[switch.clone()], &frames) {
        panic!("{difference}");
    }
    // A network in software does not take what others on the card need.
    let Settings::L2(settings) = switch.settings else { panic!() };
    let other = |macs_max| {
        let mut other = switch.clone();
        other.vid = hue_tables::Vid::new(999).unwrap();
        other.name = "other".to_owned();
        other.rows.clear();
        other.settings = Settings::L2(hue_planes::l2::Settings { macs_max, ..settings });
        other
    };
    let free = 7372 - switch.addresses_max() - switch.entries.len();
    card.load_in_software(&[other(free as u16 + 1)]).unwrap();
    let error = card.steer(hue_tables::Vid::new(999).unwrap(), false).unwrap_err().to_string();
    assert!(error.contains("needs 7373 MAC addresses") && error.contains("'other'"), "{error}");
    card.load_in_software(&[other(free as u16)]).unwrap();
    card.steer(hue_tables::Vid::new(999).unwrap(), false).unwrap();
}

/// A stopped plane processes none of its packets: they are dropped or go to control, as configured, and are counted. The
/// other planes are not affected, and the plane continues with its old state when it runs again.
#[test]
fn a_gated_plane_stands_still_alone() {
    ["tcam3", "default"].into_iter().for_each(gated_plane);
}

fn gated_plane(name: &str) {
    let image = image(name);
    let mut random = Random::new(21);
    let programs = programs(&mut random, 3, 25);
    let frames = frames(&mut random, &programs, FRAMES);
    let offered = offered(&frames);
    let mut free = card(&image, &programs);
    free.run(&offered, |_| ()).unwrap();
    for to_control in [false, true] {
        let mut card = card(&image, &programs);
        let vid = programs[1].vid;
        card.set_gates(1 << card.plane(vid).unwrap(), to_control).unwrap();
        let mut seen = 0;
        card.run(&offered, |sent| {
            if let Way::Control { vid: whose, outcome: None, .. } = sent.way {
                assert_eq!(whose, vid);
                seen += 1;
            }
        })
        .unwrap();
        for other in [programs[0].vid, programs[2].vid] {
            assert_eq!(card.read_counters(other).unwrap(), free.read_counters(other).unwrap());
            assert_eq!(card.read_passed_by(other).unwrap(), Some(0));
        }
        let received = free.read_counters(vid).unwrap().unwrap().received();
        let mut counters = Counters::new(programs[1].kind());
        if !to_control {
            counters.add(Outcome::Gated, received);
        }
        assert_eq!(card.read_counters(vid).unwrap(), Some(counters));
        assert_eq!(card.read_passed_by(vid).unwrap(), Some(if to_control { received } else { 0 }));
        assert_eq!(seen, if to_control { received } else { 0 });
        card.set_gates(0, false).unwrap();
        card.run(&offered, |_| ()).unwrap();
        for (outcome, count) in free.read_counters(vid).unwrap().unwrap().iter() {
            counters.add(outcome, count);
        }
        assert_eq!(card.read_counters(vid).unwrap(), Some(counters));
    }
}

/// If the ports take nothing, the driver reports this instead of waiting for ever.
#[test]
fn a_stopped_card_is_reported() {
    let image = image("tcam3");
    let mut random = Random::new(3);
    let programs = programs(&mut random, 2, 20);
    let frames = frames(&mut random, &programs, FRAMES);
    let offered = offered(&frames);
    let mut card = card(&image, &programs);
    assert!(card.twin().set_stress(0, 0, 256));
    let error = card.run(&offered, |_| ()).unwrap_err().to_string();
    assert!(error.starts_with("the card is stuck: nothing moved for "), "{error}");
    // Registers still answer, and when the ports take frames again all of them come.
    assert!(card.read_counters(programs[0].vid).unwrap().unwrap().received() > 0);
    assert!(card.twin().set_stress(0, 0, 0));
    while !card.twin().idle() {
        assert!(card.twin().run(100_000) > 0);
    }
    let counters: Vec<_> =
        programs.iter().map(|program| card.read_counters(program.vid).unwrap().unwrap()).collect();
    let expected: u64 = counters.iter().map(|one| one.forwarded() + one.punted()).sum();
    let mut left = 0;
    while card.twin().pop().is_some() {
        left += 1;
    }
    assert_eq!(left, expected);
}

/// If a port's beats stop inside a frame, nothing moves and no error occurs, and the frame continues later.
#[test]
fn a_frame_that_stops_half_way_in_goes_on_later() {
    for name in IMAGES.into_iter().chain(full().then_some("wide")) {
        let mut random = Random::new(4);
        let programs = programs(&mut random, 1, 20);
        let mut card = card(&image(name), &programs);
        let mut bytes = frames(&mut random, &programs, 1).remove(0).bytes;
        bytes.resize(1514, 0);
        assert!(card.twin().push(0, 0, 7, 0, &bytes));
        assert!(card.twin().set_stress(0, 128, 0));
        // Some of at least 24 beats have come in.
        assert_eq!(card.twin().run(12), 12);
        assert!(card.twin().set_stress(0, 256, 0));
        card.twin().run(50_000);
        assert!(card.twin().still_cycles() > 40_000 && !card.twin().idle(), "{name}");
        assert_eq!(card.read_unclaimed().unwrap().total(), 0, "{name}: registers answer");
        assert!(card.twin().set_stress(0, 0, 0));
        while !card.twin().idle() {
            assert!(card.twin().run(100_000) > 0 && card.twin().still_cycles() < 1_000, "{name}");
        }
        assert_eq!(card.twin().failure(), None);
        let left = u64::from(card.twin().pop().is_some());
        let counters = card.read_counters(programs[0].vid).unwrap().unwrap();
        assert_eq!(left, counters.forwarded() + counters.punted(), "{name}");
        assert_eq!(counters.received() + card.read_unclaimed().unwrap().total(), 1, "{name}");
    }
}

/// Live operation with slow ports: queues fill and drop, and every frame is still accounted for.
#[test]
fn full_queues_drop_and_count() {
    for name in ["tcam3", "default"] {
        let image = image(name);
        let mut random = Random::new(8);
        let programs = programs(&mut random, 3, 25);
        let frames = frames(&mut random, &programs, 3000);
        let mut card = card(&image, &programs);
        card.set_live().unwrap();
        assert!(card.twin().set_stress(1, 0, 254));
        for (frame, tag) in frames.iter().zip(0u32..) {
            assert!(card.twin().push(frame.port.get(), frame.time_ns, tag, 0, &frame.bytes));
        }
        card.twin().run(200_000);
        assert!(card.twin().set_stress(1, 0, 0));
        while !card.twin().idle() {
            assert!(card.twin().run(100_000) > 0);
        }
        assert_eq!(card.twin().failure(), None);
        let mut left = 0;
        while let Some(frame) = card.twin().pop() {
            left += u64::from(!frame.bytes.is_empty());
        }
        let mut port =
            |port: u32, counter: u32| card.device().read_row::<PortRow>(port * 8 + counter).unwrap().value;
        let sum = |values: &mut dyn Iterator<Item = u64>| values.sum::<u64>();
        let (taken, dropped) = (sum(&mut (0..4).map(|p| port(p, 0))), sum(&mut (0..4).map(|p| port(p, 2))));
        assert_eq!(
            taken + dropped,
            frames.len() as u64,
            "{name}: every frame was taken or dropped by its port"
        );
        let flooded = sum(&mut (0..4).map(|p| port(p, 6)));
        let (sent, lost) = (sum(&mut (0..8).map(|p| port(p, 3))), sum(&mut (0..8).map(|p| port(p, 5))));
        assert_eq!(sent, left, "{name}");
        assert!(dropped + lost > 0, "{name}: no queue was full");
        let mut received = 0;
        let mut to_send = 0;
        let mut by_network = 0;
        for program in &programs {
            let counters = card.read_counters(program.vid).unwrap().unwrap();
            received += counters.received();
            to_send += counters.forwarded() + counters.punted();
            let net = card.net(program.vid).unwrap();
            for port in 0..8 {
                by_network += card.device().read_row::<OutDropsRow>(out_drops_row(port, net)).unwrap().value;
            }
        }
        assert_eq!(to_send, sent + lost, "{name}: what the planes sent left or was dropped by a queue");
        assert_eq!(lost, by_network, "{name}: drops by port and by network add up");
        // These are bounds, because group frames are received by several networks, or dropped for lack of room.
        let unclaimed = card.read_unclaimed().unwrap().total();
        assert!(
            received + unclaimed >= taken - flooded,
            "{name}: {received} + {unclaimed} of {taken}, {flooded}"
        );
    }
}

/// Next hops with a flipped bit in their memory: the card reports this once packets use them.
#[test]
#[ignore = "long: make test-full"]
fn a_wrong_bit_in_a_memory_is_reported() {
    let written = "{^write_data_o, write_data_o}";
    let image = mutated(
        "memory",
        "tcam3",
        "tables/hue_table.sv",
        written,
        "{^write_data_o, write_data_o ^ Width'(Id == 8'd7)}",
    );
    let mut random = Random::new(4);
    let programs = programs(&mut random, 3, 20);
    let frames = frames(&mut random, &programs, FRAMES);
    let mut card = card(&image, &programs);
    assert!(!card.take_events().unwrap().memory_error);
    assert!(compare_on(&mut card, &programs, &frames).is_err());
    assert!(card.take_events().unwrap().memory_error);
}

/// Flipped bits in external memory: packets that read the word find no route and reach no network's neighbour. The card reports
/// the word's address, and once the driver has rewritten the word, both sides agree again.
#[test]
fn a_damaged_word_of_external_memory_is_found_and_repaired() {
    ["sram", "dir"][..if full() { 2 } else { 1 }].iter().for_each(|name| damaged_words(name));
}

fn damaged_words(name: &str) {
    let mut random = Random::new(9);
    let image = image(name);
    // Switches have no words there.
    let mut kinds = description(&image).kinds;
    kinds.retain(|kind| Settings::of(*kind).learning().is_none());
    let mut programs = mixed(&mut random, &kinds, 4, 20);
    let banks = name == "dir";
    if banks {
        fit_banks(&mut programs, false, DirLimits::default());
    }
    // The frames run repeatedly, with the same times.
    programs.iter_mut().for_each(|program| program.rate_limit = None);
    let frames = frames(&mut random, &programs, 80);
    let mut card = card(&image, &programs);
    // With a trie, freed blocks lie between. With two banks, entries are where their addresses are. The words of the twin's
    // memories belong alternately to one bank and the other.
    let words = match banks {
        true => 1 << 20,
        false => 2 * u32::try_from(card.capacity().table_bytes * 8 / 36).unwrap(),
    };
    assert_eq!(card.repair().unwrap(), None);
    assert!(!card.take_events().unwrap().memory_error);
    // Every word once, so that the words that packets read are among them.
    for word in 0..words {
        assert!(card.twin().damage(word, 1 << random.below(36)));
    }
    assert!(!card.twin().damage(1 << 20, 1), "there is no such word");
    let forwarded = |card: &mut Card<Twin>| {
        let mut ports = 0;
        card.run(&offered(&frames), |sent| ports += usize::from(matches!(sent.way, Way::Port(_)))).unwrap();
        ports
    };
    let sound = forwarded(&mut hue_differential::card(&image, &programs));
    assert!(forwarded(&mut card) < sound / 4, "most lookups meet a damaged word");
    assert!(card.take_events().unwrap().memory_error);
    let mut repaired = 0;
    loop {
        while let Some(word) = card.repair().unwrap() {
            assert!(word < words);
            repaired += 1;
        }
        forwarded(&mut card);
        if !card.take_events().unwrap().memory_error {
            break;
        }
        assert!(repaired <= words, "a word is damaged again and again");
    }
    assert!(repaired > 0);
    assert_eq!(forwarded(&mut card), sound);
}

/// The comparison must find a bug of the RTL, in whatever module.
#[test]
fn planted_bugs_of_the_card_are_found() {
    let planted = |name| (format!("`ifdef HUE_PLANT_{name}"), format!("`ifndef HUE_PLANT_{name}"));
    let mut bugs =
        vec![("tcam3", "planes/hue_ipv4_check.sv", ("ttl < 8'd2".to_owned(), "ttl < 8'd1".to_owned()))];
    if full() {
        let ready = "assign s_tready_o[q] = ready && open_q;";
        let write = ".write_i(sram_req.write[bank])";
        bugs.extend([
            // The kind of a network is ignored.
            ("sram", "demux/hue_network.sv", planted("NETWORK_KIND")),
            ("tcam3", "card/hue_card.sv", (ready.to_owned(), ready.replace(";", " && s_tvalid_i[q];"))),
            ("tcam3", "planes/hue_meter.sv", planted("METER_THIRD")),
            ("default", "planes/hue_stages_pkg.sv", planted("IPV4_ORDER")),
            ("sram", "planes/hue_stages_pkg.sv", planted("VERDICT_KIND")),
            ("sram", "planes/hue_ipv6_check.sv", planted("IPV6_ORDER")),
            ("sram", "planes/hue_dual_check.sv", planted("DUAL_ROOT")),
            ("sram", "planes/hue_dual_check.sv", planted("DUAL_FAMILY")),
            ("kinds", "planes/hue_extract_check.sv", planted("EXTRACT_END")),
            ("kinds", "planes/hue_extract.sv", planted("EXTRACT_MASK")),
            ("kinds", "planes/hue_extract.sv", planted("EXTRACT_ORDER")),
            ("kinds", "planes/hue_rofl_check.sv", planted("ROFL_ROUTE")),
            ("kinds", "planes/hue_rofl_check.sv", planted("ROFL_ORDER")),
            ("kinds", "planes/hue_routes.sv", planted("ROFL_LOOP")),
            ("kinds", "planes/hue_splice_check.sv", planted("SPLICE_ALL")),
            ("kinds", "planes/hue_splice_check.sv", planted("SPLICE_SLICE")),
            ("sram", "planes/hue_l2_check.sv", planted("L2_TAG")),
            ("sram", "planes/hue_l2.sv", planted("L2_NETWORK")),
            ("sram", "planes/hue_l2.sv", planted("L2_STICKY")),
            ("sram", "planes/hue_l2.sv", planted("L2_ARRIVAL")),
            ("kinds", "card/hue_card.sv", (write.to_owned(), write.replace("bank", "0"))),
            ("sram", "tables/hue_dag36_walk.sv", planted("DAG36_LEVEL")),
            ("default", "tables/hue_dag36_pkg.sv", planted("DAG36_MAP")),
            ("wide", "card/hue_gather.sv", planted("GATHER_SUM")),
            ("wide", "card/hue_cpu_insert.sv", planted("INSERT_TAIL")),
            ("sram", "card/hue_scatter.sv", planted("SCATTER_SHIFT")),
            ("tcam3", "card/hue_flood.sv", planted("FLOOD_SLOT")),
            ("dir", "tables/hue_dir_banks.sv", planted("DIR_CAM")),
            ("dir", "tables/hue_dir.sv", planted("DIR_OWNER")),
        ]);
    }
    let mut missed = Vec::new();
    for (name, file, (from, to)) in bugs {
        let image = mutated("planted", name, file, &from, &to);
        let of = description(&image);
        // Few worlds have what some faults need, such as a sticky switch whose hosts move.
        let found = (0..60).any(|seed| {
            let mut random = Random::new(seed);
            let routes = if of.route_rows > 0 { 30 } else { 60 };
            let mut programs = mixed(&mut random, &of.kinds, of.planes.min(12) as usize, routes);
            if of.layout == Layout::Dir {
                fit_banks(&mut programs, false, DirLimits::default());
            }
            let frames = frames(&mut random, &programs, FRAMES);
            compare(&image, &programs, &frames, seed).is_err()
        });
        if !found {
            missed.push(format!("image {name}: {from} as {to} in {file}"));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

/// It must also find a bug of the software: in its inputs, and (`make test-full`) in its source.
#[test]
fn planted_bugs_of_the_software_are_found() {
    let image = image("tcam3");
    let mut random = Random::new(1);
    let sound = programs(&mut random, 3, 30);
    let frames = frames(&mut random, &sound, FRAMES);
    let mut card = card(&image, &sound);
    let mut wrong = sound.clone();
    for (_, hop) in wrong[0].entries.lpm32_mut() {
        if hop.get() == 2 {
            *hop = hue_tables::NextHop::new(1).unwrap();
        }
    }
    assert!(compare_on(&mut card, &wrong, &frames).is_err());
    if !full() {
        return;
    }
    for (file, from, to) in [
        ("crates/planes/src/ipv4.rs", "header.ttl < 2", "header.ttl < 1"),
        ("crates/planes/src/meter.rs", "self.debt.saturating_sub(earned)", "self.debt"),
    ] {
        assert!(
            fails_with(file, from, to, "differential::random_networks_and_frames_agree"),
            "not found: {from} as {to} in {file}"
        );
    }
}
