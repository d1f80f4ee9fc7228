//! The twin and the lower half of the driver, with a card that has registers and one table but only echoes its
//! frames.

use crate::common::{ECHOES, echo, echoes, mute};
use hue_card::generated as regs;
use hue_card::generated::{BytesRow, CountRow, HopRow, Level0Row, SelectRow};
use hue_card::{AccessError, CardError, Device, Images, Layout, Registers, Row, Twin};

/// Frames of every length at which behaviour changes, and some others.
fn frames(bus_bytes: usize) -> Vec<Vec<u8>> {
    let around = |n: usize| n.saturating_sub(1)..n + 2;
    let lengths =
        (0..3).chain((1..4).flat_map(|beats| around(beats * bus_bytes))).chain([60, 1514, 9216, 9217]);
    lengths
        .zip(0u8..)
        .map(|(len, seed)| (0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect())
        .collect()
}

fn take_all(twin: &mut Twin) -> Vec<(u8, u32, Vec<u8>)> {
    let mut taken = Vec::new();
    while let Some(frame) = twin.pop() {
        assert!(frame.first_cycle <= frame.last_cycle);
        taken.push((frame.port, frame.tag, frame.bytes.to_vec()));
    }
    taken
}

#[test]
fn an_image_says_what_it_is() {
    let device = Device::discover(echo("tcam1")).unwrap();
    let found = device.description();
    assert_eq!((found.name.as_str(), found.bus_bytes, found.clock_khz), ("tcam1", 8, 62_500));
    assert_eq!((found.layout, found.planes, found.nets, found.route_rows), (Layout::Tcam, 1, 16, 32));
    assert_eq!(found.kinds.len(), 1);
    let device = Device::discover(echo("wide")).unwrap();
    let found = device.description();
    assert_eq!((found.name.as_str(), found.bus_bytes, found.clock_khz), ("wide", 64, 250_000));
    assert_eq!((found.layout, found.nets, found.route_rows), (Layout::Dag36, 64, 0));
    assert_eq!(found.level_words, [8192, 16384, 16384, 8192]);
}

#[test]
fn frames_of_every_length_pass_at_every_width() {
    for (name, bus_bytes) in ECHOES.into_iter().zip([8, 32, 64]) {
        for (idle, stall) in [(0, 0), (200, 0), (0, 200), (128, 128)] {
            let mut twin = echo(name);
            assert!(twin.set_stress(7, idle, stall));
            let frames = frames(bus_bytes);
            for (frame, tag) in frames.iter().zip(0u32..) {
                assert!(twin.push((tag % 8) as u8, 0, tag, 0, frame));
            }
            while !twin.idle() {
                assert!(twin.run(100_000) > 0 && twin.still_cycles() < 10_000, "{name} makes no progress");
            }
            let mut taken = take_all(&mut twin);
            taken.sort_unstable_by_key(|(_, tag, _)| *tag);
            assert_eq!(twin.failure(), None);
            assert_eq!(taken.len(), frames.len());
            for ((port, tag, bytes), frame) in taken.iter().zip(&frames) {
                assert_eq!(u32::from(*port), (tag % 8) ^ 1, "{name}");
                assert_eq!(bytes, frame, "{name}, {idle}, {stall}: frame {tag}");
            }
        }
    }
}

#[test]
fn ordered_frames_begin_in_the_order_of_pushing() {
    let mut twin = echo("tcam1");
    twin.set_ordered(true);
    assert!(twin.set_stress(3, 100, 100));
    assert!(!twin.set_stress(3, 257, 0));
    for tag in 0..100u32 {
        assert!(twin.push((tag * 5 % 7) as u8, 0, tag, 0, &[tag as u8; 70]));
    }
    while !twin.idle() {
        twin.run(1000);
    }
    let tags: Vec<u32> = take_all(&mut twin).iter().map(|(_, tag, _)| *tag).collect();
    assert_eq!(tags, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_frame_waits_for_its_cycle() {
    let mut twin = echo("default");
    let now = twin.cycles();
    assert!(twin.push(0, 0, 1, now + 50, &[1; 64]) && twin.push(0, 0, 2, 0, &[2; 64]));
    twin.run(1000);
    assert_eq!(twin.pop().map(|frame| frame.first_cycle), Some(now + 50));
    assert_eq!(twin.pop().map(|frame| frame.first_cycle), Some(now + 52));
    assert!(twin.pop().is_none() && twin.idle());
    assert!(!twin.push(8, 0, 0, 0, &[1; 64]), "there is no port 8");
    assert!(!twin.push(0, 0, 0, 0, &vec![1; 65_536]), "too long for the twin");
    twin.run_exactly(10);
    assert!(twin.idle());
}

#[test]
fn registers_answer_or_refuse() {
    let mut twin = echo("default");
    assert_eq!(twin.read(regs::IDENT), Ok(0x4855_4543));
    twin.write(regs::SCRATCH, 0xdead_beef).unwrap();
    assert_eq!(twin.read(regs::SCRATCH), Ok(0xdead_beef));
    // Every address of the first page and some beyond: registers answer, and other addresses are refused and
    // reported.
    let mut refused = 0;
    for address in (0..0x1000).step_by(4).chain([0x1000, 0x80_0000, 0xff_fffc]) {
        match twin.read(address) {
            Ok(_) => {}
            Err(AccessError::Refused { what: "read", address: at }) if at == address => refused += 1,
            other => panic!("0x{address:x}: {other:?}"),
        }
    }
    assert!(refused > 900, "{refused}");
    assert_eq!(twin.read(regs::INTERRUPT_STATUS), Ok(regs::INTERRUPT_STATUS_ACCESS_ERROR));
    assert!(!twin.interrupt());
    twin.write(regs::INTERRUPT_ENABLE, regs::INTERRUPT_STATUS_ACCESS_ERROR).unwrap();
    assert!(twin.interrupt());
    twin.write(regs::INTERRUPT_STATUS, regs::INTERRUPT_STATUS_ACCESS_ERROR).unwrap();
    assert!(!twin.interrupt());
    assert_eq!(twin.read(regs::INTERRUPT_STATUS), Ok(0));
    // Read-only registers refuse writes and stay.
    for address in [regs::IDENT, regs::NETS, regs::ACCEPTED, regs::TABLE_STATUS, 0xffc] {
        assert_eq!(twin.write(address, 1), Err(AccessError::Refused { what: "write", address }));
    }
    assert_eq!(twin.read(regs::IDENT), Ok(0x4855_4543));
    for address in [1, 2, 3, 0x81, 1 << 24, u32::MAX] {
        assert!(matches!(twin.read(address), Err(AccessError::Address { .. })), "0x{address:x}");
        assert!(matches!(twin.write(address, 0), Err(AccessError::Address { .. })), "0x{address:x}");
    }
    // Gates of existing planes.
    twin.write(regs::GATES, u32::MAX).unwrap();
    assert_eq!(twin.read(regs::GATES), Ok(0b1111));
    assert_eq!(twin.failure(), None);
}

/// A card that answers no register access and accepts no frame causes errors, in bounded time.
#[test]
fn a_card_that_answers_nothing_is_an_error() {
    let mut twin = mute();
    assert_eq!(twin.read(regs::IDENT), Err(AccessError::NoAnswer { what: "read", address: 0 }));
    assert_eq!(
        twin.write(regs::SCRATCH, 1),
        Err(AccessError::NoAnswer { what: "write", address: regs::SCRATCH })
    );
    assert!(twin.push(0, 0, 0, 0, &[1; 64]));
    assert_eq!(twin.run(5000), 5000, "frames still wait outside");
    assert!(!twin.idle() && twin.still_cycles() >= 5000);
    let error = Device::discover(mute()).map(drop).unwrap_err().to_string();
    assert_eq!(error, "the card did not answer a read of register 0x000");
}

#[test]
fn cycles_and_records_are_counted() {
    let mut twin = echo("default");
    let low = twin.read(regs::CYCLES_LOW).unwrap();
    twin.run_exactly(1000);
    let later = twin.read(regs::CYCLES_LOW).unwrap();
    assert!((1000..1010).contains(&(later - low)), "{low} {later}");
    assert_eq!(twin.read(regs::CYCLES_HIGH), Ok(0));
    for tag in 0..5 {
        assert!(twin.push(2, 0, tag, 0, &[0; 100]));
    }
    twin.run(1000);
    assert_eq!(twin.read(regs::ACCEPTED), Ok(5));
    assert_eq!(twin.read(regs::RETIRED), Ok(5));
    assert_eq!(twin.read(regs::ACTIVITY), Ok(regs::ACTIVITY_IDLE | regs::ACTIVITY_INGRESS_IDLE));
}

#[test]
fn rows_are_written_and_read_while_frames_pass() {
    let mut device = Device::discover(echo("default")).unwrap();
    let row = |n: u32| HopRow {
        kind: (n % 4) as u8,
        port: (n % 8) as u8,
        mtu: n as u16 * 1021,
        dst: u64::from(n) << 40 | 5,
        src: 0xffff_ffff_ffff - u64::from(n),
    };
    for n in 0..64 {
        assert!(device.registers().push((n % 8) as u8, 0, n, 0, &[n as u8; 300]));
        device.write_row(n, &row(n)).unwrap();
    }
    for n in (0..64).rev() {
        assert_eq!(device.read_row::<HopRow>(n).unwrap(), row(n), "{n}");
    }
    assert_eq!(take_all(device.registers()).len(), 64);
    assert_eq!(device.registers().failure(), None);
}

#[test]
fn counters_are_read_and_taken() {
    let mut device = Device::discover(echo("default")).unwrap();
    assert_eq!(device.read_row::<CountRow>(3).unwrap().value, 1003);
    assert_eq!(device.take_row::<CountRow>(3).unwrap().value, 1003);
    assert_eq!(device.read_row::<CountRow>(3).unwrap().value, 0);
    assert_eq!(device.read_row::<CountRow>(2).unwrap().value, 1002);
}

#[test]
fn bad_table_accesses_are_errors() {
    let text = |result: Result<(), CardError>| result.unwrap_err().to_string();
    let mut device = Device::discover(echo("default")).unwrap();
    // The image says how many rows there are, so the driver does not access others.
    assert_eq!(
        text(device.write_row(64, &HopRow::default())),
        "table hop, row 64: the image does not have this row"
    );
    // The card itself refuses too: it counts 4 rows, allows no write, has no design select, and never answers BYTES.
    assert_eq!(
        text(device.read_row::<CountRow>(4).map(drop)),
        "table count, row 4: the card does not have this row"
    );
    assert_eq!(text(device.write_row(0, &CountRow::default())), "table count, row 0: the card refused");
    assert_eq!(
        text(device.write_row(0, &SelectRow::default())),
        "table select, row 0: the card does not have this table"
    );
    assert_eq!(
        text(device.read_row::<BytesRow>(0).map(drop)),
        "table bytes, row 0: the card does not have this table"
    );
    let status = device.read(regs::INTERRUPT_STATUS).unwrap();
    assert_eq!(status, regs::INTERRUPT_STATUS_TABLE_ERROR);
    // While an access runs, nothing of it can be changed.
    device.write(regs::TABLE_ID, BytesRow::TABLE.id).unwrap();
    device.write(regs::TABLE_COMMAND, regs::TABLE_COMMAND_READ).unwrap();
    for address in [regs::TABLE_ID, regs::TABLE_INDEX, regs::TABLE_COMMAND, regs::TABLE_DATA[7]] {
        let refused = device.registers().write(address, 1);
        assert_eq!(refused, Err(AccessError::Refused { what: "write", address }));
    }
    assert_eq!(device.read(regs::TABLE_STATUS).unwrap() & regs::TABLE_STATUS_BUSY, regs::TABLE_STATUS_BUSY);
    device.registers().run_exactly(110);
    assert_eq!(device.read(regs::TABLE_STATUS).unwrap() & regs::TABLE_STATUS_BUSY, 0);
    // An invalid command is refused immediately.
    assert!(device.write(regs::TABLE_COMMAND, 0).is_err());
    // After all of these, the table still works.
    device.write_row(1, &HopRow { mtu: 7, ..HopRow::default() }).unwrap();
    assert_eq!(device.read_row::<HopRow>(1).unwrap().mtu, 7);
    assert_eq!(device.registers().failure(), None);
}

#[test]
fn invalid_bursts_are_errors() {
    let text = |result: Result<(), CardError>| result.unwrap_err().to_string();
    let mut device = Device::discover(echo("default")).unwrap();
    // This card has no memories for route words.
    let words: Vec<_> = (3..40).map(|row| (Level0Row::TABLE, row, 7 << 32 | u64::from(row))).collect();
    assert_eq!(text(device.write_burst(&words)), "table level0, row 3: the card does not have this table");
    // The error was reported once; a row written after it is written.
    let events = device.read(regs::INTERRUPT_STATUS).unwrap();
    assert_eq!(events, regs::INTERRUPT_STATUS_TABLE_ERROR);
    assert_eq!(device.read(regs::BURST_STATUS).unwrap() & regs::BURST_STATUS_ERROR, 0);
    device.write_burst(&[]).unwrap();
    device.write_row(1, &HopRow { mtu: 7, ..HopRow::default() }).unwrap();
    assert_eq!(device.read_row::<HopRow>(1).unwrap().mtu, 7);
    // Several writes in a row: the error names the first that is refused.
    let twin = device.registers();
    let refused =
        twin.write_all(&[(regs::SCRATCH, 1), (regs::IDENT, 1), (regs::NETS, 1), (regs::SCRATCH, 2)]);
    assert_eq!(refused, Err(AccessError::Refused { what: "write", address: regs::IDENT }));
    assert_eq!(twin.write_all(&[]), Ok(()));
    let clocks = twin.cycles();
    twin.write_all(&[(regs::SCRATCH, 5); 1000]).unwrap();
    // The last write is answered three clocks after it is accepted.
    assert_eq!(twin.cycles() - clocks, 1003, "one write per clock");
    assert_eq!(twin.read(regs::SCRATCH), Ok(5));
    assert!(matches!(twin.write_all(&[(2, 1)]), Err(AccessError::Address { address: 2, .. })));
    assert_eq!(twin.failure(), None);
    assert_eq!(
        mute().write_all(&[(regs::SCRATCH, 1)]),
        Err(AccessError::NoAnswer { what: "write", address: regs::SCRATCH })
    );
}

#[test]
fn a_wave_is_written_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wave.fst");
    let mut twin = echo("tcam1");
    let now = twin.cycles();
    twin.set_wave(&file, now + 10, now + 60).unwrap();
    assert!(twin.push(0, 0, 0, 0, &[0x55; 200]));
    twin.run_exactly(100);
    drop(twin);
    assert!(file.metadata().unwrap().len() > 300, "an FST file with contents");
    let mut twin = echo("tcam1");
    let error = twin.set_wave(&folder.path().join("no/such/wave.fst"), 0, 10).unwrap_err();
    assert!(
        error.to_string().contains("no/such/wave.fst: the waveform cannot be written: No such file"),
        "{error}"
    );
}

#[test]
fn files_that_are_not_images_are_named() {
    let text = |result: Result<_, CardError>| result.map(|_: hue_card::Image| ()).unwrap_err().to_string();
    let images = echoes();
    assert_eq!(images.names(), ["default", "tcam1", "wide"]);
    let missing = text(images.load("tcam9"));
    assert!(
        missing.contains("no image 'tcam9'") && missing.ends_with("available: default, tcam1, wide"),
        "{missing}"
    );
    assert!(text(images.load("../echo/tcam1")).contains("no image '../echo/tcam1'"));
    let folder = tempfile::tempdir().unwrap();
    let place = Images::in_folders(vec![folder.path().join("nowhere"), folder.path().to_owned()]);
    assert!(text(place.load("tcam1")).ends_with("build them with `make images`"));
    let good = std::fs::read(echo_file("tcam1")).unwrap();
    let half = good.get(..good.len() / 2).unwrap();
    let mut flipped = good.clone();
    flipped[20_000] ^= 4;
    let damages = [("empty", &[][..]), ("text", b"no image, but longer than a seal\n"), ("half", half)];
    for (what, bytes) in damages.into_iter().chain([("one bit", flipped.as_slice())]) {
        std::fs::write(folder.path().join("tcam1.so"), bytes).unwrap();
        let error = text(place.load("tcam1"));
        assert!(error.contains("tcam1.so: not an image, or damaged"), "{what}: {error}");
    }
    std::fs::write(folder.path().join("tcam5.so"), &good).unwrap();
    assert!(text(place.load("tcam5")).ends_with("it contains the image 'tcam1'"));
}

fn echo_file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("echo").join(format!("{name}.so"))
}
