//! Settings: where they come from, what they become, and where they never go (SPEC B).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::cli::{Cli, Output};
use crate::common::server::{Reply, Request, Server};

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

// B1: which file

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

// B2: its lines

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

// B3: keys and defaults

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

// B4: what is forwarded

#[test]
fn b4_unknown_keys_are_forwarded_as_json_where_they_are_json() {
    let (request, _) = asked_with(
        "top_p=0.9\nmax_tokens=4096\nprovider={\"sort\":\"price\"}\nstop=[\"a\", \"b\"]\n\
         user=me\nseed=12345678901234567890\nlogprobs=true\nservice_tier=null\nsome_text={broken",
    );
    let body = request.json();
    for (key, value) in [
        ("top_p", json!(0.9)),
        ("max_tokens", json!(4096)),
        ("provider", json!({"sort": "price"})),
        ("stop", json!(["a", "b"])),
        ("user", json!("me")),
        ("seed", json!(12_345_678_901_234_567_890_u64)),
        ("logprobs", json!(true)),
        ("service_tier", Value::Null),
        ("some_text", json!("{broken")),
    ] {
        assert_eq!(body[key], value, "{key}");
    }
}

#[test]
fn b4_a_model_is_always_a_text() {
    for model in ["42", "true", "null", "1e3"] {
        let (request, _) = asked_with(&format!("model={model}"));
        assert_eq!(request.json()["model"], model);
    }
}

#[test]
fn b4_an_empty_value_removes_a_parameter() {
    let (request, run) = asked_with("reasoning_effort=\ntemperature=\ntop_p=");
    let body = request.json();
    for key in ["reasoning_effort", "temperature", "top_p"] {
        assert!(body.get(key).is_none(), "{body}");
    }
    run.stderr_is("...requesting...\n");
}

#[test]
fn b4_internal_keys_never_leave_the_machine() {
    let (request, _) = asked_with(
        "timeout=100\nshell_timeout=100\nmax_al_iterations=100\ncolor=never\ncontext_window=1000\n\
         bantam_tools_dir=/tools\nheader.X-A=b\nmarkdown=never\nsanitize_args=true\n\
         compact_at=50\ntool_output_limit=1000\napi_key=sk-0123456789",
    );
    let body = request.json();
    let mut keys: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "messages",
            "model",
            "reasoning_effort",
            "stream",
            "stream_options",
            "temperature",
            "tools"
        ]
    );
}

#[test]
fn b4_the_settings_of_later_parts_never_leave_the_machine_either() {
    for key in [
        "api_mode",
        "tools",
        "approval",
        "confine",
        "theme",
        "status_line",
        "bell",
    ] {
        let server = Server::start([Reply::answer("ok")]).replies_may_be_left();
        let run = Cli::against(&server)
            .config(&format!("{key}=not-a-value-of-it"))
            .prompt("x")
            .run();
        assert!(run.stderr.contains(key), "{key}\n{run}");
        for request in server.requests() {
            assert!(!request.text().contains("not-a-value-of-it"), "{key}");
        }
    }
}

#[test]
fn b4_messages_and_stream_options_cannot_be_set() {
    for setting in ["messages=[]", "stream_options={\"include_usage\":false}"] {
        let server = Server::start([Reply::answer("ok")]).replies_may_be_left();
        let run = Cli::against(&server).config(setting).prompt("x").run();
        let key = setting.split('=').next().unwrap();
        run.stderr_has(key);
        for request in server.requests() {
            assert_eq!(request.messages().len(), 2);
            assert_eq!(request.json()["stream_options"]["include_usage"], true);
        }
    }
}

#[test]
fn b4_a_key_close_to_an_internal_one_is_warned_about_and_kept_here() {
    for (key, meant) in [
        ("apikey", "api_key"),
        ("api-key", "api_key"),
        ("API_KEY", "api_key"),
        ("shell_timout", "shell_timeout"),
        ("endpont", "endpoint"),
        ("timeouts", "timeout"),
    ] {
        let (request, run) = asked_with(&format!("{key}=secret-value"));
        run.stderr_has(key).stderr_has(meant);
        assert!(!request.text().contains("secret-value"), "{key}");
        run.stderr_lacks("secret-value");
    }
}

// B5: headers

#[test]
fn b5_headers_go_with_every_request_and_are_shown_masked() {
    let (request, run) =
        asked_with("header.X-Team = blue=green\nheader.X-Token=abcdefghijklmnopqrst");
    assert_eq!(request.header("X-Team"), Some("blue=green"));
    assert_eq!(request.header("X-Token"), Some("abcdefghijklmnopqrst"));
    assert!(!request.text().contains("blue=green"));
    let shown = Cli::after(run).lines(["/cfg header.X-Token", "/cfg"]).run();
    shown.stdout_has("qrst").lacks("abcdefghijklmnop");
}

#[test]
fn b5_a_header_may_replace_one_of_ours() {
    let (request, _) = asked_with("header.User-Agent=other/1.0");
    let agents: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
        .collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
}

#[test]
fn b5_a_header_that_is_none_is_told_and_no_panic() {
    for setting in ["header.=x", "header.a b=x", "header.X-A=a\u{7}b"] {
        let server = Server::start([Reply::answer("ok")]).replies_may_be_left();
        let run = Cli::against(&server).config(setting).prompt("x").run();
        run.stderr_has("header").stderr_lacks("panicked");
    }
}

// B6: mistakes

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

// B7: changing settings

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

// B8: see provider.rs for the shapes of lists

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

// B9: keys stay here

#[test]
fn b9_a_key_of_the_environment_for_a_directorys_far_endpoint_is_a_warning() {
    let endpoint = "http://bantam.invalid/v1";
    let run = Cli::new()
        .config(&format!("endpoint={endpoint}"))
        .env("OPENAI_API_KEY", KEY)
        .lines(["/quit"])
        .run();
    run.success()
        .stderr_has("OPENAI_API_KEY")
        .stderr_has(endpoint)
        .lacks(KEY);
}

#[test]
fn b9_a_key_of_the_environment_for_loopback_is_no_warning() {
    let (_, run) = asked(|cli| cli.env("OPENAI_API_KEY", KEY));
    run.stderr_is("...requesting...\n");
}

#[test]
fn b9_a_config_with_a_key_that_others_can_read_is_a_warning() {
    for (mode, warned) in [(0o644, true), (0o640, true), (0o604, true), (0o600, false)] {
        let server = Server::start([Reply::answer("ok")]);
        let script = format!("chmod {mode:o} model.cfg; exec \"$@\"");
        let run = Cli::against(&server)
            .config(&format!("api_key={KEY}"))
            .through(&script)
            .prompt("x")
            .run();
        run.success();
        let told = run.stderr.contains("model.cfg");
        assert_eq!(told, warned, "{mode:o}\n{run}");
    }
}

#[test]
fn b9_a_config_without_a_key_may_be_read_by_anyone() {
    let (_, run) = asked_with("top_p=1");
    run.stderr_is("...requesting...\n");
}

#[test]
fn b9_a_key_in_an_error_of_the_server_is_masked() {
    let server = Server::start([Reply::error(401, &format!("wrong key {KEY} here"))]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run();
    run.code(1).stderr_has("wrong key").lacks(KEY);
}

#[test]
fn b9_the_model_and_the_screen_never_get_the_key_or_a_header() {
    let token = "token-0123456789-abcdef";
    let show = "cat model.cfg; cat model.cfg | sed 's/^/again: /'";
    let server = Server::start([Reply::shell(show), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}\nheader.X-Token={token}"))
        .lines(["x"])
        .run();
    run.success().lacks(KEY).lacks(token);
    let request = server.last_request();
    assert!(!request.text().contains(KEY) && !request.text().contains(token));
    assert!(request.contents("tool")[0].contains("again: api_key="));
    for file in run.home_files() {
        let bytes = fs::read(run.home().join(&file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(KEY) && !text.contains(token),
            "{}",
            file.display()
        );
    }
}

#[test]
fn b9_a_key_in_long_output_is_masked_in_the_file_that_keeps_it() {
    let command = "seq 1 9000; cat model.cfg; seq 1 9000";
    let server = Server::start([Reply::shell(command), Reply::answer("ok")]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .config("tool_output_limit=1000")
        .prompt("x")
        .run();
    run.success().lacks(KEY);
    let kept: Vec<_> = run.home_files();
    assert!(!kept.is_empty());
    for file in kept {
        let text = fs::read_to_string(run.home().join(&file)).unwrap();
        assert!(!text.contains(KEY), "{}", file.display());
        assert!(text.contains("api_key="), "{}", file.display());
    }
}

#[test]
fn b9_a_key_that_a_call_carries_is_masked_in_its_trace() {
    let server = Server::start([
        Reply::shell(&format!("echo Bearer {KEY} > /dev/null")),
        Reply::answer("ok"),
    ]);
    let run = Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run();
    run.success()
        .stdout_has("[tool call: shell_exec(")
        .lacks(KEY);
}

#[test]
fn b9_a_key_is_not_in_the_process_list() {
    let server = Server::start([
        Reply::shell("ps ax 2>/dev/null || cat /proc/*/cmdline"),
        Reply::answer("ok"),
    ]);
    Cli::against(&server)
        .config(&format!("api_key={KEY}"))
        .prompt("x")
        .run()
        .success();
    assert!(!server.last_request().text().contains(KEY));
}

#[test]
fn b9_credentials_in_an_endpoint_are_not_shown() {
    let run = Cli::new()
        .config("endpoint=http://user:pass-word-123@127.0.0.1:1/v1")
        .prompt("x")
        .start();
    run.wait_for_stderr("9");
    run.interrupt();
    run.finish().code(130).lacks("pass-word-123");
}
