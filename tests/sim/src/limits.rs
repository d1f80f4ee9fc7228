//! Checks rate limits while networks move: no network passes more than its bucket allows, wherever the decision is made.
//!
//! Flow: frames that left → **limits**. A network is checked from a time when the node was quiet: it had at most a full bucket
//! then. Frames that are in software when the card takes over are decided there, in parallel with those on the card, so a move to
//! the card allows one additional burst. A move to software allows the frames in the stages of the card.

use crate::world::NETS;

const SECOND_NS: u64 = 1_000_000_000;
/// Most frames in the stages of the card when the row changes.
const STAGES: u64 = 8;
/// Longest time for which both sides may earn tokens, while the old path drains.
const BOTH_NS: u64 = 100_000_000;

/// Packets per second, and burst.
pub type Limit = (u32, u32);

/// Packets that a network has passed since the node was quiet.
#[derive(Clone, Copy)]
struct Passed {
    since_ns: u64,
    frames: u64,
    /// Moves to the card, including attempts, and moves to software.
    moves: [u64; 2],
}

/// See the head of this file.
#[derive(Clone, Default)]
pub struct Limits {
    passed: [Option<Passed>; NETS as usize + 1],
    on_card: [bool; NETS as usize + 1],
}

impl Limits {
    /// A network is changed, or the card with its meter is removed: its bucket may be full again.
    pub fn forget(&mut self, net: u8) {
        self.passed[usize::from(net)] = None;
    }

    /// A move of a network was undone, perhaps after the card had taken over.
    pub fn turned_back(&mut self, net: u8) {
        self.moved(net, true);
        self.moved(net, false);
    }

    fn moved(&mut self, net: u8, to_card: bool) {
        if let Some(passed) = &mut self.passed[usize::from(net)] {
            passed.moves[usize::from(!to_card)] += 1;
        }
    }

    /// Records where a network is now.
    pub fn is_at(&mut self, net: u8, on_card: bool) {
        if self.on_card[usize::from(net)] != on_card {
            self.on_card[usize::from(net)] = on_card;
            self.moved(net, on_card);
        }
    }

    /// Records that the node is quiet.
    pub fn settle(&mut self, now_ns: u64) {
        for passed in &mut self.passed {
            passed.get_or_insert(Passed { since_ns: now_ns, frames: 0, moves: [0; 2] });
        }
    }

    /// Counts a frame that left, of a network with a limit, and that its meter has charged. `moves` says whether the network is in a
    /// move, which is not counted yet.
    ///
    /// # Errors
    /// When it passed more than it may.
    pub fn passed(
        &mut self,
        net: u8,
        limit: Limit,
        now_ns: u64,
        moves: impl FnOnce() -> bool,
    ) -> Result<(), String> {
        let Some(passed) = &mut self.passed[usize::from(net)] else { return Ok(()) };
        passed.frames += 1;
        let (frames, most) = (passed.frames, passed.most(limit, now_ns, 0));
        if frames > most && !(moves() && frames <= passed.most(limit, now_ns, 1)) {
            let [to_card, to_software] = passed.moves;
            return Err(format!(
                "n{net} passed {frames} frames, {most} at most by its rate limit, \
                 with {to_card} moves to the card and {to_software} to software"
            ));
        }
        Ok(())
    }
}

impl Passed {
    /// Most frames that it may have passed by now, with `more` further moves to the card.
    fn most(&self, (rate, burst): Limit, now_ns: u64, more: u64) -> u64 {
        let earned = |ns: u64| (u128::from(rate) * u128::from(ns) / u128::from(SECOND_NS)) as u64 + 1;
        let [to_card, to_software] = self.moves;
        u64::from(burst)
            + earned(now_ns - self.since_ns)
            + (to_card + more) * (u64::from(burst) + earned(BOTH_NS))
            + (to_software + more) * STAGES
    }
}
