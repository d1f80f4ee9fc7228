//! `hueplane upgrade`: another program takes the running daemon's place; networks stay.
//!
//! Flow: the daemon's process → its options, checked → **start** → the new daemon prepares what it can, stops the old
//! one, and adopts namespaces and virtual ports (ADR 0037). Everything that can be refused is refused before the old
//! daemon is stopped. The program that ran is kept open, so that it can be started again even if its file was replaced.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser;
use hueplaned::api::Summary;
use hueplaned::client::Client;
use hueplaned::options;
use serde::Serialize;

use super::client;
use super::up::{Started, start};
use crate::cli::{Cli, Command as CliCommand, Connection, Up, Upgrade};
use crate::failure::Failure;
use crate::print::{count, result};

/// What follows the path of a program whose file was replaced or deleted, in `/proc/PID/exe`.
const DELETED: &[u8] = b" (deleted)";

/// The result.
#[derive(Serialize)]
struct Upgraded {
    /// Version of the daemon before.
    from: String,
    /// Version of the daemon now.
    to: String,
    /// Its process id.
    pid: u32,
    /// Its program.
    program: PathBuf,
    /// Its networks.
    networks: Summary,
    /// Time in which neither daemon had the ports open, as the new one measured it. If it does not say: time from the last answer of the daemon
    /// before until the new one was ready.
    interrupted_ms: u64,
}

/// Runs the command.
pub fn upgrade(args: &Upgrade, connection: &Connection) -> Result<(), Failure> {
    if connection.server.is_some() {
        return Err(Failure::Usage("upgrade: --server: works only on the daemon's own machine".to_owned()));
    }
    let client = client(connection)?;
    let status = client.status()?;
    let refused = |why: &str| Failure::Input(format!("{}: not upgraded: {why}", client.target()));
    let pid = status.pid.ok_or_else(|| refused("the daemon does not tell you its process id"))?;
    if status.pending.is_some() {
        return Err(refused(
            "a change waits for its confirmation, and a restart undoes it: use `hueplane confirm` or `hueplane rollback` \
             first",
        ));
    }
    let old = Process::read(pid).map_err(|why| refused(&why))?;
    let program = args.program.as_ref().unwrap_or(&old.path);
    let program = std::path::absolute(program)
        .map_err(|error| Failure::Input(format!("{}: cannot be found: {error}", program.display())))?;
    let to = version(&program)?;
    let _ = ctrlc::set_handler(|| {}); // between the two daemons, an interrupt would leave none

    let started = old.start(&program, true, &client);
    let Started { child, interrupted, .. } = started.map_err(|failure| old.restart(pid, failure, &client))?;
    let status = client.status()?;
    let without_daemon = u64::try_from(interrupted.as_millis()).unwrap_or(u64::MAX);
    let interrupted_ms = status.took_over_ms.unwrap_or(without_daemon);
    let done = Upgraded {
        from: old.version,
        to,
        pid: child.id(),
        program,
        networks: status.networks,
        interrupted_ms,
    };
    result(args.output.format, &done, || {
        format!(
            "the daemon was upgraded from {} to {}, process {}; {}; in software nothing was forwarded for at most {} ms\n",
            done.from,
            done.to,
            done.pid,
            staying(done.networks.total),
            done.interrupted_ms
        )
    })
}

/// How many networks stay, in words.
fn staying(networks: u64) -> String {
    format!("{} {}", count(networks, "network"), if networks == 1 { "stays" } else { "stay" })
}

/// The daemon that runs, as far as another is to be like it.
struct Process {
    up: Up,
    environment: HashMap<OsString, OsString>,
    /// Its working directory, which relative paths in its options start from.
    directory: PathBuf,
    /// The path of its program; another program may be there by now.
    path: PathBuf,
    /// Its program.
    program: File,
    version: String,
}

impl Process {
    /// Reads the options of a process; the error says why it cannot be upgraded.
    fn read(pid: u32) -> Result<Self, String> {
        let proc = Path::new("/proc").join(pid.to_string());
        let failed = |error: std::io::Error| format!("{}: cannot be read: {error}", proc.display());
        for (kind, option) in [("net", "--net"), ("mnt", "--mount")] {
            let of = |proc: &Path| fs::read_link(proc.join("ns").join(kind));
            if of(&proc).map_err(failed)? != of(Path::new("/proc/self")).map_err(failed)? {
                return Err(format!(
                    "the daemon runs in another namespace: use `nsenter {option} --target {pid} hueplane upgrade`"
                ));
            }
        }
        let words = |file: &str| -> Result<Vec<OsString>, String> {
            let bytes = fs::read(proc.join(file)).map_err(failed)?;
            let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
            Ok(words.map(|word| OsStr::from_bytes(word).to_owned()).collect())
        };
        let environment: HashMap<OsString, OsString> = words("environ")?
            .iter()
            .filter_map(|word| {
                let at = word.as_bytes().iter().position(|byte| *byte == b'=')?;
                let (name, value) = word.as_bytes().split_at(at);
                Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
            })
            .collect();
        // systemd.exec(5): names the process that systemd itself has started.
        if environment.get(OsStr::new("SYSTEMD_EXEC_PID")).is_some_and(|value| *value == *pid.to_string()) {
            return Err(
                "systemd started the daemon: use `systemctl restart` with the name of its service".to_owned()
            );
        }
        let line = words("cmdline")?;
        let up = match Cli::try_parse_from(&line).map(|cli| cli.command) {
            Ok(CliCommand::Up(up)) if !up.until_eof => up,
            Ok(CliCommand::Up(_)) => {
                return Err("the daemon ends with the program that started it".to_owned());
            }
            _ => {
                return Err(format!(
                    "process {pid} was not started by `hueplane up` of this version: restart it as it was started, after \
                     `hueplane down --keep`"
                ));
            }
        };
        let directory = fs::read_link(proc.join("cwd")).map_err(failed)?;
        let exe = proc.join("exe");
        let path = fs::read_link(&exe).map_err(failed)?.into_os_string().into_vec();
        let path = path.strip_suffix(DELETED).unwrap_or(&path);
        let program = File::open(&exe).map_err(failed)?;
        let version = version(&exe).map_err(|failure| failure.to_string())?;
        // Only what makes it like the one before: networks come from the store.
        let up = Up { files: Vec::new(), empty: false, take_over: false, ..up };
        Ok(Self { up, environment, directory, path: OsStr::from_bytes(path).into(), program, version })
    }

    /// Starts a daemon with the same options.
    fn start(&self, program: &Path, take_over: bool, client: &Client) -> Result<Started, Failure> {
        let variable =
            self.environment.get(OsStr::new(options::RUN_DIR_VARIABLE)).filter(|value| !value.is_empty());
        let given = self.up.places.run_dir.as_deref();
        let run_dir = self.directory.join(options::run_dir(given.or(variable.map(Path::new))));
        let up = Up { take_over, ..self.up.clone() };
        start(program, &up, &run_dir, client, |command| {
            command.env_clear().envs(&self.environment).current_dir(&self.directory);
        })
    }

    /// Starts the program that ran before, unless it runs; returns what to say.
    fn restart(&self, pid: u32, failure: Failure, client: &Client) -> Failure {
        if client.status().is_ok_and(|status| status.pid == Some(pid)) {
            return Failure::Broken(format!("{failure}\nprocess {pid} keeps running"));
        }
        let program = format!("/proc/self/fd/{}", self.program.as_raw_fd());
        match self.start(Path::new(&program), false, client) {
            Ok(Started { child, .. }) => Failure::Broken(format!(
                "{failure}\nthe program that ran before was started again, process {}",
                child.id()
            )),
            Err(again) => Failure::Broken(format!(
                "{failure}\nand the program that ran before cannot be started again: {again}\nno daemon runs; networks' \
                 namespaces are still there: start one with `hueplane up --detach`"
            )),
        }
    }
}

/// The version of a program of ours.
fn version(program: &Path) -> Result<String, Failure> {
    let bad = |why: String| {
        Failure::Input(format!("{}: {why}; name the new program with --program", program.display()))
    };
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| bad(format!("cannot be run: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("hueplane ").filter(|_| output.status.success());
    version.map(str::to_owned).ok_or_else(|| bad("is not hueplane".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_stays_and_others_stay() {
        assert_eq!([0, 1, 2].map(staying), ["0 networks stay", "1 network stays", "2 networks stay"]);
    }
}
