//! What the scripted server was asked, and the rules that every conversation must keep.

use std::time::Instant;

use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value, json};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The target of the request line: a path, or a whole URL where the server is used as a proxy.
    pub(crate) path: String,
    /// In the order and spelling in which they came.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
    /// Which connection it came over, counted from 0 in the order of their first request.
    pub(crate) connection: usize,
}

impl Request {
    /// A header by its name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a request body is UTF-8")
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    /// The messages of the body.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        match self.json().get("messages") {
            Some(Value::Array(messages)) => messages.clone(),
            other => panic!("messages is no array but {other:?}"),
        }
    }

    /// The last message of the body.
    #[track_caller]
    pub(crate) fn last_message(&self) -> Value {
        self.messages().pop().expect("at least one message")
    }

    /// The contents of the messages of one role, in order.
    #[track_caller]
    pub(crate) fn contents(&self, role: &str) -> Vec<String> {
        self.messages()
            .iter()
            .filter(|message| message["role"] == role)
            .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The only tool result of the request.
    #[track_caller]
    pub(crate) fn result(&self) -> String {
        let mut results = self.contents("tool");
        assert_eq!(results.len(), 1, "one result expected: {results:#?}");
        results.remove(0)
    }

    /// The body cut in three: up to the first message, the messages, and what follows the last one.
    fn parts(&self) -> Option<(&[u8], &[u8], &[u8])> {
        let key = b"\"messages\":";
        let at = self
            .body
            .windows(key.len())
            .position(|window| window == key)?
            + key.len();
        let mut values = Deserializer::from_slice(&self.body[at..]).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let end = at + values.byte_offset();
        Some((
            &self.body[..=at],
            &self.body[at + 1..end - 1],
            &self.body[end - 1..],
        ))
    }
}

/// What a script may ask to be let off when the requests are checked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Exemptions {
    pub(crate) history: bool,
    pub(crate) parameters: bool,
    pub(crate) leftovers: bool,
}

/// What every server may demand of a conversation (SPEC C6, C11).
#[track_caller]
pub(crate) fn check_messages(messages: &[Value]) {
    let shown = || serde_json::to_string_pretty(messages).unwrap();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        assert_eq!(
            role == "system",
            index == 0,
            "the system message comes first, and no other: {}",
            shown()
        );
        for key in message.as_object().expect("a message is an object").keys() {
            assert!(!key.starts_with('_'), "{key} is private: {}", shown());
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|open| open == id) else {
                panic!("a result without its call: {}", shown());
            };
            open.remove(at);
            continue;
        }
        assert!(open.is_empty(), "calls without a result: {}", shown());
        let before = index.checked_sub(1).map(|at| &messages[at]["role"]);
        assert!(
            role != "user" || before.is_some_and(|before| before != "user" && before != "tool"),
            "some servers refuse a user message after another or after a result: {}",
            shown()
        );
        if role == "assistant" {
            open = check_assistant(message);
        }
    }
    assert!(open.is_empty(), "calls without a result: {}", shown());
    let last = messages
        .last()
        .map_or("", |last| last["role"].as_str().unwrap_or_default());
    assert!(
        matches!(last, "user" | "tool"),
        "the last message is the person's or a result: {}",
        shown()
    );
}

/// Checks an assistant message and gives the ids of its calls.
#[track_caller]
fn check_assistant(message: &Value) -> Vec<String> {
    let calls = message["tool_calls"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = &message["content"];
    assert!(
        !calls.is_empty() || !(text.is_null() || text == "" || text == &json!([])),
        "an assistant message with neither text nor calls: {message}"
    );
    let mut ids: Vec<String> = Vec::new();
    for call in &calls {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        assert!(!id.is_empty(), "a call without an id: {message}");
        assert!(!ids.contains(&id), "two calls with one id: {message}");
        ids.push(id);
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
        assert!(parsed.is_object(), "arguments are no object: {message}");
    }
    ids
}

/// Holds two requests of one conversation against SPEC C2.
#[track_caller]
pub(crate) fn check_stability(earlier: &Request, later: &Request, exempt: Exemptions) {
    let (Some(first), Some(second)) = (earlier.parts(), later.parts()) else {
        panic!("no messages in a request: {}", later.text());
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if !exempt.history {
        assert!(
            second.1.starts_with(first.1),
            "C2: earlier messages changed\n from: {}\n   to: {}",
            text(first.1),
            text(second.1)
        );
    }
    if !exempt.parameters {
        assert_eq!(text(first.0), text(second.0), "C2: parameters changed");
        assert_eq!(text(first.2), text(second.2), "C2: parameters changed");
    }
}
