//! Reads prompts and answers to questions, and keeps what outlives one of them.
//!
//! Runs on the terminal's own thread; knows no application.

use super::complete::Completer;
use super::editor::Editor;
use super::history::History;
use super::input::Input;
use super::mode::{self, Mode};
use super::reading::Reading;

/// What a text is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The next prompt: with the draft, the history and completion.
    Prompt,
    /// The answer to a question.
    Question,
}

/// How reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a text.
    Submitted(String),
    /// Ctrl+D at an empty line.
    Closed,
    /// Ctrl+C at a question.
    Interrupted,
    /// Nobody waits for it any more.
    Unwanted,
    /// The terminal vanished.
    Gone,
}

/// How a terminal behaves, as far as it can't be asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Habits {
    /// Whether remarks are dimmed.
    pub(super) color: bool,
    /// Whether rows that no longer fit after a change of size are broken, rather than cut.
    pub(super) reflows: bool,
    /// The command that edits a file.
    pub(super) editor: Option<String>,
}

/// Reads texts, one after the other, with what is kept in between.
pub(super) struct Reader {
    pub(super) completer: Completer,
    pub(super) habits: Habits,
    pub(super) editor: Editor,
}

impl Reader {
    pub(super) fn new(completer: Completer, habits: Habits) -> Self {
        Self {
            completer,
            habits,
            editor: Editor::default(),
        }
    }

    /// Reads the next prompt. A draft that was left behind is there again.
    pub(super) fn prompt(
        &mut self,
        input: &mut Input,
        history: &History,
        sign: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        self.read(input, history, sign, Kind::Prompt, is_wanted)
    }

    /// Reads the answer to a question. The draft stays what it is.
    pub(super) fn question(
        &mut self,
        input: &mut Input,
        question: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        let draft = std::mem::take(&mut self.editor);
        let nothing = History::default();
        let end = self.read(input, &nothing, question, Kind::Question, is_wanted);
        self.editor = draft;
        end
    }

    fn read(
        &mut self,
        input: &mut Input,
        history: &History,
        sign: &str,
        kind: Kind,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        input.forget_flags();
        mode::enter(Mode::Editing);
        let end = Reading::new(self, input, history, sign, kind).until_end(is_wanted);
        mode::enter(Mode::Quiet);
        end
    }
}
