//! Markdown that is laid out while it arrives: the blocks of a document, line by line.
//!
//! A small machine of containers (quotes, list items) and one open leaf (a paragraph, a fence, a
//! table …). Of each line only the start is held, until it is clear what the line is; what follows
//! goes on to the leaf at once. Nothing that has been written is revised, every byte is looked at a
//! constant number of times, and the result does not depend on how the text is cut into pieces (SPEC
//! F8). What inline text means is the parser's business ([`super::inline`]).

use std::mem;
use std::rc::Rc;

use crate::render::flow::{Flow, Prefix};
use crate::render::hold::Inline;
use crate::render::html::Html;
use crate::render::line::{Fence, Kind, Marker, Paragraph, classify, closes};
use crate::render::table::{Table, may_be_delimiter};
use crate::render::theme::{Page, Role, Style};

/// How many bytes of a line may be undecided; what is not clear by then is text.
const START: usize = 256;
/// How deep containers nest; deeper markers are text.
const DEPTH: usize = 50;
/// How long a line can be at most that is held because it may be the head of a table.
const TABLE_HEAD: usize = 64 * 1024;
/// The distance of tab stops.
const TAB: usize = 4;

/// Tells how many columns there are at the moment.
pub(super) type Width<'a> = Rc<dyn Fn() -> usize + 'a>;

#[derive(Debug, Clone, Copy)]
enum Container {
    Quote,
    Item {
        marker: Marker,
        /// How many columns of a line belong to the item: its marker and the spaces around it.
        indent: usize,
        /// Whether the marker has been written.
        written: bool,
    },
}

/// The block that text goes to.
#[derive(Debug, Default)]
enum Leaf {
    #[default]
    None,
    Paragraph,
    /// The text of a heading so far, and its style.
    Heading(String, Style),
    Code(Fence),
    /// Indented code, and how many blank lines wait for more of it.
    Indented(usize),
    Html(Html),
    /// A line that may be the head of a table, whether it would else belong to a paragraph, and
    /// what there is of the line below it.
    TableHead(String, bool, Option<String>),
    /// A table and the row that is arriving.
    Table(Box<Table>, String),
}

/// A document that arrives in pieces.
pub(super) struct Markdown<'a> {
    width: Width<'a>,
    containers: Vec<Container>,
    leaf: Leaf,
    /// The start of the line, as long as it is not decided what it is.
    line: String,
    /// The column of the source at which that begins.
    column: usize,
    /// How many of the containers the line goes on with.
    matched: usize,
    /// Whether it goes on with no more of them.
    departed: bool,
    /// Whether the rest of the line goes to the leaf.
    in_leaf: bool,
    /// How many containers were open at the blank line that is due.
    blank: Option<usize>,
    /// Whether anything has been written.
    begun: bool,
    /// Whether the first row of the leaf shows a list marker.
    marker_due: bool,
    flow: Flow,
    inline: Inline,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(width: Width<'a>) -> Self {
        Self {
            width,
            containers: Vec::new(),
            leaf: Leaf::None,
            line: String::new(),
            column: 0,
            matched: 0,
            departed: false,
            in_leaf: false,
            blank: None,
            begun: false,
            marker_due: false,
            flow: Flow::default(),
            inline: Inline::default(),
        }
    }

    /// Takes a piece of the document in; it has no control characters but newlines and tabs.
    pub(super) fn push(&mut self, text: &str, page: &mut Page) {
        for line in text.split_inclusive('\n') {
            if self.in_leaf {
                self.to_leaf(line, page);
            } else {
                self.decide(line, page);
            }
        }
    }

    /// Adds to the start of a line and goes as far as it lets.
    fn decide(&mut self, piece: &str, page: &mut Page) {
        self.line.push_str(piece);
        while !self.in_leaf && !self.line.is_empty() && self.advance(page) {}
    }

    /// Ends the document: what is held comes out, and everything is as at the start.
    pub(super) fn finish(&mut self, page: &mut Page) {
        if self.in_leaf || !self.line.is_empty() {
            self.push("\n", page);
        }
        self.end_leaf(page);
        self.close_to(0, page);
        self.blank = None;
        self.begun = false;
    }

    /// Takes one step with the start of a line; false where more of it is needed.
    fn advance(&mut self, page: &mut Page) -> bool {
        self.expand_indent();
        let start = self.start();
        let is_cut = start.len() < self.line.len() || start.len() >= START;
        let text = start.trim_start_matches(' ');
        let indent = start.len() - text.len();
        if text.is_empty() && !is_cut {
            return false;
        }
        if !self.departed && self.matched < self.containers.len() {
            return self.match_container(indent) || is_cut && self.depart();
        }
        let text = text.to_owned();
        self.begin_line(&text, indent, page)
            || is_cut && self.begin(&Kind::Text, &text, indent, page)
    }

    /// As much of the line's start as is looked at: so it is the same however much has come.
    fn start(&self) -> &str {
        if self.line.len() <= START {
            return &self.line;
        }
        let mut end = START;
        while !self.line.is_char_boundary(end) {
            end -= 1;
        }
        self.line.get(..end).unwrap_or_default()
    }

    fn depart(&mut self) -> bool {
        self.departed = true;
        true
    }

    /// Looks whether the line goes on with the next container, and takes that part of it off.
    fn match_container(&mut self, indent: usize) -> bool {
        let text = self.line.get(indent..).unwrap_or_default();
        match self.containers.get(self.matched) {
            Some(Container::Quote) if indent < 4 && text.starts_with('>') => {
                if text.len() == 1 {
                    return false;
                }
                self.consume(indent + 1);
                self.consume_space();
                self.matched += 1;
            }
            Some(Container::Item { .. }) if text == "\n" => self.matched += 1,
            Some(Container::Item { indent: own, .. }) if indent >= *own => {
                let own = *own;
                self.consume(own);
                self.matched += 1;
            }
            _ => self.departed = true,
        }
        true
    }

    fn goes_on_with_all(&self) -> bool {
        self.matched == self.containers.len()
    }

    /// Finds out what the line is, containers apart, and begins it.
    fn begin_line(&mut self, text: &str, indent: usize, page: &mut Page) -> bool {
        let is_whole = text.ends_with('\n');
        let line = text.trim_end_matches('\n');
        let all = self.goes_on_with_all();
        match &mut self.leaf {
            Leaf::Code(fence) if all => {
                let fence = *fence;
                let is_end = if indent < 4 && line.starts_with(fence.mark) {
                    closes(line, is_whole, fence)
                } else {
                    Some(false)
                };
                return is_end.is_some_and(|is_end| self.code_line(fence, indent, is_end, page));
            }
            Leaf::Html(html) if all && !(html.ends_at_blank() && text == "\n") => {
                html.begin_line(indent, &mut self.flow, page);
                return self.enter_leaf(indent, page);
            }
            Leaf::TableHead(_, _, below)
                if all && indent < 4 && may_be_delimiter(line) && !line.starts_with("- ") =>
            {
                *below = Some(String::new());
                return self.enter_leaf(indent, page);
            }
            Leaf::TableHead(..) => {
                self.release_table_head("\n", page);
                return true;
            }
            _ => {}
        }
        let paragraph = match &self.leaf {
            Leaf::Paragraph if all => Paragraph::Above,
            Leaf::Paragraph => Paragraph::Lazy,
            _ => Paragraph::None,
        };
        classify(text, indent, paragraph).is_some_and(|kind| self.begin(&kind, text, indent, page))
    }

    fn begin(&mut self, kind: &Kind, text: &str, indent: usize, page: &mut Page) -> bool {
        let is_deep = self.matched >= DEPTH;
        match kind {
            Kind::Blank => self.blank_line(page),
            Kind::Quote if text.len() == 1 => return false,
            Kind::Quote if !is_deep => {
                self.open(Container::Quote, page);
                self.consume(indent + 1);
                self.consume_space();
            }
            Kind::Item(marker, length) if !is_deep => {
                self.begin_item(*marker, indent + length, page);
            }
            Kind::Heading(level) => {
                self.replace_leaf(Leaf::Heading(String::new(), heading_style(*level)), page);
                return self.enter_leaf(indent + level, page);
            }
            Kind::Fence(fence) => {
                self.replace_leaf(Leaf::Code(*fence), page);
                self.begin_leaf(page);
                self.end_source_line();
            }
            Kind::Rule => {
                self.replace_leaf(Leaf::None, page);
                self.begin_leaf(page);
                self.draw_rule("─", self.flow.room(), page);
                self.end_source_line();
            }
            Kind::Underline(mark) => {
                self.end_leaf(page);
                let bar = if *mark == '=' { "═" } else { "─" };
                self.draw_rule(bar, self.flow.last_columns().max(1), page);
                self.end_source_line();
            }
            Kind::Html(end) => {
                self.replace_leaf(Leaf::Html(Html::new(*end)), page);
                self.begin_leaf(page);
                self.flow.indent(indent, page);
                return self.enter_leaf(indent, page);
            }
            Kind::Pipe => self.begin_pipe_line(indent, page),
            Kind::Indented => {
                self.begin_indented_line(page);
                return self.enter_leaf(4, page);
            }
            Kind::Text | Kind::Quote | Kind::Item(..) => {
                if matches!(self.leaf, Leaf::Table(..)) && self.goes_on_with_all() {
                    return self.enter_leaf(0, page);
                }
                if !matches!(self.leaf, Leaf::Paragraph) {
                    self.begin_paragraph(page);
                }
                return self.enter_leaf(indent, page);
            }
        }
        true
    }

    fn blank_line(&mut self, page: &mut Page) {
        let goes_on_with_all = self.goes_on_with_all();
        match &mut self.leaf {
            Leaf::Indented(blanks) if goes_on_with_all => *blanks += 1,
            _ => self.end_leaf(page),
        }
        self.close_to(self.matched, page);
        self.blank = Some(self.containers.len());
        self.end_source_line();
    }

    fn begin_item(&mut self, marker: Marker, length: usize, page: &mut Page) {
        let marker = match (self.containers.get(self.matched), marker) {
            (Some(Container::Item { marker: last, .. }), Marker::Number(_, delimiter))
                if last.is_like(marker) =>
            {
                match last {
                    Marker::Number(number, _) => Marker::Number(number + 1, delimiter),
                    Marker::Bullet(_) => marker,
                }
            }
            _ => marker,
        };
        self.close_to(self.matched, page);
        self.end_leaf(page);
        self.consume(length);
        self.expand_indent();
        let text = self.line.trim_start_matches(' ');
        let spaces = self.line.len() - text.len();
        let padding = if text == "\n" || spaces > 4 {
            1
        } else {
            spaces
        };
        if text != "\n" {
            self.consume(padding);
        }
        let item = Container::Item {
            marker,
            indent: length + padding,
            written: false,
        };
        self.open(item, page);
    }

    fn begin_paragraph(&mut self, page: &mut Page) {
        self.replace_leaf(Leaf::Paragraph, page);
        self.begin_leaf(page);
        self.inline.begin(Style::default());
    }

    fn begin_pipe_line(&mut self, indent: usize, page: &mut Page) {
        let goes_on_with_all = self.goes_on_with_all();
        match &self.leaf {
            Leaf::Table(..) if goes_on_with_all => {}
            Leaf::Paragraph if goes_on_with_all => {
                self.leaf = Leaf::TableHead(String::new(), true, None);
            }
            Leaf::Paragraph => {}
            _ => self.replace_leaf(Leaf::TableHead(String::new(), false, None), page),
        }
        self.enter_leaf(indent, page);
    }

    fn begin_indented_line(&mut self, page: &mut Page) {
        let blanks = match &mut self.leaf {
            Leaf::Indented(blanks) => mem::take(blanks),
            _ => {
                self.replace_leaf(Leaf::Indented(0), page);
                self.begin_leaf(page);
                0
            }
        };
        if blanks > 0 {
            self.blank = None;
        }
        for _ in 0..blanks {
            self.flow.end_row(page);
        }
    }

    /// A line of a fenced block: its end, or code, of which the fence's indentation is taken off.
    fn code_line(&mut self, fence: Fence, indent: usize, is_end: bool, page: &mut Page) -> bool {
        if is_end {
            self.end_leaf(page);
            self.end_source_line();
            return true;
        }
        self.enter_leaf(indent.min(fence.indent), page)
    }

    /// Takes in a piece of a line that may be the head of a table, or of the line below it.
    fn table_head(&mut self, piece: &str, page: &mut Page) {
        let Leaf::TableHead(head, in_paragraph, below) = &mut self.leaf else {
            return;
        };
        let text = piece.strip_suffix('\n').unwrap_or(piece);
        let is_end = text.len() < piece.len();
        let Some(below) = below else {
            head.push_str(text);
            if head.len() > TABLE_HEAD {
                self.release_table_head(if is_end { "\n" } else { "" }, page);
            }
            return;
        };
        below.push_str(piece);
        if may_be_delimiter(text) && !below.starts_with("- ") && below.len() < TABLE_HEAD && !is_end
        {
            return;
        }
        let table = Table::begin(head, below.trim_end_matches('\n')).filter(|_| is_end);
        if let Some(table) = table {
            let is_paragraph = *in_paragraph;
            self.leaf = if is_paragraph {
                Leaf::Paragraph
            } else {
                Leaf::None
            };
            self.replace_leaf(Leaf::Table(Box::new(table), String::new()), page);
            self.begin_leaf(page);
        } else {
            let below = mem::take(below);
            self.release_table_head("\n", page);
            self.in_leaf = false;
            self.decide(&below, page);
        }
    }

    /// Goes on with the line that is held as with a paragraph.
    fn release_table_head(&mut self, end: &str, page: &mut Page) {
        let Leaf::TableHead(head, in_paragraph, _) = &mut self.leaf else {
            return;
        };
        let (head, in_paragraph) = (mem::take(head), *in_paragraph);
        self.leaf = Leaf::Paragraph;
        if !in_paragraph {
            self.begin_leaf(page);
            self.inline.begin(Style::default());
        }
        self.inline.feed(&head, &mut self.flow, page);
        self.inline.feed(end, &mut self.flow, page);
    }

    /// Hands the line to the leaf from byte `skip` on, and all that is still to come of it.
    fn enter_leaf(&mut self, skip: usize, page: &mut Page) -> bool {
        self.in_leaf = true;
        let line = mem::take(&mut self.line);
        self.to_leaf(line.get(skip..).unwrap_or_default(), page);
        if self.line.is_empty() {
            // The allocation is used again.
            self.line = line;
            self.line.clear();
        }
        true
    }

    /// Hands a piece of a line to the leaf; a newline can only be at its end.
    fn to_leaf(&mut self, piece: &str, page: &mut Page) {
        let text = piece.strip_suffix('\n').unwrap_or(piece);
        let is_end = text.len() < piece.len();
        let flow = &mut self.flow;
        match &mut self.leaf {
            Leaf::None => {}
            Leaf::Paragraph => self.inline.feed(piece, flow, page),
            Leaf::Heading(heading, _) => heading.push_str(text),
            Leaf::Code(_) | Leaf::Indented(_) => {
                flow.code(text, Role::Code.style(), page);
                if is_end {
                    flow.end_row(page);
                }
            }
            Leaf::Html(html) => html.push(piece, flow, page),
            Leaf::TableHead(..) => {
                self.table_head(piece, page);
                if !self.in_leaf {
                    return;
                }
            }
            Leaf::Table(table, row) => {
                row.push_str(text);
                if is_end {
                    table.push(row, flow, page);
                    row.clear();
                }
            }
        }
        if is_end {
            let is_over = match &self.leaf {
                Leaf::Heading(..) => true,
                Leaf::Html(html) => html.is_over(),
                _ => false,
            };
            if is_over {
                self.end_leaf(page);
            }
            self.end_source_line();
        }
    }

    fn end_source_line(&mut self) {
        self.line.clear();
        self.column = 0;
        self.matched = 0;
        self.departed = false;
        self.in_leaf = false;
    }

    /// Ends the open leaf and the containers the line does not go on with, and opens `leaf`.
    fn replace_leaf(&mut self, leaf: Leaf, page: &mut Page) {
        self.end_leaf(page);
        self.close_to(self.matched, page);
        self.leaf = leaf;
    }

    fn end_leaf(&mut self, page: &mut Page) {
        self.release_table_head("\n", page);
        match mem::take(&mut self.leaf) {
            Leaf::None | Leaf::TableHead(..) => return,
            Leaf::Paragraph => self.inline.finish(&mut self.flow, page),
            Leaf::Heading(text, style) => self.put_heading(&text, style, page),
            Leaf::Table(table, _) => table.finish(&mut self.flow, page),
            Leaf::Html(mut html) => html.finish(&mut self.flow, page),
            Leaf::Code(_) | Leaf::Indented(_) => {}
        }
        self.flow.finish(page);
        if mem::take(&mut self.marker_due) && self.flow.is_untouched() {
            self.flow.end_row(page);
        }
    }

    fn put_heading(&mut self, text: &str, style: Style, page: &mut Page) {
        let text = text.trim();
        let without_marks = text.trim_end_matches('#');
        let text = if without_marks.is_empty() || without_marks.ends_with([' ', '\t']) {
            without_marks.trim_end()
        } else {
            text
        };
        self.begin_leaf(page);
        self.inline.begin(style);
        self.inline.feed(text, &mut self.flow, page);
        self.inline.finish(&mut self.flow, page);
    }

    fn draw_rule(&mut self, bar: &str, columns: usize, page: &mut Page) {
        let rule = bar.repeat(columns.min(self.flow.room()));
        self.flow.push(&rule, Role::Frame.style(), page);
        self.flow.finish(page);
    }

    /// Opens a container inside those the line goes on with.
    fn open(&mut self, container: Container, page: &mut Page) {
        self.end_leaf(page);
        self.close_to(self.matched, page);
        self.containers.push(container);
        self.matched = self.containers.len();
    }

    /// Closes all but the first `depth` containers; an item that had nothing shows its marker.
    fn close_to(&mut self, depth: usize, page: &mut Page) {
        if self.containers.len() <= depth {
            return;
        }
        self.end_leaf(page);
        let is_unwritten =
            |container: &Container| matches!(container, Container::Item { written: false, .. });
        if self.containers.iter().skip(depth).any(is_unwritten) {
            self.begin_leaf(page);
            self.flow.finish(page);
            if self.flow.is_untouched() {
                self.flow.end_row(page);
            }
            self.marker_due = false;
        }
        self.containers.truncate(depth);
        self.blank = self.blank.map(|blank| blank.min(depth));
    }

    /// Begins the rows of a leaf: the blank row that is due, the width at hand, the prefixes.
    fn begin_leaf(&mut self, page: &mut Page) {
        let width = (self.width)().max(1);
        let limit = (width / 2).max(width.saturating_sub(20));
        if let Some(depth) = self.blank.take()
            && self.begun
        {
            let (prefix, _) = prefix(
                self.containers.get(..depth).unwrap_or_default(),
                limit,
                false,
            );
            self.flow.begin(prefix.clone(), prefix, width, false);
            self.flow.end_row(page);
        }
        self.begun = true;
        let (first, fitting) = prefix(&self.containers, limit, true);
        let (rest, _) = prefix(&self.containers, limit, false);
        let is_quoted = |container: &Container| matches!(container, Container::Quote);
        let quoted = self.containers.iter().take(fitting).any(is_quoted);
        self.flow.begin(first, rest, width, quoted);
        for (index, container) in self.containers.iter_mut().enumerate() {
            let Container::Item {
                marker, written, ..
            } = container
            else {
                continue;
            };
            if !mem::replace(written, true) {
                self.marker_due = true;
                if index >= fitting {
                    let (text, style) = (shown(*marker), Role::Frame.style());
                    self.flow.push(&text, style, page);
                }
            }
        }
    }

    /// Replaces tabs in front of the line's text by spaces, up to the next tab stop each.
    fn expand_indent(&mut self) {
        let end = self
            .line
            .bytes()
            .position(|byte| !matches!(byte, b' ' | b'\t'));
        let end = end.unwrap_or(self.line.len()).min(START);
        let Some(indent) = self.line.get(..end).filter(|indent| indent.contains('\t')) else {
            return;
        };
        let mut columns = 0;
        for byte in indent.bytes() {
            let at = self.column + columns;
            columns += if byte == b'\t' { TAB - at % TAB } else { 1 };
        }
        self.line.replace_range(..end, &" ".repeat(columns));
    }

    fn consume(&mut self, bytes: usize) {
        self.line.drain(..bytes.min(self.line.len()));
        self.column += bytes;
    }

    /// Takes off the space that may follow the mark of a quote.
    fn consume_space(&mut self) {
        self.expand_indent();
        if self.line.starts_with(' ') {
            self.consume(1);
        }
    }
}

fn heading_style(level: usize) -> Style {
    let style = Role::Heading.style();
    if level == 1 {
        style.with(Style::UNDERLINE)
    } else {
        style
    }
}

/// What stands in front of the rows inside `containers`, as far as it fits into `limit` columns, and
/// how many of them do.
fn prefix(containers: &[Container], limit: usize, is_first: bool) -> (Prefix, usize) {
    let mut prefix = Prefix::default();
    for (index, container) in containers.iter().enumerate() {
        let text = match container {
            Container::Quote => "│ ".to_owned(),
            Container::Item { marker, .. } => shown(*marker),
        };
        let columns = text.chars().count();
        if prefix.columns() + columns > limit {
            return (prefix, index);
        }
        match container {
            Container::Item { written, .. } if *written || !is_first => {
                prefix.push(&" ".repeat(columns), Style::default());
            }
            _ => prefix.push(&text, Role::Frame.style()),
        }
    }
    (prefix, containers.len())
}

/// How a list marker is shown.
fn shown(marker: Marker) -> String {
    match marker {
        Marker::Bullet(_) => "• ".to_owned(),
        Marker::Number(number, delimiter) => format!("{number}{delimiter} "),
    }
}
