//! The sending end of a flow over quinn's QUIC, for a source.
//!
//! Data that the application writes wait here. quinn receives only as much as its window lets it send, because data
//! passed to it cannot be withdrawn.

mod deadlines;

use self::deadlines::{Due, Open};
use super::frames::{Frame, Part};
use super::link::Link;
use super::qlog::Log;
use super::watch::Watch;
use super::{Keys, Shared};
use crate::session::{CaptureClock, Side};
use bytes::Bytes;
use paceline_control::{Gauges, known};
use paceline_flow::quic::{Carriage, QuicConfig};
use paceline_flow::{Datagrams, ForeignSender, SenderStats};
use paceline_packet::{Flags, Stamp};
use paceline_quinn::{Controllers, Gate, Observer};
use paceline_units::{Rate, Span, Time};
use quinn_proto::{ConnectionError, Dir, Event, SendDatagramError, StreamEvent, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The payload.
static ZEROS: [u8; 1 << 11] = [0; 1 << 11];
/// Packet bytes beside a stream's data, possibly a few more than real: short header with a two-byte number, tag, and
/// the frame's type, stream and offset.
const PACKET_HEADERS: u64 = 1 + 8 + 2 + 16 + 1 + 2 + 8;
/// Number of packets whose data quinn holds beyond those that it sends, so that it sees that there is more.
const AHEAD: u64 = 2;
/// Maximum length of a part's header in a datagram: flags, time, number, offset.
const PART_HEADER: usize = 1 + 4 + 8 + 8;

/// Data written by the application that quinn has not received completely.
#[derive(Debug)]
struct Write {
    frame: Frame,
    number: u64,
    deadline: Time,
    /// The rest of its header, and the number of its payload bytes still to be passed on.
    header: Vec<u8>,
    left: u64,
    /// Its stream, once that is open.
    stream: Option<StreamId>,
}

/// The sending end.
#[derive(Debug)]
pub struct Sending {
    link: Link,
    gate: Gate,
    /// When pacing allows the next packet, if one is waiting for that.
    paced: Time,
    observer: Observer,
    watch: Watch,
    config: QuicConfig,
    shared: Arc<Shared>,
    waiting: VecDeque<Write>,
    endless: bool,
    started: bool,
    stopped: bool,
    /// The stream shared by writes.
    current: Option<StreamId>,
    /// The rest of the group is discarded, until a key frame begins the next.
    group_lost: bool,
    open: BTreeMap<StreamId, Open>,
    /// Number of frames written.
    numbers: u64,
    /// Total payload bytes passed to quinn, and those in streams that have ended: acknowledged or given up.
    written: u64,
    settled: u64,
    /// Of these, bytes that were given up, or may have been: nobody has acknowledged them.
    forgone: u64,
    /// Bytes passed to quinn and not sent yet: rather over- than underestimated, see [`Sending::left`].
    ahead: u64,
    /// Bytes lost and not retransmitted yet.
    owed: u64,
    /// Whether the other end's limits block quinn: it could send, and was given more in case it had run dry, but did
    /// not send.
    limited: bool,
    /// Whether quinn has nothing left to send or to have acknowledged.
    quiet: bool,
    /// Packets lost on earlier connections.
    lost_before: u64,
    /// Number of connections so far, and the log of this one.
    connections: u32,
    log: Option<Log>,
    stats: SenderStats,
}

impl Sending {
    /// An end that has not started.
    #[must_use]
    pub fn new(config: &QuicConfig, controllers: Controllers, keys: &Keys, shared: Arc<Shared>) -> Sending {
        let watch = Watch::default();
        let observer = watch.observer(Arc::clone(&shared));
        let gate = Gate::new();
        let controllers = controllers.seen_by(observer.clone()).behind(gate.clone());
        Sending {
            link: Link::new(true, Arc::new(controllers), config, keys, Arc::clone(&shared)),
            gate,
            paced: Time::NEVER,
            observer,
            watch,
            stats: SenderStats::new(config.wire()),
            config: config.clone(),
            shared,
            waiting: VecDeque::new(),
            endless: false,
            started: false,
            stopped: false,
            current: None,
            group_lost: false,
            open: BTreeMap::new(),
            numbers: 0,
            written: 0,
            settled: 0,
            forgone: 0,
            ahead: 0,
            owed: 0,
            limited: false,
            quiet: true,
            lost_before: 0,
            connections: 0,
            log: None,
        }
    }

    /// The controller's window in bytes.
    fn window(&self) -> u64 {
        self.observer.state().map_or(self.config.initial_window(), |state| state.window)
    }

    fn smoothed(&self) -> Option<Span> {
        let connection = self.link.connection().filter(|open| !open.is_handshaking())?;
        Some(Span(u64::try_from(connection.rtt().as_nanos()).unwrap_or(u64::MAX)))
    }

    fn deadline(&self, now: Time) -> Time {
        self.config.track.deadline.map_or(Time::NEVER, |deadline| now + deadline)
    }

    /// Accounts for the window up to now.
    fn advance(&mut self, now: Time) {
        if self.started {
            let window = self.congestion_window();
            self.stats.advance(now, window);
            self.stats.window_max = self.stats.window_max.max(window);
        }
    }

    /// Processes quinn's events: streams acknowledged, round trips, losses.
    fn poll_events(&mut self, now: Time) {
        while let Some(event) = self.link.event() {
            match event {
                Event::Stream(StreamEvent::Finished { id }) => self.close_stream(id, true),
                Event::Stream(StreamEvent::Stopped { id, .. }) => self.close_stream(id, false),
                Event::ConnectionLost { reason } => {
                    self.give_up();
                    self.log.iter_mut().for_each(|log| log.closed(now, &reason));
                }
                Event::Connected => self.log.iter_mut().for_each(|log| log.connected(now)),
                _ => {}
            }
        }
        let mut seen = self.watch.seen();
        for trip in seen.round_trips.drain(..) {
            self.stats.round_trip(trip);
        }
        (self.stats.ecn_cuts, self.stats.fast_retransmits) = (seen.marks, seen.losses);
        self.stats.window_cuts = seen.losses + seen.marks;
        let lost_bytes = std::mem::take(&mut seen.lost_bytes);
        let in_flight = seen.in_flight;
        if let (Some(log), Some(fates)) = (&mut self.log, &mut seen.fates) {
            log.packet_fates(now, fates, self.observer.state(), in_flight);
            fates.clear();
        }
        drop(seen);
        self.owed += lost_bytes;
        if self.is_datagrams() {
            self.forgone += lost_bytes; // it is not retransmitted
        }
        // only for the live view: quinn does not report retransmissions, and no table contains this
        let lost = self.link.connection().map_or(0, |open| open.stats().path.lost_packets);
        self.stats.retransmitted = self.lost_before + lost;
        self.count_acked();
        self.advance(now);
    }

    /// The connection has ended: its unacknowledged data are given up.
    fn give_up(&mut self) {
        self.open.clear();
        self.forgone = self.written - self.stats.bytes_acked;
        (self.current, self.settled, self.quiet, self.group_lost) = (None, self.written, true, false);
        (self.ahead, self.owed, self.paced, self.limited) = (0, 0, Time::NEVER, false);
    }

    /// A stream has ended: acknowledged completely, or not.
    fn close_stream(&mut self, id: StreamId, acked: bool) {
        if let Some(open) = self.open.remove(&id) {
            self.settled += open.bytes;
            self.forgone += if acked { 0 } else { open.bytes };
            if self.current == Some(id) {
                self.current = None;
                self.group_lost = self.config.track.carriage == Carriage::StreamPerGroup;
            }
        }
    }

    /// Updates the acknowledged payload bytes: exact for complete streams. For an open stream and for datagrams, they
    /// are what is neither here nor in flight; packet headers are included in the bytes in flight, so this never
    /// overestimates.
    fn count_acked(&mut self) {
        let in_flight = self.watch.seen().in_flight;
        let within = match self.config.track.carriage {
            _ if self.quiet => self.written,
            Carriage::StreamEach => self.settled,
            // data after a gap are discarded with the group, if that is given up
            Carriage::StreamPerGroup if self.config.track.deadline.is_some() => self.settled,
            _ => self.settled.max(self.written.saturating_sub(in_flight.max(1) + 2 * u64::from(self.config.datagram))),
        };
        let acked = within.min(self.written).saturating_sub(self.forgone);
        self.stats.bytes_acked = self.stats.bytes_acked.max(acked);
        self.forget_acked(in_flight);
    }

    /// Accounts for a sent packet of `bytes` bytes: lost data are sent first. A little less than the real payload is
    /// counted, so quinn runs dry now and then, which is noticed; it never accumulates data that cannot be withdrawn.
    fn left(&mut self, bytes: u64) {
        let again = self.owed.min(bytes);
        self.owed -= again;
        self.ahead = self.ahead.saturating_sub((bytes - again).saturating_sub(PACKET_HEADERS));
        if bytes < u64::from(self.config.datagram) && self.config.track.carriage != Carriage::Datagrams {
            self.ahead = 0; // quinn had no more
        }
        self.limited = false;
    }

    /// Passes data to quinn, until it has `max` unsent bytes.
    fn feed(&mut self, now: Time, max: u64) {
        if self.ahead >= max || self.link.open().is_none() {
            return;
        }
        if self.config.track.carriage == Carriage::Datagrams {
            return self.feed_datagrams(now);
        }
        while self.ahead < max
            && let Some(mut write) = self.next_write()
        {
            if !self.write(&mut write, max) {
                return self.waiting.push_front(write);
            }
            let frame = write.frame;
            let last = self.config.track.carriage == Carriage::StreamEach;
            if last && let Some(id) = write.stream {
                self.finish(id);
            }
            if self.is_framed() {
                self.captured(frame.captured);
            }
        }
        if self.endless
            && self.ahead < max
            && let Some(id) = self.shared()
        {
            let mut left = max - self.ahead;
            let went = self.put(id, &mut Vec::new(), &mut left);
            self.wrote(id, went);
        }
    }

    /// Whether frames have headers on the streams.
    fn is_framed(&self) -> bool {
        self.config.track.frames || self.config.track.carriage != Carriage::Stream
    }

    /// Notes the first capture time that is sent.
    fn captured(&self, stamp: Stamp) {
        let at = Time(u64::from(stamp.0) << 8);
        let _ = self.shared.captures.set(CaptureClock::new(Stamp::HZ, stamp.0, at));
    }

    /// The stream shared by writes; `None` if the other end currently allows no new one.
    fn shared(&mut self) -> Option<StreamId> {
        if self.current.is_none() {
            let id = self.link.open()?.streams().open(Dir::Uni)?;
            self.open.insert(id, Open::default());
            self.current = Some(id);
        }
        self.current
    }

    /// Passes a write to quinn; returns whether it was passed completely.
    fn write(&mut self, write: &mut Write, max: u64) -> bool {
        if write.stream.is_none() {
            if self.config.track.carriage == Carriage::StreamEach
                || self.config.track.carriage == Carriage::StreamPerGroup && write.frame.key
            {
                self.end_group();
                self.group_lost = false;
            }
            write.stream = self.shared();
            if write.deadline < Time::NEVER
                && let Some(open) = write.stream.and_then(|id| self.open.get_mut(&id))
            {
                open.frames.push_back(Due { end: u64::MAX, deadline: write.deadline });
            }
            if self.config.track.carriage == Carriage::StreamEach {
                self.current = None;
            }
        }
        let Some(id) = write.stream else { return false };
        let mut now = write.left.min(max.saturating_sub(self.ahead));
        let before = now;
        let went = self.put(id, &mut write.header, &mut now);
        write.left -= before - now;
        self.wrote(id, went);
        let whole = write.left == 0 && write.header.is_empty();
        if whole && let Some(frame) = self.open.get_mut(&id).and_then(|open| open.frames.back_mut()) {
            frame.end = self.written;
        }
        whole
    }

    /// Accounts for payload of a stream passed to quinn.
    fn wrote(&mut self, id: StreamId, bytes: u64) {
        self.written += bytes;
        self.ahead += bytes;
        self.quiet &= bytes == 0;
        if let Some(open) = self.open.get_mut(&id) {
            open.bytes += bytes;
        }
    }

    /// Passes a header and then zeros to quinn, as many as it accepts; returns the number of zeros.
    fn put(&mut self, id: StreamId, header: &mut Vec<u8>, left: &mut u64) -> u64 {
        let Some(connection) = self.link.open() else { return 0 };
        let mut stream = connection.send_stream(id);
        while !header.is_empty() {
            let Ok(went) = stream.write(header) else { return 0 };
            header.drain(..went);
        }
        let mut all = 0;
        while *left > 0 {
            // quinn keeps a piece until all of it is acknowledged
            let chunk = Bytes::from_static(&ZEROS[..(*left).min(ZEROS.len() as u64) as usize]);
            let Ok(went) = stream.write_chunks(&mut [chunk]) else { break };
            (all, *left) = (all + went.bytes as u64, *left - went.bytes as u64);
        }
        all
    }

    /// Finishes the stream shared by writes.
    fn end_group(&mut self) {
        if let Some(id) = self.current.take() {
            self.finish(id);
        }
    }

    fn finish(&mut self, id: StreamId) {
        if let Some(connection) = self.link.open() {
            // a stopped or reset stream has already ended
            let _ = connection.send_stream(id).finish();
        }
    }

    /// Passes parts of frames to quinn, each as a datagram.
    fn feed_datagrams(&mut self, now: Time) {
        while let Some(mut write) = self.waiting.pop_front() {
            if write.deadline <= now {
                self.stats.frames_reset += 1;
                continue;
            }
            let Some(connection) = self.link.open() else { return self.waiting.push_front(write) };
            let Some(room) = connection.datagrams().max_size().and_then(|max| max.checked_sub(PART_HEADER)) else {
                return self.waiting.push_front(write);
            };
            let bytes = write.left.min(room as u64);
            let (last, offset) = (bytes == write.left, write.frame.size - write.left);
            let Frame { key, captured, .. } = write.frame;
            let mut datagram = Vec::with_capacity(PART_HEADER + bytes as usize);
            Part { key, last, captured, number: write.number, offset }.write(&mut datagram);
            datagram.resize(datagram.len() + bytes as usize, 0);
            match connection.datagrams().send(datagram.into(), false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(_)) => return self.waiting.push_front(write),
                Err(_) => continue, // the other end does not support datagrams
            }
            write.left -= bytes;
            (self.written, self.ahead, self.quiet) = (self.written + bytes, self.ahead + bytes, false);
            self.captured(captured);
            if !last {
                self.waiting.push_front(write);
            }
        }
    }
}

impl Datagrams for Sending {
    fn on_datagram(&mut self, now: Time, bytes: &[u8], ecn: Flags) {
        self.log.iter_mut().for_each(|log| log.received(now, bytes));
        self.link.on_datagram(now, bytes, ecn);
        self.poll_events(now);
    }

    fn datagram(&mut self, now: Time, to: &mut Vec<u8>) -> Option<Flags> {
        let (before, packet) = (to.len(), u64::from(self.config.datagram));
        let of_none = self.link.has_answers();
        self.feed(now, AHEAD * packet);
        let in_flight = self.watch.seen().in_flight;
        let due = self.link.may_leave(&self.gate, now, in_flight);
        let mut flags = self.link.datagram(now, to);
        if flags.is_none() && due <= now && !self.limited {
            let had = self.ahead;
            self.feed(now, had + packet);
            if self.ahead > had {
                flags = self.link.datagram(now, to);
                (self.limited, self.ahead) =
                    (flags.is_none(), if flags.is_none() { self.ahead } else { self.ahead - had });
            }
        }
        self.paced = if flags.is_none() && due > now { due } else { Time::NEVER };
        let Some((flags, elicits)) = flags else {
            // if nothing is in flight, and nothing is sent although it could be, everything is acknowledged
            self.quiet |= due <= now && self.watch.seen().in_flight == 0 && self.link.open().is_some();
            self.count_acked();
            return None;
        };
        if let Some(log) = self.log.as_mut().filter(|_| !of_none) {
            log.sent(now, &to[before..], self.link.last_left(), self.watch.seen().last, elicits);
        }
        let bytes = to.len() - before;
        self.stats.sent((bytes as u16).saturating_add(self.config.header));
        self.left(bytes as u64);
        self.watch.seen().in_flight += if elicits { bytes as u64 } else { 0 };
        Some(flags)
    }

    fn on_timer(&mut self, now: Time) {
        if self.paced <= now {
            self.paced = Time::NEVER; // packets that may be sent now are polled next
        }
        self.link.on_timer(now);
        self.reset_late(now);
        self.poll_events(now);
    }

    fn next_wake(&self) -> Time {
        self.link.next_wake().min(self.next_deadline()).min(self.paced)
    }

    fn close(&mut self, now: Time) {
        self.link.close(now);
        self.log.iter_mut().for_each(|log| log.closed(now, &ConnectionError::LocallyClosed));
    }
}

impl ForeignSender for Sending {
    fn start(&mut self, now: Time) {
        self.started = true;
        self.stats.begin(now);
        self.connect(now);
        self.advance(now);
    }

    fn supply(&mut self, bytes: u64, key: bool, now: Time) {
        if bytes == 0 || self.stopped || self.endless {
            return;
        }
        if self.started && self.link.is_closed() && self.shared.lost.get().is_none() {
            // the connection was idle for too long: open another one
            self.restart(now);
            self.start(now);
        }
        let frame = Frame { key, captured: Stamp::at(now), size: bytes };
        let (deadline, mut header) = (self.deadline(now), Vec::new());
        if self.is_framed() && self.config.track.carriage != Carriage::Datagrams {
            frame.write(&mut header);
        }
        let number = self.numbers;
        self.numbers += 1;
        self.stats.frames += u64::from(self.config.track.frames);
        self.waiting.push_back(Write { frame, number, deadline, header, left: bytes, stream: None });
    }

    fn supply_endless(&mut self, _: Time) {
        self.endless = !self.stopped;
    }

    fn withdraw(&mut self) {
        // the rest of a partially sent frame is discarded with its stream
        self.waiting.clear();
        self.endless = false;
    }

    fn stop(&mut self) {
        self.withdraw();
        self.end_group();
        self.stopped = true;
    }

    fn restart(&mut self, now: Time) {
        self.advance(now);
        self.lost_before = self.stats.retransmitted;
        self.withdraw();
        self.give_up();
        self.started = false; // data supplied from now on wait for the next connection
    }

    fn target(&self) -> Option<Rate> {
        let trip = self.smoothed()?.as_secs_f64().max(1e-6);
        let by_window = self.window() as f64 * 8.0 / trip;
        let paced = self.observer.state().and_then(|state| state.pacing_rate);
        let rate = paced.map_or(by_window, |rate| by_window.min(rate * 8.0));
        let (datagram, wire) = (f64::from(self.config.datagram), f64::from(self.config.wire()));
        Some(Rate::from_bps((rate * wire / datagram).min(1e15) as u64))
    }

    fn queueing(&self) -> Span {
        let bits = 8.0 * self.waiting.iter().map(|write| write.left).sum::<u64>() as f64;
        self.target().map_or(Span::ZERO, |rate| Span::from_secs_f64((bits / rate.bps().max(1.0)).min(1e6)))
    }

    fn acked_all(&self) -> bool {
        let all = self.waiting.is_empty() && !self.endless;
        // streams that ended were reported; an open one is only known to be acknowledged when nothing is left
        let streams = self.open.keys().all(|id| self.current == Some(*id));
        self.started
            && all
            && streams
            && (self.quiet || self.current.is_none() && self.open.is_empty() && !self.is_datagrams())
    }

    fn remembered_writes(&self) -> usize {
        self.waiting.len()
    }

    fn stats(&self) -> &SenderStats {
        &self.stats
    }

    fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }

    fn account(&mut self, now: Time) {
        self.advance(now);
    }

    fn congestion_window(&self) -> f64 {
        self.window() as f64 / f64::from(self.config.datagram)
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let datagram = f64::from(self.config.datagram);
        self.observer.gauges(to);
        to.seconds("srtt", known(self.smoothed().unwrap_or(Span::ZERO).as_secs_f64()));
        to.packets("in_flight", self.watch.seen().in_flight as f64 / datagram);
    }
}

impl Sending {
    /// Opens a connection, which replaces the current one.
    fn connect(&mut self, now: Time) {
        self.connections += 1;
        self.log = Log::begin(now, &self.shared, Side::Sender, self.connections, &self.config);
        self.watch.seen().fates = self.log.as_ref().map(|_| Vec::new());
        self.link.connect(now);
    }

    fn is_datagrams(&self) -> bool {
        self.config.track.carriage == Carriage::Datagrams
    }
}
