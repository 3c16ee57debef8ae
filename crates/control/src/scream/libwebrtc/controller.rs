//! The scheme `scream`, variant `libwebrtc`.

use super::super::{Carrier, SETTINGS, between, variant};
use super::{Arrival, Fated, Feedback, Law, Settings};
use crate::rtp::{Arrivals, Fate, FeedbackConfig, MediaController, RtpEvent, RtpSettings};
use crate::tfrc::{own, own_switch};
use crate::{Build, Controller, EncoderRate, GaugeUnit, Gauges, Machine, Parameter, PathView, Profile, Scheme};
use paceline_units::{Rate, Size, Span, Time};

const PARAMETERS: [Parameter; 14] = [
    own("min_rate", 30e3, 1e3, 1e11, "bit/s", "the target at least").following(EncoderRate::Min),
    own("start_rate", 300e3, 1e3, 1e11, "bit/s", "the target before the first feedback, and the first window"),
    own("max_rate", 1.5e6, 1e3, 1e11, "bit/s", "the target at most, if it is above min_rate")
        .following(EncoderRate::Max),
    own("min_window", 1000.0, 100.0, 1e7, "B", "MinRefWindow: what growth lifts the window to at least"),
    own("mss", 1280.0, 100.0, 65e3, "B", "MaxSegmentSize: the packet size that growth counts in"),
    own("loss_beta", 0.7, 0.1, 1.0, "1", "BetaLoss: what losses leave of the window"),
    own("delay_target", 0.06, 1e-3, 10.0, "s", "QDelayTarget: queueing delay at which the window falls by half"),
    own("virtual_rtt", 0.025, 1e-3, 1.0, "s", "VirtualRtt: the least time between reactions in longer round trips"),
    own("pacing", 1.1, 1.0, 100.0, "1", "PacingFactor: how much faster than the target packets leave"),
    own("flight_headroom", 1.1, 1.0, 100.0, "1", "BytesInFlightHeadRoom: the window over what was in flight, at most"),
    own("multiplicative_increase", 0.02, 0.0, 1.0, "1", "MultiplicativeIncreaseFactor: the share the window grows by"),
    own("window_headroom", 3.0, 1.5, 100.0, "1", "RefWinMax: so many windows may be in flight while queues drain"),
    own_switch("padding", true, "three of six seconds are filled up to the target, unless the window has just fallen"),
    variant(2.0),
];

/// Padding: duration, duration of pauses, and wait after the window was reduced, in microseconds.
const PADDING: i64 = 3_000_000;
const NO_PADDING: i64 = 3_000_000;
const AFTER_FALL: i64 = 1_000_000;

/// The sender and its machine's state.
#[derive(Clone, Debug)]
pub struct Libwebrtc {
    settings: Settings,
    padding: bool,
    law: Law,
    carrier: Carrier,
    /// Whether padding is sent now, and when the last padding ends.
    pads: bool,
    padded_until: Option<i64>,
}

impl Libwebrtc {
    fn micros(&self, time: Time) -> i64 {
        between(self.carrier.started, time, 1_000_000) as i64
    }

    fn feedback(&mut self, arrivals: &Arrivals, now: Time) {
        self.carrier.in_flight = arrivals.in_flight.bytes();
        let mut last = None;
        let fated = arrivals.packets.iter().filter_map(|packet| {
            let arrival = match packet.fate {
                Fate::Arrived { at: Some(at), marked } => {
                    last = Some(packet.sent);
                    Some(Arrival { sent: self.micros(packet.sent), at: self.micros(at), marked })
                }
                Fate::Lost => None,
                Fate::Arrived { at: None, .. } | Fate::Unknown => return None,
            };
            Some(Fated { size: packet.size().bytes() as i64, arrival })
        });
        let packets: Vec<Fated> = fated.collect();
        // the part of the time since the last packet's sending that is not its round trip is the receiver's wait
        let held = last
            .zip(arrivals.rtt)
            .map_or(0, |(sent, rtt)| (between(sent, now, 1_000_000) as i64 - (rtt.0 / 1000) as i64).max(0));
        let in_flight = arrivals.in_flight.bytes() as i64;
        let now = self.micros(now);
        self.law.feedback(now, &Feedback { packets: &packets, held, in_flight });
        self.pad(now);
    }

    /// Decides whether to send padding now.
    fn pad(&mut self, now: i64) {
        self.pads = false;
        if self.law.fell.is_none_or(|fell| now - fell > AFTER_FALL) {
            self.pads = self.padded_until.is_some_and(|until| now < until);
            if !self.pads && self.padded_until.is_none_or(|until| now - until >= NO_PADDING) {
                self.padded_until = Some(now + PADDING);
                self.pads = true;
            }
        } else if self.padded_until.is_some_and(|until| now < until) {
            self.padded_until = Some(now);
        }
    }
}

impl Build for Libwebrtc {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "scream-libwebrtc",
        summary: "SCReAM v2 as libwebrtc has it: a window for media, by losses, marks and delay",
        source: "libwebrtc; draft-ietf-ccwg-rfc8298bis-screamv2",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Libwebrtc {
        let settings = Settings {
            min_rate: values[0] as i64,
            start_rate: values[1] as i64,
            max_rate: values[2].max(values[0]) as i64,
            min_ref_window: values[3] as i64,
            mss: values[4] as i64,
            loss_beta: values[5],
            delay_target: (values[6] * 1e6) as i64,
            virtual_rtt: (values[7] * 1e6) as i64,
            pacing: values[8],
            flight_headroom: values[9],
            multiplicative_increase: values[10],
            ref_window_overhead_max: values[11],
            ..Settings::default()
        };
        let padding = values[12] == 1.0;
        let law = Law::new(settings);
        Libwebrtc { settings, padding, law, carrier: Carrier::NONE, pads: false, padded_until: None }
    }
}

impl Controller for Libwebrtc {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        match feedback {
            RtpEvent::Started(session) => {
                self.carrier = Carrier::start(session, path.now);
                self.law = Law::new(self.settings);
                self.padded_until = None;
                self.pad(0);
            }
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path.now),
            RtpEvent::Sent { in_flight, .. } => {
                self.carrier.sent(path.now, *in_flight);
                self.law.sent(in_flight.bytes() as i64);
            }
            RtpEvent::Tick => {
                self.carrier.tick(path.now);
                self.pad(self.micros(path.now));
            }
            RtpEvent::Frame { .. } | RtpEvent::Report(_) | RtpEvent::Silence => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let law = &self.law;
        to.bits_per_second("allowed", law.target() as f64);
        to.gauge("reference_window", GaugeUnit::Bytes, law.window as f64);
        to.seconds("queueing", law.delays().1.map_or(f64::NAN, |delay| delay as f64 / 1e6));
        to.number("alpha", law.alpha);
        to.bits_per_second("pacing_rate", law.pace() as f64);
    }
}

impl MediaController for Libwebrtc {
    #[inline]
    fn rate(&self) -> f64 {
        self.law.pace().max(1000) as f64 / 8.0
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate(self.law.target().max(0) as u64))
    }

    fn window(&self) -> Option<Size> {
        self.carrier.window(self.law.allowed() as f64)
    }

    fn padding_rate(&self) -> f64 {
        let target = self.law.target();
        if self.padding && self.pads && target < self.settings.max_rate { target as f64 / 8.0 } else { 0.0 }
    }

    fn settings(&self) -> RtpSettings {
        // a frame's end, or 25 ms after the first packet (congestion_control_feedback_generator.cc)
        let feedback_config = FeedbackConfig { frames: true, ..FeedbackConfig::PLAIN };
        let feedback_interval = Span::from_millis(25);
        RtpSettings { reordering: 0, l4s: true, feedback_interval, feedback_config, ..SETTINGS }
    }
}
