//! Compiles the XDP programs (spec/xdp) to the objects that are built into this crate.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../spec/xdp/abi.h");
    println!("cargo::rerun-if-env-changed=HUEPLANE_CLANG");
    compile("hueplane");
    compile("redirect");
}

/// Compiles spec/xdp/NAME.c to NAME.o in the build's folder.
fn compile(name: &str) {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let source = Path::new(&manifest).join(format!("../../spec/xdp/{name}.c"));
    let object = Path::new(&out).join(format!("{name}.o"));
    println!("cargo::rerun-if-changed={}", source.display());
    let clang = std::env::var("HUEPLANE_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-ident"])
        // Paths of the building machine stay out of the object.
        .arg(format!("-ffile-prefix-map={}=crates/ports", manifest))
        .arg("-fdebug-compilation-dir=.")
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} failed on {}: {status}", source.display()),
        Err(error) => panic!(
            "cannot run {clang} to compile {}: {error}; install it (scripts/setup build), or name another by HUEPLANE_CLANG",
            source.display()
        ),
    }
}
