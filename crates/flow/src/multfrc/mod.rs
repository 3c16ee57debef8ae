//! MulTFRC: a flow of several TFRC connections, sans-I/O, built on TFRC's machines.
//!
//! Each connection has its own sequence numbers, round-trip time, rate, pacing and nofeedback timer at the sender, and
//! its own loss history and feedback timer at the receiver. They share the application's data: each packet is sent
//! once, by whichever connection is due. The algorithm in [`paceline_control::multfrc::Connections`] decides how many
//! are open, from the round-trip times of all. Start with [`MultfrcSender::on_report`].

mod receiver;
mod sender;
mod supply;

pub use receiver::MultfrcReceiver;
pub use sender::MultfrcSender;
