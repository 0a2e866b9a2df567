//! `bantam FILE`: what is read, what goes where, and how it ends (SPEC A2–A6).

use std::fs;

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

/// The usage line of [`Reply::answer`].
const USAGE: &str = "[test-model: 10 prompt + 5 completion | context: 10/200000 (0.0%)]\n";

#[test]
fn a2_the_answer_and_the_usage_line_are_all_there_is_on_standard_output() {
    let server = Server::start([Reply::answer("Hello there.")]);
    Cli::against(&server)
        .prompt("Say hello.")
        .run()
        .success()
        .stdout_is(&format!("Hello there.\n{USAGE}"));
}

#[test]
fn a2_the_prompt_is_the_whole_file_without_bom_and_trailing_newlines() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .prompt("\u{feff}  first line\n\n/second line\r\n\n\n")
        .run()
        .success();
    let messages = server.request(0).messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1]["role"], "user");
    let prompt = messages[1]["content"].as_str().unwrap();
    assert_eq!(
        prompt.trim_end_matches('\r'),
        "  first line\n\n/second line"
    );
}

#[test]
fn a2_a_dash_means_standard_input() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .arg("-")
        .stdin("two\nlines\n")
        .run()
        .success();
    assert_eq!(server.request(0).contents("user"), ["two\nlines"]);
}

#[test]
fn a2_a_text_that_begins_with_an_exclamation_mark_is_a_command() {
    let server = Server::start([]);
    let run = Cli::against(&server)
        .prompt("!echo to-out; echo to-err >&2; exit 7\n")
        .run();
    run.code(7)
        .stdout_is("to-out\nto-err\n\n\nexit: 7\n")
        .stdout_lacks("context:");
}

#[test]
fn a2_a_command_from_standard_input_gives_its_exit_code_too() {
    Cli::new().arg("-").stdin("!true").run().success();
    Cli::new().arg("-").stdin("!false").run().code(1);
    Cli::new().arg("-").stdin("!kill -9 $$").run().code(137);
}

#[test]
fn a2_an_empty_prompt_is_an_error() {
    let server = Server::start([]);
    for text in ["", "\n\n", "\u{feff}"] {
        let run = Cli::against(&server).prompt(text).run();
        run.code(1).stdout_is("").stderr_has("empty");
    }
}

#[test]
fn a2_a_prompt_may_have_any_name_after_two_dashes() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .file("-odd", "hi")
        .args(["--", "-odd"])
        .run()
        .success();
    assert_eq!(server.request(0).contents("user"), ["hi"]);
}

#[test]
fn a3_help_fits_one_screen_and_names_modes_keys_commands_and_exit_codes() {
    let run = Cli::new().arg("--help").run();
    run.success().stderr_is("");
    for told in [
        "FILE",
        "--version",
        "--quiet",
        "-q",
        "-c",
        "--resume",
        "/help",
        "/quit",
        "Ctrl",
        "130",
    ] {
        run.stdout_has(told);
    }
    assert!(run.stdout.lines().count() <= 24, "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a3_version_names_program_and_version() {
    let expected = format!("bantam {}\n", env!("CARGO_PKG_VERSION"));
    Cli::new().arg("--version").run().is(0, &expected, "");
}

#[test]
fn a3_quiet_prints_the_text_of_the_last_answer_alone() {
    for option in ["-q", "--quiet"] {
        let first = Reply::stream()
            .reasoning("thinking")
            .text("Let me look.")
            .tool_call(0, "a", "shell_exec", r#"{"command":"echo seen"}"#)
            .finish("tool_calls")
            .done();
        let server = Server::start([first, Reply::answer("It is there.")]);
        Cli::against(&server)
            .arg(option)
            .prompt("Look.")
            .run()
            .success()
            .stdout_is("It is there.\n");
    }
}

#[test]
fn a3_quiet_prints_nothing_before_the_answer_is_complete() {
    let gate = Gate::new();
    let held = Reply::stream().text("half ").hold(&gate);
    let server = Server::start([held.text("whole").finish("stop").done()]);
    let run = Cli::against(&server).arg("-q").prompt("x").start();
    gate.wait();
    assert_eq!(run.stdout(), "");
    gate.open();
    run.finish().success().stdout_is("half whole\n");
}

#[test]
fn a3_settings_of_the_command_line_override_the_file_and_the_last_one_counts() {
    let server = Server::start([Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config("temperature=0.1")
        .args([
            "-c",
            "model=one",
            "-c",
            "temperature=0.2",
            "-c",
            "model=two",
        ])
        .prompt("x")
        .run();
    run.success().stdout_has("[two: ").no_file(".bantam.cfg");
    let body = server.request(0).json();
    assert_eq!(body["model"], "two");
    assert_eq!(body["temperature"], json!(0.2));
}

#[test]
fn a3_options_may_follow_the_file() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .prompt("x")
        .args(["-q", "-c", "model=other"])
        .run()
        .success()
        .stdout_is("ok\n");
    assert_eq!(server.request(0).json()["model"], "other");
}

#[test]
fn a3_a_one_shot_run_saves_no_session() {
    let server = Server::start([Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success();
    let sessions: Vec<_> = run
        .home_files()
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    assert!(sessions.is_empty(), "{sessions:?}");
}

#[test]
fn a3_resuming_a_session_that_is_not_there_is_an_error_with_a_file() {
    let server = Server::start([]);
    let run = Cli::against(&server)
        .arg("--resume=nosuch")
        .prompt("x")
        .run();
    run.code(1).stderr_has("nosuch");
}

#[test]
fn a4_wrong_usage_ends_with_2() {
    for arguments in [
        &["--nosuch"][..],
        &["-z"],
        &["-c"],
        &["-c", "no-equals-sign", "prompt.txt"],
        &["prompt.txt", "second.txt"],
    ] {
        let run = Cli::new()
            .file("prompt.txt", "x")
            .file("second.txt", "x")
            .args(arguments.iter().copied())
            .run();
        run.code(2).stdout_is("");
        assert!(!run.stderr.is_empty(), "{arguments:?} needs a word");
    }
}

#[test]
fn a4_a_file_that_cannot_be_read_ends_with_1() {
    let missing = Cli::new().arg("missing.txt").run();
    missing.code(1).stdout_is("").stderr_has("missing.txt");
    let directory = Cli::new().file("folder/file", "").arg("folder").run();
    directory.code(1).stdout_is("").stderr_has("folder");
}

#[test]
fn a4_a_file_that_is_no_text_is_no_panic() {
    let server = Server::start([Reply::answer("ok")]).replies_may_be_left();
    let run = Cli::against(&server)
        .file("binary", b"\xff\xfe\x00\x01")
        .arg("binary")
        .run();
    assert!(run.code == 0 || run.code == 1, "{run}");
    run.stderr_lacks("panicked");
}

#[test]
fn a4_an_api_error_ends_with_1_and_goes_to_standard_error() {
    let server = Server::start([Reply::error(400, "the moon is in the way")]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .code(1)
        .stdout_lacks("moon")
        .stderr_has("the moon is in the way")
        .stderr_has("400");
}

#[test]
fn a4_stopping_at_the_iteration_limit_ends_with_1() {
    let server = Server::start([Reply::shell("echo one"), Reply::shell("echo two")]);
    let run = Cli::against(&server)
        .config("max_al_iterations=2")
        .prompt("x")
        .run();
    run.code(1)
        .stdout_has("two")
        .stderr_has("max_al_iterations");
}

#[test]
fn a5_with_a_prompt_file_a_pipe_that_never_closes_does_not_hang_the_run() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .stdin_open()
        .prompt("x")
        .run()
        .success()
        .stdout_has("ok");
}

#[test]
fn a5_commands_of_the_model_do_not_read_the_runs_standard_input() {
    let server = Server::start([Reply::shell("cat; echo read"), Reply::answer("ok")]);
    Cli::against(&server)
        .stdin_open()
        .prompt("x")
        .run()
        .success();
    assert_eq!(server.last_request().result(), "read\n\n\nexit: 0");
}

#[test]
fn a6_the_requesting_status_goes_to_standard_error() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_lacks("requesting")
        .stderr_is("...requesting...\n");
}

#[test]
fn a6_reasoning_traces_and_results_go_to_standard_output() {
    let call = Reply::stream()
        .reasoning("hm")
        .tool_call(0, "a", "shell_exec", r#"{"command":"echo seen"}"#)
        .finish("tool_calls")
        .usage(10, 5)
        .done();
    let server = Server::start([call, Reply::answer("Done.")]);
    let run = Cli::against(&server).prompt("x").run();
    let usage = "[test-model: 20 prompt + 10 completion | context: 10/200000 (0.0%)]";
    run.success().stdout_is(&format!(
        "--- reasoning start ---\nhm\n--- reasoning end ---\n\
         [tool call: shell_exec({{\"command\":\"echo seen\"}})]\n\
         [tool result: shell_exec]\nseen\n\n\nexit: 0\nDone.\n{usage}\n"
    ));
}

#[test]
fn c13_wrong_arguments_cannot_drive_the_terminal_that_shows_them() {
    for arguments in [
        &["--wrong\u{1b}[31m"][..],
        &["-c", "timeout=\u{1b}]0;t\u{7}"],
        &["a", "b\u{9b}2J"],
    ] {
        let run = Cli::new().args(arguments.iter().copied()).run();
        run.code(2).stderr_has("error: ");
        let harmless = |c: char| c == '\n' || !c.is_control();
        assert!(run.stderr.chars().all(harmless), "{:?}", run.stderr);
    }
    let run = Cli::new()
        .env("SOCKS_PROXY", "wrong\u{1b}[31m://x")
        .prompt("x")
        .run();
    run.code(1).stderr_has("SOCKS_PROXY").stderr_lacks("\u{1b}");
}

#[test]
fn a6_a_closed_standard_output_ends_quietly_with_0() {
    let long = "a line of text\n".repeat(20_000);
    let server = Server::start([Reply::answer(&long)]);
    Cli::against(&server)
        .prompt("x")
        .head(1)
        .run()
        .success()
        .stdout_is("a line of text\n")
        .stderr_is("...requesting...\n");
}

#[test]
fn a6_a_closed_standard_output_ends_a_run_that_only_calls_tools() {
    let calls = (0..20).map(|_| Reply::shell("seq 1 20000"));
    let server = Server::start(calls).replies_may_be_left();
    Cli::against(&server)
        .prompt("x")
        .head(1)
        .run()
        .success()
        .stderr_lacks("panicked")
        .stderr_lacks("error");
}

#[test]
#[cfg(target_os = "linux")]
fn a6_a_full_disk_under_standard_output_is_an_error_and_no_panic() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .through(r#"exec "$@" >/dev/full"#)
        .prompt("x")
        .run()
        .code(1)
        .stderr_lacks("panicked")
        .stderr_has("error");
    Cli::new()
        .through(r#"exec "$@" >/dev/full"#)
        .arg("--help")
        .run()
        .code(1)
        .stderr_lacks("panicked")
        .stderr_has("error");
}

#[test]
fn a6_a_refused_key_hints_where_to_set_one() {
    let server = Server::start([Reply::error(401, "no auth")]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .code(1)
        .stderr_has("401")
        .stderr_has("no auth")
        .stderr_has("hint: ")
        .stderr_has("api_key");
}

#[test]
fn a6_a_missing_route_hints_at_v1() {
    let server = Server::start([Reply::body(404, "text/plain", "404 page not found")]);
    let endpoint = format!("endpoint={}", server.url().trim_end_matches("/v1"));
    Cli::new()
        .config(&endpoint)
        .prompt("x")
        .run()
        .code(1)
        .stderr_has("404")
        .stderr_has("hint: ")
        .stderr_has("/v1");
}

#[test]
fn a6_a_prompt_given_in_place_of_a_file_hints_at_the_dash() {
    Cli::new()
        .arg("explain this project to me")
        .run()
        .code(1)
        .stderr_has("hint: ")
        .stderr_has("bantam -");
}

#[test]
fn a6_an_error_has_one_form() {
    let run = Cli::new().arg("missing.txt").run();
    assert!(run.stderr.starts_with("error: "), "{run}");
}

#[test]
fn g_the_first_request_is_small() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    let request = server.request(0);
    let system = request.contents("system").remove(0);
    assert!(system.chars().count() < 1_800, "{}", system.chars().count());
    assert!(request.body.len() < 2_500, "{}", request.body.len());
}

#[test]
fn d8_a_one_shot_command_keeps_to_the_shell_limit() {
    let run = Cli::new()
        .config("shell_timeout=1")
        .prompt("!echo before; sleep 60")
        .run();
    run.code(124).stdout_has("before").stdout_has("exit: 124");
}

#[test]
fn a3_a_setting_of_the_command_line_is_not_written_to_a_file() {
    let server = Server::start([Reply::answer("ok")]);
    let run = Cli::against(&server)
        .args(["-c", "model=x"])
        .prompt("x")
        .run();
    run.success();
    let config = fs::read_to_string(run.directory().join("model.cfg")).unwrap();
    assert!(config.contains("model=test-model"));
}

#[test]
fn a3_quiet_says_nothing_on_standard_output_when_the_run_fails() {
    let server = Server::start([
        Reply::stream()
            .text("Let me look.")
            .tool_call(0, "a", "shell_exec", r#"{"command":"true"}"#)
            .finish("tool_calls")
            .done(),
        Reply::error(400, "not today"),
    ]);
    Cli::against(&server)
        .arg("-q")
        .prompt("x")
        .run()
        .code(1)
        .stdout_is("")
        .stderr_has("not today");
}
