//! Wire formats: encoding and decoding of UDP payloads. Only codecs: no sockets, no clocks, no state.
//!
//! Decoding any bytes returns a value or an error. Decoding an encoded value returns the same value; TFRC's format is
//! also canonical, so that encoding a decoded message returns the same bytes.

mod bytes;
pub mod rtcp;
pub mod rtp;
pub mod tfrc;
