//! RTP and RTCP: paced data packets, reports from both ends, sans-I/O, around any controller of media (RFC 3550).
//!
//! Data packets are numbered in 16 bits from a random start; nothing is sent twice. Both ends report, seconds apart: the
//! sender what it has sent and when, the receiver what it has lost since its last report, from which the sender has losses
//! and round-trip times. If the controller wants to know the bottleneck's rate, packets leave in bursts from time to time,
//! and the receiver measures how far apart they come. Look first at [`RtpSender::on_rtcp`] and at
//! [`RtpReceiver::on_data`]; `timing` says when reports are sent, `source` validates and counts packets, `probe` measures
//! the bottleneck, `participant` holds what both ends have. A controller may want to know instead, many times a second, when
//! each packet arrived (RFC 8888): the receiver keeps an [`ArrivalLog`], the sender a [`SentLog`]. Where packets have
//! transport-wide numbers, the receiver keeps a [`TransportLog`] of them instead; `due` says when feedback leaves, `ecn` what becomes of
//! the ECN field (RFC 6679).
//! [`RtpListener`] hears senders that are not ours.

mod arrivals;
mod config;
mod due;
mod ecn;
mod listener;
mod nack;
mod participant;
mod probe;
mod receiver;
mod sender;
mod sent;
mod source;
mod timing;
mod transport;

pub use arrivals::ArrivalLog;
pub use config::{LossField, MinInterval, ProbeConfig, RtpConfig, Spacing, Timing};
pub use listener::{Heard, HeardStream, MOST_STREAMS, RtpListener, SHARE as LISTENER_SHARE};
pub use paceline_control::rtp::{FeedbackConfig, FeedbackFormat};
pub use probe::PacketPairs;
pub use receiver::{Carried, FeedbackSent, RtpReceiver};
pub use sender::RtpSender;
pub use sender::bundle::{Class, Grant, Turn, Waiting};
pub use sent::{SentLog, Told};
pub use source::{Loss, RtpSource, Verdict, ticks};
pub use timing::{Members, ReportTimer};
pub use transport::{ReferenceClock, TransportLog};
