//! Compaction: a conversation replaced by its summary, and the one-line summary of a saved one
//! (SPEC E8, E4).
//!
//! Both put one more question to the model behind the conversation as it is, so that the provider's
//! cache of it is used. Nothing here changes a conversation: it makes a new one or says why not.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::event::{Event, Sink};
use crate::message::{Conversation, Message};
use crate::model::{Finish, Model, Reply, Request};
use crate::repair;
use crate::usage::BYTES_PER_TOKEN;

/// What the model is told to do. Its beginning is fixed by SPEC E8.
const INSTRUCTION: &str = "You are now acting as a compaction engine. Summarize the preceding conversation concisely but completely: \
whoever goes on with the work has only your summary. Keep the goal and what was asked for, decisions and their reasons, \
files, commands and names that matter with their exact spelling, results, errors and what fixed them, what is done and what is left to do. \
Answer with the summary alone and call no tools.";

/// What the model is told to do for the summary of `/save`.
const LINE_INSTRUCTION: &str = "Summarize the conversation so far in one line of at most 12 words, as a title for a list. \
Answer with that line alone: no quotes, no full stop, no tool calls.";

/// How long a one-line summary may take.
const LINE_PATIENCE: Duration = Duration::from_secs(15);

/// The private key of a compacted conversation's message under which the request is kept that the
/// message repeats, so that the next compaction finds it again.
const REQUEST: &str = "_request";

/// What stands in the copy for the turns that were left out.
const LEFT_OUT: &str =
    "(The beginning of the conversation is left out here: it is too long for the model.)";

/// Shortened tool results keep this many characters of their beginning and of their end.
const RESULT_ENDS: usize = 300;

/// Why the turn of a conversation that ends with tool results is closed before the instruction.
const TURN_INTERRUPTED: &str = "(The turn is interrupted here to make room.)";

/// Asks the model for a summary of `conversation` and makes the conversation that goes on from there:
/// the system message, and a user message of the summary and the last request, word for word.
///
/// `focus` is what the person wants kept in mind, `window` the model's context window in tokens.
/// Whatever the reason that there is no summary, it is an error that tells it.
pub async fn compact(
    model: &mut dyn Model,
    tools: &[Value],
    conversation: &Conversation,
    focus: Option<&str>,
    window: u64,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Result<Conversation> {
    if !conversation.has_prompt() {
        return Err(no_summary("there is no conversation yet"));
    }
    let instruction = match focus {
        Some(focus) => format!("{INSTRUCTION}\n\nKeep this in mind above all: {focus}"),
        None => INSTRUCTION.to_owned(),
    };
    let mut sink = Silent { sink };
    let mut refused = None;
    let mut last_size = usize::MAX;
    for budget in budgets(size_of(conversation.messages()), window) {
        let copy = fitted(conversation, budget);
        let size = size_of(copy.messages());
        if size >= last_size {
            break;
        }
        last_size = size;
        match ask(model, tools, copy, &instruction, &mut sink, cancel).await {
            Ok(reply) => return compacted(conversation, &reply),
            Err(error) if error.is_context_length() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| no_summary("the conversation is too long for the model")))
}

/// Asks the model once, for at most fifteen seconds, for a line on what the conversation is about.
pub async fn summary_line(
    model: &mut dyn Model,
    tools: &[Value],
    conversation: &Conversation,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Result<String> {
    let once = cancel.child_token();
    let mut sink = Once {
        sink: Silent { sink },
        attempt: &once,
    };
    let answer = ask(
        model,
        tools,
        conversation.clone(),
        LINE_INSTRUCTION,
        &mut sink,
        &once,
    );
    let reply = match tokio::time::timeout(LINE_PATIENCE, answer).await {
        Ok(Err(Error::Cancelled)) if !cancel.is_cancelled() => {
            return Err(no_summary("the request failed"));
        }
        Ok(answer) => answer?,
        Err(_) => return Err(no_summary("the model took too long")),
    };
    let text = reply.message.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map(str::to_owned)
        .ok_or_else(|| no_summary("the answer was empty"))
}

/// Asks `instruction` behind the conversation.
async fn ask(
    model: &mut dyn Model,
    tools: &[Value],
    mut copy: Conversation,
    instruction: &str,
    sink: &mut dyn Sink,
    cancel: &CancellationToken,
) -> Result<Reply> {
    repair::close_turn(&mut copy, TURN_INTERRUPTED);
    copy.push(Message::user(instruction));
    let request = Request {
        messages: copy.messages(),
        tools,
    };
    model.complete(request, sink, cancel).await
}

/// The conversation that goes on from the summary in `reply`.
fn compacted(conversation: &Conversation, reply: &Reply) -> Result<Conversation> {
    match reply.finish {
        Finish::Complete => {}
        Finish::Length => return Err(no_summary("the answer was cut off by the length limit")),
        Finish::Filtered => return Err(no_summary("the content filter cut the answer off")),
    }
    let summary = reply.message.text();
    let summary = summary.trim();
    if summary.is_empty() {
        let calls = !reply.message.tool_calls().is_empty();
        return Err(no_summary(if calls {
            "the model called a tool instead of answering"
        } else {
            "the answer was empty"
        }));
    }
    let request = last_request(conversation);
    let mut message = Message::user(&format!(
        "The conversation so far was replaced by this summary of it:\n\n{summary}\n\n\
         My last request before that, word for word:\n\n{request}"
    ));
    message.as_map_mut().insert(REQUEST.into(), json!(request));
    let system = conversation.messages().first();
    let system = system.filter(|first| first.role() == "system").cloned();
    Ok(Conversation::from_messages(
        system.into_iter().chain([message]).collect(),
    ))
}

/// The person's last request, also where it survives only in an earlier compaction's message.
fn last_request(conversation: &Conversation) -> String {
    let messages = conversation.messages().iter();
    let last = messages.rev().find(|message| message.role() == "user");
    last.map(|message| {
        let kept = message.as_map().get(REQUEST).and_then(Value::as_str);
        kept.map_or_else(|| message.text(), str::to_owned)
    })
    .unwrap_or_default()
}

/// The sizes that the conversation's copies are cut down to, in bytes, one request after the other.
/// The first is the conversation as it is, unless that can't fit by our own estimate.
fn budgets(size: usize, window: u64) -> [usize; 3] {
    let window = usize::try_from(window)
        .unwrap_or(usize::MAX)
        .saturating_mul(BYTES_PER_TOKEN);
    let first = if window > 0 && size > window {
        window / 4 * 3
    } else {
        size
    };
    [first, first / 2, first / 8]
}

/// A copy of the conversation that takes at most `budget` bytes if that can be had: first the oldest
/// tool results are shortened, then the oldest turns left out. The system message, the last request
/// and the last step stay.
fn fitted(conversation: &Conversation, budget: usize) -> Conversation {
    let mut messages = conversation.messages().to_vec();
    let mut size = size_of(&messages);
    for message in &mut messages {
        if size <= budget {
            break;
        }
        size -= shorten_result(message);
    }
    if size > budget {
        messages = without_oldest(messages, size - budget);
    }
    Conversation::from_messages(messages)
}

/// Cuts the middle out of a long tool result; says how many bytes that saves.
fn shorten_result(message: &mut Message) -> usize {
    if message.role() != "tool" {
        return 0;
    }
    let text = message.text();
    let count = text.chars().count();
    if count <= 3 * RESULT_ENDS {
        return 0;
    }
    let before = message_size(message);
    let head: String = text.chars().take(RESULT_ENDS).collect();
    let tail: String = text.chars().skip(count - RESULT_ENDS).collect();
    let left_out = count - 2 * RESULT_ENDS;
    message.as_map_mut().insert(
        "content".into(),
        json!(format!("{head}\n[{left_out} characters left out]\n{tail}")),
    );
    before.saturating_sub(message_size(message))
}

/// Leaves out the oldest steps, a message with the results that belong to it, until `excess` bytes
/// are saved, and says so in their place.
fn without_oldest(messages: Vec<Message>, excess: usize) -> Vec<Message> {
    let last_request = messages
        .iter()
        .rposition(|message| message.role() == "user");
    let last_step = messages
        .iter()
        .rposition(|message| message.role() != "tool");
    let mut kept = Vec::with_capacity(messages.len());
    let mut saved = 0;
    let mut leaving_out = false;
    let mut marked = false;
    for (index, message) in messages.into_iter().enumerate() {
        if message.role() != "tool" {
            let stays = message.role() == "system"
                || Some(index) == last_request
                || Some(index) == last_step;
            leaving_out = saved < excess && !stays;
        }
        if !leaving_out {
            kept.push(message);
            continue;
        }
        saved += message_size(&message);
        if !marked {
            marked = true;
            kept.push(Message::user(LEFT_OUT));
        }
    }
    kept
}

fn size_of(messages: &[Message]) -> usize {
    messages.iter().map(message_size).sum()
}

/// The bytes of a message in a request, nearly: private keys count, too.
fn message_size(message: &Message) -> usize {
    serde_json::to_vec(message.as_map()).map_or(0, |bytes| bytes.len())
}

fn no_summary(why: &str) -> Error {
    Error::BadReply(format!("no summary: {why}"))
}

/// A sink that lets through what the person should know of a request, but not the answer.
struct Silent<'a> {
    sink: &'a mut dyn Sink,
}

impl Sink for Silent<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Requesting
            | Event::Replying
            | Event::Retrying { .. }
            | Event::Notice(_)
            | Event::Warning(_) => self.sink.event(event),
            _ => {}
        }
    }

    fn flush(&mut self) {
        self.sink.flush();
    }

    fn closed(&self) -> bool {
        self.sink.closed()
    }
}

/// A silent sink that ends the request where a retry would begin.
struct Once<'a> {
    sink: Silent<'a>,
    attempt: &'a CancellationToken,
}

impl Sink for Once<'_> {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Retrying { .. }) {
            self.attempt.cancel();
        } else {
            self.sink.event(event);
        }
    }

    fn flush(&mut self) {
        self.sink.flush();
    }

    fn closed(&self) -> bool {
        self.sink.closed()
    }
}
