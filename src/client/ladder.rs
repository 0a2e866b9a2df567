//! What to leave out or spell otherwise when a server refuses a request by name (SPEC C3).
//!
//! Each step changes one thing in the [`Dialect`], and no step is taken twice.

use serde_json::Value;

use super::exchange::Failure;
use crate::error::ApiErrorKind;
use crate::message::Message;
use crate::wire::{Dialect, EXTRAS, Extras, NoText, Question, Refusal, has_word};

/// How many steps one request may take.
pub(super) const MOST_STEPS: usize = 4;

/// The optional keys that everything is tried without where a server gives no reason.
const SUSPECTS: [&str; 3] = ["stream_options", "reasoning_effort", "temperature"];

/// What servers say of a key that they do not take.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
    "extra inputs",
    "additional propert",
    "invalid",
    "deprecated",
    "no longer",
];

/// What servers say of a key that they miss.
const DEMANDS: &[&str] = &["missing", "required", "passed back", "must be provided"];

/// Changes the dialect so that the server may take the request, and says what was changed.
///
/// `None` where nothing that was sent optionally is to blame.
pub(super) fn step(
    dialect: &mut Dialect,
    question: &Question<'_>,
    failure: &Failure,
) -> Option<String> {
    let Failure::Refused(refusal) = failure else {
        return None;
    };
    let complaint = Complaint {
        text: &refusal.text,
        question,
    };
    match refusal.error.kind {
        ApiErrorKind::ContextLength => complaint.about_limit(dialect),
        ApiErrorKind::BadRequest | ApiErrorKind::NotFound => complaint
            .about_parameters(dialect)
            .or_else(|| complaint.about_stream(dialect))
            .or_else(|| complaint.about_extras(dialect))
            .or_else(|| complaint.about_ids(dialect, refusal))
            .or_else(|| complaint.about_content(dialect))
            .or_else(|| complaint.about_nothing(dialect, refusal)),
        _ => None,
    }
}

/// Whether a refusal says that the model cannot call tools.
pub(super) fn refuses_tools(refusal: &Refusal) -> bool {
    let text = &refusal.text;
    [
        "does not support tools",
        "support tool use",
        "does not support function calling",
    ]
    .iter()
    .any(|wording| text.contains(wording))
}

struct Complaint<'a> {
    /// All that the server says, in lower case.
    text: &'a str,
    question: &'a Question<'a>,
}

impl Complaint<'_> {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    /// Whether it is about this key of the request.
    fn names(&self, key: &str) -> bool {
        let key = key.to_lowercase();
        let spellings = [
            key.clone(),
            key.replace('_', ""),
            key.replace('_', "."),
            key.replace('_', " "),
        ];
        let is_named = spellings
            .iter()
            .any(|spelling| has_word(self.text, spelling));
        // A short name may be any word of a sentence.
        let is_distinctive = key.contains('_') || key == "temperature";
        is_named && (is_distinctive || (self.says(REFUSALS) && self.quotes(&key)))
    }

    /// Whether the key stands in quotes, or as the end of a path.
    fn quotes(&self, key: &str) -> bool {
        ["'", "\"", "`", "\\\""]
            .iter()
            .any(|quote| self.text.contains(&format!("{quote}{key}{quote}")))
            || self.text.contains(&format!("body.{key}"))
            || self.text.contains(&format!(": {key}"))
    }

    /// Optional keys, in the order in which they are most often to blame.
    fn about_parameters(&self, dialect: &mut Dialect) -> Option<String> {
        let streams = dialect.stream.unwrap_or(self.question.stream);
        let parameters = self.question.parameters;
        let first = ["reasoning_effort", "reasoning", "temperature"];
        let first = first
            .into_iter()
            .filter(|key| parameters.contains_key(*key));
        let keys = streams
            .then_some("stream_options")
            .into_iter()
            .chain(first)
            .chain(parameters.keys().map(String::as_str));
        for key in keys {
            let is_dropped = dialect.dropped.iter().any(|dropped| dropped == key);
            if is_dropped || !self.blames(key, dialect) {
                continue;
            }
            let other = match key {
                "max_tokens" => Some("max_completion_tokens"),
                "max_completion_tokens" => Some("max_tokens"),
                _ => None,
            };
            if let Some(other) = other
                && !dialect.other_limit
                && !parameters.contains_key(other)
            {
                dialect.other_limit = true;
                return Some(format!(
                    "`{key}` is refused; it is sent as `{other}` from now on"
                ));
            }
            return Some(drop(dialect, key));
        }
        None
    }

    /// Whether it is about `key`, in the spelling in which it was sent or in words of its own.
    fn blames(&self, key: &str, dialect: &Dialect) -> bool {
        match key {
            "max_tokens" | "max_completion_tokens" if dialect.other_limit => {
                self.names("max_tokens") || self.names("max_completion_tokens")
            }
            "reasoning_effort" => self.names(key) || self.says(&["not support thinking"]),
            "reasoning" => self.names(key) && !self.question_has_extra("reasoning"),
            _ => self.names(key),
        }
    }

    /// Too long only because of the room that the answer was promised.
    fn about_limit(&self, dialect: &mut Dialect) -> Option<String> {
        let is_promised = self.says(&[
            "in the completion",
            "output tokens",
            "max_tokens",
            "max_completion_tokens",
        ]);
        let keys = ["max_tokens", "max_completion_tokens"];
        let key = keys.into_iter().find(|key| {
            self.question.parameters.contains_key(*key)
                && !dialect.dropped.iter().any(|dropped| dropped == key)
        })?;
        is_promised.then(|| drop(dialect, key))
    }

    /// Servers that answer in one way only.
    fn about_stream(&self, dialect: &mut Dialect) -> Option<String> {
        if dialect.stream.is_some() || !has_word(self.text, "stream") {
            return None;
        }
        if self.question.stream && self.says(&["not support", "unsupported"]) {
            dialect.stream = Some(false);
            return Some("streaming is refused; answers come in one piece from now on".into());
        }
        if !self.question.stream
            && self.says(&[
                "only support",
                "must be true",
                "must be set to true",
                "enable",
            ])
        {
            dialect.stream = Some(true);
            return Some("only streaming is supported; answers are streamed from now on".into());
        }
        None
    }

    /// The provider's own fields: refused, missed, or without their signature.
    fn about_extras(&self, dialect: &mut Dialect) -> Option<String> {
        if self.text.contains("thought_signature") || self.text.contains("thought signature") {
            let first_time = !std::mem::replace(&mut dialect.signatures, true);
            return first_time
                .then(|| "a signature is missing; calls get the documented stand-in".into());
        }
        if dialect.extras != Extras::Mirror {
            // One of the two was tried: the other would only bring the first complaint back.
            return None;
        }
        if has_word(self.text, "reasoning_content") && self.says(DEMANDS) {
            dialect.extras = Extras::Pad;
            return Some("earlier reasoning is missing; it is filled in from now on".into());
        }
        let named = EXTRAS
            .iter()
            .any(|key| has_word(self.text, key) && self.question_has_extra(key));
        let general = self.says(&[
            "extra_forbidden",
            "extra inputs",
            "additional propert",
            "unknown parameter",
            "wrong_api_format",
            "not supported",
            "unsupported",
        ]) && EXTRAS.iter().any(|key| self.question_has_extra(key));
        if (named || general) && !self.says(DEMANDS) {
            dialect.extras = Extras::Strip;
            return Some("earlier reasoning is refused; it is left out from now on".into());
        }
        None
    }

    /// Whether an answer of this endpoint and model in the history has this field.
    fn question_has_extra(&self, key: &str) -> bool {
        self.question.mirrored().any(|message| {
            let calls = message.as_map().get("tool_calls").and_then(Value::as_array);
            message.as_map().contains_key(key)
                || calls.is_some_and(|calls| calls.iter().any(|call| call.get(key).is_some()))
        })
    }

    /// Ids of calls in a form that the server does not take.
    fn about_ids(&self, dialect: &mut Dialect, refusal: &Refusal) -> Option<String> {
        let is_code = refusal.error.code.as_deref() == Some("3280");
        let is_named = self.says(&[
            "tool_call_id",
            "tool call id",
            "call_id",
            "tool_calls[",
            "tool_use_id",
            "tool_use.id",
        ]);
        let is_form = self.says(&["length", "too long", "a-z", "pattern", "at most"]);
        if dialect.short_ids || !(is_code || (is_named && is_form)) {
            return None;
        }
        dialect.short_ids = true;
        Some("the form of the call ids is refused; they are shortened from now on".into())
    }

    /// What stands for a missing text beside calls.
    fn about_content(&self, dialect: &mut Dialect) -> Option<String> {
        let is_sent = self
            .question
            .request
            .messages
            .iter()
            .any(|message: &Message| message.role() == "assistant" && message.text().is_empty());
        let is_meant = (has_word(self.text, "content") || self.says(&["text block"]))
            && self.says(&[
                "empty",
                "null",
                "none",
                "at least one",
                "text block",
                "valid string",
                "required",
                "missing",
            ])
            && !self.says(&["content or tool_calls must be set"]);
        if !is_sent || !is_meant {
            return None;
        }
        let (next, what) = match dialect.no_text {
            NoText::Empty => (NoText::Null, "null"),
            NoText::Null => (NoText::Absent, "left out"),
            NoText::Absent => return None,
        };
        dialect.no_text = next;
        Some(format!(
            "empty content beside calls is refused; it is {what} from now on"
        ))
    }

    /// A refusal that gives no reason: everything that is often refused goes at once.
    fn about_nothing(&self, dialect: &mut Dialect, refusal: &Refusal) -> Option<String> {
        let is_mute = refusal.text.trim().is_empty() && refusal.error.status == Some(400);
        let suspects: Vec<&str> = SUSPECTS
            .into_iter()
            .filter(|key| match *key {
                "stream_options" => dialect.stream.unwrap_or(self.question.stream),
                key => self.question.parameters.contains_key(key),
            })
            .filter(|key| !dialect.dropped.iter().any(|dropped| dropped == key))
            .collect();
        if !is_mute || suspects.is_empty() {
            return None;
        }
        dialect
            .dropped
            .extend(suspects.iter().map(|key| (*key).to_owned()));
        Some(format!(
            "the request is refused without a reason; it goes on without `{}`",
            suspects.join("`, `")
        ))
    }
}

fn drop(dialect: &mut Dialect, key: &str) -> String {
    dialect.dropped.push(key.to_owned());
    format!("`{key}` is refused; it is left out from now on")
}
