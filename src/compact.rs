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

/// What the last try is cut down to at most, in bytes: about 10,000 tokens, which any model takes
/// that is of use here.
const LAST_BUDGET: usize = 40_000;

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
    let mut sink = Silent {
        sink,
        only_attempt: None,
    };
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
    let mut sink = Silent {
        sink,
        only_attempt: Some(&once),
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
    [first, first / 2, (first / 8).min(LAST_BUDGET)]
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
    /// Cancelled where a retry would begin, if there is to be none.
    only_attempt: Option<&'a CancellationToken>,
}

impl Sink for Silent<'_> {
    fn event(&mut self, event: Event<'_>) {
        match (event, self.only_attempt) {
            (Event::Retrying { .. }, Some(attempt)) => attempt.cancel(),
            (
                Event::Requesting
                | Event::Replying
                | Event::Retrying { .. }
                | Event::Notice(_)
                | Event::Warning(_),
                _,
            ) => self.sink.event(event),
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::Future;

    use super::*;
    use crate::error::{ApiError, ApiErrorKind};
    use crate::model::BoxFuture;
    use crate::usage::Usage;

    const FIXED: &str = "You are now acting as a compaction engine. Summarize the preceding conversation concisely but completely";

    enum Answer {
        Reply(Message, Finish),
        Error(Error),
        /// Fails once every request that is larger than this many bytes.
        TooLongBeyond(usize),
        Retry,
        Hang,
    }

    /// Answers from a script and writes down what it was asked.
    struct Script {
        answers: VecDeque<Answer>,
        requests: Vec<Vec<Message>>,
        tools: Vec<Value>,
    }

    impl Script {
        fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
            Self {
                answers: answers.into_iter().collect(),
                requests: Vec::new(),
                tools: Vec::new(),
            }
        }

        fn says(text: &str) -> Self {
            Self::new([Answer::Reply(Message::assistant(text), Finish::Complete)])
        }
    }

    fn reply(message: Message, finish: Finish) -> Reply {
        Reply {
            message,
            finish,
            usage: Usage::default(),
        }
    }

    fn too_long() -> Error {
        Error::Api(ApiError {
            status: Some(400),
            code: None,
            message: "400: too long".into(),
            kind: ApiErrorKind::ContextLength,
            retry_after: None,
            hint: None,
        })
    }

    impl Model for Script {
        fn complete<'a>(
            &'a mut self,
            request: Request<'a>,
            sink: &'a mut dyn Sink,
            cancel: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<Reply>> {
            Box::pin(async move {
                sink.event(Event::Requesting);
                sink.event(Event::Reasoning("hm"));
                sink.event(Event::Text("the summary"));
                sink.event(Event::ReplyEnd);
                self.requests.push(request.messages.to_vec());
                self.tools = request.tools.to_vec();
                match self.answers.pop_front().expect("a request too many") {
                    Answer::Reply(message, finish) => Ok(reply(message, finish)),
                    Answer::Error(error) => Err(error),
                    Answer::TooLongBeyond(limit) => {
                        self.answers.push_front(Answer::TooLongBeyond(limit));
                        if size_of(request.messages) > limit {
                            return Err(too_long());
                        }
                        Ok(reply(Message::assistant("summary"), Finish::Complete))
                    }
                    Answer::Retry => {
                        sink.event(Event::Retrying {
                            attempt: 1,
                            of: 9,
                            delay: Duration::ZERO,
                            reason: "503",
                        });
                        cancel.cancelled().await;
                        Err(Error::Cancelled)
                    }
                    Answer::Hang => {
                        cancel.cancelled().await;
                        Err(Error::Cancelled)
                    }
                }
            })
        }
    }

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Sink for Told {
        fn event(&mut self, event: Event<'_>) {
            self.0.push(format!("{event:?}"));
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn history() -> Conversation {
        let mut conversation = Conversation::new("system");
        conversation.push(Message::user("first"));
        conversation.push(Message::assistant("answer"));
        conversation.push(Message::user("  the last\n\nrequest "));
        conversation.push(Message::assistant("done"));
        conversation
    }

    fn compact_with(script: &mut Script, conversation: &Conversation) -> Result<Conversation> {
        compact_in(script, conversation, 200_000)
    }

    fn compact_in(
        script: &mut Script,
        conversation: &Conversation,
        window: u64,
    ) -> Result<Conversation> {
        let cancel = CancellationToken::new();
        let mut told = Told::default();
        let tools = [json!({"a": "tool"})];
        let done = compact(
            script,
            &tools,
            conversation,
            None,
            window,
            &mut told,
            &cancel,
        );
        let result = run(done);
        assert!(
            told.0.iter().all(|event| event == "Requesting"),
            "{:?}",
            told.0
        );
        result
    }

    fn call(id: &str) -> Message {
        let mut message = Message::assistant("");
        message.as_map_mut().insert(
            "tool_calls".into(),
            json!([{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
        );
        message
    }

    #[test]
    fn e8_the_request_is_the_conversation_with_the_instruction_behind_it() {
        let mut script = Script::says("summary");
        compact_with(&mut script, &history()).unwrap();
        let request = &script.requests[0];
        let (instruction, before) = request.split_last().unwrap();
        assert_eq!(before, history().messages());
        assert_eq!(instruction.role(), "user");
        assert!(instruction.text().starts_with(FIXED));
        assert_eq!(script.tools, [json!({"a": "tool"})]);
    }

    #[test]
    fn e8_what_the_person_wants_kept_is_added() {
        let mut script = Script::says("summary");
        let cancel = CancellationToken::new();
        let mut told = Told::default();
        let conversation = history();
        let done = compact(
            &mut script,
            &[],
            &conversation,
            Some("the ports"),
            1,
            &mut told,
            &cancel,
        );
        run(done).unwrap();
        let text = script.requests[0].last().unwrap().text();
        assert!(
            text.starts_with(FIXED) && text.ends_with("the ports"),
            "{text}"
        );
    }

    #[test]
    fn e8_summary_and_last_request_take_the_conversations_place() {
        let compacted = compact_with(&mut Script::says("\n the summary \n"), &history()).unwrap();
        let [system, message] = compacted.messages() else {
            panic!("{compacted:?}");
        };
        assert_eq!(system, &Message::system("system"));
        assert_eq!(message.role(), "user");
        let text = message.text();
        assert!(text.contains("\n\nthe summary\n\n"), "{text}");
        assert!(text.ends_with("\n\n  the last\n\nrequest "), "{text}");
    }

    #[test]
    fn e8_a_second_compaction_still_has_the_last_request_alone() {
        let once = compact_with(&mut Script::says("one"), &history()).unwrap();
        let twice = compact_with(&mut Script::says("two"), &once).unwrap();
        let text = twice.messages()[1].text();
        assert!(text.contains("two") && !text.contains("one"), "{text}");
        assert!(
            text.ends_with("word for word:\n\n  the last\n\nrequest "),
            "{text}"
        );
    }

    #[test]
    fn e8_an_answer_that_is_no_whole_summary_changes_nothing_and_says_why() {
        let mut reasoning = Message::assistant("");
        reasoning
            .as_map_mut()
            .insert("reasoning".into(), json!("r"));
        let half = || Message::assistant("half a");
        let cases = [
            (
                Message::assistant(" \n"),
                Finish::Complete,
                "the answer was empty",
            ),
            (reasoning, Finish::Complete, "the answer was empty"),
            (call("1"), Finish::Complete, "the model called a tool"),
            (half(), Finish::Length, "cut off by the length limit"),
            (half(), Finish::Filtered, "the content filter"),
        ];
        for (message, finish, why) in cases {
            let mut script = Script::new([Answer::Reply(message, finish)]);
            let error = compact_with(&mut script, &history())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("no summary: ") && error.contains(why),
                "{error}"
            );
            assert_eq!(script.requests.len(), 1);
        }
        let mut script = Script::new([Answer::Error(Error::BadReply("bad".into()))]);
        let error = compact_with(&mut script, &history()).unwrap_err();
        assert_eq!(error.to_string(), "bad");
    }

    #[test]
    fn e8_calls_beside_a_summary_are_not_run() {
        let mut message = call("1");
        message
            .as_map_mut()
            .insert("content".into(), json!("the summary"));
        let mut script = Script::new([Answer::Reply(message, Finish::Complete)]);
        let compacted = compact_with(&mut script, &history()).unwrap();
        assert!(compacted.messages()[1].text().contains("the summary"));
        assert!(compacted.messages()[1].tool_calls().is_empty());
    }

    #[test]
    fn e8_there_must_be_something_to_summarize() {
        let mut script = Script::new([]);
        assert!(compact_with(&mut script, &Conversation::new("system")).is_err());
    }

    #[test]
    fn e8_an_interrupt_ends_it() {
        let mut script = Script::new([Answer::Hang]);
        let cancel = CancellationToken::new();
        let mut told = Told::default();
        let conversation = history();
        let done = compact(
            &mut script,
            &[],
            &conversation,
            None,
            1000,
            &mut told,
            &cancel,
        );
        let result = run(async { tokio::join!(done, async { cancel.cancel() }).0 });
        assert!(matches!(result, Err(Error::Cancelled)));
    }

    #[test]
    fn e8_a_turn_that_ended_with_results_is_closed_before_the_instruction() {
        let mut conversation = history();
        conversation.push(call("1"));
        conversation.push(Message::tool("1", "x"));
        let mut script = Script::says("summary");
        compact_with(&mut script, &conversation).unwrap();
        let roles: Vec<_> = script.requests[0]
            .iter()
            .rev()
            .take(3)
            .map(Message::role)
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
    }

    /// A turn of `steps` steps with results of `size` bytes each.
    fn long_turn(conversation: &mut Conversation, request: &str, steps: usize, size: usize) {
        conversation.push(Message::user(request));
        for step in 0..steps {
            let id = format!("{request}{step}");
            conversation.push(call(&id));
            conversation.push(Message::tool(&id, &format!("é{}", "x".repeat(size))));
        }
        conversation.push(Message::assistant("done"));
    }

    /// Whether a request is one that every server takes.
    fn is_valid(messages: &[Message]) -> bool {
        repair::repair(&mut Conversation::from_messages(messages.to_vec())).is_empty()
    }

    #[test]
    fn e8_too_long_a_conversation_is_shortened_in_the_copy_only() {
        let mut conversation = Conversation::new("system");
        for request in ["a", "b", "c", "d"] {
            long_turn(&mut conversation, request, 25, 2000);
        }
        let before = conversation.clone();
        let mut script = Script::new([Answer::TooLongBeyond(50_000)]);
        let compacted = compact_with(&mut script, &conversation).unwrap();
        assert_eq!(conversation, before);
        assert!(compacted.messages()[1].text().ends_with("\n\nd"));
        assert!(script.requests.len() <= 3);
        assert!(script.requests.iter().all(|request| is_valid(request)));

        let [first, second, ..] = script.requests.as_slice() else {
            panic!("one request only");
        };
        assert_eq!(first[..first.len() - 1], *before.messages());
        assert_eq!(
            second.len(),
            first.len(),
            "only results are shortened at first"
        );
        let shortened: Vec<_> = second
            .iter()
            .filter(|message| message.role() == "tool")
            .map(|message| message.text().contains("characters left out"))
            .collect();
        assert!(
            shortened[0] && shortened.is_sorted_by(|a, b| a >= b),
            "the oldest first"
        );
        assert!(!shortened[shortened.len() - 1]);
    }

    #[test]
    fn e8_where_that_is_not_enough_the_oldest_turns_are_left_out() {
        let mut conversation = Conversation::new("system");
        for request in 0..40 {
            conversation.push(Message::user(&format!("{request} {}", "u".repeat(2500))));
            conversation.push(Message::assistant(&"a".repeat(2500)));
        }
        let mut script = Script::new([Answer::TooLongBeyond(50_000)]);
        compact_with(&mut script, &conversation).unwrap();
        let last = script.requests.last().unwrap();
        assert_eq!(last[0], Message::system("system"));
        assert_eq!(last[1], Message::user(LEFT_OUT));
        let kept = conversation.messages();
        let kept = &kept[kept.len() - (last.len() - 3)..];
        assert_eq!(&last[2..last.len() - 1], kept, "the newest are whole");
        assert!(is_valid(last));
    }

    #[test]
    fn e8_one_endless_turn_loses_its_oldest_steps_but_not_its_request() {
        let mut conversation = Conversation::new("system");
        long_turn(&mut conversation, "the task", 2000, 100);
        let mut script = Script::new([Answer::TooLongBeyond(50_000)]);
        compact_with(&mut script, &conversation).unwrap();
        let last = script.requests.last().unwrap();
        assert_eq!(last[1], Message::user("the task"));
        assert_eq!(last[2], Message::user(LEFT_OUT));
        assert!(is_valid(last));
    }

    #[test]
    fn e8_three_requests_are_the_most() {
        let mut conversation = Conversation::new("system");
        for _ in 0..20 {
            long_turn(&mut conversation, "again", 3, 3000);
        }
        let mut script = Script::new([Answer::TooLongBeyond(0)]);
        let error = compact_with(&mut script, &conversation).unwrap_err();
        assert!(error.is_context_length());
        assert_eq!(script.requests.len(), 3);
    }

    #[test]
    fn e8_what_can_get_no_smaller_is_not_sent_again() {
        let mut conversation = Conversation::new("system");
        conversation.push(Message::user(&"u".repeat(100_000)));
        let mut script = Script::new([Answer::TooLongBeyond(50_000)]);
        assert!(compact_with(&mut script, &conversation).is_err());
        assert_eq!(script.requests.len(), 1);
    }

    #[test]
    fn e8_what_cannot_fit_the_window_is_shortened_before_the_first_request() {
        let mut conversation = Conversation::new("system");
        long_turn(&mut conversation, "a", 50, 3000);
        let mut script = Script::says("summary");
        compact_in(&mut script, &conversation, 10_000).unwrap();
        assert!(size_of(&script.requests[0]) < 40_000);
    }

    #[test]
    fn e4_the_line_is_the_first_of_the_answer() {
        let cancel = CancellationToken::new();
        let mut told = Told::default();
        let mut script = Script::says("\n a line \nanother");
        let conversation = history();
        let line = summary_line(&mut script, &[], &conversation, &mut told, &cancel);
        assert_eq!(run(line).unwrap(), "a line");
        assert_eq!(script.requests[0][..5], *history().messages());
        for (answer, why) in [
            (
                Answer::Reply(call("1"), Finish::Complete),
                "no summary: the answer was empty",
            ),
            (Answer::Retry, "no summary: the request failed"),
            (Answer::Error(Error::BadReply("bad".into())), "bad"),
        ] {
            let mut script = Script::new([answer]);
            let line = summary_line(&mut script, &[], &conversation, &mut told, &cancel);
            assert_eq!(run(line).unwrap_err().to_string(), why);
        }
        assert!(
            told.0.iter().all(|event| event == "Requesting"),
            "{:?}",
            told.0
        );
    }
}
