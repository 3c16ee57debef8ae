//! Arbitrary bytes for the decoder of RTCP compound packets; what it accepts can be written, and reads the same.

use paceline_packet::wire::rtcp::{decode, encode};

/// The target `wire_rtcp`.
pub fn wire_rtcp(bytes: &[u8]) {
    match decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(compound) => {
            let mut again = Vec::new();
            encode(&compound, &mut again).expect("what was read can be written");
            assert_eq!(again.len(), compound.wire_len());
            assert_eq!(decode(&again).as_ref(), Ok(&compound));
        }
    }
}
