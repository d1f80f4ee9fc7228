//! Handles Ctrl-C and SIGTERM: the command stops and removes everything that it built, or ends what it serves.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes the signals set a flag instead of ending the process.
pub fn install_handlers() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if !ASKED.swap(true, Ordering::SeqCst) {
            eprintln!("hueplane: interrupted: removing everything");
        }
    })
    .map_err(|error| Failure::Broken(format!("signals: {error}")))
}

/// Makes the signals a byte to read, for a program that waits for several things at once.
pub fn signalled() -> Result<UnixStream, Failure> {
    let (stop, stopper) = UnixStream::pair()?;
    ctrlc::set_handler(move || drop((&stopper).write(&[1])))
        .map_err(|error| Failure::Broken(format!("signals: {error}")))?;
    Ok(stop)
}

/// Whether a signal was received.
pub fn requested() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Fails if a signal was received.
pub fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}
