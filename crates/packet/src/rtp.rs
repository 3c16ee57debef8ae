//! The header of RTP data packets (RFC 3550 section 5.1).

/// Identifies an RTP source (RFC 3550 section 3): chosen at random, the same in its data and its reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ssrc(pub u32);

/// The header of an RTP data packet, without contributing sources and padding (RFC 3550 section 5.1); of header
/// extensions only the transport-wide sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RtpData {
    /// The sender.
    pub ssrc: Ssrc,
    /// When the first byte of the payload was sampled: ticks of [`RtpData::CLOCK_HZ`] from a random start, modulo 2^32.
    pub timestamp: u32,
    /// Incremented with each data packet, modulo 2^16, from a random start.
    pub sequence: u16,
    /// The payload type: 0 to 127.
    pub payload_type: u8,
    /// The profile's marker: the last packet of a video frame (RFC 3551 section 5).
    pub marker: bool,
    /// Incremented with each packet sent over the transport, of any source, modulo 2^16
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2); `None` without that header extension.
    pub transport: Option<u16>,
    /// For a retransmission: the original sequence number, with which its payload begins (RFC 4588 section 4).
    pub original: Option<u16>,
}

impl RtpData {
    /// Bytes of the header without an extension.
    pub const LEN: usize = 12;
    /// Bytes of the extension with the transport-wide sequence number: its header, one element, and padding (RFC 8285
    /// section 4.2).
    pub const TRANSPORT_LEN: usize = 8;
    /// The element's id, which two ends would negotiate by SDP (RFC 8285 section 4.2: 1 to 14).
    pub const TRANSPORT_ID: u8 = 1;
    /// Timestamp ticks per second, as for all video (RFC 3551 section 5).
    pub const CLOCK_HZ: u64 = 90_000;
    /// The payload type of Paceline's streams: the first dynamic one (RFC 3551 section 6).
    pub const PAYLOAD_TYPE: u8 = 96;
    /// The payload type of padding packets, which keep a path in use: the next one.
    pub const FILLER: u8 = 97;
    /// Retransmissions of [`RtpData::PAYLOAD_TYPE`] (RFC 4588): each payload type has its own retransmission type
    /// (section 8.6, `apt`).
    pub const RETRANSMISSION: u8 = 98;
    /// Key frames, if a receiver must distinguish them from dependent frames: a codec would say so in its payload.
    pub const KEY: u8 = 99;
    /// Retransmissions of [`RtpData::KEY`].
    pub const KEY_RETRANSMISSION: u8 = 100;
    /// Bytes of the original sequence number at the start of a retransmission.
    pub const ORIGINAL_LEN: usize = 2;

    /// The payload type of the packet in a retransmission of this type; `None` if it is no retransmission type.
    #[must_use]
    pub const fn retransmitted_type(payload_type: u8) -> Option<u8> {
        match payload_type {
            RtpData::RETRANSMISSION => Some(RtpData::PAYLOAD_TYPE),
            RtpData::KEY_RETRANSMISSION => Some(RtpData::KEY),
            _ => None,
        }
    }
}
