//! Which virtual ports have a link, for the kernels of namespaces: without one, a kernel forgets its neighbours there, and
//! routing daemons use other paths.
//!
//! Flow: links of physical ports, routes of networks that carry tunnels → **here** → kernel. A virtual port has the link of
//! its physical port; a tunnel has one while the network that carries it reaches the far end.

use hue_demux::PortId;
use hue_intent::{NetworkPort, Tunnel};

use super::{Around, Effect, Entry, Input, Networks};

impl Networks {
    pub(super) fn wires_changed(&mut self, ids: &[PortId], out: &mut Vec<Effect>) {
        let concerned = |entry: &Entry| {
            let own = entry.port_ids();
            ids.iter().any(|id| own.contains(id))
        };
        let on = self.entries.iter().filter(|(_, entry)| concerned(entry));
        out.extend(on.map(|(name, _)| Effect::Then(Input::TellCarriers(name.clone()))));
    }

    pub(super) fn tell_carriers(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get(name) else { return };
        let Some(have) = &entry.have else { return };
        let ports = have.network.spec.ports.iter().zip(&have.program.ports).zip(&entry.carriers);
        for (vport, ((document, port), told)) in ports.enumerate() {
            let on = match document.tunnel() {
                Some(tunnel) => self.reaches(tunnel, around),
                None => (around.has_link)(port.port, entry.on_nic),
            };
            if let Some(on) = on.filter(|on| *told != Some(*on)) {
                out.push(Effect::SetCarrier(name.to_owned(), vport, on));
            }
        }
    }

    pub(super) fn carrier_set(&mut self, name: &str, vport: usize, on: bool, out: &mut Vec<Effect>) {
        let told = self.entries.get_mut(name).and_then(|entry| entry.carriers.get_mut(vport));
        if let Some(told) = told {
            *told = Some(on);
            out.push(Effect::Changed);
        }
    }

    /// Whether the network that carries a tunnel has a route to its far end; `None` while that network is being set up.
    fn reaches(&self, tunnel: &Tunnel, around: &Around<'_>) -> Option<bool> {
        let carrier = self.entries.get(tunnel.over.as_str())?;
        if carrier.is_pending() {
            return None;
        }
        Some(carrier.vid().is_some_and(|vid| (around.reaches)(vid, tunnel.remote)))
    }

    pub(super) fn tell_passengers(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get(name) else { return };
        let known = entry.have.as_ref().or(entry.want.as_ref());
        if known.is_none_or(|known| !known.config.carries) {
            return;
        }
        let over = |entry: &Entry| {
            let ports = entry.have.iter().flat_map(|have| &have.network.spec.ports);
            ports.filter_map(NetworkPort::tunnel).any(|tunnel| tunnel.over.as_str() == name)
        };
        let passengers = self.entries.iter().filter(|(_, entry)| over(entry));
        out.extend(passengers.map(|(name, _)| Effect::Then(Input::TellCarriers(name.clone()))));
    }
}
