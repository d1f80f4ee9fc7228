//! Loads configuration files into a substrate, for the commands that need one.

use std::ops::Deref;
use std::path::PathBuf;

use anstyle::{RgbColor, Style};
use hue_control::{Names, compile};
use hue_demux::PortId;
use hue_intent::{Intent, Name};
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
        let soft = loaded(&networks.programs)?;
        Ok(Self { soft, networks })
    }
}

/// The software substrate with these programs. It reserves address space for their routes only, because they do not change.
pub fn loaded(programs: &[Program]) -> Result<Soft, Failure> {
    let ipv4: usize = programs.iter().map(|program| program.entries.lpm32().len()).sum();
    let all: usize = programs.iter().map(|program| program.entries.len()).sum();
    let mut soft = Soft::new(Limits::for_routes(programs.len(), ipv4, all - ipv4))?;
    soft.load(programs)?;
    Ok(soft)
}

impl Deref for Engine {
    type Target = Networks;

    fn deref(&self) -> &Networks {
        &self.networks
    }
}

/// A network with a tunnel, and its port.
fn first_tunnel(intent: &Intent) -> Option<(&str, &Name)> {
    let ports =
        intent.networks.iter().flat_map(|one| one.spec.ports.iter().map(move |port| (one.name(), port)));
    let mut tunnels = ports.filter(|(_, port)| port.tunnel().is_some());
    tunnels.next().map(|(network, port)| (network, &port.name))
}

impl Networks {
    /// Reads, checks and compiles files. Tunnels are refused: they need the routes that a carrier has live.
    pub fn compile(files: &[PathBuf]) -> Result<Self, Failure> {
        let intent = documents::load(files)?;
        if let Some((network, port)) = first_tunnel(&intent) {
            return Err(Failure::Input(format!(
                "network '{network}': port '{port}' is a tunnel, and tunnels run in the daemon only: use `hueplane up`, \
                 or leave the port out"
            )));
        }
        let compiled = compile(&intent)?;
        Ok(Self { programs: compiled.programs, names: compiled.names })
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
