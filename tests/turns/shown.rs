//! What the person sees of an answer (SPEC C5).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

#[test]
fn c5_text_is_shown_as_it_comes() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = Server::start([Reply::stream()
        .text("one ")
        .hold(&first)
        .text("two ")
        .hold(&second)
        .text("three")
        .finish("stop")
        .done()]);
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stdout("one ");
    first.open();
    run.wait_for_stdout("one two ");
    second.open();
    run.finish().success().stdout_has("one two three\n[");
}

#[test]
fn c5_reasoning_stands_between_its_marks_under_either_name() {
    let expected = "--- reasoning start ---\nLet me\nthink.\n--- reasoning end ---\nDone.\n[";
    for key in ["reasoning_content", "reasoning"] {
        let server = Server::start([Reply::stream()
            .delta(&json!({key: "Let me\n", "content": null}))
            .delta(&json!({key: "think."}))
            .text("Done.")
            .finish("stop")
            .done()]);
        let run = Cli::against(&server).prompt("x").run();
        run.success();
        assert!(run.stdout.starts_with(expected), "{key}\n{run}");
    }
}

#[test]
fn c5_without_streaming_the_same_is_shown() {
    let expected = "--- reasoning start ---\nLet me\nthink.\n--- reasoning end ---\nDone.\n[";
    for key in ["reasoning_content", "reasoning"] {
        let message = json!({"role": "assistant", "content": "Done.", key: "Let me\nthink."});
        let server = Server::start([Reply::completion(&message, "stop")]);
        let run = Cli::against(&server)
            .config("stream=false")
            .prompt("x")
            .run();
        run.success();
        assert!(run.stdout.starts_with(expected), "{key}\n{run}");
    }
}

#[test]
fn c5_markdown_goes_through_a_pipe_untouched() {
    let document = "# A *head*\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n- x &#27;[31m & <b>\n";
    let server = Server::start([Reply::answer(document)]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has(document);
}
