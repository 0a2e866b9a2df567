//! Wire formats: a request to bytes, bytes to a reply.
//!
//! A format knows how a provider spells things; it owns no connection, no clock and no memory
//! beyond one answer. The client owns those, and tells the format through [`Dialect`] what this
//! endpoint has refused so far.

mod arguments;
mod body;
mod calls;
mod chat;
mod chunk;
mod errors;
mod overflow;
mod reasoning;
mod sse;
mod think;
mod tokens;
mod verdict;
mod waits;

use serde_json::{Map, Value, json};

use crate::event::Sink;
use crate::message::{Message, ORIGIN};
use crate::model::{Reply, Request};

pub(crate) use body::EXTRAS;
pub use chat::ChatCompletions;
pub use errors::Refusal;
pub(crate) use overflow::{has_word, stated_limit};

/// A way to spell requests and answers. The only one yet is [`ChatCompletions`].
pub trait Wire {
    /// What follows the endpoint's address.
    fn path(&self) -> &'static str;

    /// The request's body: the same question in the same dialect gives the same bytes (SPEC C2).
    fn body(&self, question: &Question<'_>, dialect: &Dialect) -> Vec<u8>;

    /// What reads the answer to that request, whose body has `sent` bytes.
    fn decoder(&self, question: &Question<'_>, sent: usize) -> Box<dyn Decoder>;
}

/// Everything a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The conversation and the tools.
    pub request: Request<'a>,
    /// The endpoint: with the model, it decides which messages get their extras back.
    pub endpoint: &'a str,
    /// The model's id.
    pub model: &'a str,
    /// What is forwarded, in file order.
    pub parameters: &'a Map<String, Value>,
    /// Whether the answer is to come in pieces.
    pub stream: bool,
}

impl<'a> Question<'a> {
    /// The answers in the history that came from this endpoint and model.
    pub fn mirrored(&self) -> impl Iterator<Item = &'a Message> + use<'a> {
        let origin = self.origin();
        let messages = self.request.messages.iter();
        messages.filter(move |message| message.as_map().get(ORIGIN) == Some(&origin))
    }

    /// What is noted of where an answer comes from.
    fn origin(&self) -> Value {
        json!({"endpoint": self.endpoint, "model": self.model})
    }
}

/// Reads one answer, fed with bytes as they come.
pub trait Decoder {
    /// Takes bytes in, cut anywhere, and tells `sink` what they bring.
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<Fed, Fault>;

    /// The whole reply, once the body has ended or nothing more is awaited.
    fn finish(self: Box<Self>, sink: &mut dyn Sink) -> Result<Reply, Fault>;
}

/// What some bytes amounted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Whether there was more in them than signs of life such as comments.
    pub progress: bool,
    /// How far the answer is.
    pub stage: Stage,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// More is to come.
    #[default]
    Open,
    /// The model has finished; token figures may follow.
    Finished,
    /// Nothing more is to come.
    Closed,
}

/// Why bytes are no reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The server says that it failed, or why it refuses.
    Refused(Refusal),
    /// The answer ended before it was whole; asking again may help.
    Incomplete(String),
    /// It is no answer of this format at all; asking again does not help.
    Foreign(String),
}

/// How an endpoint and model want things spelt, learnt from what they refused (SPEC C3).
///
/// The default is what most servers take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Optional top-level keys that are left out.
    pub dropped: Vec<String>,
    /// Whether `max_tokens` and `max_completion_tokens` change places.
    pub other_limit: bool,
    /// Whether to stream, where the server accepts one way only.
    pub stream: Option<bool>,
    /// What happens to the provider's own fields of earlier answers.
    pub extras: Extras,
    /// Whether calls without a thought signature get the documented stand-in.
    pub signatures: bool,
    /// What the content of an assistant message without text is.
    pub no_text: NoText,
    /// Whether call ids are mapped to nine letters and digits.
    pub short_ids: bool,
}

/// What happens to the provider's own fields of earlier answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extras {
    /// Sent back as they came, to where they came from.
    #[default]
    Mirror,
    /// Left out: the server refuses them.
    Strip,
    /// Mirrored, and `reasoning_content` is filled in where it is missing: the server insists.
    Pad,
}

/// What the content of an assistant message without text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoText {
    /// `""`
    #[default]
    Empty,
    /// `null`
    Null,
    /// No such key.
    Absent,
}
