//! Both versions with trees of plain files, and version 2 for real if it is mounted, with or without
//! controllers. Limits that take effect are tested in `tests/host/cgroup.rs`.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("hte-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const LIMITS: Limits = Limits { cpu_cores: Some(0.5), memory_bytes: Some(256 << 20), processes: Some(512) };

#[test]
fn mounts_of_both_versions_are_found() {
    let scratch = Scratch::new();
    let unified = scratch.0.join("unified");
    fs::create_dir(&unified).unwrap();
    fs::write(unified.join("cgroup.controllers"), "hugetlb memory\n").unwrap();
    let mounts = format!(
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
         cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
         cgroup /sys/fs/cgroup/my\\040pids cgroup rw,pids 0 0\n\
         cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n\
         cgroup2 {} cgroup2 rw,nsdelegate 0 0\nbroken\n",
        unified.display()
    );
    let trees = Trees::of_mounts(&mounts);
    assert_eq!(trees.describe(), "cpu, cpuacct (version 1); pids (version 1); memory (version 2)");
    assert!(trees.is_complete());
    assert_eq!(trees.trees[1].root, Path::new("/sys/fs/cgroup/my pids"));
    let less = Trees::of_mounts("cgroup /c cgroup rw,cpu 0 0\n");
    assert!(!less.is_complete());
    let error = Cgroup::create_in(&less, "n", "red", &LIMITS).unwrap_err();
    assert!(matches!(error, HostError::NoController("memory")), "{error}");
}

#[test]
fn version_two_delegates_controllers_and_sets_limits() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("cgroup.controllers"), "cpuset cpu io memory pids").unwrap();
    fs::write(scratch.0.join("cgroup.subtree_control"), "cpu").unwrap();
    let trees = Trees::of_mounts(&format!("cgroup2 {} cgroup2 rw 0 0", scratch.0.display()));
    assert!(trees.is_complete());
    let group = Cgroup::create_in(&trees, "n", "red", &LIMITS).unwrap();
    // Only missing controllers are requested, and each parent delegates them.
    assert_eq!(scratch.read("cgroup.subtree_control"), "+memory +pids");
    assert_eq!(scratch.read("hueplane/cgroup.subtree_control"), "+cpu +memory +pids");
    assert_eq!(scratch.read("hueplane/node-n/cgroup.subtree_control"), "+cpu +memory +pids");
    let folder = "hueplane/node-n/net-red";
    assert!(!scratch.0.join(folder).join("cgroup.subtree_control").exists());
    let read = |file: &str| scratch.read(&format!("{folder}/{file}"));
    assert_eq!(read("cpu.max"), "50000 100000");
    assert_eq!(read("memory.max"), (256 << 20).to_string());
    assert_eq!(read("pids.max"), "512");
    assert!(!scratch.0.join(folder).join("memory.swap.max").exists(), "there is no swap here");

    fs::write(scratch.0.join(folder).join("memory.swap.max"), "max").unwrap();
    group.limit(&LIMITS).unwrap();
    assert_eq!(read("memory.swap.max"), "0");
    group.limit(&Limits::default()).unwrap();
    assert_eq!((read("cpu.max"), read("memory.max")), ("max 100000".to_owned(), "max".to_owned()));
    assert_eq!((read("pids.max"), read("memory.swap.max")), ("max".to_owned(), "max".to_owned()));
    group.limit(&Limits { cpu_cores: Some(0.001), ..Limits::default() }).unwrap();
    assert_eq!(read("cpu.max"), "1000 100000", "the minimum of the kernel");

    for (file, text) in [
        ("cpu.stat", "usage_usec 7\nuser_usec 5\nthrottled_usec 3\n"),
        ("memory.current", "4096\n"),
        ("memory.events", "low 0\noom 2\noom_kill 1\n"),
        ("pids.current", "5\n"),
    ] {
        fs::write(scratch.0.join(folder).join(file), text).unwrap();
    }
    let usage =
        Usage { cpu_ns: 7_000, throttled_ns: 3_000, memory_bytes: 4096, memory_kills: 1, processes: 5 };
    assert_eq!(group.usage(), usage);
    assert_eq!(trees.networks("n"), ["red"]);
    assert_eq!(trees.networks("other"), Vec::<String>::new());
    assert_eq!(group.procs_files(), [scratch.0.join(folder).join("cgroup.procs")]);
}

#[test]
fn version_one_limits_memory_with_swap() {
    let scratch = Scratch::new();
    let mut mounts = String::new();
    for name in ["cpu", "cpuacct", "memory", "pids"] {
        fs::create_dir(scratch.0.join(name)).unwrap();
        mounts += &format!("cgroup {} cgroup rw,{name} 0 0\n", scratch.0.join(name).display());
    }
    let trees = Trees::of_mounts(&mounts);
    let folder = "memory/hueplane/node-n/net-red";
    fs::create_dir_all(scratch.0.join(folder)).unwrap();
    fs::write(scratch.0.join(folder).join("memory.memsw.limit_in_bytes"), "-1").unwrap();
    let group = Cgroup::create_in(&trees, "n", "red", &LIMITS).unwrap();
    let bytes = (256 << 20).to_string();
    assert_eq!(scratch.read(&format!("{folder}/memory.limit_in_bytes")), bytes);
    assert_eq!(scratch.read(&format!("{folder}/memory.memsw.limit_in_bytes")), bytes);
    assert_eq!(scratch.read("cpu/hueplane/node-n/net-red/cpu.cfs_quota_us"), "50000");
    group.limit(&Limits::default()).unwrap();
    assert_eq!(scratch.read("cpu/hueplane/node-n/net-red/cpu.cfs_quota_us"), "-1");
    assert_eq!(scratch.read(&format!("{folder}/memory.limit_in_bytes")), "-1");
    assert_eq!(scratch.read("pids/hueplane/node-n/net-red/pids.max"), "max");
}

/// The basic functions of version 2 (processes, child groups) need no controller.
#[test]
fn version_two_kills_and_removes_for_real() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let root = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    });
    let (true, Some(root)) = (nix::unistd::geteuid().is_root(), root) else {
        println!("skipped: root or a mounted cgroup2 missing");
        return;
    };
    let trees = Trees { trees: vec![Tree { root, version: Version::Two, controllers: Vec::new() }] };
    let node = format!("hte-{}", std::process::id());
    let group = Cgroup::create_in(&trees, &node, "red", &Limits::default()).unwrap();
    let folder = group.folders().next().unwrap();
    fs::create_dir(folder.join("below")).unwrap();
    let start = |seconds: &str| Command::new("sleep").arg(seconds).stdin(Stdio::null()).spawn().unwrap();
    let mut children = [start("1000"), start("1001")];
    group.add(children[0].id()).unwrap();
    fs::write(folder.join("below/cgroup.procs"), children[1].id().to_string()).unwrap();
    let mut ids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
    ids.sort_unstable();
    assert_eq!(group.processes(), ids);
    assert_eq!(trees.networks(&node), ["red"]);
    let reaper = std::thread::spawn(move || children.each_mut().map(|child| child.wait().unwrap().code()));
    let deleted = group.delete();
    assert_eq!(reaper.join().unwrap(), [None, None], "killed by a signal");
    assert!(deleted.unwrap());
    assert!(!folder.exists());
    assert!(!folder.parent().unwrap().exists(), "the node's directory is removed with its last network");
    assert!(!group.delete().unwrap(), "a second delete has no effect");
}
