//! Converts between what machines transmit and datagrams: the message formats depend on the flow's machine.

use super::capture_clock::CaptureClock;
use super::reports::{RtpPeer, is_rtcp};
use super::{EcnBits, Outbox};
use paceline_flow::{Segment, Transport};
use paceline_packet::rtp::RtpData;
use paceline_packet::wire::tfrc::{self, ConnectionId, Datagram, Message, Ticks};
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{
    Extra, ExtraId, Flags, FlowId, FramePart, Packet, Stamp, Subflow, TcpOptions, TfrcData, TfrcMore, TfrcReport,
};
use paceline_units::Time;
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// Number of sent stamps that are recognised when they are echoed.
const STAMPS: usize = 1 << 16;
/// Maximum age in ticks of an echoed stamp, relative to the last packet (9 minutes): older ones are ambiguous in 32
/// bits.
const LONGEST_ECHO: u64 = 1 << 31;
/// Maximum distance of a segment from the next one expected; a segment beyond it is not of the flow. This limits what a
/// receiver keeps about gaps. It also limits the segments in flight, whatever window the other end advertises, and so
/// what a sender keeps about them.
pub(super) const AHEAD: u32 = 1 << 16;
const WIDEST: NonZeroU32 = NonZeroU32::new(AHEAD).expect("it is not zero");
/// Maximum number of connections within a flow; higher numbers are not trusted.
const PLACES: u16 = 256;

/// A machine's input: a packet with its side record.
pub(super) type Received = (Packet, Option<Extra>);

/// A decoded datagram of the other end.
pub(super) enum Decoded {
    /// A message of the flow's setup or close.
    Agreement(Message),
    /// An input for the machine.
    Machine(Received),
    /// Not a message of this flow.
    Garbage,
    /// An implausible message of this flow.
    Implausible,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Acks,
    /// The machine makes its own datagrams: only setup and close messages are encoded here.
    Quic,
    Rtp,
    Tcp {
        bare_syn: bool,
    },
    Tfrc {
        several: bool,
        frames: bool,
    },
    Udp,
}

/// A flow's codec, for one of its ends.
#[derive(Debug)]
pub(super) struct Codec {
    id: ConnectionId,
    kind: Kind,
    /// For RTP: payload type, and extension ID of transport-wide sequence numbers.
    peer: RtpPeer,
    /// Bytes of a data packet except its payload, and of any datagram except its contents.
    header: u16,
    below: u16,
    /// Stamps of sent data without duplicates, oldest first, extended beyond 32 bits.
    stamps: VecDeque<u64>,
    /// At a receiver, one past the last segment acknowledged; at a sender, one past the highest segment sent.
    next: u32,
    /// The payload of a full packet.
    segment: u16,
    /// Connections by place, and their counts of received packets.
    arrived: Vec<Arrived>,
    /// For packets that carry a capture time.
    captures: Option<CaptureClock>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Arrived {
    subflow: Subflow,
    packets: u32,
    marked: u32,
}

/// Number of payload bytes that the encoder writes into a retransmission.
fn original_len(data: &RtpData) -> u16 {
    data.original.map_or(0, |_| RtpData::ORIGINAL_LEN as u16)
}

impl Codec {
    pub(super) fn new(id: ConnectionId, transport: &Transport, below: u16) -> Codec {
        let kind = match transport {
            Transport::Acks { .. } => Kind::Acks,
            Transport::Rtp { .. } => Kind::Rtp,
            Transport::Tcp { config, .. } => Kind::Tcp { bare_syn: config.bare_syn() },
            Transport::Tfrc { config, .. } => {
                Kind::Tfrc { several: config.settings.multiple_connections, frames: config.frames }
            }
            Transport::Quic { .. } => Kind::Quic,
            Transport::Udp(_) => Kind::Udp,
        };
        let (header, segment) = (transport.header(), transport.segment());
        let (stamps, arrived) = (VecDeque::new(), Vec::new());
        let peer = RtpPeer::default();
        Codec { id, kind, peer, header, below, stamps, next: 0, segment, arrived, captures: None }
    }

    /// The capture clock, once a packet with a capture time was sent or received.
    pub(super) fn captures(&self) -> Option<CaptureClock> {
        self.captures
    }

    /// Sets the RTP receiver's parameters.
    pub(super) fn set_peer(&mut self, peer: RtpPeer) {
        self.peer = peer;
    }

    /// Encodes a message of the flow's setup or close.
    pub(super) fn agreement(&self, message: Message, out: &mut Outbox) {
        self.put(message, 0, EcnBits::NotEct, out);
    }

    fn put(&self, message: Message, payload: u16, ecn: EcnBits, out: &mut Outbox) {
        out.push(payload, ecn, |to| Datagram { connection: self.id, message }.encode(to));
    }

    /// Encodes a segment transmitted by the machine of either end.
    pub(super) fn encode(&mut self, segment: &Segment, out: &mut Outbox) {
        let ecn = EcnBits::of_flags(segment.flags);
        let (sequence, timestamp) = (segment.seq, segment.stamp);
        if segment.flags.has(Flags::ACK) {
            return self.encode_answer(segment, out);
        }
        let payload = segment.size.saturating_sub(self.header);
        match (&segment.extra, self.kind) {
            (Some(Extra::Rtcp(compound)), _) => {
                out.push(0, EcnBits::NotEct, |to| {
                    // a report without an encoding is not sent; Paceline's machines make none
                    let _ = rtcp::encode(compound, to);
                });
            }
            (Some(Extra::Rtp(data)), _) => {
                self.captured(RtpData::CLOCK_HZ as u32, data.timestamp, timestamp);
                out.push(payload - original_len(data).min(payload), ecn, |to| {
                    // fillers and retransmissions have their own payload types
                    let media = data.payload_type == RtpData::PAYLOAD_TYPE;
                    let payload_type = if media { self.peer.payload_type } else { data.payload_type };
                    let _ = rtp::encode_with(&RtpData { payload_type, ..*data }, self.peer.transport_id, to);
                });
            }
            (Some(Extra::TfrcData(subflow, data)), Kind::Tfrc { several, .. }) => {
                self.sent(timestamp);
                let (rtt, subflow) = (Ticks::nearest(data.rtt), several.then_some(*subflow));
                let frame = data.more.frame();
                if let Some(part) = frame {
                    self.captured(Stamp::HZ, part.captured.0, part.captured);
                }
                self.put(Message::Data(tfrc::Data { sequence, timestamp, rtt, subflow, frame }), payload, ecn, out);
            }
            (_, Kind::Tcp { bare_syn }) => {
                self.sent(timestamp);
                self.next = self.next.max(sequence.saturating_add(1));
                let payload = if segment.flags.has(Flags::SYN) && bare_syn { 0 } else { payload };
                let flags = segment.flags;
                self.put(Message::Segment(tfrc::Segment { sequence, timestamp, flags }), payload, ecn, out);
            }
            (_, Kind::Acks) if sequence != u32::MAX => {
                self.sent(timestamp);
                self.put(Message::Single(tfrc::Single { sequence, timestamp }), payload, ecn, out);
            }
            (_, Kind::Udp) => self.put(Message::Plain(tfrc::Plain { sequence, timestamp }), payload, ecn, out),
            _ => {}
        }
    }

    fn encode_answer(&mut self, segment: &Segment, out: &mut Outbox) {
        let (number, echo) = (segment.seq, segment.stamp);
        let message = match (&segment.extra, self.kind) {
            (Some(Extra::Rtcp(compound)), _) => {
                return out.push(0, EcnBits::NotEct, |to| {
                    let _ = rtcp::encode(compound, to);
                });
            }
            (Some(Extra::Ack(hole)), _) => Message::Ack(tfrc::Ack { sequence: number, echo, hole: *hole }),
            (Some(Extra::TfrcReport(subflow, report)), Kind::Tfrc { several, .. }) => {
                let arrived = self.arrived(*subflow);
                Message::Feedback(tfrc::Feedback {
                    received_end: number,
                    echo,
                    delay: Ticks::nearest(report.delay),
                    received: arrived.packets,
                    marked: arrived.marked,
                    receive_rate: report.receive_rate,
                    loss_event_rate: report.loss_event_rate,
                    subflow: several.then_some(*subflow),
                })
            }
            (extra, Kind::Tcp { .. }) => {
                self.next = self.next.max(number);
                let options = extra.as_ref().and_then(Extra::tcp).copied().unwrap_or(TcpOptions::NONE);
                Message::SegmentAck(tfrc::SegmentAck { next: number, echo, flags: segment.flags, options })
            }
            _ => return,
        };
        self.put(message, 0, EcnBits::NotEct, out);
    }

    fn sent(&mut self, stamp: Stamp) {
        let Some(&last) = self.stamps.back() else { return self.stamps.push_back(stamp.0.into()) };
        let after = stamp.0.wrapping_sub(last as u32);
        if after == 0 {
            return;
        }
        let new = last + u64::from(after);
        self.stamps.push_back(new);
        while self.stamps.len() > STAMPS || self.stamps.front().is_some_and(|&first| new - first > LONGEST_ECHO) {
            self.stamps.pop_front();
        }
    }

    /// Whether a packet sent by this end had this stamp.
    fn is_ours(&self, echo: Stamp) -> bool {
        let Some(&last) = self.stamps.back() else { return false };
        let before = u64::from((last as u32).wrapping_sub(echo.0));
        last.checked_sub(before).is_some_and(|stamp| self.stamps.binary_search(&stamp).is_ok())
    }

    /// Decodes a datagram that reached the sender of data at `time`, by its machine.
    pub(super) fn decode_answer(&self, bytes: &[u8], time: Time) -> Decoded {
        if self.kind == Kind::Rtp && !bytes.starts_with(&tfrc::MAGIC) {
            return match rtcp::decode(bytes) {
                Ok(compound) => {
                    let packet = self.packet(time, 0, Stamp::at(time), bytes.len());
                    let packet = Packet { flags: Flags::ACK, ..packet };
                    Decoded::Machine((packet, Some(Extra::Rtcp(Box::new(compound)))))
                }
                Err(_) => Decoded::Garbage,
            };
        }
        let message = match self.message(bytes) {
            Ok((message, _)) => message,
            Err(decoded) => return decoded,
        };
        let (seq, echo, flags, extra) = match (message, self.kind) {
            (Message::Ack(ack), Kind::Acks) => (ack.sequence, ack.echo, Flags::NONE, Some(Extra::Ack(ack.hole))),
            (Message::SegmentAck(ack), Kind::Tcp { .. }) => {
                // data that were never sent cannot have arrived
                if ack.next > self.next || ack.options.blocks().any(|b| b.start > b.end || b.end > self.next) {
                    return Decoded::Implausible;
                }
                let mut options = ack.options;
                options.window = options.window.map(|window| window.min(WIDEST));
                let plain = options == TcpOptions::NONE;
                (ack.next, ack.echo, ack.flags, (!plain).then_some(Extra::Tcp(options)))
            }
            (Message::Feedback(feedback), Kind::Tfrc { several, .. }) if feedback.subflow.is_some() == several => {
                let report = TfrcReport {
                    delay: feedback.delay.span(),
                    receive_rate: feedback.receive_rate,
                    loss_event_rate: feedback.loss_event_rate,
                };
                let subflow = feedback.subflow.unwrap_or(Subflow::ONLY);
                (feedback.received_end, feedback.echo, Flags::NONE, Some(Extra::TfrcReport(subflow, report)))
            }
            _ => return Decoded::Implausible,
        };
        if !self.is_ours(echo) {
            return Decoded::Implausible;
        }
        let packet = self.packet(time, seq, echo, bytes.len());
        Decoded::Machine((Packet { flags: flags.with(Flags::ACK), ..packet }, extra))
    }

    /// Decodes a datagram that reached the receiver of data at `time`, by its machine.
    pub(super) fn decode_data(&mut self, bytes: &[u8], ecn: EcnBits, time: Time) -> Decoded {
        if self.kind == Kind::Rtp && !bytes.starts_with(&tfrc::MAGIC) {
            return self.decode_rtp(bytes, ecn, time);
        }
        let (message, payload) = match self.message(bytes) {
            Ok(found) => found,
            Err(decoded) => return decoded,
        };
        let (seq, stamp, flags, extra) = match (message, self.kind) {
            (Message::Data(data), Kind::Tfrc { several, frames })
                if data.subflow.is_some() == several && data.frame.is_some() == frames =>
            {
                let subflow = data.subflow.unwrap_or(Subflow::ONLY);
                if subflow.place >= PLACES {
                    return Decoded::Implausible;
                }
                let arrived = self.arrived(subflow);
                arrived.packets = arrived.packets.wrapping_add(1);
                arrived.marked = arrived.marked.wrapping_add(u32::from(ecn == EcnBits::Ce));
                let more = data.frame.map_or(TfrcMore::Nothing, |part| {
                    let captured = self.capture(Stamp::HZ, part.captured.0, time);
                    TfrcMore::Frame(FramePart { captured, ..part })
                });
                let data_of = TfrcData { rtt: data.rtt.span(), more };
                (data.sequence, data.timestamp, Flags::NONE, Some(Extra::TfrcData(subflow, data_of)))
            }
            (Message::Segment(segment), Kind::Tcp { .. }) => {
                if segment.sequence >= self.next.saturating_add(AHEAD) {
                    return Decoded::Implausible;
                }
                (segment.sequence, segment.timestamp, segment.flags, None)
            }
            (Message::Single(single), Kind::Acks) => (single.sequence, single.timestamp, Flags::NONE, None),
            (Message::Plain(plain), Kind::Udp) => (plain.sequence, plain.timestamp, Flags::NONE, None),
            _ => return Decoded::Implausible,
        };
        if payload.len() > usize::from(self.segment) {
            return Decoded::Implausible;
        }
        let size = payload.len() + usize::from(self.header) - usize::from(self.below);
        let packet = self.packet(time, seq, stamp, size);
        Decoded::Machine((Packet { flags: flags.with(ecn.flags()), ..packet }, extra))
    }

    fn decode_rtp(&mut self, bytes: &[u8], ecn: EcnBits, time: Time) -> Decoded {
        if is_rtcp(bytes) {
            return match rtcp::decode(bytes) {
                Ok(compound) => {
                    let packet = self.packet(time, 0, Stamp::at(time), bytes.len());
                    Decoded::Machine((packet, Some(Extra::Rtcp(Box::new(compound)))))
                }
                Err(_) => Decoded::Garbage,
            };
        }
        let Ok((data, payload)) = rtp::decode(bytes) else { return Decoded::Garbage };
        if payload.len() > usize::from(self.segment) {
            return Decoded::Implausible;
        }
        let captured = self.capture(RtpData::CLOCK_HZ as u32, data.timestamp, time);
        let packet = self.packet(time, u32::from(data.sequence), captured, bytes.len());
        Decoded::Machine((Packet { flags: ecn.flags(), ..packet }, Some(Extra::Rtp(data))))
    }

    /// Notes the clock of a sent packet whose contents were captured at `then`.
    fn captured(&mut self, hz: u32, stamp: u32, then: Stamp) {
        let at = Time(u64::from(then.0) << 8);
        self.captures.get_or_insert_with(|| CaptureClock::new(hz, stamp, at));
    }

    /// Capture time of a packet that arrived at `time`: later than `time` if its delay was shorter than the first
    /// packet's.
    fn capture(&mut self, hz: u32, stamp: u32, time: Time) -> Stamp {
        self.captures.get_or_insert_with(|| CaptureClock::new(hz, stamp, time)).captured(stamp)
    }

    /// The message of a datagram in Paceline's format, or the classification of any other datagram.
    fn message<'a>(&self, bytes: &'a [u8]) -> Result<(Message, &'a [u8]), Decoded> {
        let Ok((datagram, payload)) = tfrc::decode(bytes) else { return Err(Decoded::Garbage) };
        if datagram.connection != self.id {
            return Err(Decoded::Garbage);
        }
        match datagram.message {
            message @ (Message::Request(_) | Message::Accept(_) | Message::Refuse(_) | Message::Close(_)) => {
                Err(Decoded::Agreement(message))
            }
            message => Ok((message, payload)),
        }
    }

    /// A packet of `bytes` bytes above UDP.
    fn packet(&self, time: Time, seq: u32, stamp: Stamp, bytes: usize) -> Packet {
        let size = u16::try_from(bytes + usize::from(self.below)).unwrap_or(u16::MAX);
        let (flow, cursor) = (FlowId(0), Packet::NOWHERE);
        Packet { time, cursor, size, flags: Flags::NONE, flow, seq, stamp, extra: ExtraId::NONE }
    }

    /// The counts of a connection; an earlier connection at its place is replaced.
    fn arrived(&mut self, subflow: Subflow) -> &mut Arrived {
        let place = usize::from(subflow.place.min(PLACES));
        if self.arrived.len() <= place {
            self.arrived.resize(place + 1, Arrived::default());
        }
        let arrived = &mut self.arrived[place];
        if arrived.subflow != subflow {
            *arrived = Arrived { subflow, ..Arrived::default() };
        }
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Family, FlowSpec, ForeignSchemes};

    /// A machine's flags become header bits at one end and flags at the other; a CE mark hides the ECT codepoint.
    #[test]
    fn ecn_crosses_in_the_header_alone() {
        let l4s = Flags::ECT.with(Flags::L4S);
        let marked = Flags::ECT.with(Flags::CE);
        let bits = [EcnBits::NotEct, EcnBits::Ect1, EcnBits::Ect0, EcnBits::Ce];
        for (tos, (ecn, flags)) in (0..).zip(bits.into_iter().zip([Flags::NONE, l4s, Flags::ECT, marked])) {
            assert_eq!((EcnBits::of_tos(0xb8 | tos), ecn.tos()), (ecn, tos));
            assert_eq!((EcnBits::of_flags(flags), ecn.flags()), (ecn, flags));
            assert_eq!(EcnBits::of_number(ecn as u8), Some(ecn));
        }
        assert_eq!((EcnBits::of_flags(l4s.with(Flags::CE)), EcnBits::of_number(4)), (EcnBits::Ce, None));
        let settings = vec![("cc".to_owned(), "newreno".to_owned())];
        let model = FlowSpec {
            settings,
            for_ms: 1000,
            seed: 1,
            family: Family::V4,
            name: None,
            foreign: ForeignSchemes::default(),
        }
        .model()
        .unwrap();
        let mut ends = [(); 2].map(|()| Codec::new(ConnectionId(1), &model.transport, 28));
        let mut out = Outbox::default();
        for flags in [Flags::NONE, l4s, Flags::ECT] {
            out.clear();
            let segment = Segment { seq: 0, stamp: Stamp(5), flags, size: 1000, extra: None };
            ends[0].encode(&segment, &mut out);
            let datagram = out.iter().next().unwrap();
            assert_eq!(datagram.ecn, EcnBits::of_flags(flags));
            let mut bytes = datagram.header.to_vec();
            bytes.resize(datagram.len(), 0);
            for ecn in [datagram.ecn, EcnBits::Ce] {
                let Decoded::Machine((packet, _)) = ends[1].decode_data(&bytes, ecn, Time::ZERO) else {
                    panic!("ours")
                };
                assert_eq!(packet.flags, ecn.flags());
            }
        }
    }

    #[test]
    fn stamps_are_known_again_where_they_go_round_and_not_for_ever() {
        let settings = vec![("cc".to_owned(), "tfrc".to_owned())];
        let model = FlowSpec {
            settings,
            for_ms: 1000,
            seed: 1,
            family: Family::V4,
            name: None,
            foreign: ForeignSchemes::default(),
        }
        .model()
        .unwrap();
        let mut codec = Codec::new(ConnectionId(1), &model.transport, 28);
        assert!(!codec.is_ours(Stamp(0)));
        // one every 18.3 / 8 minutes, wrapping three times
        let every = 1 << 29;
        for n in 0..24u32 {
            let stamp = Stamp(7u32.wrapping_add(n.wrapping_mul(every)));
            codec.sent(stamp);
            codec.sent(stamp);
            let known = |back: u32| codec.is_ours(Stamp(stamp.0.wrapping_sub(back.wrapping_mul(every))));
            // stamps of the last nine minutes
            assert_eq!([0, 1, 4, 5, 7].map(known), [true, n >= 1, n >= 4, false, false], "{n}");
            assert!(!codec.is_ours(Stamp(stamp.0 ^ 1)));
        }
        assert_eq!(codec.stamps.len(), 5);
        (0..100_000).for_each(|n| codec.sent(Stamp(n)));
        assert_eq!(codec.stamps.len(), STAMPS);
    }
}
