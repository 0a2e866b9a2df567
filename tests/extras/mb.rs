//! `MicroBantam` (SPEC H2), against the scripted server where it promises the same as bantam.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::example;
use crate::common::cli::Cli;
use crate::common::reply::Reply;
use crate::common::server::Server;

/// Whether there is a program to test; `cargo test` builds it, parts of it may not.
fn is_built() -> bool {
    example("mb").is_some()
}

/// A run of `mb` against the server.
fn mb(server: &Server) -> Cli {
    Cli::against(server).program(example("mb").unwrap())
}

fn message(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(name: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}},
    ]})
}

fn says(text: &str) -> Reply {
    Reply::completion(&message(text), "stop")
}

fn asks_for(name: &str, arguments: &Value) -> Reply {
    Reply::completion(&calls(name, &arguments.to_string()), "tool_calls")
}

fn saved(home: &Path, id: &str) -> Vec<Value> {
    let path = home.join(format!(".bantam/sessions/{id}.json"));
    let text = fs::read_to_string(path).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    value.as_array().unwrap().clone()
}

#[test]
fn h2_it_has_at_most_150_lines_of_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("extras/mb.rs");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(code.count() <= 150);
}

#[test]
fn h2_a_prompt_file_runs_both_tools_to_an_answer() {
    if !is_built() {
        return;
    }
    let server = Server::start([
        asks_for(
            "write_file",
            &json!({"path": "a/b.txt", "content": "one\ntwo\n"}),
        ),
        asks_for(
            "write_file",
            &json!({"path": "a/b.txt", "content": "2", "offset": 4, "del_bytes": 3}),
        ),
        asks_for(
            "shell_exec",
            &json!({"command": "cat a/b.txt; echo oops >&2; exit 3"}),
        ),
        says("All *done*."),
    ]);
    let mb = mb(&server);
    let run = mb.prompt("Do it.\n").run();
    run.success()
        .file("a/b.txt", "one\n2\n")
        .stdout_has("[tool call: write_file(")
        .stdout_has("[tool result: shell_exec]\none\n2\noops\n\n\nexit: 3\n")
        .stdout_has("All *done*.\n")
        .stderr_has("...requesting...\n")
        .lacks("\u{1b}");
    let first = server.request(0);
    assert_eq!(first.contents("user"), ["Do it."]);
    assert!(first.contents("system")[0].starts_with("You are Bantam"));
    assert_eq!(
        first.header("user-agent"),
        Some("Mozilla/5.0 (compatible; Bantam/1.0)")
    );
    assert_ne!(first.json()["stream"], true);
    assert_eq!(
        server.request(3).contents("tool")[2],
        "one\n2\noops\n\n\nexit: 3"
    );
}

#[test]
fn h2_arguments_are_checked_and_results_sanitised() {
    if !is_built() {
        return;
    }
    let server = Server::start([
        Reply::completion(&calls("shell_exec", "{\"command\": "), "tool_calls"),
        Reply::completion(&calls("shell_exec", "{}"), "tool_calls"),
        Reply::completion(&calls("unheard_of", "{}"), "tool_calls"),
        asks_for(
            "shell_exec",
            &json!({"command": "printf 'a\\302\\240\\342\\200\\213b\\033[31mc'"}),
        ),
        asks_for(
            "shell_exec",
            &json!({"command": "printf %s 'x\u{200b}\u{a0}y'"}),
        ),
        says("Well."),
    ]);
    let mb = mb(&server);
    mb.prompt("Go.").run().success().lacks("\u{1b}");
    let results = server.request(5).contents("tool");
    assert!(results[0].contains("JSON"), "{results:?}");
    assert!(results[1].contains("command"), "{results:?}");
    assert!(results[2].contains("unheard_of"), "{results:?}");
    assert_eq!(results[3..], ["abc\n\nexit: 0", "xy\n\nexit: 0"]);
}

#[test]
fn h2_reasoning_stands_between_its_markers() {
    if !is_built() {
        return;
    }
    let mut reply = message("So be it.");
    reply["reasoning_content"] = json!("Hm.");
    let server = Server::start([Reply::completion(&reply, "stop")]);
    let mb = mb(&server);
    let run = mb.prompt("Think.").run();
    run.stdout_has("--- reasoning start ---\nHm.\n--- reasoning end ---\n");
}

#[test]
fn h2_the_key_comes_from_the_environment_unless_the_file_has_one() {
    if !is_built() {
        return;
    }
    for (line, bearer) in [
        ("", Some("Bearer from-env")),
        ("api_key=from-file", Some("Bearer from-file")),
        ("api_key=", None),
    ] {
        let server = Server::start([says("Hi.")]);
        let mb = mb(&server);
        mb.config(line)
            .env("OPENAI_API_KEY", "from-env")
            .prompt("Hi")
            .run()
            .success();
        assert_eq!(server.request(0).header("authorization"), bearer);
    }
}

#[test]
fn h2_a_refused_empty_assistant_message_is_taken_out() {
    if !is_built() {
        return;
    }
    let refusal = "Invalid assistant message: content or tool_calls must be set";
    let server = Server::start([Reply::error(400, refusal), says("Better.")]).history_may_change();
    let mb = mb(&server);
    let session = json!([
        {"role": "system", "content": "Old."},
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Two."},
    ]);
    let run = mb
        .home_file(".bantam/sessions/old.json", session.to_string())
        .lines(["/load old", "Three."])
        .run();
    run.success().stdout_has("Better.");
    assert_eq!(server.request(0).contents("assistant"), ["Two."]);
    assert_eq!(server.request(1).contents("assistant"), [""; 0]);
    assert_eq!(server.request(1).contents("user"), ["One.\n\nThree."]);
}

#[test]
fn h2_a_failed_request_ends_the_run_without_another_try() {
    if !is_built() {
        return;
    }
    let server = Server::start([Reply::error(503, "all busy")]);
    let mb = mb(&server);
    mb.prompt("Hi")
        .run()
        .code(1)
        .stderr_has("error: ")
        .stderr_has("all busy");
}

#[test]
fn h2_sessions_are_saved_listed_and_loaded() {
    if !is_built() {
        return;
    }
    let server = Server::start([says("Two."), says("Four."), says("Six.")]).history_may_change();
    let mb = mb(&server);
    let run = mb
        .lines([
            "One.", "/save a", "/save a", "Three.", "/clear", "/load a", "Five.", "/list",
            "/load b",
        ])
        .run();
    run.success()
        .stdout_has("a\na-1\nautosave\n")
        .stderr_has("error: ");
    assert_eq!(server.request(1).contents("user"), ["One.", "Three."]);
    assert_eq!(server.request(2).contents("user"), ["One.", "Five."]);
    for id in ["a", "a-1"] {
        assert_eq!(saved(run.home(), id).len(), 3, "{id}");
    }
    let last = saved(run.home(), "autosave");
    assert_eq!(last.len(), 5);
    assert_eq!(last[4]["content"], "Six.");
}

#[test]
fn h2_ids_of_the_same_second_are_told_apart() {
    if !is_built() {
        return;
    }
    let server = Server::start([]);
    let mb = mb(&server);
    let run = mb
        .lines(["/save", "/save", "/save", "/save", "/quit"])
        .run();
    let files = fs::read_dir(run.home().join(".bantam/sessions")).unwrap();
    let names: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn h2_a_session_id_is_no_path() {
    if !is_built() {
        return;
    }
    let server = Server::start([]);
    let mb = mb(&server);
    let run = mb
        .lines(["/save ../../outside", "/save ..", "/load ../../model"])
        .run();
    assert!(!run.home().join("outside.json").exists());
    run.success().stderr_has("error: ");
}

#[test]
fn h2_settings_are_shown_and_changed_at_once() {
    if !is_built() {
        return;
    }
    let server = Server::start([says("Hi.")]);
    let mb = mb(&server);
    let run = mb
        .lines([
            "/cfg model",
            "/cfg model other",
            "/cfg top_p 0.5",
            "Hi",
            "/help",
            "/cfg timeout x",
        ])
        .run();
    run.success()
        .stdout_has("model=test-model\n")
        .stdout_has("/load ID")
        .stderr_has("timeout");
    let request = server.request(0).json();
    assert_eq!(request["model"], "other");
    assert_eq!(request["top_p"], 0.5);
    let file = fs::read_to_string(run.directory().join(".bantam.cfg")).unwrap();
    assert!(
        file.contains("model=other") && file.contains("endpoint="),
        "{file}"
    );
}
