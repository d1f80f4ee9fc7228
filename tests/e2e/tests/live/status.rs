//! What an operator asks first: is all well, what is configured, what does the log say, since when do counters count.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use hue_e2e::{Cli, Lab, can_run, shell, two_networks, until};

use crate::card;

#[test]
fn the_status_says_what_is_wrong_until_all_is_well() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, mut daemon) = two_networks();
    let cli = daemon.cli.clone();
    let well = || until("all is well", 30, || cli.run(&["status"]).code == 0);
    let wrong = |texts: &[&str]| {
        until(&format!("{texts:?}"), 30, || {
            let status = cli.run(&["status"]);
            status.code == 7 && texts.iter().all(|text| status.stdout.contains(text))
        });
    };
    well();
    let status = cli.run(&["status"]).expect_ok().stdout;
    let process = format!("process {}\n", daemon.pid());
    for text in [
        &process,
        "generation 1, applied 2",
        "store     healthy\n",
        "ports     2: 2 up\n",
        "card      none\n",
    ] {
        assert!(status.contains(text), "{text}: {status}");
    }
    assert!(status.contains("networks  2: 2 running\n") && !status.contains("problem:"), "{status}");

    let port = &lab.ports()[1];
    lab.unplug(1);
    let (problem, remedy) = (format!("problem: port {port}: "), format!("to do: create interface {port}, "));
    wrong(&[&problem, &remedy, "ports     2: 1 missing, 1 up\n"]);
    lab.plug(1);
    well();
    let down = ["link", "set", port, "down"];
    lab.node().ip(&down);
    wrong(&[&problem, &format!("`ip link set dev {port} up`"), "ports     2: 1 down, 1 up\n"]);
    lab.node().ip(&["link", "set", port, "up"]);
    well();

    // A card that does not come up is said, and so is a network that others changed.
    cli.apply(&card::node(&lab, "absent"), &[]);
    wrong(&["card      image absent, down, 0 networks on it\n", "problem: card: ", "to do: correct `card`"]);
    cli.apply(&lab.node_document(""), &[]);
    well();
    let address = format!("{}/24", red.left.router);
    let _ = cli.exec(red.name(), &["ip", "address", "del", &address, "dev", "left"]).expect_ok();
    wrong(&[
        &format!("problem: network {}: ", red.name()),
        "the daemon repairs it by itself",
        "1 degraded, 1 running",
    ]);
    well();

    // A change that waits is no problem, but is said.
    let gated = lab.folder().join("gated.yaml");
    std::fs::write(&gated, blue.document.clone().with("gated", "true").yaml()).unwrap();
    let _ = cli.run(&["apply", "-f", &gated.to_string_lossy(), "--confirm-within", "600s"]).expect_ok();
    let waits = cli.run(&["status"]).expect_ok().stdout;
    assert!(waits.contains("pending: revision ") && waits.contains("its deadline is 2"), "{waits}");
    let json = cli.json(&["status"]);
    assert_eq!((&json["well"], &json["pending"]["by"]["role"]), (&true.into(), &"admin".into()));
    let _ = cli.run(&["confirm"]).expect_ok();
    daemon.down(&[]);
    assert!(cli.run(&["status"]).expect_code(5).stderr.contains("hueplane up"));
}

#[test]
fn the_configuration_in_force_changes_nothing_when_it_is_applied() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pairs = [lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1])];
    let [red, blue] = &pairs;
    let limit =
        "{packets_per_second: 5000, burst_packets: 100, bits_per_second: 10000kbit/s, burst_bits: 80000}";
    let limited = blue.document.clone().with("rate_limit", limit);
    let documents = [card::node(&lab, "default"), red.document.yaml(), limited.yaml()];
    let mut daemon = card::start(&lab, &["default"], &documents);
    let cli = daemon.cli.clone();
    card::runs_on(&daemon, red.name(), "card");
    let same = || {
        let all = cli.run(&["get", "config"]).expect_ok().stdout;
        assert!(all.starts_with("apiVersion: ") && all.matches("kind: Network\n").count() == 2, "{all}");
        assert!(
            all.contains("bits_per_second: \"10Mbit/s\"") && all.contains("burst_bits: \"80kbit\""),
            "rates have units: {all}"
        );
        let found = cli.run_with(&["diff", "-f", "-", "--prune", "--exit-code"], &all).expect_ok();
        assert_eq!(found.stdout, "no differences\n", "{all}");
        let applied = cli.run_with(&["apply", "-f", "-", "--prune"], &all).expect_ok().stdout;
        assert!(applied.starts_with("nothing to change"), "{applied}");
        all
    };
    let before = same();
    // Also what commands wrote into the documents.
    let _ = cli.run(&["migrate", red.name(), "--to", "soft"]).expect_ok();
    let _ = cli.run(&["card", "gate", blue.name()]).expect_ok();
    let after = same();
    assert!(!before.contains("placement: soft") && after.contains("placement: soft"), "{after}");
    // One network, and the way back by a file.
    let one = cli.run(&["get", "config", red.name()]).expect_ok().stdout;
    assert!(!one.contains(blue.name()) && !one.contains("kind: Node"), "{one}");
    assert_eq!(cli.run_with(&["diff", "-f", "-"], &one).expect_ok().stdout, "no differences\n");
    cli.apply(&before, &["--prune"]);
    card::runs_on(&daemon, red.name(), "card");
    assert_eq!(same(), before);
    assert!(cli.run(&["get", "config", "nobody"]).expect_code(2).stderr.contains("does not exist"));
    daemon.down(&[]);
}

#[test]
fn counters_say_since_when_they_count() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, mut daemon) = two_networks();
    let cli = daemon.cli.clone();
    let since = |name: &str| cli.stats(name)["since"].as_str().unwrap().to_owned();
    let received = |name: &str| cli.stats(name)["received"].as_u64().unwrap();
    let first = since(red.name());
    assert!(red.left.ping(red.right.address, 5) > 0 && received(red.name()) > 0);
    // Nobody else's counters begin anew when a network comes.
    let green = lab.pair("green", 3, 3, [0, 1]);
    cli.apply(&green.document.yaml(), &[]);
    assert!(since(green.name()) > first && since(red.name()) == first);
    let ports = cli.json(&["stats"])["ports"].clone();
    let started = cli.json(&["status"])["started"].as_str().unwrap().to_owned();
    assert!(ports[0]["since"].as_str().unwrap() >= started.as_str(), "{ports}");

    daemon.kill();
    daemon.replace(&lab);
    let restarted = cli.json(&["status"])["started"].as_str().unwrap().to_owned();
    assert!(restarted > first && since(red.name()) >= restarted && since(blue.name()) >= restarted);
    let table = cli.run(&["stats"]).expect_ok().stdout;
    let shown = since(red.name()).split('.').next().unwrap().to_owned() + "Z";
    let line = table.lines().find(|line| line.starts_with(red.name())).unwrap();
    assert!(line.contains(&shown), "{table}");

    // A card counts too; without it, what it had counted is missing, and this is said.
    let mut daemon = {
        daemon.down(&[]);
        let cli = Cli { images: Some(hue_testdata::images(&["default"])), ..cli.clone() };
        let daemon = hue_e2e::Daemon::start_with(&lab, &cli, &[]);
        cli.apply(&card::node(&lab, "default"), &[]);
        daemon
    };
    card::runs_on(&daemon, red.name(), "card");
    red.warm_up();
    assert!(cli.stats(red.name())["card_since"].is_null());
    cli.apply(&lab.node_document(""), &[]);
    card::runs_on(&daemon, red.name(), "soft");
    let stats = cli.stats(red.name());
    assert!(stats["card_since"].as_str().unwrap() > stats["since"].as_str().unwrap(), "{stats}");
    let one = cli.run(&["stats", red.name()]).expect_ok().stdout;
    assert!(one.contains("counters of the card before 2"), "{one}");
    daemon.down(&[]);
}

#[test]
fn the_log_is_shown_and_followed_over_restarts() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, _blue, mut daemon) = two_networks();
    let cli = daemon.cli.clone();
    // Its standard error is a file that it does not know.
    let elsewhere = cli.run(&["logs"]).expect_code(1).stderr;
    assert!(
        elsewhere.contains("standard error, which is ") && elsewhere.contains("daemon.log"),
        "{elsewhere}"
    );
    daemon.down(&["--keep"]);

    let up = || lab.node().run_command(&mut cli.command(&["up", "--detach"])).expect_ok();
    let _ = up();
    let log = cli.run_dir.join("hueplaned.log");
    assert!(cli.run(&["status"]).stdout.contains(&format!("log       {}\n", log.display())));
    let mut follow = cli.command(&["logs", "-f", "-n", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(follow.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let told = |what: &str| {
        while !lines.recv_timeout(Duration::from_secs(30)).unwrap().contains(what) {}
    };
    // An event that the log has.
    let gate = |what: &str| {
        let _ = cli.run(&["card", what, red.name()]).expect_ok();
    };
    std::thread::sleep(Duration::from_millis(500));
    gate("gate");
    told(red.name());
    assert!(cli.run(&["logs", "-n", "1000"]).expect_ok().stdout.contains(red.name()));
    assert_eq!(cli.run(&["logs", "-n", "2"]).expect_ok().stdout.lines().count(), 2);

    let _ = cli.run(&["down", "--keep"]).expect_ok();
    told("the daemon is stopping");
    // Nobody answers now, but the log says why.
    let ended = cli.run(&["logs"]).expect_ok();
    assert!(ended.stdout.contains("the daemon is stopping") && ended.stderr.contains("no daemon"), "{ended}");
    // The next daemon begins a new file, because this one is full.
    let file = std::fs::File::options().append(true).open(&log).unwrap();
    file.set_len(hueplaned_log_bytes()).unwrap();
    let _ = up();
    assert!(cli.run_dir.join("hueplaned.log.1").exists());
    gate("ungate");
    told(red.name());
    follow.kill().unwrap();
    follow.wait().unwrap();
    let _ = cli.run(&["down"]).expect_ok();

    // Under systemd: the variable names the stream that is the daemon's standard error.
    let stream = std::fs::metadata(lab.folder().join("daemon.log")).unwrap();
    let variable = |inode: u64| format!("JOURNAL_STREAM={}:{inode}", stream.dev());
    let logs = |inode: u64| {
        let through = vec!["env".to_owned(), variable(inode)];
        let mut daemon = hue_e2e::Daemon::start_with(&lab, &Cli { through, ..cli.clone() }, &[]);
        let said = cli.run(&["logs", "-f"]).expect_code(1).stderr;
        daemon.down(&[]);
        said
    };
    assert!(logs(stream.ino()).contains("the journal of systemd: `journalctl -u "));
    // It is inherited by a daemon whose standard error is another file.
    assert!(logs(stream.ino() + 1).contains("standard error, which is "));
}

/// The size at which a log file is full.
const fn hueplaned_log_bytes() -> u64 {
    8 << 20
}

#[test]
fn bash_completes_the_names_that_the_daemon_knows() {
    if !can_run(&[]) {
        return;
    }
    let (lab, red, blue, mut daemon) = two_networks();
    let cli = daemon.cli.clone();
    let words = |line: &[&str]| {
        let script = r#"
            source <("$0" completions bash)
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
            PATH=$(dirname "$0"):$PATH
            _clap_complete_hueplane hueplane "${COMP_WORDS[COMP_CWORD]}" ""
            printf '%s\n' "${COMPREPLY[@]}""#;
        let command = cli.command(&[]);
        let program = command.get_program().to_owned();
        let mut bash = shell::command("bash");
        bash.args(["-c", script]).arg(program).args(line);
        for (name, value) in command.get_envs() {
            bash.env(name, value.unwrap());
        }
        let offered = shell::run(&mut bash).expect_ok();
        let mut words: Vec<String> = offered.stdout.lines().map(|word| word.trim_end().to_owned()).collect();
        words.retain(|word| !word.is_empty() && !word.starts_with('-'));
        words
    };
    let mut both = vec![red.name().to_owned(), blue.name().to_owned()];
    both.sort();
    assert_eq!(words(&["hueplane", "exec", ""]), both);
    let begun = red.name().strip_suffix('d').unwrap();
    assert_eq!(words(&["hueplane", "delete", "network", begun]), [red.name()]);
    assert_eq!(words(&["hueplane", "capture", "--network", ""]), both);
    assert!(words(&["hueplane", "capture", "--port", ""]).contains(&lab.ports()[0].clone()));
    let place = format!("{}/left", red.name());
    assert!(words(&["hueplane", "attach", begun]).contains(&place));
    daemon.pause();
    assert!(words(&["hueplane", "exec", ""]).is_empty());
    daemon.resume();
    daemon.down(&[]);
    assert!(words(&["hueplane", "exec", ""]).is_empty());
}
