//! Why the daemon does not start, or stops.

use std::io;
use std::path::PathBuf;

use hue_host::HostError;
use hue_routing::MonitorError;
use hue_soft::LiveError;
use thiserror::Error;

use crate::store::StoreError;
use crate::tls::TlsError;

/// Why the daemon does not start, or stops.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Another daemon uses the run directory.
    #[error(
        "{}: a daemon is running already{}: change it with `hueplane apply`, or stop it with `hueplane down`",
        lock.display(), .pid.map_or_else(String::new, |pid| format!(", process {pid}"))
    )]
    Running {
        /// The lock that it holds.
        lock: PathBuf,
        /// Its process id, if the lock has it.
        pid: Option<u32>,
    },
    /// The daemon that runs does not stop for this one.
    #[error("the daemon that runs cannot be replaced: {0}")]
    TakeOver(String),
    /// A privilege is missing; the caller's fault.
    #[error("missing capabilities: {0}; run as root")]
    Rights(String),
    /// A file or directory cannot be created or used.
    #[error("{}: cannot be {done}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operation that failed.
        done: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The API cannot listen on its TCP address.
    #[error("--listen {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored desired state was written by another version, or by hand.
    #[error("the stored desired state cannot be applied: {0}")]
    Stored(String),
    /// Nothing is stored, and networks run.
    #[error(
        "networks run that the store does not know: {}: restore the state directory {} from a backup, or remove them and start \
         with an empty state: `hueplane up --empty`", networks.join(", "), directory.display()
    )]
    Unknown {
        /// The networks.
        networks: Vec<String>,
        /// The state directory.
        directory: PathBuf,
    },
    /// Certificates are invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data plane cannot be started.
    #[error("the data plane cannot be started: {0}")]
    Live(#[from] LiveError),
    /// Namespaces cannot be monitored.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The system refused an operation.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread or runtime cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// The node's thread ended unexpectedly; a bug.
    #[error("the node's thread has ended; restart the daemon and report this")]
    Ended,
}

impl DaemonError {
    /// Creates the error of an operation on a file.
    pub(crate) fn file(path: impl Into<PathBuf>, done: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, done, source }
    }
}
