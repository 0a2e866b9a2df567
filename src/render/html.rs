//! HTML blocks: shown as they are, dim, with `<br>` as a line break.
//!
//! Owns where such a block ends. The tags are not understood otherwise.

use crate::render::flow::Flow;
use crate::render::inline::is_break_tag;
use crate::render::line::HtmlEnd;
use crate::render::theme::{Page, Role};

/// How many bytes a tag can have at most that is a line break.
const BREAK_TAG: usize = 16;

/// An HTML block that is arriving.
#[derive(Debug)]
pub(super) struct Html {
    end: HtmlEnd,
    /// The last bytes of the line, in lower case, in which the end is looked for.
    tail: String,
    is_over: bool,
    /// A tag that may be a line break.
    held: String,
}

impl Html {
    pub(super) fn new(end: HtmlEnd) -> Self {
        Self {
            end,
            tail: String::new(),
            is_over: false,
            held: String::new(),
        }
    }

    /// Whether a blank line ends it.
    pub(super) fn ends_at_blank(&self) -> bool {
        self.end == HtmlEnd::Blank
    }

    /// Whether the line that ended last was its last one.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes a piece of a line in.
    pub(super) fn push(&mut self, piece: &str, flow: &mut Flow, page: &mut Page) {
        self.look_for_end(piece);
        let text = piece.trim_end_matches('\n');
        for part in text.split_inclusive('>') {
            for part in part.split_inclusive('<') {
                self.add(part, flow, page);
            }
        }
        if text.len() < piece.len() {
            self.finish(flow, page);
        }
    }

    /// Lets go of what is held.
    pub(super) fn finish(&mut self, flow: &mut Flow, page: &mut Page) {
        let held = std::mem::take(&mut self.held);
        flow.push(&held, Role::Frame.style(), page);
    }

    /// Adds text in which `<` and `>` can only be the last character.
    fn add(&mut self, text: &str, flow: &mut Flow, page: &mut Page) {
        if let Some(before) = text.strip_suffix('<') {
            self.add(before, flow, page);
            self.finish(flow, page);
            self.held.push('<');
            return;
        }
        if self.held.is_empty() {
            flow.push(text, Role::Frame.style(), page);
            return;
        }
        self.held.push_str(text);
        if self.held.ends_with('>') && is_break_tag(&self.held) {
            self.held.clear();
            flow.break_row(page);
        } else if self.held.ends_with('>') || self.held.len() > BREAK_TAG {
            self.finish(flow, page);
        }
    }

    fn look_for_end(&mut self, piece: &str) {
        let HtmlEnd::Holding(ends) = self.end else {
            return;
        };
        self.tail.push_str(&piece.to_ascii_lowercase());
        self.is_over |= ends.iter().any(|end| self.tail.contains(end));
        let longest = ends.iter().map(|end| end.len()).max().unwrap_or(0);
        let mut keep = self.tail.len().saturating_sub(longest);
        while !self.tail.is_char_boundary(keep) {
            keep += 1;
        }
        self.tail.drain(..keep);
    }
}
