//! Settings: where they come from, what they become, and where they never go (SPEC B).

use crate::common::cli::{Cli, Output};
use crate::common::server::{Reply, Request, Server};

mod changed;
mod file;
mod forwarded;
mod secrets;

const KEY: &str = "sk-test-0123456789abcdef";

/// A one-shot run with these settings; gives its request and the run.
#[track_caller]
fn asked_with(settings: &str) -> (Request, Output) {
    asked(|cli| cli.config(settings))
}

/// A one-shot run; gives its request and the run.
#[track_caller]
fn asked(set: impl FnOnce(Cli) -> Cli) -> (Request, Output) {
    let server = Server::start([Reply::answer("ok")]);
    let run = set(Cli::against(&server).prompt("x")).run();
    run.success();
    (server.request(0), run)
}

/// What one command prints in a loop with these settings.
#[track_caller]
fn said(settings: &str, command: &str) -> Output {
    Cli::new().config(settings).lines([command]).run()
}
