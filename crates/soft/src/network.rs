//! One loaded network: the parts that the fast path uses, and those that only loading uses.

use std::sync::Arc;

use hue_demux::Row;
use hue_planes::group::Slots;
use hue_planes::{
    Adjacency, AdjacencyKind, Class, Counters, Keys, Kind, Meter, Plane, RateLimit, Reason, Settings,
    with_plane,
};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Program, SwitchCounts, VirtualPort, keeps_macs};
use hue_tables::{LabelTable, NextHop, Pointers, RouteBy, TernaryTable, Vid};

use crate::policies::Table;
use crate::switch::Switch;

/// Next-hop rows, followed by a row for "no route", and the slots of those that are groups.
#[derive(Clone, Debug)]
pub struct Hops {
    rows: Box<[Adjacency]>,
    /// In any order; the number in a group's row is its place here.
    groups: Vec<(NextHop, Slots)>,
}

/// The way of a packet through a group.
pub struct Through<'a> {
    pub slots: &'a Slots,
    /// The member's row.
    pub row: NextHop,
    pub hop: &'a Adjacency,
}

impl Hops {
    pub fn new(rows: &[Adjacency], groups: &[(NextHop, Slots)]) -> Self {
        let mut hops = Self { rows: Box::new([Adjacency::NONE]), groups: Vec::new() };
        let plain = rows.iter().zip(0u16..).filter(|(row, _)| row.kind() != AdjacencyKind::Group);
        let plain: Vec<_> = plain.filter_map(|(row, index)| Some((NextHop::new(index)?, *row))).collect();
        hops.set(&plain, groups, rows.len());
        hops
    }

    /// The row of a table word; "no route", the largest word, gives [`Adjacency::NONE`].
    #[inline(always)]
    pub fn get(&self, word: u16) -> &Adjacency {
        self.rows.get(usize::from(word)).unwrap_or(&Adjacency::NONE)
    }

    /// The same for a packet with this hash: the row of the member, if the word names a group.
    pub fn get_for(&self, word: u16, flow: u32) -> &Adjacency {
        self.through(word, flow).map_or_else(|| self.get(word), |through| through.hop)
    }

    /// The way through the group that a word names; `None` if it names none.
    pub fn through(&self, word: u16, flow: u32) -> Option<Through<'_>> {
        let group = Some(self.get(word)).filter(|row| row.kind() == AdjacencyKind::Group)?;
        let (_, slots) = self.groups.get(usize::from(group.group_number()))?;
        let row = slots.row(flow)?;
        let hop = Some(self.get(row.get())).filter(|hop| hop.kind() != AdjacencyKind::Group);
        Some(Through { slots, row, hop: hop.unwrap_or(&Adjacency::NONE) })
    }

    /// Changes rows, then groups; there are `count` rows then. New rows that are not set are "no route".
    pub fn set(&mut self, rows: &[(NextHop, Adjacency)], groups: &[(NextHop, Slots)], count: usize) {
        if count != self.count() {
            let gone: Vec<NextHop> = self.groups.iter().map(|(row, _)| *row).collect();
            gone.into_iter()
                .filter(|row| usize::from(row.get()) >= count)
                .for_each(|row| self.end_group(row));
            let mut all = std::mem::take(&mut self.rows).into_vec();
            all.truncate(count);
            all.resize(count + 1, Adjacency::NONE);
            self.rows = all.into_boxed_slice();
        }
        for (index, row) in rows {
            self.end_group(*index);
            if let Some(place) =
                self.rows.get_mut(..count).and_then(|all| all.get_mut(usize::from(index.get())))
            {
                *place = *row;
            }
        }
        for (index, slots) in groups {
            self.end_group(*index);
            let row = u16::try_from(self.groups.len()).ok().map(Adjacency::group);
            let place = self.rows.get_mut(..count).and_then(|all| all.get_mut(usize::from(index.get())));
            if let (Some(row), Some(place)) = (row, place) {
                *place = row;
                self.groups.push((*index, slots.clone()));
            }
        }
    }

    /// Makes a row that is a group "no route".
    fn end_group(&mut self, index: NextHop) {
        let Some(row) = self.rows.get_mut(usize::from(index.get())) else { return };
        if row.kind() != AdjacencyKind::Group {
            return;
        }
        let number = row.group_number();
        *row = Adjacency::NONE;
        if usize::from(number) < self.groups.len() {
            self.groups.swap_remove(usize::from(number));
        }
        if let Some((moved, _)) = self.groups.get(usize::from(number))
            && let Some(row) = self.rows.get_mut(usize::from(moved.get()))
        {
            *row = Adjacency::group(number);
        }
    }

    /// The rows that a route may name.
    pub fn rows(&self) -> &[Adjacency] {
        self.rows.get(..self.count()).unwrap_or_default()
    }

    /// The slots of the rows that are groups.
    pub fn groups(&self) -> &[(NextHop, Slots)] {
        &self.groups
    }

    /// How many rows a route may name.
    pub fn count(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }
}

/// A loaded network.
#[derive(Clone, Debug)]
pub struct Network {
    pub counters: Counters,
    pub vid: Vid,
    pub hops: Hops,
    pub settings: Settings,
    pub gated: bool,
    pub meter: Option<Box<Meter>>,
    /// What a network of a kind that learns knows.
    pub switch: Option<Box<Switch>>,
    pub shape: Box<Shape>,
}

/// Properties of a network that matter when other programs are loaded.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub ports: Vec<VirtualPort>,
    pub rows: Vec<Row>,
    pub rate_limit: Option<RateLimit>,
    pub route_by: RouteBy,
    /// Those of a network whose routes depend on sources. Here, so that networks without them are no larger.
    pub policies: Option<Arc<Table>>,
    /// The table of a network with patterns. Shared, so that a worker gets it ready made.
    pub patterns: Option<Arc<TernaryTable>>,
    /// The same, of a network with flat labels.
    pub labels: Option<Arc<LabelTable>>,
    /// What packets taught a network that caches pointers, at its home: each is a row of next hops.
    pub pointers: Option<Pointers<Adjacency>>,
}

impl Network {
    /// Creates the state of a network that is loaded, or loaded again: counters and what was learnt are kept if the
    /// kind is the same, and the meter if the rate limit is the same.
    pub fn new(program: &Program, before: Option<&Self>) -> Self {
        let ignored = planted(Bug::KindIgnored);
        let settings = if ignored { Settings::of(Kind::Ipv4) } else { program.settings };
        let same_kind = before.filter(|before| before.kind() == settings.kind());
        let kept = before.filter(|before| before.shape.rate_limit == program.rate_limit);
        let meter = match kept {
            Some(before) => before.meter.clone(),
            None => program.rate_limit.map(|limit| Box::new(Meter::new(limit))),
        };
        let switch = settings.learning().map(|learning| {
            let before = same_kind.and_then(|before| Some((before.switch.as_deref()?, &*before.shape.ports)));
            Box::new(Switch::new(program, learning, before))
        });
        Self {
            switch,
            counters: same_kind.map_or(Counters::new(settings.kind()), |before| before.counters),
            vid: program.vid,
            hops: Hops::new(&program.next_hops, &program.groups),
            settings,
            gated: program.gated,
            meter,
            shape: Box::new(Shape {
                name: program.name.clone(),
                ports: program.ports.clone(),
                rows: program.rows.clone(),
                rate_limit: program.rate_limit,
                route_by: program.route_by(),
                policies: Table::of(program),
                patterns: (settings.kind().limits().keys == Keys::Bits)
                    .then(|| Arc::new(TernaryTable::new(program.entries.patterns()))),
                labels: (settings.kind().limits().keys == Keys::Label)
                    .then(|| Arc::new(LabelTable::new(program.entries.labels()))),
                pointers: pointers(program, settings, same_kind),
            }),
        }
    }

    /// Takes tables that another thread made.
    pub fn take(
        &mut self,
        hops: Option<Hops>,
        patterns: Option<Arc<TernaryTable>>,
        labels: Option<Arc<LabelTable>>,
    ) {
        if let Some(hops) = hops {
            self.hops = hops;
        }
        if patterns.is_some() {
            self.shape.patterns = patterns;
        }
        if labels.is_some() {
            self.shape.labels = labels;
        }
    }

    /// Whether its packets change the table in which later ones are looked up.
    #[inline]
    pub fn learns(&self) -> bool {
        self.switch.is_some()
    }

    /// What happened to MAC addresses; zeros if its kind does not learn.
    pub fn switch_counts(&self) -> SwitchCounts {
        self.switch.as_deref().map(|switch| switch.addresses.counts()).unwrap_or_default()
    }

    /// Its kind.
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        self.settings.kind()
    }

    /// Whether its MAC addresses are the same on both wires of a segment.
    pub fn keeps_macs(&self) -> bool {
        keeps_macs(self.kind(), &self.shape.rows)
    }

    /// By which addresses of a packet it chooses a route.
    pub const fn route_by(&self) -> RouteBy {
        self.shape.route_by
    }

    /// Whether a packet reaches the plane: checks the gate and charges the meter. The error is the packet's outcome.
    #[inline(always)]
    pub fn admit(&mut self, now_ns: u64, frame_bytes: usize) -> Result<(), Reason> {
        if self.gated {
            return Err(Reason::gated(self.kind()));
        }
        let conforms = self.meter.as_mut().is_none_or(|meter| meter.conforms(now_ns, frame_bytes));
        if conforms { Ok(()) } else { Err(Reason::rate_limited(self.kind())) }
    }

    /// Whether a frame is of a protocol that the network's kind does not handle, whatever else is wrong with it.
    pub fn is_foreign(&self, frame: &[u8]) -> bool {
        let outcome = with_plane!(self.kind(), P => P::front(frame, P::settings(&self.settings)).err());
        outcome.is_some_and(|outcome| outcome.class() == Some(Class::Foreign))
    }

    /// Whether every packet reaches the plane: the network has no meter and no closed gate.
    pub fn is_unlimited(&self) -> bool {
        self.meter.is_none() && !self.gated
    }
}

/// The cache of pointers of a network that is loaded, or loaded again: those of `before` are kept whose port and addresses it
/// still has, if it caches as many and as long.
fn pointers(program: &Program, settings: Settings, before: Option<&Network>) -> Option<Pointers<Adjacency>> {
    let caching = settings.caching()?;
    let new = Pointers::new(caching.pointers_max, caching.ageing_ns);
    let kept = before.filter(|before| before.settings == settings);
    let kept = kept.and_then(|before| before.shape.pointers.clone());
    let Some(mut kept) = kept else { return Some(new) };
    kept.retain(|hop| {
        let is_there =
            |port: &VirtualPort| Adjacency::forward(port.port, port.mac, hop.dst(), port.mtu_bytes) == *hop;
        program.ports.iter().any(is_there)
    });
    Some(kept)
}
