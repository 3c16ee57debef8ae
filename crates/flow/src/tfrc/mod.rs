//! TFRC: paced datagrams, reports from the receiver, sans-I/O, around any rate controller.
//!
//! Nothing is sent twice: packets are numbered as they leave, and what is lost stays lost. The receiver measures the
//! loss event rate and the receive rate (RFC 5348 sections 5 and 6), the sender round-trip times; the controller turns
//! both into a rate, at which the sender paces (section 4). Look first at [`TfrcSender::on_report`] and at
//! [`TfrcReceiver::on_data`]; `gaps` finds losses, `history` makes the loss event rate of them, `ns2` is ns-2's
//! receiver.

mod config;
mod gaps;
mod history;
mod limited;
mod ns2;
mod receive_rate;
mod receiver;
mod rtt;
mod sender;

pub use config::TfrcConfig;
pub use history::{Fewer, IntervalWeights, LossHistory};
pub use receiver::TfrcReceiver;
pub use sender::TfrcSender;
