//! The store on a disk that loses its last writes, or has no room for any of them.
//!
//! A [`Disk`] records every write to a database's file, and so gives the file as it was at any moment: after a kill, with
//! the last write cut at any byte; after a power failure, with any of the writes since the last sync missing or cut.
//! [`Store::open`] reads that file beside the copy of the same moment. What it may return: the state that was acknowledged
//! last, or the one whose save had begun. All cases run with `HUEPLANE_FULL=1`, and a sample otherwise;
//! `HUE_CRASH_SEED` selects the sample.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hue_testdata::{Random, full};
use hueplaned::store::{COPY, Desired, FILE, Opener, Store, StoreError};
use redb::{Database, StorageBackend};

use crate::store::{SmallDisk, desired, open, save, with_routes};

/// Bytes that a disk writes as a whole.
const SECTOR: usize = 512;
/// Most operations of a save that are tried by samples.
const OPERATIONS: usize = 16;
/// Bytes of a page of the database.
const PAGE: usize = 4096;

/// What was done with a file.
#[derive(Clone, Debug)]
enum Done {
    Write(usize, Vec<u8>),
    Length(usize),
    Sync,
}

/// Changes a file's content.
fn apply(bytes: &mut Vec<u8>, done: &Done) {
    match done {
        Done::Write(at, written) => {
            if bytes.len() < at + written.len() {
                bytes.resize(at + written.len(), 0);
            }
            bytes[*at..at + written.len()].copy_from_slice(written);
        }
        Done::Length(length) => bytes.resize(*length, 0),
        Done::Sync => {}
    }
}

#[derive(Debug, Default)]
struct State {
    /// By file.
    logs: BTreeMap<u64, Vec<Done>>,
    /// Operations that succeed before the faults.
    left: usize,
    /// Operations that then fail.
    faults: usize,
    error: Option<i32>,
    /// Names of files that were made.
    made: Vec<String>,
}

/// A disk with faults on demand, and a record of what was done.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opener(&self) -> Opener {
        let disk = self.clone();
        Arc::new(move |path: &Path| {
            if !path.exists() {
                disk.state().made.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
            let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
            let inode = file.metadata()?.ino();
            Database::builder().create_with_backend(Handle { file, inode, disk: disk.clone() })
        })
    }

    /// Operations on a file so far.
    fn log(&self, path: &Path) -> Vec<Done> {
        let inode = fs::metadata(path).unwrap().ino();
        self.state().logs.get(&inode).cloned().unwrap_or_default()
    }

    /// Fails `faults` operations after the next `left`.
    fn fail(&self, left: usize, faults: usize, error: i32) {
        let mut state = self.state();
        (state.left, state.faults, state.error) = (left, faults, Some(error));
    }

    /// Ends the faults. Returns whether there was any.
    fn heal(&self, faults: usize) -> bool {
        std::mem::take(&mut self.state().faults) < faults
    }
}

/// An open file of a disk.
#[derive(Debug)]
struct Handle {
    file: File,
    inode: u64,
    disk: Disk,
}

impl Handle {
    fn does(&self, done: Done) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.faults > 0 {
            if state.left == 0 {
                state.faults -= 1;
                return Err(io::Error::from_raw_os_error(state.error.unwrap_or_default()));
            }
            state.left -= 1;
        }
        match &done {
            Done::Write(at, bytes) => self.file.write_all_at(bytes, *at as u64)?,
            Done::Length(length) => self.file.set_len(*length as u64)?,
            Done::Sync => {}
        }
        state.logs.entry(self.inode).or_default().push(done);
        Ok(())
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.does(Done::Length(at(len)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.does(Done::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.does(Done::Write(at(offset), data.to_vec()))
    }
}

/// A store's life: what was saved, and the file and its copy at each moment.
struct Life {
    log: Vec<Done>,
    saves: Vec<Saved>,
}

struct Saved {
    state: Desired,
    /// Operations on the file before the save, and when it was acknowledged.
    began: usize,
    ended: usize,
    /// The copy since then.
    copy: Vec<u8>,
}

fn life(states: &[Desired]) -> Life {
    let (folder, disk) = (folder(), Disk::default());
    let file = folder.path().join(FILE);
    let mut store = Store::open_with(folder.path(), &disk.opener()).unwrap().store;
    let mut saves = Vec::new();
    for state in states {
        let began = disk.log(&file).len();
        assert_eq!(save(&mut store, state).unwrap(), None);
        let ended = disk.log(&file).len();
        let copy = fs::read(folder.path().join(COPY)).unwrap();
        saves.push(Saved { state: state.clone(), began, ended, copy });
    }
    drop(store);
    Life { log: disk.log(&file), saves }
}

impl Life {
    /// The file after the first operations.
    fn file(&self, operations: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.log[..operations].iter().for_each(|done| apply(&mut bytes, done));
        bytes
    }

    /// States that a daemon may find after so many operations, and the copies that may be beside them.
    fn allowed(&self, operations: usize) -> (Vec<&Desired>, Vec<&[u8]>) {
        let last = self.saves.iter().rev().find(|saved| saved.ended <= operations);
        let now = self.saves.iter().find(|saved| (saved.began..saved.ended).contains(&operations));
        let mut copies: Vec<&[u8]> = last.iter().map(|saved| &*saved.copy).collect();
        // The copy is renamed between the last write of a save and its end.
        if let Some(at) = self.saves.iter().position(|saved| saved.ended == operations) {
            copies.extend(at.checked_sub(1).map(|before| &*self.saves[before].copy));
        }
        (last.into_iter().chain(now).map(|saved| &saved.state).collect(), copies)
    }

    fn last(&self) -> &Saved {
        self.saves.last().unwrap()
    }
}

/// Opens a file that a crash left, beside a copy, or none.
fn reopen(bytes: &[u8], copy: Option<&[u8]>) -> Result<(Desired, Option<String>), StoreError> {
    let folder = folder();
    fs::write(folder.path().join(FILE), bytes).unwrap();
    if let Some(copy) = copy {
        fs::write(folder.path().join(COPY), copy).unwrap();
    }
    Store::open(folder.path()).map(|opened| (opened.desired, opened.trouble))
}

/// A folder in memory, if there is one: these tests open thousands of stores.
fn folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn states() -> Vec<Desired> {
    vec![
        desired(1, &[(1, 1)]),
        desired(2, &[(1, 2), (2, 5)]),
        with_routes(3, 300),
        desired(4, &[(2, 6), (3, 1), (4, 1)]),
        desired(5, &[(2, 6)]),
        desired(6, &[(2, 7), (9, 9)]),
    ]
}

/// Checks what a daemon finds in a file that a crash left. A file `torn` by a power failure may be refused, if there is a copy.
fn check(life: &Life, operations: usize, bytes: &[u8], torn: bool, what: &str) {
    let (allowed, copies) = life.allowed(operations);
    for copy in copies.iter().map(|copy| Some(*copy)).chain([None]) {
        let beside = if copy.is_some() { "beside a copy" } else { "without a copy" };
        match reopen(bytes, copy) {
            Ok((found, trouble)) => {
                let nothing = allowed.len() < 2 && found == Desired::default() && copies.is_empty();
                assert!(allowed.contains(&&found) || nothing, "{what} {beside}: found {}", found.generation);
                assert!(torn || trouble.is_none(), "{what} {beside}: {trouble:?}");
            }
            Err(StoreError::Damaged { .. }) if torn && copy.is_none() => {}
            Err(error) => panic!("{what} {beside}: {error}"),
        }
    }
}

/// Whether an ordinary run tries a case: one in so many.
fn tried(random: &mut Random, one_in: usize) -> bool {
    full() || random.below(one_in) == 0
}

fn random() -> Random {
    let seed = std::env::var("HUE_CRASH_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("HUE_CRASH_SEED={seed}");
    Random::new(seed)
}

#[test]
fn a_kill_at_any_byte_of_any_write_loses_nothing() {
    let life = life(&states());
    let (mut random, mut cuts) = (random(), 0);
    let mut before = life.file(life.saves[0].began);
    // Every byte of the last save, and a sample of the others.
    let last = life.last().began;
    for operations in life.saves[0].began..life.log.len() {
        check(&life, operations, &before, false, &format!("after {operations} operations"));
        let done = &life.log[operations];
        if let Done::Write(start, bytes) = done {
            for cut in 1..bytes.len() {
                // A cut after an equal byte leaves what the cut before it does.
                if before.get(start + cut - 1) == Some(&bytes[cut - 1])
                    || !(full() && operations >= last) && random.below(if full() { 250 } else { 2500 }) > 0
                {
                    continue;
                }
                let mut torn = before.clone();
                apply(&mut torn, &Done::Write(*start, bytes[..cut].to_vec()));
                check(&life, operations, &torn, false, &format!("write {operations} cut at byte {cut}"));
                cuts += 1;
            }
        }
        apply(&mut before, done);
    }
    eprintln!("{} operations, {cuts} cuts", life.log.len());
}

#[test]
fn a_power_failure_at_any_write_loses_nothing() {
    let life = life(&states());
    let mut random = random();
    let rounds = if full() { 50 } else { 1 };
    let mut synced = life.saves[0].began;
    for operations in life.saves[0].began..=life.log.len() {
        for round in 0..rounds {
            let mut bytes = life.file(synced);
            for done in &life.log[synced..operations] {
                match done {
                    Done::Write(start, written) if random.chance(40) => {
                        // Some of its sectors.
                        for (at, sector) in written.chunks(SECTOR).enumerate() {
                            if random.chance(50) {
                                apply(&mut bytes, &Done::Write(start + at * SECTOR, sector.to_vec()));
                            }
                        }
                    }
                    done if random.chance(60) => apply(&mut bytes, done),
                    _ => {}
                }
            }
            check(&life, operations, &bytes, true, &format!("{operations} operations, round {round}"));
        }
        if matches!(life.log.get(operations), Some(Done::Sync)) {
            synced = operations + 1;
        }
    }
}

/// The state that is found is the last one, or, without a copy, the store is refused, or one is found that was in force.
fn never_empty(life: &Life, bytes: &[u8], what: &str) {
    let last = life.last();
    let (found, _) = reopen(bytes, Some(&last.copy)).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(found, last.state, "{what}");
    match reopen(bytes, None) {
        Ok((found, _)) => assert!(life.saves.iter().any(|saved| saved.state == found), "{what}: {found:?}"),
        Err(error) => {
            let text = error.to_string();
            assert!(
                matches!(error, StoreError::Damaged { .. }) && text.contains("restore"),
                "{what}: {text}"
            );
        }
    }
}

#[test]
fn a_database_that_is_cut_or_zeroed_anywhere_is_not_an_empty_one() {
    let life = life(&states());
    let mut random = random();
    let whole = life.file(life.log.len());
    for length in 1..whole.len() {
        // The pages are 4 KiB: every length in the first ones, and then one in 997.
        let in_full = length % 997 == 0 || length < 2 * PAGE;
        if if full() { in_full } else { random.below(whole.len() / 40) == 0 } {
            never_empty(&life, &whole[..length], &format!("cut to {length} bytes"));
        }
    }
    for page in
        (0..whole.len()).step_by(PAGE).filter(|page| whole[*page..][..PAGE].iter().any(|byte| *byte != 0))
    {
        let mut bytes = whole.clone();
        bytes[page..page + PAGE].fill(0);
        never_empty(&life, &bytes, &format!("page at {page} zeroed"));
    }
}

/// A copy that is cut does no harm, and is whole again as soon as a daemon starts.
#[test]
fn a_copy_that_is_cut_anywhere_is_written_again() {
    let (life, folder) = (life(&states()), folder());
    let copy = folder.path().join(COPY);
    let (mut random, last) = (random(), life.last());
    fs::write(folder.path().join(FILE), life.file(life.log.len())).unwrap();
    for length in (0..last.copy.len()).filter(|length| tried(&mut random, 100) || *length == 0) {
        fs::write(&copy, &last.copy[..length]).unwrap();
        let (_store, found) = open(folder.path());
        assert_eq!(found, last.state, "cut to {length} bytes");
        assert!(fs::read(&copy).unwrap() == last.copy, "cut to {length} bytes: not written again");
    }
    fs::remove_file(&copy).unwrap();
    assert_eq!(open(folder.path()).1, last.state);
    assert!(fs::read(&copy).unwrap() == last.copy, "a missing copy is not written again");
    // What a kill left of a new copy.
    let new = folder.path().join("last-good.json.new");
    fs::write(&new, &last.copy[..last.copy.len() / 2]).unwrap();
    assert_eq!(open(folder.path()).1, last.state);
    assert!(!new.exists(), "an incomplete copy is left behind");
}

/// A kill while the first daemon makes the database leaves something that the next one completes.
#[test]
fn a_kill_while_the_database_is_made_leaves_nothing_in_the_way() {
    let life = life(&states()[..1]);
    for operations in 0..=life.saves[0].began {
        let folder = folder();
        fs::write(folder.path().join("hueplane.redb.new"), life.file(operations)).unwrap();
        let (mut store, found) = open(folder.path());
        assert_eq!(found, Desired::default(), "{operations} operations");
        save(&mut store, &life.saves[0].state).unwrap();
        drop(store);
        assert_eq!(open(folder.path()).1, life.saves[0].state);
        assert!(!folder.path().join("hueplane.redb.new").exists(), "{operations} operations: left behind");
    }
}

/// The file of the database has its name only when it is complete: a kill before is no damage.
#[test]
fn an_unfinished_database_never_has_its_name() {
    for (copy, all) in [(false, 1), (true, 2)] {
        let (life, folder, disk) = (life(&states()[..1]), folder(), Disk::default());
        if copy {
            fs::write(folder.path().join(COPY), &life.last().copy).unwrap();
        }
        let opened = Store::open_with(folder.path(), &disk.opener()).unwrap();
        assert_eq!(opened.trouble.is_some(), copy, "{:?}", opened.trouble);
        assert!(disk.state().made.iter().all(|name| name == "hueplane.redb.new"), "{:?}", disk.state().made);
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, all + 1, "the database, its copy, and the reserve");
    }
}

/// At any operation of a save, once or from then on, the disk is full or fails. A save that is refused changes nothing, also
/// after a kill.
#[test]
fn a_disk_that_fails_at_any_operation_changes_nothing_or_all() {
    let states = states();
    let (mut random, mut cases) = (random(), 0);
    for (error, faults) in
        [nix::libc::ENOSPC, nix::libc::EIO].into_iter().flat_map(|error| [(error, 1), (error, usize::MAX)])
    {
        for (old, new) in states.iter().zip(&states[1..]) {
            for left in 0.. {
                // A save takes fewer operations than this.
                if left < OPERATIONS && !tried(&mut random, 16) {
                    continue;
                }
                cases += 1;
                let what =
                    format!("{} to {}, {faults} faults {error} after {left}", old.generation, new.generation);
                let (folder, disk) = (folder(), Disk::default());
                let mut store = Store::open_with(folder.path(), &disk.opener()).unwrap().store;
                save(&mut store, old).unwrap();
                disk.fail(left, faults, error);
                let saved = save(&mut store, new);
                // The process is killed: nothing is written any more.
                let failed = disk.state().faults < faults;
                let after = tempfile::tempdir_in(folder.path().parent().unwrap()).unwrap();
                for entry in fs::read_dir(folder.path()).unwrap().flatten() {
                    fs::copy(entry.path(), after.path().join(entry.file_name())).unwrap();
                }
                let opened = Store::open(after.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
                match &saved {
                    Ok(_) => assert_eq!(&opened.desired, new, "{what}: acknowledged"),
                    // A disk that takes the last write and then nothing any more leaves no way back.
                    Err(_) if faults > 1 => {
                        assert!([old, new].contains(&&opened.desired), "{what}: {saved:?}")
                    }
                    Err(_) => assert_eq!(&opened.desired, old, "{what}: {saved:?}"),
                }
                assert_eq!(opened.trouble, None, "{what}");
                drop(opened);
                // The living daemon goes on.
                disk.heal(faults);
                let next = Desired { generation: new.generation + 1, ..new.clone() };
                save(&mut store, &next).unwrap_or_else(|error| panic!("{what}: then {error}"));
                drop(store);
                let opened =
                    Store::open(folder.path()).unwrap_or_else(|error| panic!("{what}: then {error}"));
                assert_eq!((&opened.desired, opened.trouble), (&next, None), "{what}: then");
                if !failed {
                    break;
                }
            }
        }
    }
    eprintln!("{cases} cases");
}

/// A kill while a daemon replaced its database left an unfinished one. It must not bring back what was deleted since.
#[test]
fn what_a_kill_left_of_a_new_database_brings_nothing_back() {
    let (states, life) = (states(), life(&states()[..5]));
    let (folder, disk) = (folder(), Disk::default());
    let path = folder.path().join(FILE);
    // Networks 3 and 4 have been deleted in the last state.
    let old = life.file(life.saves[3].ended);
    let mut store = Store::open_with(folder.path(), &disk.opener()).unwrap().store;
    save(&mut store, &states[3]).unwrap();
    save(&mut store, &states[4]).unwrap();
    fs::write(folder.path().join("hueplane.redb.new"), old).unwrap();
    // The last write of a change fails after it has reached the file, which is therefore written anew.
    let next = Desired { generation: 6, ..states[4].clone() };
    let inode = || fs::metadata(&path).unwrap().ino();
    let before = inode();
    let found = (0..100).any(|left| {
        disk.fail(left, 1, nix::libc::EIO);
        let refused = save(&mut store, &next).is_err();
        disk.heal(1);
        refused && inode() != before
    });
    assert!(found, "the database was not written anew");
    drop(store);
    assert_eq!(open(folder.path()).1, states[4]);
}

/// Whatever room a disk has left: a change is stored, in the database and in the copy, or refused, and then changes nothing.
#[test]
fn a_disk_with_any_room_left_stores_a_change_or_refuses_it() {
    let mut random = random();
    for pages in (0..400).filter(|_| tried(&mut random, 40)) {
        let Some(disk) = SmallDisk::new("4m") else { return };
        let (mut store, _) = open(disk.path());
        let (old, new) = (with_routes(1, 300), with_routes(2, 3000));
        save(&mut store, &old).unwrap();
        let filler = disk.fill();
        let filled = fs::metadata(&filler).unwrap().len();
        File::options().write(true).open(&filler).unwrap().set_len(filled - pages * PAGE as u64).unwrap();
        let saved = save(&mut store, &new);
        disk.fill();
        drop(store);
        let (store, found) = open(disk.path());
        assert_eq!(found, if saved.is_ok() { new } else { old }, "{pages} pages: {saved:?}");
        // A change that makes the state smaller always fits, and a kill on the full disk loses nothing.
        let (mut store, small) = (store, desired(3, &[(2, 1)]));
        save(&mut store, &small).unwrap_or_else(|error| panic!("{pages} pages: {error}"));
        drop(store);
        assert_eq!(open(disk.path()).1, small, "{pages} pages");
    }
}

/// A daemon that finds a damaged database on a full disk has room for a new one in the reserve. Without the reserve it leaves
/// everything where it was.
#[test]
fn a_damaged_database_on_a_full_disk_is_made_anew_or_left_alone() {
    for reserve in [true, false] {
        let Some(disk) = SmallDisk::new("4m") else { return };
        let path = disk.path().join(FILE);
        let (mut store, _) = open(disk.path());
        let state = with_routes(1, 300);
        save(&mut store, &state).unwrap();
        drop(store);
        if !reserve {
            fs::remove_file(disk.path().join("reserve")).unwrap();
        }
        File::options().write(true).open(&path).unwrap().write_all_at(&[0; PAGE], 0).unwrap();
        let damaged = fs::read(&path).unwrap();
        disk.fill();
        let files = || {
            let entries = fs::read_dir(disk.path()).unwrap().flatten();
            entries.map(|entry| entry.file_name()).filter(|name| name != "reserve").count()
        };
        let before = files();
        for _ in 0..2 {
            match Store::open(disk.path()) {
                Ok(opened) => assert!(reserve && opened.desired == state),
                Err(error) => {
                    assert!(!reserve, "{error}");
                    assert!(
                        error.to_string().contains("damaged") && error.to_string().contains(COPY),
                        "{error}"
                    );
                    assert_eq!(fs::read(&path).unwrap(), damaged);
                    assert_eq!(files(), before);
                }
            }
        }
    }
}
