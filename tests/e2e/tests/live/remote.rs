//! Remote access to the daemon: the command line over mutual TLS, with certificates that the test makes.
//!
//! The certificate contains the role. Requests that a role does not allow change nothing, and a tenant sees only its own network.

use std::path::{Path, PathBuf};

use hue_e2e::document::all;
use hue_e2e::shell::{self, Output};
use hue_e2e::{Daemon, Lab, Pair, can_run};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::Value;

const ADDRESS: &str = "127.0.0.1:7443";
/// Exit codes of `hueplane`.
const FAILURE: i32 = 1;
const USAGE: i32 = 2;
const NO_DAEMON: i32 = 5;

/// A certificate authority, and the folder of its certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Makes a key and a certificate for a user.
    fn sign(&self, name: &str, unit: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |what: &str| self.folder.join(format!("{name}-{unit}.{what}")).display().to_string();
        let signed = Signed { cert: path("pem"), key: path("key"), ca: self.ca() };
        std::fs::write(&signed.cert, certificate.pem()).unwrap();
        std::fs::write(&signed.key, key.serialize_pem()).unwrap();
        signed
    }

    fn ca(&self) -> String {
        self.folder.join("ca.pem").display().to_string()
    }
}

/// A user's certificate and key, and the authority that the user trusts.
struct Signed {
    cert: String,
    key: String,
    ca: String,
}

/// A daemon that listens, with two networks.
struct World {
    lab: Lab,
    authority: Authority,
    red: Pair,
    blue: Pair,
    daemon: Daemon,
}

fn world() -> World {
    let lab = Lab::new(2);
    let authority = Authority::new(lab.folder(), "ours");
    let server = authority.sign("server", "daemon");
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let documents = all(&[lab.node_document(""), red.document.yaml(), blue.document.yaml()]);
    let file = lab.folder().join("hueplane.yaml");
    std::fs::write(&file, documents).unwrap();
    let file = file.display().to_string();
    let tls = ["--tls-cert", &server.cert, "--tls-key", &server.key, "--tls-ca", &server.ca];
    let arguments = [&["-f", &file, "--listen", ADDRESS][..], &tls].concat();
    let daemon = Daemon::start_with(&lab, &hue_e2e::Cli::new(&lab), &arguments);
    World { lab, authority, red, blue, daemon }
}

impl World {
    /// Runs a command in the node's namespace, where the daemon listens, without the socket's path.
    #[track_caller]
    fn run(&self, who: &Signed, arguments: &[&str], input: &str) -> Output {
        let server = format!("https://{ADDRESS}");
        let mut command = std::process::Command::new(hue_e2e::daemon::binary());
        command.args(["--server", &server, "--cert", &who.cert, "--key", &who.key, "--ca", &who.ca]);
        command.args(arguments).env("HUEPLANE_RUN_DIR", "/nonexistent");
        self.lab.node().inside(|| shell::run_with(&mut command, input.as_bytes()))
    }

    #[track_caller]
    fn json(&self, who: &Signed, arguments: &[&str]) -> Value {
        self.run(who, &[arguments, &["-o", "json"]].concat(), "").expect_ok().json()
    }

    #[track_caller]
    fn names(&self, who: &Signed, arguments: &[&str]) -> Vec<String> {
        let json = self.json(who, arguments);
        let list = json.as_array().or_else(|| json["networks"].as_array()).cloned().unwrap_or_default();
        let name = |one: &Value| {
            one["name"].as_str().or_else(|| one["network"].as_str()).unwrap_or_default().to_owned()
        };
        list.iter().map(name).collect()
    }

    fn apply(&self, who: &Signed, documents: &str) -> Output {
        self.run(who, &["apply", "-f", "-"], documents)
    }

    /// The generation of the configuration in force: every change raises it.
    #[track_caller]
    fn generation(&self) -> Value {
        self.daemon.cli.json(&["get", "nodes"])[0]["status"]["generation"].clone()
    }

    /// Checks that a change is refused, and changes nothing.
    #[track_caller]
    fn refused(&self, who: &Signed, documents: &str) {
        let before = self.generation();
        let output = self.apply(who, documents).expect_code(NO_DAEMON);
        assert!(output.stderr.contains("does not allow"), "why it is refused: {output}");
        assert_eq!(self.generation(), before, "{output}");
    }
}

#[test]
fn each_role_does_only_what_it_may() {
    if !can_run(&[]) {
        return;
    }
    let mut world = world();
    let of = |unit: &str| world.authority.sign("somebody", unit);
    let [viewer, operator, admin] = [of("viewer"), of("operator"), of("admin")];
    let mut both = [world.red.name(), world.blue.name()].map(str::to_owned).to_vec();
    both.sort();
    for (who, role) in [(&viewer, "viewer"), (&operator, "operator"), (&admin, "admin")] {
        assert_eq!(world.names(who, &["get", "networks"]), both, "{role}");
        assert_eq!(world.names(who, &["stats"]), both, "{role}");
        let events = world.json(who, &["events"]);
        assert!(
            events.as_array().is_some_and(|events| events.iter().any(|one| one["kind"] == "applied")),
            "{role}: {events}"
        );
    }
    let (red, node) = (&world.red.document, world.lab.node_document("mtu: 1400"));
    let weights = [3, 4, 5].map(|weight| red.clone().with("weight", &weight.to_string()).yaml());
    world.refused(&viewer, &weights[0]);
    let _ = world.apply(&operator, &weights[1]).expect_ok();
    world.refused(&operator, &node);
    let _ = world.apply(&admin, &weights[2]).expect_ok();
    let _ = world.apply(&admin, &node).expect_ok();
    let shown = world.json(&viewer, &["get", "networks", world.red.name()]);
    let text = shown.to_string();
    assert!(text.contains("\"weight\":5"), "the last one is in force: {text}");
    for who in [&viewer, &operator] {
        let _ = world.run(who, &["down"], "").expect_code(NO_DAEMON);
        assert!(world.daemon.ended().is_none());
    }
    let _ = world.run(&admin, &["down"], "").expect_ok();
    hue_e2e::until("the daemon ends", 20, || world.daemon.ended().is_some());
}

#[test]
fn a_tenant_has_one_network_and_sees_no_other() {
    if !can_run(&[]) {
        return;
    }
    let world = world();
    let (red, blue) = (world.red.name().to_owned(), world.blue.name().to_owned());
    let tenant = world.authority.sign(&red, "tenant");
    assert_eq!(world.names(&tenant, &["get", "networks"]), [red.as_str()]);
    assert_eq!(world.names(&tenant, &["stats"]), [red.as_str()]);
    for what in ["networks", "routes", "neighbours", "ports", "nodes", "tables"] {
        let output = world.run(&tenant, &["get", what, "-o", "json"], "").expect_ok();
        assert!(!output.stdout.contains(&blue), "{what}: {output}");
    }
    let events = world.run(&tenant, &["events", "-o", "json"], "").expect_ok();
    assert!(events.stdout.contains(&red) && !events.stdout.contains(&blue), "{events}");
    // To a tenant, another tenant's network looks like one that does not exist.
    for arguments in [
        &["get", "networks", "NAME"][..],
        &["get", "config", "NAME"],
        &["get", "routes", "-n", "NAME"],
        &["get", "neighbours", "-n", "NAME"],
        &["stats", "NAME"],
        &["delete", "network", "NAME"],
    ] {
        let ask = |name: &str| {
            let named: Vec<&str> =
                arguments.iter().map(|word| if *word == "NAME" { name } else { word }).collect();
            let output = world.run(&tenant, &named, "");
            assert!(!output.ok(), "{output}");
            (output.code, output.stderr.replace(name, "NAME"))
        };
        assert_eq!(ask(&blue), ask("nothere"), "{arguments:?}");
    }
    // Its status and its document, which changes nothing when it applies it.
    let status = world.run(&tenant, &["status"], "").expect_ok().stdout;
    assert!(status.contains("networks  1: 1 running\n"), "{status}");
    for hidden in [blue.as_str(), "store", "card", "ports", "log ", "applied", "process"] {
        assert!(!status.contains(hidden), "{hidden}: {status}");
    }
    let config = world.run(&tenant, &["get", "config"], "").expect_ok().stdout;
    assert!(
        config.matches("kind: ").count() == 2 && !config.contains(&blue),
        "its document and its plane: {config}"
    );
    let same = world.run(&tenant, &["diff", "-f", "-"], &config).expect_ok().stdout;
    assert_eq!(same, "no differences\n");
    let applied = world.run(&tenant, &["apply", "-f", "-"], &config).expect_ok().stdout;
    assert!(applied.starts_with("nothing to change"), "{applied}");
    let refused = world.run(&tenant, &["logs"], "").expect_code(2).stderr;
    assert!(refused.contains("log in there"), "{refused}");
    // It may change what affects no other network: its own routes.
    let routed = world.red.document.clone().with("routes", "[{to: 10.77.0.0/16, via: 10.1.2.2}]");
    let _ = world.apply(&tenant, &routed.yaml()).expect_ok();
    hue_e2e::until("the route is there", 10, || {
        world.run(&tenant, &["get", "routes"], "").stdout.contains("10.77.0.0/16")
    });
    world.refused(&tenant, &routed.with("weight", "9").yaml());
    world.refused(&tenant, &world.blue.document.clone().with("weight", "9").yaml());
    world.refused(&tenant, &world.lab.node_document("mtu: 1400"));
    let _ = world.run(&tenant, &["down"], "").expect_code(NO_DAEMON);
    assert_eq!(world.red.left.ping(world.red.right.address, 5), 5, "all runs on");
}

#[test]
fn unauthenticated_clients_get_no_answer() {
    if !can_run(&["curl"]) {
        return;
    }
    let world = world();
    let (admin, other) = (world.authority.sign("a", "admin"), Authority::new(world.lab.folder(), "other"));
    let _ = world.run(&admin, &["get", "networks"], "").expect_ok();
    // Certificates of another authority; of the right one, but the user trusts another; of the right one without a role.
    let stranger = Signed { ca: admin.ca.clone(), ..other.sign("a", "admin") };
    let astray = Signed { ca: other.ca(), ..world.authority.sign("b", "admin") };
    for who in [&stranger, &astray, &world.authority.sign("a", "nobody")] {
        let output = world.run(who, &["get", "networks"], "").expect_code(NO_DAEMON);
        assert!(output.stdout.is_empty() && !output.stderr.contains(world.red.name()), "{output}");
    }
    // Without a certificate: `hueplane` asks for one, and another program gets no answer.
    let server = format!("https://{ADDRESS}");
    let mut bare = std::process::Command::new(hue_e2e::daemon::binary());
    bare.args(["--server", &server, "--ca", &admin.ca, "get", "networks"]);
    let _ = world.lab.node().inside(|| shell::run(&mut bare)).expect_code(USAGE);
    let curl = |more: &[&str]| {
        let url = format!("{server}/v1/networks");
        let all =
            [&["--silent", "--show-error", "--max-time", "10", "--cacert", &admin.ca][..], more, &[&url]]
                .concat();
        world.lab.node().run("curl", &all)
    };
    let known = curl(&["--cert", &admin.cert, "--key", &admin.key]).expect_ok();
    assert!(known.stdout.contains(world.red.name()), "{known}");
    let unknown = curl(&[]);
    assert!(!unknown.ok() && unknown.stdout.is_empty(), "{unknown}");
    // Missing files are the caller's error.
    let missing = Signed { key: "/nonexistent/key.pem".to_owned(), ..world.authority.sign("c", "admin") };
    let output = world.run(&missing, &["get", "networks"], "");
    assert!(!output.ok() && output.stderr.contains("/nonexistent/key.pem"), "{output}");
    assert_ne!(output.code, FAILURE, "{output}");
}

#[test]
fn certificates_that_the_product_makes_give_their_roles() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let dir = lab.folder().join("certs");
    let certs = |arguments: &[&str]| {
        let dir = dir.to_str().unwrap();
        let (what, rest) = arguments.split_first().unwrap();
        let mut command = std::process::Command::new(hue_e2e::daemon::binary());
        shell::run(command.args(["certs", what, dir]).args(rest)).expect_ok()
    };
    certs(&["init", "--for", "localhost", "--for", "127.0.0.1"]);
    let of = |name: &str| {
        let path = |file: String| dir.join(file).display().to_string();
        Signed {
            cert: path(format!("{name}.pem")),
            key: path(format!("{name}.key")),
            ca: path("ca.pem".to_owned()),
        }
    };
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let (tenant, server) = (red.name().to_owned(), of("daemon"));
    certs(&["add", &tenant, "--role", "tenant"]);
    certs(&["add", "watcher", "--role", "viewer"]);
    certs(&["add", "second", "--role", "daemon", "--for", "127.0.0.1"]);
    let tls = ["--tls-cert", &server.cert, "--tls-key", &server.key, "--tls-ca", &server.ca];
    let arguments = [&["--empty", "--listen", ADDRESS][..], &tls].concat();
    let daemon = Daemon::start_with(&lab, &hue_e2e::Cli::new(&lab), &arguments);
    let authority = Authority::new(lab.folder(), "another");
    let world = World { lab, authority, red, blue, daemon };
    let documents =
        all(&[world.lab.node_document(""), world.red.document.yaml(), world.blue.document.yaml()]);
    let _ = world.apply(&of("admin"), &documents).expect_ok();
    assert_eq!(world.names(&of("admin"), &["get", "networks"]).len(), 2);
    assert_eq!(world.names(&of(&tenant), &["get", "networks"]), std::slice::from_ref(&tenant));
    assert_eq!(world.names(&of("watcher"), &["get", "networks"]).len(), 2);
    world.refused(&of("watcher"), &world.lab.node_document(""));
    // The daemon's certificate is no client's.
    let denied = world.run(&server, &["get", "networks"], "");
    assert!(denied.code != 0, "{denied:?}");
}
