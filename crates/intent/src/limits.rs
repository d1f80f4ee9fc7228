//! Named limits of desired state. The reader or the validator enforces each, and a test covers its edge.
//!
//! Flow: text → reader (file, depth, node limits) → decoder (ranges) → validator (counts).

/// Largest file, in bytes: 64 MiB, a full table of static routes. Reading such a file takes 0.7 GB of memory.
pub const FILE_BYTES_MAX: usize = 64 << 20;
/// Deepest nesting of lists and mappings. A valid document needs 6 levels.
pub const DEPTH_MAX: usize = 32;
/// Most fields of a mapping. A valid mapping has at most 14.
pub const KEYS_MAX: usize = 256;
/// Most words of a network's command.
pub const COMMAND_WORDS_MAX: usize = 64;
/// Longest word of a network's command, bytes: a short program can be one of them.
pub const COMMAND_BYTES_MAX: usize = 16_384;
/// Most YAML values (scalars, lists, mappings, aliases) in one file.
pub const VALUES_MAX: usize = 8_000_000;
/// Most errors kept of one load; the others are only counted.
pub const ERRORS_MAX: usize = 1_000;
/// Longest name, in characters.
pub const NAME_CHARS_MAX: usize = 63;
/// Most networks of a node: ids have 12 bits, and 0 means "none".
pub const NETWORKS_MAX: usize = hue_tables::Vid::MAX as usize;
/// Most tunnels of a network.
pub const TUNNELS_MAX: usize = hue_demux::PortId::TUNNELS;
/// Most physical ports of a node: port ids have 8 bits, and each network has some for its tunnels.
pub const NODE_PORTS_MAX: usize = hue_demux::PortId::PHYSICAL;
/// Most links inside a node: each has two ports.
pub const NODE_LINKS_MAX: usize = NODE_PORTS_MAX / 2;
/// Most virtual ports of one network.
pub const NETWORK_PORTS_MAX: usize = 256;
/// Most tunnels in each other: a tunnel, the tunnel that carries its outer packets, and so on.
pub const TUNNELS_NESTED_MAX: usize = hue_demux::tunnel::NESTED_MAX;
/// Default TTL of a tunnel's outer packets.
pub const TUNNEL_TTL_DEFAULT: u8 = 64;
/// Largest DSCP: it has 6 bits (RFC 2474 §3).
pub const DSCP_MAX: u8 = 63;
/// Most addresses of one virtual port.
pub const PORT_ADDRESSES_MAX: usize = 256;
/// Most neighbours of a network; each needs one of 65,535 next-hop indices.
pub const NEIGHBOURS_MAX: usize = 32_768;
/// Most static MAC addresses of a network.
pub const STATIC_MACS_MAX: usize = 4_096;
/// Most entries of a network of kind `extract` or `mpls`.
pub const ENTRIES_MAX: usize = hue_tables::TernaryTable::ENTRIES_MAX;
/// Most labels of a network of kind `rofl`.
pub const FLAT_LABELS_MAX: usize = hue_tables::LabelTable::ENTRIES_MAX;
/// Most different masks of entries of kind `extract`: a packet costs at most as many searches.
pub const ENTRY_MASKS_MAX: usize = hue_tables::TernaryTable::MASKS_MAX;
/// Most static routes of one network.
pub const ROUTES_MAX: usize = 2_000_000;
/// Most prefixes by which a network selects frames.
pub const SELECT_PREFIXES_MAX: usize = 4_096;
/// Most MAC ports of a card.
pub const CARD_PORTS_MAX: usize = 4;
/// Smallest MTU, in bytes of IP packet: 68, which every router must forward (RFC 791 §3.2).
pub const MTU_MIN: u16 = hue_planes::ipv4::MTU_BYTES_MIN;
/// Largest MTU, in bytes of IP packet: 9,202, the longest frame (9,216) without its Ethernet header (14).
pub const MTU_MAX: u16 = hue_planes::ipv4::MTU_BYTES_MAX;
/// Default MTU of a port, in bytes of IP packet.
pub const MTU_DEFAULT: u16 = 1_500;
/// Largest weight in the fair queues.
pub const WEIGHT_MAX: u16 = 1_000;
/// Highest rate and deepest burst, in packets or bits: the meter has 40 bits.
pub const RATE_MAX: u64 = hue_planes::Rate::MAX;
/// Least bandwidth, in bits per second.
pub const BANDWIDTH_BPS_MIN: u64 = 1_000;
/// Most cores that the scheduler can use.
pub const FORWARDING_CORES_MAX: u16 = 256;
/// Longest name of a Linux interface, in characters: `IFNAMSIZ` without the terminating zero.
pub const INTERFACE_CHARS_MAX: usize = 15;
/// Default punt limit: packets per second to a network's namespace.
pub const PUNT_PACKETS_PER_SECOND_DEFAULT: u64 = 1_000;
/// Default punt burst: packets to a network's namespace at once.
pub const PUNT_BURST_PACKETS_DEFAULT: u64 = 200;
/// Highest punt rate and burst, in packets: one core cannot pass more packets to a namespace.
pub const PUNT_RATE_MAX: u64 = 10_000_000;
/// Least processor time, in thousandths of a core: the minimum of a cgroup.
pub const CPU_THOUSANDTHS_MIN: u32 = 10;
/// Most processor time, in thousandths of a core.
pub const CPU_THOUSANDTHS_MAX: u32 = 1_024_000;
/// Least memory, in MiB: the minimum for a shell.
pub const MEMORY_MIB_MIN: u64 = 4;
/// Most memory, in MiB: 1,024 GiB.
pub const MEMORY_MIB_MAX: u64 = 1 << 20;
/// Smallest quota of table memory, in KiB: an empty table with the addresses of a few ports.
pub const TABLE_KIB_MIN: u64 = 4;
/// Largest quota of table memory, in KiB: 64 GiB, more than any table can use.
pub const TABLE_KIB_MAX: u64 = 64 << 20;
/// Most processes: the kernel's `PID_MAX_LIMIT`.
pub const PROCESSES_MAX: u32 = 4_194_304;
/// Largest file that can have a `Topology` document, in bytes: larger ones are tables of routes.
pub const TOPOLOGY_BYTES_MAX: usize = 4 << 20;
/// Longest name in a topology, in characters: names of ports and namespaces are made of several.
pub const TOPOLOGY_NAME_CHARS_MAX: usize = 32;
/// Most nodes of a topology.
pub const TOPOLOGY_NODES_MAX: usize = 1_024;
/// Most physical links of a topology, and most links of a network in it.
pub const TOPOLOGY_LINKS_MAX: usize = 4_096;
/// Most networks of a topology.
pub const TOPOLOGY_NETWORKS_MAX: usize = 64;
/// Most hosts of a network in a topology.
pub const TOPOLOGY_HOSTS_MAX: usize = 4_096;
/// Highest cost of a link in a topology: that of OSPF.
pub const TOPOLOGY_COST_MAX: u32 = 65_535;
/// Largest coordinate of a node in a drawing.
pub const TOPOLOGY_PLACE_MAX: i32 = 1_000_000;
/// Highest VXLAN network identifier, which has 24 bits.
pub const TOPOLOGY_VNI_MAX: u32 = (1 << 24) - 1;
