//! The store over restarts, damage and full disks.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hue_control::Ids;
use hue_demux::PortId;
use hue_intent::{Intent, Source, parse};
use hue_tables::Vid;
use hueplaned::api::{Author, Timestamp};
use hueplaned::history::Origin;
use hueplaned::pending::Pending;
use hueplaned::store::{COPY, Desired, FILE, Store, StoreError};
use proptest::prelude::*;

fn intent(networks: &[(u8, u16)]) -> Intent {
    let mut text =
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec: {ports: [{name: p0}]}\n"
            .to_owned();
    for (number, weight) in networks {
        text += &format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: n{number}}}\nspec:\n  plane: {{kind: ipv4}}\n  \
             weight: {weight}\n  resources: {{cpu: 0.5, memory: 64Mi}}\n  ports: [{{name: v, port: p0, \
             mac: '02:00:00:00:00:{number:02x}', addresses: [10.{number}.0.1/24]}}]\n  routes: [{{to: 10.99.0.0/16, port: v}}]\n"
        );
    }
    parse(vec![Source { name: "test".into(), bytes: text.into_bytes() }]).unwrap()
}

pub fn desired(generation: u64, networks: &[(u8, u16)]) -> Desired {
    let intent = intent(networks);
    let vid = |number: u8| Vid::new(u16::from(number) + 100).unwrap();
    let ids = Ids {
        networks: networks.iter().map(|(number, _)| (format!("n{number}"), vid(*number))).collect(),
        ports: [("p0".to_owned(), PortId::new(3))].into(),
    };
    Desired {
        generation,
        applied: Some(Timestamp::from_us(1_700_000_000_000_000 + generation)),
        intent,
        ids,
        pending: None,
    }
}

pub fn save(store: &mut Store, desired: &Desired) -> Result<Option<String>, StoreError> {
    store.save(desired, &Origin::default())
}

pub fn open(folder: &Path) -> (Store, Desired) {
    let opened = Store::open(folder).unwrap();
    assert_eq!(opened.trouble, None);
    (opened.store, opened.desired)
}

#[test]
fn saved_state_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, nothing) = open(folder.path());
    assert_eq!(nothing, Desired::default());
    for (generation, networks) in
        [(1, &[(1, 1), (2, 5)][..]), (2, &[(2, 6), (3, 1)]), (3, &[]), (4, &[(9, 1)])]
    {
        let now = desired(generation, networks);
        assert_eq!(save(&mut store, &now).unwrap(), None);
        drop(store);
        let (again, found) = open(folder.path());
        assert_eq!(found, now);
        store = again;
    }
}

#[test]
fn a_store_that_was_never_written_is_empty_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    assert_eq!(open(folder.path()).1, Desired::default());
}

#[test]
fn a_store_is_opened_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, _) = open(folder.path());
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Open { .. })));
}

#[test]
fn a_damaged_store_is_put_aside_and_the_copy_used() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    let now = desired(7, &[(1, 1), (2, 5)]);
    save(&mut store, &now).unwrap();
    drop(store);
    fs::write(folder.path().join(FILE), b"not a database").unwrap();
    let opened = Store::open(folder.path()).unwrap();
    assert_eq!(opened.desired, now);
    assert!(opened.trouble.unwrap().contains("damaged"));
    let aside = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().contains("damaged");
    assert!(fs::read_dir(folder.path()).unwrap().flatten().any(|entry| aside(&entry)));
    drop(opened.store);
    assert_eq!(open(folder.path()).1, now, "the new database is good");
}

#[test]
fn a_damaged_store_without_a_copy_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    save(&mut store, &desired(1, &[(1, 1)])).unwrap();
    drop(store);
    fs::write(folder.path().join(FILE), b"not a database").unwrap();
    fs::write(folder.path().join(COPY), b"{\"format\": 1").unwrap();
    let error = Store::open(folder.path()).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Damaged { .. }), "{text}");
    assert!(text.contains("restore") && text.contains(COPY), "{text}");
    assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), b"not a database", "nothing was touched");
}

#[test]
fn an_empty_missing_or_older_store_deletes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join(FILE), folder.path().join("old"));
    let (mut store, _) = open(folder.path());
    save(&mut store, &desired(3, &[(1, 1)])).unwrap();
    drop(store);
    fs::copy(&path, &old).unwrap();
    let now = desired(4, &[(1, 1), (2, 5)]);
    let (mut store, _) = open(folder.path());
    save(&mut store, &now).unwrap();
    drop(store);
    let damages: [(&str, &dyn Fn()); 3] = [
        ("empty", &|| File::create(&path).unwrap().set_len(0).unwrap()),
        ("missing", &|| fs::remove_file(&path).unwrap()),
        ("desired state 3", &|| _ = fs::copy(&old, &path).unwrap()),
    ];
    for (what, damage) in damages {
        damage();
        let opened = Store::open(folder.path()).unwrap();
        assert_eq!(opened.desired, now, "{what}");
        let trouble = opened.trouble.unwrap();
        assert!(trouble.contains(what) && trouble.contains("desired state 4"), "{trouble}");
        drop(opened.store);
        assert_eq!(open(folder.path()).1, now, "{what}: the new database is good");
    }
    // Without a good copy it is an error, unless nothing is what is wanted.
    fs::remove_file(&path).unwrap();
    fs::write(folder.path().join(COPY), b"{").unwrap();
    let error = Store::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("it is missing") && error.contains("up --empty"), "{error}");
    let opened = Store::open_empty(folder.path()).unwrap();
    assert_eq!((opened.desired, opened.emptied), (Desired::default(), true));
    assert!(opened.trouble.is_none());
    let kept = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains(".before-");
    assert!(fs::read_dir(folder.path()).unwrap().flatten().any(kept));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens to the file, what comes out was in force once, or it is an error.
    #[test]
    fn damage_is_never_taken_for_state(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..40),
        cut in prop::option::of(any::<prop::sample::Index>()),
        with_copy in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = open(folder.path());
        let states = [desired(1, &[(1, 1)]), desired(2, &[(1, 2), (2, 1)])];
        for state in &states {
            save(&mut store, state).unwrap();
        }
        drop(store);
        let path = folder.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        if !with_copy {
            fs::remove_file(folder.path().join(COPY)).unwrap();
        }
        match Store::open(folder.path()) {
            Ok(opened) => prop_assert!(states.contains(&opened.desired) || opened.desired == Desired::default()),
            Err(error) => prop_assert!(!with_copy, "{error}"),
        }
    }
}

/// A small disk of its own at a folder, until dropped.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` for callers without the right to mount.
    pub fn new(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(folder.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        hue_testdata::skipped("root");
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left.
    pub fn fill(&self) -> PathBuf {
        let filler = self.path().join("filler");
        let mut file = File::options().create(true).append(true).open(&filler).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Desired state of two networks, the first with so many routes.
pub fn with_routes(generation: u64, routes: usize) -> Desired {
    let mut large = desired(generation, &[(1, 1), (2, 1)]);
    let route = large.intent.networks[0].spec.routes[0].clone();
    let to = |number: usize| format!("11.{}.{}.{}/32", number >> 16, number >> 8 & 255, number & 255);
    large.intent.networks[0].spec.routes = (0..routes)
        .map(|number| hue_intent::Route { to: to(number).parse().unwrap(), ..route.clone() })
        .collect();
    large
}

/// A disk with room for a small state and not for a large one.
#[test]
fn a_full_disk_refuses_the_change_and_keeps_what_was() {
    let Some(disk) = SmallDisk::new("8m") else { return };
    let (mut store, _) = open(disk.path());
    let small = desired(1, &[(1, 1)]);
    save(&mut store, &small).unwrap();
    let filler = disk.fill();
    let large = with_routes(2, 100_000);
    let error = save(&mut store, &large).unwrap_err();
    assert!(matches!(error, StoreError::Write { full: true, .. }), "{error}");
    drop(store);
    assert_eq!(open(disk.path()).1, small);
    // With room again, the same store goes on.
    let (mut store, _) = open(disk.path());
    assert!(save(&mut store, &large).is_err());
    fs::remove_file(&filler).unwrap();
    let next = desired(3, &[(1, 1), (2, 1)]);
    save(&mut store, &next).unwrap();
    drop(store);
    assert_eq!(open(disk.path()).1, next);
}

/// Failed changes give back the room that they took: as many as one likes, and what fitted before still fits.
#[test]
fn a_change_that_does_not_fit_takes_no_room() {
    let Some(disk) = SmallDisk::new("4m") else { return };
    let (mut store, _) = open(disk.path());
    let used =
        || fs::read_dir(disk.path()).unwrap().map(|file| allocated(&file.unwrap().path())).sum::<u64>();
    save(&mut store, &with_routes(1, 1000)).unwrap();
    let before = used();
    for round in 0..4 {
        let error = save(&mut store, &with_routes(2 + 2 * round, 100_000)).unwrap_err();
        assert!(matches!(error, StoreError::Write { full: true, .. }), "{error}");
        assert!(used() <= before + (1 << 20), "{} bytes after a failed change, {before} before", used());
        let next = with_routes(3 + 2 * round, 1000 + usize::try_from(round).unwrap());
        assert_eq!(save(&mut store, &next).unwrap(), None);
        drop(store);
        let (again, found) = open(disk.path());
        assert!(found == next);
        store = again;
    }
}

/// Whoever filled the disk: a change that makes the state smaller is stored, also by a daemon that starts on the full disk.
#[test]
fn a_delete_always_works() {
    for restarts in [false, true] {
        let Some(disk) = SmallDisk::new("4m") else { return };
        let (mut store, _) = open(disk.path());
        let numbers: Vec<(u8, u16)> = (1..=40).map(|number| (number, 1)).collect();
        save(&mut store, &desired(1, &numbers)).unwrap();
        disk.fill();
        for left in (0..numbers.len()).rev() {
            let generation = 2 + (numbers.len() - left) as u64;
            let next = desired(generation, &numbers[..left]);
            save(&mut store, &next).unwrap();
            assert!(store.problem().is_some_and(|problem| problem.contains("full")), "{:?}", store.problem());
            if restarts {
                drop(store);
                let (again, found) = open(disk.path());
                assert!(found == next);
                assert!(
                    again.problem().is_some_and(|problem| problem.contains("full")),
                    "{:?}",
                    again.problem()
                );
                store = again;
            }
            disk.fill();
        }
    }
}

/// With room again, the reserve is there again, and nothing is said any more.
#[test]
fn a_disk_with_free_space_again_ends_the_problem() {
    let Some(disk) = SmallDisk::new("4m") else { return };
    let (mut store, _) = open(disk.path());
    assert_eq!(store.problem(), None);
    save(&mut store, &desired(1, &[(1, 1), (2, 1)])).unwrap();
    let filler = disk.fill();
    save(&mut store, &desired(2, &[(1, 1)])).unwrap();
    assert!(store.problem().is_some());
    fs::remove_file(filler).unwrap();
    store.mend();
    assert_eq!(store.problem(), None);
}

fn allocated(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().blocks() * 512
}

/// A change that waits for its confirmation is stored with what undoes it, in the database and in the copy; a
/// confirmation holds whichever of the two a daemon finds.
#[test]
fn a_change_that_waits_keeps_what_undoes_it() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(COPY);
    let (mut store, _) = open(folder.path());
    let before = desired(1, &[(1, 1), (2, 2)]);
    save(&mut store, &before).unwrap();
    let mut waits = desired(2, &[(1, 5), (3, 3)]);
    let (old, new) = (before.documents(), waits.documents());
    let time = (waits.applied.unwrap(), Duration::from_secs(60));
    let pending = Pending::new((1, &old), (2, &new), "box", Author::default(), time);
    waits.pending = Some(Arc::new(pending));
    save(&mut store, &waits).unwrap();
    let waiting_copy = fs::read(&copy).unwrap();

    let found = |opened: &Desired| {
        assert_eq!(opened, &waits);
        assert_eq!(opened.pending.as_ref().unwrap().documents(opened.documents()), old);
    };
    drop(store);
    let (store, opened) = open(folder.path());
    found(&opened);
    drop(store);
    // Without the database, from the copy.
    fs::rename(folder.path().join(FILE), folder.path().join("aside")).unwrap();
    let opened = Store::open(folder.path()).unwrap();
    found(&opened.desired);
    drop(opened);
    fs::rename(folder.path().join("aside"), folder.path().join(FILE)).unwrap();

    // Confirmed. The revision stays the one that it is, and the history has not grown.
    let (mut store, _) = open(folder.path());
    let revisions = store.history().0.len();
    let confirmed = Desired { pending: None, ..waits.clone() };
    save(&mut store, &confirmed).unwrap();
    assert_eq!(store.history().0.len(), revisions);
    assert_eq!(store.documents(1).unwrap(), old);
    drop(store);
    // As after a kill between the two writes: the copy still has it waiting, and is corrected.
    fs::write(&copy, &waiting_copy).unwrap();
    let (store, opened) = open(folder.path());
    assert_eq!(opened, confirmed);
    drop(store);
    fs::remove_file(folder.path().join(FILE)).unwrap();
    assert_eq!(Store::open(folder.path()).unwrap().desired, confirmed, "from the copy");
}
