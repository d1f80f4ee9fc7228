//! The commands that the guide shows exist, and the guide's first way is short. scripts/guide-way runs the ways' commands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::Cli;

/// The guide's ways: each leads one kind of reader from an installed package to a goal.
const WAYS: [&str; 3] = ["researcher.md", "operator.md", "fpga.md"];
/// Most commands from the package to the researcher's goal.
const RESEARCHERS_MAX: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The commands of a page, those after a `$`: each with the number of its line and the heading above it.
fn commands(text: &str) -> Vec<(usize, &str, String)> {
    let (mut found, mut heading): (Vec<(usize, &str, String)>, _) = (Vec::new(), "");
    let mut continues = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
        }
        let command = line.trim_start().strip_prefix("$ ");
        match (continues, command, found.last_mut()) {
            (true, _, Some((.., whole))) => {
                *whole = format!("{} {}", whole.trim_end_matches('\\').trim_end(), line.trim());
            }
            (_, Some(command), _) => found.push((number + 1, heading, command.to_owned())),
            _ => continue,
        }
        continues = line.ends_with('\\');
    }
    found
}

/// The programs that a line of shell runs, each as its words. Knows quotes, redirections, pipes and lists.
fn programs(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    for c in line.chars().chain([';']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | ';' | '|' | '&' | '(' | ')') => {
                words.extend(word.take());
                if c != ' ' {
                    all.push(std::mem::take(&mut words));
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    for words in &mut all {
        let redirects = |word: &String| word.starts_with(['>', '<']) || word.starts_with("2>");
        if let Some(at) = words.iter().position(redirects) {
            words.truncate(at);
        }
        // The rest of the line is a comment.
        if let Some(at) = words.iter().position(|word| word == "#") {
            words.truncate(at);
        }
        if words.first().is_some_and(|word| word == "sudo") {
            words.remove(0);
        }
    }
    all.retain(|words: &Vec<String>| !words.is_empty());
    all
}

/// Why a command of ours cannot be parsed.
fn refused(words: &[String]) -> Option<String> {
    let asked = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
    let error = Cli::command().try_get_matches_from(words).err()?;
    (!asked.contains(&error.kind())).then(|| error.to_string())
}

/// What is wrong with the commands of a page.
fn wrong(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (number, _, command) in commands(text) {
        for words in programs(&command).iter().filter(|words| words[0] == "hueplane") {
            out.extend(refused(words).map(|why| format!("line {number}: {command}: {why}")));
        }
    }
    out
}

/// Commands from the package to the goal: those of the first section that has any.
fn to_the_goal(text: &str) -> usize {
    let all = commands(text);
    all.iter().filter(|(_, heading, _)| *heading == all[0].1).count()
}

#[test]
fn every_command_of_the_guide_exists() {
    let mut checked = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = read(&path);
        checked += commands(&text).len();
        assert_eq!(wrong(&text), [""; 0], "{}", path.display());
    }
    assert!(checked > 60, "only {checked} commands were found");
}

#[test]
fn the_ways_begin_with_the_package_and_the_researchers_is_short() {
    for way in WAYS {
        let text = read(&folder().join(way));
        let all = commands(&text);
        assert!(all.first().is_some_and(|(_, _, first)| first.starts_with("dpkg -i ")), "{way}");
        let index = read(&folder().join("README.md"));
        assert!(index.contains(&format!("({way})")), "docs/guide/README.md does not link {way}");
    }
    let count = to_the_goal(&read(&folder().join(WAYS[0])));
    assert!((2..=RESEARCHERS_MAX).contains(&count), "the researcher's way takes {count} commands");
}

#[test]
fn a_wrong_command_and_a_long_way_are_found() {
    let page = |commands: &[&str]| {
        let lines: String = commands.iter().map(|command| format!("    $ {command}\n    output\n")).collect();
        format!("# Page\n\n## Way\n\n{lines}\n## More\n\n    $ hueplane status\n")
    };
    let good =
        ["dpkg -i x.deb", "sudo hueplane get routes -n red | head -3", "a & hueplane down >/dev/null # it"];
    assert_eq!(wrong(&page(&good)), [""; 0]);
    assert_eq!(to_the_goal(&page(&good)), 3);
    for bad in [
        "hueplane gets routes",
        "hueplane get routes --network",
        "true && hueplane attach",
        "hueplane \\\n      gone",
    ] {
        assert_eq!(wrong(&page(&[bad])).len(), 1, "{bad}");
    }
    assert_eq!(programs("hueplane trace --hex '0a 0b'; x")[0][3], "0a 0b");
}
