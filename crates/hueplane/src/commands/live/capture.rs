//! `hueplane capture`: writes the daemon's pcapng stream to a file or a pipe.
//!
//! Writes only complete blocks, so that the file is valid whenever the command ends: after --count packets,
//! on Ctrl-C, when the reader of the pipe ends, or with the daemon.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hueplaned::api::CaptureFilter;

use super::client;
use crate::cli::{Capture, Connection};
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::print::count;

/// Interval of checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Type of a block with a packet (pcapng §4.3).
const PACKET_BLOCK: u32 = 6;
/// Largest block that the daemon sends: a frame, its options, and some reserve.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Runs the command.
pub fn capture(args: &Capture, connection: &Connection) -> Result<(), Failure> {
    let client = client(connection)?;
    let filter = CaptureFilter {
        network: args.network.clone(),
        port: args.port.clone(),
        count: args.count,
        snap: args.snap,
    };
    let mut stream = client.capture(&filter)?;
    let (mut out, path) = output(args)?;
    let asked = interrupted()?;
    let mut blocks = Blocks::default();
    let written = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Stdout(error)),
        Err(source) => Err(Failure::Output { path: path.clone(), source }),
        Ok(()) => Ok(()),
    };
    let ended = loop {
        if asked.load(Ordering::SeqCst) {
            break Ok(());
        }
        match stream.piece(Some(POLL_INTERVAL)) {
            Ok(None) => {}
            Ok(Some(piece)) if piece.is_empty() => break Ok(()),
            Ok(Some(piece)) => written(blocks.add(&piece, &mut out))?,
            Err(error) => break Err(error),
        }
    };
    written(out.flush())?;
    eprintln!("hueplane: {}", count(blocks.packets, "packet"));
    let wanted = args.count.is_none_or(|count| blocks.packets >= count);
    match ended {
        Err(error) => Err(error.into()),
        Ok(()) if wanted || asked.load(Ordering::SeqCst) => Ok(()),
        Ok(()) => Err(Failure::NoDaemon(format!("{}: the daemon ended the capture", client.target()))),
    }
}

fn output(args: &Capture) -> Result<(Box<dyn Write>, PathBuf), Failure> {
    if args.file.as_os_str() == "-" {
        return Ok((Box::new(io::stdout().lock()), "standard output".into()));
    }
    match File::create(&args.file) {
        Ok(file) => Ok((Box::new(file), args.file.clone())),
        Err(source) => Err(Failure::Output { path: args.file.clone(), source }),
    }
}

/// Splits a stream into pcapng blocks.
#[derive(Default)]
struct Blocks {
    rest: Vec<u8>,
    packets: u64,
}

impl Blocks {
    /// Writes the complete blocks.
    fn add(&mut self, piece: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.rest.extend_from_slice(piece);
        let mut whole = 0;
        while let Some((kind, length)) = self.rest.get(whole..).and_then(head) {
            if !(12..=BLOCK_BYTES_MAX).contains(&length) {
                return Err(io::Error::other("the daemon sent invalid pcapng data"));
            }
            if self.rest.len() - whole < length {
                break;
            }
            self.packets += u64::from(kind == PACKET_BLOCK);
            whole += length;
        }
        out.write_all(&self.rest[..whole])?;
        self.rest.drain(..whole);
        out.flush()
    }
}

/// Type and length of the first block, both little-endian, as the daemon writes them.
fn head(bytes: &[u8]) -> Option<(u32, usize)> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|word| word.first_chunk::<4>().copied());
    Some((u32::from_le_bytes(word(0)?), usize::try_from(u32::from_le_bytes(word(4)?)).ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn block(kind: u32, length: u32) -> Vec<u8> {
        let mut block = kind.to_le_bytes().to_vec();
        block.extend(length.to_le_bytes());
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        block
    }

    #[test]
    fn only_complete_blocks_are_written() {
        let stream: Vec<u8> = [(0x0a0d_0d0a, 28), (1, 20), (6, 60), (6, 32)]
            .into_iter()
            .flat_map(|(kind, length)| block(kind, length))
            .collect();
        for size in 1..=stream.len() {
            let (mut blocks, mut out) = (Blocks::default(), Vec::new());
            for piece in stream[..stream.len() - 1].chunks(size) {
                blocks.add(piece, &mut out).unwrap();
            }
            assert_eq!((out.as_slice(), blocks.packets), (&stream[..108], 1));
            blocks.add(&stream[stream.len() - 1..], &mut out).unwrap();
            assert_eq!((out.as_slice(), blocks.packets), (&stream[..], 2));
        }
        assert!(Blocks::default().add(&[0; 12], &mut Vec::new()).is_err());
    }
}
