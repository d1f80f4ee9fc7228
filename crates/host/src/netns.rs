//! Named network namespaces: files in `/run/netns`, as created and shown by `ip netns`.
//!
//! Invariants: a namespace gets its name last, so a named one is complete, including everything that
//! [`Namespace::create_with`] prepares. Work inside a namespace runs on its own thread, so that no other
//! thread of the program is ever in a wrong namespace.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::statfs::fstatfs;

use crate::error::HostError;

/// Directory of named namespaces.
pub const FOLDER: &str = "/run/netns";
/// Longest name in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Mode of a namespace's file.
const FILE_MODE: u32 = 0o444;
/// The namespace of the thread that opens this file.
const OWN: &str = "/proc/thread-self/ns/net";
/// Type of the file system of namespace files (`NSFS_MAGIC`).
const NSFS: i64 = 0x6e73_6673;

/// The namespace that has the name of an open namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The namespace itself.
    Own,
    /// Nothing: the name was deleted. The namespace exists as long as its handle.
    Nothing,
    /// Another namespace.
    Other,
}

/// An open network namespace: it exists at least as long as this handle.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Creates the namespace with this name, or opens the existing one.
    ///
    /// # Errors
    /// If the name is invalid, or the system call fails.
    pub fn create(name: &str) -> Result<Self, HostError> {
        Self::create_with(name, || Ok(())).map(|(namespace, _)| namespace)
    }

    /// Creates the namespace with this name, or opens the existing one. Returns whether it was created.
    /// `prepare` runs inside a new namespace before it gets its name.
    ///
    /// # Errors
    /// If the name is invalid, the system call fails, or `prepare` fails.
    pub fn create_with(
        name: &str,
        prepare: impl FnOnce() -> Result<(), HostError> + Send,
    ) -> Result<(Self, bool), HostError> {
        let path = path(name)?;
        let what = format!("create network namespace {name:?}");
        let _lock = folder(&what)?;
        match Self::open(name) {
            Ok(namespace) => return Ok((namespace, false)),
            Err(HostError::NoNamespace(_)) => {}
            Err(error) => return Err(error),
        }
        let file = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| HostError::system(what.as_str(), errno))?;
            prepare()?;
            File::open(OWN).map_err(|error| HostError::system(what.as_str(), error))
        })??;
        bind(&file, &path, &what)?;
        Ok((Self { name: name.to_owned(), file }, true))
    }

    /// Which namespace has its name.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn standing(&self) -> Result<Standing, HostError> {
        let path = path(&self.name)?;
        let (device, inode) = self.identity()?;
        match fs::metadata(&path) {
            Ok(there) if (there.dev(), there.ino()) == (device, inode) => Ok(Standing::Own),
            // All namespaces are files of one file system.
            Ok(there) if there.dev() == device => Ok(Standing::Other),
            Ok(_) => Ok(Standing::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Standing::Nothing),
            Err(error) => Err(HostError::system(format!("look at network namespace {:?}", self.name), error)),
        }
    }

    /// Gives its name back to a namespace whose name was deleted. Returns whether that was necessary.
    ///
    /// # Errors
    /// [`HostError::Replaced`] if another namespace has the name, or if a system call fails.
    pub fn restore_name(&self) -> Result<bool, HostError> {
        let path = path(&self.name)?;
        let what = format!("name network namespace {:?} again", self.name);
        let _lock = folder(&what)?;
        match self.standing()? {
            Standing::Own => Ok(false),
            Standing::Other => Err(HostError::Replaced(self.name.clone())),
            Standing::Nothing => {
                let own = || File::open(OWN).map_err(|error| HostError::system(what.as_str(), error));
                bind(&self.run(own)??, &path, &what)?;
                Ok(true)
            }
        }
    }

    /// Opens the namespace with this name.
    ///
    /// # Errors
    /// [`HostError::NoNamespace`] if it does not exist, or if the system call fails.
    pub fn open(name: &str) -> Result<Self, HostError> {
        let path = path(name)?;
        let what = || format!("open network namespace {name:?}");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(HostError::NoNamespace(name.to_owned()));
            }
            Err(error) => return Err(HostError::system(what(), error)),
        };
        let system = fstatfs(&file).map_err(|errno| HostError::system(what(), errno))?;
        if system.filesystem_type().0 as i64 != NSFS {
            return Err(HostError::NoNamespace(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), file })
    }

    /// Opens the namespace that a file names, such as `/proc/PID/ns/net`; its name is the path.
    ///
    /// # Errors
    /// [`HostError::NoNamespace`] if the file does not exist or is no namespace, or if the system call fails.
    pub fn at(path: &Path) -> Result<Self, HostError> {
        let name = path.display().to_string();
        let what = || format!("open network namespace {name:?}");
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(HostError::NoNamespace(name));
            }
            Err(error) => return Err(HostError::system(what(), error)),
        };
        let system = fstatfs(&file).map_err(|errno| HostError::system(what(), errno))?;
        if system.filesystem_type().0 as i64 != NSFS {
            return Err(HostError::NoNamespace(name));
        }
        Ok(Self { name, file })
    }

    /// The namespace of the calling thread; its name is empty.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn own() -> Result<Self, HostError> {
        let file = File::open(OWN).map_err(|error| HostError::system("open the network namespace", error))?;
        Ok(Self { name: String::new(), file })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A second handle.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn try_clone(&self) -> Result<Self, HostError> {
        let file =
            self.file.try_clone().map_err(|error| HostError::system("open a network namespace", error))?;
        Ok(Self { name: self.name.clone(), file })
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Identity of the namespace: handles with equal values refer to the same namespace.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn identity(&self) -> Result<(u64, u64), HostError> {
        let data = self.file.metadata().map_err(|error| HostError::system("look at a namespace", error))?;
        Ok((data.dev(), data.ino()))
    }

    /// Runs a function inside the namespace, on its own thread, and waits for it. Sockets opened there stay
    /// in the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        on_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|errno| {
                HostError::system(format!("enter network namespace {:?}", self.name), errno)
            })?;
            Ok(work())
        })?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether a namespace with this name exists.
#[must_use]
pub fn exists(name: &str) -> bool {
    Namespace::open(name).is_ok()
}

/// All processes and the identities of their network namespaces (device and inode), without this process.
pub fn processes() -> impl Iterator<Item = (u32, (u64, u64))> {
    let own = std::process::id();
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok().filter(|pid| *pid != own)?;
        let place = fs::metadata(entry.path().join("ns/net")).ok()?;
        Some((pid, (place.dev(), place.ino())))
    })
}

/// Names of namespaces that begin with `prefix`, sorted.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(prefix: &str) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HostError::system(format!("read {FOLDER}"), error)),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix) && exists(name)).collect();
    names.sort();
    Ok(names)
}

/// Removes files whose names begin with `prefix` and that are no namespaces: a process was killed after it made the file,
/// before it mounted the namespace, or between the reverse steps. Returns their names.
///
/// # Errors
/// If the system call fails.
pub fn sweep(prefix: &str) -> Result<Vec<String>, HostError> {
    let what = format!("remove what is left of network namespaces {prefix:?}");
    let system = |error: io::Error| HostError::system(what.as_str(), error);
    // Nobody else is between these steps now. `ip netns` makes files with another mode.
    let _lock = folder(&what)?;
    let device = fs::metadata(FOLDER).map_err(system)?.dev();
    let mut swept = Vec::new();
    for entry in fs::read_dir(FOLDER).map_err(system)?.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
        // Where a namespace is mounted, the file is one of another file system.
        let is_bare = found.is_file() && found.dev() == device && found.len() == 0;
        if name.starts_with(prefix) && is_bare && found.mode() & 0o777 == FILE_MODE {
            remove(&entry.path(), &what)?;
            swept.push(name);
        }
    }
    Ok(swept)
}

/// Removes the name of a namespace, whether or not it is in use; the namespace ends with its last process and
/// socket. Returns whether it existed.
///
/// # Errors
/// If the name is invalid, or the system call fails.
pub fn delete(name: &str) -> Result<bool, HostError> {
    let path = path(name)?;
    let what = format!("delete network namespace {name:?}");
    if !path.exists() {
        return Ok(false);
    }
    let _lock = folder(&what)?;
    remove(&path, &what)
}

fn path(name: &str) -> Result<PathBuf, HostError> {
    let good = (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains(['/', '\0'])
        && !name.chars().any(char::is_whitespace);
    if good { Ok(Path::new(FOLDER).join(name)) } else { Err(HostError::NamespaceName(name.to_owned())) }
}

/// Gives a namespace a name that no namespace has.
fn bind(file: &File, path: &Path, what: &str) -> Result<(), HostError> {
    // A leftover file without a mount.
    remove(path, what)?;
    let system = |error: io::Error| HostError::system(what, error);
    OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(path).map_err(system)?;
    let source = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)));
    mount(Some(&source), path, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|errno| {
        // Best effort: the next attempt would also remove it.
        fs::remove_file(path).ok();
        HostError::system(what, errno)
    })
}

/// Unmounts and removes a name; it need not exist.
fn remove(path: &Path, what: &str) -> Result<bool, HostError> {
    // Attempts that were killed can leave several mounts on top of each other.
    loop {
        match umount2(path, MntFlags::MNT_DETACH) {
            Ok(()) => {}
            Err(Errno::EINVAL | Errno::ENOENT) => break,
            Err(errno) => return Err(HostError::system(what, errno)),
        }
    }
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HostError::system(what, error)),
    }
}

/// Creates the directory with mounts shared between mount namespaces, as `ip netns add` does, and locks it
/// against concurrent creation.
fn folder(what: &str) -> Result<Flock<File>, HostError> {
    let system = |error: io::Error| HostError::system(what, error);
    fs::create_dir_all(FOLDER).map_err(system)?;
    let file = File::open(FOLDER).map_err(system)?;
    let lock =
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| HostError::system(what, errno))?;
    let none = None::<&str>;
    let share = || mount(none, FOLDER, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    match share() {
        Ok(()) => {}
        Err(Errno::EINVAL) => {
            mount(Some(FOLDER), FOLDER, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
                .and_then(|()| share())
                .map_err(|errno| HostError::system(what, errno))?;
        }
        Err(errno) => return Err(HostError::system(what, errno)),
    }
    Ok(lock)
}

/// Runs a function on its own thread. A panic is passed on to the caller.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("namespace".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|error| HostError::system("start a thread", error))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
