//! The published JSON Schema (draft 2020-12), derived from the types.
//!
//! Flow: `types` → **schema** → `docs/reference/schema.json` (a test checks that it is current) and `hueplane
//! schema`. The schema contains every rule that a schema can express; `validate` checks the others.

use hue_planes::{Kind, LABELS_MAX, SettingRange, SettingValues};
use hue_tables::Vid;
use hue_wire::mpls::{LABEL_MAX, LABEL_MIN};
use hue_wire::vxlan::Vni;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use crate::address::InterfaceAddress;
use crate::extract::{self, Entry, KeyPart};
use crate::limits;
use crate::live::InterfaceName;
use crate::mpls::LabelEntry;
use crate::needs::Bandwidth;
use crate::rofl::FlatLabel;
use crate::topology::{Topology, TopologyHost, TopologyLink, TopologyNetwork, TopologyNode, VirtualLink};
use crate::types::{
    Colour, Name, Neighbour, Network, NetworkPort, Node, NodeLink, NodePort, Plane, Route, RouteMember,
    StaticMac,
};

/// Identifier of the schema.
const ID: &str = "https://hueplane.dev/schema/v1.json";
/// An octet, 0 to 255.
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

/// The schema of documents of all kinds.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let node = generator.subschema_for::<Node>();
    let network = generator.subschema_for::<Network>();
    let topology = generator.subschema_for::<Topology>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "hueplane/v1",
        "description": "Desired state of hueplane: a YAML document of kind Node, Network or Topology.",
        "oneOf": [node, network, topology],
        "$defs": generator.take_definitions(true),
    })
}

/// The schema as text, as in the published file.
#[must_use]
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// The characters of an IPv6 address.
const HEX6: &str = "[0-9a-fA-F]*:[0-9a-fA-F:.]*";
/// The length of an IPv4 prefix.
const LEN4: &str = "(3[0-2]|[12]?[0-9])";
/// The length of an IPv6 prefix.
const LEN6: &str = "(12[0-8]|1[01][0-9]|[1-9]?[0-9])";

fn octets() -> String {
    format!("{OCTET}(\\.{OCTET}){{3}}")
}

/// A list with at least one entry.
fn some<T: JsonSchema>(generator: &mut SchemaGenerator, max: usize) -> Schema {
    json_schema!({"type": "array", "items": generator.subschema_for::<T>(), "minItems": 1, "maxItems": max})
}

pub(crate) fn topology_nodes(generator: &mut SchemaGenerator) -> Schema {
    some::<TopologyNode>(generator, limits::TOPOLOGY_NODES_MAX)
}

pub(crate) fn topology_networks(generator: &mut SchemaGenerator) -> Schema {
    some::<TopologyNetwork>(generator, limits::TOPOLOGY_NETWORKS_MAX)
}

pub(crate) fn topology_links(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<TopologyLink>(generator, limits::TOPOLOGY_LINKS_MAX)
}

pub(crate) fn topology_hosts(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<TopologyHost>(generator, limits::TOPOLOGY_HOSTS_MAX)
}

pub(crate) fn virtual_links(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<VirtualLink>(generator, limits::TOPOLOGY_LINKS_MAX)
}

/// A name that names of ports and namespaces can contain.
pub(crate) fn topology_name(_: &mut SchemaGenerator) -> Schema {
    let pattern = "^[0-9A-Za-z][-_.0-9A-Za-z]*$";
    json_schema!({"type": "string", "pattern": pattern, "maxLength": limits::TOPOLOGY_NAME_CHARS_MAX})
}

pub(crate) fn topology_names(generator: &mut SchemaGenerator) -> Schema {
    let name = topology_name(generator);
    json_schema!({"type": "array", "items": name, "minItems": 1, "maxItems": limits::TOPOLOGY_NODES_MAX, "uniqueItems": true})
}

pub(crate) fn topology_ends(generator: &mut SchemaGenerator) -> Schema {
    let name = topology_name(generator);
    json_schema!({"type": "array", "items": name, "minItems": 2, "maxItems": 2, "uniqueItems": true})
}

pub(crate) fn topology_interfaces(generator: &mut SchemaGenerator) -> Schema {
    let name = generator.subschema_for::<InterfaceName>();
    json_schema!({"type": "array", "items": name, "minItems": 2, "maxItems": 2})
}

pub(crate) fn topology_place(_: &mut SchemaGenerator) -> Schema {
    let most = limits::TOPOLOGY_PLACE_MAX;
    let number = json!({"type": "number", "minimum": -most, "maximum": most});
    json_schema!({"type": "array", "items": number, "minItems": 2, "maxItems": 2, "examples": [[8.5, 47.4]]})
}

pub(crate) fn topology_cost(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::TOPOLOGY_COST_MAX.into())
}

pub(crate) fn topology_vni(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::TOPOLOGY_VNI_MAX.into())
}

pub(crate) fn topology_prefixes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": prefix(generator), "minItems": 1, "maxItems": 2})
}

/// A tunnel has a network that carries it; only vxlan has a VNI.
pub(crate) fn tunnel_over(schema: &mut Schema) {
    let needs = json!({"tunnel": ["over"], "over": ["tunnel"], "vni": ["tunnel"]});
    schema.insert("dependentRequired".to_owned(), needs);
    schema.insert("if".to_owned(), json!({"required": ["vni"]}));
    schema.insert("then".to_owned(), json!({"properties": {"tunnel": {"const": "vxlan"}}}));
    schema.insert("else".to_owned(), json!(true));
}

/// The schema of a type, for fields that can be omitted but not null.
pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn range(min: u64, max: u64) -> Schema {
    json_schema!({"type": "integer", "minimum": min, "maximum": max})
}

/// A list that can also be null.
fn list_or_null<T: JsonSchema>(generator: &mut SchemaGenerator, max: usize) -> Schema {
    json_schema!({"type": ["array", "null"], "items": generator.subschema_for::<T>(), "maxItems": max})
}

pub(crate) fn node_ports(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<NodePort>(generator, limits::NODE_PORTS_MAX)
}

pub(crate) fn node_links(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<NodeLink>(generator, limits::NODE_LINKS_MAX)
}

pub(crate) fn ends(generator: &mut SchemaGenerator) -> Schema {
    let name = generator.subschema_for::<Name>();
    json_schema!({"type": "array", "items": name, "minItems": 2, "maxItems": 2, "uniqueItems": true})
}

pub(crate) fn pci_address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\\.[0-7]$"})
}

pub(crate) fn card_ports(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<Name>(generator, limits::CARD_PORTS_MAX)
}

pub(crate) fn network_ports(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<NetworkPort>(generator, limits::NETWORK_PORTS_MAX)
}

pub(crate) fn addresses(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<InterfaceAddress>(generator, limits::PORT_ADDRESSES_MAX)
}

pub(crate) fn routes(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<Route>(generator, limits::ROUTES_MAX)
}

pub(crate) fn neighbours(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<Neighbour>(generator, limits::NEIGHBOURS_MAX)
}

pub(crate) fn static_macs(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<StaticMac>(generator, limits::STATIC_MACS_MAX)
}

pub(crate) fn entries(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<Entry>(generator, limits::ENTRIES_MAX)
}

pub(crate) fn labels(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<LabelEntry>(generator, limits::ENTRIES_MAX)
}

pub(crate) fn label(_: &mut SchemaGenerator) -> Schema {
    range(LABEL_MIN.into(), LABEL_MAX.into())
}

/// Labels that packets can leave with: explicit null ones too.
pub(crate) fn label_out(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"enum": [0, 2]}, label(generator)]})
}

pub(crate) fn labels_pushed(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": label_out(generator), "minItems": 1, "maxItems": LABELS_MAX - 1})
}

/// A label is popped, or swapped, pushed or both, and sent to a neighbour; or it has an `action`.
pub(crate) fn label_action(schema: &mut Schema) {
    let none = json!({"port": false, "neighbour": false, "swap": false, "push": false, "pop": false});
    let with = |field: &str| json!({"required": [field], "properties": {"pop": {"const": false}}});
    let pop =
        json!({"required": ["pop"], "properties": {"pop": {"const": true}, "swap": false, "push": false}});
    let sent = json!({
        "required": ["port", "neighbour"],
        "properties": {"action": false},
        "anyOf": [pop, with("swap"), with("push")],
    });
    schema.insert("oneOf".to_owned(), json!([sent, {"required": ["action"], "properties": none}]));
}

pub(crate) fn key(generator: &mut SchemaGenerator) -> Schema {
    let part = generator.subschema_for::<KeyPart>();
    json_schema!({"type": "array", "items": part, "minItems": 1, "maxItems": hue_planes::extract::LANES_MAX})
}

pub(crate) fn key_offset(_: &mut SchemaGenerator) -> Schema {
    range(0, hue_planes::extract::OFFSET_MAX.into())
}

pub(crate) fn key_bytes(_: &mut SchemaGenerator) -> Schema {
    range(1, hue_planes::extract::LANES_MAX as u64)
}

/// Hexadecimal digits, two for each byte of a key.
const DIGITS: &str = "0x([0-9a-fA-F]{2}){1,16}";

pub(crate) fn digits(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": format!("^{DIGITS}$"), "examples": ["0x0f"]})
}

pub(crate) fn entry_match(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!("^(any|{DIGITS}(/[0-9]{{1,3}})?)$"),
        "examples": ["0x0800", "0x0a000000/8", "any"],
    })
}

pub(crate) fn entry_action(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": [extract::DROP, extract::PUNT]})
}

/// An entry has either `port`, perhaps with MAC addresses, or `action`.
pub(crate) fn port_or_action(schema: &mut Schema) {
    let other = json!({"required": ["action"], "properties": {"destination": false, "source": false}});
    schema.insert("oneOf".to_owned(), json!([{"required": ["port"]}, other]));
}

pub(crate) fn flat_labels(generator: &mut SchemaGenerator) -> Schema {
    list_or_null::<FlatLabel>(generator, limits::FLAT_LABELS_MAX)
}

/// Hexadecimal digits of a label.
pub(crate) fn flat_label(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^0x([0-9a-fA-F]{2}){4,16}$", "examples": ["0x0a000001"]})
}

/// A label is either behind a port or the router's own.
pub(crate) fn at_port_or_own(schema: &mut Schema) {
    let at = json!({"required": ["port", "neighbour"], "properties": {"own": {"const": false}}});
    let own = json!({
        "required": ["own"],
        "properties": {"own": {"const": true}, "port": false, "neighbour": false, "resident": false},
    });
    schema.insert("oneOf".to_owned(), json!([at, own]));
}

pub(crate) fn slice(_: &mut SchemaGenerator) -> Schema {
    range(0, u64::from(hue_planes::splice::SLICES.max) - 1)
}

pub(crate) fn command(_: &mut SchemaGenerator) -> Schema {
    let word = json_schema!({"type": "string", "maxLength": limits::COMMAND_BYTES_MAX});
    json_schema!({"type": "array", "items": word, "minItems": 1, "maxItems": limits::COMMAND_WORDS_MAX})
}

pub(crate) fn mtu(_: &mut SchemaGenerator) -> Schema {
    range(limits::MTU_MIN.into(), limits::MTU_MAX.into())
}

pub(crate) fn vid(_: &mut SchemaGenerator) -> Schema {
    range(1, Vid::MAX.into())
}

pub(crate) fn weight(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::WEIGHT_MAX.into())
}

pub(crate) fn rate(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::RATE_MAX)
}

/// Bits per second, with or without a unit.
pub(crate) fn bit_rate(_: &mut SchemaGenerator) -> Schema {
    bits_with("bit/s", "10Mbit/s")
}

/// A number of bits, with or without a unit.
pub(crate) fn bits(_: &mut SchemaGenerator) -> Schema {
    bits_with("bit", "80kbit")
}

fn bits_with(unit: &str, example: &str) -> Schema {
    let most = "1000G|1000000M|1000000000k|1000000000000";
    json_schema!({
        "type": ["integer", "string"],
        "minimum": 1,
        "maximum": limits::RATE_MAX,
        "pattern": format!("^([1-9][0-9]{{0,11}}|[1-9][0-9]{{0,8}}k|[1-9][0-9]{{0,5}}M|[1-9][0-9]{{0,2}}G|{most}){unit}$"),
        "examples": [example],
    })
}

pub(crate) fn punt_rate(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::PUNT_RATE_MAX)
}

pub(crate) fn processes(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::PROCESSES_MAX.into())
}

pub(crate) fn expected_routes(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::ROUTES_MAX as u64)
}

pub(crate) fn forwarding_cores(_: &mut SchemaGenerator) -> Schema {
    range(1, limits::FORWARDING_CORES_MAX.into())
}

pub(crate) fn cores(_: &mut SchemaGenerator) -> Schema {
    let cores = |thousandths: u32| f64::from(thousandths) / 1000.0;
    json_schema!({
        "type": "number",
        "minimum": cores(limits::CPU_THOUSANDTHS_MIN),
        "maximum": limits::CPU_THOUSANDTHS_MAX / 1000,
        "examples": [0.5],
    })
}

pub(crate) fn memory(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[1-9][0-9]*[MG]i$", "examples": ["256Mi"]})
}

pub(crate) fn table_bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[1-9][0-9]*[KMG]i$", "examples": ["2Mi"]})
}

/// At least one resource is required.
pub(crate) fn some_resource(schema: &mut Schema) {
    let any = json!([{"required": ["cpu"]}, {"required": ["memory"]}, {"required": ["processes"]}]);
    schema.insert("anyOf".to_owned(), any);
}

/// At least one need is required.
pub(crate) fn some_need(schema: &mut Schema) {
    let any = json!([{"required": ["bandwidth"]}, {"required": ["latency"]}, {"required": ["routes"]}]);
    schema.insert("anyOf".to_owned(), any);
}

/// A setting of a plane. [`settings`] adds its values.
pub(crate) fn setting(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// Adds the values of settings, which are in the specification of kinds.
pub(crate) fn settings(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for row in Kind::OFFERED.into_iter().flat_map(Kind::settings) {
        let Some(property) = properties.get_mut(row.name).and_then(Value::as_object_mut) else { continue };
        let values = match row.values {
            SettingValues::Range(of) => {
                json!({"type": "integer", "minimum": of.min, "maximum": of.max, "default": of.default})
            }
            SettingValues::Flag { default } => json!({"type": "boolean", "default": default}),
            SettingValues::Choice(words) => {
                json!({"type": "string", "enum": words, "default": words.first()})
            }
            SettingValues::List { words, default } => json!({
                "type": "array",
                "items": {"type": "string", "enum": words},
                "maxItems": words.len(),
                "default": default,
            }),
            SettingValues::Other => json!({}),
        };
        property.extend(values.as_object().cloned().unwrap_or_default());
        if let SettingValues::Range(SettingRange { multiple_of: many @ 2.., .. }) = row.values {
            property.insert("multipleOf".to_owned(), many.into());
        }
    }
}

/// The settings of a plane without its kind.
pub(crate) fn topology_settings(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Plane::json_schema(generator);
    schema.remove("required");
    if let Some(properties) = schema.get_mut("properties").and_then(|all| all.as_object_mut()) {
        properties.remove("kind");
    }
    schema
}

/// As many hexadecimal digits as a key can have.
pub(crate) fn topology_match(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^0x([0-9a-fA-F]{2}){1,16}$", "examples": ["0x0a000001"]})
}

pub(crate) fn kind(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Kind::OFFERED.map(Kind::name)})
}

pub(crate) fn mac(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$",
        "examples": ["02:00:00:00:01:01"],
    })
}

pub(crate) fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": format!("^({}|{HEX6})$", octets()), "examples": ["10.2.0.2"]})
}

pub(crate) fn prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!("^({}/{LEN4}|{HEX6}/{LEN6})$", octets()),
        "examples": ["10.9.0.0/16"],
    })
}

fn prefix4(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!("^{}/{LEN4}$", octets()),
        "examples": ["10.9.0.0/16"],
    })
}

pub(crate) fn select_prefixes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": prefix4(generator),
        "minItems": 1,
        "maxItems": limits::SELECT_PREFIXES_MAX,
    })
}

/// The gateway of a route, or several.
pub(crate) fn via(generator: &mut SchemaGenerator) -> Schema {
    let (one, member) = (address(generator), generator.subschema_for::<RouteMember>());
    let max = hue_planes::group::MEMBERS_MAX;
    json_schema!({ "oneOf": [one, { "type": "array", "items": member, "minItems": 1, "maxItems": max }] })
}

/// The weight of a member of a route with several gateways.
pub(crate) fn member_weight(_: &mut SchemaGenerator) -> Schema {
    range(1, hue_planes::group::WEIGHT_MAX.into())
}

/// A route has either `via` or `port`.
pub(crate) fn one_target(schema: &mut Schema) {
    schema.insert("oneOf".to_owned(), json!([{"required": ["via"]}, {"required": ["port"]}]));
    schema.insert("anyOf".to_owned(), json!([{"required": ["to"]}, {"required": ["from", "via"]}]));
}

/// A virtual port is on a physical port and has a MAC address, or is the end of a tunnel over a network.
pub(crate) fn port_or_tunnel(schema: &mut Schema) {
    let on_port = json!({"required": ["port", "mac"], "properties": {"tunnel": false, "over": false}});
    let on_tunnel = json!({"required": ["tunnel", "over"], "properties": {"port": false}});
    schema.insert("oneOf".to_owned(), json!([on_port, on_tunnel]));
}

/// `vni` is required with `type: vxlan`; with other types, neither it nor `port` is allowed.
pub(crate) fn vxlan_fields(schema: &mut Schema) {
    schema.insert("if".to_owned(), json!({"properties": {"type": {"const": "vxlan"}}}));
    schema.insert("then".to_owned(), json!({"required": ["vni"]}));
    schema.insert("else".to_owned(), json!({"properties": {"vni": false, "port": false}}));
}

pub(crate) fn vni(_: &mut SchemaGenerator) -> Schema {
    range(0, Vni::MAX.get().into())
}

pub(crate) fn udp_port(_: &mut SchemaGenerator) -> Schema {
    range(1, u16::MAX.into())
}

pub(crate) fn ttl(_: &mut SchemaGenerator) -> Schema {
    range(1, u8::MAX.into())
}

pub(crate) fn dscp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["integer", "string"],
        "minimum": 0,
        "maximum": limits::DSCP_MAX,
        "pattern": "^inherit$",
        "examples": [46],
    })
}

/// A limit is in packets, in bits or both, and each rate has its burst.
pub(crate) fn rate_pairs(schema: &mut Schema) {
    let either = json!([{"required": ["packets_per_second"]}, {"required": ["bits_per_second"]}]);
    schema.insert("anyOf".to_owned(), either);
    let pairs = json!({
        "packets_per_second": ["burst_packets"],
        "burst_packets": ["packets_per_second"],
        "bits_per_second": ["burst_bits"],
        "burst_bits": ["bits_per_second"],
    });
    schema.insert("dependentRequired".to_owned(), pairs);
}

/// `prefixes` is required with `by: inner`, and not allowed otherwise.
pub(crate) fn inner_prefixes(schema: &mut Schema) {
    let inner = json!({"properties": {"by": {"const": "inner"}}});
    schema.insert("if".to_owned(), inner);
    schema.insert("then".to_owned(), json!({"required": ["prefixes"]}));
    schema.insert("else".to_owned(), json!({"properties": {"prefixes": false}}));
}

macro_rules! text_schema {
    ($type:ty, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

text_schema!(
    Name,
    "Name",
    json_schema!({
        "type": "string",
        "pattern": "^[0-9A-Za-z][-_.0-9A-Za-z]*$",
        "maxLength": limits::NAME_CHARS_MAX,
    })
);
text_schema!(
    InterfaceName,
    "InterfaceName",
    json_schema!({
        "type": "string",
        "pattern": "^([!-.0-9;-~]{3,15}|[!-.0-9;-~][!-,\\-0-9;-~]|[!-,\\-0-9;-~][!-.0-9;-~]?)$",
        "examples": ["enp3s0f0"],
    })
);
text_schema!(
    Colour,
    "Colour",
    json_schema!({"type": "string", "pattern": "^#[0-9a-fA-F]{6}$", "examples": ["#d62728"]})
);
text_schema!(
    Bandwidth,
    "Bandwidth",
    json_schema!({
        "type": "string",
        "description": "Bits of frames per second, from 1kbit/s to 1000Gbit/s.",
        "pattern": "^([1-9][0-9]{0,8}k|[1-9][0-9]{0,5}M|[1-9][0-9]{0,2}G|1000G|1000000M|1000000000k)bit/s$",
        "examples": ["200Mbit/s"],
    })
);
text_schema!(
    InterfaceAddress,
    "InterfaceAddress",
    json_schema!({
        "type": "string",
        "description": "The router's own address with the prefix length of its link.",
        "pattern": format!("^({}/(3[0-2]|[12][0-9]|[1-9])|{HEX6}/(12[0-8]|1[01][0-9]|[1-9][0-9]?))$", octets()),
        "examples": ["10.1.0.1/24"],
    })
);
