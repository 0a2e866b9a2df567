//! How long a server wants us to wait, where it says so in words.

use std::time::Duration;

/// What comes before the time. Lower case.
const CUES: &[&str] = &[
    "retrydelay\":\"",
    "retrydelay\": \"",
    "try again in ",
    "retry in ",
    "retry after ",
    "try again after ",
    "available in ",
    "please wait ",
];

/// The longest wait that a text in lower case names.
pub(super) fn named(text: &str) -> Option<Duration> {
    CUES.iter()
        .flat_map(|cue| text.match_indices(cue).map(|(at, cue)| at + cue.len()))
        .filter_map(|at| duration(text.get(at..)?))
        .max()
}

/// The duration that a text begins with: `5.2s`, `20ms`, `1m3.2s`, `12h`, `2 minutes`, `7`.
///
/// A number without a unit is seconds.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: Option<f64> = None;
    while let Some((number, after)) = number(rest.trim_start()) {
        let Some((factor, after)) = unit(after) else {
            total = total.or(Some(number));
            break;
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = after;
    }
    Duration::try_from_secs_f64(total?).ok()
}

/// A number without a sign, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    // A full stop may end the sentence.
    let number = digits.trim_end_matches('.').parse().ok()?;
    Some((number, rest))
}

/// The factor of the unit that follows, in seconds, and what follows the unit.
fn unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let factor = match word {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((factor, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c3_waits_are_found_in_words() {
        for (text, millis) in [
            ("rate limit. please try again in 5.2s.", Some(5_200)),
            ("try again in 20ms", Some(20)),
            ("try again in 1m3.5s. visit", Some(63_500)),
            ("please retry in 38.6s", Some(38_600)),
            (r#"{"retrydelay":"45.8s"}"#, Some(45_800)),
            (r#"{"retrydelay": "45s"}"#, Some(45_000)),
            ("please retry after 20 seconds.", Some(20_000)),
            ("try again in 2 minutes", Some(120_000)),
            ("try again in 12h", Some(43_200_000)),
            ("retry after 7", Some(7_000)),
            ("please try again in 1 minute 5 seconds", Some(65_000)),
            ("try again in a while", None),
            ("try again later", None),
            ("retry after -5", None),
            ("try again in 1e400s", Some(1_000)),
            ("try again in 99999999999999999999999999s", None),
            ("", None),
        ] {
            assert_eq!(named(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
