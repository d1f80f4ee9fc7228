//! Two namespaces joined by a veth, and a raw socket at the far end, used by the tests of live ports. Needs root.

#![allow(dead_code)] // each test binary uses its part
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hue_ports::{Packet, Pool, Port, PortError};

/// Ethertype of the tests' frames, for local experiments (IEEE 802).
pub const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Time limit for expected events, long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Whether the test can run; prints the reason if it cannot.
pub fn may_run() -> bool {
    // SAFETY: asks for a number.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        hue_testdata::skipped("root");
    }
    root
}

/// Runs a command that must succeed.
pub fn run(command: &str) {
    assert!(try_run(command), "{command}");
}

pub fn try_run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    if !output.status.success() {
        eprintln!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

/// A namespace "near" with our port's interface `near`, and one "far" with its peer `far`; removed when dropped.
pub struct Lab {
    name: String,
}

impl Lab {
    pub fn new() -> Self {
        Self::with_queues(1)
    }

    pub fn with_queues(queues: u32) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let lab = Self { name: format!("hte-{}-{number}", std::process::id()) };
        for side in ["near", "far"] {
            run(&format!("ip netns add {}", lab.namespace(side)));
            lab.inside(side, || {
                for conf in ["all", "default"] {
                    // On a kernel without IPv6 there is nothing to disable.
                    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{conf}/disable_ipv6"), "1");
                }
            });
        }
        lab.join(queues);
        lab
    }

    pub fn namespace(&self, side: &str) -> String {
        format!("{}-{side}", self.name)
    }

    /// Creates the veth (again).
    pub fn join(&self, queues: u32) {
        let (near, far) = (self.namespace("near"), self.namespace("far"));
        let numbers = format!("numrxqueues {queues} numtxqueues {queues}");
        run(&format!(
            "ip link add near netns {near} {numbers} type veth peer name far netns {far} {numbers}"
        ));
        if queues > 1 {
            run(&format!("ip netns exec {near} ethtool -L near rx {queues} tx {queues}"));
            run(&format!("ip netns exec {far} ethtool -L far rx {queues} tx {queues}"));
        }
        run(&format!("ip -n {near} link set dev near up"));
        run(&format!("ip -n {far} link set dev far up"));
    }

    /// Deletes the veth.
    pub fn part(&self) {
        run(&format!("ip -n {} link del dev far", self.namespace("far")));
    }

    /// Runs `work` on a thread inside a namespace.
    pub fn inside<T: Send>(&self, side: &str, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.namespace(side))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: the descriptor is open; the thread ends with the closure.
                let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
                assert_eq!(entered, 0, "{}", io::Error::last_os_error());
                work()
            });
            thread.join().unwrap()
        })
    }

    /// The far end as a raw socket.
    pub fn raw(&self) -> Raw {
        self.inside("far", || Raw::open("far"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for side in ["near", "far"] {
            let _ = try_run(&format!("ip netns del {}", self.namespace(side)));
        }
    }
}

/// A packet socket, built by hand and independent of the crate.
pub struct Raw(OwnedFd);

impl Raw {
    /// Opens it on an interface of the calling thread's namespace.
    pub fn open(interface: &str) -> Self {
        let name = std::ffi::CString::new(interface).unwrap();
        // SAFETY: plain calls with local memory of the right sizes.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            let fd = OwnedFd::from_raw_fd(fd);
            let (one, buffer) = (1i32, 32i32 << 20);
            let set = |level, name, value: &i32| {
                libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), 4)
            };
            assert_eq!(set(libc::SOL_PACKET, 23, &one), 0); // PACKET_IGNORE_OUTGOING
            assert_eq!(set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer), 0);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let size = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size), 0);
            Self(fd)
        }
    }

    pub fn send(&self, frame: &[u8]) {
        // SAFETY: reads the frame only.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// Returns the next frame of the tests, if one has arrived.
    pub fn receive(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0u8; 9000];
        loop {
            // SAFETY: writes into the buffer only.
            let got = unsafe {
                libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            if got < 0 {
                return None;
            }
            if buffer[12..14] == ETHERTYPE {
                return Some(buffer[..got as usize].to_vec());
            }
        }
    }
}

/// A frame with a number and contents that depend on it.
pub fn frame(to: [u8; 6], number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
    frame[12..14].copy_from_slice(&ETHERTYPE);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    for (at, byte) in frame.iter_mut().enumerate().skip(18) {
        *byte = (at as u32).wrapping_mul(31).wrapping_add(number) as u8;
    }
    frame
}

/// The number of a frame.
pub fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// Returns what a port receives until `count` frames of the tests have arrived or the time limit is reached. Slots
/// are returned.
pub fn collect(port: &mut dyn Port, pool: &mut Pool, count: usize) -> Vec<Vec<u8>> {
    collect_until(port, pool, |frames| frames.len() >= count, PATIENCE)
}

/// Returns what a port receives in a certain time.
pub fn collect_for(port: &mut dyn Port, pool: &mut Pool, time: Duration) -> Vec<Vec<u8>> {
    collect_until(port, pool, |_| false, time)
}

fn collect_until(
    port: &mut dyn Port,
    pool: &mut Pool,
    enough: impl Fn(&[Vec<u8>]) -> bool,
    patience: Duration,
) -> Vec<Vec<u8>> {
    let begin = Instant::now();
    let (mut frames, mut packets) = (Vec::new(), Vec::with_capacity(64));
    while !enough(&frames) && begin.elapsed() < patience {
        port.receive(pool, begin.elapsed().as_nanos() as u64, &mut packets, 64).unwrap();
        if packets.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
        }
        for packet in packets.drain(..) {
            let bytes = packet.bytes(pool);
            if bytes.get(12..14) == Some(&ETHERTYPE) {
                frames.push(bytes.to_vec());
            }
            if packet.class != 0 {
                port.consumed(packet.class, 1);
            }
            pool.give(packet.slot);
        }
    }
    frames
}

/// Sends a frame, flushing while the ring is full.
pub fn send(port: &mut dyn Port, pool: &mut Pool, frame: &[u8]) {
    let begin = Instant::now();
    loop {
        if let Some(packet) = pool.copy_in(frame, 0) {
            match port.send(pool, packet) {
                Ok(()) => return,
                Err(packet) => pool.give(packet.slot),
            }
        }
        port.flush(pool).unwrap();
        assert!(begin.elapsed() < PATIENCE, "the ring stays full");
    }
}

/// Flushes until everything was handed over.
pub fn flush(port: &mut dyn Port, pool: &mut Pool) {
    let begin = Instant::now();
    port.flush(pool).unwrap();
    while port.pending() > 0 && begin.elapsed() < PATIENCE {
        port.flush(pool).unwrap();
    }
}

/// Uses a port until it fails, or the time limit is reached.
pub fn fails(port: &mut dyn Port, pool: &mut Pool, frame: &[u8]) -> Option<PortError> {
    let begin = Instant::now();
    let mut packets: Vec<Packet> = Vec::new();
    while begin.elapsed() < PATIENCE {
        let received = port.receive(pool, begin.elapsed().as_nanos() as u64, &mut packets, 64);
        for packet in packets.drain(..) {
            pool.give(packet.slot);
        }
        if let Some(packet) = pool.copy_in(frame, 0)
            && let Err(packet) = port.send(pool, packet)
        {
            pool.give(packet.slot);
        }
        if let Err(error) = received.and(port.flush(pool)) {
            return Some(error);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}
