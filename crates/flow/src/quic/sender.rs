//! The end that opens a connection and sends a flow's data, as a host sees it.

use super::connection::{Connection, End, Phase};
use super::datagrams::Waiting;
use super::outgoing::Kind;
use super::{Carriage, Cuts, QuicConfig, Rtt};
use crate::{SenderStats, Transmit};
use paceline_control::{Gauges, TcpController, WindowController, known};
use paceline_packet::{Extra, Packet, Stamp};
use paceline_random as random;
use paceline_units::{Rate, Span, Time};

/// The sending end of a flow over QUIC.
///
/// What the application writes becomes data of streams or datagrams, by the [`Carriage`] of its settings.
#[derive(Debug)]
pub struct QuicSender {
    pub(super) connection: Connection,
    started: bool,
    /// The stream that is being written, if writes share one.
    current: Option<u32>,
    /// What could not be written: the other end lets no more streams be opened.
    waiting: std::collections::VecDeque<(u64, Time, bool)>,
    /// The same without end.
    endless: bool,
    cuts: Cuts,
}

impl QuicSender {
    /// A sender that has not started; `stream` feeds a controller that draws.
    #[must_use]
    pub fn new(config: &QuicConfig, controller: TcpController, stream: random::Stream) -> QuicSender {
        QuicSender {
            connection: Connection::new(End::Opener, config, controller, stream),
            started: false,
            current: None,
            waiting: std::collections::VecDeque::new(),
            endless: false,
            cuts: Cuts::default(),
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
        (self.current, self.endless) = (None, false);
        self.waiting.clear();
    }

    /// The application writes `bytes`: of a frame, if its carriage knows frames, which is a key frame or not.
    pub fn supply(&mut self, bytes: u64, key: bool, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.connection.stopped || self.endless {
            return;
        }
        if self.started && self.is_closed() {
            // nothing came for too long: another connection
            self.restart(now);
            self.connection.open(now);
        }
        self.waiting.push_back((bytes, now, key));
        self.write();
        if self.started {
            self.connection.pump(now, out);
        }
    }

    /// The application will never run dry.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if self.connection.stopped || self.endless {
            return;
        }
        self.endless = true;
        if let Some(place) = self.stream(now) {
            self.connection.outgoing.write_endlessly(place);
        }
        if self.started {
            self.connection.pump(now, out);
        }
    }

    /// The stream that all is written to.
    fn stream(&mut self, now: Time) -> Option<u32> {
        if self.current.is_none() && self.connection.outgoing.may_open() {
            let deadline = self.deadline(now);
            self.current = Some(self.open_stream(deadline));
        }
        self.current
    }

    /// Opens a stream that is given up then.
    fn open_stream(&mut self, deadline: Time) -> u32 {
        self.connection.next_deadline = self.connection.next_deadline.min(deadline);
        self.connection.outgoing.open(Kind { priority: 0, deadline })
    }

    fn deadline(&self, captured: Time) -> Time {
        self.connection.config.deadline.map_or(Time::NEVER, |deadline| captured + deadline)
    }

    /// What waits becomes data of streams, as far as those may be opened.
    fn write(&mut self) {
        while let Some(&(bytes, captured, key)) = self.waiting.front() {
            let (stamp, deadline) = (Stamp::at(captured), self.deadline(captured));
            match self.connection.config.carriage {
                Carriage::Stream => {
                    let Some(place) = self.stream(captured) else { return };
                    if self.connection.config.frames {
                        self.connection.outgoing.write_frame(place, bytes, stamp, key, false);
                    } else {
                        self.connection.outgoing.write(place, bytes, false);
                    }
                }
                Carriage::StreamEach => {
                    if !self.connection.outgoing.may_open() {
                        return;
                    }
                    let place = self.open_stream(deadline);
                    self.connection.outgoing.write_frame(place, bytes, stamp, key, true);
                }
                Carriage::StreamPerGroup => {
                    if key && let Some(place) = self.current.take() {
                        self.connection.outgoing.write(place, 0, true);
                    }
                    let Some(place) = self.stream(captured) else { return };
                    self.connection.outgoing.write_frame(place, bytes, stamp, key, false);
                }
                Carriage::Datagrams => {
                    let waiting = Waiting { left: bytes, offset: 0, captured: stamp, key, deadline };
                    self.connection.datagrams.push_back(waiting);
                    self.connection.next_deadline = self.connection.next_deadline.min(deadline);
                }
            }
            self.waiting.pop_front();
        }
    }

    /// The application takes back what has not been sent yet.
    pub fn withdraw(&mut self) {
        self.connection.outgoing.withdraw(false);
        self.connection.datagrams.clear();
        self.waiting.clear();
        self.endless = false;
    }

    /// The application stops: what has not been sent yet never will be.
    pub fn stop(&mut self) {
        self.withdraw();
        self.connection.outgoing.withdraw(true);
        self.connection.stopped = true;
    }

    /// A packet of the receiver has come; `extra` is its side record.
    pub fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        if self.connection.on_packet(now, packet, extra) {
            if !self.waiting.is_empty() {
                self.write();
            }
            self.connection.pump(now, out);
        }
    }

    /// The time that [`QuicSender::next_wake`] named has come; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.started && self.connection.next_wake() <= now {
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

    /// Whether all that was written has been acknowledged, or given up.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        let quiet = self.connection.datagrams.is_empty() && self.waiting.is_empty() && !self.endless;
        self.started && quiet && self.connection.outgoing.is_settled()
    }

    /// Streams, datagrams and packets that are remembered one by one.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        self.waiting.len() + self.connection.datagrams.len()
    }

    /// Counts up to now.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.connection.stats
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

    /// What an encoder should aim at, in bits a second with all headers: what the window lets through in a round trip, or the
    /// controller's own rate if that is less; `None` before there is a round trip.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        let connection = &self.connection;
        if !connection.rtt.is_known() {
            return None;
        }
        let by_window = connection.congestion.window() as f64 / connection.rtt.smoothed.as_secs_f64().max(1e-6);
        let paces = connection.congestion.needs().pacing;
        let rate = if paces { by_window.min(connection.congestion.pacing_rate()) } else { by_window };
        let (datagram, wire) = (f64::from(connection.config.datagram), f64::from(connection.config.wire()));
        Some(Rate::from_bps((rate * 8.0 * wire / datagram).min(1e15) as u64))
    }

    /// How long what has not left takes to leave at that rate.
    #[must_use]
    pub fn queueing(&self) -> Span {
        let waiting: u64 = self.waiting.iter().map(|(bytes, ..)| bytes).sum();
        let datagrams: u64 = self.connection.datagrams.iter().map(|datagram| datagram.left).sum();
        let bits = 8.0 * (self.connection.outgoing.unsent() + waiting + datagrams) as f64;
        self.target().map_or(Span::ZERO, |rate| Span::from_secs_f64((bits / rate.bps().max(1.0)).min(1e6)))
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
        let srtt = if connection.rtt.is_known() { connection.rtt.smoothed } else { Span::ZERO };
        to.seconds("srtt", known(srtt.as_secs_f64()));
        to.packets("in_flight", connection.congestion.in_flight() as f64 / f64::from(connection.config.datagram));
    }

    /// The slow-start threshold in full datagrams.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.connection.congestion.controller().threshold()
    }
}
