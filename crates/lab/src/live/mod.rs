//! Runs an experiment on real interfaces that are cabled to the ports of a running node.
//!
//! Flow: feeds → [`pace`] → packet sockets → the node → packet sockets → [`Mark`](crate::mark::Mark) → [`ledger`] →
//! [`LiveMeasured`]. Each interface has one thread that sends and receives. With the same documents, traffic and
//! duration, the frames and their order on each port are the same as in the other experiments. All of them are sent:
//! if the machine cannot keep the rate, the traffic takes longer. A frame's latency begins before the system call
//! that sends it and its batch, and ends with the kernel's time stamp of its reception, so it includes the time for
//! sending on this machine. Invariants: interfaces are not changed, except for promiscuous mode, which the kernel
//! ends with the socket; nothing is allocated for a frame; frames that the receiver itself misses are counted.
//! Source: RFC 2544 §23 (waiting for frames under way), RFC 4737 §3 (reordering).

mod ledger;
mod pace;
mod worker;

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use hue_demux::PortId;
use hue_ports::{Link, PacketSocket, Pool, PortError, SLOT_BYTES};
use hue_substrate::Program;

use crate::error::LabError;
use crate::feed::{Feed, name};
use crate::mark;
use crate::rate::wire_bytes;
use crate::run::{Experiment, FRAMES_MAX, Stream};
use crate::schedule::Schedule;
use crate::soft::WIRES;
use crate::traffic::{Offer, Sort, Source, Traffic};

use ledger::Ledger;
use worker::{Common, Part, Sending, Worker};

/// Number of frames that the kernel buffers for us on each interface.
const RING_FRAMES: u32 = 8192;
/// Slots for frames of an interface: two batches at a time.
const SLOTS: u32 = 256;
/// Bytes of an Ethernet header and a VLAN tag.
const LINK_BYTES: u32 = 18;

/// A real interface, and the port of the node that it is cabled to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cable {
    /// The port.
    pub port: PortId,
    /// The interface.
    pub interface: String,
}

/// A frame that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received<'a> {
    /// The cable, by number.
    pub cable: usize,
    /// The bytes of the frame.
    pub bytes: &'a [u8],
    /// When the kernel received it, nanoseconds since the Unix epoch.
    pub time_ns: u64,
}

/// Results of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CableMeasured {
    /// Frames sent.
    pub sent: u64,
    /// Byte times of these frames on the wire.
    pub sent_wire_bytes: u64,
    /// Duration of the traffic: as planned, or until the last frame was sent if that was later. 0 without traffic.
    pub took_ns: u64,
    /// Largest delay between the planned time of a frame and its sending.
    pub late_ns: u64,
    /// Frames that the system does not send on this interface, because they are longer than its MTU or shorter than a
    /// header.
    pub refused: u64,
    /// Received frames that this experiment sent.
    pub received: u64,
    /// Other received frames.
    pub others: u64,
    /// Frames lost because this program did not receive fast enough.
    pub missed: u64,
    /// Sent frames that are truncated in the capture.
    pub cut: u64,
}

/// Results of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamSent {
    /// Frames sent.
    pub sent: u64,
    /// Byte times of these frames on the wire.
    pub sent_wire_bytes: u64,
    /// The returned frames; `None` if frames carry no number, as runts and frames of captures.
    pub fate: Option<StreamFate>,
}

/// The returned frames of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamFate {
    /// Different frames that came back.
    pub received: u64,
    /// Frames that came back more than once.
    pub doubled: u64,
    /// Frames that came back after a later frame of their flow.
    pub reordered: u64,
    /// Latency of each of the different frames, sorted.
    pub latencies_ns: Vec<u64>,
}

impl StreamFate {
    /// Quantile of the latency in thousandths: the smallest latency that this share of the frames does not exceed;
    /// `None` without frames.
    #[must_use]
    pub fn latency_ns(&self, thousandths: u64) -> Option<u64> {
        let rank = (self.latencies_ns.len() as u128 * u128::from(thousandths.min(1000))).div_ceil(1000);
        self.latencies_ns.get((rank as usize).saturating_sub(1)).copied()
    }
}

/// The result of an experiment on real interfaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveMeasured {
    /// Planned duration of the traffic; `None` means each capture once.
    pub planned_ns: Option<u64>,
    /// Whether it was stopped early.
    pub is_stopped: bool,
    /// Interfaces, in their order.
    pub cables: Vec<CableMeasured>,
    /// Streams, in their order.
    pub streams: Vec<StreamSent>,
}

/// Called for each received frame.
pub type Each<'a> = dyn FnMut(Received<'_>) + Send + 'a;

/// Runs an experiment on real interfaces of this network namespace. `ports` are the names of the node's ports. Calls `each`
/// with every frame that is received. Ends early when `stop` is set.
///
/// # Errors
/// All errors of [`LabError`] but those of cards.
pub fn run_live<'a>(
    programs: &[Program],
    ports: &[String],
    experiment: &Experiment,
    cables: &[Cable],
    stop: &'a AtomicBool,
    each: Option<&'a mut Each<'a>>,
) -> Result<LiveMeasured, LabError> {
    check(experiment, cables, ports)?;
    let end_ns = experiment.duration_us.map(|us| us * 1000);
    let room = Room::of(experiment, end_ns)?;
    let (sources, measured) = sources(programs, ports, experiment, cables)?;
    let sockets = cables.iter().map(|cable| open(&cable.interface)).collect::<Result<Vec<_>, _>>()?;
    let epoch_ns = unix_ns();
    let ledger = |(at, stream): (usize, &Stream)| ledger_of(stream, &room, at, epoch_ns);
    let common = Common {
        ledgers: experiment.streams.iter().enumerate().map(ledger).collect(),
        flows: experiment.streams.iter().map(flows).collect(),
        end_ns: end_ns.unwrap_or(u64::MAX),
        begin: OnceLock::new(),
        barrier: Barrier::new(cables.len()),
        sending: AtomicUsize::new(cables.len()),
        active_ns: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        stop,
        failed: AtomicBool::new(false),
        each: each.map(Mutex::new),
    };
    let workers = cables.iter().enumerate().zip(sockets).zip(sources).zip(measured);
    let workers: Vec<Worker<'_, '_>> = workers
        .map(|((((cable, Cable { interface, .. }), (socket, pool)), sources), measured)| {
            Worker::new((cable, interface), socket, pool, sources, measured, &common)
        })
        .collect();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| worker.run())).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, LabError>>()
    })?;
    let is_stopped = stop.load(Ordering::Relaxed);
    let fates = common.ledgers.into_iter().map(|ledger| ledger.map(Ledger::finish)).collect();
    let (cables, parts): (Vec<CableMeasured>, Vec<Vec<Part>>) = done.into_iter().unzip();
    Ok(LiveMeasured { planned_ns: end_ns, is_stopped, cables, streams: together(fates, &parts) })
}

/// The streams of each interface, and the number of frames that are truncated in their captures.
fn sources(
    programs: &[Program],
    ports: &[String],
    experiment: &Experiment,
    cables: &[Cable],
) -> Result<(Vec<Vec<Sending>>, Vec<CableMeasured>), LabError> {
    // Sort as a card lists them, so that a seed gives the same frames.
    let mut known: Vec<&Program> = programs.iter().collect();
    known.sort_by_key(|program| program.vid);
    let again = experiment.duration_us.is_some();
    let mut sources: Vec<Vec<Sending>> = cables.iter().map(|_| Vec::new()).collect();
    let mut measured = vec![CableMeasured::default(); cables.len()];
    for (stream, Stream { port, traffic }) in experiment.streams.iter().enumerate() {
        let Some(cable) = cables.iter().position(|cable| cable.port == *port) else { continue };
        let (feed, cut) = Feed::open(&traffic.source, stream, *port, &known, ports, again)?;
        let schedule = match traffic.offer {
            Offer::Rate(rate) => Some(Schedule::new(rate, WIRES)),
            Offer::Max => None,
        };
        if let (Some(sources), Some(measured)) = (sources.get_mut(cable), measured.get_mut(cable)) {
            sources.push(Sending::new(stream, name(ports, *port), feed, schedule));
            measured.cut += cut;
        }
    }
    Ok((sources, measured))
}

/// Combines the results of the streams from what each thread recorded.
fn together(fates: Vec<Option<StreamFate>>, parts: &[Vec<Part>]) -> Vec<StreamSent> {
    let mut streams: Vec<StreamSent> =
        fates.into_iter().map(|fate| StreamSent { fate, ..StreamSent::default() }).collect();
    for parts in parts {
        for (stream, part) in streams.iter_mut().zip(parts) {
            stream.sent += part.sent;
            stream.sent_wire_bytes += part.sent_wire_bytes;
            if let Some(fate) = &mut stream.fate {
                fate.doubled += part.doubled;
                fate.reordered += part.reordered;
            }
        }
    }
    streams
}

/// Nanoseconds since the Unix epoch: the clock of the kernel's time stamps.
fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Checks the experiment.
fn check(experiment: &Experiment, cables: &[Cable], ports: &[String]) -> Result<(), LabError> {
    if experiment.streams.is_empty() {
        return Err(LabError::Plan("no port has traffic"));
    }
    if experiment.line.is_some() || experiment.wave.is_some() {
        return Err(LabError::Plan("lines and waveforms are only for the card"));
    }
    for (at, cable) in cables.iter().enumerate() {
        let fault = |what: &str| {
            Err(LabError::Interface { interface: cable.interface.clone(), what: what.to_owned() })
        };
        if cables.iter().take(at).any(|other| other.port == cable.port) {
            return fault("its port already has an interface; a port has one cable");
        }
        if cables.iter().take(at).any(|other| other.interface == cable.interface) {
            return fault("it is already cabled to another port");
        }
    }
    for (at, Stream { port, traffic }) in experiment.streams.iter().enumerate() {
        let fault = |what: &str| Err(LabError::Traffic { port: name(ports, *port), what: what.to_owned() });
        if !cables.iter().any(|cable| cable.port == *port) {
            return fault("no interface is cabled to it; name the one with --live PORT=INTERFACE");
        }
        let shares = |other: &Stream| {
            other.port == *port && [other.traffic.offer, traffic.offer].contains(&Offer::Max)
        };
        if experiment.streams.iter().take(at).any(shares) {
            return fault("it has two streams, but rate:max uses the whole port");
        }
        if experiment.duration_us.is_none() && matches!(traffic.source, Source::Synthetic(_)) {
            return Err(LabError::Plan("generated traffic has no end: set a duration"));
        }
    }
    Ok(())
}

/// Maximum number of frames of each stream; streams without numbers are not limited.
struct Room(Vec<Option<usize>>);

impl Room {
    fn of(experiment: &Experiment, end_ns: Option<u64>) -> Result<Self, LabError> {
        let most = |traffic: &Traffic| -> Option<Option<u64>> {
            let Source::Synthetic(made) = &traffic.source else { return None };
            if made.sort == Sort::Runt {
                return None;
            }
            let Offer::Rate(rate) = traffic.offer else { return Some(None) };
            let bits = u128::from(rate.bits()) * u128::from(end_ns.unwrap_or(0)) / 1_000_000_000;
            let shortest = 8 * u128::from(wire_bytes(made.sizes.frame_bytes_min()));
            Some(Some(u64::try_from(bits / shortest + 1).unwrap_or(u64::MAX)))
        };
        let most: Vec<_> = experiment.streams.iter().map(|stream| most(&stream.traffic)).collect();
        let known = most.iter().flatten().flatten().fold(0, |sum: u64, one| sum.saturating_add(*one));
        let greedy = most.iter().filter(|one| **one == Some(None)).count() as u64;
        let Some(rest) = (FRAMES_MAX as u64).checked_sub(known + greedy) else {
            return Err(LabError::Frames);
        };
        let share = rest.checked_div(greedy).map_or(0, |share| share + 1);
        Ok(Self(most.into_iter().map(|one| one.map(|one| one.unwrap_or(share) as usize)).collect()))
    }
}

fn ledger_of(stream: &Stream, room: &Room, at: usize, epoch_ns: u64) -> Option<Ledger> {
    let Source::Synthetic(made) = &stream.traffic.source else { return None };
    let frames = room.0.get(at).copied().flatten()?;
    Some(Ledger::new(mark::tag(made.seed, stream.port), frames, epoch_ns))
}

fn flows(stream: &Stream) -> usize {
    match &stream.traffic.source {
        Source::Synthetic(made) => made.flows as usize,
        Source::Capture(_) => 0,
    }
}

/// The state of an interface on which frames can be sent.
fn usable(interface: &str) -> Result<Link, LabError> {
    let fault = |what: String| Err(LabError::Interface { interface: interface.to_owned(), what });
    match Link::of(interface)? {
        None => fault("no interface here has this name; `ip link` lists the interfaces".to_owned()),
        Some(link) if link.is_loopback => {
            fault("the loopback has no Ethernet segment; use one end of a veth pair".to_owned())
        }
        Some(link) if !link.is_up => fault(format!("it is down; switch it on: ip link set {interface} up")),
        Some(link) if !link.has_carrier => {
            fault("it has no carrier; connect its cable, and enable the device at the other end".to_owned())
        }
        Some(link) => Ok(link),
    }
}

/// Opens an interface, and memory for its frames.
fn open(interface: &str) -> Result<(PacketSocket, Pool), LabError> {
    let link = usable(interface)?;
    let [short, long] = SLOT_BYTES;
    let fits = link.mtu_bytes + LINK_BYTES <= short - hue_ports::HEADROOM_BYTES;
    let pool = Pool::new(SLOTS, if fits { short } else { long })?;
    match PacketSocket::open(interface, RING_FRAMES, &pool.region()) {
        Ok(socket) => Ok((socket.with_kernel_times(), pool)),
        Err(PortError::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            let what = "no permission to send and receive on it (CAP_NET_RAW); run as root, or give that right to the \
                        program: setcap cap_net_raw+ep hueplane";
            Err(LabError::Interface { interface: interface.to_owned(), what: what.to_owned() })
        }
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    fn experiment(traffic: &[(u8, &str)], duration_us: Option<u64>) -> Experiment {
        let stream = |(port, text): &(u8, &str)| Stream {
            port: PortId::new(*port),
            traffic: Traffic::from_str(text).unwrap(),
        };
        Experiment { streams: traffic.iter().map(stream).collect(), duration_us, line: None, wave: None }
    }

    fn fails(traffic: &[(u8, &str)], cables: &[(u8, &str)], says: &str) {
        let cable = |(port, interface): &(u8, &str)| Cable {
            port: PortId::new(*port),
            interface: (*interface).to_owned(),
        };
        let cables: Vec<Cable> = cables.iter().map(cable).collect();
        let names = ["p0".to_owned(), "p1".to_owned()];
        let experiment = experiment(traffic, Some(1000));
        let error = run_live(&[], &names, &experiment, &cables, &AtomicBool::new(false), None).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }

    #[test]
    fn invalid_traffic_is_refused_before_anything_is_sent() {
        let nobody = "rate:1M,sort:nobody";
        fails(&[(0, nobody)], &[(0, "absent0")], "absent0: no interface here has this name");
        fails(&[(0, nobody)], &[(0, "a-name-that-is-too-long")], "no interface here has this name");
        fails(&[(0, nobody)], &[(1, "absent0")], "traffic of p0: no interface is cabled to it");
        fails(
            &[(0, nobody)],
            &[(0, "absent0"), (0, "absent1")],
            "absent1: its port already has an interface",
        );
        fails(&[(0, nobody)], &[(0, "absent0"), (1, "absent0")], "absent0: it is already cabled to another");
        fails(&[(0, nobody), (0, "rate:max,sort:nobody")], &[(0, "absent0")], "rate:max uses the whole port");
        let fast = "rate:10T,sort:nobody";
        fails(&[(0, fast), (0, fast)], &[(0, "absent0")], "use a shorter duration");
    }

    #[test]
    fn there_is_room_for_every_frame_of_a_schedule() {
        for (traffic, duration_us) in
            [("rate:1G", 10_000), ("rate:999999937,size:64-1518", 3_333), ("rate:1k", 1)]
        {
            let experiment = experiment(&[(0, traffic)], Some(duration_us));
            let room = Room::of(&experiment, Some(duration_us * 1000)).unwrap().0[0].unwrap();
            let Offer::Rate(rate) = experiment.streams[0].traffic.offer else { panic!("it has a rate") };
            let mut schedule = Schedule::new(rate, WIRES);
            let frames = std::iter::repeat_with(|| schedule.next(60).unwrap())
                .take_while(|slot| slot.due < duration_us * 1000);
            assert!((0..2).contains(&(room - frames.count())), "{traffic}");
        }
        let shared =
            experiment(&[(0, "rate:max"), (1, "rate:max"), (2, "rate:1G"), (2, "x.pcap@1G")], Some(1000));
        let room = Room::of(&shared, Some(1_000_000)).unwrap().0;
        assert_eq!((room[0], room[3]), (room[1], None));
        assert!(room.iter().flatten().sum::<usize>() <= FRAMES_MAX + 2);
    }
}
