//! Rate traces in common published formats: tables with a header (CSV), JSON, and iperf3's output.
//!
//! Columns are recognized by their names, which include a unit: `time_s`, `duration_ms`, `bandwidth_kbps`, "Throughput
//! (Mbit/s)". Times may be dates as text (ISO 8601). This covers the traces of player simulators (Sabre: `duration_ms`, `bandwidth_kbps`, `latency_ms`) and
//! phone logs. Start with [`parse_recorded`].

use super::AtEnd;
use super::dates::Date;
use super::{Format, MAX_LINES, MAX_TIME, TraceError};
use crate::Schedule;
use paceline_units::{Rate, Span, Time};
use serde_json::Value;
use std::borrow::Cow;

/// A rate from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Time since the beginning of the trace.
    pub at: Time,
    /// The rate.
    pub rate: Rate,
    /// The network's latency at that time, if the trace has it.
    pub latency: Option<Span>,
}

/// Rates over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// In order, with distinct times; the first is at zero.
    pub steps: Vec<Step>,
    /// The total duration, to the end of the last step.
    pub lasts: Span,
}

impl Recorded {
    /// The schedule for a link's rate.
    ///
    /// # Errors
    /// [`TraceError::Whole`] if it repeats and all rates are zero.
    pub fn schedule(&self, at_end: AtEnd) -> Result<Schedule, TraceError> {
        let steps: Vec<_> = self.steps.iter().map(|step| (step.at, step.rate)).collect();
        Ok(Schedule::new(&steps, (at_end == AtEnd::Repeat).then_some(self.lasts))?)
    }
}

/// Reads a table, JSON, or iperf3's output.
///
/// # Errors
/// [`TraceError`], with the line or the entry.
pub fn parse_recorded(text: &str, format: Format) -> Result<Recorded, TraceError> {
    match format {
        Format::Json => of_json(text),
        Format::Iperf3 if text.trim_start().starts_with('{') => of_json(text),
        Format::Iperf3 => of_iperf3(text),
        _ => of_table(text),
    }
}

/// The line of a comment, before the numbers of a `seconds Mbit/s` trace, that names columns with other units; `None`:
/// there is none.
pub(super) fn other_units(text: &str) -> Option<usize> {
    let comments = text.lines().take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    comments.enumerate().find_map(|(i, line)| {
        let names: Vec<&str> =
            line.trim_start_matches([' ', '#']).split([' ', '\t', ',', ';']).filter(|name| !name.is_empty()).collect();
        let columns = Columns::of(&names).ok()?;
        (columns.time.is_some_and(|(_, unit)| unit != 1.0) || columns.rate.1 != 1e6).then_some(i + 1)
    })
}

/// The error for a table whose first line is numbers, not names; `None`: it is no table.
pub(super) fn without_header(text: &str) -> Option<TraceError> {
    let (line, first) = super::lines(text).next()?.ok()?;
    let columns = first.split([',', ';', '\t']).map(|field| field.trim().parse::<f64>()).collect::<Vec<_>>();
    (columns.len() > 1 && columns.iter().all(Result::is_ok)).then(|| TraceError::Line {
        line,
        expected: "expected a header before the numbers, which names columns and units: time_s,rate_mbps".to_owned(),
    })
}

/// The steps so far.
#[derive(Default)]
struct Rows {
    steps: Vec<Step>,
    first: Option<f64>,
    /// The first date, if times are dates.
    date: Option<Date>,
    /// The end of the last row, if known.
    end: Option<f64>,
}

impl Rows {
    /// Adds a row. `at`: its start (`None`: the end of the row before); `lasts`: its duration, if known.
    fn push(&mut self, at: Option<f64>, lasts: Option<f64>, bps: f64, latency: Option<f64>) -> Result<(), String> {
        let latest = MAX_TIME.as_secs_f64();
        let fastest = Schedule::MAX_RATE.bps();
        if self.steps.len() >= MAX_LINES {
            return Err(format!("expected at most {MAX_LINES} rates"));
        }
        if !(0.0..=fastest).contains(&bps) {
            return Err(format!("expected a rate from 0 to {} Mbit/s", fastest / 1e6));
        }
        if lasts.is_some_and(|lasts| !(0.0..=latest).contains(&lasts)) {
            return Err(format!("expected a duration from 0 to {latest} s"));
        }
        let at = at.or(self.end).unwrap_or(0.0);
        if !at.is_finite() || at.abs() > 1e11 {
            return Err("expected a time in seconds, or in the unit that its column names".to_owned());
        }
        // clocks are read a little late and recorded with few digits
        if let (Some(end), Some(lasts)) = (self.end, lasts)
            && at > end + 0.1 * lasts.max(0.1)
        {
            return Err(format!(
                "expected a time where the row before ends, at {end} s: of what lies between nothing is known"
            ));
        }
        let since = at - *self.first.get_or_insert(at);
        if !(0.0..=latest).contains(&since) {
            return Err(format!(
                "expected a time that is not before that of the row before, up to {latest} s after the first"
            ));
        }
        let latency = latency.filter(|latency| (0.0..=3600.0).contains(latency)).map(Span::from_secs_f64);
        let step = Step { at: Time::from_secs_f64(since), rate: Rate::from_bps(bps.round() as u64), latency };
        match self.steps.last_mut() {
            Some(last) if last.at > step.at => {
                return Err("expected a time that is not before that of the row before".to_owned());
            }
            Some(last) if last.at == step.at => *last = step,
            _ => self.steps.push(step),
        }
        self.end = lasts.map(|lasts| at + lasts);
        Ok(())
    }

    /// The seconds from the first date to this one.
    fn since(&mut self, date: Date) -> Result<f64, String> {
        if self.date.is_none() && self.first.is_some() {
            return Err("expected a number as a time, as in the rows before".to_owned());
        }
        let since = date.since(*self.date.get_or_insert(date));
        since.ok_or_else(|| "expected a time zone in all dates, or in none".to_owned())
    }

    fn finish(self) -> Result<Recorded, TraceError> {
        let lasts = match (&self.steps[..], self.end.zip(self.first)) {
            ([], _) => return Err(crate::RateError::Empty.into()),
            (_, Some((end, first))) => Span::from_secs_f64((end - first).max(0.0)),
            (steps, None) => until(steps),
        };
        // remove steps at the end that last for zero time
        let steps: Vec<_> =
            self.steps.into_iter().filter(|step| step.at == Time::ZERO || Span(step.at.0) < lasts).collect();
        Ok(Recorded { steps, lasts: lasts.max(Span(1)) })
    }
}

/// The end of steps without durations: the last one lasts as long as the one before it, or one second if it is the only
/// one.
pub(super) fn until(steps: &[Step]) -> Span {
    match steps {
        [] | [_] => Span::from_secs(1),
        [.., before, last] => Span(last.at.0) + last.at.since(before.at),
    }
}

/// The columns, each with its index and the value of its unit in seconds or bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Columns {
    time: Option<(usize, f64)>,
    duration: Option<(usize, f64)>,
    rate: (usize, f64),
    latency: Option<(usize, f64)>,
}

const RATES: [&str; 9] =
    ["bandwidth", "throughput", "bitrate", "rate", "goodput", "capacity", "speed", "datarate", "thrpt"];
const TIMES: [&str; 8] = ["time", "timestamp", "seconds", "elapsed", "start", "t", "sec", "milliseconds"];
/// Names of columns whose times are dates; others with times come first.
const DATES: [&str; 3] = ["date", "datetime", "date/time"];
const DURATIONS: [&str; 3] = ["duration", "lasts", "dur"];
const LATENCIES: [&str; 4] = ["latency", "delay", "rtt", "ping"];

/// A rate unit's value in bit/s. Case distinguishes bytes from bits: MB/s and MBps, mbps and Mb/s.
fn rate_unit(word: &str) -> Option<f64> {
    let (scale, rest) = match word.as_bytes().first()?.to_ascii_lowercase() {
        b'k' => (1e3, &word[1..]),
        b'm' => (1e6, &word[1..]),
        b'g' => (1e9, &word[1..]),
        _ => (1.0, word),
    };
    if matches!(rest, "Bps" | "B/s" | "B/sec") {
        return Some(8.0 * scale);
    }
    match rest.to_ascii_lowercase().as_str() {
        "bps" | "b/s" | "b/sec" | "bit/s" | "bits/s" | "bit/sec" | "bits/sec" | "bitps" => Some(scale),
        "byte/s" | "bytes/s" | "byte/sec" | "bytes/sec" => Some(8.0 * scale),
        _ => None,
    }
}

/// A time unit's value in seconds.
fn time_unit(word: &str) -> Option<f64> {
    match word {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Some(1e-3),
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "microseconds" => Some(1e-6),
        "ns" | "nsec" | "nanoseconds" => Some(1e-9),
        "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hour" | "hours" => Some(3600.0),
        _ => None,
    }
}

impl Columns {
    fn of(names: &[&str]) -> Result<Columns, String> {
        let (mut time, mut date, mut duration, mut latency) = (None, None, None, None);
        let (mut rates, mut bare) = (Vec::new(), None);
        for (at, name) in names.iter().enumerate() {
            let small = name.to_ascii_lowercase();
            let words_of = |name| {
                let words = str::split(name, |c: char| !(c.is_alphanumeric() || c == '/'));
                words.filter(|word| !word.is_empty()).collect::<Vec<&str>>()
            };
            let words = words_of(&small);
            let is = |known: &[&str]| words.iter().any(|word| known.contains(word));
            let seconds = words.iter().rev().find_map(|word| time_unit(word));
            if let Some(scale) = words_of(name).iter().rev().find_map(|word| rate_unit(word)) {
                rates.push((at, scale));
            } else if is(&LATENCIES) {
                latency = latency.or(seconds.map(|scale| (at, scale)));
            } else if is(&DURATIONS) {
                duration = duration.or(Some((at, seconds.unwrap_or(1.0))));
            } else if is(&TIMES) || words.len() == 1 && seconds.is_some() {
                time = time.or(Some((at, seconds.unwrap_or(1.0))));
            } else if is(&DATES) {
                date = date.or(Some((at, 1.0)));
            } else if is(&RATES) {
                bare = bare.or(Some(*name));
            }
        }
        let shown = |name: &str| name.chars().filter(|c| !c.is_control()).take(40).collect::<String>();
        let rate = match (&rates[..], bare) {
            ([rate], _) => *rate,
            ([], Some(name)) => {
                return Err(format!(
                    "column `{0}` has no unit: its name must end with _bps, _kbps, _mbps or _gbps; \
                     write {0}_mbps if it is Mbit/s",
                    shown(name)
                ));
            }
            ([], None) => {
                return Err("expected a column with a rate, whose name ends with its unit: bandwidth_kbps, rate_mbps"
                    .to_owned());
            }
            ([one, other, ..], _) => {
                let [one, other] = [one.0, other.0].map(|at| shown(names[at]));
                return Err(format!("`{one}` and `{other}` are both rates: leave one column"));
            }
        };
        let time = time.or(date.filter(|_| duration.is_none()));
        if time.is_none() && duration.is_none() {
            return Err("expected a column with times: time_s, time_ms, duration_s or duration_ms".to_owned());
        }
        Ok(Columns { time, duration, rate, latency })
    }

    /// Adds a row; `value` returns the number in a column, `text` its text if it has one.
    fn row<'a>(
        &self,
        rows: &mut Rows,
        value: impl Fn(usize) -> Result<f64, String>,
        text: impl Fn(usize) -> Option<&'a str>,
    ) -> Result<(), String> {
        let of =
            |column: Option<(usize, f64)>| column.map(|(at, scale)| value(at).map(|value| value * scale)).transpose();
        // an invalid latency counts as missing
        let latency = of(self.latency).unwrap_or(None);
        let at = match self.time.map(|(at, _)| text(at).and_then(Date::of)) {
            Some(Some(date)) => Some(rows.since(date)?),
            _ if rows.date.is_some() => return Err("expected a date, as in the rows before".to_owned()),
            _ => of(self.time)
                .map_err(|expected| format!("{expected}, or a date with a time of day: 2026-01-31T12:00:00.5Z"))?,
        };
        rows.push(at, of(self.duration)?, value(self.rate.0)? * self.rate.1, latency)
    }
}

fn of_table(text: &str) -> Result<Recorded, TraceError> {
    let (mut rows, mut head) = (Rows::default(), None);
    for entry in super::lines(text.trim_start_matches('\u{feff}')) {
        let (line, said) = entry?;
        let fail = |expected: String| TraceError::Line { line, expected };
        let (mark, count, columns) = match &head {
            Some(head) => head,
            None => {
                let mark = [',', ';', '\t'].into_iter().find(|mark| said.contains(*mark)).unwrap_or(',');
                let names = split(said, mark);
                let count = names.len();
                let columns = Columns::of(&names.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(fail)?;
                head = Some((mark, count, columns));
                continue;
            }
        };
        let fields = split(said, *mark);
        if fields.iter().skip(*count).any(|field| !field.is_empty()) {
            return Err(fail(format!(
                "expected {count} fields, as in the header: put one that has `{mark}` in it in quotes"
            )));
        }
        let value = |at: usize| {
            let value = fields.get(at).and_then(|field| field.parse::<f64>().ok()).filter(|value| value.is_finite());
            value.ok_or_else(|| format!("expected a number in column {}", at + 1))
        };
        columns.row(&mut rows, value, |at| fields.get(at).map(AsRef::as_ref)).map_err(fail)?;
    }
    rows.finish()
}

/// The fields of a line; a quoted field may contain the separator (RFC 4180).
fn split(line: &str, mark: char) -> Vec<Cow<'_, str>> {
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let quoted = text.trim_start_matches(' ').strip_prefix('"').and_then(quoted);
        let after = quoted.as_ref().map_or(text, |(_, after)| after);
        let (field, next) = after.split_once(mark).map_or((after, None), |(field, next)| (field, Some(next)));
        fields.push(quoted.map_or_else(|| field.trim().into(), |(inner, _)| inner.into()));
        rest = next;
    }
    fields
}

/// The text up to the closing quote, with doubled quotes unescaped, and the rest of the line.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some((text[..at].replace("\"\"", "\""), &text[at + 1..]));
        }
        from = at + 2;
    }
}

fn of_json(text: &str) -> Result<Recorded, TraceError> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| TraceError::Line {
        line: error.line(),
        expected: "expected JSON: what is there is none".to_owned(),
    })?;
    if let Some(intervals) = value.get("intervals").and_then(Value::as_array) {
        return of_iperf3_json(intervals);
    }
    let Some(entries) = value.as_array() else {
        let expected = "expected a list of objects, each with a duration and a bandwidth, or iperf3's `intervals`";
        return Err(TraceError::Line { line: 1, expected: expected.to_owned() });
    };
    let mut rows = Rows::default();
    let names: Vec<&str> =
        entries.first().and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let fail = |number: usize| move |expected: String| TraceError::Entry { entry: number + 1, expected };
    let columns = match entries.is_empty() {
        true => return rows.finish(),
        false => Columns::of(&names).map_err(fail(0))?,
    };
    for (number, entry) in entries.iter().enumerate() {
        let value = |at: usize| {
            let value = entry.get(names[at]).and_then(Value::as_f64);
            value.ok_or_else(|| format!("expected a number as `{}`", names[at].chars().take(40).collect::<String>()))
        };
        let text = |at: usize| entry.get(names[at]).and_then(Value::as_str);
        columns.row(&mut rows, value, text).map_err(fail(number))?;
    }
    rows.finish()
}

fn of_iperf3_json(intervals: &[Value]) -> Result<Recorded, TraceError> {
    let mut rows = Rows::default();
    for (number, interval) in intervals.iter().enumerate() {
        let sum = interval.get("sum").unwrap_or(&Value::Null);
        if sum.get("omitted").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let value = |name: &str| {
            let value = sum.get(name).and_then(Value::as_f64);
            value.ok_or_else(|| TraceError::Entry {
                entry: number + 1,
                expected: format!("expected a number as sum.{name}"),
            })
        };
        let (start, end) = (value("start")?, value("end")?);
        let fail = |expected| TraceError::Entry { entry: number + 1, expected };
        rows.push(Some(start), Some(end - start), value("bits_per_second")?, None).map_err(fail)?;
    }
    rows.finish()
}

/// Parses iperf3's output: one interval per line, the sum of all streams if there are several. Skips the final summary
/// lines and omitted intervals at the beginning.
fn of_iperf3(text: &str) -> Result<Recorded, TraceError> {
    let sums = text.lines().any(|line| line.trim_start().starts_with("[SUM]"));
    let (mut rows, mut stream) = (Rows::default(), None);
    for (i, line) in text.lines().enumerate() {
        let Some((id, said)) = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let (id, words) = (id.trim(), said.split_whitespace().collect::<Vec<_>>());
        let Some((interval, rate)) = interval(&words) else { continue };
        let of_all = matches!(words.last(), Some(&"sender" | &"receiver"));
        if of_all || words.contains(&"(omitted)") || sums != (id == "SUM") {
            continue;
        }
        if !sums && *stream.get_or_insert(id) != id {
            let expected = format!(
                "expected one stream, or lines of their [SUM]: {} is another one",
                id.chars().take(8).collect::<String>()
            );
            return Err(TraceError::Line { line: i + 1, expected });
        }
        let (start, end) = interval;
        // older versions do not label summary lines
        if rows.end.is_some_and(|before| start < before - 1e-6 && end >= before - 1e-6) {
            continue;
        }
        rows.push(Some(start), Some(end - start), rate, None)
            .map_err(|expected| TraceError::Line { line: i + 1, expected })?;
    }
    rows.finish()
}

/// The interval (s) and the rate (bit/s) of a line from iperf3: "0.00-1.00 sec 1.25 MBytes 10.5 Mbits/sec ..."; iperf 2
/// writes "0.0- 1.0 sec ...".
fn interval(words: &[&str]) -> Option<((f64, f64), f64)> {
    let (start, end) = words.first()?.split_once('-')?;
    let end = if end.is_empty() { *words.get(1)? } else { end };
    let times = (start.parse::<f64>().ok()?, end.parse::<f64>().ok()?);
    let at = words.iter().position(|word| word.ends_with("bits/sec") || word.ends_with("Bytes/sec"))?;
    let number: f64 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    let unit = words[at];
    // iperf3's byte units are powers of 1024
    let (base, bits) = if unit.ends_with("bits/sec") { (1000f64, 1.0) } else { (1024f64, 8.0) };
    let power = match unit.trim_end_matches("bits/sec").trim_end_matches("Bytes/sec") {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some((times, number * bits * (0..power).fold(1.0, |product, _| product * base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<(u64, u64)>, u64), String> {
        let format = Format::of(text).ok_or("no format")?;
        let found = parse_recorded(text, format).map_err(|error| error.to_string())?;
        Ok((found.steps.iter().map(|step| (step.at.0 / 1_000_000, step.rate.0)).collect(), found.lasts.0 / 1_000_000))
    }

    #[test]
    fn a_header_names_columns_and_units() {
        let all = Ok((vec![(0, 1_500_000), (500, 0), (2000, 2_000_000)], 3500));
        for text in [
            "time_s,bandwidth_kbps\n10,1500\n10.5,0\n12,2000\n",
            "\u{feff}Timestamp (ms);cell;\"Throughput [Mbit/s]\"\n10000;a;1.5\n10500;b;0\n12000;c;2\n",
            "t\trate_bps\n0\t1500000\n0.5\t0\n2\t2e6\n",
            "# logged in a train\nduration_ms,bps,latency_ms\n500,1500000,20\n\n1500,0,-\n1500,2000000,9\n",
            "[{\"duration_ms\": 500, \"bandwidth_kbps\": 1500, \"latency_ms\": 20},\n{\"bandwidth_kbps\": 0, \"duration_ms\": 1500, \
             \"latency_ms\": 0}, {\"duration_ms\": 1500.0, \"bandwidth_kbps\": 2000}]",
            "Time,Rate in kbyte/s\n0,187.5\n0.5,0\n2,250\n",
            "Time (\u{b5}s),MBps\n0,0.1875\n500000,0\n2000000,0.25\n",
            "time_min,Mb/s\n1,1.5\n1.008333333333333333,0\n1.033333333333333333,2\n",
            "time_s,place,kbps,\n0,\"52.5,13.4\",1500,\n0.5,\"a \"\"b\"\"\",0\n2,c,2000,\n",
        ] {
            assert_eq!(read(text), all, "{text}");
        }
        let latencies = parse_recorded("duration_s,mbps,latency_ms\n1,2,30\n", Format::Csv).unwrap();
        assert_eq!(latencies.steps[0].latency, Some(Span::from_millis(30)));
    }

    #[test]
    fn times_may_be_dates() {
        let all = Ok((vec![(0, 1_500_000), (500, 0), (2000, 2_000_000)], 3500));
        for text in [
            "time,rate_kbps\n2026-01-31T12:00:00Z,1500\n2026-01-31T12:00:00.5Z,0\n2026-01-31T12:00:02Z,2000\n",
            "Timestamp (ms);Throughput [Mbit/s]\n2026-01-31 23:59:59+0100;1.5\n2026-01-31 23:59:59,5+0100;0\n\
             \"2026-01-31T23:00:01Z\";2\n",
            "kbps,date\n1500,20260131T235959\n0,20260131T235959.5\n2000,20260201T000001\n",
            "[{\"datetime\": \"2026-01-31 12:00:00\", \"kbps\": 1500}, {\"datetime\": \"2026-01-31 12:00:00.500\", \
             \"kbps\": 0}, {\"datetime\": \"2026-01-31 12:00:02\", \"kbps\": 2000}]",
        ] {
            assert_eq!(read(text), all, "{text}");
        }
        // other columns with times come before one of dates
        for name in ["time_s", "duration_s"] {
            let text = format!("date,{name},kbps\nyesterday,0.5,1500\ntoday,1,0\n");
            let lasts = if name == "time_s" { 1000 } else { 1500 };
            assert_eq!(read(&text), Ok((vec![(0, 1_500_000), (500, 0)], lasts)));
        }
    }

    #[test]
    fn iperf3_tells_intervals() {
        let tcp = "Connecting to host 10.0.0.1, port 5201\n[  5] local 10.0.0.2 port 1 connected to 10.0.0.1 port 5201\n\
            [ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
            [  5]   0.00-1.00   sec  9.99 MBytes  90.0 Mbits/sec    0   300 KBytes       (omitted)\n\
            [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0    300 KBytes\n\
            [  5]   1.00-2.00   sec   640 KBytes  5.24 Mbits/sec    1    200 KBytes\n\
            - - - - - - - - -\n[ ID] Interval           Transfer     Bitrate         Retr\n\
            [  5]   0.00-2.00   sec  1.88 MBytes  7.87 Mbits/sec    1             sender\n\
            [  5]   0.00-2.04   sec  1.75 MBytes  7.20 Mbits/sec                  receiver\n";
        assert_eq!(read(tcp), Ok((vec![(0, 10_500_000), (1000, 5_240_000)], 2000)));
        let udp = "[  5]   0.00-1.00   sec   119 KBytes   977 Kbits/sec  0.012 ms  1/86 (1.2%)\n\
            [  5]   1.00-2.00   sec   0.00 Bytes  0.00 bits/sec  0.012 ms  0/0 (0%)\n\
            [  5]   0.00-2.00   sec   119 KBytes   488 Kbits/sec  0.012 ms  1/86 (1.2%)\n";
        assert_eq!(read(udp), Ok((vec![(0, 977_000), (1000, 0)], 2000)));
        let sums = "[  5]   0.00-1.00   sec  1 MBytes  1.00 MBytes/sec\n[  7]   0.00-1.00   sec  1 MBytes  1.00 MBytes/sec\n\
            [SUM]   0.00-1.00   sec  2 MBytes  2.00 MBytes/sec\n";
        assert_eq!(read(sums), Ok((vec![(0, 16 << 20)], 1000)));
        assert!(read(&sums.replace("SUM", "  9")).unwrap_err().contains("line 2: expected one stream"));
        let older = "[  3]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec\n[  3]  1.0- 2.0 sec  1.25 MBytes  10.5 Mbits/sec\n\
            [  3] 10.0-11.0 sec  1.25 MBytes  10.5 Mbits/sec\n";
        assert!(read(older).unwrap_err().contains("line 3: expected a time where the row before ends, at 2 s"));
        let json = r#"{"start": {}, "intervals": [{"sum": {"start": 0, "end": 1.5, "bits_per_second": 7, "omitted": true}},
            {"sum": {"start": 0, "end": 1.5, "bits_per_second": 8e6, "omitted": false}}], "end": {}}"#;
        assert_eq!(read(json), Ok((vec![(0, 8_000_000)], 1500)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, said) in [
            ("time,rate\n0,1\n", "line 1: column `rate` has no unit: its name must end with _bps, _kbps"),
            ("time,rate\n0,1\n", "write rate_mbps if it is Mbit/s"),
            ("date,kbps\n2026-01-31,1\n", "line 2: expected a number in column 1, or a date with a time of day"),
            ("t,kbps\n31.01.2026 12:00,1\n", "line 2: expected a number in column 1, or a date with a time of day"),
            ("t,kbps\n2026-01-31 12:00,1\n7,1\n", "line 3: expected a date, as in the rows before"),
            ("t,kbps\n7,1\n2026-01-31 12:00,1\n", "line 3: expected a number as a time, as in the rows before"),
            ("t,kbps\n2026-01-31 12:00,1\n2026-01-31 12:01Z,1\n", "line 3: expected a time zone in all dates, or"),
            ("t,kbps\n2026-01-31 12:00,1\n2026-01-31 11:00,1\n", "line 3: expected a time that is not before"),
            ("time,cell\n0,1\n", "line 1: expected a column with a rate"),
            ("cell,kbps\n0,1\n", "line 1: expected a column with times: time_s"),
            ("t,down_kbps,up_kbps\n0,1,2\n", "line 1: `down_kbps` and `up_kbps` are both rates"),
            ("t,kbps\n0,1\n1,x\n", "line 3: expected a number in column 2"),
            ("t,kbps\n0,1\n1\n", "line 3: expected a number in column 2"),
            ("t,kbps\n2,1\n1,1\n", "line 3: expected a time that is not before"),
            ("t,kbps\n0,\"1,500\"\n", "line 2: expected a number in column 2"),
            ("t,kbps\n0,1,500\n", "line 2: expected 2 fields, as in the header"),
            (
                "[  5]   0.00-1.00   sec  1 MBytes  8.39 Mbits/sec\n[  5]   2.00-3.00   sec  1 MBytes  8.39 Mbits/sec\n",
                "line 2: expected a time where the row before ends, at 1 s",
            ),
            ("t,kbps\n0,-1\n", "line 2: expected a rate from 0"),
            ("t,gbps\n0,1e9\n", "line 2: expected a rate from 0"),
            ("duration_s,kbps\n-1,1\n", "line 2: expected a duration from 0"),
            ("t,kbps\n", "the trace cannot be used: it has no entries"),
            ("[{\"duration_ms\": 1, \"bandwidth_kbps\": 1}, 7]", "entry 2: expected a number as `"),
            ("[{\"duration_ms\": 1}]", "entry 1: expected a column with a rate"),
            ("{\"a\": 1}", "line 1: expected a list of objects"),
            ("[{\n\"a\" 1}]", "line 2: expected JSON"),
            ("[]", "it has no entries"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(said), "{text}: {found}");
        }
    }

    #[test]
    fn a_comment_that_names_other_units_is_no_comment() {
        for text in [
            "# seconds Mbit/s\n0 5\n",
            "# time_s rate_mbps, of a train\n0 5\n",
            "# 500 600\n0 5\n",
            "0 5\n# time_ms rate_kbps\n",
        ] {
            assert_eq!(other_units(text), None, "{text}");
        }
        let text = "# of a train\n# time_ms rate_kbps\n0 500\n1000 600\n";
        let said = crate::trace::read(text, None).unwrap_err().to_string();
        assert!(said.starts_with("line 2: the comment names other units than seconds and Mbit/s"), "{said}");
    }

    #[test]
    fn numbers_without_a_header_are_no_table() {
        for (text, expected) in [
            ("0,5\n1,6\n", "line 1: expected a header before the numbers, which names columns and units"),
            ("# of a train\n0; 5\n", "line 2: expected a header before the numbers"),
            ("0 5 6\n", "it is no trace that is read"),
        ] {
            let said = crate::trace::read(text, None).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
