//! Table rows as the access unit transfers them: eight words of 32 bits, fields in order from bit 0.
//!
//! Flow: plan → **rows** → device. The rows themselves are generated from spec/regs.

use thiserror::Error;

/// Words of a row: the number of the access unit's data registers.
pub const ROW_WORDS: usize = 8;

/// A row as words; bits 31 to 0 come first.
pub type Words = [u32; ROW_WORDS];

/// A table or a set of counters behind the access unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    /// Its name in spec/regs.
    pub name: &'static str,
    /// Its number.
    pub id: u32,
    /// Bits of a row.
    pub bits: usize,
}

impl Table {
    /// Words that a row needs.
    #[must_use]
    pub const fn words(self) -> usize {
        self.bits.div_ceil(32)
    }
}

/// A row of a table.
pub trait Row: Sized {
    /// The table it belongs to.
    const TABLE: Table;

    /// The row as words.
    ///
    /// # Errors
    /// If a field does not fit its bits.
    fn pack(&self) -> Result<Words, FieldError>;

    /// Reads a row from words. Bits above the row are ignored.
    fn unpack(words: &Words) -> Self;
}

/// A value does not fit its field (the caller's fault).
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{field} = {value}: at most {max}")]
pub struct FieldError {
    /// Table and field.
    pub field: &'static str,
    /// The value.
    pub value: u64,
    /// The largest value that fits.
    pub max: u64,
}

/// Writes a field of up to 64 bits into a row where it is still zero.
pub(crate) fn put(
    words: &mut Words,
    field: &'static str,
    low: usize,
    bits: usize,
    value: u64,
) -> Result<(), FieldError> {
    let max = mask(bits);
    if value > max {
        return Err(FieldError { field, value, max });
    }
    let mut rest = u128::from(value) << (low % 32);
    for word in words.iter_mut().skip(low / 32) {
        *word |= rest as u32;
        rest >>= 32;
    }
    Ok(())
}

/// Reads a field of up to 64 bits.
pub(crate) fn get(words: &Words, low: usize, bits: usize) -> u64 {
    let mut value = 0u128;
    for (word, place) in words.iter().skip(low / 32).zip([0, 32, 64]) {
        value |= u128::from(*word) << place;
    }
    (value >> (low % 32)) as u64 & mask(bits)
}

const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generated::{HopRow, MeterRow, NetworkRow, SelectRow};

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        let row = NetworkRow { vid: 4096, ..NetworkRow::default() };
        let error = row.pack().unwrap_err();
        assert_eq!(error.to_string(), "network.vid = 4096: at most 4095");
        assert!(NetworkRow { vid: 4095, ..NetworkRow::default() }.pack().is_ok());
    }

    #[test]
    fn fields_lie_where_the_specification_says() {
        let row = HopRow { kind: 3, port: 5, mtu: 0x5dc, dst: 0x0200_0000_0a01, src: 1 };
        let words = row.pack().unwrap();
        assert_eq!(words[0] & 3, 3);
        assert_eq!(words[0] >> 2 & 7, 5);
        assert_eq!(words[0] >> 5 & 0xffff, 0x5dc);
        // src is bits 69 to 116.
        assert_eq!(words[2] >> 5 & 1, 1);
        assert_eq!(words[4..], [0; 4]);
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(
            mac in 0u64..1 << 48, mask: u32, inner: u32, net in 0u8..64, vport: u8,
            care in any::<(bool, bool, bool, bool)>(), valid_arp: bool, port in 0u8..8,
        ) {
            let row = SelectRow {
                valid: care.0, port_care: care.1, port, mac_care: care.2, mac, inner_mask: mask, inner,
                inner_care: care.3, net, vport, arp_care: valid_arp,
            };
            prop_assert_eq!(SelectRow::unpack(&row.pack().unwrap()), row);
        }

        #[test]
        fn wide_fields_come_back_too(rate in 0u64..1 << 40, burst in 0u64..1 << 40, on in any::<(bool, bool)>()) {
            let row = MeterRow {
                packets_on: on.0, packets_rate: rate, packets_burst: burst,
                bits_on: on.1, bits_rate: burst, bits_burst: rate,
            };
            prop_assert_eq!(MeterRow::unpack(&row.pack().unwrap()), row);
        }
    }
}
