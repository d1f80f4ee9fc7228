//! `hueplane exec`: runs a command in a network's namespace, within its limits.
//!
//! The daemon gives the namespace and cgroup. This process enters them itself, so that the command has the
//! user's terminal, identity and environment.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use hue_host::{HostError, Namespace, exec};
use nix::errno::Errno;

use super::client;
use crate::cli::{Connection, Exec};
use crate::failure::Failure;

/// Exit code of shells if a command cannot be run.
const NOT_RUN: u8 = 126;
/// Exit code of shells if a command does not exist.
const NOT_FOUND: u8 = 127;

/// Replaces this process by the command. Returns only if the command cannot be run.
pub fn exec(args: &Exec, connection: &Connection) -> Result<(), Failure> {
    if connection.server.is_some() {
        return Err(Failure::Usage("exec: works only on the daemon's machine, not with --server".to_owned()));
    }
    let client = client(connection)?;
    let place = client.exec_info(&args.network)?;
    drop(client);
    let failed = |what: String| {
        let help = if nix::unistd::geteuid().is_root() { "" } else { ": needs root" };
        Failure::Exec(format!("exec {}: {what}{help}", args.network), NOT_RUN)
    };
    for folder in &place.cgroups {
        let file = Path::new(folder).join("cgroup.procs");
        // `0` means the writing process.
        fs::write(&file, "0").map_err(|error| failed(format!("{}: {error}", file.display())))?;
    }
    let namespace = Namespace::open(&place.namespace).map_err(|error| failed(error.to_string()))?;
    let entered = namespace.identity().map_err(|error| failed(error.to_string()))?;
    if entered != (place.device, place.inode) {
        return Err(failed(HostError::Replaced(place.namespace).to_string()));
    }
    let argv: Vec<OsString> = args.command.iter().map(OsString::from).collect();
    let error = exec::run_here(&namespace, None, &argv);
    let code = if error.errno() == Some(Errno::ENOENT) { NOT_FOUND } else { NOT_RUN };
    Err(Failure::Exec(format!("exec {}: {error}", args.network), code))
}
