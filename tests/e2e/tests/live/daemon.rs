//! The daemon's lifecycle: killed at any moment, started twice, without rights, with a full disk or a damaged store.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, Pair, can_run, daemon, document, shell, until};

/// A lab with two networks, and their documents with the node's.
fn lab() -> (Lab, [Pair; 2], String) {
    let lab = Lab::new(2);
    let pairs = [lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1])];
    let documents = all(&[lab.node_document(""), pairs[0].document.yaml(), pairs[1].document.yaml()]);
    (lab, pairs, documents)
}

/// Random numbers from a seed (splitmix64).
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

#[test]
fn killed_at_any_moment_it_comes_back_with_everything() {
    if !can_run(&[]) {
        return;
    }
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    let mut random = random(seed);
    let (lab, pairs, documents) = lab();
    let mut daemon = Daemon::start(&lab, &documents);
    let cli = daemon.cli.clone();
    pairs.iter().for_each(Pair::warm_up);
    let vids = |cli: &Cli| -> Vec<_> {
        let networks = cli.json(&["get", "networks"]);
        networks.as_array().into_iter().flatten().map(|n| (n["name"].clone(), n["vid"].clone())).collect()
    };
    let before = vids(&cli);
    let namespace =
        |cli: &Cli| cli.exec(pairs[0].name(), &["readlink", "/proc/self/ns/net"]).expect_ok().stdout;
    let inside = namespace(&cli);
    let mut owner = cli.command(&["exec", pairs[0].name(), "--", "sleep", "600"]).spawn().unwrap();
    // `exec` gets the namespace from the daemon, and then no longer needs the daemon.
    until("it runs in the namespace", 20, || {
        std::fs::read_to_string(format!("/proc/{}/comm", owner.id())).is_ok_and(|name| name.trim() == "sleep")
    });

    let green = lab.pair_document("green", 3, 3, [0, 1]);
    for round in 0..5 {
        // It dies during a change: a network is added, changed or removed.
        let document = match round % 3 {
            0 => green.yaml(),
            1 => green.clone().with("weight", "3").yaml(),
            _ => pairs[1].document.clone().with("routes", "[{to: 10.66.0.0/16, via: 10.2.2.2}]").yaml(),
        };
        let file = lab.folder().join("change.yaml");
        daemon::write(&file, &document);
        let mut change = cli.command(&["apply", "-f", &file.to_string_lossy()]);
        let quiet = change.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut change = quiet.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random(150)));
        daemon.kill();
        let _ = change.wait();
        daemon.replace(&lab);
        pairs.iter().for_each(Pair::warm_up);
        let now = vids(&cli);
        assert!(before.iter().all(|one| now.contains(one)), "round {round}: {before:?} became {now:?}");
        // All or nothing: the running networks are the stored ones.
        let again = cli.json(&["get", "networks"]);
        let states = again.as_array().into_iter().flatten().all(|network| network["state"] == "running");
        assert!(states, "round {round}: {again}");
    }
    assert_eq!(namespace(&cli), inside, "the namespace is the one that was there");
    assert!(owner.try_wait().unwrap().is_none(), "what ran in it goes on");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(cli.happened("adopted"), "{:?}", cli.events());
    // Networks that are not in the documents are removed.
    let _ = cli.run_with(&["apply", "-f", "-", "--prune"], &documents).expect_ok();
    let mut wanted: Vec<String> = pairs.iter().map(|pair| format!("hue-{}", pair.name())).collect();
    wanted.sort();
    assert_eq!(daemon::namespaces(&lab), wanted);
    daemon.down(&[]);
    assert_eq!(daemon::namespaces(&lab), Vec::<String>::new());
    assert_eq!(daemon::cgroups(&lab), Vec::<std::path::PathBuf>::new());
}

/// A lost store does not delete networks: the daemon uses its copy of the documents, or does not start.
#[test]
fn a_store_that_is_gone_deletes_no_network() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let mut daemon = Daemon::start(&lab, &documents);
    let cli = daemon.cli.clone();
    pairs.iter().for_each(Pair::warm_up);
    let mut owner = cli.command(&["exec", pairs[0].name(), "--", "sleep", "600"]).spawn().unwrap();
    until("it runs in the namespace", 20, || {
        std::fs::read_to_string(format!("/proc/{}/comm", owner.id())).is_ok_and(|name| name.trim() == "sleep")
    });
    let store = store_file(&cli.state_dir);
    for what in ["empty", "missing"] {
        daemon.kill();
        match what {
            "empty" => std::fs::File::create(&store).unwrap().set_len(0).unwrap(),
            _ => std::fs::remove_file(&store).unwrap(),
        }
        daemon.replace(&lab);
        pairs.iter().for_each(Pair::warm_up);
        assert_eq!(cli.json(&["get", "networks"]).as_array().map(Vec::len), Some(2), "{what}");
        assert!(cli.happened("trouble"), "{what}: {:?}", cli.events());
        assert!(owner.try_wait().unwrap().is_none(), "{what}: what ran goes on");
    }
    // Without the copy, their purpose is unknown: they stay until the administrator allows their removal.
    daemon.kill();
    std::fs::remove_file(&store).unwrap();
    std::fs::remove_file(cli.state_dir.join("last-good.json")).unwrap();
    let refused = lab.node().run_command(&mut cli.command(&["up", "--detach"]));
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains(pairs[0].name()) && refused.stderr.contains("up --empty"), "{refused}");
    assert_eq!(daemon::namespaces(&lab).len(), 2);
    assert!(owner.try_wait().unwrap().is_none(), "what ran goes on");
    let _ = lab.node().run_command(&mut cli.command(&["up", "--detach", "--empty"])).expect_ok();
    until("nothing is left", 20, || daemon::namespaces(&lab).is_empty());
    let _ = cli.run(&["down"]).expect_ok();
    let _ = owner.wait();
}

#[test]
fn going_down_removes_everything_or_keeps_it() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let mut first = Daemon::start(&lab, &documents);
    let cli = first.cli.clone();
    pairs.iter().for_each(Pair::warm_up);
    let routes = "ip route add 10.99.0.0/16 via 10.1.2.2".split(' ').collect::<Vec<_>>();
    let _ = cli.exec(pairs[0].name(), &routes).expect_ok();
    first.down(&["--keep"]);
    assert_eq!(daemon::namespaces(&lab).len(), 2);
    // Its socket is gone: there is no answer, and the command line says what to do.
    let output = cli.run(&["get", "networks"]).expect_code(5);
    assert!(output.stderr.contains("hueplane up"), "{output}");

    first.replace(&lab);
    pairs.iter().for_each(Pair::warm_up);
    let kept = cli.exec(pairs[0].name(), &["ip", "route"]).expect_ok();
    assert!(kept.stdout.contains("10.99.0.0/16"), "a route that the owner set is gone: {kept}");
    // A namespace whose network is removed while no daemon runs is removed at the next start.
    first.down(&[]);
    assert_eq!(daemon::namespaces(&lab), Vec::<String>::new());
    assert_eq!(daemon::cgroups(&lab), Vec::<std::path::PathBuf>::new());

    // The configuration stays: a third daemon sets it all up again. Detached, it is a process of its own.
    let shown = lab.node().run_command(&mut cli.command(&["up", "--detach"])).expect_ok();
    assert!(cli.socket().exists(), "{shown}");
    pairs.iter().for_each(Pair::warm_up);
    let _ = cli.run(&["down"]).expect_ok();
    until("nothing is left", 20, || daemon::namespaces(&lab).is_empty());
    // SIGTERM has the same effect as `down`.
    first.replace(&lab);
    pairs.iter().for_each(Pair::warm_up);
    first.signal(nix::sys::signal::Signal::SIGTERM);
    until("it ends by itself", 20, || first.ended() == Some(Some(0)));
}

#[test]
fn a_second_daemon_is_refused_and_a_stale_socket_is_not_in_the_way() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let cli = Cli::new(&lab);
    // A killed daemon leaves a socket without a listener and a lock file without a holder.
    std::fs::create_dir_all(&cli.run_dir).unwrap();
    drop(UnixListener::bind(cli.socket()).unwrap());
    let output = cli.run(&["get", "networks"]).expect_code(5);
    assert!(output.stderr.contains("hueplane up"), "{output}");
    let first = Daemon::start(&lab, &documents);
    pairs.iter().for_each(Pair::warm_up);

    let flow = Flow::start(&pairs[0].left, &pairs[0].right, 500, 100);
    let second = lab.node().run_command(&mut cli.command(&["up"])).expect_code(5);
    assert!(
        second.stderr.contains(&first.pid().to_string()) || second.stderr.contains("running"),
        "{second}"
    );
    // A second daemon with the same store and another socket is refused, too.
    let mut other = cli.command(&["up", "--run-dir", &lab.folder().join("other").to_string_lossy()]);
    let second = lab.node().run_command(&mut other);
    assert!(!second.ok(), "two daemons with one store: {second}");
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");
    assert_eq!(cli.json(&["get", "networks"]).as_array().map(Vec::len), Some(2));
}

#[test]
fn without_root_it_reports_an_error() {
    if !can_run(&["setpriv"]) {
        return;
    }
    let lab = Lab::new(1);
    let cli = Cli::new(&lab);
    // In a place where every user may read and run it.
    let binary = lab.folder().join("hueplane");
    // Copied by a program: a file that this process wrote may still be open in a child of another test.
    let _ = shell::run(shell::command("cp").arg(daemon::binary()).arg(&binary)).expect_ok();
    let _ = shell::run(shell::command("chmod").args(["0755"]).arg(lab.folder()).arg(&binary)).expect_ok();
    let nobody = |arguments: &[&str]| {
        let mut command = shell::command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary).args(arguments);
        command.env("HUEPLANE_RUN_DIR", &cli.run_dir).env("HUEPLANE_STATE_DIR", &cli.state_dir);
        shell::run(&mut command)
    };
    let output = nobody(&["up"]);
    assert!(!output.ok() && output.stderr.to_lowercase().contains("root"), "{output}");
    assert!(!cli.run_dir.exists() && !cli.state_dir.exists(), "it left something behind");
    let output = nobody(&["doctor", "-o", "json"]);
    assert!(output.json().to_string().to_lowercase().contains("root"), "{output}");
    // Offline commands need no rights.
    let document = lab.pair_document("red", 1, 1, [0, 0]).yaml();
    daemon::write(&lab.folder().join("red.yaml"), &document);
    let _ = nobody(&["validate", "-f", &lab.folder().join("red.yaml").to_string_lossy()]).expect_ok();

    let _daemon = Daemon::start(&lab, &lab.node_document(""));
    let output = nobody(&["get", "networks"]);
    assert!(output.code == 5 && output.stderr.contains("root"), "{output}");
}

/// Documents of networks on two ports, numbered from 1.
fn many(lab: &Lab, count: u8) -> String {
    let document = |n| lab.pair_document(&format!("n{n}"), n, n, [0, 1]).yaml();
    all(&std::iter::once(lab.node_document("")).chain((1..=count).map(document)).collect::<Vec<_>>())
}

#[test]
fn the_limit_of_open_files_is_raised_or_reported() {
    if !can_run(&["prlimit", "setpriv"]) {
        return;
    }
    let lab = Lab::new(2);
    let limited = |words: &[&str]| {
        let through = words.iter().map(|&word| word.to_owned()).collect();
        Cli { through, ..Cli::new(&lab) }
    };
    let states = |cli: &Cli| {
        let networks = cli.json(&["get", "networks"]);
        let state = |network: &serde_json::Value| network["state"].as_str().unwrap_or("").to_owned();
        networks.as_array().into_iter().flatten().map(state).collect::<Vec<_>>()
    };
    // 24 networks need more files than the limit allows.
    let mut daemon = Daemon::start_with(&lab, &limited(&["prlimit", "--nofile=128:"]), &[]);
    daemon.cli.apply(&many(&lab, 24), &[]);
    assert_eq!(states(&daemon.cli), ["running"; 24]);
    daemon.down(&[]);

    // Without the right to raise the limit, a change that needs too many files is refused as a whole; running networks continue and
    // can be deleted.
    let words = [
        "prlimit",
        "--nofile=720:720",
        "setpriv",
        "--bounding-set=-sys_resource",
        "--inh-caps=-sys_resource",
    ];
    let cli = Cli { state_dir: lab.folder().join("other"), ..limited(&words) };
    let daemon = Daemon::start_with(&lab, &cli, &[]);
    daemon.cli.apply(&many(&lab, 2), &[]);
    let file = lab.folder().join("many.yaml");
    daemon::write(&file, &many(&lab, 24));
    for more in [&["--dry-run"][..], &[]] {
        let output = daemon.cli.run(&[&["apply", "-f", &file.to_string_lossy()], more].concat());
        assert!(output.code == 4 && output.stderr.contains("open files"), "{output}");
        assert!(output.stderr.contains("24 networks") && output.stderr.contains("720"), "{output}");
    }
    assert_eq!(states(&daemon.cli), ["running"; 2]);
    let first = states(&daemon.cli).len();
    let name = daemon.cli.json(&["get", "networks"])[0]["name"].as_str().unwrap().to_owned();
    let _ = daemon.cli.run(&["delete", "network", &name]).expect_ok();
    assert_eq!(states(&daemon.cli).len(), first - 1);
}

/// A small file system in memory, unmounted when dropped.
pub struct SmallDisk<'l>(&'l Path);

impl<'l> SmallDisk<'l> {
    pub fn mount(at: &'l Path, kib: u32) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={kib}k");
        let mount = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        let _ = shell::run(shell::command("mount").args(mount).arg(at)).expect_ok();
        Self(at)
    }

    /// Fills the file system to the last byte. Returns the file that does so.
    pub fn fill(&self) -> std::path::PathBuf {
        let filler = self.0.join("filler");
        let _ = shell::run(
            shell::command("dd").args(["if=/dev/zero", "bs=4k"]).arg(format!("of={}", filler.display())),
        );
        filler
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = shell::run(shell::command("umount").arg("-l").arg(self.0));
    }
}

#[test]
fn a_full_disk_refuses_changes_and_stops_nothing() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let cli = Cli::new(&lab);
    let disk = SmallDisk::mount(&cli.state_dir, 16 * 1024);
    let mut daemon = Daemon::start(&lab, &documents);
    pairs.iter().for_each(Pair::warm_up);
    let flow = Flow::start(&pairs[0].left, &pairs[0].right, 500, 100);
    let filler = disk.fill();

    // Documents are applied until one no longer fits, not even in the free space inside the store.
    let mut refused = None;
    for n in 0..40 {
        let neighbours = (2..250)
            .map(|h| format!("{{port: left, address: 10.3.1.{h}, mac: \"02:00:00:00:{n:02x}:{h:02x}\"}}"));
        let list = format!("[{}]", neighbours.collect::<Vec<_>>().join(", "));
        let document = lab.pair_document("green", 3, 3, [0, 1]).with("neighbours", &list);
        let mut document = document;
        document.name = lab.name(&format!("green{n}"));
        for (side, port) in document.ports.iter_mut().enumerate() {
            port.mac = format!("02:72:03:{side:02x}:{n:02x}:01");
            port.addresses = vec![format!("10.{}.{side}.1/24", 100 + n)];
        }
        let yaml = document.yaml().replace("10.3.1.", &format!("10.{}.0.", 100 + n));
        let output = cli.run_with(&["apply", "-f", "-"], &yaml);
        if !output.ok() {
            refused = Some(output);
            break;
        }
    }
    let output = refused.expect("a full disk took 40 documents");
    assert!(output.stderr.to_lowercase().contains("space") || output.stderr.contains("disk"), "{output}");
    assert!(daemon.ended().is_none());
    let before = cli.json(&["get", "networks"]);
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0, "{report}");

    // Killed with a full disk, it restarts with the configuration that was in force.
    daemon.kill();
    daemon.replace(&lab);
    pairs.iter().for_each(Pair::warm_up);
    let names = |json: &serde_json::Value| -> Vec<String> {
        json.as_array().into_iter().flatten().map(|network| network["name"].to_string()).collect()
    };
    assert_eq!(names(&cli.json(&["get", "networks"])), names(&before));
    // With free space again, changes are accepted.
    std::fs::remove_file(&filler).unwrap();
    cli.apply(&pairs[0].document.clone().with("weight", "7").yaml(), &[]);
}

#[test]
fn a_change_larger_than_the_disk_takes_no_room_and_a_delete_always_works() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let cli = Cli::new(&lab);
    let disk = SmallDisk::mount(&cli.state_dir, 4096);
    let mut daemon = Daemon::start(&lab, &documents);
    pairs.iter().for_each(Pair::warm_up);
    let status = || cli.json(&["get", "nodes"])[0]["status"].clone();
    assert_eq!(status()["health"], "running");

    // A change that is larger than the disk is refused each time, and takes no space.
    let routes: String = (0..100_000)
        .map(|number| {
            format!("\n  - {{to: 11.{}.{}.{}/32, port: v}}", number >> 16, number >> 8 & 255, number & 255)
        })
        .collect();
    let large = format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: large}}\nspec:\n  plane: {{kind: ipv4}}\n  resources: \
         {{cpu: 0.1, memory: 64Mi}}\n  ports: [{{name: v, port: p0, mac: '02:00:00:00:77:01', addresses: [10.77.0.1/24]}}]\n  \
         routes:{routes}\n"
    );
    for _ in 0..2 {
        let refused = cli.run_with(&["apply", "-f", "-"], &large).expect_code(4);
        assert!(refused.stderr.contains("the previous state stays in force"), "{refused}");
    }
    until("it is as before", 20, || status()["health"] == "running");
    let weighted = pairs[1].document.clone().with("weight", "3").yaml();
    let _ = cli.apply(&weighted, &[]);

    // On a disk that others have filled, a delete works, and the health says why other changes fail.
    let filler = disk.fill();
    let refused = cli.run_with(&["apply", "-f", "-"], &large).expect_code(4);
    assert!(refused.stderr.contains("the previous state stays in force"), "{refused}");
    let _ = cli.run(&["delete", "network", pairs[1].name()]).expect_ok();
    until("it says that the disk is full", 20, || {
        let status = status();
        status["health"] == "degraded" && status["problems"].to_string().contains("the disk is full")
    });
    pairs[0].warm_up();
    daemon.kill();
    daemon.replace(&lab);
    pairs[0].warm_up();
    assert_eq!(
        cli.json(&["get", "networks"]).as_array().map(Vec::len),
        Some(1),
        "the deleted one stays deleted"
    );

    // With free space again the daemon recovers by itself.
    std::fs::remove_file(filler).unwrap();
    until("it is well again", 40, || status()["health"] == "running");
    let _ = cli.apply(&pairs[1].document.yaml(), &[]);
    pairs.iter().for_each(Pair::warm_up);
    daemon.down(&[]);
}

#[test]
fn a_damaged_store_is_reported_and_the_last_good_state_used() {
    if !can_run(&[]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let mut first = Daemon::start(&lab, &documents);
    let cli = first.cli.clone();
    pairs.iter().for_each(Pair::warm_up);
    // A second change, so that there is a state before the last.
    cli.apply(&pairs[0].document.clone().with("weight", "3").yaml(), &[]);
    for (round, damage) in ["zeros", "cut", "nonsense"].iter().enumerate() {
        first.down(&["--keep"]);
        let store = store_file(&cli.state_dir);
        let mut bytes = std::fs::read(&store).unwrap();
        match *damage {
            "zeros" => bytes.iter_mut().take(4096).for_each(|byte| *byte = 0),
            "cut" => bytes.truncate(bytes.len() / 3),
            _ => bytes.fill(0x5a),
        }
        std::fs::write(&store, &bytes).unwrap();
        first.replace(&lab);
        pairs.iter().for_each(Pair::warm_up);
        let networks = cli.json(&["get", "networks"]);
        assert_eq!(networks.as_array().map(Vec::len), Some(2), "{damage}: {networks}");
        let said = first.log().to_lowercase().contains("damaged") || cli.happened("trouble");
        assert!(said, "{damage}: not a word about it:\n{}\n{:?}", first.log(), cli.events());
        // The store can be written again.
        cli.apply(&pairs[0].document.clone().with("weight", &(4 + round).to_string()).yaml(), &[]);
    }
}

/// The largest file of the state directory that is not a copy.
pub fn store_file(folder: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let store = files.filter(|path| path.extension().is_some_and(|end| end == "redb"));
    store.max_by_key(|path| path.metadata().unwrap().len()).expect("the store is a .redb file")
}

#[test]
fn an_interface_belongs_to_one_daemon() {
    if !can_run(&["python3"]) {
        return;
    }
    let (lab, pairs, documents) = lab();
    let mut first = Daemon::start(&lab, &documents);
    pairs.iter().for_each(Pair::warm_up);

    // A second daemon, with places of its own, on the same interfaces and one more.
    let own = lab.folder().join("second");
    let cli = Cli { run_dir: own.join("run"), state_dir: own.join("state"), ..Cli::new(&lab) };
    lab.node().ip(&["link", "add", "free", "type", "veth", "peer", "name", "far"]);
    lab.node().ip(&["link", "set", "free", "up"]);
    let ports = [lab.ports(), &["free".to_owned()]].concat();
    let file = lab.folder().join("second.yaml");
    let green = lab.pair_document("green", 3, 3, [0, 1]).yaml();
    daemon::write(&file, &all(&[document::node(&lab.name("second"), &ports, ""), green]));
    let prefix = format!("hue-{}", lab.name("second-"));
    let mut second =
        Daemon::start_with(&lab, &cli, &["-f", &file.to_string_lossy(), "--namespace-prefix", &prefix]);
    let port = |name: &str| {
        let ports = cli.json(&["get", "ports"]);
        let found = ports.as_array().into_iter().flatten().find(|port| port["name"] == name);
        found.cloned().unwrap_or_else(|| panic!("{name}: {ports}"))
    };
    for name in lab.ports() {
        let refused = port(name);
        let error = refused["error"].as_str().unwrap_or("").to_owned();
        assert_eq!(refused["state"], "down", "{refused}");
        let socket = first.cli.socket();
        for part in [&format!("interface {name}"), &first.pid().to_string(), &*socket.to_string_lossy()] {
            assert!(error.contains(part), "'{part}' is not in: {error}");
        }
        let event = |event: &serde_json::Value| {
            event["kind"] == "port_down" && event["port"] == **name && event["message"] == *error
        };
        let events = cli.events();
        assert!(events.iter().any(event), "no event: {events:?}");
    }
    let shown = cli.run(&["get", "ports"]).expect_ok();
    assert!(shown.stdout.contains("another hueplane daemon"), "{shown}");
    // Its other ports work, and the first daemon forwards as before.
    assert_eq!(port("free")["state"], "up");
    let flow = Flow::start(&pairs[0].left, &pairs[0].right, 500, 200);
    std::thread::sleep(Duration::from_secs(1));
    let report = flow.stop();
    assert!(report.sent > 0 && report.lost() == 0 && report.duplicated == 0, "{report}");

    // The kernel frees them when the first one is killed; nothing has to be removed.
    first.kill();
    until("the second daemon has the ports", 60, || {
        lab.ports().iter().all(|name| port(name)["state"] == "up")
    });
    // Now the first is the one that has to wait, and says so.
    first.replace(&lab);
    let shown = first.cli.run(&["get", "ports"]).expect_ok();
    assert!(shown.stdout.contains(&second.pid().to_string()), "{shown}");
    second.down(&[]);
    let up = || {
        let ports = first.cli.json(&["get", "ports"]);
        ports.as_array().into_iter().flatten().all(|port| port["state"] == "up")
    };
    until("the first daemon has its ports again", 60, up);
    pairs.iter().for_each(Pair::warm_up);

    // Another user can bind the name, but not block the port with it. It listens in the node's namespace.
    first.kill();
    let index = lab.node().run("ip", &["-o", "link", "show", &lab.ports()[0]]).expect_ok().stdout;
    let program = format!(
        "import os, socket, time\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n\
         s.bind('\\0hueplane-port-{}')\ns.listen(9)\nprint('ready', flush=True)\ntime.sleep(600)",
        index.split(':').next().unwrap_or("")
    );
    let mut command = shell::command("python3");
    command.args(["-c", &program]);
    let mut stranger = lab.node().spawn(command.stdout(std::process::Stdio::piped()));
    let mut ready = [0; 5];
    std::io::Read::read_exact(stranger.stdout.as_mut().unwrap(), &mut ready).unwrap();
    first.replace(&lab);
    let ports = first.cli.json(&["get", "ports"]);
    let found = ports.as_array().into_iter().flatten().find(|port| port["name"] == *lab.ports()[0]).unwrap();
    let note = found["note"].as_str().unwrap_or("");
    assert_eq!(found["state"], "up", "{found}");
    assert!(note.contains("user 65534") && note.contains(&stranger.id().to_string()), "{found}");
    pairs.iter().for_each(Pair::warm_up);
    let _ = stranger.kill();
    let _ = stranger.wait();
}
