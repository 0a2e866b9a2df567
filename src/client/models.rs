//! The endpoint's list of models, and the context window it tells (SPEC B8, E10).

use serde_json::Value;

/// Where an entry tells its context window, the most telling place first.
const WINDOWS: &[&str] = &[
    "/meta/n_ctx",
    "/loaded_context_length",
    "/loaded_instances/0/config/context_length",
    "/max_model_len",
    "/capabilities/limits/max_prompt_tokens",
    "/top_provider/context_length",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/model_info/max_input_tokens",
    "/limits/max_input_tokens",
    "/limit/context",
    "/inputTokenLimit",
    "/input_token_limit",
    "/capabilities/limits/max_context_window_tokens",
    "/max_context_window",
    "/meta/n_ctx_train",
];

/// The entries of a list, in any of the shapes it comes in.
pub(super) fn entries(list: &Value) -> &[Value] {
    let items = list
        .get("data")
        .or_else(|| list.get("models"))
        .unwrap_or(list);
    items.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The ids of the entries, in their order.
pub(super) fn ids(list: &Value) -> Vec<String> {
    entries(list)
        .iter()
        .filter_map(id)
        .map(str::to_owned)
        .collect()
}

/// The context window that the list tells for `model`, in tokens.
pub(super) fn window(list: &Value, model: &str) -> Option<u64> {
    let entry = entry(entries(list), model)?;
    let mut places = WINDOWS
        .iter()
        .filter_map(|place| tokens(entry.pointer(place)?).map(|tokens| (*place, tokens)));
    let (place, first) = places.next()?;
    if place != "/top_provider/context_length" {
        return Some(first);
    }
    // The provider that serves it may offer less than the model has, or say more.
    let other = entry.get("context_length").and_then(tokens);
    Some(first.min(other.unwrap_or(first)))
}

/// The context window that a llama.cpp server tells of itself.
pub(super) fn window_of_props(props: &Value) -> Option<u64> {
    props
        .pointer("/default_generation_settings/n_ctx")
        .or_else(|| props.get("n_ctx"))
        .and_then(tokens)
}

fn id(entry: &Value) -> Option<&str> {
    let named = |key: &str| entry.get(key).and_then(Value::as_str);
    entry
        .as_str()
        .or_else(|| named("id"))
        .or_else(|| named("name"))
        .or_else(|| named("model"))
}

/// The entry of a model: by its id, without a prefix, by an alias, or the only one there is.
fn entry<'a>(entries: &'a [Value], model: &str) -> Option<&'a Value> {
    let bare = |name: &'a str| name.strip_prefix("models/").unwrap_or(name);
    let wanted = model.strip_prefix("models/").unwrap_or(model);
    let has_alias = |entry: &&Value| {
        ["aliases", "alias", "canonical_slug", "root", "name"]
            .iter()
            .filter_map(|key| entry.get(key))
            .any(|alias| match alias {
                Value::Array(names) => names.iter().any(|name| name.as_str() == Some(model)),
                alias => alias.as_str() == Some(model),
            })
    };
    let mut found = entries.iter().find(|entry| id(entry) == Some(model));
    found = found.or_else(|| {
        entries
            .iter()
            .find(|entry| id(entry).map(bare) == Some(wanted))
    });
    found = found.or_else(|| entries.iter().find(has_alias));
    match (found, entries) {
        (None, [only]) => Some(only),
        (found, _) => found,
    }
}

/// A plausible context window: a number, or one written as text.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be in range
fn tokens(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    (512.0..=1e8).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table of the notes (6): lists, and the window of the model `m`.
    #[test]
    fn b8_the_window_is_found_under_every_name() {
        for (server, entry, window) in [
            ("OpenAI", json!({"id":"m"}), None),
            (
                "OpenRouter",
                json!({"id":"m","context_length":200_000,"top_provider":{"context_length":131_072}}),
                Some(131_072),
            ),
            (
                "OpenRouter, provider says more",
                json!({"id":"m","context_length":1000,"top_provider":{"context_length":2000}}),
                Some(1000),
            ),
            (
                "OpenRouter, provider says nothing",
                json!({"id":"m","context_length":1000,"top_provider":{"context_length":null}}),
                Some(1000),
            ),
            (
                "vLLM",
                json!({"id":"m","max_model_len":32_768}),
                Some(32_768),
            ),
            (
                "llama.cpp",
                json!({"id":"m","meta":{"n_ctx":8192,"n_ctx_train":131_072}}),
                Some(8192),
            ),
            (
                "llama.cpp router",
                json!({"id":"m","meta":{"n_ctx":0,"n_ctx_train":131_072}}),
                Some(131_072),
            ),
            (
                "Groq",
                json!({"id":"m","context_window":131_072}),
                Some(131_072),
            ),
            (
                "Mistral",
                json!({"id":"m","max_context_length":32_768}),
                Some(32_768),
            ),
            (
                "Copilot",
                json!({"id":"m","capabilities":{"limits":{"max_context_window_tokens":128_000,"max_prompt_tokens":64_000}}}),
                Some(64_000),
            ),
            (
                "Anthropic, LiteLLM",
                json!({"id":"m","max_input_tokens":200_000}),
                Some(200_000),
            ),
            (
                "Gemini",
                json!({"id":"models/m","inputTokenLimit":1_048_576}),
                Some(1_048_576),
            ),
            (
                "LM Studio",
                json!({"id":"m","max_context_length":8192,"loaded_context_length":4096}),
                Some(4096),
            ),
            (
                "LM Studio v1",
                json!({"id":"m","loaded_instances":[{"config":{"context_length":4096}}]}),
                Some(4096),
            ),
            (
                "GitHub Models",
                json!({"id":"m","limits":{"max_input_tokens":8000}}),
                Some(8000),
            ),
            (
                "text",
                json!({"id":"m","context_length":"8192"}),
                Some(8192),
            ),
            (
                "float",
                json!({"id":"m","context_length":8192.0}),
                Some(8192),
            ),
            ("too small", json!({"id":"m","context_length":1}), None),
            ("too large", json!({"id":"m","context_length":1e12}), None),
            ("negative", json!({"id":"m","context_length":-1}), None),
        ] {
            let others = [json!({"id":"other","context_length":777_777}), entry];
            for list in [
                json!({"data": others}),
                json!(others),
                json!({"models": others}),
            ] {
                assert_eq!(super::window(&list, "m"), window, "{server}");
            }
        }
    }

    #[test]
    fn b8_the_entry_is_found_by_id_prefix_alias_or_because_it_is_the_only_one() {
        let list = json!({"data": [
            {"id":"a","context_length":1001},
            {"id":"models/b","context_length":1002},
            {"id":"c-long","aliases":["c"],"context_length":1003},
        ]});
        for (model, expected) in [
            ("a", Some(1001)),
            ("models/a", Some(1001)),
            ("b", Some(1002)),
            ("c", Some(1003)),
            ("d", None),
        ] {
            assert_eq!(window(&list, model), expected, "{model}");
        }
        assert_eq!(
            window(&json!([{"id":"x.gguf","context_length":999}]), "d"),
            Some(999)
        );
        assert_eq!(window(&json!({"error":"no"}), "d"), None);
        assert_eq!(window(&json!(null), "d"), None);
    }

    #[test]
    fn e10_ids_keep_their_order() {
        for list in [
            json!({"object":"list","data":[{"id":"b"},{"id":"a"},{"odd":1}]}),
            json!([{"id":"b"},"a"]),
            json!({"models":[{"name":"b"},{"model":"a"}]}),
        ] {
            assert_eq!(ids(&list), ["b", "a"]);
        }
        assert_eq!(ids(&json!("nothing")), Vec::<String>::new());
    }

    #[test]
    fn b8_llama_cpp_tells_its_window_beside_the_list() {
        assert_eq!(
            window_of_props(&json!({"default_generation_settings":{"n_ctx":4096}})),
            Some(4096)
        );
        assert_eq!(
            window_of_props(&json!({"default_generation_settings":{"n_ctx":0}})),
            None
        );
        assert_eq!(window_of_props(&json!({})), None);
    }
}
