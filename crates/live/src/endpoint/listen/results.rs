//! A listener's results as tables and notes.

use super::{Listening, Recorded, Sender};
use crate::endpoint::outcome::{LiveRun, Notes};
use crate::endpoint::udp::UdpPort;
use crate::host::HostReport;
use crate::results::{FlowRow, LiveOutput, LiveSummary};
use paceline_apps::share;
use paceline_flow::rtp::{MAX_STREAMS, ReceivedStream};
use paceline_sim::Series;
use paceline_units::{Span, Time};

impl Listening {
    /// One flow per stream, in the order of their ports and first packets.
    pub(super) fn results(self, ended: &str, host: Option<HostReport>) -> LiveRun {
        let begin = self.begin;
        let end = self.streams().map(|stream| stream.last).max().unwrap_or(begin);
        let (mut rows, mut series): (Vec<FlowRow>, Vec<Series>) = Default::default();
        for sender in self.senders_of_host() {
            for (at, stream) in sender.listener.streams().iter().enumerate().filter(|(_, stream)| stream.is_valid()) {
                let flow = name(stream);
                // two ports may have streams with the same SSRC
                let instance = rows.iter().filter(|row| row.flow == flow).count() as u32;
                // a stream that began after the last row has no recording
                series.extend(sender.recorded.get(at).map(|recorded| rates(&flow, instance, recorded)));
                rows.push(FlowRow { instance, ..row(sender, stream, begin, ended) });
            }
        }
        let from = self.senders_of_host().first().map_or_else(String::new, |sender| sender.from.to_string());
        let mut summary = LiveSummary::new("receive", Time::ZERO + end.since(begin), rows);
        summary.duration_s = self.options.lasts.map(Span::as_secs_f64);
        summary.notes = self.notes(ended);
        LiveRun { output: LiveOutput { summary, series }, notes: Notes { server: from, host, flows: Vec::new() } }
    }

    fn notes(&self, ended: &str) -> Vec<String> {
        let sent = self.senders_of_host().iter().map(|sender| sender.listener.reports_sent());
        let (reports, bytes) = sent.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let mut notes = vec![format!("{ended}; {reports} packets of RTCP sent, {bytes} bytes")];
        for stream in self.streams().filter(|stream| stream.restarts() > 0) {
            let (name, times) = (name(stream), stream.restarts());
            let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
            notes.push(format!("{name}: its numbers began anew {times}; what was lost there is not counted"));
        }
        let unsent: u64 = self.ports.iter().map(UdpPort::refused).sum();
        if unsent > 0 {
            let host = self.chosen.map_or_else(String::new, |host| format!(" to {host}"));
            notes.push(format!("{unsent} packets of RTCP could not be sent{host}"));
        }
        if self.without_cname > 0 {
            let count = self.without_cname;
            notes.push(format!("{count} packets of RTCP lacked a CNAME (RFC 3550 section 6.1), and were read"));
        }
        let (others, garbage) = (self.other_packets, self.garbage);
        if others + garbage > 0 {
            notes.push(format!("Left out: {others} packets of others, {garbage} that are neither RTP nor RTCP"));
        }
        let beyond: u64 = self.senders_of_host().iter().map(|sender| sender.listener.beyond()).sum();
        if beyond > 0 {
            notes.push(format!("Left out: {beyond} packets of streams after the first {MAX_STREAMS} of a port"));
        }
        notes
    }
}

/// A stream's name as a flow: its SSRC in hexadecimal.
pub(super) fn name(stream: &ReceivedStream) -> String {
    format!("{:08x}", stream.ssrc.0)
}

fn row(sender: &Sender, stream: &ReceivedStream, begin: Time, ended: &str) -> FlowRow {
    let received: u64 = sender.listener.streams().iter().map(|stream| stream.wire_bytes).sum();
    let (_, sent) = sender.listener.reports_sent();
    let lasts = stream.last.since(stream.first).as_secs_f64();
    let per_second = |bytes: u64| bytes as f64 * 8.0 / lasts;
    let lost = loss(stream);
    FlowRow {
        flow: name(stream),
        group: "rtp".to_owned(),
        cc: "unknown".to_owned(),
        profile: "receive".to_owned(),
        from: sender.from.to_string(),
        to: "here".to_owned(),
        start_s: stream.first.since(begin).as_secs_f64(),
        goodput_bps: per_second(stream.bytes),
        throughput_bps: Some(per_second(stream.wire_bytes)),
        packets_delivered: Some(stream.packets),
        packets_lost: lost.map(|(count, _)| count),
        loss_rate: lost.map(|(_, share)| share),
        receiving_ratio: lost.map(|(_, share)| 1.0 - share),
        bytes_delivered: Some(stream.bytes),
        ecn_marks: Some(stream.marks),
        jitter_s: Some(stream.jitter_s()),
        feedback_share: share(sent, sent + received),
        active_s: lasts,
        ended: Some(if stream.has_left() { super::LEFT } else { ended }.to_owned()),
        ..FlowRow::default()
    }
}

fn rates(flow: &str, instance: u32, recorded: &Recorded) -> Series {
    let labels = vec![("flow", flow.to_owned()), ("instance", instance.to_string())];
    let columns = vec![("time_s".into(), recorded.times.clone()), ("goodput_bps".into(), recorded.rates.clone())];
    Series { table: "rate", labels, columns }
}

/// Packets lost, and their share of the expected ones. Duplicates lower the count, which is limited to zero here.
pub(super) fn loss(stream: &ReceivedStream) -> Option<(u64, f64)> {
    let lost = u64::try_from(stream.lost()).unwrap_or(0);
    let expected = stream.packets + lost;
    stream.is_valid().then(|| (lost, lost as f64 / expected as f64))
}
