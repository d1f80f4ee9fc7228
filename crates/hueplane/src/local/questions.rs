//! Questions to a routing daemon about its state, in the network namespace that both are in.
//!
//! Flow: `--show` → [`ask`] → an abstract Unix socket → [`Questions::answer`] → the state as JSON. Such a socket belongs to a network
//! namespace, so no other network has it, and it vanishes with its process: a second daemon of the same name finds the first one
//! by it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hue_host::local::is_trusted;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Questions answered at the same time.
const ANSWERS_MAX: usize = 4;
/// Longest time without a part of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

fn address(command: &str) -> Result<SocketAddr, Failure> {
    SocketAddr::from_abstract_name(format!("hueplane-{command}"))
        .map_err(|error| Failure::Broken(error.to_string()))
}

/// Asks the daemon of this namespace. An answer longer than `bytes_max` is cut off.
pub fn ask<T: DeserializeOwned>(command: &str, bytes_max: u64) -> Result<T, Failure> {
    let nobody = |error| {
        Failure::NoDaemon(format!(
            "no `hueplane {command}` answers in this network namespace: {error}; for that of a network: \
             `hueplane exec NETWORK -- hueplane {command} --show`"
        ))
    };
    let stream = UnixStream::connect_addr(&address(command)?).map_err(nobody)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(nobody)?;
    let mut text = String::new();
    stream.take(bytes_max).read_to_string(&mut text).map_err(nobody)?;
    if text.is_empty() {
        return Err(Failure::NoDaemon(format!(
            "the `hueplane {command}` of this network namespace does not answer this user: ask as root, or as the user that \
             started it"
        )));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::Broken(format!(
            "the answer of `hueplane {command}` cannot be read: {error}; is it of another version?"
        ))
    })
}

/// The socket of a daemon, and the answers that it is writing.
pub struct Questions {
    listener: UnixListener,
    answers: Arc<AtomicUsize>,
}

impl Questions {
    /// That of the daemon which a command starts; refused if there is another one in this namespace.
    pub fn listen(command: &str) -> Result<Self, Failure> {
        let listener = UnixListener::bind_addr(&address(command)?).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::NoDaemon(format!(
                "another `hueplane {command}` runs in this network namespace; `hueplane {command} --show` asks it"
            )),
            _ => Failure::Broken(format!("listen for questions: {error}")),
        })?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, answers: Arc::default() })
    }

    /// Answers those that have come, each in a thread of its own, because a client may read slowly. Strangers get no answer.
    pub fn answer<T: Serialize>(&self, state: impl Fn() -> T) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            if !is_trusted(&stream) || self.answers.load(Ordering::Relaxed) >= ANSWERS_MAX {
                continue;
            }
            let Ok(text) = serde_json::to_vec(&state()) else { continue };
            let answers = Arc::clone(&self.answers);
            answers.fetch_add(1, Ordering::Relaxed);
            let write = move || {
                let ready =
                    stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
                let _ = ready.and_then(|()| stream.write_all(&text));
                answers.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().name("answer".to_owned()).spawn(write).is_err() {
                self.answers.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl AsFd for Questions {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
