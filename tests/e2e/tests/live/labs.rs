//! The labs that need root: the commands of their pages, in the order of the page.
//!
//! A lab uses the daemon's usual directories. So its commands run with directories of their own in place of `/run` and `/var/lib`:
//! a daemon of this machine and other tests see nothing of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hue_e2e::{can_run, shell};

/// The folder of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands of a lab's page, from the one that makes its hosts to the one that removes them; none if it has no such commands.
fn commands(lab: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("labs").join(lab).join("README.md")).unwrap_or_default();
    let page = page.replace("\\\n", " ");
    let lines = page.lines().filter_map(|line| line.strip_prefix("    sudo "));
    let begin = format!("labs/{lab}/lab up");
    let mut all: Vec<String> = lines.skip_while(|line| *line != begin).map(str::to_owned).collect();
    let end = all.iter().position(|line| *line == format!("labs/{lab}/lab down"));
    all.truncate(end.map_or(0, |end| end + 1));
    all
}

/// Runs the commands of a page in directories of their own; what follows a failure still runs, so that nothing is left.
fn run(lab: &str, commands: &[String]) {
    let programs = hue_e2e::daemon::binary().parent().unwrap().display().to_string();
    let mut script = format!(
        "set -u\nmount -t tmpfs tmpfs /run\nmount -t tmpfs tmpfs /var/lib\nmkdir /run/netns\nexport PATH={programs}:$PATH\nstatus=0\n"
    );
    for command in commands {
        script += &format!("echo '$ {command}'\n{command} || {{ echo \"failed: $?\"; status=1; }}\n");
    }
    script += "exit $status\n";
    let mut unshare = shell::command("unshare");
    unshare.args(["--mount", "--propagation", "private", "bash", "-c", &script]).current_dir(root());
    let done = shell::run(&mut unshare);
    assert_eq!(done.code, 0, "{lab}: {done}");
}

/// Labs with checks of their own, and what they need.
const CHECKED: [(&str, &[&str]); 8] = [
    ("live", &["ping"]),
    ("dual", &["ping"]),
    ("tunnels", &["tshark"]),
    ("pwospf", &["ping"]),
    ("rofl-ring", &["ping"]),
    ("ecmp", &["zebra", "ospfd", "vtysh"]),
    ("process", &["python3", "ovs-vswitchd"]),
    ("splice", &["zebra", "ospfd", "bird", "python3"]),
];

#[test]
fn each_lab_with_commands_for_root_is_run() {
    let labs = std::fs::read_dir(root().join("labs")).unwrap();
    let labs = labs.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let found: BTreeSet<String> = labs.filter(|lab| !commands(lab).is_empty()).collect();
    let known: BTreeSet<String> = CHECKED.iter().map(|(lab, _)| (*lab).to_owned()).collect();
    assert_eq!(found, known);
}

#[test]
#[ignore = "long: make test-full"]
fn the_commands_of_pages_for_root_pass() {
    for (lab, needs) in CHECKED {
        if can_run(needs) {
            run(lab, &commands(lab));
        }
    }
}

#[test]
#[ignore = "long: make test-full"]
fn the_topologies_of_the_lab_pass() {
    if can_run(&["zebra", "ospfd", "ospf6d"]) {
        run("topology", &["labs/topology/check".to_owned()]);
    }
}
