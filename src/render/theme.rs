//! What the roles of text look like, and the page that text is written on.
//!
//! Owns every SGR sequence the program writes. It knows colours and attributes; it does not know
//! widths, Markdown or events.

/// What a piece of text is; its look follows from that (SPEC F7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Text as it is.
    Plain,
    /// The line that says a request is under way.
    Status,
    /// The lines around reasoning.
    Marker,
    /// Reasoning.
    Reasoning,
    /// The trace of a tool call.
    Call,
    /// The header of a tool's result.
    ResultHeader,
    /// What a tool printed.
    Body,
    /// Errors, warnings, retries, and the result of a tool that failed.
    Failure,
    /// A heading of an answer.
    Heading,
    /// Code of an answer, in a line or a block.
    Code,
    /// The address of a link.
    Address,
    /// Bars, rules, list markers, borders of tables, HTML: what surrounds the text.
    Frame,
}

impl Role {
    /// The look of the role in the 16 colours of the terminal.
    pub(super) fn style(self) -> Style {
        match self {
            Self::Plain => Style::default(),
            Self::Status => Style::colored(90).with(Style::BOLD),
            Self::Marker | Self::Address | Self::Code => Style::colored(36),
            Self::Reasoning | Self::Body | Self::Frame => Style::default().with(Style::DIM),
            Self::Call => Style::colored(33),
            Self::ResultHeader => Style::colored(32),
            Self::Failure => Style::colored(31),
            Self::Heading => Style::default().with(Style::BOLD),
        }
    }
}

/// A foreground colour and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    /// The SGR code of the foreground, 0 for the terminal's own.
    foreground: u8,
    /// Bit n stands for the SGR attribute n.
    attributes: u16,
}

impl Style {
    /// Bold.
    pub(super) const BOLD: u8 = 1;
    /// Dim.
    pub(super) const DIM: u8 = 2;
    /// Italic.
    pub(super) const ITALIC: u8 = 3;
    /// Underlined.
    pub(super) const UNDERLINE: u8 = 4;
    /// Struck through.
    pub(super) const STRIKE: u8 = 9;

    /// A foreground colour by its SGR code.
    const fn colored(foreground: u8) -> Self {
        Self {
            foreground,
            attributes: 0,
        }
    }

    /// The style with one more attribute.
    #[must_use]
    pub(super) const fn with(self, attribute: u8) -> Self {
        Self {
            foreground: self.foreground,
            attributes: self.attributes | 1 << attribute,
        }
    }

    /// The style with what `other` has on top: its colour where it has one, and its attributes.
    #[must_use]
    pub(super) const fn over(self, other: Self) -> Self {
        Self {
            foreground: if other.foreground == 0 {
                self.foreground
            } else {
                other.foreground
            },
            attributes: self.attributes | other.attributes,
        }
    }

    fn is_plain(self) -> bool {
        self == Self::default()
    }
}

/// Text on its way to a stream, with the SGR sequences that its styles need, if there is colour.
///
/// A style ends before each newline, so that nothing bleeds into the margin or another program.
#[derive(Debug, Default)]
pub(super) struct Page {
    buffer: String,
    color: bool,
    pen: Style,
    line_open: bool,
}

impl Page {
    /// An empty page.
    pub(super) fn new(color: bool) -> Self {
        Self {
            color,
            ..Self::default()
        }
    }

    /// Colours what comes from now on, or stops doing so.
    pub(super) fn set_color(&mut self, color: bool) {
        self.color = color;
    }

    /// Appends `text`, which may hold newlines.
    pub(super) fn put(&mut self, text: &str, style: Style) {
        let Some(last) = text.as_bytes().last() else {
            return;
        };
        self.line_open = *last != b'\n';
        if !self.color || (style.is_plain() && self.pen.is_plain()) {
            self.buffer.push_str(text);
            return;
        }
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            if !content.is_empty() {
                self.take_pen(style);
                self.buffer.push_str(content);
            }
            if content.len() < line.len() {
                self.lift_pen();
                self.buffer.push('\n');
            }
        }
    }

    /// Appends a terminal's control sequence as it is.
    pub(super) fn control(&mut self, sequence: &str) {
        self.buffer.push_str(sequence);
    }

    /// Ends the line where one is open.
    pub(super) fn end_line(&mut self) {
        if self.line_open {
            self.put("\n", Style::default());
        }
    }

    /// Says that the line is not open after all: what was on it has been erased.
    pub(super) fn line_erased(&mut self) {
        self.line_open = false;
    }

    /// Ends the style where one is open.
    pub(super) fn lift_pen(&mut self) {
        if !self.pen.is_plain() {
            self.pen = Style::default();
            self.buffer.push_str("\x1b[0m");
        }
    }

    /// What is to be written.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.buffer.as_bytes()
    }

    /// Forgets the text, which has been written; styles and lines go on.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
    }

    fn take_pen(&mut self, style: Style) {
        if style == self.pen {
            return;
        }
        self.lift_pen();
        if style.is_plain() {
            return;
        }
        self.pen = style;
        self.buffer.push_str("\x1b[");
        let attributes = (1..10).filter(|bit| style.attributes & (1 << bit) != 0);
        let codes = attributes.chain((style.foreground != 0).then_some(style.foreground));
        for (index, code) in codes.enumerate() {
            if index > 0 {
                self.buffer.push(';');
            }
            if code >= 10 {
                self.buffer.push(char::from(b'0' + code / 10));
            }
            self.buffer.push(char::from(b'0' + code % 10));
        }
        self.buffer.push('m');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(pieces: &[(&str, Style)], color: bool) -> String {
        let mut page = Page::new(color);
        for (text, style) in pieces {
            page.put(text, *style);
        }
        page.lift_pen();
        page.buffer
    }

    #[test]
    fn f7_roles_have_the_colours_of_the_palette() {
        for (role, sgr) in [
            (Role::Status, "1;90"),
            (Role::Marker, "36"),
            (Role::Reasoning, "2"),
            (Role::Call, "33"),
            (Role::ResultHeader, "32"),
            (Role::Body, "2"),
            (Role::Failure, "31"),
        ] {
            assert_eq!(
                painted(&[("x", role.style())], true),
                format!("\x1b[{sgr}mx\x1b[0m")
            );
        }
    }

    #[test]
    fn a_style_ends_before_each_newline() {
        let style = Role::Call.style();
        assert_eq!(
            painted(&[("a\n\nb", style), ("c", style)], true),
            "\x1b[33ma\x1b[0m\n\n\x1b[33mbc\x1b[0m"
        );
    }

    #[test]
    fn without_colour_there_is_no_sgr_at_all() {
        let style = Role::Status.style();
        assert_eq!(painted(&[("a\n", style), ("b", style)], false), "a\nb");
    }
}
