//! `lab tables`: experiments on tables of the repository with known results, and errors.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Done, Scratch};

/// A scratch directory with the three tables of `labs/tables` in `set/`.
fn scratch() -> Scratch {
    let dir = Scratch::new();
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/tables");
    for name in ["blue.txt", "green.txt", "red.txt"] {
        dir.write(&format!("set/{name}"), fs::read(labs.join(name)).unwrap());
    }
    dir
}

/// Rows of the section whose title begins with `title`.
fn rows<'a>(report: &'a Value, title: &str) -> &'a [Value] {
    let sections = report["sections"].as_array().unwrap();
    let found = sections.iter().find(|section| section["title"].as_str().unwrap().starts_with(title));
    found.unwrap_or_else(|| panic!("no section '{title}'"))["rows"].as_array().unwrap()
}

fn lab(dir: &Scratch, arguments: &str) -> Done {
    dir.hueplane(&format!("lab tables --set three=set {arguments}"))
}

#[test]
fn three_tables_of_the_repository() {
    let dir = scratch();
    let report = lab(&dir, "--sample 400 --parts 4 --out out -o json").ok().json();
    // All other tables have all routes of blue; green has 40 more. Default routes do not count: 799 of 839.
    let pairs = rows(&report, "Prefixes of two tables");
    assert_eq!(pairs.len(), 3);
    let pair = &pairs[0];
    assert_eq!((&pair["first"], &pair["second"]), (&"blue".into(), &"green".into()));
    assert_eq!((&pair["prefixes of the second"], &pair["% the same"]), (&840.into(), &95.2.into()));
    // Distributed: the paper's four tables come first, then ours with 400 prefixes of each table but never
    // 1,600.
    let dealt = rows(&report, "One table dealt to 4 networks");
    assert_eq!(dealt.len(), 4 + 3);
    assert_eq!((&dealt[0]["% overlap"], &dealt[0]["CAM kbit"]), (&13.0.into(), &663.into()));
    assert!(dealt[4..].iter().all(|row| row["dealt"] == 400));
    let growing = rows(&report, "Conflict CAM as networks are added");
    let cam_rows: Vec<u64> = growing.iter().map(|row| row["CAM rows"].as_u64().unwrap()).collect();
    assert!(cam_rows[0] == 0 && cam_rows[0] < cam_rows[1] && cam_rows[1] < cam_rows[2], "{cam_rows:?}");
    // The papers' banks overflow where `table size` reports it, in chunks of 64 routes.
    let blue = &rows(&report, "The papers' banks")[0];
    let overflow = dir.hueplane("table size --layout dir --routes blue=set/blue.txt");
    let fitted = blue["routes that fit"].as_u64().unwrap();
    assert_eq!((&blue["overflow"], overflow.code), (&"sets of the second bank".into(), 4));
    let chunks = fitted / 64 * 64;
    assert!(overflow.stderr.contains(&format!("after {chunks} of 800 routes")), "{}", overflow.stderr);
    // Bytes per route equal those of `table size`.
    let routes = ["blue", "green", "red"].map(|name| format!("--routes {name}=set/{name}.txt")).join(" ");
    let all = rows(&report, "Bytes a route").last().unwrap();
    let dag36 = dir.hueplane(&format!("table size --encoding dag36 -o json {routes}")).ok().json();
    let words = all["dag36 words"].as_u64().unwrap();
    assert_eq!(dag36["bytes_total"].as_f64().unwrap(), words as f64 * 4.5);
    assert_eq!(all["tcam"], 10.0);
    // The same in files, as JSON and Markdown.
    let written: Value = serde_json::from_slice(&fs::read(dir.path("out/lab-tables.json")).unwrap()).unwrap();
    assert_eq!(written, report);
    let page = fs::read_to_string(dir.path("out/lab-tables.md")).unwrap();
    assert!(
        page.starts_with("# lab-tables\n\n- sets: three\n")
            && page.contains("\n| paper: rrc12 | 339K | 100K |"),
        "{page}"
    );
    let text = lab(&dir, "--sample 400").ok().stdout;
    assert!(text.contains("Bytes a route") && text.contains("sets of the second bank"), "{text}");
}

/// Without their default routes, which fill the first bank, all three fit into a `dir` with more sets and
/// rows.
#[test]
fn needs_equal_a_large_table() {
    let dir = scratch();
    for name in ["blue", "green", "red"] {
        let text = fs::read_to_string(dir.path(&format!("set/{name}.txt"))).unwrap();
        let kept: String = text
            .lines()
            .filter(|line| !line.starts_with("0.0.0.0/0 "))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(kept.len() < text.len());
        dir.write(&format!("set/{name}.txt"), kept);
    }
    let report = lab(&dir, "-o json").ok().json();
    let last = rows(&report, "Conflict CAM as networks are added").last().unwrap();
    let routes = ["blue", "green", "red"].map(|name| format!("--routes {name}=set/{name}.txt")).join(" ");
    let built =
        dir.hueplane(&format!("table size --layout dir --sets 2000 --cam-rows 10000 -o json {routes}"));
    let banks = &built.ok().json()["banks"];
    assert_eq!((&last["CAM rows"], &last["sets"]), (&banks["conflicts"], &banks["sets"]));
    let entries = banks["slots"].as_u64().unwrap() + banks["conflicts"].as_u64().unwrap();
    assert_eq!(last["entries of the first bank"], entries);
}

#[test]
fn results_depend_on_the_seed_and_equal_names_are_merged() {
    let dir = scratch();
    let one = lab(&dir, "--sample 400 -o json").ok().stdout;
    assert_eq!(lab(&dir, "--sample 400 -o json").ok().stdout, one);
    assert_ne!(lab(&dir, "--sample 400 --seed 2 -o json").ok().stdout, one);
    let files = ["blue", "green", "red"].map(|name| format!("--set three=set/{name}.txt")).join(" ");
    assert_eq!(dir.hueplane(&format!("lab tables {files} --sample 400 -o json")).ok().stdout, one);
}

#[test]
fn many_pairs_are_summarised() {
    let dir = scratch();
    for name in ["blue", "green", "red"] {
        fs::copy(dir.path(&format!("set/{name}.txt")), dir.path(&format!("set/{name}-2.txt"))).unwrap();
    }
    let report = lab(&dir, "-o json").ok().json();
    let pairs = rows(&report, "Prefixes of two tables");
    let which: Vec<&str> = pairs.iter().map(|row| row["second"].as_str().unwrap()).collect();
    assert_eq!((which, &pairs[0]["first"]), (vec!["least", "median", "most"], &"of 15 pairs".into()));
    assert_eq!(pairs[2]["% the same"], 100.0);
}

#[test]
fn invalid_input_is_reported() {
    let dir = scratch();
    lab(&dir, "--set absent=absent.txt").fails(3, "absent.txt");
    fs::create_dir(dir.path("empty")).unwrap();
    lab(&dir, "--set empty=empty").fails(3, "--set empty: found 0 tables");
    dir.write("bad.txt", "10.0.0.0/8 a\nnonsense\n");
    lab(&dir, "--set bad=bad.txt").fails(3, "bad.txt");
    lab(&dir, "--set bad=bad.txt --skip-bad").ok();
    lab(&dir, "--parts 1").fails(2, "--parts");
    // No routes at all, and addresses of the other family.
    dir.write("six.txt", "2001:db8::/32 a\n");
    let six = lab(&dir, "--set six=six.txt -o json").ok();
    assert!(six.stderr.contains("six.txt: 1 IPv6 routes omitted"), "{}", six.stderr);
    assert_eq!(rows(&six.json(), "Bytes a route").last().unwrap()["dag36"], Value::Null);
}
