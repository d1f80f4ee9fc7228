//! Runs a command inside a network (in its namespace and cgroup), as `ip netns exec` does.
//!
//! The command sees `/sys` of its namespace, and files from `/etc/netns/NAME` instead of those in `/etc`.
//! Invariants: everything is prepared before the fork, and nothing is allocated between fork and exec. The
//! cgroup is entered first, so that the command never runs outside its limits.
#![allow(unsafe_code)] // code between fork and exec

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::cgroup::Cgroup;
use crate::error::HostError;
use crate::netns::Namespace;

/// Directories for temporary files. A private command has empty ones, in memory that counts as its own.
const PRIVATE: [&CStr; 3] = [c"/tmp", c"/var/tmp", c"/dev/shm"];
/// Directory of files that replace those in `/etc` for one namespace.
const ETC_NETNS: &str = "/etc/netns";

/// Prepares a command that will run inside a namespace and a cgroup. The caller adds arguments, environment
/// and files.
///
/// # Errors
/// If the namespace or cgroup cannot be opened.
pub fn command(
    namespace: &Namespace,
    cgroup: Option<&Cgroup>,
    program: impl AsRef<OsStr>,
) -> Result<Command, HostError> {
    prepared(Place::open(namespace, cgroup)?, program)
}

/// The same for a command that also has temporary files of its own, which are gone when it ends.
///
/// # Errors
/// As [`command`].
pub fn private_command(
    namespace: &Namespace,
    cgroup: Option<&Cgroup>,
    program: impl AsRef<OsStr>,
) -> Result<Command, HostError> {
    prepared(Place { private: true, ..Place::open(namespace, cgroup)? }, program)
}

fn prepared(place: Place, program: impl AsRef<OsStr>) -> Result<Command, HostError> {
    let mut command = Command::new(program);
    // SAFETY: `enter` makes only system calls, on memory that was allocated before. It uses nothing whose lock a thread of
    // the parent may have held.
    unsafe { command.pre_exec(move || place.enter()) };
    Ok(command)
}

/// Starts a command inside a namespace and a cgroup, with the open files of this process.
///
/// # Errors
/// If `argv` is empty or the command cannot be started.
pub fn spawn(namespace: &Namespace, cgroup: Option<&Cgroup>, argv: &[OsString]) -> Result<Child, HostError> {
    let mut command = with(namespace, cgroup, argv)?;
    command.spawn().map_err(|error| not_run(argv, error))
}

/// Replaces this process by a command inside a namespace and a cgroup. Returns only if that fails.
#[must_use]
pub fn run_here(namespace: &Namespace, cgroup: Option<&Cgroup>, argv: &[OsString]) -> HostError {
    match with(namespace, cgroup, argv) {
        Ok(mut command) => not_run(argv, command.exec()),
        Err(error) => error,
    }
}

fn with(namespace: &Namespace, cgroup: Option<&Cgroup>, argv: &[OsString]) -> Result<Command, HostError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(HostError::system("run a command", io::Error::other("no command given")));
    };
    let mut command = command(namespace, cgroup, program)?;
    command.args(arguments);
    Ok(command)
}

fn not_run(argv: &[OsString], error: io::Error) -> HostError {
    let program = argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    HostError::system(format!("run {program}"), error)
}

/// Everything that a command needs to enter its namespace and cgroup, already opened or allocated.
struct Place {
    namespace: File,
    cgroup: Vec<File>,
    /// Files to mount over others.
    binds: Vec<(CString, CString)>,
    /// Whether it has temporary files of its own.
    private: bool,
}

impl Place {
    fn open(namespace: &Namespace, cgroup: Option<&Cgroup>) -> Result<Self, HostError> {
        let mut files = Vec::new();
        for path in cgroup.map(Cgroup::procs_files).unwrap_or_default() {
            let file = OpenOptions::new().write(true).open(&path);
            files.push(file.map_err(|error| HostError::system(format!("open {}", path.display()), error))?);
        }
        let handle = namespace.try_clone()?;
        let binds = binds(namespace.name());
        Ok(Self { namespace: handle.into_file(), cgroup: files, binds, private: false })
    }

    fn enter(&self) -> io::Result<()> {
        for file in &self.cgroup {
            // `0` means the writing process.
            nix::unistd::write(file, b"0")?;
        }
        setns(&self.namespace, CloneFlags::CLONE_NEWNET)?;
        unshare(CloneFlags::CLONE_NEWNS)?;
        // From here on, mounts are visible only to this command.
        mount(None::<&str>, c"/", None::<&str>, MsFlags::MS_SLAVE | MsFlags::MS_REC, None::<&str>)?;
        // `/sys` shows the namespace in which it was mounted. It does not matter if it is not mounted.
        if umount2(c"/sys", MntFlags::MNT_DETACH).is_ok() {
            mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), MsFlags::empty(), None::<&str>)?;
        }
        for (from, to) in &self.binds {
            let none = None::<&str>;
            mount(Some(from.as_c_str()), to.as_c_str(), none, MsFlags::MS_BIND, none)?;
        }
        for folder in PRIVATE.into_iter().filter(|_| self.private) {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some(c"tmpfs"), folder, Some(c"tmpfs"), flags, Some(c"size=64m,mode=1777"))?;
        }
        Ok(())
    }
}

fn binds(namespace: &str) -> Vec<(CString, CString)> {
    let folder = Path::new(ETC_NETNS).join(namespace);
    if namespace.is_empty() {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let pairs = entries.filter_map(|entry| {
        let to = Path::new("/etc").join(entry.file_name());
        let (from, to) = (entry.path(), to.exists().then_some(to)?);
        Some((CString::new(from.as_os_str().as_bytes()).ok()?, CString::new(to.as_os_str().as_bytes()).ok()?))
    });
    pairs.collect()
}
