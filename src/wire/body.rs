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
    let both_users = |a: &Message, b: &Message| a.role() == "user" && b.role() == "user";
    let mut before = "";
    // Strict templates want the roles to alternate.
    for run in question.request.messages.chunk_by(both_users) {
        let Some(first) = run.first() else { continue };
        let role = first.role();
        let map = match role {
            "user" => merged(run),
            "assistant" => assistant(first, &origin, dialect),
            "tool" => result(first, dialect),
            _ => kept(first, &["role", "content", "name"]),
        };
        if (before, role) == ("tool", "user") {
            push(out, &Message::assistant(BRIDGE));
            out.push(b',');
        }
        push(out, &map);
        out.push(b',');
        before = role;
    }
    if out.last() == Some(&b',') {
        out.pop();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Request;

    fn body(
        messages: &[Message],
        tools: &[Value],
        parameters: &Value,
        dialect: &Dialect,
    ) -> String {
        let question = Question {
            request: Request { messages, tools },
            endpoint: "http://e",
            model: "m",
            parameters: parameters.as_object().unwrap(),
            stream: true,
        };
        String::from_utf8(chat_completions(&question, dialect)).unwrap()
    }

    fn sent(messages: &[Message], dialect: &Dialect) -> Value {
        let body = body(messages, &[], &json!({}), dialect);
        serde_json::from_str::<Value>(&body).unwrap()["messages"].clone()
    }

    fn stored(value: Value) -> Message {
        serde_json::from_value(value).unwrap()
    }

    fn called(extra: &Value) -> Message {
        let mut message = json!({"role":"assistant","content":"","tool_calls":[
            {"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"},
             "extra_content":{"google":{"thought_signature":"S"}},"index":0}]});
        for (key, value) in extra.as_object().unwrap() {
            message[key] = value.clone();
        }
        stored(message)
    }

    fn here() -> Value {
        json!({"endpoint":"http://e","model":"m"})
    }

    #[test]
    fn c1_the_keys_come_in_a_fixed_order() {
        let tool = json!({"type":"function","function":{"name":"f"}});
        let parameters = json!({"top_p":0.9,"temperature":0.7,"messages":"no","tools":1,"stream":false,"stream_options":2,"model":3,"provider":{"sort":"price"}});
        assert_eq!(
            body(
                &[Message::system("s"), Message::user("u")],
                &[tool],
                &parameters,
                &Dialect::default()
            ),
            concat!(
                r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"#,
                r#""tools":[{"type":"function","function":{"name":"f"}}],"stream":true,"stream_options":{"include_usage":true},"#,
                r#""top_p":0.9,"temperature":0.7,"provider":{"sort":"price"}}"#
            )
        );
    }

    #[test]
    fn c1_no_tools_and_no_streaming_leave_their_keys_out() {
        let dialect = Dialect {
            stream: Some(false),
            ..Dialect::default()
        };
        assert_eq!(
            body(&[], &[], &json!({}), &dialect),
            r#"{"model":"m","messages":[],"stream":false}"#
        );
    }

    #[test]
    fn c3_refused_parameters_are_left_out_and_limits_renamed() {
        let dialect = Dialect {
            dropped: vec!["stream_options".into(), "temperature".into()],
            other_limit: true,
            ..Dialect::default()
        };
        assert_eq!(
            body(
                &[],
                &[],
                &json!({"temperature":1,"max_tokens":5,"top_p":1}),
                &dialect
            ),
            r#"{"model":"m","messages":[],"stream":true,"max_completion_tokens":5,"top_p":1}"#
        );
    }

    #[test]
    fn c6_extras_go_back_to_where_they_came_from_and_nowhere_else() {
        let extras = json!({"reasoning_content":"r","reasoning_details":[{"signature":"S"}],"refusal":null,"_origin":here(),"_note":1});
        assert_eq!(
            sent(&[called(&extras)], &Dialect::default()),
            json!([{"role":"assistant","content":"","reasoning_content":"r","reasoning_details":[{"signature":"S"}],
                "tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"},
                "extra_content":{"google":{"thought_signature":"S"}}}]}])
        );
        let plain = json!([{"role":"assistant","content":"",
            "tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]}]);
        for origin in [
            json!({"endpoint":"http://e","model":"other"}),
            json!({"endpoint":"http://o","model":"m"}),
            json!(null),
        ] {
            let extras = json!({"reasoning_content":"r","_origin":origin});
            assert_eq!(sent(&[called(&extras)], &Dialect::default()), plain);
        }
        let strip = Dialect {
            extras: Extras::Strip,
            ..Dialect::default()
        };
        assert_eq!(sent(&[called(&extras)], &strip), plain);
    }

    #[test]
    fn c6_missing_reasoning_is_filled_in_where_the_server_insists() {
        let pad = Dialect {
            extras: Extras::Pad,
            ..Dialect::default()
        };
        let messages = [
            stored(
                json!({"role":"assistant","content":"a","reasoning_content":"r","_origin":here()}),
            ),
            stored(json!({"role":"assistant","content":"b","reasoning_content":"r"})),
        ];
        let sent = sent(&messages, &pad);
        assert_eq!(sent[0]["reasoning_content"], "r");
        assert_eq!(sent[1]["reasoning_content"], " ");
    }

    #[test]
    fn c6_the_first_unsigned_call_of_a_step_gets_the_stand_in() {
        let dialect = Dialect {
            signatures: true,
            ..Dialect::default()
        };
        let call = json!({"id":"a","function":{"name":"f","arguments":"{}"}});
        let unsigned = stored(json!({"role":"assistant","content":"","tool_calls":[call, call]}));
        let sent = sent(&[unsigned, called(&json!({"_origin":here()}))], &dialect);
        let signature = |at: &str| sent.pointer(at).cloned();
        assert_eq!(
            signature("/0/tool_calls/0/extra_content/google/thought_signature"),
            Some(json!(STAND_IN_SIGNATURE))
        );
        assert_eq!(signature("/0/tool_calls/1/extra_content"), None);
        assert_eq!(
            signature("/1/tool_calls/0/extra_content/google/thought_signature"),
            Some(json!("S"))
        );
    }

    #[test]
    fn c6_content_without_text_follows_the_ladder() {
        let form = |no_text| {
            sent(
                &[called(&json!({}))],
                &Dialect {
                    no_text,
                    ..Dialect::default()
                },
            )[0]
            .get("content")
            .cloned()
        };
        assert_eq!(form(NoText::Empty), Some(json!("")));
        assert_eq!(form(NoText::Null), Some(json!(null)));
        assert_eq!(form(NoText::Absent), None);
        let loaded = stored(json!({"role":"assistant","content":null,"tool_calls":[]}));
        assert_eq!(
            sent(&[loaded], &Dialect::default()),
            json!([{"role":"assistant","content":""}])
        );
        let parts = stored(
            json!({"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}),
        );
        assert_eq!(sent(&[parts], &Dialect::default())[0]["content"], "ab");
    }

    #[test]
    fn c6_arguments_that_are_no_object_are_sent_as_an_empty_one() {
        for (arguments, sent_as) in [
            (json!("{\"x\": 1}"), "{\"x\": 1}"),
            (json!("{\"x\":"), "{}"),
            (json!("[]"), "{}"),
            (json!(""), "{}"),
            (json!(null), "{}"),
        ] {
            let message = stored(json!({"role":"assistant","content":"",
                "tool_calls":[{"id":"a","function":{"name":"f","arguments":arguments}}]}));
            assert_eq!(
                sent(&[message], &Dialect::default())[0]["tool_calls"][0]["function"]["arguments"],
                sent_as
            );
        }
    }

    #[test]
    fn ids_are_mapped_the_same_way_for_call_and_result() {
        let dialect = Dialect {
            short_ids: true,
            ..Dialect::default()
        };
        let result = stored(
            json!({"role":"tool","name":"f","tool_call_id":"call_1","content":"ok","_streamed":true}),
        );
        let sent_now = sent(&[called(&json!({})), result], &dialect);
        let id = sent_now[0]["tool_calls"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            sent_now[1],
            json!({"role":"tool","tool_call_id":id,"content":"ok"})
        );
        assert_eq!((id.len(), id == "call_1"), (9, false));
        assert_eq!(shortened("abcDEF123"), "abcDEF123");
    }

    #[test]
    fn user_messages_in_a_row_are_merged() {
        let image = json!({"type":"image_url","image_url":{"url":"data:"}});
        let parts = stored(json!({"role":"user","content":[image]}));
        assert_eq!(
            sent(
                &[
                    Message::user("a"),
                    Message::user("b"),
                    Message::assistant("c"),
                    Message::user("d")
                ],
                &Dialect::default()
            ),
            json!([{"role":"user","content":"a\n\nb"},{"role":"assistant","content":"c"},{"role":"user","content":"d"}])
        );
        assert_eq!(
            sent(&[Message::user("a"), parts], &Dialect::default()),
            json!([{"role":"user","content":[{"type":"text","text":"a"}, image]}])
        );
    }

    #[test]
    fn a_user_message_never_follows_a_result() {
        let messages = [
            called(&json!({})),
            Message::tool("call_1", "ok"),
            Message::user("next"),
        ];
        let sent = sent(&messages, &Dialect::default());
        assert_eq!(sent[2], json!({"role":"assistant","content":BRIDGE}));
        assert_eq!(sent[3]["content"], "next");
    }

    fn any_message() -> impl Strategy<Value = Message> {
        (0..5, "[a-z\u{e9}\"\n]{0,8}", any::<bool>()).prop_map(|(kind, text, mirrored)| match kind {
            0 => Message::user(&text),
            1 => Message::assistant(&text),
            2 => Message::tool("call_1", &text),
            3 => called(&json!({"reasoning": text, "_origin": if mirrored { here() } else { json!(null) }})),
            _ => called(&json!({"content": text})),
        })
    }

    proptest! {
        #[test]
        fn c2_each_requests_messages_are_a_byte_prefix_of_the_next_ones(
            messages in prop::collection::vec(any_message(), 1..8),
            short_ids in any::<bool>(),
        ) {
            let dialect = Dialect { short_ids, ..Dialect::default() };
            let bytes = |messages: &[Message]| {
                let body = body(messages, &[], &json!({}), &dialect);
                body.split("],\"stream\":").next().unwrap().to_owned()
            };
            for split in 1..messages.len() {
                // What follows a prompt that was sent is an answer; two prompts in a row are sent together.
                let both_users = messages[split - 1].role() == "user" && messages[split].role() == "user";
                if !both_users {
                    prop_assert!(bytes(&messages).starts_with(&bytes(&messages[..split])));
                }
            }
            prop_assert_eq!(bytes(&messages), bytes(&messages));
        }
    }
}
