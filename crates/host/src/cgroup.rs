//! Control groups: resource limits of a network's processes.
//!
//! Flow: [`Limits`] → **[`Cgroup`]** → files of the kernel. Each controller is used in the tree where it is:
//! version 1 has one tree for each controller, version 2 has a single tree, and a machine can mix both. The
//! group of a network is `hueplane/node-NODE/net-NETWORK` in each tree. It is at the top, not below the
//! daemon's own group, because its processes must survive a restart of the daemon. Invariants: limits are set
//! before a process can enter the group; removing a group first kills every process in it. Units: memory in
//! bytes, processor time in nanoseconds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::HostError;

/// Directory for all groups in each tree.
const TOP: &str = "hueplane";
/// Period of the processor quota in microseconds (the kernel's default).
const PERIOD_US: u64 = 100_000;
/// Smallest quota that the kernel accepts, in microseconds.
const QUOTA_US_MIN: u64 = 1_000;
/// Attempts to create a group while other processes remove its parent directories.
const MAKE_TRIES: u32 = 16;
/// Attempts to kill all processes of a group, and the pause between attempts.
const KILL_TRIES: u32 = 500;
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// Resource limits of a group; they apply to all its processes together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Processor time in cores.
    pub cpu_cores: Option<f64>,
    /// Memory in bytes; the kernel kills a process if the group exceeds it.
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub processes: Option<u64>,
}

/// Resource usage of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Processor time since the group was created, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that processes waited because of the limit, in nanoseconds.
    pub throttled_ns: u64,
    /// Current memory in bytes.
    pub memory_bytes: u64,
    /// Number of processes killed because of the memory limit.
    pub memory_kills: u64,
    /// Current number of processes and threads.
    pub processes: u64,
}

/// A resource controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Controller {
    Cpu,
    CpuAccount,
    Memory,
    Pids,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Cpu, Self::CpuAccount, Self::Memory, Self::Pids];

    /// Name in version 1.
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuAccount => "cpuacct",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }

    /// Name in version 2.
    fn name2(self) -> &'static str {
        match self {
            Self::CpuAccount => "cpu",
            other => other.name(),
        }
    }
}

/// A mounted cgroup tree.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Tree {
    root: PathBuf,
    version: Version,
    /// Controllers that are used in this tree.
    controllers: Vec<Controller>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

/// The mounted cgroup trees with usable controllers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trees {
    trees: Vec<Tree>,
}

impl Trees {
    /// Finds the mounted trees.
    ///
    /// # Errors
    /// If the list of mounts cannot be read.
    pub fn detect() -> Result<Self, HostError> {
        let path = "/proc/self/mounts";
        let mounts =
            fs::read_to_string(path).map_err(|error| HostError::system(format!("read {path}"), error))?;
        Ok(Self::of_mounts(&mounts))
    }

    /// Finds the trees in a list of mounts in the format of `/proc/self/mounts`. If a controller is available
    /// in both versions, version 1 is used: the kernel binds a controller to one version only, and version 2
    /// then does not list it.
    fn of_mounts(mounts: &str) -> Self {
        let mut trees: Vec<Tree> = Vec::new();
        for line in mounts.lines() {
            let mut fields = line.split(' ').skip(1);
            let (Some(root), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let root = PathBuf::from(root.replace("\\040", " "));
            let taken =
                |controller: &Controller| trees.iter().all(|tree| !tree.controllers.contains(controller));
            let (version, controllers): (_, Vec<Controller>) = match kind {
                "cgroup" => {
                    let has = |controller: &Controller| {
                        options.split(',').any(|option| option == controller.name())
                    };
                    (Version::One, Controller::ALL.into_iter().filter(has).filter(taken).collect())
                }
                "cgroup2" => {
                    let offered = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
                    let has = |controller: &Controller| {
                        offered.split_ascii_whitespace().any(|name| name == controller.name2())
                    };
                    (Version::Two, Controller::ALL.into_iter().filter(has).filter(taken).collect())
                }
                _ => continue,
            };
            if !controllers.is_empty() {
                trees.push(Tree { root, version, controllers });
            }
        }
        Self { trees }
    }

    /// Names of the networks of a node that have a group, sorted.
    #[must_use]
    pub fn networks(&self, node: &str) -> Vec<String> {
        let mut found = Vec::new();
        for tree in &self.trees {
            let folder = tree.root.join(TOP).join(format!("node-{node}"));
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            found.extend(names.filter_map(|name| name.strip_prefix("net-").map(str::to_owned)));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Description of the trees, such as `cpu, memory (version 1)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let trees = self.trees.iter().map(|tree| {
            let names: Vec<&str> = tree.controllers.iter().map(|controller| controller.name()).collect();
            let version = if tree.version == Version::One { 1 } else { 2 };
            format!("{} (version {version})", names.join(", "))
        });
        trees.collect::<Vec<_>>().join("; ")
    }

    /// The root of the version 1 hierarchy that has the `cpu` controller, if there is one.
    #[must_use]
    pub fn processor_root(&self) -> Option<PathBuf> {
        let is = |tree: &&Tree| tree.version == Version::One && tree.controllers.contains(&Controller::Cpu);
        Some(self.trees.iter().find(is)?.root.clone())
    }

    /// Whether processor time, memory and processes can all be limited.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        [Controller::Cpu, Controller::Memory, Controller::Pids]
            .iter()
            .all(|wanted| self.trees.iter().any(|tree| tree.controllers.contains(wanted)))
    }
}

/// The control group of one network.
#[derive(Clone, Debug)]
pub struct Cgroup {
    trees: Vec<Tree>,
    /// Path below the root of each tree.
    path: PathBuf,
}

impl Cgroup {
    /// Creates the group, or uses the existing one, and sets its limits.
    ///
    /// # Errors
    /// If there is no controller for a limit, or the system call fails.
    pub fn create(node: &str, network: &str, limits: &Limits) -> Result<Self, HostError> {
        Self::create_in(&Trees::detect()?, node, network, limits)
    }

    /// As [`Cgroup::create`], in known trees.
    ///
    /// # Errors
    /// As [`Cgroup::create`].
    pub fn create_in(trees: &Trees, node: &str, network: &str, limits: &Limits) -> Result<Self, HostError> {
        let group = Self::at(trees, node, network);
        for (controller, wanted, what) in [
            (Controller::Cpu, limits.cpu_cores.is_some(), "processor time"),
            (Controller::Memory, limits.memory_bytes.is_some(), "memory"),
            (Controller::Pids, limits.processes.is_some(), "processes"),
        ] {
            if wanted && group.of(controller).is_none() {
                return Err(HostError::NoController(what));
            }
        }
        for tree in &group.trees {
            // The parent directories are removed with the last network in them, possibly at this moment.
            let mut made = group.make(tree);
            for _ in 0..MAKE_TRIES {
                if !made.as_ref().is_err_and(HostError::is_missing) {
                    break;
                }
                made = group.make(tree);
            }
            made?;
        }
        group.limit(limits)?;
        Ok(group)
    }

    /// The group of a network; `None` if it exists in no tree.
    ///
    /// # Errors
    /// If the list of mounts cannot be read.
    pub fn open(node: &str, network: &str) -> Result<Option<Self>, HostError> {
        let group = Self::at(&Trees::detect()?, node, network);
        let there = group.folders().any(|folder| folder.is_dir());
        Ok(there.then_some(group))
    }

    fn at(trees: &Trees, node: &str, network: &str) -> Self {
        // Prefixes avoid conflicts with files of the kernel, such as `cpu.max` and `tasks`.
        let path = Path::new(TOP).join(format!("node-{node}")).join(format!("net-{network}"));
        Self { trees: trees.trees.clone(), path }
    }

    /// Its directories, one in each tree.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.trees.iter().map(|tree| tree.root.join(&self.path))
    }

    fn of(&self, controller: Controller) -> Option<(Version, PathBuf)> {
        let tree = self.trees.iter().find(|tree| tree.controllers.contains(&controller))?;
        Some((tree.version, tree.root.join(&self.path)))
    }

    /// Creates the directory. In version 2, each parent must delegate the controllers.
    fn make(&self, tree: &Tree) -> Result<(), HostError> {
        let folder = tree.root.join(&self.path);
        if tree.version == Version::One {
            return fs::create_dir_all(&folder).map_err(|error| failed("make", &folder, error));
        }
        let mut wanted: Vec<&str> = tree.controllers.iter().map(|controller| controller.name2()).collect();
        wanted.dedup();
        let mut above = tree.root.clone();
        for part in &self.path {
            let file = above.join("cgroup.subtree_control");
            let now = fs::read_to_string(&file).unwrap_or_default();
            let has = |name: &&&str| now.split_ascii_whitespace().any(|has| has == **name);
            let missing: Vec<String> =
                wanted.iter().filter(|name| !has(name)).map(|name| format!("+{name}")).collect();
            if !missing.is_empty() {
                write(&file, &missing.join(" "))?;
            }
            above = above.join(part);
            match fs::create_dir(&above) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("make", &above, error)),
            }
        }
        Ok(())
    }

    /// Changes the limits.
    ///
    /// # Errors
    /// If the system call fails, for example because the memory in use exceeds the limit.
    pub fn limit(&self, limits: &Limits) -> Result<(), HostError> {
        if let Some((version, folder)) = self.of(Controller::Cpu) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // casts from float saturate
            let quota = limits.cpu_cores.map(|cores| ((cores * PERIOD_US as f64) as u64).max(QUOTA_US_MIN));
            match version {
                Version::One => {
                    write(&folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                    let quota = quota.map_or_else(|| "-1".to_owned(), |quota| quota.to_string());
                    write(&folder.join("cpu.cfs_quota_us"), &quota)?;
                }
                Version::Two => {
                    let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
                    write(&folder.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
                }
            }
        }
        if let Some((version, folder)) = self.of(Controller::Memory) {
            memory(version, &folder, limits.memory_bytes)?;
        }
        if let Some((_, folder)) = self.of(Controller::Pids) {
            let most = limits.processes.map_or_else(|| "max".to_owned(), |most| most.to_string());
            write(&folder.join("pids.max"), &most)?;
        }
        Ok(())
    }

    /// The files through which a process enters the group, by writing `0` to each.
    #[must_use]
    pub fn procs_files(&self) -> Vec<PathBuf> {
        self.folders().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Adds a process to the group.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn add(&self, process: u32) -> Result<(), HostError> {
        self.procs_files().iter().try_for_each(|file| write(file, &process.to_string()))
    }

    /// Processes in the group and its children, in all trees.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for folder in self.folders() {
            below(&folder, &mut |folder| {
                let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
                found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            });
        }
        found.sort_unstable();
        found.dedup();
        // 0 means a process in another PID namespace. Killing it would kill this process.
        found.retain(|process| *process != 0);
        found
    }

    /// Kills every process in the group and waits until they have ended.
    ///
    /// # Errors
    /// If some do not end.
    pub fn kill_all(&self) -> Result<(), HostError> {
        // Freeze the group first, so that nothing can fork. This is best effort: the loop below is
        // sufficient.
        if let Some((_, folder)) = self.of(Controller::Pids).filter(|(_, folder)| folder.is_dir()) {
            fs::write(folder.join("pids.max"), "0").ok();
        }
        for tree in self.trees.iter().filter(|tree| tree.version == Version::Two) {
            let file = tree.root.join(&self.path).join("cgroup.kill");
            if file.exists() {
                fs::write(file, "1").ok();
            }
        }
        let mut left = self.processes();
        for _ in 0..KILL_TRIES {
            if left.is_empty() {
                return Ok(());
            }
            for process in &left {
                // The process may have ended meanwhile. If it cannot be killed, this is detected below.
                kill(Pid::from_raw(i32::try_from(*process).unwrap_or(i32::MAX)), Signal::SIGKILL).ok();
            }
            std::thread::sleep(KILL_PAUSE);
            left = self.processes();
        }
        Err(HostError::Unkillable(left.len(), self.path.display().to_string()))
    }

    /// Kills every process in the group and removes it. Returns whether it existed.
    ///
    /// # Errors
    /// If a process does not end, or the system call fails.
    pub fn delete(&self) -> Result<bool, HostError> {
        let there: Vec<PathBuf> = self.folders().filter(|folder| folder.is_dir()).collect();
        if there.is_empty() {
            return Ok(false);
        }
        self.kill_all()?;
        for folder in there {
            remove(&folder)?;
            // Also remove the parent directories if this was the last network. They may be in use.
            for above in folder.ancestors().skip(1).take(2) {
                fs::remove_dir(above).ok();
            }
        }
        Ok(true)
    }

    /// Resource usage of the group.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        if let Some((Version::One, folder)) = self.of(Controller::CpuAccount) {
            usage.cpu_ns = number(&folder.join("cpuacct.usage"));
        }
        if let Some((version, folder)) = self.of(Controller::Cpu) {
            let file = folder.join("cpu.stat");
            match version {
                Version::One => usage.throttled_ns = field(&file, "throttled_time"),
                Version::Two => {
                    usage.cpu_ns = field(&file, "usage_usec").saturating_mul(1000);
                    usage.throttled_ns = field(&file, "throttled_usec").saturating_mul(1000);
                }
            }
        }
        if let Some((version, folder)) = self.of(Controller::Memory) {
            let (now, events) = match version {
                Version::One => ("memory.usage_in_bytes", "memory.oom_control"),
                Version::Two => ("memory.current", "memory.events"),
            };
            usage.memory_bytes = number(&folder.join(now));
            usage.memory_kills = field(&folder.join(events), "oom_kill");
        }
        if let Some((_, folder)) = self.of(Controller::Pids) {
            usage.processes = number(&folder.join("pids.current"));
        }
        usage
    }
}

/// Sets a memory limit that includes swap, if there is any.
fn memory(version: Version, folder: &Path, bytes: Option<u64>) -> Result<(), HostError> {
    match version {
        Version::One => {
            let (file, both) =
                (folder.join("memory.limit_in_bytes"), folder.join("memory.memsw.limit_in_bytes"));
            let text = bytes.map_or_else(|| "-1".to_owned(), |bytes| bytes.to_string());
            if !both.exists() {
                return write(&file, &text);
            }
            // The limit with swap must never be below the limit without. Set the larger one first, whatever
            // the direction of the change.
            write(&both, "-1")?;
            write(&file, &text)?;
            write(&both, &text)
        }
        Version::Two => {
            let text = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
            write(&folder.join("memory.max"), &text)?;
            let swap = folder.join("memory.swap.max");
            if swap.exists() { write(&swap, if bytes.is_some() { "0" } else { "max" }) } else { Ok(()) }
        }
    }
}

/// Calls `each` for the directory and all below it, deepest first.
fn below(folder: &Path, each: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), each);
        }
    }
    each(folder);
}

/// Removes a group, and the groups that its processes created below it.
fn remove(folder: &Path) -> Result<(), HostError> {
    let mut failure = None;
    below(folder, &mut |folder| {
        let mut tries = 0;
        // The kernel can account for a process shortly after it has ended.
        while let Err(error) = fs::remove_dir(folder) {
            if error.kind() == io::ErrorKind::NotFound {
                break;
            }
            tries += 1;
            if error.kind() != io::ErrorKind::ResourceBusy || tries > KILL_TRIES {
                failure = Some(failed("remove", folder, error));
                break;
            }
            std::thread::sleep(KILL_PAUSE);
        }
    });
    failure.map_or(Ok(()), Err)
}

fn failed(what: &str, path: &Path, error: io::Error) -> HostError {
    HostError::system(format!("{what} cgroup {}", path.display()), error)
}

fn write(file: &Path, value: &str) -> Result<(), HostError> {
    fs::write(file, value)
        .map_err(|error| HostError::system(format!("write {value} to {}", file.display()), error))
}

/// The number in a file; 0 if the file does not exist.
fn number(file: &Path) -> u64 {
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The number after a word in a file; 0 if there is none.
fn field(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut found = text.lines().filter_map(|line| line.split_once(' ')).filter(|(word, _)| *word == name);
    found.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
