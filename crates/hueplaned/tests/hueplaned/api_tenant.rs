//! A tenant sees its network and nothing else, in every operation; and each role has exactly its rights.

use std::sync::Arc;
use std::time::Duration;

use crate::world::{BLUE, World, document};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use hueplaned::api::*;
use hueplaned::backend::Backend;
use hueplaned::http::{
    Caller, OPERATIONS, Right, Role, ServeLimits, TENANT_DOCUMENTS_BYTES_MAX, TENANT_STREAMS_MAX, router,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt;

struct Api {
    world: Arc<World>,
    router: axum::Router,
    _open: watch::Sender<bool>,
}

impl Api {
    fn new() -> Self {
        let (open, closing) = watch::channel(false);
        let world = World::new();
        let backend = Arc::clone(&world) as Arc<dyn Backend>;
        Self { world, router: router(backend, ServeLimits::default(), closing), _open: open }
    }

    async fn call(&self, role: Role, method: &str, path: &str, body: Option<&Value>) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(Caller { role, called: None });
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn text(&self, role: Role, method: &str, path: &str, body: Option<&Value>) -> (StatusCode, String) {
        let response = self.call(role, method, path, body).await;
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn red() -> Role {
    Role::Tenant("red".into())
}

fn shows_blue(text: &str) -> bool {
    text.contains("blue") || text.contains(&BLUE.to_string())
}

#[tokio::test]
async fn no_answer_to_a_tenant_shows_another_network() {
    let api = Api::new();
    api.world.happen(EventKind::NetworkDegraded, Some("blue"));
    api.world.happen(EventKind::NetworkChanged, Some("red"));
    api.world.happen(EventKind::PortUp, None);
    let apply = json!({"sources": [{"name": "a", "text": document("red")}]});
    for operation in &OPERATIONS {
        let path = operation.path.replace("{name}", "red");
        let body = match operation.path {
            "/v1/apply" | "/v1/diff" => Some(apply.clone()),
            "/v1/trace" => Some(json!({"port": "p0", "frame": "03"})),
            "/v1/down" | "/v1/rollback" | "/v1/confirm" => Some(json!({})),
            // Its stream does not end by itself; see below.
            "/v1/capture" => continue,
            _ => None,
        };
        let (status, text) = api.text(red(), operation.method.as_str(), &path, body.as_ref()).await;
        assert!(!shows_blue(&text), "{} {path}: {text}", operation.method);
        let may = !matches!(operation.right, Right::Oversee | Right::Delete | Right::Rule);
        assert_eq!(status == StatusCode::FORBIDDEN, !may, "{} {path}: {status} {text}", operation.method);
        if may && operation.right != Right::Known {
            assert_eq!(status, StatusCode::OK, "{path}: {text}");
            let about_red = text.contains("red") || operation.path == "/v1/status";
            assert!(about_red, "{path} says something of red: {text}");
        }
        // The check is effective: an admin sees blue in every answer about networks.
        let silent = ["/healthz", "/openapi.json", "/v1/images"];
        if operation.method == Method::GET && !silent.contains(&operation.path) {
            let (_, text) =
                api.text(Role::Admin, "GET", &operation.path.replace("{name}", "blue"), None).await;
            assert!(shows_blue(&text), "{path} shows blue to an admin");
        }
    }
}

#[tokio::test]
async fn the_status_of_a_tenant_is_that_of_its_network() {
    let api = Api::new();
    let status = async |role| -> Status {
        serde_json::from_str(&api.text(role, "GET", "/v1/status", None).await.1).unwrap()
    };
    let red = status(red()).await;
    assert_eq!((red.health, red.troubles.len(), red.networks.total), (Health::Running, 0, 1));
    assert_eq!(red.networks.states, [("running".to_owned(), 1)].into());
    let parts = (red.applied, red.store, red.card, red.log, red.ports, red.pid);
    assert_eq!(parts, (None, None, None, None, None, None));
    let blue = status(Role::Tenant("blue".into())).await;
    assert_eq!(blue.health, Health::Degraded);
    let texts: Vec<String> = blue.troubles.iter().map(ToString::to_string).collect();
    assert_eq!((&texts, texts.len()), (&blue.problems, 1), "no trouble of the node");
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let all = status(role).await;
        assert!(all.troubles.len() == 4 && all.store.is_some() && all.card.is_some() && all.log.is_some());
    }
}

#[tokio::test]
async fn to_a_tenant_other_networks_do_not_exist() {
    let api = Api::new();
    for path in [
        "/v1/networks/NAME",
        "/v1/networks/NAME/exec",
        "/v1/routes?network=NAME",
        "/v1/neighbours?network=NAME",
        "/v1/macs?network=NAME",
        "/v1/entries?network=NAME",
        "/v1/stats?network=NAME",
        "/v1/capture?network=NAME",
    ] {
        let other = api.text(red(), "GET", &path.replace("NAME", "blue"), None).await;
        let none = api.text(red(), "GET", &path.replace("NAME", "none"), None).await;
        assert_eq!(other.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!((other.0, other.1.replace("blue", "none")), none, "{path}");
    }
    let trace = async |frame: &str, port: &str| {
        let body = json!({"port": port, "frame": frame});
        let (status, text) = api.text(red(), "POST", "/v1/trace", Some(&body)).await;
        (status, text.replace(port, "port"))
    };
    let nobodys = trace("00", "p0").await;
    assert_eq!(trace("02", "p0").await, nobodys, "a frame of blue looks like nobody's");
    let own = trace("01", "p0").await.1;
    assert!(own.contains("red") && own.contains("passages") && !own.contains("blue"), "{own}");
    assert_eq!(trace("02", "p2-blue").await, trace("02", "p9").await);
}

#[tokio::test]
async fn a_tenants_streams_hold_only_its_own() {
    let api = Api::new();
    let read = async |path: &str, until: &str| {
        let mut body = api.call(red(), "GET", path, None).await.into_body().into_data_stream();
        let mut text = String::new();
        for round in 0.. {
            while let Ok(Some(piece)) = tokio::time::timeout(Duration::from_millis(50), body.next()).await {
                text += &String::from_utf8_lossy(&piece.unwrap());
            }
            if text.contains(until) {
                return text;
            }
            assert!(round < 100, "never {until}: {text}");
            for network in ["blue", "red"] {
                api.world.happen(EventKind::NetworkChanged, Some(network));
                api.world.pass(
                    Some(network),
                    "drop",
                    "no_route",
                    format!("a frame of {network}").into_bytes(),
                );
            }
            api.world.happen(EventKind::PortUp, None);
            api.world.pass(None, "drop", "no_network", b"a frame of nobody: blue?".to_vec());
        }
        text
    };
    let events = read("/v1/events?follow=true", "network_changed of red").await;
    assert!(!shows_blue(&events), "{events}");
    let frames = read("/v1/capture", "a frame of red").await;
    assert!(!shows_blue(&frames), "{frames}");
    let frames = read("/v1/capture?network=red&port=left", "a frame of red").await;
    assert!(!shows_blue(&frames), "{frames}");
}

/// Red's document with a part replaced.
fn changed(pointer: &str, value: Value) -> String {
    let mut red: Value = serde_json::from_str(&document("red")).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let fields = red.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    fields.insert(key.to_owned(), value);
    red.to_string()
}

#[tokio::test]
async fn a_tenant_changes_only_what_affects_no_other() {
    let api = Api::new();
    let apply = async |text: String| {
        let body = json!({"sources": [{"name": "a", "text": text}]});
        let diff = api.text(red(), "POST", "/v1/diff", Some(&body)).await;
        let (status, text) = api.text(red(), "POST", "/v1/apply", Some(&body)).await;
        assert_eq!(diff.0, status, "diff and apply are of one mind: {text}");
        (status.as_u16(), text)
    };
    assert_eq!(apply(document("red")).await.0, 200);
    assert_eq!(apply(changed("/spec/routes", json!([{"to": "0.0.0.0/0", "via": "10.1.0.9"}]))).await.0, 200);
    let neighbour = json!([{"port": "left", "address": "10.1.0.9", "mac": "02:00:00:00:0a:09"}]);
    assert_eq!(apply(changed("/spec/neighbours", neighbour)).await.0, 200);
    assert_eq!(apply(changed("/spec/colour", json!("#00ff00"))).await.0, 200);
    assert!(api.world.applied.lock().unwrap().iter().all(|request| request.if_generation.is_some()));
    let count = api.world.applied.lock().unwrap().len();

    let port =
        json!([{"name": "left", "port": "p0", "mac": "02:00:00:00:01:09", "addresses": ["10.1.0.1/24"]}]);
    let rate = json!({"packets_per_second": 1_000_000, "burst_packets": 1_000_000});
    for (pointer, value) in [
        ("/spec/weight", json!(1_000)),
        ("/spec/rate_limit", rate),
        ("/spec/vid", json!(9)),
        ("/spec/select", json!({"by": "port"})),
        ("/spec/ports", port),
        ("/metadata/name", json!("blue")),
        ("/metadata/name", json!("green")),
    ] {
        let (status, text) = apply(changed(pointer, value.clone())).await;
        assert_eq!(status, 403, "{pointer} {value}: {text}");
        assert!(!pointer.starts_with("/spec") || text.contains(&pointer[1..].replace('/', ".")), "{text}");
    }
    let both = format!("{}\n---\n{}", document("red"), document("blue"));
    assert_eq!(apply(both).await.0, 403);
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec: {ports: [{name: p0}]}";
    assert_eq!(apply(format!("{}\n---\n{node}", document("red"))).await.0, 403);
    assert_eq!(apply("kind: Network".to_owned()).await.0, 422);
    let prune = json!({"sources": [{"name": "a", "text": document("red")}], "prune": true});
    assert_eq!(api.text(red(), "POST", "/v1/apply", Some(&prune)).await.0, StatusCode::FORBIDDEN);
    assert_eq!(api.world.applied.lock().unwrap().len(), count, "nothing of that came through");
}

#[tokio::test]
async fn the_tenant_of_a_switch_changes_its_static_addresses_and_no_limit() {
    let api = Api::new();
    let port = |at: u8| json!({"name": format!("v{at}"), "port": format!("p{at}"), "mac": format!("02:00:00:00:07:0{at}")});
    let switch = json!({"apiVersion": "hueplane/v1", "kind": "Network", "metadata": {"name": "red"},
        "spec": {"plane": {"kind": "l2", "macs_max": 100}, "ports": [port(0), port(1)]}});
    let changed = |pointer: &str, value: Value| {
        let mut switch = switch.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let _ = switch.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key.to_owned(), value);
        switch.to_string()
    };
    {
        // In force is what the daemon makes of the document.
        let source = hue_intent::Source { name: "a".into(), bytes: switch.to_string().into_bytes() };
        let network = serde_json::to_value(&hue_intent::parse(vec![source]).unwrap().networks[0]).unwrap();
        let documents = &mut api.world.documents.lock().unwrap().1;
        documents.retain(|document| document["metadata"]["name"] != "red");
        documents.push(network);
    }
    let apply = async |text: String| {
        let body = json!({"sources": [{"name": "a", "text": text}]});
        let (status, text) = api.text(red(), "POST", "/v1/apply", Some(&body)).await;
        (status.as_u16(), text)
    };
    let fixed = |port: &str| json!([{"mac": "02:00:00:00:00:0a", "port": port}]);
    for (pointer, value) in [("/spec/static_macs", fixed("v1")), ("/spec/static_macs", json!([]))] {
        let (status, text) = apply(changed(pointer, value)).await;
        assert_eq!(status, 200, "{pointer}: {text}");
    }
    let count = api.world.applied.lock().unwrap().len();
    assert_eq!(count, 2);
    let storm =
        json!({"kind": "l2", "macs_max": 100, "storm_limit": {"packets_per_second": 9, "burst_packets": 9}});
    for (pointer, value) in [
        ("/spec/plane", json!({"kind": "l2", "macs_max": 60_000})),
        ("/spec/plane", json!({"kind": "l2", "macs_max": 100, "sticky": true})),
        ("/spec/plane", storm),
        ("/spec/ports", json!([port(0), port(1), {"name": "v2", "port": "p2", "mac": "02:00:00:00:07:02"}])),
        ("/spec/ports", json!([port(0)])),
    ] {
        let (status, text) = apply(changed(pointer, value.clone())).await;
        assert_eq!(status, 403, "{pointer} {value}: {text}");
        assert!(text.contains(&pointer[1..].replace('/', ".")), "{text}");
    }
    // Another kind, with the same ports.
    let router = json!({"apiVersion": "hueplane/v1", "kind": "Network", "metadata": {"name": "red"},
        "spec": {"plane": {"kind": "ipv4"}, "select": {"by": "port"}, "ports": [
            {"name": "v0", "port": "p0", "mac": "02:00:00:00:07:00", "addresses": ["10.1.0.1/24"]},
            {"name": "v1", "port": "p1", "mac": "02:00:00:00:07:01", "addresses": ["10.2.0.1/24"]}]}});
    let (status, text) = apply(router.to_string()).await;
    assert_eq!(status, 403, "{text}");
    // A static address at a port that the network does not have is an error of the document.
    assert_eq!(apply(changed("/spec/static_macs", fixed("v9"))).await.0, 422);
    assert_eq!(api.world.applied.lock().unwrap().len(), count, "nothing of that came through");
}

#[tokio::test]
async fn a_rollback_needs_the_rights_of_its_changes() {
    let api = Api::new();
    let back = async |role: Role, body: Value| api.text(role, "POST", "/v1/rollback", Some(&body)).await;
    let none = |why: &str| assert!(api.world.rolled_back.lock().unwrap().is_empty(), "{why}");
    // A tenant may change only its network, and only its own parts of it; the same applies to dry runs.
    for (body, why) in [
        (json!({"revision": 3}), "spec.weight"),
        (json!({"revision": 3, "dry_run": true}), "spec.weight"),
        (json!({"prune": true}), "prune"),
    ] {
        let (status, text) = back(red(), body).await;
        assert!(
            status == StatusCode::FORBIDDEN && text.contains(why) && !shows_blue(&text),
            "{status} {text}"
        );
        none(why);
    }
    let (status, text) = back(red(), json!({})).await;
    assert!(status == StatusCode::OK && !shows_blue(&text), "{status} {text}");
    let bound = RollbackRequest { revision: Some(5), if_generation: Some(7), ..RollbackRequest::default() };
    assert_eq!(
        api.world.rolled_back.lock().unwrap().drain(..).next_back(),
        Some((bound, Some("red".to_owned())))
    );
    // An operator may not change the node; a viewer may change nothing.
    assert_eq!(back(Role::Operator, json!({"revision": 2})).await.0, StatusCode::FORBIDDEN);
    assert_eq!(back(Role::Viewer, json!({})).await.0, StatusCode::FORBIDDEN);
    none("the node");
    assert_eq!(back(Role::Operator, json!({"prune": true})).await.0, StatusCode::OK);
    assert_eq!(back(Role::Admin, json!({"revision": 2})).await.0, StatusCode::OK);
    assert_eq!(api.world.rolled_back.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_change_that_waits_for_its_confirmation_binds_tenants_too() {
    let api = Api::new();
    let sources = json!([{"name": "a", "text": document("red")}]);
    let apply = async |role: Role, within: Value| {
        let body = json!({"sources": sources.clone(), "confirm_within_s": within});
        api.text(role, "POST", "/v1/apply", Some(&body)).await
    };
    let count = || api.world.applied.lock().unwrap().len();
    // It stops everybody's changes, so a tenant may not make one.
    let (status, text) = apply(red(), json!(60)).await;
    assert!(status == StatusCode::FORBIDDEN && text.contains("confirmation"), "{status} {text}");
    for seconds in [json!(0), json!(86_401)] {
        let (status, text) = apply(Role::Operator, seconds).await;
        assert!(status == StatusCode::BAD_REQUEST && text.contains("expected 1 to 86400"), "{status} {text}");
    }
    assert_eq!(count(), 0, "nothing of that came through");
    let (status, text) = apply(Role::Operator, json!(60)).await;
    let applied: ApplyResult = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, applied.pending.map(|one| (one.revision, one.restores))),
        (StatusCode::OK, Some((8, 7)))
    );

    // A tenant sees that something of its network waits, and neither who nor what else.
    for path in ["/v1/status", "/v1/history"] {
        let (_, text) = api.text(red(), "GET", path, None).await;
        let value: Value = serde_json::from_str(&text).unwrap();
        let pending: Pending = serde_json::from_value(value["pending"].clone()).unwrap();
        let names: Vec<_> = pending.changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!((names, pending.by.name), (vec!["red"], None), "{path}");
    }
    // Its changes have to wait, and it cannot confirm.
    let plain = json!({"sources": sources.clone()});
    let (status, text) = api.text(red(), "POST", "/v1/apply", Some(&plain)).await;
    assert!(
        status == StatusCode::CONFLICT && text.contains("another 60 s") && !shows_blue(&text),
        "{status} {text}"
    );
    let (status, text) = api.text(red(), "POST", "/v1/rollback", Some(&json!({}))).await;
    assert!(status == StatusCode::CONFLICT && !shows_blue(&text), "{status} {text}");
    let confirm = async |role: Role, body: Value| api.text(role, "POST", "/v1/confirm", Some(&body)).await;
    assert_eq!(confirm(red(), json!({})).await.0, StatusCode::FORBIDDEN);
    assert_eq!(confirm(Role::Viewer, json!({})).await.0, StatusCode::FORBIDDEN);
    assert_eq!(confirm(Role::Operator, json!({"revision": 3})).await.0, StatusCode::CONFLICT);

    // An operator confirms what it may change, and no change of the node.
    let node = DocumentChange { verb: Verb::Change, object: ObjectKind::Node, name: "box".to_owned() };
    api.world.pending.lock().unwrap().as_mut().unwrap().changes.insert(0, node);
    let (status, text) = confirm(Role::Operator, json!({})).await;
    assert!(status == StatusCode::FORBIDDEN && text.contains("change node box"), "{status} {text}");
    let _ = api.world.pending.lock().unwrap().as_mut().unwrap().changes.remove(0);
    let (status, text) = confirm(Role::Operator, json!({})).await;
    assert_eq!(
        (status, serde_json::from_str(&text).unwrap()),
        (StatusCode::OK, ConfirmResult { revision: 8 })
    );
    assert_eq!(confirm(Role::Admin, json!({})).await.0, StatusCode::CONFLICT, "none waits any more");
}

#[tokio::test]
async fn a_tenant_sees_its_part_of_the_history() {
    let api = Api::new();
    let (_, text) = api.text(red(), "GET", "/v1/history", None).await;
    let history: History = serde_json::from_str(&text).unwrap();
    let numbers: Vec<u64> = history.revisions.iter().map(|revision| revision.number).collect();
    assert_eq!(numbers, [7, 5]);
    assert!(
        history
            .revisions
            .iter()
            .all(|revision| revision.changes.len() == 1 && revision.changes[0].name == "red")
    );
    // It does not see who else changed the network; it sees its own name.
    assert_eq!(history.revisions[0].by, Author { role: "operator".into(), name: None });
    assert_eq!(history.revisions[1].by, Author { role: "tenant".into(), name: Some("red".into()) });
    assert_eq!(history.problem, None);
    let (_, text) = api.text(Role::Viewer, "GET", "/v1/history", None).await;
    assert_eq!(serde_json::from_str::<History>(&text).unwrap(), api.world.history().await.unwrap());
}

#[tokio::test]
async fn a_tenants_change_undoes_no_other() {
    let api = Api::new();
    let body = json!({"sources": [{"name": "a", "text": document("red")}]});
    let judged = api.world.documents.lock().unwrap().0;
    let stale = json!({"sources": [{"name": "a", "text": document("red")}], "if_generation": judged - 1});
    assert_eq!(api.text(red(), "POST", "/v1/apply", Some(&stale)).await.0, StatusCode::CONFLICT);
    assert_eq!(api.text(red(), "POST", "/v1/apply", Some(&body)).await.0, StatusCode::OK);
    assert_eq!(api.world.applied.lock().unwrap()[0].if_generation, Some(judged));
}

#[tokio::test]
async fn each_role_may_what_it_should() {
    let api = Api::new();
    let sources = json!({"sources": [{"name": "a", "text": document("red")}]});
    let node = format!(
        "{}\n---\n{{\"apiVersion\": \"hueplane/v1\", \"kind\": \"Node\", \"metadata\": {{\"name\": \"box\"}}, \"spec\": {{\"ports\": [{{\"name\": \"p0\"}}]}}}}",
        document("red")
    );
    let with_node = json!({"sources": [{"name": "a", "text": node}]});
    let down = json!({});
    for (method, path, body, allowed) in [
        ("GET", "/v1/networks", None, "viewer operator admin"),
        ("GET", "/v1/plan?scheduler=exact&from_traffic=true", None, "viewer operator admin"),
        ("GET", "/v1/networks/red/exec", None, "operator admin"),
        ("GET", "/v1/capture?count=0", None, "operator admin"),
        ("POST", "/v1/apply", Some(&sources), "operator admin"),
        ("POST", "/v1/apply", Some(&with_node), "admin"),
        ("POST", "/v1/diff", Some(&with_node), "operator admin"),
        ("DELETE", "/v1/networks/red", None, "operator admin"),
        ("POST", "/v1/down", Some(&down), "admin"),
    ] {
        for role in [Role::Viewer, Role::Operator, Role::Admin] {
            let (name, expected) = (role.name(), allowed.split(' ').any(|one| one == role.name()));
            let (status, text) = api.text(role, method, path, body).await;
            let expected = if expected { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(status, expected, "{name}: {method} {path}: {text}");
        }
    }
    // The caller is unknown.
    let request = Request::builder().uri("/v1/status").body(Body::empty()).unwrap();
    assert_eq!(api.router.clone().oneshot(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_tenant_takes_no_stream_from_others() {
    let api = Api::new();
    let mut open = Vec::new();
    for path in ["/v1/events?follow=true", "/v1/capture"].into_iter().cycle().take(TENANT_STREAMS_MAX) {
        open.push(api.call(red(), "GET", path, None).await);
    }
    assert!(open.iter().all(|response| response.status() == StatusCode::OK));
    let status = async |role: Role| api.call(role, "GET", "/v1/events?follow=true", None).await.status();
    assert_eq!(status(red()).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(Role::Tenant("blue".into())).await, StatusCode::OK);
    assert_eq!(status(Role::Admin).await, StatusCode::OK);
    open.pop();
    assert_eq!(status(red()).await, StatusCode::OK, "its place is free again");
}

/// Documents take many times their bytes in memory, so those of tenants have a separate limit.
#[tokio::test]
async fn a_tenants_documents_are_few() {
    let api = Api::new();
    let body = |bytes: usize| {
        let shell = json!({"sources": [{"name": "a", "text": ""}]}).to_string().len();
        json!({"sources": [{"name": "a", "text": "#".repeat(bytes - shell)}]})
    };
    for path in ["/v1/apply", "/v1/diff"] {
        let fits = api.text(red(), "POST", path, Some(&body(TENANT_DOCUMENTS_BYTES_MAX))).await;
        assert_eq!(fits.0.as_u16(), 422, "all of it is a comment: {}", fits.1);
        let (status, text) = api.text(red(), "POST", path, Some(&body(TENANT_DOCUMENTS_BYTES_MAX + 1))).await;
        assert!(status.as_u16() == 413 && text.contains(&TENANT_DOCUMENTS_BYTES_MAX.to_string()), "{text}");
    }
}

/// Only administrators can make a move fail, for tests: an operator can move networks, but cannot break the card.
#[tokio::test]
async fn only_administrators_make_moves_fail() {
    let api = Api::new();
    for (role, allowed) in [(Role::Operator, 403), (Role::Admin, 200)] {
        for more in [json!({"fail": "card"}), json!({"fail": "packets"}), json!({"drain_ms": 1})] {
            let mut body = json!({"to": "card"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let path = "/v1/networks/red/migrate";
            let (status, text) = api.text(role.clone(), "POST", path, Some(&body)).await;
            assert_eq!(status.as_u16(), allowed, "{role:?} {body}: {text}");
        }
        let body = json!({"to": "card"});
        let (status, _) = api.text(role, "POST", "/v1/networks/red/migrate", Some(&body)).await;
        assert_eq!(status.as_u16(), 200);
    }
}

#[tokio::test]
async fn a_tenant_changes_entries_and_not_the_key_that_they_compare() {
    let api = Api::new();
    let port = json!({"name": "v0", "port": "p0", "mac": "02:00:00:00:07:00"});
    let bits = json!({"apiVersion": "hueplane/v1", "kind": "Network", "metadata": {"name": "red"},
        "spec": {"plane": {"kind": "extract", "key": [{"offset": 12, "bytes": 2}]}, "ports": [port],
            "entries": [{"match": "any", "action": "drop"}]}});
    let changed = |pointer: &str, value: Value| {
        let mut bits = bits.clone();
        *bits.pointer_mut(pointer).unwrap() = value;
        bits.to_string()
    };
    {
        let source = hue_intent::Source { name: "a".into(), bytes: bits.to_string().into_bytes() };
        let network = serde_json::to_value(&hue_intent::parse(vec![source]).unwrap().networks[0]).unwrap();
        let documents = &mut api.world.documents.lock().unwrap().1;
        documents.retain(|document| document["metadata"]["name"] != "red");
        documents.push(network);
    }
    let apply = async |text: String| {
        let body = json!({"sources": [{"name": "a", "text": text}]});
        api.text(red(), "POST", "/v1/apply", Some(&body)).await.0.as_u16()
    };
    let entries = json!([{"match": "0x0800", "port": "v0"}, {"match": "any", "action": "punt"}]);
    assert_eq!(apply(changed("/spec/entries", entries)).await, 200);
    assert_eq!(apply(changed("/spec/plane/key", json!([{"offset": 0, "bytes": 2}]))).await, 403);
    assert_eq!(apply(changed("/spec/entries", json!([{"match": "0x08", "port": "v0"}]))).await, 422);
}
