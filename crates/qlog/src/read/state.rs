//! The state of a connection while its log is read, and its counters.

use super::byte_ranges::ByteRanges;
use super::packets::{Ack, Carried, LoggedPacket, Sent, Space};
use super::rows::{Rows, WIDTH};
use super::rtt::Rtt;
use super::value::{Numbers, text_of};
use paceline_units::{Span, Time};
use serde_json::Value;
use std::collections::BTreeMap;

/// The log's own recovery metrics, in seconds, bytes and bit/s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    pub cwnd: Option<f64>,
    pub ssthresh: Option<f64>,
    pub in_flight: Option<f64>,
    pub rtt: Rtt,
    pub pacing: Option<f64>,
    pub pto_count: Option<f64>,
}

/// A mean over time: a value holds until the next one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    sum: f64,
    length: f64,
    pub max: Option<f64>,
}

impl Mean {
    pub fn hold(&mut self, value: Option<f64>, seconds: f64) {
        if let Some(value) = value {
            self.sum += value * seconds;
            self.length += seconds;
        }
    }

    pub fn seen(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
        }
    }

    /// The mean, or the maximum if no value held for any time.
    pub fn value(&self) -> Option<f64> {
        if self.length > 0.0 { Some(self.sum / self.length) } else { self.max }
    }
}

/// Counters; bytes are those of packets, payload is what streams and DATAGRAM frames carry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub sent: (u64, u64),
    pub acked: (u64, u64),
    pub received: (u64, u64),
    pub delivered: u64,
    pub taken: u64,
    pub lost: u64,
    pub resent: u64,
    pub ce: Option<u64>,
    pub timeouts: u64,
}

/// What a log is known to contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contents {
    pub sent: bool,
    pub sizes: bool,
    pub sent_frames: bool,
    pub received_frames: bool,
    pub acks: bool,
    pub losses: bool,
    pub rtt: bool,
    pub in_flight: bool,
    pub timers: bool,
    pub pto_count: bool,
}

/// An address and a port.
#[derive(Clone, Debug, Default)]
pub struct End {
    pub address: Option<String>,
    pub port: Option<u64>,
}

/// One connection.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub start: Time,
    pub now: Time,
    pub begun: bool,
    pub ends: [End; 2],
    pub congestion_control: Option<String>,
    pub closed: bool,
    pub state: Option<usize>,
    pub logged: Recovery,
    pub derived: Rtt,
    pub derived_in_flight: u64,
    pub counts: Counts,
    pub contents: Contents,
    pub datagram: Option<u64>,
    pub greatest_packet: u64,
    /// Whether its round-trip times are in seconds; `None` if undecided, with milliseconds assumed so far.
    pub seconds: Option<bool>,
    pub cwnd: Mean,
    pub srtt: Mean,
    pub derived_srtt: Mean,
    pub derived_latest: Mean,
    pub rows: Rows,
    pub numbers: Numbers,
    pub spaces: [Space; 3],
    /// Minimum of the logged samples.
    pub min_logged_rtt: Option<f64>,
    bare: bool,
    first_sent: Option<Time>,
    max_ack_delay: Option<f64>,
    delivered: ByteRanges,
    taken: ByteRanges,
    sent_to: BTreeMap<u64, u64>,
}

/// Columns of [`State::row`] with round-trip times.
const RTTS: std::ops::Range<usize> = 4..8;

/// Maximum streams whose sent offset is remembered.
const MAX_STREAMS: usize = 1 << 17;

impl State {
    /// Advances to a time, not before the previous one.
    pub fn advance(&mut self, at: Time) {
        if !self.begun {
            (self.begun, self.start, self.now) = (true, at, at);
        }
        let seconds = at.since(self.now).as_secs_f64();
        self.cwnd.hold(self.logged.cwnd, seconds);
        self.srtt.hold(self.logged.rtt.smoothed, seconds);
        self.derived_srtt.hold(self.derived.smoothed, seconds);
        self.now = self.now.max(at);
    }

    /// Adds the state to the rows. Returns whether there is a new row.
    pub fn record(&mut self, every: Span) -> bool {
        self.cwnd.seen(self.logged.cwnd);
        self.srtt.seen(self.logged.rtt.smoothed);
        self.derived_srtt.seen(self.derived.smoothed);
        self.derived_latest.seen(self.derived.latest);
        let row = self.row();
        self.rows.take(self.now, every, row)
    }

    /// The state, in the order of the columns that `finish` makes of it.
    fn row(&self) -> [f64; WIDTH] {
        let (logged, counts, derived) = (&self.logged, &self.counts, &self.derived);
        let some = |value: Option<f64>| value.unwrap_or(f64::NAN);
        [
            self.state.map_or(f64::NAN, |state| state as f64),
            some(logged.cwnd),
            some(logged.ssthresh),
            some(logged.in_flight),
            some(logged.rtt.latest),
            some(logged.rtt.smoothed),
            some(logged.rtt.rttvar),
            some(logged.rtt.min_rtt),
            some(logged.pacing),
            some(logged.pto_count),
            counts.sent.0 as f64,
            counts.sent.1 as f64,
            counts.acked.0 as f64,
            counts.acked.1 as f64,
            counts.lost as f64,
            counts.received.0 as f64,
            counts.received.1 as f64,
            counts.delivered as f64,
            counts.taken as f64,
            counts.resent as f64,
            self.derived_in_flight as f64,
            some(derived.latest),
            some(derived.smoothed),
            some(derived.rttvar),
            some(derived.min_rtt),
        ]
    }

    /// Handles a sent packet.
    pub fn sent(&mut self, data: &Value) {
        let packet = LoggedPacket::of(data, &mut self.numbers);
        let size = packet.size.unwrap_or(0);
        self.first_sent = self.first_sent.or(Some(self.now));
        self.contents.sent = true;
        self.contents.sizes |= packet.size.is_some();
        self.contents.sent_frames |= packet.frames.is_some();
        self.bare |= packet.bare;
        self.counts.sent.0 += 1;
        self.counts.sent.1 = self.counts.sent.1.saturating_add(size);
        self.greatest_packet = self.greatest_packet.max(size);
        let carried = Carried::of(packet.frames, &mut self.numbers);
        if self.is_again(&carried) {
            self.counts.resent += 1;
        }
        let Some(number) = packet.number else { return };
        let sent = Sent { at: self.now.0, size, carried, lost: false };
        let more = sent.in_flight();
        let less = self.spaces[packet.space].send(number, sent);
        self.derived_in_flight = self.derived_in_flight.saturating_add(more).saturating_sub(less);
    }

    /// Whether it carries stream bytes that were sent before.
    fn is_again(&mut self, carried: &Carried) -> bool {
        let mut again = false;
        for piece in carried.pieces.iter().filter(|piece| piece.length > 0) {
            let to = self.sent_to.get(&piece.stream).copied().unwrap_or(0);
            again |= piece.offset < to;
            if self.sent_to.len() < MAX_STREAMS || self.sent_to.contains_key(&piece.stream) {
                self.sent_to.insert(piece.stream, to.max(piece.offset.saturating_add(piece.length)));
            }
        }
        again
    }

    /// Handles a received packet. `unit` is the log's unit of time in seconds.
    pub fn received(&mut self, data: &Value, unit: f64) {
        let packet = LoggedPacket::of(data, &mut self.numbers);
        self.counts.received.0 += 1;
        self.counts.received.1 = self.counts.received.1.saturating_add(packet.size.unwrap_or(0));
        self.contents.sizes |= packet.size.is_some();
        self.contents.received_frames |= packet.frames.is_some();
        let carried = Carried::of(packet.frames, &mut self.numbers);
        for piece in &carried.pieces {
            let new = self.taken.add(piece.stream, piece.offset, piece.length);
            self.counts.taken = self.counts.taken.saturating_add(new);
        }
        self.counts.taken = self.counts.taken.saturating_add(carried.datagrams);
        self.acknowledgements(packet.space, packet.frames.unwrap_or_default(), unit);
    }

    /// Handles received frames, of which only acknowledgements count.
    pub fn acknowledgements(&mut self, space: usize, frames: &[Value], unit: f64) {
        for frame in frames {
            let Some(ack) = Ack::of(frame, &mut self.numbers) else { continue };
            self.counts.ce = self.counts.ce.max(ack.ce);
            self.acknowledged(space, &ack.ranges, ack.delay * unit);
        }
    }

    /// Handles acknowledged packets; some may have been acknowledged before.
    fn acknowledged(&mut self, space: usize, ranges: &[(u64, u64)], delay: f64) {
        let Some(largest) = ranges.iter().map(|range| range.1).max() else { return };
        self.contents.acks = true;
        let (mut sample, mut eliciting) = (None, false);
        for &(first, last) in ranges {
            for (number, sent) in self.spaces[space].acknowledge(first, last) {
                self.counts.acked.0 += 1;
                self.counts.acked.1 = self.counts.acked.1.saturating_add(sent.size);
                self.derived_in_flight = self.derived_in_flight.saturating_sub(sent.in_flight());
                eliciting |= sent.carried.eliciting;
                if number == largest {
                    sample = Some(self.now.0.saturating_sub(sent.at));
                }
                for piece in &sent.carried.pieces {
                    let new = self.delivered.add(piece.stream, piece.offset, piece.length);
                    self.counts.delivered = self.counts.delivered.saturating_add(new);
                }
                self.counts.delivered = self.counts.delivered.saturating_add(sent.carried.datagrams);
            }
        }
        // RFC 9002, 5.1: a sample needs a newly acknowledged largest packet, and an ack-eliciting one.
        if let Some(sample) = sample.filter(|_| eliciting) {
            let delay = if space == 2 { self.max_ack_delay.map_or(delay, |max| delay.min(max)) } else { 0.0 };
            self.derived.take(Span(sample).as_secs_f64(), delay);
        }
    }

    /// Handles `packets_acked`.
    pub fn packets_acked(&mut self, data: &Value) {
        let numbers = data.get("packet_numbers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let ranges: Vec<(u64, u64)> = numbers
            .iter()
            .filter_map(|number| self.numbers.whole_in("packet_numbers", number))
            .map(|number| (number, number))
            .collect();
        let space = super::packets::space(text_of(data, &["packet_number_space"]));
        self.acknowledged(space, &ranges, 0.0);
    }

    /// Handles `packet_lost`.
    pub fn lost(&mut self, data: &Value) {
        self.contents.losses = true;
        self.counts.lost += 1;
        let packet = LoggedPacket::of(data, &mut self.numbers);
        if let Some(number) = packet.number {
            self.derived_in_flight = self.derived_in_flight.saturating_sub(self.spaces[packet.space].lose(number));
        }
        // RFC 9002, 6.2.4: some senders declare packets lost when the probe timer expires.
        if text_of(data, &["trigger"]) == Some("pto_expired") && !self.contents.timers && !self.contents.pto_count {
            self.counts.timeouts += 1;
        }
    }

    /// Handles mvfst's `packets_lost`, which has a count.
    pub fn several_lost(&mut self, data: &Value) {
        self.contents.losses = true;
        self.counts.lost = self.counts.lost.saturating_add(self.numbers.whole_of(data, &["lost_packets"]).unwrap_or(1));
    }

    /// Handles recovery metrics, under any of their names.
    pub fn metrics(&mut self, data: &Value, unit: f64) {
        let rtts =
            ["latest_rtt", "smoothed_rtt", "min_rtt", "rtt_variance"].map(|name| self.numbers.number_of(data, &[name]));
        if let Some(rtt) = rtts[0].or(rtts[1]).filter(|rtt| *rtt > 0.0) {
            self.contents.rtt = true;
            self.decide_unit(rtt);
        }
        let unit = if self.seconds == Some(true) { 1.0 } else { unit };
        let rtt = &mut self.logged.rtt;
        for (to, value) in [&mut rtt.latest, &mut rtt.smoothed, &mut rtt.min_rtt, &mut rtt.rttvar].into_iter().zip(rtts)
        {
            // Before the first sample there is none; some programs write 0, and a huge number as the minimum.
            *to = value.map(|value| value * unit).filter(|value| *value < 1e6).or(*to);
        }
        if self.logged.rtt.latest == Some(0.0) && self.logged.rtt.min_rtt == Some(0.0) {
            (self.logged.rtt.latest, self.logged.rtt.min_rtt) = (None, None);
        }
        // In a log without `min_rtt`, the minimum of its samples.
        let latest = self.logged.rtt.latest.filter(|_| rtts[0].is_some());
        self.min_logged_rtt = [self.min_logged_rtt, latest].into_iter().flatten().reduce(f64::min);
        let mut of = |names| self.numbers.number_of(data, names).filter(|value| *value < 9e18);
        let logged = &mut self.logged;
        logged.cwnd = of(&["congestion_window", "cwnd", "current_cwnd"]).or(logged.cwnd);
        logged.ssthresh = of(&["ssthresh", "slow_start_threshold"]).or(logged.ssthresh);
        logged.pacing = of(&["pacing_rate"]).or(logged.pacing);
        if let Some(bytes) = of(&["bytes_in_flight"]) {
            self.contents.in_flight = true;
            logged.in_flight = Some(bytes);
        }
        if let Some(count) = of(&["pto_count"]) {
            let more = (count - logged.pto_count.unwrap_or(0.0)).max(0.0);
            self.contents.pto_count = true;
            if !self.contents.timers {
                self.counts.timeouts += more.min(65_535.0) as u64;
            }
            logged.pto_count = Some(count);
        }
    }

    /// Decides whether round-trip times are in seconds, although the drafts require milliseconds. Quinn's logs have
    /// seconds; their packets identify them. If the first sample, taken as seconds, is no longer than the time since
    /// the first packet, it is in seconds. A value before the first received packet is an assumption, not a sample.
    fn decide_unit(&mut self, rtt: f64) {
        let Some(first) = self.first_sent.filter(|_| self.bare && self.seconds.is_none() && self.counts.received.0 > 0)
        else {
            return;
        };
        let seconds = rtt <= self.now.since(first).as_secs_f64();
        self.seconds = Some(seconds);
        if seconds {
            self.forget_rtt();
        }
    }

    /// Call at the end of the log. If no packet was ever received, all round-trip times were assumptions.
    pub fn settle(&mut self) {
        if self.bare && self.seconds.is_none() {
            self.contents.rtt = false;
            self.forget_rtt();
        }
    }

    fn forget_rtt(&mut self) {
        self.logged.rtt = Rtt::default();
        self.min_logged_rtt = None;
        self.srtt = Mean::default();
        self.rows.blank(RTTS);
    }

    /// Handles parameters of either end, or of recovery.
    pub fn parameters(&mut self, data: &Value) {
        if let Some(name) = text_of(data, &["congestion_control", "cc_algorithm", "congestion_controller"]) {
            self.congestion_control = Some(name.to_owned());
        }
        self.datagram = self.numbers.whole_of(data, &["max_datagram_size"]).filter(|size| *size > 0).or(self.datagram);
        // The peer's `max_ack_delay` bounds its acknowledgements. It is in milliseconds, whatever the log's unit is.
        let peers = text_of(data, &["initiator", "owner"]) == Some("remote");
        if let Some(delay) = self.numbers.number_of(data, &["max_ack_delay"]).filter(|delay| peers && *delay < 16_384.0)
        {
            self.max_ack_delay = Some(delay * 1e-3);
        }
    }

    /// Handles `mtu_updated`.
    pub fn mtu(&mut self, data: &Value) {
        self.datagram = self.numbers.whole_of(data, &["new"]).filter(|size| *size > 0).or(self.datagram);
    }

    /// Handles a timer event; expired probe timers count.
    pub fn timer(&mut self, data: &Value) {
        let probe = text_of(data, &["timer_type"]) == Some("pto");
        if probe && text_of(data, &["event_type"]) == Some("expired") {
            if !self.contents.timers {
                // The counts from other events were a substitute.
                (self.contents.timers, self.counts.timeouts) = (true, 0);
            }
            self.counts.timeouts += 1;
        }
    }

    /// Handles `connection_started`, with the current drafts' fields or the older ones.
    pub fn started(&mut self, data: &Value) {
        let old = [("src_ip", "src_port"), ("dst_ip", "dst_port")];
        for ((end, name), (ip, port)) in self.ends.iter_mut().zip(["local", "remote"]).zip(old) {
            let of = data.get(name).unwrap_or(&Value::Null);
            let address = text_of(of, &["ip_v4", "ip_v6"]).or_else(|| text_of(data, &[ip]));
            let port =
                self.numbers.whole_of(of, &["port_v4", "port_v6"]).or_else(|| self.numbers.whole_of(data, &[port]));
            end.address = address.map(str::to_owned).or(end.address.take());
            end.port = port.or(end.port);
        }
    }
}
