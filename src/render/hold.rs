//! What of a paragraph has to wait: open inline constructs, and nothing else.
//!
//! Plain text passes straight on to the rows. From the first delimiter that may open something the
//! text is held until that is closed, or turns out to be none, or is longer than [`HOLD`]; then the
//! held slice is parsed, once, and handed on. This scanner only decides where a slice ends; what the
//! slice means is the parser's business, so that a wrong guess costs looks and never text.

use std::mem;

use crate::render::flow::Flow;
use crate::render::inline::{Piece, parse};
use crate::render::openers::Openers;
use crate::render::tag::{Tag, Target, Verdict};
use crate::render::text::packing_columns;
use crate::render::theme::{Page, Style};

/// How many bytes an open construct is held at most (SPEC F8).
const HOLD: usize = 512;
/// How long an entity can be at most, from `&` to `;`.
const ENTITY: usize = 34;

/// What the next character is read as. Positions are those of the buffer.
#[derive(Debug, Clone, Copy, Default)]
enum Mode {
    #[default]
    Text,
    /// After a backslash.
    Escape,
    /// After a backslash and a newline: a break, if the paragraph goes on.
    EscapedLineEnd,
    Entity {
        at: usize,
    },
    /// In a run of `*`, `_` or `~`.
    Run {
        at: usize,
    },
    /// In the run of backticks that opens a code span.
    Ticks {
        at: usize,
    },
    Code {
        at: usize,
        ticks: usize,
        /// How many backticks came last.
        run: usize,
    },
    /// After `<`.
    Tag {
        at: usize,
        tag: Tag,
    },
    /// After the `]` that closes the last bracket.
    Closed,
    /// In the parentheses behind it.
    Target {
        at: usize,
        target: Target,
    },
}

/// The inline content of one block after the other, as it arrives.
#[derive(Debug, Default)]
pub(super) struct Inline {
    style: Style,
    /// What is held, from the first open construct on.
    buffer: String,
    /// How much of the buffer has been read.
    read: usize,
    /// The character before the buffer.
    before: Option<char>,
    openers: Openers,
    mode: Mode,
    /// Whether a comment or the like turned out to be endless: none is looked for any more.
    no_declarations: bool,
}

impl Inline {
    /// Begins a block in `style`.
    pub(super) fn begin(&mut self, style: Style) {
        *self = Self {
            style,
            ..Self::default()
        };
    }

    /// Takes in a piece of the block; lines end in a newline and begin without spaces.
    pub(super) fn feed(&mut self, text: &str, flow: &mut Flow, page: &mut Page) {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if self.buffer.is_empty() {
                let end = rest.bytes().position(is_special).unwrap_or(rest.len());
                let (plain, after) = rest.split_at(end);
                if !plain.is_empty() {
                    flow.push(plain, self.style, page);
                    self.before = plain.chars().next_back();
                    rest = after;
                    continue;
                }
            }
            self.buffer.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
            self.scan(flow, page);
        }
    }

    /// Ends the block: what is held comes out, open constructs as they were written.
    pub(super) fn finish(&mut self, flow: &mut Flow, page: &mut Page) {
        let held = mem::take(&mut self.buffer);
        self.put(held.trim_end_matches([' ', '\n']), None, flow, page);
        self.begin(self.style);
    }

    fn scan(&mut self, flow: &mut Flow, page: &mut Page) {
        while let Some(c) = self
            .buffer
            .get(self.read..)
            .and_then(|rest| rest.chars().next())
        {
            if self.step(c) {
                self.read += c.len_utf8();
            }
            if self.openers.is_empty() && matches!(self.mode, Mode::Text) {
                self.release(self.read, flow, page);
            } else if self.read > HOLD {
                self.give_up(flow, page);
            }
        }
    }

    /// Reads one character; false where it has to be read again in the mode that follows.
    fn step(&mut self, c: char) -> bool {
        let at = self.read;
        match self.mode {
            Mode::Text => {
                self.mode = self.text(c, at);
                true
            }
            Mode::Escape => {
                self.mode = if c == '\n' {
                    Mode::EscapedLineEnd
                } else {
                    Mode::Text
                };
                true
            }
            Mode::Entity { at: start } if c != ';' => {
                let goes_on = (c.is_ascii_alphanumeric() || c == '#') && at - start < ENTITY;
                self.go_on_or(goes_on, Mode::Text)
            }
            Mode::Entity { .. } => {
                self.mode = Mode::Text;
                true
            }
            Mode::EscapedLineEnd => self.go_on_or(false, Mode::Text),
            Mode::Run { at: start } => {
                let goes_on = self.char_at(start) == Some(c);
                if !goes_on {
                    let run = self.buffer.get(start..at).unwrap_or_default();
                    let before = self.buffer.get(..start).unwrap_or_default();
                    let before = before.chars().next_back().or(self.before);
                    self.openers.take_run(run, start, before, c);
                }
                self.go_on_or(goes_on, Mode::Text)
            }
            Mode::Ticks { at: start } => {
                let code = Mode::Code {
                    at: start,
                    ticks: at - start,
                    run: 0,
                };
                self.go_on_or(c == '`', code)
            }
            Mode::Code {
                at: start,
                ticks,
                run,
            } => {
                if c != '`' && run == ticks {
                    return self.go_on_or(false, Mode::Text);
                }
                self.mode = Mode::Code {
                    at: start,
                    ticks,
                    run: if c == '`' { run + 1 } else { 0 },
                };
                true
            }
            Mode::Tag { at: start, tag } => self.tag(start, tag, c),
            Mode::Closed if c == '(' => {
                self.mode = Mode::Target {
                    at,
                    target: Target::default(),
                };
                true
            }
            Mode::Closed => {
                self.openers.drop_bracket();
                self.go_on_or(false, Mode::Text)
            }
            Mode::Target { at: start, target } => self.target(start, target, c),
        }
    }

    /// Stays in the mode and takes the character, or changes to `next`, which reads it again.
    fn go_on_or(&mut self, goes_on: bool, next: Mode) -> bool {
        if !goes_on {
            self.mode = next;
        }
        goes_on
    }

    fn text(&mut self, c: char, at: usize) -> Mode {
        match c {
            '\\' => Mode::Escape,
            '&' => Mode::Entity { at },
            '*' | '_' | '~' => Mode::Run { at },
            '`' => Mode::Ticks { at },
            '<' => Mode::Tag {
                at,
                tag: Tag::default(),
            },
            ']' if self.openers.has_bracket() => Mode::Closed,
            '[' => {
                self.openers.push_bracket(at);
                Mode::Text
            }
            _ => Mode::Text,
        }
    }

    fn tag(&mut self, start: usize, tag: Tag, c: char) -> bool {
        let so_far = self.buffer.get(start..self.read).unwrap_or_default();
        match tag.step(c, so_far) {
            Verdict::Open(tag) if tag.is_declaration() && self.no_declarations => {}
            Verdict::Open(tag) => {
                self.mode = Mode::Tag { at: start, tag };
                return true;
            }
            Verdict::Whole => {
                self.mode = Mode::Text;
                return true;
            }
            Verdict::None => {}
        }
        // The `<` is text, and so may be what follows.
        self.read = start + 1;
        self.mode = Mode::Text;
        false
    }

    fn target(&mut self, start: usize, target: Target, c: char) -> bool {
        match target.step(c) {
            Verdict::Open(target) => self.mode = Mode::Target { at: start, target },
            Verdict::Whole => {
                self.openers.close_bracket();
                self.mode = Mode::Text;
            }
            Verdict::None => {
                self.openers.drop_bracket();
                self.read = start;
                self.mode = Mode::Text;
                return false;
            }
        }
        true
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.buffer.get(at..).and_then(|rest| rest.chars().next())
    }

    /// Lets go of the oldest open construct, which has become too long: it is text.
    fn give_up(&mut self, flow: &mut Flow, page: &mut Page) {
        if self.openers.is_empty() {
            self.read = match self.mode {
                Mode::Code { at, ticks, .. } => at + ticks,
                Mode::Tag { at, tag } => {
                    self.no_declarations |= tag.is_declaration();
                    at + 1
                }
                _ => self.read,
            };
            self.mode = Mode::Text;
            let literal: String = self.buffer.drain(..self.read).collect();
            flow.push(&literal, self.style, page);
            self.before = literal.chars().next_back();
            self.read = 0;
            return;
        }
        self.openers.drop_first();
        if !self.openers.has_bracket() {
            match self.mode {
                Mode::Closed => self.mode = Mode::Text,
                Mode::Target { at, .. } => {
                    self.read = at;
                    self.mode = Mode::Text;
                }
                _ => {}
            }
        }
        let next = self
            .openers
            .first()
            .or(self.mode.start())
            .unwrap_or(self.read);
        self.release(next, flow, page);
    }

    /// Hands on the first `end` bytes of the buffer, in which nothing is open that can still close.
    fn release(&mut self, end: usize, flow: &mut Flow, page: &mut Page) {
        let after = self.char_at(end);
        let slice: String = self.buffer.drain(..end).collect();
        self.read -= end;
        self.openers.shift(end);
        self.mode.shift(end);
        if slice == "\\\n" {
            flow.break_row(page);
        } else {
            let text = slice.trim_end_matches([' ', '\n']);
            let gap = slice.get(text.len()..).unwrap_or_default();
            let after = if gap.is_empty() { after } else { None };
            self.put(text, after, flow, page);
            for c in gap.chars() {
                if c == '\n' {
                    flow.end_source_line(page);
                } else {
                    flow.push(" ", self.style, page);
                }
            }
        }
        self.before = slice.chars().next_back().or(self.before);
    }

    fn put(&self, slice: &str, after: Option<char>, flow: &mut Flow, page: &mut Page) {
        if slice.len() <= 1 {
            // A delimiter by itself.
            flow.push(slice, self.style, page);
            return;
        }
        for piece in parse(slice, self.before, after, self.style) {
            match piece {
                Piece::Text(span) => flow.push(&span.text, span.style, page),
                Piece::Break => flow.break_row(page),
                Piece::Unit(spans) => {
                    let columns = spans.iter().map(|span| packing_columns(&span.text)).sum();
                    flow.keep_together(columns, page);
                    for span in &spans {
                        flow.push(&span.text, span.style, page);
                    }
                }
            }
        }
    }
}

impl Mode {
    /// Where the construct that is being read begins.
    fn start(self) -> Option<usize> {
        match self {
            Self::Entity { at }
            | Self::Run { at }
            | Self::Ticks { at }
            | Self::Code { at, .. }
            | Self::Tag { at, .. } => Some(at),
            Self::Text
            | Self::Escape
            | Self::EscapedLineEnd
            | Self::Closed
            | Self::Target { .. } => None,
        }
    }

    /// Follows the buffer when `by` bytes leave its front.
    fn shift(&mut self, by: usize) {
        match self {
            Self::Entity { at }
            | Self::Run { at }
            | Self::Ticks { at }
            | Self::Code { at, .. }
            | Self::Tag { at, .. }
            | Self::Target { at, .. } => *at = at.saturating_sub(by),
            Self::Text | Self::Escape | Self::EscapedLineEnd | Self::Closed => {}
        }
    }
}

fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b'\\' | b'`' | b'&' | b'<' | b'[' | b'*' | b'_' | b'~' | b'\n'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::prefix::Prefix;

    struct Paragraph {
        inline: Inline,
        flow: Flow,
        page: Page,
    }

    impl Paragraph {
        fn of(pieces: &[&str]) -> Self {
            let mut paragraph = Self {
                inline: Inline::default(),
                flow: Flow::default(),
                page: Page::new(false),
            };
            paragraph.flow.begin(None, Prefix::default(), 10_000, false);
            for piece in pieces {
                paragraph
                    .inline
                    .feed(piece, &mut paragraph.flow, &mut paragraph.page);
            }
            paragraph
        }

        fn shown(&self) -> String {
            String::from_utf8(self.page.as_bytes().to_vec()).expect("text")
        }

        fn whole(mut self) -> String {
            self.inline.finish(&mut self.flow, &mut self.page);
            self.flow.finish(&mut self.page);
            self.shown().trim_end_matches('\n').to_owned()
        }
    }

    #[test]
    fn f8_text_is_shown_at_once_and_open_constructs_are_held() {
        for (source, shown) in [
            ("Hello, world!", "Hello, world!"),
            ("about ~5 and 2 * 3", "about ~5 and 2 * 3"),
            ("a **b", "a"),
            ("a **b** c", "a b c"),
            ("a `b` c", "a b c"),
            ("a [b](c d", "a [b](c d"),
            ("a [b](c) d", "a b (c) d"),
            ("a [b] d", "a [b] d"),
            ("a [b", "a"),
            ("x < y and x <y, so", "x < y and x <y, so"),
            ("AT&T &amp; more", "AT&T & more"),
            ("snake_case_name x", "snake_case_name x"),
            ("a *b **c** d", "a"),
            ("a *b **c** d* e", "a b c d e"),
            ("a ***b** c* d", "a b c d"),
            ("a\\*b\\c", "a*b\\c"),
        ] {
            assert_eq!(Paragraph::of(&[source]).shown(), shown, "{source:?}");
        }
    }

    #[test]
    fn open_constructs_come_out_as_written_when_the_block_ends() {
        for source in [
            "a **b", "a `b", "a [b", "a [b](c", "a <b", "a\\", "a &am", "a ~~b", "**",
        ] {
            assert_eq!(Paragraph::of(&[source]).whole(), source);
        }
        assert_eq!(Paragraph::of(&["a *b **c**"]).whole(), "a *b c");
        assert_eq!(Paragraph::of(&["a\\\n"]).whole(), "a\\");
    }

    #[test]
    fn f8_a_construct_is_held_for_512_bytes_at_most() {
        for opener in [
            "**", "`", "[", "<!--", "<a b=\"", "[a](<", "_", "~~", "![", "<?",
        ] {
            let source = format!("x {opener}{}", "word ".repeat(120));
            let shown = Paragraph::of(&[&source]).shown();
            assert!(shown.len() > source.len() - 20, "{opener}: {shown}");
            assert!(
                shown.starts_with(&format!("x {opener}word")),
                "{opener}: {shown}"
            );
        }
    }

    #[test]
    fn breaks_are_kept() {
        let mut page = Paragraph::of(&["a  \nb\\\nc\nd <br>e **f  \ng**"]).whole();
        page = page.replace(" \n", "\n");
        assert_eq!(page, "a\nb\nc d\ne f\ng");
    }

    #[test]
    fn pieces_do_not_matter() {
        let source =
            "a **b** `c``d` [e](f \"g\") <h i='j'> &amp; ~~k~~ l_m_n *o [p*q](r\n s\\\nt  \nu";
        let whole = Paragraph::of(&[source]).whole();
        let letters: Vec<String> = source.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(Paragraph::of(&letters).whole(), whole);
    }

    #[test]
    fn hostile_delimiters_cost_linear_time() {
        for unit in [
            "*a ", "[", "<!--", "`a ``b ", "<a b='", "[a](<", "](", "_a*", "&a", "\\[", "**a `",
            "![[",
        ] {
            let source = unit.repeat(20_000 / unit.len());
            let whole = Paragraph::of(&[&source]).whole();
            assert!(whole.len() > 5_000, "{unit}");
        }
    }
}
