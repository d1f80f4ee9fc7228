//! The log file of a daemon in the background.
//!
//! Flow: `hueplane up --detach` opens the file as the standard output and error of the daemon. The daemon writes its log to it,
//! and begins a new file when this one is full. Invariants: the file has at most [`LOG_BYTES_MAX`] bytes of log, and one older
//! file is kept beside it. Standard error is always the current file, so it also contains output that bypasses the log, such
//! as a panic.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::api::{LogPlace, LogTarget};

/// Longest log file.
pub const LOG_BYTES_MAX: u64 = 8 << 20;
/// Ending of the name of the older file.
const OLDER: &str = ".1";

/// Name of the log file of a daemon in the background, in its run directory.
pub const LOG: &str = "hueplaned.log";

/// Where this process writes its log: to `file`, or else to standard error.
#[must_use]
pub fn place(file: Option<&Path>) -> LogPlace {
    let text = |path: &Path| Some(path.display().to_string());
    if let Some(file) = file {
        return LogPlace { to: LogTarget::File, path: text(file), unit: None };
    }
    // `man 5 systemd.exec`, JOURNAL_STREAM: device and inode of the journal's stream. It is inherited, so only the
    // comparison tells whether standard error still is that stream.
    let stderr =
        nix::sys::stat::fstat(io::stderr()).ok().map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    if stderr.is_some() && std::env::var("JOURNAL_STREAM").ok() == stderr {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        return LogPlace { to: LogTarget::Journal, path: None, unit: unit(&groups) };
    }
    let path = fs::read_link("/proc/self/fd/2").ok().filter(|path| path.is_absolute());
    if path.as_deref() == Some(Path::new("/dev/null")) {
        return LogPlace::none();
    }
    let to = if io::stderr().is_terminal() { LogTarget::Terminal } else { LogTarget::Stderr };
    LogPlace { to, path: path.as_deref().and_then(text), unit: None }
}

/// The service in a list of control groups such as `0::/system.slice/hueplane.service`.
fn unit(groups: &str) -> Option<String> {
    let mut parts =
        groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/'));
    parts.find(|part| part.ends_with(".service")).map(str::to_owned)
}

/// Opens a log file to append to it, or a new one if it is full.
///
/// # Errors
/// If the file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= LOG_BYTES_MAX) {
        return begin(path);
    }
    append(path)
}

/// A log file that is replaced by a new one when it is full.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// Bytes in the file.
    length: u64,
    length_max: u64,
    /// Whether standard output and error follow the file.
    is_standard: bool,
}

impl LogFile {
    /// The file that already is the standard output and error of this process.
    pub fn standard(path: PathBuf) -> io::Result<Self> {
        Self::new(path, LOG_BYTES_MAX, true)
    }

    fn new(path: PathBuf, length_max: u64, is_standard: bool) -> io::Result<Self> {
        let file = append(&path)?;
        let length = file.metadata()?.len();
        Ok(Self { path, file, length, length_max, is_standard })
    }

    fn replace(&mut self) -> io::Result<()> {
        self.file = begin(&self.path)?;
        self.length = 0;
        if self.is_standard {
            nix::unistd::dup2_stdout(&self.file)?;
            nix::unistd::dup2_stderr(&self.file)?;
        }
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.length > 0 && self.length + line.len() as u64 > self.length_max && self.replace().is_err() {
            // A new file cannot be created: empty this one, so that it does not fill the disk.
            self.file.set_len(0)?;
            self.length = 0;
        }
        let written = self.file.write(line)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Renames the file to that of the older log, and begins a new one.
fn begin(path: &Path) -> io::Result<File> {
    fs::rename(path, older(path))?;
    append(path)
}

/// The older file beside a log file.
#[must_use]
pub fn older(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(OLDER);
    name.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_the_journal_is_that_of_the_control_group() {
        assert_eq!(unit("0::/system.slice/hueplane.service\n").as_deref(), Some("hueplane.service"));
        assert_eq!(unit("4:pids:/a.slice/b.service/x\n1:name=systemd:/\n").as_deref(), Some("b.service"));
        assert_eq!((unit("0::/user.slice/session-1.scope"), unit("")), (None, None));
        let file = place(Some(Path::new("/run/log")));
        assert_eq!((file.to, file.path.as_deref()), (LogTarget::File, Some("/run/log")));
    }

    #[test]
    fn a_full_log_becomes_the_older_file_and_a_new_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "1234\n").unwrap();
        let mut log = LogFile::new(path.clone(), 10, false).unwrap();
        let mut says = |line: &str| {
            log.write_all(line.as_bytes()).unwrap();
            let old = fs::read_to_string(older(&path)).unwrap_or_default();
            (old, fs::read_to_string(&path).unwrap())
        };
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        assert_eq!(says("abcd\n"), pair("", "1234\nabcd\n"), "exactly full");
        assert_eq!(says("e\n"), pair("1234\nabcd\n", "e\n"));
        assert_eq!(says("longer than the file\n"), pair("e\n", "longer than the file\n"), "never cut");
        assert_eq!(says("f\n"), pair("longer than the file\n", "f\n"), "one older file");
        assert_eq!(dir.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn a_log_whose_folder_is_gone_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogFile::new(path, 10, false).unwrap();
        drop(dir);
        for _ in 0..10 {
            log.write_all(b"123456\n").unwrap();
            assert!(log.file.metadata().unwrap().len() <= 10);
        }
    }

    #[test]
    fn a_full_file_is_not_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let length = |path: &Path| fs::metadata(path).unwrap().len();
        drop(open(&path).unwrap());
        File::options().write(true).open(&path).unwrap().set_len(LOG_BYTES_MAX - 1).unwrap();
        drop(open(&path).unwrap());
        assert_eq!(length(&path), LOG_BYTES_MAX - 1);
        File::options().write(true).open(&path).unwrap().set_len(LOG_BYTES_MAX).unwrap();
        drop(open(&path).unwrap());
        assert_eq!((length(&older(&path)), length(&path)), (LOG_BYTES_MAX, 0));
    }
}
