//! Quanta of networks as the driver writes them.

use super::*;

const MINOR_0: u32 = regs::VERSION_RESET & 0xffff_0000;

fn weighted(number: u16, weight: u16) -> Program {
    Program { weight, ..program(number, 0, Vec::new()) }
}

fn quanta(card: &mut Card<Memory>, numbers: &[u16]) -> Vec<u16> {
    numbers.iter().map(|number| card.read_quantum(vid(*number)).unwrap().unwrap()).collect()
}

#[test]
fn quanta_follow_networks_as_they_come_change_and_go() {
    for (layout, levels) in [(regs::LAYOUT_TCAM, [0; 4]), (regs::LAYOUT_DAG36, [4096; 4])] {
        let mut card = Card::new(Memory::new(layout, 4, levels, 64)).unwrap();
        card.load(&[weighted(1, 5), weighted(2, 5)]).unwrap();
        assert_eq!(quanta(&mut card, &[1, 2]), [2048; 2]);
        card.load(&[weighted(3, 15)]).unwrap();
        assert_eq!(quanta(&mut card, &[1, 2, 3]), [2048, 2048, 6144]);
        // One network changes its weight. Another is in software; it has a quantum too, because its frames leave
        // through the card's ports.
        card.load(&[weighted(1, 30)]).unwrap();
        card.load_in_software(&[weighted(2, 1)]).unwrap();
        assert_eq!(quanta(&mut card, &[1, 2, 3]), [16_384, 546, 8192]);
        // During a move, frames from software use the network's quantum.
        let aside = card.borrow_net(vid(1)).unwrap();
        let row = card.device().read_row::<regs::QuantumRow>(u32::from(aside)).unwrap();
        assert_eq!(row.bytes, 16_384);
        card.return_net();
        card.unload(&[vid(2)]).unwrap();
        assert_eq!(quanta(&mut card, &[1, 3]), [4096, 2048]);
        assert_eq!(card.read_quantum(vid(2)).unwrap(), None);
        // A refused change changes no quantum.
        assert!(card.load(&[weighted(9, 1000), weighted(9, 1000)]).is_err());
        assert_eq!(quanta(&mut card, &[1, 3]), [4096, 2048]);
        // A driver that takes over a card does not know its contents.
        let registers = std::mem::replace(card.device().registers(), Memory::new(layout, 4, levels, 64));
        let mut card = Card::new(registers).unwrap();
        for row in 0..8 {
            assert_eq!(card.device().read_row::<regs::QuantumRow>(row).unwrap().bytes, 2048);
        }
    }
}

#[test]
fn an_image_without_quanta_is_served_all_the_same() {
    let memory = Memory::new(regs::LAYOUT_DAG36, 4, [4096; 4], 64).with(regs::VERSION, MINOR_0);
    let mut card = Card::new(memory).unwrap();
    card.load(&[weighted(1, 1), weighted(2, 9)]).unwrap();
    assert_eq!(card.read_quantum(vid(1)).unwrap(), None);
    assert!(!card.device().registers().rows().keys().any(|(table, _)| *table == regs::QUANTUM.id));
}
