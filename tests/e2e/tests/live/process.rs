//! Networks of kind `process`: programs that forward, and what they may not do.

use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::raw::{Raw, Sniffer};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::card::network;
use crate::forwarding::transfer;
use crate::l2::{hosts, reach_each_other};

/// The program of `labs/process`: a learning switch.
pub fn switch() -> Vec<String> {
    let lab =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/process/hueplane.yaml"))
            .unwrap();
    let after = lab.split("      - |\n").nth(1).unwrap();
    let lines = after.lines().take_while(|line| line.is_empty() || line.starts_with("        "));
    let script: String = lines.map(|line| format!("{}\n", line.get(8..).unwrap_or_default())).collect();
    assert!(script.lines().filter(|line| !line.is_empty()).count() <= 20, "{script}");
    vec!["python3".to_owned(), "-c".to_owned(), script]
}

/// A network with this program on the first `ports` ports.
pub fn document(
    lab: &Lab,
    name: &str,
    ports: std::ops::Range<usize>,
    command: &[String],
    more: &str,
) -> String {
    let port = |at: usize| {
        let (port, mac) = (&lab.ports()[at], text([2, 0, 0, 0, 0x71, at as u8]));
        format!("    - {{name: v{at}, port: {port}, mac: \"{mac}\"}}\n")
    };
    let ports: String = ports.map(port).collect();
    let command = serde_json::to_string(command).unwrap();
    let (head, settings) = more.split_once('|').unwrap_or((more, ""));
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: process, command: {command}{settings}}}\n  ports:\n{ports}{head}",
        lab.name(name)
    )
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// The texts of a network's events of a kind.
fn told(daemon: &Daemon, network: &str, kind: &str) -> Vec<String> {
    let events = daemon.cli.events();
    let of = events.iter().filter(|event| event["network"] == network && event["kind"] == kind);
    of.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The processes of a network, by the ids that this machine gives them.
fn processes(lab: &Lab, name: &str) -> Vec<i32> {
    let groups = hue_e2e::daemon::cgroups(lab);
    let end = format!("net-{name}");
    let mut found: Vec<i32> = groups
        .iter()
        .filter(|path| path.file_name().is_some_and(|last| last.to_string_lossy() == end))
        .flat_map(|path| {
            std::fs::read_to_string(path.join("cgroup.procs"))
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|line| line.parse().ok())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn twenty_lines_of_python_switch_frames() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab, 3);
    let name = lab.name("violet");
    let own = document(&lab, "violet", 0..3, &switch(), "");
    // Another network has its own addresses on the same ports.
    let four = lab.pair("four", 2, 2, [0, 1]);
    let mut daemon = Daemon::start(&lab, &all(&[lab.node_document(""), own.clone(), four.document.yaml()]));
    reach_each_other(&hosts);
    four.warm_up();
    assert_eq!(hosts[0].ping(hosts[1].address, 20), 20);
    assert_eq!(transfer(&hosts[0], &hosts[2], hosts[2].address, 2 << 20), 2 << 20);
    // A protocol that nobody knows, by the program's own table: only to the port of the destination.
    let strange = [&hosts[1].mac[..], &hosts[0].mac, &[0x12, 0x34], &[7; 46]].concat();
    let is_strange = |frame: &[u8]| frame.get(12..14) == Some(&[0x12, 0x34]);
    let at = [1, 2].map(|at: usize| Sniffer::start(&hosts[at].space, "eth0", is_strange));
    assert_eq!(Raw::open(&hosts[0].space, "eth0").send((0..50).map(|_| &strange[..])), 50);
    std::thread::sleep(Duration::from_millis(500));
    let [second, third] = at.map(|seen| seen.stop().wanted);
    assert_eq!((second, third), (50, 0));
    assert_eq!(four.left.ping(four.right.address, 10), 10);
    // Sums: what came was handed over, and what the program sent left.
    let stats = daemon.cli.stats(&name);
    let sum = |field: &str| -> u64 {
        stats["ports"].as_array().unwrap().iter().filter_map(|port| port[field].as_u64()).sum()
    };
    assert_eq!(stats["punts"]["delegated"].as_u64(), Some(sum("received")), "{stats}");
    assert!(sum("sent") > 100 && stats["losses"]["forged_source"].is_null(), "{stats}");
    assert_eq!(told(&daemon, &name, "program_output"), ["3 ports"]);
    assert_eq!(network(&daemon, &name)["program"]["starts"], 1, "{}", network(&daemon, &name));
    // An end in the middle: started again, and said so.
    let killed = processes(&lab, &name);
    assert!(killed.len() >= 2, "{killed:?}");
    for pid in killed {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    until("it runs again", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    let ended = told(&daemon, &name, "program_ended");
    assert!(ended.len() == 1 && ended[0].contains("started again in 1 s"), "{ended:?}");
    assert_eq!(network(&daemon, &name)["program"]["starts"], 2);
    until("the network is well again", 20, || network(&daemon, &name)["state"] == "running");
    // A daemon that is killed takes its programs along: two of them would double frames. The next one starts them.
    let before = processes(&lab, &name);
    daemon.kill();
    until("the programs end with the daemon", 10, || processes(&lab, &name).is_empty());
    daemon.respawn(&lab);
    reach_each_other(&hosts);
    assert!(processes(&lab, &name).iter().all(|pid| !before.contains(pid)));
    let ping = hosts[0].ping_with(hosts[1].address, 20, &[]);
    assert!(!ping.stdout.contains("DUP!"), "{ping}");
    // Another program in its place, while the network runs: a hub that forwards nothing.
    daemon.cli.apply(&all(&[document(&lab, "violet", 0..3, &shell("sleep 1000"), "")]), &[]);
    until("the other program runs", 20, || {
        told(&daemon, &name, "program_started").iter().any(|one| one.contains("sleep"))
    });
    assert_eq!(hosts[0].ping(hosts[1].address, 2), 0);
    daemon.cli.apply(&all(&[own]), &[]);
    reach_each_other(&hosts);
    // A switch of hueplane's own in place of the program.
    daemon.cli.apply(&all(&[crate::l2::document(&lab, 3, "", "").replace(&lab.name("lan"), &name)]), &[]);
    until("the program has ended", 20, || processes(&lab, &name).is_empty());
    reach_each_other(&hosts);
}

/// A program that cannot run, ends at once, or writes without end.
#[test]
fn a_program_that_does_not_run_says_why_and_costs_little() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let none = ["/nosuch/program".to_owned()];
    let name = lab.name("broken");
    let of = |command: &[String]| document(&lab, "broken", 0..2, command, "");
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), of(&none), red.document.yaml()]));
    red.warm_up();
    let degraded = |words: &[&str]| {
        let found = network(&daemon, &name);
        let reason = found["reason"].as_str().unwrap_or_default();
        found["state"] == "degraded" && words.iter().all(|word| reason.contains(word))
    };
    until("its state says why", 20, || degraded(&["status 127", "/nosuch/program", "not found"]));
    daemon.cli.apply(&all(&[of(&shell("echo all is lost; exit 3"))]), &[]);
    until("its state says why", 20, || degraded(&["status 3", "all is lost"]));
    let remedy = daemon.cli.run(&["status"]).stdout;
    assert!(remedy.contains("plane.command"), "{remedy}");
    // Pauses double.
    let ends = || -> Vec<String> {
        told(&daemon, &name, "program_ended").into_iter().filter(|one| one.contains("status 3")).collect()
    };
    until("it has ended three times", 60, || ends().len() >= 3);
    for (end, pause) in ends().iter().zip(["1 s", "2 s", "4 s"]) {
        assert!(end.ends_with(&format!("started again in {pause}")), "{end}");
    }
    // Output without end, control characters in it: counted, not kept.
    daemon.cli.apply(&all(&[of(&shell("printf '\\033[2Jclear\\n'; yes rubbish"))]), &[]);
    until("it writes", 20, || told(&daemon, &name, "program_output").iter().any(|one| one == "rubbish"));
    std::thread::sleep(Duration::from_secs(2));
    let lines = told(&daemon, &name, "program_output");
    let rubbish = lines.iter().filter(|one| *one == "rubbish").count();
    assert!(rubbish < 60, "{rubbish} lines");
    assert!(lines.iter().any(|one| one == "\\u{1b}[2Jclear"), "{lines:?}");
    assert!(lines.iter().any(|one| one.contains("more lines were left out")), "{lines:?}");
    assert_eq!(red.left.ping(red.right.address, 20), 20);
}

/// What programs may not do, and what they cannot take from others.
#[test]
fn a_hostile_program_touches_nothing_else() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let name = lab.name("evil");
    let of = |script: &str, more: &str| document(&lab, "evil", 0..2, &shell(script), more);
    let secret = lab.folder().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let probe = format!(
        "id -u; grep CapEff /proc/self/status; ls -d /proc/[0-9]* | wc -l; cat {} || echo no secret; \
         kill -9 {} 2>/dev/null || echo no kill; nsenter -t 1 -n true 2>/dev/null && echo entered; ip link set v0 down 2>/dev/null || echo no admin; \
         ls /tmp | wc -l; ls /sys/class/net; sleep 1000",
        secret.display(),
        std::process::id(),
    );
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), of(&probe, ""), red.document.yaml()]));
    red.warm_up();
    let wrote = |line: &str| told(&daemon, &name, "program_output").iter().any(|one| one == line);
    until("it has tried all", 20, || wrote("v1"));
    let lines = told(&daemon, &name, "program_output");
    for line in ["CapEff: 0000000000002000", "no secret", "no kill", "no admin", "0", "v0", "v1"] {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:?}");
    }
    let user: u32 = lines[0].parse().unwrap();
    assert!(user > 1_879_048_192, "a user of its own: {lines:?}");
    let seen: u32 = lines[2].parse().unwrap();
    assert!(seen <= 5, "it sees only its own processes: {lines:?}");
    assert!(!lines.iter().any(|one| one == "entered" || one == &lab.ports()[0]), "{lines:?}");
    // With the capability, only its own interfaces can be changed.
    daemon.cli.apply(
        &all(&[of(
            "ip link set v0 down && echo admin; ip link set v0 up; sleep 1000",
            "|, capabilities: [net_raw, net_admin]",
        )]),
        &[],
    );
    until("it has the capability", 20, || wrote("admin"));
    // Everything at once: it forks without end, each process burns, and sends frames in others' names and rubbish.
    let bomb = [
        "import os, socket",
        "port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "port.bind(('v0', 0))",
        "while True:",
        "  for frame in [bytes([2, 0xbb, 0, 0, 0, 9, 3]) + bytes(53), bytes(60), bytes([255] * 60), bytes(14)]:",
        "    try: port.send(frame)",
        "    except OSError: pass",
        "  try: os.fork()",
        "  except OSError: pass",
    ];
    let python = |lines: &[&str]| ["python3", "-c", &lines.join("\n")].map(str::to_owned).to_vec();
    let limits = "  resources: {memory: 256Mi, processes: 40}\n";
    daemon.cli.apply(&all(&[document(&lab, "evil", 0..2, &python(&bomb), limits)]), &[]);
    until("it floods", 30, || {
        daemon.cli.stats(&name)["losses"]["forged_source"].as_u64().unwrap_or(0) > 1_000
    });
    until("it forks", 30, || processes(&lab, &name).len() > 30);
    let flow = Flow::start(&red.left, &red.right, 1_000, 64);
    until("packets arrive", 120, || flow.received() >= 8_000);
    let report = flow.stop();
    println!("beside {} hostile processes: {report}", processes(&lab, &name).len());
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
    assert!(processes(&lab, &name).len() <= 40);
    // Memory without end.
    let hog = ["hog = []", "while True: hog.append(bytearray(1 << 20))"];
    daemon.cli.apply(&all(&[document(&lab, "evil", 0..2, &python(&hog), limits)]), &[]);
    until("the kernel ends it", 60, || !told(&daemon, &name, "program_ended").is_empty());
    assert_eq!(red.left.ping(red.right.address, 10), 10);
    // It can be removed, with all that it has started.
    let _ = daemon.cli.run(&["delete", "network", &name]).expect_ok();
    until("nothing is left", 20, || processes(&lab, &name).is_empty());
    assert_eq!(red.left.ping(red.right.address, 10), 10);
}

/// A program over AF_XDP, with no more capabilities than packet sockets need. It has no other way to get frames.
#[test]
fn a_program_forwards_over_af_xdp() {
    if !can_run(&["python3"]) {
        return;
    }
    let script = include_str!("../../../../labs/process/xdp.py");
    let program = ["python3", "-c", script].map(str::to_owned).to_vec();
    let lab = Lab::new(2);
    let (hosts, name) = (hosts(&lab, 2), lab.name("violet"));
    let own = document(&lab, "violet", 0..2, &program, "|, xdp: true");
    let mut daemon = Daemon::start(&lab, &all(&[lab.node_document(""), own.clone()]));
    let works = || {
        until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
        assert_eq!(hosts[0].ping(hosts[1].address, 20), 20);
    };
    works();
    assert_eq!(transfer(&hosts[0], &hosts[1], hosts[1].address, 1 << 20), 1 << 20);
    assert_eq!(told(&daemon, &name, "program_output"), ["2 ports"]);
    // It ends, and gets the same maps again.
    for pid in processes(&lab, &name) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    until("it runs again", 20, || told(&daemon, &name, "program_output") == ["2 ports"; 2]);
    works();
    // So does the program of the next daemon, of an upgrade or after a crash.
    let _ = lab.node().run_command(&mut daemon.cli.command(&["upgrade"])).expect_ok();
    works();
    daemon.kill();
    daemon.respawn(&lab);
    works();
    // Without `xdp` there are no maps.
    daemon.cli.apply(&all(&[own.replace(", xdp: true", "")]), &[]);
    until("it says what it lacks", 20, || {
        told(&daemon, &name, "program_output").iter().any(|line| line.contains("HUEPLANE_XSKMAPS"))
    });
}
