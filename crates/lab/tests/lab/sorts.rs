//! Frames of each sort are what they are called.

use std::str::FromStr;

use hue_demux::{Match, PortId, Row};
use hue_lab::{Generator, Sort, Source, Traffic};
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Settings};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::Mac;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// Forwards 10.1.0.0/16 by port 1, and has the address 10.0.0.1.
fn program() -> Program {
    let vid = Vid::new(7).unwrap();
    let port = PortId::new(0);
    let vport =
        |id, mac| VirtualPort { name: format!("v{id}"), port: id, mac, mtu_bytes: 1500, tunnel: None };
    let to = PortId::new(1);
    let route = |prefix: &str, hop| (prefix.parse::<Prefix4>().unwrap(), NextHop::new(hop).unwrap());
    Program {
        vid,
        name: "red".to_owned(),
        settings: Settings::of(Kind::Ipv4),
        ports: vec![vport(port, ROUTER), vport(to, Mac([2, 0, 0, 0, 0, 2]))],
        rows: vec![Row { vid, vport: 0, select: Match::Mac { port, mac: ROUTER } }],
        next_hops: vec![
            Adjacency::local(),
            Adjacency::forward(to, Mac([2, 0, 0, 0, 0, 2]), Mac([2, 9, 0, 0, 0, 1]), 1500),
        ],
        groups: Vec::new(),
        entries: Entries::Lpm32(vec![route("10.0.0.1/32", 0), route("10.1.0.0/16", 1)]),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

fn frame(sort: &str) -> Vec<u8> {
    let traffic = Traffic::from_str(&format!("rate:1G,size:100,sort:{sort}")).unwrap();
    let Source::Synthetic(made) = traffic.source else { panic!("it is made") };
    let program = program();
    let names = ["p0".to_owned(), "p1".to_owned()];
    let mut generator = Generator::new(&made, PortId::new(0), &[&program], &names).unwrap();
    let mut frame = Vec::new();
    (0..3).for_each(|_| generator.next(&mut frame));
    frame
}

#[test]
fn frames_are_of_their_sort() {
    let length = |sort| if sort == "runt" { 13 } else { 96 };
    for (_, name) in Sort::ALL {
        assert_eq!(frame(name).len(), length(name), "{name}");
    }
    let (forward, ttl1, own) = (frame("forward"), frame("ttl1"), frame("own"));
    for unicast in [&forward, &ttl1, &own] {
        assert_eq!(unicast[..6], ROUTER.0);
        assert_eq!(unicast[12..14], [8, 0]);
    }
    assert_eq!((forward[22], &forward[30..32]), (64, &[10, 1][..]));
    assert_eq!((ttl1[22], &ttl1[30..32]), (1, &[10, 1][..]));
    assert_eq!(own[30..34], [10, 0, 0, 1]);
    let broadcast = frame("broadcast");
    assert_eq!((&broadcast[..6], &broadcast[12..14]), (&[0xff; 6][..], &[8, 6][..]));
    let multicast = frame("multicast");
    assert_eq!((multicast[0] & 1, multicast[30] >> 4), (1, 14));
    assert_eq!(frame("nobody")[0] & 1, 0);
    assert_ne!(frame("nobody")[..6], ROUTER.0);
}
