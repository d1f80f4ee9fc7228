//! Clock gates as the driver sets them.

use super::*;

const MINOR_1: u32 = (regs::VERSION_RESET & 0xffff_0000) | 1;

fn network(number: u16, gated: bool) -> Program {
    Program { gated, ..program(number, 0, Vec::new()) }
}

fn gates(card: &mut Card<Memory>) -> u32 {
    card.device().read(regs::GATES).unwrap()
}

fn rows_say(card: &mut Card<Memory>, number: u16) -> bool {
    let net = card.net(vid(number)).unwrap();
    card.device().read_row::<NetworkRow>(u32::from(net)).unwrap().gated
}

#[test]
fn own_planes_of_gated_networks_are_stopped() {
    for (layout, levels) in [(regs::LAYOUT_TCAM, [0; 4]), (regs::LAYOUT_DAG36, [4096; 4])] {
        let own = layout == regs::LAYOUT_TCAM;
        let mut card = Card::new(Memory::new(layout, 4, levels, 64)).unwrap();
        card.load(&[network(1, false), network(2, true), network(3, false)]).unwrap();
        let bit = |card: &Card<Memory>, number| if own { 1 << card.plane(vid(number)).unwrap() } else { 0 };
        let two = bit(&card, 2);
        assert_eq!(gates(&mut card), two);
        assert_eq!([1, 2, 3].map(|number| rows_say(&mut card, number)), [false, true, false]);
        // One gate is opened, one closed, and one removed with its network.
        card.load(&[network(2, false), network(3, true)]).unwrap();
        let three = bit(&card, 3);
        assert_eq!((gates(&mut card), rows_say(&mut card, 2)), (three, false));
        card.unload(&[vid(3)]).unwrap();
        assert_eq!(gates(&mut card), 0);
        // A plane that a gated network has left is not gated for the next network.
        card.load(&[network(4, false)]).unwrap();
        assert_eq!((gates(&mut card), rows_say(&mut card, 4)), (0, false));
        // After a move to software and back, the network is still gated.
        card.load(&[network(1, true)]).unwrap();
        let one = bit(&card, 1);
        card.steer(vid(1), true).unwrap();
        card.steer(vid(1), false).unwrap();
        assert_eq!((gates(&mut card), rows_say(&mut card, 1)), (one, true));
    }
}

#[test]
fn an_image_without_gates_takes_no_gated_network() {
    let memory = Memory::new(regs::LAYOUT_DAG36, 4, [4096; 4], 64).with(regs::VERSION, MINOR_1);
    let mut card = Card::new(memory).unwrap();
    card.load(&[network(1, false)]).unwrap();
    let refused = card.load(&[network(2, true)]).unwrap_err();
    assert!(refused.to_string().contains("clock gates"), "{refused}");
    assert_eq!(card.net(vid(2)), None);
    // Software always has gates.
    card.load_in_software(&[network(2, true)]).unwrap();
}
