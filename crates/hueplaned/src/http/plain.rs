//! Says what is wrong with JSON, a query or a path in terms of the API.
//!
//! Flow: an error of serde → **[`json_error`], [`query_error`]** → the `detail` of a problem. serde's own texts name
//! types of this program and of Rust ("invalid type: map, expected struct ApplyRequest"), which say nothing to a caller.

use std::fmt::Write;

/// What serde says when a value has another type than expected.
const WRONG: [&str; 3] = ["invalid type: ", "invalid value: ", "invalid length "];

/// Explains why a body is not what was expected: the field, what was found and expected, and the place.
pub(super) fn json_error(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let inner = error.inner();
    let place = match inner.line() {
        0 => String::new(),
        line => format!(" (line {line}, column {})", inner.column()),
    };
    let text = inner.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if inner.is_syntax() || inner.is_eof() {
        return format!("body: this is not JSON: {}{place}", syntax(text));
    }
    let path = error.path().to_string();
    format!("body: {}{place}", located(if path == "." { "" } else { &path }, text))
}

/// Explains why a query is not what was expected; `text` is `FIELD: REASON`, or only the reason.
pub(super) fn query_error(text: &str) -> String {
    let reasons = ["missing field", "unknown field", "duplicate field", "unknown variant"];
    let begins = |reason: &str| reasons.iter().chain(&WRONG).any(|begin| reason.starts_with(begin));
    let (field, reason) = match text.split_once(": ") {
        Some((field, reason)) if !begins(text) => (field, reason),
        _ => ("", text),
    };
    format!("query: {}", located(field, reason))
}

/// `PATH: REASON`. A missing or unknown field is part of the path.
fn located(path: &str, reason: &str) -> String {
    let (begin, rest) = split_field(reason);
    let is_last = |field: &str| path == field || path.ends_with(&format!(".{field}"));
    let path = match begin {
        Some((_, field)) if !is_last(field) => {
            let gap = if path.is_empty() { "" } else { "." };
            format!("{path}{gap}{field}")
        }
        _ => path.to_owned(),
    };
    let reason = match begin {
        Some(("missing", _)) => "this field is required".to_owned(),
        Some(("duplicate", _)) => "this field occurs twice".to_owned(),
        Some((_, _)) => format!("unknown field{}", without_ticks(rest)),
        None => value(reason),
    };
    if path.is_empty() { reason } else { format!("{path}: {reason}") }
}

/// The word before "field", the name of the field, and the rest of serde's text.
fn split_field(reason: &str) -> (Option<(&'static str, &str)>, &str) {
    for word in ["missing", "unknown", "duplicate"] {
        let after = reason.strip_prefix(word).and_then(|rest| rest.strip_prefix(" field `"));
        if let Some((field, rest)) = after.and_then(|after| after.split_once('`')) {
            return (Some((word, field)), rest);
        }
    }
    (None, reason)
}

/// Explains a value that is not what was expected.
fn value(reason: &str) -> String {
    if let Some(rest) = reason.strip_prefix("unknown variant `")
        && let Some((found, expected)) = rest.split_once('`')
    {
        return format!("found {found:?}{}", without_ticks(expected));
    }
    if let Some(rest) = WRONG.iter().find_map(|begin| reason.strip_prefix(begin))
        && let Some((found, wanted)) = rest.rsplit_once(", expected ")
    {
        let found = if reason.starts_with(WRONG[2]) { "a list".to_owned() } else { kind(found) };
        return format!("found {found}, expected {}", expected(wanted));
    }
    match reason {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "expected a whole number".to_owned()
        }
        "number too large to fit in target type" => "the number is too large".to_owned(),
        "number too small to fit in target type" => "the number is too small".to_owned(),
        "provided string was not `true` or `false`" => "expected true or false".to_owned(),
        "invalid IP address syntax" => "expected an address such as 10.1.0.1 or 2001:db8::1".to_owned(),
        _ if ["struct ", "enum ", "::", "variant"].iter().any(|word| reason.contains(word)) => {
            "the value is not what /openapi.json describes".to_owned()
        }
        _ => reason.to_owned(),
    }
}

/// What was found, from serde's words.
fn kind(found: &str) -> String {
    let ticked = |word: &str| found.strip_prefix(word)?.strip_prefix(" `")?.strip_suffix('`');
    if let Some(number) = ["integer", "floating point", "boolean"].iter().find_map(|word| ticked(word)) {
        return number.to_owned();
    }
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "Option value" => "null".to_owned(),
        _ => found.strip_prefix("string ").unwrap_or(found).to_owned(),
    }
}

/// What was expected, from serde's words.
fn expected(wanted: &str) -> String {
    let unsigned = |max: u64| format!("a whole number from 0 to {max}");
    match wanted {
        "u8" => unsigned(u8::MAX.into()),
        "u16" => unsigned(u16::MAX.into()),
        "u32" => unsigned(u32::MAX.into()),
        "u64" | "usize" => unsigned(u64::MAX),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "string or map" | "variant identifier" | "field identifier" => "a string".to_owned(),
        _ if wanted.starts_with("struct ") => "an object".to_owned(),
        _ if wanted.contains("enum ") || wanted.contains("::") || wanted.contains("variant ") => {
            "what /openapi.json describes".to_owned()
        }
        _ if wanted.starts_with("tuple ") || wanted.starts_with("an array ") => "a list".to_owned(),
        _ => wanted.to_owned(),
    }
}

/// The text of a parser of JSON.
fn syntax(text: &str) -> String {
    match text.strip_prefix("EOF while parsing ") {
        Some("a value") => "the text ends where a value is expected".to_owned(),
        Some(what) => format!("the text ends inside {what}"),
        None => without_ticks(text),
    }
}

/// Names in double quotes instead of Markdown's ticks.
fn without_ticks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        let _ = plain.write_char(if char == '`' { '"' } else { char });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ApplyRequest, TraceRequest};

    fn apply(text: &str) -> String {
        let read = &mut serde_json::Deserializer::from_str(text);
        json_error(&serde_path_to_error::deserialize::<_, ApplyRequest>(read).unwrap_err())
    }

    #[test]
    fn bodies_are_explained_without_types_of_the_program() {
        for (text, expected) in [
            ("{", "body: this is not JSON: the text ends inside an object (line 1, column 1)"),
            ("", "body: this is not JSON: the text ends where a value is expected (line 1, column 0)"),
            ("{]", "body: this is not JSON: key must be a string (line 1, column 2)"),
            ("7", "body: found 7, expected an object (line 1, column 1)"),
            ("[]", "body: found a list, expected an object (line 1, column 2)"),
            ("null", "body: found null, expected an object (line 1, column 4)"),
            ("{}", "body: sources: this field is required (line 1, column 2)"),
            (r#"{"sources":{}}"#, "body: sources: found an object, expected a list (line 1, column 11)"),
            (r#"{"sources":[3]}"#, "body: sources[0]: found 3, expected an object (line 1, column 13)"),
            (
                r#"{"sources":[{"name":"a"}]}"#,
                "body: sources[0].text: this field is required (line 1, column 24)",
            ),
            (
                r#"{"sources":[],"dry_run":4}"#,
                "body: dry_run: found 4, expected true or false (line 1, column 25)",
            ),
            (
                r#"{"sources":[],"if_generation":-1}"#,
                "body: if_generation: found -1, expected a whole number from 0 to 18446744073709551615 \
                 (line 1, column 32)",
            ),
        ] {
            assert_eq!(apply(text), expected, "{text}");
        }
        let unknown = apply(r#"{"sources":[],"dr":4}"#);
        assert!(
            unknown.starts_with("body: dr: unknown field, expected one of \"sources\", \"dry_run\""),
            "{unknown}"
        );
        let read = &mut serde_json::Deserializer::from_str(r#"{"port":"p0","frame":[1]}"#);
        let error = json_error(&serde_path_to_error::deserialize::<_, TraceRequest>(read).unwrap_err());
        assert!(error.starts_with("body: frame: found a list, expected "), "{error}");
    }

    #[test]
    fn queries_are_explained() {
        for (text, expected) in [
            ("since: invalid digit found in string", "query: since: expected a whole number"),
            ("since: number too large to fit in target type", "query: since: the number is too large"),
            (
                "sinc: unknown field `sinc`, expected `since` or `follow`",
                "query: sinc: unknown field, expected \"since\" or \"follow\"",
            ),
            ("missing field `to`", "query: to: this field is required"),
            (
                "address: invalid IP address syntax",
                "query: address: expected an address such as 10.1.0.1 or 2001:db8::1",
            ),
            (
                "to: unknown variant `x`, expected `card` or `soft`",
                "query: to: found \"x\", expected \"card\" or \"soft\"",
            ),
            (
                "a: data did not match any variant of untagged enum A",
                "query: a: the value is not what /openapi.json describes",
            ),
        ] {
            assert_eq!(query_error(text), expected);
        }
    }
}
