//! Hand-written HTTP over the daemon's socket, including requests that no client would send.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its status; 0 if there was no response.
    pub status: u16,
    /// Its header lines.
    pub head: String,
    /// Its body.
    pub body: String,
    /// How it ended: whether everything was sent, and what came last, after which time.
    pub end: String,
}

impl Answer {
    /// Its body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Sends bytes unchanged and reads until the other side closes, or is silent for `patience`.
///
/// # Panics
/// When nobody listens.
#[track_caller]
#[must_use]
pub fn raw(socket: &Path, bytes: &[u8], patience: Duration) -> Answer {
    let mut stream =
        UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
    let timeouts = stream.set_read_timeout(Some(patience)).and(stream.set_write_timeout(Some(patience)));
    timeouts.unwrap_or_else(|error| panic!("a socket's timeout: {error}"));
    let began = Instant::now();
    // The other side may refuse before it has read everything.
    let sent = stream.write_all(bytes);
    let mut all = Vec::new();
    let mut buffer = [0; 65_536];
    let last = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break "closed".to_owned(),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break error.to_string(),
        }
    };
    let end = format!("sent: {sent:?}; {last} after {} ms", began.elapsed().as_millis());
    let text = String::from_utf8_lossy(&all);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned(), end }
}

/// Sends a GET request and waits for the whole response.
///
/// # Panics
/// When nobody listens.
#[track_caller]
#[must_use]
pub fn get(socket: &Path, path: &str) -> Answer {
    // Version 1.0: the response ends with the connection and is not chunked.
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    // Longer than the daemon lets a caller wait, so that its own answer says why there is no other.
    raw(socket, request.as_bytes(), Duration::from_secs(45))
}
