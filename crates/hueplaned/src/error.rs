//! Why the daemon does not start, or ends.

use std::io;
use std::path::PathBuf;

use hue_host::HostError;
use hue_routing::MonitorError;
use hue_soft::LiveError;
use thiserror::Error;

use crate::store::StoreError;
use crate::tls::TlsError;

/// Why the daemon does not start.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Another daemon has the run directory.
    #[error(
        "{}: a daemon is running already{}: change it with `hueplane apply`, or end it with `hueplane down`",
        lock.display(), .pid.map_or_else(String::new, |pid| format!(", process {pid}"))
    )]
    Running {
        /// The lock it holds.
        lock: PathBuf,
        /// Its process, when it says.
        pid: Option<u32>,
    },
    /// A right is missing; the caller's fault.
    #[error("these rights are missing: {0}; run as root")]
    Rights(String),
    /// A file or directory cannot be made or used.
    #[error("{}: cannot be {done}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was to be done with it.
        done: &'static str,
        /// What the operating system says.
        source: io::Error,
    },
    /// The address of the API over TCP cannot be had.
    #[error("--listen {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored desired state was written by another version, or by hand.
    #[error("the stored desired state cannot be brought about: {0}")]
    Stored(String),
    /// Certificates are wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data plane cannot be started.
    #[error("the data plane cannot be started: {0}")]
    Live(#[from] LiveError),
    /// Namespaces cannot be listened to.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The system refused something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread or runtime cannot be had.
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
    /// The node's thread ended although nobody asked it to; a bug.
    #[error("the node's thread has ended; restart the daemon and report this")]
    Ended,
}

impl DaemonError {
    /// Makes an error of what was to be done with a file.
    pub(crate) fn file(path: impl Into<PathBuf>, done: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, done, source }
    }
}
