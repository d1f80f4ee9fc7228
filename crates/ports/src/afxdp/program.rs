//! The XDP program of a port and its maps: loading, attaching, setting classes, and the counters shared with it.
//!
//! Invariants: the program is detached from the interface when [`Program`] is dropped or the process dies (a BPF
//! link); words shared with it are aligned 64-bit words in mapped arrays. The maps' layout is that of
//! spec/xdp/hueplane.c.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use aya::maps::lpm_trie::Key;
use aya::maps::{Array, HashMap as BpfHashMap, LpmTrie, Map, MapData, XskMap};
use aya::programs::{Xdp, xdp::XdpMode};
use aya::{Ebpf, EbpfLoader, Pod};

use super::attachment::Attachment;
use serde::{Deserialize, Serialize};

use crate::{CLASS_GROUP, CLASS_MAX, CLASS_OTHER, ClassRule, DriverCounters};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/hueplane.o"));

/// Name of the program, for us and for the kernel.
pub(super) const NAME: &str = "hueplane";

/// Words of a queue in the arrays of classes: group frames, networks, others.
pub(super) const CLASSES: usize = CLASS_MAX as usize + 2;
/// Index of group frames.
const INDEX_GROUP: usize = 0;
/// Index of frames whose network is only known after the ring.
const INDEX_OTHER: usize = CLASSES - 1;
/// Maximum number of receive queues of an interface.
pub(super) const QUEUES_MAX: u32 = 64;

const FLAG_CLASSES: u64 = 1;
const FLAG_MACS: u64 = 2;
const FLAG_INNER: u64 = 4;
const FLAG_DEFAULT: u64 = 8;
const FLAG_PASS_UNKNOWN: u64 = 16;

const STAT_NOBODY: usize = 0;
const STAT_NO_META: usize = 2;
const STAT_RUNT: usize = 3;
const STATS: usize = 8;

/// Limits of frames to group addresses, before the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Packets per second from one sender (by its MAC); 0 means no limit.
    pub source_packets_per_second: u64,
    /// Packets that one sender may send at once.
    pub source_burst_packets: u64,
    /// Packets per second from all senders together; 0 means no limit.
    pub packets_per_second: u64,
    /// Packets that all senders together may send at once.
    pub burst_packets: u64,
}

impl Default for GroupLimits {
    /// Far above what address resolution and routing protocols of hundreds of hosts need, and far below what causes
    /// overload.
    fn default() -> Self {
        Self {
            source_packets_per_second: 1_000,
            source_burst_packets: 500,
            packets_per_second: 20_000,
            burst_packets: 2_000,
        }
    }
}

/// `struct settings` of the program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Settings {
    flags: u64,
    default_class: u64,
    source_packets_per_second: u64,
    source_burst_packets: u64,
    group_packets_per_second: u64,
    group_burst_packets: u64,
}

// SAFETY: integers only, without padding.
unsafe impl Pod for Settings {}

/// An array map as memory that we share with the program.
pub(super) struct Words {
    base: NonNull<u8>,
    bytes: usize,
    count: usize,
    _map: OwnedFd,
}

// SAFETY: the memory is accessed only through atomics.
unsafe impl Send for Words {}

impl Words {
    fn map(map: &MapData, count: usize) -> io::Result<Self> {
        let fd = map.fd().as_fd().try_clone_to_owned()?;
        let bytes = (count * size_of::<u64>()).next_multiple_of(4096);
        // SAFETY: a new shared mapping of the map's memory; the kernel refuses a larger size than the map has.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Self { base, bytes, count, _map: fd })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count);
        // SAFETY: inside the mapping, aligned, and the program uses the same word as a 64-bit counter.
        unsafe { &*self.base.as_ptr().cast::<AtomicU64>().add(index) }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, used by nobody else.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Rules as the maps hold them.
#[derive(Default)]
struct Rules {
    macs: HashMap<u64, u64>,
    inner: HashMap<(u32, u8), u64>,
    default_class: u64,
    quotas: HashMap<u16, u32>,
}

/// The program, attached.
pub(super) struct Program {
    /// Dropping it detaches the program from the interface, if it made the attachment.
    bpf: Ebpf,
    /// The attachment that another process had made. Dropping it detaches the program.
    inherited: Option<Attachment>,
    settings: Settings,
    rules: Rules,
    quotas: Words,
    pub(super) consumed: Words,
    pub(super) policed: Words,
    stats: Words,
    queues: usize,
}

/// Index of a class in the arrays; `None` if it is out of range or means no class.
pub(super) fn index_of(class: u16) -> Option<usize> {
    match class {
        CLASS_GROUP => Some(INDEX_GROUP),
        CLASS_OTHER => Some(INDEX_OTHER),
        1..=CLASS_MAX => Some(usize::from(class)),
        _ => None,
    }
}

pub(super) fn other(error: impl std::error::Error) -> io::Error {
    // The causes contain the kernel's error; the outer error only names the call.
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(source) = inner.downcast_ref::<io::Error>()
            && let Some(code) = source.raw_os_error()
        {
            return io::Error::from_raw_os_error(code);
        }
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    io::Error::other(text)
}

pub(super) fn missing(what: &str) -> io::Error {
    io::Error::other(format!("the XDP object has no {what}"))
}

/// Loads XDP programs. Making one takes tens of milliseconds, because it reads the kernel's types, which ours do not
/// need.
static LOADER: LazyLock<Mutex<EbpfLoader<'static>>> = LazyLock::new(|| {
    let mut loader = EbpfLoader::new();
    loader.btf(None);
    Mutex::new(loader)
});

/// Does now what the first port on AF_XDP would otherwise wait for.
pub fn prepare() {
    LazyLock::force(&LOADER);
    // With the first program, the library finds out what the kernel can do. A port that needs it reports an error.
    drop(Program::load(1, false, GroupLimits::default()));
}

impl Program {
    /// Loads the program for an interface of `queues` queues; it is not attached yet.
    pub(super) fn load(queues: u32, pass_unknown: bool, limits: GroupLimits) -> io::Result<Self> {
        let words = queues * CLASSES as u32;
        let mut loader = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
        for map in ["ADMITTED", "CONSUMED", "POLICED", "PROBED"] {
            loader.map_max_entries(map, words);
        }
        let bpf = loader.load(OBJECT).map_err(other)?;
        drop(loader);
        let array = |name: &str, count: usize| match bpf.map(name) {
            Some(Map::Array(data)) => Words::map(data, count),
            _ => Err(missing(name)),
        };
        let (quotas, stats) = (array("QUOTAS", CLASSES)?, array("STATS", STATS)?);
        let (consumed, policed) = (array("CONSUMED", words as usize)?, array("POLICED", words as usize)?);
        let settings = Settings {
            flags: if pass_unknown { FLAG_PASS_UNKNOWN } else { 0 },
            default_class: 0,
            source_packets_per_second: limits.source_packets_per_second,
            source_burst_packets: limits.source_burst_packets,
            group_packets_per_second: limits.packets_per_second,
            group_burst_packets: limits.burst_packets,
        };
        let mut program = Self {
            bpf,
            inherited: None,
            settings,
            rules: Rules::default(),
            quotas,
            consumed,
            policed,
            stats,
            queues: queues as usize,
        };
        program.write_settings()?;
        let xdp = program.xdp()?;
        xdp.load().map_err(other)?;
        Ok(program)
    }

    fn xdp(&mut self) -> io::Result<&mut Xdp> {
        let program = self.bpf.program_mut(NAME).ok_or_else(|| missing("program"))?;
        program.try_into().map_err(other)
    }

    /// Attaches the program to an interface, at the driver's hook or the kernel's generic one.
    pub(super) fn attach(&mut self, interface: u32, native: bool) -> io::Result<()> {
        let mode = if native { XdpMode::Driver } else { XdpMode::Skb };
        self.xdp()?.attach_to_if_index(interface, mode).map_err(other)?;
        Ok(())
    }

    /// Takes the place of the program that is attached.
    pub(super) fn inherit(&mut self, attachment: Attachment) -> io::Result<()> {
        attachment.replace(self.xdp()?.fd().map_err(other)?.as_fd())?;
        self.inherited = Some(attachment);
        Ok(())
    }

    /// Sends the frames of a queue to a socket.
    pub(super) fn set_socket(&mut self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        let map = self.bpf.map_mut("SOCKETS").ok_or_else(|| missing("map SOCKETS"))?;
        let mut sockets = XskMap::try_from(map).map_err(other)?;
        sockets.set(queue, socket.as_raw_fd(), 0).map_err(other)
    }

    fn write_settings(&mut self) -> io::Result<()> {
        let settings = self.settings;
        let map = self.bpf.map_mut("SETTINGS").ok_or_else(|| missing("map SETTINGS"))?;
        Array::try_from(map).map_err(other)?.set(0, settings, 0).map_err(other)
    }

    /// Replaces rules and quotas. New rules are added before old ones are removed, so that a class that stays loses
    /// no frame.
    pub(super) fn set_classes(&mut self, rules: &[ClassRule], quotas: &[(u16, u32)]) -> io::Result<()> {
        let mut new = Rules { quotas: quotas.iter().copied().collect(), ..Rules::default() };
        let mut flags = (self.settings.flags & FLAG_PASS_UNKNOWN) | FLAG_CLASSES;
        for rule in rules {
            match *rule {
                ClassRule::Mac { mac: m, class } => {
                    let key = u64::from_ne_bytes([m[0], m[1], m[2], m[3], m[4], m[5], 0, 0]);
                    new.macs.insert(key, u64::from(class));
                    flags |= FLAG_MACS;
                }
                ClassRule::Inner { addr, len, class } => {
                    let len = len.min(32);
                    let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                    new.inner.insert((addr & mask, len), u64::from(class));
                    flags |= FLAG_INNER;
                }
                ClassRule::Default { class } => {
                    new.default_class = u64::from(class);
                    flags |= FLAG_DEFAULT;
                }
            }
        }
        for index in 0..CLASSES {
            let class = match index {
                INDEX_GROUP => CLASS_GROUP,
                INDEX_OTHER => CLASS_OTHER,
                network => network as u16, // at most CLASS_MAX
            };
            self.quotas.set(index, new.quotas.get(&class).map_or(0, |quota| u64::from(*quota)));
        }
        let old = std::mem::take(&mut self.rules);
        self.change_macs(&old.macs, &new.macs)?;
        self.change_inner(&old.inner, &new.inner)?;
        self.rules = new;
        self.settings.flags = flags;
        self.settings.default_class = self.rules.default_class;
        self.write_settings()
    }

    fn change_macs(&mut self, old: &HashMap<u64, u64>, new: &HashMap<u64, u64>) -> io::Result<()> {
        let map = self.bpf.map_mut("MACS").ok_or_else(|| missing("map MACS"))?;
        let mut map: BpfHashMap<_, u64, u64> = BpfHashMap::try_from(map).map_err(other)?;
        for (mac, class) in new.iter().filter(|(mac, class)| old.get(*mac) != Some(*class)) {
            map.insert(mac, class, 0).map_err(other)?;
        }
        for mac in old.keys().filter(|mac| !new.contains_key(*mac)) {
            map.remove(mac).map_err(other)?;
        }
        Ok(())
    }

    fn change_inner(
        &mut self,
        old: &HashMap<(u32, u8), u64>,
        new: &HashMap<(u32, u8), u64>,
    ) -> io::Result<()> {
        let map = self.bpf.map_mut("INNER").ok_or_else(|| missing("map INNER"))?;
        let mut map: LpmTrie<_, [u8; 4], u64> = LpmTrie::try_from(map).map_err(other)?;
        let key = |(addr, len): (u32, u8)| Key::new(u32::from(len), addr.to_be_bytes());
        for (prefix, class) in new.iter().filter(|(prefix, class)| old.get(*prefix) != Some(*class)) {
            map.insert(&key(*prefix), class, 0).map_err(other)?;
        }
        for prefix in old.keys().filter(|prefix| !new.contains_key(*prefix)) {
            map.remove(&key(*prefix)).map_err(other)?;
        }
        Ok(())
    }

    /// Packets of one class that the program dropped, on all queues.
    pub(super) fn policed(&self, index: usize) -> u64 {
        (0..self.queues).map(|queue| self.policed.get(queue * CLASSES + index)).sum()
    }

    /// Adds the drops of the program to a port's counters.
    pub(super) fn count(&self, counters: &mut DriverCounters) {
        counters.shared_quota += self.policed(INDEX_GROUP) + self.policed(INDEX_OTHER);
        counters.ring_quota += (1..INDEX_OTHER).map(|index| self.policed(index)).sum::<u64>();
        counters.no_network += self.stats.get(STAT_NOBODY);
        counters.runt += self.stats.get(STAT_RUNT);
    }

    /// Whether classes are set and the driver supports metadata before frames, so that it may be read.
    pub(super) fn describes(&self) -> bool {
        self.settings.flags & FLAG_CLASSES != 0 && self.stats.get(STAT_NO_META) == 0
    }
}
