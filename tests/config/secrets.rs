//! Keys and where they never go (SPEC B9).

use std::fs;

use super::{KEY, asked, asked_with};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn b9_a_key_of_the_environment_for_a_directorys_far_endpoint_is_a_warning() {
    let endpoint = "http://bantam.invalid/v1";
    let run = Cli::new()
        .config(&format!("endpoint={endpoint}"))
        .env("OPENAI_API_KEY", KEY)
        .lines(["/quit"])
        .run();
    run.success()
        .stderr_has("OPENAI_API_KEY")
        .stderr_has(endpoint)
        .lacks(KEY);
}

#[test]
fn b9_a_key_of_the_environment_for_loopback_is_no_warning() {
    let (_, run) = asked(|cli| cli.env("OPENAI_API_KEY", KEY));
    run.stderr_is("...requesting...\n");
}

#[test]
fn b9_a_config_with_a_key_that_others_can_read_is_a_warning() {
    for (mode, warned) in [(0o644, true), (0o640, true), (0o604, true), (0o600, false)] {
        let server = Server::start([Reply::answer("ok")]);
        let script = format!("chmod {mode:o} model.cfg; exec \"$@\"");
        let run = Cli::against(&server)
            .config(&format!("api_key={KEY}"))
            .through(&script)
            .prompt("x")
            .run();
        run.success();
        let told = run.stderr.contains("model.cfg");
        assert_eq!(told, warned, "{mode:o}\n{run}");
    }
}

#[test]
fn b9_a_config_without_a_key_may_be_read_by_anyone() {
    let (_, run) = asked_with("top_p=1");
    run.stderr_is("...requesting...\n");
}

#[test]
fn b9_a_key_in_an_error_of_the_server_is_masked() {
    let server = Server::start([Reply::error(401, &format!("wrong key {KEY} here"))]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run();
    run.code(1).stderr_has("wrong key").lacks(KEY);
}

#[test]
fn b9_the_model_and_the_screen_never_get_the_key_or_a_header() {
    let token = "token-0123456789-abcdef";
    let show = "cat model.cfg; cat model.cfg | sed 's/^/again: /'";
    let server = Server::start([Reply::shell(show), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}\nheader.X-Token={token}"))
        .lines(["x"])
        .run();
    run.success().lacks(KEY).lacks(token);
    let request = server.last_request();
    assert!(!request.text().contains(KEY) && !request.text().contains(token));
    assert!(request.contents("tool")[0].contains("again: api_key="));
    for file in run.home_files() {
        let bytes = fs::read(run.home().join(&file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(KEY) && !text.contains(token),
            "{}",
            file.display()
        );
    }
}

#[test]
fn b9_a_key_in_long_output_is_masked_in_the_file_that_keeps_it() {
    let command = "seq 1 9000; cat model.cfg; seq 1 9000";
    let server = Server::start([Reply::shell(command), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .config("tool_output_limit=1000")
        .prompt("x")
        .run();
    run.success().lacks(KEY);
    let kept: Vec<_> = run.home_files();
    assert!(!kept.is_empty());
    for file in kept {
        let text = fs::read_to_string(run.home().join(&file)).unwrap();
        assert!(!text.contains(KEY), "{}", file.display());
        assert!(text.contains("api_key="), "{}", file.display());
    }
}

#[test]
fn b9_a_key_that_a_call_carries_is_masked_in_its_trace() {
    let server = Server::start([
        Reply::shell(&format!("echo Bearer {KEY} > /dev/null")),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run();
    run.success()
        .stdout_has("[tool call: shell_exec(")
        .lacks(KEY);
}

#[test]
fn b9_a_key_that_an_answer_gives_back_is_neither_shown_nor_kept() {
    let (first, second) = KEY.split_at(9);
    for quiet in [&[][..], &["-q"]] {
        let answer = Reply::stream()
            .text(&format!("it is {first}"))
            .text(&format!("{second}, as you see"))
            .finish("stop")
            .done();
        let server = Server::start([answer]);
        let run = Cli::against(&server)
            .config(&format!("api_key={KEY}"))
            .args(quiet.iter().copied())
            .lines(["what is it?"])
            .run();
        run.success().stdout_has(", as you see").lacks(KEY);
        let sessions = run.home_files();
        assert!(!sessions.is_empty());
        for file in sessions {
            let text = fs::read_to_string(run.home().join(&file)).unwrap();
            assert!(!text.contains(KEY), "{}", file.display());
        }
    }
}

#[test]
fn b9_a_key_is_not_in_the_process_list() {
    let server = Server::start([
        Reply::shell("ps ax 2>/dev/null || cat /proc/*/cmdline"),
        Reply::answer("ok"),
    ]);
    Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run()
        .success();
    assert!(!server.last_request().text().contains(KEY));
}

#[test]
fn b9_credentials_in_an_endpoint_are_not_shown() {
    let run = Cli::new()
        .config("endpoint=http://user:pass-word-123@127.0.0.1:1/v1")
        .prompt("x")
        .start();
    run.wait_for_stderr("9");
    run.interrupt();
    run.finish().code(130).lacks("pass-word-123");
}

#[test]
fn b9_a_key_that_comes_in_two_pieces_is_masked_all_the_same() {
    let (first, second) = KEY.split_at(10);
    let command = format!("printf %s {first}; sleep 0.1; printf '%s and more\\n' {second}");
    let server = Server::start([Reply::shell(&command), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run();
    run.success().stdout_has(" and more\n").lacks(KEY);
    let result = server.last_request().result();
    assert!(
        !result.contains(KEY) && result.contains(" and more"),
        "{result}"
    );
}

#[test]
fn b9_without_a_config_the_key_of_the_environment_is_told_to_go_to_the_default_endpoint() {
    let run = Cli::new()
        .env("OPENAI_API_KEY", KEY)
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .lines(["/quit"])
        .run();
    run.success()
        .stderr_has("OPENAI_API_KEY")
        .stderr_has("api.kilo.ai")
        .lacks(KEY);
}
