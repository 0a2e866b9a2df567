//! What goes to the server (SPEC C1, C2).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c1_the_request_has_the_headers_and_the_body_of_a_chat_completion() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .config("api_key=sk-0123456789")
        .prompt("hello")
        .run()
        .success();
    let request = server.request(0);
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    for (name, value) in [
        ("content-type", "application/json"),
        ("authorization", "Bearer sk-0123456789"),
        ("user-agent", "Mozilla/5.0 (compatible; Bantam/1.0)"),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    let body = request.json();
    let keys: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        keys[..5],
        ["model", "messages", "tools", "stream", "stream_options"]
    );
    assert_eq!(body["model"], "test-model");
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["temperature"], json!(0.7));
    assert_eq!(body["reasoning_effort"], "high");
    let names: Vec<_> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["shell_exec", "write_file"]);
}

#[test]
fn c1_without_a_key_there_is_no_authorization() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    assert_eq!(server.request(0).header("authorization"), None);
}

#[test]
fn c1_trailing_slashes_of_the_endpoint_are_dropped() {
    let server = Server::start([Reply::answer("ok")]);
    let endpoint = format!("endpoint={}//", server.url());
    Cli::new().config(&endpoint).prompt("x").run().success();
    assert_eq!(server.request(0).path, "/v1/chat/completions");
}

#[test]
fn c1_without_streaming_there_are_no_stream_options() {
    let answer = Reply::completion(&json!({"role": "assistant", "content": "whole"}), "stop");
    let server = Server::start([answer]);
    Cli::against(&server)
        .config("stream=false")
        .prompt("x")
        .run()
        .success()
        .stdout_is("whole\n[test-model: 10 prompt + 5 completion | context: 10/200000 (0.0%)]\n");
    let body = server.request(0).json();
    assert!(body.get("stream_options").is_none(), "{body}");
    assert_ne!(body["stream"], true);
}

#[test]
fn c2_shell_and_file_tools_work_together_and_every_request_begins_with_the_one_before() {
    let server = Server::start([
        Reply::stream()
            .reasoning("First the shell.")
            .text("I'll look.")
            .tool_call(
                0,
                "call_a",
                "shell_exec",
                r#"{"command":"printf 'a\nb'; exit 4"}"#,
            )
            .finish("tool_calls")
            .usage(100, 10)
            .done(),
        Reply::call(
            "call_b",
            "write_file",
            &json!({"path": "out/new.txt", "content": "x\n"}),
        ),
        Reply::answer("All done."),
    ]);
    let run = Cli::against(&server).prompt("go").run();
    run.success()
        .file("out/new.txt", "x\n")
        .stdout_has("[test-model: 120 prompt + 20 completion | context: 10/200000 (0.0%)]");
    // That each is a prefix of the next is checked by the server.
    let requests = server.finish();
    assert_eq!(requests.len(), 3);
    let told = requests[1].last_message();
    assert_eq!(
        told,
        json!({"role": "tool", "tool_call_id": "call_a", "content": "a\nb\n\nexit: 4"})
    );
    assert_eq!(requests[2].last_message()["tool_call_id"], "call_b");
}

#[test]
fn c2_a_conversation_of_many_turns_keeps_its_bytes() {
    let answers = (0..12).map(|number| {
        if number % 3 == 2 {
            Reply::answer("text with \"quotes\", ümläuts, \u{1F413} and \\ slashes")
        } else {
            Reply::shell(&format!("echo {number}; printf '\\t\\\\'"))
        }
    });
    let server = Server::start(answers);
    Cli::against(&server)
        .lines(["one", "two \"x\" \\", "three", "four"])
        .run()
        .success();
}
