//! Arbitrary bytes for the decoder of TFRC over UDP; it encodes what it accepts to the same bytes.

use paceline_packet::wire::tfrc::{MAGIC, decode};

/// The target `wire_tfrc`.
pub fn wire_tfrc(bytes: &[u8]) {
    check(bytes);
    // The fuzzer does not find these two bytes by itself.
    check(&[&MAGIC, bytes].concat());
}

fn check(bytes: &[u8]) {
    match decode(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok((datagram, payload)) => {
            let mut again = Vec::new();
            datagram.encode(&mut again);
            again.extend_from_slice(payload);
            assert_eq!(again, bytes);
        }
    }
}
