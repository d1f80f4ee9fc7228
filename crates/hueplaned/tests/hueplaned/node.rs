//! The node on a real kernel: namespaces, TAPs and ports of its own, without the API in front.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hue_host::control::{ControlNamespace, Owner};
use hue_host::links::Links;
use hue_host::netns::{self, Namespace};
use hue_soft::LiveConfig;
use hueplaned::api::{
    ApplyRequest, Author, ConfirmRequest, DrainRequest, DrainResult, EventKind, LogPlace, NetworkState,
    PlanQuery, PortState, ProblemKind, RevisionKind, RollbackRequest, SchedulerName, SourceText, Verb,
};
use hueplaned::backend::{Backend, Turn};
use hueplaned::node::{self, NodeHandle, Running};
use hueplaned::options::images;
use hueplaned::store::Store;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longest time that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

static LABS: AtomicU32 = AtomicU32::new(0);

/// A node in a separate namespace, with ports `p0` and `p1`.
struct Lab {
    name: String,
    state: TempDir,
    machine: Namespace,
    runtime: Runtime,
    node: Option<(NodeHandle, Running)>,
}

impl Lab {
    /// `None` without root.
    fn new() -> Option<Self> {
        let name = format!("hte{}{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let machine = match Namespace::create(&format!("{name}-node")) {
            Ok(machine) => machine,
            Err(error) => {
                hue_testdata::skipped(&format!("root ({error})"));
                return None;
            }
        };
        let state = tempfile::tempdir().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut lab = Self { name, state, machine, runtime, node: None };
        lab.cable("p0");
        lab.cable("p1");
        lab.start();
        Some(lab)
    }

    fn owner(&self) -> Owner {
        Owner { prefix: format!("{}-", self.name), node: self.name.clone() }
    }

    /// A port of the machine; its other end is on the machine too.
    fn cable(&self, name: &str) {
        let other = format!("{name}-x");
        let cable = || {
            let mut links = Links::here()?;
            links.create_veth(name, &other, None)?;
            links.set_up(name, true)?;
            links.set_up(&other, true)
        };
        self.machine.run(cable).unwrap().unwrap();
    }

    fn links<T: Send>(&self, work: impl FnOnce(&mut Links) -> T + Send) -> T {
        self.machine.run(|| work(&mut Links::here().unwrap())).unwrap()
    }

    fn start(&mut self) {
        let config = LiveConfig { workers: 1, ..LiveConfig::default() };
        let opened = Store::open(self.state.path()).unwrap();
        let owner = self.owner();
        self.node = Some(
            self.machine
                .run(|| {
                    node::start(
                        config,
                        images(),
                        owner,
                        opened,
                        std::sync::Arc::default(),
                        LogPlace::none(),
                        (None, None),
                    )
                })
                .unwrap()
                .unwrap(),
        );
    }

    fn stop(&mut self, keep: bool) {
        let (_, running) = self.node.take().unwrap();
        running.end(keep, None).unwrap();
    }

    fn node(&self) -> &NodeHandle {
        &self.node.as_ref().unwrap().0
    }

    fn request(documents: &str) -> ApplyRequest {
        let source = SourceText { name: "test".into(), text: documents.into() };
        ApplyRequest { sources: vec![source], ..ApplyRequest::default() }
    }

    fn apply(&self, documents: &str) -> hueplaned::api::ApplyResult {
        self.runtime.block_on(self.node().apply(Self::request(documents), Turn::default())).unwrap()
    }

    fn state(&self, name: &str) -> Option<NetworkState> {
        self.runtime.block_on(self.node().network(name)).ok().map(|network| network.state)
    }

    fn port(&self, name: &str) -> hueplaned::api::Port {
        let ports = self.runtime.block_on(self.node().ports()).unwrap();
        ports.into_iter().find(|port| port.name == name).unwrap()
    }

    fn events(&self, kind: EventKind) -> Vec<String> {
        let events = self.node().events_since(0, 10_000).events.into_iter();
        events
            .filter(|event| event.kind == kind)
            .map(|event| event.network.or(event.port).unwrap_or(event.message))
            .collect()
    }

    /// Names and indices of the interfaces of a network: they change when an interface is created again.
    fn interfaces(&self, network: &str) -> Vec<(String, u32)> {
        let namespace = Namespace::open(&self.owner().namespace(network)).unwrap();
        let links = Links::inside(&namespace).unwrap().list().unwrap();
        links.into_iter().filter(|link| !link.loopback).map(|link| (link.name, link.index)).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some((_, running)) = self.node.take() {
            let _ = running.end(false, None);
        }
        let owner = self.owner();
        for network in owner.networks().unwrap_or_default() {
            let _ = ControlNamespace::delete(&owner, &network);
        }
        for name in netns::list(&self.name).unwrap_or_default() {
            let _ = netns::delete(&name);
        }
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const NODE: &str =
    "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec: {ports: [{name: p0}, {name: p1}]}\n";

/// A network with virtual ports on both ports.
fn network(name: &str, number: u8, rest: &str) -> String {
    format!(
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n  \
         - {{name: left, port: p0, mac: '02:00:00:00:{number:02x}:01', addresses: [10.{number}.1.1/24]}}\n  \
         - {{name: right, port: p1, mac: '02:00:00:00:{number:02x}:02', addresses: [10.{number}.2.1/24]}}\n{rest}"
    )
}

#[test]
fn applying_twice_does_nothing_and_a_change_touches_one_network() {
    let Some(lab) = Lab::new() else { return };
    let documents = NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "");
    let first = lab.apply(&documents);
    assert_eq!((first.generation, first.actions.len(), first.networks.len()), (1, 5, 2));
    assert!(first.networks.iter().all(|network| network.state == NetworkState::Running), "{first:?}");
    let second = lab.apply(&documents);
    assert_eq!((second.generation, second.actions.len(), second.networks.len()), (1, 0, 0));

    let (before, events) = (lab.interfaces("b"), lab.node().events_since(0, 10_000).last);
    for change in [
        network("a", 1, "  weight: 9\n"),
        network(
            "a",
            1,
            "  routes: [{to: 10.99.0.0/16, via: 10.1.1.7}]\n  neighbours: [{port: left, address: 10.1.1.7, mac: '02:00:00:00:00:77'}]\n",
        ),
        network("a", 5, "  rate_limit: {packets_per_second: 100, burst_packets: 10}\n"),
    ] {
        let result = lab.apply(&change);
        assert_eq!(result.networks.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(result.networks[0].state, NetworkState::Running, "{result:?}");
    }
    assert_eq!(lab.interfaces("b"), before);
    let page = lab.node().events_since(events, 10_000);
    assert!(page.events.iter().all(|event| event.network.as_deref() != Some("b")), "{page:?}");
}

#[test]
fn placements_show_since_when_and_plans_show_the_target() {
    let Some(lab) = Lab::new() else { return };
    let before = hueplaned::api::Timestamp::now();
    let node = NODE.replace("spec: {", "spec: {scheduler: {kind: exact, soft: {bandwidth: 300Mbit/s}}, ");
    let needs = |mbps: u32| format!("  needs: {{bandwidth: {mbps}Mbit/s}}\n");
    lab.apply(&(node + &network("a", 1, &needs(400)) + &network("b", 2, "  placement: soft\n")));
    let placements = || lab.runtime.block_on(lab.node().placements()).unwrap();
    let first = placements();
    assert_eq!(first.iter().map(|one| one.network.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(first.iter().all(|one| one.substrate == "soft" && one.since >= before), "{first:?}");
    assert_eq!((first[0].placement.as_str(), first[1].placement.as_str()), ("auto", "soft"));
    assert_eq!(first[0].why.as_deref(), Some("core 0 serves 300 Mbit/s of its 400 Mbit/s"));
    assert_eq!(first[0].why_not.as_deref(), Some("the node has no card"));
    assert_eq!(first[1].why.as_deref(), Some("it needs no bandwidth"));

    let plan = |query: PlanQuery| lab.runtime.block_on(lab.node().plan(query)).unwrap();
    let asked = plan(PlanQuery::default());
    assert_eq!(
        (asked.scheduler, asked.needed_bps, asked.served_bps),
        (SchedulerName::Exact, 400_000_000, 300_000_000)
    );
    assert!(asked.moves.is_empty() && asked.note.is_none(), "{asked:?}");
    assert_eq!(asked.networks[0].now.as_deref(), Some("soft"));
    let measured = PlanQuery { scheduler: Some(SchedulerName::Greedy), from_traffic: true };
    let measured = plan(measured);
    assert_eq!((measured.scheduler, measured.needed_bps), (SchedulerName::Greedy, 400_000_000));
    assert!(measured.note.is_some_and(|note| note.contains("2 of the networks")), "nothing was measured yet");

    // Networks that do not move keep their times; a deleted one is forgotten.
    lab.apply(&network("a", 1, &needs(100)));
    lab.runtime.block_on(lab.node().delete_network("b", Turn::default())).unwrap();
    until("b is gone", || placements().len() == 1);
    assert_eq!(placements()[0].since, first[0].since);
    assert_eq!(placements()[0].why.as_deref(), Some("core 0 serves its 100 Mbit/s"));
}

#[test]
fn static_routes_reach_the_table_and_leave_it() {
    let Some(lab) = Lab::new() else { return };
    let rest = "  routes: [{to: 10.99.0.0/16, via: 10.1.1.7}]\n  neighbours: [{port: left, address: 10.1.1.7, mac: '02:00:00:00:00:77'}]\n";
    lab.apply(&(NODE.to_owned() + &network("a", 1, rest)));
    let mut frame = vec![2, 0, 0, 0, 1, 2, 2, 9, 9, 9, 9, 9, 8, 0];
    frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 2, 9, 10, 99, 1, 1]);
    let sum =
        frame[14..].chunks(2).fold(0u32, |sum, word| sum + u32::from(word[0]) * 256 + u32::from(word[1]));
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let verdict = |lab: &Lab| {
        let trace = lab.runtime.block_on(lab.node().trace("p1", frame.clone())).unwrap();
        trace.networks.first().map(|network| (network.verdict.clone(), network.out_port.clone())).unwrap()
    };
    until("the route leads to its router", || verdict(&lab) == ("forward".to_owned(), Some("p0".to_owned())));
    lab.apply(&network("a", 1, ""));
    until("the route is gone", || verdict(&lab).0 == "punt");
}

#[test]
fn networks_that_swap_addresses_are_loaded_together() {
    let Some(lab) = Lab::new() else { return };
    lab.apply(&(NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "")));
    let result = lab.apply(&(network("a", 2, "") + &network("b", 1, "")));
    assert_eq!(result.networks.len(), 2);
    assert!(result.networks.iter().all(|network| network.state == NetworkState::Running), "{result:?}");
    let explicit = network("a", 2, "  vid: 2\n") + &network("b", 1, "  vid: 1\n");
    let result = lab.apply(&explicit);
    assert!(result.networks.iter().all(|network| network.state == NetworkState::Running), "{result:?}");
    assert!(result.actions.iter().all(|action| action.verb == Verb::Replace), "{result:?}");
    let vid = |name: &str| lab.runtime.block_on(lab.node().network(name)).unwrap().vid;
    assert_eq!((vid("a"), vid("b")), (2, 1));
}

#[test]
fn a_restart_takes_over_what_is_desired_and_removes_the_rest() {
    let Some(mut lab) = Lab::new() else { return };
    let documents = NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "  vid: 77\n");
    lab.apply(&documents);
    let vid = |lab: &Lab, name: &str| lab.runtime.block_on(lab.node().network(name)).unwrap().vid;
    let (before, a) = (lab.interfaces("a"), vid(&lab, "a"));
    lab.stop(true);
    ControlNamespace::ensure(&lab.owner(), "left-over", &Default::default(), Default::default()).unwrap();
    lab.start();
    until("the networks run again", || {
        ["a", "b"].into_iter().all(|name| lab.state(name) == Some(NetworkState::Running))
    });
    until("what nobody wants is gone", || !netns::exists(&lab.owner().namespace("left-over")));
    assert_eq!(lab.interfaces("a"), before, "interfaces outlive the daemon");
    assert_eq!((vid(&lab, "a"), vid(&lab, "b")), (a, 77));
    let mut adopted = lab.events(EventKind::Adopted);
    adopted.sort();
    assert_eq!(adopted, ["a", "b"]);
    until("it is told", || lab.events(EventKind::Cleaned).len() == 1);
    assert_eq!(lab.apply(&documents).actions, []);
    lab.stop(false);
    assert_eq!(lab.owner().networks().unwrap(), [""; 0], "nothing is left");
    lab.start();
    until("the networks are set up anew", || lab.state("a") == Some(NetworkState::Running));
}

#[test]
fn one_network_that_fails_stops_no_other() {
    let Some(lab) = Lab::new() else { return };
    let foreign = lab.owner().namespace("b");
    Namespace::create(&foreign).unwrap();
    let result =
        lab.apply(&(NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "") + &network("c", 3, "")));
    let states: Vec<_> =
        result.networks.iter().map(|network| (network.name.as_str(), network.state)).collect();
    let (running, degraded) = (NetworkState::Running, NetworkState::Degraded);
    assert_eq!(states, [("a", running), ("b", degraded), ("c", running)]);
    assert!(result.networks[1].reason.as_ref().unwrap().contains("belongs to someone else"), "{result:?}");
    assert!(netns::exists(&foreign), "what is not ours stays");
    netns::delete(&foreign).unwrap();
    until("it is tried again", || lab.state("b") == Some(running));
    assert_eq!(lab.events(EventKind::NetworkRecovered), ["b"]);
}

#[test]
fn an_interface_that_goes_takes_its_port_down_until_it_is_back() {
    let Some(lab) = Lab::new() else { return };
    lab.apply(&(NODE.to_owned() + &network("a", 1, "")));
    until("both are up", || ["p0", "p1"].iter().all(|name| lab.port(name).state == PortState::Up));
    let inside = Namespace::open(&lab.owner().namespace("a")).unwrap();
    let wire = |name: &str| Links::inside(&inside).unwrap().get(name).unwrap().carrier;
    until("the wires are on", || wire("left") && wire("right"));
    lab.links(|links| links.delete("p1")).unwrap();
    until("the port is missing", || lab.port("p1").state == PortState::Missing);
    until("the network knows", || !wire("right"));
    assert!(wire("left"));
    assert_eq!((lab.port("p0").state, lab.state("a")), (PortState::Up, Some(NetworkState::Running)));
    lab.cable("p1");
    until("the port is back", || lab.port("p1").state == PortState::Up && wire("right"));
    lab.links(|links| links.set_up("p1", false)).unwrap();
    until("it is down", || lab.port("p1").state == PortState::Down && lab.port("p1").error.is_some());
    lab.links(|links| links.set_up("p1", true)).unwrap();
    until("it is up", || lab.port("p1").state == PortState::Up);
}

#[test]
fn a_tap_that_is_removed_inside_is_created_again() {
    let Some(lab) = Lab::new() else { return };
    lab.apply(&(NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "")));
    let (a, b) = (lab.interfaces("a"), lab.interfaces("b"));
    let inside = Namespace::open(&lab.owner().namespace("a")).unwrap();
    Links::inside(&inside).unwrap().delete("left").unwrap();
    until("it is made anew", || lab.interfaces("a").len() == a.len() && lab.interfaces("a") != a);
    until("the network recovers", || lab.state("a") == Some(NetworkState::Running));
    assert_eq!(lab.interfaces("b"), b);
}

#[test]
fn bad_documents_change_nothing() {
    let Some(lab) = Lab::new() else { return };
    lab.apply(&(NODE.to_owned() + &network("a", 1, "")));
    let refused =
        |request: ApplyRequest| lab.runtime.block_on(lab.node().apply(request, Turn::default())).unwrap_err();
    for (documents, part) in [
        (network("b", 1, ""), "MAC"),
        (network("b", 2, "").replace("port: p1", "port: p9"), "p9"),
        (NODE.replace(", {name: p1}", ""), "p1"),
        ("kind: Nothing".to_owned(), "kind"),
        (String::new(), "document"),
    ] {
        let problem = refused(Lab::request(&documents));
        assert_eq!(problem.kind, ProblemKind::InvalidDocuments, "{documents}: {problem}");
        assert!(problem.to_string().contains(part), "{documents}: {problem}");
    }
    let late = ApplyRequest { if_generation: Some(7), ..Lab::request(&network("b", 2, "")) };
    assert_eq!(refused(late).kind, ProblemKind::Conflict);
    let nothing = lab.runtime.block_on(lab.node().delete_network("b", Turn::default())).unwrap_err();
    assert_eq!(nothing.kind, ProblemKind::NotFound);
    assert_eq!(lab.runtime.block_on(lab.node().config()).unwrap().generation, 1);
    assert_eq!(lab.state("a"), Some(NetworkState::Running));
}

/// Hosts of the machine ping through two networks, one of which is then deleted.
#[test]
fn a_rollback_touches_what_differs_and_deletes_nothing_by_accident() {
    let Some(mut lab) = Lab::new() else { return };
    let by =
        |name: &str| Turn { by: Author { role: "admin".into(), name: Some(name.into()) }, ..Turn::default() };
    lab.apply(&(NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "")));
    let routes = "  routes: [{to: 10.66.0.0/16, via: 10.2.2.9}]\n";
    let request = Lab::request(&(network("b", 2, routes) + &network("c", 3, "")));
    lab.runtime.block_on(lab.node().apply(request, by("alice"))).unwrap();
    let before = (lab.interfaces("a"), lab.interfaces("b"), lab.interfaces("c"));

    // Only the difference, and only as a report.
    let back = |lab: &Lab, request: RollbackRequest| {
        lab.runtime.block_on(lab.node().rollback(request, None, by("bob")))
    };
    let dry = back(&lab, RollbackRequest { dry_run: true, ..RollbackRequest::default() }).unwrap();
    assert_eq!((dry.revision, dry.generation, dry.dry_run), (1, 2, true));
    assert!(dry.actions.len() == 1 && dry.actions[0].name == "b" && dry.kept == ["c"], "{dry:?}");
    assert_eq!(lab.runtime.block_on(lab.node().history()).unwrap().revisions.len(), 2);

    let done = back(&lab, RollbackRequest::default()).unwrap();
    assert_eq!((done.revision, done.generation, done.kept), (1, 3, vec!["c".to_owned()]));
    assert_eq!(done.networks.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(lab.events(EventKind::RolledBack).len(), 1);
    assert_eq!(
        before,
        (lab.interfaces("a"), lab.interfaces("b"), lab.interfaces("c")),
        "nothing is made anew"
    );
    let again = back(&lab, RollbackRequest { revision: Some(1), ..RollbackRequest::default() }).unwrap();
    assert!(again.actions.is_empty() && again.generation == 3, "{again:?}");

    // With prune, the state is exactly that of the revision, also after a restart.
    lab.stop(true);
    lab.start();
    until("it runs again", || lab.state("c") == Some(NetworkState::Running));
    let prune = RollbackRequest { revision: Some(1), prune: true, ..RollbackRequest::default() };
    let pruned = back(&lab, prune).unwrap();
    assert!(pruned.kept.is_empty() && pruned.actions.len() == 1 && pruned.actions[0].verb == Verb::Delete);
    assert_eq!((lab.state("c"), lab.interfaces("a")), (None, before.0));

    // A rollback can be rolled back, which restores the deleted networks.
    lab.runtime.block_on(lab.node().delete_network("b", by("alice"))).unwrap();
    let done = back(&lab, RollbackRequest { revision: Some(2), ..RollbackRequest::default() }).unwrap();
    assert_eq!(done.actions.iter().map(|action| action.verb).collect::<Vec<_>>(), [Verb::Create; 2]);
    let history = lab.runtime.block_on(lab.node().history()).unwrap();
    let what: Vec<_> = history.revisions.iter().map(|one| (one.number, one.kind, one.restored)).collect();
    let (apply, delete, rollback) = (RevisionKind::Apply, RevisionKind::Delete, RevisionKind::Rollback);
    let expected =
        [(6, rollback, Some(2)), (5, delete, None), (4, rollback, Some(1)), (3, rollback, Some(1))];
    assert_eq!((&what[..4], &what[4..]), (&expected[..], &[(2, apply, None), (1, apply, None)][..]));
    assert_eq!(history.revisions[0].by, by("bob").by);
    assert_eq!(history.revisions[4].by, by("alice").by);

    // A revision that never existed, an unexpected generation, and documents that are no longer valid.
    let refused = |request: RollbackRequest| back(&lab, request).unwrap_err();
    let unknown = refused(RollbackRequest { revision: Some(77), ..RollbackRequest::default() });
    assert!(unknown.kind == ProblemKind::NotFound && unknown.detail.contains("0 to 6 are"), "{unknown}");
    let late = RollbackRequest { revision: Some(1), if_generation: Some(5), ..RollbackRequest::default() };
    assert_eq!(refused(late).kind, ProblemKind::Conflict);
    lab.runtime.block_on(lab.node().delete_network("a", by("alice"))).unwrap();
    // d now has the addresses of a.
    lab.apply(&network("d", 1, ""));
    let refused = refused(RollbackRequest { revision: Some(1), ..RollbackRequest::default() });
    assert_eq!(refused.kind, ProblemKind::InvalidDocuments, "{refused}");
    assert!(refused.to_string().contains("network d"), "{refused}");
    let (status, states) =
        (lab.runtime.block_on(lab.node().status()).unwrap(), [lab.state("a"), lab.state("d")]);
    assert_eq!((status.generation, states), (8, [None, Some(NetworkState::Running)]));
    assert!(lab.events(EventKind::Refused).len() >= 3);

    // A rollback of one network only does not affect others.
    let only = |name: &str, revision| {
        let request = RollbackRequest { revision, prune: false, ..RollbackRequest::default() };
        lab.runtime.block_on(lab.node().rollback(request, Some(name.to_owned()), by("tenant")))
    };
    let done = only("b", Some(1)).unwrap();
    assert!(done.kept.is_empty() && done.actions.len() == 1 && done.actions[0].name == "b", "{done:?}");
    let done = only("b", None).unwrap();
    assert_eq!((done.revision, done.actions.len()), (8, 1));
    assert_eq!(only("d", Some(1)).unwrap_err().kind, ProblemKind::NotFound);
}

/// A node whose card is not there: whether it is drained is a matter of documents all the same.
const NODE_WITH_CARD: &str = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec:\n  \
    ports: [{name: p0}, {name: p1}]\n  card: {pci: \"ffff:ff:1f.7\", ports: [p0, p1]}\n";

impl Lab {
    fn drain(&self, drained: bool) -> Result<DrainResult, hueplaned::api::Problem> {
        let by = Author { role: "admin".into(), name: Some("alice".into()) };
        let turn = Turn { by, ..Turn::default() };
        let request = DrainRequest { drained, force: false, fail: None };
        self.runtime.block_on(self.node().drain(request, turn))
    }

    fn is_drained(&self) -> bool {
        self.runtime.block_on(self.node().status()).unwrap().card.unwrap().drained
    }

    fn rollback(
        &self,
        request: RollbackRequest,
    ) -> Result<hueplaned::api::RollbackResult, hueplaned::api::Problem> {
        self.runtime.block_on(self.node().rollback(request, None, Turn::default()))
    }
}

#[test]
fn a_drained_card_stays_drained_until_somebody_says_otherwise() {
    let Some(mut lab) = Lab::new() else { return };
    let drained = NODE_WITH_CARD.replace("{pci", "{drained: true, pci");
    let undrained = NODE_WITH_CARD.replace("{pci", "{drained: false, pci");
    let problem = lab.drain(true).unwrap_err();
    assert!(problem.kind == ProblemKind::Conflict && problem.detail.contains("has no card"), "{problem}");
    lab.apply(NODE);
    assert_eq!(lab.drain(false).unwrap_err().kind, ProblemKind::Conflict);
    lab.apply(NODE_WITH_CARD);
    let done = lab.drain(false).unwrap();
    assert_eq!((done.drained, done.changed, done.generation), (false, false, 2));
    let done = lab.drain(true).unwrap();
    assert_eq!((done.drained, done.changed, done.generation), (true, true, 3));
    let done = lab.drain(true).unwrap();
    assert_eq!((done.drained, done.changed, done.generation), (true, false, 3));
    assert_eq!(lab.events(EventKind::CardDrained).len(), 1);

    // Documents without the field change nothing about it, whatever else they change.
    assert!(lab.apply(NODE_WITH_CARD).actions.is_empty());
    let other = NODE_WITH_CARD.replace("1f.7", "1f.6");
    assert_eq!(lab.apply(&other).actions.len(), 1);
    lab.apply(&network("a", 1, ""));
    assert!(lab.is_drained());

    // A restart keeps it and says it, and so does the copy when the store is lost.
    for lost in [false, true] {
        lab.stop(true);
        if lost {
            std::fs::remove_file(lab.state.path().join(hueplaned::store::FILE)).unwrap();
        }
        lab.start();
        until("it runs", || lab.state("a") == Some(NetworkState::Running));
        assert!(lab.is_drained() && lab.events(EventKind::CardDrained).len() == 1);
    }
    // The history was in the store.
    let history = || lab.runtime.block_on(lab.node().history()).unwrap();
    assert_eq!(history().generation, 5);

    // A rollback neither ends nor begins it.
    lab.apply(&network("a", 1, "  weight: 3\n"));
    lab.drain(false).unwrap();
    lab.drain(true).unwrap();
    let kinds: Vec<_> = history().revisions.iter().map(|one| (one.number, one.kind)).collect();
    let (apply, drain, undrain) = (RevisionKind::Apply, RevisionKind::Drain, RevisionKind::Undrain);
    assert_eq!(kinds[..3], [(8, drain), (7, undrain), (6, apply)]);
    assert_eq!(history().revisions[0].by.name.as_deref(), Some("alice"));
    let same = lab.rollback(RollbackRequest::default()).unwrap_err();
    assert!(
        same.kind == ProblemKind::Conflict && same.detail.contains("`hueplane undrain card` does"),
        "{same}"
    );
    let done = lab.rollback(RollbackRequest { revision: Some(5), ..RollbackRequest::default() }).unwrap();
    assert_eq!((done.actions.len(), lab.is_drained()), (1, true));
    lab.drain(false).unwrap();
    let done = lab.rollback(RollbackRequest { revision: Some(8), ..RollbackRequest::default() }).unwrap();
    assert_eq!((done.actions.len(), lab.is_drained()), (1, false));

    // A document that says it. `false` twice is the same as once.
    assert_eq!(lab.apply(&drained).actions.len(), 1);
    assert!(lab.is_drained());
    assert_eq!((lab.apply(&undrained).actions.len(), lab.is_drained()), (1, false));
    assert!(lab.apply(&undrained).actions.is_empty() && lab.apply(NODE_WITH_CARD).actions.is_empty());

    // What waits for a confirmation excludes it, and is undone exactly.
    lab.drain(true).unwrap();
    let waits = ApplyRequest { confirm_within_s: Some(60), ..Lab::request(&undrained) };
    lab.runtime.block_on(lab.node().apply(waits.clone(), Turn::default())).unwrap();
    assert!(!lab.is_drained() && lab.drain(true).unwrap_err().detail.contains("hueplane confirm"));
    lab.rollback(RollbackRequest::default()).unwrap();
    assert!(lab.is_drained());
    lab.runtime.block_on(lab.node().apply(waits, Turn::default())).unwrap();
    lab.runtime.block_on(lab.node().confirm(ConfirmRequest::default(), Turn::default())).unwrap();
    assert!(!lab.is_drained());
}

#[test]
fn packets_pass_and_what_is_counted_adds_up() {
    let Some(lab) = Lab::new() else { return };
    lab.links(|links| links.delete("p0").and(links.delete("p1"))).unwrap();
    let hosts: Vec<Namespace> =
        ["h0", "h1"].iter().map(|host| Namespace::create(&format!("{}-{host}", lab.name)).unwrap()).collect();
    for (number, host) in (1u8..).zip(&hosts) {
        let port = format!("p{}", number - 1);
        lab.links(|links| {
            links.create_veth(&port, "e0", Some(host))?;
            links.set_up(&port, true)
        })
        .unwrap();
        host.run(|| {
            hue_host::ethtool::set_tx_checksum("e0", false).unwrap();
            run(&format!("ip link set e0 up; ip addr add 10.1.{number}.2/24 dev e0; ip route add default via 10.1.{number}.1"));
        })
        .unwrap();
        lab.machine.run(|| hue_host::ethtool::set_tx_checksum(&port, false).unwrap()).unwrap();
    }
    lab.apply(&(NODE.to_owned() + &network("a", 1, "") + &network("b", 2, "")));
    until("both are up", || ["p0", "p1"].iter().all(|name| lab.port(name).state == PortState::Up));
    let ping =
        |count: u32| hosts[0].run(|| run(&format!("ping -q -n -i 0.02 -W 2 -c {count} 10.1.2.2"))).unwrap();
    until("a ping is answered", || ping(1));
    assert!(ping(20));
    let stats = || lab.runtime.block_on(lab.node().stats(None)).unwrap().networks;
    // On a busy machine, some are lost.
    until("enough is counted", || {
        let missing = stats()[0].forwarded < 40;
        if missing {
            ping(1);
        }
        !missing
    });
    let networks = stats();
    for network in &networks {
        assert_eq!(network.received, network.forwarded + network.punted + network.dropped, "{network:?}");
        assert_eq!(network.dropped, network.drops.values().sum::<u64>());
        assert_eq!(network.forwarded, network.ports.iter().map(|port| port.forwarded).sum::<u64>());
    }
    assert_eq!(networks[1].forwarded, 0);
    lab.runtime.block_on(lab.node().delete_network("a", Turn::default())).unwrap();
    assert!(!netns::exists(&lab.owner().namespace("a")));
    assert!(!ping(1), "nobody forwards it any more");
    assert_eq!(lab.state("b"), Some(NetworkState::Running));
}

fn run(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).output().unwrap().status.success()
}
