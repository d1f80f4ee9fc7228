//! Readers run concurrently with the updater: every lookup sees one complete table of its own network.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use crate::common::Random;
use hue_tables::{Change, Dag, Limits, NextHop, Prefix, Vid};

/// The updater replaces an entire table again and again; all its next hops are the number of the generation.
/// A reader knows the last generation completed before its lookup and the first begun after it, and must see
/// one of that range.
#[test]
fn readers_see_whole_tables_only() {
    const GENERATIONS: u16 = 400;
    let (busy, quiet) = (Vid::new(1).unwrap(), Vid::new(2).unwrap());
    // A small arena, so that retired words are reused constantly.
    let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, ..Limits::default() }).unwrap();
    let mut random = Random::seeded("readers_see_whole_tables_only");
    let prefixes: Vec<Prefix<u32>> = (0..300)
        .map(|_| Prefix::containing(random.next() as u32 & 0x0f0f_ffff, 9 + random.below(24) as u8))
        .collect();
    let table = |generation: u16| -> Vec<Change<u32>> {
        prefixes.iter().map(|p| (*p, NextHop::new(generation))).collect()
    };
    for vid in [busy, quiet] {
        dag.add_network::<u32>(vid).unwrap();
        dag.apply(vid, &table(0)).unwrap();
    }
    let (done, begun, stop) = (AtomicU16::new(0), AtomicU16::new(0), AtomicBool::new(false));
    let lookups: u64 = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3_u64)
            .map(|seed| {
                let mut reader = dag.reader().unwrap();
                let (prefixes, done, begun, stop) = (&prefixes, &done, &begun, &stop);
                scope.spawn(move || {
                    let mut random = Random(seed + 11);
                    let mut count = 0;
                    let vids: Vec<Vid> = (0..200).map(|i| if i % 4 == 3 { quiet } else { busy }).collect();
                    let mut out = vec![0; vids.len()];
                    while !stop.load(Ordering::Relaxed) {
                        let keys: Vec<u32> =
                            vids.iter().map(|_| prefixes[random.below(prefixes.len())].last()).collect();
                        let oldest = done.load(Ordering::SeqCst);
                        let guard = reader.pin();
                        guard.lookup_batch(&vids, &keys, &mut out);
                        let lone = guard.lookup(busy, keys[0]).unwrap().get();
                        drop(guard);
                        let newest = begun.load(Ordering::SeqCst);
                        for (vid, word) in vids.iter().zip(&out).chain([(&busy, &lone)]) {
                            let expected = if *vid == quiet { 0..=0 } else { oldest..=newest };
                            assert!(expected.contains(word), "network {vid}: {word} not in {expected:?}");
                        }
                        count += vids.len() as u64 + 1;
                    }
                    count
                })
            })
            .collect();
        for generation in 1..=GENERATIONS {
            begun.store(generation, Ordering::SeqCst);
            // Pinned readers only delay reuse: if the arena is full, wait for them.
            while dag.apply(busy, &table(generation)).is_err() {
                std::thread::yield_now();
            }
            done.store(generation, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    println!("{lookups} lookups during {GENERATIONS} generations");
    assert!(lookups > 0);
}
