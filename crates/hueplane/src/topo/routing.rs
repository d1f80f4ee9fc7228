//! Routing daemons in the networks' namespaces: FRR (zebra, ospfd, ospf6d), PW-OSPF or the ring of flat labels, as a network's `routing` says.
//!
//! They run like any program of `hueplane exec`, in the network's namespace and control group, so that `topo down` ends them with it. Hosts'
//! links are passive: announced, without neighbours.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hue_control::topology::{On, Plan, Router, router_id};
use hue_host::control::interface_names;
use hue_intent::topology::{Routing, Topology, TopologyNetwork, labels};
use hueplaned::client::socket_in;

use super::place::{node_folder, places};
use crate::failure::Failure;
use crate::local::probe::all_of;

/// Folders of FRR's programs, beside those of `PATH`.
const FOLDERS: [&str; 2] = ["/usr/lib/frr", "/usr/sbin"];
/// FRR's directory of sockets, in which it makes one for each instance.
const FRR_RUN: &str = "/var/run/frr";
/// Milliseconds between hellos of the ring of flat labels, for all routers.
const RING_INTERVAL_MS: &str = "250";
/// Networks on nodes whose routing starts at the same time.
const PARALLEL: usize = 8;

/// Whether the programs exist that the topology's routing needs.
pub fn check(topology: &Topology) -> Result<(), Failure> {
    for network in &topology.spec.networks {
        let missing = match network.routing {
            Routing::Frr => frr_programs(network).iter().find(|name| program(name).is_none()).copied(),
            Routing::Pwospf if !has_pwospf() => Some("hueplane pwospf"),
            Routing::Static | Routing::None | Routing::Pwospf | Routing::Ring => None,
        };
        if let Some(missing) = missing {
            let help =
                if network.routing == Routing::Frr { ": apt-get install frr" } else { " in this build" };
            return Err(Failure::Broken(format!(
                "network {}: routing {}: program {missing} is missing{help}",
                network.name,
                network.routing.name()
            )));
        }
    }
    Ok(())
}

/// Starts all routing daemons.
pub fn start(topology: &Topology, plan: &Plan) -> Result<(), Failure> {
    let parts: Vec<(usize, &Router)> = plan
        .nodes
        .iter()
        .enumerate()
        .flat_map(|(node, one)| one.routers.iter().map(move |router| (node, router)))
        .filter(|(_, router)| {
            !matches!(topology.spec.networks[router.network].routing, Routing::Static | Routing::None)
        })
        .collect();
    all_of(PARALLEL, &parts, |(node, router)| {
        let network = &topology.spec.networks[router.network];
        let part = Part { topology, node: *node, name: &plan.nodes[*node].name, router };
        let started = match network.routing {
            Routing::Frr => part.frr(),
            Routing::Ring => part.ring(),
            _ => part.background("pwospf", &["--hello-interval", "1"]),
        };
        started.map_err(|failure| {
            Failure::Broken(format!("node {}, network {}: {failure}", part.name, network.name))
        })
    })?;
    Ok(())
}

/// Removes what FRR keeps outside the topology's directory.
pub fn forget(topology: &str) {
    let begin = instance(topology, None);
    for entry in fs::read_dir(FRR_RUN).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            // It may be gone, or not ours to remove: FRR does not need it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The name of FRR's instance of a part; without one, what those of a topology begin with.
fn instance(topology: &str, part: Option<(usize, usize)>) -> String {
    let part = part.map_or_else(String::new, |(node, network)| format!("{node}-{network}"));
    format!("topo@{topology}@{part}")
}

fn frr_programs(network: &TopologyNetwork) -> Vec<&'static str> {
    let has = |v4: bool| network.prefixes.iter().any(|prefix| prefix.addr().is_ipv4() == v4);
    let mut names = vec!["zebra"];
    names.extend(has(true).then_some("ospfd"));
    names.extend(has(false).then_some("ospf6d"));
    names
}

/// The path of a program.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&paths).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether this program has the command `pwospf`.
fn has_pwospf() -> bool {
    use clap::CommandFactory;
    crate::cli::Cli::command().get_subcommands().any(|command| command.get_name() == "pwospf")
}

/// A network on a node.
struct Part<'a> {
    topology: &'a Topology,
    node: usize,
    name: &'a str,
    router: &'a Router,
}

impl Part<'_> {
    fn network(&self) -> &TopologyNetwork {
        &self.topology.spec.networks[self.router.network]
    }

    /// A command of `hueplane exec` in the network's namespace.
    fn exec(&self) -> Result<Command, Failure> {
        let own = std::env::current_exe()
            .map_err(|error| Failure::Broken(format!("the program's own file: {error}")))?;
        let mut command = Command::new(own);
        let run_dir = places(self.topology.name(), self.name).run_dir;
        command.arg("--socket").arg(socket_in(&run_dir)).args(["exec", self.network().name.as_str(), "--"]);
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// Starts zebra and OSPF.
    fn frr(&self) -> Result<(), Failure> {
        let name = instance(self.topology.name(), Some((self.node, self.router.network)));
        let folder =
            node_folder(self.topology.name(), self.name).join(format!("frr-{}", self.network().name));
        let failed = |source| Failure::Output { path: folder.clone(), source };
        let config = folder.join("frr.conf");
        for path in [Path::new(FRR_RUN), &folder, &Path::new(FRR_RUN).join(&name)] {
            fs::create_dir_all(path).map_err(failed)?;
        }
        fs::write(&config, frr_config(self.topology, self.router, self.node)).map_err(failed)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        let mut chown = Command::new("chown");
        chown.args(["-R", "frr:frr"]).arg(&folder).arg(Path::new(FRR_RUN).join(&name));
        run(&mut chown, "chown")?;
        for daemon in frr_programs(self.network()) {
            let path = program(daemon).ok_or_else(|| {
                Failure::Broken(format!("program {daemon} is missing: apt-get install frr"))
            })?;
            let mut command = self.exec()?;
            command.arg(path).args(["-d", "-N", &name, "--vty_socket"]).arg(&folder);
            command.arg("-z").arg(folder.join("zserv.api"));
            command.arg("-i").arg(folder.join(format!("{daemon}.pid")));
            command.arg("-f").arg(&config).args(["-A", "127.0.0.1"]);
            run(&mut command, daemon)?;
        }
        Ok(())
    }

    /// Starts the ring of flat labels.
    fn ring(&self) -> Result<(), Failure> {
        let label = labels::router(self.topology, self.network(), self.name).to_string();
        self.background("rofl-ring", &["--label", &label, "--interval", RING_INTERVAL_MS])
    }

    /// Starts a command of this program that runs until it is killed.
    fn background(&self, name: &str, arguments: &[&str]) -> Result<(), Failure> {
        let folder = node_folder(self.topology.name(), self.name);
        let path = folder.join(format!("{name}-{}.log", self.network().name));
        let failed = |source| Failure::Output { path: path.clone(), source };
        let log = fs::File::create(&path).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let own = std::env::current_exe()
            .map_err(|error| Failure::Broken(format!("the program's own file: {error}")))?;
        let mut command = self.exec()?;
        command.arg(own).arg(name).args(arguments).stdout(log).stderr(errors);
        command
            .spawn()
            .map(drop)
            .map_err(|error| Failure::Broken(format!("hueplane {name} cannot be run: {error}")))
    }
}

/// Runs a command that ends by itself.
fn run(command: &mut Command, what: &str) -> Result<(), Failure> {
    let output =
        command.output().map_err(|error| Failure::Broken(format!("{what} cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Broken(format!("{what} failed ({}): {}", output.status, said.trim())))
}

/// FRR's configuration of a part: OSPF in area 0 with hellos every second, on links between nodes as on lines between two routers.
fn frr_config(topology: &Topology, router: &Router, node: usize) -> String {
    let network = &topology.spec.networks[router.network];
    let links = topology.spec.links_of(router.network);
    let names: Vec<&str> = router.ports.iter().map(|port| port.name.as_str()).collect();
    let interfaces = interface_names(&names);
    let families: Vec<&str> = [("ip ospf", "ospfd"), ("ipv6 ospf6", "ospf6d")]
        .into_iter()
        .filter(|(_, daemon)| frr_programs(network).contains(daemon))
        .map(|(words, _)| words)
        .collect();
    // With objects of next hops in the kernel, FRR (8.4) loses one for good when its link loses its carrier: the kernel takes it out of
    // the group, and zebra does not put it back.
    let mut out = "no zebra nexthop kernel enable\n!\n".to_owned();
    for (port, interface) in router.ports.iter().zip(&interfaces) {
        let _ = writeln!(out, "interface {interface}");
        for words in &families {
            let _ = writeln!(out, " {words} area 0");
            match &port.on {
                On::Host(_) => {
                    let _ = writeln!(out, " {words} passive");
                }
                On::Link { link, .. } => {
                    let cost = links.get(*link).map_or(1, |link| link.cost);
                    let _ = write!(
                        out,
                        " {words} network point-to-point\n {words} hello-interval 1\n {words} dead-interval 4\n \
                         {words} mtu-ignore\n {words} cost {cost}\n"
                    );
                }
            }
        }
        out.push_str("!\n");
    }
    let id = router_id(router, node);
    for words in families {
        let (name, prefix) = if words == "ip ospf" { ("ospf", "ospf") } else { ("ospf6", "ospf6") };
        let _ = write!(out, "router {name}\n {prefix} router-id {id}\n timers throttle spf 0 50 200\n!\n");
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use hue_control::topology::expand;

    use super::*;

    #[test]
    fn links_are_lines_and_hosts_are_passive() {
        let text = "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {name: t}\nspec:\n  nodes: [{name: a}, {name: b}]\n  \
                    links: [{ends: [a, b], cost: 7}]\n  networks:\n    - {name: n, kind: dual, routing: frr, prefixes: [10.0.0.0/16, \
                    \"fd00::/48\"], hosts: [{name: h, node: a}]}\n";
        let topology = super::super::parse("t.yaml".to_owned(), text).unwrap();
        let plan = expand(&topology);
        let config = frr_config(&topology, &plan.nodes[0].routers[0], 0);
        for part in [
            "no zebra nexthop kernel enable\n!\n",
            "interface h-h\n ip ospf area 0\n ip ospf passive\n ipv6 ospf6 area 0\n ipv6 ospf6 passive\n!\n",
            "interface to-b\n ip ospf area 0\n ip ospf network point-to-point\n",
            " ipv6 ospf6 cost 7\n",
            "router ospf\n ospf router-id 10.0.0.1\n",
            "router ospf6\n ospf6 router-id 10.0.0.1\n",
        ] {
            assert!(config.contains(part), "{part}\n{config}");
        }
    }
}
