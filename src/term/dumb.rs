//! Reading lines from a terminal that can do no more than print them (SPEC F6).
//!
//! The terminal edits and echoes; every line is a text. Nothing but plain text is written.

use crossterm::event::{KeyCode, KeyModifiers};

use crate::sanitize::screen;

use super::editor::cleaned;
use super::input::{Event, Input};
use super::keys::Typed;
use super::mode::{self, Mode};
use super::reader::{End, Kind};

/// Reads lines, and keeps what was typed ahead.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The line that has begun.
    line: String,
}

impl Lines {
    /// Reads the next line.
    pub(super) fn prompt(
        &mut self,
        input: &mut Input,
        sign: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        self.read(input, sign, Kind::Prompt, is_wanted)
    }

    /// Reads the answer to a question. What was typed before is the next prompt's.
    pub(super) fn question(
        &mut self,
        input: &mut Input,
        question: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        let draft = std::mem::take(&mut self.line);
        let end = self.read(input, question, Kind::Question, is_wanted);
        self.line = draft;
        end
    }

    fn read(
        &mut self,
        input: &mut Input,
        sign: &str,
        kind: Kind,
        is_wanted: &dyn Fn() -> bool,
    ) -> End {
        input.forget_flags();
        mode::enter(Mode::Editing);
        let sign = screen(sign);
        mode::write(&sign);
        let end = loop {
            if !is_wanted() {
                break End::Unwanted;
            }
            match input.next() {
                Event::Typed(typed) => {
                    if self.take(typed) {
                        break End::Submitted(std::mem::take(&mut self.line));
                    }
                }
                Event::Interrupted if kind == Kind::Question => break End::Interrupted,
                // The terminal has thrown its line away.
                Event::Interrupted | Event::Continued => {
                    mode::take_regained();
                    self.line.clear();
                    mode::write("\n");
                    mode::write(&sign);
                }
                Event::Woken | Event::Resized => {}
                Event::End => break End::Closed,
                Event::Gone => break End::Gone,
            }
        };
        mode::enter(Mode::Quiet);
        end
    }

    /// Takes in what was typed; whether it ends the line.
    fn take(&mut self, typed: Typed) -> bool {
        match typed {
            Typed::Text(text) | Typed::Paste(text) => self.line.push_str(&cleaned(&text)),
            Typed::Key(key) => match key.code {
                KeyCode::Enter => return true,
                KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL => return true,
                KeyCode::Tab => self.line.push('\t'),
                _ => {}
            },
        }
        false
    }
}
