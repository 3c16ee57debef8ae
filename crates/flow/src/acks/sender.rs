//! The sending end.

use super::AcksConfig;
use super::history::{History, Losses};
use super::rtt::Rtt;
use crate::pacer::Pacer;
use crate::supply::Supply;
use crate::{Segment, SenderStats, Transmit};
use paceline_control::{AckController, AckEvent, AcksController, Controller, Gauges, Pacing, PathView, known};
use paceline_packet::{Extra, Flags, LastHole, Packet, Stamp};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};

/// The sending end of a flow.
///
/// The caller passes in the application's writes ([`AcksSender::supply`]), acknowledgements and the time. It receives
/// packets through [`Transmit`]. [`AcksSender::next_wake`] says when to call [`AcksSender::on_timer`]; that time may
/// move later without notice, and a call too early does nothing.
#[derive(Debug)]
pub struct AcksSender {
    supply: Supply,
    started: bool,
    stopped: bool,
    pacing: Pacing,
    pacer: Pacer,
    history: History,
    rtt: Rtt,
    controller: AcksController,
    stats: SenderStats,
    config: Box<AcksConfig>,
    fresh: AcksController,
}

/// Maximum number of lost packets kept, in case their acknowledgements arrive late.
const GIVEN_UP: usize = 1 << 14;

impl AcksSender {
    /// Creates a sender that has not started. `stream` supplies the jitter and overhead of gaps, if there are any.
    #[must_use]
    pub fn new(config: &AcksConfig, controller: AcksController, stream: Stream) -> AcksSender {
        AcksSender {
            supply: Supply::default(),
            started: false,
            stopped: false,
            pacing: config.settings.pacing,
            pacer: Pacer::new(config.settings.gap_jitter.clamp(0.0, 0.999), Sequence::new(stream))
                .with_overhead(config.send_overhead),
            history: History::new(if config.settings.late_answers { GIVEN_UP } else { 0 }),
            rtt: Rtt::new(config.settings.estimator),
            controller: controller.clone(),
            stats: SenderStats::new(config.wire()),
            config: Box::new(config.clone()),
            fresh: controller,
        }
    }

    /// Starts sending. Data supplied earlier has waited for this.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.stats.begin(now);
        self.started = true;
        self.controller.on_feedback(&AckEvent::Started, &self.path(now));
        self.pacer.start(now);
        self.run(now, out);
    }

    /// Resets the sender: nothing supplied, no round-trip time. Statistics continue to count. Call
    /// [`AcksSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.supply.clear();
        self.started = false;
        self.stopped = false;
        self.history.clear(self.supply.next());
        self.rtt = Rtt::new(self.config.settings.estimator);
        self.controller = self.fresh.clone();
    }

    /// The application writes `bytes`: full packets and, for a remainder, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.supply.is_endless() || self.stopped {
            return;
        }
        self.supply.add(bytes, self.config.segment, self.config.whole_segments);
        self.run(now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.supply.add_endlessly();
            self.run(now, out);
        }
    }

    /// The application stops: unsent data is discarded.
    pub fn stop(&mut self) {
        self.supply.clear();
        self.stopped = true;
    }

    /// Whether everything supplied has been sent.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && !self.supply.is_left()
    }

    /// The number of entries kept for single writes: those that did not fill a packet.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.supply.shorts()
    }

    /// When to call [`AcksSender::on_timer`]. A sender without data and without packets of unknown fate waits for
    /// nothing.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        if !self.started || self.stopped {
            return Time::NEVER;
        }
        let due = if self.supply.is_left() {
            self.pacer.due()
        } else if let Some(oldest) = self.history.oldest() {
            oldest + self.rtt.timeout()
        } else {
            return Time::NEVER;
        };
        due.min(self.controller.next_timer().unwrap_or(Time::NEVER))
    }

    /// Sends a due packet, handles overdue packets and the controller's timer; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        self.run(now, out);
    }

    fn run(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started || self.stopped {
            return;
        }
        if self.controller.next_timer().is_some_and(|timer| timer <= now) {
            self.account(now);
            self.controller.on_timer(&self.path(now));
            self.follow(now);
        }
        if !self.supply.is_left() {
            self.expire(now);
        } else if self.pacer.due() <= now {
            match out.full_until() {
                Some(until) => self.pacer.enough(until),
                None => self.tick(now, out),
            }
        }
    }

    /// Handles the send timer. First, packets that have been outstanding for too long are lost (paper, section 2.1: the
    /// send timer also detects losses).
    #[inline]
    fn tick(&mut self, now: Time, out: &mut impl Transmit) {
        let cut = self.expire(now);
        if !(cut && self.pacing == Pacing::Timer) {
            self.send(now, out);
        }
        self.pacer.sent(now, Span::ZERO, 1.0, self.controller.rate());
    }

    /// Checks for timeouts; returns whether the rate was reduced for one.
    #[inline]
    fn expire(&mut self, now: Time) -> bool {
        let lost = self.history.expire(now, self.rtt.timeout());
        if lost.packets == 0 {
            return false;
        }
        self.stats.timeouts += 1;
        self.lost(lost, now)
    }

    /// Reports losses to the controller; returns whether it has reduced the rate.
    #[cold]
    fn lost(&mut self, lost: Losses, now: Time) -> bool {
        self.account(now);
        let before = self.controller.rate();
        let event = AckEvent::Lost { packets: lost.packets, newest: lost.newest };
        self.controller.on_feedback(&event, &self.path(now));
        let cut = self.controller.rate() < before;
        self.stats.window_cuts += u64::from(cut);
        self.follow(now);
        cut
    }

    /// Applies a changed rate to the pacer.
    #[inline]
    fn follow(&mut self, now: Time) {
        if self.pacing == Pacing::Follows {
            self.pacer.repace(now, 1.0, self.controller.rate());
        }
    }

    #[inline]
    fn send(&mut self, now: Time, out: &mut impl Transmit) {
        let (seq, payload) = self.supply.take(self.config.segment);
        let size = payload.saturating_add(self.config.header);
        self.stats.sent(size);
        self.stats.bytes_acked += u64::from(payload);
        self.history.sent(now);
        out.transmit(Segment { seq, stamp: Stamp::at(now), size, flags: Flags::NONE, extra: None });
        self.controller.on_sent();
    }

    /// Processes an acknowledgement. Invalid ones are ignored: those of packets never sent, those with an echo other
    /// than the packet's timestamp, and those with an invalid hole.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>) {
        let Some(Extra::Ack(hole)) = extra else { return };
        if !self.started || self.stopped || !self.credible(packet, hole) {
            return;
        }
        let awaited = self.history.departure(packet.seq);
        let departure = awaited.or_else(|| self.history.departure_of_given_up(packet.seq));
        if departure.is_some_and(|left| Stamp::at(left) != packet.stamp) {
            return;
        }
        self.account(now);
        let rtt = departure.map(|left| {
            let sample = self.rtt.sample(now.since(left));
            self.stats.round_trip(sample);
            if awaited.is_some() {
                self.history.on_arrival(packet.seq);
            } else {
                self.history.on_late_arrival(packet.seq);
            }
            sample
        });
        let (arrived, lost) = self.history.learn(hole);
        let packets = arrived + u32::from(awaited.is_some());
        if packets > 0 || rtt.is_some() {
            self.controller.on_feedback(&AckEvent::Acked { rtt, packets }, &self.path(now));
            self.follow(now);
        }
        if lost.packets > 0 {
            self.lost(lost, now);
        }
    }

    fn credible(&self, packet: &Packet, hole: &LastHole) -> bool {
        packet.seq < hole.received_end
            && hole.received_end <= self.supply.next()
            && hole.hole_end < hole.received_end
            && hole.hole_start <= hole.hole_end
    }

    fn path(&self, now: Time) -> PathView {
        PathView {
            now,
            srtt: self.rtt.smoothed(),
            rttvar: self.rtt.deviation(),
            min_rtt: self.rtt.min_rtt(),
            in_flight: self.history.outstanding(),
            acked: self.history.first(),
            next: self.supply.next(),
            receive_window: u32::MAX,
            segment: u32::from(self.config.segment.max(1)),
        }
    }

    /// Counters up to now. Sent data counts as acknowledged; the window is the rate times the round-trip time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SenderStats {
        &mut self.stats
    }

    /// Integrates the window up to `now`, so that [`AcksSender::stats`] is complete. It does nothing before the start.
    pub fn account(&mut self, now: Time) {
        if self.started || self.stats.packets_sent > 0 {
            let window = if self.started && !self.stopped { self.window() } else { 0.0 };
            self.stats.advance(now, window);
        }
    }

    /// Number of packets whose fate is unknown.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.history.outstanding()
    }

    /// The number of packets that the allowed rate sends in a round-trip time; zero before the first sample.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.controller.rate() * self.rtt.smoothed().as_secs_f64()
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &AcksController {
        &self.controller
    }

    /// The smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// Reports the values to plot: the controller's gauges, `allowed` (its rate, of payload), `srtt`, `timeout`,
    /// `window` and `in_flight`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.bits_per_second("allowed", self.controller.rate() * 8.0 * f64::from(self.config.segment));
        to.seconds("srtt", known(self.rtt.smoothed().as_secs_f64()));
        to.seconds("timeout", self.rtt.timeout().as_secs_f64());
        to.packets("window", known(self.window()));
        to.packets("in_flight", f64::from(self.history.outstanding()));
    }
}
