//! The sending end (RFC 5348 section 4).

mod feedback;
mod frames;

use self::frames::Frames;
use super::TfrcConfig;
use super::data_limited::Limits;
use super::rtt::Rtt;
use crate::pacer::{MAX_PACKETS_PER_CALL, Pacer};
use crate::supply::Supply;
use crate::{Segment, SenderStats, Transmit};
use paceline_control::tfrc::MAX_BACKOFF;
use paceline_control::{Controller, Gauges, Law, PathView, RateController, TfrcController, TfrcEvent, known};
use paceline_packet::{Extra, Flags, Ns2Data, Stamp, Subflow, TfrcData, TfrcMore, TfrcReport};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};

/// The sending end of a flow.
///
/// The caller passes in the application's writes ([`TfrcSender::supply`]), reports and the time. It receives packets
/// through [`Transmit`]. [`TfrcSender::next_wake`] says when to call [`TfrcSender::on_timer`]; that time may move later
/// without notice, and a call too early does nothing.
#[derive(Debug)]
pub struct TfrcSender {
    supply: Supply,
    /// The flow's first packet since its last restart.
    first: u32,
    /// One past the highest packet that a report has covered.
    reported: u32,
    /// The reports that covered exactly this packet as the highest.
    recent_reports: Vec<(Stamp, TfrcReport)>,
    started: bool,
    stopped: bool,
    began: Time,
    law: Law,
    /// s: for a video flow the average, otherwise that of a full packet (RFC 5348 section 4.1).
    segment: f64,
    frames: Frames,
    pacer: Pacer,
    /// The nofeedback timer.
    timer: Time,
    /// There was something to send since it was set.
    busy: bool,
    rtt: Rtt,
    limits: Limits,
    ns2: Ns2State,
    p: f64,
    controller: TfrcController,
    stats: SenderStats,
    config: Box<TfrcConfig>,
    fresh: TfrcController,
    /// Supplies the controller's random draws.
    stream: Stream,
}

/// The state of ns-2's sender.
#[derive(Clone, Copy, Debug)]
struct Ns2State {
    round: u32,
    urgent: bool,
    /// `limited`: the timer found nothing to send; `all_idle`: it was so throughout since the nofeedback timer was set;
    /// `resumed`: when data arrived again.
    limited: bool,
    all_idle: bool,
    resumed: Time,
}

impl Ns2State {
    const NEW: Ns2State = Ns2State { round: 0, urgent: true, limited: false, all_idle: false, resumed: Time::ZERO };
}

/// The controller's stream among those forked from the sender's.
const DRAWS: u64 = 1;

impl TfrcSender {
    /// Creates a sender that has not started. `stream` supplies the jitter of gaps, if there is any.
    #[must_use]
    pub fn new(config: &TfrcConfig, controller: TfrcController, stream: Stream) -> TfrcSender {
        TfrcSender {
            supply: Supply::default(),
            first: 0,
            reported: 0,
            recent_reports: Vec::new(),
            started: false,
            stopped: false,
            began: Time::NEVER,
            law: config.settings.law,
            segment: f64::from(config.segment.max(1)),
            frames: Frames::default(),
            pacer: Pacer::new(config.settings.gap_jitter.clamp(0.0, 0.999), Sequence::new(stream)),
            timer: Time::NEVER,
            busy: false,
            rtt: Rtt::new(config.settings.law),
            limits: Limits::new(),
            ns2: Ns2State::NEW,
            p: 0.0,
            controller: controller.clone(),
            stats: SenderStats::new(config.wire()),
            config: Box::new(config.clone()),
            fresh: controller,
            stream: stream.fork(DRAWS),
        }
    }

    /// Starts sending. Data supplied earlier has waited for this.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        self.stats.begin(now);
        self.started = true;
        self.began = now;
        self.controller.draw_from(self.stream);
        self.controller.on_feedback(&TfrcEvent::Started, &self.path(now));
        self.pacer.start(now);
        self.run(now, out);
    }

    /// Resets the sender: nothing supplied, no round-trip time. Statistics continue to count. Call
    /// [`TfrcSender::start`] next.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        self.supply.clear();
        self.frames.clear();
        self.first = self.supply.next();
        self.reported = self.first;
        self.recent_reports.clear();
        self.started = false;
        self.stopped = false;
        self.timer = Time::NEVER;
        self.busy = false;
        self.rtt = Rtt::new(self.law);
        self.limits = Limits::new();
        self.ns2 = Ns2State::NEW;
        self.p = 0.0;
        self.controller = self.fresh.clone();
    }

    /// The application writes `bytes`: full packets and, for a remainder, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.supply.is_endless() || self.stopped {
            return;
        }
        let packets = self.supply.add(bytes, self.config.segment, self.config.whole_segments);
        if self.config.frames {
            self.segment = self.frames.write(self.supply.end(), packets, bytes, now);
        }
        self.supplied(now, out);
    }

    /// The application always has data.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.supply.add_endlessly();
            self.supplied(now, out);
        }
    }

    /// Sets the number of waiting packets, which other connections may send too; it replaces [`TfrcSender::supply`] in
    /// a flow of several connections. If there are new ones, call [`TfrcSender::supplied`] next.
    #[inline]
    pub(crate) fn share(&mut self, packets: u32) {
        self.supply.set_left(packets);
    }

    /// Handles newly supplied data.
    pub(crate) fn supplied(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started {
            return;
        }
        self.busy = true;
        if self.ns2.limited {
            // advanceby(): one packet at once; the timer keeps its phase
            self.ns2.limited = false;
            self.ns2.all_idle = false;
            self.ns2.resumed = now;
            self.send(now, out);
            if self.pacer.due() <= now {
                self.pacer.skip(now, self.segment, self.controller.pacing());
            }
        }
        self.run(now, out);
    }

    /// The application stops: unsent data is discarded.
    pub fn stop(&mut self) {
        self.supply.clear();
        self.frames.clear();
        self.stopped = true;
        self.timer = Time::NEVER;
    }

    /// Whether everything supplied has been sent.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.started && !self.supply.is_left()
    }

    /// The number of entries kept for single writes: those that did not fill a packet, and frames.
    pub(crate) fn remembered_writes(&self) -> usize {
        self.supply.shorts().max(self.frames.len())
    }

    /// When to call [`TfrcSender::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let sends =
            self.supply.is_left() || self.law == Law::Ns2 && !self.ns2.limited && self.supply.next() > self.first;
        let due = if self.started && !self.stopped && sends { self.pacer.due() - self.early() } else { Time::NEVER };
        due.min(self.timer)
    }

    /// How much before its nominal time a packet may leave (t_delta, RFC 5348 section 8.3).
    #[inline]
    fn early(&self) -> Span {
        if self.config.settings.granularity == Span::ZERO || self.law == Law::Ns2 {
            return Span::ZERO;
        }
        let gap = Span::from_secs_f64(self.segment / self.controller.pacing());
        gap.min(self.config.settings.granularity).min(self.rtt.smoothed()) / 2
    }

    /// Sends due packets, and handles the nofeedback timer; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.timer <= now {
            self.no_feedback(now, out);
        }
        self.run(now, out);
    }

    /// Sends due packets.
    #[inline]
    fn run(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.started || self.stopped {
            return;
        }
        if self.law == Law::Ns2 {
            let running = self.supply.is_left() || self.supply.next() > self.first;
            if self.pacer.due() <= now && running && !self.ns2.limited {
                self.tick(now, out);
            }
            return;
        }
        let early = self.early();
        let mut left = MAX_PACKETS_PER_CALL;
        while self.supply.is_left() && self.pacer.due() <= now + early {
            if left == 0 {
                return self.pacer.enough(now + early);
            }
            if let Some(until) = out.full_until() {
                return self.pacer.enough(until + early);
            }
            left -= 1;
            self.send(now, out);
            let credit = self.rtt.smoothed().mul_f64(self.config.settings.burst.clamp(0.0, 1.0));
            self.pacer.sent(now, credit.max(early), self.segment, self.controller.pacing());
            if self.pacer.due() > now + early {
                self.limits.sent_all(now);
            }
        }
    }

    /// Handles ns-2's send timer, when it expires or is forced: sends a packet, and restarts the timer.
    fn tick(&mut self, now: Time, out: &mut impl Transmit) {
        if self.supply.is_left() {
            self.send(now, out);
        } else {
            self.ns2.limited = true;
        }
        // the next gap is computed even without a packet (nextpkt())
        self.controller.begin_gap();
        self.pacer.restart(now, self.segment, self.controller.pacing());
    }

    #[inline]
    fn send(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.supply.is_left() {
            return;
        }
        let (seq, payload) = self.supply.take(self.config.segment);
        let size = payload.saturating_add(self.config.header);
        self.stats.sent(size);
        self.stats.bytes_acked += u64::from(payload);
        let more = match self.law {
            Law::Ns2 => {
                TfrcMore::Ns2(Ns2Data { timeout: self.rtt.timeout(), round: self.ns2.round, urgent: self.ns2.urgent })
            }
            _ => self.frames.take(seq).map_or(TfrcMore::Nothing, TfrcMore::Frame),
        };
        out.transmit(Segment {
            seq,
            stamp: Stamp::at(now),
            size,
            flags: if self.config.ecn { Flags::ECT } else { Flags::NONE },
            extra: Some(Extra::TfrcData(Subflow::ONLY, TfrcData { rtt: self.rtt.smoothed(), more })),
        });
        self.busy = true;
        if self.timer == Time::NEVER {
            self.set_timer(now);
        }
    }

    fn path(&self, now: Time) -> PathView {
        PathView {
            now,
            srtt: self.rtt.smoothed(),
            rttvar: Span::ZERO,
            min_rtt: self.rtt.min_rtt(),
            in_flight: self.supply.next() - self.reported,
            acked: self.reported,
            next: self.supply.next(),
            receive_window: u32::MAX,
            segment: self.segment.round() as u32,
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

    /// Integrates the window up to `now`, so that [`TfrcSender::stats`] is complete. It does nothing before the start.
    pub fn account(&mut self, now: Time) {
        if self.started || self.stats.packets_sent > 0 {
            let window = if self.started && !self.stopped { self.window() } else { 0.0 };
            self.stats.advance(now, window);
        }
    }

    /// The number of packets that the allowed rate sends in a round-trip time.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.controller.rate() * self.rtt.smoothed().as_secs_f64() / self.segment
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &TfrcController {
        &self.controller
    }

    /// p, the loss event rate of the receiver's last report; 0 before a loss event.
    #[must_use]
    pub fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// R, the smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.rtt.smoothed()
    }

    /// Whether [`TfrcSender::start`] has been called.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// The maximum time between packets while there are any to send (t_mbi, RFC 5348 section 4.3).
    #[must_use]
    pub fn max_gap() -> Span {
        Span::from_secs_f64(MAX_BACKOFF)
    }

    /// Reports the values to plot: the controller's gauges, `srtt` and `window`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.seconds("srtt", known(self.rtt.smoothed().as_secs_f64()));
        to.packets("window", known(self.window()));
    }
}
