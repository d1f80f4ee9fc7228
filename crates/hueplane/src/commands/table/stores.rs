//! The shared tries of a table command: one for IPv4, one for IPv6, each made only when a network needs it.
//!
//! A store is always a [`Dag`], whose own image is `dag64`. With `dag36` a second image follows it by deltas, has the
//! limit, and answers lookups. Invariant: what an image refuses is not in the store either.

use hue_tables::dag36::{CARD_WORDS, Dag36Error, account_words, words_total};
use hue_tables::{Account, Change, Dag, Dag36, Key, Limits, NextHop, Prefix, TableError, Vid};
use indicatif::ProgressBar;

use super::Network;
use super::amount::Amount;
use crate::cli::{Encoding, Tables};
use crate::failure::Failure;
use crate::progress;

/// Routes added to a table at once: small enough to say how many fitted, large enough to share the work.
const CHUNK_ROUTES: usize = 8192;

/// Half bytes of a word of `dag36`.
const WORD_HALF_BYTES: u64 = 9;

/// A table of one family.
pub struct Store<K: Key> {
    dag: Dag<K>,
    /// The image of `dag36`.
    card: Option<Dag36>,
}

/// Why a change was refused.
pub enum Refused {
    /// An image is full; which limit, in bytes.
    Full(Amount),
    /// Anything else.
    Other(Failure),
}

impl<K: Key> Store<K> {
    fn new(tables: &Tables) -> Result<Self, TableError> {
        let mut limits = Limits::default();
        let card = match tables.encoding {
            Encoding::Dag64 => {
                limits.image_bytes_max = tables.limit.map_or(limits.image_bytes_max, |bytes| bytes.0);
                None
            }
            Encoding::Dag36 => {
                let words = tables.limit.map_or(CARD_WORDS, |bytes| {
                    u32::try_from(bytes.0.saturating_mul(2) / WORD_HALF_BYTES).unwrap_or(CARD_WORDS)
                });
                Some(Dag36::new(words.min(CARD_WORDS)))
            }
        };
        let mut dag = Dag::new(limits)?;
        if card.is_some() {
            dag.record_deltas();
        }
        Ok(Self { dag, card })
    }

    fn add_network(&mut self, vid: Vid) -> Result<(), Refused> {
        self.dag.add_network(vid).map_err(Self::refused)?;
        self.follow().inspect_err(|_| {
            // It was just added, so it is there.
            let _ = self.dag.remove_network(vid);
        })
    }

    /// Applies changes all at once, to the images too.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<(), Refused> {
        let before: Vec<Change<K>> = match self.card {
            Some(_) => changes.iter().map(|(prefix, _)| (*prefix, self.dag.route(vid, *prefix))).collect(),
            None => Vec::new(),
        };
        self.dag.apply(vid, changes).map_err(Self::refused)?;
        self.follow().inspect_err(|_| {
            // Undoing needs no more room than doing did.
            let _ = self.dag.apply(vid, &before);
        })
    }

    /// Brings the second image up to the store.
    fn follow(&mut self) -> Result<(), Refused> {
        let Some(card) = &mut self.card else { return Ok(()) };
        for delta in self.dag.take_deltas() {
            card.apply(&delta).map_err(|error| match error {
                Dag36Error::Full { words_max, .. } | Dag36Error::LevelFull { words_max, .. } => {
                    Refused::Full(Amount::words(u64::from(words_max)))
                }
                unknown @ Dag36Error::Unknown(_) => Refused::Other(Failure::Broken(unknown.to_string())),
            })?;
        }
        card.reclaim(); // no lookup is in flight
        Ok(())
    }

    fn refused(error: TableError) -> Refused {
        match error {
            TableError::Full { bytes_max, .. } => Refused::Full(Amount::bytes(bytes_max)),
            other => Refused::Other(other.into()),
        }
    }

    /// Memory of all networks.
    pub fn total(&self) -> Amount {
        match self.card {
            Some(_) => Amount::words(words_total(&self.dag)),
            None => Amount::bytes(self.dag.bytes_live()),
        }
    }

    /// Routes, own and marginal memory of a network, zeros when it has no table here.
    pub fn account(&self, vid: Vid) -> Result<(u64, Amount, Amount), Failure> {
        let account = match self.card {
            Some(_) => account_words(&self.dag, vid),
            None => self.dag.account(vid),
        };
        let account = match account {
            Err(TableError::UnknownNetwork(_)) => Account::default(),
            other => other?,
        };
        let amount = if self.card.is_some() { Amount::words } else { Amount::bytes };
        Ok((account.routes as u64, amount(account.bytes_own), amount(account.bytes_marginal)))
    }

    /// Next-hop words as the image answers them, one a key.
    pub fn lookup(&self, vids: &[Vid], keys: &[K]) -> Result<Vec<u16>, Failure> {
        if let Some(card) = &self.card {
            return Ok(vids.iter().zip(keys).map(|(vid, key)| card.lookup(*vid, *key).0).collect());
        }
        let mut words = vec![NextHop::NONE_WORD; keys.len()];
        self.dag.reader()?.pin().lookup_batch(vids, keys, &mut words);
        Ok(words)
    }
}

/// Tables of both families.
pub struct Stores {
    pub v4: Option<Store<u32>>,
    pub v6: Option<Store<u128>>,
    /// What did not fit, when something did not.
    pub overflow: Option<String>,
}

impl Stores {
    /// Builds the tables of all networks; a full table ends the work and is not a failure yet. With `extra`, a
    /// network's vid, that network gets a table of either family (updates may bring routes of both).
    pub fn build(
        tables: &Tables,
        networks: &[Network],
        extra: (Option<Vid>, Option<Vid>),
    ) -> Result<Self, Failure> {
        let total = networks.iter().map(|network| network.routes.len() as u64).sum();
        let bar = progress::bar("building tables", total);
        let mut stores = Self { v4: None, v6: None, overflow: None };
        for network in networks {
            let has_neither = network.routes.is_empty();
            let wants4 = !network.routes.v4.is_empty() || has_neither || extra.0 == Some(network.vid);
            let wants6 = !network.routes.v6.is_empty() || extra.1 == Some(network.vid);
            let mut overflow = None;
            if wants4 {
                overflow = fill(&mut stores.v4, tables, network, &network.routes.v4, &bar)?;
            }
            if wants6 && overflow.is_none() {
                overflow = fill(&mut stores.v6, tables, network, &network.routes.v6, &bar)?;
            }
            if overflow.is_some() {
                stores.overflow = overflow;
                break;
            }
        }
        bar.finish_and_clear();
        Ok(stores)
    }

    /// Memory of all networks.
    pub fn total(&self) -> Amount {
        self.v4.as_ref().map_or(Amount::default(), Store::total)
            + self.v6.as_ref().map_or(Amount::default(), Store::total)
    }

    /// Routes, own and marginal memory of a network.
    pub fn account(&self, vid: Vid) -> Result<(u64, Amount, Amount), Failure> {
        let v4 = self.v4.as_ref().map(|store| store.account(vid)).transpose()?.unwrap_or_default();
        let v6 = self.v6.as_ref().map(|store| store.account(vid)).transpose()?.unwrap_or_default();
        Ok((v4.0 + v6.0, v4.1 + v6.1, v4.2 + v6.2))
    }

    /// The tables, or a failure that says what did not fit.
    pub fn complete(self) -> Result<Self, Failure> {
        match self.overflow {
            Some(text) => Err(Failure::Full(text)),
            None => Ok(self),
        }
    }
}

/// Adds a network with its routes; `Some` when the table is full.
fn fill<K: Key>(
    store: &mut Option<Store<K>>,
    tables: &Tables,
    network: &Network,
    routes: &[(Prefix<K>, NextHop)],
    bar: &ProgressBar,
) -> Result<Option<String>, Failure> {
    let store = match store {
        Some(store) => store,
        None => store.insert(Store::new(tables)?),
    };
    let mut fitted = 0;
    let mut result = store.add_network(network.vid);
    let mut changes: Vec<Change<K>> = Vec::with_capacity(CHUNK_ROUTES.min(routes.len()));
    for chunk in routes.chunks(CHUNK_ROUTES) {
        if result.is_err() {
            break;
        }
        changes.clear();
        changes.extend(chunk.iter().map(|(prefix, hop)| (*prefix, Some(*hop))));
        result = store.apply(network.vid, &changes);
        if result.is_ok() {
            fitted += chunk.len();
            bar.inc(chunk.len() as u64);
        }
    }
    match result {
        Ok(()) => Ok(None),
        Err(Refused::Full(limit)) => {
            let of = routes.len();
            Ok(Some(full(&network.name, limit, &format!("after {fitted} of {of} routes"))))
        }
        Err(Refused::Other(error)) => Err(error),
    }
}

/// What to say of a full table: which network, how far it came, which limit, what to do.
pub fn full(name: &str, limit: Amount, how_far: &str) -> String {
    format!(
        "network '{name}': table full {how_far}: the limit of {} bytes is reached; raise --limit or give fewer routes",
        limit.text()
    )
}
