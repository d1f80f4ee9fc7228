//! The machine is busy: other users' processes, in sessions of their own and outside the product's control groups, take all
//! processor time that they can get. Packets do not wait for them.
//!
//! The tests count the packets that arrive at a modest rate, and never measure speed.

use std::collections::BTreeMap;
use std::path::Path;

use hue_e2e::document::all;
use hue_e2e::traffic::{Flow, Report};
use hue_e2e::{Burners, Cli, Daemon, Lab, Pair, burner, can_run, until};

use crate::card::{node, runs_on, start_as};

/// Busy processes: four for each of two processors.
const BURNERS: usize = 8;
/// Networks on the ports, which share their receive rings.
const NETWORKS: u8 = 15;
/// Packets a second of the active network.
const RATE: u32 = 2_500;
/// Packets of it that must arrive before the flow ends.
const PACKETS: u64 = 10_000;
/// `SCHED_RR` and `SCHED_OTHER`, as the kernel numbers them.
const ROUND_ROBIN: u32 = 2;
const ORDINARY: u32 = 0;

/// A command line whose daemon is in a session of its own, like a service.
fn own_session(lab: &Lab) -> Cli {
    Cli { through: vec!["setsid".to_owned()], ..Cli::new(lab) }
}

/// An active network, and others on the same ports that are silent.
fn networks(lab: &Lab) -> (Pair, Vec<String>) {
    let red = lab.pair("red", 1, 1, [0, 1]);
    let silent = |n| lab.pair_document(&format!("silent{n}"), n, n, [0, 1]).with("placement", "soft");
    let mut documents = vec![red.document.yaml()];
    documents.extend((2..=NETWORKS).map(|n| silent(n).yaml()));
    (red, documents)
}

/// The report of a flow while burners run.
fn beside_burners(pair: &Pair) -> Report {
    let burners = Burners::start(BURNERS);
    until("the burners burn", 20, || burners.cpu_seconds() > 0.5);
    let flow = Flow::start(&pair.left, &pair.right, RATE, 64);
    until("packets arrive", 120, || flow.received() >= PACKETS);
    let report = flow.stop();
    eprintln!("beside {BURNERS} burners, which had {:.1} s: {report}", burners.cpu_seconds());
    report
}

/// How each thread of a process is scheduled, by its name.
fn policies(pid: u32) -> BTreeMap<String, u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |folder: &Path| {
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The 41st field; the second one, in parentheses, may contain any characters.
        let policy = stat.rsplit(')').next()?.split_whitespace().nth(38)?.parse().ok()?;
        Some((name.trim().to_owned(), policy))
    };
    tasks.filter_map(|task| of(&task.ok()?.path())).collect()
}

#[test]
fn busy_processes_cost_a_network_in_software_no_packet() {
    if !can_run(&burner::PROGRAMS) {
        return;
    }
    let lab = Lab::new(2);
    let (red, mut documents) = networks(&lab);
    documents.insert(0, lab.node_document(""));
    let daemon = Daemon::start_with(&lab, &own_session(&lab), &[]);
    daemon.cli.apply(&all(&documents), &[]);
    daemon.cli.warm_up(&[&red]);
    let report = beside_burners(&red);
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
}

#[test]
fn busy_processes_cost_a_network_on_the_card_no_packet() {
    if !can_run(&burner::PROGRAMS) {
        return;
    }
    let lab = Lab::new(2);
    let (red, mut documents) = networks(&lab);
    documents.insert(0, node(&lab, "default"));
    let daemon = start_as(&own_session(&lab), &lab, &["default"], &documents);
    runs_on(&daemon, red.name(), "card");
    daemon.cli.warm_up(&[&red]);
    let report = beside_burners(&red);
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");

    // It moves to software behind the card: two threads process its packets in turn.
    let _ = daemon.cli.json(&["migrate", red.name(), "--to", "soft"]);
    let report = beside_burners(&red);
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
}

#[test]
fn only_threads_that_forward_are_real_time_ones() {
    if !can_run(&burner::PROGRAMS) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let documents = [node(&lab, "tcam3"), red.document.yaml()];
    let daemon = start_as(&own_session(&lab), &lab, &["tcam3"], &documents);
    runs_on(&daemon, red.name(), "card");
    red.warm_up();
    let processors = std::thread::available_parallelism().unwrap().get();
    let of_node = |field: &str| daemon.cli.json(&["get", "nodes"])[0][field].clone();
    let mut threads = policies(daemon.pid());
    threads.extend(policies(daemon.card_pid().expect("the card has a process")));
    for (name, policy) in threads {
        let forwards = name.starts_with("hue-worker-") || name == "hue-card" && processors > 1;
        assert_eq!(policy, if forwards { ROUND_ROBIN } else { ORDINARY }, "{name}");
    }
    assert_eq!(of_node("scheduling"), "realtime");
    assert_eq!(of_node("card")["scheduling"], if processors > 1 { "realtime" } else { "fair" });
    assert_eq!(daemon.cli.happened("scheduling_fallback"), processors == 1, "{:?}", daemon.cli.events());
    let text = daemon.cli.run(&["get", "nodes"]).expect_ok().stdout;
    assert!(text.contains("SCHEDULING") && text.contains("realtime"), "{text}");
    let text = daemon.cli.run(&["doctor"]).stdout;
    assert!(text.lines().any(|line| line.starts_with("ok") && line.contains("real-time threads")), "{text}");
    drop(daemon);

    // As requested by the option.
    let cli = own_session(&lab);
    let daemon = Daemon::start_with(&lab, &cli, &["--scheduling", "fair"]);
    assert!(policies(daemon.pid()).values().all(|policy| *policy == ORDINARY));
    assert_eq!(daemon.cli.json(&["get", "nodes"])[0]["scheduling"], "fair");
    assert!(!daemon.cli.happened("scheduling_fallback"));
}

#[test]
fn a_daemon_that_may_not_have_real_time_threads_says_so_and_runs() {
    if !can_run(&["setpriv"]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let through = ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"].map(str::to_owned);
    let cli = Cli { through: through.to_vec(), ..Cli::new(&lab) };
    let daemon = Daemon::start_with(&lab, &cli, &[]);
    daemon.cli.apply(&all(&[lab.node_document(""), red.document.yaml()]), &[]);
    red.warm_up();
    assert!(policies(daemon.pid()).values().all(|policy| *policy == ORDINARY));
    let node = &daemon.cli.json(&["get", "nodes"])[0];
    let note = node["scheduling_note"].as_str().unwrap_or_default();
    assert!(node["scheduling"] == "fair" && note.contains("CAP_SYS_NICE"), "{node}");
    let events = daemon.cli.events();
    let said = events.iter().find(|event| event["kind"] == "scheduling_fallback");
    assert!(
        said.is_some_and(|event| event["message"].as_str().unwrap().contains("CAP_SYS_NICE")),
        "{events:?}"
    );
    // Nothing else is wrong.
    assert_eq!(node["status"]["health"], "running", "{node}");
}
