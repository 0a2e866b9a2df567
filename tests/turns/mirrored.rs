//! What came from a server and goes back to it (SPEC C6).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c6_reasoning_goes_back_to_where_it_came_from_under_its_own_name() {
    for key in ["reasoning_content", "reasoning"] {
        let call = Reply::stream()
            .delta(&json!({key: "Let me "}))
            .delta(&json!({key: "think."}))
            .tool_call(0, "a", "shell_exec", r#"{"command":"true"}"#)
            .finish("tool_calls")
            .done();
        let server = Server::start([call, Reply::answer("ok")]);
        Cli::against(&server).prompt("x").run().success();
        let assistant = &server.request(1).messages()[2];
        assert_eq!(assistant[key], "Let me think.");
        let other = ["reasoning", "reasoning_content"]
            .into_iter()
            .find(|name| *name != key);
        assert!(assistant.get(other.unwrap()).is_none(), "{assistant}");
    }
}

#[test]
fn c6_reasoning_does_not_go_to_another_model() {
    let first = Reply::stream()
        .reasoning("secret thoughts")
        .text("one")
        .finish("stop")
        .done();
    let server = Server::start([first, Reply::answer("two")])
        .history_may_change()
        .parameters_may_change();
    Cli::against(&server)
        .lines(["first", "/model other-model", "second"])
        .run()
        .success();
    let request = server.request(1);
    assert_eq!(request.json()["model"], "other-model");
    assert_eq!(
        request.messages()[2],
        json!({"role": "assistant", "content": "one"})
    );
}

#[test]
fn c6_a_signature_of_a_call_goes_back_with_it() {
    let signed = json!({"google": {"thought_signature": "c2lnbmVk"}});
    let call = Reply::stream()
        .delta(&json!({"tool_calls": [{
            "index": 0, "id": "a", "type": "function", "extra_content": signed,
            "function": {"name": "shell_exec", "arguments": "{\"command\":\"true\"}"},
        }]}))
        .finish("stop")
        .done();
    let server = Server::start([call, Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    let assistant = &server.request(1).messages()[2];
    assert_eq!(assistant["tool_calls"][0]["extra_content"], signed);
}

#[test]
fn c6_reasoning_details_are_put_together_by_index() {
    let call = Reply::stream()
        .delta(&json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "Let me ", "format": "f"}]}))
        .delta(&json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "think."}]}))
        .delta(&json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "signature": "sig"}]}))
        .tool_call(0, "a", "shell_exec", r#"{"command":"true"}"#)
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("Let me think.");
    let details = &server.request(1).messages()[2]["reasoning_details"];
    assert_eq!(details.as_array().unwrap().len(), 1, "{details}");
    assert_eq!(details[0]["text"], "Let me think.");
    assert_eq!(details[0]["signature"], "sig");
}

#[test]
fn c6_the_arguments_of_a_call_go_back_as_the_text_that_came() {
    let odd = r#"{ "command" : "echo \u00e4" ,  "timeout_s":5}"#;
    let call = Reply::stream()
        .tool_call(0, "a", "shell_exec", odd)
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    let assistant = &server.request(1).messages()[2];
    assert_eq!(assistant["tool_calls"][0]["function"]["arguments"], odd);
    assert_eq!(assistant["content"], "");
}
