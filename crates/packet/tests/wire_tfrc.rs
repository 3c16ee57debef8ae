//! TFRC over UDP: golden bytes, exact round trips, and an answer to any bytes.

use crate::samples;

use core::num::NonZeroU32;
use paceline_packet::wire::tfrc::*;
use paceline_packet::{Block, Flags, FramePart, LastHole, Stamp, Subflow, TcpOptions};
use paceline_units::Span;
use proptest::prelude::*;
use std::fmt::Write;

fn encoded(datagram: &Datagram, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram.encode(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let words = bytes.chunks(4).map(|word| word.iter().map(|b| format!("{b:02x}")).collect::<String>());
    let words: Vec<_> = words.collect();
    words.chunks(4).map(|row| row.join(" ")).collect::<Vec<_>>().join("\n")
}

/// Every sample as text: its name, its bytes in words of 32 bits, four to a row.
fn listing() -> String {
    let mut text = String::new();
    for (name, datagram, payload) in samples::samples() {
        writeln!(text, "{name}\n{}\n", hex(&encoded(&datagram, payload))).expect("text can be written");
    }
    text
}

#[test]
fn golden_bytes() {
    let golden = include_str!("golden/tfrc.txt");
    let now = listing();
    assert!(golden == now, "the format has changed; golden/tfrc.txt is version 1 and stays. Now:\n{now}");
}

#[test]
fn golden_bytes_decode_to_the_samples() {
    let bytes = |rows: &str| -> Vec<u8> {
        let digits: String = rows.split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hex")).collect()
    };
    let golden = include_str!("golden/tfrc.txt");
    let mut seen = 0;
    for (entry, (name, datagram, payload)) in golden.trim_end().split("\n\n").zip(samples::samples()) {
        let (title, rows) = entry.split_once('\n').expect("a name and rows");
        assert_eq!(title, name);
        assert_eq!(decode(&bytes(rows)), Ok((datagram, payload)), "{name}");
        seen += 1;
    }
    assert_eq!(seen, samples::samples().len());
}

#[test]
fn no_answer_is_longer_than_its_request() {
    let len = |wanted: &str| {
        let all = samples::samples();
        let found = all.iter().find(|(name, ..)| *name == wanted).expect("a sample of that name");
        encoded(&found.1, found.2).len()
    };
    assert_eq!(len("request"), SHORT_LEN);
    assert!(len("accept") <= len("request") && len("refuse") <= len("request"), "a reflector would amplify");
    assert_eq!(len("feedback"), FEEDBACK_LEN);
}

#[test]
fn ticks_round_to_the_nearest_and_keep_zero_apart() {
    assert_eq!(Ticks::nearest(Span::ZERO), Ticks(0));
    assert_eq!(Ticks::nearest(Span(1)), Ticks(1));
    assert_eq!(Ticks::nearest(Span(127)), Ticks(1));
    assert_eq!(Ticks::nearest(Span(256 * 7 + 127)), Ticks(7));
    assert_eq!(Ticks::nearest(Span(256 * 7 + 128)), Ticks(8));
    assert_eq!(Ticks::nearest(Span::MAX), Ticks(u32::MAX));
    assert_eq!(Ticks(u32::MAX).span(), Span(256 * u64::from(u32::MAX)));
}

/// The bytes of a sample, changed.
fn spoilt(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<Datagram, DecodeError> {
    let all = samples::samples();
    let (_, datagram, payload) = all.iter().find(|(n, ..)| *n == name).expect("a sample of that name");
    let mut bytes = encoded(datagram, payload);
    change(&mut bytes);
    decode(&bytes).map(|(datagram, _)| datagram)
}

#[test]
fn each_way_to_be_wrong_has_its_error() {
    assert_eq!(spoilt("data", |b| b.clear()), Err(DecodeError::NotOurs));
    assert_eq!(spoilt("data", |b| b[1] = b'S'), Err(DecodeError::NotOurs));
    assert_eq!(spoilt("data", |b| b.truncate(3)), Err(DecodeError::Length(3)));
    assert_eq!(spoilt("data", |b| b[2] = 0x25), Err(DecodeError::Version(2)));
    assert_eq!(spoilt("data", |b| b[2] = 0x10), Err(DecodeError::Type(0)));
    assert_eq!(spoilt("data", |b| b[2] = 0x1c), Err(DecodeError::Type(12)));
    assert_eq!(spoilt("data", |b| b[3] = 1), Err(DecodeError::Reserved));
    for flag in [0x08, 0x10] {
        assert_eq!(spoilt("data", |b| b[3] = flag), Err(DecodeError::Reserved));
        assert_eq!(spoilt("feedback", |b| b[3] = flag), Err(DecodeError::Reserved));
    }
    assert_eq!(spoilt("data of a frame", |b| b[3] = 0x14), Err(DecodeError::Reserved));
    assert_eq!(spoilt("data of a frame", |b| b.truncate(23)), Err(DecodeError::Length(23)));
    assert_eq!(spoilt("feedback", |b| b[3] = 4), Err(DecodeError::Reserved));
    assert_eq!(spoilt("accept", |b| b[3] = 2), Err(DecodeError::Reserved));
    assert_eq!(spoilt("packet", |b| b[3] = 2), Err(DecodeError::Reserved));
    assert_eq!(spoilt("packet", |b| b.truncate(15)), Err(DecodeError::Length(15)));
    assert_eq!(spoilt("packet", |b| b[8..12].fill(0xff)), Err(DecodeError::Sequence));
    assert_eq!(spoilt("acknowledgement", |b| b.push(0)), Err(DecodeError::Length(ACK_LEN + 1)));
    // a packet that has not come, no packet come behind the hole, a hole that ends before it begins
    for (at, number) in [(8, 4243u32), (20, 4243), (24, 4241)] {
        let error = spoilt("acknowledgement", |b| b[at..at + 4].copy_from_slice(&number.to_be_bytes()));
        assert_eq!(error, Err(DecodeError::Hole), "{number} at {at}");
    }
    for flag in [0x01, 0x02, 0x80] {
        assert_eq!(spoilt("segment", |b| b[3] = flag), Err(DecodeError::Reserved));
    }
    // ECE and AE (RFC 9768)
    for flag in [0x20, 0x40] {
        assert!(spoilt("segment", |b| b[3] = flag).is_ok());
    }
    for flag in [0x01, 0x02, 0x20, 0x40, 0x80] {
        assert_eq!(spoilt("datagram that nobody answers", |b| b[3] = flag), Err(DecodeError::Reserved));
    }
    assert_eq!(spoilt("acknowledgement of segments", |b| b[3] = 0x80), Err(DecodeError::Reserved));
    assert_eq!(spoilt("segment", |b| b[8..12].fill(0xff)), Err(DecodeError::Sequence));
    assert_eq!(spoilt("segment", |b| b.truncate(15)), Err(DecodeError::Length(15)));
    assert_eq!(spoilt("datagram that nobody answers", |b| b.truncate(15)), Err(DecodeError::Length(15)));
    assert_eq!(spoilt("acknowledgement of segments", |b| b[3] = 1), Err(DecodeError::Length(SEGMENT_ACK_LEN)));
    assert_eq!(spoilt("acknowledgement of segments", |b| b[3] = 0x10), Err(DecodeError::Length(SEGMENT_ACK_LEN)));
    let blocks = "acknowledgement of segments with blocks";
    assert_eq!(spoilt(blocks, |b| b[3] = 1), Err(DecodeError::Length(SEGMENT_ACK_LEN + 2 * BLOCK_LEN)));
    assert_eq!(spoilt(blocks, |b| b[16..20].copy_from_slice(&4251u32.to_be_bytes())), Err(DecodeError::Block));
    let full = "acknowledgement of segments with all that it can have";
    assert_eq!(spoilt(full, |b| b[16..20].fill(0)), Err(DecodeError::Window));
    let (named, len) = ("data of one of several connections", SHORT_LEN + SUBFLOW_LEN);
    assert_eq!(spoilt(named, |b| b.truncate(len - 1)), Err(DecodeError::Length(len - 1)));
    let (named, len) = ("feedback for one of several connections", FEEDBACK_LEN + SUBFLOW_LEN);
    assert_eq!(spoilt(named, |b| b.push(0)), Err(DecodeError::Length(len + 1)));
    assert_eq!(spoilt(named, |b| b[3] = 0), Err(DecodeError::Length(len)));
    assert_eq!(spoilt("data", |b| b.truncate(SHORT_LEN - 1)), Err(DecodeError::Length(SHORT_LEN - 1)));
    assert_eq!(spoilt("request", |b| b[3] = 2), Err(DecodeError::Reserved));
    assert_eq!(spoilt("request", |b| b[19] = 1), Err(DecodeError::Reserved));
    assert_eq!(spoilt("close", |b| b[18] = 1), Err(DecodeError::Reserved));
    assert_eq!(spoilt("accept", |b| b.push(0)), Err(DecodeError::Length(SHORT_LEN + 1)));
    assert_eq!(spoilt("feedback", |b| b.truncate(43)), Err(DecodeError::Length(43)));
    for (number, error) in [
        (f64::NAN, DecodeError::ReceiveRate),
        (f64::INFINITY, DecodeError::ReceiveRate),
        (-0.0, DecodeError::ReceiveRate),
        (-1.0, DecodeError::ReceiveRate),
    ] {
        assert_eq!(spoilt("feedback", |b| b[28..36].copy_from_slice(&number.to_be_bytes())), Err(error));
    }
    for number in [f64::NAN, 1.0 + f64::EPSILON, -0.0, -0.5] {
        let error = Err(DecodeError::LossEventRate);
        assert_eq!(spoilt("feedback", |b| b[36..44].copy_from_slice(&number.to_be_bytes())), error);
    }
    let min_positive = f64::from_bits(1);
    assert!(spoilt("feedback", |b| b[36..44].copy_from_slice(&min_positive.to_be_bytes())).is_ok());
}

fn subflow() -> impl Strategy<Value = Option<Subflow>> {
    prop::option::of(any::<[u16; 2]>().prop_map(|[place, opening]| Subflow { place, opening }))
}

fn part() -> impl Strategy<Value = Option<FramePart>> {
    prop::option::of((any::<u32>(), any::<bool>()).prop_map(|(at, last)| FramePart { captured: Stamp(at), last }))
}

fn flags(of: &'static [Flags]) -> impl Strategy<Value = Flags> {
    prop::sample::subsequence(of, 0..=of.len()).prop_map(|set| set.into_iter().fold(Flags::NONE, Flags::with))
}

fn blocks() -> impl Strategy<Value = [Block; 3]> {
    prop::collection::vec((0..u32::MAX, 1..u32::MAX), 0..=3).prop_map(|all| {
        let mut blocks = [Block::default(); 3];
        for (block, (start, len)) in blocks.iter_mut().zip(all) {
            *block = Block { start, end: start.saturating_add(len) };
        }
        blocks
    })
}

fn message() -> impl Strategy<Value = Message> {
    let nonce = || any::<u64>().prop_map(Nonce);
    let reason = || any::<u16>().prop_map(Reason);
    let limit = prop_oneof![Just(RateLimit::None), (0..u32::MAX).prop_map(RateLimit::BytesPerSecond)];
    prop_oneof![
        (nonce(), any::<u16>(), prop::sample::select(vec![Ecn::Off, Ecn::On]))
            .prop_map(|(nonce, packet_size, ecn)| Message::Request(Request { nonce, packet_size, ecn })),
        (0..u32::MAX, any::<u32>())
            .prop_map(|(sequence, stamp)| Message::Single(Single { sequence, timestamp: Stamp(stamp) })),
        any::<[u32; 5]>().prop_map(|[end, hole_end, hole_start, sequence, echo]| {
            let received_end = end.max(1);
            let hole_end = hole_end % received_end;
            let hole = LastHole { received_end, hole_end, hole_start: hole_start.min(hole_end) };
            Message::Ack(Ack { sequence: sequence % received_end, echo: Stamp(echo), hole })
        }),
        (0..u32::MAX, any::<u32>(), flags(&[Flags::SYN, Flags::PUSH, Flags::CWR, Flags::ECE, Flags::AE])).prop_map(
            |(sequence, stamp, flags)| { Message::Segment(Segment { sequence, timestamp: Stamp(stamp), flags }) }
        ),
        (any::<[u32; 2]>(), flags(&[Flags::SYN, Flags::ECE, Flags::CWR, Flags::AE]), blocks(), any::<u32>()).prop_map(
            |([next, echo], flags, sack, window)| {
                let options = TcpOptions { sack, window: NonZeroU32::new(window.saturating_sub(u32::MAX / 2)) };
                Message::SegmentAck(SegmentAck { next, echo: Stamp(echo), flags, options })
            }
        ),
        any::<[u32; 2]>().prop_map(|[sequence, stamp]| Message::Plain(Plain { sequence, timestamp: Stamp(stamp) })),
        (nonce(), limit).prop_map(|(nonce, limit)| Message::Accept(Accept { nonce, limit })),
        (nonce(), reason()).prop_map(|(nonce, reason)| Message::Refuse(Refuse { nonce, reason })),
        (nonce(), reason()).prop_map(|(nonce, reason)| Message::Close(Close { nonce, reason })),
        (any::<[u32; 3]>(), subflow(), part()).prop_map(|([sequence, stamp, rtt], subflow, frame)| {
            Message::Data(Data { sequence, timestamp: Stamp(stamp), rtt: Ticks(rtt), subflow, frame })
        }),
        (any::<[u32; 5]>(), 0.0..f64::MAX, 0.0..=1.0, subflow()).prop_map(
            |([end, echo, delay, received, marked], rate, p, subflow)| {
                Message::Feedback(Feedback {
                    received_end: end,
                    echo: Stamp(echo),
                    delay: Ticks(delay),
                    received,
                    marked,
                    receive_rate: rate,
                    loss_event_rate: p,
                    subflow,
                })
            }
        ),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_itself(
        connection: u32, message in message(), payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let datagram = Datagram { connection: ConnectionId(connection), message };
        let carries =
            matches!(message, Message::Data(_) | Message::Single(_) | Message::Segment(_) | Message::Plain(_));
        let payload = if carries { payload } else { Vec::new() };
        let bytes = encoded(&datagram, &payload);
        prop_assert_eq!(decode(&bytes), Ok((datagram, &payload[..])));
    }

    #[test]
    fn any_bytes_get_an_answer_and_what_is_read_is_written_the_same(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..13, flags in 0u8..128, ours: bool,
    ) {
        if ours && bytes.len() > 3 {
            let flags = if matches!(kind, 9 | 10) { flags } else { 0 };
            bytes[..4].copy_from_slice(&[b'P', b'T', 0x10 | kind, flags]);
            bytes.truncate(match kind {
                6 => FEEDBACK_LEN,
                8 => ACK_LEN,
                10 => {
                    let window = if flags & 0x10 != 0 { WINDOW_LEN } else { 0 };
                    SEGMENT_ACK_LEN + window + BLOCK_LEN * usize::from(flags & 3)
                }
                _ => SHORT_LEN,
            });
        }
        if let Ok((datagram, payload)) = decode(&bytes) {
            prop_assert_eq!(encoded(&datagram, payload), bytes);
        }
    }
}
