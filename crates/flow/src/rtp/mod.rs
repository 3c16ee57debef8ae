//! RTP and RTCP: paced data packets, and reports from both ends, sans-I/O, around any media controller (RFC 3550).
//!
//! Data packets have 16-bit sequence numbers with a random start. Both ends send reports, seconds apart. The sender
//! reports what it has sent and when; the receiver reports losses since its last report. From these reports the sender
//! computes losses and round-trip times. If the controller needs the bottleneck's rate, packets are sent in occasional
//! bursts, and the receiver measures their spacing. If the controller instead needs the arrival time of each packet,
//! many times a second (RFC 8888), the receiver keeps an [`ArrivalLog`], the sender a [`SentLog`]. With transport-wide
//! sequence numbers, the receiver keeps a [`TransportLog`] instead.
//!
//! Start with [`RtpSender::on_rtcp`] and [`RtpReceiver::on_data`]. `timing` schedules reports, `source` validates and
//! counts packets, `packet_pair` measures the bottleneck, `participant` has what both ends share, `feedback_timer`
//! schedules feedback on arrivals, `ecn` has ECN (RFC 6679). [`RtpListener`] receives from senders other than
//! Paceline's.

mod ccfb;
mod config;
mod ecn;
mod feedback_timer;
mod listener;
mod nack;
mod packet_pair;
mod participant;
mod receiver;
mod sender;
mod sent_log;
mod source;
mod timing;
mod twcc;

pub use ccfb::ArrivalLog;
pub use config::{LossField, MinInterval, ProbeConfig, RtpConfig, Spacing, Timing};
pub use listener::{MAX_STREAMS, ReceivedPacket, ReceivedStream, RtpListener, SHARE as LISTENER_SHARE};
pub use paceline_control::rtp::{FeedbackConfig, FeedbackFormat};
pub use packet_pair::PacketPairs;
pub use receiver::{Carried, FeedbackSent, RtpReceiver};
pub use sender::RtpSender;
pub use sender::bundle::{Class, Grant, Turn, Waiting};
pub use sent_log::{Feedback, SentLog};
pub use source::{Loss, RtpSource, Verdict, ticks};
pub use timing::{Members, ReportTimer};
pub use twcc::{ReferenceClock, TransportLog};
