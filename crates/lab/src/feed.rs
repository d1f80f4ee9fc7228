//! The frames of a port, one after the other, from a capture or made.

use std::path::PathBuf;

use hue_demux::PortId;
use hue_ports::{CaptureReader, scan};
use hue_substrate::Program;

use crate::error::LabError;
use crate::synthetic::Generator;
use crate::traffic::Source;

/// Frames of a port.
pub enum Feed {
    /// Made; there is no end.
    Made(Generator),
    /// Of a capture.
    Capture {
        /// The file.
        path: PathBuf,
        /// Being read.
        reader: Box<CaptureReader>,
        /// Whether it begins again at its end.
        again: bool,
    },
}

impl Feed {
    /// Opens a source, and says how many frames a capture had cut short. Captures begin again at their end if `again`.
    pub fn open(
        source: &Source,
        port: PortId,
        programs: &[&Program],
        ports: &[String],
        again: bool,
    ) -> Result<(Self, u64), LabError> {
        let fault = |what| LabError::Traffic { port: name(ports, port), what };
        match source {
            Source::Synthetic(spec) => {
                let made = Generator::new(spec, port, programs, ports);
                Ok((Self::Made(made.map_err(fault)?), 0))
            }
            Source::Capture(path) => {
                // Damage is found now, not in the middle of an experiment.
                let info = scan(path)?;
                if info.packets == 0 {
                    return Err(fault(format!("{} has no packets", path.display())));
                }
                let reader = Box::new(CaptureReader::open(path)?);
                Ok((Self::Capture { path: path.clone(), reader, again }, info.cut))
            }
        }
    }

    /// Puts the next frame into `frame`; `false` at the end.
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

/// Name of a port.
pub fn name(ports: &[String], port: PortId) -> String {
    ports.get(port.index()).cloned().unwrap_or_else(|| format!("port {port}"))
}
