//! BIRD, as Debian packages it: a source of many routes, and a router that accepts them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::shell::{self, Output};

/// The routing table that tests feed: one peer's view of the Internet, 318,457 routes.
pub const FULL_TABLE: &str = "rib/ris-rrc06-2010-07-01-as2497.v4.pfx-nhas.txt.xz";

/// A running BIRD.
#[derive(Debug)]
pub struct Bird {
    folder: PathBuf,
}

impl Bird {
    /// Starts BIRD with `run`, which runs a program in the router's namespace.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn start(parent: &Path, name: &str, config: &str, run: impl Fn(&[&str]) -> Output) -> Self {
        let folder = parent.join(format!("bird-{name}"));
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let bird = Self { folder };
        crate::daemon::write(&bird.file("bird.conf"), config);
        let program = shell::find("bird").unwrap_or_else(|| PathBuf::from("bird"));
        let [program, conf, ctl, pid] = [program, bird.file("bird.conf"), bird.file("ctl"), bird.file("pid")]
            .map(|path| path.to_string_lossy().into_owned());
        let _ = run(&[&program, "-c", &conf, "-s", &ctl, "-P", &pid]).expect_ok();
        bird
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs `birdc` with these words.
    #[track_caller]
    #[must_use]
    pub fn ask(&self, words: &[&str]) -> Output {
        shell::run(shell::command("birdc").arg("-s").arg(self.file("ctl")).args(words))
    }

    /// Number of routes that BIRD knows.
    #[track_caller]
    #[must_use]
    pub fn routes(&self) -> usize {
        let text = self.ask(&["show", "route", "count"]).stdout;
        let count = text.lines().find_map(|line| line.split_once(" of ")?.0.trim().parse().ok());
        count.unwrap_or(0)
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        end(&self.file("pid"));
    }
}

/// Kills the process whose id a file holds.
pub(crate) fn end(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).ok().and_then(|text| text.trim().parse().ok());
    if let Some(pid) = pid {
        // It may have ended already.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// A configuration that announces `routes` (prefixes) to one BGP peer.
#[must_use]
pub fn source(own: &str, peer: &str, routes: impl Iterator<Item = String>) -> String {
    let mut out = format!(
        "router id {own};\nprotocol device {{}}\nprotocol bgp peer {{ local {own} as 65002; neighbor {peer} as 65001; \
         ipv4 {{ import none; export all; next hop self; }}; }}\nprotocol static source4 {{ ipv4;\n"
    );
    for prefix in routes {
        let _ = writeln!(out, "route {prefix} via {own};");
    }
    out + "}\n"
}

/// A configuration that imports the routes of one BGP peer into the kernel.
#[must_use]
pub fn sink(own: &str, peer: &str) -> String {
    format!(
        "router id {own};\nprotocol device {{}}\nprotocol kernel kernel4 {{ ipv4 {{ import none; export all; }}; }}\n\
         protocol bgp peer {{ local {own} as 65001; neighbor {peer} as 65002; connect retry time 1; \
         connect delay time 1; ipv4 {{ import all; export none; }}; }}\n"
    )
}

/// `count` generated /24 prefixes, from 20.0.0.0 on.
pub fn made_prefixes(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("{}.{}.{}.0/24", 20 + (n >> 16), n >> 8 & 255, n & 255))
}

/// The full table's prefixes, or `made` generated ones if the data is missing.
///
/// # Panics
/// When the data cannot be read.
#[must_use]
pub fn full_table(made: usize) -> Vec<String> {
    let Some(path) = hue_testdata::path(FULL_TABLE) else {
        return made_prefixes(made).collect();
    };
    let output = shell::run(shell::command("xzcat").arg(path)).expect_ok();
    let prefixes = output.stdout.lines().filter_map(|line| line.split_whitespace().next());
    prefixes.map(str::to_owned).collect()
}
