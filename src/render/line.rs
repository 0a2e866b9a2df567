//! The source line that is arriving, and what it begins, told from as few of its first characters as
//! possible.
//!
//! Where more characters could change the answer there is none yet, so that the answer never depends
//! on how the text arrives. What follows from it is not known here.

use std::mem;

/// How many bytes of a line may be undecided; what is not clear by then is text.
const START: usize = 256;
/// The distance of tab stops.
const TAB: usize = 4;

/// The source line that is arriving.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Its start, as long as it is not decided what it is.
    pub(super) start: String,
    /// The column of the source at which that begins.
    column: usize,
    /// How many of the containers it goes on with.
    pub(super) matched: usize,
    /// Whether it goes on with no more of them.
    pub(super) departed: bool,
    /// Whether the rest of it goes to the leaf.
    pub(super) in_leaf: bool,
}

impl Line {
    /// As much of the start as is looked at: so it is the same however much has come.
    pub(super) fn window(&self) -> &str {
        let mut end = START.min(self.start.len());
        while !self.start.is_char_boundary(end) {
            end -= 1;
        }
        self.start.get(..end).unwrap_or_default()
    }

    /// Whether there is more than is looked at, or may be: what is undecided then stays so.
    pub(super) fn is_cut(&self) -> bool {
        self.start.len() > START || self.window().len() >= START
    }

    /// Replaces tabs in front of the text by spaces, up to the next tab stop each.
    pub(super) fn expand_indent(&mut self) {
        let is_space = |byte: u8| matches!(byte, b' ' | b'\t');
        let end = self.start.bytes().position(|byte| !is_space(byte));
        let end = end.unwrap_or(self.start.len()).min(START);
        let Some(indent) = self.start.get(..end).filter(|indent| indent.contains('\t')) else {
            return;
        };
        let mut columns = 0;
        for byte in indent.bytes() {
            let at = self.column + columns;
            columns += if byte == b'\t' { TAB - at % TAB } else { 1 };
        }
        self.start.replace_range(..end, &" ".repeat(columns));
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start.drain(..bytes.min(self.start.len()));
        self.column += bytes;
    }

    /// Takes off the mark of a quote and the space that may follow it.
    pub(super) fn consume_quote(&mut self, indent: usize) {
        self.consume(indent + 1);
        self.expand_indent();
        if self.start.starts_with(' ') {
            self.consume(1);
        }
    }

    pub(super) fn end(&mut self) {
        let mut start = mem::take(&mut self.start);
        start.clear();
        *self = Self {
            start,
            ..Self::default()
        };
    }
}

/// What a line turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but spaces.
    Blank,
    /// A `>`.
    Quote,
    /// A list marker of so many bytes.
    Item(Marker, usize),
    /// A heading with so many `#`.
    Heading(usize),
    /// The opening of a fenced code block.
    Fence(Fence),
    /// A thematic break.
    Rule,
    /// What makes the paragraph above a heading.
    Underline(char),
    /// The start of an HTML block.
    Html(HtmlEnd),
    /// A line that begins with a pipe: perhaps the head of a table.
    Pipe,
    /// The definition of a footnote or of a link, below other text.
    Definition,
    /// Indented by four columns or more.
    Indented,
    /// Anything else.
    Text,
}

/// The marker of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// A bullet by its character.
    Bullet(char),
    /// A number and the character behind it.
    Number(u64, char),
}

impl Marker {
    /// The marker that is shown after an item with the marker `before`: in a list, numbers count on.
    pub(super) fn after(self, before: Self) -> Self {
        match (before, self) {
            (Self::Number(number, a), Self::Number(_, b)) if a == b => Self::Number(number + 1, b),
            _ => self,
        }
    }
}

/// What opened a fenced code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) length: usize,
    /// How far it is indented: as much is taken off its lines.
    pub(super) indent: usize,
}

/// What ends an HTML block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// A blank line.
    Blank,
    /// A line that holds one of these.
    Holding(&'static [&'static str]),
}

/// What paragraph the line could belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paragraph {
    /// None.
    None,
    /// One in a container whose marker the line lacks.
    Lazy,
    /// One right above it.
    Above,
}

/// What the line is that begins with `text`, after `indent` columns of spaces; a newline stands at
/// its end if the whole line is there. `None` where that depends on what follows.
pub(super) fn classify(text: &str, indent: usize, paragraph: Paragraph) -> Option<Kind> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let is_whole = line.len() < text.len();
    let Some(first) = line.chars().next() else {
        return is_whole.then_some(Kind::Blank);
    };
    if indent >= 4 {
        return Some(if paragraph == Paragraph::None {
            Kind::Indented
        } else {
            Kind::Text
        });
    }
    let above = paragraph == Paragraph::Above;
    match first {
        '>' => Some(Kind::Quote),
        '|' => Some(Kind::Pipe),
        '#' => heading(line, is_whole),
        '`' | '~' => fence(line, is_whole, first, indent),
        '<' => html(line, is_whole),
        '[' if paragraph != Paragraph::None => definition(line, is_whole),
        '=' if above => match is_run(line, first) {
            true if is_whole => Some(Kind::Underline(first)),
            true => None,
            false => Some(Kind::Text),
        },
        '-' | '*' | '_' | '+' => dashes(line, is_whole, first, above),
        '0'..='9' => number(line, is_whole, above),
        _ => Some(Kind::Text),
    }
}

/// Whether `line` closes `fence`; `None` where that depends on what follows.
pub(super) fn closes(line: &str, is_whole: bool, fence: Fence) -> Option<bool> {
    let spaces = line.trim_start_matches(fence.mark);
    let length = line.len() - spaces.len();
    if !spaces.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
        Some(false)
    } else if is_whole {
        Some(length >= fence.length)
    } else {
        None
    }
}

/// Whether the line is nothing but `mark` and then spaces.
fn is_run(line: &str, mark: char) -> bool {
    let spaces = line.trim_start_matches(mark);
    spaces.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn heading(line: &str, is_whole: bool) -> Option<Kind> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    match rest.chars().next() {
        _ if level > 6 => Some(Kind::Text),
        Some(' ' | '\t') => Some(Kind::Heading(level)),
        Some(_) => Some(Kind::Text),
        None => is_whole.then_some(Kind::Heading(level)),
    }
}

fn fence(line: &str, is_whole: bool, mark: char, indent: usize) -> Option<Kind> {
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    if (length < 3 && (is_whole || !info.is_empty())) || (mark == '`' && info.contains(mark)) {
        return Some(Kind::Text);
    }
    (is_whole && length >= 3).then_some(Kind::Fence(Fence {
        mark,
        length,
        indent,
    }))
}

/// A label in brackets with a colon behind it.
fn definition(line: &str, is_whole: bool) -> Option<Kind> {
    let after = line.split_once(']').map(|(_, after)| after);
    match after.map(|after| after.chars().next()) {
        Some(Some(':')) => Some(Kind::Definition),
        Some(Some(_)) => Some(Kind::Text),
        Some(None) | None => is_whole.then_some(Kind::Text),
    }
}

/// A rule, an underline, a bullet, or text that begins with such a character.
fn dashes(line: &str, is_whole: bool, mark: char, above: bool) -> Option<Kind> {
    let is_rule_so_far = mark != '+' && line.chars().all(|c| c == mark || c == ' ' || c == '\t');
    if is_rule_so_far && !is_whole {
        return None;
    }
    if mark == '-' && above && is_run(line, mark) {
        return Some(Kind::Underline(mark));
    }
    if is_rule_so_far && line.matches(mark).count() >= 3 {
        return Some(Kind::Rule);
    }
    if mark == '_' {
        return Some(Kind::Text);
    }
    item(line, is_whole, Marker::Bullet(mark), 1, above)
}

fn number(line: &str, is_whole: bool, above: bool) -> Option<Kind> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let (digits, _) = line.split_at(line.len() - rest.len());
    let Some(delimiter) = rest.chars().next() else {
        return (is_whole || digits.len() > 9).then_some(Kind::Text);
    };
    let Some(number) = digits.parse().ok().filter(|_| digits.len() <= 9) else {
        return Some(Kind::Text);
    };
    if !matches!(delimiter, '.' | ')') || (above && number != 1) {
        return Some(Kind::Text);
    }
    let marker = Marker::Number(number, delimiter);
    item(line, is_whole, marker, digits.len() + 1, above)
}

/// A list item, if a space follows the marker; an empty one does not interrupt a paragraph.
fn item(line: &str, is_whole: bool, marker: Marker, length: usize, above: bool) -> Option<Kind> {
    let rest = line.get(length..).unwrap_or_default();
    match rest.chars().next() {
        Some(' ' | '\t') | None => {}
        Some(_) => return Some(Kind::Text),
    }
    if !rest.trim_start_matches([' ', '\t']).is_empty() {
        return Some(Kind::Item(marker, length));
    }
    if !is_whole {
        return None;
    }
    Some(if above {
        Kind::Text
    } else {
        Kind::Item(marker, length)
    })
}

/// An HTML block that may interrupt a paragraph; other tags are inline HTML to us.
fn html(line: &str, is_whole: bool) -> Option<Kind> {
    const DECLARATIONS: [(&str, &[&str]); 3] =
        [("<!--", &["-->"]), ("<?", &["?>"]), ("<![CDATA[", &["]]>"])];
    for (start, end) in DECLARATIONS {
        if line.starts_with(start) {
            return Some(Kind::Html(HtmlEnd::Holding(end)));
        }
        if start.starts_with(line) && !is_whole {
            return None;
        }
    }
    let Some(rest) = line.strip_prefix("<!") else {
        return html_element(line, is_whole);
    };
    Some(if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Kind::Html(HtmlEnd::Holding(&[">"]))
    } else {
        Kind::Text
    })
}

fn html_element(line: &str, is_whole: bool) -> Option<Kind> {
    let name = line.strip_prefix("</").or_else(|| line.strip_prefix('<'))?;
    let is_closing = line.starts_with("</");
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let name = name.get(..name.len() - rest.len()).unwrap_or_default();
    if rest.is_empty() && !is_whole {
        // Longer than any name of an element: it can be no other.
        return (name.len() > 10).then_some(Kind::Text);
    }
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    let ends_name = |c: char| matches!(c, ' ' | '\t' | '>');
    if !is_closing && is_one_of(&VERBATIM) && (rest.is_empty() || rest.starts_with(ends_name)) {
        return Some(Kind::Html(HtmlEnd::Holding(&VERBATIM_ENDS)));
    }
    if !is_one_of(&BLOCKS) {
        return Some(Kind::Text);
    }
    if rest == "/" && !is_whole {
        return None;
    }
    Some(
        if rest.is_empty() || rest.starts_with(ends_name) || rest.starts_with("/>") {
            Kind::Html(HtmlEnd::Blank)
        } else {
            Kind::Text
        },
    )
}

const VERBATIM: [&str; 4] = ["script", "pre", "style", "textarea"];
const VERBATIM_ENDS: [&str; 4] = ["</script>", "</pre>", "</style>", "</textarea>"];

/// The elements that begin an HTML block (`CommonMark`, HTML blocks, condition 6).
#[rustfmt::skip]
const BLOCKS: [&str; 62] = [
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center",
    "col", "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5",
    "h6", "head", "header", "hr", "html", "iframe", "legend", "li", "link", "main", "menu",
    "menuitem", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search", "section",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn above(text: &str) -> Option<Kind> {
        classify(text, 0, Paragraph::Above)
    }

    fn alone(text: &str) -> Option<Kind> {
        classify(text, 0, Paragraph::None)
    }

    #[test]
    fn lines_are_known_from_their_first_characters() {
        let bullet = |c| Some(Kind::Item(Marker::Bullet(c), 1));
        let numbered = |n, c, l| Some(Kind::Item(Marker::Number(n, c), l));
        let fence = |mark, length| {
            Some(Kind::Fence(Fence {
                mark,
                length,
                indent: 0,
            }))
        };
        for (text, kind) in [
            ("\n", Some(Kind::Blank)),
            ("w", Some(Kind::Text)),
            ("#", None),
            ("##", None),
            ("## ", Some(Kind::Heading(2))),
            ("#\n", Some(Kind::Heading(1))),
            ("#h", Some(Kind::Text)),
            ("#######", Some(Kind::Text)),
            ("-", None),
            ("- ", None),
            ("- a", bullet('-')),
            ("-\n", bullet('-')),
            ("-a", Some(Kind::Text)),
            ("---", None),
            ("---\n", Some(Kind::Rule)),
            ("- - -\n", Some(Kind::Rule)),
            ("- - a", bullet('-')),
            ("**", None),
            ("**b", Some(Kind::Text)),
            ("* b", bullet('*')),
            ("+ b", bullet('+')),
            ("___\n", Some(Kind::Rule)),
            ("_a", Some(Kind::Text)),
            ("1", None),
            ("1.", None),
            ("1. ", None),
            ("1. a", numbered(1, '.', 2)),
            ("12) a", numbered(12, ')', 3)),
            ("1.5", Some(Kind::Text)),
            ("1234567890", Some(Kind::Text)),
            ("``", None),
            ("``a", Some(Kind::Text)),
            ("```rust", None),
            ("```rust\n", fence('`', 3)),
            ("```a`", Some(Kind::Text)),
            ("~~~~\n", fence('~', 4)),
            ("~~a", Some(Kind::Text)),
            ("|", Some(Kind::Pipe)),
            (">", Some(Kind::Quote)),
            ("<", None),
            ("<di", None),
            ("<div>", Some(Kind::Html(HtmlEnd::Blank))),
            ("</div", None),
            ("</div>", Some(Kind::Html(HtmlEnd::Blank))),
            ("<divx>", Some(Kind::Text)),
            ("<b>", Some(Kind::Text)),
            ("<!-- x", Some(Kind::Html(HtmlEnd::Holding(&["-->"])))),
            ("< a", Some(Kind::Text)),
            ("<https://", Some(Kind::Text)),
            ("=", Some(Kind::Text)),
        ] {
            assert_eq!(alone(text), kind, "{text:?}");
        }
    }

    #[test]
    fn a_paragraph_above_changes_what_a_line_is() {
        for (text, kind) in [
            ("=", None),
            ("=\n", Some(Kind::Underline('='))),
            ("== \n", Some(Kind::Underline('='))),
            ("=a", Some(Kind::Text)),
            ("-\n", Some(Kind::Underline('-'))),
            ("---\n", Some(Kind::Underline('-'))),
            ("***\n", Some(Kind::Rule)),
            ("*\n", Some(Kind::Text)),
            ("7. a", Some(Kind::Text)),
            ("1. a", Some(Kind::Item(Marker::Number(1, '.'), 2))),
            ("1.\n", Some(Kind::Text)),
        ] {
            assert_eq!(above(text), kind, "{text:?}");
        }
        assert_eq!(classify("a", 4, Paragraph::Lazy), Some(Kind::Text));
        assert_eq!(classify("a", 4, Paragraph::None), Some(Kind::Indented));
    }

    #[test]
    fn an_answer_never_changes_with_what_follows() {
        for line in [
            "- - - a\n",
            "---\n",
            "```a`b\n",
            "12. x\n",
            "<div x>\n",
            "<!-->\n",
            "## \n",
            "~~~ x\n",
            "1234567890. x\n",
            "<textarea>\n",
            "<abcdefghijklmn>\n",
            "</p/>\n",
            "<p/>\n",
        ] {
            for paragraph in [Paragraph::None, Paragraph::Lazy, Paragraph::Above] {
                let last = classify(line, 0, paragraph);
                assert!(last.is_some(), "{line:?}");
                for end in 1..line.len() {
                    let early = classify(&line[..end], 0, paragraph);
                    assert!(early.is_none() || early == last, "{:?}", &line[..end]);
                }
            }
        }
    }
}
