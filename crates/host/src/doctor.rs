//! Checks what this machine lacks to run networks, with a command to fix it.
//!
//! Each check tries the real operation if that leaves no trace: in a namespace without a name, which ends
//! with its thread.
#![allow(unsafe_code)] // two system calls that no safe wrapper has

use std::env;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use caps::Capability;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::cgroup::{Cgroup, Limits, Trees};
use crate::error::HostError;
use crate::links::Links;
use crate::scheduling::{self, RealTimeRefused};
use crate::{netns, service, sysctl};

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// Whether it passed.
    pub ok: bool,
    /// Whether networks cannot run without it. Otherwise a feature is missing, or something is slower.
    pub required: bool,
    /// The state found.
    pub found: String,
    /// Why it is needed.
    pub why: &'static str,
    /// The command to fix it, if the check failed.
    pub fix: Option<String>,
}

/// Oldest kernel with all required features: protocol numbers of addresses (`IFA_PROTO`).
const KERNEL_MIN: (u32, u32) = (5, 18);
/// Real-time budget of a control group in each second that equals the kernel's default, in microseconds.
const RT_RUNTIME_US: u32 = 950_000;
/// Open files that suffice for more than a thousand networks.
const OPEN_FILES_MIN: u64 = 8192;
/// Locked memory required for rings, in bytes.
const MEMLOCK_BYTES_MIN: u64 = 64 << 20;

/// Runs all checks.
#[must_use]
pub fn checks() -> Vec<Check> {
    let mut checks = vec![kernel(), rights(), namespaces(), links(), tun(), bpf(), xdp_sockets(), memlock()];
    checks.extend([open_files(), real_time(), cgroups(), neighbours(), hugepages(), group()]);
    checks.extend(COMMANDS.map(|(name, package, why)| command(name, package, why)));
    checks
}

/// Whether networks can run.
#[must_use]
pub fn runs(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.ok || !check.required)
}

fn check(
    name: &'static str,
    required: bool,
    why: &'static str,
    result: Result<String, (String, String)>,
) -> Check {
    match result {
        Ok(found) => Check { name, ok: true, required, found, why, fix: None },
        Err((found, fix)) => Check { name, ok: false, required, found, why, fix: Some(fix) },
    }
}

fn kernel() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let (major, minor) = KERNEL_MIN;
    let result = if version >= KERNEL_MIN {
        Ok(release)
    } else {
        Err((release, format!("boot a kernel of version {major}.{minor} or newer")))
    };
    check("kernel", true, "it needs network namespaces, AF_XDP and protocol numbers of addresses", result)
}

fn rights() -> Check {
    let why = "interfaces, namespaces and rings need root or these capabilities";
    let result = match service::missing(&service::NEEDED) {
        Ok(missing) if missing.is_empty() => Ok("all required capabilities".to_owned()),
        Ok(missing) => Err((format!("missing {}", service::names(&missing)), "run it with sudo".to_owned())),
        Err(error) => Err((error.to_string(), "run it with sudo".to_owned())),
    };
    check("rights", true, why, result)
}

/// Runs a function in a network namespace without a name, which is removed afterwards.
fn in_unnamed_namespace<T: Send>(work: impl FnOnce() -> Result<T, HostError> + Send) -> Result<T, HostError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let new = unshare(CloneFlags::CLONE_NEWNET);
            new.map_err(|errno| HostError::system("make a network namespace", errno))?;
            work()
        });
        let gone =
            |_| Err(HostError::system("make a network namespace", io::Error::other("its thread ended")));
        thread.join().unwrap_or_else(gone)
    })
}

/// A failure with its fix: more privileges, or a kernel option.
fn with_fix(error: &HostError, option: &str) -> (String, String) {
    let fix = if error.is_denied() {
        "run it with sudo".to_owned()
    } else {
        format!("boot a kernel with {option}")
    };
    (error.to_string(), fix)
}

fn namespaces() -> Check {
    let tried = in_unnamed_namespace(|| Ok(())).map_err(|error| with_fix(&error, "CONFIG_NET_NS"));
    let result = tried.and_then(|()| {
        let run = Path::new(netns::FOLDER).parent().unwrap_or(Path::new("/"));
        let writable = nix::unistd::access(run, nix::unistd::AccessFlags::W_OK);
        let fix = format!("mount -o remount,rw {}", run.display());
        writable
            .map(|()| netns::FOLDER.to_owned())
            .map_err(|errno| (format!("{}: {errno}", run.display()), fix))
    });
    check("network namespaces", true, "each network has its own", result)
}

fn links() -> Check {
    let tried = in_unnamed_namespace(|| {
        let mut links = Links::here()?;
        links.create_veth("doctor0", "doctor1", None)?;
        links.create_bridge("doctor2")
    });
    let result = match tried {
        Ok(()) => Ok("veth and bridge".to_owned()),
        Err(error) if error.is_denied() => Err(with_fix(&error, "")),
        Err(error) => Err((error.to_string(), "modprobe veth && modprobe bridge".to_owned())),
    };
    check("virtual links", false, "`hueplane demo` connects its hosts with them", result)
}

fn tun() -> Check {
    let path = "/dev/net/tun";
    let result = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => {
            let fix = match error.kind() {
                io::ErrorKind::NotFound => {
                    "modprobe tun; mkdir -p /dev/net && mknod /dev/net/tun c 10 200".to_owned()
                }
                io::ErrorKind::PermissionDenied => "run it with sudo".to_owned(),
                _ => "modprobe tun".to_owned(),
            };
            Err((format!("{path}: {error}"), fix))
        }
    };
    check("TAP interfaces", true, "each virtual port is a TAP interface in its network's namespace", result)
}

fn bpf() -> Check {
    const MAP_CREATE: libc::c_int = 0;
    const ARRAY: u32 = 2;
    /// The first fields of `union bpf_attr` for this command: type, key, value, entries. The others are zero.
    type Attributes = [u32; 4];
    let attributes: Attributes = [ARRAY, 4, 4, 1];
    // SAFETY: the kernel reads the given number of bytes of the live array, and returns a new descriptor or an error.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size_of::<Attributes>()) };
    let result = match i32::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // SAFETY: the descriptor was made just now and belongs to nobody else.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            Ok("the bpf system call works".to_owned())
        }
        _ => Err(with_fix(&HostError::last("make a BPF map"), "CONFIG_BPF_SYSCALL")),
    };
    check(
        "XDP programs",
        false,
        "they separate networks before the receive ring; without them, ports use packet sockets",
        result,
    )
}

fn xdp_sockets() -> Check {
    // SAFETY: no pointers; the descriptor returned is new.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let result = if fd >= 0 {
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok("AF_XDP".to_owned())
    } else {
        Err(with_fix(&HostError::last("open an AF_XDP socket"), "CONFIG_XDP_SOCKETS"))
    };
    check("XDP sockets", false, "fast access to ports; without them, ports use packet sockets", result)
}

fn memlock() -> Check {
    let unlimited = service::missing(&[Capability::CAP_IPC_LOCK]).is_ok_and(|missing| missing.is_empty());
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .unwrap_or("0")
        .to_owned();
    let enough = soft == "unlimited" || soft.parse::<u64>().is_ok_and(|bytes| bytes >= MEMLOCK_BYTES_MIN);
    let result = if unlimited {
        Ok("no limit with CAP_IPC_LOCK".to_owned())
    } else if enough {
        Ok(soft)
    } else {
        Err((format!("{soft} bytes"), "ulimit -l unlimited".to_owned()))
    };
    check("locked memory", false, "the rings of ports are locked in memory", result)
}

fn open_files() -> Check {
    let limits = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
    let raises = service::missing(&[Capability::CAP_SYS_RESOURCE]).is_ok_and(|missing| missing.is_empty());
    let result = match limits {
        Ok(_) if raises => Ok("no limit with CAP_SYS_RESOURCE".to_owned()),
        Ok((_, hard)) if hard >= OPEN_FILES_MIN => Ok(hard.to_string()),
        Ok((_, hard)) => Err((
            format!("at most {hard}"),
            format!("ulimit -n {OPEN_FILES_MIN}, or LimitNOFILE= of the service"),
        )),
        Err(errno) => Err((errno.to_string(), "try again".to_owned())),
    };
    check("open files", false, "a network with two ports takes six", result)
}

fn real_time() -> Check {
    // On a separate thread, because the thread stays a real-time thread until it ends.
    let tried = std::thread::spawn(scheduling::real_time).join();
    let result = match tried {
        Ok(Ok(())) => Ok("round robin, at the lowest priority".to_owned()),
        Ok(Err(refused)) => {
            let fix = match &refused {
                RealTimeRefused::Right => "run it with sudo".to_owned(),
                RealTimeRefused::Group(folder) => {
                    format!("echo {RT_RUNTIME_US} > {}/cpu.rt_runtime_us", folder.display())
                }
                RealTimeRefused::Other(_) => {
                    "systemctl edit hueplane, and set RestrictRealtime=no".to_owned()
                }
            };
            Err((refused.to_string(), fix))
        }
        Err(_) => Err(("its thread ended".to_owned(), "try again".to_owned())),
    };
    check(
        "real-time threads",
        false,
        "packets do not wait for other programs when the machine is busy",
        result,
    )
}

fn cgroups() -> Check {
    let result = match Trees::detect() {
        Ok(trees) if trees.is_complete() => match group_made(&trees) {
            Ok(()) => Ok(trees.describe()),
            Err(error) => {
                let fix = match error.errno() {
                    _ if error.is_denied() => "run it with sudo".to_owned(),
                    Some(Errno::EBUSY) => NO_INNER_PROCESSES.to_owned(),
                    _ => "mount -o remount,rw /sys/fs/cgroup".to_owned(),
                };
                Err((error.to_string(), fix))
            }
        },
        Ok(trees) => {
            let found = if trees == Trees::default() { "none".to_owned() } else { trees.describe() };
            Err((found, "mount -t cgroup2 none /sys/fs/cgroup".to_owned()))
        }
        Err(error) => Err((error.to_string(), "mount -t proc proc /proc".to_owned())),
    };
    check("cgroups", false, "they limit a network's own programs (`resources`)", result)
}

/// A group with processes cannot delegate controllers (version 2). This is the case at the top of a
/// container.
const NO_INNER_PROCESSES: &str = "mkdir /sys/fs/cgroup/init; \
    while read p; do echo $p > /sys/fs/cgroup/init/cgroup.procs; done < /sys/fs/cgroup/cgroup.procs";

/// Creates a group with all limits, and removes it.
fn group_made(trees: &Trees) -> Result<(), HostError> {
    let limits = Limits { cpu_cores: Some(1.0), memory_bytes: Some(64 << 20), processes: Some(16) };
    let made = Cgroup::create_in(trees, &format!("doctor-{}", std::process::id()), "doctor", &limits)?;
    made.delete().map(drop)
}

fn neighbours() -> Check {
    const KEY: &str = "net/ipv4/neigh/default/gc_thresh3";
    const ENOUGH: u64 = 16_384;
    let why = "the kernel stores the neighbours of all networks in one table";
    let most = sysctl::get_here(KEY).ok().flatten().and_then(|text| text.parse::<u64>().ok());
    let root = nix::unistd::geteuid().is_root();
    let result = match most {
        Some(most) if most >= ENOUGH => Ok(format!("room for {most}")),
        Some(most) if root => Ok(format!("room for {most}; `hueplane up` raises the limit")),
        Some(most) => {
            Err((format!("room for {most}"), "sysctl -w net.ipv4.neigh.default.gc_thresh3=131072".to_owned()))
        }
        None => Ok("set by the host of this container".to_owned()),
    };
    check("neighbour table", false, why, result)
}

fn hugepages() -> Check {
    let pages = sysctl::get_here("vm/nr_hugepages").ok().flatten().unwrap_or_default();
    let result = match pages.parse::<u64>() {
        Ok(pages) if pages > 0 => Ok(format!("{pages} reserved")),
        _ => Err(("none reserved".to_owned(), "sysctl -w vm.nr_hugepages=64".to_owned())),
    };
    check("huge pages", false, "lookups in large tables are faster with them", result)
}

fn group() -> Check {
    const NAME: &str = "hueplane";
    let result = match nix::unistd::Group::from_name(NAME) {
        Ok(Some(group)) => Ok(format!("{NAME} ({})", group.gid)),
        _ => Err(("none".to_owned(), format!("groupadd --system {NAME}"))),
    };
    check("group hueplane", false, "its members can use the daemon's socket without root", result)
}

/// Commands, their Debian packages, and their purpose.
const COMMANDS: [(&str, &str, &str); 5] = [
    ("ip", "iproute2", "to inspect a network's namespace"),
    ("ping", "iputils-ping", "`hueplane demo` pings"),
    ("iperf3", "iperf3", "`hueplane demo` measures throughput"),
    ("ethtool", "ethtool", "to inspect interfaces"),
    ("tcpdump", "tcpdump", "to read captures"),
];

fn command(name: &'static str, package: &'static str, why: &'static str) -> Check {
    let path = env::var_os("PATH").unwrap_or_default();
    // Root's path can have directories that other users' paths lack.
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    });
    let result = match found {
        Some(file) => Ok(file.display().to_string()),
        None => Err(("not found".to_owned(), format!("apt-get install {package}"))),
    };
    check(name, false, why, result)
}
