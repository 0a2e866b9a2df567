//! What a program writes to one of its streams, read as it comes.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

/// What a stream of the program has brought so far, read by a thread of its own.
pub(crate) struct Captured(Arc<(Mutex<Stream>, Condvar)>);

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    ended: bool,
}

impl Captured {
    /// Reads it from now on, to its end or, if so many are named, for so many lines.
    pub(crate) fn of(mut source: impl Read + Send + 'static, lines: Option<usize>) -> Self {
        let shared = Arc::new((Mutex::new(Stream::default()), Condvar::new()));
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            // Who reads lines like `head` must not read beyond them.
            let size = if lines.is_some() { 1 } else { buffer.len() };
            let mut enough = false;
            while !enough {
                let count = source.read(&mut buffer[..size]).unwrap_or(0);
                let mut stream = for_thread.0.lock().unwrap();
                stream.bytes.extend_from_slice(&buffer[..count]);
                let newlines = || stream.bytes.split(|byte| *byte == b'\n').count() - 1;
                enough = count == 0 || lines.is_some_and(|lines| newlines() >= lines);
                for_thread.1.notify_all();
            }
            drop(source);
            for_thread.0.lock().unwrap().ended = true;
            for_thread.1.notify_all();
        });
        Self(shared)
    }

    /// What has come so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the text is there; false when the time or the stream is at its end without.
    pub(crate) fn wait_for(&self, text: &str, ends_before: Instant) -> bool {
        let found = |stream: &Stream| String::from_utf8_lossy(&stream.bytes).contains(text);
        self.wait(ends_before, |stream| stream.ended || found(stream));
        found(&self.0.0.lock().unwrap())
    }

    /// Waits for the end of the stream; false when the time is up.
    pub(crate) fn wait_for_end(&self, ends_before: Instant) -> bool {
        self.wait(ends_before, |stream| stream.ended)
    }

    fn wait(&self, ends_before: Instant, condition: impl Fn(&Stream) -> bool) -> bool {
        let rest = ends_before.saturating_duration_since(Instant::now());
        let stream = self.0.0.lock().unwrap();
        let (stream, _) = self
            .0
            .1
            .wait_timeout_while(stream, rest, |stream| !condition(stream))
            .unwrap();
        condition(&stream)
    }
}
