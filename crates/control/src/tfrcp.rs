//! TFRCP: TCP's throughput equation every few seconds; the rate doubles while there are no losses.
//!
//! Source: J. Padhye, J. Kurose, D. Towsley, R. Koodli, "A model based TCP-friendly rate control protocol", NOSSDAV
//! 1999, with the equation of Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998 ([`crate::models::reno::approximate`]). The
//! sender works in rounds of fixed length and keeps its rate within a round. docs/controllers/tfrcp.md says how details
//! that the paper leaves open are decided.

use crate::acks::{AckController, AckEvent, AckSettings, Estimator, MAX_GAP, MIN_GAP, Pacing};
use crate::models::{LossRate, PerAck, Seconds, TcpPath, Window, reno};
use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Scheme};
use paceline_units::{Span, Time};

/// The gap between packets before the first round-trip sample, and the initial timeout: as RAP's, on the same machine.
const FIRST: Span = Span::from_secs(2);

/// The rate doubles only if at least this share of the allowed rate was sent: an unused rate says nothing about the
/// path.
const USED: f64 = 0.5;

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "interval",
        [2.0; Profile::ALL.len()],
        (0.1, 60.0),
        "s",
        "length of a round, M: each ends with a new rate",
    ),
    Parameter::number(
        "packets_per_ack",
        [1.0; Profile::ALL.len()],
        (1.0, 2.0),
        "1",
        "b of the equation; 2 for a TCP that delays ACKs",
    ),
    Parameter::number(
        "min_timeout",
        [1.0, 0.2, 0.2, 0.2],
        (0.0, 60.0),
        "s",
        "least timeout T_0 in the equation, as that of TCP",
    ),
    Parameter::number(
        "gap_jitter",
        [0.0; Profile::ALL.len()],
        (0.0, 0.999),
        "1",
        "gaps are multiplied by draws from 1 - this to 1 + this",
    ),
];

/// Packet counts of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    sent: u64,
    received: u64,
    lost: u64,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Tfrcp {
    interval: Span,
    per_ack: PerAck,
    min_rto: Span,
    gap_jitter: f64,
    /// Packets per second.
    rate: f64,
    acked: bool,
    began: Time,
    ends: Time,
    round: Round,
    /// The share of losses in the last round, for plots.
    p: f64,
}

impl Tfrcp {
    fn begin(&mut self, now: Time) {
        self.began = now;
        self.ends = now + self.interval;
        self.round = Round::default();
    }

    fn set(&mut self, rate: f64) {
        self.rate = rate.clamp(1.0 / MAX_GAP, 1.0 / MIN_GAP);
    }

    fn end(&mut self, path: &PathView) {
        let Round { sent, received, lost } = self.round;
        let allowed = self.rate * path.now.since(self.began).as_secs_f64();
        if lost > 0 {
            self.p = lost as f64 / (lost + received) as f64;
            self.set(self.equation(path));
        } else if received > 0 {
            self.p = 0.0;
            if sent as f64 >= USED * allowed {
                self.set(2.0 * self.rate);
            }
        }
        self.begin(path.now);
    }

    /// B(p) in packets per second; the current rate if the round-trip time is outside the equation's domain.
    fn equation(&self, path: &PathView) -> f64 {
        let rtt = if path.srtt == Span::ZERO { FIRST } else { path.srtt };
        let rto = (rtt + path.rttvar * 4).max(self.min_rto);
        let seconds = |span: Span| Seconds::new(span.as_secs_f64());
        let (Ok(p), Ok(rtt), Ok(rto)) = (LossRate::new(self.p), seconds(rtt), seconds(rto)) else { return self.rate };
        let path = TcpPath { rtt, rto, per_ack: self.per_ack, limit: Window::UNLIMITED };
        reno::approximate(p, &path).get()
    }
}

impl Build for Tfrcp {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "tfrcp",
        summary: "a rate by TCP's throughput equation, updated every few seconds, doubled without loss",
        source: "Padhye, Kurose, Towsley and Koodli, NOSSDAV 1999",
        machine: Machine::Acks,
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Tfrcp {
        Tfrcp {
            interval: Span::from_secs_f64(values[0]),
            per_ack: PerAck::new(values[1]).unwrap_or(PerAck::ONE),
            min_rto: Span::from_secs_f64(values[2]),
            gap_jitter: values[3],
            rate: 1.0 / FIRST.as_secs_f64(),
            acked: false,
            began: Time::ZERO,
            ends: Time::NEVER,
            round: Round::default(),
            p: f64::NAN,
        }
    }
}

impl Controller for Tfrcp {
    type Feedback = AckEvent;

    fn on_feedback(&mut self, feedback: &AckEvent, path: &PathView) {
        match *feedback {
            AckEvent::Started => self.begin(path.now),
            AckEvent::Acked { rtt, packets } => {
                if !self.acked && rtt.is_some() {
                    // one packet per round trip, and the first round begins
                    self.acked = true;
                    self.set(1.0 / path.srtt.as_secs_f64());
                    self.begin(path.now);
                }
                self.round.received += u64::from(packets);
            }
            AckEvent::Lost { packets, .. } => self.round.lost += u64::from(packets),
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.seconds("gap", 1.0 / self.rate);
        to.number("loss_event_rate", self.p);
    }
}

impl AckController for Tfrcp {
    #[inline]
    fn on_sent(&mut self) {
        self.round.sent += 1;
    }

    fn on_timer(&mut self, path: &PathView) {
        if self.ends <= path.now {
            self.end(path);
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        Some(self.ends)
    }

    #[inline]
    fn rate(&self) -> f64 {
        self.rate
    }

    fn settings(&self) -> AckSettings {
        AckSettings {
            // TCP's (RFC 6298 section 2)
            estimator: Estimator {
                gain: 0.125,
                deviation_gain: 0.25,
                first_deviation: 0.5,
                srtt_factor: 1.0,
                deviation_factor: 4.0,
                min_rto: self.min_rto,
                first_timeout: FIRST,
                first_mean: Span::ZERO,
            },
            pacing: Pacing::Follows,
            gap_jitter: self.gap_jitter,
            late_answers: true,
        }
    }
}
