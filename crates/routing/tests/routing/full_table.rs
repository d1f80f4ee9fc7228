//! A full table of 318,457 routes in a namespace: installed by `ip -batch` and by BIRD, followed, listed
//! again, and removed with its link. Also a monitor whose batches nobody receives for a while. Prints
//! durations but asserts none. Needs root and the table (`HUEPLANE_DATA`).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use hue_planes::AdjacencyKind;
use hue_routing::{Event, Options, Rib, load_routes};
use hue_tables::{Prefix4, Prefix6};

use crate::common::lab::{Lab, PATIENCE, Process, Watch, has, inside, ip, ip_batch, ports, root};

const TABLE: &str = "rib/ris-rrc06-2010-07-01-as2497.v4.pfx-nhas.txt.xz";

/// The prefixes of the table, each with one of 200 routers on the first port's link; `None` if the test
/// cannot run.
fn full_table() -> Option<Vec<(Prefix4, Ipv4Addr)>> {
    if !root() {
        return None;
    }
    let path = hue_testdata::path(TABLE)?;
    let routes = load_routes(&path, &Options::default()).unwrap();
    let via = |hop: u16| Ipv4Addr::new(10, 1, 0, 10 + (hop % 200) as u8);
    Some(routes.v4.iter().map(|(prefix, hop)| (*prefix, via(hop.get()))).collect())
}

fn batch(table: &[(Prefix4, Ipv4Addr)]) -> String {
    table.iter().fold(String::new(), |mut text, (prefix, via)| {
        writeln!(text, "route add {prefix} via {via}").unwrap();
        text
    })
}

/// Number of published routes that are in the table.
fn of_table(rib: &Rib, table: &BTreeSet<Prefix4>) -> usize {
    rib.published().1.iter().filter(|(prefix, _)| table.contains(prefix)).count()
}

/// Memory of the process in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Processor time of the process in seconds.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn say(what: &str, routes: usize, time: Duration) {
    println!("{what}: {routes} routes in {time:.2?}, {:.0} routes/s", routes as f64 / time.as_secs_f64());
}

/// Applies events, and takes updates, until the entire table is published.
fn follow(watch: &mut Watch, count: usize) -> usize {
    let (end, mut updates) = (Instant::now() + PATIENCE, 0);
    while watch.rib.counts().routes < count {
        assert!(Instant::now() < end, "{} of {count} routes", watch.rib.counts().routes);
        watch.pump(Duration::from_millis(100));
        updates += watch.rib.take_update().map_or(0, |update| update.routes.len());
    }
    updates
}

#[test]
fn a_full_table_is_installed_and_removed() {
    let Some(table) = full_table() else { return };
    let prefixes: BTreeSet<Prefix4> = table.iter().map(|(prefix, _)| *prefix).collect();
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot();
    let own = watch.rib.counts().routes;
    let commands = batch(&table);

    // Live, including the work of the kernel and `ip`.
    let (before, used) = (memory(), processor());
    let start = Instant::now();
    let installed = std::thread::scope(|scope| {
        let install = scope.spawn(|| {
            assert_eq!(ip_batch(&router, &commands).1, "");
            start.elapsed()
        });
        follow(&mut watch, own + table.len());
        install.join().unwrap()
    });
    say("ip -batch alone", table.len(), installed);
    say("ip -batch to updates", table.len(), start.elapsed());
    println!("{} events, {} snapshots", watch.events, watch.snapshots);
    println!("processor time of ours: {:.2} s", processor() - used);
    println!("about {} bytes a route", memory().saturating_sub(before) / table.len());
    assert_eq!(of_table(&watch.rib, &prefixes), table.len());
    assert!(watch.rib.published().0.len() < 220, "rows are shared");

    // Another monitor starts with the complete table.
    let start = Instant::now();
    let mut second = Watch::new(&router);
    let update = second.snapshot().unwrap();
    say("listing to updates", update.routes.len(), start.elapsed());
    assert!(update.complete);
    assert_eq!(of_table(&second.rib, &prefixes), table.len());
    drop(second);

    // All routes are removed with their link, without notifications.
    let start = Instant::now();
    ip(&router, "link set v0 down");
    println!("link down in the kernel: {:.2?}", start.elapsed());
    let start = Instant::now();
    watch.until("the table is gone", |rib| {
        rib.take_update();
        rib.counts().routes < own
    });
    say("link down to updates", table.len(), start.elapsed());
}

#[test]
fn cost_of_parsing_and_of_the_rib() {
    let Some(table) = full_table() else { return };
    let lab = Lab::new();
    let router = lab.router();
    assert_eq!(ip_batch(&router, &batch(&table)).1, "");
    // The events of a snapshot, stored first and then applied: the cost of the RIB itself.
    let watch = Watch::new(&router);
    let mut events = Vec::new();
    while !events.contains(&Event::End) {
        events.extend(watch.batches.recv_timeout(PATIENCE).unwrap().events);
    }
    let changes: Vec<Event> = events
        .iter()
        .filter_map(|event| match event {
            Event::Route(_, route) => Some(Event::Route(hue_routing::Change::Added, route.clone())),
            _ => None,
        })
        .collect();
    let mut rib = Rib::<u32>::new(ports());
    let count = events.len();
    let start = Instant::now();
    rib.apply_all(events);
    let update = rib.take_update().unwrap();
    say("snapshot into an empty one", update.routes.len(), start.elapsed());
    let again = changes.clone();
    let start = Instant::now();
    rib.apply_all(again);
    assert_eq!(rib.take_update(), None);
    say("the same again", count, start.elapsed());
    let mut fresh = Rib::<u32>::new(ports());
    fresh.apply_all([Event::Begin, Event::End]);
    let start = Instant::now();
    let mut updates = 0;
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        fresh.apply_all(changes.by_ref().take(256));
        updates += fresh.take_update().map_or(0, |update| update.routes.len());
    }
    say("changes into an empty one, updates of 256", updates, start.elapsed());
}

#[test]
fn lost_notifications_cause_a_new_snapshot() {
    let Some(table) = full_table() else { return };
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot();
    // More than the channel and the kernel can buffer: notifications are lost, and a new snapshot is taken.
    assert_eq!(ip_batch(&router, &batch(&table)).1, "");
    let removed = &table[..1000];
    let mut commands = String::new();
    for (prefix, via) in removed {
        writeln!(commands, "route del {prefix} via {via}").unwrap();
    }
    assert_eq!(ip_batch(&router, &commands).1, "");
    let prefixes: BTreeSet<Prefix4> = table.iter().map(|(prefix, _)| *prefix).collect();
    watch.until("all but those that went", |rib| {
        rib.take_update();
        of_table(rib, &prefixes) == table.len() - removed.len()
    });
    assert!(watch.snapshots > 1, "notices were lost");
    println!("{} events, {} snapshots", watch.events, watch.snapshots);
}

#[test]
fn bird_installs_a_full_table() {
    let Some(table) = full_table() else { return };
    if !has("bird") {
        return;
    }
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot();
    let own = watch.rib.counts().routes;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let routes = table.iter().fold(String::new(), |mut text, (prefix, via)| {
        writeln!(text, "route {prefix} via {via};").unwrap();
        text
    });
    std::fs::write(file("routes.conf"), routes).unwrap();
    let config = format!(
        "router id 10.1.0.1;\nprotocol device {{}}\nprotocol kernel {{ ipv4 {{ export all; import none; }}; }}\n\
         protocol static {{ ipv4;\ninclude \"{}\";\n}}\n",
        file("routes.conf").display()
    );
    std::fs::write(file("bird.conf"), config).unwrap();
    let start = Instant::now();
    let bird = bird(&router, folder.path());
    let updates = follow(&mut watch, own + table.len());
    say("BIRD to updates", updates, start.elapsed());
    println!("{} events, {} snapshots", watch.events, watch.snapshots);
    let row = watch.rib.routes(None).find(|row| row.prefix == table[1000].0.into()).unwrap();
    assert_eq!((row.protocol.as_str(), row.ways[0].via), ("bird", Some(table[1000].1.into())));
    assert_eq!(row.adjacency.kind(), AdjacencyKind::Glean);
    // When BIRD ends, it removes its routes.
    let pid = i32::try_from(bird.0.id()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
    watch.until("its routes are gone", |rib| {
        rib.take_update();
        rib.counts().routes <= own
    });
}

fn bird(router: &hue_host::Namespace, folder: &Path) -> Process {
    let path = |name: &str| folder.join(name).display().to_string();
    let (config, control) = (path("bird.conf"), path("bird.ctl"));
    let arguments = ["-f", "-c", &config, "-s", &control, "-P", &path("bird.pid")];
    Process(inside(router, "bird").args(arguments).spawn().unwrap())
}

/// The IPv6 table of 2026, installed by `ip -batch`, followed, listed again, and removed with its link.
#[test]
fn a_full_ipv6_table_is_installed_and_removed() {
    if !root() {
        return;
    }
    let Some(path) = hue_testdata::path("rib/ris-as3333-2026-05-11.v6.txt.xz") else { return };
    let derived = Options { derive_hops: Some(200), ..Options::default() };
    let routes = load_routes(&path, &derived).unwrap();
    let table: BTreeSet<Prefix6> = routes.v6.iter().map(|(prefix, _)| *prefix).collect();
    let commands = routes.v6.iter().fold(String::new(), |mut text, (prefix, hop)| {
        writeln!(text, "route add {prefix} via fe80::1:{:x} dev v0", 10 + hop.get()).unwrap();
        text
    });
    let lab = Lab::new();
    let router = lab.router6();
    let mut watch = Watch::<u128>::of(&router);
    watch.snapshot();
    let (own, before, start) = (watch.rib.counts().routes, memory(), Instant::now());
    let published =
        |rib: &Rib<u128>| rib.published().1.iter().filter(|(prefix, _)| table.contains(prefix)).count();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(ip_batch(&router, &commands).1, ""));
        while watch.rib.counts().routes < own + table.len() {
            assert!(start.elapsed() < PATIENCE, "{} routes", watch.rib.counts().routes);
            watch.pump(Duration::from_millis(100));
            watch.rib.take_update();
        }
    });
    say("IPv6: ip -batch to updates", table.len(), start.elapsed());
    println!("about {} bytes a route", memory().saturating_sub(before) / table.len());
    assert_eq!(published(&watch.rib), table.len());
    assert!(watch.rib.published().0.len() < 220, "rows are shared");

    let start = Instant::now();
    let mut second = Watch::<u128>::of(&router);
    let update = second.snapshot().unwrap();
    say("IPv6: listing to updates", update.routes.len(), start.elapsed());
    assert_eq!(published(&second.rib), table.len());
    drop(second);

    let start = Instant::now();
    ip(&router, "link set v0 down");
    watch.until("the table is gone", |rib| {
        rib.take_update();
        rib.counts().routes < own
    });
    say("IPv6: link down to updates", table.len(), start.elapsed());
}
