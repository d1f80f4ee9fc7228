//! Texts of a new kind of plane: a row and a section of the guide, and its lab.

/// A frame from a sender with a static entry in the lab.
pub const FRAME: &str = "02bb0000000102aa00000001123407070707";

/// The kind's row of the table of kinds.
pub fn row(name: &str) -> String {
    format!(
        "| `{name}` | any frame, by the MAC address of its sender | software | [list](../reference/outcomes.md) |"
    )
}

/// The kind's section.
pub fn section(name: &str) -> String {
    format!(
        "## `{name}`\n\n\
         Sends each frame to the port of the static entry of its sender, or back to the port where it arrived, with the two MAC addresses\n\
         exchanged.\n\n\
         ```yaml\n\
         apiVersion: hueplane/v1\n\
         kind: Network\n\
         metadata: {{name: {name}}}\n\
         spec:\n  \
           plane: {{kind: {name}}}\n  \
           ports:\n    \
             - {{name: a, port: p0, mac: \"02:00:00:00:09:01\"}}\n    \
             - {{name: b, port: p1, mac: \"02:00:00:00:09:02\"}}\n  \
           static_macs:\n    \
             - {{mac: \"02:aa:00:00:00:01\", port: b}}\n\
         ```\n\n\
         - A frame whose sender has no single MAC address is dropped (`no_sender`).\n\
         - Each of its physical ports belongs to the network. It runs in software.\n\n\
         [labs/{name}](../../labs/{name}/README.md) has such a network.\n"
    )
}

/// The lab's document.
pub fn document(name: &str) -> String {
    format!(
        "# One node, two ports, a network of kind {name}.\n\
         apiVersion: hueplane/v1\n\
         kind: Node\n\
         metadata: {{name: {name}}}\n\
         spec:\n  \
           ports:\n    \
             - {{name: p0}}\n    \
             - {{name: p1}}\n\
         ---\n\
         apiVersion: hueplane/v1\n\
         kind: Network\n\
         metadata: {{name: first}}\n\
         spec:\n  \
           plane: {{kind: {name}}}\n  \
           ports:\n    \
             - {{name: a, port: p0, mac: \"02:00:00:00:09:01\"}}\n    \
             - {{name: b, port: p1, mac: \"02:00:00:00:09:02\"}}\n  \
           static_macs:\n    \
             - {{mac: \"02:aa:00:00:00:01\", port: b}}\n"
    )
}

/// The lab's page. A test runs its commands.
pub fn lab(name: &str) -> String {
    let bytes = FRAME.len() / 2;
    format!(
        "# Kind `{name}`\n\n\
         `hueplane.yaml` has a network of [kind `{name}`](../../docs/guide/kinds.md#{name}) on two ports. Nothing here needs root.\n\n\
         The sender of this frame has an entry at the other port:\n\n    \
             $ hueplane trace -f labs/{name}/hueplane.yaml --in-port p0 --hex {FRAME}\n    \
             packet on p0, {bytes} bytes\n    \
             …\n        \
                 lookup    02:aa:00:00:00:01: static entry, port p1\n        \
                 egress    destination 02:bb:00:00:00:01 -> 02:aa:00:00:00:01, source 02:aa:00:00:00:01 -> 02:bb:00:00:00:01\n    \
             …\n"
    )
}
