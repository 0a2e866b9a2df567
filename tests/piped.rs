//! Prompts from a pipe, one a line, through the same loop (SPEC A1, A4, A6, D8).

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

#[test]
fn a1_each_line_is_a_prompt_of_one_conversation() {
    let server = Server::start([Reply::answer("one"), Reply::answer("two")]);
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.success();
    let usage = "[test-model: 10 prompt + 5 completion | context: 10/200000 (0.0%)]";
    run.stdout_is(&format!("one\n{usage}\ntwo\n{usage}\n"));
    let last = server.request(1).messages();
    let roles: Vec<_> = last
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(server.request(1).contents("user"), ["first", "second"]);
}

#[test]
fn a1_blank_lines_are_no_prompts_and_the_last_line_needs_no_newline() {
    let server = Server::start([Reply::answer("one"), Reply::answer("two")]);
    Cli::against(&server)
        .stdin("\n  \nfirst\r\n\nsecond")
        .run()
        .success();
    assert_eq!(server.request(1).contents("user"), ["first", "second"]);
}

#[test]
fn a1_nothing_at_all_is_a_conversation_without_a_prompt() {
    let server = Server::start([]);
    Cli::against(&server).run().success().stdout_is("");
}

#[test]
fn a1_there_is_no_prompt_sign_and_no_escape_sequence() {
    let server = Server::start([Reply::answer("one")]);
    let run = Cli::against(&server).lines(["first"]).run();
    run.success().lacks("\u{1b}").stdout_lacks("> ");
}

#[test]
fn a1_quit_ends_the_loop() {
    let server = Server::start([Reply::answer("one")]);
    Cli::against(&server)
        .lines(["first", "/quit", "never asked"])
        .run()
        .success();
}

#[test]
fn a1_quit_ends_the_loop_of_a_pipe_that_stays_open() {
    let server = Server::start([]);
    let mut run = Cli::against(&server).stdin_open().start();
    run.write("/quit\n");
    run.finish().success();
}

#[test]
fn a1_a_line_is_answered_before_the_next_one_is_there() {
    let server = Server::start([Reply::answer("one"), Reply::answer("two")]);
    let mut run = Cli::against(&server).stdin_open().start();
    run.write("first\n");
    run.wait_for_stdout("one\n[test-model: ");
    run.write("second\n");
    run.wait_for_stdout("two\n[test-model: ");
    run.close_stdin();
    run.finish().success();
}

#[test]
fn a1_a_line_with_bytes_that_are_no_text_is_no_panic() {
    let server = Server::start([Reply::answer("one")]);
    Cli::against(&server)
        .stdin(b"a\xff\x00b\n")
        .run()
        .success()
        .stderr_lacks("panicked");
}

#[test]
fn d8_a_command_is_run_and_not_told_to_the_model() {
    let server = Server::start([Reply::answer("one")]);
    let run = Cli::against(&server)
        .lines(["!echo out; echo err >&2; exit 3", "first"])
        .run();
    run.success().stdout_has("out\nerr\n\n\nexit: 3\n");
    assert_eq!(server.request(0).contents("user"), ["first"]);
}

#[test]
fn d8_two_marks_add_command_and_output_to_the_conversation() {
    let server = Server::start([Reply::answer("one")]);
    let run = Cli::against(&server)
        .lines(["!!echo the-output", "first"])
        .run();
    run.success().stdout_has("the-output");
    let said = server.request(0).contents("user").join("\n");
    for told in ["echo the-output", "exit: 0", "first"] {
        assert!(said.contains(told), "{told} is missing in {said:?}");
    }
}

#[test]
fn d8_a_command_does_not_read_the_prompts() {
    let server = Server::start([Reply::answer("one")]);
    Cli::against(&server)
        .lines(["!cat", "first"])
        .run()
        .success();
    assert_eq!(server.request(0).contents("user"), ["first"]);
}

#[test]
fn d8_a_command_keeps_to_the_shell_limit() {
    let run = Cli::new()
        .config("shell_timeout=1")
        .lines(["!echo before; sleep 60"])
        .run();
    run.success().stdout_has("before").stdout_has("exit: 124");
}

#[test]
fn a6_output_without_a_newline_gets_one_before_a_line_of_ours() {
    let server = Server::start([Reply::answer("one")]);
    let run = Cli::against(&server)
        .lines(["!printf unfinished; exit 0", "first"])
        .run();
    run.success()
        .stdout_has("unfinished\n\nexit: 0\none\n[test-model: ");
}

#[test]
fn a4_the_loop_goes_on_after_a_failed_turn_and_ends_with_0_if_the_last_one_was_fine() {
    let server =
        Server::start([Reply::error(400, "not today"), Reply::answer("two")]).history_may_change();
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.success().stderr_has("not today").stdout_has("two");
}

#[test]
fn c11_the_prompt_of_a_failed_turn_is_taken_back() {
    let server =
        Server::start([Reply::error(400, "not today"), Reply::answer("two")]).history_may_change();
    Cli::against(&server)
        .lines(["first", "second"])
        .run()
        .success();
    assert_eq!(server.request(1).contents("user"), ["second"]);
}

#[test]
fn a4_the_loop_ends_with_1_if_its_last_turn_failed() {
    let server = Server::start([Reply::answer("one"), Reply::error(400, "not today")]);
    Cli::against(&server)
        .lines(["first", "second"])
        .run()
        .code(1)
        .stderr_has("not today");
}

#[test]
fn a4_an_interrupt_ends_the_loop_with_130() {
    let gate = Gate::new();
    let server = Server::start([Reply::stream().text("half").hold(&gate).stall()]);
    let run = Cli::against(&server)
        .lines(["first", "never asked"])
        .start();
    run.wait_for_stdout("half");
    run.interrupt();
    run.finish().code(130);
}

#[test]
fn a4_an_interrupt_ends_a_loop_that_waits_for_a_line() {
    let server = Server::start([Reply::answer("one")]);
    let mut run = Cli::against(&server).stdin_open().start();
    run.write("first\n");
    run.wait_for_stdout("[test-model: ");
    run.interrupt();
    run.finish().code(130);
}

#[test]
fn a6_a_closed_standard_output_ends_the_loop_quietly() {
    let server = Server::start((0..50).map(|_| Reply::answer(&"text\n".repeat(2_000))))
        .replies_may_be_left();
    Cli::against(&server)
        .lines(["again"; 50])
        .head(1)
        .run()
        .success()
        .stderr_lacks("panicked")
        .stderr_lacks("interrupted")
        .stderr_lacks("error");
    assert!(server.requests().len() < 5, "it went on without a reader");
}

#[test]
fn a1_a_bom_in_front_of_the_first_line_is_dropped() {
    let server = Server::start([Reply::answer("one")]);
    Cli::against(&server)
        .lines(["\u{feff}first"])
        .run()
        .success();
    assert_eq!(server.request(0).contents("user"), ["first"]);
}

#[test]
fn a6_a_closed_standard_output_ends_a_command_of_the_person() {
    for command in ["!yes", "!!yes"] {
        Cli::new()
            .config("shell_timeout=3000")
            .lines([command, "never asked"])
            .head(1)
            .run()
            .success()
            .stdout_is("y\n")
            .stderr_is("");
    }
}

#[test]
fn e10_a_path_at_the_start_is_a_prompt_and_a_mistyped_command_is_not() {
    let server = Server::start([Reply::answer("one")]);
    let run = Cli::against(&server)
        .lines(["/etc/hosts has a line too many", "/hlep"])
        .run();
    run.stderr_has("/help");
    assert_eq!(
        server.request(0).contents("user"),
        ["/etc/hosts has a line too many"]
    );
}

#[test]
fn e9_the_question_for_compaction_is_not_asked_without_a_terminal() {
    let full = Reply::stream()
        .text("one")
        .finish("stop")
        .usage(900, 5)
        .done();
    let server = Server::start([full]);
    Cli::against(&server)
        .config("context_window=1000")
        .lines(["first"])
        .run()
        .success()
        .stdout_has("context: 900/1000 (90.0%)]")
        .lacks("Compact conversation?");
}
