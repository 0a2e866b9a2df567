//! The config file and what it means (SPEC B1–B3, B6).

use serde_json::json;

use super::{KEY, asked, asked_with, said};
use crate::common::cli::Cli;
use crate::common::server::{Reply, Request, Server};

#[test]
fn b1_the_hidden_file_counts_and_the_other_one_not_at_all() {
    let server = Server::start([Reply::answer("ok")]);
    let hidden = format!("endpoint={}\nmodel=from-hidden\n", server.url());
    Cli::new()
        .file(".bantam.cfg", hidden)
        .config("model=from-visible\ntop_p=0.5")
        .prompt("x")
        .run()
        .success();
    let body = server.request(0).json();
    assert_eq!(body["model"], "from-hidden");
    assert!(body.get("top_p").is_none());
}

#[test]
fn b1_no_other_place_is_searched() {
    let server = Server::start([Reply::answer("ok")]);
    let other = "model=from-elsewhere\n";
    Cli::new()
        .home_file(".bantam.cfg", other)
        .home_file("model.cfg", other)
        .home_file(".bantam/model.cfg", other)
        .home_file(".config/bantam/model.cfg", other)
        .file("model.cfg", other)
        .file("inner/prompt.txt", "x")
        .through(r#"cd inner; exec "$@""#)
        .args(["-c", &format!("endpoint={}", server.url()), "prompt.txt"])
        .run()
        .success();
    assert_eq!(server.request(0).json()["model"], "openrouter/free");
}

#[test]
fn b2_lines_are_read_with_all_their_liberties() {
    let server = Server::start([Reply::answer("ok")]);
    let config = format!(
        "\u{feff}endpoint = {}\r\n\r\n# a comment\r\n   # another\r\n  model =  a=b # c  \r\n\
         user=first\r\nuser=last\r\n",
        server.url()
    );
    Cli::new()
        .file("model.cfg", config)
        .prompt("x")
        .run()
        .success()
        .stderr_is("...requesting...\n");
    let body = server.request(0).json();
    assert_eq!(body["model"], "a=b # c");
    assert_eq!(body["user"], "last");
}

#[test]
fn b2_a_hash_belongs_to_the_value() {
    let (request, _) = asked_with("api_key=abc#123");
    assert_eq!(request.header("authorization"), Some("Bearer abc#123"));
}

#[test]
fn b3_the_defaults_are_the_documents() {
    for (key, value) in [
        ("endpoint", "https://api.kilo.ai/api/openrouter"),
        ("model", "openrouter/free"),
        ("temperature", "0.7"),
        ("stream", "true"),
        ("color", "auto"),
        ("timeout", "300"),
        ("shell_timeout", "120"),
        ("max_al_iterations", "1000"),
        ("context_window", "200000"),
        ("reasoning_effort", "high"),
        ("tool_output_limit", "50000"),
        ("sanitize_args", "true"),
        ("markdown", "auto"),
    ] {
        let run = said("", &format!("/cfg {key}"));
        run.success();
        assert!(run.stdout.contains(value), "{key}\n{run}");
    }
}

#[test]
fn b3_the_key_comes_from_the_file_then_from_the_environment() {
    let environment = "sk-environment-0123456789";
    let bearer = |request: &Request| request.header("authorization").map(str::to_owned);
    let (request, _) = asked(|cli| cli.env("OPENAI_API_KEY", environment));
    assert_eq!(bearer(&request), Some(format!("Bearer {environment}")));
    let (request, _) = asked(|cli| {
        cli.env("OPENAI_API_KEY", environment)
            .config(&format!("api_key={KEY}"))
    });
    assert_eq!(bearer(&request), Some(format!("Bearer {KEY}")));
    let (request, _) = asked(|cli| cli.env("OPENAI_API_KEY", environment).config("api_key="));
    assert_eq!(bearer(&request), None);
}

#[test]
fn b3_colour_is_on_when_it_is_to_be() {
    for (setting, variable, colored) in [
        ("color=auto", None, false),
        ("color=always", None, true),
        ("color=never", None, false),
        ("color=always", Some(("NO_COLOR", "1")), false),
        ("color=always", Some(("BANTAM_NO_COLOR", "1")), false),
        ("color=always", Some(("NO_COLOR", "")), true),
        ("color=always", Some(("TERM", "dumb")), false),
        ("color=always", Some(("TERM", "xterm")), true),
    ] {
        let server = Server::start([Reply::shell("echo hi"), Reply::answer("ok")]);
        let cli = Cli::against(&server).config(setting).prompt("x");
        let run = match variable {
            Some((name, value)) => cli.env(name, value).run(),
            None => cli.run(),
        };
        run.success();
        for stream in [&run.stdout, &run.stderr] {
            assert_eq!(
                stream.contains("\u{1b}["),
                colored,
                "{setting} {variable:?}\n{run}"
            );
        }
        assert!(!server.last_request().text().contains("\\u001b"));
    }
}

#[test]
fn b6_a_line_without_an_equals_sign_is_warned_about_with_file_and_line() {
    let (request, run) = asked_with("# three\njust words");
    run.stderr_has("model.cfg:4");
    assert_eq!(request.json()["temperature"], json!(0.7));
}

#[test]
fn b6_a_value_of_the_wrong_type_is_warned_about_and_the_default_is_used() {
    for (setting, key) in [
        ("timeout=soon", "timeout"),
        ("shell_timeout=-5", "shell_timeout"),
        ("max_al_iterations=many", "max_al_iterations"),
        ("stream=perhaps", "stream"),
        ("color=blue", "color"),
        ("context_window=1.5", "context_window"),
        ("temperature=0,7", "temperature"),
        ("tool_output_limit=some", "tool_output_limit"),
        ("sanitize_args=x", "sanitize_args"),
    ] {
        let (request, run) = asked_with(setting);
        run.stderr_has("model.cfg:3").stderr_has(key);
        let body = request.json();
        assert_eq!(body["stream"], true, "{setting}");
        assert_eq!(body["temperature"], json!(0.7), "{setting}");
    }
}

#[test]
fn b6_a_file_that_cannot_be_read_is_an_error() {
    let server = Server::start([]);
    let endpoint = format!("endpoint={}", server.url());
    let run = Cli::new()
        .file(".bantam.cfg/inner", "")
        .args(["-c", &endpoint])
        .prompt("x")
        .run();
    run.code(1).stderr_has(".bantam.cfg");
}

#[test]
fn b6_a_wrong_value_on_the_command_line_is_told() {
    let server = Server::start([Reply::answer("ok")]).replies_may_be_left();
    let run = Cli::against(&server)
        .args(["-c", "timeout=soon"])
        .prompt("x")
        .run();
    run.stderr_has("timeout");
}

#[test]
fn b3_the_tools_directory_is_told_to_the_model_and_the_environment_goes_first() {
    let line = "Extra shell tools can be found at";
    for (configured, environment, expected) in [
        ("bantam_tools_dir=/opt/one", "", Some("/opt/one")),
        ("", "/opt/two", Some("/opt/two")),
        ("bantam_tools_dir=/opt/one", "/opt/two", Some("/opt/two")),
        ("", "", None),
    ] {
        let server = Server::start([Reply::answer("ok")]);
        let run = Cli::against(&server).config(configured).prompt("x");
        let run = if environment.is_empty() {
            run
        } else {
            run.env("BANTAM_TOOLS_DIR", environment)
        };
        run.run().success();
        let system = server.request(0).contents("system").remove(0);
        match expected {
            Some(directory) => assert!(system.contains(&format!("{line} {directory}")), "{system}"),
            None => assert!(!system.contains(line), "{system}"),
        }
        assert!(!server.request(0).text().contains("bantam_tools_dir"));
    }
}
