//! Several captures as one stream in order of time.
//!
//! Flow: captures (one per port) → `MergedCaptures` → batches. Order: time, then the order in which the captures
//! were given, then the packet's place in its capture. A capture whose packets are in order is streamed; one that
//! is not (or is not a regular file) is read into memory and sorted, so the result is the stable sort of all
//! packets either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::{Batch, CaptureInfo, CaptureReader, Frame, PortError, Resolution, scan};

/// Packets read ahead from a capture at a time.
const READ_AHEAD_PACKETS: usize = 256;

/// A merged frame and its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergedFrame<'a> {
    /// Index of the capture in the order given.
    pub source: usize,
    /// The frame.
    pub frame: Frame<'a>,
}

struct Source {
    path: PathBuf,
    info: CaptureInfo,
    /// `None` means that the whole capture is already in `ahead`.
    reader: Option<CaptureReader>,
    ahead: Batch,
    next: usize,
}

impl Source {
    fn open(path: &Path) -> Result<Self, PortError> {
        let path = path.to_owned();
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            let info = scan(&path)?;
            if info.in_order {
                return Ok(Self { path, info, reader: None, ahead: Batch::new(), next: 0 });
            }
        }
        let mut reader = CaptureReader::open(&path)?;
        let mut ahead = Batch::new();
        while reader.receive(&mut ahead, READ_AHEAD_PACKETS)? > 0 {}
        let info = CaptureInfo {
            packets: reader.packets(),
            cut: reader.cut(),
            resolution: reader.resolution(),
            in_order: false,
        };
        ahead.sort_by_time();
        Ok(Self { path, info, reader: None, ahead, next: 0 })
    }

    /// Reads ahead so that `head` has a frame; `false` at the end.
    fn fill(&mut self) -> Result<bool, PortError> {
        if self.next < self.ahead.len() {
            return Ok(true);
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        self.ahead.clear();
        self.next = 0;
        Ok(reader.receive(&mut self.ahead, READ_AHEAD_PACKETS)? > 0)
    }

    fn head(&self) -> Option<Frame<'_>> {
        self.ahead.get(self.next)
    }
}

/// Captures merged by time.
pub struct MergedCaptures {
    sources: Vec<Source>,
    /// Captures that have a packet, by (the packet's time, the capture's index).
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl MergedCaptures {
    /// Reads every capture once, so that damage is found before any work starts, and prepares to merge them.
    ///
    /// # Errors
    /// As [`scan`].
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, PortError> {
        let mut sources =
            paths.iter().map(|path| Source::open(path.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let mut heads = BinaryHeap::new();
        for (index, source) in sources.iter_mut().enumerate() {
            if source.info.in_order {
                source.reader = Some(CaptureReader::open(&source.path)?);
            }
            if source.fill()?
                && let Some(frame) = source.head()
            {
                heads.push(Reverse((frame.time_ns, index)));
            }
        }
        Ok(Self { sources, heads })
    }

    /// Summary of capture number `index`.
    #[must_use]
    pub fn info(&self, index: usize) -> Option<CaptureInfo> {
        self.sources.get(index).map(|source| source.info)
    }

    /// Packets in all captures.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.sources.iter().map(|source| source.info.packets).sum()
    }

    /// The finest resolution of all captures, which preserves every time.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.sources.iter().map(|source| source.info.resolution).max().unwrap_or_default()
    }

    /// Passes the next frame to `take`; `false` when all captures have ended.
    ///
    /// # Errors
    /// As [`CaptureReader::next_frame`] (the file changed since it was opened).
    pub fn next_frame(&mut self, take: impl FnOnce(MergedFrame<'_>)) -> Result<bool, PortError> {
        let Some(Reverse((_, index))) = self.heads.pop() else { return Ok(false) };
        let Some(source) = self.sources.get_mut(index) else { return Ok(false) };
        if let Some(frame) = source.head() {
            take(MergedFrame { source: index, frame });
        }
        source.next += 1;
        if source.fill()?
            && let Some(frame) = source.head()
        {
            self.heads.push(Reverse((frame.time_ns, index)));
        }
        Ok(true)
    }
}
