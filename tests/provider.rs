//! Servers that deviate from the dialect, each variant from its bytes to what the person and the
//! model get (SPEC C3, C6, C7, C14, B8).

use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Gate, Reply, Request, Server};

/// An answer that must come out as `ok`.
#[track_caller]
fn answers_ok(reply: Reply) -> Output {
    let server = Server::start([reply]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("ok\n[test-model: ");
    run
}

/// A reply whose calls are run; gives the request that carries their results.
#[track_caller]
fn calls_of(reply: Reply) -> Request {
    let server = Server::start([reply, Reply::answer("done")]);
    Cli::against(&server).prompt("x").run().success();
    server.last_request()
}

/// The results of the calls of a stream with these deltas of `tool_calls`.
#[track_caller]
fn results_of(deltas: &[Value]) -> Vec<String> {
    let stream = deltas.iter().fold(Reply::stream(), |reply, delta| {
        reply.delta(&json!({ "tool_calls": delta }))
    });
    calls_of(stream.finish("tool_calls").done()).contents("tool")
}

const HI: &str = "hi\n\n\nexit: 0";
const HO: &str = "ho\n\n\nexit: 0";
const SAY_HI: &str = r#"{"command":"echo hi"}"#;
const SAY_HO: &str = r#"{"command":"echo ho"}"#;

// Framing

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

// Tool calls

#[test]
fn c6_arguments_come_in_pieces_of_any_size() {
    let pieces = SAY_HI.chars().fold(
        Reply::stream().tool_call(0, "a", "shell_exec", ""),
        |reply, piece| reply.arguments(0, &piece.to_string()),
    );
    let request = calls_of(pieces.finish("tool_calls").done());
    assert_eq!(request.result(), HI);
    let call = &request.messages()[2]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], SAY_HI);
}

#[test]
fn c6_two_calls_with_index_0_and_different_ids_are_two() {
    let results = results_of(&[
        json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": SAY_HI}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "shell_exec", "arguments": SAY_HO}}]),
    ]);
    assert_eq!(results, [HI, HO]);
}

#[test]
fn c6_parallel_calls_may_be_interleaved() {
    let results = results_of(&[
        json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": ""}},
               {"index": 1, "id": "b", "function": {"name": "shell_exec", "arguments": ""}}]),
        json!([{"index": 1, "function": {"arguments": "{\"command\":"}},
               {"index": 0, "function": {"arguments": "{\"command\":"}}]),
        json!([{"index": 0, "function": {"arguments": "\"echo hi\"}"}}]),
        json!([{"index": 1, "function": {"arguments": "\"echo ho\"}"}}]),
    ]);
    assert_eq!(results, [HI, HO]);
}

#[test]
fn c6_every_way_to_write_one_call_is_understood() {
    let begun = json!({"index": 0, "id": "a", "type": "function",
        "function": {"name": "shell_exec", "arguments": "{\"command\":"}});
    let rest = "\"echo hi\"}";
    for (variant, deltas) in [
        (
            "no index, no type",
            vec![
                json!([{"id": "gS1MJi0kT", "function": {"name": "shell_exec", "arguments": SAY_HI}}]),
            ],
        ),
        (
            "head at index 0, tail at index 1",
            vec![
                json!([begun]),
                json!([{"index": 1, "function": {"arguments": rest}}]),
            ],
        ),
        (
            "first index is 3",
            vec![
                json!([{"index": 3, "id": "a", "function": {"name": "shell_exec", "arguments": SAY_HI}}]),
            ],
        ),
        (
            "an empty id in the continuation",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": "", "type": "function", "function": {"arguments": rest}}]),
            ],
        ),
        (
            "a blank id in the continuation",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": " ", "function": {"arguments": rest}}]),
            ],
        ),
        (
            "nulls in the continuation",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": null, "function": {"name": null, "arguments": rest}}]),
            ],
        ),
        (
            "the name in every chunk",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": rest}}]),
            ],
        ),
        (
            "a name in two pieces",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "shell_"}}]),
                json!([{"index": 0, "function": {"name": "exec", "arguments": SAY_HI}}]),
            ],
        ),
        (
            "a new id in every chunk",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": "b", "function": {"arguments": rest}}]),
            ],
        ),
        (
            "arguments as an object",
            vec![json!([{"index": 0, "id": "a", "function":
                {"name": "shell_exec", "arguments": {"command": "echo hi"}}}])],
        ),
        (
            "arguments before name and id",
            vec![
                json!([{"index": 0, "function": {"arguments": "{\"command\":"}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": rest}}]),
            ],
        ),
        (
            "the whole arguments once more at the end",
            vec![
                json!([begun]),
                json!([{"index": 0, "function": {"arguments": rest}}]),
                json!([{"index": 0, "function": {"arguments": SAY_HI}}]),
            ],
        ),
        (
            "an empty call beside it",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": SAY_HI}}]),
                json!([{"index": 1, "id": "", "function": {"name": "", "arguments": ""}}]),
            ],
        ),
        (
            "a placeholder for the arguments",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": "{}"}}]),
                json!([{"index": 0, "function": {"arguments": SAY_HI}}]),
            ],
        ),
        (
            "an end of name of another dialect",
            vec![json!([{"index": 0, "id": "a", "function":
                {"name": "shell_exec<|channel|>commentary", "arguments": SAY_HI}}])],
        ),
    ] {
        assert_eq!(results_of(&deltas), [HI], "{variant}");
    }
}

#[test]
fn c6_a_call_in_the_old_form_is_one() {
    let stream = Reply::stream()
        .delta(&json!({"function_call": {"name": "shell_exec", "arguments": "{\"command\":"}}))
        .delta(&json!({"function_call": {"arguments": "\"echo hi\"}"}}));
    assert_eq!(calls_of(stream.finish("function_call").done()).result(), HI);
}

#[test]
fn c6_a_call_in_both_forms_is_one() {
    let function = json!({"name": "shell_exec", "arguments": SAY_HI});
    let stream = Reply::stream().delta(&json!({
        "function_call": function,
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}],
    }));
    assert_eq!(calls_of(stream.finish("tool_calls").done()).result(), HI);
}

#[test]
fn c6_calls_in_a_second_choice_are_found() {
    let stream = Reply::stream()
        .text("Looking.")
        .choices(
            &json!([{"index": 1, "finish_reason": "tool_calls", "delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "shell_exec", "arguments": SAY_HI}}]}}]),
        )
        .finish("stop")
        .done();
    assert_eq!(calls_of(stream).result(), HI);
}

#[test]
fn c6_calls_of_a_whole_answer_are_run() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "shell_exec", "arguments": SAY_HI}},
        {"id": "b", "type": "function", "function": {"name": "shell_exec", "arguments": SAY_HO}},
    ]});
    let done = json!({"role": "assistant", "content": "done"});
    let server = Server::start([
        Reply::completion(&message, "tool_calls"),
        Reply::completion(&done, "stop"),
    ]);
    Cli::against(&server)
        .config("stream=false")
        .prompt("x")
        .run()
        .success();
    assert_eq!(server.last_request().contents("tool"), [HI, HO]);
}

#[test]
fn c8_a_call_without_arguments_has_empty_ones() {
    for arguments in [json!(""), json!(null), json!("{}"), json!("  ")] {
        let results = results_of(&[json!([{"index": 0, "id": "a", "function":
            {"name": "shell_exec", "arguments": arguments}}])]);
        assert!(results[0].contains("command"), "{arguments}: {results:?}");
    }
}

#[test]
fn c10_a_finish_for_calls_without_any_call_is_an_empty_answer() {
    let server = Server::start([
        Reply::stream().finish("tool_calls").done(),
        Reply::answer("ok"),
    ]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has("ok\n");
}

// Errors

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

// Usage

#[test]
fn c14_usage_is_found_wherever_it_lives() {
    for (usage, expected) in [
        (
            json!({"prompt_tokens": 100, "completion_tokens": 5,
                "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}),
            "100 prompt (60 cached, 40 uncached) + 5 completion",
        ),
        (
            json!({"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 30}),
            "100 prompt (30 cached, 70 uncached) + 5 completion",
        ),
        (
            json!({"prompt_tokens": 100, "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": null}}),
            "100 prompt + 5 completion",
        ),
        (
            json!({"prompt_tokens": 100.0, "completion_tokens": 5, "prompt_tokens_details": null}),
            "100 prompt + 5 completion",
        ),
    ] {
        let run = answers_ok(
            Reply::stream()
                .text("ok")
                .finish("stop")
                .usage_json(&usage)
                .done(),
        );
        run.stdout_has(&format!("[test-model: {expected} | "));
    }
}

#[test]
fn c14_usage_inside_a_choice_or_beside_it_is_found() {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 5});
    for chunk in [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "x_groq": {"usage": usage}}),
    ] {
        let run = answers_ok(Reply::stream().text("ok").data(&chunk).done());
        run.stdout_has("[test-model: 100 prompt + 5 completion | ");
    }
}

#[test]
fn c14_usage_of_every_chunk_counts_once() {
    let chunk = |text: &str, completion: u64| {
        json!({"choices": [{"index": 0, "delta": {"content": text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": completion}})
    };
    let run = answers_ok(
        Reply::stream()
            .data(&chunk("o", 1))
            .data(&chunk("k", 2))
            .finish("stop")
            .done(),
    );
    run.stdout_has("[test-model: 100 prompt + 2 completion | ");
}

#[test]
fn c14_usage_without_a_sentinel_is_waited_for() {
    let gate = Gate::new();
    let late = Reply::stream()
        .text("ok")
        .finish("stop")
        .hold(&gate)
        .usage(100, 5);
    let server = Server::start([late]);
    let run = Cli::against(&server).prompt("x").start();
    gate.wait();
    run.wait_for_stdout("ok");
    gate.open();
    run.finish()
        .success()
        .stdout_has("[test-model: 100 prompt + 5 completion | ");
}

// B8: the context window

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
