//! `hueplane demo`: runs many networks between real hosts on this machine, tests them, and removes
//! everything.
//!
//! Flow: `plan` (what to build) → `place` (where, and remains of earlier demos) → `lab` (namespaces, bridges,
//! hosts) → `daemon` → its API → hosts `probe` and `watch` → `report`. Progress goes to standard error, the
//! result to standard output. Invariants: everything that was built is removed in any case, unless --keep is
//! given. The remains of a killed demo are removed by the next one. Concurrent demos do not affect each
//! other.

mod endpoints;
mod lab;
mod moves;
mod place;
mod plan;
mod report;
mod watch;

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use hue_host::netns::Namespace;
use hue_planes::Kind;
use hueplaned::api::{ApplyRequest, NetworkFilter, NetworkState, SourceText, TurnQuery};

use crate::cli::Demo;
use crate::failure::Failure;
use crate::local::daemon::Daemon;
use crate::local::probe::{self, Ping, Pinged};
use crate::local::stop;
use crate::print::{DIM, GREEN, RED, count, result, styled};
use crate::progress;

use lab::Lab;
use moves::CardReport;
use place::Place;
use plan::{CARD_MAX, ON_CARD, Plan, SIDES};
use report::Report;
use watch::Watch;

/// Networks that iperf3 measures at the same time.
const MEASURED: usize = 3;
/// Programs that hosts run.
const PROGRAMS: [(&str, &str); 2] = [("ping", "iputils-ping"), ("iperf3", "iperf3")];
/// What runs the program of the network of kind `process`, and that of hosts of kind `mpls`.
const PYTHON: (&str, &str) = ("python3", "python3");
/// Pings between peers.
const PEER: Ping = Ping { count: 5, gap: Duration::from_millis(100), wait: Duration::from_secs(2) };
/// Pings to routers.
const ROUTER: Ping = Ping { count: 1, gap: Duration::from_millis(100), wait: Duration::from_secs(1) };
/// Pings to other networks.
const FOREIGN: Ping = Ping { count: 2, gap: Duration::from_millis(50), wait: Duration::from_secs(1) };
/// Longest time until networks run, and until hosts have found their routers.
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// Time for frames in flight to arrive before the watch ends.
const LATE: Duration = Duration::from_millis(300);

/// Runs the command.
pub fn demo(args: &Demo) -> Result<(), Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::Broken(
            "demo: needs root for namespaces and bridges: sudo hueplane demo".to_owned(),
        ));
    }
    if args.clean {
        let swept = place::sweep(true);
        return ended(&swept.faults, &format!("{} removed", count(swept.labs, "lab")));
    }
    let plan = Plan::new(args.networks);
    let needs_python = plan.networks.iter().any(|network| matches!(network.kind, Kind::Process | Kind::Mpls));
    for (program, package) in PROGRAMS.into_iter().chain(needs_python.then_some(PYTHON)) {
        if !installed(program) {
            let what = format!("demo: program {program} is missing: apt-get install {package}");
            return Err(Failure::Broken(what));
        }
    }
    stop::install_handlers()?;
    let swept = place::sweep(false);
    if swept.labs > 0 {
        print_progress(&format!("removed {} of killed demos", count(swept.labs, "lab")));
    }
    let image = image(args, &plan)?;
    let place = Place::take()?;
    let mut demo = Run {
        args,
        plan: &plan,
        place: &place,
        image,
        report: Report::new(&plan),
        daemon: None,
        started: Instant::now(),
    };
    let done = demo.run();
    demo.finish(&done);
    let Run { mut report, daemon, .. } = demo;
    let stays = args.keep && done.is_ok();
    if stays {
        place.keep()?;
        hints(&place, &plan);
    } else {
        let faults = remove(place, daemon);
        report.ok &= faults.is_empty();
        report.failures.extend(faults);
    }
    if stop::requested() {
        return Err(Failure::Interrupted);
    }
    result(args.output.format, &report, || report.table(&plan))?;
    if report.ok { Ok(()) } else { Err(Failure::Broken("demo: some checks failed".to_owned())) }
}

/// A running demo.
struct Run<'a> {
    args: &'a Demo,
    plan: &'a Plan,
    place: &'a Place,
    /// The image of the card, if there is one.
    image: Option<String>,
    report: Report,
    daemon: Option<Daemon>,
    started: Instant,
}

impl Run<'_> {
    /// Runs all steps. An error prevents the following steps.
    fn run(&mut self) -> Result<(), Failure> {
        let (plan, place) = (self.plan, self.place);
        // NICs make sense only beside ports of a card.
        let nics = self.args.nics && self.image.is_some();
        let lab = step("lab", || {
            let lab = Lab::build(plan, place, nics)?;
            let beside = if nics { " and a NIC beside each of the card's" } else { "" };
            let (ports, hosts) = (plan.ports(), plan.hosts());
            Ok((format!("a node with {ports} ports on bridges{beside}, {hosts} hosts in namespaces"), lab))
        })?;
        let watch = Watch::start(lab.watchers(plan)?);
        let kept = self.args.keep;
        let daemon = step("daemon", || {
            let daemon = Daemon::start(&lab.node, &place.places(), kept, &[])?;
            Ok((format!("process {}", daemon.id()), daemon))
        })?;
        let daemon = self.daemon.insert(daemon);
        let image = self.image.as_deref();
        let documents = plan.documents(&place.node(), image, nics);
        step("networks", || networks(daemon, plan, documents).map(|text| (text, ())))?;
        if plan.networks.iter().any(plan::Network::has_endpoints) {
            let text = |started| (format!("{started} hosts have IP over flat labels or MPLS"), ());
            step("endpoints", || endpoints::start(&lab, plan).map(text))?;
        }
        if let Some(image) = image {
            self.report.card = Some(CardReport { image: image.to_owned(), ..CardReport::default() });
            step("card", || self.card().map(|text| (text, ())))?;
        }
        step("routers", || self.routers(&lab).map(|text| (text, ())))?;
        step("ping", || self.ping(&lab).map(|text| (text, ())))?;
        if let Some((at, network)) = plan.switch() {
            step("switch", || self.switch(at, network).map(|text| (text, ())))?;
        }
        step("iperf3", || self.iperf(&lab).map(|text| (text, ())))?;
        if self.image.is_some() {
            step("migration", || self.migrate(&lab).map(|text| (text, ())))?;
            step("images", || self.images(&lab).map(|text| (text, ())))?;
        }
        step("isolation", || self.isolation(&lab).map(|text| (text, ())))?;
        step("leaks", || self.leaks(watch).map(|text| (text, ())))?;
        self.routes()
    }

    /// Waits until all networks of the card run there.
    fn card(&mut self) -> Result<String, Failure> {
        let Some(daemon) = &self.daemon else { return Ok(String::new()) };
        let deadline = Instant::now() + SETTLE_MAX;
        let wanted = ON_CARD.min(self.plan.networks.len());
        loop {
            stop::check()?;
            let networks = daemon.client.networks()?;
            let on_card: Vec<String> = networks
                .iter()
                .filter(|network| network.substrate == "card")
                .map(|network| network.name.clone())
                .collect();
            if on_card.len() == wanted {
                let soft = networks.len() - wanted;
                let card = self.report.card.get_or_insert_default();
                let text = format!("image {}: {} on it, {soft} in software", card.image, on_card.join(", "));
                card.networks = on_card;
                return Ok(text);
            }
            if Instant::now() > deadline {
                let why = networks.into_iter().take(wanted).find_map(|network| network.why_soft);
                let why = why.or_else(|| daemon.client.status().ok()?.problems.into_iter().next());
                let why = why.as_deref().unwrap_or("the daemon gives no reason");
                return Err(Failure::Broken(format!(
                    "{} of {wanted} networks are on the card: {why}",
                    on_card.len()
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Moves a network to software and back.
    fn migrate(&mut self, lab: &Lab) -> Result<String, Failure> {
        let (Some(daemon), Some(card)) = (&self.daemon, &mut self.report.card) else {
            return Ok(String::new());
        };
        moves::migrate(daemon, self.plan, lab, card)
    }

    /// Loads another image into the card, and then the first one again.
    fn images(&mut self, lab: &Lab) -> Result<String, Failure> {
        let (Some(daemon), Some(card)) = (&self.daemon, &mut self.report.card) else {
            return Ok(String::new());
        };
        let images = daemon.client.images()?;
        let can = |image: &&hueplaned::api::ImageInfo| {
            !image.running && image.problem.is_none() && image.networks_max as usize >= ON_CARD
        };
        // One with many kinds: then networks of these kinds can move to the card.
        match images.iter().filter(can).rev().max_by_key(|image| image.kinds.len()) {
            Some(other) => moves::images(daemon, self.plan, lab, card, other),
            None => Ok("no other image exists (make images)".to_owned()),
        }
    }

    /// Summarises the results, after the last step or the failed one.
    fn finish(&mut self, done: &Result<(), Failure>) {
        match done {
            Ok(()) => self.report.evaluate(MEASURED),
            Err(failure) => self.report.failures.push(failure.to_string()),
        }
        if !self.report.failures.is_empty() {
            self.report.failures.extend(self.losses());
        }
        self.report.seconds = self.started.elapsed().as_secs_f64();
    }

    /// What the node counted as lost outside of planes, if a check failed. Without losses, a missing packet was lost elsewhere.
    fn losses(&self) -> Option<String> {
        let stats = self.daemon.as_ref()?.client.stats(None).ok()?;
        let networks = stats.networks.iter().map(|one| (format!("network {}", one.network), &one.losses));
        let ports = stats.ports.iter().map(|one| (format!("port {}", one.port), &one.losses));
        let texts: Vec<String> = networks
            .chain(ports)
            .flat_map(|(who, losses)| losses.iter().map(move |(why, lost)| format!("{who} {lost} ({why})")))
            .collect();
        let texts = if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") };
        Some(format!("the node counted as lost, since it started: {texts}"))
    }

    /// Every host pings its router, so that both know each other. Hosts without a router ping each other instead.
    fn routers(&mut self, lab: &Lab) -> Result<String, Failure> {
        let deadline = Instant::now() + SETTLE_MAX;
        let pairs = self.pairs(lab);
        let found = probe::all(&pairs, |pair| {
            loop {
                if probe::ping(pair.inside, pair.router.unwrap_or(pair.peer), ROUTER)?.received > 0 {
                    return Ok(true);
                }
                if Instant::now() > deadline {
                    return Ok(false);
                }
            }
        })?;
        let (mut of_routers, mut of_peers) = ([0_u64; 2], [0_u64; 2]);
        for (pair, found) in pairs.iter().zip(found) {
            let (count, what) = match pair.router {
                Some(_) => (&mut of_routers, "router"),
                None => (&mut of_peers, "peer"),
            };
            count[0] += u64::from(found);
            count[1] += 1;
            if !found {
                let text = format!("host {}: its {what} does not answer", pair.inside.name());
                self.report.failures.push(text);
            }
        }
        let [found, of] = of_routers;
        let text = format!("{found} of {of} ways from a host to its router work");
        Ok(match of_peers {
            [_, 0] => text,
            [found, of] => format!("{text}, {found} of {of} hosts without a router reach their peer"),
        })
    }

    /// Every host pings its peer, by each address that both have.
    fn ping(&mut self, lab: &Lab) -> Result<String, Failure> {
        let pairs = self.pairs(lab);
        let results = probe::all(&pairs, |pair| probe::ping(pair.inside, pair.peer, PEER))?;
        for (pair, pinged) in pairs.iter().zip(&results) {
            let Some(row) = self.report.networks.get_mut(pair.network) else { continue };
            row.sent += pinged.sent;
            row.received += pinged.received;
            row.lost += pinged.sent.saturating_sub(pinged.received);
            if pinged.doubled > 0 {
                let text = format!("network {}: {} duplicate answers", row.name, pinged.doubled);
                self.report.failures.push(text);
            }
        }
        let sum = |of: fn(&Pinged) -> u64| results.iter().map(of).sum::<u64>();
        Ok(format!("{} of {} pings between peers answered", sum(|p| p.received), sum(|p| p.sent)))
    }

    /// The switch, the network `at`, must have learnt each of its hosts at the port that the host is behind, and send
    /// pings to that port only.
    fn switch(&mut self, at: usize, network: &plan::Network) -> Result<String, Failure> {
        let Some(daemon) = &self.daemon else { return Ok(String::new()) };
        let name = &network.name;
        let filter = NetworkFilter { network: Some(name.clone()), ..NetworkFilter::default() };
        let known = daemon.client.macs(&filter)?;
        let mut learnt = Vec::new();
        for (host, side) in network.hosts.iter().zip(SIDES) {
            let mac = host.mac.to_string();
            match known.iter().find(|entry| entry.mac == mac) {
                Some(entry) if entry.port == side => learnt.push(format!("{mac} at p{}", host.port)),
                found => {
                    let found = found.map_or("nowhere", |entry| entry.port.as_str());
                    let text = format!("network {name}: MAC address {mac} is known {found}, expected {side}");
                    self.report.failures.push(text);
                }
            }
        }
        let stats = daemon.client.stats(Some(name))?;
        let copies: u64 = stats.networks.iter().map(|network| network.copies).sum();
        if let Some(row) = self.report.networks.get_mut(at) {
            row.macs = Some(known.len() as u64);
            // Hosts find each other by a few broadcasts. A switch that learns nothing makes a copy of each ping and of each
            // answer.
            if copies > row.sent {
                let text = format!(
                    "network {name}: {copies} copies of frames were flooded, after {} pings",
                    row.sent
                );
                self.report.failures.push(text);
            }
        }
        let hosts = network.hosts.len();
        let learnt = if learnt.is_empty() { "nothing".to_owned() } else { learnt.join(", ") };
        let floods = if copies == 1 { "1 frame".to_owned() } else { format!("{copies} frames") };
        Ok(format!("{name}: {hosts} hosts on one link; learnt {learnt}; {floods} flooded"))
    }

    /// Measures the first networks, all at the same time.
    fn iperf(&mut self, lab: &Lab) -> Result<String, Failure> {
        let measured: Vec<_> = lab.hosts.iter().zip(&self.plan.networks).take(MEASURED).collect();
        let seconds = self.args.seconds;
        // A failed measurement is a result, and does not end the demo.
        let results = probe::all(&measured, |(inside, network)| {
            Ok(probe::iperf(&inside[0], &inside[1], network.hosts[1].address, seconds))
        })?;
        stop::check()?;
        let mut texts = Vec::new();
        for (row, speed) in self.report.networks.iter_mut().zip(results) {
            match speed {
                Ok(bits) => {
                    let megabits = bits / 1e6;
                    row.mbit_per_second = Some((megabits * 10.0).round() / 10.0);
                    texts.push(format!("{} {megabits:.0} Mbit/s", row.name));
                }
                Err(failure) => {
                    texts.push(format!("{} failed", row.name));
                    self.report.failures.push(format!("network {}: {failure}", row.name));
                }
            }
        }
        Ok(format!("at once: {}", texts.join(", ")))
    }

    /// Every host tries to reach hosts of other networks, on its own bridge and behind its router. Hosts that have
    /// no router try it on their link.
    fn isolation(&mut self, lab: &Lab) -> Result<String, Failure> {
        let mut tries: Vec<(usize, &Namespace, IpAddr)> = Vec::new();
        for (at, (inside, network)) in lab.hosts.iter().zip(&self.plan.networks).enumerate() {
            for (inside, host) in inside.iter().zip(&network.hosts) {
                let targets = [host.bridge_target, host.routed_target].into_iter().flatten();
                tries.extend(targets.map(|to| (at, inside, to)));
            }
        }
        let results = probe::all(&tries, |(_, namespace, to)| probe::ping(namespace, *to, FOREIGN))?;
        for ((network, _, _), pinged) in tries.iter().zip(&results) {
            if let Some(row) = self.report.networks.get_mut(*network) {
                row.tried += pinged.sent;
                row.reached += pinged.received;
            }
        }
        let sum = |of: fn(&Pinged) -> u64| results.iter().map(of).sum::<u64>();
        Ok(format!("{} of {} pings to other networks answered", sum(|p| p.received), sum(|p| p.sent)))
    }

    /// Frames of other networks that hosts received.
    fn leaks(&mut self, watch: Watch) -> Result<String, Failure> {
        std::thread::sleep(LATE);
        let seen = watch.end()?;
        let rows = self.report.networks.iter_mut();
        for (row, seen) in rows.zip(by_network(self.plan, &seen)) {
            row.leaked = seen.iter().flat_map(|host| host.values()).sum();
            for (mac, frames) in seen.iter().flatten() {
                let whose = self
                    .plan
                    .owner(*mac)
                    .map_or_else(|| format!("of {mac}"), |name| format!("of network {name}"));
                print_progress(&format!("network {}: its hosts received {frames} frames {whose}", row.name));
            }
        }
        let total: u64 = self.report.networks.iter().map(|row| row.leaked).sum();
        Ok(format!("{total} frames of one network seen by a host of another"))
    }

    fn routes(&mut self) -> Result<(), Failure> {
        let Some(daemon) = &self.daemon else { return Ok(()) };
        let networks = daemon.client.networks()?;
        for row in &mut self.report.networks {
            let network = networks.iter().find(|network| network.name == row.name);
            row.routes = network.map_or(0, |network| network.routes);
            row.substrate = network.map(|network| network.substrate.clone()).unwrap_or_default();
        }
        Ok(())
    }

    /// Each host and its peer, once for each family of addresses that both have.
    fn pairs<'l>(&self, lab: &'l Lab) -> Vec<Pair<'l>> {
        let mut pairs = Vec::new();
        for (at, (inside, network)) in lab.hosts.iter().zip(&self.plan.networks).enumerate() {
            for (host, peer) in network.peers() {
                let links = network.hosts[host].links().zip(network.hosts[peer].links());
                pairs.extend(links.map(|((_, router), (peer, _))| Pair {
                    network: at,
                    inside: &inside[host],
                    router,
                    peer,
                }));
            }
        }
        pairs
    }
}

/// A host and its peer.
struct Pair<'l> {
    /// Where their network is in the plan.
    network: usize,
    /// The host.
    inside: &'l Namespace,
    /// Its router, if it has one.
    router: Option<IpAddr>,
    /// Its peer.
    peer: IpAddr,
}

/// Divides one item a host, in the order of the plan, into one slice a network.
fn by_network<'i, T>(plan: &Plan, items: &'i [T]) -> impl Iterator<Item = &'i [T]> {
    plan.networks.iter().scan(items, |rest, network| {
        let (own, others) = rest.split_at_checked(network.hosts.len())?;
        *rest = others;
        Some(own)
    })
}

/// The image of the demo's card; `None` without a card (prints why if none is possible).
fn image(args: &Demo, plan: &Plan) -> Result<Option<String>, Failure> {
    if args.no_card {
        return Ok(None);
    }
    if plan.networks.len() > CARD_MAX {
        print_progress(&format!("the card supports only {CARD_MAX} networks: all run in software"));
        return Ok(None);
    }
    let known = hueplaned::options::images().names();
    if known.contains(&args.image) {
        return Ok(Some(args.image.clone()));
    }
    if known.is_empty() {
        print_progress("no image for a card exists (make images): all networks run in software");
        return Ok(None);
    }
    Err(Failure::Usage(format!("--image: found '{}', expected one of: {}", args.image, known.join(", "))))
}

/// Applies the networks to the daemon, and waits until all of them run.
fn networks(daemon: &Daemon, plan: &Plan, text: String) -> Result<String, Failure> {
    let source = SourceText { name: "demo.yaml".to_owned(), text };
    let request = ApplyRequest { sources: vec![source], prune: true, ..ApplyRequest::default() };
    daemon.client.apply(&request, TurnQuery::default())?;
    let deadline = Instant::now() + SETTLE_MAX;
    loop {
        stop::check()?;
        let networks = daemon.client.networks()?;
        let bad = networks.iter().find(|network| network.state != NetworkState::Running);
        match bad {
            None if networks.len() == plan.networks.len() => break,
            Some(network) if Instant::now() > deadline => {
                let reason = network.reason.as_deref().unwrap_or("the daemon gives no reason");
                return Err(Failure::Broken(format!(
                    "network {} is {}: {reason}",
                    network.name,
                    network.state.name()
                )));
            }
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    let ports: Vec<String> = daemon.client.ports()?.iter().map(driver).collect();
    Ok(format!("{} run; ports {}", plan.networks.len(), ports.join(", ")))
}

fn driver(port: &hueplaned::api::Port) -> String {
    format!("{} {}", port.name, port.driver.as_deref().unwrap_or(port.state.name()))
}

/// Removes everything. Returns what could not be removed.
fn remove(place: Place, daemon: Option<Daemon>) -> Vec<String> {
    let removed = step("removal", || {
        let mut faults = Vec::new();
        if let Some(Err(failure)) = daemon.map(Daemon::stop) {
            faults.push(failure.to_string());
        }
        faults.extend(place.clear());
        let text = if faults.is_empty() { "everything removed".to_owned() } else { faults.join("; ") };
        Ok((text, faults))
    });
    removed.unwrap_or_else(|failure| vec![failure.to_string()])
}

/// Runs a step and prints its result.
fn step<T>(name: &str, work: impl FnOnce() -> Result<(String, T), Failure>) -> Result<T, Failure> {
    let spinner = progress::spinner(name);
    let started = Instant::now();
    let done = work();
    spinner.finish_and_clear();
    let seconds = styled(DIM, format!("{:.1} s", started.elapsed().as_secs_f64()));
    match done {
        Ok((text, value)) => {
            print_progress(&format!("{} {text}  {seconds}", styled(GREEN, format!("{name:<10}"))));
            Ok(value)
        }
        Err(failure) => {
            print_progress(&format!("{} {failure}  {seconds}", styled(RED, format!("{name:<10}"))));
            Err(failure)
        }
    }
}

fn print_progress(text: &str) {
    anstream::eprintln!("{text}");
}

/// Prints how to use a lab that is kept.
fn hints(place: &Place, plan: &Plan) {
    let socket = hueplaned::client::socket_in(&place.places().run_dir);
    let socket = socket.display();
    let first = plan.networks.first().map_or("", |network| network.name.as_str());
    let host = place.host_namespace(first, "left");
    let macs = plan.switch().map_or_else(String::new, |(_, network)| {
        format!("\n  hueplane --socket {socket} get macs -n {}", network.name)
    });
    print_progress(&format!(
        "the lab keeps running; try:\n  hueplane --socket {socket} stats --watch\n  hueplane --socket {socket} exec {first} -- \
         ip route{macs}\n  ip netns exec {host} ping {}\nand remove it with:\n  hueplane demo --clean",
        plan.networks.first().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |network| network.hosts[1].address)
    ));
}

fn ended(faults: &[String], text: &str) -> Result<(), Failure> {
    if faults.is_empty() {
        print_progress(text);
        Ok(())
    } else {
        Err(Failure::Broken(faults.join("\n")))
    }
}

fn installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}
