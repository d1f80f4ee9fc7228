//! The OpenAPI description: published as generated, complete, and consistent with the daemon's answers.

use std::collections::BTreeSet;

use crate::world::Served;
use hueplaned::http::{OPERATIONS, openapi_text};
use serde_json::Value;

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");

#[test]
fn the_published_description_is_the_generated_one() {
    if std::env::var_os("HUEPLANE_BLESS").is_some() {
        std::fs::write(PUBLISHED, openapi_text()).unwrap();
    }
    let published = std::fs::read_to_string(PUBLISHED).unwrap_or_default();
    let same = published == openapi_text();
    assert!(same, "docs/reference/openapi.json is stale: `make generate`");
}

fn description() -> Value {
    serde_json::from_str(&openapi_text()).unwrap()
}

#[test]
fn every_operation_is_described_and_every_described_one_exists() {
    let description = description();
    let paths = description["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let existing: BTreeSet<(String, String)> =
        OPERATIONS.iter().map(|one| (one.path.to_owned(), one.method.to_string())).collect();
    assert_eq!(described, existing);
    for item in paths.values().flat_map(|item| item.as_object().unwrap().values()) {
        assert!(item["x-hueplane-roles"].as_array().is_some_and(|roles| !roles.is_empty()), "{item}");
        assert!(
            item["summary"].is_string() && item["responses"]["default"].is_object()
                || item["tags"][0] == "daemon"
        );
    }
}

#[test]
fn every_reference_has_its_target() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| walk(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let (description, mut found) = (description(), Vec::new());
    walk(&description, &mut found);
    assert!(found.len() > 30, "the check sees too few references");
    for reference in found {
        assert!(description.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
}

/// Whether a value has exactly the fields of its schema, recursively, including all required ones.
fn fits(all: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = all.pointer(reference.trim_start_matches('#')).ok_or(reference)?;
        return fits(all, target, value, at);
    }
    if let Some(options) = schema["oneOf"].as_array() {
        let fitting = options.iter().filter(|option| fits(all, option, value, at).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{at}: {fitting} of oneOf fit")) };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) if types.contains(&"number") => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !types.contains(&found) {
        return Err(format!("{at}: found {found}, expected {types:?}"));
    }
    match value {
        Value::String(text) => match schema["enum"].as_array() {
            Some(list) if !list.iter().any(|one| one == text) => {
                Err(format!("{at}: {text} is not in the enum"))
            }
            _ => Ok(()),
        },
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| fits(all, &schema["items"], item, &format!("{at}[{i}]"))),
        Value::Object(fields) => {
            let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
            for required in schema["required"].as_array().into_iter().flatten() {
                let name = required.as_str().unwrap_or_default();
                if !fields.contains_key(name) {
                    return Err(format!("{at}: {name} is missing"));
                }
            }
            fields.iter().try_for_each(|(name, value)| match properties.get(name) {
                Some(schema) => fits(all, schema, value, &format!("{at}.{name}")),
                None => Err(format!("{at}: {name} is not described")),
            })
        }
        _ => Ok(()),
    }
}

#[test]
fn answers_are_as_described() {
    let (served, all) = (Served::new(), description());
    served.world.happen(hueplaned::api::EventKind::Started, None);
    let mut seen = 0;
    for operation in OPERATIONS.iter().filter(|one| one.method == "GET" && one.path.starts_with("/v1/")) {
        if operation.path == "/v1/capture" {
            continue;
        }
        let path = operation.path.replace("{name}", "red");
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let answer = String::from_utf8(served.raw(request.as_bytes())).unwrap();
        let (head, mut body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        if head.contains("chunked") {
            // One chunk, or several with their sizes between them.
            body = body.split_once("\r\n").unwrap().1;
        }
        let text: String = if head.contains("chunked") {
            body.split("\r\n").filter(|line| line.starts_with(['[', ']', ','])).collect()
        } else {
            body.to_owned()
        };
        let value: Value = serde_json::from_str(&text).unwrap();
        let schema =
            &all["paths"][operation.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} has a schema");
        fits(&all, schema, &value, &path).unwrap();
        seen += 1;
    }
    assert_eq!(seen, 18);
    // The check detects a fault.
    let schema = serde_json::json!({"$ref": "#/components/schemas/Bucket"});
    assert!(fits(&all, &schema, &serde_json::json!({"per_second": 1}), "planted").is_err());
    assert!(fits(&all, &schema, &serde_json::json!({"per_second": 1, "burst": "x"}), "planted").is_err());
    assert!(fits(&all, &schema, &serde_json::json!({"per_second": 1, "burst": 2}), "planted").is_ok());
}
