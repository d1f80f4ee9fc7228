//! Opens a file: plain, gzip or xz (detected by its first bytes), with a limit on its decompressed size.
//!
//! Invariant: the reader never returns more than [`DECOMPRESSED_BYTES_MAX`] bytes; beyond that, it fails with
//! an error of kind `FileTooLarge`. Path `-` is standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::RoutingError;

/// Largest decompressed file, in bytes: ten times a full table with paths.
pub const DECOMPRESSED_BYTES_MAX: u64 = 4 << 30;

/// Most memory that an xz file can request for decompression, in KiB: more than `xz -9` needs.
pub const XZ_MEMORY_KIB_MAX: u32 = 256 << 10;

const BUFFER_BYTES: usize = 128 << 10;

/// Number of bytes that are examined at the start of a file.
const HEAD_BYTES: u64 = 16;

/// Compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Plain,
    Gzip,
    Xz,
}

/// An opened file.
pub(crate) struct Source {
    path: PathBuf,
    format: Format,
    /// The first bytes after decompression; the reader returns them again.
    pub(crate) head: Vec<u8>,
    pub(crate) reader: BufReader<Box<dyn Read>>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, RoutingError> {
        let path = path.to_owned();
        let read = |source| RoutingError::Read { path: path.clone(), source };
        let raw: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let file = File::open(&path).map_err(read)?;
            if file.metadata().map_err(read)?.is_dir() {
                return Err(read(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            Box::new(file)
        };
        let (magic, raw) = peek(raw).map_err(read)?;
        let raw = BufReader::with_capacity(BUFFER_BYTES, raw);
        let (format, plain): (_, Box<dyn Read>) = match magic.as_slice() {
            [0x1f, 0x8b, ..] => (Format::Gzip, Box::new(MultiGzDecoder::new(raw))),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                (Format::Xz, Box::new(XzReader::new_mem_limit(raw, true, XZ_MEMORY_KIB_MAX)))
            }
            _ => (Format::Plain, Box::new(raw)),
        };
        let bounded = Bounded { inner: plain, left: DECOMPRESSED_BYTES_MAX };
        let mut source = Self {
            path: path.clone(),
            format,
            head: Vec::new(),
            reader: BufReader::new(Box::new(io::empty())),
        };
        let (head, rest) = peek(Box::new(bounded)).map_err(|error| source.error(error))?;
        source.head = head;
        source.reader = BufReader::with_capacity(BUFFER_BYTES, rest);
        Ok(source)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Translates an error of the reader.
    pub(crate) fn error(&self, error: io::Error) -> RoutingError {
        let path = self.path.clone();
        let format = match self.format {
            _ if error.kind() == io::ErrorKind::FileTooLarge => return RoutingError::TooLarge { path },
            Format::Plain => return RoutingError::Read { path, source: error },
            Format::Gzip => "gzip",
            Format::Xz => "xz",
        };
        RoutingError::Compressed { path, format, reason: error.to_string() }
    }

    /// Reads through the next newline into `line` (cleared first), but stores at most `keep` bytes. Returns
    /// the full length of the line; 0 at the end of the file.
    pub(crate) fn line(&mut self, line: &mut Vec<u8>, keep: usize) -> io::Result<usize> {
        line.clear();
        let mut whole = 0;
        loop {
            let chunk = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let newline = memchr::memchr(b'\n', chunk);
            let used = newline.map_or(chunk.len(), |at| at + 1);
            let kept = used.min(keep.saturating_sub(line.len()));
            line.extend_from_slice(chunk.get(..kept).unwrap_or_default());
            whole += used;
            self.reader.consume(used);
            if newline.is_some() || used == 0 {
                return Ok(whole);
            }
        }
    }
}

/// Returns the first bytes of a reader, and a reader that returns them again.
fn peek(mut reader: Box<dyn Read>) -> io::Result<(Vec<u8>, Box<dyn Read>)> {
    let mut head = Vec::new();
    (&mut reader).take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(reader))))
}

/// A reader that fails after more than `left` bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_data_is_an_error() {
        let mut read = Vec::new();
        let mut bounded = Bounded { inner: io::repeat(b'x').take(10), left: 10 };
        assert_eq!(bounded.read_to_end(&mut read).unwrap(), 10);
        let mut bounded = Bounded { inner: io::repeat(b'x').take(11), left: 10 };
        assert_eq!(bounded.read_to_end(&mut read).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
