//! Where the reports of a card's process go.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::lock::locked;
use super::protocol::{FromCard, send_all};

/// Where reports go: to the present daemon, if there is one.
#[derive(Clone, Default)]
pub(super) struct Out(Arc<Mutex<Option<Sender<FromCard>>>>);

impl Out {
    /// Sends a message, if there is a daemon.
    pub fn send(&self, message: FromCard) {
        if let Some(out) = &*locked(&self.0) {
            let _ = out.send(message); // the daemon may just have ended
        }
    }

    /// Sends to this daemon from now on, until [`Out::disconnect`].
    pub fn connect(&self, socket: &UnixStream) -> io::Result<JoinHandle<()>> {
        let (out, messages) = channel();
        let to = socket.try_clone()?;
        let thread = std::thread::Builder::new().name("hue-reports".to_owned());
        let thread = thread.spawn(move || drop(send_all(&messages, to)))?; // it fails if the daemon has ended
        *locked(&self.0) = Some(out);
        Ok(thread)
    }

    /// Sends what is left, and nothing more.
    pub fn disconnect(&self, thread: JoinHandle<()>) {
        *locked(&self.0) = None;
        let _ = thread.join(); // a panic has already been reported
    }
}
