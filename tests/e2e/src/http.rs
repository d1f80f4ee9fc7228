//! Hand-written HTTP over the daemon's socket, including requests that no client would send.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

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
    // The other side may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    let mut all = Vec::new();
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8_lossy(&all);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
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
    raw(socket, request.as_bytes(), Duration::from_secs(30))
}
