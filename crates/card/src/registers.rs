//! The driver's only interface to a card: 32-bit registers by byte address. The twin and a mapped BAR implement it.

use thiserror::Error;

/// Bytes of a card's register space: addresses have 24 bits.
pub const SPACE_BYTES: u32 = 1 << 24;

/// Why a register access failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AccessError {
    /// No register can have this address (the caller's fault).
    #[error("address 0x{address:x}: expected a multiple of 4 below 0x{end:x}")]
    Address {
        /// The address.
        address: u32,
        /// Where the space ends.
        end: u32,
    },
    /// The card answered with an error.
    #[error("the card refused to {what} register 0x{address:03x}")]
    Refused {
        /// `read` or `write`.
        what: &'static str,
        /// The address.
        address: u32,
    },
    /// The card did not answer.
    #[error("the card did not answer a {what} of register 0x{address:03x}")]
    NoAnswer {
        /// `read` or `write`.
        what: &'static str,
        /// The address.
        address: u32,
    },
}

/// Registers of a card.
pub trait Registers {
    /// Reads a register; the read may change it.
    ///
    /// # Errors
    /// Any.
    fn read(&mut self, address: u32) -> Result<u32, AccessError>;

    /// Writes a register.
    ///
    /// # Errors
    /// Any; it is then unknown whether the register was written.
    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError>;

    /// Writes several registers, as (address, value), in order. Override it in implementations that can send the next
    /// write before the previous one is answered.
    ///
    /// # Errors
    /// The first error; it is then unknown which of the others were written.
    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), AccessError> {
        writes.iter().try_for_each(|(address, value)| self.write(*address, *value))
    }

    /// Whether the card is known to be as after a reset with memories of zeros, so that a driver need not clear tables and counters.
    /// An FPGA may have been used before.
    fn is_new(&self) -> bool {
        false
    }
}

/// Checks that an address can be a register of a space that ends at `end`.
///
/// # Errors
/// `Address`.
pub(crate) fn check(address: u32, end: u32) -> Result<(), AccessError> {
    if !address.is_multiple_of(4) || end < 4 || address > end - 4 {
        return Err(AccessError::Address { address, end });
    }
    Ok(())
}
