//! The directory of a demo, how other demos see that it is running, and how to remove its remains.
//!
//! Every demo has a directory named after its process id, and holds a lock in it while it runs. A directory
//! with a free lock belongs to a demo that was killed: the next demo removes its namespaces, their processes,
//! its control groups and the directory. A directory with the file `kept` belongs to a lab that must stay;
//! `demo --clean` removes it too. All names of namespaces begin with `hdemo-PID-`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hueplaned::options::owner_name;
use nix::fcntl::{Flock, FlockArg};

use crate::failure::Failure;
use crate::local::daemon::Places;
use crate::local::remains;

/// Directory of all demos.
const FOLDER: &str = "/run/hueplane-demo";
/// The lock file in a demo's directory.
const LOCK: &str = "lock";
/// State directory of the daemon, in a demo's directory.
const STATE: &str = "state";
/// Marks a lab that must stay.
const KEPT: &str = "kept";

/// The directory and names of one demo.
pub struct Place {
    id: u32,
    folder: PathBuf,
    _lock: Flock<File>,
}

impl Place {
    /// Takes the place of this process.
    pub fn take() -> Result<Self, Failure> {
        Self::take_as(std::process::id())
    }

    fn take_as(id: u32) -> Result<Self, Failure> {
        let folder = Path::new(FOLDER).join(id.to_string());
        let failed = |source| Failure::Output { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(folder.join(LOCK)).map_err(failed)?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| Failure::Broken(format!("{} is in use: {errno}", folder.display())))?;
        Ok(Self { id, folder, _lock: lock })
    }

    /// Name of the node.
    pub fn node(&self) -> String {
        format!("demo-{}", self.id)
    }

    /// Name of the namespace of the node.
    pub fn node_namespace(&self) -> String {
        format!("{}node", prefix(self.id))
    }

    /// Name of a host's namespace.
    pub fn host_namespace(&self, network: &str, side: &str) -> String {
        format!("{}{network}-{side}", prefix(self.id))
    }

    /// Directories and names of the daemon.
    pub fn places(&self) -> Places {
        Places {
            run_dir: self.folder.join("run"),
            state_dir: self.folder.join(STATE),
            log: self.folder.join("hueplaned.log"),
            network_prefix: format!("{}hue-", prefix(self.id)),
        }
    }

    /// Keeps everything until `demo --clean`.
    pub fn keep(&self) -> Result<(), Failure> {
        let path = self.folder.join(KEPT);
        File::create(&path).map(drop).map_err(|source| Failure::Output { path, source })
    }

    /// Removes everything of this demo. Returns what could not be removed.
    pub fn clear(self) -> Vec<String> {
        clear(self.id, &self.folder)
    }
}

fn prefix(id: u32) -> String {
    format!("hdemo-{id}-")
}

/// Result of [`sweep`].
#[derive(Default)]
pub struct Swept {
    /// Number of labs removed.
    pub labs: u64,
    /// What could not be removed.
    pub faults: Vec<String>,
}

/// Removes the remains of killed demos; if `kept` is set, also labs that were kept.
pub fn sweep(kept: bool) -> Swept {
    let mut swept = Swept::default();
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let folder = entry.path();
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if !kept && folder.join(KEPT).exists() {
            continue;
        }
        // A demo that was killed before it created its lock has no other remains.
        let Ok(file) = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK))
        else {
            continue;
        };
        let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { continue };
        swept.labs += 1;
        swept.faults.extend(clear(id, &folder));
    }
    swept
}

/// Removes everything of a demo that no longer runs.
fn clear(id: u32, folder: &Path) -> Vec<String> {
    let mut faults = remains::namespaces(&prefix(id));
    faults.extend(remains::cgroups(&owner_name(&folder.join(STATE))));
    // The directory is removed last: as long as it exists, the rest can be found.
    if faults.is_empty()
        && let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        faults.push(format!("{}: {error}", folder.display()));
    }
    // Only the last of several demos succeeds.
    let _ = fs::remove_dir(FOLDER);
    faults
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
pub mod tests {
    use std::process::{Command, Stdio};

    use hue_host::netns::{self, Namespace};

    use super::*;

    /// A place that is removed even if a test fails.
    pub struct TemporaryPlace(Option<Place>);

    impl std::ops::Deref for TemporaryPlace {
        type Target = Place;

        fn deref(&self) -> &Place {
            self.0.as_ref().unwrap()
        }
    }

    impl TemporaryPlace {
        pub fn clear(mut self) {
            assert_eq!(self.0.take().unwrap().clear(), Vec::<String>::new());
        }

        /// Simulates a killed demo.
        fn kill(mut self) {
            drop(self.0.take());
        }
    }

    impl Drop for TemporaryPlace {
        fn drop(&mut self) {
            drop(self.0.take().map(Place::clear));
        }
    }

    /// A place that no demo uses; `number` distinguishes the tests of this process. `None` without the
    /// required privileges.
    pub fn place(number: u32) -> Option<TemporaryPlace> {
        if !nix::unistd::geteuid().is_root() {
            hue_testdata::skipped("root");
            return None;
        }
        // No process has such an id.
        let place = Place::take_as(1_000_000_000 + std::process::id() * 8 + number).unwrap();
        Some(TemporaryPlace(Some(place)))
    }

    #[test]
    fn only_remains_of_killed_demos_are_removed() {
        let (Some(killed), Some(running)) = (place(0), place(1)) else { return };
        let (name, folder) = (killed.host_namespace("red", "left"), killed.folder.clone());
        let inside = Namespace::create(&name).unwrap();
        let other = Namespace::create(&running.node_namespace()).unwrap();
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null());
        let mut sleeper = inside.run(move || command.spawn()).unwrap().unwrap();
        // The lock of a killed process is free; its directory and everything else still exists.
        killed.kill();
        let stale = Path::new(netns::FOLDER).join(format!("{name}-stale"));
        File::create(&stale).unwrap();
        let faults = sweep(false).faults;
        assert_eq!(faults, Vec::<String>::new());
        assert!(!netns::exists(&name) && !folder.exists() && !stale.exists());
        assert!(!sleeper.wait().unwrap().success(), "its processes have ended");
        assert!(netns::exists(other.name()), "a running demo is not affected");
        running.clear();
        assert!(!netns::exists(other.name()));
    }

    #[test]
    fn a_kept_lab_stays_until_clean() {
        let Some(kept) = place(2) else { return };
        let (id, folder) = (kept.id, kept.folder.clone());
        let name = kept.node_namespace();
        Namespace::create(&name).unwrap();
        kept.keep().unwrap();
        kept.kill();
        sweep(false);
        assert!(netns::exists(&name));
        // Not `sweep(true)`: others on this machine may also have labs that are kept.
        assert_eq!(clear(id, &folder), Vec::<String>::new());
        assert!(!netns::exists(&name) && !folder.exists());
    }
}
