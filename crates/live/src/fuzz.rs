//! Functions only for the fuzz targets (`fuzz/`): readers of sockets that tests cannot write to.

use crate::gateway::rtnetlink;
use crate::netns::message;

/// Parses a datagram as answers of `rtnetlink(7)`; returns how many of its messages were recognised.
#[must_use]
pub fn rtnetlink(datagram: &[u8]) -> usize {
    rtnetlink::read(datagram)
}

/// Whether these bytes, if they are a valid message from a namespace's init, decode to the same message after encoding
/// it again.
#[must_use]
pub fn is_kept(message: &[u8; 16]) -> bool {
    message::is_kept(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A netlink message with 20 bytes after its header and these attributes.
    fn message(kind: u16, flags: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 36];
        for (kind, value) in attributes {
            bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[24..28].copy_from_slice(&1_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn what_is_whole_is_something() {
        let queue = message(36, 0, &[(1, b"fq_codel\0")]);
        assert_eq!(rtnetlink(&queue), 1);
        assert_eq!(rtnetlink(&[queue.clone(), queue].concat()), 2);
        assert_eq!(rtnetlink(&[0; 100]), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), init in any::<[u8; 16]>()) {
            let _ = rtnetlink(&bytes);
            prop_assert!(is_kept(&init));
        }

        #[test]
        fn a_damaged_answer_is_read(at in 0usize..100, byte in any::<u8>(), cut in 0usize..100, kind in 0u8..8) {
            let counts = [&[20, 0, 1, 0][..], &[7; 16]].concat();
            let whole = message(36, 0x200, &[(1, b"fq_codel\0"), (7, &counts), (2, &counts), (3, b"lan0\0")]);
            let mut damaged = whole.clone();
            let at = at % whole.len();
            damaged[at] = byte;
            let _ = rtnetlink(&damaged);
            let _ = rtnetlink(&whole[..cut.min(whole.len())]);
            let mut init = [byte; 16];
            init[..4].copy_from_slice(&i32::from(kind).to_ne_bytes());
            prop_assert!(is_kept(&init));
        }
    }
}
