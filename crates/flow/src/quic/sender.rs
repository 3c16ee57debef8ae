//! The end that sends a flow's data, as a host sees it. It opens the connection, unless the receiver sends requests.

use super::connection::{Connection, Phase};
use super::outgoing::Kind;
use super::tracks::{Track, TrackState, TrackWrite, queueing};
use super::{Carriage, Cuts, QuicConfig, Rtt, TrackConfig};
use crate::{SenderStats, Transmit};
use paceline_control::{Gauges, TcpController, WindowController, known};
use paceline_packet::quic::AckRange;
use paceline_packet::{Extra, Packet, Stamp};
use paceline_random as random;
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// The sending end of a flow over QUIC.
///
/// The application's writes become data of streams or datagrams, according to the [`Carriage`] of its settings. Other
/// flows may be tracks of its connection; their writes arrive by [`QuicSender::write_track`].
#[derive(Debug)]
pub struct QuicSender {
    pub(super) connection: Connection,
    pub(super) started: bool,
    /// Its own track, then those of the flows that it leads.
    pub(super) tracks: Vec<Track>,
    /// Track numbers, the most urgent first.
    order: Vec<u8>,
    /// Its own share of the rate, if it leads other flows.
    part: Option<Rate>,
    cuts: Cuts,
    /// The number of requests on earlier connections, and the requests that have arrived and were not yet taken.
    earlier_requests: u32,
    pending_requests: VecDeque<u32>,
    /// Data to be relayed has arrived.
    pub(super) has_relayed: bool,
}

impl QuicSender {
    /// Creates a sender that has not started; `stream` supplies the controller's random draws.
    #[must_use]
    pub fn new(config: &QuicConfig, controller: TcpController, stream: random::Stream) -> QuicSender {
        QuicSender {
            connection: Connection::new(false, config, controller, stream),
            started: false,
            tracks: vec![Track::new(config.track)],
            order: vec![0],
            part: None,
            cuts: Cuts::default(),
            earlier_requests: 0,
            pending_requests: VecDeque::new(),
            has_relayed: false,
        }
    }

    /// Adds the tracks of the flows that it leads, numbered from 1 on. Call it before the start.
    pub fn lead(&mut self, tracks: impl IntoIterator<Item = TrackConfig>) {
        self.tracks.extend(tracks.into_iter().take(usize::from(u8::MAX) - 1).map(Track::new));
        self.order = (0..self.tracks.len() as u8).collect();
        self.order.sort_by_key(|track| self.tracks[usize::from(*track)].config.rank);
        self.connection.stats.led = vec![SenderStats::new(self.connection.config.wire()); self.tracks.len() - 1];
        self.set_tracks();
    }

    fn set_tracks(&mut self) {
        if self.tracks.len() > 1 {
            let ranks: Vec<u8> = self.tracks.iter().map(|track| track.config.rank).collect();
            self.connection.outgoing.set_tracks(&ranks);
        }
    }

    /// Opens the connection.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.started = true;
        self.connection.open(now);
        self.connection.pump(now, out);
    }

    /// Begins a new connection with nothing written; statistics continue to count. Call [`QuicSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        let cuts = self.connection.congestion.cuts();
        (self.cuts.losses, self.cuts.marks) = (self.cuts.losses + cuts.losses, self.cuts.marks + cuts.marks);
        let next = self.connection.loss.sent_packets.next();
        // the other end continues its numbers above all that arrived on this connection
        self.connection.begin(next, self.connection.received.next());
        self.set_tracks();
        self.tracks.iter_mut().for_each(Track::clear);
    }

    /// The application writes `bytes`: a frame, if its carriage has frames; `key`: it is a key frame.
    pub fn supply(&mut self, bytes: u64, key: bool, now: Time, out: &mut impl Transmit) {
        self.write_track(0, TrackWrite::Frame { bytes, captured: now, key }, now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        self.write_track(0, TrackWrite::Endless, now, out);
    }

    /// Processes an action of the application of a track; 0 is its own track.
    pub fn write_track(&mut self, track: u8, write: TrackWrite, now: Time, out: &mut impl Transmit) {
        let place = usize::from(track);
        if self.connection.stopped {
            return;
        }
        match write {
            TrackWrite::Frame { bytes: 0, .. } => return,
            TrackWrite::Frame { .. } | TrackWrite::Endless if self.tracks[place].endless => return,
            TrackWrite::Frame { bytes, captured, key } => {
                self.open_again(now);
                let Track { config, waiting, .. } = &mut self.tracks[place];
                waiting.push_back((bytes, captured, key));
                self.connection.sent_of(track).frames += u64::from(config.frames);
                self.write(track);
                self.await_deadlines();
            }
            TrackWrite::Relayed(portion) => return self.relay(track, portion, now),
            TrackWrite::Endless => {
                self.tracks[place].endless = true;
                if let Some(stream) = self.stream(track) {
                    self.connection.outgoing.write_endlessly(stream);
                }
            }
            TrackWrite::Withdraw { stops } => self.take_back(track, stops),
        }
        if self.started {
            self.connection.pump(now, out);
        }
    }

    /// Opens a new connection if this one has timed out.
    pub(super) fn open_again(&mut self, now: Time) {
        if self.started && self.is_closed() {
            self.restart(now);
            self.connection.open(now);
        }
    }

    /// The stream that all data of a track is written to.
    fn stream(&mut self, track: u8) -> Option<u32> {
        let place = usize::from(track);
        if self.tracks[place].current.is_none() && self.connection.outgoing.may_open() {
            self.tracks[place].current = Some(self.open_stream(track));
        }
        self.tracks[place].current
    }

    /// Opens a stream for a track.
    pub(super) fn open_stream(&mut self, track: u8) -> u32 {
        let rank = self.tracks[usize::from(track)].config.rank;
        self.connection.outgoing.open(Kind { rank, track })
    }

    /// Appends a frame to a stream; `finish`: this is the end of the stream.
    fn write_frame(&mut self, stream: u32, (bytes, captured, key): (u64, Time, bool), due: Time, finish: bool) {
        let connection = &mut self.connection;
        connection.timers.next_deadline = connection.timers.next_deadline.min(due);
        connection.outgoing.write_frame(stream, bytes, (Stamp::at(captured), due), key, finish);
    }

    /// Writes a track's waiting data to streams, as far as more may be opened.
    fn write(&mut self, track: u8) {
        let place = usize::from(track);
        while let Some(&(bytes, captured, key)) = self.tracks[place].waiting.front() {
            let (frame, config) = ((bytes, captured, key), self.tracks[place].config);
            let due = config.deadline.map_or(Time::NEVER, |deadline| captured + deadline);
            match config.carriage {
                Carriage::Stream => {
                    let Some(stream) = self.stream(track) else { return };
                    if config.frames {
                        self.write_frame(stream, frame, due, false);
                    } else {
                        self.connection.outgoing.write(stream, bytes, false);
                    }
                }
                Carriage::StreamEach => {
                    if !self.connection.outgoing.may_open() {
                        return;
                    }
                    let stream = self.open_stream(track);
                    self.write_frame(stream, frame, due, true);
                }
                Carriage::StreamPerGroup if !key && self.tracks[place].lost_key => {
                    self.connection.sent_of(track).frames_reset += 1;
                }
                Carriage::StreamPerGroup => {
                    self.tracks[place].lost_key = false;
                    if key && let Some(stream) = self.tracks[place].current.take() {
                        self.connection.outgoing.write(stream, 0, true);
                    }
                    let Some(stream) = self.stream(track) else { return };
                    if self.connection.outgoing.is_reset(stream) {
                        // the rest of a dropped group is useless
                        self.connection.sent_of(track).frames_reset += 1;
                    } else {
                        self.write_frame(stream, frame, due, false);
                    }
                }
                Carriage::Datagrams => {
                    self.connection.wait(bytes, Stamp::at(captured), key, (track, config.rank), due);
                }
            }
            self.tracks[place].waiting.pop_front();
        }
    }

    /// Drops frames that wait for a stream and whose deadline has passed.
    fn expire_waiting(&mut self, now: Time) {
        for track in 0..self.tracks.len() as u8 {
            let frames = self.tracks[usize::from(track)].expire(now);
            self.connection.sent_of(track).frames_reset += frames;
        }
        self.await_deadlines();
    }

    /// Sets the connection's timer for frames that wait for a stream.
    fn await_deadlines(&mut self) {
        let due = self.tracks.iter().map(Track::due).min().unwrap_or(Time::NEVER);
        self.connection.timers.waiting_due = due;
        self.connection.timers.next_deadline = self.connection.timers.next_deadline.min(due);
    }

    /// Withdraws a track's unsent data; if it `stops`, also ends its streams.
    fn take_back(&mut self, track: u8, stops: bool) {
        for stream in self.connection.outgoing.withdraw(track, stops) {
            self.connection.was_reset(&stream);
        }
        self.connection.datagrams.waiting.retain(|waiting| waiting.track != track);
        let track = &mut self.tracks[usize::from(track)];
        track.waiting.clear();
        track.endless = false;
    }

    /// The application withdraws unsent data.
    pub fn withdraw(&mut self) {
        self.take_back(0, false);
    }

    /// The application stops, and the connection ends: unsent data is discarded.
    pub fn stop(&mut self) {
        for track in 0..self.tracks.len() as u8 {
            self.take_back(track, true);
        }
        self.connection.stopped = true;
    }

    /// Notes the packet of an acknowledgement without older ranges, if it is in order and no other processing is
    /// needed; [`QuicSender::on_range`] must follow. `false`: nothing was done.
    #[inline]
    pub fn note_ack_in_order(&mut self, packet: &Packet) -> bool {
        self.tracks.len() == 1 && self.connection.note_silent_in_order(packet)
    }

    /// The fast path of [`QuicSender::on_packet`], after [`QuicSender::note_ack_in_order`].
    #[inline]
    pub fn on_range(&mut self, now: Time, range: &AckRange, out: &mut impl Transmit) {
        self.connection.on_ack(now, range, &[]);
        if !self.tracks[0].waiting.is_empty() {
            self.write(0);
        }
        self.connection.pump(now, out);
    }

    /// Processes a packet of the receiver; `extra` is its side record.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let has_requests = self.connection.config.request.is_some();
        if has_requests && matches!(extra, Some(Extra::Quic(_))) {
            self.account(now); // the packet may end a connection
        }
        let before = (self.connection.space.base, self.connection.incoming.opened(), self.connection.congestion.cuts());
        if self.connection.on_packet(now, packet, extra) {
            if has_requests {
                self.on_requests(before);
            }
            if self.tracks.iter().any(|track| !track.waiting.is_empty()) {
                (0..self.order.len()).for_each(|at| self.write(self.order[at]));
                self.await_deadlines();
            }
            self.connection.pump(now, out);
        }
    }

    /// Collects newly arrived requests. If they opened a connection, its `base` differs from the one passed.
    fn on_requests(&mut self, (base, opened, cuts): (u32, u32, Cuts)) {
        if base != self.connection.space.base {
            self.earlier_requests += opened;
            (self.cuts.losses, self.cuts.marks) = (self.cuts.losses + cuts.losses, self.cuts.marks + cuts.marks);
        }
        let (before, streams) = (self.earlier_requests, &mut self.connection.incoming.objects);
        self.pending_requests.extend(streams.drain(..).map(|request| before + request.number));
    }

    /// The number of the next request that has arrived and was not yet returned; requests are numbered from 0.
    pub fn take_request(&mut self) -> Option<u32> {
        self.pending_requests.pop_front()
    }

    /// The application writes `bytes` of the answer to a request of this connection; `last` marks the end of the
    /// answer.
    pub fn answer(&mut self, request: u32, bytes: u64, last: bool, now: Time, out: &mut impl Transmit) {
        let Some(place) = request.checked_sub(self.earlier_requests).filter(|_| !self.connection.stopped) else {
            return;
        };
        let outgoing = &mut self.connection.outgoing;
        outgoing.open_up_to(place, Kind { rank: 0, track: 0 });
        if last {
            outgoing.write_frame(place, bytes, (Stamp::at(now), Time::NEVER), false, true);
        } else {
            outgoing.write(place, bytes, false);
        }
        self.connection.pump(now, out);
    }

    /// The time that [`QuicSender::next_wake`] returned has arrived; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.started && self.connection.next_wake() <= now {
            if self.connection.timers.waiting_due <= now {
                self.expire_waiting(now);
            }
            self.connection.on_timer(now, out);
        } else if self.started && self.connection.stopped {
            self.connection.pump(now, out); // the end of a stream
        }
    }

    /// When to call [`QuicSender::on_timer`].
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.connection.next_wake()
    }

    /// Whether everything written to its own track has been acknowledged or given up.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && self.has_settled(0)
    }

    fn has_settled(&self, track: u8) -> bool {
        let Track { waiting, endless, .. } = &self.tracks[usize::from(track)];
        let quiet = self.connection.datagrams.waiting.iter().all(|waiting| waiting.track != track);
        quiet && waiting.is_empty() && !endless && self.connection.outgoing.has_settled(track)
    }

    /// The state of a track that it leads, with the track's target rate.
    #[must_use]
    pub fn state(&self, track: u8, target: Option<Rate>) -> TrackState {
        let stats = &self.connection.stats.led[usize::from(track) - 1];
        TrackState {
            bytes_acked: stats.bytes_acked,
            frames: stats.frames,
            frames_reset: stats.frames_reset,
            frames_dropped: stats.frames_dropped,
            unsent: self.unsent(track),
            acked_all: self.has_settled(track),
            target,
        }
    }

    /// Sets its own share of [`QuicSender::rate`]; the tracks that it leads have their own shares.
    pub fn allot(&mut self, part: Option<Rate>) {
        self.part = part;
    }

    /// The share of [`QuicSender::rate`] that a track without a rate of its own claims, in bits a second including all
    /// headers: its waiting data plus its recently acknowledged data, per second.
    pub fn claim(&mut self, track: u8, now: Time) -> f64 {
        let (acked, unsent) = (self.connection.sent_of(track).bytes_acked, self.unsent(track));
        let claimed = self.tracks[usize::from(track)].recent_rate.claim(acked, unsent, now);
        self.connection.config.with_headers(claimed)
    }

    /// Unsent bytes of a track.
    pub(super) fn unsent(&self, track: u8) -> u64 {
        let waiting: u64 = self.tracks[usize::from(track)].waiting.iter().map(|(bytes, ..)| bytes).sum();
        let datagrams = self.connection.datagrams.waiting.iter().filter(|waiting| waiting.track == track);
        self.connection.outgoing.unsent(track) + waiting + datagrams.map(|datagram| datagram.left).sum::<u64>()
    }

    /// The number of entries kept for single writes and datagrams.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        self.tracks.iter().map(|track| track.waiting.len()).sum::<usize>() + self.connection.datagrams.waiting.len()
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.connection.stats.sent
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.connection.stats.sent
    }

    /// Completes the integrals of [`QuicSender::stats`], and the counters of window reductions.
    pub fn account(&mut self, now: Time) {
        let window = self.connection.window_packets();
        let stats = &mut self.connection.stats.sent;
        if self.started {
            stats.advance(now, window);
        }
        let cuts = self.connection.congestion.cuts();
        stats.ecn_cuts = self.cuts.marks + cuts.marks;
        stats.window_cuts = stats.ecn_cuts + self.cuts.losses + cuts.losses;
    }

    /// The congestion window in full datagrams.
    #[must_use]
    pub fn congestion_window(&self) -> f64 {
        self.connection.window_packets()
    }

    /// The target rate for an encoder: its share of [`QuicSender::rate`].
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        if self.tracks.len() > 1 { self.part } else { self.rate() }
    }

    /// The rate of the connection, in bits a second including all headers: the window per smoothed round-trip time, or
    /// the controller's own rate if that is lower; `None` before the first round-trip sample.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let connection = &self.connection;
        if !connection.loss.rtt.is_known() {
            return None;
        }
        let by_window =
            connection.congestion.window() as f64 / connection.loss.rtt.smoothed_rtt.as_secs_f64().max(1e-6);
        let paces = connection.congestion.needs().pacing;
        let rate = if paces { by_window.min(connection.congestion.pacing_rate()) } else { by_window };
        Some(Rate::from_bps(connection.config.with_headers(rate * 8.0).min(1e15) as u64))
    }

    /// How long the unsent data takes to leave at that rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        queueing(self.unsent(0), self.target())
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &TcpController {
        self.connection.congestion.controller()
    }

    /// The round-trip estimate.
    #[must_use]
    pub fn rtt(&self) -> &Rtt {
        &self.connection.loss.rtt
    }

    /// Number of streams reset at their deadline.
    #[must_use]
    pub fn reset_streams(&self) -> u64 {
        self.connection.stats.reset_streams
    }

    /// Number of packets that were declared lost and acknowledged later.
    #[must_use]
    pub fn spurious_losses(&self) -> u64 {
        self.connection.stats.spurious
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.phase == Phase::Closed
    }

    /// Reports the values to plot: the controller's gauges, `srtt`, and `in_flight` in full datagrams.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        let connection = &self.connection;
        connection.congestion.gauges(to);
        let srtt = if connection.loss.rtt.is_known() { connection.loss.rtt.smoothed_rtt } else { Span::ZERO };
        to.seconds("srtt", known(srtt.as_secs_f64()));
        to.packets("in_flight", connection.congestion.in_flight() as f64 / f64::from(connection.config.datagram));
    }

    /// The slow-start threshold in full datagrams.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.connection.congestion.controller().threshold()
    }
}
