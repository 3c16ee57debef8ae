//! Wire formats: what goes into a UDP datagram, and back. Codecs alone: no sockets, no clocks, no state.
//!
//! Decoding any bytes gives a value or an error. What is encoded and decoded is the same value; TFRC's format is
//! canonical besides, so that what is decoded and encoded is the same bytes.

mod bytes;
pub mod rtcp;
pub mod rtp;
pub mod tfrc;
