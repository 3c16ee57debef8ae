//! NDTC: frames whose size is what the path carries within their time, found by dithering how long each takes to leave.
//!
//! Source: P.-L. Ageneau, G. Armitage, S. Danahy, "Network Delivery Time Control" (draft-ageneau-ccwg-ndtc of July 2026). [`law`] is
//! its arithmetic, complete: FDACE, the AIMD beside it, and how a frame is to leave. No scheme rides on it yet: RTP's machine
//! neither knows which packets make a frame when feedback tells of them, nor lets a controller say how a frame is to leave.
//!
//! Where the draft is silent: an estimate of zero (frames that arrive in no time) is a target of MAX_TARGET; a frame of which a
//! packet's fate or time of arrival is unknown has no sample, but counts in the AIMD by what is known of it; no feedback for long is
//! a loss, without a frame that it belongs to; INIT_TARGET is brought within its bounds.

pub mod law;
