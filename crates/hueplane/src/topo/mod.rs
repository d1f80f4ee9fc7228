//! `hueplane topo`: all nodes of a topology on this machine, and tools for its documents.
//!
//! Flow: a document → `hue_intent::topology` → `hue_control::topology` (documents of each node) → `place` (directory, names) → `build`
//! (namespaces, wires, hosts) → `run` (daemons, routing, `hosts`) → `show`, `ping`. Invariants: everything has the prefix of the topology's place,
//! so `down` finds it, whoever made it; a place is complete when its file `up` exists.

mod build;
mod graphml;
mod hosts;
mod import;
mod place;
mod routing;
mod run;
mod show;

use std::path::Path;

use hue_control::topology::{Plan, documents_of, expand, svg};
use hue_intent::Source;
use hue_intent::topology::{Topology, is_topology, parse_topology};
use hueplaned::api::SourceText;

use crate::cli::{TopoCommand, TopoDown, TopoRender, TopoSvg};
use crate::commands::source;
use crate::failure::Failure;
use crate::print::{self, count};

pub use graphml::FILE_BYTES_MAX as GRAPH_BYTES_MAX;
use place::Place;
pub use show::show;

/// Packet slots of each worker: short rings, so that many nodes fit into one machine.
pub const PACKET_SLOTS: u32 = 8_192;

/// Runs the command.
pub fn topo(command: &TopoCommand) -> Result<(), Failure> {
    match command {
        TopoCommand::Up(args) => run::up(args),
        TopoCommand::Down(args) => down(args),
        TopoCommand::Show(args) => show(args.named.name.as_deref(), args.output.format),
        TopoCommand::Ping(args) => show::ping(args),
        TopoCommand::Render(args) => render(args),
        TopoCommand::Svg(args) => draw(args),
        TopoCommand::Import(args) => import::import(args),
    }
}

/// Reads a topology; `-` is standard input.
fn load(file: &Path) -> Result<(Topology, String), Failure> {
    let SourceText { name, text } = source(file)?;
    let topology = parse(name, &text)?;
    Ok((topology, text))
}

fn parse(name: String, text: &str) -> Result<Topology, Failure> {
    parse_topology(&Source { name, bytes: text.as_bytes().to_vec() })
        .map_err(|errors| Failure::Input(errors.to_string()))
}

/// Replaces a `Topology` document by the documents of one node. `node` gives its name, and is called only if there is such a
/// document.
pub fn own_part(
    sources: Vec<SourceText>,
    node: impl Fn() -> Result<String, Failure>,
) -> Result<Vec<SourceText>, Failure> {
    let own = sources.into_iter().map(|source| {
        if !is_topology(source.text.as_bytes()) {
            return Ok(source);
        }
        let topology = parse(source.name.clone(), &source.text)?;
        let node = node()?;
        let text = documents_of(&topology, &node).ok_or_else(|| no_node(&topology, &node))?;
        Ok(SourceText { name: format!("{}, node {node}", source.name), text })
    });
    own.collect()
}

/// Reads a topology from the only source, and checks the documents of all its nodes.
pub fn checked(sources: Vec<SourceText>) -> Result<(Topology, Plan), Failure> {
    let source = sources.into_iter().next().ok_or_else(|| Failure::Usage("no file".to_owned()))?;
    let topology = parse(source.name, &source.text)?;
    let plan = expand(&topology);
    check(&plan)?;
    Ok((topology, plan))
}

/// The documents of every node must be valid.
fn check(plan: &Plan) -> Result<(), Failure> {
    for node in &plan.nodes {
        let bytes = node.documents.clone().into_bytes();
        let source = Source { name: format!("node {}", node.name), bytes };
        hue_intent::parse(vec![source]).map_err(|errors| Failure::Input(errors.to_string()))?;
    }
    Ok(())
}

fn no_node(topology: &Topology, node: &str) -> Failure {
    let names: Vec<&str> = topology.spec.nodes.iter().map(|one| one.name.as_str()).take(16).collect();
    Failure::Usage(format!(
        "topology {}: it has no node {node:?}, expected one of {}{}: name the node with --node",
        topology.name(),
        names.join(", "),
        if topology.spec.nodes.len() > names.len() { ", …" } else { "" }
    ))
}

fn render(args: &TopoRender) -> Result<(), Failure> {
    let (topology, _) = load(&args.file)?;
    if let Some(node) = &args.node {
        return print::text(&documents_of(&topology, node).ok_or_else(|| no_node(&topology, node))?);
    }
    let nodes: Vec<String> = expand(&topology).nodes.into_iter().map(|node| node.documents).collect();
    print::text(&nodes.join("---\n"))
}

fn draw(args: &TopoSvg) -> Result<(), Failure> {
    let (topology, _) = load(&args.file)?;
    print::text(&svg(&topology))
}

fn down(args: &TopoDown) -> Result<(), Failure> {
    root("down")?;
    let names = match &args.named.name {
        Some(name) => vec![name.clone()],
        None if args.all => place::all(),
        None => vec![place::only()?],
    };
    let mut faults = Vec::new();
    for name in &names {
        let place = Place::take(name)?.ok_or_else(|| place::absent(name))?;
        faults.extend(place.clear());
    }
    if !faults.is_empty() {
        return Err(Failure::Broken(faults.join("\n")));
    }
    let removed = count(names.len() as u64, "topology").replace("topologys", "topologies");
    anstream::eprintln!("{removed} removed");
    Ok(())
}

fn root(command: &str) -> Result<(), Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let what = format!("topo {command}: needs root for namespaces: sudo hueplane topo {command}");
    Err(Failure::Broken(what))
}
