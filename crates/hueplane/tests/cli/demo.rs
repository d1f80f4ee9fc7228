//! Runs `demo`: real hosts and a daemon, and everything is removed afterwards. Needs root, ping and iperf3.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hue_planes::Kind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::Scratch;

fn ready() -> bool {
    let missing = match () {
        () if !nix::unistd::geteuid().is_root() => "root",
        () if !Path::new("/usr/bin/iperf3").exists() => "iperf3",
        () if Command::new("ping").arg("-V").output().is_err() => "ping",
        () => return true,
    };
    hue_testdata::skipped(missing);
    false
}

/// Remains of a demo process: names of namespaces, its directory, control groups.
fn left(pid: u32) -> Vec<PathBuf> {
    let own = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("hdemo-{pid}-")))
    };
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| entry.path());
    let folder = Path::new("/run/hueplane-demo").join(pid.to_string());
    names.filter(own).chain(folder.exists().then_some(folder)).collect()
}

/// A demo that has reached a step; stopped if the test fails.
struct Started(Child);

impl Started {
    fn at(step: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hueplane"))
            .args(["demo", "--networks", "3", "-o", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let found = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with(step));
        std::thread::spawn(move || lines.for_each(drop));
        let started = Self(child);
        assert!(found, "the demo never reached {step}");
        started
    }

    fn end(&mut self, signal: Signal) -> (Option<i32>, String) {
        kill(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), signal).unwrap();
        let status = self.0.wait().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut text).unwrap();
        (status.code(), text)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_demo_passes_and_removes_everything() {
    if !ready() {
        return;
    }
    let done = Scratch::new().hueplane("demo --networks 4 --seconds 1 -o json");
    assert_eq!(done.code, 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["ok"], json["failures"].as_array().map(Vec::len)), (&Value::Bool(true), Some(0)));
    let networks = json["networks"].as_array().unwrap();
    assert_eq!(networks.len(), 4);
    for (index, network) in networks.iter().enumerate() {
        let number = |key: &str| network[key].as_u64().unwrap();
        assert_eq!((number("sent"), number("received"), number("lost"), number("leaked")), (10, 10, 0, 0));
        assert!(number("routes") > 0 && number("tried") > 0 && number("reached") == 0, "{network}");
        assert_eq!(
            network["mbit_per_second"].as_f64().is_some_and(|speed| speed > 1.0),
            index < 3,
            "{network}"
        );
        assert_eq!(network["ports"].as_array().unwrap().len(), 2);
    }
    for step in ["lab", "daemon", "networks", "routers", "ping", "iperf3", "isolation", "leaks", "removal"] {
        assert!(done.stderr.lines().any(|line| line.starts_with(step)), "{step}: {}", done.stderr);
    }
    let daemon = done.stderr.lines().find_map(|line| line.strip_prefix("daemon     process ")).unwrap();
    let daemon = daemon.split(' ').next().unwrap();
    assert!(!Path::new("/proc").join(daemon).exists(), "the daemon has stopped");
}

#[test]
fn the_whole_demo_passes_with_nics_beside_the_card() {
    if !ready() {
        return;
    }
    let demo = "demo --nics --seconds 1 -o json";
    let done = Scratch::new().hueplane_env(demo, &[("HUEPLANE_IMAGES", crate::card::images())]);
    let json = done.json();
    assert_eq!((done.code, &json["ok"]), (0, &Value::Bool(true)), "{done:?}");
    assert!(done.stderr.contains("a NIC beside each"), "{done:?}");
    let switch = &json["networks"][4];
    assert_eq!((&switch["kind"], &switch["ports"]), (&"l2".into(), &serde_json::json!(["p2", "p3"])));
    assert_eq!(
        (&switch["sent"], &switch["received"], &switch["substrate"]),
        (&10.into(), &10.into(), &"soft".into())
    );
    assert!(switch["macs"].as_u64().unwrap() >= 2 && switch["tried"].as_u64().unwrap() > 0, "{switch}");
    assert!(done.stderr.contains("\nswitch     purple: 2 hosts on one link; learnt "), "{}", done.stderr);
    let moves = json["card"]["migrations"].as_array().unwrap();
    // Neighbours of routers were redirected, and outside switches learnt the switch's hosts; hosts of other networks did not see this.
    let of = |name: &str| moves.iter().filter(|moved| moved["network"] == name).count();
    assert_eq!(["red", "olive", "purple", "pink", "coral", "cyan"].map(of), [2; 6], "{moves:?}");
    assert_eq!(json["card"]["reloaded"], serde_json::json!(["olive", "purple", "pink", "coral", "cyan"]));
    // A router of IPv6 knows its neighbours by two addresses each, and one of labels knows only MAC addresses.
    let told =
        |moved: &Value| moved["steering"]["neighbours"].as_u64() >= Some(2) || moved["network"] == "cyan";
    assert!(moves.iter().all(told), "{moves:?}");
    // There is one of each kind at least.
    let networks = json["networks"].as_array().unwrap();
    let kinds: BTreeSet<&str> = networks.iter().map(|network| network["kind"].as_str().unwrap()).collect();
    assert_eq!((networks.len(), kinds), (15, Kind::OFFERED.map(Kind::name).into()));
    let images = json["card"]["images"].as_array().unwrap();
    assert_eq!(
        images.iter().map(|one| one["image"].as_str().unwrap()).collect::<Vec<_>>(),
        ["kinds", "kinds", "default"]
    );
    for network in networks {
        assert_eq!(
            (&network["leaked"], &network["reached"]),
            (&Value::from(0), &Value::from(0)),
            "{network}"
        );
    }
}

#[test]
fn ctrl_c_removes_everything() {
    if !ready() {
        return;
    }
    for step in ["lab", "ping"] {
        let mut demo = Started::at(step);
        let pid = demo.0.id();
        assert!(!left(pid).is_empty());
        assert_eq!(demo.end(Signal::SIGINT), (Some(130), String::new()), "after {step}");
        assert_eq!(left(pid), Vec::<PathBuf>::new(), "after {step}");
    }
}

#[test]
fn remains_of_a_killed_demo_are_removed_by_the_next() {
    if !ready() {
        return;
    }
    let mut demo = Started::at("ping");
    let pid = demo.0.id();
    assert_eq!(demo.end(Signal::SIGKILL).0, None);
    // Its daemon detects that the demo has ended, and stops. Any later demo removes the rest: this one, one of another test,
    // or the next, if the directory is still locked.
    for _ in 0..3 {
        let done = Scratch::new().hueplane("demo --networks 1 --seconds 1");
        assert_eq!(done.code, 0, "{done:?}");
        if left(pid).is_empty() {
            break;
        }
    }
    assert_eq!(left(pid), Vec::<PathBuf>::new());
}
