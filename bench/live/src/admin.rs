//! How long an administrator waits for the API while people without rights do to it what they can.
//!
//! A daemon with TLS and a few dozen networks; an administrator asks for its status, for all networks, and for a dry run, over
//! the Unix socket and over TLS, a new connection for each request, as the command line does.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::{Cli, Daemon, Lab};
use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::Settings;
use crate::attack::{ADDRESSES, Attack, Attackers, Running, Tenant};
use crate::https;
use crate::report::{Report, Section, round};

/// Networks on the node; the first ones belong to the tenants that attack.
const NETWORKS: u8 = 30;
/// Static routes of each of these.
const ROUTES: u16 = 100;
/// Requests of each kind and way in a round.
const REQUESTS: usize = 15;
/// Before the administrator's first request: the attack is at full strength.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// Bytes of documents in a tenant's largest dry run; in JSON they are a little more.
const DOCUMENTS: usize = (2 << 20) - 100_000;
/// The goal.
const P99_MAX_MS: f64 = 100.0;

/// The ways to the daemon.
const WAYS: [&str; 2] = ["Unix socket", "TLS"];
/// What the administrator asks.
const KINDS: [&str; 3] = ["status", "networks", "dry run"];

/// A daemon, those who attack it, and the administrator.
struct World {
    lab: Lab,
    _daemon: Daemon,
    socket: PathBuf,
    admin: Arc<ClientConfig>,
    attackers: Arc<Attackers>,
    /// The requests of each kind.
    requests: [Vec<u8>; 3],
}

/// Waiting times of a kind and way, seconds; failures are counted.
#[derive(Default, Clone)]
struct Waits {
    seconds: Vec<f64>,
    failed: usize,
}

impl Waits {
    /// The value that this share of all requests does not exceed, milliseconds.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN) * 1e3
    }

    fn add(&mut self, other: &Self) {
        self.seconds.extend(&other.seconds);
        self.failed += other.failed;
    }
}

/// Waits by attack, way and kind, and the attackers' work a second.
type Figures = Vec<([[Waits; 3]; 2], f64)>;

/// Measures.
///
/// # Errors
/// When certificates cannot be read, or the goal is missed.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let world = World::new()?;
    let attacks: Vec<(Attack, &str)> = Attack::LIST
        .into_iter()
        .filter(|(attack, name)| *attack == Attack::Quiet || settings.wants(name))
        .collect();
    let mut figures: Figures = vec![Default::default(); attacks.len()];
    for done in 0..settings.rounds {
        for step in 0..attacks.len() {
            let at = if done % 2 == 0 { step } else { attacks.len() - 1 - step };
            let (attack, name) = attacks[at];
            let (waits, work) = world.measure(attack);
            for (sum, more) in figures[at].0.as_flattened_mut().iter_mut().zip(waits.as_flattened()) {
                sum.add(more);
            }
            figures[at].1 += work / settings.rounds as f64;
            let p99 = |way: &[Waits; 3]| together(way).quantile(0.99);
            eprintln!(
                "  round {} of {}: {name}: p99 {:.1} and {:.1} ms",
                done + 1,
                settings.rounds,
                p99(&waits[0]),
                p99(&waits[1])
            );
        }
    }
    report.push(overview(&attacks, &figures));
    report.push(by_kind(&attacks, &figures));
    let worst = figures
        .iter()
        .flat_map(|(ways, _)| ways.iter().map(|way| together(way).quantile(0.99)))
        .fold(0.0, f64::max);
    let failed: usize =
        figures.iter().flat_map(|(ways, _)| ways.as_flattened()).map(|waits| waits.failed).sum();
    if failed > 0 {
        return Err(format!("{failed} requests of the administrator were not answered"));
    }
    if worst > P99_MAX_MS {
        Err(format!("p99 of {worst:.0} ms: the goal is {P99_MAX_MS} ms"))
    } else {
        Ok(())
    }
}

/// All kinds of requests together.
fn together(kinds: &[Waits; 3]) -> Waits {
    let mut sum = Waits::default();
    kinds.iter().for_each(|waits| sum.add(waits));
    sum
}

/// Quantiles as values of a row.
fn quantiles(waits: &Waits) -> [Value; 3] {
    [0.5, 0.99, 1.0].map(|share| round(waits.quantile(share), 1))
}

fn overview(attacks: &[(Attack, &str)], figures: &Figures) -> Section {
    let mut section = Section::new(
        "an administrator's waiting time, ms",
        &[
            "attack",
            "Unix p50",
            "Unix p99",
            "Unix max",
            "TLS p50",
            "TLS p99",
            "TLS max",
            "not answered",
            "attackers' work/s",
        ],
    );
    for ((_, name), (ways, work)) in attacks.iter().zip(figures) {
        let mut row = vec![json!(name)];
        ways.iter().for_each(|way| row.extend(quantiles(&together(way))));
        row.push(json!(ways.as_flattened().iter().map(|waits| waits.failed).sum::<usize>()));
        row.push(round(*work, 0));
        section.row(row);
    }
    section.note(format!(
        "{NETWORKS} networks, of which {ADDRESSES} belong to attackers and have {ROUTES} static routes each. A third of the requests each \
         is GET /v1/status, GET /v1/networks and a dry run of one network; each is on a connection of its own, and the time includes \
         connecting and the TLS handshake. Attackers come from {ADDRESSES} addresses and run at the lowest priority of the same machine. \
         Their work is connections, handshakes or requests."
    ));
    section
}

fn by_kind(attacks: &[(Attack, &str)], figures: &Figures) -> Section {
    let mut section = Section::new(
        "by kind of request, ms",
        &["attack", "way", "request", "p50", "p99", "max", "requests"],
    );
    for ((_, name), (ways, _)) in attacks.iter().zip(figures) {
        for (way, kinds) in WAYS.iter().zip(ways) {
            for (kind, waits) in KINDS.iter().zip(kinds) {
                let mut row = vec![json!(name), json!(way), json!(kind)];
                row.extend(quantiles(waits));
                row.push(json!(waits.seconds.len()));
                section.row(row);
            }
        }
    }
    section
}

impl World {
    fn new() -> Result<Self, String> {
        let lab = Lab::new(2);
        let mut documents = vec![lab.node_document("")];
        let mut own = Vec::new();
        for n in 1..=NETWORKS {
            let document = lab.pair_document(&format!("n{n}"), n, n, [0, 1]);
            let attacks = n <= ADDRESSES;
            let text = if attacks {
                document.clone().with("routes", &routes(n, ROUTES)).yaml()
            } else {
                document.yaml()
            };
            own.push((document, text.clone()));
            documents.push(text);
        }
        let (certificates, other) = (lab.folder().join("certs"), lab.folder().join("other"));
        let cli = Cli::new(&lab);
        let (folder, others) = (certificates.to_string_lossy(), other.to_string_lossy());
        for folder in [&folder, &others] {
            let _ = cli.run(&["certs", "init", folder, "--for", "localhost"]).expect_ok();
        }
        for (document, _) in own.iter().take(usize::from(ADDRESSES)) {
            let _ = cli.run(&["certs", "add", &folder, &document.name, "--role", "tenant"]).expect_ok();
        }
        let file = lab.folder().join("hueplane.yaml");
        std::fs::write(&file, all(&documents)).map_err(|error| error.to_string())?;
        let [ca, cert, key] = ["ca.pem", "daemon.pem", "daemon.key"].map(|name| format!("{folder}/{name}"));
        let listen = format!("0.0.0.0:{}", https::PORT);
        let options = [
            "-f",
            &file.to_string_lossy(),
            "--listen",
            &listen,
            "--tls-ca",
            &ca,
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
        ];
        let daemon = Daemon::start_with(&lab, &cli, &options);
        let tenants = own.iter().take(usize::from(ADDRESSES)).zip(1..);
        let tenants: Result<Vec<Tenant>, String> =
            tenants.map(|((document, _), n)| tenant(&certificates, document, n)).collect();
        let strangers =
            [https::config(&certificates, Some((&other, "admin")))?, https::config(&certificates, None)?];
        let (_, last) = &own[usize::from(NETWORKS) - 1];
        let get = |path: &str| https::request(&format!("GET {path}"), b"", true);
        Ok(Self {
            socket: cli.socket(),
            admin: https::config(&certificates, Some((&certificates, "admin")))?,
            attackers: Arc::new(Attackers { strangers, tenants: tenants? }),
            requests: [
                get("/v1/status"),
                get("/v1/networks"),
                https::request("POST /v1/apply", &dry_run(last), true),
            ],
            lab,
            _daemon: daemon,
        })
    }

    /// A round of one attack.
    fn measure(&self, attack: Attack) -> ([[Waits; 3]; 2], f64) {
        let running = Running::start(attack, &self.attackers, self.lab.node());
        std::thread::sleep(if attack == Attack::Quiet { Duration::ZERO } else { WARM_UP });
        let (before, began) = (running.done(), Instant::now());
        let mut waits: [[Waits; 3]; 2] = Default::default();
        self.lab.node().inside(|| {
            for n in 0..REQUESTS * KINDS.len() * WAYS.len() {
                let (way, kind) = (n % WAYS.len(), n / WAYS.len() % KINDS.len());
                let start = Instant::now();
                let answer = self.ask(way, &self.requests[kind]);
                let waits = &mut waits[way][kind];
                waits.seconds.push(start.elapsed().as_secs_f64());
                if !matches!(answer, Ok((200, _))) {
                    eprintln!("  {} over {}: {answer:?}", KINDS[kind], WAYS[way]);
                    waits.failed += 1;
                }
            }
        });
        let work = (running.done() - before) as f64 / began.elapsed().as_secs_f64();
        drop(running);
        // What the attack left in queues is no part of the next one.
        std::thread::sleep(Duration::from_millis(500));
        (waits, work)
    }

    fn ask(&self, way: usize, request: &[u8]) -> io::Result<(u16, usize)> {
        if way == 0 {
            https::ask(https::unix(&self.socket)?, request)
        } else {
            https::ask(https::tls(Ipv4Addr::LOCALHOST, &self.admin)?, request)
        }
    }
}

/// Routes of a network over its second port, as flow YAML.
fn routes(n: u8, count: u16) -> String {
    let route = |i: u16| format!("{{to: 10.200.{}.{}/32, via: 10.{n}.2.2}}", i >> 8, i & 255);
    format!("[{}]", (0..count).map(route).collect::<Vec<_>>().join(", "))
}

/// The body of a dry run.
fn dry_run(text: &str) -> Vec<u8> {
    json!({"sources": [{"name": "a.yaml", "text": text}], "dry_run": true}).to_string().into_bytes()
}

fn tenant(certificates: &Path, document: &hue_e2e::Document, n: u8) -> Result<Tenant, String> {
    // As many routes as fit.
    let each = routes(n, 1_000).len() / 1_000 + 1;
    let documents =
        dry_run(&document.clone().with("routes", &routes(n, (DOCUMENTS / each).min(65_535) as u16)).yaml());
    let frame: String =
        [2, 0x72, n, 0, n, 1, 2, 0, 0, 0, 0, 1, 8, 0].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Tenant {
        name: document.name.clone(),
        config: https::config(certificates, Some((certificates, &document.name)))?,
        documents,
        trace: json!({"port": "p0", "frame": frame}).to_string().into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        let waits = Waits { seconds: (1..=200).map(|n| f64::from(n) / 1e3).collect(), failed: 0 };
        assert_eq!([0.5, 0.99, 1.0].map(|share| waits.quantile(share)), [100.0, 198.0, 200.0]);
        assert_eq!(Waits { seconds: vec![0.25], failed: 0 }.quantile(0.5), 250.0);
    }
}
