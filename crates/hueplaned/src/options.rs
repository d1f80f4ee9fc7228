//! Options of a daemon, from the command line or from a program that contains a daemon.
//!
//! The options concern the process. Documents describe the node and its networks.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hue_card::Images;
use hue_host::control::Owner;
use hue_substrate::scheduling::Scheduling;

use crate::tls::TlsFiles;

pub use crate::node::{PACKET_SLOTS_MAX, PACKET_SLOTS_MIN};
pub use hue_soft::live::WORKERS_MAX;

/// Environment variable that names the run directory.
pub const RUN_DIR_VARIABLE: &str = "HUEPLANE_RUN_DIR";
/// Environment variable that names the state directory.
pub const STATE_DIR_VARIABLE: &str = "HUEPLANE_STATE_DIR";
/// Environment variable that names a folder with images of the card.
pub const IMAGES_VARIABLE: &str = "HUEPLANE_IMAGES";
/// Default directory of socket and lock.
pub const RUN_DIR: &str = "/run/hueplane";
/// Default directory of the desired state.
pub const STATE_DIR: &str = "/var/lib/hueplane";
/// Name of the group whose members may use the socket.
pub const GROUP: &str = "hueplane";

/// The API over TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The address.
    pub address: SocketAddr,
    /// Certificates of the mutual TLS.
    pub tls: TlsFiles,
}

/// Scheduling of the threads that forward packets, as an option of the command line.
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

/// Options of a daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Directory of the socket and the lock.
    pub run_dir: PathBuf,
    /// Directory of the store.
    pub state_dir: PathBuf,
    /// Prefix of the networks' namespace names.
    pub namespace_prefix: String,
    /// The API over TCP, if it is offered.
    pub listen: Option<Listen>,
    /// Number of worker threads; 0 selects it automatically.
    pub workers: usize,
    /// Whether each worker is pinned to a processor.
    pub pin: bool,
    /// Scheduling of the threads that forward packets.
    pub scheduling: Scheduling,
    /// Most packet slots of a worker; `None` for as many as the ports need.
    pub packet_slots: Option<u32>,
    /// Whether to give up, permanently, all rights that the daemon does not need; for a process that only runs the
    /// daemon.
    pub least_rights: bool,
    /// Whether to write the log to standard error.
    pub log: bool,
    /// The file that is standard error, if the daemon limits its size: see [`crate::log`].
    pub log_file: Option<PathBuf>,
    /// Whether to start with nothing: the stored state is kept under another name, and running networks are removed.
    pub empty: bool,
    /// Whether to take the place of the daemon that runs: once everything else is prepared, it is stopped, and its
    /// networks are adopted.
    pub take_over: bool,
    /// Whether a process keeps the descriptors of virtual ports while no daemon runs; the program must call
    /// [`hue_host::holder::run_if_asked`] first.
    pub hold: bool,
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
            packet_slots: None,
            least_rights: false,
            log: false,
            log_file: None,
            empty: false,
            take_over: false,
            hold: false,
        }
    }
}

impl Options {
    /// The owner of the daemon's namespaces and cgroups: see [`owner_name`].
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { prefix: self.namespace_prefix.clone(), node: owner_name(&self.state_dir) }
    }
}

/// The run directory: `given`, or the variable, or the default.
#[must_use]
pub fn run_dir(given: Option<&Path>) -> PathBuf {
    directory(given, RUN_DIR_VARIABLE, RUN_DIR)
}

/// The state directory: `given`, or the variable, or the default.
#[must_use]
pub fn state_dir(given: Option<&Path>) -> PathBuf {
    directory(given, STATE_DIR_VARIABLE, STATE_DIR)
}

/// Folders of the card's images: the folder that the variable names, or those beside this program.
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

/// The name that marks namespaces and cgroups as those of the daemon with this state directory. The directory stays
/// the same over restarts, and no two daemons share one.
#[must_use]
pub fn owner_name(state_dir: &Path) -> String {
    let path = std::path::absolute(state_dir).unwrap_or_else(|_| state_dir.to_owned());
    // Only the path counts: the directory may not exist yet, or no longer exist.
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
