//! Commands that use a running daemon through its API, and commands that start one.

mod attach;
mod capture;
mod card;
mod change;
mod doctor;
mod drain;
mod events;
mod exec;
mod get;
mod history;
mod image;
mod logs;
mod migrate;
mod stats;
mod status;
mod up;
mod upgrade;
mod watch;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hueplaned::api::{Network, SourceText, Timestamp};
use hueplaned::client::{Client, socket_in};
use hueplaned::options;
use hueplaned::tls::TlsFiles;

pub use attach::{attach, detach};
pub use capture::capture;
pub use card::card;
pub use change::{apply, delete, diff, down};
pub use doctor::doctor;
pub use drain::{drain, undrain};
pub use events::events;
pub use exec::exec;
pub use get::get;
pub use history::{confirm, history, rollback};
pub use image::image;
pub use logs::logs;
pub use migrate::migrate;
pub use stats::stats;
pub use status::status;
pub use up::up;
pub use upgrade::upgrade;

use crate::cli::{AsNode, Connection};
use crate::failure::Failure;
use crate::print;
use crate::topo::own_part;

/// A client of the daemon that the options name.
pub fn client(connection: &Connection) -> Result<Client, Failure> {
    let Some(server) = &connection.server else { return Ok(Client::unix(socket(connection))?) };
    let (Some(certificate), Some(key), Some(ca)) = (&connection.cert, &connection.key, &connection.ca) else {
        return Err(Failure::Usage("--server: requires --cert, --key and --ca".to_owned()));
    };
    let files = TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() };
    Ok(Client::tls(server, &files)?)
}

/// The socket that the options name.
fn socket(connection: &Connection) -> PathBuf {
    connection.socket.clone().unwrap_or_else(|| socket_in(&options::run_dir(None)))
}

/// The contents of the files given with `-f`; `-` is standard input.
pub fn sources(files: &[PathBuf]) -> Result<Vec<SourceText>, Failure> {
    files.iter().map(|path| source(path)).collect()
}

/// As [`sources`], with the node's own part of a Topology. Without `--node`, it is the node with the name in its document, or else with
/// the host name of this machine.
fn own_sources(files: &[PathBuf], node: &AsNode, client: &Client) -> Result<Vec<SourceText>, Failure> {
    own_part(sources(files)?, || match &node.node {
        Some(name) => Ok(name.clone()),
        None => {
            let documents = client.config()?.documents;
            let of_node = documents.iter().find(|document| document["kind"] == "Node");
            let name = of_node.and_then(|document| document["metadata"]["name"].as_str());
            name.map_or_else(host_name, |name| Ok(name.to_owned()))
        }
    })
}

/// The host name of this machine.
fn host_name() -> Result<String, Failure> {
    let path = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(path);
    name.map(|name| name.trim().to_owned()).map_err(|error| {
        Failure::Broken(format!("{path}: cannot be read: {error}: name the node with --node"))
    })
}

/// The content of a file; `-` is standard input.
pub fn source(path: &Path) -> Result<SourceText, Failure> {
    let stdin = path.as_os_str() == hue_intent::STDIN;
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    // Read one byte more than allowed, so that the daemon detects a file that is too long.
    let most = hue_intent::limits::FILE_BYTES_MAX as u64 + 1;
    let done = if stdin {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    done.map_err(|error| Failure::Input(format!("{name}: cannot be read: {error}")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceText { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(Failure::Input(format!(
                "{name}: found a byte that is not UTF-8 at offset {at}, expected YAML in UTF-8"
            )))
        }
    }
}

/// Colours of networks' names.
struct Painter(HashMap<String, Option<String>>);

impl Painter {
    /// Takes the colours from these networks.
    fn of(networks: &[Network]) -> Self {
        Self(networks.iter().map(|network| (network.name.clone(), network.colour.clone())).collect())
    }

    /// Takes the colours from the daemon's networks; without colours if the request fails.
    fn ask(client: &Client) -> Self {
        Self::of(&client.networks().unwrap_or_default())
    }

    fn paint(&self, name: &str) -> String {
        print::painted(name, self.0.get(name).and_then(Option::as_deref))
    }

    fn colour(&self, name: &str) -> Option<[u8; 3]> {
        self.0.get(name).and_then(Option::as_deref).and_then(print::rgb)
    }
}

/// A moment, to the second.
fn moment(time: Timestamp) -> String {
    time.to_string().split('.').next().unwrap_or_default().to_owned() + "Z"
}
