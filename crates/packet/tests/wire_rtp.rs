//! RTP data packets: exact round trips, and an answer to any bytes.

use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::wire::rtp::{DecodeError, PayloadTypeError, decode, encode};
use proptest::prelude::*;

const DATA: RtpData =
    RtpData { ssrc: Ssrc(0x0a0b_0c0d), timestamp: 0x0102_0304, sequence: 0xfffe, payload_type: 96, marker: true };
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
        (ssrc, timestamp, sequence, marker) in any::<(u32, u32, u16, bool)>(),
        payload_type in 0u8..128,
        payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let data = RtpData { ssrc: Ssrc(ssrc), timestamp, sequence, payload_type, marker };
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
