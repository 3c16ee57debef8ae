//! What one end of a flow has measured, and how two halves are joined into a row of the flow table.

use super::numbers::{Numbers, few};
use crate::results::FlowRow;
use crate::session::{End, ReceiverSession, Reported, SenderSession, Session};
use paceline_apps::share;
use paceline_apps::viewer::ViewReport;
use paceline_flow::quic::Carriage;
use paceline_flow::{ReceiverStats, SenderStats, Transport};
use paceline_scenario::model::FlowModel;
use paceline_sim::Series;
use paceline_sim::arrivals::ArrivalReport;
use paceline_sim::recorder::{HostRecorder, Recording, SENDING};
use paceline_sim::summary::StreamSummary;
use paceline_units::{Offset, Span, Time};
use serde::{Deserialize, Serialize};

/// Default interval between an end's samples.
pub const EVERY: Span = Span::from_millis(100);
/// Maximum number of rows per table: a day's.
const MAX_ROWS: usize = 864_000;
/// Maximum number of tables accepted from the other end, and of columns per table.
const MAX_TABLES: usize = 16;
const MAX_COLUMNS: usize = 64;

/// What an end of a flow records: a wrapper of the simulator's recorder.
#[derive(Debug)]
pub struct Recorder {
    recorder: HostRecorder,
    rows: usize,
}

impl Recorder {
    /// A recorder for an end of this flow.
    #[must_use]
    pub fn new(session: &Session, model: &FlowModel, every: Span) -> Recorder {
        let all = Recording {
            cwnd: true,
            rtcp: true,
            rate: true,
            sequence: true,
            losses: true,
            acks: true,
            tfrc: true,
            playout: true,
            every,
            arrivals: true,
            frames: true,
            ..Recording::NOTHING
        };
        let recorder = match session {
            Session::Sender(_) => HostRecorder::new(all, &[model], &[]),
            Session::Receiver(_) => HostRecorder::new(all, &[], &[model]),
        };
        Recorder { recorder, rows: 0 }
    }

    /// When the next sample is due, in the session's time; `NEVER` before data flow.
    #[must_use]
    pub fn next(&self, session: &Session) -> Time {
        let epoch = epoch(session);
        if epoch == Time::ZERO || self.rows >= MAX_ROWS {
            return Time::NEVER;
        }
        epoch + self.recorder.next_sample().since(Time::ZERO)
    }

    /// Records the samples that are due.
    pub fn sample(&mut self, now: Time, session: &mut Session) {
        while self.next(session) <= now {
            self.rows += 1;
            let at = self.recorder.next_sample();
            match session {
                Session::Sender(sender) => self.recorder.sample(at, std::slice::from_ref(sender.source()), &mut []),
                Session::Receiver(receiver) => self.recorder.sample(at, &[], std::slice::from_mut(receiver.sink_mut())),
            }
        }
    }

    /// The recordings.
    pub(super) fn into_series(self) -> Vec<Series> {
        self.recorder.into_series()
    }
}

/// The session's time at which its protocol machine began.
pub(super) fn epoch(session: &Session) -> Time {
    match session {
        Session::Sender(sender) => sender.epoch(),
        Session::Receiver(receiver) => receiver.epoch(),
    }
}

/// The session's first packet with a capture time; for a receiver, shifted as if it had arrived with the delay of the
/// fastest frame. `seconds` converts the session's time to seconds.
pub(super) fn first_capture(session: &Session, seconds: impl FnOnce(Time) -> f64) -> Option<FirstCapture> {
    let (captures, min_delay) = match session {
        Session::Sender(sender) => (sender.captures(), None),
        Session::Receiver(receiver) => (receiver.captures(), receiver.sink().min_frame_delay()),
    };
    let min_delay = min_delay.unwrap_or_default().as_secs_f64();
    let at = |at: Time| epoch(session) + at.since(Time::ZERO);
    captures.map(|clock| FirstCapture { stamp: clock.first, hz: clock.hz, at_s: seconds(at(clock.at)) + min_delay })
}

/// A packet that carries the capture time of its contents.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FirstCapture {
    /// The capture time, by the sender's capture clock.
    pub stamp: u32,
    /// Ticks per second of that clock.
    pub hz: u32,
    /// The time by CLOCK_MONOTONIC, in seconds: at a sender, of that capture; at a receiver, when the packet would have
    /// arrived with the fastest frame's delay.
    pub at_s: f64,
}

/// A recorded table in the control channel's form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Its kind.
    pub table: String,
    /// Names and values.
    #[serde(deserialize_with = "few::<_, _, MAX_COLUMNS>")]
    pub columns: Vec<(String, Numbers)>,
}

/// What one end has measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Half {
    /// The columns of the flow table that this end knows.
    pub row: FlowRow,
    /// Seconds from the beginning of the data to this end's end of the flow.
    pub end_s: f64,
    /// At a receiver: when the last data arrived.
    pub last_s: f64,
    /// Bytes on the wire, received or sent.
    pub wire_bytes: u64,
    /// At a sender: whether the application finished by itself.
    pub finished: bool,
    /// When the data began by CLOCK_MONOTONIC, in seconds, if only part of the flow is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_s: Option<f64>,
    /// The first packet that carried the capture time of its contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_capture: Option<FirstCapture>,
    /// At a receiver: it has counted from the first packet on, and the sender's end message arrived after the last one.
    /// Packets sent and not counted here were then lost; otherwise they may have been in flight.
    pub whole: bool,
    /// The medium that a receiver played.
    pub stream: Option<StreamSummary>,
    /// The recordings.
    #[serde(deserialize_with = "few::<_, _, MAX_TABLES>")]
    pub tables: Vec<Table>,
    /// How the flow ended here.
    pub ended: String,
    /// Whether it ended as intended.
    pub well: bool,
    /// At a sender: lateness of timed datagrams (median and 99th percentile in seconds), and their number.
    pub late: Option<(f64, f64, u64)>,
    /// Datagrams dropped: not a message of the flow; implausible; beyond the granted rate or the kernel's buffers.
    pub dropped: (u64, u64, u64),
    /// The reports of a receiver of plain RTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// Why a log written at this end stops before the flow ends.
    #[serde(skip)]
    pub log_cut: Option<String>,
}

/// An end's counts at the beginning of the measured part; all zero if that is the beginning of the flow.
#[derive(Clone, Debug, Default)]
pub struct Before {
    at: Time,
    sent: Option<SenderStats>,
    received: ReceiverStats,
}

impl Before {
    /// Copies the counts at `now`, in the session's time.
    pub fn take(session: &mut Session, now: Time) -> Before {
        let at = Time::ZERO + now.since(epoch(session));
        match session {
            Session::Sender(sender) => {
                let source = sender.source_mut();
                source.sender.account(at);
                source.measure_from(at);
                Before { at, sent: Some(source.sender.stats().clone()), ..Before::default() }
            }
            Session::Receiver(receiver) => {
                // the other end has another clock; the fastest frame so far is the best estimate of the offset
                let sink = receiver.sink_mut();
                let min_delay = sink.min_frame_delay().unwrap_or_default();
                sink.measure_from(at, Offset::at(at) - min_delay);
                Before { at, received: *receiver.sink().receiver.stats(), ..Before::default() }
            }
        }
    }
}

impl Half {
    /// The half of an end whose session ends at `now`, in its own time, without what was counted `before`.
    #[must_use]
    pub fn of(session: &mut Session, model: &FlowModel, recorder: Recorder, now: Time, before: &Before) -> Half {
        let end = now.since(epoch(session));
        let end_s = if epoch(session) == Time::ZERO { 0.0 } else { end.as_secs_f64() };
        let counts = session.counts();
        let mut half = match session {
            Session::Sender(sender) => sent(sender, model, Time::ZERO + end, before),
            Session::Receiver(receiver) => received(receiver, model, Time::ZERO + end, before),
        };
        half.row.flow = model.name.clone();
        half.row.cc = model.scheme.clone();
        half.row.app = model.carries.to_owned();
        half.row.profile = model.profile.to_owned();
        half.end_s = end_s;
        half.dropped = (counts.garbage, counts.disregarded, counts.over_limit);
        half.tables = recorder.into_series().into_iter().map(Table::of).collect();
        match session {
            Session::Sender(_) => half.blank_unreported_columns(model),
            Session::Receiver(receiver) => {
                // the two ends' clocks are unrelated: only a frame's delay relative to the fastest is known
                let min_delay = receiver.sink().min_frame_delay().unwrap_or_default();
                half.add_to_delays(-min_delay.as_secs_f64());
            }
        }
        half
    }

    /// Sets how the flow ended here; `all` says whether the whole flow was measured.
    pub fn end(&mut self, end: End, all: bool) {
        self.ended = end.to_string();
        self.whole = end == End::Done && all;
        self.well = matches!(end, End::Done | End::Stopped);
    }

    /// Keeps the measurements, but marks them as ended by a failure outside the flow.
    pub(super) fn failed(&mut self, why: &str) {
        why.clone_into(&mut self.ended);
        (self.whole, self.well) = (false, false);
    }
}

fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

fn sent(session: &mut SenderSession, model: &FlowModel, end: Time, before: &Before) -> Half {
    let (round_trip, reported) = (session.round_trip(), session.reported());
    let source = session.source_mut();
    if !source.is_done() {
        source.sender.account(end);
    }
    let all = source.sender.stats();
    let sent = &before.sent.as_ref().map_or_else(|| all.clone(), |before| all.since(before));
    let transfers = source.transfers();
    let active = end.0.min(model.stop.0).saturating_sub(model.start.0.max(before.at.0)) as f64 / 1e9;
    let machine = model.transport.name();
    let windowed = sent.window_max > 0.0;
    let frames_sent = source.frames().or(model.has_frames().then_some(sent.frames));
    let frames_reset = (machine == "quic" && model.has_frames()).then_some(sent.frames_reset);
    let frames_dropped = source.may_discard_frames().then_some(sent.frames_dropped);
    // a flow without feedback uses the round trips of its requests
    let rtt = |found: Option<Span>| seconds(found.or(round_trip.filter(|_| machine == "udp")));
    Half {
        row: FlowRow {
            start_s: model.start.as_secs_f64(),
            send_rate_bps: (active > 0.0).then(|| sent.bytes_sent() as f64 * 8.0 / active),
            packets_sent: Some(sent.packets_sent),
            packets_retransmitted: sent_again(model).unwrap_or(Some(sent.retransmitted)),
            loss_event_rate: sent.mean_loss_event_rate(),
            // quinn does not report its probe timeouts
            timeouts: (machine != "quic").then_some(sent.timeouts),
            timeout_series: (machine != "quic").then_some(sent.first_timeouts),
            fast_retransmits: Some(sent.fast_retransmits),
            window_cuts: Some(sent.window_cuts),
            rtt_mean_s: rtt(sent.mean_rtt()),
            rtt_min_s: rtt(sent.rtt_min()),
            rtt_max_s: (sent.rtt_count > 0).then(|| sent.rtt_max.as_secs_f64()),
            rtt_p50_s: seconds(sent.rtt_quantile(0.5)),
            rtt_p95_s: seconds(sent.rtt_quantile(0.95)),
            rtt_p99_s: seconds(sent.rtt_quantile(0.99)),
            cwnd_mean_packets: sent.mean_window(),
            cwnd_max_packets: windowed.then_some(sent.window_max),
            timeout_mean_s: seconds(sent.mean_timeout()),
            base_rtt_mean_s: sent.mean_base_rtt(),
            transfers_started: Some(transfers.started),
            transfers_completed: Some(transfers.completed),
            transfers_unfinished: Some(transfers.unfinished),
            transfer_time_mean_s: seconds(transfers.mean_time),
            transfer_time_p50_s: seconds(transfers.median_time),
            transfer_time_p95_s: seconds(transfers.p95_time),
            transfer_time_p99_s: seconds(transfers.p99_time),
            frames_sent,
            frames_reset,
            reset_share: frames_reset.zip(frames_sent).and_then(|(reset, sent)| share(reset, sent)),
            frames_dropped,
            dropped_share: frames_dropped.zip(frames_sent).and_then(|(dropped, sent)| share(dropped, sent)),
            frames_skipped: source.frames_skipped(),
            ..FlowRow::default()
        },
        wire_bytes: sent.bytes_sent(),
        finished: source.is_finished(),
        reported,
        ..Half::default()
    }
}

fn received(session: &mut ReceiverSession, model: &FlowModel, end: Time, before: &Before) -> Half {
    let sink = session.sink();
    let received = sink.receiver.stats().since(&before.received);
    // without a set stop time a receiver stays on after the last frame, whose display time must not grow by that
    let watched = if model.stop < Time::NEVER { end.min(model.stop) } else { received.last };
    let view = sink.view_report(watched);
    let view = view.as_ref();
    // only pictures freeze, not voice or game moves
    let pictures = view.filter(|_| model.app.has_pictures());
    let playout = view.and_then(|view| view.playout.as_ref());
    let delay = |delay: Option<Offset>| delay.map(Offset::as_secs_f64);
    let feedback = sink.feedback_sent();
    let arrived = sink.arrival_report();
    let gap = arrived.and_then(ArrivalReport::gap_moments);
    let stream = model.stream.as_ref().zip(sink.stream_report(end));
    let stream = stream.map(|(medium, report)| StreamSummary::of((&model.name, 0), medium, &report));
    Half {
        row: FlowRow {
            start_s: model.start.as_secs_f64(),
            packets_delivered: Some(received.packets),
            ecn_marks: Some(received.marks),
            bytes_delivered: Some(received.bytes),
            frames_complete: view.map(|view| view.complete),
            frame_delay_mean_s: delay(view.and_then(ViewReport::mean_delay)),
            frame_delay_p50_s: delay(view.and_then(|view| view.delay(0.5))),
            frame_delay_p95_s: delay(view.and_then(|view| view.delay(0.95))),
            frame_delay_p99_s: delay(view.and_then(|view| view.delay(0.99))),
            frame_delay_max_s: delay(view.and_then(|view| view.delay(1.0))),
            freezes: pictures.map(|view| view.freezes),
            freeze_s: seconds(pictures.map(|view| view.frozen)),
            frames_shown: playout.map(|playout| playout.shown),
            frames_late: playout.map(|playout| playout.late),
            frames_undecodable: playout.map(|playout| playout.undecodable),
            key_frames: playout.map(|playout| playout.keys),
            jitter_buffer_delay_s: seconds(playout.and_then(|playout| playout.mean_buffered())),
            nacks: feedback.map(|feedback| feedback.nacks),
            plis: feedback.map(|feedback| feedback.plis),
            feedback_share: feedback.and_then(|sent| share(sent.bytes, sent.bytes + received.wire_bytes)),
            // The two ends' clocks are unrelated: of one-way delays only the changes are known.
            interarrival_mean_s: gap.map(|(mean, _)| mean),
            interarrival_sd_s: gap.map(|(_, deviation)| deviation),
            interarrival_p99_s: seconds(arrived.and_then(|arrived| arrived.gap(0.99))),
            interarrival_max_s: seconds(arrived.and_then(ArrivalReport::widest_gap)),
            // QUIC packets do not carry their send time
            jitter_s: arrived.filter(|_| model.transport.name() != "quic").and_then(ArrivalReport::mean_jitter),
            ..FlowRow::default()
        },
        last_s: received.last.as_secs_f64(),
        wire_bytes: received.wire_bytes,
        stream,
        ..Half::default()
    }
}

impl Table {
    /// The table of a recording.
    #[must_use]
    pub fn of(series: Series) -> Table {
        let columns = series.columns.into_iter().map(|(name, values)| (name.into_owned(), Numbers(values)));
        Table { table: series.table.to_owned(), columns: columns.collect() }
    }
}

/// Number of retransmitted packets of a flow over real QUIC: 0 for datagrams, which are sent once; unknown for streams,
/// which quinn does not report. `None` for other transports, whose machine counts them.
fn sent_again(model: &FlowModel) -> Option<Option<u64>> {
    let Transport::Quic { config, .. } = &model.transport else { return None };
    Some((config.track.carriage == Carriage::Datagrams).then_some(0))
}

impl Half {
    /// Blanks in a sender's recordings those retransmission and timeout columns that its row lacks too.
    fn blank_unreported_columns(&mut self, model: &FlowModel) {
        let Some(again) = sent_again(model) else { return };
        for table in &mut self.tables {
            let all = table.columns.last().map(|(_, Numbers(values))| values.clone()).unwrap_or_default();
            for (name, Numbers(values)) in &mut table.columns {
                match (table.table.as_str(), name.as_str()) {
                    ("losses", "timeout_series") => values.fill(f64::NAN),
                    ("losses", "packets_retransmitted") => values.fill(again.map_or(f64::NAN, |count| count as f64)),
                    ("sequence", "sequence_packets") if again.is_some() => values.clone_from(&all),
                    ("sequence", "sequence_packets") => values.fill(f64::NAN),
                    _ => {}
                }
            }
        }
    }

    /// For ends that share a clock: makes frame delays, which a receiver reports relative to the fastest frame,
    /// absolute.
    pub(super) fn align_delays(&mut self, sender: &Half) {
        let (Some(sent), Some(received)) = (sender.first_capture, self.first_capture) else { return };
        let later = f64::from(received.stamp.wrapping_sub(sent.stamp) as i32) / f64::from(sent.hz.max(1));
        self.add_to_delays(received.at_s - (sent.at_s + later));
    }

    /// Adds a number of seconds to all frame delays, in the row and over time.
    fn add_to_delays(&mut self, seconds: f64) {
        // only rounding makes one negative; NaN stays NaN
        let add = |delay: &mut f64| *delay = (*delay + seconds).clamp(0.0, f64::INFINITY);
        let row = &mut self.row;
        let delays = [
            &mut row.frame_delay_mean_s,
            &mut row.frame_delay_p50_s,
            &mut row.frame_delay_p95_s,
            &mut row.frame_delay_p99_s,
            &mut row.frame_delay_max_s,
        ];
        delays.into_iter().flatten().for_each(add);
        let columns =
            self.tables.iter_mut().filter(|table| table.table == "frames").flat_map(|table| &mut table.columns);
        let delays = columns.filter(|(name, _)| name.starts_with("frame_delay_"));
        delays.flat_map(|(_, Numbers(values))| values).for_each(add);
    }
}

/// The row of a flow that stops at `for_s`, from what both ends measured from `from_s` on. If a half is missing, its
/// columns stay empty.
#[must_use]
pub fn joined(sender: &Half, receiver: &Half, from_s: f64, for_s: f64) -> FlowRow {
    let (out, received) = (&sender.row, &receiver.row);
    // as in a simulated run: until the stop, or until the last arrival if that was later or everything has arrived
    let stop = if sender.finished { 0.0 } else { for_s };
    let until = stop.max(receiver.last_s).min(receiver.end_s.max(receiver.last_s));
    let start_s = out.start_s.max(received.start_s);
    let begin = start_s.max(from_s);
    let active_s = (until - begin).max(0.0);
    let per_second = |bytes: u64| if active_s > 0.0 { bytes as f64 * 8.0 / active_s } else { 0.0 };
    let lost = out.packets_sent.zip(received.packets_delivered).filter(|_| receiver.whole);
    let lost = lost.map(|(sent, received)| sent.saturating_sub(received));
    let of_sent = |packets: u64| out.packets_sent.filter(|sent| *sent > 0).map(|sent| packets as f64 / sent as f64);
    // a rate that both ends contribute to covers the same time span
    let send_rate = received
        .bytes_delivered
        .and(out.send_rate_bps)
        .filter(|_| sender.wire_bytes > 0)
        .map(|_| per_second(sender.wire_bytes));
    // the silence at the end of a flow that could have continued is an open gap
    let silence = until - receiver.last_s.max(begin);
    FlowRow {
        start_s,
        send_rate_bps: send_rate.or(out.send_rate_bps),
        // nothing is known if the receiver is gone
        goodput_bps: received.bytes_delivered.map_or(f64::NAN, per_second),
        throughput_bps: (receiver.wire_bytes > 0).then(|| per_second(receiver.wire_bytes)),
        // the kernel's TCP knows some of it at the sender
        packets_delivered: received.packets_delivered.or(out.packets_delivered),
        packets_lost: lost.or(out.packets_lost),
        loss_rate: lost.and_then(of_sent).or(out.loss_rate),
        receiving_ratio: received.packets_delivered.and_then(of_sent).or(out.receiving_ratio),
        ecn_marks: received.ecn_marks.or(out.ecn_marks),
        bytes_delivered: received.bytes_delivered,
        frames_complete: received.frames_complete,
        complete_share: received
            .frames_complete
            .zip(out.frames_sent)
            .and_then(|(complete, sent)| share(complete, sent)),
        frame_delay_mean_s: received.frame_delay_mean_s,
        frame_delay_p50_s: received.frame_delay_p50_s,
        frame_delay_p95_s: received.frame_delay_p95_s,
        frame_delay_p99_s: received.frame_delay_p99_s,
        frame_delay_max_s: received.frame_delay_max_s,
        freezes: received.freezes,
        freeze_s: received.freeze_s,
        frames_shown: received.frames_shown,
        frames_late: received.frames_late,
        frames_undecodable: received.frames_undecodable,
        key_frames: received.key_frames,
        jitter_buffer_delay_s: received.jitter_buffer_delay_s,
        nacks: received.nacks,
        plis: received.plis,
        feedback_share: received.feedback_share,
        interarrival_mean_s: received.interarrival_mean_s,
        interarrival_sd_s: received.interarrival_sd_s,
        interarrival_p99_s: received.interarrival_p99_s,
        interarrival_max_s: received.interarrival_max_s.map(|widest| widest.max(silence)),
        jitter_s: received.jitter_s,
        active_s,
        ended: Some(if sender.well { receiver.ended.clone() } else { sender.ended.clone() }),
        ..out.clone()
    }
}

/// Names of the tables that ends record, since the control channel carries them as text.
const TABLES: [&str; 12] =
    ["cwnd", "rate", "rtcp", "sequence", "losses", "acks", "tfrc", "playout", "arrivals", "frames", "kernel", SENDING];

fn known(table: &str) -> Option<&'static str> {
    TABLES.into_iter().find(|known| *known == table)
}

/// Whether `name` is valid for a column, whatever its gauge. One-way delays are excluded: the ends' clocks are
/// unrelated.
pub(super) fn is_column(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    plain && !name.starts_with('_') && (1..=64).contains(&name.len()) && !name.starts_with("owd_")
}

/// Both ends' recordings in the form of a simulated run's. Each end's times count from the start of its own data.
#[must_use]
pub fn recordings(sender: &Half, receiver: &Half, flow: &str, instance: u32) -> Vec<Series> {
    let labels = || vec![("flow", flow.to_owned()), ("instance", instance.to_string())];
    // infinities become null on the control channel, so they are NaN here too
    let finite = |value: &f64| if value.is_finite() { *value } else { f64::NAN };
    let numbers = |Numbers(values): &Numbers| values.iter().map(finite).collect::<Vec<f64>>();
    let mut series: Vec<Series> = Vec::new();
    let mut sending: Option<Vec<f64>> = None;
    // The kernel's sender has a rate of acknowledged bytes too: the receiver's is preferred.
    let received = receiver.tables.iter().any(|table| table.table == "rate");
    let sent = sender.tables.iter().filter(|table| !(received && table.table == "rate"));
    for table in sent.chain(&receiver.tables) {
        let Some(name) = known(&table.table) else { continue };
        let columns = table.columns.iter().filter(|(name, _)| is_column(name));
        let columns: Vec<_> = columns.map(|(name, values)| (name.clone().into(), numbers(values))).collect();
        if name == SENDING {
            sending = columns.into_iter().find(|(name, _)| name == "send_rate_bps").map(|(_, values)| values);
            continue;
        }
        series.push(Series { table: name, labels: labels(), columns });
    }
    if let Some(rate) = series.iter_mut().find(|one| one.table == "rate") {
        // an end that ran longer has more samples: limit both tables to the shorter one
        let rows = rate.columns.first().map_or(0, |(_, values)| values.len());
        let mut sending = sending.unwrap_or_default();
        sending.resize(rows, f64::NAN);
        rate.columns.push(("send_rate_bps".into(), sending));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a common clock, the delay that a receiver reports relative to the fastest frame becomes absolute, in its
    /// row and over time.
    #[test]
    fn delays_of_frames_are_whole_by_one_clock() {
        let capture = |stamp, at_s| Some(FirstCapture { stamp, hz: 1000, at_s });
        let sender = Half { first_capture: capture(10, 5.0), ..Half::default() };
        let columns = [("time_s", [0.1, 0.2]), ("frame_delay_s", [0.01, f64::NAN]), ("frame_delay_max_s", [0.02, 0.0])];
        let columns = columns.map(|(name, values)| (name.to_owned(), Numbers(values.to_vec())));
        let table = |name: &str| Table { table: name.to_owned(), columns: columns.to_vec() };
        let mut receiver = Half {
            first_capture: capture(20, 5.05),
            row: FlowRow { frame_delay_mean_s: Some(0.01), ..FlowRow::default() },
            tables: vec![table("frames"), table("rate")],
            ..Half::default()
        };
        receiver.align_delays(&sender);
        // captured 10 ms after the sender's first, and received at 50 ms
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        near(receiver.row.frame_delay_mean_s.unwrap(), 0.05);
        let [(_, times), (_, delays), (_, max)] = &receiver.tables[0].columns[..] else { panic!("{receiver:?}") };
        assert_eq!(times.0, [0.1, 0.2]);
        near(delays.0[0], 0.05);
        assert!(delays.0[1].is_nan());
        near(max.0[0], 0.06);
        assert_eq!(receiver.tables[1].columns[2].1.0, [0.02, 0.0]);
    }

    #[test]
    fn what_may_be_under_way_is_not_lost() {
        let row = |sent, delivered| FlowRow { packets_sent: sent, packets_delivered: delivered, ..FlowRow::default() };
        let sender = Half { row: row(Some(100), None), ..Half::default() };
        let receiver = |whole| Half { row: row(None, Some(90)), whole, ..Half::default() };
        let of = |row: FlowRow| (row.packets_lost, row.loss_rate, row.receiving_ratio);
        assert_eq!(of(joined(&sender, &receiver(true), 0.0, 1.0)), (Some(10), Some(0.1), Some(0.9)));
        assert_eq!(of(joined(&sender, &receiver(false), 0.0, 1.0)), (None, None, Some(0.9)));
    }
}
