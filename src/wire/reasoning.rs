//! Reasoning under its many names: what is shown of it, and what is kept to be sent back.
//!
//! What is kept is kept under the key it came in. Nothing is translated, nothing is invented.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::chunk::{Delta, Loose};
use crate::event::{Event, Sink};

/// The keys that carry reasoning as text, in the order in which they are shown.
const TEXTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The reasoning of one answer.
#[derive(Debug, Default)]
pub(super) struct Bag {
    texts: [Thread; 3],
    opaque: Option<String>,
    details: Vec<Value>,
    extra: Option<Value>,
}

/// What came under one key. An empty text counts as well: some servers want even that back.
#[derive(Debug, Default)]
struct Thread {
    text: String,
    pieces: usize,
}

impl Bag {
    /// Takes a piece in and shows it, once, whatever number of keys it comes under.
    pub(super) fn take(&mut self, delta: &mut Delta<'_>, sink: &mut dyn Sink) {
        let texts = [
            &delta.reasoning_content,
            &delta.reasoning,
            &delta.reasoning_text,
        ];
        for (thread, text) in self.texts.iter_mut().zip(texts) {
            if let Some(text) = text.text() {
                thread.text.push_str(text);
                thread.pieces += 1;
            }
        }
        let shown = texts
            .into_iter()
            .chain([&delta.thinking])
            .filter_map(Loose::text)
            .find(|text| !text.is_empty());
        let details = delta.reasoning_details.take();
        if let Some(text) = shown {
            sink.event(Event::Reasoning(text));
        } else if let Some(text) = details.as_ref().map(detail_text)
            && !text.is_empty()
        {
            sink.event(Event::Reasoning(&text));
        }
        if let Some(text) = delta.reasoning_opaque.text() {
            self.opaque = Some(text.to_owned());
        }
        if let Some(Value::Array(fragments)) = details {
            for fragment in fragments {
                merge(&mut self.details, fragment);
            }
        }
        if let Some(extra) = delta.extra_content.take() {
            self.extra = Some(extra);
        }
    }

    /// Whether there was any to speak of.
    pub(super) fn is_empty(&self) -> bool {
        self.size() == 0 && self.details.is_empty()
    }

    /// How many bytes of text have come, for an estimate of tokens.
    pub(super) fn size(&self) -> usize {
        self.texts
            .iter()
            .map(|thread| thread.text.len())
            .max()
            .unwrap_or_default()
    }

    /// The ids that entries of it share with tool calls.
    pub(super) fn ids(&self) -> HashSet<String> {
        self.details
            .iter()
            .filter_map(|entry| entry.get("id")?.as_str())
            .map(str::to_owned)
            .collect()
    }

    /// Puts what is to be sent back into the message.
    pub(super) fn store(self, message: &mut Map<String, Value>) {
        let [content, short, text] = &self.texts;
        // Two names for the same text: one copy is enough.
        let same = content.text == short.text && content.pieces > 0 && short.pieces > 0;
        let skip = match (same, short.pieces > content.pieces) {
            (false, _) => None,
            (true, true) => Some(0),
            (true, false) => Some(1),
        };
        for (at, (key, thread)) in TEXTS.iter().zip([content, short, text]).enumerate() {
            if thread.pieces > 0 && skip != Some(at) {
                message.insert((*key).into(), thread.text.as_str().into());
            }
        }
        if let Some(opaque) = self.opaque {
            message.insert("reasoning_opaque".into(), opaque.into());
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".into(), Value::Array(self.details));
        }
        if let Some(extra) = self.extra {
            message.insert("extra_content".into(), extra);
        }
    }
}

/// Adds a fragment to the entry it belongs to: by index, else by id, else the last of its type.
fn merge(entries: &mut Vec<Value>, fragment: Value) {
    let same = |key: &'static str| {
        let wanted = fragment.get(key).filter(|value| !value.is_null()).cloned();
        move |entry: &Value| wanted.is_some() && entry.get(key) == wanted.as_ref()
    };
    let has = |key: &str| fragment.get(key).is_some_and(|value| !value.is_null());
    let at = if has("index") {
        entries.iter().rposition(same("index"))
    } else if has("id") {
        entries.iter().rposition(same("id"))
    } else {
        let of_type = same("type");
        entries
            .len()
            .checked_sub(1)
            .filter(|&last| entries.get(last).is_some_and(of_type))
    };
    let entry = at.and_then(|at| entries.get_mut(at));
    match (entry, fragment) {
        (Some(Value::Object(entry)), Value::Object(fragment)) => extend(entry, fragment),
        (_, fragment) => entries.push(fragment),
    }
}

fn extend(entry: &mut Map<String, Value>, fragment: Map<String, Value>) {
    for (key, value) in fragment {
        match (entry.get_mut(&key), value) {
            (Some(_), Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if key == "text" || key == "summary" =>
            {
                text.push_str(&more);
            }
            (Some(present), value) => *present = value,
            (None, value) => {
                entry.insert(key, value);
            }
        }
    }
}

/// The readable part of `reasoning_details`.
fn detail_text(details: &Value) -> String {
    let entries = details.as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.get("text").or(entry.get("summary"))?.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Shown(String);

    impl Sink for Shown {
        fn event(&mut self, event: Event<'_>) {
            let Event::Reasoning(text) = event else {
                panic!("{event:?}")
            };
            self.0.push_str(text);
        }
    }

    fn take(deltas: &[Value]) -> (String, Value) {
        let mut shown = Shown::default();
        let mut bag = Bag::default();
        for delta in deltas {
            let text = delta.to_string();
            bag.take(&mut serde_json::from_str(&text).unwrap(), &mut shown);
        }
        let mut message = Map::new();
        bag.store(&mut message);
        (shown.0, Value::Object(message))
    }

    /// The table of the notes (3.1): deltas, what is shown, what is stored.
    #[test]
    fn c5_reasoning_is_shown_once_and_kept_under_its_key() {
        for (deltas, shown, stored) in [
            (
                vec![
                    json!({"reasoning_content": "a"}),
                    json!({"reasoning_content": "b"}),
                ],
                "ab",
                json!({"reasoning_content": "ab"}),
            ),
            (
                vec![json!({"reasoning": "a"})],
                "a",
                json!({"reasoning": "a"}),
            ),
            (
                vec![json!({"reasoning": "a", "reasoning_content": "a"})],
                "a",
                json!({"reasoning_content": "a"}),
            ),
            (
                vec![
                    json!({"reasoning": "a"}),
                    json!({"reasoning": "b", "reasoning_content": "ab"}),
                ],
                "aab",
                json!({"reasoning": "ab"}),
            ),
            (
                vec![json!({"reasoning": "a", "reasoning_content": "b"})],
                "b",
                json!({"reasoning_content": "b", "reasoning": "a"}),
            ),
            (
                vec![json!({"reasoning_text": "a", "reasoning_opaque": "O"})],
                "a",
                json!({"reasoning_text": "a", "reasoning_opaque": "O"}),
            ),
            (
                vec![
                    json!({"reasoning_content": ""}),
                    json!({"reasoning_content": null}),
                ],
                "",
                json!({"reasoning_content": ""}),
            ),
            (vec![json!({"reasoning_content": null})], "", json!({})),
            (vec![json!({"thinking": "a"})], "a", json!({})),
            (
                vec![json!({"extra_content": {"google": {"thought_signature": "S"}}})],
                "",
                json!({"extra_content": {"google": {"thought_signature": "S"}}}),
            ),
        ] {
            assert_eq!(take(&deltas), (shown.to_owned(), stored), "{deltas:?}");
        }
    }

    #[test]
    fn c6_fragments_of_reasoning_details_are_merged_with_signature_and_order() {
        let (shown, stored) = take(&[
            json!({"reasoning_details": [{"type":"reasoning.text","index":0,"text":"a","signature":null}]}),
            json!({"reasoning_details": [{"type":"reasoning.text","index":0,"text":"b"}]}),
            json!({"reasoning_details": [{"type":"reasoning.text","index":0,"signature":"S"}]}),
            json!({"reasoning_details": [{"type":"reasoning.encrypted","index":1,"id":"call_1","data":"D"}]}),
            json!({"reasoning_details": null}),
        ]);
        assert_eq!(shown, "ab");
        assert_eq!(
            stored["reasoning_details"],
            json!([
                {"type":"reasoning.text","index":0,"text":"ab","signature":"S"},
                {"type":"reasoning.encrypted","index":1,"id":"call_1","data":"D"},
            ])
        );
    }

    #[test]
    fn c6_fragments_without_index_go_by_id_or_type() {
        let (_, stored) = take(&[
            json!({"reasoning_details": [{"type":"reasoning.summary","id":"x","summary":"a"}]}),
            json!({"reasoning_details": [{"type":"reasoning.summary","id":"x","summary":"b"}]}),
            json!({"reasoning_details": [{"type":"reasoning.text","text":"c"}]}),
            json!({"reasoning_details": [{"type":"reasoning.text","text":"d"}, "odd"]}),
        ]);
        assert_eq!(
            stored["reasoning_details"],
            json!([
                {"type":"reasoning.summary","id":"x","summary":"ab"},
                {"type":"reasoning.text","text":"cd"},
                "odd",
            ])
        );
    }

    #[test]
    fn entries_that_share_an_id_with_a_call_are_known() {
        let mut bag = Bag::default();
        let text =
            json!({"reasoning_details": [{"id":"call_1","data":"D"}, {"text":"x"}]}).to_string();
        bag.take(
            &mut serde_json::from_str(&text).unwrap(),
            &mut Shown::default(),
        );
        assert_eq!(bag.ids(), HashSet::from(["call_1".to_owned()]));
    }
}
