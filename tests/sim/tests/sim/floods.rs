//! Broadcasts that the card has no room to copy: they are counted at their port and listed in the report of a move.

use hue_differential::images;
use hue_sim::IMAGES;
use hue_sim::frame::{Tag, neighbour_mac, tagged};
use hue_sim::hand::{self, pass, settle};
use hue_sim::world::{Net, PORTS, Place, World};
use hueplaned::api::{MigrateRequest, Migration, NetworkStats, SubstrateName};
use hueplaned::node::by_hand::{Answer, ByHand};

/// Passes without work after which nothing moves, and counters of ports are published.
const IDLE_PASSES: usize = 200;
/// Networks that get each broadcast.
const NETS: usize = 3;

/// A node with networks on its card, all attached to p0 and p1.
fn start(image: &'static str) -> ByHand {
    let mut node = hand::start(&images(&IMAGES)).unwrap();
    let mut world = World { image: Some(image), ..World::default() };
    world.nets[..NETS].iter_mut().for_each(|place| *place = Some(Net::plain(Place::Card)));
    node.apply(&world.documents(), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    assert!((1..=NETS).all(|net| node.is_on_card(&format!("n{net}"))), "{image}: {:?}", node.look());
    node
}

/// Sends broadcasts of a neighbour of n1 to p0, each with a packet that no router forwards, while the wire accepts them. Returns how
/// many.
fn flood(node: &ByHand, from: u32, count: u32) -> u32 {
    for number in from..from + count {
        let tag = Tag { net: 1, age: 0, flow: 0, number };
        let macs = [[0xff; 6], neighbour_mac(1, 0)];
        let mut frame = tagged(macs, [172, 16, 0, 1].into(), 64, tag, 200);
        // Software accepts broadcasts only from hosts on its links.
        frame[26..30].copy_from_slice(&[10, 1, 0, 101]);
        frame[24..26].fill(0);
        let sum = hue_wire::checksum::full(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        if !node.send(PORTS[0], &frame) {
            return number - from;
        }
    }
    count
}

fn of(node: &ByHand, name: &str) -> NetworkStats {
    node.stats().networks.into_iter().find(|network| network.network == name).unwrap()
}

#[test]
fn broadcasts_that_the_card_cannot_copy_are_counted_at_their_port() {
    for image in IMAGES {
        let mut node = start(image);
        const SENT: u64 = 250;
        assert_eq!(flood(&node, 0, SENT as u32), SENT as u32);
        settle(&mut node, IDLE_PASSES);
        let port = node.stats().ports.into_iter().find(|port| port.port == "p0").unwrap();
        assert_eq!(port.received, SENT, "{image}");
        assert!((1..SENT).contains(&port.losses["flood_full"]), "{image}: {port:?}");
        // Every network got each broadcast that was not dropped.
        for net in 1..=NETS {
            let stats = of(&node, &format!("n{net}"));
            let got = SENT - port.losses["flood_full"];
            assert_eq!((stats.drops["l2_group"], stats.received), (got, got), "{image}: {stats:?}");
        }
        // Another card replaces it, and the count continues.
        let other = IMAGES[usize::from(image == IMAGES[0])];
        node.load_image(other).unwrap();
        settle(&mut node, IDLE_PASSES);
        assert!(matches!(node.answer(), Some(Answer::Loaded(_, Ok(_)))), "{image}");
        let after = node.stats().ports.into_iter().find(|port| port.port == "p0").unwrap();
        assert_eq!(after.losses["flood_full"], port.losses["flood_full"], "{image}, then {other}");
    }
}

/// The report lists each broadcast that is tracked: dropped by the plane, or lost for lack of room. None is missed because its
/// copy comes after frames that arrived later.
#[test]
fn a_move_tells_which_broadcasts_found_no_room() {
    for image in IMAGES {
        let mut node = start(image);
        let request = MigrateRequest { watch_ms: 3, ..MigrateRequest::new(SubstrateName::Soft) };
        node.migrate("n1", &request).unwrap();
        let moved = moved(&mut node);
        let lost: u64 = moved.lost_by.values().sum();
        assert_eq!(moved.lost_by.keys().collect::<Vec<_>>(), ["flood_full"], "{image}: {moved:?}");
        assert_eq!((moved.lost, moved.undecided, moved.doubled), (lost, 0, 0), "{image}: {moved:?}");
        let seen = [&moved.before, &moved.during, &moved.after].map(|seen| seen.received).iter().sum::<u64>();
        let dropped: u64 = moved.outcomes.values().sum();
        assert_eq!(seen, dropped + lost, "{image}: {moved:?}");
        assert!(moved.outcomes.contains_key("l2_group") && seen > 100, "{image}: {moved:?}");
    }
}

/// Floods until the move has ended.
fn moved(node: &mut ByHand) -> Migration {
    let mut number = 0;
    for round in 0..20_000 {
        pass(node);
        if round % 40 == 0 && number < 1000 {
            number += flood(node, number, 60);
        }
        match node.answer() {
            Some(Answer::Moved(_, result)) => return result.unwrap(),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    panic!("it does not end: {:?}", node.look())
}
