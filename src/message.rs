//! Messages and the conversation they form.
//!
//! A message is the whole JSON object that came or goes, its key order and unknown fields kept, for
//! a provider's prompt cache stays warm only if what was sent once is sent the same again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The key of an assistant message that notes which endpoint and model it came from.
///
/// Keys that begin with `_` are private: stored, never sent.
pub const ORIGIN: &str = "_origin";

/// One message of a conversation in the form of the chat completions API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(Map<String, Value>);

/// One tool call of an assistant message, borrowed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The identity that the result refers to; empty where the message has none.
    pub id: &'a str,
    /// The tool's name; empty where the message has none.
    pub name: &'a str,
    /// The arguments as the text that came; empty where the message has none.
    pub arguments: &'a str,
}

impl Message {
    /// The system message.
    pub fn system(text: &str) -> Self {
        Self::of("system", text)
    }

    /// A message of the person.
    pub fn user(text: &str) -> Self {
        Self::of("user", text)
    }

    /// An answer of text alone.
    pub fn assistant(text: &str) -> Self {
        Self::of("assistant", text)
    }

    /// The result of the call `id`.
    pub fn tool(id: &str, text: &str) -> Self {
        let mut map = Map::new();
        map.insert("role".into(), json!("tool"));
        map.insert("tool_call_id".into(), json!(id));
        map.insert("content".into(), json!(text));
        Self(map)
    }

    fn of(role: &str, text: &str) -> Self {
        let mut map = Map::new();
        map.insert("role".into(), json!(role));
        map.insert("content".into(), json!(text));
        Self(map)
    }

    /// `system`, `user`, `assistant`, `tool`, or empty where it has none.
    pub fn role(&self) -> &str {
        self.0
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Its text: the content, or the text parts of a content that comes in parts.
    pub fn text(&self) -> String {
        match self.0.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect(),
            _ => String::new(),
        }
    }

    /// The calls it asks for, in order; none for anything but an assistant message.
    pub fn tool_calls(&self) -> Vec<ToolCall<'_>> {
        let calls = self
            .0
            .get("tool_calls")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        calls
            .iter()
            .map(|call| ToolCall {
                id: text_at(call, "/id").unwrap_or_default(),
                name: text_at(call, "/function/name").unwrap_or_default(),
                arguments: text_at(call, "/function/arguments").unwrap_or_default(),
            })
            .collect()
    }

    /// Which call a tool message answers.
    pub fn tool_call_id(&self) -> &str {
        self.0
            .get("tool_call_id")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether it is an assistant message with neither text nor calls, which servers refuse.
    pub fn is_empty_assistant(&self) -> bool {
        self.role() == "assistant" && self.text().is_empty() && self.tool_calls().is_empty()
    }

    /// The whole object.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The whole object, to be changed. Remove keys with `shift_remove`, which keeps their order.
    pub fn as_map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }
}

impl From<Map<String, Value>> for Message {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// A conversation: messages that only grow between checkpoints, the system message first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    messages: Vec<Message>,
}

impl Conversation {
    /// A conversation that begins with the system prompt.
    pub fn new(system_prompt: &str) -> Self {
        Self {
            messages: vec![Message::system(system_prompt)],
        }
    }

    /// A conversation of messages that were stored. They are taken as they are.
    pub fn from_messages(messages: Vec<Message>) -> Self {
        Self { messages }
    }

    /// All messages, the system message first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Gives its messages away, the system message first.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// The last message.
    pub fn last(&self) -> Option<&Message> {
        self.messages.last()
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Takes back the last message.
    pub fn pop(&mut self) -> Option<Message> {
        self.messages.pop()
    }

    /// Whether the person has said anything yet.
    pub fn has_prompt(&self) -> bool {
        self.messages.iter().any(|message| message.role() == "user")
    }

    /// Takes back all but the first `length` messages.
    pub fn truncate(&mut self, length: usize) {
        self.messages.truncate(length);
    }

    /// Keeps the messages that `keep` wants. For repairs only: it changes what was sent.
    pub fn retain(&mut self, keep: impl FnMut(&Message) -> bool) {
        self.messages.retain(keep);
    }

    /// Puts `text` in place of the system prompt, or in front where there is none.
    pub fn set_system_prompt(&mut self, text: &str) {
        let system = Message::system(text);
        match self.messages.first_mut() {
            Some(first) if first.role() == "system" => *first = system,
            _ => self.messages.insert(0, system),
        }
    }
}
