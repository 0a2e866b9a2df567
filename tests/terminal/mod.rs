//! The terminal, with the real program at it (SPEC F, C11 at the keyboard, D8, A1).

use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

mod answers;
mod compaction;
mod history;
mod interrupts;
mod keys;
mod leaving;
mod paste;
mod plain;
mod screen;
mod start;
mod typed_ahead;

/// A run against a server that answers with these replies, at its first prompt.
#[track_caller]
fn at_prompt(replies: impl IntoIterator<Item = Reply>) -> (Server, Pty) {
    let server = Server::start(replies);
    let pty = Pty::start(Cli::against(&server));
    pty.wait_for_prompt();
    (server, pty)
}

/// The modes of a terminal that nobody has touched.
fn found_modes() -> String {
    let mut pty = Pty::start(Cli::new().arg("--version"));
    pty.finish();
    modes(&pty)
}

/// The modes of the terminal as they are now.
fn modes(pty: &Pty) -> String {
    format!("{:?}", pty.modes())
}
