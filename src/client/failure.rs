//! Why an exchange brought no reply, in words.

use std::error::Error as StdError;
use std::io;

use reqwest::Url;

use crate::address::is_loopback;
use crate::error::Error;
use crate::wire::{Fault, Refusal};

/// Why an exchange brought no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The person interrupted it, or nobody can see the output any more.
    Cancelled,
    /// The server says that it failed, or refuses.
    Refused(Refusal),
    /// The network or the server failed in a way that may pass.
    Broken {
        reason: String,
        hint: Option<String>,
    },
    /// The network failed in a way that will not pass.
    Fatal {
        reason: String,
        hint: Option<String>,
    },
    /// The answer is no answer of an API.
    Foreign(String),
    /// The request cannot even be made.
    Config(Error),
}

impl Failure {
    /// A failure that may pass, without a hint.
    pub(super) fn broken(reason: String) -> Self {
        Self::Broken { reason, hint: None }
    }

    /// The error that ends the run, with a note about why it is not tried again.
    pub(super) fn into_error(self, note: Option<String>) -> Error {
        let noted = |message: String| match note {
            Some(note) => format!("{message} ({note})"),
            None => message,
        };
        match self {
            Self::Cancelled => Error::Cancelled,
            Self::Refused(refusal) => {
                let mut error = refusal.error;
                error.message = noted(error.message);
                Error::Api(error)
            }
            Self::Broken { reason, hint } | Self::Fatal { reason, hint } => Error::Transport {
                message: noted(reason),
                hint,
            },
            Self::Foreign(message) => Error::BadReply(message),
            Self::Config(error) => error,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => Self::Refused(refusal),
            Fault::Incomplete(reason) => Self::Broken { reason, hint: None },
            Fault::Foreign(message) => Self::Foreign(message),
        }
    }
}

/// Why no answer came, and what helps.
pub(super) fn connection_failure(error: &reqwest::Error, url: &Url) -> Failure {
    let host = host(url);
    let cause = cause(error);
    if cause.contains("certificate") || cause.contains("UnknownIssuer") {
        return Failure::Fatal {
            reason: format!("the certificate of {host} is not trusted: {cause}"),
            hint: Some("SSL_CERT_FILE and SSL_CERT_DIR name further certificates to trust".into()),
        };
    }
    if !error.is_connect() {
        let reason = format!("{host} closed the connection without an answer: {cause}");
        return Failure::Broken { reason, hint: None };
    }
    let refused = is_refused(error);
    let hint = (refused && is_loopback(url)).then(|| format!("is the server at {host} running?"));
    let reason = if error.is_timeout() {
        format!("connecting to {host} takes too long")
    } else {
        format!("cannot connect to {host}: {cause}")
    };
    Failure::Broken { reason, hint }
}

/// The innermost reason of an error.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn StdError = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn StdError> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The host and port of an address, as people write them.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
