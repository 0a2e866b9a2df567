//! What can end a run, told by what the caller does about it.
//!
//! What the model can mend is a tool result; what the person must mend is an [`Error`].
//! The messages follow one form: what failed, where, and then, where one helps, a hint.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The result of everything that can end with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What servers say of an assistant message with neither text nor calls, in lower case (SPEC C10).
pub const EMPTY_MESSAGE_REFUSED: &str = "content or tool_calls must be set";

/// Why something the person asked for did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The person interrupted it. Nothing is wrong; nothing is to be reported as failed.
    #[error("interrupted")]
    Cancelled,
    /// A setting is wrong: the person has to change the configuration or the command line.
    #[error("{message}")]
    Config {
        /// What is wrong, with the file and line or the option it stands in.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The endpoint could not be reached, or the connection failed, for good.
    #[error("{message}")]
    Transport {
        /// What failed and where.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The endpoint answered with an error that no retry mends, or that outlived its retries.
    #[error("{0}")]
    Api(ApiError),
    /// The endpoint answered something that is no reply.
    #[error("{0}")]
    BadReply(String),
    /// A session could not be found, read or understood.
    #[error("{message}")]
    Session {
        /// What is wrong with which session.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb phrase: "read", "write the session".
        action: &'static str,
        /// The file or directory it was about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// What the person can do about it, if that is known. Shown as `hint: …` on a line of its own.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Config { hint, .. }
            | Self::Transport { hint, .. }
            | Self::Session { hint, .. } => hint.as_deref(),
            Self::Api(error) => error.hint.as_deref(),
            Self::Cancelled | Self::BadReply(_) | Self::Io { .. } => None,
        }
    }

    /// An I/O failure with the verb phrase and the path that make it understandable.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }

    /// Whether the server refused the request for a message that it takes for empty.
    pub fn is_empty_message_refused(&self) -> bool {
        matches!(self, Self::Api(error) if error.message.contains(EMPTY_MESSAGE_REFUSED))
    }

    /// Whether the server refused the request because the conversation is too long for the model.
    pub fn is_context_length(&self) -> bool {
        matches!(self, Self::Api(error) if error.kind == ApiErrorKind::ContextLength)
    }
}

/// Any server's error in one shape (the many bodies it is read from: `wire::errors`).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status, or the code an error inside a 200 answer carries where it reads like one.
    pub status: Option<u16>,
    /// The server's own name or number for the fault.
    pub code: Option<String>,
    /// What to show: the server's message, on one line, with the status in front where it has one.
    pub message: String,
    /// What it means for us.
    pub kind: ApiErrorKind,
    /// How long the server wants us to wait, from headers or body.
    pub retry_after: Option<Duration>,
    /// What the person can do about it.
    pub hint: Option<String>,
}

/// What an error of the server means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// No such model or no such route.
    NotFound,
    /// No credit or quota left: waiting does not help.
    Quota,
    /// Too many requests or tokens in a while: waiting helps.
    RateLimit,
    /// The server is overloaded or broken for the moment: waiting helps.
    Server,
    /// The conversation is longer than the model's context window.
    ContextLength,
    /// The server refuses the request as it is.
    BadRequest,
}

impl ApiErrorKind {
    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Server)
    }
}
