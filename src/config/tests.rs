use std::fs;

use serde_json::json;

use super::*;

fn load_with(text: Option<&str>, overrides: &[&str], environment: Environment) -> Config {
    let dir = tempfile::tempdir().unwrap();
    if let Some(text) = text {
        fs::write(dir.path().join(MODEL_FILE), text).unwrap();
    }
    let overrides = overrides
        .iter()
        .map(|text| parse_override(text).unwrap())
        .collect();
    Config::load(dir.path(), overrides, environment).unwrap()
}

fn load(text: &str) -> Config {
    load_with(Some(text), &[], Environment::default())
}

#[test]
fn b3_defaults_hold_where_nothing_is_set() {
    let config = load_with(None, &[], Environment::default());
    assert_eq!(config.endpoint(), "https://api.kilo.ai/api/openrouter");
    assert_eq!(config.model(), "openrouter/free");
    assert!(config.api_key().is_none() && config.stream() && config.tools_dir().is_none());
    assert_eq!(
        (config.timeout().as_secs(), config.shell_timeout().as_secs()),
        (300, 120)
    );
    assert_eq!(
        (config.max_iterations(), config.context_window()),
        (1000, 200_000)
    );
    assert_eq!(
        json!(config.parameters()),
        json!({"temperature": 0.7, "reasoning_effort": "high"})
    );
    assert_eq!(config.file(), None);
}

#[test]
fn b1_the_own_file_counts_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(MODEL_FILE), "model=a\ntop_p=1\n").unwrap();
    fs::write(dir.path().join(OWN_FILE), "temperature=0\n").unwrap();
    let config = Config::load(dir.path(), vec![], Environment::default()).unwrap();
    assert_eq!(
        (config.model(), config.file()),
        ("openrouter/free", Some(OWN_FILE))
    );
    assert_eq!(
        json!(config.parameters()),
        json!({"temperature": 0, "reasoning_effort": "high"})
    );
}

#[test]
fn b2_the_last_of_two_equal_keys_wins() {
    assert_eq!(load("model=a\nmodel=b\n").model(), "b");
}

#[test]
fn b3_the_key_is_the_files_even_if_empty_and_else_the_environments() {
    let environment = Environment {
        api_key: Some("sk-environment".into()),
        tools_dir: None,
    };
    let key = |text: &str| {
        let config = load_with(Some(text), &[], environment.clone());
        config
            .api_key()
            .map(|(key, source)| (key.to_owned(), source))
    };
    assert_eq!(
        key("api_key=sk-file"),
        Some(("sk-file".into(), Source::File))
    );
    assert_eq!(
        key("model=m"),
        Some(("sk-environment".into(), Source::Environment))
    );
    assert_eq!(key("api_key="), None);
}

#[test]
fn b3_the_environments_tools_directory_goes_first() {
    let environment = Environment {
        api_key: None,
        tools_dir: Some("/env".into()),
    };
    assert_eq!(
        load_with(Some("bantam_tools_dir=/file"), &[], environment).tools_dir(),
        Some("/env")
    );
    assert_eq!(load("bantam_tools_dir=/file").tools_dir(), Some("/file"));
}

#[test]
fn b4_unknown_keys_are_forwarded_in_file_order_and_internal_ones_never() {
    let config = load(
        "top_p=0.9\nendpoint=http://x/\napi_key=sk-12345678\nstop=END\ntemperature=\nreasoning_effort=low\n\
         provider={\"sort\":\"price\"}\nheader.X-Title=t\ncompact_at=10\nmodel=7\n",
    );
    assert_eq!(
        json!(config.parameters()).to_string(),
        r#"{"reasoning_effort":"low","top_p":0.9,"stop":"END","provider":{"sort":"price"}}"#
    );
    assert_eq!((config.model(), config.endpoint()), ("7", "http://x"));
    assert_eq!(config.headers(), [("X-Title".to_owned(), "t".to_owned())]);
}

#[test]
fn b6_wrong_lines_are_warned_about_with_file_and_line_and_defaults_hold() {
    let mut config = load("temperature=hot\nnonsense\n\ntimeout=-1\napikey=x\n");
    let warnings = config.take_warnings();
    for (warning, line) in warnings.iter().zip([1, 2, 4, 5]) {
        assert!(
            warning.starts_with(&format!("model.cfg:{line}: ")),
            "{warning}"
        );
    }
    assert_eq!(warnings.len(), 4);
    assert_eq!(config.timeout().as_secs(), 300);
    assert_eq!(
        json!(config.parameters()),
        json!({"temperature": 0.7, "reasoning_effort": "high"})
    );
}

#[test]
fn b4_an_unbuilt_option_is_an_error_and_so_is_an_unreadable_file_b6() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(MODEL_FILE), "approval=shell\n").unwrap();
    let error = Config::load(dir.path(), vec![], Environment::default()).unwrap_err();
    assert!(
        error.to_string().contains("model.cfg:1") && error.to_string().contains("approval"),
        "{error}"
    );
    fs::create_dir(dir.path().join(OWN_FILE)).unwrap();
    let error = Config::load(dir.path(), vec![], Environment::default()).unwrap_err();
    assert!(error.to_string().contains(OWN_FILE), "{error}");
}

#[test]
fn a3_the_command_line_wins() {
    let config = load_with(
        Some("model=a\nstream=true"),
        &["model = b", "stream=false"],
        Environment::default(),
    );
    assert_eq!((config.model(), config.stream()), ("b", false));
    assert!(parse_override("model").is_err() && parse_override("stream=maybe").is_err());
}

#[test]
fn b7_setting_starts_from_a_copy_and_holds_at_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(MODEL_FILE), "# mine\nmodel=a\ntop_p=1\n").unwrap();
    let mut config = Config::load(dir.path(), vec![], Environment::default()).unwrap();
    config.set("model", "b").unwrap();
    config.set("temperature", "0.2").unwrap();
    assert_eq!(config.model(), "b");
    let text = fs::read_to_string(dir.path().join(OWN_FILE)).unwrap();
    assert_eq!(text, "# mine\nmodel=b\ntop_p=1\ntemperature=0.2\n");
    assert_eq!(
        fs::read_to_string(dir.path().join(MODEL_FILE)).unwrap(),
        "# mine\nmodel=a\ntop_p=1\n"
    );
    assert!(config.set("stream", "maybe").is_err() && config.set("approval", "shell").is_err());
    assert_eq!(fs::read_to_string(dir.path().join(OWN_FILE)).unwrap(), text);
    config.set("temperature", "").unwrap();
    assert_eq!(
        json!(config.parameters()),
        json!({"reasoning_effort": "high", "top_p": 1})
    );
}

#[test]
fn b7_keys_and_credentials_are_shown_masked() {
    let config = load(
        "api_key=sk-abcdefgh1234\nendpoint=http://me:pass@host/v1\nheader.X-Key=abcdefghijklmnop\n",
    );
    let shown = config.shown();
    let value = |name: &str| shown.iter().find(|(key, _)| key == name).unwrap().1.clone();
    assert!(value("api_key").ends_with("1234") && !value("api_key").contains("abcd"));
    assert!(!value("header.X-Key").contains("abcd"));
    assert_eq!(value("endpoint"), "http://host/v1");
    assert_eq!(value("compact_at"), "60");
}

#[test]
fn b9_credentials_in_the_endpoint_are_warned_about_without_showing_them() {
    let mut config = load("endpoint=http://me:secret@host/v1\n");
    let warnings = config.take_warnings();
    assert!(
        warnings.len() == 1 && !warnings[0].contains("secret"),
        "{warnings:?}"
    );
    assert!(
        load("endpoint=http://host/v1?at=@\n")
            .take_warnings()
            .is_empty()
    );
}
