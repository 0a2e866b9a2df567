//! Slash commands from the outside (SPEC E8, E10); sessions have tests of their own.

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Gate, Reply, Server};

const INSTRUCTION: &str = "You are now acting as a compaction engine. Summarize the preceding conversation concisely but completely";

// E10

#[test]
fn e10_help_lists_every_command() {
    let server = Server::start([]);
    let run = Cli::against(&server).lines(["/help"]).run();
    run.success();
    for word in [
        "/save",
        "/continue",
        "/cont",
        "/list",
        "/load",
        "/resume",
        "/compact",
        "/cfg",
        "/model",
        "/endpoint",
        "/models",
        "/help",
        "/clear",
        "/quit",
        "!CMD",
        "!!CMD",
    ] {
        run.stdout_has(word);
    }
}

#[test]
fn e10_a_mistyped_command_names_the_nearest_and_is_no_prompt() {
    let server = Server::start([]);
    let run = Cli::against(&server)
        .lines(["/lisst", "/hepl", "/clera now", "/quitt"])
        .run();
    for near in ["`/list`", "`/help`", "`/clear`", "`/quit`"] {
        run.stderr_has(near);
    }
    assert_eq!(run.stderr.matches("error: ").count(), 4, "{run}");
}

#[test]
fn e10_a_prompt_may_begin_with_a_slash() {
    let prompts = [
        "/etc/hosts has two lines",
        "/ is the root",
        "/2",
        "//",
        "/usr-local",
    ];
    let server = Server::start(prompts.map(Reply::answer));
    Cli::against(&server).lines(prompts).run().success();
    assert_eq!(server.last_request().contents("user"), prompts);
}

#[test]
fn e10_clear_starts_over_with_the_system_prompt() {
    let server = Server::start(["a1", "a2"].map(Reply::answer)).history_may_change();
    let run = Cli::against(&server).lines(["one", "/clear", "two"]).run();
    run.success();
    let messages = server.last_request().messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], server.request(0).messages()[0]);
    assert_eq!(messages[1], json!({"role": "user", "content": "two"}));
}

#[test]
fn e10_models_are_listed_with_the_configured_one_marked() {
    let server = Server::start([]).with_models(|| {
        Reply::models(&json!([{"id": "alpha"}, {"id": "test-model"}, {"id": "b\u{1b}[2Jc"}]))
    });
    let run = Cli::against(&server).lines(["/models"]).run();
    run.success().stdout_has("* test-model\n").lacks("\u{1b}");
    let marked = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("* "))
        .count();
    assert_eq!(marked, 1, "{run}");
    assert!(
        run.stdout.lines().any(|line| line.trim() == "alpha"),
        "{run}"
    );
}

#[test]
fn e10_an_endpoint_that_cannot_be_reached_leaves_the_conversation() {
    let server = Server::start(["a1", "a2"].map(Reply::answer));
    let endpoint = format!("/endpoint {}", server.url());
    let run = Cli::against(&server)
        .lines([
            "one",
            "/endpoint http://127.0.0.1:1/v1",
            "/models",
            &endpoint,
            "two",
        ])
        .run();
    run.stderr_has("error: ");
    assert_eq!(server.last_request().contents("user"), ["one", "two"]);
}

#[test]
fn d8_a_command_with_two_marks_is_shown_to_the_model() {
    let server = Server::start([Reply::answer("a1")]);
    let run = Cli::against(&server)
        .lines(["!echo for-me", "!!echo for-both; exit 3", "look"])
        .run();
    run.success().stdout_has("for-me").stdout_has("for-both");
    let said = server.last_request().contents("user").join("\n");
    assert!(
        said.contains("echo for-both; exit 3") && said.contains("\nfor-both"),
        "{said}"
    );
    assert!(
        said.contains("exit: 3") && !said.contains("for-me"),
        "{said}"
    );
}

// E8: compaction

#[test]
fn e8_the_conversation_becomes_its_summary() {
    let server = Server::start([
        Reply::shell("echo in-the-shell"),
        Reply::answer("a1"),
        Reply::answer("THE SUMMARY"),
        Reply::answer("a2"),
    ])
    .history_may_change();
    let run = Cli::against(&server)
        .lines(["one\twith tab", "/compact the ports", "two"])
        .run();
    run.success();
    let asked = server.request(2);
    let before = server.request(1).messages();
    assert_eq!(
        asked.messages()[..before.len()],
        before,
        "the prefix is the conversation's"
    );
    assert_eq!(asked.json()["tools"], server.request(1).json()["tools"]);
    let instruction = asked.last_message();
    assert_eq!(instruction["role"], "user");
    let text = instruction["content"].as_str().unwrap();
    assert!(
        text.starts_with(INSTRUCTION) && text.contains("the ports"),
        "{text}"
    );

    let after = server.request(3).messages();
    assert_eq!(after[0], before[0], "the system prompt stays");
    assert!(
        after[1..].iter().all(|message| message["role"] == "user"),
        "{after:?}"
    );
    let said = server.request(3).contents("user").join("\n");
    assert!(
        said.contains("THE SUMMARY") && said.contains("one\twith tab"),
        "{said}"
    );
    assert!(
        said.ends_with("two") && !said.contains("in-the-shell"),
        "{said}"
    );
}

#[test]
fn e8_whatever_is_no_summary_leaves_the_conversation_as_it_was() {
    /// What it is, and how the server says it.
    type Kind = (&'static str, fn() -> Reply);
    let replies: [Kind; 6] = [
        ("empty", || Reply::answer("")),
        ("reasoning only", || {
            Reply::stream().reasoning("hm").finish("stop").done()
        }),
        ("an error", || Reply::error(400, "refused for a reason")),
        ("a call", || Reply::shell("touch ran")),
        ("cut", || {
            Reply::stream().text("half a").finish("length").done()
        }),
        ("filtered", || {
            Reply::stream()
                .text("half a")
                .finish("content_filter")
                .done()
        }),
    ];
    for (what, reply) in replies {
        let server =
            Server::start([Reply::answer("a1"), reply(), Reply::answer("a2")]).history_may_change();
        let run = Cli::against(&server)
            .lines(["one", "/compact", "two"])
            .run();
        assert_eq!(run.stderr.matches("error: ").count(), 1, "{what}: {run}");
        run.no_file("ran").stdout_lacks("half a");
        let contents: Vec<_> = server.last_request().messages()[1..]
            .iter()
            .map(|message| message["content"].clone())
            .collect();
        assert_eq!(contents, ["one", "a1", "two"], "{what}");
    }
}

#[test]
fn e8_an_interrupt_leaves_the_conversation_as_it_was() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::answer("a1"),
        Reply::stream().text("half").hold(&gate),
    ])
    .history_may_change();
    let mut run = Cli::against(&server).stdin_open().start();
    run.write("one\n/compact\n");
    gate.wait();
    run.interrupt();
    let run = run.finish();
    run.code(130);
    gate.open();
    let path = run
        .home_files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "json"));
    let text = std::fs::read_to_string(run.home().join(path.unwrap())).unwrap();
    assert!(text.contains("\"a1\"") && !text.contains("half"), "{text}");
}

#[test]
fn e8_there_must_be_something_to_compact() {
    let server = Server::start([]);
    let run = Cli::against(&server).lines(["/compact"]).run();
    run.stderr_has("error: ");
}

#[test]
fn e8_a_conversation_that_no_longer_fits_is_shortened_for_the_summary() {
    let refused = || {
        Reply::error_json(
            400,
            &json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
        )
    };
    let server = Server::start([
        Reply::shell("seq 1 4000"),
        Reply::answer("a1"),
        refused(),
        Reply::answer("THE SUMMARY"),
        Reply::answer("a2"),
    ])
    .history_may_change();
    let run = Cli::against(&server)
        .lines(["one", "/compact", "two"])
        .run();
    run.success();
    let [first, second] = [server.request(2), server.request(3)];
    assert!(second.body.len() < first.body.len() / 2);
    assert!(
        second.last_message()["content"]
            .as_str()
            .unwrap()
            .starts_with(INSTRUCTION)
    );
    assert!(
        server
            .last_request()
            .contents("user")
            .join("\n")
            .contains("THE SUMMARY")
    );
}

#[test]
fn e8_after_three_refusals_it_is_left() {
    let refused = || {
        Reply::error_json(
            400,
            &json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
        )
    };
    let mut script = Vec::new();
    for _ in 0..6 {
        script.push(Reply::shell("seq 1 3000"));
    }
    script.push(Reply::answer("a1"));
    let before = script.len();
    script.extend([refused(), refused(), refused(), Reply::answer("a2")]);
    let server = Server::start(script).history_may_change();
    let run = Cli::against(&server)
        .lines(["one", "/compact", "two"])
        .run();
    run.stderr_has("too long");
    assert_eq!(server.requests().len(), before + 4);
    assert_eq!(server.last_request().contents("tool").len(), 6);
    assert!(server.last_request().contents("tool")[0].contains("\n2999\n3000"));
}

#[test]
fn e9_nobody_is_asked_without_a_terminal() {
    let full = || {
        Reply::stream()
            .text("a")
            .finish("stop")
            .usage(150_000, 5)
            .done()
    };
    let server = Server::start([full(), full()]);
    let run = Cli::against(&server).lines(["one", "two"]).run();
    run.success()
        .lacks("Compact conversation?")
        .stdout_has("(75.0%)");
}
