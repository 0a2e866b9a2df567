//! The text that is being edited: buffer, cursor, what was cut, what can be undone.
//!
//! Pure: knows no keys, no screen and no history. The cursor is a byte offset that always stands
//! between two grapheme clusters.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use crate::render::text::{clusters, columns};

use super::undo::Undo;

/// A change of the text or of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    /// One cluster to the left.
    Left,
    /// One cluster to the right.
    Right,
    /// To the beginning of the word.
    WordLeft,
    /// To the end of the word.
    WordRight,
    /// To the beginning of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
    /// To the beginning of the text.
    TextStart,
    /// To the end of the text.
    TextEnd,
    /// Inserts a line break.
    Break,
    /// Deletes the cluster before the cursor.
    DeleteBack,
    /// Deletes the cluster at the cursor.
    DeleteForward,
    /// Cuts the letters and digits before the cursor, and what is between them and it.
    CutWordBack,
    /// Cuts what isn't blank before the cursor, and the blanks between.
    CutBlankWordBack,
    /// Cuts to the end of the word.
    CutWord,
    /// Cuts the rest of the line, or the line break at its end.
    CutToLineEnd,
    /// Cuts what is before the cursor in the line, or the line break before it.
    CutToLineStart,
    /// Inserts what was cut last.
    PutBack,
    /// Swaps the clusters around the cursor, the last two at the end of a line.
    Transpose,
    /// Takes the last change back.
    Undo,
}

/// A text under way.
#[derive(Debug, Default)]
pub(super) struct Editor {
    text: String,
    cursor: usize,
    cut: String,
    /// The last command cut something: the next cut adds to it.
    cutting: bool,
    /// The column that moves from line to line try to keep.
    goal: Option<usize>,
    undo: Undo,
    /// The first byte that changed since it was asked for.
    changed: Option<usize>,
}

impl Editor {
    /// The text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in bytes.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// The first byte that changed since the last call, if any did.
    pub(super) fn take_changed(&mut self) -> Option<usize> {
        self.changed.take()
    }

    /// Gives the text away and begins a new one. What was cut stays.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        self.changed = Some(0);
        self.goal = None;
        self.cutting = false;
        self.undo.clear();
        std::mem::take(&mut self.text)
    }

    /// Inserts what was typed.
    pub(super) fn type_text(&mut self, typed: &str) {
        self.settle();
        self.undo.record_typing(self.cursor, typed);
        self.splice(self.cursor..self.cursor, typed);
    }

    /// Inserts a block as one change: a paste, a completed word.
    pub(super) fn insert(&mut self, block: &str) {
        self.replace(self.cursor..self.cursor, block);
    }

    /// Replaces a part of the text and puts the cursor behind it. One change.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        self.settle();
        let removed = self.text.get(range.clone()).unwrap_or_default();
        if removed == with {
            self.cursor = range.end.min(self.text.len());
            return;
        }
        self.undo.record(range.start, removed, with, self.cursor);
        self.splice(range, with);
    }

    /// Puts another text in the place of this one. One change.
    pub(super) fn set_text(&mut self, text: &str) {
        self.replace(0..self.text.len(), text);
    }

    /// Does one command.
    pub(super) fn apply(&mut self, edit: Edit) {
        let cutting = self.cutting;
        if edit != Edit::Undo {
            self.undo.end_typing();
        }
        self.settle();
        match edit {
            Edit::Left => self.cursor = self.left(self.cursor),
            Edit::Right => self.cursor = self.right(self.cursor),
            Edit::WordLeft => self.cursor = self.back_over(is_word),
            Edit::WordRight => self.cursor = self.word_right(),
            Edit::LineStart => self.cursor = self.line().start,
            Edit::LineEnd => self.cursor = self.line().end,
            Edit::TextStart => self.cursor = 0,
            Edit::TextEnd => self.cursor = self.text.len(),
            Edit::Break => self.insert("\n"),
            Edit::DeleteBack => self.replace(self.left(self.cursor)..self.cursor, ""),
            Edit::DeleteForward => self.replace(self.cursor..self.right(self.cursor), ""),
            Edit::CutWordBack => self.cut(self.back_over(is_word)..self.cursor, cutting),
            Edit::CutBlankWordBack => self.cut(self.back_over(is_filled)..self.cursor, cutting),
            Edit::CutWord => self.cut(self.cursor..self.word_right(), cutting),
            Edit::CutToLineEnd => {
                let end = self.line().end;
                let end = if end == self.cursor {
                    self.right(end)
                } else {
                    end
                };
                self.cut(self.cursor..end, cutting);
            }
            Edit::CutToLineStart => {
                let start = self.line().start;
                let start = if start == self.cursor {
                    self.left(start)
                } else {
                    start
                };
                self.cut(start..self.cursor, cutting);
            }
            Edit::PutBack => self.insert(&self.cut.clone()),
            Edit::Transpose => self.transpose(),
            Edit::Undo => self.take_back(),
        }
    }

    /// Moves to the line above, near the same column; returns whether there is one.
    pub(super) fn line_up(&mut self) -> bool {
        let start = self.line().start;
        start > 0 && self.go_to_line(self.line_around(start - 1))
    }

    /// Moves to the line below, near the same column; returns whether there is one.
    pub(super) fn line_down(&mut self) -> bool {
        let end = self.line().end;
        end < self.text.len() && self.go_to_line(self.line_around(end + 1))
    }

    /// Forgets what only lasts from one command to the next.
    fn settle(&mut self) {
        self.goal = None;
        self.cutting = false;
    }

    fn splice(&mut self, range: Range<usize>, with: &str) {
        let end = range.start + with.len();
        let changed = range.start.min(self.changed.unwrap_or(range.start));
        self.changed = Some(changed);
        if range.start == self.text.len() {
            self.text.push_str(with);
        } else {
            self.text.replace_range(range, with);
        }
        self.cursor = self.boundary(end);
    }

    /// `at`, or the end of the cluster that it would divide.
    fn boundary(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(true) => at,
            _ => cursor
                .next_boundary(&self.text, 0)
                .ok()
                .flatten()
                .unwrap_or(self.text.len()),
        }
    }

    fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn left(&self, from: usize) -> usize {
        let before = self.text.get(..from).unwrap_or_default();
        from - clusters(before).next_back().map_or(0, str::len)
    }

    fn right(&self, from: usize) -> usize {
        let after = self.text.get(from..).unwrap_or_default();
        from + clusters(after).next().map_or(0, str::len)
    }

    /// The line that the cursor is in, without its line break.
    fn line(&self) -> Range<usize> {
        self.line_around(self.cursor)
    }

    fn line_around(&self, at: usize) -> Range<usize> {
        let (before, after) = self.text.split_at_checked(at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = after
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline);
        start..end
    }

    /// Where the run of `wanted` clusters before the cursor begins, whatever is between it and them.
    fn back_over(&self, wanted: fn(&str) -> bool) -> usize {
        let mut at = self.cursor;
        let mut inside = false;
        for cluster in clusters(self.before()).rev() {
            if inside && !wanted(cluster) {
                break;
            }
            inside = wanted(cluster);
            at -= cluster.len();
        }
        at
    }

    fn word_right(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        let mut at = self.cursor;
        let mut inside = false;
        for cluster in clusters(after) {
            if inside && !is_word(cluster) {
                break;
            }
            inside = is_word(cluster);
            at += cluster.len();
        }
        at
    }

    fn go_to_line(&mut self, line: Range<usize>) -> bool {
        let goal = self.goal.unwrap_or_else(|| {
            let start = self.line().start;
            columns(self.text.get(start..self.cursor).unwrap_or_default())
        });
        self.undo.end_typing();
        self.settle();
        self.goal = Some(goal);
        self.cursor = line.start;
        let mut column = 0;
        for cluster in clusters(self.text.get(line).unwrap_or_default()) {
            column += columns(cluster);
            if column > goal {
                break;
            }
            self.cursor += cluster.len();
        }
        true
    }

    /// Cuts a range that begins or ends at the cursor. Cuts in a row add up.
    fn cut(&mut self, range: Range<usize>, cutting: bool) {
        if range.is_empty() {
            self.cutting = cutting;
            return;
        }
        let forward = range.start == self.cursor;
        let piece = self.text.get(range.clone()).unwrap_or_default();
        if !cutting {
            self.cut.clear();
        }
        if forward {
            self.cut.push_str(piece);
        } else {
            self.cut.insert_str(0, piece);
        }
        self.replace(range, "");
        self.cutting = true;
    }

    fn transpose(&mut self) {
        let line = self.line();
        let end = if self.cursor == line.end {
            self.cursor
        } else {
            self.right(self.cursor)
        };
        let middle = self.left(end);
        let start = self.left(middle);
        if middle <= line.start || end == middle {
            return;
        }
        let first = self.text.get(start..middle).unwrap_or_default();
        let second = self.text.get(middle..end).unwrap_or_default();
        let swapped = format!("{second}{first}");
        self.replace(start..end, &swapped);
    }

    fn take_back(&mut self) {
        if let Some(change) = self.undo.pop() {
            self.splice(change.at..change.at + change.inserted, &change.removed);
            self.cursor = self.boundary(change.cursor);
        }
    }
}

/// Letters and digits make words; a mark belongs to the letter before it.
fn is_word(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(char::is_alphanumeric)
}

fn is_filled(cluster: &str) -> bool {
    !cluster.chars().all(char::is_whitespace)
}

/// A text from outside as the editor takes it: every line end a newline, no control characters but
/// those and tabs (SPEC F2).
pub(super) fn cleaned(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut after_return = false;
    for c in text.chars() {
        match c {
            '\n' if after_return => {}
            '\r' | '\n' => cleaned.push('\n'),
            '\t' => cleaned.push('\t'),
            _ if c.is_control() => {}
            _ => cleaned.push(c),
        }
        after_return = c == '\r';
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An editor with this text; the bar is the cursor.
    fn editor(text: &str) -> Editor {
        let cursor = text.find('|').unwrap();
        let mut editor = Editor::default();
        editor.insert(&text.replace('|', ""));
        editor.cursor = cursor;
        editor.undo.clear();
        editor
    }

    fn shown(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    #[test]
    fn f1_each_command_does_what_its_key_says() {
        use Edit::*;
        let cases: &[(&str, &[Edit], &str)] = &[
            ("ab|c", &[Left], "a|bc"),
            ("|abc", &[Left], "|abc"),
            ("a|bc", &[Right], "ab|c"),
            ("abc|", &[Right], "abc|"),
            ("ae\u{301}|b", &[Left], "a|e\u{301}b"),
            (
                "|👨\u{200D}👩\u{200D}👧x",
                &[Right],
                "👨\u{200D}👩\u{200D}👧|x",
            ),
            ("foo bar|", &[WordLeft], "foo |bar"),
            ("foo bar|", &[WordLeft, WordLeft], "|foo bar"),
            ("foo, b|ar", &[WordLeft], "foo, |bar"),
            ("|foo bar", &[WordRight], "foo| bar"),
            ("foo| bar", &[WordRight], "foo bar|"),
            ("日本|語", &[WordLeft], "|日本語"),
            ("a\nbc|d\ne", &[LineStart], "a\n|bcd\ne"),
            ("a\nb|cd\ne", &[LineEnd], "a\nbcd|\ne"),
            ("a\nb|cd\ne", &[TextStart], "|a\nbcd\ne"),
            ("a\nb|cd\ne", &[TextEnd], "a\nbcd\ne|"),
            ("a|b", &[Break], "a\n|b"),
            ("ab|c", &[DeleteBack], "a|c"),
            ("a\n|c", &[DeleteBack], "a|c"),
            ("中文|", &[DeleteBack], "中|"),
            ("|c", &[DeleteBack], "|c"),
            ("a|bc", &[DeleteForward], "a|c"),
            ("abc|", &[DeleteForward], "abc|"),
            ("a b/c|", &[CutBlankWordBack], "a |"),
            ("a b/c  |", &[CutBlankWordBack], "a |"),
            ("a b/c|", &[CutWordBack], "a b/|"),
            ("a |bc de", &[CutWord], "a | de"),
            ("a|bc\nd", &[CutToLineEnd], "a|\nd"),
            ("abc|\nd", &[CutToLineEnd], "abc|d"),
            ("a\nbc|d", &[CutToLineStart], "a\n|d"),
            ("a\n|d", &[CutToLineStart], "a|d"),
            ("foo bar|", &[CutBlankWordBack, PutBack], "foo bar|"),
            (
                "foo bar|",
                &[CutBlankWordBack, CutBlankWordBack, PutBack],
                "foo bar|",
            ),
            (
                "foo bar|",
                &[CutBlankWordBack, Left, CutBlankWordBack, PutBack],
                "foo| ",
            ),
            ("a|b c", &[CutToLineEnd, CutToLineStart, PutBack], "ab c|"),
            ("foo |bar", &[CutToLineEnd, PutBack, PutBack], "foo barbar|"),
            ("a|b", &[Transpose], "ba|"),
            ("ab|", &[Transpose], "ba|"),
            ("å|ä", &[Transpose], "äå|"),
            ("|ab", &[Transpose], "|ab"),
            ("x\na|\ny", &[Transpose], "x\na|\ny"),
            ("x\nab|\ny", &[Transpose], "x\nba|\ny"),
            ("ab|", &[DeleteBack, Undo], "ab|"),
            ("foo bar|", &[CutBlankWordBack, Undo, Undo], "foo bar|"),
            (
                "a\u{202f}b|",
                &[Left, Left, CutBlankWordBack, CutToLineEnd],
                "|",
            ),
        ];
        for (before, edits, after) in cases {
            let mut editor = editor(before);
            for edit in *edits {
                editor.apply(*edit);
            }
            assert_eq!(shown(&editor), *after, "{before:?} {edits:?}");
        }
    }

    #[test]
    fn f1_up_and_down_keep_the_column_and_stop_at_the_edges() {
        let mut editor = editor("日本語x\na\nabcdefg|");
        assert!(editor.line_up());
        assert_eq!(shown(&editor), "日本語x\na|\nabcdefg");
        assert!(editor.line_up());
        assert_eq!(shown(&editor), "日本語x|\na\nabcdefg");
        assert!(!editor.line_up());
        assert!(editor.line_down());
        assert!(editor.line_down());
        assert_eq!(shown(&editor), "日本語x\na\nabcdefg|");
        assert!(!editor.line_down());
        editor.apply(Edit::LineStart);
        editor.apply(Edit::Right);
        editor.line_up();
        editor.line_up();
        assert_eq!(shown(&editor), "|日本語x\na\nabcdefg");
    }

    #[test]
    fn f1_undo_takes_back_what_was_typed_word_by_word() {
        let mut editor = editor("|");
        for c in ["o", "n", "e", " ", "t", "w", "o"] {
            editor.type_text(c);
        }
        editor.apply(Edit::Undo);
        assert_eq!(shown(&editor), "one |");
        editor.apply(Edit::Undo);
        assert_eq!(shown(&editor), "|");
        editor.apply(Edit::Undo);
        assert_eq!(shown(&editor), "|");
    }

    #[test]
    fn f3_a_mark_typed_after_a_letter_joins_it() {
        let mut editor = editor("e|x");
        editor.type_text("\u{301}");
        assert_eq!(shown(&editor), "e\u{301}|x");
        editor.apply(Edit::DeleteBack);
        assert_eq!(shown(&editor), "|x");
        let mut editor = editor_with_mark();
        editor.type_text("e");
        assert_eq!(shown(&editor), "e\u{301}|");
    }

    fn editor_with_mark() -> Editor {
        editor("|\u{301}")
    }

    #[test]
    fn f1_what_was_cut_outlives_the_prompt() {
        let mut editor = editor("abc|");
        editor.apply(Edit::CutToLineStart);
        assert_eq!(editor.take(), "");
        editor.apply(Edit::PutBack);
        assert_eq!(shown(&editor), "abc|");
    }

    #[test]
    fn f2_a_paste_keeps_line_breaks_and_tabs_and_loses_other_controls() {
        assert_eq!(cleaned("a\r\nb\rc\n\nd"), "a\nb\nc\n\nd");
        assert_eq!(cleaned("a\0b\x07\tc\x1b[31m\u{9b}d\x7f"), "ab\tc[31md");
        assert_eq!(cleaned("\r\r\n"), "\n\n");
    }

    fn any_edit() -> impl Strategy<Value = Edit> {
        use Edit::*;
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
            DeleteForward,
            CutWordBack,
            CutBlankWordBack,
            CutWord,
            CutToLineEnd,
            CutToLineStart,
            PutBack,
            Transpose,
            Undo,
        ])
    }

    #[derive(Debug, Clone)]
    enum Act {
        Edit(Edit),
        Type(String),
        Up,
        Down,
    }

    fn any_act() -> impl Strategy<Value = Act> {
        prop_oneof![
            any_edit().prop_map(Act::Edit),
            "[ab \u{301}\u{200d}👨🇯🇵日\u{fe0f}क्षि]{1,3}".prop_map(Act::Type),
            Just(Act::Up),
            Just(Act::Down),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn f3_the_cursor_never_divides_a_cluster_and_undo_leads_back_to_the_start(
            acts in prop::collection::vec(any_act(), 0..40),
        ) {
            let mut editor = Editor::default();
            for act in acts {
                match act {
                    Act::Edit(edit) => editor.apply(edit),
                    Act::Type(text) => editor.type_text(&text),
                    Act::Up => drop(editor.line_up()),
                    Act::Down => drop(editor.line_down()),
                }
                let mut at = 0;
                let mut boundaries = vec![0];
                boundaries.extend(clusters(&editor.text).map(|cluster| { at += cluster.len(); at }));
                prop_assert!(boundaries.contains(&editor.cursor), "{:?}", shown(&editor));
            }
            for _ in 0..80 {
                editor.apply(Edit::Undo);
            }
            prop_assert_eq!(editor.text(), "");
        }
    }
}
