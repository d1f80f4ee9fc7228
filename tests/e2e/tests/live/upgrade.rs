//! Another program takes the daemon's place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::lab::{Host, text};
use hue_e2e::raw::{Raw, Sniffer};
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, can_run, daemon, until};

use crate::l2;

/// Ends the lab's daemon in the background, whatever happens to the test.
pub struct Running<'a>(pub &'a Cli);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.0.run(&["down"]);
    }
}

/// Copies the daemon's program. Another process does it: a command that another test starts meanwhile would inherit this
/// process's descriptor of the copy, and a file that is open for writing cannot be run ("Text file busy").
fn copy_program(to: &Path) {
    let copied = std::process::Command::new("cp").arg(daemon::binary()).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn another_program_takes_the_daemons_place_and_networks_stay() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    let documents = all(&[lab.node_document(""), pair.document.yaml()]);
    let file = lab.folder().join("first.yaml");
    fs::write(&file, &documents).unwrap();
    let cli = Cli::new(&lab);
    // Relative paths are relative to the directory in which the daemon was started, and `--empty` was meant once.
    let up =
        ["up", "--detach", "--empty", "--workers", "1", "--run-dir", "run", "-f", &file.to_string_lossy()];
    let program = lab.folder().join("hueplane-installed");
    copy_program(&program);
    let mut command = std::process::Command::new(&program);
    command.args(up).current_dir(lab.folder()).env("HUEPLANE_STATE_DIR", &cli.state_dir);
    let _ = lab.node().run_command(&mut command).expect_ok();
    let running = Running(&cli);
    pair.warm_up();
    let pid = || cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64().unwrap();
    let program_of = |pid: u64| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_else(|_| PathBuf::new());
    let upgrade = |arguments: &[&str]| {
        let all = [&["upgrade"], arguments].concat();
        lab.node().run_command(&mut cli.command(&all))
    };
    let first = pid();
    let mut owner = cli.command(&["exec", pair.name(), "--", "sleep", "600"]).spawn().unwrap();
    let inside = |cli: &Cli| {
        let carrier = "/sys/class/net/left/carrier_changes";
        cli.exec(pair.name(), &["sh", "-c", &format!("readlink /proc/self/ns/net; cat {carrier}")])
            .expect_ok()
            .stdout
    };
    let before = inside(&cli);

    // What is refused stops nothing.
    for (program, expected) in [
        ("/nowhere/hueplane", "/nowhere/hueplane: cannot be run"),
        ("/bin/true", "/bin/true: is not hueplane"),
    ] {
        let refused = upgrade(&["--program", program]).expect_code(3);
        assert!(refused.stderr.contains(expected) && refused.stderr.contains("--program"), "{refused}");
    }
    let elsewhere = cli.run(&["upgrade"]).expect_code(3);
    assert!(elsewhere.stderr.contains("nsenter --net --target"), "{elsewhere}");
    let heavier = pair.document.clone().with("weight", "3");
    cli.apply(&heavier.yaml(), &["--confirm-within", "600s"]);
    let pending = upgrade(&[]).expect_code(3);
    assert!(pending.stderr.contains("hueplane confirm"), "{pending}");
    let _ = cli.run(&["confirm"]).expect_ok();
    assert_eq!(pid(), first);

    // The package put another file in the place of the one that runs.
    fs::remove_file(&program).unwrap();
    copy_program(&program);
    let flow = Flow::start(&pair.left, &pair.right, 1_000, 100);
    until("traffic", 20, || flow.received() > 100);
    let programs = || {
        let shown = lab.node().run("ip", &["-d", "link", "show", "dev", &lab.ports()[0]]).expect_ok().stdout;
        let (_, after) = shown.split_once("prog/xdp id ")?;
        after.split(' ').next()?.parse::<u32>().ok()
    };
    let (first_program, upgraded) = (programs(), AtomicBool::new(false));
    assert!(first_program.is_some());
    let (done, seen) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = Vec::new();
            while !upgraded.load(Ordering::Relaxed) {
                seen.push(programs());
            }
            seen
        });
        let done = upgrade(&["-o", "json"]);
        upgraded.store(true, Ordering::Relaxed);
        (done.expect_ok().json(), watch.join().unwrap())
    });
    // The kernel takes tens of milliseconds to take the program away and attach one again.
    assert!(seen.iter().all(Option::is_some), "a port was without a program: {seen:?}");
    assert!(seen.last() != Some(&first_program), "the port has the program of the daemon before: {seen:?}");
    let second = pid();
    assert!(second != first && done["pid"] == second, "{done}");
    assert_eq!(done["networks"]["total"], 1, "{done}");
    assert_eq!(program_of(second), program);
    let line = fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
    assert!(
        line.contains("--workers\x001\0") && !line.contains("--empty") && !line.contains("first.yaml"),
        "{line}"
    );
    until("traffic flows again", 30, || {
        let received = flow.received();
        std::thread::sleep(Duration::from_millis(50));
        flow.received() > received
    });
    let report = flow.stop();
    assert!(report.received > 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
    eprintln!("interrupted for at most {} ms, as the command says; {report}", done["interrupted_ms"]);
    assert_eq!(inside(&cli), before, "the namespace, and its carrier");
    assert!(owner.try_wait().unwrap().is_none(), "what ran in the network goes on");
    let _ = cli.run_with(&["diff", "--exit-code", "-f", "-"], &heavier.yaml()).expect_ok();

    // A program that does not start: the daemon goes on.
    let broken = lab.folder().join("broken");
    let write = |then: &str| {
        let text =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo hueplane 9.9.9 && exit 0\n{then}\nexit 1\n");
        fs::write(&broken, text).unwrap();
        fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
        upgrade(&["--program", &broken.to_string_lossy()]).expect_code(1)
    };
    let failed = write("echo no luck >&2");
    assert!(failed.stderr.contains("no luck") && failed.stderr.contains("keeps running"), "{failed}");
    assert_eq!(pid(), second);
    // One that stops it and then does not start: it is started again, though its file has gone.
    fs::remove_file(&program).unwrap();
    let down = format!(
        "{} --socket {} down --keep; echo bad luck >&2",
        daemon::binary().display(),
        cli.socket().display()
    );
    let failed = write(&down);
    assert!(failed.stderr.contains("bad luck") && failed.stderr.contains("was started again"), "{failed}");
    assert_ne!(pid(), second);
    assert!(program_of(pid()).to_string_lossy().contains("hueplane-installed"));
    assert_eq!(inside(&cli), before);
    assert!(owner.try_wait().unwrap().is_none());
    pair.warm_up();
    drop(running);
    let _ = owner.wait();
    until("nothing is left", 20, || daemon::namespaces(&lab).is_empty());
}

/// What a switch has learnt is handed over: also of a host that does not send again.
#[test]
fn an_upgrade_keeps_what_a_switch_has_learnt() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = l2::hosts(&lab, 3);
    let file = lab.folder().join("first.yaml");
    fs::write(&file, all(&[lab.node_document(""), l2::document(&lab, 3, "", "")])).unwrap();
    let cli = Cli::new(&lab);
    let up = ["up", "--detach", "--workers", "1", "-f", &file.to_string_lossy()];
    let _ = lab.node().run_command(&mut cli.command(&up)).expect_ok();
    let _running = Running(&cli);
    let (silent, known) = ([2, 0xbb, 0, 0, 0, 0x77], hosts[0].mac);
    until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    let frame = |to: [u8; 6], from: [u8; 6]| [&to[..], &from, &[0x12, 0x34], &[7; 46]].concat();
    let mut socket = Raw::open(&hosts[2].space, "eth0");
    assert_eq!(socket.send([frame(known, silent).as_slice()]), 1);
    let learnt_at = || {
        let list = cli.json(&["get", "macs", "-n", &lab.name("lan")]);
        let found = list.as_array().unwrap().iter().find(|one| one["mac"] == text(silent)).cloned();
        found.map(|one| (one["port"].clone(), one["age_seconds"].as_u64().unwrap()))
    };
    until("it is learnt", 20, || learnt_at().is_some_and(|(port, age)| port == "v2" && age >= 1));
    let pid = || cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64().unwrap();
    let first = pid();
    let _ = lab.node().run_command(&mut cli.command(&["upgrade"])).expect_ok();
    assert_ne!(pid(), first);
    let (port, age) = learnt_at().expect("the silent host is known");
    assert!(port == "v2" && age >= 1, "{port} {age}");
    assert!(!cli.run_dir.join("learnt.json").exists());
    // Frames to it go to its port only.
    let seen = |host: &Host| Sniffer::start(&host.space, "eth0", move |frame| frame.starts_with(&silent));
    let (elsewhere, there) = (seen(&hosts[1]), seen(&hosts[2]));
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let frames = vec![frame(silent, known); 5];
    assert_eq!(socket.send(frames.iter().map(Vec::as_slice)), 5);
    until("they arrive", 20, || cli.stats(&lab.name("lan"))["forwarded"].as_u64().unwrap_or(0) >= 5);
    assert_eq!((there.stop().wanted, elsewhere.stop().wanted), (5, 0));
}

/// A daemon that handed over its place goes on forwarding. It ends when the next daemon asks it to, or has died.
#[test]
fn a_daemon_that_gave_up_its_place_forwards_until_the_next_one_is_ready_or_dead() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    let documents = all(&[lab.node_document(""), pair.document.yaml()]);
    let mut daemon = Daemon::start(&lab, &documents);
    daemon.cli.warm_up(&[&pair]);
    for next_dies in [true, false] {
        let body = r#"{"keep":true,"hand_over":true}"#;
        let request = format!(
            "POST /v1/down HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = hue_e2e::http::raw(&daemon.cli.socket(), request.as_bytes(), Duration::from_secs(10));
        assert_eq!(answer.status, 200, "{} {}", answer.head, answer.body);
        let lock = fs::File::open(daemon.cli.run_dir.join("hueplaned.pid")).unwrap();
        until("the place is free", 20, || lock.try_lock().is_ok());
        let flow = Flow::start(&pair.left, &pair.right, 500, 100);
        std::thread::sleep(Duration::from_millis(500));
        crate::migrate::is_whole(flow);
        assert!(daemon.ended().is_none());
        if next_dies {
            lock.unlock().unwrap();
        } else {
            daemon.signal(nix::sys::signal::Signal::SIGTERM);
        }
        until("the daemon has ended", 20, || daemon.ended() == Some(Some(0)));
        drop(lock);
        daemon.replace(&lab);
        until("the next daemon forwards", 20, || pair.left.ping(pair.right.address, 1) == 1);
    }
}

/// The kernel closes the ports of a killed process before it releases the lock of the run directory.
#[test]
fn a_daemon_starts_right_after_another_was_killed() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    let file = lab.folder().join("first.yaml");
    fs::write(&file, all(&[lab.node_document(""), pair.document.yaml()])).unwrap();
    let cli = Cli::new(&lab);
    let up = |more: &[&str]| {
        let _ = lab.node().run_command(&mut cli.command(&[&["up", "--detach"], more].concat())).expect_ok();
    };
    up(&["-f", &file.to_string_lossy()]);
    let _running = Running(&cli);
    for _ in 0..5 {
        let pid = cli.json(&["get", "nodes"])[0]["status"]["pid"].as_i64().unwrap();
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        up(&[]);
        until("the next daemon forwards", 20, || pair.left.ping(pair.right.address, 1) == 1);
    }
}
