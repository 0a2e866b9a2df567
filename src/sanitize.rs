//! Text made harmless: for the model ([`arguments`], [`result()`]), for the terminal ([`screen`]),
//! and without the secrets of this run ([`Redactor`]).
//!
//! Pure functions and streaming filters. A filter gives the same result however its input is cut
//! into chunks. Nothing here knows where a text came from or where it goes.

mod escapes;
mod secrets;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use escapes::{Escapes, Step};
pub use secrets::{Masker, Redactor, masked};

/// How many characters of an unfinished line can still be overwritten. A terminal, too, wraps a
/// longer line, and a carriage return goes back to the start of its last row only.
const ROW: usize = 4096;

/// A string of a tool call's arguments with nothing in it but ASCII space, tab, newline and
/// printable, visible characters (SPEC C12).
pub fn arguments(text: &str) -> String {
    let mut visibility = Visibility::default();
    text.chars().filter(|&c| visibility.keeps(c)).collect()
}

/// A tool's result as the model gets it (SPEC C12).
pub fn result(text: &str) -> String {
    let mut filter = ResultFilter::default();
    let mut out = String::with_capacity(text.len());
    filter.push(text, &mut out);
    filter.finish(&mut out);
    out
}

/// `text` as it may be written to a terminal (SPEC C13).
pub fn screen(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    ScreenFilter::default().push(text, &mut out);
    out
}

/// `text` as it may be written to a terminal where it has to stay on one line.
pub fn screen_line(text: &str) -> String {
    screen(text)
        .chars()
        .map(|c| match c {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c => c,
        })
        .collect()
}

/// Decides which characters the model gets, one after the other.
#[derive(Debug, Clone, Default)]
struct Visibility {
    /// Whether the last character that was kept is one that can be seen.
    after_visible: bool,
}

impl Visibility {
    fn keeps(&mut self, c: char) -> bool {
        let (keeps, visible) = match c {
            ' ' | '\t' | '\n' => (true, false),
            _ if is_emoji_selector(c) => (self.after_visible, false),
            _ => (is_visible(c), true),
        };
        if keeps {
            self.after_visible = visible;
        }
        keeps
    }
}

/// U+FE0E and U+FE0F ask for the text or the emoji form of the character before them.
fn is_emoji_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic();
    }
    let printable = matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter
            | GeneralCategoryGroup::Mark
            | GeneralCategoryGroup::Number
            | GeneralCategoryGroup::Punctuation
            | GeneralCategoryGroup::Symbol
    );
    printable && !is_default_ignorable(c) && c != '\u{2800}'
}

/// `Default_Ignorable_Code_Point` of Unicode's `DerivedCoreProperties`: drawn as nothing, and thus fit
/// for smuggling text past a reader.
fn is_default_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Printable ASCII, tab and newline: what every filter here lets through as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Splits off the plain beginning of `text`.
fn split_plain(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let plain = bytes.iter().position(|&byte| !is_plain(byte));
    text.split_at(plain.unwrap_or(bytes.len()))
}

/// Makes a stream of a tool's output fit for the model (SPEC C12): escape sequences go as a whole,
/// a carriage return lets what follows overwrite its line as on a terminal, and of the rest only
/// what [`arguments`] keeps stays.
///
/// Lines come out when they are complete.
#[derive(Debug, Clone, Default)]
pub struct ResultFilter {
    escapes: Escapes,
    /// The line that has not ended yet, at most [`ROW`] characters of it.
    line: Vec<char>,
    /// Where in the line the next character goes.
    column: usize,
    /// Whether the line goes with the next carriage return: programs erase first, then return.
    erased: bool,
    /// Whether something in the line was overwritten.
    rewritten: bool,
    visibility: Visibility,
}

impl ResultFilter {
    /// Takes the next piece in and appends to `out` what is certain.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.escapes.in_text() && self.at_end() && u8::try_from(c).is_ok_and(is_plain) {
                let (plain, after) = split_plain(rest);
                self.append_plain(plain, out);
                rest = after;
            } else {
                self.push_char(c, out);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }

    /// Ends the stream. A sequence that was not complete is dropped.
    pub fn finish(&mut self, out: &mut String) {
        self.commit(out);
        *self = Self::default();
    }

    /// The line that has not ended yet, unless it is being rewritten (a progress bar).
    pub fn open_line(&self) -> Option<String> {
        let open = self.at_end() && !self.rewritten && !self.line.is_empty();
        open.then(|| {
            let mut visibility = self.visibility.clone();
            let visible = self.line.iter().filter(|&&c| visibility.keeps(c));
            visible.collect()
        })
    }

    fn at_end(&self) -> bool {
        self.column == self.line.len()
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        match self.escapes.step(c) {
            Step::Text('\n') => self.end_line(out),
            Step::Text('\r') => self.carriage_return(),
            Step::Text(c) => self.put(c, out),
            Step::EraseToEnd => self.line.truncate(self.column),
            Step::EraseLine if self.column == 0 => self.line.clear(),
            Step::EraseLine => self.erased = true,
            Step::Sequence => {}
        }
    }

    fn put(&mut self, c: char, out: &mut String) {
        // Characters that go anyway take no room, or they would shift what overwrites them.
        if c != '\t' && c != ' ' && !is_visible(c) && !is_emoji_selector(c) {
            return;
        }
        if let Some(old) = self.line.get_mut(self.column) {
            *old = c;
            self.rewritten = true;
        } else {
            if self.line.len() >= ROW {
                self.commit(out);
            }
            self.line.push(c);
        }
        self.column += 1;
    }

    /// Appends plain text at the end of the line, all at once.
    fn append_plain(&mut self, text: &str, out: &mut String) {
        let (lines, last) = text.split_at(text.rfind('\n').map_or(0, |at| at + 1));
        if !lines.is_empty() {
            self.commit(out);
            out.push_str(lines);
            self.new_line();
        }
        // Of rows that are full only the last one can still change.
        let total = self.line.len() + last.len();
        let full_rows = total.saturating_sub(1) / ROW * ROW;
        let (full, open) = last.split_at(full_rows.saturating_sub(self.line.len()));
        if let Some(c) = full.chars().next_back() {
            self.commit(out);
            out.push_str(full);
            self.visibility.keeps(c);
        } else if full_rows > 0 {
            self.commit(out);
        }
        self.line.extend(open.chars());
        self.column = self.line.len();
    }

    fn carriage_return(&mut self) {
        if self.erased {
            self.line.clear();
            self.erased = false;
        }
        self.column = 0;
    }

    fn end_line(&mut self, out: &mut String) {
        self.commit(out);
        out.push('\n');
        self.new_line();
    }

    fn new_line(&mut self) {
        self.visibility = Visibility::default();
        self.erased = false;
        self.rewritten = false;
    }

    /// Hands out what the line has come to.
    fn commit(&mut self, out: &mut String) {
        out.extend(self.line.drain(..).filter(|&c| self.visibility.keeps(c)));
        self.column = 0;
    }
}

/// Makes a stream of text harmless for a terminal (SPEC C13): escape sequences, control characters
/// but newline and tab, and the controls of text direction go; everything else stays.
#[derive(Debug, Clone, Default)]
pub struct ScreenFilter {
    escapes: Escapes,
}

impl ScreenFilter {
    /// Takes the next piece in and appends to `out` what may be shown of it.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.escapes.in_text() && u8::try_from(c).is_ok_and(is_plain) {
                let (plain, after) = split_plain(rest);
                out.push_str(plain);
                rest = after;
            } else {
                if let Step::Text(c) = self.escapes.step(c)
                    && is_harmless(c)
                {
                    out.push(c);
                }
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
}

fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            false
        }
        _ => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c12_arguments_keep_printable_visible_characters_and_nothing_else() {
        for (input, kept) in [
            ("plain text\twith\nlines ~!", "plain text\twith\nlines ~!"),
            ("Grüße, 世界 – „x“ €½²", "Grüße, 世界 – „x“ €½²"),
            ("e\u{301} नि", "e\u{301} नि"),
            ("a\r\nb\rc", "a\nbc"),
            ("a\0b\x07c\x1b[31md\x7fe\u{9b}f", "abc[31mdef"),
            ("a\u{a0}b\u{2003}c\u{3000}d\u{2028}e\u{1680}f", "abcdef"),
            ("a\u{200b}b\u{200d}c\u{2060}d\u{feff}e\u{ad}f", "abcdef"),
            ("a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{61c}f", "abcdef"),
            ("a\u{115f}b\u{3164}c\u{ffa0}d\u{34f}e\u{2800}f", "abcdef"),
            ("a\u{e0041}\u{e007f}b\u{e0100}c\u{fe01}d\u{180b}e", "abcde"),
            ("a\u{e000}b\u{f0000}c\u{378}d\u{ffff}e", "abcde"),
            (
                "👨\u{200d}👩 ❤\u{fe0f} ✂\u{fe0e}",
                "👨👩 ❤\u{fe0f} ✂\u{fe0e}",
            ),
            (
                "\u{fe0f}a\u{fe0f}\u{fe0f}b \u{fe0f}\n\u{fe0e}",
                "a\u{fe0f}b \n",
            ),
            ("\u{fffd}", "\u{fffd}"),
            ("", ""),
        ] {
            assert_eq!(arguments(input), kept, "{input:?}");
        }
    }

    #[test]
    fn c12_results_lose_escape_sequences_as_a_whole() {
        assert_eq!(result("\x1b[31mred\x1b[0m\n"), "red\n");
        assert_eq!(result("a\x1b]0;title\x07b\x1bP1q\x1b\\c"), "abc");
        assert_eq!(result("cut \x1b[3"), "cut ");
        assert_eq!(result("a\0\x08b\u{a0}c\u{200b}"), "abc");
    }

    #[test]
    fn c12_a_carriage_return_overwrites_its_line_as_on_a_terminal() {
        for (input, text) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\r\r\nb", "a\nb"),
            ("a\r", "a"),
            ("\ra", "a"),
            ("1%\r2%\r100%\n", "100%\n"),
            ("\r1%\r2%\r100%", "100%"),
            ("abc\rX", "Xbc"),
            ("abc\rXYZW\nd", "XYZW\nd"),
            ("one\nabc\rX\n", "one\nXbc\n"),
            ("abc\r\x1b[0m\n", "abc\n"),
            ("世界x\rab", "abx"),
            ("a\u{200b}bc\rXY", "XYc"),
            ("❤\u{fe0f}\r ", " "),
        ] {
            assert_eq!(result(input), text, "{input:?}");
        }
    }

    #[test]
    fn c12_a_progress_bar_that_erases_its_line_leaves_its_last_state() {
        for (input, text) in [
            ("downloading\r\x1b[Kdone\n", "done\n"),
            ("downloading\r\x1b[2Kdone\n", "done\n"),
            ("downloading\x1b[2K\rdone\n", "done\n"),
            ("downloading\r\x1b[K\n", "\n"),
            ("abc\x1b[Kdef\n", "abcdef\n"),
            ("abc\x1b[2Kdef\nghi\rj", "abcdef\njhi"),
        ] {
            assert_eq!(result(input), text, "{input:?}");
        }
    }

    #[test]
    fn d6_a_line_without_end_is_handed_out_while_it_comes() {
        let mut filter = ResultFilter::default();
        let mut out = String::new();
        for _ in 0..1000 {
            filter.push(&"x".repeat(1000), &mut out);
            filter.push("ä", &mut out);
        }
        assert!(out.chars().count() + ROW >= 1_001_000);
        filter.finish(&mut out);
        assert_eq!(out, format!("{}ä", "x".repeat(1000)).repeat(1000));
    }

    #[test]
    fn c12_a_carriage_return_in_a_very_long_line_reaches_its_last_row_only() {
        let long = "x".repeat(ROW + 2);
        assert_eq!(
            result(&format!("{long}\rab\n")),
            format!("{}ab\n", "x".repeat(ROW))
        );
        let full = "x".repeat(ROW);
        assert_eq!(
            result(&format!("{full}\rab")),
            format!("ab{}", "x".repeat(ROW - 2))
        );
    }

    #[test]
    fn d7_an_unfinished_line_can_be_looked_at_until_it_is_rewritten() {
        let mut filter = ResultFilter::default();
        let mut out = String::new();
        filter.push("one\nPassword\x1b[0m: ", &mut out);
        assert_eq!(out, "one\n");
        assert_eq!(filter.open_line().as_deref(), Some("Password: "));
        filter.push("5%\r10%", &mut out);
        assert_eq!(filter.open_line(), None);
        filter.push("\nnext", &mut out);
        assert_eq!(filter.open_line().as_deref(), Some("next"));
        filter.push("\n", &mut out);
        assert_eq!(filter.open_line(), None);
    }

    #[test]
    fn c13_nothing_that_drives_a_terminal_passes() {
        for (input, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
            ("a\u{9b}2Jb\x1b[2Jc\x1bcd", "abcd"),
            ("a\0b\x07c\x08d\re\x7ff\u{85}g\x0bh\x0ci", "abcdefghi"),
            (
                "a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{61c}f\u{200e}g",
                "abcdefg",
            ),
            (
                "a\u{a0}b 👨\u{200d}👩 ❤\u{fe0f} e\u{301}",
                "a\u{a0}b 👨\u{200d}👩 ❤\u{fe0f} e\u{301}",
            ),
            ("אבג abc", "אבג abc"),
        ] {
            assert_eq!(screen(input), shown, "{input:?}");
        }
        assert_eq!(screen_line("a\nb\tc\x1b[31md\u{2028}e\r\n"), "a b cd e ");
    }

    /// Text in which everything that matters to the filters is frequent.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\x1b[31m".to_owned()),
            Just("\x1b[K".to_owned()),
            Just("\x1b[2K".to_owned()),
            Just("\x1b]0;t".to_owned()),
            Just("\x1bP".to_owned()),
            Just("\x1b\\".to_owned()),
            Just("\x1b".to_owned()),
            Just("\r\n".to_owned()),
            Just("\r".to_owned()),
            Just("\n".to_owned()),
            Just("\x07\u{9b}\u{9c}".to_owned()),
            Just("x".repeat(ROW - 3)),
            "[a-z0-9 \t;\\[]{0,8}",
            "[ä世👨\u{200d}\u{fe0f}\u{301}\u{a0}\u{200b}\u{202e}]{0,4}",
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    /// `text` in pieces of so many characters each, and the rest.
    pub(super) fn chunks<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        for &size in sizes {
            let end = rest
                .char_indices()
                .nth(size)
                .map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        pieces
    }

    proptest! {
        #[test]
        fn c12_any_chunking_of_a_result_gives_the_same(
            text in hostile(),
            cuts in prop::collection::vec(0usize..40, 0..20),
        ) {
            let mut filter = ResultFilter::default();
            let mut out = String::new();
            for piece in chunks(&text, &cuts) {
                filter.push(piece, &mut out);
            }
            filter.finish(&mut out);
            prop_assert_eq!(out, result(&text));
        }

        #[test]
        fn c12_the_short_cut_for_plain_text_changes_nothing(text in hostile()) {
            let mut filter = ResultFilter::default();
            let mut out = String::new();
            text.chars().for_each(|c| filter.push_char(c, &mut out));
            filter.finish(&mut out);
            prop_assert_eq!(out, result(&text));
        }

        #[test]
        fn c12_sanitising_twice_is_sanitising_once(text in hostile()) {
            let once = result(&text);
            prop_assert_eq!(&result(&once), &once);
            prop_assert_eq!(&arguments(&once), &once);
            prop_assert_eq!(&screen(&once), &once);
            let once = arguments(&text);
            prop_assert_eq!(&arguments(&once), &once);
            let once = screen(&text);
            prop_assert_eq!(&screen(&once), &once);
        }

        #[test]
        fn c13_any_chunking_of_what_is_shown_gives_the_same(
            text in hostile(),
            cuts in prop::collection::vec(0usize..40, 0..20),
        ) {
            let mut filter = ScreenFilter::default();
            let mut out = String::new();
            for piece in chunks(&text, &cuts) {
                filter.push(piece, &mut out);
            }
            prop_assert_eq!(&out, &screen(&text));
            prop_assert!(!out.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
