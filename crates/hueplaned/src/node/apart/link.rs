//! The daemon's end: starts the process, and passes on what it reports.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hue_card::{
    Answers, CardCommand, CardEvent, CardQuestion, CardReply, CardTotals, Description, Images, Seats,
};
use hue_demux::PortId;
use hue_ports::{Driver, DriverCounters, Keep, OpenOptions, Opened, Packet, Pool, Port, PortError};
use hue_substrate::Program;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::{Granted, Place, Scheduling};
use hue_substrate::wake::Wake;

use super::body::{Begun, Body, CardSite, END_MAX, END_PAUSE};
use super::lock::locked;
use super::protocol::{FromCard, Start, Started, ToCard, read, send_all};

/// A running card in a process of its own. Dropping it ends the process, which closes the card's ports before, unless the
/// process is left to the next daemon ([`Apart::leave`]).
pub struct Apart {
    link: Arc<Link>,
    description: Description,
    scheduling: Granted,
    /// Of the daemon's share of real-time threads.
    _place: Option<Place>,
    seats: Arc<Seats>,
    totals: Arc<Mutex<CardTotals>>,
    /// Its clock: what it showed, and when.
    clock: (u64, Instant),
    /// How long an earlier daemon's card had run, if it is one.
    ran_for: Option<Duration>,
    /// Whether the process stays when this is dropped.
    stays: bool,
    socket: UnixStream,
    body: Arc<Body>,
    threads: Vec<JoinHandle<()>>,
}

/// Its connection.
struct Link {
    /// `None` once the process is to end.
    out: Mutex<Option<Sender<ToCard>>>,
    ends: AtomicBool,
    /// The next daemon wants another card, or none.
    next_is_refused: AtomicBool,
    answers: Answers,
    numbers: AtomicU64,
    /// Who waits for a port or a card, by number.
    waiting: Mutex<Waiting>,
    /// What the card's ports keep until they are closed, by the number under which they were opened.
    kept: Mutex<HashMap<u64, Keep>>,
    /// The number under which each port of the card was opened.
    ports: Mutex<HashMap<u8, u64>>,
}

/// The result of opening a port: its driver, and a note about it.
type OpenedThere = Result<(Driver, Option<String>), String>;

#[derive(Default)]
struct Waiting {
    ports: HashMap<u64, Sender<OpenedThere>>,
    cards: HashMap<u64, Sender<Result<Description, String>>>,
    /// The process has ended, so nobody may begin to wait.
    has_ended: bool,
}

/// Opens ports in the process.
#[derive(Clone)]
pub struct Opener(Arc<Link>);

impl Apart {
    /// Starts the process with a card that has no ports yet, or takes over the one that the daemon before has left if it is as
    /// wanted; see [`Apart::ran_for`]. `peers` are the workers, which wake the card's thread by `wake`; its packet memory has
    /// `memory.0` slots of `memory.1` bytes. Its thread gets the scheduling `wanted` if permitted. Events go to `events`.
    ///
    /// # Errors
    /// Why the card does not run, as a text.
    pub fn start(
        (images, image): (&Images, &str),
        (wake, peers): (&Wake, &[Peer]),
        memory: (u32, u32),
        wanted: Scheduling,
        site: &CardSite,
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<Self, String> {
        let text = |error: io::Error| format!("the card's process cannot be started: {error}");
        let seats = Arc::new(Seats::new().map_err(text)?);
        let (place, refused) = match (wanted == Scheduling::RealTime).then(Place::reserve).transpose() {
            Ok(place) => (place, None),
            Err(why) => (None, Some(why)),
        };
        let mut fds = vec![seats.descriptor()];
        fds.extend(wake.descriptors());
        for peer in peers {
            fds.push(peer.memory());
            fds.extend(peer.wake.descriptors());
        }
        let start = Start {
            images: images.clone(),
            image: image.to_owned(),
            memory,
            real_time: place.is_some(),
            workers: peers.len(),
            ports: site.ports.clone(),
        };
        let Begun { socket, body, started, is_found } = site.begin(&fds, start)?;
        let Started { description, why_fair, now_ns, age } = started;
        let why_not = refused.or(why_fair);
        let granted = if why_not.is_none() { wanted } else { Scheduling::Fair };
        let (out, messages) = channel();
        let link = Arc::new(Link::to(out));
        let totals = Arc::default();
        let clock = (now_ns, Instant::now());
        let scheduling = Granted { scheduling: granted, why_not };
        let mut apart = Self {
            link,
            description,
            scheduling,
            _place: place,
            seats,
            totals,
            clock,
            ran_for: is_found.then_some(age),
            stays: false,
            socket,
            body: Arc::new(body),
            threads: Vec::new(),
        };
        apart.follow(messages, events).map_err(text)?;
        Ok(apart)
    }

    /// Starts the threads that send and receive.
    fn follow(
        &mut self,
        messages: Receiver<ToCard>,
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> io::Result<()> {
        let (to, from) = (self.socket.try_clone()?, self.socket.try_clone()?);
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let send = move || {
            if let Err(error) = send_all(&messages, to) {
                // If the process has ended, the other thread tells why.
                tracing::debug!(%error, "a message to the card's process is lost");
            }
        };
        self.threads.push(named("hue-to-card").spawn(send)?);
        let (link, totals, body) = (Arc::clone(&self.link), Arc::clone(&self.totals), Arc::clone(&self.body));
        self.threads
            .push(named("hue-from-card").spawn(move || receive(&link, &totals, &body, from, &events))?);
        Ok(())
    }

    /// Sends a command. Commands are executed in order. Returns `false` if the process is to end.
    pub fn tell(&self, command: CardCommand) -> bool {
        if let CardCommand::TakePort(number) = &command {
            self.link.let_go(*number);
        }
        self.link.send(ToCard::Command(Box::new(command)))
    }

    /// Asks the card. `reply` is called after earlier commands, or dropped if the card ends before.
    pub fn ask(&self, question: CardQuestion, reply: impl FnOnce(CardReply) + Send + 'static) {
        let number = self.link.answers.wait(Box::new(reply));
        if !self.link.send(ToCard::Ask(number, question)) {
            drop(self.link.answers.take(number));
        }
    }

    /// Gives the card a port that [`Opener::open`] has opened. Returns `false` if that is impossible.
    pub fn set_port(&self, number: u8, id: PortId, port: Box<dyn Port>) -> bool {
        let Some(opened) = port.opened_apart() else { return false };
        // What the port keeps is kept until the card has closed it.
        self.link.let_go(number);
        locked(&self.link.ports).insert(number, opened);
        self.link.send(ToCard::SetPort(opened, number, id))
    }

    /// Starts another card in the process, with an image and with these networks in software; [`Apart::replace`] uses it.
    /// The function returned waits for its description.
    pub fn make(
        &self,
        image: &str,
        programs: Vec<Program>,
    ) -> impl FnOnce() -> Result<Description, String> + Send + use<> {
        let number = self.link.number();
        let made = self.link.wait(|waiting| &mut waiting.cards, number);
        self.link.send(ToCard::Make(number, image.to_owned(), programs));
        move || made.recv().unwrap_or_else(|_| Err("the card's process has ended".to_owned()))
    }

    /// Replaces the card by the one that was made, and ends the bypass.
    pub fn replace(&self) -> bool {
        self.link.send(ToCard::Replace)
    }

    /// Opens ports for the card.
    pub fn opener(&self) -> Opener {
        Opener(Arc::clone(&self.link))
    }

    /// Which seats are valid.
    pub fn seats(&self) -> &Seats {
        &self.seats
    }

    /// Description of the image.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Records that the card runs another image now.
    pub fn set_description(&mut self, description: Description) {
        self.description = description;
    }

    /// Scheduling of the card's thread.
    pub fn scheduling(&self) -> &Granted {
        &self.scheduling
    }

    /// Reads the totals as last reported: 20 times a second while they change, and with each answer about counters.
    pub fn totals_reader(&self) -> Arc<Mutex<CardTotals>> {
        Arc::clone(&self.totals)
    }

    /// How long the card had run when it was taken over; `None` if it was started for this daemon.
    pub fn ran_for(&self) -> Option<Duration> {
        self.ran_for
    }

    /// Leaves the process to the next daemon when this is dropped, unless it is known to want another card or none.
    pub fn leave(&mut self) {
        self.stays = true;
    }

    /// The time by the card's clock, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        let (shown, when) = self.clock;
        shown.saturating_add(u64::try_from(when.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.link.ends.store(true, Ordering::SeqCst);
        let stays = self.stays && !self.link.next_is_refused.load(Ordering::SeqCst);
        if !stays {
            self.link.send(ToCard::End);
        }
        *locked(&self.link.out) = None;
        let deadline = Instant::now() + END_MAX;
        // What was said before is still sent, unless the process does not read.
        while self.threads.first().is_some_and(|writer| !writer.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(END_PAUSE);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
        if !stays {
            self.body.end(deadline);
        }
        let _ = self.socket.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a panic has already been reported
        }
    }
}

/// Passes on what the process reports, until it ends.
fn receive(
    link: &Link,
    totals: &Mutex<CardTotals>,
    body: &Body,
    from: UnixStream,
    events: &dyn Fn(CardEvent),
) {
    let mut from = BufReader::new(from);
    let mut failed = false;
    let broken = loop {
        match read(&mut from) {
            Ok(Some(message)) => match message {
                FromCard::Started(_) => {} // it was the first message
                FromCard::RefusesNext => link.next_is_refused.store(true, Ordering::SeqCst),
                FromCard::Event(event) => {
                    failed |= matches!(event, CardEvent::Failed(_));
                    events(event);
                }
                FromCard::Reply(number, reply) => link.answers.give(number, reply),
                FromCard::Totals(now) => *locked(totals) = now,
                FromCard::Opened(number, opened) => {
                    let waits = locked(&link.waiting).ports.remove(&number);
                    waits.map(|waits| waits.send(opened));
                }
                FromCard::Made(number, made) => {
                    let waits = locked(&link.waiting).cards.remove(&number);
                    if let Some(waits) = waits {
                        let _ = waits.send(made); // it may have gone
                    }
                }
            },
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    *locked(&link.waiting) = Waiting { has_ended: true, ..Waiting::default() };
    if link.ends.load(Ordering::SeqCst) || failed {
        return;
    }
    let how = body.end(Instant::now() + END_MAX);
    let why = match broken {
        None => format!("its process ended ({how}); the log may say why"),
        Some(error) => format!("its process said something wrong ({error}), and was ended"),
    };
    events(CardEvent::Failed(why));
}

impl Link {
    fn to(out: Sender<ToCard>) -> Self {
        Self {
            out: Mutex::new(Some(out)),
            ends: AtomicBool::new(false),
            next_is_refused: AtomicBool::new(false),
            answers: Answers::default(),
            numbers: AtomicU64::new(0),
            waiting: Mutex::default(),
            kept: Mutex::default(),
            ports: Mutex::default(),
        }
    }

    fn send(&self, message: ToCard) -> bool {
        locked(&self.out).as_ref().is_some_and(|out| out.send(message).is_ok())
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Where the answer with this number will come: none, at once, if the process has ended, and as soon as it ends.
    fn wait<T>(
        &self,
        among: impl FnOnce(&mut Waiting) -> &mut HashMap<u64, Sender<T>>,
        number: u64,
    ) -> Receiver<T> {
        let (done, answer) = channel();
        let mut waiting = locked(&self.waiting);
        if !waiting.has_ended {
            among(&mut waiting).insert(number, done);
        }
        answer
    }

    /// The card closes this port.
    fn let_go(&self, number: u8) {
        if let Some(opened) = locked(&self.ports).remove(&number) {
            locked(&self.kept).remove(&opened);
        }
    }
}

impl Opener {
    /// Opens a port in the process; waits for it.
    ///
    /// # Errors
    /// Why it cannot be opened, as a text.
    pub fn open(&self, interface: &str, mut options: OpenOptions) -> Result<Opened, String> {
        let keep = options.keep.take();
        let number = self.0.number();
        let opened = self.0.wait(|waiting| &mut waiting.ports, number);
        if !self.0.send(ToCard::Open(number, interface.to_owned(), options)) {
            locked(&self.0.waiting).ports.remove(&number);
            return Err("the card is not used any more".to_owned());
        }
        let opened = opened.recv().unwrap_or_else(|_| Err("the card's process has ended".to_owned()));
        let (driver, note) = opened?;
        locked(&self.0.kept).extend(keep.map(|keep| (number, keep)));
        let port = Box::new(PortThere { link: Arc::clone(&self.0), number, driver });
        Ok(Opened { port, note })
    }

    /// Whether it opens ports for the same card.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A port that the card's process has opened, until the card has it.
struct PortThere {
    link: Arc<Link>,
    number: u64,
    driver: Driver,
}

impl Drop for PortThere {
    fn drop(&mut self) {
        let taken = locked(&self.link.ports).values().any(|opened| *opened == self.number);
        if !taken {
            locked(&self.link.kept).remove(&self.number);
            self.link.send(ToCard::ClosePort(self.number));
        }
    }
}

/// Frames never pass the daemon: it only has the port for the moment.
impl Port for PortThere {
    fn driver(&self) -> Driver {
        self.driver
    }

    fn opened_apart(&self) -> Option<u64> {
        Some(self.number)
    }

    fn receive(&mut self, _: &mut Pool, _: u64, _: &mut Vec<Packet>, _: usize) -> Result<usize, PortError> {
        Ok(0)
    }

    fn send(&mut self, _: &mut Pool, packet: Packet) -> Result<(), Packet> {
        Err(packet)
    }

    fn flush(&mut self, _: &mut Pool) -> Result<(), PortError> {
        Ok(())
    }

    fn close(&mut self, _: &mut Pool) {}

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> DriverCounters {
        DriverCounters::default()
    }
}

#[cfg(test)]
mod tests {
    use hue_host::process::Process;

    use super::*;

    #[test]
    fn who_waits_for_the_process_is_told_that_it_has_ended() {
        let (out, _messages) = channel();
        let link = Arc::new(Link { ends: AtomicBool::new(true), ..Link::to(out) });
        let body = Body::found(Process::of(std::process::id()).unwrap());
        let (here, there) = UnixStream::pair().unwrap();
        let before = link.wait(|waiting| &mut waiting.ports, link.number());
        drop(there);
        receive(&link, &Mutex::default(), &body, here, &|event| panic!("{event:?}"));
        assert!(before.recv().is_err());
        // Messages to it can still be queued.
        let why = Opener(Arc::clone(&link)).open("p0", OpenOptions::default()).map(drop);
        assert_eq!(why, Err("the card's process has ended".to_owned()));
        assert!(link.wait(|waiting| &mut waiting.cards, link.number()).recv().is_err());
    }
}
