//! MULTFRC: a flow of several TFRC connections, sans-I/O, around TFRC's machines.
//!
//! Each connection has what a TFRC has of its own: numbers, round-trip time, rate, pacing and nofeedback timer at the
//! sender, loss history and feedback timer at the receiver. They share what the application writes: each packet of it is
//! sent once, by whichever connection is due. How many are open is the law's decision
//! ([`paceline_control::multfrc::Connections`]), from the round-trip times of all. Look first at
//! [`MultfrcSender::on_report`].

mod receiver;
mod sender;
mod supply;

pub use receiver::MultfrcReceiver;
pub use sender::MultfrcSender;
