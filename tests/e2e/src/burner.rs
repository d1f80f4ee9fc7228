//! Ordinary busy processes of other users: each takes all processor time that it can get.
//!
//! Each is in a session of its own, like a build in a terminal, and in the control groups in which the test was
//! started, so the product does not control them. The kernel ends them with the thread that started them, in
//! whatever way that thread ends.

use std::process::{Child, Stdio};

use crate::shell;

/// Programs that burners need.
pub const PROGRAMS: [&str; 2] = ["setsid", "setpriv"];

/// Busy processes. They end when this is dropped, and with the thread that started them.
#[derive(Debug)]
pub struct Burners(Vec<Child>);

impl Burners {
    /// Starts `count` of them.
    ///
    /// # Panics
    /// When one cannot be started.
    #[must_use]
    pub fn start(count: usize) -> Self {
        let start = |_| {
            let mut command = shell::command("setsid");
            command.args(["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null());
            command.spawn().unwrap_or_else(|error| panic!("a busy process: {error}"))
        };
        Self((0..count).map(start).collect())
    }

    /// Processor time that they have used together, seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.0.iter().map(|child| crate::daemon::cpu_seconds_of(child.id())).sum()
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_with_the_thread_that_started_them() {
        if PROGRAMS.iter().any(|program| shell::find(program).is_none()) {
            return hue_testdata::skipped("setsid or setpriv");
        }
        let start = || {
            let burners = Burners::start(1);
            // A process that ends at once reports no error, so wait until they use processor time.
            crate::until("it burns", 20, || burners.cpu_seconds() > 0.0);
            let ids: Vec<u32> = burners.0.iter().map(Child::id).collect();
            std::mem::forget(burners);
            ids
        };
        let ids = std::thread::spawn(start).join().unwrap();
        // Its parent, this process, has not waited for it, so it stays as a zombie.
        let ended = |id: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z') || rest.is_empty())
        };
        crate::until("they end", 20, || ids.iter().all(ended));
    }
}
