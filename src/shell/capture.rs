//! What becomes of a command's output while it comes: bytes to harmless text, shown at once, its
//! ends kept for the model, the whole of it in a file once it is too long (SPEC C12, D6, D7).

use std::mem;

use super::Limits;
use super::spill::{Kept, Spill};
use crate::sanitize::{Masker, ResultFilter};

/// Takes a command's output in. Its memory does not grow with the output, unless the limit is off.
pub(super) struct Capture<'a> {
    decoder: Decoder,
    filter: ResultFilter,
    masker: Masker,
    ends: Ends,
    spill: Option<Spill>,
    /// How much of the line that has not ended yet was shown.
    shown: String,
    /// Whether something came since that line was last looked at.
    moved: bool,
    on_output: &'a mut dyn FnMut(&str),
}

impl<'a> Capture<'a> {
    /// Text goes to `on_output` as soon as it is certain.
    pub(super) fn new(limits: &Limits, on_output: &'a mut dyn FnMut(&str)) -> Self {
        let spill_dir = limits.spill_dir.clone().filter(|_| limits.output_chars > 0);
        Self {
            decoder: Decoder::default(),
            filter: ResultFilter::default(),
            masker: Masker::new(limits.redactor.clone()),
            ends: Ends::new(limits.output_chars),
            spill: spill_dir.map(|dir| Spill::new(dir, limits.redactor.clone())),
            shown: String::new(),
            moved: false,
            on_output,
        }
    }

    /// Takes the next bytes in.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(spill) = &mut self.spill {
            spill.push(bytes);
        }
        let mut text = String::with_capacity(bytes.len());
        self.decoder.push(bytes, &mut text);
        let mut clean = String::with_capacity(text.len());
        self.filter.push(&text, &mut clean);
        let mut masked = String::with_capacity(clean.len());
        self.masker.push_str(&clean, &mut masked);
        self.hand_out(&masked);
        self.moved = true;
    }

    /// Whether there may be an unfinished line to show.
    pub(super) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Shows what there is of the line that has not ended yet: a question, or the beginning of a
    /// long step. A line that is being rewritten waits for its end.
    pub(super) fn show_open_line(&mut self) {
        self.moved = false;
        let Some(line) = self.filter.open_line() else {
            return;
        };
        let line = self.masker.preview(&line);
        if let Some(new) = line.strip_prefix(&self.shown)
            && !new.is_empty()
        {
            (self.on_output)(new);
            self.shown = line;
        }
    }

    /// Ends the output with `closing`, which is shown, too, and returns what the model gets.
    pub(super) fn finish(mut self, closing: &str) -> String {
        let mut text = String::new();
        self.decoder.finish(&mut text);
        let mut clean = String::new();
        self.filter.push(&text, &mut clean);
        self.filter.finish(&mut clean);
        let mut masked = String::new();
        self.masker.push_str(&clean, &mut masked);
        self.masker.finish_str(&mut masked);
        self.hand_out(&masked);

        let notice = self.ends.missing().map(|missing| {
            let kept = self.spill.take().map(Spill::keep);
            cut_notice(missing, kept)
        });
        let mut text = self.ends.join(notice.as_deref());
        // Where there was no output, a remark needs no empty lines in front; the exit code has them
        // always (SPEC D3).
        let bare = text.is_empty() && !closing.trim_start().starts_with("exit: ");
        let closing = if bare { closing.trim_start() } else { closing };
        (self.on_output)(closing);
        text.push_str(closing);
        text
    }

    fn hand_out(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let shown = mem::take(&mut self.shown);
        match text.strip_prefix(shown.as_str()) {
            Some("") => {}
            Some(new) => (self.on_output)(new),
            None => {
                // The line was rewritten after it was shown; what is on the screen stays there.
                (self.on_output)("\n");
                (self.on_output)(text);
            }
        }
        self.ends.push(text);
    }
}

/// What stands where the output was cut.
fn cut_notice(missing: usize, kept: Option<std::io::Result<Kept>>) -> String {
    let whole = match kept {
        None => String::new(),
        Some(Ok(Kept { path, cut: false })) => {
            format!("; the whole output is in {}", path.display())
        }
        Some(Ok(Kept { path, cut: true })) => {
            format!("; the first 64 MB of the output are in {}", path.display())
        }
        Some(Err(error)) => format!("; the whole output could not be kept: {error}"),
    };
    format!("\n\n[{missing} characters are left out here{whole}]\n\n")
}

/// The beginning and the end of a text that may be endless.
#[derive(Debug)]
struct Ends {
    /// How many characters both may have, 0 for no limit.
    limit: usize,
    head: String,
    /// How many characters the head still takes.
    head_room: usize,
    /// The last characters; at most twice as many as are kept, so that cutting costs little.
    tail: String,
    tail_chars: usize,
    total: usize,
}

impl Ends {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            head: String::new(),
            head_room: if limit == 0 { usize::MAX } else { limit / 2 },
            tail: String::new(),
            tail_chars: 0,
            total: 0,
        }
    }

    fn push(&mut self, text: &str) {
        let chars = text.chars().count();
        self.total = self.total.saturating_add(chars);
        let (head, rest) = split_at_char(text, self.head_room);
        self.head.push_str(head);
        let rest_chars = chars.saturating_sub(self.head_room);
        self.head_room = self.head_room.saturating_sub(chars);
        self.push_tail(rest, rest_chars);
    }

    fn push_tail(&mut self, text: &str, chars: usize) {
        let room = self.limit - self.limit / 2;
        if chars >= room {
            self.tail.clear();
            self.tail.push_str(split_at_char(text, chars - room).1);
            self.tail_chars = room;
            return;
        }
        self.tail.push_str(text);
        self.tail_chars += chars;
        if self.tail_chars >= room.saturating_mul(2) {
            self.trim_tail(room);
        }
    }

    fn trim_tail(&mut self, room: usize) {
        let surplus = self.tail_chars.saturating_sub(room);
        let (old, _) = split_at_char(&self.tail, surplus);
        self.tail.drain(..old.len());
        self.tail_chars -= surplus;
    }

    /// How many characters are in neither end.
    fn missing(&self) -> Option<usize> {
        let missing = self.total.saturating_sub(self.limit);
        (self.limit > 0 && missing > 0).then_some(missing)
    }

    /// Both ends, `notice` between them.
    fn join(&mut self, notice: Option<&str>) -> String {
        self.trim_tail(self.limit - self.limit / 2);
        let mut text = mem::take(&mut self.head);
        text.push_str(notice.unwrap_or_default());
        text.push_str(&self.tail);
        text
    }
}

/// Splits after `chars` characters, or at the end where there are fewer.
fn split_at_char(text: &str, chars: usize) -> (&str, &str) {
    if chars >= text.len() {
        return (text, "");
    }
    let end = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

/// Bytes to text, whatever they are: each invalid sequence becomes U+FFFD.
#[derive(Debug, Default)]
struct Decoder {
    /// The beginning of a character whose end has not come yet.
    pending: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8], out: &mut String) {
        if self.pending.is_empty() {
            self.decode(bytes, out);
        } else {
            let mut joined = mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.decode(&joined, out);
        }
    }

    fn decode(&mut self, bytes: &[u8], out: &mut String) {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_last = chunks.peek().is_none();
            if is_last && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none()) {
                self.pending.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    fn finish(&mut self, out: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize::{self, Redactor};
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    fn limits(output_chars: usize) -> Limits {
        Limits {
            timeout: Duration::from_secs(10),
            output_chars,
            spill_dir: None,
            redactor: Redactor::new(Some("sk-secret-0123456789"), []),
        }
    }

    /// What the model gets, and what was shown.
    fn capture(limits: &Limits, chunks: &[&[u8]]) -> (String, String) {
        let mut shown = String::new();
        let mut show = |text: &str| shown.push_str(text);
        let mut capture = Capture::new(limits, &mut show);
        for chunk in chunks {
            capture.push(chunk);
        }
        let text = capture.finish("\n\nexit: 0");
        (text, shown)
    }

    #[test]
    fn d3_an_output_is_kept_to_the_letter() {
        for output in ["", "hi", "hi\n", "a\n\n", "ä\t世\n"] {
            let (text, shown) = capture(&limits(100), &[output.as_bytes()]);
            assert_eq!(text, format!("{output}\n\nexit: 0"));
            assert_eq!(shown, text);
        }
    }

    #[test]
    fn d6_any_bytes_become_text() {
        let (text, _) = capture(&limits(100), &[b"a\xff\xfe\0b\xe2\x82", b"\xac \xe2\x82"]);
        assert_eq!(text, "a\u{fffd}\u{fffd}b€ \u{fffd}\n\nexit: 0");
    }

    #[test]
    fn d6_a_long_output_is_cut_in_the_middle() {
        let output: String = ('a'..='z').collect();
        let (text, shown) = capture(&limits(10), &[output.as_bytes()]);
        assert_eq!(
            text,
            "abcde\n\n[16 characters are left out here]\n\nvwxyz\n\nexit: 0"
        );
        assert_eq!(shown, format!("{output}\n\nexit: 0"));
        let (text, _) = capture(&limits(26), &[output.as_bytes()]);
        assert_eq!(text, shown);
        let (text, _) = capture(&limits(0), &[output.as_bytes()]);
        assert_eq!(text, shown);
        let (text, _) = capture(&limits(1), &["äöü".as_bytes()]);
        assert_eq!(text, "\n\n[2 characters are left out here]\n\nü\n\nexit: 0");
    }

    #[test]
    fn d6_characters_are_counted_after_sanitising() {
        let colours = "\x1b[31mx\x1b[0m".repeat(10);
        let (text, _) = capture(&limits(10), &[colours.as_bytes()]);
        assert_eq!(text, "xxxxxxxxxx\n\nexit: 0");
        let progress = ["\r5%", "\r50%", "\r100%"].concat();
        let (text, _) = capture(&limits(10), &[progress.as_bytes()]);
        assert_eq!(text, "100%\n\nexit: 0");
    }

    #[test]
    fn d6_the_notice_names_the_file_with_the_whole_output() {
        let home = tempfile::tempdir().unwrap();
        let mut limits = limits(10);
        limits.spill_dir = Some(home.path().join("artifacts"));
        let (text, _) = capture(&limits, &[b"0123456789\x1b[0m", b"abcdefghij"]);
        let (_, rest) = text.split_once("the whole output is in ").unwrap();
        let (path, _) = rest.split_once(']').unwrap();
        assert_eq!(
            fs::read(Path::new(path)).unwrap(),
            b"0123456789\x1b[0mabcdefghij"
        );
        let (text, _) = capture(&limits, &[b"0123456789"]);
        assert_eq!(text, "0123456789\n\nexit: 0");
        let files = fs::read_dir(home.path().join("artifacts")).unwrap();
        assert_eq!(files.count(), 1, "only what was cut is kept");
    }

    #[test]
    fn d6_a_file_that_cannot_be_written_is_told_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let mut limits = limits(2);
        limits.spill_dir = Some(home.path().join("file/artifacts"));
        let (text, _) = capture(&limits, &[b"abcdef"]);
        assert!(
            text.starts_with("a\n\n[4 characters are left out here; "),
            "{text}"
        );
        assert!(text.contains("could not be kept"), "{text}");
    }

    #[test]
    fn b9_a_secret_is_masked_on_the_screen_and_for_the_model() {
        let chunks: [&[u8]; 3] = [b"key: sk-secret-", b"0123\x1b[0m456789", b"\n"];
        let (text, shown) = capture(&limits(100), &chunks);
        assert_eq!(text, "key: ****6789\n\n\nexit: 0");
        assert_eq!(shown, text);
    }

    #[test]
    fn d7_an_unfinished_line_is_shown_when_it_is_asked_for_and_only_once() {
        let mut shown = Vec::new();
        let limits = limits(100);
        let mut show = |text: &str| shown.push(text.to_owned());
        let mut capture = Capture::new(&limits, &mut show);
        capture.push(b"one\nbuild");
        assert!(capture.has_moved());
        capture.show_open_line();
        assert!(!capture.has_moved());
        capture.push(b"ing");
        capture.show_open_line();
        capture.show_open_line();
        capture.push(b"...\nkey sk-sec");
        capture.show_open_line();
        capture.push(b"ond\n5%");
        capture.show_open_line();
        capture.push(b"\r100%");
        capture.show_open_line();
        capture.push(b"\n");
        assert_eq!(
            capture.finish("\n\nexit: 0"),
            "one\nbuilding...\nkey sk-second\n100%\n\n\nexit: 0"
        );
        assert_eq!(
            shown,
            [
                "one\n",
                "build",
                "ing",
                "...\n",
                "key ",
                "sk-second\n",
                "5%",
                "\n",
                "100%\n",
                "\n\nexit: 0"
            ]
        );
    }

    #[test]
    fn a_remark_needs_no_empty_lines_where_there_is_no_output() {
        let limits = limits(100);
        let mut ignore = |_: &str| {};
        let capture = Capture::new(&limits, &mut ignore);
        assert_eq!(capture.finish("\n\ninterrupted"), "interrupted");
    }

    #[test]
    fn d6_memory_stays_bounded() {
        let mut ends = Ends::new(1000);
        for _ in 0..10_000 {
            ends.push("0123456789€");
            ends.push(&"x".repeat(300));
        }
        assert!(ends.head.len() + ends.tail.len() < 10_000);
        assert_eq!(ends.missing(), Some(10_000 * 311 - 1000));
        assert_eq!(ends.join(None).chars().count(), 1000);
    }

    proptest! {
        #[test]
        fn d6_any_chunking_of_bytes_gives_the_same(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(0xe2), Just(0x82), Just(0xac)],
                0..200,
            ),
            sizes in prop::collection::vec(0usize..9, 0..40),
            limit in 0usize..60,
        ) {
            let mut chunks = Vec::new();
            let mut rest = bytes.as_slice();
            for size in sizes {
                let (chunk, after) = rest.split_at(size.min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            let (text, shown) = capture(&limits(limit), &chunks);
            prop_assert_eq!(&text, &capture(&limits(limit), &[&bytes]).0);
            let whole = sanitize::result(&String::from_utf8_lossy(&bytes));
            prop_assert_eq!(shown, format!("{}\n\nexit: 0", whole));
        }

        #[test]
        fn d6_the_ends_are_those_of_the_text(
            pieces in prop::collection::vec("[a-zä€𝄞]{0,12}", 0..20),
            limit in 1usize..40,
        ) {
            let mut ends = Ends::new(limit);
            for piece in &pieces {
                ends.push(piece);
            }
            let chars: Vec<char> = pieces.concat().chars().collect();
            let missing = chars.len().saturating_sub(limit);
            prop_assert_eq!(ends.missing(), (missing > 0).then_some(missing));
            let head: String = chars.iter().take(limit / 2).collect();
            let tail: String = chars.iter().skip(limit / 2 + missing).collect();
            prop_assert_eq!(ends.join(None), head + &tail);
        }
    }
}
