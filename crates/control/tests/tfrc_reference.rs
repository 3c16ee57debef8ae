//! TFRC's controller against RFC 5348 sections 4.2 to 4.4 written down word for word, step for step, under any reports;
//! and what must hold whatever comes.

use paceline_control::models::{LossRate, PacketSize, Seconds, Tfrc, TfrcPath};
use paceline_control::registry::scheme;
use paceline_control::{Controller, Interval, Law, PathView, Profile, RateController};
use paceline_control::{TfrcController, TfrcEvent, TfrcReport};
use paceline_units::{Span, Time};
use proptest::prelude::*;

const S: f64 = 1000.0;
const T_MBI: f64 = 64.0;

fn controller(scheme_name: &str, law: Law) -> TfrcController {
    TfrcController::new(scheme(scheme_name).unwrap(), Profile::Rfc, &[("law", law.code())]).unwrap()
}

fn path(now: Time, srtt: Span) -> PathView {
    PathView {
        now,
        srtt,
        rttvar: Span::ZERO,
        min_rtt: srtt,
        in_flight: 0,
        acked: 0,
        next: 0,
        receive_window: 0,
        segment: S as u32,
    }
}

/// The RFC's pseudocode, with times in seconds.
struct Rfc5348 {
    x: f64,
    tld: Option<f64>,
    x_recv_set: Vec<(f64, f64)>,
    p: f64,
    x_bps: f64,
}

impl Rfc5348 {
    fn equation(p: f64, r: f64) -> f64 {
        let path = TfrcPath::new(Seconds::new(r).unwrap(), PacketSize::new(S).unwrap());
        Tfrc::RFC5348.rate(LossRate::new(p).unwrap(), &path).get()
    }

    fn max(&self) -> f64 {
        self.x_recv_set.iter().map(|e| e.1).fold(0.0, f64::max)
    }

    fn maximize(&mut self, now: f64, x_recv: f64) {
        self.x_recv_set.push((now, x_recv));
        self.x_recv_set.retain(|e| e.1 != f64::INFINITY);
        let max = self.max();
        self.x_recv_set = vec![(now, max)];
    }

    fn report(&mut self, now: f64, r: f64, x_recv: f64, p: f64, data_limited: bool) {
        let w_init = (4.0 * S).min((2.0 * S).max(4380.0));
        let more_losses = p > self.p;
        self.p = p;
        if p > 0.0 {
            self.x_bps = Self::equation(p, r);
        }
        let Some(tld) = self.tld else {
            self.x = w_init / r;
            if p > 0.0 {
                self.x = self.x.min(self.x_bps); // a departure (docs/controllers/tfrc.md)
            }
            self.x = self.x.max(S / T_MBI);
            self.tld = Some(now);
            self.x_recv_set = vec![(now, f64::INFINITY)];
            return;
        };
        let recv_limit;
        if data_limited && x_recv > 0.0 {
            if more_losses {
                for entry in &mut self.x_recv_set {
                    entry.1 /= 2.0;
                }
                self.maximize(now, 0.85 * x_recv);
                recv_limit = self.max();
            } else {
                self.maximize(now, x_recv);
                recv_limit = 2.0 * self.max();
            }
        } else {
            self.x_recv_set.push((now, x_recv));
            self.x_recv_set.retain(|e| now - e.0 <= 2.0 * r + 1e-9);
            recv_limit = 2.0 * self.max();
        }
        if p > 0.0 {
            self.x = self.x_bps.min(recv_limit).max(S / T_MBI);
        } else if now - tld >= r - 1e-12 {
            self.x = (2.0 * self.x).min(recv_limit).max(w_init / r).max(S / T_MBI);
            self.tld = Some(now);
        }
    }

    fn no_feedback(&mut self, now: f64, r: f64, idle: bool) {
        let recover_rate = 4.0 * S / r;
        let x_recv = self.max();
        if self.tld.is_none() {
            if !idle {
                self.x = (self.x / 2.0).max(S / T_MBI);
            }
        } else if ((self.p > 0.0 && x_recv < recover_rate) || (self.p == 0.0 && self.x < 2.0 * recover_rate)) && idle {
        } else if self.p == 0.0 {
            self.x = (self.x / 2.0).max(S / T_MBI);
        } else {
            let timer_limit = if self.x_bps > 2.0 * x_recv { x_recv } else { self.x_bps / 2.0 };
            let timer_limit = timer_limit.max(S / T_MBI);
            self.x_recv_set = vec![(now, timer_limit / 2.0)];
            self.x = self.x_bps.min(2.0 * self.max()).max(S / T_MBI);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Report { x_recv: f64, p: f64, data_limited: bool },
    NoFeedback { idle: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let p = prop_oneof![2 => Just(0.0), 1 => 1e-5..1.0f64, 3 => 1e-4..0.1f64];
    prop_oneof![
        6 => (prop_oneof![1 => Just(0.0), 8 => 100.0..1e6f64], p, any::<bool>())
            .prop_map(|(x_recv, p, data_limited)| Step::Report { x_recv, p, data_limited }),
        1 => any::<bool>().prop_map(|idle| Step::NoFeedback { idle }),
    ]
}

fn interval(data_limited: bool) -> Interval {
    if data_limited { Interval::DataLimited } else { Interval::Used }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Milliseconds between steps, at least a third of the round-trip time: so many reports the set remembers.
    #[test]
    fn it_is_the_pseudocode(
        rtt_ms in 2..400u64, steps in proptest::collection::vec((0.34..3.0f64, step()), 1..60),
    ) {
        let rtt = Span::from_millis(rtt_ms);
        let r = rtt.as_secs_f64();
        let mut ours = controller("tfrc", Law::Rfc5348);
        let mut rfc = Rfc5348 { x: S, tld: None, x_recv_set: Vec::new(), p: 0.0, x_bps: f64::INFINITY };
        let mut now = Time::ZERO;
        ours.on_feedback(&TfrcEvent::Started, &path(now, Span::ZERO));
        for (wait, step) in &steps {
            now += Span::from_millis((wait * rtt_ms as f64).ceil() as u64);
            let srtt = if rfc.tld.is_some() || matches!(step, Step::Report { .. }) { rtt } else { Span::ZERO };
            let seconds = now.as_secs_f64();
            match *step {
                Step::Report { x_recv, p, data_limited } => {
                    let interval = interval(data_limited);
                    let report = TfrcReport { rtt, timeout: rtt * 4, receive_rate: x_recv, loss_event_rate: p, interval };
                    ours.on_feedback(&TfrcEvent::Report(report), &path(now, srtt));
                    rfc.report(seconds, r, x_recv, p, data_limited);
                }
                Step::NoFeedback { idle } => {
                    let event = TfrcEvent::NoFeedback { interval: interval(idle) };
                    ours.on_feedback(&event, &path(now, srtt));
                    rfc.no_feedback(seconds, r, idle);
                }
            }
            prop_assert!((ours.rate() / rfc.x - 1.0).abs() < 1e-9, "{} {} after {step:?}", ours.rate(), rfc.x);
        }
    }

    /// Never above twice the receive rate where that is forbidden: RFC 5348 after losses, twice the largest of two
    /// round trips, or of all where the sender was data-limited; RFC 3448 twice the last, ns-2 too, each with its
    /// floor.
    #[test]
    fn never_above_twice_what_arrives(
        scheme in proptest::sample::select(vec!["tfrc", "tfrc-veno", "multfrc"]), rtt_ms in 2..400u64,
        reports in proptest::collection::vec((0.0..3.0f64, 0.0..1e6f64, prop_oneof![Just(0.0), 1e-6..1.0f64], any::<bool>()), 3..60),
    ) {
        let rtt = Span::from_millis(rtt_ms);
        let r = rtt.as_secs_f64();
        for law in Law::ALL {
            let mut controller = controller(scheme, law);
            let mut now = Time::ZERO;
            let mut seen: Vec<(Time, f64)> = Vec::new();
            let mut was_limited = false;
            controller.on_feedback(&TfrcEvent::Started, &path(now, Span::ZERO));
            for (i, &(wait, x_recv, p, data_limited)) in reports.iter().enumerate() {
                now += Span::from_millis((wait * rtt_ms as f64) as u64);
                let interval = interval(data_limited);
                let report = TfrcReport { rtt, timeout: rtt * 4, receive_rate: x_recv, loss_event_rate: p, interval };
                controller.on_feedback(&TfrcEvent::Report(report), &path(now, rtt));
                was_limited |= data_limited;
                if i > 0 {
                    seen.push((now, x_recv));
                }
                let recent = |e: &&(Time, f64)| was_limited || now.since(e.0) <= rtt * 2;
                let max_received = seen.iter().filter(recent).map(|e| e.1).fold(0.0, f64::max);
                let bound = match law {
                    // the initial infinity lasts for two round trips
                    Law::Rfc5348 if i == 0 || p == 0.0 || now.since(seen[0].0) <= rtt * 2 => f64::INFINITY,
                    Law::Rfc5348 => (2.0 * max_received).max(S / T_MBI),
                    Law::Rfc3448 => (2.0 * x_recv).max(S / T_MBI).max(if p > 0.0 { 0.0 } else { f64::INFINITY }),
                    // four packets a round trip where it had little to say
                    Law::Ns2 if i < 2 || controller.in_slow_start() || i > 0 && was_first_loss(&reports, i) => f64::INFINITY,
                    Law::Ns2 => (2.0 * x_recv).max(if data_limited { 4.0 } else { 1.0 } * S / r).max(S / T_MBI),
                };
                prop_assert!(controller.rate() <= bound * (1.0 + 1e-9), "{law:?} {} {bound} at {i}", controller.rate());
            }
        }
    }

    /// No report and no expiry drives a rate out of its bounds: finite, and a packet in 64 s at least.
    #[test]
    fn rates_stay_rates(
        scheme in proptest::sample::select(vec!["tfrc", "tfrc-veno", "multfrc"]),
        steps in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<f64>(), any::<f64>(), any::<bool>(), 0..4u8), 1..60),
    ) {
        for law in Law::ALL {
            let mut controller = controller(scheme, law);
            let mut now = Time::ZERO;
            controller.on_feedback(&TfrcEvent::Started, &path(now, Span::ZERO));
            for &(wait, rtt, x_recv, p, limited, kind) in &steps {
                now += Span(u64::from(wait));
                let (rtt, interval) = (Span(rtt >> (kind * 12)), interval(limited));
                let event = match kind {
                    0 => TfrcEvent::NoFeedback { interval },
                    _ => TfrcEvent::Report(TfrcReport {
                        rtt,
                        timeout: rtt * 4,
                        receive_rate: x_recv,
                        loss_event_rate: if kind == 1 { p } else { p.abs().fract() },
                        interval,
                    }),
                };
                controller.on_feedback(&event, &path(now, rtt));
                controller.begin_gap();
                for rate in [controller.rate(), controller.pacing()] {
                    prop_assert!(rate.is_finite() && rate >= S / T_MBI * (1.0 - 1e-12), "{law:?} {rate}");
                }
            }
        }
    }
}

/// ns-2 takes the equation's rate as it is at the first loss.
fn was_first_loss(reports: &[(f64, f64, f64, bool)], i: usize) -> bool {
    reports[i].2 > 0.0 && reports[1..i].iter().all(|r| r.2 == 0.0)
}
