//! A batch of frames in one arena, as a port hands it over.
//!
//! Invariant: `metas` are in push order and each lies inside `bytes`. No allocation once the arena has grown.

/// One frame, borrowed. Bytes start at the destination MAC; the frame check sequence is absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// When it was received, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Length on the wire in bytes; larger than `bytes` when the capture cut the frame.
    pub wire_len: u32,
}

impl Frame<'_> {
    /// Whether the capture kept only the beginning of the frame.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.wire_len as usize) > self.bytes.len()
    }
}

#[derive(Clone, Copy, Debug)]
struct Meta {
    start: usize,
    len: usize,
    time_ns: u64,
    wire_len: u32,
}

/// Frames in the order they were received.
#[derive(Clone, Default, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    metas: Vec<Meta>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy of `frame`.
    pub fn push(&mut self, frame: Frame<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame.bytes);
        self.metas.push(Meta {
            start,
            len: frame.bytes.len(),
            time_ns: frame.time_ns,
            wire_len: frame.wire_len,
        });
    }

    /// Removes all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.metas.clear();
    }

    /// How many frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.metas.len()
    }

    /// Whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// Frame number `index`, counted from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Frame<'_>> {
        let meta = self.metas.get(index)?;
        let bytes = self.bytes.get(meta.start..meta.start + meta.len)?;
        Some(Frame { bytes, time_ns: meta.time_ns, wire_len: meta.wire_len })
    }

    /// All frames in order.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Sorts by time; frames of equal time keep their order.
    pub(crate) fn sort_by_time(&mut self) {
        self.metas.sort_by_key(|meta| meta.time_ns);
    }
}
