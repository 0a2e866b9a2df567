//! Where lines come from: the line editor of a terminal, or a pipe.

use std::io::{self, BufRead};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::render::Screen;
use crate::session::Store;
use crate::term::{Input, Options, Terminal};

use super::completion::Words;
use super::{Start, settings};

/// The sign before what a person types.
const PROMPT: &str = "> ";

/// What some programs put in front of UTF-8.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// The file of what was typed, in the home directory.
const HISTORY: &str = ".bantam_history";

/// Where lines come from.
pub(super) enum Source {
    /// A person at a terminal.
    Terminal(Box<Terminal>),
    /// Standard input, a line at a time.
    Pipe(mpsc::Receiver<String>),
    /// Nowhere: the prompt is in a file.
    Nothing,
}

/// Takes the terminal over, for as long as the program runs.
pub(super) fn open_terminal(
    start: &Start,
    config: &Config,
    screen: &mut dyn Screen,
) -> Result<Source> {
    let mut options = Options::from_env(&start.variable);
    options.history = start.home.as_ref().map(|home| home.join(HISTORY));
    options.color = settings::look(start, config).color;
    options.completer = Arc::new(Words::new(Store::open(
        start.home.as_deref(),
        &start.directory,
    )));
    options.record = may_be_recorded;
    let terminal =
        Terminal::open(options).map_err(|error| Error::io("take over", "the terminal", error))?;
    start.signals.set_interactive();
    let mut terminal = Box::new(terminal);
    if let Some(warning) = terminal.take_warning() {
        screen.event(Event::Warning(&warning));
    }
    Ok(Source::Terminal(terminal))
}

/// Whether a line may go into the history: not one that sets a key (SPEC F4), or was meant to.
fn may_be_recorded(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_setting = words.next().is_some_and(|word| word.starts_with('/'));
    let key = words
        .next()
        .and_then(|word| word.split('=').next())
        .unwrap_or_default();
    !(is_setting && config::is_probably_secret(key))
}

impl Source {
    /// Reads standard input on a thread of its own, no further than a line ahead.
    pub(super) fn pipe() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            if input.fill_buf().is_ok_and(|start| start.starts_with(BOM)) {
                input.consume(BOM.len());
            }
            loop {
                let mut line = Vec::new();
                let read = input.read_until(b'\n', &mut line);
                let line = String::from_utf8_lossy(&line).into_owned();
                if !read.is_ok_and(|read| read > 0) || sender.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Self::Pipe(receiver)
    }

    /// The next line; `None` at the end, or when `stop` is cancelled.
    pub(super) async fn next(&mut self, stop: &CancellationToken) -> Option<String> {
        let line = async {
            match self {
                Self::Terminal(terminal) => match terminal.edit(PROMPT).await {
                    Input::Line(line) => Some(line),
                    Input::Eof | Input::Gone => None,
                },
                Self::Pipe(lines) => lines.recv().await,
                Self::Nothing => None,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            line = line => line,
        }
    }

    /// Asks a yes-or-no question: `y` or `yes` is yes, and Enter alone is `default`.
    /// Nobody there, end of input and an interrupt are no.
    pub(super) async fn confirm(&mut self, question: &str, default: bool) -> bool {
        let Self::Terminal(terminal) = self else {
            return false;
        };
        let Some(answer) = terminal.ask(question).await else {
            return false;
        };
        match answer.trim().to_lowercase().as_str() {
            "" => default,
            answer => matches!(answer, "y" | "yes"),
        }
    }

    /// Gives a prompt back for editing that came to nothing.
    pub(super) fn recall(&mut self, text: &str) {
        if let Self::Terminal(terminal) = self {
            terminal.recall(text.to_owned());
        }
    }

    /// The terminal, if there is one.
    pub(super) fn terminal(&mut self) -> Option<&mut Terminal> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f4_lines_that_set_a_key_or_a_header_are_not_recorded() {
        for line in [
            "/cfg api_key sk-1",
            "/cfg  api_key=sk-1",
            "  /cfg header.X-Key abc",
            "/CFG api_key sk-1",
            "/cgf api_key sk-1",
            "/cfg apikey=sk-1",
            "/cfg API_KEY sk-1",
            "/cfg Header.X-Key abc",
        ] {
            assert!(!may_be_recorded(line), "{line}");
        }
        for line in ["/cfg model m", "/cfg", "what is api_key?", "/compact model"] {
            assert!(may_be_recorded(line), "{line}");
        }
    }
}
