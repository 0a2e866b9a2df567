//! Markdown that is laid out while it arrives: the blocks of a document, line by line.
//!
//! A small machine of containers (quotes, list items) around one open leaf (a paragraph, a table …).
//! Of each line only the start is held, until it is clear what the line is; what follows goes on to
//! the leaf at once. Nothing that has been written is revised, every byte is looked at a constant
//! number of times, and the result does not depend on how the text is cut into pieces (SPEC F8).
//! What inline text means is the parser's business ([`super::inline`]).

use std::mem;
use std::rc::Rc;

use crate::render::html::Html;
use crate::render::leaf::{Frame, Leaf, OpenLeaf, TableHead, Taken};
use crate::render::line::{Fence, Kind, Line, Marker, Paragraph, classify, closes};
use crate::render::prefix::{Container, Prefix};
use crate::render::table::may_be_delimiter;
use crate::render::theme::{Page, Role, Style};

/// How deep containers nest; deeper markers are text.
const DEPTH: usize = 50;
/// Tells how many columns there are at the moment.
pub(super) type Width<'a> = Rc<dyn Fn() -> usize + 'a>;

/// A document that arrives in pieces.
pub(super) struct Markdown<'a> {
    width: Width<'a>,
    containers: Vec<Container>,
    leaf: OpenLeaf,
    line: Line,
    /// How many containers were open at the blank line that is due.
    blank: Option<usize>,
    /// Whether anything has been written.
    begun: bool,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(width: Width<'a>) -> Self {
        Self {
            width,
            containers: Vec::new(),
            leaf: OpenLeaf::default(),
            line: Line::default(),
            blank: None,
            begun: false,
        }
    }

    /// Takes a piece of the document in; it has no control characters but newlines and tabs.
    pub(super) fn push(&mut self, text: &str, page: &mut Page) {
        for piece in text.split_inclusive('\n') {
            if self.line.in_leaf {
                self.feed(piece, page);
            } else {
                self.decide(piece, page);
            }
        }
    }

    /// Ends the document: what is held comes out, and everything is as at the start.
    pub(super) fn finish(&mut self, page: &mut Page) {
        if self.line.in_leaf || !self.line.start.is_empty() {
            self.push("\n", page);
        }
        self.leaf.end(page);
        self.close_to(0, page);
        self.blank = None;
        self.begun = false;
    }

    /// Adds to the start of a line and goes as far as that lets.
    fn decide(&mut self, piece: &str, page: &mut Page) {
        self.line.start.push_str(piece);
        while !self.line.in_leaf && !self.line.start.is_empty() && self.advance(page) {}
    }

    /// Takes one step with the start of a line; false where more of it is needed.
    fn advance(&mut self, page: &mut Page) -> bool {
        self.line.expand_indent();
        let is_cut = self.line.is_cut();
        let start = self.line.window();
        let text = start.trim_start_matches(' ');
        let indent = start.len() - text.len();
        if text.is_empty() && !is_cut {
            return false;
        }
        if !self.line.departed && self.line.matched < self.containers.len() {
            let is_decided = self.match_container(indent);
            self.line.departed |= is_cut && !is_decided;
            return is_decided || is_cut;
        }
        let text = text.to_owned();
        self.begin_line(&text, indent, page)
            || is_cut && self.begin(&Kind::Text, &text, indent, page)
    }

    /// Looks whether the line goes on with the next container, and takes that part of it off.
    fn match_container(&mut self, indent: usize) -> bool {
        let line = &mut self.line;
        let text = line.start.get(indent..).unwrap_or_default();
        match self.containers.get(line.matched) {
            Some(Container::Quote) if indent < 4 && text.starts_with('>') => {
                if text.len() == 1 {
                    return false;
                }
                line.consume_quote(indent);
                line.matched += 1;
            }
            Some(Container::Item { .. }) if text == "\n" => line.matched += 1,
            Some(Container::Item { indent: own, .. }) if indent >= *own => {
                line.consume(*own);
                line.matched += 1;
            }
            _ => line.departed = true,
        }
        true
    }

    fn goes_on_with_all(&self) -> bool {
        self.line.matched == self.containers.len()
    }

    /// Finds out what the line is, containers apart, and begins it.
    fn begin_line(&mut self, text: &str, indent: usize, page: &mut Page) -> bool {
        let all = self.goes_on_with_all();
        let line = text.trim_end_matches('\n');
        match self.leaf.leaf() {
            Leaf::Code(fence) if all => {
                let fence = *fence;
                return self.begin_code_line(text, indent, fence, page);
            }
            Leaf::Html(html) if all && !(html.ends_at_blank() && text == "\n") => {
                self.leaf.begin_html_line(indent, page);
                return self.enter_leaf(indent, page);
            }
            Leaf::TableHead(_) if all && indent < 4 && may_be_delimiter(line) => {
                self.leaf.look_below();
                // With its indentation: if it turns out to be something else, that counts.
                return self.enter_leaf(0, page);
            }
            Leaf::TableHead(_) => {
                self.leaf.release_table_head(page);
                return true;
            }
            _ => {}
        }
        let paragraph = match self.leaf.leaf() {
            Leaf::Paragraph if all => Paragraph::Above,
            Leaf::Paragraph => Paragraph::Lazy,
            _ => Paragraph::None,
        };
        classify(text, indent, paragraph).is_some_and(|kind| self.begin(&kind, text, indent, page))
    }

    /// A line of a fenced block: its end, or code, of which the fence's indentation is taken off.
    fn begin_code_line(
        &mut self,
        text: &str,
        indent: usize,
        fence: Fence,
        page: &mut Page,
    ) -> bool {
        let line = text.trim_end_matches('\n');
        let is_end = if indent < 4 && line.starts_with(fence.mark) {
            closes(line, line.len() < text.len(), fence)
        } else {
            Some(false)
        };
        match is_end {
            None if !self.line.is_cut() => return false,
            None | Some(false) => return self.enter_leaf(indent.min(fence.indent), page),
            Some(true) => {
                self.leaf.end(page);
                self.line.end();
            }
        }
        true
    }

    fn begin(&mut self, kind: &Kind, text: &str, indent: usize, page: &mut Page) -> bool {
        let is_deep = self.line.matched >= DEPTH;
        match kind {
            Kind::Blank => self.blank_line(page),
            Kind::Quote if text.len() == 1 => return false,
            Kind::Quote if !is_deep => {
                self.open(Container::Quote, page);
                self.line.consume_quote(indent);
            }
            Kind::Item(marker, length) if !is_deep => {
                self.begin_item(*marker, indent + length, page);
            }
            Kind::Heading(level) => {
                let heading = Leaf::Heading(String::new(), heading_style(*level));
                self.begin_leaf(heading, page);
                return self.enter_leaf(indent + level, page);
            }
            Kind::Fence(fence) => {
                self.begin_leaf(Leaf::Code(*fence), page);
                self.line.end();
            }
            Kind::Rule => {
                self.begin_leaf(Leaf::None, page);
                self.leaf.rule(page);
                self.line.end();
            }
            Kind::Underline(mark) => {
                self.leaf.underline(*mark, page);
                self.line.end();
            }
            Kind::Html(end) => {
                self.begin_leaf(Leaf::Html(Html::new(*end)), page);
                self.leaf.indent(indent, page);
                return self.enter_leaf(indent, page);
            }
            Kind::Definition => {
                self.begin_leaf(Leaf::Paragraph, page);
                return self.enter_leaf(indent, page);
            }
            Kind::Pipe => return self.begin_pipe_line(indent, page),
            Kind::Indented => {
                if !matches!(self.leaf.leaf(), Leaf::Indented(_)) || !self.goes_on_with_all() {
                    self.begin_leaf(Leaf::Indented(0), page);
                } else if self.leaf.write_blanks(page) {
                    self.blank = None;
                }
                return self.enter_leaf(4, page);
            }
            Kind::Text | Kind::Quote | Kind::Item(..) => {
                let is_row = matches!(self.leaf.leaf(), Leaf::Table(..)) && self.goes_on_with_all();
                if !is_row && !matches!(self.leaf.leaf(), Leaf::Paragraph) {
                    self.begin_leaf(Leaf::Paragraph, page);
                }
                return self.enter_leaf(indent, page);
            }
        }
        true
    }

    fn blank_line(&mut self, page: &mut Page) {
        if !self.goes_on_with_all() || !self.leaf.is_open_beyond_blank() {
            self.leaf.end(page);
        }
        self.close_to(self.line.matched, page);
        self.blank = Some(self.containers.len());
        self.line.end();
    }

    fn begin_item(&mut self, marker: Marker, length: usize, page: &mut Page) {
        let before = self.containers.get(self.line.matched);
        let marker = match (before, marker) {
            (Some(Container::Item { marker: before, .. }), marker) => marker.after(*before),
            (_, marker) => marker,
        };
        let line = &mut self.line;
        line.consume(length);
        line.expand_indent();
        let text = line.start.trim_start_matches(' ');
        let spaces = line.start.len() - text.len();
        let padding = if text == "\n" || spaces > 4 {
            1
        } else {
            spaces
        };
        if text != "\n" {
            line.consume(padding);
        }
        let item = Container::Item {
            marker,
            indent: length + padding,
            written: false,
        };
        self.open(item, page);
    }

    fn begin_pipe_line(&mut self, indent: usize, page: &mut Page) -> bool {
        let all = self.goes_on_with_all();
        match self.leaf.leaf() {
            Leaf::Paragraph if all => self.leaf.begin_table_head(),
            Leaf::Paragraph => {}
            Leaf::Table(..) if all => {}
            _ => self.begin_leaf(Leaf::TableHead(TableHead::default()), page),
        }
        self.enter_leaf(indent, page)
    }

    /// Hands the line to the leaf from byte `skip` on, and all that is still to come of it.
    fn enter_leaf(&mut self, skip: usize, page: &mut Page) -> bool {
        self.line.in_leaf = true;
        let start = mem::take(&mut self.line.start);
        self.feed(start.get(skip..).unwrap_or_default(), page);
        if self.line.start.is_empty() {
            // The allocation is used again.
            self.line.start = start;
            self.line.start.clear();
        }
        true
    }

    /// Hands a piece of a line to the leaf; a newline can only be at its end.
    fn feed(&mut self, piece: &str, page: &mut Page) {
        match self.leaf.take(piece, page) {
            Taken::Open => {}
            Taken::Whole => self.line.end(),
            Taken::Refused(line) => {
                self.line.in_leaf = false;
                self.decide(&line, page);
            }
        }
    }

    /// Opens a container inside those the line goes on with.
    fn open(&mut self, container: Container, page: &mut Page) {
        self.leaf.end(page);
        self.close_to(self.line.matched, page);
        self.containers.push(container);
        self.line.matched = self.containers.len();
    }

    /// Closes all but the first `depth` containers; an item that had nothing shows its marker.
    fn close_to(&mut self, depth: usize, page: &mut Page) {
        if self.containers.len() <= depth {
            return;
        }
        self.leaf.end(page);
        if self
            .containers
            .iter()
            .skip(depth)
            .any(Container::is_unwritten)
        {
            let frame = self.frame(page);
            self.leaf.begin(Leaf::None, frame, page);
            self.leaf.end(page);
        }
        self.containers.truncate(depth);
        self.blank = self.blank.map(|blank| blank.min(depth));
    }

    /// Ends the open leaf and the containers the line does not go on with, and opens `leaf`.
    fn begin_leaf(&mut self, leaf: Leaf, page: &mut Page) {
        self.leaf.end(page);
        self.close_to(self.line.matched, page);
        let frame = self.frame(page);
        self.leaf.begin(leaf, frame, page);
    }

    /// Where the rows of the next leaf stand, after the blank row that is due.
    fn frame(&mut self, page: &mut Page) -> Frame {
        let width = (self.width)().max(1);
        let limit = (width / 2).max(width.saturating_sub(20));
        if let Some(depth) = self.blank.take().filter(|_| self.begun) {
            let containers = self.containers.get(..depth).unwrap_or_default();
            let (prefix, _) = Prefix::of(containers, limit, false);
            self.leaf.blank_row(prefix, page);
        }
        self.begun = true;
        let (first, fitting) = Prefix::of(&self.containers, limit, true);
        let (rest, _) = Prefix::of(&self.containers, limit, false);
        let (drawn, deep) = self.containers.split_at_mut(fitting);
        let has_marker = drawn.iter().any(Container::is_unwritten);
        let quoted = drawn
            .iter()
            .any(|container| matches!(container, Container::Quote));
        let unwritten = deep.iter().filter(|container| container.is_unwritten());
        let markers = unwritten.map(Container::shown).collect();
        for container in &mut self.containers {
            container.set_written();
        }
        Frame {
            first: has_marker.then_some(first),
            rest,
            markers,
            width,
            quoted,
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
