//! Tool calls in all the ways servers write them (SPEC C6, C8, C10).

use serde_json::json;

use super::{HI, HO, SAY_HI, SAY_HO, calls_of, results_of};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

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
fn c6_one_call_is_one_however_its_index_and_id_are_written() {
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
            "a new id in every chunk",
            vec![
                json!([begun]),
                json!([{"index": 0, "id": "b", "function": {"arguments": rest}}]),
            ],
        ),
    ] {
        assert_eq!(results_of(&deltas), [HI], "{variant}");
    }
}

#[test]
fn c6_one_call_is_one_however_its_name_and_arguments_are_written() {
    let begun = json!({"index": 0, "id": "a", "type": "function",
        "function": {"name": "shell_exec", "arguments": "{\"command\":"}});
    let rest = "\"echo hi\"}";
    for (variant, deltas) in [
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
