//! Labels of networks of kind `rofl` in the store that a card follows: they are there while one follows it, if they fit.

use hue_planes::{Adjacency, Settings, rofl};
use hue_soft::Soft;
use hue_substrate::{Entries, Program, Substrate, VirtualPort, flat};
use hue_tables::{Delta, TableId, dag36};

use crate::common::{hop, mac, program, soft, vid};

/// A network with so many labels of 32 bits, its own and those of a router behind the first port by turns.
fn network(id: u16, labels: u32, pointers_max: u16) -> Program {
    let plain = program(id);
    let port = plain.ports[0].clone();
    let arrivals = plain.ports.iter().map(VirtualPort::arrival);
    let away = Adjacency::forward(port.port, port.mac, mac(9, 9), 1500);
    let next_hops: Vec<_> = arrivals.chain([away, Adjacency::local()]).collect();
    let row = |label: u32| hop((next_hops.len() - 1) as u16 - (label % 2) as u16);
    Program {
        settings: Settings::Rofl(rofl::Settings::new(32, pointers_max, 60).unwrap()),
        entries: Entries::Nearest(
            (0..labels).map(|one| (u128::from(one.wrapping_mul(0x9e37_79b1)) << 96, row(one))).collect(),
        ),
        next_hops,
        ..plain
    }
}

/// Whether the latest changes of the store say that a network's labels are there, or not; `None` if they say nothing.
fn there(soft: &mut Soft, id: u16) -> Option<bool> {
    let table = TableId::of::<u128>(vid(id));
    let roots = soft.take_deltas().into_iter().filter_map(|delta| match delta {
        Delta::Root(of, top) if of == table => Some(top.is_some()),
        _ => None,
    });
    roots.last()
}

#[test]
fn labels_are_in_the_store_while_a_card_follows_it() {
    let mut soft = soft();
    soft.load(&[network(1, 40, 0), network(2, 40, 3)]).unwrap();
    let empty = soft.account(vid(1)).unwrap().bytes_own;
    soft.enable_weighed_deltas(dag36::words_of);
    assert!(soft.account(vid(1)).unwrap().bytes_own > empty);
    let (table, deltas) = (TableId::of::<u128>(vid(1)), soft.take_deltas());
    let roots: Vec<_> = deltas.iter().filter(|delta| matches!(delta, Delta::Root(..))).collect();
    assert!(matches!(roots[..], [Delta::Root(one, Some(_)), Delta::Root(..)] if *one == table), "{roots:?}");
    assert!(soft.follower_account(vid(1)).unwrap().bytes_own > 32);
    // One that caches pointers cannot be there.
    assert_eq!(soft.account(vid(2)).unwrap().bytes_own, empty);

    // Other labels; more than a card may have; a quota that has no room for them; again some that fit.
    soft.load(&[network(1, 41, 0)]).unwrap();
    assert_eq!(there(&mut soft, 1), Some(true));
    soft.load(&[network(1, flat::BYTES_MAX as u32 / 4 + 1, 0)]).unwrap();
    assert_eq!(there(&mut soft, 1), Some(false));
    soft.load(&[network(1, 30, 0)]).unwrap();
    assert_eq!(there(&mut soft, 1), Some(true));
    soft.set_quota(vid(1), Some(empty + 64)).unwrap();
    soft.load(&[network(1, 4000, 0)]).unwrap();
    assert_eq!((there(&mut soft, 1), soft.account(vid(1)).unwrap().bytes_own), (Some(false), empty));
    soft.set_quota(vid(1), None).unwrap();
    soft.load(&[network(1, 30, 0)]).unwrap();
    assert_eq!(there(&mut soft, 1), Some(true));

    // The card is gone.
    soft.disable_deltas();
    assert_eq!(soft.account(vid(1)).unwrap().bytes_own, empty);
    soft.load(&[network(1, 40, 0)]).unwrap();
    assert_eq!(soft.account(vid(1)).unwrap().bytes_own, empty);
}
