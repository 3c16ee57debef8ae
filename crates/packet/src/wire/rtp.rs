//! RTP data packets (RFC 3550 section 5.1), by the crate `rtp-types`; their transport-wide sequence numbers in a header
//! extension with one-byte element headers (RFC 8285 section 4.2).

use crate::rtp::{RtpData, Ssrc};
use rtp_types::{RtpPacket, RtpPacketBuilder, RtpParseError};

/// The identifier of an extension with one-byte element headers.
const ONE_BYTE: u16 = 0xbede;
/// Bytes of the sequence number, the element's content.
const NUMBER: usize = 2;

/// A payload type with more than 7 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PayloadTypeError(pub u8);

impl core::fmt::Display for PayloadTypeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "payload type {}, which is above 127", self.0)
    }
}

impl core::error::Error for PayloadTypeError {}

/// Why bytes are no RTP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The version is not 2.
    Version(u8),
    /// The bytes end within the header, or padding, contributing sources or the extension exceed them, or a
    /// retransmission has no original sequence number.
    Truncated,
    /// The padding bit is set, and the count of padding bytes is zero.
    Padding,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::Version(version) => write!(f, "version {version}, where RTP's is 2"),
            DecodeError::Truncated => f.write_str("it ends before what its header announces"),
            DecodeError::Padding => f.write_str("padded with no byte"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Appends the header, and for a retransmission the original sequence number; the caller appends the payload.
///
/// # Errors
/// If the payload type is above 127; nothing is appended then.
pub fn encode(data: &RtpData, to: &mut Vec<u8>) -> Result<(), PayloadTypeError> {
    encode_with(data, RtpData::TRANSPORT_ID, to)
}

/// As [`encode`], with another negotiated ID of the extension, 1 to 14 (only the lower four bits are used).
///
/// # Errors
/// As [`encode`].
pub fn encode_with(data: &RtpData, transport_id: u8, to: &mut Vec<u8>) -> Result<(), PayloadTypeError> {
    let number = data.transport.unwrap_or_default().to_be_bytes();
    let element = [transport_id << 4 | (NUMBER - 1) as u8, number[0], number[1], 0];
    let mut packet: RtpPacketBuilder<&[u8], &[u8]> = RtpPacketBuilder::new()
        .marker_bit(data.marker)
        .payload_type(data.payload_type)
        .sequence_number(data.sequence)
        .timestamp(data.timestamp)
        .ssrc(data.ssrc.0);
    if data.transport.is_some() {
        packet = packet.extension(ONE_BYTE, &element);
    }
    packet.write_into_vec(to).map_err(|_| PayloadTypeError(data.payload_type))?;
    if let Some(original) = data.original {
        to.extend(original.to_be_bytes());
    }
    Ok(())
}

/// Reads a packet; returns the header and the payload, for a retransmission the original's payload. Contributing
/// sources, other extensions and padding are ignored.
///
/// # Errors
/// [`DecodeError`].
pub fn decode(bytes: &[u8]) -> Result<(RtpData, &[u8]), DecodeError> {
    let (mut data, mut payload) = decode_with(bytes, RtpData::TRANSPORT_ID)?;
    if RtpData::retransmitted_type(data.payload_type).is_some() {
        let (number, rest) = payload.split_first_chunk().ok_or(DecodeError::Truncated)?;
        (data.original, payload) = (Some(u16::from_be_bytes(*number)), rest);
    }
    Ok((data, payload))
}

/// As [`decode`], for a packet with unknown payload types, none of which counts as a retransmission, and another ID of
/// the extension, 1 to 14.
///
/// # Errors
/// [`DecodeError`].
pub fn decode_with(bytes: &[u8], transport_id: u8) -> Result<(RtpData, &[u8]), DecodeError> {
    let packet = RtpPacket::parse(bytes).map_err(|error| match error {
        RtpParseError::UnsupportedVersion(version) => DecodeError::Version(version),
        RtpParseError::PaddingInvalid(_) => DecodeError::Padding,
        RtpParseError::Truncated { .. } => DecodeError::Truncated,
    })?;
    let payload = bytes.get(packet.payload_offset()..).and_then(|rest| rest.get(..packet.payload_len()));
    let payload = payload.ok_or(DecodeError::Truncated)?;
    let data = RtpData {
        ssrc: Ssrc(packet.ssrc()),
        timestamp: packet.timestamp(),
        sequence: packet.sequence_number(),
        payload_type: packet.payload_type(),
        marker: packet.marker_bit(),
        transport: packet
            .extension()
            .and_then(|(kind, elements)| (kind == ONE_BYTE).then(|| number(elements, transport_id)))
            .flatten(),
        original: None,
    };
    Ok((data, payload))
}

/// The transport-wide sequence number among the elements of an extension, the first if there are several. If the
/// elements are malformed, those before count (RFC 8285 section 4.2).
fn number(mut elements: &[u8], transport_id: u8) -> Option<u16> {
    loop {
        let (&head, rest) = elements.split_first()?;
        if head == 0 {
            // padding
            elements = rest;
            continue;
        }
        let (id, len) = (head >> 4, usize::from(head & 0xf) + 1);
        if id == 0 || id == 15 {
            // neither has a length, and nothing after it counts
            return None;
        }
        let (content, rest) = rest.split_at_checked(len)?;
        if id == transport_id && len == NUMBER {
            return content.try_into().ok().map(u16::from_be_bytes);
        }
        elements = rest;
    }
}
