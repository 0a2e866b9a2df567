//! The terminal's own thread: does what the application asks for, one thing after the other.

use std::io;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use tokio::sync::oneshot;

use super::Options;
use super::complete::Completer;
use super::dumb::Lines;
use super::history::History;
use super::input::Input;
use super::mode::{self, Mode};
use super::reader::{End, Habits, Reader};
use super::source::Source;

/// What the application can ask for.
pub(super) enum Request {
    /// The next prompt.
    Prompt {
        /// What stands before it.
        sign: String,
        /// Where the end goes to; dropped at the other end when nobody waits any more.
        reply: oneshot::Sender<End>,
    },
    /// The answer to a question.
    Question {
        /// The question.
        sign: String,
        /// Where the end goes to.
        reply: oneshot::Sender<End>,
    },
    /// That a text can be recalled.
    Recall(String),
    /// Whether remarks are dimmed from now on.
    Color(bool),
    /// That another program can have the terminal; answered when it can.
    HandOver(mpsc::Sender<()>),
    /// That the other program is done with it.
    TakeBack(mpsc::Sender<()>),
}

/// What the thread works with.
struct Worker {
    input: Input,
    history: History,
    reader: Reader,
    lines: Lines,
    dumb: bool,
    record: fn(&str) -> bool,
    warn: mpsc::Sender<String>,
}

/// Starts the thread. It ends when nobody can ask for anything any more. Warnings about the history
/// go to `warn`, those of its reading before this returns.
pub(super) fn start(
    options: Options,
    source: Source,
    requests: mpsc::Receiver<Request>,
    warn: mpsc::Sender<String>,
) -> io::Result<()> {
    let mut input = Input::new(source);
    input.take_in_lines();
    let (history, warning) = History::open(options.history.as_deref());
    if let Some(warning) = warning {
        let _ = warn.send(warning);
    }
    let completer = Completer {
        words: options.completer,
        home: options.home,
    };
    let habits = Habits {
        color: options.color,
        reflows: options.reflows,
        editor: options.editor,
    };
    let mut worker = Worker {
        input,
        history,
        reader: Reader::new(completer, habits),
        lines: Lines::default(),
        dumb: options.dumb,
        record: options.record,
        warn,
    };
    thread::Builder::new()
        .name("terminal".into())
        .spawn(move || {
            while let Some(request) = worker.next(&requests) {
                worker.serve(request);
            }
        })?;
    Ok(())
}

impl Worker {
    /// Waits for the next request; meanwhile what is typed is taken in. A dumb terminal keeps that.
    fn next(&mut self, requests: &mpsc::Receiver<Request>) -> Option<Request> {
        while !self.dumb {
            match requests.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if mode::is_ours() && self.input.rest() => {}
                Err(TryRecvError::Empty) => break,
            }
        }
        requests.recv().ok()
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Prompt { sign, reply } => {
                let is_wanted = || !reply.is_closed();
                self.input.unpark();
                let end = if self.dumb {
                    self.lines.prompt(&mut self.input, &sign, &is_wanted)
                } else {
                    self.reader
                        .prompt(&mut self.input, &self.history, &sign, &is_wanted)
                };
                if let End::Submitted(text) = &end {
                    self.remember(text);
                }
                let _ = reply.send(end);
            }
            Request::Question { sign, reply } => {
                let is_wanted = || !reply.is_closed();
                self.input.park();
                let end = if self.dumb {
                    self.lines.question(&mut self.input, &sign, &is_wanted)
                } else {
                    self.reader.question(&mut self.input, &sign, &is_wanted)
                };
                let _ = reply.send(end);
            }
            Request::Recall(text) => self.history.recall(&text),
            Request::Color(color) => self.reader.habits.color = color,
            Request::HandOver(done) => {
                mode::enter(Mode::Found);
                let _ = done.send(());
            }
            Request::TakeBack(done) => {
                mode::enter(Mode::Quiet);
                self.input.take_in_lines();
                let _ = done.send(());
            }
        }
    }

    fn remember(&mut self, text: &str) {
        if (self.record)(text)
            && let Some(warning) = self.history.add(text)
        {
            let _ = self.warn.send(warning);
        }
    }
}
