//! The command line of hueplane. Starts the daemon and shows its state; offline and unprivileged, it checks
//! configurations, runs captures through networks, explains packets, and measures forwarding tables. Also
//! runs the demo.
//!
//! Flow: arguments (`cli`) → a command (`commands`, `demo`) → a result on standard output (`print`). Notes, progress and
//! errors go to standard error. Exit codes: [`cli::EXIT_CODES`].

mod cli;
mod commands;
mod complete;
mod demo;
mod failure;
mod limits;
mod local;
mod named;
mod print;
mod progress;
mod reference;
mod topo;

use std::process::ExitCode;

fn main() -> ExitCode {
    if hue_host::holder::run_if_asked() || hueplaned::run_card_if_asked() {
        return ExitCode::SUCCESS;
    }
    complete::answer();
    let cli = cli::parse();
    match commands::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            for line in text.lines().map(unprefixed) {
                anstream::eprintln!("{} {line}", print::styled(print::RED, "hueplane:"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The line without the prefix that a daemon's own program has put before it: failures quote its output.
fn unprefixed(line: &str) -> &str {
    let stripped = line.strip_prefix("hueplane: ").or_else(|| line.strip_prefix("hueplaned: "));
    stripped.map_or(line, unprefixed)
}
