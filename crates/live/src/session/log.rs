//! The event log of a session: every input with its time, and the resulting output and controller's figure.
//!
//! A log begins with [`MAGIC`], the length of the session's description (32 bits, little-endian) and that description
//! as JSON. One record per input follows, in which numbers are LEB128 unless noted otherwise: the input's type (a byte)
//! and the time since the last one in nanoseconds. Then, by type:
//!
//! - datagram: its ECN bits (a byte: 0 not ECN-capable, 1 ECT(0), 2 CE, 3 ECT(1)), its length, its length without
//!   trailing zeros, its bytes without these;
//! - share of a group's rate: the rate in bit/s;
//! - input from a bundle: its type (a byte), and its numbers.
//!
//! Then the number of datagrams sent, and of each its ECN bits (a byte), its header's length, its header and its
//! payload's length; the session's state (a byte) and the figure (64 bits, little-endian, IEEE 754). If the file ends
//! within a record, the log ends before that record: a killed writer loses only its last record. QUIC senders have
//! another record format (`controller_calls.rs`).

use super::{Bundled, EcnBits, End, Input, Outbox, Session, SessionSpec, State};
use paceline_units::{Rate, Time};
use std::io::{self, Write};

/// The first bytes of a log, with the version of its format.
pub const MAGIC: &[u8; 8] = b"PCLNEV1\n";

/// Name of a flow's log in messages.
pub(crate) const EVENT_LOG: &str = "its event log";

pub(super) const START: u8 = 1;
pub(super) const DATAGRAM: u8 = 2;
pub(super) const TIMER: u8 = 3;
pub(super) const STOP: u8 = 4;
pub(super) const UNREACHABLE: u8 = 5;
pub(super) const SHARE: u8 = 6;
pub(super) const BUNDLED: u8 = 7;

/// Writes a session's log.
#[derive(Debug)]
pub struct LogWriter<W: Write> {
    to: W,
    last: Time,
    record: Vec<u8>,
}

impl<W: Write> LogWriter<W> {
    /// Starts the log of a session with this specification.
    ///
    /// # Errors
    /// Those of writing to `to`.
    pub fn new(mut to: W, spec: &SessionSpec) -> io::Result<LogWriter<W>> {
        head(&mut to, spec)?;
        Ok(LogWriter { to, last: Time::ZERO, record: Vec::new() })
    }

    /// Writes an input and its result: `session` has processed it, and `out` contains the datagrams sent because of it.
    ///
    /// # Errors
    /// The file's.
    pub fn write(&mut self, now: Time, input: Input<'_>, out: &Outbox, session: &Session) -> io::Result<()> {
        let record = &mut self.record;
        record.clear();
        record.push(kind(input));
        number(record, now.since(self.last).0);
        self.last = self.last.max(now);
        if let Input::Datagram(bytes, ecn) = input {
            record.push(ecn as u8);
            let stripped = without_zeros(bytes);
            number(record, bytes.len() as u64);
            number(record, stripped.len() as u64);
            record.extend_from_slice(stripped);
        }
        if let Input::Share(rate) = input {
            number(record, rate.0);
        }
        if let Input::Bundled(bundled) = input {
            bundled.write(record);
        }
        number(record, out.len() as u64);
        for datagram in out.iter() {
            record.push(datagram.ecn as u8);
            number(record, datagram.header.len() as u64);
            record.extend_from_slice(datagram.header);
            number(record, datagram.payload.into());
        }
        record.push(state(session.state()));
        record.extend_from_slice(&session.figure().to_bits().to_le_bytes());
        self.to.write_all(record)
    }

    /// The underlying writer.
    pub fn get_ref(&self) -> &W {
        &self.to
    }

    /// Ends the log; returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Writes buffered records to the file.
    ///
    /// # Errors
    /// The file's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes the head of a log.
pub(super) fn head(to: &mut impl Write, spec: &SessionSpec) -> io::Result<()> {
    let described = serde_json::to_vec(spec)?;
    to.write_all(MAGIC)?;
    to.write_all(&(described.len() as u32).to_le_bytes())?;
    to.write_all(&described)
}

/// The bytes without trailing zeros, which make up most of a datagram from Paceline.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let mut left = bytes;
    // compare many at once, then the rest
    while let Some(shorter) = left.strip_suffix(&[0; 64]) {
        left = shorter;
    }
    while let Some(shorter) = left.strip_suffix(&[0]) {
        left = shorter;
    }
    left
}

fn kind(input: Input<'_>) -> u8 {
    match input {
        Input::Start => START,
        Input::Datagram(..) => DATAGRAM,
        Input::Timer => TIMER,
        Input::Stop => STOP,
        Input::Unreachable => UNREACHABLE,
        Input::Share(_) => SHARE,
        Input::Bundled(_) => BUNDLED,
    }
}

/// The log's number for a state; an end's depends on its reason.
pub(super) fn state(state: State) -> u8 {
    match state {
        State::Idle => 0,
        State::Opening => 1,
        State::Running => 2,
        State::Closing => 3,
        State::Ended(End::Done) => 4,
        State::Ended(End::Stopped) => 5,
        State::Ended(End::Refused(_)) => 6,
        State::Ended(End::Closed(_)) => 7,
        State::Ended(End::NoAnswer) => 8,
        State::Ended(End::Silence) => 9,
        State::Ended(End::Unreachable) => 10,
        State::Ended(End::TooFast) => 11,
        State::Ended(End::NoReports) => 12,
        State::Ended(End::ReportsCeased) => 13,
        State::Ended(End::NothingArrives) => 14,
        State::Ended(End::Left) => 15,
        State::Ended(End::TooMuchWork) => 16,
        State::Ended(End::TooManyWrites) => 17,
        State::Ended(End::Quic(_)) => 18,
    }
}

/// Appends a number in LEB128.
pub(super) fn number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// An input as stored in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Logged {
    Start,
    Datagram(Vec<u8>, EcnBits),
    Timer,
    Stop,
    Unreachable,
    Share(Rate),
    Bundled(Bundled),
}

impl Logged {
    pub(super) fn input(&self) -> Input<'_> {
        match self {
            Logged::Start => Input::Start,
            Logged::Datagram(bytes, ecn) => Input::Datagram(bytes, *ecn),
            Logged::Timer => Input::Timer,
            Logged::Stop => Input::Stop,
            Logged::Unreachable => Input::Unreachable,
            Logged::Share(rate) => Input::Share(*rate),
            Logged::Bundled(bundled) => Input::Bundled(*bundled),
        }
    }
}

/// One record.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Record {
    pub(super) time: Time,
    pub(super) input: Logged,
    pub(super) out: Outbox,
    pub(super) state: u8,
    pub(super) figure: u64,
}

/// Reads a log.
pub(super) struct LogReader<'a> {
    rest: &'a [u8],
    last: Time,
}

/// Why a record cannot be read.
pub(super) enum Broken {
    /// The log ends within the record.
    Short,
    /// The record contains an invalid value.
    Wrong(&'static str),
}

impl<'a> LogReader<'a> {
    /// The reader of a log, and the description of its session.
    pub(super) fn new(log: &'a [u8]) -> Result<(LogReader<'a>, SessionSpec), String> {
        let rest = log.strip_prefix(MAGIC).ok_or("it does not begin as an event log does")?;
        let (len, rest) = rest.split_first_chunk::<4>().ok_or("it ends within its head")?;
        let (described, rest) =
            rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or("it ends within its head")?;
        let spec = serde_json::from_slice(described).map_err(|error| format!("its session: {error}"))?;
        Ok((LogReader { rest, last: Time::ZERO }, spec))
    }

    /// A reader of records without a head.
    #[cfg(test)]
    pub(super) fn of_records(rest: &'a [u8]) -> LogReader<'a> {
        LogReader { rest, last: Time::ZERO }
    }

    /// The next record; `None` at the end.
    pub(super) fn record(&mut self) -> Result<Option<Record>, Broken> {
        self.whole(LogReader::whole_record)
    }

    /// The result of `read` on the next bytes; `None` at the end, or if the log ends within them.
    pub(super) fn whole<T>(
        &mut self,
        read: impl FnOnce(&mut LogReader<'a>) -> Result<T, Broken>,
    ) -> Result<Option<T>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let before = self.rest;
        match read(self) {
            Err(Broken::Short) => {
                self.rest = before;
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn whole_record(&mut self) -> Result<Record, Broken> {
        let kind = self.byte()?;
        let time = Time(self.last.0.saturating_add(self.number()?));
        let input = match kind {
            START => Logged::Start,
            DATAGRAM => {
                let ecn = EcnBits::of_number(self.byte()?).ok_or(Broken::Wrong("ECN bits"))?;
                let (len, stripped) = (self.number()?, self.number()?);
                if len > 65_535 || stripped > len {
                    return Err(Broken::Wrong("a datagram's length"));
                }
                let mut bytes = vec![0; len as usize];
                bytes[..stripped as usize].copy_from_slice(self.take(stripped as usize)?);
                Logged::Datagram(bytes, ecn)
            }
            TIMER => Logged::Timer,
            STOP => Logged::Stop,
            UNREACHABLE => Logged::Unreachable,
            SHARE => Logged::Share(Rate(self.number()?)),
            BUNDLED => Logged::Bundled(Bundled::read(self)?),
            _ => return Err(Broken::Wrong("an input's kind")),
        };
        let mut out = Outbox::default();
        for _ in 0..self.number()? {
            let ecn = EcnBits::of_number(self.byte()?).ok_or(Broken::Wrong("ECN bits"))?;
            let len = self.number()?;
            let header = self.take(usize::try_from(len).map_err(|_| Broken::Short)?)?;
            let payload = u16::try_from(self.number()?).map_err(|_| Broken::Wrong("a payload's length"))?;
            out.push(payload, ecn, |to| to.extend_from_slice(header));
        }
        let state = self.byte()?;
        let figure = self.bits()?;
        self.last = time;
        Ok(Record { time, input, out, state, figure })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (first, rest) = self.rest.split_at_checked(count).ok_or(Broken::Short)?;
        self.rest = rest;
        Ok(first)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.take(1)?[0])
    }

    /// Reads 64 bits, little-endian.
    pub(super) fn bits(&mut self) -> Result<u64, Broken> {
        Ok(self.take(8)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    pub(super) fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Broken::Wrong("a number"))
    }
}
