//! The event log of a QUIC sender: every call from quinn to its congestion control, and the control's state after it.
//!
//! Keys are random, so no datagrams of a connection occur twice; but its controllers do the same when they receive the
//! same calls. The log begins like any other ([`super::log`]). One record per call follows, in which numbers are
//! LEB128: the call's type (a byte), the path's number, the time since that path's last call in nanoseconds. Then, by
//! type:
//!
//! - new path: the datagram size;
//! - packets sent: their bytes, the last one's number;
//! - acknowledgement: the number of packets; of each its age (time since it was sent) in nanoseconds and its bytes;
//!   bytes still in flight; quinn's round-trip time in nanoseconds; whether the window limited the sender (a byte);
//! - loss: the age of the newest packet, the bytes of all, whether it is persistent (a byte);
//! - marks: the age of the newest packet;
//! - changed datagram size: the new size.
//!
//! Then the state: the window, the granted window, the threshold plus one (0: none), bytes in flight, the phase (a
//! byte), the pacing rate (64 bits, little-endian, IEEE 754; all ones: none).

use super::log::{Broken, LogReader, head, number};
use super::quic::controllers;
use super::replay::{Divergence, ReplayError, Replayed, wrong};
use super::{SessionSpec, Side};
use paceline_packet::quic::INITIAL_DATAGRAM;
use paceline_quinn::{Call, Law, Phase, Seen, State, What};
use paceline_units::{Span, Time};
use std::io::{self, Write};

const BEGAN: u8 = 1;
const SENT: u8 = 2;
const ACKED: u8 = 3;
const LOST: u8 = 4;
const MARKED: u8 = 5;
const DATAGRAM: u8 = 6;

/// Bounds above any real value: bytes lost at once, and nanoseconds of a flow (13 days).
const MAX_LOST: u64 = 1 << 32;
const MAX_TIME: u64 = 1 << 50;

/// A log being written. A write error ends the log, not the flow.
pub(crate) struct CallLog {
    to: Option<Box<dyn Write + Send>>,
    last: Time,
    record: Vec<u8>,
}

impl std::fmt::Debug for CallLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallLog").field("last", &self.last).finish_non_exhaustive()
    }
}

impl CallLog {
    /// Starts the log of a sender with this specification.
    ///
    /// # Errors
    /// Those of writing to `to`.
    pub(super) fn new(mut to: Box<dyn Write + Send>, spec: &SessionSpec) -> io::Result<CallLog> {
        head(&mut to, spec)?;
        Ok(CallLog { to: Some(to), last: Time::ZERO, record: Vec::new() })
    }

    /// Writes a call and the state after it.
    ///
    /// # Errors
    /// The file's, once: the log then ends, and is complete up to there.
    pub(crate) fn write(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let (record, at) = (&mut self.record, seen.at);
        let ago = |record: &mut Vec<u8>, sent: Time| number(record, at.since(sent).0);
        if matches!(seen.what, What::Began { .. }) {
            self.last = Time::ZERO;
        }
        record.clear();
        record.push(kind(&seen.what));
        number(record, seen.path);
        ago(record, self.last);
        self.last = at;
        match seen.what {
            What::Began { datagram } | What::Called(Call::Datagram(datagram)) => number(record, datagram.into()),
            What::Called(Call::Sent { bytes, last_packet_number }) => {
                number(record, bytes);
                number(record, last_packet_number);
            }
            What::Called(Call::Acked { packets, in_flight, smoothed, limited }) => {
                number(record, packets.len() as u64);
                for &(sent, bytes) in packets {
                    ago(record, sent);
                    number(record, bytes);
                }
                number(record, in_flight);
                number(record, smoothed.0);
                record.push(limited.into());
            }
            What::Called(Call::Lost { sent, bytes, persistent }) => {
                ago(record, sent);
                number(record, bytes);
                record.push(persistent.into());
            }
            What::Called(Call::Marked { sent }) => ago(record, sent),
        }
        Figures::of(seen.state).write(record);
        to.write_all(record).inspect_err(|_| self.to = None)
    }

    /// Writes buffered records to the file.
    ///
    /// # Errors
    /// The file's.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn kind(what: &What<'_>) -> u8 {
    match what {
        What::Began { .. } => BEGAN,
        What::Called(Call::Sent { .. }) => SENT,
        What::Called(Call::Acked { .. }) => ACKED,
        What::Called(Call::Lost { .. }) => LOST,
        What::Called(Call::Marked { .. }) => MARKED,
        What::Called(Call::Datagram(_)) => DATAGRAM,
    }
}

/// The part of a state that a log keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Figures {
    /// Window, granted window, threshold plus one, bytes in flight.
    bytes: [u64; 4],
    phase: u8,
    rate: u64,
}

impl Figures {
    fn of(state: &State) -> Figures {
        let phase = match state.phase {
            Phase::SlowStart => 0,
            Phase::Avoidance => 1,
            Phase::Recovery => 2,
        };
        let threshold = state.threshold.map_or(0, |bytes| bytes.saturating_add(1));
        let bytes = [state.window, state.granted, threshold, state.in_flight];
        Figures { bytes, phase, rate: state.pacing_rate.map_or(u64::MAX, f64::to_bits) }
    }

    fn write(&self, to: &mut Vec<u8>) {
        self.bytes.iter().for_each(|bytes| number(to, *bytes));
        to.push(self.phase);
        to.extend_from_slice(&self.rate.to_le_bytes());
    }

    fn read(from: &mut LogReader<'_>) -> Result<Figures, Broken> {
        let mut bytes = [0; 4];
        for one in &mut bytes {
            *one = from.number()?;
        }
        Ok(Figures { bytes, phase: from.byte()?, rate: from.bits()? })
    }

    /// Describes the first difference to the current state.
    fn difference(&self, now: &Figures) -> Option<String> {
        let names = ["window", "granted window", "threshold", "number of bytes in flight"];
        let shown = |place: usize, bytes: u64| match (place, bytes) {
            (2, 0) => "none".to_owned(),
            (2, above) => format!("{} bytes", above - 1),
            _ => format!("{bytes} bytes"),
        };
        let bytes = (0..names.len()).find(|place| self.bytes[*place] != now.bytes[*place]).map(|place| {
            let [logged, now] = [self, now].map(|figures| shown(place, figures.bytes[place]));
            format!("the {} was {logged}, now {now}", names[place])
        });
        let phase =
            || (self.phase != now.phase).then(|| format!("the phase was number {}, now {}", self.phase, now.phase));
        let rate = || {
            let [logged, now] = [self, now].map(|figures| match figures.rate {
                u64::MAX => "none".to_owned(),
                bits => format!("{} bytes/s", f64::from_bits(bits)),
            });
            format!("the pacing rate was {logged}, now {now}")
        };
        bytes.or_else(phase).or_else(|| (self.rate != now.rate).then(rate))
    }
}

/// Reads a number of at most `max`; `what` names it in the error.
fn no_more(from: &mut LogReader<'_>, max: u64, what: &'static str) -> Result<u64, Broken> {
    Some(from.number()?).filter(|number| *number <= max).ok_or(Broken::Wrong(what))
}

/// Reads a time before `at`, stored as the difference.
fn before(from: &mut LogReader<'_>, at: Time) -> Result<Time, Broken> {
    Ok(Time(at.0 - no_more(from, at.0, "a time")?))
}

fn yes_or_no(from: &mut LogReader<'_>) -> Result<bool, Broken> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Broken::Wrong("a yes or no")),
    }
}

/// Reads a record: the path's number, the time since the path began, the event, and the state after it. `packets` is a
/// buffer for the event's packets, `last` the time of the previous record.
fn record<'a>(
    from: &mut LogReader<'_>,
    last: Time,
    packets: &'a mut Vec<(Time, u64)>,
) -> Result<(u64, Time, What<'a>, Figures), Broken> {
    const PACKET: (u64, &str) = (u16::MAX as u64, "a packet's size");
    let (kind, path) = (from.byte()?, from.number()?);
    let last = if kind == BEGAN { Time::ZERO } else { last };
    let at = Time(last.0 + no_more(from, MAX_TIME - last.0, "a time")?);
    let size = |from: &mut LogReader<'_>| {
        let size = no_more(from, u16::MAX.into(), "a size of datagrams")?;
        let size = u16::try_from(size).ok().filter(|size| *size >= INITIAL_DATAGRAM);
        size.ok_or(Broken::Wrong("a size of datagrams"))
    };
    let what = match kind {
        BEGAN => What::Began { datagram: size(from)? },
        DATAGRAM => What::Called(Call::Datagram(size(from)?)),
        SENT => {
            let bytes = no_more(from, PACKET.0, PACKET.1)?;
            What::Called(Call::Sent { bytes, last_packet_number: from.number()? })
        }
        ACKED => {
            packets.clear();
            for _ in 0..from.number()? {
                packets.push((before(from, at)?, no_more(from, PACKET.0, PACKET.1)?));
            }
            let (in_flight, smoothed) = (from.number()?, Span(no_more(from, MAX_TIME, "a round trip")?));
            What::Called(Call::Acked { packets, in_flight, smoothed, limited: yes_or_no(from)? })
        }
        LOST => {
            let (sent, bytes) = (before(from, at)?, no_more(from, MAX_LOST, "a number of lost bytes")?);
            What::Called(Call::Lost { sent, bytes, persistent: yes_or_no(from)? })
        }
        MARKED => What::Called(Call::Marked { sent: before(from, at)? }),
        _ => return Err(Broken::Wrong("a call's kind")),
    };
    Ok((path, at, what, Figures::read(from)?))
}

/// Repeats a log's calls on new controllers, and compares their state after each call.
///
/// # Errors
/// The first difference, or why the log cannot be replayed.
pub(super) fn replay(mut reader: LogReader<'_>, spec: &SessionSpec) -> Result<Replayed, ReplayError> {
    let damaged = |what: String| ReplayError::Log(what);
    let controllers = controllers(&spec.flow.model()?, spec.flow.seed).filter(|_| spec.side == Side::Sender);
    let controllers = controllers.ok_or_else(|| damaged("its end of a flow over QUIC has no controller".to_owned()))?;
    let mut done = Replayed { inputs: 0, datagrams: 0, end: Time::ZERO, unread: 0 };
    let (mut packets, mut last) = (Vec::new(), Time::ZERO);
    // a flow's connections follow one another: each path replaces the previous one
    let mut paths: (u64, Option<Law>) = (0, None);
    loop {
        let (number, at, what, logged) = match reader.whole(|from| record(from, last, &mut packets)) {
            Ok(Some(record)) => record,
            Ok(None) | Err(Broken::Short) => break,
            Err(Broken::Wrong(what)) => return Err(damaged(wrong(done.inputs, what))),
        };
        let next = paths.0;
        match (what, &mut paths.1) {
            (What::Began { datagram }, _) if number == next => {
                paths = (number + 1, Some(controllers.law(number, datagram)));
            }
            (What::Called(call), Some(law)) if number + 1 == next => {
                law.take(at, call);
                done.datagrams += u64::from(matches!(call, Call::Sent { .. }));
            }
            _ => return Err(damaged(wrong(done.inputs, "a path's number"))),
        }
        let now = paths.1.as_ref().map(|law| Figures::of(&law.state()));
        if let Some(what) = now.and_then(|now| logged.difference(&now)) {
            return Err(ReplayError::Diverged(Divergence { input: done.inputs, time: at, what }));
        }
        done.inputs += 1;
        (done.end, last) = (at, at);
    }
    Ok(Replayed { unread: reader.left(), ..done })
}

#[cfg(test)]
mod tests;
