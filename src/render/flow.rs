//! Rows: words that arrive in pieces, filled into the width at hand, never to be revised.
//!
//! A word that begins in the last columns of a row is held until it is known to fit, for it may have
//! to move to the next row; any other is written at once and broken at the margin if need be (SPEC
//! F8). The same text gives the same rows however it is cut into pieces. Nothing here knows Markdown.

use crate::render::prefix::Prefix;
use crate::render::text::{
    Gauge, Span, append, clusters, fitting_parts, is_widened_by_presentation, packing_columns,
};
use crate::render::theme::{Page, Style};

/// In how many of a row's last columns a word is held until it ends.
const MARGIN: usize = 20;
/// The distance of tab stops in code.
const TAB: usize = 4;

/// What becomes of the word that is arriving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Word {
    #[default]
    None,
    /// It is written as it comes.
    Written,
    /// It is held until it ends or has to move.
    Held,
}

/// The rows of one block after the other.
#[derive(Debug, Default)]
pub(super) struct Flow {
    width: usize,
    first: Option<Prefix>,
    rest: Prefix,
    /// Whether an address may be broken by us: where each row needs its prefix.
    breaks_addresses: bool,
    /// Whether the row has its prefix.
    open: bool,
    /// Whether it has nothing else.
    fresh: bool,
    column: usize,
    /// Row breaks before the next word.
    breaks: usize,
    /// Spaces before the next word, if it comes to stand on the same row.
    spaces: usize,
    space_style: Style,
    word: Word,
    held: Vec<Span<Style>>,
    held_columns: usize,
    gauge: Gauge,
    address: Address,
    /// A cluster near the margin that may still grow.
    edge: String,
    edge_style: Style,
    code_column: usize,
    last_columns: usize,
}

impl Flow {
    /// Begins a block of `width` columns whose rows come after `rest`, the first one after `first`
    /// where that differs; `quoted` where no row may be without it.
    pub(super) fn begin(
        &mut self,
        first: Option<Prefix>,
        rest: Prefix,
        width: usize,
        quoted: bool,
    ) {
        self.width = width;
        self.first = first;
        self.rest = rest;
        self.breaks_addresses = quoted;
    }

    /// The columns a row has for text.
    pub(super) fn room(&self) -> usize {
        let prefix = self.rest.columns();
        let first = self.first.as_ref().map_or(0, Prefix::columns);
        self.width.saturating_sub(prefix.max(first)).max(1)
    }

    /// The columns of text on the last row that ended.
    pub(super) fn last_columns(&self) -> usize {
        self.last_columns
    }

    /// Adds text without newlines.
    pub(super) fn push(&mut self, text: &str, style: Style, page: &mut Page) {
        let mut rest = text;
        while let Some(first) = rest.bytes().next() {
            let is_gap = is_gap(first);
            let end = rest.bytes().position(|byte| is_gap != self::is_gap(byte));
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            if is_gap {
                self.end_word(page);
                self.spaces += piece.len();
                self.space_style = style;
            } else {
                self.add_to_word(piece, style, page);
            }
            rest = after;
        }
    }

    /// Takes in that the source line ends: a space, or a break where it ended in two spaces.
    pub(super) fn end_source_line(&mut self, page: &mut Page) {
        self.end_word(page);
        if self.spaces >= 2 {
            self.break_row(page);
        }
        self.spaces = 1;
    }

    /// Breaks the row before the next word.
    pub(super) fn break_row(&mut self, page: &mut Page) {
        self.end_word(page);
        self.breaks += 1;
        self.spaces = 0;
    }

    /// Says that the next `columns` columns belong together: near the margin they move as a whole.
    pub(super) fn keep_together(&mut self, columns: usize, page: &mut Page) {
        let before = self.held_columns;
        let start = self.column + self.spaces;
        if self.fresh || !self.open || self.breaks > 0 || self.word == Word::Written {
            return;
        }
        let is_near_margin = start + MARGIN >= self.width;
        let fits_here = start + before + columns <= self.width;
        let fits_below = self.rest.columns() + before + columns <= self.width;
        if !is_near_margin || fits_here || !fits_below {
            return;
        }
        if self.word == Word::Held {
            self.move_word(page);
        } else {
            self.breaks = 1;
        }
    }

    /// Adds code: spaces count, tabs are expanded, and only where each row needs its prefix is it
    /// broken at the margin.
    pub(super) fn code(&mut self, text: &str, style: Style, page: &mut Page) {
        for (index, part) in text.split('\t').enumerate() {
            if index > 0 {
                let spaces = TAB - self.code_column % TAB;
                self.code_part("    ".get(..spaces).unwrap_or_default(), style, page);
            }
            self.code_part(part, style, page);
        }
    }

    fn code_part(&mut self, text: &str, style: Style, page: &mut Page) {
        if text.is_empty() {
            return;
        }
        if !self.open {
            self.open_row(page);
        }
        if !self.breaks_addresses {
            self.code_column += packing_columns(text);
            page.put(text, style);
            return;
        }
        for c in text.chars() {
            let columns = self.gauge.advance(c);
            self.code_column += columns;
            self.place(c.encode_utf8(&mut [0; 4]), columns, style, page);
        }
    }

    /// Ends the row, or writes an empty one.
    pub(super) fn end_row(&mut self, page: &mut Page) {
        if self.open {
            self.last_columns = self.column.saturating_sub(self.rest.columns());
        } else {
            self.take_prefix().put_trimmed(page);
            self.last_columns = 0;
        }
        page.put("\n", Style::default());
        self.open = false;
        self.column = 0;
        self.spaces = 0;
        self.code_column = 0;
    }

    /// Writes a row that is laid out already.
    pub(super) fn row(&mut self, spans: &[Span<Style>], page: &mut Page) {
        if !spans.is_empty() {
            self.open_row(page);
        }
        for span in spans {
            page.put(&span.text, span.style);
        }
        self.end_row(page);
    }

    /// Writes `columns` spaces at the start of a row, if there is room for them.
    pub(super) fn indent(&mut self, columns: usize, page: &mut Page) {
        self.start_row(page);
        if self.fresh && self.column + columns < self.width {
            page.put(&" ".repeat(columns), Style::default());
            self.column += columns;
            self.fresh = columns == 0;
        }
    }

    /// Ends the block: what was held comes out, and the row ends. The first prefix is shown, even if
    /// there was no row.
    pub(super) fn finish(&mut self, page: &mut Page) {
        self.end_word(page);
        if self.open || self.first.is_some() {
            self.end_row(page);
        }
        self.breaks = 0;
        self.spaces = 0;
    }

    fn add_to_word(&mut self, text: &str, style: Style, page: &mut Page) {
        if self.word == Word::None {
            self.begin_word(page);
        }
        if self.word == Word::Written {
            self.write(text, style, page);
            return;
        }
        append(&mut self.held, text, style);
        self.held_columns += text.chars().map(|c| self.gauge.advance(c)).sum::<usize>();
        if self.column + self.spaces + self.held_columns > self.width {
            self.move_word(page);
        }
    }

    fn begin_word(&mut self, page: &mut Page) {
        self.start_row(page);
        let start = self.column + self.spaces;
        self.address = Address::default();
        self.gauge = Gauge::default();
        self.word = Word::Written;
        if self.fresh {
            self.spaces = 0;
        } else if start >= self.width {
            self.next_row(page);
        } else if start + MARGIN >= self.width {
            self.word = Word::Held;
        } else {
            self.put_spaces(page);
        }
    }

    /// Moves the held word to the next row, where it is written as it comes.
    fn move_word(&mut self, page: &mut Page) {
        self.next_row(page);
        self.word = Word::Written;
        self.held_columns = 0;
        self.gauge = Gauge::default();
        for span in std::mem::take(&mut self.held) {
            self.write(&span.text, span.style, page);
        }
    }

    fn end_word(&mut self, page: &mut Page) {
        self.place_edge(page);
        if self.word == Word::Held {
            self.put_spaces(page);
            for span in self.held.drain(..) {
                page.put(&span.text, span.style);
            }
            self.column += self.held_columns;
            self.held_columns = 0;
        }
        self.word = Word::None;
    }

    fn write(&mut self, text: &str, style: Style, page: &mut Page) {
        if self.edge.is_empty() && text.is_ascii() && self.column + text.len() < self.width {
            self.address.scan(text);
            self.column += text.len();
            self.fresh = false;
            if let Some(last) = text.chars().next_back() {
                self.gauge.advance(last);
            }
            page.put(text, style);
            return;
        }
        for c in text.chars() {
            self.write_char(c, style, page);
        }
    }

    fn write_char(&mut self, c: char, style: Style, page: &mut Page) {
        if !self.edge.is_empty() {
            self.edge.push(c);
            if clusters(&self.edge).nth(1).is_none() {
                return;
            }
            self.edge.pop();
            self.place_edge(page);
        }
        self.address.step(c);
        if self.may_grow(c) {
            self.edge.push(c);
            self.edge_style = style;
        } else {
            let columns = self.gauge.advance(c);
            self.place(c.encode_utf8(&mut [0; 4]), columns, style, page);
        }
    }

    /// Whether what comes next can change on which row the cluster that begins with `c` belongs.
    fn may_grow(&self, c: char) -> bool {
        if c.is_ascii() {
            self.column + 1 == self.width && is_widened_by_presentation(c)
        } else {
            self.column + MARGIN >= self.width
                && (!c.is_alphabetic() || is_widened_by_presentation(c))
                && packing_columns(c.encode_utf8(&mut [0; 4])) > 0
        }
    }

    fn place_edge(&mut self, page: &mut Page) {
        if self.edge.is_empty() {
            return;
        }
        let edge = std::mem::take(&mut self.edge);
        for part in fitting_parts(&edge, self.width.saturating_sub(self.rest.columns())) {
            self.gauge = Gauge::default();
            let columns = part.chars().map(|c| self.gauge.advance(c)).sum();
            self.place(part, columns, self.edge_style, page);
        }
        self.edge = edge;
        self.edge.clear();
    }

    /// Writes one cluster, on the next row if it does not fit on this one.
    fn place(&mut self, cluster: &str, columns: usize, style: Style, page: &mut Page) {
        if columns > 0 && !self.fresh && self.column + columns > self.width {
            if self.address.found && !self.breaks_addresses {
                // The terminal goes on with it on the next row, so that it can be copied.
                self.column = 0;
            } else {
                self.next_row(page);
            }
        }
        page.put(cluster, style);
        self.column += columns;
        self.fresh = false;
    }

    fn put_spaces(&mut self, page: &mut Page) {
        let mut spaces = std::mem::take(&mut self.spaces);
        self.column += spaces;
        while spaces > 0 {
            let piece = "                "
                .get(..spaces)
                .unwrap_or("                ");
            page.put(piece, self.space_style);
            spaces -= piece.len();
        }
    }

    /// Makes sure that there is a row for the next word, after the breaks that are due.
    fn start_row(&mut self, page: &mut Page) {
        for _ in 0..std::mem::take(&mut self.breaks) {
            self.end_row(page);
        }
        if !self.open {
            self.open_row(page);
        }
    }

    fn next_row(&mut self, page: &mut Page) {
        self.end_row(page);
        self.open_row(page);
    }

    fn open_row(&mut self, page: &mut Page) {
        let prefix = self.take_prefix();
        prefix.put(page);
        self.column = prefix.columns();
        self.open = true;
        self.fresh = true;
        self.spaces = 0;
    }

    fn take_prefix(&mut self) -> Prefix {
        self.first.take().unwrap_or_else(|| self.rest.clone())
    }
}

fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether the word so far holds the `://` of an address.
#[derive(Debug, Clone, Copy, Default)]
struct Address {
    found: bool,
    progress: u8,
}

impl Address {
    fn scan(&mut self, text: &str) {
        if self.progress > 0 || text.contains(':') {
            text.chars().for_each(|c| self.step(c));
        }
    }

    fn step(&mut self, c: char) {
        self.progress = match (self.progress, c) {
            (_, ':') => 1,
            (1, '/') => 2,
            (2, '/') => {
                self.found = true;
                0
            }
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::render::text::char_columns;

    fn flowed(pieces: &[&str], width: usize, quoted: bool) -> String {
        let mut page = Page::new(false);
        let mut flow = Flow::default();
        let mut bar = Prefix::default();
        if quoted {
            bar.push("│ ", Style::default());
        }
        flow.begin(None, bar, width, quoted);
        for piece in pieces {
            flow.push(piece, Style::default(), &mut page);
        }
        flow.finish(&mut page);
        String::from_utf8(page.as_bytes().to_vec()).expect("text")
    }

    /// What is on the page before the block ends.
    fn so_far(pieces: &[&str], width: usize) -> String {
        let mut page = Page::new(false);
        let mut flow = Flow::default();
        flow.begin(None, Prefix::default(), width, false);
        for piece in pieces {
            flow.push(piece, Style::default(), &mut page);
        }
        String::from_utf8(page.as_bytes().to_vec()).expect("text")
    }

    #[test]
    fn f8_words_are_written_at_once_but_near_the_margin() {
        assert_eq!(so_far(&["one t"], 40), "one t");
        assert_eq!(
            so_far(&["12345678901234567890 t"], 40),
            "12345678901234567890"
        );
        assert_eq!(
            so_far(&["12345678901234567890 t", "wo "], 40),
            "12345678901234567890 two"
        );
        let long = "x".repeat(50);
        assert_eq!(
            so_far(&["abc ", &long], 40),
            format!("abc {}\n{}", "x".repeat(36), "x".repeat(14))
        );
    }

    #[test]
    fn a_held_word_moves_to_the_next_row_as_a_whole() {
        let text = "1234567890123456789012345 twelve345678901 x";
        assert_eq!(
            flowed(&[text], 40, false),
            "1234567890123456789012345 \ntwelve345678901 x\n".replace(" \n", "\n")
        );
    }

    #[test]
    fn f8_an_address_gets_no_newline_but_in_a_quote() {
        let address = format!("https://example.com/{}", "a".repeat(40));
        assert_eq!(
            flowed(&["see ", &address, " there"], 20, false),
            format!("see\n{address}\nthere\n")
        );
        let quoted = flowed(&[&address], 20, true);
        assert!(
            quoted
                .lines()
                .all(|row| row.starts_with("│ ") && packing_columns(row) <= 20)
        );
    }

    #[test]
    fn a_cluster_at_the_margin_is_not_split() {
        let family = "👨\u{200D}👩\u{200D}👧";
        let text = format!("{}{family}{family}", "x".repeat(20));
        for row in flowed(&[&text], 28, false).lines() {
            assert!(
                !row.ends_with('\u{200D}') && packing_columns(row) <= 28,
                "{row}"
            );
        }
        assert_eq!(
            flowed(&["abcd1\u{FE0F}\u{20E3}"], 5, false),
            "abcd\n1\u{FE0F}\u{20E3}\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_do_not_matter_and_no_row_is_too_wide(
            text in "([a-z0-9:/]{1,30}| {1,3}|[日本👍🏽❤\u{FE0F}\u{200D}\u{301}1#]{1,8}){0,20}",
            cuts in proptest::collection::vec(0usize..200, 0..8),
            width in 1usize..50,
            quoted: bool,
        ) {
            let width = if quoted { width + 4 } else { width };
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            for cut in cuts {
                let end = rest.char_indices().nth(cut % 20).map_or(rest.len(), |(at, _)| at);
                let (piece, after) = rest.split_at(end);
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            let whole = flowed(&[&text], width, quoted);
            prop_assert_eq!(&flowed(&pieces, width, quoted), &whole);
            let keep = |text: &str| text.replace([' ', '\n', '│'], "");
            prop_assert_eq!(keep(&whole), keep(&text));
            // An address may be wider than its row: it gets no newline.
            let rows = whole.lines().filter(|_| !text.contains("://"));
            for row in rows {
                let wide = row.chars().filter(|c| char_columns(*c) > 0).count();
                prop_assert!(packing_columns(row) <= width || wide == 1, "{row:?}");
            }
        }
    }
}
