//! What every kind of plane must do, whatever it forwards. A new kind is tested here without a change of this file.

#![allow(clippy::unwrap_used)] // a test may panic: that is how it fails

use hue_demux::PortId;
use hue_planes::{
    Adjacency, FRAME_BYTES_MAX, FRAME_BYTES_MIN, Kind, LABELS_MAX, Looked, Plane, Reason, Settings, Source,
    Verdict, finish, with_plane,
};
use hue_wire::Mac;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// The MAC address of the port at which frames arrive.
const HERE: Mac = Mac([2, 0, 0, 0, 0, 9]);

/// Any bytes, and bytes that begin like a frame of a well-known protocol.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let starts = [
        (0x0800_u16, vec![0x45]),
        (0x0800, vec![0x46]),
        (0x0806, vec![]),
        (0x86dd, vec![0x60]),
        (0x8100, vec![]),
        (0x0004, vec![]),
        (0x88b5, vec![0x10, 4, 9, 1, 8, 0, 0, 0]),
        (0x88b5, vec![0x12, 16, 1, 0]),
        // Labels: swapped or popped above IPv4, and above another label.
        (0x8847, vec![0, 6, 0x41, 64, 0x45]),
        (0x8847, vec![0, 6, 0x40, 64, 0, 7, 0x01, 9, 0x60]),
    ];
    let begun =
        (prop::collection::vec(any::<u8>(), FRAME_BYTES_MIN + 1..200), prop::sample::select(starts.to_vec()))
            .prop_map(|(mut bytes, (ethertype, start))| {
                bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
                if ethertype == 0x88b5 {
                    bytes[..6].copy_from_slice(&HERE.0);
                }
                bytes[14..].iter_mut().zip(start).for_each(|(byte, value)| *byte = value);
                bytes
            });
    // Up to the longest frame: the rest of a long one is the same byte.
    let long = (begun.clone(), any::<u8>(), 200..=FRAME_BYTES_MAX).prop_map(|(mut bytes, rest, len)| {
        bytes.resize(len, rest);
        bytes
    });
    prop_oneof![4 => prop::collection::vec(any::<u8>(), 0..200), 4 => begun, 1 => long]
}

fn hop() -> impl Strategy<Value = Adjacency> {
    let port = PortId::new(3);
    prop_oneof![
        Just(Adjacency::NONE),
        Just(Adjacency::local()),
        Just(Adjacency::glean(port)),
        Just(Adjacency::drop()),
        (any::<[u8; 6]>(), any::<Option<[u8; 6]>>(), any::<u16>()).prop_map(move |(one, other, mtu)| {
            Adjacency::out_with(port, mtu, Some(Mac(one)), other.map(Mac))
        }),
        (0u8..4, any::<u16>()).prop_map(|(port, mtu)| Adjacency::out(PortId::new(port), mtu)),
        (any::<[u8; 6]>(), any::<[u8; 6]>(), any::<u16>()).prop_map(move |(source, destination, mtu)| {
            Adjacency::forward(port, Mac(source), Mac(destination), mtu)
        }),
    ]
}

fn looked() -> impl Strategy<Value = Looked> {
    let source = (0u8..4, any::<bool>()).prop_map(|(port, fixed)| Source { port: PortId::new(port), fixed });
    let labels = prop::collection::vec(0..1u32 << 20, 0..=LABELS_MAX);
    let labels = labels.prop_map(|labels| Adjacency::labels(&labels, 1).unwrap());
    let labels = prop_oneof![1 => Just(Adjacency::NONE), 3 => labels];
    (hop(), (0u8..4, any::<u16>()), prop::option::of(source), labels, any::<bool>()).prop_map(
        |(hop, (port, mtu), source, labels, exact)| Looked {
            hop,
            arrival: Adjacency::out_with(PortId::new(port), mtu, None, Some(HERE)),
            source,
            labels,
            exact,
            text: "matched".to_owned(),
        },
    )
}

/// What a plane did with a frame: its outcome, and the bytes afterwards.
fn run<P: Plane>(frame: &[u8], settings: P::Settings, looked: &Looked) -> (Reason, Vec<u8>) {
    let mut bytes = frame.to_vec();
    let outcome = match P::front(frame, settings) {
        Ok(carried) => {
            let decided = P::decide(carried, looked.answer());
            let outcome = finish::<P>(&mut bytes, carried, looked.answer());
            assert_eq!(decided, outcome, "both halves of the decision agree");
            outcome
        }
        Err(outcome) => outcome,
    };
    (outcome, bytes)
}

fn check<P: Plane>(frame: &[u8], looked: &Looked) -> Result<(), TestCaseError> {
    P::samples().into_iter().try_for_each(|settings| check_with::<P>(frame, settings, looked))
}

fn check_with<P: Plane>(frame: &[u8], settings: P::Settings, looked: &Looked) -> Result<(), TestCaseError> {
    let (outcome, bytes) = run::<P>(frame, settings, looked);
    prop_assert_eq!(outcome.kind(), P::KIND);
    prop_assert!(outcome != Reason::gated(P::KIND) && outcome != Reason::rate_limited(P::KIND));
    prop_assert_eq!(outcome.is_forward(), outcome.verdict() == Verdict::Forward);
    if !outcome.is_forward() {
        prop_assert_eq!(&bytes[..], frame, "only a forwarded frame is edited");
    }
    prop_assert_eq!(run::<P>(frame, settings, looked), (outcome, bytes.clone()), "no state");
    let explained = P::explain(frame, settings, |_| looked.clone());
    prop_assert_eq!((explained.outcome, &explained.bytes), (outcome, &bytes));
    let last = explained.stages.last().unwrap();
    prop_assert_eq!((last.name, last.outcome), (outcome.row().stage, Some(outcome.name())));
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 5_000, ..Config::default() })]

    #[test]
    fn any_frame_has_an_outcome_of_the_planes_kind(frame in frame(), looked in looked()) {
        for kind in Kind::ALL {
            with_plane!(kind, P => check::<P>(&frame, &looked))?;
        }
    }
}

#[test]
fn a_kind_selects_its_own_plane_and_settings() {
    for kind in Kind::ALL {
        assert_eq!(with_plane!(kind, P => P::KIND), kind);
        assert_eq!(Settings::of(kind).kind(), kind);
    }
}
