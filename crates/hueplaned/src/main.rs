//! `hueplaned`: the daemon, for service managers. `hueplane up` does the same by hand.

use std::process::ExitCode;

use clap::Parser;
use hueplaned::arguments::Arguments;
use hueplaned::{DaemonError, run};

fn main() -> ExitCode {
    if hue_host::holder::run_if_asked() || hueplaned::run_card_if_asked() {
        return ExitCode::SUCCESS;
    }
    match run(Arguments::parse().options()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hueplaned: {error}");
            ExitCode::from(match error {
                DaemonError::Running { .. } => 5,
                DaemonError::Tls(_) | DaemonError::Listen { .. } => 3,
                _ => 1,
            })
        }
    }
}
