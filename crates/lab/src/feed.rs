//! The frames of a port, from a capture or a generator, one after another.

use std::path::PathBuf;

use hue_demux::PortId;
use hue_ports::{CaptureReader, scan};
use hue_substrate::Program;

use crate::error::LabError;
use crate::synthetic::Generator;
use crate::traffic::Source;

/// A source of frames.
pub enum Feed {
    /// Generated frames, without end.
    Made(Generator),
    /// The frames of a capture.
    Capture {
        /// The file.
        path: PathBuf,
        /// The reader of the file.
        reader: Box<CaptureReader>,
        /// Whether it starts again after its end.
        again: bool,
    },
}

impl Feed {
    /// Opens the source of stream number `stream`. Returns it with the number of truncated frames in the
    /// capture. Captures repeat if `again` is set.
    pub fn open(
        source: &Source,
        stream: usize,
        port: PortId,
        programs: &[&Program],
        ports: &[String],
        again: bool,
    ) -> Result<(Self, u64), LabError> {
        let fault = |what| LabError::Traffic { port: name(ports, port), what };
        match source {
            Source::Synthetic(spec) => {
                let stream = u16::try_from(stream).map_err(|_| LabError::Plan("more than 65536 streams"))?;
                let made = Generator::new(spec, port, programs, ports).map_err(fault)?;
                Ok((Self::Made(made.of_stream(stream)), 0))
            }
            Source::Capture(path) => {
                // Detect a damaged file now, not in the middle of an experiment.
                let info = scan(path)?;
                if info.packets == 0 {
                    return Err(fault(format!("{} has no packets", path.display())));
                }
                let reader = Box::new(CaptureReader::open(path)?);
                Ok((Self::Capture { path: path.clone(), reader, again }, info.cut))
            }
        }
    }

    /// Writes the next frame to `frame`. Returns `false` at the end.
    pub fn next(&mut self, frame: &mut Vec<u8>) -> Result<bool, LabError> {
        match self {
            Self::Made(generator) => {
                generator.next(frame);
                Ok(true)
            }
            Self::Capture { path, reader, again } => {
                if read(reader, frame)? {
                    return Ok(true);
                }
                if !*again {
                    return Ok(false);
                }
                **reader = CaptureReader::open(path)?;
                read(reader, frame)
            }
        }
    }
}

fn read(reader: &mut CaptureReader, frame: &mut Vec<u8>) -> Result<bool, LabError> {
    Ok(reader.next_frame(|read| {
        frame.clear();
        frame.extend_from_slice(read.bytes);
    })?)
}

/// The name of a port.
pub fn name(ports: &[String], port: PortId) -> String {
    ports.get(port.index()).cloned().unwrap_or_else(|| format!("port {port}"))
}
