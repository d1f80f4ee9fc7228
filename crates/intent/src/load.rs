//! Loads desired state from files, all or nothing.
//!
//! Flow: paths → bytes → `yaml` → `document` → `validate` → [`Intent`]. Reads files and standard input, nothing else.

use std::collections::BTreeSet;
use std::fs::File as Open;
use std::io::Read;
use std::path::Path;

use crate::decode::{Cursor, File};
use crate::document::{Draft, NetworkDraft, NodeDraft, document};
use crate::error::{Error, Errors, Finding, Place, Report};
use crate::limits;
use crate::types::{
    ApiVersion, Metadata, Name, Network, NetworkPort, NetworkTag, Node, NodePort, NodeSpec, NodeTag,
};
use crate::validate::{self, Rules};
use crate::yaml;

/// The path that means standard input.
pub const STDIN: &str = "-";

/// Valid desired state of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intent {
    /// The node. If there is no `Node` document: a node with the ports that networks name, sorted by name.
    pub node: Node,
    /// Whether there is a `Node` document.
    pub node_given: bool,
    /// Networks, sorted by name.
    pub networks: Vec<Network>,
}

/// The content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Name of the file in errors.
    pub name: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Reads and validates files; `-` is standard input.
///
/// # Errors
/// All errors of the files.
pub fn load<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Intent, Errors> {
    let report = Report::default();
    let mut sources = Vec::new();
    for (index, path) in paths.into_iter().enumerate() {
        match read(path.as_ref()) {
            Ok(source) => sources.push((index, source)),
            Err(error) => report.add(index, error),
        }
    }
    parse_reported(&sources, report, Rules::All)
}

/// Validates the contents of files.
///
/// # Errors
/// All errors of the files.
pub fn parse(sources: Vec<Source>) -> Result<Intent, Errors> {
    parse_reported(&sources.into_iter().enumerate().collect::<Vec<_>>(), Report::default(), Rules::All)
}

/// Validates new documents that will be a part of a desired state: networks that they name may be in documents in force.
/// The whole must be validated too.
///
/// # Errors
/// All errors of the files.
pub fn parse_part(sources: Vec<Source>) -> Result<Intent, Errors> {
    parse_reported(&sources.into_iter().enumerate().collect::<Vec<_>>(), Report::default(), Rules::Some)
}

/// Validates documents that are in force or stored, by the rules that always existed. What was accepted once must
/// load again: a daemon could not start otherwise.
///
/// # Errors
/// All errors of the documents.
pub fn parse_accepted(sources: Vec<Source>) -> Result<Intent, Errors> {
    parse_reported(&sources.into_iter().enumerate().collect::<Vec<_>>(), Report::default(), Rules::Accepted)
}

fn read(path: &Path) -> Result<Source, Error> {
    let stdin = path.as_os_str() == STDIN;
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    // Read one byte more than allowed, so that the reader detects a file that is too long.
    let most = limits::FILE_BYTES_MAX as u64 + 1;
    let done = if stdin {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        Open::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    match done {
        Ok(_) => Ok(Source { name, bytes }),
        Err(error) => Err(Error::Read { file: name, reason: error.to_string() }),
    }
}

fn parse_reported(sources: &[(usize, Source)], report: Report, rules: Rules) -> Result<Intent, Errors> {
    let trees: Vec<_> = sources
        .iter()
        .map(|(index, source)| yaml::read(&source.name, *index, &source.bytes, &report))
        .collect();
    let files: Vec<_> = sources
        .iter()
        .zip(&trees)
        .map(|((index, source), tree)| File { name: &source.name, index: *index, tree, report: &report })
        .collect();
    let (mut nodes, mut networks, mut documents) = (Vec::new(), Vec::new(), 0);
    for file in &files {
        for value in &file.tree.documents {
            let at = Cursor::root(file, *value);
            if at.is_null() {
                continue; // empty document between two `---`
            }
            documents += 1;
            match document(at) {
                Some(Draft::Node(node)) => nodes.push(*node),
                Some(Draft::Network(network)) => networks.push(*network),
                None => {}
            }
        }
    }
    if documents == 0 && report.count() == 0 {
        empty(&report, sources.first().map(|(_, source)| source), "a Node or a Network");
    }
    validate::all(&nodes, &networks, rules);
    let intent = if report.count() == 0 { build(nodes, networks) } else { None };
    report.finish()?;
    intent.ok_or_else(|| Errors { list: vec![Error::Incomplete], more: 0 })
}

/// An input without documents is an error; often it is a file that was not saved.
pub(crate) fn empty(report: &Report, source: Option<&Source>, expected: &str) {
    let file = source.map_or_else(|| "<none>".to_owned(), |source| source.name.clone());
    let finding = Finding {
        place: Place { file, line: 1, column: 1 },
        field: "document".to_owned(),
        found: "no document".to_owned(),
        expected: expected.to_owned(),
        hint: None,
    };
    report.add(0, Error::Found(Box::new(finding)));
}

fn build(nodes: Vec<NodeDraft<'_>>, drafts: Vec<NetworkDraft<'_>>) -> Option<Intent> {
    let mut networks = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let (metadata, spec) = draft.finish()?;
        networks.push(Network { api_version: ApiVersion::V1, kind: NetworkTag::Network, metadata, spec });
    }
    networks.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let given = nodes.into_iter().next();
    let node_given = given.is_some();
    let (metadata, mut spec) = match given {
        Some(draft) => draft.finish()?,
        None => implied(&networks)?,
    };
    spec.ports.sort_by(|one, other| one.name.cmp(&other.name));
    let node = Node { api_version: ApiVersion::V1, kind: NodeTag::Node, metadata, spec };
    Some(Intent { node, node_given, networks })
}

/// The node if there is no `Node` document: it has the ports that the networks name.
fn implied(networks: &[Network]) -> Option<(Metadata, NodeSpec)> {
    let names: BTreeSet<&Name> =
        networks.iter().flat_map(|network| &network.spec.ports).filter_map(NetworkPort::physical).collect();
    let port = |name: &Name| NodePort::new(name.clone());
    let spec = NodeSpec { ports: names.into_iter().map(port).collect(), ..NodeSpec::default() };
    Some((Metadata { name: "node".parse().ok()? }, spec))
}
