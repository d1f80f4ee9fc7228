//! The programs of networks of kind `process`: which ones run, and what is known about them.
//!
//! Flow: [`Wanted`] → **[`Programs`]** → [`hue_host::program`] → [`Report`] → node thread → events, state of the network.
//! Invariants: a network has at most one program; the reports of one that was ended change nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use hue_host::ControlNamespace;
use hue_host::program::{Maps, Program, ProgramNews, ProgramSpec};
use hue_planes::Kind;
use hue_ports::XdpRedirect;
use hue_tables::Vid;

use super::wanted::Wanted;
use crate::api::{self, EventKind};

/// Something that happened to a network's program.
#[derive(Debug)]
pub struct Report {
    /// The network.
    pub vid: Vid,
    /// Which program, by [`Programs`].
    run: u64,
    news: ProgramNews,
}

/// All programs, by network.
#[derive(Debug, Default)]
pub struct Programs {
    all: BTreeMap<Vid, Forwarder>,
    /// Number of programs so far.
    runs: u64,
}

/// What a report means for users.
#[derive(PartialEq, Eq, Debug)]
pub struct Told {
    /// The event that tells them, if there is one.
    pub event: Option<(EventKind, String)>,
    /// Whether the program runs again after it did not.
    pub recovered: bool,
}

impl Programs {
    /// Has a network's program run, if it is of a kind that has one: starts it, or puts it in the place of another one.
    /// Does nothing if it runs. Its reports go to `tell`.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn keep(
        &mut self,
        have: &Wanted,
        control: &Arc<ControlNamespace>,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(spec) = spec(have) else { return Ok(()) };
        let vid = have.program.vid;
        if let Some(forwarder) = self.all.get_mut(&vid) {
            return forwarder.ensure(control, spec);
        }
        self.runs += 1;
        self.all.insert(vid, Forwarder::start(vid, control, spec, self.runs, tell)?);
        Ok(())
    }

    /// Ends a network's program.
    pub fn end(&mut self, vid: Vid) {
        self.all.remove(&vid);
    }

    /// A network's interfaces were made anew: its program must be started again, because it has the old ones open.
    pub fn set_stale(&mut self, vid: Vid) {
        if let Some(forwarder) = self.all.get_mut(&vid) {
            forwarder.stale = true;
        }
    }

    /// Takes a report.
    pub fn take(&mut self, report: Report) -> Option<Told> {
        let forwarder = self.all.get_mut(&report.vid).filter(|forwarder| forwarder.run == report.run)?;
        let failed = forwarder.problem.is_some();
        let event = forwarder.take(report.news);
        Some(Told { event, recovered: failed && forwarder.problem.is_none() })
    }

    /// Why a network's program does not run, or did not until a moment ago.
    pub fn problem(&self, vid: Vid) -> Option<&String> {
        self.all.get(&vid)?.problem.as_ref()
    }

    /// The description of a network's program.
    pub fn view(&self, vid: Vid) -> Option<api::Program> {
        self.all.get(&vid).map(Forwarder::view)
    }
}

/// The program that a network should have, if it should have one.
fn spec(want: &Wanted) -> Option<ProgramSpec> {
    let plane = &want.network.spec.plane;
    (plane.kind == Kind::Process).then(|| ProgramSpec {
        command: plane.command.clone(),
        capabilities: plane.capabilities.iter().map(|one| one.name()).collect(),
        vid: want.program.vid.get(),
        network: want.network.name().to_owned(),
        interfaces: want.ports.iter().map(|port| port.interface.clone()).collect(),
        xdp: plane.xdp,
    })
}

/// Has the frames of a network's interfaces go to AF_XDP sockets of its program, which may not load XDP programs itself.
fn open_maps(control: &ControlNamespace, interfaces: &[String]) -> std::io::Result<Maps> {
    let attach =
        || interfaces.iter().map(|one| XdpRedirect::attach(one)).collect::<std::io::Result<Vec<_>>>();
    let redirects = control.namespace.run(attach).map_err(std::io::Error::other)??;
    let maps = redirects.iter().map(XdpRedirect::sockets).collect::<std::io::Result<_>>()?;
    Ok(Maps { maps, held: Box::new(redirects) })
}

/// The program that forwards a network's packets.
#[derive(Debug)]
struct Forwarder {
    program: Program,
    spec: ProgramSpec,
    run: u64,
    /// Whether its interfaces were made anew since it was started.
    stale: bool,
    starts: u64,
    /// What it wrote last.
    last_line: Option<String>,
    /// Why it does not run, or did not until a moment ago.
    problem: Option<String>,
}

impl Forwarder {
    /// Starts a program. Its reports go to `tell`.
    ///
    /// # Errors
    /// When there is no thread for it.
    fn start(
        vid: Vid,
        control: &Arc<ControlNamespace>,
        spec: ProgramSpec,
        run: u64,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let tell = move |news| tell(Report { vid, run, news });
        let program = Program::start(Arc::clone(control), spec.clone(), open_maps, tell)?;
        Ok(Self { program, spec, run, stale: false, starts: 0, last_line: None, problem: None })
    }

    /// Makes it the wanted one: does nothing if it is.
    ///
    /// # Errors
    /// When that is not possible.
    fn ensure(&mut self, control: &Arc<ControlNamespace>, spec: ProgramSpec) -> std::io::Result<()> {
        if self.spec == spec && !self.stale {
            return Ok(());
        }
        self.program.replace(Arc::clone(control), spec.clone())?;
        (self.spec, self.stale, self.problem, self.last_line) = (spec, false, None, None);
        Ok(())
    }

    /// Takes news. Returns the event that tells users, if there is one.
    fn take(&mut self, news: ProgramNews) -> Option<(EventKind, String)> {
        match news {
            ProgramNews::Started => {
                self.starts += 1;
                Some((EventKind::ProgramStarted, format!("started: {}", command_line(&self.spec.command))))
            }
            ProgramNews::Steady => {
                self.problem = None;
                None
            }
            ProgramNews::Wrote(line) => {
                self.last_line = Some(line.clone()).filter(|line| !line.is_empty());
                Some((EventKind::ProgramOutput, line))
            }
            ProgramNews::LeftOut(count) => {
                Some((EventKind::ProgramOutput, format!("({count} more lines were left out)")))
            }
            ProgramNews::Ended { how, pause } => {
                let again = format!("{how}; it is started again in {} s", pause.as_secs());
                let line =
                    self.last_line.take().map(|line| format!(" (it wrote: {line})")).unwrap_or_default();
                self.problem = Some(format!("the network's program does not run: {how}{line}"));
                Some((EventKind::ProgramEnded, again))
            }
        }
    }

    fn view(&self) -> api::Program {
        api::Program { command: self.spec.command.clone(), starts: self.starts }
    }
}

/// A command for people: the first words, shortened.
fn command_line(command: &[String]) -> String {
    const CHARS_MAX: usize = 100;
    let whole = command.join(" ").replace(char::is_control, " ");
    match whole.char_indices().nth(CHARS_MAX) {
        None => whole,
        Some((at, _)) => format!("{} …", &whole[..at]),
    }
}
