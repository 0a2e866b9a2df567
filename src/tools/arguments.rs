//! Reads the arguments of a call: parses them, sanitises their strings, and holds them against the
//! tool's definition (SPEC C8, C12). Errors are written for the model.

use serde_json::{Map, Value};

use crate::sanitize;

/// How many names of parameters an error lists.
const NAMES: usize = 8;
/// How many characters of a name an error shows.
const NAME: usize = 60;

/// Arguments that passed.
#[derive(Debug, PartialEq)]
pub(super) struct Arguments {
    pub(super) values: Map<String, Value>,
    /// The parameters that lost characters to sanitising, and how many.
    pub(super) removed: Vec<(String, usize)>,
}

impl Arguments {
    /// Reads `text` for the tool that `spec` defines.
    pub(super) fn read(text: &str, spec: &Value, sanitize: bool) -> Result<Self, String> {
        let mut values = parse(text)?;
        let mut removed = Vec::new();
        if sanitize {
            for (name, value) in &mut values {
                let count = sanitize_strings(value);
                if count > 0 {
                    removed.push((name.clone(), count));
                }
            }
        }
        check(&mut values, spec)?;
        Ok(Self { values, removed })
    }
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!(
            "the arguments have to be a JSON object, but are {}",
            kind(&other)
        )),
        Err(error) => Err(format!(
            "the arguments have to be a JSON object, but are not valid JSON: {error}"
        )),
    }
}

/// Sanitises every string in `value`. Returns how many characters went.
fn sanitize_strings(value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            let clean = sanitize::arguments(text);
            let count = text.chars().count() - clean.chars().count();
            *text = clean;
            count
        }
        Value::Array(items) => items.iter_mut().map(sanitize_strings).sum(),
        Value::Object(map) => map.values_mut().map(sanitize_strings).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Holds `values` against the definition. Null counts as absent, whole numbers in any writing as
/// integers; parameters that the tool does not know stay, unused.
fn check(values: &mut Map<String, Value>, spec: &Value) -> Result<(), String> {
    values.retain(|_, value| !value.is_null());
    let schema = spec.pointer("/function/parameters").unwrap_or(&Value::Null);
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| {
        required.is_some_and(|names| names.iter().any(|required| required == name.as_str()))
    };
    for (name, property) in properties.into_iter().flatten() {
        let wanted = property
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match values.get_mut(name) {
            Some(value) => {
                if wanted == "integer"
                    && let Some(integer) = integer(value)
                {
                    *value = integer.into();
                }
                if !is_of_type(value, wanted) {
                    return Err(format!(
                        "the parameter `{name}` has to be {}, but is {}",
                        article(wanted),
                        kind(value)
                    ));
                }
            }
            None if is_required(name) => {
                return Err(format!(
                    "the parameter `{name}` ({}) is missing{}",
                    article(wanted),
                    given(values)
                ));
            }
            None => {}
        }
    }
    Ok(())
}

/// A whole number, however it is written; one beyond the range becomes the nearest in it.
fn integer(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return None,
    };
    if let Ok(integer) = number.parse::<i64>() {
        return Some(integer);
    }
    let float = number.parse::<f64>().ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and the fraction is zero"
    )]
    (float.is_finite() && float.fract() == 0.0).then_some(float as i64)
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        _ => true,
    }
}

fn article(wanted: &str) -> String {
    match wanted {
        "integer" => "an integer".to_owned(),
        "" => "a value".to_owned(),
        wanted => format!("a {wanted}"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Which parameters there are, where one is missing: its name is often merely a different one.
fn given(values: &Map<String, Value>) -> String {
    if values.is_empty() {
        return String::new();
    }
    let names: Vec<String> = values
        .keys()
        .take(NAMES)
        .map(|name| shortened(name))
        .collect();
    let more = if values.len() > NAMES { ", …" } else { "" };
    format!("; given: {}{more}", names.join(", "))
}

/// A name as far as it helps: what the model made up may be of any length.
pub(super) fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec() -> Value {
        json!({"function": {"parameters": {
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer"},
                "flag": {"type": "boolean"},
            },
            "required": ["path"],
        }}})
    }

    fn read(text: &str) -> Result<Value, String> {
        Arguments::read(text, &spec(), true).map(|arguments| Value::Object(arguments.values))
    }

    #[test]
    fn c8_faults_are_named_with_what_is_expected() {
        for (text, message) in [
            ("", "the parameter `path` (a string) is missing"),
            (" \n", "the parameter `path` (a string) is missing"),
            ("{}", "the parameter `path` (a string) is missing"),
            (
                r#"{"path":null}"#,
                "the parameter `path` (a string) is missing",
            ),
            (
                r#"{"file":"x","flag":true}"#,
                "the parameter `path` (a string) is missing; given: file, flag",
            ),
            (
                r#"{"path":1}"#,
                "the parameter `path` has to be a string, but is a number",
            ),
            (
                r#"{"path":["x"]}"#,
                "the parameter `path` has to be a string, but is an array",
            ),
            (
                r#"{"path":"x","offset":"ten"}"#,
                "the parameter `offset` has to be an integer, but is a string",
            ),
            (
                r#"{"path":"x","offset":1.5}"#,
                "the parameter `offset` has to be an integer, but is a number with a fraction",
            ),
            (
                r#"{"path":"x","offset":true}"#,
                "the parameter `offset` has to be an integer, but is a boolean",
            ),
            (
                r#"{"path":"x","flag":"yes"}"#,
                "the parameter `flag` has to be a boolean, but is a string",
            ),
            (
                "[1]",
                "the arguments have to be a JSON object, but are an array",
            ),
            (
                r#""{}""#,
                "the arguments have to be a JSON object, but are a string",
            ),
            (
                "null",
                "the arguments have to be a JSON object, but are null",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), message, "{text}");
        }
    }

    #[test]
    fn c8_an_error_stays_short_whatever_the_model_wrote() {
        let name = "x".repeat(10_000);
        let many: Vec<String> = (0..1000).map(|n| format!("\"{n}{name}\":1")).collect();
        let message = read(&format!("{{{}}}", many.join(","))).unwrap_err();
        assert!(message.chars().count() < 700, "{message}");
        assert!(message.ends_with("…, …"), "{message}");
    }

    #[test]
    fn c8_text_that_is_no_json_says_where_it_breaks() {
        for text in [
            r#"{"path":"x"#,
            r#"{"path":"x"} trailing"#,
            "{path:1}",
            r#"{"path":"\ud800"}"#,
            &"[".repeat(100_000),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains("not valid JSON: "), "{message}");
            assert!(message.contains("column"), "{message}");
        }
    }

    #[test]
    fn c8_integers_are_accepted_in_any_writing() {
        for (written, integer) in [
            ("10", 10),
            ("-3", -3),
            ("10.0", 10),
            ("1e3", 1000),
            (r#""10""#, 10),
            (r#"" 10 ""#, 10),
            (r#""10.0""#, 10),
            (r#""-3""#, -3),
            ("1e30", i64::MAX),
            ("-1e30", i64::MIN),
            ("18446744073709551615", i64::MAX),
            ("99999999999999999999", i64::MAX),
        ] {
            let text = format!(r#"{{"path":"x","offset":{written}}}"#);
            assert_eq!(
                read(&text).unwrap(),
                json!({"path": "x", "offset": integer}),
                "{text}"
            );
        }
        for written in [
            r#""""#,
            r#""0x10""#,
            r#""inf""#,
            r#""NaN""#,
            r#""1,5""#,
            "[]",
            "{}",
        ] {
            let text = format!(r#"{{"path":"x","offset":{written}}}"#);
            assert!(read(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn c8_null_counts_as_absent_and_the_unknown_is_ignored() {
        assert_eq!(
            read(r#"{"path":"x","offset":null,"why":"because"}"#).unwrap(),
            json!({"path": "x", "why": "because"})
        );
    }

    #[test]
    fn c12_every_string_is_sanitised_and_losses_are_counted() {
        let text = r#"{"path":"a\u0000b\u00a0","flag":true,"more":["\r\n",{"x":"\u200bé"}]}"#;
        let arguments = Arguments::read(text, &spec(), true).unwrap();
        assert_eq!(
            Value::Object(arguments.values),
            json!({"path": "ab", "flag": true, "more": ["\n", {"x": "é"}]})
        );
        assert_eq!(
            arguments.removed,
            [("path".to_owned(), 2), ("more".to_owned(), 2)]
        );
        let arguments = Arguments::read(text, &spec(), false).unwrap();
        assert_eq!(arguments.values.get("path"), Some(&json!("a\0b\u{a0}")));
        assert!(arguments.removed.is_empty());
    }
}
