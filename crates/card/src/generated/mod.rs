//! Generated from spec/regs: registers by byte address, tables and their rows.

mod regs;

pub use regs::*;
