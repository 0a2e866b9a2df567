//! Text that is not what it seems, on its way to the model and to the screen (SPEC C12, C13).

use serde_json::json;

use super::result_of;
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c12_invisible_and_space_like_characters_of_arguments_are_dropped() {
    let command = "printf %s 'a\u{a0}b\u{200b}c\u{202e}d\u{e0041}e\u{2800}f\u{7}g\u{3000}h\r\ti'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert_eq!(result, "abcdefgh\ti\n\nexit: 0");
}

#[test]
fn c12_printable_text_of_arguments_stays() {
    let text = "äöü 日本語 é e\u{301} ☃ ✔\u{fe0f} \u{1F413} € ½ «»";
    let command = json!({ "command": format!("printf %s '{text}'") });
    let result = result_of("shell_exec", &command.to_string());
    assert_eq!(result, format!("{text}\n\nexit: 0"));
}

#[test]
fn c12_a_file_that_loses_characters_is_told_how_many() {
    let call = json!({"path": "f", "content": "a\u{a0}b\u{200d}c\r\n"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().file("f", "abc\n");
    let result = server.request(1).result();
    assert!(result.contains('3'), "{result}");
}

#[test]
fn c12_without_sanitising_arguments_a_file_arrives_as_it_was_written() {
    let content = "👨\u{200d}👩\u{200d}👧 a\u{a0}b\r\nx\r\ny";
    let call = json!({"path": "f", "content": content});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    Cli::against(&server)
        .config("sanitize_args=false")
        .prompt("x")
        .run()
        .success()
        .file("f", content);
    assert!(!server.request(0).text().contains("sanitize_args"));
}

#[test]
fn c12_escape_sequences_of_results_go_as_a_whole_and_a_progress_bar_leaves_its_last_state() {
    let command = r"printf '\033[31mred\033[0m\n\033]0;title\007\033]8;;http://x\033\\link\n'
printf '\0331;2Hx\n'
for i in $(seq 100); do printf '\r%d%%' $i; done; echo
printf 'dos\r\nline\r\n'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert!(result.starts_with("red\nlink\n"), "{result:?}");
    assert!(
        result.ends_with("\n100%\ndos\nline\n\n\nexit: 0"),
        "{result:?}"
    );
}

#[test]
fn c12_a_nul_in_a_command_is_no_end_of_it() {
    let result = result_of("shell_exec", "{\"command\":\"echo a\\u0000b\"}");
    assert_eq!(result, "ab\n\n\nexit: 0");
}

#[test]
fn c12_results_have_no_control_characters_and_no_invalid_text() {
    let command = r"printf 'a\000b\001c\177d\302\205e\377f\355\240\200g'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert!(result.starts_with("abcde"), "{result:?}");
    assert!(result.ends_with("g\n\nexit: 0"), "{result:?}");
    assert!(
        result.chars().all(|one| one == '\n' || !one.is_control()),
        "{result:?}"
    );
}

#[test]
fn c13_nothing_the_model_says_reaches_the_terminal_as_a_control_character() {
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}2J\u{1b}[2J\u{1b}Pq\u{1b}\\\u{8}\u{202e}x\u{7f}";
    let call = Reply::stream()
        .reasoning(&format!("thinks {evil}"))
        .text(&format!("says {evil}"))
        .tool_call(
            0,
            "a",
            &format!("tool{evil}"),
            &json!({"command": evil}).to_string(),
        )
        .tool_call(
            1,
            "b",
            "shell_exec",
            &json!({"command": format!("echo '{evil}'")}).to_string(),
        )
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::error(400, &format!("server {evil}"))]);
    let run = Cli::against(&server)
        .args(["-c", &format!("model=m{evil}")])
        .prompt("x")
        .run();
    run.code(1).stdout_has("says").stderr_has("server");
    for stream in [&run.stdout, &run.stderr] {
        let bad = stream.chars().find(|one| {
            (one.is_control() && !matches!(one, '\n' | '\t'))
                || ('\u{202a}'..='\u{202e}').contains(one)
        });
        assert_eq!(bad, None, "{run}");
    }
}

#[test]
fn c13_a_control_sequence_split_over_chunks_is_dropped_all_the_same() {
    let server = Server::start([Reply::stream()
        .text("a\u{1b}")
        .text("]52;c;")
        .text("ZXZpbA==")
        .text("\u{7}b")
        .finish("stop")
        .done()]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().lacks("\u{1b}").lacks("\u{7}");
}

#[test]
fn c13_nothing_a_command_prints_reaches_the_terminal_as_an_escape_sequence() {
    let evil = r"printf '\033]52;c;ZXZpbA==\007\033[2J\302\233x\033'; sleep 0; printf '[31mred\n'";
    let server = Server::start([Reply::shell(evil), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .lines([&format!("!{evil}")[..], "x"])
        .run();
    run.success().lacks("\u{1b}").lacks("\u{9b}").lacks("\u{7}");
}

#[test]
fn c12_a_lone_carriage_return_overwrites_its_line_as_on_a_terminal() {
    for (printed, left) in [
        (r"12345\rab\n", "ab345\n"),
        (r"one\ntwo\rT\nthree\r\n", "one\nTwo\nthree\n"),
        (r"\r\rx\r", "x"),
        (r"long line\r\033[Kshort\n", "short\n"),
    ] {
        let command = json!({ "command": format!("printf '{printed}'") });
        let result = result_of("shell_exec", &command.to_string());
        assert_eq!(result, format!("{left}\n\nexit: 0"), "{printed}");
    }
}
