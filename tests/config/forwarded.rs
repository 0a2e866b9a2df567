//! What goes into a request and what never does (SPEC B4, B5).

use serde_json::{Value, json};

use super::asked_with;
use crate::common::cli::Cli;
use crate::common::server::{Reply, Server};

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

#[test]
fn b4_parameters_that_servers_know_are_no_typing_errors() {
    let parameters = [
        "models",
        "top_k",
        "min_p",
        "n",
        "seed",
        "stop",
        "user",
        "store",
        "metadata",
        "route",
        "plugins",
        "provider",
        "reasoning",
        "think",
        "thinking",
        "verbosity",
        "modalities",
        "prediction",
        "num_ctx",
        "keep_alive",
        "max_completion_tokens",
        "parallel_tool_calls",
        "tool_choice",
        "response_format",
        "service_tier",
        "logit_bias",
        "transforms",
        "safe_prompt",
    ];
    let settings: String = parameters.map(|name| format!("{name}=[1]\n")).concat();
    let (request, run) = asked_with(&settings);
    run.stderr_is("...requesting...\n");
    let body = request.json();
    for name in parameters {
        assert_eq!(body[name], json!([1]), "{name}");
    }
}
