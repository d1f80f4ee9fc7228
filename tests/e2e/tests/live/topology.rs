//! Topologies: several nodes on this machine from one document, and nothing of them afterwards.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use hue_e2e::shell::{self, Output};
use hue_e2e::traffic::{Flow, now_ns};
use hue_e2e::{Space, can_run, until};
use hue_testdata::figure;
use serde_json::Value;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Real topologies of the data folder, and the folder in this archive that has those of the Internet Topology Zoo.
const GRAPHS: &str = "topo/repetita-topologyzoo+rocketfuel-graphs.tar.xz";
const GRAPHS_FOLDER: &str = "data/2016TopologyZooUCL_inverseCapacity";

/// A topology that is removed when it is dropped.
struct Topology {
    name: String,
    folder: tempfile::TempDir,
}

impl Topology {
    /// Three nodes in a triangle, whose direct link from a to c is dear.
    fn triangle(networks: &str) -> Self {
        Self::new(&format!(
            "  nodes: [{{name: a}}, {{name: b}}, {{name: c}}]\n  links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [a, c], cost: 5}}]\n  \
             networks:\n{networks}"
        ))
    }

    fn empty() -> Self {
        let name = format!("e{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { name, folder: tempfile::tempdir().unwrap() }
    }

    fn new(spec: &str) -> Self {
        let topology = Self::empty();
        let head = "apiVersion: hueplane/v1\nkind: Topology\n";
        let text = format!("{head}metadata: {{name: {}}}\nspec:\n{spec}", topology.name);
        std::fs::write(topology.file(), text).unwrap();
        topology
    }

    /// As `topo import` makes it from this graph of the data folder. `None` if that is missing.
    fn imported(graph: &str, kind: &str) -> Option<Self> {
        let archive = hue_testdata::path(GRAPHS)?;
        let topology = Self::empty();
        let file = format!("{GRAPHS_FOLDER}/{graph}.graph");
        let mut extract = shell::command("tar");
        extract.arg("-xJf").arg(archive).arg("-C").arg(topology.folder.path()).arg(&file);
        let _ = shell::run(&mut extract).expect_ok();
        let import = ["topo", "import", &file, "--name", &topology.name, "--kind", kind];
        std::fs::write(topology.file(), topology.run(&import).expect_ok().stdout).unwrap();
        Some(topology)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("topology.yaml")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(hue_e2e::daemon::binary());
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        shell::run(&mut self.command(arguments))
    }

    #[track_caller]
    fn up(&self) {
        let _ = self.run(&["topo", "up", "topology.yaml"]).expect_ok();
    }

    #[track_caller]
    fn down(&self) {
        let _ = self.run(&["topo", "down", &self.name]).expect_ok();
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// Pairs of hosts that reach each other, and all pairs, of each network.
    #[track_caller]
    fn pairs(&self, more: &[&str]) -> Vec<(u64, u64)> {
        let output = self.run(&[&["topo", "ping", &self.name, "-o", "json"], more].concat());
        let rows = output.json();
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
        rows.as_array().unwrap().iter().map(|row| (number(row, "reached"), number(row, "pairs"))).collect()
    }

    #[track_caller]
    fn show(&self) -> Value {
        self.run(&["topo", "show", &self.name, "-o", "json"]).expect_ok().json()
    }

    fn set_link(&self, node: &str, interface: &str, state: &str) {
        let space = format!("topo@{}@n@{node}", self.name);
        let arguments = ["-n", &space, "link", "set", interface, state];
        let _ = shell::run(shell::command("ip").args(arguments)).expect_ok();
    }

    /// Everything that exists of it: namespaces, directories, control groups, processes.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let begin = format!("topo@{}@", self.name);
        for folder in ["/run/netns", "/var/run/frr"] {
            left.extend(names(Path::new(folder)).into_iter().filter(|name| name.starts_with(&begin)));
        }
        let folder = Path::new("/run/hueplane-topo").join(&self.name);
        left.extend(folder.exists().then(|| folder.display().to_string()));
        let own = format!("/{}/", self.name);
        for process in names(Path::new("/proc")) {
            let line = std::fs::read(Path::new("/proc").join(&process).join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            left.extend((line.contains(&own) || line.contains(&begin)).then_some(line));
        }
        left
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Drop for Topology {
    fn drop(&mut self) {
        let _ = self.command(&["topo", "down", &self.name]).stderr(Stdio::null()).status();
    }
}

/// Kills the process if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const RED: &str = "    - {name: red, kind: ipv4, prefixes: [10.1.0.0/16], hosts: [{name: ra, node: a}, {name: rb, node: b}, {name: rc, \
                   node: c}]}\n";
const BLUE: &str = "    - {name: blue, kind: ipv6, prefixes: [\"2001:db8::/48\"], hosts: [{name: ba, node: a}, {name: bc, node: c}]}\n";

#[test]
fn all_pairs_reach_each_other_until_a_link_is_cut() {
    if !can_run(&[]) {
        return;
    }
    let topology = Topology::triangle(&format!("{RED}{BLUE}"));
    topology.up();
    assert_eq!(topology.pairs(&[]), [(3, 3), (1, 1)]);
    let shown = topology.show();
    assert!(shown["nodes"].as_array().unwrap().iter().all(|node| node["health"] == "running"), "{shown}");
    assert!(shown["links"].as_array().unwrap().iter().all(|link| link["state"] == "up"), "{shown}");
    assert_eq!(shown["networks"][1]["running"], 3, "{shown}");
    assert_eq!(shown["hosts"][4]["addresses"][0], "2001:db8:0:1::2/64", "{shown}");
    let got = topology.run(&["get", "topology", &topology.name]).expect_ok().stdout;
    assert!(got.contains("a - b") && got.contains("topo@"), "{got}");

    // Packets take the cheaper way, over b: cut, they have none, since routes are static. Another network's way is another one.
    let of_red = ["-n", "red"];
    topology.set_link("a", "to-c", "down");
    assert_eq!(topology.pairs(&of_red), [(3, 3)]);
    topology.set_link("a", "to-c", "up");
    topology.set_link("b", "to-a", "down");
    let output = topology.run(&["topo", "ping", &topology.name, "-n", "red"]).expect_code(1);
    assert!(output.stdout.contains("1 of 3") && output.stdout.contains("ra does not reach rb"), "{output}");
    until("the link is down", 10, || topology.show()["links"][0]["state"] == "down");
    topology.set_link("b", "to-a", "up");
    until("all pairs again", 20, || topology.pairs(&[]) == [(3, 3), (1, 1)]);

    // The document on a node changes nothing: the node takes the same part, by its name.
    let socket = shown["nodes"][1]["socket"].as_str().unwrap();
    let applied = topology.run(&["--socket", socket, "apply", "-f", "topology.yaml"]).expect_ok().stdout;
    assert!(applied.contains("nothing to change"), "{applied}");
    let other =
        topology.run(&["--socket", socket, "apply", "-f", "topology.yaml", "--node", "x"]).expect_code(2);
    assert!(other.stderr.contains("it has no node \"x\", expected one of a, b, c"), "{other}");

    let again = topology.run(&["topo", "up", "topology.yaml"]).expect_code(1);
    assert!(again.stderr.contains("is up already: `hueplane topo down"), "{again}");
    assert_eq!(topology.pairs(&of_red), [(3, 3)], "a refused command changes nothing");
    topology.down();
    let gone = topology.run(&["topo", "show", &topology.name]).expect_code(2);
    assert!(gone.stderr.contains("is not up"), "{gone}");
}

#[test]
fn a_killed_start_leaves_what_down_and_the_next_start_remove() {
    if !can_run(&[]) {
        return;
    }
    let topology = Topology::triangle(RED);
    let killed = |after: &dyn Fn() -> bool| {
        let mut command = topology.command(&["topo", "up", "topology.yaml"]);
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let running = Running(started.unwrap());
        until("the start is under way", 20, after);
        drop(running);
        assert_ne!(topology.left(), Vec::<String>::new(), "it was killed before it had finished");
    };
    // Before there is a daemon, and when there is one.
    let has = |part: &str| topology.left().iter().any(|one| one.contains(part));
    killed(&|| has("@n@a"));
    let shown = topology.run(&["topo", "show", &topology.name]);
    assert!(shown.code == 0 || shown.stderr.contains("its start was killed"), "{shown}");
    topology.down();
    killed(&|| has("--namespace-prefix"));
    // If it was killed at the very end, it is complete.
    if topology.run(&["topo", "show", &topology.name]).code != 0 {
        topology.up();
    }
    assert_eq!(topology.pairs(&[]), [(3, 3)]);
    topology.down();
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    if !can_run(&[]) {
        return;
    }
    // The address of a host in a namespace that has it already: a namespace of another program has the name of a host.
    let topology = Topology::triangle(RED);
    let foreign = format!("topo@{}@h@rc", topology.name);
    let _ = shell::run(shell::command("ip").args(["netns", "add", &foreign])).expect_ok();
    let refused = topology.run(&["topo", "up", "topology.yaml"]).expect_code(1);
    assert!(refused.stderr.contains(&format!("namespace {foreign} already exists")), "{refused}");
    assert_eq!(topology.left(), Vec::<String>::new());
}

/// A router and a switch have links that do not exist physically, through the network wan.
#[test]
fn tunnels_join_nodes_without_a_link() {
    if !can_run(&[]) {
        return;
    }
    let topology = Topology::new(
        "  nodes: [{name: a}, {name: b}, {name: c}]\n  links: [{ends: [a, b]}, {ends: [b, c]}]\n  networks:\n    - {name: wan, kind: ipv4, \
         prefixes: [10.0.0.0/16], hosts: [{name: wa, node: a}, {name: wc, node: c}]}\n    - {name: red, kind: dual, prefixes: \
         [192.168.0.0/16, \"2001:db8::/48\"], nodes: [a, c], links: [{ends: [a, c], tunnel: ipip, over: wan}], hosts: [{name: ra, node: a}, \
         {name: rc, node: c}]}\n    - {name: lan, kind: l2, prefixes: [172.16.0.0/24], nodes: [a, c], links: [{ends: [a, c], tunnel: vxlan, \
         over: wan}], hosts: [{name: la, node: a}, {name: lc, node: c}]}\n",
    );
    topology.up();
    assert_eq!(topology.pairs(&[]), [(1, 1), (1, 1), (1, 1)]);
    // Two routers of red, though three nodes are on the way; and none of lan.
    let ttl = |host: &str, to: &str| {
        let space = format!("topo@{}@h@{host}", topology.name);
        let ping = ["netns", "exec", &space, "ping", "-n", "-c", "1", "-W", "5", to];
        shell::run(shell::command("ip").args(ping)).expect_ok().stdout
    };
    assert!(ttl("ra", "192.168.1.2").contains("ttl=62"));
    assert!(ttl("la", "172.16.0.2").contains("ttl=64"));
    // The tunnels have no other way than wan.
    topology.set_link("b", "to-c", "down");
    assert_eq!(topology.pairs(&[]), [(0, 1), (0, 1), (0, 1)]);
    topology.set_link("b", "to-c", "up");
    until("all pairs again", 20, || topology.pairs(&[]) == [(1, 1), (1, 1), (1, 1)]);
    topology.down();
}

/// A ring of flat labels, path splicing, label switching and Linux on the same links, and bits of frames through a tunnel: all hosts
/// have IP. The ring finds another way when a link is cut.
#[test]
fn networks_of_other_kinds_span_nodes() {
    if !can_run(&["python3"]) {
        return;
    }
    let hosts = |net: &str| ["a", "c"].map(|node| format!("{{name: {net}{node}, node: {node}}}")).join(", ");
    let topology = Topology::triangle(&format!(
        "    - {{name: flat, kind: rofl, settings: {{label_bits: 32, pointers_max: 0}}, routing: ring, prefixes: [10.8.0.0/24], hosts: \
         [{}]}}\n    - {{name: ways, kind: splice, prefixes: [10.12.0.0/16], hosts: [{}]}}\n    - {{name: lsp, kind: mpls, prefixes: \
         [\"fd10::/64\"], hosts: [{}]}}\n    - {{name: linux, kind: kernel, prefixes: [10.13.0.0/16, \"fd13::/48\"], hosts: [{}]}}\n    - {{name: \
         bits, kind: extract, settings: {{key: [{{offset: 30, bytes: 4}}]}}, prefixes: [10.14.0.0/24], nodes: [a, c], links: [{{ends: [a, \
         c], tunnel: vxlan, over: ways}}], hosts: [{{name: ba, node: a, match: \"0x0a0e0001\"}}, {{name: bc, node: c, match: \
         \"0x0a0e0002\"}}]}}\n",
        hosts("f"),
        hosts("w"),
        hosts("l"),
        hosts("k"),
    ));
    topology.up();
    assert_eq!(topology.pairs(&["--wait", "20s"]), [(1, 1); 5]);
    let shown = topology.show();
    assert!(
        shown["networks"].as_array().unwrap().iter().all(|one| one["running"] == one["nodes"]),
        "{shown}"
    );
    let label = |host: usize| shown["hosts"][host]["label"].as_str().unwrap_or_default().to_owned();
    assert_eq!((label(2), label(5), label(9)), (String::new(), "17".to_owned(), "0x0a0e0002".to_owned()));
    // Nobody wrote labels. By which ports a sends to those that it has from the ring:
    let socket = shown["nodes"][0]["socket"].as_str().unwrap();
    let ways = || {
        let entries = topology.run(&["--socket", socket, "get", "entries", "-n", "flat", "-o", "json"]);
        let entries = entries.expect_ok().json();
        let ports =
            entries.as_array().unwrap().iter().filter_map(|one| one["port"].as_str().map(str::to_owned));
        ports.collect::<BTreeSet<_>>()
    };
    let all = ["h-fa", "to-b", "to-c"].map(str::to_owned);
    assert_eq!(ways(), BTreeSet::from(all.clone()));
    topology.set_link("a", "to-c", "down");
    until("the ring is around", 20, || ways() == BTreeSet::from([all[0].clone(), all[1].clone()]));
    assert_eq!(topology.pairs(&["-n", "flat", "--wait", "20s"]), [(1, 1)]);
    topology.down();
}

/// Packets a second of the flow that meets a cut.
const RATE: u32 = 500;

/// Waits until packets go by two routers only, there and back. All pairs may reach each other before that, by longer ways.
fn goes_directly(from: &Space, to: IpAddr) {
    let to = to.to_string();
    until(&format!("the direct way to {to}"), 60, || {
        from.run("ping", &["-n", "-c", "1", "-W", "1", "-t", "3", &to]).stdout.contains("ttl=62")
    });
}

/// The routing of a network of three nodes finds another way when a link is cut. Reports how long that takes.
fn finds_another_way(net: &str, to: &[IpAddr]) {
    let topology = Topology::triangle(net);
    topology.up();
    assert_eq!(topology.pairs(&["--wait", "60s"]), [(3, 3)]);
    let space = |host: &str| Space::of(format!("topo@{}@h@{host}", topology.name));
    let (from, into) = (space("ha"), space("hb"));
    to.iter().for_each(|to| goes_directly(&from, *to));
    let flows: Vec<Flow> =
        to.iter().map(|to| Flow::between((&from, None), (&into, *to), RATE, 100)).collect();
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 100));
    let since_ns = now_ns();
    topology.set_link("a", "to-b", "down");
    assert_eq!(topology.pairs(&["--wait", "60s"]), [(3, 3)], "over c");
    let before: Vec<u64> = flows.iter().map(Flow::received).collect();
    until("traffic over c", 60, || {
        flows.iter().zip(&before).all(|(flow, before)| flow.received() > before + 100)
    });
    for (flow, to) in flows.into_iter().zip(to) {
        met_a_cut(&to.to_string(), flow, RATE, since_ns);
    }
    topology.down();
}

/// The links of a network are tunnels, and the network that carries them loses a link. Its static routes stay, so no port of the first
/// one goes down: routing has to notice that a neighbour is silent.
fn finds_another_way_than_a_silent_tunnel(routing: &str) {
    let tunnel = |ends: &str| format!("{{ends: [{ends}], tunnel: ipip, over: wan}}");
    let hosts =
        |net: &str| ["a", "b", "c"].map(|node| format!("{{name: {net}{node}, node: {node}}}")).join(", ");
    let topology = Topology::new(&format!(
        "  nodes: [{{name: a}}, {{name: b}}, {{name: c}}]\n  links: [{{ends: [a, b]}}, {{ends: [b, c]}}, {{ends: [a, c]}}]\n  networks:\n    \
         - {{name: wan, kind: ipv4, prefixes: [10.0.0.0/16], hosts: [{}]}}\n    - {{name: red, kind: ipv4, prefixes: [192.168.0.0/16], \
         routing: {routing}, nodes: [a, b, c], links: [{}, {}, {}], hosts: [{}]}}\n",
        hosts("w"),
        tunnel("a, b"),
        tunnel("b, c"),
        tunnel("a, c"),
        hosts("r"),
    ));
    topology.up();
    assert_eq!(topology.pairs(&["--wait", "60s"]), [(3, 3), (3, 3)]);
    let space = |host: &str| Space::of(format!("topo@{}@h@{host}", topology.name));
    let (from, into) = (space("ra"), space("rc"));
    let to: IpAddr = "192.168.2.2".parse().unwrap();
    goes_directly(&from, to);
    let flow = Flow::between((&from, None), (&into, to), RATE, 100);
    until("traffic", 20, || flow.received() > 100);
    let since_ns = now_ns();
    topology.set_link("a", "to-c", "down");
    let before = flow.received();
    until("traffic over b", 90, || flow.received() > before + 1000);
    met_a_cut(&format!("{routing}, a tunnel without a carrier"), flow, RATE, since_ns);
    topology.down();
}

#[test]
#[ignore = "long: make test-full"]
fn pwospf_finds_another_way_than_a_silent_tunnel() {
    if !can_run(&[]) {
        return;
    }
    finds_another_way_than_a_silent_tunnel("pwospf");
}

#[test]
#[ignore = "long: make test-full"]
fn frr_finds_another_way_than_a_silent_tunnel() {
    if !can_run(&["zebra", "ospfd"]) {
        return;
    }
    finds_another_way_than_a_silent_tunnel("frr");
}

/// Ends a flow that met a cut at `since_ns`, and reports how long it had no way.
pub fn met_a_cut(what: &str, flow: Flow, packets_per_second: u32, since_ns: u64) {
    let report = flow.stop();
    let (lost, after_ms) = (report.lost(), report.back_after_ms(since_ns));
    let lost_ms = lost * 1000 / u64::from(packets_per_second);
    figure(&format!(
        "{what}: the first packet on the new way {after_ms:.0} ms after the cut; {lost} lost at {packets_per_second}/s, {lost_ms} ms"
    ));
    assert!(lost > 0 && report.duplicated == 0, "{report}");
}

#[test]
#[ignore = "long: make test-full"]
fn pwospf_finds_another_way_when_a_link_is_cut() {
    if !can_run(&[]) {
        return;
    }
    let net = "    - {name: net, kind: ipv4, prefixes: [10.0.0.0/16], routing: pwospf, hosts: [{name: ha, node: a}, {name: hb, node: b}, \
               {name: hc, node: c}]}\n";
    finds_another_way(net, &["10.0.1.2".parse().unwrap()]);
}

#[test]
#[ignore = "long: make test-full"]
fn frr_finds_another_way_when_a_link_is_cut() {
    if !can_run(&["zebra", "ospfd", "ospf6d"]) {
        return;
    }
    let net = "    - {name: net, kind: dual, prefixes: [10.0.0.0/16, \"2001:db8::/48\"], routing: frr, hosts: [{name: ha, node: a}, \
               {name: hb, node: b}, {name: hc, node: c}]}\n";
    finds_another_way(net, &["10.0.1.2".parse().unwrap(), "2001:db8:0:1::2".parse().unwrap()]);
}

/// A graph of the Internet Topology Zoo, which the data folder has, imported: all nodes come up, all pairs of hosts reach each other, and
/// nothing is left. Reports how long that takes.
fn real_network(graph: &str, kind: &str, nodes: usize) {
    if !can_run(&["tar", "xz"]) {
        return;
    }
    let Some(topology) = Topology::imported(graph, kind) else { return };
    let start = Instant::now();
    topology.up();
    let up = start.elapsed();
    let shown = topology.show();
    let healths: Vec<&Value> =
        shown["nodes"].as_array().unwrap().iter().map(|node| &node["health"]).collect();
    assert!(healths.len() == nodes && healths.iter().all(|health| *health == "running"), "{shown}");
    let pairs = (nodes * (nodes - 1) / 2) as u64;
    let start = Instant::now();
    assert_eq!(topology.pairs(&["--wait", "60s"]), [(pairs, pairs)]);
    let pinged = start.elapsed();
    let start = Instant::now();
    topology.down();
    figure(&format!(
        "{graph}, {nodes} nodes: up after {:.1} s, {pairs} pairs pinged in {:.1} s, removed in {:.1} s",
        up.as_secs_f64(),
        pinged.as_secs_f64(),
        start.elapsed().as_secs_f64()
    ));
}

#[test]
#[ignore = "long: make test-full"]
fn a_real_network_of_eleven_nodes() {
    real_network("Abilene", "dual", 11);
}

#[test]
#[ignore = "long: make test-full"]
fn a_real_network_of_sixty_nodes() {
    real_network("Garr201111", "ipv4", 60);
}
