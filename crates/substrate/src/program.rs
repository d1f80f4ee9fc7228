//! The program of one network, and the rules that make it sound.
//!
//! A sound program cannot reach outside its network: its rows select on its own ports, its routes name its own next
//! hops, and those send on its own ports under its own MAC addresses.

use std::fmt::Display;

use hue_demux::tunnel::{Encapsulation, Tunnel};
use hue_demux::{Attachment, Match, PortId, Row};
use hue_planes::group::{GROUPS_MAX, Slots};
use hue_planes::{Adjacency, AdjacencyKind, Keys, Kind, Learning, RateLimit, Settings};
use hue_tables::{
    Key, LabelTable, MacTable, NextHop, Policies, PolicyError, PolicyRows, Prefix, RouteBy, RowsByLength,
    TernaryTable, Vid,
};
use hue_wire::Mac;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::each_routes;
use crate::entries::Entries;

/// Most virtual ports of a network.
pub const PORTS_MAX: usize = 256;
/// Longest name of a network or port, bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// What is wrong with a group in a network whose entries compare bits: each says by itself what happens.
pub(crate) const NO_GROUPS: &str = "a network of this kind has no groups";

/// A virtual port: where a network touches a physical one, or the end of a tunnel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VirtualPort {
    /// Name, unique in the network.
    pub name: String,
    /// Physical port it is on; for a tunnel, an id of [`PortId::tunnel`] that no other port of the network has. Rows and next
    /// hops name it like a physical one.
    pub port: PortId,
    /// The network's own address there.
    pub mac: Mac,
    /// Longest IP packet that the port accepts, bytes.
    pub mtu_bytes: u16,
    /// The tunnel that it is the end of; `None` on a physical port.
    pub tunnel: Option<Tunnel>,
}

impl VirtualPort {
    /// The row that networks which cache pointers have for the port: where a packet arrived.
    #[must_use]
    pub const fn arrival(&self) -> Adjacency {
        Adjacency::out_with(self.port, self.mtu_bytes, None, Some(self.mac))
    }
}

/// Everything that a substrate needs to know about one network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Id on this node.
    pub vid: Vid,
    /// Name, unique on this node.
    pub name: String,
    /// How its packets are processed, and by which kind of plane.
    pub settings: Settings,
    /// Its virtual ports; rows name them by index. Group frames of their physical ports reach the network.
    pub ports: Vec<VirtualPort>,
    /// The rows that select its frames; the `vid` of each is the program's.
    pub rows: Vec<Row>,
    /// Its next hops; routes name them by index.
    pub next_hops: Vec<Adjacency>,
    /// The slots of those next hops that are groups, by row, in any order.
    pub groups: Vec<(NextHop, Slots)>,
    /// The entries of its tables, in the form of its kind.
    pub entries: Entries,
    /// Its rate limit, if any.
    pub rate_limit: Option<RateLimit>,
    /// Its share when networks compete, relative to others; at least 1.
    pub weight: u16,
    /// How its routes depend on sources, if they do. Its rows of next hops are numbered by [`RowsByLength`] then.
    pub policies: Option<Policies>,
    /// Whether its plane is stopped: all of its packets are dropped.
    pub gated: bool,
}

/// What is wrong with a program (the fault of its author).
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProgramError {
    /// A name is empty or too long.
    #[error("name '{0}': expected 1 to {NAME_BYTES_MAX} bytes")]
    Name(String),
    /// More virtual ports than [`PORTS_MAX`].
    #[error("{0} ports: at most {PORTS_MAX}")]
    Ports(usize),
    /// Two virtual ports have the same name.
    #[error("two ports are named '{0}'")]
    PortTwice(String),
    /// A virtual port's MAC address is a group address or zero.
    #[error("port '{port}': MAC {mac} is not a unicast address")]
    PortMac {
        /// Name of the virtual port.
        port: String,
        /// Its address.
        mac: Mac,
    },
    /// A virtual port's MTU is out of range.
    #[error(
        "port '{port}': MTU {mtu_bytes}: kind {kind} allows {} to {}",
        .kind.limits().mtu_bytes_min, .kind.limits().mtu_bytes_max, kind = .kind.name()
    )]
    PortMtu {
        /// Name of the virtual port.
        port: String,
        /// Its MTU.
        mtu_bytes: u16,
        /// Kind of the network.
        kind: Kind,
    },
    /// A virtual port's tunnel makes no sense, or its id is not one of its kind.
    #[error("port '{port}': {what}")]
    Tunnel {
        /// Name of the virtual port.
        port: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A row belongs to another network, refers to a missing virtual port, or selects on a physical port that its
    /// virtual port is not on.
    #[error("row for {claim}: {what}")]
    Row {
        /// What the row selects.
        claim: Match,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More next hops than a network may have.
    #[error("{count} next hops: at most {max}")]
    NextHops {
        /// How many.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A next hop uses a port that the network is not on, a source address that is not the network's there, or an MTU
    /// above the port's.
    #[error("next hop {index} ({hop}): {what}")]
    NextHop {
        /// Its row.
        index: usize,
        /// The next hop.
        hop: Adjacency,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More groups than [`GROUPS_MAX`].
    #[error("{0} groups of next hops: at most {GROUPS_MAX}")]
    Groups(usize),
    /// A group of next hops is not one, or its slots name rows that cannot be members.
    #[error("group in row {row}: {what}")]
    Group {
        /// Its row.
        row: u16,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A route names a next hop that does not exist.
    #[error("route {prefix} names next hop {hop} of {count}")]
    RouteHop {
        /// The route.
        prefix: String,
        /// Its next hop.
        hop: u16,
        /// Number of next hops.
        count: usize,
    },
    /// Two routes have the same prefix.
    #[error("two routes to {0}")]
    RouteTwice(String),
    /// The entries have the form of another kind.
    #[error("{found}: kind {kind} has {}", .kind.limits().keys, kind = .kind.name())]
    Width {
        /// What the entries are keyed by.
        found: Keys,
        /// Kind of the network.
        kind: Kind,
    },
    /// The next hops of a network that learns are not its ports.
    #[error("the next hops are not the ports in their order")]
    Ways,
    /// Two ports of a network that learns have different MTUs.
    #[error("ports '{first}' and '{second}' have different MTUs")]
    Mtus {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
    },
    /// A static MAC address is a group address or zero.
    #[error("static MAC {0} is not a unicast address")]
    StaticMac(Mac),
    /// More MAC addresses than a table has room for.
    #[error("{count} static and learnt MAC addresses: at most {max}")]
    Macs {
        /// How many.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// More entries, or entries with more different masks, than a table has room for.
    #[error(
        "{entries} entries with {masks} different masks: at most {} and {}",
        TernaryTable::ENTRIES_MAX,
        TernaryTable::MASKS_MAX
    )]
    Patterns {
        /// How many entries.
        entries: usize,
        /// How many different masks they have.
        masks: usize,
    },
    /// More labels than a table has room for.
    #[error("{count} labels: at most {}", LabelTable::ENTRIES_MAX)]
    FlatLabels {
        /// How many.
        count: usize,
    },
    /// A label is longer than those of the network.
    #[error("label {label:#034x} is longer than {bits} bits")]
    FlatLabelLength {
        /// The label.
        label: u128,
        /// Bits of the network's labels.
        bits: u8,
    },
    /// The first next hops of a network that caches pointers are not its ports, each with its MAC address.
    #[error("the first next hops are not the ports in their order")]
    Arrivals,
    /// The routes by source are wrong.
    #[error("{0}")]
    Policies(Box<PolicyError>),
    /// A network of a kind without [`Policies`] has them.
    #[error("kind {} cannot route by source", .0.name())]
    PoliciesOfKind(Kind),
    /// A route's next hop is not one for the length of its prefix.
    #[error("route {prefix} names next hop {hop}, which is for prefixes of {len} bits")]
    RouteLength {
        /// The route.
        prefix: String,
        /// Its next hop.
        hop: u16,
        /// What that is for.
        len: u8,
    },
    /// The weight is 0.
    #[error("weight 0: expected at least 1")]
    Weight,
}

/// Whether a network of this kind, with these rows of design select, has the same MAC addresses on each of two wires to a segment. It
/// has no IP addresses, whose neighbours could resolve them to an address of the other wire. Of the frames that both wires bring it,
/// it must know those that it has sent itself: by its own address, or by what its kind knows of senders.
#[must_use]
pub fn keeps_macs(kind: Kind, rows: &[Row]) -> bool {
    let limits = kind.limits();
    limits.families.is_none()
        && rows.iter().all(|row| match row.select {
            Match::Mac { .. } => true,
            Match::Port(_) => limits.keys.knows_senders(),
            Match::Inner { .. } => false,
        })
}

impl Program {
    /// The kind of its plane.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.settings.kind()
    }

    /// See [`keeps_macs`].
    #[must_use]
    pub fn keeps_macs(&self) -> bool {
        keeps_macs(self.kind(), &self.rows)
    }

    /// By which addresses of a packet it chooses a route.
    #[must_use]
    pub fn route_by(&self) -> RouteBy {
        self.policies.as_ref().map_or(RouteBy::Destination, |policies| policies.by)
    }

    /// Sizes of the tables of its policies; 0 without any.
    #[must_use]
    pub fn policy_rows(&self) -> PolicyRows {
        let Some(policies) = &self.policies else { return PolicyRows::default() };
        match self.kind().limits().keys {
            Keys::V4 => policies.rows::<u32>(),
            Keys::V6 => policies.rows::<u128>(),
            // These kinds have no policies.
            Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => {
                PolicyRows::default()
            }
        }
    }

    /// Most MAC addresses that it can have, static and learnt ones together; 0 if its kind does not learn.
    #[must_use]
    pub fn addresses_max(&self) -> usize {
        self.settings.learning().map_or(0, |learning| self.entries.macs().len() + learning.entries_max)
    }

    /// The same program without next hops and entries.
    #[must_use]
    pub fn without_tables(&self) -> Self {
        Self {
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::none(self.kind()),
            ..self.clone()
        }
    }

    /// Its virtual ports that are ends of tunnels, with their index.
    pub fn tunnels(&self) -> impl Iterator<Item = (u16, &Tunnel)> + '_ {
        self.ports.iter().zip(0u16..).filter_map(|(port, vport)| Some((vport, port.tunnel.as_ref()?)))
    }

    /// The physical ports on which group frames reach the network.
    pub fn attachments(&self) -> impl Iterator<Item = Attachment> + '_ {
        let ports = self.ports.iter().zip(0u16..).filter(|(port, _)| port.tunnel.is_none());
        ports.map(|(port, vport)| Attachment { port: port.port, vid: self.vid, vport })
    }

    /// The same program with its physical ports renumbered.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(PortId) -> PortId) -> Self {
        let number = |port: PortId| if port.is_tunnel() { port } else { number(port) };
        let mut program = self.clone();
        program.ports.iter_mut().for_each(|port| port.port = number(port.port));
        program.next_hops.iter_mut().for_each(|hop| *hop = hop.on_port(number(hop.port())));
        for row in &mut program.rows {
            match &mut row.select {
                Match::Mac { port, .. } | Match::Port(port) | Match::Inner { port: Some(port), .. } => {
                    *port = number(*port);
                }
                Match::Inner { port: None, .. } => {}
            }
        }
        program
    }

    /// Checks that the program is sound by itself; the substrate finds conflicts with other programs.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), ProgramError> {
        check_name(&self.name)?;
        if self.weight == 0 {
            return Err(ProgramError::Weight);
        }
        self.check_ports()?;
        for row in &self.rows {
            self.check_row(row).map_err(|what| ProgramError::Row { claim: row.select, what })?;
        }
        let (count, max) = (self.next_hops.len(), self.kind().limits().next_hops_max);
        if count > max {
            return Err(ProgramError::NextHops { count, max });
        }
        self.check_groups()?;
        for (index, hop) in
            self.next_hops.iter().enumerate().filter(|(_, hop)| hop.kind() != AdjacencyKind::Group)
        {
            check_hop_of(self.kind(), &self.ports, hop).map_err(|what| ProgramError::NextHop {
                index,
                hop: *hop,
                what,
            })?;
        }
        self.check_labels()?;
        if self.entries.keys() != self.kind().limits().keys {
            return Err(ProgramError::Width { found: self.entries.keys(), kind: self.kind() });
        }
        if let Some(learning) = self.settings.learning() {
            self.check_learning(learning)?;
        }
        if let Some((mac, _)) = self.entries.macs().iter().find(|(mac, _)| !mac.is_unicast()) {
            return Err(ProgramError::StaticMac(*mac));
        }
        self.check_policies()?;
        self.check_patterns()?;
        self.check_flat_labels()?;
        each_routes!(&self.entries, routes => check_entries(routes, count)?);
        check_entries(self.entries.patterns(), count)?;
        check_entries(self.entries.labels(), count)?;
        check_entries(self.entries.macs(), count)
    }

    /// Rows with labels name rows of ports.
    fn check_labels(&self) -> Result<(), ProgramError> {
        let kind = |row: u16| self.next_hops.get(usize::from(row)).map(Adjacency::kind);
        let leads = |row: &Adjacency| {
            row.kind() != AdjacencyKind::Labels || kind(row.then()) == Some(AdjacencyKind::Port)
        };
        match self.next_hops.iter().enumerate().find(|(_, row)| !leads(row)) {
            Some((index, hop)) => {
                let what = "the next hop after its labels is no port";
                Err(ProgramError::NextHop { index, hop: *hop, what })
            }
            None => Ok(()),
        }
    }

    /// As many patterns and masks as a table has room for.
    fn check_patterns(&self) -> Result<(), ProgramError> {
        let patterns = self.entries.patterns();
        let mut masks: Vec<u128> = patterns.iter().map(|(pattern, _)| pattern.mask()).collect();
        masks.sort_unstable();
        masks.dedup();
        let (entries, masks) = (patterns.len(), masks.len());
        if entries > TernaryTable::ENTRIES_MAX || masks > TernaryTable::MASKS_MAX {
            return Err(ProgramError::Patterns { entries, masks });
        }
        Ok(())
    }

    /// As many labels as a table has room for, none longer than the network's, and the rows of the ports.
    fn check_flat_labels(&self) -> Result<(), ProgramError> {
        let Settings::Rofl(settings) = self.settings else { return Ok(()) };
        let labels = self.entries.labels();
        if labels.len() > LabelTable::ENTRIES_MAX {
            return Err(ProgramError::FlatLabels { count: labels.len() });
        }
        let bits = settings.label_bits();
        let is_long = |label: u128| label.checked_shl(bits.into()).unwrap_or_default() != 0;
        if let Some((label, _)) = labels.iter().find(|(label, _)| is_long(*label)) {
            return Err(ProgramError::FlatLabelLength { label: *label, bits });
        }
        let mut rows = self.next_hops.iter();
        let is_row = |port: &VirtualPort| rows.next() == Some(&port.arrival());
        if self.ports.iter().all(is_row) { Ok(()) } else { Err(ProgramError::Arrivals) }
    }

    fn check_policies(&self) -> Result<(), ProgramError> {
        let Some(policies) = &self.policies else { return Ok(()) };
        let wrong = |error| ProgramError::Policies(Box::new(error));
        match self.kind().limits().keys {
            Keys::V4 => policies.table::<u32>().map(drop).map_err(wrong)?,
            Keys::V6 => policies.table::<u128>().map(drop).map_err(wrong)?,
            Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => {
                return Err(ProgramError::PoliciesOfKind(self.kind()));
            }
        }
        each_routes!(&self.entries, routes => routes.iter().try_for_each(check_length)?);
        Ok(())
    }

    /// Each group has slots, and each slot names a row that is no group.
    fn check_groups(&self) -> Result<(), ProgramError> {
        if self.groups.len() > GROUPS_MAX {
            return Err(ProgramError::Groups(self.groups.len()));
        }
        let kind = |row: NextHop| self.next_hops.get(usize::from(row.get())).map(Adjacency::kind);
        let mut rows: Vec<NextHop> = self.groups.iter().map(|(row, _)| *row).collect();
        rows.sort_unstable();
        let fault = |row: NextHop, what| Err(ProgramError::Group { row: row.get(), what });
        if let Some([row, _]) = rows.array_windows().find(|[one, other]| one == other) {
            return fault(*row, "its slots are given twice");
        }
        if let Some(row) = rows.first().filter(|_| self.kind().limits().keys == Keys::Bits) {
            return fault(*row, NO_GROUPS);
        }
        for (row, slots) in &self.groups {
            if kind(*row) != Some(AdjacencyKind::Group) {
                return fault(*row, "the next hop is no group");
            }
            check_members(slots, kind).or_else(|what| fault(*row, what))?;
        }
        let is_group = |(hop, _): &(&Adjacency, NextHop)| hop.kind() == AdjacencyKind::Group;
        let mut all = self.next_hops.iter().zip((0..).filter_map(NextHop::new)).filter(is_group);
        match all.find(|(_, row)| rows.binary_search(row).is_err()) {
            Some((_, row)) => fault(row, "it has no slots"),
            None => Ok(()),
        }
    }

    /// Networks that learn have a next hop for each port, in their order, and the same MTU at all of them, so that a frame
    /// fits every port or none.
    fn check_learning(&self, learning: Learning) -> Result<(), ProgramError> {
        let expected = self.ports.iter().map(|port| Adjacency::out(port.port, port.mtu_bytes));
        if !self.next_hops.iter().copied().eq(expected) {
            return Err(ProgramError::Ways);
        }
        if let Some(other) = self.ports.iter().find(|port| port.mtu_bytes != self.ports[0].mtu_bytes) {
            let (first, second) = (&self.ports[0], other);
            return Err(ProgramError::Mtus { first: first.name.clone(), second: second.name.clone() });
        }
        let (count, max) = (learning.entries_max + self.entries.len(), MacTable::ENTRIES_MAX);
        if count > max { Err(ProgramError::Macs { count, max }) } else { Ok(()) }
    }

    fn check_ports(&self) -> Result<(), ProgramError> {
        if self.ports.len() > PORTS_MAX {
            return Err(ProgramError::Ports(self.ports.len()));
        }
        let mut names: Vec<_> = self.ports.iter().map(|port| &port.name).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, other]| one == other) {
            return Err(ProgramError::PortTwice((*name).clone()));
        }
        for port in &self.ports {
            check_name(&port.name)?;
            self.check_tunnel(port).map_err(|what| ProgramError::Tunnel { port: port.name.clone(), what })?;
            if !port.mac.is_unicast() {
                return Err(ProgramError::PortMac { port: port.name.clone(), mac: port.mac });
            }
            let (kind, limits) = (self.kind(), self.kind().limits());
            if !(limits.mtu_bytes_min..=limits.mtu_bytes_max).contains(&port.mtu_bytes) {
                return Err(ProgramError::PortMtu {
                    port: port.name.clone(),
                    mtu_bytes: port.mtu_bytes,
                    kind,
                });
            }
        }
        Ok(())
    }

    fn check_tunnel(&self, port: &VirtualPort) -> Result<(), &'static str> {
        let Some(tunnel) = &port.tunnel else {
            return if port.port.is_tunnel() { Err("the port's id is one of tunnels") } else { Ok(()) };
        };
        if !port.port.is_tunnel() {
            return Err("the tunnel's id is one of physical ports");
        }
        if self.ports.iter().filter(|other| other.port == port.port).count() > 1 {
            return Err("another tunnel of the network has the same id");
        }
        if tunnel.over == self.vid {
            return Err("the network carries its own tunnel");
        }
        if tunnel.encapsulation == Encapsulation::Ipip && !self.kind().limits().keys.has_routes() {
            return Err("an IPIP tunnel does not carry frames");
        }
        tunnel.check()
    }

    fn check_row(&self, row: &Row) -> Result<(), &'static str> {
        if row.vid != self.vid {
            return Err("the row belongs to another network");
        }
        let Some(vport) = self.ports.get(usize::from(row.vport)) else {
            return Err("the network does not have this virtual port");
        };
        let port = match row.select {
            Match::Mac { port, .. } | Match::Port(port) | Match::Inner { port: Some(port), .. } => port,
            Match::Inner { port: None, .. } => return Ok(()),
        };
        if port == vport.port { Ok(()) } else { Err("its virtual port is on another physical port") }
    }
}

/// Checks that the next hop of a route is one for the length of its prefix.
fn check_length<K: Key>((prefix, hop): &(Prefix<K>, NextHop)) -> Result<(), ProgramError> {
    match RowsByLength::<K>::len(hop.get()) {
        Some(len) if len != prefix.len() => {
            Err(ProgramError::RouteLength { prefix: prefix.to_string(), hop: hop.get(), len })
        }
        _ => Ok(()),
    }
}

/// Checks the routes, or other entries, of a network with `count` next hops.
fn check_entries<T: Ord + Copy + Display>(
    entries: &[(T, NextHop)],
    count: usize,
) -> Result<(), ProgramError> {
    for (key, hop) in entries {
        if usize::from(hop.get()) >= count {
            return Err(ProgramError::RouteHop { prefix: key.to_string(), hop: hop.get(), count });
        }
    }
    let mut keys: Vec<_> = entries.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    match keys.array_windows().find(|[one, other]| one == other) {
        Some([key, _]) => Err(ProgramError::RouteTwice(key.to_string())),
        None => Ok(()),
    }
}

/// Checks that slots name rows that can be members of a group; `kind` says what a row is.
pub(crate) fn check_members(
    slots: &Slots,
    kind: impl Fn(NextHop) -> Option<AdjacencyKind>,
) -> Result<(), &'static str> {
    let mut last = None;
    for row in slots.rows() {
        if last.replace(*row) == Some(*row) {
            continue;
        }
        match kind(*row) {
            None => return Err("a slot names a next hop that does not exist"),
            Some(AdjacencyKind::None) => return Err("a slot names no route"),
            Some(AdjacencyKind::Group) => return Err("a slot names a group"),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that a network with these virtual ports can use a next hop, so that routes may refer to it.
///
/// # Errors
/// What is wrong with it.
pub fn check_hop(ports: &[VirtualPort], hop: &Adjacency) -> Result<(), &'static str> {
    let mut here = ports.iter().filter(|port| port.port == hop.port());
    match hop.kind() {
        AdjacencyKind::None => Err("a route cannot use it"),
        AdjacencyKind::Labels => Err("a network of this kind has no rows with labels"),
        AdjacencyKind::Group => Err("a group is given by its slots"),
        AdjacencyKind::Local | AdjacencyKind::Drop => Ok(()),
        AdjacencyKind::Port => match here.map(|port| port.mtu_bytes).max() {
            None => Err("the network is not on that port"),
            Some(mtu_bytes) if hop.mtu_bytes() > mtu_bytes => Err("the MTU is above the MTU of the port"),
            Some(_) => Ok(()),
        },
        AdjacencyKind::Glean => here.next().map(drop).ok_or("the network is not on that port"),
        AdjacencyKind::Forward => {
            match here.filter(|port| port.mac == hop.src()).map(|port| port.mtu_bytes).max() {
                None => Err("the network does not have this address on that port"),
                Some(mtu_bytes) if hop.mtu_bytes() > mtu_bytes => Err("the MTU is above the MTU of the port"),
                Some(_) => Ok(()),
            }
        }
    }
}

/// The same for a network of a kind: only entries of a table of patterns can say that packets are dropped, only those of
/// labels have labels, and those of kind `extract` name no neighbours. Where packets with labels leave is checked with the other rows ([`Program::check`]).
pub(crate) fn check_hop_of(kind: Kind, ports: &[VirtualPort], hop: &Adjacency) -> Result<(), &'static str> {
    if hop.kind() == AdjacencyKind::Drop && kind.limits().keys != Keys::Bits {
        return Err("a network of this kind has no rows that drop");
    }
    if kind == Kind::Extract && matches!(hop.kind(), AdjacencyKind::Forward | AdjacencyKind::Glean) {
        return Err("a network of this kind has no neighbours");
    }
    if hop.kind() == AdjacencyKind::Labels && kind == Kind::Mpls {
        return Ok(());
    }
    check_hop(ports, hop)
}

fn check_name(name: &str) -> Result<(), ProgramError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(ProgramError::Name(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hue_planes::ipv4::NEXT_HOPS_MAX;

    use super::*;

    const P0: PortId = PortId::new(0);
    const P1: PortId = PortId::new(1);
    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 9]);

    /// Makes a sound program unsound.
    type Plant = fn(&mut Program);

    fn sound() -> Program {
        let vid = Vid::new(1).unwrap();
        let hop = |index| NextHop::new(index).unwrap();
        Program {
            vid,
            name: "red".to_owned(),
            settings: Settings::of(Kind::Ipv4),
            ports: vec![VirtualPort {
                name: "left".to_owned(),
                port: P0,
                mac: OWN,
                mtu_bytes: 1500,
                tunnel: None,
            }],
            rows: vec![
                Row { vid, vport: 0, select: Match::Mac { port: P0, mac: OWN } },
                Row {
                    vid,
                    vport: 0,
                    select: Match::Inner { port: None, prefix: "10.0.0.0/8".parse().unwrap() },
                },
            ],
            next_hops: vec![
                Adjacency::local(),
                Adjacency::glean(P0),
                Adjacency::forward(P0, OWN, OTHER, 1500),
            ],
            groups: Vec::new(),
            entries: Entries::Lpm32(vec![
                ("10.0.0.0/8".parse().unwrap(), hop(2)),
                ("10.0.0.1/32".parse().unwrap(), hop(0)),
            ]),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    #[test]
    fn a_sound_program_passes() {
        assert_eq!(sound().check(), Ok(()));
        let attachment = Attachment { port: P0, vid: sound().vid, vport: 0 };
        assert_eq!(sound().attachments().collect::<Vec<_>>(), [attachment]);
    }

    fn hop(row: u16) -> NextHop {
        NextHop::new(row).unwrap()
    }

    fn slots(rows: &[u16]) -> Slots {
        Slots::new(rows.iter().map(|row| hop(*row)).collect::<Vec<_>>()).unwrap()
    }

    /// Adds row 3, a group with these slots.
    fn group(program: &mut Program, rows: &[u16]) {
        program.next_hops.push(Adjacency::group(0));
        program.groups.push((hop(3), slots(rows)));
    }

    #[test]
    fn a_group_of_next_hops_is_sound() {
        let mut program = sound();
        group(&mut program, &[2, 1]);
        assert_eq!(program.check(), Ok(()));
    }

    #[test]
    fn each_fault_is_named() {
        let faults: [(&str, Plant); 26] = [
            ("name ''", |p| p.name.clear()),
            ("expected 1 to 255 bytes", |p| p.name = "x".repeat(NAME_BYTES_MAX + 1)),
            ("weight 0", |p| p.weight = 0),
            ("257 ports", |p| p.ports = vec![p.ports[0].clone(); PORTS_MAX + 1]),
            ("two ports are named 'left'", |p| p.ports.push(p.ports[0].clone())),
            ("MAC ff:ff:ff:ff:ff:ff is not a unicast", |p| p.ports[0].mac = Mac::BROADCAST),
            ("MTU 67", |p| p.ports[0].mtu_bytes = 67),
            ("MTU 9203", |p| p.ports[0].mtu_bytes = 9203),
            ("belongs to another network", |p| p.rows[0].vid = Vid::new(2).unwrap()),
            ("does not have this virtual port", |p| p.rows[1].vport = 1),
            ("on another physical port", |p| p.rows[0].select = Match::Port(P1)),
            ("65536 next hops", |p| p.next_hops = vec![Adjacency::local(); NEXT_HOPS_MAX + 1]),
            ("next hop 1 (none)", |p| p.next_hops[1] = Adjacency::NONE),
            ("is not on that port", |p| p.next_hops[1] = Adjacency::glean(P1)),
            ("does not have this address", |p| p.next_hops[2] = Adjacency::forward(P0, OTHER, OTHER, 1500)),
            ("MTU is above", |p| p.next_hops[2] = Adjacency::forward(P0, OWN, OTHER, 1501)),
            ("names next hop 2 of 2", |p| p.next_hops.truncate(2)),
            ("two routes to 10.0.0.0/8", |p| {
                let routes = p.entries.lpm32_mut();
                routes.push(routes[0]);
            }),
            ("group in row 1: it has no slots", |p| p.next_hops[1] = Adjacency::group(0)),
            ("group in row 2: the next hop is no group", |p| p.groups = vec![(hop(2), slots(&[1]))]),
            ("group in row 3: a slot names a next hop that does not exist", |p| group(p, &[2, 9])),
            ("group in row 3: a slot names a group", |p| group(p, &[2, 3])),
            ("group in row 3: its slots are given twice", |p| {
                group(p, &[2, 1]);
                p.groups.push(p.groups[0].clone());
            }),
            ("group in row 3: a network of this kind has no groups", |p| {
                p.settings = Settings::of(Kind::Extract);
                group(p, &[2, 1]);
            }),
            ("a network of this kind has no neighbours", |p| p.settings = Settings::of(Kind::Extract)),
            ("keys of 128 bits", |p| p.entries = Entries::Lpm128(Vec::new())),
        ];
        for (text, plant) in faults {
            let mut program = sound();
            plant(&mut program);
            let error = program.check().expect_err(text).to_string();
            assert!(error.contains(text), "expected '{text}', found '{error}'");
        }
    }

    #[test]
    fn limits_are_reached_exactly() {
        let mut program = sound();
        program.next_hops.resize(NEXT_HOPS_MAX, Adjacency::local());
        program.name = "x".repeat(NAME_BYTES_MAX);
        let port = |n: usize| VirtualPort { name: format!("v{n}"), ..program.ports[0].clone() };
        program.ports = (0..PORTS_MAX).map(port).collect();
        assert_eq!(program.check(), Ok(()));
    }
}
