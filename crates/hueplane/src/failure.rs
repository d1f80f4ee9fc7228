//! Why a command failed, and its exit code.

use std::io;
use std::path::PathBuf;

use hue_card::CardError;
use hue_control::CompileError;
use hue_host::HostError;
use hue_ports::PortError;
use hue_routing::RoutingError;
use hue_substrate::SubstrateError;
use hue_tables::TableError;
use hueplaned::DaemonError;
use hueplaned::api::ProblemKind;
use hueplaned::client::ClientError;
use thiserror::Error;

/// A failed command.
#[derive(Debug, Error)]
pub enum Failure {
    /// The command line is wrong in a way that clap cannot detect.
    #[error("{0}")]
    Usage(String),
    /// A file is wrong (the caller's fault).
    #[error("{0}")]
    Input(String),
    /// A table is full; the result has been printed.
    #[error("{0}")]
    Full(String),
    /// An output cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Output {
        /// The output.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("standard output: cannot be written: {0}")]
    Stdout(#[from] io::Error),
    /// An internal error, or a failed check.
    #[error("{0}")]
    Broken(String),
    /// The daemon does not answer, or denies access.
    #[error("{0}")]
    NoDaemon(String),
    /// There are differences; they have been printed.
    #[error("{0}")]
    Differences(String),
    /// Something is not as desired; it has been printed.
    #[error("{0}")]
    NotWell(String),
    /// A command cannot be run in a network, with the exit code that shells use.
    #[error("{0}")]
    Exec(String, u8),
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code; see [`crate::cli::EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Output { .. } | Self::Stdout(_) | Self::Broken(_) => 1,
            Self::Usage(_) => 2,
            Self::Input(_) => 3,
            Self::Full(_) => 4,
            Self::NoDaemon(_) => 5,
            Self::Differences(_) => 6,
            Self::NotWell(_) => 7,
            Self::Exec(_, code) => *code,
            Self::Interrupted => 130,
        }
    }

    /// Whether the reader of the output has ended (`hueplane … | head`), which is the normal end of a filter.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Write { path, source } => Self::Output { path, source },
            other => Self::Input(other.to_string()),
        }
    }
}

impl From<RoutingError> for Failure {
    fn from(error: RoutingError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Full { .. } | TableError::Quota { .. } | TableError::TooManyNetworks { .. } => {
                Self::Full(error.to_string())
            }
            other => Self::Broken(other.to_string()),
        }
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<SubstrateError> for Failure {
    fn from(error: SubstrateError) -> Self {
        match error {
            SubstrateError::Networks { .. }
            | SubstrateError::ImageNetworks { .. }
            | SubstrateError::Table { .. }
            | SubstrateError::Room { .. }
            | SubstrateError::Words { .. } => Self::Full(error.to_string()),
            other => Self::Input(other.to_string()),
        }
    }
}

impl From<CardError> for Failure {
    fn from(error: CardError) -> Self {
        let text = error.to_string();
        match error {
            CardError::Image { .. }
            | CardError::ImageFile { .. }
            | CardError::Wave { .. }
            | CardError::NoWaves(_)
            | CardError::Port { .. }
            | CardError::Bar(_) => Self::Input(text),
            CardError::Memory(_) => Self::Full(text),
            _ => Self::Broken(text),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Stdout(error.into())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::Address { .. } => Self::Usage(text),
            ClientError::Tls(_) => Self::Input(text),
            ClientError::Answer { .. } => Self::Broken(text),
            ClientError::Problem(problem) => match problem.kind {
                ProblemKind::BadRequest | ProblemKind::NotFound | ProblemKind::MethodNotAllowed => {
                    Self::Usage(text)
                }
                ProblemKind::InvalidDocuments | ProblemKind::TooLarge | ProblemKind::UnsupportedMediaType => {
                    Self::Input(text)
                }
                ProblemKind::Full => Self::Full(text),
                ProblemKind::Conflict | ProblemKind::Internal => Self::Broken(text),
                ProblemKind::Unauthenticated
                | ProblemKind::Forbidden
                | ProblemKind::Timeout
                | ProblemKind::Busy
                | ProblemKind::Unavailable => Self::NoDaemon(text),
            },
            ClientError::NotRunning { .. }
            | ClientError::Permission { .. }
            | ClientError::Start(_)
            | ClientError::Connection { .. }
            | ClientError::Timeout { .. } => Self::NoDaemon(text),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        let text = error.to_string();
        match error {
            DaemonError::Running { .. } => Self::NoDaemon(text),
            DaemonError::Tls(_) | DaemonError::Listen { .. } => Self::Input(text),
            _ => Self::Broken(text),
        }
    }
}
