//! A router that takes any bytes: for the fuzzer, and for the readers' tests.

use std::time::Duration;

use hue_wire::Mac;
use hue_wire::rofl::{ETHERTYPE, FLAG_CLOSEST, FLAG_LINK, Label, Packet, ROUTE_MAX};

use super::body::PAYLOAD_TYPE;
use super::router::Router;
use super::types::{Config, Port};

/// Bytes of labels.
const SIZE: usize = 4;

/// Gives a router messages, of which each begins with a byte for what happens, one for its sender, and two for its length.
/// Returns how many it accepted.
///
/// # Panics
/// If counters do not add up.
pub fn exercise(mut bytes: &[u8]) -> u64 {
    let mut now = Duration::from_secs(1);
    let label = |n: u8| Label::from(n) << 120;
    let config = Config { router: label(9), label_bytes: SIZE, interval_ms: 1000, sequence: 0 };
    let mut router = Router::new(now, config);
    let port = |id: u16| Port { id, name: String::new(), mac: Mac([2, 0, 0, 0, 0, id as u8]) };
    router.set_ports(now, vec![port(0), port(1)]);
    while let Some(([what, sender, high, low], rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (body, more) = rest.split_at(length);
        bytes = more;
        let id = u16::from(what & 1);
        let mut frame = [&[0xff; 6][..], &[2, 0, 0, 1, 0, *sender], &ETHERTYPE.0.to_be_bytes()].concat();
        match what >> 6 {
            0 => now += Duration::from_millis(u64::from(*what) * 100),
            1 => router.set_ports(now, [0, 1].map(port).into_iter().take(1 + usize::from(id)).collect()),
            // As the bytes are.
            2 => {
                frame.extend(body);
                router.receive(now, id, &frame);
            }
            // With a sound header before them.
            _ => {
                let flags = [FLAG_LINK, 0, FLAG_CLOSEST, FLAG_LINK][usize::from(what >> 1 & 3)];
                let packet = Packet {
                    flags,
                    label_bytes: SIZE,
                    budget: 9,
                    destination: label(9),
                    source: label(*sender),
                    route: [0; ROUTE_MAX],
                    route_len: 0,
                    payload_type: PAYLOAD_TYPE,
                    payload: body,
                };
                let mut out = vec![0; packet.bytes()];
                if packet.write(&mut out).is_some() {
                    frame.extend(out);
                    router.receive(now, id, &frame);
                }
            }
        }
        router.tick(now);
        // Whoever waits until then must find something to do later.
        assert!(router.due() > now, "a router that is always due");
        router.take();
    }
    let counters = router.counters();
    assert_eq!(counters.received, counters.accepted + counters.drops.sum());
    counters.accepted
}
