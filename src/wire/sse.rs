//! Server-sent events: bytes, cut anywhere, to the data they carry.
//!
//! It frames and nothing else: whether a piece of data is understood is its caller's business.

use std::borrow::Cow;
use std::mem;

use super::Fault;

/// No line and no event may be longer than this.
const LINE_LIMIT: usize = 16 << 20;
/// No body without framing may be longer than this.
const BODY_LIMIT: usize = 64 << 20;
/// How much of lines that mean nothing is kept, to describe the answer with.
const STRAY_LIMIT: usize = 2_000;

/// What the stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// One event's data, or one line of it where that line stands for itself.
    Data(&'a str),
    /// The data of an event that is named an error.
    Error(&'a str),
}

/// Takes a frame, and says whether it was understood as it stands.
pub(super) type Take<'t> = dyn FnMut(Frame<'_>) -> Result<bool, Fault> + 't;

/// Splits a stream into frames.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The line that has not ended yet.
    line: Vec<u8>,
    started: bool,
    in_error: bool,
    /// Data that was not understood yet: the next line may belong to it.
    pending: String,
    /// A body without framing, once one has begun.
    body: Option<Vec<u8>>,
    stray: String,
    unreadable: usize,
}

/// What is left when the stream has ended.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// A body without framing.
    pub(super) body: Option<Vec<u8>>,
    /// The first lines that were no events.
    pub(super) stray: String,
    /// How many pieces of data nobody understood.
    pub(super) unreadable: usize,
}

impl Reader {
    /// Takes bytes in and hands on the frames they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], take: &mut Take<'_>) -> Result<(), Fault> {
        while self.body.is_none() {
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                if self.line.len() + bytes.len() > LINE_LIMIT {
                    return Err(too_long());
                }
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            let (head, tail) = bytes.split_at(end);
            bytes = tail.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.line(head, take)?;
            } else {
                let mut line = mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.line(&line, take)?;
                line.clear();
                self.line = line;
            }
        }
        if let Some(body) = &mut self.body {
            if body.len() + bytes.len() > BODY_LIMIT {
                return Err(too_long());
            }
            body.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Takes the stream's end in: a last line and a last event need no line break.
    pub(super) fn finish(mut self, take: &mut Take<'_>) -> Result<Rest, Fault> {
        let line = mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, take)?;
        }
        self.dispatch(take)?;
        Ok(Rest {
            body: self.body,
            stray: self.stray,
            unreadable: self.unreadable,
        })
    }

    /// Whether what came last is more than a comment: a piece of a data line or of a body.
    pub(super) fn is_within_data(&self) -> bool {
        self.body.is_some() || self.line.starts_with(b"data:")
    }

    fn line(&mut self, line: &[u8], take: &mut Take<'_>) -> Result<(), Fault> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        let mut text = text.as_ref();
        if !mem::replace(&mut self.started, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if let Some(value) = field(text, "data") {
            return self.data(value, take);
        }
        if text.is_empty() {
            return self.dispatch(take);
        }
        if let Some(name) = field(text, "event") {
            self.in_error = name.trim() == "error";
        } else if let Some(value) = field(text, "error") {
            take(Frame::Error(value))?;
        } else if text.trim_start().starts_with(['{', '[', '<']) {
            self.body = Some(format!("{text}\n").into_bytes());
        } else if !text.starts_with(':')
            && field(text, "id").or(field(text, "retry")).is_none()
            && self.stray.len() < STRAY_LIMIT
        {
            self.stray.extend(text.chars().take(STRAY_LIMIT));
            self.stray.push('\n');
        }
        Ok(())
    }

    /// One line of data. Most stand for themselves; one that does not waits for the next.
    fn data(&mut self, value: &str, take: &mut Take<'_>) -> Result<(), Fault> {
        if self.pending.is_empty() {
            if !value.is_empty() && !take(self.frame(value))? {
                self.pending.push_str(value);
            }
            return Ok(());
        }
        if self.pending.len() + value.len() >= LINE_LIMIT {
            return Err(too_long());
        }
        self.pending.push('\n');
        self.pending.push_str(value);
        Ok(())
    }

    /// The end of an event.
    fn dispatch(&mut self, take: &mut Take<'_>) -> Result<(), Fault> {
        let pending = mem::take(&mut self.pending);
        let several = pending.contains('\n');
        let understood = pending.is_empty() || (several && take(self.frame(&pending))?);
        if !understood {
            // Together the lines make no sense; a proxy may have lost the blank lines between them.
            for line in pending.split('\n') {
                let understood = several && !line.is_empty() && take(self.frame(line))?;
                self.unreadable += usize::from(!understood && !is_keep_alive(line));
            }
        }
        self.in_error = false;
        Ok(())
    }

    fn frame<'a>(&self, text: &'a str) -> Frame<'a> {
        if self.in_error {
            Frame::Error(text)
        } else {
            Frame::Data(text)
        }
    }
}

/// The value of the field `name`, without the one space that may follow the colon.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(':')?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

/// Whether data says no more than that the connection is alive.
fn is_keep_alive(data: &str) -> bool {
    let data = data.trim();
    data.is_empty() || data.starts_with(':') || data == "ping"
}

fn too_long() -> Fault {
    Fault::Foreign("the answer has a line without end".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What came, with the pieces of data that parse as JSON taken for understood.
    fn frames(chunks: &[&[u8]]) -> (Vec<String>, Rest) {
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        let mut take = |frame: Frame<'_>| {
            Ok(match frame {
                Frame::Data(text) => {
                    let understood =
                        text == "[DONE]" || serde_json::from_str::<serde_json::Value>(text).is_ok();
                    if understood {
                        seen.push(text.to_owned());
                    }
                    understood
                }
                Frame::Error(text) => {
                    seen.push(format!("error {text}"));
                    true
                }
            })
        };
        for chunk in chunks {
            reader.feed(chunk, &mut take).unwrap();
        }
        let rest = reader.finish(&mut take).unwrap();
        (seen, rest)
    }

    /// The table of the notes (1.1): what comes, and which data it amounts to.
    const FRAMING: &[(&str, &str, &[&str])] = &[
        (
            "plain",
            "data: {\"a\":1}\n\ndata: [DONE]\n\n",
            &["{\"a\":1}", "[DONE]"],
        ),
        ("comment", ": OPENROUTER PROCESSING\n\ndata: 1\n\n", &["1"]),
        ("bare colon", ":\n\n:\n\ndata: 1\n\n", &["1"]),
        (
            "comment wrapped as data",
            "data: : OPENROUTER PROCESSING\n\ndata: 1\n\n",
            &["1"],
        ),
        (
            "heartbeat",
            "event: ping\ndata: {}\n\ndata: 1\n\n",
            &["{}", "1"],
        ),
        ("ping", "data: ping\n\ndata: 1\n\n", &["1"]),
        ("no space", "data:{\"a\":1}\n\n", &["{\"a\":1}"]),
        ("only one space goes", "data:  \" a\"\n\n", &[" \" a\""]),
        ("CRLF", "data: 1\r\n\r\ndata: 2\r\n\r\n", &["1", "2"]),
        ("no blank lines", "data: 1\ndata: 2\n", &["1", "2"]),
        ("no last line break", "data: 1\n\ndata: 2", &["1", "2"]),
        ("fields", "id: 7\nevent: x\nretry: 10\ndata: 1\n\n", &["1"]),
        ("empty data", "data:\n\ndata\n\ndata: 1\n\n", &["1"]),
        ("id alone", "id: 1\n\ndata: 1\n\n", &["1"]),
        (
            "data over lines",
            "data: {\ndata: \"a\":\ndata: {}\ndata: }\n\n",
            &["{\n\"a\":\n{}\n}"],
        ),
        (
            "two lines of garbage before data",
            "data: x\ndata: 1\n\n",
            &["1"],
        ),
        (
            "error field",
            "error: {\"code\":500}\n\n",
            &["error {\"code\":500}"],
        ),
        (
            "error event",
            "event: error\ndata: {\"m\":1}\n\ndata: 1\n\n",
            &["error {\"m\":1}", "1"],
        ),
        ("byte order mark", "\u{feff}data: 1\n\n", &["1"]),
    ];

    #[test]
    fn c3_every_kind_of_framing_gives_its_data() {
        for (name, stream, expected) in FRAMING {
            let (seen, rest) = frames(&[stream.as_bytes()]);
            assert_eq!(seen, *expected, "{name}");
            assert_eq!(rest.body, None, "{name}");
        }
    }

    #[test]
    fn data_nobody_understands_is_counted() {
        assert_eq!(frames(&[b"data: {\"a\n\ndata: 1\n\n"]).1.unreadable, 1);
        assert_eq!(frames(&[b"data: : x\n\ndata: ping\n\n"]).1.unreadable, 0);
    }

    #[test]
    fn a_body_without_framing_is_kept_whole() {
        for body in [
            "{\"error\":1}",
            "\n\n {\n\"a\":1}\n",
            "<html>\n</html>",
            "[1,\n2]",
        ] {
            let (seen, rest) = frames(&[body.as_bytes()]);
            assert_eq!(seen, Vec::<String>::new());
            let kept = String::from_utf8(rest.body.unwrap()).unwrap();
            assert_eq!(kept.trim(), body.trim());
        }
        let (seen, rest) = frames(&[b"data: 1\n\n{\"error\":\n\"x\"}"]);
        assert_eq!(seen, ["1"]);
        assert_eq!(rest.body.unwrap().trim_ascii(), b"{\"error\":\n\"x\"}");
    }

    #[test]
    fn lines_that_are_no_events_are_kept_to_describe_the_answer() {
        assert_eq!(
            frames(&[b"upstream connect error\n"]).1.stray,
            "upstream connect error\n"
        );
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let mut reader = Reader::default();
        let block = vec![b'x'; 1 << 20];
        let mut take = |_: Frame<'_>| Ok(true);
        let outcome = (0..20).try_for_each(|_| reader.feed(&block, &mut take));
        assert!(matches!(outcome, Err(Fault::Foreign(_))));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_replaced_per_line() {
        let (seen, _) = frames(&[b"data: \"\xff\"\n\n"]);
        assert_eq!(seen, ["\"\u{fffd}\""]);
    }

    proptest! {
        #[test]
        fn any_cut_of_the_same_bytes_gives_the_same_frames(
            cuts in prop::collection::vec(0usize..400, 0..12),
            crlf in any::<bool>(),
        ) {
            let mut stream = String::from("data: \"\u{1f600} caf\u{e9}\"\n\ndata: {\ndata: \"a\":2}\n\n");
            for (_, bytes, _) in FRAMING {
                stream.push_str(bytes);
                stream.push_str("\n\n");
            }
            if crlf {
                stream = stream.replace("\r\n", "\n").replace('\n', "\r\n");
            }
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(frames(&chunks).0, frames(&[bytes]).0);
        }
    }
}
