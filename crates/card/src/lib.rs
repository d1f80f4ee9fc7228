//! The card: a substrate made of hardware logic, on an FPGA or as its simulated twin.
//!
//! Flow: control → program → **card** (plan → rows → device → registers) → the card's tables; frames go through its
//! ports. The driver accesses a card only through its registers ([`Registers`]). [`Twin`] and a mapped [`Bar`] both
//! implement them, so that what works on the twin works on a card. Registers and rows are generated from `spec/regs`.

mod banks;
mod bar;
mod card;
mod carrying;
mod cpu;
mod device;
mod error;
mod flat;
mod follow;
pub mod generated;
mod groups;
mod images;
mod learn;
mod left;
mod live;
mod load;
mod macs;
mod memory;
mod moving;
mod network;
mod offline;
mod patterns;
mod plan;
mod planes;
mod policies;
mod records;
mod registers;
mod room;
mod routes;
mod rows;
mod runs;
mod stations;
mod tunnels;
mod twin;
mod update;
mod weights;

pub use bar::{BAR_BYTES_MIN, Bar, BarError};
pub use card::{Card, Events};
pub use carrying::TunnelCounts;
pub use cpu::{ToCpu, from_plane};
pub use device::{Description, Device, Layout, out_drops_row};
pub use error::{CardError, NAME};
pub use images::Images;
pub use left::Way;
pub use live::{
    Answers, CardCommand, CardCounts, CardEvent, CardQuestion, CardReply, CardTotals, ComingTable, Crossings,
    Fail, Inside, LiveCard, LivePortTotals, Mishap, MoveCommand, Moved, OUTPUT_FULL, OnFailure, Phase, Proof,
    Report, Runner, SeatId, Seats, Seen, Side, TableWork, WAITING_MAX, make_live,
};
pub use memory::{CardBank, CardMemory, CardShare};
pub use network::CardKey;
pub use offline::{Kinds, Offered, Sent};
pub use registers::{AccessError, Registers, SPACE_BYTES};
pub use rows::{FieldError, ROW_WORDS, Row, Table, Words};
pub use twin::{Cause, FRAME_BYTES_MAX, Image, Twin, TwinEnding, TwinFrame};
