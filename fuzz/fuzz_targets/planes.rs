//! Fuzzes the planes of all kinds: any frame has an outcome, both halves of a plane agree about it, only forwarded frames
//! are edited, and the explanation says the same.
//!
//! Run: `cargo +nightly fuzz run planes -- -max_len=512 -max_total_time=60` in this folder's parent. The first bytes of an
//! input choose the next hop; the rest is the frame. `crates/planes/tests` has the same checks against an oracle.

#![no_main]

use hue_demux::PortId;
use hue_planes::{Adjacency, Kind, Plane, Settings, with_plane};
use hue_wire::Mac;
use libfuzzer_sys::fuzz_target;

fn check<P: Plane>(frame: &[u8], hop: &Adjacency) {
    let settings = P::settings(&Settings::of(P::KIND));
    let mut bytes = frame.to_vec();
    let outcome = match P::front(frame, settings) {
        Ok(carried) => {
            let outcome = P::back(&mut bytes, carried, hop);
            assert_eq!(outcome, P::decide(carried, hop));
            outcome
        }
        Err(outcome) => outcome,
    };
    assert_eq!(outcome.kind(), P::KIND);
    assert!(outcome.is_forward() || bytes == frame, "{outcome:?}: edited");
    let explained = P::explain(frame, settings, |_| (*hop, String::new()));
    assert_eq!((explained.outcome, &explained.bytes), (outcome, &bytes));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, high, low], frame)) = bytes.split_first_chunk() else { return };
    let port = PortId::new(1);
    let mtu_bytes = u16::from_be_bytes([high, low]);
    let hop = match kind % 4 {
        0 => Adjacency::NONE,
        1 => Adjacency::local(),
        2 => Adjacency::glean(port),
        _ => Adjacency::forward(port, Mac([2; 6]), Mac([4; 6]), mtu_bytes),
    };
    for kind in Kind::ALL {
        with_plane!(kind, P => check::<P>(frame, &hop));
    }
});
