//! `attach` and `detach`: hosts of the user's own.

use std::net::Ipv4Addr;

use hue_e2e::document::all;
use hue_e2e::shell::{self, Output};
use hue_e2e::{Cli, Daemon, Lab, can_run, until};

/// A node whose two ports have no interfaces, and the name of a network on them: 10.1.1.1/24 and 10.1.2.1/24.
fn start() -> (Lab, Daemon, String) {
    let lab = Lab::new(2);
    lab.unplug(0);
    lab.unplug(1);
    let documents = all(&[lab.node_document(""), lab.pair_document("red", 1, 1, [0, 1]).yaml()]);
    let daemon = Daemon::start(&lab, &documents);
    let red = lab.name("red");
    (lab, daemon, red)
}

/// A namespace's name that the next sweep removes if the test fails.
fn host(lab: &Lab, name: &str) -> String {
    lab.node().name().replace("-node", &format!("-{name}"))
}

fn run(lab: &Lab, cli: &Cli, arguments: &[&str]) -> Output {
    lab.node().run_command(&mut cli.command(arguments))
}

fn pings(from: &str, to: Ipv4Addr) -> bool {
    let to = to.to_string();
    let mut command = shell::command("ip");
    shell::run(command.args(["netns", "exec", from, "ping", "-c", "1", "-W", "1", &to])).ok()
}

fn exists(name: &str) -> bool {
    shell::run(shell::command("ip").args(["netns", "list"]))
        .stdout
        .lines()
        .any(|line| line.split_whitespace().next() == Some(name))
}

fn has_link(lab: &Lab, name: &str) -> bool {
    lab.node().run("ip", &["link", "show", name]).ok()
}

#[test]
fn two_attached_hosts_ping_each_other_and_detach_leaves_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let right = format!("{red}/right");
    let (alice, bob) = (host(&lab, "alice"), host(&lab, "bob"));
    let first = run(&lab, cli, &["attach", red, "--host", &alice, "-o", "json"]).expect_ok().json();
    assert_eq!((&first["port"], &first["address"]), (&"left".into(), &"10.1.1.2/24".into()), "{first}");
    assert_eq!((&first["created_namespace"], &first["default_route"]), (&true.into(), &true.into()));
    let text = run(&lab, cli, &["attach", &right, "--host", &bob]).expect_ok().stdout;
    assert!(text.contains(&format!("ip netns exec {bob} ping 10.1.2.1")), "{text}");
    until("alice reaches bob", 20, || pings(&alice, Ipv4Addr::new(10, 1, 2, 2)));
    assert!(pings(&bob, Ipv4Addr::new(10, 1, 1, 2)));
    let list = run(&lab, cli, &["attach", "--list", "-o", "json"]).expect_ok().json();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");

    // A host with another interface keeps its namespace.
    let _ = shell::run(shell::command("ip").args(["-n", &bob, "link", "add", "own", "type", "bridge"]))
        .expect_ok();
    let _ = run(&lab, cli, &["detach", "--host", &alice]).expect_ok();
    assert!(!exists(&alice) && !has_link(&lab, "p0") && has_link(&lab, "p1"));
    let text = run(&lab, cli, &["detach", &right]).expect_ok().stdout;
    assert!(text.contains("its namespace stays: it has interface own"), "{text}");
    assert!(exists(&bob) && !has_link(&lab, "p1"));
    let refused = run(&lab, cli, &["detach", red]).expect_code(2);
    assert!(refused.stderr.contains("no such host"), "{}", refused.stderr);
    let _ = shell::run(shell::command("ip").args(["netns", "delete", &bob])).expect_ok();
}

#[test]
fn an_existing_namespace_and_that_of_a_process_stay_after_detach() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let (left, right) = (format!("{red}/left"), format!("{red}/right"));
    let (named, other) = (hue_e2e::Space::new("a", "named"), hue_e2e::Space::new("a", "other"));
    let mut process = other.spawn(shell::command("sleep").arg("600"));
    let pid = process.id().to_string();
    let _ = run(&lab, cli, &["attach", &left, "--netns", named.name()]).expect_ok();
    let _ = run(&lab, cli, &["attach", &right, "--pid", &pid]).expect_ok();
    until("the process's namespace is reached", 20, || pings(named.name(), Ipv4Addr::new(10, 1, 2, 2)));
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(exists(named.name()) && exists(other.name()));
    assert!(!has_link(&lab, "p0") && !has_link(&lab, "p1"));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn what_is_refused_or_fails_leaves_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, daemon, red) = start();
    let (cli, red) = (&daemon.cli, red.as_str());
    let (left, right) = (format!("{red}/left"), format!("{red}/right"));
    let name = host(&lab, "carol");
    let carol = name.as_str();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        let output = run(&lab, cli, arguments).expect_code(code);
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
        assert!(!exists(carol) && !has_link(&lab, "p1"), "{arguments:?}");
    };
    refused(&["attach", "nobody", "--host", carol], 2, "nobody");
    refused(&["attach", &format!("{red}/middle"), "--host", carol], 2, "has: left, right");
    refused(&["attach", red, "--netns", carol], 2, "does not exist");
    refused(&["attach", red, "--pid", "1", "--host", carol], 2, "cannot be used with");
    refused(&["attach", red, "--host", lab.node().name()], 2, "the network namespace of the node");
    // An interface that attach did not make is neither used nor removed.
    lab.node().ip(&["link", "add", "p0", "type", "bridge"]);
    refused(&["attach", &left, "--host", carol], 2, "not made by attach");
    let _ = run(&lab, cli, &["detach", "--all"]).expect_ok();
    assert!(has_link(&lab, "p0"));
    // In another namespace than the daemon's, the daemon never sees the interface: everything is undone.
    let outside = lab.switch().run_command(&mut cli.command(&["attach", &right, "--host", carol]));
    let outside = outside.expect_code(1);
    assert!(outside.stderr.contains("in the daemon's network namespace"), "{}", outside.stderr);
    assert!(!exists(carol) && !lab.switch().run("ip", &["link", "show", "p1"]).ok());
}
