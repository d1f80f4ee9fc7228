//! The history: what each change of the documents did, and what undoes it.
//!
//! Flow: `store` → **[`History`]** → the same database, in the transaction of the change; at start, database →
//! [`History::load`]. Invariants: a revision is there only together with the change that made it, and each one leads to
//! the one before: undoing revisions from the newest on gives the documents of every earlier one. So the history ends
//! where a link is missing, and dropping the oldest never harms the others. At most [`REVISIONS_MAX`] revisions and
//! [`BYTES_MAX`] bytes are kept. Before one is dropped, tenants' revisions that follow one another are merged, so that no
//! number of changes by tenants drops a revision of somebody else. The documents in force never depend on the history: it
//! may be missing or damaged.

use std::collections::{BTreeMap, VecDeque};

use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::api::{Author, DocumentChange, ObjectKind, Revision, RevisionKind, Verb};

/// Most revisions that are kept.
pub const REVISIONS_MAX: usize = 100;
/// Most bytes of revisions that are kept.
pub const BYTES_MAX: usize = 64 << 20;

/// Descriptions of revisions ([`Link`]), by number.
const REVISIONS: TableDefinition<u64, &str> = TableDefinition::new("revisions");
/// What undoes revisions ([`Undo`]), by number.
const UNDOS: TableDefinition<u64, &str> = TableDefinition::new("undos");

/// Documents by key, as the store has them.
pub type Documents = BTreeMap<String, String>;
/// Earlier texts of the documents that a revision changed; `None` for one that it created.
pub type Undo = BTreeMap<String, Option<String>>;

/// Who or what changes the documents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Who.
    pub by: Author,
    /// What.
    pub kind: RevisionKind,
    /// The revision that a rollback restores.
    pub restored: Option<u64>,
}

/// Why documents of an earlier revision cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HistoryError {
    /// The caller asks for a revision that is not kept, or never was.
    #[error("revision {asked} is not kept{}", kept(*.asked, *.first, *.last))]
    NotKept {
        /// Its number.
        asked: u64,
        /// Number of the earliest one whose documents are kept.
        first: u64,
        /// Number of the one in force.
        last: u64,
    },
    /// The database cannot be read, or contradicts itself.
    #[error("the history cannot be read: {0}")]
    Damaged(String),
}

fn kept(asked: u64, first: u64, last: u64) -> String {
    if first == last {
        format!("; only revision {last}, the current one, is kept")
    } else if (first..last).contains(&asked) {
        ": it was merged with the next one, because tenants made many changes".to_owned()
    } else {
        format!("; revisions {first} to {last} are kept")
    }
}

/// A revision, and the one that it follows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Link {
    revision: Revision,
    /// Number of the desired state before it.
    before: u64,
}

/// A link, and the bytes that it takes with what undoes it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    link: Link,
    bytes: usize,
}

/// A change to be recorded.
pub struct Entry {
    kept: Kept,
    link: String,
    undo: String,
}

impl Entry {
    /// The change from `old` to `new` documents, from desired state `before` on. `nodes` names the node: then and now.
    #[must_use]
    pub fn new(
        (before, old): (u64, &Documents),
        (mut revision, new): (Revision, &Documents),
        node: &str,
    ) -> Self {
        let undo = undo(old, new);
        revision.changes = described(&undo, new, node);
        let kept = Link { revision, before };
        // Numbers, names and texts always have a JSON form.
        let link = serde_json::to_string(&kept).unwrap_or_default();
        let undo = serde_json::to_string(&undo).unwrap_or_default();
        Self { kept: Kept { link: kept, bytes: link.len() + undo.len() }, link, undo }
    }
}

/// What undoes the change from `old` to `new` documents.
#[must_use]
pub fn undo(old: &Documents, new: &Documents) -> Undo {
    let mut undo = Undo::new();
    for key in old.keys().chain(new.keys()) {
        let (was, is) = (old.get(key), new.get(key));
        if was != is && !undo.contains_key(key) {
            undo.insert(key.clone(), was.cloned());
        }
    }
    undo
}

/// The change that `undo` undoes, to `new` documents; the node, which is called `node`, first.
#[must_use]
pub fn described(undo: &Undo, new: &Documents, node: &str) -> Vec<DocumentChange> {
    let change = |(key, was): (&String, &Option<String>)| {
        let (object, name) = match key.split_once('/') {
            Some((_, name)) => (ObjectKind::Network, name),
            None => (ObjectKind::Node, node),
        };
        let verb = match (was, new.contains_key(key)) {
            (None, _) => Verb::Create,
            (Some(_), true) => Verb::Change,
            (Some(_), false) => Verb::Delete,
        };
        DocumentChange { verb, object, name: name.to_owned() }
    };
    let mut changes: Vec<DocumentChange> = undo.iter().map(change).collect();
    changes.sort_by_key(|change| change.object != ObjectKind::Node);
    changes
}

/// The documents before a change.
#[must_use]
pub fn undone(mut documents: Documents, undo: Undo) -> Documents {
    for (key, was) in undo {
        match was {
            Some(text) => drop(documents.insert(key, text)),
            None => drop(documents.remove(&key)),
        }
    }
    documents
}

/// What a transaction does with the history.
#[derive(Clone, Copy)]
pub enum Record<'e> {
    /// Adds a change.
    Add(&'e Entry),
    /// Nothing: the documents stay the same.
    Keep,
    /// Forgets all revisions.
    Forget,
}

/// The revisions that are kept, without what undoes them, which stays in the database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// Oldest first.
    kept: VecDeque<Kept>,
}

impl History {
    /// Reads the history of desired state `generation`, and says what is wrong with it, if anything.
    #[must_use]
    pub fn load(database: &Database, generation: u64) -> (Self, Option<String>) {
        let mut history = Self::default();
        let mut expected = generation;
        let problem = match read(database) {
            Err(error) => Some(error.to_string()),
            Ok(all) if all.is_empty() => None,
            Ok(all) => all.into_iter().rev().find_map(|(number, text, undo_bytes)| {
                let Ok(link) = serde_json::from_str::<Link>(&text) else {
                    return Some(format!("revision {number} cannot be read"));
                };
                let Some(undo_bytes) = undo_bytes else {
                    return Some(format!("revision {number} lacks its undo"));
                };
                if link.revision.number != number || number != expected || link.before >= number {
                    return Some(format!("found revision {number}, expected {expected}"));
                }
                expected = link.before;
                history.kept.push_front(Kept { bytes: text.len() + undo_bytes, link });
                None
            }),
        };
        let lost = |why| match history.kept.front() {
            None => format!("the history is damaged ({why}): a new one begins"),
            Some(first) => {
                format!(
                    "the history is damaged ({why}): it begins with revision {}",
                    first.link.revision.number
                )
            }
        };
        let problem = problem.map(lost);
        (history, problem)
    }

    /// The revisions, newest first.
    #[must_use]
    pub fn revisions(&self) -> Vec<Revision> {
        self.kept.iter().rev().map(|kept| kept.link.revision.clone()).collect()
    }

    /// Whether there are no revisions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.bytes).sum()
    }

    /// Number of the revision before the latest one, or before the latest one that changed network `only`.
    #[must_use]
    pub fn previous(&self, only: Option<&str>) -> Option<u64> {
        let touches = |kept: &&Kept| only.is_none_or(|only| changes(&kept.link.revision, only));
        self.kept.iter().rev().find(touches).map(|kept| kept.link.before)
    }

    /// Index of the oldest of two revisions of tenants that follow one another, if there are any.
    fn pair(&self) -> Option<usize> {
        let tenants = |kept: &Kept| kept.link.revision.by.role == Author::TENANT;
        (1..self.kept.len())
            .find(|at| tenants(&self.kept[at - 1]) && tenants(&self.kept[*at]))
            .map(|at| at - 1)
    }

    /// Makes one revision of those at `at` and `at + 1`. It has the later one's number, and undoing it undoes both.
    fn merge(
        &mut self,
        at: usize,
        revisions: &mut Table<'_, u64, &'static str>,
        undos: &mut Table<'_, u64, &'static str>,
    ) -> Result<(), redb::Error> {
        let (Some(older), Some(newer)) = (self.kept.remove(at), self.kept.get_mut(at)) else { return Ok(()) };
        let undo_of = |number: u64| -> Result<Undo, redb::Error> {
            let text = undos.get(number)?;
            Ok(text.and_then(|text| serde_json::from_str(text.value()).ok()).unwrap_or_default())
        };
        let (first, then) = (older.link.revision, &mut newer.link.revision);
        let mut undo = undo_of(then.number)?;
        undo.extend(undo_of(first.number)?);
        newer.link.before = older.link.before;
        for change in first.changes {
            if !then.changes.iter().any(|one| one.object == change.object && one.name == change.name) {
                then.changes.push(change);
            }
        }
        if then.by != first.by {
            then.by.name = None;
        }
        // Numbers, names and texts always have a JSON form.
        let link = serde_json::to_string(&newer.link).unwrap_or_default();
        let undo = serde_json::to_string(&undo).unwrap_or_default();
        newer.bytes = link.len() + undo.len();
        let number = newer.link.revision.number;
        revisions.insert(number, link.as_str())?;
        undos.insert(number, undo.as_str())?;
        revisions.remove(first.number)?;
        undos.remove(first.number)?;
        Ok(())
    }

    /// Records a change in its transaction. Returns the history that is in force when the transaction is.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn record(&self, transaction: &WriteTransaction, record: Record<'_>) -> Result<Self, redb::Error> {
        let entry = match record {
            Record::Keep => return Ok(self.clone()),
            // One that alone exceeds the limit is not kept.
            Record::Add(entry) if entry.kept.bytes <= BYTES_MAX => entry,
            Record::Add(_) | Record::Forget => {
                transaction.delete_table(REVISIONS)?;
                transaction.delete_table(UNDOS)?;
                return Ok(Self::default());
            }
        };
        let number = entry.kept.link.revision.number;
        let mut revisions = transaction.open_table(REVISIONS)?;
        let mut undos = transaction.open_table(UNDOS)?;
        if self.is_empty() {
            // What a damaged history left.
            revisions.retain(|_, _| false)?;
            undos.retain(|_, _| false)?;
        }
        revisions.insert(number, entry.link.as_str())?;
        undos.insert(number, entry.undo.as_str())?;
        let mut next = self.clone();
        next.kept.push_back(entry.kept.clone());
        while next.kept.len() > REVISIONS_MAX || next.bytes() > BYTES_MAX {
            match next.pair() {
                Some(at) => next.merge(at, &mut revisions, &mut undos)?,
                None => drop(next.kept.pop_front()),
            }
        }
        let first = next.kept.front().map_or(number, |kept| kept.link.revision.number);
        revisions.retain_in(..first, |_, _| false)?;
        undos.retain_in(..first, |_, _| false)?;
        Ok(next)
    }

    /// The documents of revision `number`, from those in force, which are of desired state `generation`.
    ///
    /// # Errors
    /// When it is not kept, or the database cannot be read.
    pub fn documents(
        &self,
        database: &Database,
        (generation, now): (u64, &Documents),
        number: u64,
    ) -> Result<Documents, HistoryError> {
        let damaged = |error: redb::Error| HistoryError::Damaged(error.to_string());
        let mut documents = now.clone();
        let mut at = generation;
        let first = self.kept.front().map_or(generation, |kept| kept.link.before);
        let not_kept = HistoryError::NotKept { asked: number, first, last: generation };
        if number == at {
            return Ok(documents);
        }
        let transaction = database.begin_read().map_err(|error| damaged(error.into()))?;
        for kept in self.kept.iter().rev() {
            let Link { revision, before } = &kept.link;
            let table = transaction.open_table(UNDOS).map_err(|error| damaged(error.into()))?;
            let found = table.get(revision.number).map_err(|error| damaged(error.into()))?;
            let undo = found.and_then(|text| serde_json::from_str::<Undo>(text.value()).ok());
            let undo = undo.ok_or_else(|| {
                HistoryError::Damaged(format!("what undoes revision {} cannot be read", revision.number))
            })?;
            documents = undone(documents, undo);
            at = *before;
            if at == number {
                return Ok(documents);
            }
        }
        Err(not_kept)
    }
}

/// Whether a revision changed a network.
#[must_use]
pub fn changes(revision: &Revision, network: &str) -> bool {
    revision.changes.iter().any(|change| change.object == ObjectKind::Network && change.name == network)
}

/// Everything that is stored: number, description, and bytes of what undoes it.
fn read(database: &Database) -> Result<Vec<(u64, String, Option<usize>)>, redb::Error> {
    let transaction = database.begin_read()?;
    let (revisions, undos) = match (transaction.open_table(REVISIONS), transaction.open_table(UNDOS)) {
        (Ok(revisions), Ok(undos)) => (revisions, undos),
        // Nothing was ever recorded.
        (Err(redb::TableError::TableDoesNotExist(_)), _)
        | (_, Err(redb::TableError::TableDoesNotExist(_))) => {
            return Ok(Vec::new());
        }
        (Err(error), _) | (_, Err(error)) => return Err(error.into()),
    };
    let mut all = Vec::new();
    for entry in revisions.iter()? {
        let (number, text) = entry?;
        let undo = undos.get(number.value())?.map(|undo| undo.value().len());
        all.push((number.value(), text.value().to_owned(), undo));
    }
    Ok(all)
}
