//! A qlog file of a connection, event by event.
//!
//! ```
//! use paceline_qlog::write::{Event, Frame, Metrics, Packet, PacketKind, Trace, Vantage, Writer};
//! use paceline_units::{Span, Time};
//!
//! let trace = Trace { title: "film over cubic, seed 1", vantage: Vantage::server("sender"), ..Trace::default() };
//! let mut log = Writer::new(Vec::new(), &trace)?;
//! let frames = [Frame::Stream { id: 4, offset: 0, length: 1150, fin: false }];
//! log.write(Time(1_000_000), &Event::PacketSent(Packet::new(PacketKind::OneRtt, 7, 1200, &frames)))?;
//! let acked = [Frame::ack(Span::from_millis(1), &[(5, 7), (2, 2)])];
//! log.write(Time(51_000_000), &Event::PacketReceived(Packet::new(PacketKind::OneRtt, 3, 40, &acked)))?;
//! let now = Metrics { latest_rtt: Some(Span::from_millis(50)), congestion_window: Some(12_000), ..Metrics::default() };
//! log.write(Time(51_000_000), &Event::RecoveryMetricsUpdated(now))?;
//! let bytes = log.finish()?;
//! assert_eq!(bytes.iter().filter(|byte| **byte == 0x1e).count(), 4);
//! # Ok::<(), std::io::Error>(())
//! ```

mod event;
mod frame;
mod header;
mod state;

pub use event::{
    CloseTrigger, ConnectionState, Datagrams, DropTrigger, EcnState, Endpoint, Event, Initiator, Layer, LossTrigger,
    Packet, PacketKind, PacketName, SendTrigger, Space, StreamSide, StreamState, TimerChange, TimerKind,
};
pub use frame::{CloseError, Ecn, EcnCounts, ErrorCode, Frame, StreamKind};
pub use header::{SystemInfo, Trace, Vantage, VantageKind};
pub use state::{Metrics, Parameters, RecoveryParameters};

use paceline_units::{Span, Time};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// The event schema's name, with the draft's number, as the drafts require until there is an RFC.
pub const QUIC_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";

/// The file's schema: a header, then a record for each event.
pub const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// Whole records are written once this many bytes of them are waiting.
const PIECE: usize = 64 << 10;

/// Precedes each record (RFC 7464).
const RECORD: u8 = 0x1e;

/// Writes a log: a header, then one record per event.
///
/// Records are written whole, about 64 KiB at a time. If the program is killed, the file therefore ends with a whole
/// record, unless the system wrote only part of the data. [`Writer::flush`] writes what is waiting.
pub struct Writer<W: Write> {
    to: Option<W>,
    waiting: Vec<u8>,
    written_metrics: Metrics,
    written: u64,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(serialize_with = "millis_of_time")]
    time: Time,
    name: &'static str,
    data: &'a Event<'a>,
}

impl<W: Write> Writer<W> {
    /// Begins a log. Its header is written at once, so that a file with nothing else is a valid log.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn new(to: W, trace: &Trace) -> io::Result<Writer<W>> {
        let mut writer = Writer { to: Some(to), waiting: Vec::new(), written_metrics: Metrics::default(), written: 0 };
        writer.record(&trace.header())?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds an event at a time counted from the log's beginning. Times should not decrease. For
    /// [`Event::RecoveryMetricsUpdated`], only changed metrics are written, and nothing if none changed.
    ///
    /// # Errors
    /// Those of the underlying writer. Records written before remain.
    pub fn write(&mut self, at: Time, event: &Event) -> io::Result<()> {
        let changed;
        let data = match event {
            Event::RecoveryMetricsUpdated(now) => {
                let news = now.others_than(&self.written_metrics);
                if news == Metrics::default() {
                    return Ok(());
                }
                self.written_metrics = now.or(&self.written_metrics);
                changed = Event::RecoveryMetricsUpdated(news);
                &changed
            }
            _ => event,
        };
        self.record(&Record { time: at, name: event.name(), data })?;
        self.written += 1;
        if self.waiting.len() >= PIECE { self.hand_on() } else { Ok(()) }
    }

    /// Count of events written; metrics without changes do not count.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.written
    }

    /// Writes what is waiting.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hand_on()?;
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Writes the rest, and returns the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.to.take().ok_or_else(|| io::Error::other("the log is finished"))
    }

    fn record(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.waiting.push(RECORD);
        serde_json::to_writer(&mut self.waiting, what)?;
        self.waiting.push(b'\n');
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        if let Some(to) = &mut self.to {
            to.write_all(&self.waiting)?;
        }
        self.waiting.clear();
        Ok(())
    }
}

impl<W: Write> Drop for Writer<W> {
    /// Writes what is waiting. Call [`Writer::finish`] to see errors.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Milliseconds, the unit of all times in qlog.
fn millis<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.0 as f64 / 1e6)
}

fn millis_of_time<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.0 as f64 / 1e6)
}

fn some_millis<S: Serializer>(span: &Option<Span>, to: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => millis(span, to),
        None => to.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts a limited number of bytes.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 {
                return Err(io::Error::other("full"));
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_was_handed_on_is_whole_records() {
        let mut kept = Vec::new();
        let mut log = Writer::new(&mut kept, &Trace::default()).unwrap();
        for number in 0..2000 {
            let sent = Packet::new(PacketKind::OneRtt, number, 1200, &[]);
            log.write(Time(number * 1000), &Event::PacketSent(sent)).unwrap();
        }
        // As if the program were killed here.
        log.waiting.clear();
        drop(log);
        assert_eq!(kept.last(), Some(&b'\n'));
        let records = kept.split(|byte| *byte == RECORD).skip(1);
        let whole = records.filter(|record| serde_json::from_slice::<serde_json::Value>(record).is_ok()).count();
        assert_eq!(whole, kept.iter().filter(|byte| **byte == RECORD).count());
        assert!(whole > 500 && whole < 2001, "{whole}");
    }

    #[test]
    fn metrics_that_are_no_news_are_not_written() {
        let mut log = Writer::new(Vec::new(), &Trace::default()).unwrap();
        let metrics = |window, rtt| Metrics {
            congestion_window: Some(window),
            latest_rtt: Some(Span::from_millis(rtt)),
            ..Metrics::default()
        };
        for (at, metrics) in [(1, metrics(10, 5)), (2, metrics(10, 5)), (3, metrics(12, 5)), (4, Metrics::default())] {
            log.write(Time(at), &Event::RecoveryMetricsUpdated(metrics)).unwrap();
        }
        assert_eq!(log.events(), 2);
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "\u{1e}{\"time\":1e-6,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"latest_rtt\":5.0,\"congestion_window\":10}}",
                "\u{1e}{\"time\":3e-6,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"congestion_window\":12}}",
            ]
        );
    }

    #[test]
    fn what_goes_wrong_is_told() {
        let mut log = Writer::new(Full(Vec::new(), 700), &Trace::default()).unwrap();
        let sent = |number| Event::PacketSent(Packet::new(PacketKind::OneRtt, number, 1200, &[]));
        let failed = (0..1000).find_map(|number| log.write(Time(number), &sent(number)).err());
        assert_eq!(failed.unwrap().to_string(), "full");
    }
}
