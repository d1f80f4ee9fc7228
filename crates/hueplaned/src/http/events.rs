//! Events: the events that are kept, as JSON; or these and all new ones, as server-sent events.
//!
//! A stream pulls from the backend's ring at its reader's pace. A reader that falls behind by more than the ring
//! holds gets a `gap` and continues; nobody waits for it. The id of a server-sent event is its sequence number, so a
//! client that reconnects with `Last-Event-ID` (or `?since=`) continues where it stopped. A number above the newest
//! one is from an earlier daemon: the stream then begins with the oldest event kept.
//! Source: WHATWG HTML §9.2.
#![allow(unused_qualifications)] // written by the macros of utoipa

use std::collections::VecDeque;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::watch;
use utoipa::IntoParams;

use super::access::Caller;
use super::input::{Ask, answer, bad};
use super::places::Place;
use super::{App, scope};
use crate::api::{Event, EventKind, EventPage, Problem, Timestamp};

/// Events taken from the ring at a time.
const EVENTS_AT_ONCE: usize = 256;
/// Maximum events of a page.
const PAGE_EVENTS_MAX: usize = 10_000;
/// Header in which a reconnecting client names the last event it received.
const LAST_EVENT_ID: &str = "last-event-id";

/// Which events to return.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only events after this number; `Last-Event-ID` takes precedence.
    #[serde(default)]
    #[param(required = false)]
    since: u64,
    /// Continue with new events, as server-sent events.
    #[serde(default)]
    #[param(required = false)]
    follow: bool,
}

/// Events. With `follow=true` the answer is a stream of server-sent events: `id` is the sequence number, `event` the
/// kind and `data` an Event. A tenant gets the events of its network.
#[utoipa::path(get, path = "/v1/events", tag = "daemon",
    params(Which, ("Last-Event-ID" = Option<u64>, Header, description = "Number of the last event received.")),
    responses(
        (status = 200, description = "Events.", content(
            (EventPage = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Ask(which): Ask<Which>,
) -> Response {
    let since = match last_event_id(&headers) {
        Ok(last) => last.unwrap_or(which.since),
        Err(problem) => return problem.into_response(),
    };
    if !which.follow {
        let mut page = app.backend.events_since(since, PAGE_EVENTS_MAX);
        page.events.retain(|event| scope::event(&caller, event));
        return answer::<EventPage>(Ok(page));
    }
    match app.places.stream(&caller) {
        Ok(place) => follow(app, caller, since, place),
        Err(problem) => problem.into_response(),
    }
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let number = value.to_str().ok().map(str::trim).and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| bad("Last-Event-ID: expected the number of an event".to_owned()))
}

fn follow(app: App, caller: Caller, since: u64, place: Place) -> Response {
    let newest = app.backend.events_watch();
    // Send something at once, so that the client knows that the stream has begun.
    let hello = VecDeque::from([Bytes::from_static(b": events\n\n")]);
    let follower = Follower { app, caller, since, newest, ready: hello, _place: place };
    let body = stream::unfold(follower, |mut follower| async move {
        let bytes = follower.next().await?;
        Some((Ok::<_, Problem>(bytes), follower))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(body)).into_response()
}

struct Follower {
    app: App,
    caller: Caller,
    /// Number of the last event taken from the ring.
    since: u64,
    newest: watch::Receiver<u64>,
    /// Bytes still to be sent.
    ready: VecDeque<Bytes>,
    /// Keeps its place among the streams.
    _place: Place,
}

impl Follower {
    /// The next bytes to send; `None` when the daemon stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            self.newest.mark_unchanged();
            if self.take() {
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                _ = self.app.closing.wait_for(|closing| *closing) => return None,
                () = tokio::time::sleep(self.app.limits.alive) => return Some(Bytes::from_static(b": alive\n\n")),
            }
        }
    }

    /// Takes events from the ring; false when there are none.
    fn take(&mut self) -> bool {
        let mut page = self.app.backend.events_since(self.since, EVENTS_AT_ONCE);
        if self.since > page.last {
            self.since = 0;
            page = self.app.backend.events_since(0, EVENTS_AT_ONCE);
        }
        let Some(last) = page.events.last().map(|event| event.sequence) else { return false };
        if self.since > 0 && page.first > self.since.saturating_add(1) {
            self.ready.push_back(frame(&gap(self.since, page.first)));
        }
        self.since = last;
        let visible = page.events.iter().filter(|event| scope::event(&self.caller, event));
        self.ready.extend(visible.map(frame));
        true
    }
}

/// An event that says which events are no longer kept.
fn gap(since: u64, first: u64) -> Event {
    Event {
        sequence: first - 1,
        time: Timestamp::now(),
        kind: EventKind::Gap,
        network: None,
        port: None,
        message: format!("events {} to {} are no longer kept", since + 1, first - 1),
    }
}

/// Formats a server-sent event. JSON has no line breaks of its own, so one `data` line holds it.
fn frame(event: &Event) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("id: {}\nevent: {}\ndata: {data}\n\n", event.sequence, event.kind.name()))
}
