//! Ctrl+C at the keyboard (SPEC C11).

use std::path::Path;

use rustix::process::Signal;

use super::at_prompt;
use crate::common::process::wait_for_end_of;
use crate::common::pty::Pty;
use crate::common::server::{Gate, Reply};

#[test]
fn c11_ctrl_c_in_an_answer_brings_the_prompt_back_and_up_the_text() {
    let gate = Gate::new();
    let held = Reply::stream().text("begin ").hold(&gate);
    let (server, mut pty) = at_prompt([held, Reply::answer("second")]);
    let server = server.history_may_change();
    pty.submit("first");
    gate.wait();
    pty.keys("\x03");
    pty.wait_for_prompt();
    pty.keys("\x1b[A!");
    pty.wait_for_text(&["> first!"], (0, 8));
    pty.keys("\r");
    pty.wait_for("second");
    assert_eq!(server.last_request().contents("user"), ["first!"]);
    gate.open();
}

#[test]
fn c11_ctrl_c_ends_a_command_and_what_it_started() {
    let command = "sleep 1000 & echo $! > child; echo started; wait";
    let (server, mut pty) = at_prompt([Reply::shell(command), Reply::answer("second")]);
    pty.submit("first");
    pty.wait("the command's output", |screen| {
        screen.rows.iter().any(|row| row == "started")
    });
    let child = pid_in(&pty.directory().join("child"));
    pty.keys("\x03");
    pty.wait_for_prompt();
    wait_for_end_of(child);
    pty.submit("go on");
    pty.wait_for("second");
    let result = server.last_request().result();
    assert!(result.contains("started"), "{result}");
    assert!(result.contains("interrupted by the user"), "{result}");
}

#[test]
fn c11_ctrl_c_ends_the_wait_for_another_try() {
    let (server, mut pty) = at_prompt([Reply::error(500, "broken"), Reply::answer("second")]);
    let _server = server.history_may_change();
    pty.submit("first");
    pty.wait("a retry", |screen| screen.has("broken"));
    pty.keys("\x03");
    pty.wait_for_prompt();
    pty.submit("again");
    pty.wait_for("second");
}

#[test]
fn c11_ctrl_c_at_a_question_is_no_answer() {
    let reply = Reply::stream()
        .text("one")
        .finish("stop")
        .usage(150_000, 5)
        .done();
    let (_server, mut pty) = at_prompt([reply]);
    pty.submit("first");
    pty.wait("the question", |screen| screen.has("[Y/n]:"));
    pty.keys("\x03");
    pty.wait_for_prompt();
}

#[test]
fn f5_a_signal_at_the_prompt_is_a_ctrl_c_there() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("abc");
    pty.wait_for_text(&["> abc"], (0, 5));
    pty.signal(Signal::INT);
    pty.wait_for_prompt();
    pty.keys("x");
    pty.wait_for_text(&["> x"], (0, 3));
}

fn pid_in(file: &Path) -> u32 {
    std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn d8_a_command_of_the_persons_gets_the_terminal_and_its_own_ctrl_c() {
    let (_server, mut pty) = at_prompt([]);
    pty.submit("!echo ready; read line </dev/tty; echo \"got $line\"");
    pty.wait("the command", |screen| {
        screen.rows.iter().any(|row| row == "ready")
    });
    // Echoed by the terminal, which edits its lines.
    pty.keys("hel");
    pty.wait("an echo", |screen| screen.line() == "hel");
    pty.keys("lo\r");
    pty.wait_for("got hello");
    pty.wait_for_prompt();
    pty.submit("!trap 'echo caught; exit 3' INT; echo go; sleep 1000 & wait");
    pty.wait("the command", |screen| {
        screen.rows.iter().any(|row| row == "go")
    });
    pty.keys("\x03");
    pty.wait_for("caught");
    pty.wait_for("exit: 3");
    pty.wait_for_prompt();
}

#[test]
fn d8_pastes_are_not_marked_while_a_command_has_the_terminal() {
    let (_server, mut pty) = at_prompt([]);
    pty.submit("!echo mark");
    pty.wait_for("exit: 0");
    pty.wait_for_prompt();
    let raw = String::from_utf8(pty.raw()).unwrap();
    let (before, after) = raw.rsplit_once("mark\r\n").unwrap();
    assert!(before.ends_with("\x1b[?2004l"), "{before:?}");
    assert!(after.contains("\x1b[?2004h"), "{after:?}");
    drop::<Pty>(pty);
}
