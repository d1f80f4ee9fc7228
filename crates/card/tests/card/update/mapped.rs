//! The whole driver over a mapped file, as for a physical card. The driver must write to the file exactly what it
//! writes to the model, whose rows the other tests here check, and must use what it reads from the file.

use std::fs;
use std::path::Path;

use hue_card::generated as regs;
use hue_card::{AccessError, BAR_BYTES_MIN, Bar, Card, Events, Registers};
use hue_planes::ipv4::Outcome;
use hue_substrate::{Mode, Refusals, Substrate, Update};

use super::memory::{Memory, PLANE_ROWS};
use super::{dag36, hop, neighbour, program, vid};

/// Registers, and a log of the writes to them.
struct Logged<R> {
    registers: R,
    writes: Vec<(u32, u32)>,
}

impl<R: Registers> Registers for Logged<R> {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        self.registers.read(address)
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        self.writes.push((address, value));
        self.registers.write(address, value)
    }
}

fn take_over<R: Registers>(registers: R) -> Card<Logged<R>> {
    Card::new(Logged { registers, writes: Vec::new() }).unwrap()
}

/// Typical operations of a driver. Returns the writes of each step.
fn steps<R: Registers>(card: &mut Card<Logged<R>>) -> Vec<Vec<(u32, u32)>> {
    let prefix = |text: &str| text.parse().unwrap();
    let routes = vec![(prefix("10.0.0.0/8"), hop(1)), (prefix("10.1.0.0/16"), hop(0))];
    let mut writes = vec![std::mem::take(&mut card.device().registers().writes)];
    let mut step = |change: &dyn Fn(&mut Card<Logged<R>>)| {
        change(card);
        writes.push(std::mem::take(&mut card.device().registers().writes));
    };
    step(&|card| card.load(&[program(1, 2, routes.clone()), program(2, 3, routes.clone())]).unwrap());
    let update = |card: &mut Card<_>, number, update: Update<'_>| {
        assert_eq!(card.update(vid(number), &update), Ok(Refusals::default()));
    };
    step(&|card| update(card, 2, Update::of_routes(&[(prefix("10.2.0.0/16"), Some(hop(2)))])));
    let gone = [(prefix("10.1.0.0/16"), None)];
    step(&|card| update(card, 1, Update::of_routes(&gone).with_mode(Mode::Each)));
    step(&|card| update(card, 1, Update::of_hops(&[(hop(0), neighbour(1, 5))])));
    step(&|card| card.set_gates(2, true).unwrap());
    step(&|card| card.steer(vid(1), true).unwrap());
    step(&|card| card.unload(&[vid(2)]).unwrap());
    writes
}

fn set(path: &Path, address: u32, value: u32) {
    Bar::open(path).unwrap().write(address, value).unwrap();
}

#[test]
fn a_file_gets_what_the_model_gets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resource0");
    for memory in [|| dag36(4096, 64), || Memory::new(regs::LAYOUT_TCAM, 3, [0; 4], PLANE_ROWS)] {
        fs::write(&path, vec![0; BAR_BYTES_MIN as usize]).unwrap();
        let mut described = memory();
        for address in
            (0..0x400).step_by(4).filter(|address| ![regs::ACCEPTED, regs::RETIRED].contains(address))
        {
            set(&path, address, described.read(address).unwrap());
        }
        let mut card = take_over(Bar::open(&path).unwrap());
        let (found, expected) = (steps(&mut card), steps(&mut take_over(memory())));
        assert!(expected.iter().all(|writes| !writes.is_empty()));
        assert_eq!(found, expected);

        // A plain file returns the last written value, also for tables.
        let net = card.net(vid(1)).unwrap();
        for (address, value) in regs::TABLE_DATA.into_iter().zip([77, 1]) {
            set(&path, address, value);
        }
        let counters = card.read_counters(vid(1)).unwrap().unwrap();
        assert!(Outcome::ALL.into_iter().all(|outcome| counters.get(outcome) == (1 << 32) + 77));
        let asked = Bar::open(&path).unwrap().read(regs::TABLE_INDEX).unwrap();
        assert_eq!(asked / 32, u32::from(net), "the last row that was read belongs to the network");
        set(&path, regs::INTERRUPT_STATUS, regs::INTERRUPT_STATUS_MEMORY_ERROR | 1 << 31);
        assert_eq!(card.take_events().unwrap(), Events { memory_error: true, ..Events::default() });

        // The file ends in the middle of an operation: the networks stay known, and no operation reports success.
        set(&path, regs::TABLE_STATUS, u32::MAX);
        assert!(card.load(&[program(3, 2, Vec::new())]).is_err());
        assert!(card.read_counters(vid(1)).is_err());
        assert_eq!((card.net(vid(1)), card.net(vid(3))), (Some(net), None));
    }
}
