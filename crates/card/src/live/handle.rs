//! Control's handle of a running card.

use std::iter::empty;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hue_demux::PortId;
use hue_ports::{Pool, Port, Region};
use hue_substrate::clock::Clock;
use hue_substrate::demux_of;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::{self, Granted, Scheduling};
use hue_substrate::wake::Wake;
use hue_tables::Vid;

use super::answers::Answers;
use super::command::{Attachment, CardCommand, CardQuestion, CardReply, Job};
use super::event::CardEvent;
use super::runner::Runner;
use super::seats::{SeatId, Seats};
use super::totals::{self, CardTotals};
use crate::card::Card;
use crate::device::Description;
use crate::error::CardError;
use crate::generated as regs;
use crate::twin::Twin;

/// The state that the thread would own; `None` once the card has failed.
pub(super) type Own = Mutex<Option<Running>>;

/// A card that its owner runs.
pub(super) struct Running {
    pub(super) runner: Runner,
    pub(super) jobs: Receiver<Job>,
    pub(super) events: Box<dyn Fn(CardEvent) + Send>,
}

/// Control's handle of a running card. Dropping it stops the card and closes its ports.
pub struct LiveCard {
    description: Description,
    jobs: Option<Sender<Job>>,
    seats: Arc<Seats>,
    answers: Arc<Answers>,
    clock: Clock,
    wake: Arc<Wake>,
    region: Region,
    totals: Arc<Mutex<CardTotals>>,
    thread: Option<JoinHandle<()>>,
    scheduling: Granted,
    /// The running card, if it has no thread.
    pub(super) own: Option<Own>,
}

impl LiveCard {
    /// Starts a card that has no ports yet. `peers` are the workers, which wake the card's thread by `wake`; its
    /// packet memory has `slots` slots of `slot_bytes` bytes, and `seats` says which seats are valid. The thread gets the
    /// scheduling `wanted` if permitted, and reports to `events`.
    ///
    /// # Errors
    /// `Access`; `Start` if there is no memory or no thread.
    pub fn start(
        card: Card<Twin>,
        wake: Arc<Wake>,
        peers: Vec<Peer>,
        memory: (u32, u32),
        seats: Arc<Seats>,
        wanted: Scheduling,
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<Self, CardError> {
        let start = |reason: String| CardError::Start { reason };
        let (mut live, mut runner, mailbox) = Self::make(card, wake, peers, memory, seats, Clock::host())?;
        let (granted, grant) = sync_channel(1);
        let thread = std::thread::Builder::new().name("hue-card".to_owned()).spawn(move || {
            let (bound, got) = scheduling::enter(wanted);
            runner.set_bound(bound);
            let _ = granted.send(got); // the caller waits for it
            let ended = catch_unwind(AssertUnwindSafe(|| runner.run(&mailbox, &events)));
            let bug = || Err("a bug in hueplane stopped its thread; see the log, and report it".to_owned());
            if let Err(reason) = ended.unwrap_or_else(|_| bug()) {
                events(CardEvent::Failed(reason));
            }
        });
        live.thread = Some(thread.map_err(|error| start(error.to_string()))?);
        live.scheduling = grant.recv().map_err(|error| start(error.to_string()))?;
        Ok(live)
    }

    /// Creates a card that does not run yet.
    pub(super) fn make(
        mut card: Card<Twin>,
        wake: Arc<Wake>,
        peers: Vec<Peer>,
        (slots, slot_bytes): (u32, u32),
        seats: Arc<Seats>,
        clock: Clock,
    ) -> Result<(Self, Runner, Receiver<Job>), CardError> {
        let start = |reason: String| CardError::Start { reason };
        make_live(&mut card)?;
        let description = card.description().clone();
        let pool = Pool::new(slots, slot_bytes).map_err(|error| start(error.to_string()))?;
        let region = pool.region();
        let (jobs, mailbox) = channel();
        let (totals, answers) = (Arc::default(), Arc::<Answers>::default());
        let shared = (Arc::clone(&seats), Arc::clone(&answers));
        let runner =
            Runner::new(card, pool, peers, Arc::clone(&wake), Arc::clone(&totals), shared, clock.clone());
        let runner = runner.map_err(|error| start(error.to_string()))?;
        let live = Self {
            description,
            jobs: Some(jobs),
            seats,
            answers,
            clock,
            wake,
            region,
            totals,
            thread: None,
            scheduling: Granted::default(),
            own: None,
        };
        Ok((live, runner, mailbox))
    }

    /// Description of the image.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Scheduling of its thread.
    #[must_use]
    pub fn scheduling(&self) -> &Granted {
        &self.scheduling
    }

    /// Records that the card runs another image now.
    pub fn set_description(&mut self, description: Description) {
        self.description = description;
    }

    /// The packet memory with which ports of the card are opened.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Queues a command, which the card's thread executes between two rounds. Commands are executed in order. Returns
    /// `false` if the thread has ended.
    pub fn tell(&self, command: CardCommand) -> bool {
        // This can take longer than a round.
        let demux = match &command {
            CardCommand::Move(wanted) => {
                wanted.watch.as_ref().and_then(|(_, programs)| demux_of(empty(), programs).ok())
            }
            _ => None,
        };
        self.queue(Job::Command(Box::new(command), demux))
    }

    /// Connects a port of the card, named by the card's number, to a wire; networks know it as `id`. A former wire is closed.
    /// Returns `false` if the thread has ended.
    pub fn set_port(&self, number: u8, id: PortId, port: Box<dyn Port>) -> bool {
        self.queue(Job::SetPort(number, id, port))
    }

    /// Ends the bypass with another card, which must have the same networks in software and as many ports. Returns `false`
    /// if the thread has ended.
    pub fn replace(&self, card: Box<Card<Twin>>) -> bool {
        self.queue(Job::Replace(card))
    }

    /// Asks the card's thread. It calls `reply` after earlier commands, or drops it if the card ends before.
    pub fn ask(&self, question: CardQuestion, reply: impl FnOnce(CardReply) + Send + 'static) {
        let number = self.answers.wait(Box::new(reply));
        if !self.queue(Job::Ask(number, question)) {
            drop(self.answers.take(number));
        }
    }

    /// Gives the card to another control, with other workers and seats. What the control before has ordered ends as if it had
    /// taken too long, and counters begin anew. Networks that the card decides stay on it, with their tables as they are: if the
    /// new control loads such a network without a change, the card reports [`CardEvent::Stays`] and leaves it where it is. Their
    /// tables must not be changed; the new control replaces the card as for another image. Returns `false` if the thread has
    /// ended.
    pub fn attach(&mut self, wake: Arc<Wake>, peers: Vec<Peer>, seats: Arc<Seats>) -> bool {
        let to = Attachment { wake: Arc::clone(&wake), peers, seats: Arc::clone(&seats) };
        let given = self.queue(Job::Attach(Box::new(to)));
        (self.wake, self.seats) = (wake, seats);
        given
    }

    fn queue(&self, job: Job) -> bool {
        let Some(jobs) = &self.jobs else { return false };
        let given = jobs.send(job).is_ok();
        self.wake.notify();
        given
    }

    /// Gives a network a seat. Commands that were queued for its former seat do nothing.
    #[must_use]
    pub fn take_seat(&self, vid: Vid) -> SeatId {
        self.seats.take(vid)
    }

    /// Takes a network's seat. Commands that were queued for it do nothing.
    pub fn end_seat(&self, vid: Vid) {
        self.seats.end(vid);
    }

    /// The time by the card's clock, nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Its totals as last published: about a thousand times a second while it works, and before it sleeps.
    #[must_use]
    pub fn totals(&self) -> CardTotals {
        totals::read(&self.totals)
    }

    /// Reads the totals from any thread.
    #[must_use]
    pub fn totals_reader(&self) -> Arc<Mutex<CardTotals>> {
        Arc::clone(&self.totals)
    }
}

/// Sets a card up for live use.
///
/// # Errors
/// `Access`.
pub fn make_live(card: &mut Card<Twin>) -> Result<(), CardError> {
    card.set_live()?;
    card.leave_tunnels_to_software();
    // Ports pause instead of dropping: frames from wires wait in the rings of their sockets, where each network has
    // its share, and frames from workers in the workers' rings.
    card.device().write(regs::CONTROL, regs::CONTROL_PAUSE)
}

impl Drop for LiveCard {
    fn drop(&mut self) {
        self.jobs = None;
        self.wake.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic has already been reported
        }
    }
}
