//! The ring of flat labels: what many routers come to, and what one does with hostile messages.

use std::collections::BTreeSet;
use std::time::Duration;

use hue_routing::ring::{Config, Drop, Place, Port, Router, exercise};
use hue_wire::Mac;

use crate::pwospf_world::{Random, topology};
use crate::ring_world::{World, label};

/// Routers with random labels on a random topology in which every one can reach every other one.
fn random(seed: u64) -> (World, usize) {
    let mut random = Random(seed ^ 0x726f);
    let count = 2 + random.below(7) as usize;
    let links = topology(&mut random, count);
    let mut labels = BTreeSet::new();
    while labels.len() < count {
        labels.insert(label(1 + 1000 * random.below(20) as u32));
    }
    let labels: Vec<_> = labels.into_iter().collect();
    (World::new(seed, &labels, &links), count)
}

/// A label that nobody has; many are neighbours on the ring, none is a router's.
fn free(world: &mut World) -> hue_wire::rofl::Label {
    loop {
        let number = match world.random.below(3) {
            0 => 2 + world.random.below(12) as u32,
            1 => 2 + 1000 * world.random.below(20) as u32 + world.random.below(4) as u32,
            _ => u32::MAX - world.random.below(1 << 31) as u32,
        };
        if !world.hosts.contains_key(&label(number)) {
            return label(number);
        }
    }
}

#[test]
fn all_labels_are_reached_whatever_happened() {
    live(0..6);
}

#[test]
#[ignore = "long: make test-full"]
fn all_labels_are_reached_in_many_histories() {
    live(6..80);
}

fn live(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (mut world, count) = random(seed);
        let any = |world: &mut World| world.random.below(count as u64) as usize;
        for _ in 0..20 {
            let (host, router) = (free(&mut world), any(&mut world));
            world.hosts.insert(host, router);
        }
        world.run(30);
        assert_eq!(world.faults(), Vec::<String>::new(), "seed {seed}: hosts have joined");
        world.loss_percent = world.random.below(30);
        for _ in 0..25 {
            match world.random.below(9) {
                0 => {
                    let router = any(&mut world);
                    world.kill(router);
                }
                1 => {
                    let router = any(&mut world);
                    world.end(router);
                }
                2 | 3 => {
                    let router = any(&mut world);
                    if !world.is_alive(router) {
                        world.start(router);
                    }
                }
                4 => {
                    let link = world.random.below(world.links.len() as u64) as usize;
                    world.links[link].1 = !world.links[link].1;
                }
                5 => {
                    let host = world.hosts.keys().next().copied();
                    host.into_iter().for_each(|host| world.leave(host));
                }
                6 => drop(world.hosts.pop_last()),
                _ => {
                    let (host, router) = (free(&mut world), any(&mut world));
                    world.hosts.insert(host, router);
                }
            }
            let intervals = world.random.below(6);
            world.run(intervals);
        }
        world.loss_percent = 0;
        world.run(60);
        assert_eq!(
            world.faults(),
            Vec::<String>::new(),
            "seed {seed}: some links are cut, some routers dead"
        );
        // All parts meet.
        world.links.iter_mut().for_each(|link| link.1 = true);
        (0..count)
            .filter(|router| !world.is_alive(*router))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|one| world.start(one));
        world.run(60);
        assert_eq!(world.faults(), Vec::<String>::new(), "seed {seed}: all is whole again");
        let zero = world.router(0).zero();
        assert!((0..count).all(|router| world.router(router).zero() == zero), "seed {seed}");
    }
}

#[test]
fn a_ring_heals_soon() {
    // Four routers in a square, with hosts on opposite sides whose labels alternate.
    let labels: Vec<_> = [10, 20, 30, 40].map(label).to_vec();
    let mut world = World::new(1, &labels, &[vec![0, 1], vec![1, 2], vec![2, 3], vec![3, 0]]);
    world.hosts.extend((0..8).map(|n| (label(100 + n), (n % 4) as usize)));
    world.run(8);
    assert_eq!(world.faults(), Vec::<String>::new());
    // A silent cut costs the time until hellos are missed, and some.
    world.links[1].1 = false;
    world.run(8);
    assert_eq!(world.faults(), Vec::<String>::new(), "the other way around");
    world.links[3].1 = false;
    world.run(16);
    assert_eq!(world.faults(), Vec::<String>::new(), "two rings");
    assert_ne!(world.router(0).zero(), world.router(2).zero());
    world.links[1].1 = true;
    world.run(12);
    assert_eq!(world.faults(), Vec::<String>::new(), "one ring");
    // A host that says good-bye is forgotten at once, and its neighbours on the ring close the gap.
    world.leave(label(103));
    world.run(2);
    assert_eq!(world.faults(), Vec::<String>::new());
    assert!(world.walk(0, label(103)).is_err());
}

#[test]
fn many_labels_join_at_once() {
    let labels: Vec<_> = (1..=6).map(|n| label(n << 20)).collect();
    let mut world = World::new(7, &labels, &[vec![0, 1, 2], vec![2, 3], vec![3, 4], vec![4, 5], vec![5, 0]]);
    for _ in 0..120 {
        let (number, router) = (world.random.below(7 << 20) as u32, world.random.below(6) as usize);
        if !labels.contains(&label(number)) {
            world.hosts.insert(label(number), router);
        }
    }
    world.run(40);
    assert_eq!(world.faults(), Vec::<String>::new());
    // A router needs pointers to what is behind its own labels, and those that others reach through it; not all.
    let counts: Vec<usize> = (0..6).map(|router| world.router(router).entries().len()).collect();
    println!("entries of six routers with {} labels: {counts:?}", world.hosts.len());
}

#[test]
fn two_hosts_with_one_label_do_not_share_it() {
    let labels: Vec<_> = [10, 20, 30].map(label).to_vec();
    let mut world = World::new(3, &labels, &[vec![0, 1], vec![1, 2]]);
    world.hosts.insert(label(100), 0);
    world.run(10);
    assert_eq!(world.faults(), Vec::<String>::new());
    // The same label at another router: it waits.
    world.hosts.insert(label(100), 2);
    let now = world.now;
    assert_eq!(world.walk(1, label(100)), Ok(0));
    world.run(3);
    assert!(world.now > now);
    assert!(!world.router(2).locals()[&label(100)].joined);
    // The first one is silent now; when it is forgotten, the second one has the label.
    world.run(40);
    assert_eq!(world.faults(), Vec::<String>::new());
    assert_eq!(world.walk(1, label(100)), Ok(2));
}

#[test]
fn what_a_router_does_not_understand_is_counted() {
    let now = Duration::from_secs(5);
    let config = Config { router: label(1), label_bytes: 4, interval_ms: 1000, sequence: 0 };
    let mut router = Router::new(now, config);
    router.set_ports(now, vec![Port { id: 0, name: "up".into(), mac: Mac([2, 0, 0, 0, 0, 1]) }]);
    assert_eq!(router.entries().into_iter().collect::<Vec<_>>(), [(label(1), Place::Own)]);
    let head = |body: &[u8], flags: u8, source: u8| {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5, 0x10 | flags, 4, 9, 0, 0x88, 0xb6, 0, body.len() as u8]);
        frame.extend([0, 0, 0, 0, 0, 0, 0, source]);
        frame.extend(body);
        frame
    };
    let hello = |interval: u16| {
        let [high, low] = interval.to_be_bytes();
        [&[1, 1, high, low][..], &[0; 8], &[0, 0, 0, 1]].concat()
    };
    for (frame, reason) in [
        (vec![0; 10], Drop::Malformed),
        (head(&[], 1, 2), Drop::Length),
        (head(&[99, 0, 0, 0], 1, 2), Drop::Kind),
        (head(&hello(1000), 0, 2), Drop::Kind),
        (head(&hello(1000), 1, 1), Drop::Own),
        (head(&hello(999), 1, 2), Drop::Interval),
        (head(&[4, 1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 3], 1, 2), Drop::NotNeighbour),
        (head(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7], 0, 2), Drop::Unreachable),
        (head(&[2, 0, 0, 35], 1, 1), Drop::Taken),
        ([&[2, 0, 0, 0, 0, 7][..], &head(&hello(1000), 1, 2)[6..]].concat(), Drop::OtherMac),
    ] {
        let before = router.counters().drops.get(reason);
        router.receive(now, 0, &frame);
        assert_eq!(router.counters().drops.get(reason), before + 1, "{reason:?}: {:?}", router.counters());
    }
    router.receive(now, 0, &head(&hello(1000), 1, 2));
    assert_eq!((router.counters().accepted, router.neighbours().len()), (1, 1));
    assert!(Drop::ALL.iter().all(|reason| !reason.meaning().is_empty() && !reason.name().is_empty()));
}

#[test]
fn no_bytes_disturb_a_router() {
    let mut random = Random(11);
    let hello = [&[1, 1, 3, 0xe8][..], &[0; 8], &[9, 0, 0, 0]].concat();
    let mut accepted = 0;
    for _ in 0..300 {
        let mut bytes = [&[0xc0, 2, 0, hello.len() as u8][..], &hello].concat();
        for _ in 0..random.below(30) {
            let mut body: Vec<u8> =
                (0..random.below(40)).map(|_| random.below(12) as u8 * (random.below(2) as u8)).collect();
            if let [kind, count, ..] = &mut body[..] {
                (*kind, *count) = (1 + random.below(10) as u8, random.below(3) as u8);
            }
            bytes.extend([
                [0xc0, 0xc2, 0xc4, 0x80, 0x41, 0x05][random.below(6) as usize],
                random.below(4) as u8,
                0,
                body.len() as u8,
            ]);
            bytes.extend(body);
        }
        accepted += exercise(&bytes);
    }
    assert!(accepted > 300, "{accepted}");
}
