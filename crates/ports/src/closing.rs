//! Closing of ports and TAPs without a stall.
//!
//! The kernel waits while it closes a socket, or a TAP that nobody else has open: until no processor uses it, 16 ms on an idle
//! machine, and for whoever changes interfaces at that time. Who moves packets of other networks does not wait with it: another thread does.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Builder;

use crate::pool::Pool;
use crate::port::{Ending, Port};

/// What happens when the system has a port's interface back.
pub type Then = Box<dyn FnOnce() + Send>;

/// Ports that other threads close.
#[derive(Default)]
pub struct Closing(Vec<One>);

struct One {
    /// The caller's number; `None` for a TAP.
    id: Option<u8>,
    /// The port, if its slots are not free yet, when the thread has ended.
    ended: Receiver<Option<Box<dyn Port>>>,
    then: Vec<Then>,
}

impl Closing {
    /// Whether no port is being closed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Closes a port that is no longer polled; `then` follows when the system has its interface back. `id` is the caller's
    /// number of a port which may be opened again.
    pub fn retire(&mut self, id: Option<u8>, mut port: Box<dyn Port>, pool: &mut Pool, then: Then) {
        let ending = port.ending();
        if ending != Ending::SlowRelease {
            port.close(pool);
        }
        if ending == Ending::Quick {
            drop(port);
            return then();
        }
        let (give, take) = sync_channel::<Box<dyn Port>>(1);
        let (end, ended) = sync_channel(1);
        let close = move |mut port: Box<dyn Port>| match ending {
            Ending::SlowRelease => {
                port.release();
                Some(port)
            }
            Ending::Quick | Ending::SlowDrop => None,
        };
        // The thread gets the port when it runs: without memory for a thread, the port must not be lost with it.
        let made = Builder::new().name("hue-close".to_owned()).spawn({
            let end = end.clone();
            move || {
                let _ = end.send(take.recv().ok().and_then(close)); // who retires ports does not end before
            }
        });
        let _ = match made {
            Ok(_) => give.send(port).map_err(drop), // it waits for this
            Err(_) => end.send(close(port)).map_err(drop),
        };
        self.0.push(One { id, ended, then: vec![then] });
    }

    /// Has something follow when a port is closed that is being closed, if it is.
    pub fn follow(&mut self, id: u8, then: Then) {
        if let Some(one) = self.0.iter_mut().find(|one| one.id == Some(id)) {
            one.then.push(then);
        }
    }

    /// Frees the slots of ports that are closed; `waits` for those that are not.
    #[cold]
    pub fn end(&mut self, pool: &mut Pool, waits: bool) {
        self.0.retain_mut(|one| {
            let ended = if waits {
                one.ended.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                one.ended.try_recv()
            };
            match ended {
                Err(TryRecvError::Empty) => return true,
                Ok(Some(mut port)) => port.close(pool),
                Ok(None) | Err(TryRecvError::Disconnected) => {}
            }
            std::mem::take(&mut one.then).into_iter().for_each(|then| then());
            false
        });
    }
}
