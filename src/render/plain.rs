//! The sink of `--quiet`: only the text of a prompt's last answer, once it is complete (SPEC A3).
//!
//! A prompt is done when its usage line comes, or at the end of the run; texts between tool calls,
//! traces, results and the usage line itself are left out. What commands print is what was asked
//! for and is written. On standard error the status and notices are left out; retries, warnings and
//! errors are not. An answer is laid out where answers are.

use std::io::{self, Write};
use std::rc::Rc;

use crate::error::Error;
use crate::event::{Event, Sink};
use crate::render::markdown::{Markdown, Width};
use crate::render::messages::Messages;
use crate::render::theme::Style;
use crate::render::{Look, Screen, Stream};
use crate::sanitize::{Redactor, ScreenFilter, screen};

/// The sink of quiet runs.
pub(super) struct Quiet<'a, O, E> {
    out: Stream<O>,
    messages: Messages<E>,
    width: Width<'a>,
    /// Lays answers out, where they are.
    markdown: Option<Markdown<'a>>,
    /// What has come of an answer that is not complete.
    partial: String,
    /// The last complete answer that was not written yet.
    answer: Option<String>,
    filter: ScreenFilter,
    redactor: Redactor,
}

impl<'a, O: Write, E: Write> Quiet<'a, O, E> {
    pub(super) fn new(out: O, err: E, look: Look, width: Box<dyn Fn() -> usize + 'a>) -> Self {
        let width: Width<'a> = Rc::from(width);
        Self {
            out: Stream::new(out, look.color),
            markdown: look.markdown.then(|| Markdown::new(Rc::clone(&width))),
            width,
            messages: Messages::new(
                err,
                look.error_terminal,
                look.error_color,
                look.redactor.clone(),
            ),
            partial: String::new(),
            answer: None,
            filter: ScreenFilter::default(),
            redactor: look.redactor,
        }
    }

    fn write_answer(&mut self) {
        if let Some(answer) = self.answer.take().filter(|answer| !answer.is_empty()) {
            self.out.page.end_line();
            let answer = screen(&answer);
            let answer = self.redactor.mask(&answer);
            if let Some(markdown) = &mut self.markdown {
                markdown.push(&answer, &mut self.out.page);
                markdown.finish(&mut self.out.page);
            } else {
                self.put(&answer);
            }
            self.end_line();
        }
    }

    fn put(&mut self, text: &str) {
        self.out.put(text, Style::default());
    }
}

impl<O: Write, E: Write> Sink for Quiet<'_, O, E> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.partial.push_str(text),
            Event::ReplyEnd => self.answer = Some(std::mem::take(&mut self.partial)),
            Event::Retrying {
                attempt,
                of,
                delay,
                reason,
            } => {
                self.partial.clear();
                self.messages.retrying(attempt, of, delay, reason);
            }
            Event::Usage(_) => self.write_answer(),
            Event::Warning(text) => self.messages.warning(text),
            Event::Interrupted => {
                self.partial.clear();
                self.messages.interrupted();
            }
            // What was said before a call is not the answer.
            Event::Call { .. } => self.answer = None,
            Event::Requesting
            | Event::Replying
            | Event::Reasoning(_)
            | Event::Output { .. }
            | Event::Result { .. }
            | Event::Notice(_) => {}
        }
    }

    fn closed(&self) -> bool {
        self.out.is_broken_pipe()
    }
}

impl<O: Write, E: Write> Screen for Quiet<'_, O, E> {
    fn line(&mut self, text: &str) {
        self.out.page.end_line();
        let text = screen(&self.redactor.mask(text));
        self.put(&text);
        self.end_line();
    }

    fn command_output(&mut self, chunk: &str) {
        let mut clean = String::new();
        self.filter.push(chunk, &mut clean);
        self.put(&clean);
        self.out.flush();
    }

    fn end_line(&mut self) {
        self.filter = ScreenFilter::default();
        self.out.page.end_line();
        self.out.flush();
    }

    fn error(&mut self, error: &Error) {
        self.end_line();
        self.messages.error(error);
    }

    fn set_look(&mut self, look: Look) {
        self.end_line();
        self.out.page.set_color(look.color);
        self.messages.set_look(&look);
        self.markdown = look.markdown.then(|| Markdown::new(Rc::clone(&self.width)));
        self.redactor = look.redactor;
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_answer();
        self.end_line();
        self.out.failure.take().map_or(Ok(()), Err)
    }
}
