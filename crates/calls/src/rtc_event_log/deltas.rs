//! How libwebrtc's event logs encode the values after a first one (logging/rtc_event_log/encoder: delta_encoding.cc,
//! blob_encoding.cc, var_int.cc).

/// The bits of a byte string, most significant bit first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next `count` bits, at most 64; `None` if there are fewer.
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0;
        for _ in 0..count {
            let byte = *self.bytes.get(self.at / 8)?;
            value = value << 1 | u64::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// A varint: seven bits per byte, least significant first.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(8)?;
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The `count` values that follow `base`, where `None` is an absent one. The whole result is `None` if the bytes are
/// damaged.
///
/// No bytes mean that all values equal the first. Otherwise two bits select one of two encodings, and six give the
/// width of the differences. In the second encoding, the next fields say whether differences are signed, whether values
/// may be absent (a bit per value then precedes all differences), and at what width values wrap.
pub fn values(bytes: &[u8], base: Option<u64>, count: usize) -> Option<Vec<Option<u64>>> {
    if bytes.is_empty() {
        return Some(vec![base; count]);
    }
    let mut bits = Bits { bytes, at: 0 };
    let encoding = bits.take(2)?;
    let width = bits.take(6)? as u32 + 1;
    let (signed, optional, value_width) = match encoding {
        0 => (false, false, 64),
        1 => (bits.take(1)? == 1, bits.take(1)? == 1, bits.take(6)? as u32 + 1),
        _ => return None,
    };
    // Each value takes at least one bit.
    if count > bytes.len() * 8 {
        return None;
    }
    let present: Vec<bool> = (0..count)
        .map(|_| if optional { bits.take(1).map(|bit| bit == 1) } else { Some(true) })
        .collect::<Option<_>>()?;
    let mut last = base;
    present
        .into_iter()
        .map(|present| {
            if !present {
                return Some(None);
            }
            let value = match last {
                // The first present value is stored whole.
                None => bits.varint()?,
                Some(last) => {
                    let delta = bits.take(width)?;
                    let below_zero = signed && delta >> (width - 1) == 1;
                    let delta = if below_zero { delta | !mask(width) } else { delta };
                    last.wrapping_add(delta) & mask(value_width)
                }
            };
            last = Some(value);
            Some(last)
        })
        .collect()
}

/// `count` strings: first the length of each, then their bytes. `None` if they are damaged.
pub fn blobs(bytes: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    if count > bytes.len() {
        return None;
    }
    let mut bits = Bits { bytes, at: 0 };
    let lengths: Vec<usize> =
        (0..count).map(|_| bits.varint().and_then(|length| usize::try_from(length).ok())).collect::<Option<_>>()?;
    let mut rest = &bytes[bits.at / 8..];
    lengths
        .into_iter()
        .map(|length| {
            let (blob, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(blob)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits written as text, padded to whole bytes.
    fn packed(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |sum, (i, bit)| sum | bit << (7 - i))).collect()
    }

    #[test]
    fn without_bytes_all_are_as_the_first() {
        assert_eq!(values(&[], Some(7), 3), Some(vec![Some(7); 3]));
        assert_eq!(values(&[], None, 2), Some(vec![None; 2]));
    }

    #[test]
    fn differences_of_one_width() {
        // encoding 0, width 3: +1, +7, +0
        let bytes = packed("00 000010 001 111 000");
        assert_eq!(values(&bytes, Some(5), 3), Some(vec![Some(6), Some(13), Some(13)]));
        assert_eq!(values(&bytes, Some(5), 6), None, "the bits end before");
    }

    #[test]
    fn differences_with_a_sign_wrap_at_the_width_of_values() {
        // encoding 1, width 2, signed, none absent, values of 16 bits: +1, -1, -2
        let bytes = packed("01 000001 1 0 001111 01 11 10");
        assert_eq!(values(&bytes, Some(0xffff), 3), Some(vec![Some(0), Some(0xffff), Some(0xfffd)]));
        // the same, unsigned: +1, +3, +2
        let bytes = packed("01 000001 0 0 001111 01 11 10");
        assert_eq!(values(&bytes, Some(0xffff), 3), Some(vec![Some(0), Some(3), Some(5)]));
    }

    #[test]
    fn values_may_be_absent() {
        // width 4, unsigned, values of 64 bits: absent, present, absent, present; the first is whole (300), then +2
        let bytes = packed("01 000011 0 1 111111 0101 10101100 00000010 0010");
        assert_eq!(values(&bytes, None, 4), Some(vec![None, Some(300), None, Some(302)]));
        // after a first value, both are differences
        let bytes = packed("01 000011 0 1 111111 0101 0001 0010");
        assert_eq!(values(&bytes, Some(10), 4), Some(vec![None, Some(11), None, Some(13)]));
    }

    #[test]
    fn other_encodings_are_none() {
        assert_eq!(values(&packed("10 000000 1"), Some(0), 1), None);
        assert_eq!(values(&packed("11 000000 1"), Some(0), 1), None);
        assert_eq!(values(&[0x00], Some(0), usize::MAX), None);
    }

    #[test]
    fn lengths_come_before_all_blobs() {
        assert_eq!(blobs(&[2, 0, 1, b'a', b'b', b'c'], 3), Some(vec![&b"ab"[..], b"", b"c"]));
        assert_eq!(blobs(&[2, 0, 1, b'a', b'b'], 3), None);
        assert_eq!(blobs(&[0x80], 1), None);
    }
}
