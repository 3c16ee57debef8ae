//! qlog files of any QUIC program, and the state of each connection over time.
//!
//! Three forms are read: one JSON value with all traces (`.qlog`), a JSON text sequence (`.sqlog`), and one JSON value
//! per line. Events may be objects or, in the oldest drafts, lists. Times may be relative to an epoch, to a reference
//! time, or to the previous event, in seconds, milliseconds, microseconds or nanoseconds. A file is read as a stream,
//! with one event in memory at a time.
//!
//! ```
//! use paceline_qlog::Reader;
//! use paceline_units::Span;
//!
//! let text = r#"{"qlog_version": "0.3", "traces": [{"vantage_point": {"type": "server"}, "events": [
//!     {"time": 1000, "name": "recovery:metrics_updated", "data": {"cwnd": 12000, "latest_rtt": 50.5}}]}]}"#;
//! let mut reader = Reader::new(Span::from_millis(10));
//! reader.read("a.qlog", &mut || Ok(Box::new(text.as_bytes())))?;
//! let reading = reader.finish();
//! assert_eq!(reading.connections[0].vantage, "server");
//! # Ok::<(), paceline_qlog::Error>(())
//! ```

mod byte_ranges;
mod connection;
mod contained;
mod date;
mod events;
mod packets;
mod rows;
mod rtt;
mod sequential;
mod state;
mod trace;
mod value;

pub use connection::{Connection, Ended, Measures, QLOG, Table, Way};

use contained::{File, For, Metered, Outline};
use events::on_event;
use paceline_units::Span;
use sequential::Records;
use serde::de::DeserializeSeed as _;
use serde_json::Value;
use state::State;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use trace::{Began, Clock, Head, said};
use value::Numbers;

/// Maximum rows kept for all connections, about 100 MB; with more, intervals get longer.
const MAX_ROWS: usize = 1 << 19;

/// Maximum connections followed.
pub const MAX_CONNECTIONS: usize = 10_000;

/// Bytes read at once.
const PIECE: usize = 1 << 16;

/// Maximum names kept, of controllers' states and of skipped events.
const MAX_NAMES: usize = 1000;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot read it.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// It is JSON, or nearly, but no valid qlog.
    #[error("{file}, line {line}, column {column}: {what}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// An unsupported version.
    #[error("{file} is a qlog of version {version}, from before the drafts; versions from draft-00 on are read")]
    Old {
        /// The file.
        file: String,
        /// Its version.
        version: String,
    },
    /// It is no qlog.
    #[error(
        "{file} is no qlog: {why}. A qlog begins with an object that has qlog_version or file_schema, be it one JSON value (.qlog) or a sequence of them (.sqlog)"
    )]
    NotQlog {
        /// The file.
        file: String,
        /// What it lacks.
        why: String,
    },
}

/// Results of all files.
#[derive(Debug, Default)]
pub struct Reading {
    /// One connection for each trace and each group of events in it, in the order of the files.
    pub connections: Vec<Connection>,
    /// Names of the controllers' states, by the numbers in column `state`.
    pub states: Vec<String>,
    /// Counts of skipped events, by name.
    pub skipped: BTreeMap<String, u64>,
    /// Count of events read.
    pub events: u64,
    /// What a reader of the results should know, in sentences.
    pub notes: Vec<String>,
}

struct Following {
    file: usize,
    trace: usize,
    group: Option<String>,
    state: State,
}

#[derive(Default)]
struct TraceState {
    head: Head,
    clock: Clock,
}

struct FileState {
    name: String,
    cut: bool,
}

/// Reads files; [`Reader::finish`] returns the results.
pub struct Reader {
    every: Span,
    max_rows: usize,
    rows: usize,
    files: Vec<FileState>,
    traces: Vec<TraceState>,
    by_key: BTreeMap<(usize, Option<String>), usize>,
    connections: Vec<Following>,
    over_limit: u64,
    broken: u64,
    /// Events without content.
    empty: u64,
    thinned: bool,
    reading: Reading,
}

/// UTF-8's byte order mark, which some editors and programs write at the start of a file and a JSON parser may ignore
/// (RFC 8259 section 8.1).
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Opens a file; it may be called several times.
pub type Open<'o> = &'o mut dyn FnMut() -> io::Result<Box<dyn Read>>;

impl Reader {
    /// Keeps a row for each interval of `every` with logged events, or for each time with events if `every` is zero.
    #[must_use]
    pub fn new(every: Span) -> Reader {
        Reader {
            every,
            max_rows: MAX_ROWS,
            rows: 0,
            files: Vec::new(),
            traces: Vec::new(),
            by_key: BTreeMap::new(),
            connections: Vec::new(),
            over_limit: 0,
            broken: 0,
            empty: 0,
            thinned: false,
            reading: Reading::default(),
        }
    }

    /// Reads a file. `open` returns its bytes from the beginning, uncompressed, and is called up to three times. A
    /// truncated file is read up to its last whole event.
    ///
    /// # Errors
    /// [`Error`]. Results of other files, and of what came before the error, are kept.
    pub fn read(&mut self, name: &str, open: Open) -> Result<(), Error> {
        let io = |error| Error::Io { file: name.to_owned(), error };
        self.files.push(FileState { name: name.to_owned(), cut: false });
        let mut start = [0; 4096];
        let mut first = open().map_err(io)?;
        let read = first.read(&mut start).map_err(io)?;
        drop(first);
        let mark = if start[..read].starts_with(MARK) { MARK.len() } else { 0 };
        let open: Open = &mut || {
            let mut from = open()?;
            from.read_exact(&mut [0; MARK.len()][..mark])?;
            Ok(from)
        };
        let begins = start[mark..read].iter().find(|byte| !byte.is_ascii_whitespace()).copied();
        match begins {
            Some(sequential::SEPARATOR) => self.read_records(name, open),
            Some(b'{') => {
                let mut outline = Outline::default();
                let (from, meter) = Metered::new(open().map_err(io)?);
                let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(PIECE, from));
                let done = File(For::Outline(&mut outline), &meter).deserialize(&mut json);
                if outline.has_traces {
                    self.read_contained(name, open, outline, done.map_err(|error| (error, meter.ended())))
                } else {
                    self.read_records(name, open)
                }
            }
            Some(byte) if byte < 0x80 && (byte.is_ascii_graphic() || byte.is_ascii_control()) => {
                Err(not_qlog(name, "it does not begin with an object of JSON"))
            }
            Some(_) => Err(not_qlog(name, "it is no text; if it is compressed, only gzip is read")),
            None => Err(not_qlog(name, "it is empty")),
        }
    }

    /// The results of all files.
    #[must_use]
    pub fn finish(mut self) -> Reading {
        let shifts = self.shifts();
        let mut reading = std::mem::take(&mut self.reading);
        self.say(&mut reading.notes, &reading.skipped, &shifts);
        for (number, file) in self.files.iter().enumerate() {
            if !self.connections.iter().any(|one| one.file == number) {
                reading.notes.push(format!("{} tells of no connection: there is no event in it", file.name));
            }
        }
        say_of_left_out(&mut reading.notes, self.connections.iter().map(|one| &one.state.numbers));
        for Following { file, trace, group, state } in self.connections {
            let FileState { name, cut } = &self.files[file];
            let head = &self.traces[trace].head;
            let shift = shifts[trace].unwrap_or_default();
            reading.connections.push(state.finish(name, head, group, *cut, (shift, self.every)));
        }
        say_of_connections(&mut reading);
        reading
    }

    /// The start of each trace on a common clock; `None` if unknown: the trace then begins at zero.
    fn shifts(&self) -> Vec<Option<Span>> {
        let began = |of: fn(Began) -> Option<f64>| -> Option<Vec<f64>> {
            self.traces.iter().map(|trace| trace.clock.began.and_then(of)).collect()
        };
        let dates = began(|began| if let Began::Date(at) = began { Some(at) } else { None });
        let began = dates.or_else(|| began(|began| if let Began::OfRun(at) = began { Some(at) } else { None }));
        let first = began.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        match began {
            Some(began) if began.len() > 1 && began.iter().all(|at| at - first < 86_400.0) => {
                began.iter().map(|at| Some(Span::from_secs_f64(at - first))).collect()
            }
            _ => vec![None; self.traces.len()],
        }
    }

    /// Adds notes about the files for a reader of the results.
    fn say(&self, notes: &mut Vec<String>, skipped: &BTreeMap<String, u64>, shifts: &[Option<Span>]) {
        for file in self.files.iter().filter(|file| file.cut) {
            notes.push(format!("{} ends in the middle of an event: what came before it was read", file.name));
        }
        if self.traces.len() > 1 && shifts.iter().any(Option::is_none) {
            notes.push("the files do not all tell when they began: each trace begins at 0 s".to_owned());
        }
        let back: u64 = self.traces.iter().map(|trace| trace.clock.back).sum();
        if back > 0 {
            notes.push(format!("{back} events were logged after later ones: they count at the later time"));
        }
        let count: u64 = skipped.values().sum();
        if let Some((name, most)) = skipped.iter().max_by_key(|(_, count)| **count) {
            notes.push(format!("{count} events of {} kinds are not read, {most} of them {name}", skipped.len()));
        }
        if self.broken > 0 {
            notes.push(format!("{} records end too early and were left out", self.broken));
        }
        match self.empty {
            0 => {}
            1 => notes.push("an event has nothing in it: it was left out".to_owned()),
            many => notes.push(format!("{many} events have nothing in them: they were left out")),
        }
        if self.over_limit > 0 {
            notes.push(format!(
                "{} events belong to connections beyond the first {MAX_CONNECTIONS}, which were not followed",
                self.over_limit
            ));
        }
        if self.thinned {
            notes.push(format!("the logs are long: rows are {:.3} s apart", self.every.as_secs_f64()));
        }
    }

    fn read_contained(
        &mut self,
        name: &str,
        open: Open,
        outline: Outline,
        done: Result<(), (serde_json::Error, bool)>,
    ) -> Result<(), Error> {
        if let Err((error, ended)) = done {
            self.stopped(name, error, 1, ended)?;
        }
        if !self.files.last().is_some_and(|file| file.cut) {
            check(name, &Value::Object(outline.about))?;
        }
        if outline.errors > 0 {
            self.reading.notes.push(format!("{name} says of {} traces that they could not be had", outline.errors));
        }
        let first = self.traces.len();
        self.traces.extend(outline.heads.into_iter().map(|head| TraceState { head, clock: Clock::default() }));
        let from = open().map_err(|error| Error::Io { file: name.to_owned(), error })?;
        let (from, meter) = Metered::new(from);
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(PIECE, from));
        let mut take = |trace: usize, event| self.event(first + trace, event);
        let done = File(For::Events(&mut take), &meter).deserialize(&mut json);
        done.or_else(|error| self.stopped(name, error, 1, meter.ended()))
    }

    fn read_records(&mut self, name: &str, open: Open) -> Result<(), Error> {
        let io = |error: io::Error| Error::Io { file: name.to_owned(), error };
        let mut records = Records::new(BufReader::with_capacity(PIECE, open().map_err(io)?)).map_err(io)?;
        let mut trace = None;
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.cut();
                    break;
                }
                Err(error) => return Err(io(error)),
            };
            let value: Value = match serde_json::from_slice(&record.bytes) {
                Ok(value) => value,
                // The writing program was killed here.
                Err(_) if trace.is_some() && record.last && !record.whole => {
                    self.cut();
                    break;
                }
                // RFC 7464, 2.4: another program has appended to what a killed one left.
                Err(error) if trace.is_some() && error.classify() == serde_json::error::Category::Eof => {
                    self.broken += 1;
                    continue;
                }
                Err(error) => return self.stopped(name, error, record.line, false),
            };
            match trace {
                None => {
                    check(name, &value)?;
                    trace = Some(self.traces.len());
                    let head = Head::of(value.get("trace").unwrap_or(&value));
                    self.traces.push(TraceState { head, clock: Clock::default() });
                }
                Some(trace) => self.event(trace, value).map_err(|what| Error::Malformed {
                    file: name.to_owned(),
                    line: record.line,
                    column: 1,
                    what,
                })?,
            }
        }
        match trace {
            Some(_) => Ok(()),
            None => Err(not_qlog(name, "there is nothing in it")),
        }
    }

    /// Handles a parse error; a file that ends too early is no error. `line` is where the text began. `ended` says
    /// whether the file was read to its end, so that the end itself may be the mistake.
    fn stopped(&mut self, name: &str, error: serde_json::Error, line: usize, ended: bool) -> Result<(), Error> {
        use serde_json::error::Category;
        let malformed = |what: String, error: &serde_json::Error| Error::Malformed {
            file: name.to_owned(),
            line: line + error.line().saturating_sub(1),
            column: error.column().max(1),
            what,
        };
        match error.classify() {
            Category::Eof => {
                self.cut();
                Ok(())
            }
            Category::Io => {
                let error = io::Error::from(error);
                if error.kind() == io::ErrorKind::UnexpectedEof {
                    self.cut();
                    return Ok(());
                }
                Err(Error::Io { file: name.to_owned(), error })
            }
            Category::Syntax if ended => {
                self.cut();
                Ok(())
            }
            Category::Syntax | Category::Data => {
                // Its message ends with the position, which precedes it here.
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
                Err(malformed(what, &error))
            }
        }
    }

    fn cut(&mut self) {
        if let Some(file) = self.files.last_mut() {
            file.cut = true;
        }
    }

    /// Handles an event of a trace; the error is a message.
    fn event(&mut self, trace: usize, event: Value) -> Result<(), String> {
        if is_empty_event(&event) {
            self.empty += 1;
            return Ok(());
        }
        let TraceState { head, clock } = &mut self.traces[trace];
        let said = said(head, clock, event)?;
        let unit = head.unit;
        let key = (trace, said.group);
        let number = match self.by_key.get(&key) {
            Some(number) => *number,
            None if self.connections.len() >= MAX_CONNECTIONS => {
                self.over_limit += 1;
                return Ok(());
            }
            None => {
                let (file, group) = (self.files.len() - 1, key.1.clone());
                self.connections.push(Following { file, trace, group, state: State::default() });
                self.by_key.insert(key, self.connections.len() - 1);
                self.connections.len() - 1
            }
        };
        let state = &mut self.connections[number].state;
        state.advance(said.at);
        if on_event(state, &said.name, &said.data, unit, &mut self.reading.states) {
            self.reading.events += 1;
            self.rows += usize::from(state.record(self.every));
        } else {
            let skipped = &mut self.reading.skipped;
            let known = skipped.len() < MAX_NAMES || skipped.contains_key(&said.name);
            let name = if known { said.name } else { "others".to_owned() };
            *skipped.entry(name).or_default() += 1;
        }
        while self.rows > self.max_rows {
            self.thinned = true;
            self.every = Span(self.every.0.max(500_000).saturating_mul(2));
            let gone: usize = self.connections.iter_mut().map(|one| one.state.rows.thin(self.every)).sum();
            self.rows -= gone;
            if self.every.0 > 1 << 56 {
                break;
            }
        }
        Ok(())
    }
}

/// Whether an event is an empty list or object.
fn is_empty_event(event: &Value) -> bool {
    match event {
        Value::Array(parts) => parts.is_empty(),
        Value::Object(parts) => parts.is_empty(),
        _ => false,
    }
}

/// Checks that a file's first object is a qlog's, of a supported version.
fn check(name: &str, first: &Value) -> Result<(), Error> {
    if first.get("qlog_version").is_none() && first.get("file_schema").is_none() {
        let why = "its first object has neither qlog_version nor file_schema";
        return Err(not_qlog(name, why));
    }
    // Before draft-00, events and the names of their parts were in the file's own object, or in those of `connections`.
    if ["events", "connections"].iter().any(|key| first.get(key).is_some_and(Value::is_array)) {
        let version = match first.get("qlog_version") {
            Some(Value::String(version)) => version.clone(),
            Some(Value::Number(version)) => version.to_string(),
            _ => "unknown".to_owned(),
        };
        return Err(Error::Old { file: name.to_owned(), version: version.chars().take(40).collect() });
    }
    Ok(())
}

fn not_qlog(file: &str, why: &str) -> Error {
    Error::NotQlog { file: file.to_owned(), why: why.to_owned() }
}

/// Adds notes about ignored values, field by field.
fn say_of_left_out<'n>(notes: &mut Vec<String>, numbers: impl Iterator<Item = &'n Numbers>) {
    let mut all: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (name, (count, value)) in numbers.flat_map(|one| &one.left_out) {
        all.entry(name).or_insert((0, value)).0 += count;
    }
    for (name, (count, value)) in all {
        notes.push(if count == 1 {
            format!("a value of {name} is no number from 0 on, {value}: it was left out")
        } else {
            format!("{count} values of {name} are no numbers from 0 on, the first {value}: they were left out")
        });
    }
}

/// Adds notes about connections for a reader of the results.
fn say_of_connections(reading: &mut Reading) {
    let Reading { connections, notes, .. } = reading;
    let several =
        |count: usize| if count == 1 { "of one connection".to_owned() } else { format!("of {count} connections") };
    let silent = connections.iter().filter(|connection| !connection.has_window).count();
    if silent > 0 {
        notes.push(format!(
            "no window is known {}: no event of the log tells it (recovery:metrics_updated, or quic:recovery_metrics_updated)",
            several(silent)
        ));
    }
    for what in ["round-trip times", "bytes in flight", "losses"] {
        let count = connections.iter().filter(|connection| connection.derived.contains(&what)).count();
        if count > 0 {
            notes.push(format!(
                "the {what} {} are derived from packets and acknowledgements: the log does not tell them",
                several(count)
            ));
        }
    }
    let seconds = connections.iter().filter(|connection| connection.rtt_in_seconds).count();
    if seconds > 0 {
        notes.push(format!(
            "the round-trip times {} stand there in seconds, as quinn writes them, and are read so",
            several(seconds)
        ));
    }
}
