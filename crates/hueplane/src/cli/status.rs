//! `hueplane status` and `hueplane logs`.

use clap::Args;
use hueplaned::number::whole;

use super::Output;

/// Show whether all is well
///
/// Shows the daemon and the node, the configuration in force and a change that waits for its confirmation, the store, the
/// card, ports and networks by state, and each problem with what to do. The exit code is 0 if all is well, 7 if the
/// daemon is starting or stopping, something has a problem, or a port or network does not run, and 5 if no daemon
/// answers. A tenant sees its own network.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane status
  hueplane status -o json
  hueplane status >/dev/null || hueplane logs")]
pub struct Status {
    #[command(flatten)]
    pub output: Output,
}

/// Show the daemon's log
///
/// Shows the end of the log of a daemon that was started with `up --detach`, also after the daemon has ended. If the
/// daemon writes its log elsewhere, such as the journal of systemd, the command fails and says where to read it.
/// --follow continues when the daemon begins a new file, and when another daemon starts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane logs
  hueplane logs -n 1000
  hueplane logs -f -n 0")]
pub struct Logs {
    /// Wait for new lines until Ctrl-C
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Number of lines to show from the end of the log
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = whole::<usize>(0..))]
    pub lines: usize,
}
