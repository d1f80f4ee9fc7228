//! Limits that take effect on processor time, memory and processes, with the controllers of this machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Names, root};
use hue_host::cgroup::{Cgroup, Limits, Trees};
use hue_host::exec;
use nix::sys::signal::Signal;

/// Whether the machine can limit all three; prints that if it cannot.
fn controllers() -> bool {
    let complete = root() && Trees::detect().unwrap().is_complete();
    if !complete {
        hue_testdata::skipped("cgroup controllers for cpu, memory and pids");
    }
    complete
}

#[test]
fn processor_time_is_limited() {
    if !controllers() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("burn");
    let limits = Limits { cpu_cores: Some(0.1), ..Limits::default() };
    let cgroup = Cgroup::create(&names.start, "burn", &limits).unwrap();
    let start = Instant::now();
    let burner = ["sh", "-c", "while :; do :; done"].map(Into::into);
    let mut children = [(), (), ()].map(|()| exec::spawn(&namespace, Some(&cgroup), &burner).unwrap());
    // Until the limit has taken effect a few times.
    while cgroup.usage().throttled_ns == 0 || cgroup.usage().cpu_ns < 50_000_000 {
        assert!(start.elapsed() < Duration::from_secs(120), "never limited: {:?}", cgroup.usage());
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
    let usage = cgroup.usage();
    // Three times the limit of 0.1 core, plus a period in progress. Three processes without a limit would use
    // twenty times that.
    let most = start.elapsed().mul_f64(0.1) + Duration::from_millis(150);
    assert!(Duration::from_nanos(usage.cpu_ns) < most, "{usage:?} in {:?}", start.elapsed());
    assert_eq!(usage.processes, 3);
    // A command has entered all trees before it starts.
    let output =
        exec::command(&namespace, Some(&cgroup), "cat").unwrap().arg("/proc/self/cgroup").output().unwrap();
    let group = format!("/hueplane/node-{}/net-burn\n", names.start);
    let trees = String::from_utf8(output.stdout).unwrap().matches(&group).count();
    assert_eq!(trees, cgroup.procs_files().len());
    let mut ids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
    ids.sort_unstable();
    assert_eq!(cgroup.processes(), ids);
    let reaper = std::thread::spawn(move || children.each_mut().map(|child| child.wait().unwrap()));
    assert!(cgroup.delete().unwrap());
    reaper.join().unwrap();
    assert!(Cgroup::open(&names.start, "burn").unwrap().is_none());
    assert!(!cgroup.delete().unwrap(), "a second delete has no effect");
}

#[test]
fn memory_is_limited() {
    if !controllers() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("hog");
    let limits = Limits { memory_bytes: Some(24 << 20), ..Limits::default() };
    let cgroup = Cgroup::create(&names.start, "hog", &limits).unwrap();
    // `tail` stores a line without end.
    let mut command = exec::command(&namespace, Some(&cgroup), "tail").unwrap();
    let mut hog = command.arg("/dev/zero").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = hog.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{status}");
    let usage = cgroup.usage();
    assert!(usage.memory_kills >= 1, "{usage:?}");
    // With another limit, it can use more.
    cgroup.limit(&Limits { memory_bytes: Some(64 << 20), ..Limits::default() }).unwrap();
    let mut command = exec::command(&namespace, Some(&cgroup), "sh").unwrap();
    let quiet = command.args(["-c", "head -c 30000000 /dev/zero | tail >/dev/null"]).status().unwrap();
    assert!(quiet.success());
    cgroup.delete().unwrap();
}

#[test]
fn processes_are_limited() {
    if !controllers() {
        return;
    }
    let names = Names::new();
    let namespace = names.namespace("crowd");
    let limits = Limits { processes: Some(4), ..Limits::default() };
    let cgroup = Cgroup::create(&names.start, "crowd", &limits).unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait";
    let mut command = exec::command(&namespace, Some(&cgroup), "bash").unwrap();
    let mut crowd = command.args(["-c", script]).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while cgroup.usage().processes < 4 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(cgroup.processes().len() <= 4, "{:?}", cgroup.processes());
    let reaper = std::thread::spawn(move || crowd.wait());
    // Processes that keep forking are also killed.
    cgroup.delete().unwrap();
    reaper.join().unwrap().unwrap();
}

#[test]
fn an_existing_group_is_reused() {
    if !controllers() {
        return;
    }
    let names = Names::new();
    let trees = Trees::detect().unwrap();
    let limits = Limits { cpu_cores: Some(0.5), memory_bytes: Some(64 << 20), processes: Some(50) };
    for network in ["tasks", "cgroup.procs", "cpu.max", "red"] {
        Cgroup::create(&names.start, network, &limits).unwrap();
        Cgroup::create(&names.start, network, &limits).unwrap();
    }
    assert_eq!(trees.networks(&names.start), ["cgroup.procs", "cpu.max", "red", "tasks"]);
    let red = Cgroup::open(&names.start, "red").unwrap().unwrap();
    assert_eq!(red.usage().processes, 0);
    // Limits can be removed again.
    Cgroup::create(&names.start, "red", &Limits::default()).unwrap();
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    red.add(child.id()).unwrap();
    assert_eq!(red.processes(), [child.id()]);
    let reaper = std::thread::spawn(move || child.wait());
    red.delete().unwrap();
    reaper.join().unwrap().unwrap();
    assert_eq!(trees.networks(&names.start), ["cgroup.procs", "cpu.max", "tasks"]);
}
