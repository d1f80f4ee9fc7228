//! Network namespaces that have a name: files in `/run/netns`, as `ip netns` makes and shows them.
//!
//! Invariants: a namespace that is seen under its name is complete, whatever [`Namespace::create`] was given to prepare in it:
//! the name comes last. Work inside a namespace is done on a thread of its own, so that no thread of the program ever is in a
//! wrong one.

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

/// Where namespaces have their names.
pub const FOLDER: &str = "/run/netns";
/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 200;
/// The namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";
/// Type of the file system a namespace's file is on (`NSFS_MAGIC`).
const NSFS: i64 = 0x6e73_6673;

/// A network namespace, open: it lives at least as long as this.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Creates the namespace of this name, or opens it when it is there.
    ///
    /// # Errors
    /// When the name is none, or the system refuses.
    pub fn create(name: &str) -> Result<Self, HostError> {
        Self::create_with(name, || Ok(())).map(|(namespace, _)| namespace)
    }

    /// Creates the namespace of this name, or opens it when it is there; says whether it was created. `prepare` runs inside a
    /// new one before it gets its name.
    ///
    /// # Errors
    /// When the name is none, the system refuses, or `prepare` fails.
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
        // What is left of one whose mount is gone.
        remove(&path, &what)?;
        let system = |error: io::Error| HostError::system(what.as_str(), error);
        OpenOptions::new().create_new(true).write(true).mode(0o444).open(&path).map_err(system)?;
        let source = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        let bound = mount(Some(&source), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>);
        if let Err(errno) = bound {
            // Best effort: the next attempt removes it too.
            fs::remove_file(&path).ok();
            return Err(HostError::system(what.as_str(), errno));
        }
        Ok((Self { name: name.to_owned(), file }, true))
    }

    /// Opens the namespace of this name.
    ///
    /// # Errors
    /// [`HostError::NoNamespace`] when there is none; when the system refuses.
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

    /// The namespace the calling thread is in; its name is empty.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn own() -> Result<Self, HostError> {
        let file = File::open(OWN).map_err(|error| HostError::system("open the network namespace", error))?;
        Ok(Self { name: String::new(), file })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A second handle of it.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn try_clone(&self) -> Result<Self, HostError> {
        let file =
            self.file.try_clone().map_err(|error| HostError::system("open a network namespace", error))?;
        Ok(Self { name: self.name.clone(), file })
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// What tells namespaces apart: two handles with equal ones are the same namespace.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn identity(&self) -> Result<(u64, u64), HostError> {
        let data = self.file.metadata().map_err(|error| HostError::system("look at a namespace", error))?;
        Ok((data.dev(), data.ino()))
    }

    /// Runs something inside, on a thread of its own, and waits for it. Sockets opened there stay there.
    ///
    /// # Errors
    /// When the system refuses to enter.
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

/// Whether there is a namespace of this name.
#[must_use]
pub fn exists(name: &str) -> bool {
    Namespace::open(name).is_ok()
}

/// Names of the namespaces that begin with `prefix`, in order.
///
/// # Errors
/// When the folder cannot be read.
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

/// Takes a namespace its name, whether anything still uses it or not; it ends with the last process and socket in it. Says
/// whether there was one.
///
/// # Errors
/// When the name is none, or the system refuses.
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

/// Unmounts and removes a name; nothing there is fine.
fn remove(path: &Path, what: &str) -> Result<bool, HostError> {
    // Mounts can be stacked, by an attempt that was killed.
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

/// Makes the folder, with its mounts shared with other mount namespaces, as `ip netns add` does; locked against others that do.
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

/// Runs something on a thread of its own; its panic is the caller's.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("namespace".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|error| HostError::system("start a thread", error))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
