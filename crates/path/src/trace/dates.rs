//! Dates and times as text, after ISO 8601: `2026-01-31T12:00:00.5Z`, `2026-01-31 12:00+01:00`, `20260131T120000`.

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// An instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Date {
    /// Nanoseconds since the beginning of 1970, in UTC or, without a time zone, in its own.
    ns: i128,
    /// Whether the text names a time zone.
    zoned: bool,
}

impl Date {
    /// Reads a text; `None` if it is no date with a time of day. A second 60 is the next minute's first.
    pub(super) fn of(text: &str) -> Option<Date> {
        let mut rest = text.trim().as_bytes();
        let year = digits(&mut rest, 4)?;
        let extended = skip(&mut rest, b"-");
        let month = digits(&mut rest, 2).filter(|month| (1..=12).contains(month))?;
        if extended && !skip(&mut rest, b"-") {
            return None;
        }
        let day = digits(&mut rest, 2).filter(|day| (1..=length(year, month)).contains(day))?;
        if !skip(&mut rest, b"Tt ") {
            return None;
        }
        let hour = digits(&mut rest, 2).filter(|hour| *hour < 24)?;
        let colon = skip(&mut rest, b":");
        let minute = digits(&mut rest, 2).filter(|minute| *minute < 60)?;
        let has_seconds = if colon { skip(&mut rest, b":") } else { rest.first().is_some_and(u8::is_ascii_digit) };
        let second = if has_seconds { digits(&mut rest, 2).filter(|second| *second <= 60)? } else { 0 };
        let fraction = if has_seconds && skip(&mut rest, b".,") { fraction(&mut rest)? } else { 0 };
        let seconds = i128::from(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second);
        let zone = zone(rest)?;
        Some(Date { ns: (seconds - i128::from(zone.unwrap_or(0))) * SECOND + fraction, zoned: zone.is_some() })
    }

    /// Seconds since another instant; `None` if only one of both names a time zone.
    pub(super) fn since(self, other: Date) -> Option<f64> {
        (self.zoned == other.zoned).then(|| (self.ns - other.ns) as f64 / SECOND as f64)
    }
}

/// Takes one of these bytes.
fn skip(rest: &mut &[u8], any: &[u8]) -> bool {
    let found = rest.first().is_some_and(|byte| any.contains(byte));
    *rest = &rest[usize::from(found)..];
    found
}

/// Takes a number of exactly this many digits.
fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (number, after) = rest.split_at_checked(count)?;
    *rest = after;
    number.iter().try_fold(0, |all, byte| byte.is_ascii_digit().then(|| all * 10 + i64::from(byte - b'0')))
}

/// Takes the digits of a fraction of a second, in nanoseconds, rounded down.
fn fraction(rest: &mut &[u8]) -> Option<i128> {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(count);
    *rest = after;
    let nine = number.iter().copied().chain(core::iter::repeat(b'0')).take(9);
    (count > 0).then(|| nine.fold(0, |all, byte| all * 10 + i128::from(byte - b'0')))
}

/// Seconds by which a time zone is ahead of UTC, if the text is one; the inner `None`: it is empty.
fn zone(mut rest: &[u8]) -> Option<Option<i64>> {
    if rest.is_empty() {
        return Some(None);
    }
    skip(&mut rest, b" ");
    if matches!(rest, b"Z" | b"z" | b"UTC") {
        return Some(Some(0));
    }
    let sign = if rest.first() == Some(&b'-') { -1 } else { 1 };
    if !skip(&mut rest, b"+-") {
        return None;
    }
    let hours = digits(&mut rest, 2).filter(|hours| *hours < 24)?;
    let colon = skip(&mut rest, b":");
    let minutes = if rest.is_empty() && !colon { 0 } else { digits(&mut rest, 2).filter(|minutes| *minutes < 60)? };
    rest.is_empty().then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

/// Days of a month, in the Gregorian calendar.
fn length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the beginning of 1970 to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap = |years: i64| years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let months: i64 = (1..month).map(|month| length(year, month)).sum();
    (year - 1970) * 365 + leap(before) - leap(1969) + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_instants() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.25", 250_000_000),
            ("19700101T000001,5Z", 1_500_000_000),
            ("2000-02-29T00:00Z", 951_782_400_000_000_000),
            ("2026-01-31T12:00:00.123456789Z", 1_769_860_800_123_456_789),
            ("2026-01-31T13:30:00.1234567899+01:30", 1_769_860_800_123_456_789),
            ("2026-01-31 07:00:00 -0500", 1_769_860_800_000_000_000),
            ("2026-01-31t12:00:00 UTC", 1_769_860_800_000_000_000),
            (" 2016-12-31T23:59:60Z ", 1_483_228_800_000_000_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
            ("1969-12-31T23:59:59+00", -1_000_000_000),
        ] {
            assert_eq!(Date::of(text).map(|date| date.ns), Some(ns), "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "1",
            "20260131",
            "2026-01-31",
            "12:00:00",
            "2026-01-31T",
            "2026-01-31T12",
            "2026-1-31T12:00:00",
            "2026-02-29T12:00:00",
            "2100-02-29T12:00:00",
            "2026-13-01T12:00",
            "2026-00-01T12:00",
            "2026-01-00T12:00",
            "2026-01-31T24:00:00",
            "2026-01-31T12:60:00",
            "2026-01-31T12:00:61",
            "2026-01-31T12:00:00.",
            "2026-01-31T12:00:00 CET",
            "2026-01-31T12:00:00+1",
            "2026-01-31T12:00:00+01:",
            "2026-01-31T12:00:00+01:00x",
            "31.01.2026 12:00:00",
            "2026/01/31 12:00:00",
            "2026-01-31T12:00:00Z5",
            "\u{662}026-01-31T12:00:00",
        ] {
            assert_eq!(Date::of(text), None, "{text}");
        }
    }

    #[test]
    fn zones_are_in_all_dates_or_in_none() {
        let date = |text| Date::of(text).unwrap();
        assert_eq!(date("2026-01-31T12:00:00Z").since(date("2026-01-31T12:00:00")), None);
        assert_eq!(date("2026-01-31T12:00:01.1").since(date("2026-01-31T12:00:00")), Some(1.1));
        assert_eq!(date("2026-03-29T03:00:00+02:00").since(date("2026-03-29T01:59:59+01:00")), Some(1.0));
    }
}
