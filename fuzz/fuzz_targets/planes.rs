//! Fuzzes the planes of all kinds: any frame has an outcome, both halves of a plane agree about it, only forwarded frames
//! are edited, and the explanation says the same.
//!
//! Run: `cargo +nightly fuzz run planes -- -max_len=512 -max_total_time=60` in this folder's parent. The first bytes of an
//! input choose what the tables answer; the rest is the frame. `crates/planes/tests` has the same checks against an oracle.

#![no_main]

use hue_demux::PortId;
use hue_planes::{Adjacency, Kind, Looked, Plane, Source, finish, with_plane};
use hue_wire::Mac;
use libfuzzer_sys::fuzz_target;

fn check<P: Plane>(frame: &[u8], looked: &Looked) {
    P::samples().into_iter().for_each(|settings| check_with::<P>(frame, settings, looked));
}

fn check_with<P: Plane>(frame: &[u8], settings: P::Settings, looked: &Looked) {
    let mut bytes = frame.to_vec();
    let outcome = match P::front(frame, settings) {
        Ok(carried) => {
            let outcome = finish::<P>(&mut bytes, carried, looked.answer());
            assert_eq!(outcome, P::decide(carried, looked.answer()));
            outcome
        }
        Err(outcome) => outcome,
    };
    assert_eq!(outcome.kind(), P::KIND);
    assert!(outcome.is_forward() || bytes == frame, "{outcome:?}: edited");
    let explained = P::explain(frame, settings, |_| looked.clone());
    assert_eq!((explained.outcome, &explained.bytes), (outcome, &bytes));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, high, low], frame)) = bytes.split_first_chunk() else { return };
    let port = PortId::new(1);
    let mtu_bytes = u16::from_be_bytes([high, low]);
    let hop = match kind % 7 {
        0 => Adjacency::NONE,
        1 => Adjacency::local(),
        2 => Adjacency::glean(port),
        3 => Adjacency::out(port, mtu_bytes),
        4 => Adjacency::out_with(port, mtu_bytes, Some(Mac([2; 6])), (kind >= 64).then_some(Mac([4; 6]))),
        5 => Adjacency::drop(),
        _ => Adjacency::forward(port, Mac([2; 6]), Mac([4; 6]), mtu_bytes),
    };
    // The port has the frame's destination as its address, or another one.
    let own = frame.first_chunk().map(|mac| Mac(*mac)).filter(|_| kind % 2 == 0);
    let arrival = Adjacency::out_with(PortId::new(kind / 5 % 2), mtu_bytes, None, own);
    let source = (kind >= 64).then_some(Source { port, fixed: kind >= 128 });
    let labels = [200, 300, u32::from(mtu_bytes)];
    let labels = (kind >= 32).then(|| Adjacency::labels(&labels[..usize::from(kind / 7 % 4)], 0)).flatten();
    let labels = labels.unwrap_or(Adjacency::NONE);
    let looked = Looked { hop, arrival, source, exact: kind % 3 == 0, labels, text: String::new() };
    for kind in Kind::ALL {
        with_plane!(kind, P => check::<P>(frame, &looked));
    }
});
