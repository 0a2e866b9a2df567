//! How much memory it takes: idle, with a long answer, with an endless command.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};

use super::stream::long_answer;
use crate::process::{self, Place};
use crate::pty::Pty;
use crate::server::{Server, shell_call, stream, stream_head};
use crate::table::{Row, mb};

/// Idle at the prompt; the peak while a megabyte is rendered; the peak while a command prints a
/// gigabyte. The floor is curl waiting for an answer.
pub(super) fn memory(_: &[PathBuf]) -> Vec<Row> {
    let curl = ("curl", mb(waiting_curl()));
    [
        ("memory, idle (PSS)", idle(), "under 6 MB", 6_000_000),
        (
            "memory, rendering 1 MB (peak)",
            peak(vec![long_answer()]),
            "under 12 MB",
            12_000_000,
        ),
        (
            "memory, a command prints 1 GB (peak)",
            peak(vec![
                shell_call("yes 'one more line of output' | head -c 1000000000"),
                stream(["Done."]),
            ]),
            "under 20 MB",
            20_000_000,
        ),
    ]
    .map(|(what, bytes, goal, limit)| Row {
        what,
        ours: mb(bytes),
        floor: Some(curl.clone()),
        ratio: None,
        goal,
        met: bytes < limit,
        peers: Vec::new(),
    })
    .into()
}

fn idle() -> u64 {
    let server = Server::repeating(stream(["Done."]));
    let place = Place::new(&server.endpoint());
    let mut terminal = Pty::start(&place.command(process::BANTAM));
    terminal.prompt();
    terminal.settle();
    process::memory_now(terminal.process())
}

/// The most memory until the prompt is back.
fn peak(answers: Vec<Vec<u8>>) -> u64 {
    let server = Server::scripted(answers);
    let place = Place::new(&server.endpoint());
    let mut terminal = Pty::start(&place.command(process::BANTAM));
    terminal.prompt();
    terminal.write("Go on.\r");
    terminal.until("completion | context");
    terminal.settle();
    process::memory_peak(terminal.process())
}

fn waiting_curl() -> u64 {
    let measured = Arc::new(Barrier::new(2));
    let until = Arc::clone(&measured);
    let server = Server::start(move |_, stream| {
        stream.write_all(&stream_head())?;
        until.wait();
        Ok(())
    });
    let place = Place::new(&server.endpoint());
    let terminal = Pty::start(&place.curl());
    server.arrival();
    terminal.settle();
    let memory = process::memory_now(terminal.process());
    measured.wait();
    memory
}
