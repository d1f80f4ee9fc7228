//! Routes that depend on the source of a packet: what follows the lookup of the destination.
//!
//! Flow: word of the destination → **[`redirected`]**: the network's policies, by source and destination → if one decides,
//! the word of its gateway. Networks without policies never come here: the packets of the others are collected in lines of
//! their own ([`RoutedLine`]). Source: ADR 0062.

use std::net::IpAddr;
use std::sync::Arc;

use hue_planes::{AdjacencyKind, Keys, LongestPrefix, Looked, Plane};
use hue_substrate::Program;
use hue_tables::{Guard, Key, NextHop, PolicyTable, Reader, RowsByLength, Rule};

use crate::engine::Soft;
use crate::frame::Frame;
use crate::lines::{Collect, Line, Origin, Run};
use crate::matching::{At, longest, longest_route};
use crate::network::Network;

/// The policies of a network, for addresses of its family.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    V4(PolicyTable<u32>),
    V6(PolicyTable<u128>),
}

impl Table {
    /// Those of a program, which was checked.
    pub fn of(program: &Program) -> Option<Arc<Self>> {
        let policies = program.policies.as_ref()?;
        let table = match program.kind().limits().keys {
            Keys::V4 => policies.table().map(Self::V4),
            Keys::V6 => policies.table().map(Self::V6),
            Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => return None,
        };
        table.ok().map(Arc::new)
    }
}

/// Addresses as a valid packet has them.
trait Addresses: Key {
    /// Source and destination of the packet in a frame without VLAN tag.
    fn of(frame: &[u8]) -> Option<(Self, Self)>;
}

impl Addresses for u32 {
    fn of(frame: &[u8]) -> Option<(Self, Self)> {
        let (source, rest) = frame.get(26..)?.split_first_chunk()?;
        Some((Self::from_be_bytes(*source), Self::from_be_bytes(*rest.first_chunk()?)))
    }
}

impl Addresses for u128 {
    fn of(frame: &[u8]) -> Option<(Self, Self)> {
        let (source, rest) = frame.get(22..)?.split_first_chunk()?;
        Some((Self::from_be_bytes(*source), Self::from_be_bytes(*rest.first_chunk()?)))
    }
}

/// The policy that decides about a packet, whose destination has this word; `None` if that does.
fn deciding<'a, K: Addresses>(
    network: &Network,
    table: &'a PolicyTable<K>,
    word: u16,
    frame: &[u8],
) -> Option<&'a Rule<K>> {
    let route = RowsByLength::<K>::len(word);
    // The router's own addresses; other routes to the router itself are those that only the kernel can follow.
    if route == Some(K::BITS) && network.hops.get(word).kind() == AdjacencyKind::Local {
        return None;
    }
    let (source, destination) = K::of(frame)?;
    table.decide(source, destination, route)
}

/// The word of a packet that passed the first half of the plane, given that of its destination.
#[inline]
pub(crate) fn redirected(network: &Network, guard: &Guard<'_>, word: u16, frame: &[u8]) -> u16 {
    fn word_of<K: Addresses>(
        network: &Network,
        table: &PolicyTable<K>,
        guard: &Guard<'_>,
        word: u16,
        frame: &[u8],
    ) -> u16 {
        match deciding(network, table, word, frame) {
            Some(rule) => NextHop::word(guard.lookup(network.vid, rule.via)),
            None => word,
        }
    }
    match network.shape.policies.as_deref() {
        None => word,
        Some(Table::V4(table)) => word_of(network, table, guard, word, frame),
        Some(Table::V6(table)) => word_of(network, table, guard, word, frame),
    }
}

/// The answer for an explanation, given that for the destination, and the gateway if a policy decides.
pub(crate) fn explained(
    soft: &Soft,
    network: &Network,
    looked: Looked,
    frame: &[u8],
    at: At,
) -> (Looked, Option<IpAddr>) {
    fn of<K: Addresses>(
        soft: &Soft,
        network: &Network,
        table: &PolicyTable<K>,
        looked: Looked,
        frame: &[u8],
        at: At,
    ) -> (Looked, Option<IpAddr>) {
        let Some((source, destination)) = K::of(frame) else { return (looked, None) };
        let word = longest_route(soft, network, destination).map_or(NextHop::NONE_WORD, |(_, hop)| hop);
        let (source, text) = (source.to_ip(), &looked.text);
        match deciding(network, table, word, frame) {
            None => {
                let text = format!("{text}; no route by source takes precedence for source {source}");
                (Looked { text, ..looked }, None)
            }
            Some(rule) => {
                let (answer, via) = (longest(soft, network, rule.via, at), rule.via.to_ip());
                let text =
                    format!("{text}; for source {source}, the route {rule} decides: {via} {}", answer.text);
                (Looked { text, ..answer }, Some(via))
            }
        }
    }
    match network.shape.policies.as_deref() {
        None => (looked, None),
        Some(Table::V4(table)) => of(soft, network, table, looked, frame, at),
        Some(Table::V6(table)) => of(soft, network, table, looked, frame, at),
    }
}

/// Packets of networks with policies, collected for the lookup.
pub(crate) struct RoutedLine<P: Plane>(Box<Line<P>>);

impl<P: Plane<Match = LongestPrefix, Key: Key>> Collect<P> for RoutedLine<P> {
    fn new() -> Box<Self> {
        Box::new(Self(Line::new()))
    }

    fn check(
        &mut self,
        origins: &[Origin],
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        self.0.check(origins, networks, buffer, batch);
    }

    fn check_claimed(
        &mut self,
        networks: &mut [Network],
        buffer: &mut [u8],
        batch: &mut [Frame],
        run: Run<'_>,
    ) {
        self.0.check_claimed(networks, buffer, batch, run);
    }

    #[inline(never)]
    fn finish(
        &mut self,
        networks: &mut [Network],
        reader: &mut Reader,
        buffer: &mut [u8],
        batch: &mut [Frame],
    ) {
        self.0.finish_with(networks, reader, buffer, batch, |guard, network, word, frame| {
            redirected(network, guard, word, frame)
        });
    }
}
