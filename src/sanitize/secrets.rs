//! Keys and header values, and their removal from whatever the model, a person or a file gets.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A shorter key is left alone: it would turn up by chance all over the place.
const SHORTEST_KEY: usize = 8;
/// Header values are less often secret than keys; short ones are names and versions.
const SHORTEST_HEADER: usize = 16;
/// How much of a secret stays readable, so that a person can tell one from another.
const SHOWN: usize = 4;
/// A secret that is not much longer than what would be shown of it is hidden whole.
const SHORTEST_SHOWN: usize = 12;

/// A secret as it may be shown: four asterisks and its last four characters, or the asterisks alone
/// where it has fewer than twelve.
pub fn masked(secret: &str) -> String {
    let characters = secret.chars().count();
    let mut mask = String::from("****");
    if characters >= SHORTEST_SHOWN {
        mask.extend(secret.chars().skip(characters - SHOWN));
    }
    mask
}

/// Knows the secrets of this run and masks them wherever they turn up (SPEC B9). Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that of two that begin alike the longer one wins.
    secrets: Arc<[Secret]>,
}

struct Secret {
    text: String,
    mask: String,
}

/// The next place that matters in some bytes.
enum Found<'a> {
    /// The secret stands at this position.
    Whole(usize, &'a Secret),
    /// What stands from this position to the end may be the beginning of a secret.
    Beginning(usize),
    Nothing,
}

impl Redactor {
    /// Knows `key`, if it has at least 8 characters, and those of the header values that have at
    /// least 16.
    pub fn new(key: Option<&str>, header_values: impl IntoIterator<Item = String>) -> Self {
        let key = key
            .map(|key| key.trim().to_owned())
            .filter(|key| key.chars().count() >= SHORTEST_KEY);
        let headers = header_values
            .into_iter()
            .map(|value| value.trim().to_owned())
            .filter(|value| value.chars().count() >= SHORTEST_HEADER);
        let mut texts: Vec<String> = key.into_iter().chain(headers).collect();
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        let secrets = texts.into_iter().map(|text| Secret {
            mask: masked(&text),
            text,
        });
        Self {
            secrets: secrets.collect(),
        }
    }

    /// `text` with every known secret masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self
            .secrets
            .iter()
            .any(|secret| text.contains(secret.text.as_str()))
        {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        self.replace(text.as_bytes(), false, &mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// Copies `bytes` to `out`, masked. With `more` to come it stops where a secret may have begun.
    /// Returns how many bytes are done with.
    fn replace(&self, bytes: &[u8], more: bool, out: &mut Vec<u8>) -> usize {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or_default();
            let (plain, secret) = match self.find(rest, more) {
                Found::Whole(at, secret) => (at, Some(secret)),
                Found::Beginning(at) => (at, None),
                Found::Nothing => (rest.len(), None),
            };
            out.extend_from_slice(rest.get(..plain).unwrap_or_default());
            done += plain;
            let Some(secret) = secret else { return done };
            out.extend_from_slice(secret.mask.as_bytes());
            done += secret.text.len();
        }
    }

    fn find(&self, bytes: &[u8], more: bool) -> Found<'_> {
        for (at, first) in bytes.iter().enumerate() {
            for secret in self.secrets.iter() {
                let wanted = secret.text.as_bytes();
                if wanted.first() != Some(first) {
                    continue;
                }
                let rest = bytes.get(at..).unwrap_or_default();
                if rest.starts_with(wanted) {
                    return Found::Whole(at, secret);
                }
                if more && wanted.starts_with(rest) {
                    return Found::Beginning(at);
                }
            }
        }
        Found::Nothing
    }
}

impl fmt::Debug for Redactor {
    /// Says how many secrets there are, never which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// Masks secrets in a stream: one that is split over two chunks is masked, too.
///
/// Only a tail that may be the beginning of a secret is held back.
#[derive(Debug, Clone, Default)]
pub struct Masker {
    redactor: Redactor,
    held: Vec<u8>,
}

impl Masker {
    /// A stream that `redactor` watches.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            held: Vec::new(),
        }
    }

    /// Takes the next bytes in and appends to `out` what is certain.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.redactor.secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        let done = self.redactor.replace(&self.held, true, out);
        self.held.drain(..done.min(self.held.len()));
    }

    /// Takes the next piece of text in and appends to `out` what is certain.
    ///
    /// A stream is fed either by this or by [`Masker::push`].
    pub fn push_str(&mut self, text: &str, out: &mut String) {
        if self.redactor.secrets.is_empty() {
            out.push_str(text);
            return;
        }
        let mut bytes = Vec::with_capacity(text.len());
        self.push(text.as_bytes(), &mut bytes);
        // Secrets are text, so what is held back begins and ends between two characters.
        out.push_str(&String::from_utf8_lossy(&bytes));
    }

    /// What this stream would make of `next`, as far as that is certain; nothing is taken in.
    pub fn preview(&self, next: &str) -> String {
        let mut out = String::new();
        self.clone().push_str(next, &mut out);
        out
    }

    /// Ends the stream: no more of a secret comes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.redactor.replace(&self.held, false, out);
        self.held.clear();
    }

    /// Ends a stream of text.
    pub fn finish_str(&mut self, out: &mut String) {
        let mut bytes = Vec::new();
        self.finish(&mut bytes);
        out.push_str(&String::from_utf8_lossy(&bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chunks;
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        Redactor::new(
            Some("sk-secret-0123456789"),
            [
                "sk-secret-0123456789-and-more".to_owned(),
                "short".to_owned(),
                "Bearer ä-0123456789-ö".to_owned(),
            ],
        )
    }

    #[test]
    fn b7_a_mask_shows_the_last_four_characters_of_a_long_secret_only() {
        assert_eq!(masked("sk-0123456789abcd"), "****abcd");
        assert_eq!(masked("0123456789äb"), "****89äb");
        assert_eq!(masked("0123456789a"), "****");
        assert_eq!(masked(""), "****");
    }

    #[test]
    fn b9_known_secrets_are_masked_wherever_they_stand() {
        let redactor = redactor();
        for (text, expected) in [
            ("api_key=sk-secret-0123456789\n", "api_key=****6789\n"),
            ("sk-secret-0123456789-and-more", "****more"),
            ("sk-secret-0123456789-and-", "****6789-and-"),
            (
                "xsk-secret-0123456789sk-secret-0123456789",
                "x****6789****6789",
            ),
            ("h: Bearer ä-0123456789-ö!", "h: ****89-ö!"),
            ("short sk-secret-012345678", "short sk-secret-012345678"),
            ("", ""),
        ] {
            assert_eq!(redactor.mask(text), expected, "{text}");
        }
    }

    #[test]
    fn b9_short_keys_and_headers_are_no_secrets() {
        let redactor = Redactor::new(Some("1234567"), ["0123456789abcde".to_owned()]);
        assert_eq!(
            redactor.mask("1234567 0123456789abcde"),
            "1234567 0123456789abcde"
        );
        let redactor = Redactor::new(Some("12345678"), ["0123456789abcdef".to_owned()]);
        assert_eq!(redactor.mask("12345678 0123456789abcdef"), "**** ****cdef");
        assert_eq!(Redactor::default().mask("anything"), "anything");
        assert_eq!(Redactor::new(None, []).mask("anything"), "anything");
    }

    #[test]
    fn a_redactor_does_not_print_its_secrets() {
        assert_eq!(format!("{:?}", redactor()), "Redactor(3 secrets)");
    }

    #[test]
    fn b9_a_preview_shows_neither_a_secret_nor_what_may_become_one() {
        let mut masker = Masker::new(redactor());
        let mut out = String::new();
        masker.push_str("key sk-sec", &mut out);
        assert_eq!(out, "key ");
        assert_eq!(masker.preview("ret-0123456789"), "");
        assert_eq!(masker.preview("ret-0123456789 x"), "****6789 x");
        assert_eq!(masker.preview("ond"), "sk-second");
    }

    #[test]
    fn b9_bytes_that_are_no_text_pass_unchanged() {
        let mut masker = Masker::new(redactor());
        let mut out = Vec::new();
        masker.push(b"\xff\x00sk-secret-", &mut out);
        masker.push(b"0123456789\xfe", &mut out);
        masker.finish(&mut out);
        assert_eq!(out, b"\xff\x00****6789\xfe");
    }

    proptest! {
        #[test]
        fn b9_any_chunking_masks_the_same(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("sk-secret-0123456789".to_owned()),
                    Just("sk-secret-0123456789-and-more".to_owned()),
                    Just("Bearer ä-0123456789-ö".to_owned()),
                    "[skB0-9 ä-]{0,6}",
                ],
                0..8,
            ),
            cuts in prop::collection::vec(0usize..40, 0..12),
        ) {
            let text = parts.concat();
            let redactor = redactor();
            let mut masker = Masker::new(redactor.clone());
            let mut out = String::new();
            for piece in chunks(&text, &cuts) {
                masker.push_str(piece, &mut out);
            }
            masker.finish_str(&mut out);
            prop_assert_eq!(&out, &redactor.mask(&text).into_owned());
        }
    }
}
