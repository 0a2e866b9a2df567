//! The block that text goes to: a paragraph, a heading, code, HTML or a table.
//!
//! Takes the content of lines in pieces and writes rows as soon as they are certain. Which line
//! belongs to which leaf is decided by the Markdown machine; containers are known here only as the
//! prefixes of rows.

use std::mem;

use crate::render::flow::Flow;
use crate::render::hold::Inline;
use crate::render::html::Html;
use crate::render::line::Fence;
use crate::render::prefix::Prefix;
use crate::render::table::{Table, may_be_delimiter};
use crate::render::theme::{Page, Role, Style};

/// How long a line can be at most that is held because it may be the head of a table.
const TABLE_HEAD: usize = 64 * 1024;

/// What is open.
#[derive(Debug, Default)]
pub(super) enum Leaf {
    /// Nothing.
    #[default]
    None,
    Paragraph,
    /// The text of a heading so far, and its style.
    Heading(String, Style),
    /// A fenced code block.
    Code(Fence),
    /// Indented code, and how many blank lines wait for more of it.
    Indented(usize),
    Html(Html),
    TableHead(TableHead),
    /// A table and the row that is arriving.
    Table(Box<Table>, String),
}

/// A line that begins with a pipe: the head of a table, if the line below it says so.
#[derive(Debug, Default)]
pub(super) struct TableHead {
    line: String,
    /// Whether it goes on with a paragraph otherwise.
    in_paragraph: bool,
    /// What there is of the line below it.
    below: Option<String>,
}

/// What a piece of a line led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The line is not at its end.
    Open,
    /// It is.
    Whole,
    /// The line is not the leaf's after all: this much of it has to be looked at again.
    Refused(String),
}

/// Where the rows of a leaf stand.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// What stands in front of the first row, where that shows a list marker.
    pub(super) first: Option<Prefix>,
    /// What stands in front of the others.
    pub(super) rest: Prefix,
    /// Markers that have no place in front of the row.
    pub(super) markers: String,
    /// The columns of the terminal.
    pub(super) width: usize,
    /// Whether every row needs its prefix.
    pub(super) quoted: bool,
}

/// The leaf that is open, and the rows it writes.
#[derive(Debug, Default)]
pub(super) struct OpenLeaf {
    leaf: Leaf,
    flow: Flow,
    inline: Inline,
}

impl OpenLeaf {
    /// What is open.
    pub(super) fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// Opens a leaf; the one before it has ended.
    pub(super) fn begin(&mut self, leaf: Leaf, frame: Frame, page: &mut Page) {
        let Frame {
            first,
            rest,
            markers,
            width,
            quoted,
        } = frame;
        self.flow.begin(first, rest, width, quoted);
        self.flow.push(&markers, Role::Frame.style(), page);
        self.inline.begin(Style::default());
        self.leaf = leaf;
    }

    /// Writes an empty row with what stands in front of it.
    pub(super) fn blank_row(&mut self, prefix: Prefix, page: &mut Page) {
        self.flow.begin(None, prefix, 0, false);
        self.flow.end_row(page);
    }

    /// Draws a thematic break.
    pub(super) fn rule(&mut self, page: &mut Page) {
        let columns = self.flow.room();
        self.draw("─", columns, page);
    }

    /// Underlines the paragraph, which ends with that. Its text has been written: it cannot become a
    /// heading any more, but it can look like one.
    pub(super) fn underline(&mut self, mark: char, page: &mut Page) {
        self.end(page);
        let bar = if mark == '=' { "═" } else { "─" };
        let columns = self.flow.last_columns().clamp(1, self.flow.room());
        self.draw(bar, columns, page);
    }

    fn draw(&mut self, bar: &str, columns: usize, page: &mut Page) {
        let style = Role::Frame.style();
        self.flow.push(&bar.repeat(columns), style, page);
        self.flow.finish(page);
    }

    /// Takes a blank line in; false where that ends the leaf.
    pub(super) fn is_open_beyond_blank(&mut self) -> bool {
        match &mut self.leaf {
            Leaf::Indented(blanks) => {
                *blanks += 1;
                true
            }
            _ => false,
        }
    }

    /// Writes the blank lines of indented code that goes on; false where there are none.
    pub(super) fn write_blanks(&mut self, page: &mut Page) -> bool {
        let Leaf::Indented(blanks) = &mut self.leaf else {
            return false;
        };
        let blanks = mem::take(blanks);
        for _ in 0..blanks {
            self.flow.end_row(page);
        }
        blanks > 0
    }

    /// Begins a line of an HTML block.
    pub(super) fn begin_html_line(&mut self, indent: usize, page: &mut Page) {
        self.flow.break_row(page);
        self.indent(indent, page);
    }

    /// Indents the text that follows.
    pub(super) fn indent(&mut self, columns: usize, page: &mut Page) {
        self.flow.indent(columns, page);
    }

    /// Goes over from the paragraph to what may be a table right below it.
    pub(super) fn begin_table_head(&mut self) {
        self.leaf = Leaf::TableHead(TableHead {
            in_paragraph: true,
            ..TableHead::default()
        });
    }

    /// Takes the line that follows as the one below the head of a table.
    pub(super) fn look_below(&mut self) {
        if let Leaf::TableHead(head) = &mut self.leaf {
            head.below = Some(String::new());
        }
    }

    /// Makes a paragraph of a line that is no head of a table.
    pub(super) fn release_table_head(&mut self, page: &mut Page) {
        if let Leaf::TableHead(head) = &mut self.leaf {
            let line = mem::take(&mut head.line);
            self.leaf = Leaf::Paragraph;
            self.inline.feed(&line, &mut self.flow, page);
            self.inline.feed("\n", &mut self.flow, page);
        }
    }

    /// Takes a piece of a line in; a newline can only be at its end.
    pub(super) fn take(&mut self, piece: &str, page: &mut Page) -> Taken {
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
            Leaf::TableHead(head) if head.below.is_some() => return self.take_below(piece, page),
            Leaf::TableHead(head) => {
                head.line.push_str(text);
                if head.line.len() > TABLE_HEAD {
                    let line = mem::take(&mut head.line);
                    self.leaf = Leaf::Paragraph;
                    self.inline.feed(&line, flow, page);
                    self.inline.feed(if is_end { "\n" } else { "" }, flow, page);
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
        if !is_end {
            return Taken::Open;
        }
        let is_over = match &self.leaf {
            Leaf::Heading(..) => true,
            Leaf::Html(html) => html.is_over(),
            _ => false,
        };
        if is_over {
            self.end(page);
        }
        Taken::Whole
    }

    /// Takes a piece of the line in that makes a table of the one above it, or does not.
    fn take_below(&mut self, piece: &str, page: &mut Page) -> Taken {
        let Leaf::TableHead(TableHead {
            line,
            in_paragraph,
            below: Some(below),
        }) = &mut self.leaf
        else {
            return Taken::Open;
        };
        below.push_str(piece);
        let is_whole = piece.ends_with('\n');
        let is_possible = may_be_delimiter(piece.trim_end_matches('\n'))
            && !below.trim_start().starts_with("- ")
            && below.len() < TABLE_HEAD;
        if is_possible && !is_whole {
            return Taken::Open;
        }
        let table = if is_possible {
            Table::begin(line, below.trim_end_matches('\n'))
        } else {
            None
        };
        let Some(table) = table else {
            let below = mem::take(below);
            self.release_table_head(page);
            return Taken::Refused(below);
        };
        if *in_paragraph {
            self.inline.finish(&mut self.flow, page);
            self.flow.finish(page);
        }
        self.leaf = Leaf::Table(Box::new(table), String::new());
        Taken::Whole
    }

    /// Ends the leaf: what is held comes out.
    pub(super) fn end(&mut self, page: &mut Page) {
        self.release_table_head(page);
        let flow = &mut self.flow;
        match mem::take(&mut self.leaf) {
            Leaf::Paragraph => self.inline.finish(flow, page),
            Leaf::Heading(text, style) => {
                self.inline.begin(style);
                self.inline.feed(heading_text(&text), flow, page);
                self.inline.finish(flow, page);
            }
            Leaf::Table(table, _) => table.finish(flow, page),
            Leaf::Html(mut html) => html.finish(flow, page),
            Leaf::None | Leaf::TableHead(_) | Leaf::Code(_) | Leaf::Indented(_) => {}
        }
        self.flow.finish(page);
    }
}

/// The text of a heading without the `#` that may close it.
fn heading_text(line: &str) -> &str {
    let text = line.trim();
    let without_marks = text.trim_end_matches('#');
    if without_marks.is_empty() || without_marks.ends_with([' ', '\t']) {
        without_marks.trim_end()
    } else {
        text
    }
}
