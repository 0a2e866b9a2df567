//! What the two tools do to files and processes, seen from the model's side (SPEC D).

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Reply, Server};

mod output;
mod shell_exec;
mod write_file;

/// Long enough for any test here, and far shorter than the `sleep`s in it: a run that waits for
/// one of them fails.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Lets the model run one command in this directory; gives the result and the run.
#[track_caller]
fn shell_in(cli: impl FnOnce(Cli) -> Cli, command: &str) -> (String, Output) {
    call_in(cli, "shell_exec", &json!({ "command": command }))
}

#[track_caller]
fn shell(command: &str) -> String {
    shell_in(|cli| cli, command).0
}

/// Lets the model make one call; gives the result and the run.
#[track_caller]
fn call_in(cli: impl FnOnce(Cli) -> Cli, name: &str, arguments: &Value) -> (String, Output) {
    let server = Server::start([Reply::call("a", name, arguments), Reply::answer("done")]);
    let run = cli(Cli::against(&server).prompt("x")).run();
    run.success();
    (server.last_request().result(), run)
}

#[track_caller]
fn write_in(cli: impl FnOnce(Cli) -> Cli, arguments: &Value) -> (String, Output) {
    call_in(cli, "write_file", arguments)
}

/// These numbers, one a line, as `seq` prints them.
fn lines(numbers: RangeInclusive<u32>) -> String {
    numbers.fold(String::new(), |text, number| {
        text + &number.to_string() + "\n"
    })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
