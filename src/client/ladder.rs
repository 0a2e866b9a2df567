//! What to leave out or spell otherwise when a server refuses a request by name (SPEC C3).
//!
//! Each step changes one thing in the [`Dialect`], and no step is taken twice.

use serde_json::Value;

use super::failure::Failure;
use crate::error::{ApiErrorKind, EMPTY_MESSAGE_REFUSED};
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
        // Nothing can be left out instead of the tools.
        _ if refuses_tools(refusal) => None,
        ApiErrorKind::NotFound => complaint.about_parameters(dialect),
        ApiErrorKind::BadRequest => complaint
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
            && !self.says(&[EMPTY_MESSAGE_REFUSED]);
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::model::Request;

    /// A history in which an answer brought extras from here, and one had no text.
    fn history(extras: &Value) -> Vec<Message> {
        let mut answer = json!({"role":"assistant","content":"","_origin":{"endpoint":"e","model":"m"},
            "tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{}"}}]});
        for (key, value) in extras.as_object().unwrap() {
            answer[key] = value.clone();
        }
        vec![
            Message::user("u"),
            serde_json::from_value(answer).unwrap(),
            Message::tool("call_1", "ok"),
        ]
    }

    fn parameters() -> Map<String, Value> {
        let parameters = json!({"temperature":0.7,"reasoning_effort":"high","max_tokens":10,"user":"me","top_k":1});
        parameters.as_object().unwrap().clone()
    }

    fn climb(
        dialect: &mut Dialect,
        messages: &[Message],
        parameters: &Map<String, Value>,
        stream: bool,
        status: u16,
        body: &str,
    ) -> Option<String> {
        let question = Question {
            request: Request {
                messages,
                tools: &[],
            },
            endpoint: "e",
            model: "m",
            parameters,
            stream,
        };
        let refusal = Refusal::from_answer(status, None, body);
        step(dialect, &question, &Failure::Refused(refusal))
    }

    fn message(text: &str) -> String {
        json!({"error": {"message": text}}).to_string()
    }

    /// The table of the notes (4.3): what a server says, and what changes.
    #[test]
    fn c3_a_refused_parameter_is_found_by_its_name() {
        let drops = |names: &[&str]| Dialect {
            dropped: names.iter().map(|name| (*name).into()).collect(),
            ..Dialect::default()
        };
        for (status, body, expected) in [
            (400, message("Unrecognized request argument supplied: stream_options"), drops(&["stream_options"])),
            (422, json!({"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"no"}]}).to_string(), drops(&["stream_options"])),
            (400, message("Unsupported parameter: 'reasoning_effort' is not supported with this model."), drops(&["reasoning_effort"])),
            (400, message("Model grok-4 does not support parameter reasoningEffort."), drops(&["reasoning_effort"])),
            (400, message("\"llama3\" does not support thinking"), drops(&["reasoning_effort"])),
            (400, message("'temperature' does not support 0.7 with this model. Only the default (1) value is supported."), drops(&["temperature"])),
            (404, message("No endpoint supports temperature"), drops(&["temperature"])),
            (500, json!({"error":{"message":"1 validation error: temperature: Input should be 1"}}).to_string(), drops(&["temperature"])),
            (400, message("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), Dialect { other_limit: true, ..Dialect::default() }),
            (400, message("unknown field `top_k`"), drops(&["top_k"])),
            (400, message("Additional property 'user' is not allowed"), drops(&["user"])),
            (
                400,
                json!({"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Unknown parameter: \\u0027temperature\\u0027\"}}"}}}).to_string(),
                drops(&["temperature"]),
            ),
        ] {
            let mut dialect = Dialect::default();
            let told = climb(&mut dialect, &[], &parameters(), true, status, &body);
            assert_eq!(dialect, expected, "{body}");
            assert!(told.is_some());
        }
    }

    #[test]
    fn c3_other_refusals_change_nothing() {
        for (status, body) in [
            (400, message("roles must alternate user/assistant")),
            (400, message("invalid user message")),
            (400, message("content or tool_calls must be set")),
            (400, message("model is not available")),
            (401, message("temperature")),
            (429, message("temperature")),
            (503, message("temperature")),
            (
                400,
                message("This model's maximum context length is 4096 tokens; temperature"),
            ),
        ] {
            let mut dialect = Dialect::default();
            let told = climb(
                &mut dialect,
                &history(&json!({})),
                &parameters(),
                true,
                status,
                &body,
            );
            assert_eq!((told, dialect), (None, Dialect::default()), "{body}");
        }
        let mut dialect = Dialect::default();
        assert_eq!(
            climb(
                &mut dialect,
                &[],
                &Map::new(),
                false,
                400,
                &message("stream_options, temperature")
            ),
            None
        );
    }

    #[test]
    fn c3_a_limit_refused_under_both_names_is_left_out() {
        let mut dialect = Dialect::default();
        climb(
            &mut dialect,
            &[],
            &parameters(),
            true,
            400,
            &message("'max_tokens' is unsupported"),
        );
        climb(
            &mut dialect,
            &[],
            &parameters(),
            true,
            400,
            &message("'max_completion_tokens' is unsupported"),
        );
        assert_eq!(dialect.dropped, ["max_tokens"]);
        assert_eq!(
            climb(
                &mut dialect,
                &[],
                &parameters(),
                true,
                400,
                &message("'max_tokens' is unsupported")
            ),
            None
        );
    }

    #[test]
    fn e9_room_promised_to_the_answer_goes_before_the_conversation_does() {
        let text = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (904 in the messages, 4096 in the completion).";
        let mut dialect = Dialect::default();
        assert!(climb(&mut dialect, &[], &parameters(), true, 400, &message(text)).is_some());
        assert_eq!(dialect.dropped, ["max_tokens"]);
        assert_eq!(
            climb(&mut dialect, &[], &parameters(), true, 400, &message(text)),
            None
        );
        assert_eq!(
            climb(
                &mut Dialect::default(),
                &[],
                &Map::new(),
                true,
                400,
                &message(text)
            ),
            None
        );
    }

    #[test]
    fn c3_servers_that_answer_in_one_way_only_get_it() {
        let mut dialect = Dialect::default();
        assert!(
            climb(
                &mut dialect,
                &[],
                &Map::new(),
                true,
                400,
                &message("stream is not supported")
            )
            .is_some()
        );
        assert_eq!(dialect.stream, Some(false));
        let mut dialect = Dialect::default();
        let text = "This model only support stream mode, please enable the stream parameter";
        assert!(climb(&mut dialect, &[], &Map::new(), false, 400, &message(text)).is_some());
        assert_eq!(dialect.stream, Some(true));
        assert_eq!(
            climb(&mut dialect, &[], &Map::new(), false, 400, &message(text)),
            None
        );
    }

    /// The tables of the notes (3.2, 3.3).
    #[test]
    fn c6_refused_and_missing_extras_are_told_apart() {
        let reasoning = json!({"reasoning_content":"r"});
        for (extras, body, expected) in [
            (&reasoning, message("property 'reasoning_content' is unsupported"), Extras::Strip),
            (&json!({"reasoning":"r"}), message("reasoning is not supported with this model"), Extras::Strip),
            (&reasoning, json!({"message":"m","code":"wrong_api_format"}).to_string(), Extras::Strip),
            (
                &reasoning,
                json!({"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"reasoning_content"],"msg":"Extra inputs are not permitted"}]}).to_string(),
                Extras::Strip,
            ),
            (&reasoning, message("Missing `reasoning_content` field at index 2"), Extras::Pad),
            (&json!({}), message("the reasoning_content in the thinking mode must be passed back to the API"), Extras::Pad),
            (&json!({}), message("thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"), Extras::Pad),
            (&json!({}), message("property 'reasoning_content' is unsupported"), Extras::Mirror),
            (&json!({}), message("Extra inputs are not permitted"), Extras::Mirror),
        ] {
            let mut dialect = Dialect::default();
            climb(&mut dialect, &history(extras), &Map::new(), true, 400, &body);
            assert_eq!(dialect.extras, expected, "{body}");
        }
    }

    #[test]
    fn c6_refused_and_missing_do_not_play_ping_pong() {
        let messages = history(&json!({"reasoning_content":"r"}));
        let mut dialect = Dialect::default();
        let refused = message("property 'reasoning_content' is unsupported");
        let missing = message("reasoning_content is missing");
        assert!(climb(&mut dialect, &messages, &Map::new(), true, 400, &refused).is_some());
        assert_eq!(
            climb(&mut dialect, &messages, &Map::new(), true, 400, &missing),
            None
        );
        assert_eq!(
            climb(&mut dialect, &messages, &Map::new(), true, 400, &refused),
            None
        );
    }

    #[test]
    fn c6_a_missing_signature_gets_the_stand_in_once() {
        let text = message("Function call is missing a thought_signature in functionCall parts.");
        let mut dialect = Dialect::default();
        assert!(
            climb(
                &mut dialect,
                &history(&json!({})),
                &Map::new(),
                true,
                400,
                &text
            )
            .is_some()
        );
        assert!(dialect.signatures);
        assert_eq!(
            climb(
                &mut dialect,
                &history(&json!({})),
                &Map::new(),
                true,
                400,
                &text
            ),
            None
        );
    }

    #[test]
    fn c6_empty_content_goes_down_its_own_ladder() {
        let messages = history(&json!({}));
        let mut dialect = Dialect::default();
        for (body, expected) in [
            (
                message("messages: text content blocks must be non-empty"),
                NoText::Null,
            ),
            (
                message("each message must have at least one content element"),
                NoText::Absent,
            ),
        ] {
            assert!(climb(&mut dialect, &messages, &Map::new(), true, 400, &body).is_some());
            assert_eq!(dialect.no_text, expected);
        }
        assert_eq!(
            climb(
                &mut dialect,
                &messages,
                &Map::new(),
                true,
                400,
                &message("content is null")
            ),
            None
        );
        let no_such = [Message::user("u"), Message::assistant("a")];
        assert_eq!(
            climb(
                &mut Dialect::default(),
                &no_such,
                &Map::new(),
                true,
                400,
                &message("content is empty")
            ),
            None
        );
    }

    #[test]
    fn ids_of_a_form_that_is_refused_are_shortened() {
        for body in [
            json!({"object":"error","message":"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.","code":"3280"}).to_string(),
            message("Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40"),
            message("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        ] {
            let mut dialect = Dialect::default();
            assert!(climb(&mut dialect, &history(&json!({})), &Map::new(), true, 400, &body).is_some(), "{body}");
            assert!(dialect.short_ids);
            assert_eq!(climb(&mut dialect, &history(&json!({})), &Map::new(), true, 400, &body), None);
        }
    }

    #[test]
    fn c3_a_refusal_without_a_reason_costs_all_that_is_often_refused() {
        let mut dialect = Dialect::default();
        assert!(climb(&mut dialect, &[], &parameters(), true, 400, "").is_some());
        assert_eq!(
            dialect.dropped,
            ["stream_options", "reasoning_effort", "temperature"]
        );
        assert_eq!(climb(&mut dialect, &[], &parameters(), true, 400, ""), None);
        assert_eq!(
            climb(&mut Dialect::default(), &[], &Map::new(), false, 400, ""),
            None
        );
    }

    #[test]
    fn models_without_tools_are_known() {
        for (status, text, expected) in [
            (
                400,
                "registry.ollama.ai/library/x does not support tools",
                true,
            ),
            (404, "No endpoints found that support tool use.", true),
            (404, "model not found", false),
        ] {
            assert_eq!(
                refuses_tools(&Refusal::from_answer(status, None, &message(text))),
                expected
            );
        }
    }
}
