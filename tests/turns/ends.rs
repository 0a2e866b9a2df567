//! How a turn ends, and answers that are none (SPEC C9, C10).

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c9_the_last_requests_calls_are_still_run_and_answered() {
    let server = Server::start([Reply::shell("echo ran > proof"), Reply::answer("two")]);
    let run = Cli::against(&server)
        .config("max_al_iterations=1")
        .lines(["first", "second"])
        .run();
    run.file("proof", "ran\n").stderr_has("max_al_iterations");
    let messages = server.request(1).messages();
    let roles: Vec<_> = messages
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
}

#[test]
fn c9_an_answer_cut_by_length_stays_and_its_calls_are_not_run() {
    let cut = Reply::stream()
        .text("It begins well")
        .tool_call(0, "a", "shell_exec", r#"{"command":"echo ran > proof"#)
        .finish("length")
        .usage(10, 5)
        .done();
    let server = Server::start([cut, Reply::answer("two")]);
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.stdout_has("It begins well")
        .stderr_has("cut off")
        .no_file("proof");
    let answers = server.request(1).contents("assistant");
    assert!(answers[0].starts_with("It begins well"), "{answers:?}");
}

#[test]
fn c9_an_answer_cut_by_a_content_filter_stays_and_is_told() {
    let cut = Reply::stream()
        .text("It begins well")
        .finish("content_filter")
        .done();
    let server = Server::start([cut]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .stdout_has("It begins well")
        .stderr_has("filter");
}

#[test]
fn c9_complete_calls_are_run_whatever_the_finish_reason_says() {
    for reason in ["stop", "function_call", "eos", "tool_use"] {
        let call = Reply::stream()
            .tool_call(0, "a", "shell_exec", r#"{"command":"echo hi"}"#)
            .finish(reason)
            .done();
        let server = Server::start([call, Reply::answer("ok")]);
        Cli::against(&server).prompt("x").run().success();
        assert_eq!(server.request(1).result(), "hi\n\n\nexit: 0", "{reason}");
    }
}

#[test]
fn c10_an_empty_answer_is_asked_for_again_and_never_kept() {
    let server = Server::start([
        Reply::stream().finish("stop").done(),
        Reply::stream()
            .reasoning("only thoughts")
            .finish("stop")
            .done(),
        Reply::answer("at last"),
    ]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("at last");
    for request in server.finish() {
        assert_eq!(request.messages().len(), 2);
    }
}

#[test]
fn c10_after_three_empty_answers_the_run_ends_with_a_notice() {
    let server = Server::start((0..3).map(|_| Reply::stream().finish("stop").done()));
    let run = Cli::against(&server).prompt("x").run();
    run.stderr_has("empty").stderr_lacks("panicked");
    assert_eq!(server.finish().len(), 3);
}

#[test]
fn c10_the_servers_complaint_about_an_empty_message_removes_the_last_answer_once() {
    let complaint = "Invalid assistant message: content or tool_calls must be set";
    let server = Server::start([
        Reply::shell("echo hi"),
        Reply::error(400, complaint),
        Reply::answer("ok"),
    ])
    .history_may_change();
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("ok");
    assert!(run.stderr.lines().count() > 3, "the person is told\n{run}");
    let roles: Vec<_> = server
        .request(2)
        .messages()
        .iter()
        .map(|one| one["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user"]);
}

#[test]
fn c10_a_complaint_that_stays_ends_the_run() {
    let complaint = "Invalid assistant message: content or tool_calls must be set";
    let server = Server::start([
        Reply::shell("echo hi"),
        Reply::error(400, complaint),
        Reply::error(400, complaint),
    ])
    .history_may_change();
    Cli::against(&server)
        .prompt("x")
        .run()
        .code(1)
        .stderr_has("must be set");
}
