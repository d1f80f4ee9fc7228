//! The program of a network of kind `process`: which one runs, and what is known about it.
//!
//! Flow: [`Wanted`] → **[`Forwarder`]** → [`hue_host::program`] → [`Report`] → node thread → events, state of the network.
//! Invariant: the reports of a program that was replaced change nothing.

use std::sync::Arc;

use hue_host::ControlNamespace;
use hue_host::program::{Program, ProgramNews, ProgramSpec};
use hue_planes::Kind;

use super::wanted::Wanted;
use crate::api::{self, EventKind};

/// Something that happened to a network's program.
#[derive(Debug)]
pub struct Report {
    /// The network.
    pub network: String,
    /// Which of its programs, by [`Forwarder`].
    run: u64,
    news: ProgramNews,
}

/// The program that forwards a network's packets.
#[derive(Debug)]
pub struct Forwarder {
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
    /// The program that a network should have, if it should have one.
    pub fn spec(want: &Wanted) -> Option<ProgramSpec> {
        let plane = &want.network.spec.plane;
        (plane.kind == Kind::Process).then(|| ProgramSpec {
            command: plane.command.clone(),
            capabilities: plane.capabilities.iter().map(|one| one.name()).collect(),
            vid: want.program.vid.get(),
            network: want.network.name().to_owned(),
            interfaces: want.ports.iter().map(|port| port.interface.clone()).collect(),
        })
    }

    /// Starts a program. Its reports go to `tell`.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn start(
        control: &Arc<ControlNamespace>,
        spec: ProgramSpec,
        run: u64,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let network = spec.network.clone();
        let tell = move |news| tell(Report { network: network.clone(), run, news });
        let program = Program::start(Arc::clone(control), spec.clone(), tell)?;
        Ok(Self { program, spec, run, stale: false, starts: 0, last_line: None, problem: None })
    }

    /// Its interfaces were made anew: it must be started again, because it has the old ones open.
    pub fn set_stale(&mut self) {
        self.stale = true;
    }

    /// Makes it the wanted one: does nothing if it is.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn ensure(&mut self, control: &Arc<ControlNamespace>, spec: ProgramSpec) -> std::io::Result<()> {
        if self.spec == spec && !self.stale {
            return Ok(());
        }
        self.program.replace(Arc::clone(control), spec.clone())?;
        (self.spec, self.stale, self.problem, self.last_line) = (spec, false, None, None);
        Ok(())
    }

    /// Takes a report. Returns the event that tells users, if there is one.
    pub fn take(&mut self, report: Report) -> Option<(EventKind, String)> {
        if report.run != self.run {
            return None;
        }
        match report.news {
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

    /// Why the network's packets are not forwarded.
    pub fn problem(&self) -> Option<&String> {
        self.problem.as_ref()
    }

    /// Its description.
    pub fn view(&self) -> api::Program {
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
