//! Token figures wherever they live (SPEC C14).

use serde_json::json;

use super::answers_ok;
use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

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
            json!({"completion_tokens": 5,
                "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}),
            "100 prompt (60 cached, 40 uncached) + 5 completion",
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 5, "cache_read_input_tokens": 90}),
            "100 prompt (90 cached, 10 uncached) + 5 completion",
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
