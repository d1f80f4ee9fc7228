//! Converts programs to rows of the card's tables. Pure: the same programs give the same rows.
//!
//! Flow: program → **plan** → rows → device. The priorities of design select become an order of rows: destination
//! MAC, then inner prefixes from the longest to the shortest, then whole ports.

use std::collections::{HashMap, HashSet};

use hue_demux::{Match, Row as Claim};
use hue_planes::{Adjacency, AdjacencyKind, RateLimit};
use hue_substrate::Program;
use hue_tables::Vid;

use crate::generated::{AttachHeadRow, AttachRow, HopRow, LocalRow, MeterRow, RouteRow, SelectRow, StormRow};

/// Ports that a row of design select can name.
const PORTS: u8 = 8;

/// A network's place on the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its index on the card.
    pub net: u8,
    /// Its plane, or [`NO_PLANE`].
    pub plane: u8,
}

/// Used instead of a plane for a network in software, which needs no plane if each network would have its own.
pub const NO_PLANE: u8 = u8::MAX;

/// A virtual port on a physical one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Attached {
    port: u8,
    vid: Vid,
    vport: u8,
    net: u8,
}

/// The networks' claims on frames, as rows of design select.
#[derive(Clone, Debug)]
pub struct Claims {
    /// Rows with their ranks, in order of precedence. Two rows of one rank never match the same frame, except ARP
    /// rows of different networks.
    pub rows: Vec<(u8, SelectRow)>,
    /// Number of omitted ARP rows. A row is omitted while another network owns its frames by MAC address, and returns
    /// when that network is removed.
    pub hidden: usize,
}

/// The claims of networks. With an index that is no network's, those of live networks: see [`arp_rows`] and [`companion_rows`].
pub fn claims<'a>(networks: impl Iterator<Item = (&'a Program, Place)>, nobody: Option<u8>) -> Claims {
    let networks: Vec<_> = networks.collect();
    let mut rows: Vec<_> = networks
        .iter()
        .flat_map(|(program, place)| {
            // Frames that come by a tunnel come from software.
            let rows = program.rows.iter().filter(|row| !row.is_of_tunnel());
            let rows = rows.map(|row| (rank(row), select_row(row, *place)));
            rows.chain(arp_rows(program, *place, nobody.is_some()).map(|row| (0, row)))
        })
        .collect();
    if let Some(net) = nobody {
        rows.extend(companion_rows(&networks, net).map(|row| (0, row)));
    }
    rows.sort_by_key(|(rank, row)| (*rank, row.port, row.mac, row.inner, row.net, row.vport));
    let count = rows.len();
    let by_mac: HashSet<(u8, u64)> = rows
        .iter()
        .filter(|(_, row)| row.mac_care && !row.arp_care)
        .map(|(_, row)| (row.port, row.mac))
        .collect();
    rows.retain(|(_, row)| !row.arp_care || !by_mac.contains(&(row.port, row.mac)));
    let hidden = count - rows.len();
    Claims { rows, hidden }
}

/// Ternary rows of design select, at most `rows`, in the order of precedence. Rows with a MAC address keep the place
/// that they had in `before`, and new ones fill gaps, so that few rows have to be written. All other rows are at the
/// end.
pub fn select(before: &[Option<SelectRow>], claims: &Claims, rows: usize) -> Vec<Option<SelectRow>> {
    let all = &claims.rows;
    let macs = all.partition_point(|(rank, _)| *rank == 0);
    let others = rows.saturating_sub(all.len() - macs);
    let mut new: HashSet<SelectRow> = all.iter().take(macs).map(|(_, row)| *row).collect();
    let mut out = vec![None; rows];
    for (to, row) in out.iter_mut().zip(before).take(others) {
        *to = row.filter(|row| new.remove(row));
    }
    let mut rest = all.iter().take(macs).map(|(_, row)| *row).filter(|row| new.contains(row));
    for to in out.iter_mut().take(others).filter(|to| to.is_none()) {
        *to = rest.next();
    }
    for (to, (_, row)) in out.iter_mut().skip(others).zip(all.iter().skip(macs)) {
        *to = Some(*row);
    }
    out
}

/// ARP to a router's own MAC address belongs to its network even if the network selects its other frames differently;
/// this is a rule of live networks (`arp`).
fn arp_rows(program: &Program, place: Place, arp: bool) -> impl Iterator<Item = SelectRow> + '_ {
    let by_mac = program.rows.iter().any(|row| matches!(row.select, Match::Mac { .. }));
    let ports =
        program.ports.iter().zip(0u16..).filter(move |(port, _)| arp && !by_mac && port.port.get() < PORTS);
    ports.map(move |(port, vport)| {
        let select = Match::Mac { port: port.port, mac: port.mac };
        SelectRow { arp_care: true, ..select_row(&Claim { vid: program.vid, vport, select }, place) }
    })
}

/// On a NIC beside the card's port, a router has another address ([`hue_wire::Mac::companion`]). Outside switches may flood what is for it
/// to the card's port too. These rows give it to `nobody`, so that a network that takes all frames of the port does not get it.
fn companion_rows<'a>(
    networks: &'a [(&'a Program, Place)],
    nobody: u8,
) -> impl Iterator<Item = SelectRow> + 'a {
    let rows = || {
        networks.iter().flat_map(|(program, _)| {
            program.rows.iter().filter(|row| !row.is_of_tunnel()).map(move |row| (*program, row))
        })
    };
    let whole: HashSet<u8> = rows()
        .filter_map(|(_, row)| match row.select {
            Match::Port(port) => Some(port.get()),
            _ => None,
        })
        .collect();
    rows().filter(|(program, _)| !program.keeps_macs()).filter_map(move |(_, row)| match row.select {
        Match::Mac { port, mac } if whole.contains(&port.get()) => {
            let claim = Claim { vport: 0, select: Match::Mac { port, mac: mac.companion() }, ..*row };
            Some(select_row(&claim, Place { net: nobody, plane: NO_PLANE }))
        }
        _ => None,
    })
}

fn rank(row: &Claim) -> u8 {
    match row.select {
        Match::Mac { .. } => 0,
        Match::Inner { prefix, .. } => 1 + 32 - prefix.len(),
        Match::Port(_) => u8::MAX,
    }
}

fn select_row(row: &Claim, place: Place) -> SelectRow {
    // There are at most 256 virtual ports, so that their indices fit.
    let mut out = SelectRow { valid: true, net: place.net, vport: row.vport as u8, ..SelectRow::default() };
    let port = match row.select {
        Match::Mac { port, mac } => {
            (out.mac_care, out.mac) = (true, mac.to_u64());
            Some(port)
        }
        Match::Inner { port, prefix } => {
            out.inner_care = true;
            (out.inner, out.inner_mask) = (prefix.addr(), mask(prefix.len()));
            port
        }
        Match::Port(port) => Some(port),
    };
    if let Some(port) = port {
        (out.port_care, out.port) = (true, port.get());
    }
    out
}

const fn mask(len: u8) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len as u32) }
}

/// The receivers of group frames on each of `ports` ports: all networks with a virtual port there.
pub fn attach<'a>(networks: impl Iterator<Item = (&'a Program, Place)>, ports: usize) -> Vec<Vec<AttachRow>> {
    let mut all: Vec<Attached> = networks
        .flat_map(|(program, place)| {
            program.attachments().map(move |one| Attached {
                port: one.port.get(),
                vid: one.vid,
                vport: one.vport as u8,
                net: place.net,
            })
        })
        .collect();
    all.sort_unstable();
    let mut runs = vec![Vec::new(); ports];
    for one in all {
        if let Some(run) = runs.get_mut(usize::from(one.port)) {
            run.push(AttachRow { valid: true, net: one.net, vport: one.vport });
        }
    }
    runs
}

/// The networks on a port as a run. A network keeps its place, and a removed network leaves its place empty: the card
/// may be copying a frame, and it continues after the place that it read last.
pub fn run(before: &[AttachRow], all: &[AttachRow]) -> Vec<AttachRow> {
    let mut new: HashSet<AttachRow> = all.iter().copied().collect();
    let mut run: Vec<AttachRow> =
        before.iter().map(|row| if new.remove(row) { *row } else { AttachRow::default() }).collect();
    let mut rest = all.iter().filter(|row| new.contains(*row));
    for place in run.iter_mut().filter(|row| !row.valid) {
        let Some(row) = rest.next() else { break };
        *place = *row;
    }
    run.extend(rest);
    run.truncate(run.iter().rposition(|row| row.valid).map_or(0, |last| last + 1));
    run
}

/// Places the runs. An unchanged run stays where it is, unless the others then do not fit; a changed run stays too,
/// if there is room.
pub fn lay_out(
    before: &[(AttachHeadRow, Vec<AttachRow>)],
    runs: &[Vec<AttachRow>],
    rows: u32,
) -> Option<Vec<AttachHeadRow>> {
    lay_out_beside(before, runs, rows).or_else(|| lay_out_beside(&[], runs, rows))
}

fn lay_out_beside(
    before: &[(AttachHeadRow, Vec<AttachRow>)],
    runs: &[Vec<AttachRow>],
    rows: u32,
) -> Option<Vec<AttachHeadRow>> {
    let mut taken = vec![false; rows as usize];
    let stays = |index: usize| before.get(index).filter(|(_, old)| runs.get(index) == Some(old));
    for (head, _) in (0..runs.len()).filter_map(stays) {
        let first = usize::from(head.start);
        taken.get_mut(first..first + usize::from(head.count))?.fill(true);
    }
    let mut heads = Vec::with_capacity(runs.len());
    for (index, run) in runs.iter().enumerate() {
        if let Some((head, _)) = stays(index) {
            heads.push(*head);
            continue;
        }
        let is_free =
            |at: &usize| taken.get(*at..at + run.len()).is_some_and(|rows| rows.iter().all(|row| !row));
        let own = before.get(index).map(|(head, _)| usize::from(head.start)).filter(is_free);
        let start = own.or_else(|| (0..=taken.len().saturating_sub(run.len())).find(is_free))?;
        taken.get_mut(start..start + run.len())?.fill(true);
        heads
            .push(AttachHeadRow { start: u16::try_from(start).ok()?, count: u16::try_from(run.len()).ok()? });
    }
    Some(heads)
}

/// Changes of routes from a network's current program, if any, to its next one. The order does not depend on hashes,
/// so that a twin does the same in each run.
pub fn route_changes(before: Option<&Program>, after: &Program) -> Vec<hue_tables::Change<u32>> {
    let before = before.map_or(&[][..], |program| program.entries.lpm32());
    let mut left: HashMap<_, _> = before.iter().copied().collect();
    let mut changes: Vec<_> = after
        .entries
        .lpm32()
        .iter()
        .filter_map(|(prefix, hop)| (left.remove(prefix) != Some(*hop)).then_some((*prefix, Some(*hop))))
        .collect();
    let withdrawn = before.iter().filter(|(prefix, _)| left.contains_key(prefix));
    changes.extend(withdrawn.map(|(prefix, _)| (*prefix, None)));
    changes
}

/// The port of next hops that lead to a tunnel on the card.
pub const TUNNEL_PORT: u8 = 4;

/// Converts a next hop. A group is a row of GROUP, and has no row of its own here. Packets for a tunnel are punted, because software
/// decides them again and encapsulates them (ADR 0067), unless the tunnel is on the card too (`Loaded::hop`).
pub fn hop(row: &Adjacency) -> HopRow {
    // So have labels: an entry names the row behind them.
    if matches!(row.kind(), AdjacencyKind::Group | AdjacencyKind::Labels) {
        return HopRow::default();
    }
    // An entry that sends by a port which the card does not have: its network stays in software.
    if row.kind() == AdjacencyKind::Port && row.port().get() >= TUNNEL_PORT {
        return HopRow::default();
    }
    let enters_tunnel = row.port().is_tunnel() && row.kind() == AdjacencyKind::Forward;
    HopRow {
        kind: match row.kind() {
            _ if enters_tunnel => AdjacencyKind::Glean,
            // In networks with entries, the row of one that drops.
            AdjacencyKind::Drop => AdjacencyKind::Glean,
            AdjacencyKind::Port => AdjacencyKind::Forward,
            kind => kind,
        } as u8,
        port: if row.port().is_tunnel() { 0 } else { row.port().get() },
        mtu: row.mtu_bytes(),
        dst: row.dst().to_u64(),
        src: row.src().to_u64(),
    }
}

/// Converts a rate limit.
pub fn meter(limit: Option<RateLimit>) -> MeterRow {
    let StormRow { packets_on, packets_rate, packets_burst, bits_on, bits_rate, bits_burst } = storm(limit);
    MeterRow { packets_on, packets_rate, packets_burst, bits_on, bits_rate, bits_burst }
}

/// The row of a limit on floods.
pub fn storm(limit: Option<RateLimit>) -> StormRow {
    let mut row = StormRow::default();
    let limit = limit.unwrap_or_default();
    if let Some(rate) = limit.packets {
        (row.packets_on, row.packets_rate, row.packets_burst) = (true, rate.per_second(), rate.burst());
    }
    if let Some(rate) = limit.bits {
        (row.bits_on, row.bits_rate, row.bits_burst) = (true, rate.per_second(), rate.burst());
    }
    row
}

/// Contents of a plane's own tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaneRows {
    /// Next hops, in the order of their indices.
    pub hops: Vec<HopRow>,
    /// Ternary rows, longest prefix first.
    pub routes: Vec<RouteRow>,
    /// Addresses of the router and of neighbours, which need no route rows. They take precedence over routes.
    pub locals: Vec<LocalRow>,
}

/// Rows of a network that has a plane of its own. At most `addresses` of its single addresses have rows of their own,
/// the router's first. The other addresses become routes, except those of the router.
pub fn plane(program: &Program, addresses: u32) -> PlaneRows {
    let (mut routes, mut locals, mut neighbours) = (Vec::new(), Vec::new(), Vec::new());
    for (prefix, next) in program.entries.lpm32() {
        let kind = program.next_hops.get(usize::from(next.get())).map(Adjacency::kind);
        if prefix.len() == 32 && kind == Some(AdjacencyKind::Local) {
            locals.push(LocalRow { valid: true, addr: prefix.addr(), ..LocalRow::default() });
        } else if prefix.len() == 32 {
            neighbours.push((prefix.addr(), next.get()));
        } else {
            let row =
                RouteRow { valid: true, value: prefix.addr(), mask: mask(prefix.len()), hop: next.get() };
            routes.push((prefix.len(), row));
        }
    }
    neighbours.sort_unstable();
    let room = (addresses as usize).saturating_sub(locals.len());
    for (index, (addr, hop)) in neighbours.into_iter().enumerate() {
        if index < room {
            locals.push(LocalRow { valid: true, addr, neighbour: true, hop });
        } else {
            routes.push((32, RouteRow { valid: true, value: addr, mask: u32::MAX, hop }));
        }
    }
    routes.sort_by_key(|(len, row)| (u8::MAX - len, row.value));
    locals.sort_by_key(|row| row.addr);
    PlaneRows {
        hops: program.next_hops.iter().map(hop).collect(),
        routes: routes.into_iter().map(|(_, row)| row).collect(),
        locals,
    }
}

#[cfg(test)]
mod tests {
    use hue_planes::{Kind, Settings};
    use hue_substrate::Entries;
    use proptest::prelude::*;

    use super::*;

    fn program(vid: u16, rows: &[Match]) -> Program {
        let vid = Vid::new(vid).unwrap();
        Program {
            vid,
            name: String::new(),
            settings: Settings::of(Kind::Ipv4),
            ports: Vec::new(),
            rows: rows.iter().map(|select| Claim { vid, vport: 0, select: *select }).collect(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::Lpm32(Vec::new()),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    fn claim(kind: u8, value: u8) -> Match {
        let port = hue_demux::PortId::new(value % 4);
        match kind {
            0..=3 => Match::Mac { port, mac: hue_wire::Mac([2, 0, 0, 0, 0, value]) },
            4 => Match::Inner {
                port: None,
                prefix: hue_tables::Prefix4::containing(u32::from(value) << 24, value % 33),
            },
            _ => Match::Port(port),
        }
    }

    #[test]
    fn on_a_whole_port_the_address_of_a_router_on_the_nic_is_nobodys() {
        let (port, mac) = (hue_demux::PortId::new, hue_wire::Mac([2, 0, 0, 0, 0, 9]));
        let router = program(1, &[0, 1].map(|at| Match::Mac { port: port(at), mac }));
        let whole = program(2, &[Match::Port(port(0))]);
        let rows = |nobody| {
            let networks = [(&router, Place { net: 3, plane: 0 }), (&whole, Place { net: 4, plane: 0 })];
            let rows = claims(networks.into_iter(), nobody).rows.into_iter();
            rows.filter(|(_, row)| ![3, 4].contains(&row.net)).collect::<Vec<_>>()
        };
        let companion =
            Claim { vid: router.vid, vport: 0, select: Match::Mac { port: port(0), mac: mac.companion() } };
        assert_eq!(rows(Some(64)), [(0, select_row(&companion, Place { net: 64, plane: NO_PLANE }))]);
        assert!(rows(None).is_empty());
    }

    proptest! {
        /// Whatever the former contents, every row is present once, in order of rank, and remaining MAC rows have not
        /// moved.
        #[test]
        fn rows_of_select_are_in_order_and_stay(
            before in prop::collection::btree_set((0u8..6, 0u8..60), 0..30),
            after in prop::collection::btree_set((0u8..6, 0u8..60), 0..30),
        ) {
            const ROWS: usize = 32;
            let matches = |set: &std::collections::BTreeSet<(u8, u8)>| {
                let mut all: Vec<Match> = set.iter().map(|(kind, value)| claim(*kind, *value)).collect();
                all.sort_by_key(|claim| format!("{claim:?}"));
                all.dedup();
                all
            };
            let place = Place { net: 3, plane: 0 };
            let (before, after) = (program(1, &matches(&before)), program(1, &matches(&after)));
            let claims = |program| claims([(program, place)].into_iter(), None);
            let was = select(&[], &claims(&before), ROWS);
            let is = select(&was, &claims(&after), ROWS);
            let mut want: Vec<_> = after.rows.iter().map(|row| (rank(row), select_row(row, place))).collect();
            let ranks: Vec<u8> = is
                .iter()
                .flatten()
                .map(|row| want.iter().find(|(_, other)| other == row).map(|(rank, _)| *rank).unwrap())
                .collect();
            prop_assert!(ranks.is_sorted());
            let mut found: Vec<_> = ranks.into_iter().zip(is.iter().flatten().copied()).collect();
            let key = |(rank, row): &(u8, SelectRow)| (*rank, row.port, row.mac, row.inner);
            found.sort_by_key(key);
            want.sort_by_key(key);
            prop_assert_eq!(found, want);
            let others = after.rows.iter().filter(|row| rank(row) > 0).count();
            for (index, row) in was.iter().enumerate().take(ROWS - others) {
                let stays = row.filter(|row| row.mac_care && is.contains(&Some(*row)));
                prop_assert!(stays.is_none() || is[index] == stays);
            }
        }
    }

    #[test]
    fn networks_that_stay_keep_their_place_in_a_run() {
        let row = |net| AttachRow { valid: true, net, vport: 0 };
        let none = AttachRow::default();
        assert_eq!(run(&[], &[row(1), row(2), row(3)]), [row(1), row(2), row(3)]);
        assert_eq!(run(&[row(1), row(2), row(3)], &[row(1), row(3)]), [row(1), none, row(3)]);
        assert_eq!(run(&[row(1), none, row(3)], &[row(3), row(4), row(5)]), [row(4), row(5), row(3)]);
        assert_eq!(run(&[row(1), none, row(3)], &[row(1), row(2), row(3), row(4)]), [1, 2, 3, 4].map(row));
        assert_eq!(run(&[row(1), none, row(3)], &[row(1)]), [row(1)]);
        assert_eq!(run(&[row(1), row(2)], &[]), []);
    }

    #[test]
    fn runs_stay_unless_they_must_move() {
        let row = |net| AttachRow { valid: true, net, vport: 0 };
        let head = |start, count| AttachHeadRow { start, count };
        let before = [(head(0, 2), vec![row(1), row(2)]), (head(2, 1), vec![row(1)])];
        let runs = [vec![row(1), row(2), row(3)], vec![row(1)]];
        assert_eq!(lay_out(&before, &runs, 6), Some(vec![head(3, 3), head(2, 1)]));
        assert_eq!(lay_out(&before, &runs, 5), Some(vec![head(0, 3), head(3, 1)]));
        assert_eq!(lay_out(&before, &runs, 3), None);
        assert_eq!(lay_out(&[], &[vec![], vec![row(1)]], 1), Some(vec![head(0, 0), head(0, 1)]));
    }
}
