//! A receiver's counts of the ECN field of a source's packets (RFC 6679 section 5), as plain values.

use crate::rtp::Ssrc;

/// Packets of a source since the receiver joined; the last four counts are modulo 2^16 (RFC 6679 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u32,
    /// Packets with ECT(1).
    pub ect1: u32,
    /// Packets with CE, duplicates included.
    pub ce: u16,
    /// Packets that are not ECN-capable.
    pub not_ect: u16,
    /// Packets expected and not received; a late packet is not lost.
    pub lost: u16,
    /// Packets that had been received before.
    pub duplicates: u16,
}

/// An ECN feedback report (section 5.1): a receiver's immediate report on a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnFeedback {
    /// The source.
    pub ssrc: Ssrc,
    /// The highest sequence number received from it, with its cycles, as in a report block.
    pub extended_highest: u32,
    /// The counts up to there.
    pub counts: EcnCounts,
}

/// An ECN summary report (section 5.2): it accompanies each regular report, whose block has the sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnSummary {
    /// The source.
    pub ssrc: Ssrc,
    /// The counts of the source.
    pub counts: EcnCounts,
}

impl EcnFeedback {
    /// Bytes of its packet: the header, two sources, five words.
    pub(crate) const WIRE_LEN: usize = 32;
}

impl EcnSummary {
    /// Bytes that it takes in its packet.
    pub(crate) const WIRE_LEN: usize = 20;
}
