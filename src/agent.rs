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
use crate::repair;
use crate::tools::{Context, Registry};
use crate::usage::TurnUsage;

/// What the result of a call says that was not run to its end.
pub const INTERRUPTED: &str = "interrupted by the user";

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
        let end = self.until_end(&mut course).await;
        let taken_back = course.close(&end);
        course.keep();
        Turn {
            usage: course.usage,
            end,
            taken_back,
        }
    }

    async fn until_end(&mut self, course: &mut Course<'_>) -> End {
        for _ in 0..self.max_iterations {
            match self.step(course).await {
                Ok(Step::Continue) => {}
                Ok(Step::End(end)) => return end,
                Err(Error::Cancelled) => return End::Interrupted,
                Err(error) => return End::Failed(error),
            }
        }
        course.stop_at_limit(self.max_iterations)
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
        // What is run is what came; what is kept is masked.
        let mut kept = reply.message.clone();
        self.tools.mask(&mut kept);
        course.conversation.push(kept);
        let calls = reply.message.tool_calls();
        if calls.is_empty() {
            return Ok(Step::End(End::Answered));
        }
        // Whatever ends the program while a command runs, what was answered is not lost.
        course.keep();
        for call in calls {
            let result = self.run_call(course, call.name, call.arguments).await;
            course.conversation.push(Message::tool(call.id, &result));
            if !course.cancel.is_cancelled() {
                course.keep();
            }
        }
        Ok(if course.cancel.is_cancelled() {
            Step::End(End::Interrupted)
        } else {
            Step::Continue
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
        if self.mended || !error.is_empty_message_refused() {
            return false;
        }
        self.mended = true;
        let refused = refused_messages(self.conversation.messages());
        if !refused.contains(&true) {
            return false;
        }
        let before_prompt = refused.iter().take(self.start);
        self.start -= before_prompt.filter(|refused| **refused).count();
        let mut refused = refused.into_iter();
        self.conversation
            .retain(|_| !refused.next().unwrap_or(false));
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
        let mut since_prompt = self.conversation.messages().iter().skip(self.start);
        let answered = since_prompt.any(|message| message.role() == "assistant");
        if answered {
            let note = match end {
                End::Interrupted => "(interrupted by the user)",
                End::Failed(_) => "(ended by an error)",
                End::Answered | End::Stopped => "(stopped before an answer)",
            };
            repair::close_turn(self.conversation, note);
        } else {
            self.conversation.truncate(self.start);
        }
        self.sink.flush();
        !answered
    }
}

/// Which messages a server means that refuses an empty one: the empty answers or, where there is
/// none, the last answer with the results of its calls (SPEC C10).
fn refused_messages(messages: &[Message]) -> Vec<bool> {
    let any_empty = messages.iter().any(Message::is_empty_assistant);
    let last_answer = messages
        .iter()
        .rposition(|message| message.role() == "assistant");
    let is_refused = |(at, message): (usize, &Message)| match message.role() {
        _ if any_empty => message.is_empty_assistant(),
        "tool" => last_answer.is_some_and(|answer| at > answer),
        _ => last_answer == Some(at),
    };
    messages.iter().enumerate().map(is_refused).collect()
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
