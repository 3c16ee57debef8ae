//! Google congestion control as in libwebrtc: a rate for calls from delay growth, losses and probes.
//!
//! Source: libwebrtc (BSD-3) as of January 2026, modules/congestion_controller/goog_cc and
//! modules/remote_bitrate_estimator/aimd_rate_control.cc. The code is the authority; draft-ietf-rmcat-gcc-02 (2016) has
//! neither its loss-based part nor its probes. Each part is a separate file that names its source; the tests use the
//! cases and numbers of libwebrtc's unit tests. docs/controllers/gcc.md lists omissions and differences. Start with
//! `network`, which combines the parts. Rates are in bits per second, with all headers.

mod aimd;
mod alr;
mod delay;
mod inter_arrival;
mod link_capacity;
mod loss;
mod network;
mod probe;
mod probe_estimate;
mod pushback;
mod send_side;
mod throughput;
mod trendline;

use crate::coupled::CoupledRate;
use crate::rtp::{
    self, Arrivals, Fate, FeedbackConfig, FeedbackFormat, MediaController, Probe, RtpEvent, RtpFeedback, RtpSettings,
};
use crate::tfrc::{own, own_switch};
use crate::{Build, Controller, EncoderRate, Gauges, Machine, Parameter, PathView, Profile, Scheme, known};
use loss::State;
use network::{NetworkController, Options};
use paceline_units::{Rate, Size, Span, Time};
use probe_estimate::Cluster;
use std::collections::VecDeque;
use trendline::Usage;

/// The minimum rate: kCongestionControllerMinBitrate.
const MIN_BITRATE: f64 = 5e3;
/// The process interval: GoogCcNetworkControllerFactory::GetProcessInterval.
const PROCESS: Span = Span::from_millis(25);
/// The pacer may burst what the rate sends in this time: PacingController::kDefaultBurstInterval.
const BURST: Span = Span::from_millis(40);
/// libwebrtc's receiver: transport-wide feedback that uses 5 % of the allowed rate
/// (transport_sequence_number_feedback_generator.cc).
const FEEDBACK: FeedbackConfig =
    FeedbackConfig { format: FeedbackFormat::Transport, share: Some(0.05), ..FeedbackConfig::PLAIN };
/// Precision of departure times in libwebrtc (SentPacketInfo::send_time_ms).
const PRECISION: u64 = Span::from_millis(1).0;
/// A maximum that means no limit: kDefaultMaxBitrate.
const UNGIVEN: f64 = 1e9;
/// Clusters remembered; feedback on older ones is too late to count.
const CLUSTERS: usize = 64;

const PARAMETERS: [Parameter; 10] = [
    own("start_rate", 300e3, 5e3, UNGIVEN, "bit/s", "the rate at the beginning; probes begin at 3 and 6 times it"),
    own("min_rate", 30e3, 5e3, UNGIVEN, "bit/s", "the rate at least"),
    own("max_rate", UNGIVEN, 5e3, UNGIVEN, "bit/s", "the rate at most; 1 Gbit/s: none, and probes up to 5 Mbit/s"),
    own(
        "allocated_rate",
        0.0,
        0.0,
        UNGIVEN,
        "bit/s",
        "what the streams can use: probes go to twice it at most; 0: unknown",
    )
    .following(EncoderRate::Max),
    own("pacing_factor", 1.1, 1.0, 10.0, "1", "packets leave at this multiple of the rate"),
    own_switch("loss", true, "losses lower the rate (loss-based estimate, version 2)"),
    own_switch("probing", true, "clusters of packets probe for more"),
    own_switch("alr_probing", false, "they do while the application sends less than it may, as for a screen"),
    own_switch("padding", true, "padding fills the rate while it grows after losses"),
    own_switch("pushback", true, "the encoder gets less while more is in flight than the congestion window"),
];

/// A packet that feedback reports on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct PacketResult {
    /// When it was sent.
    sent: Time,
    /// When it arrived, by the receiver's clock; `None` if it is lost.
    arrived: Option<Time>,
    /// Its size in bytes.
    size: f64,
    /// The probe cluster that it belongs to.
    cluster: Option<Cluster>,
}

impl PacketResult {
    /// A packet that is not part of a probe.
    fn new(sent: Time, arrived: Option<Time>, size: f64) -> PacketResult {
        PacketResult { sent, arrived, size, cluster: None }
    }
}

/// From `earlier` to `later` in nanoseconds; negative if the order is reversed.
fn nanos(later: Time, earlier: Time) -> i64 {
    later.0.wrapping_sub(earlier.0) as i64
}

/// The same in milliseconds.
fn millis(later: Time, earlier: Time) -> f64 {
    nanos(later, earlier) as f64 / 1e6
}

/// The state.
#[derive(Clone, Debug)]
pub struct Gcc {
    network: NetworkController,
    /// Probe clusters that have been requested.
    clusters: VecDeque<Cluster>,
}

impl Gcc {
    fn feedback(&mut self, arrivals: &Arrivals, now: Time) {
        if let Some(rtt) = arrivals.rtt {
            self.network.rtt(rtt);
        }
        let results: Vec<PacketResult> =
            arrivals.packets.iter().filter_map(|packet| self.packet_result(packet)).collect();
        self.network.feedback(&results, arrivals.in_flight.bytes() as f64, now);
    }

    /// `None` if the packet's fate is unknown, or its arrival time was not reported.
    fn packet_result(&self, packet: &rtp::PacketResult) -> Option<PacketResult> {
        let arrived = match packet.fate {
            Fate::Arrived { at, .. } => Some(at?),
            Fate::Lost => None,
            Fate::Unknown => return None,
        };
        let cluster = packet.packet.probe.and_then(|id| self.clusters.iter().find(|cluster| cluster.id == id).copied());
        let sent = Time(packet.sent.0 / PRECISION * PRECISION);
        Some(PacketResult { cluster, ..PacketResult::new(sent, arrived, packet.size().bytes() as f64) })
    }
}

impl Build for Gcc {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "gcc",
        summary: "Google congestion control: WebRTC's, from the delay's trend, losses and probes",
        source: "libwebrtc, January 2026; draft-ietf-rmcat-gcc-02",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Gcc {
        let min_bitrate = values[1];
        let max_bitrate = if values[2] < UNGIVEN { values[2].max(min_bitrate) } else { f64::INFINITY };
        let on = |i: usize| values[i] == 1.0;
        let options = Options {
            start: values[0].clamp(min_bitrate, max_bitrate),
            min_bitrate,
            max_bitrate,
            allocated: values[3],
            pacing: values[4],
            loss: on(5),
            probing: on(6),
            alr_probing: on(7),
            padding: on(8),
            pushback: on(9),
        };
        Gcc { network: NetworkController::new(options), clusters: VecDeque::new() }
    }
}

impl Controller for Gcc {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        match feedback {
            RtpEvent::Started(_) => self.network.start(path.now),
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path.now),
            RtpEvent::Sent { packet, in_flight } => {
                self.network.sent(packet.size.bytes() as f64, in_flight.bytes() as f64, path.now);
            }
            RtpEvent::Tick => self.network.process(path.now),
            RtpEvent::Frame { .. } | RtpEvent::Report(_) | RtpEvent::Silence => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let (send, delay, pushback) = self.network.parts();
        let (throughput, alr) = self.network.reading();
        let (trend, threshold) = delay.reading();
        let (average_loss, inherent_loss) = send.loss().reading();
        to.bits_per_second("allowed", self.network.target());
        to.bits_per_second("delay_based", known(send.delay_based()));
        to.bits_per_second("loss_based", if send.loss().ready() { known(send.loss().result().0) } else { f64::NAN });
        to.bits_per_second("throughput", throughput.unwrap_or(f64::NAN));
        to.seconds("trend", trend / 1e3);
        to.seconds("threshold", threshold / 1e3);
        to.number(
            "overuse",
            match delay.usage() {
                Usage::Normal => 0.0,
                Usage::Over => 1.0,
                Usage::Under => -1.0,
            },
        );
        to.number("average_loss", average_loss);
        to.number("inherent_loss", inherent_loss);
        to.number("loss_limited", f64::from(u8::from(send.loss_state() != State::Delay)));
        to.number("application_limited", f64::from(u8::from(alr)));
        to.number("pushback", self.network.pushback_ratio());
        to.gauge("window", crate::GaugeUnit::Bytes, pushback.window().unwrap_or(f64::NAN));
    }
}

impl MediaController for Gcc {
    #[inline]
    fn rate(&self) -> f64 {
        self.network.pacing() / 8.0
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate(self.network.encoding() as u64))
    }

    fn padding_rate(&self) -> f64 {
        self.network.padding() / 8.0
    }

    fn next_probe(&mut self) -> Option<Probe> {
        let probe = self.network.next_probe()?;
        self.clusters.push_back(Cluster { id: probe.id, packets: probe.packets, bytes: probe.bytes });
        if self.clusters.len() > CLUSTERS {
            self.clusters.pop_front();
        }
        let bytes = Size::from_bytes(probe.bytes as u64);
        Some(Probe { id: probe.id, rate: Rate(probe.rate as u64), bytes, packets: probe.packets })
    }

    /// Appendix A of RFC 8699: A_hat.
    fn coupled(&self) -> Option<CoupledRate> {
        Some(CoupledRate { calculated: self.network.target(), max_rate: self.network.max_bitrate() })
    }

    fn share(&mut self, rate: Rate, now: Time) {
        self.network.share(rate.bps(), now);
    }

    fn settings(&self) -> RtpSettings {
        RtpSettings {
            feedback: RtpFeedback::Arrivals,
            feedback_config: FEEDBACK,
            report_sent: true,
            tick: PROCESS,
            burst: BURST,
            even: true,
            ..RtpSettings::default()
        }
    }
}

#[cfg(test)]
mod tests;
