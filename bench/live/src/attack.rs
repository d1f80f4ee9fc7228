//! What people without rights can do to the API at once, from eight addresses: strangers without a certificate, and tenants.
//!
//! Attackers run at the lowest priority: on a real box they have processors of their own.
#![allow(unsafe_code)] // priority of a thread

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hue_e2e::Space;
use rustls::ClientConfig;

use crate::https::{self, Tls};

/// Addresses that attackers come from, and tenants that attack.
pub const ADDRESSES: u8 = 8;
/// Silent connections of an address.
const SILENT: usize = 100;
/// Connections of a tenant: as many as it gets.
const OF_A_TENANT: usize = 32;
/// Streams of a tenant: as many as it gets.
const STREAMS: usize = 8;
/// Requests that are sent at once on one connection.
const PIPELINED: usize = 50;
/// Bytes of a tenant's largest attempt.
const LARGE: usize = 29 << 20;
/// The first bytes of a handshake record.
const BEGUN: [u8; 11] = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// A tenant that attacks.
pub struct Tenant {
    /// The name of its network.
    pub name: String,
    /// TLS with its certificate.
    pub config: Arc<ClientConfig>,
    /// The body of a dry run of the largest document that it may send.
    pub documents: Vec<u8>,
    /// The body of a trace.
    pub trace: Vec<u8>,
}

/// Those who attack.
pub struct Attackers {
    /// TLS with certificates of another authority, and without a certificate.
    pub strangers: [Arc<ClientConfig>; 2],
    /// One for each address.
    pub tenants: Vec<Tenant>,
}

/// The attacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    Quiet,
    Idle,
    Begun,
    Unfinished,
    Strangers,
    SlowHeads,
    SlowBodies,
    LargeBodies,
    DryRuns,
    Queries,
    Traces,
    Deaf,
    Streams,
    All,
}

impl Attack {
    /// All of them, the quiet first.
    pub const LIST: [(Self, &'static str); 14] = [
        (Self::Quiet, "none"),
        (Self::Idle, "800 idle connections, reopened when closed"),
        (Self::Begun, "800 connections with a few bytes of a handshake, reopened when closed"),
        (Self::Unfinished, "handshakes that are left after the server's answer"),
        (Self::Strangers, "handshakes with wrong certificates, and with none"),
        (Self::SlowHeads, "tenants: 256 requests whose heads arrive byte by byte"),
        (Self::SlowBodies, "tenants: 256 dry runs whose bodies arrive byte by byte"),
        (Self::LargeBodies, "tenants: dry runs of 29 MiB, which are refused"),
        (Self::DryRuns, "tenants: dry runs of 2 MiB, the largest that are read"),
        (Self::Queries, "tenants: 256 connections with 50 large queries at once"),
        (Self::Traces, "tenants: 256 connections with 50 traces at once"),
        (Self::Deaf, "tenants: 256 connections with 50 large queries that read no answer"),
        (Self::Streams, "tenants: 64 event and capture streams, reopened"),
        (Self::All, "all of these at once"),
    ];
}

/// A running attack; it ends when dropped.
pub struct Running {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Starts an attack on the daemon of a node.
    pub fn start(attack: Attack, attackers: &Arc<Attackers>, node: &Space) -> Self {
        let mut running = Self { stop: Arc::default(), done: Arc::default(), threads: Vec::new() };
        for (one, _) in Attack::LIST.into_iter().skip(1) {
            if one != Attack::All && (one == attack || attack == Attack::All) {
                running.spawn(one, attackers, node);
            }
        }
        running
    }

    fn spawn(&mut self, attack: Attack, attackers: &Arc<Attackers>, node: &Space) {
        for n in 0..ADDRESSES {
            let (attackers, stop, done) =
                (Arc::clone(attackers), Arc::clone(&self.stop), Arc::clone(&self.done));
            self.threads.push(node.thread(move || {
                humble();
                let mut one = One { n, attackers: &attackers, stop: &stop, done: &done };
                one.attack(attack);
            }));
        }
    }

    /// What was done so far: connections, handshakes, requests, or answers.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Gives this thread the lowest priority.
fn humble() {
    // SAFETY: plain system calls without pointers; without success, the attack is only stronger.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::syscall(libc::SYS_gettid) as u32, 19) };
}

/// An attacker at one address.
struct One<'a> {
    n: u8,
    attackers: &'a Attackers,
    stop: &'a AtomicBool,
    done: &'a AtomicU64,
}

impl One<'_> {
    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 1, self.n + 1)
    }

    fn tenant(&self) -> &Tenant {
        &self.attackers.tenants[usize::from(self.n)]
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn count(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    /// Repeats until the end. Failures are what the daemon does against it, so they are no reason to stop.
    fn repeat(&self, mut work: impl FnMut() -> io::Result<u64>) {
        while self.goes_on() {
            match work() {
                Ok(count) => self.count(count),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn attack(&mut self, attack: Attack) {
        let tenant = self.tenant();
        let queries = |n: usize| {
            let lines = ["/v1/routes", "/v1/config", "/metrics", "/v1/events", "/v1/stats"];
            https::request(&format!("GET {}", lines[n % lines.len()]), b"", false)
        };
        match attack {
            Attack::Quiet | Attack::All => {}
            Attack::Idle => self.silent(&[]),
            Attack::Begun => self.silent(&BEGUN),
            Attack::Unfinished => self.repeat(|| self.unfinished()),
            Attack::Strangers => self.repeat(|| self.stranger()),
            Attack::SlowHeads => self.slow(b"GET /v1/networks HTTP/1.1\r\nhost: localhost\r\nx: "),
            Attack::SlowBodies => self.slow(
                b"POST /v1/apply HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2000000\r\n\r\n{\"x",
            ),
            Attack::LargeBodies => {
                let request = https::request("POST /v1/apply", &vec![b' '; LARGE], true);
                self.repeat(|| self.send(&request));
            }
            Attack::DryRuns => {
                let request = https::request("POST /v1/apply", &tenant.documents, true);
                self.repeat(|| self.send(&request));
            }
            Attack::Queries => self.many(queries, true),
            Attack::Traces => self.many(|_| https::request("POST /v1/trace", &tenant.trace, false), true),
            Attack::Deaf => self.many(queries, false),
            Attack::Streams => self.streams(),
        }
    }

    /// Opens connections that say no more than this, and replaces those that the daemon closes.
    fn silent(&self, words: &[u8]) {
        let mut open: Vec<TcpStream> = Vec::new();
        while self.goes_on() {
            open.retain(|mut stream| {
                let nothing = stream.read(&mut [0; 64]);
                matches!(nothing, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            });
            while open.len() < SILENT && self.goes_on() {
                let opened = https::connect(self.address()).and_then(|mut stream| {
                    stream.write_all(words)?;
                    stream.set_nonblocking(true)?;
                    Ok(stream)
                });
                let Ok(stream) = opened else { break };
                open.push(stream);
                self.count(1);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Leaves a handshake when the server has answered, which is most of the server's work.
    fn unfinished(&self) -> io::Result<u64> {
        let mut stream = https::connect(self.address())?;
        let mut session = https::session(&self.attackers.strangers[1])?;
        session.write_tls(&mut stream)?;
        stream.read_exact(&mut [0])?;
        Ok(1)
    }

    fn stranger(&self) -> io::Result<u64> {
        for config in &self.attackers.strangers {
            // The daemon refuses the certificate when the client's handshake is complete.
            let _ = https::tls(self.address(), config).and_then(|mut stream| stream.read(&mut [0; 64]));
        }
        Ok(2)
    }

    fn tls(&self) -> io::Result<Tls> {
        https::tls(self.address(), &self.tenant().config)
    }

    fn send(&self, request: &[u8]) -> io::Result<u64> {
        https::ask(self.tls()?, request).map(|_| 1)
    }

    /// Requests that never end, a byte at a time.
    fn slow(&self, beginning: &[u8]) {
        let mut open: Vec<Tls> = Vec::new();
        while self.goes_on() {
            open.retain_mut(|stream| stream.write_all(b"a").and_then(|()| stream.flush()).is_ok());
            while open.len() < OF_A_TENANT && self.goes_on() {
                let begun = self.tls().and_then(|mut stream| {
                    stream.write_all(beginning)?;
                    Ok(stream)
                });
                let Ok(stream) = begun else { break };
                open.push(stream);
                self.count(1);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// As many connections as a tenant gets, each with many requests at once.
    fn many(&self, request: impl Fn(usize) -> Vec<u8>, reads: bool) {
        let mut all = Vec::new();
        (0..PIPELINED).for_each(|n| all.extend(request(n)));
        let mut open: Vec<Tls> = Vec::new();
        while self.goes_on() {
            while open.len() < OF_A_TENANT && self.goes_on() {
                let Ok(mut stream) = self.tls() else { break };
                if stream.write_all(&all).and_then(|()| stream.flush()).is_err() {
                    break;
                }
                let _ = stream.get_ref().set_nonblocking(true);
                open.push(stream);
                self.count(PIPELINED as u64);
            }
            if !reads {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            open.retain_mut(|stream| self.is_open(stream, &all));
        }
    }

    /// Reads what has arrived; when nothing has, sends more. Whether the connection is still open.
    fn is_open(&self, stream: &mut Tls, more: &[u8]) -> bool {
        let mut buffer = [0; 16_384];
        match stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // What does not fit is cut, so the daemon closes this connection and another is opened.
                let sent = stream.write(more);
                sent.is_ok_and(|count| {
                    self.count((count / (more.len() / PIPELINED).max(1)) as u64);
                    count == more.len()
                })
            }
            Err(_) => false,
        }
    }

    /// All streams that a tenant gets, opened again and again.
    fn streams(&self) {
        let capture = format!("GET /v1/capture?network={}", self.tenant().name);
        let lines = ["GET /v1/events?follow=true", &capture];
        while self.goes_on() {
            let mut open: Vec<Tls> = Vec::new();
            for n in 0..STREAMS {
                let opened = self.tls().and_then(|mut stream| {
                    stream.write_all(&https::request(lines[n % 2], b"", false))?;
                    stream.read_exact(&mut [0])?;
                    Ok(stream)
                });
                open.extend(opened);
                self.count(1);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
