//! One turn from the prompt to the usage line (SPEC C).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

mod calls;
mod ends;
mod hostile;
mod interrupts;
mod mirrored;
mod request;
mod shown;
mod usage;

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
