//! What is done about servers that refuse what others demand (SPEC C3, C6).

use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Reply, Request, Server};

/// A turn with one call whose second request is refused like this; gives the third request.
#[track_caller]
fn asked_after(refusal: Reply, call: Reply) -> (Request, Output) {
    let server = Server::start([call, refusal, Reply::answer("ok")])
        .history_may_change()
        .parameters_may_change();
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("ok\n");
    (server.last_request(), run)
}

fn thoughtful_call() -> Reply {
    Reply::stream()
        .reasoning("hm")
        .tool_call(
            0,
            "call_longer_than_nine",
            "shell_exec",
            r#"{"command":"true"}"#,
        )
        .finish("tool_calls")
        .done()
}

#[test]
fn c6_reasoning_that_is_refused_is_left_out() {
    for (status, message) in [
        (400, "property 'reasoning_content' is unsupported"),
        (
            422,
            "Extra inputs are not permitted: messages.2.reasoning_content",
        ),
    ] {
        let (request, _) = asked_after(Reply::error(status, message), thoughtful_call());
        assert!(!request.text().contains("reasoning_content"), "{message}");
    }
}

#[test]
fn c6_reasoning_that_is_missing_is_filled_up() {
    let missing = "Missing `reasoning_content` field in the assistant message at index 2";
    let (request, _) = asked_after(Reply::error(400, missing), Reply::shell("true"));
    let filled = request.messages()[2]["reasoning_content"]
        .as_str()
        .map(str::len);
    assert!(
        filled.is_some_and(|length| length > 0),
        "{}",
        request.text()
    );
}

#[test]
fn c6_a_signature_that_is_missing_is_made_up() {
    let missing = "Function call is missing a thought_signature in functionCall parts";
    let (request, _) = asked_after(Reply::error(400, missing), Reply::shell("true"));
    let call = &request.messages()[2]["tool_calls"][0];
    assert_eq!(
        call["extra_content"]["google"]["thought_signature"],
        "skip_thought_signature_validator"
    );
}

#[test]
fn c6_an_empty_content_that_is_refused_takes_another_form() {
    let refused = "messages.2.content: text content blocks must be non-empty";
    let (request, _) = asked_after(Reply::error(400, refused), Reply::shell("true"));
    assert_ne!(request.messages()[2].get("content"), Some(&json!("")));
}

#[test]
fn c6_ids_that_are_refused_are_mapped_for_call_and_result_alike() {
    let refused = json!({"object": "error", "type": "invalid_request_error", "code": "3280",
        "message": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."});
    let (request, _) = asked_after(Reply::error_json(400, &refused), thoughtful_call());
    let messages = request.messages();
    let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 9, "{id}");
    assert!(id.chars().all(|one| one.is_ascii_alphanumeric()), "{id}");
    assert_eq!(messages[3]["tool_call_id"], id);
}

#[test]
fn c3_a_parameter_is_exchanged_for_its_newer_name() {
    let refusal = "Unsupported parameter: 'max_tokens' is not supported with this model. \
                   Use 'max_completion_tokens' instead.";
    let server =
        Server::start([Reply::error(400, refusal), Reply::answer("ok")]).parameters_may_change();
    let run = Cli::against(&server)
        .config("max_tokens=100")
        .prompt("x")
        .run();
    run.success().stderr_has("max_tokens");
    let body = server.last_request().json();
    assert!(body.get("max_tokens").is_none(), "{body}");
    assert_eq!(body["max_completion_tokens"], 100);
}

#[test]
fn c3_a_model_without_tools_is_an_error_that_says_so() {
    for (status, message) in [
        (
            400,
            "registry.ollama.ai/library/gemma does not support tools",
        ),
        (404, "No endpoints found that support tool use"),
    ] {
        let server = Server::start([Reply::error(status, message)]);
        Cli::against(&server)
            .prompt("x")
            .run()
            .code(1)
            .stderr_has(message);
    }
}

#[test]
fn c3_a_finish_that_tells_of_a_fault_is_asked_for_again() {
    for reason in [
        "error",
        "network_error",
        "insufficient_system_resource",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ] {
        let server = Server::start([Reply::stream().text("half").finish(reason).done()]);
        let run = Cli::against(&server).prompt("x").start();
        run.wait_for_stderr("of 9");
        run.interrupt();
        run.finish().code(130);
    }
}

#[test]
fn c6_nothing_is_made_up_for_servers_that_did_not_ask_for_it() {
    let server = Server::start([Reply::shell("true"), Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    let assistant = &server.last_request().messages()[2];
    let keys: Vec<_> = assistant
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["role", "content", "tool_calls"]);
    let call: Vec<_> = assistant["tool_calls"][0]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(call, ["id", "type", "function"]);
    let result = server.last_request().last_message();
    let keys: Vec<&String> = result
        .as_object()
        .map(|one| one.keys().collect())
        .unwrap_or_default();
    assert_eq!(keys, ["role", "tool_call_id", "content"]);
    assert_ne!(result["content"], Value::Null);
}
