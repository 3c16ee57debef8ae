//! A trace of a file: its head, and its events, in any dialect.

use super::date;
use super::value::{number, short, text_of};
use paceline_units::Time;
use serde_json::Value;

/// Maximum distance of an event from the first one, in seconds; more is an error of its time.
const LONGEST_S: f64 = 366.0 * 86_400.0;

/// Reference of an event's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Format {
    /// An epoch: 1970, or the log's own.
    #[default]
    Since,
    /// The reference time.
    Relative,
    /// The previous event.
    Delta,
}

impl Format {
    /// The time format of an event or of a trace's head, if given. The error is a message.
    fn of(says: &Value) -> Result<Option<Format>, String> {
        match (says.get("time_format").unwrap_or(&Value::Null), text_of(says, &["time_format"])) {
            (Value::Null, _) => Ok(None),
            (_, Some("absolute" | "relative_to_epoch")) => Ok(Some(Format::Since)),
            (_, Some("relative")) => Ok(Some(Format::Relative)),
            (_, Some("delta" | "relative_to_previous_event")) => Ok(Some(Format::Delta)),
            (other, _) => Err(format!(
                "time_format is {}, which is none of relative_to_epoch, relative_to_previous_event and, of the older drafts, \
                 absolute, relative and delta",
                short(other)
            )),
        }
    }
}

/// The unit of times, in seconds; the default is milliseconds. The error is a message.
fn unit(says: &[&Value]) -> Result<f64, String> {
    match says.iter().find_map(|says| says.get("time_units").filter(|units| !units.is_null())) {
        None => Ok(1e-3),
        Some(units) => match units.as_str() {
            Some("s") => Ok(1.0),
            Some("ms") => Ok(1e-3),
            Some("us" | "micros") => Ok(1e-6),
            Some("ns") => Ok(1e-9),
            _ => Err(format!("time_units are {}, which are none of s, ms, us and ns", short(units))),
        },
    }
}

/// What precedes the events of a trace.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub vantage: String,
    group: Option<String>,
    format: Format,
    reference: Option<f64>,
    /// The unit of times, in seconds.
    pub unit: f64,
    /// Error message for an unknown time format or unit, with which times cannot be read.
    unknown: Option<String>,
    /// Whether Paceline wrote it, which logs each loss.
    pub ours: bool,
    fields: Vec<String>,
}

/// An event's parts.
#[derive(Debug)]
pub struct Said {
    pub at: Time,
    /// With category and colon as in the log; lower case.
    pub name: String,
    pub group: Option<String>,
    pub data: Value,
}

impl Head {
    /// From the object of `trace`, or of an entry of `traces`; its events may be absent.
    pub fn of(trace: &Value) -> Head {
        let null = &Value::Null;
        let common = trace.get("common_fields").unwrap_or(null);
        let vantage = trace.get("vantage_point").unwrap_or(null);
        let configuration = trace.get("configuration").unwrap_or(null);
        let (unit, format) = (unit(&[configuration, common]), Format::of(common));
        let unknown = unit.as_ref().err().or(format.as_ref().err()).cloned();
        let unit = unit.unwrap_or(1e-3);
        let fields = trace.get("event_fields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let reference = common.get("reference_time").unwrap_or(null);
        // A clock outside the calendar has the epoch "unknown".
        let date =
            ["epoch", "wall_clock_time"].iter().find_map(|name| date::since_1970_s(text_of(reference, &[name])?));
        let code = text_of(common, &["code_version"]).unwrap_or_default();
        Head {
            vantage: text_of(vantage, &["type"]).unwrap_or("unknown").to_ascii_lowercase(),
            group: group(common),
            format: format.ok().flatten().unwrap_or_default(),
            reference: date.map(|seconds| seconds / unit).or_else(|| number(reference)),
            unit,
            unknown,
            ours: code.starts_with("paceline "),
            fields: fields.iter().map(|field| field.as_str().unwrap_or("").to_ascii_lowercase()).collect(),
        }
    }
}

/// The group of an event or a trace, if given.
fn group(of: &Value) -> Option<String> {
    let named = ["group_id", "ODCID", "odcid", "dcid"].iter().find_map(|name| of.get(name))?;
    match named {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        // In the oldest drafts, an object with several parts.
        other => Some(other.to_string()),
    }
}

/// When a trace began.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Began {
    /// In seconds since 1970.
    Date(f64),
    /// In seconds since the start of a run of Paceline, from which all logs of the run count.
    OfRun(f64),
}

/// The clock of a trace.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The previous event's time, in the log's unit.
    before: Option<f64>,
    first: Option<f64>,
    now: Time,
    /// Time of the first event, if logged.
    pub began: Option<Began>,
    /// Count of events with a time before the previous event's.
    pub back: u64,
}

impl Clock {
    /// The time of an event, counted from the first one; never before the previous one.
    fn at(&mut self, value: f64, format: Format, head: &Head) -> Result<Time, String> {
        if let Some(unknown) = &head.unknown {
            return Err(unknown.clone());
        }
        let value = if format == Format::Delta { self.before.unwrap_or(0.0) + value } else { value };
        self.before = Some(value);
        let first = *self.first.get_or_insert(value);
        if first == value && self.now == Time::ZERO && self.began.is_none() {
            let from = if format == Format::Relative { head.reference } else { head.reference.or(Some(0.0)) };
            // A time below 1e9 s is not a date, but a time of some other clock.
            let date = from.map(|from| (from + value) * head.unit).filter(|seconds| *seconds > 1e9);
            self.began = date.map(Began::Date).or(head.ours.then_some(Began::OfRun(value * head.unit)));
        }
        let seconds = (value - first) * head.unit;
        if !(-LONGEST_S..=LONGEST_S).contains(&seconds) {
            return Err(format!(
                "its time, {value}, lies more than a year from the first event's: are time_format and the unit right?"
            ));
        }
        let at = Time::from_secs_f64(seconds);
        if at < self.now {
            self.back += 1;
        }
        self.now = self.now.max(at);
        Ok(self.now)
    }
}

/// Splits an event into its parts.
pub fn said(head: &Head, clock: &mut Clock, event: Value) -> Result<Said, String> {
    match event {
        Value::Array(values) => listed(head, clock, values),
        Value::Object(_) => named(head, clock, event),
        other => Err(format!("an event is an object, or a list by event_fields; this is {}", short(&other))),
    }
}

/// Names of an event's time.
const TIMES: [&str; 3] = ["time", "relative_time", "delta_time"];

/// An event of draft-00 and draft-01: a list, with its parts named by `event_fields`.
fn listed(head: &Head, clock: &mut Clock, values: Vec<Value>) -> Result<Said, String> {
    if head.fields.is_empty() {
        return Err("an event is a list, but the trace has no event_fields that say what is in it".to_owned());
    }
    let (mut time, mut category, mut kind, mut own_group, mut data) =
        (None, None, None, head.group.clone(), Value::Null);
    for (field, value) in head.fields.iter().zip(values) {
        match field.as_str() {
            "time" => time = Some((value, Format::Since)),
            "relative_time" => time = Some((value, Format::Relative)),
            "delta_time" => time = Some((value, Format::Delta)),
            "category" => category = value.as_str().map(str::to_ascii_lowercase),
            "event" | "event_type" | "type" | "name" => kind = value.as_str().map(str::to_ascii_lowercase),
            "group_id" | "group_ids" | "odcid" => own_group = group(&serde_json::json!({ "group_id": value })),
            "data" => data = value,
            _ => {}
        }
    }
    let (value, format) =
        time.ok_or_else(|| match head.fields.iter().any(|field| TIMES.contains(&field.as_str())) {
            true => "the event's list ends before its time",
            false => "event_fields has none of time, relative_time and delta_time",
        })?;
    let value = number(&value).ok_or_else(|| format!("the event's time is {}, not a number", short(&value)))?;
    let kind = kind.ok_or("the event has no name")?;
    let name = category.map_or(kind.clone(), |category| format!("{category}:{kind}"));
    Ok(Said { at: clock.at(value, format, head)?, name, group: own_group, data })
}

/// An event of the later drafts: an object.
fn named(head: &Head, clock: &mut Clock, mut event: Value) -> Result<Said, String> {
    let times = [("time", head.format), ("relative_time", Format::Relative), ("delta_time", Format::Delta)];
    let (field, mut format) =
        times.into_iter().find(|(field, _)| event.get(field).is_some()).ok_or("the event has no time")?;
    if let Some(own) = Format::of(&event)? {
        format = own;
    }
    let value = number(&event[field])
        .ok_or_else(|| format!("the event's {field} is {}, not a number", short(&event[field])))?;
    let kind = text_of(&event, &["name", "event", "event_type", "type"]).ok_or("the event has no name")?;
    let name = match text_of(&event, &["category"]) {
        Some(category) if !kind.contains(':') => format!("{category}:{kind}"),
        _ => kind.to_owned(),
    };
    let own_group = group(&event).or_else(|| head.group.clone());
    let data = event.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Said { at: clock.at(value, format, head)?, name: name.to_ascii_lowercase(), group: own_group, data })
}
