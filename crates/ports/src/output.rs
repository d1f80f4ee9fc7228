//! Writing captures: a directory of pcap files that appear complete or not at all.
//!
//! Flow: verdicts → `CaptureWriter` → temporary file → (commit) → DIR/NAME. Deterministic: little endian,
//! version 2.4, link type Ethernet, captured length = length on the wire; equal frames and times give equal
//! bytes. Invariant: before [`OutputDir::commit`] no file of that name is touched; a drop before it removes every
//! temporary file, and the directory too if it was created here.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pcap_file::pcap::{PcapHeader, PcapTsResolution, PcapWriteError, PcapWriter, RawPcapPacket};
use pcap_file::{DataLink, Endianness};
use tempfile::NamedTempFile;

use crate::{Frame, PortError, Resolution};

/// Snapshot length of the files written, bytes: the largest that readers commonly accept.
const SNAPLEN_BYTES: u32 = 262_144;

const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// One pcap file being written under a temporary name.
pub struct CaptureWriter {
    path: PathBuf,
    resolution: Resolution,
    writer: PcapWriter<BufWriter<NamedTempFile>>,
    packets: u64,
}

impl CaptureWriter {
    /// Starts a file that gets the name `path` when it is committed.
    pub(crate) fn create(path: PathBuf, resolution: Resolution) -> Result<Self, PortError> {
        let write = |source| PortError::Write { path: path.clone(), source };
        if path.is_dir() {
            return Err(write(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let dir = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".hueplane-")
            .suffix(".tmp")
            .permissions(Permissions::from_mode(0o666)) // the umask still applies
            .tempfile_in(dir)
            .map_err(|source| PortError::Write { path: dir.to_owned(), source })?;
        let header = PcapHeader {
            version_major: 2,
            version_minor: 4,
            ts_correction: 0,
            ts_accuracy: 0,
            snaplen: SNAPLEN_BYTES,
            datalink: DataLink::ETHERNET,
            ts_resolution: match resolution {
                Resolution::Micro => PcapTsResolution::MicroSecond,
                Resolution::Nano => PcapTsResolution::NanoSecond,
            },
            endianness: Endianness::Little,
        };
        let writer = PcapWriter::with_header(BufWriter::with_capacity(WRITE_BUFFER_BYTES, file), header)
            .map_err(|error| write_error(&path, error))?;
        Ok(Self { path, resolution, writer, packets: 0 })
    }

    /// Packets written so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The name that the file gets when it is committed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one frame.
    ///
    /// # Errors
    /// `Write` (a full disk), `Time` when the frame's time does not fit 32 bits of seconds.
    pub fn write(&mut self, frame: Frame<'_>) -> Result<(), PortError> {
        let time = || PortError::Time { path: self.path.clone(), time_ns: frame.time_ns };
        let ts_sec = u32::try_from(frame.time_ns / 1_000_000_000).map_err(|_| time())?;
        let rest_ns = (frame.time_ns % 1_000_000_000) as u32;
        let ts_frac = match self.resolution {
            Resolution::Micro => rest_ns / 1_000,
            Resolution::Nano => rest_ns,
        };
        let len = frame.bytes.len() as u32;
        let packet =
            RawPcapPacket { ts_sec, ts_frac, incl_len: len, orig_len: len, data: frame.bytes.into() };
        self.writer.write_raw_packet(&packet).map_err(|error| write_error(&self.path, error))?;
        self.packets += 1;
        Ok(())
    }

    /// Writes everything out and gives the file its name.
    pub(crate) fn commit(self) -> Result<PathBuf, PortError> {
        let (path, file) = self.finish()?;
        let renamed: Result<File, _> = file.persist(&path);
        renamed.map_err(|error| PortError::Write { path: path.clone(), source: error.error })?;
        Ok(path)
    }

    /// Flushes everything to the file, still under its temporary name.
    fn finish(self) -> Result<(PathBuf, NamedTempFile), PortError> {
        let path = self.path;
        match self.writer.into_inner().into_inner() {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(PortError::Write { path, source: error.into_error() }),
        }
    }
}

/// A directory to which captures are written, all of them or none.
pub struct OutputDir {
    path: PathBuf,
    /// Directories created here, innermost last; removed again when nothing is committed.
    made: Vec<PathBuf>,
    writers: Vec<CaptureWriter>,
    committed: bool,
}

impl OutputDir {
    /// Opens `path`, creating it and its parents if absent, and checks that it is writable.
    ///
    /// # Errors
    /// `Write` when it cannot be created, is not a directory or is read-only.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        let mut dir = Self { path: path.to_owned(), made: Vec::new(), writers: Vec::new(), committed: false };
        dir.make()?;
        let source_path = path.to_owned();
        NamedTempFile::with_prefix_in(".hueplane-", path)
            .and_then(NamedTempFile::close)
            .map_err(|source| PortError::Write { path: source_path, source })?;
        Ok(dir)
    }

    fn make(&mut self) -> Result<(), PortError> {
        let missing: Vec<PathBuf> = self
            .path
            .ancestors()
            .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
            .map(Path::to_owned)
            .collect();
        for dir in missing.into_iter().rev() {
            fs::create_dir(&dir).map_err(|source| PortError::Write { path: dir.clone(), source })?;
            self.made.push(dir);
        }
        Ok(())
    }

    /// Starts the file `name` and returns its index.
    ///
    /// # Errors
    /// `Write` when the file cannot be created.
    pub fn add(&mut self, name: &str, resolution: Resolution) -> Result<usize, PortError> {
        self.writers.push(CaptureWriter::create(self.path.join(name), resolution)?);
        Ok(self.writers.len() - 1)
    }

    /// The file to which [`OutputDir::add`] gave `index`.
    #[must_use]
    pub fn writer(&mut self, index: usize) -> Option<&mut CaptureWriter> {
        self.writers.get_mut(index)
    }

    /// Gives every file its final name, after all of them are completely written.
    ///
    /// # Errors
    /// `Write` when a buffer cannot be flushed (then no file appears) or a file cannot be renamed.
    pub fn commit(mut self) -> Result<Vec<PathBuf>, PortError> {
        let finished: Vec<(PathBuf, NamedTempFile)> =
            self.writers.drain(..).map(CaptureWriter::finish).collect::<Result<_, _>>()?;
        let mut paths = Vec::with_capacity(finished.len());
        for (path, file) in finished {
            let renamed: Result<File, _> = file.persist(&path);
            renamed.map_err(|error| PortError::Write { path: path.clone(), source: error.error })?;
            paths.push(path);
        }
        self.committed = true;
        Ok(paths)
    }
}

impl Drop for OutputDir {
    fn drop(&mut self) {
        self.writers.clear();
        if !self.committed {
            for dir in self.made.iter().rev() {
                // Best effort: a directory that someone else has put a file into stays.
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

fn write_error(path: &Path, error: PcapWriteError) -> PortError {
    let source = match error {
        PcapWriteError::Io(source) | PcapWriteError::FieldWriteFailed(_, source) => source,
        PcapWriteError::Validation(other) => io::Error::other(other),
    };
    PortError::Write { path: path.to_owned(), source }
}
