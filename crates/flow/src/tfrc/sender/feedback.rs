//! Reports, and the nofeedback timer (RFC 5348 sections 4.3 and 4.4).

use super::TfrcSender;
use crate::Transmit;
use paceline_control::{Controller, Interval, Law, RateController, TfrcEvent, TfrcReport};
use paceline_packet::{Extra, Packet, Stamp};
use paceline_units::{Span, Time};

/// The nofeedback timer before the first round-trip sample (RFC 5348 section 4.2).
const FIRST_TIMEOUT: Span = Span::from_secs(2);

/// Maximum number of reports kept for one highest packet; each late packet may cause another report.
const MAX_RECENT_REPORTS: usize = 8;

impl TfrcSender {
    /// Sections 4.2 and 4.3 step 6: max(4 R, 2 s / X), two seconds before the first sample. ns-2: max(2 R, 2 s / X).
    pub(super) fn set_timer(&mut self, now: Time) {
        let gaps = Span::from_secs_f64(2.0 * self.segment / self.controller.rate());
        let rtt = self.rtt.smoothed();
        self.timer = now
            + match self.law {
                Law::Ns2 => gaps.max(rtt * 2),
                _ if rtt == Span::ZERO => gaps.max(FIRST_TIMEOUT),
                _ => gaps.max(rtt * 4),
            };
        self.busy = self.supply.is_left();
    }

    /// Handles the nofeedback timer (section 4.4).
    #[cold]
    pub(super) fn no_feedback(&mut self, now: Time, out: &mut impl Transmit) {
        self.account(now);
        let ns2 = self.law == Law::Ns2;
        let idle = if ns2 { self.ns2.all_idle || self.ns2.limited } else { !self.busy };
        if !idle {
            self.stats.timeouts += 1;
        }
        let before = self.controller.rate();
        let interval = if idle { Interval::DataLimited } else { Interval::Used };
        self.controller.on_feedback(&TfrcEvent::NoFeedback { interval }, &self.path(now));
        self.timer = Time::NEVER;
        if ns2 {
            self.ns2.round = self.ns2.round.saturating_add(1);
            self.ns2.urgent = true;
            let limited = self.ns2.limited;
            self.ns2.all_idle |= limited;
            // ns-2's timer keeps running while the sender is idle; where it changes nothing, the wake-up is saved
            if !idle || self.controller.rate() < before {
                self.set_timer(now);
            }
            self.tick(now, out);
            return;
        }
        // an idle sender whose rate does not change need not wait: the timer starts with its next packet
        if !idle || self.controller.rate() < before {
            self.set_timer(now);
        }
        self.pacer.repace(now, self.segment, self.controller.pacing());
    }

    /// Processes a report (section 4.3). Invalid reports are ignored: those of packets never sent or already reported,
    /// those with a timestamp from before the start, and those with invalid numbers. So are duplicates: two different
    /// reports differ in the echo, the delay or a rate.
    pub fn on_report(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let Some(Extra::TfrcReport(_, report)) = extra else { return };
        let elapsed = packet.stamp.elapsed(now);
        let known = packet.seq > self.first && packet.seq <= self.supply.next() && packet.seq >= self.reported;
        let sane = report.receive_rate.is_finite()
            && report.receive_rate >= 0.0
            && (0.0..=1.0).contains(&report.loss_event_rate)
            && elapsed >= report.delay
            && self.age(now) >= elapsed;
        if !known || !sane || self.stopped || !self.started {
            return;
        }
        if packet.seq > self.reported {
            self.recent_reports.clear();
        } else if self.recent_reports.contains(&(packet.stamp, *report)) {
            // a duplicate: X_recv_set would count its rate again, and the timer would restart
            return;
        }
        if self.recent_reports.len() == MAX_RECENT_REPORTS {
            self.recent_reports.remove(0);
        }
        self.recent_reports.push((packet.stamp, *report));
        self.reported = packet.seq;
        self.account(now);
        let sample = self.rtt.sample(elapsed - report.delay);
        self.stats.round_trip(sample);
        let ns2 = self.law == Law::Ns2;
        let interval = if ns2 { self.limited_of_late(now) } else { self.covered(packet.stamp, now) };
        if report.loss_event_rate > self.p {
            self.stats.window_cuts += 1;
        }
        self.p = report.loss_event_rate;
        self.stats.loss_event_rate(report.loss_event_rate);
        if ns2 {
            self.ns2.round = self.ns2.round.saturating_add(1);
            self.ns2.urgent = false;
            self.set_timer(now); // with the rate before this report
        }
        let event = TfrcEvent::Report(TfrcReport {
            rtt: sample,
            timeout: self.rtt.timeout(),
            receive_rate: report.receive_rate,
            loss_event_rate: report.loss_event_rate,
            interval,
        });
        self.controller.on_feedback(&event, &self.path(now));
        if ns2 {
            // in slow start, each report triggers a packet at once
            if self.controller.in_slow_start() {
                self.tick(now, out);
            }
            return;
        }
        self.set_timer(now);
        self.pacer.repace(now, self.segment, self.controller.pacing());
        self.run(now, out);
    }

    /// The time since the start in the resolution of timestamps, but without their wrap every 18 minutes.
    fn age(&self, now: Time) -> Span {
        Span((now.0 >> 8).saturating_sub(self.began.0 >> 8) << 8)
    }

    fn covered(&mut self, stamp: Stamp, now: Time) -> Interval {
        self.limits.report(stamp, self.rtt.smoothed(), now)
    }

    /// ns-2: whether the sender had nothing to send recently (`idleFix_`).
    fn limited_of_late(&self, now: Time) -> Interval {
        let since = now.as_secs_f64() - 1.5 * self.rtt.smoothed().as_secs_f64();
        let limited = self.ns2.limited || self.ns2.resumed.as_secs_f64() > since;
        if limited { Interval::DataLimited } else { Interval::Used }
    }
}
