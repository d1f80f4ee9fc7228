// Generated from spec/regs by spec/regs/generate.py: edit those files, then `make generate`.
use crate::rows::{FieldError, ROW_WORDS, Row, Table, Words, get, put};

/// Identification: The letters HUEC, which identify a hueplane card.
pub const IDENT: u32 = 0x000;
/// Its value after reset.
pub const IDENT_RESET: u32 = 0x48554543;

/// Version: Version of this register layout. A driver refuses another major version.
pub const VERSION: u32 = 0x004;
/// Its value after reset.
pub const VERSION_RESET: u32 = 0x0004000c;
/// Rises when something is added: 1: the table QUANTUM; 2: the clock gate of a network, in NETWORK; 3: next
/// hops of neighbours, in LOCAL; 4: the layout dir, with the tables CONFLICT and FILL; 5: kind l2, with the
/// tables STATION, STORM, STORM_DEBT and COPIES; 6: kind dual, with a second root in NETWORK; 7: groups of
/// next hops, with the tables GROUP and SLOT; 8: tunnels, with the tables TUNNEL, TUNNEL_NEAR and
/// TUNNEL_COUNT; 9: routes by source, with the tables POLICY, RANGE, PAIR and RULE; 10: kind extract, with
/// the tables LANE, PATTERN and PATTERN_HOP; 11: kinds splice, whose settings are in NETWORK, and rofl, with
/// the table PORT_MAC; 12: kind mpls, with labels in PATTERN_HOP. Mask.
pub const VERSION_MINOR: u32 = 0x0000ffff;
/// Rises when something changes its meaning. Since version 3, rows of ATTACH have a valid bit, and frames
/// are counted in ACCEPTED as they leave their queues. Since version 4, rows of NETWORK have the kind. Mask.
pub const VERSION_MAJOR: u32 = 0xffff0000;

/// Clock: Clock of the data path.
pub const CLOCK: u32 = 0x008;

/// Bus: Width and number of the streams.
pub const BUS: u32 = 0x00c;
/// Bytes per beat: 8, 32 or 64. Mask.
pub const BUS_BYTES: u32 = 0x000000ff;
/// MAC ports. Mask.
pub const BUS_MAC_PORTS: u32 = 0x0000ff00;
/// CPU queues. Mask.
pub const BUS_CPU_QUEUES: u32 = 0x00ff0000;

/// Kinds: Kinds of planes in the image.
pub const KINDS: u32 = 0x010;

/// Layout: Format of the route tables.
pub const LAYOUT: u32 = 0x014;

/// Planes: Number of planes. Each has a clock gate.
pub const PLANES: u32 = 0x018;

/// Networks: Number of networks that the image can hold.
pub const NETS: u32 = 0x01c;

/// Rows of design select: Size of SELECT.
pub const SELECT_ROWS: u32 = 0x020;

/// Rows of ATTACH: Size of ATTACH.
pub const ATTACH_ROWS: u32 = 0x024;

/// Route rows: Size of ROUTE per plane; 0 without tcam.
pub const ROUTE_ROWS: u32 = 0x028;

/// Local rows: Size of LOCAL per plane; 0 without tcam.
pub const LOCAL_ROWS: u32 = 0x02c;

/// Next-hop rows: Size of HOP: per plane with tcam, in total with dag36, sram and dir.
pub const HOP_ROWS: u32 = 0x030;

/// Words of the levels: Size of LEVEL0 to LEVEL3; 0 without dag36.
pub const LEVEL_WORDS: [u32; 4] = [0x034, 0x038, 0x03c, 0x040];

/// Name of the image: Up to sixteen ASCII characters, padded with zeros. The first one is in the low byte of
/// the first register.
pub const IMAGE_NAME: [u32; 4] = [0x044, 0x048, 0x04c, 0x050];

/// Scratch: Stores any value, so that a driver can test the path to the card.
pub const SCRATCH: u32 = 0x080;

/// Control: Behaviour of full queues.
pub const CONTROL: u32 = 0x084;
/// Full queues apply back-pressure instead of dropping. For captures. Mask.
pub const CONTROL_OFFLINE: u32 = 0x00000001;
/// Full input queues apply back-pressure instead of dropping; output queues drop. For MACs that can pause
/// their lines, and for the twin, where frames wait in the host's rings. Mask.
pub const CONTROL_PAUSE: u32 = 0x00000002;

/// Cycles, low: Clock cycles since reset. A read latches the high half.
pub const CYCLES_LOW: u32 = 0x088;

/// Cycles, high: The high half at the last read of the low half.
pub const CYCLES_HIGH: u32 = 0x08c;

/// Clock gates: Planes whose clock is stopped. They keep their state. With a trie that all networks share,
/// packets of these planes are diverted in front of it.
pub const GATES: u32 = 0x090;

/// Packets of gated planes: Destination of packets of planes whose clock is stopped.
pub const GATED: u32 = 0x094;
/// 0: dropped and counted; 1: sent to the CPU queue. Mask.
pub const GATED_TO_CPU: u32 = 0x00000001;

/// Interrupt status: Events. Writing a 1 clears the bit.
pub const INTERRUPT_STATUS: u32 = 0x098;
/// A table access was refused or not answered. Mask.
pub const INTERRUPT_STATUS_TABLE_ERROR: u32 = 0x00000001;
/// A register access had the address of no register, or wrote a part of one. Mask.
pub const INTERRUPT_STATUS_ACCESS_ERROR: u32 = 0x00000002;
/// A packet used a table row with wrong parity. Ternary tables compare copies of rows that have no parity.
/// Mask.
pub const INTERRUPT_STATUS_MEMORY_ERROR: u32 = 0x00000004;
/// A queue dropped a packet. Mask.
pub const INTERRUPT_STATUS_QUEUE_DROP: u32 = 0x00000008;

/// Interrupt enable: Status bits that raise the interrupt.
pub const INTERRUPT_ENABLE: u32 = 0x09c;

/// Records accepted: Frames, and copies of group frames, that left their queues for the stages, modulo 2^32.
pub const ACCEPTED: u32 = 0x0a0;

/// Records retired: Records that left the stages, modulo 2^32. Memory that was freed when ACCEPTED had the
/// value a can be reused when RETIRED has reached a.
pub const RETIRED: u32 = 0x0a4;

/// Activity: Whether frames are in the card.
pub const ACTIVITY: u32 = 0x0a8;
/// No frame and no copy of a group frame waits before the stages; some may be in them. Mask.
pub const ACTIVITY_INGRESS_IDLE: u32 = 0x00000001;
/// No frame is anywhere in the card. Mask.
pub const ACTIVITY_IDLE: u32 = 0x00000002;

/// Hold: While this is not 0, no frame leaves the input queues and no copy leaves the memory of group
/// frames. To make a change that takes several writes: write HOLD, wait until RETIRED equals ACCEPTED, make
/// the writes, write 0 to HOLD. The register counts down by itself, so that a driver that dies does not stop
/// the card.
pub const HOLD: u32 = 0x0ac;

/// Held network: While this is not 0, the MAC ports begin no frame of one network; its frames wait in its
/// output queues. A network that moves to the card from software waits in this way for its frames that are
/// still in software. The register counts down by itself, like HOLD.
pub const OUT_HOLD: u32 = 0x0b0;
/// Clocks left. Mask.
pub const OUT_HOLD_CLOCKS: u32 = 0x00ffffff;
/// Index of the network on the card. Mask.
pub const OUT_HOLD_NET: u32 = 0xff000000;

/// Rows of SLOT: Size of SLOT; 0 in images without groups of next hops.
pub const SLOT_ROWS: u32 = 0x0b4;

/// Output memory: Size of the output queues' memory. Cells have 64 bytes, or 256 in external memory. A queue
/// takes at most half of the space that others leave.
pub const OUT_BYTES: u32 = 0x0bc;

/// Words of the banks: Size of SRAM; 0 without it.
pub const SRAM_WORDS: u32 = 0x0c0;

/// Fault in the banks: The first word of SRAM with wrong parity that was read since this was cleared.
/// Lookups that read it found no route. The driver writes the word again from its copy.
pub const SRAM_FAULT: u32 = 0x0c4;
/// Index of the word. Mask.
pub const SRAM_FAULT_INDEX: u32 = 0x000fffff;
/// There was such a word. Writing a 1 clears it. Mask.
pub const SRAM_FAULT_VALID: u32 = 0x00100000;

/// Faults in external memory: Number of reads of words with wrong parity since reset.
pub const SRAM_FAULTS: u32 = 0x0c8;

/// Reads of external memory: Words read for lookups, modulo 2^32.
pub const SRAM_READS: u32 = 0x0cc;

/// Lookups in external memory: Lookups started in external memory, modulo 2^32.
pub const SRAM_LOOKUPS: u32 = 0x0d0;

/// Rows of design select by MAC address: Size of MAC, in four banks; 0 without it.
pub const MAC_ROWS: u32 = 0x0d4;

/// Rows of the Conflict CAM: Size of CONFLICT; 0 without dir.
pub const CAM_ROWS: u32 = 0x0d8;

/// Rows of STATION: Size of STATION, in four banks; 0 without kind l2.
pub const STATION_ROWS: u32 = 0x0dc;

/// Waiting networks: Networks that have frames in output queues of MAC ports, 32 per register.
pub const OUT_WAITS: [u32; 8] = [0x0e0, 0x0e4, 0x0e8, 0x0ec, 0x0f0, 0x0f4, 0x0f8, 0x0fc];

/// Table: Table of the next command.
pub const TABLE_ID: u32 = 0x100;

/// Row: Row of the next command.
pub const TABLE_INDEX: u32 = 0x104;

/// Command: Writing starts an access. During an access it is refused with an error.
pub const TABLE_COMMAND: u32 = 0x108;

/// Result: Result of the latest command.
pub const TABLE_STATUS: u32 = 0x10c;
/// The access is in progress. Mask.
pub const TABLE_STATUS_BUSY: u32 = 0x00000001;
/// 0: done; 1: no such table; 2: no such row; 3: not supported. Mask.
pub const TABLE_STATUS_ERROR: u32 = 0x00000006;

/// Row data: The row to write, or the row that was read. The first register has bits 31 to 0.
pub const TABLE_DATA: [u32; 8] = [0x120, 0x124, 0x128, 0x12c, 0x130, 0x134, 0x138, 0x13c];

/// Place of the burst: Destination of the next word of a burst.
pub const BURST_PLACE: u32 = 0x140;
/// Index of the row. It rises by one with each word. Mask.
pub const BURST_PLACE_INDEX: u32 = 0x00ffffff;
/// Number of the table, which must hold route words or be SLOT. Mask.
pub const BURST_PLACE_ID: u32 = 0xff000000;

/// Result of the burst: Result of the words so far. Words after an error are still written.
pub const BURST_STATUS: u32 = 0x144;
/// Index of the first word with an error. Mask.
pub const BURST_STATUS_INDEX: u32 = 0x00ffffff;
/// Error of that word: 1: no such table; 2: no such row; 3: not a table of route words, and not SLOT.
/// Writing 3 clears it. Mask.
pub const BURST_STATUS_ERROR: u32 = 0x03000000;
/// Words are waiting to be written. Mask.
pub const BURST_STATUS_BUSY: u32 = 0x04000000;

/// Rows of TUNNEL: Size of TUNNEL and TUNNEL_NEAR; 0 without tunnels.
pub const TUNNEL_ROWS: u32 = 0x150;

/// Frames in the loop: Frames that entered the loop of tunnels, and frames that left it, both modulo 2^16. A
/// frame that was in the loop when `came` had the value c has left it when `left` has reached c. Then the
/// loop has no frame of a network whose row was cleared before, and its index can be used again.
pub const LOOP_FRAMES: u32 = 0x154;
/// Frames that entered. Mask.
pub const LOOP_FRAMES_CAME: u32 = 0x0000ffff;
/// Frames that left, for the stages or lost. Mask.
pub const LOOP_FRAMES_LEFT: u32 = 0xffff0000;

/// Rows for policies: Sizes of RANGE, PAIR and RULE as powers of two; all 0 without routes by source.
pub const POLICY_ROWS: u32 = 0x158;
/// RANGE has 2^ranges rows. Mask.
pub const POLICY_ROWS_RANGES: u32 = 0x000000ff;
/// PAIR has 2^pairs rows. Mask.
pub const POLICY_ROWS_PAIRS: u32 = 0x0000ff00;
/// RULE has 2^rules rows. Mask.
pub const POLICY_ROWS_RULES: u32 = 0x00ff0000;

/// Rows of PATTERN: Size of PATTERN, in four banks, and of PATTERN_HOP; 0 without kind extract.
pub const PATTERN_ROWS: u32 = 0x15c;

/// Word of the burst: Writing adds a word to the burst. The number of the register gives bits 35 to 32 of
/// the word, the data written gives the others. The write is not answered while there is no room, or while a
/// command waits or runs. A later command waits for the word. So accesses keep their order.
pub const BURST_WORD: [u32; 16] = [
    0x180, 0x184, 0x188, 0x18c, 0x190, 0x194, 0x198, 0x19c, 0x1a0, 0x1a4, 0x1a8, 0x1ac, 0x1b0, 0x1b4, 0x1b8,
    0x1bc,
];

/// Registers that can be written, by address, and which bits of them.
pub const WRITABLE: [(u32, u32); 38] = [
    (0x080, 0xffffffff),
    (0x084, 0x00000003),
    (0x090, 0xffffffff),
    (0x094, 0x00000001),
    (0x098, 0x0000000f),
    (0x09c, 0x0000000f),
    (0x0ac, 0x00ffffff),
    (0x0b0, 0xffffffff),
    (0x0c4, 0x00100000),
    (0x100, 0x000000ff),
    (0x104, 0x00ffffff),
    (0x108, 0x00000003),
    (0x120, 0xffffffff),
    (0x124, 0xffffffff),
    (0x128, 0xffffffff),
    (0x12c, 0xffffffff),
    (0x130, 0xffffffff),
    (0x134, 0xffffffff),
    (0x138, 0xffffffff),
    (0x13c, 0xffffffff),
    (0x140, 0xffffffff),
    (0x144, 0x03000000),
    (0x180, 0xffffffff),
    (0x184, 0xffffffff),
    (0x188, 0xffffffff),
    (0x18c, 0xffffffff),
    (0x190, 0xffffffff),
    (0x194, 0xffffffff),
    (0x198, 0xffffffff),
    (0x19c, 0xffffffff),
    (0x1a0, 0xffffffff),
    (0x1a4, 0xffffffff),
    (0x1a8, 0xffffffff),
    (0x1ac, 0xffffffff),
    (0x1b0, 0xffffffff),
    (0x1b4, 0xffffffff),
    (0x1b8, 0xffffffff),
    (0x1bc, 0xffffffff),
];

/// Layout: Ternary rows, separate for each plane.
pub const LAYOUT_TCAM: u32 = 1;

/// Layout: One trie in 36-bit words for all networks.
pub const LAYOUT_DAG36: u32 = 2;

/// Layout: One trie in 36-bit words for all networks, in two banks, external or on chip.
pub const LAYOUT_SRAM: u32 = 3;

/// Layout: Two banks of 36-bit words for all networks, in external memory, with a Conflict CAM.
pub const LAYOUT_DIR: u32 = 4;

/// TableCommand: Reads a row into the row data.
pub const TABLE_COMMAND_READ: u32 = 1;

/// TableCommand: Writes the row data.
pub const TABLE_COMMAND_WRITE: u32 = 2;

/// TableCommand: Reads a counter into the row data and sets it to 0, in one clock.
pub const TABLE_COMMAND_CLEAR: u32 = 3;

/// TableError: Done.
pub const TABLE_ERROR_NONE: u32 = 0;

/// TableError: The image has no such table.
pub const TABLE_ERROR_NO_TABLE: u32 = 1;

/// TableError: The table has no such row.
pub const TABLE_ERROR_RANGE: u32 = 2;

/// TableError: The table does not support this command.
pub const TABLE_ERROR_REFUSED: u32 = 3;

/// Design select. Index: row; the lowest that matches wins.
pub const SELECT: Table = Table { name: "select", id: 1, bits: 136 };

/// Attached virtual ports. Index: position.
pub const ATTACH: Table = Table { name: "attach", id: 2, bits: 17 };

/// Attached virtual ports of a port. Index: port.
pub const ATTACH_HEAD: Table = Table { name: "attach_head", id: 3, bits: 32 };

/// Networks. Index: network.
pub const NETWORK: Table = Table { name: "network", id: 4, bits: 132 };

/// Meters. Index: network.
pub const METER: Table = Table { name: "meter", id: 5, bits: 162 };

/// Routes (tcam). Index: plane * route rows + row; the lowest that matches wins.
pub const ROUTE: Table = Table { name: "route", id: 6, bits: 81 };

/// Next hops. Index: hop_base + next hop (dag36, sram, dir); plane * hops + next hop (tcam).
pub const HOP: Table = Table { name: "hop", id: 7, bits: 117 };

/// Route words, first level (dag36). Index: word.
pub const LEVEL0: Table = Table { name: "level0", id: 8, bits: 36 };

/// Route words, second level (dag36). Index: word.
pub const LEVEL1: Table = Table { name: "level1", id: 9, bits: 36 };

/// Route words, third level (dag36). Index: word.
pub const LEVEL2: Table = Table { name: "level2", id: 10, bits: 36 };

/// Route words, fourth level (dag36). Index: word.
pub const LEVEL3: Table = Table { name: "level3", id: 11, bits: 36 };

/// Packets of a network. Index: network * 32 + outcome.
pub const COUNT: Table = Table { name: "count", id: 12, bits: 64 };

/// Bytes of a network. Index: network * 2 + (0 received, 1 sent).
pub const BYTES: Table = Table { name: "bytes", id: 13, bits: 64 };

/// Port counters. Index: port * 8 + (0 packets in, 1 bytes in, 2 dropped in: queue full, 3 packets out, 4
/// bytes out, 5 dropped out, 6 group frames dropped: no room to copy them).
pub const PORT: Table = Table { name: "port", id: 14, bits: 64 };

/// Unclaimed frames. Index: code.
pub const UNCLAIMED: Table = Table { name: "unclaimed", id: 15, bits: 64 };

/// Drops of output queues. Index: port * 256 + network.
pub const OUT_DROPS: Table = Table { name: "out_drops", id: 16, bits: 64 };

/// Addresses (tcam). Index: plane * local rows + row.
pub const LOCAL: Table = Table { name: "local", id: 18, bits: 50 };

/// Route words, two banks (sram, dir). Index: word.
pub const SRAM: Table = Table { name: "sram", id: 19, bits: 36 };

/// Design select by MAC address. Index: bank * rows per bank + index.
pub const MAC: Table = Table { name: "mac", id: 20, bits: 68 };

/// Debts of meters. Index: network.
pub const DEBT: Table = Table { name: "debt", id: 21, bits: 204 };

/// Quanta. Index: network.
pub const QUANTUM: Table = Table { name: "quantum", id: 22, bits: 16 };

/// Conflict CAM (dir). Index: row.
pub const CONFLICT: Table = Table { name: "conflict", id: 23, bits: 56 };

/// Fill of external memory (dir). Index: 0.
pub const FILL: Table = Table { name: "fill", id: 24, bits: 78 };

/// Stations (l2). Index: bank * rows per bank + index.
pub const STATION: Table = Table { name: "station", id: 25, bits: 62 };

/// Storm meters (l2). Index: network.
pub const STORM: Table = Table { name: "storm", id: 26, bits: 162 };

/// Debts of storm meters (l2). Index: network.
pub const STORM_DEBT: Table = Table { name: "storm_debt", id: 27, bits: 204 };

/// Copies of a network (l2). Index: network.
pub const COPIES: Table = Table { name: "copies", id: 28, bits: 64 };

/// Groups of next hops. Index: as in HOP.
pub const GROUP: Table = Table { name: "group", id: 29, bits: 21 };

/// Slots of groups. Index: first slot of the group + lowest bits of the hash.
pub const SLOT: Table = Table { name: "slot", id: 30, bits: 24 };

/// Tunnels. Index: place: the Toeplitz hash (crates/wire/src/toeplitz.rs) of the far end, the near end (16
/// bytes each), `vni` (3) and `over`, modulo the rows; or, if that is in use, the next one that is not.
pub const TUNNEL: Table = Table { name: "tunnel", id: 31, bits: 172 };

/// Near ends of tunnels. Index: as TUNNEL.
pub const TUNNEL_NEAR: Table = Table { name: "tunnel_near", id: 32, bits: 255 };

/// Packets in tunnels. Index: network * 4 + (0 left by a tunnel, 1 taken out of tunnels that the network
/// carries, 2 lost: the network's share of the loop was full, 3 lost: not for this tunnel, or too long in
/// it).
pub const TUNNEL_COUNT: Table = Table { name: "tunnel_count", id: 33, bits: 64 };

/// Policies. Index: network.
pub const POLICY: Table = Table { name: "policy", id: 34, bits: 136 };

/// Ranges of addresses. Index: row.
pub const RANGE: Table = Table { name: "range", id: 35, bits: 144 };

/// Pairs of ranges. Index: first pair of the network + value of the source's range + value of the
/// destination's range.
pub const PAIR: Table = Table { name: "pair", id: 36, bits: 16 };

/// Rules. Index: row.
pub const RULE: Table = Table { name: "rule", id: 37, bits: 137 };

/// Lanes of keys (extract). Index: network * 16 + lane.
pub const LANE: Table = Table { name: "lane", id: 38, bits: 15 };

/// Patterns of entries (extract, mpls). Index: bank * rows per bank + index.
pub const PATTERN: Table = Table { name: "pattern", id: 39, bits: 256 };

/// Actions of entries (extract, mpls). Index: as PATTERN.
pub const PATTERN_HOP: Table = Table { name: "pattern_hop", id: 40, bits: 44 };

/// MAC addresses of ports (rofl). Index: network * 4 + MAC port.
pub const PORT_MAC: Table = Table { name: "port_mac", id: 41, bits: 48 };

/// Design select: A rule that gives the network of a frame. Group frames use ATTACH instead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SelectRow {
    /// The row is in use.
    pub valid: bool,
    /// The port must match.
    pub port_care: bool,
    /// Port on which the frame arrives.
    pub port: u8,
    /// The destination MAC address must match.
    pub mac_care: bool,
    /// Destination MAC address.
    pub mac: u64,
    /// Bits of the inner destination that must match.
    pub inner_mask: u32,
    /// Inner destination.
    pub inner: u32,
    /// The frame must have an inner destination, and it must match.
    pub inner_care: bool,
    /// The frame must be ARP.
    pub arp_care: bool,
    /// Network.
    pub net: u8,
    /// Its virtual port.
    pub vport: u8,
}

impl Row for SelectRow {
    const TABLE: Table = SELECT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "select.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "select.port_care", 1, 1, u64::from(self.port_care))?;
        put(&mut words, "select.port", 2, 3, u64::from(self.port))?;
        put(&mut words, "select.mac_care", 5, 1, u64::from(self.mac_care))?;
        put(&mut words, "select.mac", 6, 48, self.mac)?;
        put(&mut words, "select.inner_mask", 54, 32, u64::from(self.inner_mask))?;
        put(&mut words, "select.inner", 86, 32, u64::from(self.inner))?;
        put(&mut words, "select.inner_care", 118, 1, u64::from(self.inner_care))?;
        put(&mut words, "select.arp_care", 119, 1, u64::from(self.arp_care))?;
        put(&mut words, "select.net", 120, 8, u64::from(self.net))?;
        put(&mut words, "select.vport", 128, 8, u64::from(self.vport))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            port_care: get(words, 1, 1) != 0,
            port: get(words, 2, 3) as u8,
            mac_care: get(words, 5, 1) != 0,
            mac: get(words, 6, 48),
            inner_mask: get(words, 54, 32) as u32,
            inner: get(words, 86, 32) as u32,
            inner_care: get(words, 118, 1) != 0,
            arp_care: get(words, 119, 1) != 0,
            net: get(words, 120, 8) as u8,
            vport: get(words, 128, 8) as u8,
        }
    }
}

/// Attached virtual ports: The networks that get group frames: one run of rows for each port, at the
/// position in ATTACH_HEAD. A network keeps its row while frames are being copied; the row of a network that
/// leaves becomes invalid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AttachRow {
    /// The row names a virtual port.
    pub valid: bool,
    /// Network.
    pub net: u8,
    /// Its virtual port.
    pub vport: u8,
}

impl Row for AttachRow {
    const TABLE: Table = ATTACH;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "attach.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "attach.net", 1, 8, u64::from(self.net))?;
        put(&mut words, "attach.vport", 9, 8, u64::from(self.vport))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { valid: get(words, 0, 1) != 0, net: get(words, 1, 8) as u8, vport: get(words, 9, 8) as u8 }
    }
}

/// Attached virtual ports of a port: Start and length of the port's run in ATTACH.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AttachHeadRow {
    /// First position.
    pub start: u16,
    /// Positions.
    pub count: u16,
}

impl Row for AttachHeadRow {
    const TABLE: Table = ATTACH_HEAD;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "attach_head.start", 0, 16, u64::from(self.start))?;
        put(&mut words, "attach_head.count", 16, 16, u64::from(self.count))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { start: get(words, 0, 16) as u16, count: get(words, 16, 16) as u16 }
    }
}

/// Networks: Properties of a network. Writing the root replaces its routes atomically.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NetworkRow {
    /// The network exists.
    pub valid: bool,
    /// Its id on this node.
    pub vid: u16,
    /// Its plane and clock gate.
    pub plane: u8,
    /// Kinds with routes: root item of its routes (dag36, sram); not used with dir. Kind l2: bits 13..0 MTU
    /// of its ports, 17..14 its MAC ports, 18 a sender that moves is refused, 19 unknown and moved senders
    /// leave notes.
    pub root: u64,
    /// First row of its next hops (dag36, sram, dir).
    pub hop_base: u16,
    /// Number of rows of its next hops.
    pub hop_count: u16,
    /// Its plane runs in software. Its packets go to the CPU and are counted under outcome 0.
    pub software: bool,
    /// It forwards packets from and to addresses that no host can have (martians).
    pub forward_martians: bool,
    /// Its plane is stopped. Its packets are dropped, and counted under outcome 1.
    pub gated: bool,
    /// Its kind of plane, a number of spec/kinds. Unless `software` is set, a network of a kind that the
    /// image does not have gets no packets.
    pub kind: u8,
    /// Kind dual: root item of its routes for IPv6; `root` is that for IPv4. Kind rofl: bytes of a label in
    /// bits 4 to 0. Kind splice: the highest slice in bits 3 to 0; bit 4: splicing bits are behind the
    /// header. Images without kind dual do not have the field.
    pub root_ipv6: u64,
    /// Its packets for the router itself that are IP in IP are looked up in TUNNEL. Images without tunnels
    /// do not have the field.
    pub carries_ipip: bool,
    /// Likewise those of UDP to port 4789 (VXLAN).
    pub carries_vxlan: bool,
    /// Its routes depend on sources: its packets are looked up in POLICY. Images without policies do not
    /// have the field.
    pub policies: bool,
}

impl Row for NetworkRow {
    const TABLE: Table = NETWORK;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "network.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "network.vid", 1, 12, u64::from(self.vid))?;
        put(&mut words, "network.plane", 13, 4, u64::from(self.plane))?;
        put(&mut words, "network.root", 17, 36, self.root)?;
        put(&mut words, "network.hop_base", 53, 16, u64::from(self.hop_base))?;
        put(&mut words, "network.hop_count", 69, 16, u64::from(self.hop_count))?;
        put(&mut words, "network.software", 85, 1, u64::from(self.software))?;
        put(&mut words, "network.forward_martians", 86, 1, u64::from(self.forward_martians))?;
        put(&mut words, "network.gated", 87, 1, u64::from(self.gated))?;
        put(&mut words, "network.kind", 88, 5, u64::from(self.kind))?;
        put(&mut words, "network.root_ipv6", 93, 36, self.root_ipv6)?;
        put(&mut words, "network.carries_ipip", 129, 1, u64::from(self.carries_ipip))?;
        put(&mut words, "network.carries_vxlan", 130, 1, u64::from(self.carries_vxlan))?;
        put(&mut words, "network.policies", 131, 1, u64::from(self.policies))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            vid: get(words, 1, 12) as u16,
            plane: get(words, 13, 4) as u8,
            root: get(words, 17, 36),
            hop_base: get(words, 53, 16) as u16,
            hop_count: get(words, 69, 16) as u16,
            software: get(words, 85, 1) != 0,
            forward_martians: get(words, 86, 1) != 0,
            gated: get(words, 87, 1) != 0,
            kind: get(words, 88, 5) as u8,
            root_ipv6: get(words, 93, 36),
            carries_ipip: get(words, 129, 1) != 0,
            carries_vxlan: get(words, 130, 1) != 0,
            policies: get(words, 131, 1) != 0,
        }
    }
}

/// Meters: Rate limit of a network. Writing the row fills the buckets and sets their time to 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MeterRow {
    /// The rate in packets is limited.
    pub packets_on: bool,
    /// Packets a second.
    pub packets_rate: u64,
    /// Burst size in packets.
    pub packets_burst: u64,
    /// The rate in bits is limited.
    pub bits_on: bool,
    /// Bits a second.
    pub bits_rate: u64,
    /// Burst size in bits.
    pub bits_burst: u64,
}

impl Row for MeterRow {
    const TABLE: Table = METER;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "meter.packets_on", 0, 1, u64::from(self.packets_on))?;
        put(&mut words, "meter.packets_rate", 1, 40, self.packets_rate)?;
        put(&mut words, "meter.packets_burst", 41, 40, self.packets_burst)?;
        put(&mut words, "meter.bits_on", 81, 1, u64::from(self.bits_on))?;
        put(&mut words, "meter.bits_rate", 82, 40, self.bits_rate)?;
        put(&mut words, "meter.bits_burst", 122, 40, self.bits_burst)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            packets_on: get(words, 0, 1) != 0,
            packets_rate: get(words, 1, 40),
            packets_burst: get(words, 41, 40),
            bits_on: get(words, 81, 1) != 0,
            bits_rate: get(words, 82, 40),
            bits_burst: get(words, 122, 40),
        }
    }
}

/// Routes (tcam): A route of a plane. Longer prefixes are in lower rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RouteRow {
    /// The row is in use.
    pub valid: bool,
    /// Destination.
    pub value: u32,
    /// Bits of the destination that must match.
    pub mask: u32,
    /// Next hop.
    pub hop: u16,
}

impl Row for RouteRow {
    const TABLE: Table = ROUTE;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "route.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "route.value", 1, 32, u64::from(self.value))?;
        put(&mut words, "route.mask", 33, 32, u64::from(self.mask))?;
        put(&mut words, "route.hop", 65, 16, u64::from(self.hop))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            value: get(words, 1, 32) as u32,
            mask: get(words, 33, 32) as u32,
            hop: get(words, 65, 16) as u16,
        }
    }
}

/// Next hops: Action for packets whose route names this row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct HopRow {
    /// 0: no route; 1: the router itself; 2: no neighbour yet; 3: forward.
    pub kind: u8,
    /// Egress port. 4, in images with tunnels: the tunnel whose row in TUNNEL is the lowest byte of `src`.
    /// In networks of kind rofl, bit 2: the host there has the label, and may get what it sent.
    pub port: u8,
    /// MTU of the port, bytes of IP.
    pub mtu: u16,
    /// Destination MAC address of the frame sent.
    pub dst: u64,
    /// Source MAC address of the frame sent.
    pub src: u64,
}

impl Row for HopRow {
    const TABLE: Table = HOP;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "hop.kind", 0, 2, u64::from(self.kind))?;
        put(&mut words, "hop.port", 2, 3, u64::from(self.port))?;
        put(&mut words, "hop.mtu", 5, 16, u64::from(self.mtu))?;
        put(&mut words, "hop.dst", 21, 48, self.dst)?;
        put(&mut words, "hop.src", 69, 48, self.src)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            kind: get(words, 0, 2) as u8,
            port: get(words, 2, 3) as u8,
            mtu: get(words, 5, 16) as u16,
            dst: get(words, 21, 48),
            src: get(words, 69, 48),
        }
    }
}

/// Route words, first level (dag36): Words of nodes for the first byte of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Level0Row {
    /// As crates/tables/src/dag36/words.rs describes.
    pub word: u64,
}

impl Row for Level0Row {
    const TABLE: Table = LEVEL0;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "level0.word", 0, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { word: get(words, 0, 36) }
    }
}

/// Route words, second level (dag36): Words of nodes for the second byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Level1Row {
    /// As crates/tables/src/dag36/words.rs describes.
    pub word: u64,
}

impl Row for Level1Row {
    const TABLE: Table = LEVEL1;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "level1.word", 0, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { word: get(words, 0, 36) }
    }
}

/// Route words, third level (dag36): Words of nodes for the third byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Level2Row {
    /// As crates/tables/src/dag36/words.rs describes.
    pub word: u64,
}

impl Row for Level2Row {
    const TABLE: Table = LEVEL2;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "level2.word", 0, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { word: get(words, 0, 36) }
    }
}

/// Route words, fourth level (dag36): Words of nodes for the fourth byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Level3Row {
    /// As crates/tables/src/dag36/words.rs describes.
    pub word: u64,
}

impl Row for Level3Row {
    const TABLE: Table = LEVEL3;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "level3.word", 0, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { word: get(words, 0, 36) }
    }
}

/// Packets of a network: Packets by outcome of spec/kinds.toml.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CountRow {
    /// Packets.
    pub value: u64,
}

impl Row for CountRow {
    const TABLE: Table = COUNT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "count.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Bytes of a network: Bytes of frames, from the destination MAC address to the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BytesRow {
    /// Bytes.
    pub value: u64,
}

impl Row for BytesRow {
    const TABLE: Table = BYTES;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "bytes.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Port counters: Frames and bytes of each port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortRow {
    /// Frames or bytes.
    pub value: u64,
}

impl Row for PortRow {
    const TABLE: Table = PORT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "port.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Unclaimed frames: Frames that belong to no network, by reason of spec/kinds.toml.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct UnclaimedRow {
    /// Frames.
    pub value: u64,
}

impl Row for UnclaimedRow {
    const TABLE: Table = UNCLAIMED;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "unclaimed.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Drops of output queues: Packets of a network that were dropped because its share of a port's output queue
/// was full.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OutDropsRow {
    /// Packets.
    pub value: u64,
}

impl Row for OutDropsRow {
    const TABLE: Table = OUT_DROPS;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "out_drops.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Addresses (tcam): Addresses of the router itself and of neighbours. They use no route rows and take
/// precedence over these.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LocalRow {
    /// The row is in use.
    pub valid: bool,
    /// Address.
    pub addr: u32,
    /// 1: a neighbour's address; 0: the router's own.
    pub neighbour: bool,
    /// Next hop of a neighbour.
    pub hop: u16,
}

impl Row for LocalRow {
    const TABLE: Table = LOCAL;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "local.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "local.addr", 1, 32, u64::from(self.addr))?;
        put(&mut words, "local.neighbour", 33, 1, u64::from(self.neighbour))?;
        put(&mut words, "local.hop", 34, 16, u64::from(self.hop))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            addr: get(words, 1, 32) as u32,
            neighbour: get(words, 33, 1) != 0,
            hop: get(words, 34, 16) as u16,
        }
    }
}

/// Route words, two banks (sram, dir): Words of nodes of all levels (sram), or entries: the first half is
/// the first bank, the rest the second (dir). The card adds and checks the parity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SramRow {
    /// As crates/tables/src/dag36/words.rs (sram) and crates/tables/src/dir/words.rs (dir) describe.
    pub word: u64,
}

impl Row for SramRow {
    const TABLE: Table = SRAM;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "sram.word", 0, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { word: get(words, 0, 36) }
    }
}

/// Design select by MAC address: A port and a destination MAC address of a network. These rows take
/// precedence over SELECT. rtl/tables/hue_exact_pkg.sv computes the index in each of the four banks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MacRow {
    /// The row is in use.
    pub valid: bool,
    /// Port on which the frame arrives.
    pub port: u8,
    /// Destination MAC address.
    pub mac: u64,
    /// Network.
    pub net: u8,
    /// Its virtual port.
    pub vport: u8,
}

impl Row for MacRow {
    const TABLE: Table = MAC;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "mac.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "mac.port", 1, 3, u64::from(self.port))?;
        put(&mut words, "mac.mac", 4, 48, self.mac)?;
        put(&mut words, "mac.net", 52, 8, u64::from(self.net))?;
        put(&mut words, "mac.vport", 60, 8, u64::from(self.vport))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            port: get(words, 1, 3) as u8,
            mac: get(words, 4, 48),
            net: get(words, 52, 8) as u8,
            vport: get(words, 60, 8) as u8,
        }
    }
}

/// Debts of meters: How far the buckets of a network are from full, and at what time: a bucket with a debt
/// of 0 is full. A bucket with a debt above its burst passes nothing until it has earned the excess. Packets
/// of the network that are inside when the row is written pass, and are not charged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DebtRow {
    /// Debt in packets: 10^-9 packets, lower bits.
    pub packets_low: u64,
    /// Its upper bits.
    pub packets_high: u8,
    /// Debt in bits: 10^-9 bits, lower bits.
    pub bits_low: u64,
    /// Its upper bits.
    pub bits_high: u8,
    /// Time of the last packet, nanoseconds. The buckets earn from then on.
    pub time_ns: u64,
}

impl Row for DebtRow {
    const TABLE: Table = DEBT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "debt.packets_low", 0, 64, self.packets_low)?;
        put(&mut words, "debt.packets_high", 64, 6, u64::from(self.packets_high))?;
        put(&mut words, "debt.bits_low", 70, 64, self.bits_low)?;
        put(&mut words, "debt.bits_high", 134, 6, u64::from(self.bits_high))?;
        put(&mut words, "debt.time_ns", 140, 64, self.time_ns)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            packets_low: get(words, 0, 64),
            packets_high: get(words, 64, 6) as u8,
            bits_low: get(words, 70, 64),
            bits_high: get(words, 134, 6) as u8,
            time_ns: get(words, 140, 64),
        }
    }
}

/// Quanta: Bytes that a turn adds to the credit of a network at each output port: networks share a port in
/// proportion to their quanta. A row is 2048 after reset. A written row takes effect with the network's next
/// turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QuantumRow {
    /// Bytes; at least 1, or the network sends nothing.
    pub bytes: u16,
}

impl Row for QuantumRow {
    const TABLE: Table = QUANTUM;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "quantum.bytes", 0, 16, u64::from(self.bytes))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { bytes: get(words, 0, 16) as u16 }
    }
}

/// Conflict CAM (dir): Prefixes of a network whose entry is elsewhere in the first bank, because another
/// network uses their own index. Rows of several networks may match an address, but at most one row of each
/// network, except while a change is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ConflictRow {
    /// The row is in use.
    pub valid: bool,
    /// Id of the network.
    pub vid: u16,
    /// Prefix: the first 19 bits of an address.
    pub prefix: u32,
    /// Its length, at most 19.
    pub length: u8,
    /// Index of the entry in the first bank.
    pub index: u32,
}

impl Row for ConflictRow {
    const TABLE: Table = CONFLICT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "conflict.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "conflict.vid", 1, 12, u64::from(self.vid))?;
        put(&mut words, "conflict.prefix", 13, 19, u64::from(self.prefix))?;
        put(&mut words, "conflict.length", 32, 5, u64::from(self.length))?;
        put(&mut words, "conflict.index", 37, 19, u64::from(self.index))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            vid: get(words, 1, 12) as u16,
            prefix: get(words, 13, 19) as u32,
            length: get(words, 32, 5) as u8,
            index: get(words, 37, 19) as u32,
        }
    }
}

/// Fill of external memory (dir): A write sets a run of rows of SRAM to one word, in order: one row in each
/// clock that lookups leave free, and at least one row in four clocks. A lookup may read any word of the
/// first bank, so a driver that does not know these words first sets them to 0. A write to this row ends the
/// previous run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FillRow {
    /// Not all rows are written yet. No meaning when written.
    pub running: bool,
    /// SRAM was written since the configuration, or since the first bank was set to 0 at once. No meaning
    /// when written.
    pub written: bool,
    /// The first row; when read, the next one.
    pub index: u32,
    /// Number of rows, at most up to the end of the bank; when read, the number that is left.
    pub count: u32,
    /// The word. The card computes its parity.
    pub word: u64,
}

impl Row for FillRow {
    const TABLE: Table = FILL;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "fill.running", 0, 1, u64::from(self.running))?;
        put(&mut words, "fill.written", 1, 1, u64::from(self.written))?;
        put(&mut words, "fill.index", 2, 20, u64::from(self.index))?;
        put(&mut words, "fill.count", 22, 20, u64::from(self.count))?;
        put(&mut words, "fill.word", 42, 36, self.word)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            running: get(words, 0, 1) != 0,
            written: get(words, 1, 1) != 0,
            index: get(words, 2, 20) as u32,
            count: get(words, 22, 20) as u32,
            word: get(words, 42, 36),
        }
    }
}

/// Stations (l2): Where a MAC address is in a network that learns. rtl/tables/hue_exact_pkg.sv computes the
/// index in each of the four banks. The driver writes these rows by what notes tell it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StationRow {
    /// The row is in use.
    pub valid: bool,
    /// MAC address.
    pub mac: u64,
    /// Network.
    pub net: u8,
    /// Port that the address is behind.
    pub port: u8,
    /// A static address: a frame from it that arrives at another port is refused.
    pub fixed: bool,
    /// The next frame from the address leaves a note, although it is at its port.
    pub old: bool,
}

impl Row for StationRow {
    const TABLE: Table = STATION;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "station.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "station.mac", 1, 48, self.mac)?;
        put(&mut words, "station.net", 49, 8, u64::from(self.net))?;
        put(&mut words, "station.port", 57, 3, u64::from(self.port))?;
        put(&mut words, "station.fixed", 60, 1, u64::from(self.fixed))?;
        put(&mut words, "station.old", 61, 1, u64::from(self.old))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            mac: get(words, 1, 48),
            net: get(words, 49, 8) as u8,
            port: get(words, 57, 3) as u8,
            fixed: get(words, 60, 1) != 0,
            old: get(words, 61, 1) != 0,
        }
    }
}

/// Storm meters (l2): Limit on the frames of a network that are sent to all ports. Writing the row fills the
/// buckets and sets their time to 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StormRow {
    /// The rate in packets is limited.
    pub packets_on: bool,
    /// Packets a second.
    pub packets_rate: u64,
    /// Burst size in packets.
    pub packets_burst: u64,
    /// The rate in bits is limited.
    pub bits_on: bool,
    /// Bits a second.
    pub bits_rate: u64,
    /// Burst size in bits.
    pub bits_burst: u64,
}

impl Row for StormRow {
    const TABLE: Table = STORM;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "storm.packets_on", 0, 1, u64::from(self.packets_on))?;
        put(&mut words, "storm.packets_rate", 1, 40, self.packets_rate)?;
        put(&mut words, "storm.packets_burst", 41, 40, self.packets_burst)?;
        put(&mut words, "storm.bits_on", 81, 1, u64::from(self.bits_on))?;
        put(&mut words, "storm.bits_rate", 82, 40, self.bits_rate)?;
        put(&mut words, "storm.bits_burst", 122, 40, self.bits_burst)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            packets_on: get(words, 0, 1) != 0,
            packets_rate: get(words, 1, 40),
            packets_burst: get(words, 41, 40),
            bits_on: get(words, 81, 1) != 0,
            bits_rate: get(words, 82, 40),
            bits_burst: get(words, 122, 40),
        }
    }
}

/// Debts of storm meters (l2): As the debts of meters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StormDebtRow {
    /// Debt in packets: 10^-9 packets, lower bits.
    pub packets_low: u64,
    /// Its upper bits.
    pub packets_high: u8,
    /// Debt in bits: 10^-9 bits, lower bits.
    pub bits_low: u64,
    /// Its upper bits.
    pub bits_high: u8,
    /// Time of the last packet, nanoseconds. The buckets earn from then on.
    pub time_ns: u64,
}

impl Row for StormDebtRow {
    const TABLE: Table = STORM_DEBT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "storm_debt.packets_low", 0, 64, self.packets_low)?;
        put(&mut words, "storm_debt.packets_high", 64, 6, u64::from(self.packets_high))?;
        put(&mut words, "storm_debt.bits_low", 70, 64, self.bits_low)?;
        put(&mut words, "storm_debt.bits_high", 134, 6, u64::from(self.bits_high))?;
        put(&mut words, "storm_debt.time_ns", 140, 64, self.time_ns)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            packets_low: get(words, 0, 64),
            packets_high: get(words, 64, 6) as u8,
            bits_low: get(words, 70, 64),
            bits_high: get(words, 134, 6) as u8,
            time_ns: get(words, 140, 64),
        }
    }
}

/// Copies of a network (l2): Copies made of the frames that were sent to several ports, lost ones included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CopiesRow {
    /// Copies.
    pub value: u64,
}

impl Row for CopiesRow {
    const TABLE: Table = COPIES;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "copies.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Groups of next hops: Whether a next hop is a group: then a packet takes a row that one of the group's
/// slots names, not this one. Images without SLOT do not have the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GroupRow {
    /// The next hop is a group.
    pub valid: bool,
    /// First slot: a multiple of the number of slots.
    pub first: u16,
    /// Number of slots, as a power of two; at most 12. The lowest bits of a packet's hash select the slot.
    pub bits: u8,
}

impl Row for GroupRow {
    const TABLE: Table = GROUP;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "group.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "group.first", 1, 16, u64::from(self.first))?;
        put(&mut words, "group.bits", 17, 4, u64::from(self.bits))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { valid: get(words, 0, 1) != 0, first: get(words, 1, 16) as u16, bits: get(words, 17, 4) as u8 }
    }
}

/// Slots of groups: The member that a packet takes. In a slot of another network it finds no route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SlotRow {
    /// The network that owns the slot.
    pub net: u8,
    /// Next hop of that network. It is taken as it is in HOP, never as a group.
    pub hop: u16,
}

impl Row for SlotRow {
    const TABLE: Table = SLOT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "slot.net", 0, 8, u64::from(self.net))?;
        put(&mut words, "slot.hop", 8, 16, u64::from(self.hop))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { net: get(words, 0, 8) as u8, hop: get(words, 8, 16) as u16 }
    }
}

/// Tunnels: A tunnel over another network, by what its packets have on the way in. A search ends at the
/// first row that is not in use, so at least one has to be free. Next hops name rows on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TunnelRow {
    /// The row is in use.
    pub valid: bool,
    /// The network that carries the tunnel.
    pub over: u8,
    /// Its virtual port with the near end's address.
    pub over_vport: u8,
    /// VXLAN; otherwise IP in IP.
    pub vxlan: bool,
    /// The ends have IPv6 addresses.
    pub wide: bool,
    /// VNI; 0 for IP in IP.
    pub vni: u32,
    /// Address of the far end: its lower half, or IPv4.
    pub remote_low: u64,
    /// The upper half.
    pub remote_high: u64,
    /// VXLAN: frames to any MAC address enter; otherwise those to the virtual port's, and group frames.
    pub any_mac: bool,
}

impl Row for TunnelRow {
    const TABLE: Table = TUNNEL;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "tunnel.valid", 0, 1, u64::from(self.valid))?;
        put(&mut words, "tunnel.over", 1, 8, u64::from(self.over))?;
        put(&mut words, "tunnel.over_vport", 9, 8, u64::from(self.over_vport))?;
        put(&mut words, "tunnel.vxlan", 17, 1, u64::from(self.vxlan))?;
        put(&mut words, "tunnel.wide", 18, 1, u64::from(self.wide))?;
        put(&mut words, "tunnel.vni", 19, 24, u64::from(self.vni))?;
        put(&mut words, "tunnel.remote_low", 43, 64, self.remote_low)?;
        put(&mut words, "tunnel.remote_high", 107, 64, self.remote_high)?;
        put(&mut words, "tunnel.any_mac", 171, 1, u64::from(self.any_mac))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            valid: get(words, 0, 1) != 0,
            over: get(words, 1, 8) as u8,
            over_vport: get(words, 9, 8) as u8,
            vxlan: get(words, 17, 1) != 0,
            wide: get(words, 18, 1) != 0,
            vni: get(words, 19, 24) as u32,
            remote_low: get(words, 43, 64),
            remote_high: get(words, 107, 64),
            any_mac: get(words, 171, 1) != 0,
        }
    }
}

/// Near ends of tunnels: The network with the tunnel, and the rest of what its packets need on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TunnelNearRow {
    /// Address of the near end: its lower half, or IPv4.
    pub local_low: u64,
    /// The upper half.
    pub local_high: u64,
    /// MAC address of the virtual port that is the tunnel's end.
    pub mac: u64,
    /// MAC address of the carrier's virtual port.
    pub over_mac: u64,
    /// The network with the tunnel.
    pub net: u8,
    /// Its virtual port.
    pub vport: u8,
    /// TTL or hop limit of outer packets, before the carrier's plane decrements it.
    pub ttl: u8,
    /// Outer packets have the DSCP below; otherwise that of the inner packet.
    pub dscp_fixed: bool,
    /// DSCP.
    pub dscp: u8,
}

impl Row for TunnelNearRow {
    const TABLE: Table = TUNNEL_NEAR;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "tunnel_near.local_low", 0, 64, self.local_low)?;
        put(&mut words, "tunnel_near.local_high", 64, 64, self.local_high)?;
        put(&mut words, "tunnel_near.mac", 128, 48, self.mac)?;
        put(&mut words, "tunnel_near.over_mac", 176, 48, self.over_mac)?;
        put(&mut words, "tunnel_near.net", 224, 8, u64::from(self.net))?;
        put(&mut words, "tunnel_near.vport", 232, 8, u64::from(self.vport))?;
        put(&mut words, "tunnel_near.ttl", 240, 8, u64::from(self.ttl))?;
        put(&mut words, "tunnel_near.dscp_fixed", 248, 1, u64::from(self.dscp_fixed))?;
        put(&mut words, "tunnel_near.dscp", 249, 6, u64::from(self.dscp))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            local_low: get(words, 0, 64),
            local_high: get(words, 64, 64),
            mac: get(words, 128, 48),
            over_mac: get(words, 176, 48),
            net: get(words, 224, 8) as u8,
            vport: get(words, 232, 8) as u8,
            ttl: get(words, 240, 8) as u8,
            dscp_fixed: get(words, 248, 1) != 0,
            dscp: get(words, 249, 6) as u8,
        }
    }
}

/// Packets in tunnels: What the loop did with packets of a network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TunnelCountRow {
    /// Packets.
    pub value: u64,
}

impl Row for TunnelCountRow {
    const TABLE: Table = TUNNEL_COUNT;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "tunnel_count.value", 0, 64, self.value)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { value: get(words, 0, 64) }
    }
}

/// Policies: Where a network's policies (routes that depend on the source) are. Writing the row replaces all
/// of them at once. A policy whose place is outside the network's own runs is not found. Images without
/// RANGE do not have the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PolicyRow {
    /// First row in RANGE of the ranges of sources.
    pub source_first: u16,
    /// Number of ranges of sources.
    pub source_count: u16,
    /// Steps of a search in them: the smallest n with 2^n not below the count.
    pub source_bits: u8,
    /// Likewise for destinations.
    pub destination_first: u16,
    /// Number of ranges of destinations.
    pub destination_count: u16,
    /// Steps of a search in them.
    pub destination_bits: u8,
    /// First row in PAIR.
    pub pair_first: u16,
    /// Number of pairs.
    pub pair_count: u16,
    /// First row in RULE.
    pub rule_first: u16,
    /// Number of rules.
    pub rule_count: u16,
}

impl Row for PolicyRow {
    const TABLE: Table = POLICY;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "policy.source_first", 0, 16, u64::from(self.source_first))?;
        put(&mut words, "policy.source_count", 16, 16, u64::from(self.source_count))?;
        put(&mut words, "policy.source_bits", 32, 4, u64::from(self.source_bits))?;
        put(&mut words, "policy.destination_first", 36, 16, u64::from(self.destination_first))?;
        put(&mut words, "policy.destination_count", 52, 16, u64::from(self.destination_count))?;
        put(&mut words, "policy.destination_bits", 68, 4, u64::from(self.destination_bits))?;
        put(&mut words, "policy.pair_first", 72, 16, u64::from(self.pair_first))?;
        put(&mut words, "policy.pair_count", 88, 16, u64::from(self.pair_count))?;
        put(&mut words, "policy.rule_first", 104, 16, u64::from(self.rule_first))?;
        put(&mut words, "policy.rule_count", 120, 16, u64::from(self.rule_count))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            source_first: get(words, 0, 16) as u16,
            source_count: get(words, 16, 16) as u16,
            source_bits: get(words, 32, 4) as u8,
            destination_first: get(words, 36, 16) as u16,
            destination_count: get(words, 52, 16) as u16,
            destination_bits: get(words, 68, 4) as u8,
            pair_first: get(words, 72, 16) as u16,
            pair_count: get(words, 88, 16) as u16,
            rule_first: get(words, 104, 16) as u16,
            rule_count: get(words, 120, 16) as u16,
        }
    }
}

/// Ranges of addresses: A range of addresses begins here; it ends before the next row's. The first range of
/// a run begins at 0. In a run, starts ascend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RangeRow {
    /// The first address: its lower half. An IPv4 address is the highest bits, and the others are 0.
    pub start_low: u64,
    /// The upper half.
    pub start_high: u64,
    /// What addresses of the range add to the place of the pair.
    pub value: u16,
}

impl Row for RangeRow {
    const TABLE: Table = RANGE;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "range.start_low", 0, 64, self.start_low)?;
        put(&mut words, "range.start_high", 64, 64, self.start_high)?;
        put(&mut words, "range.value", 128, 16, u64::from(self.value))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            start_low: get(words, 0, 64),
            start_high: get(words, 64, 64),
            value: get(words, 128, 16) as u16,
        }
    }
}

/// Pairs of ranges: The best policy for a source and a destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PairRow {
    /// Its row in RULE, relative to the network's run. With a row outside the run, the destination's route
    /// decides.
    pub rule: u16,
}

impl Row for PairRow {
    const TABLE: Table = PAIR;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "pair.rule", 0, 16, u64::from(self.rule))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { rule: get(words, 0, 16) as u16 }
    }
}

/// Rules: What a policy does: the route of its gateway replaces that of the destination, if it takes
/// precedence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RuleRow {
    /// Address of the gateway: its lower half. An IPv4 address is the highest bits, and the others are 0.
    pub via_low: u64,
    /// The upper half.
    pub via_high: u64,
    /// It takes precedence over routes whose prefixes are shorter than this, and over no route.
    pub both: u16,
}

impl Row for RuleRow {
    const TABLE: Table = RULE;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "rule.via_low", 0, 64, self.via_low)?;
        put(&mut words, "rule.via_high", 64, 64, self.via_high)?;
        put(&mut words, "rule.both", 128, 9, u64::from(self.both))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { via_low: get(words, 0, 64), via_high: get(words, 64, 64), both: get(words, 128, 9) as u16 }
    }
}

/// Lanes of keys (extract): Which bytes of a frame a network's key has, in their order. The first row whose
/// mask is 0 ends the lanes; a network of another kind has none. Images without PATTERN do not have the
/// table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LaneRow {
    /// Place of the byte in the frame.
    pub offset: u8,
    /// Which of its bits; 0: there is no such lane.
    pub mask: u8,
}

impl Row for LaneRow {
    const TABLE: Table = LANE;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "lane.offset", 0, 7, u64::from(self.offset))?;
        put(&mut words, "lane.mask", 7, 8, u64::from(self.mask))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { offset: get(words, 0, 7) as u8, mask: get(words, 7, 8) as u8 }
    }
}

/// Patterns of entries (extract, mpls): What an entry says about a key, whose first lane, or label, is in
/// the highest bits. Entry e of a network is in bank e mod 4 of four, at the index that its root in NETWORK
/// names plus e / 4; the first entry that matches counts. Root: bits 11 to 0 that index, bits 16 to 12 the
/// number of groups of four entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PatternRow {
    /// The bits of the mask, 0 elsewhere: the lower half. A row with a bit that is not in the mask matches
    /// nothing.
    pub value_low: u64,
    /// The upper half.
    pub value_high: u64,
    /// Which bits are compared: the lower half.
    pub mask_low: u64,
    /// The upper half.
    pub mask_high: u64,
}

impl Row for PatternRow {
    const TABLE: Table = PATTERN;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "pattern.value_low", 0, 64, self.value_low)?;
        put(&mut words, "pattern.value_high", 64, 64, self.value_high)?;
        put(&mut words, "pattern.mask_low", 128, 64, self.mask_low)?;
        put(&mut words, "pattern.mask_high", 192, 64, self.mask_high)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self {
            value_low: get(words, 0, 64),
            value_high: get(words, 64, 64),
            mask_low: get(words, 128, 64),
            mask_high: get(words, 192, 64),
        }
    }
}

/// Actions of entries (extract, mpls): What the entry does. An entry of another network does nothing: there
/// is no entry then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PatternHopRow {
    /// The network that owns the entry.
    pub net: u8,
    /// Its next hop. In HOP, kind local is: punt; glean: drop.
    pub hop: u16,
    /// In networks of kind mpls: the label that replaces that of the frame. Images without this kind do not
    /// have the field.
    pub label: u32,
}

impl Row for PatternHopRow {
    const TABLE: Table = PATTERN_HOP;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "pattern_hop.net", 0, 8, u64::from(self.net))?;
        put(&mut words, "pattern_hop.hop", 8, 16, u64::from(self.hop))?;
        put(&mut words, "pattern_hop.label", 24, 20, u64::from(self.label))?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { net: get(words, 0, 8) as u8, hop: get(words, 8, 16) as u16, label: get(words, 24, 20) as u32 }
    }
}

/// MAC addresses of ports (rofl): The network's own MAC address at a port, to which frames of kind rofl must
/// be. Images without this kind do not have the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortMacRow {
    /// The MAC address.
    pub mac: u64,
}

impl Row for PortMacRow {
    const TABLE: Table = PORT_MAC;

    fn pack(&self) -> Result<Words, FieldError> {
        let mut words = [0; ROW_WORDS];
        put(&mut words, "port_mac.mac", 0, 48, self.mac)?;
        Ok(words)
    }

    fn unpack(words: &Words) -> Self {
        Self { mac: get(words, 0, 48) }
    }
}
