//! Changes the desired state: documents are merged and validated as a whole, stored, and only then applied.
//!
//! Flow: request → [`prepare`] (pure) → store → node thread. Invariants: one change at a time; only what is on the
//! disk takes effect; a refused change leaves everything as it was.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hue_control::{Compiled, Ids, Plan, compile_with, plan};
use hue_host::control::Owner;
use hue_intent::{Card, Intent, Network, NetworkPort, Placement, Source};
use serde_json::Value;

use super::wanted::{self, Wanted};
use crate::api::{Action, ApplyRequest, FieldChange, ObjectKind, Problem, ProblemKind, Timestamp, Verb};
use crate::history::Documents;
use crate::store::{Desired, NODE_KEY, network_key, nothing};

/// A change, ready to be stored and applied.
#[derive(Clone)]
pub struct Prepared {
    /// Desired state after the change.
    pub desired: Arc<Desired>,
    /// The same, compiled.
    pub compiled: Arc<Compiled>,
    /// Its networks.
    pub networks: Vec<(String, Arc<Wanted>)>,
    /// Steps from the state in force.
    pub plan: Plan,
    /// Networks that the change names, also those that it leaves as they are. Their namespaces are checked before it,
    /// and only theirs: a change must not take longer because others have many networks.
    pub named: BTreeSet<String>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { desired, networks, plan, .. } = self;
        let (networks, changed) = (networks.len(), plan.networks.len() + plan.deleted.len());
        write!(f, "generation {}, {networks} networks, {changed} changed", desired.generation)
    }
}

/// Prepares the change of an apply request.
///
/// # Errors
/// If documents are invalid, or the state in force is not the one that the request expects.
pub fn prepare(now: &Desired, request: &ApplyRequest, owner: &Owner) -> Result<Prepared, Problem> {
    expect(now, request.if_generation)?;
    let (intent, named) = merged(&now.intent, request)?;
    Ok(Prepared { named, ..changed(now, intent, owner)? })
}

/// Checks that the state in force is the one that a request expects, if it expects one.
///
/// # Errors
/// `conflict` if it is a different one.
pub fn expect(now: &Desired, generation: Option<u64>) -> Result<(), Problem> {
    match generation.filter(|expected| *expected != now.generation) {
        Some(expected) => {
            let detail = format!("the desired state in force is {}, not {expected}", now.generation);
            Err(Problem::new(ProblemKind::Conflict, detail))
        }
        None => Ok(()),
    }
}

/// Prepares the change that restores documents of a revision. Without `prune`, other documents in force stay. Whether
/// the card is drained stays too: that is a fact about the card now, and not a part of an earlier configuration.
///
/// # Errors
/// When documents are not valid any more, alone or together with those that stay; `conflict` if the revision differs
/// only in whether the card is drained.
pub fn prepare_rollback(
    now: &Desired,
    (revision, documents): (u64, &Documents),
    prune: bool,
    owner: &Owner,
) -> Result<Prepared, Problem> {
    let mut intent = restored(now, (revision, documents), prune)?;
    let drained = is_drained(&now.intent);
    let other = intent.node.spec.card.as_mut().is_some_and(|card| {
        let other = card.is_drained() != drained;
        card.drained = drained.then_some(true);
        other
    });
    let names = intent.networks.iter().map(|network| network.name().to_owned());
    let named = names.filter(|name| documents.contains_key(&network_key(name))).collect();
    let prepared = Prepared { named, ..changed(now, intent, owner)? };
    if other && prepared.desired.generation == now.generation {
        let (state, command) = match drained {
            true => ("not drained", "undrain"),
            false => ("drained", "drain"),
        };
        let detail = format!(
            "revision {revision} differs only in that the card is {state}, and a rollback does not change that: \
             `hueplane {command} card` does"
        );
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }
    Ok(prepared)
}

/// The documents of a revision, with those in force that stay.
fn restored(now: &Desired, (revision, documents): (u64, &Documents), prune: bool) -> Result<Intent, Problem> {
    let restored = documents.iter().map(|(key, text)| {
        let name = format!("(revision {revision}) {}", key.replace('/', " "));
        Source { name, bytes: text.clone().into_bytes() }
    });
    let mut sources: Vec<Source> = restored.collect();
    if !prune {
        if now.intent.node_given && !documents.contains_key(NODE_KEY) {
            sources.push(in_force_node(&now.intent)?);
        }
        sources.extend(in_force(&now.intent, |name| !documents.contains_key(&network_key(name)))?);
    }
    match sources.is_empty() {
        true => Ok(nothing()),
        // What was accepted once can be restored.
        false => hue_intent::parse_accepted(sources).map_err(|errors| Problem::from(&errors)),
    }
}

/// The change that undoes the one that waits for its confirmation: the documents are exactly those before it.
///
/// # Errors
/// `conflict` when none waits, or one of another revision.
pub fn prepare_undo(now: &Desired, revision: u64, owner: &Owner) -> Result<Prepared, Problem> {
    let pending = now.pending.as_ref().filter(|pending| pending.revision == revision);
    let pending = pending.ok_or_else(|| none_pending(revision))?;
    let documents = pending.documents(now.documents());
    changed(now, restored(now, (pending.restores, &documents), true)?, owner)
}

/// The problem that a change does not wait for its confirmation.
pub fn none_pending(revision: u64) -> Problem {
    Problem::new(ProblemKind::Conflict, format!("revision {revision} does not wait for a confirmation"))
}

/// Prepares the change that deletes a network.
///
/// # Errors
/// `not_found` if it does not exist; `conflict` if it carries tunnels of others.
pub fn prepare_delete(now: &Desired, name: &str, owner: &Owner) -> Result<Prepared, Problem> {
    let mut intent = now.intent.clone();
    let before = intent.networks.len();
    intent.networks.retain(|network| network.name() != name);
    if intent.networks.len() == before {
        return Err(Problem::no_network(name));
    }
    let over = |network: &&Network| {
        let mut tunnels = network.spec.ports.iter().filter_map(NetworkPort::tunnel);
        tunnels.any(|tunnel| tunnel.over.as_str() == name)
    };
    let carried: Vec<&str> = intent.networks.iter().filter(over).map(Network::name).collect();
    if !carried.is_empty() {
        let detail = format!(
            "network {name} carries tunnels of {}: delete them first, or apply their documents with another `over`",
            carried.join(", ")
        );
        return Err(Problem::new(ProblemKind::Conflict, detail));
    }
    if !intent.node_given {
        // Without a node document, the node has the ports that networks name.
        let named = |port: &hue_intent::NodePort| {
            intent
                .networks
                .iter()
                .any(|network| network.spec.ports.iter().any(|on| on.physical() == Some(&port.name)))
        };
        let ports = std::mem::take(&mut intent.node.spec.ports);
        let ports = ports.into_iter().filter(named).collect();
        intent.node.spec.ports = ports;
    }
    changed(now, intent, owner)
}

/// Prepares the change that closes or opens a network's clock gate.
///
/// # Errors
/// `not_found` if the network does not exist.
pub fn prepare_gate(now: &Desired, name: &str, gated: bool, owner: &Owner) -> Result<Prepared, Problem> {
    let mut intent = now.intent.clone();
    let network = intent.networks.iter_mut().find(|network| network.name() == name);
    network.ok_or_else(|| Problem::no_network(name))?.spec.gated = gated;
    Ok(Prepared { named: BTreeSet::from([name.to_owned()]), ..changed(now, intent, owner)? })
}

/// Desired state with a network placed elsewhere; `None` when it is placed there already, or does not exist.
pub fn placed(now: &Desired, name: &str, placement: Placement) -> Option<Desired> {
    let mut desired =
        Desired { generation: now.generation + 1, applied: Some(Timestamp::now()), ..now.clone() };
    let network = desired.intent.networks.iter_mut().find(|network| network.name() == name)?;
    let before = std::mem::replace(&mut network.spec.placement, placement);
    (before != placement).then_some(desired)
}

/// Desired state with another image on the node's card; `None` when it names that image already, or no card.
pub fn with_image(now: &Desired, image: &str) -> Option<Desired> {
    let mut desired =
        Desired { generation: now.generation + 1, applied: Some(Timestamp::now()), ..now.clone() };
    let card = desired.intent.node.spec.card.as_mut()?;
    let twin = card.twin.as_mut()?;
    let before = std::mem::replace(&mut twin.image, image.parse().ok()?);
    (before != twin.image).then_some(desired)
}

/// Desired state whose card is drained, or is not; `None` when that is so already, or there is no card.
pub fn with_drained(now: &Desired, drained: bool) -> Option<Desired> {
    let mut desired =
        Desired { generation: now.generation + 1, applied: Some(Timestamp::now()), ..now.clone() };
    let card = desired.intent.node.spec.card.as_mut()?;
    let before = card.is_drained();
    card.drained = drained.then_some(true);
    (before != drained).then_some(desired)
}

/// Whether the card is drained.
pub fn is_drained(intent: &Intent) -> bool {
    intent.node.spec.card.as_ref().is_some_and(Card::is_drained)
}

/// Prepares stored desired state for a starting daemon.
///
/// # Errors
/// When it does not compile.
pub fn prepare_start(desired: Desired, owner: &Owner) -> Result<Prepared, Problem> {
    let nothing = Desired { generation: desired.generation, ..Desired::default() };
    let plan = plan(&nothing.intent, &desired.intent);
    finish(desired, plan, owner)
}

/// The documents in force, replaced or extended by those of a request and validated as a whole, and the networks that
/// the request names.
fn merged(now: &Intent, request: &ApplyRequest) -> Result<(Intent, BTreeSet<String>), Problem> {
    let mut sources: Vec<Source> = request
        .sources
        .iter()
        .map(|source| Source { name: source.name.clone(), bytes: source.text.clone().into_bytes() })
        .collect();
    // All rules apply to the new documents; their names say which documents in force they replace.
    let new = hue_intent::parse_part(sources.clone()).map_err(|errors| Problem::from(&errors))?;
    let named: BTreeSet<String> = new.networks.iter().map(|network| network.name().to_owned()).collect();
    if now.node_given && !new.node_given {
        sources.push(in_force_node(now)?);
    }
    sources.extend(in_force(now, |name| !request.prune && !named.contains(name))?);
    let mut intent = hue_intent::parse_accepted(sources).map_err(|errors| Problem::from(&errors))?;
    if let Some(card) = &mut intent.node.spec.card {
        // A document that does not mention it must not put networks on a card under maintenance. `false` is stored like a
        // missing field, so that the same document changes nothing when it is applied again.
        card.drained = card.drained.unwrap_or(is_drained(now)).then_some(true);
    }
    Ok((intent, named))
}

/// The node's document in force.
fn in_force_node(now: &Intent) -> Result<Source, Problem> {
    let bytes = serde_json::to_vec(&now.node).map_err(Problem::internal)?;
    Ok(Source { name: "(in force) node".to_owned(), bytes })
}

/// The documents in force of networks that stay.
fn in_force(now: &Intent, stays: impl Fn(&str) -> bool) -> Result<Vec<Source>, Problem> {
    let source = |network: &Network| {
        let bytes = serde_json::to_vec(network).map_err(Problem::internal)?;
        Ok(Source { name: format!("(in force) network {}", network.name()), bytes })
    };
    now.networks.iter().filter(|network| stays(network.name())).map(source).collect()
}

pub(super) fn changed(now: &Desired, intent: Intent, owner: &Owner) -> Result<Prepared, Problem> {
    let plan = plan(&now.intent, &intent);
    let desired = if plan.is_empty() && now.intent.node_given == intent.node_given {
        now.clone()
    } else {
        let (generation, applied) = (now.generation + 1, Some(Timestamp::now()));
        Desired { generation, applied, intent, ids: now.ids.clone(), pending: None }
    };
    finish(desired, plan, owner)
}

fn finish(mut desired: Desired, plan: Plan, owner: &Owner) -> Result<Prepared, Problem> {
    let compiled = compile_with(&desired.intent, &desired.ids)
        .map_err(|error| Problem::new(ProblemKind::InvalidDocuments, error.to_string()))?;
    desired.ids = Ids {
        networks: compiled.programs.iter().map(|program| (program.name.clone(), program.vid)).collect(),
        ports: compiled
            .names
            .ports
            .iter()
            .zip(0u8..=u8::MAX)
            .filter(|(port, _)| !port.name.is_empty())
            .map(|(port, id)| (port.name.clone(), hue_demux::PortId::new(id)))
            .collect(),
    };
    let networks = wanted::all(&desired.intent.networks, &compiled, owner);
    let named = plan.networks.iter().chain(&plan.deleted).map(|step| step.name.clone()).collect();
    Ok(Prepared { desired: Arc::new(desired), compiled: Arc::new(compiled), networks, plan, named })
}

/// The steps of a plan in API terms, in execution order.
#[must_use]
pub fn actions(plan: &Plan) -> Vec<Action> {
    let of = |object| move |step: &hue_control::Step| action(object, step);
    let node = plan.node.iter().map(of(ObjectKind::Node));
    let deleted = plan.deleted.iter().map(of(ObjectKind::Network));
    let ports = plan.ports.iter().map(of(ObjectKind::Port));
    let networks = plan.networks.iter().map(of(ObjectKind::Network));
    node.chain(deleted).chain(ports).chain(networks).collect()
}

fn action(object: ObjectKind, step: &hue_control::Step) -> Action {
    let verb = match step.verb {
        hue_control::Verb::Create => Verb::Create,
        hue_control::Verb::Change => Verb::Change,
        hue_control::Verb::Replace => Verb::Replace,
        hue_control::Verb::Delete => Verb::Delete,
    };
    let change = |change: &hue_control::FieldChange| FieldChange {
        field: change.field.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    Action { verb, object, name: step.name.clone(), changes: step.changes.iter().map(change).collect() }
}

/// The documents of a desired state, the node first.
#[must_use]
pub fn documents(intent: &Intent) -> Vec<Value> {
    let value = |value: Result<Value, serde_json::Error>| value.unwrap_or_default();
    let node = intent.node_given.then(|| value(serde_json::to_value(&intent.node)));
    let networks = intent.networks.iter().map(|network| value(serde_json::to_value(network)));
    node.into_iter().chain(networks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SourceText;

    fn network(name: &str, number: u8, route: &str) -> String {
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  \
             routes: [{{to: {route}, via: 10.{number}.1.2}}]\n  ports:\n    \
             - {{name: left, port: p0, mac: \"02:00:00:00:00:0{number}\", addresses: [10.{number}.1.1/24]}}\n"
        )
    }

    fn apply(now: &Desired, texts: &[String]) -> Prepared {
        let sources = texts.iter().map(|text| SourceText { name: "test".to_owned(), text: text.clone() });
        let request = ApplyRequest { sources: sources.collect(), ..ApplyRequest::default() };
        prepare(now, &request, &Owner::new("test")).unwrap()
    }

    #[test]
    fn a_network_that_carries_tunnels_cannot_be_deleted_before_them() {
        let owner = Owner::new("test");
        let red = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: red}\nspec:\n  plane: {kind: ipv4}\n  ports:\n    \
                   - {name: a, tunnel: {type: ipip, local: 10.4.1.1, remote: 10.4.1.2}, over: wan}\n";
        let now = apply(&Desired::default(), &[network("wan", 4, "10.9.0.0/16"), red.to_owned()]).desired;
        let problem = prepare_delete(&now, "wan", &owner).unwrap_err();
        assert_eq!(problem.kind, ProblemKind::Conflict);
        let expected = "network wan carries tunnels of red: delete them first, or apply their documents with another `over`";
        assert_eq!(problem.detail, expected);
        // The new documents alone need not have it.
        let other = red.replace("10.4.1.2", "10.4.1.3");
        let sources = vec![SourceText { name: "test".to_owned(), text: other }];
        assert!(prepare(&now, &ApplyRequest { sources, ..ApplyRequest::default() }, &owner).is_ok());
        // Neither can a change leave it out.
        let sources = vec![SourceText { name: "test".to_owned(), text: red.to_owned() }];
        let request = ApplyRequest { sources, prune: true, ..ApplyRequest::default() };
        let problem = prepare(&now, &request, &owner).unwrap_err();
        assert_eq!(problem.kind, ProblemKind::InvalidDocuments);
        let now = prepare_delete(&now, "red", &owner).unwrap().desired;
        assert!(prepare_delete(&now, "wan", &owner).is_ok());
    }

    /// The others' namespaces are not checked before a change: with many networks this took most of its time.
    #[test]
    fn a_change_names_its_own_networks_and_no_others() {
        let own = |prepared: &Prepared| prepared.named.iter().cloned().collect::<Vec<String>>();
        let owner = Owner::new("test");
        let documents = ["red", "blue", "green"].map(|name| network(name, name.len() as u8, "10.9.0.0/16"));
        let all = apply(&Desired::default(), &documents);
        assert_eq!(own(&all), ["blue", "green", "red"]);
        let now = all.desired;
        // Also one that stays as it is: it may have drifted.
        let same = apply(&now, &documents[..1]);
        assert!(same.plan.is_empty());
        assert_eq!(own(&same), ["red"]);
        assert_eq!(own(&apply(&now, &[network("blue", 4, "10.8.0.0/16")])), ["blue"]);
        assert_eq!(own(&prepare_gate(&now, "green", false, &owner).unwrap()), ["green"]);
        assert_eq!(own(&prepare_delete(&now, "red", &owner).unwrap()), ["red"]);
        let two = apply(&Desired::default(), &documents[1..]).desired.documents();
        let back = prepare_rollback(&now, (1, &two), false, &owner).unwrap();
        assert_eq!(own(&back), ["blue", "green"]);
    }
}
