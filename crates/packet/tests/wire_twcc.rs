//! Transport-wide feedback: bytes by hand, the rules, `rtcp-types` as a second reader and writer, and a bound on what few
//! bytes can stand for.

use crate::compounds::{plain, transport};
use paceline_packet::rtcp::*;
use paceline_packet::rtp::Ssrc;
use paceline_packet::wire::rtcp::{DecodeError, EncodeError, decode, encode};
use proptest::prelude::*;
use rtcp_types::prelude::*;
use rtcp_types::{Twcc, TwccPacketStatus};

fn alone(transport: Vec<TransportFeedback>) -> Compound {
    Compound { transport, reduced: true, ..plain(0x0a, "") }
}

fn encoded(transport: Vec<TransportFeedback>) -> Vec<u8> {
    let (compound, mut bytes) = (alone(transport), Vec::new());
    encode(&compound, &mut bytes).expect("in range");
    assert_eq!(bytes.len(), compound.wire_len());
    assert_eq!(decode(&bytes), Ok(compound));
    bytes
}

fn feedback(deltas: &[Option<i16>]) -> TransportFeedback {
    TransportFeedback {
        ssrc: Ssrc(0x0b),
        base: 0xfffe,
        reference: ReferenceTime::from_bits(0x01_0203),
        count: 4,
        packets: deltas.iter().map(|delta| delta.map(ArrivalDelta)).collect(),
    }
}

/// The chunks and deltas of a feedback on these packets, after 20 bytes that are the same for all but for the count.
fn content(deltas: &[Option<i16>]) -> Vec<u8> {
    let bytes = encoded(vec![feedback(deltas)]);
    let words = (bytes.len() / 4 - 1) as u8;
    let count = deltas.len().to_be_bytes();
    let head = [0x8f, 205, 0, words, 0, 0, 0, 0x0a, 0, 0, 0, 0x0b, 0xff, 0xfe, count[6], count[7], 1, 2, 3, 4];
    assert_eq!(bytes[..20], head);
    bytes[20..].to_vec()
}

/// Sections 3.1.3 to 3.1.5: the chunk that holds most, whatever its kind.
#[test]
fn the_bytes_of_each_kind_of_chunk() {
    let (missing, small) = (None, Some(1));
    assert_eq!(content(&[small]), [0x20, 1, 1, 0]);
    assert_eq!(content(&[small; 3]), [0x20, 3, 1, 1, 1, 0, 0, 0]);
    assert_eq!(content(&[Some(-1), Some(256)]), [0x40, 2, 0xff, 0xff, 1, 0, 0, 0]);
    assert_eq!(content(&[missing; 20]), [0x00, 20, 0, 0]);
    let long = [vec![missing; 8191 + 5], vec![small]].concat();
    assert_eq!(content(&long), [0x1f, 0xff, 0x80 | 0b000001, 0, 1, 0, 0, 0][..]);
    // a vector of one bit: 14 symbols, or to the end
    assert_eq!(content(&[small, missing, small]), [0b1010_1000, 0, 1, 1]);
    let mixed = [small, missing].repeat(8);
    assert_eq!(content(&mixed), [0b1010_1010, 0b1010_1010, 0b1010_0000, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    // one of two bits: seven
    assert_eq!(content(&[small, missing, Some(300)]), [0b1101_0010, 0, 1, 1, 0x2c, 0, 0, 0]);
    let eight = [small, missing, Some(300), small, small, small, missing, small];
    assert_eq!(content(&eight), [0b1101_0010, 0b0101_0100, 0x20, 1, 1, 1, 0x2c, 1, 1, 1, 1, 0][..]);
}

/// Other writers cut chunks otherwise, and say a small delta in two bytes.
#[test]
fn chunks_that_another_would_have_written() {
    let head = |words: u8, count: u8| {
        [0x8f, 205, 0, words, 0, 0, 0, 0x0a, 0, 0, 0, 0x0b, 0xff, 0xfe, 0, count, 1, 2, 3, 4].to_vec()
    };
    let read = |words: u8, count: u8, content: &[u8]| {
        decode(&[&head(words, count)[..], content].concat()).map(|read| read.transport[0].clone())
    };
    assert_eq!(read(5, 2, &[0x20, 9, 1, 2]), Ok(feedback(&[Some(1), Some(2)])), "a run longer than the count");
    assert_eq!(read(5, 1, &[0x40, 1, 0, 7]), Ok(feedback(&[Some(7)])), "small, in two bytes");
    assert_eq!(read(6, 2, &[0x20, 1, 0x20, 1, 1, 2, 0, 0]), Ok(feedback(&[Some(1), Some(2)])), "two chunks");
    assert_eq!(read(6, 1, &[0x20, 0, 0x20, 1, 1, 0, 0, 0]), Ok(feedback(&[Some(1)])), "an empty one");
    let padded = [&[0xaf, 205, 0, 6][..], &head(6, 1)[4..], &[0x20, 1, 1, 0, 0, 0, 0, 4]].concat();
    assert_eq!(decode(&padded).map(|read| read.transport), Ok(vec![feedback(&[Some(1)])]), "with the padding bit");
    // what is none
    assert_eq!(read(5, 0, &[0x20, 1, 1, 0]), Err(DecodeError::Statuses(0)));
    assert_eq!(read(5, 1, &[0x60, 1, 0, 0]), Err(DecodeError::Symbol), "section 3.1.1: reserved");
    assert_eq!(read(5, 3, &[0x20, 1, 1, 0]), Err(DecodeError::Content(205)), "chunks are missing");
    assert_eq!(read(5, 3, &[0x20, 3, 1, 0]), Err(DecodeError::Content(205)), "deltas are missing");
    assert_eq!(decode(&[0x8f, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1]), Err(DecodeError::Content(205)));
    for error in [DecodeError::Statuses(0), DecodeError::Symbol, DecodeError::Beside(200), DecodeError::Nothing] {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn of_another_participant_it_is_left_out() {
    let compound = Compound { transport: vec![feedback(&[Some(1)])], ..plain(0x0a, "x") };
    let mut bytes = Vec::new();
    encode(&compound, &mut bytes).unwrap();
    let begin = bytes.len() - 24;
    bytes[begin + 7] = 9;
    assert_eq!(decode(&bytes), Ok(plain(0x0a, "x")));
}

/// Two bytes can say that 8191 packets are missing: what a datagram stands for is bounded.
#[test]
fn few_bytes_do_not_stand_for_many_packets() {
    let half = TransportFeedback { packets: vec![None; 32_768], ..feedback(&[]) };
    let mut bytes = Vec::new();
    let two = alone(vec![half.clone(), half.clone()]);
    assert_eq!(encode(&two, &mut bytes), Err(EncodeError::Statuses(32_768)));
    assert!(bytes.is_empty());
    assert_eq!(encode(&alone(vec![feedback(&[])]), &mut bytes), Err(EncodeError::Statuses(0)));
    assert!(!EncodeError::Statuses(0).to_string().is_empty() && !EncodeError::Reduced.to_string().is_empty());
    let one = encoded(vec![half]);
    assert!(one.len() < 40);
    assert_eq!(decode(&one.repeat(2)), Err(DecodeError::Statuses(32_768)));
    let longest = TransportFeedback { packets: vec![None; TransportFeedback::MAX], ..feedback(&[]) };
    encoded(vec![longest]);
}

fn status(packet: &Option<ArrivalDelta>) -> TwccPacketStatus {
    packet.map_or(TwccPacketStatus::NotReceived, |delta| TwccPacketStatus::Received { delta: delta.0 })
}

proptest! {
    #[test]
    fn the_reference_reads_what_is_written(feedback in transport()) {
        let bytes = encoded(vec![feedback.clone()]);
        let packets: Vec<_> = rtcp_types::Compound::parse(&bytes).unwrap().collect::<Result<_, _>>().unwrap();
        let [rtcp_types::Packet::TransportFeedback(read)] = &packets[..] else { panic!("{packets:?}") };
        prop_assert_eq!((read.sender_ssrc(), read.media_ssrc()), (0x0a, feedback.ssrc.0));
        let twcc = read.parse_fci::<Twcc<'_>>().unwrap();
        prop_assert_eq!(twcc.base_sequence_number(), feedback.base);
        prop_assert_eq!(twcc.reference_time(), feedback.reference.bits());
        prop_assert_eq!(twcc.feedback_packet_count(), feedback.count);
        let decoded: Vec<_> = twcc.packets().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(decoded.len(), feedback.packets.len());
        for (place, ((number, decoded), ours)) in decoded.iter().zip(&feedback.packets).enumerate() {
            prop_assert_eq!(*number, feedback.base.wrapping_add(place as u16));
            prop_assert_eq!(*decoded, status(ours));
        }
    }

    /// It cuts its chunks by rules of its own.
    #[test]
    fn what_the_reference_writes_is_read(feedback in transport()) {
        let statuses: Vec<_> = feedback.packets.iter().map(status).collect();
        let twcc = Twcc::builder(feedback.base, feedback.reference.bits(), feedback.count, &statuses, None);
        let packet = rtcp_types::TransportFeedback::builder(&twcc).sender_ssrc(0x0a).media_ssrc(feedback.ssrc.0);
        let mut bytes = vec![0; packet.calculate_size().unwrap()];
        packet.write_into(&mut bytes).unwrap();
        prop_assert_eq!(decode(&bytes), Ok(alone(vec![feedback])));
    }

    /// Statuses cut anywhere: an error, or fewer packets.
    #[test]
    fn cut_short_it_is_refused(feedback in transport(), cut: prop::sample::Index) {
        let bytes = encoded(vec![feedback]);
        let words = 1 + cut.index(bytes.len() / 4 - 1);
        let mut less = bytes[..4 * words].to_vec();
        less[2..4].copy_from_slice(&(words as u16 - 1).to_be_bytes());
        prop_assert!(decode(&less).is_err());
    }

    /// Any content after a right head, and right bytes with some changed: an answer, and what is read reads the same again.
    #[test]
    fn damaged_bytes_get_an_answer(
        feedback in transport(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        content in prop::collection::vec(any::<[u8; 4]>(), 0..20),
    ) {
        let mut right = encoded(vec![feedback]);
        right.truncate(400);
        for (place, byte) in damage {
            let place = 8 + place.index(right.len() - 8);
            right[place] = byte;
        }
        let words = right.len() / 4 - 1;
        right[2..4].copy_from_slice(&(words as u16).to_be_bytes());
        right.truncate(4 * words + 4);
        let any = [&[0x8f, 205, 0, content.len() as u8 + 1, 0, 0, 0, 9][..], &content.concat()].concat();
        for bytes in [right, any] {
            match decode(&bytes) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(read) => {
                    let mut again = Vec::new();
                    encode(&read, &mut again).unwrap();
                    prop_assert_eq!(again.len(), read.wire_len());
                    prop_assert_eq!(decode(&again), Ok(read));
                }
            }
        }
    }
}
