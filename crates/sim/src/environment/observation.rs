//! The observation of a step, from the controller's events or the sender's counters, and its row of numbers.

use super::baseline::Counts;
use crate::build::Built;
use crate::report::Before;
use crate::run::{Ends, ends, summary_of};
use crate::summary::Summary;
use paceline_control::monitor_interval::Monitored;
use paceline_control::{Failure, Fate, Interval, MediaController, PathView, RtpController, RtpEvent, WindowController};
use paceline_flow::{Sender, SenderStats};
use paceline_scenario::model::Model;
use paceline_units::{Rate, Span, Time};

/// Names of a step's features, in order.
pub const FEATURES: [&str; 21] = [
    "time_s",
    "duration_s",
    "acked_bytes",
    "lost_bytes",
    "sent_bytes",
    "marked_segments",
    "timeouts",
    "rtt_s",
    "rtt_least_s",
    "rtt_most_s",
    "srtt_s",
    "rtt_min_s",
    "in_flight_segments",
    "window_segments",
    "rate_bps",
    "app_limited",
    "segment_bytes",
    "begun",
    "one_way_queueing_s",
    "sender_queue_s",
    "encoder_bps",
];

/// One step's features; NaN means unknown.
pub type Features = [f64; FEATURES.len()];

/// What has been observed since the last step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observation {
    pub(super) interval: Monitored,
    pub(super) one_way: OneWay,
    pub(super) srtt: Span,
    pub(super) min_rtt: Span,
    pub(super) in_flight: u32,
    pub(super) segment: u32,
    pub(super) begun: bool,
    /// Bytes at which accounting stops: a step by acknowledgements ends there.
    pub(super) full: Option<u64>,
}

/// One-way delays between two clocks of unknown offset: only their differences mean anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OneWay {
    /// Of the step: their count, and their sum in nanoseconds.
    many: u32,
    sum: i64,
    /// Minimum over the run.
    min_delay: Option<i64>,
}

impl OneWay {
    fn add(&mut self, sent: Time, arrived: Time) {
        let delay = arrived.0 as i64 - sent.0 as i64;
        self.many += 1;
        self.sum += delay;
        self.min_delay = Some(self.min_delay.map_or(delay, |min| min.min(delay)));
    }

    /// The step's mean above the run's minimum, in seconds; `None` without a packet.
    fn queueing_delay(&self) -> Option<f64> {
        let min = self.min_delay.filter(|_| self.many > 0)?;
        Some((self.sum as f64 / f64::from(self.many) - min as f64) * 1e-9)
    }
}

impl Observation {
    /// Begins another step.
    pub(super) fn begin_step(&mut self) {
        self.interval = Monitored::default();
        self.one_way = OneWay { min_delay: self.one_way.min_delay, ..OneWay::default() };
    }

    pub(super) fn set_path_state(&mut self, path: &PathView) {
        (self.srtt, self.min_rtt, self.in_flight, self.segment) =
            (path.srtt, path.min_rtt, path.in_flight, path.segment);
    }

    /// Accounts for an event of RTP's machine.
    pub(super) fn on_rtp_event(&mut self, event: &RtpEvent, path: &PathView) {
        match event {
            RtpEvent::Started(_) => self.begun = true,
            RtpEvent::Arrivals(arrivals) => {
                for packet in &arrivals.packets {
                    let payload = packet.packet.payload.bytes();
                    match packet.fate {
                        Fate::Arrived { at, marked } => {
                            self.interval.acked += payload;
                            self.interval.marked += u32::from(marked);
                            at.into_iter().for_each(|at| self.one_way.add(packet.sent, at));
                        }
                        Fate::Lost => self.interval.lost += payload,
                        Fate::Unknown => {}
                    }
                }
                arrivals.rtt.into_iter().for_each(|rtt| self.interval.add_rtt(rtt));
                self.interval.app_limited |= arrivals.interval == Interval::DataLimited;
            }
            RtpEvent::Silence => self.interval.timeouts += 1,
            RtpEvent::Report(_) | RtpEvent::Tick | RtpEvent::Frame { .. } | RtpEvent::Sent { .. } => {}
        }
        self.set_path_state(path);
    }
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) model: Model,
    pub(super) built: Built,
    pub(super) flow: usize,
    /// When the last step ended.
    pub(super) at: Time,
    /// Payload bytes sent by then.
    pub(super) sent: u64,
    /// The sender's counters at that time, for a controller whose events are not intercepted.
    pub(super) counts: Option<Counts>,
    /// All counters at the end of the warm-up, once that is over.
    before: Option<Before>,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// The observation.
    pub features: Features,
    /// Whether the flow has sent all its data.
    pub is_done: bool,
    /// Whether the scenario's duration is over.
    pub is_over: bool,
}

impl Running {
    pub(super) fn new(model: Model, built: Built, flow: usize) -> Running {
        Running { model, built, flow, at: Time::ZERO, sent: 0, counts: None, before: None }
    }

    pub(super) fn end(&self) -> Time {
        Time::ZERO + self.model.duration
    }

    pub(super) fn advance(&mut self, to: Time) -> Result<(), Failure> {
        let warm = Time::ZERO + self.model.warmup;
        if self.before.is_none() && to >= warm {
            Failure::caught(|| self.built.engine.run(warm))?;
            self.before = Some(Before::take(&self.model, &mut self.built, warm));
        }
        Failure::caught(|| self.built.engine.run(to))?;
        self.at = to;
        Ok(())
    }

    pub(super) fn ends(&self) -> Ends<'_> {
        ends(&self.model, &self.built, self.flow)
    }

    /// Payload bytes sent; on TCP, each segment counts as a full one.
    pub(super) fn sent_so_far(&self) -> u64 {
        let sender = &self.ends().source.sender;
        let stats: &SenderStats = sender.stats();
        match sender {
            Sender::Tcp(_) => stats.packets_sent * u64::from(self.model.flows[self.flow].transport.segment()),
            _ => stats.bytes_acked, // sent bytes, since this machine retransmits nothing
        }
    }

    /// The run's summary; `None` before the end of its warm-up.
    pub(super) fn finish(mut self) -> Option<Summary> {
        let before = self.before.take()?;
        Some(summary_of(&self.model, &mut self.built, &before, self.at))
    }

    /// The step from `began` to now; `set` is the agent's setting, a window in segments and a rate in bytes/s.
    pub(super) fn stepped(&self, began: Time, observation: &Observation, set: Option<(f64, f64)>) -> Stepped {
        let known = |span: Span| if matches!(span, Span::ZERO | Span::MAX) { f64::NAN } else { span.as_secs_f64() };
        let optional = |span: Option<Span>| span.map_or(f64::NAN, Span::as_secs_f64);
        let (interval, source) = (&observation.interval, self.ends().source);
        let (window, rate) = match &source.sender {
            Sender::Tcp(tcp) => set.unwrap_or_else(|| (tcp.controller().window(), tcp.controller().pacing_rate())),
            Sender::Rtp(rtp) => (rtp.window(), set.map_or_else(|| target_rate(rtp.controller()), |(_, rate)| rate)),
            _ => (f64::NAN, f64::NAN),
        };
        let encoder = source.encoder_rate();
        Stepped {
            features: [
                self.at.since(Time::ZERO).as_secs_f64(),
                self.at.since(began).as_secs_f64(),
                interval.acked as f64,
                interval.lost as f64,
                (self.sent_so_far() - self.sent) as f64,
                f64::from(interval.marked),
                f64::from(interval.timeouts),
                interval.rtt().unwrap_or(f64::NAN),
                optional(interval.min_rtt),
                optional(interval.max_rtt),
                known(observation.srtt),
                known(observation.min_rtt),
                f64::from(observation.in_flight),
                window,
                rate * 8.0,
                f64::from(u8::from(interval.app_limited)),
                f64::from(observation.segment),
                f64::from(u8::from(observation.begun)),
                observation.one_way.queueing_delay().unwrap_or(f64::NAN),
                encoder.map_or(f64::NAN, |_| source.sender.queueing().as_secs_f64()),
                encoder.map_or(f64::NAN, Rate::bps),
            ],
            is_done: source.is_done(),
            is_over: self.at >= self.end(),
        }
    }
}

/// The encoder's target rate, or else the sending rate, in bytes/s on the wire.
fn target_rate(controller: &RtpController) -> f64 {
    controller.target().map_or_else(|| controller.rate(), |target| target.bps() / 8.0)
}
