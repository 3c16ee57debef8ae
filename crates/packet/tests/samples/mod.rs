//! A message of each type, with limits and ordinary values: for the golden bytes and for the dissector's capture.

use core::num::NonZeroU32;
use paceline_packet::wire::tfrc::*;
use paceline_packet::{Block, Flags, FramePart, LastHole, Stamp, Subflow, TcpOptions};
use paceline_units::Span;

/// Each with a name and a payload.
pub fn samples() -> Vec<(&'static str, Datagram, &'static [u8])> {
    let nonce = Nonce(0x0123_4567_89ab_cdef);
    let ordinary = Feedback {
        received_end: 4242,
        echo: Stamp(0x0034_5678),
        delay: Ticks::nearest(Span::from_micros(1500)),
        received: 4200,
        marked: 3,
        receive_rate: 125_000.5,
        loss_event_rate: 0.0125,
        subflow: None,
    };
    let edge = Feedback {
        received_end: 0,
        echo: Stamp(u32::MAX),
        delay: Ticks(u32::MAX),
        received: u32::MAX,
        marked: u32::MAX,
        receive_rate: 0.0,
        loss_event_rate: 1.0,
        subflow: None,
    };
    let rtt = Ticks::nearest(Span::from_millis(164));
    let data = Data { sequence: 4241, timestamp: Stamp(0x0034_5678), rtt, subflow: None, frame: None };
    let first = Data { sequence: 0, timestamp: Stamp(0), rtt: Ticks(0), subflow: None, frame: None };
    let part = FramePart { captured: Stamp(0x0034_4321), last: false };
    let (frame, last) = (Some(part), Some(FramePart { last: true, ..part }));
    let subflow = Some(Subflow { place: 5, opening: 0x1234 });
    let hole = LastHole { received_end: 4243, hole_end: 4240, hole_start: 4238 };
    let none = LastHole { received_end: 1, hole_end: 0, hole_start: 0 };
    let all: Vec<(&str, Message, &[u8])> = vec![
        ("request", Message::Request(Request { nonce, packet_size: 1000, ecn: Ecn::Off }), b""),
        ("request, ECN-capable", Message::Request(Request { nonce, packet_size: u16::MAX, ecn: Ecn::On }), b""),
        ("accept", Message::Accept(Accept { nonce, limit: RateLimit::None }), b""),
        ("accept, limited", Message::Accept(Accept { nonce, limit: RateLimit::BytesPerSecond(1_250_000) }), b""),
        ("refuse", Message::Refuse(Refuse { nonce, reason: Reason::BUSY }), b""),
        ("close", Message::Close(Close { nonce, reason: Reason::DONE }), b""),
        ("close, a reason without a name", Message::Close(Close { nonce, reason: Reason(u16::MAX) }), b""),
        ("data before there is a round-trip time", Message::Data(first), b""),
        ("data", Message::Data(data), b"four"),
        ("feedback", Message::Feedback(ordinary), b""),
        ("feedback, numbers at their limits", Message::Feedback(edge), b""),
        ("data of one of several connections", Message::Data(Data { subflow, ..data }), b"four"),
        ("data of a frame", Message::Data(Data { frame, ..data }), b"four"),
        ("data that end a frame, of one of several", Message::Data(Data { frame: last, subflow, ..data }), b"four"),
        ("feedback for one of several connections", Message::Feedback(Feedback { subflow, ..ordinary }), b""),
        ("packet", Message::Single(Single { sequence: 4241, timestamp: Stamp(0x0034_5678) }), b"four"),
        ("packet, the last number", Message::Single(Single { sequence: u32::MAX - 1, timestamp: Stamp(0) }), b""),
        ("acknowledgement", Message::Ack(Ack { sequence: 4241, echo: Stamp(0x0034_5678), hole }), b""),
        ("acknowledgement of the first packet", Message::Ack(Ack { sequence: 0, echo: Stamp(0), hole: none }), b""),
    ];
    let all = [all, of_tcp()].concat();
    let connection = ConnectionId(0xdead_beef);
    all.into_iter().map(|(name, message, payload)| (name, Datagram { connection, message }, payload)).collect()
}

/// Segments, their acknowledgements, and datagrams that nobody answers.
fn of_tcp() -> Vec<(&'static str, Message, &'static [u8])> {
    let timestamp = Stamp(0x0034_5678);
    let segment = Segment { sequence: 4241, timestamp, flags: Flags::NONE };
    let syn = Segment { sequence: 0, timestamp: Stamp(0), flags: Flags::SYN };
    let every = Flags::SYN.with(Flags::PUSH).with(Flags::CWR);
    let ack = SegmentAck { next: 4242, echo: timestamp, flags: Flags::NONE, options: TcpOptions::NONE };
    let block = |start, end| Block { start, end };
    let sack = [block(4250, 4251), block(4244, 4248), Block::default()];
    let full = TcpOptions { sack: [block(0, 1), block(2, 3), block(4, u32::MAX)], window: NonZeroU32::new(u32::MAX) };
    vec![
        ("segment, a SYN", Message::Segment(syn), b""),
        ("segment", Message::Segment(segment), b"four"),
        (
            "segment, the last number and every flag",
            { Message::Segment(Segment { sequence: u32::MAX - 1, flags: every, ..segment }) },
            b"",
        ),
        ("acknowledgement of segments", Message::SegmentAck(ack), b""),
        (
            "acknowledgement of segments, a SYN's",
            { Message::SegmentAck(SegmentAck { next: 1, echo: Stamp(0), flags: Flags::SYN, ..ack }) },
            b"",
        ),
        (
            "acknowledgement of segments with blocks",
            { Message::SegmentAck(SegmentAck { options: TcpOptions { sack, window: None }, ..ack }) },
            b"",
        ),
        (
            "acknowledgement of segments with all that it can have",
            { Message::SegmentAck(SegmentAck { flags: Flags::SYN.with(Flags::ECE), options: full, ..ack }) },
            b"",
        ),
        ("datagram that nobody answers", Message::Plain(Plain { sequence: u32::MAX, timestamp }), b"four"),
    ]
}
