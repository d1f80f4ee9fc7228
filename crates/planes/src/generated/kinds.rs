// Generated from spec/kinds.toml and spec/kinds/ by spec/codegen: edit those files, then `cargo run -p hue-spec-codegen`.
use crate::spec::{Class, Metric, OutcomeRow, SettingRow, Verdict};

/// Shortest frame that a port accepts, bytes.
pub const FRAME_BYTES_MIN: usize = 14;
/// Longest frame that a port accepts, bytes.
pub const FRAME_BYTES_MAX: usize = 9216;

/// Packets of a network, by verdict: forward, punt or drop.
pub const METRIC_VERDICTS: Metric = Metric {
    name: "hueplane_network_packets_total",
    labels: &["network", "verdict"],
    doc: "Packets of a network, by verdict: forward, punt or drop.",
};

/// Packets of a network that its plane dropped, by reason.
pub const METRIC_DROPS: Metric = Metric {
    name: "hueplane_network_drops_total",
    labels: &["network", "reason"],
    doc: "Packets of a network that its plane dropped, by reason.",
};

/// Packets of a network that its plane passed to the control plane, by reason.
pub const METRIC_PUNTS: Metric = Metric {
    name: "hueplane_network_punts_total",
    labels: &["network", "reason"],
    doc: "Packets of a network that its plane passed to the control plane, by reason.",
};

/// Packets of a network that were lost outside its plane, by reason.
pub const METRIC_LOSSES: Metric = Metric {
    name: "hueplane_network_losses_total",
    labels: &["network", "reason"],
    doc: "Packets of a network that were lost outside its plane, by reason.",
};

/// Bytes of a network's frames, received or sent, from the destination MAC address to the last byte.
pub const METRIC_NETWORK_BYTES: Metric = Metric {
    name: "hueplane_network_bytes_total",
    labels: &["network", "direction"],
    doc: "Bytes of a network's frames, received or sent, from the destination MAC address to the last byte.",
};

/// Packets of a network, by the virtual port of arrival and by verdict. Their sum is hueplane_network_packets_total.
pub const METRIC_NETWORK_PORT_VERDICTS: Metric = Metric {
    name: "hueplane_network_port_packets_total",
    labels: &["network", "port", "verdict"],
    doc: "Packets of a network, by the virtual port of arrival and by verdict. Their sum is hueplane_network_packets_total.",
};

/// Packets of a network with several address families, by family and by verdict. Those without a valid header's beginning are in none.
pub const METRIC_NETWORK_FAMILY_VERDICTS: Metric = Metric {
    name: "hueplane_network_family_packets_total",
    labels: &["network", "family", "verdict"],
    doc: "Packets of a network with several address families, by family and by verdict. Those without a valid header's beginning are in none.",
};

/// Frames of a physical port, received or sent.
pub const METRIC_PORT_PACKETS: Metric = Metric {
    name: "hueplane_port_packets_total",
    labels: &["port", "direction"],
    doc: "Frames of a physical port, received or sent.",
};

/// Bytes of a physical port's frames, received or sent, from the destination MAC address to the last byte.
pub const METRIC_PORT_BYTES: Metric = Metric {
    name: "hueplane_port_bytes_total",
    labels: &["port", "direction"],
    doc: "Bytes of a physical port's frames, received or sent, from the destination MAC address to the last byte.",
};

/// Frames lost at a physical port, by reason.
pub const METRIC_PORT_LOSSES: Metric = Metric {
    name: "hueplane_port_losses_total",
    labels: &["port", "reason"],
    doc: "Frames lost at a physical port, by reason.",
};

/// Frames that belong to no network, by reason.
pub const METRIC_UNCLAIMED: Metric = Metric {
    name: "hueplane_unclaimed_frames_total",
    labels: &["reason"],
    doc: "Frames that belong to no network, by reason.",
};

/// Kinds of plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// An IPv4 router.
    Ipv4 = 1,
    /// An IPv6 router.
    Ipv6 = 2,
    /// A learning Ethernet switch.
    L2 = 3,
    /// A router for IPv4 and IPv6. Terms in the conditions of a family are those of its kind.
    Dual = 4,
    /// A forwarder by any bits of the first 128 bytes.
    Extract = 5,
    /// Linux forwards, in the network's namespace.
    Kernel = 6,
    /// A program of the owner's forwards, in the network's namespace.
    Process = 7,
    /// A router for flat labels: to the closest label in a circular name space.
    Rofl = 8,
    /// An IPv4 router with several tables, its slices; bits of each packet choose the table at each hop (path splicing).
    Splice = 9,
    /// A label switching router.
    Mpls = 10,
    /// Sends each frame back to its sender.
    #[cfg(feature = "test-kinds")]
    Echo = 255,
}

impl Kind {
    /// The kinds that a network of a document can be of.
    pub const OFFERED: [Self; 10] = [
        Self::Ipv4,
        Self::Ipv6,
        Self::L2,
        Self::Dual,
        Self::Extract,
        Self::Kernel,
        Self::Process,
        Self::Rofl,
        Self::Splice,
        Self::Mpls,
    ];

    /// All kinds: those that are offered and, with feature `test-kinds`, those that exist only in tests.
    #[cfg(not(feature = "test-kinds"))]
    pub const ALL: [Self; 10] = Self::OFFERED;
    /// All kinds: those that are offered, and those that exist only in tests.
    #[cfg(feature = "test-kinds")]
    pub const ALL: [Self; 11] = [
        Self::Ipv4,
        Self::Ipv6,
        Self::L2,
        Self::Dual,
        Self::Extract,
        Self::Kernel,
        Self::Process,
        Self::Rofl,
        Self::Splice,
        Self::Mpls,
        Self::Echo,
    ];

    /// Name in kinds.toml, intent and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::L2 => "l2",
            Self::Dual => "dual",
            Self::Extract => "extract",
            Self::Kernel => "kernel",
            Self::Process => "process",
            Self::Rofl => "rofl",
            Self::Splice => "splice",
            Self::Mpls => "mpls",
            #[cfg(feature = "test-kinds")]
            Self::Echo => "echo",
        }
    }

    /// Substrates on which it runs.
    #[must_use]
    pub const fn runs_on(self) -> &'static [&'static str] {
        match self {
            Self::Ipv4 => &["soft", "card"],
            Self::Ipv6 => &["soft", "card"],
            Self::L2 => &["soft", "card"],
            Self::Dual => &["soft", "card"],
            Self::Extract => &["soft", "card"],
            Self::Kernel => &["soft"],
            Self::Process => &["soft"],
            Self::Rofl => &["soft", "card"],
            Self::Splice => &["soft", "card"],
            Self::Mpls => &["soft", "card"],
            #[cfg(feature = "test-kinds")]
            Self::Echo => &["soft"],
        }
    }

    /// What a network says about its plane: the fields of `plane` in its document besides `kind`.
    #[must_use]
    pub const fn settings(self) -> &'static [SettingRow] {
        match self {
            Self::Ipv4 => &ipv4::SETTINGS,
            Self::Ipv6 => &ipv6::SETTINGS,
            Self::L2 => &l2::SETTINGS,
            Self::Dual => &dual::SETTINGS,
            Self::Extract => &extract::SETTINGS,
            Self::Kernel => &kernel::SETTINGS,
            Self::Process => &process::SETTINGS,
            Self::Rofl => &rofl::SETTINGS,
            Self::Splice => &splice::SETTINGS,
            Self::Mpls => &mpls::SETTINGS,
            #[cfg(feature = "test-kinds")]
            Self::Echo => &echo::SETTINGS,
        }
    }

    /// The kind of an id: its number in files, images and hardware.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Ipv4),
            2 => Some(Self::Ipv6),
            3 => Some(Self::L2),
            4 => Some(Self::Dual),
            5 => Some(Self::Extract),
            6 => Some(Self::Kernel),
            7 => Some(Self::Process),
            8 => Some(Self::Rofl),
            9 => Some(Self::Splice),
            10 => Some(Self::Mpls),
            #[cfg(feature = "test-kinds")]
            255 => Some(Self::Echo),
            _ => None,
        }
    }

    /// Its outcomes, in the order of their codes, from 1. Those from [`Kind::first_forward`] on forward.
    #[must_use]
    pub const fn outcomes(self) -> &'static [OutcomeRow] {
        match self {
            Self::Ipv4 => &ipv4::Outcome::ROWS,
            Self::Ipv6 => &ipv6::Outcome::ROWS,
            Self::L2 => &l2::Outcome::ROWS,
            Self::Dual => &dual::Outcome::ROWS,
            Self::Extract => &extract::Outcome::ROWS,
            Self::Kernel => &kernel::Outcome::ROWS,
            Self::Process => &process::Outcome::ROWS,
            Self::Rofl => &rofl::Outcome::ROWS,
            Self::Splice => &splice::Outcome::ROWS,
            Self::Mpls => &mpls::Outcome::ROWS,
            #[cfg(feature = "test-kinds")]
            Self::Echo => &echo::Outcome::ROWS,
        }
    }

    /// Code of its first outcome that forwards.
    #[inline(always)]
    #[must_use]
    pub const fn first_forward(self) -> u8 {
        match self {
            Self::Ipv4 => 19,
            Self::Ipv6 => 17,
            Self::L2 => 10,
            Self::Dual => 30,
            Self::Extract => 8,
            Self::Kernel => 4,
            Self::Process => 4,
            Self::Rofl => 18,
            Self::Splice => 21,
            Self::Mpls => 15,
            #[cfg(feature = "test-kinds")]
            Self::Echo => 4,
        }
    }

    /// Code of its outcome of class [`Class::Flood`]; 0 if it has none.
    #[inline(always)]
    #[must_use]
    pub const fn flood(self) -> u8 {
        match self {
            Self::Ipv4 => 0,
            Self::Ipv6 => 0,
            Self::L2 => 10,
            Self::Dual => 0,
            Self::Extract => 0,
            Self::Kernel => 0,
            Self::Process => 0,
            Self::Rofl => 0,
            Self::Splice => 0,
            Self::Mpls => 0,
            #[cfg(feature = "test-kinds")]
            Self::Echo => 0,
        }
    }
}

/// Evaluates an expression with the type of a kind's plane: `with_plane!(kind, P => P::KIND)`.
#[cfg(not(feature = "test-kinds"))]
#[macro_export]
macro_rules! with_plane {
    ($kind:expr, $plane:ident => $body:expr) => {
        match $kind {
            $crate::Kind::Ipv4 => {
                type $plane = $crate::ipv4::Plane;
                $body
            }
            $crate::Kind::Ipv6 => {
                type $plane = $crate::ipv6::Plane;
                $body
            }
            $crate::Kind::L2 => {
                type $plane = $crate::l2::Plane;
                $body
            }
            $crate::Kind::Dual => {
                type $plane = $crate::dual::Plane;
                $body
            }
            $crate::Kind::Extract => {
                type $plane = $crate::extract::Plane;
                $body
            }
            $crate::Kind::Kernel => {
                type $plane = $crate::kernel::Plane;
                $body
            }
            $crate::Kind::Process => {
                type $plane = $crate::process::Plane;
                $body
            }
            $crate::Kind::Rofl => {
                type $plane = $crate::rofl::Plane;
                $body
            }
            $crate::Kind::Splice => {
                type $plane = $crate::splice::Plane;
                $body
            }
            $crate::Kind::Mpls => {
                type $plane = $crate::mpls::Plane;
                $body
            }
        }
    };
}

/// Passes variant and module of every kind to a macro.
#[cfg(not(feature = "test-kinds"))]
#[macro_export]
macro_rules! for_each_plane {
    ($macro:ident) => {
        $macro! { Ipv4 ipv4 Ipv6 ipv6 L2 l2 Dual dual Extract extract Kernel kernel Process process Rofl rofl Splice splice Mpls mpls }
    };
}

/// Evaluates an expression with the type of a kind's plane: `with_plane!(kind, P => P::KIND)`.
#[cfg(feature = "test-kinds")]
#[macro_export]
macro_rules! with_plane {
    ($kind:expr, $plane:ident => $body:expr) => {
        match $kind {
            $crate::Kind::Ipv4 => {
                type $plane = $crate::ipv4::Plane;
                $body
            }
            $crate::Kind::Ipv6 => {
                type $plane = $crate::ipv6::Plane;
                $body
            }
            $crate::Kind::L2 => {
                type $plane = $crate::l2::Plane;
                $body
            }
            $crate::Kind::Dual => {
                type $plane = $crate::dual::Plane;
                $body
            }
            $crate::Kind::Extract => {
                type $plane = $crate::extract::Plane;
                $body
            }
            $crate::Kind::Kernel => {
                type $plane = $crate::kernel::Plane;
                $body
            }
            $crate::Kind::Process => {
                type $plane = $crate::process::Plane;
                $body
            }
            $crate::Kind::Rofl => {
                type $plane = $crate::rofl::Plane;
                $body
            }
            $crate::Kind::Splice => {
                type $plane = $crate::splice::Plane;
                $body
            }
            $crate::Kind::Mpls => {
                type $plane = $crate::mpls::Plane;
                $body
            }
            $crate::Kind::Echo => {
                type $plane = $crate::echo::Plane;
                $body
            }
        }
    };
}

/// Passes variant and module of every kind to a macro.
#[cfg(feature = "test-kinds")]
#[macro_export]
macro_rules! for_each_plane {
    ($macro:ident) => {
        $macro! { Ipv4 ipv4 Ipv6 ipv6 L2 l2 Dual dual Extract extract Kernel kernel Process process Rofl rofl Splice splice Mpls mpls Echo echo }
    };
}

/// The code, in every kind: The network's plane is stopped by its clock gate, and processes no packets.
pub const CODE_GATED: u8 = 1;

/// The code, in every kind: The packet exceeds the network's rate limit.
pub const CODE_RATE_LIMITED: u8 = 2;

/// Reasons why a frame belongs to no network, in the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Unclaimed {
    /// Too short for an Ethernet header.
    Runt = 1,
    /// Longer than the longest frame a port takes.
    TooLong = 2,
    /// Design select found no network for the frame.
    NoNetwork = 3,
}

impl Unclaimed {
    /// Number of variants.
    pub const COUNT: usize = 3;

    /// All variants, in order.
    pub const ALL: [Self; 3] = [Self::Runt, Self::TooLong, Self::NoNetwork];

    /// Their rows of the specification, in order.
    pub const ROWS: [OutcomeRow; 3] = [
        OutcomeRow {
            name: "runt",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "demux",
            doc: "Too short for an Ethernet header.",
            when: "n < 14",
            source: "IEEE 802.3 §3.1.1",
        },
        OutcomeRow {
            name: "too_long",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "demux",
            doc: "Longer than the longest frame a port takes.",
            when: "n > 9216",
            source: "hueplane (jumbo frames of 9,202 bytes of IP and below)",
        },
        OutcomeRow {
            name: "no_network",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "demux",
            doc: "Design select found no network for the frame.",
            when: "no design-select row matches; or the destination MAC is a group address and no network is attached to the port",
            source: "Unnikrishnan §4.2",
        },
    ];

    /// Number in counters and in hardware: its place in the order, from 1.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=3 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Its row of the specification.
    #[must_use]
    pub const fn row(self) -> &'static OutcomeRow {
        &Self::ROWS[self as usize - 1]
    }

    /// Name in output, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What is done with the packet.
    #[inline]
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        self.row().verdict
    }
}

/// Reasons why a packet is lost outside its plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Loss {
    /// The network's share of a port's receive ring was used up.
    RingQuota = 1,
    /// The network's share of the ring from the port's worker to the network's worker was used up.
    HandoverFull = 2,
    /// The network's queue was full, or there was no packet memory for another packet.
    QueueFull = 3,
    /// A broadcast ARP message, or a multicast neighbour solicitation, that does not concern the network.
    ArpForeign = 4,
    /// A broadcast or multicast packet whose sender is not on a link of the network there.
    GroupForeign = 5,
    /// The network's control plane sent a frame whose source MAC address is not that of the virtual port.
    ForgedSource = 6,
    /// A message of ARP or neighbour discovery claims an address of the router itself, or of a neighbour that is known under another MAC address; or it comes from another link, or in a fragment, or its headers are too many to follow.
    ArpForged = 7,
    /// The packet exceeds the network's punt limit or, if it is not for the router itself, half of that limit.
    PuntLimited = 8,
    /// The network's namespace did not accept the packet.
    ControlFull = 9,
    /// The network has no control plane on the virtual port.
    ControlAbsent = 10,
    /// The port's transmit ring was full.
    PortFull = 11,
    /// The egress port is down or does not exist.
    PortDown = 12,
    /// The network's share of the ring from its worker to the egress port's worker was used up.
    HandoverSendFull = 13,
    /// A broadcast or multicast frame that arrived on the wire that the network does not use now.
    OtherWire = 14,
    /// The port's receive ring had no room for the packet, or no packet memory was free.
    RingFull = 15,
    /// There was no packet memory for a copy of a frame that its network sends to several ports.
    CopyFull = 16,
    /// The frame is no sound IP packet, and the tunnel carries only those.
    TunnelNotIp = 17,
    /// There is no room for the outer headers before the frame: it is in too many tunnels already.
    TunnelNested = 18,
    /// A packet for a tunnel that is not between these two addresses, has another VNI, or whose inner destination is none of the networks' with that tunnel. It counts for the network that carries the tunnel.
    TunnelStranger = 19,
    /// A packet of a tunnel came in fragments, which tunnels do not reassemble.
    TunnelFragment = 20,
    /// The header of the tunnel or of the inner packet is malformed, or the inner packet is longer than the outer one.
    TunnelHeader = 21,
    /// The outer packet has experienced congestion, and the inner one cannot say so (RFC 6040).
    TunnelEcn = 22,
    /// The UDP checksum of a packet of a tunnel is wrong.
    TunnelChecksum = 23,
    /// The outer header of a packet of a tunnel has IPv4 options, or IPv6 extension headers other than destination options that a receiver may skip.
    TunnelOptions = 24,
}

impl Loss {
    /// Number of variants.
    pub const COUNT: usize = 24;

    /// All variants, in order.
    pub const ALL: [Self; 24] = [
        Self::RingQuota,
        Self::HandoverFull,
        Self::QueueFull,
        Self::ArpForeign,
        Self::GroupForeign,
        Self::ForgedSource,
        Self::ArpForged,
        Self::PuntLimited,
        Self::ControlFull,
        Self::ControlAbsent,
        Self::PortFull,
        Self::PortDown,
        Self::HandoverSendFull,
        Self::OtherWire,
        Self::RingFull,
        Self::CopyFull,
        Self::TunnelNotIp,
        Self::TunnelNested,
        Self::TunnelStranger,
        Self::TunnelFragment,
        Self::TunnelHeader,
        Self::TunnelEcn,
        Self::TunnelChecksum,
        Self::TunnelOptions,
    ];

    /// Their rows of the specification, in order.
    pub const ROWS: [OutcomeRow; 24] = [
        OutcomeRow {
            name: "ring_quota",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "arrival",
            doc: "The network's share of a port's receive ring was used up.",
            when: "the port enforces shares, and the number of the network's packets between wire and plane has reached its share",
            source: "hueplane",
        },
        OutcomeRow {
            name: "handover_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "arrival",
            doc: "The network's share of the ring from the port's worker to the network's worker was used up.",
            when: "port and network belong to different workers",
            source: "hueplane",
        },
        OutcomeRow {
            name: "queue_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "queue",
            doc: "The network's queue was full, or there was no packet memory for another packet.",
            when: "the queue has reached its limit, which shrinks when packet memory is short",
            source: "hueplane",
        },
        OutcomeRow {
            name: "arp_foreign",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "queue",
            doc: "A broadcast ARP message, or a multicast neighbour solicitation, that does not concern the network.",
            when: "neither a request for an address of the network on the port nor an announcement of a neighbour on its links there",
            source: "hueplane",
        },
        OutcomeRow {
            name: "group_foreign",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "queue",
            doc: "A broadcast or multicast packet whose sender is not on a link of the network there.",
            when: "of a protocol that the network's kind handles, and the source is neither unspecified, nor link-local (IPv6), nor inside a link of the virtual port",
            source: "hueplane",
        },
        OutcomeRow {
            name: "forged_source",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "queue",
            doc: "The network's control plane sent a frame whose source MAC address is not that of the virtual port.",
            when: "the frame comes from the namespace and has another source MAC address; or any group address, if the network delegates its packets and takes all frames of the port",
            source: "hueplane",
        },
        OutcomeRow {
            name: "arp_forged",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "A message of ARP or neighbour discovery claims an address of the router itself, or of a neighbour that is known under another MAC address; or it comes from another link, or in a fragment, or its headers are too many to follow.",
            when: "a punted packet, on that virtual port",
            source: "hueplane",
        },
        OutcomeRow {
            name: "punt_limited",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The packet exceeds the network's punt limit or, if it is not for the router itself, half of that limit.",
            when: "the packet is punted, and the bucket of the punt limit is empty, or the outcome's class is neither own nor a guard and the bucket of half the limit is empty",
            source: "hueplane",
        },
        OutcomeRow {
            name: "control_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The network's namespace did not accept the packet.",
            when: "the packet is punted, and the TAP device of its virtual port is full or fails",
            source: "hueplane",
        },
        OutcomeRow {
            name: "control_absent",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The network has no control plane on the virtual port.",
            when: "the packet is punted, and its virtual port has no TAP device",
            source: "hueplane",
        },
        OutcomeRow {
            name: "port_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The port's transmit ring was full.",
            when: "the packet is forwarded, or sent by the network's control plane",
            source: "hueplane",
        },
        OutcomeRow {
            name: "port_down",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The egress port is down or does not exist.",
            when: "the packet is forwarded, or sent by the network's control plane",
            source: "hueplane",
        },
        OutcomeRow {
            name: "handover_send_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The network's share of the ring from its worker to the egress port's worker was used up.",
            when: "port and network belong to different workers",
            source: "hueplane",
        },
        OutcomeRow {
            name: "other_wire",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "queue",
            doc: "A broadcast or multicast frame that arrived on the wire that the network does not use now.",
            when: "a NIC stands beside the card's port, so group frames arrive on both wires; a network accepts those on the wire to which its neighbours send",
            source: "hueplane",
        },
        OutcomeRow {
            name: "ring_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "arrival",
            doc: "The port's receive ring had no room for the packet, or no packet memory was free.",
            when: "the packet was within the network's share of the ring, but the ring was full",
            source: "hueplane",
        },
        OutcomeRow {
            name: "copy_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "There was no packet memory for a copy of a frame that its network sends to several ports.",
            when: "the outcome's class is flood, and packet memory is short",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_not_ip",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The frame is no sound IP packet, and the tunnel carries only those.",
            when: "a frame leaves by a tunnel of type ipip",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_nested",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "There is no room for the outer headers before the frame: it is in too many tunnels already.",
            when: "a frame leaves by a tunnel",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_stranger",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "A packet for a tunnel that is not between these two addresses, has another VNI, or whose inner destination is none of the networks' with that tunnel. It counts for the network that carries the tunnel.",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_fragment",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "A packet of a tunnel came in fragments, which tunnels do not reassemble.",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_header",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The header of the tunnel or of the inner packet is malformed, or the inner packet is longer than the outer one.",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_ecn",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The outer packet has experienced congestion, and the inner one cannot say so (RFC 6040).",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_checksum",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The UDP checksum of a packet of a tunnel is wrong.",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
        OutcomeRow {
            name: "tunnel_options",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "departure",
            doc: "The outer header of a packet of a tunnel has IPv4 options, or IPv6 extension headers other than destination options that a receiver may skip.",
            when: "a punted packet for the router itself, of a type of tunnel that the network carries",
            source: "hueplane",
        },
    ];

    /// Number in counters and in hardware: its place in the order, from 1.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=24 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Its row of the specification.
    #[must_use]
    pub const fn row(self) -> &'static OutcomeRow {
        &Self::ROWS[self as usize - 1]
    }

    /// Name in output, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What is done with the packet.
    #[inline]
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        self.row().verdict
    }
}

/// Reasons why a physical port loses a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PortLoss {
    /// The receive ring was full, no packet memory was free, or the frame was longer than a slot.
    RingFull = 1,
    /// A network's share of the receive ring was used up.
    RingQuota = 2,
    /// The shared quota was used up. It applies to broadcast and multicast frames, and to frames whose network is determined only behind the ring.
    SharedQuota = 3,
    /// The frame belongs to no network. It is dropped before the ring, and counted as unclaimed.
    NoNetwork = 4,
    /// The frame is shorter than an Ethernet header. It is dropped before the ring, and counted as unclaimed.
    Runt = 5,
    /// The operating system took the frame from the transmit ring, but did not send it.
    SendFailed = 6,
    /// A broadcast or multicast frame, counted as received, reached no network: the card's memory for copies was full.
    FloodFull = 7,
}

impl PortLoss {
    /// Number of variants.
    pub const COUNT: usize = 7;

    /// All variants, in order.
    pub const ALL: [Self; 7] = [
        Self::RingFull,
        Self::RingQuota,
        Self::SharedQuota,
        Self::NoNetwork,
        Self::Runt,
        Self::SendFailed,
        Self::FloodFull,
    ];

    /// Their rows of the specification, in order.
    pub const ROWS: [OutcomeRow; 7] = [
        OutcomeRow {
            name: "ring_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "The receive ring was full, no packet memory was free, or the frame was longer than a slot.",
            when: "frames arrive faster than they are taken from the ring",
            source: "hueplane",
        },
        OutcomeRow {
            name: "ring_quota",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "A network's share of the receive ring was used up.",
            when: "the number of the network's packets between wire and plane has reached its share",
            source: "hueplane",
        },
        OutcomeRow {
            name: "shared_quota",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "The shared quota was used up. It applies to broadcast and multicast frames, and to frames whose network is determined only behind the ring.",
            when: "the number of such frames between wire and plane has reached their share, or group frames of one sender, or of all senders, exceed their rate",
            source: "hueplane",
        },
        OutcomeRow {
            name: "no_network",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "The frame belongs to no network. It is dropped before the ring, and counted as unclaimed.",
            when: "the port polices before its ring, and no rule of design select matches",
            source: "hueplane",
        },
        OutcomeRow {
            name: "runt",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "The frame is shorter than an Ethernet header. It is dropped before the ring, and counted as unclaimed.",
            when: "the port polices before its ring, and n < 14",
            source: "hueplane",
        },
        OutcomeRow {
            name: "send_failed",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "The operating system took the frame from the transmit ring, but did not send it.",
            when: "the interface is down, or its transmit queue is full",
            source: "hueplane",
        },
        OutcomeRow {
            name: "flood_full",
            verdict: Verdict::Drop,
            class: None,
            family: None,
            stage: "port",
            doc: "A broadcast or multicast frame, counted as received, reached no network: the card's memory for copies was full.",
            when: "more group frames arrive at ports of the card than it can copy to the networks there",
            source: "hueplane",
        },
    ];

    /// Number in counters and in hardware: its place in the order, from 1.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=7 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Its row of the specification.
    #[must_use]
    pub const fn row(self) -> &'static OutcomeRow {
        &Self::ROWS[self as usize - 1]
    }

    /// Name in output, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What is done with the packet.
    #[inline]
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        self.row().verdict
    }
}

/// Outcomes and limits of the `ipv4` kind.
pub mod ipv4 {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::Choice;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::V4;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: true, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 65535;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 2] = [
        SettingRow { name: "martians", values: Choice(&["drop", "forward"]) },
        SettingRow { name: "route_by", values: Choice(&["destination", "source", "source_destination"]) },
    ];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// ARP, which the network's control plane handles.
        Arp = 3,
        /// Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.
        Ethertype = 4,
        /// The frame ends within the fixed part of the IPv4 header.
        Truncated = 5,
        /// The version field is not 4.
        Version = 6,
        /// The header length is below 20 bytes or extends beyond the frame.
        HeaderLength = 7,
        /// The total length is below the header length or extends beyond the frame.
        TotalLength = 8,
        /// The header checksum is wrong.
        Checksum = 9,
        /// For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
        Local = 10,
        /// A packet to a unicast address in a broadcast or multicast frame.
        L2Group = 11,
        /// The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
        MartianSource = 12,
        /// The destination cannot be the address of a host: this network, loopback or reserved.
        MartianDestination = 13,
        /// The TTL has expired; the control plane answers time exceeded.
        Ttl = 14,
        /// The packet has IPv4 options, which the control plane handles.
        Options = 15,
        /// No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
        NoRoute = 16,
        /// The next hop's MAC address is not known yet; the control plane sends an ARP request.
        NoNeighbour = 17,
        /// The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
        Mtu = 18,
        /// Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.
        Forward = 19,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 19;

        /// All variants, in order.
        pub const ALL: [Self; 19] = [
            Self::Gated,
            Self::RateLimited,
            Self::Arp,
            Self::Ethertype,
            Self::Truncated,
            Self::Version,
            Self::HeaderLength,
            Self::TotalLength,
            Self::Checksum,
            Self::Local,
            Self::L2Group,
            Self::MartianSource,
            Self::MartianDestination,
            Self::Ttl,
            Self::Options,
            Self::NoRoute,
            Self::NoNeighbour,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 19] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "arp",
                verdict: Verdict::Punt,
                class: Some(Class::GuardArp),
                family: None,
                stage: "ethernet",
                doc: "ARP, which the network's control plane handles.",
                when: "be16(12) = 0x0806",
                source: "RFC 826",
            },
            OutcomeRow {
                name: "ethertype",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.",
                when: "be16(12) != 0x0800",
                source: "RFC 894",
            },
            OutcomeRow {
                name: "truncated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends within the fixed part of the IPv4 header.",
                when: "present < 20",
                source: "RFC 1812 §5.2.2 (1)",
            },
            OutcomeRow {
                name: "version",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The version field is not 4.",
                when: "version != 4",
                source: "RFC 1812 §5.2.2 (3)",
            },
            OutcomeRow {
                name: "header_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The header length is below 20 bytes or extends beyond the frame.",
                when: "ihl < 20 or ihl > present",
                source: "RFC 1812 §5.2.2 (4)",
            },
            OutcomeRow {
                name: "total_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The total length is below the header length or extends beyond the frame.",
                when: "total < ihl or total > present",
                source: "RFC 1812 §5.2.2 (5)",
            },
            OutcomeRow {
                name: "checksum",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The header checksum is wrong.",
                when: "the ones' complement sum of be16(14), be16(16), ... be16(14 + ihl - 2) is not 0xffff",
                source: "RFC 1812 §5.2.2 (2), RFC 1071",
            },
            OutcomeRow {
                name: "local",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.",
                when: "dst = 255.255.255.255, or dst is in 224.0.0.0/4, or hop exists and is of kind local",
                source: "RFC 1812 §5.2.3",
            },
            OutcomeRow {
                name: "l2_group",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "A packet to a unicast address in a broadcast or multicast frame.",
                when: "f[0] is odd",
                source: "RFC 1812 §5.3.4, §4.2.3.1",
            },
            OutcomeRow {
                name: "martian_source",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.",
                when: "src is in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3, and the network drops martians",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "martian_destination",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The destination cannot be the address of a host: this network, loopback or reserved.",
                when: "dst is in 0.0.0.0/8, 127.0.0.0/8 or 240.0.0.0/4, and the network drops martians",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "ttl",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The TTL has expired; the control plane answers time exceeded.",
                when: "ttl < 2",
                source: "RFC 1812 §5.3.1",
            },
            OutcomeRow {
                name: "options",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet has IPv4 options, which the control plane handles.",
                when: "ihl > 20",
                source: "RFC 1812 §5.2.4, §4.2.2.1",
            },
            OutcomeRow {
                name: "no_route",
                verdict: Verdict::Punt,
                class: Some(Class::Unreachable),
                family: None,
                stage: "next_hop",
                doc: "No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.",
                when: "no prefix of the network's table matches dst",
                source: "RFC 1812 §5.2.7.1",
            },
            OutcomeRow {
                name: "no_neighbour",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The next hop's MAC address is not known yet; the control plane sends an ARP request.",
                when: "hop is of kind glean",
                source: "RFC 1812 §3.3.2, RFC 826",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.",
                when: "total > mtu of hop",
                source: "RFC 1812 §5.2.6",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "rewrite",
                doc: "Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.",
                when: "true",
                source: "RFC 1812 §5.2.1, RFC 1141, RFC 1624 §3",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=19 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Ipv4, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Ipv4, outcome.code())
        }
    }
}

/// Outcomes and limits of the `ipv6` kind.
pub mod ipv6 {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::Choice;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::V6;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: true };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 65535;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 1280;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 1] =
        [SettingRow { name: "route_by", values: Choice(&["destination", "source", "source_destination"]) }];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// Not IPv6. A frame with a VLAN tag or an 802.3 length, and ARP, are not either.
        Ethertype = 3,
        /// The frame ends within the IPv6 header.
        Truncated = 4,
        /// The version field is not 6.
        Version = 5,
        /// The payload extends beyond the frame.
        PayloadLength = 6,
        /// For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.
        Local = 7,
        /// A packet to a unicast address in a broadcast or multicast frame.
        L2Group = 8,
        /// The source cannot be the address of a host on another link: unspecified, loopback or multicast.
        MartianSource = 9,
        /// The destination cannot be the address of a host on another link: unspecified or loopback.
        MartianDestination = 10,
        /// The hop limit has expired; the control plane answers time exceeded.
        HopLimit = 11,
        /// The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.
        Scope = 12,
        /// The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.
        Options = 13,
        /// No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
        NoRoute = 14,
        /// The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.
        NoNeighbour = 15,
        /// The packet exceeds the egress port's MTU; the control plane answers packet too big.
        Mtu = 16,
        /// Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.
        Forward = 17,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 17;

        /// All variants, in order.
        pub const ALL: [Self; 17] = [
            Self::Gated,
            Self::RateLimited,
            Self::Ethertype,
            Self::Truncated,
            Self::Version,
            Self::PayloadLength,
            Self::Local,
            Self::L2Group,
            Self::MartianSource,
            Self::MartianDestination,
            Self::HopLimit,
            Self::Scope,
            Self::Options,
            Self::NoRoute,
            Self::NoNeighbour,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 17] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "ethertype",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "Not IPv6. A frame with a VLAN tag or an 802.3 length, and ARP, are not either.",
                when: "be16(12) != 0x86dd",
                source: "RFC 2464 §3",
            },
            OutcomeRow {
                name: "truncated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends within the IPv6 header.",
                when: "present < 40",
                source: "RFC 8200 §3",
            },
            OutcomeRow {
                name: "version",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The version field is not 6.",
                when: "version != 6",
                source: "RFC 8200 §3",
            },
            OutcomeRow {
                name: "payload_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The payload extends beyond the frame.",
                when: "40 + payload > present",
                source: "RFC 8200 §3",
            },
            OutcomeRow {
                name: "local",
                verdict: Verdict::Punt,
                class: Some(Class::GuardNd),
                family: None,
                stage: "lookup",
                doc: "For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.",
                when: "dst is in ff00::/8 or fe80::/10, or hop exists and is of kind local",
                source: "RFC 4291 §2.5.6, §2.7, §2.8",
            },
            OutcomeRow {
                name: "l2_group",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "A packet to a unicast address in a broadcast or multicast frame.",
                when: "f[0] is odd",
                source: "RFC 4443 §2.4 (e)",
            },
            OutcomeRow {
                name: "martian_source",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The source cannot be the address of a host on another link: unspecified, loopback or multicast.",
                when: "src is :: or ::1, or in ff00::/8",
                source: "RFC 4291 §2.5.2, §2.5.3, §2.7",
            },
            OutcomeRow {
                name: "martian_destination",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The destination cannot be the address of a host on another link: unspecified or loopback.",
                when: "dst is :: or ::1",
                source: "RFC 4291 §2.5.2, §2.5.3",
            },
            OutcomeRow {
                name: "hop_limit",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The hop limit has expired; the control plane answers time exceeded.",
                when: "hop_limit < 2",
                source: "RFC 8200 §3, RFC 4443 §3.3",
            },
            OutcomeRow {
                name: "scope",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.",
                when: "src is in fe80::/10",
                source: "RFC 4007 §9, RFC 4291 §2.5.6, RFC 4443 §3.1",
            },
            OutcomeRow {
                name: "options",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.",
                when: "next_header = 0",
                source: "RFC 8200 §4.3, RFC 9673",
            },
            OutcomeRow {
                name: "no_route",
                verdict: Verdict::Punt,
                class: Some(Class::Unreachable),
                family: None,
                stage: "next_hop",
                doc: "No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.",
                when: "no prefix of the network's table matches dst",
                source: "RFC 4443 §3.1",
            },
            OutcomeRow {
                name: "no_neighbour",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.",
                when: "hop is of kind glean",
                source: "RFC 4861 §7.2.2",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet exceeds the egress port's MTU; the control plane answers packet too big.",
                when: "40 + payload > mtu of hop",
                source: "RFC 8200 §5, RFC 4443 §3.2",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "rewrite",
                doc: "Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.",
                when: "true",
                source: "RFC 8200 §3",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=17 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Ipv6, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Ipv6, outcome.code())
        }
    }
}

/// Outcomes and limits of the `l2` kind.
pub mod l2 {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingRange;
    use crate::spec::SettingValues::{Flag, Other, Range};

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Mac;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 256;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// Values of setting `macs_max`.
    pub const MACS_MAX: SettingRange<u16> =
        SettingRange { min: 0, max: 60_000, multiple_of: 1, default: 4_096 };
    /// Values of setting `ageing_seconds`.
    pub const AGEING_SECONDS: SettingRange<u32> =
        SettingRange { min: 10, max: 1_000_000, multiple_of: 1, default: 300 };
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 4] = [
        SettingRow {
            name: "macs_max",
            values: Range(SettingRange { min: 0, max: 60_000, multiple_of: 1, default: 4_096 }),
        },
        SettingRow {
            name: "ageing_seconds",
            values: Range(SettingRange { min: 10, max: 1_000_000, multiple_of: 1, default: 300 }),
        },
        SettingRow { name: "sticky", values: Flag { default: false } },
        SettingRow { name: "storm_limit", values: Other },
    ];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// The source MAC address is a group address or zero.
        BadSource = 3,
        /// The destination MAC address is zero.
        BadDestination = 4,
        /// For the switch itself: protocols of a single link, which a switch never forwards (STP, LACP, LLDP).
        Reserved = 5,
        /// The sender's address belongs to another port: it is static, or learnt and the network is sticky.
        WrongPort = 6,
        /// The destination is behind the port at which the frame arrived.
        SamePort = 7,
        /// The frame exceeds the MTU of the network's ports.
        Mtu = 8,
        /// The frame would be sent to all ports, and exceeds the network's limit for such frames.
        Storm = 9,
        /// Sent, unchanged, to all ports of the network but the one at which it arrived.
        Flood = 10,
        /// Sent, unchanged, to the port of the destination's entry.
        Forward = 11,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 11;

        /// All variants, in order.
        pub const ALL: [Self; 11] = [
            Self::Gated,
            Self::RateLimited,
            Self::BadSource,
            Self::BadDestination,
            Self::Reserved,
            Self::WrongPort,
            Self::SamePort,
            Self::Mtu,
            Self::Storm,
            Self::Flood,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 11] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "bad_source",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "ethernet",
                doc: "The source MAC address is a group address or zero.",
                when: "f[6] is odd, or src is 0",
                source: "IEEE 802.3 §3.2.3",
            },
            OutcomeRow {
                name: "bad_destination",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "ethernet",
                doc: "The destination MAC address is zero.",
                when: "dst is 0",
                source: "IEEE 802.3 §3.2.3",
            },
            OutcomeRow {
                name: "reserved",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "ethernet",
                doc: "For the switch itself: protocols of a single link, which a switch never forwards (STP, LACP, LLDP).",
                when: "dst is in 01:80:c2:00:00:00 to 01:80:c2:00:00:0f",
                source: "IEEE 802.1Q §8.6.3",
            },
            OutcomeRow {
                name: "wrong_port",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "source",
                doc: "The sender's address belongs to another port: it is static, or learnt and the network is sticky.",
                when: "the entry of src names another port than arrival, and it is static or the network is sticky",
                source: "hueplane",
            },
            OutcomeRow {
                name: "same_port",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The destination is behind the port at which the frame arrived.",
                when: "dst is no group address, and its entry names arrival",
                source: "IEEE 802.1Q §8.6.1",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The frame exceeds the MTU of the network's ports.",
                when: "payload > mtu of hop, or of arrival if dst has no entry",
                source: "IEEE 802.1Q §6.5.8",
            },
            OutcomeRow {
                name: "storm",
                verdict: Verdict::Drop,
                class: Some(Class::Storm),
                family: None,
                stage: "storm",
                doc: "The frame would be sent to all ports, and exceeds the network's limit for such frames.",
                when: "dst is a group address or has no entry, and a bucket of storm_limit holds less than the frame costs",
                source: "RFC 2697 §3",
            },
            OutcomeRow {
                name: "flood",
                verdict: Verdict::Forward,
                class: Some(Class::Flood),
                family: None,
                stage: "egress",
                doc: "Sent, unchanged, to all ports of the network but the one at which it arrived.",
                when: "dst is a group address or has no entry",
                source: "IEEE 802.1Q §8.6.1, §8.8.10",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "egress",
                doc: "Sent, unchanged, to the port of the destination's entry.",
                when: "true",
                source: "IEEE 802.1Q §8.6.1",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=11 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::L2, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::L2, outcome.code())
        }
    }
}

/// Outcomes and limits of the `dual` kind.
pub mod dual {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::Choice;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Dual;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: true, v6: true };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 65534;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 1280;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 1] =
        [SettingRow { name: "martians", values: Choice(&["drop", "forward"]) }];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// ARP, which the network's control plane handles. It counts as IPv4.
        Ipv4Arp = 3,
        /// Neither IPv4, IPv6 nor ARP. A frame with a VLAN tag or an 802.3 length is none of them.
        Ethertype = 4,
        /// The frame ends within the fixed part of the IPv4 header, or within the IPv6 header.
        Truncated = 5,
        /// The version field is not that of the EtherType.
        Version = 6,
        /// IPv4: The header length is below 20 bytes or extends beyond the frame.
        Ipv4HeaderLength = 7,
        /// IPv4: The total length is below the header length or extends beyond the frame.
        Ipv4TotalLength = 8,
        /// IPv4: The header checksum is wrong.
        Ipv4Checksum = 9,
        /// IPv4: For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
        Ipv4Local = 10,
        /// IPv4: A packet to a unicast address in a broadcast or multicast frame.
        Ipv4L2Group = 11,
        /// IPv4: The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
        Ipv4MartianSource = 12,
        /// IPv4: The destination cannot be the address of a host: this network, loopback or reserved.
        Ipv4MartianDestination = 13,
        /// IPv4: The TTL has expired; the control plane answers time exceeded.
        Ipv4Ttl = 14,
        /// IPv4: The packet has IPv4 options, which the control plane handles.
        Ipv4Options = 15,
        /// IPv4: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
        Ipv4NoRoute = 16,
        /// IPv4: The next hop's MAC address is not known yet; the control plane sends an ARP request.
        Ipv4NoNeighbour = 17,
        /// IPv4: The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
        Ipv4Mtu = 18,
        /// IPv6: The payload extends beyond the frame.
        Ipv6PayloadLength = 19,
        /// IPv6: For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.
        Ipv6Local = 20,
        /// IPv6: A packet to a unicast address in a broadcast or multicast frame.
        Ipv6L2Group = 21,
        /// IPv6: The source cannot be the address of a host on another link: unspecified, loopback or multicast.
        Ipv6MartianSource = 22,
        /// IPv6: The destination cannot be the address of a host on another link: unspecified or loopback.
        Ipv6MartianDestination = 23,
        /// IPv6: The hop limit has expired; the control plane answers time exceeded.
        Ipv6HopLimit = 24,
        /// IPv6: The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.
        Ipv6Scope = 25,
        /// IPv6: The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.
        Ipv6Options = 26,
        /// IPv6: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
        Ipv6NoRoute = 27,
        /// IPv6: The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.
        Ipv6NoNeighbour = 28,
        /// IPv6: The packet exceeds the egress port's MTU; the control plane answers packet too big.
        Ipv6Mtu = 29,
        /// IPv4: Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.
        Ipv4Forward = 30,
        /// IPv6: Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.
        Ipv6Forward = 31,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 31;

        /// All variants, in order.
        pub const ALL: [Self; 31] = [
            Self::Gated,
            Self::RateLimited,
            Self::Ipv4Arp,
            Self::Ethertype,
            Self::Truncated,
            Self::Version,
            Self::Ipv4HeaderLength,
            Self::Ipv4TotalLength,
            Self::Ipv4Checksum,
            Self::Ipv4Local,
            Self::Ipv4L2Group,
            Self::Ipv4MartianSource,
            Self::Ipv4MartianDestination,
            Self::Ipv4Ttl,
            Self::Ipv4Options,
            Self::Ipv4NoRoute,
            Self::Ipv4NoNeighbour,
            Self::Ipv4Mtu,
            Self::Ipv6PayloadLength,
            Self::Ipv6Local,
            Self::Ipv6L2Group,
            Self::Ipv6MartianSource,
            Self::Ipv6MartianDestination,
            Self::Ipv6HopLimit,
            Self::Ipv6Scope,
            Self::Ipv6Options,
            Self::Ipv6NoRoute,
            Self::Ipv6NoNeighbour,
            Self::Ipv6Mtu,
            Self::Ipv4Forward,
            Self::Ipv6Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 31] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "ipv4_arp",
                verdict: Verdict::Punt,
                class: Some(Class::GuardArp),
                family: Some("ipv4"),
                stage: "ethernet",
                doc: "ARP, which the network's control plane handles. It counts as IPv4.",
                when: "be16(12) = 0x0806",
                source: "RFC 826",
            },
            OutcomeRow {
                name: "ethertype",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "Neither IPv4, IPv6 nor ARP. A frame with a VLAN tag or an 802.3 length is none of them.",
                when: "be16(12) != 0x0800 and be16(12) != 0x86dd",
                source: "RFC 894, RFC 2464 §3",
            },
            OutcomeRow {
                name: "truncated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends within the fixed part of the IPv4 header, or within the IPv6 header.",
                when: "present < 20, or be16(12) = 0x86dd and present < 40",
                source: "RFC 791 §3.1, RFC 8200 §3",
            },
            OutcomeRow {
                name: "version",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The version field is not that of the EtherType.",
                when: "version != 4 if be16(12) = 0x0800, else version != 6",
                source: "RFC 1812 §5.2.2, RFC 8200 §3",
            },
            OutcomeRow {
                name: "ipv4_header_length",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "header",
                doc: "IPv4: The header length is below 20 bytes or extends beyond the frame.",
                when: "be16(12) = 0x0800 and (ihl < 20 or ihl > present)",
                source: "RFC 1812 §5.2.2 (4)",
            },
            OutcomeRow {
                name: "ipv4_total_length",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "header",
                doc: "IPv4: The total length is below the header length or extends beyond the frame.",
                when: "be16(12) = 0x0800 and (total < ihl or total > present)",
                source: "RFC 1812 §5.2.2 (5)",
            },
            OutcomeRow {
                name: "ipv4_checksum",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "header",
                doc: "IPv4: The header checksum is wrong.",
                when: "be16(12) = 0x0800 and (the ones' complement sum of be16(14), be16(16), ... be16(14 + ihl - 2) is not 0xffff)",
                source: "RFC 1812 §5.2.2 (2), RFC 1071",
            },
            OutcomeRow {
                name: "ipv4_local",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: Some("ipv4"),
                stage: "lookup",
                doc: "IPv4: For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.",
                when: "be16(12) = 0x0800 and (dst = 255.255.255.255, or dst is in 224.0.0.0/4, or hop exists and is of kind local)",
                source: "RFC 1812 §5.2.3",
            },
            OutcomeRow {
                name: "ipv4_l2_group",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: A packet to a unicast address in a broadcast or multicast frame.",
                when: "be16(12) = 0x0800 and (f[0] is odd)",
                source: "RFC 1812 §5.3.4, §4.2.3.1",
            },
            OutcomeRow {
                name: "ipv4_martian_source",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.",
                when: "be16(12) = 0x0800 and (src is in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3, and the network drops martians)",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "ipv4_martian_destination",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The destination cannot be the address of a host: this network, loopback or reserved.",
                when: "be16(12) = 0x0800 and (dst is in 0.0.0.0/8, 127.0.0.0/8 or 240.0.0.0/4, and the network drops martians)",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "ipv4_ttl",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The TTL has expired; the control plane answers time exceeded.",
                when: "be16(12) = 0x0800 and (ttl < 2)",
                source: "RFC 1812 §5.3.1",
            },
            OutcomeRow {
                name: "ipv4_options",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The packet has IPv4 options, which the control plane handles.",
                when: "be16(12) = 0x0800 and (ihl > 20)",
                source: "RFC 1812 §5.2.4, §4.2.2.1",
            },
            OutcomeRow {
                name: "ipv4_no_route",
                verdict: Verdict::Punt,
                class: Some(Class::Unreachable),
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.",
                when: "be16(12) = 0x0800 and (no prefix of the network's table matches dst)",
                source: "RFC 1812 §5.2.7.1",
            },
            OutcomeRow {
                name: "ipv4_no_neighbour",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The next hop's MAC address is not known yet; the control plane sends an ARP request.",
                when: "be16(12) = 0x0800 and (hop is of kind glean)",
                source: "RFC 1812 §3.3.2, RFC 826",
            },
            OutcomeRow {
                name: "ipv4_mtu",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv4"),
                stage: "next_hop",
                doc: "IPv4: The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.",
                when: "be16(12) = 0x0800 and (total > mtu of hop)",
                source: "RFC 1812 §5.2.6",
            },
            OutcomeRow {
                name: "ipv6_payload_length",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv6"),
                stage: "header",
                doc: "IPv6: The payload extends beyond the frame.",
                when: "be16(12) = 0x86dd and (40 + payload > present)",
                source: "RFC 8200 §3",
            },
            OutcomeRow {
                name: "ipv6_local",
                verdict: Verdict::Punt,
                class: Some(Class::GuardNd),
                family: Some("ipv6"),
                stage: "lookup",
                doc: "IPv6: For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.",
                when: "be16(12) = 0x86dd and (dst is in ff00::/8 or fe80::/10, or hop exists and is of kind local)",
                source: "RFC 4291 §2.5.6, §2.7, §2.8",
            },
            OutcomeRow {
                name: "ipv6_l2_group",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: A packet to a unicast address in a broadcast or multicast frame.",
                when: "be16(12) = 0x86dd and (f[0] is odd)",
                source: "RFC 4443 §2.4 (e)",
            },
            OutcomeRow {
                name: "ipv6_martian_source",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The source cannot be the address of a host on another link: unspecified, loopback or multicast.",
                when: "be16(12) = 0x86dd and (src is :: or ::1, or in ff00::/8)",
                source: "RFC 4291 §2.5.2, §2.5.3, §2.7",
            },
            OutcomeRow {
                name: "ipv6_martian_destination",
                verdict: Verdict::Drop,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The destination cannot be the address of a host on another link: unspecified or loopback.",
                when: "be16(12) = 0x86dd and (dst is :: or ::1)",
                source: "RFC 4291 §2.5.2, §2.5.3",
            },
            OutcomeRow {
                name: "ipv6_hop_limit",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The hop limit has expired; the control plane answers time exceeded.",
                when: "be16(12) = 0x86dd and (hop_limit < 2)",
                source: "RFC 8200 §3, RFC 4443 §3.3",
            },
            OutcomeRow {
                name: "ipv6_scope",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.",
                when: "be16(12) = 0x86dd and (src is in fe80::/10)",
                source: "RFC 4007 §9, RFC 4291 §2.5.6, RFC 4443 §3.1",
            },
            OutcomeRow {
                name: "ipv6_options",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.",
                when: "be16(12) = 0x86dd and (next_header = 0)",
                source: "RFC 8200 §4.3, RFC 9673",
            },
            OutcomeRow {
                name: "ipv6_no_route",
                verdict: Verdict::Punt,
                class: Some(Class::Unreachable),
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.",
                when: "be16(12) = 0x86dd and (no prefix of the network's table matches dst)",
                source: "RFC 4443 §3.1",
            },
            OutcomeRow {
                name: "ipv6_no_neighbour",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.",
                when: "be16(12) = 0x86dd and (hop is of kind glean)",
                source: "RFC 4861 §7.2.2",
            },
            OutcomeRow {
                name: "ipv6_mtu",
                verdict: Verdict::Punt,
                class: None,
                family: Some("ipv6"),
                stage: "next_hop",
                doc: "IPv6: The packet exceeds the egress port's MTU; the control plane answers packet too big.",
                when: "be16(12) = 0x86dd and (40 + payload > mtu of hop)",
                source: "RFC 8200 §5, RFC 4443 §3.2",
            },
            OutcomeRow {
                name: "ipv4_forward",
                verdict: Verdict::Forward,
                class: None,
                family: Some("ipv4"),
                stage: "rewrite",
                doc: "IPv4: Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.",
                when: "be16(12) = 0x0800",
                source: "RFC 1812 §5.2.1, RFC 1141, RFC 1624 §3",
            },
            OutcomeRow {
                name: "ipv6_forward",
                verdict: Verdict::Forward,
                class: None,
                family: Some("ipv6"),
                stage: "rewrite",
                doc: "IPv6: Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.",
                when: "true",
                source: "RFC 8200 §3",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=31 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    /// For each outcome of kind `ipv4`, by its place in the order, which one of this kind it is.
    pub const OF_IPV4: [Outcome; super::ipv4::Outcome::COUNT] = [
        Outcome::Gated,
        Outcome::RateLimited,
        Outcome::Ipv4Arp,
        Outcome::Ethertype,
        Outcome::Truncated,
        Outcome::Version,
        Outcome::Ipv4HeaderLength,
        Outcome::Ipv4TotalLength,
        Outcome::Ipv4Checksum,
        Outcome::Ipv4Local,
        Outcome::Ipv4L2Group,
        Outcome::Ipv4MartianSource,
        Outcome::Ipv4MartianDestination,
        Outcome::Ipv4Ttl,
        Outcome::Ipv4Options,
        Outcome::Ipv4NoRoute,
        Outcome::Ipv4NoNeighbour,
        Outcome::Ipv4Mtu,
        Outcome::Ipv4Forward,
    ];

    /// For each outcome of kind `ipv6`, by its place in the order, which one of this kind it is.
    pub const OF_IPV6: [Outcome; super::ipv6::Outcome::COUNT] = [
        Outcome::Gated,
        Outcome::RateLimited,
        Outcome::Ethertype,
        Outcome::Truncated,
        Outcome::Version,
        Outcome::Ipv6PayloadLength,
        Outcome::Ipv6Local,
        Outcome::Ipv6L2Group,
        Outcome::Ipv6MartianSource,
        Outcome::Ipv6MartianDestination,
        Outcome::Ipv6HopLimit,
        Outcome::Ipv6Scope,
        Outcome::Ipv6Options,
        Outcome::Ipv6NoRoute,
        Outcome::Ipv6NoNeighbour,
        Outcome::Ipv6Mtu,
        Outcome::Ipv6Forward,
    ];

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Dual, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Dual, outcome.code())
        }
    }
}

/// Outcomes and limits of the `extract` kind.
pub mod extract {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::Other;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Bits;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 16384;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 1] = [SettingRow { name: "key", values: Other }];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// The frame ends before the last byte of the key.
        Short = 3,
        /// No entry matches.
        NoEntry = 4,
        /// The entry says: drop.
        DropEntry = 5,
        /// The entry says: to the network's control plane.
        PuntEntry = 6,
        /// The frame exceeds the MTU of the port.
        Mtu = 7,
        /// Sent to the port of the entry, with the entry's MAC addresses if it has some; all other bytes stay.
        Forward = 8,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 8;

        /// All variants, in order.
        pub const ALL: [Self; 8] = [
            Self::Gated,
            Self::RateLimited,
            Self::Short,
            Self::NoEntry,
            Self::DropEntry,
            Self::PuntEntry,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 8] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "short",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "key",
                doc: "The frame ends before the last byte of the key.",
                when: "n < reach",
                source: "hueplane",
            },
            OutcomeRow {
                name: "no_entry",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "No entry matches.",
                when: "key differs from each entry in a bit of the entry's mask",
                source: "hueplane",
            },
            OutcomeRow {
                name: "drop_entry",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The entry says: drop.",
                when: "hop is of kind drop",
                source: "hueplane",
            },
            OutcomeRow {
                name: "punt_entry",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "The entry says: to the network's control plane.",
                when: "hop is of kind local",
                source: "hueplane",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The frame exceeds the MTU of the port.",
                when: "payload > mtu of hop",
                source: "IEEE 802.1Q §6.5.8",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "egress",
                doc: "Sent to the port of the entry, with the entry's MAC addresses if it has some; all other bytes stay.",
                when: "true",
                source: "Anwer et al. (SIGCOMM 2010) §6",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=8 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Extract, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Extract, outcome.code())
        }
    }
}

/// Outcomes and limits of the `kernel` kind.
pub mod kernel {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::None;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: true, v6: true };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 256;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 1280;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 0] = [];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// Handed to the kernel of the network's namespace, which decides what happens to the packet.
        Delegated = 3,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 3;

        /// All variants, in order.
        pub const ALL: [Self; 3] = [Self::Gated, Self::RateLimited, Self::Delegated];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 3] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "delegated",
                verdict: Verdict::Punt,
                class: Some(Class::Delegated),
                family: None,
                stage: "ethernet",
                doc: "Handed to the kernel of the network's namespace, which decides what happens to the packet.",
                when: "true",
                source: "hueplane",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=3 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Kernel, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Kernel, outcome.code())
        }
    }
}

/// Outcomes and limits of the `process` kind.
pub mod process {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::{Flag, List, Other};

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::None;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 256;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 3] = [
        SettingRow { name: "command", values: Other },
        SettingRow {
            name: "capabilities",
            values: List { words: &["net_raw", "net_admin"], default: &["net_raw"] },
        },
        SettingRow { name: "xdp", values: Flag { default: false } },
    ];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// Handed to the network's program, which decides what happens to the frame.
        Delegated = 3,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 3;

        /// All variants, in order.
        pub const ALL: [Self; 3] = [Self::Gated, Self::RateLimited, Self::Delegated];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 3] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "delegated",
                verdict: Verdict::Punt,
                class: Some(Class::Delegated),
                family: None,
                stage: "ethernet",
                doc: "Handed to the network's program, which decides what happens to the frame.",
                when: "true",
                source: "hueplane",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=3 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Process, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Process, outcome.code())
        }
    }
}

/// Outcomes and limits of the `rofl` kind.
pub mod rofl {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingRange;
    use crate::spec::SettingValues::Range;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Label;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 16384;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 256;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// Values of setting `label_bits`.
    pub const LABEL_BITS: SettingRange<u8> = SettingRange { min: 32, max: 128, multiple_of: 8, default: 128 };
    /// Values of setting `pointers_max`.
    pub const POINTERS_MAX: SettingRange<u16> =
        SettingRange { min: 0, max: 1_024, multiple_of: 1, default: 256 };
    /// Values of setting `pointer_seconds`.
    pub const POINTER_SECONDS: SettingRange<u32> =
        SettingRange { min: 1, max: 86_400, multiple_of: 1, default: 60 };
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 3] = [
        SettingRow {
            name: "label_bits",
            values: Range(SettingRange { min: 32, max: 128, multiple_of: 8, default: 128 }),
        },
        SettingRow {
            name: "pointers_max",
            values: Range(SettingRange { min: 0, max: 1_024, multiple_of: 1, default: 256 }),
        },
        SettingRow {
            name: "pointer_seconds",
            values: Range(SettingRange { min: 1, max: 86_400, multiple_of: 1, default: 60 }),
        },
    ];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// No packet with flat labels.
        NotRofl = 3,
        /// The frame ends before the first label.
        Short = 4,
        /// The version is not 1.
        BadVersion = 5,
        /// The labels are not as long as those of the network.
        LabelLength = 6,
        /// The source route has more than 4 labels.
        BadRoute = 7,
        /// The frame ends before the last label, or before the end of the payload.
        BadLength = 8,
        /// Between neighbours: for the network's control plane, whatever its labels.
        Link = 9,
        /// The frame is for another MAC address, or for a group.
        OtherMac = 10,
        /// The network has neither entries nor cached pointers.
        NoEntry = 11,
        /// For a label of the router itself.
        ForUs = 12,
        /// For the router that has the closest label, which is this one: how a label that joins finds its place in the ring.
        ForClosest = 13,
        /// The closest label is resident here and not the destination, so nobody has the destination.
        UnknownLabel = 14,
        /// The hop budget is used up; packets on a circular way end here.
        HopBudget = 15,
        /// The packet would return to the neighbour that sent it.
        Loop = 16,
        /// The packet exceeds the MTU of the port.
        Mtu = 17,
        /// Sent to the neighbour of the closest label, with one hop less in its budget; all other bytes stay.
        Forward = 18,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 18;

        /// All variants, in order.
        pub const ALL: [Self; 18] = [
            Self::Gated,
            Self::RateLimited,
            Self::NotRofl,
            Self::Short,
            Self::BadVersion,
            Self::LabelLength,
            Self::BadRoute,
            Self::BadLength,
            Self::Link,
            Self::OtherMac,
            Self::NoEntry,
            Self::ForUs,
            Self::ForClosest,
            Self::UnknownLabel,
            Self::HopBudget,
            Self::Loop,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 18] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "not_rofl",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "No packet with flat labels.",
                when: "n < 14, or be16(12) is not 0x88b5",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "short",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends before the first label.",
                when: "n < 22",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "bad_version",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The version is not 1.",
                when: "f[14] / 16 is not 1",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "label_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The labels are not as long as those of the network.",
                when: "8 * len is not label_bits",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "bad_route",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The source route has more than 4 labels.",
                when: "route > 4",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "bad_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends before the last label, or before the end of the payload.",
                when: "n < 14 + header + payload",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "link",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "header",
                doc: "Between neighbours: for the network's control plane, whatever its labels.",
                when: "f[14] has bit 0x01",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "other_mac",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The frame is for another MAC address, or for a group.",
                when: "f[0..6] is not the MAC address of arrival",
                source: "IEEE 802.3 §3.2.3",
            },
            OutcomeRow {
                name: "no_entry",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The network has neither entries nor cached pointers.",
                when: "there is no closest",
                source: "ADR 0070",
            },
            OutcomeRow {
                name: "for_us",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "For a label of the router itself.",
                when: "closest is dst, and hop is of kind local",
                source: "Caesar et al. (SIGCOMM 2006) §3",
            },
            OutcomeRow {
                name: "for_closest",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "For the router that has the closest label, which is this one: how a label that joins finds its place in the ring.",
                when: "f[14] has bit 0x02, closest is not dst, and hop is of kind local or port",
                source: "Caesar et al. (SIGCOMM 2006) §3.1",
            },
            OutcomeRow {
                name: "unknown_label",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The closest label is resident here and not the destination, so nobody has the destination.",
                when: "closest is not dst, and hop is of kind local or port",
                source: "Caesar et al. (SIGCOMM 2006) §3",
            },
            OutcomeRow {
                name: "hop_budget",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The hop budget is used up; packets on a circular way end here.",
                when: "budget < 2",
                source: "RFC 1812 §5.3.1, for the TTL",
            },
            OutcomeRow {
                name: "loop",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The packet would return to the neighbour that sent it.",
                when: "hop is of kind forward, on the port of arrival, and its MAC address is f[6..12]",
                source: "hueplane",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The packet exceeds the MTU of the port.",
                when: "header + payload > mtu of hop",
                source: "RFC 1812 §4.2.2.7, without fragments",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "egress",
                doc: "Sent to the neighbour of the closest label, with one hop less in its budget; all other bytes stay.",
                when: "true",
                source: "Unnikrishnan (FPGA 2010) §3.2.2; Caesar et al. (SIGCOMM 2006) §2",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=18 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Rofl, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Rofl, outcome.code())
        }
    }
}

/// Outcomes and limits of the `splice` kind.
pub mod splice {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingRange;
    use crate::spec::SettingValues::{Choice, Range};

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Slices;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: true, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 65535;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// Values of setting `slices`.
    pub const SLICES: SettingRange<u8> = SettingRange { min: 1, max: 16, multiple_of: 1, default: 4 };
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 3] = [
        SettingRow { name: "martians", values: Choice(&["drop", "forward"]) },
        SettingRow {
            name: "slices",
            values: Range(SettingRange { min: 1, max: 16, multiple_of: 1, default: 4 }),
        },
        SettingRow { name: "bits", values: Choice(&["ip_id", "shim"]) },
    ];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// ARP, which the network's control plane handles.
        Arp = 3,
        /// Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.
        Ethertype = 4,
        /// The frame ends within the fixed part of the IPv4 header.
        Truncated = 5,
        /// The version field is not 4.
        Version = 6,
        /// The header length is below 20 bytes or extends beyond the frame.
        HeaderLength = 7,
        /// The total length is below the header length or extends beyond the frame.
        TotalLength = 8,
        /// The header checksum is wrong.
        Checksum = 9,
        /// The header with the splicing bits is cut off, or its version is not 1.
        Shim = 10,
        /// The splicing bits name a slice that the network does not have.
        NoSlice = 11,
        /// For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
        Local = 12,
        /// A packet to a unicast address in a broadcast or multicast frame.
        L2Group = 13,
        /// The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
        MartianSource = 14,
        /// The destination cannot be the address of a host: this network, loopback or reserved.
        MartianDestination = 15,
        /// The TTL has expired; the control plane answers time exceeded.
        Ttl = 16,
        /// The packet has IPv4 options, which the control plane handles.
        Options = 17,
        /// No route of the slice matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
        NoRoute = 18,
        /// The next hop's MAC address is not known yet; the control plane sends an ARP request.
        NoNeighbour = 19,
        /// The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
        Mtu = 20,
        /// Sent with the next hop's MAC addresses, the TTL lower by one, the splicing bits of this hop consumed and an updated checksum; all other bytes stay.
        Forward = 21,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 21;

        /// All variants, in order.
        pub const ALL: [Self; 21] = [
            Self::Gated,
            Self::RateLimited,
            Self::Arp,
            Self::Ethertype,
            Self::Truncated,
            Self::Version,
            Self::HeaderLength,
            Self::TotalLength,
            Self::Checksum,
            Self::Shim,
            Self::NoSlice,
            Self::Local,
            Self::L2Group,
            Self::MartianSource,
            Self::MartianDestination,
            Self::Ttl,
            Self::Options,
            Self::NoRoute,
            Self::NoNeighbour,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 21] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "arp",
                verdict: Verdict::Punt,
                class: Some(Class::GuardArp),
                family: None,
                stage: "ethernet",
                doc: "ARP, which the network's control plane handles.",
                when: "be16(12) = 0x0806",
                source: "RFC 826",
            },
            OutcomeRow {
                name: "ethertype",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.",
                when: "be16(12) != 0x0800",
                source: "RFC 894",
            },
            OutcomeRow {
                name: "truncated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The frame ends within the fixed part of the IPv4 header.",
                when: "present < 20",
                source: "RFC 1812 §5.2.2 (1)",
            },
            OutcomeRow {
                name: "version",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The version field is not 4.",
                when: "version != 4",
                source: "RFC 1812 §5.2.2 (3)",
            },
            OutcomeRow {
                name: "header_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The header length is below 20 bytes or extends beyond the frame.",
                when: "ihl < 20 or ihl > present",
                source: "RFC 1812 §5.2.2 (4)",
            },
            OutcomeRow {
                name: "total_length",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The total length is below the header length or extends beyond the frame.",
                when: "total < ihl or total > present",
                source: "RFC 1812 §5.2.2 (5)",
            },
            OutcomeRow {
                name: "checksum",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "header",
                doc: "The header checksum is wrong.",
                when: "the ones' complement sum of be16(14), be16(16), ... be16(14 + ihl - 2) is not 0xffff",
                source: "RFC 1812 §5.2.2 (2), RFC 1071",
            },
            OutcomeRow {
                name: "shim",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "slice",
                doc: "The header with the splicing bits is cut off, or its version is not 1.",
                when: "bits: shim, the packet is spliced, and total < 28 or f[35] >> 4 != 1",
                source: "ADR 0072",
            },
            OutcomeRow {
                name: "no_slice",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "slice",
                doc: "The splicing bits name a slice that the network does not have.",
                when: "slice >= slices",
                source: "ADR 0072",
            },
            OutcomeRow {
                name: "local",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.",
                when: "dst = 255.255.255.255, or dst is in 224.0.0.0/4, or hop exists and is of kind local",
                source: "RFC 1812 §5.2.3",
            },
            OutcomeRow {
                name: "l2_group",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "A packet to a unicast address in a broadcast or multicast frame.",
                when: "f[0] is odd",
                source: "RFC 1812 §5.3.4, §4.2.3.1",
            },
            OutcomeRow {
                name: "martian_source",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.",
                when: "src is in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3, and the network drops martians",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "martian_destination",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The destination cannot be the address of a host: this network, loopback or reserved.",
                when: "dst is in 0.0.0.0/8, 127.0.0.0/8 or 240.0.0.0/4, and the network drops martians",
                source: "RFC 1812 §5.3.7, §4.2.2.11",
            },
            OutcomeRow {
                name: "ttl",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The TTL has expired; the control plane answers time exceeded.",
                when: "ttl < 2",
                source: "RFC 1812 §5.3.1",
            },
            OutcomeRow {
                name: "options",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet has IPv4 options, which the control plane handles.",
                when: "ihl > 20",
                source: "RFC 1812 §5.2.4, §4.2.2.1",
            },
            OutcomeRow {
                name: "no_route",
                verdict: Verdict::Punt,
                class: Some(Class::Unreachable),
                family: None,
                stage: "next_hop",
                doc: "No route of the slice matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.",
                when: "no prefix of the slice's table matches dst",
                source: "RFC 1812 §5.2.7.1",
            },
            OutcomeRow {
                name: "no_neighbour",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The next hop's MAC address is not known yet; the control plane sends an ARP request.",
                when: "hop is of kind glean",
                source: "RFC 1812 §3.3.2, RFC 826",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "next_hop",
                doc: "The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.",
                when: "total > mtu of hop",
                source: "RFC 1812 §5.2.6",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "rewrite",
                doc: "Sent with the next hop's MAC addresses, the TTL lower by one, the splicing bits of this hop consumed and an updated checksum; all other bytes stay.",
                when: "true",
                source: "RFC 1812 §5.2.1, RFC 1624 §3, Motiwala et al. (SIGCOMM 2008) §3",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=21 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Splice, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Splice, outcome.code())
        }
    }
}

/// Outcomes and limits of the `mpls` kind.
pub mod mpls {
    use super::{Class, Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;
    use crate::spec::SettingValues::Choice;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Bits;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 32768;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 1] = [SettingRow { name: "ttl", values: Choice(&["uniform", "pipe"]) }];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// Not a unicast packet of MPLS. A frame with a VLAN tag is none.
        NotMpls = 3,
        /// The frame ends before the bottom of the stack.
        Short = 4,
        /// The stack has more than 16 entries, or there is no room before the frame for the labels to be pushed.
        TooDeep = 5,
        /// The label says that the packet is for the router itself.
        RouterAlert = 6,
        /// The label says that this router forwards the IP packet below it; the network's control plane does.
        ExplicitNull = 7,
        /// A label with a special purpose that no entry can have.
        Reserved = 8,
        /// The TTL is used up; the control plane may answer.
        Ttl = 9,
        /// No entry has this label.
        NoEntry = 10,
        /// The entry says: drop.
        DropEntry = 11,
        /// The entry says: to the network's control plane.
        PuntEntry = 12,
        /// The entry pops the last label, and what is below it is no IPv4 or IPv6 packet with a whole header.
        NotIp = 13,
        /// The frame with its new labels exceeds the MTU of the port.
        Mtu = 14,
        /// Sent to the neighbour of the entry, with the entry's labels in place of the top one.
        Forward = 15,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 15;

        /// All variants, in order.
        pub const ALL: [Self; 15] = [
            Self::Gated,
            Self::RateLimited,
            Self::NotMpls,
            Self::Short,
            Self::TooDeep,
            Self::RouterAlert,
            Self::ExplicitNull,
            Self::Reserved,
            Self::Ttl,
            Self::NoEntry,
            Self::DropEntry,
            Self::PuntEntry,
            Self::NotIp,
            Self::Mtu,
            Self::Forward,
        ];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 15] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "not_mpls",
                verdict: Verdict::Drop,
                class: Some(Class::Foreign),
                family: None,
                stage: "ethernet",
                doc: "Not a unicast packet of MPLS. A frame with a VLAN tag is none.",
                when: "be16(12) != 0x8847, or f[0] is odd",
                source: "RFC 5332 §3",
            },
            OutcomeRow {
                name: "short",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "stack",
                doc: "The frame ends before the bottom of the stack.",
                when: "the frame ends within the first 16 entries, and none that is whole is the bottom",
                source: "RFC 3032 §2.1",
            },
            OutcomeRow {
                name: "too_deep",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "stack",
                doc: "The stack has more than 16 entries, or there is no room before the frame for the labels to be pushed.",
                when: "none of the first 16 entries is the bottom",
                source: "hueplane",
            },
            OutcomeRow {
                name: "router_alert",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "label",
                doc: "The label says that the packet is for the router itself.",
                when: "label = 1",
                source: "RFC 3032 §2.1",
            },
            OutcomeRow {
                name: "explicit_null",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "label",
                doc: "The label says that this router forwards the IP packet below it; the network's control plane does.",
                when: "label = 0, or label = 2",
                source: "RFC 3032 §2.1, RFC 4182",
            },
            OutcomeRow {
                name: "reserved",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "label",
                doc: "A label with a special purpose that no entry can have.",
                when: "label < 16",
                source: "RFC 7274 §5",
            },
            OutcomeRow {
                name: "ttl",
                verdict: Verdict::Punt,
                class: None,
                family: None,
                stage: "ttl",
                doc: "The TTL is used up; the control plane may answer.",
                when: "ttl < 2",
                source: "RFC 3032 §2.3, §2.4.1",
            },
            OutcomeRow {
                name: "no_entry",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "No entry has this label.",
                when: "label has no entry",
                source: "RFC 3031 §3.18",
            },
            OutcomeRow {
                name: "drop_entry",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "lookup",
                doc: "The entry says: drop.",
                when: "hop is of kind drop",
                source: "hueplane",
            },
            OutcomeRow {
                name: "punt_entry",
                verdict: Verdict::Punt,
                class: Some(Class::Own),
                family: None,
                stage: "lookup",
                doc: "The entry says: to the network's control plane.",
                when: "hop is of kind local",
                source: "hueplane",
            },
            OutcomeRow {
                name: "not_ip",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "pop",
                doc: "The entry pops the last label, and what is below it is no IPv4 or IPv6 packet with a whole header.",
                when: "labels are 0, the top is the bottom, and neither (f[18] / 16 = 4, f[18] % 16 >= 5 and n >= 38) nor (f[18] / 16 = 6 and n >= 58)",
                source: "RFC 3032 §2.2",
            },
            OutcomeRow {
                name: "mtu",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "egress",
                doc: "The frame with its new labels exceeds the MTU of the port.",
                when: "present + 4 * (labels - 1) > mtu of hop",
                source: "RFC 3032 §3.2",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "egress",
                doc: "Sent to the neighbour of the entry, with the entry's labels in place of the top one.",
                when: "true",
                source: "RFC 3031 §3.10, RFC 3443",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=15 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Mpls, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Mpls, outcome.code())
        }
    }
}

/// Outcomes and limits of the `echo` kind.
#[cfg(feature = "test-kinds")]
pub mod echo {
    use super::{Kind, OutcomeRow, SettingRow, Verdict};
    use crate::plane::{Families, Keys};
    use crate::reason::Reason;

    /// What its tables are keyed by.
    pub const KEYS: Keys = Keys::Mac;
    /// The address families of the kernel in a network's namespace.
    pub const FAMILIES: Families = Families { v4: false, v6: false };
    /// Most rows of a network's next-hop table.
    pub const NEXT_HOPS_MAX: usize = 256;
    /// Least MTU of a port, bytes of IP.
    pub const MTU_BYTES_MIN: u16 = 68;
    /// Largest MTU of a port, bytes of IP.
    pub const MTU_BYTES_MAX: u16 = 9202;
    /// What a network may say about its plane.
    pub const SETTINGS: [SettingRow; 0] = [];

    /// Outcomes of a packet, in the order in which they are tried: the first whose condition holds.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Outcome {
        /// The network's plane is stopped by its clock gate, and processes no packets.
        Gated = 1,
        /// The packet exceeds the network's rate limit.
        RateLimited = 2,
        /// The source MAC address is a group address or zero, so the frame cannot be sent back.
        NoSender = 3,
        /// Sent to the port of the static entry of src, without one to arrival, with the two MAC addresses exchanged.
        Forward = 4,
    }

    impl Outcome {
        /// Number of variants.
        pub const COUNT: usize = 4;

        /// All variants, in order.
        pub const ALL: [Self; 4] = [Self::Gated, Self::RateLimited, Self::NoSender, Self::Forward];

        /// Their rows of the specification, in order.
        pub const ROWS: [OutcomeRow; 4] = [
            OutcomeRow {
                name: "gated",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "gate",
                doc: "The network's plane is stopped by its clock gate, and processes no packets.",
                when: "the network is gated",
                source: "Unnikrishnan (FPGA 2010) §3.6",
            },
            OutcomeRow {
                name: "rate_limited",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "meter",
                doc: "The packet exceeds the network's rate limit.",
                when: "the network has a rate limit, and one of its buckets holds less than the packet costs: 1 packet, 8 * n bits",
                source: "RFC 2697 §3 (one rate, colour-blind)",
            },
            OutcomeRow {
                name: "no_sender",
                verdict: Verdict::Drop,
                class: None,
                family: None,
                stage: "ethernet",
                doc: "The source MAC address is a group address or zero, so the frame cannot be sent back.",
                when: "f[6] is odd, or src is 0",
                source: "IEEE 802.3 §3.2.3",
            },
            OutcomeRow {
                name: "forward",
                verdict: Verdict::Forward,
                class: None,
                family: None,
                stage: "egress",
                doc: "Sent to the port of the static entry of src, without one to arrival, with the two MAC addresses exchanged.",
                when: "true",
                source: "hueplane",
            },
        ];

        /// Number in counters and in hardware: its place in the order, from 1.
        #[inline]
        #[must_use]
        pub const fn code(self) -> u8 {
            self as u8
        }

        /// The outcome of a code.
        #[must_use]
        pub const fn from_code(code: u8) -> Option<Self> {
            match code {
                1..=4 => Some(Self::ALL[code as usize - 1]),
                _ => None,
            }
        }

        /// Its row of the specification.
        #[must_use]
        pub const fn row(self) -> &'static OutcomeRow {
            &Self::ROWS[self as usize - 1]
        }

        /// Name in output, metrics and documentation.
        #[must_use]
        pub const fn name(self) -> &'static str {
            self.row().name
        }

        /// What is done with the packet.
        #[inline]
        #[must_use]
        pub const fn verdict(self) -> Verdict {
            self.row().verdict
        }
    }

    impl From<Outcome> for Reason {
        #[inline(always)]
        fn from(outcome: Outcome) -> Self {
            Self::of(Kind::Echo, outcome.code())
        }
    }

    impl PartialEq<Outcome> for Reason {
        #[inline(always)]
        fn eq(&self, outcome: &Outcome) -> bool {
            *self == Self::of(Kind::Echo, outcome.code())
        }
    }
}
