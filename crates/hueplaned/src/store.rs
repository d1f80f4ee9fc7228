//! The store: keeps the desired state and the assigned ids over restarts.
//!
//! Flow: `node::change` → **[`Store::save`]** → file; at start, file → [`Store::open`] → node. A save is one
//! transaction that is on the disk when it returns; only changed documents are written. Then a copy of everything is
//! written beside the database, in one file that appears as a whole. A database that is damaged, empty, new, or older than
//! the copy is renamed, and the copy is used instead: the last state known to be good. A copy that is damaged is written again. The transaction also records the
//! change in the history ([`crate::history`]), which is dropped if the disk has room for the change only without it.
//! Invariants: what [`Store::open`] returns was in force once, as a whole, and has been validated again; a failed
//! save changes nothing and gives back the disk space that it took; a file has the database's name only when it is complete. A change that makes the state smaller is stored even
//! on a full disk, in space that a file holds in reserve. Documents are JSON, which is YAML: they go through the same
//! reader as users' files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hue_control::Ids;
use hue_demux::PortId;
use hue_intent::{Intent, Network, NetworkTag, Node, NodeSpec, NodeTag, Source};
use hue_tables::Vid;
use nix::fcntl::posix_fallocate;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::api::{Revision, Timestamp};
use crate::history::{Documents, Entry, History, HistoryError, Origin, Record};
use crate::pending::Pending;

/// The database in the state directory.
pub const FILE: &str = "hueplane.redb";
/// The copy beside it.
pub const COPY: &str = "last-good.json";
/// Name of the copy until it is complete.
const COPY_NEW: &str = "last-good.json.new";
/// A new database until it is complete.
const FILE_NEW: &str = "hueplane.redb.new";
/// A file that reserves disk space for deletions.
const RESERVE: &str = "reserve";
/// Bytes of it.
const RESERVE_BYTES: u64 = 512 << 10;
/// Smallest useful reserve in bytes: a deletion writes a few pages of 4 KiB.
const RESERVE_BYTES_MIN: u64 = 32 << 10;
/// Version of the stored format.
const FORMAT: u64 = 1;
/// Name of the node when no document gives one.
const NODE_NAME: &str = "node";

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const DOCUMENTS: TableDefinition<&str, &str> = TableDefinition::new("documents");
const IDS: TableDefinition<&str, u64> = TableDefinition::new("ids");
/// The change that waits for its confirmation, under [`PENDING_KEY`].
const PENDING: TableDefinition<&str, &str> = TableDefinition::new("pending");
const PENDING_KEY: &str = "pending";

/// Why desired state cannot be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The state directory or a file in it cannot be used.
    #[error("{}: cannot be {done}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operation that failed.
        done: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// Nothing was written: there is no room, or the disk fails.
    #[error("{}: the desired state cannot be written: {reason}; the previous state stays in force", path.display())]
    Write {
        /// The database.
        path: PathBuf,
        /// Why.
        reason: String,
        /// Whether the disk or its quota is full.
        full: bool,
    },
    /// Another process has the database open.
    #[error("{}: another daemon has it open", path.display())]
    Open {
        /// The database.
        path: PathBuf,
    },
    /// The database is damaged, and its copy is damaged or missing.
    #[error(
        "{}: the store is damaged ({reason}) and there is no good copy ({copy}): restore the state directory from a backup, or \
         begin with nothing: `hueplane up --empty`", path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What is wrong with the copy.
        copy: String,
    },
    /// A later version of the daemon wrote the database.
    #[error("{}: found format {found}, expected {FORMAT}: it was written by a later version of the daemon", path.display())]
    Format {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
}

/// Desired state that is or was in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Desired {
    /// Its generation; 0 when nothing was ever applied.
    pub generation: u64,
    /// When it came into force.
    pub applied: Option<Timestamp>,
    /// The documents.
    pub intent: Intent,
    /// Ids of networks and ports.
    pub ids: Ids,
    /// The change that made it, if that waits for its confirmation.
    pub pending: Option<Arc<Pending>>,
}

impl Desired {
    /// Its documents: JSON by name, `node` or `network/NAME`.
    #[must_use]
    pub fn documents(&self) -> Documents {
        Rows::of(self).documents
    }
}

impl Default for Desired {
    fn default() -> Self {
        Self { generation: 0, applied: None, intent: nothing(), ids: Ids::default(), pending: None }
    }
}

/// Desired state without ports and networks.
#[must_use]
pub fn nothing() -> Intent {
    let name = NODE_NAME.parse();
    let node = Node {
        api_version: hue_intent::ApiVersion::V1,
        kind: NodeTag::Node,
        metadata: hue_intent::Metadata { name: name.unwrap_or_else(|_| unreachable!("a letter")) },
        spec: NodeSpec::default(),
    };
    Intent { node, node_given: false, networks: Vec::new() }
}

/// A document as stored: its key and its JSON.
#[must_use]
pub fn network_document(network: &Network) -> (String, String) {
    debug_assert_eq!(network.kind, NetworkTag::Network);
    (network_key(network.name()), serde_json::to_string(network).unwrap_or_default())
}

/// Key of a network's document.
#[must_use]
pub fn network_key(name: &str) -> String {
    format!("network/{name}")
}

/// Everything stored, as rows. Equal rows are equal states.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Rows {
    format: u64,
    generation: u64,
    applied_us: u64,
    documents: BTreeMap<String, String>,
    ids: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending: Option<Pending>,
}

/// Key of the node's document.
pub const NODE_KEY: &str = "node";

impl Rows {
    /// Bytes of its documents, and of what undoes a change that waits for its confirmation: so to undo it never takes
    /// more.
    fn bytes(&self) -> usize {
        let documents: usize = self.documents.iter().map(|(key, text)| key.len() + text.len()).sum();
        documents + self.pending.as_ref().map_or(0, Pending::bytes)
    }

    fn of(desired: &Desired) -> Self {
        let intent = &desired.intent;
        let mut documents: BTreeMap<String, String> = intent.networks.iter().map(network_document).collect();
        if intent.node_given {
            documents.insert(NODE_KEY.to_owned(), serde_json::to_string(&intent.node).unwrap_or_default());
        }
        let networks = desired.ids.networks.iter();
        let mut ids: BTreeMap<String, u64> =
            networks.map(|(name, vid)| (network_key(name), u64::from(vid.get()))).collect();
        let ports = desired.ids.ports.iter();
        ids.extend(ports.map(|(name, id)| (format!("port/{name}"), u64::from(id.get()))));
        Self {
            format: FORMAT,
            generation: desired.generation,
            applied_us: desired.applied.map_or(0, Timestamp::us),
            documents,
            ids,
            pending: desired.pending.as_deref().cloned(),
        }
    }

    /// The state in these rows, if it is valid.
    fn desired(&self) -> Result<Desired, String> {
        let sources: Vec<Source> = self
            .documents
            .iter()
            .map(|(name, text)| Source { name: format!("stored {name}"), bytes: text.clone().into_bytes() })
            .collect();
        let intent = if sources.is_empty() {
            nothing()
        } else {
            hue_intent::parse_accepted(sources).map_err(|errors| errors.to_string())?
        };
        let mut ids = Ids::default();
        for (key, number) in &self.ids {
            let wrong = || format!("found id {number} of {key}");
            if let Some(name) = key.strip_prefix("network/") {
                let vid = u16::try_from(*number).ok().and_then(Vid::new).ok_or_else(wrong)?;
                ids.networks.insert(name.to_owned(), vid);
            } else if let Some(name) = key.strip_prefix("port/") {
                let id = u8::try_from(*number).map_err(|_| wrong())?;
                ids.ports.insert(name.to_owned(), PortId::new(id));
            }
        }
        let applied = (self.applied_us > 0).then(|| Timestamp::from_us(self.applied_us));
        // An earlier version of the daemon may have changed the documents since.
        let pending =
            self.pending.clone().filter(|pending| pending.revision == self.generation).map(Arc::new);
        Ok(Desired { generation: self.generation, applied, intent, ids, pending })
    }
}

/// Opens the database at a path, which is created when missing. Tests open it with a disk that fails.
pub type Opener = Arc<dyn Fn(&Path) -> Result<Database, DatabaseError> + Send + Sync>;

/// The open database.
pub struct Store {
    directory: PathBuf,
    opener: Opener,
    /// `None` after a failure; it is then reopened.
    database: Option<Database>,
    /// Its content.
    rows: Rows,
    /// What is wrong with the copy, if anything.
    copy_problem: Option<String>,
    /// Its revisions.
    history: History,
    /// Why earlier revisions are missing, if not because there were too many.
    history_problem: Option<String>,
    /// Whether the history was dropped, and the disk has had no room since.
    history_dropped: bool,
}

/// Result of [`Store::open`].
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The state that was in force.
    pub desired: Desired,
    /// What was wrong, if the copy had to be used.
    pub trouble: Option<String>,
    /// Whether the daemon shall start with nothing: running networks are removed.
    pub emptied: bool,
}

impl Store {
    /// Opens the store in a directory, which is created when missing.
    ///
    /// # Errors
    /// When it cannot be used, or is damaged beyond repair.
    pub fn open(directory: &Path) -> Result<Opened, StoreError> {
        Self::open_with(directory, &files())
    }

    /// As [`Store::open`], with this way to open the database.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(directory: &Path, opener: &Opener) -> Result<Opened, StoreError> {
        fs::create_dir_all(directory).map_err(failed(directory, "made"))?;
        let path = directory.join(FILE);
        // A database that was never written has no copy.
        let look = || match path.exists() || !directory.join(COPY).exists() {
            true => read(opener, &path),
            false => Err(Fault::Damaged("it is missing".to_owned())),
        };
        let mut found = look();
        if matches!(&found, Err(Fault::Store(error)) if error.is_full()) {
            release_reserve(directory);
            found = look();
        }
        let opened = match found {
            Ok((database, rows, desired)) => {
                let copy = copy(directory).map(|(rows, _)| rows);
                match behind(directory, &copy, rows.generation) {
                    Some(reason) => {
                        drop(database);
                        Self::recover(directory, opener, &reason)
                    }
                    None => {
                        let (history, trouble) = History::load(&database, rows.generation);
                        let (database, history_problem) = (Some(database), trouble.clone());
                        let mut store = Self {
                            database,
                            rows,
                            history,
                            history_problem,
                            ..Self::closed(directory, opener)
                        };
                        // A daemon that was killed between the two writes: a confirmed change must not wait in the copy. And
                        // a copy that is damaged is of no use when the database is.
                        let is_whole = copy.as_ref().is_ok_and(|copy| *copy == store.rows);
                        if !is_whole && store.rows.generation > 0 {
                            if let Err(error) = &copy {
                                tracing::warn!("the copy of the store is written again: {error}");
                            }
                            store.copy_problem = store.write_copy().err().map(|error| error.to_string());
                        }
                        let trouble = trouble.map(|trouble| format!("{}: {trouble}", path.display()));
                        Ok(Opened { store, desired, trouble, emptied: false })
                    }
                }
            }
            Err(Fault::Store(error)) => Err(error),
            Err(Fault::Damaged(reason)) => Self::recover(directory, opener, &reason),
        };
        if opened.is_ok() {
            // What a daemon left that was killed.
            for name in [FILE_NEW, COPY_NEW] {
                let _ = fs::remove_file(directory.join(name));
            }
        }
        hold_reserve(directory);
        opened
    }

    /// A store in a directory, not opened yet.
    fn closed(directory: &Path, opener: &Opener) -> Self {
        Self {
            directory: directory.to_owned(),
            opener: Arc::clone(opener),
            database: None,
            rows: Rows::default(),
            copy_problem: None,
            history: History::default(),
            history_problem: None,
            history_dropped: false,
        }
    }

    /// Starts with nothing. The stored state is kept under other names.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn open_empty(directory: &Path) -> Result<Opened, StoreError> {
        let now = Timestamp::now().us();
        for name in [FILE, COPY] {
            let path = directory.join(name);
            if path.exists() {
                fs::rename(&path, directory.join(format!("{name}.before-{now}")))
                    .map_err(failed(&path, "put aside"))?;
            }
        }
        Ok(Opened { emptied: true, ..Self::open(directory)? })
    }

    /// The state directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// An empty store without a file, for a node that keeps nothing over restarts; it must not be saved.
    pub(crate) fn nowhere() -> Self {
        Self::closed(Path::new(""), &files())
    }

    /// Closes the file, for the next daemon. Nothing must be saved afterwards.
    pub(crate) fn close(&mut self) {
        *self = Self::nowhere();
    }

    /// What is wrong with the store or its disk, as text; `None` if nothing is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.is_short() {
            let dropped = if self.history_dropped { "; the history was dropped to save room" } else { "" };
            return Some(format!(
                "{}: the disk is full, or nearly: only changes that make the desired state smaller are stored; free at \
                 least {} KiB{dropped}",
                self.directory.display(),
                RESERVE_BYTES >> 10
            ));
        }
        self.copy_problem.clone().or_else(|| self.history_problem.clone().filter(|_| self.history_dropped))
    }

    /// The revisions that are kept, newest first, and why earlier ones are missing, if not because there were too many.
    #[must_use]
    pub fn history(&self) -> (Vec<Revision>, Option<String>) {
        (self.history.revisions(), self.history_problem.clone())
    }

    /// Number of the revision before the latest one, or before the latest one that changed network `only`.
    #[must_use]
    pub fn previous(&self, only: Option<&str>) -> Option<u64> {
        self.history.previous(only)
    }

    /// The documents of a revision: JSON by name, `node` or `network/NAME`.
    ///
    /// # Errors
    /// When it is not kept, or cannot be read.
    pub fn documents(&mut self, revision: u64) -> Result<Documents, HistoryError> {
        let damaged = |reason| HistoryError::Damaged(reason);
        if self.database.is_none() {
            let path = self.directory.join(FILE);
            let (database, rows, _) =
                read(&self.opener, &path).map_err(|fault| damaged(fault.to_string()))?;
            if rows != self.rows {
                return Err(damaged("the database is not in the state in force".to_owned()));
            }
            self.database = Some(database);
        }
        let database = self.database.as_ref().ok_or_else(|| damaged("it is closed".to_owned()))?;
        self.history.documents(database, (self.rows.generation, &self.rows.documents), revision)
    }

    /// Holds disk space in reserve again, and completes the copy, if there is room now.
    pub fn mend(&mut self) {
        if self.copy_problem.is_some() {
            self.copy_problem = self.write_copy().err().map(|error| error.to_string());
        }
        hold_reserve(&self.directory);
        self.history_dropped &= self.is_short();
    }

    /// Whether the disk has no room for the reserve.
    fn is_short(&self) -> bool {
        let reserve = fs::metadata(self.directory.join(RESERVE)).map_or(0, |file| file.len());
        !self.directory.as_os_str().is_empty() && reserve < RESERVE_BYTES
    }

    /// Recovers from the copy.
    fn recover(directory: &Path, opener: &Opener, reason: &str) -> Result<Opened, StoreError> {
        let path = directory.join(FILE);
        let (rows, desired) = copy(directory).map_err(|copy| StoreError::Damaged {
            path: path.clone(),
            reason: reason.to_owned(),
            copy,
        })?;
        let mut made = make(opener, directory, &rows);
        if made.as_ref().is_err_and(is_full) {
            release_reserve(directory);
            made = make(opener, directory, &rows);
        }
        let new = made.map_err(|error| {
            let what = format!("it is damaged ({reason}), and cannot be restored from {COPY}: {error}");
            refused(&path, &what, is_full(&error))
        })?;
        let mut kept = String::new();
        if path.exists() {
            let aside = directory.join(format!("{FILE}.damaged-{}", Timestamp::now().us()));
            fs::rename(&path, &aside).map_err(failed(&path, "put aside"))?;
            kept = format!("it is kept as {}, and ", aside.display());
        }
        fs::rename(&new, &path).map_err(failed(&path, "made"))?;
        sync(directory);
        let database = match read(opener, &path) {
            Ok((database, ..)) => database,
            Err(Fault::Store(error)) => return Err(error),
            Err(Fault::Damaged(reason)) => return Err(refused(&path, &reason, false)),
        };
        let mut store = Self { database: Some(database), rows, ..Self::closed(directory, opener) };
        store.history_problem = Some("it was lost with a damaged store".to_owned());
        let trouble = format!(
            "{}: the store was damaged ({reason}); {kept}desired state {} of {COPY} is used; a new history begins",
            path.display(),
            desired.generation
        );
        Ok(Opened { store, desired, trouble: Some(trouble), emptied: false })
    }

    /// Stores desired state, and records in the history what changed it. Returns when it is on the disk, with the error of
    /// the copy, if any.
    ///
    /// # Errors
    /// When it cannot be written; the previous one is then still stored.
    pub fn save(&mut self, desired: &Desired, origin: &Origin) -> Result<Option<String>, StoreError> {
        let rows = Rows::of(desired);
        let Origin { by, kind, restored } = origin.clone();
        let time = desired.applied.unwrap_or_default();
        let revision = Revision { number: desired.generation, time, by, kind, restored, changes: Vec::new() };
        let before = (self.rows.generation, &self.rows.documents);
        let node = &desired.intent.node.metadata.name;
        let entry = Entry::new(before, (revision, &rows.documents), node.as_str());
        let same = desired.generation == self.rows.generation && rows.documents == self.rows.documents;
        let written = self.write(&rows, if same { Record::Keep } else { Record::Add(&entry) });
        if written.is_ok() {
            self.copy_problem = self.write_copy().err().map(|error| error.to_string());
        }
        hold_reserve(&self.directory);
        written.map(|()| self.copy_problem.clone())
    }

    fn write(&mut self, rows: &Rows, record: Record<'_>) -> Result<(), StoreError> {
        let error = match self.write_once(rows, record) {
            Err(error) if error.is_full() => error,
            Err(error) => {
                self.restore(false);
                return Err(error);
            }
            written => return written,
        };
        release_reserve(&self.directory);
        self.restore(true);
        let growth = rows.bytes().saturating_sub(self.rows.bytes());
        let written = if growth == 0 {
            // With the room of the reserve, and only if that does not do, with that of the history.
            match self.write_once(rows, record) {
                Err(error) if error.is_full() && self.drop_history() => self.write_once(rows, Record::Forget),
                written => written,
            }
            .inspect_err(|_| self.restore(true))
        } else if growth as u64 <= self.room() && self.drop_history() {
            // Without the reserve, which is for what makes the state smaller.
            hold_reserve(&self.directory);
            self.write_once(rows, Record::Forget).inspect_err(|_| {
                release_reserve(&self.directory);
                self.restore(true);
            })
        } else {
            // It would not fit without the history either, so that is not dropped in vain.
            Err(error)
        };
        if written.is_ok() && matches!(record, Record::Add(_)) && self.history.is_empty() {
            let number = rows.generation;
            let why = format!(
                "the disk was full: the history was dropped, up to revision {number}, to have room for it"
            );
            (self.history_problem, self.history_dropped) = (Some(why), true);
        }
        written
    }

    /// Bytes that a change may take at most once the history is dropped: what is free besides the reserve, and the history.
    fn room(&self) -> u64 {
        let free = nix::sys::statvfs::statvfs(&self.directory);
        let free = free.map_or(0, |disk| disk.blocks_available().saturating_mul(disk.fragment_size()));
        free.saturating_sub(RESERVE_BYTES).saturating_add(self.history.bytes() as u64)
    }

    /// Frees the room of the history; false if there is none.
    fn drop_history(&mut self) -> bool {
        if self.history.is_empty() {
            return false;
        }
        self.lose_history("the disk was full");
        let rows = self.rows.clone();
        // If that fails too, the database is written anew, without a history.
        let _ = self.write_once(&rows, Record::Forget);
        self.restore(true);
        true
    }

    /// Forgets the history, and says so.
    fn lose_history(&mut self, why: &str) {
        if !self.history.is_empty() {
            let last = self.rows.generation;
            let why = format!("{why}: the history was dropped, up to revision {last}");
            (self.history_problem, self.history_dropped) = (Some(why), true);
            self.history = History::default();
        }
    }

    /// After a failed write: makes sure that the database has the state in force, because the write may have reached the disk
    /// before it failed, and gives back the disk space that it took, because the database does not shrink by itself.
    fn restore(&mut self, is_full: bool) {
        self.database = None;
        let path = self.directory.join(FILE);
        let found = read(&self.opener, &path);
        if matches!(found, Err(Fault::Store(StoreError::Open { .. } | StoreError::Format { .. }))) {
            return;
        }
        if let Ok((mut database, rows, _)) = found
            && rows == self.rows
            && History::load(&database, rows.generation) == (self.history.clone(), None)
            && (!is_full || database.compact().is_ok())
        {
            self.database = Some(database);
            return;
        }
        let Ok(new) = make(&self.opener, &self.directory, &self.rows) else { return };
        if fs::rename(&new, &path).is_err() {
            let _ = fs::remove_file(&new);
            return;
        }
        sync(&self.directory);
        self.lose_history(if is_full { "the disk was full" } else { "a write to the database failed" });
    }

    fn write_once(&mut self, rows: &Rows, record: Record<'_>) -> Result<(), StoreError> {
        let path = self.directory.join(FILE);
        let mut old = self.rows.clone();
        if self.database.is_none() {
            let mut found = read(&self.opener, &path);
            if matches!(&found, Ok((_, rows, _)) if *rows != self.rows) {
                // What a failed write left, when the disk did not take its undoing either.
                drop(found);
                self.restore(false);
                found = read(&self.opener, &path);
            }
            match found {
                Ok((database, rows, _)) => (self.database, old) = (Some(database), rows),
                Err(Fault::Store(error)) => return Err(error),
                Err(Fault::Damaged(reason)) => return Err(refused(&path, &reason, false)),
            }
        }
        let Some(database) = &self.database else { return Err(refused(&path, "it is closed", false)) };
        let done = transact(database, (&old, rows), (&self.history, record));
        match done {
            Ok(history) => {
                self.rows = rows.clone();
                self.history = history;
                Ok(())
            }
            Err(error) => {
                // After a failed write the library requires reopening the file.
                self.database = None;
                Err(refused(&path, &error.to_string(), is_full(&error)))
            }
        }
    }

    fn write_copy(&self) -> Result<(), StoreError> {
        let (new, path) = (self.directory.join(COPY_NEW), self.directory.join(COPY));
        let text = serde_json::to_vec_pretty(&self.rows).unwrap_or_default();
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        let mut written = write();
        if written.as_ref().is_err_and(no_room) {
            release_reserve(&self.directory);
            written = write();
        }
        if written.is_err() {
            // An incomplete copy only takes room.
            let _ = fs::remove_file(&new);
        }
        written.map_err(failed(&path, "written"))
    }
}

impl StoreError {
    /// Whether the reason is a full disk.
    fn is_full(&self) -> bool {
        match self {
            Self::Write { full, .. } => *full,
            Self::File { source, .. } => no_room(source),
            Self::Open { .. } | Self::Damaged { .. } | Self::Format { .. } => false,
        }
    }
}

/// Takes as much of the reserve's disk space as is available, so that changes that make the state smaller always find
/// space.
fn hold_reserve(directory: &Path) {
    if directory.as_os_str().is_empty() {
        return;
    }
    let Ok(file) = File::options().create(true).append(true).open(directory.join(RESERVE)) else { return };
    let held = file.metadata().map_or(0, |file| file.len());
    let mut bytes = RESERVE_BYTES;
    while bytes > held && bytes >= RESERVE_BYTES_MIN {
        if posix_fallocate(&file, 0, i64::try_from(bytes).unwrap_or(i64::MAX)).is_ok() {
            return;
        }
        bytes -= RESERVE_BYTES_MIN;
    }
}

/// Frees the reserve's disk space.
fn release_reserve(directory: &Path) {
    let _ = fs::remove_file(directory.join(RESERVE));
}

/// Whether an operation failed because the disk, or its quota, is full.
fn no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Error while reading.
enum Fault {
    Damaged(String),
    Store(StoreError),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(reason) => f.write_str(reason),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Damaged(error.into().to_string())
    }
}

fn failed(path: &Path, done: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { path, done, source }
}

fn refused(path: &Path, reason: &str, full: bool) -> StoreError {
    StoreError::Write { path: path.to_owned(), reason: reason.to_owned(), full }
}

fn is_full(error: &redb::Error) -> bool {
    matches!(error, redb::Error::Io(error) if no_room(error))
}

/// Databases in files.
fn files() -> Opener {
    Arc::new(|path| Database::create(path))
}

/// Makes a database under a name of its own, complete and closed. If the process is killed meanwhile, no daemon takes the
/// file for a damaged store, and the next one removes it.
fn make(opener: &Opener, directory: &Path, rows: &Rows) -> Result<PathBuf, redb::Error> {
    let new = directory.join(FILE_NEW);
    // One that is unfinished may have rows that have been deleted since.
    let _ = fs::remove_file(&new);
    let made = opener(&new).map_err(redb::Error::from).and_then(|database| match *rows == Rows::default() {
        true => Ok(()),
        false => {
            transact(&database, (&Rows::default(), rows), (&History::default(), Record::Forget)).map(drop)
        }
    });
    if let Err(error) = made {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    Ok(new)
}

/// Makes an empty database, unless another daemon has made one meanwhile.
fn make_first(opener: &Opener, path: &Path) -> Result<(), Fault> {
    let directory = path.parent().unwrap_or(path);
    let failed = |source| Fault::Store(StoreError::File { path: path.to_owned(), done: "made", source });
    let new = make(opener, directory, &Rows::default()).map_err(|error| match error {
        redb::Error::Io(source) => failed(source),
        redb::Error::DatabaseAlreadyOpen => Fault::Store(StoreError::Open { path: path.to_owned() }),
        error => error.into(),
    })?;
    // A link never replaces a file. Some file systems have none.
    let named = match fs::hard_link(&new, path) {
        Ok(()) => fs::remove_file(&new),
        Err(_) if path.exists() => fs::remove_file(&new),
        Err(_) => fs::rename(&new, path),
    };
    named.map_err(failed)?;
    sync(directory);
    Ok(())
}

/// Writes a directory's entries to the disk, so that a new file has its name after a power failure.
fn sync(directory: &Path) {
    // Some file systems refuse this and do not need it.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
}

/// Opens and reads the database, which is created when missing.
fn read(opener: &Opener, path: &Path) -> Result<(Database, Rows, Desired), Fault> {
    // The library's own checks can panic on a damaged file.
    let opened = catch_unwind(AssertUnwindSafe(|| read_checked(opener, path)));
    opened.unwrap_or_else(|_| Err(Fault::Damaged("its pages contradict each other".to_owned())))
}

fn read_checked(opener: &Opener, path: &Path) -> Result<(Database, Rows, Desired), Fault> {
    if !path.exists() {
        make_first(opener, path)?;
    }
    let mut database = match opener(path) {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen) => {
            return Err(Fault::Store(StoreError::Open { path: path.to_owned() }));
        }
        Err(DatabaseError::Storage(redb::StorageError::Io(source)))
            if source.kind() != io::ErrorKind::InvalidData
                && source.kind() != io::ErrorKind::UnexpectedEof =>
        {
            let path = path.to_owned();
            return Err(Fault::Store(StoreError::File { path, done: "opened", source }));
        }
        Err(error) => return Err(error.into()),
    };
    if !database.check_integrity()? {
        return Err(Fault::Damaged("its checksums are wrong".to_owned()));
    }
    let rows = rows(&database)?;
    if rows.format > FORMAT {
        return Err(Fault::Store(StoreError::Format { path: path.to_owned(), found: rows.format }));
    }
    let desired = rows.desired().map_err(Fault::Damaged)?;
    Ok((database, rows, desired))
}

fn rows(database: &Database) -> Result<Rows, Fault> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        // Nothing was ever stored.
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Rows::default()),
        Err(error) => return Err(error.into()),
    };
    let number = |key: &str| -> Result<u64, Fault> {
        let found = meta.get(key)?.map(|value| value.value());
        found.ok_or_else(|| Fault::Damaged(format!("{key} is missing")))
    };
    let mut rows = Rows {
        format: number("format")?,
        generation: number("generation")?,
        applied_us: number("applied_us")?,
        ..Rows::default()
    };
    for entry in transaction.open_table(DOCUMENTS)?.iter()? {
        let (key, value) = entry?;
        rows.documents.insert(key.value().to_owned(), value.value().to_owned());
    }
    for entry in transaction.open_table(IDS)?.iter()? {
        let (key, value) = entry?;
        rows.ids.insert(key.value().to_owned(), value.value());
    }
    rows.pending = match transaction.open_table(PENDING) {
        Ok(pending) => match pending.get(PENDING_KEY)? {
            Some(text) => Some(serde_json::from_str(text.value()).map_err(|error| {
                Fault::Damaged(format!("the change that waits for its confirmation cannot be read: {error}"))
            })?),
            None => None,
        },
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(rows)
}

/// Changes `old` to `new`, all or nothing, and records it in the history, or forgets that.
fn transact(
    database: &Database,
    (old, new): (&Rows, &Rows),
    (history, record): (&History, Record<'_>),
) -> Result<History, redb::Error> {
    let transaction = database.begin_write()?;
    let history = history.record(&transaction, record)?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert("format", new.format)?;
        meta.insert("generation", new.generation)?;
        meta.insert("applied_us", new.applied_us)?;
        let mut documents = transaction.open_table(DOCUMENTS)?;
        for key in gone(&old.documents, &new.documents) {
            documents.remove(key.as_str())?;
        }
        for (key, text) in new.documents.iter().filter(|(key, text)| old.documents.get(*key) != Some(text)) {
            documents.insert(key.as_str(), text.as_str())?;
        }
        let mut ids = transaction.open_table(IDS)?;
        for key in gone(&old.ids, &new.ids) {
            ids.remove(key.as_str())?;
        }
        for (key, number) in new.ids.iter().filter(|(key, number)| old.ids.get(*key) != Some(number)) {
            ids.insert(key.as_str(), number)?;
        }
        if old.pending != new.pending {
            let mut pending = transaction.open_table(PENDING)?;
            match &new.pending {
                // It consists of numbers and texts, which have a JSON form.
                Some(one) => drop(
                    pending.insert(PENDING_KEY, serde_json::to_string(one).unwrap_or_default().as_str())?,
                ),
                None => drop(pending.remove(PENDING_KEY)?),
            }
        }
    }
    transaction.commit()?;
    Ok(history)
}

fn gone<'a, V>(old: &'a BTreeMap<String, V>, new: &BTreeMap<String, V>) -> BTreeSet<&'a String> {
    old.keys().filter(|key| !new.contains_key(*key)).collect()
}

/// Why a database of this generation is not what was saved last. A save writes the database first, so the copy is never ahead,
/// and there is none beside a database that was never written.
fn behind(directory: &Path, copy: &Result<Rows, String>, generation: u64) -> Option<String> {
    match copy {
        Ok(rows) if rows.generation > generation => Some(match generation {
            0 => format!("it is empty, and {COPY} has desired state {}", rows.generation),
            _ => format!("it has desired state {generation}, and {COPY} has {}", rows.generation),
        }),
        Err(_) if generation == 0 && directory.join(COPY).exists() => Some("it is empty".to_owned()),
        _ => None,
    }
}

/// Reads the copy; the error says what is wrong with it.
fn copy(directory: &Path) -> Result<(Rows, Desired), String> {
    let path = directory.join(COPY);
    let wrong = |what: String| format!("{}: {what}", path.display());
    let text = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    let rows: Rows = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if rows.format > FORMAT {
        return Err(wrong(format!("found format {}, expected {FORMAT}", rows.format)));
    }
    let desired = rows.desired().map_err(wrong)?;
    Ok((rows, desired))
}
