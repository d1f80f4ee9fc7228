//! The requests of a history, given to another node, make the same history again.

use hue_sim::{Sets, hand, play_recorded};

/// Seeds of the histories.
const SEEDS: [u64; 3] = [3, 5, 9];
/// Fewest requests in a history with which the test is worth anything.
const REQUESTS_MIN: usize = 5;

#[test]
fn requests_can_be_replayed() {
    let images = Sets::default();
    for seed in SEEDS {
        let (_, journal) = play_recorded(&images, seed).unwrap_or_else(|failure| panic!("{failure}"));
        let requests = journal.requests();
        assert!(requests.len() >= REQUESTS_MIN, "seed {seed}: {requests:?}");
        assert!(requests.iter().any(|request| request.starts_with("Command(Reconcile")), "{requests:?}");
        let mut node = hand::start(images.of(seed).0).unwrap();
        node.replay(&journal).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[test]
fn a_replay_without_a_request_is_noticed() {
    let images = Sets::default();
    let (_, mut journal) = play_recorded(&images, SEEDS[0]).unwrap_or_else(|failure| panic!("{failure}"));
    // Without the first documents, no frame leaves.
    journal.remove_request(0);
    let what = hand::start(images.of(SEEDS[0]).0).unwrap().replay(&journal).unwrap_err();
    assert!(what.contains("no frame left by"), "{what}");
}
