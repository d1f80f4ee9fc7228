//! A node that is stepped by hand: its start, and passes over all its parts.

use hue_card::Images;
use hue_soft::LiveConfig;
use hueplaned::DaemonError;
use hueplaned::api::{MigrateRequest, Migration, SubstrateName};
use hueplaned::node::by_hand::{Answer, ByHand};

use crate::world::PORTS;

/// Workers of a node.
pub const WORKERS: usize = 2;
/// Passes after which a move has ended.
const MOVE_PASSES_MAX: usize = 20_000;
/// Nanoseconds of a microsecond.
pub const US: u64 = 1_000;

/// A node without documents.
///
/// # Errors
/// As [`ByHand::start`].
pub fn start(images: &Images) -> Result<ByHand, DaemonError> {
    let config = LiveConfig { workers: WORKERS, slots: 8192, ..LiveConfig::default() };
    ByHand::start(config, images.clone(), &PORTS)
}

/// Gives every part a turn. Returns whether any had work.
pub fn pass(node: &mut ByHand) -> bool {
    let mut busy = node.step_job();
    busy |= node.step_kernel();
    busy |= node.step_node();
    for worker in 0..WORKERS {
        busy |= node.step_worker(worker);
    }
    // A move may wait for a time, and frames inside for the card's cycles: let both proceed.
    let slow = busy || node.has_frames_on_card();
    node.time().pass(if slow { 20 * US } else { 1000 * US });
    busy | node.step_card()
}

/// Makes passes until `idle_passes` in succession had no work.
pub fn settle(node: &mut ByHand, idle_passes: usize) {
    let mut idle = 0;
    while idle < idle_passes {
        idle = if pass(node) { 0 } else { idle + 1 };
    }
}

/// Asks for a move of a network to where it is not, whose end [`moved`] waits for.
///
/// # Panics
/// If the move is refused.
pub fn begin_move(node: &mut ByHand, network: &str) {
    let to = if node.is_on_card(network) { SubstrateName::Soft } else { SubstrateName::Card };
    let asked = node.migrate(network, &MigrateRequest { watch_ms: 2, ..MigrateRequest::new(to) });
    assert!(asked.is_ok(), "{network} may not move: {asked:?}");
}

/// Makes passes until a move has ended, which must be clean.
///
/// # Errors
/// Why it is not, or that it does not end.
pub fn moved(node: &mut ByHand) -> Result<(), String> {
    for _ in 0..MOVE_PASSES_MAX {
        if let Some(Answer::Moved(_, result)) = node.answer() {
            return is_clean(&result.map_err(|problem| problem.to_string())?);
        }
        pass(node);
    }
    Err(format!("a move does not end: {:?}", node.look()))
}

/// Checks that no frame was lost, doubled or reordered in a move, and that the end of each is known.
///
/// # Errors
/// The report of one that is not clean.
pub fn is_clean(report: &Migration) -> Result<(), String> {
    let sums = [report.lost, report.doubled, report.reordered, report.undecided];
    (sums == [0; 4]).then_some(()).ok_or(format!("{report:?}"))
}
