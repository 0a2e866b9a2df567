//! Signals at every point of a turn (SPEC C11).

use rustix::process::Signal;
use serde_json::json;

use super::saved_messages;
use crate::common::cli::{Cli, Running};
use crate::common::process::wait_for_end_of;
use crate::common::server::{Gate, Reply, Server};

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

#[test]
fn c11_if_nothing_was_completed_the_prompt_is_taken_back() {
    let server = Server::start([
        Reply::answer("one"),
        Reply::stream().text("half an ans").stall(),
    ]);
    let run = Cli::against(&server)
        .lines(["first-prompt", "second-prompt"])
        .start();
    run.wait_for_stdout("half an ans");
    run.interrupt();
    let run = run.finish();
    run.code(130);
    let saved = json!(saved_messages(run.home())).to_string();
    assert!(saved.contains("first-prompt"), "{saved}");
    assert!(!saved.contains("second-prompt"), "{saved}");
}

#[test]
fn c11_sigterm_and_sighup_end_a_loop_that_waits_for_a_line() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Server::start([Reply::answer("one")]);
        let mut run = Cli::against(&server).stdin_open().start();
        run.write("first\n");
        run.wait_for_stdout("[test-model: ");
        run.signal(signal);
        run.finish().code(code);
    }
}
