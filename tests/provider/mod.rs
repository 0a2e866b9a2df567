//! Servers that deviate from the dialect: each variant from its bytes to what the person and the model get.

use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Reply, Request, Server};

mod calls;
mod errors;
mod fallbacks;
mod framing;
mod usage;
mod window;

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
