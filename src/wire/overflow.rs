//! How servers say that the conversation is longer than the model's context window.

/// Codes that mean it by themselves. Lower case.
const CODES: &[&str] = &[
    "context_length_exceeded",
    "request_too_large",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "prompt_too_long",
    "model_context_exceeded",
    "model_context_window_exceeded",
    "tokens_limit_reached",
];

/// Fragments of messages, in lower case; all of one row have to be there.
const WORDINGS: &[&[&str]] = &[
    &["maximum context length"],
    &["exceeds the context window"],
    &["prompt is too long"],
    &["input is too long for requested model"],
    &["input token count", "exceeds the maximum"],
    &["maximum prompt length is"],
    &["reduce the length of the messages"],
    &["context length is only"],
    &["longer than the maximum model length"],
    &["longer than the model's context length"],
    &["inputs tokens + max_new_tokens must be"],
    &["maximum allowed input length"],
    &["exceeds the available context size"],
    &["greater than the context length"],
    &["prompt token count", "exceeds the limit of"],
    &["context window exceeds limit"],
    &["exceeded model token limit"],
    &["too large for model with"],
    &["context too long"],
    &["input too large"],
    &["couldn't fit with truncation"],
    &["prompt too long; exceeded max context length"],
    &["range of input length should be"],
    &["input too long:"],
    &["request body too large", "max size"],
];

/// Fragments that speak of a rate, whatever else the message says.
const RATES: &[&str] = &[
    "rate limit",
    "rate_limit",
    "too many requests",
    "tokens per minute",
    "please wait",
];

/// Whether a message, in lower case, speaks of a rate limit.
pub(super) fn is_rate_limit(text: &str) -> bool {
    RATES.iter().any(|fragment| text.contains(fragment)) || has_word(text, "tpm")
}

/// Whether an error says that the context is too long.
pub(super) fn is_overflow(codes: &[String], text: &str) -> bool {
    if is_rate_limit(text) {
        return false;
    }
    let by_code = codes
        .iter()
        .any(|code| CODES.contains(&code.to_ascii_lowercase().as_str()));
    by_code
        || WORDINGS
            .iter()
            .any(|row| row.iter().all(|fragment| text.contains(fragment)))
}

/// Whether `text` has `word` with neither letters, digits nor `_` beside it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, found)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text
            .get(at + found.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The context window that an overflow message states, in tokens.
pub(crate) fn stated_limit(message: &str) -> Option<u64> {
    const CUES: &[&str] = &[
        "maximum context length is ",
        "maximum prompt length is ",
        "maximum allowed input length is ",
        "context length is only ",
        "context length of only ",
        "exceeds the maximum number of tokens allowed (",
        "exceeds the limit of ",
        "exceeded model token limit: ",
        "exceeds the available context size (",
        "model's context length (",
        "maximum is ",
        "n_ctx: ",
        "n_ctx = ",
    ];
    let text = message.to_lowercase();
    CUES.iter()
        .filter_map(|cue| text.split_once(cue))
        .filter_map(|(_, rest)| {
            let digits: String = rest
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == ',')
                .filter(char::is_ascii_digit)
                .collect();
            digits.parse().ok()
        })
        .find(|limit| (512..=100_000_000).contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the notes (5.4).
    #[test]
    fn e9_overflow_is_known_by_code_or_wording() {
        for text in [
            "This model's maximum context length is 4096 tokens. However, you requested 5000",
            "Your input exceeds the context window of this model",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "Input is too long for requested model.",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens",
            "Please reduce the length of the messages or completion.",
            "The context length is only 4096 tokens",
            "The prompt is longer than the maximum model length of 4096",
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            "`inputs tokens + max_new_tokens must be <= 4097`",
            "exceeds the maximum allowed input length",
            "the request exceeds the available context size, try increasing it",
            "The number of tokens to keep from the initial prompt is greater than the context length",
            "prompt token count of 70000 exceeds the limit of 64000",
            "invalid params, context window exceeds limit (2013)",
            "Invalid request: Your request exceeded model token limit: 262144",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "prompt too long; exceeded max context length by 100 tokens",
            "Range of input length should be [1, 98304]",
            "input too long: 300000",
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        ] {
            assert!(is_overflow(&[], &text.to_lowercase()), "{text}");
        }
        for code in [
            "context_length_exceeded",
            "request_too_large",
            "tokens_limit_reached",
        ] {
            assert!(is_overflow(&[code.into()], ""), "{code}");
        }
    }

    #[test]
    fn e9_rate_limits_are_no_overflow() {
        for text in [
            "Rate limit reached: please reduce the length of the messages",
            "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000",
            "Too many tokens, please wait before trying again.",
            "Too Many Requests: prompt is too long",
            "output tpm exceeded",
        ] {
            assert!(!is_overflow(&[], &text.to_lowercase()), "{text}");
        }
    }

    #[test]
    fn b8_the_limit_is_learnt_from_the_message() {
        for (text, limit) in [
            (
                "This model's maximum context length is 4096 tokens.",
                Some(4096),
            ),
            ("maximum context length is 131,072 tokens", Some(131_072)),
            (
                "exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("maximum context length is exceeded", None),
            ("maximum context length is 3", None),
            ("maximum context length is 99999999999999999999999999", None),
        ] {
            assert_eq!(stated_limit(text), limit, "{text}");
        }
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("property 'reasoning' is unsupported", "reasoning"));
        assert!(!has_word(
            "property 'reasoning_content' is unsupported",
            "reasoning"
        ));
        assert!(has_word("reasoning", "reasoning"));
        assert!(!has_word("\u{e9}reasoning", "reasoning"));
    }
}
