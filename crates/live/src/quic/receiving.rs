//! The receiving end of a flow over quinn's QUIC, for a sink.

use super::frames::{Frame, Reader, part};
use super::link::Link;
use super::packet_numbers::Numbers;
use super::qlog::Log;
use super::{Keys, Shared};
use crate::session::{CaptureClock, Side};
use paceline_flow::quic::{Carriage, Object, QuicConfig};
use paceline_flow::{Datagrams, ForeignReceiver, ReceiverStats};
use paceline_packet::{Flags, Stamp};
use paceline_units::Time;
use quinn_proto::{ConnectionError, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of partially received frames; older ones are no longer expected to be completed.
const MAX_PARTIAL: usize = 256;

/// A stream that has not been received completely.
#[derive(Debug, Default)]
struct Incoming {
    reader: Reader,
    /// The frame being received.
    frame: Option<Frame>,
}

/// A frame of which some datagrams have been received.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    bytes: u64,
    /// Its size, once its last part was received.
    size: Option<u64>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiving {
    link: Link,
    /// The numbers of sent packets, and the log of the newest connection.
    sent: Numbers,
    log: Option<Log>,
    config: QuicConfig,
    shared: Arc<Shared>,
    /// Converts capture times to this end's clock.
    clock: Option<CaptureClock>,
    streams: BTreeMap<StreamId, Incoming>,
    partial: BTreeMap<u64, Partial>,
    objects: Vec<Object>,
    /// Number of frames received, in the order of their ends.
    numbers: u32,
    stats: ReceiverStats,
}

impl Receiving {
    /// An end that has received nothing.
    #[must_use]
    pub fn new(config: &QuicConfig, keys: &Keys, shared: Arc<Shared>) -> Receiving {
        let sent = Numbers::default();
        Receiving {
            link: Link::new(false, Arc::new(sent.clone()), config, keys, Arc::clone(&shared)),
            sent,
            log: None,
            config: config.clone(),
            shared,
            clock: None,
            streams: BTreeMap::new(),
            partial: BTreeMap::new(),
            objects: Vec::new(),
            numbers: 0,
            stats: ReceiverStats::default(),
        }
    }

    fn poll_events(&mut self, now: Time) {
        while let Some(event) = self.link.event() {
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => self.accept(now),
                Event::Stream(StreamEvent::Readable { id }) => self.read(id, now),
                Event::DatagramReceived => self.take_datagrams(now),
                Event::ConnectionLost { reason } => {
                    self.streams.clear();
                    self.log.iter_mut().for_each(|log| log.closed(now, &reason));
                }
                Event::Connected => self.log.iter_mut().for_each(|log| log.connected(now)),
                _ => {}
            }
        }
    }

    fn accept(&mut self, now: Time) {
        while let Some(id) = self.link.open().and_then(|connection| connection.streams().accept(Dir::Uni)) {
            self.streams.insert(id, Incoming::default());
            self.read(id, now);
        }
    }

    /// Converts a capture time to this end's clock; the first one counts as captured on arrival.
    fn captured(clock: &mut Option<CaptureClock>, shared: &Shared, stamp: Stamp, now: Time) -> Stamp {
        let clock = clock.get_or_insert_with(|| CaptureClock::new(Stamp::HZ, stamp.0, now));
        let _ = shared.captures.set(*clock);
        clock.captured(stamp.0)
    }

    /// Reads the available data of a stream.
    fn read(&mut self, id: StreamId, now: Time) {
        let framed = self.config.track.frames || self.config.track.carriage != Carriage::Stream;
        let Some(incoming) = self.streams.get_mut(&id) else { return };
        let Some(connection) = self.link.open() else { return };
        let (mut over, mut garbled, mut blocked) = (false, false, false);
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while !(over || garbled || blocked) {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if framed => {
                    let (clock, shared, objects) = (&mut self.clock, &self.shared, &mut self.objects);
                    let (frame, numbers) = (std::cell::Cell::new(incoming.frame), &mut self.numbers);
                    let begun = |found: &Frame| {
                        let captured = Receiving::captured(clock, shared, found.captured, now);
                        frame.set(Some(Frame { captured, ..*found }));
                    };
                    let ended = |found: Frame| {
                        let captured = frame.take().map_or(found.captured, |frame| frame.captured);
                        *numbers = numbers.wrapping_add(1);
                        let (number, size, key) = (*numbers, found.size, found.key);
                        objects.push(Object { captured, number, size, key, reset: false, track: 0 });
                    };
                    match incoming.reader.read(&chunk.bytes, begun, ended) {
                        Ok(payload) => self.stats.bytes += payload,
                        Err(_) => garbled = true,
                    }
                    incoming.frame = frame.get();
                }
                Ok(Some(chunk)) => self.stats.bytes += chunk.bytes.len() as u64,
                Ok(None) | Err(ReadError::Reset(_)) => over = true,
                Err(ReadError::Blocked) => blocked = true,
            }
        }
        let _ = chunks.finalize();
        if garbled {
            let _ = connection.recv_stream(id).stop(VarInt::from_u32(1));
        }
        if over || garbled {
            self.streams.remove(&id);
        }
    }

    /// Processes received datagrams, which are parts of frames.
    fn take_datagrams(&mut self, now: Time) {
        while let Some(bytes) = self.link.open().and_then(|connection| connection.datagrams().recv()) {
            let Ok((part, length)) = part(&bytes) else { continue };
            self.stats.bytes += length;
            let captured = Receiving::captured(&mut self.clock, &self.shared, part.captured, now);
            let partial = self.partial.entry(part.number).or_default();
            partial.bytes += length;
            if part.last {
                partial.size = Some(part.offset.saturating_add(length));
            }
            if partial.size.is_some_and(|size| partial.bytes >= size) {
                let (size, key) = (partial.bytes, part.key);
                self.partial.remove(&part.number);
                self.objects.push(Object { captured, number: part.number as u32, size, key, reset: false, track: 0 });
            }
            while self.partial.len() > MAX_PARTIAL {
                self.partial.pop_first();
            }
        }
    }
}

impl Datagrams for Receiving {
    fn on_datagram(&mut self, now: Time, bytes: &[u8], ecn: Flags) {
        self.stats.packets += 1;
        self.stats.wire_bytes += bytes.len() as u64 + u64::from(self.config.header);
        self.stats.marks += u64::from(ecn.has(Flags::CE));
        let (bytes_before, before) = (self.stats.bytes, self.link.answered());
        self.link.on_datagram(now, bytes, ecn);
        let connections = self.link.answered();
        if connections > before {
            self.streams.clear();
            self.log = Log::begin(now, &self.shared, Side::Receiver, connections, &self.config);
        }
        self.log.iter_mut().for_each(|log| log.received(now, bytes));
        self.poll_events(now);
        if self.stats.bytes > bytes_before {
            self.stats.last = now; // acknowledgements and the close are not data
        }
    }

    fn datagram(&mut self, now: Time, to: &mut Vec<u8>) -> Option<Flags> {
        let (before, of_none) = (to.len(), self.link.has_answers());
        let (flags, _) = self.link.datagram(now, to)?;
        if let Some(log) = self.log.as_mut().filter(|_| !of_none) {
            // this end is not notified of its fate
            log.sent(now, &to[before..], self.link.last_left(), self.sent.last(), false);
        }
        self.stats.acks += 1;
        Some(flags)
    }

    fn on_timer(&mut self, now: Time) {
        self.link.on_timer(now);
        self.poll_events(now);
    }

    fn next_wake(&self) -> Time {
        self.link.next_wake()
    }

    fn close(&mut self, now: Time) {
        self.link.close(now);
        self.log.iter_mut().for_each(|log| log.closed(now, &ConnectionError::LocallyClosed));
    }
}

impl ForeignReceiver for Receiving {
    fn take_objects(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.objects)
    }

    fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}
