//! The shared tries of a table command: one for IPv4, one for IPv6, each created when a network needs it.
//!
//! A store is always a [`Dag`], whose own image is `dag64`. Another image can follow it; that image then has
//! the limits and answers lookups: `dag36` follows by deltas, the papers' `dir` and `tcam` and the card by
//! changes. Invariant: changes that the image rejects are not in the store either.

use std::cell::RefCell;
use std::marker::PhantomData;

use hue_tables::dag36::{CARD_WORDS, Dag36Error, account_words, words_total};
use hue_tables::dir::{DirError, DirLimits, DirUsage};
use hue_tables::tcam::{ROW_BITS, TcamError};
use hue_tables::{
    Account, Change, Dag, Dag36, Dir, Key, Limits, NextHop, Prefix, Prefix4, TableError, Tcam, Vid,
};
use indicatif::ProgressBar;

use super::Network;
use super::amount::Amount;
use super::on_card::{Family, OnCard};
use crate::cli::{Encoding, Layout, Tables};
use crate::failure::Failure;
use crate::progress;

/// Routes added to a table in a batch: small enough to report how many fit, large enough to share work.
const CHUNK_ROUTES: usize = 8192;

/// Half bytes of a `dag36` word.
const WORD_HALF_BYTES: u64 = 9;

/// The same for images with expensive changes and small limits.
const CHUNK_ROUTES_SMALL: usize = 64;

/// A table for one address family.
pub struct Store<K: Key> {
    dag: Dag,
    image: Image<K>,
    key: PhantomData<K>,
}

/// The image that answers lookups.
enum Image<K> {
    /// The store's own image.
    Dag64,
    Dag36(Dag36),
    Dir(Box<Dir>),
    Tcam(Tcam),
    Card(RefCell<Box<OnCard<K>>>),
}

/// Why a change was rejected.
pub enum Refused {
    /// An image is full, with the limit.
    Full(String),
    /// Any other error.
    Other(Failure),
}

impl<K: Family> Store<K> {
    fn new(tables: &Tables) -> Result<Self, Failure> {
        let mut limits = Limits::default();
        let image = match (tables.layout, tables.encoding) {
            _ if tables.on_card() => Image::Card(RefCell::new(Box::new(OnCard::new(tables)?))),
            (Layout::Dag, Encoding::Dag64) => {
                limits.image_bytes_max = tables.limit.map_or(limits.image_bytes_max, |bytes| bytes.0);
                Image::Dag64
            }
            (Layout::Dag, Encoding::Dag36) => {
                let words = tables.limit.map_or(CARD_WORDS, |bytes| {
                    u32::try_from(bytes.0.saturating_mul(2) / WORD_HALF_BYTES).unwrap_or(CARD_WORDS)
                });
                Image::Dag36(Dag36::new(words.min(CARD_WORDS)))
            }
            (Layout::Dir, _) => {
                let limits = DirLimits { sets: tables.sets, cam_rows: tables.cam_rows };
                Image::Dir(Box::new(Dir::new(limits)))
            }
            (Layout::Tcam, _) => Image::Tcam(Tcam::new(tables.plane_rows)),
        };
        let mut dag = Dag::new(limits)?;
        if matches!(image, Image::Dag36(_)) {
            dag.enable_deltas();
        }
        Ok(Self { dag, image, key: PhantomData })
    }

    fn add_network(&mut self, vid: Vid, name: &str) -> Result<(), Refused> {
        if K::BITS != u32::BITS as u8 && matches!(self.image, Image::Dir(_) | Image::Tcam(_)) {
            return Err(Refused::Other(Failure::Input(
                "the layouts dir and tcam support only IPv4, but there are IPv6 routes".to_owned(),
            )));
        }
        self.dag.add_network::<K>(vid).map_err(Self::refused)?;
        match &mut self.image {
            Image::Dir(dir) => dir.add_network(vid).map_err(|error| Self::refused_dir(&error)),
            Image::Tcam(tcam) => {
                tcam.add_network(vid);
                Ok(())
            }
            Image::Card(card) => card.get_mut().add_network(vid, name),
            Image::Dag64 | Image::Dag36(_) => self.follow(&[], vid),
        }
        .inspect_err(|_| {
            // It was just added, so it exists.
            let _ = self.dag.remove_network(vid);
        })
    }

    /// Applies changes atomically, including the image.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<(), Refused> {
        let before: Vec<Change<K>> = match self.image {
            Image::Dag64 => Vec::new(),
            _ => changes.iter().map(|(prefix, _)| (*prefix, self.dag.route(vid, *prefix))).collect(),
        };
        self.dag.apply(vid, changes).map_err(Self::refused)?;
        self.follow(changes, vid).inspect_err(|_| {
            // Undoing needs no more memory than applying.
            let _ = self.dag.apply(vid, &before);
        })
    }

    /// Applies the changes of the store to the second image.
    fn follow(&mut self, changes: &[Change<K>], vid: Vid) -> Result<(), Refused> {
        let ipv4 =
            || -> Vec<Change<u32>> { changes.iter().map(|(prefix, hop)| (ipv4(*prefix), *hop)).collect() };
        let card = match &mut self.image {
            Image::Dag64 => return Ok(()),
            Image::Dag36(card) => card,
            Image::Card(card) => return card.get_mut().apply(vid, changes),
            Image::Dir(dir) => return dir.apply(vid, &ipv4()).map_err(|error| Self::refused_dir(&error)),
            Image::Tcam(tcam) => {
                return tcam.apply(vid, &ipv4()).map_err(|error| match error {
                    TcamError::Rows { max, .. } => Refused::Full(format!(
                        "a plane has only {max} rows; raise --plane-rows or use fewer routes"
                    )),
                    unknown @ TcamError::UnknownNetwork(_) => {
                        Refused::Other(Failure::Broken(unknown.to_string()))
                    }
                });
            }
        };
        for delta in self.dag.take_deltas() {
            card.apply(&delta).map_err(|error| match error {
                Dag36Error::Full { words_max, .. } | Dag36Error::LevelFull { words_max, .. } => {
                    Refused::limit(Amount::words(u64::from(words_max)))
                }
                unknown @ Dag36Error::Unknown(_) => Refused::Other(Failure::Broken(unknown.to_string())),
            })?;
        }
        card.reclaim(); // there are no lookups in flight
        Ok(())
    }

    fn refused_dir(error: &DirError) -> Refused {
        let text = match error {
            DirError::Sets { needed, max, .. } => format!(
                "prefixes longer than 19 bits need {needed} sets of the second bank, which has {max}; raise --sets or use \
                 fewer routes"
            ),
            DirError::Cam { needed, max, .. } => format!(
                "routes that conflict with other networks need {needed} rows of the Conflict CAM, which has {max}; raise \
                 --cam-rows or use fewer routes"
            ),
            DirError::Bank { needed, .. } => format!(
                "routes and conflicting routes need {needed} entries of the first bank, which has {}; use fewer routes",
                hue_tables::dir::SLOTS
            ),
            other => return Refused::Other(Failure::Broken(other.to_string())),
        };
        Refused::Full(text)
    }

    fn refused(error: TableError) -> Refused {
        match error {
            TableError::Full { bytes_max, .. } => Refused::limit(Amount::bytes(bytes_max)),
            other => Refused::Other(other.into()),
        }
    }

    /// Memory of all networks.
    pub fn total(&self) -> Amount {
        match &self.image {
            Image::Dag64 => Amount::bytes(self.dag.bytes_live()),
            Image::Dag36(_) => Amount::words(words_total(&self.dag)),
            Image::Dir(dir) => Amount::words(dir.usage().words()),
            Image::Tcam(tcam) => rows(tcam.rows_total()),
            Image::Card(card) => card.borrow().total(),
        }
    }

    /// Number of routes, own and marginal memory of a network; zeros if it has no table.
    pub fn account(&self, vid: Vid) -> Result<(u64, Amount, Amount), Failure> {
        let account = match &self.image {
            Image::Dag36(_) | Image::Card(_) => account_words(&self.dag, vid),
            Image::Dag64 | Image::Dir(_) | Image::Tcam(_) => self.dag.account(vid),
        };
        let account = match account {
            Err(TableError::UnknownNetwork(_)) => Account::default(),
            other => other?,
        };
        let routes = account.routes as u64;
        let (own, marginal) = match &self.image {
            Image::Dag64 => (Amount::bytes(account.bytes_own), Amount::bytes(account.bytes_marginal)),
            Image::Dag36(_) | Image::Card(_) => {
                (Amount::words(account.bytes_own), Amount::words(account.bytes_marginal))
            }
            Image::Dir(dir) => {
                let (own, marginal) = dir.words_of(vid);
                (Amount::words(own), Amount::words(marginal))
            }
            Image::Tcam(_) => (rows(routes), rows(routes)),
        };
        Ok((routes, own, marginal))
    }

    /// Usage of the papers' banks, for layout dir.
    pub fn banks(&self) -> Option<DirUsage> {
        match &self.image {
            Image::Dir(dir) => Some(dir.usage()),
            _ => None,
        }
    }

    /// Whether the image can look up an address.
    pub fn can_ask(&self, key: K) -> bool {
        !matches!(self.image, Image::Card(_)) || key.can_ask()
    }

    /// Looks up next-hop words in the image. For the papers' layouts and the card's external memory, also
    /// returns the number of words read for each.
    pub fn lookup(&self, vids: &[Vid], keys: &[K]) -> Result<Vec<(u16, Option<u32>)>, Failure> {
        let pairs = vids.iter().zip(keys);
        let address = |key: &K| (key.to_bits() >> 96) as u32;
        Ok(match &self.image {
            Image::Dag64 => {
                let mut words = vec![NextHop::NONE_WORD; keys.len()];
                self.dag.reader()?.pin().lookup_batch(vids, keys, &mut words);
                words.into_iter().map(|word| (word, None)).collect()
            }
            Image::Dag36(card) => pairs.map(|(vid, key)| (card.lookup(*vid, *key).0, None)).collect(),
            Image::Dir(dir) => pairs
                .map(|(vid, key)| dir.lookup(*vid, address(key)))
                .map(|found| (found.word, Some(found.reads.into())))
                .collect(),
            Image::Tcam(tcam) => pairs.map(|(vid, key)| (tcam.lookup(*vid, address(key)), Some(1))).collect(),
            Image::Card(card) => {
                let mut card = card.borrow_mut();
                pairs.map(|(vid, key)| card.lookup(*vid, *key)).collect::<Result<_, _>>()?
            }
        })
    }
}

impl Refused {
    /// Describes a limit in bytes.
    fn limit(limit: Amount) -> Self {
        Self::Full(format!(
            "the limit of {} bytes is reached; raise --limit or use fewer routes",
            limit.text()
        ))
    }
}

/// A prefix of the IPv4 family.
fn ipv4<K: Key>(prefix: Prefix<K>) -> Prefix4 {
    Prefix4::containing((prefix.addr().to_bits() >> 96) as u32, prefix.len())
}

/// Memory of this many ternary rows.
fn rows(count: u64) -> Amount {
    Amount::bytes(count * ROW_BITS / 8)
}

/// Tables of both address families.
pub struct Stores {
    pub v4: Option<Store<u32>>,
    pub v6: Option<Store<u128>>,
    /// The network and limit at which building stopped, if a table is full.
    pub overflow: Option<String>,
}

impl Stores {
    /// Builds the tables of all networks. A full table stops this, but is not an error yet. The network with
    /// id `extra` gets tables for both address families, because updates may have routes of both.
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

    /// Number of routes, own and marginal memory of a network.
    pub fn account(&self, vid: Vid) -> Result<(u64, Amount, Amount), Failure> {
        let v4 = self.v4.as_ref().map(|store| store.account(vid)).transpose()?.unwrap_or_default();
        let v6 = self.v6.as_ref().map(|store| store.account(vid)).transpose()?.unwrap_or_default();
        Ok((v4.0 + v6.0, v4.1 + v6.1, v4.2 + v6.2))
    }

    /// The tables, or an error if not everything fits.
    pub fn complete(self) -> Result<Self, Failure> {
        match self.overflow {
            Some(text) => Err(Failure::Full(text)),
            None => Ok(self),
        }
    }
}

/// Adds a network with its routes. Returns `Some` if the table is full.
fn fill<K: Family>(
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
    let mut result = store.add_network(network.vid, &network.name);
    let size =
        if tables.on_card() || tables.layout == Layout::Dag { CHUNK_ROUTES } else { CHUNK_ROUTES_SMALL };
    let mut changes: Vec<Change<K>> = Vec::with_capacity(size.min(routes.len()));
    for chunk in routes.chunks(size) {
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
            Ok(Some(full(&network.name, &limit, &format!("after {fitted} of {of} routes"))))
        }
        Err(Refused::Other(error)) => Err(error),
    }
}

/// Message about a full table: the network, how many routes fit, the limit, and what to do.
pub fn full(name: &str, limit: &str, how_far: &str) -> String {
    format!("network '{name}': table full {how_far}: {limit}")
}
