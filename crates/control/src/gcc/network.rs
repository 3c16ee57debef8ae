//! Combines the parts: what each event changes, and in which order.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/goog_cc_network_control.cc. Losses are counted from
//! feedback once a second, as in its mode feedback_only; round-trip times are those that the session measures.
//! libwebrtc calls the probe controller only if the target has changed; here it is called each time.

use super::PacketResult;
use super::alr::AlrDetector;
use super::delay::Delay;
use super::loss::{Loss, Settings, State};
use super::probe::{BandwidthLimitedCause, ProbeClusterConfig, ProbeController};
use super::probe_estimate::ProbeBitrateEstimator;
use super::pushback::Pushback;
use super::send_side::SendSideBandwidthEstimation;
use super::throughput::Throughput;
use super::trendline::Usage;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Losses are counted over this time: kLossUpdateInterval.
const LOSS_INTERVAL: Span = Span::from_secs(1);
/// A probe lowers the estimate at most to this share of the acked bitrate: kProbeDropThroughputFraction.
const PROBE_DROP_THROUGHPUT_FRACTION: f64 = 0.85;
/// Pushback below this share is ignored; it drops at most one in this many frames
/// (VideoStreamEncoder::UpdateTargetBitrate of video/video_stream_encoder.cc).
const MIN_REDUCTION: f64 = 0.01;
const FRAMES: f64 = 2.0;

/// A session's options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// The start rate; rates here are in bits per second.
    pub start: f64,
    /// The minimum rate.
    pub min_bitrate: f64,
    /// The maximum rate.
    pub max_bitrate: f64,
    /// The rate that the streams can use; zero: unknown.
    pub allocated: f64,
    /// The pacing rate as a multiple of the target.
    pub pacing: f64,
    /// Whether the loss-based estimate is used.
    pub loss: bool,
    /// Whether to probe.
    pub probing: bool,
    /// Whether to probe while the application sends less than allowed.
    pub alr_probing: bool,
    /// Whether to send padding while the loss-based estimate grows.
    pub padding: bool,
    /// Whether the encoder's rate is reduced while more is in flight than the window.
    pub pushback: bool,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct NetworkController {
    options: Options,
    send: SendSideBandwidthEstimation,
    delay: Delay,
    throughput: Throughput,
    probe: ProbeBitrateEstimator,
    probes: ProbeController,
    alr: AlrDetector,
    was_in_alr: bool,
    pushback: Pushback,
    /// The target, before and after pushback.
    target: f64,
    pushed: f64,
    acknowledged: Option<f64>,
    counts: (u64, u64),
    next_count: Option<Time>,
    pending_probes: VecDeque<ProbeClusterConfig>,
}

impl NetworkController {
    /// A controller before its session.
    #[must_use]
    pub fn new(options: Options) -> NetworkController {
        let mut send = SendSideBandwidthEstimation::default();
        let padding = if options.padding { Settings::default().padding } else { Span::ZERO };
        send.set_loss(Loss::new(Settings { padding, ..Settings::default() }));
        let mut probes = ProbeController::default();
        probes.set_periodic(options.alr_probing);
        NetworkController {
            options,
            send,
            delay: Delay::default(),
            throughput: Throughput::default(),
            probe: ProbeBitrateEstimator::default(),
            probes,
            alr: AlrDetector::default(),
            was_in_alr: false,
            pushback: Pushback::default(),
            target: options.start,
            pushed: options.start,
            acknowledged: None,
            counts: (0, 0),
            next_count: None,
            pending_probes: VecDeque::new(),
        }
    }

    /// Starts the session.
    pub fn start(&mut self, now: Time) {
        let Options { start, min_bitrate, max_bitrate, allocated, .. } = self.options;
        self.send.set_bounds(min_bitrate, max_bitrate);
        self.send.set_target(start);
        self.delay.aimd.start(start);
        self.delay.aimd.set_min_bitrate(min_bitrate);
        self.probes.set_available(true, now);
        let probes = self.probes.set_rates(min_bitrate, start, max_bitrate, now);
        self.queue_probes(probes);
        if allocated > 0.0 {
            let probes = self.probes.set_allocated(allocated, now);
            self.queue_probes(probes);
        }
        self.changed(now);
    }

    /// Handles the end of a process interval.
    pub fn process(&mut self, now: Time) {
        self.send.update(now);
        self.probes.set_alr(self.alr.since());
        let probes = self.probes.process(now);
        self.queue_probes(probes);
        self.pushback.update_window(self.target);
        self.changed(now);
    }

    /// A packet of `size` bytes was sent; `in_flight` bytes are in flight with it.
    pub fn sent(&mut self, size: f64, in_flight: f64, now: Time) {
        self.alr.sent(size, now);
        self.send.sent(now);
        self.pushback.set_in_flight(in_flight);
        self.changed(now);
    }

    /// The session has measured a round-trip time.
    pub fn rtt(&mut self, rtt: Span) {
        self.delay.aimd.set_rtt(rtt.as_secs_f64());
        self.send.set_rtt(rtt);
    }

    /// Handles feedback on these packets, in sending order; `in_flight` bytes remain in flight.
    pub fn feedback(&mut self, results: &[PacketResult], in_flight: f64, now: Time) {
        if results.is_empty() {
            return;
        }
        self.pushback.set_in_flight(in_flight);
        let mut received: Vec<PacketResult> = results.iter().filter(|p| p.arrived.is_some()).copied().collect();
        received.sort_by_key(|p| p.arrived);
        self.round_trips(&received, now);
        self.count(results, now);
        let alr = self.alr.since();
        if self.was_in_alr && alr.is_none() {
            self.probes.alr_ended(now);
        }
        self.was_in_alr = alr.is_some();
        self.throughput.feedback(&received);
        self.acknowledged = self.throughput.rate();
        self.send.set_acknowledged(self.acknowledged);
        for packet in &received {
            self.probe.packet(packet);
        }
        let found = self.probe.take().map(|rate| self.not_far_below(rate));
        let outcome = self.delay.feedback(&received, now, self.acknowledged, found);
        if let Some(rate) = outcome.rate {
            if outcome.probe {
                self.send.set_target(rate);
            }
            self.send.set_delay_based(rate);
        }
        if self.options.loss {
            self.send.feedback(results, alr.is_some(), now);
        }
        if outcome.rate.is_some() {
            self.changed(now);
        }
        if outcome.recovered {
            self.probes.set_alr(alr);
            let probes = self.probes.recovered(now);
            self.queue_probes(probes);
        }
        if !received.is_empty() {
            self.pushback.update_window(self.target);
        }
    }

    /// Passes the longest round trip to the congestion window, and the shortest to the limit on round trips.
    fn round_trips(&mut self, received: &[PacketResult], now: Time) {
        let Some(last) = received.last().and_then(|p| p.arrived) else { return };
        let waited = |p: &PacketResult| p.arrived.map_or(Span::ZERO, |arrived| last.since(arrived));
        if let Some(sent) = received.iter().map(|p| p.sent).min() {
            self.pushback.feedback(sent, now);
        }
        if let Some(min_rtt) = received.iter().map(|p| now.since(p.sent) - waited(p)).min() {
            self.send.on_feedback(now, min_rtt);
        }
    }

    fn count(&mut self, results: &[PacketResult], now: Time) {
        self.counts.0 += results.iter().filter(|p| p.arrived.is_none()).count() as u64;
        self.counts.1 += results.len() as u64;
        if self.options.loss && self.next_count.is_none_or(|next| now > next) {
            self.next_count = Some(now + LOSS_INTERVAL);
            let (lost, all) = std::mem::take(&mut self.counts);
            self.send.report(lost, all, now);
        }
    }

    /// Limits how far a probe's result may lower the estimate.
    fn not_far_below(&self, found: f64) -> f64 {
        self.acknowledged.map_or(found, |rate| found.max(self.delay.last().min(PROBE_DROP_THROUGHPUT_FRACTION * rate)))
    }

    fn queue_probes(&mut self, probes: Vec<ProbeClusterConfig>) {
        if self.options.probing {
            self.pending_probes.extend(probes);
        }
    }

    /// Handles a possible change of the target: pushback takes a step, and the probe controller may react.
    fn changed(&mut self, now: Time) {
        self.target = self.send.target();
        self.pushed = if self.options.pushback {
            self.pushback.step(self.target).max(self.send.min_bitrate())
        } else {
            self.target
        };
        self.follow(now);
    }

    /// Updates the parts that depend on the target.
    fn follow(&mut self, now: Time) {
        self.alr.set_estimate(self.target);
        let probes = self.probes.set_estimate(self.target, self.limit(), now);
        self.queue_probes(probes);
    }

    /// Sets the estimate from a flow state exchange, whatever limited its own. Keeps the detector and the loss
    /// observations.
    pub fn share(&mut self, rate: f64, now: Time) {
        self.delay.aimd.share(rate);
        self.send.share(rate);
        let before = self.target;
        self.target = self.send.target();
        // this is not an event of its own path, so pushback takes no step
        self.pushed = (self.pushed * self.target / before).max(self.send.min_bitrate());
        self.follow(now);
    }

    fn limit(&self) -> BandwidthLimitedCause {
        if self.delay.usage() != Usage::Normal {
            return BandwidthLimitedCause::Queue;
        }
        if self.send.rtt_above_limit() {
            return BandwidthLimitedCause::Rtt;
        }
        match self.send.loss_state() {
            State::Falling | State::Padding => BandwidthLimitedCause::Loss,
            State::Growing => BandwidthLimitedCause::LossGrowing,
            State::Delay => BandwidthLimitedCause::Delay,
        }
    }

    /// The estimate.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// The maximum of the estimate.
    pub fn max_bitrate(&self) -> f64 {
        self.options.max_bitrate
    }

    /// The encoder's rate: pushback drops one in n frames and lowers the target by 1/n, at most by half.
    pub fn encoding(&self) -> f64 {
        let reduction = 1.0 - self.pushed / self.target;
        if reduction <= MIN_REDUCTION {
            return self.target;
        }
        (self.target * (1.0 - 1.0 / (1.0 / reduction).floor().max(FRAMES))).max(self.send.min_bitrate())
    }

    /// The pacing rate, from the target before pushback, so that packets do not queue in the pacer.
    pub fn pacing(&self) -> f64 {
        self.options.pacing * self.target
    }

    /// The rate up to which padding is sent.
    pub fn padding(&self) -> f64 {
        if self.send.loss_state() == State::Padding { self.target.min(self.pushed) } else { 0.0 }
    }

    /// The next probe cluster to send.
    pub fn next_probe(&mut self) -> Option<ProbeClusterConfig> {
        self.pending_probes.pop_front()
    }

    /// The parts, for gauges.
    pub fn parts(&self) -> (&SendSideBandwidthEstimation, &Delay, &Pushback) {
        (&self.send, &self.delay, &self.pushback)
    }

    /// The acked bitrate, if known, and whether the application sends less than allowed.
    pub fn reading(&self) -> (Option<f64>, bool) {
        (self.acknowledged, self.alr.since().is_some())
    }

    /// The share of the target left by pushback.
    pub fn pushback_ratio(&self) -> f64 {
        self.pushed / self.target
    }
}

#[cfg(test)]
mod tests;
