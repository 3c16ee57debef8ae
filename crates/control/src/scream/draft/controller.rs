//! The scheme `scream`, variant `draft`.

use super::super::{Carrier, SETTINGS, variant};
use super::{Fated, Feedback, Law, Settings};
use crate::rtp::{Arrivals, Fate, MediaController, RtpEvent, RtpSettings};
use crate::tfrc::{own, own_switch};
use crate::{Build, Controller, EncoderRate, GaugeUnit, Gauges, Machine, Parameter, PathView, Profile, Scheme};
use paceline_units::{Rate, Size, Time};

const PARAMETERS: [Parameter; 18] = [
    own("min_rate", 150e3, 1e3, 1e11, "bit/s", "TARGET_BITRATE_MIN: the target at least, and at the beginning")
        .following(EncoderRate::Min),
    own("max_rate", 1.5e6, 1e3, 1e11, "bit/s", "TARGET_BITRATE_MAX: the target at most, if it is above min_rate")
        .following(EncoderRate::Max),
    own("min_window", 3000.0, 100.0, 1e7, "B", "MIN_REF_WND: the window at least, and at the beginning"),
    own("mss", 1000.0, 100.0, 65e3, "B", "MSS: the packet size that growth counts in"),
    own("loss_beta", 0.7, 0.1, 1.0, "1", "BETA_LOSS: what a loss leaves of the window"),
    own("ecn_beta", 0.8, 0.1, 1.0, "1", "BETA_ECN: what a mark leaves of it, unless l4s"),
    own("delay_target", 0.06, 1e-3, 10.0, "s", "QDELAY_TARGET_LO: queueing delay at which the window falls by half"),
    own("virtual_rtt", 0.025, 1e-3, 1.0, "s", "VIRTUAL_RTT: the least time between reactions in longer round trips"),
    own_switch("l4s", false, "IS_L4S: marks are those of a scalable queue, and packets ask for it (ECT(1))"),
    own("pacing", 1.5, 1.0, 100.0, "1", "PACKET_PACING_HEADROOM: how much faster than the target packets leave"),
    own("relaxed_pacing", 4.0, 1.0, 100.0, "1", "MAX_RELAXED_PACING_FACTOR: how much faster still near max_rate"),
    own(
        "flight_headroom",
        1.5,
        1.0,
        100.0,
        "1",
        "BYTES_IN_FLIGHT_HEAD_ROOM: the window over what was in flight, at most",
    ),
    own(
        "multiplicative_increase",
        0.02,
        0.0,
        1.0,
        "1",
        "MUL_INCREASE_FACTOR: the share the window grows a round trip by",
    ),
    own("window_headroom", 3.0, 1.5, 100.0, "1", "REF_WND_OVERHEAD_MAX: so many windows may be in flight"),
    own_switch("reduce_jitter", false, "REDUCE_JITTER: growth and headroom fall where delay varies"),
    own_switch("loss_threshold", false, "losses below 1 % without a queue are not heeded"),
    own_switch("undershoot", false, "the window falls by a quarter of it while the target is below what arrives"),
    variant(0.0),
];

/// The sender and its machine's state.
#[derive(Clone, Debug)]
pub struct Draft {
    settings: Settings,
    law: Law,
    carrier: Carrier,
    has_feedback: bool,
}

impl Draft {
    fn seconds(&self, now: Time) -> f64 {
        now.since(self.carrier.started).as_secs_f64()
    }

    fn feedback(&mut self, arrivals: &Arrivals, now: Time) {
        self.carrier.in_flight = arrivals.in_flight.bytes();
        let fated = arrivals.packets.iter().filter_map(|packet| {
            let arrival = match packet.fate {
                Fate::Arrived { at: Some(at), marked } => {
                    Some(((at.0 as i128 - i128::from(packet.sent.0)) as f64 / 1e9, marked))
                }
                Fate::Lost => None,
                Fate::Arrived { at: None, .. } | Fate::Unknown => return None,
            };
            Some(Fated { size: packet.size().bytes() as f64, arrival })
        });
        let packets: Vec<Fated> = fated.collect();
        let rtt = arrivals.rtt.map(|rtt| rtt.as_secs_f64()).filter(|&rtt| rtt > 0.0);
        let in_flight = arrivals.in_flight.bytes() as f64;
        let now = self.seconds(now);
        self.law.feedback(now, &Feedback { packets: &packets, rtt, in_flight });
        self.has_feedback = true;
    }
}

impl Build for Draft {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "scream",
        summary: "SCReAM v2 as its draft has it: a window for media, by losses, marks and delay",
        source: "draft-ietf-ccwg-rfc8298bis-screamv2",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Draft {
        let settings = Settings {
            min_rate: values[0],
            max_rate: values[1].max(values[0]),
            min_ref_wnd: values[2],
            mss: values[3],
            loss_beta: values[4],
            ecn_beta: values[5],
            delay_target: values[6],
            virtual_rtt: values[7],
            l4s: values[8] == 1.0,
            pacing: values[9],
            relaxed_pacing: values[10],
            flight_headroom: values[11],
            multiplicative_increase: values[12],
            ref_wnd_overhead_max: values[13],
            reduce_jitter: values[14] == 1.0,
            loss_threshold: values[15] == 1.0,
            undershoot: values[16] == 1.0,
            ..Settings::default()
        };
        Draft { settings, law: Law::new(settings), carrier: Carrier::NONE, has_feedback: false }
    }
}

impl Controller for Draft {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        match feedback {
            RtpEvent::Started(session) => {
                self.carrier = Carrier::start(session, path.now);
                self.law = Law::new(self.settings);
                self.has_feedback = false;
            }
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path.now),
            RtpEvent::Frame { size } => {
                let now = self.seconds(path.now);
                self.law.frame(now, u32::try_from(size.bytes()).unwrap_or(u32::MAX));
            }
            RtpEvent::Sent { packet, in_flight } => {
                self.carrier.sent(path.now, *in_flight);
                self.law.sent(packet.size.bytes() as u32, in_flight.bytes() as f64);
            }
            RtpEvent::Tick => self.carrier.tick(path.now),
            RtpEvent::Report(_) | RtpEvent::Silence => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let law = &self.law;
        to.bits_per_second("allowed", law.target);
        to.gauge("reference_window", GaugeUnit::Bytes, law.window);
        to.seconds("queueing", if self.has_feedback { law.delay } else { f64::NAN });
        to.number("alpha", if self.settings.l4s { law.alpha } else { f64::NAN });
        to.bits_per_second("pacing_rate", law.pace());
    }
}

impl MediaController for Draft {
    #[inline]
    fn rate(&self) -> f64 {
        self.law.pace() / 8.0
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate(self.law.target as u64))
    }

    fn window(&self) -> Option<Size> {
        self.carrier.window(self.law.allowed())
    }

    fn settings(&self) -> RtpSettings {
        RtpSettings { l4s: self.settings.l4s, ..SETTINGS }
    }
}
