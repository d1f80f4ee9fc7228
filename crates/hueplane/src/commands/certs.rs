//! `hueplane certs`: certificates for the API over TCP.

use std::fs;
use std::path::{Path, PathBuf};

use hueplaned::certs::{AUTHORITY, Authority, CertError, Files, Holder};
use hueplaned::http::Role;
use serde::Serialize;

use crate::cli::{CertRole, Certs, CertsAdd, CertsCommand, CertsInit};
use crate::failure::Failure;
use crate::print;

/// Base names of the certificates that `init` makes.
const DAEMON: &str = "daemon";
const ADMIN: &str = "admin";

/// The result: files that were made.
#[derive(Serialize)]
struct Made {
    files: Vec<PathBuf>,
    days: u32,
    /// Names and addresses of the daemon; empty for a client.
    names: Vec<String>,
}

/// Runs the command.
pub fn certs(args: &Certs) -> Result<(), Failure> {
    match &args.command {
        CertsCommand::Init(args) => init(args),
        CertsCommand::Add(args) => add(args),
    }
}

fn init(args: &CertsInit) -> Result<(), Failure> {
    let names = if args.names.is_empty() { own_names() } else { args.names.clone() };
    let dir = &args.dir;
    for name in [AUTHORITY, DAEMON, ADMIN] {
        Files::of(dir, name).must_be_new()?;
    }
    let authority = Authority::create(dir)?;
    let mut made = vec![Files::of(dir, AUTHORITY)];
    for (name, holder) in [(DAEMON, Holder::Daemon(names.clone())), (ADMIN, Holder::Client(Role::Admin))] {
        match authority.sign(name, &holder, args.days) {
            Ok(files) => made.push(files),
            Err(error) => {
                // Only what this command made: another one may work in the same directory.
                for path in made.iter().flat_map(|files| [&files.certificate, &files.key]) {
                    let _ = fs::remove_file(path);
                }
                return Err(error.into());
            }
        }
    }
    let files = made.into_iter().flat_map(|files| [files.certificate, files.key]).collect();
    let made = Made { files, days: args.days, names };
    print::result(args.output.format, &made, || {
        let [host, ..] = made.names.as_slice() else { return String::new() };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let path = |name: &str| dir.join(name).display().to_string();
        format!(
            "{}\nthe daemon, for {}:\n  hueplane up --listen 0.0.0.0:7443 --tls-ca {ca} --tls-cert {} --tls-key {}\n\
             an administrator, with copies of these three files:\n  hueplane --server https://{host}:7443 --ca {ca} --cert {} \
             --key {} get networks\nmore certificates:\n  hueplane certs add {} NAME --role ROLE\n",
            list(&made.files, made.days),
            made.names.join(", "),
            path("daemon.pem"),
            path("daemon.key"),
            path("admin.pem"),
            path("admin.key"),
            dir.display(),
            ca = path("ca.pem"),
        )
    })
}

fn add(args: &CertsAdd) -> Result<(), Failure> {
    if args.role != CertRole::Daemon && !args.names.is_empty() {
        return Err(Failure::Usage("--for: only for --role daemon".to_owned()));
    }
    let holder = match args.role {
        CertRole::Viewer => Holder::Client(Role::Viewer),
        CertRole::Operator => Holder::Client(Role::Operator),
        CertRole::Admin => Holder::Client(Role::Admin),
        CertRole::Tenant => Holder::Client(Role::Tenant(args.name.as_str().into())),
        CertRole::Daemon => Holder::Daemon(args.names.clone()),
    };
    let files = Authority::open(&args.dir)?.sign(&args.name, &holder, args.days)?;
    let made = Made { files: vec![files.certificate, files.key], days: args.days, names: args.names.clone() };
    print::result(args.output.format, &made, || format!("{}\n", list(&made.files, made.days)))
}

fn list(files: &[PathBuf], days: u32) -> String {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    format!("made {}; valid for {days} days", names.join(", "))
}

/// Names by which this machine reaches itself, and its own name.
fn own_names() -> Vec<String> {
    let host = fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    let mut names = vec![host.trim().to_owned(), "localhost".into(), "127.0.0.1".into(), "::1".into()];
    names.retain(|name| !name.is_empty() && name != "(none)");
    names.dedup();
    names
}

impl From<CertError> for Failure {
    fn from(error: CertError) -> Self {
        match error {
            CertError::Name(_) => Self::Usage(error.to_string()),
            CertError::Exists(_) | CertError::File { .. } | CertError::Authority { .. } => {
                Self::Input(error.to_string())
            }
        }
    }
}
