//! Measures the cost of a port itself: sends frames received on one interface out of another, in both directions,
//! with MACs swapped.
//!
//!     bounce A B [--driver auto|afxdp|packet] [--seconds N] [--ring N] [--sleep] [--quota N]
//!     bounce --blast A [--driver …] [--seconds N] [--bytes N] [--to MAC] [--batch N]
//!
//! The second form sends UDP frames (10.1.0.2 to 10.2.0.2) as fast as it can. Prints packets per second. `--sleep`
//! waits for readiness instead of polling; `--quota` limits the packets of a port between ring and engine to this
//! number.

use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hue_ports::{ClassRule, OpenOptions, Opened, Packet, Pool, Port, PortError, Wanted, open};

struct Arguments {
    interfaces: Vec<String>,
    options: OpenOptions,
    time: Duration,
    blast: bool,
    bytes: usize,
    to: [u8; 6],
    batch: usize,
    sleep: bool,
    quota: Option<u32>,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        interfaces: Vec::new(),
        options: OpenOptions::default(),
        time: Duration::from_secs(5),
        blast: false,
        bytes: 60,
        to: [2, 0, 0, 0, 0, 9],
        batch: 64,
        sleep: false,
        quota: None,
    };
    let mut rest = std::env::args().skip(1);
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument}: a value is missing"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match argument.as_str() {
            "--driver" => found.options.driver = value()?.parse::<Wanted>()?,
            "--seconds" => found.time = Duration::from_secs(number(value()?)?),
            "--ring" => found.options.ring = number(value()?)? as u32,
            "--bytes" => found.bytes = number(value()?)? as usize,
            "--batch" => found.batch = number(value()?)? as usize,
            "--quota" => found.quota = Some(number(value()?)? as u32),
            "--blast" => found.blast = true,
            "--sleep" => found.sleep = true,
            "--to" => {
                let text = value()?;
                let parts: Vec<u8> = text.split(':').filter_map(|p| u8::from_str_radix(p, 16).ok()).collect();
                found.to = parts.try_into().map_err(|_| format!("{text}: not a MAC"))?;
            }
            name => found.interfaces.push(name.to_owned()),
        }
    }
    let wanted = if found.blast { 1 } else { 2 };
    if found.interfaces.len() != wanted {
        return Err("usage: bounce A B | bounce --blast A (see the head of examples/bounce.rs)".to_owned());
    }
    Ok(found)
}

fn frame(to: [u8; 6], bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(42);
    let mut frame = vec![0u8; bytes];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let length = (bytes - 14) as u16;
    let mut header = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2];
    header[2..4].copy_from_slice(&length.to_be_bytes());
    let mut sum: u32 = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame[14..34].copy_from_slice(&header);
    frame[34..42].copy_from_slice(&[0, 9, 0, 9, ((length - 20) >> 8) as u8, (length - 20) as u8, 0, 0]);
    frame
}

fn opened(name: &str, arguments: &Arguments, pool: &Pool) -> Result<Box<dyn Port>, PortError> {
    let Opened { port, note } = open(name, &arguments.options, pool)?;
    println!("{name}: {}{}", port.driver(), note.map(|note| format!(" ({note})")).unwrap_or_default());
    Ok(port)
}

fn blast(arguments: &Arguments, pool: &mut Pool) -> Result<(), PortError> {
    let mut port = opened(&arguments.interfaces[0], arguments, pool)?;
    let frame = frame(arguments.to, arguments.bytes);
    let (begin, cpu) = (Instant::now(), cpu_ns());
    let mut sink: Vec<Packet> = Vec::with_capacity(256);
    while begin.elapsed() < arguments.time {
        for _ in 0..arguments.batch {
            let Some(packet) = pool.copy_in(&frame, 0) else { break };
            if let Err(packet) = port.send(pool, packet) {
                pool.give(packet.slot);
                break;
            }
        }
        port.flush(pool)?;
        port.receive(pool, begin.elapsed().as_nanos() as u64, &mut sink, 256)?;
        for packet in sink.drain(..) {
            pool.give(packet.slot);
        }
    }
    let counters = port.counters();
    println!(
        "sent {:.3} Mpps, {:.0} ns of processor time a packet",
        counters.sent_packets as f64 / begin.elapsed().as_secs_f64() / 1e6,
        (cpu_ns() - cpu) as f64 / counters.sent_packets.max(1) as f64
    );
    port.close(pool);
    Ok(())
}

/// Moves one batch from one port to the other; returns the number of packets.
fn pass(
    pool: &mut Pool,
    ports: (&mut dyn Port, &mut dyn Port),
    now_ns: u64,
    batch: &mut Vec<Packet>,
    full: &mut u64,
) -> Result<usize, PortError> {
    let (from, to) = ports;
    let got = from.receive(pool, now_ns, batch, batch.capacity())?;
    for packet in batch.drain(..) {
        if let Some((macs, _)) = packet.bytes_mut(pool).split_first_chunk_mut::<12>() {
            macs.rotate_left(6);
        }
        if packet.class != 0 {
            from.consumed(packet.class, 1);
        }
        if let Err(packet) = to.send(pool, packet) {
            pool.give(packet.slot);
            *full += 1;
        }
    }
    if got > 0 || to.pending() > 0 {
        to.flush(pool)?;
    }
    Ok(got)
}

fn bounce(arguments: &Arguments, pool: &mut Pool) -> Result<(), PortError> {
    let mut a = opened(&arguments.interfaces[0], arguments, pool)?;
    let mut b = opened(&arguments.interfaces[1], arguments, pool)?;
    if let Some(quota) = arguments.quota {
        for port in [&mut a, &mut b] {
            port.set_classes(&[ClassRule::Default { class: 1 }], &[(1, quota)])?;
        }
    }
    let mut batch: Vec<Packet> = Vec::with_capacity(arguments.batch);
    let cpu = cpu_ns();
    let (mut full, mut rounds, mut busy) = (0, 0u64, 0u64);
    let begin = Instant::now();
    while begin.elapsed() < arguments.time {
        let now_ns = begin.elapsed().as_nanos() as u64;
        let mut moved = pass(pool, (&mut *a, &mut *b), now_ns, &mut batch, &mut full)?;
        moved += pass(pool, (&mut *b, &mut *a), now_ns, &mut batch, &mut full)?;
        rounds += 1;
        busy += u64::from(moved > 0);
        if moved == 0 && arguments.sleep {
            let mut polled = [&a, &b].map(|port| libc::pollfd {
                fd: port.readiness().map_or(-1, |fd| fd.as_raw_fd()),
                events: libc::POLLIN,
                revents: 0,
            });
            // A tenth of a second at most, so that the end time is noticed.
            wait(&mut polled);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    for (name, port) in arguments.interfaces.iter().zip([&a, &b]) {
        let c = port.counters();
        println!(
            "{name}: received {:.3} Mpps, sent {:.3} Mpps, {} lost before the ring, {} policed, {} not sent",
            c.received_packets as f64 / seconds / 1e6,
            c.sent_packets as f64 / seconds / 1e6,
            c.ring_full,
            c.ring_quota,
            c.send_failed
        );
    }
    let moved = a.counters().received_packets + b.counters().received_packets;
    println!("{:.0} ns of processor time a packet", (cpu_ns() - cpu) as f64 / moved.max(1) as f64);
    println!(
        "{rounds} rounds, {:.1} packets a busy one, transmit ring full {full} times",
        moved as f64 / busy.max(1) as f64
    );
    a.close(pool);
    b.close(pool);
    Ok(())
}

/// Processor time of this thread, including kernel time.
#[allow(unsafe_code)]
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[allow(unsafe_code)]
fn wait(polled: &mut [libc::pollfd]) {
    // SAFETY: as many entries as the slice has.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 100) };
}

fn main() -> ExitCode {
    let outcome = arguments().and_then(|arguments| {
        let mut pool = Pool::new(16384, 2048).map_err(|error| error.to_string())?;
        let run = if arguments.blast { blast } else { bounce };
        run(&arguments, &mut pool).map_err(|error| error.to_string())?;
        if pool.free() == pool.slots() as usize {
            Ok(())
        } else {
            Err(format!("{} of {} slots came back", pool.free(), pool.slots()))
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bounce: {error}");
            ExitCode::FAILURE
        }
    }
}
