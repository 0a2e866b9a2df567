//! What is tried again, and when (SPEC C3).

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::exchange::Failure;
use crate::error::{Error, Result};

/// The delays before the retries, one each.
pub const BACKOFF: &[Duration] = &[
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(8),
    Duration::from_secs(13),
    Duration::from_secs(21),
    Duration::from_secs(34),
];

/// A server that wants us to wait longer than this gets no retry.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// A retry to come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) delay: Duration,
    pub(super) reason: String,
}

/// Decides about a failure after `retries` retries: another one, or the error that ends the run.
pub(super) fn decide(failure: Failure, retries: usize, backoff: &[Duration]) -> Result<Retry> {
    let (reason, wait) = match &failure {
        Failure::Refused(refusal) if refusal.error.kind.is_retryable() => {
            (refusal.error.message.clone(), refusal.error.retry_after)
        }
        Failure::Broken { reason, .. } => (reason.clone(), None),
        _ => return Err(failure.into_error(None)),
    };
    if let Some(wait) = wait.filter(|&wait| wait > LONGEST_WAIT) {
        return Err(failure.into_error(Some(format!("the server asks to wait {}", spelt(wait)))));
    }
    let Some(&delay) = backoff.get(retries) else {
        let note = (retries > 0).then(|| format!("after {retries} retries"));
        return Err(failure.into_error(note));
    };
    Ok(Retry {
        delay: delay.max(wait.unwrap_or_default()),
        reason,
    })
}

/// How long the headers of an answer ask us to wait.
pub(super) fn named_in(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = text("retry-after-ms")
        .and_then(|text| text.parse::<f64>().ok())
        .and_then(|millis| Duration::try_from_secs_f64(millis / 1_000.0).ok());
    let seconds = text(RETRY_AFTER.as_str()).and_then(|text| match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => httpdate::parse_http_date(text)
            .ok()?
            .duration_since(now)
            .ok(),
    });
    // The finer figure is the better one where both are given.
    millis.or(seconds)
}

/// A duration for people: `45 s`, `3 min 20 s`, `12 h`.
fn spelt(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

impl Failure {
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
