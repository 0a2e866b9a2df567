//! What is tried again, and when (SPEC C3).

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::failure::Failure;
use crate::error::Result;

/// The delays before the retries, one each: Fibonacci numbers of seconds (SPEC C3).
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
        // Who has to do something about it should not have to wait for the last retry to learn it.
        Failure::Broken {
            reason,
            hint: Some(hint),
        } if retries == 0 => (format!("{reason} ({hint})"), None),
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

/// A duration for people, in seconds and, where that says little, in more than seconds.
fn spelt(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let more = match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => return format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    };
    format!("{seconds} s, which is {more}")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::error::{ApiErrorKind, Error};
    use crate::wire::Refusal;

    #[test]
    fn c3_the_delays_are_the_fibonacci_numbers() {
        let seconds: Vec<u64> = BACKOFF.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [1, 1, 2, 3, 5, 8, 13, 21, 34]);
    }

    fn refused(status: u16, wait: Option<u64>, body: &str) -> Failure {
        Failure::Refused(Refusal::from_answer(
            status,
            wait.map(Duration::from_secs),
            body,
        ))
    }

    #[test]
    fn a6_the_first_retry_tells_already_what_helps() {
        let reason = |retries| {
            let failure = Failure::Broken {
                reason: "refused".into(),
                hint: Some("is it running?".into()),
            };
            decide(failure, retries, BACKOFF).unwrap().reason
        };
        assert_eq!(reason(0), "refused (is it running?)");
        assert_eq!(reason(1), "refused");
    }

    #[test]
    fn c3_a_longer_wait_replaces_the_delay() {
        let delay = |failure, retries| decide(failure, retries, BACKOFF).unwrap().delay.as_secs();
        assert_eq!(delay(refused(503, None, ""), 0), 1);
        assert_eq!(delay(refused(503, None, ""), 8), 34);
        assert_eq!(delay(refused(429, Some(7), ""), 0), 7);
        assert_eq!(delay(refused(429, Some(7), ""), 8), 34);
        assert_eq!(delay(refused(429, Some(120), ""), 0), 120);
        assert_eq!(
            delay(refused(429, None, r#"{"error":"try again in 9s"}"#), 0),
            9
        );
        let broken = Failure::Broken {
            reason: "r".into(),
            hint: None,
        };
        assert_eq!(
            decide(broken, 2, BACKOFF).unwrap(),
            Retry {
                delay: Duration::from_secs(2),
                reason: "r".into()
            }
        );
    }

    #[test]
    fn c3_a_wait_over_two_minutes_ends_the_run_with_the_time_named() {
        for (seconds, named) in [
            (121, "121 s, which is 2 min 1 s"),
            (180, "3 min"),
            (43_200, "12 h"),
            (43_260, "12 h 1 min"),
        ] {
            let error = decide(refused(429, Some(seconds), ""), 0, BACKOFF).unwrap_err();
            assert!(matches!(error, Error::Api(_)));
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn c3_after_nine_retries_it_is_an_error() {
        let error = decide(refused(503, None, r#"{"error":"busy"}"#), 9, BACKOFF).unwrap_err();
        assert_eq!(error.to_string(), "HTTP 503: busy (after 9 retries)");
        let hint = Some("h".to_owned());
        let broken = Failure::Broken {
            reason: "r".into(),
            hint,
        };
        let error = decide(broken, 9, BACKOFF).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.hint()),
            ("r (after 9 retries)", Some("h"))
        );
    }

    #[test]
    fn c3_what_is_final_is_final_at_once() {
        for status in [400, 401, 402, 403, 404, 405, 409, 413, 422] {
            let error = decide(refused(status, Some(1), ""), 0, BACKOFF).unwrap_err();
            assert!(matches!(error, Error::Api(_)), "{status}");
        }
        let quota = refused(429, Some(1), r#"{"error":{"code":"insufficient_quota"}}"#);
        match decide(quota, 0, BACKOFF).unwrap_err() {
            Error::Api(error) => assert_eq!(error.kind, ApiErrorKind::Quota),
            other => panic!("{other:?}"),
        }
        for failure in [
            Failure::Cancelled,
            Failure::Foreign("f".into()),
            Failure::Fatal {
                reason: "f".into(),
                hint: None,
            },
            Failure::Config(Error::Cancelled),
        ] {
            assert!(decide(failure, 0, BACKOFF).is_err());
        }
    }

    #[test]
    fn c3_headers_name_the_wait_in_several_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let date = |ahead: u64| httpdate::fmt_http_date(now + Duration::from_secs(ahead));
        for (name, value, millis) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "1.5", Some(1_500)),
            ("retry-after", &*date(20), Some(20_000)),
            ("retry-after", "Sun, 09 Sep 2001 01:46:30 GMT", None),
            ("retry-after", "-5", None),
            ("retry-after", "soon", None),
            ("retry-after", "nan", None),
            ("retry-after", "1e300", None),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after-ms", "x", None),
            ("x-other", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            assert_eq!(
                named_in(&headers, now),
                millis.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
    }
}
