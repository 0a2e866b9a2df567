//! Inline Markdown: a whole slice of a paragraph, a heading or a cell as styled pieces.
//!
//! pulldown-cmark parses the slice, once. What comes out is made harmless here, for an entity such
//! as `&#27;` is a control character only after parsing (SPEC C13). Nothing here knows rows.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::render::text::Span;
use crate::render::theme::{Role, Style};
use crate::sanitize::screen_line;

/// A part of what a slice comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Text that is wrapped at its spaces.
    Text(Span<Style>),
    /// A code span or the text of a link: kept on one row where that costs little.
    Unit(Vec<Span<Style>>),
    /// A line break the author asked for.
    Break,
}

/// What a newline becomes for the parser: an indented line never begins a block inside a paragraph.
const LINE_START: &str = "\n    ";

/// The same where the parser has made the newline of a code span a space.
const CODE_LINE_START: &str = "     ";

/// Parses `slice`, the inline content of one block, between the characters around it.
///
/// The neighbours decide whether a delimiter at the edge opens or closes emphasis; `None` stands for
/// the edge of the block. The result is in `base` and what the Markdown adds to it.
pub(super) fn parse(
    slice: &str,
    before: Option<char>,
    after: Option<char>,
    base: Style,
) -> Vec<Piece> {
    if !slice.contains(is_special) {
        return vec![Piece::Text(span(slice, base))];
    }
    // A stand-in for what comes before also keeps the slice from being read as another block.
    let head = match neighbour(before) {
        Neighbour::Space => "x ",
        Neighbour::Word => "x",
        Neighbour::Punctuation => "x.",
    };
    let tail = match neighbour(after) {
        Neighbour::Space => "",
        Neighbour::Word => "x",
        Neighbour::Punctuation => ".",
    };
    let source = format!("{head}{}{tail}", slice.replace('\n', LINE_START));
    let mut reader = Reader::new(&source, head.len(), base);
    let parser = Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH);
    for (event, range) in parser.into_offset_iter() {
        reader.take(event, range);
    }
    reader.finish(tail.len())
}

/// The pieces of a slice with breaks as newlines, for those who wrap a whole text at once.
pub(super) fn spans(slice: &str, base: Style) -> Vec<Span<Style>> {
    let mut spans = Vec::new();
    for piece in parse(slice, None, None, base) {
        match piece {
            Piece::Text(span) => spans.push(span),
            Piece::Unit(unit) => spans.extend(unit),
            Piece::Break => spans.push(span("\n", base)),
        }
    }
    spans
}

fn is_special(c: char) -> bool {
    matches!(
        c,
        '\\' | '`' | '&' | '<' | '[' | '*' | '_' | '~' | '\n' | '\t'
    ) || c.is_control()
}

fn span(text: &str, style: Style) -> Span<Style> {
    Span {
        text: text.to_owned(),
        style,
    }
}

enum Neighbour {
    Space,
    Word,
    Punctuation,
}

fn neighbour(c: Option<char>) -> Neighbour {
    match c {
        None => Neighbour::Space,
        Some(c) if c.is_whitespace() => Neighbour::Space,
        Some(c) if is_punctuation(c) => Neighbour::Punctuation,
        Some(_) => Neighbour::Word,
    }
}

/// Whether `c` is punctuation in the sense of the rules for emphasis: a symbol, too.
pub(super) fn is_punctuation(c: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Punctuation | GeneralCategoryGroup::Symbol
    )
}

/// Whether an inline tag asks for a line break.
pub(super) fn is_break_tag(tag: &str) -> bool {
    let name = tag
        .trim_start_matches('<')
        .trim_end_matches(['>', '/', ' ']);
    name.eq_ignore_ascii_case("br")
}

/// A link or an image whose end has not come yet.
struct Link {
    url: String,
    title: String,
    /// The text of the link so far, for comparison with the address.
    text: String,
    spans: Vec<Span<Style>>,
    /// Whether the text is all there is to show.
    bare: bool,
}

struct Reader<'a> {
    source: &'a str,
    /// How many bytes of text to drop from the front: the stand-in.
    skip: usize,
    /// The styles in force, the innermost last.
    styles: Vec<Style>,
    links: Vec<Link>,
    /// The end of a link that is shown as it was written; its content is not looked at.
    literal_until: usize,
    pieces: Vec<Piece>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, skip: usize, base: Style) -> Self {
        Self {
            source,
            skip,
            styles: vec![base],
            links: Vec::new(),
            literal_until: 0,
            pieces: Vec::new(),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        if range.start < self.literal_until {
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                let skip = self.skip.min(text.len());
                self.skip -= skip;
                self.text(text.get(skip..).unwrap_or_default(), self.style());
            }
            Event::Code(code) => {
                let style = self.style().over(Role::Code.style());
                let lines = self
                    .source
                    .get(range)
                    .is_some_and(|code| code.contains('\n'));
                let code = if lines {
                    code.replace(CODE_LINE_START, " ").into()
                } else {
                    code
                };
                if self.links.is_empty() {
                    self.pieces
                        .push(Piece::Unit(vec![span(&harmless(&code), style)]));
                } else {
                    self.text(&code, style);
                }
            }
            Event::InlineHtml(tag) | Event::Html(tag) => {
                if is_break_tag(&tag) {
                    self.line_break();
                } else {
                    let style = self.style().over(Role::Frame.style());
                    self.text(&tag.replace(LINE_START, " "), style);
                }
            }
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.line_break(),
            // None of these is switched on.
            Event::FootnoteReference(_)
            | Event::TaskListMarker(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Rule => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        let style = self.style();
        match tag {
            Tag::Emphasis => self.styles.push(style.with(Style::ITALIC)),
            Tag::Strong => self.styles.push(style.with(Style::BOLD)),
            Tag::Strikethrough => self.styles.push(style.with(Style::STRIKE)),
            Tag::Link {
                link_type,
                dest_url,
                title,
                ..
            } => {
                if is_shown_as_link(&dest_url) {
                    self.styles.push(style.with(Style::UNDERLINE));
                    let bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
                    self.open_link(&dest_url, &title, bare);
                } else {
                    self.literal_until = range.end;
                    self.text(self.source.get(range).unwrap_or_default(), style);
                }
            }
            Tag::Image {
                dest_url, title, ..
            } => {
                // The mark stays: where an image stands alone it has been printed already.
                self.text("!", style);
                self.styles.push(style);
                self.open_link(&dest_url, &title, false);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.close_link();
            }
            _ => {}
        }
    }

    fn open_link(&mut self, url: &str, title: &str, bare: bool) {
        self.links.push(Link {
            url: harmless(url).into_owned(),
            title: harmless(title).into_owned(),
            text: String::new(),
            spans: Vec::new(),
            bare,
        });
    }

    /// Shows a link as its text with the address behind it, unless they are the same.
    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else {
            return;
        };
        let text_is_all = link.bare || (link.text == link.url && link.title.is_empty());
        let text_is_empty = link.text.is_empty();
        if !text_is_empty {
            self.unit(link.spans);
        }
        if text_is_all || (link.url.is_empty() && link.title.is_empty()) {
            return;
        }
        let base = self.style();
        self.text(if text_is_empty { "(" } else { " (" }, base);
        self.text(&link.url, base.over(Role::Address.style()));
        if !link.title.is_empty() {
            let gap = if link.url.is_empty() { "" } else { " " };
            self.text(&format!("{gap}\"{}\"", link.title), base);
        }
        self.text(")", base);
    }

    fn unit(&mut self, spans: Vec<Span<Style>>) {
        if let Some(outer) = self.links.last_mut() {
            outer.spans.extend(spans);
        } else {
            self.pieces.push(Piece::Unit(spans));
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let span = span(&harmless(text), style);
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(&span.text);
            link.spans.push(span);
        } else if let Some(Piece::Text(last)) = self.pieces.last_mut()
            && last.style == style
        {
            last.text.push_str(&span.text);
        } else {
            self.pieces.push(Piece::Text(span));
        }
    }

    fn line_break(&mut self) {
        if self.links.is_empty() {
            self.pieces.push(Piece::Break);
        } else {
            self.text(" ", self.style());
        }
    }

    /// The pieces, without the stand-in of `tail` bytes at the end.
    fn finish(mut self, tail: usize) -> Vec<Piece> {
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.text.truncate(last.text.len().saturating_sub(tail));
            if last.text.is_empty() {
                self.pieces.pop();
            }
        }
        self.pieces
    }
}

/// One line without control characters.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(screen_line(text))
    }
}

/// Whether a link with this target is shown as one: a web or mail address, or one without a scheme.
fn is_shown_as_link(url: &str) -> bool {
    let scheme = url.split(['/', '?', '#']).next().unwrap_or_default();
    match scheme.split_once(':') {
        None => true,
        Some((scheme, _)) => ["http", "https", "mailto"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(slice: &str) -> String {
        spans(slice, Style::default())
            .into_iter()
            .map(|span| span.text)
            .collect()
    }

    #[test]
    fn f8_markup_goes_and_text_stays() {
        for (source, shown) in [
            ("plain", "plain"),
            ("**a** _b_ ~~c~~ `d`", "a b c d"),
            ("1. no list", "1. no list"),
            ("# no *heading*", "# no heading"),
            ("a  \nb\\\nc\nd", "a\nb\nc d"),
            ("a\n- b\n===", "a - b ==="),
            ("x<br>y <b>z</b>", "x\ny <b>z</b>"),
            ("&lt;&amp;&copy; \\*a\\*", "<&© *a*"),
            ("2 * 3 * 4", "2 * 3 * 4"),
            ("`a\nb`", "a b"),
            ("[^1] [a] [a][b]", "[^1] [a] [a][b]"),
        ] {
            assert_eq!(plain(source), shown, "{source:?}");
        }
    }

    #[test]
    fn f8_links_show_their_address_once() {
        for (source, shown) in [
            ("[t](https://e.org)", "t (https://e.org)"),
            ("[https://e.org](https://e.org)", "https://e.org"),
            ("<https://e.org>", "https://e.org"),
            ("<a@e.org>", "a@e.org"),
            ("[t](<a b> 'c')", "t (a b \"c\")"),
            ("[](u)", "(u)"),
            ("![alt](u.png)", "!alt (u.png)"),
            ("[![alt](u.png)](v)", "!alt (u.png) (v)"),
            ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
            ("[*a*](file:///x) *b*", "[*a*](file:///x) b"),
            ("[a **b**](#c)", "a b (#c)"),
        ] {
            assert_eq!(plain(source), shown, "{source:?}");
        }
    }

    #[test]
    fn c13_entities_cannot_smuggle_control_characters_in() {
        assert_eq!(plain("a&#27;[31mb&#8;c&#10;d&#9;e"), "a[31mbc d e");
        assert_eq!(plain("[a](http://&#27;[2J)"), "a (http://)");
        assert!(!plain("`&#27;` <b title='&#27;'>").contains('\x1b'));
    }

    #[test]
    fn neighbours_decide_what_opens_and_closes() {
        let style = Style::default();
        let bold = [Piece::Text(span("a", style.with(Style::BOLD)))];
        assert_eq!(parse("**a**", Some('x'), Some('y'), style), bold);
        assert_eq!(parse("**a**", Some('.'), None, style), bold);
        let literal = [Piece::Text(span("_a_", style))];
        assert_eq!(parse("_a_", Some('x'), None, style), literal);
        assert_eq!(parse("_a_", None, Some('x'), style), literal);
        assert_eq!(
            parse("**「重要」**", None, Some('で'), style)[0],
            Piece::Text(span("**「重要」**", style))
        );
    }
}
