//! What others have logged of their calls, and what a controller would have done with the feedback that they got.
//!
//! [`rtc_event_log`] reads libwebrtc's logs; a capture's packets come ready as a [`CallLog`] too. [`feedback`] tells what the
//! receiver's RTCP said of them, [`open_loop`] shows it to a controller. No I/O. Look first at [`CallLog`].

pub mod feedback;
pub mod log;
pub mod open_loop;
pub mod rtc_event_log;

pub use log::{CallLog, Cluster, Estimate, Estimator, RtcpPacket, RtpPacket, Way};
