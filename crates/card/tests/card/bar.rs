//! The driver over a mapped file: the same path as for a physical card, with a plain file instead of the card.

use std::fs;
use std::path::Path;

use hue_card::generated as regs;
use hue_card::generated::{HopRow, SramRow};
use hue_card::{BAR_BYTES_MIN, Bar, CardError, Device, Layout, Registers, Row};
use proptest::prelude::*;

/// A file with the contents of a card's registers after reset.
fn reset_file() -> Vec<u8> {
    let mut bytes = vec![0; BAR_BYTES_MIN as usize];
    let values = [
        (regs::IDENT, regs::IDENT_RESET),
        (regs::VERSION, regs::VERSION_RESET),
        (regs::CLOCK, 62_500),
        (regs::BUS, 0x0004_0408),
        (regs::KINDS, 2),
        (regs::LAYOUT, regs::LAYOUT_TCAM),
        (regs::PLANES, 1),
        (regs::NETS, 16),
        (regs::SELECT_ROWS, 32),
        (regs::ATTACH_ROWS, 32),
        (regs::ROUTE_ROWS, 32),
        (regs::LOCAL_ROWS, 32),
        (regs::HOP_ROWS, 32),
        (regs::OUT_BYTES, 1 << 17),
        (regs::IMAGE_NAME[0], u32::from_le_bytes(*b"file")),
    ];
    for (address, value) in values {
        set(&mut bytes, address, value);
    }
    bytes
}

fn set(bytes: &mut [u8], address: u32, value: u32) {
    let at = address as usize;
    bytes.get_mut(at..at + 4).unwrap().copy_from_slice(&value.to_le_bytes());
}

fn discover(path: &Path) -> Result<Device<Bar>, CardError> {
    Device::discover(Bar::open(path)?)
}

fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    fs::write(&path, bytes).unwrap();
    discover(&path).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_card_in_a_file_is_driven_as_one_in_a_slot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    fs::write(&path, reset_file()).unwrap();
    let mut device = discover(&path).unwrap();
    let found = device.description();
    assert_eq!((found.name.as_str(), found.layout, found.bus_bytes), ("file", Layout::Tcam, 8));
    // A plain file does nothing by itself: it shows what the driver wrote, and where.
    let row = HopRow { kind: 3, port: 2, mtu: 1500, dst: 0x0200_0000_0001, src: 0x0200_0000_0002 };
    device.write_row(31, &row).unwrap();
    let bytes = fs::read(&path).unwrap();
    let at = |address: u32| {
        let bytes = bytes.get(address as usize..address as usize + 4).unwrap();
        u32::from_le_bytes(bytes.try_into().unwrap())
    };
    assert_eq!((at(regs::TABLE_ID), at(regs::TABLE_INDEX), at(regs::TABLE_COMMAND)), (7, 31, 2));
    let words = row.pack().unwrap();
    for (address, word) in regs::TABLE_DATA.into_iter().zip(words) {
        assert_eq!(at(address), word);
    }
    assert_eq!(device.read_row::<HopRow>(31).unwrap(), row);
    assert!(device.registers().read(BAR_BYTES_MIN).is_err());
    assert!(device.registers().write(BAR_BYTES_MIN, 0).is_err());
    assert!(device.registers().read(2).is_err());
    // If a register does not exist, is read only or does not have these bits, nothing is written.
    let before = fs::read(&path).unwrap();
    for (address, value, bits) in
        [(0x7fc, 1, 0), (regs::IDENT, 1, 0), (regs::GATED, 2, 1), (regs::GATED + 1, 1, 0)]
    {
        let error = device.write(address, value).unwrap_err();
        assert!(matches!(error, CardError::Write { bits: known, .. } if known == bits), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    device.write(regs::GATED, 1).unwrap();
    assert_eq!(device.read(regs::GATED).unwrap(), 1);
}

#[test]
fn a_card_behind_the_registers_of_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource2");
    let shell = 0x10_0000_u32;
    let mut bytes = vec![0x5a; shell as usize];
    bytes.extend(reset_file());
    fs::write(&path, bytes).unwrap();
    let mut registers = Bar::open_at(&path, shell).unwrap();
    assert_eq!(registers.read(regs::IDENT).unwrap(), regs::IDENT_RESET);
    registers.write(regs::SCRATCH, 0x1234_5678).unwrap();
    drop(registers);
    let bytes = fs::read(&path).unwrap();
    let at = (shell + regs::SCRATCH) as usize;
    assert_eq!(bytes.get(at..at + 4).unwrap(), 0x1234_5678_u32.to_le_bytes());
    assert!(bytes.iter().take(shell as usize).all(|byte| *byte == 0x5a));
    // The last page of the file holds a card; a page after it would be beyond the end.
    let beyond = Bar::open_at(&path, shell + 4096).map(|_| ()).unwrap_err().to_string();
    assert!(beyond.ends_with("1052672 bytes: expected at least 1056768"), "{beyond}");
    let odd = Bar::open_at(&path, 100).map(|_| ()).unwrap_err().to_string();
    assert!(odd.ends_with("the offset is not a multiple of the page size"), "{odd}");
}

#[test]
fn files_that_are_not_cards_are_refused_with_the_reason() {
    let missing = discover(Path::new("/no/such/resource0")).map(|_| ()).unwrap_err().to_string();
    assert!(missing.starts_with("/no/such/resource0: "), "{missing}");
    assert!(refusal(&[0; 100]).ends_with("100 bytes: expected at least 4096"));
    // A slot whose card is no longer on the bus reads as ones.
    assert!(refusal(&[0xff; 4096]).contains("the identification is 0xffffffff, expected 0x48554543"));
    for (address, value, what) in [
        (regs::VERSION, 0x0002_0003, "the version is 2.3, expected 4.x"),
        (regs::CLOCK, 0, "the clock in kHz is 0"),
        (regs::BUS, 0x0004_0407, "the bus"),
        (regs::BUS, 0x0008_0808, "the bus"),
        (regs::LAYOUT, 5, "the layout is 5, expected 1 to 4"),
        (regs::LAYOUT, regs::LAYOUT_DIR, "rows of the Conflict CAM is 0, expected 1 to 4096"),
        (regs::SRAM_WORDS, 5, "words of the banks is 5, expected 0 to 0"),
        (regs::LAYOUT, regs::LAYOUT_DAG36, "route rows is 32, expected 0 to 0"),
        (regs::PLANES, 17, "planes is 17, expected 1 to 16"),
        (regs::NETS, 0, "networks is 0, expected 1 to 256"),
        (regs::MAC_ROWS, 512, "rows of design select by MAC address is 512, expected 0, or 1024"),
        (regs::MAC_ROWS, 2047, "rows of design select by MAC address is 2047"),
        (regs::MAC_ROWS, u32::MAX, "rows of design select by MAC address is 4294967295"),
        (regs::ROUTE_ROWS, u32::MAX, "route rows"),
        (regs::LEVEL_WORDS[2], 1, "words of a level is 1"),
        (regs::IMAGE_NAME[3], 1, "the name of the image"),
    ] {
        let mut bytes = reset_file();
        set(&mut bytes, address, value);
        let found = refusal(&bytes);
        assert!(found.contains(what), "{address:x}: {found}");
    }
}

/// Additions of a later minor version do not matter.
#[test]
fn a_card_of_a_later_minor_version_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    let mut bytes = reset_file();
    set(&mut bytes, regs::VERSION, regs::VERSION_RESET | 0xffff);
    set(&mut bytes, regs::MAC_ROWS, 2048);
    fs::write(&path, bytes).unwrap();
    let description = discover(&path).unwrap().description().clone();
    assert_eq!((description.version, description.mac_rows), ((4, 0xffff), 2048));
}

#[test]
fn invalid_answers_of_the_access_unit_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    for (status, what) in [
        (regs::TABLE_STATUS_BUSY, "the access did not end"),
        (u32::MAX, "the result has undefined bits set"),
        (2, "the card does not have this table"),
        (4, "the card does not have this row"),
        (6, "the card refused"),
    ] {
        let mut bytes = reset_file();
        set(&mut bytes, regs::TABLE_STATUS, status);
        fs::write(&path, bytes).unwrap();
        let error = discover(&path).unwrap().write_row(0, &HopRow::default()).unwrap_err().to_string();
        assert_eq!(error, format!("table hop, row 0: {what}"));
    }
}

#[test]
fn invalid_answers_of_a_burst_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    let card = || {
        let mut bytes = reset_file();
        set(&mut bytes, regs::LAYOUT, regs::LAYOUT_SRAM);
        set(&mut bytes, regs::ROUTE_ROWS, 0);
        set(&mut bytes, regs::LOCAL_ROWS, 0);
        set(&mut bytes, regs::SRAM_WORDS, 1000);
        bytes
    };
    let error = regs::BURST_STATUS_ERROR.trailing_zeros();
    for (status, what) in [
        (regs::BURST_STATUS_BUSY, "row 5: the burst did not end"),
        (u32::MAX, "row 5: the result of a burst has undefined bits set"),
        (1 << error | 6, "row 6: the card does not have this table"),
        (2 << error | 5, "row 5: the card does not have this row"),
        (3 << error | 9, "row 9: the card refused"),
        (3 << error | 7, "row 5: the card reports an error in a row that was not written"),
    ] {
        let mut bytes = card();
        set(&mut bytes, regs::BURST_STATUS, status);
        fs::write(&path, bytes).unwrap();
        let words = [(SramRow::TABLE, 5, 1), (SramRow::TABLE, 6, 2), (SramRow::TABLE, 9, 3)];
        let found = discover(&path).unwrap().write_burst(&words).unwrap_err().to_string();
        assert_eq!(found, format!("table sram, {what}"));
    }
    // Impossible rows are not written at all.
    fs::write(&path, card()).unwrap();
    let mut device = discover(&path).unwrap();
    for (words, what) in [
        (
            [(SramRow::TABLE, 5, 1), (SramRow::TABLE, 1000, 2)],
            "table sram, row 1000: the image does not have this row",
        ),
        ([(SramRow::TABLE, 5, 1), (HopRow::TABLE, 1, 2)], "table hop, row 1: the table does not take bursts"),
        ([(SramRow::TABLE, 5, 1), (SramRow::TABLE, 6, 1 << 36)], "sram = 68719476736: at most 68719476735"),
    ] {
        assert_eq!(device.write_burst(&words).unwrap_err().to_string(), what);
    }
    assert_eq!(fs::read(&path).unwrap(), {
        let mut bytes = card();
        // Identifying the card changes nothing but the scratch register.
        set(&mut bytes, regs::SCRATCH, 0);
        bytes
    });
    // Each word, and its place if the word does not follow the previous one.
    let words = [(SramRow::TABLE, 5, 0x3_1234_5678), (SramRow::TABLE, 6, 0xa_0000_0001)];
    device.write_burst(&words).unwrap();
    let place = SramRow::TABLE.id << 24 | 5;
    for (address, value) in
        [(regs::BURST_PLACE, place), (regs::BURST_WORD[3], 0x1234_5678), (regs::BURST_WORD[10], 1)]
    {
        assert_eq!(device.read(address).unwrap(), value);
    }
}

proptest! {
    /// Any contents of the registers: they lead to an error or to a description within its limits, never to a panic.
    #[test]
    fn no_content_panics(values in prop::collection::vec((0u32..0x60, any::<u32>()), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resource0");
        let mut bytes = reset_file();
        for (register, value) in values {
            set(&mut bytes, register * 4, value);
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(mut device) = discover(&path) {
            let rows = device.description().rows(HopRow::TABLE);
            prop_assert!(rows >= 1 && device.description().nets <= 256);
            let _ = device.write_row(rows - 1, &HopRow::default());
            prop_assert!(device.write_row(rows, &HopRow::default()).is_err());
        }
    }
}
