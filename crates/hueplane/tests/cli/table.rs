//! `table size|lookup|replay`: results, formats, limits, and errors.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::json;

use crate::card::images;
use crate::support::Scratch;

const A: &str = "# a comment\n10.0.0.0/8 first\n10.1.0.0/16 b\tucst\tge-0/0/0\n10.0.0.0/8 a\n\n2001:db8::/32 six\n192.0.2.0/24\n";

fn scratch() -> Scratch {
    let dir = Scratch::new();
    dir.write("a.txt", A);
    dir
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn sizes_are_accounted_by_network() {
    let dir = scratch();
    let one = dir.hueplane("table size --layout dag --routes a=a.txt -o json").ok().json();
    let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert_eq!(
        (&one["layout"], &one["encoding"], &one["overflow"]),
        (&"dag".into(), &"dag64".into(), &json!(null))
    );
    let network = &one["networks"][0];
    assert_eq!((&network["name"], &network["routes"]), (&"a".into(), &4.into()));
    assert_eq!(network["bytes_own"], one["bytes_total"]);
    assert_eq!(network["bytes_marginal"], one["bytes_total"], "alone, all of it is its own");
    dir.write("c.txt", "172.16.0.0/12 z\n172.16.5.0/24 y\n");
    let three =
        dir.hueplane("table size --routes a=a.txt --routes b=a.txt --routes c=c.txt -o json").ok().json();
    let of = |index: usize, field: &str| three["networks"][index][field].as_u64().unwrap();
    assert_eq!(of(0, "bytes_own"), of(1, "bytes_own"));
    assert_eq!((of(0, "bytes_marginal"), of(1, "bytes_marginal")), (0, 0), "equal tables are stored once");
    assert!(of(2, "bytes_marginal") > 0);
    let total = three["bytes_total"].as_u64().unwrap();
    assert_eq!(total, of(0, "bytes_own") + of(2, "bytes_marginal"));
    let table = dir.hueplane("table size --routes a=a.txt").ok().stdout;
    assert!(table.contains("NETWORK") && table.contains("total"), "{table}");
    let yaml = dir.hueplane("table size --routes a=a.txt -o yaml").ok().stdout;
    assert!(yaml.starts_with("layout: dag\nencoding: dag64\nbytes_total: "), "{yaml}");
    assert!(yaml.ends_with("\noverflow: null\n"), "{yaml}");
}

#[test]
fn dag36_counts_words_of_36_bits() {
    let dir = scratch();
    let size = dir.hueplane("table size --layout dag --encoding dag36 --routes a=a.txt -o json").ok().json();
    assert_eq!(size["encoding"], "dag36");
    let bytes = size["bytes_total"].as_f64().unwrap();
    assert!(bytes > 0.0 && (bytes / 4.5).fract() == 0.0, "{size}");
    let queries = "a 10.1.2.3\na 10.2.0.0\na 11.0.0.0\na 2001:db8::1\n";
    let lookup = |encoding: &str| {
        let args = [
            "table",
            "lookup",
            "--encoding",
            encoding,
            "--routes",
            "a=a.txt",
            "--queries",
            "-",
            "-o",
            "json",
        ];
        dir.hueplane_with(&args, queries).ok().stdout
    };
    assert_eq!(lookup("dag36"), lookup("dag64"));
    dir.write("u.txt", "A 10.1.2.0/24 x\nW 10.0.0.0/8\nA 2001:db9::/32 y\n");
    let replayed = dir
        .hueplane("table replay --encoding dag36 --routes a=a.txt --updates u.txt --verify 4 -o json")
        .ok();
    assert_eq!(
        (&replayed.json()["routes_after"], &replayed.json()["encoding"]),
        (&5.into(), &"dag36".into())
    );
    let full = dir.hueplane("table size --encoding dag36 --limit 60 --routes a=a.txt -o json");
    assert_eq!(full.code, 4, "{full:?}");
    assert!(full.json()["overflow"].is_string());
}

/// The same tables on the card, written through its registers and looked up with packets.
#[test]
fn the_card_answers_like_software() {
    let dir = Scratch::new();
    let mut routes =
        String::from("0.0.0.0/0 up\n10.0.0.0/8 a\n10.1.0.0/16 b\n10.1.2.0/24 c\n10.1.2.3/32 d\n");
    // Nodes of every form: 12 runs use pivots, 100 a map.
    (0..6).for_each(|i| writeln!(routes, "10.2.{}.0/24 e{i}", 40 * i).unwrap());
    (0..100).for_each(|i| writeln!(routes, "10.3.{}.0/24 f{i}", 2 * i).unwrap());
    dir.write("a.txt", &routes);
    dir.write("b.txt", "10.1.0.0/17 other\n");
    let mut queries =
        String::from("a 10.1.2.3\na 10.1.2.4\na 10.1.3.0\na 11.0.0.1\nb 10.1.2.3\nb 10.2.0.0\n");
    (0..256).for_each(|i| writeln!(queries, "a 10.2.{i}.1\na 10.3.{i}.1").unwrap());
    dir.write("q.txt", &queries);
    let run = |line: &str| dir.hueplane_env(line, &[("HUEPLANE_IMAGES", images())]);
    let files = "--routes a=a.txt --routes b=b.txt";
    let mut card = run(&format!("table lookup --on card {files} --queries q.txt -o json")).ok().json();
    let soft = dir.hueplane(&format!("table lookup {files} --queries q.txt -o json")).ok().json();
    let reads: Vec<u64> = card
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .map(|answer| answer.as_object_mut().unwrap().remove("reads").unwrap().as_u64().unwrap())
        .collect();
    assert_eq!(card, soft);
    // /32 of a: lists of 2, 2 or 3 words at each of the four bytes. b has one route: 2 words for each of
    // three bytes.
    assert!((8..=12).contains(&reads[0]) && reads[4] == 6 && reads[5] == 4, "{reads:?}");
    assert!(reads.iter().all(|reads| (1..=12).contains(reads)));
    // With tables on chip, the card does not count its reads.
    let chip =
        run(&format!("table lookup --on card --image default {files} --queries q.txt -o json")).ok().json();
    assert_eq!(chip, soft);
    // The papers' banks: one word or two. A default route would leave nothing for the other network.
    dir.write("c.txt", routes.replace("0.0.0.0/0 up\n", "11.0.0.0/8 up\n"));
    let files_dir = "--routes a=c.txt --routes b=b.txt";
    let mut banks =
        run(&format!("table lookup --on card --image dir {files_dir} --queries q.txt -o json")).ok().json();
    let soft_dir = dir.hueplane(&format!("table lookup {files_dir} --queries q.txt -o json")).ok().json();
    for answer in banks.as_array_mut().unwrap() {
        let reads = answer.as_object_mut().unwrap().remove("reads").unwrap();
        assert!((1..=2).contains(&reads.as_u64().unwrap()), "{reads}");
    }
    assert_eq!(banks, soft_dir);
    dir.write("u.txt", "A 10.1.2.0/24 x\nW 10.0.0.0/8\nW 10.3.4.0/24\nA 10.2.9.0/24 y\n");
    let replay = run(&format!("table replay --on card {files} --updates u.txt --verify 3 --seed 5 -o json"))
        .ok()
        .json();
    assert_eq!((&replay["layout"], &replay["verified"]["lookups"]), (&"card".into(), &6000.into()));
    assert_eq!(replay["routes_after"], 110);
    let size = run(&format!("table size --on card {files} -o json")).ok().json();
    assert!(size["bytes_total"].as_f64().unwrap() > 100.0 && size["layout"] == "card", "{size}");
    // Unsupported requests are reported.
    dir.write("group.txt", "a 224.0.0.5\n");
    let group = run(&format!("table lookup --on card {files} --queries group.txt"));
    assert!(
        group.code == 3
            && group.stderr.contains("224.0.0.5: multicast addresses cannot be looked up on the card"),
        "{group:?}"
    );
    let both = run(&format!("table size --on card --encoding dag64 {files}"));
    assert!(both.code == 2 && both.stderr.contains("--encoding"), "{both:?}");
    let many: String = (0..40).map(|i| format!("10.{i}.0.0/16 hop\n")).collect();
    dir.write("many.txt", &many);
    let full = run("table size --on card --image tcam3 --routes a=many.txt -o json");
    assert_eq!(
        (full.code, full.json()["overflow"].as_str().unwrap()),
        (
            4,
            concat!(
                "network 'a': table full after 0 of 40 routes: it needs 40 route rows, and image tcam3 has 32; ",
                "use fewer routes or another --image"
            )
        )
    );
    let files: Vec<String> = (1..=4).map(|i| format!("--routes n{i}=b.txt")).collect();
    let full = run(&format!("table size --on card --image tcam3 {} -o json", files.join(" ")));
    let overflow = full.json()["overflow"].as_str().unwrap().to_owned();
    assert!(
        full.code == 4
            && overflow.contains("network 'n4': table full after 0 of 1 routes: it is network number 4"),
        "{full:?}"
    );
}

/// The same for IPv6: keys of 128 bits, up to the last of their 16 bytes.
#[test]
fn the_card_answers_like_software_for_ipv6() {
    let dir = Scratch::new();
    let mut routes = String::from(
        "::/0 up\n2001:db8::/32 a\n2001:db8:1::/48 b\n2001:db8:1:2::/64 c\n2001:db8:1:2::3/128 d\n",
    );
    (0..6).for_each(|i| writeln!(routes, "2001:db8:2:{:x}::/56 e{i}", 0x1000 * i).unwrap());
    (0..100).for_each(|i| writeln!(routes, "2001:db8:3:0:0:0:0:{:x}/127 f{i}", 2 * i).unwrap());
    dir.write("a.txt", &routes);
    dir.write("b.txt", "2001:db8::/47 other\n");
    // A network of the other family beside it.
    dir.write("c.txt", "10.1.0.0/16 four\n");
    let mut queries = String::from(
        "a 2001:db8:1:2::3\na 2001:db8:1:2::4\na 2001:db9::\nb 2001:db8:1::9\nb 2001:db8:2::\nc 10.1.2.3\n",
    );
    (0..256).for_each(|i| writeln!(queries, "a 2001:db8:2:{i:x}00::1\na 2001:db8:3::{i:x}").unwrap());
    dir.write("q.txt", &queries);
    let run = |line: &str| dir.hueplane_env(line, &[("HUEPLANE_IMAGES", images())]);
    let files = "--routes a=a.txt --routes b=b.txt --routes c=c.txt";
    let mut card = run(&format!("table lookup --on card {files} --queries q.txt -o json")).ok().json();
    let soft = dir.hueplane(&format!("table lookup {files} --queries q.txt -o json")).ok().json();
    let answers = card.as_array_mut().unwrap().iter_mut();
    let reads: Vec<u64> =
        answers.map(|one| one.as_object_mut().unwrap().remove("reads").unwrap().as_u64().unwrap()).collect();
    assert_eq!(card, soft);
    // A /128 needs a node for each of 16 bytes, with 2 or 3 words each.
    assert!((32..=48).contains(&reads[0]) && reads.iter().all(|reads| (1..=48).contains(reads)), "{reads:?}");
    dir.write("u.txt", "A 2001:db8:1:2::/64 x\nW 2001:db8::/32\nW 2001:db8:3::4/127\nA 2001:db8:9::/48 y\n");
    let files = "--routes a=a.txt --routes b=b.txt";
    let replay = run(&format!("table replay --on card {files} --updates u.txt --verify 2 --seed 5 -o json"))
        .ok()
        .json();
    assert!(replay["verified"]["lookups"].as_u64().unwrap() >= 4000, "{replay}");
    for address in ["ff02::5", "fe80::1", "::1"] {
        dir.write("q.txt", format!("a {address}\n"));
        let refused = run(&format!("table lookup --on card {files} --queries q.txt"));
        assert!(
            refused.code == 3 && refused.stderr.contains("cannot be looked up on the card"),
            "{refused:?}"
        );
    }
    let other = run(&format!("table size --on card --image default {files}"));
    let why = "there are ipv6 routes, but image default has no such kind; use another --image";
    assert!(other.code == 3 && other.stderr.contains(why), "{other:?}");
}

/// The papers' layouts: two banks with a Conflict CAM, and ternary rows.
#[test]
fn the_papers_layouts_answer_and_report_their_limits() {
    let dir = Scratch::new();
    dir.write("a.txt", "10.0.0.0/8 first\n10.1.0.0/16 second\n10.1.2.0/24 third\n");
    dir.write("b.txt", "10.0.0.0/9 other\n172.16.0.0/12 else\n");
    let size = dir.hueplane("table size --layout dir --routes a=a.txt --routes b=b.txt -o json").ok().json();
    assert_eq!((&size["layout"], &size["encoding"]), (&"dir".into(), &"dir".into()));
    // a: 2,048 slots of the /8, one of them a set. b: its entire /9 conflicts, in one row.
    assert_eq!(
        size["banks"],
        json!({"slots": 2048 + 128, "slots_max": 1 << 19, "sets": 1, "sets_max": 64, "conflicts": 1, "conflicts_max": 32})
    );
    let words = 2048 + 128 + 1 + 8192;
    assert_eq!(size["bytes_total"].as_f64().unwrap(), f64::from(words) * 4.5);
    let of = |index: usize, field: &str| size["networks"][index][field].as_f64().unwrap() / 4.5;
    assert_eq!((of(0, "bytes_own"), of(1, "bytes_own")), (2048.0 + 8192.0, 1024.0 + 128.0));
    // Without a, b's /9 is at its own slots; without b, its row and the /12 are free.
    assert_eq!((of(0, "bytes_marginal"), of(1, "bytes_marginal")), (2048.0 + 8192.0 + 1.0 - 1024.0, 129.0));
    let table = dir.hueplane("table size --layout dir --routes a=a.txt --routes b=b.txt").ok().stdout;
    assert!(table.contains("Conflict CAM 1 of 32 rows"), "{table}");
    dir.write(
        "q.txt",
        "a 10.1.2.3\na 10.1.3.0\na 10.200.0.1\nb 10.1.2.3\nb 10.200.0.1\nb 172.31.0.1\na 172.31.0.1\n",
    );
    for (layout, reads) in [("dir", [2, 2, 1, 1, 1, 1, 1]), ("tcam", [1; 7])] {
        let args = format!(
            "table lookup --layout {layout} --routes a=a.txt --routes b=b.txt --queries q.txt -o json"
        );
        let answers = dir.hueplane(&args).ok().json();
        let hops = ["third", "second", "first", "other", "", "else", ""];
        for ((answer, hop), reads) in answers.as_array().unwrap().iter().zip(hops).zip(reads) {
            let expected = if hop.is_empty() { json!(null) } else { hop.into() };
            assert_eq!(
                (&answer["next_hop"], &answer["reads"]),
                (&expected, &reads.into()),
                "{layout} {answer}"
            );
        }
    }
    // Each limit is reported with figures, and the routes that fit stay.
    let both = "--routes a=a.txt --routes b=b.txt";
    for (args, text) in [
        (
            "--layout dir --sets 0",
            "'a': table full after 0 of 3 routes: prefixes longer than 19 bits need 1 sets",
        ),
        (
            "--layout dir --cam-rows 0",
            "'b': table full after 0 of 2 routes: routes that conflict with other networks need 1",
        ),
        ("--layout tcam --plane-rows 2", "'a': table full after 0 of 3 routes: a plane has only 2 rows"),
    ] {
        let done = dir.hueplane(&format!("table size {args} {both} -o json"));
        assert_eq!(done.code, 4, "{args}: {}", done.stderr);
        assert!(done.stderr.contains(text), "{}", done.stderr);
        assert!(done.json()["overflow"].as_str().unwrap().contains(text), "{}", done.stdout);
    }
    dir.write("six.txt", "2001:db8::/32 x\n");
    dir.hueplane("table size --layout dir --routes a=six.txt").fails(3, "only IPv4");
    // Changes, compared with a linear search.
    let updates: Vec<String> = (0..200u32)
        .map(|n| match n % 3 {
            2 => format!("W 10.{}.{}.0/{}", n / 3 % 4, n % 7 * 32, 19 + n % 5 / 4),
            _ => format!("A 10.{}.{}.0/{} hop{}", n / 3 % 4, n % 7 * 32, 19 + n % 5 / 4, n % 9),
        })
        .collect();
    dir.write("u.txt", updates.join("\n"));
    for layout in ["dir", "tcam"] {
        let args = format!(
            "table replay --layout {layout} --plane-rows 99 --cam-rows 99 {both} --updates b=u.txt --verify 9 -o json"
        );
        let report = dir.hueplane(&args).ok().json();
        assert_eq!((&report["applied"], &report["encoding"]), (&200.into(), &layout.into()), "{report}");
    }
}

#[test]
fn a_full_table_is_reported_with_its_own_exit_code() {
    let dir = Scratch::new();
    let routes: String = (0..20_000u32)
        .map(|i| format!("{}.{}.{}.0/24 h{}\n", 1 + i / 65536, i >> 8 & 255, i & 255, i % 7919))
        .collect();
    dir.write("big.txt", &routes);
    dir.write("small.txt", "10.0.0.0/8 a\n");
    let done = dir.hueplane("table size --limit 16KiB --routes small=small.txt --routes big=big.txt -o json");
    assert_eq!(done.code, 4, "{done:?}");
    let json = done.json();
    let text = json["overflow"].as_str().unwrap();
    assert!(text.contains("network 'big': table full after") && text.contains("of 20000 routes"), "{text}");
    assert_eq!(json["networks"][0]["routes"], 1);
    assert!(json["networks"][1]["routes"].as_u64().unwrap() < 20_000);
    assert!(json["bytes_total"].as_u64().unwrap() <= 16 << 10);
    assert!(done.stderr.contains("table full"), "{}", done.stderr);
    dir.write("q.txt", "small 10.0.0.1\n");
    dir.hueplane(
        "table lookup --limit 16KiB --routes small=small.txt --routes big=big.txt --queries q.txt -o json",
    )
    .fails(4, "table full");
    let updates: String = routes.lines().map(|line| format!("A {line}\n")).collect();
    dir.write("u.txt", updates);
    let done = dir.hueplane("table replay --limit 16KiB --routes small=small.txt --updates u.txt -o json");
    assert_eq!(done.code, 4, "{done:?}");
    let json = done.json();
    assert!(json["overflow"].as_str().unwrap().contains("network 'small': table full"));
    assert_eq!(json["routes_after"].as_u64(), json["applied"].as_u64().map(|applied| applied + 1));
    assert_eq!(dir.hueplane("table size --limit 5XB --routes a=small.txt").code, 2);
}

#[test]
fn lookups_are_answered_in_order() {
    let dir = scratch();
    dir.write("b.txt.gz", gzip(b"0.0.0.0/0 default\n10.1.2.3/32 host\n"));
    dir.write("q.txt", "b 10.1.2.3\na 10.1.2.3\n# note\na 2001:db8::5\na 2001:db9::5\nb 9.9.9.9\na 10.2.0.0\na 192.0.2.7\nb ::1\n");
    let answer = |network: &str, address: &str, prefix: Option<&str>, hop: Option<&str>| json!({"network": network, "address": address, "prefix": prefix, "next_hop": hop});
    let want = json!([
        answer("b", "10.1.2.3", Some("10.1.2.3/32"), Some("host")),
        answer("a", "10.1.2.3", Some("10.1.0.0/16"), Some("b")),
        answer("a", "2001:db8::5", Some("2001:db8::/32"), Some("six")),
        answer("a", "2001:db9::5", None, None),
        answer("b", "9.9.9.9", Some("0.0.0.0/0"), Some("default")),
        answer("a", "10.2.0.0", Some("10.0.0.0/8"), Some("a")),
        answer("a", "192.0.2.7", Some("192.0.2.0/24"), Some("")),
        answer("b", "::1", None, None),
    ]);
    let args = "table lookup --layout dag --routes a=a.txt --routes b=b.txt.gz --queries";
    assert_eq!(dir.hueplane(&format!("{args} q.txt -o json")).ok().json(), want);
    let stdin = std::fs::read_to_string(dir.path("q.txt")).unwrap();
    let args: Vec<&str> = args.split(' ').chain(["-", "-o", "json"]).collect();
    assert_eq!(dir.hueplane_with(&args, &stdin).ok().json(), want);
    assert_eq!(dir.hueplane_with(&args, "").ok().json(), json!([]));
    let yaml = dir.hueplane("table lookup --routes a=a.txt --queries q.txt --skip-bad -o yaml").ok().stdout;
    assert!(
        yaml.starts_with("- network: a\n  address: \"10.1.2.3\"\n  prefix: \"10.1.0.0/16\"\n  next_hop: b\n"),
        "{yaml}"
    );
    let table = dir.hueplane("table lookup --routes a=a.txt --routes b=b.txt.gz --queries q.txt").ok().stdout;
    assert!(table.contains("no route") && table.contains("host"), "{table}");
}

#[test]
fn invalid_files_are_reported_with_file_and_line() {
    let dir = scratch();
    dir.write("bad.txt", "10.0.0.0/8 a\n10.0.0.0/33 b\n11.0.0.1/8 c\n12.0.0.0/8 d\n");
    let done = dir.hueplane("table size --routes a=a.txt --routes bad=bad.txt -o json");
    done.fails(3, "bad.txt:2: found '10.0.0.0/33 b', expected PREFIX [NEXTHOP]");
    done.fails(3, "(prefix length '33' is not a number from 0 to 32)");
    dir.write("short.txt", "10.0.0/24 b\n");
    dir.hueplane("table size --routes a=short.txt").fails(3, "('10.0.0' is not an IPv4 or IPv6 address)");
    let done = dir.hueplane("table size --routes bad=bad.txt --skip-bad -o json").ok();
    assert_eq!((&done.json()["skipped"], &done.json()["networks"][0]["routes"]), (&2.into(), &2.into()));
    assert!(done.stderr.contains("bad.txt: 2 invalid lines skipped"), "{}", done.stderr);
    dir.write("q.txt", "a 10.0.0.1\nz 10.0.0.1\n");
    dir.hueplane("table lookup --routes a=a.txt --queries q.txt -o json")
        .fails(3, "q.txt:2: found network 'z', expected one of: a");
    dir.write("u.txt", "A 10.0.0.0/8 x\nD 10.0.0.0/8\n");
    dir.hueplane("table replay --routes a=a.txt --updates u.txt -o json")
        .fails(3, "u.txt:2: found 'D 10.0.0.0/8', expected A PREFIX [NEXTHOP] or W PREFIX");
    let done = dir.hueplane("table replay --routes a=a.txt --updates u.txt --skip-bad -o json").ok();
    assert_eq!((&done.json()["skipped"], &done.json()["applied"]), (&1.into(), &1.into()));
    dir.hueplane("table size --routes a=absent.txt").fails(3, "absent.txt: cannot be read");
    let whole = gzip(A.as_bytes());
    dir.write("cut.gz", &whole[..whole.len() - 9]);
    dir.hueplane("table size --routes a=cut.gz")
        .fails(3, "cut.gz: found damaged or truncated compressed data");
    dir.hueplane("table size --routes a=a.txt --routes a=a.txt").fails(2, "a second network named 'a'");
    assert_eq!(dir.hueplane("table size --routes a.txt").code, 2);
    assert_eq!(dir.hueplane("table size").code, 2);
    assert_eq!(dir.hueplane("table lookup --routes a=a.txt").code, 2);
    assert_eq!(dir.hueplane("table size --layout hash --routes a=a.txt").code, 2);
    dir.hueplane("table replay --routes a=a.txt --updates z=u.txt")
        .fails(2, "found network 'z', expected one of: a");
}

#[test]
fn a_replay_counts_and_verifies() {
    let dir = scratch();
    dir.write("u.txt", "A 10.1.2.0/24 x\nA 10.0.0.0/8 y\nW 10.1.0.0/16\nW 99.0.0.0/8\nW 2001:db8::/32\nA 2001:db9::/32 six\nA 3000::/4\n");
    for batch in ["1", "3", "100"] {
        let done = dir
            .hueplane(&format!("table replay --layout dag --routes z=a.txt --routes a=a.txt --updates a=u.txt --batch {batch} --verify 5 --seed 7 -o json"))
            .ok();
        let json = done.json();
        assert_eq!((&json["network"], &json["applied"]), (&"a".into(), &7.into()));
        assert_eq!(
            (&json["announced"], &json["withdrawn"], &json["unknown_withdrawals"]),
            (&4.into(), &3.into(), &1.into())
        );
        assert_eq!((&json["routes_before"], &json["routes_after"]), (&4.into(), &5.into()));
        assert_eq!((&json["verified"]["moments"], &json["verified"]["seed"]), (&5.into(), &7.into()));
        assert!(json["bytes_after"].as_u64() > json["bytes_before"].as_u64());
    }
    let done = dir.hueplane("table replay --routes a=a.txt --updates u.txt --verify").ok();
    assert!(done.stderr.contains("--verify 16 --seed "), "{}", done.stderr);
    assert!(done.stderr.contains("7 changes in"), "{}", done.stderr);
    assert!(
        done.stdout.contains("routes 4 -> 5") && done.stdout.contains("verified at 16 moments"),
        "{}",
        done.stdout
    );
}

#[test]
fn an_empty_table_and_an_mrt_dump() {
    let dir = scratch();
    dir.write("empty.txt", "");
    let json = dir.hueplane("table size --routes e=empty.txt -o json").ok().json();
    assert_eq!(json["networks"][0]["routes"], 0);
    // RFC 6396: a peer table, then 10.0.0.0/8 from one peer with next hop 192.0.2.1.
    let record = |subtype: u8, body: &[u8]| {
        let head = [0x5f, 0, 0, 0, 0, 13, 0, subtype, 0, 0, 0, body.len() as u8];
        [&head, body].concat()
    };
    let peers = record(1, &[10, 0, 0, 1, 0, 0, 0, 1, 2, 10, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0xfd, 0xe8]);
    let attributes = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe8, 0x40, 3, 4, 192, 0, 2, 1];
    let rib = record(2, &[&[0, 0, 0, 0, 8, 10, 0, 1, 0, 0, 0x5f, 0, 0, 0, 0, 20][..], &attributes].concat());
    // And one of a VPN by RIB_GENERIC.
    let vpn = [&[0, 0, 0, 1, 0, 1, 128, 104, 0, 1, 0x11][..], &[0; 8], &[10, 9, 0, 0]].concat();
    dir.write("rib.mrt.gz", gzip(&[peers, record(6, &vpn), rib].concat()));
    let size = dir.hueplane("table size --routes m=rib.mrt.gz -o json").ok();
    assert_eq!((&size.json()["networks"][0]["routes"], &size.json()["passed_over"]), (&1.into(), &1.into()));
    assert!(size.stderr.contains("rib.mrt.gz: 1 records of families other than IPv4"), "{}", size.stderr);
    let args = ["table", "lookup", "--routes", "m=rib.mrt.gz", "--queries", "-", "-o", "json"];
    let json = dir.hueplane_with(&args, "m 10.2.3.4\n").ok().json();
    assert_eq!((&json[0]["prefix"], &json[0]["next_hop"]), (&"10.0.0.0/8".into(), &"192.0.2.1".into()));
}

/// A full table with a day of updates; the entire day only in `make test-full`.
#[test]
fn a_full_table_is_built_and_replayed() {
    let Some(routes) = hue_testdata::path("rib/ris-as3333-2026-05-11.v4.txt.xz") else { return };
    let Some(updates) = hue_testdata::path("updates/ris-as3333-2026-05-11.mutations.v4.txt.xz") else {
        return;
    };
    let dir = Scratch::new();
    let routes = format!("full={}", routes.display());
    let updates = if hue_testdata::full() {
        updates
    } else {
        let xz = std::fs::File::open(updates).unwrap();
        let text = std::io::read_to_string(lzma_rust2::XzReader::new(xz, true)).unwrap();
        let sample: String = text.lines().take(60_000).map(|line| format!("{line}\n")).collect();
        dir.write("day.txt", sample)
    };
    let updates = updates.display().to_string();
    let args = [
        "table",
        "replay",
        "--routes",
        &routes,
        "--updates",
        &updates,
        "--derive-hops",
        "8",
        "--verify",
        "-o",
        "json",
    ];
    let done = dir.hueplane_with(&args, "").ok();
    eprintln!("{}{}", done.stderr, done.stdout);
    assert_eq!(done.json()["routes_before"], 1_042_325);
    assert_eq!(done.json()["verified"]["moments"], 16);
    let Some(routes6) = hue_testdata::path("rib/ris-as3333-2026-05-11.v6.txt.xz") else { return };
    let routes6 = format!("six={}", routes6.display());
    let args =
        ["table", "size", "--routes", &routes, "--routes", &routes6, "--derive-hops", "8", "-o", "json"];
    let json = dir.hueplane_with(&args, "").ok().json();
    assert_eq!(
        (&json["networks"][0]["routes"], &json["networks"][1]["routes"]),
        (&1_042_325.into(), &246_175.into())
    );
    assert_eq!(json["derived_next_hops"], "fnv1a(first 20 bits) mod 8");
}
