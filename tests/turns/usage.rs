//! The line after a turn (SPEC C14).

use serde_json::json;

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

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
