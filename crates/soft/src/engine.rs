//! The engine: a batch of frames through all stages, stage by stage.
//!
//! [`Engine`] is a worker's part: design select, networks, and a reader of tables that another thread changes.
//! [`Soft`] is one engine together with those tables: the offline substrate, and the model that a running system is
//! checked against. A batch is at most [`BATCH_MAX`] frames of any networks: each stage runs over the whole batch, so
//! that one table lookup serves all networks and its cache misses overlap.
//!
//! 1. select: design select, meter, the first half of the plane. Packets decided here are counted; the others are
//!    collected in dense arrays, one for each kind of plane.
//! 2. lookup: one batched longest-prefix match over all collected packets of a kind.
//! 3. finish: next-hop row, the second half of the plane, counter.
//!
//! No code here knows a kind by name but the shortcut of stage 1 for plain packets, which is for [`Plain`].

use std::sync::Arc;

use hue_demux::{Demux, PortId, Selection, Target};
use hue_planes::{
    FRAME_BYTES_MAX, FRAME_BYTES_MIN, Plane, Reason, Unclaimed, UnclaimedCounters, for_each_plane, ipv4,
    with_plane,
};
use hue_substrate::SubstrateError;
use hue_tables::layout::Runs;
use hue_tables::{Account, Change, Dag, Delta, Key, Limits, Reader, Refusals, TableError, Vid};

use crate::flood::{COPIES_MAX, Copies, FloodCopy};
use crate::frame::{Fate, Frame};
use crate::matching::{At, Matching};
use crate::network::Network;

/// Frames that go through the stages together.
pub const BATCH_MAX: usize = 256;
/// Networks of one engine: all that 12-bit ids can name.
pub const NETWORKS_MAX: usize = Vid::MAX as usize;
/// The kind whose plain packets take a shortcut through stage 1.
type Plain = ipv4::Plane;
/// Flag in the slot index: the network is of another kind than [`Plain`], or has a meter or a closed gate, so
/// [`select_plain`] leaves its frames to [`select_rest`].
pub(crate) const NOT_PLAIN: u16 = 0x8000;
/// In the slot index: the network does not exist. Includes the bit of [`NOT_PLAIN`], so that [`select_plain`] leaves
/// these frames too.
pub(crate) const NO_SLOT: u16 = u16::MAX;

const SLOTS: usize = Vid::MAX as usize + 1;
/// Index into the networks by VID, with [`NOT_PLAIN`].
pub(crate) type Slots = [u16; SLOTS];

/// The software substrate: an engine and the tables it reads.
pub struct Soft {
    pub(crate) engine: Engine,
    pub(crate) dag: Dag,
}

/// One worker's part: takes frames through the stages.
pub(crate) struct Engine {
    pub demux: Arc<Demux>,
    pub networks: Vec<Network>,
    pub slots: Box<Slots>,
    pub unclaimed: UnclaimedCounters,
    reader: Reader,
    lines: Lines,
    copies: Copies,
}

/// The network of a frame, determined earlier: its slot, and the virtual port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claimed {
    pub slot: u16,
    pub vport: u16,
}

/// Packets of a kind collected for the lookup, at the start of each array.
struct Line<P: Plane> {
    vids: [Vid; BATCH_MAX],
    keys: [P::Key; BATCH_MAX],
    hops: [u16; BATCH_MAX],
    carried: [P::Carried; BATCH_MAX],
    origins: [Origin; BATCH_MAX],
    /// How many were collected.
    count: usize,
}

/// The line of a kind.
trait LineOf<P: Plane> {
    fn line(&mut self) -> &mut Line<P>;
}

macro_rules! lines {
    ($($variant:ident $kind:ident)*) => {
        /// A line for each kind.
        struct Lines {
            $($kind: Box<Line<hue_planes::$kind::Plane>>,)*
        }

        impl Lines {
            fn new() -> Self {
                Self { $($kind: Line::new(),)* }
            }

            /// Stages 2 and 3 for the collected packets.
            fn finish(
                &mut self,
                networks: &mut [Network],
                reader: &mut Reader,
                buffer: &mut [u8],
                batch: &mut [Frame],
            ) {
                $(finish_line(&mut self.$kind, networks, reader, buffer, batch);)*
            }
        }

        $(impl LineOf<hue_planes::$kind::Plane> for Lines {
            #[inline(always)]
            fn line(&mut self) -> &mut Line<hue_planes::$kind::Plane> {
                &mut self.$kind
            }
        })*
    };
}
for_each_plane!(lines);

/// The origin of a collected packet.
#[derive(Clone, Copy)]
struct Origin {
    /// Which frame of the batch.
    frame: u16,
    slot: u16,
    target: Target,
}

impl<P: Plane> Line<P> {
    fn new() -> Box<Self> {
        let target = Target { vid: FIRST_VID, vport: 0 };
        Box::new(Self {
            vids: [FIRST_VID; BATCH_MAX],
            keys: [P::Key::default(); BATCH_MAX],
            hops: [0; BATCH_MAX],
            carried: [P::NOTHING; BATCH_MAX],
            origins: [Origin { frame: 0, slot: 0, target }; BATCH_MAX],
            count: 0,
        })
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
    fn push(&mut self, origin: Origin, carried: P::Carried) {
        self.set(self.count, origin, carried);
        self.count += 1;
    }
}

/// Stages 2 and 3: empties the line.
#[inline(always)]
fn finish_line<P: Plane<Match: Matching<P>>>(
    line: &mut Line<P>,
    networks: &mut [Network],
    reader: &mut Reader,
    buffer: &mut [u8],
    batch: &mut [Frame],
) {
    let lined = std::mem::take(&mut line.count).min(BATCH_MAX);
    if lined > 0 {
        let Line { vids, keys, hops, .. } = line;
        P::Match::look_up(&reader.pin(), &vids[..lined], &keys[..lined], &mut hops[..lined]);
        finish(networks, line, buffer, batch, lined);
    }
}

/// Filler for arrays.
pub(crate) const FIRST_VID: Vid = match Vid::new(1) {
    Some(vid) => vid,
    None => unreachable!(),
};

/// Result of design select and meter for a frame.
enum Claim<'a> {
    /// It belongs to one network, whose meter let it pass.
    One { slot: u16, target: Target },
    /// Its fate is decided.
    Done(Fate),
    /// A group frame for several targets.
    Flood(&'a [Target]),
}

impl Engine {
    /// An engine without networks.
    pub fn new(reader: Reader) -> Self {
        Self {
            demux: Arc::new(Demux::default()),
            networks: Vec::new(),
            slots: Box::new([NO_SLOT; SLOTS]),
            unclaimed: UnclaimedCounters::default(),
            reader,
            lines: Lines::new(),
            copies: Copies::default(),
        }
    }

    /// [`Soft::process`].
    fn process(&mut self, buffer: &mut [u8], frames: &mut [Frame]) -> usize {
        self.copies.clear();
        let limit = frames.len().min(BATCH_MAX);
        let (batch, _) = frames.split_at_mut(limit);
        let Self { demux, networks, slots, unclaimed, reader, lines, copies } = self;
        let rare = Rare { networks, unclaimed, reader, copies };
        let processed = select(demux, slots, rare, lines, buffer, batch);
        lines.finish(networks, reader, buffer, batch);
        processed
    }

    /// Runs the stages after design select for frames whose networks are known. Processes as many frames as the
    /// shorter slice has, at most [`BATCH_MAX`].
    pub fn process_claimed(&mut self, buffer: &mut [u8], frames: &mut [Frame], claims: &[Claimed]) {
        let limit = frames.len().min(BATCH_MAX);
        let (batch, _) = frames.split_at_mut(limit);
        let Self { networks, lines, reader, .. } = self;
        // Frames of a network are together, so its kind is determined once for all of them.
        let mut first = 0;
        for run in claims.get(..limit).unwrap_or(claims).chunk_by(|one, other| one.slot == other.slot) {
            let slot = run.first().map_or(NO_SLOT, |claim| claim.slot);
            if let Some(network) = networks.get_mut(usize::from(slot)) {
                with_plane!(network.kind(), P => check_claimed::<P>(network, lines, buffer, batch, run, first));
            }
            first += run.len();
        }
        lines.finish(networks, reader, buffer, batch);
    }

    pub fn network(&self, vid: Vid) -> Option<&Network> {
        self.networks.get(place(slot_of(&self.slots, vid)))
    }

    /// Rebuilds the slot index.
    pub fn index(&mut self) {
        self.slots.fill(NO_SLOT);
        for (network, slot) in self.networks.iter().zip(0u16..) {
            if let Some(word) = self.slots.get_mut(network.vid.index()) {
                *word = if network.is_plain(Plain::KIND) { slot } else { slot | NOT_PLAIN };
            }
        }
    }
}

impl Soft {
    /// An engine without networks, whose tables obey `limits`.
    ///
    /// # Errors
    /// `Table` when the system provides no address space for them.
    pub fn new(limits: Limits) -> Result<Self, TableError> {
        let dag = Dag::new(limits)?;
        let engine = Engine::new(dag.reader()?);
        Ok(Self { engine, dag })
    }

    /// Passes frames of `buffer` through all stages: sets the fate of each frame, and rewrites the bytes of forwarded
    /// frames. Returns how many were processed: at least one if there is any, at most [`BATCH_MAX`], and fewer if
    /// their copies would exceed [`COPIES_MAX`]. Copies of flooded frames are in [`Soft::copies`] until the next
    /// call.
    pub fn process(&mut self, buffer: &mut [u8], frames: &mut [Frame]) -> usize {
        self.engine.process(buffer, frames)
    }

    /// Copies of the flooded frames of the latest [`Soft::process`], by frame, then by VID and virtual port.
    pub fn copies(&self) -> impl Iterator<Item = FloodCopy<'_>> {
        self.engine.copies.iter()
    }

    /// Changes routes of a loaded network, in order and all at once: each packet sees all of the changes or none.
    ///
    /// # Errors
    /// `Unknown`, `Hop` or `Table`, also if the keys are not those of its kind; then nothing has changed.
    pub fn update_routes<K: Key>(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<(), SubstrateError> {
        let name = self.check_routes(vid, changes)?;
        self.dag.apply(vid, changes).map_err(|error| SubstrateError::Table { name, error })
    }

    /// The same, but announcements that exceed the table or the network's quota are left out, see
    /// [`Dag::apply_fitting`]; the changes take effect all at once only when all fit.
    ///
    /// # Errors
    /// `Unknown`, `Hop`; `Table` when not even a withdrawal is possible.
    pub fn update_fitting<K: Key>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
    ) -> Result<Refusals, SubstrateError> {
        let name = self.check_routes(vid, changes)?;
        self.dag.apply_fitting(vid, changes).map_err(|error| SubstrateError::Table { name, error })
    }

    /// Limits the table memory that a loaded network's lookups can reach, bytes; see [`Dag::set_quota`].
    ///
    /// # Errors
    /// `Unknown`.
    pub fn set_quota(&mut self, vid: Vid, bytes_max: Option<u64>) -> Result<(), SubstrateError> {
        self.dag.set_quota(vid, bytes_max).map_err(|_| SubstrateError::Unknown(vid))
    }

    /// Checks changes of routes; returns the network's name.
    fn check_routes<K: Key>(&self, vid: Vid, changes: &[Change<K>]) -> Result<String, SubstrateError> {
        let network = self.network(vid).ok_or(SubstrateError::Unknown(vid))?;
        let (name, count) = (&network.shape.name, network.hops.count());
        for (prefix, hop) in changes {
            if let Some(hop) = hop.filter(|hop| usize::from(hop.get()) >= count) {
                return Err(SubstrateError::Hop {
                    name: name.clone(),
                    prefix: prefix.to_string(),
                    hop: hop.get(),
                    count,
                });
            }
        }
        Ok(name.clone())
    }

    /// Table memory of a loaded network, bytes.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn account(&self, vid: Vid) -> Result<Account, SubstrateError> {
        self.dag.account(vid).map_err(|_| SubstrateError::Unknown(vid))
    }

    /// See [`Dag::enable_weighed_deltas`].
    pub fn enable_weighed_deltas(&mut self, weigh: fn(&Runs) -> u64) {
        self.dag.enable_weighed_deltas(weigh);
    }

    /// See [`Dag::disable_deltas`].
    pub fn disable_deltas(&mut self) {
        self.dag.disable_deltas();
    }

    /// See [`Dag::take_deltas`].
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.dag.take_deltas()
    }

    /// Table memory of a loaded network in the follower's unit.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn follower_account(&self, vid: Vid) -> Result<Account, SubstrateError> {
        self.dag.follower_account(vid).map_err(|_| SubstrateError::Unknown(vid))
    }

    pub(crate) fn network(&self, vid: Vid) -> Option<&Network> {
        self.engine.network(vid)
    }

    pub(crate) fn network_mut(&mut self, vid: Vid) -> Option<&mut Network> {
        let slot = place(slot_of(&self.engine.slots, vid));
        self.engine.networks.get_mut(slot)
    }
}

/// The parts of an engine that stage 1 needs only outside the common case.
struct Rare<'a> {
    networks: &'a mut [Network],
    unclaimed: &'a mut UnclaimedCounters,
    reader: &'a mut Reader,
    copies: &'a mut Copies,
}

/// Stage 1. Returns how many frames were processed.
///
/// One loop: two loops, one for design select and one for the checks, were 15 % slower (example `throughput`).
/// It takes separate references, not the engine, so that the compiler knows that they do not overlap.
#[inline(never)]
fn select(
    demux: &Demux,
    slots: &Slots,
    mut rare: Rare<'_>,
    lines: &mut Lines,
    buffer: &[u8],
    batch: &mut [Frame],
) -> usize {
    let mut processed = batch.len();
    for (frame, index) in batch.iter_mut().zip(0u16..) {
        if let Some((slot, target, carried)) = select_plain(demux, slots, frame, buffer) {
            LineOf::<Plain>::line(lines).push(Origin { frame: index, slot, target }, carried);
        } else if select_rest(demux, slots, &mut rare, lines, frame, buffer, index) == Step::Full {
            processed = usize::from(index);
            break;
        }
    }
    processed
}

/// Stage 1 without design select, for a run of frames of one network, the first of which is frame `first` of the batch.
#[inline(never)]
fn check_claimed<P: Plane>(
    network: &mut Network,
    lines: &mut impl LineOf<P>,
    buffer: &[u8],
    batch: &mut [Frame],
    run: &[Claimed],
    first: usize,
) {
    let line = lines.line();
    let mut lined = line.count;
    let settings = P::settings(&network.settings);
    let frames = batch.get_mut(first..).unwrap_or_default();
    for ((frame, claim), index) in frames.iter_mut().zip(run).zip(first as u16..) {
        let bytes = frame.bytes(buffer).unwrap_or_default();
        let target = Target { vid: network.vid, vport: claim.vport };
        let admitted = network.admit(frame.time_ns, bytes.len());
        match admitted.and_then(|()| P::front(bytes, settings)) {
            Ok(carried) => {
                line.set(lined, Origin { frame: index, slot: claim.slot, target }, carried);
                lined += 1;
            }
            Err(outcome) => frame.fate = count(network, target, outcome, frame.port),
        }
    }
    line.count = lined;
}

/// Stage 3, for the collected packets.
#[inline(never)]
fn finish<P: Plane<Match: Matching<P>>>(
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
        let Some(bytes) = frame.bytes_mut(buffer) else { continue };
        let Target { vid, vport } = origin.target;
        let at = At { vport, time_ns: frame.time_ns, bytes: bytes.len() };
        let (answer, left) = P::Match::answer(network, *hop, *carried, at);
        let (outcome, hop) = (P::back(bytes, *carried, answer), P::egress(answer));
        let outcome = P::Match::settle(network, *carried, outcome, at, left);
        let egress = if outcome.has_one_egress() { hop } else { frame.port };
        network.counters.count(outcome);
        frame.fate = Fate::Network { vid, vport, outcome, egress };
    }
}

#[inline(always)]
pub(crate) fn slot_of(slots: &Slots, vid: Vid) -> u16 {
    // A VID is below SLOTS; the remainder avoids a branch.
    slots[vid.index() % SLOTS]
}

/// Index into the networks from a word of the slot index; [`NO_SLOT`] gives one beyond the end.
#[inline(always)]
pub(crate) fn place(slot: u16) -> usize {
    usize::from(slot & !NOT_PLAIN)
}

/// What stage 1 does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Go on to the next frame.
    Next,
    /// End the batch before this frame.
    Full,
}

/// The common case of stage 1: a plain packet to a MAC address of a [`Plain`] network without a meter or a closed
/// gate. `None`: use [`select_rest`].
#[inline(always)]
fn select_plain(
    demux: &Demux,
    slots: &Slots,
    frame: &Frame,
    buffer: &[u8],
) -> Option<(u16, Target, ipv4::Checked)> {
    // Design select first: its reads depend on each other, and the checks can run at the same time.
    let bytes = frame.bytes(buffer).filter(|bytes| bytes.len() <= FRAME_BYTES_MAX)?;
    let target = demux.select_mac(frame.port, bytes)?;
    let slot = slot_of(slots, target.vid);
    let checked = ipv4::check_plain(bytes)?;
    (slot & NOT_PLAIN == 0).then_some((slot, target, checked))
}

/// Stage 1 of one frame, all cases; charges the network's meter.
#[inline(never)]
fn select_rest(
    demux: &Demux,
    slots: &Slots,
    rare: &mut Rare<'_>,
    lines: &mut Lines,
    frame: &mut Frame,
    buffer: &[u8],
    index: u16,
) -> Step {
    let bytes = frame.bytes(buffer).unwrap_or_default();
    let claimed = claim_by_mac(demux, slots, rare.networks, frame.port, bytes);
    match claimed.unwrap_or_else(|| claim(demux, slots, rare, frame, bytes)) {
        Claim::One { slot, target } => {
            let Some(network) = rare.networks.get_mut(usize::from(slot)) else { return Step::Next };
            let origin = Origin { frame: index, slot, target };
            let decided = with_plane!(network.kind(), P => line_up::<P>(network, lines, bytes, origin));
            if let Err(outcome) = decided {
                frame.fate = count(network, target, outcome, frame.port);
            }
        }
        Claim::Done(fate) => frame.fate = fate,
        Claim::Flood(targets) => {
            let Rare { networks, reader, copies, .. } = rare;
            // What earlier frames of the batch teach must be known before a copy is decided.
            let mut learning =
                targets.iter().filter_map(|target| networks.get(place(slot_of(slots, target.vid))));
            let waits = learning.any(|network| {
                network.learns() && with_plane!(network.kind(), P => LineOf::<P>::line(lines).count > 0)
            });
            if waits || !copies.have_room(targets.len()) {
                return Step::Full;
            }
            frame.fate = Fate::Flooded;
            let targets = targets.iter().map(|target| (*target, slot_of(slots, target.vid)));
            copies.flood(usize::from(index), frame, bytes, targets, networks, &reader.pin());
        }
    }
    Step::Next
}

/// The common case of [`claim`]: a frame to a MAC address of a network without a meter or a closed gate.
#[inline(always)]
fn claim_by_mac<'a>(
    demux: &Demux,
    slots: &Slots,
    networks: &[Network],
    port: PortId,
    bytes: &[u8],
) -> Option<Claim<'a>> {
    if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len()) {
        return None;
    }
    let target = demux.select_mac(port, bytes)?;
    let slot = slot_of(slots, target.vid) & !NOT_PLAIN;
    let network = networks.get(usize::from(slot))?;
    (network.meter.is_none() && !network.gated).then_some(Claim::One { slot, target })
}

/// The first half of a network's plane for one packet, which is collected unless its outcome is returned.
fn line_up<P: Plane>(
    network: &Network,
    lines: &mut impl LineOf<P>,
    bytes: &[u8],
    origin: Origin,
) -> Result<(), Reason> {
    let carried = P::front(bytes, P::settings(&network.settings))?;
    lines.line().push(origin, carried);
    Ok(())
}

/// Determines a frame's network, all cases; charges its meter.
#[inline(never)]
fn claim<'a>(
    demux: &'a Demux,
    slots: &Slots,
    Rare { networks, unclaimed, .. }: &mut Rare<'_>,
    frame: &Frame,
    bytes: &[u8],
) -> Claim<'a> {
    let mut nobody = |reason| {
        unclaimed.count(reason);
        Claim::Done(Fate::Unclaimed(reason))
    };
    if bytes.len() < FRAME_BYTES_MIN {
        return nobody(Unclaimed::Runt);
    }
    if bytes.len() > FRAME_BYTES_MAX {
        return nobody(Unclaimed::TooLong);
    }
    let target = match demux.select(frame.port, bytes) {
        Selection::One(target, _) => target,
        Selection::Several(targets) => return Claim::Flood(targets),
        Selection::Nobody => return nobody(Unclaimed::NoNetwork),
    };
    let slot = slot_of(slots, target.vid) & !NOT_PLAIN;
    let Some(network) = networks.get_mut(usize::from(slot)) else { return nobody(Unclaimed::NoNetwork) };
    match network.admit(frame.time_ns, bytes.len()) {
        Ok(()) => Claim::One { slot, target },
        Err(outcome) => Claim::Done(count(network, target, outcome, frame.port)),
    }
}

/// Counts a packet that was decided before its lookup.
#[inline(never)]
fn count(network: &mut Network, Target { vid, vport }: Target, outcome: Reason, port: PortId) -> Fate {
    network.counters.count(outcome);
    Fate::Network { vid, vport, outcome, egress: port }
}

const _: () = assert!(BATCH_MAX <= u16::MAX as usize && COPIES_MAX > 0);
