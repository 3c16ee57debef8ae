//! Arbitrary bytes for the decoder of RTP data packets; what it accepts can be written, and reads the same.

use paceline_packet::wire::rtp::{decode, encode};

/// The target `wire_rtp`.
pub fn wire_rtp(bytes: &[u8]) {
    match decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok((data, payload)) => {
            let mut again = Vec::new();
            encode(&data, &mut again).expect("what was read can be written");
            again.extend_from_slice(payload);
            assert_eq!(decode(&again), Ok((data, payload)));
        }
    }
}
