//! Compiles the measurements' own XDP programs (`bpf/`) as `crates/ports` compiles the product's.

use std::path::Path;
use std::process::Command;

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../../spec/xdp/abi.h");
    println!("cargo::rerun-if-env-changed=HUEPLANE_CLANG");
    let clang = std::env::var("HUEPLANE_CLANG").unwrap_or_else(|_| "clang".to_owned());
    for program in ["load", "forward", "sockets"] {
        let status = Command::new(&clang)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-ident"])
            .arg(format!("-ffile-prefix-map={manifest}=bench/live"))
            .arg("-fdebug-compilation-dir=.")
            .arg("-c")
            .arg(Path::new(&manifest).join(format!("bpf/{program}.c")))
            .arg("-o")
            .arg(Path::new(&out).join(format!("{program}.o")))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("{clang} failed on bpf/{program}.c: {status}"),
            Err(error) => panic!(
                "cannot run {clang}: {error}; install it (scripts/setup bench), or name another by HUEPLANE_CLANG"
            ),
        }
    }
}
