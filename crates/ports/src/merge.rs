//! Several captures as one stream in the order of time.
//!
//! Flow: captures (one a port) → `MergedCaptures` → batches. Order: time, then the order the captures were
//! given in, then the packet's place in its capture. A capture whose packets are in order is streamed; one that
//! is not (or is no regular file) is read into memory and sorted, so the result is the stable sort of all
//! packets either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::{Batch, CaptureInfo, CaptureReader, Frame, PortError, Resolution, scan};

/// Packets read ahead from a capture at a time.
const READ_AHEAD_PACKETS: usize = 256;

/// Where a merged frame came from.
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
    /// `None`: everything is in `ahead` already.
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

    /// Makes `head` answer; `false` at the end.
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
    /// Captures that have a packet, by (its time, the capture's place).
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl MergedCaptures {
    /// Reads every capture once, so that damage is found before any work starts, and gets ready to merge them.
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

    /// What capture number `index` holds.
    #[must_use]
    pub fn info(&self, index: usize) -> Option<CaptureInfo> {
        self.sources.get(index).map(|source| source.info)
    }

    /// Packets in all captures.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.sources.iter().map(|source| source.info.packets).sum()
    }

    /// The finest resolution of all captures: what keeps every time as it was.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.sources.iter().map(|source| source.info.resolution).max().unwrap_or_default()
    }

    /// Hands the next frame to `take`; `false` when all captures have ended.
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
