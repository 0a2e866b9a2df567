//! Where a text stands on the screen: rows packed by our own column arithmetic.
//!
//! Pure. One walk over the clusters serves the rows, the cursor and what is drawn, so that they can't
//! disagree. After a change only the rows from there on are laid out again.

use std::ops::Range;

use crate::render::text::{char_columns, clusters, columns, packing_columns};

/// What a tab looks like. A raw tab would stop at the margin and upset the count of columns.
const TAB: &str = "    ";

/// A row as it is drawn, and the columns it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Printable text only.
    pub(super) text: String,
    /// The columns that the terminal makes of it.
    pub(super) columns: usize,
    /// Whether it is a remark of ours, below the prompt.
    pub(super) remark: bool,
    /// Whether the terminal itself goes on in it from the row above: so a question stays one line to
    /// whoever copies or reads it.
    pub(super) wrapped: bool,
}

/// One row of the screen: a piece of the prompt sign, then a piece of the text.
#[derive(Debug, Default)]
struct Row {
    sign: String,
    text: Range<usize>,
}

/// The rows of a prompt sign and a text at some width.
#[derive(Debug, Default)]
pub(super) struct Layout {
    width: usize,
    rows: Vec<Row>,
    /// The row in which the prompt sign ends and the text begins.
    first: usize,
}

impl Layout {
    /// Lays out a prompt sign with no text behind it, `width` (at least 1) columns wide.
    pub(super) fn new(sign: &str, width: usize) -> Self {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut start = 0;
        while let Some((end, next)) = row_end(sign, start, 0, width) {
            rows.push(sign.get(start..end).unwrap_or_default());
            start = next;
        }
        rows.push(sign.get(start..).unwrap_or_default());
        let first = rows.len() - 1;
        let rows = rows
            .into_iter()
            .map(|sign| Row {
                sign: sign.to_owned(),
                text: 0..0,
            })
            .collect();
        Self { width, rows, first }
    }

    /// Takes in that `text` is another from byte `changed` on.
    pub(super) fn update(&mut self, text: &str, changed: usize) {
        // What changed may have joined the cluster before it, or let it go up into the row above.
        let changed_row = self.row_of(changed.saturating_sub(1));
        let kept = changed_row.saturating_sub(1).max(self.first);
        self.rows.truncate(kept + 1);
        let Some(row) = self.rows.last_mut() else {
            return;
        };
        let mut start = row.text.start;
        let mut used = pieces(&row.sign, self.width)
            .map(|piece| packing_columns(glyph(piece, self.width)))
            .sum();
        while let Some((end, next)) = row_end(text, start, used, self.width) {
            self.close_row(start..end);
            self.rows.push(Row::default());
            start = next;
            used = 0;
        }
        self.close_row(start..text.len());
        let full = self.line(self.rows.len() - 1, text).columns >= self.width;
        if full {
            // The cursor needs a place behind a text that ends at the margin.
            self.rows.push(Row {
                sign: String::new(),
                text: text.len()..text.len(),
            });
        }
    }

    /// How many rows there are, at least one.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row and column of the byte `at`. A line that ends at the margin keeps it in its last column.
    pub(super) fn position(&self, text: &str, at: usize) -> (usize, usize) {
        let index = self.row_of(at);
        let Some(row) = self.rows.get(index) else {
            return (0, 0);
        };
        let before = text.get(row.text.start..at).unwrap_or_default();
        let column = self.drawn(&row.sign).columns + self.drawn(before).columns;
        (index, column.min(self.width - 1))
    }

    /// What is drawn in the row `index`.
    pub(super) fn line(&self, index: usize, text: &str) -> Line {
        let Some(row) = self.rows.get(index) else {
            return Line::default();
        };
        let mut line = self.drawn(&row.sign);
        let rest = self.drawn(text.get(row.text.clone()).unwrap_or_default());
        line.text.push_str(&rest.text);
        line.columns += rest.columns;
        line.wrapped = self.is_wrapped(index);
        line
    }

    /// Only within a prompt sign, which is never edited, and where all terminals count alike.
    fn is_wrapped(&self, index: usize) -> bool {
        let above = index.checked_sub(1).and_then(|above| self.rows.get(above));
        index <= self.first
            && above.is_some_and(|row| row.sign.is_ascii() && row.sign.len() == self.width)
    }

    fn close_row(&mut self, text: Range<usize>) {
        if let Some(row) = self.rows.last_mut() {
            row.text = text;
        }
    }

    /// The last row that begins at or before the byte `at`.
    fn row_of(&self, at: usize) -> usize {
        let after = self.rows.partition_point(|row| row.text.start <= at);
        after.saturating_sub(1)
    }

    fn drawn(&self, text: &str) -> Line {
        let mut line = Line::default();
        for piece in pieces(text, self.width) {
            let glyph = glyph(piece, self.width);
            line.columns += columns(glyph);
            line.text.push_str(glyph);
        }
        line
    }
}

/// Where the row that begins at `start` ends and where the next one begins, if there is a next one.
fn row_end(text: &str, start: usize, used: usize, width: usize) -> Option<(usize, usize)> {
    let mut at = start;
    let mut used = used;
    for piece in pieces(text.get(start..).unwrap_or_default(), width) {
        let next = at + piece.len();
        if piece == "\n" {
            return Some((at, next));
        }
        let needed = packing_columns(glyph(piece, width));
        if used > 0 && used + needed > width {
            return Some((at, at));
        }
        used += needed;
        at = next;
    }
    None
}

/// What a piece of the text looks like. What takes no column is only drawn behind something that
/// does: it would stick to whatever stands before it on the screen, or steer the terminal.
fn glyph(piece: &str, width: usize) -> &str {
    match piece {
        "\t" => TAB.get(..width).unwrap_or(TAB),
        _ => piece.trim_start_matches(|c| char_columns(c) == 0),
    }
}

/// What a text is drawn from: its clusters, and one that is wider than a row by its characters. In
/// plain ASCII, which most texts are, no borders need to be looked for.
fn pieces(text: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = match rest.as_bytes() {
            [] => return None,
            [first] | [first, b'\0'..=b'\x7f', ..] if first.is_ascii() => 1,
            _ => {
                let cluster = clusters(rest).next().unwrap_or(rest);
                if packing_columns(cluster) > width {
                    first_character(cluster)
                } else {
                    cluster.len()
                }
            }
        };
        let (piece, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(piece)
    })
}

/// The length of the first character with the marks on it, in bytes.
fn first_character(cluster: &str) -> usize {
    let mut characters = cluster.char_indices().skip(1);
    characters
        .find(|(_, c)| char_columns(*c) > 0)
        .map_or(cluster.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sign: &str, text: &str, width: usize) -> Vec<String> {
        let mut layout = Layout::new(sign, width);
        layout.update(text, 0);
        (0..layout.len())
            .map(|row| layout.line(row, text).text)
            .collect()
    }

    fn position(text: &str, width: usize, at: usize) -> (usize, usize) {
        let mut layout = Layout::new("> ", width);
        layout.update(text, 0);
        layout.position(text, at)
    }

    #[test]
    fn f3_wide_glyphs_wrap_whole() {
        let text = "日本語日本語日本語日本";
        assert_eq!(rows("", text, 11), ["日本語日本", "語日本語日", "本"]);
        let mut layout = Layout::new("", 11);
        layout.update(text, 0);
        assert_eq!(layout.position(text, text.len()), (2, 2));
    }

    #[test]
    fn f3_a_text_that_ends_at_the_margin_gives_the_cursor_a_row() {
        assert_eq!(rows("> ", "abcdefgh", 10), ["> abcdefgh", ""]);
        assert_eq!(position("abcdefgh", 10, 8), (1, 0));
        assert_eq!(position("abcdefghi", 10, 9), (1, 1));
        assert_eq!(position("abcdefghi", 10, 8), (1, 0));
    }

    #[test]
    fn f3_a_full_row_before_a_line_break_keeps_the_cursor_in_its_last_column() {
        assert_eq!(rows("> ", "abcdefgh\nx", 10), ["> abcdefgh", "x"]);
        assert_eq!(position("abcdefgh\nx", 10, 8), (0, 9));
        assert_eq!(position("abcdefgh\nx", 10, 9), (1, 0));
    }

    #[test]
    fn f3_a_prompt_wider_than_the_screen_wraps() {
        assert_eq!(
            rows("a long prompt> ", "x", 5),
            ["a lon", "g pro", "mpt> ", "x"]
        );
        assert_eq!(rows("ab", "", 5), ["ab"]);
    }

    #[test]
    fn f3_a_wide_glyph_gets_a_row_of_its_own_at_width_one() {
        assert_eq!(rows("", "日本", 1), ["日", "本", ""]);
        assert_eq!(rows("> ", "a", 0), [">", " ", "a", ""]);
    }

    #[test]
    fn what_takes_no_column_is_not_drawn_and_a_tab_is_spaces() {
        assert_eq!(rows("> ", "\u{301}a\u{202e}b\n\u{301}c", 10), ["> ab", "c"]);
        assert_eq!(rows("", "a\tb", 10), ["a    b"]);
        assert_eq!(rows("", "a\tb", 3), ["a", "   ", "b"]);
    }

    #[test]
    fn f3_a_row_is_packed_by_the_larger_of_two_counts() {
        // One column by characters, two by clusters.
        assert_eq!(
            rows("", "abc\u{2764}\u{FE0F}d", 4),
            ["abc", "\u{2764}\u{FE0F}d"]
        );
    }
}
