//! Where an inline tag, an autolink or the target of a link ends, character by character.
//!
//! Only the end is looked for, and the first character that rules one out; the parser judges the
//! rest. Pure state machines, without text of their own.

/// What a character makes of a construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// It goes on.
    Open(T),
    /// This character ends it.
    Whole,
    /// It is none.
    None,
}

/// What follows a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tag {
    /// Nothing yet.
    #[default]
    Start,
    /// A name, or an address: anything without a space.
    Word,
    /// Between attributes.
    Space,
    Attribute,
    AfterAttribute,
    ValueStart,
    Quoted(char),
    Unquoted,
    AfterValue,
    /// After the slash that has to be the last character.
    Slash,
    ClosingStart,
    ClosingName,
    ClosingSpace,
    /// After `<!`.
    Bang,
    Comment,
    Instruction,
    Data,
    Declaration,
}

// The arms stand in the order of the states, so that each state can be read by itself.
#[allow(clippy::match_same_arms)]
impl Tag {
    /// Reads `c`; `so_far` is what came before it, from the `<` on.
    pub(super) fn step(self, c: char, so_far: &str) -> Verdict<Self> {
        let next = match (self, c) {
            (Self::Start, '/') => Self::ClosingStart,
            (Self::Start, '!') => Self::Bang,
            (Self::Start, '?') => Self::Instruction,
            (Self::Start, c) if c.is_ascii_alphabetic() => Self::Word,

            (Self::Word, '<') => return Verdict::None,
            (Self::Word, c) if c.is_whitespace() => {
                let name = so_far.trim_start_matches('<');
                if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                    return Verdict::None;
                }
                Self::Space
            }
            (Self::ClosingStart, c) if c.is_ascii_alphabetic() => Self::ClosingName,
            (Self::ClosingName, c) if c.is_ascii_alphanumeric() || c == '-' => Self::ClosingName,
            (Self::ClosingName | Self::ClosingSpace, c) if c.is_whitespace() => Self::ClosingSpace,

            (Self::Bang, '-') => Self::Comment,
            (Self::Bang, '[') => Self::Data,
            (Self::Bang, c) if c.is_ascii_alphabetic() => Self::Declaration,
            (Self::Comment, '>') if !so_far.ends_with("--") => Self::Comment,
            (Self::Data, '>') if !so_far.ends_with("]]") => Self::Data,
            (Self::Instruction, '>') if !so_far.ends_with('?') => Self::Instruction,

            (Self::Quoted(quote), c) => {
                if c == quote {
                    Self::AfterValue
                } else {
                    self
                }
            }
            (Self::ValueStart, '"' | '\'') => Self::Quoted(c),
            (Self::ValueStart, c) if c.is_whitespace() => self,
            (Self::ValueStart, '<' | '>' | '=' | '`') => return Verdict::None,
            (Self::ValueStart, _) => Self::Unquoted,
            (Self::Unquoted, '"' | '\'' | '<' | '=' | '`') => return Verdict::None,

            (Self::Start | Self::ClosingStart | Self::Bang, _) => return Verdict::None,
            (_, '>') => return Verdict::Whole,

            (
                Self::Word | Self::Comment | Self::Instruction | Self::Data | Self::Declaration,
                _,
            ) => self,
            (Self::Space | Self::Unquoted | Self::AfterValue, c) if c.is_whitespace() => {
                Self::Space
            }
            (Self::Attribute | Self::AfterAttribute, c) if c.is_whitespace() => {
                Self::AfterAttribute
            }
            (Self::Attribute | Self::AfterAttribute, '=') => Self::ValueStart,
            (Self::Unquoted, _) => self,
            (Self::Space | Self::Attribute | Self::AfterAttribute | Self::AfterValue, '/') => {
                Self::Slash
            }
            (Self::Space | Self::AfterAttribute, c) if c.is_ascii_alphabetic() => Self::Attribute,
            (Self::Space | Self::AfterAttribute, '_' | ':') => Self::Attribute,
            (Self::Attribute, c) if c.is_ascii_alphanumeric() => self,
            (Self::Attribute, '_' | ':' | '.' | '-') => self,
            _ => return Verdict::None,
        };
        Verdict::Open(next)
    }

    /// Whether it is one of those that end with a mark of their own, however long they are.
    pub(super) fn is_declaration(self) -> bool {
        matches!(
            self,
            Self::Comment | Self::Instruction | Self::Data | Self::Declaration
        )
    }
}

/// What follows the `(` behind the text of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Target {
    /// Nothing but spaces yet.
    #[default]
    Start,
    /// In `<…>`, perhaps after a backslash.
    Angle { escaped: bool },
    /// An address with so many open parentheses, perhaps after a backslash.
    Address { depth: usize, escaped: bool },
    /// After the address and a space.
    Space,
    /// In a title that ends with this, perhaps after a backslash.
    Title { end: char, escaped: bool },
    /// After the title.
    End,
}

#[allow(clippy::match_same_arms)] // as above
impl Target {
    /// Reads `c`.
    pub(super) fn step(self, c: char) -> Verdict<Self> {
        let next = match (self, c) {
            (Self::Angle { escaped: true }, c) if c != '\n' => Self::Angle { escaped: false },
            (Self::Angle { .. }, '\\') => Self::Angle { escaped: true },
            (Self::Angle { .. }, '<' | '\n') => return Verdict::None,
            (Self::Angle { .. }, '>') => Self::Space,
            (Self::Angle { .. }, _) => self,

            (Self::Title { end, escaped: true }, _) => Self::Title {
                end,
                escaped: false,
            },
            (Self::Title { end, .. }, '\\') => Self::Title { end, escaped: true },
            (Self::Title { end, .. }, c) if c == end => Self::End,
            (Self::Title { end: ')', .. }, '(') => return Verdict::None,
            (Self::Title { .. }, _) => self,

            (Self::Address { depth: 0, .. }, c) if c.is_whitespace() => Self::Space,
            (Self::Address { .. }, c) if c.is_whitespace() => return Verdict::None,
            (
                Self::Address {
                    depth,
                    escaped: true,
                },
                _,
            ) => Self::Address {
                depth,
                escaped: false,
            },
            (Self::Address { depth, .. }, '\\') => Self::Address {
                depth,
                escaped: true,
            },
            (Self::Address { depth, .. }, '(') => Self::Address {
                depth: depth + 1,
                escaped: false,
            },
            (Self::Address { depth, .. }, ')') if depth > 0 => Self::Address {
                depth: depth - 1,
                escaped: false,
            },

            (_, ')') => return Verdict::Whole,
            (Self::Address { .. }, _) => self,
            (Self::Start | Self::Space | Self::End, c) if c.is_whitespace() => self,
            (Self::Start, '<') => Self::Angle { escaped: false },
            (Self::Start, _) => Self::Address {
                depth: usize::from(c == '('),
                escaped: c == '\\',
            },
            (Self::Space, '"' | '\'') => Self::Title {
                end: c,
                escaped: false,
            },
            (Self::Space, '(') => Self::Title {
                end: ')',
                escaped: false,
            },
            (Self::Space | Self::End, _) => return Verdict::None,
        };
        Verdict::Open(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many characters there are to the end of the construct at the start of `text`.
    fn tag_length(text: &str) -> Option<usize> {
        let mut tag = Tag::default();
        for (at, c) in text.char_indices().skip(1) {
            match tag.step(c, &text[..at]) {
                Verdict::Open(next) => tag = next,
                Verdict::Whole => return Some(at + 1),
                Verdict::None => return None,
            }
        }
        None
    }

    fn target_length(text: &str) -> Option<usize> {
        let mut target = Target::default();
        for (at, c) in text.char_indices().skip(1) {
            match target.step(c) {
                Verdict::Open(next) => target = next,
                Verdict::Whole => return Some(at + 1),
                Verdict::None => return None,
            }
        }
        None
    }

    #[test]
    fn tags_and_autolinks_end_where_they_end() {
        for whole in [
            "<br>",
            "<br/>",
            "<br />",
            "</a >",
            "<a b c=d e='>' f=\"g\">",
            "<https://e.org/?a=b>",
            "<a@e.org>",
            "<!-- a > b -->",
            "<?a > b?>",
            "<![CDATA[a > b]]>",
            "<!DOCTYPE html>",
        ] {
            assert_eq!(
                tag_length(&format!("{whole} x>")),
                Some(whole.len()),
                "{whole}"
            );
        }
        for none in [
            "< a>",
            "<5>",
            "<a <b>",
            "<a, b>",
            "<a b='c'd>",
            "<a =b>",
            "</ a>",
            "<a / b>",
        ] {
            assert_eq!(tag_length(none), None, "{none}");
        }
    }

    #[test]
    fn targets_end_where_they_end() {
        for whole in [
            "()",
            "(a)",
            "( a )",
            "(<a b> \"c)\" )",
            "(a(b)c)",
            "(a\\)b)",
            "(a 'b\\'c')",
            "(a (b))",
            "((a))",
        ] {
            assert_eq!(
                target_length(&format!("{whole} x)")),
                Some(whole.len()),
                "{whole}"
            );
        }
        for none in ["(a b)", "(<a\n>)", "(a(b c))", "(a 'b' c)", "(a (b(c))"] {
            assert_eq!(target_length(none), None, "{none}");
        }
    }
}
