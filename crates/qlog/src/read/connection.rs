//! A connection that has been read to its end: its measures and tables.

use super::state::{End, Mean, State};
use super::trace::Head;
use paceline_units::{Span, Time};

/// Direction of most of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the logging end.
    Out,
    /// To the logging end.
    In,
}

/// How a log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With the connection closed.
    Closed,
    /// With the connection open.
    Open,
    /// In the middle of an event.
    Cut,
}

/// Columns over time, with their units in their names; NaN where the log has no value.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// "qlog", "cwnd" or "rate".
    pub name: &'static str,
    /// Its columns, all of one length.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

/// Measures of a connection; `None` for what is neither logged nor derivable. docs/qlog.md defines them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[allow(missing_docs, reason = "the names are those of docs/measures.md")]
pub struct Measures {
    pub packets_sent: Option<u64>,
    /// Bytes of the packets sent.
    pub sent_bytes: Option<u64>,
    /// Packets that the peer has acknowledged.
    pub packets_delivered: Option<u64>,
    pub packets_lost: Option<u64>,
    pub packets_retransmitted: Option<u64>,
    pub packets_received: Option<u64>,
    /// Bytes of the packets received.
    pub received_bytes: Option<u64>,
    /// Payload that the peer has acknowledged.
    pub delivered_bytes: Option<u64>,
    /// Payload received.
    pub taken_bytes: Option<u64>,
    pub ecn_marks: Option<u64>,
    pub timeouts: Option<u64>,
    pub rtt_mean_s: Option<f64>,
    pub rtt_min_s: Option<f64>,
    pub rtt_max_s: Option<f64>,
    pub cwnd_mean_packets: Option<f64>,
    pub cwnd_max_packets: Option<f64>,
}

/// One connection's results.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// The file's name, as given.
    pub file: String,
    /// The vantage point: "client", "server", "network" or "unknown".
    pub vantage: String,
    /// The log's name for the connection, usually its first destination connection ID.
    pub group: Option<String>,
    /// The logging end: address and port, else its vantage point.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The controller, if the log names it.
    pub congestion_control: Option<String>,
    /// Time of its first event.
    pub start: Time,
    /// Time of its last event.
    pub end: Time,
    /// How its log ended.
    pub ended: Ended,
    /// Direction of most of the payload.
    pub way: Way,
    /// Packet size, for windows in packets.
    pub packet_bytes: Option<u64>,
    /// Measures of the whole connection.
    pub measures: Measures,
    /// Whether the log has the congestion window.
    pub has_window: bool,
    /// What is not logged but derived from the packets: "round-trip times", "bytes in flight", "losses".
    pub derived: Vec<&'static str>,
    /// Whether round-trip times were logged in seconds.
    pub rtt_in_seconds: bool,
    /// Tables over time.
    pub tables: Vec<Table>,
}

/// Columns of the table `qlog`.
pub const QLOG: [&str; 22] = [
    "time_s",
    "state",
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    "latest_rtt_s",
    "srtt_s",
    "rttvar_s",
    "rtt_min_s",
    "sample_rtt_s",
    "pacing_rate_bps",
    "pto_count",
    "sent_packets",
    "sent_bytes",
    "acked_packets",
    "acked_bytes",
    "lost_packets",
    "received_packets",
    "received_bytes",
    "delivered_bytes",
    "taken_bytes",
    "resent_packets",
];

impl State {
    /// Finishes the connection; `shift` is the start of the trace's clock on the common clock.
    pub fn finish(
        mut self,
        file: &str,
        head: &Head,
        group: Option<String>,
        cut: bool,
        (shift, every): (Span, Span),
    ) -> Connection {
        self.settle();
        let vantage = head.vantage.as_str();
        let (mut contents, counts) = (self.contents, self.counts);
        // Paceline logs every loss, so a log without any had none.
        contents.losses |= head.ours && contents.acks;
        let packet_bytes = self.datagram.or((self.greatest_packet > 0).then_some(self.greatest_packet));
        let own_rtt = !contents.rtt && self.derived.latest.is_some();
        let own_in_flight = !contents.in_flight && contents.acks && contents.sizes;
        let forgot = self.spaces.iter().any(|space| space.forgot);
        let overtaken: usize = self.spaces.iter().map(super::packets::Space::overtaken).sum();
        let knows_payload = contents.sent_frames && contents.acks || contents.received_frames;
        let out = if knows_payload { counts.delivered >= counts.taken } else { counts.sent.1 >= counts.received.1 };
        let own_losses = !contents.losses && contents.acks && contents.sent && !forgot;
        // Losses are not derived for a connection that mostly receives.
        let derived =
            [(own_rtt, "round-trip times"), (own_in_flight, "bytes in flight"), (own_losses && out, "losses")];
        let some = |there: bool, value: u64| there.then_some(value);
        let (srtt, latest): (Mean, Mean) =
            if own_rtt { (self.derived_srtt, self.derived_latest) } else { (self.srtt, self.srtt) };
        let packets = |bytes: Option<f64>| Some(bytes? / packet_bytes? as f64);
        let measures = Measures {
            packets_sent: some(contents.sent, counts.sent.0),
            sent_bytes: some(contents.sent && contents.sizes, counts.sent.1),
            packets_delivered: some(contents.sent && contents.acks, counts.acked.0),
            packets_lost: some(contents.losses, counts.lost).or(some(own_losses, overtaken as u64)),
            packets_retransmitted: some(contents.sent_frames, counts.resent),
            packets_received: some(counts.received.0 > 0 || contents.sent, counts.received.0),
            received_bytes: some(contents.sizes, counts.received.1),
            delivered_bytes: some(contents.sent_frames && contents.acks, counts.delivered),
            taken_bytes: some(contents.received_frames, counts.taken),
            ecn_marks: counts.ce,
            timeouts: some(contents.timers || contents.pto_count || counts.timeouts > 0, counts.timeouts),
            rtt_mean_s: srtt.value(),
            rtt_min_s: if own_rtt { self.derived.min_rtt } else { self.logged.rtt.min_rtt.or(self.min_logged_rtt) },
            rtt_max_s: latest.max,
            cwnd_mean_packets: packets(self.cwnd.value()),
            cwnd_max_packets: packets(self.cwnd.max),
        };
        let way = if out { Way::Out } else { Way::In };
        let other = |vantage: &str| match vantage {
            "client" => "server",
            "server" => "client",
            _ => "peer",
        };
        let name = |end: &End, else_: &str| match (&end.address, end.port) {
            (Some(address), Some(port)) if address.contains(':') => format!("[{address}]:{port}"),
            (Some(address), Some(port)) => format!("{address}:{port}"),
            (Some(address), None) => address.clone(),
            (None, _) => else_.to_owned(),
        };
        let moved = |time: Time| Time(time.0.saturating_add(shift.0));
        let (start, end) = (moved(self.start), moved(self.now));
        let which = Which {
            rtt: own_rtt,
            in_flight: own_in_flight,
            payload: if out { measures.delivered_bytes.is_some() } else { measures.taken_bytes.is_some() },
            sent: measures.sent_bytes.is_some() && out,
            received: measures.received_bytes.is_some() && !out,
            losses: contents.losses,
            way,
        };
        Connection {
            file: file.to_owned(),
            vantage: vantage.to_owned(),
            group,
            local: name(&self.ends[0], if vantage == "client" || vantage == "server" { vantage } else { "local" }),
            remote: name(&self.ends[1], other(vantage)),
            congestion_control: self.congestion_control,
            start,
            end,
            ended: if self.closed {
                Ended::Closed
            } else if cut {
                Ended::Cut
            } else {
                Ended::Open
            },
            way,
            packet_bytes,
            measures,
            has_window: self.logged.cwnd.is_some(),
            derived: derived.iter().filter(|(own, _)| *own).map(|(_, name)| *name).collect(),
            rtt_in_seconds: self.seconds == Some(true),
            tables: tables(self.rows.until(self.now), self.start, (shift, every), packet_bytes, &which),
        }
    }
}

/// Which of a row's values the tables use.
struct Which {
    rtt: bool,
    in_flight: bool,
    payload: bool,
    sent: bool,
    received: bool,
    losses: bool,
    way: Way,
}

fn tables(
    rows: Vec<super::rows::Row>,
    start: Time,
    (shift, every): (Span, Span),
    packet_bytes: Option<u64>,
    which: &Which,
) -> Vec<Table> {
    let empty = |name, columns: &[&'static str]| Table {
        name,
        columns: columns.iter().map(|column| (*column, Vec::with_capacity(rows.len()))).collect(),
    };
    let mut qlog = empty("qlog", &QLOG);
    let mut cwnd = empty("cwnd", &["time_s", "cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets"]);
    let mut rate = empty("rate", &["time_s", "goodput_bps", "send_rate_bps", "receive_rate_bps"]);
    let per_packet = packet_bytes.map_or(f64::NAN, |bytes| bytes as f64);
    let (mut before, mut then) = (start, [0.0; 3]);
    let mut earlier = None;
    for row in &rows {
        let v = &row.values;
        let [latest, srtt, rttvar, min_rtt] =
            if which.rtt { [v[21], v[22], v[23], v[24]] } else { [v[4], v[5], v[6], v[7]] };
        let in_flight = if which.in_flight { v[20] } else { v[3] };
        let lost = if which.losses { v[14] } else { f64::NAN };
        let time_s = Time(row.at.0.saturating_add(shift.0)).as_secs_f64();
        let values = [
            time_s, v[0], v[1], v[2], in_flight, latest, srtt, rttvar, min_rtt, v[21], v[8], v[9], v[10], v[11], v[12],
            v[13], lost, v[15], v[16], v[17], v[18], v[19],
        ];
        push(&mut qlog, &values);
        push(&mut cwnd, &[time_s, v[1] / per_packet, v[2] / per_packet, srtt, in_flight / per_packet]);
        // If the log ends soon after an interval, its last packets could yield any rate: join the last two intervals.
        if row.at.since(before) < every / 2
            && let Some(one_before) = earlier.take()
        {
            for (_, values) in &mut rate.columns {
                values.pop();
            }
            (before, then) = one_before;
        }
        let length = row.at.since(before).as_secs_f64();
        let now = [if which.way == Way::Out { v[17] } else { v[18] }, v[11], v[16]];
        if length > 0.0 {
            let there = [which.payload, which.sent, which.received];
            let rates = [0, 1, 2].map(|i| if there[i] { (now[i] - then[i]) * 8.0 / length } else { f64::NAN });
            push(&mut rate, &[time_s, rates[0], rates[1], rates[2]]);
            earlier = Some((before, then));
            (before, then) = (row.at, now);
        }
    }
    vec![qlog, cwnd, rate]
}

fn push(table: &mut Table, row: &[f64]) {
    for ((_, column), value) in table.columns.iter_mut().zip(row) {
        column.push(*value);
    }
}
