//! Token figures from wherever a server puts them.

use serde_json::Value;

use crate::usage::Usage;

/// The figures so far. A later one replaces an earlier one; null replaces nothing.
#[derive(Debug, Default)]
pub(super) struct Figures {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    missed: Option<u64>,
    written: Option<u64>,
}

const PROMPT: &[&str] = &["/prompt_tokens", "/input_tokens"];
const COMPLETION: &[&str] = &["/completion_tokens", "/output_tokens"];
const CACHED: &[&str] = &[
    "/prompt_tokens_details/cached_tokens",
    "/input_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
    "/cached_tokens",
    "/cache_read_input_tokens",
];

impl Figures {
    /// Takes a `usage` object in.
    pub(super) fn take(&mut self, usage: &Value) {
        let first = |pointers: &[&str]| {
            pointers
                .iter()
                .find_map(|pointer| count(usage.pointer(pointer)?))
        };
        replace(&mut self.prompt, first(PROMPT));
        replace(&mut self.completion, first(COMPLETION));
        replace(&mut self.total, first(&["/total_tokens"]));
        replace(&mut self.cached, first(CACHED));
        replace(&mut self.missed, first(&["/prompt_cache_miss_tokens"]));
        replace(&mut self.written, first(&["/cache_creation_input_tokens"]));
    }

    /// Takes the `timings` of a llama.cpp server in, which count where `usage` says nothing.
    pub(super) fn take_timings(&mut self, timings: &Value) {
        let get = |key: &str| timings.get(key).and_then(count);
        let cached = get("cache_n");
        let prompt = get("prompt_n").map(|read| read + cached.unwrap_or(0));
        self.prompt = self.prompt.or(prompt);
        self.completion = self.completion.or(get("predicted_n"));
        self.cached = self.cached.or(cached);
    }

    /// Whether the server has told what the request took.
    pub(super) fn are_known(&self) -> bool {
        self.prompt_tokens().is_some()
    }

    /// How many tokens the answer took, if the server told.
    pub(super) fn completion(&self) -> Option<u64> {
        self.completion
    }

    /// The figures, estimated from the sizes in bytes where the server reported none.
    pub(super) fn usage(&self, request_bytes: usize, answer_bytes: usize) -> Usage {
        let estimate = Usage::estimate(request_bytes, answer_bytes);
        let Some(mut prompt) = self.prompt_tokens() else {
            return estimate;
        };
        if let Some(cached) = self.cached
            && cached > prompt
        {
            // Servers that count like Anthropic leave what came from the cache out.
            prompt = prompt
                .saturating_add(cached)
                .saturating_add(self.written.unwrap_or(0));
        }
        // Some leave the reasoning out of the answer's tokens, but never out of the total.
        let rest = self.total.and_then(|total| total.checked_sub(prompt));
        let completion = self.completion.max(rest.filter(|&rest| rest > 0));
        Usage {
            prompt,
            completion: completion.unwrap_or(estimate.completion),
            cached: self.cached.map(|cached| cached.min(prompt)),
            estimated: completion.is_none(),
        }
    }

    /// The tokens of the request; servers that report zero report nothing.
    fn prompt_tokens(&self) -> Option<u64> {
        let parts = self.cached.zip(self.missed).map(|(hit, miss)| hit + miss);
        self.prompt.or(parts).filter(|&tokens| tokens > 0)
    }
}

fn replace(figure: &mut Option<u64>, new: Option<u64>) {
    if new.is_some() {
        *figure = new;
    }
}

/// A count, which may come as a float or as text. Nothing above 2^53 is one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be in range
fn count(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    (0.0..9e15).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(objects: &[Value]) -> (u64, u64, Option<u64>, bool) {
        let mut figures = Figures::default();
        for object in objects {
            figures.take(object);
        }
        let usage = figures.usage(400, 40);
        (
            usage.prompt,
            usage.completion,
            usage.cached,
            usage.estimated,
        )
    }

    /// The tables of the notes (4.1, 4.2).
    #[test]
    fn c14_figures_are_found_under_every_name() {
        for (server, objects, expected) in [
            (
                "OpenAI",
                vec![
                    json!({"prompt_tokens":100,"completion_tokens":9,"total_tokens":109,"prompt_tokens_details":{"cached_tokens":64}}),
                ],
                (100, 9, Some(64), false),
            ),
            (
                "DeepSeek",
                vec![
                    json!({"prompt_tokens":100,"completion_tokens":9,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}),
                ],
                (100, 9, Some(64), false),
            ),
            (
                "DeepSeek without prompt_tokens",
                vec![
                    json!({"completion_tokens":9,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}),
                ],
                (100, 9, Some(64), false),
            ),
            (
                "Moonshot",
                vec![json!({"prompt_tokens":100,"completion_tokens":9,"cached_tokens":64})],
                (100, 9, Some(64), false),
            ),
            (
                "Anthropic-shaped, cache left out of the prompt",
                vec![
                    json!({"input_tokens":10,"output_tokens":9,"cache_read_input_tokens":64,"cache_creation_input_tokens":6}),
                ],
                (80, 9, Some(64), false),
            ),
            (
                "Responses-shaped",
                vec![
                    json!({"input_tokens":100,"output_tokens":9,"input_tokens_details":{"cached_tokens":64}}),
                ],
                (100, 9, Some(64), false),
            ),
            (
                "xAI, reasoning outside completion",
                vec![
                    json!({"prompt_tokens":291,"completion_tokens":26,"total_tokens":513,"completion_tokens_details":{"reasoning_tokens":196}}),
                ],
                (291, 222, None, false),
            ),
            (
                "cumulative",
                vec![
                    json!({"prompt_tokens":100,"completion_tokens":1,"total_tokens":101}),
                    json!({"prompt_tokens":100,"completion_tokens":9,"total_tokens":109}),
                ],
                (100, 9, None, false),
            ),
            (
                "null after figures",
                vec![
                    json!({"prompt_tokens":100,"completion_tokens":9}),
                    json!({"prompt_tokens":null,"completion_tokens":null}),
                ],
                (100, 9, None, false),
            ),
            (
                "floats and text",
                vec![json!({"prompt_tokens":100.0,"completion_tokens":"9"})],
                (100, 9, None, false),
            ),
            (
                "zeros",
                vec![json!({"prompt_tokens":0,"completion_tokens":0})],
                (100, 10, None, true),
            ),
            ("none", vec![], (100, 10, None, true)),
            (
                "nonsense",
                vec![
                    json!({"prompt_tokens":-5,"completion_tokens":1e300}),
                    json!(7),
                ],
                (100, 10, None, true),
            ),
            (
                "no completion",
                vec![json!({"prompt_tokens":7})],
                (7, 10, None, true),
            ),
        ] {
            assert_eq!(usage(&objects), expected, "{server}");
        }
    }

    #[test]
    fn c14_timings_count_where_usage_says_nothing() {
        let mut figures = Figures::default();
        figures.take_timings(&json!({"prompt_n":36,"cache_n":64,"predicted_n":9}));
        assert_eq!(
            figures.usage(1, 1),
            Usage {
                prompt: 100,
                completion: 9,
                cached: Some(64),
                estimated: false
            }
        );
        figures.take(&json!({"prompt_tokens":99,"completion_tokens":8}));
        figures.take_timings(&json!({"prompt_n":36,"cache_n":64,"predicted_n":9}));
        assert_eq!(figures.usage(1, 1).prompt, 99);
    }
}
