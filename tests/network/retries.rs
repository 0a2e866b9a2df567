//! What is tried again, when, and what is not (SPEC C3).

use std::time::Duration;

use serde_json::json;

use super::{NOWHERE, interrupt_in_back_off};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c3_a_503_and_a_reset_connection_are_survived_with_the_same_bytes() {
    let server = Server::start([
        Reply::error(503, "overloaded").close(),
        Reply::reset_at_once(),
        Reply::answer("ok"),
    ])
    // A reset of a kept connection would be another case.
    .with_models(|| Reply::models(&json!([])).close());
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("ok\n[test-model: 10 prompt + 5 ");
    let requests = server.finish();
    assert_eq!(requests[0].text(), requests[1].text());
    assert_eq!(requests[0].text(), requests[2].text());
    let second = Duration::from_secs(1);
    assert!(requests[1].at - requests[0].at >= second);
    assert!(requests[2].at - requests[1].at >= second);
}

#[test]
fn c3_each_retry_is_told_on_one_line_with_reason_time_and_number() {
    let server = Server::start([Reply::error(503, "overloaded"), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success();
    let lines: Vec<_> = run
        .stderr
        .lines()
        .filter(|line| line.contains("503"))
        .collect();
    assert_eq!(lines.len(), 1, "{run}");
    for told in ["overloaded", "1 s", "9"] {
        assert!(lines[0].contains(told), "no {told:?}: {}", lines[0]);
    }
}

#[test]
fn c3_these_statuses_are_tried_again() {
    for status in [408, 429, 500, 502, 503, 504, 529] {
        let server = Server::start([Reply::error(status, "not now")]);
        let run = Cli::against(&server).prompt("x").start();
        interrupt_in_back_off(run, &status.to_string());
    }
}

#[test]
fn c3_these_statuses_are_final() {
    for status in [400, 401, 402, 403, 404, 405, 413, 422] {
        let server = Server::start([Reply::error(status, "no way")]);
        let run = Cli::against(&server).prompt("x").run();
        run.code(1)
            .stderr_has("no way")
            .stderr_has(&status.to_string());
        assert_eq!(server.finish().len(), 1, "{status}");
    }
}

#[test]
fn c3_a_used_up_quota_is_final() {
    for body in [
        json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota",
            "code": "insufficient_quota"}}),
        json!({"error": {"message": "Insufficient balance", "code": "1113"}}),
    ] {
        let server = Server::start([Reply::error_json(429, &body)]);
        let run = Cli::against(&server).prompt("x").run();
        run.code(1);
        assert_eq!(server.finish().len(), 1, "{body}");
    }
}

#[test]
fn c3_a_rate_limit_told_as_413_and_a_failed_tool_use_are_tried_again() {
    for (status, body) in [
        (
            413,
            json!({"error": {"message": "Request too large for model on tokens per minute (TPM)",
            "type": "tokens", "code": "rate_limit_exceeded"}}),
        ),
        (
            400,
            json!({"error": {"message": "Failed to call a function", "code": "tool_use_failed",
            "type": "invalid_request_error", "failed_generation": "<tool>"}}),
        ),
    ] {
        let server = Server::start([Reply::error_json(status, &body)]);
        let run = Cli::against(&server).prompt("x").start();
        interrupt_in_back_off(run, &status.to_string());
    }
}

#[test]
fn c3_a_500_that_is_no_passing_fault_is_final() {
    for message in [
        "1 validation error for ChatCompletionRequest",
        "Jinja template error: Conversation roles must alternate user/assistant",
    ] {
        let server = Server::start([Reply::error(500, message)]);
        Cli::against(&server)
            .prompt("x")
            .run()
            .code(1)
            .stderr_has(message);
    }
}

#[test]
fn c3_a_longer_wait_that_the_server_asks_for_replaces_the_delay() {
    let server = Server::start([
        Reply::error(429, "slow down").header("Retry-After", "2"),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().stderr_has("2 s");
    let requests = server.finish();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(2));
}

#[test]
fn c3_every_way_to_name_a_wait_is_understood() {
    for (reply, told) in [
        (Reply::error(429, "x").header("Retry-After", "77"), "77 s"),
        (
            Reply::error(503, "x").header("retry-after-ms", "66000"),
            "66 s",
        ),
        (
            Reply::error(429, "Rate limit reached. Please try again in 55s."),
            "55 s",
        ),
        (
            Reply::error_json(
                429,
                &json!([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED",
                    "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo",
                        "retryDelay": "44s"}]}}]),
            ),
            "44 s",
        ),
    ] {
        let server = Server::start([reply]);
        let run = Cli::against(&server).prompt("x").start();
        interrupt_in_back_off(run, told);
    }
}

#[test]
fn c3_a_wait_that_is_none_leaves_the_delay() {
    for wait in [
        "banana",
        "-5",
        "0",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "NaN",
        "-inf",
    ] {
        let server = Server::start([Reply::error(429, "x").header("Retry-After", wait)]);
        let run = Cli::against(&server).prompt("x").start();
        interrupt_in_back_off(run, "in 1 s");
    }
}

#[test]
fn c3_a_wait_of_more_than_two_minutes_ends_the_run_with_the_time_named() {
    let server = Server::start([Reply::error(429, "slow down").header("Retry-After", "3600")]);
    let run = Cli::against(&server).prompt("x").run();
    run.code(1);
    assert!(
        run.stderr.contains("3600") || run.stderr.contains("1 h"),
        "{run}"
    );
}

#[test]
fn c3_a_stream_that_breaks_off_is_asked_for_again_and_leaves_nothing() {
    let server = Server::start([
        Reply::stream().text("half an ans").cut(),
        Reply::stream().text("another ha"),
        Reply::answer("whole"),
        Reply::answer("two"),
    ]);
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.success().stdout_has("whole\n");
    assert_eq!(server.request(3).contents("assistant"), ["whole"]);
}

#[test]
fn c3_half_a_call_is_never_run() {
    let server = Server::start([
        Reply::stream()
            .tool_call(0, "a", "shell_exec", r#"{"command":"echo ran > proof"}"#)
            .cut(),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().no_file("proof").stdout_lacks("[tool call");
}

#[test]
fn c3_a_json_answer_that_breaks_off_is_asked_for_again() {
    let half = Reply::body(200, "application/json", r#"{"choices":[{"message":{"con"#).cut();
    let whole = Reply::completion(&json!({"role": "assistant", "content": "whole"}), "stop");
    let server = Server::start([half, whole]);
    Cli::against(&server)
        .config("stream=false")
        .prompt("x")
        .run()
        .success()
        .stdout_has("whole\n");
}

#[test]
fn c3_a_server_that_talks_no_http_is_a_network_failure() {
    let server = Server::start([Reply::bytes("SSH-2.0-OpenSSH_9.6\r\n")]);
    let run = Cli::against(&server).prompt("x").start();
    interrupt_in_back_off(run, "9");
}

#[test]
fn c3_a_refused_connection_is_tried_again() {
    let run = Cli::new()
        .config("endpoint=http://127.0.0.1:1/v1")
        .prompt("x")
        .start();
    interrupt_in_back_off(run, "127.0.0.1:1");
}

#[test]
fn c3_a_host_that_cannot_be_found_is_tried_again_and_named() {
    let run = Cli::new().config(NOWHERE).prompt("x").start();
    interrupt_in_back_off(run, "bantam.invalid");
}

#[test]
fn c3_a_parameter_the_server_refuses_is_left_out_at_once_and_for_the_rest_of_the_run() {
    for name in ["temperature", "reasoning_effort", "stream_options"] {
        let server = Server::start([
            Reply::error(
                400,
                &format!("Unsupported parameter: '{name}' is not supported"),
            ),
            Reply::shell("true"),
            Reply::answer("ok"),
        ])
        .parameters_may_change();
        let run = Cli::against(&server).prompt("x").run();
        run.success().stderr_has(name);
        let requests = server.finish();
        assert!(requests[0].json().get(name).is_some());
        for request in &requests[1..] {
            assert!(request.json().get(name).is_none(), "{name}");
        }
    }
}

#[test]
fn c3_a_parameter_is_left_out_once_only() {
    let refusal = || Reply::error(400, "Unsupported parameter: 'temperature'");
    let server = Server::start([refusal(), refusal()]).parameters_may_change();
    let run = Cli::against(&server).prompt("x").run();
    run.code(1).stderr_has("temperature");
}

#[test]
fn c3_a_rate_limit_that_speaks_of_tokens_is_no_full_context() {
    let server = Server::start([Reply::error(429, "Too many tokens, please wait")]);
    let run = Cli::against(&server).prompt("x").start();
    interrupt_in_back_off(run, "429");
}

#[test]
fn c3_a_full_context_is_final_without_anyone_to_ask() {
    let body = json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error",
        "message": "This model's maximum context length is 4096 tokens."}});
    let server = Server::start([Reply::error_json(400, &body)]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .code(1)
        .stderr_has("maximum context length is 4096");
}
