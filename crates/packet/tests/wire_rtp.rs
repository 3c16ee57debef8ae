//! RTP data packets: exact round trips, and an answer to any bytes.

use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::wire::rtp::{DecodeError, PayloadTypeError, decode, encode};
use proptest::prelude::*;

const DATA: RtpData = RtpData {
    ssrc: Ssrc(0x0a0b_0c0d),
    timestamp: 0x0102_0304,
    sequence: 0xfffe,
    payload_type: 96,
    marker: true,
    transport: None,
    original: None,
};
const HEADER: [u8; RtpData::LEN] = [0x80, 0xe0, 0xff, 0xfe, 1, 2, 3, 4, 10, 11, 12, 13];

#[test]
fn the_bytes_of_a_header() {
    let mut bytes = Vec::new();
    encode(&DATA, &mut bytes).unwrap();
    assert_eq!(bytes, HEADER);
    assert_eq!(decode(&[&HEADER[..], b"abc"].concat()), Ok((DATA, &b"abc"[..])));
    let wrong = RtpData { payload_type: 128, ..DATA };
    assert_eq!(encode(&wrong, &mut bytes), Err(PayloadTypeError(128)));
    assert_eq!(bytes, HEADER, "nothing is appended");
}

/// The figure of the draft's section 2, with the id of ours.
#[test]
fn the_bytes_of_a_transport_wide_number() {
    let data = RtpData { transport: Some(0x1234), ..DATA };
    let mut bytes = Vec::new();
    encode(&data, &mut bytes).unwrap();
    let mut header = [&HEADER[..], &[0xbe, 0xde, 0, 1, 0x11, 0x12, 0x34, 0]].concat();
    header[0] = 0x90;
    assert_eq!(bytes, header);
    assert_eq!(bytes.len(), RtpData::LEN + RtpData::TRANSPORT_LEN);
    assert_eq!(decode(&[&bytes[..], b"abc"].concat()), Ok((data, &b"abc"[..])));
}

/// RFC 4588 section 4: the original's number, then its payload.
#[test]
fn the_bytes_of_a_retransmission() {
    let data = RtpData { payload_type: RtpData::RETRANSMISSION, original: Some(0x0506), ..DATA };
    let mut bytes = Vec::new();
    encode(&data, &mut bytes).unwrap();
    let mut header = [&HEADER[..], &[5, 6]].concat();
    header[1] = 0x80 | 98;
    assert_eq!(bytes, header);
    assert_eq!(decode(&[&bytes[..], b"abc"].concat()), Ok((data, &b"abc"[..])));
    assert_eq!(decode(&header[..13]), Err(DecodeError::Truncated));
    let key = RtpData::retransmitted_type(RtpData::KEY_RETRANSMISSION);
    assert_eq!((key, RtpData::retransmitted_type(96)), (Some(RtpData::KEY), None));
}

/// RFC 8285 section 4.2: other elements and what fills up are passed over, up to the end or to what no element can be.
#[test]
fn the_number_is_found_among_other_elements() {
    let read = |kind: u16, elements: &[u8]| {
        let mut bytes = HEADER.to_vec();
        bytes[0] = 0x90;
        bytes.extend(kind.to_be_bytes());
        bytes.extend((elements.len() as u16 / 4).to_be_bytes());
        bytes.extend_from_slice(elements);
        decode(&bytes).unwrap().0.transport
    };
    assert_eq!(read(0xbede, &[0x20, 7, 0, 0, 0x11, 0x12, 0x34, 0]), Some(0x1234));
    assert_eq!(read(0xbede, &[0x32, 1, 2, 3, 0x11, 0, 5, 0x11, 0, 6, 0, 0]), Some(5), "the first");
    assert_eq!(read(0xbede, &[0x12, 1, 2, 3]), None, "of another length");
    assert_eq!(read(0xbede, &[0x2f, 1, 0x11, 2]), None, "longer than the extension");
    assert_eq!(read(0xbede, &[0xf0, 0x11, 1, 2]), None, "an id of 15 ends it");
    assert_eq!(read(0xbede, &[0x01, 0x11, 1, 2]), None, "and so does one of 0 with a length");
    assert_eq!(read(0xbede, &[0, 0, 0x11, 2]), None);
    assert_eq!(read(0x1000, &[0x11, 0x12, 0x34, 0]), None, "two-byte elements");
    assert_eq!(read(0xbede, &[]), None);
}

#[test]
fn what_the_values_have_no_place_for_is_left_out() {
    let with = |first: u8, rest: &[u8]| {
        let mut bytes = [&HEADER[..], rest].concat();
        bytes[0] = first;
        bytes
    };
    // a contributing source; an extension of one word; padding of three bytes
    for bytes in [with(0x81, b"1234abc"), with(0x90, b"id\0\x011234abc"), with(0xa0, b"abc\0\0\x03")] {
        assert_eq!(decode(&bytes), Ok((DATA, &b"abc"[..])), "{bytes:?}");
    }
    assert_eq!(decode(&HEADER[..11]), Err(DecodeError::Truncated));
    assert_eq!(decode(&with(0x40, b"")), Err(DecodeError::Version(1)));
    assert_eq!(decode(&with(0x81, b"123")), Err(DecodeError::Truncated));
    assert_eq!(decode(&with(0x90, b"id\0\x01123")), Err(DecodeError::Truncated));
    assert_eq!(decode(&with(0xa0, b"ab\0")), Err(DecodeError::Padding));
    assert_eq!(decode(&with(0xa0, b"ab\x04")), Err(DecodeError::Truncated));
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(
        (ssrc, timestamp, sequence, marker, transport) in any::<(u32, u32, u16, bool, Option<u16>)>(),
        payload_type in prop_oneof![0u8..128, Just(RtpData::RETRANSMISSION)],
        original: u16,
        payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let original = RtpData::retransmitted_type(payload_type).map(|_| original);
        let data = RtpData { ssrc: Ssrc(ssrc), timestamp, sequence, payload_type, marker, transport, original };
        let mut bytes = Vec::new();
        encode(&data, &mut bytes).unwrap();
        bytes.extend_from_slice(&payload);
        prop_assert_eq!(decode(&bytes), Ok((data, &payload[..])));
    }

    /// The second first byte passes the check of the version.
    #[test]
    fn any_bytes_get_an_answer(mut bytes in prop::collection::vec(any::<u8>(), 0..60), flags in 0u8..64) {
        let _ = decode(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = 0x80 | flags;
        }
        match decode(&bytes) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok((data, payload)) => {
                let mut again = Vec::new();
                encode(&data, &mut again).unwrap();
                again.extend_from_slice(payload);
                prop_assert_eq!(decode(&again), Ok((data, payload)));
            }
        }
    }
}
