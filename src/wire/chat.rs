//! The chat completions API: what most servers speak, each in its own way.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::calls::Slots;
use super::chunk::{Choice, Chunk, Delta, Loose, mend_surrogates};
use super::errors::{excerpt, is_base_error, is_error, says_something};
use super::overflow::is_overflow;
use super::reasoning::Bag;
use super::sse::{Frame, Reader};
use super::think::Splitter;
use super::tokens::Figures;
use super::{Decoder, Dialect, Fault, Fed, Question, Refusal, Stage, Wire, body};
use crate::error::{ApiError, ApiErrorKind};
use crate::event::{Event, Sink};
use crate::message::{Message, ORIGIN};
use crate::model::{Finish, Reply};

/// `POST {endpoint}/chat/completions`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatCompletions;

impl Wire for ChatCompletions {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn body(&self, question: &Question<'_>, dialect: &Dialect) -> Vec<u8> {
        body::chat_completions(question, dialect)
    }

    fn decoder(&self, question: &Question<'_>, sent: usize) -> Box<dyn Decoder> {
        Box::new(ChatDecoder {
            reader: Reader::default(),
            answer: Answer::new(question, sent),
        })
    }
}

struct ChatDecoder {
    reader: Reader,
    answer: Answer,
}

impl Decoder for ChatDecoder {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Fed, Fault> {
        let Self { reader, answer } = self;
        answer.progress = false;
        reader.feed(bytes, &mut |frame| answer.frame(&frame, sink))?;
        Ok(Fed {
            progress: answer.progress || reader.is_within_data(),
            stage: answer.stage(),
        })
    }

    fn finish(self: Box<Self>, sink: &mut dyn Sink) -> Result<Reply, Fault> {
        let Self { reader, mut answer } = *self;
        let rest = reader.finish(&mut |frame| answer.frame(&frame, sink))?;
        if let Some(bytes) = rest.body {
            answer.body(&String::from_utf8_lossy(&bytes), sink)?;
        }
        if answer.stage() == Stage::Open {
            return Err(answer.incomplete(&rest.stray, rest.unreadable));
        }
        answer.reply(sink)
    }
}

/// An answer while it is put together.
struct Answer {
    origin: Value,
    used_ids: HashSet<String>,
    sent: usize,
    content: String,
    shown: Splitter,
    reasoning: Bag,
    calls: Slots,
    /// The single call of the legacy form, which some servers send beside the real ones.
    legacy: Slots,
    figures: Figures,
    finish: Option<String>,
    /// Whether the server has said that nothing more comes.
    done: bool,
    /// Whether anything of the message has come in pieces.
    in_pieces: bool,
    /// Whether the last bytes brought anything but signs of life.
    progress: bool,
}

impl Answer {
    fn new(question: &Question<'_>, sent: usize) -> Self {
        let tools: Vec<String> = question
            .request
            .tools
            .iter()
            .filter_map(|tool| tool.pointer("/function/name")?.as_str())
            .map(str::to_owned)
            .collect();
        let used_ids = question
            .request
            .messages
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.to_owned())
            .collect();
        Self {
            origin: question.origin(),
            used_ids,
            sent,
            content: String::new(),
            shown: Splitter::default(),
            reasoning: Bag::default(),
            legacy: Slots::new(tools.clone()),
            calls: Slots::new(tools),
            figures: Figures::default(),
            finish: None,
            done: false,
            in_pieces: false,
            progress: false,
        }
    }

    fn stage(&self) -> Stage {
        if self.done || (self.finish.is_some() && self.figures.are_known()) {
            Stage::Closed
        } else if self.finish.is_some() {
            Stage::Finished
        } else {
            Stage::Open
        }
    }

    /// Takes one event in, and says whether it was understood.
    fn frame(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        match frame {
            Frame::Error(text) => Err(Fault::Refused(Refusal::from_body(text))),
            Frame::Data(text) => {
                let text = text.trim();
                if text == "[DONE]" {
                    self.done = true;
                    self.progress = true;
                    return Ok(true);
                }
                self.json(text, false, sink)
            }
        }
    }

    /// Takes one JSON text in: a chunk, or the `whole` answer.
    fn json(&mut self, text: &str, whole: bool, sink: &mut dyn Sink) -> Result<bool, Fault> {
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(text) {
            return self.chunk(chunk, text, whole, sink);
        }
        if let Some(mended) = mend_surrogates(text) {
            return self.json(&mended, whole, sink);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) if is_error(&value) => Err(Fault::Refused(Refusal::from_value(&value))),
            Ok(value) => {
                // A key that comes twice is an error for the strict reader, not for this one.
                let text = value.to_string();
                match serde_json::from_str::<Chunk<'_>>(&text) {
                    Ok(chunk) => self.chunk(chunk, &text, whole, sink),
                    Err(_) => Ok(!whole),
                }
            }
            Err(_) => Ok(false),
        }
    }

    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        text: &str,
        whole: bool,
        sink: &mut dyn Sink,
    ) -> Result<bool, Fault> {
        let failed = chunk.error.as_ref().is_some_and(says_something)
            || chunk.base_resp.as_ref().is_some_and(is_base_error);
        if failed {
            return Err(Fault::Refused(Refusal::from_body(text)));
        }
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.get("usage"));
        let usages = groq.into_iter().chain(&chunk.usage);
        usages.for_each(|usage| self.figures.take(usage));
        if let Some(timings) = &chunk.timings {
            self.figures.take_timings(timings);
        }
        let choices = chunk.choices.unwrap_or_default();
        if choices.is_empty() && chunk.usage.is_none() {
            // A heartbeat, a preamble, or an error of a shape that is none of a chunk's.
            if let Ok(value) = serde_json::from_str::<Value>(text)
                && is_error(&value)
            {
                return Err(Fault::Refused(Refusal::from_value(&value)));
            }
            return Ok(!whole);
        }
        self.progress = true;
        for choice in choices {
            self.choice(choice, whole, sink)?;
        }
        Ok(true)
    }

    fn choice(
        &mut self,
        choice: Choice<'_>,
        whole: bool,
        sink: &mut dyn Sink,
    ) -> Result<(), Fault> {
        if let Some(error) = choice.error.filter(says_something) {
            return Err(Fault::Refused(Refusal::from_value(
                &json!({"error": error}),
            )));
        }
        if let Some(usage) = &choice.usage {
            self.figures.take(usage);
        }
        // A whole message beside pieces that have come repeats them.
        let message = choice.message.filter(|_| whole || !self.in_pieces);
        let in_pieces = choice.delta.is_some();
        if let Some(delta) = choice.delta.or(message) {
            self.delta(delta, whole, sink);
        }
        self.in_pieces |= in_pieces;
        if let Some(reason) = choice
            .finish_reason
            .text()
            .filter(|reason| !reason.is_empty())
        {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn delta(&mut self, mut delta: Delta<'_>, whole: bool, sink: &mut dyn Sink) {
        self.reasoning.take(&mut delta, sink);
        match &delta.content {
            Loose::Text(text) => self.text(text, whole, sink),
            Loose::Other(Value::Array(parts)) => self.parts(parts, whole, sink),
            Loose::Null | Loose::Other(_) => {}
        }
        if let Some(text) = delta.refusal.text() {
            self.text(text, whole, sink);
        }
        for entry in delta.tool_calls.unwrap_or_default() {
            self.calls.take(entry);
        }
        if let Some(function) = delta.function_call {
            self.legacy.take_legacy(function);
        }
    }

    fn text(&mut self, text: &str, whole: bool, sink: &mut dyn Sink) {
        self.content.push_str(text);
        if whole {
            self.shown.whole(text, sink);
        } else {
            self.shown.push(text, sink);
        }
    }

    /// Content in parts, some of which may be reasoning.
    fn parts(&mut self, parts: &[Value], whole: bool, sink: &mut dyn Sink) {
        for part in parts {
            if let Some(thinking) = part.get("thinking") {
                let text = thinking
                    .as_str()
                    .map_or_else(|| texts(thinking), str::to_owned);
                sink.event(Event::Reasoning(&text));
            } else if let Some(text) = part.as_str().or(part.get("text").and_then(Value::as_str)) {
                self.text(text, whole, sink);
            }
        }
    }

    /// Takes a body in that came without framing: a whole answer, an error, or something else.
    fn body(&mut self, text: &str, sink: &mut dyn Sink) -> Result<(), Fault> {
        let text = text.trim();
        if self.json(text, true, sink)? {
            self.done = true;
            return Ok(());
        }
        let mut understood = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            // Chunks that have lost their framing.
            understood |= line.starts_with('{') && self.json(line, false, sink)? && self.progress;
        }
        if understood || self.stage() != Stage::Open {
            return Ok(());
        }
        let what = if text.starts_with('<') {
            "a page of HTML"
        } else {
            "something that is no completion"
        };
        Err(Fault::Foreign(format!(
            "the endpoint answered with {what}: {}",
            excerpt(text)
        )))
    }

    /// Why the answer is not whole.
    fn incomplete(&self, stray: &str, unreadable: usize) -> Fault {
        let nothing = self.content.is_empty() && self.calls.is_empty() && self.reasoning.is_empty();
        Fault::Incomplete(if unreadable > 0 {
            format!("the answer ended early, with {unreadable} unreadable pieces")
        } else if nothing && !stray.is_empty() {
            format!("the answer is no stream of events: {}", excerpt(stray))
        } else if nothing {
            "the answer was empty".into()
        } else {
            "the answer ended before it was finished".into()
        })
    }

    /// The whole reply.
    fn reply(mut self, sink: &mut dyn Sink) -> Result<Reply, Fault> {
        self.shown.finish(sink);
        let finish = self.finish_kind()?;
        let answer_bytes = self.content.len() + self.reasoning.size() + self.calls.size();
        let usage = self.figures.usage(self.sent, answer_bytes);
        let whole_only = finish != Finish::Complete;
        let slots = if self.calls.is_empty() {
            self.legacy
        } else {
            self.calls
        };
        let calls = slots.finish(self.used_ids, &self.reasoning.ids(), whole_only);
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content.into());
        self.reasoning.store(&mut message);
        if !calls.is_empty() {
            message.insert("tool_calls".into(), Value::Array(calls));
        }
        message.insert(ORIGIN.into(), self.origin);
        Ok(Reply {
            message: Message::from(message),
            finish,
            usage,
        })
    }

    /// What the server's reason to stop means.
    fn finish_kind(&self) -> Result<Finish, Fault> {
        let reason = self.finish.as_deref().unwrap_or("stop");
        let lower = reason.to_ascii_lowercase();
        let is_empty =
            self.content.is_empty() && self.calls.is_empty() && self.reasoning.is_empty();
        let fail = |kind, message: String| {
            Err(Fault::Refused(Refusal {
                text: message.to_lowercase(),
                error: ApiError {
                    status: None,
                    code: Some(reason.to_owned()),
                    message,
                    kind,
                    retry_after: None,
                    hint: None,
                },
            }))
        };
        match lower.as_str() {
            "error" | "network_error" | "insufficient_system_resource" | "abort" => fail(
                ApiErrorKind::Server,
                format!("the server gave up in the middle of its answer ({reason})"),
            ),
            _ if lower.contains("malformed_function_call") => fail(
                ApiErrorKind::Server,
                format!("the model wrote a tool call that the server could not read ({reason})"),
            ),
            _ if is_empty
                && (is_overflow(std::slice::from_ref(&lower), "")
                    || (lower == "length" && self.figures.completion() == Some(0))) =>
            {
                fail(
                    ApiErrorKind::ContextLength,
                    format!("the conversation fills the model's context window ({reason})"),
                )
            }
            "length" | "max_tokens" | "model_context_window_exceeded" | "max_output_tokens" => {
                Ok(Finish::Length)
            }
            "content_filter" => Ok(Finish::Filtered),
            _ => Ok(Finish::Complete),
        }
    }
}

/// The text of a list of parts.
fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts
        .iter()
        .filter_map(|part| part.as_str().or(part.get("text")?.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Request;
    use crate::usage::Usage;

    /// What was shown, as one list of pieces with equal neighbours joined.
    #[derive(Default)]
    struct Shown(Vec<(char, String)>);

    impl Sink for Shown {
        fn event(&mut self, event: Event<'_>) {
            let (kind, text) = match event {
                Event::Reasoning(text) => ('r', text),
                Event::Text(text) => ('t', text),
                other => panic!("{other:?}"),
            };
            match self.0.last_mut() {
                Some((last, shown)) if *last == kind => shown.push_str(text),
                _ => self.0.push((kind, text.to_owned())),
            }
        }
    }

    fn decode_with(
        chunks: &[&[u8]],
        messages: &[Message],
    ) -> (Vec<(char, String)>, Result<Reply, Fault>) {
        let tools = [json!({"type":"function","function":{"name":"f"}})];
        let question = Question {
            request: Request {
                messages,
                tools: &tools,
            },
            endpoint: "http://e",
            model: "m",
            parameters: &Map::new(),
            stream: true,
        };
        let mut shown = Shown::default();
        let mut decoder = ChatCompletions.decoder(&question, 400);
        for chunk in chunks {
            if let Err(fault) = decoder.feed(chunk, &mut shown) {
                return (shown.0, Err(fault));
            }
        }
        let reply = decoder.finish(&mut shown);
        (shown.0, reply)
    }

    fn decode(body: &str) -> (Vec<(char, String)>, Result<Reply, Fault>) {
        decode_with(&[body.as_bytes()], &[])
    }

    /// A stream of events with these data.
    fn stream(data: &[&str]) -> String {
        let events = data.iter().map(|data| format!("data: {data}\n\n"));
        events.collect::<Vec<_>>().concat()
    }

    fn reply(body: &str) -> Reply {
        decode(body)
            .1
            .unwrap_or_else(|fault| panic!("{fault:?}: {body}"))
    }

    fn refused(body: &str) -> ApiError {
        match decode(body).1 {
            Err(Fault::Refused(refusal)) => refusal.error,
            other => panic!("{other:?}: {body}"),
        }
    }

    fn text(body: &str) -> String {
        reply(body).message.text()
    }

    const HELLO: &str = r#"{"choices":[{"delta":{"content":"hello"}}]}"#;
    const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

    #[test]
    fn c6_a_stream_becomes_one_message() {
        let (shown, reply) = decode(&stream(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"why"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"hel"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"lo","tool_calls":null}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            "[DONE]",
        ]));
        let reply = reply.unwrap();
        assert_eq!(shown, [('r', "why".to_owned()), ('t', "hello".to_owned())]);
        assert_eq!(
            serde_json::to_value(&reply.message).unwrap(),
            json!({"role":"assistant","content":"hello","reasoning_content":"why",
                "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],
                "_origin":{"endpoint":"http://e","model":"m"}})
        );
        assert_eq!(reply.finish, Finish::Complete);
        assert_eq!(
            reply.usage,
            Usage {
                prompt: 10,
                completion: 5,
                cached: Some(4),
                estimated: false
            }
        );
    }

    #[test]
    fn c5_an_answer_in_one_piece_shows_the_same_afterwards() {
        for padding in ["", "\n\n\n  "] {
            let (shown, reply) = decode(&format!(
                "{padding}{}",
                r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello","reasoning":"why",
                "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x":1}}}],
                "refusal":null,"annotations":[]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#
            ));
            let reply = reply.unwrap();
            assert_eq!(shown, [('r', "why".to_owned()), ('t', "hello".to_owned())]);
            assert_eq!(reply.message.as_map().get("annotations"), None);
            let calls = reply.message.tool_calls();
            assert_eq!((calls[0].id, calls[0].arguments), ("a", r#"{"x":1}"#));
            assert_eq!(reply.usage.prompt, 10);
        }
    }

    /// The table of the notes (1.1): whole answers in odd framing, all of which say `hello`.
    #[test]
    fn c6_odd_streams_bring_their_answer_all_the_same() {
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
        for (name, body) in [
            ("plain", stream(&[HELLO, STOP, "[DONE]"])),
            ("no [DONE]", stream(&[HELLO, STOP])),
            ("no finish_reason", stream(&[HELLO, "[DONE]"])),
            ("no blank line at the end", format!("data: {HELLO}\n\ndata: {STOP}")),
            ("CRLF", stream(&[HELLO, STOP, "[DONE]"]).replace('\n', "\r\n")),
            ("comments", format!(": OPENROUTER PROCESSING\n\n:\n\n{}", stream(&[HELLO, STOP]))),
            ("comment as data", stream(&[": PROCESSING", HELLO, STOP])),
            ("heartbeat", format!("event: ping\ndata: {{}}\n\n{}", stream(&[HELLO, STOP]))),
            ("Azure preamble", stream(&[r#"{"choices":[],"prompt_filter_results":[{"a":1}],"id":""}"#, HELLO, STOP])),
            ("choice without delta", stream(&[HELLO, r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#])),
            ("null choices", stream(&[r#"{"choices":null}"#, HELLO, STOP])),
            ("null delta", stream(&[r#"{"choices":[{"delta":null}]}"#, HELLO, STOP])),
            ("usage at the end", stream(&[HELLO, STOP, usage, "[DONE]"])),
            ("usage beside an empty delta", stream(&[HELLO, STOP, r#"{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":1}}"#])),
            ("all in one chunk", stream(&[r#"{"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}"#])),
            ("empty finish_reason on the way", stream(&[r#"{"choices":[{"delta":{"content":"hel"},"finish_reason":""}]}"#, r#"{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}"#])),
            ("message in place of delta", stream(&[r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#])),
            ("message beside deltas", stream(&[HELLO, r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#])),
            ("padding", stream(&[r#"{"choices":[{"delta":{"content":"hello"}}],"obfuscation":"Dj3"}"#, STOP])),
            ("content in parts", stream(&[r#"{"choices":[{"delta":{"content":[{"type":"text","text":"hello"}]}}]}"#, STOP])),
            ("garbage on the way", stream(&["{\"x", HELLO, STOP, "[DONE]"])),
            ("null error", stream(&[r#"{"error":null,"choices":[{"delta":{"content":"hello"}}]}"#, STOP])),
            ("base_resp that is fine", stream(&[r#"{"base_resp":{"status_code":0},"choices":[{"delta":{"content":"hello"}}]}"#, STOP])),
            ("refusal", stream(&[r#"{"choices":[{"delta":{"content":null,"refusal":"hello"}}]}"#, STOP])),
            ("data over lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"hello\"}}]}\n\ndata: [DONE]\n\n".into()),
            ("chunks without framing", format!("{HELLO}\n{STOP}\n")),
            ("whole answer in an event", stream(&[r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#, "[DONE]"])),
            ("whole answer without finish_reason", r#"{"choices":[{"message":{"content":"hello"}}]}"#.into()),
            ("other lines", format!("hello: there\n\n{}", stream(&[HELLO, STOP]))),
            ("a key that comes twice", stream(&[r#"{"choices":[{"delta":{"content":"","content":"hello"}}]}"#, STOP])),
            ("second choice", stream(&[r#"{"choices":[{"index":0,"delta":{"content":"hel"}},{"index":1,"delta":{"content":"lo"}}]}"#, STOP])),
        ] {
            assert_eq!(text(&body), "hello", "{name}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_costs_one_character() {
        let body = stream(&[
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
            r#"{"choices":[{"delta":{"content":"b"}}]}"#,
            STOP,
        ]);
        assert_eq!(text(&body), "a\u{fffd}b");
    }

    #[test]
    fn c3_a_stream_without_an_end_is_incomplete() {
        for body in [
            "",
            ": comment\n\n",
            "\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"hel\n\n",
            "upstream connect error or disconnect",
            &stream(&[HELLO]),
            &stream(&[r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#]),
            &stream(&[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
            ]),
        ] {
            let fault = decode(body).1.unwrap_err();
            assert!(matches!(fault, Fault::Incomplete(_)), "{body}: {fault:?}");
        }
    }

    #[test]
    fn c3_errors_inside_a_good_answer_are_errors() {
        for (body, message) in [
            (
                stream(&[r#"{"error":{"code":502,"message":"x"},"choices":[]}"#]),
                "the server reports 502: x",
            ),
            (stream(&[HELLO, r#"{"error":"overloaded"}"#]), "overloaded"),
            (
                stream(&[
                    r#"{"id":"g","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"x"}}"#,
                ]),
                "x (server_error)",
            ),
            (
                stream(&[r#"{"choices":[{"delta":{},"error":{"message":"x"}}]}"#]),
                "x",
            ),
            (
                "error: {\"code\":500,\"message\":\"x\"}\n\n".into(),
                "the server reports 500: x",
            ),
            ("event: error\ndata: {\"message\":\"x\"}\n\n".into(), "x"),
            (r#"{"error":{"message":"x"}}"#.into(), "x"),
            (
                r#"{"code":429,"message":"x"}"#.into(),
                "the server reports 429: x",
            ),
            (
                stream(&[r#"{"code":429,"message":"x"}"#]),
                "the server reports 429: x",
            ),
            (
                r#"{"base_resp":{"status_code":1008,"status_msg":"x"},"choices":null}"#.into(),
                "x (1008)",
            ),
            (
                r#"[{"error":{"code":400,"message":"x"}}]"#.into(),
                "the server reports 400: x",
            ),
            (
                format!(
                    "{}{}",
                    stream(&[HELLO]),
                    "{\"error\":\n{\"message\":\"x\"}}"
                ),
                "x",
            ),
            (
                r#"{"success":false,"error":{"code":"c","status":429}}"#.into(),
                "the server reports 429: c",
            ),
        ] {
            assert_eq!(refused(&body).message, message, "{body}");
        }
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        for (body, part) in [
            (
                "<html><title>Welcome</title></html>",
                "a page of HTML: Welcome",
            ),
            ("\n<!DOCTYPE html>\n<body>Hi</body>", "a page of HTML: Hi"),
            (r#"{"object":"list","data":[]}"#, "no completion"),
            (r#"{"choices":[]}"#, "no completion"),
            ("[1,2]", "no completion"),
            ("{broken", "no completion: {broken"),
        ] {
            match decode(body).1 {
                Err(Fault::Foreign(message)) => assert!(message.contains(part), "{message}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    /// The table of the notes (1.2).
    #[test]
    fn c9_reasons_to_stop_mean_what_they_mean() {
        let with = |reason: &str| {
            stream(&[
                HELLO,
                &format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#),
            ])
        };
        for reason in [
            "stop",
            "end",
            "end_turn",
            "eos",
            "tool_calls",
            "function_call",
            "repetition",
            "whatever",
        ] {
            assert_eq!(reply(&with(reason)).finish, Finish::Complete, "{reason}");
        }
        for reason in ["length", "max_tokens", "model_context_window_exceeded"] {
            assert_eq!(reply(&with(reason)).finish, Finish::Length, "{reason}");
        }
        assert_eq!(reply(&with("content_filter")).finish, Finish::Filtered);
        for reason in [
            "error",
            "network_error",
            "insufficient_system_resource",
            "abort",
            "function_call_filter: MALFORMED_FUNCTION_CALL",
        ] {
            assert_eq!(
                refused(&with(reason)).kind,
                ApiErrorKind::Server,
                "{reason}"
            );
        }
    }

    #[test]
    fn e9_an_answer_that_had_no_room_is_an_overflow() {
        for data in [
            r#"{"choices":[{"delta":{},"finish_reason":"model_context_window_exceeded"}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":0}}"#,
        ] {
            assert_eq!(refused(&stream(&[data])).kind, ApiErrorKind::ContextLength);
        }
    }

    #[test]
    fn c9_a_cut_answer_keeps_its_whole_calls_only() {
        let body = stream(&[
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
        ]);
        let reply = reply(&body);
        let calls = reply.message.tool_calls();
        assert_eq!((calls.len(), calls[0].id), (1, "a"));
    }

    #[test]
    fn c10_an_empty_answer_is_a_reply() {
        for body in [
            stream(&["[DONE]"]),
            stream(&[STOP]),
            stream(&[r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#]),
        ] {
            assert!(reply(&body).message.is_empty_assistant(), "{body}");
        }
    }

    #[test]
    fn c6_the_legacy_call_counts_only_without_the_others() {
        let legacy = [
            r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{\"x\""}}}]}"#,
            r#"{"choices":[{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}]}"#,
        ];
        let alone = reply(&stream(&legacy));
        assert_eq!(alone.message.tool_calls()[0].arguments, r#"{"x":1}"#);
        let both = reply(&stream(&[
            r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
            STOP,
        ]));
        assert_eq!(both.message.tool_calls().len(), 1);
        assert_eq!(both.message.tool_calls()[0].id, "a");
    }

    #[test]
    fn c5_thinking_in_parts_is_shown_and_not_stored() {
        let (shown, reply) = decode(&stream(&[
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"why"}]}]}}]}"#,
            HELLO,
            STOP,
        ]));
        assert_eq!(shown, [('r', "why".to_owned()), ('t', "hello".to_owned())]);
        assert_eq!(reply.unwrap().message.text(), "hello");
    }

    #[test]
    fn c5_thinking_in_the_text_is_shown_as_such_and_stored_as_it_came() {
        let content = r#"{"choices":[{"delta":{"content":"<think>why</think>\n\nhello"}}]}"#;
        let (shown, reply) = decode(&stream(&[content, STOP]));
        assert_eq!(shown, [('r', "why".to_owned()), ('t', "hello".to_owned())]);
        assert_eq!(reply.unwrap().message.text(), "<think>why</think>\n\nhello");
    }

    #[test]
    fn c14_figures_come_from_every_place() {
        for data in [
            r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":7,"predicted_n":3}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#,
        ] {
            let usage = reply(&stream(&[HELLO, data])).usage;
            assert_eq!(
                (usage.prompt, usage.completion, usage.estimated),
                (7, 3, false),
                "{data}"
            );
        }
        let usage = reply(&stream(&[HELLO, STOP])).usage;
        assert_eq!(
            (usage.prompt, usage.completion, usage.estimated),
            (100, 2, true)
        );
    }

    #[test]
    fn c7_an_id_that_the_conversation_has_already_is_replaced() {
        let earlier: Message = serde_json::from_value(json!({"role":"assistant","tool_calls":[{"id":"call_0","function":{"name":"f","arguments":"{}"}}]})).unwrap();
        let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"f","arguments":"{}"}}]}}]}"#;
        let body = stream(&[call, STOP]);
        let reply = decode_with(&[body.as_bytes()], &[earlier]).1.unwrap();
        assert_ne!(reply.message.tool_calls()[0].id, "call_0");
    }

    #[test]
    fn stages_and_progress_follow_the_answer() {
        let question = Question {
            request: Request {
                messages: &[],
                tools: &[],
            },
            endpoint: "e",
            model: "m",
            parameters: &Map::new(),
            stream: true,
        };
        let mut decoder = ChatCompletions.decoder(&question, 1);
        let mut feed = |bytes: &str| {
            let fed = decoder
                .feed(bytes.as_bytes(), &mut Shown::default())
                .unwrap();
            (fed.progress, fed.stage)
        };
        assert_eq!(feed(": comment\n\n"), (false, Stage::Open));
        assert_eq!(feed("\n\n"), (false, Stage::Open));
        assert_eq!(feed("data: {}\n\n"), (false, Stage::Open), "a heartbeat");
        assert_eq!(
            feed("data: {\"choi"),
            (true, Stage::Open),
            "a piece of data"
        );
        assert_eq!(
            feed("ces\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
            (true, Stage::Open)
        );
        assert_eq!(feed(&stream(&[STOP])), (true, Stage::Finished));
        assert_eq!(feed(": comment\n\n"), (false, Stage::Finished));
        assert_eq!(
            feed(&stream(&[r#"{"choices":[],"usage":{"prompt_tokens":1}}"#])),
            (true, Stage::Closed)
        );
        assert_eq!(feed("data: [DONE]\n\n"), (true, Stage::Closed));
    }

    proptest! {
        #[test]
        fn any_cut_of_the_same_stream_gives_the_same_reply(cuts in prop::collection::vec(0usize..900, 0..20)) {
            let body = stream(&[
                r#"{"choices":[{"delta":{"reasoning":"wh\u00fc 😀"}}]}"#,
                r#"{"choices":[{"delta":{"content":"<think>no</think> h\u00e9l"}}]}"#,
                r#"{"choices":[{"delta":{"content":"lo 😀"}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"😀\"}"}}]}}]}"#,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#,
                "[DONE]",
            ]);
            let bytes = body.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut from = 0;
            let chunks: Vec<&[u8]> = cuts
                .into_iter()
                .map(|to| &bytes[std::mem::replace(&mut from, to)..to])
                .collect();
            let whole = decode(&body);
            prop_assert_eq!(decode_with(&chunks, &[]), whole);
        }

        #[test]
        fn no_bytes_can_make_it_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6)) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let _ = decode_with(&chunks, &[]);
        }
    }
}
