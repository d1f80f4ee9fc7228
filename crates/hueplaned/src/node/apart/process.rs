//! The card's process: a running card, and its connection to the daemon.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hue_card::{Card, CardCommand, CardEvent, CardQuestion, CardReply, CardTotals, LiveCard, Twin};
use hue_demux::PortId;
use hue_host::process;
use hue_ports::{OpenOptions, Port, open_on};
use hue_substrate::Program;
use hue_substrate::scheduling::Scheduling;

use super::door::{Caller, Door, Facts, Shared};
use super::lock::locked;
use super::protocol::{FromCard, Start, ToCard, hear, read};
use super::reports::Out;
use super::wired::Wired;
use crate::node::image;

/// First argument of a program that is to run a card; the path of its socket follows. Its standard input is a socket to the
/// daemon.
pub(super) const ARGUMENT: &str = "run-card";
/// How often totals are sent while they change.
const TOTALS_EVERY: Duration = Duration::from_millis(50);
/// How long the card's thread may take to say which networks are on the card.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Runs a card if this program was started for that; must be called first in `main`. Returns whether it was.
#[must_use]
pub fn run_if_asked() -> bool {
    let Some(path) = process::helper(c"hueplane-card", ARGUMENT) else { return false };
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    if let Err(error) = socket.and_then(|socket| serve(&socket, &path)) {
        eprintln!("hueplane: the card's process: {error}");
    }
    true
}

/// An open port, and what it is.
type OpenPort = (Box<dyn Port>, Wired);

/// What answers come from.
struct Serving {
    live: LiveCard,
    start: Start,
    facts: Arc<Facts>,
    out: Out,
    /// Ports that are open and not the card's yet, by number.
    opened: Arc<Mutex<HashMap<u64, OpenPort>>>,
    /// Ports of the card that were asked for again, by number: the card's number.
    asked_again: HashMap<u64, u8>,
    /// The card's ports.
    wired: Arc<Mutex<BTreeMap<u8, Wired>>>,
    /// A card that will replace the running one.
    made: Arc<Mutex<Option<Box<Card<Twin>>>>>,
}

/// Serves one daemon after another.
fn serve(first: &UnixStream, path: &Path) -> io::Result<()> {
    let (fds, mut from, start) = hear(first)?;
    let mut fds = fds.into_iter();
    // The file as it was made: when this process comes to look, another card's may have its place.
    let socket = fds.next().map(UnixListener::from).zip(fds.next().map(File::from));
    let socket = socket.ok_or_else(|| io::Error::other("a descriptor is missing"))?;
    let out = Out::default();
    let mut writer = out.connect(first)?;
    let shared = Shared::open(fds, start.workers).map_err(|error| error.to_string());
    let mut serving = match shared.and_then(|shared| Serving::begin(start, shared, &out)) {
        Ok(serving) => serving,
        Err(why) => {
            out.send(FromCard::Started(Err(why)));
            out.disconnect(writer);
            return Ok(());
        }
    };
    out.send(FromCard::Started(Ok(serving.facts.started())));
    let door = Door::open(socket, path, Arc::clone(&serving.facts), out.clone())?;
    let _ticks = tick(&serving)?;
    let mut ends = serving.talk(&mut from);
    loop {
        out.disconnect(writer);
        if ends {
            return Ok(());
        }
        let next = door.next(|| serving.is_used());
        let Some(Caller { socket, from: mut next, start, shared }) = next else { return Ok(()) };
        writer = out.connect(&socket)?;
        serving.attach(start, shared);
        ends = serving.talk(&mut next);
    }
}

impl Serving {
    /// Starts the card.
    fn begin(start: Start, shared: Shared, out: &Out) -> Result<Self, String> {
        let card = image::start(&start.images, &start.image, &[], true)?;
        let scheduling = if start.real_time { Scheduling::RealTime } else { Scheduling::Fair };
        let wired: Arc<Mutex<BTreeMap<u8, Wired>>> = Arc::default();
        let failed = Arc::new(AtomicBool::new(false));
        let (told, ports, fails) = (out.clone(), Arc::clone(&wired), Arc::clone(&failed));
        let events = move |event| {
            match &event {
                CardEvent::Port { id, .. } => locked(&ports).retain(|_, wired| wired.id != *id),
                CardEvent::Failed(_) => fails.store(true, Ordering::SeqCst),
                _ => {}
            }
            told.send(FromCard::Event(event));
        };
        let Shared { seats, wake, peers } = shared;
        let live = LiveCard::start(*card, wake, peers, start.memory, seats, scheduling, events);
        let live = live.map_err(|error| error.to_string())?;
        let facts = Facts {
            description: Mutex::new(live.description().clone()),
            memory: start.memory,
            real_time: start.real_time,
            why_fair: live.scheduling().why_not.clone(),
            now_ns: live.now_ns(),
            began: Instant::now(),
            has_failed: failed,
        };
        Ok(Self {
            live,
            start,
            facts: Arc::new(facts),
            out: out.clone(),
            opened: Arc::default(),
            asked_again: HashMap::new(),
            wired,
            made: Arc::default(),
        })
    }

    /// Serves a daemon until it ends; returns whether the process is to end as well.
    fn talk(&mut self, from: &mut BufReader<UnixStream>) -> bool {
        loop {
            match read(from) {
                Ok(Some(ToCard::End)) => return true,
                Ok(Some(message)) => self.take(message),
                Ok(None) => return false,
                // It was killed, or has lost its mind.
                Err(error) => {
                    eprintln!("hueplane: the card's process: the daemon's last message is lost: {error}");
                    return false;
                }
            }
        }
    }

    /// Whether networks are on the card.
    fn is_used(&self) -> bool {
        let (reply, answer) = channel();
        self.live.ask(CardQuestion::OnCard, move |networks| drop(reply.send(networks)));
        matches!(answer.recv_timeout(ANSWER_MAX), Ok(CardReply::OnCard(networks)) if !networks.is_empty())
    }

    /// Gives the card to another daemon.
    fn attach(&mut self, start: Start, shared: Shared) {
        locked(&self.opened).clear();
        self.asked_again.clear();
        *locked(&self.made) = None;
        let wanted = |number: u8, wired: &Wired| {
            start
                .ports
                .iter()
                .any(|(its, id, interface)| (*its, *id, interface) == (number, wired.id, &wired.interface))
        };
        let unwanted: Vec<u8> = locked(&self.wired)
            .iter()
            .filter(|(number, wired)| !wanted(**number, wired))
            .map(|(number, _)| *number)
            .collect();
        unwanted.into_iter().for_each(|number| self.take_port(number));
        locked(&self.wired).values_mut().for_each(|wired| wired.is_left = true);
        let Shared { seats, wake, peers } = shared;
        self.live.attach(wake, peers, seats);
        self.start = start;
        self.out.send(FromCard::Totals(locked(&self.live.totals_reader()).clone()));
    }

    fn take(&mut self, message: ToCard) {
        match message {
            ToCard::Start(_) | ToCard::End => {} // handled before
            ToCard::Command(command) => match *command {
                CardCommand::TakePort(number) => self.take_port(number),
                command => drop(self.live.tell(command)),
            },
            ToCard::Ask(number, question) => {
                let (out, totals) = (self.out.clone(), self.live.totals_reader());
                self.live.ask(question, move |reply| {
                    if matches!(reply, CardReply::Counts(..)) {
                        // Whoever reads both sees one state.
                        out.send(FromCard::Totals(locked(&totals).clone()));
                    }
                    out.send(FromCard::Reply(number, reply));
                });
            }
            ToCard::Open(number, interface, options) => self.open(number, interface, options),
            ToCard::SetPort(opened, number, id) => self.set_port(opened, number, id),
            ToCard::ClosePort(number) => {
                self.asked_again.remove(&number);
                let port = locked(&self.opened).remove(&number);
                // Closing waits in the kernel.
                let _ = std::thread::Builder::new().spawn(move || drop(port));
            }
            ToCard::Make(number, image, programs) => self.make(number, image, programs),
            ToCard::Replace => {
                let Some(mut card) = locked(&self.made).take() else { return };
                locked(&self.facts.description).clone_from(card.description());
                self.live.replace(card);
            }
        }
    }

    fn take_port(&mut self, number: u8) {
        locked(&self.wired).remove(&number);
        self.live.tell(CardCommand::TakePort(number));
    }

    /// The card's port on an interface that an earlier daemon has opened: its number and what it is.
    fn left(&self, interface: &str) -> Option<(u8, Wired)> {
        let wired = locked(&self.wired);
        let found = wired.iter().find(|(_, wired)| wired.is_left && wired.interface == interface)?;
        Some((*found.0, found.1.clone()))
    }

    /// Opens a port in a thread, because the kernel can take a third of a second for it. One that the card has from an earlier
    /// daemon stays.
    fn open(&mut self, number: u64, interface: String, options: OpenOptions) {
        if let Some((at, wired)) = self.left(&interface) {
            if wired.is_as(&options) {
                self.asked_again.insert(number, at);
                self.out.send(FromCard::Opened(number, Ok((wired.driver, wired.note))));
                return;
            }
            self.take_port(at);
        }
        let (out, opened, region) = (self.out.clone(), Arc::clone(&self.opened), self.live.region().clone());
        let open = move || {
            let done = open_on(&interface, &options, &region).map_err(|error| error.to_string());
            let done = done.map(|done| {
                let (driver, note) = (done.port.driver(), done.note);
                let id = PortId::new(u8::MAX); // known when the card gets it
                let wired = Wired { id, interface, options, driver, note: note.clone(), is_left: false };
                locked(&opened).insert(number, (done.port, wired));
                (driver, note)
            });
            out.send(FromCard::Opened(number, done));
        };
        self.aside(move |why| FromCard::Opened(number, Err(why)), open);
    }

    /// Gives an open port to the card.
    fn set_port(&mut self, opened: u64, number: u8, id: PortId) {
        if let Some(at) = self.asked_again.remove(&opened) {
            let mut wired = locked(&self.wired);
            return match wired.get_mut(&at).filter(|wired| at == number && wired.id == id) {
                Some(wired) => wired.is_left = false,
                None => {
                    // It was closed meanwhile.
                    let error = "the port was closed meanwhile; it will be opened again".to_owned();
                    self.out.send(FromCard::Event(CardEvent::Port { id, error }));
                }
            };
        }
        let port = locked(&self.opened).remove(&opened);
        if let Some((port, wired)) = port {
            locked(&self.wired).insert(number, Wired { id, ..wired });
            self.live.set_port(number, id, port);
        }
    }

    fn make(&self, number: u64, name: String, programs: Vec<Program>) {
        let (out, made, images) = (self.out.clone(), Arc::clone(&self.made), self.start.images.clone());
        let make = move || {
            let card = image::start(&images, &name, &programs, true).map(|mut card| {
                let description = card.description().clone();
                *locked(&made) = Some(card);
                description
            });
            out.send(FromCard::Made(number, card));
        };
        self.aside(move |why| FromCard::Made(number, Err(why)), make);
    }

    /// Does slow work in a thread; if there is none, sends the failure.
    fn aside(&self, failure: impl FnOnce(String) -> FromCard, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = std::thread::Builder::new().name("hue-aside".to_owned()).spawn(work) {
            self.out.send(failure(error.to_string()));
        }
    }
}

/// Sends the totals while they change, until the sender returned is dropped.
fn tick(serving: &Serving) -> io::Result<Sender<()>> {
    let (stop, stopped) = channel();
    let (out, totals) = (serving.out.clone(), serving.live.totals_reader());
    std::thread::Builder::new().name("hue-totals".to_owned()).spawn(move || {
        let mut last = CardTotals::default();
        while stopped.recv_timeout(TOTALS_EVERY) == Err(RecvTimeoutError::Timeout) {
            let now = locked(&totals).clone();
            if now != last {
                out.send(FromCard::Totals(now.clone()));
            }
            last = now;
        }
    })?;
    Ok(stop)
}
