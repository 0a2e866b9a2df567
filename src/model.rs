//! What the loop needs of a language model. The client is one; the tests have another.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::event::Sink;
use crate::message::Message;
use crate::usage::Usage;

/// A boxed future of the one thread everything runs on.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One question to the model: the conversation so far and what it may call.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The whole conversation, the system message first.
    pub messages: &'a [Message],
    /// Tool definitions in the form of the chat completions API, always the same ones in the same order.
    pub tools: &'a [Value],
}

/// One whole answer. There is no half of it: a stream that breaks off yields an error instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant message to store: text, calls, and the provider's own fields.
    ///
    /// It may be empty (neither text nor calls); the loop decides what to do about that.
    pub message: Message,
    /// Why the model stopped.
    pub finish: Finish,
    /// The request's token figures.
    pub usage: Usage,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or wants its calls run.
    Complete,
    /// It ran into its limit of output tokens: the end is missing, and calls may be cut.
    Length,
    /// The provider's content filter cut it off.
    Filtered,
}

/// Something that answers requests.
pub trait Model {
    /// Asks once, with whatever retries that takes, and tells `sink` of pieces as they come.
    ///
    /// Sends [`Event::Requesting`](crate::event::Event::Requesting) before each attempt and
    /// [`Event::ReplyEnd`](crate::event::Event::ReplyEnd) when the answer is whole. Ends with
    /// [`Error::Cancelled`](crate::error::Error::Cancelled) soon after `cancel` is cancelled.
    fn complete<'a>(
        &'a mut self,
        request: Request<'a>,
        sink: &'a mut dyn Sink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply>>;
}
