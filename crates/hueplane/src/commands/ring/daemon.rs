//! The daemon: a loop that waits for frames, for hueplane, for questions and time.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hue_planes::rofl::label_text;
use hue_routing::ring::{Config, Home, Hop, Place, Router, derived};
use hue_wire::Mac;
use hue_wire::rofl::Label;
use hueplaned::labels::{LabelRow, Offer};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::owner::Owner;
use super::ports::Wires;
use super::show::{Extra, Snapshot};
use super::{NAME, note};
use crate::cli::RoflRing;
use crate::failure::Failure;
use crate::local::questions::Questions;
use crate::local::stop;

/// Longest sleep.
const WAIT: Duration = Duration::from_secs(1);

/// Runs until a signal.
pub fn run(args: &RoflRing) -> Result<(), Failure> {
    let questions = Questions::listen(NAME)?;
    let stop = stop::signalled()?;
    let (owner, offer) = Owner::find()?;
    let config = config(args, &offer)?;
    note(&format!(
        "router {} of network {} starts, with labels of {} bits",
        label_text(config.router, config.label_bytes),
        offer.network,
        offer.label_bits
    ));
    let mut daemon = Daemon {
        router: Router::new(Duration::ZERO, config),
        start: Instant::now(),
        network: offer.network.clone(),
        owner,
        wires: Wires::new()?,
        questions,
        stop,
    };
    daemon.take(&offer)?;
    daemon.act();
    let served = daemon.serve();
    daemon.end();
    served
}

fn config(args: &RoflRing, offer: &Offer) -> Result<Config, Failure> {
    let label_bytes = usize::from(offer.label_bits) / 8;
    if let Some(label) = args.label.filter(|label| label.bytes != label_bytes) {
        return Err(Failure::Usage(format!(
            "--label: found a label of {} bits, expected {}, as network {} has",
            8 * label.bytes,
            offer.label_bits,
            offer.network
        )));
    }
    let own = offer
        .labels
        .iter()
        .filter(|row| row.port.is_none())
        .find_map(|row| Some(row.entry().ok()?.label.bits));
    let mac = offer.ports.first().and_then(|port| port.mac.parse().ok());
    let router = args.label.map(|label| label.label).or(own);
    let router = router.or_else(|| mac.map(|mac: Mac| derived(mac, label_bytes))).ok_or_else(|| {
        Failure::Usage(format!(
            "network {} has no ports from which to take the router's label; give --label",
            offer.network
        ))
    })?;
    // Newer than in any earlier life: links are said less often than every millisecond.
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    Ok(Config { router, label_bytes, interval_ms: args.interval, sequence: clock as u64 })
}

struct Daemon {
    router: Router,
    start: Instant,
    network: String,
    owner: Owner,
    wires: Wires,
    questions: Questions,
    stop: UnixStream,
}

impl Daemon {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn serve(&mut self) -> Result<(), Failure> {
        loop {
            if self.wait()? {
                return Ok(());
            }
            for offer in self.owner.hear() {
                self.take(&offer)?;
            }
            let (now, router) = (self.start.elapsed(), &mut self.router);
            let lost = self.wires.receive(|port, frame| router.receive(now, port, frame));
            if self.wires.open() | lost {
                self.router.set_ports(now, self.wires.ports());
            }
            if self.router.due() <= self.now() {
                self.router.tick(self.now());
            }
            self.answer();
            self.act();
        }
    }

    /// Waits until something is to be done. Returns whether to stop.
    fn wait(&self) -> Result<bool, Failure> {
        let dues = [self.owner.due(), self.wires.due()].into_iter().flatten();
        let left = dues.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.fold(self.router.due().saturating_sub(self.now()).min(WAIT), Duration::min);
        // Rounded up: a wake-up slightly too early would be one without work.
        let left = (left + Duration::from_micros(999)).as_millis();
        let timeout = PollTimeout::try_from(left as i32).unwrap_or(PollTimeout::ZERO);
        let fixed = [self.stop.as_fd(), self.questions.as_fd()];
        let all = fixed.into_iter().chain(self.owner.readiness()).chain(self.wires.readiness());
        let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Failure::Broken(format!("wait for frames: {}", errno.desc()))),
        }
        Ok(fds.first().is_some_and(|fd| fd.any() == Some(true)))
    }

    /// Takes the network's ports and the labels of its document.
    fn take(&mut self, offer: &Offer) -> Result<(), Failure> {
        let bytes = self.router.config().label_bytes;
        if usize::from(offer.label_bits) != 8 * bytes {
            return Err(Failure::Usage(format!(
                "the labels of network {} have {} bits now, not {}: start again",
                offer.network,
                offer.label_bits,
                8 * bytes
            )));
        }
        self.wires.take(offer);
        let mut labels = BTreeMap::new();
        for row in &offer.labels {
            let Ok(entry) = row.entry() else { continue };
            let host = row.port.as_ref().zip(row.neighbour.as_ref()).filter(|_| row.resident);
            let host =
                host.and_then(|(port, mac)| Some(Hop { port: self.wires.id(port)?, mac: mac.parse().ok()? }));
            match (host, &row.port) {
                (Some(hop), _) => drop(labels.insert(entry.label.bits, Home::Host(hop))),
                (None, None) => drop(labels.insert(entry.label.bits, Home::Own)),
                // Of another router: it says so itself, if it speaks the protocol.
                (None, Some(_)) => {}
            }
        }
        let now = self.now();
        self.router.set_ports(now, self.wires.ports());
        self.router.set_labels(now, &labels);
        Ok(())
    }

    /// Does what the state machine wants.
    fn act(&mut self) {
        let output = self.router.take();
        self.wires.send(&output.packets);
        output.events.iter().for_each(|event| note(&event.to_string()));
        if output.changed {
            let bytes = self.router.config().label_bytes;
            let entries = self.router.entries();
            let rows = entries.iter().filter_map(|(label, place)| self.row(*label, *place, bytes));
            let rows = rows.collect();
            self.owner.want(rows);
        }
        self.owner.tell();
    }

    fn row(&self, label: Label, place: Place, bytes: usize) -> Option<LabelRow> {
        let label = label_text(label, bytes);
        let (hop, resident) = match place {
            Place::Own => return Some(LabelRow { label, port: None, neighbour: None, resident: false }),
            Place::Resident(hop) => (hop, true),
            Place::Via(hop) => (hop, false),
        };
        let port = self.wires.name(hop.port)?.to_owned();
        Some(LabelRow { label, port: Some(port), neighbour: Some(hop.mac.to_string()), resident })
    }

    fn answer(&self) {
        let extra = Extra {
            network: &self.network,
            now: self.now(),
            send_failed: self.wires.failed,
            entries: self.owner.entries,
            refused: self.owner.refused.as_deref(),
        };
        self.questions.answer(|| Snapshot::of(&self.router, &extra));
    }

    /// Takes leave of the neighbours, and takes the labels back.
    fn end(&mut self) {
        self.router.end(self.now());
        let output = self.router.take();
        self.wires.send(&output.packets);
        self.owner.end();
        note("ended; its labels are removed");
    }
}
