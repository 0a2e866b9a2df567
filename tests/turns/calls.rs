//! Calls of tools and their results (SPEC C7, C8).

use serde_json::json;

use super::result_of;
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c7_two_calls_run_in_order_and_are_answered_in_order() {
    let calls = Reply::stream()
        .tool_call(
            0,
            "first",
            "shell_exec",
            r#"{"command":"echo 1 >> log; cat log"}"#,
        )
        .tool_call(
            1,
            "second",
            "shell_exec",
            r#"{"command":"echo 2 >> log; cat log"}"#,
        )
        .finish("tool_calls")
        .done();
    let server = Server::start([calls, Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().file("log", "1\n2\n");
    let messages = server.request(1).messages();
    assert_eq!(messages[3]["tool_call_id"], "first");
    assert_eq!(messages[3]["content"], "1\n\n\nexit: 0");
    assert_eq!(messages[4]["tool_call_id"], "second");
    assert_eq!(messages[4]["content"], "1\n2\n\n\nexit: 0");
    let traces: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("[tool "))
        .map(|line| &line[..12])
        .collect();
    assert_eq!(
        traces,
        [
            "[tool call: ",
            "[tool result",
            "[tool call: ",
            "[tool result"
        ]
    );
}

#[test]
fn c7_a_call_without_an_id_gets_one() {
    let call = Reply::stream()
        .delta(&json!({"tool_calls": [{"index": 0, "function":
            {"name": "shell_exec", "arguments": "{\"command\":\"echo hi\"}"}}]}))
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    // That call and result have one id, not empty, is checked by the server.
    assert_eq!(server.request(1).result(), "hi\n\n\nexit: 0");
}

#[test]
fn c7_an_id_that_was_used_before_is_replaced() {
    let server = Server::start([
        Reply::call("call_0", "shell_exec", &json!({"command": "echo 1"})),
        Reply::call("call_0", "shell_exec", &json!({"command": "echo 2"})),
        Reply::answer("ok"),
    ]);
    Cli::against(&server).prompt("x").run().success();
    let messages = server.request(2).messages();
    assert_ne!(messages[3]["tool_call_id"], messages[5]["tool_call_id"]);
}

#[test]
fn c7_a_result_is_shown_once() {
    let server = Server::start([Reply::shell("echo the-only-line"), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    let shown = run.stdout.replace("echo the-only-line", "");
    assert_eq!(shown.matches("the-only-line").count(), 1, "{run}");
}

#[test]
fn c8_arguments_that_are_no_object_are_told_to_the_model() {
    for arguments in [r#"{"command": "#, "[1]", "\"x\"", "nonsense", "{} {}"] {
        let result = result_of("shell_exec", arguments);
        assert!(
            result.contains("JSON") || result.contains("object"),
            "{arguments}: {result}"
        );
        assert!(!result.contains("exit: "), "{arguments}: {result}");
    }
}

#[test]
fn c8_a_missing_parameter_is_named() {
    for (name, arguments, missing) in [
        ("shell_exec", "{}", "command"),
        ("shell_exec", "", "command"),
        ("shell_exec", r#"{"command":null}"#, "command"),
        ("write_file", r#"{"path":"a"}"#, "content"),
        ("write_file", r#"{"content":"a"}"#, "path"),
    ] {
        let result = result_of(name, arguments);
        assert!(result.contains(missing), "{arguments}: {result}");
    }
}

#[test]
fn c8_a_parameter_of_the_wrong_type_is_named_with_what_is_expected() {
    for (name, arguments, told) in [
        ("shell_exec", r#"{"command":7}"#, ["command", "string"]),
        ("shell_exec", r#"{"command":["ls"]}"#, ["command", "string"]),
        (
            "write_file",
            r#"{"path":"f","content":"x","offset":"ten"}"#,
            ["offset", "integer"],
        ),
        (
            "write_file",
            r#"{"path":"f","content":"x","offset":1.5}"#,
            ["offset", "integer"],
        ),
    ] {
        let result = result_of(name, arguments);
        assert!(
            told.iter().all(|word| result.contains(word)),
            "{arguments}: {result}"
        );
    }
}

#[test]
fn c8_an_unknown_tool_is_told_which_ones_there_are() {
    let result = result_of("delete_everything", "{}");
    for told in ["delete_everything", "shell_exec", "write_file"] {
        assert!(result.contains(told), "{result}");
    }
}

#[test]
fn c8_numbers_written_as_strings_are_numbers() {
    let call = json!({"path": "f", "content": "X", "offset": "1", "del_bytes": "1"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    Cli::against(&server)
        .file("f", "abc")
        .prompt("x")
        .run()
        .success()
        .file("f", "aXc");
}

#[test]
fn c8_history_never_holds_arguments_that_are_no_object() {
    let call = Reply::stream()
        .tool_call(0, "a", "shell_exec", r#"{"command": "#)
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::answer("ok")]);
    Cli::against(&server).prompt("x").run().success();
    let assistant = &server.request(1).messages()[2];
    assert_eq!(assistant["tool_calls"][0]["function"]["arguments"], "{}");
}
