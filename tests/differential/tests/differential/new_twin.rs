//! A new twin needs no clearing: the driver relies on what its tables hold after the reset.

use std::fmt::Debug;

use hue_card::generated as regs;
use hue_card::{Card, Device, Registers, Row, Twin};
use hue_differential::{IMAGES, image};

/// Every row of a table holds the value.
fn all_are<T: Row + PartialEq + Debug>(device: &mut Device<Twin>, value: &T) {
    for row in 0..device.description().rows(T::TABLE) {
        assert_eq!(device.read_row::<T>(row).unwrap(), *value, "{} {row}", T::TABLE.name);
    }
}

#[test]
fn rows_of_a_new_twin_are_clear() {
    for name in IMAGES.into_iter().chain(["kinds"]) {
        let image = image(name);
        let mut card = Card::new(image.start().unwrap()).unwrap();
        let device = card.device();
        all_are(device, &regs::SelectRow::default());
        all_are(device, &regs::MacRow::default());
        all_are(device, &regs::StationRow::default());
        all_are(device, &regs::GroupRow::default());
        all_are(device, &regs::TunnelRow::default());
        all_are(device, &regs::AttachHeadRow::default());
        all_are(device, &regs::NetworkRow::default());
        all_are(device, &regs::ConflictRow::default());
        all_are(device, &regs::UnclaimedRow::default());
        all_are(device, &regs::PortRow::default());
        all_are(device, &regs::QuantumRow { bytes: 2048 });
        assert_eq!(device.registers().failure(), None);

        // What came before the driver may have left something.
        let mut twin = image.start().unwrap();
        assert!(twin.is_new());
        assert!(twin.push(0, 0, 0, 0, &[0; 60]));
        assert!(!twin.is_new());
        let mut twin = image.start().unwrap();
        twin.write(regs::SCRATCH, 1).unwrap();
        assert!(!twin.is_new());
        let mut card = Card::new(twin).unwrap();
        all_are(card.device(), &regs::QuantumRow { bytes: 2048 });
    }
}
