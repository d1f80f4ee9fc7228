//! Networks for tests of parts: target states from documents, without a node.

use std::sync::Arc;

use hue_host::control::Owner;

use super::wanted::{self, Wanted};

/// The target state of networks of kind `ipv4`, from the text of their `spec`s.
pub fn wanted(specs: &[(&str, &str)]) -> Vec<(String, Arc<Wanted>)> {
    wanted_of("kind: ipv4", specs)
}

/// The same with another plane.
pub fn wanted_of(plane: &str, specs: &[(&str, &str)]) -> Vec<(String, Arc<Wanted>)> {
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec: {ports: [{name: p0, interface: eth0}]}\n";
    let network = |(name, spec): &(&str, &str)| {
        format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec: {{plane: {{{plane}}}, {spec}}}\n"
        )
    };
    let text: String = std::iter::once(node.to_owned()).chain(specs.iter().map(network)).collect();
    let source = hue_intent::Source { name: "documents".to_owned(), bytes: text.into_bytes() };
    let intent = hue_intent::parse(vec![source]).unwrap();
    let compiled = hue_control::compile(&intent).unwrap();
    wanted::all(&intent.networks, &compiled, &Owner::new("test"))
}

/// Plain networks of these names.
pub fn plain(names: &[&str]) -> Vec<(String, Arc<Wanted>)> {
    let specs: Vec<(String, String)> = names
        .iter()
        .zip(1..)
        .map(|(name, at)| {
            let port =
                format!("{{name: x, port: p0, mac: '02:00:00:00:00:0{at}', addresses: [10.0.{at}.1/24]}}");
            ((*name).to_owned(), format!("ports: [{port}]"))
        })
        .collect();
    let specs: Vec<(&str, &str)> = specs.iter().map(|(name, spec)| (name.as_str(), spec.as_str())).collect();
    wanted(&specs)
}
