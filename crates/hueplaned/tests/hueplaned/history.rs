//! The history of the documents in the store: what it knows, its limits, and what damage and full disks do to it.

use std::collections::BTreeSet;
use std::fs;

use crate::store::{SmallDisk, desired, open, save, with_routes};
use hueplaned::api::{Author, ObjectKind, RevisionKind, Verb};
use hueplaned::history::{BYTES_MAX, HistoryError, Origin, REVISIONS_MAX};
use hueplaned::store::{FILE, Store};
use redb::{Database, TableDefinition};

/// Numbers of the revisions, newest first.
fn numbers(store: &Store) -> Vec<u64> {
    store.history().0.iter().map(|revision| revision.number).collect()
}

/// Names of the networks of a revision.
fn networks(store: &mut Store, revision: u64) -> BTreeSet<String> {
    let documents = store.documents(revision).unwrap();
    documents.keys().filter_map(|key| key.strip_prefix("network/")).map(str::to_owned).collect()
}

#[test]
fn every_change_is_a_revision_that_says_who_and_what() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    assert_eq!((store.history(), store.previous(None)), ((Vec::new(), None), None));
    let by = |name: &str| Author { role: "operator".into(), name: Some(name.into()) };
    let apply = |name| Origin { by: by(name), ..Origin::default() };
    store.save(&desired(1, &[(1, 1), (2, 1)]), &apply("alice")).unwrap();
    store.save(&desired(2, &[(1, 5), (3, 1)]), &apply("bob")).unwrap();
    let back = Origin { by: by("alice"), kind: RevisionKind::Rollback, restored: Some(1) };
    store.save(&desired(3, &[(1, 1), (2, 1)]), &back).unwrap();
    for restarts in [false, true] {
        if restarts {
            drop(store);
            store = open(folder.path()).0;
        }
        let (revisions, problem) = store.history();
        assert_eq!((numbers(&store), problem), (vec![3, 2, 1], None));
        assert_eq!((&revisions[0].by, revisions[0].restored), (&by("alice"), Some(1)));
        let changes = |at: usize| -> Vec<_> {
            revisions[at]
                .changes
                .iter()
                .map(|change| (change.verb, change.object, change.name.as_str()))
                .collect()
        };
        let (network, node) = (ObjectKind::Network, ObjectKind::Node);
        let first =
            [(Verb::Create, node, "box"), (Verb::Create, network, "n1"), (Verb::Create, network, "n2")];
        assert_eq!(changes(2), first);
        let second =
            [(Verb::Change, network, "n1"), (Verb::Delete, network, "n2"), (Verb::Create, network, "n3")];
        assert_eq!(changes(1), second);
        assert_eq!(revisions[1].time, desired(2, &[]).applied.unwrap());
        // The documents of every revision, and of what was before the first.
        assert_eq!(store.documents(1).unwrap(), store.documents(3).unwrap());
        assert_eq!(networks(&mut store, 2), ["n1".to_owned(), "n3".to_owned()].into());
        assert!(store.documents(2).unwrap()["network/n1"].contains("\"weight\":5"));
        assert!(store.documents(0).unwrap().is_empty());
        let unknown = store.documents(9).unwrap_err();
        assert_eq!(unknown.to_string(), "revision 9 is not kept; revisions 0 to 3 are kept");
        assert_eq!((store.previous(None), store.previous(Some("n3"))), (Some(2), Some(2)));
        assert_eq!((store.previous(Some("n1")), store.previous(Some("n9"))), (Some(2), None));
    }
}

#[test]
fn revisions_are_kept_up_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    let count = REVISIONS_MAX as u64 + 3;
    for generation in 1..=count {
        save(&mut store, &desired(generation, &[(1, u16::try_from(generation).unwrap())])).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(numbers(&store), (4..=count).rev().collect::<Vec<_>>());
        assert!(store.documents(3).unwrap()["network/n1"].contains("\"weight\":3"), "undoing the oldest one");
        let gone = HistoryError::NotKept { asked: 2, first: 3, last: count };
        assert_eq!(store.documents(2).unwrap_err(), gone);
        drop(store);
        store = open(folder.path()).0;
    }
}

/// However many changes tenants make, the revisions of others stay, and their documents too.
#[test]
fn tenants_do_not_push_out_the_revisions_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    let by = |role: &str, name: &str| Origin {
        by: Author { role: role.into(), name: Some(name.into()) },
        ..Origin::default()
    };
    let weights = |generation: u64| u16::try_from(generation).unwrap();
    let state =
        |generation: u64| desired(generation, &[(1, weights(generation)), (2, weights(generation / 2 + 1))]);
    // An operator's three, with two tenants between them and after them.
    let operators = [1, 2, 40];
    let count = REVISIONS_MAX as u64 + 60;
    for generation in 1..=count {
        let origin = match generation {
            _ if operators.contains(&generation) => by("operator", "alice"),
            odd if odd % 2 == 1 => by("tenant", "n1"),
            _ => by("tenant", "n2"),
        };
        store.save(&state(generation), &origin).unwrap();
    }
    for _ in 0..2 {
        let kept = numbers(&store);
        assert_eq!(kept.len(), REVISIONS_MAX);
        for operator in operators {
            assert!(kept.contains(&operator), "{operator} of {kept:?}");
            let weight = format!("\"weight\":{operator},");
            assert!(store.documents(operator).unwrap()["network/n1"].contains(&weight), "{operator}");
        }
        // The documents of each that is kept are as they were, and those of merged ones are not kept.
        for number in 1..=count {
            match store.documents(number) {
                Ok(documents) => {
                    assert_eq!(documents, state(number).documents(), "{number}");
                    assert!(kept.contains(&number) || kept.contains(&(number + 1)), "{number}");
                }
                Err(error) => {
                    assert!(error.to_string().contains("merged with the next one"), "{error}");
                    assert!(!kept.contains(&number), "{number}");
                }
            }
        }
        let (revisions, _) = store.history();
        let merged = revisions.iter().find(|one| one.number == 39).unwrap();
        let names: Vec<&str> = merged.changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!((merged.by.role.as_str(), &merged.by.name), ("tenant", &None), "by two tenants");
        assert!(names.contains(&"n1") && names.contains(&"n2"), "{names:?}");
        drop(store);
        store = open(folder.path()).0;
    }
}

/// Large documents leave room for few revisions.
#[test]
#[ignore = "long: make test-full"]
fn no_more_bytes_are_kept_than_there_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    // What undoes a change is as large as the documents that it changed.
    let large = |generation: u64| {
        let mut large = with_routes(generation, 200_000);
        large.intent.networks[0].spec.weight = u16::try_from(generation).unwrap();
        large
    };
    save(&mut store, &large(1)).unwrap();
    let bytes = store.documents(1).unwrap()["network/n1"].len();
    // The text is a string in JSON, where quotation marks take two bytes.
    let fit = u64::try_from(BYTES_MAX / bytes).unwrap();
    for generation in 2..=fit + 3 {
        save(&mut store, &large(generation)).unwrap();
    }
    let kept = numbers(&store);
    assert!(kept.len() as u64 <= fit && kept.len() > 2, "{} of {bytes} bytes", kept.len());
    assert_eq!(kept[0], fit + 3);
    let oldest = *kept.last().unwrap();
    assert!(store.documents(oldest).is_ok() && store.documents(oldest - 2).is_err());
    assert_eq!(store.history().1, None, "that is no problem");
}

const REVISIONS: TableDefinition<'static, u64, &'static str> = TableDefinition::new("revisions");
const UNDOS: TableDefinition<'static, u64, &'static str> = TableDefinition::new("undos");

/// What is said of a damage, the damage, and the revisions that are left.
type Damage<'d> = (&'static str, &'d dyn Fn(&Database), &'static [u64]);

/// A history that contradicts itself is used as far as it is good; the documents in force never depend on it.
#[test]
fn a_damaged_history_ends_at_the_damage() {
    let damages: [Damage<'_>; 4] = [
        ("revision 2 cannot be read", &|database| put(database, REVISIONS, 2, Some("{")), &[4, 3]),
        ("revision 3 lacks its undo", &|database| put(database, UNDOS, 3, None), &[4]),
        ("found revision 2, expected 3", &|database| put(database, REVISIONS, 3, None), &[4]),
        ("found revision 3, expected 4", &|database| put(database, REVISIONS, 4, None), &[]),
    ];
    for (what, damage, left) in damages {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = open(folder.path());
        for generation in 1..=4 {
            save(&mut store, &desired(generation, &[(1, u16::try_from(generation).unwrap())])).unwrap();
        }
        drop(store);
        damage(&Database::open(folder.path().join(FILE)).unwrap());
        let opened = Store::open(folder.path()).unwrap();
        assert_eq!(opened.desired, desired(4, &[(1, 4)]), "{what}");
        let trouble = opened.trouble.unwrap();
        assert!(trouble.contains(what) && trouble.contains("history is damaged"), "{what}: {trouble}");
        let mut store = opened.store;
        assert_eq!(numbers(&store), left, "{what}");
        assert!(store.history().1.is_some_and(|problem| problem.contains(what)), "{what}");
        // It goes on from there, and what is damaged is gone.
        save(&mut store, &desired(5, &[(1, 5)])).unwrap();
        assert!(store.documents(4).unwrap()["network/n1"].contains("\"weight\":4"), "{what}");
        let now = numbers(&store);
        assert_eq!(now[1..], *left, "{what}");
        if left.is_empty() {
            drop(store);
            assert_eq!(numbers(&open(folder.path()).0), [5], "{what}");
        }
    }
}

/// An undo that cannot be read is found when it is needed.
#[test]
fn an_undo_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    (1..=3).for_each(|generation| {
        drop(save(&mut store, &desired(generation, &[(1, 1 + generation as u16)])).unwrap())
    });
    drop(store);
    put(&Database::open(folder.path().join(FILE)).unwrap(), UNDOS, 2, Some("nonsense"));
    let (mut store, _) = open(folder.path());
    assert!(store.documents(2).is_ok());
    assert!(matches!(store.documents(1), Err(HistoryError::Damaged(why)) if why.contains("revision 2")));
}

fn put(database: &Database, table: TableDefinition<'_, u64, &'static str>, number: u64, text: Option<&str>) {
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(table).unwrap();
        match text {
            Some(text) => drop(table.insert(number, text).unwrap()),
            None => drop(table.remove(number).unwrap()),
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn a_store_that_was_lost_has_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, _) = open(folder.path());
    save(&mut store, &desired(1, &[(1, 1)])).unwrap();
    save(&mut store, &desired(2, &[(1, 2)])).unwrap();
    drop(store);
    fs::write(folder.path().join(FILE), b"not a database").unwrap();
    let opened = Store::open(folder.path()).unwrap();
    assert_eq!(opened.desired, desired(2, &[(1, 2)]));
    assert!(opened.trouble.unwrap().contains("a new history begins"));
    let mut store = opened.store;
    assert!(numbers(&store).is_empty() && store.history().1.is_some());
    save(&mut store, &desired(3, &[(1, 3)])).unwrap();
    assert!(store.documents(2).unwrap()["network/n1"].contains("\"weight\":2"));
}

/// The change that an operator makes is worth more than the history of earlier ones.
#[test]
fn on_a_full_disk_the_history_goes_first() {
    let Some(disk) = SmallDisk::new("8m") else { return };
    let (mut store, _) = open(disk.path());
    // Changes of a large document, so that the history takes most of the room.
    let large = |generation: u64| {
        let mut large = with_routes(generation, 4_000);
        large.intent.networks[0].spec.weight = u16::try_from(generation).unwrap();
        large
    };
    let mut last = 0;
    for generation in 1..40 {
        save(&mut store, &large(generation)).unwrap();
        last = generation;
        if store.history().1.is_some() {
            break;
        }
    }
    let (revisions, problem) = store.history();
    // The change itself is recorded if there is room then.
    assert!(revisions.iter().all(|revision| revision.number == last), "{revisions:?}");
    assert!(problem.clone().unwrap().contains("disk was full"), "{problem:?}");
    assert!(store.problem().unwrap().contains("history was dropped"), "{:?}", store.problem());
    drop(store);
    let (mut store, found) = open(disk.path());
    assert!(found == large(last), "the change is there");
    // It begins anew where there is room.
    save(&mut store, &large(last + 1)).unwrap();
    let now = numbers(&store);
    assert!(now[0] == last + 1 && now[1..].iter().all(|number| *number == last), "{now:?}");
    assert!(store.documents(last).is_ok());
}

/// A change that does not fit even without the history does not cost it; a delete on a full disk is recorded if the reserve allows.
#[test]
fn a_hopeless_change_does_not_cost_the_history() {
    let Some(disk) = SmallDisk::new("8m") else { return };
    let (mut store, _) = open(disk.path());
    save(&mut store, &desired(1, &[(1, 1), (2, 1)])).unwrap();
    save(&mut store, &desired(2, &[(1, 1), (2, 2)])).unwrap();
    for _ in 0..3 {
        assert!(save(&mut store, &with_routes(3, 400_000)).is_err());
        assert_eq!((numbers(&store), store.history().1), (vec![2, 1], None));
    }
    drop(store);
    let (mut store, _) = open(disk.path());
    assert_eq!(numbers(&store), [2, 1]);
    disk.fill();
    save(&mut store, &desired(3, &[(1, 1)])).unwrap();
    assert_eq!((numbers(&store), store.history().1), (vec![3, 2, 1], None));
    assert!(store.documents(2).unwrap().contains_key("network/n2"));
}
