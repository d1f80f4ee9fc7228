//! The machine and the build, as facts for a result (no names, no paths); pinning.
#![allow(unsafe_code)]

use std::fs;

use serde_json::{Value, json};

/// Pins this thread to `core`; false if the kernel refuses.
pub fn pin(core: usize) -> bool {
    // SAFETY: a zeroed cpu_set_t is an empty set; CPU_SET stays within it for cores below 1,024; 0 means this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core.min(1023), &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Processor time of this thread, seconds.
pub fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the address is of a local; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The last core this process may use: the first tends to serve interrupts.
pub fn last_core() -> usize {
    std::thread::available_parallelism().map_or(0, |n| n.get() - 1)
}

fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn cpu_model() -> String {
    let info = line("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let part = |name| field(name).unwrap_or_else(|| "?".into());
    format!("{} (family {}, model {})", part("model name"), part("cpu family"), part("model"))
}

fn cache(level: u32) -> String {
    let folder = |i: u32| format!("/sys/devices/system/cpu/cpu0/cache/index{i}");
    (0..8)
        .find(|i| {
            line(&format!("{}/level", folder(*i))) == level.to_string()
                && line(&format!("{}/type", folder(*i))) != "Instruction"
        })
        .map_or_else(|| "?".into(), |i| line(&format!("{}/size", folder(i))))
}

/// The facts a result carries. `cores` was counted before DPDK pinned this thread.
pub fn facts(cores: usize, page_bytes: u64, quick: bool) -> Value {
    let memory = line("/proc/meminfo");
    let total =
        memory.lines().next().and_then(|line| line.split_whitespace().nth(1)).and_then(|kb| kb.parse().ok());
    json!({
        "cpu": cpu_model(),
        "cores": cores,
        "cache": format!("L1d {}, L2 {}, L3 {}", cache(1), cache(2), cache(3)),
        "memory_gib": total.map(|kb: u64| kb >> 20),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "transparent_huge_pages": line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "dpdk": env!("HUE_BENCH_DPDK"),
        "dpdk_page_bytes": page_bytes,
        "rustflags": env!("HUE_BENCH_RUSTFLAGS"),
        "cflags": "-O3 -march=native",
        "quick": quick,
    })
}
