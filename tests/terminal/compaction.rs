//! The question whether to compact, and what follows from the answer (SPEC E9).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

#[test]
fn e9_what_was_compacted_stays_when_the_new_try_fails() {
    let too_long = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    let server = Server::start([
        Reply::shell("echo step"),
        Reply::error_json(400, &too_long),
        Reply::answer("THE SUMMARY"),
        Reply::error(400, "no"),
        Reply::answer("fine"),
    ])
    .history_may_change();
    let mut pty = Pty::start(Cli::against(&server));
    pty.wait_for_prompt();
    pty.submit("hello").wait_for("[Y/n]:");
    pty.submit("y").wait_for("error: HTTP 400: no");
    pty.wait_for_prompt();
    pty.submit("next").wait_for("fine");
    let said = server.last_request().contents("user").join("\n");
    assert!(said.contains("THE SUMMARY"), "{said}");
    pty.wait_for_prompt();
    pty.keys("\x04").finish();
}

#[test]
fn e9_a_first_prompt_that_is_too_long_is_given_back_without_a_question() {
    let too_long = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    let server = Server::start([Reply::error_json(400, &too_long)]);
    let mut pty = Pty::start(Cli::against(&server));
    pty.wait_for_prompt();
    pty.submit("hello").wait_for("too long");
    let screen = pty.wait_for_prompt();
    assert!(!screen.has("[Y/n]"));
    pty.keys("\x04").finish();
}
