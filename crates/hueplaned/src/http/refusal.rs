//! Gives a body to the answers that the HTTP library writes by itself.
//!
//! hyper refuses a request that it cannot read before any code of ours runs: 400 for what is not HTTP/1.1, 414 for a
//! path that is too long, 431 for a head that is too large. Its answer is empty, and it has no hook to change that.
//! **[`Refusals`]** replaces such an answer on its way to the peer with one that has a [`Problem`].
//! Invariant: an answer of ours is never replaced, because every answer of ours with such a status has a content type.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::api::{Problem, ProblemKind};

/// The problem in an answer that hyper wrote by itself; `None` for any other bytes.
fn refusal(bytes: &[u8]) -> Option<Problem> {
    let head = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse::<u16>().ok()?;
    let named = |name: &str| {
        let is = |line: &str| line.split_once(':').is_some_and(|(field, _)| field.eq_ignore_ascii_case(name));
        head.split("\r\n").any(is)
    };
    if named("content-type") || !named("content-length") {
        return None;
    }
    let (kind, detail) = match status {
        400 => {
            let detail =
                "this is not an HTTP/1.1 request: its request line or one of its header fields is malformed";
            (ProblemKind::BadRequest, detail.to_owned())
        }
        414 => (ProblemKind::TooLarge, "the path and query of the request are too long".to_owned()),
        431 => {
            let detail = format!(
                "the head of the request is too large: expected at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} header \
                 fields"
            );
            (ProblemKind::TooLarge, detail)
        }
        _ => return None,
    };
    Some(Problem { status, ..Problem::new(kind, detail) })
}

/// The answer with that problem: the same head, but with a body.
fn answer(bytes: &[u8], problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let head = String::from_utf8_lossy(bytes);
    let mut text = String::with_capacity(bytes.len() + body.len() + 128);
    let is_length = |line: &str| {
        line.split_once(':').is_some_and(|(field, _)| field.eq_ignore_ascii_case("content-length"))
    };
    for line in head.trim_end().split("\r\n").filter(|line| !is_length(line)) {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("content-type: application/problem+json\r\ncache-control: no-store\r\n");
    text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let mut all = text.into_bytes();
    all.extend(body);
    all
}

/// A stream on which the empty refusals of hyper get a body.
pub(super) struct Refusals<S> {
    stream: S,
    /// What is left to write of an answer that was replaced.
    rest: Vec<u8>,
}

impl<S> Refusals<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, rest: Vec::new() }
    }
}

impl<S: AsyncWrite + Unpin> Refusals<S> {
    /// Takes over a write that is a refusal as a whole. hyper writes it in one piece: it is short, and the connection
    /// ends after it.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        let Some(problem) = refusal(bytes) else { return false };
        self.rest = answer(bytes, &problem);
        true
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusals<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_rest(context))?;
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_rest(context))?;
        if let [only] = parts
            && this.replaces(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        Pin::new(&mut this.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_rest(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_rest(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n";

    #[test]
    fn only_empty_refusals_get_a_body() {
        let problem = refusal(EMPTY).unwrap();
        assert_eq!((problem.status, problem.kind), (431, ProblemKind::TooLarge));
        let text = String::from_utf8(answer(EMPTY, &problem)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        assert!(head.contains("application/problem+json") && head.contains("connection: close"), "{head}");
        assert_eq!(serde_json::from_str::<Problem>(body).unwrap(), problem);
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n{}",
            b"HTTP/1.1 4",
            b"\xff",
        ] {
            assert_eq!(refusal(other), None);
        }
    }

    #[tokio::test]
    async fn the_body_is_written_also_to_a_slow_peer() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (near, mut far) = tokio::io::duplex(7);
        let mut stream = Refusals::new(near);
        let send = async {
            stream.write_all(EMPTY).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let mut text = String::new();
        let (_, read) = tokio::join!(send, far.read_to_string(&mut text));
        read.unwrap();
        assert!(text.starts_with("HTTP/1.1 431 ") && text.ends_with("\"kind\":\"too_large\"}"), "{text}");
    }
}
