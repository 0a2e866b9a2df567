//! The context window under all its names (SPEC B8).

use serde_json::{Value, json};

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

#[test]
fn b8_the_window_is_found_under_every_name() {
    for entry in [
        json!({"id": "test-model", "context_length": 4096}),
        json!({"id": "test-model", "context_length": 9999, "top_provider": {"context_length": 4096}}),
        json!({"id": "test-model", "max_model_len": 4096}),
        json!({"id": "test-model", "meta": {"n_ctx_train": 9999, "n_ctx": 4096}}),
        json!({"id": "test-model", "context_window": 4096}),
        json!({"id": "test-model", "max_context_length": "4096"}),
        json!({"id": "test-model", "max_input_tokens": 4096}),
        json!({"id": "test-model", "capabilities": {"limits": {"max_prompt_tokens": 4096}}}),
        json!({"id": "models/test-model", "context_length": 4096}),
    ] {
        let shown = window_of(json!({"object": "list", "data": [
            {"id": "another", "context_length": 1111}, entry]}));
        assert_eq!(shown, "4096", "{entry}");
    }
}

#[test]
fn b8_a_list_may_be_bare_or_under_another_name() {
    let entry = json!({"id": "test-model", "context_length": 4096});
    assert_eq!(window_of(json!([entry])), "4096");
    assert_eq!(window_of(json!({"models": [entry]})), "4096");
}

#[test]
fn b8_what_is_no_window_is_passed_over() {
    for entry in [
        json!({"id": "test-model", "context_length": 0}),
        json!({"id": "test-model", "context_length": null}),
        json!({"id": "test-model", "context_length": -5}),
        json!({"id": "test-model"}),
    ] {
        assert_eq!(
            window_of(json!({"data": [entry, {"id": "b"}]})),
            "5000",
            "{entry}"
        );
    }
    assert_eq!(window_of(json!("nonsense")), "5000");
}

/// The window on the usage line of a run whose server lists these models, with 5000 configured.
#[track_caller]
fn window_of(list: Value) -> String {
    let (sent, gate) = (Gate::new(), Gate::new());
    let held = sent.clone();
    let server = Server::start([Reply::stream().text("a").hold(&gate).finish("stop").done()])
        .with_models(move || Reply::json(&list).hold(&held));
    let run = Cli::against(&server)
        .config("context_window=5000")
        .prompt("x")
        .start();
    sent.wait();
    run.wait_for_stdout("a");
    gate.open();
    let run = run.finish();
    run.success();
    sent.open();
    let line = run.stdout.lines().last().unwrap();
    let window = line.rsplit_once('/').unwrap().1;
    window.split(' ').next().unwrap().to_owned()
}

#[test]
fn b8_a_list_that_never_comes_delays_nothing_and_says_nothing() {
    let server = Server::start([Reply::answer("ok")]).with_models(Reply::silence);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has("/200000 (")
        .stderr_is("...requesting...\n");
}

#[test]
fn b8_a_list_that_fails_says_nothing() {
    for status in [401, 404, 500] {
        let server = Server::start([Reply::answer("ok")])
            .with_models(move || Reply::error(status, "no list here"));
        Cli::against(&server)
            .prompt("x")
            .run()
            .success()
            .stderr_is("...requesting...\n");
    }
}

#[test]
fn b8_the_list_is_asked_for_with_key_and_headers() {
    let gate = Gate::new();
    let server = Server::start([Reply::stream().text("a").hold(&gate).finish("stop").done()]);
    let run = Cli::against(&server)
        .config("api_key=sk-0123456789")
        .config("header.X-Team=blue")
        .prompt("x")
        .start();
    server.wait_until(|requests| requests.iter().any(|one| one.method == "GET"));
    gate.open();
    run.finish().success();
    let everything = server.everything();
    let list = everything.iter().find(|one| one.method == "GET").unwrap();
    assert_eq!(list.path, "/v1/models");
    assert_eq!(list.header("authorization"), Some("Bearer sk-0123456789"));
    assert_eq!(list.header("x-team"), Some("blue"));
}
