//! `hueplane lab run --live`: generated traffic on the wires of a running node. The frames that come back and those that
//! the daemon counted are all frames that were sent, and the frames that come back are those that the networks send offline.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::{Cli, Daemon, Document, Lab, Output, Raw, can_run, until};
use hue_ports::CaptureReader;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::card::{node, runs_on, start};

/// Losses of a network's frames before its plane decides.
const BEFORE_THE_PLANE: [&str; 4] = ["ring_quota", "ring_full", "handover_full", "queue_full"];

/// A node whose ports are cabled to interfaces of the switch's namespace, and a network with known neighbours.
struct World {
    lab: Lab,
    red: Document,
    daemon: Daemon,
}

fn world(on: &str) -> World {
    let lab = Lab::new(2);
    lab.unbridge();
    let neighbour = |port: &str, side: u8| {
        let mac = text([2, 0x68, 1, side, 1, 2]);
        format!("{{port: {port}, address: 10.1.{}.2, mac: \"{mac}\"}}", side + 1)
    };
    let red = lab
        .pair_document("red", 1, 1, [0, 1])
        .with("neighbours", &format!("[{}, {}]", neighbour("left", 0), neighbour("right", 1)))
        .with("routes", "[{to: 10.77.0.0/16, via: 10.1.2.2}, {to: 10.66.0.0/16, via: 10.1.1.2}]")
        .with("placement", on);
    let daemon = if on == "card" {
        start(&lab, &["default"], &[node(&lab, "default"), red.yaml()])
    } else {
        Daemon::start(&lab, &all(&[lab.node_document(""), red.yaml()]))
    };
    runs_on(&daemon, &red.name, on);
    std::fs::write(lab.folder().join("lab.yaml"), all(&[lab.node_document(""), red.yaml()])).unwrap();
    World { lab, red, daemon }
}

/// Arguments of `lab run` for the documents of the daemon.
fn arguments(lab: &Lab, more: &str) -> Vec<String> {
    let file = lab.folder().join("lab.yaml");
    let line = format!("lab run -f {} {more}", file.display());
    line.split_whitespace().map(str::to_owned).collect()
}

fn lab_run(lab: &Lab, cli: &Cli, more: &str) -> Output {
    let all = arguments(lab, more);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    lab.switch().run_command(&mut cli.command(&all))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Counters of the daemon at one moment.
struct Books {
    network: Value,
    port: Value,
    unclaimed: Value,
}

impl Books {
    fn of(world: &World) -> Self {
        let stats = world.daemon.cli.json(&["stats"]);
        let named = |list: &Value, key: &str, name: &str| {
            let found = list.as_array().into_iter().flatten().find(|one| one[key] == name);
            found.cloned().unwrap_or_else(|| panic!("no {key} {name} in {list}"))
        };
        Self {
            network: named(&stats["networks"], "network", &world.red.name),
            port: named(&stats["ports"], "port", "p0"),
            unclaimed: stats["unclaimed"].clone(),
        }
    }

    fn lost(&self, reasons: &[&str]) -> u64 {
        reasons.iter().map(|reason| number(&self.network["losses"][reason])).sum()
    }

    fn lost_at_port(&self, reasons: &[&str]) -> u64 {
        reasons.iter().map(|reason| number(&self.port["losses"][reason])).sum()
    }
}

impl World {
    /// Sends traffic and waits until the daemon has counted all of it, in the sum that `count` computes. Returns the report
    /// and the counters before and after.
    fn send(&self, traffic: &str, count: impl Fn(&Books) -> u64) -> (Value, Books, Books) {
        let before = Books::of(self);
        let cables = "--live p0=w0 p1=w1 --duration-us 150000 -o json";
        let report = lab_run(&self.lab, &self.daemon.cli, &format!("{cables} --traffic {traffic}"));
        let report = report.expect_ok().json();
        let sent = number(&report["total"]["sent"]);
        let mut counted = 0;
        for _ in 0..200 {
            let after = Books::of(self);
            counted = count(&after) - count(&before);
            if counted == sent {
                return (report, before, after);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{traffic}: {sent} sent, {counted} counted: {report} {}", self.daemon.cli.json(&["stats"]));
    }

    /// Every sort of traffic that is not forwarded has its expected outcome, in the daemon's counters, too.
    fn every_sort_meets_its_fate(&self) {
        type Fate = fn(&Books) -> u64;
        let sorts: [(&str, Fate); 5] = [
            ("rate:3M,sort:ttl1", |books| number(&books.network["punts"]["ttl"])),
            ("rate:3M,sort:own,size:64-200", |books| number(&books.network["punts"]["local"])),
            ("rate:3M,sort:nobody", |books| number(&books.unclaimed["no_network"])),
            ("rate:1M,sort:broadcast", |books| books.lost(&["arp_foreign"])),
            ("rate:1M,sort:multicast", |books| books.lost(&["group_foreign"])),
        ];
        // A busy machine may lose frames of any of these, and group frames have a limit.
        let lost = |books: &Books| {
            books.lost(&BEFORE_THE_PLANE) + books.lost_at_port(&["shared_quota", "flood_full"])
        };
        // Shorter than the kernel can send: refused with an error.
        let traffic: Vec<String> = sorts.iter().map(|(traffic, _)| format!("p0={traffic}")).collect();
        let traffic = format!("{} p0=rate:1M,sort:runt", traffic.join(" "));
        let (report, before, after) = self.send(&traffic, |books| {
            sorts.iter().map(|(_, fate)| fate(books)).sum::<u64>()
                + lost(books)
                + number(&books.unclaimed["runt"])
        });
        let lost = lost(&after) - lost(&before);
        for (at, (what, fate)) in sorts.iter().enumerate() {
            let stream = &report["traffic"][at];
            let (sent, met) = (number(&stream["sent"]), fate(&after) - fate(&before));
            assert!(sent > 100 && met <= sent && met + lost >= sent, "{what}: {met} of {sent}: {report}");
            assert_eq!((&stream["received"], &stream["lost"]), (&0.into(), &sent.into()), "{what}: {report}");
            assert!(stream["latency_us"].is_null(), "{what}: {report}");
        }
        let runts = number(&report["traffic"][sorts.len()]["sent"]);
        assert!(number(&report["ports"]["p0"]["refused"]) + runts > 100, "{report}");
        assert!(report["traffic"][sorts.len()]["received"].is_null(), "{report}");
    }

    fn passes_traffic(&self) {
        self.what_is_forwarded_comes_back();
        self.every_sort_meets_its_fate();
        self.frames_are_those_of_the_engine();
    }

    /// All frames that the network forwards come back, or the daemon says where they were lost.
    fn what_is_forwarded_comes_back(&self) {
        let (report, before, after) = self.send("p0=rate:8M,size:64-1518", |books| {
            number(&books.network["forwarded"]) + books.lost(&BEFORE_THE_PLANE)
        });
        let reasons = [&BEFORE_THE_PLANE[..], &["port_full", "handover_send_full"]].concat();
        let lost = after.lost(&reasons) - before.lost(&reasons);
        let (stream, total) = (&report["traffic"][0], &report["total"]);
        assert!(number(&stream["lost"]) <= lost, "{lost} lost: {report}");
        assert_eq!(number(&stream["received"]) + number(&stream["lost"]), number(&stream["sent"]));
        assert_eq!((&stream["doubled"], &stream["reordered"]), (&0.into(), &0.into()), "{report}");
        assert_eq!((&total["missed"], &report["stopped"]), (&0.into(), &false.into()), "{report}");
        let latency = ["min", "median", "p99", "max"].map(|of| stream["latency_us"][of].as_f64().unwrap());
        assert!(latency.is_sorted() && latency[3] > 0.0, "{report}");
        assert_eq!(report["ports"]["p1"]["received"], stream["received"], "{report}");
        // Never more than was requested, whatever rate this machine reaches.
        let rate = |of: &str| report["ports"]["p0"][of].as_f64().unwrap();
        assert!(rate("sent_gbps") <= rate("wanted_gbps") * 1.01 && rate("sent_gbps") > 0.0, "{report}");
    }

    /// The same traffic on these wires and in the software engine: the frames that leave have the same bytes.
    fn frames_are_those_of_the_engine(&self) {
        let traffic = "--duration-us 100000 --traffic p0=rate:4M,size:imix,seed:7 p1=rate:3M,flows:3 p0=rate:1M,sort:ttl1";
        let run = |how: &str, folder: &str| {
            let folder = self.lab.folder().join(folder);
            let line = format!("{how} --out {} {traffic} -o json", folder.display());
            let report = lab_run(&self.lab, &self.daemon.cli, &line).expect_ok().json();
            let frames = ["p0", "p1"].map(|port| generated(&folder.join(format!("{port}.pcap"))));
            (report, frames)
        };
        let (live, on_wires) = run("--live p0=w0 p1=w1", "wires");
        let (soft, in_engine) = run("--on soft", "engine");
        for at in 0..3 {
            let (live, soft) = (&live["traffic"][at], &soft["traffic"][at]);
            assert_eq!(live["sent"], soft["offered"]);
            if live["lost"] == 0 {
                assert_eq!(live["received"], soft["forwarded"]);
            }
        }
        // A busy machine loses some frames. Those that came, came once, and the engine sends the same.
        for (mut on_wire, in_engine) in on_wires.into_iter().zip(in_engine) {
            on_wire.sort();
            let (all, mut engine) = (on_wire.len(), in_engine);
            engine.sort();
            on_wire.dedup();
            assert!(all > 100 && all == on_wire.len(), "{all} frames, {} of them different", on_wire.len());
            assert!(on_wire.iter().all(|frame| engine.binary_search(frame).is_ok()));
        }
    }
}

/// The generated frames of a capture: UDP to port 9.
fn generated(file: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut frames = Vec::new();
    while reader.next_frame(|frame| frames.push(frame.bytes.to_vec())).unwrap() {}
    frames.retain(|frame| frame.get(36..38) == Some(&[0, 9]));
    frames
}

#[test]
fn generated_traffic_passes_a_node_in_software() {
    if !can_run(&[]) {
        return;
    }
    world("soft").passes_traffic();
}

#[test]
fn generated_traffic_passes_a_node_on_the_card() {
    if !can_run(&[]) {
        return;
    }
    world("card").passes_traffic();
}

/// A node that loses, duplicates and reorders known frames, and sends foreign ones: the report lists exactly these.
#[test]
fn faults_of_a_bad_node_are_reported() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    lab.unbridge();
    let red = lab.pair_document("red", 1, 1, [0, 1]);
    std::fs::write(lab.folder().join("lab.yaml"), all(&[lab.node_document(""), red.yaml()])).unwrap();
    let (mut from, mut to) = (Raw::open(lab.node(), "p0"), Raw::open(lab.node(), "p1"));
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    // Of ten frames the fourth is lost, the sixth comes twice, the eighth comes after the ninth, and a foreign frame after the first.
    let relay = std::thread::spawn(move || {
        let (mut number, mut held, mut strangers) = (0u64, Vec::new(), 0u64);
        while !is_over.load(Ordering::Relaxed) {
            let mut frames = Vec::new();
            from.receive(|frame| frames.push(frame.to_vec()));
            for frame in frames.iter().filter(|frame| frame.get(36..38) == Some(&[0, 9])) {
                let whole = frame.as_slice();
                // A foreign frame: with the mark of another stream.
                let mut stranger = frame.clone();
                stranger[54] ^= 1;
                match number % 10 {
                    0 => {
                        to.send([whole, &stranger]);
                        strangers += 1;
                    }
                    3 => {}
                    5 => drop(to.send([whole, whole])),
                    7 => held = frame.clone(),
                    8 => drop(to.send([whole, &held])),
                    _ => drop(to.send([whole])),
                }
                number += 1;
            }
            if frames.is_empty() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        (number, strangers)
    });
    // 223 frames.
    let line = "--live p0=w0 p1=w1 --traffic p0=rate:1M,sort:nobody,flows:1 --duration-us 150000 -o json";
    let report = lab_run(&lab, &Cli::new(&lab), line).expect_ok().json();
    over.store(true, Ordering::Relaxed);
    let (relayed, strangers) = relay.join().unwrap();
    let stream = &report["traffic"][0];
    let counts = ["sent", "received", "lost", "doubled", "reordered"].map(|of| number(&stream[of]));
    assert_eq!((relayed, strangers), (223, 23), "{report}");
    assert_eq!(counts, [223, 201, 22, 22, 22], "{report}");
    assert_eq!(report["ports"]["p1"]["others"], 23, "{report}");
    assert_eq!(report["ports"]["p1"]["received"], 201 + 22, "{report}");
    assert_eq!(report["total"]["missed"], 0, "{report}");
}

#[test]
fn interfaces_stay_as_they_are() {
    if !can_run(&["setpriv"]) {
        return;
    }
    let lab = Lab::new(2);
    let cli = Cli::new(&lab);
    lab.unbridge();
    let red = lab.pair_document("red", 1, 1, [0, 1]);
    std::fs::write(lab.folder().join("lab.yaml"), all(&[lab.node_document(""), red.yaml()])).unwrap();
    let promiscuity = || {
        let links = lab.switch().run("ip", &["-j", "-d", "link", "show", "w0"]).expect_ok().json();
        number(&links[0]["promiscuity"])
    };
    assert_eq!(promiscuity(), 0);

    // Ctrl-C ends the traffic; the report has what was sent until then.
    let line =
        arguments(&lab, "--live p0=w0 --traffic p0=rate:100k,sort:nobody --duration-us 60000000 -o json");
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut command = cli.command(&line);
    let child = lab.switch().spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    until("it is promiscuous", 30, || promiscuity() == 1);
    until("frames arrive", 30, || lab.node().counter("p0", "rx_packets") > 3);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stopped"], true, "{report}");
    let sent = number(&report["total"]["sent"]);
    assert!(sent > 3 && sent < 8000, "{report}");
    assert_eq!(report["traffic"][0]["lost"], sent, "{report}");
    assert_eq!(promiscuity(), 0);

    // Errors name the obstacle and say what to do.
    let traffic = "--traffic p0=rate:1M,sort:nobody --duration-us 1000";
    let fails = |how: &str, says: &str| {
        let output = lab_run(&lab, &cli, &format!("{how} {traffic}")).expect_code(3);
        assert!(output.stdout.is_empty() && output.stderr.contains(says), "{output}");
    };
    let all = arguments(&lab, &format!("--live p0=w0 {traffic}"));
    let binary = hue_e2e::daemon::binary().to_string_lossy();
    let mut less = vec!["--bounding-set=-net_raw", "--inh-caps=-net_raw", &binary];
    less.extend(all.iter().map(String::as_str));
    let output = lab.switch().run("setpriv", &less).expect_code(3);
    let says = "w0: no permission to send and receive on it (CAP_NET_RAW); run as root";
    assert!(output.stdout.is_empty() && output.stderr.contains(says), "{output}");
    fails("--live p0=absent", "absent: no interface here has this name");
    // The interface is removed in the middle of the traffic.
    let line = "--live p0=w0 --traffic p0=rate:100k,sort:nobody --duration-us 60000000";
    let line = arguments(&lab, line);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut command = cli.command(&line);
    let arrived = lab.node().counter("p0", "rx_packets");
    let child = lab.switch().spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    until("frames arrive", 30, || lab.node().counter("p0", "rx_packets") > arrived + 3);
    lab.node().ip(&["link", "set", "p0", "down"]);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && errors.contains("w0: it has no carrier"), "{errors}");
    fails("--live p0=w0", "w0: it has no carrier; connect its cable");
    lab.switch().ip(&["link", "set", "w0", "down"]);
    fails("--live p0=w0", "w0: it is down; switch it on: ip link set w0 up");
    assert_eq!(promiscuity(), 0);
}
