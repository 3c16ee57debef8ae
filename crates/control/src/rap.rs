//! RAP: additive increase and multiplicative decrease of the rate, by the gap between packets.
//!
//! Sources: R. Rejaie, M. Handley, D. Estrin, "RAP: an end-to-end rate-based congestion control mechanism for realtime
//! streams in the Internet", INFOCOM 1999; ns-2.35's `Agent/RAP`. After a round trip without a loss the gap shrinks so
//! that one more packet is sent per round trip; a loss doubles it, once for all packets then in flight. See
//! docs/controllers/rap.md.

use crate::acks::{AckController, AckEvent, AckSettings, Estimator, MAX_GAP, MIN_GAP, Pacing};
use crate::{Build, Controller, Gauges, Idle, Machine, Parameter, PathView, Profile, Scheme};
use paceline_units::{Span, Time};

/// The gap between packets, the length of a step and the timeout before the first round-trip sample (ns-2's `ipg_`,
/// `srtt_`, `timeout_`).
const FIRST: Span = Span::from_secs(2);

/// Which RAP to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RapLaw {
    /// The paper's.
    Paper,
    /// ns-2.35's: its gaps and steps have separate timers.
    Ns2,
}

impl RapLaw {
    /// The value of the parameter `law` for it.
    #[must_use]
    pub const fn code(self) -> f64 {
        self as u8 as f64
    }
}

/// A dimensionless number with the same default under every profile.
const fn plain(name: &'static str, default: f64, bounds: (f64, f64), doc: &'static str) -> Parameter {
    Parameter::number(name, [default; Profile::ALL.len()], bounds, "1", doc)
}

const WITHOUT_FINE_GRAIN: Idle = Idle::Unless("fine_grain", 1.0);

const PARAMETERS: &[Parameter] = &[
    Parameter::choice(
        "law",
        [RapLaw::Paper.code(), RapLaw::Ns2.code(), RapLaw::Ns2.code(), RapLaw::Paper.code()],
        &["paper", "ns2"],
        "whose RAP",
    ),
    plain("alpha", 1.0, (0.01, 100.0), "packets a round trip by which the rate grows in each round trip"),
    plain("beta", 0.5, (0.01, 0.99), "what a loss multiplies the rate by"),
    plain("used", 0.5, (0.0, 1.0), "the rate grows if at least this share of what it allowed was sent"),
    Parameter::switch(
        "fine_grain",
        [false; Profile::ALL.len()],
        "gaps follow the ratio of a short-term to a long-term mean of the round-trip time",
    ),
    plain("short_gain", 0.9, (0.001, 1.0), "weight of a sample in the short-term mean").idle(WITHOUT_FINE_GRAIN),
    plain("long_gain", 0.01, (0.001, 1.0), "weight of a sample in the long-term mean").idle(WITHOUT_FINE_GRAIN),
    plain("gap_jitter", 0.0, (0.0, 0.999), "gaps are multiplied by draws from 1 - this to 1 + this"),
    Parameter::number(
        "first_rtt",
        [0.0; Profile::ALL.len()],
        (0.0, 60.0),
        "s",
        "what the smoothed round-trip time begins with; 0: with the first sample",
    ),
];

/// The state.
#[derive(Clone, Debug)]
pub struct Rap {
    law: RapLaw,
    alpha: f64,
    beta: f64,
    used: f64,
    fine: Option<FineGrain>,
    gap_jitter: f64,
    first_rtt: Span,
    /// The gap between packets (IPG) in seconds.
    gap: f64,
    acked: bool,
    /// When the step ends, and packets sent since it began.
    step: Time,
    sent: u32,
    /// Losses of packets below this number belong to a cluster already responded to.
    answered: u32,
}

/// Means of the round-trip time (FRTT and XRTT), in seconds; zero before the first sample.
#[derive(Clone, Copy, Debug)]
struct FineGrain {
    short_gain: f64,
    long_gain: f64,
    short: f64,
    long: f64,
}

impl FineGrain {
    fn sample(&mut self, rtt: f64) {
        if self.long == 0.0 {
            (self.short, self.long) = (rtt, rtt);
        }
        self.short += self.short_gain * (rtt - self.short);
        self.long += self.long_gain * (rtt - self.long);
    }

    fn ratio(&self) -> f64 {
        if self.long > 0.0 { self.short / self.long } else { 1.0 }
    }
}

/// The smoothed round-trip time, or its substitute before the first sample.
fn srtt(path: &PathView) -> Span {
    if path.srtt == Span::ZERO { FIRST } else { path.srtt }
}

impl Rap {
    /// Ends a step (paper, section 2.2): IPG <- IPG SRTT / (alpha IPG + SRTT), which adds alpha packets per round trip,
    /// if enough of the allowed rate was used (ns-2's `dpthresh_`).
    fn end_step(&mut self, path: &PathView) {
        let rtt = srtt(path).as_secs_f64();
        if f64::from(self.sent) * self.gap / rtt >= self.used {
            self.set(self.gap * rtt / (self.alpha * self.gap + rtt));
        }
        self.begin_step(path);
        self.sent = 0;
    }

    fn begin_step(&mut self, path: &PathView) {
        self.step = path.now + srtt(path);
    }

    fn set(&mut self, gap: f64) {
        self.gap = gap.clamp(MIN_GAP, MAX_GAP);
    }
}

impl Build for Rap {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "rap",
        summary: "rate adaptation: additive increase, multiplicative decrease of a rate, with every packet acknowledged",
        source: "Rejaie, Handley and Estrin, INFOCOM 1999",
        machine: Machine::Acks,
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Rap {
        let fine = FineGrain { short_gain: values[5], long_gain: values[6], short: 0.0, long: 0.0 };
        Rap {
            law: if values[0] == RapLaw::Ns2.code() { RapLaw::Ns2 } else { RapLaw::Paper },
            alpha: values[1],
            beta: values[2],
            used: values[3],
            fine: (values[4] == 1.0).then_some(fine),
            gap_jitter: values[7],
            first_rtt: Span::from_secs_f64(values[8]),
            gap: FIRST.as_secs_f64(),
            acked: false,
            step: Time::NEVER,
            sent: 0,
            answered: 0,
        }
    }
}

impl Controller for Rap {
    type Feedback = AckEvent;

    fn on_feedback(&mut self, feedback: &AckEvent, path: &PathView) {
        match *feedback {
            AckEvent::Started => {
                self.begin_step(path);
                self.answered = path.next;
            }
            AckEvent::Acked { rtt, .. } => {
                if let (Some(fine), Some(rtt)) = (&mut self.fine, rtt) {
                    fine.sample(rtt.as_secs_f64());
                }
                if !self.acked {
                    self.acked = true;
                    self.set(srtt(path).as_secs_f64());
                    if self.law == RapLaw::Paper {
                        self.begin_step(path);
                    }
                }
            }
            // packets in flight at the last reduction belong to the same cluster (paper, section 2.3)
            AckEvent::Lost { newest, .. } if newest >= self.answered => {
                self.set(self.gap / self.beta);
                self.answered = path.next;
                self.begin_step(path);
            }
            AckEvent::Lost { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.seconds("gap", self.gap);
        to.number("fine_grain", self.fine.map_or(1.0, |fine| fine.ratio()));
    }
}

impl AckController for Rap {
    #[inline]
    fn on_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
    }

    fn on_timer(&mut self, path: &PathView) {
        if self.step <= path.now {
            self.end_step(path);
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        Some(self.step)
    }

    #[inline]
    fn rate(&self) -> f64 {
        let gap = self.fine.map_or(self.gap, |fine| fine.ratio() * self.gap);
        1.0 / gap.clamp(MIN_GAP, MAX_GAP)
    }

    fn settings(&self) -> AckSettings {
        AckSettings {
            // delta, mu and phi of ns-2
            estimator: Estimator {
                gain: 0.5,
                deviation_gain: 0.5,
                first_deviation: 0.0,
                srtt_factor: 1.2,
                deviation_factor: 4.0,
                min_rto: Span::ZERO,
                first_timeout: FIRST,
                first_mean: self.first_rtt,
            },
            pacing: match self.law {
                RapLaw::Paper => Pacing::Follows,
                RapLaw::Ns2 => Pacing::Timer,
            },
            gap_jitter: self.gap_jitter,
            // ns-2 forgets a packet when it times out
            late_answers: self.law == RapLaw::Paper,
        }
    }
}
