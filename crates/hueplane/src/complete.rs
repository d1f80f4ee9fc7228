//! Completion of arguments in a shell, with the names that the running daemon knows.
//!
//! Flow: the script of `hueplane completions` runs `HUEPLANE_COMPLETE=SHELL hueplane` with the words typed so far → [`answer`] → words that
//! may follow. Without a daemon, or if it does not answer in time, there are no names, and no error: a completion
//! must not print into what the user types.

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use hueplaned::api::Network;
use hueplaned::client::{Client, socket_in};
use hueplaned::options;

use crate::cli::{Cli, Completions};
use crate::failure::Failure;

/// Environment variable with which the script asks for words.
const ASKED: &str = "HUEPLANE_COMPLETE";
/// A user who presses the Tab key does not wait longer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Answers the script of a shell, and ends the process, if it was started by one.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command).var(ASKED).complete();
}

/// Prints the script for a shell.
pub fn script(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell.to_string())
        .ok_or_else(|| Failure::Usage(format!("{}: no completions for this shell", args.shell)))?;
    shell.write_registration(ASKED, "hueplane", "hueplane", "hueplane", &mut script)?;
    Ok(io::stdout().lock().write_all(&script)?)
}

/// Names of networks.
pub fn networks() -> Vec<CompletionCandidate> {
    candidates(|client| client.networks().map(|all| all.into_iter().map(|network| network.name)))
}

/// Networks, and their virtual ports as `NETWORK/INTERFACE`.
pub fn places() -> Vec<CompletionCandidate> {
    fn of(network: Network) -> impl Iterator<Item = String> {
        let ports: Vec<String> =
            network.ports.iter().map(|port| format!("{}/{}", network.name, port.name)).collect();
        std::iter::once(network.name).chain(ports)
    }
    candidates(|client| client.networks().map(|all| all.into_iter().flat_map(of)))
}

/// Names of physical and virtual ports.
pub fn ports() -> Vec<CompletionCandidate> {
    candidates(|client| {
        let virtual_ports =
            client.networks()?.into_iter().flat_map(|network| network.ports).map(|port| port.name);
        Ok(client.ports()?.into_iter().map(|port| port.name).chain(virtual_ports))
    })
}

/// Names of images that the daemon knows.
pub fn images() -> Vec<CompletionCandidate> {
    candidates(|client| client.images().map(|all| all.into_iter().map(|image| image.name)))
}

/// Names of images in the folder from which commands load them.
pub fn local_images() -> Vec<CompletionCandidate> {
    options::images().names().into_iter().map(CompletionCandidate::new).collect()
}

/// What the daemon of this machine says, each once.
fn candidates<N: Iterator<Item = String>>(
    ask: impl FnOnce(&Client) -> Result<N, hueplaned::client::ClientError> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (answer, answered) = mpsc::channel();
    std::thread::spawn(move || {
        let names =
            Client::unix(socket_in(&options::run_dir(None))).and_then(|client| Ok(ask(&client)?.collect()));
        let _ = answer.send(names); // after the time, nobody waits
    });
    let Ok(Ok(names)) = answered.recv_timeout(ANSWER_MAX) else { return Vec::new() };
    let mut names: Vec<String> = names;
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}
