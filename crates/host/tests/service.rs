//! Dropping privileges, notifying systemd, and the checks of `doctor` with and without privileges.
#![allow(unsafe_code)] // an environment variable, set before there are threads that read it
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy treats as code

mod common;

use std::os::unix::net::UnixDatagram;

use common::root;
use hue_host::{Capability, doctor, netns, service};
use nix::sched::{CloneFlags, unshare};

#[test]
fn many_files_can_be_open() {
    let most = service::raise_open_files().unwrap();
    assert_eq!(service::raise_open_files().unwrap(), most);
    assert!(most >= 1024);
}

/// Capabilities are per thread, so dropping them here does not affect other tests.
#[test]
fn dropped_capabilities_are_gone() {
    if !root() {
        return;
    }
    std::thread::spawn(|| {
        assert!(service::missing(&service::NEEDED).unwrap().is_empty());
        service::drop_capabilities(&[Capability::CAP_NET_ADMIN]).unwrap();
        service::drop_capabilities(&[Capability::CAP_NET_ADMIN, Capability::CAP_SYS_ADMIN]).unwrap();
        let wanted = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_SYS_ADMIN];
        let missing = service::missing(&wanted).unwrap();
        assert_eq!(service::names(&missing), "CAP_NET_RAW, CAP_SYS_ADMIN");
        assert!(unshare(CloneFlags::CLONE_NEWNET).is_err());
        // Programs that it starts have no more capabilities.
        let output = std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let net_admin = format!("{:016x}", 1u64 << 12);
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            let line = status.lines().find(|line| line.starts_with(set)).unwrap();
            assert!(line.ends_with(&net_admin), "{line}");
        }
    })
    .join()
    .unwrap();
    assert!(service::missing(&service::NEEDED).unwrap().is_empty());
}

#[test]
fn the_doctor_passes_or_gives_a_fix() {
    let checks = doctor::checks();
    let mut names: Vec<_> = checks.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), checks.len());
    for check in &checks {
        assert_eq!(check.ok, check.fix.is_none(), "{check:?}");
        assert!(!check.found.is_empty() && !check.why.is_empty(), "{check:?}");
    }
    if root() {
        assert!(doctor::runs(&checks), "{checks:#?}");
    }
    // It leaves nothing behind.
    assert!(netns::list("doctor").unwrap().is_empty());
}

#[test]
fn the_doctor_asks_for_privileges() {
    if !root() {
        return;
    }
    let checks = std::thread::spawn(|| {
        service::drop_capabilities(&[]).unwrap();
        doctor::checks()
    })
    .join()
    .unwrap();
    assert!(!doctor::runs(&checks));
    for name in ["rights", "network namespaces", "virtual links"] {
        let check = checks.iter().find(|check| check.name == name).unwrap();
        assert_eq!((check.ok, check.fix.as_deref()), (false, Some("run it with sudo")), "{check:?}");
    }
}

#[test]
fn systemd_is_notified() {
    // Without systemd, nothing happens.
    service::stopping();
    let folder = std::env::temp_dir().join(format!("hte-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    // SAFETY: no other test of this program reads this variable or changes one.
    unsafe { std::env::set_var("NOTIFY_SOCKET", &path) };
    service::ready("3 networks");
    service::status("4 networks");
    service::alive();
    service::stopping();
    let mut told = Vec::new();
    for _ in 0..4 {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).unwrap();
        told.push(String::from_utf8(text[..length].to_vec()).unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(told, ["READY=1\nSTATUS=3 networks\n", "STATUS=4 networks\n", "WATCHDOG=1\n", "STOPPING=1\n"]);
}
