//! Captures: frames as pcapng, for as long as a client reads.
#![allow(unused_qualifications)] // written by the macros of utoipa

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, ReadyChunks};
use tokio::sync::watch;

use super::access::Caller;
use super::input::Ask;
use super::pcapng::Writer;
use super::places::Place;
use super::{App, scope};
use crate::api::{CaptureFilter, CapturedFrame, Problem};

/// Maximum frames written at once.
const FRAMES_AT_ONCE: usize = 64;

/// Captures frames from now on as a pcapng stream. Interfaces are named `network/port`; the comment of a packet is
/// its outcome.
#[utoipa::path(get, path = "/v1/capture", tag = "packets", params(CaptureFilter), responses(
    (status = 200, description = "Frames, until `count` is reached or the connection ends.", body = Vec<u8>,
        content_type = "application/x-pcapng"),
    (status = 404, description = "There is no such network or port.", body = Problem,
        content_type = "application/problem+json"),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn capture(
    State(app): State<App>,
    caller: Caller,
    Ask(mut filter): Ask<CaptureFilter>,
) -> Response {
    let place = match app.places.stream(&caller) {
        Ok(place) => place,
        Err(problem) => return problem.into_response(),
    };
    let (left, snap) = (filter.count.unwrap_or(u64::MAX), filter.snap.unwrap_or(0));
    let find = async || {
        filter.network = scope::network(&caller, filter.network.take())?;
        app.backend.capture(filter).await
    };
    let frames: BoxStream<'static, CapturedFrame> = match find().await {
        Ok(frames) => frames,
        Err(problem) => return problem.into_response(),
    };
    let capture = Capture {
        frames: frames.ready_chunks(FRAMES_AT_ONCE),
        writer: Writer::new(snap),
        left,
        caller,
        alive: app.limits.alive,
        closing: app.closing,
        _place: place,
    };
    let first = capture.writer.head();
    let body =
        stream::once(async move { Ok(first) }).chain(stream::unfold(capture, |mut capture| async move {
            let bytes = capture.next().await?;
            Some((Ok::<_, Problem>(bytes), capture))
        }));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-pcapng")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(body)).into_response()
}

struct Capture {
    frames: ReadyChunks<BoxStream<'static, CapturedFrame>>,
    writer: Writer,
    /// Frames that may still be sent.
    left: u64,
    caller: Caller,
    /// Longest time without sending. Often only an attempt to send reveals that a reader has disconnected.
    alive: Duration,
    closing: watch::Receiver<bool>,
    /// Keeps its place among the streams.
    _place: Place,
}

impl Capture {
    /// The next bytes; `None` when the capture is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let frames = tokio::select! {
            frames = self.frames.next() => frames?,
            _ = self.closing.wait_for(|closing| *closing) => return None,
            () = tokio::time::sleep(self.alive) => return Some(self.writer.alive()),
        };
        let mut bytes = Vec::new();
        for frame in frames {
            let is_visible = match (&frame.network, self.caller.only()) {
                (_, None) => true,
                (Some(network), Some(only)) => network == only,
                (None, Some(_)) => false,
            };
            if is_visible && self.left > 0 {
                self.left -= 1;
                self.writer.frame(&frame, &mut bytes);
            }
        }
        Some(bytes.into())
    }
}
