//! The limits of the API, in words, for the documentation. The values are those that the API enforces.

use std::time::Duration;

use crate::api::CONFIRM_SECONDS_MAX;
use crate::history::{BYTES_MAX, REVISIONS_MAX};
use crate::http::{
    BODY_BYTES_MAX, CHANGES_MAX, DOCUMENTS_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, PLACE_SECONDS_MAX,
    STREAMS_MAX, ServeLimits, TENANT_CHANGES_MAX, TENANT_DOCUMENTS_BYTES_MAX, TENANT_STREAMS_MAX,
};
use crate::node::{EVENTS_MAX, IDLE_WAIT_MAX, TURN_MAX, WAITING_MAX};

/// What is limited, and how.
#[must_use]
pub fn rows() -> Vec<(&'static str, String)> {
    let limits = ServeLimits::default();
    let all = limits.connections;
    let (kib, mib) = (|bytes: usize| bytes >> 10, |bytes: usize| bytes >> 20);
    vec![
        ("connections on the Unix socket", format!("{all}; further ones wait")),
        (
            "connections on TCP",
            format!(
                "{all}, of which tenants can have {}, and viewers, operators and tenants together {}; {} per tenant",
                all - all / 4,
                all - all / 8,
                limits.tenant_connections
            ),
        ),
        (
            "connections without an authenticated caller",
            format!(
                "{}, each for {}; if there are more, silent ones are disconnected",
                limits.handshakes,
                seconds(limits.handshake)
            ),
        ),
        (
            "head of a request",
            format!("{} KiB, {HEADERS_MAX} fields, {}", kib(HEAD_BYTES_MAX), seconds(limits.head)),
        ),
        (
            "body",
            format!(
                "{} MiB for documents, {} MiB for a tenant's, otherwise {} KiB; {}",
                mib(DOCUMENTS_BYTES_MAX),
                mib(TENANT_DOCUMENTS_BYTES_MAX),
                kib(BODY_BYTES_MAX),
                seconds(limits.body)
            ),
        ),
        (
            "answer",
            format!(
                "begins within {}, for a change within {}",
                seconds(limits.answer),
                seconds(limits.change)
            ),
        ),
        (
            "event and capture streams",
            format!("{STREAMS_MAX}; all tenants together {STREAMS_MAX}, one tenant {TENANT_STREAMS_MAX}"),
        ),
        (
            "bodies with documents",
            format!(
                "{CHANGES_MAX} at once, and {TENANT_CHANGES_MAX} more for tenants; others wait up to \
                 {PLACE_SECONDS_MAX} s"
            ),
        ),
        (
            "changes that wait for their turn",
            format!(
                "{WAITING_MAX}; each waits up to {}, and then up to {} until no network is moving",
                seconds(TURN_MAX),
                seconds(IDLE_WAIT_MAX)
            ),
        ),
        ("a client that reads nothing", format!("disconnected after {}", seconds(limits.write))),
        ("time to confirm a change", format!("{} hours", CONFIRM_SECONDS_MAX / 3_600)),
        ("history", format!("{REVISIONS_MAX} revisions, {} MiB", mib(BYTES_MAX))),
        ("events that are kept", format!("{},{:03}", EVENTS_MAX / 1_000, EVENTS_MAX % 1_000)),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}
