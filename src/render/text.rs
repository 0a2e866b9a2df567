//! Column arithmetic: grapheme clusters, widths and wrapping.
//!
//! The only place that knows how wide text is on a terminal. It knows nothing of colours, Markdown
//! or the editor: wrapping carries whatever style the caller attaches and adds nothing to the text.
//!
//! Terminals disagree about emoji. Most add up the widths of the characters; a few draw a cluster
//! as one glyph. [`columns`] follows the terminal at hand (see [`set_joining`]); [`packing_columns`]
//! is the larger of both, so that a row packed by it fits either way (SPEC F3).

use std::sync::atomic::{AtomicBool, Ordering};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// U+FE0F, which asks for the emoji form of the character before it.
const EMOJI_PRESENTATION: char = '\u{FE0F}';

static JOINING: AtomicBool = AtomicBool::new(false);

/// Says whether the terminal draws a cluster of several characters as one glyph. Set once at the start.
pub fn set_joining(joining: bool) {
    JOINING.store(joining, Ordering::Relaxed);
}

/// Whether a terminal with these values of `TERM_PROGRAM` and `TERM` is known to join clusters.
pub fn joins(term_program: Option<&str>, term: Option<&str>) -> bool {
    let program = term_program.unwrap_or_default();
    let term = term.unwrap_or_default();
    matches!(
        program,
        "Apple_Terminal" | "iTerm.app" | "WezTerm" | "ghostty"
    ) || (program.is_empty() && matches!(term, "xterm-kitty" | "xterm-ghostty" | "wezterm"))
}

/// The grapheme clusters of `text`: what the cursor moves over and what a row is never broken within.
pub fn clusters(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.graphemes(true)
}

/// The columns that `text` takes on the terminal at hand. Control characters take none.
pub fn columns(text: &str) -> usize {
    if let Some(columns) = ascii_columns(text) {
        columns
    } else if JOINING.load(Ordering::Relaxed) {
        joined_columns(text)
    } else {
        summed_columns(text)
    }
}

/// The columns that `text` takes at most, whichever way the terminal counts.
pub fn packing_columns(text: &str) -> usize {
    ascii_columns(text).unwrap_or_else(|| {
        let mut gauge = Gauge::default();
        text.chars().map(|c| gauge.advance(c)).sum()
    })
}

/// The columns of one character by itself. Control characters take none.
pub fn char_columns(c: char) -> usize {
    if c.is_ascii() {
        usize::from(!c.is_ascii_control())
    } else {
        c.width().unwrap_or(0)
    }
}

/// Counts the same as [`packing_columns`], character by character, for text that comes in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gauge {
    last: Option<char>,
}

impl Gauge {
    /// The columns that `c` adds to the text before it.
    pub fn advance(&mut self, c: char) -> usize {
        let last = self.last.replace(c);
        if c == EMOJI_PRESENTATION {
            usize::from(last.is_some_and(is_widened_by_presentation))
        } else {
            char_columns(c)
        }
    }
}

/// A cluster in the pieces that rows of `width` columns can hold: as one if it fits, else by
/// characters.
pub(super) fn fitting_parts(cluster: &str, width: usize) -> Vec<&str> {
    if packing_columns(cluster) <= width {
        return vec![cluster];
    }
    let starts = cluster.char_indices().filter(|(_, c)| char_columns(*c) > 0);
    let mut parts = Vec::new();
    let mut rest = cluster;
    for at in starts.map(|(at, _)| at).rev().filter(|at| *at > 0) {
        let (head, part) = rest.split_at(at);
        parts.push(part);
        rest = head;
    }
    parts.push(rest);
    parts.reverse();
    parts
}

/// Whether `c` may take one more column when U+FE0F comes after it.
pub fn is_widened_by_presentation(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, '0'..='9' | '#' | '*');
    }
    if char_columns(c) != 1 {
        return false;
    }
    let mut buffer = [0; 8];
    let base = c.encode_utf8(&mut buffer).len();
    let end = base + EMOJI_PRESENTATION.encode_utf8(&mut buffer[base..]).len();
    std::str::from_utf8(&buffer[..end]).is_ok_and(|pair| pair.width() > 1)
}

fn ascii_columns(text: &str) -> Option<usize> {
    text.is_ascii()
        .then(|| text.bytes().filter(|byte| !byte.is_ascii_control()).count())
}

fn summed_columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// The sum over clusters, each measured as a string: a terminal that joins, joins within clusters.
fn joined_columns(text: &str) -> usize {
    clusters(text)
        .map(|cluster| {
            if cluster.chars().all(char::is_control) {
                0
            } else {
                cluster.width()
            }
        })
        .sum()
}

/// A piece of text with the style it is to be shown in, whatever the caller takes for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<S> {
    /// The text: no control characters but newlines, which end a row.
    pub text: String,
    /// The style.
    pub style: S,
}

/// One row of wrapped text.
pub type Row<S> = Vec<Span<S>>;

/// Wraps `spans` at words into rows of at most `width` columns, at least one row.
///
/// Spaces at a break vanish; a word wider than a row is broken between clusters, a cluster wider than
/// a row between characters, and a character wider than a row gets a row of its own, so that nothing
/// but those spaces is lost and it always ends.
pub fn wrap<S: Copy + PartialEq>(spans: &[Span<S>], width: usize) -> Vec<Row<S>> {
    let mut wrapper = Wrapper {
        width: width.max(1),
        rows: vec![Vec::new()],
        column: 0,
        word: Vec::new(),
        word_columns: 0,
        spaces: Vec::new(),
    };
    for span in spans {
        for cluster in clusters(&span.text) {
            wrapper.push(cluster, span.style);
        }
    }
    wrapper.end_word();
    wrapper.rows
}

struct Wrapper<S> {
    width: usize,
    rows: Vec<Row<S>>,
    column: usize,
    word: Vec<Span<S>>,
    word_columns: usize,
    /// Spaces after the last word, not yet known to stay.
    spaces: Vec<Span<S>>,
}

impl<S: Copy + PartialEq> Wrapper<S> {
    fn push(&mut self, cluster: &str, style: S) {
        match cluster {
            "\n" | "\r\n" => {
                self.end_word();
                self.break_row();
            }
            " " => {
                self.end_word();
                append(&mut self.spaces, cluster, style);
            }
            _ => {
                append(&mut self.word, cluster, style);
                self.word_columns += packing_columns(cluster);
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let spaces: usize = self.spaces.iter().map(|span| span.text.len()).sum();
        if self.column > 0 && self.column + spaces + self.word_columns > self.width {
            self.break_row();
        }
        for span in std::mem::take(&mut self.spaces) {
            for space in clusters(&span.text) {
                self.place(space, span.style);
            }
        }
        for span in std::mem::take(&mut self.word) {
            for cluster in clusters(&span.text) {
                self.place(cluster, span.style);
            }
        }
        self.word_columns = 0;
    }

    fn place(&mut self, cluster: &str, style: S) {
        for part in fitting_parts(cluster, self.width) {
            let columns = packing_columns(part);
            if self.column > 0 && self.column + columns > self.width {
                self.break_row();
            }
            if let Some(row) = self.rows.last_mut() {
                append(row, part, style);
            }
            self.column += columns;
        }
    }

    fn break_row(&mut self) {
        self.spaces.clear();
        self.rows.push(Vec::new());
        self.column = 0;
    }
}

/// Appends `text` to the last span where the style is the same.
pub(super) fn append<S: Copy + PartialEq>(spans: &mut Vec<Span<S>>, text: &str, style: S) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => spans.push(Span {
            text: text.to_owned(),
            style,
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAMILY: &str = "👨\u{200D}👩\u{200D}👧\u{200D}👦";

    fn rows(text: &str, width: usize) -> Vec<String> {
        let span = Span {
            text: text.to_owned(),
            style: (),
        };
        wrap(&[span], width)
            .into_iter()
            .map(|row| row.into_iter().map(|span| span.text).collect())
            .collect()
    }

    #[test]
    fn f3_columns_add_up_the_characters_or_measure_clusters() {
        for (text, summed, joined) in [
            (FAMILY, 8, 2),
            ("\u{2764}\u{FE0F}", 1, 2),
            ("1\u{FE0F}\u{20E3}", 1, 2),
            ("👍🏽", 4, 2),
            ("🇯🇵", 2, 2),
            ("e\u{301}", 1, 1),
            ("日本語", 6, 6),
            ("abc", 3, 3),
        ] {
            assert_eq!(summed_columns(text), summed, "{text}");
            assert_eq!(joined_columns(text), joined, "{text}");
            assert_eq!(packing_columns(text), summed.max(joined), "{text}");
        }
    }

    #[test]
    fn f3_terminals_that_join_are_known_by_name() {
        assert!(joins(Some("WezTerm"), Some("xterm-256color")));
        assert!(joins(None, Some("xterm-kitty")));
        assert!(!joins(Some("tmux"), Some("tmux-256color")));
        assert!(!joins(Some("tmux"), Some("xterm-kitty")));
        assert!(!joins(None, None));
    }

    #[test]
    fn control_characters_take_no_column() {
        assert_eq!(columns("a\x1b\n\tb"), 2);
        assert_eq!(columns("日\x1b\n"), 2);
        assert_eq!(packing_columns("日\x1b\u{85}"), 2);
    }

    #[test]
    fn words_wrap_at_spaces_and_break_where_they_do_not_fit() {
        assert_eq!(rows("one two three", 7), ["one two", "three"]);
        assert_eq!(rows("one  two", 4), ["one", "two"]);
        assert_eq!(rows("a abcdefgh", 4), ["a", "abcd", "efgh"]);
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("a\n\nb ", 4), ["a", "", "b"]);
    }

    #[test]
    fn a_wide_cluster_gets_a_row_of_its_own_at_width_one() {
        assert_eq!(rows("日本", 1), ["日", "本"]);
        assert_eq!(rows("日本", 0), ["日", "本"]);
        assert_eq!(rows("日本語", 5), ["日本", "語"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn f3_packing_is_never_less_than_either_count(text in "[a-z0-9#* é日本語👨👩❤☎☺🏽\u{200D}\u{FE0E}\u{FE0F}\u{20E3}\u{301}🇯🇵ลาลُلا]{0,20}|\\PC{0,20}") {
            let packed = packing_columns(&text);
            prop_assert!(packed >= summed_columns(&text));
            prop_assert!(packed >= joined_columns(&text));
            prop_assert!(packed >= UnicodeWidthStr::width(text.as_str()));
        }

        #[test]
        fn no_row_is_wider_and_nothing_but_spaces_is_lost(text in "[a-z 日👍🏽\u{301}\n]{0,60}", width in 1usize..30) {
            let rows = rows(&text, width);
            for row in &rows {
                let wide = row.chars().filter(|c| char_columns(*c) > 0).count();
                prop_assert!(packing_columns(row) <= width || wide == 1, "{row:?}");
            }
            let keep = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(keep(&rows.concat()), keep(&text));
        }
    }
}
