//! `run --on card`: the same bytes and counters as in software, and errors.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use fst_reader::{FstHierarchyEntry, FstReader};
use hue_testdata::{ALL_IMAGES, IMAGES, TARGET_IMAGES, full, images_alone, root};

use crate::captures::{ALL, captures};
use crate::support::{RED, SIX, Scratch, hex, ipv4, pcap};

/// The images for these tests; all images in the full test run, and those for an FPGA.
fn names() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| [&ALL_IMAGES[..], &TARGET_IMAGES].concat());
    if full() { &ALL } else { &IMAGES }
}

/// A directory with these images, which are built if missing or stale.
pub fn images() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| hue_testdata::images(names()).to_str().unwrap().to_owned())
}

/// Runs the same in software and on an image of the card; everything must be equal.
pub fn both(dir: &Scratch, arguments: &str, image: &str) -> serde_json::Value {
    let soft = dir.hueplane(&format!("run {arguments} --out soft -o json")).ok().json();
    let run = format!("run --on card --image {image} {arguments} --out card -o json");
    let mut card = dir.hueplane_env(&run, &[("HUEPLANE_IMAGES", images())]).ok().json();
    let simulated = card.as_object_mut().unwrap().remove("card").unwrap();
    assert_eq!(card, soft);
    assert_eq!(dir.files("card"), dir.files("soft"));
    for name in dir.files("soft") {
        let bytes = |place: &str| fs::read(dir.path(&format!("{place}/{name}"))).unwrap();
        assert!(bytes("card") == bytes("soft"), "{arguments}: {name} differs");
    }
    assert_eq!(simulated["image"], image);
    simulated
}

#[test]
fn the_basic_lab_is_the_same_on_the_card() {
    let dir = Scratch::new();
    let lab = root().join("labs/basic");
    let inputs: Vec<String> = ["p0", "p1", "p2", "p3"]
        .iter()
        .map(|port| format!("--in {port}={}", lab.join(format!("{port}.pcap")).display()))
        .collect();
    let arguments = format!("-f {} {}", lab.join("hueplane.yaml").display(), inputs.join(" "));
    let simulated = both(&dir, &arguments, "default");
    let (cycles, time) = (simulated["cycles"].as_u64().unwrap(), simulated["simulated_ns"].as_u64().unwrap());
    assert!(simulated["wall_ns"].as_u64().unwrap() > 0, "{simulated}");
    assert!(cycles > 50 && time == cycles * 8, "{simulated}: 8 ns a cycle at 125 MHz");
}

/// All captures on every image in the full test run; otherwise all on `default` and the first few on the others.
/// If software rejects a capture (because it is not Ethernet), the card rejects it with the same message.
#[test]
fn real_captures_are_the_same_on_the_card() {
    let dir = Scratch::new();
    dir.write("all.yaml", ALL);
    // Some images hold the first network only: one has one plane, and on `dir` its default route leaves no room for others.
    dir.write("one.yaml", ALL.split("---").next().unwrap());
    let captures = captures();
    for image in names() {
        let intent = if ["tcam1", "dir"].contains(image) { "one.yaml" } else { "all.yaml" };
        let count = if *image == "default" || full() { captures.len() } else { 3 };
        let mut compared = 0;
        for file in captures.iter().take(count) {
            let arguments = format!("-f {intent} --in p0={}", file.display());
            let soft = dir.hueplane(&format!("run {arguments} --out soft"));
            if soft.code == 0 {
                both(&dir, &arguments, image);
                compared += 1;
                continue;
            }
            let line = format!("run --on card --image {image} {arguments} --out card");
            let card = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", images())]);
            assert_eq!((card.code, &card.stderr), (soft.code, &soft.stderr));
            assert!(soft.stderr.contains("wrong link type"), "{}: {}", file.display(), soft.stderr);
        }
        assert!(compared + 1 >= count.min(captures.len()), "{image}: {compared} of {count} captures");
    }
}

/// A burst of small frames fills every stage of the image that holds the most.
#[test]
fn a_burst_of_fragments_fits_the_stages() {
    let Some(capture) = hue_testdata::path("pcap/ndpi/ip_fragmented_garbage.pcap") else { return };
    let dir = Scratch::new();
    dir.write("all.yaml", ALL);
    let images = hue_testdata::images(&["kinds"]).to_str().unwrap().to_owned();
    let line = format!("run --on card --image kinds -f all.yaml --in p0={} --out card", capture.display());
    let done = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", &images)]).ok();
    assert!(done.stdout.contains("image kinds"), "{done:?}");
}

/// This many networks, each on four ports: 10.P.K.0/24 is network K's link on port P.
fn many(count: usize) -> String {
    let network = |k: usize| {
        let mac =
            |from: u8, port: usize| format!("{from:02x}:00:00:{:02x}:{:02x}:{port:02x}", k >> 8, k & 255);
        let each = |line: &dyn Fn(usize) -> String| (0..4).map(line).collect::<Vec<_>>().join("\n");
        let link = |p: usize| format!("10.{}.{}", p + 4 * (k >> 8), k & 255);
        let port = |p: usize| {
            let (mac, link) = (mac(2, p), link(p));
            format!("    - {{name: v{p}, port: p{p}, mac: \"{mac}\", addresses: [{link}.1/24]}}")
        };
        let neighbour = |p: usize| {
            let (mac, link) = (mac(6, p), link(p));
            format!("    - {{port: v{p}, address: {link}.2, mac: \"{mac}\"}}")
        };
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: n{k}}}\nspec:\n  plane: {{kind: ipv4}}\n  \
             ports:\n{}\n  neighbours:\n{}\n",
            each(&port),
            each(&neighbour)
        )
    };
    (0..count).map(network).collect::<Vec<_>>().join("---\n")
}

/// A packet to each of 1,024 MAC addresses.
#[test]
fn the_card_holds_256_networks_of_four_ports() {
    let dir = Scratch::new();
    dir.write("many.yaml", many(256));
    for port in 0..4usize {
        let packet = |k: usize| {
            let to = [10, ((port + 1 + k % 3) % 4) as u8, k as u8, 2];
            let mac = format!("02:00:00:00:{k:02x}:{port:02x}");
            (1_000 * k as u64, ipv4(&mac, 64, [10, port as u8, k as u8, 2], to))
        };
        dir.write(&format!("p{port}.pcap"), pcap(&(0..256).map(packet).collect::<Vec<_>>()));
    }
    let inputs = "--in p0=p0.pcap --in p1=p1.pcap --in p2=p2.pcap --in p3=p3.pcap";
    both(&dir, &format!("-f many.yaml {inputs}"), "default");
    let sent: usize = (0..4).map(|port| dir.packets(&format!("card/p{port}.pcap")).len()).sum();
    assert_eq!(sent, 1024);
    dir.write("more.yaml", many(257));
    let line = format!("run --on card --image default -f more.yaml {inputs} --out more");
    let done = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", images())]);
    assert!(done.code != 0 && done.stderr.contains("257 networks: image default holds 256"), "{done:?}");
    assert!(dir.files("more").is_empty(), "nothing half-written");
}

#[test]
fn an_image_without_a_kind_refuses_it_by_name() {
    let dir = Scratch::new();
    dir.write("six.yaml", SIX);
    dir.write("in.pcap", pcap(&[(0, vec![0; 60])]));
    dir.hueplane_env("run --on card -f six.yaml --in p0=in.pcap --out out", &[("HUEPLANE_IMAGES", images())])
        .fails(
            3,
            "network 'six': image default has no kind ipv6; choose an image that has it, or substrate soft",
        );
    assert!(!dir.path("out").exists());
}

#[test]
fn errors_are_reported() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    let lab = root().join("labs/basic/p0.pcap");
    let run = |more: &str| {
        let line = format!("run -f red.yaml --in p0={} --out out {more}", lab.display());
        dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", images())])
    };
    run("--on card --image tcam9").fails(3, "no image 'tcam9' in ");
    // A folder with these images only: others may have been built beside them.
    let alone = images_alone(&IMAGES);
    let line = format!("run -f red.yaml --in p0={} --out out --on card --image tcam9", lab.display());
    let done = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", alone.to_str().unwrap())]);
    done.fails(3, "available: default, dir, sram, tcam3");
    run("--wave w.fst").fails(2, "--wave requires --on card");
    run("--on card --wave-packet 1").fails(2, "--wave");
    run("--on card --wave w.fst --wave-cycles 9-3").fails(2, "FROM below TO");
    run("--on card --wave no/such/folder/w.fst")
        .fails(3, "no/such/folder/w.fst: the waveform cannot be written: No such file or directory");
    run("--on card --wave no/such/folder/w.fst --wave-packet 1")
        .fails(3, "w.fst: the waveform cannot be written");
    run("--on card --wave first.vcd")
        .fails(2, "'first.vcd' for '--wave <FILE>': expected a name that ends in .fst");
    run("--on card --wave w.fst --wave-packet 99").fails(2, "--wave-packet 99: the captures have 18 packets");
    run("--on card --wave w.fst --wave-cycles 90000000-90000001")
        .fails(2, "--wave-cycles 90000000-90000001: the run ended after ");
    assert!(dir.files("out").is_empty(), "{:?}", dir.files("out"));
    dir.write("four.yaml", many(4));
    let line = format!("run --on card --image tcam3 -f four.yaml --in p0={} --out out", lab.display());
    let done = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", images())]);
    assert!(done.code != 0 && done.stderr.contains("4 networks: image tcam3 holds 3; choose"), "{done:?}");
    assert!(dir.files("out").is_empty(), "nothing half-written");
    // A damaged image.
    let damaged = dir.path("images");
    fs::create_dir(&damaged).unwrap();
    fs::write(damaged.join("default.so"), b"\x7fELF").unwrap();
    let line = format!("run --on card -f red.yaml --in p0={} --out out", lab.display());
    let done = dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", damaged.to_str().unwrap())]);
    done.fails(3, "default.so: not an image, or damaged");
}

/// First and last time of a wave, in picoseconds. An FST file begins with a header (type and length),
/// followed by these two in big-endian order.
pub fn wave_times(file: &Path) -> (u64, u64) {
    let bytes = fs::read(file).unwrap();
    assert!(bytes.len() > 1000, "{}: {} bytes", file.display(), bytes.len());
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((bytes[0], number(1)), (0, 329), "{}", file.display());
    (number(9), number(17))
}

#[test]
fn waves_show_the_requested_part() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    let lab = root().join("labs/basic/p0.pcap");
    // Half a clock period of image default, in picoseconds.
    const HALF_PS: u64 = 4_000;
    let window = |wave: &str| {
        let line =
            format!("run --on card -f red.yaml --in p0={} --out out --wave w.fst {wave}", lab.display());
        dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", images())]).ok();
        let (from, to) = wave_times(&dir.path("w.fst"));
        (from / HALF_PS, to / HALF_PS)
    };
    assert_eq!(window("--wave-cycles 0-400"), (0, 799));
    assert_eq!(window("--wave-cycles 100-150"), (200, 299));
    let (from, to) = window("--wave-packet 2");
    let (begin, end) = window("");
    assert!(
        begin < from && to < end && (100..600).contains(&(to - from)),
        "{from} to {to} of {begin} to {end}"
    );
    // GTKWave finds the signals of its save file in it.
    let signals = wave_signals(&dir.path("w.fst"));
    let save = fs::read_to_string(root().join("rtl/twin/card.gtkw")).unwrap();
    let named: Vec<&str> = save.lines().filter(|line| line.starts_with("card.")).collect();
    assert!(named.len() > 20, "{named:?}");
    for name in named {
        assert!(signals.contains(name), "{name} is not in the waveform");
    }
}

/// Names of a waveform's signals as GTKWave writes them: `SCOPE.SIGNAL`, with the range of a vector.
fn wave_signals(file: &Path) -> BTreeSet<String> {
    let mut wave = FstReader::open(BufReader::new(fs::File::open(file).unwrap())).unwrap();
    let (mut scopes, mut signals) = (Vec::new(), BTreeSet::new());
    wave.read_hierarchy(|entry| match entry {
        FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
        FstHierarchyEntry::UpScope => _ = scopes.pop(),
        FstHierarchyEntry::Var { name, .. } => {
            signals.insert(format!("{}.{}", scopes.join("."), name.replace(' ', "")));
        }
        _ => {}
    })
    .unwrap();
    signals
}

/// A network with this many neighbours and routes beside its two links.
fn crowded(neighbours: usize, routes: usize) -> String {
    let near: Vec<String> = (0..neighbours)
        .map(|n| format!("{{port: right, address: 10.2.0.{}, mac: \"02:00:00:00:0a:{:02x}\"}}", n + 2, n + 2))
        .collect();
    let far: Vec<String> = (0..routes)
        .map(|n| format!("{{to: 10.{}.0.0/16, via: 10.2.0.{}}}", n + 20, n % neighbours + 2))
        .collect();
    let ports = RED.split("  routes:").next().unwrap();
    format!("{ports}  neighbours: [{}]\n  routes: [{}]\n", near.join(", "), far.join(", "))
}

/// A plane of the papers has 32 rows for routes and 32 for addresses. Its own four and 28 neighbours take the latter.
#[test]
fn neighbours_take_no_route_rows() {
    let dir = Scratch::new();
    dir.write("full.yaml", crowded(28, 30));
    let targets = (0..32).map(|n| [10, 2, 0, n]).chain((18..54).map(|n| [10, n, 7, 7]));
    let frame = |target| ipv4("02:00:00:00:01:01", 64, [10, 1, 0, 9], target);
    let frames: Vec<_> = (0..).map(|n| 100_000 * n).zip(targets.map(frame)).collect();
    dir.write("in.pcap", pcap(&frames));
    let simulated = both(&dir, "-f full.yaml --in p0=in.pcap", "tcam3");
    assert!(simulated["cycles"].as_u64().unwrap() > 0, "{simulated}");
    assert_eq!(dir.packets("card/p1.pcap").len(), 28 + 30);

    let fails = |neighbours, routes, text: &str| {
        dir.write("more.yaml", crowded(neighbours, routes));
        let line = "run --on card --image tcam3 -f more.yaml --in p0=in.pcap --out out";
        let done = dir.hueplane_env(line, &[("HUEPLANE_IMAGES", images())]);
        assert!(done.code != 0 && done.stderr.contains(text), "{done:?}");
    };
    fails(29, 30, "needs 33 route rows: image tcam3 has 32");
    fails(28, 31, "needs 33 route rows: image tcam3 has 32");
}

/// A network on the links 10.1.0.0/24 and 10.2.0.0/24, with these routes to the host 10.2.0.99.
fn beside(name: &str, number: u8, routes: &[String]) -> String {
    let to: Vec<String> = routes.iter().map(|to| format!("{{to: {to}, via: 10.2.0.99}}")).collect();
    let ports = RED.split("  routes:").next().unwrap();
    let ports = ports.replace("name: red", &format!("name: {name}"));
    let ports = ports.replace("02:00:00:00:01:", &format!("02:00:00:00:{number:02x}:"));
    let ports = ports
        .replace("10.1.0.1/", &format!("10.1.0.{number}/"))
        .replace("10.2.0.1/", &format!("10.2.0.{number}/"));
    format!(
        "{ports}  routes: [{}]\n  neighbours: [{{port: right, address: 10.2.0.99, mac: \"06:00:00:00:00:{number:02x}\"}}]\n  \
         needs: {{latency: low}}\n",
        to.join(", ")
    )
}

fn prefixes(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

/// The papers' forwarding table: networks with the same links and prefixes, one of which has its routes by the Conflict CAM.
#[test]
fn networks_that_share_prefixes_use_the_conflict_cam() {
    let dir = Scratch::new();
    let red = beside("red", 1, &prefixes(&["20.0.0.0/8", "20.1.0.0/16", "20.1.2.0/24", "30.0.0.0/9"]));
    let blue = beside("blue", 2, &prefixes(&["20.0.0.0/9", "20.1.2.128/25", "31.0.0.0/8"]));
    dir.write("both.yaml", format!("{red}---\n{blue}"));
    let targets: Vec<[u8; 4]> =
        [(20, 1), (20, 200), (30, 0), (30, 200), (31, 9), (10, 2), (40, 0), (20, 129)]
            .into_iter()
            .flat_map(|(net, of)| [[net, of, 2, 3], [net, of, 2, 200], [net, of, 0, 2], [net, of, 255, 255]])
            .collect();
    let frame = |number: usize| {
        let mac = format!("02:00:00:00:{:02x}:01", 1 + number % 2);
        (50_000 * number as u64, ipv4(&mac, 64, [10, 1, 0, 9], targets[number / 2]))
    };
    dir.write("in.pcap", pcap(&(0..2 * targets.len()).map(frame).collect::<Vec<_>>()));
    both(&dir, "-f both.yaml --in p0=in.pcap", "dir");
    assert!(dir.packets("card/p1.pcap").len() > 20);

    // If they do not fit, the error says what they need: the Conflict CAM, the sets, the entries. Nothing is written then, and the
    // scheduler says the same.
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec:\n  ports: [{name: p0}, {name: p1}]\n  \
                card: {twin: {image: dir}, ports: [p0, p1]}\n---\n";
    let fails = |routes: &[String], card: &str, plan: Option<&str>| {
        let third = beside("third", 3, routes);
        dir.write("three.yaml", format!("{red}---\n{blue}---\n{third}"));
        dir.write("plan.yaml", format!("{node}{red}---\n{blue}---\n{third}"));
        let run = |line: &str| dir.hueplane_env(line, &[("HUEPLANE_IMAGES", images())]);
        let done = run("run --on card --image dir -f three.yaml --in p0=in.pcap --out none");
        assert!(done.code != 0 && done.stderr.contains(card), "{done:?}");
        assert!(dir.files("none").is_empty(), "nothing half-written");
        let Some(plan) = plan else { return };
        let made = run("plan -f plan.yaml -o json").ok().json();
        let third =
            made["networks"].as_array().unwrap().iter().find(|one| one["network"] == "third").unwrap();
        assert_eq!((&third["substrate"], &third["why_not"]), (&"soft".into(), &plan.into()), "{made}");
    };
    // blue needs rows for ten blocks of 20.0.0.0/9 around 20.1.0.0/19, that slot and two links; the third for two links.
    let halves: Vec<String> = (0..40).map(|n| format!("20.{}.0.0/16", 2 * n)).collect();
    fails(
        &halves,
        "network 'third' needs 55 rows of the Conflict CAM, with those of other networks: image dir has 32",
        Some("it needs 42 rows of the Conflict CAM, but the card has 19 of 32 left"),
    );
    let hosts: Vec<String> = (0..70).map(|n| format!("50.{n}.0.1/32")).collect();
    fails(
        &hosts,
        "network 'third' needs 78 sets of the second bank, with those of other networks: image dir has 64",
        Some("it needs 72 sets of the second bank, but image 'dir' has 64"),
    );
    // The scheduler places this one first, because it has few routes, and then has no room for the others.
    fails(
        &prefixes(&["0.0.0.0/0"]),
        "entries of the first bank, with those of other networks: image dir has 524288",
        None,
    );
}

const LINKED: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: box}
spec: {ports: [{name: p0}, {name: p1}], links: [{ends: [red-blue, blue-red]}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: hosts, port: p0, mac: '02:00:00:00:01:01', addresses: [10.1.0.1/24]}
    - {name: peer, port: red-blue, mac: '02:00:00:00:01:02', addresses: [10.255.0.1/30]}
  routes: [{to: 10.2.0.0/24, via: 10.255.0.2}]
  neighbours: [{port: peer, address: 10.255.0.2, mac: '02:00:00:00:02:02'}]
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: blue}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: hosts, port: p1, mac: '02:00:00:00:02:01', addresses: [10.2.0.1/24]}
    - {name: peer, port: blue-red, mac: '02:00:00:00:02:02', addresses: [10.255.0.2/30]}
  neighbours: [{port: hosts, address: 10.2.0.9, mac: '02:00:00:00:0a:09'}]
";

/// Two switches that two links join: a broadcast goes round for ever.
const CIRCLE: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: box}
spec: {ports: [{name: p0}], links: [{ends: [a1, b1]}, {ends: [a2, b2]}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: l2}
  ports:
    - {name: hosts, port: p0, mac: '02:00:00:00:01:01'}
    - {name: one, port: a1, mac: '02:00:00:00:01:02'}
    - {name: two, port: a2, mac: '02:00:00:00:01:03'}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: blue}
spec:
  plane: {kind: l2}
  ports:
    - {name: one, port: b1, mac: '02:00:00:00:02:02'}
    - {name: two, port: b2, mac: '02:00:00:00:02:03'}
";

#[test]
fn a_frame_that_links_send_in_a_circle_is_lost_at_last() {
    let dir = Scratch::new();
    dir.write("circle.yaml", CIRCLE);
    let broadcast = ipv4("ff:ff:ff:ff:ff:ff", 9, [10, 1, 0, 5], [10, 1, 0, 255]);
    dir.write("p0.pcap", pcap(&[(1_000_000, broadcast)]));
    let run = "run -f circle.yaml --in p0=p0.pcap --out out";
    let report = dir.hueplane(&format!("{run} -o json")).ok().json();
    assert_eq!(report["lost_on_links"], 2, "one in each direction: {report}");
    let [red, blue] = ["red", "blue"].map(|name| report["networks"][name]["received"].as_u64().unwrap());
    assert_eq!(red + blue, 4096 + 1, "{report}");
    let text = dir.hueplane(run).ok().stdout;
    assert!(text.contains("links lost 2 frames: a frame crosses 4,096 links at most"), "{text}");
}

/// A frame crosses a link, and is not overtaken by one that arrives later on the other side.
#[test]
fn links_between_networks_are_the_same_on_the_card() {
    let dir = Scratch::new();
    dir.write("linked.yaml", LINKED);
    let to_blue = |ttl| ipv4("02:00:00:00:01:01", ttl, [10, 1, 0, 5], [10, 2, 0, 9]);
    dir.write("p0.pcap", pcap(&[(1_000_000, to_blue(64)), (2_000_000, to_blue(2)), (3_000_000, to_blue(1))]));
    let own = ipv4("02:00:00:00:02:01", 9, [10, 2, 0, 7], [10, 2, 0, 9]);
    dir.write("p1.pcap", pcap(&[(1_500_000, own)]));
    both(&dir, "-f linked.yaml --in p0=p0.pcap --in p1=p1.pcap", "default");
    let ttls = |file: &str| -> Vec<(u64, u8)> {
        dir.packets(&format!("soft/{file}")).iter().map(|(time, frame)| (*time, frame[22])).collect()
    };
    assert_eq!(ttls("red-blue.pcap"), [(1_000_000, 63), (2_000_000, 1)], "the link's traffic is a file too");
    assert_eq!(ttls("p1.pcap"), [(1_000_000, 62), (1_500_000, 8)]);
    assert_eq!(ttls("punt.pcap"), [(2_000_000, 1), (3_000_000, 1)], "TTL expired in blue, then in red");
    assert!(ttls("blue-red.pcap").is_empty() && ttls("p0.pcap").is_empty());

    let digits = hex(&to_blue(64));
    let line = format!("trace -f linked.yaml --in-port p0 --hex {digits}");
    let text = dir.hueplane(&line).ok().stdout;
    assert!(
        text.contains("forward to red-blue") && text.contains("over the link: on blue-red, 42 bytes"),
        "{text}"
    );
    let json = dir.hueplane(&format!("{line} -o json")).ok().json();
    assert_eq!(json["crossed"][0]["networks"][0]["out_port"], "p1", "{json}");
}
