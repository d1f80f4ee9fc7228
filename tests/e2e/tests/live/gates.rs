//! Clock gates: a network whose plane is stopped forwards nothing, and no other network is affected.

use std::time::Duration;

use hue_e2e::lab::Pair;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, until};

use crate::card::{network, node, runs_on, start};

/// Checks that no packet passes between the hosts of a pair, and that the packets they send are counted.
#[track_caller]
fn is_stopped(daemon: &Daemon, pair: &Pair) {
    let counted = || {
        let stats = daemon.cli.stats(pair.name());
        let sum = |field: &str| stats[field].as_u64().unwrap();
        assert_eq!(sum("received"), sum("forwarded") + sum("punted") + sum("dropped"), "{stats}");
        stats["drops"]["gated"].as_u64().unwrap_or(0)
    };
    let before = counted();
    assert_eq!(pair.left.ping(pair.right.address, 3), 0);
    assert!(counted() >= before + 3, "{before} before, now {}", counted());
    assert_eq!(network(daemon, pair.name())["gated"], true);
}

#[test]
fn a_gated_network_stands_still_alone() {
    if !can_run(&[]) {
        return;
    }
    for image in ["tcam3", "default"] {
        let lab = Lab::new(2);
        // Hosts must still send when they hear nothing from their router.
        let pair = |name, n, tag| lab.pair(name, n, tag, [0, 1]).with_fixed_neighbours();
        let (red, blue, soft) = (pair("red", 1, 1), pair("blue", 2, 2), pair("soft", 3, 3));
        let in_software = soft.document.clone().with("placement", "soft");
        let documents = [node(&lab, image), red.document.yaml(), blue.document.yaml(), in_software.yaml()];
        let mut daemon = start(&lab, &["tcam3", "default"], &documents);
        let cli = daemon.cli.clone();
        [(&red, "card"), (&blue, "card"), (&soft, "soft")]
            .into_iter()
            .for_each(|(pair, on)| runs_on(&daemon, pair.name(), on));
        [&red, &blue, &soft].into_iter().for_each(Pair::warm_up);
        let flow = Flow::start(&blue.left, &blue.right, 500, 100);

        let output = cli.run(&["card", "gate", red.name(), soft.name()]).expect_ok();
        assert!(output.stdout.contains("is gated") && output.stdout.contains("runs in software"), "{output}");
        [&red, &soft].into_iter().for_each(|pair| is_stopped(&daemon, pair));
        assert_eq!(blue.left.ping(blue.right.address, 3), 3);
        let output = cli.run(&["card", "gate", red.name()]).expect_ok();
        assert!(output.stdout.contains("was gated already"), "{output}");
        // With one unknown name, the command changes nothing.
        let output = cli.run(&["card", "ungate", red.name(), "nobody"]);
        assert!(output.code != 0 && output.stderr.contains("nobody"), "{output}");
        is_stopped(&daemon, &red);
        let shown = cli.json(&["card", "show"]);
        let gate = |name: &str| {
            let all = shown["networks"].as_array().unwrap();
            all.iter().find(|one| one["network"] == name).map(|one| one["gated"] == true)
        };
        assert_eq!([&red, &blue, &soft].map(|pair| gate(pair.name())), [Some(true), Some(false), None]);
        let text = cli.run(&["card", "show"]).expect_ok().stdout;
        assert!(text.contains(&format!("image {image}")) && text.contains("closed"), "{text}");

        // The gate stays closed wherever the network moves.
        for to in ["soft", "card"] {
            let _ = cli.run(&["migrate", red.name(), "--to", to]).expect_ok();
            is_stopped(&daemon, &red);
        }
        let other = if image == "default" { "tcam3" } else { "default" };
        let _ = cli.run(&["image", "load", other]).expect_ok();
        runs_on(&daemon, red.name(), "card");
        is_stopped(&daemon, &red);
        let report = flow.stop();
        assert!(report.sent > 0 && report.lost() == 0, "{image}: {report}");
        daemon.kill();
        daemon.replace(&lab);
        [&red, &blue].into_iter().for_each(|pair| runs_on(&daemon, pair.name(), "card"));
        blue.warm_up();
        is_stopped(&daemon, &red);

        // With open gates, the networks forward as before.
        let _ = cli.run(&["card", "ungate", red.name(), soft.name()]).expect_ok();
        [&red, &soft].into_iter().for_each(Pair::warm_up);
        // A document can close the gate, too, and errors in it are located.
        let wrong = cli.run_with(&["apply", "-f", "-"], &red.document.clone().with("gated", "2").yaml());
        assert!(
            wrong.code == 3 && wrong.stderr.contains("spec.gated: found 2, expected true or false"),
            "{wrong}"
        );
        let gated = red.document.clone().with("gated", "true").yaml();
        let result = cli.apply(&gated, &[]);
        assert!(result["actions"].to_string().contains("spec.gated"), "{result}");
        until("the document is in force", 10, || network(&daemon, red.name())["gated"] == true);
        is_stopped(&daemon, &red);
        std::thread::sleep(Duration::from_millis(50));
        daemon.down(&[]);
    }
}
