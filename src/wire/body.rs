//! The body of a chat completions request.
//!
//! What is sent is derived from what is stored, always the same way: an earlier message comes out
//! as the same bytes in every request, so that a provider's prompt cache stays warm (SPEC C2).

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::is_object;
use super::calls::short_id;
use super::{Dialect, Extras, NoText, Question};
use crate::message::{Message, ORIGIN};

/// The provider's own fields of an assistant message, which go back to where they came from.
pub(crate) const EXTRAS: [&str; 6] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_opaque",
    "reasoning_details",
    "extra_content",
];

/// Keys with a place of their own in the body; settings cannot add them once more.
const FIXED: [&str; 5] = ["model", "messages", "tools", "stream", "stream_options"];

/// What stands for a signature that a call does not have, as its provider documents it.
const STAND_IN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Some servers refuse an empty text here.
const PADDING: &str = " ";

/// Closes a turn that ended with results, where strict servers refuse a user message next.
const BRIDGE: &str = "(The turn ended here.)";

/// The request as bytes.
pub(super) fn chat_completions(question: &Question<'_>, dialect: &Dialect) -> Vec<u8> {
    let mut out = Vec::with_capacity(4_096);
    out.extend_from_slice(b"{\"model\":");
    push(&mut out, question.model);
    out.extend_from_slice(b",\"messages\":[");
    messages(&mut out, question, dialect);
    out.push(b']');
    if !question.request.tools.is_empty() {
        out.extend_from_slice(b",\"tools\":");
        push(&mut out, question.request.tools);
    }
    let stream = dialect.stream.unwrap_or(question.stream);
    out.extend_from_slice(b",\"stream\":");
    push(&mut out, &stream);
    let is_dropped = |key: &str| dialect.dropped.iter().any(|dropped| dropped == key);
    if stream && !is_dropped("stream_options") {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    for (key, value) in question.parameters {
        if is_dropped(key) || FIXED.contains(&key.as_str()) {
            continue;
        }
        out.push(b',');
        push(&mut out, spelt(key, dialect));
        out.push(b':');
        push(&mut out, value);
    }
    out.push(b'}');
    out
}

/// A parameter's name in this dialect.
fn spelt<'a>(key: &'a str, dialect: &Dialect) -> &'a str {
    match key {
        "max_tokens" if dialect.other_limit => "max_completion_tokens",
        "max_completion_tokens" if dialect.other_limit => "max_tokens",
        _ => key,
    }
}

fn messages(out: &mut Vec<u8>, question: &Question<'_>, dialect: &Dialect) {
    let origin = question.origin();
    let mut rest = question.request.messages;
    let mut after_results = false;
    let mut first = true;
    while let Some((message, others)) = rest.split_first() {
        let role = message.role();
        let map = if role == "user" {
            // Strict templates want the roles to alternate.
            let more = others
                .iter()
                .take_while(|next| next.role() == "user")
                .count();
            let (users, others) = rest.split_at(more + 1);
            rest = others;
            merged(users)
        } else {
            rest = others;
            match role {
                "assistant" => assistant(message, &origin, dialect),
                "tool" => result(message, dialect),
                _ => kept(message, &["role", "content", "name"]),
            }
        };
        let bridge = (after_results && role == "user").then(|| Message::assistant(BRIDGE));
        after_results = role == "tool";
        for map in bridge
            .as_ref()
            .map(Message::as_map)
            .into_iter()
            .chain([&map])
        {
            if !first {
                out.push(b',');
            }
            first = false;
            push(out, map);
        }
    }
}

/// A message's `keys`, in the order in which it has them.
fn kept(message: &Message, keys: &[&str]) -> Map<String, Value> {
    message
        .as_map()
        .iter()
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// User messages that follow each other, as one.
fn merged(users: &[Message]) -> Map<String, Value> {
    let Some((first, others)) = users.split_first() else {
        return Map::new();
    };
    let mut map = kept(first, &["role", "content", "name"]);
    if others.is_empty() {
        return map;
    }
    let contents = || users.iter().filter_map(|user| user.as_map().get("content"));
    let content = if contents().all(Value::is_string) {
        let texts: Vec<&str> = contents().filter_map(Value::as_str).collect();
        Value::String(texts.join("\n\n"))
    } else {
        let parts = contents().flat_map(|content| match content {
            Value::Array(parts) => parts.clone(),
            content => vec![json!({"type": "text", "text": content})],
        });
        Value::Array(parts.collect())
    };
    map.insert("content".into(), content);
    map
}

fn result(message: &Message, dialect: &Dialect) -> Map<String, Value> {
    let mut map = kept(message, &["role", "tool_call_id", "content"]);
    if dialect.short_ids {
        map.insert(
            "tool_call_id".into(),
            shortened(message.tool_call_id()).into(),
        );
    }
    map
}

fn assistant(message: &Message, origin: &Value, dialect: &Dialect) -> Map<String, Value> {
    let stored = message.as_map();
    let mirrors = dialect.extras != Extras::Strip && stored.get(ORIGIN) == Some(origin);
    let mut map = Map::new();
    map.insert("role".into(), "assistant".into());
    let text = message.text();
    match dialect.no_text {
        _ if !text.is_empty() => {
            map.insert("content".into(), text.into());
        }
        NoText::Empty => {
            map.insert("content".into(), "".into());
        }
        NoText::Null => {
            map.insert("content".into(), Value::Null);
        }
        NoText::Absent => {}
    }
    if mirrors {
        for key in EXTRAS {
            if let Some(value) = stored.get(key) {
                map.insert(key.into(), value.clone());
            }
        }
    }
    if dialect.extras == Extras::Pad {
        map.entry("reasoning_content").or_insert(PADDING.into());
    }
    let calls = stored.get("tool_calls").and_then(Value::as_array);
    if let Some(calls) = calls.filter(|calls| !calls.is_empty()) {
        let mut calls: Vec<Value> = calls
            .iter()
            .map(|stored| call(stored, mirrors, dialect))
            .collect();
        if dialect.signatures {
            sign(&mut calls);
        }
        map.insert("tool_calls".into(), Value::Array(calls));
    }
    map
}

/// A call as it is sent: arguments that are no object would make every later request fail.
fn call(stored: &Value, mirrors: bool, dialect: &Dialect) -> Value {
    let text = |pointer: &str| {
        let text = stored.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let id = text("/id");
    let id = if dialect.short_ids {
        shortened(&id)
    } else {
        id
    };
    let arguments = Some(text("/function/arguments")).filter(|text| is_object(text));
    let mut call = json!({
        "id": id,
        "type": "function",
        "function": {
            "name": text("/function/name"),
            "arguments": arguments.unwrap_or_else(|| "{}".into()),
        },
    });
    if mirrors && let Some(extra) = stored.get("extra_content") {
        call["extra_content"] = extra.clone();
    }
    call
}

/// Gives the first call the stand-in signature, if no call of the message has a real one.
fn sign(calls: &mut [Value]) {
    let pointer = "/extra_content/google/thought_signature";
    if calls.iter().any(|call| call.pointer(pointer).is_some()) {
        return;
    }
    if let Some(first) = calls.first_mut() {
        first["extra_content"] = json!({"google": {"thought_signature": STAND_IN_SIGNATURE}});
    }
}

/// An id of nine letters and digits; one that has that form already stays.
fn shortened(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        id.to_owned()
    } else {
        short_id(id)
    }
}

/// Appends a value as JSON. Writing to memory cannot fail.
fn push<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(out, value);
}
