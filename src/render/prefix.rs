//! What stands in front of rows: bars of quotes, list markers, indentation.
//!
//! Owns the containers of a document and how they look. How lines match them is the business of
//! the Markdown machine.

use crate::render::line::Marker;
use crate::render::text::{Span, append, packing_columns};
use crate::render::theme::{Page, Role, Style};

/// A block that holds blocks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Container {
    /// A block quote.
    Quote,
    /// An item of a list.
    Item {
        marker: Marker,
        /// How many columns of a line belong to the item: its marker and the spaces around it.
        indent: usize,
        /// Whether the marker has been written.
        written: bool,
    },
}

impl Container {
    /// Whether its marker is still to be written.
    pub(super) fn is_unwritten(&self) -> bool {
        matches!(self, Self::Item { written: false, .. })
    }

    /// Says that its marker is written.
    pub(super) fn set_written(&mut self) {
        if let Self::Item { written, .. } = self {
            *written = true;
        }
    }

    /// What stands in front of its first row.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Quote => "│ ".to_owned(),
            Self::Item {
                marker: Marker::Bullet(_),
                ..
            } => "• ".to_owned(),
            Self::Item {
                marker: Marker::Number(number, delimiter),
                ..
            } => format!("{number}{delimiter} "),
        }
    }
}

/// What stands in front of a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    spans: Vec<Span<Style>>,
    columns: usize,
}

impl Prefix {
    /// What stands in front of the rows inside `containers`, as far as it fits into `limit` columns,
    /// and in how many of them that is. The first row shows the markers that are not written yet.
    pub(super) fn of(containers: &[Container], limit: usize, is_first: bool) -> (Self, usize) {
        let mut prefix = Self::default();
        for (index, container) in containers.iter().enumerate() {
            let text = container.shown();
            let columns = packing_columns(&text);
            if prefix.columns + columns > limit {
                return (prefix, index);
            }
            let is_shown = is_first && container.is_unwritten();
            if is_shown || matches!(container, Container::Quote) {
                prefix.push(&text, Role::Frame.style());
            } else {
                prefix.push(&" ".repeat(columns), Style::default());
            }
        }
        (prefix, containers.len())
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        append(&mut self.spans, text, style);
        self.columns += packing_columns(text);
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn put(&self, page: &mut Page) {
        for span in &self.spans {
            page.put(&span.text, span.style);
        }
    }

    /// Writes it without the spaces at its end.
    pub(super) fn put_trimmed(&self, page: &mut Page) {
        let is_visible = |span: &Span<Style>| !span.text.trim_end().is_empty();
        let Some(last) = self.spans.iter().rposition(is_visible) else {
            return;
        };
        for (index, span) in self.spans.iter().take(last + 1).enumerate() {
            let text = if index == last {
                span.text.trim_end()
            } else {
                &span.text
            };
            page.put(text, span.style);
        }
    }
}
