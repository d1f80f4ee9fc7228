//! The packets of a kind in a batch: checks, collection for the lookup, lookup, decision.
//!
//! Flow: [`engine`](crate::engine) sorts frames by kind → [`Collect::check`] → one batched lookup → finish. A kind has one
//! [`Line`] of packets, or one for each family ([`LinesByFamily`]). A table of a network's own, which packets may change, is
//! searched when each packet is finished, in their order. Memory is allocated when the engine is made.

use hue_demux::{PortId, Target};
use hue_planes::{Plane, Reason, TwoFamilies};
use hue_tables::{Guard, Reader, Vid};

use crate::engine::{BATCH_MAX, Claimed};
use crate::frame::{Fate, Frame};
use crate::matching::{At, InLine, Matching};
use crate::network::Network;

/// Where the packets of a kind are collected.
pub(crate) type LinesOf<P> = <<P as Plane>::Match as Matching<P>>::Lines;

/// Packets of a kind on their way through the stages.
pub(crate) trait Collect<P: Plane> {
    fn new() -> Box<Self>;

    /// The second part of stage 1: the first half of the plane, for frames of networks of the kind.
    fn check(&mut self, origins: &[Origin], networks: &mut [Network], buffer: &mut [u8], batch: &mut [Frame]);

    /// Stage 1 without design select, for a run of frames of one network.
    fn check_claimed(
        &mut self,
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
        run: Run<'_>,
    );

    /// Stages 2 and 3 for the collected packets; none are left.
    fn finish(
        &mut self,
        networks: &mut [Network],
        reader: &mut Reader,
        buffer: &mut [u8],
        batch: &mut [Frame],
    );
}

/// Successive frames of a batch that belong to one network.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub claims: &'a [Claimed],
    /// Which frame of the batch is the first one.
    pub first: usize,
}

impl Run<'_> {
    fn network<'n>(&self, networks: &'n mut [Network]) -> Option<&'n mut Network> {
        networks.get_mut(usize::from(self.claims.first()?.slot))
    }

    /// Gate and meter of the network: counts the frames that they refuse, and gives `each` the others, one after the other.
    #[inline(always)]
    fn admit(
        &self,
        network: &mut Network,
        buffer: &mut [u8],
        batch: &mut [Frame],
        mut each: impl FnMut(&mut Network, &mut Frame, Origin, &mut [u8]),
    ) {
        let frames = batch.get_mut(self.first..).unwrap_or_default();
        for ((frame, claim), index) in frames.iter_mut().zip(self.claims).zip(self.first as u16..) {
            let bytes = frame.bytes(buffer).unwrap_or_default().len();
            let target = Target { vid: network.vid, vport: claim.vport };
            match network.admit(frame.time_ns, bytes) {
                Ok(()) => each(network, frame, Origin { frame: index, slot: claim.slot, target }, buffer),
                Err(outcome) => frame.fate = count(network, target, outcome, frame.port),
            }
        }
    }
}

/// The origin of a collected packet.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// Which frame of the batch.
    pub frame: u16,
    pub slot: u16,
    pub target: Target,
}

/// Filler for arrays.
const FIRST_VID: Vid = match Vid::new(1) {
    Some(vid) => vid,
    None => unreachable!(),
};
/// Filler for arrays.
pub(crate) const NO_ORIGIN: Origin =
    Origin { frame: 0, slot: 0, target: Target { vid: FIRST_VID, vport: 0 } };

/// Packets collected for the lookup, at the start of each array.
pub(crate) struct Line<P: Plane> {
    vids: [Vid; BATCH_MAX],
    keys: [P::Key; BATCH_MAX],
    hops: [u16; BATCH_MAX],
    carried: [P::Carried; BATCH_MAX],
    origins: [Origin; BATCH_MAX],
    /// How many were collected.
    count: usize,
}

impl<P: Plane> Line<P> {
    fn empty() -> Self {
        Self {
            vids: [FIRST_VID; BATCH_MAX],
            keys: [P::Key::default(); BATCH_MAX],
            hops: [0; BATCH_MAX],
            carried: [P::NOTHING; BATCH_MAX],
            origins: [NO_ORIGIN; BATCH_MAX],
            count: 0,
        }
    }

    /// Stores a packet at an index below [`BATCH_MAX`].
    #[inline(always)]
    fn set(&mut self, place: usize, origin: Origin, carried: P::Carried) {
        let place = place % BATCH_MAX;
        self.vids[place] = origin.target.vid;
        self.keys[place] = P::key(carried);
        self.carried[place] = carried;
        self.origins[place] = origin;
    }

    /// Stores a packet after the others.
    #[inline(always)]
    pub fn push(&mut self, origin: Origin, carried: P::Carried) {
        self.set(self.count, origin, carried);
        self.count += 1;
    }
}

impl<P: Plane<Match: InLine<P>>> Collect<P> for Line<P> {
    fn new() -> Box<Self> {
        Box::new(Self::empty())
    }

    #[inline(never)]
    fn check(
        &mut self,
        origins: &[Origin],
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        let mut lined = self.count;
        for origin in origins {
            let Some(frame) = batch.get_mut(usize::from(origin.frame)) else { continue };
            let Some(network) = networks.get_mut(usize::from(origin.slot)) else { continue };
            let settings = P::settings(&network.settings);
            lined += usize::from(check_one(self, lined, network, frame, *origin, settings, buffer));
        }
        self.count = lined;
    }

    #[inline(never)]
    fn check_claimed(
        &mut self,
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
        run: Run<'_>,
    ) {
        let Some(network) = run.network(networks) else { return };
        let mut lined = self.count;
        let settings = P::settings(&network.settings);
        run.admit(network, buffer, batch, |network, frame, origin, buffer| {
            lined += usize::from(check_one(self, lined, network, frame, origin, settings, buffer));
        });
        self.count = lined;
    }

    #[inline(always)]
    fn finish(
        &mut self,
        networks: &mut [Network],
        reader: &mut Reader,
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        let lined = std::mem::take(&mut self.count).min(BATCH_MAX);
        if lined > 0 {
            let Self { vids, keys, hops, .. } = self;
            P::Match::look_up(&reader.pin(), &vids[..lined], &keys[..lined], &mut hops[..lined]);
            finish(networks, self, buffer, batch, lined);
        }
    }
}

impl<P: Plane<Match: InLine<P>>> Line<P> {
    /// As [`Collect::finish`], with another word for each packet: `word` makes it from that of the packet's key and its frame.
    pub fn finish_with(
        &mut self,
        networks: &mut [Network],
        reader: &mut Reader,
        buffer: &mut [u8],
        batch: &mut [Frame],
        word: impl Fn(&Guard<'_>, &Network, u16, &[u8]) -> u16,
    ) {
        let lined = std::mem::take(&mut self.count).min(BATCH_MAX);
        if lined == 0 {
            return;
        }
        let Self { vids, keys, hops, origins, .. } = self;
        let guard = reader.pin();
        P::Match::look_up(&guard, &vids[..lined], &keys[..lined], &mut hops[..lined]);
        for (origin, hop) in origins[..lined].iter().zip(&mut hops[..lined]) {
            let frame = batch.get(usize::from(origin.frame)).and_then(|frame| frame.bytes(buffer));
            if let (Some(network), Some(frame)) = (networks.get(usize::from(origin.slot)), frame) {
                *hop = word(&guard, network, *hop, frame);
            }
        }
        drop(guard);
        finish(networks, self, buffer, batch, lined);
    }
}

/// Packets of two families. A batch is sorted by family without a branch, then each family is processed like a kind of
/// its own: packets of both come in no order, so everything that depends on the family would be mispredicted.
pub(crate) struct LinesByFamily<P: TwoFamilies> {
    ipv4: Line<P::Ipv4>,
    ipv6: Line<P::Ipv6>,
}

impl<P: TwoFamilies> Collect<P> for LinesByFamily<P>
where
    Line<P::Ipv4>: Collect<P::Ipv4>,
    Line<P::Ipv6>: Collect<P::Ipv6>,
{
    fn new() -> Box<Self> {
        Box::new(Self { ipv4: Line::empty(), ipv6: Line::empty() })
    }

    #[inline(never)]
    fn check(
        &mut self,
        origins: &[Origin],
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        let (mut lists, mut counts) = ([[NO_ORIGIN; BATCH_MAX]; 2], [0; 2]);
        for origin in origins {
            let frame = batch.get(usize::from(origin.frame));
            let bytes = frame.and_then(|frame| frame.bytes(buffer)).unwrap_or_default();
            let family = usize::from(P::is_ipv6(bytes));
            lists[family][counts[family] % BATCH_MAX] = *origin;
            counts[family] += 1;
        }
        let [ipv4, ipv6] = &lists;
        self.ipv4.check(&ipv4[..counts[0].min(BATCH_MAX)], networks, buffer, batch);
        self.ipv6.check(&ipv6[..counts[1].min(BATCH_MAX)], networks, buffer, batch);
    }

    #[inline(never)]
    fn check_claimed(
        &mut self,
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
        run: Run<'_>,
    ) {
        let Some(network) = run.network(networks) else { return };
        let (mut admitted, mut count) = ([NO_ORIGIN; BATCH_MAX], 0);
        run.admit(network, buffer, batch, |_, _, origin, _| {
            admitted[count % BATCH_MAX] = origin;
            count += 1;
        });
        self.check(&admitted[..count.min(BATCH_MAX)], networks, buffer, batch);
    }

    #[inline(always)]
    fn finish(
        &mut self,
        networks: &mut [Network],
        reader: &mut Reader,
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        self.ipv4.finish(networks, reader, buffer, batch);
        self.ipv6.finish(networks, reader, buffer, batch);
    }
}

/// The first half of the plane for a frame of a network. Returns whether it is collected, in the given place of the
/// line.
#[inline(always)]
fn check_one<P: Plane<Match: InLine<P>>>(
    line: &mut Line<P>,
    place: usize,
    network: &mut Network,
    frame: &mut Frame,
    origin: Origin,
    settings: P::Settings,
    buffer: &mut [u8],
) -> bool {
    let bytes = frame.bytes(buffer).unwrap_or_default();
    if !P::Match::ONE_BY_ONE
        && let Some(carried) = P::plain(bytes)
    {
        line.set(place, origin, carried);
        return true;
    }
    match P::front(bytes, settings) {
        Ok(carried) if P::Match::ONE_BY_ONE => {
            finish_one::<P>(network, frame, origin.target, carried, 0, buffer);
            false
        }
        Ok(carried) => {
            P::Match::prefetch(network, carried);
            line.set(place, origin, carried);
            true
        }
        Err(outcome) => {
            frame.fate = count(network, origin.target, outcome, frame.port);
            false
        }
    }
}

/// Stage 3, for the collected packets.
#[inline(never)]
fn finish<P: Plane<Match: InLine<P>>>(
    networks: &mut [Network],
    line: &Line<P>,
    buffer: &mut [u8],
    batch: &mut [Frame],
    lined: usize,
) {
    let lined = lined.min(BATCH_MAX);
    let packets = line.origins[..lined].iter().zip(&line.carried[..lined]).zip(&line.hops[..lined]);
    for ((origin, carried), hop) in packets {
        let Some(frame) = batch.get_mut(usize::from(origin.frame)) else { continue };
        let Some(network) = networks.get_mut(usize::from(origin.slot)) else { continue };
        finish_one::<P>(network, frame, origin.target, *carried, *hop, buffer);
    }
}

/// Stage 3 for one packet, given the word of its key.
#[inline(always)]
fn finish_one<P: Plane<Match: InLine<P>>>(
    network: &mut Network,
    frame: &mut Frame,
    Target { vid, vport }: Target,
    carried: P::Carried,
    word: u16,
    buffer: &mut [u8],
) {
    let Some(bytes) = frame.bytes_mut(buffer) else { return };
    let at = At { vport, time_ns: frame.time_ns, bytes: bytes.len(), flow: 0 };
    let (outcome, hop, left) = if P::RESIZES {
        back_resized::<P>(network, frame, carried, word, at, buffer)
    } else {
        match P::Match::answer_known(network, word, carried, at) {
            Some((answer, left)) => (P::back(bytes, carried, answer), P::egress(answer), left),
            None => back_rest::<P>(network, bytes, carried, word, at),
        }
    };
    let bytes = frame.bytes(buffer).unwrap_or_default();
    let outcome = P::Match::settle(network, bytes, carried, outcome, at, left);
    let egress = if outcome.has_one_egress() { hop } else { frame.port };
    network.counters.count(outcome);
    frame.fate = Fate::Network { vid, vport, outcome, egress };
}

/// The second half of the plane, of a kind that resizes frames: what [`back_rest`] returns.
#[inline(always)]
fn back_resized<P: Plane<Match: InLine<P>>>(
    network: &Network,
    frame: &mut Frame,
    carried: P::Carried,
    word: u16,
    at: At,
    buffer: &mut [u8],
) -> (Reason, PortId, <P::Match as Matching<P>>::Left) {
    let flow = P::flow(frame.bytes(buffer).unwrap_or_default());
    let (answer, left) = P::Match::answer(network, word, carried, At { flow, ..at });
    let is_sent = P::decide(carried, answer).is_forward();
    let outcome = if is_sent && !frame.grow(P::growth(carried, answer)) {
        P::no_room()
    } else {
        P::back(frame.bytes_mut(buffer).unwrap_or_default(), carried, answer)
    };
    (outcome, P::egress(answer), left)
}

/// The second half of the plane for a packet that is not of the common case. Returns the outcome, the port of the row
/// by which it leaves, and what the answer leaves.
#[inline(never)]
fn back_rest<P: Plane<Match: InLine<P>>>(
    network: &Network,
    bytes: &mut [u8],
    carried: P::Carried,
    word: u16,
    at: At,
) -> (Reason, PortId, <P::Match as Matching<P>>::Left) {
    let (answer, left) = P::Match::answer(network, word, carried, At { flow: P::flow(bytes), ..at });
    (P::back(bytes, carried, answer), P::egress(answer), left)
}

/// Counts a packet that was decided before its lookup.
#[inline(never)]
pub(crate) fn count(
    network: &mut Network,
    Target { vid, vport }: Target,
    outcome: Reason,
    port: PortId,
) -> Fate {
    network.counters.count(outcome);
    Fate::Network { vid, vport, outcome, egress: port }
}
