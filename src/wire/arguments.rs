//! The arguments of a call while they arrive: whether they are whole yet, without parsing anew
//! at every piece.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::chunk::mend_surrogates;

/// Text that should become a JSON object.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the outermost bracket has closed and nothing but blanks came after it.
    closed: bool,
}

impl Arguments {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// All that came. Half a surrogate pair, which no strict parser takes, is replaced.
    pub(super) fn into_string(self) -> String {
        mend_surrogates(&self.text).unwrap_or(self.text)
    }

    /// Appends a piece.
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        for byte in piece.bytes() {
            self.scan(byte);
        }
    }

    /// Puts `text` in place of what came so far.
    pub(super) fn replace(&mut self, text: &str) {
        *self = Self::default();
        self.push(text);
    }

    /// Whether they are a whole JSON object. Parses only what looks like one.
    pub(super) fn is_complete(&self) -> bool {
        self.closed && is_object(&self.text)
    }

    /// Whether they are `{}`, which some servers send before the real ones.
    pub(super) fn is_empty_object(&self) -> bool {
        is_empty_object(&self.text)
    }

    fn scan(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => return,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.closed = self.depth == 0 && !self.in_string && matches!(byte, b'}' | b']');
    }
}

/// Whether a text is a whole JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && text.trim_end().ends_with('}')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a text is the object `{}`.
pub(super) fn is_empty_object(text: &str) -> bool {
    text.len() < 64
        && serde_json::from_str::<Value>(text)
            .is_ok_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_whole_when_the_object_has_closed() {
        for (text, complete) in [
            ("{}", true),
            (r#" {"a":"}"} "#, true),
            (r#"{"a":{"b":[1,2]}}"#, true),
            (r#"{"a":"\"}"#, false),
            (r#"{"a":1"#, false),
            (r#"{"a":1} x"#, false),
            (r#"{"a" 1}"#, false),
            ("[]", false),
            ("null", false),
            ("", false),
        ] {
            let mut whole = Arguments::default();
            whole.push(text);
            assert_eq!(whole.is_complete(), complete, "{text}");
            let mut pieces = Arguments::default();
            for piece in text.chars() {
                pieces.push(piece.encode_utf8(&mut [0; 4]));
            }
            assert_eq!(pieces.is_complete(), complete, "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_in_what_is_kept() {
        for (text, kept) in [
            (r#"{"a":"\ud83d x"}"#, "{\"a\":\"\u{fffd} x\"}"),
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
        ] {
            let mut arguments = Arguments::default();
            arguments.push(text);
            assert_eq!(arguments.into_string(), kept);
        }
    }

    #[test]
    fn an_empty_object_may_have_blanks() {
        assert!(is_empty_object(" { } "));
        assert!(!is_empty_object(r#"{"a":1}"#));
        assert!(!is_empty_object("[]"));
    }
}
