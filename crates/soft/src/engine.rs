//! The engine: a batch of frames through all stages, stage by stage.
//!
//! [`Engine`] is a worker's part: design select, networks, and a reader of tables that another thread changes.
//! [`Soft`] is one engine together with those tables: the offline substrate, and the model that a running system is
//! checked against. A batch is at most [`BATCH_MAX`] frames of any networks: each stage runs over the whole batch, so
//! that one table lookup serves all networks and its cache misses overlap.
//!
//! 1. select: design select, meter, the first half of the plane. Packets decided here are counted; the others are
//!    collected in dense arrays, one for each kind of plane. The kinds take turns, so that packets of several in a
//!    batch cost no unpredictable branches; only plain packets of [`Plain`] are checked at once.
//! 2. lookup: one batched longest-prefix match over all collected packets of a kind.
//! 3. finish: next-hop row, the second half of the plane, counter.
//!
//! What a kind's packets go through is in [`lines`](crate::lines).
//!
//! No code here knows a kind by name but the shortcut of stage 1 for plain packets, which is for [`Plain`].

use std::sync::Arc;

use hue_demux::{Demux, Selection, Target};
use hue_planes::{
    FRAME_BYTES_MAX, FRAME_BYTES_MIN, Kind, Plane, Unclaimed, UnclaimedCounters, for_each_plane, ipv4, ipv6,
};
use hue_substrate::SubstrateError;
use hue_tables::layout::Runs;
use hue_tables::{Account, Dag, Delta, Limits, Reader, TableError, Vid};

use crate::carry::Carry;
use crate::flood::{COPIES_MAX, Copies, FloodCopy};
use crate::frame::{Fate, Frame};
use crate::lines::{Collect, Line, LinesOf, NO_ORIGIN, Origin, Run, count};
use crate::network::Network;
use crate::policies::{RoutedLine, Table};

/// Frames that go through the stages together.
pub const BATCH_MAX: usize = 256;
/// Networks of one engine: all that 12-bit ids can name.
pub const NETWORKS_MAX: usize = Vid::MAX as usize;
/// The kind whose plain packets take a shortcut through stage 1.
type Plain = ipv4::Plane;
/// Bits of a slot in a word of the slot index. Above it: the list of the network's kind ([`list_of`]), or [`RARE`].
const SLOT_BITS: u32 = 12;
const SLOT: u16 = (1 << SLOT_BITS) - 1;
/// In the slot index, instead of a list: the network has a meter or a closed gate.
const RARE: u16 = u16::MAX >> SLOT_BITS;
/// In the slot index: the network does not exist. Says [`RARE`] too.
pub(crate) const NO_SLOT: u16 = u16::MAX;

const SLOTS: usize = Vid::MAX as usize + 1;
/// Index into the networks by VID, with the kind of each.
pub(crate) type Slots = [u16; SLOTS];

/// Number of lists of frames: one for each kind, and those of networks with policies. A power of two, so that a remainder is
/// a mask.
const LISTS: usize = (KINDS + 2).next_power_of_two();
const KINDS: usize = Kind::ALL.len();
/// The lists of networks with policies: those of IPv4, and those of IPv6.
const ROUTED4: u16 = KINDS as u16;
const ROUTED6: u16 = ROUTED4 + 1;

/// The list for frames of networks of a kind: 0 for [`Plain`], so that its words in the slot index are slots.
const fn list_of(kind: Kind) -> u16 {
    let mut list = 0;
    while (list as usize) < KINDS && Kind::ALL[list as usize] as u16 != kind as u16 {
        list += 1;
    }
    list
}

/// The list for frames of a network.
fn list_of_network(network: &Network) -> u16 {
    match network.shape.policies.as_deref() {
        None => list_of(network.kind()),
        Some(Table::V4(_)) => ROUTED4,
        Some(Table::V6(_)) => ROUTED6,
    }
}

const _: () = assert!(NETWORKS_MAX <= SLOT as usize && ROUTED6 < RARE && list_of(Plain::KIND) == 0);

/// The software substrate: an engine and the tables it reads.
pub struct Soft {
    pub(crate) engine: Engine,
    pub(crate) dag: Dag,
    pub(crate) carry: Carry,
    /// Whether a card follows the store ([`Soft::set_followed`]).
    pub(crate) followed: bool,
}

/// One worker's part: takes frames through the stages.
pub(crate) struct Engine {
    pub demux: Arc<Demux>,
    pub networks: Vec<Network>,
    pub slots: Box<Slots>,
    pub unclaimed: UnclaimedCounters,
    reader: Reader,
    sorted: Box<Sorted>,
    lines: Lines,
    copies: Copies,
}

/// The network of a frame, determined earlier: its slot, and the virtual port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claimed {
    pub slot: u16,
    pub vport: u16,
}

macro_rules! lines {
    ($($variant:ident $kind:ident)*) => {
        /// The collected packets of each kind.
        struct Lines {
            $($kind: Box<LinesOf<hue_planes::$kind::Plane>>,)*
            /// Those of networks with policies.
            routed4: Box<RoutedLine<ipv4::Plane>>,
            routed6: Box<RoutedLine<ipv6::Plane>>,
        }

        impl Lines {
            fn new() -> Self {
                Self { $($kind: Collect::new(),)* routed4: Collect::new(), routed6: Collect::new() }
            }

            /// Those of [`Plain`].
            fn plain(&mut self) -> &mut Line<Plain> {
                &mut self.ipv4
            }

            /// The second part of stage 1, for frames whose networks are known.
            #[inline(always)]
            fn check(
                &mut self,
                sorted: &Sorted,
                networks: &mut [Network],
                buffer: &mut [u8],
                batch: &mut [Frame],
            ) {
                $({
                    let origins = sorted.of(<hue_planes::$kind::Plane as Plane>::KIND);
                    if !origins.is_empty() {
                        self.$kind.check(origins, networks, buffer, batch);
                    }
                })*
                let (routed4, routed6) = (sorted.list(ROUTED4), sorted.list(ROUTED6));
                if !routed4.is_empty() {
                    self.routed4.check(routed4, networks, buffer, batch);
                }
                if !routed6.is_empty() {
                    self.routed6.check(routed6, networks, buffer, batch);
                }
            }

            /// Stage 1 without design select, for a run of frames of one network.
            fn check_claimed(
                &mut self,
                list: u16,
                kind: Kind,
                networks: &mut [Network],
                buffer: &mut [u8],
                batch: &mut [Frame],
                run: Run<'_>,
            ) {
                match (list, kind) {
                    (ROUTED4, _) => self.routed4.check_claimed(networks, buffer, batch, run),
                    (ROUTED6, _) => self.routed6.check_claimed(networks, buffer, batch, run),
                    $((_, Kind::$variant) => self.$kind.check_claimed(networks, buffer, batch, run),)*
                }
            }

            /// Stages 2 and 3 for the collected packets.
            fn finish(
                &mut self,
                networks: &mut [Network],
                reader: &mut Reader,
                buffer: &mut [u8],
                batch: &mut [Frame],
            ) {
                $(self.$kind.finish(networks, reader, buffer, batch);)*
                self.routed4.finish(networks, reader, buffer, batch);
                self.routed6.finish(networks, reader, buffer, batch);
            }
        }
    };
}
for_each_plane!(lines);

/// Frames of a batch by the kinds of their networks, in their order.
struct Sorted {
    lists: [[Origin; BATCH_MAX]; LISTS],
    counts: [u16; LISTS],
}

impl Sorted {
    fn new() -> Box<Self> {
        Box::new(Self { lists: [[NO_ORIGIN; BATCH_MAX]; LISTS], counts: [0; LISTS] })
    }

    fn clear(&mut self) {
        self.counts = [0; LISTS];
    }

    /// Adds a frame to a list below [`LISTS`]. Remainders avoid branches.
    #[inline(always)]
    fn push(&mut self, list: u16, origin: Origin) {
        let list = usize::from(list) % LISTS;
        let count = usize::from(self.counts[list]);
        self.lists[list][count % BATCH_MAX] = origin;
        self.counts[list] += 1;
    }

    fn of(&self, kind: Kind) -> &[Origin] {
        self.list(list_of(kind))
    }

    fn list(&self, list: u16) -> &[Origin] {
        let list = usize::from(list) % LISTS;
        &self.lists[list][..usize::from(self.counts[list]).min(BATCH_MAX)]
    }
}

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
            sorted: Sorted::new(),
            lines: Lines::new(),
            copies: Copies::default(),
        }
    }

    /// [`Soft::process`].
    fn process(&mut self, buffer: &mut [u8], frames: &mut [Frame]) -> usize {
        self.copies.clear();
        let limit = frames.len().min(BATCH_MAX);
        let (batch, _) = frames.split_at_mut(limit);
        let Self { demux, networks, slots, unclaimed, reader, sorted, lines, copies } = self;
        sorted.clear();
        let rare = Rare { networks, unclaimed, reader, copies };
        let processed = select(demux, slots, rare, sorted, lines.plain(), buffer, batch);
        lines.check(sorted, networks, buffer, batch);
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
            if let Some(network) = networks.get(usize::from(slot)) {
                let (list, kind) = (list_of_network(network), network.kind());
                lines.check_claimed(list, kind, networks, buffer, batch, Run { claims: run, first });
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
                let list = if network.is_unlimited() { list_of_network(network) } else { RARE };
                *word = slot | list << SLOT_BITS;
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
        Ok(Self { engine, dag, carry: Carry::default(), followed: false })
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

    /// Limits the table memory that a loaded network's lookups can reach, bytes; see [`Dag::set_quota`].
    ///
    /// # Errors
    /// `Unknown`.
    pub fn set_quota(&mut self, vid: Vid, bytes_max: Option<u64>) -> Result<(), SubstrateError> {
        self.dag.set_quota(vid, bytes_max).map_err(|_| SubstrateError::Unknown(vid))
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
        self.set_followed(true);
        self.dag.enable_weighed_deltas(weigh);
    }

    /// See [`Dag::disable_deltas`].
    pub fn disable_deltas(&mut self) {
        self.dag.disable_deltas();
        self.set_followed(false);
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

/// The first part of stage 1: design select for all frames, and the checks of plain packets. Returns how many frames
/// are processed.
///
/// One loop for both: two loops were 15 % slower (example `throughput`). It takes separate references, not the
/// engine, so that the compiler knows that they do not overlap.
#[inline(never)]
fn select(
    demux: &Demux,
    slots: &Slots,
    mut rare: Rare<'_>,
    sorted: &mut Sorted,
    plain: &mut Line<Plain>,
    buffer: &[u8],
    batch: &mut [Frame],
) -> usize {
    let mut processed = batch.len();
    for (frame, index) in batch.iter_mut().zip(0u16..) {
        // Design select first: its reads depend on each other, and the checks can run at the same time.
        let found = frame.bytes(buffer).filter(|bytes| bytes.len() <= FRAME_BYTES_MAX).and_then(|bytes| {
            let target = demux.select_mac(frame.port, bytes)?;
            Some((bytes, target, slot_of(slots, target.vid)))
        });
        if let Some((bytes, target, word)) = found {
            if let Some(checked) = ipv4::check_plain(bytes)
                && word <= SLOT
            {
                plain.push(Origin { frame: index, slot: word, target }, checked);
                continue;
            }
            let list = word >> SLOT_BITS;
            if list != RARE && bytes.len() >= FRAME_BYTES_MIN {
                sorted.push(list, Origin { frame: index, slot: word & SLOT, target });
                continue;
            }
        }
        if select_rest(demux, slots, &mut rare, sorted, frame, buffer, index) == Step::Full {
            processed = usize::from(index);
            break;
        }
    }
    processed
}

#[inline(always)]
pub(crate) fn slot_of(slots: &Slots, vid: Vid) -> u16 {
    // A VID is below SLOTS; the remainder avoids a branch.
    slots[vid.index() % SLOTS]
}

/// Index into the networks from a word of the slot index; [`NO_SLOT`] gives one beyond the end.
#[inline(always)]
pub(crate) fn place(slot: u16) -> usize {
    usize::from(slot & SLOT)
}

/// What stage 1 does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Go on to the next frame.
    Next,
    /// End the batch before this frame.
    Full,
}

/// Design select of one frame, all cases; charges the network's meter.
#[inline(never)]
fn select_rest(
    demux: &Demux,
    slots: &Slots,
    rare: &mut Rare<'_>,
    sorted: &mut Sorted,
    frame: &mut Frame,
    buffer: &[u8],
    index: u16,
) -> Step {
    let bytes = frame.bytes(buffer).unwrap_or_default();
    match claim(demux, slots, rare, frame, bytes) {
        Claim::One { slot, target } => {
            let Some(network) = rare.networks.get(usize::from(slot)) else { return Step::Next };
            sorted.push(list_of_network(network), Origin { frame: index, slot, target });
        }
        Claim::Done(fate) => frame.fate = fate,
        Claim::Flood(targets) => {
            let Rare { networks, reader, copies, .. } = rare;
            // What earlier frames of the batch teach must be known before a copy is decided.
            let mut learning =
                targets.iter().filter_map(|target| networks.get(place(slot_of(slots, target.vid))));
            let waits = learning.any(|network| network.learns() && !sorted.of(network.kind()).is_empty());
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
    let slot = slot_of(slots, target.vid) & SLOT;
    let Some(network) = networks.get_mut(usize::from(slot)) else { return nobody(Unclaimed::NoNetwork) };
    match network.admit(frame.time_ns, bytes.len()) {
        Ok(()) => Claim::One { slot, target },
        Err(outcome) => Claim::Done(count(network, target, outcome, frame.port)),
    }
}

const _: () = assert!(BATCH_MAX <= u16::MAX as usize && COPIES_MAX > 0);
