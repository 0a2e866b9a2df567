//! Points in time as session files tell them: RFC 3339 in UTC, to the millisecond.
//!
//! Owns the small piece of calendar arithmetic that this takes; a crate for dates would be larger
//! than all of it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The years that RFC 3339 can tell.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The present.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Reads the forms of RFC 3339: `2026-01-02T03:04:05Z`, with a fraction, with an offset.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let mut date = date.splitn(3, '-');
        let year = number(date.next()?, 4)?;
        let month = number(date.next()?, 2)?;
        let day = number(date.next()?, 2)?;
        let zone = rest.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = rest.split_at_checked(zone)?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut time = time.splitn(3, ':');
        let hour = number(time.next()?, 2)?;
        let minute = number(time.next()?, 2)?;
        let second = number(time.next()?, 2)?;
        let in_range = YEARS.contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60; // a leap second counts as the next one
        let seconds = hour * 3600 + minute * 60 + second - offset(zone)?;
        in_range.then_some(())?;
        Some(Self(
            days_since_epoch(year, month, day) * MILLIS_PER_DAY
                + seconds * 1000
                + millis(fraction)?,
        ))
    }

    /// The form for people: `2026-01-02 03:04 UTC`.
    pub fn short(self) -> String {
        let (year, month, day) = self.date();
        let minutes = self.0.rem_euclid(MILLIS_PER_DAY) / 60_000;
        format!(
            "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
            minutes / 60,
            minutes % 60
        )
    }

    /// Year, month and day.
    fn date(self) -> (i64, i64, i64) {
        date_of(self.0.div_euclid(MILLIS_PER_DAY))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, to the millisecond: `2026-01-02T03:04:05.678Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let millis = self.0.rem_euclid(MILLIS_PER_DAY);
        let seconds = millis / 1000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            millis % 1000
        )
    }
}

/// A number of exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let exact = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    exact.then(|| text.parse().ok())?
}

/// The milliseconds of the digits behind the decimal point.
fn millis(fraction: &str) -> Option<i64> {
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(())?;
    let three: String = fraction.chars().chain("00".chars()).take(3).collect();
    three.parse().ok()
}

/// The seconds that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next()? {
        'Z' | 'z' => return (zone.len() == 1).then_some(0),
        '+' => 1,
        _ => -1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (number(hours, 2)? * 3600 + number(minutes, 2)? * 60))
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970-01-01 to a date of the Gregorian calendar. Counted in years that begin in
/// March, so that a leap day is the last of its year; 400 of them always have 146,097 days.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that is `days` after 1970-01-01: the inverse of [`days_since_epoch`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_times_are_written_as_rfc_3339_in_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in cases {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(Timestamp(millis)), "{text}");
        }
    }

    #[test]
    fn other_writers_forms_are_read_too() {
        let expected = Timestamp::parse("2026-01-02T03:04:05.500Z");
        assert!(expected.is_some());
        for text in [
            "2026-01-02 03:04:05.5Z",
            "2026-01-02t03:04:05.5004z",
            "2026-01-02T05:34:05.5+02:30",
            "2026-01-01T22:04:05.500000000-05:00",
        ] {
            assert_eq!(Timestamp::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "T",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-13-02T03:04:05Z",
            "2026-02-29T03:04:05Z",
            "2026-01-02T24:04:05Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04Z",
            "+026-01-02T03:04:05Z",
            "2026-01-02T03:04:05+2",
            "2026-01-02T03:04:05Zulu",
            "2026-01-0éT03:04:05Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_comes_back_from_its_date() {
        for days in -146_097..146_097 {
            let (year, month, day) = date_of(days);
            assert!((1..=days_of_month(year, month)).contains(&day));
            assert_eq!(days_since_epoch(year, month, day), days);
        }
    }

    #[test]
    fn the_form_for_people_ends_with_the_minute() {
        let time = Timestamp::parse("2026-01-02T03:04:05Z");
        assert_eq!(
            time.map(Timestamp::short).as_deref(),
            Some("2026-01-02 03:04 UTC")
        );
    }
}
