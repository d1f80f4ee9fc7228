//! The running system between two hosts on the same kernel: two namespaces, each behind a veth. Needs root.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{hop, prefix, vid};
use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Loss, Settings};
use hue_ports::{Driver, OpenOptions, Wanted};
use hue_soft::live::{CaptureFilter, Live, LiveConfig};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_wire::Mac;

/// A time limit longer than any operation takes on a busy machine; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);
const HOSTS: u8 = 2;

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "timeout while waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    if !output.status.success() {
        eprintln!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

fn must(command: &str) {
    assert!(run(command), "{command}");
}

fn router_mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, host])
}

fn host_mac(host: u8) -> Mac {
    Mac([2, 0, 0, 0, 2, host])
}

/// Hosts 10.HOST.0.2 behind interfaces of ours; removed when dropped.
struct Hosts {
    name: String,
}

impl Hosts {
    fn new(tag: &str) -> Self {
        let hosts = Self { name: format!("hts{}{tag}", std::process::id()) };
        (0..HOSTS).for_each(|host| hosts.make(host));
        hosts
    }

    fn make(&self, host: u8) {
        let (ns, own) = (self.namespace(host), self.interface(host));
        must(&format!("ip netns add {ns}"));
        must(&format!("ip link add {own} type veth peer name eth0 netns {ns}"));
        must(&format!("ip link set {own} up"));
        must(&format!("ip -n {ns} link set eth0 address {} up", host_mac(host)));
        must(&format!("ip -n {ns} address add 10.{host}.0.2/24 dev eth0"));
        must(&format!("ip -n {ns} route add default via 10.{host}.0.1"));
        let gateway = format!("10.{host}.0.1 lladdr {} dev eth0", router_mac(host));
        must(&format!("ip -n {ns} neighbour add {gateway} nud permanent"));
    }

    fn namespace(&self, host: u8) -> String {
        format!("hue-{}{host}", self.name)
    }

    fn interface(&self, host: u8) -> String {
        format!("{}{host}", self.name)
    }

    fn ping(&self, count: u32, seconds: u32) -> bool {
        let ping = format!("ping -q -i 0.005 -W {seconds} -c {count} 10.1.0.2");
        run(&format!("ip netns exec {} {ping}", self.namespace(0)))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 0..HOSTS {
            let _ = run(&format!("ip link del {}", self.interface(host)));
            let _ = run(&format!("ip netns del {}", self.namespace(host)));
        }
    }
}

fn program() -> Program {
    let vid = vid(7);
    let port = |host: u8| VirtualPort {
        name: format!("v{host}"),
        port: PortId::new(host),
        mac: router_mac(host),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let select = |host: u8| Match::Mac { port: PortId::new(host), mac: router_mac(host) };
    let row = |host: u8| Row { vid, vport: u16::from(host), select: select(host) };
    let neighbour = |host: u8| Adjacency::forward(PortId::new(host), router_mac(host), host_mac(host), 1500);
    Program {
        vid,
        name: "red".to_owned(),
        settings: Settings::of(Kind::Ipv4),
        ports: (0..HOSTS).map(port).collect(),
        rows: (0..HOSTS).map(row).collect(),
        next_hops: (0..HOSTS).map(neighbour).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32(
            (0..HOSTS).map(|host| (prefix(&format!("10.{host}.0.0/24")), hop(u16::from(host)))).collect(),
        ),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

fn open(live: &mut Live, hosts: &Hosts, host: u8, driver: Wanted) -> Driver {
    let (interface, options) = (hosts.interface(host), OpenOptions { driver, ..OpenOptions::default() });
    live.open_port(PortId::new(host), |region| {
        hue_ports::open_on(&interface, &options, region).map(|opened| opened.port)
    })
    .unwrap()
}

#[test]
fn hosts_reach_each_other_over_every_driver() {
    if !rustix::process::geteuid().is_root() {
        hue_testdata::skipped("root");
        return;
    }
    for (tag, driver, workers) in
        [("a", Wanted::AfXdp, 1), ("b", Wanted::Packet, 1), ("c", Wanted::AfXdp, 2), ("d", Wanted::Packet, 2)]
    {
        let hosts = Hosts::new(tag);
        let mut live = Live::start(LiveConfig { workers, ..LiveConfig::default() }).unwrap();
        let drivers: Vec<_> = (0..HOSTS).map(|host| open(&mut live, &hosts, host, driver)).collect();
        println!("{drivers:?}");
        live.load(&[program()]).unwrap();
        let events = live.port_events();
        let stream = live.capture(CaptureFilter { vid: Some(vid(7)), ..CaptureFilter::default() });
        assert!(hosts.ping(200, 20), "over {driver:?}, {workers} workers");
        let mut seen = 0;
        while stream.next(Duration::from_millis(100)).is_some() {
            seen += 1;
        }
        assert!(seen >= 800, "requests and replies, in and out: {seen}");
        until("sums that hold", || live.totals(vid(7)).unwrap().check().is_ok());
        let totals = live.totals(vid(7)).unwrap();
        assert!(totals.outcomes.forwarded() >= 400, "{totals:?}");
        assert_eq!(totals.sent_packets(), totals.outcomes.forwarded());
        // The interface of one host is removed and added again; the other one stays.
        must(&format!("ip link del {}", hosts.interface(1)));
        let event = events.recv_timeout(PATIENCE).unwrap();
        assert!((event.id, event.gone) == (PortId::new(1), true), "{event:?}");
        assert!(!hosts.ping(1, 1));
        until("port_down", || live.totals(vid(7)).unwrap().losses.get(Loss::PortDown) > 0);
        assert!(live.port_state(PortId::new(0)).unwrap().up);
        must(&format!("ip netns del {}", hosts.namespace(1)));
        hosts.make(1);
        open(&mut live, &hosts, 1, driver);
        assert!(hosts.ping(20, 20), "after it came back");
        live.stop();
    }
}
