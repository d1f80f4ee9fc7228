//! Debts of the card's meters, as the driver reads and writes them.

use hue_planes::{Debts, Rate, RateLimit};
use hue_substrate::handover::AllDebts;

use super::*;

const UNIT: u128 = 1_000_000_000;

fn limited(number: u16, limit: Option<RateLimit>) -> Program {
    Program { rate_limit: limit, ..program(number, 0, Vec::new()) }
}

fn limit() -> Option<RateLimit> {
    let rate = |rate, burst| Some(Rate::new(rate, burst).unwrap());
    Some(RateLimit { packets: rate(1, 5), bits: rate(7, Rate::MAX) })
}

#[test]
fn debts_are_those_of_the_network_and_of_its_limit() {
    let mut card = Card::new(Memory::new(regs::LAYOUT_DAG36, 1, [4096; 4], 64)).unwrap();
    card.load(&[limited(1, limit()), limited(2, None), limited(3, limit())]).unwrap();
    let of_rate = |debts| AllDebts { rate: Some(debts), storm: None };
    let none = AllDebts::default();
    assert_eq!(card.debts(vid(1)).unwrap(), of_rate(Debts::default()));
    assert_eq!((card.debts(vid(2)).unwrap(), card.debts(vid(9)).unwrap()), (none, none));
    assert!(card.tells_debts(vid(1)) && !card.tells_debts(vid(2)) && !card.tells_debts(vid(9)));
    // Each debt has more than 64 bits.
    let debts = Debts { packets: 4 * UNIT, bits: u128::from(Rate::MAX) * UNIT - 1, last_ns: u64::MAX };
    let both = AllDebts { rate: Some(debts), storm: Some(debts) };
    [3, 2, 9].into_iter().for_each(|id| card.set_debts(vid(id), both).unwrap());
    assert_eq!(card.debts(vid(3)).unwrap(), of_rate(debts));
    assert_eq!(card.debts(vid(1)).unwrap(), of_rate(Debts::default()));
    // No debt exceeds the capacity of its bucket.
    card.set_debts(vid(1), of_rate(Debts { packets: Debts::MAX, bits: 0, last_ns: 3 })).unwrap();
    assert_eq!(card.debts(vid(1)).unwrap(), of_rate(Debts { packets: 5 * UNIT, bits: 0, last_ns: 3 }));
}
