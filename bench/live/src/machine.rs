//! The machine as facts for a result (no names, no paths), its processor time, and pinning.

use std::fs;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// The core that generates traffic.
pub const GENERATOR_CORE: usize = 0;
/// The core that forwards it.
pub const FORWARDER_CORE: usize = 1;

/// Pins a thread (0: this one) to a core. If there is no such core, the thread stays as it is.
pub fn pin(thread: i32, core: usize) {
    let mut set = CpuSet::new();
    if set.set(core).is_ok() {
        // A machine with one core has no other.
        let _ = sched_setaffinity(Pid::from_raw(thread), &set);
    }
}

/// A command that runs on a core, with all that it starts.
pub fn on_core(core: usize, command: &Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &core.to_string()]).arg(command.get_program()).args(command.get_args());
    pinned.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    pinned
}

/// Pins all threads of a process to a core.
pub fn pin_process(process: u32, core: usize) {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        pin(task, core);
    }
}

/// Processor time of this thread, seconds.
pub fn thread_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

/// Processor time that all cores were busy since the machine started, seconds; of one core with `Some`.
pub fn busy_seconds(core: Option<usize>) -> f64 {
    let stat = line("/proc/stat");
    let name = core.map_or("cpu".to_owned(), |core| format!("cpu{core}"));
    let fields = stat.lines().find(|line| line.split(' ').next() == Some(&name)).unwrap_or("");
    let ticks: Vec<f64> = fields.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // Idle and waiting for input and output are not busy; guests are counted in user time already.
    let busy: f64 =
        ticks.iter().take(8).enumerate().filter(|(at, _)| !matches!(at, 3 | 4)).map(|(_, t)| t).sum();
    busy / 100.0
}

/// Pins the kernel's threads whose names have this prefix to a core.
pub fn pin_kernel_threads(name: &str, core: usize) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if line(&format!("/proc/{process}/comm")).starts_with(name) {
            pin(process, core);
        }
    }
}

/// The kernel's memory statistics, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Memory that programs could still get.
    pub available: u64,
    /// Memory of the kernel's own objects: slabs, per-processor areas, its stacks and page tables.
    pub kernel: u64,
}

impl Memory {
    /// The present values.
    pub fn now() -> Self {
        let text = line("/proc/meminfo");
        let field = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
        };
        let kernel = ["Slab", "Percpu", "KernelStack", "PageTables", "VmallocUsed"];
        Self { available: field("MemAvailable"), kernel: kernel.iter().map(|name| field(name)).sum() }
    }
}

fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The facts a result carries.
pub fn facts(command: &str) -> Value {
    let info = line("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let memory = line("/proc/meminfo");
    let total = memory.lines().next().and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    json!({
        "cpu": model.map_or("?", |(_, name)| name.trim()),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "memory_gib": total.map(|kib| kib >> 20),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "load_average_before": line("/proc/loadavg").split(' ').next(),
        "command": command,
    })
}
