//! Reasoning that comes inside the answer's text, between `<think>` and `</think>`.
//!
//! Only what is shown is split; the text is stored as it came, for some servers want it back.

use std::mem;

use crate::event::{Event, Sink};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Shows text that may begin with reasoning, cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    /// What cannot be told apart yet.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but blanks so far: a tag may come.
    #[default]
    Start,
    /// Line breaks after the opening tag are not shown.
    Opened,
    Thinking,
    /// Blanks after the closing tag are not shown.
    Thought,
    Text,
}

impl Splitter {
    /// Shows a piece of the text.
    pub(super) fn push(&mut self, piece: &str, sink: &mut dyn Sink) {
        if self.state == State::Text {
            show_text(piece, sink);
            return;
        }
        self.held.push_str(piece);
        if self.state == State::Start {
            self.start(sink);
        }
        if self.state == State::Opened {
            let text = self.held.trim_start_matches('\n');
            if !text.is_empty() {
                self.held = text.to_owned();
                self.state = State::Thinking;
            }
        }
        if self.state == State::Thinking {
            self.think(sink);
        }
        if self.state == State::Thought && !self.held.trim_start().is_empty() {
            self.state = State::Text;
            show_text(mem::take(&mut self.held).trim_start(), sink);
        }
    }

    /// Shows a text that is all there. The opening tag may be missing then: some templates write it
    /// themselves.
    pub(super) fn whole(&mut self, text: &str, sink: &mut dyn Sink) {
        if self.state == State::Start
            && let Some((reasoning, rest)) = text.split_once(CLOSE)
            && !reasoning.contains(OPEN)
        {
            show_reasoning(reasoning, sink);
            self.state = State::Thought;
            self.push(rest, sink);
        } else {
            self.push(text, sink);
        }
    }

    /// Shows what was held back: nothing more comes.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        let held = mem::take(&mut self.held);
        match self.state {
            State::Thinking => show_reasoning(&held, sink),
            State::Start | State::Text => show_text(&held, sink),
            State::Opened | State::Thought => {}
        }
    }

    fn start(&mut self, sink: &mut dyn Sink) {
        let text = self.held.trim_start();
        if let Some(rest) = text.strip_prefix(OPEN) {
            self.state = State::Opened;
            self.held = rest.to_owned();
        } else if !OPEN.starts_with(text) {
            self.state = State::Text;
            show_text(&mem::take(&mut self.held), sink);
        }
    }

    fn think(&mut self, sink: &mut dyn Sink) {
        if let Some((reasoning, rest)) = self.held.split_once(CLOSE) {
            show_reasoning(reasoning, sink);
            self.state = State::Thought;
            self.held = rest.to_owned();
            return;
        }
        // The longest end that may be the beginning of the closing tag waits.
        let keep = (1..CLOSE.len())
            .rev()
            .find(|&length| {
                CLOSE
                    .get(..length)
                    .is_some_and(|tag| self.held.ends_with(tag))
            })
            .unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        show_reasoning(&self.held, sink);
        self.held = rest;
    }
}

fn show_text(text: &str, sink: &mut dyn Sink) {
    if !text.is_empty() {
        sink.event(Event::Text(text));
    }
}

fn show_reasoning(text: &str, sink: &mut dyn Sink) {
    if !text.is_empty() {
        sink.event(Event::Reasoning(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Shown(String, String);

    impl Sink for Shown {
        fn event(&mut self, event: Event<'_>) {
            match event {
                Event::Reasoning(text) => self.0.push_str(text),
                Event::Text(text) => self.1.push_str(text),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn c5_reasoning_inside_the_text_is_told_apart_however_it_is_cut() {
        for (text, reasoning, answer) in [
            ("hello", "", "hello"),
            ("<think>why</think>\n\nhello", "why", "hello"),
            ("\n <think>\nwhy <b></think>hello", "why <b>", "hello"),
            ("<think>why", "why", ""),
            ("<think>a</thin</think>x", "a</thin", "x"),
            ("a <think>b</think>", "", "a <think>b</think>"),
            ("<thin", "", "<thin"),
            ("<b>x", "", "<b>x"),
            ("  \n", "", "  \n"),
            ("<think></think>", "", ""),
        ] {
            for size in 1..=text.len() {
                let mut shown = Shown::default();
                let mut splitter = Splitter::default();
                let chars: Vec<char> = text.chars().collect();
                for piece in chars.chunks(size) {
                    splitter.push(&piece.iter().collect::<String>(), &mut shown);
                }
                splitter.finish(&mut shown);
                assert_eq!(
                    (&*shown.0, &*shown.1),
                    (reasoning, answer),
                    "{text:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn c5_a_closing_tag_alone_ends_reasoning_in_a_whole_text() {
        for (text, reasoning, answer) in [
            ("why</think>\nhello", "why", "hello"),
            ("<think>why</think>hello", "why", "hello"),
            ("hello", "", "hello"),
        ] {
            let mut shown = Shown::default();
            let mut splitter = Splitter::default();
            splitter.whole(text, &mut shown);
            splitter.finish(&mut shown);
            assert_eq!((&*shown.0, &*shown.1), (reasoning, answer), "{text:?}");
        }
    }
}
