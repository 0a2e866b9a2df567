//! Any server's error body in one shape, and what it means for us.

use std::time::Duration;

use serde_json::Value;

use super::overflow::{is_overflow, is_rate_limit};
use super::waits;
use crate::error::{ApiError, ApiErrorKind};

/// How much of a message is shown, in characters.
const MESSAGE_LIMIT: usize = 2_000;
/// How much of a body that is no JSON is shown, in characters.
const EXCERPT_LIMIT: usize = 300;
/// How much of a body is looked through for the names of what it refuses, in bytes.
const TEXT_LIMIT: usize = 64 << 10;

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

/// Whether the `base_resp` of a MiniMax answer says that it failed.
pub(super) fn is_base_error(base: &Value) -> bool {
    base.get("status_code")
        .is_some_and(|code| code.as_i64() != Some(0))
}

/// What a body says.
#[derive(Debug, Default)]
struct Said {
    messages: Vec<String>,
    /// Codes and types, the most telling first.
    codes: Vec<String>,
    /// A code that reads like an HTTP status.
    status: Option<u16>,
    /// All of it, in lower case.
    text: String,
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
        if depth > 8 {
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
                for item in items.iter().take(5) {
                    self.gather(item, depth + 1);
                }
            }
            Value::Object(_) => {
                for key in [
                    "code",
                    "http_code",
                    "status_code",
                    "error_code",
                    "type",
                    "status",
                ] {
                    if let Some(code) = value.get(key) {
                        self.add_code(code);
                    }
                }
                if let (Some(place), Some(text)) = (value.get("loc"), value.get("msg")) {
                    self.add(&located(place, text));
                    return;
                }
                for key in [
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
                ] {
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

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    fn has_code(&self, words: &[&str]) -> bool {
        self.codes.iter().any(|code| {
            let code = code.to_ascii_lowercase();
            words.iter().any(|word| code.contains(word))
        })
    }

    /// Whether money or a quota is used up, so that waiting does not help.
    fn is_quota(&self, wait: Option<Duration>, by_text: bool) -> bool {
        const CODES: &[&str] = &[
            "insufficient_quota",
            "insufficient_balance",
            "insufficient_credit",
            "insufficient_user_quota",
            "exceeded_current_quota",
            "usage_not_included",
            "payment_required",
            "billing",
            "arrearage",
        ];
        const NUMBERS: &[&str] = &["1113", "1008"];
        const GOODS: &[&str] = &[
            "quota",
            "credit",
            "balance",
            "billing",
            "prepaid",
            "spending limit",
        ];
        const GONE: &[&str] = &[
            "exceed",
            "exhaust",
            "used up",
            "insufficient",
            "not enough",
            "ran out",
            "run out",
            "out of ",
            "too low",
            "deplet",
            "no remaining",
            "reached",
        ];
        self.has_code(CODES)
            || self
                .codes
                .iter()
                .any(|code| NUMBERS.contains(&code.as_str()))
            || self.says(&["insufficient balance", "insufficient_quota", "perday"])
            || (by_text
                && wait.is_none()
                && !self.has_code(&["rate_limit"])
                && self.says(GOODS)
                && self.says(GONE)
                && !self.says(&["minute", "second"]))
    }

    /// Whether the request itself is at fault, whatever the status says.
    fn is_validation(&self) -> bool {
        self.says(&[
            "jinja",
            "chat template",
            "chat_template",
            "template error",
            "roles must alternate",
            "raise_exception",
            "validation error",
            "validationerror",
            "validation_error",
            "extra_forbidden",
            "field required",
            "input should be",
            "'loc':",
            "\"loc\":",
            "invalid_request_error",
            "tool call arguments",
            "failed to parse messages",
            "at row ",
        ])
    }

    /// Whether the model wrote a call that the server could not read; it may do better next time.
    fn is_failed_call(&self) -> bool {
        self.has_code(&["tool_use_failed"]) || self.says(&["tool_use_failed", "failed_generation"])
    }
}

fn classify(said: &Said, http: Option<u16>, wait: Option<Duration>) -> ApiErrorKind {
    let status = http.or(said.status);
    let rate = is_rate_limit(&said.text);
    if !matches!(status, Some(401..=403 | 429)) && is_overflow(&said.codes, &said.text) {
        return ApiErrorKind::ContextLength;
    }
    let may_be_quota = matches!(status, None | Some(400 | 402 | 403 | 429));
    if may_be_quota && said.is_quota(wait, status != Some(400)) {
        return ApiErrorKind::Quota;
    }
    if said.is_failed_call() {
        return ApiErrorKind::Server;
    }
    match status {
        Some(401 | 403 | 407) => ApiErrorKind::Auth,
        Some(402) => ApiErrorKind::Quota,
        Some(404) => ApiErrorKind::NotFound,
        Some(413) if rate => ApiErrorKind::RateLimit,
        Some(413) => ApiErrorKind::ContextLength,
        Some(429) => ApiErrorKind::RateLimit,
        Some(500) if said.is_validation() => ApiErrorKind::BadRequest,
        Some(408 | 425 | 498 | 500..) => ApiErrorKind::Server,
        Some(_) => ApiErrorKind::BadRequest,
        None => classify_by_code(said, rate),
    }
}

/// What an error without a status means: it stands in an answer that began well.
fn classify_by_code(said: &Said, rate: bool) -> ApiErrorKind {
    let is_number = |numbers: &[&str]| {
        said.codes
            .iter()
            .any(|code| numbers.contains(&code.as_str()))
    };
    if said.has_code(&["authentication", "api_key", "permission", "unauthorized"])
        || is_number(&["1004"])
    {
        ApiErrorKind::Auth
    } else if said.has_code(&["not_found", "notfound"]) {
        ApiErrorKind::NotFound
    } else if rate
        || said.has_code(&["rate_limit", "throttling", "too_many", "resource_exhausted"])
        || is_number(&["1302", "1305", "1002", "1039"])
    {
        ApiErrorKind::RateLimit
    } else if said.has_code(&["invalid", "bad_request", "badrequest", "unsupported"])
        || is_number(&["2013"])
        || said.is_validation()
    {
        ApiErrorKind::BadRequest
    } else {
        ApiErrorKind::Server
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
