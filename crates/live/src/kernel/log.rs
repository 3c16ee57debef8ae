//! The log of one connection of the kernel's TCP: readings over time, and the measures computed from them.
//!
//! Bytes are payload. The kernel's counts of acknowledged and received bytes include the SYN and the FIN, one byte
//! each. Its count of sent bytes does not, and is at least the payload acknowledged: limiting the acknowledged bytes by
//! the sent ones removes the SYN and FIN once everything is acknowledged. Until then a count may be one or two bytes
//! too high.

use super::tcp_info::{CcInfo, State, TcpInfo};
use crate::results::FlowRow;
use paceline_sim::Series;
use paceline_units::{Rate, Size, Span, Time};

/// Columns of the recording `kernel`. NaN: the kernel does not report the value. `state` and `ca_state` are the
/// kernel's numbers; `app_limited` is 0 or 1.
pub const KERNEL: &[&str] = &[
    "time_s",
    "state",
    "ca_state",
    "cwnd_packets",
    "ssthresh_packets",
    "in_flight_packets",
    "srtt_s",
    "rttvar_s",
    "rtt_min_s",
    "rcv_rtt_s",
    "rto_s",
    "mss_bytes",
    "delivery_rate_bps",
    "pacing_rate_bps",
    "app_limited",
    "retransmits",
    "lost_packets",
    "delivered_packets",
    "delivered_ce_packets",
    "sent_packets",
    "acked_bytes",
    "received_bytes",
    "notsent_bytes",
    "peer_window_bytes",
    "timeouts",
    "busy_s",
    "rwnd_limited_s",
    "sndbuf_limited_s",
    "cc_bandwidth_bps",
    "cc_rtt_min_s",
    "cc_pacing_gain",
    "cc_cwnd_gain",
];

/// Columns of the recording `cwnd` of a kernel flow.
pub const WINDOW: &[&str] = &["time_s", "cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets"];

/// Columns of the recording `rate` of a kernel flow.
pub const RATE: &[&str] = &["time_s", "goodput_bps", "send_rate_bps"];

/// One reading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Time of the reading.
    pub time: Time,
    /// The kernel's `tcp_info`.
    pub info: TcpInfo,
    /// The congestion control's report about itself, if it has one.
    pub cc: Option<CcInfo>,
}

impl Sample {
    /// Payload that the peer has acknowledged so far.
    #[must_use]
    pub fn acked(&self) -> u64 {
        let info = &self.info;
        match (info.bytes_acked, info.bytes_sent, info.bytes_retransmitted) {
            (Some(acked), Some(sent), Some(again)) => acked.min(sent.saturating_sub(again)),
            (acked, ..) => acked.unwrap_or(0),
        }
    }

    /// Payload received in order so far. The FIN is subtracted in states that imply one.
    #[must_use]
    pub fn received(&self) -> u64 {
        let fin = matches!(self.info.state, Some(State::CloseWait | State::LastAck | State::Closing | State::TimeWait));
        self.info.bytes_received.unwrap_or(0).saturating_sub(u64::from(fin))
    }

    /// Segments in flight, as the kernel counts them: sent, not acknowledged, not considered lost.
    #[must_use]
    pub fn in_flight(&self) -> Option<u32> {
        let i = &self.info;
        let gone = i.sacked_packets?.saturating_add(i.lost_packets?);
        Some(i.unacked_packets?.saturating_sub(gone).saturating_add(i.retrans_packets?))
    }

    fn row(&self) -> [f64; KERNEL.len()] {
        let i = &self.info;
        let count = |n: Option<u32>| n.map_or(f64::NAN, f64::from);
        let span = |n: Option<Span>| n.map_or(f64::NAN, Span::as_secs_f64);
        let rate = |n: Option<Rate>| n.map_or(f64::NAN, Rate::bps);
        let size = |n: Option<Size>| n.map_or(f64::NAN, |n| n.bytes() as f64);
        let (bandwidth, cc_rtt, pacing_gain, cwnd_gain) = match self.cc {
            Some(CcInfo::Bbr { bandwidth, min_rtt, pacing_gain, cwnd_gain }) => {
                (bandwidth.bps(), min_rtt.as_secs_f64(), pacing_gain, cwnd_gain)
            }
            Some(CcInfo::Vegas { base_rtt, .. }) => (f64::NAN, span(base_rtt), f64::NAN, f64::NAN),
            None => (f64::NAN, f64::NAN, f64::NAN, f64::NAN),
        };
        [
            self.time.as_secs_f64(),
            i.state.map_or(f64::NAN, |state| state.number().into()),
            i.ca_state.map_or(f64::NAN, f64::from),
            count(i.cwnd_packets),
            count(i.ssthresh_packets),
            count(self.in_flight()),
            span(i.srtt),
            span(i.rttvar),
            span(i.min_rtt),
            span(i.rcv_rtt),
            span(i.rto),
            size(i.snd_mss),
            rate(i.delivery_rate),
            rate(i.pacing_rate),
            i.app_limited.map_or(f64::NAN, f64::from),
            count(i.retransmitted_packets),
            count(i.lost_packets),
            count(i.delivered_packets),
            count(i.delivered_ce_packets),
            count(i.data_segs_out),
            self.acked() as f64,
            self.received() as f64,
            size(i.notsent),
            size(i.snd_wnd),
            i.timeouts.map_or(f64::NAN, f64::from),
            span(i.busy),
            span(i.rwnd_limited),
            span(i.sndbuf_limited),
            bandwidth,
            cc_rtt,
            pacing_gain,
            cwnd_gain,
        ]
    }
}

/// The direction of most of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From this host.
    Out,
    /// To this host.
    In,
}

/// The readings of one connection, in order of time.
#[derive(Clone, Debug)]
pub struct Log {
    /// The reading that counts start from: the connection's beginning or, if the connection existed before, its first
    /// reading.
    start: Sample,
    /// Where measuring began; by default the same as `start`.
    measured: Sample,
    samples: Vec<Sample>,
    /// Integral of the window, and the time it covers.
    cwnd: (f64, f64),
    cwnd_max: Option<u32>,
    srtt: (f64, f64),
    srtt_max: Option<Span>,
    rtt_min: Option<Span>,
}

impl Log {
    /// The log of a connection that began at `start`, all counts zero.
    #[must_use]
    pub fn of_new(start: Time) -> Log {
        Log::since(Sample { time: start, info: TcpInfo::default(), cc: None })
    }

    /// The log of a connection that existed before: what it counted up to the first reading is excluded.
    #[must_use]
    pub fn of_old(first: Sample) -> Log {
        let mut log = Log::since(first);
        log.push(first);
        log
    }

    fn since(start: Sample) -> Log {
        Log {
            start,
            measured: start,
            samples: Vec::new(),
            cwnd: (0.0, 0.0),
            cwnd_max: None,
            srtt: (0.0, 0.0),
            srtt_max: None,
            rtt_min: None,
        }
    }

    /// Excludes everything before the latest reading from the measures; the recordings keep it.
    pub fn measure_from_here(&mut self) {
        let Some(&last) = self.samples.last() else { return };
        self.measured = last;
        (self.cwnd, self.srtt) = ((0.0, 0.0), (0.0, 0.0));
        (self.cwnd_max, self.srtt_max, self.rtt_min) = (last.info.cwnd_packets, last.info.srtt, last.info.min_rtt);
    }

    /// Adds a reading, which must not be earlier than the previous one.
    pub fn push(&mut self, sample: Sample) {
        // The earlier value holds until the next reading.
        if let Some(before) = self.samples.last() {
            let length = sample.time.since(before.time).as_secs_f64();
            if let Some(cwnd) = before.info.cwnd_packets {
                self.cwnd = (self.cwnd.0 + length * f64::from(cwnd), self.cwnd.1 + length);
            }
            if let Some(srtt) = before.info.srtt {
                self.srtt = (self.srtt.0 + length * srtt.as_secs_f64(), self.srtt.1 + length);
            }
        }
        self.cwnd_max = self.cwnd_max.max(sample.info.cwnd_packets);
        self.srtt_max = self.srtt_max.max(sample.info.srtt);
        self.rtt_min = self.rtt_min.into_iter().chain(sample.info.min_rtt).min();
        self.samples.push(sample);
    }

    /// Removes every other reading, but keeps the first and the last. Measures of the whole connection do not change.
    pub fn thin(&mut self) {
        let last = self.samples.len().saturating_sub(1);
        let mut at = 0;
        self.samples.retain(|_| {
            at += 1;
            at % 2 == 1 || at - 1 == last
        });
    }

    /// The readings.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The latest reading.
    #[must_use]
    pub fn last(&self) -> Option<&Sample> {
        self.samples.last()
    }

    /// When the connection began, or was first read.
    #[must_use]
    pub fn start(&self) -> Time {
        self.start.time
    }

    /// Payload acknowledged and received since measuring began.
    #[must_use]
    pub fn moved(&self) -> (u64, u64) {
        let (last, first) = (self.last().unwrap_or(&self.start), &self.measured);
        (last.acked().saturating_sub(first.acked()), last.received().saturating_sub(first.received()))
    }

    /// The direction of most of the payload.
    #[must_use]
    pub fn direction(&self) -> Direction {
        let (acked, received) = self.moved();
        if received > acked { Direction::In } else { Direction::Out }
    }

    /// Rates of payload acknowledged and received over the last `span` of the log.
    #[must_use]
    pub fn recent(&self, span: Span) -> (Rate, Rate) {
        let Some(last) = self.last() else { return (Rate(0), Rate(0)) };
        let from = last.time.0.saturating_sub(span.0);
        let at = self.samples.partition_point(|sample| sample.time.0 < from);
        let first = self.samples.get(at.saturating_sub(1)).unwrap_or(&self.start);
        let length = last.time.since(first.time).as_secs_f64();
        let rate = |bytes: u64| Rate::from_bps(if length > 0.0 { (bytes as f64 * 8.0 / length) as u64 } else { 0 });
        (rate(last.acked().saturating_sub(first.acked())), rate(last.received().saturating_sub(first.received())))
    }

    /// The recordings `kernel`, `cwnd` and `rate` of the flow. The goodput is that of `direction`.
    #[must_use]
    pub fn series(&self, flow: &str, instance: u32, direction: Direction) -> Vec<Series> {
        let labels = || vec![("flow", flow.to_owned()), ("instance", instance.to_string())];
        let mut kernel = Series::new("kernel", labels(), KERNEL);
        let mut cwnd = Series::new("cwnd", labels(), WINDOW);
        let mut rate = Series::new("rate", labels(), RATE);
        let mut before = &self.start;
        for sample in &self.samples {
            let row = sample.row();
            push(&mut kernel, &row);
            push(&mut cwnd, &[row[0], row[3], row[4], row[6], row[5]]);
            let length = sample.time.since(before.time).as_secs_f64();
            if length > 0.0 {
                let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / length;
                let goodput = match direction {
                    Direction::Out => per_second(sample.acked(), before.acked()),
                    Direction::In => per_second(sample.received(), before.received()),
                };
                let sending = match (direction, sample.info.bytes_sent) {
                    (Direction::Out, Some(sent)) => per_second(sent, before.info.bytes_sent.unwrap_or(0)),
                    _ => f64::NAN,
                };
                push(&mut rate, &[row[0], goodput, sending]);
            }
            before = sample;
        }
        vec![kernel, cwnd, rate]
    }

    /// The measures of the flow in `direction`, with empty names. The flow was active until `end`.
    #[must_use]
    pub fn row(&self, direction: Direction, end: Time) -> FlowRow {
        let last = self.last().unwrap_or(&self.start);
        let active_s = end.0.saturating_sub(self.measured.time.0) as f64 / 1e9;
        let per_second = |bytes: u64| if active_s > 0.0 { bytes as f64 * 8.0 / active_s } else { 0.0 };
        let (acked, received) = self.moved();
        let bytes = if direction == Direction::Out { acked } else { received };
        let mut row = FlowRow {
            profile: "kernel".to_owned(),
            start_s: self.start.time.as_secs_f64(),
            active_s,
            goodput_bps: per_second(bytes),
            bytes_delivered: Some(bytes),
            ..FlowRow::default()
        };
        if direction == Direction::In {
            // The peer's TCP state is not visible from here.
            row.packets_delivered = difference(last.info.data_segs_in, self.measured.info.data_segs_in);
            return row;
        }
        let (now, then) = (&last.info, &self.measured.info);
        let mean = |(sum, length): (f64, f64)| (length > 0.0).then(|| sum / length);
        row.send_rate_bps = now.bytes_sent.map(|n| per_second(n.saturating_sub(then.bytes_sent.unwrap_or(0))));
        row.packets_sent = difference(now.data_segs_out, then.data_segs_out);
        row.packets_delivered = difference(now.delivered_packets, then.delivered_packets);
        row.packets_retransmitted = difference(now.retransmitted_packets, then.retransmitted_packets);
        row.ecn_marks = difference(now.delivered_ce_packets, then.delivered_ce_packets);
        row.timeouts = difference(now.timeouts.map(u32::from), then.timeouts.map(u32::from));
        row.timeout_series = difference(now.timeout_series.map(u32::from), then.timeout_series.map(u32::from));
        row.rtt_mean_s = mean(self.srtt).or(now.srtt.map(Span::as_secs_f64));
        row.rtt_min_s = self.rtt_min.map(Span::as_secs_f64);
        row.rtt_max_s = self.srtt_max.map(Span::as_secs_f64);
        row.cwnd_mean_packets = mean(self.cwnd).or(now.cwnd_packets.map(f64::from));
        row.cwnd_max_packets = self.cwnd_max.map(f64::from);
        row
    }
}

/// By how much a count has grown; the kernel's 32-bit counts wrap.
fn difference(now: Option<u32>, then: Option<u32>) -> Option<u64> {
    now.map(|now| u64::from(now.wrapping_sub(then.unwrap_or(0))))
}

fn push(series: &mut Series, row: &[f64]) {
    for ((_, column), value) in series.columns.iter_mut().zip(row) {
        column.push(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ms: u64, acked: u64, cwnd: u32) -> Sample {
        let info = TcpInfo {
            state: Some(State::Established),
            cwnd_packets: Some(cwnd),
            srtt: Some(Span::from_millis(20)),
            min_rtt: Some(Span::from_millis(10 + u64::from(cwnd))),
            bytes_acked: Some(acked + 1),
            bytes_sent: Some(acked + 5000),
            bytes_retransmitted: Some(5000),
            data_segs_out: Some(4),
            ..TcpInfo::default()
        };
        Sample { time: Time(ms * 1_000_000), info, cc: None }
    }

    #[test]
    fn rates_sum_up_to_the_bytes_moved() {
        let mut log = Log::of_new(Time::ZERO);
        for (ms, acked, cwnd) in [(10, 0, 10), (20, 14_000, 20), (40, 20_000, 30), (45, 20_000, 5)] {
            log.push(sample(ms, acked, cwnd));
        }
        assert_eq!(log.moved(), (20_000, 0), "the SYN's byte is not payload");
        let series = log.series("f", 0, log.direction());
        let rate = &series[2].columns;
        let times = &rate[0].1;
        let bits: f64 = (0..4).map(|i| (times[i] - if i > 0 { times[i - 1] } else { 0.0 }) * rate[1].1[i]).sum();
        assert!((bits / 8.0 - 20_000.0).abs() < 1e-6);
        let row = log.row(Direction::Out, Time(50_000_000));
        assert_eq!(row.cwnd_max_packets, Some(30.0));
        // 10 for 10 ms, 20 for 20 ms, 30 for 5 ms
        assert!((row.cwnd_mean_packets.unwrap() - (0.1 + 0.4 + 0.15) / 0.035).abs() < 1e-9);
        assert_eq!(row.rtt_min_s, Some(0.015));
        assert!((row.goodput_bps - 20_000.0 * 8.0 / 0.05).abs() < 1e-6);
        let (recent, _) = log.recent(Span::from_millis(20));
        assert_eq!(recent, Rate::from_bps(6000 * 8 * 40));
    }

    #[test]
    fn what_was_before_is_left_out_and_thinning_keeps_the_ends() {
        let mut log = Log::of_old(sample(100, 50_000, 10));
        for i in 1..=9 {
            log.push(sample(100 + i * 10, 50_000 + i * 1000, 10));
        }
        assert_eq!(log.moved().0, 9000);
        let before = log.row(Direction::Out, Time(200_000_000));
        log.thin();
        let times: Vec<u64> = log.samples().iter().map(|s| s.time.0 / 1_000_000).collect();
        assert_eq!(times, [100, 120, 140, 160, 180, 190]);
        let after = log.row(Direction::Out, Time(200_000_000));
        assert_eq!((before.goodput_bps, before.cwnd_mean_packets), (after.goodput_bps, after.cwnd_mean_packets));
    }

    #[test]
    fn what_came_before_measuring_is_in_the_recordings_alone() {
        let mut log = Log::of_new(Time::ZERO);
        for (ms, acked, cwnd) in [(10, 10_000, 40), (20, 20_000, 10)] {
            log.push(sample(ms, acked, cwnd));
        }
        log.measure_from_here();
        log.push(sample(40, 50_000, 20));
        let row = log.row(Direction::Out, Time(40_000_000));
        assert_eq!((row.bytes_delivered, row.active_s), (Some(30_000), 0.02));
        assert_eq!((row.cwnd_mean_packets, row.cwnd_max_packets), (Some(10.0), Some(20.0)));
        assert_eq!(log.series("f", 0, Direction::Out)[2].columns[0].1.len(), 3);
    }

    #[test]
    fn an_empty_log_says_nothing() {
        let log = Log::of_new(Time::ZERO);
        assert_eq!((log.moved(), log.direction()), ((0, 0), Direction::Out));
        assert_eq!(log.row(Direction::Out, Time::ZERO).goodput_bps, 0.0);
        assert_eq!(log.series("f", 0, Direction::In)[0].columns[0].1.len(), 0);
    }
}
