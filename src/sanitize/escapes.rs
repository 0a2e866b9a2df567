//! Recognises terminal escape sequences, character by character.
//!
//! The grammar is ECMA-48's with the terminals' habits: BEL ends a control string, too, and
//! whatever cannot belong to a sequence ends it and counts for itself. A control string also ends
//! with its line, so that one that was never closed hides no more than that.

/// What one character amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It belongs to the text.
    Text(char),
    /// It belongs to a sequence.
    Sequence,
    /// It ends the sequence that erases from the cursor to the end of the line.
    EraseToEnd,
    /// It ends the sequence that erases the whole line.
    EraseLine,
}

/// Where in a sequence the text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Intermediate,
    Control(Parameters),
    String,
    StringEscape,
}

/// As much of a control sequence's parameters as tells the erasing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameters {
    None,
    Digit(char),
    Other,
}

/// The recogniser. Its state holds over any number of chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Escapes {
    state: State,
}

impl Escapes {
    /// Whether the next character is not inside a sequence.
    pub(super) fn in_text(&self) -> bool {
        self.state == State::Text
    }

    /// Takes the next character in.
    #[allow(
        clippy::match_same_arms,
        reason = "the arms follow the states of the grammar"
    )]
    pub(super) fn step(&mut self, c: char) -> Step {
        match (self.state, c) {
            (State::Text, _) => self.begin(c),
            (State::Escape, '[') => self.enter(State::Control(Parameters::None)),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => self.enter(State::String),
            (State::Escape | State::Intermediate, ' '..='/') => self.enter(State::Intermediate),
            (State::Escape | State::Intermediate, '0'..='~') => self.enter(State::Text),
            (State::Control(seen), ' '..='?') => self.enter(State::Control(seen.with(c))),
            (State::Control(seen), '@'..='~') => {
                self.state = State::Text;
                seen.meaning(c)
            }
            (State::String, '\n') => self.begin(c),
            (State::String, '\x07' | '\x18' | '\x1a' | '\u{9c}') => self.enter(State::Text),
            (State::String, '\x1b') => self.enter(State::StringEscape),
            (State::String, _) => Step::Sequence,
            (State::StringEscape, '\\') => self.enter(State::Text),
            (State::StringEscape, _) => {
                self.state = State::Escape;
                self.step(c)
            }
            (State::Escape | State::Intermediate | State::Control(_), _) => self.begin(c),
        }
    }

    /// A character outside any sequence: it may open one.
    fn begin(&mut self, c: char) -> Step {
        match c {
            '\x1b' => self.enter(State::Escape),
            '\u{9b}' => self.enter(State::Control(Parameters::None)),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.enter(State::String),
            _ => {
                self.state = State::Text;
                Step::Text(c)
            }
        }
    }

    fn enter(&mut self, state: State) -> Step {
        self.state = state;
        Step::Sequence
    }
}

impl Parameters {
    fn with(self, c: char) -> Self {
        match self {
            Self::None if c.is_ascii_digit() => Self::Digit(c),
            _ => Self::Other,
        }
    }

    /// What the control sequence with these parameters and the final character `c` does.
    fn meaning(self, c: char) -> Step {
        match (c, self) {
            ('K', Self::None | Self::Digit('0')) => Step::EraseToEnd,
            ('K', Self::Digit('2')) => Step::EraseLine,
            _ => Step::Sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(input: &str) -> String {
        let mut escapes = Escapes::default();
        input
            .chars()
            .filter_map(|c| match escapes.step(c) {
                Step::Text(c) => Some(c),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn c12_every_kind_of_sequence_goes_as_a_whole() {
        for (input, text) in [
            ("a\x1b[31mred\x1b[0mb", "aredb"),
            ("a\x1b[?25lb", "ab"),
            ("a\x1b[38;2;1;2;3mb", "ab"),
            ("a\x1b[>4;2mb\x1b[ q", "ab"),
            ("a\x1b]0;title\x07b", "ab"),
            ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
            ("a\x1b]52;c;ZXZpbA==\u{9c}b", "ab"),
            ("a\x1bP1$r0m\x1b\\b", "ab"),
            (
                "a\x1b^private\x1b\\b\x1b_app\x1b\\c\x1bXstart\x1b\\d",
                "abcd",
            ),
            ("a\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\b", "ab"),
            ("a\u{9b}2Jb\u{9d}0;t\u{9c}c\u{90}q\u{9c}d", "abcd"),
            ("a\x1b(Bb\x1b)0c\x1b#8d\x1b%Ge", "abcde"),
            ("a\x1b7b\x1b8c\x1bcd\x1b=e\x1bMf", "abcdef"),
        ] {
            assert_eq!(text_of(input), text, "{input:?}");
        }
    }

    #[test]
    fn c12_what_cannot_belong_to_a_sequence_ends_it_and_stays() {
        for (input, text) in [
            ("\x1b[12é", "é"),
            ("\x1b[\n", "\n"),
            ("\x1b[1\x1b[31mx", "x"),
            ("\x1b\x1b[31mx", "x"),
            ("\x1bé", "é"),
            ("\x1b(é", "é"),
            ("\x1b]0;t\x1b[31mx", "x"),
            ("\x1b]0;t\x18x", "x"),
        ] {
            assert_eq!(text_of(input), text, "{input:?}");
        }
    }

    #[test]
    fn c12_an_unterminated_string_ends_with_its_line() {
        assert_eq!(text_of("a\x1b]0;title\nb"), "a\nb");
        assert_eq!(text_of("a\x1bPdata\r\nb"), "a\nb");
        assert_eq!(text_of("a\x1b]0;title"), "a");
    }

    #[test]
    fn only_the_erasing_sequences_are_told_apart() {
        for (input, last) in [
            ("\x1b[K", Step::EraseToEnd),
            ("\x1b[0K", Step::EraseToEnd),
            ("\u{9b}K", Step::EraseToEnd),
            ("\x1b[2K", Step::EraseLine),
            ("\x1b[1K", Step::Sequence),
            ("\x1b[22K", Step::Sequence),
            ("\x1b[?2K", Step::Sequence),
            ("\x1b[2J", Step::Sequence),
        ] {
            let mut escapes = Escapes::default();
            assert_eq!(
                input.chars().map(|c| escapes.step(c)).last(),
                Some(last),
                "{input:?}"
            );
            assert!(escapes.in_text());
        }
    }
}
