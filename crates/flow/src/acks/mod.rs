//! Paced datagrams, each acknowledged, none sent again: sans-I/O, around any [`paceline_control::AckController`].
//!
//! Packets are numbered as they leave, and what is lost stays lost. The receiver answers each with its number and the
//! last hole in what has come ([`paceline_packet::LastHole`]); the sender remembers what it has sent (`history`), takes
//! round-trip times, and finds losses by holes and by timeouts (Rejaie, Handley and Estrin, INFOCOM 1999, section 2.1).
//! Look first at [`AcksSender::on_ack`] and [`AcksReceiver::on_data`].

mod config;
mod history;
mod receiver;
mod rtt;
mod sender;

pub use config::AcksConfig;
pub use receiver::AcksReceiver;
pub use sender::AcksSender;
