//! The steps from one desired state to another: one for each object that differs.
//!
//! Flow: two [`Intent`]s → **plan** → reconciliation, `diff`, `apply --dry-run`. Pure: the same intents give
//! the same plan. Invariants: there is no step for an object that is the same in both. Steps are in order of
//! execution: steps that free something come before steps that may need it, and ports before the networks on
//! them.

use std::collections::{BTreeMap, BTreeSet};

use hue_intent::{Intent, Network, Node, NodePort, Tunnel};
use serde_json::Value;

/// Most fields listed in one step; a list of routes can differ in a million places.
pub const CHANGES_MAX: usize = 1_000;

/// What a step does with an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Create it.
    Create,
    /// Change it while it runs.
    Change,
    /// Remove it and create it again, because its interfaces change.
    Replace,
    /// Remove it.
    Delete,
}

/// A field that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldChange {
    /// Path in the document, such as `spec.routes[0].via`.
    pub field: String,
    /// The value in force.
    pub before: Option<Value>,
    /// The desired value.
    pub after: Option<Value>,
}

/// A step for one object.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What to do.
    pub verb: Verb,
    /// Name of the object.
    pub name: String,
    /// Fields that differ; empty if the object is created or deleted.
    pub changes: Vec<FieldChange>,
}

/// All steps.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The step of the node itself, if its name, card or scheduler differs.
    pub node: Option<Step>,
    /// Networks to delete. They come first, because others may need their resources.
    pub deleted: Vec<Step>,
    /// Physical ports.
    pub ports: Vec<Step>,
    /// Networks to create or change.
    pub networks: Vec<Step>,
}

impl Plan {
    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.node.is_none() && self.deleted.is_empty() && self.ports.is_empty() && self.networks.is_empty()
    }
}

/// The steps from `before` to `after`.
#[must_use]
pub fn plan(before: &Intent, after: &Intent) -> Plan {
    let own = |node: &Node| serde_json::json!({"metadata": node.metadata, "spec": {"card": node.spec.card, "scheduler": node.spec.scheduler}});
    let mut changes = Vec::new();
    differences(String::new(), Some(&own(&before.node)), Some(&own(&after.node)), &mut changes);
    let name = after.node.metadata.name.to_string();
    let node = (!changes.is_empty()).then_some(Step { verb: Verb::Change, name, changes });
    let ports = objects(
        &before.node.spec.ports,
        &after.node.spec.ports,
        |port| port.name.as_str(),
        value,
        |old: &NodePort, new: &NodePort| {
            // Only a new interface or driver requires opening the port again; next hops hold the MTU.
            let same = old.interface() == new.interface() && old.driver == new.driver;
            if same { Verb::Change } else { Verb::Replace }
        },
    );
    let mut networks = objects(&before.networks, &after.networks, Network::name, value, |old, new| {
        if replaces(old, new) { Verb::Replace } else { Verb::Change }
    });
    let deleted = networks.extract_if(.., |step| step.verb == Verb::Delete).collect();
    Plan { node, deleted, ports, networks }
}

/// Whether a network must be created again: its id, kind, interfaces or numbers of next hops differ.
fn replaces(old: &Network, new: &Network) -> bool {
    let shape = |network: &Network| {
        let ports = network.spec.ports.iter();
        ports
            .map(|port| {
                let on = port.physical().map(ToString::to_string).ok_or(port.tunnel().map(Tunnel::is_ip));
                (port.name.to_string(), on, port.mac, port.mtu)
            })
            .collect::<Vec<_>>()
    };
    let by_destination = |network: &Network| network.spec.plane.route_by.is_default();
    old.spec.vid != new.spec.vid
        || old.spec.plane.kind != new.spec.plane.kind
        || by_destination(old) != by_destination(new)
        || shape(old) != shape(new)
}

fn value<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Steps for a list of named objects, sorted by name.
fn objects<T: PartialEq>(
    before: &[T],
    after: &[T],
    name: impl Fn(&T) -> &str,
    value: impl Fn(&T) -> Value,
    verb: impl Fn(&T, &T) -> Verb,
) -> Vec<Step> {
    let by_name = |list| -> BTreeMap<&str, &T> {
        let list: &[T] = list;
        list.iter().map(|object| (name(object), object)).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let step = |name: &str| {
        let (verb, changes) = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old == new => return None,
            (Some(old), Some(new)) => {
                let mut changes = Vec::new();
                differences(String::new(), Some(&value(old)), Some(&value(new)), &mut changes);
                (verb(old, new), changes)
            }
            (None, _) => (Verb::Create, Vec::new()),
            (Some(_), None) => (Verb::Delete, Vec::new()),
        };
        Some(Step { verb, name: name.to_owned(), changes })
    };
    names.into_iter().filter_map(step).collect()
}

/// Every leaf value that differs between two documents.
fn differences(path: String, before: Option<&Value>, after: Option<&Value>, into: &mut Vec<FieldChange>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (before, after) {
        (Some(one), Some(other)) if one == other => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                differences(join(key), one.get(key), other.get(key), into);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                differences(format!("{path}[{index}]"), one.get(index), other.get(index), into);
            }
        }
        (before, after) if into.len() < CHANGES_MAX => {
            into.push(FieldChange { field: path, before: before.cloned(), after: after.cloned() });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use hue_intent::{Source, parse};

    use super::*;

    const NODE: &str = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0}, {name: p1}]\n";

    fn network(name: &str, mac: u8, rest: &str) -> String {
        format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  \
             ports: [{{name: v, port: p0, mac: '02:00:00:00:00:{mac:02x}', addresses: [10.0.{mac}.1/24]}}]\n{rest}"
        )
    }

    fn intent(networks: &[String]) -> Intent {
        let text = NODE.to_owned() + &networks.concat();
        parse(vec![Source { name: "t".into(), bytes: text.into_bytes() }]).unwrap()
    }

    #[test]
    fn equal_states_need_no_steps() {
        let one = intent(&[network("a", 1, ""), network("b", 2, "")]);
        assert!(plan(&one, &one.clone()).is_empty());
    }

    #[test]
    fn only_different_objects_change() {
        let before = intent(&[network("a", 1, ""), network("b", 2, ""), network("c", 3, "")]);
        let after = intent(&[network("b", 2, "  weight: 3\n"), network("c", 4, ""), network("d", 5, "")]);
        let plan = plan(&before, &after);
        let steps = |steps: &[Step]| steps.iter().map(|s| (s.verb, s.name.clone())).collect::<Vec<_>>();
        assert_eq!(steps(&plan.deleted), [(Verb::Delete, "a".to_owned())]);
        assert_eq!(
            steps(&plan.networks),
            [(Verb::Change, "b".to_owned()), (Verb::Replace, "c".to_owned()), (Verb::Create, "d".to_owned())]
        );
        assert!(plan.ports.is_empty() && plan.node.is_none());
        let weight = &plan.networks[0].changes;
        assert_eq!(weight.len(), 1);
        assert_eq!((weight[0].field.as_str(), &weight[0].after), ("spec.weight", &Some(3.into())));
    }

    #[test]
    fn routes_by_source_change_in_place_once_there_can_be_some() {
        let with = |route_by: &str, routes: &str| {
            let text = network("a", 1, &format!("  routes: [{routes}]\n"));
            intent(&[text.replace("{kind: ipv4}", &format!("{{kind: ipv4, route_by: {route_by}}}"))])
        };
        let verb = |before: &Intent, after: &Intent| plan(before, after).networks[0].verb;
        let one = "{from: 10.7.0.0/16, via: 10.0.1.2}";
        let two = "{from: 10.7.0.0/16, via: 10.0.1.3}, {from: 10.8.0.0/16, via: 10.0.1.2}";
        let (none, by_source) = (with("destination", ""), with("source", one));
        assert_eq!(verb(&by_source, &with("source", two)), Verb::Change);
        assert_eq!(verb(&by_source, &with("source_destination", two)), Verb::Change);
        assert_eq!((verb(&none, &by_source), verb(&by_source, &none)), (Verb::Replace, Verb::Replace));
    }

    #[test]
    fn a_scheduler_and_needs_change_in_place() {
        let before = intent(&[network("a", 1, "")]);
        let text = NODE.replace("spec:\n", "spec:\n  scheduler: {kind: exact}\n")
            + &network("a", 1, "  needs: {bandwidth: 5Mbit/s}\n");
        let after = parse(vec![Source { name: "t".into(), bytes: text.into_bytes() }]).unwrap();
        let plan = plan(&before, &after);
        let node = plan.node.unwrap();
        assert_eq!(node.changes[0].field, "spec.scheduler");
        assert_eq!((plan.networks[0].verb, plan.ports.len()), (Verb::Change, 0));
        assert_eq!(plan.networks[0].changes[0].field, "spec.needs");
    }
}
