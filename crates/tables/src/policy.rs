//! Policies: routes that depend on the source of a packet, besides the routes of a table.
//!
//! Flow: document → [`Policies`] (data) → [`PolicyTable`] → planes in software. A policy says: packets from one prefix to
//! another go to a gateway. The gateway is then looked up in the network's table like a destination, so that neighbours,
//! links and ports of policies are those of the table.
//!
//! Two questions are exact, because the prefixes that contain an address are known when the longest of them is: the
//! longest prefix of sources and the longest prefix of destinations that policies name determine the set of policies that
//! match. The best one of each pair is computed beforehand. What the table says of the destination takes part by the
//! length of its prefix, which is in the number of the row ([`RowsByLength`]). Source: ADR 0062.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::prefix::AnyPrefix;
use crate::types::{Key, NextHop, Prefix};

/// Most policies of a network.
pub const POLICIES_MAX: usize = 1024;
/// Most pairs of a prefix of sources and a prefix of destinations for which a network stores the best policy.
pub const PAIRS_MAX: usize = 1 << 18;

/// By which addresses of a packet a network chooses a route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteBy {
    /// The destination.
    #[default]
    Destination,
    /// The source: the policy with the longest prefix that contains it. Without one, the destination.
    Source,
    /// Both: the route whose prefixes are longest together; of equal ones, the one with the longer prefix of destinations.
    SourceDestination,
}

impl RouteBy {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Destination, Self::Source, Self::SourceDestination];

    /// The name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Destination => "destination",
            Self::Source => "source",
            Self::SourceDestination => "source_destination",
        }
    }

    /// Whether this is the default.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        matches!(self, Self::Destination)
    }
}

/// One policy: packets from `from` to `to` go to a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Sources; not all.
    pub from: AnyPrefix,
    /// Destinations; with [`RouteBy::Source`], all.
    pub to: AnyPrefix,
    /// Address of the next-hop router.
    pub via: IpAddr,
}

/// The policies of a network, as its program has them. Each order gives the same routes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Policies {
    /// How routes are chosen; not [`RouteBy::Destination`].
    pub by: RouteBy,
    /// The network's links. Packets to them are not subject to policies.
    pub links: Vec<AnyPrefix>,
    /// The policies.
    pub list: Vec<Policy>,
}

/// Why policies are refused (the caller's fault).
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PolicyError {
    /// More than [`POLICIES_MAX`].
    #[error("{0} routes by source: at most {POLICIES_MAX}")]
    Count(usize),
    /// More pairs than [`PAIRS_MAX`].
    #[error(
        "{sources} prefixes of sources and {destinations} of destinations, links among them, make {} pairs: at most {PAIRS_MAX}",
        .sources * .destinations
    )]
    Pairs {
        /// Prefixes of sources, and the one of all addresses.
        sources: usize,
        /// Prefixes of destinations and links, and the one of all addresses.
        destinations: usize,
    },
    /// Two policies have the same prefixes.
    #[error("two routes from {from} to {to}")]
    Twice {
        /// Sources.
        from: AnyPrefix,
        /// Destinations.
        to: AnyPrefix,
    },
    /// A policy for all sources: it is a route of the table.
    #[error("a route from {0}, from all sources, is no route by source")]
    AllSources(AnyPrefix),
    /// A policy that depends on the destination, in a network that routes by source.
    #[error("a route by source has no destination, but {0}")]
    Destination(AnyPrefix),
    /// A prefix or gateway of another address family.
    #[error("{0} is not of the network's address family")]
    Family(String),
    /// [`RouteBy::Destination`] has no policies.
    #[error("a network with route_by destination has no routes by source")]
    ByDestination,
}

impl Policies {
    /// Checks them, for a network with addresses of this family, and prepares them for lookups.
    ///
    /// # Errors
    /// The first fault found.
    pub fn table<K: Key>(&self) -> Result<PolicyTable<K>, PolicyError> {
        PolicyTable::new(self)
    }

    /// Sizes of the tables that they are prepared in, without preparing them. What is of another address family does not count.
    #[must_use]
    pub fn rows<K: Key>(&self) -> PolicyRows {
        let sources = Classes::<K>::new(self.list.iter().filter_map(|policy| policy.from.of()));
        let destinations = self.list.iter().map(|policy| &policy.to).chain(&self.links);
        let destinations = Classes::<K>::new(destinations.filter_map(|prefix| prefix.of()));
        // At most 1,024 policies, about as many links, and 2^18 pairs.
        PolicyRows {
            ranges: (sources.starts.len() + destinations.starts.len()) as u32,
            pairs: (sources.prefixes.len() * destinations.prefixes.len()) as u32,
            rules: self.list.len() as u32,
        }
    }
}

/// Sizes of the tables of prepared policies: what a network needs, or what a card's image has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PolicyRows {
    /// Ranges of addresses, of sources and destinations together.
    pub ranges: u32,
    /// Pairs of a class of sources and a class of destinations.
    pub pairs: u32,
    /// Policies.
    pub rules: u32,
}

impl PolicyRows {
    /// Whether there are no rows: the network has no policies, or the image none of their tables.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.ranges == 0
    }

    /// The sizes with the names of the resources.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u32); 3] {
        [
            ("ranges of addresses of routes by source", self.ranges),
            ("pairs of ranges of routes by source", self.pairs),
            ("routes by source", self.rules),
        ]
    }
}

/// Numbers of rows of next hops from which the length of a route's prefix follows: row *n* of the network's own numbering
/// is there once for each length.
pub struct RowsByLength<K>(std::marker::PhantomData<K>);

impl<K: Key> RowsByLength<K> {
    /// How often each row is there.
    pub const EACH: u16 = K::BITS as u16 + 1;
    /// How many rows of its own numbering a network can have.
    pub const ROWS_MAX: usize = (NextHop::MAX as usize + 1) / Self::EACH as usize;

    /// The row for routes whose prefix has this length; `None` if there are too many rows.
    #[must_use]
    pub fn row(own: u16, len: u8) -> Option<NextHop> {
        let len = u16::from(len.min(K::BITS));
        NextHop::new(own.checked_mul(Self::EACH)?.checked_add(len)?)
    }

    /// The length of the prefix whose route names a row; `None` for the word of no route.
    #[inline]
    #[must_use]
    pub const fn len(word: u16) -> Option<u8> {
        if word == NextHop::NONE_WORD { None } else { Some((word % Self::EACH) as u8) }
    }

    /// The row of the network's own numbering.
    #[must_use]
    pub const fn own(row: NextHop) -> u16 {
        row.get() / Self::EACH
    }
}

/// A policy that matches a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule<K> {
    /// Sources.
    pub from: Prefix<K>,
    /// Destinations.
    pub to: Prefix<K>,
    /// Address of the next-hop router.
    pub via: K,
}

impl<K: Key> Rule<K> {
    /// Length of both prefixes together, bits.
    fn both(&self) -> u16 {
        u16::from(self.from.len()) + u16::from(self.to.len())
    }

    /// The better of two policies is the greater one.
    fn rank(&self) -> (u16, u8) {
        (self.both(), self.to.len())
    }
}

impl<K: Key> fmt::Display for Rule<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} to {} via {}", self.from, self.to, self.via.to_ip())
    }
}

/// Prepared policies of a network with addresses of one family. Immutable.
#[derive(Clone, Debug)]
pub struct PolicyTable<K> {
    by: RouteBy,
    sources: Classes<K>,
    destinations: Classes<K>,
    rules: Vec<Rule<K>>,
    /// The index of the best rule, by class of the source, then of the destination.
    pairs: Vec<u16>,
}

/// In [`PolicyTable::pairs`]: no policy.
pub const NO_RULE: u16 = u16::MAX;
/// In [`PolicyTable::precedences`]: a policy that takes precedence over every route. More than both prefixes of a policy have.
pub const BEFORE_ALL: u16 = 511;
const _: () = assert!(POLICIES_MAX < NO_RULE as usize);

impl<K: Key> PolicyTable<K> {
    fn new(policies: &Policies) -> Result<Self, PolicyError> {
        let Policies { by, links, list } = policies;
        if by.is_default() {
            return Err(PolicyError::ByDestination);
        }
        if list.len() > POLICIES_MAX {
            return Err(PolicyError::Count(list.len()));
        }
        let own =
            |prefix: &AnyPrefix| prefix.of::<K>().ok_or_else(|| PolicyError::Family(prefix.to_string()));
        let mut rules = Vec::with_capacity(list.len());
        for Policy { from, to, via } in list {
            if from.len() == 0 {
                return Err(PolicyError::AllSources(*from));
            }
            if *by == RouteBy::Source && to.len() > 0 {
                return Err(PolicyError::Destination(*to));
            }
            let via = K::from_ip(*via).ok_or_else(|| PolicyError::Family(via.to_string()))?;
            rules.push(Rule { from: own(from)?, to: own(to)?, via });
        }
        let links = links.iter().map(own).collect::<Result<Vec<_>, _>>()?;
        let sources = Classes::new(rules.iter().map(|rule| rule.from));
        let destinations = Classes::new(rules.iter().map(|rule| rule.to).chain(links.iter().copied()));
        let (rows, columns) = (sources.prefixes.len(), destinations.prefixes.len());
        if rows * columns > PAIRS_MAX {
            return Err(PolicyError::Pairs { sources: rows, destinations: columns });
        }
        let mut exact = HashMap::with_capacity(rules.len());
        for (rule, index) in rules.iter().zip(0u16..) {
            if exact.insert((rule.from, rule.to), index).is_some() {
                return Err(PolicyError::Twice { from: rule.from.into(), to: rule.to.into() });
            }
        }
        let pairs = best(&sources, &destinations, &rules, &exact, &links);
        Ok(Self { by: *by, sources, destinations, rules, pairs })
    }

    /// The policy that decides about a packet, or `None` if its destination's route does. `route` is the length of the
    /// prefix of that route, if there is one. The caller has found that the packet is not for the router itself.
    #[inline]
    #[must_use]
    pub fn decide(&self, source: K, destination: K, route: Option<u8>) -> Option<&Rule<K>> {
        let row = usize::from(self.sources.class(source)) * self.destinations.prefixes.len();
        let column = usize::from(self.destinations.class(destination));
        let rule = self.rules.get(usize::from(*self.pairs.get(row + column)?))?;
        let wins = match self.by {
            RouteBy::Destination => false,
            RouteBy::Source => true,
            // Of equal length, the route has the longer prefix of destinations: the policy's prefix of sources is not empty.
            RouteBy::SourceDestination => route.is_none_or(|len| rule.both() > u16::from(len)),
        };
        wins.then_some(rule)
    }

    /// Ranges of source addresses, for another encoding of the same decisions: the first address of each, ascending from 0,
    /// and its class. A range ends before the next one.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = (K, u16)> + '_ {
        self.sources.ranges()
    }

    /// The same for destinations.
    pub fn destinations(&self) -> impl ExactSizeIterator<Item = (K, u16)> + '_ {
        self.destinations.ranges()
    }

    /// Number of classes of destinations. The pair of a source and a destination is number `class of the source * columns +
    /// class of the destination`.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.destinations.prefixes.len()
    }

    /// The best policy of each pair, as an index in [`Self::precedences`], or [`NO_RULE`].
    #[must_use]
    pub fn pairs(&self) -> &[u16] {
        &self.pairs
    }

    /// Each policy's gateway, and its precedence: it decides if there is no route, or one whose prefix is shorter than this. With
    /// [`RouteBy::Source`], that is [`BEFORE_ALL`].
    pub fn precedences(&self) -> impl ExactSizeIterator<Item = (K, u16)> + '_ {
        let by_source = self.by == RouteBy::Source;
        self.rules.iter().map(move |rule| (rule.via, if by_source { BEFORE_ALL } else { rule.both() }))
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let classes = |classes: &Classes<K>| {
            classes.starts.len() * (size_of::<K>() + size_of::<u16>())
                + classes.prefixes.len() * size_of::<(Prefix<K>, u16)>()
        };
        classes(&self.sources)
            + classes(&self.destinations)
            + self.rules.len() * size_of::<Rule<K>>()
            + self.pairs.len() * size_of::<u16>()
    }
}

/// The best rule of each pair of classes: of the rules with exactly these prefixes, and the best ones of the pairs with the
/// next shorter prefix of either. A destination on a link has none.
fn best<K: Key>(
    sources: &Classes<K>,
    destinations: &Classes<K>,
    rules: &[Rule<K>],
    exact: &HashMap<(Prefix<K>, Prefix<K>), u16>,
    links: &[Prefix<K>],
) -> Vec<u16> {
    let columns = destinations.prefixes.len();
    let mut pairs = vec![NO_RULE; sources.prefixes.len() * columns];
    let rank = |index: u16| rules.get(usize::from(index)).map(Rule::rank);
    for (row, (from, outer)) in sources.prefixes.iter().enumerate() {
        for (column, (to, wider)) in destinations.prefixes.iter().enumerate() {
            let mut found = exact.get(&(*from, *to)).copied().unwrap_or(NO_RULE);
            for (near, at) in [
                (row > 0, usize::from(*outer) * columns + column),
                (column > 0, row * columns + usize::from(*wider)),
            ] {
                let other = if near { pairs[at] } else { NO_RULE };
                if rank(other) > rank(found) {
                    found = other;
                }
            }
            pairs[row * columns + column] = found;
        }
    }
    let mut on_link = vec![false; columns];
    for (column, (to, wider)) in destinations.prefixes.iter().enumerate() {
        on_link[column] = links.contains(to) || column > 0 && on_link[usize::from(*wider)];
        if on_link[column] {
            pairs.iter_mut().skip(column).step_by(columns).for_each(|pair| *pair = NO_RULE);
        }
    }
    pairs
}

/// Which of some prefixes is the longest that contains an address, by binary search among the places where that changes.
#[derive(Clone, Debug)]
struct Classes<K> {
    /// First address of each range, ascending; the first one is 0.
    starts: Vec<K>,
    /// The class of each range.
    classes: Vec<u16>,
    /// The prefix of each class, and the class of the next shorter prefix around it, which comes before it. The first one
    /// contains all addresses.
    prefixes: Vec<(Prefix<K>, u16)>,
}

impl<K: Key> Classes<K> {
    fn new(prefixes: impl Iterator<Item = Prefix<K>>) -> Self {
        let everything = Prefix::containing(K::default(), 0);
        let mut sorted: Vec<Prefix<K>> = prefixes.chain([everything]).collect();
        // In this order a prefix follows those around it.
        sorted.sort_unstable();
        sorted.dedup();
        let mut this =
            Self { starts: Vec::new(), classes: Vec::new(), prefixes: Vec::with_capacity(sorted.len()) };
        let mut around: Vec<(Prefix<K>, u16)> = Vec::new();
        for (prefix, class) in sorted.into_iter().zip(0u16..) {
            while let Some((inner, _)) = around.pop_if(|(inner, _)| !inner.contains(prefix.addr())) {
                this.end(inner, &around);
            }
            let outer = around.last().map_or(0, |(_, class)| *class);
            this.prefixes.push((prefix, outer));
            this.begin(prefix.addr(), class);
            around.push((prefix, class));
        }
        while let Some((inner, _)) = around.pop() {
            this.end(inner, &around);
        }
        this
    }

    /// A prefix ends: what follows belongs to the one around it.
    fn end(&mut self, inner: Prefix<K>, around: &[(Prefix<K>, u16)]) {
        if let (Some(next), Some((_, class))) = (inner.last().next(), around.last()) {
            self.begin(next, *class);
        }
    }

    fn begin(&mut self, start: K, class: u16) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.classes.pop();
        }
        self.starts.push(start);
        self.classes.push(class);
    }

    /// First address and class of each range.
    fn ranges(&self) -> impl ExactSizeIterator<Item = (K, u16)> + '_ {
        self.starts.iter().copied().zip(self.classes.iter().copied())
    }

    #[inline]
    fn class(&self, key: K) -> u16 {
        let after = self.starts.partition_point(|start| *start <= key);
        self.classes.get(after.wrapping_sub(1)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What should happen, by the definition: every route and policy is looked at.
    fn naive(policies: &Policies, source: IpAddr, destination: IpAddr, route: Option<u8>) -> Option<Policy> {
        if policies.links.iter().any(|link| link.contains(destination)) {
            return None;
        }
        let matching =
            policies.list.iter().filter(|one| one.from.contains(source) && one.to.contains(destination));
        let sum = |one: &&Policy| (u16::from(one.from.len()) + u16::from(one.to.len()), one.to.len());
        let best = matching.max_by_key(sum)?;
        match (policies.by, route) {
            // The route from all sources to a prefix of `len` bits.
            (RouteBy::SourceDestination, Some(len)) if (u16::from(len), len) >= sum(&best) => None,
            _ => Some(*best),
        }
    }

    /// Prefixes that often contain each other, and addresses in and beside them.
    fn prefix(v6: bool) -> impl Strategy<Value = AnyPrefix> {
        let lens = if v6 {
            prop::sample::select(vec![0, 1, 32, 48, 63, 64, 65, 127, 128])
        } else {
            prop::sample::select(vec![0, 1, 7, 8, 9, 16, 24, 31, 32])
        };
        (address(v6), lens).prop_map(|(address, len)| AnyPrefix::containing(address, len))
    }

    fn address(v6: bool) -> impl Strategy<Value = IpAddr> {
        let bytes = || prop::sample::select(vec![0u8, 1, 2, 127, 128, 254, 255]);
        (bytes(), bytes(), bytes(), bytes()).prop_map(move |(a, b, c, d)| {
            if v6 {
                let wide = |byte: u8| u16::from(byte) << 8 | u16::from(byte);
                IpAddr::from([wide(a), 0, 0, wide(b), wide(c), 0, 0, wide(d)])
            } else {
                IpAddr::from([a, b, c, d])
            }
        })
    }

    fn policies(v6: bool) -> impl Strategy<Value = Policies> {
        let rule = (prefix(v6), prefix(v6), address(v6));
        let by = prop::sample::select(vec![RouteBy::Source, RouteBy::SourceDestination]);
        (by, prop::collection::vec(rule, 0..24), prop::collection::vec(prefix(v6), 0..4)).prop_map(
            move |(by, rules, mut links)| {
                links.retain(|link| link.len() > 7);
                let mut seen = std::collections::HashSet::new();
                let everything = |to: AnyPrefix| AnyPrefix::containing(to.addr(), 0);
                let list = rules
                    .into_iter()
                    .map(|(from, to, via)| {
                        let to = if by == RouteBy::Source { everything(to) } else { to };
                        Policy { from, to, via }
                    })
                    .filter(|one| one.from.len() > 0 && seen.insert((one.from, one.to)));
                Policies { by, links, list: list.collect() }
            },
        )
    }

    /// The gateway that decides, by nothing but the tables for another encoding.
    fn encoded<K: Key>(table: &PolicyTable<K>, source: K, destination: K, route: Option<u8>) -> Option<K> {
        let class = |ranges: &[(K, u16)], key: K| ranges.iter().rfind(|(start, _)| *start <= key).unwrap().1;
        let row = class(&table.sources().collect::<Vec<_>>(), source);
        let column = class(&table.destinations().collect::<Vec<_>>(), destination);
        let rule = table.pairs()[usize::from(row) * table.columns() + usize::from(column)];
        let (via, before) = table.precedences().nth(rule.into())?;
        route.is_none_or(|len| before > u16::from(len)).then_some(via)
    }

    fn agrees<K: Key>(policies: &Policies, packets: &[(IpAddr, IpAddr, Option<u8>)]) {
        let table = policies.table::<K>().unwrap();
        let rows = policies.rows::<K>();
        assert_eq!(
            (rows.ranges as usize, rows.pairs as usize, rows.rules as usize),
            (table.sources().len() + table.destinations().len(), table.pairs().len(), policies.list.len())
        );
        assert!(table.sources().map(|(start, _)| start).is_sorted_by(|one, other| one < other));
        for (source, destination, route) in packets {
            let keys = [source, destination].map(|address| K::from_ip(*address).unwrap());
            assert_eq!(
                encoded(&table, keys[0], keys[1], *route),
                table.decide(keys[0], keys[1], *route).map(|rule| rule.via),
                "{source} to {destination}, {route:?}"
            );
            let found = table.decide(K::from_ip(*source).unwrap(), K::from_ip(*destination).unwrap(), *route);
            let found = found.map(|rule| Policy {
                from: rule.from.into(),
                to: rule.to.into(),
                via: rule.via.to_ip(),
            });
            assert_eq!(
                found,
                naive(policies, *source, *destination, *route),
                "{source} to {destination}, {route:?}"
            );
        }
    }

    fn packets(v6: bool) -> impl Strategy<Value = Vec<(IpAddr, IpAddr, Option<u8>)>> {
        let len = prop::option::of(0..=if v6 { 128u8 } else { 32 });
        prop::collection::vec((address(v6), address(v6), len), 40)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn ipv4_policies_agree_with_their_definition(policies in policies(false), packets in packets(false)) {
            agrees::<u32>(&policies, &packets);
        }

        #[test]
        fn ipv6_policies_agree_with_their_definition(policies in policies(true), packets in packets(true)) {
            agrees::<u128>(&policies, &packets);
        }

        #[test]
        fn the_length_follows_from_the_row(own in 0..RowsByLength::<u128>::ROWS_MAX as u16, len in 0..=128u8) {
            let row = RowsByLength::<u128>::row(own, len).unwrap();
            prop_assert_eq!(RowsByLength::<u128>::len(row.get()), Some(len));
            prop_assert_eq!(RowsByLength::<u128>::own(row), own);
        }
    }

    #[test]
    fn the_last_row_is_no_word_of_no_route() {
        let last = RowsByLength::<u32>::ROWS_MAX as u16 - 1;
        assert!(
            RowsByLength::<u32>::row(last, 32).is_some() && RowsByLength::<u32>::row(last + 1, 32).is_none()
        );
        assert_eq!(RowsByLength::<u32>::len(NextHop::NONE_WORD), None);
    }

    /// `count` policies from different sources to `to` different destinations.
    fn many(count: u32, to: u32) -> Policies {
        let prefix = |first: u32, at: u32| Prefix::<u32>::containing(first << 24 | at << 8, 24).into();
        let list = (0..count).map(|at| Policy {
            from: prefix(10, at),
            to: prefix(20, at % to),
            via: IpAddr::from([192, 0, 2, 1]),
        });
        Policies { by: RouteBy::SourceDestination, links: Vec::new(), list: list.collect() }
    }

    #[test]
    fn limits_are_refused_by_name() {
        assert!(many(POLICIES_MAX as u32, 1).table::<u32>().is_ok());
        assert_eq!(
            many(POLICIES_MAX as u32 + 1, 1).table::<u32>().unwrap_err(),
            PolicyError::Count(POLICIES_MAX + 1)
        );
        // 512 × 512 pairs with the prefixes of all addresses.
        assert!(many(511, 511).table::<u32>().is_ok());
        let error = many(512, 512).table::<u32>().unwrap_err();
        assert_eq!(error, PolicyError::Pairs { sources: 513, destinations: 513 });
        assert!(error.to_string().contains("make 263169 pairs: at most 262144"), "{error}");
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        let good = many(1, 1);
        let one = good.list[0];
        let all: AnyPrefix = "0.0.0.0/0".parse().unwrap();
        let with = |list: Vec<Policy>| Policies { list, ..good.clone() }.table::<u32>().unwrap_err();
        assert_eq!(with(vec![Policy { from: all, ..one }]), PolicyError::AllSources(all));
        assert_eq!(with(vec![one, one]), PolicyError::Twice { from: one.from, to: one.to });
        let by = |by| Policies { by, ..good.clone() }.table::<u32>().unwrap_err();
        assert_eq!(by(RouteBy::Source), PolicyError::Destination(one.to));
        assert_eq!(by(RouteBy::Destination), PolicyError::ByDestination);
        assert!(matches!(good.table::<u128>().unwrap_err(), PolicyError::Family(_)));
    }
}
