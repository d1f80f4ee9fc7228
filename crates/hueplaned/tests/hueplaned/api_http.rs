//! The API over a real Unix socket, by its own client and by bare bytes.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::world::{Served, document, eventually};
use hueplaned::api::*;
use hueplaned::client::{Client, ClientError};
use hueplaned::http::{
    BODY_BYTES_MAX, CHANGES_MAX, DOCUMENTS_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, OPERATIONS, STREAMS_MAX,
    ServeLimits,
};

fn kind(error: &ClientError) -> ProblemKind {
    error.problem().unwrap_or_else(|| panic!("no problem: {error}")).kind
}

fn source(text: impl Into<String>) -> Vec<SourceText> {
    vec![SourceText { name: "test.yaml".to_owned(), text: text.into() }]
}

/// A request with a method, a path, and a body whose content type is JSON.
fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// An API with other limits.
fn served_with(change: impl FnOnce(&mut ServeLimits)) -> Served {
    let mut limits = ServeLimits::default();
    change(&mut limits);
    Served::with(limits, async || None)
}

fn status_of(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no status: {text:?}"))
}

#[test]
fn every_request_gets_its_answer() {
    let served = Served::new();
    let client = served.client();
    assert_eq!(client.status().unwrap().pid, Some(4_242));
    assert_eq!(client.node().unwrap().networks, ["blue", "red"]);
    assert_eq!(client.config().unwrap().documents.len(), 3);
    assert_eq!(client.networks().unwrap().len(), 2);
    assert_eq!(client.network("red").unwrap().name, "red");
    assert_eq!(client.ports().unwrap().len(), 3);
    assert_eq!(client.routes(&RouteFilter::default()).unwrap().len(), 4);
    let of_red = RouteFilter { network: Some("red".to_owned()), ..RouteFilter::default() };
    assert!(client.routes(&of_red).unwrap().iter().all(|route| route.network == "red"));
    assert_eq!(client.neighbours(&NetworkFilter::default()).unwrap().len(), 2);
    assert_eq!(client.macs(&NetworkFilter::default()).unwrap()[1].age_seconds, Some(7));
    assert_eq!(client.tables().unwrap().networks.len(), 2);
    assert_eq!(client.stats(None).unwrap().networks.len(), 2);
    assert_eq!(client.stats(Some("blue")).unwrap().networks[0], crate::world::network_stats("blue"));
    assert!(client.metrics().unwrap().contains("hueplane_network_packets_total{network=\"red\""));
    assert!(client.openapi().unwrap().contains("\"openapi\": \"3.1"));
    assert_eq!(client.exec_info("red").unwrap().namespace, "hue-red");
    assert_eq!(client.down(&DownOptions { keep: true, ..DownOptions::default() }).unwrap().networks, 2);
    assert_eq!(client.wait_ready(Duration::from_secs(1)).unwrap().node, "box");
    let healthz = served.raw(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert_eq!(status_of(&healthz), 200);
    let head = served.raw(b"HEAD /v1/status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(status_of(&head) == 200 && head.ends_with(b"\r\n\r\n"));
}

#[test]
fn changes_are_applied_and_wrong_documents_explained() {
    let served = Served::new();
    let client = served.client();
    let apply = ApplyRequest { sources: source(document("red")), ..ApplyRequest::default() };
    let result = client.apply(&apply, TurnQuery::default()).unwrap();
    assert_eq!((result.generation, result.dry_run), (8, false));
    let result =
        client.apply(&ApplyRequest { dry_run: true, ..apply.clone() }, TurnQuery::default()).unwrap();
    assert_eq!((result.generation, result.dry_run), (8, true));
    assert_eq!(served.world.applied.lock().unwrap().as_slice(), std::slice::from_ref(&apply));
    let stale = ApplyRequest { if_generation: Some(7), ..apply };
    assert_eq!(kind(&client.apply(&stale, TurnQuery::default()).unwrap_err()), ProblemKind::Conflict);
    let diff = client.diff(&DiffRequest { sources: source(document("red")), prune: false }).unwrap();
    assert_eq!(diff.actions[0].name, "red");
    client.delete_network("red", TurnQuery::default()).unwrap();

    let wrong = DiffRequest { sources: source("kind: Network\nspec: {weight: many}\n"), prune: false };
    let error = client.diff(&wrong).unwrap_err();
    assert_eq!(kind(&error), ProblemKind::InvalidDocuments);
    let problem = error.problem().unwrap();
    let weight = problem.findings.iter().find(|one| one.field.as_deref() == Some("spec.weight")).unwrap();
    assert_eq!((weight.file.as_deref(), weight.line), (Some("test.yaml"), Some(2)));
    assert!(weight.column.is_some() && weight.expected.is_some());
}

#[test]
fn a_frame_is_explained() {
    let served = Served::new();
    let client = served.client();
    let trace = |port: &str, frame: &str| {
        client.trace(&TraceRequest { port: port.to_owned(), frame: frame.to_owned() })
    };
    assert_eq!(trace("p0", "01 00:00-00").unwrap().networks[0].network, "red");
    assert_eq!(trace("p0", &"ff".repeat(16_384)).unwrap().length, 16_384);
    for (port, frame, expected) in [
        ("p9", "01".to_owned(), ProblemKind::NotFound),
        ("p0", "0".to_owned(), ProblemKind::BadRequest),
        ("p0", "zz".to_owned(), ProblemKind::BadRequest),
        ("p0", "ff".repeat(16_385), ProblemKind::BadRequest),
    ] {
        assert_eq!(kind(&trace(port, &frame).unwrap_err()), expected, "{port} {:.20}", frame);
    }
}

#[test]
fn errors_are_problems_of_the_right_kind() {
    let served = Served::new();
    for (expected, bytes) in [
        (404, request("GET", "/v1/nothing", "")),
        (404, request("GET", "/", "")),
        (404, request("GET", "/v1/networks/green", "")),
        (404, request("GET", "/v1/routes?network=green", "")),
        (404, request("DELETE", "/v1/networks/green", "")),
        (404, request("GET", "/v1/networks/%2e%2e%2f", "")),
        (405, request("PUT", "/v1/networks", "")),
        (405, request("POST", "/v1/status", "{}")),
        (405, request("OPTIONS", "/v1/apply", "")),
        (400, request("GET", "/v1/routes?netwrok=red", "")),
        (400, request("GET", "/v1/routes?limit=many", "")),
        (400, request("GET", "/v1/events?since=-1", "")),
        (400, request("GET", "/v1/networks/%ff", "")),
        (400, request("POST", "/v1/apply", "")),
        (400, request("POST", "/v1/apply", "{\"sources\": [}")),
        (400, request("POST", "/v1/apply", "{\"sources\": [], \"dry\": true}")),
        (400, request("POST", "/v1/trace", "[1, 2]")),
        (
            415,
            b"POST /v1/down HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}".to_vec(),
        ),
        (413, request("POST", "/v1/trace", &" ".repeat(BODY_BYTES_MAX + 1))),
    ] {
        let answer = served.raw(&bytes);
        let sent = String::from_utf8_lossy(&bytes[..bytes.len().min(90)]).into_owned();
        assert_eq!(status_of(&answer), expected, "{sent}: {}", String::from_utf8_lossy(&answer));
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains("content-type: application/problem+json"), "{sent}: {head}");
        let problem: Problem = serde_json::from_str(body).unwrap();
        assert_eq!(problem.status, expected, "{sent}");
        assert!(!problem.detail.is_empty() && problem.type_uri.ends_with(problem.kind.name()));
    }
    let query = served.raw(&request("GET", "/v1/routes?netwrok=red", ""));
    assert!(String::from_utf8_lossy(&query).contains("netwrok"), "the error names the field");
}

/// An empty list would claim that no networks exist.
#[test]
fn a_starting_daemon_does_not_answer_for_its_networks() {
    let served = Served::new();
    served.world.starting.store(true, Ordering::SeqCst);
    let get = |path: &str| status_of(&served.raw(&request("GET", path, "")));
    for path in [
        "networks",
        "networks/red",
        "node",
        "ports",
        "routes",
        "neighbours",
        "macs",
        "tables",
        "stats",
        "placements",
        "plan",
    ] {
        assert_eq!(get(&format!("/v1/{path}")), 503, "{path}");
    }
    assert_eq!([get("/metrics"), get("/v1/networks/red/exec"), get("/v1/images")], [503; 3]);
    assert_eq!([get("/healthz"), get("/openapi.json"), get("/v1/status"), get("/v1/config")], [200; 4]);
    served.world.starting.store(false, Ordering::SeqCst);
    assert_eq!(get("/v1/networks"), 200);
}

#[test]
fn a_body_at_the_limit_is_read_and_one_above_is_not() {
    let served = Served::new();
    let body = |bytes: usize| {
        let shell = "{\"sources\":[{\"name\":\"a\",\"text\":\"\"}]}";
        shell.replace("\"\"}", &format!("\"{}\"}}", "#".repeat(bytes - shell.len())))
    };
    let fits = served.raw(&request("POST", "/v1/diff", &body(DOCUMENTS_BYTES_MAX)));
    assert_eq!(status_of(&fits), 422, "all of it is a comment: no document");
    let mut stream = served.connect();
    let more = body(DOCUMENTS_BYTES_MAX + 1);
    let _ = stream.write_all(&request("POST", "/v1/diff", &more));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(status_of(&answer), 413);
}

#[test]
fn heads_have_limits() {
    let served = Served::new();
    let with = |fields: usize, bytes: usize| {
        let mut text = "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n".to_owned();
        (0..fields.saturating_sub(2)).for_each(|at| text += &format!("x-{at}: {}\r\n", "a".repeat(bytes)));
        served.raw((text + "\r\n").as_bytes())
    };
    assert_eq!(status_of(&with(HEADERS_MAX, 10)), 200);
    assert_eq!(status_of(&with(HEADERS_MAX + 1, 10)), 431);
    assert_eq!(status_of(&with(3, HEAD_BYTES_MAX / 2)), 200);
    assert_eq!(status_of(&with(3, 2 * HEAD_BYTES_MAX)), 431);
    for large in [with(HEADERS_MAX + 1, 10), with(3, 2 * HEAD_BYTES_MAX)] {
        let problem = problem_of(&large, 431);
        assert_eq!(problem.kind, ProblemKind::TooLarge);
        assert!(problem.detail.contains("at most 65536 bytes and 64 header fields"), "{}", problem.detail);
    }
    assert_eq!(served.client().status().unwrap().node, "box");
}

/// The problem in an answer with this status.
fn problem_of(answer: &[u8], status: u16) -> Problem {
    let text = String::from_utf8(answer.to_vec()).unwrap();
    assert_eq!(status_of(answer), status, "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.contains("content-type: application/problem+json"), "{text}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{text}");
    let problem: Problem = serde_json::from_str(body).unwrap();
    assert_eq!(problem.status, status, "{text}");
    problem
}

/// The HTTP library refuses these before the API sees them; its own answers have no body.
#[test]
fn malformed_http_is_answered_with_a_problem() {
    let served = Served::new();
    for bytes in [
        &b"GARBAGE\r\n\r\n"[..],
        b"GET /v1/status HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
        b"GET /v1/status HTTP/3.7\r\nhost: a\r\n\r\n",
        b"GET  /v1/status HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /v1/apply HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/apply HTTP/1.1\r\nhost: a\r\ntransfer-encoding: nonsense\r\n\r\n",
    ] {
        let problem = problem_of(&served.raw(bytes), 400);
        assert_eq!(problem.kind, ProblemKind::BadRequest);
        assert!(problem.detail.contains("not an HTTP/1.1 request"), "{}", problem.detail);
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(65_600));
    let answer = served.raw(long.as_bytes());
    let status = status_of(&answer);
    assert!(status == 414 || status == 431, "{status}");
    assert_eq!(problem_of(&answer, status).kind, ProblemKind::TooLarge);
    // A malformed request after a good one, on the same connection.
    let two = served.raw(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\nGARBAGE\r\n\r\n");
    let text = String::from_utf8(two).unwrap();
    let second = text.rfind("HTTP/1.1 400").unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    assert_eq!(problem_of(&text.as_bytes()[second..], 400).kind, ProblemKind::BadRequest);
    for chunk in ["zz\r\n", "5\r\nabc\r\n0\r\n\r\n"] {
        let head =
            "POST /v1/apply HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n";
        let answer = served.raw(format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}").as_bytes());
        let problem = problem_of(&answer, 400);
        assert!(problem.detail.starts_with("body: incomplete or malformed: "), "{}", problem.detail);
    }
    assert_eq!(served.client().status().unwrap().node, "box");
}

/// No error names a type of the program or of Rust.
#[test]
fn wrong_values_are_explained_by_field() {
    let served = Served::new();
    let detail = |bytes: Vec<u8>| problem_of(&served.raw(&bytes), 400).detail;
    let post = |path: &str, body: &str| detail(request("POST", path, body));
    let get = |path: &str| detail(request("GET", path, ""));
    for (found, expected) in [
        (post("/v1/apply", "[]"), "body: found a list, expected an object (line 1, column 2)"),
        (post("/v1/apply", "{}"), "body: sources: this field is required (line 1, column 2)"),
        (
            post("/v1/apply", r#"{"sources":{}}"#),
            "body: sources: found an object, expected a list (line 1, column 11)",
        ),
        (
            post("/v1/apply", r#"{"sources":[3]}"#),
            "body: sources[0]: found 3, expected an object (line 1, column 13)",
        ),
        (
            post("/v1/apply", r#"{"sources":[],"prune":"yes"}"#),
            "body: prune: found \"yes\", expected true or false (line 1, column 27)",
        ),
        (post("/v1/apply", "{"), "body: this is not JSON: the text ends inside an object (line 1, column 1)"),
        (
            post("/v1/apply", r#"{"sources":[]} more"#),
            "body: this is not JSON: trailing characters at line 1 column 16",
        ),
        (
            post("/v1/networks/red/migrate", r#"{"to":"cloud"}"#),
            "body: to: found \"cloud\", expected \"card\" or \"soft\" (line 1, column 13)",
        ),
        (get("/v1/events?since=-1"), "query: since: expected a whole number"),
        (get("/v1/events?sinc=1"), "query: sinc: unknown field, expected \"since\" or \"follow\""),
        (
            get("/v1/routes?address=10.0.0.300"),
            "query: address: expected an address such as 10.1.0.1 or 2001:db8::1",
        ),
        (get("/v1/networks/%ff"), "path: the name is not UTF-8"),
    ] {
        assert_eq!(found, expected);
    }
    // Every operation with a body, and values of every type.
    for operation in OPERATIONS.iter().filter(|operation| operation.method.as_str() == "POST") {
        let path = operation.path.replace("{name}", "red");
        for body in
            ["7", "[]", "null", "\"x\"", "[[]]", "{\"x\": 1}", "{", "-1", "1.5", "{\"sources\": null}"]
        {
            let answer = String::from_utf8(served.raw(&request("POST", &path, body))).unwrap();
            let Ok(problem) = serde_json::from_str::<Problem>(answer.split_once("\r\n\r\n").unwrap().1)
            else {
                continue;
            };
            for word in ["struct ", "enum ", "::", "variant", "u64", "a sequence", "a map", "unit value"] {
                assert!(!problem.detail.contains(word), "{path} {body}: {}", problem.detail);
            }
        }
    }
}

#[test]
fn a_long_list_comes_in_pieces_and_a_broken_one_is_seen_to_be() {
    let served = Served::new();
    let client = served.client();
    served.world.many_routes.store(300_000, Ordering::Relaxed);
    let mut last = None;
    let mut count = 0;
    client
        .routes_each(&RouteFilter { network: Some("red".to_owned()), ..RouteFilter::default() }, |route| {
            count += 1;
            last = Some(route.prefix);
        })
        .unwrap();
    assert_eq!((count, last.as_deref()), (300_002, Some("0.4.147.225/32")));
    for limit in [0, 1, 999, 1000, 1001] {
        let filter = RouteFilter { limit: Some(limit), ..RouteFilter::default() };
        assert_eq!(client.routes(&filter).unwrap().len() as u64, limit);
    }
    served.world.many_routes.store(u64::MAX, Ordering::Relaxed);
    let error = client.routes(&RouteFilter::default()).unwrap_err();
    assert!(matches!(error, ClientError::Answer { .. } | ClientError::Connection { .. }), "{error}");
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody() {
    let served = Served::new();
    served.world.many_routes.store(300_000, Ordering::Relaxed);
    let mut idle: Vec<_> = (0..8).map(|_| served.connect()).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /v1/routes HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    }
    let mut half = served.connect();
    half.write_all(b"POST /v1/apply HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")
        .unwrap();
    let client = served.client();
    for _ in 0..100 {
        assert_eq!(client.networks().unwrap().len(), 2);
    }
    let apply = ApplyRequest { sources: source(document("red")), ..ApplyRequest::default() };
    client.apply(&apply, TurnQuery::default()).unwrap();
}

#[test]
fn a_slow_call_delays_no_other() {
    let served = served_with(|limits| limits.answer = Duration::from_secs(2));
    served.world.slow_ms.store(3_600_000, Ordering::Relaxed);
    let mut slow = served.connect();
    slow.write_all(b"GET /v1/stats HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    eventually("the slow call begins", || served.world.calls.load(Ordering::Relaxed) == 1);
    assert_eq!(served.client().networks().unwrap().len(), 2);
    // It gets an answer when its time is over.
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

/// Reads until the connection is closed.
fn until_closed(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn silent_clients_are_disconnected() {
    let served = served_with(|limits| {
        (limits.head, limits.body) = (Duration::from_millis(300), Duration::from_millis(300));
    });
    let mut nothing = served.connect();
    assert_eq!(until_closed(&mut nothing), b"");
    let mut half_a_head = served.connect();
    half_a_head.write_all(b"GET /v1/status HTTP/1.1\r\nhost").unwrap();
    until_closed(&mut half_a_head);
    let mut half_a_body = served.connect();
    let head =
        b"POST /v1/diff HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    half_a_body.write_all(head).unwrap();
    assert_eq!(status_of(&until_closed(&mut half_a_body)), 408);
    let mut after_an_answer = served.connect();
    after_an_answer.write_all(b"GET /v1/status HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    assert_eq!(status_of(&until_closed(&mut after_an_answer)), 200);
}

#[test]
fn clients_that_do_not_read_are_disconnected() {
    let served = served_with(|limits| limits.write = Duration::from_millis(300));
    served.world.many_routes.store(300_000, Ordering::Relaxed);
    let mut stream = served.connect();
    stream.write_all(b"GET /v1/routes HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    // The client reads nothing until the daemon has given up.
    eventually("it gives up", || stream.write_all(b"GET /v1/status HTTP/1.1\r\n\r\n").is_err());
    let answer = until_closed(&mut stream);
    assert!(answer.len() < 10 << 20 && !answer.ends_with(b"]\n\r\n0\r\n\r\n"), "{} bytes", answer.len());
}

#[test]
fn connections_above_the_limit_wait_for_a_place() {
    let served = served_with(|limits| (limits.connections, limits.head) = (8, Duration::from_secs(1)));
    let silent: Vec<_> = (0..40).map(|_| served.connect()).collect();
    // Earlier ones are disconnected, eight at a time.
    assert_eq!(served.client().status().unwrap().node, "box");
    drop(silent);
}

#[test]
fn many_calls_on_one_connection() {
    let served = Served::new();
    let mut stream = served.connect();
    let call = b"GET /v1/networks/red HTTP/1.1\r\nhost: a\r\n\r\n";
    let last = b"GET /v1/networks/red HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let calls = std::iter::repeat_n(&call[..], 199).chain([&last[..]]);
    let pipelined: Vec<u8> = calls.flatten().copied().collect();
    stream.write_all(&pipelined).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 200);
}

#[test]
fn streams_have_a_limit_and_free_their_slots() {
    let served = Served::new();
    let client = served.client();
    let mut open: Vec<_> = (0..STREAMS_MAX).map(|_| client.follow_events(0).unwrap()).collect();
    assert_eq!(kind(&client.follow_events(0).map(drop).unwrap_err()), ProblemKind::Busy);
    assert_eq!(kind(&client.capture(&CaptureFilter::default()).map(drop).unwrap_err()), ProblemKind::Busy);
    assert_eq!(client.networks().unwrap().len(), 2, "calls go on");
    open.pop();
    eventually("a place is free", || client.follow_events(0).is_ok());
}

#[test]
fn going_down_ends_streams_and_answers() {
    let mut served = Served::new();
    let client = served.client();
    let mut events = client.follow_events(0).unwrap();
    served.world.happen(EventKind::Started, None);
    assert_eq!(events.next().unwrap().unwrap().sequence, 1);
    let mut capture = client.capture(&CaptureFilter::default()).unwrap();
    served.close();
    assert!(events.next().is_none(), "a stream that ends is no error");
    let mut rest = Vec::new();
    capture.read_to_end(&mut rest).unwrap();
}

#[test]
fn the_client_says_what_is_wrong_with_the_connection() {
    let missing = Client::unix("/nonexistent/hueplane.sock").unwrap();
    let error = missing.status().unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }), "{error}");
    assert!(error.to_string().contains("hueplane up"), "{error}");
    let served = Served::new();
    let socket = hueplaned::client::socket_in(&served.folder);
    drop(served);
    let error = Client::unix(socket).unwrap().status().unwrap_err();
    assert!(matches!(error, ClientError::NotRunning { .. }), "{error}");
    let served = Served::new();
    assert_eq!(kind(&served.client().network("a/../b").unwrap_err()), ProblemKind::NotFound);
}

#[test]
fn changes_wait_unless_told_not_to_and_disconnected_callers_leave_the_queue() {
    let served = Served::new();
    served.world.busy.store(true, Ordering::SeqCst);
    let client = served.client();
    let at_once = TurnQuery { no_wait: true };
    let source = SourceText { name: "a".into(), text: document("red") };
    let apply = ApplyRequest { sources: vec![source], ..ApplyRequest::default() };
    let image = LoadImageRequest::default();
    let problems = [
        client.apply(&apply, at_once).unwrap_err(),
        client.delete_network("red", at_once).unwrap_err(),
        client.migrate("red", &MigrateRequest::new(SubstrateName::Card), at_once).unwrap_err(),
        client.gate_network("red", GateRequest { gated: true }, at_once).unwrap_err(),
        client.load_image("wide", image, at_once).unwrap_err(),
        client.drain(&DrainRequest { drained: true, force: false, fail: None }, at_once).unwrap_err(),
    ];
    for problem in problems {
        assert!(
            kind(&problem) == ProblemKind::Conflict && problem.to_string().contains("under way"),
            "{problem}"
        );
    }
    let until = |what: &str, counter: &std::sync::atomic::AtomicU64, count: u64| {
        eventually(what, || counter.load(Ordering::SeqCst) == count);
    };
    let body = serde_json::to_string(&apply).unwrap();
    let calls = [
        ("POST", "/v1/apply", body.as_str()),
        ("DELETE", "/v1/networks/red", ""),
        ("POST", "/v1/networks/red/migrate", r#"{"to": "card"}"#),
        ("POST", "/v1/networks/red/gate", r#"{"gated": true}"#),
        ("POST", "/v1/images/wide/load", "{}"),
        ("POST", "/v1/card/drain", r#"{"drained": true}"#),
    ];
    for ((method, path, body), before) in calls.into_iter().zip(0..) {
        let mut stream = served.connect();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        until("it waits", &served.world.waiting, 1);
        assert_eq!(served.world.gone.load(Ordering::SeqCst), before);
        drop(stream);
        until("it has gone", &served.world.gone, before + 1);
    }
    // More changes wait than bodies with documents may be read at once.
    let waits = (0..2 * CHANGES_MAX as u64).map(|_| {
        let mut stream = served.connect();
        stream
            .write_all(b"POST /v1/images/wide/load HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        stream
    });
    let waits: Vec<_> = waits.collect();
    until("all wait", &served.world.waiting, 2 * CHANGES_MAX as u64);
    drop(waits);
}
