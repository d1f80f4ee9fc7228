//! How a daemon is started: what the command line, or a program that runs a daemon inside itself, says.
//!
//! Everything here is of the process; what the node and its networks are like is in documents.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hue_card::Images;
use hue_host::control::Owner;
use hue_substrate::scheduling::Scheduling;

use crate::tls::TlsFiles;

/// Environment variable that names the run directory.
pub const RUN_DIR_VARIABLE: &str = "HUEPLANE_RUN_DIR";
/// Environment variable that names the state directory.
pub const STATE_DIR_VARIABLE: &str = "HUEPLANE_STATE_DIR";
/// Environment variable that names a folder with images of the card.
pub const IMAGES_VARIABLE: &str = "HUEPLANE_IMAGES";
/// Where socket and lock are unless said otherwise.
pub const RUN_DIR: &str = "/run/hueplane";
/// Where desired state is kept unless said otherwise.
pub const STATE_DIR: &str = "/var/lib/hueplane";
/// Name of the group whose members may use the socket.
pub const GROUP: &str = "hueplane";

/// The API over TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// Where.
    pub address: SocketAddr,
    /// Certificates of the mutual TLS.
    pub tls: TlsFiles,
}

/// How threads that forward packets compete for processors, as the command line says it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, clap::ValueEnum)]
pub enum SchedulingName {
    /// With priority over ordinary programs, which keep at least a sixteenth of each processor
    #[default]
    Realtime,
    /// Like ordinary programs
    Fair,
}

impl From<SchedulingName> for Scheduling {
    fn from(name: SchedulingName) -> Self {
        match name {
            SchedulingName::Realtime => Self::RealTime,
            SchedulingName::Fair => Self::Fair,
        }
    }
}

/// How to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Directory of the socket and the lock.
    pub run_dir: PathBuf,
    /// Directory of the store.
    pub state_dir: PathBuf,
    /// Beginning of the names of the networks' namespaces.
    pub namespace_prefix: String,
    /// The API over TCP too.
    pub listen: Option<Listen>,
    /// Worker threads; 0 chooses.
    pub workers: usize,
    /// Each worker stays on a processor of its own.
    pub pin: bool,
    /// How threads that forward packets compete for processors.
    pub scheduling: Scheduling,
    /// Give up all rights that the daemon does not need, for good. For a process that is nothing but the daemon.
    pub least_rights: bool,
    /// Write what happens to standard error.
    pub log: bool,
    /// Begin with nothing: what is stored is put aside, and networks that run are removed.
    pub empty: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            run_dir: run_dir(None),
            state_dir: state_dir(None),
            namespace_prefix: hue_host::control::PREFIX.to_owned(),
            listen: None,
            workers: 0,
            pin: false,
            scheduling: Scheduling::Fair,
            least_rights: false,
            log: false,
            empty: false,
        }
    }
}

impl Options {
    /// Whose namespaces and cgroups a daemon's are: see [`owner_name`].
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { prefix: self.namespace_prefix.clone(), node: owner_name(&self.state_dir) }
    }
}

/// The run directory: `given`, or the variable, or the usual one.
#[must_use]
pub fn run_dir(given: Option<&Path>) -> PathBuf {
    directory(given, RUN_DIR_VARIABLE, RUN_DIR)
}

/// The state directory: `given`, or the variable, or the usual one.
#[must_use]
pub fn state_dir(given: Option<&Path>) -> PathBuf {
    directory(given, STATE_DIR_VARIABLE, STATE_DIR)
}

/// Where images of the card are: in the folder that the variable names, or beside this program.
#[must_use]
pub fn images() -> Images {
    match env::var_os(IMAGES_VARIABLE).filter(|value| !value.is_empty()) {
        Some(folder) => Images::in_folders(vec![folder.into()]),
        None => Images::beside(&env::current_exe().unwrap_or_default()),
    }
}

fn directory(given: Option<&Path>, variable: &str, usual: &str) -> PathBuf {
    let named = || env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    given.map(Path::to_owned).or_else(named).unwrap_or_else(|| usual.into())
}

/// By what name namespaces and cgroups of a daemon with this state directory are marked as its own: the directory is what
/// stays over restarts, and no two daemons share one.
#[must_use]
pub fn owner_name(state_dir: &Path) -> String {
    let path = std::path::absolute(state_dir).unwrap_or_else(|_| state_dir.to_owned());
    // The directory itself is not looked at: it may not be there yet, or be gone.
    let path: PathBuf = path.components().collect();
    if path == Path::new(STATE_DIR) {
        return "main".to_owned();
    }
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_apart_by_their_state_directories() {
        assert_eq!(owner_name(Path::new(STATE_DIR)), "main");
        assert_eq!(owner_name(Path::new("/var/lib/./hueplane/")), "main");
        assert_eq!(owner_name(Path::new("/a/b")), owner_name(Path::new("/a//b/")));
        assert_ne!(owner_name(Path::new("/a/b")), owner_name(Path::new("/a/c")));
    }
}
