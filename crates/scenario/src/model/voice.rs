//! Voice, as the E-model (ITU-T G.107) rates it.

use paceline_units::Span;

/// A codec's impairment (ITU-T G.113, appendix I).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Its equipment impairment factor, Ie.
    pub equipment: f64,
    /// Its packet-loss robustness factor, Bpl.
    pub robustness: f64,
}

/// A voice flow, as the E-model needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voice {
    /// Its codec.
    pub codec: Impairment,
    /// Packet interval: the age of a packet's first sample when the packet leaves.
    pub interval: Span,
}
