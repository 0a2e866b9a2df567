//! Delimiters of emphasis and brackets that wait for their counterparts, by the rules of `CommonMark`.
//!
//! Kept only to know when nothing is open any more. What is emphasised in the end is the parser's
//! business.

use crate::render::inline::is_punctuation;

/// A delimiter that waits for its counterpart.
#[derive(Debug, Clone, Copy)]
struct Opener {
    /// Where it begins in the text that is held.
    at: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bracket,
    Emphasis {
        delimiter: char,
        /// How many characters of the run are not matched yet.
        open: usize,
        /// How many there were.
        length: usize,
        /// Whether the run could close something, too.
        closes: bool,
    },
}

/// The delimiters that are open, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Openers(Vec<Opener>);

impl Openers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the oldest begins.
    pub(super) fn first(&self) -> Option<usize> {
        self.0.first().map(|opener| opener.at)
    }

    /// Drops the oldest.
    pub(super) fn drop_first(&mut self) {
        if !self.0.is_empty() {
            self.0.remove(0);
        }
    }

    /// Follows the text when `by` bytes leave its front.
    pub(super) fn shift(&mut self, by: usize) {
        for opener in &mut self.0 {
            opener.at = opener.at.saturating_sub(by);
        }
    }

    pub(super) fn push_bracket(&mut self, at: usize) {
        self.0.push(Opener {
            at,
            kind: Kind::Bracket,
        });
    }

    pub(super) fn has_bracket(&self) -> bool {
        self.last_bracket().is_some()
    }

    /// Drops the last bracket: it opens no link.
    pub(super) fn drop_bracket(&mut self) {
        if let Some(index) = self.last_bracket() {
            self.0.remove(index);
        }
    }

    /// Closes the last bracket as that of a link, in which nothing else can stay open.
    pub(super) fn close_bracket(&mut self) {
        self.0.truncate(self.last_bracket().unwrap_or(0));
    }

    fn last_bracket(&self) -> Option<usize> {
        let is_bracket = |opener: &Opener| matches!(opener.kind, Kind::Bracket);
        self.0.iter().rposition(is_bracket)
    }

    /// Matches the `run` of delimiters that begins at `at`, between the characters around it.
    pub(super) fn take_run(&mut self, run: &str, at: usize, before: Option<char>, after: char) {
        let Some(delimiter) = run.chars().next() else {
            return;
        };
        let length = run.len();
        if delimiter == '~' && length != 2 {
            // One tilde mostly means "about": it would hold the rest of the paragraph.
            return;
        }
        let (opens, closes) = flanks(delimiter, before, after);
        let mut left = length;
        while closes && left > 0 {
            let Some(index) = self.counterpart(delimiter, length, opens) else {
                break;
            };
            left -= self.match_run(index, left);
        }
        if opens && left > 0 {
            self.0.push(Opener {
                at: at + length - left,
                kind: Kind::Emphasis {
                    delimiter,
                    open: left,
                    length,
                    closes,
                },
            });
        }
    }

    /// The opener that a closing run matches, not beyond an open bracket.
    fn counterpart(&self, closer: char, closer_length: usize, closer_opens: bool) -> Option<usize> {
        for (index, opener) in self.0.iter().enumerate().rev() {
            let Kind::Emphasis {
                delimiter,
                length,
                closes,
                ..
            } = opener.kind
            else {
                return None;
            };
            let is_odd = (closes || closer_opens)
                && (length + closer_length).is_multiple_of(3)
                && !length.is_multiple_of(3);
            if delimiter == closer && !is_odd {
                return Some(index);
            }
        }
        None
    }

    /// Closes what it can of the opener at `index` and drops those inside it; tells how many
    /// characters of the closing run that took.
    fn match_run(&mut self, index: usize, left: usize) -> usize {
        self.0.truncate(index + 1);
        let last = self.0.last_mut().map(|opener| &mut opener.kind);
        let Some(Kind::Emphasis { open, .. }) = last else {
            return left;
        };
        let taken = if *open >= 2 && left >= 2 { 2 } else { 1 };
        *open -= taken;
        if *open == 0 {
            self.0.pop();
        }
        taken
    }
}

/// Whether a run of delimiters between these characters can open and can close emphasis.
fn flanks(delimiter: char, before: Option<char>, after: char) -> (bool, bool) {
    let before_space = before.is_none_or(char::is_whitespace);
    let after_space = after.is_whitespace();
    let before_punctuation = before.is_some_and(is_punctuation);
    let after_punctuation = is_punctuation(after);
    let left = !after_space && (!after_punctuation || before_space || before_punctuation);
    let right = !before_space && (!before_punctuation || after_space || after_punctuation);
    if delimiter == '_' {
        (
            left && (!right || before_punctuation),
            right && (!left || after_punctuation),
        )
    } else {
        (left, right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_open_and_close_by_what_stands_around_them() {
        for (delimiter, before, after, opens, closes) in [
            ('*', None, 'a', true, false),
            ('*', Some('a'), ' ', false, true),
            ('*', Some('a'), 'b', true, true),
            ('*', Some(' '), ' ', false, false),
            ('_', Some('a'), 'b', false, false),
            ('_', Some('('), 'b', true, false),
            ('*', Some('」'), 'で', true, false),
        ] {
            let found = flanks(delimiter, before, after);
            assert_eq!(found, (opens, closes), "{before:?}{delimiter}{after}");
        }
    }

    #[test]
    fn runs_match_as_in_commonmark() {
        let mut openers = Openers::default();
        openers.take_run("***", 0, None, 'a');
        openers.take_run("**", 4, Some('a'), ' ');
        assert_eq!(openers.first(), Some(0));
        openers.take_run("*", 8, Some('b'), ' ');
        assert!(openers.is_empty());
        openers.take_run("*", 0, None, 'a');
        openers.push_bracket(3);
        openers.take_run("*", 5, Some('a'), ' ');
        assert_eq!(openers.first(), Some(0));
        openers.close_bracket();
        openers.take_run("*", 9, Some('a'), ' ');
        assert!(openers.is_empty());
    }
}
