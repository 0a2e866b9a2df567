//! Settings changed while the program runs (SPEC B7, B8).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{KEY, said};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

#[test]
fn b7_a_setting_is_shown_and_a_key_is_shown_masked() {
    said("model=some-model", "/cfg model")
        .success()
        .stdout_has("some-model");
    said(&format!("api_key={KEY}"), "/cfg api_key")
        .success()
        .stdout_has("****cdef")
        .lacks(KEY);
    said("api_key=short-key", "/cfg api_key")
        .success()
        .stdout_has("****")
        .lacks("short-key")
        .stdout_lacks("-key");
}

#[test]
fn b7_a_change_counts_at_once_and_is_written_with_comments_and_order_kept() {
    let server = Server::start([Reply::answer("ok")]);
    let config = format!(
        "# my settings\nendpoint={}\n\nmodel = old  \n# the end\n",
        server.url()
    );
    let run = Cli::new()
        .file(".bantam.cfg", &config)
        .lines(["/cfg model new", "/cfg top_p 0.5", "x"])
        .run();
    run.success();
    let body = server.request(0).json();
    assert_eq!(
        (&body["model"], &body["top_p"]),
        (&json!("new"), &json!(0.5))
    );
    let written = fs::read_to_string(run.directory().join(".bantam.cfg")).unwrap();
    let lines: Vec<_> = written.lines().collect();
    assert_eq!(lines[0], "# my settings");
    assert_eq!(lines[2], "");
    assert_eq!(lines[3].replace(' ', ""), "model=new");
    assert_eq!(lines[4], "# the end");
    assert_eq!(lines[5].replace(' ', ""), "top_p=0.5");
    let mode = fs::metadata(run.directory().join(".bantam.cfg"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn b7_a_change_takes_the_other_files_settings_along() {
    let config = "# kept\ntemperature=0.1\nmodel=old\n";
    let run = Cli::new()
        .file("model.cfg", config)
        .through(r#"umask 000; exec "$@""#)
        .lines(["/cfg model new"])
        .run();
    run.success()
        .file(".bantam.cfg", "# kept\ntemperature=0.1\nmodel=new\n")
        .file("model.cfg", config);
    let mode = fs::metadata(run.directory().join(".bantam.cfg"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn b7_a_wrong_value_is_refused_with_the_reason_and_changes_nothing() {
    for command in [
        "/cfg timeout soon",
        "/cfg stream perhaps",
        "/cfg messages []",
    ] {
        let run = Cli::new()
            .config("timeout=7\nstream=false")
            .lines([command, "/cfg timeout", "/cfg stream"])
            .run();
        let key = command.split(' ').nth(1).unwrap();
        run.stderr_has(key)
            .stdout_has("7")
            .stdout_has("false")
            .no_file(".bantam.cfg");
    }
}

#[test]
fn b7_an_equals_sign_sets_an_empty_value() {
    let server = Server::start([Reply::answer("ok")]);
    Cli::against(&server)
        .lines(["/cfg temperature=", "x"])
        .run()
        .success();
    assert!(server.request(0).json().get("temperature").is_none());
}

#[test]
fn b7_all_settings_are_listed_without_secrets() {
    let run = said(&format!("api_key={KEY}\nmodel=mine\ntop_p=0.5"), "/cfg");
    run.success().lacks(KEY);
    for told in [
        "mine",
        "top_p",
        "0.5",
        "shell_timeout",
        "120",
        "endpoint",
        "****cdef",
    ] {
        run.stdout_has(told);
    }
}

#[test]
fn b7_model_and_endpoint_have_commands_of_their_own() {
    let run = Cli::new()
        .config("model=mine\nendpoint=http://127.0.0.1:9/v1")
        .lines(["/model", "/endpoint", "/model other", "/model"])
        .run();
    run.success()
        .stdout_has("mine")
        .stdout_has("http://127.0.0.1:9/v1")
        .stdout_has("other");
    let written = fs::read_to_string(run.directory().join(".bantam.cfg")).unwrap();
    assert!(written.contains("model=other\n"), "{written}");
}

#[test]
fn b7_an_endpoint_that_is_no_address_is_refused_and_changes_nothing() {
    let run = Cli::new()
        .config("endpoint=http://127.0.0.1:9/v1")
        .lines([
            "/cfg endpoint 127.0.0.1:8080",
            "/endpoint ftp://x",
            "/endpoint",
        ])
        .run();
    run.success()
        .stdout_is("endpoint=http://127.0.0.1:9/v1\n")
        .stderr_has("http://")
        .no_file(".bantam.cfg");
    let run = Cli::new().args(["-c", "endpoint=here"]).run();
    run.code(2).stderr_has("endpoint");
}

#[test]
fn b8_the_window_is_looked_for_again_when_the_model_changes() {
    let server = Server::start([]);
    let mut run = Cli::against(&server).stdin_open().start();
    let lists = |count: usize| {
        server.wait_until(|requests| {
            requests.iter().filter(|one| one.method == "GET").count() >= count
        });
    };
    lists(1);
    run.write("/model another\n");
    lists(2);
    run.close_stdin();
    run.finish().success();
}
