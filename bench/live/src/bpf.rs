//! The measurements' XDP programs: loading, attaching, their maps, and running the generator. A fence: the kernel's
//! `BPF_PROG_TEST_RUN` is called here, and plain structures are declared to be plain.
//!
//! Invariant: a program leaves its interface when its value is dropped, or the process dies (BPF links).
//! Source: Linux `Documentation/bpf/bpf_prog_run.rst`, `include/uapi/linux/bpf.h`.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, Ordering};

use aya::maps::lpm_trie::Key;
use aya::maps::{Array, DevMap, HashMap, LpmTrie, PerCpuArray, XskMap};
use aya::programs::{SchedClassifier, TcAttachType, Xdp, xdp::XdpMode};
use aya::{Ebpf, Pod};
use hue_e2e::Space;
use hue_e2e::frame::Mac;

static LOAD: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/load.o"));
static FORWARD: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/forward.o"));
static SOCKETS: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sockets.o"));

/// Networks that generator and sink tell apart: `NETWORKS` of `bpf/abi.h`.
pub const NETWORKS: usize = 256;
/// Fillers that the generator has room for: `FILLERS` of `bpf/load.c`.
pub const FILLERS: usize = 256;
/// Buckets of latencies: `BUCKETS` of `bpf/load.c`.
pub const BUCKETS: usize = 2304;
/// Bytes of a frame that a template sets.
pub const TEMPLATE_BYTES: usize = 60;

/// Bytes that IP in IP puts before a frame, of which it takes the Ethernet header: `IN_IPIP` of `bpf/abi.h`.
pub const IN_IPIP: usize = 20;
/// Bytes that VXLAN puts before a frame: `IN_VXLAN` of `bpf/abi.h`.
pub const IN_VXLAN: usize = 50;
/// Most bytes that a template sets of a frame in a tunnel.
const TEMPLATE_BYTES_MAX: usize = 112;

/// `struct settings` of `bpf/load.c`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Settings {
    /// Interface frames go to.
    pub interface: u64,
    /// Rate of paced frames; 0: as many as possible.
    pub packets_per_second: u64,
    /// Templates of paced frames.
    pub paced: u64,
    /// Templates of fillers.
    pub fillers: u64,
    /// Paced frames contain a timestamp.
    pub stamped: u64,
    /// Bytes before the frame that is in a tunnel ([`IN_IPIP`], [`IN_VXLAN`]); 0 without one.
    pub inner: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct State {
    start_ns: u64,
    done: u64,
    next_paced: u64,
    next_filler: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Template {
    network: u64,
    bytes: [u8; TEMPLATE_BYTES_MAX],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Hop {
    macs: [u8; 12],
    port: u32,
}

// SAFETY: integers only, without padding.
unsafe impl Pod for Settings {}
// SAFETY: integers only, without padding.
unsafe impl Pod for State {}
// SAFETY: integers only, without padding.
unsafe impl Pod for Template {}
// SAFETY: integers only, without padding.
unsafe impl Pod for Hop {}

fn failed(what: &str, error: impl std::fmt::Display) -> ! {
    panic!("{what}: {error}")
}

fn load(object: &[u8]) -> Ebpf {
    Ebpf::load(object).unwrap_or_else(|error| failed("load the measurements' XDP programs", error))
}

fn program<'b>(bpf: &'b mut Ebpf, name: &str) -> &'b mut Xdp {
    let found = bpf.program_mut(name).unwrap_or_else(|| panic!("no program {name}"));
    let xdp: &mut Xdp = found.try_into().unwrap_or_else(|error| failed(name, error));
    if xdp.fd().is_err() {
        xdp.load().unwrap_or_else(|error| failed(name, error));
    }
    xdp
}

/// Number of an interface of a namespace.
pub fn index_of(space: &Space, interface: &str) -> u32 {
    let name = CString::new(interface).unwrap_or_default();
    // SAFETY: a string that ends with a zero byte.
    let index = space.inside(|| unsafe { libc::if_nametoindex(name.as_ptr()) });
    assert!(index != 0, "{}: {interface}: {}", space.name(), io::Error::last_os_error());
    index
}

fn attach(bpf: &mut Ebpf, name: &str, space: &Space, interface: &str) {
    let index = index_of(space, interface);
    let xdp = program(bpf, name);
    let attached = space.inside(|| xdp.attach_to_if_index(index, XdpMode::Driver).map(|_| ()));
    attached.unwrap_or_else(|error| failed(&format!("attach {name} to {interface}"), error));
}

macro_rules! map {
    ($bpf:expr, $name:expr, $kind:ident) => {{
        let map = $bpf.map_mut($name).unwrap_or_else(|| panic!("no map {}", $name));
        $kind::try_from(map).unwrap_or_else(|error| failed($name, error))
    }};
}

fn set<T: Pod>(bpf: &mut Ebpf, name: &str, at: u32, value: T) {
    let mut map: Array<_, T> = map!(bpf, name, Array);
    map.set(at, value, 0).unwrap_or_else(|error| failed(name, error));
}

/// Makes frames on a generator's interface.
pub struct Generator {
    bpf: Ebpf,
}

impl Generator {
    /// Frames by network, in turn, and fillers; each at least as long as a template, and all of the same length.
    pub fn new(settings: Settings, paced: &[(u16, Vec<u8>)], fillers: &[Vec<u8>]) -> Self {
        let mut bpf = load(LOAD);
        let _ = program(&mut bpf, "generate");
        assert!(paced.len() <= NETWORKS && fillers.len() <= FILLERS, "too many templates");
        let paced = paced.iter().enumerate().map(|(at, (network, frame))| (at, u64::from(*network), frame));
        let fillers = fillers.iter().enumerate().map(|(at, frame)| (NETWORKS + at, 0, frame));
        for (at, network, frame) in paced.chain(fillers) {
            let mut bytes = [0; TEMPLATE_BYTES_MAX];
            bytes.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
            set(&mut bpf, "TEMPLATES", at as u32, Template { network, bytes });
        }
        set(&mut bpf, "STATE", 0, State::default());
        set(&mut bpf, "SETTINGS", 0, settings);
        Self { bpf }
    }

    /// What a thread in the generator's namespace needs to run it.
    pub fn runner(&mut self, frame: &[u8]) -> Runner {
        let fd = program(&mut self.bpf, "generate").fd().map(|fd| fd.as_fd().as_raw_fd());
        Runner { fd: fd.unwrap_or_else(|error| failed("generate", error)), frame: frame.to_vec() }
    }

    /// Frames made until now: by network, then fillers.
    pub fn sent(&self) -> Vec<u64> {
        let map = self.bpf.map("SENT").unwrap_or_else(|| panic!("no map SENT"));
        let map: Array<_, u64> = Array::try_from(map).unwrap_or_else(|error| failed("SENT", error));
        (0..=NETWORKS as u32).map(|at| map.get(&at, 0).unwrap_or(0)).collect()
    }
}

/// `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;

/// Runs a generator. Its [`Generator`] must outlive it.
pub struct Runner {
    fd: i32,
    frame: Vec<u8>,
}

impl Runner {
    /// Lets the generator run in batches, until a signal interrupts this thread. Beginning and ending take the kernel some
    /// 25 ms.
    pub fn run(&self, batch: u32) -> io::Result<()> {
        let mut attributes = TestRun {
            program: self.fd as u32,
            data_size_in: self.frame.len() as u32,
            data_in: self.frame.as_ptr() as u64,
            repeat: i32::MAX as u32,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: batch,
            ..TestRun::default()
        };
        // SAFETY: the structure is that of the call and of the size given; the frame it points to is alive and only read.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut attributes, size_of::<TestRun>())
        };
        match io::Error::last_os_error() {
            error if result < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn noted(signal: libc::c_int) {
    if signal != libc::SIGUSR1 {
        ENDED.store(true, Ordering::Relaxed);
    }
}

/// Lets [`interrupt`] interrupt system calls instead of ending the process, and Ctrl-C end a measurement at its next step:
/// what it has built is removed.
pub fn take_signals() {
    // SAFETY: a handler that stores a flag may run anywhere; without SA_RESTART it interrupts. The structure is plain.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = noted as extern "C" fn(libc::c_int) as libc::sighandler_t;
        for signal in [libc::SIGUSR1, libc::SIGINT, libc::SIGTERM] {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Checks between the steps of a measurement whether it must end.
///
/// # Panics
/// When the measurement was told to end.
pub fn step() {
    assert!(!ENDED.load(Ordering::Relaxed), "told to end");
}

/// Interrupts a thread's system call until the thread ends.
pub fn interrupt<T>(thread: &std::thread::JoinHandle<T>) {
    while !thread.is_finished() {
        // SAFETY: a thread that was not joined has a valid id, also after its end.
        unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Checks and counts frames that arrive at an interface, and drops them.
pub struct Sink {
    bpf: Ebpf,
}

/// A sink's counters.
#[derive(Clone)]
pub struct Seen {
    /// Frames by network; the last entry counts invalid frames.
    pub frames: Vec<u64>,
    /// Latencies of frames with a timestamp, by bucket.
    pub latencies: Vec<u64>,
}

impl Sink {
    /// Attaches a sink where an interface's driver receives; valid frames have this TTL.
    pub fn attach(space: &Space, interface: &str, ttl: u8) -> Self {
        let mut bpf = load(LOAD);
        set(&mut bpf, "EXPECTED", 0, [u64::from(ttl), 0]);
        attach(&mut bpf, "sink", space, interface);
        Self { bpf }
    }

    /// Attaches a sink where an interface's frames enter the network stack; valid frames have this TTL, and this many bytes
    /// of a tunnel before them.
    pub fn attach_in_stack(space: &Space, interface: &str, ttl: u8, inner: usize) -> Self {
        let mut bpf = load(LOAD);
        set(&mut bpf, "EXPECTED", 0, [u64::from(ttl), inner as u64]);
        let found = bpf.program_mut("sink_stack").unwrap_or_else(|| panic!("no program sink_stack"));
        let classifier: &mut SchedClassifier =
            found.try_into().unwrap_or_else(|error| failed("sink_stack", error));
        classifier.load().unwrap_or_else(|error| failed("sink_stack", error));
        let attached = space.inside(|| classifier.attach(interface, TcAttachType::Ingress).map(|_| ()));
        attached.unwrap_or_else(|error| failed(&format!("attach sink_stack to {interface}"), error));
        Self { bpf }
    }

    /// Everything until now.
    pub fn seen(&self) -> Seen {
        let sums = |name: &str, count: usize| -> Vec<u64> {
            let map = self.bpf.map(name).unwrap_or_else(|| panic!("no map {name}"));
            let map: PerCpuArray<_, u64> =
                PerCpuArray::try_from(map).unwrap_or_else(|error| failed(name, error));
            let sum = |at| map.get(&at, 0).map_or(0, |values| values.iter().sum());
            (0..count as u32).map(sum).collect()
        };
        Seen { frames: sums("RECEIVED", NETWORKS + 1), latencies: sums("LATENCY", BUCKETS) }
    }
}

/// The forwarder of decision 0009, from one interface of a namespace out of another.
pub struct FastPath {
    _bpf: Ebpf,
}

impl FastPath {
    /// Starts it with routes: address, next hop's and own MAC address.
    pub fn attach(space: &Space, from: &str, to: &str, routes: &[([u8; 4], Mac, Mac)]) -> Self {
        let mut bpf = load(FORWARD);
        let port = index_of(space, to);
        let mut ports: DevMap<_> = map!(bpf, "PORTS", DevMap);
        space
            .inside(|| ports.set(0, port, None, 0))
            .unwrap_or_else(|error| failed("the map of interfaces", error));
        let mut map: LpmTrie<_, [u8; 4], Hop> = map!(bpf, "ROUTES", LpmTrie);
        for (address, next, own) in routes {
            let mut macs = [0; 12];
            macs[..6].copy_from_slice(next);
            macs[6..].copy_from_slice(own);
            let key = Key::new(24, [address[0], address[1], address[2], 0]);
            map.insert(&key, Hop { macs, port: 0 }, 0).unwrap_or_else(|error| failed("a route", error));
        }
        attach(&mut bpf, "forward", space, from);
        Self { _bpf: bpf }
    }
}

/// The program that gives each network's frames to its own socket.
pub struct Steering {
    bpf: Ebpf,
}

impl Steering {
    /// With a network for each MAC address; not attached yet.
    pub fn new(macs: &[(Mac, u32)]) -> Self {
        let mut bpf = load(SOCKETS);
        let mut map: HashMap<_, u64, u32> = map!(bpf, "MACS", HashMap);
        for (m, network) in macs {
            let key = u64::from_ne_bytes([m[0], m[1], m[2], m[3], m[4], m[5], 0, 0]);
            map.insert(key, network, 0).unwrap_or_else(|error| failed("a MAC address", error));
        }
        let _ = program(&mut bpf, "sockets");
        Self { bpf }
    }

    /// The socket of a network.
    pub fn set(&mut self, network: u32, socket: &impl AsRawFd) {
        let mut map: XskMap<_> = map!(self.bpf, "SOCKETS", XskMap);
        map.set(network, socket.as_raw_fd(), 0).unwrap_or_else(|error| failed("a socket", error));
    }

    /// Puts it on an interface of the calling thread's namespace.
    pub fn attach(&mut self, index: u32) {
        let attached = program(&mut self.bpf, "sockets").attach_to_if_index(index, XdpMode::Driver);
        let _ = attached.unwrap_or_else(|error| failed("attach", error));
    }
}
