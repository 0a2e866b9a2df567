//! Answers on a real terminal while they stream (SPEC F8).

use crate::common::pty::Pty;
use crate::common::server::{Gate, Reply, Server};

use super::at_prompt;

/// A run in the middle of an answer: this text is there, the rest waits for the gate.
fn in_an_answer(text: &str, rest: &str, gate: &Gate) -> (Server, Pty) {
    let reply = Reply::stream().text(text).hold(gate).text(rest);
    let (server, mut pty) = at_prompt([reply.finish("stop").usage(10, 5).done()]);
    pty.submit("go");
    (server, pty)
}

#[test]
fn f8_words_of_a_paragraph_are_there_before_its_end() {
    let gate = Gate::new();
    let (_server, mut pty) = in_an_answer("Some **bold** words of a para", "graph.", &gate);
    let screen = pty.wait_for("Some bold words of a para");
    assert!(!screen.has("paragraph") && !screen.has("**"));
    gate.open();
    pty.wait_for("Some bold words of a paragraph.");
    pty.wait_for_prompt();
    pty.keys("\x04").finish();
}

#[test]
fn f8_lines_of_a_fence_are_there_at_once_and_without_frame() {
    let gate = Gate::new();
    let (_server, mut pty) = in_an_answer("```sh\n  echo one\necho t", "wo\n```\nafter", &gate);
    let screen = pty.wait_for("  echo one");
    assert!(!screen.has("```") && !screen.has("after"));
    gate.open();
    pty.wait_for("echo two");
    pty.wait_for("after");
    pty.wait_for_prompt();
    pty.keys("\x04").finish();
}

#[test]
fn f8_a_table_is_there_when_it_ends() {
    let gate = Gate::new();
    let table = "| a | b |\n|---|---|\n| 1 | 日本 |\n";
    let (_server, mut pty) = in_an_answer(&format!("Look:\n\n{table}"), "\nThat was it.", &gate);
    let screen = pty.wait_for("Look:");
    assert!(!screen.has("┌") && !screen.has("日本"));
    gate.open();
    let screen = pty.wait_for("That was it.");
    for row in [
        "┌───┬──────┐",
        "│ a │ b    │",
        "├───┼──────┤",
        "│ 1 │ 日本 │",
        "└───┴──────┘",
    ] {
        assert!(screen.has(row), "{row}");
    }
    pty.wait_for_prompt();
    pty.keys("\x04").finish();
}

#[test]
fn f8_an_interrupt_in_the_middle_of_a_table_brings_out_what_there_is() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    let (_server, mut pty) =
        at_prompt([Reply::stream().text(&format!("Look:\n\n{table}")).stall()]);
    pty.submit("go").wait_for("Look:");
    pty.keys("\x03").wait_for("│ 1 │ 2 │");
    pty.wait_for_prompt();
    pty.keys("\x15\x04").finish();
}
