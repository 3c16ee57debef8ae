//! What an RTP data packet says (RFC 3550 section 5.1).

/// Names a source of RTP (RFC 3550 section 3): chosen at random, alike in its data and its reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ssrc(pub u32);

/// The header of an RTP data packet without contributing sources, padding and extension (RFC 3550 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RtpData {
    /// Who sends.
    pub ssrc: Ssrc,
    /// When the first byte of the payload was sampled: ticks of [`RtpData::CLOCK_HZ`] from a random start, modulo 2^32.
    pub timestamp: u32,
    /// One more with each data packet, modulo 2^16, from a random start.
    pub sequence: u16,
    /// What the payload is: 0 to 127.
    pub payload_type: u8,
    /// The profile's marker: the last packet of a video frame (RFC 3551 section 5).
    pub marker: bool,
}

impl RtpData {
    /// Bytes of the header.
    pub const LEN: usize = 12;
    /// Ticks of the timestamp a second, as for all video (RFC 3551 section 5).
    pub const CLOCK_HZ: u64 = 90_000;
    /// The payload type of our streams: the first of those that have no standing meaning (RFC 3551 section 6).
    pub const PAYLOAD_TYPE: u8 = 96;
    /// The payload type of packets that carry nothing and keep a path used: the next one.
    pub const FILLER: u8 = 97;
}
