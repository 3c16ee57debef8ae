//! Logs of other programs' calls, and how a controller would have reacted to the logged feedback.
//!
//! [`rtc_event_log`] reads libwebrtc's logs; packets of a capture also arrive as a [`CallLog`]. [`feedback`] extracts
//! the receiver's RTCP, and [`open_loop`] replays it to a controller. No I/O. Start reading at [`CallLog`].

pub mod feedback;
pub mod log;
pub mod open_loop;
pub mod rtc_event_log;

pub use log::{CallLog, Cluster, Estimate, Estimator, RtcpPacket, RtpPacket, Way};
