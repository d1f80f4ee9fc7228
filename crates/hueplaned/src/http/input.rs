//! Parses requests and writes answers: a request with any error is answered with a [`Problem`].

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::App;
use super::plain::{json_error, query_error};
use crate::api::{Problem, ProblemKind};

/// Media type of JSON.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Media type of a problem.
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The query of a request.
pub(super) struct Ask<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Ask<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(bad(query_error(&cause(&error)))),
        }
    }
}

/// The name in a path. It can be any text; the backend decides whether it exists.
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(bad("path: the name is not UTF-8".to_owned())),
        }
    }
}

/// The JSON body of a request.
///
/// # Errors
/// When it is not JSON, too large, too slow, or not what was expected.
pub(super) async fn json<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<T, Problem> {
    if !is_json(headers) {
        let detail = "content-type: expected application/json";
        return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    }
    let limited = Limited::new(body, bytes_max);
    let read = tokio::time::timeout(app.limits.body, limited.collect()).await;
    let bytes = match read {
        Err(_) => {
            let detail = format!("body: incomplete after {} seconds", app.limits.body.as_secs());
            return Err(Problem::new(ProblemKind::Timeout, detail));
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("body: expected at most {bytes_max} bytes");
            return Err(Problem::new(ProblemKind::TooLarge, detail));
        }
        Ok(Err(error)) => {
            let detail = format!("body: incomplete or malformed: {}", cause(error.as_ref()));
            return Err(bad(detail));
        }
        Ok(Ok(body)) => body.to_bytes(),
    };
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| bad(json_error(&error)))?;
    // Text after the value.
    reader.end().map_err(|error| bad(format!("body: this is not JSON: {error}")))?;
    Ok(value)
}

/// Whether the content type is JSON; `charset` and the like may follow.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// A malformed request.
pub(super) fn bad(detail: String) -> Problem {
    Problem::new(ProblemKind::BadRequest, detail)
}

/// The innermost cause of an error: the sentence that names the field.
fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

/// Answers with a value as JSON.
pub(super) fn answer<T: Serialize>(value: Result<T, Problem>) -> Response {
    let bytes = match value.map(|value| serde_json::to_vec(&value)) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Problem::internal(error).into_response(),
        Err(problem) => return problem.into_response(),
    };
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], bytes).into_response()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (status, [(CONTENT_TYPE, PROBLEM), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], body)
            .into_response()
    }
}
