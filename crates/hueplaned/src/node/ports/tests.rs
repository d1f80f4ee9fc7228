//! Inputs and effects of ports, without an operating system.

use hue_ports::{MemoryPort, Pool};

use super::*;

/// The ports of a test, and what the core would do for them.
struct Bench {
    ports: Ports,
    desired: Vec<NodePort>,
    preparing: bool,
    region: Region,
    /// The effects so far, as text.
    seen: Vec<String>,
    jobs: Vec<Job>,
    now: Instant,
    /// Why packet memory cannot be reserved, or a port not be used.
    refuses: Option<&'static str>,
}

impl Bench {
    fn new() -> Self {
        let region = Pool::new(64, 2048).unwrap().region();
        let memory = Memory { slots: 32_768, slot_bytes: 2048 };
        let (ports, desired, seen, jobs) =
            (Ports::new(memory, SLOTS_MAX), Vec::new(), Vec::new(), Vec::new());
        Self { ports, desired, preparing: false, region, seen, jobs, now: Instant::now(), refuses: None }
    }

    fn give(&mut self, input: Input) {
        let around = Around {
            desired: &self.desired.clone(),
            workers: 1,
            is_preparing: self.preparing,
            predecessor: None,
            queues: |_| 1,
            now: self.now,
        };
        for effect in self.ports.take(input, &around) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let refused = self.refuses.map_or(Ok(()), |why| Err(why.to_owned()));
        match effect {
            Effect::Then(input) => self.give(input),
            Effect::Tell(kind, name, text) => self.seen.push(format!("{kind:?} {name}: {text}")),
            Effect::TellTrouble(text) => self.seen.push(text),
            Effect::WireChanged(id) => self.seen.push(format!("wire {id}")),
            Effect::Withdraw(name, _) => self.seen.push(format!("withdraw {name}")),
            Effect::SetMemory(memory) => {
                self.seen.push(format!("memory {}", memory.slots));
                self.give(Input::MemoryFits(Ok(memory)));
            }
            Effect::Reserve(name, _) => {
                let region = self.region.clone();
                self.give(Input::Reserved(name, refused.map(|()| Site::Memory(region))));
            }
            Effect::Populate(_) => self.seen.push("populate".to_owned()),
            Effect::Prepare(interface, ..) => self.seen.push(format!("prepare {interface}")),
            Effect::Start(job) => self.jobs.push(job),
            Effect::Adopt(adopt) => {
                let driver = adopt.port.driver();
                self.give(Input::Adopted(adopt.name, adopt.index, adopt.note, refused.map(|()| driver)));
            }
            Effect::ListLinks => self.seen.push("list".to_owned()),
            Effect::Free(interface) => self.seen.push(format!("free {interface}")),
        }
    }

    /// Documents name a port on an interface.
    fn want(&mut self, name: &str, id: u8, interface: &str) {
        let text = format!(
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: box}}\n\
             spec: {{ports: [{{name: {name}, interface: {interface}}}]}}\n"
        );
        let source = hue_intent::Source { name: "node".to_owned(), bytes: text.into_bytes() };
        let want = hue_intent::parse(vec![source]).unwrap().node.spec.ports.remove(0);
        self.desired.push(want.clone());
        self.give(Input::Want(name.to_owned(), PortId::new(id), want));
    }

    fn link(&mut self, interface: &str, index: u32, up: bool) {
        let (name, mtu) = (interface.to_owned(), 1500);
        let link = Link { index, name, mtu, up, carrier: up, ..Link::default() };
        self.give(Input::Links(vec![LinkChange::Present(link)]));
    }

    /// The oldest job ends, and its port is open on the interface with this index.
    fn opened(&mut self, index: u32) {
        let Job::Open(opening) = self.jobs.remove(0) else { panic!("no port is being opened") };
        let (port, _) = MemoryPort::pair(&opening.interface, 4).unwrap();
        let opened = Opened { port: Box::new(port), note: None };
        let site = opening.site.clone();
        self.give(Input::Opened(opening.tag, Ok(OpenPort { opened, index, site })));
    }

    fn seen(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }
}

#[test]
fn a_port_opens_when_its_interface_is_there_and_closes_when_it_goes() {
    let mut bench = Bench::new();
    bench.want("p0", 1, "eth0");
    assert_eq!(bench.seen(), ["PortDown p0: interface eth0 does not exist", "wire 1"]);
    bench.link("eth0", 7, true);
    assert_eq!((bench.jobs.len(), bench.ports.opening().len()), (1, 1));
    bench.link("eth0", 7, true);
    assert_eq!(bench.jobs.len(), 1, "one job per interface");
    bench.seen();
    bench.opened(7);
    assert_eq!(bench.seen(), ["PortUp p0: interface eth0 uses driver memory", "wire 1", "free eth0"]);
    assert!(bench.ports.has_wire(PortId::new(1)) && bench.ports.opening().is_empty());
    bench.link("eth0", 7, false);
    let down = "PortDown p0: its interface is switched off";
    let again = "PortDown p0: interface eth0 is switched off: ip link set eth0 up";
    assert_eq!(bench.seen(), ["withdraw p0", down, "wire 1", again, "wire 1", "wire 1"]);
}

#[test]
fn memory_is_fitted_before_the_first_port_of_many_and_not_again() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..9).map(|n| format!("p{n}")).collect();
    for (id, name) in (1..).zip(&names) {
        bench.want(name, id, &format!("eth{id}"));
    }
    bench.seen();
    let links = (1..10).map(|id| {
        let name = format!("eth{id}");
        LinkChange::Present(Link { index: id, name, mtu: 1500, up: true, ..Link::default() })
    });
    bench.give(Input::Links(links.collect()));
    let seen = bench.seen();
    assert_eq!(seen.iter().filter(|what| *what == "memory 36864").count(), 1, "{seen:?}");
    assert_eq!(bench.jobs.len(), 9);
}

#[test]
fn a_refused_port_waits_for_its_retry() {
    let mut bench = Bench::new();
    bench.link("eth0", 7, true);
    bench.refuses = Some("no memory");
    bench.want("p0", 1, "eth0");
    assert_eq!(bench.seen(), ["PortDown p0: no memory", "wire 1"]);
    let due = bench.ports.due().unwrap();
    assert_eq!(due.duration_since(bench.now).as_millis(), 500);
    assert_eq!((bench.ports.due_by(due), bench.jobs.len()), (vec!["p0".to_owned()], 0));
    bench.refuses = None;
    bench.give(Input::Tend("p0".to_owned()));
    assert_eq!((bench.ports.due(), bench.jobs.len()), (None, 1));
    // The data plane refuses it when it is open: told once, and tried again later.
    bench.refuses = Some("no worker");
    bench.opened(7);
    assert_eq!(bench.seen(), ["PortDown p0: no worker", "wire 1", "free eth0"]);
    assert!(bench.ports.due().is_some());
}

#[test]
fn a_port_that_is_no_longer_wanted_is_closed_before_its_interface_is_free() {
    let mut bench = Bench::new();
    bench.link("eth0", 7, true);
    bench.want("p0", 1, "eth0");
    bench.give(Input::Remove("p0".to_owned(), "the documents no longer have it"));
    assert_eq!(bench.ports.len(), 0);
    bench.seen();
    bench.opened(7);
    assert!(matches!(bench.jobs.remove(0), Job::Close(interface, _) if interface == "eth0"));
    assert_eq!((bench.seen(), bench.ports.opening().len()), (Vec::new(), 1));
    bench.give(Input::Free("eth0".to_owned()));
    assert_eq!((bench.seen(), bench.ports.opening().len()), (vec!["free eth0".to_owned()], 0));
}

#[test]
fn nothing_is_opened_while_the_daemon_before_has_the_ports() {
    let mut bench = Bench::new();
    bench.preparing = true;
    bench.link("eth0", 7, true);
    bench.want("p0", 1, "eth0");
    assert_eq!(
        (bench.seen(), bench.jobs.len()),
        (["populate", "prepare eth0"].map(str::to_owned).to_vec(), 0)
    );
    bench.preparing = false;
    bench.give(Input::Tend("p0".to_owned()));
    assert_eq!(bench.jobs.len(), 1);
}
