//! The daemon: a loop that waits for packets, notifications, questions and time.
//!
//! One raw socket an interface, bound to it, so that the interface of a packet is known. Several notifications about
//! interfaces that come together cause one look at the interfaces, and the state machine sees only what differs then.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hue_host::netlink::{Groups, Received, Socket as Netlink};
use hue_routing::pwospf::{ALL_ROUTERS, Config, IP_PROTOCOL, Interface, Router, RouterId, Sent};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

use super::NAME;
use super::kernel::{self, Kernel};
use super::show::{Extra, Snapshot};
use crate::cli::Pwospf;
use crate::failure::Failure;
use crate::local::questions::Questions;
use crate::local::stop;
use crate::print;

/// Pause between a notification and the look at the interfaces: a link that comes up sends several.
const NOTICE_PAUSE: Duration = Duration::from_millis(20);
/// Packets read from an interface before the next one's turn.
const PACKETS_MAX: usize = 64;
/// Bytes of the largest IP packet.
const PACKET_BYTES: usize = 65_535;
/// Precedence "internetwork control", as routers of OSPF send (RFC 2328 §A.1).
const TOS: u32 = 0xc0;

/// Says something to the operator.
pub fn note(text: &str) {
    print::note(NAME, text);
}

/// Runs until a signal.
pub fn run(args: &Pwospf) -> Result<(), Failure> {
    let questions = Questions::listen(NAME)?;
    let stop = stop::signalled()?;
    // Before the first look at the interfaces, so that no change is missed.
    let notices = Netlink::open(Groups::LINK.and(Groups::ADDRESS4))?;
    notices.set_nonblocking(true)?;
    let mut kernel = Kernel::open()?;
    let interfaces = kernel.interfaces(&args.interfaces)?;
    let start = Instant::now();
    let config = config(args, &interfaces)?;
    note(&format!("router {} of area {} starts", config.router, config.area));
    if kernel.inherited() > 0 {
        note(&format!(
            "{} of an earlier one are kept until it is known which are right",
            print::count(kernel.inherited() as u64, "route")
        ));
    }
    let mut daemon = Daemon {
        router: Router::new(Duration::ZERO, config),
        start,
        kernel,
        names: args.interfaces.clone(),
        speakers: BTreeMap::new(),
        notices,
        questions,
        stop,
        look_at: None,
        is_complete: false,
        send_failed: 0,
    };
    for name in daemon.names.iter().filter(|name| !interfaces.iter().any(|one| one.name == **name)) {
        note(&format!("interface {name} is not up with an IPv4 address in this namespace (yet)"));
    }
    daemon.take_interfaces(interfaces)?;
    daemon.act()?;
    let ended = daemon.serve();
    // Also after an error: routes that nobody maintains mislead packets.
    let removed = daemon.end();
    ended.and(removed)
}

fn config(args: &Pwospf, interfaces: &[Interface]) -> Result<Config, Failure> {
    let highest = || kernel::highest(interfaces).and_then(RouterId::new);
    let router = args.router_id.or_else(highest).ok_or_else(|| {
        Failure::Usage(
            "no interface that is up has an IPv4 address from which to take the router's id; give --router-id, or check `ip address`"
                .to_owned(),
        )
    })?;
    let mut advertised = args.statics.clone();
    advertised.extend(args.default_route.then(|| hue_tables::Prefix4::containing(0, 0)));
    // Newer than in any earlier life: LSUs are at least a second apart.
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    Ok(Config {
        router,
        area: args.area,
        hello_interval_s: args.hello_interval,
        lsu_interval_s: args.lsu_interval,
        advertised,
        any_source: args.any_source,
        sequence: clock as u16,
    })
}

/// The raw socket of an interface.
struct Speaker {
    socket: Socket,
    /// From which address multicast packets are sent.
    source: Ipv4Addr,
}

impl Speaker {
    fn open(interface: &Interface) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(i32::from(IP_PROTOCOL))))?;
        socket.bind_device(Some(interface.name.as_bytes()))?;
        socket.join_multicast_v4_n(&ALL_ROUTERS, &InterfaceIndexOrAddress::Index(interface.link))?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_multicast_ttl_v4(1)?;
        socket.set_ttl_v4(1)?;
        socket.set_tos_v4(TOS)?;
        socket.set_nonblocking(true)?;
        socket.set_multicast_if_v4(&interface.address)?;
        Ok(Self { socket, source: interface.address })
    }

    fn send(&mut self, sent: &Sent) -> io::Result<()> {
        if sent.destination == ALL_ROUTERS && sent.source != self.source {
            self.socket.set_multicast_if_v4(&sent.source)?;
            self.source = sent.source;
        }
        // To a neighbour, the kernel takes the address that is on the neighbour's subnet.
        let to = SockAddr::from(SocketAddrV4::new(sent.destination, 0));
        self.socket.send_to(&sent.bytes, &to).map(drop)
    }
}

struct Daemon {
    router: Router,
    start: Instant,
    kernel: Kernel,
    names: Vec<String>,
    /// By index of the interface.
    speakers: BTreeMap<u32, Speaker>,
    notices: Netlink,
    questions: Questions,
    stop: UnixStream,
    /// When to look at the interfaces.
    look_at: Option<Duration>,
    /// Whether all routers had the time to say what they know.
    is_complete: bool,
    send_failed: u64,
}

impl Daemon {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let mut buffer = vec![0; PACKET_BYTES];
        loop {
            let complete_at = (!self.is_complete).then(|| self.router.complete_at());
            let due = self.look_at.into_iter().chain(complete_at).fold(self.router.due(), Duration::min);
            let ready = self.wait(due)?;
            if ready.stop {
                return Ok(());
            }
            let now = self.now();
            if ready.notices {
                self.drain_notices()?;
                self.look_at.get_or_insert(now + NOTICE_PAUSE);
            }
            if self.look_at.is_some_and(|at| at <= now) {
                self.look_at = None;
                let interfaces = self.kernel.interfaces(&self.names)?;
                self.take_interfaces(interfaces)?;
                self.act()?;
                self.kernel.restore()?;
            }
            for link in ready.links {
                self.read(link, &mut buffer);
            }
            if ready.question {
                self.answer();
            }
            if self.router.due() <= self.now() {
                self.router.tick(self.now());
            }
            self.act()?;
            if !self.is_complete && self.router.complete_at() <= self.now() {
                self.is_complete = true;
                self.kernel.forget_inherited()?;
            }
        }
    }

    /// Waits until something is to be done, at most until `due`.
    fn wait(&self, due: Duration) -> Result<Ready, Failure> {
        // Rounded up: a wake-up slightly too early would be one without work.
        let left = (due.saturating_sub(self.now()) + Duration::from_micros(999)).as_millis();
        let timeout = PollTimeout::try_from(left.min(60_000) as i32).unwrap_or(PollTimeout::ZERO);
        let fixed = [self.stop.as_fd(), self.notices.as_fd(), self.questions.as_fd()];
        let all = fixed.into_iter().chain(self.speakers.values().map(|speaker| speaker.socket.as_fd()));
        let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Failure::Broken(format!("wait for packets: {}", errno.desc()))),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| fd.any() == Some(true));
        let links = self.speakers.keys().enumerate().filter(|(at, _)| is_ready(at + fixed.len()));
        Ok(Ready {
            stop: is_ready(0),
            notices: is_ready(1),
            question: is_ready(2),
            links: links.map(|(_, link)| *link).collect(),
        })
    }

    fn drain_notices(&mut self) -> Result<(), Failure> {
        // What they say does not matter, nor whether some were lost: all is read anew.
        while self.notices.receive(|_| {})? != Received::Nothing {}
        Ok(())
    }

    fn take_interfaces(&mut self, interfaces: Vec<Interface>) -> Result<(), Failure> {
        let speaking = || interfaces.iter().filter(|interface| interface.speaks);
        self.speakers.retain(|link, _| speaking().any(|interface| interface.link == *link));
        for interface in speaking() {
            if self.speakers.contains_key(&interface.link) {
                continue;
            }
            match Speaker::open(interface) {
                Ok(speaker) => drop(self.speakers.insert(interface.link, speaker)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Failure::Broken(format!(
                        "open a raw socket on {}: {error}: needs root",
                        interface.name
                    )));
                }
                // It may be gone again already.
                Err(error) => note(&format!("open a raw socket on {}: {error}", interface.name)),
            }
        }
        self.router.set_interfaces(self.now(), interfaces);
        Ok(())
    }

    fn read(&mut self, link: u32, buffer: &mut [u8]) {
        let now = self.now();
        let Some(speaker) = self.speakers.get(&link) else { return };
        for _ in 0..PACKETS_MAX {
            // An error is that of an interface that goes down, about which a notification comes.
            let Ok(length) = (&speaker.socket).read(buffer) else { return };
            self.router.receive(now, link, buffer.get(..length).unwrap_or_default());
        }
    }

    /// Does what the state machine wants.
    fn act(&mut self) -> Result<(), Failure> {
        let output = self.router.take();
        for sent in &output.packets {
            let done = self.speakers.get_mut(&sent.link).map(|speaker| speaker.send(sent));
            self.send_failed += u64::from(!matches!(done, Some(Ok(()))));
        }
        output.events.iter().for_each(|event| note(&event.to_string()));
        if output.changes.is_empty() { Ok(()) } else { self.kernel.change(&output.changes) }
    }

    fn answer(&self) {
        let extra = Extra {
            uptime: self.now(),
            is_complete: self.is_complete,
            send_failed: self.send_failed,
            routes_refused: self.kernel.refused,
            routes_inherited: self.kernel.inherited() as u64,
        };
        self.questions.answer(|| Snapshot::of(&self.router, &extra));
    }

    /// Takes leave of the neighbours, and removes the routes.
    fn end(&mut self) -> Result<(), Failure> {
        self.router.end(self.now());
        let output = self.router.take();
        for sent in &output.packets {
            if let Some(speaker) = self.speakers.get_mut(&sent.link) {
                let _ = speaker.send(sent);
            }
        }
        self.kernel.remove_all()?;
        note("ended; its routes are removed");
        Ok(())
    }
}

/// What can be done without waiting.
struct Ready {
    stop: bool,
    notices: bool,
    question: bool,
    /// Interfaces with packets.
    links: Vec<u32>,
}
