//! Unmodified routing daemons: FRR, which installs its routes through next-hop objects. Needs root and FRR.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::chown;
use std::path::Path;

use hue_planes::Adjacency;
use hue_routing::{Rib, RouteRow};
use nix::unistd::{Group, User};

use crate::common::lab::{Lab, Process, Watch, has, inside, ip, ports, root};

fn row(rib: &mut Rib, prefix: &str) -> Option<RouteRow> {
    rib.take_update();
    rib.route(prefix.parse().unwrap())
}

fn start(namespace: &hue_host::Namespace, daemon: &str, folder: &Path) -> Process {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut command = inside(namespace, &format!("/usr/lib/frr/{daemon}"));
    command.args(["-N", namespace.name(), "-A", "127.0.0.1", "-f", &path("frr.conf")]);
    command.args([
        "--vty_socket",
        &path(""),
        "-z",
        &path("zserv.api"),
        "-i",
        &path(&format!("{daemon}.pid")),
    ]);
    Process(command.spawn().unwrap())
}

#[test]
fn frr_routes_are_followed_and_survive_its_death() {
    if !root() || !has("zebra") || !has("staticd") {
        return;
    }
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot();
    let folder = tempfile::tempdir().unwrap();
    let (user, group) = (User::from_name("frr").unwrap().unwrap(), Group::from_name("frr").unwrap().unwrap());
    let file = folder.path().join("frr.conf");
    let config = "ip route 172.20.0.0/16 10.1.0.2\nip route 172.21.0.0/16 10.1.0.2\nip route 172.21.0.0/16 10.2.0.2\n\
                  ip route 172.22.0.0/16 blackhole\n";
    fs::write(&file, config).unwrap();
    for path in [folder.path(), &file] {
        chown(path, Some(user.uid.as_raw()), Some(group.gid.as_raw())).unwrap();
    }
    let zebra = start(&router, "zebra", folder.path());
    let _static = start(&router, "staticd", folder.path());
    watch.until("all routes", |rib| {
        ["172.20.0.0/16", "172.21.0.0/16", "172.22.0.0/16"].iter().all(|prefix| row(rib, prefix).is_some())
    });
    let one = row(&mut watch.rib, "172.20.0.0/16").unwrap();
    assert_eq!((one.protocol.as_str(), one.adjacency), ("static", Adjacency::glean(ports()[0].port)));
    assert_eq!(one.ways[0].via, Some(Ipv4Addr::new(10, 1, 0, 2).into()));
    let two = row(&mut watch.rib, "172.21.0.0/16").unwrap();
    assert_eq!(two.ways.len(), 2, "{two:?}");
    assert_eq!(row(&mut watch.rib, "172.22.0.0/16").unwrap().adjacency, Adjacency::local());
    println!("{}", ip(&router, "nexthop"));
    // A link goes down: FRR moves the route with two next hops to the other link.
    ip(&router, "link set v0 down");
    let other = Adjacency::glean(ports()[1].port);
    watch.until("the other way", |rib| {
        row(rib, "172.20.0.0/16").is_none()
            && row(rib, "172.21.0.0/16").is_some_and(|two| two.adjacency == other)
    });
    ip(&router, "link set v0 up");
    // (FRR 8.4 does not restore the group of the other route.)
    watch.until("the one way again", |rib| row(rib, "172.20.0.0/16").is_some());
    // When it is killed, its routes stay in the kernel, and in the RIB.
    drop(zebra);
    watch.monitor.resync(watch.vid);
    watch.snapshot();
    assert!(row(&mut watch.rib, "172.20.0.0/16").is_some());
    ip(&router, "nexthop flush");
    watch.until("they are gone", |rib| row(rib, "172.20.0.0/16").is_none());
}
