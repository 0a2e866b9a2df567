//! Every key of the line editor (SPEC F1).

use std::fs;

use super::{at_prompt, found_modes, modes};
use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

#[test]
fn f1_each_key_does_what_it_says() {
    let (_server, mut pty) = at_prompt([]);
    for (typed, keys, rows, cursor) in [
        ("abc", "\x1b[D", &["> abc"][..], (0, 4)),
        ("abc", "\x02", &["> abc"], (0, 4)),
        ("abc", "\x02\x1b[C", &["> abc"], (0, 5)),
        ("abc", "\x02\x06", &["> abc"], (0, 5)),
        ("abc", "\x1b[H", &["> abc"], (0, 2)),
        ("abc", "\x1bOH", &["> abc"], (0, 2)),
        ("abc", "\x1b[1~", &["> abc"], (0, 2)),
        ("abc", "\x1b[7~", &["> abc"], (0, 2)),
        ("abc", "\x01", &["> abc"], (0, 2)),
        ("abc", "\x01\x1b[F", &["> abc"], (0, 5)),
        ("abc", "\x01\x1bOF", &["> abc"], (0, 5)),
        ("abc", "\x01\x1b[4~", &["> abc"], (0, 5)),
        ("abc", "\x01\x1b[8~", &["> abc"], (0, 5)),
        ("abc", "\x01\x05", &["> abc"], (0, 5)),
        ("one two", "\x1b[1;5D", &["> one two"], (0, 6)),
        ("one two", "\x1b[5D", &["> one two"], (0, 6)),
        ("one two", "\x1bOd", &["> one two"], (0, 6)),
        ("one two", "\x1b[1;9D", &["> one two"], (0, 6)),
        ("one two", "\x1bb", &["> one two"], (0, 6)),
        ("one two", "\x01\x1b[1;5C", &["> one two"], (0, 5)),
        ("one two", "\x01\x1bf", &["> one two"], (0, 5)),
        ("abc", "\x7f", &["> ab"], (0, 4)),
        ("abc", "\x08", &["> ab"], (0, 4)),
        ("abc", "\x01\x04", &["> bc"], (0, 2)),
        ("abc", "\x01\x1b[3~", &["> bc"], (0, 2)),
        ("one two/x", "\x17", &["> one"], (0, 6)),
        ("one two/x", "\x1b\x7f", &["> one two/"], (0, 10)),
        ("one two", "\x01\x1bd", &[">  two"], (0, 2)),
        ("one two", "\x1bb\x0b", &["> one"], (0, 6)),
        ("one two", "\x1bb\x15", &["> two"], (0, 2)),
        ("one two", "\x17\x01\x19", &["> twoone"], (0, 5)),
        ("ab", "\x14", &["> ba"], (0, 4)),
        ("one two", "\x1f", &["> one"], (0, 6)),
        ("a", "\nb", &["> a", "b"], (1, 1)),
        ("a", "\x1b\rb", &["> a", "b"], (1, 1)),
        ("a", "\x1b[13;2ub", &["> a", "b"], (1, 1)),
        ("a", "\nbc\x1b[A", &["> a", "bc"], (0, 3)),
        ("a", "\nbc\x1b[A\x1b[B", &["> a", "bc"], (1, 2)),
        ("a", "\nbc\x1b[1;5H", &["> a", "bc"], (0, 2)),
        ("a", "\nbc\x1b[1;5H\x1b[1;5F", &["> a", "bc"], (1, 2)),
        ("a", "\x18b\x02", &["> ab"], (0, 3)),
        ("a", "\x1b[1;9Z\x1b[99~\x1b[12;34R\x00b", &["> ab"], (0, 4)),
    ] {
        pty.keys(typed);
        pty.wait_for_text(&[&format!("> {typed}")], (0, 2 + typed.len()));
        pty.keys(keys);
        pty.wait_for_text(rows, cursor);
        pty.keys("\x03");
        pty.wait_for_prompt();
    }
}

#[test]
fn f1_enter_submits_all_lines_and_the_cut_outlives_the_prompt() {
    let (server, mut pty) = at_prompt([Reply::answer("fine"), Reply::answer("good")]);
    pty.keys("zwei drei\x17\x17eins\nzwei");
    pty.wait_for_text(&["> eins", "zwei"], (1, 4));
    pty.keys("\r");
    pty.wait_for("fine");
    pty.wait_for_prompt();
    pty.keys("\x19!");
    pty.wait_for_text(&["> zwei drei!"], (0, 12));
    pty.keys("\r");
    pty.wait_for("good");
    assert_eq!(
        server.last_request().contents("user"),
        ["eins\nzwei", "zwei drei!"]
    );
}

#[test]
fn f1_ctrl_c_clears_the_line_and_at_an_empty_one_tells_how_to_leave() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("abc\ndef");
    pty.wait_for_text(&["> abc", "def"], (1, 3));
    pty.keys("\x03");
    pty.wait_for_text(&[">"], (0, 2));
    pty.keys("\x03");
    pty.wait_for("Ctrl+D");
    pty.keys("\x03").keys("\x03");
    pty.keys("x");
    pty.wait_for_text(&["> x"], (0, 3));
}

#[test]
fn f1_ctrl_d_at_an_empty_line_ends_the_program() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("\x04");
    assert_eq!(pty.finish(), 0);
}

#[test]
fn f1_ctrl_l_clears_the_screen_and_keeps_the_text() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("abc\x0c");
    pty.wait("the text in the first row", |screen| {
        screen.rows[0] == "> abc" && screen.cursor == (0, 5)
    });
}

#[test]
fn f1_tab_completes_commands_keys_sessions_and_paths() {
    let server = Server::start([]);
    let run = Cli::against(&server)
        .file("sources/main.rs", "")
        .home_file(".bantam/sessions/plan.json", "[]");
    let mut pty = Pty::start(run);
    pty.wait_for_prompt();
    for (typed, completed) in [
        ("/he\t", "> /help"),
        ("/comp\t", "> /compact"),
        ("/cfg shell_\t", "> /cfg shell_timeout"),
        ("/load pl\t", "> /load plan"),
        ("see ./so\t", "> see ./sources/"),
        ("see sou\t", "> see sources/"),
        ("see @sources/m\t", "> see @sources/main.rs"),
    ] {
        pty.keys(typed);
        pty.wait(completed, |screen| screen.line() == completed);
        pty.keys("\x03");
        pty.wait_for_prompt();
    }
}

#[test]
fn f1_a_second_tab_lists_what_is_possible_below_the_prompt() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("/c").keys("\t").keys("\t");
    let screen = pty.wait_for("/continue");
    assert_eq!(screen.line(), "> /c");
    assert_eq!(screen.cursor.1, 4);
    pty.keys("l");
    pty.wait_for_text(&["> /cl"], (0, 5));
    pty.keys("\x15/mo\t");
    pty.wait_for_text(&["> /model"], (0, 8));
    pty.keys("\t");
    pty.wait_for("/models");
}

#[test]
fn f1_ctrl_x_ctrl_e_edits_the_text_in_an_editor() {
    let server = Server::start([]);
    let run = Cli::against(&server)
        .file(
            "editor",
            "#!/bin/sh\ncat \"$1\" > seen\nstty -a > modes\nprintf 'x\\ny\\n' > \"$1\"\n",
        )
        .env("EDITOR", "sh ./editor");
    let mut pty = Pty::start(run);
    let found = found_modes();
    pty.wait_for_prompt();
    pty.keys("draft");
    pty.wait_for_text(&["> draft"], (0, 7));
    pty.keys("\x18\x05");
    pty.wait_for_text(&["> x", "y"], (1, 1));
    assert_eq!(
        fs::read_to_string(pty.directory().join("seen")).unwrap(),
        "draft\n"
    );
    let told = fs::read_to_string(pty.directory().join("modes")).unwrap();
    assert!(
        told.contains(" icanon") && told.contains(" echo "),
        "{told}"
    );
    pty.keys("\x03\x04");
    pty.finish();
    assert_eq!(modes(&pty), found);
}
