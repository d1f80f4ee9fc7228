//! Closing of ports and TAPs without a stall.
//!
//! The kernel waits while it closes a socket, or a TAP that nobody else has open: until no processor uses it, 16 ms on an idle
//! machine, and for whoever changes interfaces at that time. The worker moves packets of other networks, so another thread waits.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Builder;

use hue_demux::PortId;
use hue_ports::{Ending, Port};

use super::Worker;

/// What happens when the system has a port's interface back.
pub(crate) type Then = Box<dyn FnOnce() + Send>;

/// A port that a thread closes.
pub(super) struct Closing {
    /// `None` for a TAP.
    id: Option<PortId>,
    /// The port, if its slots are not free yet, when the thread has ended.
    ended: Receiver<Option<Box<dyn Port>>>,
    then: Vec<Then>,
}

impl Worker {
    /// Closes a port that is no longer polled; `then` follows when the system has its interface back. `id` is that of a port
    /// which may be opened again.
    pub(super) fn retire(&mut self, id: Option<PortId>, mut port: Box<dyn Port>, then: Then) {
        let ending = port.ending();
        if ending != Ending::SlowRelease {
            port.close(&mut self.pool);
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
                let _ = end.send(take.recv().ok().and_then(close)); // the worker does not end before
            }
        });
        let _ = match made {
            Ok(_) => give.send(port).map_err(drop), // it waits for this
            Err(_) => end.send(close(port)).map_err(drop),
        };
        self.closing.push(Closing { id, ended, then: vec![then] });
    }

    /// Has something follow when a port is closed that is being closed, if it is.
    pub(super) fn follow_closing(&mut self, id: PortId, then: Then) {
        if let Some(closing) = self.closing.iter_mut().find(|closing| closing.id == Some(id)) {
            closing.then.push(then);
        }
    }

    /// Frees the slots of ports that are closed; `waits` for those that are not.
    #[cold]
    pub(super) fn end_closing(&mut self, waits: bool) {
        let Self { closing, pool, .. } = self;
        closing.retain_mut(|one| {
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
