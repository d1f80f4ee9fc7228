//! Which path each flow takes, and when it takes another one: decides, with time as an argument.
//!
//! Flow: packets of the host → lane of their flow → splicing bits; keepalives of the peer → what arrives → other bits for lanes
//! on which nothing arrives. A *lane* is one choice of bits towards a peer. Each lane starts with another slice at all
//! routers. A host sends a keepalive on each lane in each interval, and says in it on which lanes it has heard the peer
//! lately. A lane is broken if the peer says that it does not hear it, or if nothing at all is heard of the peer; it then
//! gets the next bits: each slice at all routers in turn, then bits at random, because a path that changes slices on its way
//! may avoid what all of them have in common. New bits get as long to work as it takes to notice that old ones do not.

use std::time::Duration;

use hue_planes::splice::Settings;

use crate::cli::LANES_MAX;

/// Intervals without a keepalive after which a lane is silent.
const SILENT_AFTER: u32 = 3;
/// Bytes of a keepalive.
pub const KEEPALIVE_BYTES: usize = 8;
/// How a keepalive begins: "hs", and its version.
const MAGIC: [u8; 3] = [b'h', b's', 1];

/// What a host tells its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keepalive {
    /// The lane on which it was sent.
    pub lane: u8,
    /// How many lanes the sender has.
    pub lanes: u8,
    /// On which lanes of the peer the sender has heard it lately, a bit each.
    pub heard: u16,
}

impl Keepalive {
    /// As bytes.
    pub fn bytes(self) -> [u8; KEEPALIVE_BYTES] {
        let [high, low] = self.heard.to_be_bytes();
        [MAGIC[0], MAGIC[1], MAGIC[2], self.lane, self.lanes, 0, high, low]
    }

    /// From bytes; `None` if they are none of a sound one.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let [a, b, version, lane, lanes, _, high, low] = *bytes.first_chunk()?;
        let is_sound = [a, b, version] == MAGIC && lane < lanes && lanes <= LANES_MAX;
        is_sound.then(|| Self { lane, lanes, heard: u16::from_be_bytes([high, low]) })
    }
}

/// A choice of bits.
#[derive(Clone, Copy, Debug)]
struct Lane {
    bits: u64,
    /// How many choices it has made.
    choices: u32,
    /// When it made the last one.
    since: Duration,
}

/// A change of a lane's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The lane.
    pub lane: u8,
    /// Its bits before.
    pub before: u64,
    /// Its bits now.
    pub now: u64,
}

/// The lanes to a peer.
pub struct Lanes {
    settings: Settings,
    interval: Duration,
    list: Vec<Lane>,
    /// When each lane of the peer was last heard.
    heard: [Option<Duration>; LANES_MAX as usize],
    /// The lanes on which the peer has heard this host, and when it said so.
    told: Option<(u16, Duration)>,
    start: Duration,
    random: u64,
}

impl Lanes {
    /// `count` lanes (at least 1) from `now` on; `seed` chooses bits when all slices have been tried.
    pub fn new(settings: Settings, count: u8, interval: Duration, now: Duration, seed: u64) -> Self {
        let lane = |number: u8| Lane {
            bits: everywhere(settings, number % settings.slices),
            choices: 0,
            since: now,
        };
        Self {
            settings,
            interval,
            list: (0..count.clamp(1, LANES_MAX)).map(lane).collect(),
            heard: [None; LANES_MAX as usize],
            told: None,
            start: now,
            random: seed | 1,
        }
    }

    /// The bits of a flow's packets, by a hash of the flow.
    pub fn bits_of(&self, flow: u32) -> u64 {
        let lane = (u64::from(flow) * self.list.len() as u64) >> 32;
        self.list.get(lane as usize).map_or(0, |lane| lane.bits)
    }

    /// The keepalives of an interval, with the bits of their lanes.
    pub fn keepalives(&self, now: Duration) -> impl Iterator<Item = (u64, Keepalive)> {
        let is_heard = |at: &Option<Duration>| at.is_some_and(|at| now.saturating_sub(at) < self.silence());
        let heard =
            self.heard.iter().zip(0..).fold(0, |word, (at, lane)| word | u16::from(is_heard(at)) << lane);
        let lanes = self.list.len() as u8;
        (0..lanes)
            .zip(&self.list)
            .map(move |(number, lane)| (lane.bits, Keepalive { lane: number, lanes, heard }))
    }

    /// Takes a keepalive of the peer.
    pub fn hear(&mut self, keepalive: Keepalive, now: Duration) {
        if let Some(at) = self.heard.get_mut(usize::from(keepalive.lane)) {
            *at = Some(now);
        }
        self.told = Some((keepalive.heard, now));
    }

    /// Whether the peer is heard now.
    pub fn is_heard(&self, now: Duration) -> bool {
        self.told.is_some_and(|(_, at)| now.saturating_sub(at) < self.silence())
    }

    /// Gives lanes that do not work other bits. Nothing is changed before the peer was heard once.
    pub fn check(&mut self, now: Duration) -> Vec<Changed> {
        let Some((heard, at)) = self.told else { return Vec::new() };
        let is_peer_silent = now.saturating_sub(at) >= self.silence();
        let patience = self.silence() + self.interval;
        let broken = (0u8..).zip(&self.list).filter(|(number, lane)| {
            let is_missed = heard >> number & 1 == 0 || is_peer_silent;
            is_missed && now.saturating_sub(lane.since.max(self.start)) >= patience
        });
        let broken: Vec<u8> = broken.map(|(number, _)| number).collect();
        broken.into_iter().filter_map(|number| self.change(number, now)).collect()
    }

    fn change(&mut self, number: u8, now: Duration) -> Option<Changed> {
        let choices = self.list.get(usize::from(number))?.choices + 1;
        let slices = u32::from(self.settings.slices);
        let next = match choices {
            _ if choices < slices => {
                let slice = (u32::from(number) + choices) % slices;
                everywhere(self.settings, slice as u8)
            }
            _ => self.anything(),
        };
        let lane = self.list.get_mut(usize::from(number))?;
        let before = std::mem::replace(&mut lane.bits, next);
        (lane.choices, lane.since) = (choices, now);
        Some(Changed { lane: number, before, now: next })
    }

    /// A random slice for each hop.
    fn anything(&mut self) -> u64 {
        let bits = self.settings.hop_bits();
        let hops = self.settings.bits.width().checked_div(bits).unwrap_or(0);
        (0..hops).fold(0, |field, hop| {
            // xorshift64 (Marsaglia 2003).
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let slice = (self.random >> 32) % u64::from(self.settings.slices);
            field | slice << (hop * bits)
        })
    }

    /// How long a lane may say nothing.
    fn silence(&self) -> Duration {
        self.interval * SILENT_AFTER
    }
}

/// Bits that name the same slice at all hops.
pub fn everywhere(settings: Settings, slice: u8) -> u64 {
    let bits = settings.hop_bits();
    let hops = settings.bits.width().checked_div(bits).unwrap_or(0);
    (0..hops).fold(0, |field, hop| field | u64::from(slice) << (hop * bits))
}

#[cfg(test)]
mod tests {
    use hue_planes::splice::Bits;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    fn settings(slices: u8) -> Settings {
        Settings { slices, bits: Bits::IpId, forward_martians: false }
    }

    fn at(intervals: u32) -> Duration {
        INTERVAL * intervals
    }

    /// Two hosts and what a network between them does: `passes` says whether bits lead through.
    fn play(hosts: &mut [Lanes; 2], from: u32, to: u32, passes: impl Fn(u64) -> bool) -> [u32; 2] {
        let mut changes = [0, 0];
        for step in from..to {
            for (one, other) in [(0, 1), (1, 0)] {
                changes[one] += hosts[one].check(at(step)).len() as u32;
                let sent: Vec<_> = hosts[one].keepalives(at(step)).collect();
                for (_, keepalive) in sent.into_iter().filter(|(bits, _)| passes(*bits)) {
                    hosts[other].hear(Keepalive::of(&keepalive.bytes()).unwrap(), at(step));
                }
            }
        }
        changes
    }

    fn hosts(slices: u8, lanes: u8) -> [Lanes; 2] {
        [3, 5].map(|seed| Lanes::new(settings(slices), lanes, INTERVAL, Duration::ZERO, seed))
    }

    #[test]
    fn a_lane_that_breaks_gets_other_bits_and_those_that_work_stay() {
        let mut hosts = hosts(4, 4);
        assert_eq!(play(&mut hosts, 1, 40, |_| true), [0, 0], "nothing is broken");
        let start: Vec<u64> = hosts[0].list.iter().map(|lane| lane.bits).collect();
        assert_eq!(start, [0, 0x5555, 0xaaaa, 0xffff]);
        // Slices 0 and 2 share a link, which fails in both directions.
        let passes = |bits: u64| bits & 1 == 1;
        let changes = play(&mut hosts, 40, 60, passes);
        assert_eq!(changes, [2, 2]);
        let now: Vec<u64> = hosts[0].list.iter().map(|lane| lane.bits).collect();
        assert_eq!(now, [0x5555, 0x5555, 0xffff, 0xffff]);
        assert_eq!(play(&mut hosts, 60, 100, passes), [0, 0], "and they stay");
        for flow in [0, u32::MAX / 2, u32::MAX] {
            assert!(passes(hosts[0].bits_of(flow)));
        }
    }

    #[test]
    fn a_host_that_is_not_heard_learns_it_from_its_peer() {
        let mut hosts = hosts(2, 1);
        play(&mut hosts, 1, 10, |_| true);
        // Only what the first host sends by slice 0 is lost: it hears its peer all the time.
        let mut changed = 0;
        for step in 10..30 {
            changed += hosts[0].check(at(step)).len();
            for (one, other) in [(0, 1), (1, 0)] {
                let sent: Vec<_> = hosts[one].keepalives(at(step)).collect();
                for (bits, keepalive) in sent {
                    if one == 1 || bits != 0 {
                        hosts[other].hear(keepalive, at(step));
                    }
                }
            }
        }
        assert_eq!((changed, hosts[0].list[0].bits), (1, 0xffff));
    }

    #[test]
    fn all_slices_are_tried_and_then_paths_that_change_slices() {
        let mut hosts = hosts(3, 1);
        play(&mut hosts, 1, 10, |_| true);
        // Only a path that uses slice 1 first and 2 then is left.
        let passes = |bits: u64| bits & 0xf == 0b1001;
        let changes = play(&mut hosts, 10, 2_000, passes);
        assert!(changes[0] > 2 && passes(hosts[0].list[0].bits), "{changes:?}");
        let field = hosts[0].list[0].bits;
        assert!((0..8).all(|hop| (field >> (2 * hop) & 3) < 3), "{field:x}: a slice that does not exist");
    }

    #[test]
    fn nothing_changes_before_the_peer_was_heard() {
        let mut hosts = hosts(4, 2);
        assert_eq!(play(&mut hosts, 1, 100, |_| false), [0, 0]);
        assert!(!hosts[0].is_heard(at(100)));
    }

    #[test]
    fn flows_are_spread_over_lanes() {
        let lanes = &hosts(4, 4)[0];
        let quarter = |n: u32| lanes.bits_of(n << 30 | 12_345);
        assert_eq!([0, 1, 2, 3].map(quarter), [0, 0x5555, 0xaaaa, 0xffff]);
    }

    #[test]
    fn what_is_no_keepalive_is_not_read() {
        let good = Keepalive { lane: 3, lanes: 4, heard: 0x0102 };
        assert_eq!(Keepalive::of(&good.bytes()), Some(good));
        let bytes = good.bytes();
        assert_eq!(Keepalive::of(&bytes[..7]), None);
        for (at, value) in [(0, b'H'), (2, 2), (3, 4), (4, 17)] {
            let mut bad = bytes;
            bad[at] = value;
            assert_eq!(Keepalive::of(&bad), None, "{at}");
        }
    }
}
