//! A network of any kind does the same alone and among networks of all kinds, and its counters add up: in the engine, in the
//! running system, and on the card. The worlds are the golden cases of all kinds; a new kind is tested without a change of
//! these files.

mod engine;
mod on_card;
mod running;

use hue_differential::{Case, Together};
use hue_planes::{Adjacency, Kind};
use hue_substrate::{Entries, VirtualPort};
use hue_tables::{Limits, NextHop};

/// Ports without networks, where there is room for them.
const FREE_PORTS: u8 = 2;

/// The golden cases of every kind.
fn all_cases() -> Vec<Case> {
    Kind::ALL.into_iter().flat_map(hue_differential::cases).collect()
}

/// An error about a case, which begins with its kind.
fn of_case(case: &Case, why: &str) -> String {
    format!("{}: {}: {why}", case.kind.name(), case.name)
}

/// The first difference between two lists.
fn difference<T: PartialEq + std::fmt::Debug>(alone: &[T], among: &[T]) -> Option<String> {
    let at = (0..alone.len().max(among.len())).find(|at| alone.get(*at) != among.get(*at))?;
    Some(format!("alone {:02x?}\namong others {:02x?}", alone.get(at), among.get(at)))
}

fn limits() -> Limits {
    Limits { image_bytes_max: 64 << 20, ..Limits::default() }
}

/// Gives a network of another case a port of this one, without any claim on its frames: group frames reach it.
fn let_in(world: &mut Together, case: usize, other: usize) {
    let (port, guest) = (world.ports_of(case).next().unwrap(), world.vids(other)[0]);
    let guest = world.programs.iter_mut().find(|program| program.vid == guest).unwrap();
    let (mac, mtu_bytes) = (hue_wire::Mac([2, 0xdd, 0, 0, 0, 1]), guest.ports[0].mtu_bytes);
    guest.ports.push(VirtualPort { name: "guest".to_owned(), port, mac, mtu_bytes, tunnel: None });
    if matches!(guest.entries, Entries::Exact(_)) {
        // The next hops of such a network are its ports.
        guest.next_hops.push(Adjacency::out(port, mtu_bytes));
    }
    if let Entries::Nearest(labels) = &mut guest.entries {
        // The rows of its ports come before those of its labels.
        let place = guest.ports.len() - 1;
        guest.next_hops.insert(place, guest.ports[place].arrival());
        for (_, hop) in labels.iter_mut().filter(|(_, hop)| usize::from(hop.get()) >= place) {
            *hop = NextHop::new(hop.get() + 1).unwrap();
        }
    }
}
