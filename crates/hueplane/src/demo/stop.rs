//! Ctrl-C and SIGTERM: the demo stops where it is and tears down what it built.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the signals set a flag instead of ending the process.
pub fn heed() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if !ASKED.swap(true, Ordering::SeqCst) {
            eprintln!("hueplane: interrupted: removing everything");
        }
    })
    .map_err(|error| Failure::Broken(format!("signals: {error}")))
}

/// Whether somebody asked to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Fails when somebody asked to stop.
pub fn check() -> Result<(), Failure> {
    if asked() { Err(Failure::Interrupted) } else { Ok(()) }
}
