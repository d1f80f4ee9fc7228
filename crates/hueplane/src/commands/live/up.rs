//! `hueplane up`: starts the daemon, in the foreground or background, with an initial configuration.
//!
//! In the foreground, the daemon runs in this process, and a thread applies the files through its API, as any
//! client would. In the background, this program starts itself again, waits until the daemon answers, and
//! applies the files. If they are rejected, it stops the daemon, so that `up` is all or nothing.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hueplaned::api::{ApplyRequest, ApplyResult, DownOptions, Health, SourceText, TurnQuery};
use hueplaned::client::{Client, ClientError, socket_in};
use hueplaned::options::{self, Listen, Options};
use hueplaned::tls::TlsFiles;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::change::{applied_text, warn};
use super::{Painter, host_name, sources};
use crate::cli::{Connection, Places, Up};
use crate::failure::Failure;
use crate::print;
use crate::topo::own_part;

/// Longest time until a daemon answers: it may have many networks to set up.
const START_MAX: Duration = Duration::from_secs(120);
/// Longest time from a lost connection until a daemon that gives up has ended.
const END_MAX: Duration = Duration::from_secs(5);
/// Interval of checks whether it answers.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs the command.
pub fn up(args: &Up, connection: &Connection) -> Result<(), Failure> {
    if connection.socket.is_some() || connection.server.is_some() {
        return Err(Failure::Usage(
            "up: starts a new daemon; use --run-dir to choose its directory".to_owned(),
        ));
    }
    let sources = own_part(sources(&args.files)?, || args.node.node.clone().map_or_else(host_name, Ok))?;
    check(&sources)?;
    let run_dir = options::run_dir(args.places.run_dir.as_deref());
    let client = Client::unix(socket_in(&run_dir))?;
    if let (false, Ok(status)) = (args.take_over, client.status()) {
        let pid = status.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
        return Err(Failure::NoDaemon(format!(
            "{}: a daemon is already running{pid}: change it with `hueplane apply`, or stop it with `hueplane down`",
            client.target()
        )));
    }
    if args.detach {
        run_background(args, &run_dir, &client, sources)
    } else {
        run_foreground(args, client, sources)
    }
}

/// Detects errors before anything is started.
fn check(sources: &[SourceText]) -> Result<(), Failure> {
    if sources.is_empty() {
        return Ok(());
    }
    let source = |source: &SourceText| hue_intent::Source {
        name: source.name.clone(),
        bytes: source.text.clone().into(),
    };
    hue_intent::parse_part(sources.iter().map(source).collect())
        .map(drop)
        .map_err(|errors| Failure::Input(errors.to_string()))
}

/// Runs the daemon in this process; returns when it has stopped.
fn run_foreground(args: &Up, client: Client, sources: Vec<SourceText>) -> Result<(), Failure> {
    if args.until_eof {
        std::thread::spawn(|| {
            // The input itself does not matter, only its end.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = kill(Pid::this(), Signal::SIGTERM);
        });
    }
    let (refused, refusal) = mpsc::channel();
    if !sources.is_empty() {
        std::thread::spawn(move || {
            let applied =
                client.wait_ready(START_MAX).map_err(Failure::from).and_then(|_| apply(&client, sources));
            match applied {
                Ok(applied) => anstream::eprint!("{}", applied_text(&applied, &Painter::ask(&client))),
                Err(failure) => {
                    let _ = refused.send(failure);
                    let _ = kill(Pid::this(), Signal::SIGTERM);
                }
            }
        });
    }
    daemon(args)?;
    refusal.try_recv().map_or(Ok(()), Err)
}

/// Runs the daemon in its own process.
fn run_background(
    args: &Up,
    run_dir: &Path,
    client: &Client,
    sources: Vec<SourceText>,
) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(cannot_start)?;
    let mut started = start(&program, args, run_dir, client, |_| {})?;
    match if sources.is_empty() { Ok(None) } else { apply(client, sources).map(Some) } {
        Ok(applied) => {
            let text =
                applied.map_or_else(String::new, |applied| applied_text(&applied, &Painter::ask(client)));
            print::text(&format!(
                "{text}the daemon is running, process {}; its log is {}\n",
                started.child.id(),
                started.log.display()
            ))
        }
        Err(failure) => {
            stop_child(&mut started.child, client);
            Err(failure)
        }
    }
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::Broken(format!("the daemon cannot be started: {error}"))
}

/// A daemon in the background that answers.
pub(super) struct Started {
    pub child: Child,
    pub log: PathBuf,
    /// Time since another daemon answered for the last time.
    pub interrupted: Duration,
}

/// Starts a program as the daemon in the background, without the files of `args`, and waits until it answers.
///
/// # Errors
/// When it does not; then it has ended.
pub(super) fn start(
    program: &Path,
    args: &Up,
    run_dir: &Path,
    client: &Client,
    change: impl FnOnce(&mut Command),
) -> Result<Started, Failure> {
    // Absolute, because other processes read it.
    let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
    let log = run_dir.join(hueplaned::log::LOG);
    let failed = |source| Failure::Output { path: log.clone(), source };
    fs::create_dir_all(&run_dir).map_err(failed)?;
    let file = hueplaned::log::open(&log).map_err(failed)?;
    let said_before = file.metadata().map_err(failed)?.len();
    let errors = file.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments(args)).arg("--log-file").arg(&log);
    // Ctrl-C in this terminal must not reach it.
    command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
    change(&mut command);
    let mut child = command.spawn().map_err(cannot_start)?;
    match wait(&mut child, client, || log_text(&log, said_before)) {
        Ok(interrupted) => Ok(Started { child, log, interrupted }),
        Err(failure) => {
            stop_child(&mut child, client);
            Err(failure)
        }
    }
}

/// The arguments of the daemon's process.
fn arguments(args: &Up) -> Vec<OsString> {
    let mut list: Vec<OsString> = vec!["up".into(), "--workers".into(), args.workers.to_string().into()];
    let mut option = |name: &str, value: Option<OsString>| {
        list.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
    };
    let path = |path: &Option<PathBuf>| path.clone().map(OsString::from);
    option("--run-dir", path(&args.places.run_dir));
    option("--state-dir", path(&args.places.state_dir));
    option("--namespace-prefix", args.places.namespace_prefix.clone().map(OsString::from));
    option("--packet-slots", args.packet_slots.map(|slots| slots.to_string().into()));
    option("--listen", args.listen.listen.map(|address| address.to_string().into()));
    option("--tls-cert", path(&args.listen.tls_cert));
    option("--tls-key", path(&args.listen.tls_key));
    option("--tls-ca", path(&args.listen.tls_ca));
    list.extend(args.pin.then(|| "--pin".into()));
    list.extend(args.empty.then(|| "--empty".into()));
    list.extend(args.take_over.then(|| "--take-over".into()));
    let scheduling = args.scheduling.to_possible_value().map(|value| value.get_name().to_owned().into());
    list.extend(scheduling.into_iter().flat_map(|name: OsString| ["--scheduling".into(), name]));
    list
}

/// Waits until the daemon answers and has set up its stored networks. Returns for how long no daemon was ready.
fn wait(child: &mut Child, client: &Client, log_text: impl Fn() -> String) -> Result<Duration, Failure> {
    let deadline = Instant::now() + START_MAX;
    let mut ending = None;
    let mut without = Instant::now();
    loop {
        let asked = Instant::now();
        if let Ok(Some(status)) = child.try_wait() {
            let text = format!("the daemon stopped ({status}):\n{}", log_text());
            return Err(match status.code() {
                Some(3) => Failure::Input(text),
                Some(5) => Failure::NoDaemon(text),
                _ => Failure::Broken(text),
            });
        }
        match client.status() {
            // This one takes the place of the daemon that still answers.
            Ok(status) if status.pid != Some(child.id()) && Instant::now() < deadline => {
                without = asked;
                std::thread::sleep(POLL_INTERVAL);
            }
            Ok(status) if status.health != Health::Starting => return Ok(without.elapsed()),
            Ok(_) | Err(ClientError::NotRunning { .. }) if Instant::now() < deadline => {
                std::thread::sleep(POLL_INTERVAL);
            }
            // If it takes longer, it continues in the background.
            Ok(_) => return Ok(without.elapsed()),
            // A daemon that refuses to start closes its socket just before it ends: its own message says more.
            Err(ClientError::Connection { .. })
                if Instant::now() < *ending.get_or_insert(Instant::now() + END_MAX) =>
            {
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Stops a daemon whose start failed. Networks that an earlier daemon left stay as they are.
fn stop_child(child: &mut Child, client: &Client) {
    let ended = child.try_wait().is_ok_and(|status| status.is_some());
    // Another daemon may be running, which must not be stopped.
    let answers = || client.status().is_ok_and(|status| status.pid == Some(child.id()));
    if !(ended || answers() && client.down(&DownOptions { keep: true, ..DownOptions::default() }).is_ok()) {
        let _ = child.kill();
    }
    let _ = child.wait();
}

fn apply(client: &Client, sources: Vec<SourceText>) -> Result<ApplyResult, Failure> {
    let request = ApplyRequest { sources, prune: true, ..ApplyRequest::default() };
    let applied = client.apply(&request, TurnQuery::default())?;
    warn(&applied);
    Ok(applied)
}

/// The text in the log after the first `from` bytes.
fn log_text(log: &Path, from: u64) -> String {
    let mut bytes = fs::read(log).unwrap_or_default();
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
    String::from_utf8_lossy(&bytes.split_off(from)).trim_end().to_owned()
}

/// Runs the daemon until it is stopped.
fn daemon(args: &Up) -> Result<(), Failure> {
    let Places { run_dir, state_dir, namespace_prefix } = &args.places;
    let mut options = Options {
        run_dir: options::run_dir(run_dir.as_deref()),
        state_dir: options::state_dir(state_dir.as_deref()),
        workers: args.workers,
        pin: args.pin,
        scheduling: args.scheduling.into(),
        packet_slots: args.packet_slots,
        least_rights: true,
        log: true,
        log_file: args.log_file.clone(),
        empty: args.empty,
        take_over: args.take_over,
        // A daemon that ends with its caller is not followed by another.
        hold: !args.until_eof,
        ..Options::default()
    };
    if let Some(prefix) = namespace_prefix {
        options.namespace_prefix.clone_from(prefix);
    }
    let files = &args.listen;
    if let (Some(address), Some(certificate), Some(key), Some(ca)) =
        (files.listen, &files.tls_cert, &files.tls_key, &files.tls_ca)
    {
        let tls = TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() };
        options.listen = Some(Listen { address, tls });
    }
    Ok(hueplaned::run(options)?)
}
