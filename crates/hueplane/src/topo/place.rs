//! The directory of a topology on this machine, and the names of everything that belongs to it.
//!
//! `/run/hueplane-topo/NAME` has the document, the file `up` once everything runs, and a directory for each node. Who builds or
//! removes a topology holds the lock in it, which a killed process leaves free. Names of namespaces are made with `@`, which no name in a
//! document has, so that no topology's prefix begins another's: `topo@NAME@n@NODE`, `topo@NAME@h@HOST`, and `topo@NAME@v@NODE@NETWORK`
//! for the networks' own.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hue_intent::topology::Topology;
use hueplaned::options::owner_name;
use nix::fcntl::{Flock, FlockArg};

use crate::failure::Failure;
use crate::local::daemon::Places;
use crate::local::remains;

/// Directory of all topologies.
const FOLDER: &str = "/run/hueplane-topo";
const LOCK: &str = "lock";
/// The document.
const DOCUMENT: &str = "topology.yaml";
/// Marks a topology that runs.
const UP: &str = "up";
/// Directory of the nodes.
const NODES: &str = "n";
const STATE: &str = "state";

/// The place of a topology, held by this process.
#[derive(Debug)]
pub struct Place {
    name: String,
    folder: PathBuf,
    _lock: Flock<File>,
}

/// Names of all topologies, also of those that are not complete, sorted.
pub fn all() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The name of the only topology.
pub fn only() -> Result<String, Failure> {
    match all().as_slice() {
        [name] => Ok(name.clone()),
        [] => Err(Failure::Usage("no topology is up: `hueplane topo up FILE` starts one".to_owned())),
        many => Err(Failure::Usage(format!("several topologies are up, name one: {}", many.join(", ")))),
    }
}

/// The error for a topology that does not exist.
pub fn absent(name: &str) -> Failure {
    let names = all();
    let others =
        if names.is_empty() { String::new() } else { format!("; those that are: {}", names.join(", ")) };
    Failure::Usage(format!("topology {name:?} is not up{others}"))
}

/// Reads the document of a topology that runs.
pub fn document(name: &str) -> Result<Topology, Failure> {
    let folder = folder(name).filter(|folder| folder.is_dir()).ok_or_else(|| absent(name))?;
    if !folder.join(UP).exists() {
        return Err(Failure::Broken(format!(
            "topology {name}: it is being started, or its start was killed: `hueplane topo down {name}` removes the rest"
        )));
    }
    let path = folder.join(DOCUMENT);
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::Broken(format!("{}: cannot be read: {error}", path.display())))?;
    super::parse(path.display().to_string(), &text)
}

/// The directory for a name; `None` if no topology can have it.
fn folder(name: &str) -> Option<PathBuf> {
    name.parse::<hue_intent::Name>().ok().map(|name| Path::new(FOLDER).join(name.as_str()))
}

impl Place {
    /// Makes the place of a new topology. The remains of one whose start was killed are removed.
    pub fn make(name: &str, document: &str) -> Result<Self, Failure> {
        let path = folder(name).ok_or_else(|| absent(name))?;
        let failed = |source| Failure::Output { path: path.clone(), source };
        if let Some(old) = Self::take(name)? {
            if old.folder.join(UP).exists() {
                return Err(Failure::Broken(format!(
                    "topology {name} is up already: `hueplane topo down {name}` removes it"
                )));
            }
            let faults = old.clear();
            if !faults.is_empty() {
                return Err(Failure::Broken(faults.join("\n")));
            }
        }
        fs::create_dir_all(&path).map_err(failed)?;
        let place = Self::take(name)?.ok_or_else(|| absent(name))?;
        fs::write(place.folder.join(DOCUMENT), document).map_err(failed)?;
        Ok(place)
    }

    /// Takes the place of a topology; `None` if there is none.
    pub fn take(name: &str) -> Result<Option<Self>, Failure> {
        let Some(folder) = folder(name).filter(|folder| folder.is_dir()) else { return Ok(None) };
        let path = folder.join(LOCK);
        let file = match File::options().write(true).create(true).truncate(false).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None), // just removed
            Err(source) => return Err(Failure::Output { path, source }),
        };
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            Failure::Broken(format!("topology {name}: another `hueplane topo` is starting or removing it"))
        })?;
        Ok(Some(Self { name: name.to_owned(), folder, _lock: lock }))
    }

    /// Marks the topology as running.
    pub fn complete(&self) -> Result<(), Failure> {
        let path = self.folder.join(UP);
        File::create(&path).map(drop).map_err(|source| Failure::Output { path, source })
    }

    /// Removes everything of the topology. Returns what could not be removed.
    pub fn clear(self) -> Vec<String> {
        let mut faults = remains::namespaces(&prefix(&self.name));
        let nodes = fs::read_dir(self.folder.join(NODES)).into_iter().flatten().flatten();
        for node in nodes {
            faults.extend(remains::cgroups(&owner_name(&node.path().join(STATE))));
        }
        super::routing::forget(&self.name);
        // The directory is removed last: as long as it exists, the rest can be found.
        if faults.is_empty()
            && let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != ErrorKind::NotFound
        {
            faults.push(format!("{}: {error}", self.folder.display()));
        }
        // Only the last of several topologies succeeds.
        let _ = fs::remove_dir(FOLDER);
        faults
    }
}

/// The beginning of the names of all namespaces of a topology.
fn prefix(name: &str) -> String {
    format!("topo@{name}@")
}

/// The namespace of a node.
pub fn node_space(topology: &str, node: &str) -> String {
    format!("{}n@{node}", prefix(topology))
}

/// The namespace of a host.
pub fn host_space(topology: &str, host: &str) -> String {
    format!("{}h@{host}", prefix(topology))
}

/// The directory of a node.
pub fn node_folder(topology: &str, node: &str) -> PathBuf {
    Path::new(FOLDER).join(topology).join(NODES).join(node)
}

/// Directories and names of a node's daemon.
pub fn places(topology: &str, node: &str) -> Places {
    let folder = node_folder(topology, node);
    Places {
        run_dir: folder.join("run"),
        state_dir: folder.join(STATE),
        log: folder.join("hueplaned.log"),
        network_prefix: format!("{}v@{node}@", prefix(topology)),
    }
}
