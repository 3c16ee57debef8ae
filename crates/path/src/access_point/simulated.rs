//! The simulator's access point: its state of the flows that cross it, in segments, as in the simulator's packets.

use super::{Decided, Decision, FlowReport, Interval, Law, Passed, clamped_window};
use core::num::NonZeroU32;
use paceline_packet::{Extra, Extras, Flags, Packet, TcpOptions};
use paceline_units::{Rate, Span, Time};

/// How a flow crosses an access point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// A TCP flow whose sender lies on the far side and whose receiver lies behind the access point.
    Tcp {
        /// Payload of a full segment, in bytes.
        segment: u32,
        /// The window that its receiver advertises, in segments.
        advertised: u32,
    },
    /// Traffic that no window limits, in either direction.
    Unresponsive,
    /// A flow in the other direction, or elsewhere.
    Elsewhere,
}

/// An access point that sees both directions and lowers advertised windows.
///
/// The medium or link whose queue it watches calls it for each packet towards the receivers, for each acknowledgement
/// back, and with each packet's wait; it never holds a packet itself.
#[derive(Clone, Debug)]
pub struct AccessPoint {
    law: Law,
    link_header: u32,
    flows: Vec<Tracked>,
    /// The TCP flows among `flows` that have been seen, in the same order.
    reports: Vec<FlowReport>,
    decisions: Vec<Decision>,
    next: Time,
    longest: Span,
    unresponsive: u64,
    /// All decisions so far, if recorded.
    kept: Option<Vec<Decided>>,
}

#[derive(Clone, Debug)]
struct Tracked {
    crossing: Crossing,
    opening: Opening,
    /// One past the highest sequence number seen from the sender.
    sent_end: u32,
    /// The highest acknowledgement, and its value at the interval's start.
    acked: u32,
    acked_before: u32,
    /// Segments seen from the sender in this interval.
    sent: u64,
    longest: Span,
    /// The round-trip time to the sender, once known, and the minimum one to the receiver.
    far: Option<Span>,
    near: Option<Span>,
    /// The segment that times the round trip to the receiver: its number, and when it passed.
    timed: Option<(u32, Time)>,
    /// The law's decision, in segments.
    window: Option<u32>,
}

/// The progress of a connection's handshake, which gives the round-trip time to the sender: the first packet after the
/// first acknowledgement is the sender's response to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    /// Nothing has been seen.
    Silent,
    /// The first packet has passed towards the receiver.
    Called,
    /// Its acknowledgement has passed back, at this time.
    Answered(Time),
    /// Data have followed.
    Done,
}

impl AccessPoint {
    /// An access point that decides by `law`; `crossing` is indexed by flow number. Each packet of unresponsive traffic
    /// counts with `link_header` extra bytes.
    #[must_use]
    pub fn new(law: Law, crossing: &[Crossing], link_header: u32) -> AccessPoint {
        let next = Time::ZERO + law.interval();
        let flows = crossing.iter().map(|&crossing| Tracked {
            crossing,
            opening: Opening::Silent,
            sent_end: 0,
            acked: 0,
            acked_before: 0,
            sent: 0,
            longest: Span::ZERO,
            far: None,
            near: None,
            timed: None,
            window: None,
        });
        AccessPoint {
            law,
            link_header,
            flows: flows.collect(),
            reports: Vec::new(),
            decisions: Vec::new(),
            next,
            longest: Span::ZERO,
            unresponsive: 0,
            kept: None,
        }
    }

    /// Records decisions from now on.
    pub fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The recorded decisions: interval by interval, in the order of the flows.
    pub fn take_kept(&mut self) -> Vec<Decided> {
        self.kept.take().unwrap_or_default()
    }

    /// When the interval ends and [`AccessPoint::decide`] is due.
    #[must_use]
    pub const fn next_wake(&self) -> Time {
        self.next
    }

    /// The current window limit of a flow, in segments.
    #[must_use]
    pub fn window(&self, flow: usize) -> Option<u32> {
        self.flows.get(flow)?.window
    }

    /// A packet passes towards its receiver.
    #[inline]
    pub fn on_data(&mut self, packet: &Packet) {
        let Some(flow) = self.flows.get_mut(packet.flow.0 as usize) else { return };
        let Crossing::Tcp { .. } = flow.crossing else {
            self.count(packet);
            return;
        };
        flow.sent += 1;
        if packet.flags.has(Flags::SYN) {
            // A new connection of the flow: its numbers continue from the last one's end.
            flow.opening = Opening::Silent;
            (flow.acked, flow.acked_before) = (packet.seq, packet.seq);
            flow.sent_end = packet.seq;
        }
        match flow.opening {
            Opening::Silent => flow.opening = Opening::Called,
            Opening::Answered(at) => {
                flow.far = Some(packet.time.since(at));
                flow.opening = Opening::Done;
            }
            Opening::Called | Opening::Done => {}
        }
        if packet.seq >= flow.sent_end {
            flow.sent_end = packet.seq + 1;
            flow.timed.get_or_insert((packet.seq, packet.time));
        }
    }

    fn count(&mut self, packet: &Packet) {
        if self.flows[packet.flow.0 as usize].crossing == Crossing::Unresponsive {
            self.unresponsive += u64::from(packet.size) + u64::from(self.link_header);
        }
    }

    /// A packet has waited for `wait` in the queue before its transmission began.
    #[inline]
    pub fn waited(&mut self, packet: &Packet, wait: Span) {
        self.longest = self.longest.max(wait);
        if let Some(flow) = self.flows.get_mut(packet.flow.0 as usize) {
            flow.longest = flow.longest.max(wait);
        }
    }

    /// A packet passes back from a receiver: lowers an acknowledgement's window to the decided limit.
    #[inline]
    pub fn on_ack(&mut self, packet: &mut Packet, extras: &mut Extras) {
        let Some(flow) = self.flows.get_mut(packet.flow.0 as usize) else { return };
        let Crossing::Tcp { advertised, .. } = flow.crossing else {
            self.count(packet);
            return;
        };
        if !packet.flags.has(Flags::ACK) {
            return;
        }
        if flow.opening == Opening::Called {
            flow.opening = Opening::Answered(packet.time);
        }
        flow.acked = flow.acked.max(packet.seq);
        // Retransmissions are not distinguished: the minimum sample is that of a packet sent once.
        if let Some((_, at)) = flow.timed.filter(|&(seq, _)| packet.seq > seq) {
            let sample = packet.time.since(at);
            flow.near = Some(flow.near.map_or(sample, |min| min.min(sample)));
            flow.timed = None;
        }
        let Some(limit) = flow.window else { return };
        let options = extras.get(packet.extra).and_then(Extra::tcp).copied().unwrap_or(TcpOptions::NONE);
        let own = options.window.map_or(advertised, NonZeroU32::get);
        let beyond = flow.sent_end.saturating_sub(packet.seq);
        let window = clamped_window(u64::from(own), u64::from(limit), u64::from(beyond), 1) as u32;
        if window < own {
            extras.take(packet.extra);
            packet.extra = extras.put(Extra::Tcp(TcpOptions { window: NonZeroU32::new(window), ..options }));
        }
    }

    /// Ends the interval: the law decides.
    pub fn decide(&mut self) {
        let interval = self.law.interval();
        let seconds = interval.as_secs_f64();
        let measured = Interval {
            longest_wait: self.longest,
            unresponsive: Rate::from_bps((self.unresponsive as f64 * 8.0 / seconds) as u64),
        };
        self.reports.clear();
        for (number, flow) in self.flows.iter_mut().enumerate() {
            let Crossing::Tcp { segment, advertised } = flow.crossing else { continue };
            if flow.opening == Opening::Silent {
                continue;
            }
            let bytes = |segments: u32| u64::from(segments) * u64::from(segment);
            let far = flow.far.unwrap_or(Span::ZERO);
            let passed = Passed {
                beyond: bytes(flow.sent_end.saturating_sub(flow.acked)),
                sent: flow.sent * u64::from(segment),
                acked: bytes(flow.acked.saturating_sub(flow.acked_before)),
                over: interval,
            };
            self.reports.push(FlowReport {
                flow: number as u32,
                outstanding: passed.outstanding(flow.near.map(|near| near + flow.longest), far),
                segment,
                advertised: bytes(advertised),
                sent: passed.sent,
                longest_wait: (flow.sent > 0).then_some(flow.longest),
                rtt: flow.near.zip(flow.far).map(|(near, far)| near + far),
            });
            (flow.sent, flow.longest, flow.acked_before) = (0, Span::ZERO, flow.acked);
        }
        self.law.decide(&measured, &self.reports, &mut self.decisions);
        for (decision, report) in self.decisions.iter().zip(&self.reports) {
            // A window of more segments than there are numbers is no limit.
            let segments = |bytes: u64| u32::try_from(bytes / u64::from(report.segment.max(1))).unwrap_or(u32::MAX);
            let window = decision.window.map(segments);
            self.flows[decision.flow as usize].window = window;
            if let Some(kept) = &mut self.kept {
                kept.push(Decided::new(self.next, self.longest, report, decision));
            }
        }
        (self.longest, self.unresponsive) = (Span::ZERO, 0);
        self.next += interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_point::{Voap, VoapModel};
    use paceline_packet::{ExtraId, FlowId, Stamp};

    const SEGMENT: u32 = 1000;

    fn packet(seq: u32, millis: u64, flags: Flags) -> Packet {
        Packet {
            time: Time::ZERO + Span::from_millis(millis),
            cursor: 0,
            size: 1040,
            flags,
            flow: FlowId(0),
            seq,
            stamp: Stamp::default(),
            extra: ExtraId::NONE,
        }
    }

    fn access_point(law: Law) -> AccessPoint {
        let tcp = Crossing::Tcp { segment: SEGMENT, advertised: 400 };
        AccessPoint::new(law, &[tcp, Crossing::Unresponsive, Crossing::Elsewhere], 14)
    }

    /// Opens a connection (round trips of 40 ms to the sender, 2 ms to the receiver) and sends `count` segments.
    fn open(ap: &mut AccessPoint, extras: &mut Extras, count: u32) {
        ap.on_data(&packet(0, 10, Flags::SYN));
        ap.on_ack(&mut packet(1, 12, Flags::ACK.with(Flags::SYN)), extras);
        for seq in 1..=count {
            ap.on_data(&packet(seq, 52, Flags::NONE));
        }
    }

    fn written(ap: &mut AccessPoint, extras: &mut Extras, seq: u32) -> Option<u32> {
        let mut ack = packet(seq, 150, Flags::ACK);
        ap.on_ack(&mut ack, extras);
        let options = extras.take(ack.extra)?;
        options.tcp().and_then(|o| o.window).map(NonZeroU32::get)
    }

    #[test]
    fn a_fixed_window_is_written_and_never_below_what_was_sent() {
        let mut extras = Extras::default();
        let mut ap = access_point(Law::Fixed(20_999));
        open(&mut ap, &mut extras, 30);
        assert_eq!(written(&mut ap, &mut extras, 5), None, "nothing is decided yet");
        ap.decide();
        assert_eq!(ap.window(0), Some(20));
        assert_eq!(written(&mut ap, &mut extras, 5), Some(26), "to 30, the last that was sent");
        assert_eq!(written(&mut ap, &mut extras, 25), Some(20));
        let own = TcpOptions { window: NonZeroU32::new(7), ..TcpOptions::NONE };
        let mut ack = packet(28, 160, Flags::ACK);
        ack.extra = extras.put(Extra::Tcp(own));
        ap.on_ack(&mut ack, &mut extras);
        assert_eq!(extras.take(ack.extra), Some(Extra::Tcp(own)), "the receiver's own is less");
        assert_eq!(extras.in_use(), 0);
    }

    /// SAP-LAW may decide on a huge window if its capacity is set beyond any channel's: the window must not wrap
    /// around.
    #[test]
    fn a_window_beyond_all_numbers_holds_nothing_back() {
        let mut extras = Extras::default();
        let mut ap = access_point(Law::Fixed((1 << 32) * u64::from(SEGMENT) + 5000));
        open(&mut ap, &mut extras, 30);
        ap.decide();
        assert_eq!((ap.window(0), written(&mut ap, &mut extras, 5)), (Some(u32::MAX), None));
    }

    #[test]
    fn blocks_stay_in_an_acknowledgement_whose_window_is_lowered() {
        let mut extras = Extras::default();
        let mut ap = access_point(Law::Fixed(10_000));
        open(&mut ap, &mut extras, 12);
        ap.decide();
        let mut options = TcpOptions::NONE;
        options.sack[0] = paceline_packet::Block { start: 9, end: 11 };
        let mut ack = packet(8, 150, Flags::ACK);
        ack.extra = extras.put(Extra::Tcp(options));
        ap.on_ack(&mut ack, &mut extras);
        let expected = TcpOptions { window: NonZeroU32::new(10), ..options };
        assert_eq!(extras.take(ack.extra), Some(Extra::Tcp(expected)));
        assert_eq!(extras.in_use(), 0);
    }

    #[test]
    fn round_trips_come_from_the_opening_and_what_is_outstanding_counts_the_far_side() {
        let mut extras = Extras::default();
        let mut ap = access_point(Law::Voap(Voap::new(VoapModel::default())));
        open(&mut ap, &mut extras, 50);
        // 50 segments in 200 ms at 40 ms: 10 are in flight on the sender's side, 12 on the receiver's.
        ap.on_ack(&mut packet(51, 56, Flags::ACK), &mut extras);
        for seq in 51..=62 {
            ap.on_data(&packet(seq, 190, Flags::NONE));
        }
        ap.waited(&packet(51, 190, Flags::NONE), Span::from_millis(16));
        assert_eq!(ap.next_wake(), Time::ZERO + Span::from_millis(200));
        ap.decide();
        assert_eq!(ap.next_wake(), Time::ZERO + Span::from_millis(400));
        let report = ap.reports[0];
        assert_eq!(report.rtt, Some(Span::from_millis(42)), "the least, that of the SYN");
        // 63 segments, including the SYN, in 200 ms: in 2 ms plus the wait of 16, 5.67 pass, whatever the number
        // unacknowledged; 51 were acknowledged, 10.2 of them in the 40 ms of the other side.
        assert_eq!(report.outstanding, 15_870);
        assert_eq!(ap.window(0), Some(15));
        ap.waited(&packet(51, 390, Flags::NONE), Span::from_millis(16));
        ap.on_data(&packet(63, 390, Flags::NONE));
        ap.decide();
        assert_eq!(ap.window(0), Some(14));
        ap.on_data(&packet(64, 590, Flags::NONE));
        ap.decide();
        assert_eq!(ap.window(0), Some(15), "the wait of an interval is of that interval alone");
        // A new connection of the flow, whose sender responds after 30 ms.
        ap.on_data(&packet(65, 610, Flags::SYN));
        ap.on_ack(&mut packet(66, 612, Flags::ACK.with(Flags::SYN)), &mut extras);
        ap.on_data(&packet(66, 642, Flags::NONE));
        ap.decide();
        assert_eq!(ap.reports[0].rtt, Some(Span::from_millis(32)));
    }

    #[test]
    fn what_no_window_holds_back_is_measured_with_its_link_header() {
        let capacity = Rate::from_bps(10_000_000);
        let mut ap = access_point(Law::SapLaw(crate::access_point::SapLaw::new(capacity, Span::from_millis(100))));
        let mut extras = Extras::default();
        open(&mut ap, &mut extras, 1);
        for flow in [1, 2] {
            let udp = Packet { size: 986, flow: FlowId(flow), ..packet(0, 60, Flags::NONE) };
            (0..900).for_each(|_| ap.on_data(&udp));
            (0..100).for_each(|_| ap.on_ack(&mut udp.clone(), &mut extras));
        }
        ap.decide();
        // 1000 kB in 2 s are 4 Mbit/s; (10 - 1.1 x 4) Mbit/s x 42 ms are 29.4 kB.
        assert_eq!(ap.window(0), Some(29));
    }
}
