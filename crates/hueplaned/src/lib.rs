//! The daemon: wiring, REST, events, metrics.

pub mod api;
pub mod arguments;
pub mod backend;
pub mod certs;
pub mod client;
mod daemon;
mod error;
pub mod explain;
pub mod history;
pub mod http;
pub mod labels;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod node;
pub mod number;
pub mod options;
pub mod pending;
mod place;
pub mod plan;
pub mod store;
pub mod tls;

pub use daemon::run;
pub use error::DaemonError;
pub use node::run_if_asked as run_card_if_asked;
pub use options::{Listen, Options};
