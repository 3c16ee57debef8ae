//! Wire formats: what goes into a UDP datagram, and back. Codecs alone: no sockets, no clocks, no state.
//!
//! Decoding any bytes gives a value or an error; what is decoded and encoded again is the same bytes.

pub mod tfrc;
