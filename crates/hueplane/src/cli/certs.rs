//! Arguments of `certs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hueplaned::number::whole;

use super::Output;

/// Make certificates for the API over TCP
#[derive(Args, Debug)]
pub struct Certs {
    #[command(subcommand)]
    pub command: CertsCommand,
}

#[derive(Subcommand, Debug)]
pub enum CertsCommand {
    Init(CertsInit),
    Add(CertsAdd),
}

/// Make an authority, and certificates for the daemon and an administrator
///
/// The authority must sign nothing else. Its key, ca.key, is needed only by `certs add`: keep it off the machines of
/// clients. No file is replaced.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane certs init certs --for node1.example.net --for 192.0.2.7")]
pub struct CertsInit {
    /// Directory; created if absent
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Name or address that clients use for the daemon [default: this machine's name and localhost]
    #[arg(long = "for", value_name = "NAME|ADDRESS")]
    pub names: Vec<String>,
    /// Days for which the certificates are valid; the authority is valid for ten years
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = whole::<u32>(1..=3650))]
    pub days: u32,
    #[command(flatten)]
    pub output: Output,
}

/// Make another certificate
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane certs add certs alice --role operator
  hueplane certs add certs red --role tenant --days 90
  hueplane certs add certs daemon2 --role daemon --for node2.example.net")]
pub struct CertsAdd {
    /// Directory of the authority
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Name of the holder, and of the files; for a tenant, the name of its network
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What the holder may do
    #[arg(long, value_enum)]
    pub role: CertRole,
    /// Name or address that clients use for the daemon
    #[arg(long = "for", value_name = "NAME|ADDRESS", required_if_eq("role", "daemon"))]
    pub names: Vec<String>,
    /// Days for which the certificate is valid
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = whole::<u32>(1..=3650))]
    pub days: u32,
    #[command(flatten)]
    pub output: Output,
}

/// Holders of certificates.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertRole {
    /// Sees everything but packet contents
    Viewer,
    /// Also changes networks
    Operator,
    /// Also changes the node, and stops the daemon
    Admin,
    /// Sees and changes its own network
    Tenant,
    /// The daemon itself
    Daemon,
}
