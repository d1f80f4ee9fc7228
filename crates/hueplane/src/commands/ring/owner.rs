//! The network as hueplane has it: a socket in the network's namespace says which ports and labels it has, and takes the labels
//! that were learnt.
//!
//! Invariants: labels are sent whole, one line at a time, the next one when the last was answered; if the connection ends it
//! is made again, and they are sent again.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hueplaned::labels::{FromDaemon, LINE_BYTES_MAX, LabelRow, Learnt, Offer, address};

use crate::failure::Failure;

/// How long hueplane may take at the start.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause before the connection is made again.
const AGAIN: Duration = Duration::from_millis(500);
/// Shortest time between two lines.
const GAP: Duration = Duration::from_millis(50);

/// See the head of this file.
pub struct Owner {
    stream: Option<UnixStream>,
    read: Vec<u8>,
    /// What was sent last, in this connection.
    sent: Option<Vec<LabelRow>>,
    wanted: Vec<LabelRow>,
    /// Whether an answer is due.
    waits: bool,
    next: Instant,
    /// Entries of the network, as hueplane said last.
    pub entries: usize,
    /// Why labels were refused, if they were.
    pub refused: Option<String>,
}

impl Owner {
    /// Waits for hueplane at the start, and says which network this is.
    pub fn find() -> Result<(Self, Offer), Failure> {
        let now = Instant::now();
        let mut owner = Self {
            stream: None,
            read: Vec::new(),
            sent: None,
            wanted: Vec::new(),
            waits: false,
            next: now,
            entries: 0,
            refused: None,
        };
        loop {
            match connect() {
                Ok(stream) => owner.stream = Some(stream),
                Err(_) if now.elapsed() < PATIENCE => {}
                Err(error) => {
                    return Err(Failure::NoDaemon(format!(
                        "no hueplane takes labels in this network namespace: {error}; start this command in a network of kind rofl: \
                         `hueplane exec NETWORK -- hueplane rofl-ring`"
                    )));
                }
            }
            while owner.stream.is_some() && now.elapsed() < PATIENCE {
                if let Some(offer) = owner.hear().pop() {
                    return Ok((owner, offer));
                }
                std::thread::sleep(GAP);
            }
            if let Some(error) = owner.refused.take() {
                return Err(Failure::NoDaemon(format!(
                    "hueplane takes no labels from this command: {error}"
                )));
            }
            std::thread::sleep(GAP);
        }
    }

    /// To wait for.
    pub fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// Reads what hueplane says. Returns the networks that it described.
    pub fn hear(&mut self) -> Vec<Offer> {
        let mut offers = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while let Some(mut stream) = self.stream.as_ref() {
            match stream.read(&mut piece) {
                Ok(count) if count > 0 && self.read.len() < LINE_BYTES_MAX => {
                    self.read.extend_from_slice(piece.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                _ => {
                    (self.stream, self.sent, self.waits) = (None, None, false);
                    self.next = Instant::now() + AGAIN;
                }
            }
        }
        while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.read.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(FromDaemon::Network(offer)) => offers.push(offer),
                Ok(FromDaemon::Applied { entries }) => {
                    (self.waits, self.entries, self.refused) = (false, entries, None);
                }
                Ok(FromDaemon::Refused { error }) => {
                    if self.refused.as_ref() != Some(&error) {
                        super::note(&format!("hueplane refuses the labels: {error}"));
                    }
                    (self.waits, self.refused) = (false, Some(error));
                }
                Err(error) => {
                    super::note(&format!("hueplane says what this version does not understand: {error}"))
                }
            }
        }
        offers
    }

    /// These are the labels from now on.
    pub fn want(&mut self, labels: Vec<LabelRow>) {
        self.wanted = labels;
    }

    /// When [`Owner::tell`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        let has_more = self.sent.as_ref() != Some(&self.wanted);
        (self.stream.is_none() || (has_more && !self.waits)).then_some(self.next)
    }

    /// Connects again, and sends labels, if it is time to.
    pub fn tell(&mut self) {
        let now = Instant::now();
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        if self.stream.is_none() {
            self.read.clear();
            self.stream = connect().ok();
        }
        self.next = now + if self.stream.is_some() { GAP } else { AGAIN };
        let Some(stream) = &self.stream else { return };
        let line = Learnt { labels: self.wanted.clone() };
        let written = write(stream, &line);
        (self.sent, self.waits) = (Some(line.labels), true);
        if written.is_err() {
            (self.stream, self.sent, self.waits) = (None, None, false);
        }
    }

    /// Takes all labels back.
    pub fn end(&mut self) {
        if let Some(stream) = &self.stream {
            let _ = write(stream, &Learnt { labels: Vec::new() });
        }
    }
}

fn connect() -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address()?)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn write(mut stream: &UnixStream, line: &Learnt) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // Reads do not wait, writes do, for a while.
    stream.set_nonblocking(false)?;
    let written = stream.write_all(&text);
    stream.set_nonblocking(true)?;
    written
}
