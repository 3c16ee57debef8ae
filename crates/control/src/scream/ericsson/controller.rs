//! The scheme `scream`, variant `ericsson`.

use super::super::{Carrier, SETTINGS, UNPACED, between, variant};
use super::{AckedPacket, Faults, Law, SECOND, Settings};
use crate::rtp::{Arrivals, Fate, MediaController, RtpEvent, RtpSettings};
use crate::tfrc::{own, own_switch};
use crate::{Build, Controller, EncoderRate, GaugeUnit, Gauges, Machine, Parameter, PathView, Profile, Scheme, known};
use paceline_units::{Rate, Size, Span, Time};

const PARAMETERS: [Parameter; 23] = [
    own("min_rate", 150e3, 1e3, 1e11, "bit/s", "the target at least").following(EncoderRate::Min),
    own(
        "start_rate",
        150e3,
        1e3,
        1e11,
        "bit/s",
        "the first frame's target; the first window is what it sends in 0.1 s",
    ),
    own("max_rate", 1.5e6, 1e3, 1e11, "bit/s", "the target at most, if it is above min_rate")
        .following(EncoderRate::Max),
    own("min_window", 2400.0, 0.0, 1e7, "B", "cwndMinLow: the window at least, and two packets"),
    own("loss_beta", 0.7, 0.1, 1.0, "1", "what a loss leaves of the window; 1: losses are not heeded"),
    own("ecn_beta", 0.8, 0.1, 1.0, "1", "what a mark leaves of it, unless l4s"),
    own(
        "delay_target",
        0.06,
        1e-3,
        10.0,
        "s",
        "queueing delay at which the window falls by half; it begins at half of that",
    ),
    own_switch("l4s", false, "marks are those of a scalable queue, and packets ask for it (ECT(1))"),
    own("pacing", 1.5, 1.0, 100.0, "1", "how much faster than the target packets leave"),
    own("adaptive_pacing", 1.5, 1.0, 100.0, "1", "how much faster still those of a large frame do, at most"),
    own("flight_headroom", 2.0, 1.0, 100.0, "1", "the window grows up to so many times what was in flight"),
    own(
        "multiplicative_increase",
        0.05,
        0.0,
        1.0,
        "1",
        "the share of itself that the window grows a round trip by, at most",
    ),
    own(
        "window_headroom",
        3.0,
        1.5,
        100.0,
        "1",
        "so many windows may be in flight while delay does not vary; 1.5 if it does",
    ),
    own_switch("relaxed_pacing", false, "up to five times faster above 0.8 of max_rate"),
    own_switch("policer", false, "losses above 10 % without delay bound the window"),
    own("clock", 0.001, 0.0, 65535.0, "s", "the sender's clock at the start, from which the first growth counts"),
    own("discard_after", 0.2, 0.001, 1000.0, "s", "all that waits is thrown away once the oldest has waited longer"),
    own_switch("window_overflow", false, "fault: that bound, never applied, overflows after 3068 reactions"),
    own_switch("rtt_clamp", true, "fault: the target takes no round trip to be longer than 0.2 s"),
    own_switch("divided_twice", true, "fault: what delay takes of the window is divided twice by a long round trip"),
    own_switch("shared_reaction", true, "fault: a loss is not heeded within a round trip of a mark or of delay"),
    own_switch("media_time", true, "fault: what is lost is found late, by the time between frames too"),
    variant(1.0),
];

/// The sender and its machine's state.
#[derive(Clone, Debug)]
pub struct Ericsson {
    settings: Settings,
    clock: u32,
    law: Law,
    carrier: Carrier,
    /// Whether feedback has arrived.
    has_feedback: bool,
    /// Whether the encoder's rate is half the target.
    halved: bool,
}

impl Ericsson {
    /// The sender's clock in ticks; the receiver's clock has the same offset.
    fn ticks(&self, time: Time) -> u32 {
        (between(self.carrier.started, time, i128::from(SECOND)) as u32).wrapping_add(self.clock)
    }

    fn feedback(&mut self, arrivals: &Arrivals, now: Time) {
        self.carrier.in_flight = arrivals.in_flight.bytes();
        let arrived = arrivals.packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived { at: Some(at), marked } => {
                Some(AckedPacket { number: packet.packet.number, at: self.ticks(at), marked })
            }
            _ => None,
        });
        let acked: Vec<AckedPacket> = arrived.collect();
        if acked.is_empty() {
            return;
        }
        // each of the receiver's reports covers 32 packets, including old ones
        let overlaps = self.has_feedback && acked.len() < REPORTS;
        self.law.feedback(self.ticks(now), &acked, overlaps);
        self.has_feedback = true;
    }
}

/// How often the reference's programs check for due work; this ends the periods over which rates are measured. With 10
/// ms, two flows whose capacity falls to a quarter queue longer, also in the reference's own loop.
const TICK: Span = Span::from_millis(1);
/// Number of packets in a report of the reference's receiver.
const REPORTS: usize = 32;

impl Build for Ericsson {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "scream-ericsson",
        summary: "SCReAM v2 as its authors' code has it: a window for media, by losses, marks and delay",
        source: "EricssonResearch/scream; draft-ietf-ccwg-rfc8298bis-screamv2",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Ericsson {
        let [min, start, max, min_ref_wnd, loss, ecn, delay_target] = std::array::from_fn(|i| values[i] as f32);
        let [pacing, adaptive_pacing, flight_headroom, increase, window_headroom] =
            std::array::from_fn(|i| values[8 + i] as f32);
        let on = |i: usize| values[i] == 1.0;
        let settings = Settings {
            window: (values[1] * 0.1 / 8.0) as i32,
            min_ref_wnd: min_ref_wnd as i32,
            min_rate: min,
            start_rate: start,
            max_rate: max.max(min),
            loss_beta: loss,
            ecn_beta: ecn,
            delay_target,
            pacing,
            adaptive_pacing,
            flight_headroom,
            multiplicative_increase: increase,
            window_headroom,
            discard_after: values[16] as f32,
            l4s: on(7),
            relaxed_pacing: on(13),
            policer: on(14),
            faults: Faults {
                overflow: on(17),
                rtt_clamp: on(18),
                divided_twice: on(19),
                shared_reaction: on(20),
                media_time: on(21),
            },
        };
        let clock = (values[15] * f64::from(SECOND)) as u32;
        let law = Law::new(settings);
        Ericsson { settings, clock, law, carrier: Carrier::NONE, has_feedback: false, halved: false }
    }
}

impl Controller for Ericsson {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        let now = self.ticks(path.now);
        match feedback {
            RtpEvent::Started(session) => {
                self.carrier = Carrier::start(session, path.now);
                self.law = Law::new(self.settings);
                (self.has_feedback, self.halved) = (false, false);
            }
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path.now),
            RtpEvent::Frame { size } => {
                self.halved = self.law.encoder_rate(now) < self.law.target();
                let (packet, bytes) = (self.carrier.packet, u32::try_from(size.bytes()).unwrap_or(u32::MAX));
                let rest = (bytes % packet > 0).then_some(bytes % packet);
                self.law.frame(now, std::iter::repeat_n(packet, (bytes / packet) as usize).chain(rest));
            }
            RtpEvent::Sent { packet, in_flight } => {
                self.carrier.sent(path.now, *in_flight);
                self.law.poll(now);
                self.law.sent(now, packet.number, packet.size.bytes() as u32, packet.ends_frame);
            }
            RtpEvent::Tick => {
                self.carrier.tick(path.now);
                self.law.poll(now);
            }
            RtpEvent::Report(_) | RtpEvent::Silence => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let law = &self.law;
        to.bits_per_second("allowed", law.target().into());
        to.gauge("reference_window", GaugeUnit::Bytes, law.window.into());
        to.seconds("queueing", if self.has_feedback { law.delay.into() } else { f64::NAN });
        to.number("alpha", if self.settings.l4s { law.alpha.into() } else { f64::NAN });
        to.number("loss_rate", if self.has_feedback { law.loss_rate.into() } else { f64::NAN });
        to.number("headroom", law.headroom.into());
        let pace = f64::from(self.law.pace);
        to.bits_per_second("pacing_rate", known(8.0 * f64::from(self.law.mss()) / pace));
    }
}

impl MediaController for Ericsson {
    /// One full packet per pacing interval, in whole ticks as in the reference.
    #[inline]
    fn rate(&self) -> f64 {
        match (self.law.pace * SECOND as f32) as u32 {
            0 => UNPACED,
            ticks => f64::from(self.carrier.packet) * f64::from(SECOND) / f64::from(ticks),
        }
    }

    fn target(&self) -> Option<Rate> {
        let rate = if self.halved { self.law.target() / 2.0 } else { self.law.target() };
        Some(Rate(rate as u64))
    }

    /// After a stall, the law may count less in flight than the machine.
    fn window(&self) -> Option<Size> {
        let beyond = self.carrier.in_flight as f64 - f64::from(self.law.in_flight());
        self.carrier.window(f64::from(self.law.allowed()) + beyond)
    }

    fn discards(&mut self) -> bool {
        self.law.take_discard()
    }

    fn settings(&self) -> RtpSettings {
        RtpSettings { reordering: 0, tick: TICK, discards: true, l4s: self.settings.l4s, by_packet: true, ..SETTINGS }
    }
}
