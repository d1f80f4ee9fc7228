//! Taking a running daemon's place: everything is set up while it forwards, then it closes its ports.
//!
//! Flow: networks are set up, without ports and TAPs → SIGTERM to the predecessor, which writes down what its networks have
//! learnt, then closes its ports → they are opened → TAPs are read, and what was learnt → started. Invariants: at no time do
//! both daemons have a port or read a TAP; a predecessor that does not end is not waited for longer than [`PATIENCE`], and
//! its ports are then reported as taken. The attachments of its XDP programs are taken over. Source: ADR 0041.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hue_host::links::Links;
use hue_host::process::Process;
use hue_ports::{AfXdp, AfXdpOptions, Attachment, PreparedAfXdp, Region};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::MacAddress;
use crate::labels::LabelRow;

/// How long networks may take to be set up before ports are opened anyway.
const SET_UP_MAX: Duration = Duration::from_secs(30);
/// How long the predecessor may take to close a port.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Most MAC addresses that are handed over. Frames to others go to all ports until their hosts send.
const LEARNT_MAX: usize = 200_000;

/// The daemon before.
#[derive(Clone)]
pub struct Predecessor {
    /// Its process.
    pub process: Arc<Process>,
    /// Where it writes down what its networks have learnt.
    pub learnt: PathBuf,
}

/// A daemon whose place this one takes.
pub enum TakeOver {
    /// It forwards. Until when networks may be set up, and ports that are ready but for their queues.
    Preparing(Predecessor, Instant, PreparedPorts),
    /// It was asked to end, at this time; its ports are being opened.
    Opening(Ending, Instant),
}

/// AF_XDP ports that wait for the interfaces' queues, by interface; `None` if one could not be prepared.
pub type PreparedPorts = BTreeMap<String, Option<PreparedAfXdp>>;

/// A daemon that closes its ports.
#[derive(Clone)]
pub struct Ending {
    /// It.
    pub predecessor: Predecessor,
    prepared: Arc<Mutex<PreparedPorts>>,
}

impl Ending {
    pub(super) fn of(predecessor: Predecessor, prepared: PreparedPorts) -> Self {
        Self { predecessor, prepared: Arc::new(Mutex::new(prepared)) }
    }

    /// What was prepared for the port on an interface, for the one who opens it.
    pub(super) fn take_prepared(&self, interface: &str) -> Option<PreparedAfXdp> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).remove(interface)?
    }
}

/// Prepares a port on AF_XDP while the predecessor has the interface. The attachment of the predecessor's program is kept,
/// if it can be had; otherwise the program is detached and the new one attached.
pub fn prepare_port(interface: &str, ring: u32, region: &Region) -> Result<PreparedAfXdp, String> {
    let link =
        Links::here().and_then(|mut links| links.find(interface)).map_err(|error| error.to_string())?;
    let attachment = match link.and_then(|link| link.native_xdp).map(Attachment::of_program) {
        Some(Ok(found)) => found,
        Some(Err(error)) => {
            tracing::info!(interface, %error, "the XDP program will be attached again");
            None
        }
        None => None,
    };
    let options = AfXdpOptions { ring, busy_for: PATIENCE, ..AfXdpOptions::default() };
    let prepared = AfXdp::prepare(interface, &options, region).map_err(|error| error.to_string())?;
    Ok(prepared.with_attachment(attachment))
}

impl TakeOver {
    pub(super) fn of(predecessor: Predecessor) -> Self {
        // Of an upgrade that failed.
        let _ = fs::remove_file(&predecessor.learnt);
        let _ = fs::remove_file(labels_beside(&predecessor.learnt));
        Self::Preparing(predecessor, Instant::now() + SET_UP_MAX, PreparedPorts::new())
    }
}

/// The file in the run directory for what networks have learnt. Flat labels have one beside it.
pub fn learnt_in(run_dir: &Path) -> PathBuf {
    run_dir.join("learnt.json")
}

/// Writes down MAC addresses and flat labels for the next daemon. Each file appears when it is complete.
pub fn leave_learnt(
    file: &Path,
    macs: impl Iterator<Item = MacAddress>,
    labels: &BTreeMap<String, Vec<LabelRow>>,
) -> io::Result<()> {
    let macs: Vec<MacAddress> = macs.filter(|mac| !mac.fixed).take(LEARNT_MAX).collect();
    leave(&labels_beside(file), labels)?;
    leave(file, &macs)
}

/// The file for flat labels.
fn labels_beside(learnt: &Path) -> PathBuf {
    learnt.with_file_name("labels.json")
}

fn leave(file: &Path, what: &impl Serialize) -> io::Result<()> {
    let partial = file.with_extension("part");
    // Which hosts a network has is not for every user of the machine.
    let mut out =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    out.write_all(&serde_json::to_vec(what)?)?;
    fs::rename(partial, file)
}

/// Reads and removes the MAC addresses that [`leave_learnt`] left; none if the daemon before is of a version that leaves nothing.
pub fn take_learnt(file: &Path) -> io::Result<Vec<MacAddress>> {
    take(file)
}

/// Reads and removes the labels, by network.
pub fn take_labels(learnt: &Path) -> io::Result<BTreeMap<String, Vec<LabelRow>>> {
    take(&labels_beside(learnt))
}

fn take<T: DeserializeOwned + Default>(file: &Path) -> io::Result<T> {
    let bytes = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        bytes => bytes?,
    };
    fs::remove_file(file)?;
    Ok(serde_json::from_slice(&bytes)?)
}
