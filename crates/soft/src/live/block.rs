//! Numbers that one thread writes and any thread reads as a consistent snapshot, without a mutex.
//!
//! A sequence lock over atomic words on cache lines of their own: the writer never waits, a reader that overlaps a change
//! reads again. Source: Boehm, "Can seqlocks get along with programming language memory models?" (MSPC 2012).

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::SystemTime;

/// Words of one pair of cache lines: adjacent lines are fetched together.
#[repr(align(128))]
#[derive(Default, Debug)]
struct Line([AtomicU64; LINE_WORDS]);

const LINE_WORDS: usize = 16;

/// Words of one writer, behind a sequence lock.
#[derive(Debug)]
pub(crate) struct Block {
    /// Even while the words are consistent.
    sequence: AtomicU64,
    len: usize,
    lines: Box<[Line]>,
    /// When it was made: its numbers count from then on.
    pub since: SystemTime,
}

/// The words of a block, by index.
pub(crate) struct Words<'a>(&'a [Line]);

impl Words<'_> {
    #[inline(always)]
    pub fn get(&self, at: usize) -> Option<&AtomicU64> {
        self.0.get(at / LINE_WORDS).map(|line| &line.0[at % LINE_WORDS])
    }
}

impl Block {
    pub fn new(len: usize) -> Self {
        let lines = (0..len.div_ceil(LINE_WORDS)).map(|_| Line::default()).collect();
        Self { sequence: AtomicU64::new(0), len, lines, since: SystemTime::now() }
    }

    /// Changes words; readers see all changes or none. Only the single writer may call it.
    pub fn publish(&self, write: impl FnOnce(&Words<'_>)) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        write(&Words(&self.lines));
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Replaces the first words.
    pub fn publish_all(&self, values: &[u64]) {
        self.publish(|words| {
            for (at, value) in values.iter().enumerate() {
                if let Some(word) = words.get(at) {
                    word.store(*value, Ordering::Relaxed);
                }
            }
        });
    }

    /// A consistent snapshot of the words.
    pub fn read(&self) -> Vec<u64> {
        let words = Words(&self.lines);
        let mut copy = vec![0; self.len];
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                for (at, value) in copy.iter_mut().enumerate() {
                    *value = words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
                }
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return copy;
                }
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_reader_never_sees_half_a_publication() {
        let block = Arc::new(Block::new(40));
        let writer = block.clone();
        let thread = std::thread::spawn(move || (1..20_000).for_each(|n| writer.publish_all(&[n; 40])));
        let mut last = 0;
        while !thread.is_finished() {
            let words = block.read();
            assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
            assert!(words[0] >= last);
            last = words[0];
        }
        thread.join().unwrap();
        assert_eq!(block.read()[39], 19_999);
    }
}
