//! The command line of `hueplaned`; `hueplane man` writes its manual page too.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::number::{address_and_port, whole, whole_or_automatic};
use crate::options::{
    Listen, Options, PACKET_SLOTS_MAX, PACKET_SLOTS_MIN, SchedulingName, WORKERS_MAX, run_dir, state_dir,
};
use crate::tls::TlsFiles;

/// Run many virtual networks on this machine
///
/// Runs in the foreground until SIGTERM, Ctrl-C or `hueplane down`. Needs root. Its log goes to standard error;
/// $HUEPLANE_LOG sets the level (error, warn, info, debug).
#[derive(Parser, Debug)]
#[command(name = "hueplaned", version)]
pub struct Arguments {
    /// Directory of the socket and the lock; default: $HUEPLANE_RUN_DIR, or /run/hueplane
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Directory of the stored configuration; default: $HUEPLANE_STATE_DIR, or /var/lib/hueplane
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Prefix of the networks' namespace names
    #[arg(long, value_name = "TEXT", default_value = hue_host::control::PREFIX)]
    namespace_prefix: String,
    /// Number of worker threads; 0 selects it automatically
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = whole_or_automatic(0..=WORKERS_MAX),
        allow_negative_numbers = true
    )]
    workers: usize,
    /// Pin each worker thread to a core
    #[arg(long)]
    pin: bool,
    /// How threads that forward packets compete for processors
    #[arg(long, value_enum, default_value_t)]
    scheduling: SchedulingName,
    /// Most packet slots of each worker, of 2 or 4 KiB; default: as many as the ports need
    #[arg(long, value_name = "N", value_parser = whole::<u32>(PACKET_SLOTS_MIN..=PACKET_SLOTS_MAX))]
    packet_slots: Option<u32>,
    /// Start with nothing: the stored state is kept under another name, and running networks are removed
    #[arg(long)]
    empty: bool,
    /// Also offer the API over TCP, with mutual TLS
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        value_parser = address_and_port,
        requires_all = ["tls_cert", "tls_key", "tls_ca"]
    )]
    listen: Option<SocketAddr>,
    /// Certificate of the daemon (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    tls_cert: Option<PathBuf>,
    /// Private key of the daemon (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    tls_key: Option<PathBuf>,
    /// Certificate of the CA that signs client certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    tls_ca: Option<PathBuf>,
}

impl Arguments {
    /// As options of a daemon that is a separate process.
    #[must_use]
    pub fn options(self) -> Options {
        let files = self.tls_ca.zip(self.tls_cert).zip(self.tls_key);
        let files = files.map(|((ca, certificate), key)| TlsFiles { ca, certificate, key });
        Options {
            run_dir: run_dir(self.run_dir.as_deref()),
            state_dir: state_dir(self.state_dir.as_deref()),
            namespace_prefix: self.namespace_prefix,
            listen: self.listen.zip(files).map(|(address, tls)| Listen { address, tls }),
            workers: self.workers,
            pin: self.pin,
            scheduling: self.scheduling.into(),
            packet_slots: self.packet_slots,
            least_rights: true,
            log: true,
            log_file: None,
            empty: self.empty,
            take_over: false,
            hold: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_a_number_that_the_data_plane_accepts() {
        let workers = |text: &str| Arguments::try_parse_from(["hueplaned", "--workers", text]);
        assert_eq!(workers("64").unwrap().options().workers, WORKERS_MAX);
        for text in ["-1", "65", "9999", "99999999999999999999", "x"] {
            let error = workers(text).unwrap_err().to_string();
            assert!(
                error.contains("expected a whole number from 0 to 64; 0 selects it automatically"),
                "{error}"
            );
        }
    }
}
