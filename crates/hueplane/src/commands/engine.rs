//! Loads configuration files into a substrate, for the commands that need one.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Deref;
use std::path::PathBuf;

use anstyle::{RgbColor, Style};
use hue_control::{Names, compile};
use hue_demux::PortId;
use hue_soft::Soft;
use hue_substrate::{Program, Substrate};
use hue_tables::{Limits, Vid};

use super::documents;
use crate::failure::Failure;
use crate::print::styled;

/// Compiled networks and their names.
pub struct Networks {
    pub programs: Vec<Program>,
    pub names: Names,
    /// The virtual port of each network's address.
    pub addresses: HashMap<(Vid, IpAddr), u16>,
}

/// The software substrate with all networks loaded.
pub struct Engine {
    pub soft: Soft,
    pub networks: Networks,
}

impl Engine {
    /// Reads, checks, compiles and loads files.
    pub fn load(files: &[PathBuf]) -> Result<Self, Failure> {
        let networks = Networks::compile(files)?;
        let soft = loaded(&networks.programs, &networks)?;
        Ok(Self { soft, networks })
    }
}

/// The software substrate with these programs of `networks`. It reserves address space for their routes only, because they do not
/// change.
pub fn loaded(programs: &[Program], networks: &Networks) -> Result<Soft, Failure> {
    let ipv4: usize = programs.iter().map(|program| program.entries.lpm32().len()).sum();
    let all: usize = programs.iter().map(|program| program.entries.len()).sum();
    let mut soft = Soft::new(Limits::for_routes(programs.len(), ipv4, all - ipv4))?;
    soft.load(programs)?;
    soft.join_tunnels(|vid, address| networks.addresses.get(&(vid, address)).copied());
    Ok(soft)
}

/// The networks that have tunnels, or carry those of others.
pub fn with_tunnels(programs: &[Program]) -> Vec<Program> {
    let carriers: HashSet<Vid> =
        programs.iter().flat_map(|program| program.tunnels().map(|(_, tunnel)| tunnel.over)).collect();
    let has = |program: &&Program| carriers.contains(&program.vid) || program.tunnels().next().is_some();
    programs.iter().filter(has).cloned().collect()
}

impl Deref for Engine {
    type Target = Networks;

    fn deref(&self) -> &Networks {
        &self.networks
    }
}

impl Networks {
    /// Reads, checks and compiles files.
    pub fn compile(files: &[PathBuf]) -> Result<Self, Failure> {
        let intent = documents::load(files)?;
        let compiled = compile(&intent)?;
        let mut addresses = HashMap::new();
        for (network, program) in intent.networks.iter().zip(&compiled.programs) {
            for (port, vport) in network.spec.ports.iter().zip(0u16..) {
                addresses.extend(port.addresses.iter().map(|own| ((program.vid, own.address), vport)));
            }
        }
        Ok(Self { programs: compiled.programs, names: compiled.names, addresses })
    }

    /// Refuses networks with tunnels; `instead` says what can be done.
    pub fn without_tunnels(self, instead: &str) -> Result<Self, Failure> {
        self.without_tunnels_of(|_| true, instead)
    }

    /// Refuses tunnels of some networks; `instead` says what can be done.
    pub fn without_tunnels_of(
        self,
        which: impl Fn(&Program) -> bool,
        instead: &str,
    ) -> Result<Self, Failure> {
        let programs = self.programs.iter().filter(|program| which(program));
        let mut ports = programs.flat_map(|one| one.ports.iter().map(move |port| (one, port)));
        if let Some((network, port)) = ports.find(|(_, port)| port.tunnel.is_some()) {
            return Err(Failure::Input(format!(
                "network '{}': port '{}' is a tunnel: {instead}, or leave the port out",
                network.name, port.name
            )));
        }
        Ok(self)
    }

    /// The port with a name; `what` is the argument that names it.
    pub fn port(&self, what: &str, name: &str) -> Result<PortId, Failure> {
        let index = self.names.ports.iter().position(|port| port.name == name);
        index.and_then(|index| u8::try_from(index).ok()).map(PortId::new).ok_or_else(|| {
            let known: Vec<&str> = self.names.ports.iter().map(|port| port.name.as_str()).collect();
            let known = if known.is_empty() {
                "(the configuration has no port)".to_owned()
            } else {
                known.join(", ")
            };
            Failure::Usage(format!("{what}: found port '{name}', expected one of: {known}"))
        })
    }

    /// The name of a port.
    pub fn port_name(&self, port: PortId) -> &str {
        self.names.ports.get(port.index()).map_or("?", |port| port.name.as_str())
    }

    /// A network's name in its colour.
    pub fn painted(&self, vid: Vid) -> String {
        self.names.network(vid).map_or_else(String::new, |network| {
            let [r, g, b] = network.colour.0;
            styled(Style::new().bold().fg_color(Some(RgbColor(r, g, b).into())), &network.name)
        })
    }
}
