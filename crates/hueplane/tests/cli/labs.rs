//! The labs that need no root: what their pages show is what their commands print, and their files are current.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::Scratch;

fn labs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // Beside their folders is what several labs use.
    let mut labs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    labs.sort();
    labs
}

/// A scratch directory in which the labs are where they are in the project.
fn project() -> Scratch {
    let dir = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs").canonicalize().unwrap();
    std::os::unix::fs::symlink(folder, dir.path("labs")).unwrap();
    dir
}

/// The commands of a page, each with the lines that the page shows after it. They are indented lines; a command begins
/// with `$` and continues after a backslash (the pages of the guide have the same form).
fn commands(page: &str) -> Vec<(String, Vec<&str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    let mut shows = false;
    for line in page.lines() {
        let Some(text) = line.strip_prefix("    ") else {
            shows = false;
            continue;
        };
        if let Some(command) = text.strip_prefix("$ ") {
            found.push((command.to_owned(), Vec::new()));
            shows = true;
        } else if let Some((command, shown)) = found.last_mut().filter(|_| shows) {
            match command.strip_suffix('\\') {
                Some(begun) => *command = format!("{begun}{text}"),
                None => shown.push(text),
            }
        }
    }
    found
}

/// Why the output is not what a page shows. `…` alone stands for any lines, at the end of a line for any end.
fn difference(shown: &[&str], printed: &[&str]) -> Option<String> {
    // Numbers of printed lines that the shown ones so far can stand for.
    let mut reached = BTreeSet::from([0]);
    for line in shown {
        if *line == "…" {
            reached = (reached.first().copied()?..=printed.len()).collect();
            continue;
        }
        let fits = |text: &str| match line.strip_suffix('…') {
            Some(start) => text.starts_with(start),
            None => text == *line,
        };
        let next = |at: usize| printed.get(at).filter(|text| fits(text)).map(|_| at + 1);
        let following: BTreeSet<usize> = reached.iter().filter_map(|at| next(*at)).collect();
        if following.is_empty() {
            return Some(format!("the page shows, but the command does not print there: {line}"));
        }
        reached = following;
    }
    let last = reached.last().copied().unwrap_or(0);
    (!reached.contains(&printed.len())).then(|| format!("the page does not show: {}", printed[last]))
}

#[test]
fn commands_of_the_pages_print_what_the_pages_show() {
    let (dir, mut ran) = (project(), 0);
    for lab in labs() {
        let page = fs::read_to_string(lab.join("README.md")).unwrap();
        for (command, shown) in commands(&page) {
            let arguments = command.strip_prefix("hueplane ").expect("a command of hueplane");
            let done = dir.hueplane(arguments).ok();
            let printed: Vec<&str> = done.stdout.lines().collect();
            if let Some(difference) = difference(&shown, &printed) {
                panic!("{}: {command}: {difference}\n{}", lab.display(), done.stdout);
            }
            ran += 1;
        }
    }
    assert!(ran >= 4, "{ran} commands");
}

#[test]
fn captures_give_the_expected_result() {
    let (dir, mut ran) = (project(), 0);
    for lab in labs() {
        let Ok(expected) = fs::read_to_string(lab.join("expected.json")) else { continue };
        let name = lab.file_name().unwrap().to_str().unwrap();
        let ports = (0..4).filter(|port| lab.join(format!("p{port}.pcap")).is_file());
        let inputs = ports.map(|port| format!("--in p{port}=labs/{name}/p{port}.pcap"));
        let inputs = inputs.collect::<Vec<_>>().join(" ");
        let run = format!("run -f labs/{name}/hueplane.yaml {inputs} --out out/{name} -o json");
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(dir.hueplane(&run).ok().json(), expected, "{name}");
        // What the list of packets says about outcomes with a name adds up to the same.
        let packets = fs::read_to_string(lab.join("packets.md")).unwrap();
        let said = |what: &str| packets.matches(what).count() as u64;
        for network in expected["networks"].as_object().unwrap().values() {
            for (reason, count) in network["drop"].as_object().unwrap() {
                assert_eq!(count.as_u64().unwrap(), said(&format!("drop `{reason}`")), "{name}: {reason}");
            }
        }
        ran += 1;
    }
    assert!(ran >= 2, "{ran} labs");
}

#[test]
fn captures_are_those_that_the_scripts_write() {
    if Command::new("python3").arg("--version").output().is_err() {
        hue_testdata::skipped("python3");
        return;
    }
    let mut ran = 0;
    for script in labs().iter().map(|lab| lab.join("make-captures.py")).filter(|script| script.is_file()) {
        let done = Command::new("python3").arg("-B").arg(&script).arg("--check").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        ran += 1;
    }
    assert!(ran >= 2, "{ran} scripts");
}

#[test]
fn a_page_that_shows_something_else_is_noticed() {
    let page = "Text\n\n    $ hueplane one \\\n        two\n    a\n    …\n    z\n\nText\n\n    no command\n";
    assert_eq!(commands(page), [("hueplane one     two".to_owned(), vec!["a", "…", "z"])]);
    let fits = |shown: &[&str], printed: &[&str]| difference(shown, printed).is_none();
    assert!(fits(&["a", "…", "z"], &["a", "b", "z", "y", "z"]) && fits(&["a", "…"], &["a"]));
    assert!(fits(&["ab…", "c"], &["abc", "c"]) && fits(&[], &[]));
    assert!(!fits(&["a", "…", "z"], &["a", "z", "y"]) && !fits(&["a"], &["a", "b"]));
    assert!(!fits(&["a", "b"], &["a"]) && !fits(&["ab…"], &["b"]) && !fits(&[], &["a"]));
}
