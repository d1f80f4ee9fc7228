//! Named limits of desired state. Each is enforced by the reader or the validator and tested at its edge.
//!
//! Flow: text → reader (file, depth, node limits) → decoder (ranges) → validator (counts).

/// Largest file read, bytes: 64 MiB, a full table of static routes. Reading one of those takes 0.7 GB of memory.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Deepest nesting of lists and mappings; a valid document needs 6.
pub const DEPTH_MAX: usize = 32;
/// Most fields of one mapping; a valid one has at most 14.
pub const KEYS_MAX: usize = 256;
/// Most YAML values (scalars, lists, mappings, aliases) in one file.
pub const VALUES_MAX: usize = 8_000_000;
/// Most errors kept for one load; the rest are only counted.
pub const ERRORS_MAX: usize = 1_000;
/// Longest name of anything, characters.
pub const NAME_CHARS_MAX: usize = 63;
/// Most networks of a node: 12-bit ids, 0 is "none".
pub const NETWORKS_MAX: usize = hue_tables::Vid::MAX as usize;
/// Most physical ports of a node: port ids are 8 bits.
pub const NODE_PORTS_MAX: usize = 256;
/// Most virtual ports of one network.
pub const NETWORK_PORTS_MAX: usize = 256;
/// Most addresses of one virtual port.
pub const PORT_ADDRESSES_MAX: usize = 256;
/// Most neighbours of one network; each takes a next-hop index, of which there are 65,535.
pub const NEIGHBOURS_MAX: usize = 32_768;
/// Most static routes of one network.
pub const ROUTES_MAX: usize = 2_000_000;
/// Most prefixes a network selects frames by.
pub const SELECT_PREFIXES_MAX: usize = 4_096;
/// Most MAC ports of a card.
pub const CARD_PORTS_MAX: usize = 4;
/// Smallest MTU, bytes of IP packet: 68, which every module must forward (RFC 791 §3.2).
pub const MTU_MIN: u16 = hue_planes::ipv4::MTU_BYTES_MIN;
/// Largest MTU, bytes of IP packet: 9,202, the longest frame of 9,216 less its Ethernet header of 14.
pub const MTU_MAX: u16 = hue_planes::ipv4::MTU_BYTES_MAX;
/// MTU of a port that does not say, bytes of IP packet.
pub const MTU_DEFAULT: u16 = 1_500;
/// Largest share in the fair queues.
pub const WEIGHT_MAX: u16 = 1_000;
/// Highest rate and deepest burst, packets or bits: 40 bits in the meter.
pub const RATE_MAX: u64 = hue_planes::Rate::MAX;
/// Least bandwidth, bits a second.
pub const BANDWIDTH_BPS_MIN: u64 = 1_000;
/// Most cores that a scheduler reckons with.
pub const FORWARDING_CORES_MAX: u16 = 256;
/// Longest name of a Linux interface, characters: `IFNAMSIZ` less the zero at its end.
pub const INTERFACE_CHARS_MAX: usize = 15;
/// Packets a second that a network's namespace gets when its document does not say.
pub const PUNT_PACKETS_PER_SECOND_DEFAULT: u64 = 1_000;
/// Packets that a network's namespace gets at once when its document does not say.
pub const PUNT_BURST_PACKETS_DEFAULT: u64 = 200;
/// Highest punt limit, packets a second or at once: the namespace's own path takes no more from one core.
pub const PUNT_RATE_MAX: u64 = 10_000_000;
/// Least processor time, thousandths of a core: what a cgroup can give.
pub const CPU_THOUSANDTHS_MIN: u32 = 10;
/// Most processor time, thousandths of a core.
pub const CPU_THOUSANDTHS_MAX: u32 = 1_024_000;
/// Least memory, MiB: a shell needs that.
pub const MEMORY_MIB_MIN: u64 = 4;
/// Most memory, MiB: 1,024 GiB.
pub const MEMORY_MIB_MAX: u64 = 1 << 20;
/// Least quota of table memory, KiB: an empty table with the addresses of some ports.
pub const TABLE_KIB_MIN: u64 = 4;
/// Most quota of table memory, KiB: 64 GiB, more than any table can have.
pub const TABLE_KIB_MAX: u64 = 64 << 20;
/// Most processes: the kernel's `PID_MAX_LIMIT`.
pub const PROCESSES_MAX: u32 = 4_194_304;
