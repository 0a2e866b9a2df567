//! Time limits and connections (SPEC C3, C4, G).

use std::time::Duration;

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

#[test]
fn c4_a_server_that_never_answers_is_a_network_failure_after_the_timeout() {
    let server = Server::start([Reply::silence(), Reply::answer("ok")]);
    Cli::against(&server)
        .config("timeout=1")
        .prompt("x")
        .run()
        .success()
        .stdout_has("ok\n");
}

#[test]
fn c3_a_stream_that_brings_nothing_but_comments_stalls() {
    let pause = Duration::from_millis(200);
    let comments = (0..8).fold(Reply::stream().text("half"), |reply, _| {
        reply.comment("ping").pause(pause)
    });
    let server = Server::start([comments.stall(), Reply::answer("whole")]);
    Cli::against(&server)
        .config("timeout=1")
        .prompt("x")
        .run()
        .success()
        .stdout_has("whole\n");
}

#[test]
fn c4_a_long_stream_is_never_cut_while_it_moves() {
    let pause = Duration::from_millis(400);
    let slow = (0..5).fold(Reply::stream(), |reply, _| reply.text("word ").pause(pause));
    let server = Server::start([slow.finish("stop").done()]);
    Cli::against(&server)
        .config("timeout=1")
        .prompt("x")
        .run()
        .success()
        .stdout_has("word word word word word ")
        .stderr_is("...requesting...\n");
}

#[test]
fn g_an_open_connection_is_used_again() {
    let calls = (0..6).map(|_| Reply::shell("true"));
    let server = Server::start(calls.chain([Reply::answer("ok")]));
    Cli::against(&server).prompt("x").run().success();
    let used = server.everything().iter().map(|one| one.connection).max();
    // One for the list of models, one for the conversation, and a spare where the two met.
    assert!(used.unwrap() < 3, "{used:?}");
}

#[test]
fn c3_a_kept_connection_that_was_closed_meanwhile_is_replaced_without_a_word() {
    let server = Server::start([
        Reply::shell("true").close_silently(),
        Reply::shell("true").close(),
        Reply::answer("ok"),
    ]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stderr_is("...requesting...\n...requesting...\n...requesting...\n");
}

#[test]
fn c3_a_kept_connection_that_ends_when_it_is_used_is_replaced_without_a_word() {
    let (listed, gate) = (Gate::new(), Gate::new());
    let sent = listed.clone();
    let server = Server::start([
        Reply::stream()
            .hold(&gate)
            .tool_call(0, "a", "shell_exec", r#"{"command":"true"}"#)
            .finish("tool_calls")
            .done(),
        Reply::hang_up(),
        Reply::answer("ok"),
    ])
    .with_models(move || {
        Reply::models(&json!([{"id": "test-model", "context_length": 4096}])).hold(&sent)
    });
    let run = Cli::against(&server).prompt("x").start();
    // With the list of models out of the way, there is nothing but the conversation.
    listed.wait();
    listed.open();
    gate.open();
    let run = run.finish();
    run.success();
    assert!(!run.stderr.contains("of 9"), "{run}");
}
