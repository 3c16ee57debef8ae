//! The sender's processing of the receiver's reports, and of their absence.

use super::RtpSender;
use crate::Transmit;
use crate::rtp::sent_log::Feedback;
use paceline_control::{Arrivals, Controller, Fate, Interval, PacketResult, RtpEvent, RtpFeedback, RtpReport};
use paceline_packet::rtcp::{App, Compound, ReportBlock};
use paceline_packet::{Extra, Ntp, Packet};
use paceline_units::{Ratio, Size, Span, Time};

/// The maximum time until the first answer (RFC 5348 section 4.2).
const FIRST_ROUND_TRIP: Span = Span::from_secs(2);

/// The minimum round-trip time: the resolution of LSR and DLSR.
const MIN_RTT: Span = Span(15_259);

impl RtpSender {
    /// Processes a report of the receiver. Information on packets that an earlier report covered, and on unknown sender
    /// reports, is ignored.
    pub fn on_rtcp(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let Some(Extra::Rtcp(report)) = extra else { return };
        let Some(timer) = &mut self.session.timer else { return };
        if report.ssrc == self.session.us.ssrc {
            return;
        }
        timer.received(packet.size);
        self.session.answered = report.bye.is_none();
        self.members(now);
        if !report.repair.is_empty() {
            self.on_repair_requests(now, report);
        }
        if self.config.ecn_reports {
            self.counted(report);
        }
        if self.config.settings.feedback == RtpFeedback::Arrivals {
            let feedback = if self.is_numbered() { self.numbered(now, report) } else { self.sequenced(now, report) };
            match feedback {
                Some(feedback) => self.arrivals(now, feedback, out),
                // packets covered are no longer in flight, although no fate is certain yet: the window may be open
                None => self.run(now, out),
            }
            return;
        }
        let us = self.session.us.ssrc;
        let block = report.reports.iter().find(|block| block.ssrc == us);
        let newest =
            |block: &ReportBlock| self.sent_as(block.extended_highest).filter(|newest| *newest >= self.reported);
        if let Some((block, newest)) = block.and_then(|block| Some((block, newest(block)?))) {
            let since = newest + 1 - self.reported;
            self.reported = newest + 1;
            self.heed(now, since, block, report, out);
        }
    }

    /// The packet with this number. A receiver knows 16 bits of it, and counts cycles itself, from its own start; so
    /// only the lower 16 bits are used. The packet cannot be further behind the last one sent.
    fn sent_as(&self, extended: u32) -> Option<u32> {
        let behind = self.on_the_wire(self.next()).wrapping_sub(1).wrapping_sub(extended as u16);
        let number = self.next().checked_sub(1)?.checked_sub(u32::from(behind))?;
        (number >= self.first).then_some(number)
    }

    /// Processes the receiver's ECN counters, or their absence (RFC 6679).
    #[cold]
    fn counted(&mut self, report: &Compound) {
        let us = self.session.us.ssrc;
        let block = report.reports.iter().find(|block| block.ssrc == us);
        let highest = block.and_then(|block| self.sent_as(block.extended_highest));
        let summary = report.ecn_summary.iter().find(|summary| summary.ssrc == us);
        let summarised = summary.and_then(|summary| Some((summary.counts, highest?)));
        let feedback = report.ecn.iter().filter(|feedback| feedback.ssrc == us);
        let numbered: Vec<_> =
            feedback.filter_map(|feedback| Some((feedback.counts, self.sent_as(feedback.extended_highest)?))).collect();
        if let (true, None, Some(number)) = (numbered.is_empty(), summarised, highest) {
            self.session.ecn.silent(number);
        }
        for (counts, number) in numbered.into_iter().chain(summarised) {
            self.session.ecn.on_counts(counts, number, self.next());
        }
    }

    /// Processes a report block with new information, on `since` packets.
    fn heed(&mut self, now: Time, since: u32, block: &ReportBlock, report: &Compound, out: &mut impl Transmit) {
        self.account(now);
        let us = self.session.us.ssrc;
        let rtt = self.round_trip(now, block);
        if let Some(rtt) = rtt {
            self.stats.round_trip(rtt);
            self.min_rtt = if self.rtt == Span::ZERO { rtt } else { self.min_rtt.min(rtt) };
            self.rtt = rtt;
        }
        let mut loss = block.fraction();
        let mut bottleneck = None;
        for app in &report.apps {
            match app {
                App::Loss(fine) if fine.ssrc == us => loss = fine.fraction(),
                App::Bottleneck(estimate) if estimate.ssrc == us => bottleneck = Some(estimate.rate),
                _ => {}
            }
        }
        // a mark counts as a loss (RFC 6679 section 7.3.3)
        let marked = f64::from(self.session.ecn.take_marks()) / f64::from(since);
        let loss = Ratio((loss.0 + marked).min(1.0));
        self.loss = loss.0;
        self.stats.window_cuts += u64::from(loss.0 > 0.0);
        let interval = if core::mem::take(&mut self.used) { Interval::Used } else { Interval::DataLimited };
        let since = now.since(self.last_feedback);
        self.last_feedback = now;
        self.controller
            .on_feedback(&RtpEvent::Report(RtpReport { loss, rtt, since, bottleneck, interval }), &self.path(now));
        self.listen(now, self.config.settings.silence);
        self.repace(now);
        self.run(now, out);
    }

    /// Processes feedback on arrivals by sequence numbers (RFC 8888).
    fn sequenced(&mut self, now: Time, report: &Compound) -> Option<Feedback> {
        let us = self.session.us.ssrc;
        let arrivals = report.arrivals.as_ref()?;
        let stream = arrivals.streams.iter().find(|stream| stream.ssrc == us)?;
        let (base, first) = (self.session.numbers.0, self.first);
        let wire = |number: u32| base.wrapping_add(number.wrapping_sub(first) as u16);
        self.sent.report(now, arrivals.reported, stream, wire)
    }

    /// Processes feedback on arrivals by transport-wide numbers.
    fn numbered(&mut self, now: Time, report: &Compound) -> Option<Feedback> {
        let (us, first) = (self.session.us.ssrc, self.first);
        let mut all = None;
        for feedback in report.transport.iter().filter(|feedback| feedback.ssrc == us) {
            let base = self.clock.time(now, feedback.reference);
            let wire = |number: u32| number.wrapping_sub(first) as u16;
            if let Some(part) = self.sent.transport(now, base, feedback, wire) {
                let before = all.get_or_insert(Feedback { packets: Vec::new(), ..part });
                before.packets.extend(part.packets);
                (before.rtt, before.end) = (part.rtt.or(before.rtt), before.end.max(part.end));
            }
        }
        all
    }

    /// Reports newly known arrivals and losses to the controller.
    fn arrivals(&mut self, now: Time, mut feedback: Feedback, out: &mut impl Transmit) {
        self.account(now);
        if self.config.ecn_reports && self.is_numbered() {
            mark(&mut feedback.packets, self.session.ecn.take_marks());
        }
        let rtt = feedback.rtt.map(|rtt| rtt.max(MIN_RTT));
        if let Some(rtt) = rtt {
            self.stats.round_trip(rtt);
            self.min_rtt = if self.rtt == Span::ZERO { rtt } else { self.min_rtt.min(rtt) };
            self.rtt = rtt;
        }
        self.stats.window_cuts += u64::from(feedback.packets.iter().any(|packet| packet.fate == Fate::Lost));
        self.reported = self.reported.max(feedback.end);
        let interval = if core::mem::take(&mut self.used) { Interval::Used } else { Interval::DataLimited };
        let since = now.since(self.last_feedback);
        self.last_feedback = now;
        let (backlog, in_flight) = (Size::from_bytes(self.backlog_of_all()), Size::from_bytes(self.sent.in_flight()));
        let own = self.frames.front().map_or(Time::NEVER, |frame| frame.written);
        let oldest = self.bundle.as_ref().map_or(own, |bundle| own.min(bundle.since()));
        let waiting = now.since(oldest);
        let packets = feedback.packets;
        let arrivals = Arrivals { packets, rtt, since, backlog, waiting, in_flight, interval };
        self.controller.on_feedback(&RtpEvent::Arrivals(arrivals), &self.path(now));
        self.heed_discard();
        self.fetch_probes(now);
        self.listen(now, self.config.settings.silence);
        self.repace(now);
        self.run(now, out);
    }

    /// Equation 2 of the LDA+ paper: tau = t - DLSR - LSR, where LSR is one of this sender's reports.
    fn round_trip(&self, now: Time, block: &ReportBlock) -> Option<Span> {
        let (_, sent) = self.session.echoes.iter().rev().find(|(echo, _)| *echo == block.lsr)?;
        let longest = now.since(*sent);
        (block.dlsr.span() <= longest + MIN_RTT * 2)
            .then(|| block.round_trip(Ntp::at(now)))
            .flatten()
            .map(|sample| sample.max(MIN_RTT))
    }

    /// Schedules the detection of the receiver's silence: after `intervals` report intervals plus a round-trip time.
    /// Before the first sample, at least the 2 s of RFC 5348 section 4.2 are allowed.
    pub(super) fn listen(&mut self, now: Time, intervals: u32) {
        let interval = self.interval().filter(|_| intervals > 0);
        self.silence = interval.map_or(Time::NEVER, |interval| self.patience(now, interval * u64::from(intervals)));
    }

    /// The mean interval between reports that the controller uses; `None` without a session.
    fn interval(&self) -> Option<Span> {
        let timer = self.session.timer.as_ref()?;
        Some(self.config.heeded_interval(timer.deterministic()))
    }

    /// When an answer to a packet sent at `sent` is overdue, if the receiver waits for `held`.
    fn patience(&self, sent: Time, held: Span) -> Time {
        if self.rtt == Span::ZERO { sent + held.max(FIRST_ROUND_TRIP) } else { sent + held + self.rtt }
    }

    /// Handles the receiver's silence.
    #[cold]
    pub(super) fn silent(&mut self, now: Time) {
        let Some(interval) = self.interval() else {
            self.silence = Time::NEVER;
            return;
        };
        self.account(now);
        // no report is expected if there is nothing to send, or if all packets are recent
        let waits = match self.config.settings.feedback {
            RtpFeedback::Reports => self.we_sent() || self.is_left(),
            RtpFeedback::Arrivals => {
                let intervals = u64::from(self.config.settings.silence);
                let due = self.sent.oldest().map(|sent| self.patience(sent, interval * intervals));
                if let Some(due) = due.filter(|due| *due > now) {
                    self.silence = due;
                    return;
                }
                due.is_some()
            }
        };
        if waits {
            self.stats.timeouts += 1;
            self.controller.on_feedback(&RtpEvent::Silence, &self.path(now));
            self.repace(now);
        }
        self.silence = now + interval.max(self.rtt);
    }
}

/// Marks `many` of these packets. RFC 6679's counters do not say which ones were marked; the newest are taken.
fn mark(packets: &mut [PacketResult], many: u32) {
    let marks = packets.iter_mut().rev().filter_map(|packet| match &mut packet.fate {
        Fate::Arrived { marked, .. } => Some(marked),
        _ => None,
    });
    marks.take(many as usize).for_each(|marked| *marked = true);
}
