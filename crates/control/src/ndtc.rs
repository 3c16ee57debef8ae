//! NDTC: frames whose size is what the path carries within their time, found by dithering how long each takes to leave.
//!
//! Source: P.-L. Ageneau, G. Armitage, S. Danahy, "Network Delivery Time Control" (draft-ageneau-ccwg-ndtc of July 2026); names in
//! capitals are its. [`law`] is its arithmetic, [`frames`] makes frames of the packets that feedback tells of (RFC 8888).

pub mod frames;
pub mod law;
