//! What a long answer costs, and how soon a word of it is on the screen.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::Medians;
use crate::process::{self, CpuTime, Place};
use crate::pty::Pty;
use crate::server::{Server, stream, stream_end, stream_head, text_event};
use crate::table::{Row, median, ms, percentile};

const RUNS: usize = 10;

/// Chunks of the long answer, of 50 bytes each.
const CHUNKS: usize = 20_000;

/// Words whose delay is measured, and the pause between two.
const WORDS: usize = 500;
const PAUSE: Duration = Duration::from_millis(4);

/// A document of a megabyte with something of everything, in chunks like a model's.
pub(super) fn long_answer() -> Vec<u8> {
    let section = "## A heading with `code`\n\n\
        Some **bold** and *emphasised* prose that goes on for a while, so that it has to be \
        wrapped at the margin, with a [link](https://example.org/a/page) and `inline code` in it. \
        It says nothing, but at length, as answers do now and then when nobody is looking.\n\n\
        - a first point, with a second line of its own that is long enough to be wrapped too\n\
        - a second point with `code`\n  1. and a numbered one inside\n  2. and another\n\n\
        > Somebody said this, or something very much like it.\n\n\
        ```rust\nfn main() {\n    println!(\"Hello, {}\", \"world\");\n}\n```\n\n\
        | name | value | remark |\n|---|---:|---|\n| first | 1 | short |\n| second | 22 | longer than that |\n\n";
    let text: String = section.chars().cycle().take(CHUNKS * 50).collect();
    let pieces = (0..CHUNKS).map(|chunk| &text[chunk * 50..(chunk + 1) * 50]);
    stream(pieces)
}

/// CPU time for a long answer into a pipe, beside `curl -N`.
pub(super) fn into_a_pipe(peers: &[PathBuf]) -> Vec<Row> {
    let medians = Medians::take(RUNS, long_answer(), peers, |_, mut command| {
        process::run(&mut command).cpu
    });
    let what = "20,000 chunks (1 MB) into a pipe, CPU";
    vec![medians.row(what, "at most 3 × curl's", 3.0)]
}

/// CPU time for a long answer rendered on a terminal, beside `curl -N` there.
pub(super) fn on_a_terminal(peers: &[PathBuf]) -> Vec<Row> {
    let medians = Medians::take(RUNS, long_answer(), peers, |_, command| {
        let cpu = CpuTime::start();
        Pty::start(&command).finish();
        cpu.spent()
    });
    let what = "the same, rendered on a terminal, CPU";
    vec![medians.row(what, "at most 3 × curl's", 3.0)]
}

/// How long a word takes from the server's write to the terminal.
pub(super) fn delay(_: &[PathBuf]) -> Vec<Row> {
    let sent = Arc::new(Mutex::new(HashMap::new()));
    let times = Arc::clone(&sent);
    let server = Server::start(move |_, stream| {
        stream.write_all(&stream_head())?;
        for number in 0..WORDS {
            thread::sleep(PAUSE);
            // Few enough words a line that none comes near the margin, where it may have to wait.
            let space = if number % 6 == 5 { "\n\n" } else { " " };
            let word = word(number);
            let bytes = text_event(&format!("{word}{space}"));
            times.lock().unwrap().insert(word, Instant::now());
            stream.write_all(&bytes)?;
        }
        stream.write_all(&stream_end("stop"))
    });
    let place = Place::new(&server.endpoint());
    let terminal = Pty::start(&place.one_shot());
    let mut delays = Vec::new();
    let mut seen = Vec::new();
    while let Some((at, bytes)) = terminal.next() {
        seen.extend(bytes);
        while delays.len() < WORDS {
            let word = word(delays.len());
            let Some(start) = seen.windows(word.len()).position(|w| w == word.as_bytes()) else {
                break;
            };
            seen.drain(..start + word.len());
            delays.push(at.saturating_duration_since(sent.lock().unwrap()[&word]));
        }
    }
    assert_eq!(delays.len(), WORDS, "not every word was shown");
    let (middle, most) = (median(&mut delays), percentile(&mut delays, 99));
    vec![Row {
        what: "delay of a word from arrival to the terminal, median / 99 %",
        ours: format!("{} / {}", ms(middle), ms(most)),
        floor: None,
        ratio: None,
        goal: "under 1 ms / 4 ms",
        met: middle < Duration::from_millis(1) && most < Duration::from_millis(4),
        peers: Vec::new(),
    }]
}

fn word(number: usize) -> String {
    format!("word{number:05}")
}
