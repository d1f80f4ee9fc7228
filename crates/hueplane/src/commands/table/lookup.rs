//! `hueplane table lookup`: looks up addresses in the table image, and checks the answers with a linear
//! search.

use std::collections::VecDeque;
use std::net::IpAddr;

use hue_routing::{AnyPrefix, Query, load_queries};
use hue_tables::{NextHop, Vid};
use serde::{Serialize, Serializer};

use super::on_card::Family;
use super::stores::{Store, Stores};
use super::{Network, load, options};
use crate::cli::Lookup;
use crate::failure::Failure;
use crate::print::{grouped, list};

/// Queries in a batch.
const BATCH_QUERIES: usize = 4096;

/// The answer to one query.
#[derive(Serialize)]
struct Answer<'a> {
    network: &'a str,
    address: IpAddr,
    #[serde(serialize_with = "as_text")]
    prefix: Option<AnyPrefix>,
    next_hop: Option<&'a str>,
    /// Number of words read, for the papers' layouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<u32>,
}

fn as_text<S: Serializer>(prefix: &Option<AnyPrefix>, serializer: S) -> Result<S::Ok, S::Error> {
    match prefix {
        Some(prefix) => serializer.collect_str(prefix),
        None => serializer.serialize_none(),
    }
}

/// Runs the command.
pub fn run(args: &Lookup) -> Result<(), Failure> {
    let tables = &args.tables;
    let networks = load(tables)?;
    let names: Vec<&str> = networks.iter().map(|network| network.name.as_str()).collect();
    let (queries, skipped) = load_queries(&args.queries, &names, &options(tables))?;
    if skipped > 0 {
        eprintln!("hueplane: {}: {} invalid lines skipped", args.queries.display(), grouped(skipped));
    }
    let stores = Stores::build(tables, &networks, (None, None))?.complete()?;
    let mut wrong = None;
    let mut failed = None;
    let mut batches = queries.chunks(BATCH_QUERIES);
    let mut ready: VecDeque<Answer<'_>> = VecDeque::new();
    let answers = std::iter::from_fn(|| {
        if ready.is_empty()
            && let Some(batch) = batches.next()
        {
            let words = || {
                let words4 = answer_batch(stores.v4.as_ref(), &networks, batch)?;
                Ok((words4, answer_batch(stores.v6.as_ref(), &networks, batch)?))
            };
            let (words4, words6) = match words() {
                Ok(words) => words,
                Err(error) => {
                    failed = Some(error);
                    return None;
                }
            };
            let (mut words4, mut words6) = (words4.into_iter(), words6.into_iter());
            ready.extend(batch.iter().filter_map(|query| {
                let word = if query.address.is_ipv4() { words4.next() } else { words6.next() };
                let network = networks.get(query.network)?;
                let (word, reads) = word.unwrap_or((NextHop::NONE_WORD, None));
                Some(Answer { reads, ..answer(network, query, NextHop::new(word), &mut wrong) })
            }));
        }
        ready.pop_front()
    });
    let header = format!("{:<16} {:<24} {:<24} NEXT HOP", "NETWORK", "ADDRESS", "PREFIX");
    list(tables.output.format, answers, &header, |answer| {
        let prefix = answer.prefix.map_or_else(|| "-".to_owned(), |prefix| prefix.to_string());
        let hop = answer.next_hop.map_or("no route", |hop| if hop.is_empty() { "(unnamed)" } else { hop });
        format!("{:<16} {:<24} {:<24} {hop}", answer.network, answer.address, prefix)
    })?;
    match (failed, wrong) {
        (Some(error), _) => Err(error),
        (None, Some(text)) => Err(Failure::Broken(text)),
        (None, None) => Ok(()),
    }
}

/// One answer. If image and routes disagree, this is noted in `wrong`.
fn answer<'a>(
    network: &'a Network,
    query: &Query,
    hop: Option<NextHop>,
    wrong: &mut Option<String>,
) -> Answer<'a> {
    let naive = network.routes.longest(query.address);
    let name = |hop| network.routes.hops.name(hop);
    if naive.map(|(_, hop)| hop) != hop && wrong.is_none() {
        *wrong = Some(format!(
            "network '{}', {}: the table image answers {:?}, the routes {:?}; please report this bug",
            network.name,
            query.address,
            hop.map(name),
            naive.map(|(_, hop)| name(hop)),
        ));
    }
    let prefix = naive.map(|(prefix, _)| prefix);
    Answer { network: &network.name, address: query.address, prefix, next_hop: hop.map(name), reads: None }
}

/// Next-hop words for the queries of one address family, in order; empty if no network has a table for it.
fn answer_batch<K: Family>(
    store: Option<&Store<K>>,
    networks: &[Network],
    batch: &[Query],
) -> Result<Vec<(u16, Option<u32>)>, Failure> {
    let Some(store) = store else { return Ok(Vec::new()) };
    let (vids, keys): (Vec<Vid>, Vec<K>) = batch
        .iter()
        .filter_map(|query| Some((networks.get(query.network)?.vid, K::from_ip(query.address)?)))
        .unzip();
    store.lookup(&vids, &keys)
}
