//! What is on the screen while a prompt is edited (SPEC F3).

use super::at_prompt;
use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Gate, Reply, Server};

const FIVE_LINES: [&str; 5] = ["one 日本語", "two e\u{301}", "three 👍", "four", "five"];

/// The rows of a text behind a prompt sign, in ASCII and two-column characters only.
fn rows(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in format!("> {text}").split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for c in line.chars() {
            let columns = match c {
                '\u{301}' => 0,
                c if c.is_ascii() => 1,
                _ => 2,
            };
            if used + columns > width {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += columns;
        }
        rows.push(row);
    }
    rows.into_iter()
        .map(|row| row.trim_end().to_owned())
        .collect()
}

#[test]
fn f3_a_prompt_of_five_lines_is_edited_in_the_middle_at_any_width() {
    for width in [80, 20, 5] {
        let server = Server::start([Reply::answer("fine")]);
        let mut pty = Pty::with_size(Cli::against(&server), width, 40);
        pty.wait_for_prompt();
        pty.keys(&FIVE_LINES.join("\n"));
        // To the third line, behind its first word; some editing there that comes to little.
        pty.keys("\x1b[A\x1b[A\x05\x7f\x7f\x17日語\x02本x\x7f\n\x7f");
        let text = FIVE_LINES.join("\n").replace("three 👍", "日本語");
        let expected = rows(&text, width.into());
        pty.wait(&format!("{expected:?}"), |screen| {
            screen.prompt() == expected
        });
        pty.keys("!");
        let text = text.replace("日本語\nfour", "日本!語\nfour");
        let expected = rows(&text, width.into());
        pty.wait(&format!("{expected:?}"), |screen| {
            screen.prompt() == expected
        });
        pty.keys("\r");
        pty.wait_for("fine");
        assert_eq!(server.request(0).contents("user"), [text]);
    }
}

#[test]
fn f3_what_stands_above_the_prompt_is_never_touched() {
    let (_server, mut pty) = at_prompt([]);
    let above = pty.wait_for_prompt().rows[0].clone();
    for _ in 0..10 {
        pty.keys("many words in many lines\nof text\n");
    }
    pty.keys("\x1b[1;5H\x0b\x1b[1;5F\x15\x15!");
    pty.wait("the last key", |screen| screen.line() == "!");
    pty.keys("\x03");
    pty.wait_for_prompt();
    assert_eq!(pty.transcript()[0], above);
}

#[test]
fn f3_another_size_while_editing_lays_the_text_out_anew() {
    let (_server, mut pty) = at_prompt([]);
    let above = pty.wait_for_prompt().rows[0].clone();
    let text = "0123456789".repeat(5);
    pty.keys(&text);
    pty.wait_for_text(&[&format!("> {text}")], (0, 52));
    pty.resize(100, 30);
    pty.keys("a");
    pty.wait_for_text(&[&format!("> {text}a")], (0, 53));
    pty.resize(60, 20);
    pty.keys("b");
    pty.wait_for_text(&[&format!("> {text}ab")], (0, 54));
    pty.resize(90, 24);
    pty.keys("c");
    pty.wait_for_text(&[&format!("> {text}abc")], (0, 55));
    // The terminal has cut it off.
    assert_eq!(pty.transcript()[0], above[..60]);
}

#[test]
fn f3_many_sizes_while_an_answer_streams_change_nothing_that_was_printed() {
    let (first, second) = (Gate::new(), Gate::new());
    let reply = Reply::stream()
        .text("begin\n\n")
        .hold(&first)
        .text("middle\n\n")
        .hold(&second)
        .text("end")
        .finish("stop")
        .done();
    let (_server, mut pty) = at_prompt([reply]);
    pty.submit("go");
    pty.wait_for("begin");
    for columns in 60..80 {
        pty.resize(columns, 24);
    }
    first.open();
    pty.wait_for("middle");
    for columns in 80..100 {
        pty.resize(columns, 24);
    }
    second.open();
    pty.wait_for("end");
    pty.wait_for_prompt();
    let transcript = pty.transcript();
    for text in ["> go", "begin", "middle", "end"] {
        assert_eq!(
            transcript.iter().filter(|row| *row == text).count(),
            1,
            "{text}"
        );
    }
}

#[test]
fn f3_a_terminal_of_no_size_is_taken_for_the_usual_one() {
    let server = Server::start([]);
    let mut pty = Pty::with_size(Cli::against(&server), 0, 0);
    pty.wait_for_prompt();
    pty.keys(&"x".repeat(78));
    pty.wait_for_text(&[&format!("> {}", "x".repeat(78)), ""][..1], (1, 0));
}

#[test]
fn f3_very_narrow_terminals_are_survived() {
    for width in [1, 2, 3] {
        let server = Server::start([Reply::answer("ok")]);
        let mut pty = Pty::with_size(Cli::against(&server), width, 24);
        pty.wait("the prompt sign", |screen| {
            screen.rows.iter().any(|row| row == ">")
        });
        pty.keys("abc\x1b[D\x1b[D\x7f\x7f\x05\r");
        server.wait_for_requests(1);
        assert_eq!(server.request(0).contents("user"), ["bc"]);
    }
}

#[test]
fn f5_the_cursor_is_never_asked_for_and_modes_are_not_pushed() {
    let (_server, mut pty) = at_prompt([Reply::answer("fine")]);
    pty.submit("hello");
    pty.wait_for("fine");
    pty.wait_for_prompt();
    pty.keys("\x04");
    pty.finish();
    let raw = String::from_utf8(pty.raw()).unwrap();
    for never in [
        "\x1b[6n",
        "\x1b[c",
        "\x1b7",
        "\x1b8",
        "\x1b[s",
        "\x1b[u",
        "\x1b[>",
        "\x1b[?1049h",
    ] {
        assert!(!raw.contains(never), "{never:?}");
    }
    assert!(raw.contains("\x1b[?2004h"));
    assert!(raw.rfind("\x1b[?2004l") > raw.rfind("\x1b[?2004h"));
}

#[test]
fn e9_the_question_is_one_piece_where_it_is_wider_than_the_terminal() {
    let (_server, mut pty) = at_prompt([Reply::stream()
        .text("fine")
        .finish("stop")
        .usage(124_800, 5)
        .done()]);
    pty.submit("hello");
    let screen = pty.wait("the question", |screen| screen.has("[Y/n]:"));
    assert_eq!(screen.cursor.1, 1);
    let raw = String::from_utf8(pty.raw()).unwrap();
    assert!(raw.contains(
        "Context usage is at 62.4% (124800 / 200000 tokens). Compact conversation? [Y/n]: "
    ));
}

#[test]
fn b3_remarks_are_dim_only_while_there_is_colour() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("\x03").wait_for("(Ctrl+D leaves)");
    let before = String::from_utf8(pty.raw()).unwrap();
    assert!(before.contains("\x1b[2m(Ctrl+D leaves)"), "{before:?}");
    pty.submit("/cfg color never").wait_for("color=never");
    pty.wait_for_prompt();
    pty.keys("\x03").wait_for("(Ctrl+D leaves)");
    let raw = String::from_utf8(pty.raw()).unwrap();
    assert!(!raw[before.len()..].contains("\x1b[2m"), "{raw:?}");
}
