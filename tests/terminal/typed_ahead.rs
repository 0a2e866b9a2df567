//! What is typed while nobody reads (SPEC F5).

use super::at_prompt;
use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Gate, Reply, Server};

/// An answer that stops in its middle until the gate opens.
fn held(gate: &Gate) -> Reply {
    Reply::stream()
        .text("begin ")
        .hold(gate)
        .text("end")
        .finish("stop")
        .usage(10, 5)
        .done()
}

#[test]
fn f5_what_is_typed_during_a_run_is_sent_afterwards_and_once() {
    let gate = Gate::new();
    let (server, mut pty) = at_prompt([held(&gate), Reply::answer("second")]);
    pty.submit("first");
    gate.wait();
    pty.keys("ne").keys("xt").keys("\r");
    gate.open();
    pty.wait_for("second");
    pty.wait_for_prompt();
    assert_eq!(server.last_request().contents("user"), ["first", "next"]);
    let transcript = pty.transcript();
    let echoed = transcript.iter().filter(|row| row.contains("next"));
    assert_eq!(echoed.collect::<Vec<_>>(), ["> next"]);
}

#[test]
fn f5_several_lines_typed_ahead_are_one_prompt() {
    let gate = Gate::new();
    let (server, mut pty) = at_prompt([held(&gate), Reply::answer("second")]);
    pty.submit("first");
    gate.wait();
    pty.keys("one\r").keys("two\r");
    gate.open();
    pty.wait_for("second");
    assert_eq!(
        server.last_request().contents("user"),
        ["first", "one\ntwo"]
    );
}

#[test]
fn f5_what_is_typed_ahead_outlives_a_ctrl_c() {
    let gate = Gate::new();
    let (server, mut pty) = at_prompt([held(&gate)]);
    pty.submit("first");
    gate.wait();
    pty.keys("ahead").keys("\x03").keys(" more");
    pty.wait_for_text(&["> ahead more"], (0, 12));
    gate.open();
    drop(server);
}

#[test]
fn f5_what_was_typed_before_the_start_is_the_first_prompt() {
    let server = Server::start([Reply::answer("fine")]);
    let mut pty = Pty::start(Cli::against(&server));
    pty.keys("early\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), ["early"]);
}

#[test]
fn f5_a_question_is_not_answered_by_what_was_typed_before_it() {
    let gate = Gate::new();
    let reply = Reply::stream()
        .text("begin ")
        .hold(&gate)
        .text("end")
        .finish("stop")
        .usage(150_000, 5)
        .done();
    let (server, mut pty) = at_prompt([reply, Reply::answer("second")]);
    pty.submit("first");
    gate.wait();
    pty.keys("y\r");
    gate.open();
    pty.wait("the question", |screen| screen.has("[Y/n]:"));
    pty.keys("n\r");
    pty.wait_for("second");
    pty.wait_for_prompt();
    assert_eq!(server.last_request().contents("user"), ["first", "y"]);
}

#[test]
fn c11_ctrl_c_interrupts_after_more_typing_than_the_system_keeps() {
    let gate = Gate::new();
    let server = Server::start([held(&gate), Reply::answer("second")]).history_may_change();
    let mut pty = Pty::start(Cli::against(&server));
    pty.wait_for_prompt();
    pty.submit("first");
    gate.wait();
    let long = "typed ahead ".repeat(2_000);
    pty.keys(&format!("\x1b[200~{long}\x1b[201~"));
    pty.keys("\x03");
    pty.wait_for("interrupted");
    gate.open();
    pty.keys("\r");
    pty.wait_for("second");
    assert_eq!(server.last_request().contents("user"), [long.trim_end()]);
}
