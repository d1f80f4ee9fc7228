//! Evaluates the JSON Schema keywords (draft 2020-12) that our schema uses. A complete evaluator takes
//! minutes to build. An unknown keyword panics, so new keywords in the schema cannot go unnoticed.

use regex_lite::Regex;
use serde_json::{Map, Value};

/// Whether `value` is valid according to `schema`, which is part of `root`.
pub fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    match schema {
        Value::Bool(valid) => *valid,
        Value::Object(keywords) => {
            keywords.iter().all(|(word, with)| keyword(root, keywords, word, with, value))
        }
        other => panic!("no schema: {other}"),
    }
}

fn list(with: &Value) -> &Vec<Value> {
    with.as_array().unwrap()
}

fn keyword(root: &Value, all: &Map<String, Value>, word: &str, with: &Value, value: &Value) -> bool {
    let valid = |schema: &Value, value: &Value| valid(root, schema, value);
    let fields = value.as_object();
    let has = |field: &Value| fields.is_none_or(|fields| fields.contains_key(field.as_str().unwrap()));
    match word {
        "$schema" | "$id" | "$defs" | "title" | "description" | "examples" | "default" | "format" => true,
        "$ref" => valid(root.pointer(&with.as_str().unwrap()[1..]).unwrap(), value),
        "type" => with
            .as_str()
            .map_or_else(|| list(with).iter().any(|one| of_type(one, value)), |_| of_type(with, value)),
        "const" => with == value,
        "enum" => list(with).contains(value),
        "oneOf" => list(with).iter().filter(|schema| valid(schema, value)).count() == 1,
        "anyOf" => list(with).iter().any(|schema| valid(schema, value)),
        "if" => valid(&all[if valid(with, value) { "then" } else { "else" }], value),
        "then" | "else" => true,
        "required" => list(with).iter().all(has),
        "dependentRequired" => with.as_object().unwrap().iter().all(|(field, others)| {
            fields.is_none_or(|fields| !fields.contains_key(field)) || list(others).iter().all(has)
        }),
        "properties" => with.as_object().unwrap().iter().all(|(field, schema)| {
            fields.and_then(|fields| fields.get(field)).is_none_or(|value| valid(schema, value))
        }),
        "additionalProperties" => {
            assert_eq!(*with, Value::Bool(false));
            let known = all["properties"].as_object().unwrap();
            fields.is_none_or(|fields| fields.keys().all(|field| known.contains_key(field)))
        }
        "items" => value.as_array().is_none_or(|values| values.iter().all(|value| valid(with, value))),
        "minItems" => value.as_array().is_none_or(|values| values.len() as u64 >= with.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|values| values.len() as u64 <= with.as_u64().unwrap()),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|values| values.iter().enumerate().all(|(at, one)| !values[..at].contains(one))),
        "minimum" => value.as_f64().is_none_or(|number| number >= with.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= with.as_f64().unwrap()),
        "multipleOf" => value.as_u64().is_none_or(|number| number % with.as_u64().unwrap() == 0),
        "maxLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 <= with.as_u64().unwrap())
        }
        "pattern" => {
            value.as_str().is_none_or(|text| Regex::new(with.as_str().unwrap()).unwrap().is_match(text))
        }
        other => panic!("unknown keyword {other}"),
    }
}

fn of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}
