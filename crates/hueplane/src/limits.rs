//! All limits on inputs, in words: `hueplane reference` prints them, and a test compares the other documents with them.
//! The values are those that the readers enforce.

use std::borrow::Cow;

use hue_intent::limits as documents;
use hue_planes::{Kind, SettingValues};
use hue_routing::{DECOMPRESSED_BYTES_MAX, HOPS_MAX, LINE_BYTES_MAX, ROUTES_MAX, XZ_MEMORY_KIB_MAX};
use hueplaned::http::{DOCUMENTS_BYTES_MAX, TENANT_DOCUMENTS_BYTES_MAX};

use crate::print::grouped;

/// Limits of one sort.
pub struct Limits {
    /// Heading.
    pub title: &'static str,
    /// What is limited, and how.
    pub rows: Vec<(Cow<'static, str>, String)>,
}

/// All of them.
pub fn all() -> [Limits; 3] {
    let borrowed = |rows: Vec<(&'static str, String)>| {
        rows.into_iter().map(|(what, limit)| (Cow::from(what), limit)).collect::<Vec<_>>()
    };
    [
        Limits { title: "Files and frames", rows: borrowed(files()) },
        Limits {
            title: "Fields of documents",
            rows: borrowed(fields()).into_iter().chain(settings()).collect(),
        },
        Limits { title: "The API", rows: borrowed(hueplaned::limits::rows()) },
    ]
}

/// The settings of planes that are numbers.
fn settings() -> Vec<(Cow<'static, str>, String)> {
    let mut rows = Vec::new();
    for setting in Kind::OFFERED.into_iter().flat_map(Kind::settings) {
        let SettingValues::Range(of) = setting.values else { continue };
        let row = (Cow::from(format!("`plane.{}`", setting.name)), range(of.min, of.max));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn mib(bytes: usize) -> usize {
    bytes >> 20
}

fn number(value: impl TryInto<u64>) -> String {
    grouped(value.try_into().unwrap_or(u64::MAX))
}

fn range(least: impl TryInto<u64>, most: impl TryInto<u64>) -> String {
    format!("{} to {}", number(least), number(most))
}

fn at_most(most: impl TryInto<u64>) -> String {
    format!("at most {}", number(most))
}

fn files() -> Vec<(&'static str, String)> {
    let frame = format!("{} bytes", range(hue_planes::FRAME_BYTES_MIN, hue_planes::FRAME_BYTES_MAX));
    vec![
        ("frame", frame),
        (
            "capture",
            format!(
                "records of {} MiB; {} interfaces per section of a pcapng file",
                mib(hue_ports::MAX_RECORD_BYTES),
                number(hue_ports::INTERFACES_MAX)
            ),
        ),
        (
            "document file",
            format!(
                "{} MiB (over the API {} MiB in a request, {} MiB for a tenant), nesting of {}, {} fields per mapping, \
                 {} values (aliases included)",
                mib(documents::FILE_BYTES_MAX),
                mib(DOCUMENTS_BYTES_MAX),
                mib(TENANT_DOCUMENTS_BYTES_MAX),
                documents::DEPTH_MAX,
                documents::KEYS_MAX,
                number(documents::VALUES_MAX)
            ),
        ),
        (
            "networks, ports, routes",
            format!(
                "{} networks per node, {} ports, {} static routes per network",
                number(documents::NETWORKS_MAX),
                documents::NODE_PORTS_MAX,
                number(documents::ROUTES_MAX)
            ),
        ),
        (
            "route file",
            format!(
                "{} routes, {} next hops, lines of {} bytes, {} GiB decompressed, {} MiB for the xz decoder",
                number(ROUTES_MAX),
                number(HOPS_MAX),
                number(LINE_BYTES_MAX),
                DECOMPRESSED_BYTES_MAX >> 30,
                XZ_MEMORY_KIB_MAX >> 10
            ),
        ),
        (
            "topology",
            format!(
                "{} MiB, {} nodes, {} links, {} networks, {} hosts per network, names of {} characters; a graph to import {} MiB",
                mib(documents::TOPOLOGY_BYTES_MAX),
                number(documents::TOPOLOGY_NODES_MAX as u64),
                number(documents::TOPOLOGY_LINKS_MAX as u64),
                documents::TOPOLOGY_NETWORKS_MAX,
                number(documents::TOPOLOGY_HOSTS_MAX as u64),
                documents::TOPOLOGY_NAME_CHARS_MAX,
                crate::topo::GRAPH_BYTES_MAX >> 20
            ),
        ),
        (
            "table image",
            format!(
                "{} GiB per address family, or `--limit`",
                hue_tables::Limits::default().image_bytes_max >> 30
            ),
        ),
    ]
}

/// The first part, without a parenthesis at its end, is a text of the field's line in `docs/guide/configuration.md`, where
/// the second part stands too.
fn fields() -> Vec<(&'static str, String)> {
    let cores = |thousandths: u32| match thousandths % 1_000 {
        0 => number(thousandths / 1_000),
        _ => format!("{}", f64::from(thousandths) / 1_000.0),
    };
    let size = |kib: u64| match kib {
        0..1024 => format!("{kib}Ki"),
        _ if kib < 1 << 20 => format!("{}Mi", kib >> 10),
        _ => format!("{}Gi", kib >> 20),
    };
    vec![
        ("A name", range(1_u8, documents::NAME_CHARS_MAX)),
        ("`ports[].name`", format!("{} ports", at_most(documents::NODE_PORTS_MAX))),
        ("`ports[].mtu`", range(documents::MTU_MIN, documents::MTU_MAX)),
        ("`ports[].interface`", range(1_u8, documents::INTERFACE_CHARS_MAX)),
        ("ports that belong to the card", at_most(documents::CARD_PORTS_MAX)),
        ("`soft.cores`", range(1_u8, documents::FORWARDING_CORES_MAX)),
        ("`vid`", range(1_u8, documents::NETWORKS_MAX)),
        ("virtual ports", at_most(documents::NETWORK_PORTS_MAX)),
        ("tunnels", at_most(documents::TUNNELS_MAX)),
        ("`vni`", range(0_u8, documents::TOPOLOGY_VNI_MAX)),
        ("`ttl`", range(1_u8, u8::MAX)),
        ("`dscp`", range(0_u8, 63_u8)),
        ("static routes", at_most(documents::ROUTES_MAX)),
        ("routes by source", at_most(hue_tables::POLICIES_MAX)),
        ("static ARP entries", at_most(documents::NEIGHBOURS_MAX)),
        ("which labels are where", at_most(documents::FLAT_LABELS_MAX)),
        ("`plane.command`", format!("{} words", range(1_u8, documents::COMMAND_WORDS_MAX))),
        ("`static_macs`", at_most(documents::STATIC_MACS_MAX)),
        ("`plane.key`", range(1_u8, hue_planes::extract::LANES_MAX)),
        ("`offset`", range(0_u8, hue_planes::extract::OFFSET_MAX)),
        ("`entries`", at_most(documents::ENTRIES_MAX)),
        ("`labels`", at_most(documents::ENTRIES_MAX)),
        ("`label`", range(hue_wire::mpls::LABEL_MIN, hue_wire::mpls::LABEL_MAX)),
        ("`push`", format!("{} labels", range(1_u8, hue_planes::LABELS_MAX - 1))),
        ("different masks", at_most(documents::ENTRY_MASKS_MAX)),
        ("`prefixes`", at_most(documents::SELECT_PREFIXES_MAX)),
        ("`weight`", range(1_u8, documents::WEIGHT_MAX)),
        ("expected number of routes", range(1_u8, documents::ROUTES_MAX)),
        ("`addresses`", at_most(documents::PORT_ADDRESSES_MAX)),
        ("`tunnel`, `over`", at_most(documents::TUNNELS_MAX)),
        ("`vni`", range(0_u8, hue_wire::vxlan::Vni::MAX.get())),
        ("`ttl`", range(1_u8, u8::MAX)),
        ("`dscp`", range(0_u8, documents::DSCP_MAX)),
        (
            "`packets_per_second`, `burst_packets` (`rate_limit`)",
            format!("1 to 10^{}", documents::RATE_MAX.ilog10()),
        ),
        ("`packets_per_second` and `burst_packets` (`punt_limit`)", range(1_u8, documents::PUNT_RATE_MAX)),
        ("`quota`", format!("{} to {}", size(documents::TABLE_KIB_MIN), size(documents::TABLE_KIB_MAX))),
        (
            "`cpu`",
            format!("{} to {}", cores(documents::CPU_THOUSANDTHS_MIN), cores(documents::CPU_THOUSANDTHS_MAX)),
        ),
        (
            "`memory`",
            format!("{} to {}", size(documents::MEMORY_MIB_MIN << 10), size(documents::MEMORY_MIB_MAX << 10)),
        ),
        ("`processes`", range(1_u8, documents::PROCESSES_MAX)),
    ]
}
