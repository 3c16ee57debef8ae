//! What a receiver counts of the ECN field of a source's packets (RFC 6679 section 5), as plain values.

use crate::rtp::Ssrc;

/// Packets of a source since the receiver joined, those of the last four modulo 2^16 (RFC 6679 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u32,
    /// With ECT(1).
    pub ect1: u32,
    /// With congestion experienced, copies included.
    pub ce: u16,
    /// With none of them.
    pub not_ect: u16,
    /// Expected and not come; what comes late is not lost.
    pub lost: u16,
    /// That had come before.
    pub duplicates: u16,
}

/// An ECN feedback report (section 5.1): what a receiver says of a source as soon as it has something to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnFeedback {
    /// The source.
    pub ssrc: Ssrc,
    /// The highest number that has come of it, with its cycles, as in a report block.
    pub extended_highest: u32,
    /// What it counted up to there.
    pub counts: EcnCounts,
}

/// An ECN summary report (section 5.2): the same with each regular report, whose block has the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnSummary {
    /// The source.
    pub ssrc: Ssrc,
    /// What was counted of it.
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
