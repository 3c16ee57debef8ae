//! A message of each type, with limits and ordinary values: for the golden bytes and for the dissector's capture.

use paceline_packet::LastHole;
use paceline_packet::wire::tfrc::*;
use paceline_packet::{Stamp, Subflow};
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
    let data = Data { sequence: 4241, timestamp: Stamp(0x0034_5678), rtt, subflow: None };
    let first = Data { sequence: 0, timestamp: Stamp(0), rtt: Ticks(0), subflow: None };
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
        ("feedback for one of several connections", Message::Feedback(Feedback { subflow, ..ordinary }), b""),
        ("packet", Message::Single(Single { sequence: 4241, timestamp: Stamp(0x0034_5678) }), b"four"),
        ("packet, the last number", Message::Single(Single { sequence: u32::MAX - 1, timestamp: Stamp(0) }), b""),
        ("acknowledgement", Message::Ack(Ack { sequence: 4241, echo: Stamp(0x0034_5678), hole }), b""),
        ("acknowledgement of the first packet", Message::Ack(Ack { sequence: 0, echo: Stamp(0), hole: none }), b""),
    ];
    let connection = ConnectionId(0xdead_beef);
    all.into_iter().map(|(name, message, payload)| (name, Datagram { connection, message }, payload)).collect()
}
