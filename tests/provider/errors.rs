//! Errors in all the shapes servers give them (SPEC C3).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c3_an_error_inside_a_stream_is_an_error() {
    for error in [
        Reply::stream().data(&json!({"error": {"code": 400, "message": "the-reason"}})),
        Reply::stream()
            .data(&json!({"error": {"code": 400, "message": "the-reason"}, "choices": []})),
        Reply::stream()
            .text("half")
            .data(&json!({"error": {"code": 400, "message": "the-reason"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]})),
        Reply::stream().raw("error: {\"code\":400,\"message\":\"the-reason\"}\n\n"),
        Reply::stream().raw("{\"error\":{\"code\":400,\"message\":\"the-reason\"}}"),
        Reply::json(&json!({"error": {"code": 400, "message": "the-reason"}})),
        Reply::json(&json!({"code": 400, "message": "the-reason"})),
        Reply::json(
            &json!({"base_resp": {"status_code": 1008, "status_msg": "the-reason"},
            "choices": null}),
        ),
        Reply::json(
            &json!({"success": false, "error": {"code": "c", "status": 400,
            "message": "the-reason"}}),
        ),
    ] {
        let server = Server::start([error]);
        let run = Cli::against(&server).prompt("x").run();
        run.code(1).stderr_has("the-reason");
    }
}

#[test]
fn c3_a_passing_error_inside_a_stream_is_asked_for_again() {
    for error in [
        Reply::stream().data(&json!({"error": {"code": 502, "message": "the-reason"}})),
        Reply::stream().data(&json!({"error": {"code": 429, "message": "the-reason"}})),
        Reply::stream().data(&json!({"error": "overloaded: the-reason"})),
        Reply::json(&json!({"error": {"code": 503, "message": "the-reason"}})),
    ] {
        let server = Server::start([error]);
        let run = Cli::against(&server).prompt("x").start();
        run.wait_for_stderr("the-reason");
        run.interrupt();
        run.finish().code(130);
    }
}

#[test]
fn c3_a_web_page_is_no_answer() {
    let page = "<html><head><title>Welcome to nginx!</title></head><body>hello</body></html>";
    let server = Server::start([Reply::body(200, "text/html", page)]).replies_may_be_left();
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stderr("Welcome to nginx!");
    assert!(!run.stdout().contains("hello"));
    assert!(!run.stderr().contains("<html>"), "{}", run.stderr());
}

#[test]
fn c3_the_servers_message_is_shown_whatever_its_shape() {
    for body in [
        json!({"error": {"message": "the-reason", "type": "t", "code": "c", "param": null}}),
        json!({"error": "the-reason"}),
        json!([{"error": {"code": 400, "message": "the-reason", "status": "INVALID_ARGUMENT"}}]),
        json!({"code": "Client specified an invalid argument", "error": "the-reason"}),
        json!({"object": "error", "message": "the-reason", "type": "t", "code": "3230"}),
        json!({"object": "error", "message": {"detail": [
            {"type": "extra_forbidden", "loc": ["body", "x"], "msg": "the-reason"}]}}),
        json!({"detail": [{"loc": ["body", "x"], "msg": "the-reason"}]}),
        json!({"detail": "the-reason"}),
        json!({"object": "error", "message": "the-reason", "type": "BadRequestError", "code": 400}),
        json!({"type": "error", "error": {"type": "t", "message": "the-reason", "http_code": "400"}}),
        json!({"error": {"code": 400, "message": "Provider returned error",
            "metadata": {"raw": "{\"error\":{\"message\":\"the-reason\"}}", "provider_name": "P"}}}),
        json!({"error_code": "BAD_REQUEST", "message": "the-reason"}),
        json!({"code": "InvalidParameter", "message": "the-reason", "request_id": "r"}),
    ] {
        let server = Server::start([Reply::error_json(400, &body)]);
        let run = Cli::against(&server).prompt("x").run();
        run.code(1).stderr_has("the-reason");
    }
    let page = "<html><head><title>the-reason</title></head><body>long</body></html>";
    let server = Server::start([Reply::body(403, "text/html", page)]);
    let run = Cli::against(&server).prompt("x").run();
    run.code(1).stderr_has("the-reason").stderr_lacks("<html>");
}

#[test]
fn c3_an_error_without_a_body_has_its_status() {
    let server = Server::start([Reply::body(403, "text/plain", "")]);
    let run = Cli::against(&server).prompt("x").run();
    run.code(1).stderr_has("403");
}

#[test]
fn c3_an_error_of_many_kilobytes_is_shown_in_short() {
    let server = Server::start([Reply::error(403, &"word ".repeat(20_000))]);
    let run = Cli::against(&server).prompt("x").run();
    run.code(1).stderr_has("word");
    assert!(run.stderr.len() < 5_000, "{} bytes", run.stderr.len());
}
