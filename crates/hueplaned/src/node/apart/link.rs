//! The daemon's end: starts the process, and passes on what it reports.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hue_card::{
    Answers, CardCommand, CardEvent, CardQuestion, CardReply, CardTotals, Description, Images, Seats,
};
use hue_demux::PortId;
use hue_host::rights;
use hue_ports::{Driver, DriverCounters, Keep, OpenOptions, Opened, Packet, Pool, Port, PortError};
use hue_substrate::Program;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::{self, Granted, Scheduling};
use hue_substrate::wake::Wake;

use super::process::ARGUMENT;
use super::protocol::{FromCard, Start, Started, ToCard, read, write};

/// How long the process may take to start the card.
const START_MAX: Duration = Duration::from_secs(60);
/// How long it may take to end. The kernel takes some ten milliseconds for each port.
const END_MAX: Duration = Duration::from_secs(5);
/// Pause between two looks whether it has ended.
const END_PAUSE: Duration = Duration::from_millis(1);

/// A running card in a process of its own. Dropping it ends the process, which closes the card's ports before.
pub struct Apart {
    link: Arc<Link>,
    description: Description,
    scheduling: Granted,
    /// Of the daemon's share of real-time threads.
    _place: Option<scheduling::Reserved>,
    seats: Arc<Seats>,
    totals: Arc<Mutex<CardTotals>>,
    /// Its clock: what it showed, and when.
    clock: (u64, Instant),
    socket: UnixStream,
    child: Arc<Mutex<Child>>,
    threads: Vec<JoinHandle<()>>,
}

/// Its connection.
struct Link {
    /// `None` once the process is to end.
    out: Mutex<Option<Sender<ToCard>>>,
    ends: AtomicBool,
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
}

/// Opens ports in the process.
#[derive(Clone)]
pub struct Opener(Arc<Link>);

impl Apart {
    /// Starts the process with a card that has no ports yet. `peers` are the workers, which wake the card's thread by
    /// `wake`; its packet memory has `memory.0` slots of `memory.1` bytes. Its thread gets the scheduling `wanted` if
    /// permitted. Events go to `events`.
    ///
    /// # Errors
    /// Why the card does not run, as a text.
    pub fn start(
        (images, image): (&Images, &str),
        (wake, peers): (&Wake, &[Peer]),
        memory: (u32, u32),
        wanted: Scheduling,
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<Self, String> {
        let text = |error: io::Error| format!("the card's process cannot be started: {error}");
        let seats = Arc::new(Seats::new().map_err(text)?);
        let (place, refused) = match scheduling::reserve(wanted) {
            Ok(place) => (place, None),
            Err(why) => (None, Some(why)),
        };
        let (socket, child) = spawn().map_err(text)?;
        let child = Arc::new(Mutex::new(child));
        let begun = begin(
            &socket,
            &seats,
            (wake, peers),
            Start {
                images: images.clone(),
                image: image.to_owned(),
                memory,
                real_time: place.is_some(),
                workers: peers.len(),
            },
        );
        let Started { description, why_fair, now_ns } = match begun {
            Ok(Ok(started)) => started,
            failed => {
                end(&child, Instant::now());
                return Err(match failed {
                    Ok(failed) => failed.map(drop).expect_err("it has started"),
                    Err(error) => text(error),
                });
            }
        };
        let why_not = refused.or(why_fair);
        let granted = if why_not.is_none() { wanted } else { Scheduling::Fair };
        let (out, messages) = channel();
        let link = Arc::new(Link {
            out: Mutex::new(Some(out)),
            ends: AtomicBool::new(false),
            answers: Answers::default(),
            numbers: AtomicU64::new(0),
            waiting: Mutex::default(),
            kept: Mutex::default(),
            ports: Mutex::default(),
        });
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
            socket,
            child,
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
        self.threads.push(named("hue-to-card").spawn(move || send(&messages, to))?);
        let (link, totals, child) =
            (Arc::clone(&self.link), Arc::clone(&self.totals), Arc::clone(&self.child));
        self.threads
            .push(named("hue-from-card").spawn(move || receive(&link, &totals, &child, from, &events))?);
        Ok(())
    }

    /// Sends a command. Commands are obeyed in order. Returns `false` if the process is to end.
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
            self.link.answers.forget(number);
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
        let (done, made) = channel();
        locked(&self.link.waiting).cards.insert(number, done);
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

    /// The time by the card's clock, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        let (shown, when) = self.clock;
        shown.saturating_add(u64::try_from(when.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.link.ends.store(true, Ordering::SeqCst);
        *locked(&self.link.out) = None;
        let deadline = Instant::now() + END_MAX;
        // What was said before is still sent, unless the process does not read.
        while self.threads.first().is_some_and(|writer| !writer.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(END_PAUSE);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
        end(&self.child, deadline);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a panic has already been reported
        }
    }
}

/// Starts the process: its socket, and the process.
fn spawn() -> io::Result<(UnixStream, Child)> {
    let (socket, theirs) = UnixStream::pair()?;
    // The program that runs, even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    // Signals to the daemon's group, as by Ctrl-C, are the daemon's: it ends the process itself.
    command.arg0("hueplane-card").arg(ARGUMENT).env_clear().current_dir("/").process_group(0);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::inherit());
    Ok((socket, command.spawn()?))
}

/// Waits until the process has ended; ends it at the deadline. Returns how it ended.
fn end(child: &Mutex<Child>, deadline: Instant) -> String {
    let mut child = locked(child);
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(END_PAUSE),
            Ok(None) => {
                let _ = child.kill();
                break child.wait();
            }
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
    };
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Starts the card in the process.
fn begin(
    socket: &UnixStream,
    seats: &Seats,
    (wake, peers): (&Wake, &[Peer]),
    start: Start,
) -> io::Result<Result<Started, String>> {
    let mut fds: Vec<BorrowedFd<'_>> = vec![seats.descriptor()];
    fds.extend(wake.descriptors());
    for peer in peers {
        fds.push(peer.memory());
        fds.extend(peer.wake.descriptors());
    }
    rights::send(socket.as_fd(), &fds)?;
    write(&mut &*socket, &ToCard::Start(start))?;
    socket.set_read_timeout(Some(START_MAX))?;
    let first = read(&mut &*socket)?;
    socket.set_read_timeout(None)?;
    match first {
        Some(FromCard::Started(started)) => Ok(started),
        Some(_) => Err(io::Error::other("it answers something else")),
        None => Err(io::Error::other("it has ended at once; the log says why")),
    }
}

/// Sends messages until control is done.
fn send(messages: &Receiver<ToCard>, to: UnixStream) {
    let mut to = BufWriter::new(to);
    while let Ok(message) = messages.recv() {
        let mut next = Some(message);
        while let Some(message) = next {
            if let Err(error) = write(&mut to, &message) {
                // If the process has ended, the other thread tells why.
                return tracing::debug!(%error, "a message to the card's process is lost");
            }
            next = messages.try_recv().ok();
        }
        if to.flush().is_err() {
            return;
        }
    }
}

/// Passes on what the process reports, until it ends.
fn receive(
    link: &Link,
    totals: &Mutex<CardTotals>,
    child: &Mutex<Child>,
    from: UnixStream,
    events: &dyn Fn(CardEvent),
) {
    let mut from = BufReader::new(from);
    let mut failed = false;
    let broken = loop {
        match read(&mut from) {
            Ok(Some(message)) => match message {
                FromCard::Started(_) => {} // it was the first message
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
                    waits.map(|waits| waits.send(made));
                }
            },
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    *locked(&link.waiting) = Waiting::default();
    if link.ends.load(Ordering::SeqCst) || failed {
        return;
    }
    let how = end(child, Instant::now() + END_MAX);
    let why = match broken {
        None => format!("its process ended ({how}); the log may say why"),
        Some(error) => format!("its process said something wrong ({error}), and was ended"),
    };
    events(CardEvent::Failed(why));
}

impl Link {
    fn send(&self, message: ToCard) -> bool {
        locked(&self.out).as_ref().is_some_and(|out| out.send(message).is_ok())
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
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
        let (done, opened) = channel();
        locked(&self.0.waiting).ports.insert(number, done);
        if !self.0.send(ToCard::Open(number, interface.to_owned(), options)) {
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
