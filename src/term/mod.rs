//! The terminal and its line editor.
//!
//! Owns: the terminal's modes, what is typed, the prompt's rows on the screen, the history.
//! Must not know: the conversation, the commands (they come in as a [`Complete`]), the renderer.
//!
//! Four pure layers do the work: `decode` and `keys` turn what is typed into commands, `editor` keeps
//! text and cursor, `layout` and `paint` turn them into bytes. `reading` joins them, on a thread of its
//! own; `source` waits for what comes in, `mode` sets the terminal's modes and gives it back.

mod complete;
#[cfg(unix)]
mod decode;
mod dumb;
mod editor;
mod external;
mod history;
mod history_file;
mod input;
mod keys;
mod layout;
mod mode;
mod paint;
mod reader;
mod reading;
mod search;
mod source;
mod undo;
mod worker;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;

pub use complete::{Candidate, Complete};
pub use mode::{interrupt, restore, resume, size};

use reader::End;
use source::Waker;
use worker::Request;

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
    /// Whether remarks below the prompt are dimmed.
    pub color: bool,
    /// Whether the terminal breaks rows that no longer fit when its size changes; others cut them.
    pub reflows: bool,
    /// What Tab offers beside paths.
    pub completer: Arc<dyn Complete>,
    /// Whether a submitted text belongs into the history.
    pub record: fn(&str) -> bool,
    /// The shell command that Ctrl+X Ctrl+E runs, with the file's name behind it.
    pub editor: Option<String>,
    /// Where `~/` points to in completed paths.
    pub home: Option<PathBuf>,
}

impl Options {
    /// Options for the terminal that the environment describes: `TERM` and the variables by which
    /// terminals can be told apart, `VISUAL`, `EDITOR`, `HOME`.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let filled = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        Self {
            history: None,
            dumb: get("TERM").is_some_and(|term| term == "dumb"),
            color: false,
            reflows: reflows(&filled),
            completer: Arc::new(complete::Nothing),
            record: |_| true,
            editor: filled("VISUAL").or_else(|| filled("EDITOR")),
            home: filled("HOME").map(PathBuf::from),
        }
    }
}

/// Whether the terminal is known to break rows. To assume it wrongly would overwrite what stands
/// above the prompt; not to know it only leaves some of the old prompt there.
fn reflows(get: &dyn Fn(&str) -> Option<String>) -> bool {
    const MARKS: [&str; 7] = [
        "TMUX",
        "VTE_VERSION",
        "KONSOLE_VERSION",
        "KITTY_WINDOW_ID",
        "ALACRITTY_WINDOW_ID",
        "WT_SESSION",
        "TERMUX_VERSION",
    ];
    const PROGRAMS: [&str; 6] = [
        "Apple_Terminal",
        "iTerm.app",
        "WezTerm",
        "ghostty",
        "tmux",
        "vscode",
    ];
    const TERMS: [&str; 5] = ["tmux", "xterm-kitty", "alacritty", "foot", "xterm-ghostty"];
    let program = get("TERM_PROGRAM").unwrap_or_default();
    let term = get("TERM").unwrap_or_default();
    MARKS.iter().any(|mark| get(mark).is_some())
        || PROGRAMS.contains(&program.as_str())
        || TERMS.iter().any(|known| term.starts_with(known))
}

/// How long the last prompt may take to be left behind when the program ends.
const LAST_PROMPT: Duration = Duration::from_millis(100);

/// The terminal of an interactive run. Between two calls it is quiet: what is typed is neither
/// echoed nor lost, and Ctrl+C is a signal. Dropping it gives the terminal back.
pub struct Terminal {
    requests: mpsc::Sender<Request>,
    waker: Waker,
    warnings: mpsc::Receiver<String>,
}

impl Terminal {
    /// Takes the terminal over. Fails when standard input is none.
    pub fn open(options: Options) -> io::Result<Self> {
        let (source, waker) = source::open()?;
        mode::take(options.dumb, waker.clone())?;
        let (requests, queue) = mpsc::channel();
        let (warn, warnings) = mpsc::channel();
        worker::start(options, source, queue, warn)?;
        Ok(Self {
            requests,
            waker,
            warnings,
        })
    }

    /// What went wrong without keeping anyone from typing (an unreadable history), to be shown once.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warnings.try_recv().ok()
    }

    /// Asks for a text. Safe to cancel: what was typed so far is the next call's draft.
    pub async fn edit(&mut self, prompt: &str) -> Input {
        let sign = prompt.to_owned();
        match self.read(|reply| Request::Prompt { sign, reply }).await {
            End::Submitted(text) => Input::Line(text),
            End::Closed => Input::Eof,
            End::Interrupted | End::Unwanted | End::Gone => Input::Gone,
        }
    }

    /// Asks a question. What was typed before belongs to the next prompt and never answers it.
    /// `None`: Ctrl+C, Ctrl+D, or nobody there any more.
    pub async fn ask(&mut self, question: &str) -> Option<String> {
        let sign = question.to_owned();
        match self.read(|reply| Request::Question { sign, reply }).await {
            End::Submitted(answer) => Some(answer),
            _ => None,
        }
    }

    /// Takes back a prompt that came to nothing: Up brings it to the line again.
    pub fn recall(&mut self, text: String) {
        self.request(Request::Recall(text));
    }

    /// Dims remarks below the prompt from now on, or stops doing so.
    pub fn set_color(&mut self, color: bool) {
        self.request(Request::Color(color));
    }

    /// Runs something that needs the terminal for itself, in the modes it was found in.
    pub fn hand_over<R>(&mut self, run: impl FnOnce() -> R) -> R {
        self.wait_for(Request::HandOver);
        let result = run();
        self.wait_for(Request::TakeBack);
        result
    }

    async fn read(&mut self, request: impl FnOnce(oneshot::Sender<End>) -> Request) -> End {
        // Dropped last, so that whoever is woken by it sees that nobody waits any more.
        let _wake = WakeWhenDropped(&self.waker);
        let (reply, end) = oneshot::channel();
        if !self.request(request(reply)) {
            return End::Gone;
        }
        end.await.unwrap_or(End::Gone)
    }

    fn wait_for(&mut self, request: impl FnOnce(mpsc::Sender<()>) -> Request) {
        let (done, is_done) = mpsc::channel();
        if self.request(request(done)) {
            let _ = is_done.recv();
        }
    }

    /// Whether there is anyone to serve the request.
    fn request(&self, request: Request) -> bool {
        let is_sent = self.requests.send(request).is_ok();
        self.waker.wake();
        is_sent
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A prompt that is being left is left whole first; a terminal that takes nothing any more is
        // not waited for.
        let (done, is_done) = mpsc::channel();
        if self.request(Request::HandOver(done)) {
            let _ = is_done.recv_timeout(LAST_PROMPT);
        }
        restore();
    }
}

struct WakeWhenDropped<'a>(&'a Waker);

impl Drop for WakeWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_the_environment_says_what_kind_of_terminal_it_is() {
        let options = |set: &'static [(&str, &str)]| {
            Options::from_env(&|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(options(&[("TERM", "dumb")]).dumb);
        let plain = options(&[
            ("TERM", "xterm-256color"),
            ("VISUAL", " "),
            ("EDITOR", "ed"),
        ]);
        assert!(!plain.dumb && !plain.reflows);
        assert_eq!(plain.editor.as_deref(), Some("ed"));
        assert!(options(&[("TERM", "screen"), ("TMUX", "/tmp/s,1,0")]).reflows);
        assert!(options(&[("TERM_PROGRAM", "iTerm.app")]).reflows);
    }
}
