//! The end that sends a flow's data, as a host sees it; it opens the connection, unless its receiver asks.

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
/// What the application writes becomes data of streams or datagrams, by the [`Carriage`] of its settings. Other flows may be tracks of
/// its connection: what they write comes by [`QuicSender::write_track`].
#[derive(Debug)]
pub struct QuicSender {
    pub(super) connection: Connection,
    pub(super) started: bool,
    /// Its own, then those that it leads.
    pub(super) tracks: Vec<Track>,
    /// Their numbers, the most urgent first.
    order: Vec<u8>,
    /// Its own part of the rate, if it leads others.
    part: Option<Rate>,
    cuts: Cuts,
    /// Requests: of the connections before this one, and those that have come and were not taken.
    earlier_requests: u32,
    pending_requests: VecDeque<u32>,
    /// Something has come in that is to be sent on.
    pub(super) has_relayed: bool,
}

impl QuicSender {
    /// A sender that has not started; `stream` feeds a controller that draws.
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

    /// It leads these tracks, numbered from 1 on. Before it starts.
    pub fn lead(&mut self, tracks: impl IntoIterator<Item = TrackConfig>) {
        self.tracks.extend(tracks.into_iter().take(usize::from(u8::MAX) - 1).map(Track::new));
        self.order = (0..self.tracks.len() as u8).collect();
        self.order.sort_by_key(|track| self.tracks[usize::from(*track)].config.rank);
        self.connection.led = vec![SenderStats::new(self.connection.config.wire()); self.tracks.len() - 1];
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

    /// A fresh connection with nothing written; statistics go on counting. Call [`QuicSender::start`] for it.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        let cuts = self.connection.congestion.cuts();
        (self.cuts.losses, self.cuts.marks) = (self.cuts.losses + cuts.losses, self.cuts.marks + cuts.marks);
        let next = self.connection.log.next();
        // the other end's numbers go on above all that has come of this connection
        self.connection.begin(next, self.connection.received.next());
        self.set_tracks();
        self.tracks.iter_mut().for_each(Track::clear);
    }

    /// The application writes `bytes`: of a frame, if its carriage knows frames, which is a key frame or not.
    pub fn supply(&mut self, bytes: u64, key: bool, now: Time, out: &mut impl Transmit) {
        self.write_track(0, TrackWrite::Frame { bytes, captured: now, key }, now, out);
    }

    /// The application will never run dry.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        self.write_track(0, TrackWrite::Endless, now, out);
    }

    /// The application of a track, 0 being its own, did this.
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
            TrackWrite::Portion(portion) => return self.relay(track, portion, now),
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

    /// Opens another connection, if nothing came of this one for too long.
    pub(super) fn open_again(&mut self, now: Time) {
        if self.started && self.is_closed() {
            self.restart(now);
            self.connection.open(now);
        }
    }

    /// The stream that all of a track is written to.
    fn stream(&mut self, track: u8) -> Option<u32> {
        let place = usize::from(track);
        if self.tracks[place].current.is_none() && self.connection.outgoing.may_open() {
            self.tracks[place].current = Some(self.open_stream(track));
        }
        self.tracks[place].current
    }

    /// Opens a stream of a track.
    pub(super) fn open_stream(&mut self, track: u8) -> u32 {
        let rank = self.tracks[usize::from(track)].config.rank;
        self.connection.outgoing.open(Kind { rank, track })
    }

    /// Appends to a stream what was captured then; `finish`: nothing follows.
    fn write_frame(&mut self, stream: u32, (bytes, captured, key): (u64, Time, bool), due: Time, finish: bool) {
        let connection = &mut self.connection;
        connection.next_deadline = connection.next_deadline.min(due);
        connection.outgoing.write_frame(stream, bytes, (Stamp::at(captured), due), key, finish);
    }

    /// What waits of a track becomes data of streams, as far as those may be opened.
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
                        // what is left of a group that was given up is of no use
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

    /// What waits for a stream is given up when it is too old.
    fn expire_waiting(&mut self, now: Time) {
        for track in 0..self.tracks.len() as u8 {
            let frames = self.tracks[usize::from(track)].expire(now);
            self.connection.sent_of(track).frames_reset += frames;
        }
        self.await_deadlines();
    }

    /// The connection wakes for what waits for a stream.
    fn await_deadlines(&mut self) {
        let due = self.tracks.iter().map(Track::due).min().unwrap_or(Time::NEVER);
        self.connection.waiting_due = due;
        self.connection.next_deadline = self.connection.next_deadline.min(due);
    }

    /// A track takes back what has not been sent yet; if it `stops`, nothing follows on its streams.
    fn take_back(&mut self, track: u8, stops: bool) {
        for stream in self.connection.outgoing.withdraw(track, stops) {
            self.connection.was_reset(&stream);
        }
        self.connection.datagrams.retain(|waiting| waiting.track != track);
        let track = &mut self.tracks[usize::from(track)];
        track.waiting.clear();
        track.endless = false;
    }

    /// The application takes back what has not been sent yet.
    pub fn withdraw(&mut self) {
        self.take_back(0, false);
    }

    /// The application stops, and the connection with it: what has not been sent yet never will be.
    pub fn stop(&mut self) {
        for track in 0..self.tracks.len() as u8 {
            self.take_back(track, true);
        }
        self.connection.stopped = true;
    }

    /// Whether an acknowledgement without older ranges came in a packet out of which nothing else follows, in order: its packet has
    /// been noted then, and [`QuicSender::on_range`] is to follow. `false`: nothing has been done.
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

    /// A packet of the receiver has come; `extra` is its side record.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let asks = self.connection.config.request.is_some();
        if asks && matches!(extra, Some(Extra::Quic(_))) {
            self.account(now); // a connection may end with it
        }
        let before = (self.connection.base, self.connection.incoming.opened(), self.connection.congestion.cuts());
        if self.connection.on_packet(now, packet, extra) {
            if asks {
                self.on_requests(before);
            }
            if self.tracks.iter().any(|track| !track.waiting.is_empty()) {
                (0..self.order.len()).for_each(|at| self.write(self.order[at]));
                self.await_deadlines();
            }
            self.connection.pump(now, out);
        }
    }

    /// Requests may have come, and with the first a connection, of another `base` than before.
    fn on_requests(&mut self, (base, opened, cuts): (u32, u32, Cuts)) {
        if base != self.connection.base {
            self.earlier_requests += opened;
            (self.cuts.losses, self.cuts.marks) = (self.cuts.losses + cuts.losses, self.cuts.marks + cuts.marks);
        }
        let (before, streams) = (self.earlier_requests, &mut self.connection.incoming.objects);
        self.pending_requests.extend(streams.drain(..).map(|request| before + request.number));
    }

    /// The number of a request that has come since it was last asked for, of all from 0 on.
    pub fn take_request(&mut self) -> Option<u32> {
        self.pending_requests.pop_front()
    }

    /// The application writes `bytes` of the answer to a request of this connection, the `last` of it or not.
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

    /// The time that [`QuicSender::next_wake`] named has come; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.started && self.connection.next_wake() <= now {
            if self.connection.waiting_due <= now {
                self.expire_waiting(now);
            }
            self.connection.on_timer(now, out);
        } else if self.started && self.connection.stopped {
            self.connection.pump(now, out); // the end of a stream
        }
    }

    /// When [`QuicSender::on_timer`] should be called.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.connection.next_wake()
    }

    /// Whether all that it wrote itself has been acknowledged, or given up.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && self.has_settled(0)
    }

    fn has_settled(&self, track: u8) -> bool {
        let Track { waiting, endless, .. } = &self.tracks[usize::from(track)];
        let quiet = self.connection.datagrams.iter().all(|waiting| waiting.track != track);
        quiet && waiting.is_empty() && !endless && self.connection.outgoing.has_settled(track)
    }

    /// How a track that it leads is, and the rate that it is to have.
    #[must_use]
    pub fn state(&self, track: u8, target: Option<Rate>) -> TrackState {
        let stats = &self.connection.led[usize::from(track) - 1];
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

    /// Its own part of [`QuicSender::rate`], of which those that it leads have theirs.
    pub fn allot(&mut self, part: Option<Rate>) {
        self.part = part;
    }

    /// What a track claims of [`QuicSender::rate`] if it has no rate of its own, in bits a second with all headers: what waits and
    /// what it has sent lately, as a rate over a second.
    pub fn claim(&mut self, track: u8, now: Time) -> f64 {
        let (acked, unsent) = (self.connection.sent_of(track).bytes_acked, self.unsent(track));
        let claimed = self.tracks[usize::from(track)].lately.claim(acked, unsent, now);
        self.connection.config.with_headers(claimed)
    }

    /// Bytes of a track that have not left.
    pub(super) fn unsent(&self, track: u8) -> u64 {
        let waiting: u64 = self.tracks[usize::from(track)].waiting.iter().map(|(bytes, ..)| bytes).sum();
        let datagrams = self.connection.datagrams.iter().filter(|waiting| waiting.track == track);
        self.connection.outgoing.unsent(track) + waiting + datagrams.map(|datagram| datagram.left).sum::<u64>()
    }

    /// Streams, datagrams and packets that are remembered one by one.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        self.tracks.iter().map(|track| track.waiting.len()).sum::<usize>() + self.connection.datagrams.len()
    }

    /// Counts up to now.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.connection.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.connection.stats
    }

    /// Completes the integrals of [`QuicSender::stats`], and the counts that the congestion control keeps.
    pub fn account(&mut self, now: Time) {
        let window = self.connection.window_packets();
        let stats = &mut self.connection.stats;
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

    /// What an encoder should aim at: its part of [`QuicSender::rate`].
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        if self.tracks.len() > 1 { self.part } else { self.rate() }
    }

    /// What the connection carries, in bits a second with all headers: what the window lets through in a round trip, or the
    /// controller's own rate if that is less; `None` before there is a round trip.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let connection = &self.connection;
        if !connection.rtt.is_known() {
            return None;
        }
        let by_window = connection.congestion.window() as f64 / connection.rtt.smoothed_rtt.as_secs_f64().max(1e-6);
        let paces = connection.congestion.needs().pacing;
        let rate = if paces { by_window.min(connection.congestion.pacing_rate()) } else { by_window };
        Some(Rate::from_bps(connection.config.with_headers(rate * 8.0).min(1e15) as u64))
    }

    /// How long what has not left takes to leave at that rate.
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
        &self.connection.rtt
    }

    /// Streams that were reset because their deadline came.
    #[must_use]
    pub fn reset_streams(&self) -> u64 {
        self.connection.reset_streams
    }

    /// Packets that had been taken for lost and came after all.
    #[must_use]
    pub fn spurious_losses(&self) -> u64 {
        self.connection.spurious
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.phase == Phase::Closed
    }

    /// What a plot should show: the controller's gauges, `srtt`, and `in_flight` in full datagrams, as TCP's.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        let connection = &self.connection;
        connection.congestion.gauges(to);
        let srtt = if connection.rtt.is_known() { connection.rtt.smoothed_rtt } else { Span::ZERO };
        to.seconds("srtt", known(srtt.as_secs_f64()));
        to.packets("in_flight", connection.congestion.in_flight() as f64 / f64::from(connection.config.datagram));
    }

    /// The slow-start threshold in full datagrams.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.connection.congestion.controller().threshold()
    }
}
