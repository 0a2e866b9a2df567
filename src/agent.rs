//! The loop: ask, append, dispatch, repeat (SPEC C7–C11).
//!
//! Owns nothing of the outside: the model, the tools and the sink are handed in. It keeps the
//! conversation valid for the API whatever happens, so that the next request is never refused
//! because of the last one.

use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::event::{Event, Sink};
use crate::message::{Conversation, Message};
use crate::model::{Finish, Model, Reply, Request};
use crate::tools::{Context, Registry};
use crate::usage::TurnUsage;

/// What the result of a call says that was not run to its end.
pub const INTERRUPTED: &str = "interrupted by the user";

/// What servers say of an assistant message without text and calls (SPEC C10).
const EMPTY_MESSAGE_REFUSED: &str = "content or tool_calls must be set";

/// How often an empty answer is asked for again.
const EMPTY_ANSWERS: usize = 2;

/// A model with its tools.
pub struct Agent<M> {
    /// Who is asked.
    pub model: M,
    /// What it may call.
    pub tools: Registry,
    /// How many requests a turn may take.
    pub max_iterations: usize,
}

/// What came of a turn.
#[derive(Debug)]
pub struct Turn {
    /// The figures of the requests that were answered; none were if it is `None`.
    pub usage: Option<TurnUsage>,
    /// How it ended.
    pub end: End,
    /// Whether the prompt was taken back, for nothing had come of it.
    pub taken_back: bool,
}

/// How a turn ended.
#[derive(Debug)]
pub enum End {
    /// With an answer, if only with the beginning of one.
    Answered,
    /// The person interrupted it.
    Interrupted,
    /// Without an answer; the person has been told why by a notice.
    Stopped,
    /// With an error that the caller reports.
    Failed(Error),
}

/// What one round of the loop leaves to do.
enum Step {
    Continue,
    End(End),
}

/// A turn under way.
struct Course<'a> {
    conversation: &'a mut Conversation,
    sink: StopWhenClosed<'a>,
    cancel: &'a CancellationToken,
    /// How many messages the conversation had before the prompt.
    start: usize,
    usage: Option<TurnUsage>,
    /// Whether a refused message was removed already.
    mended: bool,
    /// Told of every message that is there to stay.
    on_step: &'a mut dyn FnMut(&Conversation),
}

impl<M: Model> Agent<M> {
    /// Takes one prompt to its answer. `on_step` sees the conversation whenever there is more of it to
    /// keep: with the prompt, with each answer that calls, with each result, and as the turn leaves it.
    pub async fn run_turn(
        &mut self,
        conversation: &mut Conversation,
        prompt: Message,
        sink: &mut dyn Sink,
        cancel: &CancellationToken,
        on_step: &mut dyn FnMut(&Conversation),
    ) -> Turn {
        let start = conversation.messages().len();
        conversation.push(prompt);
        on_step(conversation);
        let sink = StopWhenClosed { sink, cancel };
        let mut course = Course {
            conversation,
            sink,
            cancel,
            start,
            usage: None,
            mended: false,
            on_step,
        };
        let mut end = None;
        for _ in 0..self.max_iterations {
            match self.step(&mut course).await {
                Ok(Step::Continue) => {}
                Ok(Step::End(how)) => end = Some(how),
                Err(Error::Cancelled) => end = Some(End::Interrupted),
                Err(error) => end = Some(End::Failed(error)),
            }
            if end.is_some() {
                break;
            }
        }
        let end = end.unwrap_or_else(|| course.stop_at_limit(self.max_iterations));
        let taken_back = course.close(&end);
        course.keep();
        Turn {
            usage: course.usage,
            end,
            taken_back,
        }
    }

    /// One request and what its answer asks for.
    async fn step(&mut self, course: &mut Course<'_>) -> Result<Step> {
        let Some(mut reply) = self.ask(course).await? else {
            course.sink.event(Event::Warning(
                "the model's answer was empty, three times in a row",
            ));
            return Ok(Step::End(End::Stopped));
        };
        if reply.finish != Finish::Complete {
            self.tools.mask(&mut reply.message);
            return Ok(Step::End(course.keep_text(reply)));
        }
        let calls: Vec<(String, String, String)> = reply
            .message
            .tool_calls()
            .iter()
            .map(|call| {
                (
                    call.id.to_owned(),
                    call.name.to_owned(),
                    call.arguments.to_owned(),
                )
            })
            .collect();
        self.tools.mask(&mut reply.message);
        course.conversation.push(reply.message);
        if !calls.is_empty() {
            // Whatever ends the program while a command runs, what was answered is not lost.
            course.keep();
        }
        for (id, name, arguments) in &calls {
            let result = self.run_call(course, name, arguments).await;
            course.conversation.push(Message::tool(id, &result));
            if !course.cancel.is_cancelled() {
                course.keep();
            }
        }
        Ok(match calls.is_empty() {
            true => Step::End(End::Answered),
            false if course.cancel.is_cancelled() => Step::End(End::Interrupted),
            false => Step::Continue,
        })
    }

    /// An answer that is not empty, or `None` where only empty ones come.
    async fn ask(&mut self, course: &mut Course<'_>) -> Result<Option<Reply>> {
        let mut empty = 0;
        while empty <= EMPTY_ANSWERS {
            let request = Request {
                messages: course.conversation.messages(),
                tools: self.tools.specs(),
            };
            match self
                .model
                .complete(request, &mut course.sink, course.cancel)
                .await
            {
                Ok(reply) => {
                    course.usage.get_or_insert_default().add(reply.usage);
                    if reply.finish != Finish::Complete || !reply.message.is_empty_assistant() {
                        return Ok(Some(reply));
                    }
                    empty += 1;
                }
                Err(error) if course.mend_refused(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Runs one call and tells of it; the text is its result for the model.
    async fn run_call(&self, course: &mut Course<'_>, name: &str, arguments: &str) -> String {
        if course.cancel.is_cancelled() {
            return INTERRUPTED.into();
        }
        course.sink.event(Event::Call { name, arguments });
        course.sink.flush();
        let sink = &mut course.sink;
        let mut on_output = |chunk: &str| {
            sink.event(Event::Output { name, chunk });
            sink.flush();
        };
        let context = Context {
            cancel: course.cancel,
            on_output: &mut on_output,
        };
        let output = self.tools.call(name, arguments, context).await;
        let (text, failed, streamed) = (output.text.as_str(), output.failed, output.streamed);
        course.sink.event(Event::Result {
            name,
            text,
            failed,
            streamed,
        });
        course.sink.flush();
        output.text
    }
}

impl Course<'_> {
    fn keep(&mut self) {
        (self.on_step)(self.conversation);
    }

    /// Keeps the text of an answer that was cut; its calls may be cut too and are not run.
    fn keep_text(&mut self, mut reply: Reply) -> End {
        reply.message.as_map_mut().shift_remove("tool_calls");
        self.sink.event(Event::Warning(match reply.finish {
            Finish::Filtered => "the answer was cut off by the provider's content filter",
            _ => "the answer was cut off by its length: the limit of output tokens is reached (max_tokens)",
        }));
        if reply.message.is_empty_assistant() {
            return End::Stopped;
        }
        self.conversation.push(reply.message);
        End::Answered
    }

    /// Removes what a server refused as an empty assistant message, once a turn; whether it did.
    fn mend_refused(&mut self, error: &Error) -> bool {
        let refused =
            matches!(error, Error::Api(error) if error.message.contains(EMPTY_MESSAGE_REFUSED));
        if !refused || self.mended {
            return false;
        }
        self.mended = true;
        let messages = self.conversation.messages();
        let mut doomed: Vec<bool> = messages.iter().map(Message::is_empty_assistant).collect();
        if !doomed.contains(&true) {
            let Some(last) = messages
                .iter()
                .rposition(|message| message.role() == "assistant")
            else {
                return false;
            };
            let answers = messages
                .iter()
                .skip(last + 1)
                .take_while(|message| message.role() == "tool")
                .count();
            doomed
                .iter_mut()
                .skip(last)
                .take(answers + 1)
                .for_each(|doomed| *doomed = true);
        }
        self.start -= doomed
            .iter()
            .take(self.start)
            .filter(|doomed| **doomed)
            .count();
        let mut doomed = doomed.into_iter();
        self.conversation
            .retain(|_| !doomed.next().unwrap_or(false));
        self.sink.event(Event::Warning(
            "the server refused an empty assistant message; it was removed, trying again",
        ));
        true
    }

    fn stop_at_limit(&mut self, limit: usize) -> End {
        let notice = format!("stopped after {limit} requests (max_al_iterations)");
        self.sink.event(Event::Warning(&notice));
        End::Stopped
    }

    /// Leaves a conversation that the next request can follow. Whether the prompt was taken back.
    fn close(&mut self, end: &End) -> bool {
        if matches!(end, End::Interrupted) && !self.sink.closed() {
            self.sink.event(Event::Interrupted);
        }
        let messages = self.conversation.messages();
        let answered = messages
            .iter()
            .skip(self.start)
            .any(|message| message.role() == "assistant");
        if !answered {
            self.conversation.truncate(self.start);
        } else if messages
            .last()
            .is_some_and(|message| message.role() == "tool")
        {
            // Some servers refuse a user message after a tool's.
            self.conversation.push(Message::assistant(match end {
                End::Interrupted => "(interrupted by the user)",
                End::Failed(_) => "(ended by an error)",
                End::Answered | End::Stopped => "(stopped before an answer)",
            }));
        }
        self.sink.flush();
        !answered
    }
}

/// A sink that interrupts the turn when nobody can see its output any more.
struct StopWhenClosed<'a> {
    sink: &'a mut dyn Sink,
    cancel: &'a CancellationToken,
}

impl Sink for StopWhenClosed<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.sink.event(event);
    }

    fn flush(&mut self) {
        self.sink.flush();
        if self.sink.closed() {
            self.cancel.cancel();
        }
    }

    fn closed(&self) -> bool {
        self.sink.closed()
    }
}
