//! The daemon is killed (`SIGKILL`) at random moments, hundreds of times, while a client changes everything that it stores.
//!
//! A run consists of worlds: a lab, a daemon that starts with nothing, a sequence of changes and kills, and `down`. An
//! oracle keeps the acknowledged state. One change can be in flight when the daemon dies: it is then in force as a whole,
//! or not at all. Besides kills, the disk of the store fills up and becomes free again, and the store is cut, emptied or
//! deleted between a death and the next start. Invariants: see [`World::comes_back`] and [`World::leaves_nothing`].
//!
//! `HUE_CRASH_SEED=7` repeats one run's choices (the moments of kills vary), `HUE_CRASH_KILLS=100` sets the number of kills:
//! by default 6, and 1,000 with `HUEPLANE_FULL=1`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::{Cli, Daemon, Deadline, Lab, Output, can_run, daemon, until, until_some};
use hue_testdata::Random;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::card::node;
use crate::daemon::{SmallDisk, store_file};

/// Kills in an ordinary run.
const KILLS: usize = 6;
/// Kills in a full run.
const KILLS_FULL: usize = 1000;
/// Most kills in one world.
const KILLS_A_WORLD: usize = 50;
/// Networks that come and go.
const NETWORKS: u8 = 6;
/// Images that the card changes between.
const IMAGES: [&str; 2] = ["default", "tcam3"];
/// Longest time that a daemon lives while the client makes changes, milliseconds.
const LIFE_MS: usize = 1500;
/// Most changes of a daemon that dies within the last of them.
const CHANGES: usize = 4;
/// Longest time from the start of that change to the kill, milliseconds.
const CHANGE_MS: usize = 120;
/// Longest time that a daemon lives that is killed in its start, milliseconds.
const START_MS: usize = 600;
/// Size of the small disk of every second world.
const DISK_KIB: u32 = 4096;
/// Exit codes of commands that change nothing: not possible now, refused.
const REFUSED: [i32; 2] = [1, 4];
/// Exit code of a command that no daemon answers.
const NO_ANSWER: i32 = 5;

/// A network's document, as far as changes differ.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stored {
    /// Determines the network's weight and route: a mixture of two changes is no version.
    version: u64,
    weight: u64,
    placement: String,
}

/// Everything that the daemon stores.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct State {
    image: String,
    networks: BTreeMap<String, Stored>,
}

impl State {
    /// As the daemon reports it.
    fn of(config: &Value) -> Self {
        let mut state = Self::default();
        for document in config["documents"].as_array().into_iter().flatten() {
            let spec = &document["spec"];
            if document["kind"] == "Node" {
                state.image = spec["card"]["twin"]["image"].as_str().unwrap_or_default().to_owned();
                continue;
            }
            let route = spec["routes"][0]["to"].as_str().unwrap_or_default();
            let bytes: Vec<u64> = route.split(['.', '/']).filter_map(|part| part.parse().ok()).collect();
            let version = bytes.get(1..3).map_or(0, |bytes| bytes[0] << 8 | bytes[1]);
            let weight = spec["weight"].as_u64().unwrap_or(1);
            let placement = spec["placement"].as_str().unwrap_or("auto").to_owned();
            let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            state.networks.insert(name, Stored { version, weight, placement });
        }
        state
    }
}

/// The weight of a version.
const fn weight(version: u64) -> u64 {
    2 + version % 61
}

/// A change.
enum Change {
    Apply(Vec<(u8, Stored)>),
    Delete(String),
    Move(String, &'static str),
    Load(&'static str),
}

/// A process that is killed soon.
struct Killer {
    thread: JoinHandle<()>,
    /// Whether it has been killed, or is now.
    fired: Arc<AtomicBool>,
}

impl Killer {
    /// Kills the daemon after a time. It must not be waited for before [`Killer::end`].
    fn start(daemon: &Daemon, after: Duration) -> Self {
        let fired = Arc::new(AtomicBool::new(false));
        let (pid, shared) = (daemon.pid(), Arc::clone(&fired));
        let thread = std::thread::spawn(move || {
            std::thread::sleep(after);
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
            assert!(state.is_some_and(|state| state != 'Z'), "the daemon ended by itself: {stat}");
            shared.store(true, Ordering::SeqCst);
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
        });
        Self { thread, fired }
    }

    fn fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }

    #[track_caller]
    fn end(self, daemon: &mut Daemon) {
        if self.thread.join().is_err() {
            panic!("the daemon ended by itself");
        }
        daemon.kill();
    }
}

/// A lab with a daemon, and what it has acknowledged.
struct World<'l> {
    lab: &'l Lab,
    cli: &'l Cli,
    disk: Option<&'l SmallDisk<'l>>,
    daemon: Daemon,
    random: Random,
    state: State,
    /// The state in which the change in flight results.
    in_flight: Option<State>,
    version: u64,
    filler: Option<PathBuf>,
    /// Whether the copy of the store may lack an acknowledged change, because the disk was full.
    copy_is_old: bool,
    /// What happened, for the report.
    counts: BTreeMap<&'static str, usize>,
}

impl World<'_> {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn name(&self, n: u8) -> String {
        self.lab.name(&format!("n{n}"))
    }

    /// A change that is possible, and the state in which it results.
    fn choose(&mut self) -> (Change, State) {
        let mut next = self.state.clone();
        let names: Vec<String> = next.networks.keys().cloned().collect();
        let other: Vec<&String> = names.iter().filter(|name| !name.ends_with("keep")).collect();
        let change = match self.random.below(100) {
            0..15 if !other.is_empty() => {
                let name = other[self.random.below(other.len())].clone();
                next.networks.remove(&name);
                Change::Delete(name)
            }
            15..35 if !names.is_empty() => {
                let name = names[self.random.below(names.len())].clone();
                let to = self.random.pick(&["card", "soft"]);
                to.clone_into(&mut next.networks.get_mut(&name).unwrap().placement);
                Change::Move(name, to)
            }
            35..45 => {
                let image = self.random.pick(&IMAGES);
                image.clone_into(&mut next.image);
                Change::Load(image)
            }
            _ => {
                self.version += 1;
                let numbers: BTreeSet<u8> = (0..1 + self.random.below(3))
                    .map(|_| 2 + u8::try_from(self.random.below(usize::from(NETWORKS))).unwrap())
                    .collect();
                let placement = self.random.pick(&["auto", "auto", "card", "soft"]).to_owned();
                let stored = Stored { version: self.version, weight: weight(self.version), placement };
                let all: Vec<(u8, Stored)> = numbers.iter().map(|n| (*n, stored.clone())).collect();
                next.networks.extend(all.iter().map(|(n, stored)| (self.name(*n), stored.clone())));
                Change::Apply(all)
            }
        };
        (change, next)
    }

    /// The document of network `n`.
    fn document(&self, n: u8, stored: &Stored) -> String {
        let route =
            format!("[{{to: 11.{}.{}.0/24, via: 10.{n}.1.2}}]", stored.version >> 8, stored.version & 255);
        let document = self.lab.pair_document(&format!("n{n}"), n, n, [0, 1]).with("routes", &route);
        document.with("weight", &stored.weight.to_string()).with("placement", &stored.placement).yaml()
    }

    fn make(&self, change: &Change) -> Output {
        match change {
            Change::Apply(networks) => {
                let documents: Vec<String> =
                    networks.iter().map(|(n, stored)| self.document(*n, stored)).collect();
                self.cli.run_with(&["apply", "-f", "-"], &all(&documents))
            }
            Change::Delete(name) => self.cli.run(&["delete", "network", name]),
            Change::Move(name, to) => self.cli.run(&["migrate", name, "--to", to]),
            Change::Load(image) => self.cli.run(&["image", "load", image]),
        }
    }

    /// Fills the disk, or frees it.
    fn turn_disk(&mut self) {
        let Some(disk) = self.disk else { return };
        match self.filler.take() {
            Some(filler) => std::fs::remove_file(filler).unwrap(),
            None => self.filler = Some(disk.fill()),
        }
        self.count("disk filled or freed");
    }

    /// Makes changes until the daemon is killed: at any time, or within a certain change.
    fn change_until_killed(&mut self) {
        let mut killer = None;
        let mut whole = if self.random.chance(40) { 0 } else { 1 + self.random.below(CHANGES) };
        if whole == 0 {
            let life = Duration::from_millis(self.random.below(LIFE_MS) as u64);
            killer = Some(Killer::start(&self.daemon, life));
        }
        loop {
            if self.random.chance(10) {
                self.turn_disk();
            }
            let (change, next) = self.choose();
            whole = whole.saturating_sub(1);
            if whole == 0 && killer.is_none() {
                let after = Duration::from_millis(self.random.below(CHANGE_MS) as u64);
                killer = Some(Killer::start(&self.daemon, after));
            }
            let output = self.make(&change);
            match output.code {
                0 => {
                    self.copy_is_old = self.filler.is_some();
                    self.state = next;
                    self.count("acknowledged");
                }
                code if REFUSED.contains(&code) => self.count("refused"),
                _ => {
                    // It gets no answer only because the daemon is dead or dies now.
                    assert_eq!(output.code, NO_ANSWER, "{output}");
                    let deadline = Deadline::seconds(5);
                    let fired = || killer.as_ref().is_some_and(Killer::fired);
                    while !fired() && !deadline.over() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    assert!(fired(), "{output}");
                    self.in_flight = Some(next);
                    break;
                }
            }
        }
        if let Some(killer) = killer {
            killer.end(&mut self.daemon);
        }
        self.count("killed");
    }

    /// Cuts, empties or deletes the database of a dead daemon.
    fn damage(&mut self) {
        if self.copy_is_old || self.filler.is_some() {
            return;
        }
        let file = store_file(&self.cli.state_dir);
        let length = file.metadata().unwrap().len();
        match self.random.below(4) {
            0 => std::fs::remove_file(file).unwrap(),
            1 => drop(File::create(file).unwrap()),
            _ => {
                let left = self.random.below(usize::try_from(length).unwrap()) as u64;
                File::options().write(true).open(file).unwrap().set_len(left).unwrap();
            }
        }
        self.count("store damaged");
    }

    /// Leaves what a daemon leaves of a namespace if it is killed between the file and its mount.
    fn leave_file(&mut self) {
        let path = Path::new("/run/netns").join(format!("hue-{}", self.lab.name("gone")));
        let file = File::options().write(true).create(true).truncate(false).mode(0o444).open(path);
        drop(file.unwrap());
        self.count("file left");
    }

    /// Starts the daemon again, and checks that it has what was acknowledged. All networks come to run, if there is time.
    fn comes_back(&mut self, settle: bool) {
        self.daemon.respawn(self.lab);
        let config = until_some("the daemon answers", 20, || {
            if let Some(code) = self.daemon.ended() {
                panic!("the daemon ended with {code:?}:\n{}", self.daemon.log());
            }
            let output = self.cli.run(&["get", "config", "-o", "json"]);
            output.ok().then(|| output.json())
        });
        let found = State::of(&config);
        let whole = found == self.state || self.in_flight.as_ref() == Some(&found);
        assert!(whole, "found {found:#?}\nacknowledged {:#?}\nin flight {:#?}", self.state, self.in_flight);
        if self.in_flight.as_ref() == Some(&found) && found != self.state {
            self.count("in flight and in force");
        }
        (self.state, self.in_flight) = (found, None);
        // What an administrator removes after a look.
        for entry in std::fs::read_dir(&self.cli.state_dir).unwrap().flatten() {
            if entry.file_name().to_string_lossy().contains(".damaged-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        if settle {
            self.settles();
        }
    }

    /// All networks run, and nothing else is there.
    fn settles(&self) {
        let mut shown = String::new();
        let wanted: BTreeSet<&str> = self.state.networks.keys().map(String::as_str).collect();
        let deadline = Deadline::seconds(60);
        loop {
            let output = self.cli.run(&["get", "networks", "-o", "json"]);
            if output.ok() {
                let json = output.json();
                let list = json.as_array().cloned().unwrap_or_default();
                let names: BTreeSet<&str> = list.iter().filter_map(|one| one["name"].as_str()).collect();
                if names == wanted && list.iter().all(|one| one["state"] == "running") {
                    break;
                }
                shown = json.to_string();
            }
            assert!(!deadline.over(), "not all of {wanted:?} run: {output} {shown}\n{}", self.daemon.log());
            std::thread::sleep(Duration::from_millis(30));
        }
        let namespaces: Vec<String> = wanted.iter().map(|name| format!("hue-{name}")).collect();
        until("only the networks have namespaces", 10, || daemon::namespaces(self.lab) == namespaces);
        for (name, stored) in &self.state.networks {
            assert_eq!(stored.weight, weight(stored.version), "{name}");
        }
    }
}

/// What the node's namespace has besides the daemon: interfaces with their programs, filters, and sockets.
fn system(lab: &Lab) -> Vec<String> {
    let lines = |program: &str, arguments: &[&str]| {
        let output = lab.node().run(program, arguments);
        output.stdout.lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = lines("ip", &["-o", "link", "show"]);
    all.extend(lines("ip", &["-o", "address", "show"]));
    all.extend(lines("tc", &["qdisc", "show"]));
    all.extend(lines("ip", &["-o", "maddress", "show"]));
    all.extend(lines("ss", &["-Hxl"]).into_iter().filter(|line| line.contains("hueplane")));
    all
}

/// The same before there is a daemon, once all ports are up: the kernel says so a moment after it has made a wire.
fn system_before(lab: &Lab) -> Vec<String> {
    until("all ports are up", 10, || {
        let is_up =
            |port: &String| lab.node().run("ip", &["link", "show", port]).stdout.contains(" state UP ");
        lab.ports().iter().all(is_up)
    });
    system(lab)
}

/// Processes whose command line or environment names a folder: ids, command lines, and what their threads do.
fn processes_of(folder: &Path) -> Vec<String> {
    let text = folder.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let own = pid == std::process::id().to_string();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let names = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&text);
        if !own && !line.is_empty() && (names(&line) || names(&environment)) {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("{pid}: {line}, threads {}", threads_of(&entry.path()).join(", ")));
        }
    }
    found
}

/// The threads of a process: their names, and where in the kernel they wait.
fn threads_of(process: &Path) -> Vec<String> {
    let tasks = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let of = |task: &Path, file: &str| {
        std::fs::read_to_string(task.join(file)).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    tasks.map(|task| format!("{} in {}", of(&task.path(), "comm"), of(&task.path(), "wchan"))).collect()
}

/// Waits until no process of a daemon with this state directory is left.
#[track_caller]
fn no_process_is_left(state_dir: &Path) {
    let deadline = Deadline::seconds(30);
    loop {
        let left = processes_of(state_dir);
        if left.is_empty() {
            return;
        }
        assert!(!deadline.over(), "processes are left: {left:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Files for shared memory and large pages.
fn memory_files() -> BTreeSet<String> {
    let folders = ["/dev/shm", "/dev/hugepages", "/sys/fs/bpf"];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.path().to_string_lossy().into_owned());
    names.filter(|name| name.contains("hue")).collect()
}

/// One world, with so many kills.
fn world(number: usize, seed: u64, kills: usize) -> BTreeMap<&'static str, usize> {
    let lab = Lab::new(2);
    let cli = Cli { images: Some(hue_testdata::images(&IMAGES)), ..Cli::new(&lab) };
    let disk = (number % 2 == 1).then(|| SmallDisk::mount(&cli.state_dir, DISK_KIB));
    let (before, files) = (system_before(&lab), memory_files());
    let keep = lab.pair("keep", 1, 1, [0, 1]);
    let mut random = Random::new(seed);

    // Killed in its first starts, it has nothing to lose, and starts again.
    let mut daemon = Daemon::spawn(&lab, &cli, &[]);
    let first = 1 + kills / 10;
    for _ in 0..first {
        let after = Duration::from_millis(random.below(START_MS / 3) as u64);
        Killer::start(&daemon, after).end(&mut daemon);
        daemon.respawn(&lab);
    }
    until("the daemon answers", 20, || {
        assert!(daemon.ended().is_none(), "the daemon ended:\n{}", daemon.log());
        cli.run(&["get", "nodes"]).ok()
    });
    let documents =
        all(&[node(&lab, IMAGES[0]), keep.document.clone().with("weight", &weight(0).to_string()).yaml()]);
    let _ = cli.apply(&documents, &[]);
    let state = State::of(&cli.json(&["get", "config"]));
    assert_eq!((state.networks.len(), &*state.image), (1, IMAGES[0]));
    keep.warm_up();
    let mut inside: Child = cli.command(&["exec", keep.name(), "--", "sleep", "36000"]).spawn().unwrap();
    until("it runs in the namespace", 20, || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", inside.id()));
        name.is_ok_and(|name| name.trim() == "sleep")
    });

    let mut world = World {
        lab: &lab,
        cli: &cli,
        disk: disk.as_ref(),
        daemon,
        random,
        state,
        in_flight: None,
        version: 0,
        filler: None,
        copy_is_old: false,
        counts: BTreeMap::from([("killed", first)]),
    };
    while world.counts["killed"] < kills {
        world.change_until_killed();
        while world.random.chance(30) && world.counts["killed"] < kills {
            world.daemon.respawn(&lab);
            let after = Duration::from_millis(world.random.below(START_MS) as u64);
            Killer::start(&world.daemon, after).end(&mut world.daemon);
            world.count("killed");
            world.count("killed in a start");
        }
        if world.random.chance(10) {
            world.damage();
        }
        if world.random.chance(10) {
            world.leave_file();
        }
        let settle = world.random.chance(70);
        world.comes_back(settle);
        assert!(inside.try_wait().unwrap().is_none(), "a process in a network that nobody deleted has ended");
    }
    world.settles();
    keep.warm_up();
    inside.kill().unwrap();
    inside.wait().unwrap();
    if world.filler.is_some() {
        world.turn_disk();
    }
    world.daemon.down(&[]);
    leaves_nothing(&lab, &cli, &before, &files);
    world.counts
}

/// After `down` there are the stored configuration and an empty lock, and nothing else.
fn leaves_nothing(lab: &Lab, cli: &Cli, before: &[String], files: &BTreeSet<String>) {
    assert_eq!(daemon::namespaces(lab), Vec::<String>::new());
    assert_eq!(daemon::cgroups(lab), Vec::<PathBuf>::new());
    no_process_is_left(&cli.state_dir);
    let now = system(lab);
    assert_eq!(now, before, "interfaces, filters, sockets");
    assert!(memory_files().is_subset(files), "{:?}", memory_files());
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&cli.state_dir), ["hueplane.redb", "last-good.json", "reserve"]);
    assert_eq!(names(&cli.run_dir), ["hueplaned.pid"]);
    assert_eq!(std::fs::read(cli.run_dir.join("hueplaned.pid")).unwrap(), b"");
}

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn killed_at_random_moments_it_loses_nothing_and_leaves_nothing() {
    if !can_run(&["tc", "ss"]) {
        return;
    }
    let seed = number("HUE_CRASH_SEED", u64::from(std::process::id()));
    let default = if hue_testdata::full() { KILLS_FULL } else { KILLS };
    let kills = usize::try_from(number("HUE_CRASH_KILLS", default as u64)).unwrap();
    eprintln!("HUE_CRASH_SEED={seed} HUE_CRASH_KILLS={kills}");
    let mut total: BTreeMap<&str, usize> = BTreeMap::new();
    let worlds = kills.div_ceil(KILLS_A_WORLD).max(2);
    for number in 0..worlds {
        let counts = world(number, seed.wrapping_add(number as u64), kills.div_ceil(worlds));
        counts.into_iter().for_each(|(what, count)| *total.entry(what).or_default() += count);
        eprintln!("{} of {worlds} worlds: {total:?}", number + 1);
    }
}

#[test]
fn a_holder_that_stalls_in_a_start_ends_when_it_can() {
    if !can_run(&["tc", "ss"]) {
        return;
    }
    let lab = Lab::new(2);
    let (before, files) = (system_before(&lab), memory_files());
    let red = lab.pair("red", 1, 1, [0, 1]);
    let mut daemon = Daemon::start(&lab, &all(&[lab.node_document(""), red.document.yaml()]));
    red.warm_up();
    let path = daemon.cli.state_dir.join("holder.sock");
    let holders = || {
        let found = lab.node().run("pgrep", &["-f", &format!("hold-descriptors {}", path.display())]).stdout;
        found.lines().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect::<Vec<_>>()
    };
    let first = holders();
    assert_eq!(first.len(), 1, "it holds descriptors");
    daemon.kill();
    kill(first[0], Signal::SIGSTOP).unwrap();
    daemon.replace(&lab);
    // The daemon has given it up, and uses another one.
    assert_eq!(holders().len(), 2);
    kill(first[0], Signal::SIGCONT).unwrap();
    until("it has ended", 10, || holders().len() == 1 && holders() != first);
    red.warm_up();
    // One that stalls while its daemon runs is not left, either.
    let second = holders();
    kill(second[0], Signal::SIGSTOP).unwrap();
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    daemon.cli.apply(&blue.document.yaml(), &[]);
    blue.warm_up();
    kill(second[0], Signal::SIGCONT).unwrap();
    until("it has ended", 10, || holders().is_empty());
    red.warm_up();
    daemon.down(&[]);
    leaves_nothing(&lab, &daemon.cli, &before, &files);
}
