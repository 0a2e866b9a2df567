//! Answers in odd frames and odd shapes (SPEC C3, C5, C6).

use serde_json::json;

use super::answers_ok;
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn c6_comments_crlf_and_odd_lines_are_no_part_of_an_answer() {
    answers_ok(
        Reply::stream()
            .comment("OPENROUTER PROCESSING")
            .text("ok")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .raw(":\n\n")
            .text("ok")
            .raw(":\n")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .crlf()
            .comment("x")
            .text("ok")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .event(": PROCESSING")
            .text("ok")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .raw("event: ping\ndata: {}\n\n")
            .text("ok")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .raw("id: 1\nretry: 5\n\n")
            .text("ok")
            .finish("stop")
            .done(),
    );
    answers_ok(
        Reply::stream()
            .raw("\u{feff}")
            .text("ok")
            .finish("stop")
            .done(),
    );
}

#[test]
fn c6_a_colon_needs_no_space_after_it() {
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}"#;
    answers_ok(Reply::stream().raw(format!("data:{chunk}\n\ndata:[DONE]\n\n")));
}

#[test]
fn c6_data_over_several_lines_is_one_event() {
    answers_ok(
        Reply::stream()
            .raw("data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"ok\"}}]}\n\n")
            .finish("stop")
            .done(),
    );
}

#[test]
fn c3_one_terminal_sign_is_enough() {
    answers_ok(Reply::stream().text("ok").finish("stop"));
    answers_ok(Reply::stream().text("ok").done());
    answers_ok(
        Reply::stream()
            .text("ok")
            .finish("stop")
            .raw("data: [DONE]"),
    );
}

#[test]
fn c3_a_connection_that_stays_open_after_the_end_does_not_hold_the_run() {
    answers_ok(Reply::stream().text("ok").finish("stop").done().stall());
    answers_ok(Reply::stream().text("ok").finish("stop").stall());
}

#[test]
fn c6_bytes_that_come_one_by_one_are_the_same_answer() {
    let text = "ok: ümläut, 日本語, \u{1F413}, e\u{301}";
    let server = Server::start([Reply::answer(text).byte_by_byte()]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has(text);
}

#[test]
fn c6_a_chunk_of_a_megabyte_is_one_line() {
    let content = "0123456789abcdef".repeat(65_536);
    let arguments = json!({"path": "big", "content": content});
    let server = Server::start([
        Reply::call("a", "write_file", &arguments),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server).arg("-q").prompt("x").run();
    run.success();
    let written = std::fs::metadata(run.directory().join("big")).unwrap();
    assert_eq!(written.len(), 1 << 20);
}

#[test]
fn c6_chunks_with_nothing_in_them_are_skipped() {
    answers_ok(
        Reply::stream()
            .data(&json!({"choices": [], "prompt_filter_results": [], "id": ""}))
            .data(&json!({"choices": null}))
            .data(&json!({"choices": [{"index": 0, "delta": null}]}))
            .data(&json!({"choices": [{"index": 0}]}))
            .delta(&json!({"role": "assistant", "content": null, "tool_calls": null}))
            .choices(&json!([{"index": 0, "delta": {"content": "ok"}, "finish_reason": ""}]))
            .choices(&json!([{"index": 0, "finish_reason": "stop"}]))
            .done(),
    );
}

#[test]
fn c6_content_finish_and_usage_may_come_in_one_chunk() {
    let run = answers_ok(
        Reply::stream()
            .data(&json!({
                "choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            }))
            .done(),
    );
    run.stdout_has("[test-model: 7 prompt + 3 completion");
}

#[test]
fn c6_a_whole_answer_in_place_of_a_stream_is_taken() {
    let answer = || Reply::completion(&json!({"role": "assistant", "content": "ok"}), "stop");
    answers_ok(answer());
    answers_ok(answer().content_type("text/event-stream"));
    let padded = "\n\n  \n{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}";
    answers_ok(Reply::body(200, "application/json", padded));
}

#[test]
fn c6_a_whole_answer_in_a_stream_chunk_is_taken() {
    answers_ok(
        Reply::stream()
            .choices(
                &json!([{"index": 0, "message": {"role": "assistant", "content": "ok"},
                "finish_reason": "stop"}]),
            )
            .done(),
    );
}

#[test]
fn c6_a_stream_in_place_of_a_whole_answer_is_taken() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .config("stream=false")
        .prompt("x")
        .run()
        .success()
        .stdout_has("ok\n[test-model: ");
}

#[test]
fn c6_content_in_parts_is_text_and_thoughts() {
    let run = answers_ok(
        Reply::stream()
            .delta(&json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}))
            .delta(&json!({"content": [{"type": "text", "text": "ok"}]}))
            .finish("stop")
            .done(),
    );
    run.stdout_has("--- reasoning start ---\nhm\n--- reasoning end ---\nok\n");
}

#[test]
fn c5_the_same_reasoning_under_two_names_is_shown_once() {
    let both = |text: &str| json!({"reasoning": text, "reasoning_content": text});
    let run = answers_ok(
        Reply::stream()
            .delta(&both("one "))
            .delta(&both("two"))
            .text("ok")
            .finish("stop")
            .done(),
    );
    run.stdout_has("--- reasoning start ---\none two\n--- reasoning end ---\n");
}

#[test]
fn c5_thoughts_in_a_think_tag_are_reasoning() {
    let server = Server::start([
        Reply::stream()
            .text("<thi")
            .text("nk>hm")
            .text("</think>")
            .text("ok")
            .finish("stop")
            .done(),
        Reply::answer("two"),
    ]);
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.success()
        .stdout_has("--- reasoning start ---\nhm\n--- reasoning end ---\nok\n");
    // MiniMax wants it back where it was.
    assert_eq!(
        server.request(1).contents("assistant"),
        ["<think>hm</think>ok"]
    );
}
