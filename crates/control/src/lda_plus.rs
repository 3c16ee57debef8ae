//! LDA+: a rate controlled by the losses and round-trip times of RTCP's reports.
//!
//! Source: D. Sisalem, A. Wolisz, "LDA+ TCP-friendly adaptation: a measurement and comparison study", NOSSDAV 2000,
//! whose equation numbers are cited. Details that it leaves open are parameters, and where its laws end (a rate beyond
//! the bottleneck's, a negative one) the rate is bounded; docs/controllers/lda-plus.md gives the reasons.

use crate::models::{PerAck, Seconds, TcpPath, Window, reno};
use crate::rtp::{MediaController, RtpEvent, RtpFeedback, RtpReport, RtpSession, RtpSettings};
use crate::tfrc::{own, own_switch, own_whole};
use crate::{Build, Controller, Gauges, Interval, Machine, Parameter, PathView, Profile, Scheme, models};
use paceline_units::{Rate, Span};

/// The highest rate of a link in a scenario: 1000 Gbit/s in bytes per second. Results of equations are limited to it.
const MAX_RATE: f64 = 1.25e11;

const PARAMETERS: [Parameter; 9] = [
    own("initial_rate", 10.0, 1e-3, 1e6, "packets/s", "r_0: the rate before the first report"),
    own("initial_increase", 5000.0, 1.0, 1e9, "bit/s", "A before the first report and after a loss"),
    own("rto", 4.0, 0.0, 1000.0, "1", "t_out of equation 1 in round-trip times"),
    own("min_rto", 0.0, 0.0, 100.0, "s", "t_out at least"),
    own("per_ack", 1.0, 1.0, 100.0, "1", "D of equation 1: packets that a TCP acknowledgement covers"),
    own("bottleneck", 0.0, 0.0, 1e12, "bit/s", "R, where it is known; 0: the receiver measures it by packet pairs"),
    own("max_rate", 0.0, 0.0, 1e12, "bit/s", "the rate at most; 0: no such limit"),
    own_switch("clamp", true, "the rate is at most R; off: the equations as printed"),
    own_whole("silence", 3.0, 0.0, 1000.0, "the rate is halved after so many intervals without a report; 0: never"),
];

/// The state. Rates are in bytes per second of packets with all headers.
#[derive(Clone, Debug)]
pub struct LdaPlus {
    initial_rate: f64,
    initial_increase: f64,
    rto: f64,
    min_rto: f64,
    per_ack: PerAck,
    max_rate: f64,
    clamp: bool,
    settings: RtpSettings,
    /// M.
    packet: f64,
    /// One packet per report interval.
    floor: f64,
    /// r.
    rate: f64,
    /// A.
    increase: f64,
    /// R.
    bottleneck: Option<f64>,
    /// tau, from the last report that had one.
    rtt: Option<Span>,
    /// Last values, for plots.
    loss: f64,
    tcp: Option<f64>,
}

impl LdaPlus {
    fn start(&mut self, session: &RtpSession) {
        self.packet = session.packet.bytes().max(1) as f64;
        self.floor = (self.packet / session.interval.as_secs_f64().max(1e-3)).min(MAX_RATE);
        self.rate = self.bounded(self.initial_rate * self.packet);
        self.increase = self.initial_increase;
    }

    /// Bounds the rate: from one packet per report to R and `max_rate`. Without clamp R is no bound.
    fn bounded(&self, rate: f64) -> f64 {
        let max = match self.bottleneck {
            Some(bottleneck) if self.clamp => self.max_rate.min(bottleneck),
            _ => self.max_rate,
        };
        rate.min(max).max(self.floor)
    }

    fn report(&mut self, report: &RtpReport) {
        let loss = report.loss.0;
        if !(0.0..=1.0).contains(&loss) {
            return;
        }
        if let Some(rtt) = report.rtt.filter(|rtt| *rtt > Span::ZERO) {
            self.rtt = Some(rtt);
        }
        if let Some(measured) = report.bottleneck.filter(|rate| self.settings.probes && rate.0 > 0) {
            self.bottleneck = Some((measured.bps() / 8.0).min(MAX_RATE));
            // R may have fallen below the rate, where the equations are not meaningful
            self.rate = self.bounded(self.rate);
        }
        self.loss = loss;
        if loss > 0.0 {
            self.reduce(loss);
        } else if report.interval == Interval::Used {
            self.grow(report.since);
        }
    }

    /// No loss: equations 4 to 10. Without R or tau they have no value, and the rate does not change.
    fn grow(&mut self, since: Span) {
        let (Some(bottleneck), Some(rtt)) = (self.bottleneck, self.rtt) else { return };
        let share = self.rate / bottleneck;
        let before = if self.clamp { self.increase.max(self.initial_increase) } else { self.increase };
        let smooth = additive(share, before);
        let convergent = convergent(share, self.rate);
        let of_tcp = of_tcp(since.as_secs_f64(), rtt.as_secs_f64()) * self.packet;
        self.increase = smooth.min(convergent).min(of_tcp).clamp(-MAX_RATE, MAX_RATE); // equation 9
        self.rate = self.bounded(self.rate + self.increase); // equation 10
    }

    /// Loss: equation 11.
    fn reduce(&mut self, loss: f64) {
        self.tcp = self.tcp_rate(loss);
        let reduced = self.rate * (1.0 - loss.sqrt());
        self.rate = self.bounded(reduced.max(self.tcp.unwrap_or(0.0)));
        self.increase = self.initial_increase;
    }

    /// r_TCP in bytes per second: equation 1; `None` before there is a round-trip time.
    fn tcp_rate(&self, loss: f64) -> Option<f64> {
        let rtt = Seconds::try_from(self.rtt?).ok()?;
        let rto = Seconds::new((rtt.get() * self.rto).max(self.min_rto).max(1e-9)).ok()?;
        let path = TcpPath { rtt, rto, per_ack: self.per_ack, limit: Window::UNLIMITED };
        let rate = reno::approximate(models::LossRate::new(loss).ok()?, &path);
        Some(rate.get() * self.packet)
    }

    /// No report for a long time: loss and round-trip time are unknown.
    fn silence(&mut self) {
        self.rate = self.bounded(self.rate / 2.0);
        self.increase = self.initial_increase;
    }
}

/// A_add of equations 4 and 5, with `share` for r / R and `before` for A_{m-1}.
fn additive(share: f64, before: f64) -> f64 {
    (2.0 - share) * before
}

/// A_exp of equation 6, with `share` for r / R.
fn convergent(share: f64, rate: f64) -> f64 {
    -libm::expm1(-(1.0 - share)) * rate
}

/// A_TCP of equation 8 in packets per second, for reports `since` seconds apart.
fn of_tcp(since: f64, rtt: f64) -> f64 {
    (since / rtt + 1.0) / (2.0 * rtt)
}

impl Build for LdaPlus {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "lda-plus",
        summary: "LDA+: additive increase, decrease by the losses that RTCP reports, at least TCP's rate",
        source: "Sisalem and Wolisz, NOSSDAV 2000",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> LdaPlus {
        let limit = |bits: f64| if bits > 0.0 { bits / 8.0 } else { MAX_RATE };
        LdaPlus {
            initial_rate: values[0],
            initial_increase: values[1] / 8.0,
            rto: values[2],
            min_rto: values[3],
            per_ack: PerAck::new(values[4]).unwrap_or(PerAck::ONE),
            bottleneck: (values[5] > 0.0).then(|| values[5] / 8.0),
            max_rate: limit(values[6]),
            clamp: values[7] == 1.0,
            settings: RtpSettings {
                probes: values[5] <= 0.0,
                silence: values[8] as u32,
                feedback: RtpFeedback::Reports,
                ..RtpSettings::default()
            },
            packet: 1.0,
            floor: 1.0,
            rate: 1.0,
            increase: values[1] / 8.0,
            rtt: None,
            loss: f64::NAN,
            tcp: None,
        }
    }
}

impl Controller for LdaPlus {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, _path: &PathView) {
        match feedback {
            RtpEvent::Started(session) => self.start(session),
            RtpEvent::Report(report) => self.report(report),
            RtpEvent::Silence => self.silence(),
            _ => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let known = |rate: Option<f64>| rate.map_or(f64::NAN, |rate| rate * 8.0);
        to.bits_per_second("allowed", self.rate * 8.0);
        to.number("reported_loss", self.loss);
        to.bits_per_second("bottleneck", known(self.bottleneck));
        to.bits_per_second("increase", self.increase * 8.0);
        to.bits_per_second("tcp_rate", known(self.tcp));
    }
}

impl MediaController for LdaPlus {
    #[inline]
    fn rate(&self) -> f64 {
        self.rate
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate((self.rate * 8.0) as u64))
    }

    fn settings(&self) -> RtpSettings {
        self.settings
    }
}

#[cfg(test)]
mod tests;
