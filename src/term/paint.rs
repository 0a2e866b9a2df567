//! From what is to be seen to the bytes that make it so.
//!
//! Pure. Knows what the prompt's rows on the screen show and writes only what differs, in one piece,
//! with relative movements only: nothing is asked of the terminal and no row above the prompt is
//! touched. A prompt that is taller than the screen is seen through a window of rows.

use std::fmt::Write;

use crate::render::text::{clusters, columns};

use super::layout::{Layout, Line};

/// What is to be seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// The prompt sign.
    pub(super) sign: &'a str,
    /// The text behind it.
    pub(super) text: &'a str,
    /// The first byte of the text that changed since the last view.
    pub(super) changed: Option<usize>,
    /// Where the cursor is in the text, in bytes.
    pub(super) cursor: usize,
    /// Remarks below, one a row.
    pub(super) below: &'a [String],
}

/// The prompt's rows on the screen.
#[derive(Debug)]
pub(super) struct Painter {
    columns: usize,
    rows: usize,
    /// Whether remarks are dimmed.
    color: bool,
    sign: String,
    layout: Option<Layout>,
    /// What the rows on the screen show, the prompt's first one first.
    shown: Vec<Line>,
    /// Which row of the layout the first row on the screen is.
    top: usize,
    /// Where the terminal's cursor is among `shown`. A column behind the last one stands for a full
    /// row whose wrap is pending.
    cursor: (usize, usize),
}

impl Painter {
    /// A painter for a screen of this size, at the beginning of an empty row.
    pub(super) fn new((columns, rows): (usize, usize), color: bool) -> Self {
        Self {
            columns: columns.max(1),
            rows: rows.max(1),
            color,
            sign: String::new(),
            layout: None,
            shown: Vec::new(),
            top: 0,
            cursor: (0, 0),
        }
    }

    /// How many rows of the prompt are below the terminal's cursor.
    pub(super) fn rows_below(&self) -> usize {
        self.shown.len().saturating_sub(self.cursor.0 + 1)
    }

    /// Makes the screen show `view`.
    pub(super) fn refresh(&mut self, view: &View<'_>, out: &mut String) {
        let cursor = self.lay_out(view);
        let below = view.below.len().min(self.rows - 1);
        let total = self.layout.as_ref().map_or(1, Layout::len);
        let height = total.min(self.rows - below);
        let top = self.top.min(total - height).min(cursor.0);
        let top = top.max((cursor.0 + 1).saturating_sub(height));
        self.scroll_to(top, out);
        let mut lines: Vec<Line> = (top..top + height)
            .filter_map(|row| Some(self.layout.as_ref()?.line(row, view.text)))
            .collect();
        lines.extend(view.below.iter().take(below).map(|text| self.remark(text)));
        for (row, line) in lines.iter().enumerate() {
            self.draw(row, line, out);
        }
        if lines.len() < self.shown.len() {
            self.go_to((lines.len(), 0), out);
            out.push_str("\x1b[J");
        }
        self.shown = lines;
        self.go_to((cursor.0 - top, cursor.1), out);
    }

    /// Leaves the prompt behind: to the beginning of the row below it.
    pub(super) fn finish(&mut self, out: &mut String) {
        self.go_to((self.shown.len().max(1), 0), out);
        self.forget();
    }

    /// Takes everything off the screen; the next view begins in the first row.
    pub(super) fn clear_screen(&mut self, out: &mut String) {
        out.push_str("\x1b[H\x1b[2J");
        self.forget();
    }

    /// Has the next view begin in the row in which the terminal's cursor is.
    pub(super) fn forget(&mut self) {
        self.layout = None;
        self.shown.clear();
        self.top = 0;
        self.cursor = (0, 0);
    }

    /// Takes in another size: off with the prompt, the next view lays it out anew. Where it begins
    /// depends on whether the terminal has broken rows that no longer fit (`reflows`) or cut them.
    pub(super) fn resize(&mut self, size: (usize, usize), reflows: bool, out: &mut String) {
        let (columns, rows) = (size.0.max(1), size.1.max(1));
        let (row, column) = self.cursor;
        let above: usize = if reflows {
            let mut before = 0;
            let mut so_far = 0;
            for (line, next) in self.shown.iter().zip(self.shown.iter().skip(1)).take(row) {
                so_far += line.columns;
                if !next.wrapped {
                    before += so_far.div_ceil(columns).max(1);
                    so_far = 0;
                }
            }
            before + (so_far + column.min(self.columns - 1)) / columns
        } else {
            row
        };
        self.columns = columns;
        self.rows = rows;
        out.push('\r');
        step(above, 'A', out);
        out.push_str("\x1b[J");
        self.forget();
    }

    /// Lays out what changed and tells where the cursor is among the layout's rows.
    fn lay_out(&mut self, view: &View<'_>) -> (usize, usize) {
        let known = self.layout.take().filter(|_| self.sign == view.sign);
        let changed = if known.is_some() {
            view.changed
        } else {
            Some(0)
        };
        let mut layout = known.unwrap_or_else(|| Layout::new(view.sign, self.columns));
        if let Some(changed) = changed {
            layout.update(view.text, changed);
        }
        view.sign.clone_into(&mut self.sign);
        let position = layout.position(view.text, view.cursor);
        self.layout = Some(layout);
        position
    }

    /// Moves the window so that `top` is its first row. Where the rows fill the screen, the terminal
    /// does it: those that stay need not be written again.
    fn scroll_to(&mut self, top: usize, out: &mut String) {
        let up = top.saturating_sub(self.top);
        if up > 0 && up < self.rows && self.shown.len() == self.rows {
            self.go_to((self.rows - 1, 0), out);
            out.extend(std::iter::repeat_n('\n', up));
            self.shown.drain(..up);
            self.shown.resize_with(self.rows, Line::default);
        }
        self.top = top;
    }

    fn remark(&self, text: &str) -> Line {
        let mut line = Layout::new(text, self.columns).line(0, "");
        line.remark = true;
        line
    }

    /// Writes what differs in one row.
    fn draw(&mut self, row: usize, line: &Line, out: &mut String) {
        let blank = Line::default();
        let old = self.shown.get(row).unwrap_or(&blank);
        if old == line {
            if row >= self.shown.len() {
                self.go_to((row, 0), out);
            }
            return;
        }
        let same = if old.remark || line.remark {
            0
        } else {
            common_prefix(&old.text, &line.text)
        };
        let column = columns(line.text.get(..same).unwrap_or_default());
        let old_rest = old.text.get(same..).unwrap_or_default();
        let new_rest = line.text.get(same..).unwrap_or_default();
        // Cleared first: after a row that ends at the margin some terminals would clear its last cell.
        // Where the terminal may count otherwise than we do, the old text may stick out further.
        let clears = old.columns > line.columns || !old_rest.is_ascii() || !new_rest.is_ascii();
        let clears = clears && !old_rest.is_empty();
        let wraps = line.wrapped && row > 0 && self.cursor == (row - 1, self.columns) && !clears;
        if !wraps {
            self.go_to((row, column), out);
        }
        if clears {
            out.push_str("\x1b[K");
        }
        if line.remark && self.color {
            let _ = write!(out, "\x1b[2m{new_rest}\x1b[0m");
        } else {
            out.push_str(new_rest);
        }
        self.cursor = (row, line.columns);
    }

    /// Moves the terminal's cursor. Below the last row a new one is made.
    fn go_to(&mut self, (row, column): (usize, usize), out: &mut String) {
        let from = self.cursor;
        if from == (row, column) {
            return;
        }
        self.cursor = (row, column);
        if row == from.0 && column > from.1 {
            return step(column - from.1, 'C', out);
        }
        // A carriage return also ends a pending wrap, which terminals take to upward moves differently.
        out.push('\r');
        if row < from.0 {
            step(from.0 - row, 'A', out);
        } else {
            out.extend(std::iter::repeat_n('\n', row - from.0));
        }
        step(column, 'C', out);
    }
}

/// Moves the cursor `count` cells in the direction of the letter.
fn step(count: usize, direction: char, out: &mut String) {
    match count {
        0 => {}
        1 => out.extend(["\x1b[", direction.encode_utf8(&mut [0; 4])]),
        _ => {
            let _ = write!(out, "\x1b[{count}{direction}");
        }
    }
}

/// How many bytes of whole clusters two rows begin with in common.
fn common_prefix(old: &str, new: &str) -> usize {
    clusters(old)
        .zip(clusters(new))
        .take_while(|(old, new)| old == new)
        .map(|(old, _)| old.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::render::text::{char_columns, packing_columns};
    use crate::term::editor::{Edit, Editor};

    const SIGN: &str = "> ";

    /// A terminal with lines above the prompt, an editor and a painter that serve it.
    struct Screen {
        terminal: vt100::Parser,
        editor: Editor,
        painter: Painter,
        below: Vec<String>,
        size: (usize, usize),
        /// What the last refresh wrote.
        written: String,
    }

    impl Screen {
        fn new(columns: usize, rows: usize) -> Self {
            let mut terminal = vt100::Parser::new(
                u16::try_from(rows).unwrap(),
                u16::try_from(columns).unwrap(),
                1000,
            );
            terminal.process(b"a\r\nb\r\n");
            Self {
                terminal,
                editor: Editor::default(),
                painter: Painter::new((columns, rows), false),
                below: Vec::new(),
                size: (columns, rows),
                written: String::new(),
            }
        }

        fn refresh(&mut self) {
            let mut out = String::new();
            let changed = self.editor.take_changed();
            let view = View {
                sign: SIGN,
                text: self.editor.text(),
                changed,
                cursor: self.editor.cursor(),
                below: &self.below,
            };
            self.painter.refresh(&view, &mut out);
            self.terminal.process(out.as_bytes());
            self.written = out;
        }

        fn type_text(&mut self, text: &str) {
            self.editor.type_text(text);
            self.refresh();
        }

        fn apply(&mut self, edit: Edit) {
            self.editor.apply(edit);
            self.refresh();
        }

        fn resize(&mut self, columns: usize, rows: usize) {
            self.terminal.screen_mut().set_size(
                u16::try_from(rows).unwrap(),
                u16::try_from(columns).unwrap(),
            );
            let mut out = String::new();
            self.painter.resize((columns, rows), false, &mut out);
            self.terminal.process(out.as_bytes());
            self.size = (columns, rows);
            self.refresh();
        }

        fn rows(&self) -> Vec<String> {
            let width = u16::try_from(self.size.0).unwrap();
            let rows = self.terminal.screen().rows(0, width);
            rows.map(|row| row.trim_end().to_owned()).collect()
        }

        /// The rows of the whole history of the screen, without blank ones at the end.
        fn all_rows(&mut self) -> Vec<String> {
            let mut all = Vec::new();
            self.terminal.screen_mut().set_scrollback(usize::MAX);
            for back in (1..=self.terminal.screen().scrollback()).rev() {
                self.terminal.screen_mut().set_scrollback(back);
                all.extend(self.rows().into_iter().next());
            }
            self.terminal.screen_mut().set_scrollback(0);
            all.extend(self.rows());
            while all.last().is_some_and(String::is_empty) {
                all.pop();
            }
            all
        }

        /// The screen's rows from the prompt on, and where its cursor is among them.
        fn prompt(&self) -> (Vec<String>, (usize, usize)) {
            let rows = self.rows();
            let start = rows
                .iter()
                .position(|row| row.starts_with('>'))
                .unwrap_or(0);
            let (row, column) = self.terminal.screen().cursor_position();
            let mut rows = rows[start..].to_vec();
            while rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
            (rows, (usize::from(row) - start, usize::from(column)))
        }
    }

    /// A second opinion on the layout: rows and cursor, worked out the plain way.
    fn expected(text: &str, cursor: usize, width: usize) -> (Vec<String>, (usize, usize)) {
        let mut rows = vec![String::new()];
        let mut used = 0;
        let mut place = None;
        let mut pieces = vec![&SIGN[..1], &SIGN[1..]];
        let mut rest = text;
        while let Some(cluster) = clusters(rest).next() {
            // What is wider than a row is broken between characters.
            let mut wide = cluster.char_indices().skip(1);
            let second = wide.find(|(_, c)| char_columns(*c) > 0);
            let length = match second {
                Some((at, _)) if packing_columns(cluster) > width => at,
                _ => cluster.len(),
            };
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        let mut at = 0;
        for (index, piece) in pieces.into_iter().enumerate() {
            let is_text = index >= SIGN.len();
            let piece_columns = packing_columns(piece);
            if piece != "\n" && used > 0 && used + piece_columns > width {
                rows.push(String::new());
                used = 0;
            }
            if is_text && at == cursor {
                place = Some((rows.len() - 1, columns(rows.last().unwrap()).min(width - 1)));
            }
            if piece == "\n" {
                rows.push(String::new());
                used = 0;
            } else if piece_columns > 0 {
                let drawn = piece.trim_start_matches(|c| char_columns(c) == 0);
                rows.last_mut().unwrap().push_str(drawn);
                used += piece_columns;
            }
            at += if is_text { piece.len() } else { 0 };
        }
        if columns(rows.last().unwrap()) >= width {
            rows.push(String::new());
        }
        let end = (rows.len() - 1, columns(rows.last().unwrap()));
        let rows = rows.iter().map(|row| row.trim_end().to_owned()).collect();
        (rows, place.unwrap_or(end))
    }

    #[test]
    fn f3_backspace_over_the_margin_leaves_nothing_behind() {
        let mut screen = Screen::new(10, 6);
        screen.type_text("abcdefghi");
        assert_eq!(
            screen.prompt(),
            (vec!["> abcdefgh".into(), "i".into()], (1, 1))
        );
        screen.apply(Edit::DeleteBack);
        screen.apply(Edit::DeleteBack);
        assert_eq!(screen.prompt(), (vec!["> abcdefg".into()], (0, 9)));
    }

    #[test]
    fn f3_a_deleted_wide_glyph_leaves_blank_cells() {
        let mut screen = Screen::new(20, 6);
        screen.type_text("中文");
        screen.apply(Edit::DeleteBack);
        assert_eq!(screen.prompt(), (vec!["> 中".into()], (0, 4)));
    }

    #[test]
    fn g_a_key_at_the_end_writes_the_same_few_bytes_in_any_text() {
        let mut screen = Screen::new(80, 24);
        screen.refresh();
        screen.type_text("x");
        assert_eq!(screen.written, "x");
        screen.editor.insert(&"some words ".repeat(20_000));
        screen.refresh();
        assert!(screen.written.len() < 3 * 80 * 24);
        let mut most = 0;
        for _ in 0..200 {
            screen.type_text("y");
            most = most.max(screen.written.len());
        }
        assert!(most < 16, "{most}");
    }

    #[test]
    fn f3_remarks_come_below_and_go_without_a_trace() {
        let mut screen = Screen::new(20, 6);
        screen.type_text("abc");
        screen.below = vec!["one".into(), "a remark wider than the screen".into()];
        screen.refresh();
        let below = vec!["> abc".into(), "one".into(), "a remark wider than".into()];
        assert_eq!(screen.prompt(), (below, (0, 5)));
        screen.below.clear();
        screen.type_text("d");
        assert_eq!(screen.prompt(), (vec!["> abcd".into()], (0, 6)));
    }

    #[test]
    fn f3_more_remarks_than_rows_keep_the_cursor_on_the_screen() {
        let mut screen = Screen::new(20, 4);
        screen.type_text("a\nb\nc\nd\ne");
        screen.below = (0..9).map(|n| format!("remark {n}")).collect();
        screen.refresh();
        assert_eq!(screen.rows(), ["e", "remark 0", "remark 1", "remark 2"]);
        assert_eq!(screen.terminal.screen().cursor_position(), (0, 1));
        screen.below.clear();
        screen.refresh();
        assert_eq!(screen.rows(), ["b", "c", "d", "e"]);
    }

    #[test]
    fn f3_a_text_taller_than_the_screen_is_seen_through_a_window() {
        let mut screen = Screen::new(10, 3);
        screen.editor.insert("1\n2\n3\n4\n5");
        screen.refresh();
        assert_eq!(screen.rows(), ["3", "4", "5"]);
        screen.apply(Edit::TextStart);
        assert_eq!(screen.rows(), ["> 1", "2", "3"]);
        assert_eq!(screen.terminal.screen().cursor_position(), (0, 2));
        screen.apply(Edit::DeleteForward);
        assert_eq!(screen.rows(), [">", "2", "3"]);
        screen.apply(Edit::TextEnd);
        assert_eq!(screen.rows(), ["3", "4", "5"]);
        screen.apply(Edit::CutToLineStart);
        screen.apply(Edit::CutToLineStart);
        assert_eq!(screen.rows(), ["2", "3", "4"]);
    }

    #[test]
    fn f3_leaving_the_prompt_goes_below_all_of_it() {
        let mut screen = Screen::new(10, 6);
        screen.type_text("a\nb\nc");
        screen.apply(Edit::TextStart);
        let mut out = String::new();
        screen.painter.finish(&mut out);
        screen.terminal.process(out.as_bytes());
        assert_eq!(screen.terminal.screen().cursor_position(), (5, 0));
    }

    #[test]
    fn f3_a_sign_wider_than_the_screen_is_one_line_to_the_terminal() {
        let sign = "question 1? ";
        let asked = || {
            let mut painter = Painter::new((10, 6), false);
            let mut out = String::new();
            let view = View {
                sign,
                text: "",
                changed: None,
                cursor: 0,
                below: &[],
            };
            painter.refresh(&view, &mut out);
            (painter, out)
        };
        let (mut painter, out) = asked();
        assert_eq!(out, sign);
        for (reflows, size, expected) in [
            (true, (20, 6), "\r\x1b[J"),
            (true, (5, 6), "\r\x1b[2A\x1b[J"),
            (false, (20, 6), "\r\x1b[A\x1b[J"),
        ] {
            let mut out = String::new();
            painter.resize(size, reflows, &mut out);
            assert_eq!(out, expected, "{reflows} {size:?}");
            painter = asked().0;
        }
    }

    #[test]
    fn f3_another_size_lays_the_prompt_out_anew_and_keeps_what_is_above() {
        let mut screen = Screen::new(20, 8);
        screen.type_text("0123456789abcdefghijklmnop");
        screen.resize(30, 8);
        assert_eq!(
            screen.rows()[..4],
            ["a", "b", "> 0123456789abcdefghijklmnop", ""]
        );
        screen.resize(14, 8);
        assert_eq!(
            screen.rows()[..5],
            ["a", "b", "> 0123456789ab", "cdefghijklmnop", ""]
        );
        assert_eq!(screen.terminal.screen().cursor_position(), (4, 0));
    }

    #[derive(Debug, Clone)]
    enum Act {
        Edit(Edit),
        Type(String),
    }

    fn any_act() -> impl Strategy<Value = Act> {
        use Edit::*;
        prop_oneof![
            prop::sample::select(vec![
                Left,
                Right,
                WordLeft,
                WordRight,
                LineStart,
                LineEnd,
                TextStart,
                TextEnd,
                Break,
                DeleteBack,
                DeleteBack,
                DeleteForward,
                CutWordBack,
                CutToLineEnd,
                CutToLineStart,
                PutBack,
                Transpose,
                Undo,
            ])
            .prop_map(Act::Edit),
            "[ab 日\u{301}👍🏽é🇯🇵]{1,12}".prop_map(Act::Type),
            "[a-z]{10,40}".prop_map(Act::Type),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn f3_the_screen_shows_the_text_and_what_is_above_stays(
            width in 2usize..=80,
            height in 1usize..=12,
            acts in prop::collection::vec(any_act(), 1..30),
        ) {
            let mut screen = Screen::new(width, height);
            screen.refresh();
            for act in acts {
                match act {
                    Act::Edit(edit) => screen.apply(edit),
                    Act::Type(text) => screen.type_text(&text),
                }
                let text = screen.editor.text().to_owned();
                let (rows, (row, column)) = expected(&text, screen.editor.cursor(), width);
                let (line, place) = screen.terminal.screen().cursor_position();
                let (line, place) = (usize::from(line), usize::from(place));
                prop_assert_eq!(place, column, "{:?}", text);
                let actual = screen.rows();
                let top = row.checked_sub(line);
                let first = line.saturating_sub(row);
                let wanted: Vec<&String> = rows.iter().skip(top.unwrap_or(0)).take(height - first).collect();
                let mut seen: Vec<&String> = actual.iter().skip(first).collect();
                while seen.len() > wanted.len() && seen.last().unwrap().is_empty() {
                    seen.pop();
                }
                prop_assert_eq!(seen, wanted, "{:?}", text);
                if first >= 2 {
                    prop_assert_eq!(&actual[first - 2..first], ["a", "b"]);
                }
            }
            let all = screen.all_rows();
            prop_assert_eq!(&all[..2], ["a", "b"]);
        }
    }
}
