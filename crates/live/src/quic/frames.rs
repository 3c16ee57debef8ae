//! How an application's frames are encoded in streams and datagrams: with a short header before each.
//!
//! On a stream that carries frames, each frame is a byte of flags (1: a key frame), its capture time (32 bits,
//! big-endian, in 256 ns of the sender's clock), its size as a variable-length integer (RFC 9000 section 16), and that
//! many bytes. A datagram (RFC 9221) is one part of a frame: flags (1: a key frame, 2: the last part), the time, the
//! frame's number and the part's offset as such integers, and the part. Header bytes do not count as payload.
//! [`Reader`] parses a stream split in any way, and [`part`] any datagram.

use paceline_packet::Stamp;

/// Flags of a frame and of a part.
const KEY: u8 = 1;
const LAST: u8 = 2;
/// Maximum length of a frame's header: flags, time, size.
const LONGEST: usize = 1 + 4 + 8;

/// A frame's header on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Whether it is a key frame.
    pub key: bool,
    /// When it was captured, by its sender's clock.
    pub captured: Stamp,
    /// Size in bytes.
    pub size: u64,
}

/// A datagram's header: a part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Whether the frame is a key frame.
    pub key: bool,
    /// Whether this is the frame's last part.
    pub last: bool,
    /// When it was captured, by its sender's clock.
    pub captured: Stamp,
    /// The frame's number within the flow.
    pub number: u64,
    /// Offset of this part in the frame.
    pub offset: u64,
}

/// Error for bytes that are not a valid header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Garbled;

fn put(to: &mut Vec<u8>, number: u64) {
    // no real size or number is larger
    let number = number.min((1 << 62) - 1);
    let (bytes, length) = match number {
        0..=0x3f => (number << 56, 1),
        0x40..=0x3fff => ((number | 1 << 14) << 48, 2),
        0x4000..=0x3fff_ffff => ((number | 2 << 30) << 32, 4),
        _ => (number | 3 << 62, 8),
    };
    to.extend_from_slice(&bytes.to_be_bytes()[..length]);
}

/// Decodes a number at the beginning of some bytes; also returns the bytes after it.
pub(super) fn take(from: &[u8]) -> Option<(u64, &[u8])> {
    let length = 1 << (from.first()? >> 6);
    let (bytes, rest) = from.split_at_checked(length)?;
    let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    Some((number & (u64::MAX >> (66 - 8 * length as u32).min(63)), rest))
}

impl Frame {
    /// Appends the header.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(if self.key { KEY } else { 0 });
        to.extend_from_slice(&self.captured.0.to_be_bytes());
        put(to, self.size);
    }
}

impl Part {
    /// Appends the header.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(if self.key { KEY } else { 0 } | if self.last { LAST } else { 0 });
        to.extend_from_slice(&self.captured.0.to_be_bytes());
        put(to, self.number);
        put(to, self.offset);
    }
}

/// Decodes a datagram: the part's header, and its length in bytes.
///
/// # Errors
/// If it has no valid header.
pub fn part(bytes: &[u8]) -> Result<(Part, u64), Garbled> {
    let (&flags, rest) = bytes.split_first().ok_or(Garbled)?;
    let (stamp, rest) = rest.split_first_chunk().ok_or(Garbled)?;
    let (number, rest) = take(rest).ok_or(Garbled)?;
    let (offset, rest) = take(rest).ok_or(Garbled)?;
    if flags & !(KEY | LAST) != 0 {
        return Err(Garbled);
    }
    let captured = Stamp(u32::from_be_bytes(*stamp));
    Ok((Part { key: flags & KEY != 0, last: flags & LAST != 0, captured, number, offset }, rest.len() as u64))
}

/// Parses the frames of a stream, received in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The received bytes of an incomplete header.
    header: Vec<u8>,
    /// The incomplete frame, and how many of its bytes are missing.
    frame: Option<(Frame, u64)>,
}

impl Reader {
    /// Parses the next bytes of the stream: calls `begun` for each frame with a complete header, `ended` for each
    /// complete frame. Returns how many of the bytes are payload.
    ///
    /// # Errors
    /// If they are not frames; nothing more of this stream may be read then.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        mut begun: impl FnMut(&Frame),
        mut ended: impl FnMut(Frame),
    ) -> Result<u64, Garbled> {
        let mut payload = 0;
        loop {
            if let Some((frame, left)) = &mut self.frame {
                let now = (*left).min(bytes.len() as u64);
                (payload, *left) = (payload + now, *left - now);
                bytes = &bytes[now as usize..];
                if *left > 0 {
                    return Ok(payload);
                }
                ended(*frame);
                self.frame = None;
            }
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(payload) };
            bytes = rest;
            self.header.push(byte);
            if let Some(frame) = Reader::header(&self.header)? {
                self.header.clear();
                begun(&frame);
                self.frame = Some((frame, frame.size));
            }
        }
    }

    /// Parses a header; `None` if more bytes are needed.
    fn header(bytes: &[u8]) -> Result<Option<Frame>, Garbled> {
        debug_assert!(bytes.len() <= LONGEST);
        if bytes[0] & !KEY != 0 {
            return Err(Garbled);
        }
        let Some((stamp, rest)) = bytes[1..].split_first_chunk() else { return Ok(None) };
        let Some((size, _)) = take(rest) else { return Ok(None) };
        Ok(Some(Frame { key: bytes[0] & KEY != 0, captured: Stamp(u32::from_be_bytes(*stamp)), size }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn numbers_are_those_of_the_rfc() {
        let examples: [(u64, &[u8]); 4] = [
            (37, &[0x25]),
            (15_293, &[0x7b, 0xbd]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
        ];
        for (number, bytes) in examples {
            let mut written = Vec::new();
            put(&mut written, number);
            assert_eq!(written, bytes);
            assert_eq!(take(bytes), Some((number, &[][..])));
            assert_eq!(take(&bytes[..bytes.len() - 1]), None);
        }
    }

    proptest! {
        /// Frames are recovered, in whatever pieces the stream arrives.
        #[test]
        fn frames_come_back(
            frames in prop::collection::vec((any::<bool>(), any::<u32>(), 0u64..5000), 0..20),
            cut in 1usize..700,
        ) {
            let frames: Vec<_> =
                frames.into_iter().map(|(key, stamp, size)| Frame { key, captured: Stamp(stamp), size }).collect();
            let mut stream = Vec::new();
            for frame in &frames {
                frame.write(&mut stream);
                stream.resize(stream.len() + frame.size as usize, 0);
            }
            let (mut reader, mut begun, mut ended, mut payload) = (Reader::default(), Vec::new(), Vec::new(), 0);
            for piece in stream.chunks(cut) {
                payload += reader.read(piece, |frame| begun.push(*frame), |frame| ended.push(frame)).unwrap();
            }
            prop_assert_eq!(&begun, &frames);
            prop_assert_eq!(&ended, &frames);
            prop_assert_eq!(payload, frames.iter().map(|frame| frame.size).sum::<u64>());
        }

        #[test]
        fn parts_come_back(key: bool, last: bool, stamp: u32, number in 0u64..1 << 62, offset in 0u64..1 << 62) {
            let one = Part { key, last, captured: Stamp(stamp), number, offset };
            let mut bytes = Vec::new();
            one.write(&mut bytes);
            for short in 0..bytes.len() {
                prop_assert_eq!(part(&bytes[..short]), Err(Garbled));
            }
            bytes.extend_from_slice(&[0; 7]);
            prop_assert_eq!(part(&bytes), Ok((one, 7)));
        }

        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 1usize..50) {
            let _ = part(&bytes);
            let mut reader = Reader::default();
            for piece in bytes.chunks(cut) {
                let Ok(payload) = reader.read(piece, |_| {}, |_| {}) else { break };
                prop_assert!(payload <= piece.len() as u64);
            }
        }
    }
}
