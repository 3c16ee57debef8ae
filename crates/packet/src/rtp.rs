//! What an RTP data packet says (RFC 3550 section 5.1).

/// Names a source of RTP (RFC 3550 section 3): chosen at random, alike in its data and its reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ssrc(pub u32);

/// The header of an RTP data packet without contributing sources and padding (RFC 3550 section 5.1), and of extensions with
/// the transport-wide number alone.
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
    /// One more with each packet sent the same way, of whatever source, modulo 2^16
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2); `None` without that header extension.
    pub transport: Option<u16>,
    /// Of a retransmission the number of the packet that it holds, with which its payload begins (RFC 4588 section 4).
    pub original: Option<u16>,
}

impl RtpData {
    /// Bytes of the header without an extension.
    pub const LEN: usize = 12;
    /// Bytes of the extension with the transport-wide number: its head, one element, and what fills it up (RFC 8285
    /// section 4.2).
    pub const TRANSPORT_LEN: usize = 8;
    /// The element's id, on which two ends would agree by SDP (RFC 8285 section 4.2: 1 to 14).
    pub const TRANSPORT_ID: u8 = 1;
    /// Ticks of the timestamp a second, as for all video (RFC 3551 section 5).
    pub const CLOCK_HZ: u64 = 90_000;
    /// The payload type of our streams: the first of those that have no standing meaning (RFC 3551 section 6).
    pub const PAYLOAD_TYPE: u8 = 96;
    /// The payload type of packets that carry nothing and keep a path used: the next one.
    pub const FILLER: u8 = 97;
    /// Retransmissions of [`RtpData::PAYLOAD_TYPE`] (RFC 4588): each type has one of its own (section 8.6, `apt`).
    pub const RETRANSMISSION: u8 = 98;
    /// Key frames, where a receiver is to tell them from frames that need others: a codec would say so in its payload.
    pub const KEY: u8 = 99;
    /// Retransmissions of [`RtpData::KEY`].
    pub const KEY_RETRANSMISSION: u8 = 100;
    /// Bytes of the number that a retransmission begins with.
    pub const ORIGINAL_LEN: usize = 2;

    /// The type of the packet that a retransmission of this type holds; `None` of what is none.
    #[must_use]
    pub const fn retransmitted_type(payload_type: u8) -> Option<u8> {
        match payload_type {
            RtpData::RETRANSMISSION => Some(RtpData::PAYLOAD_TYPE),
            RtpData::KEY_RETRANSMISSION => Some(RtpData::KEY),
            _ => None,
        }
    }
}
