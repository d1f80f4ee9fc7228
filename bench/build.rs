//! Compiles the C side (`csrc/`: DPDK's inline lookups and the net_ring loop) the way DPDK applications are compiled,
//! and links the shared libdpdk that pkg-config finds.

use std::process::Command;

/// Runs pkg-config on libdpdk; the build stops with what to install when it is absent.
fn pkg_config(args: &[&str]) -> Vec<String> {
    let out = Command::new("pkg-config").args(args).arg("libdpdk").output();
    match out {
        Ok(out) if out.status.success() => {
            String::from_utf8_lossy(&out.stdout).split_whitespace().map(str::to_owned).collect()
        }
        _ => panic!("hue-bench: pkg-config finds no libdpdk: apt-get install libdpdk-dev pkg-config"),
    }
}

fn main() {
    println!("cargo:rerun-if-changed=csrc");
    let sources = ["csrc/eal.c", "csrc/lpm.c", "csrc/fib.c", "csrc/lpm6.c", "csrc/ring.c"];
    let mut build = cc::Build::new();
    build.files(sources).opt_level(3).warnings(true).flag("-std=gnu11").flag("-Wno-unused-parameter");
    // DPDK says -march=corei7 as the least it needs; the last -march wins, and applications use native.
    for flag in pkg_config(&["--cflags"]) {
        if !flag.starts_with("-march") {
            build.flag(&flag);
        }
    }
    build.flag("-march=native");
    build.compile("hue_bench_dpdk");

    println!("cargo:rustc-env=HUE_BENCH_DPDK={}", pkg_config(&["--modversion"]).concat());
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    println!("cargo:rustc-env=HUE_BENCH_RUSTFLAGS={flags}");
    for library in ["eal", "lpm", "fib", "rib", "ethdev", "mbuf", "mempool", "ring", "net_ring", "net"] {
        println!("cargo:rustc-link-lib=dylib=rte_{library}");
    }
    // The ring mempool driver registers itself when its library is loaded; nothing references it by name.
    println!("cargo:rustc-link-arg=-Wl,--no-as-needed,-lrte_mempool_ring,--as-needed");
}
