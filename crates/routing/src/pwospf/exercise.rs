//! A router that takes any bytes: for the fuzzer, and for the readers' tests.

use std::net::Ipv4Addr;
use std::time::Duration;

use hue_tables::Prefix4;

use super::interface::Interface;
use super::packet::{Packet, RouterId};
use super::router::{Config, Router};

/// Gives a router packets, of which each begins with a byte for what happens, and two for its length. Returns how many it
/// accepted.
///
/// # Panics
/// If counters do not add up.
pub fn exercise(mut bytes: &[u8]) -> u64 {
    let mut now = Duration::from_secs(1);
    let Some(id) = RouterId::new(Ipv4Addr::new(9, 9, 9, 9)) else { return 0 };
    let mut router = Router::new(
        now,
        Config {
            router: id,
            area: Ipv4Addr::UNSPECIFIED,
            hello_interval_s: 5,
            lsu_interval_s: 30,
            advertised: Vec::new(),
            any_source: bytes.len() % 2 == 1,
            sequence: 0,
        },
    );
    let interface = |link: u32| Interface {
        link,
        name: String::new(),
        address: Ipv4Addr::new(10, 0, link as u8, 1),
        prefix: Prefix4::containing(0x0a00_0000 + (link << 8), 24),
        speaks: true,
    };
    router.set_interfaces(now, vec![interface(1), interface(2)]);
    while let Some(([what, high, low], rest)) = bytes.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (packet, more) = rest.split_at(length);
        bytes = more;
        match what >> 6 {
            0 => now += Duration::from_millis(u64::from(*what) * 400),
            1 => {
                let interfaces = [1, 2, 3].into_iter().filter(|link| what >> (link - 1) & 1 == 1);
                router.set_interfaces(now, interfaces.map(interface).collect());
            }
            // As the bytes are: checksum and all.
            2 => router.receive(now, u32::from(what & 3), packet),
            // With a header before them, and a checksum that is right if the rest is.
            _ => {
                let source = Ipv4Addr::new(10, 0, what & 3, what >> 2 & 7);
                let mut whole = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, 89, 0, 0];
                whole.extend(source.octets());
                whole.extend([224, 0, 0, 5]);
                whole.extend(Packet::sealed(packet));
                router.receive(now, u32::from(what & 3), &whole);
            }
        }
        router.tick(now);
        // Whoever waits until then must find something to do later.
        assert!(router.due() > now, "a router that is always due");
        router.take();
    }
    let counters = router.counters();
    assert_eq!(counters.received, counters.hellos + counters.lsus + counters.drops.sum());
    counters.hellos + counters.lsus
}
