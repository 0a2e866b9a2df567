//! Terminals that can do no more than print (SPEC F6).

use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

#[test]
fn f6_a_dumb_terminal_gets_lines_and_no_escape_sequence() {
    let server = Server::start([Reply::answer("**bold** answer"), Reply::answer("two")]);
    let mut pty = Pty::start(Cli::against(&server).env("TERM", "dumb"));
    pty.wait_for_prompt();
    pty.keys("helo\x7flo\r");
    pty.wait_for("answer");
    pty.wait_for_prompt();
    pty.keys("next\r");
    pty.wait_for("two");
    pty.wait_for_prompt();
    pty.keys("\x04");
    assert_eq!(pty.finish(), 0);
    assert_eq!(server.last_request().contents("user"), ["hello", "next"]);
    assert!(!pty.raw().contains(&b'\x1b'));
}

#[test]
fn f6_ctrl_c_at_a_dumb_terminal_drops_the_line() {
    let server = Server::start([Reply::answer("fine")]);
    let mut pty = Pty::start(Cli::against(&server).env("TERM", "dumb"));
    pty.wait_for_prompt();
    pty.keys("nonsense");
    pty.wait("an echo", |screen| screen.line() == "> nonsense");
    pty.keys("\x03");
    pty.wait_for_prompt();
    pty.keys("hello\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), ["hello"]);
}
