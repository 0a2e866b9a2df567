//! What typing and pasting cost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::process::{self, Place};
use crate::pty::Pty;
use crate::server::{Server, stream};
use crate::table::{Row, median, ms};

const KEYS: usize = 50;

/// Key to echo at the end of a text of 10 KB, and what is written for it.
pub(super) fn key(_: &[PathBuf]) -> Vec<Row> {
    let (_, bytes_of_little) = type_behind(10);
    let (time, bytes) = type_behind(10_000);
    vec![Row {
        what: "key to echo, at the end of a 10 KB text",
        ours: format!(
            "{}, {bytes} B (behind 10 bytes: {bytes_of_little} B)",
            ms(time)
        ),
        floor: None,
        ratio: None,
        goal: "under 1 ms, bytes independent of the text",
        met: time < Duration::from_millis(1) && bytes <= bytes_of_little + 8,
        peers: Vec::new(),
    }]
}

/// The median time and the bytes of one key behind a text of this length.
fn type_behind(length: usize) -> (Duration, usize) {
    let mut editor = Editor::open();
    editor.paste(&prose(length));
    editor.terminal.settle();
    let mut written = 0;
    let mut times: Vec<Duration> = (0..KEYS)
        .map(|_| {
            let start = Instant::now();
            editor.terminal.write("x");
            let (at, bytes) = editor.terminal.until("x");
            written += bytes + editor.terminal.settle();
            at - start
        })
        .collect();
    (median(&mut times), written / KEYS)
}

/// A paste of 200,000 characters.
pub(super) fn paste(_: &[PathBuf]) -> Vec<Row> {
    const LENGTH: usize = 200_000;
    let mut editor = Editor::open();
    // One character, so that no margin can divide it.
    let text = prose(LENGTH - 1) + "#";
    let start = Instant::now();
    editor.paste(&text);
    let (at, bytes) = editor.terminal.until("#");
    let bytes = bytes + editor.terminal.settle();
    let time = at - start;
    #[allow(clippy::cast_precision_loss)] // sizes are far below 2^52
    let share = bytes as f64 / LENGTH as f64;
    vec![Row {
        what: "paste of 200,000 characters",
        ours: format!("{}, {share:.2} × its bytes", ms(time)),
        floor: None,
        ratio: None,
        goal: "under 100 ms, at most 3 × its bytes",
        met: time < Duration::from_millis(100) && share <= 3.0,
        peers: Vec::new(),
    }]
}

/// bantam at its prompt.
struct Editor {
    terminal: Pty,
    _place: Place,
}

impl Editor {
    fn open() -> Self {
        let server = Server::repeating(stream(["Done."]));
        let place = Place::new(&server.endpoint());
        let mut terminal = Pty::start(&place.command(process::BANTAM));
        terminal.prompt();
        terminal.settle();
        Self {
            terminal,
            _place: place,
        }
    }

    /// Pastes as terminals do.
    fn paste(&mut self, text: &str) {
        self.terminal
            .write(&format!("\u{1b}[200~{text}\u{1b}[201~"));
    }
}

/// So many bytes of words without an x.
fn prose(length: usize) -> String {
    "some words that say nothing and go on and on "
        .chars()
        .cycle()
        .take(length)
        .collect()
}
