//! What attach reports: as JSON, or in words with how to use the host.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde::Serialize;

use super::mark::{Host, Kind};

/// The MTU that systems assume for Ethernet.
const MTU_USUAL: u16 = 1500;

/// The result of attach.
#[derive(Serialize)]
pub struct Attached {
    #[serde(flatten)]
    pub host: Host,
    /// The port's interface.
    pub port_interface: String,
    /// The network's own addresses there, in the order of the host's.
    pub routers: Vec<IpAddr>,
    pub created_namespace: bool,
    /// Routers that the host got default routes over.
    pub default_routes: Vec<IpAddr>,
    /// For a virtual machine: MAC address, and the largest IP packet in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    pub mtu: u16,
    /// What could keep packets from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What was done, and how to use it.
pub fn told(attached: &Attached) -> String {
    let mut text = match attached.host.kind {
        Kind::Namespace => told_of_namespace(attached),
        Kind::Tap => told_of_tap(attached),
    };
    if let Some(note) = &attached.note {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// `red/left by bridge attach0`.
fn place_of(host: &Host) -> String {
    format!("{}/{} by bridge {}", host.network, host.port, host.bridge.as_deref().unwrap_or("-"))
}

fn told_of_namespace(attached: &Attached) -> String {
    let Host { host, interface, addresses, .. } = &attached.host;
    let new = if attached.created_namespace { "new " } else { "" };
    let interface = interface.as_deref().unwrap_or("-");
    let mut text = format!("{new}host {host}: {interface} is connected to {}\n", place_of(&attached.host));
    if addresses.is_empty() {
        text.push_str("the virtual port has no address, so the host got only the wire: set it up yourself\n");
        return text;
    }
    for (address, router) in addresses.iter().zip(&attached.routers) {
        let _ = match attached.default_routes.contains(router) {
            true => writeln!(text, "address {address}, default route over {router}"),
            false => writeln!(text, "address {address}; the host keeps its own default route"),
        };
    }
    if let Some(router) = attached.routers.first() {
        let enter = if host.starts_with('/') {
            format!("nsenter --net={host}")
        } else {
            format!("ip netns exec {host}")
        };
        let _ = writeln!(text, "try: {enter} ping {router}");
    }
    text
}

fn told_of_tap(attached: &Attached) -> String {
    let Host { host, addresses, .. } = &attached.host;
    let mut text = format!("TAP device {host} is connected to {}\n", place_of(&attached.host));
    for (address, router) in addresses.iter().zip(&attached.routers) {
        let _ = writeln!(text, "set in the virtual machine: address {address}, gateway {router}");
    }
    if addresses.is_empty() {
        text.push_str("the virtual port has no address: choose the machine's yourself\n");
    }
    let mac = attached.mac.as_deref().unwrap_or_default();
    let mtu = if attached.mtu == MTU_USUAL { String::new() } else { format!(",host_mtu={}", attached.mtu) };
    let _ = writeln!(
        text,
        "give it to QEMU: -netdev tap,id={host},ifname={host},script=no,downscript=no -device virtio-net-pci,netdev={host},mac={mac}{mtu}"
    );
    text
}
