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
            Ok(_) => Ok(!whole),
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
