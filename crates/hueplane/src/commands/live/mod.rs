//! Commands on a running daemon: a thin client of its API, and those that start one.

mod capture;
mod change;
mod doctor;
mod events;
mod exec;
mod get;
mod image;
mod migrate;
mod stats;
mod up;
mod watch;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hueplaned::api::{Network, SourceText};
use hueplaned::client::{Client, socket_in};
use hueplaned::options;
use hueplaned::tls::TlsFiles;

pub use capture::capture;
pub use change::{apply, delete, diff, down};
pub use doctor::doctor;
pub use events::events;
pub use exec::exec;
pub use get::get;
pub use image::image;
pub use migrate::migrate;
pub use stats::stats;
pub use up::up;

use crate::cli::Connection;
use crate::failure::Failure;
use crate::print;

/// The daemon that the options name.
pub fn client(connection: &Connection) -> Result<Client, Failure> {
    let Some(server) = &connection.server else { return Ok(Client::unix(socket(connection))?) };
    let (Some(certificate), Some(key), Some(ca)) = (&connection.cert, &connection.key, &connection.ca) else {
        return Err(Failure::Usage("--server: expected --cert, --key and --ca too".to_owned()));
    };
    let files = TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() };
    Ok(Client::tls(server, &files)?)
}

/// The socket that the options name.
fn socket(connection: &Connection) -> PathBuf {
    connection.socket.clone().unwrap_or_else(|| socket_in(&options::run_dir(None)))
}

/// The contents of `-f`; `-` is standard input.
pub fn sources(files: &[PathBuf]) -> Result<Vec<SourceText>, Failure> {
    files.iter().map(|path| source(path)).collect()
}

fn source(path: &Path) -> Result<SourceText, Failure> {
    let stdin = path.as_os_str() == hue_intent::STDIN;
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    // One byte more than may be read, so that the daemon sees that there is more.
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

/// Networks' names in their colours.
struct Painter(HashMap<String, Option<String>>);

impl Painter {
    /// With the colours of these networks.
    fn of(networks: &[Network]) -> Self {
        Self(networks.iter().map(|network| (network.name.clone(), network.colour.clone())).collect())
    }

    /// With the colours of the daemon's networks; without them where it does not tell.
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
