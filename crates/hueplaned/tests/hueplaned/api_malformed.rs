//! Thousands of malformed requests over the real socket: every one is refused or answered, no answer is an internal
//! error, and the daemon answers the next caller. `HUEPLANE_FULL=1` sends 10,000 of each kind.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;

use crate::world::Served;
use hueplaned::http::{OPERATIONS, openapi};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

fn cases() -> u32 {
    if hue_testdata::full() { 10_000 } else { 2_500 }
}

/// An API whose captures end by themselves, because the sender of these requests reads until the end.
fn served() -> Served {
    let served = Served::new();
    served.world.captures_end.store(true, Ordering::Relaxed);
    served
}

fn runner() -> TestRunner {
    TestRunner::new(Config { cases: cases(), failure_persistence: None, ..Config::default() })
}

/// Sends bytes and nothing else. Returns the status of each answer; 5xx would be an error in the daemon.
fn statuses(served: &Served, bytes: &[u8]) -> Vec<u16> {
    let mut stream = served.connect();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let status = |line: &str| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok();
    text.split("\r\n").filter_map(status).collect()
}

/// A well-formed request.
fn valid() -> impl Strategy<Value = Vec<u8>> {
    let body = select(vec![
        String::new(),
        "{}".to_owned(),
        r#"{"sources": [{"name": "a", "text": "kind: Network"}], "dry_run": true}"#.to_owned(),
        r#"{"port": "p0", "frame": "00ff"}"#.to_owned(),
        serde_json::json!({"sources": [{"name": "a", "text": crate::world::document("red")}]}).to_string(),
    ]);
    let query =
        select(vec!["", "?network=red", "?since=1", "?limit=3", "?count=0&snap=64", "?address=10.0.0.1"]);
    (select(OPERATIONS.to_vec()), body, query).prop_map(|(operation, body, query)| {
        let path = operation.path.replace("{name}", "red");
        format!(
            "{} {path}{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            operation.method,
            body.len()
        )
        .into_bytes()
    })
}

/// Mutations of bytes.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Repeat(Index, Index),
    Remove(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = select(vec![
        b"\r\n".to_vec(),
        b"\r\n\r\n".to_vec(),
        b"\0".to_vec(),
        b"%00%ff%".to_vec(),
        b"{\"a\":".to_vec(),
        b"[".repeat(300),
        b"content-length: 18446744073709551616\r\n".to_vec(),
        b"transfer-encoding: chunked\r\n".to_vec(),
        b"expect: 100-continue\r\n".to_vec(),
        b"upgrade: h2c\r\n".to_vec(),
        "😀\u{202e}".as_bytes().to_vec(),
        b"/../".to_vec(),
    ]);
    let bytes = prop_oneof![words, prop::collection::vec(any::<u8>(), 1..64)];
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (any::<Index>(), bytes).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Remove(from, to)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: Vec<Damage>) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let range = |from: Index, to: Index| {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            from.min(to)..from.max(to)
        };
        match damage {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Flip(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
            Damage::Insert(at, new) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, new);
            }
            Damage::Repeat(from, to) => {
                let part = bytes[range(from, to)].to_vec();
                bytes.extend(part);
            }
            Damage::Remove(from, to) => drop(bytes.drain(range(from, to))),
        }
    }
    bytes
}

/// A JSON value of any shape.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let keys = select(vec![
        "sources",
        "name",
        "text",
        "dry_run",
        "prune",
        "if_generation",
        "port",
        "frame",
        "keep",
        "x",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn no_fault(served: &Served, bytes: &[u8]) -> Result<(), TestCaseError> {
    let statuses = statuses(served, bytes);
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    prop_assert!(statuses.iter().all(|status| *status < 500), "{statuses:?} to {shown:?}");
    Ok(())
}

fn still_answers(served: &Served) {
    assert_eq!(served.client().status().unwrap().node, "box");
    assert_eq!(served.client().networks().unwrap().len(), 2);
}

#[test]
fn damaged_requests() {
    let served = served();
    let input = (valid(), prop::collection::vec(damage(), 1..4));
    runner().run(&input, |(bytes, damages)| no_fault(&served, &damaged(bytes, damages))).unwrap();
    still_answers(&served);
}

#[test]
fn random_bytes() {
    let served = served();
    let input = prop::collection::vec(any::<u8>(), 0..600);
    runner().run(&input, |bytes| no_fault(&served, &bytes)).unwrap();
    still_answers(&served);
}

#[test]
fn well_formed_requests_without_a_meaning() {
    let served = served();
    let method = select(vec!["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"]);
    let name = "[a-zA-Z0-9%._~!$&'()*+,;=:@-]{0,80}";
    let query = "(&?(network|since|follow|limit|address|port|count|snap|x)=[a-z0-9.%+-]{0,24}){0,4}";
    let input = (method, select(OPERATIONS.to_vec()), name, query, value());
    runner()
        .run(&input, |(method, operation, name, query, value)| {
            let (path, body) = (operation.path.replace("{name}", &name), value.to_string());
            // A stream would not end.
            let query = query.replace("follow=t", "follow=");
            let query = if path.ends_with("capture") { format!("count=0&{query}") } else { query };
            let head = format!("{method} {path}?{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
            let rest =
                format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            no_fault(&served, (head + &rest).as_bytes())
        })
        .unwrap();
    still_answers(&served);
}

#[test]
fn documents_of_any_text() {
    let served = served();
    let text = prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9:{}\\[\\], \n#&*!|>'\"%@`-]{0,200}",
        any::<(Index, Index)>().prop_map(|(at, to)| {
            let text = crate::world::document("red");
            let (at, to) = (at.index(text.len()), to.index(text.len()));
            format!("{}{}", &text[..at], &text[to..])
        }),
    ];
    runner()
        .run(&(text, any::<bool>()), |(text, dry_run)| {
            let body = serde_json::json!({"sources": [{"name": "a", "text": text}], "dry_run": dry_run}).to_string();
            let request = format!(
                "POST /v1/apply HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            no_fault(&served, request.as_bytes())
        })
        .unwrap();
    still_answers(&served);
}

#[test]
fn the_fuzzer_knows_every_operation() {
    let described = openapi().paths.paths;
    assert!(OPERATIONS.iter().all(|operation| described.contains_key(operation.path)));
}
