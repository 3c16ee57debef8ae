//! Warnings about keys that a run ignores, or takes in a way that is hardly intended. The run is sound, and each
//! warning names its key. What cannot be intended is a mistake (`rules`).
//!
//! Each warning is a function here, or a line in one. Default values never cause a warning, because a manifest spells
//! them all out.

mod alone;
mod cut;
mod ecn;
mod edca;
mod late;
mod trace;

use crate::document::Document;
use crate::error::{Mistake, join};
use crate::keys::cell::{CellTable, Protection, Rules, Standard};
use crate::keys::file::File;
use crate::keys::flow::{App, FlowTable, FrameFormat, JitterLaw};
use crate::keys::link::{BackwardTable, forward};
use crate::keys::loss::Loss;
use crate::keys::queue::{DualPi2Variant, DualScheduler, NativeAqm, Queue, StepFor};
use crate::keys::rtp::RtpTable;
use crate::keys::values::Limit;
use crate::model::{Model, Path};
use crate::scenario::Scenario;
use ecn::{is_capable, is_scalable};
use paceline_control::{Machine, MediaController, Profile, RtpController, RtpFeedback};
use paceline_flow::Transport;
use paceline_flow::tcp::TcpConfig;
use paceline_path::wifi::{MAX_HELD, ht_error, packet_error};
use paceline_units::{Rate, Ratio, Span};

/// Usual packet size in bytes, to decide which stations are out of range.
const USUAL_PACKET: u32 = 1500;
/// Maximum attempts to send a frame: dot11ShortRetryLimit's default.
const ATTEMPTS: u32 = 7;
/// A station that loses a larger share of frames for good is out of range.
const OUT_OF_RANGE: f64 = 0.99;

/// Whether any packets on the links are ECN-capable, and whether any are ECT(1).
#[derive(Clone, Copy)]
struct Senders {
    capable: bool,
    scalable: bool,
}

/// Collects warnings.
pub(super) struct Warnings<'a> {
    pub document: &'a Document,
    pub file: &'a File,
    pub found: Vec<Mistake>,
}

impl Scenario {
    /// Keys of this scenario, made from `document`, that have no effect on a run, or hardly the intended one; each with
    /// file, line and key. `model` is any run of it, `paths` the paths of its flows.
    #[must_use]
    pub fn warnings(&self, document: &Document, model: &Model, paths: &[Path]) -> Vec<String> {
        let mut warnings = Warnings { document, file: &self.file, found: Vec::new() };
        let any = |is: fn(&Transport) -> bool| model.flows.iter().any(|flow| is(&flow.transport));
        warnings.links(Senders { capable: any(is_capable), scalable: any(is_scalable) });
        warnings.traces(model);
        let at_receivers = self.file.access.as_ref().and_then(|access| access.receiver.as_ref());
        warnings.loss("access.receiver.loss", at_receivers.and_then(|receiver| receiver.loss.as_ref()));
        for (name, cell) in &self.file.cell {
            warnings.cell(name, cell, model, paths);
        }
        for (name, flow) in &self.file.flow {
            warnings.flow(&join("flow", name), name, flow, model, paths);
            warnings.category(&join("flow", name), name, flow, model, paths);
            warnings.coupled(&join("flow", name), flow, model);
            warnings.bundle(&join("flow", name), name, flow);
        }
        warnings.into_lines()
    }

    /// The same for its links alone, for use with real packets of others.
    #[must_use]
    pub fn warnings_of_links(&self, document: &Document) -> Vec<String> {
        let mut warnings = Warnings { document, file: &self.file, found: Vec::new() };
        warnings.links(Senders { capable: true, scalable: true });
        warnings.into_lines()
    }
}

/// Both directions of each link; backward keys that repeat forward ones are left out.
fn ways(file: &File) -> Vec<(String, BackwardTable)> {
    let both = |(name, link): (&String, &crate::keys::link::LinkTable)| {
        let (key, ahead) = (join("link", name), forward(link));
        let back = link.backward.as_deref().map(|back| {
            let mut back = back.clone();
            if back.rate_schedule == ahead.rate_schedule {
                back.rate_schedule = None;
            }
            if back.delay == ahead.delay {
                back.delay = None;
            }
            if back.delay_schedule == ahead.delay_schedule {
                back.delay_schedule = None;
            }
            if back.queue == ahead.queue {
                back.queue = None;
            }
            if back.limit_schedule == ahead.limit_schedule {
                back.limit_schedule = None;
            }
            (join(&key, "backward"), back)
        });
        [Some((key, ahead)), back]
    };
    file.link.iter().flat_map(both).flatten().collect()
}

/// All queues that are given, with their keys; repeated ones are left out.
fn queues(file: &File) -> Vec<(String, Queue)> {
    let mut found: Vec<(String, Queue)> = Vec::new();
    for (key, way) in ways(file) {
        found.extend(way.queue.map(|queue| (join(&key, "queue"), queue)));
    }
    for (name, cell) in &file.cell {
        let key = join("cell", name);
        let own = cell.station_queue.iter().filter(|own| **own != cell.queue);
        found.push((join(&key, "queue"), cell.queue.clone()));
        found.extend(own.map(|own| (join(&key, "station_queue"), own.clone())));
        for (name, station) in &cell.station {
            let own = station.queue.iter().filter(|own| cell.station_queue.as_ref() != Some(*own));
            found.extend(own.map(|own| (join(&join(&join(&key, "station"), name), "queue"), own.clone())));
        }
    }
    if let Some(access) = &file.access {
        let receiver = access.receiver.as_ref().and_then(|receiver| receiver.queue.clone());
        found.extend(
            receiver.filter(|own| access.queue.as_ref() != Some(own)).map(|q| ("access.receiver.queue".into(), q)),
        );
        found.extend(access.queue.clone().map(|queue| ("access.queue".into(), queue)));
    }
    found
}

impl Warnings<'_> {
    /// One line each, with file, line and key.
    pub(super) fn into_lines(self) -> Vec<String> {
        let located = self.document.error(self.found);
        located.mistakes.iter().map(|warning| warning.to_line(&located.file)).collect()
    }

    pub(super) fn note(&mut self, key: impl Into<String>, problem: impl Into<String>) {
        self.found.push(Mistake::new(key, problem));
    }

    /// Warns about a key that another one makes ineffective, if its value is not the default.
    fn idle<T: PartialEq>(&mut self, path: &str, key: &str, value: &T, default: &T, why: &str) {
        if value != default {
            self.note(join(path, key), format!("has no effect {why}"));
        }
    }

    /// Warns about a key that has no effect without `switch`, if its value is not the default, or if the default is
    /// spelt out but `switch` is not.
    fn waits<T: PartialEq>(&mut self, path: &str, key: &str, (value, default): (&T, &T), switch: &str, why: &str) {
        let says = |key: &str| self.document.says(&join(path, key));
        if value != default || says(key) && !says(switch) {
            self.note(join(path, key), format!("has no effect {why}"));
        }
    }

    fn links(&mut self, senders: Senders) {
        for (key, queue) in queues(self.file) {
            self.queue(&key, &queue, senders);
        }
        for (key, way) in ways(self.file) {
            self.late_on_links(&key, &way);
            self.loss(&join(&key, "loss"), way.loss.as_ref());
        }
    }

    fn queue(&mut self, path: &str, queue: &Queue, Senders { capable, scalable }: Senders) {
        self.late_in_queue(path, queue);
        let without = "without `ecn = true` beside it: set that, or leave it out";
        if let Queue::Codel { mark_above: None, mark_above_for, .. }
        | Queue::FqCodel { mark_above: None, mark_above_for, .. } = queue
        {
            let why = "without `mark_above` beside it: give that, or leave it out";
            self.idle(path, "mark_above_for", mark_above_for, &StepFor::Ect, why);
        }
        if let Queue::Codel { mark_above: Some(_), mark_above_for: StepFor::Ect1, .. }
        | Queue::FqCodel { mark_above: Some(_), mark_above_for: StepFor::Ect1, .. } = queue
            && capable
            && !scalable
        {
            let problem =
                "`mark_above` marks nothing, since no flow sends ECT(1): give one `cc = \"prague\"`, or leave this out";
            self.note(join(path, "mark_above_for"), problem);
        }
        let marks = match queue {
            Queue::Droptail { .. } | Queue::Dualpi2 { .. } | Queue::Cake { .. } | Queue::Unlimited {} => None,
            Queue::Red { ecn, mark_below, .. }
            | Queue::Pie { ecn, mark_below, .. }
            | Queue::FqPie { ecn, mark_below, .. } => {
                if !ecn {
                    self.waits(path, "mark_below", (mark_below, &Ratio(0.1)), "ecn", without);
                }
                ecn.then_some("ecn")
            }
            Queue::Codel { ecn: true, .. } => Some("ecn"),
            // It marks by default.
            Queue::Codel { mark_above, .. } | Queue::FqCodel { mark_above, .. } => mark_above.map(|_| "mark_above"),
        };
        if let Some(key) = marks
            && !capable
        {
            self.note(
                join(path, key),
                "nothing is marked, since no flow has `ecn = true`: set that in one, or leave it out",
            );
        }
        match queue {
            Queue::Codel { limit, target, interval, .. } | Queue::FqCodel { limit, target, interval, .. } => {
                if target > interval {
                    let problem = format!("`{target}` is more than `interval`, {interval}: usual is a twentieth of it");
                    self.note(join(path, "target"), problem);
                }
                self.never_reached(path, *limit, *target);
            }
            Queue::Pie { limit, target, .. } | Queue::FqPie { limit, target, .. } => {
                self.never_reached(path, *limit, *target)
            }
            Queue::Dualpi2 { limit, target, variant, .. } => {
                self.never_reached(path, limit.unwrap_or(variant.limit()), *target);
                self.idle_in_dualpi2(path, queue);
            }
            Queue::Cake { limit, rtt, .. } => {
                let target = Span(rtt.0 / 20);
                if let Some(Limit::Time(limit)) = limit
                    && *limit <= target
                {
                    let problem = format!(
                        "`{limit}` is no more than the delay to hold, {target} (`rtt` / 20), which is never exceeded"
                    );
                    self.note(join(path, "limit"), problem);
                }
            }
            Queue::Red { max_threshold: Some(max), limit, mean_packet, .. } => {
                let packets = match limit {
                    Limit::Packets(packets) => f64::from(*packets),
                    Limit::Bytes(size) => size.bytes() as f64 / mean_packet.bytes() as f64,
                    Limit::Time(_) => f64::INFINITY,
                };
                if *max > packets {
                    let problem = format!(
                        "`{max}` packets is more than `limit`, {limit}: the queue is full, and drops all, before the \
                         average is there; raise `limit`, or lower this"
                    );
                    self.note(join(path, "max_threshold"), problem);
                }
            }
            Queue::Droptail { .. } | Queue::Red { .. } | Queue::Unlimited {} => {}
        }
    }

    /// Warns about keys of DualPI2 that another one makes ineffective.
    fn idle_in_dualpi2(&mut self, path: &str, queue: &Queue) {
        let Queue::Dualpi2 {
            variant,
            rtt_max,
            update,
            alpha,
            beta,
            l4s_aqm,
            l4s_range,
            scheduler,
            classic_share,
            time_shift,
            ..
        } = queue
        else {
            return;
        };
        if update.is_some() && alpha.is_some() && beta.is_some() {
            self.idle(path, "rtt_max", rtt_max, &None, "beside `update`, `alpha` and `beta`: leave it out");
        }
        let steps = match variant {
            DualPi2Variant::Rfc9332 => *l4s_aqm == Some(NativeAqm::Step),
            DualPi2Variant::Linux => *l4s_aqm != Some(NativeAqm::Ramp),
        };
        if steps {
            let why = "on a step: give `l4s_aqm = \"ramp\"` beside it, or leave it out";
            self.idle(path, "l4s_range", l4s_range, &Span::from_micros(400), why);
        }
        match scheduler {
            DualScheduler::Weighted => {
                let why = "without `scheduler = \"time-shifted\"` beside it: give that, or leave it out";
                self.idle(path, "time_shift", time_shift, &Span::from_millis(50), why);
            }
            DualScheduler::TimeShifted => {
                let why = "beside `scheduler = \"time-shifted\"`: leave it out";
                self.idle(path, "classic_share", classic_share, &None, why);
            }
        }
    }

    /// Warns about a delay that a queue with this limit cannot reach.
    fn never_reached(&mut self, path: &str, limit: Limit, target: Span) {
        if let Limit::Time(limit) = limit
            && limit <= target
        {
            let problem = format!("`{target}` is never exceeded, since no more than {limit} waits (`limit`)");
            self.note(join(path, "target"), problem);
        }
    }

    fn loss(&mut self, path: &str, loss: Option<&Loss>) {
        let (good, bad) = match loss {
            None => return,
            Some(loss @ (Loss::Uniform { .. } | Loss::Periodic { .. })) => return self.late_loss(path, loss),
            Some(Loss::GilbertElliott { good_rate, bad_rate, .. } | Loss::TwoState { good_rate, bad_rate, .. }) => {
                (good_rate, bad_rate)
            }
        };
        if good.0 > bad.0 {
            self.note(join(path, "good_rate"), format!("`{good}` is more than `bad_rate`, {bad}: are they swapped?"));
        }
        if let Some(loss) = loss {
            self.late_loss(path, loss);
        }
    }

    fn cell(&mut self, name: &str, cell: &CellTable, model: &Model, paths: &[Path]) {
        let path = join("cell", name);
        let stations = || cell.station.values();
        let default = Rate(if cell.standard == Standard::B { 11_000_000 } else { 54_000_000 });
        if cell.mcs.is_some_and(|mcs| mcs != 7) && stations().all(|station| station.mcs != cell.mcs) {
            self.note(join(&path, "mcs"), "has no effect: each station has an `mcs` or a `rate` of its own");
        }
        if cell.rate.is_some_and(|rate| rate != default) && stations().all(|station| station.rate != cell.rate) {
            self.note(join(&path, "rate"), "has no effect: each station has a `rate` of its own");
        }
        let queue = &cell.station_queue;
        if *queue != Some(cell.queue.clone()) && stations().all(|station| station.queue != *queue) {
            self.note(join(&path, "station_queue"), "has no effect: each station has a `queue` of its own");
        }
        let is_long = cell.rts_threshold.is_some() || cell.protection == Protection::RtsCts;
        let usual = (cell.rules != Some(Rules::Bianchi)).then_some(4);
        if !is_long && cell.long_retry_limit != usual {
            let problem = "has no effect: no frame goes after RTS and CTS without `rts_threshold`";
            self.note(join(&path, "long_retry_limit"), problem);
        }
        let Some(instance) = model.cells.iter().find(|cell| cell.name == name) else { return };
        let down = |arc: usize| {
            let of = arc.checked_sub(instance.first_link);
            of.is_some_and(|of| of < 2 * instance.model.stations.len() && of % 2 == 0)
        };
        let lowered = model.flows.iter().zip(paths).any(|(flow, (there, _))| {
            matches!(flow.transport, Transport::Tcp { .. }) && there.iter().any(|&arc| down(arc))
        });
        if cell.windows.is_some() && !lowered {
            self.note(join(&path, "windows"), "has no effect: no flow of TCP goes to a station of this cell");
        }
        self.contention(&path, cell, &instance.model);
        self.above_aggregates(&path, cell);
        for ((name, table), station) in cell.station.iter().zip(&instance.model.stations) {
            let path = join(&join(&path, "station"), name);
            let octets = USUAL_PACKET + instance.model.overhead;
            let drawn = station.power.map_or(0.0, |power| match station.ht {
                Some(ht) => ht_error(ht, octets, power).0,
                None => packet_error(station.rate, octets, power).0,
            });
            if libm::pow(drawn, f64::from(ATTEMPTS)) > OUT_OF_RANGE {
                let key = if table.distance.is_some() { "distance" } else { "signal" };
                let problem = format!(
                    "out of range: frames of {USUAL_PACKET} B at {} do not arrive; bring it nearer, or give it a lower `{}`",
                    station.rate,
                    if station.ht.is_some() { "mcs" } else { "rate" }
                );
                self.note(join(&path, key), problem);
            }
        }
    }

    /// Warns about a discipline above a transmitter that moves all stations' packets into one FIFO to form aggregates.
    fn above_aggregates(&mut self, path: &str, cell: &CellTable) {
        if cell.standard != Standard::N {
            return;
        }
        let is_passed_over = |queue: &Queue| matches!(queue, Queue::Droptail { .. } | Queue::Red { .. });
        let stations = cell.station_queue.as_ref();
        // Queues that are copies of the one above are not reported again.
        let mut found = vec![
            (join(path, "queue"), Some(&cell.queue)),
            (join(path, "station_queue"), stations.filter(|&queue| *queue != cell.queue)),
        ];
        for (name, station) in &cell.station {
            let own = station.queue.as_ref().filter(|&queue| Some(queue) != stations);
            found.push((join(&join(&join(path, "station"), name), "queue"), own));
        }
        for (path, _) in found.into_iter().filter(|(_, queue)| queue.is_some_and(|queue| !is_passed_over(queue))) {
            let problem = format!(
                "has little effect on delay: below it, a transmitter of 802.11n holds up to {MAX_HELD} packets of all \
                 stations in one FIFO, so a comparison of queues may name the wrong winner (docs/wifi.md)"
            );
            self.note(path, problem);
        }
    }

    fn flow(&mut self, path: &str, name: &str, flow: &FlowTable, model: &Model, paths: &[Path]) {
        self.late_of_flow(path, flow);
        let ours = || model.flows.iter().zip(paths).filter(|(flow, _)| flow.name == name);
        self.ecn(path, flow, model, ours());
        if let Some((family, variant)) = flow.scheme().ok().and_then(|scheme| scheme.variant())
            && flow.cc != family
        {
            let now = format!("`cc = \"{family}\"` with `variant = \"{variant}\"` in `params`");
            self.note(join(path, "cc"), format!("`{}` is a name of before: write {now}", flow.cc));
        }
        let usual = flow.scheme().ok().zip(flow.profile);
        let usual = usual.map(|(scheme, profile)| TcpConfig::new(profile.control(), scheme).initial_window);
        if let (Some(first), Some(max)) = (flow.initial_window, flow.receive_window)
            && first > max
            && usual != Some(first)
        {
            let problem = format!("`{first}` is more than `receive_window`, {max}, which is where it begins");
            self.note(join(path, "initial_window"), problem);
        }
        if let Some(rtp) = &flow.rtp {
            self.rtp(&join(path, "rtp"), rtp, flow);
            self.feedback(path, flow, rtp);
        }
        let app = join(path, "app");
        match &flow.app {
            App::Voice { spurts: false, talk, pause, .. } => {
                let why = "without `spurts = true`: set that, or leave it out";
                self.waits(&app, "talk", (talk, &crate::keys::app::talk_spurt()), "spurts", why);
                self.waits(&app, "pause", (pause, &crate::keys::app::pause()), "spurts", why);
            }
            App::Encoder { traces, skip_frames, jitter, jitter_law, burst, key_interval, key_size, .. } => {
                let beside = "beside `traces`, whose frames have sizes of their own: leave it out";
                if traces.is_empty() {
                    let why = "without `traces` beside it: give those, or leave it out";
                    self.idle(&app, "skip_frames", skip_frames, &crate::keys::app::twenty_frames(), why);
                } else {
                    self.idle(&app, "jitter", jitter, &Ratio(0.15), beside);
                    self.idle(&app, "jitter_law", jitter_law, &JitterLaw::default(), beside);
                    self.idle(&app, "burst", burst, &None, beside);
                    self.idle(&app, "key_interval", key_interval, &Span::from_secs(10), beside);
                    self.idle(&app, "key_size", key_size, &4.0, beside);
                }
            }
            App::VideoTrace { format: FrameFormat::Times, frame_rate, .. } => {
                let why = "with `format = \"times\"`, whose frames have times of their own";
                self.waits(&app, "frame_rate", (frame_rate, &crate::keys::app::thirty()), "format", why);
            }
            _ => {}
        }
    }

    /// Warns about an RTP session for a flow that has none, and about probing with controllers that do not probe.
    fn rtp(&mut self, path: &str, rtp: &RtpTable, flow: &FlowTable) {
        let cc = &flow.cc;
        let usual = RtpTable::default();
        let controller = flow.scheme().ok().filter(|scheme| scheme.machine == Machine::Rtp);
        let settings = controller.and_then(|scheme| RtpController::new(scheme, Profile::Rfc, &[]).ok());
        let Some(settings) = settings.map(|controller| controller.settings()) else {
            // `bandwidth`, the limit of reports, does no harm without reports: a call may have it on any machine.
            if (RtpTable { bandwidth: usual.bandwidth, ..rtp.clone() }) != usual {
                let problem =
                    format!("has no effect on `{cc}`, which has no session of RTP: leave all but `bandwidth` out");
                self.note(path.to_owned(), problem);
            }
            return;
        };
        let why = if settings.probes {
            "with `probe_burst = 0`".to_owned()
        } else {
            format!("on `{cc}`, which does not probe")
        };
        if !settings.probes {
            self.idle(path, "probe_burst", &rtp.probe_burst, &usual.probe_burst, &why);
        }
        if !settings.probes || rtp.probe_burst == 0 {
            self.idle(path, "probe_width", &rtp.probe_width, &usual.probe_width, &why);
            self.idle(path, "probe_history", &rtp.probe_history, &usual.probe_history, &why);
        }
        self.late_reports(path, rtp, settings.feedback == RtpFeedback::Arrivals);
    }
}

impl Warnings<'_> {
    /// Warns about feedback on arrivals that lacks what is requested.
    fn feedback(&mut self, path: &str, flow: &FlowTable, rtp: &RtpTable) {
        if rtp.feedback_frames == Some(true) && !matches!(flow.app, App::Encoder { .. }) {
            let problem = "has no effect without app `encoder`, whose packets alone tell where a frame ends";
            self.note(join(&join(path, "rtp"), "feedback_frames"), problem);
        }
    }
}
