//! Documents for the daemon: a test's node and networks, as YAML.

use std::fmt::Write;

/// A virtual port of a network.
#[derive(Clone, Debug)]
pub struct VirtualPort {
    /// Its name.
    pub name: String,
    /// Its physical port.
    pub port: String,
    /// Router MAC address.
    pub mac: String,
    /// Router addresses with the prefix length of their link.
    pub addresses: Vec<String>,
}

/// A network.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its virtual ports.
    pub ports: Vec<VirtualPort>,
    /// Further fields of `spec`: name and flow YAML.
    pub more: Vec<(String, String)>,
}

impl Document {
    /// The same document with a field of `spec` added or replaced.
    #[must_use]
    pub fn with(mut self, field: &str, value: &str) -> Self {
        self.more.retain(|(name, _)| name != field);
        self.more.push((field.to_owned(), value.to_owned()));
        self
    }

    /// The document's text.
    #[must_use]
    pub fn yaml(&self) -> String {
        let mut out = format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: {}}}\n  ports:\n",
            self.name, self.kind
        );
        for port in &self.ports {
            // A colon needs quotation marks.
            let quoted = |one: &String| if one.contains(':') { format!("\"{one}\"") } else { one.clone() };
            let addresses: Vec<String> = port.addresses.iter().map(quoted).collect();
            // Kinds that do not look at IP take no list of addresses, not even an empty one.
            let addresses = match &addresses[..] {
                [] => String::new(),
                some => format!(", addresses: [{}]", some.join(", ")),
            };
            let _ = writeln!(
                out,
                "    - {{name: {}, port: {}, mac: \"{}\"{addresses}}}",
                port.name, port.port, port.mac
            );
        }
        for (field, value) in &self.more {
            let _ = writeln!(out, "  {field}: {value}");
        }
        out
    }
}

/// The document of a node with ports of these names; `more` is flow YAML added to each, such as `driver: packet`.
#[must_use]
pub fn node(name: &str, ports: &[String], more: &str) -> String {
    let mut out =
        format!("apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {name}}}\nspec:\n  ports:\n");
    let comma = if more.is_empty() { "" } else { ", " };
    for port in ports {
        let _ = writeln!(out, "    - {{name: {port}{comma}{more}}}");
    }
    out
}

/// Joins several documents into one file.
#[must_use]
pub fn all(documents: &[String]) -> String {
    documents.join("---\n")
}
