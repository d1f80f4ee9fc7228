//! Benches of RTL modules know no place in a packed struct: they take them from hue_layout.h, which scripts/rtl-test makes from
//! the packages. So a struct can change without them.

use std::collections::BTreeSet;

use super::{files_of, relative};

/// The ports of a module whose type has a name: a packed struct.
fn struct_ports(module: &str) -> BTreeSet<String> {
    let lines = module.lines().filter_map(|line| line.split("//").next());
    let declared = lines.filter_map(|line| {
        let words: Vec<&str> = line.trim().trim_end_matches(',').split_whitespace().collect();
        let typed = words.iter().any(|word| word.ends_with("_t") || word.contains("_t["));
        let is_port = matches!(words.first(), Some(&"input" | &"output"));
        words.last().filter(|_| typed && is_port).map(|name| (*name).to_owned())
    });
    declared.collect()
}

/// Lines of a bench that read or write a place in one of these ports by a number.
fn numbered<'a>(bench: &'a str, ports: &BTreeSet<String>) -> Vec<&'a str> {
    let is_numbered = |line: &&str| {
        line.match_indices("bits(").any(|(at, call)| {
            let mut arguments = line[at + call.len()..].split(',');
            let signal = arguments.next().unwrap_or_default();
            let port = signal.rsplit(['>', '.']).next().unwrap_or_default();
            let place = arguments.next().unwrap_or_default().trim_start();
            ports.contains(port)
                && place.chars().all(|letter| letter.is_ascii_digit() || " +*".contains(letter))
        })
    };
    bench.lines().filter(is_numbered).collect()
}

#[test]
fn benches_take_places_of_fields_from_the_packages() {
    let read = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    let modules = files_of("rtl", "sv");
    let ports: BTreeSet<String> = modules.iter().flat_map(|path| struct_ports(&read(path))).collect();
    assert!(ports.contains("tbl_req_i") && ports.contains("s_arrival_i"), "{ports:?}");
    let benches = files_of("rtl/tests", "cpp");
    assert!(benches.len() > 20);
    let wrong = benches.iter().flat_map(|path| {
        let lines: Vec<String> = numbered(&read(path), &ports).into_iter().map(str::to_owned).collect();
        lines.into_iter().map(|line| format!("{}: {}", relative(path), line.trim())).collect::<Vec<_>>()
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_number_in_a_bench_is_found() {
    let ports = struct_ports("  input  hue_pkg::tbl_req_t tbl_req_i,\n  input logic [3:0] plain_i, // x_t\n");
    assert_eq!(ports, BTreeSet::from(["tbl_req_i".to_owned()]));
    for line in
        ["bench::set_bits(top->tbl_req_i, 290, 1, 1);", "x = bench::bits(top_.tbl_req_i, 256 + 8, 3);"]
    {
        assert_eq!(numbered(line, &ports), [line]);
    }
    for line in [
        "bench::bits(top->tbl_req_i, 8 * at, 1)",
        "bench::bits(top->plain_i, 2, 1)",
        "bench::get(top->tbl_req_i, X)",
    ] {
        assert!(numbered(line, &ports).is_empty(), "{line}");
    }
}
