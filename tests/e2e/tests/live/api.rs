//! Thousands of malformed calls to the daemon's socket while packets flow.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, Pair, can_run, http};

/// Calls in all.
const CALLS: u64 = 10_000;

/// Random numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const METHODS: [&str; 9] = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "get", "\u{1}"];
/// All paths except `/v1/down`, which ends the daemon.
const PATHS: [&str; 24] = [
    "/v1/node",
    "/v1/status",
    "/v1/config",
    "/v1/networks",
    "/v1/networks/",
    "/v1/networks/nobody",
    "/v1/networks/%00%ff",
    "/v1/networks/../../etc/passwd",
    "/v1/networks/nobody/exec",
    "/v1/ports?x=y&x=z",
    "/v1/routes?network=nobody",
    "/v1/routes?limit=-1",
    "/v1/routes?address=300.1.1.1",
    "/v1/neighbours?limit=99999999999999999999",
    "/v1/tables",
    "/v1/stats?network=%",
    "/v1/events?since=abc",
    "/v1/events?since=18446744073709551615",
    "/v1/capture?count=0&snap=99999999999",
    "/v1/apply",
    "/v1/diff",
    "/v1/trace",
    "/metrics?a",
    "//",
];
const BODIES: [&str; 16] = [
    "",
    "{}",
    "null",
    "[]",
    "{\"sources\":",
    "{\"sources\":[{\"name\":\"a\",\"text\":\"kind: Nothing\"}]}",
    "{\"sources\":[{\"name\":\"a\",\"text\":\"apiVersion: hueplane/v1\\nkind: Network\\nmetadata: {name: x}\\nspec: {}\"}]}",
    "{\"sources\":[{\"name\":\"a\",\"text\":\"&a [*a, *a]\"}],\"prune\":1}",
    "{\"sources\":[{\"name\":1,\"text\":null}],\"dry_run\":true}",
    "{\"sources\":[],\"if_generation\":-5}",
    "{\"port\":\"p0\",\"frame\":\"zz\"}",
    "{\"port\":\"p0\",\"frame\":\"\"}",
    "{\"port\":\"nowhere\",\"frame\":\"00\"}",
    "{\"port\":\"p0\",\"frame\":\"ffffffffffff0200000000010800450000\"}",
    "\u{0}\u{1}\u{2}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

/// A malformed call.
fn malformed(random: &mut Random) -> Vec<u8> {
    let method = random.pick(&METHODS);
    let mut path = random.pick(&PATHS).to_owned();
    if random.below(40) == 0 {
        path = format!("/{}", "a".repeat(random.below(70_000)));
    }
    let version = random.pick(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "SMTP", ""]);
    let body = random.pick(&BODIES);
    let length = match random.below(6) {
        0 => "-1".to_owned(),
        1 => "99999999999999999999".to_owned(),
        2 => (body.len() / 2).to_string(),
        _ => body.len().to_string(),
    };
    let kind = random.pick(&["application/json", "text/plain", "application/json; charset=x", "\u{7f}"]);
    let mut call =
        format!("{method} {path} {version}\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n");
    match random.below(12) {
        0 => call += "Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        1 => call += &format!("X: {}\r\n", "y".repeat(random.below(200_000))),
        2 => (0..300).for_each(|n| call += &format!("X-{n}: y\r\n")),
        3 => call += "Expect: 100-continue\r\nUpgrade: h2c\r\n",
        _ => {}
    }
    call += &format!("Content-Length: {length}\r\n\r\n{body}");
    let mut call = call.into_bytes();
    match random.below(10) {
        // Truncated anywhere, changed bytes anywhere, or random bytes only.
        0 => call.truncate(random.below(call.len())),
        1 => (0..8).for_each(|_| {
            let at = random.below(call.len());
            call[at] = random.below(256) as u8;
        }),
        2 => call = (0..random.below(500)).map(|_| random.below(256) as u8).collect(),
        _ => {}
    }
    call
}

/// Makes half of the calls, from four callers at once. Returns how many were answered.
fn malformed_round(socket: &std::path::Path, seed: u64) -> u64 {
    let mut threads = Vec::new();
    for part in 0..4u64 {
        let socket = socket.to_owned();
        threads.push(std::thread::spawn(move || {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (part + 1));
            let mut answered = 0u64;
            for _ in 0..CALLS / 8 {
                let call = malformed(&mut random);
                let mut stream = UnixStream::connect(&socket).unwrap();
                stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
                // The daemon may refuse it before it has read all of it.
                let _ = stream.write_all(&call);
                // Half of the callers wait for the answer, half close the connection.
                if random.below(2) == 0 {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
                    let mut buffer = [0; 64];
                    if std::io::Read::read(&mut stream, &mut buffer).is_ok_and(|count| count > 0) {
                        answered += 1;
                        let status = String::from_utf8_lossy(&buffer);
                        assert!(!status.contains(" 500 "), "{status}\n{}", String::from_utf8_lossy(&call));
                    }
                }
            }
            answered
        }));
    }
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[test]
fn ten_thousand_malformed_calls_do_no_harm() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair: Pair = lab.pair("red", 1, 1, [0, 1]);
    let mut daemon = Daemon::start(&lab, &all(&[lab.node_document(""), pair.document.yaml()]));
    pair.warm_up();
    let socket = daemon.cli.socket();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o660, "{mode:o}");
    let before = daemon.cli.json(&["get", "nodes"])[0]["status"]["generation"].clone();
    let seed = u64::from(std::process::id()) * 2 + 1;
    eprintln!("seed {seed}");
    let flow = Flow::start(&pair.left, &pair.right, 500, 100);
    // The first half fills reusable memory: buffers, caches, slots for connections. The second half can then reuse it.
    let mut answered = malformed_round(&socket, seed);
    let memory = daemon.memory_bytes();
    answered += malformed_round(&socket, seed ^ 0x5555);
    assert!(answered > CALLS / 20, "{answered} answers");
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
    assert!(daemon.ended().is_none());
    assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["status"]["generation"], before);
    let answer = http::get(&socket, "/healthz");
    assert_eq!(answer.status, 200, "{answer:?}");
    let grown = daemon.memory_bytes().saturating_sub(memory);
    assert!(grown < 64 << 20, "{grown} bytes more");
    // Silent callers do not keep others out.
    let silent: Vec<UnixStream> = (0..50).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    assert_eq!(http::get(&socket, "/v1/status").status, 200);
    drop(silent);
}

#[test]
fn answers_of_the_api_match_the_description() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(1);
    let daemon = Daemon::start(&lab, &lab.node_document(""));
    let socket = daemon.cli.socket();
    let description = http::get(&socket, "/openapi.json").json();
    let paths = description["paths"].as_object().cloned().unwrap_or_default();
    assert!(paths.len() > 10, "{description}");
    for path in paths.keys().filter(|path| !path.contains('{')) {
        let get = &paths[path]["get"];
        if get.is_null() || path.ends_with("/capture") {
            continue;
        }
        let answer = http::get(&socket, path);
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
    }
    let missing = http::get(&socket, "/v1/networks/nobody");
    assert_eq!(missing.status, 404);
    assert!(missing.head.to_lowercase().contains("application/problem+json"), "{missing:?}");
    assert_eq!(missing.json()["kind"], "not_found", "{missing:?}");
}
