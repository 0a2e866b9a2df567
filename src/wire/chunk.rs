//! The JSON of a chunk, read in one pass and mostly without copying.
//!
//! Servers disagree about the type of nearly every field, so a field takes what comes
//! ([`Loose`]), and only a shape that is wrong altogether fails.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A field that should be text, and may be anything.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Loose<'a> {
    /// Missing or null.
    #[default]
    Null,
    Text(Cow<'a, str>),
    Other(Value),
}

impl Loose<'_> {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Other(_) => None,
        }
    }

    /// The text, or the number or object written out.
    pub(super) fn written(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Other(value) => Some(Cow::Owned(value.to_string())),
        }
    }

    /// The whole number, also one that is written as text.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Null => None,
            Self::Text(text) => text.trim().parse().ok(),
            Self::Other(value) => value.as_u64(),
        }
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::<Value>::deserialize(de::value::SeqAccessDeserializer::new(seq))
            .map(|items| Loose::Other(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Map::<String, Value>::deserialize(de::value::MapAccessDeserializer::new(map))
            .map(|map| Loose::Other(Value::Object(map)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

/// One chunk of a stream, or a whole answer that came in one piece.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Value>,
    pub(super) x_groq: Option<Value>,
    pub(super) timings: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) base_resp: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Loose<'a>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

/// A piece of the assistant message, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Loose<'a>,
    #[serde(borrow)]
    pub(super) refusal: Loose<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Loose<'a>,
    #[serde(borrow)]
    pub(super) reasoning: Loose<'a>,
    #[serde(borrow)]
    pub(super) reasoning_text: Loose<'a>,
    #[serde(borrow)]
    pub(super) reasoning_opaque: Loose<'a>,
    #[serde(borrow)]
    pub(super) thinking: Loose<'a>,
    pub(super) reasoning_details: Option<Value>,
    pub(super) extra_content: Option<Value>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Entry<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

/// A piece of a tool call, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) index: Loose<'a>,
    #[serde(borrow)]
    pub(super) id: Loose<'a>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Loose<'a>,
    #[serde(borrow)]
    pub(super) arguments: Loose<'a>,
}

/// The text with escapes of half a surrogate pair replaced: some servers cut an emoji in two
/// between chunks, and a strict parser would lose the whole chunk. `None` where there are none.
pub(super) fn mend_surrogates(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                found = true;
                mended.push('\u{fffd}');
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => escape
                .char_indices()
                .nth(2)
                .map_or(escape.len(), |(next, _)| next),
        };
        let (kept, after) = escape.split_at(taken);
        mended.push_str(kept);
        rest = after;
    }
    mended.push_str(rest);
    found.then_some(mended)
}

/// The code unit of the escape `\uXXXX` that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_take_what_comes() {
        let chunk: Chunk<'_> = serde_json::from_str(
            r#"{"id":1,"choices":[{"index":0,"delta":{"role":null,"content":"a","reasoning":["x"],
            "tool_calls":[{"index":"1","id":5,"function":{"name":null,"arguments":{"a":1}}}]}}],"usage":null}"#,
        )
        .unwrap();
        let choice = &chunk.choices.unwrap()[0];
        let delta = choice.delta.as_ref().unwrap();
        assert_eq!(delta.content, Loose::Text(Cow::Borrowed("a")));
        assert!(matches!(delta.content, Loose::Text(Cow::Borrowed(_))));
        assert_eq!(delta.reasoning, Loose::Other(json!(["x"])));
        assert_eq!(choice.finish_reason, Loose::Null);
        let entry = &delta.tool_calls.as_ref().unwrap()[0];
        assert_eq!(entry.index.number(), Some(1));
        assert_eq!(entry.id.written().unwrap(), "5");
        let function = entry.function.as_ref().unwrap();
        assert_eq!(function.name, Loose::Null);
        assert_eq!(function.arguments.written().unwrap(), r#"{"a":1}"#);
        assert_eq!(chunk.usage, None);
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_the_rest_kept() {
        for (text, mended) in [
            (r#""\ud83d""#, Some("\"\u{fffd}\"")),
            (r#""\ude00x""#, Some("\"\u{fffd}x\"")),
            (r#""\ud83d\ude00""#, None),
            (
                r#""\ud83d\ude00\ud83d!""#,
                Some("\"\\ud83d\\ude00\u{fffd}!\""),
            ),
            (r#""\\ud83d""#, None),
            (r#""\é\u""#, None),
            ("\\", None),
            ("plain", None),
        ] {
            assert_eq!(mend_surrogates(text).as_deref(), mended, "{text}");
        }
    }
}
