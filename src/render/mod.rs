//! What a person sees: answers, traces and messages.
//!
//! [`screen`] makes the sink for people: `human` for conversations, `plain` for `--quiet`.
//! Standard output carries the conversation and what commands print; standard error carries
//! `messages`: the status, retries, notices, warnings and errors (SPEC A6). Nothing here reads the
//! terminal, changes its modes or touches the conversation.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::event::Sink;
use crate::sanitize::Redactor;

pub mod text;

mod flow;
mod fold;
mod hold;
mod html;
mod human;
mod inline;
mod leaf;
mod line;
mod markdown;
mod messages;
mod openers;
mod plain;
mod prefix;
mod table;
mod tag;
mod theme;

use theme::{Page, Style};

/// How things are to be shown, as found out by whoever knows the streams and settings.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts of two streams
pub struct Look {
    /// Whether standard output is a terminal that is not dumb.
    pub terminal: bool,
    /// Whether standard error is one.
    pub error_terminal: bool,
    /// Whether standard output is coloured.
    pub color: bool,
    /// Whether standard error is coloured.
    pub error_color: bool,
    /// Whether answers are laid out as Markdown; otherwise their source is passed through.
    pub markdown: bool,
    /// Whether only the text of the last answer goes to standard output (SPEC A3).
    pub quiet: bool,
    /// What knows the secrets that must not appear.
    pub redactor: Redactor,
}

/// A sink for people, with what the application itself has to say.
pub trait Screen: Sink {
    /// Writes whole lines to standard output: what commands print. They are made harmless.
    fn line(&mut self, text: &str);

    /// Writes a piece of a command's output as it comes.
    fn command_output(&mut self, chunk: &str);

    /// Writes a newline if the last output ended without one, and takes the status away.
    fn end_line(&mut self);

    /// Writes an error and its hint to standard error. A cancelled run is no error.
    fn error(&mut self, error: &Error);

    /// Shows things differently from now on: a setting was changed.
    fn set_look(&mut self, look: Look);

    /// Writes out everything.
    ///
    /// # Errors
    /// The first error of standard output since the start, the broken pipe included.
    fn finish(&mut self) -> io::Result<()>;
}

/// The sink for people on these two streams; `width` tells the columns there are at the moment.
///
/// The streams are written in one piece at each flush: they need no buffer of their own.
pub fn screen<'a, O: Write + 'a, E: Write + 'a>(
    out: O,
    err: E,
    look: Look,
    width: Box<dyn Fn() -> usize + 'a>,
) -> Box<dyn Screen + 'a> {
    if look.quiet {
        Box::new(plain::Quiet::new(out, err, look, width))
    } else {
        Box::new(human::Human::new(out, err, look, width))
    }
}

/// How much text waits for a flush at most, in bytes.
const STREAM_LIMIT: usize = 64 * 1024;

/// A write that takes so long waits for a reader that may never read.
const STUCK: Duration = Duration::from_millis(50);

/// When the write to standard output began that is under way.
static WRITING: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether standard output keeps the thread that writes there: it can't end the program then.
pub fn is_stuck() -> bool {
    writing().is_some_and(|began| began.elapsed() >= STUCK)
}

fn writing() -> MutexGuard<'static, Option<Instant>> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream with the page that is being written, and the error it once gave.
struct Stream<W> {
    writer: W,
    page: Page,
    failure: Option<io::Error>,
}

impl<W: Write> Stream<W> {
    fn new(writer: W, color: bool) -> Self {
        Self {
            writer,
            page: Page::new(color),
            failure: None,
        }
    }

    fn put(&mut self, text: &str, style: Style) {
        self.page.put(text, style);
        self.flush_if_full();
    }

    fn flush_if_full(&mut self) {
        if self.page.as_bytes().len() > STREAM_LIMIT {
            self.flush();
        }
    }

    fn put_line(&mut self, text: &str, style: Style) {
        self.put(text, style);
        self.put("\n", Style::default());
    }

    /// Writes out the page. After the first error nothing is written any more.
    fn flush(&mut self) {
        if self.failure.is_none() && !self.page.as_bytes().is_empty() {
            *writing() = Some(Instant::now());
            self.failure = write_all(&mut self.writer, self.page.as_bytes()).err();
            *writing() = None;
        }
        self.page.clear();
    }

    fn is_broken_pipe(&self) -> bool {
        self.failure
            .as_ref()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Like `Write::write_all` and `flush`, but waits where the stream is one that does not block: a
/// program that shares the terminal may have switched it over.
fn write_all(writer: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match patiently(|| writer.write(bytes))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = bytes.get(written..).unwrap_or_default(),
        }
    }
    patiently(|| writer.flush())
}

fn patiently<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at a time, and every other write fails as those of a shared terminal may.
    #[derive(Default)]
    struct Halting {
        written: Vec<u8>,
        calls: usize,
    }

    impl Write for Halting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            match self.calls % 4 {
                1 => Err(io::ErrorKind::WouldBlock.into()),
                3 => Err(io::ErrorKind::Interrupted.into()),
                _ => {
                    let taken = bytes.len().min(3);
                    self.written.extend(bytes.iter().take(taken));
                    Ok(taken)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stream_that_halts_gets_everything_in_the_end() {
        let mut stream = Stream::new(Halting::default(), false);
        stream.put_line("a line of some length", Style::default());
        stream.flush();
        assert!(stream.failure.is_none());
        assert_eq!(stream.writer.written, b"a line of some length\n");
    }

    #[test]
    fn after_an_error_nothing_is_written_any_more() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut stream = Stream::new(Full(0), false);
        for _ in 0..3 {
            stream.put_line("x", Style::default());
            stream.flush();
        }
        assert_eq!(stream.writer.0, 1);
        assert!(stream.failure.is_some() && !stream.is_broken_pipe());
    }
}
