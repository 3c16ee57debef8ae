//! Warnings about times that a run is too short for.

use super::Warnings;
use crate::error::join;
use crate::keys::draw::Draw;
use crate::keys::flow::{App, FlowTable};
use crate::keys::link::BackwardTable;
use crate::keys::loss::{Loss, LossStart};
use crate::keys::queue::Queue;
use crate::keys::rtp::{ReportTiming, RtpTable};
use paceline_units::Span;

impl Warnings<'_> {
    /// Warns about a time at or after the run's end; `never` says what then never happens.
    fn late(&mut self, key: String, time: Span, never: &str) {
        let end = self.file.duration;
        // A default longer than a short run deserves no warning.
        if time >= end && self.document.says(&key) {
            self.note(key, format!("`{time}` is not before the run's end, {end}: {never}"));
        }
    }

    pub(super) fn late_on_links(&mut self, path: &str, way: &BackwardTable) {
        for (index, step) in way.rate_schedule.iter().flatten().enumerate() {
            self.late(format!("{path}.rate_schedule[{index}].at"), step.at, "the rate never changes to this");
        }
        for (index, step) in way.delay_schedule.iter().flatten().enumerate() {
            self.late(format!("{path}.delay_schedule[{index}].at"), step.at, "the delay never changes to this");
        }
        for (index, step) in way.limit_schedule.iter().flatten().enumerate() {
            self.late(format!("{path}.limit_schedule[{index}].at"), step.at, "the limit never changes to this");
        }
        for (index, step) in way.delay_variation_schedule.iter().flatten().enumerate() {
            let key = format!("{path}.delay_variation_schedule[{index}].at");
            self.late(key, step.at, "the variation never changes to this");
        }
        if let Some(held) = way.aggregation {
            let key = join(&join(path, "aggregation"), "from");
            self.late(key, held.from, "nothing is held");
        }
        for (index, spike) in way.delay_spike.iter().enumerate() {
            self.late(format!("{path}.delay_spike[{index}].from"), spike.from, "no packet takes longer");
        }
        for (index, outage) in way.outage.iter().enumerate() {
            self.late(format!("{path}.outage[{index}].from"), outage.from, "the outage never begins");
        }
        if let Some(delay) = way.delay {
            self.late(join(path, "delay"), delay, "nothing arrives");
        }
    }

    pub(super) fn late_in_queue(&mut self, path: &str, queue: &Queue) {
        match queue {
            Queue::Codel { interval, .. } | Queue::FqCodel { interval, .. } => {
                self.late(join(path, "interval"), *interval, "nothing is dropped for its delay");
            }
            Queue::Cake { rtt, .. } => self.late(join(path, "rtt"), *rtt, "nothing is dropped for its delay"),
            Queue::Pie { update, burst, .. } | Queue::FqPie { update, burst, .. } => {
                self.late(join(path, "update"), *update, "the probability of a drop stays 0");
                self.late(join(path, "burst"), *burst, "nothing is dropped before");
            }
            Queue::Dualpi2 { update: Some(update), .. } => {
                self.late(join(path, "update"), *update, "the probabilities stay 0");
            }
            Queue::Red { adaptive: Some(adaptive), .. } => {
                self.late(join(&join(path, "adaptive"), "interval"), adaptive.interval, "`max_p` stays");
            }
            Queue::Droptail { .. } | Queue::Red { .. } | Queue::Dualpi2 { .. } | Queue::Unlimited {} => {}
        }
    }

    pub(super) fn late_loss(&mut self, path: &str, loss: &Loss) {
        for (index, time) in loss.during().iter().enumerate() {
            self.late(format!("{path}.during[{index}].from"), time.from, "nothing is lost then");
        }
        if let Loss::TwoState { good_time, start: LossStart::Good, .. } = loss {
            self.late(join(path, "good_time"), *good_time, "the link, which begins well, never goes bad");
        }
    }

    pub(super) fn late_of_flow(&mut self, path: &str, flow: &FlowTable) {
        let (warmup, end) = (self.file.warmup, self.file.duration);
        if let Some(stop) = flow.stop {
            if stop > end {
                self.late(join(path, "stop"), stop, "the run ends before");
            } else if stop <= warmup {
                let problem = format!("`{stop}` is within the warm-up, {warmup}: nothing of the flow is measured");
                self.note(join(path, "stop"), problem);
            }
        }
        if let Some(rtt) = flow.rtt.as_ref().filter(|rtt| !rtt.is_drawn()).and_then(Draw::minimum) {
            self.late(join(path, "rtt"), rtt, "nothing comes back");
        }
        if let Some(min) = flow.min_rto {
            self.late(join(path, "min_rto"), min, "there is no timeout");
        }
        let app = join(path, "app");
        match &flow.app {
            App::Encoder { reaction, pauses, phase, .. } => {
                if let Some(phase) = phase {
                    self.late(join(&app, "phase"), *phase, "it captures nothing");
                }
                self.late(join(&app, "reaction"), *reaction, "its rate changes once");
                for (index, pause) in pauses.iter().enumerate() {
                    self.late(format!("{app}.pauses[{index}].from"), pause.from, "it never pauses");
                }
            }
            App::Stream { heartbeat, .. } => self.late(join(&app, "heartbeat"), *heartbeat, "it hands over data once"),
            App::Game { .. } | App::Voice { .. } => {
                if let Some((_, interval)) = flow.app.ticks() {
                    self.late(join(&app, "interval"), interval, "it sends one packet");
                }
            }
            App::Ftp { limited, .. } => {
                for (index, part) in limited.iter().enumerate() {
                    self.late(format!("{app}.limited[{index}].from"), part.from, "it is never limited");
                }
            }
            App::Cbr { .. }
            | App::Pareto { .. }
            | App::Relay { .. }
            | App::Video { .. }
            | App::VideoTrace { .. }
            | App::Web { .. } => {}
        }
    }

    /// Checks reports, or feedback on arrivals for controllers that use nothing else.
    pub(super) fn late_reports(&mut self, path: &str, rtp: &RtpTable, of_arrivals: bool) {
        let consequence = "the controller hears of nothing";
        if of_arrivals && (rtp.feedback_packets.is_some() || rtp.feedback_frames == Some(true)) {
            // Such feedback need not wait for its interval.
        } else if of_arrivals {
            self.late(join(path, "feedback_interval"), rtp.feedback_interval.unwrap_or_default(), consequence);
        } else if rtp.timing != ReportTiming::Reduced {
            self.late(join(path, "report_interval"), rtp.report_interval.unwrap_or_default(), consequence);
        }
    }
}
