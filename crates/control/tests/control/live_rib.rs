//! Compares the compiled document with the routes that its network learns from the kernel, once everything in
//! the document is configured in its namespace: both give the same table. Needs root.
//!
//! The kernel also has 127.0.0.0/8, which documents cannot have. Routes that the kernel rejects (a gateway
//! that is the network's own address or a broadcast address) are omitted from both.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use hue_control::compile;
use hue_host::control::{Config, Families, Owner, PortConfig, StaticRoute, StaticTarget};
use hue_host::{ControlNamespace, netns};
use hue_intent::{Intent, Source, Target, parse};
use hue_planes::Adjacency;
use hue_routing::{Event, Monitor, Rib, RibPort};
use hue_substrate::Program;
use hue_tables::{Key, Prefix4};

type Table = BTreeMap<Prefix4, Adjacency>;

/// Removes everything that a test created.
struct Networks(Owner);

impl Networks {
    fn new() -> Self {
        let start = format!("htc-{}-", std::process::id());
        Self(Owner { prefix: start.clone(), node: start })
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for network in self.0.networks().unwrap_or_default() {
            ControlNamespace::delete(&self.0, &network).ok();
        }
        for name in netns::list(&self.0.prefix).unwrap_or_default() {
            netns::delete(&name).ok();
        }
    }
}

/// A small deterministic generator (xorshift64*): a printed seed replays a test.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as u32 % bound
    }

    /// A small address space, so that prefixes overlap: 10.0.0.0 to 10.0.3.255, most of them low.
    fn address(&mut self) -> u32 {
        let bound = [64, 1024][self.below(2) as usize];
        0x0a00_0000 | self.below(bound)
    }

    fn document(&mut self) -> String {
        let address = Ipv4Addr::from_bits;
        let count = self.below(3) + 1;
        let mut text = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: a}\nspec:\n  plane: {kind: ipv4}\n  ports:\n"
            .to_owned();
        for index in 0..count {
            let own =
                (0..self.below(3)).map(|_| format!("{}/{}", address(self.address()), 24 + self.below(9)));
            let own = own.collect::<Vec<_>>().join(", ");
            text += &format!(
                "    - {{name: v{index}, port: p{index}, mac: '02:00:00:00:00:{index:02x}', addresses: [{own}]}}\n"
            );
        }
        text += "  routes:\n";
        for _ in 0..self.below(8) {
            let len = 22 + self.below(11) as u8;
            let to = Prefix4::containing(self.address().masked(len), len);
            text += &match self.below(2) {
                0 => format!("    - {{to: {to}, via: {}}}\n", address(self.address())),
                _ => format!("    - {{to: {to}, port: v{}}}\n", self.below(count)),
            };
        }
        text += "  neighbours:\n";
        for index in 0..self.below(12) {
            let (port, known) = (self.below(count), address(self.address()));
            text +=
                &format!("    - {{port: v{port}, address: {known}, mac: '02:00:00:00:01:{index:02x}'}}\n");
        }
        text
    }
}

/// Removes lines that the validator rejects, until it accepts the document.
fn repaired(mut text: String) -> Option<Intent> {
    for _ in 0..40 {
        let errors = match parse(vec![Source { name: "a".to_owned(), bytes: text.clone().into_bytes() }]) {
            Ok(intent) => return Some(intent),
            Err(errors) => errors,
        };
        let line = errors.list.iter().filter_map(|error| Some(error.finding()?.place.line)).max()?;
        let rest = text.lines().zip(1..).filter(|(_, number)| *number != line).map(|(text, _)| text);
        text = rest.collect::<Vec<_>>().join("\n");
    }
    None
}

/// Omits routes through addresses that cannot be gateways: the network's own and broadcast addresses.
fn sensible(intent: &mut Intent) {
    let spec = &mut intent.networks[0].spec;
    let own: Vec<_> = spec.ports.iter().flat_map(|port| &port.addresses).copied().collect();
    spec.routes.retain(|route| match route.target {
        Target::Via(via) => !own.iter().any(|own| own.address == via || own.broadcast() == Some(via)),
        Target::Port(_) => true,
        Target::Vias(_) => panic!("not generated"),
    });
}

fn config(intent: &Intent, program: &Program) -> Config {
    let spec = &intent.networks[0].spec;
    let vport = |name: &str| program.ports.iter().position(|port| port.name == name).unwrap();
    let ports = spec.ports.iter().zip(&program.ports).map(|(document, port)| PortConfig {
        interface: port.name.clone(),
        mac: port.mac,
        mtu_bytes: port.mtu_bytes,
        no_arp: false,
        addresses: document.addresses.iter().map(|own| (own.address, own.len)).collect(),
    });
    let routes = spec.routes.iter().map(|route| StaticRoute {
        slice: route.slice,
        prefix: route.to,
        target: match &route.target {
            Target::Via(via) => StaticTarget::Via(*via),
            Target::Port(name) => StaticTarget::Port(vport(name.as_str())),
            Target::Vias(members) => {
                StaticTarget::Vias(members.iter().map(|member| (member.via, member.weight)).collect())
            }
        },
    });
    let neighbours =
        spec.neighbours.iter().map(|known| (vport(known.port.as_str()), known.address, known.mac));
    Config {
        carries: false,
        families: Families::V4,
        ports: ports.collect(),
        routes: routes.collect(),
        neighbours: neighbours.collect(),
    }
}

fn learned(rib: &Rib) -> Table {
    let own = Prefix4::containing(Ipv4Addr::LOCALHOST.to_bits(), 8);
    let rows = rib.routes(None).map(|row| (row.prefix.of().unwrap(), row.adjacency));
    rows.filter(|(prefix, _): &(Prefix4, _)| !own.contains(prefix.addr())).collect()
}

fn compiled(program: &Program) -> Table {
    let hop = |hop: u16| program.next_hops[usize::from(hop)];
    program.entries.lpm32().iter().map(|(prefix, row)| (*prefix, hop(row.get()))).collect()
}

/// Ports that a host could be behind: TAPs have no carrier until the engine opens them.
fn make_ports(control: &ControlNamespace, program: &Program) {
    for port in program.ports.iter().map(|port| &port.name) {
        for arguments in
            [format!("link add {port} type veth peer name b{port}"), format!("link set b{port} up")]
        {
            let mut command = Command::new("ip");
            command.args(["-n", control.namespace.name()]).args(arguments.split(' '));
            assert!(command.status().unwrap().success(), "ip {arguments}");
        }
    }
}

#[test]
fn learned_routes_match_the_document() {
    if !std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0) {
        hue_testdata::skipped("root");
        return;
    }
    let seed = std::env::var("HUEPLANE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_0001);
    println!("learned_routes: HUEPLANE_SEED={seed}");
    let mut random = Random(seed);
    let networks = Networks::new();
    let (mut monitor, batches) = Monitor::channel(16).unwrap();
    let mut routes = 0;
    for number in 0..40 {
        let text = random.document();
        let Some(mut intent) = repaired(text.clone()) else { continue };
        sensible(&mut intent);
        let outcome = compile(&intent).unwrap();
        let program = &outcome.programs[0];
        let name = format!("n{number}");
        let control =
            ControlNamespace::ensure(&networks.0, &name, &Default::default(), Families::V4).unwrap().control;
        make_ports(&control, program);
        let port = |port: &hue_substrate::VirtualPort| RibPort {
            interface: port.name.clone(),
            port: port.port,
            mac: port.mac,
            mtu_bytes: port.mtu_bytes,
            peer: None,
        };
        let mut rib = Rib::new(program.ports.iter().map(port).collect());
        // Half of the networks are monitored before anything is configured.
        let early = random.below(2) == 0;
        let mut session = early.then(|| monitor.add(program.vid, &control.namespace).unwrap());
        let changes = control.configure(&config(&intent, program)).unwrap();
        let session = session.take().unwrap_or_else(|| monitor.add(program.vid, &control.namespace).unwrap());
        let end = Instant::now() + Duration::from_secs(30);
        let wanted = compiled(program);
        loop {
            rib.take_update();
            if rib.is_synchronized() && learned(&rib) == wanted {
                break;
            }
            let (learned, spec) = (learned(&rib), &intent.networks[0].spec);
            assert!(
                Instant::now() < end,
                "{spec:#?}\nlearned {learned:#?}\ncompiled {wanted:#?}\n{changes:#?}"
            );
            let Ok(batch) = batches.recv_timeout(Duration::from_millis(20)) else { continue };
            if batch.session == session {
                let closed = batch.events.iter().any(|event| matches!(event, Event::Closed(_)));
                assert!(!closed, "{:?}", batch.events);
                rib.apply_all(batch.events);
            }
        }
        routes += wanted.len();
        monitor.remove(program.vid);
        ControlNamespace::delete(&networks.0, &name).unwrap();
    }
    println!("{routes} routes");
    assert!(routes > 100, "the documents are too small for this test");
}
