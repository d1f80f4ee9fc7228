//! Rollbacks: a mistaken change is undone, and no other network is affected.

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Pair, can_run, two_networks, until};
use serde_json::Value;

/// Numbers of the revisions, newest first, each with the kind of change that made it.
fn revisions(cli: &Cli) -> Vec<(u64, String)> {
    let history = cli.json(&["history"]);
    let revisions = history["revisions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    revisions.iter().map(|one| (one["number"].as_u64().unwrap(), text(&one["kind"]))).collect()
}

#[test]
fn a_mistake_is_rolled_back_while_others_go_on() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, mut daemon) = two_networks();
    let green = lab.pair("green", 3, 3, [0, 1]);
    let cli = daemon.cli.clone();
    let (first, _) = revisions(&cli)[0].clone();
    let process = cli.command(&["exec", red.name(), "--", "sleep", "600"]).spawn();
    let mut process = process.unwrap();
    until("it runs in the namespace", 20, || {
        std::fs::read_to_string(format!("/proc/{}/comm", process.id()))
            .is_ok_and(|name| name.trim() == "sleep")
    });
    let flow = Flow::start(&blue.left, &blue.right, 500, 100);

    // The mistake: red is gated, and a network is added.
    let gated = red.document.clone().with("gated", "true");
    cli.apply(&all(&[gated.yaml(), green.document.yaml()]), &[]);
    assert_eq!(red.left.ping(red.right.address, 2), 0);
    green.warm_up();
    let table = cli.run(&["history"]).expect_ok().stdout;
    let changes = format!("+{} ~{} (in force)", green.name(), red.name());
    assert!(
        table
            .lines()
            .nth(1)
            .is_some_and(|line| line.contains("admin root  apply") && line.ends_with(&changes)),
        "{table}"
    );

    let dry = cli.run(&["rollback", "--dry-run"]).expect_ok().stdout;
    assert!(dry.contains("spec.gated: true -> ") && dry.contains("1 change not made: dry run"), "{dry}");
    assert_eq!(red.left.ping(red.right.address, 1), 0, "nothing was changed");
    // Killed right after the rollback: a confirmed change stays.
    let done = cli.run(&["rollback"]).expect_ok().stdout;
    assert!(
        done.contains("1 change made") && done.contains(&format!("did not have {}: kept", green.name())),
        "{done}"
    );
    red.warm_up();
    green.warm_up();
    assert!(cli.happened("rolled_back"), "{:?}", cli.events());
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "blue has lost something: {report}");
    daemon.kill();
    daemon.replace(&lab);
    [&red, &blue, &green].into_iter().for_each(Pair::warm_up);
    let kinds = |numbers: &[u64]| -> Vec<(u64, String)> {
        let kind = |number: &u64| if *number == first + 1 || *number == first { "apply" } else { "rollback" };
        numbers.iter().map(|number| (*number, kind(number).to_owned())).collect()
    };
    let last = first + 2;
    assert_eq!(revisions(&cli)[..3], kinds(&[last, first + 1, first]));

    // Only --prune removes networks that the revision did not have.
    let pruned = cli.run(&["rollback", &first.to_string(), "--prune"]).expect_ok().stdout;
    assert!(pruned.contains(&format!("delete network {}", green.name())), "{pruned}");
    assert_eq!(cli.json(&["get", "networks"]).as_array().map(Vec::len), Some(2));
    let nothing = cli.run(&["rollback", &first.to_string()]).expect_ok().stdout;
    assert!(nothing.contains("nothing to change"), "{nothing}");
    // A rollback is rolled back too.
    let _ = cli.run(&["rollback", &last.to_string()]).expect_ok();
    green.warm_up();
    let unknown = cli.run(&["rollback", "999"]).expect_code(2);
    assert!(unknown.stderr.contains("revision 999 is not kept"), "{unknown}");

    // The revision's documents are not valid together with later ones: nothing changes.
    let _ = cli.run(&["delete", "network", blue.name()]).expect_ok();
    let mut thief = blue.document.clone();
    thief.name = lab.name("thief");
    cli.apply(&thief.yaml(), &[]);
    let before = cli.json(&["history"]);
    let refused = cli.run(&["rollback", &first.to_string()]).expect_code(3);
    assert!(refused.stderr.contains(&thief.name) && refused.stderr.contains(blue.name()), "{refused}");
    assert_eq!(cli.json(&["history"]), before);
    assert!(process.try_wait().unwrap().is_none(), "what runs in red has run all the time");
    process.kill().unwrap();
    process.wait().unwrap();
    daemon.down(&[]);
}

#[test]
fn a_change_that_nobody_confirms_is_undone() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, mut daemon) = two_networks();
    let green = lab.pair("green", 3, 3, [0, 1]);
    let cli = daemon.cli.clone();
    let flow = Flow::start(&blue.left, &blue.right, 500, 100);
    let good = cli.json(&["get", "nodes"])[0]["status"]["generation"].as_u64().unwrap();
    let networks = || cli.json(&["get", "networks"]).as_array().map_or(0, Vec::len);
    let mistake = all(&[red.document.clone().with("gated", "true").yaml(), green.document.yaml()]);

    // Until its time is over, the change is in force, and no other change is accepted.
    let file = lab.folder().join("mistake.yaml");
    std::fs::write(&file, &mistake).unwrap();
    let apply = |within: &str| {
        let file = file.to_string_lossy();
        cli.run(&["apply", "-f", &file, "--confirm-within", within])
    };
    for wrong in ["0s", "2days", "1500ms"] {
        assert!(apply(wrong).expect_code(2).stderr.contains("expected whole seconds"), "{wrong}");
    }
    let told = apply("60s").expect_ok().stdout;
    assert!(told.contains("hueplane confirm"), "{told}");
    assert_eq!((red.left.ping(red.right.address, 1), networks()), (0, 3));
    for refused in [
        &["delete", "network", blue.name()][..],
        &["rollback", "0", "--prune"],
        &["card", "gate", blue.name()],
        &["apply", "-f", &lab.folder().join("hueplane.yaml").to_string_lossy(), "--prune"],
    ] {
        let refused = cli.run(refused);
        assert!(!refused.ok() && refused.stderr.contains("waits for its confirmation"), "{refused}");
    }
    assert!(cli.run(&["history"]).expect_ok().stdout.contains("pending: revision"));
    assert!(cli.run(&["get", "nodes"]).expect_ok().stdout.contains("pending: revision"));
    // Undone by hand at once: the network that it added is removed, too.
    let undone = cli.run(&["rollback"]).expect_ok().stdout;
    assert!(undone.contains("2 changes made") && !undone.contains("kept"), "{undone}");
    red.warm_up();
    assert_eq!(networks(), 2);
    assert!(cli.run(&["confirm"]).stderr.contains("no change waits"));

    // Undone by the daemon; on a busy machine even before the networks are set up, so any answer is accepted.
    let _ = apply("1s");
    until("the change is undone", 30, || cli.happened("auto_rolled_back"));
    red.warm_up();
    until("green is gone", 10, || networks() == 2);
    let latest = || -> Vec<String> { revisions(&cli).into_iter().take(2).map(|(_, kind)| kind).collect() };
    assert_eq!(latest(), ["auto_rollback", "apply"]);

    // Confirmed.
    let _ = apply("60s").expect_ok();
    let confirmed = cli.run(&["confirm"]).expect_ok().stdout;
    assert!(confirmed.contains("is confirmed"), "{confirmed}");
    daemon.kill();
    daemon.replace(&lab);
    assert_eq!(networks(), 3);
    green.warm_up();
    assert!(cli.json(&["history"])["pending"].is_null());

    // Its time passes while no daemon runs: the next daemon starts with the earlier configuration.
    let _ = cli.run(&["rollback", &good.to_string(), "--prune"]).expect_ok();
    let _ = apply("3s");
    daemon.kill();
    std::thread::sleep(std::time::Duration::from_secs(3));
    daemon.replace(&lab);
    assert_eq!((latest(), networks()), (vec!["auto_rollback".to_owned(), "apply".to_owned()], 2));
    red.warm_up();
    // A kill before the end leaves it waiting, for the rest of its time.
    let _ = apply("60s").expect_ok();
    daemon.kill();
    daemon.replace(&lab);
    let pending = cli.json(&["history"])["pending"].clone();
    assert!(pending["remaining_s"].as_u64().is_some_and(|left| left <= 60), "{pending}");
    let _ = cli.run(&["confirm"]).expect_ok();
    assert_eq!(networks(), 3);
    drop(flow);
    daemon.down(&[]);
}
