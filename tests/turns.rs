//! One turn from the prompt to the usage line: requests, traces, results, interrupts (SPEC C).

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::cli::{Cli, Running, wait_for_end_of};
use crate::common::server::{Gate, Reply, Server};

/// A call of a tool with these arguments, then the answer `done`; gives what the model was told.
#[track_caller]
fn result_of(name: &str, arguments: &str) -> String {
    let call = Reply::stream()
        .tool_call(0, "a", name, arguments)
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::answer("done")]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has("done");
    server.last_request().result()
}

/// The messages of the only session file below a home.
#[track_caller]
fn saved_messages(home: &Path) -> Vec<Value> {
    let directory = home.join(".bantam/sessions");
    let files: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let session: Value = serde_json::from_slice(&fs::read(&files[0]).unwrap()).unwrap();
    session["messages"].as_array().unwrap().clone()
}

// C1, C2: the request

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

// C5: what is shown

#[test]
fn c5_text_is_shown_as_it_comes() {
    let (first, second) = (Gate::new(), Gate::new());
    let server = Server::start([Reply::stream()
        .text("one ")
        .hold(&first)
        .text("two ")
        .hold(&second)
        .text("three")
        .finish("stop")
        .done()]);
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stdout("one ");
    first.open();
    run.wait_for_stdout("one two ");
    second.open();
    run.finish().success().stdout_has("one two three\n[");
}

#[test]
fn c5_reasoning_stands_between_its_marks_under_either_name() {
    let expected = "--- reasoning start ---\nLet me\nthink.\n--- reasoning end ---\nDone.\n[";
    for key in ["reasoning_content", "reasoning"] {
        let server = Server::start([Reply::stream()
            .delta(&json!({key: "Let me\n", "content": null}))
            .delta(&json!({key: "think."}))
            .text("Done.")
            .finish("stop")
            .done()]);
        let run = Cli::against(&server).prompt("x").run();
        run.success();
        assert!(run.stdout.starts_with(expected), "{key}\n{run}");
    }
}

#[test]
fn c5_without_streaming_the_same_is_shown() {
    let expected = "--- reasoning start ---\nLet me\nthink.\n--- reasoning end ---\nDone.\n[";
    for key in ["reasoning_content", "reasoning"] {
        let message = json!({"role": "assistant", "content": "Done.", key: "Let me\nthink."});
        let server = Server::start([Reply::completion(&message, "stop")]);
        let run = Cli::against(&server)
            .config("stream=false")
            .prompt("x")
            .run();
        run.success();
        assert!(run.stdout.starts_with(expected), "{key}\n{run}");
    }
}

#[test]
fn c5_markdown_goes_through_a_pipe_untouched() {
    let document = "# A *head*\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n- x &#27;[31m & <b>\n";
    let server = Server::start([Reply::answer(document)]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .success()
        .stdout_has(document);
}

// C6: what goes back

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

// C7, C8: calls

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

// C9: ends of the loop

#[test]
fn c9_the_last_requests_calls_are_still_run_and_answered() {
    let server = Server::start([Reply::shell("echo ran > proof"), Reply::answer("two")]);
    let run = Cli::against(&server)
        .config("max_al_iterations=1")
        .lines(["first", "second"])
        .run();
    run.file("proof", "ran\n").stderr_has("max_al_iterations");
    let messages = server.request(1).messages();
    let roles: Vec<_> = messages
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
}

#[test]
fn c9_an_answer_cut_by_length_stays_and_its_calls_are_not_run() {
    let cut = Reply::stream()
        .text("It begins well")
        .tool_call(0, "a", "shell_exec", r#"{"command":"echo ran > proof"#)
        .finish("length")
        .usage(10, 5)
        .done();
    let server = Server::start([cut, Reply::answer("two")]);
    let run = Cli::against(&server).lines(["first", "second"]).run();
    run.stdout_has("It begins well")
        .stderr_has("length")
        .no_file("proof");
    let answers = server.request(1).contents("assistant");
    assert!(answers[0].starts_with("It begins well"), "{answers:?}");
}

#[test]
fn c9_an_answer_cut_by_a_content_filter_stays_and_is_told() {
    let cut = Reply::stream()
        .text("It begins well")
        .finish("content_filter")
        .done();
    let server = Server::start([cut]);
    Cli::against(&server)
        .prompt("x")
        .run()
        .stdout_has("It begins well")
        .stderr_has("filter");
}

#[test]
fn c9_complete_calls_are_run_whatever_the_finish_reason_says() {
    for reason in ["stop", "function_call", "eos", "tool_use"] {
        let call = Reply::stream()
            .tool_call(0, "a", "shell_exec", r#"{"command":"echo hi"}"#)
            .finish(reason)
            .done();
        let server = Server::start([call, Reply::answer("ok")]);
        Cli::against(&server).prompt("x").run().success();
        assert_eq!(server.request(1).result(), "hi\n\n\nexit: 0", "{reason}");
    }
}

// C10: empty answers

#[test]
fn c10_an_empty_answer_is_asked_for_again_and_never_kept() {
    let server = Server::start([
        Reply::stream().finish("stop").done(),
        Reply::stream()
            .reasoning("only thoughts")
            .finish("stop")
            .done(),
        Reply::answer("at last"),
    ]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("at last");
    for request in server.finish() {
        assert_eq!(request.messages().len(), 2);
    }
}

#[test]
fn c10_after_three_empty_answers_the_run_ends_with_a_notice() {
    let server = Server::start((0..3).map(|_| Reply::stream().finish("stop").done()));
    let run = Cli::against(&server).prompt("x").run();
    run.stderr_has("empty").stderr_lacks("panicked");
    assert_eq!(server.finish().len(), 3);
}

#[test]
fn c10_the_servers_complaint_about_an_empty_message_removes_the_last_answer_once() {
    let complaint = "Invalid assistant message: content or tool_calls must be set";
    let server = Server::start([
        Reply::shell("echo hi"),
        Reply::error(400, complaint),
        Reply::answer("ok"),
    ])
    .history_may_change();
    let run = Cli::against(&server).prompt("x").run();
    run.success().stdout_has("ok");
    assert!(run.stderr.lines().count() > 3, "the person is told\n{run}");
    let roles: Vec<_> = server
        .request(2)
        .messages()
        .iter()
        .map(|one| one["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user"]);
}

#[test]
fn c10_a_complaint_that_stays_ends_the_run() {
    let complaint = "Invalid assistant message: content or tool_calls must be set";
    let server = Server::start([
        Reply::shell("echo hi"),
        Reply::error(400, complaint),
        Reply::error(400, complaint),
    ])
    .history_may_change();
    Cli::against(&server)
        .prompt("x")
        .run()
        .code(1)
        .stderr_has("must be set");
}

// C11: interrupts

/// A run of one prompt that is in the middle of a shell command, and that command's process id.
#[track_caller]
fn in_a_command(server: &Server, command: &str) -> (Running, u32) {
    let run = Cli::against(server).prompt("x").start();
    run.wait_for_stdout(command);
    let pid = run.wait_for_file("pid");
    (run, pid.trim().parse().unwrap())
}

#[test]
fn c11_an_interrupt_before_the_first_byte_ends_with_130() {
    let server = Server::start([Reply::silence()]);
    let run = Cli::against(&server).prompt("x").start();
    server.wait_for_requests(1);
    run.interrupt();
    run.finish().code(130).stderr_has("interrupted");
}

#[test]
fn c11_an_interrupt_in_mid_stream_ends_with_130() {
    let server = Server::start([Reply::stream().text("half an ans").stall()]);
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stdout("half an ans");
    run.interrupt();
    run.finish()
        .code(130)
        .stdout_has("half an ans\n")
        .stderr_has("interrupted");
}

#[test]
fn c11_an_interrupt_while_a_json_answer_is_awaited_ends_with_130() {
    let gate = Gate::new();
    let half = Reply::body(200, "application/json", "{\"choices\":").hold(&gate);
    let server = Server::start([half.stall()]);
    let run = Cli::against(&server)
        .config("stream=false")
        .prompt("x")
        .start();
    gate.wait();
    run.interrupt();
    run.finish().code(130);
}

#[test]
fn c11_an_interrupt_in_a_back_off_ends_with_130() {
    let server = Server::start([Reply::error(503, "later").header("Retry-After", "100")]);
    let run = Cli::against(&server).prompt("x").start();
    run.wait_for_stderr("503");
    run.interrupt();
    run.finish().code(130);
}

#[test]
fn c11_an_interrupt_in_a_command_ends_it_and_its_children() {
    let command = "sleep 300 & echo $! > child; echo $$ > pid; wait";
    let server = Server::start([Reply::shell(command)]);
    let (run, pid) = in_a_command(&server, "sleep 300");
    let child: u32 = run.wait_for_file("child").trim().parse().unwrap();
    run.interrupt();
    let run = run.finish();
    run.code(130);
    wait_for_end_of(pid);
    wait_for_end_of(child);
}

#[test]
fn c11_an_interrupt_ends_a_command_that_ignores_everything_but_kill() {
    let command = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 1; done";
    let server = Server::start([Reply::shell(command)]);
    let (run, pid) = in_a_command(&server, "trap");
    run.interrupt();
    run.finish().code(130);
    wait_for_end_of(pid);
}

#[test]
fn c11_an_interrupt_in_a_command_of_the_person_ends_it() {
    let run = Cli::new()
        .prompt("!echo $$ > pid; sleep 300; echo never")
        .start();
    let pid = run.wait_for_file("pid").trim().parse().unwrap();
    run.interrupt();
    run.finish().code(130).stdout_lacks("never");
    wait_for_end_of(pid);
}

#[test]
fn c11_what_there_is_of_the_output_is_kept_with_a_note_and_the_turn_is_closed() {
    let server = Server::start([Reply::shell("echo one; echo $$ > pid; sleep 300")]);
    let run = Cli::against(&server).lines(["first"]).start();
    run.wait_for_file("pid");
    run.wait_for_stdout("one\n");
    run.interrupt();
    let run = run.finish();
    run.code(130);
    let messages = saved_messages(run.home());
    let roles: Vec<_> = messages
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
    let result = messages[3]["content"].as_str().unwrap();
    assert!(result.contains("one\n"), "{result}");
    assert!(result.contains("interrupted by the user"), "{result}");
    assert!(!messages[4]["content"].as_str().unwrap().is_empty());
}

#[test]
fn c11_calls_that_were_not_reached_get_a_result_too() {
    let server = Server::start([Reply::calls([
        ("a", "shell_exec", &json!({"command": "echo done-before"})),
        (
            "b",
            "shell_exec",
            &json!({"command": "echo $$ > pid; sleep 300"}),
        ),
        ("c", "shell_exec", &json!({"command": "echo ran > proof"})),
    ])]);
    let run = Cli::against(&server).lines(["first"]).start();
    run.wait_for_file("pid");
    run.interrupt();
    let run = run.finish();
    run.code(130).no_file("proof");
    let messages = saved_messages(run.home());
    let results: Vec<_> = messages
        .iter()
        .filter(|one| one["role"] == "tool")
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert_eq!(results[0], "done-before\n\n\nexit: 0");
    assert!(results[1].contains("interrupted by the user"));
    assert!(results[2].contains("interrupted by the user"));
}

#[test]
fn c11_an_answer_that_was_still_arriving_is_not_kept_but_completed_steps_are() {
    let server = Server::start([
        Reply::shell("echo step-one"),
        Reply::stream().text("half an ans").stall(),
    ]);
    let run = Cli::against(&server).lines(["first"]).start();
    run.wait_for_stdout("half an ans");
    run.interrupt();
    let run = run.finish();
    run.code(130);
    let saved = json!(saved_messages(run.home())).to_string();
    assert!(saved.contains("step-one"), "{saved}");
    assert!(!saved.contains("half an ans"), "{saved}");
}

#[test]
fn c11_sigterm_and_sighup_end_the_command_save_and_exit_with_their_numbers() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Server::start([Reply::shell("echo one; echo $$ > pid; sleep 300")]);
        let run = Cli::against(&server).lines(["first"]).start();
        let pid = run.wait_for_file("pid").trim().parse().unwrap();
        run.wait_for_stdout("one\n");
        run.signal(signal);
        let run = run.finish();
        run.code(code);
        wait_for_end_of(pid);
        let saved = json!(saved_messages(run.home())).to_string();
        assert!(saved.contains("first"), "{saved}");
    }
}

#[test]
fn c11_sigterm_ends_a_one_shot_run_in_mid_stream() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Server::start([Reply::stream().text("half").stall()]);
        let run = Cli::against(&server).prompt("x").start();
        run.wait_for_stdout("half");
        run.signal(signal);
        run.finish().code(code);
    }
}

// C12: what the model writes and reads

#[test]
fn c12_invisible_and_space_like_characters_of_arguments_are_dropped() {
    let command = "printf %s 'a\u{a0}b\u{200b}c\u{202e}d\u{e0041}e\u{2800}f\u{7}g\u{3000}h\r\ti'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert_eq!(result, "abcdefgh\ti\n\nexit: 0");
}

#[test]
fn c12_printable_text_of_arguments_stays() {
    let text = "äöü 日本語 é e\u{301} ☃ ✔\u{fe0f} \u{1F413} € ½ «»";
    let command = json!({ "command": format!("printf %s '{text}'") });
    let result = result_of("shell_exec", &command.to_string());
    assert_eq!(result, format!("{text}\n\nexit: 0"));
}

#[test]
fn c12_a_file_that_loses_characters_is_told_how_many() {
    let call = json!({"path": "f", "content": "a\u{a0}b\u{200d}c\r\n"});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().file("f", "abc\n");
    let result = server.request(1).result();
    assert!(result.contains('3'), "{result}");
}

#[test]
fn c12_without_sanitising_arguments_a_file_arrives_as_it_was_written() {
    let content = "👨\u{200d}👩\u{200d}👧 a\u{a0}b\r\nx\r\ny";
    let call = json!({"path": "f", "content": content});
    let server = Server::start([Reply::call("a", "write_file", &call), Reply::answer("ok")]);
    Cli::against(&server)
        .config("sanitize_args=false")
        .prompt("x")
        .run()
        .success()
        .file("f", content);
    assert!(!server.request(0).text().contains("sanitize_args"));
}

#[test]
fn c12_escape_sequences_of_results_go_as_a_whole_and_a_progress_bar_leaves_its_last_state() {
    let command = r"printf '\033[31mred\033[0m\n\033]0;title\007\033]8;;http://x\033\\link\n'
printf '\0331;2Hx\n'
for i in $(seq 100); do printf '\r%d%%' $i; done; echo
printf 'dos\r\nline\r\n'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert!(result.starts_with("red\nlink\n"), "{result:?}");
    assert!(
        result.ends_with("\n100%\ndos\nline\n\n\nexit: 0"),
        "{result:?}"
    );
}

#[test]
fn c12_a_nul_in_a_command_is_no_end_of_it() {
    let result = result_of("shell_exec", "{\"command\":\"echo a\\u0000b\"}");
    assert_eq!(result, "ab\n\n\nexit: 0");
}

#[test]
fn c12_results_have_no_control_characters_and_no_invalid_text() {
    let command = r"printf 'a\000b\001c\177d\302\205e\377f\355\240\200g'";
    let result = result_of("shell_exec", &json!({ "command": command }).to_string());
    assert!(result.starts_with("abcde"), "{result:?}");
    assert!(result.ends_with("g\n\nexit: 0"), "{result:?}");
    assert!(
        result.chars().all(|one| one == '\n' || !one.is_control()),
        "{result:?}"
    );
}

// C13: what reaches the terminal

#[test]
fn c13_nothing_the_model_says_reaches_the_terminal_as_a_control_character() {
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}2J\u{1b}[2J\u{1b}Pq\u{1b}\\\u{8}\u{202e}x\u{7f}";
    let call = Reply::stream()
        .reasoning(&format!("thinks {evil}"))
        .text(&format!("says {evil}"))
        .tool_call(
            0,
            "a",
            &format!("tool{evil}"),
            &json!({"command": evil}).to_string(),
        )
        .tool_call(
            1,
            "b",
            "shell_exec",
            &json!({"command": format!("echo '{evil}'")}).to_string(),
        )
        .finish("tool_calls")
        .done();
    let server = Server::start([call, Reply::error(400, &format!("server {evil}"))]);
    let run = Cli::against(&server)
        .args(["-c", &format!("model=m{evil}")])
        .prompt("x")
        .run();
    run.code(1).stdout_has("says").stderr_has("server");
    for stream in [&run.stdout, &run.stderr] {
        let bad = stream.chars().find(|one| {
            (one.is_control() && !matches!(one, '\n' | '\t'))
                || ('\u{202a}'..='\u{202e}').contains(one)
        });
        assert_eq!(bad, None, "{run}");
    }
}

#[test]
fn c13_a_control_sequence_split_over_chunks_is_dropped_all_the_same() {
    let server = Server::start([Reply::stream()
        .text("a\u{1b}")
        .text("]52;c;")
        .text("ZXZpbA==")
        .text("\u{7}b")
        .finish("stop")
        .done()]);
    let run = Cli::against(&server).prompt("x").run();
    run.success().lacks("\u{1b}").lacks("\u{7}");
}

#[test]
fn c13_nothing_a_command_prints_reaches_the_terminal_as_an_escape_sequence() {
    let evil = r"printf '\033]52;c;ZXZpbA==\007\033[2J\302\233x\033'; sleep 0; printf '[31mred\n'";
    let server = Server::start([Reply::shell(evil), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .lines([&format!("!{evil}")[..], "x"])
        .run();
    run.success().lacks("\u{1b}").lacks("\u{9b}").lacks("\u{7}");
}

// C14: the usage line

#[test]
fn c14_cached_tokens_are_shown_where_the_server_tells_them() {
    let usage = json!({
        "prompt_tokens": 1420, "completion_tokens": 85, "total_tokens": 1505,
        "prompt_tokens_details": {"cached_tokens": 1000},
    });
    let server = Server::start([Reply::stream()
        .text("ok")
        .finish("stop")
        .usage_json(&usage)
        .done()]);
    Cli::against(&server)
        .args(["-c", "model=openrouter/free"])
        .prompt("x")
        .run()
        .success()
        .stdout_is(
            "ok\n[openrouter/free: 1420 prompt (1000 cached, 420 uncached) + 85 completion \
             | context: 1420/200000 (0.7%)]\n",
        );
}

#[test]
fn c14_without_figures_of_the_server_they_are_estimated_and_marked() {
    let server = Server::start([Reply::stream().text("ok").finish("stop").done()]);
    let run = Cli::against(&server).prompt("x").run();
    run.success();
    let line = run.stdout.lines().last().unwrap();
    let body = server.request(0).body.len() as u64;
    let shown: u64 = line
        .strip_prefix("[test-model: ~")
        .and_then(|rest| rest.split(' ').next())
        .and_then(|figure| figure.parse().ok())
        .unwrap_or_else(|| panic!("{line}"));
    assert!(
        shown > body / 8 && shown <= body / 4 + 1,
        "{body} bytes: {line}"
    );
    assert!(
        line.contains("+ ~") && line.contains("context: ~"),
        "{line}"
    );
}

#[test]
fn c14_the_window_is_the_configured_one_where_the_server_tells_none() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .config("context_window=1000")
        .prompt("x")
        .run()
        .success()
        .stdout_has("context: 10/1000 (1.0%)]");
}
