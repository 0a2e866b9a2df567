//! Pasting, with and without the terminal's help (SPEC F2).

use super::at_prompt;
use crate::common::server::Reply;

#[test]
fn f2_a_paste_never_submits_and_keeps_its_line_breaks() {
    let (server, mut pty) = at_prompt([Reply::answer("fine")]);
    pty.keys("\x1b[200~a\r\nb\rc\n\td\x07\x1b[31m\x1b[201~");
    pty.wait_for_text(&["> a", "b", "c", "    d[31m"], (3, 9));
    pty.keys("\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), ["a\nb\nc\n\td[31m"]);
}

#[test]
fn f2_without_brackets_an_enter_in_the_middle_is_a_line_break() {
    let (server, mut pty) = at_prompt([Reply::answer("fine")]);
    pty.keys("one\r\t\ttwo\r\nthree");
    pty.wait_for_text(&["> one", "        two", "three"], (2, 5));
    pty.keys("\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), ["one\n\t\ttwo\nthree"]);
}

#[test]
fn f2_an_enter_at_the_end_of_what_came_at_once_submits() {
    let (server, mut pty) = at_prompt([Reply::answer("fine")]);
    pty.keys("hello\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), ["hello"]);
}

#[test]
fn f2_what_follows_a_forged_end_of_a_paste_does_not_submit_it() {
    let (_server, mut pty) = at_prompt([]);
    pty.keys("\x1b[200~a\x1b[201~\rb\x1b[201~");
    pty.wait_for_text(&["> a", "b"], (1, 1));
}

#[test]
fn f2_a_large_paste_is_written_at_most_three_times_over() {
    const LINE: &str = "many words that make a line of text which is to be pasted\r";
    let (_server, mut pty) = at_prompt([]);
    let paste = LINE.repeat(200_000 / LINE.len());
    let before = pty.raw().len();
    pty.keys("\x1b[200~").keys(&paste).keys("end\x1b[201~");
    pty.wait("the end of the paste", |screen| screen.line() == "end");
    let written = pty.raw().len() - before;
    assert!(written < 3 * paste.len(), "{written}");
    pty.keys("x");
    pty.wait("a key after it", |screen| screen.line() == "endx");
}

#[test]
fn f2_a_large_paste_without_brackets_arrives_whole() {
    let (server, mut pty) = at_prompt([Reply::answer("fine")]);
    let lines: Vec<String> = (0..2000).map(|n| format!("line number {n}")).collect();
    pty.keys(&lines.join("\r"));
    pty.wait("the end of the paste", |screen| {
        screen.line() == "line number 1999"
    });
    pty.keys("\r");
    pty.wait_for("fine");
    assert_eq!(server.request(0).contents("user"), [lines.join("\n")]);
}

#[test]
fn f2_bytes_that_are_no_text_are_survived() {
    let (_server, mut pty) = at_prompt([]);
    pty.bytes(b"a\xff\xfe\x00\xc3b\xe6\x97\xa5");
    pty.wait_for_text(&["> ab日"], (0, 6));
}
