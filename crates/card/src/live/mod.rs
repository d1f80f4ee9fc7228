//! A running card: a thread that clocks the twin while there is work, and sleeps while there is none.
//!
//! Flow: wires → MAC ports of the card → planes → MAC ports → wires; packets that planes do not decide → CPU queues →
//! workers of the software substrate; frames from workers → CPU queues → MAC ports. Control changes the card with
//! commands ([`CardCommand`]) that the thread executes between two rounds. Frames have the host's time as their time stamps, while
//! simulated time runs as fast as the twin is clocked; both are reported ([`CardTotals`]). Invariants: the card is
//! accessed through registers and queues only; frames keep their order on every path; if a card no longer moves or
//! answers, this is reported ([`CardEvent::Failed`]) and ends the card's thread, but never the process.

mod answers;
mod by_hand;
mod bypass;
mod command;
mod drain;
mod event;
mod handle;
mod losses;
mod runner;
mod seats;
mod totals;
mod transfer;
mod witness;

pub use self::answers::Answers;
pub use self::command::{
    CardCommand, CardQuestion, CardReply, ComingTable, MoveCommand, OnFailure, TableWork,
};
pub use self::event::{CardEvent, Moved};
pub use self::handle::{LiveCard, make_live};
pub use self::runner::{Inside, Runner, WAITING_MAX};
pub use self::seats::{SeatId, Seats};
pub use self::totals::{CardCounts, CardTotals, Crossings, LivePortTotals};
pub use self::transfer::{Fail, Mishap, Phase, Report, Side};
pub use self::witness::{OUTPUT_FULL, Proof, Seen};
