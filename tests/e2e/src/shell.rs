//! Running commands and reading their output.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Folders searched after `PATH`, which does not include those of Debian's daemons.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/lib/frr", "/usr/local/sbin"];

/// The path of a program.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A command by name; also searches outside `PATH`.
#[must_use]
pub fn command(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| PathBuf::from(program)))
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// The command, as typed in a shell.
    pub line: String,
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it exited with 0.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.code == 0
    }

    /// Itself; panics unless it exited with 0.
    #[track_caller]
    #[must_use]
    pub fn expect_ok(self) -> Self {
        self.expect_code(0)
    }

    /// Itself; panics unless it exited with `code`.
    #[track_caller]
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(self.code == code, "expected exit code {code}: {self}");
        self
    }

    /// Its standard output as JSON; panics when it is not JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self}"))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "$ {}\nexit code {}\n{}{}", self.line, self.code, self.stdout, self.stderr)
    }
}

/// Runs a command to its end, with nothing on standard input.
///
/// # Panics
/// When it cannot be started.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    run_with(command, &[])
}

/// Runs a command to its end, with bytes on standard input.
///
/// # Panics
/// When it cannot be started.
#[track_caller]
pub fn run_with(command: &mut Command, input: &[u8]) -> Output {
    let line = line(command);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.unwrap_or_else(|error| panic!("$ {line}: {error}"));
    if let Some(mut stdin) = child.stdin.take() {
        // A command that fails before it has read everything shows that by its exit code.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("$ {line}: {error}"));
    Output {
        line,
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A command as typed in a shell.
#[must_use]
pub fn line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Runs `ip` with a batch of lines.
///
/// # Panics
/// When a line fails.
#[track_caller]
pub fn ip_batch(lines: &str) {
    let _ = run_with(command("ip").args(["-batch", "-"]), lines.as_bytes()).expect_ok();
}
