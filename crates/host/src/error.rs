//! Errors of the operating system.

use std::io;

use nix::errno::Errno;

/// A request to the system failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A system call failed, because of the machine's state or missing privileges.
    #[error("{what}: {source}")]
    System {
        /// The operation and its object.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The kernel rejected a netlink request with a reason.
    #[error("{what}: {source} ({reason})")]
    Refused {
        /// The operation and its object.
        what: String,
        /// The error of the system.
        source: io::Error,
        /// The reason given by the kernel.
        reason: String,
    },
    /// The text is not an interface name (the caller's fault).
    #[error(
        "interface name {0:?}: expected 1 to 15 bytes without '/', ':' or white space, not \".\" or \"..\""
    )]
    InterfaceName(String),
    /// The text is not a namespace name (the caller's fault).
    #[error("network namespace name {0:?}: expected 1 to 200 bytes without '/', not beginning with '.'")]
    NamespaceName(String),
    /// The namespace does not exist.
    #[error("network namespace {0:?} does not exist; `ip netns list` shows the existing ones")]
    NoNamespace(String),
    /// The interface does not exist.
    #[error("interface {name:?} does not exist{}", .namespace.as_ref().map(|n| format!(" in namespace {n:?}")).unwrap_or_default())]
    NoInterface {
        /// Its name.
        name: String,
        /// The namespace searched; `None` means the caller's.
        namespace: Option<String>,
    },
    /// A namespace of that name belongs to someone else. It was not modified.
    #[error(
        "namespace {name:?} already exists and belongs to someone else ({found}); delete it (`ip netns delete {name}`) or use another name"
    )]
    Foreign {
        /// Its name.
        name: String,
        /// The mark found.
        found: String,
    },
    /// Another namespace has the name of an open one. It was not modified.
    #[error(
        "another namespace has the name {0}; delete it (`ip netns delete {0}`), and the network's namespace gets the name back"
    )]
    Replaced(String),
    /// The kernel has no control group that can limit this resource.
    #[error("no cgroup controller for {0}; mount one, or leave out `resources`")]
    NoController(&'static str),
    /// Processes did not end after they were killed.
    #[error("{0} processes of cgroup {1:?} did not end")]
    Unkillable(usize, String),
}

impl HostError {
    /// A failed operation.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }

    /// A failed operation, with the error of this thread's last system call.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        Self::system(what, io::Error::last_os_error())
    }

    /// The error number, if a system call failed.
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

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NoNamespace(_) | Self::NoInterface { .. })
            || matches!(self.errno(), Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::ESRCH))
    }

    /// Whether privileges are missing.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.errno(), Some(Errno::EPERM | Errno::EACCES))
    }
}
