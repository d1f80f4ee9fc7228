//! A program that a network's owner has chosen: kept running, with no more rights than it needs.
//!
//! Flow: [`ProgramSpec`] → **[`Program`]**, a thread: start → output and end ([`ProgramNews`]) → pause → start … until it is
//! dropped. The program runs in the network's namespace and control group, as a user of its own, with the named capabilities
//! only, and in namespaces for processes, mounts and System V IPC: it sees no process but its own, and when it ends, or the
//! daemon does, the kernel ends all that it has started. Invariants: at most one instance runs; a program that fails at once
//! costs one start in [`PAUSE_MIN`], then ever fewer; output beyond [`LINES_BURST`] costs no more than reading it.
//!
//! `unshare` and `setpriv` of util-linux, which every Debian system has, make the namespaces and take the rights away. Source:
//! unshare(1), setpriv(1), capabilities(7), pid_namespaces(7).

#![allow(unsafe_code)] // code between fork and exec

use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::control::ControlNamespace;
use crate::error::HostError;
use crate::exec;
use crate::process::Process;

/// Pause before a program that has ended is started again: at first, and at most.
pub const PAUSE_MIN: Duration = Duration::from_secs(1);
/// See [`PAUSE_MIN`].
pub const PAUSE_MAX: Duration = Duration::from_secs(60);
/// A program that has run this long did start.
pub const STEADY_AFTER: Duration = Duration::from_secs(3);
/// A program that has run this long counts as one that works: the next pause is the shortest again.
pub const WORKS_AFTER: Duration = Duration::from_secs(30);
/// Time between the request to end (SIGTERM) and the end by force (SIGKILL).
const GRACE: Duration = Duration::from_secs(2);
/// Lines of output that are reported at once, and later in a second.
pub const LINES_BURST: u32 = 20;
/// See [`LINES_BURST`].
const LINES_PER_SECOND: f64 = 2.0;
/// Longest reported line, bytes.
const LINE_BYTES_MAX: usize = 400;
/// User and group of the program of network 0; others follow by the network's id. The range is above those that distributions
/// and containers use.
const USER_BASE: u32 = 0x7000_0000;

/// What to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramSpec {
    /// The program and its arguments, at least one word.
    pub command: Vec<String>,
    /// Names of its capabilities, such as `net_raw`.
    pub capabilities: Vec<&'static str>,
    /// Id of its network.
    pub vid: u16,
    /// Name of its network.
    pub network: String,
    /// Interfaces of its network's virtual ports.
    pub interfaces: Vec<String>,
    /// Whether it inherits, for each interface, a map for its AF_XDP socket; see [`OpenMaps`].
    pub xdp: bool,
}

/// Has the frames of a network's interfaces go to AF_XDP sockets: returns a map of sockets for each interface, and what must stay for that.
pub type OpenMaps = fn(&ControlNamespace, &[String]) -> io::Result<Maps>;

/// See [`OpenMaps`].
pub struct Maps {
    /// By interface, in the order of the interfaces.
    pub maps: Vec<OwnedFd>,
    /// Frames go to the sockets as long as this exists.
    pub held: Box<dyn Send>,
}

/// What happens to a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramNews {
    /// It was started.
    Started,
    /// It wrote a line.
    Wrote(String),
    /// It wrote more lines than are reported.
    LeftOut(u64),
    /// It has run for [`STEADY_AFTER`].
    Steady,
    /// It has ended, or could not be started, and will be started again after the pause.
    Ended {
        /// How, such as "it ended with status 1".
        how: String,
        /// Time until it is started again.
        pause: Duration,
    },
}

/// A program that is kept running until this is dropped, which ends it soon after.
#[derive(Debug)]
pub struct Program {
    /// A byte tells the thread that there is another task. When this is dropped, it ends.
    wake: PipeWriter,
    next: Arc<Mutex<Option<Task>>>,
}

/// A program, and where it runs.
#[derive(Debug)]
struct Task {
    control: Arc<ControlNamespace>,
    spec: ProgramSpec,
}

impl Program {
    /// Starts it, and reports what happens. `report` is called on a thread of its own.
    ///
    /// # Errors
    /// When there is no thread or pipe. A program that cannot be started is reported and tried again.
    pub fn start(
        control: Arc<ControlNamespace>,
        spec: ProgramSpec,
        open_maps: OpenMaps,
        report: impl Fn(ProgramNews) + Send + 'static,
    ) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let name = format!("hue-program-{}", spec.vid);
        let next = Arc::default();
        let task = Task { control, spec };
        let (next_task, lines) = (Arc::clone(&next), Lines::new(Instant::now()));
        let keeper = Keeper { task, open_maps, maps: None, next: next_task, woken, lines };
        std::thread::Builder::new().name(name).spawn(move || keeper.keep(&report))?;
        Ok(Self { wake, next })
    }

    /// Ends it, then starts this one in its place.
    ///
    /// # Errors
    /// When its thread has ended, which it does not.
    pub fn replace(&mut self, control: Arc<ControlNamespace>, spec: ProgramSpec) -> io::Result<()> {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Task { control, spec });
        self.wake.write_all(&[0])
    }
}

/// The thread's part.
struct Keeper {
    task: Task,
    open_maps: OpenMaps,
    /// The maps of the task's interfaces, once they were needed.
    maps: Option<Maps>,
    next: Arc<Mutex<Option<Task>>>,
    woken: PipeReader,
    lines: Lines,
}

/// Why [`Keeper::follow`] returns.
enum Followed {
    /// The program has ended.
    Ended(ExitStatus),
    /// The thread was woken, and has ended the program.
    Woken,
}

impl Keeper {
    fn keep(mut self, report: &dyn Fn(ProgramNews)) {
        let mut pause = PAUSE_MIN;
        loop {
            let begun = Instant::now();
            let how = match self.spawn() {
                Ok((child, output)) => {
                    report(ProgramNews::Started);
                    match self.follow(child, output, report) {
                        Ok(Followed::Ended(status)) => ended(status),
                        Ok(Followed::Woken) if self.takes_next() => {
                            pause = PAUSE_MIN;
                            continue;
                        }
                        Ok(Followed::Woken) => return,
                        Err(error) => format!("it cannot be followed: {error}"),
                    }
                }
                Err(error) => error.to_string(),
            };
            if begun.elapsed() >= WORKS_AFTER {
                pause = PAUSE_MIN;
            }
            report(ProgramNews::Ended { how, pause });
            pause = match self.is_woken_within(pause) {
                false => (pause * 2).min(PAUSE_MAX),
                true if self.takes_next() => PAUSE_MIN,
                true => return,
            };
        }
    }

    /// Takes the next task. Returns `false` if there is none: the thread is to end.
    fn takes_next(&mut self) -> bool {
        // Several tasks may have come meanwhile: only the last one counts.
        let woken = self.woken.read(&mut [0; 64]).unwrap_or(0);
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            self.task = next;
            self.maps = None; // the interfaces may be others
        }
        woken > 0
    }

    /// The maps for the program's sockets, and the variable that names them, `INTERFACE=DESCRIPTOR …`.
    fn maps(&mut self) -> Result<Option<(Vec<RawFd>, String)>, HostError> {
        let Self { task: Task { control, spec }, maps, open_maps, .. } = self;
        if !spec.xdp {
            return Ok(None);
        }
        let maps = match maps {
            Some(maps) => maps,
            None => {
                let what = "pass the frames of its interfaces to AF_XDP sockets";
                maps.insert(
                    open_maps(control, &spec.interfaces).map_err(|error| HostError::system(what, error))?,
                )
            }
        };
        let files: Vec<RawFd> = maps.maps.iter().map(AsRawFd::as_raw_fd).collect();
        let words = spec.interfaces.iter().zip(&files).map(|(interface, file)| format!("{interface}={file}"));
        let variable = words.collect::<Vec<_>>().join(" ");
        Ok(Some((files, variable)))
    }

    fn spawn(&mut self) -> Result<(Child, PipeReader), HostError> {
        let maps = self.maps()?;
        let failed = |error: io::Error| {
            let program = self.task.spec.command.first().map_or("", String::as_str);
            HostError::system(format!("run {program}"), error)
        };
        let Task { control, spec } = &self.task;
        let mut command = exec::private_command(&control.namespace, control.cgroup.as_ref(), "unshare")?;
        command.args(["--pid", "--fork", "--mount-proc", "--ipc", "--"]);
        let user = USER_BASE + u32::from(spec.vid);
        let rights: String = spec.capabilities.iter().map(|name| format!(",+{name}")).collect();
        command.arg("setpriv").args([format!("--reuid={user}"), format!("--regid={user}")]);
        // The kernel forgets `--kill-child` when the user changes.
        command.args(["--clear-groups", "--no-new-privs", "--pdeathsig=KILL"]);
        for set in ["--bounding-set", "--inh-caps", "--ambient-caps"] {
            command.arg(format!("{set}=-all{rights}"));
        }
        // The first process of a process namespace gets no signal that it does not handle, and inherits the children of those that end. So it is
        // not the program: a shell waits for it and for orphans, and has its status.
        command.args(["--", "sh", "-c", "\"$@\"; exit $?", "hueplane-program"]).args(&spec.command);
        command.env_clear().env("PATH", PATH).env("HOME", "/tmp").env("LANG", "C.UTF-8");
        command.env("HUEPLANE_NETWORK", &spec.network);
        command.env("HUEPLANE_INTERFACES", spec.interfaces.join(" "));
        if let Some((files, variable)) = maps {
            command.env("HUEPLANE_XSKMAPS", variable);
            // SAFETY: only system calls between fork and exec. The descriptors are open: `self.maps` has them.
            unsafe { command.pre_exec(move || inherit(&files)) };
        }
        let (output, into) = io::pipe().map_err(failed)?;
        let errors = into.try_clone().map_err(failed)?;
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(into).stderr(errors);
        // If the daemon dies, so does the program: the next daemon starts it, and two of them would forward each frame twice.
        // SAFETY: only a system call between fork and exec.
        unsafe { command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        Ok((command.spawn().map_err(failed)?, output))
    }

    /// Reports what a program writes until it ends, or is to end.
    fn follow(
        &mut self,
        mut child: Child,
        mut output: PipeReader,
        report: &dyn Fn(ProgramNews),
    ) -> io::Result<Followed> {
        let process = Process::of(child.id());
        let mut buffer = [0; 4096];
        let (begun, mut steady, mut writes) = (Instant::now(), false, true);
        loop {
            if !steady && begun.elapsed() >= STEADY_AFTER {
                steady = true;
                report(ProgramNews::Steady);
            }
            let mut fds = vec![PollFd::new(self.woken.as_fd(), PollFlags::POLLIN)];
            if let Ok(process) = &process {
                fds.push(PollFd::new(process.as_fd(), PollFlags::POLLIN));
            }
            if writes {
                fds.push(PollFd::new(output.as_fd(), PollFlags::POLLIN));
            }
            poll(&mut fds, PollTimeout::from(LOOK_MS))?;
            let is_ready =
                |at: usize| fds.get(at).and_then(PollFd::revents).is_some_and(|ready| !ready.is_empty());
            let (woken, readable) = (is_ready(0), writes && is_ready(fds.len() - 1));
            if woken {
                end(&mut child, process.as_ref().ok())?;
                return Ok(Followed::Woken);
            }
            if readable {
                match output.read(&mut buffer)? {
                    0 => writes = false,
                    count => self.lines.take(&buffer[..count], Instant::now(), report),
                }
            } else if let Some(status) = child.try_wait()? {
                self.lines.end(report);
                return Ok(Followed::Ended(status));
            }
        }
    }

    /// Waits; returns whether the thread was woken.
    fn is_woken_within(&self, pause: Duration) -> bool {
        let mut fds = [PollFd::new(self.woken.as_fd(), PollFlags::POLLIN)];
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let patience = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, patience) {
                Ok(0) if Instant::now() >= until => return false,
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                _ => return true,
            }
        }
    }
}

/// Lets the next program that this process executes have these files.
fn inherit(files: &[RawFd]) -> io::Result<()> {
    for file in files {
        // SAFETY: no memory is accessed.
        if unsafe { libc::fcntl(*file, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Ends a program: first asks it to.
fn end(child: &mut Child, process: Option<&Process>) -> io::Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let _ = killpg(group, Signal::SIGTERM);
    let until = Instant::now() + GRACE;
    while child.try_wait()?.is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let _ = killpg(group, Signal::SIGKILL);
            child.wait()?;
            break;
        }
        // Readable when it has ended. Without that, it is looked at.
        match process {
            Some(process) => {
                let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    Ok(())
}

/// How long the thread waits without looking, milliseconds.
const LOOK_MS: u16 = 1000;
/// Where its program is looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn ended(status: ExitStatus) -> String {
    // Of a program that a signal has ended, the shell says so.
    const SIGNALLED: i32 = 128;
    let by = status.code().and_then(|code| Signal::try_from(code - SIGNALLED).ok());
    match (status.code(), by.or_else(|| status.signal().and_then(|signal| Signal::try_from(signal).ok()))) {
        (_, Some(signal)) => format!("it was ended by {signal}"),
        (Some(code), None) => format!("it ended with status {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Output, cut into lines. Of those that come too fast, only the number is reported.
struct Lines {
    line: Vec<u8>,
    left_out: u64,
    /// The last one of those.
    last: Vec<u8>,
    tokens: f64,
    filled: Instant,
}

impl Lines {
    fn new(now: Instant) -> Self {
        Self { line: Vec::new(), left_out: 0, last: Vec::new(), tokens: LINES_BURST.into(), filled: now }
    }

    fn take(&mut self, bytes: &[u8], now: Instant, report: &dyn Fn(ProgramNews)) {
        let since = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + since * LINES_PER_SECOND).min(LINES_BURST.into());
        self.filled = now;
        for byte in bytes {
            if *byte == b'\n' {
                self.line_done(report);
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(*byte);
            }
        }
    }

    fn line_done(&mut self, report: &dyn Fn(ProgramNews)) {
        if self.tokens < 1.0 {
            self.left_out += 1;
            std::mem::swap(&mut self.line, &mut self.last);
            self.line.clear();
            return;
        }
        self.tokens -= 1.0;
        self.tell_left_out(report);
        report(ProgramNews::Wrote(Printable(&self.line).to_string()));
        self.line.clear();
    }

    fn tell_left_out(&mut self, report: &dyn Fn(ProgramNews)) {
        match std::mem::take(&mut self.left_out) {
            0 => {}
            count => report(ProgramNews::LeftOut(count)),
        }
    }

    /// The program has ended: what it wrote last, which often says why, is reported in any case.
    fn end(&mut self, report: &dyn Fn(ProgramNews)) {
        if !self.line.is_empty() {
            self.line_done(report);
        }
        if self.left_out > 0 {
            self.left_out -= 1;
            self.tell_left_out(report);
            report(ProgramNews::Wrote(Printable(&self.last).to_string()));
        }
    }
}

/// Text in which nothing controls a terminal.
struct Printable<'a>(&'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in String::from_utf8_lossy(self.0).chars() {
            match one {
                '\t' => f.write_str(" ")?,
                one if one.is_control() => write!(f, "{}", one.escape_default())?,
                one => write!(f, "{one}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_and_not_reported() {
        let now = Instant::now();
        let mut lines = Lines::new(now);
        let news = RefCell::new(Vec::new());
        let report = |one| news.borrow_mut().push(one);
        lines.take(&b"rubbish\n".repeat(1_000_000), now, &report);
        assert_eq!(news.borrow().len(), LINES_BURST as usize);
        lines.take(b"\x1b[2Jhalf", now + Duration::from_secs(1), &report);
        lines.take(b" and half\tof it\n", now + Duration::from_secs(1), &report);
        let left_out = 1_000_000 - u64::from(LINES_BURST);
        let last = "\\u{1b}[2Jhalf and half of it".to_owned();
        assert_eq!(
            news.borrow()[LINES_BURST as usize..],
            [ProgramNews::LeftOut(left_out), ProgramNews::Wrote(last)]
        );
        lines.take(&b"more\n".repeat(1_000), now, &report);
        lines.take(&[b'x'; 10_000], now, &report);
        lines.end(&report);
        let end = ProgramNews::Wrote("x".repeat(LINE_BYTES_MAX));
        assert_eq!(news.borrow().last(), Some(&end), "the last one is reported although there were too many");
        assert!(
            matches!(news.borrow().iter().rev().nth(1), Some(ProgramNews::LeftOut(count)) if *count > 900)
        );
    }
}
