//! `hueplane logs`: the log of a daemon in the background.
//!
//! Flow: the daemon says where its log is; if none answers, the file of the run directory → the last lines of the older
//! file and this one → with `--follow`, what comes. Invariants: only whole lines are printed while more may come; a file
//! is read to its end before the next one, which is found by its inode.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hueplaned::api::{LogPlace, LogTarget};
use hueplaned::client::ClientError;
use hueplaned::log::{LOG, older};

use super::{client, socket};
use crate::cli::{Connection, Logs};
use crate::failure::Failure;

/// Interval of checks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes that are read at once while following.
const CHUNK: usize = 64 << 10;

/// Runs the command.
pub fn logs(args: &Logs, connection: &Connection) -> Result<(), Failure> {
    if let Some(server) = &connection.server {
        return Err(Failure::Usage(format!(
            "logs: reads a file on the daemon's machine, and cannot read it through {server}: log in there and run \
             `hueplane logs`"
        )));
    }
    let path = find(connection)?;
    let (lines, mut reader) = last(&path, args)?;
    print(&lines)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        let new = reader.read(&path)?;
        if new.is_empty() {
            std::thread::sleep(POLL_INTERVAL);
        } else {
            print(&new)?;
        }
    }
}

/// The log file.
fn find(connection: &Connection) -> Result<PathBuf, Failure> {
    let socket = socket(connection);
    let usual = socket.parent().unwrap_or(Path::new("")).join(LOG);
    match client(connection)?.status() {
        Ok(status) => match status.log {
            Some(LogPlace { to: LogTarget::File, path: Some(path), .. }) => Ok(path.into()),
            Some(place) => Err(Failure::Broken(elsewhere(&place))),
            // An older daemon does not say where.
            None => Ok(usual),
        },
        Err(error @ ClientError::NotRunning { .. }) if usual.exists() => {
            anstream::eprintln!(
                "hueplane: {error}\nhueplane: this is the log of the last daemon that `hueplane up --detach` started"
            );
            Ok(usual)
        }
        Err(error) => Err(error.into()),
    }
}

/// Where else the log is, and how to read it.
fn elsewhere(place: &LogPlace) -> String {
    let path = place.path.as_deref();
    match place.to {
        LogTarget::Journal => {
            let unit = place.unit.as_deref().unwrap_or("hueplane");
            format!(
                "the daemon writes its log to the journal of systemd: `journalctl -u {unit}`, with -f to follow"
            )
        }
        LogTarget::Terminal => format!(
            "the daemon writes its log to the terminal {} in which it runs; `hueplane up --detach` writes a file instead",
            path.unwrap_or("")
        ),
        LogTarget::File | LogTarget::Stderr => {
            // Pipes and sockets have no path.
            let place = path.map_or_else(
                || "a pipe or socket of the program that started it; look there".to_owned(),
                |path| format!("{path}; read it with `tail -f {path}`"),
            );
            format!("the daemon writes its log to standard error, which is {place}")
        }
        LogTarget::None => {
            "the daemon writes no log: its standard error is /dev/null, or it runs inside another program"
                .to_owned()
        }
    }
}

/// The last lines, and the file behind them. Without `follow`, a line whose end is not there yet is one, too.
fn last(path: &Path, args: &Logs) -> Result<(Vec<u8>, Reader), Failure> {
    let count = args.lines;
    let failed = |error| Failure::Input(format!("{}: cannot be read: {error}", path.display()));
    let mut reader = Reader::open(path).map_err(failed)?;
    let mut new = reader.read_file().map_err(failed)?;
    if !args.follow {
        new.append(&mut reader.rest);
    }
    let mut old = Vec::new();
    if new.iter().filter(|byte| **byte == b'\n').count() < count {
        match Reader::open(&older(path)) {
            // The daemon may have begun a new file meanwhile: then the older file is the one that was read.
            Ok(before) if before.id == reader.id => {}
            Ok(mut before) => {
                old = before.read_file().map_err(failed)?;
                // Nothing is appended to it any more.
                old.append(&mut before.rest);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Failure::Input(format!("{}: cannot be read: {error}", older(path).display())));
            }
        }
    }
    old.extend(new);
    let from = tail(&old, count);
    Ok((old.split_off(from), reader))
}

/// Where the last `count` lines begin.
fn tail(text: &[u8], count: usize) -> usize {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    match count.checked_sub(1) {
        None => text.len(),
        Some(before) => {
            let mut ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
            ends.nth(before).map_or(0, |(at, _)| at + 1)
        }
    }
}

/// A log file that is being read.
struct Reader {
    file: File,
    /// Device and inode.
    id: (u64, u64),
    /// Bytes read.
    at: u64,
    /// The beginning of a line whose end is not there yet.
    rest: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let id = id(&file.metadata()?);
        Ok(Self { file, id, at: 0, rest: Vec::new() })
    }

    /// Whole lines to the end of the file.
    fn read_file(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let lines = self.read_chunk()?;
            if lines.is_empty() {
                return Ok(all);
            }
            all.extend(lines);
        }
    }

    /// Whole lines that have come; of the next file, once this one is at its end and another has its name.
    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        let failed = |error| Failure::Input(format!("{}: cannot be read: {error}", path.display()));
        // First: what is written before the new file appears is in the old one.
        let next = match fs::metadata(path) {
            Ok(found) => (id(&found) != self.id).then_some(()),
            // Between the two steps in which it is replaced, or removed with the run directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if self.file.metadata().map_err(failed)?.len() < self.at {
            // The daemon empties a file that it cannot replace.
            (self.at, self.rest) = (self.file.seek(SeekFrom::Start(0)).map_err(failed)?, Vec::new());
        }
        let mut lines = self.read_chunk().map_err(failed)?;
        if lines.is_empty() && next.is_some() {
            let follower = match Self::open(path) {
                Ok(next) => next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(lines),
                Err(error) => return Err(failed(error)),
            };
            let replaced = std::mem::replace(self, follower);
            lines = replaced.rest;
            let previous = fs::metadata(older(path)).ok().map(|found| id(&found));
            if previous.is_some_and(|previous| previous != replaced.id) {
                anstream::eprintln!(
                    "hueplane: lines are missing here: the daemon has begun several files since the last line"
                );
            }
            lines.extend(self.read_chunk().map_err(failed)?);
        }
        Ok(lines)
    }

    /// The next whole lines; empty only at the end of the file.
    fn read_chunk(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let before = self.rest.len();
            let read = (&mut self.file).take(CHUNK as u64).read_to_end(&mut self.rest)?;
            self.at += read as u64;
            if read == 0 {
                return Ok(Vec::new());
            }
            if let Some(end) = self.rest[before..].iter().rposition(|byte| *byte == b'\n') {
                let rest = self.rest.split_off(before + end + 1);
                return Ok(std::mem::replace(&mut self.rest, rest));
            }
        }
    }
}

fn id(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let text = b"one\ntwo\nthree\n";
        let from = |count| std::str::from_utf8(&text[tail(text, count)..]).unwrap();
        assert_eq!((from(0), from(1), from(2)), ("", "three\n", "two\nthree\n"));
        assert_eq!((from(3), from(9)), ("one\ntwo\nthree\n", "one\ntwo\nthree\n"));
        assert_eq!((tail(b"", 3), tail(b"\n\n", 1)), (0, 1));
    }
}
