//! Tests of the lab itself, with the kernel as the router: properties on which the other tests rely.

use std::time::Duration;

use hue_e2e::traffic::Flow;
use hue_e2e::{Lab, bird, can_run, frr};

/// Makes the node's kernel a router between the first two ports.
fn kernel_router(lab: &Lab) {
    lab.node().ip_batch("address add 10.1.1.1/24 dev p0\naddress add 10.1.2.1/24 dev p1\n");
    lab.node().inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
}

#[test]
fn hosts_reach_each_other_only_through_the_node() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    // On one bridge and in one prefix: only the node may connect them.
    let beside = lab.bare_host("beside", 0, [2, 1, 1, 1, 1, 3], "10.1.1.3/24");
    assert_eq!(pair.left.ping(pair.right.address, 1), 0);
    kernel_router(&lab);
    pair.warm_up();
    assert_eq!(pair.left.ping(beside.address, 2), 0);
    assert_eq!(beside.ping(pair.left.router, 2), 2);

    let flow = Flow::start(&pair.left, &pair.right, 500, 200);
    std::thread::sleep(Duration::from_millis(500));
    let before = flow.received();
    assert!(before > 0);
    lab.unplug(1);
    std::thread::sleep(Duration::from_millis(300));
    let report = flow.stop();
    assert!(report.lost() > 0 && report.gap > 0 && report.duplicated == 0, "{report}");

    let lost = pair.left.space.name().to_owned();
    drop(pair);
    drop(beside);
    drop(lab);
    assert!(!std::path::Path::new("/run/netns").join(lost).exists());
}

#[test]
fn third_party_routing_daemons_run_in_hosts() {
    if !can_run(&["zebra", "ospfd", "bird"]) {
        return;
    }
    let lab = Lab::new(1);
    let host = lab.bare_host("a", 0, [2, 1, 1, 1, 1, 2], "10.1.1.2/24");
    lab.node().ip_batch("address add 10.1.1.1/24 dev p0\naddress add 192.168.1.1/32 dev lo\n");
    let run = |space: &hue_e2e::Space, line: &[&str]| space.run(line[0], &line[1..]);
    let name = |end: &str| format!("{}{end}", lab.name(""));
    let inner = frr::Frr::start(lab.folder(), &name("n"), &frr::ospf("10.1.1.1", &["p0", "lo"]), |line| {
        run(lab.node(), line)
    });
    let _outer = frr::Frr::start(lab.folder(), &name("h"), &frr::ospf("10.1.1.2", &["eth0"]), |line| {
        run(&host.space, line)
    });
    hue_e2e::until("OSPF is full", 40, || inner.full_neighbours() == 1);
    hue_e2e::until("the host learns the loopback", 20, || {
        host.space.run("ip", &["route"]).stdout.contains("192.168.1.1")
    });

    let prefixes = bird::made_prefixes(300);
    let _source =
        bird::Bird::start(lab.folder(), "s", &bird::source("10.1.1.2", "10.1.1.1", prefixes), |line| {
            run(&host.space, line)
        });
    let sink = bird::Bird::start(lab.folder(), "k", &bird::sink("10.1.1.1", "10.1.1.2"), |line| {
        run(lab.node(), line)
    });
    hue_e2e::until("BGP brings 300 routes", 30, || sink.routes() == 300);
}
