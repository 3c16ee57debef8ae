//! Paced datagrams with an acknowledgement each and without retransmission: sans-I/O, around any
//! [`paceline_control::AckController`].
//!
//! Packets are numbered as they are sent. The receiver acknowledges each with its number and the last hole in the
//! received sequence ([`paceline_packet::LastHole`]). The sender records what it has sent (`history`), measures
//! round-trip times, and detects losses by holes and timeouts (Rejaie, Handley and Estrin, INFOCOM 1999, section 2.1).
//! Start with [`AcksSender::on_ack`] and [`AcksReceiver::on_data`].

mod config;
mod history;
mod receiver;
mod rtt;
mod sender;

pub use config::AcksConfig;
pub use receiver::AcksReceiver;
pub use sender::AcksSender;
