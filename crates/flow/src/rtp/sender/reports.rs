//! A sender's reports: when they are due, their contents, and the bursts that they announce (RFC 3550 sections 6.3 and
//! 6.4.1).

use super::{ECHOES, RtpSender};
use crate::Transmit;
use crate::rtp::participant::{self, sender_info};
use crate::rtp::timing::{Members, ReportTimer};
use paceline_control::MediaController;
use paceline_packet::Flags;
use paceline_packet::rtcp::{App, Compound, Probe};
use paceline_units::{Span, Time};

impl RtpSender {
    /// Whether data was sent since the report before the last one, which makes the participant a sender (section
    /// 6.3.8).
    pub(super) fn we_sent(&self) -> bool {
        self.supply.next() > self.session.at_report.1
    }

    /// Updates the report timer's members.
    pub(super) fn members(&mut self, now: Time) {
        let we_sent = self.we_sent();
        let all = 1 + u32::from(self.session.answered);
        if let Some(timer) = &mut self.session.timer {
            timer.set_members(Members { all, senders: u32::from(we_sent), we_sent }, now);
        }
    }

    /// Sends a due report, unless reconsideration delays it.
    #[cold]
    pub(super) fn report(&mut self, now: Time, out: &mut impl Transmit) {
        self.members(now);
        if !self.session.timer.as_mut().is_some_and(|timer| timer.expire(now)) {
            return;
        }
        let mut report = self.compound(now);
        let count = self.burst();
        if count >= 2 && self.supply.end() - self.supply.next() >= u32::from(count) {
            (self.burst_start, self.burst_end) = (self.supply.next(), self.supply.next() + u32::from(count));
            report.apps.push(App::Probe(Probe { first: self.on_the_wire(self.supply.next()), count }));
        }
        let size = self.transmit(report, now, out);
        self.session.ecn.reported();
        self.session.at_report = (self.supply.next(), self.session.at_report.0);
        if let Some(timer) = &mut self.session.timer {
            timer.sent(now, size);
        }
    }

    /// The number of packets for a burst now: at most those of two report intervals. After a burst the sender pauses
    /// for the time that its packets would have taken, and a longer pause would look like a timeout.
    fn burst(&self) -> u16 {
        if !self.config.settings.probes {
            return 0;
        }
        let interval = self.session.timer.as_ref().map_or(Span::ZERO, ReportTimer::deterministic);
        let packets = 2.0 * interval.as_secs_f64() * self.controller.rate() / self.packet;
        self.config.probe.burst.min((packets + 1e-9) as u16)
    }

    /// Builds a sender report, or an empty receiver report if no data was sent recently.
    fn compound(&mut self, now: Time) -> Compound {
        let mut report = self.session.us.report();
        if self.we_sent() {
            let sent = self.supply.next().wrapping_sub(self.first);
            let packets = if self.config.nack { self.history.media() } else { sent };
            let info = sender_info(now, self.session.numbers.1, packets, self.session.octets);
            self.session.echoes.push_back((info.ntp.middle(), now));
            if self.session.echoes.len() > ECHOES {
                self.session.echoes.pop_front();
            }
            report.sender = Some(info);
        }
        report
    }

    fn transmit(&mut self, report: Compound, now: Time, out: &mut impl Transmit) -> u16 {
        let size = participant::transmit(report, Flags::NONE, now, out);
        self.stats.sent(size);
        self.session.spoken = true;
        size
    }

    /// Sends BYE at once: a session of two is far below the 50 members from which a participant must wait (section
    /// 6.3.7). A participant that has never sent anything sends none.
    #[cold]
    pub(super) fn leave(&mut self, now: Time, out: &mut impl Transmit) {
        self.leaving = false;
        let spoken = self.supply.next() > self.first || self.session.spoken;
        if self.session.timer.take().is_some() && spoken {
            let report = Compound { bye: Some(self.session.us.bye()), ..self.compound(now) };
            self.transmit(report, now, out);
        }
    }
}
