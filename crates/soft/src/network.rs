//! One loaded network: the parts that the fast path uses, and those that only loading uses.

use std::sync::Arc;

use hue_demux::Row;
use hue_planes::{Adjacency, Class, Counters, Kind, Meter, Plane, RateLimit, Reason, Settings, with_plane};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Program, SwitchCounts, VirtualPort};
use hue_tables::{NextHop, RouteBy, Vid};

use crate::policies::Table;
use crate::switch::Switch;

/// Next-hop rows, followed by a row for "no route".
#[derive(Clone, Debug)]
pub struct Hops(Box<[Adjacency]>);

impl Hops {
    pub fn new(rows: &[Adjacency]) -> Self {
        Self(rows.iter().copied().chain([Adjacency::NONE]).collect())
    }

    /// The row of a table word; "no route", the largest word, gives [`Adjacency::NONE`].
    #[inline(always)]
    pub fn get(&self, word: u16) -> &Adjacency {
        self.0.get(usize::from(word)).unwrap_or(&Adjacency::NONE)
    }

    /// Changes rows; there are `count` of them then. New rows that are not set are "no route".
    pub fn set(&mut self, rows: &[(NextHop, Adjacency)], count: usize) {
        if count != self.count() {
            let mut all = std::mem::take(&mut self.0).into_vec();
            all.truncate(count);
            all.resize(count + 1, Adjacency::NONE);
            self.0 = all.into_boxed_slice();
        }
        for (index, row) in rows {
            if let Some(place) = self.0.get_mut(..count).and_then(|all| all.get_mut(usize::from(index.get())))
            {
                *place = *row;
            }
        }
    }

    /// The rows that a route may name.
    pub fn rows(&self) -> &[Adjacency] {
        self.0.get(..self.count()).unwrap_or_default()
    }

    /// How many rows a route may name.
    pub fn count(&self) -> usize {
        self.0.len().saturating_sub(1)
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
    /// Those of a network whose routes depend on sources.
    pub policies: Option<Arc<Table>>,
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
            policies: Table::of(program),
            counters: same_kind.map_or(Counters::new(settings.kind()), |before| before.counters),
            vid: program.vid,
            hops: Hops::new(&program.next_hops),
            settings,
            gated: program.gated,
            meter,
            shape: Box::new(Shape {
                name: program.name.clone(),
                ports: program.ports.clone(),
                rows: program.rows.clone(),
                rate_limit: program.rate_limit,
                route_by: program.route_by(),
            }),
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
