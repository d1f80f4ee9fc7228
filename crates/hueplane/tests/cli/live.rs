//! Commands that use a running daemon: the real binary with the real API of a daemon without a data plane.

use std::time::Duration;

use hueplaned::api::{EventKind, RollbackRequest};
use serde_json::{Value, json};

use crate::support::{Done, RED, Scratch};
use crate::world::{BLUE, Served, document, eventually};

/// Commands that need a daemon, with valid arguments.
const NEED_DAEMON: [&str; 25] = [
    "down",
    "diff -f red.yaml",
    "apply -f red.yaml",
    "history",
    "rollback 3",
    "get nodes",
    "get networks",
    "get ports",
    "get routes",
    "get neighbours",
    "get tables",
    "get placements",
    "get config",
    "status",
    "logs",
    "plan",
    "delete network red",
    "drain card",
    "undrain card",
    "stats",
    "events",
    "events --follow",
    "exec red -- true",
    "capture -w out.pcapng",
    "trace --live --in-port p0 --hex 0011",
];

struct Live {
    served: Served,
    dir: Scratch,
}

impl Live {
    fn new() -> Self {
        let live = Self { served: Served::new(), dir: Scratch::new() };
        live.dir.write("red.yaml", RED);
        live
    }

    fn run(&self, args: &str) -> Done {
        self.run_with(&args.split_whitespace().collect::<Vec<_>>(), "")
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> Done {
        let socket = self.served.folder.join("hueplane.sock");
        let args: Vec<&str> =
            ["--socket", socket.to_str().unwrap()].into_iter().chain(args.iter().copied()).collect();
        self.dir.hueplane_with(&args, stdin)
    }
}

#[test]
fn every_command_reports_a_missing_daemon() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    for command in NEED_DAEMON {
        let done = dir.hueplane(&format!("--socket none.sock {command}"));
        done.fails(5, "none.sock: no daemon answers");
        assert!(done.stderr.contains("hueplane up"), "{command}: what to do next: {}", done.stderr);
    }
    assert_eq!(dir.files("."), ["red.yaml"], "no capture file is created");
    // The option can be anywhere, and the run directory also determines the socket.
    dir.hueplane("get networks --socket none.sock").fails(5, "none.sock");
    dir.hueplane_env("get networks", &[("HUEPLANE_RUN_DIR", "some/where")])
        .fails(5, "some/where/hueplane.sock");
    // A socket without a server.
    drop(std::os::unix::net::UnixListener::bind(dir.path("stale.sock")).unwrap());
    dir.hueplane("--socket stale.sock stats").fails(5, "stale.sock: no daemon answers");
    dir.hueplane("--socket red.yaml stats").fails(5, "red.yaml: no daemon answers");
}

#[test]
fn wrong_arguments_are_usage_errors() {
    let dir = Scratch::new();
    for (args, text) in [
        ("get", "KIND"),
        (
            "get things",
            "possible values: nodes, networks, ports, routes, neighbours, macs, entries, tables, placements, config",
        ),
        ("get routes 10.0.0.0 --socket a --server https://b:1", "cannot be used with"),
        ("--server https://a:1 stats", "--cert"),
        ("apply", "--file"),
        ("diff", "--file"),
        ("delete red", "unrecognized subcommand"),
        ("delete network", "NAME"),
        (
            "delete node",
            "cannot be deleted, because networks need its ports: change it with `hueplane apply`",
        ),
        ("delete node box", "hueplane up --empty"),
        ("drain", "<WHAT>"),
        ("drain red", "possible values: card"),
        ("undrain red", "possible values: card"),
        ("undrain card --force", "unexpected argument"),
        ("logs -n x", "invalid value"),
        ("logs --server https://a:1 --cert a --key b --ca c", "log in there and run `hueplane logs`"),
        ("exec red", "COMMAND"),
        ("exec red true", "unexpected argument"),
        ("capture", "--write"),
        ("capture -w a -c 0", "expected a whole number of at least 1"),
        ("capture -w a -s 13", "expected a whole number from 14 to 65535"),
        ("stats --interval-ms 500", "--watch"),
        ("stats --watch --interval-ms 50", "expected a whole number from 100 to 60000"),
        ("trace --in-port p0 --hex 00", "--live"),
        ("trace --live -f red.yaml --in-port p0 --hex 00", "cannot be used with"),
        ("demo --networks 0", "expected a whole number from 1 to 200"),
        ("demo --networks 201", "expected a whole number from 1 to 200"),
        ("demo --clean --keep", "cannot be used with"),
        ("up --listen 127.0.0.1:1", "--tls-cert"),
        ("events --since x", "invalid value"),
    ] {
        dir.hueplane(args).fails(2, text);
    }
    dir.hueplane("--server nowhere --cert a --key b --ca c stats").fails(2, "expected https://HOST:PORT");
    dir.hueplane("--server https://a:1 --cert a --key b --ca c stats").fails(3, "cannot be read");
    dir.hueplane("get routes nonsense --socket none").fails(2, "expected a prefix such as 10.1.0.0/16");
    dir.hueplane("get routes 10.0.0.0/33 --socket none")
        .fails(2, "(prefix length '33' is not a number from 0 to 32)");
    dir.hueplane("get routes 10.0.0.1/24 --socket none").fails(2, "expected 10.0.0.0/24)");
    dir.hueplane("get neighbours nonsense --socket none").fails(2, "expected an IPv4 or IPv6 address");
    dir.hueplane("get macs nonsense --socket none").fails(2, "expected a MAC address");
    dir.hueplane("stats --watch -o json --socket none").fails(2, "--watch: cannot be combined with -o");
    dir.hueplane("apply -f absent.yaml --socket none").fails(3, "absent.yaml: cannot be read");
    dir.write("latin1.yaml", b"name: \xe9");
    dir.hueplane("apply -f latin1.yaml --socket none").fails(3, "not UTF-8 at offset 6");
}

#[test]
fn get_prints_each_kind_as_table_json_and_yaml() {
    let live = Live::new();
    let names = |value: &Value, key: &str| -> Vec<String> {
        value.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    };
    let json = |args: &str| live.run(&format!("{args} -o json")).ok().json();
    let nodes = json("get nodes");
    assert_eq!((&nodes[0]["name"], &nodes[0]["status"]["health"]), (&json!("box"), &json!("degraded")));
    assert_eq!(names(&json("get networks"), "name"), ["blue", "red"]);
    assert_eq!(json("get networks red")["namespace"], "hue-red");
    assert_eq!(names(&json("get ports"), "name"), ["p0", "p1", "p2-blue"]);
    assert_eq!(names(&json("get ports -n red"), "name"), ["p0", "p1"]);
    assert_eq!(json("get port p1")["driver"], "afxdp");
    assert_eq!(names(&json("get routes -n red"), "prefix"), ["0.0.0.0/32", "0.0.0.1/32"]);
    assert_eq!(names(&json("get routes 0.0.0.1/32"), "network"), ["blue", "red"]);
    assert_eq!(json("get routes 9.9.9.0/24"), json!([]));
    assert_eq!(names(&json("get neighbours 10.1.0.9 -n red"), "mac"), ["02:00:00:00:0a:09"]);
    assert_eq!(json("get neighbor 10.1.0.8"), json!([]));
    assert_eq!(json("get tables")["bytes_total"], BLUE);
    assert_eq!(json("get placements")[0]["substrate"], "card");
    assert_eq!(json("get placements red")["network"], "red");
    assert_eq!(json("plan")["networks"][0]["substrate"], "card");
    assert_eq!(json("get table red")["bytes_own"], 640);
    assert_eq!(
        (&json("get config")["generation"], &json("get config red")["metadata"]["name"]),
        (&json!(7), &json!("red"))
    );
    for (args, texts) in [
        ("get nodes", ["degraded", "network blue: blue is unwell"]),
        ("get networks", ["left:p0 right:p1", "blue: blue is unwell"]),
        ("get ports", ["afxdp", "  2026-01-01T00:00:00Z"]),
        ("get routes -n red", ["02:00:00:00:0a:09", "static"]),
        ("get neighbours", ["10.1.0.9", "reachable"]),
        ("get tables", ["OWN BYTES", "layout dag: 777,001 of 777,001 bytes"]),
        (
            "get placements",
            ["2026-01-01T00:00:00.000000Z", "the card has no places for networks left (777001 in total)"],
        ),
        (
            "plan",
            [
                "move: blue from soft to card: blue is best there",
                "serves 1.5 Mbit/s of 3 Mbit/s needed, 1 move ",
            ],
        ),
        (
            "plan --from-traffic --scheduler exact",
            ["exact: serves 1.5 Mbit/s of 3 Mbit/s measured", "note: not measured yet"],
        ),
    ] {
        let table = live.run(args).ok().stdout;
        assert!(texts.iter().all(|text| table.contains(text)), "{args}: {table}");
        assert!(!table.contains('\u{1b}'), "no colours without a terminal");
        let yaml = live.run(&format!("{args} -o yaml")).ok().stdout;
        assert!(yaml.contains(": "), "{yaml}");
    }
    for args in [
        "get networks green",
        "get ports p9",
        "get nodes other",
        "get tables green",
        "get routes -n green",
        "get placements green",
        "get config green",
        "get config -n green",
    ] {
        live.run(args).fails(2, "does not exist");
    }
}

#[test]
fn the_status_says_whether_all_is_well_and_what_to_do() {
    let live = Live::new();
    let degraded = live.run("status");
    assert_eq!((degraded.code, degraded.stderr.as_str()), (7, "hueplane: 4 problems\n"), "{degraded:?}");
    for line in [
        "status    not well\n",
        "daemon    version 1.2.3, process 4242\n",
        "node      box, up 1 d 1 h since 2026-01-01T00:00:00Z\n",
        "config    generation 7, applied 1970-01-01T00:00:00Z\n",
        "store     has a problem\n",
        "card      image blue, down, 777,001 networks on it\n",
        "ports     3: 1 missing, 2 up\n",
        "networks  2: 1 degraded, 1 running\n",
        "log       /nowhere/blue.log\n",
        "problem: the disk of blue is full\n  to do: look after blue\n",
        "problem: card: image blue does not exist\n  to do: look after blue\n",
        "problem: port p2-blue: its interface does not exist\n  to do: look after blue\n",
        "problem: network blue: blue is unwell\n  to do: look after blue\n",
    ] {
        assert!(degraded.stdout.contains(line), "{line}: {}", degraded.stdout);
    }
    assert!(!degraded.stdout.contains("pending:") && !degraded.stdout.contains('\u{1b}'), "{degraded:?}");
    let json = live.run("status -o json");
    assert_eq!((json.code, &json.json()["well"]), (7, &json!(false)));
    assert_eq!(json.json()["troubles"][2]["name"], "p2-blue");

    let world = &live.served.world;
    world.well.store(true, std::sync::atomic::Ordering::SeqCst);
    let deadline = hueplaned::api::Timestamp::from_us(1_767_225_660_000_000);
    let pending =
        hueplaned::api::Pending { revision: 7, restores: 6, deadline, remaining_s: 9, ..Default::default() };
    *world.pending.lock().unwrap() = Some(pending);
    let well = live.run("status").ok();
    for line in [
        "status    all is well\n",
        "store     healthy\n",
        "networks  2: 2 running\n",
        " goes back to 6 in 9 s: `hueplane confirm` keeps it\n  its deadline is 2026-01-01T00:01:00Z\n",
    ] {
        assert!(well.stdout.contains(line), "{line}: {}", well.stdout);
    }
    assert!(!well.stdout.contains("problem:") && well.stderr.is_empty(), "{well:?}");
    assert_eq!(live.run("status -o json").ok().json()["well"], true);
}

#[test]
fn a_drain_says_what_moved_and_what_stays() {
    let live = Live::new();
    let drained = live.run("drain card").ok().stdout;
    assert_eq!(
        drained,
        "the card is drained: 1 network moved to software\n  red\nno network runs on the card until `hueplane undrain card`\n"
    );
    assert!(live.run("drain card").ok().stdout.starts_with("the card is already drained: 1 network"));
    let line =
        "card      image blue, down, drained (`hueplane undrain card` ends that), 777,001 networks on it\n";
    assert!(live.run("status").stdout.contains(line));
    // Exit code 1 and a hint if a network could not leave; JSON has the same.
    let stays = live.run("drain card --fail aside");
    assert!(stays.stdout.contains("  blue stays on the card: step 'aside' failed\n"), "{stays:?}");
    let hint = "hueplane: a network is still on the card: blue; `hueplane drain card` tries again\n";
    assert_eq!((stays.code, stays.stderr.as_str()), (1, hint));
    let json = live.run("drain card --fail aside -o json");
    assert_eq!((json.code, &json.json()["networks"][0]["substrate"]), (1, &json!("card")));
    let undrained = live.run("undrain card").ok().stdout;
    assert_eq!(undrained, "the card is no longer drained\n  blue on soft: it needs 9 rows\n  red on card\n");
    let again = live.run("undrain card -o json").ok().json();
    assert_eq!((&again["drained"], &again["changed"]), (&json!(false), &json!(false)));
    assert!(live.run("undrain card").ok().stdout.starts_with("the card was not drained\n"));
    live.served.world.busy.store(true, std::sync::atomic::Ordering::SeqCst);
    live.run("drain card --no-wait").fails(1, "under way");
}

#[test]
fn the_configuration_is_documents_that_can_be_applied() {
    let live = Live::new();
    let all = live.run("get config").ok().stdout;
    assert_eq!(all, live.run("get config -o yaml").ok().stdout);
    let source =
        |text: &str| vec![hue_intent::Source { name: "got".into(), bytes: text.as_bytes().to_vec() }];
    let intent = hue_intent::parse(source(&all)).unwrap();
    let documents = live.served.world.documents.lock().unwrap().1.clone();
    let again: Vec<Value> =
        intent.networks.iter().map(|network| serde_json::to_value(network).unwrap()).collect();
    assert_eq!(again, documents[1..]);
    assert_eq!(intent.node.metadata.name.to_string(), "box");
    let red = live.run("get config red").ok().stdout;
    assert!(red.starts_with("apiVersion: ") && !red.contains("blue") && !red.contains("---"), "{red}");
    assert_eq!(red, live.run("get config -n red").ok().stdout);
    // Whatever documents there are: those of the labs, and strings that YAML would read as something else.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let strange = document("red").replace("\"weight\": 5,", r##""colour": "#00ff00", "weight": 5,"##);
    let mut texts = vec![strange];
    for file in ["labs/basic/hueplane.yaml", "labs/basic/select.yaml", "labs/live/hueplane.yaml"] {
        texts.push(std::fs::read_to_string(root.join(file)).unwrap());
    }
    for given in texts {
        let values = |text: &str| -> Vec<Value> {
            let intent = hue_intent::parse(source(text)).unwrap();
            let node = intent.node_given.then(|| serde_json::to_value(&intent.node).unwrap());
            node.into_iter()
                .chain(intent.networks.iter().map(|one| serde_json::to_value(one).unwrap()))
                .collect()
        };
        live.served.world.documents.lock().unwrap().1 = values(&given);
        let got = live.run("get config").ok().stdout;
        assert_eq!(values(&got), values(&given), "{got}");
    }
    // It goes through a pipe as it is.
    let applied = live.run_with(&["apply", "-f", "-", "--dry-run"], &all);
    assert_eq!(applied.code, 0, "{applied:?}");
}

#[test]
fn the_log_is_read_where_the_daemon_writes_it() {
    use hueplaned::api::{LogPlace, LogTarget};
    let live = Live::new();
    let set = |to, path: Option<&str>, unit: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        *live.served.world.log.lock().unwrap() = LogPlace { to, path: text(path), unit: text(unit) };
    };
    live.run("logs").fails(3, "/nowhere/blue.log: cannot be read");
    set(LogTarget::Journal, None, Some("hueplane.service"));
    live.run("logs").fails(1, "`journalctl -u hueplane.service`, with -f to follow");
    set(LogTarget::Terminal, Some("/dev/pts/3"), None);
    live.run("logs -f").fails(1, "the terminal /dev/pts/3");
    set(LogTarget::Stderr, Some("/var/log/x"), None);
    live.run("logs").fails(1, "`tail -f /var/log/x`");
    set(LogTarget::None, None, None);
    live.run("logs").fails(1, "writes no log");

    // The end of the older file and of this one.
    let log = live.dir.path("d.log");
    set(LogTarget::File, log.to_str(), None);
    live.dir.write("d.log.1", "1\n2\n3\n");
    live.dir.write("d.log", "4\n5\nhalf");
    let lines = |args: &str| live.run(args).ok().stdout;
    assert_eq!([lines("logs -n 1"), lines("logs -n 3"), lines("logs -n 0")], ["half", "4\n5\nhalf", ""]);
    assert_eq!(lines("logs"), "1\n2\n3\n4\n5\nhalf");

    // The log of a daemon that has ended.
    live.dir.write("run/hueplaned.log", "it has failed\n");
    let ended = live.dir.hueplane("--socket run/hueplane.sock logs").ok();
    assert_eq!(ended.stdout, "it has failed\n");
    assert!(
        ended.stderr.contains("no daemon answers") && ended.stderr.contains("the log of the last daemon"),
        "{ended:?}"
    );
}

#[test]
fn a_log_is_followed_from_file_to_file() {
    use std::io::{BufRead, BufReader, Write};
    let dir = Scratch::new();
    dir.write("hueplaned.log", "old\n");
    let path = dir.path("hueplaned.log");
    let mut follow = std::process::Command::new(env!("CARGO_BIN_EXE_hueplane"))
        .args(["logs", "-f", "-n", "1", "--socket"])
        .arg(dir.path("hueplane.sock"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let (sender, lines) = std::sync::mpsc::channel();
    let out = BufReader::new(follow.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let next = || lines.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(next(), "old");
    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
    let mut say = |text: &str| file.write_all(text.as_bytes()).unwrap();
    say("one\nha");
    assert_eq!(next(), "one");
    say("lf\nlast of this file\n");
    // Rotated as the daemon does it.
    std::fs::rename(&path, dir.path("hueplaned.log.1")).unwrap();
    std::fs::write(&path, "first of the next\n").unwrap();
    assert_eq!([next(), next(), next()], ["half", "last of this file", "first of the next"]);
    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"and on\n").unwrap();
    assert_eq!(next(), "and on");
    // A file that the daemon cannot replace is emptied.
    file.set_len(0).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    file.write_all(b"again\n").unwrap();
    assert_eq!(next(), "again");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn the_history_shows_who_changed_what_and_a_rollback_shows_its_changes() {
    let live = Live::new();
    let history = live.run("history -o json").ok().json();
    assert_eq!((&history["generation"], &history["revisions"][0]["number"]), (&json!(7), &json!(7)));
    let table = live.run("history").ok().stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[1],
        "       7  2026-01-01T00:00:00Z  operator blue's  rollback to 4  +node box ~red -blue (in force)"
    );
    assert!(lines[3].ends_with("tenant red       apply          ~red"), "{table}");
    assert!(lines[4].starts_with("problem: the history of blue is damaged"), "{table}");
    assert!(live.run("history -o yaml").ok().stdout.contains("restored: 4"));

    let dry = live.run("rollback 4 --dry-run").ok().stdout;
    assert!(dry.contains("change network red\n    spec.colour: nothing -> #0000aa\n"), "{dry}");
    assert!(
        dry.contains("2 changes not made: dry run") && dry.contains("revision 4 did not have blue-too: kept"),
        "{dry}"
    );
    assert!(live.served.world.rolled_back.lock().unwrap().is_empty());
    let done = live.run("rollback --prune -o json").ok().json();
    assert_eq!((&done["revision"], &done["generation"], &done["kept"]), (&json!(5), &json!(8), &json!([])));
    let request = RollbackRequest { prune: true, ..RollbackRequest::default() };
    assert_eq!(live.served.world.rolled_back.lock().unwrap().drain(..).next_back(), Some((request, None)));
    live.run("rollback x").fails(2, "invalid value");
}

#[test]
fn long_lists_are_complete_or_fail() {
    let live = Live::new();
    live.served.world.many_routes.store(20_000, std::sync::atomic::Ordering::Relaxed);
    let list = live.run("get routes -n red -o json").ok().json();
    assert_eq!(list.as_array().unwrap().len(), 20_002);
    live.served.world.many_routes.store(u64::MAX, std::sync::atomic::Ordering::Relaxed);
    assert_ne!(live.run("get routes -n red -o json").code, 0);
}

#[test]
fn stats_add_up_and_give_reasons() {
    let live = Live::new();
    let stats = live.run("stats -o json").ok().json();
    let red = &stats["networks"][1];
    assert_eq!(
        (&red["network"], &red["received"], &red["drops"]["checksum"]),
        (&json!("red"), &json!(115), &json!(6))
    );
    let one = live.run("stats red -o json").ok().json();
    assert_eq!(one["networks"].as_array().unwrap().len(), 1);
    let table = live.run("stats").ok().stdout;
    assert!(table.contains("queue_full 9, checksum 6, no_route 4"), "{table}");
    assert!(table.contains("(no network)") && table.contains("777,001"), "{table}");
    let table = live.run("stats red").ok().stdout;
    for text in
        ["network red", "total", "punted: ttl 3, arp 2", "lost: queue_full 9", "from its control plane: 1"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(
        table.contains("counted since: 2026-01-01T00:00:00Z\n") && !table.contains("is missing"),
        "{table}"
    );
    let table = live.run("stats").ok().stdout;
    assert!(table.contains("SINCE") && table.contains("  2026-01-01T00:00:00Z  "), "{table}");
    assert!(table.contains("blue: counters of the card before 2026-01-01T00:01:00Z were lost\n"), "{table}");
    live.run("stats green").fails(2, "does not exist");
    live.run("stats --watch").fails(2, "standard input and output must be a terminal");
}

/// Numbers that an option does not accept, each with the range that it accepts. None of them is an unknown option.
#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let dir = Scratch::new();
    let workers = "expected a whole number from 0 to 64; 0 selects it automatically";
    let positive = "expected a whole number of at least 1";
    let natural = "expected a whole number of at least 0";
    let time = "expected a time such as 500ms, 30s, 5m or 1h 30m";
    for (args, text) in [
        ("up --workers -1", workers),
        ("up --workers 9999", workers),
        ("up --workers 99999999999999999999", workers),
        ("up --workers many", workers),
        ("capture -w a -c -1", positive),
        ("capture -w a -s -1", "expected a whole number from 14 to 65535"),
        ("rollback -1", natural),
        ("rollback red.yaml", natural),
        ("events --since -1", natural),
        ("logs -n -1", natural),
        ("attach red --pid -1", positive),
        ("attach red --pid 99999999999", positive),
        ("demo --networks -1", "expected a whole number from 1 to 200"),
        ("stats --watch --interval-ms 99999999999999999999", "expected a whole number from 100 to 60000"),
        ("apply -f a.yaml --confirm-within -1s", time),
        ("apply -f a.yaml --confirm-within soon", time),
        ("image load wide --reconfigure-time -5", time),
        ("migrate red --to card --look-ms -1", "expected a whole number from 0 to 10000"),
        ("certs init a --days -1", "expected a whole number from 1 to 3650"),
        ("run -f a.yaml --in p0=a --out o --wave a.fst --wave-cycles -1-2", "FROM-TO"),
        ("table size --routes a=b --limit -1", "such as 1048576, 1024KiB or 1GiB"),
        ("table size --routes a=b --limit 99999999999GiB", "expected a size below 16 EiB"),
        ("up --listen 127.0.0.1:99999 --tls-cert a --tls-key a --tls-ca a", "a port from 0 to 65535"),
        ("up --listen localhost --tls-cert a --tls-key a --tls-ca a", "such as 0.0.0.0:7443"),
        ("certs init a --days 0", "expected a whole number from 1 to 3650"),
        ("table size --routes a=b --cam-rows -1", natural),
        ("table size --routes a=b --derive-hops 70000", positive),
        ("trace -f a.yaml --in-port p0 --pcap b --packet -1", positive),
    ] {
        let done = dir.hueplane(args);
        done.fails(2, "invalid value");
        done.fails(2, text);
    }
}

#[test]
fn a_file_without_its_option_is_explained() {
    let dir = Scratch::new();
    dir.write("red.yaml", RED);
    dir.write("documents", RED);
    for command in ["apply", "diff", "plan", "validate", "up", "trace", "run", "lab run", "lab power"] {
        let tip = |file: &str| format!("tip: files are given with -f: 'hueplane {command} -f {file}'");
        dir.hueplane(&format!("{command} red.yaml")).fails(2, &tip("red.yaml"));
        dir.hueplane(&format!("{command} absent.yml")).fails(2, &tip("absent.yml"));
        dir.hueplane(&format!("{command} documents")).fails(2, &tip("documents"));
        let other = dir.hueplane(&format!("{command} nothing"));
        other.fails(2, "unexpected argument 'nothing'");
        assert!(!other.stderr.contains("tip: files"), "{other:?}");
    }
    let doctor = dir.hueplane("doctor red.yaml");
    assert!(doctor.code == 2 && !doctor.stderr.contains("-f"), "{doctor:?}");
}

#[test]
fn a_failure_has_one_prefix() {
    let dir = Scratch::new();
    let places = [("HUEPLANE_RUN_DIR", "run"), ("HUEPLANE_STATE_DIR", "/proc/absent")];
    let failed = dir.hueplane_env("up --detach", &places);
    assert_ne!(failed.code, 0, "{failed:?}");
    for line in failed.stderr.lines() {
        assert!(line.starts_with("hueplane: ") && line.matches("hueplane: ").count() == 1, "{failed:?}");
    }
}

#[test]
fn apply_and_diff_show_what_changes() {
    let live = Live::new();
    let diff = live.run("diff -f red.yaml -o json").ok().json();
    assert_eq!(diff["actions"][0]["name"], "red");
    assert!(live.run("diff -f red.yaml").ok().stdout.contains("change network red"));
    let found = live.run("diff -f red.yaml --exit-code");
    assert_eq!(found.code, 6, "{found:?}");
    assert!(found.stdout.contains("change network red"));
    let dry = live.run("apply -f red.yaml --dry-run").ok();
    assert!(dry.stdout.contains("2 changes not made: dry run"), "{dry:?}");
    assert!(live.served.world.applied.lock().unwrap().is_empty());
    let done = live
        .run_with(&["apply", "-f", "red.yaml", "-f", "-", "--prune", "-o", "json"], &document("blue"))
        .ok();
    assert_eq!((&done.json()["generation"], &done.json()["dry_run"]), (&json!(8), &json!(false)));
    let applied = live.served.world.applied.lock().unwrap().clone();
    assert!(applied[0].prune && !applied[0].dry_run);
    let names: Vec<&str> = applied[0].sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["red.yaml", "<stdin>"]);
}

#[test]
fn invalid_documents_are_reported_with_file_and_line() {
    let live = Live::new();
    live.dir.write("bad.yaml", RED.replace("02:00:00:00:01:01", "nonsense"));
    for command in ["apply", "diff", "apply --dry-run"] {
        live.run(&format!("{command} -f bad.yaml")).fails(3, "bad.yaml:8:");
    }
    assert!(live.served.world.applied.lock().unwrap().is_empty());
}

#[test]
fn events_are_listed_or_followed() {
    let live = Live::new();
    let world = &live.served.world;
    world.happen(EventKind::Started, None);
    world.happen(EventKind::NetworkCreated, Some("red"));
    world.happen(EventKind::NetworkCreated, Some("blue"));
    let all = live.run("events -o json").ok().json();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let later = live.run("events --since 2 -o json").ok().json();
    assert_eq!(live.run("events --since 18446744073709551615 -o json").ok().json(), json!([]));
    assert_eq!((&later[0]["sequence"], later.as_array().unwrap().len()), (&json!(3), 1));
    let red = live.run("events -n red -o json").ok().json();
    assert_eq!((&red[0]["network"], red.as_array().unwrap().len()), (&json!("red"), 1));
    assert!(live.run("events").ok().stdout.contains("network_created"));
    // With --follow, each event is a line of its own; the list ends with the daemon.
    let Live { mut served, dir } = live;
    let socket = served.folder.join("hueplane.sock");
    let follow = std::thread::spawn(move || {
        let args = ["events", "--follow", "--since", "1", "-o", "json", "--socket", socket.to_str().unwrap()];
        dir.hueplane_with(&args, "")
    });
    std::thread::sleep(Duration::from_millis(500));
    served.world.happen(EventKind::PortDown, None);
    std::thread::sleep(Duration::from_millis(500));
    served.close();
    let done = follow.join().unwrap();
    assert_eq!(done.code, 5, "{done:?}");
    let sequences: Vec<u64> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, [2, 3, 4]);
}

#[test]
fn a_capture_is_a_complete_file() {
    let live = Live::new();
    let world = std::sync::Arc::clone(&live.served.world);
    let passing = std::thread::spawn(move || {
        eventually("a capture", || world.captures() > 0);
        for number in 0..5 {
            world.pass(Some("red"), "forward", "forward", vec![number; 60]);
        }
    });
    let done = live.run("capture -n red -c 3 -w out.pcapng").ok();
    passing.join().unwrap();
    assert!(done.stderr.contains("3 packets") && done.stdout.is_empty(), "{done:?}");
    let file = std::fs::read(live.dir.path("out.pcapng")).unwrap();
    assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let text = String::from_utf8_lossy(&file);
    assert!(text.contains("red/left") && text.contains("forward"), "interface name and verdict");
    live.run("capture -n green -w out2.pcapng").fails(2, "does not exist");
    assert!(!live.dir.path("out2.pcapng").exists());
    live.run("capture -w absent/out.pcapng").fails(1, "cannot be written");
}

#[test]
fn trace_uses_the_running_daemon() {
    let live = Live::new();
    let json = live.run("trace --live --in-port p0 --hex 0102 -o json").ok().json();
    assert_eq!((&json["networks"][0]["network"], &json["reason"]), (&json!("red"), &json!("drop")));
    let table = live.run("trace --live --in-port p0 --hex 03").ok().stdout;
    assert!(table.contains("network   blue port left") && table.contains("drop no_route"), "{table}");
    live.run("trace --live --in-port p9 --hex 01").fails(2, "does not exist");
}

#[test]
fn a_network_is_deleted_and_the_daemon_stops() {
    let mut live = Live::new();
    assert!(live.run("delete network red").ok().stdout.contains("nothing to change"));
    live.run("delete network green").fails(2, "does not exist");
    live.run("exec green -- true").fails(2, "does not exist");
    let socket = live.served.folder.join("hueplane.sock");
    let dir = std::mem::replace(&mut live.dir, Scratch::new());
    let down = std::thread::spawn(move || {
        dir.hueplane_with(&["down", "--socket", socket.to_str().unwrap(), "-o", "json"], "")
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(!down.is_finished(), "down waits until the daemon has stopped");
    live.served.close();
    std::fs::remove_file(live.served.folder.join("hueplane.sock")).ok();
    let done = down.join().unwrap().ok();
    assert_eq!((&done.json()["pid"], &done.json()["networks"]), (&json!(4242), &json!(2)));
}

#[test]
fn the_doctor_needs_no_daemon() {
    let done = Scratch::new().hueplane("doctor -o json");
    let json = done.json();
    assert_eq!(done.code, i32::from(!json["ok"].as_bool().unwrap()), "{done:?}");
    let checks = json["checks"].as_array().unwrap();
    assert!(checks.len() > 5);
    for check in checks {
        assert!(!check["name"].as_str().unwrap().is_empty() && !check["why"].as_str().unwrap().is_empty());
        let (ok, has_fix) = (check["ok"].as_bool().unwrap(), check["fix"].is_string());
        assert!(ok != has_fix, "a failed check has a command to fix it: {check}");
    }
}

#[test]
fn the_doctor_says_which_image_has_which_kinds() {
    let said = |images: &str| {
        let done = Scratch::new().hueplane_env("doctor -o json", &[("HUEPLANE_IMAGES", images)]);
        let checks = done.json()["checks"].as_array().unwrap().clone();
        let check = checks.into_iter().find(|check| check["name"] == "card images").unwrap();
        (check["ok"].as_bool().unwrap(), check["found"].as_str().unwrap().to_owned())
    };
    let images = hue_testdata::images(&["default", "kinds"]);
    let (ok, found) = said(images.to_str().unwrap());
    assert!(
        ok && found.contains("default: ipv4;") && found.contains("kinds: ipv4, ipv6, l2, dual, extract"),
        "{found}"
    );
    // A folder without images, and one with half of an image.
    let none = Scratch::new();
    let folder = none.write("images/readme", "").parent().unwrap().to_owned();
    assert_eq!(said(folder.to_str().unwrap()), (false, "none".to_owned()));
    let _ = none.write("images/half.so", [0; 100]);
    let (ok, found) = said(folder.to_str().unwrap());
    assert!(!ok && found.starts_with("half: "), "{found}");
}
