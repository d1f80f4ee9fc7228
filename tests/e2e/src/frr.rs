//! FRR, as Debian packages it: zebra and a routing daemon in a namespace, unmodified.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::shell::{self, Output};

/// Zebra and a routing daemon of one router.
#[derive(Debug)]
pub struct Frr {
    folder: PathBuf,
    /// The daemon beside zebra.
    routing: &'static str,
}

impl Frr {
    /// Starts zebra and ospfd with `run`, which runs a program in the router's namespace. `name` must be unique on the
    /// machine; `config` is the text of `frr.conf`.
    ///
    /// # Panics
    /// When a daemon does not start.
    #[track_caller]
    #[must_use]
    pub fn start(parent: &Path, name: &str, config: &str, run: impl Fn(&[&str]) -> Output) -> Self {
        Self::start_with(parent, name, config, "ospfd", run)
    }

    /// As [`Frr::start`], with another daemon instead of ospfd.
    ///
    /// # Panics
    /// When a daemon does not start.
    #[track_caller]
    #[must_use]
    pub fn start_with(
        parent: &Path,
        name: &str,
        config: &str,
        routing: &'static str,
        run: impl Fn(&[&str]) -> Output,
    ) -> Self {
        let folder = parent.join(format!("frr-{name}"));
        for path in [Path::new("/var/run/frr"), &folder] {
            let made = std::fs::create_dir_all(path);
            made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        crate::daemon::write(&folder.join("frr.conf"), config);
        // The daemons drop root privileges; they must be able to traverse the folder's parent.
        let _ = shell::run(shell::command("chmod").arg("0755").arg(parent)).expect_ok();
        let chown = ["-R", "frr:frr", "/var/run/frr", &folder.to_string_lossy()].map(str::to_owned);
        let _ = shell::run(shell::command("chown").args(chown)).expect_ok();
        let router = Self { folder, routing };
        for daemon in ["zebra", routing] {
            let file = |end: &str| router.folder.join(end).to_string_lossy().into_owned();
            let program = shell::find(daemon).unwrap_or_else(|| PathBuf::from(daemon));
            let _ = run(&[
                &program.to_string_lossy(),
                "-d",
                "-N",
                name,
                "--vty_socket",
                &router.folder.to_string_lossy(),
                "-z",
                &file("zserv.api"),
                "-i",
                &file(&format!("{daemon}.pid")),
                "-f",
                &file("frr.conf"),
                "-A",
                "127.0.0.1",
            ])
            .expect_ok();
        }
        router
    }

    /// Runs a `vtysh` command and returns its JSON.
    #[track_caller]
    #[must_use]
    pub fn show(&self, what: &str) -> Value {
        let mut command = Command::new("vtysh");
        command.arg("--vty_socket").arg(&self.folder).args(["-c", what]);
        let output = shell::run(&mut command);
        serde_json::from_str(&output.stdout).unwrap_or_default()
    }

    /// Number of neighbours in state Full: the databases are equal.
    #[track_caller]
    #[must_use]
    pub fn full_neighbours(&self) -> usize {
        let sessions = self.sessions("show ip ospf neighbor json");
        sessions
            .iter()
            .filter(|session| session["nbrState"].as_str().is_some_and(|state| state.starts_with("Full")))
            .count()
    }

    /// How often the states of its neighbours have changed.
    ///
    /// # Panics
    /// If there are no neighbours.
    #[track_caller]
    #[must_use]
    pub fn state_changes(&self) -> u64 {
        self.details("stateChangeCounter").iter().sum()
    }

    /// The shortest time until a neighbour that is no longer heard is lost.
    ///
    /// # Panics
    /// If there are no neighbours.
    #[track_caller]
    #[must_use]
    pub fn dead_in(&self) -> Duration {
        let due = self.details("routerDeadIntervalTimerDueMsec");
        Duration::from_millis(due.into_iter().min().unwrap_or_default())
    }

    /// A numeric field of each neighbour.
    #[track_caller]
    fn details(&self, name: &str) -> Vec<u64> {
        let sessions = self.sessions("show ip ospf neighbor detail json");
        assert!(!sessions.is_empty(), "no neighbours");
        let number = |one: &Value| one[name].as_u64().unwrap_or_else(|| panic!("{name}: {one}"));
        sessions.iter().map(number).collect()
    }

    /// The sessions with all neighbours, from a `vtysh` command that lists them.
    #[track_caller]
    fn sessions(&self, what: &str) -> Vec<Value> {
        let json = self.show(what);
        let all = json["neighbors"].as_object().into_iter().flatten();
        all.flat_map(|(_, sessions)| sessions.as_array().cloned().unwrap_or_default()).collect()
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for daemon in [self.routing, "zebra"] {
            crate::bird::end(&self.folder.join(format!("{daemon}.pid")));
        }
    }
}

/// A configuration for OSPF in area 0 on these interfaces, with the shortest intervals.
#[must_use]
pub fn ospf(router_id: &str, interfaces: &[&str]) -> String {
    ospf_with(router_id, interfaces, &["dead-interval 4"])
}

/// A configuration for OSPF in area 0 on these interfaces, with hellos every second and these options (`ip ospf OPTION`).
#[must_use]
pub fn ospf_with(router_id: &str, interfaces: &[&str], options: &[&str]) -> String {
    let mut out = String::new();
    for interface in interfaces {
        out += &format!("interface {interface}\n ip ospf area 0\n ip ospf hello-interval 1\n");
        options.iter().for_each(|option| out += &format!(" ip ospf {option}\n"));
        out += "!\n";
    }
    out + &format!("router ospf\n ospf router-id {router_id}\n timers throttle spf 0 50 200\n!\n")
}

/// A configuration for BGP of IPv6 routes with these neighbours, by address and AS, which announces these prefixes (RFC 2545).
#[must_use]
pub fn bgp6(router_id: &str, asn: u32, neighbours: &[(Ipv6Addr, u32)], prefixes: &[String]) -> String {
    let mut out = format!(
        "router bgp {asn}\n bgp router-id {router_id}\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n"
    );
    for (address, asn) in neighbours {
        out += &format!(" neighbor {address} remote-as {asn}\n neighbor {address} timers connect 1\n");
    }
    out += " address-family ipv6 unicast\n";
    neighbours.iter().for_each(|(address, _)| out += &format!("  neighbor {address} activate\n"));
    prefixes.iter().for_each(|prefix| out += &format!("  network {prefix}\n"));
    out + " exit-address-family\n!\n"
}

/// A configuration for OSPF version 3 in area 0 on these interfaces, with the shortest intervals.
#[must_use]
pub fn ospf6(router_id: &str, interfaces: &[&str]) -> String {
    let mut out = String::new();
    for interface in interfaces {
        out += &format!(
            "interface {interface}\n ipv6 ospf6 area 0\n ipv6 ospf6 hello-interval 1\n ipv6 ospf6 dead-interval 4\n!\n"
        );
    }
    out + &format!("router ospf6\n ospf6 router-id {router_id}\n timers throttle spf 0 50 200\n!\n")
}
