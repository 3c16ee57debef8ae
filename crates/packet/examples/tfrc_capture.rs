//! Writes datagrams of TFRC over UDP as a capture (pcap) and what they hold as JSON lines, to hold a dissector against.
//!
//! `cargo run -p paceline-packet --example tfrc_capture -- FILE.pcap FILE.jsonl`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example writes files")]

#[path = "../tests/samples/mod.rs"]
mod samples;

use core::num::NonZeroU32;
use paceline_packet::wire::tfrc::*;
use paceline_packet::{Block, Flags, FramePart, LastHole, Stamp, Subflow, TcpOptions};
use std::io::Write;

/// pcap's link type for packets that begin with an IP header.
const LINKTYPE_RAW: u32 = 101;
const RANDOM_MESSAGES: u64 = 300;

/// SplitMix64: numbers that look random and are the same each time.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn random(state: &mut u64) -> Datagram {
    let word = |state: &mut u64| draw(state) as u32;
    let nonce = Nonce(draw(state));
    let subflow = match draw(state) {
        n if n % 2 == 0 => None,
        n => Some(Subflow { place: (n >> 16) as u16, opening: (n >> 32) as u16 }),
    };
    let message = match draw(state) % 11 {
        0 => {
            let ecn = if draw(state).is_multiple_of(2) { Ecn::Off } else { Ecn::On };
            Message::Request(Request { nonce, packet_size: draw(state) as u16, ecn })
        }
        1 => Message::Accept(Accept { nonce, limit: RateLimit::BytesPerSecond(word(state)) }),
        2 => Message::Refuse(Refuse { nonce, reason: Reason(draw(state) as u16) }),
        3 => Message::Close(Close { nonce, reason: Reason(draw(state) as u16) }),
        4 => {
            let (sequence, timestamp, rtt) = (word(state), Stamp(word(state)), Ticks(word(state)));
            let part = draw(state);
            let frame = part
                .is_multiple_of(2)
                .then_some(FramePart { captured: Stamp((part >> 32) as u32), last: part & 2 == 0 });
            Message::Data(Data { sequence, timestamp, rtt, subflow, frame })
        }
        5 => {
            let received_end = word(state).max(1);
            let hole_end = word(state) % received_end;
            let hole = LastHole { received_end, hole_end, hole_start: word(state).min(hole_end) };
            Message::Ack(Ack { sequence: word(state) % received_end, echo: Stamp(word(state)), hole })
        }
        6 => Message::Single(Single { sequence: word(state).min(u32::MAX - 1), timestamp: Stamp(word(state)) }),
        7 => {
            let flags = some(&[Flags::SYN, Flags::PUSH, Flags::CWR, Flags::ECE, Flags::AE], draw(state));
            Message::Segment(Segment { sequence: word(state).min(u32::MAX - 1), timestamp: Stamp(word(state)), flags })
        }
        8 => {
            let mut options = TcpOptions::NONE;
            for block in options.sack.iter_mut().take((draw(state) % 4) as usize) {
                let start = word(state) / 2;
                *block = Block { start, end: start + 1 + word(state) / 4 };
            }
            options.window = NonZeroU32::new(word(state)).filter(|_| draw(state).is_multiple_of(2));
            let flags = some(&[Flags::SYN, Flags::ECE, Flags::CWR, Flags::AE], draw(state));
            Message::SegmentAck(SegmentAck { next: word(state), echo: Stamp(word(state)), flags, options })
        }
        9 => Message::Plain(Plain { sequence: word(state), timestamp: Stamp(word(state)) }),
        _ => Message::Feedback(Feedback {
            received_end: word(state),
            echo: Stamp(word(state)),
            delay: Ticks(word(state)),
            received: word(state),
            marked: word(state),
            receive_rate: draw(state) as f64 / 1024.0,
            loss_event_rate: draw(state) as f64 / u64::MAX as f64,
            subflow,
        }),
    };
    Datagram { connection: ConnectionId(word(state)), message }
}

/// Those of `flags` whose bit is set in `bits`.
fn some(flags: &[Flags], bits: u64) -> Flags {
    (0..).zip(flags).filter(|(i, _)| bits >> i & 1 == 1).fold(Flags::NONE, |all, (_, flag)| all.with(*flag))
}

/// The fields of an acknowledgement of segments.
fn of_segments(ack: &SegmentAck) -> String {
    let bit = |flag| u8::from(ack.flags.has(flag));
    let window = ack.options.window.map(|w| format!(r#", "window": {w}"#)).unwrap_or_default();
    // a dissector's field that stands several times is shown by its first
    let blocks =
        ack.options.blocks().next().map(|b| format!(r#", "block_start": {}, "block_end": {}"#, b.start, b.end));
    format!(
        r#""next": {}, "echo": {}, "syn": {}, "ece": {}, "ack_cwr": {}, "ae": {}, "windowed": {}, "blocks": {}{window}{}"#,
        ack.next,
        ack.echo.0,
        bit(Flags::SYN),
        bit(Flags::ECE),
        bit(Flags::CWR),
        bit(Flags::AE),
        u8::from(ack.options.window.is_some()),
        ack.options.blocks().count(),
        blocks.unwrap_or_default()
    )
}

/// The fields of a message that may name a connection.
fn named(subflow: Option<Subflow>) -> String {
    let many = u8::from(subflow.is_some());
    let fields = subflow.map(|s| format!(r#", "place": {}, "opening": {}"#, s.place, s.opening)).unwrap_or_default();
    format!(r#""several": {many}{fields}"#)
}

/// The datagram's fields as JSON, by the names that a dissector should give them.
fn fields(datagram: &Datagram, payload: usize) -> String {
    let (kind, rest) = match datagram.message {
        Message::Request(m) => {
            let ecn = u8::from(m.ecn == Ecn::On);
            (1, format!(r#""nonce": {}, "packet_size": {}, "ecn": {ecn}"#, m.nonce.0, m.packet_size))
        }
        Message::Accept(m) => {
            let limit = match m.limit {
                RateLimit::None => u32::MAX,
                RateLimit::BytesPerSecond(n) => n,
            };
            (2, format!(r#""nonce": {}, "limit": {limit}"#, m.nonce.0))
        }
        Message::Refuse(m) => (3, format!(r#""nonce": {}, "reason": {}"#, m.nonce.0, m.reason.0)),
        Message::Close(m) => (4, format!(r#""nonce": {}, "reason": {}"#, m.nonce.0, m.reason.0)),
        Message::Data(m) => {
            let (sequence, timestamp, rtt) = (m.sequence, m.timestamp.0, m.rtt.0);
            let (framed, last) = (u8::from(m.frame.is_some()), u8::from(m.frame.is_some_and(|part| part.last)));
            let captured = m.frame.map(|part| format!(r#", "captured": {}"#, part.captured.0)).unwrap_or_default();
            (
                5,
                format!(
                    r#""sequence": {sequence}, "timestamp": {timestamp}, "rtt": {rtt}, "rtt_s": {:?}, "payload": {payload}, "framed": {framed}, "last": {last}{captured}, {}"#,
                    m.rtt.span().as_secs_f64(),
                    named(m.subflow)
                ),
            )
        }
        Message::Single(m) => {
            let (sequence, timestamp) = (m.sequence, m.timestamp.0);
            (7, format!(r#""sequence": {sequence}, "timestamp": {timestamp}, "payload": {payload}"#))
        }
        Message::Ack(m) => {
            let LastHole { received_end, hole_end, hole_start } = m.hole;
            let hole = format!(r#""received_end": {received_end}, "hole_end": {hole_end}, "hole_start": {hole_start}"#);
            (8, format!(r#""sequence": {}, "echo": {}, {hole}"#, m.sequence, m.echo.0))
        }
        Message::Segment(m) => {
            let bit = |flag| u8::from(m.flags.has(flag));
            let [syn, push, cwr, ece, ae] = [Flags::SYN, Flags::PUSH, Flags::CWR, Flags::ECE, Flags::AE].map(bit);
            let flags = format!(r#""syn": {syn}, "push": {push}, "cwr": {cwr}, "segment_ece": {ece}, "ae": {ae}"#);
            let (sequence, timestamp) = (m.sequence, m.timestamp.0);
            (9, format!(r#""sequence": {sequence}, "timestamp": {timestamp}, "payload": {payload}, {flags}"#))
        }
        Message::SegmentAck(m) => (10, of_segments(&m)),
        Message::Plain(m) => {
            let (sequence, timestamp) = (m.sequence, m.timestamp.0);
            (11, format!(r#""sequence": {sequence}, "timestamp": {timestamp}, "payload": {payload}"#))
        }
        Message::Feedback(m) => (
            6,
            format!(
                r#""received_end": {}, "echo": {}, "delay": {}, "delay_s": {:?}, "received": {}, "marked": {}, "receive_rate": {:?}, "loss_event_rate": {:?}, {}"#,
                m.received_end,
                m.echo.0,
                m.delay.0,
                m.delay.span().as_secs_f64(),
                m.received,
                m.marked,
                m.receive_rate,
                m.loss_event_rate,
                named(m.subflow),
            ),
        ),
    };
    format!(r#"{{"type": {kind}, "connection": {}, {rest}}}"#, datagram.connection.0)
}

/// One packet of a capture: pcap's record header, IPv4, UDP (without a checksum), the datagram.
fn record(number: u32, datagram: &[u8]) -> Vec<u8> {
    let udp = 8 + datagram.len() as u16;
    let ip = 20 + udp;
    let mut bytes = Vec::new();
    for word in [number, 0, u32::from(ip), u32::from(ip)] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&[0x45, 0]);
    bytes.extend_from_slice(&ip.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    for half in [50_000u16, 50_001, udp, 0] {
        bytes.extend_from_slice(&half.to_be_bytes());
    }
    bytes.extend_from_slice(datagram);
    bytes
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(capture), Some(expected)) = (args.next(), args.next()) else {
        return Err(std::io::Error::other("usage: tfrc_capture FILE.pcap FILE.jsonl"));
    };
    let mut capture = std::fs::File::create(capture)?;
    let mut expected = std::fs::File::create(expected)?;
    let mut head = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
    head.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.extend_from_slice(&65_535u32.to_le_bytes());
    head.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
    capture.write_all(&head)?;
    let mut state = 1;
    let mut all: Vec<(Datagram, &[u8])> = samples::samples().into_iter().map(|(_, d, payload)| (d, payload)).collect();
    all.extend((0..RANDOM_MESSAGES).map(|_| (random(&mut state), &b""[..])));
    for (number, (datagram, payload)) in (0..).zip(all) {
        let mut bytes = Vec::new();
        datagram.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        capture.write_all(&record(number, &bytes))?;
        writeln!(expected, "{}", fields(&datagram, payload.len()))?;
    }
    Ok(())
}
