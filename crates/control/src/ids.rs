//! Ids of networks: the requested ones, and for the others the lowest free ones, in the order of names.

use std::collections::{BTreeMap, BTreeSet};

use hue_demux::PortId;
use hue_intent::limits::NODE_PORTS_MAX;
use hue_intent::{Network, NodePort};
use hue_tables::Vid;

use crate::error::CompileError;

/// Assigns an id to each network, in the order given: the requested one, or the lowest free one. The same
/// networks in the same order always get the same ids.
///
/// # Errors
/// `IdTaken` or `IdsFull`.
pub fn assign(networks: &[Network]) -> Result<Vec<Vid>, CompileError> {
    let mut taken = BTreeSet::new();
    for network in networks {
        if let Some(vid) = network.spec.vid
            && !taken.insert(vid)
        {
            return Err(CompileError::IdTaken { network: network.name().to_owned(), vid });
        }
    }
    let mut free = (1..=Vid::MAX).filter_map(Vid::new).filter(|vid| !taken.contains(vid));
    networks
        .iter()
        .map(|network| network.spec.vid.or_else(|| free.next()).ok_or(CompileError::IdsFull(networks.len())))
        .collect()
}

/// Ids assigned before, by name. A network or port keeps its id unless a document requests it for another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ids {
    /// Ids of networks.
    pub networks: BTreeMap<String, Vid>,
    /// Ids of physical ports.
    pub ports: BTreeMap<String, PortId>,
}

impl Ids {
    /// Assigns an id to each network, in the order given: the requested one, the previous one, or the lowest
    /// free one.
    ///
    /// # Errors
    /// `IdTaken` or `IdsFull`.
    pub fn networks(&self, networks: &[Network]) -> Result<Vec<Vid>, CompileError> {
        let asked: BTreeSet<Vid> = networks.iter().filter_map(|network| network.spec.vid).collect();
        let kept = networks.iter().map(|network| {
            let mut network = network.clone();
            let had = self.networks.get(network.name()).copied().filter(|vid| !asked.contains(vid));
            network.spec.vid = network.spec.vid.or(had);
            network
        });
        assign(&kept.collect::<Vec<_>>())
    }

    /// Assigns an id to each port, in the order given: the previous one, or the lowest free one.
    ///
    /// # Errors
    /// `Ports` if there are more ports than ids.
    pub fn ports(&self, ports: &[NodePort]) -> Result<Vec<PortId>, CompileError> {
        let had = |port: &NodePort| self.ports.get(port.name.as_str()).copied();
        let taken: BTreeSet<PortId> = ports.iter().filter_map(had).collect();
        let most = u8::try_from(NODE_PORTS_MAX).unwrap_or(u8::MAX);
        let mut free = (0..most).map(PortId::new).filter(|id| !taken.contains(id));
        ports
            .iter()
            .map(|port| had(port).or_else(|| free.next()).ok_or(CompileError::Ports(ports.len())))
            .collect()
    }
}
