//! What the interactive program says and asks first (SPEC A1, B9).

use crate::common::cli::Cli;
use crate::common::pty::Pty;
use crate::common::server::{Reply, Server};

const KEY: &str = "sk-0123456789abcdef";

/// A run whose endpoint is elsewhere, with this server for a proxy, so that nothing leaves the machine.
fn elsewhere(server: &Server) -> Cli {
    Cli::new()
        .config("endpoint=http://models.test/v1\nmodel=test-model")
        .env("OPENAI_API_KEY", KEY)
        .env("HTTP_PROXY", format!("http://127.0.0.1:{}", server.port()))
}

#[test]
fn b9_the_first_line_says_what_runs_where_and_by_which_file() {
    let server = Server::start([]);
    let pty = Pty::with_size(Cli::against(&server), 120, 24);
    let screen = pty.wait_for_prompt();
    let first = &screen.rows[0];
    for part in [
        env!("CARGO_PKG_VERSION"),
        "test-model",
        &server.url(),
        "model.cfg",
    ] {
        assert!(first.contains(part), "{first}");
    }
}

#[test]
fn b9_a_key_of_the_environment_goes_elsewhere_only_after_a_yes() {
    for (answer, authorization) in [("n", None), ("y", Some(format!("Bearer {KEY}")))] {
        let server = Server::start([Reply::answer("fine")]);
        let mut pty = Pty::start(elsewhere(&server));
        pty.wait("the question", |screen| screen.line().ends_with("[y/N]:"));
        assert!(server.everything().is_empty(), "asked too late");
        pty.submit(answer);
        pty.wait_for_prompt();
        pty.submit("hello");
        pty.wait_for("fine");
        let sent = server.request(0).header("authorization").map(str::to_owned);
        assert_eq!(sent, authorization);
        assert!(!pty.transcript().iter().any(|row| row.contains(KEY)));
    }
}

#[test]
fn b9_a_yes_is_remembered() {
    let server = Server::start([]);
    let mut pty = Pty::start(elsewhere(&server));
    pty.wait("the question", |screen| screen.line().ends_with("[y/N]:"));
    pty.submit("y");
    pty.wait_for_prompt();
    let trusted = std::fs::read_to_string(pty.home().join(".bantam/trusted")).unwrap();
    assert!(trusted.contains("http://models.test/v1"), "{trusted}");
}
