//! Errors of the API: RFC 9457 problem details, with findings for invalid documents.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kind of a problem: it says whose fault the problem is, and so what may help.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The request is malformed; the caller's fault.
    BadRequest,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller's role does not allow this.
    Forbidden,
    /// The object does not exist, or the caller may not see it.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The request or its answer took too long.
    Timeout,
    /// The request conflicts with the current state, for example in `if_generation`.
    Conflict,
    /// The request is too large.
    TooLarge,
    /// The body is not JSON.
    UnsupportedMediaType,
    /// Documents are invalid; `findings` says where and why.
    InvalidDocuments,
    /// A named limit is reached: tables, networks, disk.
    Full,
    /// Too many calls at once; try again.
    Busy,
    /// A fault in the daemon.
    Internal,
    /// The daemon is starting or stopping.
    Unavailable,
}

impl ProblemKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Timeout,
        Self::Conflict,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidDocuments,
        Self::Full,
        Self::Busy,
        Self::Internal,
        Self::Unavailable,
    ];

    /// Its name, as after the last colon of `type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Timeout => "timeout",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::InvalidDocuments => "invalid_documents",
            Self::Full => "full",
            Self::Busy => "busy",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
        }
    }

    /// HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Timeout => 408,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::InvalidDocuments => 422,
            Self::Full => 507,
            Self::Busy => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "The request is malformed",
            Self::Unauthenticated => "The caller is not authenticated",
            Self::Forbidden => "The caller's role does not allow this",
            Self::NotFound => "The object does not exist",
            Self::MethodNotAllowed => "The path does not support this method",
            Self::Timeout => "The request took too long",
            Self::Conflict => "The request conflicts with the current state",
            Self::TooLarge => "The request is too large",
            Self::UnsupportedMediaType => "The body is not JSON",
            Self::InvalidDocuments => "Documents are invalid",
            Self::Full => "A limit is reached",
            Self::Busy => "Too many calls at once",
            Self::Internal => "The daemon has failed",
            Self::Unavailable => "The daemon is not ready",
        }
    }
}

/// One error in documents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// File name, as in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Path of the field in its document, such as `spec.ports[0].mac`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// A likely fix, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The whole finding in one line.
    pub message: String,
}

impl From<&hue_intent::Error> for Finding {
    fn from(error: &hue_intent::Error) -> Self {
        let finding = error.finding();
        let of = |part: fn(&hue_intent::Finding) -> &String| finding.map(|finding| part(finding).clone());
        Self {
            file: of(|finding| &finding.place.file),
            line: finding.map(|finding| finding.place.line),
            column: finding.map(|finding| finding.place.column),
            field: of(|finding| &finding.field),
            found: of(|finding| &finding.found),
            expected: of(|finding| &finding.expected),
            hint: finding.and_then(|finding| finding.hint.clone()),
            message: error.to_string(),
        }
    }
}

/// Why a call failed: RFC 9457 problem details, sent as `application/problem+json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:hueplane:problem:` followed by the kind.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The kind as a phrase.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What failed, where, and what to do next.
    pub detail: String,
    /// The kind.
    pub kind: ProblemKind,
    /// Errors in documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Number of findings not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Problem {
    /// Creates a problem of a kind; `detail` says what failed, where, and what to do next.
    #[must_use]
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("urn:hueplane:problem:{}", kind.name()),
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: detail.into(),
            kind,
            findings: Vec::new(),
            more: 0,
        }
    }

    /// The network does not exist, or the caller may not see it.
    #[must_use]
    pub fn no_network(name: &str) -> Self {
        Self::new(ProblemKind::NotFound, format!("network {name:?} does not exist"))
    }

    /// The port does not exist, or the caller may not see it.
    #[must_use]
    pub fn no_port(name: &str) -> Self {
        Self::new(ProblemKind::NotFound, format!("port {name:?} does not exist"))
    }

    /// A fault in the daemon.
    #[must_use]
    pub fn internal(detail: impl fmt::Display) -> Self {
        Self::new(ProblemKind::Internal, detail.to_string())
    }

    /// The daemon is starting or stopping.
    #[must_use]
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }
}

impl From<&hue_intent::Errors> for Problem {
    fn from(errors: &hue_intent::Errors) -> Self {
        let findings: Vec<Finding> = errors.list.iter().map(Finding::from).collect();
        let count = findings.len() + errors.more;
        let detail = match findings.first() {
            Some(first) if count == 1 => first.message.clone(),
            Some(first) => format!("{} (and {} more)", first.message, count - 1),
            None => "the documents are invalid".to_owned(),
        };
        Self { findings, more: errors.more, ..Self::new(ProblemKind::InvalidDocuments, detail) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            return f.write_str(&self.detail);
        }
        for (index, finding) in self.findings.iter().enumerate() {
            let gap = if index > 0 { "\n" } else { "" };
            write!(f, "{gap}{}", finding.message)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_called_the_same_everywhere() {
        for kind in ProblemKind::ALL {
            let problem = Problem::new(kind, "why");
            let json = serde_json::to_value(&problem).unwrap();
            assert_eq!(json["kind"], kind.name());
            assert_eq!(json["type"], format!("urn:hueplane:problem:{}", kind.name()));
            assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
        }
    }

    #[test]
    fn findings_say_where() {
        let source = hue_intent::Source { name: "a.yaml".into(), bytes: b"kind: Nothing".to_vec() };
        let errors = hue_intent::parse(vec![source]).unwrap_err();
        let problem = Problem::from(&errors);
        assert_eq!(problem.status, 422);
        assert_eq!(problem.findings[0].file.as_deref(), Some("a.yaml"));
        assert_eq!(problem.to_string(), errors.to_string());
    }
}
