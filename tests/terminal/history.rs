//! The history at the keyboard (SPEC F1, F4).

use std::fs;

use super::at_prompt;
use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

/// A run whose home has this history, at its first prompt.
fn with_history(lines: &str) -> (Server, Pty) {
    let server = Server::start([]);
    let history = format!("#bantam history 1\n{lines}");
    let pty = Pty::start(Cli::against(&server).home_file(".bantam_history", history));
    pty.wait_for_prompt();
    (server, pty)
}

#[test]
fn f4_what_was_submitted_is_there_in_the_next_run_in_its_lines() {
    let (server, mut pty) = at_prompt([Reply::answer("fine")]);
    pty.keys("a\nb\\");
    pty.wait_for_text(&["> a", "b\\"], (1, 2));
    pty.keys("\r");
    pty.wait_for("fine");
    pty.wait_for_prompt();
    let home = pty.home().join(".bantam_history");
    let stored = fs::read_to_string(&home).unwrap();
    assert_eq!(stored, "#bantam history 1\na\\nb\\\\\n");
    drop(server);

    let (_server, mut pty) = with_history(stored.split_once('\n').unwrap().1);
    pty.keys("\x1b[A");
    pty.wait_for_text(&["> a", "b\\"], (1, 2));
}

#[test]
fn f1_up_walks_the_history_and_the_draft_comes_back() {
    let (_server, mut pty) = with_history("one\ntwo\\nlines\n");
    pty.keys("a\nb");
    pty.wait_for_text(&["> a", "b"], (1, 1));
    pty.keys("\x1b[A");
    pty.wait_for_text(&["> a", "b"], (0, 3));
    pty.keys("\x1b[A");
    pty.wait_for_text(&["> two", "lines"], (1, 5));
    pty.keys("\x1b[A");
    pty.wait_for_text(&["> one"], (0, 5));
    pty.keys("\x1b[A\x10");
    pty.wait_for_text(&["> one"], (0, 5));
    pty.keys("\x0e");
    pty.wait_for_text(&["> two", "lines"], (1, 5));
    pty.keys("\x1b[B");
    pty.wait_for_text(&["> a", "b"], (1, 1));
}

#[test]
fn f1_ctrl_r_searches_and_enter_takes_the_hit_into_the_line() {
    let (_server, mut pty) = with_history("git push\nmake all\ngit pull\n");
    pty.keys("draft");
    pty.wait_for_text(&["> draft"], (0, 7));
    pty.keys("\x12git");
    pty.wait_for("(search 'git') git pull");
    pty.keys("\x12");
    pty.wait_for("(search 'git') git push");
    pty.keys("\x12");
    pty.wait_for("(no match 'git') git push");
    pty.keys("\r");
    pty.wait_for_text(&["> git push"], (0, 10));
    pty.keys("\x12al\x07");
    pty.wait_for_text(&["> git push"], (0, 10));
    pty.keys("\x12all").keys("\x1b");
    pty.wait_for_text(&["> git push"], (0, 10));
}

#[test]
fn f4_what_sets_a_key_is_not_recorded() {
    let (_server, mut pty) = with_history("");
    pty.submit("/cfg api_key sk-0123456789");
    pty.wait_for_prompt();
    pty.submit("/help");
    pty.wait_for_prompt();
    pty.keys("\x04");
    pty.finish();
    let stored = fs::read_to_string(pty.home().join(".bantam_history")).unwrap();
    assert_eq!(stored, "#bantam history 1\n/help\n");
}

#[test]
fn f4_a_directory_in_place_of_the_file_is_a_warning() {
    let server = Server::start([]);
    let run = Cli::against(&server).home_file(".bantam_history/x", "");
    let mut pty = Pty::start(run);
    let screen = pty.wait_for_prompt();
    assert!(screen.has("cannot read the history"), "{screen:?}");
    pty.submit("/help");
    pty.wait_for_prompt();
    pty.keys("\x1b[A");
    pty.wait_for_text(&["> /help"], (0, 7));
}

#[test]
fn f4_a_file_that_can_no_longer_be_written_is_a_warning_once() {
    let (_server, mut pty) = at_prompt([]);
    fs::create_dir(pty.home().join(".bantam_history")).unwrap();
    pty.submit("/cfg model");
    pty.wait_for("cannot write the history");
    pty.wait_for_prompt();
    pty.submit("/cfg timeout");
    pty.wait_for("timeout=300");
    let screen = pty.wait_for_prompt();
    let warnings = screen
        .rows
        .iter()
        .filter(|row| row.contains("cannot write"));
    assert_eq!(warnings.count(), 1, "{screen:?}");
    pty.keys("\x1b[A\x1b[A");
    pty.wait_for_text(&["> /cfg model"], (0, 12));
}
