//! A model that answers from a script, and a sink that writes down what it is told, for tests of
//! the loop without any network or screen.

use std::collections::VecDeque;
use std::time::Duration;

use bantam::error::{Error, Result};
use bantam::event::{Event, Sink};
use bantam::message::Message;
use bantam::model::{BoxFuture, Finish, Model, Reply, Request};
use bantam::usage::Usage;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// One answer of the script.
pub(crate) enum Answer {
    /// A whole reply, of which these events tell.
    Reply(Vec<Recorded>, Reply),
    /// These events, then an error.
    Error(Vec<Recorded>, Error),
    /// These events, then nothing until it is cancelled.
    Hang(Vec<Recorded>),
}

impl Answer {
    /// An answer of text alone: usage 10 + 5.
    pub(crate) fn text(text: &str) -> Self {
        let events = vec![Recorded::Text(text.to_owned())];
        Self::Reply(events, reply(Message::assistant(text)))
    }

    /// An answer with calls, each an id, a name and arguments: usage 10 + 5.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        Self::Reply(Vec::new(), reply(calling(calls)))
    }

    /// An empty answer: usage 10 + 5.
    pub(crate) fn empty() -> Self {
        Self::Reply(Vec::new(), reply(Message::assistant("")))
    }

    /// An error in place of an answer.
    pub(crate) fn error(error: Error) -> Self {
        Self::Error(Vec::new(), error)
    }

    /// Text that goes on until it is cancelled.
    pub(crate) fn hang(text: &str) -> Self {
        Self::Hang(vec![Recorded::Text(text.to_owned())])
    }

    /// The same, ending for another reason.
    pub(crate) fn finish(mut self, finish: Finish) -> Self {
        if let Self::Reply(_, reply) = &mut self {
            reply.finish = finish;
        }
        self
    }
}

fn reply(message: Message) -> Reply {
    Reply {
        message,
        finish: Finish::Complete,
        usage: Usage {
            prompt: 10,
            completion: 5,
            ..Usage::default()
        },
    }
}

/// An assistant message with calls, each an id, a name and arguments.
pub(crate) fn calling<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Message {
    let calls: Vec<Value> = calls
        .into_iter()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let mut message = Message::assistant("");
    message
        .as_map_mut()
        .insert("tool_calls".to_owned(), Value::Array(calls));
    message
}

/// A model that gives the answers of its script and keeps what it was asked.
pub(crate) struct ScriptedModel {
    script: VecDeque<Answer>,
    /// The messages of each request.
    pub(crate) requests: Vec<Vec<Message>>,
    /// The tools of each request.
    pub(crate) tools: Vec<Vec<Value>>,
}

impl ScriptedModel {
    /// A model with this script.
    pub(crate) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            script: script.into_iter().collect(),
            requests: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// How many answers were not asked for.
    pub(crate) fn left(&self) -> usize {
        self.script.len()
    }
}

impl Model for ScriptedModel {
    fn complete<'a>(
        &'a mut self,
        request: Request<'a>,
        sink: &'a mut dyn Sink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply>> {
        self.requests.push(request.messages.to_vec());
        self.tools.push(request.tools.to_vec());
        let answer = self.script.pop_front();
        Box::pin(async move {
            sink.event(Event::Requesting);
            let answer = answer.expect("this request is not in the script");
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (Answer::Reply(events, _) | Answer::Error(events, _) | Answer::Hang(events)) =
                &answer;
            if !events.is_empty() {
                sink.event(Event::Replying);
            }
            for event in events {
                sink.event(event.borrow());
            }
            match answer {
                Answer::Reply(_, reply) => {
                    sink.event(Event::ReplyEnd);
                    Ok(reply)
                }
                Answer::Error(_, error) => Err(error),
                Answer::Hang(_) => {
                    cancel.cancelled().await;
                    Err(Error::Cancelled)
                }
            }
        })
    }
}

/// An [`Event`] that owns its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Recorded {
    Requesting,
    Replying,
    Retrying {
        attempt: usize,
        of: usize,
        delay: Duration,
        reason: String,
    },
    Reasoning(String),
    Text(String),
    ReplyEnd,
    Call {
        name: String,
        arguments: String,
    },
    Output {
        name: String,
        chunk: String,
    },
    Result {
        name: String,
        text: String,
        failed: bool,
        streamed: bool,
    },
    Usage(String),
    Notice(String),
    Warning(String),
    Interrupted,
}

impl Recorded {
    fn borrow(&self) -> Event<'_> {
        match self {
            Self::Requesting => Event::Requesting,
            Self::Replying => Event::Replying,
            Self::Retrying {
                attempt,
                of,
                delay,
                reason,
            } => Event::Retrying {
                attempt: *attempt,
                of: *of,
                delay: *delay,
                reason,
            },
            Self::Reasoning(text) => Event::Reasoning(text),
            Self::Text(text) => Event::Text(text),
            Self::ReplyEnd => Event::ReplyEnd,
            Self::Call { name, arguments } => Event::Call { name, arguments },
            Self::Output { name, chunk } => Event::Output { name, chunk },
            Self::Result {
                name,
                text,
                failed,
                streamed,
            } => Event::Result {
                name,
                text,
                failed: *failed,
                streamed: *streamed,
            },
            Self::Usage(line) => Event::Usage(line),
            Self::Notice(text) => Event::Notice(text),
            Self::Warning(text) => Event::Warning(text),
            Self::Interrupted => Event::Interrupted,
        }
    }
}

impl From<Event<'_>> for Recorded {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Requesting => Self::Requesting,
            Event::Replying => Self::Replying,
            Event::Retrying {
                attempt,
                of,
                delay,
                reason,
            } => Self::Retrying {
                attempt,
                of,
                delay,
                reason: reason.to_owned(),
            },
            Event::Reasoning(text) => Self::Reasoning(text.to_owned()),
            Event::Text(text) => Self::Text(text.to_owned()),
            Event::ReplyEnd => Self::ReplyEnd,
            Event::Call { name, arguments } => Self::Call {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            },
            Event::Output { name, chunk } => Self::Output {
                name: name.to_owned(),
                chunk: chunk.to_owned(),
            },
            Event::Result {
                name,
                text,
                failed,
                streamed,
            } => Self::Result {
                name: name.to_owned(),
                text: text.to_owned(),
                failed,
                streamed,
            },
            Event::Usage(line) => Self::Usage(line.to_owned()),
            Event::Notice(text) => Self::Notice(text.to_owned()),
            Event::Warning(text) => Self::Warning(text.to_owned()),
            Event::Interrupted => Self::Interrupted,
        }
    }
}

/// A sink that keeps all events. Pieces of one text that follow each other are kept as one, so that
/// a test need not know how an answer was cut into chunks.
#[derive(Debug, Default)]
pub(crate) struct RecordingSink {
    pub(crate) events: Vec<Recorded>,
    /// What [`Sink::closed`] says.
    pub(crate) closed: bool,
    /// Cancelled as soon as an event fulfils the condition.
    interrupt: Option<Interrupt>,
}

struct Interrupt {
    token: CancellationToken,
    when: Box<dyn Fn(&Recorded) -> bool>,
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Interrupt")
    }
}

impl RecordingSink {
    /// A sink without events.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Cancels the token when an event comes that fulfils the condition, as a person would who sees
    /// it and presses Ctrl+C.
    pub(crate) fn interrupting(
        token: &CancellationToken,
        when: impl Fn(&Recorded) -> bool + 'static,
    ) -> Self {
        Self {
            interrupt: Some(Interrupt {
                token: token.clone(),
                when: Box::new(when),
            }),
            ..Self::default()
        }
    }
}

impl Sink for RecordingSink {
    fn event(&mut self, event: Event<'_>) {
        let event = Recorded::from(event);
        if let Some(interrupt) = &self.interrupt
            && (interrupt.when)(&event)
        {
            interrupt.token.cancel();
        }
        match (self.events.last_mut(), &event) {
            (Some(Recorded::Text(text)), Recorded::Text(more))
            | (Some(Recorded::Reasoning(text)), Recorded::Reasoning(more)) => text.push_str(more),
            (
                Some(Recorded::Output { name, chunk }),
                Recorded::Output {
                    name: same,
                    chunk: more,
                },
            ) if name == same => chunk.push_str(more),
            _ => self.events.push(event),
        }
    }

    fn closed(&self) -> bool {
        self.closed
    }
}
