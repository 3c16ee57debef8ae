//! Rate traces as text: mahimahi's packet delivery traces, lines of `seconds Mbit/s`, and common published formats
//! ([`published`]): tables with a header, JSON, iperf3's output. [`read`] reads all of them.
//!
//! The line formats skip blank lines and everything after a `#`. Reading takes one pass, and memory proportional to the
//! number of lines.

mod dates;
mod published;

pub use published::{Recorded, Step, parse_recorded};

use crate::{Opportunities, RateError, Schedule};
use paceline_units::{Rate, Span, Time};

/// The maximum number of lines in a trace.
pub const MAX_LINES: usize = 20_000_000;
/// The latest time in a trace: about 115 days.
pub const MAX_TIME: Span = Span::from_secs(10_000_000);

/// The behaviour of a schedule of `seconds Mbit/s` after its last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtEnd {
    /// Repeats from the first line. The last line lasts as long as the one before it (one second if it is the only
    /// one).
    #[default]
    Repeat,
    /// Stays at the last rate.
    Hold,
}

/// Why a text is not a valid trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is invalid. The error does not quote the line: the file may hold something that the user should not see,
    /// such as a key.
    #[error("line {line}: {expected}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The problem, and the expected input.
        expected: String,
    },
    /// An entry of a list is invalid; its text is not quoted either.
    #[error("entry {entry}: {expected}")]
    Entry {
        /// Entry number, from 1.
        entry: usize,
        /// The problem, and the expected input.
        expected: String,
    },
    /// The text is in no supported format.
    #[error("it is no trace that is read: {}", Format::known())]
    Unknown,
    /// The trace as a whole is invalid.
    #[error("the trace cannot be used: {0}")]
    Whole(#[from] RateError),
    /// It has more than [`MAX_LINES`] lines.
    #[error("the trace has more than {MAX_LINES} lines")]
    TooLong,
}

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Delivery opportunities in milliseconds.
    Mahimahi,
    /// Lines of `seconds Mbit/s`.
    SecondsMbit,
    /// A table whose header names columns and units.
    Csv,
    /// A list of objects whose keys name columns and units, or iperf3's JSON.
    Json,
    /// iperf3's text output.
    Iperf3,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [Format::Mahimahi, Format::SecondsMbit, Format::Csv, Format::Json, Format::Iperf3];

    /// The format's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Mahimahi => "mahimahi",
            Format::SecondsMbit => "seconds-mbit",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Iperf3 => "iperf3",
        }
    }

    fn known() -> &'static str {
        "lines of milliseconds (mahimahi) or of seconds and Mbit/s, a table with a header (CSV), JSON, or what iperf3 prints"
    }

    /// Guesses the format of a text.
    #[must_use]
    pub fn of(text: &str) -> Option<Format> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let in_list = text.strip_prefix('[').map(str::trim_start);
        if text.starts_with('{') || in_list.is_some_and(|rest| rest.starts_with(['{', ']'])) {
            return Some(Format::Json);
        }
        let mut some = text.lines().take(1000).filter(|line| line.trim_start().starts_with('['));
        if some.any(|line| line.contains("bits/sec") || line.contains("Bytes/sec")) {
            return Some(Format::Iperf3);
        }
        let (_, first) = lines(text).next()?.ok()?;
        let numbers = first.split_whitespace().map(|word| word.parse::<f64>().is_ok()).collect::<Vec<_>>();
        match &numbers[..] {
            [true] => Some(Format::Mahimahi),
            [true, true] => Some(Format::SecondsMbit),
            _ if first.contains([',', ';', '\t']) && first.contains(|c: char| c.is_ascii_alphabetic()) => {
                Some(Format::Csv)
            }
            _ => None,
        }
    }
}

/// A trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trace {
    /// Delivery opportunities.
    Opportunities(Opportunities),
    /// Rates over time.
    Recorded(Recorded),
}

/// Reads a trace; without `format`, guesses it from the text.
///
/// # Errors
/// [`TraceError`].
pub fn read(text: &str, format: Option<Format>) -> Result<Trace, TraceError> {
    let Some(format) = format.or_else(|| Format::of(text)) else {
        return Err(published::without_header(text).unwrap_or(TraceError::Unknown));
    };
    match format {
        Format::Mahimahi => parse_mahimahi(text).map(Trace::Opportunities),
        Format::SecondsMbit => {
            let schedule = parse_seconds_mbit(text, AtEnd::Hold)?;
            let steps: Vec<_> = schedule.steps().map(|(at, rate)| Step { at, rate, latency: None }).collect();
            Ok(Trace::Recorded(Recorded { lasts: published::until(&steps), steps }))
        }
        other => parse_recorded(text, other).map(Trace::Recorded),
    }
}

/// The lines that are not blank after comments are removed: number and text.
fn lines(text: &str) -> impl Iterator<Item = Result<(usize, &str), TraceError>> {
    text.lines().enumerate().filter_map(|(i, line)| {
        let said = line.split_once('#').map_or(line, |(before, _)| before).trim();
        match (i < MAX_LINES, said.is_empty()) {
            (false, _) => Some(Err(TraceError::TooLong)),
            (true, true) => None,
            (true, false) => Some(Ok((i + 1, said))),
        }
    })
}

/// Reads mahimahi's format. Each line is a whole number of milliseconds: an opportunity to deliver 1500 bytes at that
/// instant. Lines may repeat a time. The trace repeats from its last instant.
///
/// # Errors
/// [`TraceError::Line`] for a line that is not a whole number of milliseconds up to [`MAX_TIME`], or is earlier than
/// the line before; [`TraceError::Whole`] if there is no line, or all are zero.
pub fn parse_mahimahi(text: &str) -> Result<Opportunities, TraceError> {
    let mut times = Vec::new();
    for entry in lines(text) {
        let (line, said) = entry?;
        let fail = |expected: &str| TraceError::Line { line, expected: expected.to_owned() };
        // `parse` would accept a sign.
        let digits = said.bytes().all(|b| b.is_ascii_digit());
        let ms: Option<u64> = if digits { said.parse().ok() } else { None };
        let latest = MAX_TIME.0 / 1_000_000;
        let Some(ms) = ms.filter(|&ms| ms <= latest) else {
            return Err(fail(&format!("expected a whole number of milliseconds from 0 to {latest}")));
        };
        let time = Time(ms * 1_000_000);
        if times.last().is_some_and(|&last| last > time) {
            return Err(fail("expected a time that is not before that of the line before"));
        }
        times.push(time);
    }
    Ok(Opportunities::new(times, Opportunities::BYTES)?)
}

/// Reads lines of two numbers, seconds and Mbit/s: the rate from that time on. The first time becomes zero; of several
/// lines with the same time the last one counts.
///
/// # Errors
/// [`TraceError::Line`] for a line that is not two decimal numbers of zero or more, the first up to [`MAX_TIME`] and
/// not less than on the line before, the second up to [`Schedule::MAX_RATE`]; [`TraceError::Whole`] if there is no
/// line, or the trace repeats and all rates are zero.
pub fn parse_seconds_mbit(text: &str, at_end: AtEnd) -> Result<Schedule, TraceError> {
    if let Some(line) = published::other_units(text) {
        let expected = "the comment names other units than seconds and Mbit/s: as a table's header, with commas between, they are heeded";
        return Err(TraceError::Line { line, expected: expected.to_owned() });
    }
    let mut steps: Vec<(Time, Rate)> = Vec::new();
    let mut first = None;
    for entry in lines(text) {
        let (line, said) = entry?;
        let fail = |expected: &str| TraceError::Line { line, expected: expected.to_owned() };
        let mut fields = said.split_whitespace();
        let (Some(seconds), Some(mbit), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(fail("expected two numbers, seconds and Mbit/s, with white space between"));
        };
        let (latest, fastest) = (MAX_TIME.as_secs_f64(), Schedule::MAX_RATE.bps() / 1e6);
        let number = |field: &str, max: f64, what: &str| {
            let value = field.parse().ok().filter(|v| (0.0..=max).contains(v));
            value.ok_or_else(|| fail(&format!("expected {what} from 0 to {max}")))
        };
        let at = Time::from_secs_f64(number(seconds, latest, "seconds")?);
        let rate = Rate::from_mbps(number(mbit, fastest, "Mbit/s")?);
        let at = Time(
            at.0.checked_sub(*first.get_or_insert(at.0))
                .ok_or_else(|| fail("expected a time that is not before that of the line before"))?,
        );
        match steps.last_mut() {
            Some(last) if last.0 > at => {
                return Err(fail("expected a time that is not before that of the line before"));
            }
            Some(last) if last.0 == at => last.1 = rate,
            _ => steps.push((at, rate)),
        }
    }
    let period = match (at_end, &steps[..]) {
        (AtEnd::Hold, _) | (_, []) => None,
        (AtEnd::Repeat, [_]) => Some(Span::from_secs(1)),
        (AtEnd::Repeat, [.., before, last]) => Some(Span(last.0.0) + last.0.since(before.0)),
    };
    Ok(Schedule::new(&steps, period)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mahimahi() {
        let trace = parse_mahimahi("# a comment\n0\n\n5 # another\n5\r\n12\n").unwrap();
        let slots: Vec<_> = trace.slots().map(|(at, size)| (at.0 / 1_000_000, size.0)).collect();
        assert_eq!(slots, [(0, 1500), (5, 3000), (12, 1500)]);
    }

    #[test]
    fn names_the_line() {
        let message = |text| parse_mahimahi(text).unwrap_err().to_string();
        assert_eq!(message("0\n5\nx7\n"), "line 3: expected a whole number of milliseconds from 0 to 10000000000");
        assert!(message("5\n\n4").starts_with("line 3: expected a time that is not before"));
        for bad in ["-1", "+1", "1.5", "1 2", "99999999999999999999999", "1e3", "\0"] {
            assert!(message(bad).starts_with("line 1: "), "{bad}");
        }
        assert_eq!(message(""), "the trace cannot be used: it has no entries");
        assert!(message("0\n0\n").contains("must repeat later"));
        assert!(message(&"9".repeat(1000)).len() < 200);
    }

    #[test]
    fn reads_seconds_and_mbit() {
        let trace = parse_seconds_mbit("10.0\t4\n10.5 0\n# end\n12 1.5\n12 2\n", AtEnd::Repeat).unwrap();
        let steps: Vec<_> = trace.steps().map(|(at, rate)| (at.0 / 1_000_000, rate.0)).collect();
        assert_eq!(steps, [(0, 4_000_000), (500, 0), (2000, 2_000_000)]);
        assert_eq!(trace.period(), Some(Span::from_millis(3500)));
        assert_eq!(parse_seconds_mbit("0 1", AtEnd::Hold).unwrap().period(), None);
        let message = |text| parse_seconds_mbit(text, AtEnd::Repeat).unwrap_err().to_string();
        for bad in ["1", "1 2 3", "1 x", "-1 2", "1 -2", "nan 1", "1 inf", "1e99 1", "1,2", "0 1e9", "0 é"] {
            assert!(message(bad).starts_with("line 1: "), "{bad}");
        }
        for bad in ["5 1\n4 1", "5 1\n6 1\n5.5 1"] {
            assert!(message(bad).contains("not before"), "{bad}");
        }
        assert!(message("0 0\n1 0\n").contains("without ever carrying"));
    }
}
