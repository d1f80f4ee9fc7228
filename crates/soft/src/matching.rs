//! How the questions of a kind are answered: by the trie that all networks share, or by the network's own table, of MAC
//! addresses, of patterns or of flat labels.
//!
//! A kind names its match type ([`Plane::Match`]); the engine is generic over it, so that it costs no branch a packet.

use std::net::IpAddr;

use hue_planes::{
    Adjacency, AdjacencyKind, Answer, ByFamily, BySlice, Class, Exact, IpKey, LongestPrefix, Looked, Nearest,
    NoTable, Plane, Reason, Settings, Source, Ternary, TwoFamilies, mpls,
};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Found, Guard, Key, MacKey, NextHop, Pattern, Prefix, Vid, clockwise};

use crate::engine::Soft;
use crate::lines::{Collect, Line, LinesByFamily};
use crate::network::{Network, Through};
use crate::switch::Switch;

/// A match type, for the packets of a kind. Each answer is the row that the key names, and nothing is learnt, unless
/// the match type says otherwise.
pub(crate) trait Matching<P: Plane> {
    /// What the answer leaves for [`Matching::settle`].
    type Left: Copy + Default;
    /// Where the packets of a batch are collected.
    type Lines: Collect<P>;

    /// Looks up one key in the tables of all networks. Match types with a table of the network's own have no word: their
    /// `answer` searches it.
    #[inline(always)]
    fn word(_: &Guard<'_>, _: Vid, _: P::Key) -> u16 {
        0
    }

    /// The answer for a packet, given the word of its key.
    #[inline(always)]
    fn answer<'a>(network: &'a Network, word: u16, _: P::Carried, at: At) -> (Answer<'a>, Self::Left) {
        (Answer::of(network.hops.get_for(word, at.flow)), Self::Left::default())
    }

    /// What happens after the decision: enters what the packet teaches, and charges the limit on floods. Returns the
    /// final outcome.
    #[inline(always)]
    fn settle(_: &mut Network, _: &[u8], _: P::Carried, outcome: Reason, _: At, _: Self::Left) -> Reason {
        outcome
    }

    /// The addresses whose entries in the network's own table its answer depends on.
    fn asked(_: P::Carried) -> Vec<MacKey> {
        Vec::new()
    }

    /// The answer for an explanation, with what the network's home has learnt, and the address that is looked up.
    fn explain(
        soft: &Soft,
        network: &Network,
        switch: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>);
}

/// A match type whose packets are all collected in one [`Line`].
pub(crate) trait InLine<P: Plane>: Matching<P, Lines = Line<P>> {
    /// Whether a packet may change the answer for the next one, so that packets are not collected: each is finished
    /// before the next one is looked up.
    const ONE_BY_ONE: bool;

    /// Looks up a batch: a word for each key. See [`Matching::word`].
    #[inline(always)]
    fn look_up(_: &Guard<'_>, _: &[Vid], _: &[P::Key], _: &mut [u16]) {}

    /// When a packet is collected: asks the cache for what its answer needs from a table of the network's own.
    #[inline(always)]
    fn prefetch(_: &Network, _: P::Carried) {}

    /// [`Matching::answer`] in the common case. Separate, so that the answer stays in registers.
    #[inline(always)]
    fn answer_known<'a>(
        network: &'a Network,
        word: u16,
        carried: P::Carried,
        at: At,
    ) -> Option<(Answer<'a>, Self::Left)> {
        Some(Self::answer(network, word, carried, at))
    }
}

/// Where and when a packet arrived, its length in bytes, and the hash of its flow ([`Plane::flow`]), which is computed only
/// for answers that need it.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub vport: u16,
    pub time_ns: u64,
    pub bytes: usize,
    pub flow: u32,
}

impl<P: Plane<Match = Self>> Matching<P> for LongestPrefix
where
    P::Key: Key,
{
    type Left = ();
    type Lines = Line<P>;

    #[inline(always)]
    fn word(table: &Guard<'_>, vid: Vid, key: P::Key) -> u16 {
        NextHop::word(table.lookup(vid, key))
    }

    fn explain(
        soft: &Soft,
        network: &Network,
        _: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let key = P::key(carried);
        (longest(soft, network, key, at), Some(key.to_ip()))
    }
}

impl<P: Plane<Match = Self>> InLine<P> for LongestPrefix
where
    P::Key: Key,
{
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn look_up(table: &Guard<'_>, vids: &[Vid], keys: &[P::Key], words: &mut [u16]) {
        table.lookup_batch(vids, keys, words);
    }

    /// The row is no group.
    #[inline(always)]
    fn answer_known<'a>(network: &'a Network, word: u16, _: P::Carried, _: At) -> Option<(Answer<'a>, ())> {
        let hop = network.hops.get(word);
        (hop.kind() != AdjacencyKind::Group).then_some((Answer::of(hop), ()))
    }
}

/// The longest prefix of a network's table that contains a key, and its row.
pub(crate) fn longest_route<K: Key>(soft: &Soft, network: &Network, key: K) -> Option<(Prefix<K>, u16)> {
    (0..=K::BITS).rev().find_map(|len| {
        let prefix = Prefix::containing(key, len);
        soft.dag.route(network.vid, prefix).map(|hop| (prefix, hop.get()))
    })
}

/// The same for an explanation.
pub(crate) fn longest<K: Key>(soft: &Soft, network: &Network, key: K, at: At) -> Looked {
    named(network, longest_route(soft, network, key), at, |prefix| prefix.to_string())
}

/// The same for a prefix that was found, which has this name.
fn named<K: Key>(
    network: &Network,
    found: Option<(Prefix<K>, u16)>,
    At { flow, .. }: At,
    name: impl FnOnce(Prefix<K>) -> String,
) -> Looked {
    match found {
        Some((prefix, hop)) => {
            let mut text = format!("matches {}, next hop {hop}", name(prefix));
            if let Some(Through { slots, row, .. }) = network.hops.through(hop, flow) {
                let (members, slot, count, row) =
                    (slots.members().len(), slots.slot(flow), slots.len(), row.get());
                text += &format!(
                    ": group of {members} members, hash 0x{flow:08x}, slot {slot} of {count}, next hop {row}"
                );
            }
            Looked::of(*network.hops.get_for(hop, flow), text)
        }
        None => Looked::of(Adjacency::NONE, "no prefix matches".to_owned()),
    }
}

impl<P: Plane<Match = Self, Key = u128>> Matching<P> for BySlice {
    type Left = ();
    type Lines = Line<P>;

    #[inline(always)]
    fn word(table: &Guard<'_>, vid: Vid, key: u128) -> u16 {
        NextHop::word(table.lookup(vid, key))
    }

    fn explain(
        soft: &Soft,
        network: &Network,
        _: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let key = P::key(carried);
        let name =
            |prefix| SlicedPrefix::of(prefix).map_or_else(|| prefix.to_string(), |one| one.to_string());
        (named(network, longest_route(soft, network, key), at, name), Some(key.to_ip()))
    }
}

impl<P: Plane<Match = Self, Key = u128>> InLine<P> for BySlice {
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn look_up(table: &Guard<'_>, vids: &[Vid], keys: &[u128], words: &mut [u16]) {
        table.lookup_batch(vids, keys, words);
    }

    /// The row is no group.
    #[inline(always)]
    fn answer_known<'a>(network: &'a Network, word: u16, _: P::Carried, _: At) -> Option<(Answer<'a>, ())> {
        let hop = network.hops.get(word);
        (hop.kind() != AdjacencyKind::Group).then_some((Answer::of(hop), ()))
    }
}

impl<P: TwoFamilies> Matching<P> for ByFamily {
    type Left = ();
    type Lines = LinesByFamily<P>;

    fn word(table: &Guard<'_>, vid: Vid, key: IpKey) -> u16 {
        NextHop::word(match key {
            IpKey::V4(key) => table.lookup(vid, key),
            IpKey::V6(key) => table.lookup(vid, key),
        })
    }

    fn explain(
        soft: &Soft,
        network: &Network,
        _: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        match P::key(carried) {
            IpKey::V4(key) => (longest(soft, network, key, at), Some(key.to_ip())),
            IpKey::V6(key) => (longest(soft, network, key, at), Some(key.to_ip())),
        }
    }
}

impl<P: Plane<Match = Self>> Matching<P> for NoTable {
    type Left = ();
    type Lines = Line<P>;

    fn explain(_: &Soft, _: &Network, _: Option<&Switch>, _: P::Carried, _: At) -> (Looked, Option<IpAddr>) {
        (Looked::of(Adjacency::NONE, "no table".to_owned()), None)
    }
}

impl<P: Plane<Match = Self>> InLine<P> for NoTable {
    const ONE_BY_ONE: bool = false;
}

impl<P: Plane<Match = Self, Key = MacKey>> Matching<P> for Exact {
    /// Whether the packet teaches nothing new.
    type Left = bool;
    type Lines = Line<P>;

    #[inline(always)]
    fn answer<'a>(network: &'a Network, _: u16, carried: P::Carried, at: At) -> (Answer<'a>, bool) {
        answer::<P>(network, network.switch.as_deref(), carried, at)
    }

    #[inline(always)]
    fn settle(
        network: &mut Network,
        _: &[u8],
        carried: P::Carried,
        outcome: Reason,
        at: At,
        is_known: bool,
    ) -> Reason {
        if is_known && !outcome.is_flood() {
            return outcome;
        }
        let Some(switch) = network.switch.as_mut() else { return outcome };
        if let Some(source) = P::source(carried)
            && P::teaches(outcome)
        {
            switch.learn(source, at.vport, at.time_ns);
        }
        if !outcome.is_flood() || switch.may_flood(at.time_ns, at.bytes) {
            return outcome;
        }
        Reason::of_class(P::KIND, Class::Storm).unwrap_or(outcome)
    }

    fn asked(carried: P::Carried) -> Vec<MacKey> {
        [P::key(carried)].into_iter().chain(P::source(carried)).collect()
    }

    fn explain(
        _: &Soft,
        network: &Network,
        switch: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let (Answer { hop, arrival, source, .. }, _) = answer::<P>(network, switch, carried, at);
        let found = switch.and_then(|switch| switch.addresses.macs.get(P::key(carried), at.time_ns));
        let text = match found {
            Some(Found { fixed: true, .. }) => format!("static entry, port {}", hop.port()),
            Some(_) => format!("learnt at port {}", hop.port()),
            None => "no entry".to_owned(),
        };
        (Looked { arrival: *arrival, source, ..Looked::of(*hop, text) }, None)
    }
}

impl<P: Plane<Match = Self, Key = MacKey>> InLine<P> for Exact {
    const ONE_BY_ONE: bool = true;

    /// Both addresses are known, and the packet teaches nothing new.
    #[inline(always)]
    fn answer_known<'a>(
        network: &'a Network,
        _: u16,
        carried: P::Carried,
        at: At,
    ) -> Option<(Answer<'a>, bool)> {
        let macs = &network.switch.as_ref()?.addresses.macs;
        if macs.fresh(P::source(carried)?, at.time_ns)? != at.vport {
            return None;
        }
        let hop = macs.fresh(P::key(carried), at.time_ns)?;
        let arrival = network.hops.get(at.vport);
        // Where the sender is, it may be, whether or not its entry is static.
        let source = Some(Source { port: arrival.port(), fixed: false });
        Some((Answer { arrival, source, ..Answer::of(network.hops.get(hop)) }, true))
    }
}

/// The answer of a network's own table, and whether the packet teaches nothing new.
fn answer<'a, P: Plane<Key = MacKey>>(
    network: &'a Network,
    switch: Option<&Switch>,
    carried: P::Carried,
    at: At,
) -> (Answer<'a>, bool) {
    let get = |mac| switch.and_then(|switch| switch.addresses.macs.get(mac, at.time_ns));
    let sender = P::source(carried).and_then(get);
    let arrival = network.hops.get(at.vport);
    let is_here = |sender: Found| sender.hop == at.vport;
    let source = |sender: Found| {
        let port = if is_here(sender) { arrival } else { network.hops.get(sender.hop) }.port();
        Source { port, fixed: sender.fixed }
    };
    let hop = get(P::key(carried)).map_or(&Adjacency::NONE, |found| network.hops.get(found.hop));
    let answer = Answer { arrival, source: sender.map(source), ..Answer::of(hop) };
    (answer, sender.is_some_and(|sender| sender.is_fresh && is_here(sender)))
}

impl<P: Plane<Match = Self, Key = u128>> Matching<P> for Ternary {
    type Left = ();
    type Lines = Line<P>;

    #[inline(always)]
    fn answer<'a>(network: &'a Network, _: u16, carried: P::Carried, _: At) -> (Answer<'a>, ()) {
        let word =
            network.shape.patterns.as_ref().map_or(NextHop::NONE_WORD, |table| table.word(P::key(carried)));
        let row = network.hops.get(word);
        if row.kind() != AdjacencyKind::Labels {
            return (Answer::of(row), ());
        }
        (Answer { labels: row, ..Answer::of(network.hops.get(row.then())) }, ())
    }

    fn explain(
        _: &Soft,
        network: &Network,
        _: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let (Answer { hop, labels, .. }, ()) = <Self as Matching<P>>::answer(network, 0, carried, at);
        let table = network.shape.patterns.as_ref();
        let text = match table.and_then(|table| table.entry(P::key(carried))) {
            Some((order, pattern)) => {
                format!("matches entries[{order}], {}", pattern_text(network, &pattern))
            }
            None => "no entry matches".to_owned(),
        };
        (Looked { labels: *labels, ..Looked::of(*hop, text) }, None)
    }
}

impl<P: Plane<Match = Self, Key = u128>> InLine<P> for Ternary {
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn prefetch(network: &Network, carried: P::Carried) {
        if let Some(table) = &network.shape.patterns {
            table.prefetch(P::key(carried));
        }
    }
}

impl<P: Plane<Match = Self, Key = u128>> Matching<P> for Nearest {
    type Left = ();
    type Lines = Line<P>;

    #[inline(always)]
    fn answer<'a>(network: &'a Network, _: u16, carried: P::Carried, at: At) -> (Answer<'a>, ()) {
        let closest = Closest::of(network, P::key(carried), at);
        let arrival = network.hops.get(at.vport);
        (Answer { arrival, exact: closest.exact, ..Answer::of(closest.hop) }, ())
    }

    /// Enters the way back to the labels that the packet names, but not to those that the network has entries for.
    #[inline(always)]
    fn settle(
        network: &mut Network,
        bytes: &[u8],
        carried: P::Carried,
        outcome: Reason,
        at: At,
        (): (),
    ) -> Reason {
        if let Some(heard) = P::heard(bytes, carried)
            && P::teaches(outcome)
        {
            let arrival = network.hops.get(at.vport);
            let hop = Adjacency::forward(arrival.port(), arrival.src(), heard.neighbour, arrival.mtu_bytes());
            let shape = &mut *network.shape;
            if let Some(pointers) = shape.pointers.as_mut() {
                let is_entry = |label| shape.labels.as_ref().is_some_and(|table| table.has(label));
                for label in heard.labels().iter().copied().filter(|label| !is_entry(*label)) {
                    pointers.learn(label, hop, at.time_ns);
                }
            }
        }
        outcome
    }

    fn explain(
        _: &Soft,
        network: &Network,
        _: Option<&Switch>,
        carried: P::Carried,
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let closest = Closest::of(network, P::key(carried), at);
        let text = match closest.label {
            Some(label) => {
                let what = if closest.cached { "cached pointer" } else { "entry" };
                let match_text = if closest.exact { "its own" } else { "the closest before it" };
                format!("{what} {}, {match_text}", label_text(network, label))
            }
            None => "no entry and no pointer".to_owned(),
        };
        let arrival = *network.hops.get(at.vport);
        (Looked { arrival, exact: closest.exact, ..Looked::of(*closest.hop, text) }, None)
    }
}

impl<P: Plane<Match = Self, Key = u128>> InLine<P> for Nearest {
    /// A packet may teach a pointer to the destination of the next one: each answer is searched when its packet is finished.
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn prefetch(network: &Network, carried: P::Carried) {
        if let Some(table) = &network.shape.labels {
            table.prefetch(P::key(carried));
        }
    }
}

/// The closest label of a network's entries and pointers.
#[derive(Clone, Copy)]
struct Closest<'a> {
    /// `None` if there are neither.
    label: Option<u128>,
    hop: &'a Adjacency,
    /// Whether it is the destination's.
    exact: bool,
    /// Whether it is a pointer.
    cached: bool,
}

impl<'a> Closest<'a> {
    /// An entry is preferred to a pointer that is not closer.
    #[inline(always)]
    fn of(network: &'a Network, key: u128, at: At) -> Self {
        let shape = &*network.shape;
        let entry = shape.labels.as_deref().and_then(|table| table.closest(key));
        let by_entry = entry.map(|(label, word)| Self {
            label: Some(label),
            hop: network.hops.get(word),
            exact: label == key,
            cached: false,
        });
        if let Some(found) = by_entry.filter(|found| found.exact) {
            return found;
        }
        let pointer = shape.pointers.as_ref().and_then(|pointers| pointers.closest(key, at.time_ns));
        let by_pointer =
            pointer.map(|(label, hop)| Self { label: Some(label), hop, exact: label == key, cached: true });
        let way = |found: &Self| found.label.map_or(u128::MAX, |label| clockwise(label, key));
        match (by_entry, by_pointer) {
            (Some(entry), Some(pointer)) => {
                if way(&pointer) < way(&entry) {
                    pointer
                } else {
                    entry
                }
            }
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => Self { label: None, hop: &Adjacency::NONE, exact: false, cached: false },
        }
    }
}

/// A label as the network's document has it.
fn label_text(network: &Network, label: u128) -> String {
    match &network.settings {
        Settings::Rofl(settings) => settings.label_text(label),
        _ => format!("0x{label:032x}"),
    }
}

/// A pattern as the network's document has it.
fn pattern_text(network: &Network, pattern: &Pattern) -> String {
    match &network.settings {
        Settings::Extract(settings) => settings.pattern_text(pattern),
        Settings::Mpls(_) => format!("label {}", mpls::label_of(pattern.value())),
        _ => pattern.to_string(),
    }
}
