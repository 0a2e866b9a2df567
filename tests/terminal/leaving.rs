//! However it ends, the terminal is as it was (SPEC F5).

use std::time::Instant;

use rustix::process::Signal;

use super::{at_prompt, found_modes, modes};
use crate::common::DEADLINE;
use crate::common::cli::Cli;
use crate::common::process::{wait_for_end_of, wait_until};
use crate::common::pty::Pty;
use crate::common::server::{Gate, Reply, Server};

/// Runs the program to the end that `leave` brings about and checks that the terminal is as before.
#[track_caller]
fn check_restored(run: Cli, code: u32, leave: impl Fn(&mut Pty)) -> Pty {
    // What the terminal is like before anyone touches it.
    let found = found_modes();
    let mut pty = Pty::start(run);
    pty.wait_for_prompt();
    assert_ne!(modes(&pty), found);
    leave(&mut pty);
    assert_eq!(pty.finish(), code);
    assert_eq!(modes(&pty), found);
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(
        raw.rfind("\x1b[?2004l") > raw.rfind("\x1b[?2004h"),
        "{raw:?}"
    );
    pty
}

#[test]
fn f5_after_quit_and_the_end_of_input() {
    let server = Server::start([]);
    check_restored(Cli::against(&server), 0, |pty| {
        pty.keys("/quit\r");
    });
    check_restored(Cli::against(&server), 0, |pty| {
        pty.keys("\x04");
    });
}

#[test]
fn f5_after_signals_at_the_prompt() {
    let server = Server::start([]);
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let pty = check_restored(Cli::against(&server), code, |pty| {
            pty.keys("two\nlines\x1b[A");
            pty.wait_for_text(&["> two", "lines"], (0, 5));
            pty.signal(signal);
        });
        // What the shell prints next stands below the prompt.
        let end = pty.wait("the cursor below", |screen| screen.line().is_empty());
        assert!(end.rows[end.cursor.0 - 1].starts_with("lines"), "{end:?}");
    }
}

#[test]
fn f5_after_signals_during_a_run() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Server::start([Reply::shell("echo $$ > child; echo started; sleep 1000")]);
        let pty = check_restored(Cli::against(&server), code, |pty| {
            pty.submit("first");
            pty.wait("the command's output", |screen| {
                screen.rows.iter().any(|row| row == "started")
            });
            pty.signal(signal);
        });
        let child = std::fs::read_to_string(pty.directory().join("child")).unwrap();
        wait_for_end_of(child.trim().parse().unwrap());
    }
}

#[cfg(debug_assertions)]
#[test]
fn f5_after_a_panic_which_is_readable() {
    let server = Server::start([]);
    let run = Cli::against(&server).env("BANTAM_TEST_PANIC", "panic now");
    let found = found_modes();
    let mut pty = Pty::start(run);
    pty.wait_for_prompt();
    pty.submit("panic now");
    let code = pty.finish();
    assert_ne!(code, 0);
    assert_eq!(modes(&pty), found);
    let screen = pty.wait_for("provoked by a test");
    let first = screen
        .rows
        .iter()
        .position(|row| row.contains("panicked"))
        .unwrap();
    // A staircase would begin further and further to the right.
    assert!(
        screen.rows[first].starts_with("thread 'terminal'"),
        "{screen:?}"
    );
    assert!(screen.rows[first + 1].starts_with("provoked"), "{screen:?}");
}

#[test]
fn f5_a_terminal_that_is_closed_ends_the_program_at_the_prompt() {
    let (_server, mut pty) = at_prompt([]);
    let program = pty.pid();
    pty.keys("x");
    pty.wait_for_text(&["> x"], (0, 3));
    pty.hang_up();
    pty.finish();
    wait_for_end_of(program);
}

#[test]
fn f5_a_terminal_that_is_closed_ends_the_program_even_where_nobody_tells_it() {
    let server = Server::start([]);
    let run = Cli::against(&server).through("trap '' HUP; exec \"$@\"");
    let mut pty = Pty::start(run);
    pty.wait_for_prompt();
    pty.hang_up();
    pty.finish();
}

#[test]
fn f5_a_terminal_that_is_closed_ends_a_running_command() {
    let command = "echo $$ > child; while :; do echo tick; sleep 0.02; done";
    let (_server, mut pty) = at_prompt([Reply::shell(command)]);
    pty.submit("first");
    pty.wait("the command's output", |screen| {
        screen.rows.iter().any(|row| row == "tick")
    });
    let child = std::fs::read_to_string(pty.directory().join("child")).unwrap();
    pty.hang_up();
    pty.finish();
    wait_for_end_of(child.trim().parse().unwrap());
}

#[test]
fn f5_a_second_ctrl_c_ends_the_program_with_the_terminal_restored() {
    let gate = Gate::new();
    let command = "trap '' TERM INT; echo started; while :; do sleep 1; done";
    let server = Server::start([Reply::shell(command)]);
    let found = found_modes();
    let mut pty = Pty::start(Cli::against(&server));
    pty.wait_for_prompt();
    pty.submit("first");
    pty.wait("the command's output", |screen| {
        screen.rows.iter().any(|row| row == "started")
    });
    pty.signal(Signal::TERM);
    pty.signal(Signal::INT);
    let code = pty.finish();
    assert!(code == 143 || code == 130, "{code}");
    assert_eq!(modes(&pty), found);
    gate.open();
}

/// Whether the process is stopped.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rfind(')')
        .and_then(|at| stat[at + 1..].trim().chars().next());
    state == Some('T')
}

#[cfg(target_os = "linux")]
#[track_caller]
fn wait_until_stopped(pty: &Pty) {
    let ends_before = Instant::now() + DEADLINE;
    let stopped = wait_until(ends_before, || is_stopped(pty.pid()));
    assert!(stopped, "it does not stop");
}

#[cfg(target_os = "linux")]
#[test]
fn f5_ctrl_z_at_the_prompt_gives_the_terminal_back_and_comes_back_intact() {
    let found = found_modes();
    let (_server, mut pty) = at_prompt([]);
    let editing = modes(&pty);
    pty.keys("two\nlines\x1b[D");
    pty.wait_for_text(&["> two", "lines"], (1, 4));
    pty.keys("\x1a");
    wait_until_stopped(&pty);
    assert_eq!(modes(&pty), found);
    pty.resize(40, 20);
    pty.signal(Signal::CONT);
    pty.wait("the prompt again", |screen| {
        let prompts = screen.rows.iter().filter(|row| *row == "> two").count();
        prompts == 2 && screen.line() == "lines" && screen.cursor.1 == 4
    });
    assert_eq!(modes(&pty), editing);
    pty.keys("x");
    pty.wait_for_text(&["> two", "linexs"], (1, 5));
}

#[cfg(target_os = "linux")]
#[test]
fn f5_ctrl_z_during_a_run_gives_the_terminal_back_and_comes_back_intact() {
    let found = found_modes();
    let gate = Gate::new();
    let reply = Reply::stream()
        .text("begin ")
        .hold(&gate)
        .text("end")
        .finish("stop")
        .done();
    let (server, mut pty) = at_prompt([reply, Reply::answer("second")]);
    pty.submit("first");
    gate.wait();
    pty.wait("quiet mode", |screen| {
        screen.has("begin") || screen.has("requesting")
    });
    let quiet = modes(&pty);
    pty.keys("\x1a");
    wait_until_stopped(&pty);
    assert_eq!(modes(&pty), found);
    pty.signal(Signal::CONT);
    let ends_before = Instant::now() + DEADLINE;
    assert!(wait_until(ends_before, || { modes(&pty) == quiet }));
    pty.keys("next\r");
    gate.open();
    pty.wait_for("second");
    assert_eq!(server.last_request().contents("user"), ["first", "next"]);
}
