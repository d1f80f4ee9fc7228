//! `hueplane validate` and `hueplane schema`: check configurations, and describe their format.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use hue_control::topology::Plan;
use hue_intent::topology::{Topology, is_topology};
use hue_intent::{Errors, Finding, Intent, Source};
use hueplaned::api::SourceText;
use serde::Serialize;
use serde_json::Value;

use crate::cli::{Format, Schema, Validate};
use crate::failure::Failure;
use crate::print::{self, Align, GREEN, columns, result, styled};
use crate::topo;

/// Reads and checks the files given with `-f`.
pub fn load(files: &[PathBuf]) -> Result<Intent, Failure> {
    hue_intent::load(files).map_err(|errors| Failure::Input(errors.to_string()))
}

#[derive(Serialize)]
struct Valid<'a> {
    valid: bool,
    node: NodeSummary<'a>,
    networks: Vec<NetworkSummary<'a>>,
}

#[derive(Serialize)]
struct NodeSummary<'a> {
    name: &'a str,
    /// Whether there is a Node document. Otherwise, the node has the ports that networks name.
    given: bool,
    ports: Vec<&'a str>,
}

#[derive(Serialize)]
struct NetworkSummary<'a> {
    name: &'a str,
    kind: &'a str,
    ports: usize,
    routes: usize,
    neighbours: usize,
}

#[derive(Serialize)]
struct Invalid<'a> {
    valid: bool,
    errors: Vec<Fault<'a>>,
    /// Number of errors that are not listed.
    more: usize,
}

#[derive(Serialize)]
struct Fault<'a> {
    #[serde(flatten)]
    finding: Option<&'a Finding>,
    message: String,
}

/// Runs `hueplane validate`.
pub fn validate(args: &Validate) -> Result<(), Failure> {
    let format = args.output.format;
    let bytes = read(&args.files.files);
    let has_topology = bytes.iter().flatten().any(|source| is_topology(&source.bytes));
    let loaded = match bytes {
        Some(bytes) if has_topology => {
            let text = |source: Source| {
                let text = String::from_utf8_lossy(&source.bytes).into_owned();
                SourceText { name: source.name, text }
            };
            let sources: Vec<SourceText> = bytes.into_iter().map(text).collect();
            if let (None, [_]) = (&args.node, sources.as_slice()) {
                let (topology, plan) = topo::checked(sources)?;
                return valid_topology(format, &topology, &plan);
            }
            let node = || {
                args.node.clone().ok_or_else(|| {
                    let what = "validate: a Topology with other files needs --node: whose files are they?";
                    Failure::Usage(what.to_owned())
                })
            };
            let bytes = |source: SourceText| Source { name: source.name, bytes: source.text.into_bytes() };
            hue_intent::parse(topo::own_part(sources, node)?.into_iter().map(bytes).collect())
        }
        Some(bytes) => hue_intent::parse(bytes),
        // It reports which files cannot be read.
        None => hue_intent::load(&args.files.files),
    };
    let intent = match loaded {
        Ok(intent) => intent,
        Err(errors) => {
            if format != Format::Table {
                result(format, &invalid(&errors), String::new)?;
            }
            return Err(Failure::Input(errors.to_string()));
        }
    };
    let valid = Valid {
        valid: true,
        node: NodeSummary {
            name: intent.node.metadata.name.as_str(),
            given: intent.node_given,
            ports: intent.node.spec.ports.iter().map(|port| port.name.as_str()).collect(),
        },
        networks: intent
            .networks
            .iter()
            .map(|network| NetworkSummary {
                name: network.name(),
                kind: network.spec.plane.kind.name(),
                ports: network.spec.ports.len(),
                routes: network.spec.routes.len(),
                neighbours: network.spec.neighbours.len(),
            })
            .collect(),
    };
    result(format, &valid, || table(&valid))
}

/// The contents of files, of which standard input can be read only once; `None` if one cannot be read.
fn read(files: &[PathBuf]) -> Option<Vec<Source>> {
    let one = |path: &PathBuf| {
        let stdin = path.as_os_str() == hue_intent::STDIN;
        let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        // One byte more than allowed, so that the reader detects a file that is too long.
        let most = hue_intent::limits::FILE_BYTES_MAX as u64 + 1;
        let mut bytes = Vec::new();
        let done = if stdin {
            std::io::stdin().lock().take(most).read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
        };
        done.ok().map(|_| Source { name, bytes })
    };
    files.iter().map(one).collect()
}

#[derive(Serialize)]
struct ValidTopology<'a> {
    valid: bool,
    topology: &'a str,
    nodes: usize,
    links: usize,
    networks: Vec<TopologyNetwork<'a>>,
    hosts: usize,
}

#[derive(Serialize)]
struct TopologyNetwork<'a> {
    name: &'a str,
    kind: &'a str,
    nodes: usize,
    links: usize,
    hosts: usize,
    routing: &'a str,
}

fn valid_topology(format: Format, topology: &Topology, plan: &Plan) -> Result<(), Failure> {
    let spec = &topology.spec;
    let networks = spec.networks.iter().enumerate().map(|(at, network)| TopologyNetwork {
        name: network.name.as_str(),
        kind: network.kind.name(),
        nodes: spec.nodes_of(network).len(),
        links: spec.links_of(at).len(),
        hosts: network.hosts.len(),
        routing: network.routing.name(),
    });
    let valid = ValidTopology {
        valid: true,
        topology: topology.name(),
        nodes: plan.nodes.len(),
        links: plan.wires.len(),
        networks: networks.collect(),
        hosts: plan.hosts.len(),
    };
    result(format, &valid, || {
        let head = [
            ("NETWORK", Align::Left),
            ("KIND", Align::Left),
            ("ROUTING", Align::Left),
            ("NODES", Align::Right),
            ("LINKS", Align::Right),
            ("HOSTS", Align::Right),
        ];
        let row = |one: &TopologyNetwork<'_>| {
            let numbers = [one.nodes, one.links, one.hosts].map(|number| number.to_string());
            [one.name, one.kind, one.routing].into_iter().map(str::to_owned).chain(numbers).collect()
        };
        let rows: Vec<Vec<String>> = valid.networks.iter().map(row).collect();
        format!(
            "{}: topology {}, {}, {}\n{}",
            styled(GREEN, "valid"),
            valid.topology,
            print::count(valid.nodes as u64, "node"),
            print::count(valid.links as u64, "link"),
            columns(&head, &rows)
        )
    })
}

fn invalid(errors: &Errors) -> Invalid<'_> {
    let fault = |error: &'_ hue_intent::Error| error.to_string();
    let list = errors.list.iter().map(|error| Fault { finding: error.finding(), message: fault(error) });
    Invalid { valid: false, errors: list.collect(), more: errors.more }
}

fn table(valid: &Valid<'_>) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("KIND", Align::Left),
        ("PORTS", Align::Right),
        ("ROUTES", Align::Right),
        ("NEIGHBOURS", Align::Right),
    ];
    let row = |n: &NetworkSummary<'_>| {
        let numbers = [n.ports, n.routes, n.neighbours].map(|number| number.to_string());
        [n.name.to_owned(), n.kind.to_owned()].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = valid.networks.iter().map(row).collect();
    let origin = if valid.node.given { "" } else { " (implied by the networks)" };
    let networks = if rows.is_empty() { String::new() } else { columns(&head, &rows) };
    format!(
        "{}: node {}{origin}, ports {}\n{networks}",
        styled(GREEN, "valid"),
        valid.node.name,
        valid.node.ports.join(", "),
    )
}

/// Runs `hueplane schema`.
pub fn schema(args: &Schema) -> Result<(), Failure> {
    match args.format {
        Format::Json => print::text(&hue_intent::schema_text()),
        format => {
            let schema = hue_intent::schema();
            result(format, &schema, || fields(&schema))
        }
    }
}

/// A table of every field of every type in the schema.
fn fields(schema: &Value) -> String {
    let mut rows = Vec::new();
    let types = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    for (name, definition) in types {
        let required: Vec<&str> = definition
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (field, value) in definition.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let text = value.get("description").and_then(Value::as_str).unwrap_or_default();
            let need = if required.contains(&field.as_str()) { "required" } else { "" };
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            rows.push(vec![name.clone(), field.clone(), need.to_owned(), text]);
        }
    }
    let head = [("TYPE", Align::Left), ("FIELD", Align::Left), ("", Align::Left), ("MEANING", Align::Left)];
    columns(&head, &rows)
}
