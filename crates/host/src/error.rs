//! What can go wrong between this program and the system it runs on.

use std::io;

use nix::errno::Errno;

/// The system did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A call failed; the machine's state, or missing rights.
    #[error("{what}: {source}")]
    System {
        /// What was tried, on what.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel refused a netlink request, and said why.
    #[error("{what}: {source} ({reason})")]
    Refused {
        /// What was tried, on what.
        what: String,
        /// What the system says.
        source: io::Error,
        /// The kernel's own words.
        reason: String,
    },
    /// A text is no name of an interface; the caller's fault.
    #[error(
        "interface name {0:?}: expected 1 to 15 bytes without '/', ':' or white space, not \".\" or \"..\""
    )]
    InterfaceName(String),
    /// A text is no name of a namespace; the caller's fault.
    #[error("network namespace name {0:?}: expected 1 to 200 bytes without '/', not beginning with '.'")]
    NamespaceName(String),
    /// The namespace is not there.
    #[error("network namespace {0:?} does not exist; `ip netns list` shows those that do")]
    NoNamespace(String),
    /// The interface is not there.
    #[error("interface {name:?} does not exist{}", .namespace.as_ref().map(|n| format!(" in namespace {n:?}")).unwrap_or_default())]
    NoInterface {
        /// Its name.
        name: String,
        /// Where it was looked for; none: the namespace of the caller.
        namespace: Option<String>,
    },
    /// Something of that name belongs to somebody else; left alone.
    #[error(
        "namespace {name:?} is there and not ours ({found}); delete it (`ip netns delete {name}`) or use another name"
    )]
    Foreign {
        /// Its name.
        name: String,
        /// What it says about itself.
        found: String,
    },
    /// The kernel offers no control group that can limit this.
    #[error("no cgroup controller for {0}; mount one, or leave out `resources`")]
    NoController(&'static str),
    /// Processes did not end although they were killed.
    #[error("{0} processes of cgroup {1:?} do not end")]
    Unkillable(usize, String),
}

impl HostError {
    /// A failed call with what it was for.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// The error of the last system call of this thread.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        Self::system(what, io::Error::last_os_error())
    }

    /// The system's error number, if it was a system call that failed.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { source, .. } | Self::Refused { source, .. } => {
                source.raw_os_error().map(Errno::from_raw)
            }
            Self::NoInterface { .. } => Some(Errno::ENODEV),
            _ => None,
        }
    }

    /// Whether the thing is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NoNamespace(_) | Self::NoInterface { .. })
            || matches!(self.errno(), Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::ESRCH))
    }

    /// Whether the rights for it are missing.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.errno(), Some(Errno::EPERM | Errno::EACCES))
    }
}
