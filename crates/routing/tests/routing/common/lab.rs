//! A router namespace with two virtual ports, a host behind each, and the RIB that follows the router.
//!
//! The ports are veth pairs: for the kernel they behave like TAPs, and the other end can have a host.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::{Namespace, netns};
use hue_routing::{Batch, Event, Family, Monitor, Rib, RibPort, RibUpdate, Session};
use hue_tables::Vid;
use hue_wire::Mac;

/// Timeout for expected events: long, for busy machines.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the test can run; prints why if it cannot.
pub fn root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    if !root {
        hue_testdata::skipped("root");
    }
    root
}

/// Whether a program is installed; prints that if it is not.
pub fn has(program: &str) -> bool {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/frr"];
    let there = folders.iter().any(|folder| fs::exists(format!("{folder}/{program}")).unwrap_or(false));
    if !there {
        hue_testdata::skipped(program);
    }
    there
}

/// The namespaces of one test, removed at its end.
pub struct Lab {
    start: String,
}

impl Lab {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self { start: format!("htr-{}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    pub fn namespace(&self, name: &str) -> Namespace {
        let namespace = Namespace::create(&format!("{}{name}", self.start)).unwrap();
        ip(&namespace, "link set lo up");
        namespace
    }

    /// A router `r` with ports `v0` (10.1.0.1/24, host .2 in `h0`) and `v1` (10.2.0.1/24, host .2 in `h1`).
    pub fn router(&self) -> Namespace {
        let router = self.namespace("r");
        ip(&router, "link add other type veth peer name behind");
        for (port, net) in [(0, "10.1.0"), (1, "10.2.0")] {
            let host = self.namespace(&format!("h{port}"));
            let peer = host.name();
            ip(
                &router,
                &format!("link add v{port} address {} type veth peer name e0 netns {peer}", mac(port)),
            );
            ip(&router, &format!("addr add {net}.1/24 dev v{port}"));
            ip(&router, &format!("link set v{port} up"));
            ip(&host, &format!("addr add {net}.2/24 dev e0"));
            ip(&host, "link set e0 up");
            ip(&host, &format!("route add default via {net}.1"));
        }
        ip(&router, "addr add 10.3.0.1/24 dev other");
        ip(&router, "link set other up");
        ip(&router, "link set behind up");
        router
    }

    /// As [`Self::router`], with IPv6: `v0` has 2001:db8:1::1/64 (host ::2), `v1` has 2001:db8:2::1/64.
    pub fn router6(&self) -> Namespace {
        let router = self.router();
        for key in ["all.forwarding=1", "all.accept_dad=0", "default.accept_dad=0", "all.keep_addr_on_down=1"]
        {
            let status = inside(&router, "sysctl").args(["-qw", &format!("net.ipv6.conf.{key}")]).status();
            assert!(status.unwrap().success(), "sysctl {key}");
        }
        for (port, host) in [(1, "h0"), (2, "h1")] {
            ip(&router, &format!("addr add 2001:db8:{port}::1/64 dev v{} nodad", port - 1));
            let host = Namespace::open(&format!("{}{host}", self.start)).unwrap();
            ip(&host, &format!("addr add 2001:db8:{port}::2/64 dev e0 nodad"));
        }
        ip(&router, "addr add 2001:db8:3::1/64 dev other nodad");
        router
    }

    pub fn host(&self, port: u8) -> Namespace {
        Namespace::open(&format!("{}h{port}", self.start)).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in netns::list(&self.start).unwrap_or_default() {
            netns::delete(&name).ok();
        }
    }
}

/// A process that is stopped at the end of the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub fn mac(port: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, port])
}

pub fn ports() -> Vec<RibPort> {
    let port = |index: u8| RibPort {
        interface: format!("v{index}"),
        port: PortId::new(5 - index),
        mac: mac(index),
        mtu_bytes: 1500,
        peer: None,
    };
    vec![port(0), port(1)]
}

/// Runs `ip` in a namespace and returns its output.
pub fn ip(namespace: &Namespace, arguments: &str) -> String {
    let output = command(namespace, arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs many `ip` commands, some of which may fail. Returns the output and the failures.
pub fn ip_batch(namespace: &Namespace, commands: &str) -> (String, String) {
    let mut child = command(namespace, "-force -batch -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(commands.as_bytes()).unwrap());
        let errors = scope.spawn(move || {
            let mut errors = String::new();
            stderr.read_to_string(&mut errors).unwrap();
            errors
        });
        let output = child.wait_with_output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), errors.join().unwrap())
    })
}

fn command(namespace: &Namespace, arguments: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["-n", namespace.name()]).args(arguments.split(' '));
    command
}

/// A command that runs in a namespace.
pub fn inside(namespace: &Namespace, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace.name(), program]);
    command
}

/// A monitored network and its RIB.
pub struct Watch<K: Family = u32> {
    pub monitor: Monitor,
    pub batches: Receiver<Batch>,
    pub rib: Rib<K>,
    pub vid: Vid,
    pub session: Session,
    /// Number of complete snapshots.
    pub snapshots: usize,
    /// Number of events applied.
    pub events: usize,
}

impl Watch {
    /// Of IPv4.
    pub fn new(namespace: &Namespace) -> Self {
        Self::of(namespace)
    }
}

impl<K: Family> Watch<K> {
    pub fn of(namespace: &Namespace) -> Self {
        let (mut monitor, batches) = Monitor::channel(16).unwrap();
        let vid = Vid::new(7).unwrap();
        let session = monitor.add(vid, namespace).unwrap();
        Self { monitor, batches, rib: Rib::new(ports()), vid, session, snapshots: 0, events: 0 }
    }

    /// Applies events for some time.
    pub fn pump(&mut self, time: Duration) -> bool {
        let Ok(batch) = self.batches.recv_timeout(time) else { return false };
        assert_eq!(batch.vid, self.vid);
        assert!(batch.events.len() <= hue_routing::BATCH_EVENTS_MAX, "{} events", batch.events.len());
        if batch.session != self.session {
            return true;
        }
        self.snapshots += batch.events.iter().filter(|event| **event == Event::End).count();
        self.events += batch.events.len();
        for event in batch.events {
            if let Event::Closed(reason) = &event {
                panic!("closed: {reason}");
            }
            self.rib.apply(event);
        }
        if self.rib.take_resync_needed() {
            self.monitor.resync(self.vid);
        }
        true
    }

    /// Applies events until a condition is true.
    pub fn until(&mut self, what: &str, mut so: impl FnMut(&mut Rib<K>) -> bool) {
        self.until_none(|rib| (!so(rib)).then(|| what.to_owned()));
    }

    /// Applies events until `wrong` returns `None`.
    pub fn until_none(&mut self, mut wrong: impl FnMut(&mut Rib<K>) -> Option<String>) {
        let end = Instant::now() + PATIENCE;
        while let Some(wrong) = wrong(&mut self.rib) {
            assert!(Instant::now() < end, "still not: {wrong}");
            self.pump(Duration::from_millis(20));
        }
    }

    /// Applies events until another snapshot is complete.
    pub fn snapshot(&mut self) -> Option<RibUpdate<K>> {
        let (before, end) = (self.snapshots, Instant::now() + PATIENCE);
        while self.snapshots == before {
            assert!(Instant::now() < end, "no snapshot");
            self.pump(Duration::from_millis(20));
        }
        self.rib.take_update()
    }
}
