//! The card's process: a running card, and its connection to the daemon.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hue_card::{Card, CardReply, CardTotals, LiveCard, Seats, Twin};
use hue_host::rights;
use hue_ports::{OpenOptions, Port, open_on};
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::Scheduling;
use hue_substrate::wake::Wake;

use super::protocol::{FromCard, Start, Started, ToCard, read, write};
use crate::node::image;

/// First argument of a program that is to run a card. Its standard input is the socket to the daemon.
pub(super) const ARGUMENT: &str = "run-card";
/// How often totals are sent while they change.
const TOTALS_EVERY: Duration = Duration::from_millis(50);

/// Runs a card if this program was started for that; must be called first in `main`. Returns whether it was.
#[must_use]
pub fn run_if_asked() -> bool {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(ARGUMENT)) {
        return false;
    }
    hue_host::process::set_name(c"hueplane-card");
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    if let Err(error) = socket.and_then(|socket| serve(&socket)) {
        eprintln!("hueplane: the card's process: {error}");
    }
    true
}

/// What answers come from.
struct Serving {
    live: LiveCard,
    start: Start,
    out: Sender<FromCard>,
    /// Ports that are open and not the card's yet, by number.
    ports: Arc<Mutex<HashMap<u64, Box<dyn Port>>>>,
    /// A card that will replace the running one.
    made: Arc<Mutex<Option<Box<Card<Twin>>>>>,
}

/// Serves the daemon until it closes the socket.
fn serve(socket: &UnixStream) -> io::Result<()> {
    let fds = rights::receive(socket.as_fd())?;
    let mut from = BufReader::new(socket.try_clone()?);
    let Some(ToCard::Start(start)) = read(&mut from)? else {
        return Err(io::Error::other("the first message does not start a card"));
    };
    let (out, messages) = channel();
    let to = socket.try_clone()?;
    let writer =
        std::thread::Builder::new().name("hue-reports".to_owned()).spawn(move || send(&messages, to))?;
    match begin(&start, fds, &out) {
        Err(why) => drop(out.send(FromCard::Started(Err(why)))),
        Ok((live, started)) => {
            let _ = out.send(FromCard::Started(Ok(started)));
            let (ports, made) = (Arc::default(), Arc::default());
            let serving = Serving { live, start, out: out.clone(), ports, made };
            let _ticker = Ticker::start(&serving)?;
            while let Some(message) = read(&mut from)? {
                serving.take(message);
            }
        }
    }
    drop(out);
    let _ = writer.join(); // a panic has already been reported
    Ok(())
}

fn begin(start: &Start, fds: Vec<OwnedFd>, out: &Sender<FromCard>) -> Result<(LiveCard, Started), String> {
    let text = |error: io::Error| error.to_string();
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or_else(|| "a descriptor is missing".to_owned());
    let seats = Arc::new(Seats::open(next()?).map_err(text)?);
    let wake = Arc::new(Wake::open([next()?, next()?]).map_err(text)?);
    let peers = (0..start.workers).map(|_| {
        let memory = next()?;
        let worker = Arc::new(Wake::open([next()?, next()?]).map_err(text)?);
        Peer::open(memory, &worker).map_err(text)
    });
    let peers = peers.collect::<Result<Vec<_>, String>>()?;
    let card = image::start(&start.images, &start.image, &[], true)?;
    let scheduling = if start.real_time { Scheduling::RealTime } else { Scheduling::Fair };
    let told = out.clone();
    let events = move |event| drop(told.send(FromCard::Event(event)));
    let live = LiveCard::start(*card, wake, peers, start.memory, seats, scheduling, events);
    let live = live.map_err(|error| error.to_string())?;
    let description = live.description().clone();
    let why_fair = live.scheduling().why_not.clone();
    let now_ns = live.now_ns();
    Ok((live, Started { description, why_fair, now_ns }))
}

/// Sends messages until there is nobody left who could make one, or the daemon has ended.
fn send(messages: &Receiver<FromCard>, to: UnixStream) {
    let mut to = BufWriter::new(to);
    while let Ok(message) = messages.recv() {
        let mut next = Some(message);
        while let Some(message) = next {
            if let Err(error) = write(&mut to, &message) {
                return eprintln!("hueplane: the card's process cannot report: {error}");
            }
            next = messages.try_recv().ok();
        }
        if to.flush().is_err() {
            return; // the daemon has ended
        }
    }
}

impl Serving {
    fn take(&self, message: ToCard) {
        match message {
            ToCard::Start(_) => {} // it has begun
            ToCard::Command(command) => drop(self.live.tell(*command)),
            ToCard::Ask(number, question) => {
                let (out, totals) = (self.out.clone(), self.live.totals_reader());
                self.live.ask(question, move |reply| {
                    if matches!(reply, CardReply::Counts(..)) {
                        // Whoever reads both sees one state.
                        let _ = out.send(FromCard::Totals(locked(&totals).clone()));
                    }
                    let _ = out.send(FromCard::Reply(number, reply));
                });
            }
            ToCard::Open(number, interface, options) => self.open(number, interface, options),
            ToCard::SetPort(opened, number, id) => {
                let port = locked(&self.ports).remove(&opened);
                port.map(|port| self.live.set_port(number, id, port));
            }
            ToCard::ClosePort(number) => {
                let port = locked(&self.ports).remove(&number);
                // Closing waits in the kernel.
                let _ = std::thread::Builder::new().spawn(move || drop(port));
            }
            ToCard::Make(number, image, programs) => self.make(number, image, programs),
            ToCard::Replace => {
                let made = locked(&self.made).take();
                made.map(|card| self.live.replace(card));
            }
        }
    }

    /// Opens a port in a thread, because the kernel can take a third of a second for it.
    fn open(&self, number: u64, interface: String, options: OpenOptions) {
        let (out, ports, region) = (self.out.clone(), Arc::clone(&self.ports), self.live.region().clone());
        let open = move || {
            let opened = open_on(&interface, &options, &region).map_err(|error| error.to_string());
            let opened = opened.map(|opened| {
                let driver = opened.port.driver();
                locked(&ports).insert(number, opened.port);
                (driver, opened.note)
            });
            let _ = out.send(FromCard::Opened(number, opened));
        };
        self.aside(move |why| FromCard::Opened(number, Err(why)), open);
    }

    fn make(&self, number: u64, name: String, programs: Vec<hue_substrate::Program>) {
        let (out, made, images) = (self.out.clone(), Arc::clone(&self.made), self.start.images.clone());
        let make = move || {
            let card = image::start(&images, &name, &programs, true).map(|mut card| {
                let description = card.description().clone();
                *locked(&made) = Some(card);
                description
            });
            let _ = out.send(FromCard::Made(number, card));
        };
        self.aside(move |why| FromCard::Made(number, Err(why)), make);
    }

    /// Does slow work in a thread; if there is none, sends the failure.
    fn aside(&self, failure: impl FnOnce(String) -> FromCard, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = std::thread::Builder::new().name("hue-aside".to_owned()).spawn(work) {
            let _ = self.out.send(failure(error.to_string()));
        }
    }
}

/// Sends the totals while they change.
struct Ticker(Option<Sender<()>>);

impl Ticker {
    fn start(serving: &Serving) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (out, totals) = (serving.out.clone(), serving.live.totals_reader());
        std::thread::Builder::new().name("hue-totals".to_owned()).spawn(move || {
            let mut last = CardTotals::default();
            while stopped.recv_timeout(TOTALS_EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = locked(&totals).clone();
                if now != last && out.send(FromCard::Totals(now.clone())).is_err() {
                    return;
                }
                last = now;
            }
        })?;
        Ok(Self(Some(stop)))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0 = None;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
