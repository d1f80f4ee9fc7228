//! Decodes documents from trees: the fields that exist, and the values that each can have.
//!
//! Flow: cursor → **drafts** (typed values with their places; invalid ones are missing) → validator →
//! `types`. Decoding continues after an error, so that one load reports all of them.

use std::net::IpAddr;

use hue_planes::group::{MEMBERS_MAX, WEIGHT_MAX};
use hue_planes::{Keys, Kind, l2, mpls::Ttl, rofl as rofl_plane, splice};
use hue_tables::{AnyPrefix, RouteBy, Vid};
use hue_wire::Mac;

use crate::address::{self, Family};
use crate::bits::{self, BitRate, Bits};
use crate::card::{Card, PCI_ADDRESS, PciAddress, Placement, Twin};
use crate::decode::Cursor;
use crate::error::one_of;
use crate::extract::{self, Entry};
use crate::limits;
use crate::live::{Cores, InterfaceName, Memory, PortDriver, PuntLimit, Resources};
use crate::mpls::{self, LabelEntry};
use crate::needs::{Bandwidth, Latency, Needs, Scheduler, SchedulerKind, SoftCapacity};
use crate::rofl::{self, FlatLabel};
use crate::table::{TableBytes, TableLimit};
use crate::tunnel;
use crate::types::{
    ApiVersion, Bucket, Capability, Colour, Martians, Metadata, Name, Neighbour, NetworkPort, NetworkSpec,
    NodeLink, NodePort, NodeSpec, On, Plane, RateLimit, Route, RouteMember, Select, StaticMac, Target,
};

const NAME: &str = "a name of 1 to 63 letters, digits, '-', '_' or '.', beginning with a letter or digit";
pub(crate) const MAC: &str = "a MAC address such as 02:00:00:00:01:01";
const INTERFACE_NAME: &str = "the name of a Linux interface: 1 to 15 visible characters, no '/' or ':'";
const MEMORY: &str = "an amount of memory from 4Mi to 1024Gi, such as 256Mi or 2Gi";
const TABLE_BYTES: &str = "an amount of table memory from 4Ki to 64Gi, such as 512Ki or 2Mi";
const BANDWIDTH: &str = "a bandwidth from 1kbit/s to 1000Gbit/s, such as 200Mbit/s";
const COLOUR: &str = "a colour such as \"#d62728\"";

/// A value with its place; `None` if it was invalid and reported.
pub(crate) struct Item<'t, T> {
    pub(crate) at: Cursor<'t>,
    pub(crate) value: Option<T>,
}

/// A list without its invalid entries.
pub(crate) struct Items<'t, T> {
    /// Entries in the order of the file.
    pub(crate) list: Vec<Item<'t, T>>,
    /// Whether no entry is missing.
    pub(crate) complete: bool,
}

impl<T> Items<'_, T> {
    const EMPTY: Self = Self { list: Vec::new(), complete: true };

    pub(crate) fn take(self) -> Option<Vec<T>> {
        if self.complete { self.list.into_iter().map(|item| item.value).collect() } else { None }
    }
}

/// A `Node` document.
pub(crate) struct NodeDraft<'t> {
    pub(crate) at: Cursor<'t>,
    pub(crate) name: Option<Name>,
    pub(crate) ports: Items<'t, NodePort>,
    pub(crate) links: Items<'t, NodeLink>,
    pub(crate) card: Option<CardDraft<'t>>,
    /// `None` if it was invalid.
    pub(crate) scheduler: Option<Option<Scheduler>>,
}

/// The card of a node.
pub(crate) struct CardDraft<'t> {
    /// One of the two; `None` if it was invalid.
    pub(crate) device: Option<(Option<Twin>, Option<PciAddress>)>,
    pub(crate) ports: Items<'t, Name>,
    pub(crate) nics: Items<'t, Name>,
    /// `None` if it was invalid.
    pub(crate) drained: Option<Option<bool>>,
}

impl CardDraft<'_> {
    /// Whether it is simulated, or may be: it was invalid.
    pub(crate) fn is_twin(&self) -> bool {
        self.device.as_ref().is_none_or(|(twin, _)| twin.is_some())
    }
}

/// A `Network` document.
pub(crate) struct NetworkDraft<'t> {
    pub(crate) at: Cursor<'t>,
    /// The `spec` mapping, or the document if it has none.
    pub(crate) spec: Cursor<'t>,
    pub(crate) name: Option<Name>,
    pub(crate) colour: Option<Colour>,
    pub(crate) vid: Option<Vid>,
    pub(crate) plane: Option<Plane>,
    pub(crate) placement: Option<Placement>,
    pub(crate) needs: Option<Needs>,
    pub(crate) select: Option<Select>,
    pub(crate) ports: Items<'t, NetworkPort>,
    pub(crate) routes: Items<'t, Route>,
    pub(crate) neighbours: Items<'t, Neighbour>,
    pub(crate) static_macs: Items<'t, StaticMac>,
    pub(crate) entries: Items<'t, Entry>,
    pub(crate) flat_labels: Items<'t, FlatLabel>,
    pub(crate) labels: Items<'t, LabelEntry>,
    pub(crate) weight: Option<u16>,
    pub(crate) gated: Option<bool>,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) punt_limit: Option<PuntLimit>,
    pub(crate) table: Option<TableLimit>,
    pub(crate) resources: Option<Resources>,
}

impl NetworkDraft<'_> {
    /// The typed network; `None` if any part was invalid.
    pub(crate) fn finish(self) -> Option<(Metadata, NetworkSpec)> {
        let spec = NetworkSpec {
            colour: self.colour,
            vid: self.vid,
            plane: self.plane?,
            placement: self.placement?,
            needs: self.needs,
            select: self.select?,
            ports: self.ports.take()?,
            routes: self.routes.take()?,
            neighbours: self.neighbours.take()?,
            static_macs: self.static_macs.take()?,
            entries: self.entries.take()?,
            flat_labels: self.flat_labels.take()?,
            labels: self.labels.take()?,
            weight: self.weight?,
            gated: self.gated?,
            rate_limit: self.rate_limit,
            punt_limit: self.punt_limit?,
            table: self.table,
            resources: self.resources,
        };
        Some((Metadata { name: self.name? }, spec))
    }
}

impl NodeDraft<'_> {
    /// The typed node; `None` if any part was invalid.
    pub(crate) fn finish(self) -> Option<(Metadata, NodeSpec)> {
        let card = match self.card {
            Some(card) => {
                let (twin, pci) = card.device?;
                let (ports, nics) = (card.ports.take()?, card.nics.take()?);
                Some(Card { twin, pci, ports, nics, drained: card.drained? })
            }
            None => None,
        };
        let (mut ports, links) = (self.ports.take()?, self.links.take()?);
        ports.extend(links.iter().flat_map(NodeLink::ports));
        let spec = NodeSpec { ports, links, card, scheduler: self.scheduler? };
        Some((Metadata { name: self.name? }, spec))
    }
}

/// A document of any kind.
pub(crate) enum Draft<'t> {
    Node(Box<NodeDraft<'t>>),
    Network(Box<NetworkDraft<'t>>),
}

/// Decodes one document; `None` if its kind is unknown.
pub(crate) fn document<'t>(at: Cursor<'t>) -> Option<Draft<'t>> {
    at.mapping(&["apiVersion", "kind", "metadata", "spec"])?;
    if let Some(version) = at.required("apiVersion", ApiVersion::V1_TEXT) {
        version.word(&[ApiVersion::V1_TEXT]);
    }
    let kind = at.required("kind", "Node or Network")?;
    if kind.text("Node or Network") == Some(crate::topology::KIND) {
        let hint =
            "`hueplane apply` and `hueplane topo render` divide it into the documents of nodes".to_owned();
        kind.fault("a Topology", "a Node or a Network of this node", Some(hint));
        return None;
    }
    match kind.word(&["Node", "Network"])? {
        "Node" => Some(Draft::Node(Box::new(node(at)))),
        _ => Some(Draft::Network(Box::new(network(at)))),
    }
}

fn metadata(at: &Cursor<'_>) -> Option<Name> {
    let metadata = at.required("metadata", "a mapping with name")?;
    metadata.mapping(&["name"])?;
    metadata.required("name", NAME)?.parse(NAME)
}

fn node(at: Cursor<'_>) -> NodeDraft<'_> {
    let name = metadata(&at);
    let spec = at.required("spec", "a mapping with ports");
    let spec = spec.filter(|spec| spec.mapping(&["ports", "links", "card", "scheduler"]).is_some());
    let list = "a list of ports";
    let ports = spec.as_ref().and_then(|spec| spec.required("ports", list));
    let ports = ports.map(|at| items(at, limits::NODE_PORTS_MAX, list, node_port));
    let links = spec.as_ref().and_then(|spec| spec.field("links"));
    let links =
        links.map_or(Items::EMPTY, |at| items(at, limits::NODE_LINKS_MAX, "a list of links", node_link));
    let card = spec.as_ref().and_then(|spec| spec.field("card")).map(|at| card(&at));
    let scheduler = spec.map_or(Some(None), |spec| optional(&spec, "scheduler", scheduler));
    let ports = ports.unwrap_or(Items { list: Vec::new(), complete: false });
    NodeDraft { name, ports, links, card, scheduler, at }
}

fn card<'t>(at: &Cursor<'t>) -> CardDraft<'t> {
    let fields = at.mapping(&["twin", "pci", "ports", "nics", "drained"]);
    let list = "a list of port names of the node";
    let ports = fields.and_then(|_| at.required("ports", list));
    let names = |at| items(at, limits::CARD_PORTS_MAX, list, |at| at.parse::<Name>(NAME));
    let ports = ports.map(names);
    let nics = fields.and_then(|_| at.field("nics")).map_or(Items::EMPTY, names);
    let device = fields.and_then(|_| match (at.field("twin"), at.field("pci")) {
        (Some(_), Some(pci)) => {
            pci.fault("a second card".to_owned(), "either twin or pci", None);
            None
        }
        (None, Some(pci)) => Some((None, Some(pci.parse(PCI_ADDRESS)?))),
        (None, None) => {
            at.required("twin", "a mapping with image, or pci instead");
            None
        }
        (Some(twin), None) => {
            twin.mapping(&["image"])?;
            let image = twin.required("image", "the name of an image")?.parse::<Name>(NAME)?;
            Some((Some(Twin { image }), None))
        }
    });
    let drained = fields.and_then(|_| optional(at, "drained", Cursor::flag));
    CardDraft { device, nics, drained, ports: ports.unwrap_or(Items { list: Vec::new(), complete: false }) }
}

fn scheduler(at: &Cursor<'_>) -> Option<Scheduler> {
    at.mapping(&["kind", "from_traffic", "soft", "card_bandwidth", "move_cost"])?;
    let from_traffic = optional(at, "from_traffic", Cursor::flag);
    let kind = optional(at, "kind", |at| at.choice(SchedulerKind::ALL, SchedulerKind::name));
    let soft = optional(at, "soft", |at| {
        at.mapping(&["cores", "bandwidth"])?;
        let cores = optional(at, "cores", |at| at.number(1, limits::FORWARDING_CORES_MAX, ""));
        let bandwidth = optional(at, "bandwidth", bandwidth);
        Some(SoftCapacity { cores: cores?, bandwidth: bandwidth? })
    });
    let card_bandwidth = optional(at, "card_bandwidth", bandwidth);
    let move_cost = optional(at, "move_cost", bandwidth);
    Some(Scheduler {
        kind: kind?.unwrap_or_default(),
        from_traffic: from_traffic?.unwrap_or_default(),
        soft: soft?.unwrap_or_default(),
        card_bandwidth: card_bandwidth?,
        move_cost: move_cost?,
    })
}

fn bandwidth(at: &Cursor<'_>) -> Option<Bandwidth> {
    at.parse(BANDWIDTH)
}

fn node_port(at: &Cursor<'_>) -> Option<NodePort> {
    at.mapping(&["name", "mtu", "interface", "driver", "bandwidth"])?;
    let name = at.required("name", NAME).and_then(|name| name.parse::<Name>(NAME));
    let mtu = optional(at, "mtu", mtu);
    let interface = optional(at, "interface", |at| at.parse::<InterfaceName>(INTERFACE_NAME));
    let driver = optional(at, "driver", driver);
    let bandwidth = optional(at, "bandwidth", bandwidth);
    Some(NodePort {
        name: name?,
        mtu: mtu?.unwrap_or(limits::MTU_DEFAULT),
        interface: interface?,
        driver: driver?.unwrap_or_default(),
        bandwidth: bandwidth?,
        peer: None,
    })
}

fn node_link(at: &Cursor<'_>) -> Option<NodeLink> {
    at.mapping(&["ends", "mtu", "bandwidth"])?;
    const ENDS: &str = "a list of two names, such as [red-blue, blue-red]";
    let ends = at.required("ends", ENDS).and_then(|at| {
        let names = items(at.clone(), 2, ENDS, |at| at.parse::<Name>(NAME));
        let (complete, count) = (names.complete, names.list.len());
        match <[Name; 2]>::try_from(names.take()?) {
            Ok(ends) => Some(ends),
            Err(_) if complete => {
                at.fault(format!("a list of {count}"), ENDS, None);
                None
            }
            Err(_) => None,
        }
    });
    let mtu = optional(at, "mtu", mtu);
    let bandwidth = optional(at, "bandwidth", bandwidth);
    Some(NodeLink { ends: ends?, mtu: mtu?.unwrap_or(limits::MTU_DEFAULT), bandwidth: bandwidth? })
}

fn driver(at: &Cursor<'_>) -> Option<PortDriver> {
    at.choice(PortDriver::ALL, PortDriver::name)
}

/// Decodes every entry of a list. If `entry` returns `None`, it must have reported why.
pub(crate) fn items<'t, T>(
    at: Cursor<'t>,
    max: usize,
    expected: &str,
    entry: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Items<'t, T> {
    let Some(cursors) = at.list(max, expected) else {
        return Items { list: Vec::new(), complete: false };
    };
    let mut complete = true;
    let mut list = Vec::with_capacity(cursors.len());
    for at in cursors {
        let before = at.faults();
        let value = entry(&at);
        complete &= value.is_some() && at.faults() == before;
        list.push(Item { at, value });
    }
    Items { list, complete }
}

/// Decodes an optional field: `Some(None)` if it does not exist, `None` if it is invalid.
pub(crate) fn optional<'t, T>(
    at: &Cursor<'t>,
    name: &str,
    decode: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Option<Option<T>> {
    match at.field(name) {
        Some(field) => decode(&field).map(Some),
        None => Some(None),
    }
}

const NETWORK_FIELDS: [&str; 19] = [
    "colour",
    "vid",
    "plane",
    "placement",
    "needs",
    "select",
    "ports",
    "routes",
    "neighbours",
    "static_macs",
    "entries",
    "flat_labels",
    "labels",
    "weight",
    "gated",
    "rate_limit",
    "punt_limit",
    "table",
    "resources",
];

fn network(at: Cursor<'_>) -> NetworkDraft<'_> {
    let name = metadata(&at);
    let spec = at.required("spec", "a mapping with plane and ports");
    let spec = spec.filter(|spec| spec.mapping(&NETWORK_FIELDS).is_some());
    let Some(spec) = spec else {
        return NetworkDraft {
            spec: at.clone(),
            at,
            name,
            colour: None,
            vid: None,
            plane: None,
            placement: None,
            needs: None,
            select: None,
            ports: Items { list: Vec::new(), complete: false },
            routes: Items::EMPTY,
            neighbours: Items::EMPTY,
            static_macs: Items::EMPTY,
            entries: Items::EMPTY,
            flat_labels: Items::EMPTY,
            labels: Items::EMPTY,
            weight: None,
            gated: None,
            rate_limit: None,
            punt_limit: None,
            table: None,
            resources: None,
        };
    };
    let plane = spec.required("plane", "a mapping with kind").and_then(|at| plane(&at));
    let family = plane.as_ref().map_or(Family::Any, |plane| Family::of(plane.kind));
    let kind = plane.as_ref().map(|plane| plane.kind);
    let is_legal = |field: &str| legal(&spec, kind, field);
    let ports = "a list of virtual ports";
    let ports = spec
        .required("ports", ports)
        .map(|at| items(at, limits::NETWORK_PORTS_MAX, ports, |at| network_port(at, family)));
    let list = |name| spec.field(name).filter(|_| is_legal(name));
    let routes =
        list("routes").map(|at| items(at, limits::ROUTES_MAX, "a list of routes", |at| route(at, family)));
    let neighbours = list("neighbours")
        .map(|at| items(at, limits::NEIGHBOURS_MAX, "a list of neighbours", |at| neighbour(at, family)));
    let static_macs = list("static_macs")
        .map(|at| items(at, limits::STATIC_MACS_MAX, "a list of MAC addresses", static_mac));
    let entries =
        list("entries").map(|at| items(at, limits::ENTRIES_MAX, "a list of entries", extract::entry));
    let flat_labels =
        list("flat_labels").map(|at| items(at, limits::FLAT_LABELS_MAX, "a list of labels", rofl::entry));
    let labels = list("labels").map(|at| items(at, limits::ENTRIES_MAX, "a list of labels", mpls::entry));
    let whole = family == Family::None && kind.is_some_and(has_whole_ports);
    let select_default = if whole { Select::Port } else { Select::default() };
    is_legal("table");
    is_legal("punt_limit");
    NetworkDraft {
        name,
        colour: optional(&spec, "colour", colour).flatten(),
        vid: optional(&spec, "vid", vid).flatten(),
        plane,
        placement: optional(&spec, "placement", placement).map(Option::unwrap_or_default),
        needs: optional(&spec, "needs", needs).flatten(),
        select: optional(&spec, "select", select).map(|select| select.unwrap_or(select_default)),
        ports: ports.unwrap_or(Items { list: Vec::new(), complete: false }),
        routes: routes.unwrap_or(Items::EMPTY),
        neighbours: neighbours.unwrap_or(Items::EMPTY),
        static_macs: static_macs.unwrap_or(Items::EMPTY),
        entries: entries.unwrap_or(Items::EMPTY),
        flat_labels: flat_labels.unwrap_or(Items::EMPTY),
        labels: labels.unwrap_or(Items::EMPTY),
        weight: optional(&spec, "weight", |at| at.number(1, limits::WEIGHT_MAX, ""))
            .map(|weight| weight.unwrap_or(1)),
        gated: optional(&spec, "gated", |at| at.flag()).map(Option::unwrap_or_default),
        rate_limit: optional(&spec, "rate_limit", rate_limit).flatten(),
        punt_limit: optional(&spec, "punt_limit", punt_limit).map(Option::unwrap_or_default),
        table: optional(&spec, "table", table).flatten(),
        resources: optional(&spec, "resources", resources).flatten(),
        spec,
        at,
    }
}

/// Whether all frames of a port belong to a network of a kind unless it says otherwise: it takes frames to all destinations. A
/// label switching router has none of these kinds' reasons: what it forwards is sent to its own MAC addresses.
pub(crate) const fn has_whole_ports(kind: Kind) -> bool {
    let limits = kind.limits();
    !matches!(kind, Kind::Mpls) && limits.families.is_none()
}

/// Whether networks of a kind have a field of the specification; reports one that they do not have.
fn legal(spec: &Cursor<'_>, kind: Option<Kind>, name: &str) -> bool {
    let (Some(kind), Some(field)) = (kind, spec.field(name)) else { return true };
    let has_ip = Family::of(kind) != Family::None;
    let keys = kind.limits().keys;
    let (expected, hint) = match name {
        "static_macs" if has_ip => {
            ("none: only kind l2 has them", Some("neighbours have fixed MAC addresses too"))
        }
        "static_macs" if keys == Keys::Label => ("none: only kind l2 has them", Some("see flat_labels")),
        "static_macs" if keys == Keys::Bits => (
            "none: only kind l2 has them",
            Some(if kind == Kind::Mpls { "see labels" } else { "see entries" }),
        ),
        "labels" if kind != Kind::Mpls => ("none: only kind mpls has them", None),
        "static_macs" if keys == Keys::None => ("none: only kind l2 has them", None),
        "entries" if kind != Kind::Extract => {
            let hint = match keys {
                Keys::None => None,
                Keys::Label => Some("see flat_labels"),
                Keys::Bits => Some("see labels"),
                _ => Some(if has_ip { "see routes" } else { "see static_macs" }),
            };
            ("none: only kind extract has them", hint)
        }
        "routes" | "neighbours" if !has_ip => {
            let hint = match keys {
                Keys::Mac => Some("see static_macs"),
                Keys::Bits if kind == Kind::Mpls => Some("see labels"),
                Keys::Bits => Some("see entries"),
                Keys::Label => Some("see flat_labels"),
                _ => None,
            };
            ("none: this kind does not look at IP", hint)
        }
        "flat_labels" if keys != Keys::Label => ("none: only kind rofl has them", None),
        "table" if keys == Keys::Mac => {
            ("none: this kind has no routes", Some("plane.macs_max limits its table"))
        }
        "table" if matches!(keys, Keys::Bits | Keys::Label) => (
            "none: this kind has no routes",
            Some("its entries have a table of their own, which they never exceed"),
        ),
        "table" if keys == Keys::None => ("none: this kind has no table in hueplane's memory", None),
        "punt_limit" if keys == Keys::None => (
            "none: all packets of this kind go to its namespace",
            Some("rate_limit limits what the network receives"),
        ),
        _ => return true,
    };
    field.fault(format!("{name} with kind {}", kind.name()), expected, hint.map(str::to_owned));
    false
}

fn static_mac(at: &Cursor<'_>) -> Option<StaticMac> {
    at.mapping(&["mac", "port"])?;
    let mac = at.required("mac", MAC).and_then(|at| unicast(&at));
    let port_name = "the name of a virtual port";
    let port = at.required("port", port_name).and_then(|at| at.parse(port_name));
    Some(StaticMac { mac: mac?, port: port? })
}

fn colour(at: &Cursor<'_>) -> Option<Colour> {
    if at.is_null() {
        at.fault("nothing", COLOUR, Some("without quotes, '#' begins a comment".to_owned()));
        return None;
    }
    at.parse(COLOUR)
}

fn vid(at: &Cursor<'_>) -> Option<Vid> {
    at.number(1, Vid::MAX, "").and_then(Vid::new)
}

fn mtu(at: &Cursor<'_>) -> Option<u16> {
    at.number(limits::MTU_MIN, limits::MTU_MAX, " bytes")
}

/// The settings of all kinds. Kinds can have one in common.
pub(crate) fn setting_names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for setting in Kind::OFFERED.into_iter().flat_map(Kind::settings) {
        if !names.contains(&setting.name) {
            names.push(setting.name);
        }
    }
    names
}

fn plane(at: &Cursor<'_>) -> Option<Plane> {
    let names = Kind::OFFERED.map(Kind::name);
    let known = at.field("kind").and_then(|field| field.known_word(&names));
    let kind = Kind::OFFERED.into_iter().find(|kind| Some(kind.name()) == known);
    let own = kind.map(own_settings).unwrap_or_default();
    at.mapping_naming(
        &[&["kind"], setting_names().as_slice()].concat(),
        &[&["kind"], own.as_slice()].concat(),
    )?;
    let field = at.required("kind", &one_of(names))?;
    settings(at, field.choice(Kind::OFFERED, Kind::name)?)
}

/// The settings of a kind.
pub(crate) fn own_settings(kind: Kind) -> Vec<&'static str> {
    kind.settings().iter().map(|setting| setting.name).collect()
}

/// Reads the settings of a kind, beside which there may be others, which are reported.
pub(crate) fn settings(at: &Cursor<'_>, kind: Kind) -> Option<Plane> {
    let name = kind.name();
    let others = setting_names().into_iter().filter(|one| kind.setting(one).is_none());
    let mut has_others = false;
    for setting in others {
        if let Some(field) = at.field(setting) {
            let having = Kind::OFFERED.into_iter().filter(|other| other.setting(setting).is_some());
            let names: Vec<_> = having.map(Kind::name).collect();
            let expected = match names[..] {
                [one] => format!("none: only kind {one} has this setting"),
                [ref others @ .., last] => {
                    format!("none: only kinds {} and {last} have this setting", others.join(", "))
                }
                [] => "none".to_owned(),
            };
            field.fault(format!("{setting} with kind {name}"), expected, None);
            has_others = true;
        }
    }
    let martians = optional(at, "martians", |at| at.choice(Martians::ALL, Martians::name));
    let route_by = optional(at, "route_by", |at| at.choice(RouteBy::ALL, RouteBy::name));
    let macs_max = optional(at, "macs_max", |at| at.range(l2::MACS_MAX, ""));
    let ageing = optional(at, "ageing_seconds", |at| at.range(l2::AGEING_SECONDS, " seconds"));
    let ttl = optional(at, "ttl", |at| at.choice(Ttl::ALL, Ttl::name));
    let sticky = optional(at, "sticky", Cursor::flag);
    let storm_limit = optional(at, "storm_limit", rate_limit);
    let label_bits = optional(at, "label_bits", label_bits);
    let pointers_max = optional(at, "pointers_max", |at| at.range(rofl_plane::POINTERS_MAX, ""));
    let pointer_seconds =
        optional(at, "pointer_seconds", |at| at.range(rofl_plane::POINTER_SECONDS, " seconds"));
    let key = match kind {
        Kind::Extract => at.required("key", extract::KEY).and_then(|at| extract::key(&at)).map(Some),
        _ => Some(None),
    };
    let slices = optional(at, "slices", |at| at.range(splice::SLICES, ""));
    let bits = optional(at, "bits", |at| at.choice(splice::Bits::ALL, splice::Bits::name));
    let command = match (kind, at.field("command")) {
        (Kind::Process, None) => {
            let expected = "the program that forwards, such as [python3, /opt/hub.py]";
            at.required("command", expected).map(|_| Vec::new())
        }
        (_, Some(field)) => command(field),
        (_, None) => Some(Vec::new()),
    };
    let capabilities = optional(at, "capabilities", capabilities);
    let xdp = optional(at, "xdp", Cursor::flag);
    if has_others {
        return None;
    }
    Some(Plane {
        kind,
        martians: martians?.unwrap_or_default(),
        route_by: route_by?.unwrap_or_default(),
        macs_max: macs_max?,
        ageing_seconds: ageing?,
        sticky: sticky?.unwrap_or_default(),
        storm_limit: storm_limit?,
        key: key?,
        label_bits: label_bits?,
        pointers_max: pointers_max?,
        pointer_seconds: pointer_seconds?,
        slices: slices?,
        bits: bits?.unwrap_or_default(),
        ttl: ttl?.unwrap_or_default(),
        command: command?,
        capabilities: capabilities?.unwrap_or_else(Capability::default_list),
        xdp: xdp?.unwrap_or_default(),
    })
}

/// Labels are whole bytes.
fn label_bits(at: &Cursor<'_>) -> Option<u8> {
    let bits = at.range(rofl_plane::LABEL_BITS, " bits")?;
    let bytes = rofl_plane::LABEL_BITS.multiple_of;
    if !bits.is_multiple_of(bytes) {
        at.fault(format!("{bits} bits"), format!("a multiple of {bytes}: labels are whole bytes"), None);
        return None;
    }
    Some(bits)
}

/// A program and its arguments.
fn command(at: Cursor<'_>) -> Option<Vec<String>> {
    const EXPECTED: &str = "a program and its arguments, such as [python3, /opt/hub.py]";
    let whole = at.clone();
    let words = items(at, limits::COMMAND_WORDS_MAX, EXPECTED, |at| {
        let word = at.text("a word of the command")?;
        if word.len() > limits::COMMAND_BYTES_MAX || word.contains('\0') {
            let expected = format!("at most {} bytes, without a zero byte", limits::COMMAND_BYTES_MAX);
            at.fault(format!("a word of {} bytes", word.len()), expected, None);
            return None;
        }
        Some(word.to_owned())
    })
    .take()?;
    if words.first().is_none_or(String::is_empty) {
        whole.fault("no program", EXPECTED, None);
        return None;
    }
    Some(words)
}

fn capabilities(at: &Cursor<'_>) -> Option<Vec<Capability>> {
    let listed = items(at.clone(), Capability::ALL.len(), "a list of capabilities", |at| {
        at.choice(Capability::ALL, Capability::name)
    })
    .take()?;
    // In one order, so that documents that mean the same are the same.
    Some(Capability::ALL.into_iter().filter(|one| listed.contains(one)).collect())
}

fn placement(at: &Cursor<'_>) -> Option<Placement> {
    at.choice(Placement::ALL, Placement::name)
}

fn needs(at: &Cursor<'_>) -> Option<Needs> {
    let before = at.faults();
    at.mapping(&["bandwidth", "latency", "routes"])?;
    let bandwidth = optional(at, "bandwidth", bandwidth);
    let latency = optional(at, "latency", |at| at.choice(Latency::ALL, Latency::name));
    let routes =
        optional(at, "routes", |at| at.number(1, u32::try_from(limits::ROUTES_MAX).unwrap_or(u32::MAX), ""));
    let needs = Needs { bandwidth: bandwidth?, latency: latency?, routes: routes? };
    if needs == Needs::default() && at.faults() == before {
        at.fault("an empty mapping", "at least one of bandwidth, latency and routes", None);
        return None;
    }
    Some(needs)
}

fn network_port(at: &Cursor<'_>, family: Family) -> Option<NetworkPort> {
    at.mapping(&["name", "port", "tunnel", "over", "mac", "addresses", "mtu"])?;
    let name = at.required("name", NAME).and_then(|at| at.parse(NAME));
    let on = under(at);
    let mac = match (at.field("mac"), &on) {
        (None, Some(On::Tunnel(tunnel))) => Some(tunnel.default_mac()),
        (None, None) if at.field("tunnel").is_some() => None,
        _ => at.required("mac", MAC).and_then(|at| unicast(&at)),
    };
    let addresses = match at.field("addresses") {
        Some(field) if family == Family::None => {
            field.fault("addresses", "none: this kind does not look at IP", None);
            None
        }
        Some(field) => {
            let expected = "a list of addresses";
            items(field, limits::PORT_ADDRESSES_MAX, expected, |at| address::interface(at, family)).take()
        }
        None => Some(Vec::new()),
    };
    let mtu = optional(at, "mtu", mtu);
    Some(NetworkPort { name: name?, on: on?, mac: mac?, addresses: addresses?, mtu: mtu? })
}

/// What a virtual port is on: a physical port, or a tunnel over a network.
fn under(at: &Cursor<'_>) -> Option<On> {
    const OVER: &str = "the name of the network that carries the tunnel";
    match (at.field("port"), at.field("tunnel")) {
        (Some(_), Some(tunnel)) => {
            tunnel.fault("both \"port\" and \"tunnel\"", "one of them", None);
            None
        }
        (None, Some(field)) => {
            let over = at.required("over", OVER).and_then(|at| at.parse(NAME));
            tunnel::tunnel(&field, over).map(On::Tunnel)
        }
        (port, None) => {
            if let Some(over) = at.field("over") {
                let hint = "over is the network that carries a tunnel".to_owned();
                over.fault("over without tunnel", "none", Some(hint));
                return None;
            }
            let port = match port {
                Some(port) => port,
                None => at.required("port", "the name of a physical port, or tunnel and over instead")?,
            };
            port.parse(NAME).map(On::Port)
        }
    }
}

/// A MAC address that one station can have: neither a group address (IEEE 802 §8.2) nor all zeros.
pub(crate) fn unicast(at: &Cursor<'_>) -> Option<Mac> {
    let mac: Mac = at.parse(MAC)?;
    if mac.is_multicast() {
        let what = if mac == Mac::BROADCAST { "the broadcast address" } else { "the multicast address" };
        at.fault(format!("{what} {mac}"), "the MAC address of one station: an even first byte", None);
        return None;
    }
    if mac.0 == [0; 6] {
        at.unexpected("a MAC address that is not all zeros");
        return None;
    }
    Some(mac)
}

fn route(at: &Cursor<'_>, family: Family) -> Option<Route> {
    at.mapping(&["to", "from", "via", "port", "slice"])?;
    let from = optional(at, "from", |from| address::prefix(from, family))?;
    // A route by source may be one to everywhere.
    let to = match (from, at.field("to")) {
        (Some(from), None) => Some(AnyPrefix::containing(from.addr(), 0)),
        _ => at.required("to", family.prefix()).and_then(|to| address::prefix(&to, family)),
    };
    let target = match (at.field("via"), at.field("port")) {
        (Some(via), None) if via.is_list() => vias(via, family).map(Target::Vias),
        (Some(via), None) => address::host(&via, family).map(Target::Via),
        (None, Some(port)) => port.parse("the name of a virtual port").map(Target::Port),
        (None, None) => {
            at.fault("neither \"via\" nor \"port\"", "one of them", None);
            None
        }
        (Some(_), Some(port)) => {
            port.fault("both \"via\" and \"port\"", "one of them", None);
            None
        }
    };
    let (to, target) = (to?, target?);
    for (via, field) in gateways(&target, at) {
        if via.is_ipv4() != to.addr().is_ipv4() {
            let hint = format!("a route to {to} leads through a gateway of its own family");
            field.fault(via.to_string(), Family::of_address(to.addr()).address(), Some(hint));
            return None;
        }
    }
    if let (Some(from), Some(field)) = (from, at.field("from"))
        && from.bits() != to.bits()
    {
        let hint = format!("a route to {to} is for packets of one family");
        field.fault(from.to_string(), Family::of_address(to.addr()).prefix(), Some(hint));
        return None;
    }
    if from.is_some()
        && let (Target::Port(_), Some(field)) = (&target, at.field("port"))
    {
        let hint = "what is on a link is found by its address, whatever the source".to_owned();
        field.fault("\"port\" in a route by source", "\"via\", the address of a router", Some(hint));
        return None;
    }
    if from.is_some()
        && let (Target::Vias(_), Some(field)) = (&target, at.field("via"))
    {
        let hint = "a route by destination may have several".to_owned();
        field.fault("a list of routers in a route by source", "the address of one router", Some(hint));
        return None;
    }
    let slice = optional(at, "slice", |at| at.number(0, splice::SLICES.max - 1, ""))?;
    if let (Some(1..), Target::Port(_), Some(field)) = (slice, &target, at.field("slice")) {
        let hint = "what is on a link is there in all slices".to_owned();
        field.fault(
            "\"slice\" in a route onto a port",
            "none, or \"via\", the address of a router",
            Some(hint),
        );
        return None;
    }
    Some(Route { from, to, slice: slice.unwrap_or_default(), target })
}

/// The gateways of a route, with the places of their addresses.
pub(crate) fn gateways<'t>(target: &Target, route: &Cursor<'t>) -> Vec<(IpAddr, Cursor<'t>)> {
    let field = route.field_or_self("via");
    match target {
        Target::Via(via) => vec![(*via, field)],
        Target::Vias(members) => {
            let place = |index| field.entry_or_self(index).field_or_self("via");
            members.iter().enumerate().map(|(index, member)| (member.via, place(index))).collect()
        }
        Target::Port(_) => Vec::new(),
    }
}

/// Several gateways with their weights.
fn vias(at: Cursor<'_>, family: Family) -> Option<Vec<RouteMember>> {
    let expected = "a list of gateways, each with its weight";
    let members = items(at.clone(), MEMBERS_MAX, expected, |at| {
        at.mapping(&["via", "weight"])?;
        let via = at.required("via", family.address()).and_then(|at| address::host(&at, family));
        let weight = optional(at, "weight", |at| at.number(1, WEIGHT_MAX, ""));
        Some(RouteMember { via: via?, weight: weight?.unwrap_or(RouteMember::default_weight()) })
    });
    let members = members.take()?;
    if members.is_empty() {
        at.fault("no gateway", "the address of a gateway, or a list with at least one", None);
        return None;
    }
    Some(members)
}

fn neighbour(at: &Cursor<'_>, family: Family) -> Option<Neighbour> {
    at.mapping(&["port", "address", "mac"])?;
    let port_name = "the name of a virtual port";
    let port = at.required("port", port_name).and_then(|at| at.parse(port_name));
    let address = at.required("address", family.address()).and_then(|at| address::host(&at, family));
    let mac = at.required("mac", MAC).and_then(|at| unicast(&at));
    Some(Neighbour { port: port?, address: address?, mac: mac? })
}

fn rate_limit(at: &Cursor<'_>) -> Option<RateLimit> {
    at.mapping(&["packets_per_second", "burst_packets", "bits_per_second", "burst_bits"])?;
    let expected = format!("a whole number from 1 to {}", limits::RATE_MAX);
    let number = |name| at.required(name, &expected)?.number(1, limits::RATE_MAX, "");
    let packets = bucket(at, "packets_per_second", "burst_packets", number, number);
    let max = limits::RATE_MAX;
    let rate = |name| {
        let parse = |text: &str| text.parse::<BitRate>().ok().map(|rate| rate.0);
        at.required(name, bits::RATE)?.number_or_text(max, bits::RATE, parse)
    };
    let amount = |name| {
        let parse = |text: &str| text.parse::<Bits>().ok().map(|bits| bits.0);
        at.required(name, bits::AMOUNT)?.number_or_text(max, bits::AMOUNT, parse)
    };
    let bits = bucket(at, "bits_per_second", "burst_bits", rate, amount);
    let limit = RateLimit { packets: packets?, bits: bits? };
    if limit.packets.is_none() && limit.bits.is_none() {
        let expected = "packets_per_second with burst_packets, bits_per_second with burst_bits, or both";
        at.fault("an empty mapping", expected, None);
        return None;
    }
    Some(limit)
}

/// A rate and its burst: both or neither.
fn bucket(
    at: &Cursor<'_>,
    rate: &'static str,
    burst: &'static str,
    rate_of: impl Fn(&'static str) -> Option<u64>,
    burst_of: impl Fn(&'static str) -> Option<u64>,
) -> Option<Option<Bucket>> {
    if at.field(rate).is_none() && at.field(burst).is_none() {
        return Some(None);
    }
    let (per_second, burst) = (rate_of(rate), burst_of(burst));
    Some(Some(Bucket { per_second: per_second?, burst: burst? }))
}

fn punt_limit(at: &Cursor<'_>) -> Option<PuntLimit> {
    at.mapping(&["packets_per_second", "burst_packets"])?;
    let expected = format!("a whole number from 1 to {}", limits::PUNT_RATE_MAX);
    let number = |name| at.required(name, &expected)?.number(1, limits::PUNT_RATE_MAX, "");
    let (rate, burst) = (number("packets_per_second"), number("burst_packets"));
    Some(PuntLimit { packets_per_second: rate?, burst_packets: burst? })
}

fn table(at: &Cursor<'_>) -> Option<TableLimit> {
    at.mapping(&["quota"])?;
    let quota = at.required("quota", TABLE_BYTES)?.parse::<TableBytes>(TABLE_BYTES)?;
    Some(TableLimit { quota })
}

fn resources(at: &Cursor<'_>) -> Option<Resources> {
    at.mapping(&["cpu", "memory", "processes"])?;
    let cpu = optional(at, "cpu", |at| {
        let expected = "a number of cores from 0.01 to 1024 with at most three decimals";
        let cores = at.thousandths().and_then(Cores::from_thousandths);
        if cores.is_none() {
            at.unexpected(expected);
        }
        cores
    });
    let memory = optional(at, "memory", |at| at.parse::<Memory>(MEMORY));
    let processes = optional(at, "processes", |at| at.number(1, limits::PROCESSES_MAX, ""));
    let resources = Resources { cpu: cpu?, memory: memory?, processes: processes? };
    if resources == Resources::default() {
        at.fault("an empty mapping", "at least one of cpu, memory and processes", None);
        return None;
    }
    Some(resources)
}

fn select(at: &Cursor<'_>) -> Option<Select> {
    at.mapping(&["by", "prefixes"])?;
    let by = at.required("by", "mac, port or inner")?.word(&["mac", "port", "inner"])?;
    if by == "inner" {
        let expected = "a list of IPv4 prefixes";
        let at = at.required("prefixes", expected)?;
        let prefix = |at: &Cursor<'_>| address::prefix(at, Family::V4)?.of();
        let prefixes = items(at.clone(), limits::SELECT_PREFIXES_MAX, expected, prefix).take()?;
        if prefixes.is_empty() {
            at.fault("an empty list", "at least one prefix", None);
            return None;
        }
        return Some(Select::Inner(prefixes));
    }
    if let Some(prefixes) = at.field("prefixes") {
        prefixes.fault(
            "prefixes",
            format!("none with \"by: {by}\""),
            Some("prefixes need \"by: inner\"".to_owned()),
        );
        return None;
    }
    Some(if by == "port" { Select::Port } else { Select::Mac })
}
