//! Any server's error body in one shape, and what it means for us.

use std::time::Duration;

use serde_json::Value;

use super::verdict::classify;
use super::waits;
use crate::error::ApiError;

/// How much of a message is shown, in characters.
const MESSAGE_LIMIT: usize = 2_000;
/// How much of a body that is no JSON is shown, in characters.
const EXCERPT_LIMIT: usize = 300;
/// How much of a body is looked through for the names of what it refuses, in bytes.
const TEXT_LIMIT: usize = 64 << 10;

/// Where an object has a code or a type, the most telling first.
const CODE_KEYS: [&str; 6] = [
    "code",
    "http_code",
    "status_code",
    "error_code",
    "type",
    "status",
];
/// Where it has a message, or an object with more about it.
const MESSAGE_KEYS: [&str; 11] = [
    "error",
    "message",
    "msg",
    "detail",
    "base_resp",
    "status_msg",
    "error_msg",
    "error_message",
    "errors",
    "metadata",
    "raw",
];
/// How deep messages are looked for.
const DEPTH: usize = 8;
/// How many items of a list are looked at.
const ITEMS: usize = 5;

/// An error of the server, with all that was said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What it comes to.
    pub error: ApiError,
    /// Everything the body says, in lower case, to be searched for names.
    pub text: String,
}

impl Refusal {
    /// The error of an answer with a status of its own.
    ///
    /// `wait` is what the headers say about when to come back.
    pub fn from_answer(status: u16, wait: Option<Duration>, body: &str) -> Self {
        Self::new(&Said::read(body), Some(status), wait)
    }

    /// The error of an answer that began well: its status, if it has one, is in the body.
    pub(super) fn from_body(body: &str) -> Self {
        Self::new(&Said::read(body), None, None)
    }

    /// The same, from JSON that has been parsed.
    pub(super) fn from_value(value: &Value) -> Self {
        Self::from_body(&value.to_string())
    }

    fn new(said: &Said, http: Option<u16>, wait: Option<Duration>) -> Self {
        let wait = wait.into_iter().chain(waits::named(&said.text)).max();
        let kind = classify(said, http, wait);
        let status = http.or(said.status);
        Self {
            error: ApiError {
                status,
                code: said.codes.first().cloned(),
                message: said.describe(http),
                kind,
                retry_after: wait,
                hint: None,
            },
            text: said.text.clone(),
        }
    }
}

/// Whether JSON that should have been an answer is an error instead.
pub(super) fn is_error(value: &Value) -> bool {
    let Some(map) = value.as_object() else {
        return value
            .as_array()
            .and_then(|items| items.first())
            .is_some_and(|first| first.is_object() && is_error(first));
    };
    let is = |key: &str, text: &str| map.get(key).and_then(Value::as_str) == Some(text);
    let has_text = |key: &str| {
        map.get(key)
            .is_some_and(|value| value.is_string() || value.is_array() || value.is_object())
    };
    map.get("error").is_some_and(says_something)
        || map.get("base_resp").is_some_and(is_base_error)
        || map.get("success") == Some(&Value::Bool(false))
        || is("type", "error")
        || is("object", "error")
        || map.contains_key("error_code")
        || (!map.contains_key("choices")
            && (has_text("detail")
                || ((has_text("message") || has_text("msg"))
                    && map.contains_key("code")
                    && !is("code", "0"))))
}

/// Whether a value under `error` is one.
pub(super) fn says_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Whether the `base_resp` of a `MiniMax` answer says that it failed.
pub(super) fn is_base_error(base: &Value) -> bool {
    base.get("status_code")
        .is_some_and(|code| code.as_i64() != Some(0))
}

/// What a body says.
#[derive(Debug, Default)]
pub(super) struct Said {
    messages: Vec<String>,
    /// Codes and types, the most telling first.
    pub(super) codes: Vec<String>,
    /// A code that reads like an HTTP status.
    pub(super) status: Option<u16>,
    /// All of it, in lower case.
    pub(super) text: String,
}

impl Said {
    fn read(body: &str) -> Self {
        let body = unframed(body.trim());
        let mut said = Self::default();
        match serde_json::from_str::<Value>(body) {
            Ok(value) => said.gather(&value, 0),
            Err(_) => said.add(&excerpt(body)),
        }
        let mut end = body.len().min(TEXT_LIMIT);
        while !body.is_char_boundary(end) {
            end -= 1;
        }
        said.text = body.get(..end).unwrap_or_default().to_lowercase();
        for message in &said.messages {
            // Once more without escapes, so that names stand free.
            said.text.push('\n');
            said.text.push_str(&message.to_lowercase());
        }
        said
    }

    /// Collects messages and codes from wherever servers put them.
    fn gather(&mut self, value: &Value, depth: usize) {
        if depth > DEPTH {
            return;
        }
        match value {
            Value::String(text) => match serde_json::from_str(text) {
                Ok(nested @ (Value::Object(_) | Value::Array(_))) => {
                    self.gather(&nested, depth + 1);
                }
                _ => self.add(text),
            },
            Value::Array(items) => {
                for item in items.iter().take(ITEMS) {
                    self.gather(item, depth + 1);
                }
            }
            Value::Object(_) => {
                for key in CODE_KEYS {
                    if let Some(code) = value.get(key) {
                        self.add_code(code);
                    }
                }
                if let (Some(place), Some(text)) = (value.get("loc"), value.get("msg")) {
                    self.add(&located(place, text));
                    return;
                }
                for key in MESSAGE_KEYS {
                    if let Some(nested) = value.get(key) {
                        self.gather(nested, depth + 1);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add(&mut self, message: &str) {
        let message = one_line(message, MESSAGE_LIMIT);
        if !message.is_empty() && !self.messages.iter().any(|said| said.contains(&message)) {
            self.messages.push(message);
        }
    }

    fn add_code(&mut self, code: &Value) {
        let code = match code {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return,
        };
        if code.is_empty() || code == "0" || code.eq_ignore_ascii_case("error") {
            return;
        }
        if let Ok(status @ 400..=599) = code.parse() {
            self.status.get_or_insert(status);
        }
        if !self.codes.contains(&code) {
            self.codes.push(code);
        }
    }

    /// The message to show, on one line.
    fn describe(&self, http: Option<u16>) -> String {
        let mut text = self.messages.join(": ");
        let code = self
            .codes
            .iter()
            .find(|code| code.parse::<f64>().is_err() || self.status.is_none());
        if let Some(code) = code
            && !text.contains(code.as_str())
            && Some(code.as_str()) != http.map(|status| status.to_string()).as_deref()
        {
            text = if text.is_empty() {
                code.clone()
            } else {
                format!("{text} ({code})")
            };
        }
        let status = http.map(|status| format!("HTTP {status}")).or_else(|| {
            self.status
                .map(|status| format!("the server reports {status}"))
        });
        match (status, text.is_empty()) {
            (Some(status), true) => format!("{status} without a message"),
            (Some(status), false) => format!("{status}: {text}"),
            (None, true) => "the server reports an error without a message".into(),
            (None, false) => text,
        }
    }
}

/// The payload of a body that is framed like an event stream.
fn unframed(body: &str) -> &str {
    if body.starts_with(['{', '[', '<']) {
        return body;
    }
    let payload = |line: &'_ str| {
        let value = line.strip_prefix("data:");
        value.or_else(|| line.strip_prefix("error:")).map(str::len)
    };
    body.lines()
        .find_map(|line| line.get(line.len() - payload(line)?..))
        .map_or(body, str::trim)
}

/// A validation error with its place: `body.messages.2.x: m`.
fn located(place: &Value, text: &Value) -> String {
    let parts = place.as_array().map(Vec::as_slice).unwrap_or_default();
    let path: Vec<String> = parts
        .iter()
        .map(|part| {
            part.as_str()
                .map_or_else(|| part.to_string(), str::to_owned)
        })
        .collect();
    let text = text.as_str().unwrap_or_default();
    format!("{}: {text}", path.join("."))
}

/// What a body that is no JSON says: the title of a page, or its beginning without tags.
pub(super) fn excerpt(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let from = at + lower.get(at..)?.find('>')? + 1;
        let to = from + lower.get(from..)?.find("</title")?;
        body.get(from..to)
    });
    if let Some(title) = title.map(|title| one_line(title, EXCERPT_LIMIT))
        && !title.is_empty()
    {
        return title;
    }
    if !body.trim_start().starts_with('<') {
        return one_line(body, EXCERPT_LIMIT);
    }
    let mut text = String::new();
    for piece in body.split('<') {
        text.push(' ');
        text.push_str(piece.split_once('>').map_or("", |(_, text)| text));
    }
    one_line(&text, EXCERPT_LIMIT)
}

/// A text on one line of at most `limit` characters.
fn one_line(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the notes (5.1): bodies, and what is shown of them.
    const SHAPES: &[(&str, &str, &str)] = &[
        (
            "OpenAI",
            r#"{"error":{"message":"m","type":"t","code":"c","param":null}}"#,
            "HTTP 400: m (c)",
        ),
        ("Ollama", r#"{"error":"m"}"#, "HTTP 400: m"),
        (
            "Gemini",
            r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#,
            "HTTP 400: m (INVALID_ARGUMENT)",
        ),
        (
            "xAI",
            r#"{"code":"The argument is invalid","error":"m"}"#,
            "HTTP 400: m (The argument is invalid)",
        ),
        (
            "Mistral",
            r#"{"object":"error","message":"m","type":"invalid_request_message_order","code":"3230"}"#,
            "HTTP 400: m (3230)",
        ),
        (
            "Mistral, nested",
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"x"],"msg":"m"}]}}"#,
            "HTTP 400: body.messages.2.x: m (extra_forbidden)",
        ),
        (
            "FastAPI",
            r#"{"detail":[{"loc":["body","x"],"msg":"m"}]}"#,
            "HTTP 400: body.x: m",
        ),
        ("FastAPI, text", r#"{"detail":"m"}"#, "HTTP 400: m"),
        (
            "old vLLM",
            r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
            "HTTP 400: m (BadRequestError)",
        ),
        (
            "Cerebras",
            r#"{"message":"m","type":"invalid_request_error","param":"p","code":"wrong_api_format"}"#,
            "HTTP 400: m (wrong_api_format)",
        ),
        (
            "MiniMax, Anthropic",
            r#"{"type":"error","error":{"type":"t","message":"m","http_code":"400"}}"#,
            "HTTP 400: m (t)",
        ),
        (
            "MiniMax base_resp",
            r#"{"base_resp":{"status_code":2013,"status_msg":"m"}}"#,
            "HTTP 400: m (2013)",
        ),
        (
            "Z.ai",
            r#"{"error":{"code":"1113","message":"m"}}"#,
            "HTTP 400: m (1113)",
        ),
        (
            "OpenRouter",
            r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"m\"}}","provider_name":"P"}}}"#,
            "HTTP 400: Provider returned error: m",
        ),
        (
            "Databricks",
            r#"{"error_code":"BAD_REQUEST","message":"m"}"#,
            "HTTP 400: m (BAD_REQUEST)",
        ),
        (
            "gateway",
            r#"{"success":false,"error":{"code":"c","status":429}}"#,
            "HTTP 400: c",
        ),
        (
            "DashScope",
            r#"{"code":"InvalidParameter","message":"m","request_id":"r"}"#,
            "HTTP 400: m (InvalidParameter)",
        ),
        (
            "HTML with a title",
            "<html><head><title>502 Bad\nGateway</title></head><body>x</body></html>",
            "HTTP 400: 502 Bad Gateway",
        ),
        (
            "HTML without",
            "<html><body><h1>Sorry</h1><p>gone</p></body></html>",
            "HTTP 400: Sorry gone",
        ),
        ("empty", "", "HTTP 400 without a message"),
        ("empty object", "{}", "HTTP 400 without a message"),
        (
            "text",
            "upstream connect error\n",
            "HTTP 400: upstream connect error",
        ),
        (
            "framed",
            "event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n",
            "HTTP 400: m",
        ),
        (
            "several lines",
            r#"{"error":{"message":"a\n  b"}}"#,
            "HTTP 400: a b",
        ),
        (
            "the same twice",
            r#"{"error":"m","message":"m"}"#,
            "HTTP 400: m",
        ),
    ];

    #[test]
    fn c3_every_shape_of_error_body_gives_its_message() {
        for (server, body, shown) in SHAPES {
            assert_eq!(
                Refusal::from_answer(400, None, body).error.message,
                *shown,
                "{server}"
            );
        }
    }

    #[test]
    fn errors_in_an_answer_that_began_well_carry_their_own_status() {
        for (body, message, status) in [
            (
                r#"{"error":{"code":502,"message":"m"}}"#,
                "the server reports 502: m",
                Some(502),
            ),
            (
                r#"{"error":{"code":"429","message":"m"}}"#,
                "the server reports 429: m",
                Some(429),
            ),
            (r#"{"error":{"message":"m"}}"#, "m", None),
            (
                r#"{"error":{}}"#,
                "the server reports an error without a message",
                None,
            ),
        ] {
            let error = Refusal::from_body(body).error;
            assert_eq!((error.message.as_str(), error.status), (message, status));
        }
    }

    #[test]
    fn long_messages_are_cut() {
        let body = serde_json::json!({"error": "é".repeat(5_000)}).to_string();
        let message = Refusal::from_answer(400, None, &body).error.message;
        assert_eq!(
            message.chars().count(),
            "HTTP 400: ".len() + MESSAGE_LIMIT + 1
        );
        assert!(
            Refusal::from_answer(400, None, &"é".repeat(100_000))
                .text
                .len()
                < 2 * TEXT_LIMIT
        );
    }

    #[test]
    fn c3_the_wait_is_the_longer_of_headers_and_body() {
        let body = r#"{"error":{"message":"try again in 5.5s"}}"#;
        for (header, wait) in [(None, 5_500), (Some(2_000), 5_500), (Some(9_000), 9_000)] {
            let header = header.map(Duration::from_millis);
            let error = Refusal::from_answer(429, header, body).error;
            assert_eq!(error.retry_after, Some(Duration::from_millis(wait)));
        }
    }

    #[test]
    fn what_is_an_error_and_what_is_not() {
        for (body, expected) in [
            (r#"{"error":null,"choices":[]}"#, false),
            (r#"{"error":""}"#, false),
            (r#"{"error":{}}"#, false),
            (r#"{"error":"x"}"#, true),
            (r#"[{"error":{"code":400}}]"#, true),
            (r#"{"code":429,"message":"x"}"#, true),
            (r#"{"code":"0","message":"ok"}"#, false),
            (r#"{"detail":"Not Found"}"#, true),
            (r#"{"type":"error"}"#, true),
            (r#"{"type":"ping"}"#, false),
            (r#"{"object":"error","message":"x"}"#, true),
            (r#"{"success":false}"#, true),
            (r#"{"base_resp":{"status_code":0}}"#, false),
            (r#"{"base_resp":{"status_code":1}}"#, true),
            ("{}", false),
            ("[]", false),
            ("[{}]", false),
            (r#""x""#, false),
        ] {
            let value = serde_json::from_str(body).unwrap();
            assert_eq!(is_error(&value), expected, "{body}");
        }
    }
}
